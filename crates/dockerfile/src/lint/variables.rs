//! Variables in the syntax of another shell than the one that reads them.

use std::cell::LazyCell;
use std::collections::HashSet;

use super::environment::{cmd_variables, powershell_variables, shell_variables, split_name};
use super::prelude::*;
use super::shells::{check_cmdlets, is_behind_script, is_file, is_read_by_powershell, is_shell};
use super::words::file_of;
use crate::instruction::ParsedInstruction;
use crate::stages::StageState;

/// Variables that Windows sets.
const WINDOWS_VARIABLES: [&str; 16] = [
    "path", "temp", "tmp", "userprofile", "programfiles", "programdata", "systemroot", "windir",
    "appdata", "localappdata", "systemdrive", "username", "computername", "errorlevel", "cd",
    "programfiles(x86)",
];

/// Returns true for a variable that Windows or Docker sets; its name is in lower case.
pub(super) fn is_of_windows(name: &str) -> bool {
    WINDOWS_VARIABLES.contains(&name)
}

/// Variables that PowerShell sets.
const AUTOMATIC: [&str; 18] = [
    "home", "host", "pwd", "pid", "profile", "pshome", "args", "input", "error", "matches", "true",
    "false", "null", "lastexitcode", "shellid", "psversiontable", "_", "psitem",
];

/// Reports variables in the syntax of another shell.
pub(super) fn check(it: &EvaluatedStep<'_>) -> Option<Finding> {
    let step = it.step;
    if step.shell == BaseShell::Unknown {
        return None;
    }
    // Another rule knows what an invalid array was meant to be.
    if step.instruction.looks_like_json() && step.instruction.exec_form().is_none() {
        return None;
    }
    let found = literal_text(it)
        .or_else(|| file_argument(step))
        .or_else(|| step.find_map(|it| doubled_dollar(step, it)));
    if found.is_some() {
        return found;
    }
    let lower = step.lower_full_text();
    let reads_dollar = lower.contains("bash");
    let has_start = lower.contains("start-process");
    let expands_itself = lower.contains("expandenvironmentvariables");
    let mut commands = step.commands().iter().enumerate().filter(|(_, command)| {
        // Start-Process starts batch files too, which read their arguments.
        let is_open = matches!(command.program(), "start-process" | "start" | "choco")
            || expands_itself && command.grammar.is_powershell();
        !(is_open || reads_dollar || has_start && is_for_start(step, command))
    });
    // Where a cmdlet is for PowerShell, its variables are.
    let is_for_powershell = LazyCell::new(|| check_cmdlets(it.stage, step).is_some());
    commands.find_map(|(index, command)| {
        let is_of_cmd = command.grammar == Grammar::Cmd && step.shell == BaseShell::Cmd;
        if is_of_cmd && let Some(word) = substitution(command) {
            let message = "cmd does not run $(…), and the command gets it as it is written: use for /F, \
                or PowerShell";
            return Some(step.finding_at(word.start(), message));
        }
        let (word, written, right) = foreign_word(it, command)?;
        if is_of_cmd && written.starts_with("$env:") && *is_for_powershell {
            return None;
        }
        let message = if is_behind_script(step, index) {
            format!(
                "cmd ends the script of powershell at the |, and does not read {written} behind it: \
                 write {right}, or the script in double quotes"
            )
        } else if command.grammar == Grammar::Cmd {
            format!("cmd does not read {written} as a variable: write {right}")
        } else if written.starts_with('$') {
            format!(
                "{written} is a variable of PowerShell, which nothing sets: write {right} for the \
                 variable of the environment"
            )
        } else {
            format!("PowerShell does not read {written} as a variable: write {right}")
        };
        Some(step.finding_at(word.start(), message + &missing_env(it, &written)))
    })
}

/// What the command of a container requires besides, if its variable is a build argument.
fn missing_env(it: &EvaluatedStep<'_>, written: &str) -> String {
    let name = written.trim_matches(['$', '{', '}', '%']);
    let name = name.strip_prefix("env:").unwrap_or(name);
    let argument = it.state.argument_only(name).filter(|argument| {
        let is_known = it.stage.knows_environment && !it.step.is("RUN");
        is_known && !may_be_set(it, &argument.to_ascii_lowercase())
    });
    argument.map_or_else(String::new, |argument| {
        format!("; containers get no build arguments: add ENV {argument}=${{{argument}}}")
    })
}

/// The first word of a command with a variable that its shell does not read, the variable, and how to
/// write it.
fn foreign_word<'a>(
    it: &EvaluatedStep<'_>,
    command: &'a LintCommand,
) -> Option<(&'a Word, String, String)> {
    let step = it.step;
    let program = command.program();
    let is_own = match command.grammar {
        Grammar::Cmd => {
            step.shell == BaseShell::Cmd
                && (program != "echo" || shows_variable(step, command))
                && !step.is_in_powershell(command.start())
        }
        Grammar::PowerShell | Grammar::PowerShellCore => true,
        Grammar::Exec | Grammar::Unknown => false,
    };
    if !is_own {
        return None;
    }
    // The arguments of a shell are its script, and after --% PowerShell expands %NAME%, and nothing else.
    let count = if is_shell(program) { 1 } else { usize::MAX };
    let is_foreign = |word: &Word| match command.grammar {
        Grammar::Cmd => matches!(program_name(&word.value).as_str(), "powershell" | "pwsh"),
        _ => word.value == "--%",
    };
    let own = command.words.iter().take(count);
    let mut words = own.take_while(|word| !is_foreign(word));
    words.find_map(|word| {
        let (written, right) = match command.grammar {
            Grammar::Cmd => foreign_to_cmd(&word.value, program, it.state),
            // cmd replaces %NAME% before PowerShell gets the script.
            _ if step.shell == BaseShell::Cmd && word.value.contains('%') => None,
            _ => foreign_to_powershell(&word.value, command, it.state, step)
                .filter(|_| !(word.value.contains('%') && is_expanded_later(step, command, word))),
        }?;
        Some((word, written, right))
    })
}

/// Texts of a script that changes IIS or XML, whose reader expands `%NAME%` itself.
const IIS_WORDS: [&str; 7] = [
    "[xml]", "setattribute", "webadministration", "web.administration", "iis:\\", "appcmd",
    "applicationhost",
];

/// True for `%NAME%` in a setting of IIS, or in an argument of a method.
fn is_expanded_later(step: &LintStep<'_>, command: &LintCommand, word: &Word) -> bool {
    let noun = command.program().split_once('-').map(|(_, noun)| noun);
    let is_cmdlet =
        |noun: &str| noun.starts_with("web") && noun != "webrequest" || noun.starts_with("iis");
    let is_of_iis = noun.is_some_and(is_cmdlet) || command.program() == "appcmd";
    let first = &command.words[0];
    // In parentheses and tables an expression begins, and after & the name of a program.
    let before = &step.instruction.full_text()[..first.start()];
    let is_expression = first.is_quoted
        && !before
            .trim_end_matches(['\'', '"', '\\', ' '])
            .ends_with('&');
    let has_settings = || word.is_quoted && step.lower_full_text().contains_any(&IIS_WORDS);
    let is_argument = !std::ptr::eq(word, first);
    is_expression || is_argument && (is_of_iis || has_settings())
}

/// True for a part of a statement with `Start-Process`, of one that may prepare its arguments, and of
/// any other shell.
fn is_for_start(step: &LintStep<'_>, command: &LintCommand) -> bool {
    let at = command.start();
    let scripts = step
        .powershell_scripts()
        .filter(|script| script.range.contains(&at));
    let own = scripts.filter_map(|script| {
        let end = script.statements.partition_point(|it| it.at <= at);
        script.statements[..end].last()
    });
    let mut own = own.peekable();
    own.peek().is_none()
        || own.any(|it| {
            it.text.starts_with(['$', '@', '[']) || it.depth > 0 || it.contains("start-process")
        })
}

/// Returns true for an `echo` of `$env:NAME`, `$NAME` or `${NAME}` that writes no file.
fn shows_variable(step: &LintStep<'_>, command: &LintCommand) -> bool {
    let word = command.word(1);
    let start = word.get(..5);
    let is_of_powershell = start.is_some_and(|start| start.eq_ignore_ascii_case("$env:"));
    let name = dollar_names(word).next().unwrap_or_default();
    let is_whole = word.trim_matches(['$', '{', '}']) == name;
    (is_of_powershell || is_whole)
        && command.words.len() == 2
        && !step.instruction.text().contains(['>', '|'])
}

/// Reports a variable that stays as it is written.
fn literal_text(it: &EvaluatedStep<'_>) -> Option<Finding> {
    let step = it.step;
    let is_own = |it: &&LintCommand| {
        step.shell == BaseShell::Cmd && it.program() != "echo" && !is_shell(it.program())
    };
    let mut words = step.of_cmd().filter(is_own).flat_map(|it| &it.words);
    let folder = words.find(|word| word.value.to_ascii_lowercase().starts_with("%~dp0"));
    if let Some(word) = folder {
        let message =
            "%~dp0 is the folder of a batch file, and stays as it is written: write the folder";
        return Some(step.finding_at(word.start(), message));
    }
    if let Some(word) = delayed_variable(it) {
        let message = "cmd expands !NAME! only with /V:ON, and it stays as it is written: begin the line with \
            cmd /V:ON /C";
        return Some(step.finding_at(word.start(), message));
    }
    step.powershell_scripts().find_map(|script| {
        let mut statements = script.statements.iter();
        let found = statements.find(|it| reads_literal(it) && has_literal_variable(&it.lower))?;
        let at = found.at;
        let message = "PowerShell expands nothing in single quotes, and $env: stays as it is written: write \
            ($env:NAME + '…')";
        // A PowerShell around it expands its own string first.
        let is_own = !script.is_nested || step.shell != BaseShell::PowerShell;
        (is_own && is_read_by_powershell(step, at)).then(|| step.finding_at(at, message))
    })
}

/// A word of cmd with a variable in exclamation marks, where no option makes cmd expand it.
fn delayed_variable<'a>(it: &EvaluatedStep<'a>) -> Option<&'a Word> {
    let step = it.step;
    let lower = step.lower_full_text();
    // The line of a batch file.
    let is_written = lower.contains('>') && lower.contains_any(&[".cmd", ".bat"]);
    let is_open = is_written || lower.contains("/v") || step.file.mentions(&["delayedexpansion"]);
    if step.shell != BaseShell::Cmd || is_open || !lower.contains('!') {
        return None;
    }
    let mut shell = step.shell_words(it.state)?.into_iter();
    if shell.any(|word| word.starts_with("/v") || word.starts_with("/V")) {
        return None;
    }
    let is_set = |name: &str| {
        let own = name.to_ascii_lowercase();
        is_of_windows(&own) || lower.contains(&format!("{own}=")) || it.state.declares(name)
    };
    let commands = step.of_cmd().filter(|it| !is_shell(it.program()));
    let mut words = commands.flat_map(|command| &command.words);
    words.find(|word| {
        let parts: Vec<&str> = word.value.split('!').collect();
        let inner = parts.get(1..parts.len() - 1).unwrap_or_default();
        let is_name = |name: &str| !name.is_empty() && split_name(name).1.is_empty();
        inner.iter().any(|name| is_name(name) && is_set(name))
    })
}

/// Reports a variable among the arguments of `powershell -File` in cmd.
fn file_argument(step: &LintStep<'_>) -> Option<Finding> {
    let is_own = |it: &&LintCommand| {
        step.shell == BaseShell::Cmd && matches!(it.program(), "powershell" | "pwsh")
    };
    step.of_cmd().filter(is_own).find_map(|command| {
        let mut words = file_of(command)?.iter();
        let (word, name) =
            words.find_map(|word| Some((word, powershell_variables(&word.value).next()?)))?;
        let message = format!(
            "-File does not run its arguments as a script, and $env:{name} stays as it is written: write \
             %{name}%"
        );
        Some(step.finding_at(word.start(), message))
    })
}

/// Reports a word of a script of PowerShell with `$$` between letters or digits, outside of single
/// quotes.
fn doubled_dollar(step: &LintStep<'_>, command: &LintCommand) -> Option<Finding> {
    let is_inside = |word: &str| {
        word.match_indices("$$").any(|(at, _)| {
            let before = word[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '@');
            before && word[at + 2..].starts_with(|c: char| c.is_ascii_alphanumeric())
        })
    };
    let is_own = command.grammar.is_powershell();
    let words = command.words.iter().filter(|_| is_own);
    let mut words = words.take_while(|word| word.value != "--%" && !word.value.starts_with('#'));
    let word = words.find(|word| {
        let written = step.part(&word.range);
        let at = word.start();
        let scripts = step.powershell_scripts();
        let mut scripts = scripts.filter(|script| script.range.contains(&at));
        is_inside(&word.value)
            && !written.contains(['\'', '`'])
            && scripts.next().is_some_and(|outer| !is_file(step, outer))
            && !scripts.any(|inner| is_file(step, inner))
    })?;
    let instead = if word.value.contains("$$env:") {
        "write one $"
    } else {
        "put the text in single quotes"
    };
    let what = "PowerShell reads $$ as a variable of its own, which is empty here";
    Some(step.finding_at(word.start(), format!("{what}: {instead}")))
}

/// Commands that take paths and addresses, and write no text that another program reads.
const PATH_COMMANDS: [&str; 27] = [
    "setx", "mkdir", "md", "new-item", "ni", "copy-item", "copy", "cp", "move-item", "move", "mv",
    "remove-item", "rm", "del", "rd", "ri", "rename-item", "ren", "set-location", "cd",
    "push-location", "expand-archive", "invoke-webrequest", "iwr", "curl", "wget",
    "start-bitstransfer",
];

/// Returns true for a statement in which `$env:` between quotes is useless.
fn reads_literal(statement: &PowerShellStatement) -> bool {
    let sets_variable = statement.contains("setenvironmentvariable(");
    let is_text = [
        "-value", "-body", "-headers", "expandstring", "-replace", "|",
    ];
    let is_open = || statement.contains_any(&is_text);
    (sets_variable || PATH_COMMANDS.contains(&statement.command())) && !is_open()
}

/// Returns true for `'$env:NAME…'` or `'…${env:NAME}'`, in lower case.
fn has_literal_variable(text: &str) -> bool {
    let is_plain = !text.contains(['"', '`']);
    let mut inside = text.split('\'').skip(1).step_by(2);
    is_plain && inside.any(|it| it.contains("$env:") || it.contains("${env:"))
}

/// Commands of substitutions, unlike the properties of `MSBuild`.
const SUBSTITUTED: [&str; 9] = [
    "hostname", "whoami", "pwd", "date", "uname", "nproc", "cat", "git", "curl",
];

/// A word of a command with `$(COMMAND`, unless another shell reads it.
fn substitution(command: &LintCommand) -> Option<&Word> {
    let found = command.words.iter().find(|word| {
        word.value.split_once("$(").is_some_and(|(_, inside)| {
            let inside = inside.to_ascii_lowercase();
            let name = inside.split(')').next().unwrap_or_default();
            SUBSTITUTED.contains(&name) || name.starts_with("get-")
        })
    })?;
    let is_script = |file: &Word| has_extension(&file.value, &["ps1", "sh"]);
    let is_read = is_shell(command.program()) || command.files.iter().any(is_script);
    (!is_read).then_some(found)
}

/// Variables of Linux and of containers for it, and how cmd reads them.
const LINUX_VARIABLES: [(&str, &str); 8] = [
    ("PATH", "%PATH%"),
    ("HOME", "%USERPROFILE%"),
    ("PWD", "%CD%"),
    ("USER", "%USERNAME%"),
    ("HOSTNAME", "%COMPUTERNAME%"),
    ("TMPDIR", "%TEMP%"),
    ("JAVA_OPTS", "%JAVA_OPTS%"),
    ("PORT", "%PORT%"),
];

/// Programs that expand no variables in their arguments.
const WITHOUT_VARIABLES: [&str; 13] = [
    "cd", "copy", "del", "dir", "dotnet", "java", "md", "mkdir", "move", "rd", "robocopy", "type",
    "xcopy",
];

/// A variable of Linux that no program expands, in a word for cmd.
fn of_linux(word: &str, program: &str) -> Option<(String, String)> {
    let names = || dollar_names(word);
    let (name, right) = LINUX_VARIABLES
        .iter()
        .find(|(name, _)| names().any(|it| it == *name))?;
    // Something else may expand what another variable keeps.
    let is_kept = matches!(program, "set" | "setx") && *name == "PATH";
    let is_certain = is_kept || WITHOUT_VARIABLES.contains(&program);
    is_certain.then(|| (format!("${name}"), (*right).to_owned()))
}

fn foreign_to_cmd(word: &str, program: &str, state: &StageState) -> Option<(String, String)> {
    let lower = word.to_ascii_lowercase();
    if lower.contains("$env:") {
        let name = shell_variables(word).find(|name| !word.contains(&format!("%{name}%")))?;
        return Some((format!("$env:{name}"), format!("%{name}%")));
    }
    let Some(name) = dollar_names(word).find(|name| state.declares(name)) else {
        return of_linux(word, program);
    };
    let written = if is_braced(word, name) {
        format!("${{{name}}}")
    } else {
        format!("${name}")
    };
    Some((written, format!("%{name}%")))
}

/// Returns true for a word with `${NAME}`, which letters may follow.
fn is_braced(word: &str, name: &str) -> bool {
    word.contains(&format!("${{{name}}}"))
}

fn foreign_to_powershell(
    word: &str,
    command: &LintCommand,
    state: &StageState,
    step: &LintStep<'_>,
) -> Option<(String, String)> {
    let whole = step.instruction.full_text();
    let program = command.program();
    // Such data is expanded by its reader; the user's PATH adds to the machine's.
    let is_data = || {
        matches!(program, "reg" | "new-itemproperty" | "set-itemproperty")
            || program == "setx" && !command.has(&["/m"]) && whole.contains(&format!("'{word}'"))
    };
    let of_cmd = shell_variables(word).find(|name| {
        let is_known =
            state.declares(name) || WINDOWS_VARIABLES.contains(&name.to_ascii_lowercase().as_str());
        word.contains(&format!("%{name}%")) && is_known
    });
    if let Some(name) = of_cmd.filter(|_| !is_data()) {
        let quotes = if whole.contains(&format!("'{word}'")) {
            " in double quotes"
        } else {
            ""
        };
        return Some((format!("%{name}%"), format!("$env:{name}{quotes}")));
    }
    let lower = step.lower_full_text();
    let name = dollar_names(word).find(|name| {
        let own = name.to_ascii_lowercase();
        state.declares(name) && !AUTOMATIC.contains(&own.as_str()) && !is_assigned(lower, &own)
    })?;
    let pair = if is_braced(word, name) {
        (format!("${{{name}}}"), format!("${{env:{name}}}"))
    } else {
        (format!("${name}"), format!("$env:{name}"))
    };
    // PowerShell expands nothing in single quotes.
    (!whole.contains(&format!("'{word}'"))).then_some(pair)
}

/// Further variables that Windows sets, which a build argument may be named like.
const PROCESS_VARIABLES: [&str; 6] = [
    "date", "number_of_processors", "os", "public", "random", "time",
];

/// Parts of a line that may set variables of the machine.
const MACHINE_SETTERS: [&str; 8] = [
    "setx", "environment", "setup", "choco", ".msi", ".ps1", ".bat", ".cmd",
];

/// The variables of the containers of a stage that its lines set.
#[derive(Debug, Default)]
pub(super) struct SetVariables {
    /// Names in lower case.
    names: HashSet<String>,
    /// True if a line may set any other.
    is_open: bool,
}

impl SetVariables {
    pub(super) fn read(steps: &[LintStep<'_>]) -> Self {
        let mut found = Self::default();
        for step in steps {
            if step.is("RUN") {
                found.is_open |= step.lower_full_text().contains_any(&MACHINE_SETTERS);
            } else if step.is("ENV") {
                let parsed = ParsedInstruction::read(step.instruction, step.file.escape);
                match parsed.map(|parsed| parsed.kind) {
                    Ok(InstructionKind::Env(list)) => {
                        let names = list.iter().map(|(name, _)| name.to_ascii_lowercase());
                        found.names.extend(names);
                    }
                    _ => found.is_open = true,
                }
            }
        }
        found
    }
}

/// Reports build arguments that the container's command reads: the container does not get them.
pub(super) fn check_arguments(it: &EvaluatedStep<'_>) -> Vec<Finding> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for (at, name) in read_variables(it.step) {
        let Some(argument) = it.state.argument_only(name) else {
            continue;
        };
        if !seen.insert(argument) || may_be_set(it, &argument.to_ascii_lowercase()) {
            continue;
        }
        let message = format!(
            "{argument} is not set in the container, which gets no build arguments: add ENV \
             {argument}=${{{argument}}}"
        );
        found.push(it.step.finding_at(at, message).warning());
    }
    found
}

/// Variables of the environment that the shells of an instruction expand, and their positions.
fn read_variables<'a>(step: &'a LintStep<'_>) -> impl Iterator<Item = (usize, &'a str)> {
    let lower = step.lower_full_text();
    // A test or an assignment knows what to do without the variable.
    let is_tested = lower.contains_any(&["if ", "set "]);
    let commands = step.of_cmd().filter(move |_| !is_tested);
    let of_cmd = commands.flat_map(|it| &it.words).flat_map(|word| {
        let names = cmd_variables(&word.value);
        names.map(move |name| (word.start(), name))
    });
    // In single quotes PowerShell expands nothing.
    let statements = step.statements().filter(|it| !it.text.contains('\''));
    let of_powershell = statements.flat_map(|statement| {
        let names = powershell_variables(&statement.text);
        names.map(move |name| (statement.at, name))
    });
    let tested = tested_variables(lower);
    let is_only_read = move |name: &str| !tested.contains(name.to_ascii_lowercase().as_str());
    of_cmd.chain(of_powershell.filter(move |it| is_only_read(it.1)))
}

/// Variables of the environment that a script, in lower case, tests or sets.
fn tested_variables(script: &str) -> HashSet<&str> {
    let tests = [
        "=", "+=", "?", ")", "-eq", "-ne", "-is", "-like", "-match", "-or", "-and",
    ];
    let places = script.match_indices("env:");
    let tested = places.filter_map(|(at, drive)| {
        let before = script[..at].trim_end_matches(['$', '{']);
        let rest = &script[at + drive.len()..];
        let (name, after) = split_name(rest);
        let after = after.trim_start_matches('}').trim_start();
        let is_only_read = before.len() < at
            && !before.trim_end().ends_with(['!', '('])
            && !before.trim_end().ends_with("-not")
            && !tests.iter().any(|test| after.starts_with(test));
        (!is_only_read).then_some(name)
    });
    tested.collect()
}

/// True if something other than the build may set a variable of the container; its name is in lower
/// case.
fn may_be_set(it: &EvaluatedStep<'_>, lower: &str) -> bool {
    // Docker's client sets proxies.
    is_of_windows(lower)
        || PROCESS_VARIABLES.contains(&lower)
        || lower.ends_with("_proxy")
        || it.stage.is_base
        || it.stage.set_variables().names.contains(lower)
        || it
            .linted
            .chain(it.stage)
            .any(|stage| stage.set_variables().is_open)
}

/// Names after a `$`, with or without braces.
pub(super) fn dollar_names(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('$').filter_map(|(at, _)| {
        let rest = text[at + 1..].trim_start_matches('{');
        let (name, after) = split_name(rest);
        let is_scope = after.starts_with(':') && !after.starts_with(":\\");
        (!name.is_empty() && !is_scope).then_some(name)
    })
}

/// Returns true if a script sets a variable; both are in lower case.
pub(super) fn is_assigned(script: &str, name: &str) -> bool {
    let (plain, braced) = (format!("${name}"), format!("${{{name}}}"));
    let plain = script.match_indices(&plain);
    let mut places = plain.chain(script.match_indices(&braced));
    places.any(|(at, found)| {
        let after = script[at + found.len()..].trim_start();
        let before = script[..at].trim_end();
        let is_set = after.starts_with('=') && !after.starts_with("==")
            || ["+=", "-=", "["].iter().any(|it| after.starts_with(it))
            || is_member(after);
        is_set || after.starts_with("in ") || before.ends_with("param(") || before.ends_with(']')
    })
}

/// Returns true for a method, or a property that is set, and not for an extension.
fn is_member(after: &str) -> bool {
    let member = after.strip_prefix('.').unwrap_or_default();
    let rest = member.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    rest.len() < member.len() && rest.trim_start().starts_with(['=', '('])
}
