//! Checks that the image has the program that its containers run, and its user. Otherwise a mistake
//! shows only on Windows, when the first container starts.

use std::path::Path;

use wincimg_common::diagnose::{Problem, closest_match};
use wincimg_images::shim::{self, Shim};
use wincimg_layer::DiskSource;
use wincimg_registry::{Presence, UnknownBase};
use wincimg_shim::args::UsageError;
use wincimg_windows::account::{find_account, missing_account};
use wincimg_windows::path::ImagePath;

use super::plan::Plan;
use super::source::FileSource;
use super::text::Text;
use super::{PlannedEntry, Recipe, Result};

impl Plan {
    /// The shim, if it is the entry point.
    fn shim(&self) -> Option<Shim> {
        let container = self.container();
        let entrypoint = container.entrypoint.unwrap_or_default();
        let cmd = container.cmd.unwrap_or_default();
        shim::detect(&entrypoint, &cmd, &container.env)
    }

    /// The reason why the shim, as its entry point, would refuse to start. A program that is not
    /// named may be an argument of each container.
    fn shim_problem(&self) -> Option<String> {
        let problem = self.shim()?.problem?;
        let is_open = problem == UsageError::NothingToRun.to_string();
        (!is_open).then(|| format!("the shim will not start: {problem}"))
    }

    /// A warning if the shim, as its entry point, would refuse to start.
    pub fn shim_warning(&self) -> Option<String> {
        let problem = self.shim_problem()?;
        Some(format!(
            "containers of {} end at once: {problem}",
            self.name
        ))
    }
}

impl Recipe {
    /// Rejects a program in a folder that the recipe fills but that does not contain it, and the shim
    /// without its file. Skipped where the base (other than by short name), commands or instructions
    /// may provide the program. Options that the shim refuses are rejected on every base.
    pub(super) fn check_program(
        &self,
        plan: &Plan,
        base: &str,
        entrypoint: Option<&[Text]>,
    ) -> Result<()> {
        let error_at = |place: usize, problem: String| {
            let text = entrypoint.and_then(|words| words.get(place));
            let offset = text.map_or(0, |text| text.offset);
            self.origin.error_at(offset, problem)
        };
        if entrypoint.is_some()
            && let Some(problem) = plan.shim_problem()
        {
            return Err(error_at(0, problem));
        }
        let Some((place, word)) = program(plan) else {
            return Ok(());
        };
        if base.contains(['/', ':']) || !plan.steps.is_empty() || plan.instructions.is_some() {
            return Ok(());
        }
        let error = |problem: String| error_at(place, problem);
        let is_added = |file: &PlannedEntry| {
            is_windows_powershell(file.path.name())
                || file.source().is_some_and(FileSource::may_be_folder)
        };
        if base == "nanoserver" && is_windows_powershell(word) && !plan.files.iter().any(is_added) {
            let hint = "use the base servercore, or add PowerShell 7 (pwsh)";
            return Err(error("Nano Server has no PowerShell".to_owned()).hint(hint));
        }
        let program = match collapsed(word).parse::<ImagePath>() {
            Ok(program) => program,
            // Windows searches PATH and the working directory for other names.
            Err(_) if !is_on_drive_c(word) => return Ok(()),
            Err(problem) => return Err(error(problem.to_string())),
        };
        if program.is_of_windows() {
            return Ok(());
        }
        let is_above = |file: &&PlannedEntry| {
            let inside = program.strip_prefix(&file.path);
            inside.is_some_and(|inside| !inside.is_empty())
                && file.source().is_some_and(|source| !source.may_be_folder())
        };
        if let Some(folder) = plan.files.iter().find(is_above) {
            let path = &folder.path;
            let hint = format!(r"for a folder, write to = '{path}\'");
            return Err(error(format!("{path} is a file, not the folder of {program}")).hint(hint));
        }
        let Some(lacking) = lacking_folders(plan, &program) else {
            return Ok(());
        };
        if let Some(hint) = missing_shim(plan, &program) {
            return Err(error(format!("no file adds the shim {program}")).hint(hint));
        }
        not_found(&program, &lacking)
            .map_or(Ok(()), |(problem, hint)| Err(error(problem).hint_if(hint)))
    }

    /// Rejects a user that Windows does not have, on a base by short name without other programs.
    /// Commands may create one.
    pub(super) fn check_user(&self, plan: &Plan, base: &str, user: Option<&Text>) -> Result<()> {
        let Some(text) = user.filter(|_| plan.steps.is_empty()) else {
            return Ok(());
        };
        let of_base = &plan.base;
        let is_plain = !base.contains(['/', ':'])
            && of_base.os_version.is_some()
            && of_base.is_windows_alone();
        let found = find_account(&text.value, of_base.user.as_deref(), &UnknownBase, is_plain);
        if found.is_ok_and(|found| found == Presence::Absent) {
            let (problem, hint) = missing_account(&text.value);
            return Err(self.error(text, problem).hint(hint));
        }
        Ok(())
    }
}

/// Returns true for a full path on drive C, valid or not.
fn is_on_drive_c(text: &str) -> bool {
    let is_separator = |character| matches!(character, '/' | '\\');
    let drive = text.split_at_checked(2);
    drive.is_some_and(|(drive, rest)| {
        drive.eq_ignore_ascii_case("c:") && rest.starts_with(is_separator)
    })
}

/// A full path on drive C without what Windows ignores: repeated separators and single dots.
fn collapsed(text: &str) -> String {
    if !is_on_drive_c(text) {
        return text.to_owned();
    }
    let names = text.split(['/', '\\']);
    let names: Vec<&str> = names.filter(|name| !matches!(*name, "" | ".")).collect();
    names.join(r"\")
}

/// The program that a container runs (the one after the shim's `--`, if the shim comes first) and
/// its index in the entry point.
fn program(plan: &Plan) -> Option<(usize, &str)> {
    let words = plan.entrypoint.as_ref()?;
    let is_shim = plan.files.iter().any(|file| {
        file.source() == Some(&FileSource::Shim)
            && words
                .first()
                .and_then(|word| word.parse().ok())
                .is_some_and(|word: ImagePath| word == file.path)
    });
    let place = if is_shim {
        words.iter().position(|word| word == "--")? + 1
    } else {
        0
    };
    Some((place, words.get(place)?.as_str()))
}

/// A folder that would contain a program but lacks it.
struct LackingFolder<'p> {
    /// Its source, or the folder of the image with another program.
    folder: String,
    /// The program's path in it.
    inside: &'p [String],
    /// Whether a folder has the program's path.
    is_folder: bool,
    /// The names next to the program, or in that folder.
    names: Vec<String>,
}

/// The folders that would contain a program but lack it; none if a file is the program, or an archive
/// or image may have it.
fn lacking_folders<'p>(plan: &'p Plan, program: &'p ImagePath) -> Option<Vec<LackingFolder<'p>>> {
    let with_extension = format!("{}.EXE", program.key());
    let mut lacking = Vec::new();
    for file in &plan.files {
        let Some(source) = file.source() else {
            continue;
        };
        let Some(inside) = program.strip_prefix(&file.path) else {
            if file.path.key() == with_extension {
                return None;
            }
            let is_image = plan.base.os_version.is_some() && !source.may_be_folder();
            lacking.extend(folder_of(&file.path, program).filter(|_| is_image));
            continue;
        };
        let FileSource::Folder(source) = source else {
            return None;
        };
        match find_program(source, inside) {
            Ok(()) => return None,
            Err((names, is_folder)) => lacking.push(LackingFolder {
                folder: source.path.display().to_string(),
                inside,
                is_folder,
                names,
            }),
        }
    }
    Some(lacking)
}

/// The folder of a program that has another one. At the top of the drive, the base may have more.
fn folder_of<'p>(other: &ImagePath, program: &'p ImagePath) -> Option<LackingFolder<'p>> {
    let folder = program.parent()?;
    let is_beside = !folder.components().is_empty()
        && other.strip_prefix(&folder)?.len() == 1
        && is_program(other.name());
    is_beside.then_some(LackingFolder {
        inside: program.strip_prefix(&folder)?,
        folder: folder.to_string(),
        is_folder: false,
        names: vec![other.name().to_owned()],
    })
}

/// Describes a program that its folders lack, with a hint.
fn not_found(
    program: &ImagePath,
    lacking: &[LackingFolder<'_>],
) -> Option<(String, Option<String>)> {
    let found = lacking.first()?;
    let problem = if found.is_folder {
        format!("program \"{program}\" is a folder")
    } else {
        let inside = found.inside.join(r"\");
        format!("program \"{inside}\" not found in {}", found.folder)
    };
    let name = found.inside.last().map_or("", String::as_str);
    let all = || lacking.iter().flat_map(|folder| &folder.names);
    let names = || all().map(String::as_str);
    let programs: Vec<&str> = names().filter(|name| is_program(name)).take(5).collect();
    let hint = match closest_match(name, names()) {
        Some(near) => Some(format!("did you mean {near:?}?")),
        None if programs.is_empty() => None,
        None => Some(format!(
            "the folder has these programs: {}",
            programs.join(", ")
        )),
    };
    Some((problem, hint))
}

/// What adds a program that is the shim, by its path or the name of its file; none for others.
fn missing_shim(plan: &Plan, program: &ImagePath) -> Option<String> {
    if program.to_string().eq_ignore_ascii_case(shim::PATH) {
        return Some(format!("add to the recipe: {}", shim_entry()));
    }
    let mut files = plan.files.iter();
    let added = files.find(|file| file.source() == Some(&FileSource::Shim))?;
    let is_named = added.path.name().eq_ignore_ascii_case(program.name());
    is_named.then(|| format!("begin entrypoint with '{}'", added.path))
}

/// The entry that adds the shim.
pub(super) fn shim_entry() -> String {
    format!("[[files]] embedded = \"shim\", to = '{}'", shim::PATH)
}

/// Finds a file with names compared as Windows does; otherwise returns the names in its folder, or in
/// the folder of that name, and which it is. Windows adds `.exe` to a program without an extension.
fn find_program(folder: &DiskSource, names: &[String]) -> Result<(), (Vec<String>, bool)> {
    let names_in = |folder: &DiskSource| -> Vec<String> {
        let entries = folder.list().unwrap_or_default().into_iter();
        entries
            .filter_map(|entry| entry.name.into_string().ok())
            .collect()
    };
    let is_folder = |at: &DiskSource| at.metadata().is_ok_and(|found| found.is_dir());
    let mut folder = folder.clone();
    for (index, name) in names.iter().enumerate() {
        let is_last = index + 1 == names.len();
        let there = names_in(&folder);
        let fits = |other: &&String| {
            other.eq_ignore_ascii_case(name)
                || (is_last && other.eq_ignore_ascii_case(&format!("{name}.exe")))
        };
        let found = there.iter().filter(fits);
        match found.min_by_key(|found| is_last == is_folder(&folder.join(found))) {
            Some(found) => folder = folder.join(found),
            None => return Err((there, false)),
        }
    }
    if is_folder(&folder) {
        return Err((names_in(&folder), true));
    }
    Ok(())
}

fn is_windows_powershell(word: &str) -> bool {
    let mut names = ["powershell", "powershell.exe"].iter();
    names.any(|name| name.eq_ignore_ascii_case(word))
}

fn is_program(name: &str) -> bool {
    let extension = Path::new(name).extension();
    extension.is_some_and(|extension| {
        ["exe", "cmd", "bat", "com"]
            .iter()
            .any(|own| extension.eq_ignore_ascii_case(own))
    })
}

impl Plan {
    /// Rejects a plan that requires Windows on a base without it.
    pub fn check_base(&self) -> Result<()> {
        let refused = |what: &str, reason: &str| {
            let problem =
                format!("{what} cannot be in an image for HostProcess containers: {reason}");
            Err(Problem::request("base/no-windows", problem)
                .hint("remove it, or build on a base with Windows, such as nanoserver"))
        };
        if self.base.os_version.is_some() {
            return Ok(());
        }
        if self.shutdown_timeout.is_some() {
            return refused(
                "shutdown_timeout",
                "it is two registry values, and the container uses the host's registry",
            );
        }
        if !self.certificates.is_empty() {
            return refused(
                "certificates",
                "they are registry values, and the container uses the host's registry",
            );
        }
        if !self.services.is_empty() {
            return refused("services", "the host's services run instead");
        }
        if self.path.is_some() {
            return refused("path", "the container has the host's PATH");
        }
        let in_layers = self.instruction_layers().flat_map(|layer| &layer.registry);
        if let Some(edit) = self.registry.iter().chain(in_layers).next() {
            return refused(
                &format!("the registry change \"{edit}\""),
                "the container uses the host's registry, and Windows rejects changes to hives without content",
            );
        }
        if self.iis.is_some() || self.requires_server_config() {
            return refused("iis", "the image has no IIS");
        }
        if !self.steps.is_empty() {
            return refused("run", "the image has no Windows to run commands");
        }
        let settings = self.shim().and_then(|shim| shim.settings);
        if settings.is_some_and(|settings| settings.stop_timeout.is_none()) {
            return refused(
                "the shim without --stop-timeout",
                "it reads the timeout from the registry, and the container uses the host's",
            );
        }
        Ok(())
    }

    /// A warning if its user is an account that a HostProcess container does not have.
    pub fn user_warning(&self) -> Option<String> {
        if self.base.os_version.is_some() {
            return None;
        }
        let user = self.container().user?;
        let name = user.rsplit('\\').next()?;
        let mut of_containers = ["ContainerUser", "ContainerAdministrator"].iter();
        of_containers.any(|account| name.eq_ignore_ascii_case(account)).then(|| {
            format!(
                r"hosts have no user {user}: HostProcess containers run as NT AUTHORITY\SYSTEM, NT AUTHORITY\LocalService, NT AUTHORITY\NetworkService or a local group of the host; change user, or set runAsUserName in each pod"
            )
        })
    }
}

#[cfg(test)]
mod tests;
