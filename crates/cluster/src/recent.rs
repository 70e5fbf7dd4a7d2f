//! What was read last, for errors in lists that are too long to be kept.

use std::io::{self, Read};

use wincimg_common::diagnose::Excerpt;
use wincimg_common::excerpt::json_offset;

/// More of a line than this is not shown.
const KEPT: usize = 4096;

/// Passes bytes on and remembers the last of them.
pub(super) struct Recent<R> {
    source: R,
    kept: Vec<u8>,
    /// The lines that ended so far.
    lines: usize,
}

impl<R: Read> Recent<R> {
    pub(super) fn new(source: R) -> Self {
        Self {
            source,
            kept: Vec::with_capacity(3 * KEPT),
            lines: 0,
        }
    }

    /// The place, in a line that was just read and in what follows of it; the column is in bytes.
    pub(super) fn excerpt(mut self, line: usize, column: usize) -> Excerpt {
        // The parser may have seen the line's end, and the next line's beginning.
        let back = (self.lines + 1).saturating_sub(line);
        let mut lines = self.kept.rsplit(|byte| *byte == b'\n');
        let mut found = lines.nth(back).unwrap_or_default().to_vec();
        // Of a line without an end, as programs write JSON, the beginning is forgotten.
        let forgotten = if back == 0 {
            column.saturating_sub(found.len())
        } else {
            0
        };
        if back == 0 {
            let mut rest = Vec::new();
            // What cannot be read is not shown.
            let _ = self
                .source
                .by_ref()
                .take(KEPT as u64)
                .read_to_end(&mut rest);
            let rest = rest.split(|byte| *byte == b'\n').next();
            found.extend_from_slice(rest.unwrap_or_default());
        }
        let column = column.saturating_sub(1).saturating_sub(forgotten);
        let before = found.get(..column).unwrap_or(&found);
        let start = String::from_utf8_lossy(before);
        let behind = String::from_utf8_lossy(&found[before.len()..]);
        let text = [start.as_ref(), behind.as_ref()].concat();
        Excerpt::of_line_at(line, &text, json_offset(&text, start.len()))
    }
}

impl<R: Read> Read for Recent<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = self.source.read(buffer)?;
        let read = &buffer[..length];
        self.lines += read.split(|byte| *byte == b'\n').skip(1).count();
        self.kept.extend_from_slice(read);
        if self.kept.len() > 2 * KEPT {
            self.kept.drain(..self.kept.len() - KEPT);
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> String {
        let mut recent = Recent::new(text.as_bytes());
        let error = serde_json::from_reader::<_, Vec<u32>>(&mut recent).unwrap_err();
        recent.excerpt(error.line(), error.column()).to_string()
    }

    #[test]
    fn a_place_is_shown_with_what_was_not_read_yet() {
        assert_eq!(
            shown("[1,\n  2, \"three\", 4\n]\n"),
            "  2 |   2, \"three\", 4\n    |      ^^^^^^^"
        );
        assert_eq!(shown("[1,\n  tru,\n]"), "  2 |   tru,\n    |   ^^^");
        let long = format!("[{} x, 4]", "1, ".repeat(9000));
        let shown = shown(&long);
        let (first, second) = shown.split_once('\n').unwrap();
        let at = second.find('^').unwrap();
        assert_eq!(first.chars().nth(at), Some('x'), "{shown}");
    }

    proptest! {
        #[test]
        fn any_place_of_any_bytes_can_be_asked_for(
            bytes in proptest::collection::vec(any::<u8>(), 0..300),
            read in 0usize..300,
            line in 0usize..10,
            column in 0usize..400,
        ) {
            let mut recent = Recent::new(bytes.as_slice());
            let mut start = vec![0; read];
            let _ = recent.read(&mut start).unwrap();
            let excerpt = recent.excerpt(line, column).to_string();
            prop_assert_eq!(excerpt.lines().count(), 2);
        }
    }
}
