//! The files of a plan as part of a layer.

use bytes::Bytes;

use super::content::Layer;
use super::error::LayerError;
use super::path::LayerPath;
use crate::recipe::{FileSource, PlannedFile};
use crate::windows::path::ImagePath;

impl Layer {
    /// Adds what a plan puts on the drive.
    pub fn planned_files(&mut self, files: &[PlannedFile]) -> Result<(), LayerError> {
        files.iter().try_for_each(|file| self.planned_file(file))
    }

    fn planned_file(&mut self, file: &PlannedFile) -> Result<(), LayerError> {
        let path = layer_path(&file.target)?;
        match (&file.source, path) {
            (FileSource::Disk(source), path) if source.path.is_dir() => {
                self.folder_of(source, path.as_ref())?;
            }
            (FileSource::Disk(source), Some(path)) => self.file(path, source.path.clone()),
            (FileSource::Text(text), Some(path)) => {
                self.file(path, Bytes::from(text.clone().into_bytes()));
            }
            (FileSource::Embedded(program), Some(path)) => {
                self.file(path, Bytes::from_static(program.bytes()));
            }
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
