//! Where Windows finds a program.

use wincimg_windows::path::ImagePath;

use super::super::error::{self, Result, ScriptError};
use super::super::image::{EntryKind, Lookup, PendingDownload};
use super::super::process::Process;
use super::{INETSRV, PROGRAM, PROGRAM_EXTENSIONS, SYSTEM, program_name};

/// Extensions of programs and scripts that are named without one.
const EXTENSIONS: [&str; 5] = [".com", ".exe", ".bat", ".cmd", ".ps1"];

/// Hint for a name of Windows' program that finds another one.
const WRITE_PATH: &str = "write the path of Windows' own program";

/// What starts a program. It decides where a name without a folder is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Starter {
    /// Windows, for `start` and `Start-Process`, and for the shell of a line: first in the folder of its
    /// programs.
    Windows,
    /// The daemon, for the exec form, which searches as Windows does.
    Daemon,
    /// cmd: first in the working folder.
    Cmd,
    /// PowerShell: only on PATH.
    PowerShell,
}

/// Checks that a name finds the program of Windows in a folder, which the base may have.
pub(super) fn check_windows_program(
    machine: &Process<'_>,
    starter: Starter,
    name: &str,
    folder: &str,
) -> Result<()> {
    let path = format!(r"{folder}\{}.exe", program_name(name));
    check_program_exists(machine, name, &path)?;
    let is_first = match starter {
        Starter::Windows | Starter::Daemon => folder == SYSTEM,
        Starter::Cmd => is_same(&machine.folder, folder),
        Starter::PowerShell => false,
    };
    if has_folder(name) || is_first {
        return Ok(());
    }
    match machine.variable("PATH") {
        Lookup::Present(path) => {
            for part in folders(&path) {
                if machine.path(part).is_ok_and(|part| is_same(&part, folder)) {
                    return Ok(());
                }
                if let Some(other) = program_in(machine, starter, part, name) {
                    let why = format!("it runs {other}, which is first on PATH");
                    return Err(ScriptError::windows(why).instead(WRITE_PATH));
                }
            }
            Err(not_on_path(machine, starter, name, folder))
        }
        Lookup::Absent => Err(not_on_path(machine, starter, name, folder)),
        Lookup::Deferred(PendingDownload) | Lookup::Unknown if folder == INETSRV => {
            error::unknown(format!("whether PATH has {INETSRV} is unknown"))
        }
        // The PATH of every Windows has the other folders.
        Lookup::Deferred(PendingDownload) | Lookup::Unknown => Ok(()),
    }
}

/// The program or script that a name without a folder runs if a folder of PATH is known to have it.
fn program_in(
    machine: &Process<'_>,
    starter: Starter,
    folder: &str,
    name: &str,
) -> Option<ImagePath> {
    let extensions: &[&str] = match starter {
        _ if name.contains('.') => &[""],
        Starter::Windows | Starter::Daemon => &[".exe"],
        Starter::Cmd => &PROGRAM_EXTENSIONS,
        Starter::PowerShell => &EXTENSIONS,
    };
    let files = extensions
        .iter()
        .map(|end| format!(r"{folder}\{name}{end}"));
    let mut paths = files.filter_map(|file| machine.path(&file).ok());
    paths.find(|path| machine.entry(path) == Lookup::Present(EntryKind::File(())))
}

/// Error for a program of Windows whose folder is not on PATH. Another program of its name may be.
fn not_on_path(machine: &Process<'_>, starter: Starter, name: &str, folder: &str) -> ScriptError {
    match find(machine, starter, name) {
        Lookup::Present(()) | Lookup::Deferred(PendingDownload) => ScriptError::windows(PROGRAM),
        Lookup::Unknown => ScriptError::unknown(format!("whether PATH has {name} is unknown")),
        Lookup::Absent => ScriptError::fails("it is not on PATH").help(match folder {
            INETSRV => r"write its path: C:\Windows\System32\inetsrv\appcmd.exe",
            _ => {
                r"add C:\Windows\System32, C:\Windows and C:\Windows\System32\WindowsPowerShell\v1.0 to PATH"
            }
        }),
    }
}

/// Checks that the base may have a program of Windows.
pub(super) fn check_program_exists(machine: &Process<'_>, name: &str, path: &str) -> Result<()> {
    let path = machine.path(path)?;
    match machine.entry(&path) {
        Lookup::Absent | Lookup::Present(EntryKind::Folder) => missing(name),
        Lookup::Unknown if machine.image.is_nano_server() && program_name(name) == "powershell" => {
            error::unknown("Nano Server has no Windows PowerShell, and what was added is unknown")
        }
        _ => Ok(()),
    }
}

/// Checks that a program that is not part of Windows exists at its path or on PATH.
pub(super) fn check_installed(machine: &Process<'_>, starter: Starter, name: &str) -> Result<()> {
    match find(machine, starter, name) {
        Lookup::Present(()) | Lookup::Deferred(PendingDownload) => Ok(()),
        Lookup::Absent | Lookup::Unknown => {
            error::unknown(format!("whether the image has {name} is unknown"))
        }
    }
}

/// Fails if the image is known not to have a program or script.
pub(super) fn check_not_missing(machine: &Process<'_>, starter: Starter, name: &str) -> Result<()> {
    match find(machine, starter, name) {
        Lookup::Absent => missing(name),
        _ => Ok(()),
    }
}

fn missing(name: &str) -> Result<()> {
    error::fails(format!("the image has no {name}"))
}

/// Looks up a program or script: in the folder of its name or, without one, on PATH and, except for
/// PowerShell, in the working folder.
pub(super) fn find(machine: &Process<'_>, starter: Starter, name: &str) -> Lookup<()> {
    let mut places = Vec::new();
    let mut found = Lookup::Absent;
    if has_folder(name) || starter != Starter::PowerShell {
        places.push(String::new());
    }
    if !has_folder(name) {
        match machine.variable("PATH") {
            Lookup::Present(path) => {
                places.extend(folders(&path).map(|part| format!(r"{part}\")));
            }
            Lookup::Absent => {}
            Lookup::Deferred(PendingDownload) | Lookup::Unknown => found = Lookup::Unknown,
        }
    }
    let is_whole = name
        .rsplit(['\\', '/'])
        .next()
        .is_some_and(|file| file.contains('.'));
    let extensions = EXTENSIONS.into_iter().chain(is_whole.then_some(""));
    for place in places {
        for extension in extensions.clone() {
            let Ok(path) = machine.path(&format!("{place}{name}{extension}")) else {
                continue;
            };
            match machine.entry(&path) {
                Lookup::Present(EntryKind::File(())) => return Lookup::Present(()),
                Lookup::Deferred(PendingDownload) => return Lookup::Deferred(PendingDownload),
                Lookup::Unknown => found = Lookup::Unknown,
                Lookup::Absent | Lookup::Present(EntryKind::Folder) => {}
            }
        }
    }
    found
}

/// The folders of a PATH.
fn folders(path: &str) -> impl Iterator<Item = &str> {
    let parts = path.split(';').map(|part| part.trim_matches('"'));
    parts.filter(|part| !part.is_empty())
}

fn has_folder(name: &str) -> bool {
    name.contains(['\\', '/', ':'])
}

/// Returns true for `appcmd` if the working folder has it: PowerShell does not search there.
pub(in super::super) fn is_in_working_folder(machine: &Process<'_>, name: &str) -> bool {
    program_name(name) == "appcmd" && is_same(&machine.folder, INETSRV)
}

fn is_same(path: &ImagePath, folder: &str) -> bool {
    path.to_string().eq_ignore_ascii_case(folder)
}
