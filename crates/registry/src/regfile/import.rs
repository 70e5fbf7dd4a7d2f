//! Import of registration files as edits.
//!
//! Supports the output of `regedit` and handwritten files: both headers, every form of value,
//! deletions of keys and values, comments on separate lines and after values. Unlike in `regedit`,
//! an invalid line is an error.

use std::collections::BTreeSet;

use super::RegFileError;
use super::line::LineCursor;
use super::text::{NARROW_HEADER, decode, western};
use crate::{DataType, KeyMode, KeyPath, Link, RegistryData, RegistryEdit};

/// Content of a registration file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegFile {
    /// The changes, in their order.
    pub edits: Vec<RegistryEdit>,
    /// The links that keys of the file go through.
    pub links: BTreeSet<Link>,
}

/// Reads a registration file of either version.
pub fn import(bytes: &[u8]) -> Result<RegFile, RegFileError> {
    let text = decode(bytes)?;
    let lines = (1..).zip(text.lines());
    let mut lines = lines.map(|(number, text)| LineCursor::new(number, text));
    let header = lines.next().unwrap_or_else(|| LineCursor::new(1, ""));
    let narrow = match header.rest().trim() {
        NARROW_HEADER => true,
        "Windows Registry Editor Version 5.00" => false,
        _ => return Err(header.error("not a registration file: expected \"Windows Registry Editor Version 5.00\" or \"REGEDIT4\"")),
    };
    let mut parser = Parser {
        lines,
        narrow,
        section: Section::None,
        edits: Vec::new(),
        links: BTreeSet::new(),
    };
    while let Some(line) = parser.lines.next() {
        parser.line(line)?;
    }
    Ok(RegFile {
        edits: parser.edits,
        links: parser.links,
    })
}

/// Key of the values that follow.
enum Section {
    /// No key yet.
    None,
    /// This key.
    Key(KeyPath),
    /// A deleted key, whose values Windows ignores.
    Deleted,
}

struct Parser<I> {
    lines: I,
    narrow: bool,
    section: Section,
    edits: Vec<RegistryEdit>,
    links: BTreeSet<Link>,
}

impl<'t, I: Iterator<Item = LineCursor<'t>>> Parser<I> {
    fn line(&mut self, mut line: LineCursor<'t>) -> Result<(), RegFileError> {
        line.skip_blanks();
        match line.rest().chars().next() {
            None | Some(';' | '#') => Ok(()),
            Some('[') => self.key(line),
            Some('"' | '@') => self.value(line),
            Some(_) => Err(line.expected("[key], \"name\"=, @= or a comment")),
        }
    }

    fn key(&mut self, mut line: LineCursor<'t>) -> Result<(), RegFileError> {
        line.next();
        let deleted = line.take("-");
        // A key's name may have a bracket in it, so the last one of the line is the closing one.
        let Some(end) = line.rest().rfind(']') else {
            return Err(line.expected("] at the end of the key"));
        };
        let (key, through) =
            KeyPath::parse(&line.rest()[..end]).map_err(|error| line.error(error.to_string()))?;
        self.links.extend(through);
        let mut after = line;
        after.take(&line.rest()[..=end]);
        after.end()?;
        if deleted {
            self.section = Section::Deleted;
            self.edits.push(RegistryEdit::DeleteKey { key });
        } else {
            self.section = Section::Key(key.clone());
            let mode = KeyMode::Merge;
            self.edits.push(RegistryEdit::CreateKey { key, mode });
        }
        Ok(())
    }

    fn value(&mut self, mut line: LineCursor<'t>) -> Result<(), RegFileError> {
        let key = match &self.section {
            Section::Key(key) => Some(key.clone()),
            Section::Deleted => None,
            Section::None => return Err(line.expected("a [key] before its values")),
        };
        let name = if line.take("@") {
            String::new()
        } else {
            quoted(&mut line)?
        };
        line.skip_blanks();
        if !line.take("=") {
            return Err(line.expected("="));
        }
        line.skip_blanks();
        let data = if line.take("-") {
            line.end()?;
            None
        } else {
            Some(self.data(line)?)
        };
        self.edits.extend(key.map(|key| match data {
            Some(data) => RegistryEdit::SetValue { key, name, data },
            None => RegistryEdit::DeleteValue { key, name },
        }));
        Ok(())
    }

    fn data(&mut self, mut line: LineCursor<'t>) -> Result<RegistryData, RegFileError> {
        if line.rest().starts_with('"') {
            let text = quoted(&mut line)?;
            line.end()?;
            return Ok(RegistryData::sz(&text));
        }
        if line.take("dword:") {
            line.skip_blanks();
            let number = hexadecimal(&mut line, "number of up to 8 hexadecimal digits")?;
            line.end()?;
            return Ok(RegistryData::dword(number));
        }
        if line.take("hex(") {
            let kind = hexadecimal(&mut line, "type number in hexadecimal")?;
            if !line.take("):") {
                return Err(line.expected("): after the type number"));
            }
            return self.bytes(DataType(kind), line);
        }
        if line.take("hex:") {
            return self.bytes(DataType::BINARY, line);
        }
        let forms = "\"text\", dword:, hex:, hex(type): or -";
        Err(line.expected(forms))
    }

    /// Bytes with commas between them, over as many lines as end in a backslash. Empty lines and
    /// comments do not end them.
    fn bytes(
        &mut self,
        kind: DataType,
        mut line: LineCursor<'t>,
    ) -> Result<RegistryData, RegFileError> {
        let mut bytes = Vec::new();
        loop {
            line.skip_blanks();
            if line.take("\\") {
                line.end()?;
                let next = self.lines.find(|next| !next.is_done());
                line = next.ok_or_else(|| line.expected("another line with bytes"))?;
                continue;
            }
            if line.is_done() {
                break;
            }
            let number: u32 = hexadecimal(&mut line, "byte in hexadecimal")?;
            let byte = u8::try_from(number).map_err(|_| {
                line.expected(&format!("a byte in hexadecimal, found \"{number:x}\""))
            })?;
            bytes.push(byte);
            line.skip_blanks();
            if !line.take(",") {
                line.end()?;
                break;
            }
        }
        let text = [DataType::SZ, DataType::EXPAND_SZ, DataType::MULTI_SZ].contains(&kind);
        if self.narrow && text {
            bytes = western(&bytes)
                .encode_utf16()
                .flat_map(u16::to_le_bytes)
                .collect();
        }
        // Windows adds one null, also to a list, which ends with two.
        if text && !bytes.is_empty() && bytes.len().is_multiple_of(2) && !bytes.ends_with(&[0, 0]) {
            bytes.extend([0, 0]);
        }
        Ok(RegistryData::new(kind, bytes))
    }
}

/// Parses a quoted text, in which a backslash escapes quotation marks and itself.
fn quoted(line: &mut LineCursor<'_>) -> Result<String, RegFileError> {
    let start = *line;
    line.next();
    let mut text = String::new();
    loop {
        let here = *line;
        match line.next() {
            Some('"') => return Ok(text),
            Some('\\') => match line.next() {
                Some(c @ ('\\' | '"')) => text.push(c),
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                _ => return Err(here.expected(r#"one of \\ \" \n \r"#)),
            },
            Some(c) => text.push(c),
            None => return Err(start.expected("a closing \" on the same line")),
        }
    }
}

fn hexadecimal(line: &mut LineCursor<'_>, what: &'static str) -> Result<u32, RegFileError> {
    let start = *line;
    let digits = line.take_while(|c| c.is_ascii_alphanumeric());
    u32::from_str_radix(digits, 16)
        .ok()
        .filter(|_| digits.len() <= 8)
        .ok_or_else(|| start.expected(&format!("a {what}, found {digits:?}")))
}
