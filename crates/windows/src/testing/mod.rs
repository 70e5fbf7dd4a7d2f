//! For tests: a base in memory, a second implementation of the parsers of a `RUN` line, and lines in
//! shell form.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "it is part of tests"
)]

pub mod run_line;
pub mod shell_lines;

use std::collections::BTreeMap;

use wincimg_registry::name_folding::FoldedName;
use wincimg_registry::testing::{Keys, security};
use wincimg_registry::{BaseKey, BaseKeys, BaseReadError, KeyPath, Presence};

use crate::base_contents::{BaseContents, BaseFile, FileDigest, FileKind};
use crate::path::ImagePath;

type Names = Vec<FoldedName>;

/// Contents of a base: its hives and, once one was added, its files.
#[derive(Debug, Clone, Default)]
pub struct TestBaseContents {
    keys: Keys,
    files: Option<BTreeMap<Names, (ImagePath, BaseFile)>>,
    contents: BTreeMap<Names, Vec<u8>>,
}

fn folded(names: &[String]) -> Names {
    names.iter().map(|name| FoldedName::new(name)).collect()
}

impl From<Keys> for TestBaseContents {
    fn from(keys: Keys) -> Self {
        Self {
            keys,
            ..Self::default()
        }
    }
}

impl TestBaseContents {
    /// Adds a folder and its descriptor.
    #[must_use]
    pub fn with_folder(self, path: &str, attributes: u32, sddl: &str) -> Self {
        self.with_file_of(path, FileKind::Folder, attributes, sddl)
    }

    /// Adds a file with content and descriptor.
    #[must_use]
    pub fn with_file(mut self, path: &str, content: &[u8], attributes: u32, sddl: &str) -> Self {
        let at: ImagePath = path.parse().unwrap();
        self.contents
            .insert(folded(at.components()), content.to_vec());
        let kind = FileKind::File(FileDigest {
            size: content.len() as u64,
            sha256: [0; 32],
        });
        self.with_file_of(path, kind, attributes, sddl)
    }

    /// Makes the files known: only added ones exist.
    #[must_use]
    pub fn with_drive(mut self) -> Self {
        self.files.get_or_insert_default();
        self
    }

    /// Adds a link or mount point.
    #[must_use]
    pub fn with_mount(self, path: &str) -> Self {
        self.with_file_of(path, FileKind::Link(()), 0x410, "O:SYG:SYD:")
    }

    fn with_file_of(
        mut self,
        path: &str,
        kind: FileKind<FileDigest>,
        attributes: u32,
        sddl: &str,
    ) -> Self {
        let path: ImagePath = path.parse().unwrap();
        let file = BaseFile {
            name: path.components().last().cloned().unwrap_or_default(),
            kind,
            attributes,
            security: Some(security(sddl)),
        };
        let files = self.files.get_or_insert_default();
        files.insert(folded(path.components()), (path, file));
        self
    }

    /// Damages every descriptor.
    #[must_use]
    pub fn with_damaged_descriptors(mut self) -> Self {
        for (_, file) in self.files.iter_mut().flat_map(BTreeMap::values_mut) {
            file.security = Some(vec![1]);
        }
        self
    }
}

impl BaseKeys for TestBaseContents {
    fn key(&self, path: &KeyPath) -> Result<Presence<BaseKey>, BaseReadError> {
        self.keys.key(path)
    }
}

impl BaseContents for TestBaseContents {
    fn file(&self, path: &ImagePath) -> Result<Presence<BaseFile>, BaseReadError> {
        let Some(files) = &self.files else {
            return Ok(Presence::Unknown);
        };
        let file = files.get(&folded(path.components()));
        Ok(file.map_or(Presence::Absent, |(_, file)| {
            Presence::Present(file.clone())
        }))
    }

    fn read_dir(&self, folder: &ImagePath) -> Result<Presence<Vec<BaseFile>>, BaseReadError> {
        let names = folded(folder.components());
        let Some(files) = &self.files else {
            return Ok(Presence::Unknown);
        };
        let inside = files
            .iter()
            .filter(|(path, _)| path.len() == names.len() + 1 && path.starts_with(&names));
        Ok(Presence::Present(
            inside.map(|(_, (_, file))| file.clone()).collect(),
        ))
    }

    fn folders_below(
        &self,
        folder: &ImagePath,
    ) -> Result<Presence<Vec<(ImagePath, BaseFile)>>, BaseReadError> {
        let names = folded(folder.components());
        let Some(files) = &self.files else {
            return Ok(Presence::Unknown);
        };
        let below = files.iter().filter(|(path, (_, file))| {
            file.kind == FileKind::Folder && path.len() > names.len() && path.starts_with(&names)
        });
        Ok(Presence::Present(
            below.map(|(_, found)| found.clone()).collect(),
        ))
    }

    fn content(&self, path: &ImagePath) -> Result<Presence<Vec<u8>>, BaseReadError> {
        let Some(files) = &self.files else {
            return Ok(Presence::Unknown);
        };
        let names = folded(path.components());
        Ok(match (self.contents.get(&names), files.get(&names)) {
            (Some(content), _) => Presence::Present(content.clone()),
            (None, Some(_)) => Presence::Unknown,
            (None, None) => Presence::Absent,
        })
    }
}
