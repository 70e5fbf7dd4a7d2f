//! Lines that require Windows, or Linux, on any base.

use std::cell::Cell;
use std::collections::BTreeSet;

use wincimg_recipe::CommandForm;
use wincimg_registry::{KeyPath, RegistryData};
use wincimg_scripts::{
    EntryKind, ImageAction, ImageState, InstallAction, InstallerProgram, Lookup, PackageFeed,
    RunEnvironment, ScriptError, ScriptErrorKind, run_line,
};
use wincimg_windows::path::ImagePath;

use super::command;
use crate::stages::choco_feed::ChocoFeed;
use crate::stages::state::StageState;

/// Error for a line that requires Windows on any base and, if the shell is unknown, in any shell; one
/// that requires Linux; or one whose installer is known only with its file.
pub(in crate::stages) fn needs_system(
    program: &CommandForm,
    shell: Option<&[String]>,
    feed: Option<&ChocoFeed>,
    scripts: &BTreeSet<String>,
) -> Option<ScriptError> {
    let folder = ImagePath::drive();
    let setting = RunEnvironment {
        variables: &|_| None,
        folder: &folder,
        user: None,
    };
    let asked = |shell: &[String]| {
        let mut image = KnownFolders {
            folders: &[],
            is_draft: true,
            scripts,
            feed,
            has_installer: Cell::new(false),
            packages: None,
        };
        let failure = run_line(command(program, shell), setting, &mut image).err();
        failure.filter(|it| match it.kind {
            ScriptErrorKind::NeedsWindows | ScriptErrorKind::NeedsLinux => true,
            ScriptErrorKind::NotKnown => image.has_installer.get(),
            _ => false,
        })
    };
    if let Some(shell) = shell {
        return asked(shell);
    }
    let in_cmd = asked(&["cmd", "/S", "/C"].map(str::to_owned));
    let in_powershell = asked(&["powershell", "-Command"].map(str::to_owned));
    // What one shell says is enough.
    if let Some(found) = [&in_cmd, &in_powershell]
        .into_iter()
        .flatten()
        .find(|it| it.kind != ScriptErrorKind::NeedsWindows)
    {
        return Some(found.clone());
    }
    let (in_cmd, in_powershell) = in_cmd.zip(in_powershell)?;
    // In cmd a cmdlet or a variable is an ordinary program.
    let CommandForm::Shell(text) = program else {
        return Some(in_cmd);
    };
    let name = text.split_whitespace().next().unwrap_or_default();
    let is_script =
        name.starts_with(['$', '[', '&']) || name.contains('-') && !name.contains(['.', '\\']);
    Some(if is_script { in_powershell } else { in_cmd })
}

/// Packages that a line may install.
pub(crate) trait KnownPackages {
    /// Returns true for a package at a path.
    fn has(&self, path: &ImagePath) -> bool;

    /// Installs one.
    fn install(&mut self, install: &InstallAction) -> Result<(), ScriptError>;
}

/// Error of a line on an image that has these folders and packages, and unknown other contents.
pub(crate) fn script_error(
    state: &StageState,
    program: &CommandForm,
    shell: &[String],
    folders: &[ImagePath],
    packages: &mut dyn KnownPackages,
) -> Option<ScriptError> {
    let folder = state.working_dir().ok()?;
    let setting = RunEnvironment {
        variables: &|name| state.known_variable(name),
        folder: &folder,
        user: state.config.user.as_deref(),
    };
    let mut image = KnownFolders {
        folders,
        is_draft: false,
        scripts: &BTreeSet::new(),
        feed: None,
        has_installer: Cell::new(false),
        packages: Some(packages),
    };
    run_line(command(program, shell), setting, &mut image).err()
}

/// An image with these folders, their parents, and unknown other contents.
struct KnownFolders<'a> {
    folders: &'a [ImagePath],
    /// True if the line is evaluated again once the contents are known.
    is_draft: bool,
    /// Names of batch files that it may have anywhere, in lower case.
    scripts: &'a BTreeSet<String>,
    feed: Option<&'a ChocoFeed>,
    /// True if a line runs a program that may be an installer.
    has_installer: Cell<bool>,
    packages: Option<&'a mut dyn KnownPackages>,
}

impl ImageState for KnownFolders<'_> {
    fn entry(&self, path: &ImagePath) -> Lookup<EntryKind> {
        if self
            .folders
            .iter()
            .any(|folder| folder.strip_prefix(path).is_some())
        {
            return Lookup::Present(EntryKind::Folder);
        }
        if self.packages.as_ref().is_some_and(|it| it.has(path)) {
            return Lookup::Present(EntryKind::File(()));
        }
        let name = path.components().last().map(|name| name.to_lowercase());
        if name.is_some_and(|name| self.scripts.contains(&name)) {
            return Lookup::Present(EntryKind::File(()));
        }
        Lookup::Unknown
    }

    fn names(&self, _: &ImagePath) -> Lookup<Vec<String>> {
        Lookup::Unknown
    }

    fn content(&self, _: &ImagePath) -> Lookup<Vec<u8>> {
        Lookup::Unknown
    }

    fn user_variable(&self, _: &ImagePath, _: &str) -> Lookup<RegistryData> {
        Lookup::Absent
    }

    fn value(&self, _: &KeyPath, _: &str) -> Lookup<RegistryData> {
        Lookup::Unknown
    }

    fn key(&self, _: &KeyPath) -> Lookup<()> {
        Lookup::Unknown
    }

    fn setup_program(&self, _: &ImagePath) -> Lookup<InstallerProgram> {
        if self.is_draft {
            self.has_installer.set(true);
            Lookup::Unknown
        } else {
            Lookup::Absent
        }
    }

    fn feed(&self) -> PackageFeed {
        self.feed.map(ChocoFeed::packages).unwrap_or_default()
    }

    fn is_own(&self, _: &ImagePath) -> bool {
        true
    }

    fn apply(&mut self, action: ImageAction) -> Result<(), ScriptError> {
        match (action, &mut self.packages) {
            (ImageAction::Install(install), Some(packages)) => packages.install(&install),
            _ => Ok(()),
        }
    }
}
