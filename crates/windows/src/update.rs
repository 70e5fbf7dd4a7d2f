//! Cumulative updates: build, revision and date of each KB.

use std::fmt;
use std::str::FromStr;
use std::sync::{LazyLock, OnceLock};

use jiff::Span;
use jiff::civil::Date;
use serde::Serialize;
use wincimg_common::SerializeDisplay;

use super::invalid::InvalidText;
use super::table::{TableError, TableRow, embedded, read_rows};
use super::version::WindowsVersion;

/// The number of a Knowledge Base article, as in `KB4549949`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, SerializeDisplay)]
pub struct Kb(u32);

impl FromStr for Kb {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let trimmed = text.trim();
        let digits = match trimmed.split_at_checked(2) {
            Some((letters, digits)) if letters.eq_ignore_ascii_case("kb") => digits,
            _ => trimmed,
        };
        // Of a number with zeros before it, only the others would be written again.
        let plausible = (6..=8).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && !digits.starts_with('0');
        plausible
            .then(|| digits.parse().ok().map(Self))
            .flatten()
            .ok_or_else(|| InvalidText::new("KB number", trimmed, "KB4549949 or 4549949"))
    }
}

impl Kb {
    /// The bare number.
    pub fn number(self) -> u32 {
        self.0
    }
}

impl fmt::Display for Kb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KB{}", self.0)
    }
}

/// Date and reason of an update's publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, SerializeDisplay)]
pub enum UpdateKind {
    /// Regular; the letter is the week of the month (`B` is Patch Tuesday).
    Week(char),
    /// Out of band.
    OutOfBand,
    /// Applied to running processes, without a restart, on enrolled hosts.
    Hotpatch,
    /// Optional, ahead of the next Patch Tuesday.
    Preview,
}

impl FromStr for UpdateKind {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "OOB" => Ok(Self::OutOfBand),
            "hotpatch" => Ok(Self::Hotpatch),
            "preview" => Ok(Self::Preview),
            "A" | "B" | "C" | "D" | "E" => text.chars().next().map(Self::Week).ok_or(()),
            _ => Err(()),
        }
    }
}

impl fmt::Display for UpdateKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Week(letter) => write!(f, "{letter}"),
            Self::OutOfBand => f.write_str("OOB"),
            Self::Hotpatch => f.write_str("hotpatch"),
            Self::Preview => f.write_str("preview"),
        }
    }
}

/// One cumulative update; its JSON is part of that of an image, whose version has the build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Update {
    /// Its article; none for the release, and while it is unknown.
    pub kb: Option<Kb>,
    /// The day it was published.
    pub date: Date,
    /// Date and reason of its publication.
    pub kind: UpdateKind,
    /// Its build.
    #[serde(skip)]
    pub build: u32,
    /// Revision of the host after the update; an image may have one of its own in between.
    pub revision: u32,
}

/// Regression of an update, and the update that fixes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownIssue {
    /// The update with the issue.
    pub kb: Kb,
    /// The update that fixes it.
    pub(crate) mended_by: Kb,
    /// Regression.
    pub what: &'static str,
}

static KNOWN_ISSUES: LazyLock<Vec<KnownIssue>> =
    LazyLock::new(|| embedded(include_str!("data/update-flaws.tsv"), read_known_issue));

fn read_known_issue(row: &mut TableRow<'static>) -> Result<KnownIssue, TableError> {
    let issue = KnownIssue {
        kb: row.value("KB number")?,
        mended_by: row.value("KB number")?,
        what: row.text("what breaks")?,
    };
    // The source is for readers of the table.
    row.text("source")?;
    Ok(issue)
}

impl Kb {
    /// Known regression of the update.
    pub fn known_issue(self) -> Option<&'static KnownIssue> {
        KNOWN_ISSUES.iter().find(|issue| issue.kb == self)
    }

    /// The update with its known issue, if any, for advice.
    pub fn describe(self) -> String {
        self.known_issue().map_or_else(
            || self.to_string(),
            |issue| {
                format!(
                    "{self} (breaks {}; fixed by {})",
                    issue.what, issue.mended_by
                )
            },
        )
    }
}

impl Update {
    /// Returns true if it is offered to every host: hotpatches are for enrolled hosts, previews are
    /// optional.
    pub(crate) fn is_regular(&self) -> bool {
        self.kb.is_some() && !matches!(self.kind, UpdateKind::Hotpatch | UpdateKind::Preview)
    }

    /// Version of the host after the update.
    pub fn version(&self) -> WindowsVersion {
        WindowsVersion::new(self.build, self.revision)
    }

    /// Sort key: one revision can have two articles, the newer one last.
    fn order(&self) -> (WindowsVersion, Date) {
        (self.version(), self.date)
    }
}

/// A table of updates, sorted by build, revision and date. Its text is what [`Updates::parse`]
/// reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Updates(Vec<Update>);

static EMBEDDED: LazyLock<Updates> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "embedded; a test parses every row")]
    Updates::parse(include_str!("data/windows-updates.tsv")).expect("the embedded table is sound")
});

/// The table of this process, once it is set.
static KNOWN: OnceLock<Updates> = OnceLock::new();

/// A month, and some days because Microsoft's calendar varies.
const FRESH_DAYS: i64 = 45;

/// The day until which an update may be the newest one.
fn fresh_until(newest: Date) -> Option<Date> {
    newest.checked_add(Span::new().days(FRESH_DAYS)).ok()
}

impl Updates {
    /// The embedded table.
    pub fn embedded() -> &'static Self {
        &EMBEDDED
    }

    /// The table of this process: the one that was set, or the embedded one.
    pub fn global() -> &'static Self {
        KNOWN.get().unwrap_or_else(|| Self::embedded())
    }

    /// Sets the table of the process; later calls have no effect.
    pub fn set_global(self) -> &'static Self {
        KNOWN.get_or_init(|| self)
    }

    /// The day of the newest update with an article, if newer ones must exist by now. A version
    /// without an article does not count, because other updates of its day are missing.
    pub fn stale_since(&self, today: Date) -> Option<Date> {
        let whole = self.0.iter().filter(|update| update.kb.is_some());
        let newest = whole.map(|update| update.date).max()?;
        (today > fresh_until(newest)?).then_some(newest)
    }

    /// Returns true if a build must have newer updates by that day than the table has.
    pub fn is_stale(&self, build: u32, today: Date) -> bool {
        let newest = self.by_build(build).iter().map(|update| update.date).max();
        newest
            .and_then(fresh_until)
            .is_none_or(|until| today > until)
    }

    /// Reads a table; rejects unreadable, unsorted and repeated rows.
    pub fn parse(text: &str) -> Result<Self, TableError> {
        let rows = read_rows(text, |row| {
            let update = Update {
                build: row.value("build")?,
                revision: row.value("revision")?,
                kb: row.optional("KB number")?,
                date: row.value("date")?,
                kind: row.value("kind of update")?,
            };
            Ok((update, row.error("the row is not after the one before it")))
        })?;
        let mut updates: Vec<Update> = Vec::with_capacity(rows.len());
        for (update, out_of_order) in rows {
            if updates
                .last()
                .is_some_and(|last| last.order() >= update.order())
            {
                return Err(out_of_order);
            }
            updates.push(update);
        }
        Ok(Self(updates))
    }

    /// Adds the updates whose version or article this table lacks; of two for the same version the
    /// first one counts.
    #[must_use]
    pub fn with(&self, others: impl IntoIterator<Item = Update>) -> Self {
        let is_news = |update: &Update| {
            let known = self.exact(update.version());
            known.is_none_or(|known| known.kb.is_none() && update.kb.is_some())
        };
        let mut added: Vec<Update> = others.into_iter().filter(is_news).collect();
        added.sort_by_key(Update::version);
        added.dedup_by_key(|update| update.version());
        let is_replaced = |known: &Update| {
            let place = added.binary_search_by_key(&known.version(), Update::version);
            place.is_ok()
        };
        let mut updates = self.0.clone();
        updates.retain(|known| !is_replaced(known));
        updates.extend(added);
        updates.sort_by_key(Update::order);
        Self(updates)
    }

    /// Every update, oldest build and revision first.
    pub fn all(&self) -> &[Update] {
        &self.0
    }

    /// The update of exactly this build and revision.
    pub fn exact(&self, version: WindowsVersion) -> Option<&Update> {
        self.contained_in(version)
            .filter(|update| Some(update.revision) == version.revision)
    }

    /// Every build that a KB updates; one article can serve several.
    pub fn by_kb(&self, kb: Kb) -> impl Iterator<Item = &Update> {
        self.0.iter().filter(move |update| update.kb == Some(kb))
    }

    /// The newest update of a build.
    pub fn newest(&self, build: u32) -> Option<&Update> {
        self.by_build(build).last()
    }

    /// The version with the newest update of a build; the bare build if there is none.
    pub fn newest_version(&self, build: u32) -> WindowsVersion {
        self.newest(build)
            .map_or(WindowsVersion::from_build(build), Update::version)
    }

    /// The last update that a version contains: its own, or the one before an unlisted revision,
    /// such as one of base images only.
    pub fn contained_in(&self, version: WindowsVersion) -> Option<&Update> {
        let revision = version.revision?;
        let updates = self.by_build(version.build);
        let after = updates.partition_point(|update| update.revision <= revision);
        updates[..after].last()
    }

    /// The first update to a version or a later one: its own, else one that is offered to every
    /// host, else a preview.
    pub fn first_reaching(&self, version: WindowsVersion) -> Option<&Update> {
        self.all_reaching(version).next()
    }

    /// All updates to a version or a later one, the best one first, without hotpatches.
    pub(crate) fn all_reaching(&self, version: WindowsVersion) -> impl Iterator<Item = &Update> {
        let updates = version.revision.map_or(&[][..], |revision| {
            let updates = self.by_build(version.build);
            &updates[updates.partition_point(|update| update.revision < revision)..]
        });
        let is_best = move |update: &&Update| update.is_regular() || update.version() == version;
        let installed = || {
            updates
                .iter()
                .filter(|update| update.kind != UpdateKind::Hotpatch)
        };
        let best = installed().filter(is_best);
        best.chain(installed().filter(move |update| !is_best(update)))
    }

    /// The newest update of a build that is offered to every host, and whose article is known.
    pub fn newest_regular(&self, build: u32) -> Option<&Update> {
        let mut updates = self.by_build(build).iter().rev();
        updates.find(|update| update.is_regular())
    }

    /// The newest monthly or out-of-band update of a build, with or without a known article.
    pub fn newest_published(&self, build: u32) -> Option<&Update> {
        let mut updates = self.by_build(build).iter().rev();
        updates.find(|update| !matches!(update.kind, UpdateKind::Hotpatch | UpdateKind::Preview))
    }

    /// True of a build's initial release, which has no article.
    pub fn is_release(&self, update: &Update) -> bool {
        update.kb.is_none() && self.by_build(update.build).first() == Some(update)
    }

    /// The builds that the table has updates of, oldest first.
    pub fn builds(&self) -> Vec<u32> {
        let mut builds: Vec<u32> = self.0.iter().map(|update| update.build).collect();
        builds.dedup();
        builds
    }

    /// The updates of one build, oldest first.
    pub fn by_build(&self, build: u32) -> &[Update] {
        let start = self.0.partition_point(|update| update.build < build);
        let end = self.0.partition_point(|update| update.build <= build);
        &self.0[start..end]
    }
}

impl fmt::Display for Updates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for update in &self.0 {
            write!(f, "{}\t{}\t", update.build, update.revision)?;
            if let Some(kb) = update.kb {
                write!(f, "{kb}")?;
            }
            writeln!(f, "\t{}\t{}", update.date, update.kind)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kb(text: &str) -> Kb {
        text.parse().unwrap()
    }

    #[test]
    fn every_row_parses_and_versions_are_sorted_and_unique() {
        let table = Updates::parse(include_str!("data/windows-updates.tsv")).unwrap();
        assert_eq!(table.all().len(), 856);
        assert!(table.all().is_sorted_by(|a, b| a.order() < b.order()));
    }

    /// The second Tuesday of a day's month.
    fn patch_tuesday(day: Date) -> Date {
        day.nth_weekday_of_month(2, jiff::civil::Weekday::Tuesday)
            .unwrap()
    }

    #[test]
    fn kinds_agree_with_the_calendar() {
        // Microsoft's own letters: a B that came a week late, and the early one of January 2018.
        let by_microsoft = ["2016-09-20", "2018-01-03"];
        for update in Updates::embedded().all() {
            let is_tuesday = update.date == patch_tuesday(update.date);
            let is_b = update.kind == UpdateKind::Week('B');
            let known = by_microsoft.contains(&update.date.to_string().as_str());
            assert!(!is_b || is_tuesday || known, "{update:?}");
            if update.kind == UpdateKind::Hotpatch {
                assert!(is_tuesday, "{update:?}");
            }
            if matches!(update.kind, UpdateKind::OutOfBand | UpdateKind::Preview) {
                assert!(!is_tuesday, "{update:?}");
            }
        }
    }

    #[test]
    fn no_update_came_after_the_end_of_its_builds_support() {
        // Windows 10 Enterprise shares these builds, and was served longer than the server.
        let served_longer = [
            (17134, "2021-05-11"),
            (18363, "2022-05-10"),
            (19042, "2023-05-09"),
        ];
        for update in Updates::embedded().all() {
            let release = super::super::release::from_build(update.build).unwrap();
            let longer = served_longer
                .iter()
                .find(|(build, _)| *build == update.build)
                .map(|(_, end)| end.parse().unwrap());
            let end = longer.or(release.extended_end);
            assert!(end.is_none_or(|end| update.date <= end), "{update:?}");
        }
    }

    #[test]
    fn every_flaw_is_of_a_listed_update_and_fixed_by_a_later_one_of_its_build() {
        assert!(!KNOWN_ISSUES.is_empty());
        let only = |kb: Kb| *Updates::embedded().by_kb(kb).next().unwrap();
        for issue in KNOWN_ISSUES.iter() {
            let (broken, mended) = (only(issue.kb), only(issue.mended_by));
            assert_eq!(broken.build, mended.build);
            assert!(broken.version() < mended.version());
        }
        assert_eq!(
            kb("KB5122882").describe(),
            "KB5122882 (breaks Remote Desktop; fixed by KB5129237)"
        );
    }

    #[test]
    fn one_version_can_have_two_articles() {
        let updates = Updates::embedded();
        for article in ["KB3189866", "KB3193494"] {
            let update = updates.by_kb(kb(article)).next().unwrap();
            assert_eq!(update.version(), WindowsVersion::new(14393, 187));
        }
        let exact = updates.exact(WindowsVersion::new(14393, 187)).unwrap();
        assert_eq!(exact.kb, Some(kb("KB3193494")));
        assert_eq!(&updates.with(updates.all().iter().copied()), updates);
    }

    #[test]
    fn the_next_one_up_is_neither_a_hotpatch_nor_a_preview() {
        let next = |build, revision| {
            let version = WindowsVersion::new(build, revision);
            let update = Updates::embedded().first_reaching(version).unwrap();
            update.version().to_string()
        };
        assert_eq!(next(26100, 2235), "26100.2314");
        assert_eq!(next(26100, 2240), "26100.2314");
        assert_eq!(next(18362, 1040), "18362.1082");
        assert_eq!(next(18362, 1049), "18362.1049");
        let preview = Updates::parse("18362\t1049\tKB4566116\t2020-08-20\tpreview\n").unwrap();
        let update = preview
            .first_reaching(WindowsVersion::new(18362, 1040))
            .unwrap();
        assert_eq!(update.revision, 1049);
        let hotpatch = Updates::parse("26100\t2240\tKB5046696\t2024-11-12\thotpatch\n").unwrap();
        assert_eq!(
            hotpatch.first_reaching(WindowsVersion::new(26100, 2000)),
            None
        );
    }

    #[test]
    fn a_table_is_stale_when_a_month_is_missing() {
        let table = Updates::parse("17763\t2\tKB4549949\t2026-09-14\tB\n").unwrap();
        let stale = |day: &str| table.stale_since(day.parse().unwrap());
        assert_eq!(stale("2026-09-01"), None);
        assert_eq!(stale("2026-10-29"), None);
        assert_eq!(stale("2026-10-30"), Some("2026-09-14".parse().unwrap()));
    }

    #[test]
    fn a_tables_text_is_read_back_as_the_same_table() {
        let table = Updates::embedded();
        assert_eq!(&Updates::parse(&table.to_string()).unwrap(), table);
    }

    #[test]
    fn of_two_updates_for_one_version_the_first_one_counts() {
        let update = |kb: &str| Update {
            kb: Some(self::kb(kb)),
            ..Updates::embedded().all()[1]
        };
        let table = Updates::parse("").unwrap().with([
            update("KB111111"),
            update("KB222222"),
            Updates::embedded().all()[0],
        ]);
        assert_eq!(table.all().len(), 2);
        assert_eq!(table.all()[1].kb, Some(kb("KB111111")));
    }

    #[test]
    fn an_article_joins_the_version_that_was_known_without_it() {
        let row = |kb: &str| {
            let row = format!("17763\t1\t\t2018-10-02\tA\n17763\t9487\t{kb}\t2026-11-10\tB\n");
            Updates::parse(&row).unwrap()
        };
        let (before, after) = (row(""), row("KB5131041"));
        assert_eq!(before.with(after.all().iter().copied()), after);
        assert_eq!(after.with(before.all().iter().copied()), after);
        let other = row("KB5131042");
        assert_eq!(after.with(other.all().iter().copied()), after);
    }

    #[test]
    fn only_the_first_version_of_a_build_is_its_release() {
        let updates = Updates::embedded();
        let releases = updates.all().iter().filter(|it| updates.is_release(it));
        let releases: Vec<String> = releases.map(|it| it.version().to_string()).collect();
        assert_eq!(releases, ["17763.1", "26100.1742"]);
    }

    #[test]
    fn updates_after_the_end_of_support_that_bulletins_name_are_known() {
        let version = |article: &str| {
            let mut updates = Updates::embedded().by_kb(kb(article));
            updates.next().map(|update| update.version().to_string())
        };
        // December 2019 and June 2020, of a release that ended in November 2019.
        assert_eq!(version("KB4530717").as_deref(), Some("17134.1184"));
        assert_eq!(version("KB4561621").as_deref(), Some("17134.1550"));
    }

    #[test]
    fn one_article_can_lead_to_several_revisions() {
        let revisions: Vec<_> = Updates::embedded()
            .by_kb(kb("KB5005625"))
            .map(|update| update.revision)
            .collect();
        assert_eq!(revisions, [2210, 2213]);
    }

    #[test]
    fn an_unlisted_revision_has_the_update_before_it_in_force() {
        let updates = Updates::embedded();
        let container_only = WindowsVersion::new(17763, 1040);
        assert_eq!(updates.exact(container_only), None);
        assert_eq!(updates.contained_in(container_only).unwrap().revision, 1039);
        assert_eq!(
            updates.first_reaching(container_only).unwrap().revision,
            1075
        );
    }

    #[test]
    fn the_ends_of_a_build_do_not_leak_into_its_neighbours() {
        let updates = Updates::embedded();
        assert_eq!(updates.contained_in(WindowsVersion::new(18362, 0)), None);
        assert_eq!(
            updates.first_reaching(WindowsVersion::new(17763, 999_999)),
            None
        );
        assert_eq!(updates.newest(17763).unwrap().build, 17763);
        assert_eq!(updates.newest(1), None);
        assert_eq!(
            updates.contained_in(WindowsVersion::from_build(17763)),
            None
        );
    }

    #[test]
    fn a_table_out_of_order_is_refused_by_line() {
        let text = "17763\t2\tKB4549949\t2020-04-14\tB\n17763\t2\tKB4549949\t2020-04-14\tB\n";
        assert_eq!(Updates::parse(text).unwrap_err().line, 2);
        let text = "17763\t2\tKB4549949\t2020-13-14\tB\n";
        assert_eq!(
            Updates::parse(text).unwrap_err().problem,
            "invalid date \"2020-13-14\""
        );
    }

    #[test]
    fn kb_numbers_are_read_with_and_without_letters() {
        assert_eq!(kb("kb4549949"), kb("4549949"));
        for text in [
            "", "KB", "KB12", "KB45a9949", "KB+549949", "45499490000", "ÄB4549949", "KB0073818",
        ] {
            assert!(text.parse::<Kb>().is_err(), "{text}");
        }
    }
}
