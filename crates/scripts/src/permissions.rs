//! Permissions of users who are not administrators. Lines of Nano Server run as `ContainerUser` by
//! default.
//!
//! Every user may read, and create files and folders in the root of the drive and in folders that a
//! build creates there. Only administrators may change Windows, its programs and its registry. Any
//! other case is an error.

use wincimg_windows::access::{AccessChange, AccessEdit, DescriptorEdit};
use wincimg_windows::path::ImagePath;

use super::error::{Result, ScriptError};
use super::image::{EntryKind, ImageAction, Lookup, PendingDownload};
use super::process::Process;

/// Folders that only administrators may write to.
const ADMINISTRATOR_FOLDERS: [&str; 4] = [
    "Windows",
    "Program Files",
    "Program Files (x86)",
    "System Volume Information",
];

const HELP: &str = "put USER ContainerAdministrator before the line and restore the user after it";

/// Refuses an action that the user may not do, or for which that is unknown.
pub(super) fn check(machine: &Process<'_>, action: &ImageAction) -> Result<()> {
    match action {
        ImageAction::MakeFolder(path) => match machine.entry(path) {
            Lookup::Present(_) => Ok(()),
            _ => may_make(machine, path),
        },
        ImageAction::Write { path, .. }
        | ImageAction::Append { path, .. }
        | ImageAction::CopyPackage { path, .. }
        | ImageAction::Download { path, .. } => may_write(machine, path),
        // It takes the privilege SeCreateSymbolicLink.
        ImageAction::Link(_) => Err(denied(machine, "create symbolic links")),
        ImageAction::Copy { to, .. } => may_write(machine, to),
        ImageAction::Move { from, to } => {
            may_change(machine, from)?;
            may_write(machine, to)
        }
        ImageAction::Delete(path) => may_change(machine, path),
        ImageAction::Install(_) => Err(denied(machine, "install a package for the machine")),
        ImageAction::Unpack(unpack) => may_write(machine, &unpack.into),
        ImageAction::Registry(_)
        | ImageAction::Certificate { .. }
        | ImageAction::ChocolateyFeature { .. }
        | ImageAction::Service(_)
        | ImageAction::DeleteService(_)
        | ImageAction::Iis(_) => Err(denied(machine, "change the machine's settings")),
        ImageAction::Access(AccessChange::Edit(AccessEdit {
            edit: DescriptorEdit::Owner(_),
            ..
        })) => Err(denied(machine, "set the owner of files")),
        ImageAction::Access(change) => may_change(machine, change.path()),
        // The hive is the user's own.
        ImageAction::UserVariable { .. }
        | ImageAction::Verify { .. }
        | ImageAction::Unclear(_)
        | ImageAction::Note(_)
        | ImageAction::Log(_)
        | ImageAction::Skip(_) => Ok(()),
    }
}

/// Checks a write to a path that may exist.
fn may_write(machine: &Process<'_>, path: &ImagePath) -> Result<()> {
    match machine.entry(path) {
        Lookup::Absent | Lookup::Deferred(PendingDownload) => may_make(machine, path),
        Lookup::Present(EntryKind::Folder) if !is_guarded(path) => Ok(()),
        _ => may_change(machine, path),
    }
}

fn may_make(machine: &Process<'_>, path: &ImagePath) -> Result<()> {
    if machine.variables.is_profile_folder(path) || is_in_profile(machine, path) {
        return Ok(());
    }
    if is_guarded(path) {
        return Err(denied(machine, &format!("write {path}")));
    }
    let is_unclear = match path.components() {
        // Every user may create files in this folder, but not in those of it.
        [first, _] if first.eq_ignore_ascii_case("ProgramData") => false,
        _ => path.is_of_windows() && !is_temp(path),
    };
    let folder = path.parent();
    if is_unclear && folder.is_some_and(|folder| !machine.image.is_own(&folder)) {
        return Err(unclear(machine, path));
    }
    Ok(())
}

/// Checks a change or removal of an existing path.
fn may_change(machine: &Process<'_>, path: &ImagePath) -> Result<()> {
    if is_in_profile(machine, path) || machine.image.is_own(path) {
        return Ok(());
    }
    if is_guarded(path) {
        return Err(denied(machine, &format!("change {path}")));
    }
    match machine.entry(path) {
        Lookup::Absent | Lookup::Deferred(PendingDownload) => Ok(()),
        _ => Err(unclear(machine, path)),
    }
}

fn is_guarded(path: &ImagePath) -> bool {
    let first = path.components().first();
    let mut guarded = ADMINISTRATOR_FOLDERS.iter();
    first.is_some_and(|first| guarded.any(|name| name.eq_ignore_ascii_case(first)))
        && !is_temp(path)
}

/// Returns true in `C:\Windows\Temp`, where every user may create files and folders.
fn is_temp(path: &ImagePath) -> bool {
    matches!(path.components(), [first, second, _, ..]
        if first.eq_ignore_ascii_case("Windows") && second.eq_ignore_ascii_case("Temp"))
}

fn is_in_profile(machine: &Process<'_>, path: &ImagePath) -> bool {
    let home = machine.variables.profile();
    let home = home.and_then(|home| home.parse::<ImagePath>().ok());
    home.is_some_and(|home| super::process::is_within(path, &home))
}

fn denied(machine: &Process<'_>, what: &str) -> ScriptError {
    let user = machine.variables.user();
    ScriptError::fails(format!("{user} may not {what}")).help(HELP)
}

fn unclear(machine: &Process<'_>, path: &ImagePath) -> ScriptError {
    let user = machine.variables.user();
    ScriptError::unclear(format!(
        "whether {user} may change {path} depends on its owner and permissions"
    ))
    .help(HELP)
}
