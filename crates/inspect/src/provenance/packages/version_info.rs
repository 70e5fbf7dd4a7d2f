//! Version resource of a program: the `Details` of its properties.

use std::collections::BTreeMap;

use super::bytes::{u16_at, u32_at, usize_at, utf16_at};
use super::pe::{Pe, RESOURCES};

const RT_VERSION: u32 = 16;
const SIGNATURE: u32 = 0xfeef_04bd;
/// Bit of a resource's offset for a directory.
const IS_DIRECTORY: u32 = 0x8000_0000;
/// Limit on entries, more than any real resource has; the rest is skipped.
const MAX_ENTRIES: usize = 4096;
const MAX_STRINGS: usize = 256;
const MAX_LANGUAGES: usize = 64;
const LONGEST_VALUE: usize = 512;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct VersionInfo {
    strings: BTreeMap<String, String>,
    file_version: Option<String>,
    product_version: Option<String>,
}

impl VersionInfo {
    pub(super) fn from_pe(pe: &Pe) -> Option<Self> {
        let resources = pe.directory(RESOURCES)?;
        let by_type = sub_directory(resources, 0, |id| id == RT_VERSION)?;
        let by_name = sub_directory(resources, by_type, |_| true)?;
        let mut languages = entries(resources, by_name).filter_map(|(_, leaf)| {
            let leaf = usize::try_from(leaf).ok()?;
            let bytes = pe.at(u32_at(resources, leaf)?)?;
            let size = usize_at(resources, leaf + 4)?;
            Self::parse(bytes.get(..size).unwrap_or(bytes))
        });
        let mut info = languages.next()?;
        // An installer may have only a comment in its first language.
        for other in languages.take(MAX_LANGUAGES) {
            for (key, text) in other.strings {
                info.strings.entry(key).or_insert(text);
            }
        }
        Some(info)
    }

    fn parse(data: &[u8]) -> Option<Self> {
        let root = Block::at(data, 0)?;
        if root.key != "VS_VERSION_INFO" {
            return None;
        }
        let mut info = Self::default();
        if u32_at(root.value, 0) == Some(SIGNATURE) {
            info.file_version = four_parts(root.value, 8);
            info.product_version = four_parts(root.value, 16);
        }
        for file_info in root.children().filter(|it| it.key == "StringFileInfo") {
            for table in file_info.children() {
                for string in table.children().take(MAX_STRINGS) {
                    let Some((text, _)) = utf16_at(string.value, 0) else {
                        continue;
                    };
                    let text = text.trim();
                    if !text.is_empty() && text.len() <= LONGEST_VALUE {
                        // Of several languages the first one is used.
                        info.strings
                            .entry(string.key)
                            .or_insert_with(|| text.to_owned());
                    }
                }
            }
        }
        Some(info)
    }

    pub(super) fn string(&self, key: &str) -> Option<&str> {
        self.strings.get(key).map(String::as_str)
    }

    /// The product's version in its usual form.
    pub(super) fn product_version(&self) -> Option<String> {
        let printed = self.string("ProductVersion").and_then(as_version);
        printed
            .or_else(|| self.product_version.clone())
            .or_else(|| self.file_version())
    }

    pub(super) fn file_version(&self) -> Option<String> {
        let printed = self.string("FileVersion").and_then(as_version);
        printed.or_else(|| self.file_version.clone())
    }
}

/// Extracts the version from `1, 2, 3, 4` or `1.2.3 (win7_rtm.090713-1255)`; none if the text does
/// not start with a number.
fn as_version(text: &str) -> Option<String> {
    let joined = text.replace(", ", ".").replace(',', ".");
    let word = joined.split_whitespace().next()?;
    let word = word.trim_start_matches(['v', 'V']);
    // The part after a plus is the commit of the build.
    let word = word.split('+').next()?.trim_end_matches('.');
    let plausible = word.starts_with(|first: char| first.is_ascii_digit())
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    plausible.then(|| word.to_owned())
}

/// A version in two 32-bit words; none if both are zero.
fn four_parts(data: &[u8], at: usize) -> Option<String> {
    let (high, low) = (u32_at(data, at)?, u32_at(data, at + 4)?);
    if high == 0 && low == 0 {
        return None;
    }
    Some(format!(
        "{}.{}.{}.{}",
        high >> 16,
        high & 0xffff,
        low >> 16,
        low & 0xffff
    ))
}

fn sub_directory(resources: &[u8], at: usize, wanted: impl Fn(u32) -> bool) -> Option<usize> {
    let (_, found) = entries(resources, at).find(|(id, _)| wanted(*id))?;
    let inside = found & !IS_DIRECTORY;
    (found & IS_DIRECTORY != 0)
        .then(|| usize::try_from(inside).ok())
        .flatten()
}

/// Numbers and offsets of the entries of a directory.
fn entries(resources: &[u8], at: usize) -> impl Iterator<Item = (u32, u32)> {
    let count = |at: usize| u16_at(resources, at).map_or(0, usize::from);
    let count = (count(at + 12) + count(at + 14)).min(MAX_ENTRIES);
    (0..count).map_while(move |number| {
        let place = at + 16 + number * 8;
        Some((u32_at(resources, place)?, u32_at(resources, place + 4)?))
    })
}

/// One block of the resource: a key, a value, and more blocks.
struct Block<'a> {
    key: String,
    value: &'a [u8],
    rest: &'a [u8],
    /// The whole block, with padding.
    length: usize,
}

impl<'a> Block<'a> {
    fn at(data: &'a [u8], at: usize) -> Option<Self> {
        let data = data.get(at..)?;
        let length = usize::from(u16_at(data, 0)?);
        let value_length = usize::from(u16_at(data, 2)?);
        let is_text = u16_at(data, 4)? == 1;
        if length < 6 {
            return None;
        }
        let data = data.get(..length).unwrap_or(data);
        let (key, key_size) = utf16_at(data, 6)?;
        let value_at = aligned(6 + key_size);
        // Per documentation the length of a text is in characters; some tools write bytes.
        let bytes = if is_text {
            value_length * 2
        } else {
            value_length
        };
        let tail = data.get(value_at..).unwrap_or_default();
        let value = tail.get(..bytes).unwrap_or(tail);
        let rest = tail.get(aligned(bytes)..).unwrap_or_default();
        Some(Self {
            key,
            value,
            rest,
            length: aligned(length),
        })
    }

    fn children(&self) -> impl Iterator<Item = Block<'a>> {
        let rest = self.rest;
        let mut at = 0;
        std::iter::from_fn(move || {
            let block = Block::at(rest, at)?;
            at += block.length;
            Some(block)
        })
    }
}

fn aligned(at: usize) -> usize {
    at.div_ceil(4) * 4
}
