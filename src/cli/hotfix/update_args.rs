//! Arguments that select an update, in the table of updates or the catalog.

use std::str::FromStr;

use wincimg_catalog::{
    Arch, Catalog, Criteria, Product, SearchResult, Title, UpdateFile, UpdateSetFile, build_of,
    in_order, parse_update_id, select,
};
use wincimg_windows::release::ReleaseKind;
use wincimg_windows::update::{Kb, Update, UpdateKind, Updates};
use wincimg_windows::{prerequisite, release};

use crate::cli::hosts::{HostName, host_name};
use crate::cli::prelude::*;

/// A build or a KB article.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UpdateSelector {
    Version(WindowsVersion),
    Article(Kb),
}

impl FromStr for UpdateSelector {
    type Err = String;

    /// Builds have five digits; articles have more.
    fn from_str(text: &str) -> Result<Self, String> {
        text.parse()
            .map(Self::Article)
            .or_else(|_| text.parse().map(Self::Version))
            .map_err(|_| {
                format!("{text:?} is neither a build such as 17763.1158 nor an article such as KB4549949")
            })
    }
}

/// Options for selecting an update.
#[derive(Debug, Clone, Args)]
#[group(id = "update", required = true, multiple = false)]
pub(super) struct UpdateSelectorArgs {
    /// Build and revision, such as 17763.1158, or KB number, such as KB4549949
    #[arg(value_name = "BUILD|KB")]
    what: Option<UpdateSelector>,
    /// Newest update of this build or release
    ///
    /// The release is named like ltsc2022. Hotpatches and previews do not count.
    #[arg(long, value_name = "BUILD", value_parser = host_name)]
    latest: Option<HostName>,
}

/// A revision without an update, and its neighbours.
#[derive(Debug, Clone)]
pub(super) struct RevisionGap {
    pub(super) version: WindowsVersion,
    pub(super) before: Option<Update>,
    pub(super) after: Option<Update>,
}

/// Result of a search in the table.
pub(super) enum UpdateLookup {
    /// What the update installs, oldest first: at least one version.
    Found(Vec<Update>),
    Between(RevisionGap),
    UnknownArticle(Kb),
}

/// Warns of a known issue of an update, and of a hotpatch, which ends on other hosts as not
/// applicable.
pub(super) fn warn_of(kb: Kb, known: Option<&Update>, updates: &Updates, session: &Session) {
    if kb.known_issue().is_some() {
        session.warn(kb.describe());
    }
    if let Some(hotpatch) = known.filter(|known| known.kind == UpdateKind::Hotpatch) {
        let others = updates.first_reaching(hotpatch.version());
        let others = others.map_or_else(String::new, |other| {
            format!("; for all hosts: {}", shown(other))
        });
        session.warn(format_args!(
            "{kb} is a hotpatch: only enrolled hosts with its baseline install it{others}"
        ));
    }
}

fn shown(update: &Update) -> String {
    let (version, date) = (update.version(), update.date);
    match update.kb {
        Some(kb) => format!("{kb} ({version}, {date})"),
        None => format!("{version} of {date}"),
    }
}

impl UpdateSelectorArgs {
    /// The build whose newest update is selected.
    pub(super) fn latest(&self) -> Option<HostName> {
        self.latest.clone()
    }

    /// Returns true if a build is selected, not an article, which may serve several builds.
    pub(super) fn is_by_build(&self) -> bool {
        !matches!(self.what, Some(UpdateSelector::Article(_)))
    }

    pub(super) fn find(&self, updates: &Updates) -> Result<UpdateLookup> {
        match (self.what, &self.latest) {
            (_, Some(host)) => latest(host.version().build, updates),
            (Some(UpdateSelector::Version(version)), None) => by_version(version, updates),
            (Some(UpdateSelector::Article(kb)), None) => {
                let found: Vec<Update> = updates.by_kb(kb).copied().collect();
                Ok(if found.is_empty() {
                    UpdateLookup::UnknownArticle(kb)
                } else {
                    UpdateLookup::Found(found)
                })
            }
            (None, None) => Err(Failure::usage("neither a build nor an article is named")),
        }
    }

    /// The update to find in the catalog; an article may be missing from the table.
    pub(super) fn to_fetch(&self, updates: &Updates) -> Result<(Kb, Option<Update>)> {
        match self.find(updates)? {
            UpdateLookup::Found(found) => {
                let newest = found.last();
                match newest.and_then(|update| update.kb) {
                    Some(kb) => Ok((kb, newest.copied())),
                    None => Err(without_article(&found, updates)),
                }
            }
            UpdateLookup::Between(between) => Err(between.failure()),
            UpdateLookup::UnknownArticle(kb) => Ok((kb, None)),
        }
    }
}

/// Error for an update that is unknown, or does not exist.
pub(super) fn not_found(problem: impl Into<String>) -> Failure {
    Problem::answer("updates/not-found", problem).into()
}

fn latest(build: u32, updates: &Updates) -> Result<UpdateLookup> {
    match updates.newest_published(build) {
        Some(update) => Ok(UpdateLookup::Found(vec![*update])),
        None => Err(unknown_build(build, updates)),
    }
}

/// Error of versions without a known article.
fn without_article(found: &[Update], updates: &Updates) -> Failure {
    let Some(update) = found.last() else {
        return not_found("no update is known");
    };
    let version = update.version();
    if updates.is_release(update) {
        return not_found(format!(
            "{version} is the initial release of a build: no update installs it"
        ));
    }
    let date = update.date;
    let last = updates.newest_regular(update.build).map(Update::version);
    let last = last.map_or_else(String::new, |last| {
        format!("; the last update with a known one is {last}")
    });
    not_found(format!(
        "the KB number of {version}, of {date}, is not known yet{last}"
    ))
    .hint(format!(
        "to read newer ones: wincimg node hotfix resolve {version} --refresh"
    ))
}

fn by_version(version: WindowsVersion, updates: &Updates) -> Result<UpdateLookup> {
    if let Some(update) = updates.exact(version) {
        return Ok(UpdateLookup::Found(vec![*update]));
    }
    if updates.by_build(version.build).is_empty() {
        return Err(unknown_build(version.build, updates));
    }
    if version.revision.is_none() {
        return Err(
            Failure::usage(format!("{version} has no revision")).hint(format!(
                "add one, as in {version}.1158, or use the newest: --latest {version}"
            )),
        );
    }
    Ok(UpdateLookup::Between(RevisionGap {
        version,
        before: updates.contained_in(version).copied(),
        after: updates.first_reaching(version).copied(),
    }))
}

/// Microsoft's page only adds newer releases.
fn unknown_build(build: u32, updates: &Updates) -> Failure {
    let failure = not_found(format!("no known update for build {build}"));
    let builds = updates.builds();
    if builds.last().is_none_or(|newest| build > *newest) && release::from_build(build).is_none() {
        return failure.hint(format!(
            "for a new release, read Microsoft's page: wincimg node hotfix resolve --latest {build} \
             --refresh"
        ));
    }
    let names = || joined(&builds, ", ");
    if let Some(client) = release::from_build(build).filter(|own| own.kind == ReleaseKind::Client) {
        return failure.hint(format!(
            "only updates of Windows Server are known, builds {}; search the catalog: {}",
            names(),
            command_line(&["wincimg", "node", "hotfix", "search", client.name])
        ));
    }
    let nearest = builds.iter().min_by_key(|known| known.abs_diff(build));
    let nearest = nearest.map_or_else(String::new, |known| {
        format!("the nearest build is {known}: wincimg node hotfix resolve --latest {known}; ")
    });
    failure.hint(format!(
        "{nearest}updates are known for the builds {}",
        names()
    ))
}

impl RevisionGap {
    /// Error if no single update matches, with the next one.
    pub(super) fn failure(&self) -> Failure {
        let version = self.version;
        let place = match (&self.before, &self.after) {
            (Some(before), Some(after)) => {
                format!("is between {} and {}", shown(before), shown(after))
            }
            (None, Some(after)) => format!("is older than the first known one, {}", shown(after)),
            (Some(before), None) => format!("is newer than the last known one, {}", shown(before)),
            (None, None) => "is unknown".to_owned(),
        };
        let failure = not_found(format!(
            "no update installs exactly {version}, which {place}"
        ));
        let (before, version, flag) = match &self.after {
            Some(after) => ("the next newer one", after.version(), ""),
            None => ("to look for newer ones", version, " --refresh"),
        };
        // Unlike the others, this command requires no more arguments.
        failure.hint(format!(
            "{before}: wincimg node hotfix resolve {version}{flag}"
        ))
    }
}

/// Options for selecting one of an article's updates in the catalog.
#[derive(Debug, Clone, Args)]
pub(super) struct CatalogSelectorArgs {
    /// Product [default: the server edition of the build]
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    product: Option<String>,
    /// Architecture: x64, x86 or arm64
    #[arg(long, value_name = "ARCH", default_value_t = Arch::X64, hide_short_help = true)]
    pub(super) arch: Arch,
    /// ID of the update, if several match
    #[arg(long, value_name = "GUID", value_parser = parse_update_id, hide_short_help = true)]
    update_id: Option<String>,
    /// Leave out the servicing stack updates that older nodes need first
    #[arg(long, hide_short_help = true)]
    without_prerequisites: bool,
}

pub(super) struct SelectedUpdate {
    pub(super) hit: SearchResult,
    pub(super) members: Vec<UpdateSetFile>,
    /// Servicing stack update that must be installed first.
    pub(super) stack: Option<WindowsVersion>,
    /// Version of the host after the update, if known.
    pub(super) version: Option<WindowsVersion>,
}

impl CatalogSelectorArgs {
    /// Finds the update in the catalog, its files, and its prerequisites.
    pub(super) async fn select(
        &self,
        catalog: &Catalog<'_>,
        kb: Kb,
        known: Option<Update>,
        flags: &str,
    ) -> Result<SelectedUpdate> {
        let hits = catalog.search(&kb.to_string()).await?;
        let product = match &self.product {
            Some(name) => Some(Product::from_name(name)),
            None => known.and_then(|update| Product::for_build(update.build)),
        };
        let criteria = Criteria {
            kb,
            product,
            arch: self.arch,
            update_id: self.update_id.clone(),
            flags: flags.to_owned(),
        };
        let hit = select(&hits, &criteria)?.clone();
        let files = catalog.files(&hit.update_id).await?;
        let version = known
            .map(|update| update.version())
            .or_else(|| build_of(&Title::read(&hit.title)).map(WindowsVersion::from_build));
        let needed = version.and_then(prerequisite::for_version);
        let before = match needed.and_then(|needed| needed.kb) {
            Some(kb) if !self.without_prerequisites => {
                self.prerequisite(catalog, kb, &criteria).await?
            }
            _ => Vec::new(),
        };
        Ok(SelectedUpdate {
            members: in_order(kb, self.arch, files, hit.size, before)?,
            stack: needed.and_then(|needed| needed.stack),
            hit,
            version,
        })
    }

    async fn prerequisite(
        &self,
        catalog: &Catalog<'_>,
        kb: Kb,
        target: &Criteria,
    ) -> Result<Vec<UpdateFile>> {
        let hits = catalog.search(&kb.to_string()).await?;
        let criteria = Criteria {
            kb,
            update_id: None,
            ..target.clone()
        };
        let hit = select(&hits, &criteria).map_err(|error| {
            Failure::from(error)
                .context(format!("{} requires {kb} first", target.kb))
                .hint("if all nodes have it, add --without-prerequisites")
        })?;
        Ok(catalog.files(&hit.update_id).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_and_articles_are_distinguished_by_their_length() {
        let version = |build, revision| UpdateSelector::Version(WindowsVersion { build, revision });
        assert_eq!("17763".parse(), Ok(version(17763, None)));
        assert_eq!("10.0.17763.1158".parse(), Ok(version(17763, Some(1158))));
        assert_eq!("4549949".parse(), "kb4549949".parse::<UpdateSelector>());
        assert!(matches!(
            "KB4549949".parse(),
            Ok(UpdateSelector::Article(_))
        ));
        assert!("ltsc2019".parse::<UpdateSelector>().is_err());
    }
}
