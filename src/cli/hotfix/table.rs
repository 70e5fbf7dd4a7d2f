//! Which table of updates is in force: the embedded one, or what `--refresh` made of it.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;

use super::HttpArgs;
use crate::catalog::{RELEASE_INFO, load_updates, refresh_updates};
use crate::cli::failure::Failure;
use crate::cli::progress;
use crate::cli::registry_args;
use crate::cli::session::Session;
use crate::diagnose::in_one_line;
use crate::windows::update::Updates;

/// Where the table of updates comes from.
#[derive(Debug, Clone, Args)]
pub(super) struct TableArgs {
    /// Read the table of updates anew from Microsoft's page of releases, and keep it
    #[arg(long)]
    refresh: bool,
    /// The page that --refresh reads
    #[arg(long, value_name = "URL", default_value = RELEASE_INFO)]
    release_info: String,
}

impl TableArgs {
    pub(super) fn updates(&self, http: &HttpArgs, session: &Session) -> Result<Updates, Failure> {
        let path = cache_path();
        if self.refresh {
            let path = path.ok_or_else(|| {
                Failure::from(anyhow!("no folder to keep the table of updates in"))
                    .hint("name one in the environment variable XDG_CACHE_HOME")
            })?;
            let http = http.connect(progress::display(session))?;
            return registry_args::run(async {
                Ok(refresh_updates(&http, &self.release_info, &path).await?)
            });
        }
        let Some(path) = path else {
            return Ok(Updates::embedded().clone());
        };
        Ok(load_updates(&path).unwrap_or_else(|error| {
            session.warn(format_args!(
                "{}; until --refresh repairs it, only the updates that this program came with are known",
                in_one_line(&error)
            ));
            Updates::embedded().clone()
        }))
    }
}

/// Where the refreshed table is kept between runs.
fn cache_path() -> Option<PathBuf> {
    let folder = |name: &str| {
        let value = std::env::var_os(name).filter(|value| !value.is_empty());
        value.map(PathBuf::from).filter(|path| path.is_absolute())
    };
    let cache = folder("XDG_CACHE_HOME")
        .or_else(|| folder("LOCALAPPDATA"))
        .or_else(|| Some(folder("HOME")?.join(".cache")))?;
    Some(cache.join("wincimg").join("windows-updates.tsv"))
}
