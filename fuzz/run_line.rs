//! A RUN line on an image with programs, of which nothing else is known.

use wincimg_registry::{KeyPath, Presence, RegistryData};
use wincimg_scripts::{
    EntryKind, ImageAction, ImageState, Lookup, RunCommand, RunEnvironment, ScriptError, run_line,
};
use wincimg_windows::path::ImagePath;

struct Unknown;

impl ImageState for Unknown {
    fn entry(&self, path: &ImagePath) -> Lookup<EntryKind> {
        // Without its shell, a line fails before it is read.
        if path.to_string().to_lowercase().ends_with(".exe") {
            Presence::Present(EntryKind::File(()))
        } else {
            Presence::Absent
        }
    }

    fn names(&self, _: &ImagePath) -> Lookup<Vec<String>> {
        Presence::Absent
    }

    fn content(&self, _: &ImagePath) -> Lookup<Vec<u8>> {
        Presence::Absent
    }

    fn user_variable(&self, _: &ImagePath, _: &str) -> Lookup<RegistryData> {
        Presence::Absent
    }

    fn value(&self, _: &KeyPath, _: &str) -> Lookup<RegistryData> {
        Presence::Unknown
    }

    fn key(&self, _: &KeyPath) -> Lookup<()> {
        Presence::Unknown
    }

    fn is_own(&self, _: &ImagePath) -> bool {
        true
    }

    fn apply(&mut self, _: ImageAction) -> Result<(), ScriptError> {
        Ok(())
    }
}

pub(crate) fn run(shell: &[&str], text: &str) {
    let shell: Vec<String> = shell.iter().map(|word| (*word).to_owned()).collect();
    let setting = RunEnvironment {
        variables: &|_| None,
        folder: &ImagePath::drive(),
        user: None,
    };
    let command = RunCommand::Shell {
        shell: &shell,
        text,
    };
    drop(run_line(command, setting, &mut Unknown));
}
