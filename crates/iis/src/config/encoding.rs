//! Lossless conversion of a configuration file's bytes to text and back.

use wincimg_registry::text::{TruncatedUtf16, from_utf16};

use super::ConfigError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    Utf16LittleEndian,
    Utf16BigEndian,
    /// A single-byte encoding, the first half of which is ASCII. Bytes of the other half are kept.
    SingleByte,
}

/// A file's text without its byte order mark, and the encoding to write it.
#[derive(Debug)]
pub(crate) struct DecodedText {
    pub(crate) text: String,
    encoding: Encoding,
    has_mark: bool,
}

const UTF8_MARK: &[u8] = b"\xEF\xBB\xBF";

impl DecodedText {
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, ConfigError> {
        let (encoding, has_mark, content) = match bytes {
            [0xEF, 0xBB, 0xBF, rest @ ..] => (Encoding::Utf8, true, rest),
            [0xFF, 0xFE, rest @ ..] => (Encoding::Utf16LittleEndian, true, rest),
            [0xFE, 0xFF, rest @ ..] => (Encoding::Utf16BigEndian, true, rest),
            [b'<', 0, ..] => (Encoding::Utf16LittleEndian, false, bytes),
            [0, b'<', ..] => (Encoding::Utf16BigEndian, false, bytes),
            _ => (declared(bytes)?, false, bytes),
        };
        let text = match encoding {
            Encoding::Utf8 => utf8(content)?,
            Encoding::Utf16LittleEndian => utf16(content, u16::from_le_bytes)?,
            Encoding::Utf16BigEndian => utf16(content, u16::from_be_bytes)?,
            Encoding::SingleByte => content.iter().copied().map(char::from).collect(),
        };
        Ok(Self {
            text,
            encoding,
            has_mark,
        })
    }

    /// Returns true if only ASCII can be added, because the characters of the other bytes are
    /// unknown.
    pub(crate) fn is_single_byte(&self) -> bool {
        self.encoding == Encoding::SingleByte
    }

    /// The bytes of a text in this file's encoding.
    pub(crate) fn write(&self, text: &str) -> Vec<u8> {
        let units = |to_bytes: fn(u16) -> [u8; 2]| {
            let mark = self.has_mark.then_some(0xFEFF);
            mark.into_iter()
                .chain(text.encode_utf16())
                .flat_map(to_bytes)
                .collect()
        };
        match self.encoding {
            Encoding::Utf8 if self.has_mark => [UTF8_MARK, text.as_bytes()].concat(),
            Encoding::Utf8 => text.as_bytes().to_vec(),
            Encoding::Utf16LittleEndian => units(u16::to_le_bytes),
            Encoding::Utf16BigEndian => units(u16::to_be_bytes),
            // What is added is ASCII, the rest came from single bytes.
            Encoding::SingleByte => text
                .chars()
                .map(|c| u8::try_from(u32::from(c)).unwrap_or(b'?'))
                .collect(),
        }
    }
}

/// The encoding of a file without a mark, from its XML declaration.
fn declared(bytes: &[u8]) -> Result<Encoding, ConfigError> {
    let refused = |problem: String| Err(ConfigError::at("", 0, problem));
    let Some(name) = declared_name(bytes) else {
        return Ok(Encoding::Utf8);
    };
    let name = name.to_ascii_lowercase();
    let is_single_byte = ["iso-8859-", "windows-125", "us-ascii"]
        .iter()
        .any(|family| name.starts_with(family));
    match name.as_str() {
        "utf-8" | "utf8" => Ok(Encoding::Utf8),
        "utf-16" | "unicode" | "ucs-2" | "utf-16le" | "utf-16be" => refused(not_as_declared(&name)),
        _ if is_single_byte => Ok(Encoding::SingleByte),
        _ => refused(format!("unknown encoding {name:?}: save the file as UTF-8")),
    }
}

fn not_as_declared(encoding: &str) -> String {
    format!("the file is not in {encoding}, its declared encoding")
}

/// The encoding in the declaration at the start, if there is one.
fn declared_name(bytes: &[u8]) -> Option<String> {
    let declaration = bytes.strip_prefix(b"<?xml")?;
    let end = declaration.windows(2).position(|pair| pair == b"?>")?;
    let text = std::str::from_utf8(&declaration[..end]).ok()?;
    let (_, value) = text.split_once("encoding")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let (name, _) = value[1..].split_once(quote)?;
    Some(name.to_owned())
}

fn utf8(bytes: &[u8]) -> Result<String, ConfigError> {
    std::str::from_utf8(bytes)
        .map(str::to_owned)
        .map_err(|error| {
            let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
            ConfigError::at(&before, before.len(), not_as_declared("utf-8"))
        })
}

fn utf16(bytes: &[u8], from_bytes: fn([u8; 2]) -> u16) -> Result<String, ConfigError> {
    from_utf16(bytes, from_bytes).map_err(|TruncatedUtf16 { before }| {
        ConfigError::at(&before, before.len(), not_as_declared("utf-16"))
    })
}
