//! Content of a layer, and the order in which it is written.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::PathBuf;

use bytes::Bytes;
use serde::{Serialize, Serializer};
use wincimg_common::digest::{Digest, sha256_of};
use wincimg_common::files::SpoolPart;
use wincimg_common::untrusted::QuotedText;
use wincimg_registry::security::Sid;

use super::descriptor::Security;
use super::error::LayerError;
use super::path::{LayerPath, PathError, WHITEOUT_PREFIX, check_target};
use crate::DiskSource;
use crate::archive::{self, Member};

/// The top directory with the files of drive C.
const FILES: &str = "Files";

/// The content of a layer. The order of additions does not matter: the written layer has its own,
/// except for files in archives, which come last in the order of their archives. Missing parent
/// directories are added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Layer {
    pub(super) timestamp: u64,
    pub(super) files: Vec<LayerEntry>,
    pub(super) hives: Vec<LayerEntry>,
    pub(super) secured: Vec<LayerEntry>,
    /// Owner of its new entries, if not administrators.
    pub(super) owner: Option<Sid>,
    /// True if nothing is below it.
    is_bottom: bool,
}

/// Source of a file's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ContentSource {
    /// A file on disk, opened when it is written.
    Path(DiskSource),
    /// Bytes in memory.
    Bytes(Bytes),
    /// A part of an unnamed temporary file.
    Part(SpoolPart),
    /// A file in an archive.
    Member(Member),
    /// A file on a server that is not downloaded.
    NotDownloaded {
        /// URL.
        url: String,
        /// Length, if known.
        size: Option<u64>,
    },
}

/// Kind of a symbolic link's target, which Windows requires to create the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkTo {
    /// A file.
    File,
    /// A directory.
    Directory,
}

impl LinkTo {
    /// File attributes of such a link.
    pub const fn attributes(self) -> u32 {
        match self {
            Self::File => 0x420,
            Self::Directory => 0x410,
        }
    }
}

/// A symbolic link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Symlink {
    /// Target relative to its folder, with `/` between names.
    pub target: String,
    /// Kind of the target.
    #[serde(rename = "to_folder")]
    pub to: LinkTo,
}

/// Serialized as true for a folder.
impl Serialize for LinkTo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(*self == Self::Directory)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LayerEntry {
    pub(super) path: LayerPath,
    pub(super) content: EntryContent,
    /// Security descriptor and attributes, if not the default.
    pub(super) security: Option<Security>,
    pub(super) attributes: Option<u32>,
}

/// Content of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryContent {
    /// A directory.
    Directory,
    /// A file.
    File(ContentSource),
    /// A symbolic link.
    Symlink(Symlink),
    /// A deletion of the path in the layers below.
    Deletion,
}

/// One entry of the tar stream, under its full name.
#[derive(Debug)]
pub(super) struct TarItem<'a> {
    pub(super) name: String,
    pub(super) content: &'a EntryContent,
    /// True if the entry carries a security descriptor.
    pub(super) secured: bool,
    /// The descriptor, if not the default.
    pub(super) security: Option<&'a Security>,
    /// Attributes, if not the default.
    pub(super) attributes: Option<u32>,
}

impl TarItem<'_> {
    /// Length of a file; 0 for other entries.
    pub(super) fn length(&self) -> u64 {
        match self.content {
            EntryContent::File(source) => source.length(),
            _ => 0,
        }
    }

    /// The content of a file in memory.
    pub(super) fn bytes(&self) -> Option<&[u8]> {
        match self.content {
            EntryContent::File(ContentSource::Bytes(bytes)) => Some(bytes),
            _ => None,
        }
    }
}

impl Layer {
    /// Creates an empty layer whose entries all have `timestamp`, in seconds since 1970.
    pub fn new(timestamp: u64) -> Self {
        Self {
            timestamp,
            ..Self::default()
        }
    }

    /// Sets the account that creates its new entries.
    pub fn set_owner(&mut self, owner: Sid) {
        self.owner = Some(owner);
    }

    /// Makes it the lowest layer of an image, which has no `Hives` directory: there is nothing that
    /// delta hives could change.
    pub fn set_bottom(&mut self) {
        self.is_bottom = true;
    }

    /// Returns true if it has delta hives.
    pub fn has_hives(&self) -> bool {
        !self.hives.is_empty()
    }

    /// Adds a directory.
    pub fn directory(&mut self, path: LayerPath) {
        self.add(path, EntryContent::Directory);
    }

    /// Adds a file.
    pub fn file(&mut self, path: LayerPath, source: impl Into<ContentSource>) {
        self.add(path, EntryContent::File(source.into()));
    }

    /// Adds a symbolic link. A relative `target` uses `/` and counts from the link's directory; an
    /// absolute one starts with a drive, `C:/`.
    pub fn symlink(
        &mut self,
        path: LayerPath,
        target: impl Into<String>,
        to: LinkTo,
    ) -> Result<(), PathError> {
        let target = target.into();
        check_target(&target)?;
        self.add(path, EntryContent::Symlink(Symlink { target, to }));
        Ok(())
    }

    /// Hides a file or directory of the layers below.
    pub fn delete(&mut self, path: LayerPath) {
        self.add(path, EntryContent::Deletion);
    }

    /// Sets the security descriptor of a path, independent of the order of additions; the last one
    /// is used. A path without an entry becomes a directory entry, which changes the descriptor of
    /// the directory in the layers below.
    pub fn set_security(&mut self, path: LayerPath, security: impl Into<Security>) {
        let mut mark = LayerEntry::new(path, EntryContent::Directory);
        mark.security = Some(security.into());
        self.secured.push(mark);
    }

    /// Descriptors of entries and of [`Self::set_security`], by folded path.
    pub(super) fn securities(&self) -> HashMap<String, Security> {
        let entries = self.files.iter().chain(&self.secured);
        entries
            .filter_map(|it| Some((it.path.key(), it.security.clone()?)))
            .collect()
    }

    /// Adds a registry hive, `System_Delta` for example.
    pub fn hive(&mut self, name: LayerPath, data: impl Into<Bytes>) {
        let content = EntryContent::File(ContentSource::Bytes(data.into()));
        self.hives.push(LayerEntry::new(name, content));
    }

    /// Source of the file at a path, compared as on Windows.
    pub fn source_of(&self, path: &LayerPath) -> Option<&ContentSource> {
        let key = path.key();
        self.files.iter().find_map(|entry| match &entry.content {
            EntryContent::File(source) if entry.path.key() == key => Some(source),
            _ => None,
        })
    }

    /// Like [`Self::source_of`], to change it.
    pub fn file_mut(&mut self, path: &LayerPath) -> Option<&mut ContentSource> {
        let key = path.key();
        self.files
            .iter_mut()
            .find_map(|entry| match &mut entry.content {
                EntryContent::File(source) if entry.path.key() == key => Some(source),
                _ => None,
            })
    }

    /// The files and folders by their paths from the drive's root, parents first, after the same
    /// checks as for writing.
    pub fn drive(&self) -> Result<Vec<(String, &EntryContent)>, LayerError> {
        let items = self.drive_items()?.into_iter();
        Ok(items.map(|item| (item.name, item.content)).collect())
    }

    /// The same, with their descriptors and attributes.
    pub(super) fn drive_items(&self) -> Result<Vec<TarItem<'_>>, LayerError> {
        let mut items = Vec::with_capacity(self.files.len());
        sort_directory(FILES, &self.files, Some(&self.secured), &mut items)?;
        // The first is the drive itself.
        items.remove(0);
        for item in &mut items {
            item.name.replace_range(.."Files/".len(), "");
        }
        Ok(items)
    }

    /// The entries of the drive, in the order of additions.
    pub fn entries(&self) -> impl Iterator<Item = (&LayerPath, &EntryContent)> {
        self.files.iter().map(|entry| (&entry.path, &entry.content))
    }

    /// Returns true if the layer changes nothing; an image should then omit it.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.hives.is_empty() && self.secured.is_empty()
    }

    fn add(&mut self, path: LayerPath, content: EntryContent) {
        self.files.push(LayerEntry::new(path, content));
    }

    /// The entries, parents before children. Hives come first, so that a reader of the hives alone
    /// need not wait for the files.
    pub(super) fn items(&self) -> Result<Vec<TarItem<'_>>, LayerError> {
        // Each file adds at most a few parents that are not shared.
        let mut items = Vec::with_capacity(self.files.len() + self.hives.len() + 8);
        if !self.is_bottom {
            sort_directory("Hives", &self.hives, None, &mut items)?;
        }
        sort_directory(FILES, &self.files, Some(&self.secured), &mut items)?;
        Ok(items)
    }
}

impl LayerEntry {
    fn new(path: LayerPath, content: EntryContent) -> Self {
        Self {
            path,
            content,
            security: None,
            attributes: None,
        }
    }
}

impl ContentSource {
    /// Reads the bytes, up to a maximum.
    pub fn read(&self, most: u64) -> io::Result<Vec<u8>> {
        match self {
            Self::Bytes(bytes) if bytes.len() as u64 > most => {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
            Self::Bytes(bytes) => return Ok(bytes.to_vec()),
            Self::Path(source) => return source.read(most),
            Self::Part(_) | Self::Member(_) | Self::NotDownloaded { .. } => {}
        }
        let mut bytes = Vec::new();
        self.open(most)?.take(most + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > most {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes)
    }

    /// SHA-256 of the bytes of each, in their order. Files of one archive are read in one pass.
    pub fn digests(sources: &[Self]) -> io::Result<Vec<Digest>> {
        let members = sources.iter().filter_map(|source| match source {
            Self::Member(member) => Some(member),
            _ => None,
        });
        let members: Vec<&Member> = members.collect();
        let of_members = archive::digests(&members).map_err(io::Error::other)?;
        let mut of_members = of_members.into_iter();
        let digests = sources.iter().map(|source| -> io::Result<Digest> {
            if let Self::Member(_) = source {
                return of_members.next().ok_or(io::ErrorKind::UnexpectedEof.into());
            }
            sha256_of(&mut source.open(0)?)
        });
        digests.collect()
    }

    /// Opens a reader of the bytes. A file in an archive is unpacked into memory, up to a maximum.
    pub fn open(&self, most: u64) -> io::Result<Box<dyn Read + '_>> {
        Ok(match self {
            Self::Path(source) => Box::new(source.open()?.0),
            Self::Bytes(bytes) => Box::new(bytes.as_ref()),
            Self::Part(part) => Box::new(part.open()?),
            Self::Member(member) => {
                let bytes = member.bytes(most).map_err(io::Error::other)?;
                Box::new(io::Cursor::new(bytes))
            }
            Self::NotDownloaded { url, .. } => {
                return Err(io::Error::other(format!("{url} is not downloaded")));
            }
        })
    }
}

impl From<PathBuf> for ContentSource {
    fn from(path: PathBuf) -> Self {
        Self::Path(path.into())
    }
}

impl From<DiskSource> for ContentSource {
    fn from(source: DiskSource) -> Self {
        Self::Path(source)
    }
}

impl From<Bytes> for ContentSource {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<Vec<u8>> for ContentSource {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<&'static [u8]> for ContentSource {
    fn from(bytes: &'static [u8]) -> Self {
        Self::Bytes(Bytes::from_static(bytes))
    }
}

/// A directory of the stream that later entries may be in: its folded path and its full name.
struct OpenDirectory {
    key: String,
    name: String,
}

/// An entry with its sort key.
struct SortEntry<'a> {
    key: String,
    own: &'a LayerEntry,
    /// True if it only sets a descriptor.
    is_mark: bool,
}

/// Sorts the entries for the stream. One that only sets a descriptor comes after the entry of the
/// same path.
fn sorted<'a>(entries: &'a [LayerEntry], secured: &'a [LayerEntry]) -> Vec<SortEntry<'a>> {
    let with_key = |is_mark: bool| {
        move |own: &'a LayerEntry| SortEntry {
            key: own.path.key(),
            own,
            is_mark,
        }
    };
    let entries = entries.iter().map(with_key(false));
    let secured = secured.iter().map(with_key(true));
    let mut sorted: Vec<SortEntry> = entries.chain(secured).collect();
    // The last of several descriptors for one path is used, so their order is kept.
    let order = |it: &SortEntry<'a>| (it.is_mark, (!it.is_mark).then_some(&it.own.path));
    sorted.sort_by(|a, b| (&a.key, order(a)).cmp(&(&b.key, order(b))));
    sorted
}

/// Appends the directory `top` and below it the entries, sorted, with the parents they need. Without
/// `secured` none of them carries a descriptor.
///
/// Windows' import creates each entry and ignores case, so each path must occur once, and children
/// must use the spelling of their parents.
fn sort_directory<'a>(
    top: &str,
    entries: &'a [LayerEntry],
    secured: Option<&'a [LayerEntry]>,
    items: &mut Vec<TarItem<'a>>,
) -> Result<(), LayerError> {
    let entries = sorted(entries, secured.unwrap_or_default());
    let secured = secured.is_some();
    // Docker (hcsshim's `legacyLayerReader`) and BuildKit read and write the top directories and
    // the hives without descriptors: the drive's root stays unchanged.
    items.push(TarItem {
        name: top.to_owned(),
        content: &EntryContent::Directory,
        secured: false,
        security: None,
        attributes: None,
    });
    let mut open: Vec<OpenDirectory> = Vec::new();
    let mut previous: Option<&SortEntry> = None;
    for entry in &entries {
        if let Some(previous) = previous
            && is_repeated(top, previous, entry)?
        {
            if let Some(item) = items.last_mut() {
                item.security = entry.own.security.as_ref().or(item.security);
            }
            continue;
        }
        previous = Some(entry);
        // What is below the last is below all.
        while open.pop_if(|dir| !is_below(&entry.key, &dir.key)).is_some() {}
        open_parents(top, entry, secured, &mut open, items);

        let folder = open.last().map_or(top, |dir| &dir.name);
        let (_, base) = split_last(entry.own.path.as_str(), '/');
        let name = match entry.own.content {
            EntryContent::Deletion => format!("{folder}/{WHITEOUT_PREFIX}{base}"),
            _ => format!("{folder}/{base}"),
        };
        if matches!(entry.own.content, EntryContent::Directory) {
            open.push(OpenDirectory {
                key: entry.key.clone(),
                name: name.clone(),
            });
        }
        items.push(TarItem {
            name,
            content: &entry.own.content,
            secured,
            security: entry.own.security.as_ref(),
            attributes: entry.own.attributes,
        });
    }
    Ok(())
}

/// Returns true if `entry` repeats the directory `previous`, or sets its descriptor; an error if
/// the two conflict.
fn is_repeated(top: &str, previous: &SortEntry, entry: &SortEntry) -> Result<bool, LayerError> {
    let is_directory = |entry: &SortEntry| matches!(entry.own.content, EntryContent::Directory);
    let shown = |entry: &SortEntry| match top {
        FILES => QuotedText(format!(
            r"C:\{}",
            entry.own.path.as_str().replace('/', r"\")
        )),
        _ => QuotedText(entry.own.path.as_str().to_owned()),
    };
    if entry.key == previous.key {
        let is_there = !matches!(previous.own.content, EntryContent::Deletion);
        if is_directory(previous) && is_directory(entry) || is_there && entry.is_mark {
            return Ok(true);
        }
        return Err(LayerError::Refused(format!(
            "layer entries {} and {} are the same path on Windows",
            shown(previous),
            shown(entry)
        )));
    }
    // A file sorts directly before entries below it, so comparing neighbours is enough.
    if !is_directory(previous) && is_below(&entry.key, &previous.key) {
        return Err(LayerError::Refused(format!(
            "layer entry {} is below {}, which is not a directory",
            shown(entry),
            shown(previous)
        )));
    }
    Ok(false)
}

/// Appends the parents of an entry that are not open yet.
fn open_parents(
    top: &str,
    entry: &SortEntry,
    secured: bool,
    open: &mut Vec<OpenDirectory>,
    items: &mut Vec<TarItem<'_>>,
) {
    let (parent, _) = split_last(entry.own.path.as_str(), '/');
    let (parent_key, _) = split_last(&entry.key, '\0');
    let names = parent.split('/').filter(|name| !name.is_empty());
    let keys = parent_key.split('\0').filter(|key| !key.is_empty());
    for (name, key) in names.zip(keys).skip(open.len()) {
        let dir = match open.last() {
            Some(above) => OpenDirectory {
                key: format!("{}\0{key}", above.key),
                name: format!("{}/{name}", above.name),
            },
            None => OpenDirectory {
                key: key.to_owned(),
                name: format!("{top}/{name}"),
            },
        };
        items.push(TarItem {
            name: dir.name.clone(),
            content: &EntryContent::Directory,
            secured,
            security: None,
            attributes: None,
        });
        open.push(dir);
    }
}

pub(super) fn is_below(key: &str, directory: &str) -> bool {
    key.strip_prefix(directory)
        .is_some_and(|rest| rest.starts_with('\0'))
}

fn split_last(path: &str, separator: char) -> (&str, &str) {
    path.rsplit_once(separator).unwrap_or(("", path))
}

#[cfg(test)]
mod tests;
