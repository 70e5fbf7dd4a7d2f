//! The entries of a layer, as Windows takes them. Everything that reads the files of a layer reads
//! it with [`LayerEntries`].

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use wincimg_layer::{
    LayerEntry, LayerReader, NO_SPARSE_FILES, TarEntryKind, TarReadError, Whiteout,
};
use wincimg_registry::security::{DescriptorLayout, SecurityDescriptor};
use wincimg_windows::base_contents::FileDigest;
use wincimg_windows::path::path_problem;

use crate::base::sort_key;

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
/// Number of times that a merge holds a name: as the layer's, as the image's and as a key.
const NAME_COPIES: usize = 3;

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

pub(crate) fn last_name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// Returns true if a file has one of these extensions.
pub(crate) fn has_extension(path: &str, known: &[&str]) -> bool {
    let end = last_name(path).rsplit_once('.').map_or("", |(_, end)| end);
    known.iter().any(|known| end.eq_ignore_ascii_case(known))
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
    /// Path of the entry before.
    before: String,
    /// Files of the hard links so far, by the keys of their paths.
    links: HashMap<Vec<u8>, String>,
}

pub(crate) struct Entry {
    pub(crate) raw: LayerEntry,
    deleted: Option<String>,
    /// What it changes at its path, with the file of a hard link as a path in the layer, never that
    /// of a link before it; none if its type is unsupported on Windows.
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
            before: String::new(),
            links: HashMap::new(),
        }
    }

    /// Moves to the next entry; `None` at the end.
    pub(crate) fn next_entry(&mut self) -> Result<Option<Entry>, TarReadError> {
        while let Some(mut raw) = self.reader.next_entry()? {
            if self.reader.is_sparse() {
                return Err(TarReadError::Refused(NO_SPARSE_FILES.to_owned()));
            }
            let (folder, name) = raw.path.rsplit_once('/').unwrap_or(("", &raw.path));
            let mut deleted = match Whiteout::from_name(name) {
                None => None,
                Some(Whiteout::Deletion(name)) if folder.is_empty() => Some(name.to_owned()),
                Some(Whiteout::Deletion(name)) => Some(format!("{folder}/{name}")),
                Some(Whiteout::Opaque) if self.layout == Layout::Other => Some(folder.to_owned()),
                Some(Whiteout::Opaque | Whiteout::Other) => continue,
            };
            if self.layout == Layout::Windows {
                let is_path = raw.kind == TarEntryKind::HardLink;
                let target = raw.target.as_mut().filter(|_| is_path);
                let paths = [Some(&mut raw.path), target, deleted.as_mut()];
                paths.into_iter().flatten().for_each(separate);
            }
            if raw.kind == TarEntryKind::HardLink && deleted.is_none() {
                let target = raw.target.as_deref().unwrap_or_default();
                raw.target = Some(self.file_of_link(&raw.path, target));
            }
            let target = raw.target.as_deref();
            self.reserve(deleted.as_deref().unwrap_or(&raw.path), target)?;
            let change = match raw.kind {
                _ if deleted.is_some() => Some(LayerChange::Deleted),
                TarEntryKind::Directory => Some(LayerChange::Folder(())),
                TarEntryKind::File => Some(LayerChange::File(())),
                TarEntryKind::Symlink => Some(LayerChange::Link(LinkTarget {
                    target: target.map(Box::from),
                    is_junction: self.records().is_junction,
                })),
                TarEntryKind::HardLink => {
                    Some(LayerChange::HardLink(target.unwrap_or_default().into()))
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

    /// The path of the file of a new hard link. On Windows a target comes before its links, so they
    /// cannot form loops.
    fn file_of_link(&mut self, path: &str, target: &str) -> String {
        let target = target.trim_start_matches("./").trim_matches('/');
        let known = self.links.get(&sort_key::for_layer_path(target));
        let file = known.map_or(target, String::as_str).to_owned();
        let key = sort_key::for_layer_path(path);
        self.links.insert(key, file.clone());
        file
    }

    /// Checks the length of an entry's path below its top folder, and counts its memory.
    fn reserve(&mut self, path: &str, target: Option<&str>) -> Result<(), TarReadError> {
        let inside = path.split_once('/').map_or(path, |(_, inside)| inside);
        if let Some(problem) = path_problem(inside) {
            return Err(TarReadError::Refused(problem));
        }
        let left = self
            .memory
            .checked_sub(memory_of(path, target, &self.before));
        self.memory = left.ok_or_else(|| {
            TarReadError::Refused("it has more names than any layer of Windows".to_owned())
        })?;
        path.clone_into(&mut self.before);
        Ok(())
    }

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

/// Replaces backslashes in a path of a layer, which separate names, too, where Windows unpacks it.
fn separate(path: &mut String) {
    if path.contains('\\') {
        let slashes = path.replace('\\', "/");
        let inside = slashes.trim_start_matches("./").trim_matches('/');
        inside.clone_into(path);
    }
}

/// Memory of an entry, and of the folders above it that the entry before does not name: a merge
/// adds those that no layer describes.
fn memory_of(path: &str, target: Option<&str>, before: &str) -> usize {
    let of_length = |length: usize| NAME_COPIES * length + ENTRY_MEMORY;
    let before = before.bytes().chain([b'/']);
    let both = path.bytes().zip(before);
    let shared = both.take_while(|(own, other)| own == other).count();
    let folders = path.match_indices('/').map(|(at, _)| at);
    let new = folders.filter(|at| *at >= shared);
    new.map(of_length).sum::<usize>() + of_length(path.len() + target.map_or(0, str::len))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use wincimg_layer::Limits;
    use wincimg_testkit::test_bases::LayerTar;

    use super::*;

    /// Reads a layer with an empty file at each of these paths, and counts its entries.
    fn read_layer(paths: impl IntoIterator<Item = String>) -> Result<usize, String> {
        read_tar(&tar_of(paths))
    }

    fn tar_of<P: AsRef<Path>>(paths: impl IntoIterator<Item = P>) -> Vec<u8> {
        let mut tar = tar::Builder::new(Vec::new());
        for path in paths {
            let mut header = tar::Header::new_gnu();
            header.set_size(0);
            tar.append_data(&mut header, path, &[][..]).unwrap();
        }
        tar.into_inner().unwrap()
    }

    fn read_tar(tar: &[u8]) -> Result<usize, String> {
        let reader = LayerReader::new(tar, Limits::default()).unwrap();
        let mut entries = LayerEntries::new(reader, Layout::Windows);
        let mut count = 0;
        loop {
            match entries.next_entry() {
                Ok(Some(_)) => count += 1,
                Ok(None) => return Ok(count),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    #[test]
    fn backslashes_separate_names_in_layers_of_windows_alone() {
        let names = [r"Files\app\a.txt", r"Files\app/.wh.b", r"Files\..\c"];
        let tar = tar_of(names);
        let read = |layout| {
            let reader = LayerReader::new(tar.as_slice(), Limits::default()).unwrap();
            let mut entries = LayerEntries::new(reader, layout);
            let next = std::iter::from_fn(|| entries.next_entry().unwrap());
            next.map(|entry| (entry.path().to_owned(), entry.leads_outside()))
                .collect::<Vec<_>>()
        };
        let owned = |path: &str, leads_outside: bool| (path.to_owned(), leads_outside);
        let windows = [
            owned("Files/app/a.txt", false),
            owned("Files/app/b", false),
            owned("Files/../c", true),
        ];
        assert_eq!(read(Layout::Windows), windows);
        let other = [names[0], r"Files\app/b", names[2]].map(|path| owned(path, false));
        assert_eq!(read(Layout::Other), other);
    }

    #[test]
    fn a_hard_link_to_a_hard_link_has_its_file() {
        let mut tar = LayerTar::default();
        tar.hard_link("Files/b", "Files/a")
            .hard_link("Files/c", "./Files/B")
            .hard_link("Files/d", r"Files\C")
            .hard_link("Files/x", "Files/y")
            .hard_link("Files/y", "Files/x");
        let tar = tar.tar();
        let reader = LayerReader::new(tar.as_slice(), Limits::default()).unwrap();
        let mut entries = LayerEntries::new(reader, Layout::Windows);
        let next = std::iter::from_fn(|| entries.next_entry().unwrap());
        let changes: Vec<_> = next.filter_map(|entry| entry.change).collect();
        let link = |file: &str| LayerChange::HardLink(format!("Files/{file}").into());
        let links: [LayerChange<()>; 5] = ["a", "a", "a", "y", "y"].map(link);
        assert_eq!(changes[1..], links);
    }

    #[test]
    fn a_sparse_file_is_refused_in_each_format() {
        let mut pax = tar::Builder::new(Vec::new());
        let map = ("GNU.sparse.major", b"1".as_slice());
        pax.append_pax_extensions([map]).unwrap();
        let mut gnu = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(0);
        pax.append_data(&mut header, "Files/GNUSparseFile.1/a", &[][..])
            .unwrap();
        header.set_entry_type(tar::EntryType::GNUSparse);
        gnu.append_data(&mut header, "Files/a", &[][..]).unwrap();
        for tar in [pax, gnu] {
            let error = read_tar(&tar.into_inner().unwrap()).unwrap_err();
            assert_eq!(error, NO_SPARSE_FILES);
        }
    }

    #[test]
    fn a_path_has_a_length_that_folders_can_have() {
        let deep = |levels: usize| format!("Files/{}f", "a/".repeat(levels - 1));
        let folder = vec!["x".repeat(255); 15].join("/");
        let name = "y".repeat(255);
        let longest = [
            deep(128),
            format!("Files/{folder}/{name}"),
            format!("Files/{folder}/.wh.{name}"),
        ];
        assert_eq!(read_layer(longest), Ok(3));
        for (path, why) in [
            (deep(129), "it has more than 128 names"),
            (deep(100_000), "it has more than 4096 bytes"),
            (
                format!("Files/{folder}/yy{name}"),
                "it has more than 4096 bytes",
            ),
        ] {
            let error = read_layer([path]).unwrap_err();
            assert!(error.ends_with(why) && error.len() < 120, "{error}");
        }
    }

    #[test]
    fn folders_that_no_layer_describes_take_memory_too() {
        let way = vec!["x".repeat(30); 126].join("/");
        let path = |number: usize| format!("Files/{number}/{way}/f");
        assert_eq!(read_layer((0..100).map(path)), Ok(100));
        let error = read_layer((0..2_000).map(path)).unwrap_err();
        assert!(error.contains("more names than any layer"), "{error}");
    }

    #[test]
    fn what_the_entry_before_names_takes_no_memory_again() {
        let after = |before: &str| memory_of("Files/a/b/c", None, before);
        let least = after("Files/a/b");
        for before in ["Files/a/b/c", "Files/a/b/x/y"] {
            assert_eq!(after(before), least, "{before}");
        }
        for (before, folders) in [
            ("Files/a", &["Files/a/b"][..]),
            ("Files/a/bc", &["Files/a/b"][..]),
            ("Files/ab", &["Files/a", "Files/a/b"][..]),
            ("", &["Files", "Files/a", "Files/a/b"][..]),
        ] {
            let names: usize = folders.iter().map(|folder| folder.len()).sum();
            let more = NAME_COPIES * names + ENTRY_MEMORY * folders.len();
            assert_eq!(after(before), least + more, "{before}");
        }
    }

    #[test]
    fn targets_of_links_take_memory_too() {
        let alone = memory_of("a", None, "");
        assert_eq!(memory_of("a", Some("xyz"), ""), alone + 3 * NAME_COPIES);
    }

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
            let problem = outside.problem();
            problem.map(|(path, why)| format!("{path}: {why}"))
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
