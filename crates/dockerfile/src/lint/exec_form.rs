//! Exec form: no shell reads it, and Windows starts only programs.

use wincimg_recipe::CommandForm;
use wincimg_scripts::script::is_file_option;
use wincimg_windows::quoting::cmd;

use super::args_escaped;
use super::buildkit::requires_buildkit;
use super::environment::shell_variables;
use super::prelude::*;
use super::shells::is_known_cmdlet;

/// Commands that are batch files, which Windows finds only with their extension.
pub(super) const BATCH_FILES: [&str; 22] = [
    "npm", "npx", "yarn", "yarnpkg", "pnpm", "mvn", "gradle", "gradlew", "mvnw", "ng", "tsc",
    "grunt", "gulp", "bower", "az", "gem", "bundle", "bundler", "rails", "composer", "ant", "sbt",
];

/// Cmdlets in lower case, whose names no programs have.
const CMDLETS: [&str; 14] = [
    "write-host", "write-output", "get-content", "get-childitem", "get-service", "set-location",
    "start-process", "start-service", "start-sleep", "start-website", "new-item", "remove-item",
    "invoke-webrequest", "invoke-expression",
];

fn words<'a>(it: &'a EvaluatedStep<'_>) -> Option<&'a [String]> {
    let form = match it.kind {
        InstructionKind::Run(run) => &run.program,
        InstructionKind::Cmd(form) | InstructionKind::Entrypoint(form) => form,
        InstructionKind::Health(health) => health.test.as_ref()?,
        _ => return None,
    };
    let CommandForm::Exec(words) = form else {
        return None;
    };
    (!it.step.is_argument).then_some(words)
}

/// Reports what Windows cannot start as a program.
pub(super) fn check_program(it: &EvaluatedStep<'_>) -> Option<Finding> {
    let program = words(it)?.first()?;
    if args_escaped::is_command_line(program) {
        return check_one_string(it);
    }
    let name = program_name(program);
    let has_folder = program.contains(['\\', '/']);
    let message = if cmd::is_built_in(&name) && !has_folder && !program.contains('.') {
        format!("{program} is a command of cmd and not a program: begin with \"cmd\", \"/C\"")
    } else if is_known_cmdlet(program) || CMDLETS.contains(&name.as_str()) && !has_folder {
        let instead = in_powershell(it.stage, "-Command");
        format!("{program} is a cmdlet and not a program: {instead}")
    } else if BATCH_FILES.contains(&name.as_str()) && !has_extension(program, &["exe"]) {
        format!(
            "{name} is a batch file, which Windows does not find without its extension: begin with \
             \"cmd\", \"/C\", or write {name}.cmd"
        )
    } else {
        match name.rsplit_once('.').map(|(_, extension)| extension) {
            Some("ps1") => {
                let instead = in_powershell(it.stage, "-File");
                format!("Windows does not start {program}: {instead}")
            }
            Some("sh") => format!("Windows does not start the shell script {program}"),
            Some("js" | "py" | "vbs" | "jar" | "rb" | "dll") => {
                format!("{program} is not a program: begin with the one that runs it")
            }
            Some("cmd" | "bat") => return check_batch_file(it, program),
            _ => return None,
        }
    };
    Some(it.step.finding(message))
}

/// How to start what PowerShell runs.
fn in_powershell(stage: &Stage<'_>, option: &str) -> String {
    match stage.powershell() {
        Some(name) => format!("begin with \"{name}\", \"{option}\""),
        None => {
            "it requires PowerShell, which Nano Server does not have: use a base of Server Core"
                .to_owned()
        }
    }
}

fn check_batch_file(it: &EvaluatedStep<'_>, program: &str) -> Option<Finding> {
    let arguments = words(it)?.get(1..)?;
    let cmd = it.stage.all("CMD").next_back();
    let cmd = cmd.filter(|_| it.step.is("ENTRYPOINT"));
    let more = cmd.and_then(|cmd| cmd.instruction.exec_form());
    let more = more.unwrap_or_default();
    let is_read = |c: char| c.is_whitespace() || "%&|<>^\"()".contains(c);
    let has_special = arguments.iter().chain(&more).any(|it| it.contains(is_read));
    // `VsDevCmd.bat && powershell`, as Microsoft's pages have it.
    let is_chain = arguments.iter().any(|it| it.starts_with('&'));
    // Nothing expands a variable, which the other rule says.
    let is_literal = shell_variables(program).next().is_none();
    let message = format!(
        "Windows starts cmd for {program}, which reads the arguments again: begin with \"cmd\", \"/C\""
    );
    let is_reread = has_special && !is_chain && is_literal;
    is_reread.then(|| it.step.finding(message).severity(Severity::Note))
}

/// Reports a program and its arguments in one string.
fn check_one_string(it: &EvaluatedStep<'_>) -> Option<Finding> {
    // In an image with a CMD, another rule knows what happens.
    let is_start = it.step.is("ENTRYPOINT") || it.step.is("CMD");
    if is_start && it.stage.has("CMD") {
        return None;
    }
    let message = "in exec form the first string is the whole name of the program: write each \
        argument as a string of its own";
    // With BuildKit, a base that has ArgsEscaped gives the whole string to Windows.
    let base = it.linted.base_image(it.stage);
    let is_known = base.is_some_and(Reference::is_of_microsoft);
    let is_open = !is_known || requires_buildkit(it.linted);
    let severity = Severity::error_if(!(is_start && is_open));
    Some(it.step.finding(message).severity(severity))
}

/// Reports operators and variables that a shell would read.
pub(super) fn check_shell_syntax(it: &EvaluatedStep<'_>) -> Option<Finding> {
    Some(it.step.finding(shell_syntax(it)?))
}

/// The shells that read the arguments of a program.
struct Readers {
    cmd: bool,
    powershell: bool,
    /// True for a script of PowerShell, which gets its arguments as they are written.
    is_file: bool,
}

impl Readers {
    /// Shells are also found by their names in the arguments, since one may start another.
    fn of(program: &str, arguments: &[String]) -> Self {
        let arguments: Vec<String> = arguments.iter().map(|it| it.to_ascii_lowercase()).collect();
        let starts =
            |shell: &str| program == shell || arguments.iter().any(|word| word.contains(shell));
        let has = |options: [&str; 2]| arguments.iter().any(|it| options.contains(&it.as_str()));
        let is_powershell = starts("powershell") || starts("pwsh");
        let is_file = is_powershell && has(["-file", "-f"]) && !has(["-command", "-c"]);
        Self {
            cmd: starts("cmd") || is_batch(program),
            powershell: is_powershell && !is_file,
            is_file,
        }
    }
}

/// Windows starts cmd for a batch file, which reads the whole line.
fn is_batch(program: &str) -> bool {
    has_extension(program, &["bat", "cmd"])
}

fn shell_syntax(it: &EvaluatedStep<'_>) -> Option<String> {
    let (program, arguments) = words(it)?.split_first()?;
    let shell = program_name(program);
    let joined = joined_words(&shell, arguments);
    if joined.is_some() || matches!(shell.as_str(), "bash" | "sh") {
        return joined;
    }
    let readers = Readers::of(&shell, arguments);
    let all = || std::iter::once(program).chain(arguments);
    if !readers.cmd && !readers.powershell {
        let operators = ["&&", "||", "|", ">", ">>", "&", "2>&1"];
        if let Some(operator) = all().find(|word| operators.contains(&word.as_str())) {
            return Some(format!(
                "no shell reads the exec form, and the program gets \"{operator}\" as an argument"
            ));
        }
    }
    let name = all().find_map(|word| {
        let foreign = shell_variables(word).find(|name| {
            let is_of_cmd = word.contains(&format!("%{name}%"));
            // Windows starts the program before any cmd reads a word.
            let is_before_cmd = is_batch(&shell) && std::ptr::eq(word, program);
            if is_of_cmd {
                (!readers.cmd || is_before_cmd) && (is_set(it, name) || !readers.powershell)
            } else {
                !readers.powershell
            }
        });
        let is_dockers = |name: &&str| !readers.powershell && it.state.declares(name);
        let dockers = || super::variables::dollar_names(word).find(is_dockers);
        foreign.or_else(dockers)
    })?;
    Some(if readers.is_file {
        format!(
            "-File does not run its arguments as a script, and {name} stays as it is written: use -Command"
        )
    } else {
        format!(
            "the exec form does not expand variables, and {name} stays as it is written: use the shell \
             form, or \"cmd\", \"/C\" with %{name}%"
        )
    })
}

/// An operator of cmd among the arguments of PowerShell that no other shell reads.
fn chain_operator(arguments: &[String]) -> Option<&str> {
    let is_operator = |word: &&String| matches!(word.as_str(), "&&" | "||");
    let operator = arguments.iter().find(is_operator)?;
    let mut before = arguments.iter().take_while(|word| *word != operator);
    let is_of_another = |word: &String| {
        let lower = word.to_ascii_lowercase();
        lower.contains_any(&["cmd", "pwsh", "bash", "'", "\"", "--%"])
    };
    (!before.any(is_of_another)).then_some(operator)
}

/// Options of PowerShell before a script.
const OPTIONS: [&str; 12] = [
    "-executionpolicy", "-ep", "-ex", "-exec", "-file", "-command", "-noprofile", "-nologo",
    "-noninteractive", "-noexit", "-version", "-windowstyle",
];

/// Message about a string that the program gets as one argument, and that was meant for several.
fn joined_words(shell: &str, arguments: &[String]) -> Option<String> {
    if shell == "nginx" {
        let is_quoted = |word: &&String| word.len() > 1 && word.starts_with(['"', '\'']);
        let quoted = arguments.iter().find(is_quoted)?;
        return Some(format!(
            "no shell reads the exec form, and nginx gets the quotes of {quoted}: omit them"
        ));
    }
    if !matches!(shell, "powershell" | "pwsh") {
        return None;
    }
    let is_open = |word: &str| word.contains(['$', '%', '{', ';', '|', '&']);
    let is_script = |word: &str| {
        let lower = word.to_ascii_lowercase();
        matches!(lower.as_str(), "-command" | "-c" | "-file" | "-f")
    };
    let is_joined = |word: &&String| {
        let option = word.split_once(' ').map_or("", |(option, _)| option);
        OPTIONS.contains(&option.to_ascii_lowercase().as_str())
    };
    let mut options = arguments.iter().take_while(|word| !is_script(word));
    if let Some(word) = options.find(is_joined) {
        return Some(format!(
            "PowerShell gets \"{word}\" as one argument and fails: write each word as a string of its own"
        ));
    }
    let mut pairs = arguments.windows(2);
    if let Some([_, file]) = pairs.find(|pair| is_file_option(&pair[0])) {
        let has_arguments =
            file.trim_end().to_ascii_lowercase().contains(".ps1 ") && !is_open(file);
        return has_arguments.then(|| {
            format!(
                "\"{file}\" is one argument, and there is no file of that name: write each argument as \
                 a string of its own"
            )
        });
    }
    if let Some(operator) = chain_operator(arguments).filter(|_| shell == "powershell") {
        return Some(format!(
            "Windows PowerShell joins its arguments to a script, and has no {operator}: write ;"
        ));
    }
    // pwsh takes its first argument for a file.
    let script = arguments.iter().find(|word| !word.starts_with('-'))?;
    let is_cut = shell == "powershell" && !is_open(script) && is_spaced_path(script);
    is_cut.then(|| {
        format!(
            "PowerShell ends the name of the command at the space of \"{script}\": write \"-File\" before it"
        )
    })
}

/// Returns true for the path of a script with a space in a folder's name.
fn is_spaced_path(text: &str) -> bool {
    let (folder, rest) = text.split_once(' ').unwrap_or_default();
    let name = file_name(folder);
    let is_program = matches!(
        program_name(name).as_str(),
        "powershell" | "pwsh" | "python" | "node"
    );
    folder.get(1..2) == Some(":")
        && !name.contains('.')
        && !is_program
        && has_extension(rest, &["ps1"])
        && rest.contains(['\\', '/'])
        && !rest.contains([':', ' ', '"', '\''])
}

/// Returns true for a variable that the file or Windows sets.
fn is_set(it: &EvaluatedStep<'_>, name: &str) -> bool {
    it.state.declares(name) || super::variables::is_of_windows(&name.to_ascii_lowercase())
}
