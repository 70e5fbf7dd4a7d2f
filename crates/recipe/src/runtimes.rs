//! Runtimes by name: files that a recipe has beside it, pinned by the checksums of a table.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use serde::Deserialize;
use wincimg_common::diagnose::{Diagnose as _, Problem, error_chain};
use wincimg_common::digest::Hasher;
use wincimg_layer::DiskSource;
use wincimg_layer::archive::{UnpackSelection, UnpackedContent};
use wincimg_registry::{KeyPath, RegistryData, RegistryEdit};
use wincimg_windows::path::{ImagePath, PathError};

use super::source::FileSource;
use super::text::{Field, Text};
use super::{PlannedEntry, PlannedLayer, PlannedStep, Recipe, Result};

static RUNTIMES: LazyLock<Vec<Runtime>> = LazyLock::new(|| {
    let tables = toml::from_str::<BTreeMap<String, Vec<Runtime>>>(include_str!("runtimes.toml"));
    tables.unwrap_or_default().into_values().flatten().collect()
});

/// A runtime that recipes name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Runtime {
    /// Its name in recipes.
    name: String,
    /// Its full name.
    title: String,
    version: String,
    /// Terms of its publisher.
    licence: String,
    /// Name of its archive.
    file: String,
    /// SHA-256 of the archive.
    sha256: String,
    /// The command that fetches the archive.
    get: String,
    /// The part of the archive that is unpacked.
    folder: String,
    /// Folder in the image.
    to: String,
    /// Keys that record the version for installers.
    #[serde(default)]
    keys: Vec<String>,
}

fn find(name: &str) -> Option<&'static Runtime> {
    RUNTIMES.iter().find(|it| it.name == name)
}

/// The terms of a runtime, as a note.
pub(super) fn terms(name: &str) -> Option<String> {
    let it = find(name)?;
    Some(format!(
        "{} {} is under: {}",
        it.title, it.version, it.licence
    ))
}

impl Recipe {
    /// The layer of a runtime.
    pub(super) fn runtime(&self, name: &Text) -> Result<PlannedStep> {
        let Some(runtime) = find(&name.value) else {
            let known: Vec<&str> = RUNTIMES.iter().map(|it| it.name.as_str()).collect();
            let problem = format!("unknown runtime {:?}", name.value);
            let hint = format!("expected {}", known.join(", "));
            return Err(self.error(name, problem).hint(hint));
        };
        let file = Field {
            value: runtime.file.clone(),
            offset: name.offset,
        };
        let source = self.in_recipe_folder(&file);
        let checked = source.and_then(|source| {
            let checked = runtime.check(&source);
            checked.map_err(|problem| self.error(name, problem))?;
            Ok(source)
        });
        let source = checked.map_err(|error| {
            Problem::request(
                "recipe/invalid",
                format!("{error}; fetch it with `{}`", runtime.get),
            )
            .hint(format!("put {} into the recipe's folder", runtime.file))
            .excerpt(error.diagnosis().excerpt)
        })?;
        let entries = self.runtime_entries(runtime, &FileSource::Disk(source));
        let layer = PlannedLayer {
            entries: entries.map_err(|problem| self.error(name, problem))?,
            registry: runtime
                .edits()
                .map_err(|problem| self.error(name, problem))?,
            ..PlannedLayer::default()
        };
        let (recipe, version) = (self.name(), &runtime.version);
        Ok(PlannedStep {
            line: None,
            created_by: format!("wincimg build {recipe}: {} {version}", runtime.name),
            layer: Some(Arc::new(layer)),
        })
    }

    /// The files of a runtime, out of its archive.
    fn runtime_entries(
        &self,
        runtime: &Runtime,
        source: &FileSource,
    ) -> Result<Vec<PlannedEntry>, String> {
        let opened = source.archive(&self.archives);
        let archive = opened.map_err(|error| error_chain(&error))?;
        let archive = archive.ok_or_else(|| format!("{} is not an archive", runtime.file))?;
        let only = [runtime.folder.clone()];
        let selection = UnpackSelection {
            strip: runtime.folder.split('/').count(),
            only: &only,
            ..UnpackSelection::default()
        };
        let unpacked = archive.unpack(&selection);
        let unpacked = unpacked.map_err(|error| error_chain(&error))?;
        let to: ImagePath = runtime.to.parse().map_err(|_| runtime.to.clone())?;
        let files = unpacked.into_iter().filter_map(|entry| {
            let UnpackedContent::File(member) = entry.content else {
                return None;
            };
            let path = format!("{to}\\{}", entry.path.replace('/', "\\"));
            let source = FileSource::Member(member);
            Some(path.parse().map(|path| PlannedEntry::file(path, source)))
        });
        let entries = files.collect::<Result<Vec<_>, PathError>>();
        let entries = entries.map_err(|error| error.to_string())?;
        if entries.is_empty() {
            return Err(format!("{} has no {}", runtime.file, runtime.folder));
        }
        Ok(entries)
    }
}

impl Runtime {
    /// Compares the digest of the archive.
    fn check(&self, source: &DiskSource) -> Result<(), String> {
        let mut hasher = Hasher::default();
        let read = source
            .open()
            .and_then(|(mut file, _)| hasher.read_all(&mut file));
        read.map_err(|error| format!("cannot read {}: {error}", self.file))?;
        let (found, expected) = (
            hasher.finish().to_string(),
            format!("sha256:{}", self.sha256),
        );
        if found == expected {
            return Ok(());
        }
        let file = &self.file;
        Err(format!(
            "{file} has the digest {found}: expected {expected}"
        ))
    }

    /// Registry values with its version, as the redistributable package sets them.
    fn edits(&self) -> Result<Vec<RegistryEdit>, String> {
        let mut numbers = self.version.split('.').map(str::parse::<u32>);
        let mut number = || numbers.next().and_then(Result::ok).unwrap_or_default();
        let parts = [("Major", number()), ("Minor", number()), ("Bld", number())];
        let mut edits = Vec::new();
        for key in &self.keys {
            let key: KeyPath = key.parse().map_err(|_| key.clone())?;
            let mut set = |name: &str, data: RegistryData| {
                let (key, name) = (key.clone(), name.to_owned());
                edits.push(RegistryEdit::SetValue { key, name, data });
            };
            for (name, value) in parts.into_iter().chain([("Rbld", 0), ("Installed", 1)]) {
                set(name, RegistryData::dword(value));
            }
            set(
                "Version",
                RegistryData::sz(&format!("v{}.00", self.version)),
            );
        }
        Ok(edits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_complete() {
        assert!(!RUNTIMES.is_empty());
        for runtime in RUNTIMES.iter() {
            assert_eq!(runtime.sha256.len(), 64, "{runtime:?}");
            assert!(runtime.file.contains(&runtime.version), "{runtime:?}");
            assert!(runtime.get.contains(&runtime.version), "{runtime:?}");
            assert!(runtime.to.parse::<ImagePath>().is_ok(), "{runtime:?}");
            assert!(!runtime.licence.is_empty() && !runtime.title.is_empty());
            let edits = runtime.edits().unwrap();
            assert_eq!(edits.len(), runtime.keys.len() * 6);
        }
    }

    #[test]
    fn the_version_of_the_redistributable_is_recorded() {
        let edits = find("vcruntime-14").unwrap().edits().unwrap();
        let printed: Vec<String> = edits.iter().map(ToString::to_string).collect();
        let key = r"HKLM\SOFTWARE\Microsoft\VisualStudio\14.0\VC\Runtimes\X64";
        for value in [
            r#""Bld" = REG_DWORD 35112"#,
            r#""Installed" = REG_DWORD 1"#,
            r#""Version" = REG_SZ "v14.44.35112.00""#,
        ] {
            let expected = format!("set {key} {value}");
            assert!(printed.contains(&expected), "{expected}: {printed:#?}");
        }
    }
}
