//! `wincimg hotfix`: from a build to the update that brings a node there, and onto the node.

mod fetch;
mod resolve;
mod script;
mod search;
mod table;
mod wanted;

use std::sync::Arc;

use clap::{Args, Subcommand};

use super::Answer;
use super::failure::Failure;
use super::session::Session;
use crate::catalog::{Catalog, CatalogError, DEFAULT_CATALOG, Http, HttpError, RetryPolicy};
use crate::progress::Progress;

/// Find, download and install the update that brings a node to a build
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg hotfix resolve 17763.1158\n  \
    wincimg hotfix fetch 17763.1158 --output ./hotfix\n  \
    wincimg hotfix script 17763.1158 --files ./hotfix --output install.ps1")]
pub(super) struct Hotfix {
    #[command(subcommand)]
    command: HotfixCommand,
}

#[derive(Debug, Subcommand)]
enum HotfixCommand {
    Resolve(resolve::Resolve),
    Search(search::Search),
    Fetch(fetch::Fetch),
    Script(script::MakeScript),
}

impl Hotfix {
    pub(super) fn run(self, session: &Session) -> Result<Answer, Failure> {
        match self.command {
            HotfixCommand::Resolve(command) => command.run(session),
            HotfixCommand::Search(command) => command.run(session),
            HotfixCommand::Fetch(command) => command.run(session),
            HotfixCommand::Script(command) => command.run(session),
        }
    }
}

/// Which hosts may be insecure.
#[derive(Debug, Clone, Args)]
struct HttpArgs {
    /// Allow plain HTTP or an unverified certificate for this host alone (repeatable)
    #[arg(long = "insecure-registry", value_name = "HOST[:PORT]")]
    insecure: Vec<String>,
}

impl HttpArgs {
    fn connect(&self, progress: Arc<dyn Progress>) -> Result<Http, Failure> {
        Http::new(&self.insecure, RetryPolicy::default(), progress).map_err(http_failure)
    }
}

/// Where updates are looked for.
#[derive(Debug, Clone, Args)]
struct CatalogArgs {
    /// The Microsoft Update Catalog, or a copy of it
    #[arg(long, value_name = "URL", default_value = DEFAULT_CATALOG)]
    catalog: String,
}

impl CatalogArgs {
    fn open<'h>(&self, http: &'h Http) -> Result<Catalog<'h>, Failure> {
        Catalog::at(&self.catalog, http).map_err(catalog_failure)
    }
}

fn http_failure(error: HttpError) -> Failure {
    let hint = http_hint(&error);
    let failure = match error {
        HttpError::InsecureHost(_) => Failure::usage(error),
        _ => Failure::from(error),
    };
    with_hint(failure, hint)
}

fn catalog_failure(error: CatalogError) -> Failure {
    let hint = catalog_hint(&error);
    match error {
        CatalogError::Http(error) => http_failure(error),
        CatalogError::Address(_) => Failure::usage(error),
        _ => with_hint(Failure::from(error), hint),
    }
}

/// What to do where the catalog fails.
pub(super) fn catalog_hint(error: &CatalogError) -> Option<String> {
    match error {
        CatalogError::Http(error) => http_hint(error),
        CatalogError::Address(_) => None,
        _ => Some(
            "the catalog may be overloaded: try again later, or name a copy with --catalog"
                .to_owned(),
        ),
    }
}

fn http_hint(error: &HttpError) -> Option<String> {
    match error {
        HttpError::PlainHttp { host, .. } => {
            Some(format!("if that is meant, add --insecure-registry {host}"))
        }
        HttpError::Unreachable { .. } => Some(
            "check the network and HTTPS_PROXY, or name a copy of the catalog with --catalog"
                .to_owned(),
        ),
        _ => None,
    }
}

fn with_hint(failure: Failure, hint: Option<String>) -> Failure {
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
