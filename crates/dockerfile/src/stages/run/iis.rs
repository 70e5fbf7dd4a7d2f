//! IIS in RUN lines: commands are evaluated on the stage's current configuration, and change it or
//! a site's `web.config`.
//!
//! Like a recipe, the layer contains the edits of the server configuration; the resulting file is
//! applied to the stage's drive for later lines.

use std::sync::Arc;

use wincimg_common::diagnose::error_chain;
use wincimg_iis::cmdlets::CmdletCall;
use wincimg_iis::config::{ConfigEdit, ConfigLocation, Schema, Server};
use wincimg_iis::{
    IisChange, IisChangeError, RequiredFolder, appcmd, cmdlets, schema_files, schema_folder,
    server_config, web_config,
};
use wincimg_recipe::{FileSource, PlannedEntry};
use wincimg_registry::Presence;
use wincimg_scripts::{EntryKind, IisCommand, ImageState, Lookup, PendingDownload, ScriptError};
use wincimg_windows::path::ImagePath;

use super::{Result, RunState, unknown_content};
use crate::stages::drive::PathKind;

/// Server configuration.
#[derive(Default)]
pub(super) struct ServerConfig {
    pub(super) edits: Vec<ConfigEdit>,
    /// File with the edits.
    pub(super) seen: Option<PlannedEntry>,
    /// Schema, once it is read.
    schema: Option<Arc<Schema>>,
}

impl ServerConfig {
    /// Drops the edits if a command writes or deletes the file.
    pub(super) fn forget(&mut self, path: &ImagePath) {
        let is_meant = |seen: &PlannedEntry| seen.path.strip_prefix(path).is_some();
        if self.seen.as_ref().is_some_and(is_meant) {
            self.seen = None;
            self.edits.clear();
        }
    }
}

impl RunState<'_> {
    pub(super) fn iis(&mut self, asked: &IisCommand) -> Result<()> {
        let Some(file) = server_config() else {
            return Ok(());
        };
        let mut server = self.read_server(&file)?;
        let order = match asked {
            IisCommand::Appcmd(words) => appcmd::read(words, &server),
            IisCommand::Cmdlet { name, parameters } => {
                cmdlets::read(CmdletCall { name, parameters }, &server)
            }
        };
        let order = order.map_err(refused)?;
        if let Some(folder) = &order.folder {
            self.check_folder(folder)?;
        }
        if order.is_skipped {
            let name = match asked {
                IisCommand::Appcmd(words) => format!("appcmd {}", words.join(" ")),
                IisCommand::Cmdlet { name, .. } => name.clone(),
            };
            self.changes
                .notes
                .push(format!("{name} is skipped: nothing runs in an image"));
        }
        if let Some(location) = &order.into {
            return self.web_config(&order, location, &mut server);
        }
        for edit in &order.edits {
            server.apply(edit).map_err(|error| refused(error.into()))?;
        }
        if let Some(changed) = server.finish() {
            self.server.edits.extend(order.edits);
            // It is not added to the layer.
            let text = String::from_utf8_lossy(&changed);
            let entry = PlannedEntry::file(file, FileSource::Text(text.into()));
            self.tree.apply(std::slice::from_ref(&entry));
            self.server.seen = Some(entry);
        }
        Ok(())
    }

    fn read_server(&mut self, file: &ImagePath) -> Result<Server> {
        let bytes = match self.content(file) {
            Lookup::Present(bytes) => bytes,
            Lookup::Absent => {
                return Err(
                    ScriptError::fails("the image has no IIS").help("use a base image with IIS")
                );
            }
            Lookup::Deferred(PendingDownload) => {
                let why = format!("it changes {file}, which depends on a line above");
                return Err(ScriptError::later(why));
            }
            Lookup::Unknown => {
                return Err(ScriptError::unknown(
                    "the IIS configuration of the base is unknown",
                ));
            }
        };
        let schema = match &self.server.schema {
            Some(schema) => schema.clone(),
            None => self.server.schema.insert(self.read_schema()?).clone(),
        };
        Server::read(&bytes, schema)
            .map_err(|error| ScriptError::unclear(format!("cannot read {file}: {error}")))
    }

    fn read_schema(&self) -> Result<Arc<Schema>> {
        let folder = schema_folder().unwrap_or_else(ImagePath::drive);
        let names = match self.names(&folder) {
            Lookup::Present(names) => names,
            Lookup::Absent => Vec::new(),
            _ => return Err(unknown_content(&folder)),
        };
        let mut files = Vec::new();
        for name in schema_files(names.iter().map(String::as_str)) {
            let file = folder.join(name)?;
            match self.content(&file) {
                Lookup::Present(bytes) => files.push((file.to_string(), bytes)),
                Lookup::Absent => {}
                _ => return Err(unknown_content(&file)),
            }
        }
        let files = files
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
        let schema =
            Schema::read(files).map_err(|error| ScriptError::unclear(error_chain(&error)))?;
        Ok(schema.into())
    }

    fn check_folder(&self, folder: &RequiredFolder) -> Result<()> {
        let path = folder_path(&folder.path)?;
        match self.entry(&path) {
            Lookup::Present(EntryKind::Folder) => Ok(()),
            Lookup::Absent | Lookup::Present(EntryKind::File(())) if folder.fails => Err(
                ScriptError::fails(format!("the folder {path} does not exist")),
            ),
            Lookup::Absent | Lookup::Present(EntryKind::File(())) => Err(ScriptError::unclear(
                format!("the folder {path} does not exist, and the result is unknown"),
            )
            .help("create the folder first")),
            Lookup::Deferred(PendingDownload) | Lookup::Unknown => Err(ScriptError::unknown(
                format!("it fails unless the base has the folder {path}"),
            )),
        }
    }

    /// Changes the `web.config` of a site or of a path below it.
    fn web_config(
        &mut self,
        order: &IisChange,
        location: &ConfigLocation,
        server: &mut Server,
    ) -> Result<()> {
        let Some(folder) = server.folder(location) else {
            return Err(ScriptError::fails(format!(
                "site {location} not found, or it has no folder"
            )));
        };
        let folder = folder_path(&folder)?;
        self.check_folder(&RequiredFolder {
            path: folder.to_string(),
            fails: true,
        })?;
        let file = folder.join("web.config")?;
        let existing = match self.kind(&file)? {
            Presence::Absent => None,
            Presence::Present(PathKind::File(())) => match self.content(&file) {
                Lookup::Present(bytes) => Some(bytes),
                _ => return Err(unknown_content(&file)),
            },
            Presence::Present(_) | Presence::Unknown => return Err(unknown_content(&file)),
        };
        let changed = web_config::change(existing.as_deref(), &order.edits, server, location)
            .map_err(|error| {
                let refused = refused(error.into());
                ScriptError::new(refused.kind, format!("{file}: {}", refused.why))
            })?;
        match changed {
            Some(changed) => self.write(file, changed),
            None => Ok(()),
        }
    }
}

fn refused(error: IisChangeError) -> ScriptError {
    match error {
        IisChangeError::Unclear(why) => ScriptError::unclear(why),
        IisChangeError::Fails(why) => ScriptError::fails(why),
    }
}

/// Path of a folder in IIS's configuration.
fn folder_path(text: &str) -> Result<ImagePath> {
    let path = wincimg_iis::folder_path(text);
    path.ok_or_else(|| ScriptError::unclear(format!("unsupported folder {text:?}")))
}
