//! What a layer above Windows touches: files, deletions and keys, each with as much as it takes to
//! tell whether a base has the same. It is found out once for each layer and kept by its digest.

use std::io::{BufReader, Read};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use wincimg_layer::{LayerEntry, LayerReader, TarEntryKind, TarReadError};
use wincimg_registry::RegistryData;
use wincimg_registry::hive::{Hive, Key, Semantics};
use wincimg_registry::security::{DescriptorLayout, SecurityDescriptor};

use super::base::BaseHive;
use super::layers::{ROOT_ALONE, below_hives, has_root_alone};
use super::stream::layer_limits;

/// The form in which it is kept.
const FORMAT: u32 = 1;
/// The most that names may take: several times of what the largest layers have.
const NAME_MEMORY: usize = 1 << 30;
const ENTRY_MEMORY: usize = 256;
/// More of what nobody can judge is not told.
const MOST_STRANGE: usize = 100;
/// The largest that is unpacked when it is read back.
const LARGEST: u64 = 1 << 30;

/// What a layer touches.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerDiff {
    /// Entries below `Files`, in the layer's order.
    pub files: Vec<FileDiff>,
    /// Keys of its delta hives, each before those below it.
    pub keys: Vec<KeyDiff>,
    /// What nobody can compare with a base.
    pub strange: Vec<UnsupportedEntry>,
}

/// An entry below `Files`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileDiff {
    /// Where it is, with slashes.
    #[serde(rename = "p")]
    pub path: Box<str>,
    /// What it does there.
    #[serde(rename = "t")]
    pub touch: FileChange,
}

/// What an entry does at its path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileChange {
    /// A folder; its rights and attributes go over those of one that is there.
    Folder {
        /// What its descriptor comes to, where it has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rights: Option<ContentHash>,
    },
    /// A file.
    File(ContentHash),
    /// Another name of a file, by its path below `Files`.
    HardLink(Box<str>),
    /// A link or mount point.
    Link,
    /// What is below is gone.
    Deleted,
}

/// What tells bytes from others: their SHA-256.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentHash(Box<str>);

/// A key of a delta hive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyDiff {
    /// The hive.
    #[serde(rename = "h")]
    pub hive: BaseHive,
    /// The names from the hive's root down to it; none for the root.
    #[serde(rename = "k")]
    pub components: Vec<String>,
    /// What becomes of the key of that path below.
    #[serde(rename = "l")]
    pub over: Over,
    /// What its descriptor comes to.
    #[serde(rename = "r")]
    pub rights: ContentHash,
    /// Its values: a name, and type and data, or that it is deleted.
    #[serde(rename = "v", default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<(String, Option<ContentHash>)>,
}

/// What a key of a layer does to the key below.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Over {
    /// It adds to it.
    Merges,
    /// It hides its values.
    HidesValues,
    /// It hides all of it.
    Hides,
    /// It deletes it.
    Deletes,
}

/// Something in a layer that cannot be compared with a base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnsupportedEntry {
    /// Where it is in the layer.
    pub place: String,
    /// What it is.
    pub what: String,
}

impl ContentHash {
    /// Of the bytes of a file or a value.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        Self::from_sha256(&Sha256::digest(bytes).into())
    }

    /// Of a file whose SHA-256 is known.
    pub fn from_sha256(hash: &[u8; 32]) -> Self {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digits = hash.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let text: String = digits
            .map(|digit| char::from(DIGITS[usize::from(digit)]))
            .collect();
        Self(text.into())
    }

    /// Of a value.
    pub fn from_data(data: &RegistryData) -> Self {
        let mut bytes = data.kind().0.to_le_bytes().to_vec();
        bytes.extend_from_slice(data.bytes());
        Self::from_bytes(&bytes)
    }

    /// Of what a security descriptor says, in whatever order its parts stand.
    pub fn from_descriptor(descriptor: &[u8]) -> Self {
        match SecurityDescriptor::from_bytes(descriptor) {
            Ok(read) => Self::from_bytes(&read.to_bytes(DescriptorLayout::OwnerFirst)),
            Err(_) => Self::from_bytes(descriptor),
        }
    }
}

impl LayerDiff {
    /// Looks through a layer's bytes. What was found counts only if they end well, which tells that
    /// they are those that the layer's digest names.
    pub(super) fn read_layer(input: impl Read + Send) -> Result<Self, TarReadError> {
        let mut reader = LayerReader::new(input, layer_limits())?;
        let mut found = Self::default();
        let mut memory = NAME_MEMORY;
        while let Some(entry) = reader.next_entry()? {
            let taken = entry.path.len() + ENTRY_MEMORY;
            memory = memory.checked_sub(taken).ok_or(TarReadError::Malformed(
                "it has more names than any layer of Windows",
            ))?;
            found.take_in(&entry, &mut reader)?;
        }
        Ok(found)
    }

    /// Reads back what was kept; nothing where that is of no use.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let unpacked = zstd::Decoder::new(bytes).ok()?.take(LARGEST);
        let (format, read): (u32, Self) = serde_json::from_reader(BufReader::new(unpacked)).ok()?;
        (format == FORMAT).then_some(read)
    }

    /// The bytes to keep.
    pub(super) fn to_bytes(&self) -> std::io::Result<Vec<u8>> {
        let text = serde_json::to_vec(&(FORMAT, self))?;
        zstd::encode_all(text.as_slice(), 3)
    }

    fn take_in(
        &mut self,
        entry: &LayerEntry,
        reader: &mut LayerReader<'_>,
    ) -> Result<(), TarReadError> {
        let (top, below) = entry.path.split_once('/').unwrap_or((&entry.path, ""));
        let is_top = below.is_empty() && entry.kind == TarEntryKind::Directory;
        if below.split('/').any(|name| matches!(name, "." | "..")) {
            self.strange(&entry.path, "it leads elsewhere");
        } else if top.eq_ignore_ascii_case("Files") && !below.is_empty() {
            let below = below.to_owned();
            self.file(entry, &below, reader)?;
        } else if top.eq_ignore_ascii_case("Hives") && !is_top {
            self.hive(entry, reader)?;
        } else if top.eq_ignore_ascii_case("UtilityVM") && !is_top {
            self.strange(
                &entry.path,
                "it is of the small Windows that Hyper-V isolation starts, which servicing replaces",
            );
        } else if !is_top {
            self.strange(&entry.path, "it is neither in Files nor in Hives");
        }
        Ok(())
    }

    fn file(
        &mut self,
        entry: &LayerEntry,
        path: &str,
        reader: &mut LayerReader<'_>,
    ) -> Result<(), TarReadError> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        if let Some(deleted) = name.strip_prefix(".wh.") {
            // The others (`.wh..wh..opq`) mean nothing to Windows.
            if !deleted.starts_with(".wh.") && !deleted.is_empty() {
                let path = [folder, deleted].join("/");
                self.push(path.trim_start_matches('/'), FileChange::Deleted);
            }
            return Ok(());
        }
        let touch = match entry.kind {
            TarEntryKind::Directory => FileChange::Folder {
                rights: rights(reader),
            },
            TarEntryKind::Symlink => FileChange::Link,
            TarEntryKind::HardLink => {
                let target = entry.target.as_deref().unwrap_or_default();
                match target.split_once('/') {
                    Some((top, below)) if top.eq_ignore_ascii_case("Files") => {
                        FileChange::HardLink(below.into())
                    }
                    _ => {
                        self.strange(&entry.path, "it is another name of what is not in Files");
                        return Ok(());
                    }
                }
            }
            TarEntryKind::File => {
                let mut hasher = Sha256::new();
                reader.each_piece(|piece| hasher.update(piece))?;
                FileChange::File(ContentHash::from_sha256(&hasher.finalize().into()))
            }
            TarEntryKind::Other => {
                self.strange(&entry.path, "Windows has no such kind of file");
                return Ok(());
            }
        };
        self.push(path, touch);
        Ok(())
    }

    fn push(&mut self, path: &str, touch: FileChange) {
        let path = path.into();
        self.files.push(FileDiff { path, touch });
    }

    fn hive(
        &mut self,
        entry: &LayerEntry,
        reader: &mut LayerReader<'_>,
    ) -> Result<(), TarReadError> {
        let known = BaseHive::ALL.into_iter();
        let known = known
            .filter(|hive| entry.path.eq_ignore_ascii_case(hive.delta_file()))
            .find(|_| entry.kind == TarEntryKind::File);
        let Some(hive) = known else {
            let name = below_hives(&entry.path).unwrap_or_default().to_owned();
            let is_small = entry.kind == TarEntryKind::File && entry.size <= ROOT_ALONE;
            if !is_small || !has_root_alone(&reader.content()?) {
                let what = format!("{name} is a hive that nobody can look into here");
                self.strange(&entry.path, what);
            }
            return Ok(());
        };
        let bytes = reader.content()?;
        match Hive::read(&bytes) {
            Ok(read) => self.key(hive, &mut Vec::new(), &read.root),
            Err(error) => self.strange(&entry.path, error.to_string()),
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
        // Every hive has a root, also those in which nothing changed.
        if !path.is_empty() || !values.is_empty() {
            self.keys.push(KeyDiff {
                hive,
                components: path.clone(),
                over: match key.layer.semantics {
                    Semantics::Merge => Over::Merges,
                    Semantics::SupersedeLocal => Over::HidesValues,
                    Semantics::SupersedeTree => Over::Hides,
                    Semantics::Tombstone => Over::Deletes,
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
        if self.strange.len() < MOST_STRANGE {
            self.strange.push(UnsupportedEntry {
                place: place.to_owned(),
                what: what.into(),
            });
        }
    }
}

/// What the descriptor of an entry comes to.
fn rights(reader: &LayerReader<'_>) -> Option<ContentHash> {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    let mut found = None;
    for (key, value) in reader.pax() {
        match key {
            b"MSWINDOWS.rawsd" => {
                let bytes = STANDARD.decode(value).unwrap_or_else(|_| value.to_vec());
                found = Some(ContentHash::from_descriptor(&bytes));
            }
            b"MSWINDOWS.sd" if found.is_none() => {
                let text = std::str::from_utf8(value).ok();
                let read = text.and_then(|text| text.parse::<SecurityDescriptor>().ok());
                found = Some(read.map_or_else(
                    || ContentHash::from_bytes(value),
                    |read| ContentHash::from_bytes(&read.to_bytes(DescriptorLayout::OwnerFirst)),
                ));
            }
            _ => {}
        }
    }
    found
}
