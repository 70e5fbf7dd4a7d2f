//! The registry and drive of a wine prefix, as the system that packages are installed on.

use std::collections::BTreeMap;
use std::path::PathBuf;

use wincimg_msi::{InstallPlan, InstalledSystem};
use wincimg_registry::{KeyPath, Presence, RegistryData, regfile};
use wincimg_testkit::wine::{Wine, succeed};
use wincimg_windows::path::ImagePath;

/// What the prefix has: before the packages, and with the plans so far.
pub(crate) struct Prefix {
    pub(crate) values: BTreeMap<(String, String), RegistryData>,
    drive: PathBuf,
}

impl Prefix {
    pub(crate) fn new(wine: &Wine) -> Self {
        Self {
            values: Self::export(wine),
            drive: wine.drive(),
        }
    }

    /// All values of the machine, by key and name in lower case.
    pub(crate) fn export(wine: &Wine) -> BTreeMap<(String, String), RegistryData> {
        let mut values = BTreeMap::new();
        for root in [r"HKLM\Software", r"HKLM\System"] {
            let file = wine.drive().join("export.reg");
            let words = ["export", root, r"C:\export.reg", "/y"];
            succeed(wine.command("reg").args(words)).unwrap();
            let imported = regfile::import(&std::fs::read(&file).unwrap()).unwrap();
            std::fs::remove_file(file).unwrap();
            for edit in &imported.edits {
                super::apply(&mut values, edit);
            }
        }
        values
    }

    pub(crate) fn expect(&mut self, plan: &InstallPlan) {
        for edit in &plan.registry {
            super::apply(&mut self.values, edit);
        }
    }

    fn has_key(&self, key: &KeyPath) -> bool {
        let key = key.to_string().to_lowercase();
        let below = format!("{key}\\");
        self.values
            .keys()
            .any(|(own, _)| *own == key || own.starts_with(&below))
    }
}

/// Path of an image's file in the prefix, whose names may have another case.
pub(crate) fn on_disk(wine: &Wine, path: &ImagePath) -> PathBuf {
    spelled(wine.drive(), path)
}

fn spelled(mut disk: PathBuf, path: &ImagePath) -> PathBuf {
    for name in path.components() {
        let names = std::fs::read_dir(&disk).into_iter().flatten().flatten();
        let names = names.filter_map(|entry| entry.file_name().into_string().ok());
        let found = names
            .into_iter()
            .find(|own| own.to_lowercase() == name.to_lowercase());
        disk.push(found.unwrap_or_else(|| name.clone()));
    }
    disk
}

impl InstalledSystem for Prefix {
    fn value(&self, key: &KeyPath, name: &str) -> Presence<RegistryData> {
        let key = (key.to_string().to_lowercase(), name.to_lowercase());
        self.values
            .get(&key)
            .map_or(Presence::Absent, |data| Presence::Present(data.clone()))
    }

    fn value_names(&self, key: &KeyPath) -> Presence<Vec<String>> {
        let key = key.to_string().to_lowercase();
        let own = self.values.keys().filter(|(own, _)| *own == key);
        let names: Vec<String> = own.map(|(_, name)| name.clone()).collect();
        if names.is_empty() {
            Presence::Absent
        } else {
            Presence::Present(names)
        }
    }

    fn key(&self, key: &KeyPath) -> Presence<()> {
        if self.has_key(key) {
            Presence::Present(())
        } else {
            Presence::Absent
        }
    }

    // The prefix has the package's own files already: it is asked after the installation.
    fn entry(&self, path: &ImagePath) -> Presence<bool> {
        let is_of_windows = path.is_of_windows() && spelled(self.drive.clone(), path).is_dir();
        if is_of_windows {
            Presence::Present(true)
        } else {
            Presence::Absent
        }
    }

    fn names(&self, _: &ImagePath) -> Presence<Vec<String>> {
        Presence::Absent
    }

    // Transforms are there before the installation.
    fn content(&self, path: &ImagePath) -> Presence<Vec<u8>> {
        match std::fs::read(spelled(self.drive.clone(), path)) {
            Ok(bytes) if path.to_string().to_lowercase().ends_with(".mst") => {
                Presence::Present(bytes)
            }
            _ => Presence::Absent,
        }
    }

    fn variable(&self, name: &str) -> Option<String> {
        name.eq_ignore_ascii_case("SystemRoot")
            .then(|| r"C:\windows".to_owned())
    }
}
