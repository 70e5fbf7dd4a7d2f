//! A base with unwritten layers on top, to which the next layer is fitted. The files of the layers
//! are known even if the base is not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};
use std::{io, slice};

use wincimg_common::digest::Digest;
use wincimg_common::sorted::remove_within;
use wincimg_registry::hive::{Hive, Key, Semantics};
use wincimg_registry::name_folding::FoldedName;
use wincimg_registry::{BaseKey, BaseKeys, BaseReadError, KeyPath, Presence, Root};
use wincimg_windows::base_contents::{BaseContents, BaseFile, FileDigest, FileKind};
use wincimg_windows::path::ImagePath;

use super::content::{ContentSource, EntryContent, Layer, LayerEntry, is_below};
use super::descriptor::{self, Security};
use super::error::LayerError;
use super::path::{LayerPath, WHITEOUT_PREFIX, fold};

/// Maximum size of a file that can be read.
const LONGEST: u64 = 4 << 20;

/// Content of a base, with the files and keys of layers on top.
#[derive(Debug)]
pub struct BaseOverlay<'a> {
    base: &'a dyn BaseContents,
    layers: Vec<Arc<Layer>>,
    /// Files of all layers, computed on first use: many builds need none.
    drive: OnceLock<Result<Drive, BaseReadError>>,
    keys: BTreeMap<KeyPlace, BaseKey>,
    /// Deleted keys of the base, with everything below them.
    deleted_keys: BTreeSet<KeyPlace>,
}

/// Merged files of the layers.
#[derive(Debug, Default)]
struct Drive {
    files: BTreeMap<String, OverlayFile>,
    /// Deleted paths of the base, with everything below them.
    deleted: BTreeSet<String>,
}

/// A file or folder of a layer; small, for there may be many.
#[derive(Debug, PartialEq, Eq)]
struct OverlayFile {
    /// Name in its original spelling.
    name: Box<str>,
    kind: FileKind<ContentSource>,
    attributes: u32,
    /// Descriptor, if not the default.
    security: Option<Security>,
}

impl Drive {
    fn from_layers(layers: &[Arc<Layer>]) -> Result<Self, LayerError> {
        let mut drive = Self::default();
        layers.iter().try_for_each(|layer| drive.add_layer(layer))?;
        Ok(drive)
    }

    fn add_layer(&mut self, layer: &Layer) -> Result<(), LayerError> {
        for item in layer.drive_items()? {
            let path = item.name.as_str();
            let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            let (kind, attributes) = match item.content {
                EntryContent::Directory => (FileKind::Folder, 0x10),
                EntryContent::Symlink(link) => (FileKind::Link(()), link.to.attributes()),
                EntryContent::File(source) => (FileKind::File(source.clone()), 0x20),
                EntryContent::Deletion => {
                    let name = name.strip_prefix(WHITEOUT_PREFIX).unwrap_or(name);
                    let key = fold(format!("{folder}/{name}").trim_start_matches('/'));
                    remove_within(&mut self.files, &key, |own| {
                        *own == key || is_below(own, &key)
                    });
                    self.deleted.insert(key);
                    continue;
                }
            };
            let laid = OverlayFile {
                name: name.into(),
                kind,
                attributes: item.attributes.unwrap_or(attributes),
                security: item.security.cloned(),
            };
            self.files.insert(fold(path), laid);
        }
        Ok(())
    }

    fn at(&self, key: &str) -> Presence<&OverlayFile> {
        if let Some(file) = self.files.get(key) {
            return Presence::Present(file);
        }
        if self.is_deleted(key) {
            return Presence::Absent;
        }
        Presence::Unknown
    }

    /// Returns true if a path of the base, or a folder above it, is deleted.
    fn is_deleted(&self, key: &str) -> bool {
        let mut above = Some(key);
        while let Some(folder) = above {
            if self.deleted.contains(folder) {
                return true;
            }
            above = folder.rsplit_once('\0').map(|(above, _)| above);
        }
        false
    }

    /// Everything below a folder, in the order of paths.
    fn below(&self, folder: &ImagePath) -> impl Iterator<Item = (&str, &OverlayFile)> {
        let above = LayerPath::try_from(folder);
        let above = above.map_or_else(|_| String::new(), |above| format!("{}\0", above.key()));
        let files = self.files.range(above.clone()..);
        files.map_while(move |(own, file)| Some((own.strip_prefix(&above)?, file)))
    }
}

impl OverlayFile {
    /// Converts to the form of a base's file.
    fn to_base_file(&self) -> BaseFile {
        BaseFile {
            name: self.name.to_string(),
            kind: match self.kind {
                FileKind::Folder => FileKind::Folder,
                FileKind::Link(()) => FileKind::Link(()),
                // Fitting does not depend on file content.
                FileKind::File(_) => FileKind::File(FileDigest::default()),
            },
            attributes: self.attributes,
            security: self.security.as_ref().map(Security::bytes),
        }
    }
}

/// A hive, and the path of a key in it.
type KeyPlace = (Root, Vec<FoldedName>);

impl<'a> BaseOverlay<'a> {
    /// Creates an overlay without layers.
    pub fn over(base: &'a dyn BaseContents) -> Self {
        Self {
            base,
            layers: Vec::new(),
            drive: OnceLock::new(),
            keys: BTreeMap::new(),
            deleted_keys: BTreeSet::new(),
        }
    }

    /// Creates an overlay without layers, over a base without some folders and their content.
    pub fn without(base: &'a dyn BaseContents, gone: &[ImagePath]) -> Self {
        let gone = gone
            .iter()
            .filter_map(|path| LayerPath::try_from(path).ok());
        let drive = Drive {
            files: BTreeMap::new(),
            deleted: gone.map(|path| path.key()).collect(),
        };
        Self {
            drive: OnceLock::from(Ok(drive)),
            ..Self::over(base)
        }
    }

    /// Adds a layer that was fitted.
    pub fn lay(&mut self, layer: &Arc<Layer>) -> Result<(), LayerError> {
        self.layers.push(Arc::clone(layer));
        if let Some(Ok(drive)) = self.drive.get_mut() {
            drive.add_layer(layer)?;
        }
        for hive in &layer.hives {
            self.add_hive(hive)?;
        }
        Ok(())
    }

    fn add_hive(&mut self, hive: &LayerEntry) -> Result<(), LayerError> {
        let (Some(root), EntryContent::File(ContentSource::Bytes(bytes))) =
            (Root::from_delta_name(hive.path.as_str()), &hive.content)
        else {
            return Ok(());
        };
        let hive = Hive::read(bytes).map_err(|error| BaseReadError(Arc::new(error)))?;
        let mut path = KeyPath::root_of(root);
        for key in &hive.root.subkeys {
            self.add_key(&mut path, key)?;
        }
        Ok(())
    }

    fn add_key(&mut self, above: &mut KeyPath, key: &Key<'_>) -> Result<(), BaseReadError> {
        // Names that were written are valid key names.
        if above.push(&key.name).is_err() {
            return Ok(());
        }
        let semantics = key.layer.semantics;
        let mut below = self.key(above)?;
        let at = place(above);
        if matches!(semantics, Semantics::Tombstone | Semantics::SupersedeTree) {
            remove_within(&mut self.keys, &at, |own| is_within(own, &at));
            self.deleted_keys.insert(at.clone());
            below = Presence::Absent;
        }
        // Other values of a key are as unknown as its base.
        if semantics != Semantics::Tombstone && below != Presence::Unknown {
            let mut laid = below.present().unwrap_or_else(|| BaseKey {
                name: key.name.clone(),
                security: Vec::new(),
                class: None,
                link: None,
                values: Vec::new(),
            });
            laid.security = key.security.to_vec();
            if !key.layer.inherit_class {
                laid.class.clone_from(&key.class);
            }
            if semantics == Semantics::SupersedeLocal {
                laid.values.clear();
            }
            let values = key.values.iter();
            let replaced: BTreeSet<FoldedName> =
                values.map(|value| FoldedName::new(&value.name)).collect();
            laid.values
                .retain(|(name, _)| !replaced.contains(&FoldedName::new(name)));
            let values = key.values.iter();
            let values = values.filter_map(|value| Some((value.name.clone(), value.data()?)));
            laid.values.extend(values);
            self.keys.insert(at, laid);
        }
        if semantics != Semantics::Tombstone {
            for subkey in &key.subkeys {
                self.add_key(above, subkey)?;
            }
        }
        above.pop();
        Ok(())
    }

    fn drive(&self) -> Result<&Drive, BaseReadError> {
        let drive = self.drive.get_or_init(|| {
            let drive = Drive::from_layers(&self.layers);
            drive.map_err(|error| BaseReadError(Arc::new(error)))
        });
        drive.as_ref().map_err(Clone::clone)
    }

    /// Looks up a path in the layers.
    fn find_in_layers(&self, path: &ImagePath) -> Result<Presence<&OverlayFile>, BaseReadError> {
        let Ok(own) = LayerPath::try_from(path) else {
            return Ok(Presence::Unknown);
        };
        Ok(self.drive()?.at(&own.key()))
    }

    /// The source of a file of the layers; unknown if only the base determines it.
    fn source(&self, path: &ImagePath) -> Result<Presence<&ContentSource>, BaseReadError> {
        let found = self.find_in_layers(path)?;
        Ok(found.and_then(|file| match &file.kind {
            FileKind::File(source) => Presence::Present(source),
            FileKind::Folder | FileKind::Link(()) => Presence::Absent,
        }))
    }

    /// Returns true if a layer deleted what the base has at a path.
    fn is_deleted(&self, path: &ImagePath) -> Result<bool, BaseReadError> {
        let Ok(own) = LayerPath::try_from(path) else {
            return Ok(false);
        };
        Ok(self.drive()?.is_deleted(&own.key()))
    }

    /// The files of the layers at a path and below it that are not deleted.
    pub(super) fn files_in(
        &self,
        top: &ImagePath,
    ) -> Result<Vec<(LayerPath, ContentSource)>, LayerError> {
        let drive = self.drive()?;
        let mut found = Vec::new();
        let mut add = |path: &ImagePath, file: &OverlayFile| -> Result<(), LayerError> {
            if let FileKind::File(source) = &file.kind {
                found.push((LayerPath::try_from(path)?, source.clone()));
            }
            Ok(())
        };
        if let Presence::Present(file) = self.find_in_layers(top)? {
            add(top, file)?;
        }
        let mut names = Vec::new();
        for (inside, file) in drive.below(top) {
            names.truncate(inside.matches('\0').count());
            names.push(&file.name);
            if let Ok(path) = top.join_all(&names) {
                add(&path, file)?;
            }
        }
        Ok(found)
    }

    /// Returns true if only the base determines a path.
    fn is_of_base(&self, path: &ImagePath) -> Result<bool, BaseReadError> {
        Ok(self.find_in_layers(path)? == Presence::Unknown)
    }
}

fn place(path: &KeyPath) -> KeyPlace {
    let names = path.components().iter();
    (
        path.root(),
        names.map(|name| FoldedName::new(name)).collect(),
    )
}

fn is_within((root, names): &KeyPlace, (of, above): &KeyPlace) -> bool {
    root == of && names.starts_with(above)
}

impl BaseKeys for BaseOverlay<'_> {
    fn key(&self, path: &KeyPath) -> Result<Presence<BaseKey>, BaseReadError> {
        // The folded path of a deep key is long.
        if self.keys.is_empty() && self.deleted_keys.is_empty() {
            return self.base.key(path);
        }
        let mut at = place(path);
        if let Some(key) = self.keys.get(&at) {
            return Ok(Presence::Present(key.clone()));
        }
        while !at.1.is_empty() {
            if self.deleted_keys.contains(&at) {
                return Ok(Presence::Absent);
            }
            at.1.pop();
        }
        self.base.key(path)
    }
}

impl BaseContents for BaseOverlay<'_> {
    fn file(&self, path: &ImagePath) -> Result<Presence<BaseFile>, BaseReadError> {
        match self.find_in_layers(path)? {
            Presence::Unknown => self.base.file(path),
            own => Ok(own.map(OverlayFile::to_base_file)),
        }
    }

    fn read_dir(&self, folder: &ImagePath) -> Result<Presence<Vec<BaseFile>>, BaseReadError> {
        let is_folder = match self.file(folder)? {
            Presence::Unknown => return Ok(Presence::Unknown),
            Presence::Present(found) => found.kind == FileKind::Folder,
            Presence::Absent => false,
        };
        if !is_folder {
            return Ok(Presence::Absent);
        }
        let of_base = match self.base.read_dir(folder)? {
            Presence::Unknown if !self.is_deleted(folder)? => return Ok(Presence::Unknown),
            of_base => of_base.present().unwrap_or_default(),
        };
        let mut found = Vec::with_capacity(of_base.len());
        for file in of_base {
            let path = folder.join(&file.name);
            if path.map_or(Ok(true), |path| self.is_of_base(&path))? {
                found.push(file);
            }
        }
        let own = self.drive()?.below(folder);
        let own = own.filter(|(inside, _)| !inside.contains('\0'));
        found.extend(own.map(|(_, laid)| laid.to_base_file()));
        Ok(Presence::Present(found))
    }

    fn folders_below(
        &self,
        path: &ImagePath,
    ) -> Result<Presence<Vec<(ImagePath, BaseFile)>>, BaseReadError> {
        let of_base = match self.base.folders_below(path)? {
            // A folder that a layer created in an unknown base has nothing else in it.
            Presence::Unknown if self.is_of_base(path)? => return Ok(Presence::Unknown),
            of_base => of_base.present().unwrap_or_default(),
        };
        let mut found = Vec::with_capacity(of_base.len());
        for (path, file) in of_base {
            if self.is_of_base(&path)? {
                found.push((path, file));
            }
        }
        let mut names = Vec::new();
        // A folder directly precedes its content.
        for (inside, laid) in self.drive()?.below(path) {
            names.truncate(inside.matches('\0').count());
            names.push(&laid.name);
            if laid.kind == FileKind::Folder
                && let Ok(folder) = path.join_all(&names)
            {
                let mut file = laid.to_base_file();
                file.security
                    .get_or_insert_with(|| descriptor::DIRECTORY.bytes());
                found.push((folder, file));
            }
        }
        found.sort_by_cached_key(|(path, _)| path.key());
        Ok(Presence::Present(found))
    }

    fn content(&self, path: &ImagePath) -> Result<Presence<Vec<u8>>, BaseReadError> {
        let source = match self.source(path)? {
            Presence::Present(source) => source,
            Presence::Absent => return Ok(Presence::Absent),
            Presence::Unknown => return self.base.content(path),
        };
        match source.read(LONGEST) {
            Ok(bytes) => Ok(Presence::Present(bytes)),
            Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Ok(Presence::Unknown),
            Err(error) => Err(BaseReadError(Arc::new(error))),
        }
    }

    fn digest(&self, path: &ImagePath) -> Result<Presence<Digest>, BaseReadError> {
        let source = match self.source(path)? {
            Presence::Present(source) => source,
            Presence::Absent => return Ok(Presence::Absent),
            Presence::Unknown => return self.base.digest(path),
        };
        let digests = ContentSource::digests(slice::from_ref(source));
        let digests = digests.map_err(|error| BaseReadError(Arc::new(error)))?;
        let digest = digests.into_iter().next();
        Ok(digest.map_or(Presence::Unknown, Presence::Present))
    }
}

#[cfg(test)]
mod tests;
