//! `USER` with an account that no Windows image has and no line creates.

use std::cell::LazyCell;
use std::collections::HashMap;

use wincimg_windows::account::is_known_account;

use super::prelude::*;
use super::unix;
use crate::source::Dockerfile;

/// Parts of a line that may create accounts that it does not name.
const CREATORS: [&str; 10] = [
    ".ps1", ".bat", ".cmd", "iex", "invoke-expression", "net user", "net.exe user", "localuser",
    "winnt:", "python",
];

/// The names in the `RUN` lines of a stage, each with the number of the first step that has it.
#[derive(Debug, Default)]
pub(super) struct RunNames {
    names: HashMap<String, usize>,
    /// The first step that may create any account.
    creator: Option<usize>,
}

impl RunNames {
    pub(super) fn read(steps: &[LintStep<'_>]) -> Self {
        let mut found = Self::default();
        let runs = steps.iter().enumerate();
        for (place, step) in runs.filter(|(_, step)| step.is("RUN")) {
            let text = step.lower_full_text();
            if text.contains_any(&CREATORS) {
                found.creator = Some(place);
                break;
            }
            for word in text.split(|c| !is_of_name(c)) {
                let whole = word.trim_matches(PUNCTUATION);
                for name in word.split(PUNCTUATION).chain([whole]) {
                    found.names.entry(name.to_owned()).or_insert(place);
                }
            }
        }
        found
    }

    /// Returns true if one of the first steps may create an account.
    fn has(&self, name: &str, steps: usize) -> bool {
        let named = self.names.get(name).copied();
        let mut places = named.into_iter().chain(self.creator);
        places.any(|place| place < steps)
    }
}

/// Characters of names that also separate them.
const PUNCTUATION: [char; 3] = ['_', '-', '.'];

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || PUNCTUATION.contains(&c)
}

pub(super) fn check(it: &EvaluatedStep<'_>) -> Option<Finding> {
    let InstructionKind::User(text) = it.kind else {
        return None;
    };
    if text.starts_with("[\"") {
        let message = "USER takes a name, and not an array: write it without brackets and quotes";
        return Some(it.step.finding(message));
    }
    let user = it.expand(text)?;
    // Windows takes no group.
    let name = user.text.split(':').next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    let is_name = !name.is_empty()
        && name.chars().all(is_of_name)
        && !name.chars().all(|c| c.is_ascii_digit());
    let is_open = !user.unset.is_empty() || !is_name || is_known_account(&name);
    let message = format!(
        "the image has no user \"{}\", and containers do not start: create it with net user, or \
         use ContainerAdministrator or ContainerUser",
        user.text
    );
    (!is_open && !may_exist(it, &name)).then(|| it.step.finding(message))
}

/// Reports a command that only an administrator may run, in a line of `ContainerUser`.
pub(super) fn check_rights(
    linted: &LintFile<'_>,
    stage: &Stage<'_>,
    step: &LintStep<'_>,
) -> Option<Finding> {
    let is_open = LazyCell::new(|| {
        step.lower_text().contains_any(&CONDITIONS) || linted.rights().changes_folders
    });
    let (command, severity, what) = step.find_map(|command| {
        if let Some(severity) = of_administrator(command) {
            return Some((command, severity, command.program().to_owned()));
        }
        let folder = made_folder(stage, command).filter(|_| !*is_open)?;
        let what = format!("{} {}", command.program(), folder.value);
        Some((command, Severity::Error, what))
    })?;
    let message = format!(
        "{what} requires an administrator, and this runs as ContainerUser: put it above USER, or USER \
         ContainerAdministrator above it"
    );
    let found = step.finding_at(command.start(), message).of("failing-run");
    (!linted.rights().names_administrators).then(|| found.severity(severity))
}

/// What the lines of a file tell of rights.
pub(super) struct FileRights {
    /// True if one names the group of administrators.
    pub(super) names_administrators: bool,
    /// True if one may change the rights of a folder.
    changes_folders: bool,
    /// Users of Linux that one may create on Windows.
    pub(super) created_users: Vec<&'static str>,
}

impl FileRights {
    pub(super) fn read(file: &Dockerfile<'_>) -> Self {
        let text = file.lower_text();
        Self {
            names_administrators: text.contains("administrators"),
            changes_folders: text.contains_any(&RIGHTS_COMMANDS),
            created_users: unix::created_users(text),
        }
    }
}

/// Folders of Windows and its programs, in which only administrators make folders. Those below may have
/// other rights.
const ADMINISTRATOR_FOLDERS: [&str; 8] = [
    r"c:\program files",
    r"c:\program files (x86)",
    r"c:\windows",
    r"c:\windows\system32",
    "%programfiles%",
    "%programfiles(x86)%",
    "%windir%",
    "%systemroot%",
];

/// Parts of a file that may change the rights of a folder.
const RIGHTS_COMMANDS: [&str; 4] = ["cacls", "set-acl", "setaccess", "takeown"];

/// Parts of a line that may make no folder where there is one.
const CONDITIONS: [&str; 6] = ["if ", "if(", "test-path", "try", "-force", "-erroraction"];

/// A folder that a command makes where only administrators do, on an image of Microsoft.
fn made_folder<'a>(stage: &Stage<'_>, command: &'a LintCommand) -> Option<&'a Word> {
    // What follows may expect that it fails.
    let ends_line = match command.next {
        NextOperator::End | NextOperator::And => true,
        NextOperator::Other => command.grammar.is_powershell(),
        NextOperator::Or | NextOperator::Pipe => false,
    };
    let makes = ends_line && matches!(command.program(), "md" | "mkdir");
    if !makes || !stage.is_of_microsoft() {
        return None;
    }
    command.arguments().iter().find(|word| {
        let path = word.value.replace('/', "\\").to_ascii_lowercase();
        let path = path.trim_end_matches('\\');
        let parent = path.rsplit_once('\\').map(|(parent, _)| parent);
        parent.is_some_and(|parent| ADMINISTRATOR_FOLDERS.contains(&parent))
    })
}

/// The severity of a command, if only an administrator may run it; a package may be for a user.
fn of_administrator(command: &LintCommand) -> Option<Severity> {
    Some(match command.program() {
        "install-windowsfeature"
        | "add-windowsfeature"
        | "enable-windowsoptionalfeature"
        | "new-localuser" => Severity::Error,
        "dism" if command.has(&["/online"]) => Severity::Error,
        "net" if command.has(&["user", "localgroup"]) && command.has(&["/add"]) => Severity::Error,
        "msiexec" if command.has(&["/i", "/package"]) => Severity::Warning,
        _ => return None,
    })
}

/// Returns true if the base, or a line before this one, may create an account.
fn may_exist(it: &EvaluatedStep<'_>, name: &str) -> bool {
    let before = it.stage.before(it.step).len();
    let mut below = it.linted.chain(it.stage).skip(1);
    it.stage.run_names().has(name, before)
        || below.any(|stage| stage.run_names().has(name, stage.steps.len()))
        || it
            .linted
            .base_image(it.stage)
            .is_none_or(|reference| !(reference.is_windows_base() || reference.is_of_microsoft()))
}
