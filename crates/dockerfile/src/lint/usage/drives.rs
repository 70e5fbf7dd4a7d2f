//! Paths on a drive that a build does not have.

use crate::lint::missing_folder::{has_only_windows, output};
use crate::lint::prelude::*;

/// Parts of a text, in lower case, that may bring a drive.
const DRIVE_SOURCES: [&str; 14] = [
    "subst", "psdrive", "net use", "dos devices", "mount", "volume", "diskpart", "partition",
    "vhd", ".ps1", ".bat", ".cmd", ".reg", ".exe",
];

/// Parts of a script, in lower case, that may run something else without the drive.
const CONDITIONS: [&str; 5] = ["if ", "if(", "test-path", "try", "function"];

/// Position of a file or folder that a command makes on another drive, and a message.
pub(super) fn other_drive(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<(usize, &'static str)> {
    let (command, word) =
        step.find_map(|it| Some((it, made(it).find(|word| is_on_other_drive(word))?)))?;
    let drive = word.value.get(..2)?.to_ascii_lowercase();
    let own = &step.lower_full_text()[..command.start()];
    let is_open = !has_only_windows(stage)
        || command.next == NextOperator::Or
        || has_error_action(command)
        || own.contains_any(&CONDITIONS)
        || own.contains_any(&DRIVE_SOURCES)
        || own.contains(&drive)
        || stage.mentions_above(step, &DRIVE_SOURCES)
        || stage.mentions_above(step, &[drive.as_str()]);
    let message = "a build has only the drive C:, and this fails";
    (!is_open).then_some((word.start(), message))
}

/// Cmdlets that fail without the drive of their path.
const ITEM_CMDLETS: [&str; 26] = [
    "get-item", "set-item", "new-item", "remove-item", "get-itemproperty", "set-itemproperty",
    "get-childitem", "set-location", "new-itemproperty", "clear-itemproperty", "rename-item",
    "push-location", "gi", "si", "ni", "ri", "gp", "sp", "clp", "rni", "gci", "ls", "dir", "sl",
    "cd", "pushd",
];

/// Nouns of cmdlets that load no module with the drive, besides those of `IISAdministration`.
const OTHER_NOUNS: [&str; 9] = [
    "item", "itemproperty", "childitem", "content", "location", "host", "output", "service",
    "windowsfeature",
];

/// Parts of a text, in lower case, that may load the module with the drive.
const LOADING: [&str; 8] = [
    "-web", "module", "ipmo", "webadministration", ".ps1", "snapin", "profile", "iex",
];

/// Position of a path of `IIS:` that nothing in its line loads the module for, and a message.
pub(super) fn of_iis(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<(usize, &'static str)> {
    let is_on_drive = |it: &str| it.starts_with("iis:\\") || it.starts_with("iis:/");
    let command = step.find(|it| is_of_items(it) && it.any(is_on_drive))?;
    let start = command.start();
    let before = &step.lower_full_text()[..start];
    // This one has no drive.
    let own = before.replace("import-module iisadministration", "");
    let may_load = |it: &LintCommand| {
        let noun = it.program().split_once('-').map(|(_, noun)| noun);
        let is_other = |noun: &str| OTHER_NOUNS.contains(&noun) || noun.starts_with("iis");
        it.start() < start && noun.is_some_and(|noun| !is_other(noun))
    };
    let is_module = |it: &LintCommand| it.program() == "import-module" && own.len() < before.len();
    let mut commands = step.commands().iter();
    let shell = stage.shell_of(step);
    let is_open = !stage.is_of_microsoft()
        || has_error_action(command)
        || own.contains_any(&CONDITIONS)
        || own.contains_any(&LOADING)
        || commands.any(|it| may_load(it) && !is_module(it))
        || shell.is_some_and(|it| it.lower_text().contains_any(&LOADING))
        || step.file.mentions(&["profile"]);
    let message = "nothing in this line loads the drive IIS:, and it fails: write Import-Module \
        WebAdministration; before it";
    (!is_open).then_some((start, message))
}

fn is_of_items(command: &LintCommand) -> bool {
    command.grammar.is_powershell() && ITEM_CMDLETS.contains(&command.program())
}

/// True if a command says what an error does.
fn has_error_action(command: &LintCommand) -> bool {
    command.any(|it| it.starts_with("-ea") || it.starts_with("-erroraction"))
}

/// Position of a path on a drive of the registry that PowerShell does not have, and a message.
pub(super) fn of_registry(stage: &Stage<'_>, step: &LintStep<'_>) -> Option<(usize, &'static str)> {
    let is_missing = |command: &LintCommand| {
        let path = command.value_of(&["-path", "-literalpath"]);
        let path = path.or(command.words.get(1));
        let parts = path.and_then(|it| it.value.split_once(":\\"));
        parts.is_some_and(|(drive, _)| drive.is_any_of(&MISSING))
    };
    let command = step.find(|it| is_of_items(it) && is_missing(it))?;
    let brings = |text: &str| text.contains_any(&["psdrive", "ndr ", "mount", "profile", ".ps1"]);
    let own = &step.lower_full_text()[..command.start()];
    let shell = stage.shell_of(step);
    let is_open = has_error_action(command)
        || own.contains_any(&CONDITIONS)
        || brings(own)
        || shell.is_some_and(|it| brings(it.lower_text()));
    let message = "PowerShell has only the drives HKLM:\\ and HKCU:\\ of the registry: write \
        Registry::HKEY_CLASSES_ROOT\\… and the like";
    (!is_open).then_some((command.start(), message))
}

/// Roots of the registry that PowerShell has no drive for.
const MISSING: [&str; 8] = [
    "hkcr", "hku", "hkcc", "hkey_local_machine", "hkey_current_user", "hkey_classes_root",
    "hkey_users", "hkey_current_config",
];

/// The files and folders that a command makes.
fn made(command: &LintCommand) -> impl Iterator<Item = &Word> {
    let arguments = command.arguments();
    let is_cmd = command.grammar == Grammar::Cmd;
    let is_operand = |word: &&Word| !word.is_option();
    let makes_link = || command.any(|it| it.contains("link") || it == "junction");
    let target = match command.program() {
        "md" | "mkdir" => arguments.iter().find(is_operand),
        "new-item" | "ni" if !makes_link() => command.value_of(&["-path"]).or(arguments.first()),
        "expand-archive" => command.value_of(&["-destinationpath"]),
        "copy" | "xcopy" | "move" if is_cmd && arguments.len() > 1 => {
            arguments.iter().rfind(is_operand)
        }
        _ => output(command),
    };
    let has_input = command.has_input;
    let files = command.files.iter().filter(move |_| !has_input);
    target.into_iter().chain(files)
}

/// True for a path that begins with a drive other than C:.
fn is_on_other_drive(word: &Word) -> bool {
    let mut path = word.value.chars();
    let drive = path.next();
    let is_other =
        drive.is_some_and(|it| it.is_ascii_alphabetic() && !it.eq_ignore_ascii_case(&'c'));
    is_other && path.next() == Some(':') && matches!(path.next(), None | Some('\\' | '/'))
}
