//! The files of a plan as part of a layer.

use bytes::Bytes;

use super::content::Layer;
use super::content::LinkTo;
use super::error::LayerError;
use super::path::LayerPath;
use crate::recipe::{FileSource, PlannedContent, PlannedEntry, PlannedFile};
use crate::windows::path::ImagePath;

impl Layer {
    /// Adds what a plan puts on the drive.
    pub fn planned_files(&mut self, files: &[PlannedFile]) -> Result<(), LayerError> {
        files.iter().try_for_each(|file| self.planned_file(file))
    }

    /// Adds what an instruction of a Dockerfile does to the drive.
    pub fn planned_entries(&mut self, entries: &[PlannedEntry]) -> Result<(), LayerError> {
        entries
            .iter()
            .try_for_each(|entry| self.planned_entry(entry))
    }

    fn planned_entry(&mut self, entry: &PlannedEntry) -> Result<(), LayerError> {
        let path = LayerPath::try_from(&entry.path)?;
        match &entry.content {
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
            PlannedContent::File(FileSource::Disk(file)) => self.file(path, file.path.clone()),
            PlannedContent::File(FileSource::Download(file)) => self.file(path, file),
            PlannedContent::File(FileSource::Brought(file)) => self.file(path, file.part.clone()),
            PlannedContent::File(FileSource::Text(text)) => {
                self.file(path, Bytes::from(text.clone().into_bytes()));
            }
            PlannedContent::File(FileSource::Embedded(program)) => {
                self.file(path, Bytes::from_static(program.bytes()));
            }
        }
        Ok(())
    }

    fn planned_file(&mut self, file: &PlannedFile) -> Result<(), LayerError> {
        let path = layer_path(&file.target)?;
        match (&file.source, path) {
            (FileSource::Disk(source), path) if source.path.is_dir() => {
                self.folder_of(source, path.as_ref())?;
            }
            (FileSource::Disk(source), Some(path)) => self.file(path, source.path.clone()),
            (FileSource::Download(source), Some(path)) => self.file(path, source),
            (FileSource::Text(text), Some(path)) => {
                self.file(path, Bytes::from(text.clone().into_bytes()));
            }
            (FileSource::Embedded(program), Some(path)) => {
                self.file(path, Bytes::from_static(program.bytes()));
            }
            (FileSource::Brought(source), Some(path)) => self.file(path, source.part.clone()),
            // The recipe's reader lets only folders go to the drive itself.
            (_, None) => {}
        }
        Ok(())
    }
}

fn layer_path(path: &ImagePath) -> Result<Option<LayerPath>, LayerError> {
    if path.components().is_empty() {
        return Ok(None);
    }
    Ok(Some(LayerPath::try_from(path)?))
}
