//! Transforms of Windows Installer packages (`.mst`), written byte by byte.

use std::collections::BTreeMap;
use std::io::{Cursor, Read, Seek, Write};
use std::path::Path;

/// `{000C1082-0000-0000-C000-000000000046}`
const CLASS: [u8; 16] = [
    0x82, 0x10, 0x0C, 0, 0, 0, 0, 0, 0xC0, 0, 0, 0, 0, 0, 0, 0x46,
];

#[derive(Debug, Clone, Copy)]
pub enum Cell<'a> {
    /// A string.
    Text(&'a str),
    /// A number of two bytes.
    Short(i32),
    /// A string or a number of two bytes without a value.
    Null,
}

/// A transform. Its strings are in code page 1252.
#[derive(Debug, Clone)]
pub struct TestTransform {
    /// `{OLD}1.0;{NEW}1.0;{UPGRADE}`
    pub revision: String,
    /// `x64;1033`
    pub template: String,
    /// What it requires of the package, and the errors that it accepts.
    pub conditions: u32,
    /// Code page of its strings.
    pub code_page: u32,
    texts: Vec<String>,
    streams: BTreeMap<String, Vec<u8>>,
}

impl TestTransform {
    pub fn new(revision: &str, template: &str, conditions: u32) -> Self {
        Self {
            revision: revision.to_owned(),
            template: template.to_owned(),
            conditions,
            code_page: 1252,
            texts: Vec::new(),
            streams: BTreeMap::new(),
        }
    }

    pub fn add(&mut self, table: &str, cells: &[Cell<'_>]) {
        let count = u16::try_from(cells.len()).unwrap();
        self.row(table, count << 8 | 1, cells);
    }

    /// Changes columns of a row, counted from 0: its keys come first.
    pub fn change(&mut self, table: &str, columns: &[u16], cells: &[Cell<'_>]) {
        let mask = columns.iter().fold(0, |mask, column| mask | 1 << column);
        self.row(table, mask, cells);
    }

    pub fn delete(&mut self, table: &str, keys: &[Cell<'_>]) {
        self.row(table, 0, keys);
    }

    pub fn add_table(&mut self, table: &str, columns: &[(&str, i32)]) {
        self.add("_Tables", &[Cell::Text(table)]);
        for (number, (name, kind)) in (1..).zip(columns) {
            let (number, kind) = (Cell::Short(number), Cell::Short(*kind));
            let cells = [Cell::Text(table), number, Cell::Text(name), kind];
            self.add("_Columns", &cells);
        }
    }

    /// Adds a stream that is not a table.
    pub fn stream(&mut self, name: &str, bytes: &[u8]) {
        self.streams.insert(packed(name), bytes.to_vec());
    }

    fn row(&mut self, table: &str, mask: u16, cells: &[Cell<'_>]) {
        let mut bytes = mask.to_le_bytes().to_vec();
        for cell in cells {
            let number = match cell {
                Cell::Null => 0,
                Cell::Text(text) => self.text(text),
                Cell::Short(number) => u16::try_from(number + 0x8000).unwrap(),
            };
            bytes.extend(number.to_le_bytes());
        }
        let stream = self.streams.entry(table_stream(table)).or_default();
        stream.extend(bytes);
    }

    /// The number of a string.
    fn text(&mut self, text: &str) -> u16 {
        let known = self.texts.iter().position(|known| known == text);
        let place = known.unwrap_or_else(|| {
            self.texts.push(text.to_owned());
            self.texts.len() - 1
        });
        u16::try_from(place + 1).unwrap()
    }

    pub fn bytes(&self) -> Vec<u8> {
        // As Windows Installer writes it.
        let memory = Cursor::new(Vec::new());
        let made = cfb::CompoundFile::create_with_version(cfb::Version::V3, memory);
        let mut file = made.unwrap();
        self.write(&mut file, "");
        let mut bytes = file.into_inner().into_inner();
        // The class of transforms, in the entry of the root: wine applies no other file.
        let sector = u32::from_le_bytes(*bytes[48..].first_chunk().unwrap());
        let root = usize::try_from(sector + 1).unwrap() * 512;
        bytes[root + 80..root + 96].copy_from_slice(&CLASS);
        bytes
    }

    /// Adds it to a package, as a storage.
    pub fn add_to(&self, package: &Path, name: &str) {
        let mut file = cfb::open_rw(package).unwrap();
        let folder = format!("/{name}");
        file.create_storage(&folder).unwrap();
        self.write(&mut file, &folder);
        file.flush().unwrap();
    }

    fn write<F: Read + Write + Seek>(&self, file: &mut cfb::CompoundFile<F>, folder: &str) {
        let mut pool = self.code_page.to_le_bytes().to_vec();
        let mut data = Vec::new();
        for text in &self.texts {
            pool.extend(u16::try_from(text.len()).unwrap().to_le_bytes());
            pool.extend(1_u16.to_le_bytes());
            data.extend(text.as_bytes());
        }
        let mut streams = self.streams.clone();
        streams.insert(table_stream("_StringPool"), pool);
        streams.insert(table_stream("_StringData"), data);
        streams.insert("\u{5}SummaryInformation".to_owned(), self.summary());
        for (name, bytes) in streams {
            let mut stream = file.create_stream(format!("{folder}/{name}")).unwrap();
            stream.write_all(&bytes).unwrap();
        }
    }

    fn summary(&self) -> Vec<u8> {
        let text = |text: &str| {
            let mut value = 30_u32.to_le_bytes().to_vec();
            value.extend(u32::try_from(text.len() + 1).unwrap().to_le_bytes());
            value.extend(text.as_bytes());
            value.push(0);
            value.resize(value.len().next_multiple_of(4), 0);
            value
        };
        let number = |kind: u32, number: u32| [kind.to_le_bytes(), number.to_le_bytes()].concat();
        let values = [
            (1_u32, number(2, 1252)),
            (7, text(&self.template)),
            (8, text(&self.template)),
            (9, text(&self.revision)),
            (14, number(3, 200)),
            (16, number(3, self.conditions)),
        ];
        let head = 8 + 8 * values.len();
        let (mut places, mut content) = (Vec::new(), Vec::<u8>::new());
        for (id, value) in &values {
            places.extend(id.to_le_bytes());
            places.extend(u32::try_from(head + content.len()).unwrap().to_le_bytes());
            content.extend(value);
        }
        let mut bytes = vec![0xFE, 0xFF, 0, 0, 5, 1, 2, 0];
        bytes.extend([0; 16]);
        bytes.extend(1_u32.to_le_bytes());
        bytes.extend([
            0xE0, 0x85, 0x9F, 0xF2, 0xF9, 0x4F, 0x68, 0x10, 0xAB, 0x91, 8, 0, 0x2B, 0x27, 0xB3,
            0xD9,
        ]);
        bytes.extend(48_u32.to_le_bytes());
        bytes.extend(u32::try_from(head + content.len()).unwrap().to_le_bytes());
        bytes.extend(u32::try_from(values.len()).unwrap().to_le_bytes());
        bytes.extend(places);
        bytes.extend(content);
        bytes
    }
}

fn table_stream(table: &str) -> String {
    format!("\u{4840}{}", packed(table))
}

/// The name of a stream, with two characters in one.
fn packed(name: &str) -> String {
    const DIGITS: &str = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._";
    let digit = |c: char| u32::try_from(DIGITS.find(c).unwrap()).unwrap();
    let characters: Vec<char> = name.chars().collect();
    let units = characters.chunks(2).map(|pair| match pair {
        [first, second] => 0x3800 + (digit(*second) << 6) + digit(*first),
        rest => 0x4800 + digit(rest[0]),
    });
    units.map(|unit| char::from_u32(unit).unwrap()).collect()
}
