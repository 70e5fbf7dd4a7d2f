//! The name and the version of a .NET assembly, from the tables of its metadata (ECMA-335, II.24).

use super::bytes::{part, text_at, u16_at, u32_at, u64_at, usize_at};
use super::pe::{CLR, Pe};

const SIGNATURE: u32 = 0x424a_5342;
const MAX_STREAMS: usize = 16;
const ASSEMBLY: usize = 0x20;
const TABLES: usize = 64;

/// Name and version of an assembly.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Assembly {
    pub name: String,
    pub version: String,
}

#[derive(Clone, Copy)]
enum Column {
    /// This number of bytes.
    Fixed(usize),
    /// Index into a heap.
    String,
    Guid,
    Blob,
    /// Row number of a table.
    Row(usize),
    /// Row number of one of several tables, which the lowest bits select.
    Coded(u32, &'static [usize]),
}

use Column::{Blob, Coded, Fixed, Guid, Row, String as Text};

const TYPE_DEF_OR_REF: Column = Coded(2, &[0x02, 0x01, 0x1b]);
const HAS_CONSTANT: Column = Coded(2, &[0x04, 0x08, 0x17]);
const HAS_CUSTOM_ATTRIBUTE: Column = Coded(
    5,
    &[
        0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e, 0x17, 0x14, 0x11, 0x1a, 0x1b, 0x20,
        0x23, 0x26, 0x27, 0x28, 0x2a, 0x2c, 0x2b,
    ],
);
const HAS_FIELD_MARSHAL: Column = Coded(1, &[0x04, 0x08]);
const HAS_DECL_SECURITY: Column = Coded(2, &[0x02, 0x06, 0x20]);
const MEMBER_REF_PARENT: Column = Coded(3, &[0x02, 0x01, 0x1a, 0x06, 0x1b]);
const HAS_SEMANTICS: Column = Coded(1, &[0x14, 0x17]);
const METHOD_DEF_OR_REF: Column = Coded(1, &[0x06, 0x0a]);
const MEMBER_FORWARDED: Column = Coded(1, &[0x04, 0x06]);
const CUSTOM_ATTRIBUTE_TYPE: Column = Coded(3, &[0x06, 0x0a]);
const RESOLUTION_SCOPE: Column = Coded(2, &[0x00, 0x1a, 0x23, 0x01]);

/// Columns of the tables before the assembly's, in their order.
const BEFORE: [&[Column]; ASSEMBLY] = [
    &[Fixed(2), Text, Guid, Guid, Guid],
    &[RESOLUTION_SCOPE, Text, Text],
    &[Fixed(4), Text, Text, TYPE_DEF_OR_REF, Row(0x04), Row(0x06)],
    &[Row(0x04)],
    &[Fixed(2), Text, Blob],
    &[Row(0x06)],
    &[Fixed(8), Text, Blob, Row(0x08)],
    &[Row(0x08)],
    &[Fixed(4), Text],
    &[Row(0x02), TYPE_DEF_OR_REF],
    &[MEMBER_REF_PARENT, Text, Blob],
    &[Fixed(2), HAS_CONSTANT, Blob],
    &[HAS_CUSTOM_ATTRIBUTE, CUSTOM_ATTRIBUTE_TYPE, Blob],
    &[HAS_FIELD_MARSHAL, Blob],
    &[Fixed(2), HAS_DECL_SECURITY, Blob],
    &[Fixed(6), Row(0x02)],
    &[Fixed(4), Row(0x04)],
    &[Blob],
    &[Row(0x02), Row(0x14)],
    &[Row(0x14)],
    &[Fixed(2), Text, TYPE_DEF_OR_REF],
    &[Row(0x02), Row(0x17)],
    &[Row(0x17)],
    &[Fixed(2), Text, Blob],
    &[Fixed(2), Row(0x06), HAS_SEMANTICS],
    &[Row(0x02), METHOD_DEF_OR_REF, METHOD_DEF_OR_REF],
    &[Text],
    &[Blob],
    &[Fixed(2), MEMBER_FORWARDED, Text, Row(0x1a)],
    &[Fixed(4), Row(0x04)],
    &[Fixed(8)],
    &[Fixed(4)],
];

/// Number of rows of each table, and widths of the heap indexes.
struct TableLayout {
    rows: [u32; TABLES],
    heaps: u8,
}

impl TableLayout {
    fn width(&self, column: Column) -> usize {
        let heap = |bit: u8| if self.heaps & bit == 0 { 2 } else { 4 };
        let index = |most: u32, bits: u32| if most < 1 << (16 - bits) { 2 } else { 4 };
        match column {
            Fixed(size) => size,
            Text => heap(1),
            Guid => heap(2),
            Blob => heap(4),
            Row(table) => index(self.rows[table], 0),
            Coded(bits, tables) => {
                let most = tables.iter().map(|table| self.rows[*table]).max();
                index(most.unwrap_or(0), bits)
            }
        }
    }

    fn row(&self, columns: &[Column]) -> usize {
        columns.iter().map(|column| self.width(*column)).sum()
    }
}

/// The assembly in a file; none if it is another file, or only a module of one or its texts in a
/// language.
pub(super) fn assembly(pe: &Pe) -> Option<Assembly> {
    let header = pe.directory(CLR)?;
    let metadata = pe.at(u32_at(header, 8)?)?;
    let size = usize_at(header, 12)?;
    let metadata = metadata.get(..size).unwrap_or(metadata);
    if u32_at(metadata, 0)? != SIGNATURE {
        return None;
    }
    let version_length = usize_at(metadata, 12)?;
    let mut at = 16_usize.checked_add(version_length)?;
    let count = usize::from(u16_at(metadata, at.checked_add(2)?)?);
    at += 4;
    let (mut tables, mut strings) = (None, None);
    for _ in 0..count.min(MAX_STREAMS) {
        let (offset, size) = (usize_at(metadata, at)?, usize_at(metadata, at + 4)?);
        let name = text_at(metadata, at + 8)?;
        let rest = metadata.get(offset..)?;
        let stream = rest.get(..size).unwrap_or(rest);
        match name {
            "#~" => tables = Some(stream),
            "#Strings" => strings = Some(stream),
            _ => {}
        }
        at += 8 + (name.len() + 1).div_ceil(4) * 4;
    }
    read(tables?, strings?)
}

fn read(tables: &[u8], strings: &[u8]) -> Option<Assembly> {
    let mut shape = TableLayout {
        rows: [0; TABLES],
        heaps: *tables.get(6)?,
    };
    let present = u64_at(tables, 8)?;
    let mut at = 24;
    for (table, rows) in shape.rows.iter_mut().enumerate() {
        if present & (1 << table) != 0 {
            *rows = u32_at(tables, at)?;
            at += 4;
        }
    }
    // Edit-and-continue files have four bytes more.
    if shape.heaps & 0x40 != 0 {
        at += 4;
    }
    if shape.rows[ASSEMBLY] == 0 {
        return None;
    }
    for (columns, rows) in BEFORE.iter().zip(shape.rows) {
        let rows = usize::try_from(rows).ok()?;
        at = at.checked_add(rows.checked_mul(shape.row(columns))?)?;
    }
    let columns = [Fixed(16), Blob, Text, Text];
    let row = part(tables, at, shape.row(&columns))?;
    let text = |at: usize| {
        let place = match shape.width(Text) {
            2 => usize::from(u16_at(row, at)?),
            _ => usize_at(row, at)?,
        };
        text_at(strings, place).filter(|text| !text.is_empty())
    };
    let name_at = 16 + shape.width(Blob);
    let name = text(name_at)?;
    // Texts in a language are a part of the package that has the assembly.
    if text(name_at + shape.width(Text)).is_some() {
        return None;
    }
    let parts: Vec<String> = (0..4)
        .filter_map(|number| u16_at(row, 4 + number * 2))
        .map(|number| number.to_string())
        .collect();
    Some(Assembly {
        name: name.to_owned(),
        version: parts.join("."),
    })
}
