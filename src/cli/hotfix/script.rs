//! `wincimg hotfix script`: the PowerShell script that installs an update on a node.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use serde_json::json;

use super::update_args::{PickArgs, WhatArgs};
use super::{CatalogArgs, HttpArgs};
use crate::catalog::{
    Arch, Container, Digests, Script, Source, UpdateFile, article_in_name, check_package, digest_of,
};
use crate::cli::failure::Failure;
use crate::cli::output::{Format, write_json, write_result};
use crate::cli::progress;
use crate::cli::session::Session;
use crate::cli::updates::RefreshArgs;
use crate::cli::{Answer, registry_args};
use crate::net::Hasher;
use crate::windows::update::{Kb, Update};
use crate::windows::version::WindowsVersion;

/// Write the PowerShell script that installs an update on a node
///
/// The script checks what the node has, verifies every file before it installs it, turns automatic
/// updates off so that the node stays there, and can be run again at any time. What it installs is
/// looked up in the catalog, or in a folder that `hotfix fetch` filled.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg hotfix script 17763.1158 --output install.ps1\n  \
    wincimg hotfix script 17763.1158 --from-url http://mirror.lan/hotfix --restart\n  \
    wincimg hotfix script 17763.1158 --files ./hotfix --from-dir '\\\\share\\hotfix'\n\n\
    The script ends with 0 (done), 3010 (done, restart needed) or 1 (failed).\n\
    Exit code 1: the build is not known, or the catalog has not exactly one update that fits.")]
pub(super) struct MakeScript {
    #[command(flatten)]
    what: WhatArgs,
    #[command(flatten)]
    pick: PickArgs,
    /// The node downloads the files from here instead of Microsoft's servers
    #[arg(long, value_name = "URL", conflicts_with = "from_dir", value_parser = read_mirror)]
    from_url: Option<String>,
    /// The node has the files in this folder or on this share
    #[arg(long, value_name = "DIR")]
    from_dir: Option<String>,
    /// Take the files' names and digests from this folder here, without asking the catalog
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
    /// Let the script restart the node if that is needed
    #[arg(long)]
    restart: bool,
    /// Write the script to this file instead of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    table: RefreshArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
    #[command(flatten)]
    http: HttpArgs,
    /// The form of the result
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

/// What the script is about, from the catalog or a folder.
struct Package {
    title: String,
    version: Option<WindowsVersion>,
    files: Vec<UpdateFile>,
    container: Option<Container>,
}

impl MakeScript {
    pub(super) fn run(self, session: &Session) -> Result<Answer, Failure> {
        let source = match (&self.from_url, &self.from_dir, &self.files) {
            (Some(url), _, _) => Source::Url(url.clone()),
            (None, Some(folder), _) => Source::Folder(folder.clone()),
            (None, None, None) => Source::Links,
            (None, None, Some(_)) => {
                return Err(
                    Failure::usage(anyhow!("--files does not say how nodes get them")).hint(
                        "add --from-url http://mirror.lan/hotfix or --from-dir '\\\\share\\hotfix'",
                    ),
                );
            }
        };
        let updates = self.table.updates(&self.http, session)?;
        let (kb, known) = self.what.to_fetch(updates)?;
        let package = match &self.files {
            Some(folder) => in_folder(folder, kb, self.pick.arch, known)?,
            None => self.in_catalog(kb, known, session)?,
        };
        let script = Script {
            kb,
            title: &package.title,
            version: package.version,
            files: &package.files,
            container: package.container,
            source,
            restart: self.restart,
        };
        let text = script.render()?;
        write_result(self.output.as_deref(), |out| match self.format {
            Format::Text => out.write_all(text.as_bytes()),
            Format::Json => {
                let names: Vec<&str> = package
                    .files
                    .iter()
                    .map(|file| file.name.as_str())
                    .collect();
                write_json(
                    &json!({
                        "kb": kb,
                        "build": package.version,
                        "title": package.title,
                        "files": names,
                        "script": text,
                    }),
                    out,
                )
            }
        })?;
        Ok(Answer::Yes)
    }

    fn in_catalog(
        &self,
        kb: Kb,
        known: Option<Update>,
        session: &Session,
    ) -> Result<Package, Failure> {
        let http = self.http.connect(progress::display(session))?;
        let catalog = self.catalog.open(&http)?;
        let picked = registry_args::run(self.pick.pick(&catalog, kb, known))?;
        Ok(Package {
            title: picked.hit.title,
            version: picked.version,
            files: picked.files,
            container: None,
        })
    }
}

/// The update packages of a folder, each of which has to be what its name says.
fn in_folder(folder: &Path, kb: Kb, arch: Arch, known: Option<Update>) -> Result<Package, Failure> {
    let reading = || format!("cannot read {}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(reading)? {
        if let Ok(name) = entry.with_context(reading)?.file_name().into_string()
            && Path::new(&name)
                .extension()
                .is_some_and(|ending| ending.eq_ignore_ascii_case("msu"))
        {
            names.push(name);
        }
    }
    names.sort();
    let mut files = Vec::with_capacity(names.len());
    let mut container = None;
    for name in names {
        let path = folder.join(&name);
        let own = article_in_name(&name).unwrap_or(kb);
        let found = check_package(&path, &name, own, arch).map_err(|error| {
            Failure::from(error).context(format!("cannot use {}", path.display()))
        })?;
        if own == kb {
            container = Some(found);
        }
        let digest = digest_of(&path, Hasher::default())?;
        files.push(UpdateFile {
            url: String::new(),
            digests: Digests::sha256(digest),
            name,
        });
    }
    if files.is_empty() {
        return Err(
            Failure::from(anyhow!("{} has no .msu file", folder.display())).hint(format!(
                "wincimg hotfix fetch {kb} --output {}",
                folder.display()
            )),
        );
    }
    Ok(Package {
        title: kb.to_string(),
        version: known.map(|update| update.version()),
        files,
        container,
    })
}

fn read_mirror(text: &str) -> Result<String, String> {
    match text.parse::<reqwest::Url>() {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(text.to_owned()),
        _ => Err(format!(
            "invalid address {text:?}: expected http://HOST/FOLDER or https://…"
        )),
    }
}
