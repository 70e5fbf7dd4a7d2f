//! The line of a text with an error, with carets under the word.
//!
//! ```text
//!   3 | base = nanoserver
//!     |        ^^^^^^^^^^
//! ```
//!
//! Existing libraries print files unchanged, but these lines are untrusted. Here, control
//! characters and bidirectional marks are escaped before measuring, tabs and wide characters count
//! their width on a terminal, and a long line is cut around the word.

use std::fmt;
use std::ops::Range;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::diagnose::line_and_column;
use crate::untrusted::UntrustedText;

/// Maximum width of a line.
const WIDEST: usize = 100;
/// Maximum width of the marked word in a line that is cut.
const WIDEST_WORD: usize = 60;
const TAB: &str = "    ";
const CUT: &str = "…";

/// A line with a marked word, ready to print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Excerpt {
    file: Option<Box<str>>,
    /// Counted from 1; `None` for a command-line argument.
    number: Option<usize>,
    line: String,
    /// Columns before the mark.
    indent: usize,
    /// Columns of the mark.
    width: usize,
}

impl Excerpt {
    /// Adds the name of the file with the line.
    #[must_use]
    pub fn in_file(self, name: &str) -> Self {
        Self {
            file: Some(name.into()),
            ..self
        }
    }

    /// The name of the file with the line, if known.
    pub fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// The number of the line, counted from 1, unless it is a command-line argument.
    pub fn line(&self) -> Option<usize> {
        self.number
    }

    /// Marks the word at a byte offset of a text.
    pub fn at(text: &str, offset: usize) -> Self {
        Self::from_span(text, offset..offset)
    }

    /// Marks a span of a text, up to the end of its first line; an empty span marks its word.
    pub fn from_span(text: &str, span: Range<usize>) -> Self {
        let (number, _) = line_and_column(text, span.start);
        let (start, line) = nth_line(text, number);
        let inside = |offset: usize| line.floor_char_boundary(offset.saturating_sub(start));
        let mut word = inside(span.start)..inside(span.end);
        if word.is_empty() {
            word = word_at(line, word.start);
        }
        let before = visible(&line[..word.start]);
        let fits = visible(line).width() <= WIDEST;
        let most = if fits { WIDEST } else { WIDEST_WORD };
        let marked = cut_end(&visible(&line[word.clone()]), most);
        let behind = visible(&line[word.end..]);
        let room = WIDEST.saturating_sub(marked.width());
        let kept_behind = behind.width().min(room / 3);
        let before = cut_start(&before, room - kept_behind);
        let behind = cut_end(&behind, room.saturating_sub(before.width()));
        Self {
            file: None,
            number: Some(number),
            line: visible(&[before.as_str(), &marked, &behind].concat()),
            indent: before.width(),
            width: marked.width().max(1),
        }
    }

    /// Marks the word at a line and column, counted from 1, in characters.
    pub fn at_place(text: &str, line: usize, column: usize) -> Self {
        let (start, found) = nth_line(text, line);
        let mut characters = found.char_indices().map(|(at, _)| at);
        let offset = characters.nth(column.saturating_sub(1));
        Self::at(text, start + offset.unwrap_or(found.len()))
    }

    /// Marks the word at a line and column, counted from 1, in bytes, as reported by JSON parsers.
    pub fn at_byte(text: &str, line: usize, column: usize) -> Self {
        let (start, found) = nth_line(text, line);
        Self::at(text, start + json_offset(found, column.saturating_sub(1)))
    }

    /// Marks a line of a file that may contain secrets: shows only its punctuation and known words.
    pub fn redacted(text: &str, line: usize, column: usize, known: &[&str]) -> Self {
        let (_, found) = nth_line(text, line);
        let word = word_at(found, found.floor_char_boundary(column.saturating_sub(1)));
        let hidden = hide_words(found, known);
        let before = hide_words(&found[..word.start], known);
        Self::at(&hidden, before.len()).numbered(line)
    }

    /// Marks a span of a command-line argument.
    pub fn from_argument(argument: &str, span: Range<usize>) -> Self {
        Self {
            number: None,
            ..Self::from_span(argument, span)
        }
    }

    /// Marks the text of a whole line.
    pub fn from_line(number: usize, line: &str) -> Self {
        let start = line.len() - line.trim_start().len();
        Self::from_span(line, start..line.trim_end().len()).numbered(number)
    }

    /// Marks the first quoted word or flag of a message that occurs in the line, else the whole
    /// line.
    pub fn from_quoted(number: usize, line: &str, message: &str) -> Self {
        let quoted = message.split('"').skip(1).step_by(2);
        let flags = message
            .split([' ', ':', ',', ';'])
            .filter(|it| it.starts_with("--"));
        let places = quoted.chain(flags).filter(|word| !word.is_empty());
        let mut places = places.filter_map(|word| Some((line.find(word)?, word.len())));
        match places.next() {
            Some((start, length)) => Self::from_span(line, start..start + length).numbered(number),
            None => Self::from_line(number, line),
        }
    }

    /// Marks the words of a line that differ from another line.
    pub fn from_diff(number: usize, line: &str, changed: &str) -> Self {
        let start: usize = line
            .chars()
            .zip(changed.chars())
            .take_while(|(a, b)| a == b)
            .map(|(c, _)| c.len_utf8())
            .sum();
        let same_end: usize = line[start..]
            .chars()
            .rev()
            .zip(changed[start..].chars().rev())
            .take_while(|(a, b)| a == b)
            .map(|(c, _)| c.len_utf8())
            .sum();
        let end = line.len() - same_end;
        // A word that differs in part is marked whole.
        let start = word_at(line, start).start;
        let end = match line[..end].chars().next_back() {
            Some(last) if end > start => word_at(line, end - last.len_utf8()).end,
            _ => end.max(start),
        };
        Self::from_span(line, start..end).numbered(number)
    }

    /// Sets the number of its line.
    fn numbered(self, number: usize) -> Self {
        let number = Some(number);
        Self { number, ..self }
    }

    /// Renders the lines, optionally in colour.
    pub fn render(&self, colour: bool) -> String {
        let indent = " ".repeat(self.indent);
        let mark = paint(colour, "1;31", "^".repeat(self.width));
        let Some(number) = self.number else {
            return format!("  {}\n  {indent}{mark}", self.line);
        };
        let gap = " ".repeat(number.to_string().len());
        let first = paint(colour, "34", format_args!("{number} |"));
        let second = paint(colour, "34", format_args!("{gap} |"));
        let line = [&first, " ", &self.line].concat();
        format!("  {}\n  {second} {indent}{mark}", line.trim_end())
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

/// A text in a colour, if the output supports colours.
pub fn paint(is_coloured: bool, code: &str, text: impl fmt::Display) -> String {
    if is_coloured {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_string()
    }
}

/// Returns offset and text of a line, counted from 1; after the last line, an empty one.
fn nth_line(text: &str, number: usize) -> (usize, &str) {
    let mut start = 0;
    for _ in 1..number {
        match text[start..].find('\n') {
            Some(end) => start += end + 1,
            None => return (text.len(), ""),
        }
    }
    (start, text[start..].lines().next().unwrap_or_default())
}

/// Returns the offset where a JSON parser stopped, or the end of the value before it.
fn json_offset(line: &str, offset: usize) -> usize {
    let offset = line.floor_char_boundary(offset);
    let is_behind = line[offset..].starts_with([',', ']', '}']);
    let before = line[..offset].chars().next_back();
    match before.filter(|c| is_behind && (c.is_alphanumeric() || *c == '"')) {
        Some(last) => offset - last.len_utf8(),
        None => offset,
    }
}

/// Returns the word at a byte of a line: a quoted text, or letters and characters that join them.
fn word_at(line: &str, at: usize) -> Range<usize> {
    let Some(here) = line[at..].chars().next() else {
        return at..at;
    };
    let end = at + here.len_utf8();
    if matches!(here, '"' | '\'') {
        let opens = line[..at].matches(here).count() % 2 == 0;
        return if opens {
            let length = line[end..].find(here);
            at..length.map_or(end, |length| end + length + 1)
        } else {
            line[..at].rfind(here).unwrap_or(at)..end
        };
    }
    let joins = |c: char| c.is_alphanumeric() || "_-./\\".contains(c);
    if !joins(here) {
        return at..end;
    }
    let start = line[..at].rfind(|c| !joins(c));
    let start = start.map_or(0, |at| {
        at + line[at..].chars().next().map_or(1, char::len_utf8)
    });
    let length = line[end..].find(|c| !joins(c));
    start..length.map_or(line.len(), |length| end + length)
}

fn visible(text: &str) -> String {
    UntrustedText(text.replace('\t', TAB)).to_string()
}

fn width_of(c: char) -> usize {
    c.width().unwrap_or_default()
}

/// Cuts the end of a text to a width in columns.
fn cut_end(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let fits = text.chars().take_while(|c| {
        let width = width_of(*c);
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    });
    fits.chain(CUT.chars()).collect()
}

/// Cuts the beginning of a text to a width in columns.
fn cut_start(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut left = columns.saturating_sub(1);
    let mut start = text.len();
    for (at, c) in text.char_indices().rev() {
        let width = width_of(c);
        if width > left {
            break;
        }
        left -= width;
        start = at;
    }
    [CUT, &text[start..]].concat()
}

/// Replaces every unknown word by `…`.
fn hide_words(text: &str, known: &[&str]) -> String {
    let is_structure = |c: char| c.is_whitespace() || "{}[]:,\"".contains(c);
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if is_structure(first) {
            shown.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let end = rest.find(is_structure).unwrap_or(rest.len());
        let word = &rest[..end];
        shown += if known.contains(&word) { word } else { CUT };
        rest = &rest[end..];
    }
    shown
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str, offset: usize) -> String {
        Excerpt::at(text, offset).to_string()
    }

    #[test]
    fn a_word_is_marked_from_its_first_to_its_last_column() {
        let text = "a = 1\n\tç = two\n";
        assert_eq!(at(text, 12), "  2 |     ç = two\n    |         ^^^");
        assert_eq!(at(text, 99), "  3 |\n    | ^");
        assert_eq!(at("漢字 = true", 9), "  1 | 漢字 = true\n    |        ^^^^");
        let number = Excerpt::at_byte("{\"a\": 7}", 1, 8).to_string();
        assert_eq!(number, "  1 | {\"a\": 7}\n    |       ^");
        let quoted = "{\"a\": \"b c\"}";
        let marked = "  1 | {\"a\": \"b c\"}\n    |       ^^^^^";
        assert_eq!(at(quoted, 6), marked, "its beginning");
        assert_eq!(at(quoted, 10), marked, "its end");
        let typed = Excerpt::from_argument("--set prot=…", 6..10);
        assert_eq!(typed.to_string(), "  --set prot=…\n        ^^^^");
    }

    #[test]
    fn places_are_counted_as_parsers_count_them() {
        let text = "é: [\nö: x\n";
        let shown = "  2 | ö: x\n    |    ^";
        assert_eq!(Excerpt::at_place(text, 2, 4).to_string(), shown);
        assert_eq!(Excerpt::at_byte(text, 2, 5).to_string(), shown);
        assert_eq!(Excerpt::at_place("", 7, 7).to_string(), "  1 |\n    | ^");
    }

    #[test]
    fn what_moves_the_cursor_is_escaped_before_the_mark_is_placed() {
        let shown = at("\x1b[2J\u{202e} oops", 8);
        let expected = "  1 | \\u{1b}[2J\\u{202e} oops\n    |                   ^^^^";
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_long_line_is_cut_around_the_word() {
        let line = format!("{} wrong {}", "a ".repeat(200), "b ".repeat(200));
        let excerpt = Excerpt::from_span(&line, 401..406);
        let shown = excerpt.to_string();
        let (first, second) = shown.split_once('\n').unwrap_or_default();
        let (start, end) = (second.find('^').unwrap_or_default(), second.len());
        let marked: String = first.chars().skip(start).take(end - start).collect();
        assert_eq!(marked, "wrong", "{shown}");
        assert!(first.contains("| …") && first.ends_with('…'), "{shown}");
    }

    #[test]
    fn a_change_is_marked_by_whole_words() {
        let marked = |line, changed| {
            let excerpt = Excerpt::from_diff(7, line, changed);
            line[excerpt.indent..excerpt.indent + excerpt.width].to_owned()
        };
        for (line, changed, expected) in [
            ("add /t REG_SZ /d 5", "add /t REG_DWORD /d 5", "REG_SZ"),
            ("RUN a \"b c\" d", "RUN a 'b c' d", "\"b c\""),
            ("one two three", "one four three", "two"),
            ("FROM a:ltsc2019", "FROM a:10.0.17763.973", "ltsc2019"),
        ] {
            assert_eq!(marked(line, changed), expected);
        }
    }

    #[test]
    fn what_a_message_quotes_is_marked_and_else_the_line() {
        let shown = |message| Excerpt::from_quoted(3, "COPY --form=x a b", message).to_string();
        let expected = "  3 | COPY --form=x a b\n    |      ^^^^^^";
        assert_eq!(shown("unknown flag \"--form\""), expected);
        assert_eq!(shown("no flag --form: x"), shown("no \"--form\""));
        let expected = "  3 | COPY --form=x a b\n    | ^^^^^^^^^^^^^^^^^";
        assert_eq!(shown("it needs \"more\""), expected);
    }

    #[test]
    fn a_line_that_fits_is_shown_whole() {
        let line = "x".repeat(WIDEST);
        let shown = Excerpt::from_line(1, &line).to_string();
        assert_eq!(shown, format!("  1 | {line}\n    | {}", "^".repeat(WIDEST)));
    }

    #[test]
    fn nothing_of_a_secret_is_shown() {
        let text = "{\"auths\": {\"repo.lan\": {\"auth\": SECRET=, \"password\": \"S:E\"}}}";
        let shown = Excerpt::redacted(text, 1, 33, &["auths", "auth"]).to_string();
        let expected = "  1 | {\"auths\": {\"…\": {\"auth\": …, \"…\": \"…:…\"}}}\n    |                          ^";
        assert_eq!(shown, expected);
    }

    #[test]
    fn colours_are_around_the_number_and_the_mark_alone() {
        let shown = Excerpt::at("a = b", 4).render(true);
        let expected = "  \x1b[34m1 |\x1b[0m a = b\n  \x1b[34m  |\x1b[0m     \x1b[1;31m^\x1b[0m";
        assert_eq!(shown, expected);
    }

    proptest! {
        #[test]
        fn every_place_of_every_text_has_two_harmless_lines(
            text in "[\\PC\\p{Cc}\u{202e}\"'#\n\t]{0,300}",
            start in 0usize..400,
            length in 0usize..200,
        ) {
            for excerpt in [
                Excerpt::from_span(&text, start..start + length),
                Excerpt::at_place(&text, start / 20, length),
                Excerpt::at_byte(&text, start / 20, length),
                Excerpt::redacted(&text, start / 20, length, &["a"]),
            ] {
                let shown = excerpt.to_string();
                prop_assert_eq!(shown.lines().count(), 2);
                prop_assert!(!shown.chars().any(|c| c.is_control() && c != '\n'));
                prop_assert!(excerpt.indent + excerpt.width <= 2 * WIDEST, "{}", shown);
            }
        }
    }
}
