//! `wincimg node hotfix script`: writes a PowerShell script that installs an update on a node.

use wincimg_catalog::{
    Catalog, Description, FileLocation, InstallScript, UpdateManifestFile, folder_name,
};
use wincimg_http::Url;
use wincimg_windows::update::{Kb, Update};

use super::CatalogArgs;
use super::update_args::{CatalogSelectorArgs, SelectedUpdate, UpdateSelectorArgs, warn_of};
use crate::cli::prelude::*;
use crate::cli::updates::RefreshArgs;

/// Write a PowerShell script that installs an update on a node
///
/// The script checks the node's version, verifies every file before it changes anything, disables
/// automatic updates, and can be run again at any time. The files come from the catalog or from a
/// folder of `hotfix fetch`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg node hotfix script 17763.1158 --output install.ps1\n  \
    wincimg node hotfix script 17763.1158 --files ./hotfix \\\n      \
    --output ./hotfix/KB4549949.ps1\n  \
    wincimg node hotfix script 17763.1158 --files ./hotfix \\\n      \
    --from-dir '\\\\share\\hotfix'\n  \
    wincimg node hotfix script 17763.1158 \\\n      \
    --from-url http://mirror.lan/hotfix --restart\n\n\
    With --files alone, nodes require the script with the folder KB4549949 next to it. The script \
    takes -Verify (after the restart), -Undo, -WhatIf, -KeepAutomaticUpdates, -Folder DIR and \
    -ComputerName N1,N2, and exits with 0 (done), 3010 (done, restart required) or 1 (failed).\n\
    Exit code 1: the build is unknown, or the catalog does not have exactly one matching update.")]
pub(super) struct MakeScript {
    #[command(flatten)]
    pub(super) what: UpdateSelectorArgs,
    #[command(flatten)]
    pick: CatalogSelectorArgs,
    /// Base URL from which nodes download the update's folder, instead of Microsoft's servers
    #[arg(long, value_name = "URL", conflicts_with = "from_dir", value_parser = read_mirror)]
    from_url: Option<String>,
    /// Folder or share on the nodes that contains the update's folder
    #[arg(long, value_name = "DIR")]
    from_dir: Option<String>,
    /// Use the files that `hotfix fetch` wrote to this folder, without the catalog
    #[arg(long, value_name = "DIR")]
    files: Option<PathBuf>,
    /// Let the script restart the node if required
    #[arg(long)]
    restart: bool,
    /// Write the script to this file instead of stdout
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    table: RefreshArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    http: HttpArgs,
}

impl MakeScript {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let source = match (&self.from_url, &self.from_dir, &self.files) {
            (Some(url), _, _) => FileLocation::Url(url.clone()),
            (None, Some(folder), _) => FileLocation::Folder(folder.clone()),
            (None, None, None) => FileLocation::Links,
            (None, None, Some(_)) => FileLocation::Beside,
        };
        let updates = self.table.updates(&self.http, session)?;
        let (kb, known) = self.what.to_fetch(updates)?;
        warn_of(kb, known.as_ref(), updates, session);
        let update = match &self.files {
            Some(folder) => {
                let known = known.map(|update| update.version());
                let asked = known.filter(|_| self.what.is_by_build());
                let flags = self.catalog.flags(&self.http);
                let mut update = Description::read(folder, kb, self.pick.arch, asked, &flags)?;
                update.build = update.build.or(known);
                update
            }
            None => self.in_catalog(kb, known, session)?,
        };
        let script = InstallScript {
            update,
            folder: folder_name(kb, self.pick.arch),
            source,
            restart: self.restart,
        };
        let text = script.render()?;
        let update = &script.update;
        let names = update.files.iter().map(|file| file.name.as_str());
        let answer = || {
            json!({
                "kb": kb,
                "build": update.build,
                "title": update.title,
                "files": names.collect::<Vec<_>>(),
                "script": text,
            })
        };
        let outcome = self.format.write(self.output.as_deref(), answer, |out| {
            out.write_all(text.as_bytes())
        })?;
        if script.source == FileLocation::Beside && self.output.is_some() {
            session.note(format_args!(
                "nodes require the script and the folder {} next to it, or -Folder with its path",
                script.folder
            ));
        }
        Ok(outcome)
    }

    fn in_catalog(&self, kb: Kb, known: Option<Update>, session: &Session) -> Result<Description> {
        let http = self.http.connect(session)?;
        let catalog = Catalog::new(&self.catalog.catalog, &http)?;
        let flags = self.catalog.flags(&self.http);
        let picking = self.pick.select(&catalog, kb, known, &flags);
        let picked = registry_args::run(http.with_deadline("look up the update", picking));
        let picked = picked.map_err(|failure: Failure| {
            let hint = failure.is_unreachable().then(|| {
                format!(
                    "check the network and HTTPS_PROXY, or add --files DIR with what `wincimg node \
                     hotfix fetch {kb} --output DIR` wrote on a machine with internet"
                )
            });
            failure.hint_if(hint)
        })?;
        let SelectedUpdate { version, stack, .. } = picked;
        let (arch, title) = (self.pick.arch, &picked.hit.title);
        let files = picked.members.iter().map(UpdateManifestFile::from_catalog);
        let files = files.collect();
        Ok(Description::new(kb, arch, title, version, stack, files))
    }
}

fn read_mirror(text: &str) -> Result<String, String> {
    match text.parse::<Url>() {
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(text.to_owned()),
        _ => Err(format!(
            "invalid URL {}: expected http://HOST/FOLDER or https://…",
            QuotedText(text)
        )),
    }
}
