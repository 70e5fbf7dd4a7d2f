//! Bases into which somebody has looked, in memory.

use std::collections::{BTreeMap, BTreeSet};

use wincimg::windows::hive::Key;
use wincimg::windows::inside::{BaseFile, BaseFileKind, BaseKey, Inside, InsideError, Known};
use wincimg::windows::path::ImagePath;
use wincimg::windows::registry::upcase::Folded;
use wincimg::windows::registry::{DataType, KeyPath, RegistryData, Root};
use wincimg::windows::security::{Layout, SecurityDescriptor};

type Names = Vec<Folded>;

/// What is known of a base: of the hives and, once one was added, of the files.
#[derive(Debug, Clone, Default)]
pub struct Looked {
    hives: BTreeSet<Root>,
    keys: BTreeMap<(Root, Names), BaseKey>,
    files: Option<BTreeMap<Names, BaseFile>>,
    contents: BTreeMap<Names, Vec<u8>>,
}

/// The self-relative form of a descriptor in SDDL.
pub fn security(sddl: &str) -> Vec<u8> {
    let descriptor: SecurityDescriptor = sddl.parse().unwrap();
    descriptor.to_bytes(Layout::ListsFirst)
}

fn folded(names: &[String]) -> Names {
    names.iter().map(|name| Folded::new(name)).collect()
}

impl Looked {
    /// With a hive, as one sees it through all layers.
    pub fn with_hive(mut self, root: Root, top: &Key<'_>) -> Self {
        self.add(&mut KeyPath::root_of(root), top);
        self
    }

    fn add(&mut self, path: &mut KeyPath, key: &Key<'_>) {
        let values = key.values.iter();
        let values = values.map(|value| (value.name.clone(), value.data().unwrap()));
        let values: Vec<(String, RegistryData)> = values.collect();
        self.insert(
            path,
            BaseKey {
                security: key.security.to_vec(),
                class: key.class.clone(),
                link: values.iter().find_map(target),
                values,
            },
        );
        for subkey in &key.subkeys {
            path.push(&subkey.name).unwrap();
            self.add(path, subkey);
            path.pop();
        }
    }

    /// With a key, whose hive has no other keys than those that are told.
    pub fn with_key(mut self, path: &str, sddl: &str, values: &[(&str, RegistryData)]) -> Self {
        let values = values.iter();
        let values = values.map(|(name, data)| ((*name).to_owned(), data.clone()));
        let values: Vec<_> = values.collect();
        let key = BaseKey {
            security: security(sddl),
            class: None,
            link: values.iter().find_map(target),
            values,
        };
        self.insert(&path.parse().unwrap(), key);
        self
    }

    fn insert(&mut self, path: &KeyPath, key: BaseKey) {
        self.hives.insert(path.root());
        self.keys
            .insert((path.root(), folded(path.components())), key);
    }

    /// Without any key in hives that are known.
    pub fn without_keys(mut self) -> Self {
        self.keys.clear();
        self
    }

    /// With a link from one key to another, written as the kernel knows it.
    pub fn with_link(self, path: &str, target: &str) -> Self {
        let target: Vec<u8> = target.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let value = RegistryData::new(DataType::LINK, target);
        self.with_key(path, "O:SYG:SYD:", &[("SymbolicLinkValue", value)])
    }

    /// With a folder and its descriptor.
    pub fn with_folder(self, path: &str, attributes: u32, sddl: &str) -> Self {
        self.with_file_of(path, BaseFileKind::Folder, attributes, sddl)
    }

    /// With a file of some content and its descriptor.
    pub fn with_file(mut self, path: &str, content: &[u8], attributes: u32, sddl: &str) -> Self {
        let at: ImagePath = path.parse().unwrap();
        self.contents
            .insert(folded(at.components()), content.to_vec());
        let kind = BaseFileKind::File {
            size: content.len() as u64,
            sha256: [0; 32],
        };
        self.with_file_of(path, kind, attributes, sddl)
    }

    /// With files that are known, of which there are none but those that are told.
    pub fn with_drive(mut self) -> Self {
        self.files.get_or_insert_default();
        self
    }

    /// With a link or mount point.
    pub fn with_mount(self, path: &str) -> Self {
        self.with_file_of(path, BaseFileKind::Link, 0x410, "O:SYG:SYD:")
    }

    fn with_file_of(mut self, path: &str, kind: BaseFileKind, attributes: u32, sddl: &str) -> Self {
        let path: ImagePath = path.parse().unwrap();
        let file = BaseFile {
            name: path.components().last().cloned().unwrap_or_default(),
            kind,
            attributes,
            security: Some(security(sddl)),
        };
        let files = self.files.get_or_insert_default();
        files.insert(folded(path.components()), file);
        self
    }
}

/// Where a link leads, if layers can change what is there.
fn target((name, data): &(String, RegistryData)) -> Option<KeyPath> {
    if name != "SymbolicLinkValue" || data.kind() != DataType::LINK {
        return None;
    }
    let (units, _) = data.bytes().as_chunks::<2>();
    let units: Vec<u16> = units.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
    let path = String::from_utf16(&units).unwrap();
    let path = path.strip_prefix(r"\Registry\Machine\")?;
    format!(r"HKLM\{path}").parse().ok()
}

impl Inside for Looked {
    fn key(&self, path: &KeyPath) -> Result<Known<BaseKey>, InsideError> {
        if !self.hives.contains(&path.root()) {
            return Ok(Known::Unknown);
        }
        let key = self.keys.get(&(path.root(), folded(path.components())));
        Ok(key.cloned().map_or(Known::Absent, Known::Present))
    }

    fn file(&self, path: &ImagePath) -> Result<Known<BaseFile>, InsideError> {
        let Some(files) = &self.files else {
            return Ok(Known::Unknown);
        };
        let file = files.get(&folded(path.components()));
        Ok(file.cloned().map_or(Known::Absent, Known::Present))
    }

    fn lies_in(&self, folder: &ImagePath) -> Result<Known<Vec<BaseFile>>, InsideError> {
        let names = folded(folder.components());
        let Some(files) = &self.files else {
            return Ok(Known::Unknown);
        };
        let inside = files
            .iter()
            .filter(|(path, _)| path.len() == names.len() + 1 && path.starts_with(&names));
        Ok(Known::Present(
            inside.map(|(_, file)| file.clone()).collect(),
        ))
    }

    fn folders_below(
        &self,
        _: &ImagePath,
    ) -> Result<Known<Vec<(ImagePath, BaseFile)>>, InsideError> {
        Ok(Known::Unknown)
    }

    fn content(&self, path: &ImagePath) -> Result<Known<Vec<u8>>, InsideError> {
        let Some(files) = &self.files else {
            return Ok(Known::Unknown);
        };
        let names = folded(path.components());
        Ok(match (self.contents.get(&names), files.get(&names)) {
            (Some(content), _) => Known::Present(content.clone()),
            (None, Some(_)) => Known::Unknown,
            (None, None) => Known::Absent,
        })
    }
}
