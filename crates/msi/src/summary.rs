//! The summary information of a package: architecture, package code, kind of its source.

use std::io::{Read, Seek};

use jiff::Timestamp;

use super::database::{Compound, read_stream};
use super::error::MsiError;

/// The properties of a package as a file.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    /// Platform and languages: `x64;1033`.
    pub(crate) template: String,
    /// Code of this file; of a transform, the products and versions.
    pub(crate) package_code: String,
    /// Version of the tables' layout, such as 200: the oldest Windows Installer that reads them.
    pub(crate) schema: u32,
    /// Flags of the source: 1 short names, 2 compressed, 8 no elevation.
    pub(crate) source_flags: i32,
    /// Time of the last change, or of the creation.
    pub(crate) time: Option<Timestamp>,
    /// Of a transform: what it requires of a package, and the errors that it accepts.
    pub(crate) conditions: u32,
}

const TEMPLATE: u32 = 7;
const REVISION: u32 = 9;
const CREATED: u32 = 12;
const SAVED: u32 = 13;
const PAGE_COUNT: u32 = 14;
const WORD_COUNT: u32 = 15;
const CHARACTER_COUNT: u32 = 16;

impl Summary {
    /// Reads that of the file, or of a storage in it.
    pub(crate) fn read<R: Read + Seek>(
        file: &mut Compound<R>,
        folder: &str,
    ) -> Result<Self, MsiError> {
        let bytes = read_stream(file, &format!("{folder}/\u{5}SummaryInformation"))?
            .ok_or_else(|| MsiError::damaged("it has no summary information"))?;
        Self::parse(&bytes).ok_or_else(|| MsiError::damaged("invalid summary information"))
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut summary = Self::default();
        let section = usize::try_from(number(bytes, 44)?).ok()?;
        let section = bytes.get(section..)?;
        let count = number(section, 4)?;
        let mut created = None;
        for index in 0..usize::try_from(count).ok()?.min(64) {
            let id = number(section, 8 + index * 8)?;
            let offset = usize::try_from(number(section, 12 + index * 8)?).ok()?;
            let value = section.get(offset..)?;
            match id {
                TEMPLATE => summary.template = text(value)?,
                REVISION => summary.package_code = text(value)?,
                CREATED => created = time(value),
                SAVED => summary.time = time(value),
                PAGE_COUNT => summary.schema = number(value, 4).unwrap_or_default(),
                WORD_COUNT => summary.source_flags = number(value, 4)?.cast_signed(),
                CHARACTER_COUNT => summary.conditions = number(value, 4)?,
                _ => {}
            }
        }
        summary.time = summary.time.or(created);
        Some(summary)
    }

    /// The architecture, such as `x64`; a package for x86 has `Intel`.
    pub(crate) fn platform(&self) -> &str {
        match self.template.split(';').next() {
            None | Some("") => "Intel",
            Some(platform) => platform,
        }
    }

    /// The first language, as a number; empty for any.
    pub(crate) fn language(&self) -> &str {
        let languages = self.template.split(';').nth(1).unwrap_or_default();
        languages.split(',').next().unwrap_or_default()
    }

    /// Returns true if files are compressed unless they say otherwise.
    pub(crate) fn is_compressed(&self) -> bool {
        self.source_flags & 2 != 0
    }

    /// Returns true if names on the source medium are short.
    pub(crate) fn has_short_names(&self) -> bool {
        self.source_flags & 1 != 0
    }
}

/// A little-endian number at an offset.
pub(crate) fn number(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes))
}

/// A text of type 30; the properties read here are ASCII.
fn text(value: &[u8]) -> Option<String> {
    let length = usize::try_from(number(value, 4)?).ok()?;
    let bytes = value.get(8..)?.get(..length)?;
    let text = String::from_utf8_lossy(bytes);
    Some(text.trim_end_matches('\0').trim().to_owned())
}

/// A time of type 64, in steps of 100 ns since 1601.
fn time(value: &[u8]) -> Option<Timestamp> {
    const TO_1970: i64 = 11_644_473_600;
    let ticks = i64::from(number(value, 8)?) << 32 | i64::from(number(value, 4)?);
    Timestamp::from_second(ticks / 10_000_000 - TO_1970).ok()
}
