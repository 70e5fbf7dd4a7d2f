//! `wincimg node hotfix`: finds updates, downloads them, and writes scripts that install them.

mod fetch;
mod resolve;
mod script;
mod search;
mod update_args;

use wincimg_catalog::DEFAULT_CATALOG;
use wincimg_common::untrusted::public_url;

use super::updates;
use crate::cli::prelude::*;

/// Find, download and install Windows updates for nodes
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg node hotfix resolve 17763.1158\n  \
    wincimg node hotfix fetch 17763.1158 --output ./hotfix\n  \
    wincimg node hotfix script 17763.1158 --files ./hotfix \\\n      \
    --output ./hotfix/KB4549949.ps1")]
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
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let (latest, outcome) = match self.command {
            HotfixCommand::Resolve(command) => (command.what.latest(), command.run(session)),
            HotfixCommand::Search(command) => (None, command.run(session)),
            HotfixCommand::Fetch(command) => (command.what.latest(), command.run(session)),
            HotfixCommand::Script(command) => (command.what.latest(), command.run(session)),
        };
        if let Some(latest) = latest.filter(|_| outcome.is_ok()) {
            updates::warn_if_stale(latest, session, None);
        }
        outcome
    }
}

/// Options for the catalog.
#[derive(Debug, Clone, Args)]
struct CatalogArgs {
    /// URL of the Microsoft Update Catalog or a copy of it
    #[arg(long, value_name = "URL", default_value = DEFAULT_CATALOG)]
    catalog: String,
}

impl CatalogArgs {
    /// The same flags and those of the connection, for a command line.
    fn flags(&self, http: &HttpArgs) -> String {
        let other = Some(&self.catalog).filter(|it| *it != DEFAULT_CATALOG);
        let catalog = flag_words("--catalog", other.map(|url| public_url(url)));
        command_line(&[catalog, http.to_words()].concat())
    }
}
