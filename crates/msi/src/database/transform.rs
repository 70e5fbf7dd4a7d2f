//! Transforms: changes of a package's tables, in a file of their own or in a storage of the package.
//!
//! Each table has a stream of changed rows. A row begins with 16 bits. If the lowest is set, the row
//! is new, and the upper byte counts the columns that follow. Otherwise the keys follow and the
//! columns whose bits are set; without a bit, the row is deleted. The transform has strings of its
//! own. Its summary says which packages it is for, and which errors it accepts
//! (`MsiCreateTransformSummaryInfo`).

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{Read, Seek};

use super::{
    COLUMN_LIMIT, COLUMNS, Cell, Column, Compound, Database, MsiError, Strings, TABLES, Table,
    columns_of_columns, columns_of_tables, decoded_name, read_stream,
};
use crate::summary::Summary;

/// What a transform requires of the package.
const LANGUAGE: u32 = 0x1;
const PRODUCT: u32 = 0x2;
const PLATFORM: u32 = 0x4;
const UPGRADE_CODE: u32 = 0x800;
/// The number of a version's fields that are compared.
const FIELDS: [(u32, usize); 3] = [(0x20, 3), (0x10, 2), (0x8, 1)];
/// How the package's version is to compare with the transform's.
const RELATIONS: [(u32, &[Ordering], &str); 5] = [
    (0x40, &[Ordering::Less], "lower than"),
    (0x80, &[Ordering::Less, Ordering::Equal], "at most"),
    (0x100, &[Ordering::Equal], "equal to"),
    (0x200, &[Ordering::Equal, Ordering::Greater], "at least"),
    (0x400, &[Ordering::Greater], "higher than"),
];

/// Errors that a transform may accept.
const ADDS_EXISTING_ROW: u32 = 0x1;
const DELETES_MISSING_ROW: u32 = 0x2;
const ADDS_EXISTING_TABLE: u32 = 0x4;
const DELETES_MISSING_TABLE: u32 = 0x8;
const CHANGES_MISSING_ROW: u32 = 0x10;
const OTHER_CODE_PAGE: u32 = 0x20;

/// A changed row.
struct Change {
    kind: ChangeKind,
    /// The columns that it names.
    cells: Vec<Option<Cell>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangeKind {
    New,
    Changed,
    Deleted,
}

impl Database {
    /// Applies a transform: that of a file, or with `folder` one in a storage of the package.
    pub(crate) fn transform<R: Read + Seek>(
        &mut self,
        file: &mut Compound<R>,
        folder: &str,
        package: &Summary,
    ) -> Result<(), MsiError> {
        let summary = Summary::read(file, folder)?;
        self.check_package(&summary, package)?;
        let accepts = |error: u32| summary.conditions & error != 0;
        let mut strings = Strings::read(file, folder)?;
        let is_other = strings.code_page != self.code_page && strings.code_page != 0;
        if is_other && self.code_page != 0 && !accepts(OTHER_CODE_PAGE) {
            let (own, other) = (self.code_page, strings.code_page);
            let why = format!("it has the code page {other}, the package {own}");
            return Err(MsiError::Fails(why));
        }
        let (names, streams) = self.take_streams(file, folder)?;
        let changes = strings.changes(file, TABLES, &columns_of_tables())?;
        self.change_tables(&changes, &accepts)?;
        let changes = strings.changes(file, COLUMNS, &columns_of_columns())?;
        self.change_columns(&changes)?;
        for name in names {
            let Some(table) = self.tables.get_mut(&name) else {
                let why = format!("it changes the table {name:?}, which the package does not have");
                return Err(MsiError::Fails(why));
            };
            let changes = strings.changes(file, &name, &table.columns)?;
            table.change(&name, changes, &accepts)?;
        }
        // "BUG: Compressed files in CABINET in Transform Fails" in MAKEMSI's manual.
        let cabinets = self.rows("Media").map(|row| row.text("Cabinet"));
        let mut cabinets = cabinets.filter_map(|name| name.strip_prefix('#'));
        match cabinets.find(|name| streams.iter().any(|own| own == name)) {
            Some(name) => Err(MsiError::Unsupported(format!(
                "it contains the cabinet {name:?}, where Windows Installer does not find it: its \
                 place is beside the package, without # in the Media table"
            ))),
            None => Ok(()),
        }
    }

    /// Checks that the transform is for the package.
    fn check_package(&self, transform: &Summary, package: &Summary) -> Result<(), MsiError> {
        let requires = |flag: u32| transform.conditions >> 16 & flag != 0;
        let mut products = transform.package_code.split(';');
        let base = products.next().unwrap_or_default();
        let (code, version) = base.split_at_checked(38).unwrap_or((base, ""));
        let upgrade = products.nth(1).unwrap_or_default();
        let (own_code, own_upgrade) = (self.property("ProductCode"), self.property("UpgradeCode"));
        let (language, platform) = (transform.language(), transform.platform());
        for (flag, what, own, other) in [
            (PRODUCT, "product", own_code, code),
            (UPGRADE_CODE, "upgrade code", own_upgrade, upgrade),
            (LANGUAGE, "language", package.language(), language),
            (PLATFORM, "platform", package.platform(), platform),
        ] {
            if requires(flag) && !own.eq_ignore_ascii_case(other) {
                let why = format!("it is for the {what} {other}, the package has {own}");
                return Err(MsiError::Fails(why));
            }
        }
        let Some((_, fields)) = FIELDS.into_iter().find(|(flag, _)| requires(*flag)) else {
            return Ok(());
        };
        let own = self.property("ProductVersion");
        let order = version_fields(own, fields).cmp(&version_fields(version, fields));
        let mut relations = RELATIONS.iter().filter(|(flag, ..)| requires(*flag));
        match relations.find(|(_, orders, _)| !orders.contains(&order)) {
            Some((.., relation)) => Err(MsiError::Fails(format!(
                "it is for a version {relation} {version}, the package has {own}"
            ))),
            None => Ok(()),
        }
    }

    /// Names of the changed tables, and of other streams. Icons and binaries are kept.
    fn take_streams<R: Read + Seek>(
        &mut self,
        file: &mut Compound<R>,
        folder: &str,
    ) -> Result<(Vec<String>, Vec<String>), MsiError> {
        let at = if folder.is_empty() { "/" } else { folder };
        let entries = file.read_storage(at)?;
        let encoded: Vec<String> = entries
            .filter(cfb::Entry::is_stream)
            .map(|entry| entry.name().to_owned())
            .collect();
        let (mut tables, mut streams) = (Vec::new(), Vec::new());
        for encoded in encoded {
            if let Some(table) = encoded.strip_prefix('\u{4840}') {
                let name = decoded_name(table);
                let is_own = ["_StringPool", "_StringData", TABLES, COLUMNS];
                if !is_own.contains(&name.as_str()) {
                    tables.push(name);
                }
                continue;
            }
            // The summary and signatures.
            if encoded.starts_with('\u{5}') {
                continue;
            }
            let name = decoded_name(&encoded);
            if name.starts_with("Icon.") || name.starts_with("Binary.") {
                let bytes = read_stream(file, &format!("{folder}/{encoded}"))?;
                self.streams.insert(name, bytes.unwrap_or_default());
            } else {
                streams.push(name);
            }
        }
        tables.sort();
        Ok((tables, streams))
    }

    fn change_tables(
        &mut self,
        changes: &[Change],
        accepts: &dyn Fn(u32) -> bool,
    ) -> Result<(), MsiError> {
        for change in changes {
            let name = change.text(0);
            let exists = self.tables.contains_key(name);
            let (error, why) = match (change.kind, exists) {
                (ChangeKind::Deleted, true) => {
                    self.tables.remove(name);
                    continue;
                }
                (ChangeKind::Deleted, false) => (DELETES_MISSING_TABLE, "does not have"),
                (_, true) => (ADDS_EXISTING_TABLE, "already has"),
                (_, false) => {
                    self.tables.insert(name.to_owned(), Table::default());
                    continue;
                }
            };
            if !accepts(error) {
                let why = format!("it changes the table {name:?}, which the package {why}");
                return Err(MsiError::Fails(why));
            }
        }
        Ok(())
    }

    /// Adds columns. Windows Installer does not always number them.
    fn change_columns(&mut self, changes: &[Change]) -> Result<(), MsiError> {
        let mut added: BTreeMap<&str, Vec<(i32, Column)>> = BTreeMap::new();
        for change in changes {
            let (table, name) = (change.text(0), change.text(2));
            let Some(known) = self.tables.get(table) else {
                continue;
            };
            let is_known = known.columns.iter().any(|it| it.name == name);
            let kind = change.number(3);
            let Some(kind) = kind.filter(|_| change.kind == ChangeKind::New && !is_known) else {
                let why = format!("it changes the columns of the table {table:?}");
                return Err(MsiError::Unsupported(why));
            };
            let own = added.entry(table).or_default();
            let number = change.number(1).unwrap_or(i32::MAX);
            own.push((number, Column::new(name, kind)));
        }
        for (name, mut columns) in added {
            let Some(table) = self.tables.get_mut(name) else {
                continue;
            };
            columns.sort_by_key(|(number, _)| *number);
            let columns = columns.into_iter().map(|(_, column)| column);
            table.columns.extend(columns);
            let count = table.columns.len();
            if count > COLUMN_LIMIT {
                let why = format!("table {name:?} has {count} columns");
                return Err(MsiError::TooLarge(why));
            }
            for row in &mut table.rows {
                row.resize(count, Cell::Null);
            }
        }
        Ok(())
    }
}

/// The first fields of a version.
fn version_fields(version: &str, count: usize) -> Vec<u32> {
    let fields = version.split('.').chain(std::iter::repeat("0"));
    let numbers = fields.map(|field| field.trim().parse().unwrap_or_default());
    numbers.take(count).collect()
}

impl Change {
    fn text(&self, column: usize) -> &str {
        match self.cells.get(column) {
            Some(Some(Cell::Text(text))) => text,
            _ => "",
        }
    }

    fn number(&self, column: usize) -> Option<i32> {
        match self.cells.get(column) {
            Some(Some(Cell::Number(number))) => Some(*number),
            _ => None,
        }
    }
}

impl Strings {
    /// The changed rows of a table.
    fn changes<R: Read + Seek>(
        &mut self,
        file: &mut Compound<R>,
        name: &str,
        columns: &[Column],
    ) -> Result<Vec<Change>, MsiError> {
        let data = self.stream(file, name)?;
        let mut changes = Vec::new();
        let mut rest = data.as_slice();
        while let Some((mask, after)) = rest.split_first_chunk::<2>() {
            let mask = u16::from_le_bytes(*mask);
            rest = after;
            let kind = match mask {
                0 => ChangeKind::Deleted,
                mask if mask & 1 != 0 => ChangeKind::New,
                _ => ChangeKind::Changed,
            };
            let count = usize::from(mask >> 8);
            if kind == ChangeKind::New && count > columns.len() {
                let why = format!("a row of the table {name:?} has {count} columns");
                return Err(MsiError::damaged(why));
            }
            self.count(columns.len())?;
            let mut cells = Vec::with_capacity(columns.len());
            for (index, column) in columns.iter().enumerate() {
                let is_set = index < 16 && mask >> index & 1 != 0;
                let is_there = match kind {
                    ChangeKind::New => index < count,
                    ChangeKind::Changed | ChangeKind::Deleted => column.is_key() || is_set,
                };
                if !is_there {
                    cells.push(None);
                    continue;
                }
                let width = self.width(column.kind);
                let Some((cell, after)) = rest.split_at_checked(width) else {
                    let why = format!("a row of the table {name:?} is cut");
                    return Err(MsiError::damaged(why));
                };
                rest = after;
                cells.push(Some(self.cell(cell, column.kind)?));
            }
            changes.push(Change { kind, cells });
        }
        if rest.is_empty() {
            Ok(changes)
        } else {
            let why = format!("the table {name:?} has half a row");
            Err(MsiError::damaged(why))
        }
    }
}

impl Table {
    fn change(
        &mut self,
        name: &str,
        changes: Vec<Change>,
        accepts: &dyn Fn(u32) -> bool,
    ) -> Result<(), MsiError> {
        self.places.take();
        let keys = self.keys(name)?;
        let key = |row: &[Cell]| -> Vec<Cell> { keys.iter().map(|at| row[*at].clone()).collect() };
        let rows = self.rows.iter().enumerate();
        let mut places: HashMap<Vec<Cell>, usize> =
            rows.map(|(place, row)| (key(row), place)).collect();
        let mut deleted = HashSet::new();
        for change in changes {
            let cells = change.cells.iter();
            let row: Vec<Cell> = cells.map(|it| it.clone().unwrap_or(Cell::Null)).collect();
            let key = key(&row);
            let place = places.get(&key).copied();
            let failed = |error: u32, what: &str| {
                if accepts(error) {
                    return Ok(());
                }
                let why = format!("it {what} a row of the table {name:?}: {}", shown(&key));
                Err(MsiError::Fails(why))
            };
            match (change.kind, place) {
                (ChangeKind::New, Some(place)) if self.rows[place] == row => {}
                (ChangeKind::New, Some(_)) => {
                    failed(ADDS_EXISTING_ROW, "adds, but the package has,")?;
                    let key = shown(&key);
                    let why = format!("it adds a row of the table {name:?} again: {key}");
                    return Err(MsiError::Unsupported(why));
                }
                (ChangeKind::New, None) => {
                    places.insert(key, self.rows.len());
                    self.rows.push(row);
                }
                (ChangeKind::Changed, Some(place)) => {
                    for (cell, new) in self.rows[place].iter_mut().zip(change.cells) {
                        if let Some(new) = new {
                            *cell = new;
                        }
                    }
                }
                (ChangeKind::Changed, None) => {
                    failed(CHANGES_MISSING_ROW, "changes, but the package lacks,")?;
                }
                (ChangeKind::Deleted, Some(place)) => {
                    deleted.insert(place);
                    places.remove(&key);
                }
                (ChangeKind::Deleted, None) => {
                    failed(DELETES_MISSING_ROW, "deletes, but the package lacks,")?;
                }
            }
        }
        let mut kept = (0..self.rows.len()).map(|place| !deleted.contains(&place));
        self.rows.retain(|_| kept.next().unwrap_or_default());
        Ok(())
    }

    /// Places of the columns that are the key of a row.
    fn keys(&self, name: &str) -> Result<Vec<usize>, MsiError> {
        let columns = self.columns.iter().enumerate();
        let keys = columns.filter_map(|(index, column)| column.is_key().then_some(index));
        let keys: Vec<usize> = keys.collect();
        if keys.is_empty() {
            let why = format!("the table {name:?} has no key");
            return Err(MsiError::damaged(why));
        }
        Ok(keys)
    }
}

/// The keys of a row, for messages.
fn shown(key: &[Cell]) -> String {
    let cells = key.iter().map(|cell| match cell {
        Cell::Null => String::new(),
        Cell::Number(number) => number.to_string(),
        Cell::Text(text) => text.to_string(),
    });
    cells.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_row_is_found() {
        let mut table = Table {
            columns: columns_of_tables(),
            ..Table::default()
        };
        for (kind, is_there) in [
            (ChangeKind::New, true),
            (ChangeKind::Deleted, false),
            (ChangeKind::New, true),
        ] {
            let cells = vec![Some(Cell::Text("a".into()))];
            let change = Change { kind, cells };
            table.change("T", vec![change], &|_| false).unwrap();
            assert_eq!(table.find("Name", "a").is_some(), is_there);
        }
    }
}
