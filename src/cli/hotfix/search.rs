//! `wincimg node hotfix search`: searches the Update Catalog.

use wincimg_catalog::{Catalog, SearchResult};

use super::CatalogArgs;
use crate::cli::prelude::*;

/// Search the Microsoft Update Catalog
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg node hotfix search KB4549949\n  \
    wincimg node hotfix search \"2020-04 Windows Server 2019\" --format json\n\n\
    Exit code 1: no update found.")]
pub(super) struct Search {
    /// Search terms, such as a KB number
    #[arg(value_name = "QUERY", required = true, num_args = 1..)]
    query: Vec<String>,
    #[command(flatten)]
    catalog: CatalogArgs,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    http: HttpArgs,
}

impl Search {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let query = self.query.join(" ");
        let http = self.http.connect(session)?;
        let catalog = Catalog::new(&self.catalog.catalog, &http)?;
        let hits = registry_args::run(async { Ok(catalog.search(&query).await?) })?;
        let answer = || json!({"query": query, "updates": hits});
        self.format.print(answer, |out| write_results(&hits, out))?;
        if hits.is_empty() {
            session.note(format_args!(
                "no updates found in the catalog for {query:?}"
            ));
        }
        Ok((!hits.is_empty()).into())
    }
}

fn write_results(hits: &[SearchResult], out: &mut dyn Write) -> io::Result<()> {
    if hits.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "{:<10} {:>11} {:<36} TITLE",
        "DATE", "SIZE", "UPDATE ID"
    )?;
    for hit in hits {
        let (date, size) = (or_dash(hit.date), or_dash(hit.size.map(BinaryBytes)));
        let (update_id, title) = (UntrustedText(&hit.update_id), UntrustedText(&hit.title));
        writeln!(out, "{date:<10} {size:>11} {update_id:<36} {title}")?;
    }
    Ok(())
}
