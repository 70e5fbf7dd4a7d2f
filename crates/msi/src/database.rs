//! Tables of a package, as its compound file stores them.
//!
//! The `msi` crate reads them too, but panics on tables that do not match their declaration, and
//! the program aborts on a panic. So only the compound file comes from a library.

mod transform;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::io::{Read, Seek};
use std::sync::{Arc, OnceLock};

use encoding_rs::Encoding;

use super::error::MsiError;

/// Maximum size of a table or of the strings.
const STREAM_LIMIT: u64 = 256 << 20;
/// Maximum number of cells in all tables.
const CELL_LIMIT: usize = 32 << 20;
/// Maximum number of columns of a table.
const COLUMN_LIMIT: usize = 64;

const STRING: i32 = 0x0800;
const NULLABLE: i32 = 0x1000;
const KEY: i32 = 0x2000;
/// The type of a column whose cells are streams.
const BINARY: i32 = 0x0900;

pub(crate) type Compound<R> = cfb::CompoundFile<R>;

/// The tables of a package.
#[derive(Debug, Clone, Default)]
pub(crate) struct Database {
    tables: BTreeMap<String, Table>,
    code_page: u32,
    /// Icons and binaries of transforms, and certificates, by the name of their stream.
    streams: BTreeMap<String, Vec<u8>>,
}

#[derive(Debug, Clone, Default)]
struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    /// Places of the rows by the text of their first column, computed on first use.
    places: OnceLock<HashMap<Arc<str>, usize>>,
}

#[derive(Debug, Clone)]
struct Column {
    name: String,
    kind: i32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Cell {
    Null,
    Number(i32),
    Text(Arc<str>),
}

/// Row of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    columns: &'a [Column],
    cells: &'a [Cell],
}

impl<'a> Row<'a> {
    fn cell(&self, column: &str) -> Option<&'a Cell> {
        let index = self.columns.iter().position(|it| it.name == column)?;
        self.cells.get(index)
    }

    /// The text of a column; empty if it is null, a number or missing.
    pub(crate) fn text(&self, column: &str) -> &'a str {
        match self.cell(column) {
            Some(Cell::Text(text)) => text,
            _ => "",
        }
    }

    /// The text of a column, if it is not null.
    pub(crate) fn optional(&self, column: &str) -> Option<&'a str> {
        Some(self.text(column)).filter(|text| !text.is_empty())
    }

    /// The number of a column, if it is not null.
    pub(crate) fn number(&self, column: &str) -> Option<i32> {
        match self.cell(column) {
            Some(Cell::Number(number)) => Some(*number),
            _ => None,
        }
    }

    /// The flags in a column; none if it is null.
    pub(crate) fn flags(&self, column: &str) -> u32 {
        self.number(column).unwrap_or_default().cast_unsigned()
    }
}

impl Database {
    /// Reads all tables.
    pub(crate) fn read<R: Read + Seek>(file: &mut Compound<R>) -> Result<Self, MsiError> {
        let mut strings = Strings::read(file, "")?;
        let mut database = Self {
            code_page: strings.code_page,
            ..Self::default()
        };
        let names = strings.table(file, TABLES, columns_of_tables())?;
        let declared = strings.table(file, COLUMNS, columns_of_columns())?;
        let mut columns: BTreeMap<&str, BTreeMap<i32, Column>> = BTreeMap::new();
        for row in declared.rows() {
            let (Some(number), Some(kind)) = (row.number("Number"), row.number("Type")) else {
                return Err(MsiError::damaged("a column has no number or type"));
            };
            let own = Column::new(row.text("Name"), kind);
            let table = columns.entry(row.text("Table")).or_default();
            table.insert(number, own);
        }
        for row in names.rows() {
            let name = row.text("Name");
            let columns = columns.remove(name).unwrap_or_default();
            let columns: Vec<Column> = columns.into_values().collect();
            if columns.len() > COLUMN_LIMIT {
                return Err(MsiError::TooLarge(format!(
                    "table {name:?} has {} columns",
                    columns.len()
                )));
            }
            let table = strings.table(file, name, columns)?;
            database.tables.insert(name.to_owned(), table);
        }
        Ok(database)
    }

    /// The stream of an icon of a transform, or of a certificate.
    pub(crate) fn stream(&self, name: &str) -> Option<&[u8]> {
        self.streams.get(name).map(Vec::as_slice)
    }

    /// Keeps streams of the package; those of transforms replace them.
    pub(crate) fn keep_streams<R: Read + Seek>(
        &mut self,
        file: &mut Compound<R>,
        names: Vec<String>,
    ) -> Result<(), MsiError> {
        for name in names {
            if let Entry::Vacant(entry) = self.streams.entry(name)
                && let Some(bytes) = read_stream(file, &stream_name(entry.key(), false))?
            {
                entry.insert(bytes);
            }
        }
        Ok(())
    }

    /// The rows of a table; none if it is missing.
    pub(crate) fn rows(&self, table: &str) -> impl Iterator<Item = Row<'_>> + Clone {
        self.tables.get(table).into_iter().flat_map(Table::rows)
    }

    /// The row whose column has a text.
    pub(crate) fn find(&self, table: &str, column: &str, text: &str) -> Option<Row<'_>> {
        self.tables.get(table)?.find(column, text)
    }

    /// The value of a property in its table; empty if it is missing.
    pub(crate) fn property(&self, name: &str) -> &str {
        let row = self.find("Property", "Property", name);
        row.map_or("", |row| row.text("Value"))
    }

    /// True if a table exists and is not empty.
    pub(crate) fn has_rows(&self, table: &str) -> bool {
        self.rows(table).next().is_some()
    }
}

impl Table {
    fn rows(&self) -> impl Iterator<Item = Row<'_>> + Clone {
        self.rows.iter().map(move |cells| self.row(cells))
    }

    fn row<'a>(&'a self, cells: &'a [Cell]) -> Row<'a> {
        Row {
            columns: &self.columns,
            cells,
        }
    }

    fn find(&self, column: &str, text: &str) -> Option<Row<'_>> {
        // The key of most tables.
        let is_first = self.columns.first().is_some_and(|it| it.name == column);
        if !is_first {
            return self.rows().find(|row| row.text(column) == text);
        }
        let places = self.places.get_or_init(|| {
            // The first of equal ones replaces the others.
            let rows = self.rows.iter().enumerate().rev();
            rows.map(|(place, cells)| match cells.first() {
                Some(Cell::Text(text)) => (Arc::clone(text), place),
                _ => (Arc::default(), place),
            })
            .collect()
        });
        let cells = self.rows.get(*places.get(text)?)?;
        Some(self.row(cells))
    }
}

impl Column {
    fn new(name: &str, kind: i32) -> Self {
        Self {
            name: name.to_owned(),
            kind,
        }
    }

    fn is_key(&self) -> bool {
        self.kind & KEY != 0
    }
}

/// The tables that declare the others.
const TABLES: &str = "_Tables";
const COLUMNS: &str = "_Columns";

/// The type of a column with names.
const NAME: i32 = STRING | 0x0140;

fn columns_of_tables() -> Vec<Column> {
    vec![Column::new("Name", NAME | KEY)]
}

fn columns_of_columns() -> Vec<Column> {
    vec![
        Column::new("Table", NAME | KEY),
        Column::new("Number", KEY | 0x0102),
        Column::new("Name", NAME),
        Column::new("Type", 0x0102),
    ]
}

/// The strings of all tables.
struct Strings {
    /// Storage of the tables: empty for the file itself.
    folder: String,
    code_page: u32,
    texts: Vec<Option<Arc<str>>>,
    /// Size of a reference to a string.
    reference: usize,
    /// Number of cells that may still be read.
    cells: usize,
}

impl Strings {
    fn read<R: Read + Seek>(file: &mut Compound<R>, folder: &str) -> Result<Self, MsiError> {
        let missing = || MsiError::damaged("it has no tables");
        let mut stream = |name| {
            let path = format!("{folder}{}", stream_name(name, true));
            read_stream(file, &path)?.ok_or_else(missing)
        };
        let pool = stream("_StringPool")?;
        let data = stream("_StringData")?;
        let (entries, _) = pool.as_chunks::<4>();
        let Some((header, entries)) = entries.split_first() else {
            return Err(missing());
        };
        let header = u32::from_le_bytes(*header);
        let code_page = header & 0x7fff_ffff;
        let encoding = encoding(code_page)?;
        let mut texts = vec![None];
        let mut rest = data.as_slice();
        let mut entries = entries.iter();
        while let Some(&[l0, l1, r0, r1]) = entries.next() {
            let mut length = u32::from(u16::from_le_bytes([l0, l1]));
            let uses = u16::from_le_bytes([r0, r1]);
            if length == 0 && uses > 0 {
                let long = entries.next().copied();
                length =
                    u32::from_le_bytes(long.ok_or_else(|| MsiError::damaged("a string ends"))?);
            }
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let Some((bytes, after)) = rest.split_at_checked(length) else {
                return Err(MsiError::damaged("a string reaches beyond the strings"));
            };
            rest = after;
            texts.push(Some(encoding.decode_without_bom_handling(bytes).0.into()));
        }
        Ok(Self {
            folder: folder.to_owned(),
            code_page,
            texts,
            reference: if header & 0x8000_0000 == 0 { 2 } else { 3 },
            cells: CELL_LIMIT,
        })
    }

    /// Reads a table; an empty one has no stream.
    fn table<R: Read + Seek>(
        &mut self,
        file: &mut Compound<R>,
        name: &str,
        columns: Vec<Column>,
    ) -> Result<Table, MsiError> {
        let data = self.stream(file, name)?;
        let widths: Vec<usize> = columns.iter().map(|it| self.width(it.kind)).collect();
        let width: usize = widths.iter().sum();
        let count = data.len().checked_div(width).unwrap_or_default();
        self.count(count.saturating_mul(columns.len()))?;
        let mut rows = vec![Vec::with_capacity(columns.len()); count];
        let mut rest = data.as_slice();
        // A table is stored by columns.
        for (column, width) in columns.iter().zip(widths) {
            for row in &mut rows {
                let (cell, after) = rest.split_at_checked(width).unwrap_or((&[], &[]));
                rest = after;
                row.push(self.cell(cell, column.kind)?);
            }
        }
        Ok(Table {
            columns,
            rows,
            places: OnceLock::new(),
        })
    }

    /// The stream of a table; an empty one has none.
    fn stream<R: Read + Seek>(
        &self,
        file: &mut Compound<R>,
        table: &str,
    ) -> Result<Vec<u8>, MsiError> {
        let path = format!("{}{}", self.folder, stream_name(table, true));
        Ok(read_stream(file, &path)?.unwrap_or_default())
    }

    /// Counts cells that are read.
    fn count(&mut self, cells: usize) -> Result<(), MsiError> {
        self.cells = self.cells.checked_sub(cells).ok_or_else(|| {
            MsiError::TooLarge(format!("the tables have more than {CELL_LIMIT} cells"))
        })?;
        Ok(())
    }

    fn width(&self, kind: i32) -> usize {
        if kind & !NULLABLE == BINARY {
            2
        } else if kind & STRING != 0 {
            self.reference
        } else if kind & 0xff <= 2 {
            2
        } else {
            4
        }
    }

    fn cell(&self, bytes: &[u8], kind: i32) -> Result<Cell, MsiError> {
        let raw = bytes
            .iter()
            .rev()
            .fold(0_u32, |all, byte| all << 8 | u32::from(*byte));
        if raw == 0 {
            return Ok(Cell::Null);
        }
        if kind & STRING != 0 && kind & !NULLABLE != BINARY {
            let text = usize::try_from(raw).ok().and_then(|at| self.texts.get(at));
            return match text {
                Some(Some(text)) => Ok(Cell::Text(Arc::clone(text))),
                _ => Err(MsiError::damaged(
                    "a cell names a string that does not exist",
                )),
            };
        }
        // Numbers are stored with an inverted sign.
        let number = if bytes.len() == 2 {
            raw.cast_signed() - 0x8000
        } else {
            (raw ^ 0x8000_0000).cast_signed()
        };
        Ok(Cell::Number(number))
    }
}

/// Reads a stream, if it exists.
pub(crate) fn read_stream<R: Read + Seek>(
    file: &mut Compound<R>,
    name: &str,
) -> Result<Option<Vec<u8>>, MsiError> {
    if !file.is_stream(name) {
        return Ok(None);
    }
    let mut stream = file.open_stream(name)?;
    let length = stream.len();
    if length > STREAM_LIMIT {
        return Err(MsiError::TooLarge(format!("a table has {length} bytes")));
    }
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Name of a stream in the compound file: two characters of base 64 are one.
pub(crate) fn stream_name(name: &str, is_table: bool) -> String {
    let mut encoded = String::from("/");
    if is_table {
        encoded.push('\u{4840}');
    }
    let mut characters = name.chars().peekable();
    while let Some(character) = characters.next() {
        let Some(first) = base64(character) else {
            encoded.push(character);
            continue;
        };
        let unit = match characters
            .next_if(|next| base64(*next).is_some())
            .and_then(base64)
        {
            Some(second) => 0x3800 + (second << 6) + first,
            None => 0x4800 + first,
        };
        encoded.extend(char::from_u32(unit));
    }
    encoded
}

/// The name of a stream that is not a table's.
fn decoded_name(encoded: &str) -> String {
    let mut name = String::new();
    for character in encoded.chars() {
        let digit = |value: u32| DIGITS.chars().nth(value as usize & 0x3f);
        match u32::from(character) {
            unit @ 0x3800..0x4800 => {
                name.extend(digit(unit - 0x3800));
                name.extend(digit((unit - 0x3800) >> 6));
            }
            unit @ 0x4800..0x4840 => name.extend(digit(unit - 0x4800)),
            _ => name.push(character),
        }
    }
    name
}

const DIGITS: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._";

fn base64(character: char) -> Option<u32> {
    DIGITS.find(character).and_then(|at| u32::try_from(at).ok())
}

/// The encoding of a code page. Neutral packages have none, and only ASCII.
fn encoding(code_page: u32) -> Result<&'static Encoding, MsiError> {
    let label = match code_page {
        0 | 20127 => "windows-1252",
        932 => "shift_jis",
        936 => "gbk",
        950 => "big5",
        65001 => "utf-8",
        28591 => "iso-8859-1",
        page => &format!("windows-{page}"),
    };
    let unsupported = || MsiError::unsupported(format!("unsupported code page {code_page}"));
    Encoding::for_label(label.as_bytes()).ok_or_else(unsupported)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn rows_of_a_long_table_are_found_at_once() {
        let names = || (0..60_000).map(|number| format!("row{number}"));
        let row = |name: String| vec![Cell::Text(name.as_str().into()), Cell::Text(name.into())];
        let mut table = Table {
            columns: vec![Column::new("Key", NAME | KEY), Column::new("Value", NAME)],
            rows: names().map(row).collect(),
            ..Table::default()
        };
        table.rows.push(vec![Cell::Null, Cell::Number(1)]);
        table.rows.push(vec![Cell::Text("row7".into()), Cell::Null]);
        let started = Instant::now();
        for name in names() {
            assert_eq!(table.find("Key", &name).unwrap().text("Value"), name);
        }
        assert!(started.elapsed() < Duration::from_secs(30));
        assert_eq!(table.find("Key", "").unwrap().number("Value"), Some(1));
        assert_eq!(table.find("Value", "row9").unwrap().text("Key"), "row9");
        assert!(table.find("Key", "none").is_none() && table.find("None", "a").is_none());
    }

    #[test]
    fn names_of_streams_are_packed() {
        assert_eq!(
            stream_name("_Columns", true),
            "/\u{4840}\u{3b3f}\u{43f2}\u{4438}\u{45b1}"
        );
        assert_eq!(
            stream_name("App.exe", false),
            "/\u{44ca}\u{47b3}\u{46e8}\u{4828}"
        );
        assert_eq!(stream_name("¿a?", false), "/¿\u{4824}?");
        for name in ["Icon.own", "Binary.a_b.1", "¿a?"] {
            assert_eq!(decoded_name(&stream_name(name, false)[1..]), name);
        }
    }
}
