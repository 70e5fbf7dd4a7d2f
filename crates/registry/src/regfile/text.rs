//! The encodings of registration files: UTF-16 with a byte order mark, UTF-8, and the Western code
//! page of `REGEDIT4`.

use super::RegFileError;
use crate::text::from_utf16;

/// First line of a file with 8-bit strings, also in hexadecimal.
pub(super) const NARROW_HEADER: &str = "REGEDIT4";

/// The characters of code page 1252 for the bytes 0x80 to 0x9F; the five unassigned ones map to
/// themselves.
const WESTERN: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8D}', 'Ž', '\u{8F}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9D}', 'ž', 'Ÿ',
];

/// The text of a registration file.
pub(super) fn decode(bytes: &[u8]) -> Result<String, RegFileError> {
    match bytes {
        [0xFF, 0xFE, rest @ ..] => from_utf16(rest, u16::from_le_bytes)
            .map_err(|_| at_start("UTF-16 that is truncated inside a character")),
        [0xFE, 0xFF, ..] => Err(at_start(
            "big-endian UTF-16, which regedit does not support",
        )),
        [0xEF, 0xBB, 0xBF, rest @ ..] => utf8(rest),
        _ if bytes
            .trim_ascii_start()
            .starts_with(NARROW_HEADER.as_bytes()) =>
        {
            Ok(western(bytes))
        }
        _ => utf8(bytes),
    }
}

/// Text in the Western code page.
pub(super) fn western(bytes: &[u8]) -> String {
    bytes
        .iter()
        .map(|&byte| match byte {
            0x80..=0x9F => WESTERN[usize::from(byte - 0x80)],
            _ => char::from(byte),
        })
        .collect()
}

fn utf8(bytes: &[u8]) -> Result<String, RegFileError> {
    str::from_utf8(bytes).map(str::to_owned).map_err(|error| {
        let before = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let line = before.lines().count().max(1);
        let column = before.lines().last().map_or(0, |last| last.chars().count()) + 1;
        RegFileError {
            line,
            column,
            problem: "neither UTF-8 nor UTF-16 with a byte order mark".to_owned(),
        }
    })
}

fn at_start(problem: &str) -> RegFileError {
    RegFileError {
        line: 1,
        column: 1,
        problem: problem.to_owned(),
    }
}
