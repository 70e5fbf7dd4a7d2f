//! One page of the catalog's search results, read by the ids that its elements carry; and the tables
//! of any page.
//!
//! A row's id is `GUID_R0`, its cells' are `GUID_C1_R0`; the header's cells (`header_C1`) identify
//! the columns. So columns may be added or moved, and elements without an id are ignored.

use jiff::civil::Date;
use serde::Serialize;

use super::date::read_date;
use super::digests::DigestsError;
use super::html::{Tag, Visitor, collapse_whitespace, walk};

/// One update that a search found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SearchResult {
    /// Its title, such as `2020-04 Cumulative Update for Windows Server 2019 for x64-based Systems
    /// (KB4549949)`.
    pub title: String,
    /// The products that it is for.
    pub products: String,
    /// `Security Updates`, `Updates`, …
    pub(crate) classification: String,
    /// Date of its last change, if the page's spelling is known.
    pub date: Option<Date>,
    /// Version; only drivers have one.
    pub version: Option<String>,
    /// Size in bytes, if listed.
    pub size: Option<u64>,
    /// Identifier in the catalog, a GUID.
    pub update_id: String,
}

/// Content of a result page; empty if nothing was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Page {
    /// Updates in the page's order.
    pub hits: Vec<SearchResult>,
    /// The hidden fields of the form that requests the next page, if any.
    pub next: Option<Vec<(String, String)>>,
}

/// Error of reading a page of the catalog.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PageError {
    /// The catalog's error page.
    #[error("the catalog reports an error: {0}")]
    Reported(String),
    /// It does not have what it should.
    #[error("{0}")]
    Invalid(String),
    /// Digests that cannot be read, or that contradict each other.
    #[error("invalid digests of {name} in the catalog")]
    Digests { name: String, source: DigestsError },
}

impl PageError {
    /// Neither results nor the message that there are none.
    fn no_results(problem: &str) -> Self {
        let what = "the response is not a page of search results";
        Self::Invalid(format!("{what}: {problem}"))
    }
}

const TABLE: &str = "ctl00_catalogBody_updateMatches";
const NOTHING: &str = "ctl00_catalogBody_noResultText";
const NEXT: &str = "ctl00_catalogBody_nextPageLinkText";
const NEXT_TARGET: &str = "ctl00$catalogBody$nextPageLinkText";
/// Ids of elements whose presence matters.
const MARKERS: [&str; 3] = [TABLE, NOTHING, NEXT];
const ERROR: &str = "errorPageDisplayedError";

/// Reads a page of search results.
pub(crate) fn read_page(html: &str) -> Result<Page, PageError> {
    let parser = PageParser {
        wanted: Some(TABLE),
        ..PageParser::default()
    };
    let seen = walk(html, parser);
    if let Some(words) = seen.error {
        return Err(PageError::Reported(shorten(&collapse_whitespace(&words))));
    }
    if !seen.ids.contains(&TABLE) {
        return if seen.ids.contains(&NOTHING) {
            Ok(Page::default())
        } else {
            Err(PageError::no_results("it has no table of updates"))
        };
    }
    let rows: Vec<Row> = seen.tables.into_iter().flatten().collect();
    let columns = columns(&rows);
    let hits: Vec<SearchResult> = rows.iter().filter_map(|row| hit(row, columns)).collect();
    if hits.is_empty() {
        return Err(PageError::no_results("no row of its table is an update"));
    }
    let next = seen.ids.contains(&NEXT).then(|| postback(seen.fields));
    Ok(Page { hits, next })
}

/// The texts of every table's cells, row by row.
pub(super) fn html_tables(html: &str) -> Vec<Vec<Vec<String>>> {
    let texts = |row: &Row| -> Vec<String> {
        let cells = row.cells.iter();
        cells.map(|cell| collapse_whitespace(&cell.text)).collect()
    };
    let tables = walk(html, PageParser::default()).tables.into_iter();
    tables
        .map(|rows| rows.iter().map(texts).collect())
        .collect()
}

/// The catalog's error message, if this is its error page.
pub(super) fn reported_error(html: &str) -> Option<String> {
    walk(html, PageParser::default())
        .error
        .map(|words| shorten(&collapse_whitespace(&words)))
}

fn shorten(text: &str) -> String {
    let words = text
        .chars()
        .filter(|c| !c.is_control())
        .take(200)
        .collect::<String>();
    if words.is_empty() {
        "no reason given".to_owned()
    } else {
        words
    }
}

fn postback(mut fields: Vec<(String, String)>) -> Vec<(String, String)> {
    for (name, value) in [("__EVENTTARGET", NEXT_TARGET), ("__EVENTARGUMENT", "")] {
        fields.retain(|(known, _)| known != name);
        fields.push((name.to_owned(), value.to_owned()));
    }
    fields
}

/// Columns: the end of the id of a header's sort link, which is the same in every language, and the
/// header's text for pages without such links.
const COLUMNS: [(&str, &str); 6] = [
    ("_titleHeaderLink", "Title"),
    ("_productsHeaderLink", "Products"),
    ("_classHeaderLink", "Classification"),
    ("_dateHeaderLink", "Last Updated"),
    ("_versionHeaderLink", "Version"),
    ("_sizeHeaderLink", "Size"),
];

/// Cell numbers of the [`COLUMNS`].
fn columns(rows: &[Row]) -> [Option<u32>; 6] {
    let mut columns = [None; 6];
    for cell in rows.iter().flat_map(|row| &row.cells) {
        let number = cell.id.strip_prefix("header_C");
        let is = |(link, word): &(&str, &str)| {
            cell.parts.iter().any(|part| part.id.ends_with(link))
                || collapse_whitespace(&cell.text).eq_ignore_ascii_case(word)
        };
        if let Some(number) = number.and_then(|number| number.parse().ok())
            && let Some(column) = COLUMNS.iter().position(is)
        {
            columns[column] = Some(number);
        }
    }
    columns
}

fn hit(row: &Row, columns: [Option<u32>; 6]) -> Option<SearchResult> {
    let (update_id, _) = row.id.rsplit_once("_R")?;
    if !is_guid(update_id) {
        return None;
    }
    let part = |suffix: &str| {
        let mut texts = row.cells.iter().flat_map(|cell| {
            let parts = cell.parts.iter();
            parts
                .filter(move |part| part.id.strip_prefix(update_id) == Some(suffix))
                .map(move |part| collapse_whitespace(cell.text_of(part)))
        });
        texts.find(|text| !text.is_empty())
    };
    let column = |number: Option<u32>| {
        let own = format!("{update_id}_C{}_R", number?);
        let cell = row.cells.iter().find(|cell| cell.id.starts_with(&own))?;
        Some(collapse_whitespace(&cell.text)).filter(|text| !text.is_empty())
    };
    let [title, products, classification, date, version, size] = columns;
    Some(SearchResult {
        title: part("_link").or_else(|| column(title))?,
        products: column(products).unwrap_or_default(),
        classification: column(classification).unwrap_or_default(),
        date: column(date).and_then(|text| read_date(&text)),
        version: column(version).filter(|text| !text.eq_ignore_ascii_case("n/a")),
        size: part("_originalSize")
            .or_else(|| column(size))
            .and_then(|text| text.parse().ok()),
        update_id: update_id.to_ascii_lowercase(),
    })
}

/// `d001ca72-ce16-4700-9a6d-b2bb28974002`.
pub(super) fn is_guid(text: &str) -> bool {
    text.split('-').map(str::len).eq([8, 4, 4, 4, 12])
        && text
            .bytes()
            .all(|byte| byte == b'-' || byte.is_ascii_hexdigit())
}

struct Row {
    id: String,
    cells: Vec<Cell>,
}

struct Cell {
    id: String,
    text: String,
    parts: Vec<CellElement>,
}

/// An element with an id inside a cell.
struct CellElement {
    id: String,
    tag: String,
    /// Place of its text in the cell's; without an end while the element is open.
    start: usize,
    end: Option<usize>,
}

impl Cell {
    fn text_of(&self, part: &CellElement) -> &str {
        &self.text[part.start..part.end.unwrap_or(self.text.len())]
    }
}

/// An end tag belongs to one of this many last elements of its cell, so that a page with many open
/// elements is read in linear time.
const MOST_OPEN: usize = 100;

/// Visitor that collects rows, cells and form fields.
#[derive(Default)]
struct PageParser {
    /// Id of the tables to read; none for all of them.
    wanted: Option<&'static str>,
    /// Depth of nested tables, counted from one that is read.
    depth: usize,
    /// Those of [`MARKERS`] that are present.
    ids: Vec<&'static str>,
    /// The rows of each table.
    tables: Vec<Vec<Row>>,
    in_cell: bool,
    in_form: bool,
    fields: Vec<(String, String)>,
    error: Option<String>,
    /// Elements open inside the error's.
    error_depth: Option<usize>,
}

impl Visitor for PageParser {
    fn open(&mut self, tag: &Tag) {
        let id = tag.attribute("id").unwrap_or_default();
        if let (Some(depth), Some(words)) = (&mut self.error_depth, &mut self.error) {
            *depth += usize::from(!tag.is_self_closing() && !is_void(tag.name()));
            words.push(' ');
        }
        self.ids
            .extend(MARKERS.iter().filter(|marker| **marker == id));
        if id == ERROR {
            self.error.get_or_insert_default();
            self.error_depth = Some(1);
        }
        match tag.name() {
            "form" => self.in_form = id == "aspnetForm",
            "input" if self.in_form => self.field(tag),
            "table" if self.depth > 0 => self.depth += 1,
            "table" if self.wanted.is_none_or(|wanted| wanted == id) => {
                self.depth = 1;
                self.tables.push(Vec::new());
            }
            "tr" if self.depth == 1 => {
                self.in_cell = false;
                if let Some(table) = self.tables.last_mut() {
                    table.push(Row {
                        id: id.to_owned(),
                        cells: Vec::new(),
                    });
                }
            }
            "td" | "th" if self.depth == 1 => {
                let cell = Cell {
                    id: id.to_owned(),
                    text: String::new(),
                    parts: Vec::new(),
                };
                if let Some(row) = self.row() {
                    row.cells.push(cell);
                    self.in_cell = true;
                }
            }
            name if !id.is_empty() && !is_void(name) => {
                if let Some(cell) = self.cell() {
                    cell.parts.push(CellElement {
                        id: id.to_owned(),
                        tag: name.to_owned(),
                        start: cell.text.len(),
                        end: None,
                    });
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        if let Some(depth) = self.error_depth {
            self.error_depth = depth.checked_sub(1).filter(|left| *left > 0);
        }
        match name {
            "form" => self.in_form = false,
            "table" => self.depth = self.depth.saturating_sub(1),
            "td" | "th" | "tr" if self.depth == 1 => self.in_cell = false,
            _ => {
                if let Some(cell) = self.cell() {
                    let mut last = cell.parts.iter_mut().rev().take(MOST_OPEN);
                    if let Some(part) = last.find(|part| part.end.is_none() && part.tag == name) {
                        part.end = Some(cell.text.len());
                    }
                }
            }
        }
    }

    fn text(&mut self, text: &str) {
        if self.error_depth.is_some()
            && let Some(words) = &mut self.error
        {
            words.push_str(text);
        }
        if let Some(cell) = self.cell() {
            cell.text.push_str(text);
        }
    }
}

impl PageParser {
    fn cell(&mut self) -> Option<&mut Cell> {
        if self.depth == 0 || !self.in_cell {
            return None;
        }
        self.row()?.cells.last_mut()
    }

    fn row(&mut self) -> Option<&mut Row> {
        self.tables.last_mut()?.last_mut()
    }

    fn field(&mut self, tag: &Tag) {
        let hidden = tag
            .attribute("type")
            .is_some_and(|kind| kind.eq_ignore_ascii_case("hidden"));
        if let Some(name) = tag.attribute("name").filter(|_| hidden) {
            let value = tag.attribute("value").unwrap_or_default();
            self.fields.push((name.to_owned(), value.to_owned()));
        }
    }
}

/// Elements that have no end tag.
const VOID: [&str; 13] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
];

fn is_void(name: &str) -> bool {
    VOID.contains(&name)
}

#[cfg(test)]
mod tests;
