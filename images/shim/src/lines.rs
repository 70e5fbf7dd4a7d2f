//! The bytes of a log file as whole lines of UTF-8.

use alloc::string::String;
use alloc::vec::Vec;

/// A longer line comes in pieces of this many bytes, so that no file can fill the memory.
pub const LONGEST: usize = 64 << 10;

const UTF8_MARK: &[u8] = b"\xEF\xBB\xBF";
const UTF16_MARK: &[u8] = b"\xFF\xFE";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encoding {
    /// The file's first bytes are still to come.
    Unknown,
    /// UTF-8, or a code page, whose bytes go through as they are.
    Bytes,
    Utf16,
}

/// What was read of a file and is not a whole line yet.
#[derive(Debug)]
pub struct Lines {
    encoding: Encoding,
    /// Stands before each line.
    prefix: Vec<u8>,
    line: Vec<u8>,
    /// Bytes that are no whole character yet.
    rest: Vec<u8>,
}

impl Lines {
    /// Lines from the beginning of a file, each with the file's name before it, if there is one.
    pub fn new(name: &[u16]) -> Self {
        let mut prefix = String::from_utf16_lossy(name);
        if !prefix.is_empty() {
            prefix.push_str(": ");
        }
        Self {
            encoding: Encoding::Unknown,
            prefix: prefix.into_bytes(),
            line: Vec::new(),
            rest: Vec::new(),
        }
    }

    /// Leaves out the file's first bytes and all that is there, but for what they tell of its encoding.
    pub fn skip(&mut self, head: &[u8]) {
        self.push(head, &mut Vec::new());
        self.line.clear();
        self.rest.clear();
    }

    /// From now on it is another file, or the same one from its beginning: ends the last line.
    pub fn restart(&mut self, out: &mut Vec<u8>) {
        self.finish(out);
        self.encoding = Encoding::Unknown;
    }

    /// Whether two bytes are a unit.
    pub fn is_utf16(&self) -> bool {
        self.encoding == Encoding::Utf16
    }

    /// Takes the file's next bytes and puts out the lines that they complete. Zeros are left out: they
    /// are where a program has not written yet.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.rest.extend_from_slice(bytes);
        let rest = core::mem::take(&mut self.rest);
        let mut rest = rest.as_slice();
        if self.encoding == Encoding::Unknown {
            let is_part = |mark: &[u8]| mark.len() > rest.len() && mark.starts_with(rest);
            if is_part(UTF8_MARK) || is_part(UTF16_MARK) {
                self.rest.extend_from_slice(rest);
                return;
            }
            self.encoding = Encoding::Bytes;
            if let Some(after) = rest.strip_prefix(UTF8_MARK) {
                rest = after;
            } else if let Some(after) = rest.strip_prefix(UTF16_MARK) {
                self.encoding = Encoding::Utf16;
                rest = after;
            }
        }
        if self.is_utf16() {
            let (whole, part) = rest.split_at(whole_utf16(rest));
            self.rest.extend_from_slice(part);
            let units = whole.as_chunks().0.iter().copied().map(u16::from_le_bytes);
            for character in char::decode_utf16(units) {
                let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
                for &byte in character.encode_utf8(&mut [0; 4]).as_bytes() {
                    self.byte(byte, out);
                }
            }
        } else {
            for &byte in rest {
                self.byte(byte, out);
            }
        }
    }

    /// Puts out a last line without an end.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        if !self.line.is_empty() {
            self.end_line(out);
        }
        self.rest.clear();
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        match byte {
            b'\n' => self.end_line(out),
            0 => {}
            _ => {
                // Between two characters, if there are any.
                let is_inside = byte & 0xC0 == 0x80 && self.line.len() < LONGEST + 3;
                if self.line.len() >= LONGEST && !is_inside {
                    self.end_line(out);
                }
                self.line.push(byte);
            }
        }
    }

    fn end_line(&mut self, out: &mut Vec<u8>) {
        let line = self.line.strip_suffix(b"\r").unwrap_or(&self.line);
        out.extend_from_slice(&self.prefix);
        out.extend_from_slice(line);
        out.push(b'\n');
        self.line.clear();
    }
}

/// How many of the bytes are whole characters of UTF-16.
fn whole_utf16(bytes: &[u8]) -> usize {
    let units = bytes.as_chunks::<2>().0;
    let ends_high = units.last().is_some_and(|[_, high]| high & 0xFC == 0xD8);
    (units.len() - usize::from(ends_high)) * 2
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    /// What comes of a file, whatever pieces it is read in.
    #[track_caller]
    fn assert_lines(file: &[u8], expected: &str) {
        for size in 1..=file.len().max(1) {
            let mut lines = Lines::new(&[]);
            let mut out = Vec::new();
            for piece in file.chunks(size) {
                lines.push(piece, &mut out);
            }
            lines.finish(&mut out);
            assert_eq!(
                String::from_utf8_lossy(&out),
                expected,
                "in pieces of {size}"
            );
        }
    }

    fn utf16(text: &str) -> Vec<u8> {
        let units = core::iter::once(0xFEFF).chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn each_encoding_becomes_lines_of_utf_8() {
        assert_lines(b"", "");
        assert_lines("one\r\ntwo é\n\nlast".as_bytes(), "one\ntwo é\n\nlast\n");
        assert_lines("\u{feff}märk\n".as_bytes(), "märk\n");
        assert_lines(
            &utf16("Grüße\r\n\u{1F600} 日本\n"),
            "Grüße\n\u{1F600} 日本\n",
        );
        assert_lines(b"\xEF\xBBx\n", "\u{fffd}x\n");
    }

    #[test]
    fn broken_utf_16_is_replaced() {
        let mut file = utf16("a");
        file.extend([0x00, 0xD8, b'b', 0, b'\n', 0]);
        assert_lines(&file, "a\u{fffd}b\n");
    }

    #[test]
    fn a_code_page_goes_through_unchanged() {
        let mut out = Vec::new();
        Lines::new(&[]).push(b"Gr\xFC\xDFe\n", &mut out);
        assert_eq!(out, b"Gr\xFC\xDFe\n");
    }

    #[test]
    fn reserved_space_is_left_out() {
        assert_lines(b"one\0\0\0\ntwo\0", "one\ntwo\n");
        assert_lines(&utf16("one\0\ntwo\0"), "one\ntwo\n");
    }

    #[test]
    fn a_long_line_comes_in_pieces_between_characters() {
        let pieces = |file: &[u8]| {
            let mut lines = Lines::new(&[]);
            let mut out = Vec::new();
            lines.push(file, &mut out);
            lines.finish(&mut out);
            let pieces = out.split(|&byte| byte == b'\n').map(<[u8]>::len);
            pieces.collect::<Vec<_>>()
        };
        let exact = vec![b'x'; LONGEST];
        assert_eq!(pieces(&exact), [LONGEST, 0]);
        let mut long = b"x".to_vec();
        long.extend("é".repeat(LONGEST).bytes());
        assert_eq!(pieces(&long), [LONGEST + 1, LONGEST, 0]);
        assert!(
            pieces(&vec![0x80; 4 * LONGEST])
                .iter()
                .all(|&it| it <= LONGEST + 3)
        );
    }

    #[test]
    fn a_line_has_the_name_of_its_file_where_that_is_wanted() {
        let mut lines = Lines::new(&"a.log".encode_utf16().collect::<Vec<_>>());
        let mut out = Vec::new();
        lines.push(b"one\ntwo", &mut out);
        lines.restart(&mut out);
        lines.push(&utf16("three\n"), &mut out);
        assert_eq!(out, b"a.log: one\na.log: two\na.log: three\n");
    }

    #[test]
    fn what_is_skipped_still_tells_the_encoding() {
        let mut lines = Lines::new(&[]);
        let mut out = Vec::new();
        lines.skip(&utf16("old")[..3]);
        assert!(lines.is_utf16());
        lines.push(b"n\0e\0w\0\n\0", &mut out);
        assert_eq!(out, b"new\n");
    }
}
