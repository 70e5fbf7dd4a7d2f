//! The effect of a Dockerfile's instructions or a recipe's layers: image layers in order, and the
//! container configuration.
//!
//! A recipe with a single layer does not need this.

use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use wincimg_iis::config::ConfigEdit;
use wincimg_images::shim;
use wincimg_layer::archive::UnpackedContent;
use wincimg_layer::{ContentSource, Layer, LayerError, LayerPath, Symlink};
use wincimg_oci::document::ContainerConfig;
use wincimg_registry::hive::HiveFile;
use wincimg_registry::{DataType, RegistryEdit};
use wincimg_windows::access::{AccessAccount, AccessChange};
use wincimg_windows::base_contents::BaseContents;
use wincimg_windows::path::ImagePath;

use super::files::PlannedArchive;
use super::packages::PlannedPackage;
use super::plan::{Fact, facts};
use super::source::{FileSource, ImageFiles, PlannedDownload};

/// Longest binary value, in bytes, that the text of a plan shows.
const SHOWN_BYTES: usize = 32;

/// Instructions of a Dockerfile, or layers of a recipe, on top of a base.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Instructions {
    /// The instructions, in order.
    pub steps: Vec<PlannedStep>,
    /// Container configuration after the last instruction.
    pub container: ContainerConfig,
    /// Author of the image, where given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

/// Effect of one instruction.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedStep {
    /// The line of the Dockerfile, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// Its text in the image's history.
    pub created_by: String,
    /// Its layer; none if it changes only the container configuration. Copies of a plan share it,
    /// because it may have a hundred thousand files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<Arc<PlannedLayer>>,
}

/// Changes of one layer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PlannedLayer {
    /// Windows Installer packages, whose files and registry edits are among the others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub packages: Vec<PlannedPackage>,
    /// Files and folders, each path once.
    pub entries: Vec<PlannedEntry>,
    /// The registry, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub registry: Vec<RegistryEdit>,
    /// Its changes of rights, in order, once its files are there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub access: Vec<AccessChange>,
    /// Account that creates its new entries; an administrator where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<AccessAccount>,
    /// Entries moved or copied here within the image, with their kept attributes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<CopiedEntry>,
    /// Folders that are removed with their contents before they are created again.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub anew: Vec<ImagePath>,
    /// The server's own configuration of IIS, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub iis: Vec<ConfigEdit>,
}

/// A file or folder that is moved or copied within the image and keeps its attributes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CopiedEntry {
    /// Path.
    pub path: ImagePath,
    /// Path of the original in the layers below.
    pub from: ImagePath,
    /// True if it is moved, which keeps its security descriptor, too.
    pub is_moved: bool,
}

/// A file or folder in a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedEntry {
    /// Path.
    pub path: ImagePath,
    /// Entry at the path.
    pub content: PlannedContent,
}

/// Entry of a layer at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlannedContent {
    /// A folder.
    Folder,
    /// A file.
    File(FileSource),
    /// A symbolic link.
    Link(Symlink),
    /// Deletes the path of the layers below.
    Deleted,
}

impl From<UnpackedContent> for PlannedContent {
    fn from(content: UnpackedContent) -> Self {
        match content {
            UnpackedContent::Folder => Self::Folder,
            UnpackedContent::File(member) => Self::File(FileSource::Member(member)),
            UnpackedContent::Link(link) => Self::Link(link),
        }
    }
}

impl PlannedEntry {
    /// A file, or a folder or archive whose entries go to the path.
    pub fn file(path: ImagePath, source: FileSource) -> Self {
        let content = PlannedContent::File(source);
        Self { path, content }
    }

    /// A folder.
    pub fn folder(path: ImagePath) -> Self {
        let content = PlannedContent::Folder;
        Self { path, content }
    }

    /// Its source, if it is a file.
    pub fn source(&self) -> Option<&FileSource> {
        match &self.content {
            PlannedContent::File(source) => Some(source),
            _ => None,
        }
    }

    /// Its path and its source, if it is downloaded or of another image.
    fn remote_source(&self) -> Option<(&ImagePath, &FileSource)> {
        let source = self.source()?;
        let is_remote = matches!(source, FileSource::Image(_)) || source.download().is_some();
        is_remote.then_some((&self.path, source))
    }

    /// Its download, if it has one.
    pub(super) fn download_mut(&mut self) -> Option<&mut PlannedDownload> {
        match &mut self.content {
            PlannedContent::File(source) => source.download_mut(),
            _ => None,
        }
    }

    /// Files of another image, with their target.
    pub(super) fn image_files_mut(&mut self) -> Option<(&ImagePath, &mut ImageFiles)> {
        match &mut self.content {
            PlannedContent::File(FileSource::Image(files)) => Some((&self.path, files)),
            _ => None,
        }
    }
}

impl PlannedLayer {
    /// Returns true if it changes nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Instructions {
    /// The layers with files that are fetched; the others stay shared.
    pub(super) fn fetched_layers_mut(&mut self) -> impl Iterator<Item = &mut PlannedLayer> {
        let layers = self.steps.iter_mut().filter_map(|step| step.layer.as_mut());
        let layers = layers.filter(|layer| {
            let is_downloaded =
                |package: &PlannedPackage| matches!(package.file, FileSource::Download(_));
            let mut entries = layer.entries.iter();
            entries.any(|entry| entry.remote_source().is_some())
                || layer.packages.iter().any(is_downloaded)
        });
        layers.map(Arc::make_mut)
    }

    /// The files that are downloaded.
    pub fn downloads_mut(&mut self) -> impl Iterator<Item = &mut PlannedDownload> {
        self.fetched_layers_mut().flat_map(|layer| {
            let packages = layer.packages.iter_mut();
            let packages = packages.filter_map(|package| package.file.download_mut());
            let entries = layer.entries.iter_mut();
            packages.chain(entries.filter_map(PlannedEntry::download_mut))
        })
    }

    /// The layers, in order.
    pub fn layers(&self) -> impl Iterator<Item = &PlannedLayer> {
        self.steps.iter().filter_map(|step| step.layer.as_deref())
    }
}

/// Describes a registry change, without the bytes of long binary values such as certificates.
fn in_short(edit: &RegistryEdit) -> String {
    match edit {
        RegistryEdit::SetValue { key, name, data }
            if data.kind() == DataType::BINARY && data.bytes().len() > SHOWN_BYTES =>
        {
            format!(
                "set {key} {name:?} = REG_BINARY of {} bytes",
                data.bytes().len()
            )
        }
        edit => edit.to_string(),
    }
}

impl Instructions {
    /// The instructions and the container configuration, as lines.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let mut all = Vec::new();
        for step in &self.steps {
            let is_layer = step.layer.is_some();
            let kind = if is_layer { "layer" } else { "setting" };
            all.push((kind, step.created_by.clone()));
            let Some(layer) = &step.layer else { continue };
            all.extend(facts("msi", &layer.packages));
            all.extend(facts("registry", layer.registry.iter().map(in_short)));
            all.extend(facts("iis", &layer.iis));
            let sources = layer.entries.iter().filter_map(PlannedEntry::remote_source);
            let sources = sources.map(|(path, source)| format!("{path} from {source}"));
            all.extend(facts("file", sources));
        }
        let config = &self.container;
        let command_line = |words: &Vec<String>| {
            if config.args_escaped {
                words.join(" ")
            } else {
                format!("{words:?}")
            }
        };
        all.extend(facts("env", &config.env));
        all.extend(facts(
            "entrypoint",
            config.entrypoint.iter().map(command_line),
        ));
        all.extend(facts("cmd", config.cmd.iter().map(command_line)));
        let given = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        all.extend(facts("user", given(&config.user)));
        all.extend(facts("workdir", given(&config.working_dir)));
        all.extend(facts("port", config.exposed_ports.keys()));
        all.extend(facts("onbuild", &config.on_build));
        all
    }
}

/// Adds entries of a plan.
pub fn add_entries(layer: &mut Layer, entries: &[PlannedEntry]) -> Result<(), LayerError> {
    entries.iter().try_for_each(|entry| add_entry(layer, entry))
}

/// Adds hives to a layer.
pub fn add_hives(
    layer: &mut Layer,
    hives: impl IntoIterator<Item = HiveFile>,
) -> Result<(), LayerError> {
    for hive in hives {
        layer.hive(hive.name.parse()?, hive.bytes);
    }
    Ok(())
}

/// Copies the metadata of moved and copied entries from the image below.
pub fn copy_metadata(
    layer: &mut Layer,
    kept: &[CopiedEntry],
    inside: &dyn BaseContents,
) -> Result<(), LayerError> {
    let mut found = Vec::with_capacity(kept.len());
    for kept in kept {
        if let Some(was) = inside.file(&kept.from)?.present() {
            found.push((LayerPath::try_from(&kept.path)?, was, kept.is_moved));
        }
    }
    layer.copy_metadata(&found);
    Ok(())
}

fn add_entry(layer: &mut Layer, entry: &PlannedEntry) -> Result<(), LayerError> {
    match entry.source() {
        Some(FileSource::Folder(source)) => {
            return layer.folder_of(source, layer_path(&entry.path)?.as_ref());
        }
        Some(FileSource::Unpacked(archive)) => return add_unpacked(layer, archive),
        Some(source @ FileSource::Image(files)) => {
            return add_image_files(layer, files, source, &entry.path);
        }
        _ => {}
    }
    let path = LayerPath::try_from(&entry.path)?;
    add_content(layer, path, &entry.content)
}

fn add_content(
    layer: &mut Layer,
    path: LayerPath,
    content: &PlannedContent,
) -> Result<(), LayerError> {
    match content {
        PlannedContent::Folder => layer.directory(path),
        PlannedContent::Deleted => layer.delete(path),
        PlannedContent::Link(link) => layer.symlink(path, link.target.clone(), link.to)?,
        PlannedContent::File(source) => layer.file(path, source),
    }
    Ok(())
}

/// Adds files of an image. Before they are extracted, one with the last name stands for them, or the
/// folder for those of a pattern.
fn add_image_files(
    layer: &mut Layer,
    files: &ImageFiles,
    source: &FileSource,
    target: &ImagePath,
) -> Result<(), LayerError> {
    if let Some(entries) = &files.entries {
        return add_entries(layer, entries);
    }
    let name = files.from.rsplit(['/', '\\']).next().unwrap_or_default();
    let inside = files.into_folder.then(|| target.join(name));
    match inside.unwrap_or_else(|| Ok(target.clone())) {
        Ok(path) => {
            if let Some(path) = layer_path(&path)? {
                layer.file(path, source);
            }
        }
        Err(_) => {
            if let Some(path) = layer_path(target)? {
                layer.directory(path);
            }
        }
    }
    Ok(())
}

/// Adds the entries of an archive.
fn add_unpacked(layer: &mut Layer, archive: &PlannedArchive) -> Result<(), LayerError> {
    if let FileSource::Download(download) = &archive.source
        && download.content.is_none()
    {
        // Before the download, the archive stands for its entries.
        let name = download.url.rsplit('/').next().unwrap_or_default();
        let inside = archive.target.join(name);
        if let Some(path) = layer_path(&inside.unwrap_or(archive.target.clone()))? {
            layer.file(path, &**download);
        }
        return Ok(());
    }
    let folder = layer_path(&archive.target)?;
    if let Some(folder) = &folder {
        layer.directory(folder.clone());
    }
    for entry in archive.unpack.entries(&archive.source)? {
        let path = match &folder {
            Some(folder) => folder.join(&entry.path)?,
            None => entry.path.parse()?,
        };
        add_content(layer, path, &entry.content.into())?;
    }
    Ok(())
}

/// A text whose bytes are shared with a plan.
struct SharedText(Arc<str>);

impl AsRef<[u8]> for SharedText {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl From<&FileSource> for ContentSource {
    fn from(source: &FileSource) -> Self {
        match source {
            FileSource::Disk(file) | FileSource::Folder(file) => file.clone().into(),
            FileSource::Download(file) => (&**file).into(),
            FileSource::Member(member) => Self::Member(member.clone()),
            FileSource::Brought(file) => Self::Part(file.part.clone()),
            FileSource::Text(text) => Bytes::from_owner(SharedText(Arc::clone(text))).into(),
            FileSource::Bytes(bytes) => bytes.clone().into(),
            FileSource::Shim => shim::EXECUTABLE.into(),
            // Before they are extracted, one entry stands for all.
            FileSource::Image(_) | FileSource::Unpacked(_) => Self::NotDownloaded {
                url: source.to_string(),
                size: None,
            },
        }
    }
}

fn layer_path(path: &ImagePath) -> Result<Option<LayerPath>, LayerError> {
    if path.components().is_empty() {
        return Ok(None);
    }
    Ok(Some(LayerPath::try_from(path)?))
}
#[cfg(test)]
mod tests {
    use super::*;

    /// The entries of files of an image that are not extracted yet.
    fn entries(from: &str, to: &str) -> Vec<String> {
        let files = ImageFiles {
            image: "a:1".to_owned(),
            from: from.to_owned(),
            into_folder: to.ends_with('\\'),
            digest: None,
            entries: None,
        };
        let entry = PlannedEntry {
            path: to.parse().unwrap(),
            content: PlannedContent::File(FileSource::Image(Box::new(files))),
        };
        let mut layer = Layer::new(0);
        add_entries(&mut layer, &[entry]).unwrap();
        layer.drive().unwrap();
        layer.entries().map(|(path, _)| path.to_string()).collect()
    }

    #[test]
    fn files_of_an_image_stand_in_their_folder_before_they_are_extracted() {
        let system = r"C:\Windows\System32\";
        let inside = ["Windows/System32/netapi32.dll"];
        assert_eq!(entries("/windows/system32/netapi32.dll", system), inside);
        assert_eq!(entries(r"\tools\*.dll", system), ["Windows/System32"]);
        assert_eq!(entries("/a.txt", r"C:\b.txt"), ["b.txt"]);
    }
}
