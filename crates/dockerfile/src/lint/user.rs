//! `USER` with an account that no Windows image has and no line creates.

use super::evaluation::EvaluatedStep;
use super::stage::LintStep;
use super::words::LintCommand;
use super::{ContainsAny, Finding, Severity};
use crate::instruction::InstructionKind;
use crate::stages::is_known_account;

/// Parts of a line that may create accounts that it does not name.
const CREATORS: [&str; 10] = [
    ".ps1", ".bat", ".cmd", "iex", "invoke-expression", "net user", "net.exe user", "localuser",
    "winnt:", "python",
];

pub(super) fn check(it: &EvaluatedStep<'_>) -> Option<Finding> {
    let InstructionKind::User(text) = it.kind else {
        return None;
    };
    let user = it.expand(text)?;
    let name = user.text.to_ascii_lowercase();
    let is_name = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-.".contains(c))
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
pub(super) fn check_rights(step: &LintStep<'_>) -> Option<Finding> {
    let (command, severity) = step.commands().iter().find_map(of_administrator)?;
    let message = format!(
        "{} requires an administrator, and this runs as ContainerUser: put it above USER, or USER \
         ContainerAdministrator above it",
        command.program()
    );
    let found = step.finding_at(command.start(), message).of("failing-run");
    let is_open = step.file.lower_text().contains("administrators");
    (!is_open).then(|| found.severity(severity))
}

/// The command, if only an administrator may run it; a package may be for a user.
fn of_administrator(command: &LintCommand) -> Option<(&LintCommand, Severity)> {
    let severity = match command.program() {
        "install-windowsfeature"
        | "add-windowsfeature"
        | "enable-windowsoptionalfeature"
        | "new-localuser" => Severity::Error,
        "dism" if command.has(&["/online"]) => Severity::Error,
        "net" if command.has(&["user", "localgroup"]) && command.has(&["/add"]) => Severity::Error,
        "msiexec" if command.has(&["/i", "/package"]) => Severity::Warning,
        _ => return None,
    };
    Some((command, severity))
}

/// Returns true if the base, or a line before this one, may create an account.
fn may_exist(it: &EvaluatedStep<'_>, name: &str) -> bool {
    let creates = |text: &str| text.contains(name) || text.contains_any(&CREATORS);
    let below = it.linted.chain(it.stage).skip(1);
    let before = it.stage.before(it.step).iter();
    let mut before = before.chain(below.flat_map(|stage| &stage.steps));
    before.any(|step| step.is("RUN") && creates(step.lower_full_text()))
        || it
            .linted
            .base_image(it.stage)
            .is_none_or(|reference| !(reference.is_windows_base() || reference.is_of_microsoft()))
}
