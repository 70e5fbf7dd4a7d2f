//! Text for another shell than the one that reads it.

use wincimg_scripts::script;

use super::args_escaped::is_command_line;
use super::builtins;
use super::prelude::*;
use super::variables::dollar_names;
use super::words::script_of;

/// Verbs of cmdlets that no program's name begins with.
const VERBS: [&str; 42] = [
    "add", "clear", "compress", "convertfrom", "convertto", "copy", "disable", "enable", "expand",
    "export", "foreach", "format", "get", "import", "install", "invoke", "join", "measure", "move",
    "new", "out", "read", "register", "remove", "rename", "resolve", "restart", "save", "select",
    "set", "sort", "split", "start", "stop", "test", "unblock", "uninstall", "unregister",
    "update", "wait", "where", "write",
];

/// Returns true for a name such as `Invoke-WebRequest`.
pub(super) fn is_known_cmdlet(name: &str) -> bool {
    let (verb, noun) = name.split_once('-').unwrap_or_default();
    let is_noun = noun.len() > 2 && noun.chars().all(|c| c.is_ascii_alphabetic());
    let is_written_as_one = noun.starts_with(|c: char| c.is_ascii_uppercase());
    script::is_cmdlet(name)
        && is_noun
        && (is_written_as_one || matches!(name, "invoke-webrequest" | "expand-archive"))
        && VERBS.contains(&verb.to_ascii_lowercase().as_str())
}

/// Programs that read scripts of their own.
const SHELLS: [&str; 10] = [
    "powershell", "pwsh", "cmd", "bash", "sh", "python", "python3", "node", "perl", "ruby",
];

pub(super) fn is_shell(program: &str) -> bool {
    SHELLS.contains(&program)
}

/// Reports cmdlets that cmd is to run.
pub(super) fn check_cmdlets(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    if step.shell != BaseShell::Cmd {
        return None;
    }
    let text = step.instruction.text();
    if step.is("RUN") && text.starts_with('&') && !text.starts_with("&&") {
        return Some(step.finding(call_message(stage, step.lower_text())));
    }
    let commands = step.commands().iter().enumerate();
    let mut commands = commands.filter(|(_, it)| it.grammar == Grammar::Cmd);
    commands.find_map(|(index, command)| {
        let message =
            cmdlet_message(stage, step, index).or_else(|| builtins::parameter_message(command))?;
        Some(step.finding_at(command.start(), message))
    })
}

/// What to do with a line for PowerShell where there is none.
const WITHOUT_POWERSHELL: &str = "which Nano Server does not have: run this in a Server Core stage";

/// Message about a line, in lower case, with `&` before a program.
fn call_message(stage: &Stage<'_>, text: &str) -> String {
    let what = "cmd reads this line, and & before a program is of PowerShell";
    let is_script = text.contains(".ps1");
    let program = text.trim_start_matches(['&', ' ']);
    let remove = if program.starts_with('\'') {
        "remove it, and write double quotes"
    } else {
        "remove it"
    };
    match stage.powershell() {
        Some(name) => {
            let instead = if is_script {
                format!("write {name} -File in its place")
            } else {
                remove.to_owned()
            };
            format!("{what}: {instead}, or set SHELL [\"{name}\", \"-Command\"]")
        }
        None if is_script => format!("{what}, {WITHOUT_POWERSHELL}"),
        None => format!("{what}: {remove}"),
    }
}

/// Message about a command that is of PowerShell.
fn cmdlet_message(stage: &Stage<'_>, step: &LintStep<'_>, index: usize) -> Option<String> {
    let command = &step.commands()[index];
    let word = &command.words[0];
    if is_cut_at_call(step, command) {
        return Some(
            "cmd ends the script of powershell at the & that it begins with, so that there is none: \
             write the script in double quotes"
                .to_owned(),
        );
    }
    let is_behind = is_behind_script(step, index);
    let is_assignment = word.value.starts_with('$')
        && word.value.len() > 1
        && !step.is_in_powershell(word.start())
        && !reads_variable(stage, step, command);
    // `[Environment]::Exit(1)`
    let written = step.part(&word.range);
    let is_call = written.starts_with('[') && written.contains("]::");
    let is_cmdlet = is_known_cmdlet(&word.value)
        || is_behind && is_alias(command)
        || begins_with_alias(step, command);
    let is_dotted = word.value == "." && has_extension(command.word(1), &["ps1"]);
    let is_script = has_extension(&word.value, &["ps1"]);
    let block = powershell_block(step, command);
    if !(is_assignment || is_call || is_cmdlet || is_dotted || is_script || block.is_some()) {
        return None;
    }
    let name = word.value.split('(').next().unwrap_or_default();
    let name = block.unwrap_or(name);
    if let Some(operator) = ampersand_behind_script(step, index) {
        return Some(format!(
            "cmd ends the command of powershell at the {operator}, and \"{name}\" behind it is of \
             PowerShell: write ; in its place, within the double quotes of one script"
        ));
    }
    Some(if is_behind {
        format!(
            "cmd ends the script of powershell at the |, and \"{name}\" behind it is of PowerShell: \
             write the script in double quotes"
        )
    } else if is_script {
        let script = &word.value;
        match stage.powershell() {
            Some(shell) => format!("cmd does not run {script}: write {shell} -File {script}"),
            None => format!("cmd does not run {script}, but PowerShell, {WITHOUT_POWERSHELL}"),
        }
    } else {
        let what = format!("cmd reads this line, and \"{name}\" is of PowerShell");
        match stage.powershell() {
            Some(shell) if command.next == NextOperator::Pipe => format!(
                "{what}: write {shell} -Command \"…\" with the pipe in the quotes, or set SHELL \
                 [\"{shell}\", \"-Command\"]"
            ),
            Some(shell) => format!(
                "{what}: begin it with {shell} -Command, or set SHELL [\"{shell}\", \"-Command\"]"
            ),
            None => format!("{what}, {WITHOUT_POWERSHELL}"),
        }
    })
}

/// True for a PowerShell whose script begins with an `&` that cmd reads.
pub(super) fn is_cut_at_call(step: &LintStep<'_>, command: &LintCommand) -> bool {
    let Some(last) = command.words.last() else {
        return false;
    };
    let after = step.instruction.full_text()[last.range.end..].trim_start();
    matches!(command.program(), "powershell" | "pwsh")
        && script_of(command).is_none()
        && command.next == NextOperator::Other
        && after.strip_prefix('&').is_some_and(|rest| {
            script::is_command_option(&last.value) || rest.trim_start().starts_with('{')
        })
}

/// Returns true for a program whose name is in a variable of the file, which another rule reports.
fn reads_variable(stage: &Stage<'_>, step: &LintStep<'_>, command: &LintCommand) -> bool {
    let word = command.word(0);
    let sets = word.contains('=') || command.word(1).starts_with(['=', '+']);
    let above = stage.before(step);
    !sets && dollar_names(word).any(|name| above.iter().any(|it| it.declares(name)))
}

/// Maximum length of what precedes a block: text in which no parenthesis closes is not read again for
/// each command.
const LONGEST_HEAD: usize = 1000;

/// The beginning of a statement of PowerShell with a block: `if (…) {` or `try {`.
fn powershell_block<'a>(step: &'a LintStep<'_>, command: &LintCommand) -> Option<&'a str> {
    let text = &step.instruction.full_text()[command.start()..];
    let text = &text[..text.floor_char_boundary(LONGEST_HEAD)];
    let end = text.find(|c: char| !c.is_ascii_alphabetic())?;
    let (keyword, rest) = text.split_at(end);
    let rest = rest.trim_start();
    let block = match keyword.to_ascii_lowercase().as_str() {
        "try" => rest,
        "if" | "for" | "foreach" | "while" | "switch" => behind_parentheses(rest)?,
        _ => return None,
    };
    let is_own = !step.is_in_powershell(command.start());
    let is_block = is_own && block.trim_start().starts_with('{');
    is_block.then(|| &text[..=text.len() - rest.len()])
}

/// What follows the parentheses that a text begins with.
pub(super) fn behind_parentheses(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    let (at, _) = outside_quotes(text).find(|(_, c)| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    })?;
    text.starts_with('(').then(|| &text[at + 1..])
}

/// Aliases of cmdlets for pipelines that cmd does not have.
const PIPELINE_ALIASES: [&str; 11] = [
    "iex", "%", "?", "foreach", "select", "measure", "tee", "ft", "fl", "group", "sls",
];

/// True for an alias of a cmdlet; `where` is a program of Windows, but not with a script block.
fn is_alias(command: &LintCommand) -> bool {
    let name = command.program();
    PIPELINE_ALIASES.contains(&name) || name == "where" && command.word(1).starts_with('{')
}

/// True for a command that begins with an alias of a cmdlet, unless the file names a program like it.
fn begins_with_alias(step: &LintStep<'_>, command: &LintCommand) -> bool {
    let name = command.word(0).to_ascii_lowercase();
    let is_alias = match name.as_str() {
        "iwr" | "irm" | "gci" => true,
        // Elixir has a program of this name.
        "iex" => command.word(1).starts_with('(') || has_extension(command.word(1), &["ps1"]),
        _ => false,
    };
    is_alias && !step.file.lower_text().contains(&format!("{name}."))
}

/// True if cmd pipes the output of a PowerShell script without quotes into a command: the script
/// was likely meant to go on.
pub(super) fn is_behind_script(step: &LintStep<'_>, index: usize) -> bool {
    let commands = step.commands();
    let before = index.checked_sub(1).and_then(|index| commands.get(index));
    let script = before.and_then(|it| Some((it, script_of(it)?.1)));
    script.is_some_and(|(before, words)| {
        before.grammar == Grammar::Cmd
            && before.next == NextOperator::Pipe
            && before.program() != "cmd"
            && !step.part(&words[0].range).starts_with('"')
    })
}

/// The operator at which cmd ends a PowerShell just before a command, if it is `&` or `&&`.
fn ampersand_behind_script(step: &LintStep<'_>, index: usize) -> Option<&'static str> {
    let commands = step.commands();
    let before = commands.get(index.checked_sub(1)?)?;
    let is_script =
        before.grammar == Grammar::Cmd && before.program() != "cmd" && script_of(before).is_some();
    let end = before.words.last()?.range.end;
    let text = step.instruction.full_text();
    let between = text.get(end..commands[index].start())?.trim_end();
    let mut operators = ["&&", "&"].into_iter().filter(|_| is_script);
    operators.find(|operator| between.ends_with(operator))
}

/// Reports `&&` and `||` in Windows PowerShell, which has neither.
pub(super) fn check_operators(_: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let scripts = step.windows_powershell_scripts();
    let mut scripts = scripts.filter(|it| !is_reread(step, it));
    scripts.find_map(|script| {
        let text = step.part(&script.range);
        let found = |it: &PowerShellStatement| Some((lone_ampersand(it)?, it.text.ends_with('&')));
        if let Some((at, is_last)) = script.statements.iter().find_map(found) {
            let cure = if is_last { "omit it" } else { "write ;" };
            let message = format!(
                "Windows PowerShell has no & between commands, and the script fails: {cure}"
            );
            return Some(step.finding_at(at, message));
        }
        let (at, operator) = chain_operator(text)?;
        let cure = match operator {
            _ if text[at + operator.len()..].trim().is_empty() => "omit it",
            "&&" if is_in_condition(&text[..at]) => "write -and",
            _ if is_in_condition(&text[..at]) => "write -or",
            "&&" => "write ; if ($?) { … }",
            _ => "write ; if (-not $?) { … }",
        };
        let message = format!("Windows PowerShell has no {operator}, and the script fails: {cure}");
        Some(step.finding_at(script.range.start + at, message))
    })
}

/// True if an outer shell reads the text first, so that it is not as the inner one gets it.
pub(super) fn is_reread(step: &LintStep<'_>, script: &LintScript) -> bool {
    let is_quoted = script.range.start > 0
        && step.instruction.full_text()[..script.range.start].ends_with(['"', '\'']);
    script.is_nested && !is_quoted
}

/// True for what PowerShell takes for a file and its arguments.
pub(super) fn is_file(step: &LintStep<'_>, script: &LintScript) -> bool {
    let before = &step.lower_full_text()[..script.range.start];
    let before = before.trim_end_matches(['"', '\'', ',', ' ']);
    let option = before.rsplit([' ', ',', '"', '\'']).next();
    let option = option.unwrap_or_default();
    let is_option = match script.grammar {
        // Without an option, its first argument is a file.
        Grammar::PowerShellCore => !option.starts_with("-c"),
        Grammar::PowerShell => script::is_file_option(option),
        _ => false,
    };
    script.is_nested && is_option
}

/// True for a position that PowerShell reads itself, and no shell around it.
pub(super) fn is_read_by_powershell(step: &LintStep<'_>, at: usize) -> bool {
    let mut scripts = step.powershell_scripts();
    scripts.any(|script| script.range.contains(&at) && !is_reread(step, script))
}

/// Words of PowerShell after which a program may be called.
const KEYWORDS: [&str; 15] = [
    "return", "throw", "exit", "if", "else", "elseif", "foreach", "for", "while", "do", "switch",
    "function", "param", "in", "trap",
];

/// Start of a statement that is a command and an `&`, with or without another one.
fn lone_ampersand(statement: &PowerShellStatement) -> Option<usize> {
    let text = statement.text.as_str();
    let pair = text.split_once(" & ");
    let (first, second) = pair.or_else(|| Some((text.strip_suffix(" &")?, "")))?;
    let is_name = |word: &str| word.is_name("-_.") && !word.is_any_of(&KEYWORDS);
    let is_path =
        |word: &str| word.starts_with(['.', '\\']) || matches!(word.get(1..3), Some(":\\" | ":/"));
    let name = |text: &str| {
        let word = text.split(' ').next();
        word.is_some_and(|word| is_name(word) || is_path(word))
    };
    // Anything that quotes, escapes or continues is for the reader of PowerShell.
    let is_plain = !first.contains(['"', '\'', '`', '#', '$', '=', '(', '|', '{', ','])
        && !first.contains("--%")
        && first.split(' ').all(|word| !KEYWORDS.contains(&word));
    let second = second.trim();
    let code = second.strip_prefix("exit").map(str::trim_start);
    let is_exit = code.is_some_and(|code| code.bytes().all(|byte| byte.is_ascii_digit()));
    let is_command = second.is_empty() || name(second) || is_exit;
    (is_plain && name(first) && is_command).then_some(statement.at)
}

/// True if the innermost parenthesis that a text leaves open is of a condition.
fn is_in_condition(text: &str) -> bool {
    let mut open = Vec::new();
    for (at, c) in outside_quotes(text) {
        match c {
            '(' => open.push(at),
            ')' => {
                open.pop();
            }
            _ => {}
        }
    }
    open.last().is_some_and(|at| {
        let before = text[..*at].trim_end().to_ascii_lowercase();
        let keywords = ["if", "while", "until"];
        keywords.iter().any(|it| before.ends_with(it))
    })
}

/// First `&&` or `||` outside of quotes, and its position.
fn chain_operator(text: &str) -> Option<(usize, &'static str)> {
    for (at, c) in outside_quotes(text) {
        let before = text[..at].chars().next_back();
        match c {
            '#' if before.is_none_or(char::is_whitespace) => return None,
            '&' if text[at..].starts_with("&&") => return Some((at, "&&")),
            '|' if text[at..].starts_with("||") => return Some((at, "||")),
            _ => {}
        }
    }
    None
}

/// Reports shells without the option for a command.
pub(super) fn check_shell(it: &EvaluatedStep<'_>) -> Option<Finding> {
    if let Some((at, message)) = lost_command(it) {
        return Some(it.step.finding_at(at, message));
    }
    let InstructionKind::Shell(words) = it.kind else {
        return None;
    };
    let program = program_name(&words[0]);
    let has = |names: &[&str]| {
        let mut options = words[1..].iter();
        options.any(|word| names.contains(&word.to_ascii_lowercase().as_str()))
    };
    let last = words.last().map_or("", |word| word.trim_end());
    let is_open = words.len() > 2 && last.contains('=') && !last.ends_with([';', '{', '|', '&']);
    let message = match program.as_str() {
        "powershell" | "pwsh" if script::is_file_option(last) => {
            "PowerShell takes the command of RUN, which follows -File, for the name of a script: write \
             \"-Command\""
        }
        "powershell" | "pwsh" if is_open && has(&["-command", "-c"]) => {
            "the command of RUN follows this text without a separator, which is a syntax error: end \
             it with ;"
        }
        "cmd" if !has(&["/c", "/k"]) => {
            "cmd without /C runs no command, and RUN does nothing: add \"/C\""
        }
        "pwsh"
            if !has(&[
                "-command", "-c", "-file", "-f", "-encodedcommand", "-commandwithargs",
            ]) =>
        {
            "pwsh without -Command takes its argument for a script file: add \"-Command\""
        }
        _ => return check_shell_path(it, &words[0]),
    };
    is_used(it).then(|| it.step.finding(message))
}

/// Reports a shell with a space in its path: `BuildKit` quotes it, and Docker's own builder does not.
fn check_shell_path(it: &EvaluatedStep<'_>, path: &str) -> Option<Finding> {
    let is_path = path.contains(' ') && !path.starts_with('"') && !is_command_line(path);
    let message = "Docker's own builder does not quote the path of SHELL, and the shell takes what follows \
        its space for arguments: write only the program's name";
    (is_path && is_used(it)).then(|| it.step.finding(message).warning())
}

/// Position of a command that its shell does not run, and the reason.
fn lost_command(it: &EvaluatedStep<'_>) -> Option<(usize, &'static str)> {
    let step = it.step;
    if step.is_argument {
        return None;
    }
    if let Some(command) = step.find(is_interactive_cmd) {
        let message = "cmd without /C runs no command, and ends at the end of its input: add /C";
        return Some((command.start(), message));
    }
    let is_printed = |it: &&PowerShellStatement| {
        it.depth == 0
            && super::usage::program_in_quotes(it).is_some_and(|(_, rest)| rest.is_empty())
    };
    let mut statements = step.statements().filter(|_| step.is("RUN"));
    if let Some(statement) = statements.find(is_printed) {
        let message = "PowerShell prints a path in quotes and does not run it: write & before it";
        return Some((statement.at, message));
    }
    let script = step.powershell_scripts().next()?;
    // Within PowerShell a block without quotes is a script.
    let is_text = step.shell == BaseShell::Cmd || step.instruction.exec_form().is_some();
    let is_block = script.is_nested && is_text && !step.is("HEALTHCHECK");
    let text = step.part(&script.range).trim();
    let message = "powershell prints a script block and does not run it: omit the braces";
    (is_block && is_one_block(text)).then_some((script.range.start, message))
}

/// Returns true for `cmd` with a command and without the option for one.
fn is_interactive_cmd(command: &LintCommand) -> bool {
    let program = &command.words[0];
    let is_cmd = program.eq_ignore_case("cmd") || program.eq_ignore_case("cmd.exe");
    let opens = |it: &str| it.starts_with(['/', '-', '%', '$', '!', '@', '(', '{']);
    is_cmd
        && !command.has_input
        && command.words.len() > 1
        && !opens(command.word(1))
        && !command.any(|it| it.contains_any(&["/c", "/k", "/r"]))
}

/// Returns true for a text whose first brace is closed by its last character.
fn is_one_block(text: &str) -> bool {
    let mut depth = 0_i32;
    let closed = text.char_indices().find(|(_, c)| {
        depth += match c {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        depth == 0
    });
    let is_last = closed.is_some_and(|(at, _)| at + 1 == text.len());
    text.starts_with('{') && !text.starts_with("{{") && is_last
}

/// Returns true if an instruction of the stage, or a stage on it, runs in the shell that a step sets.
fn is_used(it: &EvaluatedStep<'_>) -> bool {
    it.stage.is_base
        || it.stage.after(it.step).iter().any(|step| {
            let keyword = step.instruction.keyword.as_str();
            matches!(
                keyword,
                "RUN" | "CMD" | "ENTRYPOINT" | "HEALTHCHECK" | "ONBUILD"
            ) && step.instruction.exec_form().is_none()
        })
}

/// Reports `;` between commands of cmd.
pub(super) fn check_semicolons(_: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    if step.shell != BaseShell::Cmd {
        return None;
    }
    let mut commands = step.of_cmd().filter(|it| !is_shell(it.program()));
    commands.find_map(|command| {
        // `a; b` and `a ; b`, where b could be a command.
        let mut pairs = command.words.windows(2).enumerate();
        let separator = pairs.find(|(index, pair)| {
            let text = step.part(&pair[0].range);
            let ends = text.ends_with(';') && !text.contains('"') && !text.contains('=');
            // A list of folders does not repeat the command.
            let is_same = pair[1].eq_ignore_case(command.word(0));
            let is_program = *index == 0 && is_program_file(text.trim_end_matches(';'));
            text == ";" || ends && (is_same || is_program || !text.contains(['%', '\\']))
        });
        let (index, [word, next]) = separator? else {
            return None;
        };
        let is_command = next.eq_ignore_case(command.word(0))
            || is_command_word(&next.value)
            || index == 0 && is_program_file(&next.value);
        let separates = command.next != NextOperator::Pipe && is_command;
        let message = "in cmd a semicolon does not separate commands: write && or &";
        separates.then(|| step.finding_at(word.start(), message))
    })
}

pub(super) fn is_program_file(word: &str) -> bool {
    has_extension(word, &["exe", "cmd", "bat"])
}

/// Programs that often begin a command.
const PROGRAMS: [&str; 24] = [
    "choco", "npm", "npx", "yarn", "node", "git", "dotnet", "nuget", "msbuild", "msiexec",
    "powershell", "curl", "tar", "pip", "python", "cmake", "reg", "setx", "xcopy", "robocopy",
    "icacls", "net", "hostname", "tzutil",
];

/// True for a word that is a command of cmd, a cmdlet or a program.
fn is_command_word(word: &str) -> bool {
    wincimg_windows::quoting::cmd::is_built_in(word)
        || is_known_cmdlet(word)
        || has_extension(word, &["exe"])
        || PROGRAMS.contains(&word)
}
