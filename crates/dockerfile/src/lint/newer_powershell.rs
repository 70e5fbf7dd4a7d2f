//! What PowerShell 7 has and Windows PowerShell, which is 5.1, has not, and the reverse.

use super::prelude::*;

/// Cmdlets, and parameters that Windows PowerShell refuses.
const PARAMETERS: [(&[&str], &[&str]); 5] = [
    (
        &["invoke-webrequest", "iwr", "invoke-restmethod", "irm"],
        &[
            "-SkipCertificateCheck", "-SkipHttpErrorCheck", "-MaximumRetryCount",
            "-RetryIntervalSec", "-Authentication", "-Token", "-SslProtocol", "-Form", "-Resume",
        ],
    ),
    (
        &["get-content", "gc", "set-content", "add-content"],
        &["-AsByteStream"],
    ),
    (
        &["convertfrom-json"],
        &["-AsHashtable", "-Depth", "-NoEnumerate"],
    ),
    (&["split-path"], &["-Extension", "-LeafBase"]),
    (&["foreach-object"], &["-Parallel"]),
];

/// Cmdlets that Windows PowerShell does not have.
const NEWER: [&str; 6] = [
    "ConvertFrom-Markdown", "Get-Error", "Get-Uptime", "Join-String", "Remove-Service", "Test-Json",
];

/// Cmdlets that PowerShell 7 does not have, and what does the same.
const REMOVED: [(&[&str], &str); 6] = [
    (&["get-wmiobject", "gwmi"], "Get-CimInstance"),
    (&["invoke-wmimethod"], "Invoke-CimMethod"),
    (&["set-wmiinstance"], "Set-CimInstance"),
    (&["remove-wmiobject"], "Remove-CimInstance"),
    (&["get-eventlog"], "Get-WinEvent"),
    (
        &["add-computer", "new-webserviceproxy", "write-eventlog"],
        "powershell -Command",
    ),
];

/// Types that Windows PowerShell does not load itself, in lower case, and their assemblies.
const UNLOADED: [(&str, &str); 3] = [
    (
        "io.compression.zipfile]",
        "System.IO.Compression.FileSystem",
    ),
    ("net.http.httpclient]", "System.Net.Http"),
    ("new-object system.net.http.httpclient", "System.Net.Http"),
];

/// Parts of a script, in lower case, that may load an assembly.
const LOADING: [&str; 10] = [
    "add-type", "assembly", "loadwith", "load(", "archive", "module", "package", ".ps1", "iex",
    "invoke-expression",
];

/// Parts of a text, in lower case, that test the version.
const TESTS: [&str; 3] = ["psversion", "psedition", "iscoreclr"];

/// Parts of a script, in lower case, that may bring a cmdlet or do without it.
const CMDLET_SOURCES: [&str; 7] = [
    "function", "alias", "module", ".ps1", "session", "get-command", "catch",
];

/// Reports what the PowerShell that runs a script does not have.
pub(super) fn check(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let text = step.lower_full_text();
    if text.contains_any(&TESTS) {
        return None;
    }
    let (at, message) = missing_in_windows(stage, step)
        .or_else(|| missing_in_core(step))
        .or_else(|| unloaded(stage, step))?;
    Some(step.finding_at(at, message))
}

/// Position of what Windows PowerShell does not have, and a message.
fn missing_in_windows(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<(usize, String)> {
    // `powershell` may be another one.
    if stage.image.contains("powershell") {
        return None;
    }
    let is_own = |grammar: Grammar| grammar == Grammar::PowerShell;
    let mut commands = step.commands().iter().filter(|it| is_own(it.grammar));
    let of_cmdlet = |command: &LintCommand| {
        let name = command.word(0);
        let name = NEWER.iter().find(|it| name.eq_ignore_ascii_case(it))?;
        let is_open = !stage.is_of_microsoft() || step.file.mentions(&CMDLET_SOURCES);
        (!is_open).then_some((command.start(), *name))
    };
    let of_syntax = || {
        step.windows_powershell_scripts().find_map(|script| {
            let (at, what) = operator(step.part(&script.range))?;
            Some((script.range.start + at, what))
        })
    };
    let (at, what) = commands
        .find_map(|it| {
            let assigned = it.assigned();
            let it = assigned.as_ref().unwrap_or(it);
            parameter(it)
                .or_else(|| third_path(it))
                .or_else(|| of_cmdlet(it))
        })
        .or_else(of_syntax)?;
    let message = format!(
        "{what} is of PowerShell 7, and Windows PowerShell 5.1 fails: install PowerShell 7 and write \
         pwsh, or do without it"
    );
    Some((at, message))
}

/// Position of a type that nothing in its line loads, and a message.
fn unloaded(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<(usize, String)> {
    let lower = step.lower_full_text();
    let mut scripts = step.scripts().iter();
    let (at, assembly) = scripts.find_map(|script| {
        let text = lower.get(script.range.clone())?;
        let is_own = script.grammar == Grammar::PowerShell;
        let mut types = UNLOADED.iter().filter(|_| is_own);
        let (name, assembly) = types.find(|(name, _)| text.contains(name))?;
        let at = text.find(name)?;
        let is_read = outside_quotes(text).any(|(place, _)| place == at);
        is_read.then_some((script.range.start + at, assembly))
    })?;
    let shell = stage.shell_of(step);
    // Nano Server 2016 had PowerShell on .NET Core, which finds its types itself.
    let is_on_core = match stage.base {
        StageBaseRef::Stage(_) => step.file.mentions(&["nanoserver"]),
        _ => stage.image.contains("nanoserver"),
    };
    let is_open = is_on_core
        || stage.image.contains("powershell")
        || lower.contains_any(&LOADING)
        || shell.is_some_and(|it| it.lower_text().contains_any(&LOADING));
    let message = format!(
        "PowerShell 7 loads this type itself, and Windows PowerShell 5.1 does not: write Add-Type \
         -AssemblyName {assembly}; before it"
    );
    (!is_open).then_some((at, message))
}

/// Position of what PowerShell 7 does not have, and a message.
fn missing_in_core(step: &LintStep<'_>) -> Option<(usize, String)> {
    let commands = step.commands().iter();
    let mut commands = commands.filter(|it| it.grammar == Grammar::PowerShellCore);
    let (at, what, instead) = commands.find_map(|command| {
        let assigned = command.assigned();
        let command = assigned.as_ref().unwrap_or(command);
        if let Some(word) = encoding(command, "Byte") {
            return Some((word.start(), "-Encoding Byte".to_owned(), "-AsByteStream"));
        }
        let name = command.word(0);
        let mut removed = REMOVED.iter();
        let (_, instead) = removed.find(|(names, _)| name.is_any_of(names))?;
        Some((command.start(), name.to_owned(), *instead))
    })?;
    let text = step.lower_full_text();
    let is_open = text.contains("powershell") || text.contains_any(&CMDLET_SOURCES);
    (!is_open).then(|| (at, format!("PowerShell 7 has no {what}: write {instead}")))
}

/// The third path of a `Join-Path`, and what it is.
fn third_path(command: &LintCommand) -> Option<(usize, &'static str)> {
    let words = command.arguments();
    // Options with values, variables that may be empty, and several values.
    let is_open = |word: &Word| {
        let text = word.value.as_str();
        let is_option =
            text.starts_with('-') && !text.is_any_of(&["-path", "-childpath", "-resolve"]);
        is_option || text.contains_any(&["%", "`", "@", "!", "#", ";", "|", "&", "(", "{", "}"])
    };
    if command.program() != "join-path" || words.iter().any(is_open) {
        return None;
    }
    // A comma, also one before or after a space, joins a list.
    let is_joined = |at: usize| {
        let before = at.checked_sub(1).and_then(|at| words.get(at));
        words[at].value.starts_with(',') || before.is_some_and(|it| it.value.ends_with(','))
    };
    let mut paths =
        (0..words.len()).filter(|at| !words[*at].value.starts_with('-') && !is_joined(*at));
    let third = paths.nth(2)?;
    Some((words[third].start(), "a third path of Join-Path"))
}

/// The value of `-Encoding` of a cmdlet for files, if it is this one.
fn encoding<'a>(command: &'a LintCommand, value: &str) -> Option<&'a Word> {
    let is_of_files = matches!(
        command.program(),
        "set-content" | "add-content" | "out-file" | "get-content" | "export-csv"
    );
    let mut pairs = command.words.windows(2).filter(|_| is_of_files);
    let pair = pairs.find(|pair| {
        let option = pair[0].value.to_ascii_lowercase();
        option.len() > 2 && "-encoding".starts_with(&option) && pair[1].eq_ignore_case(value)
    })?;
    pair.get(1)
}

/// A parameter or value that a cmdlet of Windows PowerShell does not have, and its position.
fn parameter(command: &LintCommand) -> Option<(usize, &'static str)> {
    for value in ["utf8NoBOM", "utf8BOM"] {
        if let Some(word) = encoding(command, value) {
            return Some((word.start(), value));
        }
    }
    let mut known = PARAMETERS.iter();
    let (_, parameters) = known.find(|(names, _)| names.contains(&command.program()))?;
    command.arguments().iter().find_map(|word| {
        // `-Name:$true`
        let option = word.value.split(':').next().unwrap_or_default();
        let mut names = parameters.iter();
        let name = names.find(|name| option.eq_ignore_ascii_case(name))?;
        Some((word.range.start, *name))
    })
}

/// First operator of PowerShell 7 outside of quotes, and its position.
fn operator(text: &str) -> Option<(usize, &'static str)> {
    // Each of them has a question mark, which few scripts have.
    if !text.contains('?') {
        return None;
    }
    // Where the expressions around this place begin.
    let mut starts = vec![0];
    for (at, c) in outside_quotes(text) {
        match c {
            '#' if text[..at].ends_with(char::is_whitespace) => return None,
            '(' | '{' => starts.push(at + 1),
            ')' | '}' if starts.len() > 1 => {
                starts.pop();
            }
            ';' | '|' | '\n' => {
                starts.pop();
                starts.push(at + 1);
            }
            // Of an assignment, not of an argument.
            '=' => {
                let start = starts.last().copied().unwrap_or_default();
                if text[start..at].trim_start().starts_with(['$', '[']) {
                    starts.pop();
                    starts.push(at + 1);
                }
            }
            '?' => {
                let start = starts.last().copied().unwrap_or_default();
                if let Some(what) = at_question_mark(&text[start..at], &text[at + 1..]) {
                    return Some((at, what));
                }
            }
            _ => {}
        }
    }
    None
}

/// Operator whose question mark is between two texts.
fn at_question_mark(before: &str, after: &str) -> Option<&'static str> {
    let value = before.trim_start();
    let is_value = value.starts_with(['$', '(', '[', '\'', '"', '!']) || value.starts_with("-not ");
    let is_apart = before.ends_with(char::is_whitespace);
    if is_apart && value.starts_with('$') && after.starts_with("?=") {
        return Some("??=");
    }
    if is_apart && is_value && after.starts_with("? ") {
        return Some("??");
    }
    // In `$a?.b` the question mark is a part of the name.
    let is_braced = value.strip_prefix("${").is_some_and(|name| {
        let inside = name.strip_suffix('}');
        inside.is_some_and(|name| {
            name.chars()
                .all(|c| c.is_alphanumeric() || "_:".contains(c))
        })
    });
    if is_braced && after.starts_with(['.', '[']) {
        return Some("?.");
    }
    let rest = after.split([';', '\n', '|']).next().unwrap_or_default();
    let is_ternary = is_apart
        && is_value
        && after.starts_with(char::is_whitespace)
        && !after.trim_start().starts_with('{')
        && rest.contains(" : ");
    is_ternary.then_some("the operator ? :")
}
