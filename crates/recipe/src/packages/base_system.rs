//! What a package asks of the image below it.

use wincimg_msi::InstalledSystem;
use wincimg_registry::name_folding::eq_ignore_case;
use wincimg_registry::{BaseKey, KeyPath, Presence, RegistryData, Root};
use wincimg_windows::base_contents::{BaseContents, FileKind};
use wincimg_windows::path::ImagePath;

use super::refused;
use crate::Result;
use crate::container::variable;

/// Hives that packages ask about.
pub(crate) const HIVES: [Root; 2] = [Root::System, Root::Software];

const MSIEXEC: &str = r"C:\Windows\System32\msiexec.exe";

/// The image below a package.
#[derive(Clone, Copy)]
pub(super) struct BaseSystem<'a> {
    pub(super) inside: &'a dyn BaseContents,
    /// The package's transforms.
    pub(super) transforms: &'a [(ImagePath, Vec<u8>)],
    /// `NAME=VALUE`.
    pub(super) variables: &'a [String],
    /// True if there is no Windows below.
    pub(super) is_bare: bool,
    /// True for files alone, for which installed products do not matter.
    pub(super) is_extracted: bool,
}

impl BaseSystem<'_> {
    /// Refuses a base without Windows Installer.
    pub(super) fn check(&self) -> Result<()> {
        let installer = MSIEXEC.parse::<ImagePath>();
        let is_missing = |path: &ImagePath| self.entry(path) == Presence::Absent;
        if self.is_bare || installer.as_ref().is_ok_and(is_missing) {
            let why = "the base has no Windows Installer, and its programs cannot use the records";
            return Err(refused(why).hint("add extract = true for the files alone"));
        }
        Ok(())
    }

    fn base_key(&self, key: &KeyPath) -> Presence<BaseKey> {
        if self.is_bare || self.is_extracted && is_of_installer(key) {
            return Presence::Absent;
        }
        self.inside.key(key).unwrap_or(Presence::Unknown)
    }
}

/// True for the records of Windows Installer.
fn is_of_installer(key: &KeyPath) -> bool {
    key.components().windows(2).any(|pair| {
        let mut above = ["Classes", "CurrentVersion"].iter();
        eq_ignore_case(&pair[1], "Installer") && above.any(|it| eq_ignore_case(it, &pair[0]))
    })
}

impl InstalledSystem for BaseSystem<'_> {
    fn value(&self, key: &KeyPath, name: &str) -> Presence<RegistryData> {
        self.base_key(key).and_then(|key| {
            let mut values = key.values.into_iter();
            match values.find(|(own, _)| eq_ignore_case(own, name)) {
                Some((_, data)) => Presence::Present(data),
                None => Presence::Absent,
            }
        })
    }

    fn value_names(&self, key: &KeyPath) -> Presence<Vec<String>> {
        let names = |key: BaseKey| key.values.into_iter().map(|(name, _)| name).collect();
        self.base_key(key).map(names)
    }

    fn key(&self, key: &KeyPath) -> Presence<()> {
        self.base_key(key).map(drop)
    }

    fn entry(&self, path: &ImagePath) -> Presence<bool> {
        let found = self.inside.file(path).unwrap_or(Presence::Unknown);
        match found {
            Presence::Unknown if self.is_bare => Presence::Absent,
            found => found.map(|file| file.kind.kind() == FileKind::Folder),
        }
    }

    fn names(&self, folder: &ImagePath) -> Presence<Vec<String>> {
        let found = self.inside.read_dir(folder).unwrap_or(Presence::Unknown);
        match found {
            Presence::Unknown if self.is_bare => Presence::Absent,
            found => found.map(|files| files.into_iter().map(|file| file.name).collect()),
        }
    }

    fn content(&self, file: &ImagePath) -> Presence<Vec<u8>> {
        let mut transforms = self.transforms.iter();
        if let Some((_, bytes)) = transforms.find(|(path, _)| path.key() == file.key()) {
            return Presence::Present(bytes.clone());
        }
        self.inside.content(file).unwrap_or(Presence::Unknown)
    }

    fn variable(&self, name: &str) -> Option<String> {
        variable(self.variables, name).map(str::to_owned)
    }
}
