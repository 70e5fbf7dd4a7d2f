//! Microsoft's page of Windows Server releases, from which the table of updates is refreshed.
//!
//! It has a table for each release, with the columns servicing option, update type, date, build and
//! KB article, and others besides, which are passed over.

use html5ever::tokenizer::Tag;

use super::date::read_date;
use super::html::{Visitor, squeezed, walk};
use crate::windows::update::{Kb, Update, UpdateKind, Updates};
use crate::windows::version::WindowsVersion;

/// The page that everybody reads.
pub const RELEASE_INFO: &str =
    "https://learn.microsoft.com/en-us/windows/release-health/windows-server-release-info";

/// A page from which no table can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReleaseInfoError {
    /// No table with the columns of a release's history.
    #[error("it has no table with the columns update type, date, build and KB article")]
    NoTable,
    /// A row that cannot be read.
    #[error("a row of its tables cannot be read: {problem} in {row:?}")]
    Row {
        /// Its cells.
        row: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// Two articles for one version.
    #[error("it has both {first} and {second} for {version}")]
    Contradiction {
        /// The version.
        version: WindowsVersion,
        /// One article.
        first: String,
        /// The other one.
        second: String,
    },
}

/// Reads every release's history and adds it to what is known; what is known stays as it is.
pub fn read_release_info(html: &str, known: &Updates) -> Result<Updates, ReleaseInfoError> {
    let tables = walk(html, Tables::default()).seen;
    let mut updates: Vec<Update> = Vec::new();
    let mut found = false;
    for table in &tables {
        let Some((header, rows)) = table.split_first() else {
            continue;
        };
        let Some(columns) = Columns::read(header) else {
            continue;
        };
        found = true;
        for row in rows
            .iter()
            .filter(|row| row.iter().any(|cell| !cell.is_empty()))
        {
            let update = columns
                .update(row)
                .map_err(|problem| ReleaseInfoError::Row {
                    row: row.join(" | ").chars().take(200).collect(),
                    problem,
                })?;
            updates.push(update);
        }
    }
    if !found || updates.is_empty() {
        return Err(ReleaseInfoError::NoTable);
    }
    let new: Vec<Update> = updates
        .into_iter()
        .filter(|update| known.exact(update.version()).is_none())
        .collect();
    for (index, update) in new.iter().enumerate() {
        let twin = new[..index]
            .iter()
            .find(|other| other.version() == update.version() && other.kb != update.kb);
        if let Some(twin) = twin {
            let shown = |kb: Option<Kb>| kb.map_or_else(|| "no KB".to_owned(), |kb| kb.to_string());
            return Err(ReleaseInfoError::Contradiction {
                version: update.version(),
                first: shown(twin.kb),
                second: shown(update.kb),
            });
        }
    }
    Ok(Updates::new(known.all().iter().copied().chain(new)))
}

/// Where a table has what.
struct Columns {
    servicing: Option<usize>,
    kind: usize,
    date: usize,
    build: usize,
    kb: usize,
}

impl Columns {
    /// `None` for a table of something else.
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
            kind: find("update type")?,
            date: cells.iter().position(is_date)?,
            build: find("build")?,
            kb: find("kb")?,
        })
    }

    fn update(&self, row: &[String]) -> Result<Update, &'static str> {
        let cell = |column: usize| row.get(column).map_or("", String::as_str);
        let version: WindowsVersion = cell(self.build).parse().map_err(|_| "no build")?;
        let revision = version.revision.ok_or("a build without a revision")?;
        let article = cell(self.kb);
        let kb = match article.split_whitespace().next() {
            None | Some("-" | "N/A" | "n/a") => None,
            Some(first) => Some(first.parse().map_err(|_| "no KB article")?),
        };
        let servicing = self.servicing.map_or("", cell);
        Ok(Update {
            build: version.build,
            revision,
            kb,
            date: read_date(cell(self.date)).ok_or("no date")?,
            kind: read_kind(cell(self.kind), servicing).ok_or("no type of update")?,
        })
    }
}

/// `2024-09 B`, `2025-01 OOB`, `2025-02 B` under *LTSC • Hotpatch*.
fn read_kind(kind: &str, servicing: &str) -> Option<UpdateKind> {
    let words = |text: &str| -> Vec<String> {
        text.split(|c: char| !c.is_ascii_alphanumeric())
            .map(str::to_ascii_lowercase)
            .collect()
    };
    let has = |word: &str| words(kind).iter().any(|own| own == word);
    if has("hotpatch") || words(servicing).iter().any(|own| own == "hotpatch") {
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

/// The texts of every table's cells.
#[derive(Default)]
struct Tables {
    seen: Vec<Vec<Vec<String>>>,
    depth: usize,
    in_cell: bool,
}

impl Visitor for Tables {
    fn open(&mut self, tag: &Tag) {
        match &*tag.name {
            "table" => {
                self.depth += 1;
                self.in_cell = false;
                if self.depth == 1 {
                    self.seen.push(Vec::new());
                }
            }
            "tr" if self.depth == 1 => {
                self.in_cell = false;
                if let Some(table) = self.seen.last_mut() {
                    table.push(Vec::new());
                }
            }
            "td" | "th" if self.depth == 1 => {
                if let Some(row) = self.row() {
                    row.push(String::new());
                    self.in_cell = true;
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "table" => {
                self.depth = self.depth.saturating_sub(1);
                self.in_cell = false;
            }
            "td" | "th" => {
                self.in_cell = false;
                if let Some(cell) = self.row().and_then(|row| row.last_mut()) {
                    *cell = squeezed(cell);
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.in_cell
            && self.depth == 1
            && let Some(cell) = self.row().and_then(|row| row.last_mut())
        {
            cell.push_str(text);
        }
    }
}

impl Tables {
    fn row(&mut self) -> Option<&mut Vec<String>> {
        self.seen.last_mut()?.last_mut()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    /// The page's shape: an overview, a history with a hotpatch, and one without servicing options.
    const PAGE: &str = include_str!("../../tests/data/windows-server-release-info.html");

    fn read(html: &str) -> Result<Updates, ReleaseInfoError> {
        read_release_info(html, Updates::embedded())
    }

    fn row_of(updates: &Updates, build: u32, revision: u32) -> String {
        let update = updates.exact(WindowsVersion::new(build, revision)).unwrap();
        let kb = update
            .kb
            .map_or_else(|| "-".to_owned(), |kb| kb.to_string());
        format!("{kb} {} {}", update.date, update.kind)
    }

    #[test]
    fn new_rows_join_the_known_ones() {
        let updates = read(PAGE).unwrap();
        assert_eq!(updates.all().len(), Updates::embedded().all().len() + 4);
        assert_eq!(row_of(&updates, 17763, 9233), "KB5131001 2026-09-08 B");
        assert_eq!(
            row_of(&updates, 26100, 33401),
            "KB5131010 2026-09-08 hotpatch"
        );
        assert_eq!(row_of(&updates, 26100, 33450), "KB5131011 2026-09-21 OOB");
        assert_eq!(row_of(&updates, 29500, 1), "- 2026-10-01 A");
    }

    #[test]
    fn what_is_known_is_the_floor() {
        let updates = read(&PAGE.replace("KB4549949", "KB9999999")).unwrap();
        assert_eq!(row_of(&updates, 17763, 1158), "KB4549949 2020-04-14 B");
        assert!(
            Updates::embedded()
                .all()
                .iter()
                .all(|update| updates.all().contains(update))
        );
    }

    #[test]
    fn a_page_of_another_shape_is_refused() {
        for html in [
            "",
            "<h1>We moved</h1>",
            "<table><tr><th>Build</th><th>Date</th></tr><tr><td>1</td></tr></table>",
            "<table><tr><th>Update type</th><th>Date</th><th>Build</th><th>KB article</th></tr></table>",
        ] {
            assert_eq!(read(html), Err(ReleaseInfoError::NoTable), "{html}");
        }
    }

    #[test]
    fn a_row_that_cannot_be_read_refuses_the_page_and_is_quoted() {
        for (from, to, problem) in [
            ("17763.9233", "17763", "a build without a revision"),
            ("17763.9233", "soon", "no build"),
            ("KB5131001", "KB51", "no KB article"),
            ("2026-09-08", "yesterday", "no date"),
            ("2026-09 B", "2026-09", "no type of update"),
        ] {
            let error = read(&PAGE.replace(from, to)).unwrap_err();
            assert!(error.to_string().contains(problem), "{error}");
        }
    }

    #[test]
    fn two_articles_for_one_new_version_refuse_the_page() {
        let error = read(&PAGE.replace("26100.33450", "26100.33401")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "it has both KB5131011 and KB5131010 for 26100.33401"
        );
    }

    #[test]
    fn kinds_are_read_from_type_and_servicing_option() {
        let kind = |kind, servicing| read_kind(kind, servicing).map(|kind| kind.to_string());
        assert_eq!(kind("2024-09 B", "LTSC").as_deref(), Some("B"));
        assert_eq!(kind("2025-01 OOB", "LTSC").as_deref(), Some("OOB"));
        assert_eq!(kind("2025-01 Preview", "").as_deref(), Some("preview"));
        assert_eq!(
            kind("2025-02 B", "LTSC • Hotpatch").as_deref(),
            Some("hotpatch")
        );
        assert_eq!(kind("Out-of-band", "").as_deref(), Some("OOB"));
        assert_eq!(kind("Baseline", "LTSC"), None);
    }
}
