//! Settings of IIS without IIS: those of a site go into its `web.config`, in the layer, and those of
//! the server into the base's `applicationHost.config`, of which the layer brings another version.

use std::io;
use std::path::Path;

use super::error::DirectError;
use crate::files;
use crate::layer::{Layer, LayerError, LayerPath, Source};
use crate::recipe::Plan;
use crate::windows::iis::config::{ConfigEdit, Location, Schema, Server};
use crate::windows::iis::web_config::merge;
use crate::windows::iis::{IisSettings, schema_files, server_config};
use crate::windows::inside::{Inside, Known};
use crate::windows::path::ImagePath;

/// What IIS reads at most, unless Windows' registry says otherwise, is 250 kB for a `web.config`.
const LARGEST: u64 = 4 << 20;

/// Refuses settings of the server where nobody knows what it is like.
pub(super) fn check_seen(plan: &Plan, inside: &dyn Inside) -> Result<(), DirectError> {
    let Some(file) = plan.iis.as_ref().and_then(needed) else {
        return Ok(());
    };
    let is_ours = plan.files.iter().any(|planned| planned.target == file);
    if is_ours {
        return Ok(());
    }
    let base = plan.base.name.clone();
    match inside.content(&file)? {
        Known::Present(_) => Ok(()),
        Known::Unknown => Err(DirectError::IisUnseen { base }),
        Known::Absent => Err(DirectError::NoIis {
            base,
            file: file.to_string(),
        }),
    }
}

/// The server's configuration, where settings are to go into it.
fn needed(settings: &IisSettings) -> Option<ImagePath> {
    let is_needed = !settings.server_edits().is_empty();
    is_needed.then(server_config).flatten()
}

/// Puts the settings into the files that the layer brings, or brings others. What `web.config` the
/// base may have is not looked at: those of Microsoft have none. Where nobody has looked into the
/// base, what is for the server is left out.
pub(super) fn configure(
    layer: &mut Layer,
    settings: &IisSettings,
    inside: &dyn Inside,
) -> Result<(), DirectError> {
    let mut for_server = settings.server_edits();
    let mut for_site = settings.site_edits();
    if let Some(file) = server_config()
        && let Some((bytes, name)) = existing(layer, &file, inside)?
    {
        let mut server = read_server(&bytes, &name, inside)?;
        if let Ok(site) = settings.site.as_str().parse::<Location>() {
            for edit in std::mem::take(&mut for_site) {
                let is_delegated = server.is_delegated(&edit.section, &site);
                if is_delegated.map_err(refused(&edit))? {
                    for_site.push(edit);
                } else {
                    let location = Some(site.clone());
                    for_server.push(ConfigEdit { location, ..edit });
                }
            }
        }
        for edit in &for_server {
            server.apply(edit).map_err(refused(edit))?;
        }
        if let Some(changed) = server.finish() {
            bring(layer, &file, changed)?;
        }
    }
    site_config(layer, settings, &for_site)
}

fn refused(
    edit: &ConfigEdit,
) -> impl FnOnce(crate::windows::iis::config::EditError) -> DirectError {
    let edit = edit.to_string();
    move |source| DirectError::IisEdit { edit, source }
}

fn read_server(bytes: &[u8], name: &str, inside: &dyn Inside) -> Result<Server, DirectError> {
    let mut schemas = Vec::new();
    for file in schema_files() {
        if let Known::Present(bytes) = inside.content(&file)? {
            schemas.push((file.to_string(), bytes));
        }
    }
    let files = schemas
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    let schema = Schema::read(files)?;
    Server::read(bytes, schema).map_err(|source| DirectError::IisConfig {
        file: name.to_owned(),
        source,
    })
}

/// The content of a file that the layer brings, or that the base is known to have, and what to call
/// it.
fn existing(
    layer: &mut Layer,
    file: &ImagePath,
    inside: &dyn Inside,
) -> Result<Option<(Vec<u8>, String)>, DirectError> {
    let path = LayerPath::try_from(file).map_err(LayerError::Path)?;
    if let Some(source) = layer.file_mut(&path) {
        return Ok(Some(content(source, &path)?));
    }
    let content = inside.content(file)?.present();
    Ok(content.map(|bytes| (bytes, format!("the base's {file}"))))
}

/// Puts a file into the layer, in place of the one that it brings.
fn bring(layer: &mut Layer, file: &ImagePath, bytes: Vec<u8>) -> Result<(), DirectError> {
    let path = LayerPath::try_from(file).map_err(LayerError::Path)?;
    match layer.file_mut(&path) {
        Some(source) => *source = bytes.into(),
        None => layer.file(path, bytes),
    }
    Ok(())
}

fn site_config(
    layer: &mut Layer,
    settings: &IisSettings,
    edits: &[ConfigEdit],
) -> Result<(), DirectError> {
    let mut folder = settings.path.components().to_vec();
    folder.push("web.config".to_owned());
    let path: LayerPath = folder.join("/").parse().map_err(LayerError::Path)?;
    let failed = |path: String| move |source| DirectError::WebConfig { path, source };
    match layer.file_mut(&path) {
        Some(source) => {
            let (bytes, name) = content(source, &path)?;
            if let Some(changed) = merge(Some(&bytes), edits).map_err(failed(name))? {
                *source = changed.into();
            }
        }
        None => {
            if let Some(made) = merge(None, edits).map_err(failed(path.to_string()))? {
                layer.file(path, made);
            }
        }
    }
    Ok(())
}

/// What a file of the layer holds, and what to call it.
fn content(source: &Source, path: &LayerPath) -> Result<(Vec<u8>, String), DirectError> {
    Ok(match source {
        Source::Path(file) => (read(file)?, file.display().to_string()),
        Source::Bytes(bytes) => (bytes.to_vec(), path.to_string()),
    })
}

fn read(path: &Path) -> Result<Vec<u8>, LayerError> {
    let failed = |source| LayerError::Read {
        path: path.to_owned(),
        source,
    };
    files::read(path, LARGEST).map_err(|error| match error.kind() {
        io::ErrorKind::FileTooLarge => {
            let problem = "it is larger than any configuration that IIS reads";
            failed(io::Error::new(io::ErrorKind::FileTooLarge, problem))
        }
        _ => failed(error),
    })
}
