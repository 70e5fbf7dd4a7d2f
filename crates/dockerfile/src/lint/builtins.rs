//! Commands of cmd under PowerShell: aliases of cmdlets with other parameters, and missing ones.

use super::prelude::*;
use super::shells::is_read_by_powershell;

/// Commands of cmd that are aliases in PowerShell, their cmdlets, and switches of cmd.
const SWITCHES: [(&[&str], &str, &[&str]); 6] = [
    (&["copy"], "Copy-Item", &["y", "-y", "a", "b", "v", "z"]),
    (&["move"], "Move-Item", &["y", "-y"]),
    (
        &["del", "erase", "rd", "rmdir"],
        "Remove-Item",
        &["q", "s", "f", "p", "a", "s/q", "q/s", "f/q", "q/f"],
    ),
    (
        &["dir"],
        "Get-ChildItem",
        &["s", "b", "q", "w", "ad", "a-d", "s/b", "b/s"],
    ),
    (&["cd", "chdir"], "Set-Location", &["d"]),
    (
        &["start"],
        "Start-Process",
        &["wait", "w", "b", "min", "max"],
    ),
];

/// Subcommands of `sc.exe`.
const SC_COMMANDS: [&str; 14] = [
    "create", "config", "delete", "start", "stop", "query", "queryex", "qc", "failure",
    "failureflag", "description", "sdset", "sidtype", "privs",
];

/// Commands of cmd that PowerShell lacks.
const ONLY_CMD: [&str; 14] = [
    "mklink", "call", "ver", "vol", "assoc", "ftype", "title", "rem", "goto", "setlocal",
    "endlocal", "echo.", "doskey", "verify",
];

/// Commands of cmd that take a parameter of PowerShell for a name.
const COMMANDS_WITH_NAMES: [&str; 11] = [
    "copy", "del", "dir", "erase", "md", "mkdir", "move", "rd", "ren", "rename", "rmdir",
];

/// Parameters of the cmdlets and functions that PowerShell has in their place.
const PARAMETERS: [&str; 11] = [
    "-confirm", "-destination", "-exclude", "-filter", "-force", "-include", "-itemtype",
    "-literalpath", "-newname", "-path", "-recurse",
];

/// Message about a command of cmd with a parameter of PowerShell.
pub(super) fn parameter_message(command: &LintCommand) -> Option<String> {
    let name = command.word(0).to_ascii_lowercase();
    let is_parameter = |word: &&Word| {
        let option = word.value.split(':').next().unwrap_or_default();
        !word.is_quoted && PARAMETERS.iter().any(|it| option.eq_ignore_ascii_case(it))
    };
    let mut words = command.arguments().iter();
    let parameter = words.find(is_parameter)?;
    COMMANDS_WITH_NAMES.contains(&name.as_str()).then(|| {
        format!(
            "{name} of cmd takes {} for a name: it is a parameter of PowerShell's {name}, and the \
             options of cmd begin with /",
            parameter.value
        )
    })
}

/// Reports commands of cmd in a script of PowerShell.
pub(super) fn check(_: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    step.of_powershell().find_map(|command| {
        let is_nul = |file: &&Word| {
            let is_plain = !file.is_quoted && file.eq_ignore_case("nul");
            is_plain && is_read_by_powershell(step, file.range.start)
        };
        let device = command.files.iter().find(is_nul);
        if let Some(device) = device.filter(|_| command.grammar == Grammar::PowerShell) {
            let message = "Windows PowerShell does not write to the device NUL, and does not run the \
                command: write $null";
            return Some(step.finding_at(device.range.start, message));
        }
        if let Some(message) = alias_message(command) {
            let is_program = matches!(command.program(), "sc" | "where");
            return Some(alias_finding(step, command, message, is_program));
        }
        let message = missing_message(step, command)?;
        Some(step.finding_at(command.start(), message))
    })
}

/// A finding about arguments of another command than an alias means; if that is a program, it is found
/// with its extension.
pub(super) fn alias_finding(
    step: &LintStep<'_>,
    command: &LintCommand,
    message: String,
    is_program: bool,
) -> Finding {
    let found = if is_program {
        let edit = Edit::after(command.words[0].range.end, ".exe");
        step.edited(message, &[edit])
    } else {
        step.finding_at(command.start(), message)
    };
    found.of("alias-parameter")
}

/// Message about an alias of a cmdlet that gets arguments of cmd's command.
fn alias_message(command: &LintCommand) -> Option<String> {
    let (word, arguments) = command.words.split_first()?;
    let name = word.value.to_ascii_lowercase();
    let first = arguments.first()?.value.to_ascii_lowercase();
    // PowerShell 6 and later have no alias for it.
    if name == "sc"
        && command.grammar == Grammar::PowerShell
        && SC_COMMANDS.contains(&first.as_str())
    {
        return Some(format!(
            "sc is Set-Content in Windows PowerShell, and writes a file \"{first}\": write sc.exe"
        ));
    }
    if name == "where" && !command.has_input && !first.starts_with(['{', '$', '-', '(']) {
        return Some(
            "where is Where-Object in PowerShell, which finds nothing here and does not fail: write \
             where.exe"
                .to_owned(),
        );
    }
    if name == "set" && first.contains('=') && !first.starts_with(['-', '$', '=']) {
        let (variable, _) = arguments[0].value.split_once('=')?;
        return Some(format!(
            "set is Set-Variable in PowerShell, and sets no variable of the environment: write \
             $env:{variable} = '…'"
        ));
    }
    let (_, cmdlet, switches) = SWITCHES
        .iter()
        .find(|(names, ..)| names.contains(&name.as_str()))?;
    let is_switch = |word: &&Word| {
        let switch = word.value.strip_prefix('/');
        switch.is_some_and(|it| switches.contains(&it.to_ascii_lowercase().as_str()))
    };
    let switch = arguments.iter().find(is_switch)?;
    Some(format!(
        "{name} is {cmdlet} in PowerShell, which takes {} for a path",
        switch.value
    ))
}

/// Message about a command that PowerShell does not have.
fn missing_message(step: &LintStep<'_>, command: &LintCommand) -> Option<String> {
    let (word, arguments) = command.words.split_first()?;
    let name = word.value.to_ascii_lowercase();
    let first = arguments.first().map_or("", |word| word.value.as_str());
    if name.starts_with('@') && matches!(command.program(), "powershell" | "pwsh" | "cmd" | "echo")
    {
        let message = "PowerShell reads this line, and @ before a command is of cmd and a syntax error \
            here: remove it";
        return Some(message.to_owned());
    }
    let is_block = match name.as_str() {
        "if" => first.is_any_of(&["exist", "not", "errorlevel", "defined", "/i"]),
        "for" => first.starts_with('%') || first.starts_with('/'),
        "exit" => first.eq_ignore_ascii_case("/b"),
        _ => false,
    };
    if is_block {
        return Some(format!(
            "PowerShell reads this line, and {name} {first} is of cmd: begin it with cmd /C, or \
             write it for PowerShell"
        ));
    }
    // In quotes it is a string, and it may be a function or an alias of the script.
    let is_plain = || {
        let written = step.part(&word.range);
        written.eq_ignore_ascii_case(&name)
    };
    let is_own = || {
        let text = step.lower_text();
        text.contains("function") || text.contains("alias")
    };
    let is_of_cmd = ONLY_CMD.contains(&name.as_str()) && !command.has_input;
    (is_of_cmd && is_plain() && !is_own()).then(|| {
        format!("PowerShell has no {name}, which is a command of cmd: write cmd /C {name}")
    })
}
