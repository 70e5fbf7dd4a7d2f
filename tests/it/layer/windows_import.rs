//! Model of Windows' import of a layer's tar, entry by entry, without Windows.
//!
//! Follows hcsshim's import and its reader of tar entries: each entry is created and must not
//! exist, folders precede their contents; names differ in more than case; only `Hives` and `Files`
//! are at the top; deletions are applied last, so the layer must not add what it deletes;
//! attributes, descriptors and times come from PAX records.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use wincimg_testkit::kernel_rules;

const DIRECTORY: u32 = 0x10;
const REPARSE_POINT: u32 = 0x400;

/// The hives allowed in a layer above Windows' own.
const DELTAS: [&str; 5] = [
    "System_Delta", "Software_Delta", "Sam_Delta", "Security_Delta", "DefaultUser_Delta",
];

/// Position of a layer in the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LayerPlacement {
    Bottom,
    Above,
}

/// The imported files.
#[derive(Debug, Default)]
pub(super) struct Imported {
    /// Attributes of every entry, by its name as compared by Windows.
    entries: BTreeMap<Vec<u16>, ImportedEntry>,
    deleted: BTreeSet<Vec<u16>>,
    pub hives: usize,
}

#[derive(Debug, Clone)]
struct ImportedEntry {
    name: String,
    attributes: u32,
}

/// The relevant fields of a tar entry.
struct Header {
    name: String,
    kind: tar::EntryType,
    link: Option<String>,
    records: BTreeMap<String, String>,
    content: Vec<u8>,
}

/// Imports a tar; the error names the entry and the reason.
pub(super) fn import(tar: impl Read, place: LayerPlacement) -> Result<Imported, String> {
    let mut imported = Imported::default();
    let mut archive = tar::Archive::new(tar);
    for entry in archive.entries().map_err(|error| error.to_string())? {
        let header = Header::of(entry).map_err(|error| error.to_string())?;
        imported
            .take(&header, place)
            .map_err(|problem| format!("{}: {problem}", header.name))?;
    }
    imported.finish(place)
}

impl Header {
    fn of(entry: std::io::Result<tar::Entry<'_, impl Read>>) -> std::io::Result<Self> {
        let mut entry = entry?;
        let mut records = BTreeMap::new();
        if let Some(found) = entry.pax_extensions()? {
            for record in found {
                let record = record?;
                let utf8 = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                records.insert(utf8(record.key_bytes()), utf8(record.value_bytes()));
            }
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let link = entry.link_name_bytes();
        let link = link.map(|link| String::from_utf8_lossy(&link).into_owned());
        let kind = entry.header().entry_type();
        let mut content = Vec::new();
        entry.read_to_end(&mut content)?;
        Ok(Self {
            name,
            kind,
            link,
            records,
            content,
        })
    }

    /// Checks a time; without a record it would be in the year 1754.
    fn time(&self, record: &str) -> Result<(), String> {
        let value = self.records.get(record);
        let value = value.ok_or_else(|| format!("no {record}"))?;
        let (seconds, fraction) = value.split_once('.').unwrap_or((value, "0"));
        let is_number = fraction.bytes().all(|digit| digit.is_ascii_digit());
        match seconds.parse::<i64>() {
            Ok(_) if is_number => Ok(()),
            _ => Err(format!("{record} is not a time: {value:?}")),
        }
    }

    fn attributes(&self) -> Result<u32, String> {
        let value = self.records.get("MSWINDOWS.fileattr");
        let value = value.ok_or("no MSWINDOWS.fileattr")?;
        let number = value.parse().map_err(|_| "attributes are not a number")?;
        let expected = match self.kind {
            tar::EntryType::Directory => (true, false),
            tar::EntryType::Symlink => (number & DIRECTORY != 0, true),
            tar::EntryType::Regular => (false, false),
            kind => return Err(format!("an entry of kind {kind:?}")),
        };
        let found = (number & DIRECTORY != 0, number & REPARSE_POINT != 0);
        if found == expected {
            Ok(number)
        } else {
            Err(format!("attributes {number:#x} of another kind of entry"))
        }
    }

    /// Checks descriptors: a daemon's layers have them only below `Files`; the top folders and the
    /// hives have none.
    fn security(&self) -> Result<(), String> {
        let is_inside = self.name.starts_with("Files/");
        let Some(value) = self.records.get("MSWINDOWS.rawsd") else {
            return require(!is_inside, "no MSWINDOWS.rawsd");
        };
        let bytes = BASE64_STANDARD.decode(value);
        let bytes = bytes.map_err(|_| "a descriptor that is not base64")?;
        kernel_rules::descriptor(&bytes).ok_or("invalid descriptor")?;
        require(is_inside, "a descriptor outside of Files")
    }

    fn extended(&self) -> Result<(), String> {
        let known = [
            "MSWINDOWS.fileattr", "MSWINDOWS.rawsd", "MSWINDOWS.mountpoint",
        ];
        for (key, value) in &self.records {
            if key.starts_with("MSWINDOWS.xattr.") {
                let decoded = BASE64_STANDARD.decode(value);
                decoded.map_err(|_| "an attribute that is not base64")?;
            } else if key.starts_with("MSWINDOWS.") && !known.contains(&key.as_str()) {
                return Err(format!("unknown record {key}"));
            }
        }
        Ok(())
    }
}

impl Imported {
    fn take(&mut self, header: &Header, place: LayerPlacement) -> Result<(), String> {
        let name = header.name.trim_end_matches('/');
        check_name(name)?;
        let (folder, base) = name.rsplit_once('/').unwrap_or(("", name));
        if let Some(deleted) = base.strip_prefix(".wh.") {
            return self.delete(folder, deleted, header, place);
        }
        if header.kind == tar::EntryType::Link {
            return self.link(name, header.link.as_deref().unwrap_or_default());
        }
        for time in ["atime", "ctime", "LIBARCHIVE.creationtime"] {
            header.time(time)?;
        }
        header.security()?;
        header.extended()?;
        let attributes = header.attributes()?;
        if header.kind == tar::EntryType::Symlink
            && header.link.as_deref().is_none_or(str::is_empty)
        {
            return Err("a link to nowhere".to_owned());
        }
        if name.starts_with("Hives/") {
            if place == LayerPlacement::Bottom || !DELTAS.contains(&base) {
                return Err("not the name of a layer's hive".to_owned());
            }
            self.hives += 1;
            kernel_rules::check(&header.content)?;
        } else if name.starts_with("Files/Windows/System32/config/") {
            kernel_rules::check(&header.content)?;
        }
        self.add(folder, name, attributes)
    }

    fn add(&mut self, folder: &str, name: &str, attributes: u32) -> Result<(), String> {
        if folder.is_empty() && !matches!(name, "Files" | "Hives") {
            return Err("neither in Files nor in Hives".to_owned());
        }
        if !folder.is_empty() {
            let parent = self
                .entries
                .get(&key(folder))
                .ok_or("its folder is not there")?;
            if parent.attributes & DIRECTORY == 0 {
                return Err("its folder is a file".to_owned());
            }
            if parent.attributes & REPARSE_POINT != 0 {
                return Err("its folder is a link".to_owned());
            }
            if parent.name != folder {
                return Err("its folder is spelled in another way".to_owned());
            }
        }
        let entry = ImportedEntry {
            name: name.to_owned(),
            attributes,
        };
        match self.entries.insert(key(name), entry) {
            None => Ok(()),
            Some(there) => Err(format!("{} is there already", there.name)),
        }
    }

    fn delete(
        &mut self,
        folder: &str,
        deleted: &str,
        header: &Header,
        place: LayerPlacement,
    ) -> Result<(), String> {
        if place == LayerPlacement::Bottom {
            return Err("a deletion with nothing below".to_owned());
        }
        if folder != "Files" && !folder.starts_with("Files/") {
            return Err("a deletion outside of Files".to_owned());
        }
        if !header.content.is_empty() {
            return Err("a deletion with content".to_owned());
        }
        self.deleted.insert(key(&format!("{folder}/{deleted}")));
        Ok(())
    }

    fn link(&mut self, name: &str, target: &str) -> Result<(), String> {
        if !name.starts_with("Files/") || !target.starts_with("Files/") {
            return Err("a hard link outside of Files".to_owned());
        }
        let attributes = match self.entries.get(&key(target)) {
            Some(target) if target.attributes & DIRECTORY == 0 => target.attributes,
            _ => return Err(format!("no file {target} to link to")),
        };
        let (folder, _) = name.rsplit_once('/').unwrap_or(("", name));
        self.add(folder, name, attributes)
    }

    /// Applies the deletions at the end of the tar.
    fn finish(self, place: LayerPlacement) -> Result<Self, String> {
        let tops: &[&str] = match place {
            LayerPlacement::Above => &["Hives", "Files"],
            LayerPlacement::Bottom => &["Files"],
        };
        if let Some(top) = tops
            .iter()
            .find(|top| !self.entries.contains_key(&key(top)))
        {
            return Err(format!("{top} is missing"));
        }
        if place == LayerPlacement::Bottom {
            // hcsshim's base layer has its hives as files, and no deltas.
            let has_deltas = self.entries.contains_key(&key("Hives"));
            require(!has_deltas, "Hives in the bottom layer")?;
            for hive in ["DEFAULT", "SAM", "SECURITY", "SOFTWARE", "SYSTEM"] {
                let path = format!("Files/Windows/System32/config/{hive}");
                let is_there = self.entries.contains_key(&key(&path));
                require(is_there, &format!("{path} is missing"))?;
            }
        }
        for deleted in &self.deleted {
            let below = |name: &Vec<u16>| {
                name.starts_with(deleted)
                    && name
                        .get(deleted.len())
                        .is_none_or(|&unit| unit == u16::from(b'/'))
            };
            if let Some((_, entry)) = self.entries.iter().find(|(name, _)| below(name)) {
                return Err(format!("{} is deleted again", entry.name));
            }
        }
        Ok(self)
    }

    /// The names of the entries.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.values().map(|entry| entry.name.as_str())
    }

    pub(super) fn deletions(&self) -> usize {
        self.deleted.len()
    }
}

/// Checks that Windows can create a file with this name.
fn check_name(name: &str) -> Result<(), String> {
    let is_bad = |part: &str| {
        part.is_empty()
            || part == "."
            || part == ".."
            || part.ends_with(['.', ' '])
            || part.contains(|c: char| c.is_control() || "<>:\"\\|?*".contains(c))
            || part.encode_utf16().count() > 255
    };
    match name.split('/').find(|part| is_bad(part)) {
        None => Ok(()),
        Some(part) => Err(format!("Windows has no file {part:?}")),
    }
}

/// A name as compared by NTFS.
fn key(name: &str) -> Vec<u16> {
    let units: Vec<u16> = name.encode_utf16().collect();
    kernel_rules::folded(&units)
}

fn require(holds: bool, problem: &str) -> Result<(), String> {
    if holds {
        Ok(())
    } else {
        Err(problem.to_owned())
    }
}
