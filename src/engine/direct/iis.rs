//! Settings of IIS without IIS: those of a site go into its `web.config`, in the layer.

use std::io;
use std::path::Path;

use super::error::DirectError;
use crate::files;
use crate::layer::{Layer, LayerError, LayerPath, Source};
use crate::windows::iis::IisSettings;
use crate::windows::iis::webconfig::merge;

/// What IIS reads at most, unless Windows' registry says otherwise, is 250 kB.
const LARGEST: u64 = 4 << 20;

/// Puts the settings into the `web.config` that the layer brings, or brings one. What the base may
/// have in its place is not looked at: those of Microsoft have none.
pub(super) fn configure(layer: &mut Layer, settings: &IisSettings) -> Result<(), DirectError> {
    let mut folder = settings.path.components().to_vec();
    folder.push("web.config".to_owned());
    let path: LayerPath = folder.join("/").parse().map_err(LayerError::Path)?;
    let failed = |path: String| move |source| DirectError::WebConfig { path, source };
    match layer.file_mut(&path) {
        Some(source) => {
            let (bytes, name) = match source {
                Source::Path(file) => (read(file)?, file.display().to_string()),
                Source::Bytes(bytes) => (bytes.to_vec(), path.to_string()),
            };
            if let Some(changed) = merge(Some(&bytes), settings).map_err(failed(name))? {
                *source = changed.into();
            }
        }
        None => {
            if let Some(made) = merge(None, settings).map_err(failed(path.to_string()))? {
                layer.file(path, made);
            }
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Vec<u8>, LayerError> {
    let failed = |source| LayerError::Read {
        path: path.to_owned(),
        source,
    };
    files::read(path, LARGEST).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => {
            let problem = "it is larger than any web.config that IIS reads";
            failed(io::Error::new(io::ErrorKind::FileTooLarge, problem))
        }
        _ => failed(error),
    })
}
