//! `wincimg node hotfix fetch`: downloads the verified files of one update.

use wincimg_catalog::{
    Catalog, Description, DownloadedUpdateFile, ExpectedUpdate, UpdateManifestFile, UpdateSetFile,
    download, folder_name,
};

use super::CatalogArgs;
use super::update_args::{CatalogSelectorArgs, SelectedUpdate, UpdateSelectorArgs, warn_of};
use crate::cli::prelude::*;
use crate::cli::updates::RefreshArgs;

/// Download and verify all files of an update
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg node hotfix fetch 17763.1158 --output ./hotfix\n  \
    wincimg node hotfix fetch --latest 26100 --output ./hotfix\n  \
    wincimg node hotfix fetch KB4549949 \\\n      \
    --product \"Windows 10 Version 1809\" --output ./windows10\n\n\
    Writes the files to DIR/KBnnnnnnn, with an update.json that describes them and their order of \
    installation. Verified files are not downloaded again, and interrupted downloads are resumed.\n\
    Exit code 1: the build is unknown, or the catalog does not have exactly one matching update.")]
pub(super) struct Fetch {
    #[command(flatten)]
    pub(super) what: UpdateSelectorArgs,
    #[command(flatten)]
    pick: CatalogSelectorArgs,
    /// Folder; the files go to a subfolder named after the KB
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// Accept files without a digest in the catalog; over TLS only
    #[arg(long)]
    without_digest: bool,
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

impl Fetch {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let updates = self.table.updates(&self.http, session)?;
        let (kb, known) = self.what.to_fetch(updates)?;
        warn_of(kb, known.as_ref(), updates, session);
        let http = self.http.connect(session)?;
        let catalog = Catalog::new(&self.catalog.catalog, &http)?;
        let flags = self.catalog.flags(&self.http);
        let folder = self.output.join(folder_name(kb, self.pick.arch));
        let (picked, fetched) =
            registry_args::run_single_threaded(http.with_deadline("fetch the update", async {
                let picked = self.pick.select(&catalog, kb, known, &flags).await?;
                let expected = ExpectedUpdate {
                    kb,
                    arch: self.pick.arch,
                    version: picked.version,
                    without_digest: self.without_digest,
                };
                let files = &picked.members;
                let fetched = download(&http, files, &folder, &expected, &flags).await?;
                Ok::<_, Failure>((picked, fetched))
            }))?;
        let files = picked.members.iter().zip(&fetched);
        let files = files.map(|(member, file)| UpdateManifestFile::fetched(member, file));
        let files = files.collect();
        let SelectedUpdate { version, stack, .. } = picked;
        let title = &picked.hit.title;
        let description = Description::new(kb, self.pick.arch, title, version, stack, files);
        description.write(&folder)?;
        for file in &fetched {
            if !file.verified {
                session.warn(format_args!(
                    "cannot verify {}: the catalog has no digest for it",
                    file.path.display()
                ));
            }
            if let Some(unsaid) = &file.unsaid {
                session.warn(format_args!(
                    "{}: {unsaid}; its digest is the catalog's",
                    file.path.display()
                ));
            }
        }
        let answer = || {
            json!({
                "kb": kb,
                "build": version,
                "title": title,
                "update_id": picked.hit.update_id,
                "folder": folder,
                "files": fetched.iter().zip(&picked.members).map(described).collect::<Vec<_>>(),
            })
        };
        self.format.print(answer, |out| {
            fetched
                .iter()
                .try_for_each(|file| writeln!(out, "{}", file.path.display()))
        })
    }
}

fn described((file, member): (&DownloadedUpdateFile, &UpdateSetFile)) -> Value {
    extended(file, json!({ "role": member.role }))
}
