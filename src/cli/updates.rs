//! Table of updates of a run: the embedded one, and the updates that `--refresh` added.
//!
//! It is selected once, before its first use, so that all parts of a run use the same table.

use jiff::civil::Date;
use wincimg_catalog::{RELEASE_INFO, load_updates, refresh_updates};
use wincimg_windows::update::Updates;

use crate::cli::prelude::*;

/// Maximum number of unreadable rows to print.
const QUOTED: usize = 3;

/// Source of the table of updates.
#[derive(Debug, Clone, Args)]
pub(super) struct RefreshArgs {
    /// Refresh the table of updates from Microsoft's release page
    #[arg(long)]
    refresh: bool,
    /// Page that --refresh reads: a URL, or a file with a copy as HTML or Markdown
    #[arg(long, value_name = "URL|FILE", default_value = RELEASE_INFO, hide_short_help = true)]
    release_info: String,
}

impl RefreshArgs {
    pub(super) fn updates(&self, http: &HttpArgs, session: &Session) -> Result<&'static Updates> {
        if !self.refresh {
            return Ok(updates_table(session));
        }
        let path = cache_path(session).ok_or_else(|| {
            Failure::operation("no cache folder for the table of updates")
                .hint("set one with --cache-dir DIR")
        })?;
        let http = http.connect(session)?;
        let read = registry_args::run(async {
            Ok(refresh_updates(&http, &self.release_info, &path).await?)
        })?;
        for row in read.unread.iter().take(QUOTED) {
            session.warn(format_args!("skipped a row of the page: {row}"));
        }
        if read.unread.len() > QUOTED {
            let more = read.unread.len() - QUOTED;
            session.warn(format_args!("skipped {more} more rows of the page"));
        }
        Ok(read.updates.set_global())
    }
}

/// Warns if the table lacks updates of a build that must have been published. Call this after the
/// result: failures have better hints.
pub(super) fn warn_if_stale(build: impl Display, session: &Session, today: Option<Date>) {
    let today = today.unwrap_or_else(|| Zoned::now().date());
    if let Some(newest) = Updates::global().stale_since(today) {
        session.warn(stale_in_words(newest, build));
    }
}

/// What is known of updates up to this day, and how to read newer ones.
pub(super) fn stale_in_words(newest: Date, build: impl Display) -> String {
    format!(
        "KB numbers are known up to {newest}; to read newer ones: wincimg node hotfix resolve \
         --latest {build} --refresh"
    )
}

pub(super) fn updates_table(session: &Session) -> &'static Updates {
    let Some(path) = cache_path(session) else {
        return Updates::global();
    };
    match load_updates(&path) {
        Ok(updates) => updates.set_global(),
        Err(error) => {
            session.warn(format_args!(
                "{}; using only the built-in updates until `wincimg node hotfix resolve --latest 17763 \
                 --refresh` repairs it",
                error_chain(error.as_ref())
            ));
            Updates::global()
        }
    }
}

/// Path of the refreshed table.
fn cache_path(session: &Session) -> Option<PathBuf> {
    Some(session.cache.folder()?.join("windows-updates.tsv"))
}
