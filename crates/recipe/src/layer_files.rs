//! The entries of a plan as part of a layer.

use std::sync::Arc;

use bytes::Bytes;
use wincimg_images::shim;
use wincimg_layer::{ContentSource, Layer, LayerError, LayerPath};
use wincimg_registry::hive::HiveFile;
use wincimg_windows::base_contents::BaseContents;
use wincimg_windows::path::ImagePath;

use super::{CopiedEntry, FileSource, ImageFiles, PlannedArchive, PlannedContent, PlannedEntry};

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
