//! IIS in RUN lines: commands are read on the configuration that the stage has by then, and come to
//! changes of it, or of a site's `web.config`.
//!
//! The layer keeps what changes in the server's configuration, as a recipe does; what that comes to
//! is laid over the stage's drive at once, so that whatever comes later sees it.

use std::sync::Arc;

use wincimg_common::diagnose::in_one_line;
use wincimg_iis::cmdlets::Call;
use wincimg_iis::config::{ConfigEdit, Location, Schema, Server};
use wincimg_iis::{
    Folder, Order, OrderError, appcmd, cmdlets, schema_files, server_config, web_config,
};
use wincimg_recipe::{FileSource, PlannedContent, PlannedEntry};
use wincimg_registry::Known;
use wincimg_scripts::{Entry, Iis, Image, Later, Seen, Trouble};
use wincimg_windows::path::ImagePath;

use super::Running;
use crate::stages::tree::Kind;

/// The variables that are in paths of IIS's configuration.
const VARIABLES: [(&str, &str); 3] = [
    ("%systemdrive%", "C:"),
    ("%systemroot%", r"C:\Windows"),
    ("%windir%", r"C:\Windows"),
];

/// The server's own configuration.
#[derive(Default)]
pub(super) struct ServerConfig {
    /// What the line changes in it.
    pub(super) edits: Vec<ConfigEdit>,
    /// Its file with the changes.
    pub(super) seen: Option<PlannedEntry>,
    /// What may stand in it, once that is known.
    schema: Option<Arc<Schema>>,
}

impl ServerConfig {
    /// Forgets the changes where a command writes or deletes the file.
    pub(super) fn forget(&mut self, path: &ImagePath) {
        let is_meant = |seen: &PlannedEntry| seen.path.below(path).is_some();
        if self.seen.as_ref().is_some_and(is_meant) {
            self.seen = None;
            self.edits.clear();
        }
    }
}

impl Running<'_> {
    /// Carries a command out.
    pub(super) fn iis(&mut self, asked: &Iis) -> Result<(), Trouble> {
        let Some(file) = server_config() else {
            return Ok(());
        };
        let mut server = self.read_server(&file)?;
        let order = match asked {
            Iis::Appcmd(words) => appcmd::read(words, &server),
            Iis::Cmdlet { name, parameters } => cmdlets::read(Call { name, parameters }, &server),
        };
        let order = order.map_err(refused)?;
        if let Some(folder) = &order.folder {
            self.check_folder(folder)?;
        }
        if order.is_skipped {
            let name = match asked {
                Iis::Appcmd(words) => format!("appcmd {}", words.join(" ")),
                Iis::Cmdlet { name, .. } => name.clone(),
            };
            self.changes
                .notes
                .push(format!("{name} is not run: nothing runs in an image"));
        }
        if let Some(location) = &order.into {
            return self.web_config(&order, location, &mut server);
        }
        for edit in &order.edits {
            server.apply(edit).map_err(|error| refused(error.into()))?;
        }
        if let Some(changed) = server.finish() {
            self.server.edits.extend(order.edits);
            self.see(file, &changed);
        }
        Ok(())
    }

    /// The server's configuration as it is by now.
    fn read_server(&mut self, file: &ImagePath) -> Result<Server, Trouble> {
        let bytes = match self.content(file) {
            Seen::Present(bytes) => bytes,
            Seen::Absent => {
                return Err(
                    Trouble::fails("the image has no IIS").help("take a base image that has IIS")
                );
            }
            Seen::Later(Later) => {
                return Err(Trouble::later(format!(
                    "it changes {file}, which is not downloaded yet"
                )));
            }
            Seen::Unknown => {
                return Err(Trouble::unknown(
                    "how the base's IIS is configured is not known",
                ));
            }
        };
        let schema = match &self.server.schema {
            Some(schema) => schema.clone(),
            None => self.server.schema.insert(self.read_schema()?).clone(),
        };
        Server::read(&bytes, schema)
            .map_err(|error| Trouble::unclear(format!("{file} cannot be read: {error}")))
    }

    fn read_schema(&self) -> Result<Arc<Schema>, Trouble> {
        let mut files = Vec::new();
        for file in schema_files() {
            match self.content(&file) {
                Seen::Present(bytes) => files.push((file.to_string(), bytes)),
                Seen::Absent => {}
                Seen::Later(Later) | Seen::Unknown => {
                    return Err(Trouble::unknown(format!(
                        "the content of {file} is not known"
                    )));
                }
            }
        }
        let files = files
            .iter()
            .map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
        let schema = Schema::read(files).map_err(|error| Trouble::unclear(in_one_line(&error)))?;
        Ok(schema.into())
    }

    /// Lays what the layer's changes come to over the drive, without the layer having it as a file.
    fn see(&mut self, path: ImagePath, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let entry = PlannedEntry {
            path,
            content: PlannedContent::File(FileSource::Text(text)),
        };
        self.tree.apply(std::slice::from_ref(&entry));
        self.server.seen = Some(entry);
    }

    fn check_folder(&self, folder: &Folder) -> Result<(), Trouble> {
        let path = whole(&folder.path)?;
        match self.entry(&path) {
            Seen::Present(Entry::Folder) => Ok(()),
            Seen::Absent | Seen::Present(Entry::File(())) if folder.fails => {
                Err(Trouble::fails(format!("the folder {path} is not there")))
            }
            Seen::Absent | Seen::Present(Entry::File(())) => Err(Trouble::unclear(format!(
                "the folder {path} is not there, and what comes of that is not certain"
            ))
            .help("make the folder before")),
            Seen::Later(Later) | Seen::Unknown => Err(Trouble::unknown(format!(
                "it fails unless the base has the folder {path}"
            ))),
        }
    }

    /// Changes the `web.config` of a site or of a path below it.
    fn web_config(
        &mut self,
        order: &Order,
        location: &Location,
        server: &mut Server,
    ) -> Result<(), Trouble> {
        let Some(folder) = server.folder(location) else {
            return Err(Trouble::fails(format!(
                "there is no site {location}, or it has no folder"
            )));
        };
        let folder = whole(&folder)?;
        self.check_folder(&Folder {
            path: folder.to_string(),
            fails: true,
        })?;
        let file = folder
            .join("web.config")
            .map_err(|error| Trouble::unclear(error.to_string()))?;
        let existing = match self.kind(&file)? {
            Known::Absent => None,
            Known::Present(Kind::File(())) => match self.content(&file) {
                Seen::Present(bytes) => Some(bytes),
                _ => return Err(unknown(&file)),
            },
            Known::Present(_) | Known::Unknown => return Err(unknown(&file)),
        };
        let changed = web_config::change(existing.as_deref(), &order.edits, server, location)
            .map_err(|error| {
                let refused = refused(error.into());
                Trouble::new(refused.kind, format!("{file}: {}", refused.why))
            })?;
        match changed {
            Some(changed) => self.write(file, changed),
            None => Ok(()),
        }
    }
}

fn unknown(file: &ImagePath) -> Trouble {
    Trouble::unknown(format!("the content of {file} is not known"))
}

fn refused(error: OrderError) -> Trouble {
    match error {
        OrderError::Unclear(why) => Trouble::unclear(why),
        OrderError::Fails(why) => Trouble::fails(why),
    }
}

/// A folder of IIS's configuration.
fn whole(text: &str) -> Result<ImagePath, Trouble> {
    let mut path = text.replace('/', "\\");
    for (name, value) in VARIABLES {
        if path.to_lowercase().starts_with(name) {
            path.replace_range(..name.len(), value);
        }
    }
    let path = path.trim_end_matches('\\');
    let path = if path.len() == 2 { r"C:\" } else { path };
    path.parse()
        .map_err(|_| Trouble::unclear(format!("the folder {text:?} is not understood")))
}
