//! The changes of a layer above Windows: files, deletions and keys, each with enough data to
//! compare it with a base. A diff is computed once for each layer and cached by its digest.

use std::io::{BufReader, Read};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use wincimg_layer::{HiveFolder, LayerEntry, LayerReader, TarEntryKind, TarReadError};
use wincimg_registry::RegistryData;
use wincimg_registry::hive::{Hive, Key, Semantics};

use super::base::BaseHive;
use super::contents::normalized;
use super::entries::{
    Entry, FILES, HIVES, LayerChange, LayerEntries, Layout, UTILITY_VM, below, has_extension,
};
use super::layers::{ROOT_ALONE, has_root_alone};
use super::provenance::windows_file_version;
use super::stream::layer_limits;

/// Version of the cached form.
pub(crate) const FORMAT: u32 = 4;
/// Limit on reported entries that cannot be compared.
const MAX_UNSUPPORTED: usize = 100;
/// Endings of names of programs and libraries, which say their version.
const WITH_VERSION: [&str; 7] = ["exe", "dll", "sys", "ocx", "cpl", "drv", "mui"];
/// Limit on their size, more than that of any in Windows.
const LARGEST_WITH_VERSION: u64 = 64 << 20;
/// Limit on the unpacked size of a cached diff.
const LARGEST: u64 = 1 << 30;

/// The changes of a layer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerDiff {
    /// Entries below `Files`, in the layer's order.
    pub files: Vec<FileDiff>,
    /// Keys of its delta hives, parents first.
    pub keys: Vec<KeyDiff>,
    /// Entries that cannot be compared with a base.
    pub strange: Vec<UnsupportedEntry>,
    /// Its hives, also those without changes.
    pub hives: HiveFolder,
}

/// An entry below `Files`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDiff {
    /// Path with slashes.
    #[serde(rename = "p")]
    pub path: Box<str>,
    /// Change; of a folder, with the hash of its descriptor, if it has one. The path of a hard link's
    /// file is below `Files`.
    #[serde(rename = "t")]
    pub touch: LayerChange<ContentHash, (), Option<ContentHash>>,
    /// Version of a file of Windows, according to the file.
    #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<Box<str>>,
}

/// Identity of bytes: their SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ContentHash(Box<str>);

/// A key of a delta hive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyDiff {
    /// The hive.
    #[serde(rename = "h")]
    pub hive: BaseHive,
    /// Names from the hive's root down to the key; none for the root.
    #[serde(rename = "k")]
    pub components: Vec<String>,
    /// Effect on the key with that path below.
    #[serde(rename = "l")]
    pub over: KeyEffect,
    /// Hash of its descriptor.
    #[serde(rename = "r")]
    pub rights: ContentHash,
    /// Its values: name, and either type and data, or a deletion.
    #[serde(rename = "v", default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<(String, Option<ContentHash>)>,
}

/// Effect of a layer's key on the key below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyEffect {
    /// Merges with it.
    Merges,
    /// Hides its values.
    HidesValues,
    /// Hides all of it.
    Hides,
    /// Deletes it.
    Deletes,
}

/// An entry of a layer that cannot be compared with a base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsupportedEntry {
    /// Path in the layer.
    pub place: String,
    /// Description.
    pub what: String,
}

impl ContentHash {
    /// Hash of the bytes of a file or a value.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self::from_sha256(&Sha256::digest(bytes).into())
    }

    /// Hash of a file whose SHA-256 is known.
    pub fn from_sha256(hash: &[u8; 32]) -> Self {
        Self(hex::encode(hash).into())
    }

    /// Hash of a value.
    pub fn from_data(data: &RegistryData) -> Self {
        let mut bytes = data.kind().0.to_le_bytes().to_vec();
        bytes.extend_from_slice(data.bytes());
        Self::from_bytes(&bytes)
    }

    /// Hash of the contents of a security descriptor, whatever the order of its parts.
    pub fn from_descriptor(descriptor: &[u8]) -> Self {
        Self::from_bytes(&normalized(descriptor))
    }
}

impl LayerDiff {
    /// Reads a layer's bytes. The result is valid only if the input ends without an error, which
    /// means that the bytes match the layer's digest.
    pub(super) fn read_layer(input: impl Read + Send) -> Result<Self, TarReadError> {
        let reader = LayerReader::new(input, layer_limits())?;
        let mut entries = LayerEntries::new(reader, Layout::Windows);
        let mut found = Self::default();
        while let Some(entry) = entries.next_entry()? {
            found.hives.note(&entry.raw, &entries.reader);
            found.add_entry(&entry, &mut entries)?;
        }
        Ok(found)
    }

    /// Reads a cached diff; none if it is unusable.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let unpacked = zstd::Decoder::new(bytes).ok()?.take(LARGEST);
        let (format, read): (u32, Self) = serde_json::from_reader(BufReader::new(unpacked)).ok()?;
        (format == FORMAT).then_some(read)
    }

    /// Bytes for the cache.
    pub(super) fn to_bytes(&self) -> std::io::Result<Vec<u8>> {
        let text = serde_json::to_vec(&(FORMAT, self))?;
        zstd::encode_all(text.as_slice(), 3)
    }

    fn add_entry(
        &mut self,
        entry: &Entry,
        entries: &mut LayerEntries<'_>,
    ) -> Result<(), TarReadError> {
        let place = &entry.raw.path;
        if entry.raw.kind == TarEntryKind::Directory && !place.contains('/') {
            return Ok(());
        }
        if entry.leads_outside() {
            self.strange(place, "its path leads outside the layer");
        } else if let Some(path) = Layout::Windows.inside(entry.path()) {
            self.file(entry, path, entries)?;
        } else if let Some(name) = below(place, HIVES) {
            self.hive(entry, name, entries)?;
        } else if below(place, UTILITY_VM).is_some() {
            self.strange(
                place,
                "it belongs to the utility VM of Hyper-V isolation, which servicing replaces",
            );
        } else {
            self.strange(place, "it is neither in Files nor in Hives");
        }
        Ok(())
    }

    fn file(
        &mut self,
        entry: &Entry,
        path: &str,
        entries: &mut LayerEntries<'_>,
    ) -> Result<(), TarReadError> {
        let mut windows = None;
        let touch = match &entry.change {
            Some(LayerChange::Folder(())) => LayerChange::Folder(rights(entries)),
            Some(LayerChange::Link(_)) => LayerChange::Link(()),
            Some(LayerChange::Deleted) => LayerChange::Deleted,
            Some(LayerChange::HardLink(target)) => {
                let Some(target) = below(target, FILES) else {
                    self.strange(&entry.raw.path, "its hard link target is not in Files");
                    return Ok(());
                };
                LayerChange::HardLink(target.into())
            }
            Some(LayerChange::File(()))
                if has_extension(path, &WITH_VERSION) && entry.raw.size <= LARGEST_WITH_VERSION =>
            {
                let bytes = entries.reader.content()?;
                windows = windows_file_version(&bytes).map(Into::into);
                LayerChange::File(ContentHash::from_bytes(&bytes))
            }
            Some(LayerChange::File(())) => {
                let mut hasher = Sha256::new();
                entries.reader.each_piece(|piece| hasher.update(piece))?;
                LayerChange::File(ContentHash::from_sha256(&hasher.finalize().into()))
            }
            None => {
                self.strange(&entry.raw.path, "its file type is unsupported on Windows");
                return Ok(());
            }
        };
        self.files.push(FileDiff {
            path: path.into(),
            touch,
            windows,
        });
        Ok(())
    }

    fn hive(
        &mut self,
        entry: &Entry,
        name: &str,
        entries: &mut LayerEntries<'_>,
    ) -> Result<(), TarReadError> {
        let LayerEntry {
            path, kind, size, ..
        } = &entry.raw;
        let known = BaseHive::ALL.into_iter();
        let known = known
            .filter(|hive| path.eq_ignore_ascii_case(hive.delta_file()))
            .find(|_| *kind == TarEntryKind::File);
        let Some(hive) = known else {
            let is_small = *kind == TarEntryKind::File && *size <= ROOT_ALONE;
            if !is_small || !has_root_alone(&entries.reader.content()?) {
                self.strange(path, format!("{name} is an unsupported hive"));
            }
            return Ok(());
        };
        let bytes = entries.reader.content()?;
        match Hive::read(&bytes) {
            Ok(read) => self.key(hive, &mut Vec::new(), &read.root),
            Err(error) => self.strange(path, error.to_string()),
        }
        Ok(())
    }

    fn key(&mut self, hive: BaseHive, path: &mut Vec<String>, key: &Key<'_>) {
        let values = key.values.iter().map(|value| {
            let data = value.data();
            (
                value.name.clone(),
                data.as_ref().map(ContentHash::from_data),
            )
        });
        let values: Vec<_> = values.collect();
        // Every hive has a root, also those without changes.
        if !path.is_empty() || !values.is_empty() {
            self.keys.push(KeyDiff {
                hive,
                components: path.clone(),
                over: match key.layer.semantics {
                    Semantics::Merge => KeyEffect::Merges,
                    Semantics::SupersedeLocal => KeyEffect::HidesValues,
                    Semantics::SupersedeTree => KeyEffect::Hides,
                    Semantics::Tombstone => KeyEffect::Deletes,
                },
                rights: ContentHash::from_descriptor(key.security),
                values,
            });
        }
        for subkey in &key.subkeys {
            path.push(subkey.name.clone());
            self.key(hive, path, subkey);
            path.pop();
        }
    }

    fn strange(&mut self, place: &str, what: impl Into<String>) {
        if self.strange.len() < MAX_UNSUPPORTED {
            self.strange.push(UnsupportedEntry {
                place: place.to_owned(),
                what: what.into(),
            });
        }
    }
}

/// Hash of an entry's descriptor.
fn rights(entries: &LayerEntries<'_>) -> Option<ContentHash> {
    let record = entries.records().security?;
    let bytes = record.read().unwrap_or_else(|| record.text.to_vec());
    Some(ContentHash::from_descriptor(&bytes))
}
