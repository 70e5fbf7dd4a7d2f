//! The entries of a plan as part of a layer.

use std::sync::Arc;

use bytes::Bytes;
use wincimg_layer::{ContentSource, Layer, LayerError, LayerPath};
use wincimg_windows::base_contents::BaseContents;
use wincimg_windows::path::ImagePath;

use super::{CopiedEntry, FileSource, PlannedArchive, PlannedContent, PlannedEntry};

/// Adds entries of a plan.
pub fn add_entries(layer: &mut Layer, entries: &[PlannedEntry]) -> Result<(), LayerError> {
    entries.iter().try_for_each(|entry| add_entry(layer, entry))
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
        Some(FileSource::Image(files)) => match &files.entries {
            Some(entries) => return add_entries(layer, entries),
            // Before they are extracted, nothing stands for files in the root of the drive.
            None if entry.path.components().is_empty() => return Ok(()),
            None => {}
        },
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

/// Adds the entries of an archive.
fn add_unpacked(layer: &mut Layer, archive: &PlannedArchive) -> Result<(), LayerError> {
    if let FileSource::Download(download) = &archive.source
        && download.content.is_none()
    {
        // Before the download, the archive stands for its entries.
        let name = download.url.rsplit('/').next().unwrap_or_default();
        let inside = archive.target.join(name);
        let inside = inside.unwrap_or(archive.target.clone());
        if let Some(path) = layer_path(&inside)? {
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

impl From<&FileSource> for ContentSource {
    fn from(source: &FileSource) -> Self {
        match source {
            FileSource::Disk(file) | FileSource::Folder(file) => Arc::clone(&file.path).into(),
            FileSource::Download(file) => (&**file).into(),
            FileSource::Member(member) => member.clone().into(),
            FileSource::Brought(file) => file.part.clone().into(),
            FileSource::Text(text) => Bytes::from(text.clone().into_bytes()).into(),
            FileSource::Bytes(bytes) => Bytes::from(bytes.clone()).into(),
            FileSource::Embedded(program) => program.bytes().into(),
            // Before they are extracted, one entry stands for all.
            FileSource::Image(_) | FileSource::Unpacked(_) => Self::Lacking {
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
