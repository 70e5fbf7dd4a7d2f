//! Microsoft's page of Windows Server releases, from which the table of updates is refreshed: as
//! HTML, or as its Markdown source.
//!
//! It has a table for each release, with the columns servicing option, update type, date, build and
//! KB article; other columns are ignored. The calendar of hotpatches has a column *Type* that
//! distinguishes a hotpatch from a baseline; the baseline is in the release's own table too, and
//! future months have no build yet.

use wincimg_windows::update::{Update, UpdateKind, Updates};
use wincimg_windows::version::WindowsVersion;

use super::date::read_date;
use super::html::collapse_whitespace;
use super::page::html_tables;

/// Address of the page.
pub const RELEASE_INFO: &str =
    "https://learn.microsoft.com/en-us/windows/release-health/windows-server-release-info";

/// Problem of a page without the history of a release.
const NO_TABLE: &str = "it has no table with the columns update type, date, build and KB article";

/// Content of the page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReleaseInfo {
    /// Known updates, with the additions of the page.
    pub updates: Updates,
    /// Rows that could not be read, each with its problem.
    pub unread: Vec<String>,
}

/// Reads every release's history and adds new rows to the known ones, which are kept.
pub(crate) fn read_release_info(page: &str, known: &Updates) -> Result<ReleaseInfo, String> {
    let mut updates: Vec<Update> = Vec::new();
    let mut unread = Vec::new();
    let mut found = false;
    for table in &tables(page) {
        let Some((header, rows)) = table.split_first() else {
            continue;
        };
        let Some(columns) = Columns::read(header) else {
            continue;
        };
        found = true;
        for row in rows.iter().filter(|row| !columns.is_future(row)) {
            let update = columns.update(row).and_then(|update| {
                let known = known.exact(update.version());
                let twin = updates.iter().find(|other| {
                    other.version() == update.version()
                        && other.kb != update.kb
                        && known.is_none_or(|known| known.kb.is_none())
                });
                twin.map_or(Ok(update), |_| Err("another article for the same build"))
            });
            match update {
                Ok(update) => updates.push(update),
                Err(problem) => unread.push(format!("{problem} in {:?}", quoted(row))),
            }
        }
    }
    match (found, unread.first()) {
        (false, _) => Err(NO_TABLE.to_owned()),
        (true, Some(first)) if updates.is_empty() => {
            Err(format!("no row of its tables can be read: {first}"))
        }
        (true, None) if updates.is_empty() => Err(NO_TABLE.to_owned()),
        _ => Ok(ReleaseInfo {
            updates: known.with(updates),
            unread,
        }),
    }
}

fn quoted(row: &[String]) -> String {
    row.join(" | ").chars().take(200).collect()
}

/// The cells of every table of the page, row by row.
fn tables(page: &str) -> Vec<Vec<Vec<String>>> {
    if page.to_ascii_lowercase().contains("<table") {
        html_tables(page)
    } else {
        markdown_tables(page)
    }
}

/// Tables of Markdown: lines between bars, the second one a rule.
fn markdown_tables(page: &str) -> Vec<Vec<Vec<String>>> {
    let mut seen: Vec<Vec<Vec<String>>> = Vec::new();
    let mut inside = false;
    for line in page.lines().map(str::trim) {
        let cells = line
            .strip_prefix('|')
            .map(|line| line.strip_suffix('|').unwrap_or(line));
        let Some(cells) = cells else {
            inside = false;
            continue;
        };
        if !inside {
            seen.push(Vec::new());
            inside = true;
        }
        let is_rule = cells.chars().all(|c| matches!(c, '-' | ':' | '|' | ' '));
        if let Some(table) = seen
            .last_mut()
            .filter(|_| !is_rule || cells.trim().is_empty())
        {
            table.push(cells.split('|').map(markdown_text).collect());
        }
    }
    seen
}

/// A cell's text without its emphasis and the targets of its links.
fn markdown_text(cell: &str) -> String {
    let mut text = String::new();
    let mut rest = cell;
    while let Some((before, after)) = rest.split_once("](") {
        text.push_str(before);
        rest = after.split_once(')').map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    collapse_whitespace(&text.replace(['[', '*', '^', '\\', '`'], ""))
}

struct Columns {
    servicing: Option<usize>,
    /// Of the calendar of hotpatches alone.
    hotpatch: Option<usize>,
    kind: usize,
    date: usize,
    build: usize,
    kb: usize,
}

impl Columns {
    /// Returns `None` for another kind of table.
    fn read(header: &[String]) -> Option<Self> {
        let cells: Vec<String> = header
            .iter()
            .map(|cell| cell.to_ascii_lowercase())
            .collect();
        let find = |words: &str| cells.iter().position(|cell| cell.contains(words));
        // "Update" has a date in it.
        let is_date = |cell: &String| cell.replace("update", "").contains("date");
        Some(Self {
            servicing: find("servicing"),
            hotpatch: cells.iter().position(|cell| cell == "type"),
            kind: find("update type")?,
            date: cells.iter().position(is_date)?,
            build: find("build")?,
            kb: find("kb")?,
        })
    }

    /// Returns true if a row is empty, or a future month of the calendar.
    fn is_future(&self, row: &[String]) -> bool {
        let is_empty = |column: usize| row.get(column).is_none_or(String::is_empty);
        row.iter().all(String::is_empty)
            || (self.hotpatch.is_some() && is_empty(self.build) && is_empty(self.kb))
    }

    fn update(&self, row: &[String]) -> Result<Update, &'static str> {
        let cell = |column: usize| row.get(column).map_or("", String::as_str);
        let version: WindowsVersion = cell(self.build).parse().map_err(|_| "expected a build")?;
        let revision = version.revision.ok_or("a build without a revision")?;
        let article = cell(self.kb);
        let kb = match article.split_whitespace().next() {
            // An initial release has no article; a future month of the calendar has none yet.
            None | Some("-" | "N/A" | "n/a") if self.hotpatch.is_none() => None,
            None | Some("-" | "N/A" | "n/a") => return Err("no KB article"),
            Some(first) => Some(first.parse().map_err(|_| "no KB article")?),
        };
        let also = self.servicing.or(self.hotpatch).map_or("", cell);
        Ok(Update {
            build: version.build,
            revision,
            kb,
            date: read_date(cell(self.date)).ok_or("no date")?,
            kind: read_kind(cell(self.kind), also).ok_or("no type of update")?,
        })
    }
}

/// `2024-09 B`, `2025-01 OOB`, `2025-02 B` under *LTSC • Hotpatch* or of the type *Hotpatch*.
fn read_kind(kind: &str, also: &str) -> Option<UpdateKind> {
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_ascii_alphanumeric())
            .map(str::to_ascii_lowercase)
            .collect()
    };
    let has = |word: &str| words(kind).iter().any(|own| own == word);
    if has("hotpatch") || words(also).iter().any(|own| own == "hotpatch") {
        Some(UpdateKind::Hotpatch)
    } else if has("preview") {
        Some(UpdateKind::Preview)
    } else if has("oob") || (has("out") && has("band")) {
        Some(UpdateKind::OutOfBand)
    } else {
        ('A'..='E')
            .find(|letter| has(&letter.to_ascii_lowercase().to_string()))
            .map(UpdateKind::Week)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The page's shape: an overview, a history with a hotpatch, and one without servicing options.
    const PAGE: &str = include_str!("../tests/data/windows-server-release-info.html");

    /// The page as Markdown, with the calendar of hotpatches.
    const MARKDOWN: &str = include_str!("../tests/data/windows-server-release-info.md");

    /// Known updates without the page's newest rows.
    fn known() -> Updates {
        let old = Updates::embedded().all().iter();
        let before = "2026-09-01".parse().unwrap();
        Updates::parse("")
            .unwrap()
            .with(old.filter(|update| update.date < before).copied())
    }

    fn read(page: &str) -> Result<ReleaseInfo, String> {
        read_release_info(page, &known())
    }

    fn row_of(updates: &Updates, build: u32, revision: u32) -> String {
        let update = updates.exact(WindowsVersion::new(build, revision)).unwrap();
        let kb = update.kb.map(|kb| kb.to_string());
        let kb = kb.as_deref().unwrap_or("-");
        format!("{kb} {} {}", update.date, update.kind)
    }

    #[test]
    fn new_rows_join_the_known_ones() {
        let ReleaseInfo { updates, unread } = read(PAGE).unwrap();
        assert_eq!(unread, [""; 0]);
        assert_eq!(row_of(&updates, 17763, 9233), "KB5131001 2026-09-08 B");
        let hotpatch = row_of(&updates, 26100, 33401);
        assert_eq!(hotpatch, "KB5131010 2026-09-08 hotpatch");
        assert_eq!(row_of(&updates, 26100, 33450), "KB5131011 2026-09-21 OOB");
        assert_eq!(row_of(&updates, 29500, 1), "- 2026-10-01 A");
    }

    #[test]
    fn the_calendar_tells_hotpatches_from_baselines_and_from_months_to_come() {
        let before = known();
        for page in [PAGE, MARKDOWN] {
            let ReleaseInfo { updates, unread } = read(page).unwrap();
            assert_eq!(unread, [""; 0]);
            assert_eq!(updates.all().len(), before.all().len() + 6);
            // In the calendar alone.
            let hotpatch = row_of(&updates, 20348, 5550);
            assert_eq!(hotpatch, "KB5131021 2026-09-08 hotpatch");
            // A baseline is the update of the release's own table, once.
            assert_eq!(row_of(&updates, 26100, 33500), "KB5131031 2026-10-13 B");
            let baseline = updates.by_kb("KB5131031".parse().unwrap());
            assert_eq!(baseline.count(), 1);
        }
        assert_eq!(read(PAGE).unwrap(), read(MARKDOWN).unwrap());
    }

    #[test]
    fn markdown_is_read_through_its_marks() {
        assert_eq!(markdown_text(" [KB1](https://a/b) "), "KB1");
        assert_eq!(markdown_text("2024.08 B^\\*^"), "2024.08 B");
        assert_eq!(markdown_text("**a** [b"), "a b");
        assert_eq!(markdown_text("[a](b"), "a");
    }

    #[test]
    fn what_is_known_is_the_floor() {
        let page = PAGE.replace("KB4549949", "KB9999999");
        let updates = read(&page).unwrap().updates;
        assert_eq!(row_of(&updates, 17763, 1158), "KB4549949 2020-04-14 B");
        let known = known();
        let mut known = known.all().iter();
        assert!(known.all(|update| updates.all().contains(update)));
    }

    #[test]
    fn a_page_of_another_shape_is_refused() {
        for html in [
            "",
            "<h1>We moved</h1>",
            "<table><tr><th>Build</th><th>Date</th></tr><tr><td>1</td></tr></table>",
            "<table><tr><th>Update type</th><th>Date</th><th>Build</th><th>KB article</th></tr></table>",
            "| Build | Date |\n| --- | --- |\n| 1 | 2 |",
        ] {
            assert_eq!(read(html), Err(NO_TABLE.to_owned()), "{html}");
        }
        let row = "|Update type|Date|Build|KB|\n|---|---|---|---|\n|B|soon|17763.1|KB4549949|";
        let error = read(row).unwrap_err();
        assert!(error.contains("no date in"), "{error}");
    }

    #[test]
    fn a_row_that_cannot_be_read_is_left_out_and_quoted() {
        for (from, to, problem) in [
            ("17763.9233", "17763", "a build without a revision"),
            ("17763.9233", "soon", "expected a build"),
            ("KB5131001", "KB51", "no KB article"),
            (
                "2026-09-08</td><td>17763",
                "yesterday</td><td>17763",
                "no date",
            ),
            (
                "2026-09 B</td><td>2026-09-08</td><td>17763",
                "2026-09</td><td>2026-09-08</td><td>17763",
                "no type of update",
            ),
        ] {
            let page = PAGE.replace(from, to);
            assert_ne!(page, PAGE, "{from}");
            let ReleaseInfo { updates, unread } = read(&page).unwrap();
            assert!(unread[0].contains(problem), "{unread:?}");
            assert_eq!(unread.len(), 1, "{unread:?}");
            assert_eq!(row_of(&updates, 26100, 33450), "KB5131011 2026-09-21 OOB");
            assert_eq!(updates.exact(WindowsVersion::new(17763, 9233)), None);
        }
    }

    #[test]
    fn of_two_articles_for_one_new_version_the_first_one_counts() {
        let ReleaseInfo { updates, unread } =
            read(&PAGE.replace("26100.33450", "26100.33401")).unwrap();
        let problem = "another article for the same build in";
        assert!(unread[0].starts_with(problem), "{unread:?}");
        assert_eq!(row_of(&updates, 26100, 33401), "KB5131011 2026-09-21 OOB");
    }

    #[test]
    fn kinds_are_read_from_type_and_servicing_option() {
        for (kind, servicing, expected) in [
            ("2024-09 B", "LTSC", "B"),
            ("2025-01 OOB", "LTSC", "OOB"),
            ("2025-01 Preview", "", "preview"),
            ("2025-02 B", "LTSC • Hotpatch", "hotpatch"),
            ("Out-of-band", "", "OOB"),
            ("2024.08 B *", "Baseline (Restart)", "B"),
            ("2025.02 B", "Hotpatch", "hotpatch"),
        ] {
            let found = read_kind(kind, servicing).unwrap();
            assert_eq!(found.to_string(), expected, "{kind}, {servicing}");
        }
        assert!(read_kind("Baseline", "LTSC").is_none());
    }
}
