//! The entries of a layer, as Windows takes them. Everything that reads the files of a layer reads
//! it with [`LayerEntries`].

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use wincimg_layer::{LayerEntry, LayerReader, TarEntryKind, TarReadError, Whiteout};
use wincimg_registry::security::{DescriptorLayout, SecurityDescriptor};
use wincimg_windows::base_contents::FileDigest;

/// Folder of the drive in a layer.
pub(crate) const FILES: &str = "Files";
/// Folder of the utility VM of Hyper-V isolation.
pub(crate) const UTILITY_VM: &str = "UtilityVM";
/// Folder of the hives that a layer changes.
pub(crate) const HIVES: &str = "Hives";

/// Attributes of a folder that no record describes.
pub(crate) const FOLDER_ATTRIBUTES: u32 = 0x10;

/// Limit on names: several times those of the largest layers.
const NAME_MEMORY: usize = 1 << 30;
/// Memory of an entry besides its name.
const ENTRY_MEMORY: usize = 256;

/// What a layer has at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LayerChange<F = FileDigest, L = LinkTarget, D = ()> {
    /// A folder; its rights and attributes replace those of an existing one.
    Folder(D),
    /// A file.
    File(F),
    /// A link or mount point.
    Link(L),
    /// Another name of the file at this path.
    HardLink(Box<str>),
    /// The path and everything below it is deleted from the layers below.
    Deleted,
}

/// Target of a link or mount point.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LinkTarget {
    /// Its target, if known.
    pub target: Option<Box<str>>,
    /// True if it is a junction (a mount point), not a symbolic link.
    pub is_junction: bool,
}

/// Place of the drive in the layers of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layout {
    /// `Files/` has the drive of Windows.
    Windows,
    /// The layer is the root of another system.
    Other,
}

impl Layout {
    /// A path of a layer from the root of the drive.
    pub(crate) fn inside(self, path: &str) -> Option<&str> {
        match self {
            Self::Windows => below(path, FILES).filter(|path| !path.is_empty()),
            Self::Other => Some(path),
        }
    }
}

/// The last name of a path.
pub(crate) fn last_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// The path of the file that an alternate data stream belongs to, such as `app/a.exe` for
/// `app/a.exe:Zone.Identifier`; none for anything else.
pub(crate) fn file_of_stream(path: &str) -> Option<&str> {
    let name = path.rfind('/').map_or(0, |slash| slash + 1);
    let colon = path[name..].find(':')?;
    Some(&path[..name + colon])
}

/// Path below a top folder of a layer; empty for the folder itself.
pub(crate) fn below<'p>(path: &'p str, folder: &str) -> Option<&'p str> {
    let (top, below) = path.split_once('/').unwrap_or((path, ""));
    top.eq_ignore_ascii_case(folder).then_some(below)
}

/// Files of a layer that lie in none of the folders that Windows reads.
#[derive(Debug, Default)]
pub(crate) struct OutsideFiles {
    first: Option<String>,
    count: usize,
}

impl OutsideFiles {
    /// Counts an entry if it is such a file. Folders and deletions have no effect, wherever they
    /// are. To Windows, backslashes separate too, so names with them may lie anywhere.
    pub(crate) fn note(&mut self, entry: &LayerEntry) {
        let path = &entry.path;
        let is_file = match entry.kind {
            TarEntryKind::File | TarEntryKind::Symlink | TarEntryKind::HardLink => {
                Whiteout::from_name(last_name(path)).is_none()
            }
            TarEntryKind::Directory | TarEntryKind::Other => false,
        };
        let mut known = [FILES, UTILITY_VM, HIVES].into_iter();
        if is_file && !path.contains('\\') && !known.any(|top| below(path, top).is_some()) {
            self.count += 1;
            self.first.get_or_insert_with(|| path.clone());
        }
    }

    /// The first file, and the problem with all of them.
    pub(crate) fn problem(self) -> Option<(String, String)> {
        let first = self.first?;
        let problem = match self.count - 1 {
            0 => "it lies outside Files/: containers do not see it".to_owned(),
            more => format!("it and {more} more lie outside Files/: containers do not see them"),
        };
        Some((first, problem))
    }
}

/// Reader of the entries of a layer. Marks that its system does not know are skipped.
pub(crate) struct LayerEntries<'a> {
    pub(crate) reader: LayerReader<'a>,
    layout: Layout,
    memory: usize,
}

/// An entry of a layer.
pub(crate) struct Entry {
    pub(crate) raw: LayerEntry,
    deleted: Option<String>,
    /// What it changes at its path, with hard links as paths in the layer; none if its type is
    /// unsupported on Windows.
    pub(crate) change: Option<LayerChange<()>>,
}

impl Entry {
    /// Path in the layer; that of a deletion is the deleted one.
    pub(crate) fn path(&self) -> &str {
        self.deleted.as_deref().unwrap_or(&self.raw.path)
    }

    /// Returns true if the path leads outside the layer.
    pub(crate) fn leads_outside(&self) -> bool {
        let mut below = self.path().split('/').skip(1);
        below.any(|name| matches!(name, "." | ".."))
    }
}

/// PAX records of an entry for Windows.
#[derive(Default)]
pub(crate) struct WindowsRecords<'r> {
    pub(crate) attributes: Option<u32>,
    pub(crate) security: Option<SecurityRecord<'r>>,
    is_junction: bool,
}

/// A security descriptor, in base64 or as SDDL.
#[derive(Clone, Copy)]
pub(crate) struct SecurityRecord<'r> {
    pub(crate) text: &'r [u8],
    is_sddl: bool,
}

impl SecurityRecord<'_> {
    /// The descriptor in self-relative form; none if it is unreadable.
    pub(crate) fn read(self) -> Option<Vec<u8>> {
        if !self.is_sddl {
            return STANDARD.decode(self.text).ok();
        }
        let read: SecurityDescriptor = std::str::from_utf8(self.text).ok()?.parse().ok()?;
        Some(read.to_bytes(DescriptorLayout::OwnerFirst))
    }
}

impl<'a> LayerEntries<'a> {
    pub(crate) fn new(reader: LayerReader<'a>, layout: Layout) -> Self {
        Self {
            reader,
            layout,
            memory: NAME_MEMORY,
        }
    }

    /// Moves to the next entry; `None` at the end.
    pub(crate) fn next_entry(&mut self) -> Result<Option<Entry>, TarReadError> {
        while let Some(raw) = self.reader.next_entry()? {
            let left = self.memory.checked_sub(raw.path.len() + ENTRY_MEMORY);
            self.memory = left.ok_or(TarReadError::Malformed(
                "it has more names than any layer of Windows",
            ))?;
            let (folder, name) = raw.path.rsplit_once('/').unwrap_or(("", &raw.path));
            let deleted = match Whiteout::from_name(name) {
                None => None,
                Some(Whiteout::Deletion(name)) if folder.is_empty() => Some(name.to_owned()),
                Some(Whiteout::Deletion(name)) => Some(format!("{folder}/{name}")),
                Some(Whiteout::Opaque) if self.layout == Layout::Other => Some(folder.to_owned()),
                Some(Whiteout::Opaque | Whiteout::Other) => continue,
            };
            let target = raw.target.as_deref();
            let change = match raw.kind {
                _ if deleted.is_some() => Some(LayerChange::Deleted),
                TarEntryKind::Directory => Some(LayerChange::Folder(())),
                TarEntryKind::File => Some(LayerChange::File(())),
                TarEntryKind::Symlink => Some(LayerChange::Link(LinkTarget {
                    target: target.map(Box::from),
                    is_junction: self.records().is_junction,
                })),
                TarEntryKind::HardLink => {
                    let target = target.unwrap_or_default().trim_start_matches("./");
                    Some(LayerChange::HardLink(target.trim_matches('/').into()))
                }
                TarEntryKind::Other => None,
            };
            return Ok(Some(Entry {
                raw,
                deleted,
                change,
            }));
        }
        Ok(None)
    }

    /// Records of the current entry.
    pub(crate) fn records(&self) -> WindowsRecords<'_> {
        let mut found = WindowsRecords::default();
        for (key, text) in self.reader.pax() {
            let is_sddl = key == b"MSWINDOWS.sd";
            match key {
                b"MSWINDOWS.fileattr" => {
                    let text = std::str::from_utf8(text).ok();
                    found.attributes = text.and_then(|text| text.parse().ok());
                }
                b"MSWINDOWS.mountpoint" => found.is_junction = true,
                b"MSWINDOWS.sd" if found.security.is_some() => {}
                b"MSWINDOWS.rawsd" | b"MSWINDOWS.sd" => {
                    found.security = Some(SecurityRecord { text, is_sddl });
                }
                _ => {}
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_that_windows_does_not_read_lie_outside() {
        use TarEntryKind::{Directory, File, HardLink, Symlink};

        let note = |paths: &[(&str, TarEntryKind)]| {
            let mut outside = OutsideFiles::default();
            for (path, kind) in paths {
                outside.note(&LayerEntry {
                    path: (*path).to_owned(),
                    kind: *kind,
                    size: 0,
                    target: None,
                });
            }
            outside
                .problem()
                .map(|(path, why)| format!("{path}: {why}"))
        };
        let usual = [
            ("", Directory),
            ("Files", Directory),
            ("files/app/a.exe", File),
            ("Files/app/.wh.b", File),
            ("Hives/System_Delta", File),
            ("UtilityVM/Files/x", HardLink),
            ("app", Directory),
            ("app/.wh.old", File),
            (".wh..wh.plnk", File),
            (r"Files\app\a.exe", File),
        ];
        assert_eq!(note(&usual), None);
        let one = [("Files", Directory), ("bin/a.exe", File)];
        let expected = "bin/a.exe: it lies outside Files/: containers do not see it";
        assert_eq!(note(&one).as_deref(), Some(expected));
        let several = [
            ("app/a", File),
            ("Files/b", File),
            ("c", Symlink),
            ("Filesystem/d", File),
        ];
        let expected = "app/a: it and 2 more lie outside Files/: containers do not see them";
        assert_eq!(note(&several).as_deref(), Some(expected));
    }
}
