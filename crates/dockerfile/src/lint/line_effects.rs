//! Effects that end with their `RUN`: the next one is a process of its own.

use super::effects::is_shell;
use super::environment::split_name;
use super::powershell_output::unused_answer;
use super::prelude::*;
use super::stage::assigned_variable;
use super::variables::is_assigned;

/// Batch files and scripts that only set variables.
const ENVIRONMENTS: [&str; 9] = [
    "vcvarsall.bat", "vcvars64.bat", "vcvars32.bat", "vcvarsx86_amd64.bat", "vsdevcmd.bat",
    "vsvars32.bat", "activate", "activate.bat", "activate.ps1",
];

/// Returns true for a change to the root, with which an author leaves a folder, and for one that
/// changes nothing.
fn is_without_effect(command: &LintCommand) -> bool {
    let mut folders = command.arguments().iter().map(|word| {
        let folder = word.value.to_ascii_lowercase();
        folder.replace('/', "\\")
    });
    folders
        .rfind(|it| !matches!(it.as_str(), "\\d" | "-path" | "-literalpath"))
        .is_none_or(|folder| {
            matches!(folder.as_str(), "\\" | "c:\\" | "." | "%cd%" | "$pwd")
                || folder.len() == 2 && folder.ends_with(':')
        })
}

/// A setting that a command makes for its own line only, and what keeps it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEffect {
    Folder,
    Variable,
    /// Of PowerShell.
    Preference,
    Module,
    /// The variables of a compiler or an interpreter.
    Environment,
    /// A letter for a share or a folder.
    Drive,
}

impl LineEffect {
    fn of(command: &LintCommand) -> Option<Self> {
        let first = command.word(0).to_ascii_lowercase();
        let second = command.word(1);
        // In PowerShell, `set` and `path` set no variable of a later RUN either.
        let is_cmd = command.grammar.may_be_cmd();
        match command.program() {
            "set"
                if is_cmd
                    && !second.starts_with('/')
                    && (second.contains('=') || command.word(2).starts_with('=')) =>
            {
                Some(Self::Variable)
            }
            "cd" | "chdir" | "set-location" | "sl" if is_without_effect(command) => None,
            "pushd" if second.is_empty() => None,
            "cd" | "chdir" | "set-location" | "sl" | "pushd" | "push-location" => {
                Some(Self::Folder)
            }
            "net" if maps_drive(command) => Some(Self::Drive),
            "subst" if command.words.len() > 2 && !command.has(&["/d"]) => Some(Self::Drive),
            "new-psdrive" => Some(Self::Drive),
            "set-item" | "si" | "set-content" | "new-item" | "ni" if names_variable(command) => {
                Some(Self::Variable)
            }
            "import-module" => Some(Self::Module),
            "conda" if second == "activate" => Some(Self::Environment),
            "call" if ENVIRONMENTS.contains(&program_name(second).as_str()) => {
                Some(Self::Environment)
            }
            name if ENVIRONMENTS.contains(&name) => Some(Self::Environment),
            _ if is_cmd
                && (first.starts_with("path=") || first == "path" && !second.is_empty()) =>
            {
                Some(Self::Variable)
            }
            _ if first.starts_with("$env:")
                && (first.contains('=') || second.starts_with('=') || second == "+=") =>
            {
                Some(Self::Variable)
            }
            _ if command.grammar.is_powershell() && is_preference(&first, second) => {
                Some(Self::Preference)
            }
            _ => None,
        }
    }

    /// Name, and what to use instead.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Folder => ("folder", "WORKDIR"),
            Self::Variable => ("variable", "ENV"),
            Self::Preference => ("setting", "SHELL, or the RUN that requires it"),
            Self::Module => ("module", "the RUN that requires it"),
            Self::Environment => ("environment", "the RUN that requires it"),
            Self::Drive => ("drive", "the RUN that requires it"),
        }
    }
}

/// Returns true for `$ErrorActionPreference = …`.
fn is_preference(first: &str, second: &str) -> bool {
    let (name, has_value) = match first.split_once('=') {
        Some((name, _)) => (name, true),
        None => (first, second.starts_with('=')),
    };
    has_value && name.starts_with('$') && name.trim_end().ends_with("preference")
}

/// Returns true for a cmdlet whose item is a variable, as in `Set-Item env:NAME`.
fn names_variable(command: &LintCommand) -> bool {
    let first = command.word(1);
    let is_option = first.is_any_of(&["-path", "-literalpath"]);
    let item = if is_option { command.word(2) } else { first };
    let drive = item.get(..4);
    command.grammar.is_powershell() && drive.is_some_and(|it| it.eq_ignore_ascii_case("env:"))
}

/// Returns true for a `net use` that connects a share.
fn maps_drive(command: &LintCommand) -> bool {
    let mut words = command.arguments().iter();
    let is_use = words.next().is_some_and(|word| word.eq_ignore_case("use"));
    let mut words = words.map(|word| word.value.to_ascii_lowercase());
    let is_option = |word: String| word.starts_with('/') && !word.starts_with("//");
    is_use
        && words.clone().next().is_some_and(|first| !is_option(first))
        && !words.any(|word| word.starts_with("/d"))
}

/// `refreshenv` of Chocolatey before another command of PowerShell.
fn lost_refresh<'a>(step: &LintStep<'_>, commands: &[&'a LintCommand]) -> Option<&'a LintCommand> {
    let text = step.lower_text();
    let is_imported = text.contains_any(&[
        "import-module", "$profile", "chocolateyprofile", "update-sessionenv",
    ]);
    let (_, before) = commands.split_last()?;
    let refreshes = |it: &LintCommand| it.grammar.is_powershell() && it.program() == "refreshenv";
    let at = before.iter().position(|it| refreshes(it))?;
    // A RUN begins with what the ones before it installed.
    let installers = [
        "choco", "cinst", "msiexec", "start-process", "winget", "scoop",
    ];
    let installs = before[..at]
        .iter()
        .any(|it| installers.contains(&it.program()) || has_extension(it.word(0), &["exe"]));
    (installs && !is_imported).then(|| before[at])
}

/// A batch file for variables before another command of PowerShell.
fn lost_environment<'a>(commands: &[&'a LintCommand]) -> Option<&'a LintCommand> {
    let is_lost = |it: &&&LintCommand| {
        let is_batch = |name: &str| has_extension(name, &["bat"]) && ENVIRONMENTS.contains(&name);
        it.grammar.is_powershell() && is_batch(it.program())
    };
    let (_, before) = commands.split_last()?;
    before.iter().find(is_lost).copied()
}

/// Starts a service in the build.
fn starts_service(command: &LintCommand) -> bool {
    match command.program() {
        "net" | "sc" => command.word(1).eq_ignore_ascii_case("start") && command.words.len() > 2,
        "start-service" | "restart-service" => true,
        _ => false,
    }
}

/// Reports a folder, variable or service that ends with its line.
pub(super) fn check(stage: &Stage<'_>, step: &LintStep<'_>) -> Vec<Finding> {
    let is_known = matches!(step.shell, BaseShell::Cmd | BaseShell::PowerShell)
        || (step.shell == BaseShell::Unknown && stage.platform == Platform::Windows);
    if !step.is("RUN") || !is_known {
        return Vec::new();
    }
    let variable = check_script_variable(stage, step);
    variable
        .into_iter()
        .chain(check_line(stage, step))
        .collect()
}

fn check_line(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    if let Some(setting) = only_settings(step) {
        let message = if loads_types(&setting.lower) {
            "what Add-Type loads ends with its RUN: each RUN is a process of its own; write it in the \
             RUN that requires it"
        } else {
            "this setting ends with its RUN: each RUN is a process of its own; write it in the RUN \
             that requires it, or in SHELL"
        };
        // No later line fails without tracing or strictness.
        let severity = if is_mode(&setting.lower) {
            Severity::Note
        } else {
            Severity::Error
        };
        return Some(step.finding_at(setting.at, message).severity(severity));
    }
    // What separates commands of another shell is unknown.
    if step.shell == BaseShell::Unknown && step.instruction.text().split_whitespace().count() != 2 {
        return None;
    }
    let commands: Vec<&LintCommand> = step.commands().iter().filter(|it| !is_shell(it)).collect();
    if let [command] = commands.as_slice()
        && command.program() == "refreshenv"
    {
        let message = "refreshenv changes only its own process, and each RUN begins with what is set by \
            then: remove it";
        return Some(
            step.finding_at(command.start(), message)
                .severity(Severity::Note),
        );
    }
    let tail = commands
        .iter()
        .rev()
        .take_while(|it| LineEffect::of(it).is_some());
    let count = tail.clone().count();
    if let Some(command) = tail.last().copied()
        && let Some(effect) = LineEffect::of(command)
    {
        let is_whole = count == commands.len();
        let before = &commands[..commands.len() - count];
        // Only what follows a failure.
        let is_handler = before.last().is_some_and(|it| it.next == NextOperator::Or);
        let is_back = || goes_back(command, before) || is_working_directory(stage, step, command);
        if is_handler || effect == LineEffect::Folder && is_back() {
            return None;
        }
        let is_lost = is_whole || is_path_lost(stage, step, command);
        return effect_finding(step, command, (effect, is_whole, is_lost));
    }
    lost_setting(stage, step, &commands)
}

/// Returns true for a change back to the folder that an earlier command of the line left.
fn goes_back(command: &LintCommand, before: &[&LintCommand]) -> bool {
    let folder = |it: &LintCommand| it.words.last().map(|word| word.value.clone());
    let is_up = |it: &LintCommand| {
        let parents = |folder: String| folder.split(['\\', '/']).all(|it| matches!(it, ".." | ""));
        folder(it).is_some_and(parents)
    };
    let enters = |it: &&LintCommand| LineEffect::of(it) == Some(LineEffect::Folder) && !is_up(it);
    folder(command).as_deref() == Some("-") || is_up(command) && before.iter().any(enters)
}

/// Returns true for a change to the folder in which each line begins.
fn is_working_directory(stage: &Stage<'_>, step: &LintStep<'_>, command: &LintCommand) -> bool {
    let folder = |text: &str| {
        let text = text.to_ascii_lowercase().replace('\\', "/");
        let text = text.trim_matches([' ', '"', '\'']).replace("//", "/");
        let below = text.strip_prefix("c:").unwrap_or(&text);
        below.trim_end_matches('/').to_owned()
    };
    let mut before = stage.before(step).iter();
    let own = before.rfind(|it| it.is("WORKDIR"));
    let own = own.map(|it| folder(it.instruction.text()));
    let target = command.words.last().map(|word| folder(&word.value));
    // A relative one is below that folder.
    target.is_some_and(|it| it.starts_with('/') && Some(it) == own)
}

/// Returns true for a `set PATH=…` of cmd that only this line could keep: it installs nothing that sets
/// the PATH itself, and no `ENV` does.
fn is_path_lost(stage: &Stage<'_>, step: &LintStep<'_>, command: &LintCommand) -> bool {
    let start = command.word(1).get(..5);
    let is_path = start.is_some_and(|it| it.eq_ignore_ascii_case("path="));
    let setters = [
        "setx", "environment", "install", "setup", "choco", "reg ", ".exe", ".msi", ".bat", ".cmd",
        ".ps1",
    ];
    let has_setter = || step.lower_text().contains_any(&setters);
    let has_env = || stage.all("ENV").any(|it| it.lower_text().contains("path"));
    is_path
        && command.grammar == Grammar::Cmd
        && command.program() == "set"
        && !has_setter()
        && !has_env()
}

/// Reports a variable of PowerShell that only an earlier `RUN` sets.
fn check_script_variable(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let text = step.instruction.text();
    // Another file may set it.
    if step.shell != BaseShell::PowerShell || !text.contains('$') || text.contains(".ps1") {
        return None;
    }
    let before = stage.before(step);
    let used = used_variables(text);
    let mut used: Vec<(usize, usize)> = used
        .filter_map(|(at, name)| Some((stage.assignment(name)?, at)))
        .filter(|(earlier, _)| *earlier < before.len())
        .collect();
    used.sort_unstable();
    used.dedup_by_key(|(earlier, _)| *earlier);
    used.into_iter().find_map(|(earlier, at)| {
        let earlier = &before[earlier];
        let name = assigned_variable(earlier.instruction)?;
        let lower = name.to_ascii_lowercase();
        let is_set = lower.ends_with("preference")
            || is_assigned(step.lower_text(), &lower)
            || before
                .iter()
                .any(|it| !it.is("RUN") && it.instruction.text().contains(name));
        let line = earlier.line() + 1;
        let message = format!(
            "${name} is empty here, as the RUN on line {line} that sets it is a process of its own: \
             use ENV, or one RUN"
        );
        (!is_set).then(|| step.finding_at(step.instruction.start() + at, message))
    })
}

/// Names after a `$` outside of single quotes, each with its position.
fn used_variables(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut quotes = 0_usize;
    text.char_indices().filter_map(move |(at, c)| {
        quotes += usize::from(c == '\'');
        let rest = text[at..].strip_prefix('$')?;
        let (name, after) = split_name(rest);
        let is_outside = quotes.is_multiple_of(2) && !after.starts_with(':');
        (is_outside && !name.is_empty()).then_some((at, name))
    })
}

fn effect_finding(
    step: &LintStep<'_>,
    command: &LintCommand,
    (effect, is_whole, is_lost): (LineEffect, bool, bool),
) -> Option<Finding> {
    // The installer that such a line follows sets PATH itself.
    let is_path = command
        .words
        .iter()
        .any(|word| word.value.to_ascii_lowercase().contains("path"));
    let is_condition = matches!(command.next, NextOperator::Pipe | NextOperator::Or);
    // A line may have it as its last step and not mean it.
    let is_minor = matches!(effect, LineEffect::Preference | LineEffect::Module);
    // Other commands, which no operator separates from this one.
    let line = step.line_of(command);
    let last = command.words.last();
    let is_joined = last.is_some_and(|last| step.line_at(last.start()) != line);
    if is_condition || is_joined || ((is_path || is_minor) && !is_lost) {
        return None;
    }
    let severity = if effect == LineEffect::Module {
        // PowerShell loads those on its path by itself.
        Severity::Note
    } else if is_whole {
        Severity::Error
    } else {
        Severity::Warning
    };
    let (what, instead) = effect.words();
    let message =
        format!("this {what} ends with its RUN: each RUN is a process of its own; use {instead}");
    Some(Finding::new(line, message).severity(severity))
}

/// A setting of a script that makes nothing but settings of its process.
fn only_settings<'a>(step: &'a LintStep<'_>) -> Option<&'a PowerShellStatement> {
    let mut others = step
        .commands()
        .iter()
        .filter(|it| !it.grammar.is_powershell());
    let mut scripts = step.powershell_scripts();
    let (Some(script), None) = (scripts.next(), scripts.next()) else {
        return None;
    };
    let is_setting = |it: &PowerShellStatement| {
        it.depth == 0 && (sets_process(&it.lower) || is_preference(&it.lower, ""))
    };
    if !others.all(is_shell) || !script.statements.iter().all(is_setting) {
        return None;
    }
    let settings = script
        .statements
        .iter()
        .filter(|it| sets_process(&it.lower));
    // Rather one that a later line lacks than a mode.
    settings.min_by_key(|it| is_mode(&it.lower))
}

/// Returns true for a setting, in lower case, of the process and not of the machine.
fn sets_process(text: &str) -> bool {
    let name = text.split_once('=').map_or("", |(name, _)| name);
    let is_policy = text.starts_with("set-executionpolicy ")
        && text.contains("-scope process")
        && !text.contains('|');
    let is_network = name.starts_with('[')
        && name.contains_any(&["servicepointmanager]::", "webrequest]::defaultwebproxy"]);
    is_policy || is_network || is_mode(text) || loads_types(text)
}

/// Returns true for an `Add-Type`, in lower case, that makes no file.
fn loads_types(text: &str) -> bool {
    text.starts_with("add-type ") && !text.contains_any(&[" -o", "|"])
}

/// Returns true for a setting, in lower case, without which a script does the same.
fn is_mode(text: &str) -> bool {
    let name = text.split_whitespace().next();
    matches!(name, Some("set-psdebug" | "set-strictmode"))
}

/// Reports a setting that has no effect.
fn lost_setting(
    stage: &Stage<'_>,
    step: &LintStep<'_>,
    commands: &[&LintCommand],
) -> Option<Finding> {
    if let Some(command) = lost_refresh(step, commands) {
        let message = "refreshenv is a batch file, and changes nothing in this PowerShell: import \
            chocolateyProfile.psm1, or go on in the next RUN";
        return Some(step.finding_at(command.start(), message).warning());
    }
    if let Some(command) = lost_environment(commands) {
        let message = "PowerShell starts a cmd for this batch file, with which its variables end: write \
            cmd /C with the file, && and the commands that require them";
        return Some(step.finding_at(command.start(), message));
    }
    let mut last = step
        .powershell_scripts()
        .filter_map(|script| script.statements.last());
    if let Some(statement) = last.find(|it| sets_process_variable(&it.lower)) {
        let message = "without 'Machine' the variable ends with its RUN: add it, or use ENV";
        return Some(step.finding_at(statement.at, message));
    }
    if stage.platform == Platform::Windows
        && let Some(at) = unused_answer(step)
    {
        let message = "the answer of this request is only printed: add -OutFile";
        return Some(step.finding_at(at, message).warning());
    }
    let last = commands.last().filter(|it| starts_service(it))?;
    let is_start = |it: &&LintCommand| starts_service(it) && it.program() != "restart-service";
    let is_only = commands.iter().all(is_start);
    // A line that only starts a service says nothing about its start type, except for IIS.
    let is_named = is_only && !step.lower_text().contains("w3svc");
    let lines = stage.until(step).len() - usize::from(is_named);
    let [starts, installs] = stage.service_signs(lines);
    if starts {
        return None;
    }
    if !installs {
        let message = "a service that a RUN starts does not run in containers: start it in CMD or \
            ENTRYPOINT, or set its start type";
        return Some(step.finding_at(last.start(), message).warning());
    }
    let message = "a service ends with the RUN that starts it: in containers it runs only if it is set \
        to start with Windows, or CMD starts it";
    let found = step.finding_at(last.start(), message);
    is_only.then(|| found.severity(Severity::Note))
}

/// Parts of a line that make a service start with Windows.
const START_TYPES: [&str; 8] = [
    "set-service", "startuptype", "start= auto", "new-service", "w3svc", "mssql", "windowsfeature",
    "dism",
];

/// Parts of a line that may install a service, which most installers start with Windows.
const INSTALLERS: [&str; 7] = ["install", "choco", ".exe", ".msi", ".ps1", ".cmd", ".bat"];

/// The first line that makes a service start with Windows, and the first that may install one.
pub(super) fn service_signs(steps: &[LintStep<'_>]) -> [Option<usize>; 2] {
    [&START_TYPES[..], &INSTALLERS[..]].map(|signs| {
        steps.iter().position(|step| {
            let text = step.lower_text();
            text.contains_any(signs) && !text.contains("manual")
        })
    })
}

/// Returns true for `[Environment]::SetEnvironmentVariable(name, value)`, in lower case, without a
/// target.
fn sets_process_variable(text: &str) -> bool {
    let (_, arguments) = text
        .split_once("]::setenvironmentvariable(")
        .unwrap_or_default();
    let is_list = arguments.ends_with(')') && text.starts_with('[');
    let value = arguments.trim_end_matches(')');
    is_list && value.matches(',').count() == 1 && !value.contains('(')
}
