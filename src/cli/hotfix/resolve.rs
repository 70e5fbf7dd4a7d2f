//! `wincimg node hotfix resolve`: resolves a build to its update, or an update to its builds.

use wincimg_windows::update::Update;

use super::update_args::{RevisionGap, UpdateLookup, UpdateSelectorArgs, not_found, warn_of};
use crate::cli::prelude::*;
use crate::cli::updates::RefreshArgs;

/// Resolve a build to its update, or an update to its builds
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg node hotfix resolve 17763.1158\n  \
    wincimg node hotfix resolve KB4549949 --format json\n  \
    wincimg node hotfix resolve --latest 17763 --refresh\n\n\
    Prints the version, the KB number, the date and the kind: B (Patch Tuesday), another letter\n\
    (another week of the month), OOB (out of band), preview or hotpatch.\n\
    Exit code 1: the build or KB number is unknown, or no update installs exactly that build.")]
pub(super) struct Resolve {
    #[command(flatten)]
    pub(super) what: UpdateSelectorArgs,
    #[command(flatten)]
    table: RefreshArgs,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    http: HttpArgs,
}

impl Resolve {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let updates = self.table.updates(&self.http, session)?;
        match self.what.find(updates)? {
            UpdateLookup::Found(installed) => {
                let answer = || found(&installed);
                self.format.print(answer, |out| {
                    installed
                        .iter()
                        .try_for_each(|update| write_update(update, out))
                })?;
                let newest = installed.last();
                if let Some(kb) = newest.and_then(|update| update.kb) {
                    warn_of(kb, newest, updates, session);
                }
                Ok(CommandOutcome::Yes)
            }
            UpdateLookup::Between(between) => {
                self.format.print_if_json(|| neighbours(&between))?;
                Err(between.failure())
            }
            UpdateLookup::UnknownArticle(kb) => {
                let nothing = || json!({ "build": null, "kb": kb, "date": null, "kind": null });
                self.format.print_if_json(nothing)?;
                let unknown = format!("{kb} is not a known cumulative update of Windows Server");
                Err(not_found(unknown).hint(format!(
                    "search the catalog: wincimg node hotfix search {kb}; or add --refresh"
                )))
            }
        }
    }
}

fn write_update(update: &Update, out: &mut dyn Write) -> io::Result<()> {
    let (version, date, kind) = (update.version(), update.date, &update.kind);
    let kb = or_dash(update.kb);
    writeln!(out, "{version} {kb} {date} {kind}")
}

/// The update: its newest build, and all of them.
fn found(updates: &[Update]) -> Value {
    let builds = updates.iter().map(|update| update.version().to_string());
    let builds: Vec<String> = builds.collect();
    extended(&updates.last().map(row), json!({ "builds": builds }))
}

fn row(update: &Update) -> Value {
    json!({
        "build": update.version(),
        "kb": update.kb,
        "date": update.date,
        "kind": update.kind,
    })
}

fn neighbours(between: &RevisionGap) -> Value {
    json!({
        "build": between.version,
        "kb": null,
        "date": null,
        "kind": null,
        "before": between.before.as_ref().map(row),
        "after": between.after.as_ref().map(row),
    })
}
