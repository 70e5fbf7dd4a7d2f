//! The files of a plan as part of a layer.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;

use super::content::{Layer, LinkTo, Source};
use super::descriptor::Security;
use super::error::LayerError;
use super::path::LayerPath;
use super::settle::attributes;
use crate::recipe::{FileSource, Kept, PlannedContent, PlannedEntry, PlannedFile, Unpack};
use crate::windows::inside::Inside;
use crate::windows::path::{ImagePath, fold};

impl Layer {
    /// Adds what a plan puts on the drive.
    pub fn planned_files(&mut self, files: &[PlannedFile]) -> Result<(), LayerError> {
        files.iter().try_for_each(|file| self.planned_file(file))
    }

    /// Adds what one of a plan's layers does to the drive.
    pub fn planned_entries(&mut self, entries: &[PlannedEntry]) -> Result<(), LayerError> {
        entries
            .iter()
            .try_for_each(|entry| self.planned_entry(entry))
    }

    /// Lets entries keep what they have of what was in the image before.
    pub fn keep(&mut self, kept: &[Kept], inside: &dyn Inside) -> Result<(), LayerError> {
        if kept.is_empty() {
            return Ok(());
        }
        let places = self.files.iter().enumerate();
        let places: HashMap<String, usize> = places
            .map(|(place, entry)| (fold(entry.path.as_str()), place))
            .collect();
        for kept in kept {
            let key = fold(LayerPath::try_from(&kept.path)?.as_str());
            let was = inside.file(&kept.from)?.present();
            let (Some(was), Some(place)) = (was, places.get(&key)) else {
                continue;
            };
            let entry = &mut self.files[*place];
            entry.attributes = Some(attributes(&was));
            if kept.is_moved {
                entry.security = was.security.as_deref().map(Security::from);
            }
        }
        Ok(())
    }

    fn planned_entry(&mut self, entry: &PlannedEntry) -> Result<(), LayerError> {
        if let PlannedContent::File(FileSource::Folder(source)) = &entry.content {
            return self.folder_of(source, layer_path(&entry.path)?.as_ref());
        }
        let path = LayerPath::try_from(&entry.path)?;
        self.planned_content(path, &entry.content)
    }

    fn planned_content(
        &mut self,
        path: LayerPath,
        content: &PlannedContent,
    ) -> Result<(), LayerError> {
        match content {
            PlannedContent::Folder => self.directory(path),
            PlannedContent::Deleted => self.delete(path),
            PlannedContent::Link { target, to_folder } => {
                let to = if *to_folder {
                    LinkTo::Directory
                } else {
                    LinkTo::File
                };
                self.symlink(path, target.clone(), to)?;
            }
            PlannedContent::File(source) => self.file(path, source),
        }
        Ok(())
    }

    fn planned_file(&mut self, file: &PlannedFile) -> Result<(), LayerError> {
        if let Some(unpack) = &file.unpack {
            return self.unpacked(file, unpack);
        }
        let path = layer_path(&file.target)?;
        match (&file.source, path) {
            (FileSource::Folder(source), path) => {
                self.folder_of(source, path.as_ref())?;
            }
            (source, Some(path)) => self.file(path, source),
            // The recipe's reader lets only folders go to the drive itself.
            (_, None) => {}
        }
        Ok(())
    }

    /// Adds what is in an archive.
    fn unpacked(&mut self, file: &PlannedFile, unpack: &Unpack) -> Result<(), LayerError> {
        if let FileSource::Download(download) = &file.source
            && download.content.is_none()
        {
            // Until it is here it stands for what is in it.
            let name = download.url.rsplit('/').next().unwrap_or_default();
            let inside = file.target.join(name).unwrap_or(file.target.clone());
            if let Some(path) = layer_path(&inside)? {
                self.file(path, &**download);
            }
            return Ok(());
        }
        let folder = layer_path(&file.target)?;
        if let Some(folder) = &folder {
            self.directory(folder.clone());
        }
        for entry in unpack.entries(&file.source)? {
            let inside = entry.names.join("/");
            let path = match &folder {
                Some(folder) => folder.join(&inside)?,
                None => inside.parse()?,
            };
            self.planned_content(path, &entry.content.into())?;
        }
        Ok(())
    }
}

impl From<&FileSource> for Source {
    fn from(source: &FileSource) -> Self {
        match source {
            FileSource::Disk(file) | FileSource::Folder(file) => Arc::clone(&file.path).into(),
            FileSource::Download(file) => (&**file).into(),
            FileSource::Member(member) => member.clone().into(),
            FileSource::Brought(file) => file.part.clone().into(),
            FileSource::Text(text) => Bytes::from(text.clone().into_bytes()).into(),
            FileSource::Bytes(bytes) => Bytes::from(bytes.clone()).into(),
            FileSource::Embedded(program) => program.bytes().into(),
        }
    }
}

fn layer_path(path: &ImagePath) -> Result<Option<LayerPath>, LayerError> {
    if path.components().is_empty() {
        return Ok(None);
    }
    Ok(Some(LayerPath::try_from(path)?))
}
