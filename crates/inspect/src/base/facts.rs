//! Queries on facts about a base.

use wincimg_oci::document::Digest;
use wincimg_registry::{BaseKey, BaseKeys, BaseReadError, KeyPath, Presence};
use wincimg_windows::base_contents::{BaseContents, BaseFile, FileKind};
use wincimg_windows::path::ImagePath;

use super::error::FactsError;
use super::file::{BaseFacts, BaseProblem, Cursor, Table, descriptor_key};
use super::hives::{BaseHive, BaseKeyPath};
use super::record::{FileRecord, KeyRecord};
use super::sort_key;

/// A file or folder of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Path: names from the drive down, in their original spelling.
    pub components: Vec<String>,
    /// Properties.
    pub file: BaseFile,
    /// Target of a link.
    pub target: Option<String>,
}

/// A key of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedKey {
    /// Path in its original spelling.
    pub path: BaseKeyPath,
    /// Properties.
    pub key: BaseKey,
}

impl BaseFacts {
    /// Digest of the base.
    pub fn base_digest(&self) -> &Digest {
        &self.about.base
    }

    /// Version of Windows that the base names.
    pub fn os_version(&self) -> Option<&str> {
        self.about.os_version.as_deref()
    }

    /// Returns true if all facts were collected.
    pub fn is_complete(&self) -> bool {
        self.about.collected.everything
    }

    /// Returns true if facts about the hive are present.
    pub fn has_hive(&self, hive: BaseHive) -> bool {
        self.about.collected.hives.contains(&hive)
    }

    /// Returns true if facts about files and folders are present.
    pub fn has_files(&self) -> bool {
        self.about.collected.files
    }

    /// Unusable parts of the base.
    pub fn problems(&self) -> &[BaseProblem] {
        &self.about.problems
    }

    /// The key at a path in any hive. Links on the way are not followed.
    pub fn key_at(&self, path: &BaseKeyPath) -> Result<Presence<BaseKey>, FactsError> {
        if !self.has_hive(path.hive) {
            return Ok(Presence::Unknown);
        }
        let found = self.get(Table::Keys, &sort_key::for_key(path), KeyRecord::decode)?;
        match found {
            None => Ok(Presence::Absent),
            Some(record) if record.is_alone => Ok(Presence::Unknown),
            Some(record) => self.base_key(record).map(Presence::Present),
        }
    }

    /// The subkeys of a key, sorted by name.
    pub fn subkeys(&self, path: &BaseKeyPath) -> Result<Vec<ListedKey>, FactsError> {
        self.children(Table::Keys, &sort_key::for_key(path), |value| {
            let record = KeyRecord::decode(value)?;
            let mut path = path.clone();
            path.components.push(record.name.clone());
            let key = self.base_key(record)?;
            Ok(ListedKey { path, key })
        })
    }

    /// A key and everything below it, parents first.
    pub fn keys_below<'f>(
        &'f self,
        path: &BaseKeyPath,
    ) -> Result<impl Iterator<Item = Result<ListedKey, FactsError>> + use<'f>, FactsError> {
        let walk = self.walk(Table::Keys, sort_key::for_key(path), &path.components)?;
        let hive = path.hive;
        Ok(walk.map(move |found| {
            let (components, value) = found?;
            let key = self.base_key(KeyRecord::decode(&value)?)?;
            let path = BaseKeyPath { hive, components };
            Ok(ListedKey { path, key })
        }))
    }

    /// The entries of a folder, sorted by name.
    pub fn folder(&self, path: &ImagePath) -> Result<Vec<ListedFile>, FactsError> {
        self.children(Table::Files, &sort_key::for_file(path), |value| {
            let record = FileRecord::decode(value)?;
            let mut components = path.components().to_vec();
            components.push(record.name.clone());
            self.listed(components, record)
        })
    }

    /// A file or folder and everything below it, parents first.
    pub fn files_below<'f>(
        &'f self,
        path: &ImagePath,
    ) -> Result<impl Iterator<Item = Result<ListedFile, FactsError>> + use<'f>, FactsError> {
        let walk = self.walk(Table::Files, sort_key::for_file(path), path.components())?;
        Ok(walk.map(move |found| {
            let (components, value) = found?;
            self.listed(components, FileRecord::decode(&value)?)
        }))
    }

    fn listed(
        &self,
        components: Vec<String>,
        record: FileRecord,
    ) -> Result<ListedFile, FactsError> {
        Ok(ListedFile {
            components,
            file: self.base_file(&record)?,
            target: record.target,
        })
    }

    fn base_key(&self, record: KeyRecord) -> Result<BaseKey, FactsError> {
        Ok(BaseKey {
            name: record.name,
            security: self.descriptor(record.descriptor)?,
            class: record.class,
            link: record
                .is_link
                .then(|| BaseKey::link_target(&record.values))
                .flatten(),
            values: record.values,
        })
    }

    fn base_file(&self, record: &FileRecord) -> Result<BaseFile, FactsError> {
        let security = record.descriptor.map(|number| self.descriptor(number));
        Ok(BaseFile {
            name: record.name.clone(),
            kind: record.kind,
            attributes: record.attributes,
            security: security.transpose()?,
        })
    }

    fn descriptor(&self, number: u32) -> Result<Vec<u8>, FactsError> {
        let found = self.get(Table::Descriptors, &descriptor_key(number), |bytes| {
            Ok(bytes.to_vec())
        })?;
        let found = found.ok_or(FactsError::Damaged("a descriptor is missing"));
        self.checked(found)
    }

    /// Reads the direct children of a path in a table.
    fn children<T>(
        &self,
        table: Table,
        parent: &[u8],
        read: impl Fn(&[u8]) -> Result<T, FactsError>,
    ) -> Result<Vec<T>, FactsError> {
        let depth = sort_key::depth(parent) + 1;
        let end = sort_key::behind(parent);
        let read_all = || -> Result<Vec<T>, FactsError> {
            let mut children = Vec::new();
            let mut cursor = self.seek(table, &sort_key::below(parent))?;
            while let Some((key, value)) = cursor.entry()
                && key < end.as_slice()
            {
                if sort_key::depth(key) == depth {
                    children.push(read(value)?);
                }
                // Skips everything below it.
                let next = sort_key::behind(key);
                cursor = self.seek(table, &next)?;
            }
            Ok(children)
        };
        self.checked(read_all())
    }

    /// Iterates over a path in a table and everything below it, with the names of the path.
    fn walk(&self, table: Table, top: Vec<u8>, names: &[String]) -> Result<Walk<'_>, FactsError> {
        Ok(Walk {
            cursor: self.checked(self.seek(table, &top))?,
            table,
            end: sort_key::behind(&top),
            names: names.to_vec(),
            top,
            is_over: false,
        })
    }
}

/// The names of a path and its table entry.
type TreeEntry = (Vec<String>, Vec<u8>);

struct Walk<'f> {
    cursor: Cursor<'f>,
    table: Table,
    top: Vec<u8>,
    end: Vec<u8>,
    names: Vec<String>,
    is_over: bool,
}

impl Walk<'_> {
    fn step(&mut self) -> Result<Option<TreeEntry>, FactsError> {
        let Some((key, value)) = self.cursor.entry() else {
            return Ok(None);
        };
        if key >= self.end.as_slice() {
            return Ok(None);
        }
        let depth = sort_key::depth(key);
        let is_within = key == self.top || key.starts_with(&sort_key::below(&self.top));
        if depth > 0 && is_within {
            let name = match self.table {
                Table::Keys => KeyRecord::decode(value)?.name,
                _ => FileRecord::decode(value)?.name,
            };
            if depth > self.names.len() + 1 {
                return Err(FactsError::Damaged("an entry has no parent"));
            }
            self.names.truncate(depth - 1);
            self.names.push(name);
        }
        let found = (self.names.clone(), value.to_vec());
        self.cursor.advance()?;
        Ok(Some(found))
    }
}

impl Iterator for Walk<'_> {
    type Item = Result<TreeEntry, FactsError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let step = self.step();
        let step = self.cursor.file.checked(step).transpose();
        self.is_over = !matches!(step, Some(Ok(_)));
        step
    }
}

/// Key of the names of accounts in `HKLM\SAM`.
const ACCOUNTS: [&str; 5] = ["SAM", "Domains", "Account", "Users", "Names"];

impl BaseKeys for BaseFacts {
    fn key(&self, path: &KeyPath) -> Result<Presence<BaseKey>, BaseReadError> {
        Ok(self.key_at(&path.into())?)
    }
}

impl BaseContents for BaseFacts {
    fn file(&self, path: &ImagePath) -> Result<Presence<BaseFile>, BaseReadError> {
        if !self.has_files() {
            return Ok(Presence::Unknown);
        }
        let key = sort_key::for_file(path);
        match self.get(Table::Files, &key, FileRecord::decode)? {
            None => Ok(Presence::Absent),
            Some(record) => Ok(Presence::Present(self.base_file(&record)?)),
        }
    }

    fn read_dir(&self, folder: &ImagePath) -> Result<Presence<Vec<BaseFile>>, BaseReadError> {
        Ok(match self.file(folder)? {
            Presence::Unknown => Presence::Unknown,
            Presence::Present(found) if found.kind == FileKind::Folder => {
                let listed = self.folder(folder)?.into_iter();
                Presence::Present(listed.map(|listed| listed.file).collect())
            }
            Presence::Absent | Presence::Present(_) => Presence::Absent,
        })
    }

    fn folders_below(
        &self,
        path: &ImagePath,
    ) -> Result<Presence<Vec<(ImagePath, BaseFile)>>, BaseReadError> {
        if !self.has_files() {
            return Ok(Presence::Unknown);
        }
        let mut folders = Vec::new();
        for listed in self.files_below(path)?.skip(1) {
            let listed = listed?;
            // A name that no layer can have is skipped.
            let inside = format!("/{}", listed.components.join("/")).parse();
            if let (FileKind::Folder, Ok(inside)) = (listed.file.kind, inside) {
                folders.push((inside, listed.file));
            }
        }
        Ok(Presence::Present(folders))
    }

    fn content(&self, path: &ImagePath) -> Result<Presence<Vec<u8>>, BaseReadError> {
        let key = sort_key::for_file(path);
        let read = |bytes: &[u8]| Ok(bytes.to_vec());
        if let Some(content) = self.get(Table::Contents, &key, read)? {
            return Ok(Presence::Present(content));
        }
        let collected = &self.about.collected;
        if collected.files {
            return Ok(match self.file(path)? {
                Presence::Absent => Presence::Absent,
                _ => Presence::Unknown,
            });
        }
        let was_looked_for = collected.contents.contains(&key);
        Ok(if was_looked_for {
            Presence::Absent
        } else {
            Presence::Unknown
        })
    }

    fn account(&self, name: &str) -> Result<Presence<()>, BaseReadError> {
        let mut path = BaseKeyPath {
            hive: BaseHive::Sam,
            components: ACCOUNTS.map(str::to_owned).to_vec(),
        };
        if self.key_at(&path)?.present().is_none() {
            return Ok(Presence::Unknown);
        }
        path.components.push(name.to_owned());
        Ok(self.key_at(&path)?.map(drop))
    }
}
