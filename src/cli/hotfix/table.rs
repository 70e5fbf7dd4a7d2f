//! Which table of updates is in force: the embedded one, or what `--refresh` made of it.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;

use super::{HttpArgs, http_failure, with_hint};
use crate::catalog::{CacheError, HttpError, RELEASE_INFO, load_updates, refresh_updates};
use crate::cli::failure::Failure;
use crate::cli::progress;
use crate::cli::registry_args;
use crate::cli::session::Session;
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
                Failure::from(anyhow!(
                    "there is no folder to keep the table of updates in"
                ))
                .hint("name one in the environment variable XDG_CACHE_HOME")
            })?;
            let http = http.connect(progress::display(session))?;
            let work = async {
                refresh_updates(&http, &self.release_info, &path)
                    .await
                    .map_err(cache_failure)
            };
            return registry_args::run(work);
        }
        let Some(path) = path else {
            return Ok(Updates::embedded().clone());
        };
        Ok(load_updates(&path).unwrap_or_else(|error| {
            session.warn(format_args!(
                "{:#}; only updates that were known when this program was made count until --refresh mends it",
                anyhow::Error::from(error)
            ));
            Updates::embedded().clone()
        }))
    }
}

fn cache_failure(error: CacheError) -> Failure {
    let hint = hint_for(&error);
    let failure = match error {
        CacheError::Http(error) => http_failure(error),
        CacheError::Address(_) => Failure::usage(error),
        _ => Failure::from(error),
    };
    with_hint(failure, hint)
}

/// What to do where the table cannot be read anew, in flags that every command with --refresh has.
fn hint_for(error: &CacheError) -> Option<String> {
    let hint = match error {
        CacheError::Http(HttpError::Unreachable { .. }) => {
            "check the network and HTTPS_PROXY, name a copy of the page with --release-info, or go on with the table as it is, without --refresh"
        }
        CacheError::Page { .. } | CacheError::Unsound { .. } => {
            "the table stays as it was: the same command without --refresh uses it"
        }
        _ => return None,
    };
    Some(hint.to_owned())
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::net::{Clients, Redirects, Trust};

    #[test]
    fn a_page_out_of_reach_is_answered_with_flags_that_every_refresh_has() {
        let clients = Clients::new("test", Redirects::HandBack);
        let url = "https://releases.lan".parse().unwrap();
        let client = clients.get(&url, Trust::SystemRoots).unwrap();
        let source = client.get("https://[").build().unwrap_err();
        let unreachable = HttpError::Unreachable {
            host: "releases.lan".to_owned(),
            what: "list the releases".to_owned(),
            source,
        };
        let hint = hint_for(&CacheError::Http(unreachable)).unwrap();
        assert!(hint.contains("--release-info"), "{hint}");
        assert!(!hint.contains("--catalog"), "{hint}");
    }
}
