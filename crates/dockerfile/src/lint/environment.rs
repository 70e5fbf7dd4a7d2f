//! Variables of Windows in instructions: `ENV PATH` with `%PATH%`, which only cmd expands.

use super::instructions::is_inherited;
use super::prelude::*;
use super::words::has_drive;
use crate::source::Instruction;

pub(super) fn check(it: &EvaluatedStep<'_>) -> Vec<Finding> {
    let Some((value, is_only)) = path(it.step.instruction) else {
        return joined_list(it)
            .into_iter()
            .chain(check_registry(it))
            .collect();
    };
    // The tags of many images are of both systems.
    let mut parts = value.split([':', '"']);
    let is_for_windows = it.stage.platform == Platform::Windows
        || value.contains(['%', ';'])
        || parts.any(|part| part.len() == 1 && part.starts_with_letter());
    let joined = joined_folders(value).filter(|_| is_for_windows);
    let joined = joined.map(|part| {
        let message = format!(
            "Windows separates the folders of PATH with ;, and does not find \"{part}\": write ; instead of :"
        );
        it.step.finding(message).of("path-separator")
    });
    let hidden = hidden_path(it, value).map(|problem| {
        let is_enough = buildkits_is_enough(it, value);
        let advice = if is_enough {
            "list C:\\Windows\\System32 and C:\\Windows, as Docker's own builder puts in nothing"
        } else if it.stage.is_nano_server() {
            "set it with RUN setx /M PATH as ContainerAdministrator, or list the folders; a recipe's `path` \
             adds to it"
        } else {
            "set it in a RUN with [Environment]::SetEnvironmentVariable, or list the folders; a recipe's \
             `path` adds to it"
        };
        let message = format!("{problem} hides the one in the registry; {advice}");
        let text = correction(it.stage, it.step, value).filter(|_| is_only);
        let correction = text.map(|text| Correction::new(it.step.instruction.lines(), text));
        let found = it.step.finding(message).corrected(correction);
        found.severity(Severity::error_if(!is_enough))
    });
    joined.into_iter().chain(hidden).collect()
}

/// Parts of a file that may use the PATH of the registry: services, and scripts that read it.
const READERS: [&str; 11] = [
    "service", "net start", "sc create", "schtasks", "scheduledtask", "iis", "refreshenv",
    "update-sessionenv", "reg query", "env:path=", "env:path =",
];

/// Reports a folder that a line adds to the PATH of the registry, which that of an `ENV` hides.
fn check_registry(it: &EvaluatedStep<'_>) -> Option<Finding> {
    let (stage, step) = (it.stage, it.step);
    let is_known = stage.platform == Platform::Windows && stage.knows_environment;
    if !step.is("RUN") || !is_known {
        return None;
    }
    let hiding = wincimg_recipe::variable(&it.state.config.env, "PATH")?;
    let (at, added) = machine_path(step)?;
    let listed: Vec<String> = hiding.split(';').map(folder_name).collect();
    let mut folders = added.split([';', '\'', '"']).map(str::trim);
    let folder = folders.find(|it| is_folder(it) && !listed.contains(&folder_name(it)))?;
    // A PATH below may have the folder.
    let below = it.linted.file.instructions.iter().rev();
    let mut below = below.take_while(|other| other.lines().0 > step.line());
    if below.any(|other| path(other).is_some()) || step.file.mentions(&READERS) {
        return None;
    }
    let message = format!(
        "the PATH of ENV hides the one in the registry, to which this adds {folder}: list it in ENV"
    );
    Some(step.finding_at(at, message).warning())
}

/// Position and value of a change to the machine's PATH.
fn machine_path(step: &LintStep<'_>) -> Option<(usize, String)> {
    let of_cmd = step.find_map(|command| {
        let mut operands = command.arguments().iter().filter(|word| !word.is_option());
        let is_path = operands.next()?.eq_ignore_case("path");
        let value = operands.next()?.value.clone();
        let is_setx = command.grammar.may_be_cmd() && command.program() == "setx";
        (is_setx && is_path && command.has(&["/m", "-m"])).then(|| (command.start(), value))
    });
    let mut statements = step.statements();
    of_cmd.or_else(|| statements.find_map(|it| Some((it.at, machine_value(it)?.to_owned()))))
}

/// The value that a statement of PowerShell gives the machine's PATH.
fn machine_value(statement: &PowerShellStatement) -> Option<&str> {
    let PowerShellStatement { text, lower, .. } = statement;
    let value = if let Some((_, arguments)) = lower.split_once("]::setenvironmentvariable(") {
        let (name, value) = arguments.split_once(',')?;
        let (_, target) = value.strip_suffix(')')?.rsplit_once(',')?;
        let target = target.trim().trim_matches(['\'', '"']);
        let is_machine = target == "machine" || target.ends_with("]::machine");
        let is_path = name.trim().trim_matches(['\'', '"']) == "path";
        Some(value).filter(|_| is_path && is_machine)?
    } else {
        let rest = lower.strip_prefix("setx")?;
        let rest = rest.strip_prefix(".exe").unwrap_or(rest).trim_start();
        rest.strip_prefix("/m path ")?
    };
    text.get(text.len() - value.len()..)
}

/// Returns true for a folder with its drive, and without a variable.
fn is_folder(text: &str) -> bool {
    text.get(1..3).is_some_and(|it| matches!(it, ":\\" | ":/")) && !text.contains(['$', '%', '{'])
}

/// A folder as Windows compares it.
fn folder_name(path: &str) -> String {
    let path = path.trim().replace('/', "\\").replace("\\\\", "\\");
    path.trim_end_matches('\\').to_ascii_lowercase()
}

/// Begin of a message about a PATH that was meant to have the PATH so far, and does not.
pub(super) fn hidden_path(it: &EvaluatedStep<'_>, value: &str) -> Option<String> {
    let not_expanded = |name: &str| format!("ENV does not expand {name}, and this PATH");
    if let Some(name) = variable(value) {
        return Some(not_expanded(&format!("%{name}%")));
    }
    let lower = value.to_ascii_lowercase();
    if lower.contains("$env:") || lower.contains("${env:") {
        return Some(not_expanded("$env:PATH"));
    }
    // A list of folders alone lacks those of Windows.
    let is_list = lower.contains(":\\") || lower.contains(":/");
    let expanded = with_empty_variables(it, value);
    let folders = expanded.as_deref().unwrap_or(&lower);
    let has_windows = folders.contains_any(&["system32", "$", "windows"]);
    // Windows' own PATH is in the registry, and not in a base's configuration.
    let is_first = || {
        let is_set = it.state.value("PATH", &it.linted.arguments).is_some();
        !is_set && (it.stage.knows_environment || is_of_framework(it))
    };
    if is_list && !has_windows && is_first() {
        return Some("this PATH lacks Windows' folders, and".to_owned());
    }
    (has_own(&lower) && !lists_system(&lower) && is_first()).then(|| {
        not_expanded(
            "$PATH to Windows' own (BuildKit puts in only System32, Windows and PowerShell)",
        )
    })
}

/// An expanded PATH, in lower case, if it has variables that nothing sets: they are empty.
fn with_empty_variables(it: &EvaluatedStep<'_>, value: &str) -> Option<String> {
    let expanded = it.expand(value)?;
    let may_be_set = |name: &String| {
        name.eq_ignore_ascii_case("path") || it.state.declares(name) || is_inherited(it, name)
    };
    let has_empty = !expanded.unset.is_empty() && !expanded.unset.iter().any(may_be_set);
    (has_empty && it.stage.knows_environment).then(|| expanded.text.to_ascii_lowercase())
}

/// Returns true on Microsoft's images of .NET Framework, which set variables, and not the PATH.
fn is_of_framework(it: &EvaluatedStep<'_>) -> bool {
    let image = it.linted.base_image(it.stage);
    image.is_some_and(|image| {
        image
            .repository
            .starts_with("mcr.microsoft.com/dotnet/framework/")
    })
}

/// Returns true for a PATH, in lower case, with Docker's variable for the PATH so far.
fn has_own(path: &str) -> bool {
    path.contains_any(&["$path", "${path}"])
}

/// True for `$PATH` where nothing runs in the build: what `BuildKit` puts in is enough to start what
/// was copied.
fn buildkits_is_enough(it: &EvaluatedStep<'_>, value: &str) -> bool {
    has_own(&value.to_ascii_lowercase())
        && variable(value).is_none()
        && !it.linted.chain(it.stage).any(|stage| stage.has("RUN"))
}

/// Returns true for a PATH, in lower case, with the folder of Windows' programs.
fn lists_system(path: &str) -> bool {
    let mut folders = path.split(';').map(folder_name);
    folders.any(|folder| folder.ends_with(r"\windows\system32"))
}

/// A part of a PATH that consists of folders with colons between them.
fn joined_folders(value: &str) -> Option<&str> {
    let mut parts = value.split(';').map(str::trim);
    parts.find(|part| {
        let mut colons = part.match_indices(':').map(|(at, _)| at);
        colons.any(|at| {
            let (before, after) = (&part[..at], &part[at + 1..]);
            let start = before.trim_end_matches(|c: char| c.is_ascii_alphanumeric());
            // The name of a folder can have one letter, too.
            let is_drive = before.len() - start.len() == 1 && !start.ends_with(['/', '\\']);
            // The colons of `$env:NAME` and `${NAME:-C:/a}` separate nothing.
            let is_syntax = before.to_ascii_lowercase().ends_with("$env")
                || before.matches('{').count() > before.matches('}').count();
            let begins_folder =
                after.starts_with(['/', '\\', '$', '%']) || after.get(1..2) == Some(":");
            begins_folder && !is_drive && !is_syntax
        })
    })
}

/// Variables besides `PATH` that are lists of paths on every system.
const LISTS: [&str; 6] = [
    "CLASSPATH", "GOPATH", "INCLUDE", "LIB", "NODE_PATH", "PYTHONPATH",
];

/// Reports another list than the PATH of an `ENV` with colons between its paths.
fn joined_list(it: &EvaluatedStep<'_>) -> Option<Finding> {
    let step = it.step;
    if it.stage.platform != Platform::Windows {
        return None;
    }
    let (at, part) = if let InstructionKind::Env(pairs) = it.kind {
        let is_list = |name: &str| LISTS.iter().any(|list| list.eq_ignore_ascii_case(name));
        let is_open = |value: &str| value.contains("://");
        let mut lists = pairs
            .iter()
            .filter(|(name, value)| is_list(name) && !is_open(value));
        let part = lists.find_map(|(_, value)| {
            let folder = || value.split(['"', '\'']).find_map(joined_folders);
            joined_paths(value).or_else(folder)
        })?;
        (step.instruction.start(), part.to_owned())
    } else {
        class_path(step).or_else(|| {
            let (at, value) = machine_path(step)?;
            Some((at, behind_colon(&value)?.to_owned()))
        })?
    };
    let message = format!(
        "Windows separates the paths of a list with ;, and does not find \"{part}\": write ; instead of :"
    );
    Some(step.finding_at(at, message).of("path-separator"))
}

/// Position and a part of a class path of Java with colons between its paths.
fn class_path(step: &LintStep<'_>) -> Option<(usize, String)> {
    step.find_map(|command| {
        let is_java = matches!(command.program(), "java" | "javaw" | "javac");
        let options = ["-cp", "-classpath", "--class-path"];
        let list = command.value_of(&options).filter(|_| is_java)?;
        Some((list.start(), joined_paths(&list.value)?.to_owned()))
    })
}

/// A part of a list that has colons between its paths: before a drive, or between archives of Java.
fn joined_paths(list: &str) -> Option<&str> {
    let is_archive = |path: &&str| has_extension(path, &["jar"]) || path.ends_with("/*");
    let mut parts = list.split([';', '"', '\'']);
    let joined = parts.find(|part| part.split(':').filter(is_archive).count() > 1);
    joined.or_else(|| behind_colon(list))
}

/// A part of a list with a colon before a drive.
fn behind_colon(list: &str) -> Option<&str> {
    let mut parts = list.split([';', '"', '\'']);
    parts.find(|part| {
        let mut colons = part.match_indices(':').map(|(at, _)| part.split_at(at));
        colons.any(|(before, after)| {
            // `$env:C:\x`, and `%PATH:C:\x=%`.
            let is_variable = before.to_ascii_lowercase().ends_with("env")
                || !before.matches('%').count().is_multiple_of(2);
            let is_root = matches!(after.get(2..4), Some(":\\" | ":/"));
            is_root && has_drive(&after[1..]) && !is_variable
        })
    })
}

/// Names of variables in the syntax of cmd or PowerShell.
pub(super) fn shell_variables(text: &str) -> impl Iterator<Item = &str> {
    cmd_variables(text).chain(powershell_variables(text))
}

/// Names of variables in the syntax of cmd.
pub(super) fn cmd_variables(text: &str) -> impl Iterator<Item = &str> {
    let parts: Vec<&str> = text.split('%').collect();
    let is_last = parts.len() - 1;
    let names = parts.into_iter().enumerate().filter(move |(index, name)| {
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        *index > 0 && *index < is_last && begins && name.has_only("_()")
    });
    names.map(|(_, name)| name)
}

/// The letters, digits and underscores at the start of a text, and what follows them.
pub(super) fn split_name(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    text.split_at(end.unwrap_or(text.len()))
}

/// Names of variables of the environment in the syntax of PowerShell.
pub(super) fn powershell_variables(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('$').filter_map(|(at, _)| {
        let rest = text[at + 1..].trim_start_matches('{');
        let drive = rest.get(..4).filter(|it| it.eq_ignore_ascii_case("env:"))?;
        let (name, _) = split_name(&rest[drive.len()..]);
        (!name.is_empty()).then_some(name)
    })
}

/// A variable as the text has it.
pub(super) fn written(text: &str, name: &str) -> String {
    if text.contains(&format!("%{name}%")) {
        format!("%{name}%")
    } else {
        format!("$env:{name}")
    }
}

/// Unquoted value of `PATH` in an `ENV`, and true if the `ENV` sets nothing else.
pub(super) fn path(instruction: &Instruction) -> Option<(&str, bool)> {
    if instruction.keyword != "ENV" {
        return None;
    }
    let text = instruction.text();
    let lower = text.to_ascii_lowercase();
    if let Some(value) = lower.strip_prefix("path ") {
        let value = &text[text.len() - value.len()..];
        return Some((value.trim(), true));
    }
    let at = if lower.starts_with("path=") {
        0
    } else {
        lower.find(" path=")? + 1
    };
    let rest = &text[at + "path=".len()..];
    let (value, after) = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"')?,
        None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
    };
    Some((value, at == 0 && after.trim().is_empty()))
}

/// First `%NAME%` in a value.
fn variable(value: &str) -> Option<&str> {
    let (_, rest) = value.split_once('%')?;
    let (name, _) = rest.split_once('%')?;
    (!name.is_empty() && name.has_only("_()")).then_some(name)
}

/// Equivalent change of the machine's PATH, if it certainly works: as an administrator, under cmd.
fn correction(stage: &Stage<'_>, step: &LintStep<'_>, value: &str) -> Option<String> {
    let is_server_core = stage
        .reference()?
        .repository
        .ends_with("windows/servercore");
    let lower = value.to_ascii_lowercase();
    let at = lower.find("%path%")?;
    let (before, after) = (&value[..at], &value[at + "%path%".len()..]);
    let is_plain = !value.contains(['"', '\'', '$', '^', '&', '|', '<', '>', '`'])
        && !before.contains('%')
        && !after.contains('%')
        && !value.ends_with('\\');
    let is_own = step.instruction.trigger().is_none();
    if !is_server_core || stage.has("USER") || !is_plain || !is_own || step.shell != BaseShell::Cmd
    {
        return None;
    }
    let single = |text: &str| text.replace("\\\\", "\\");
    let before = match single(before).as_str() {
        "" => String::new(),
        before => format!("'{before}' + "),
    };
    let after = match single(after).as_str() {
        "" => String::new(),
        after => format!(" + '{after}'"),
    };
    Some(format!(
        "RUN powershell -Command \"[Environment]::SetEnvironmentVariable('Path', \
         {before}[Environment]::GetEnvironmentVariable('Path', 'Machine'){after}, 'Machine')\""
    ))
}
