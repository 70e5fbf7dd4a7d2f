//! JSON for a terminal or a log: characters that move the cursor or the direction of text are
//! escaped, which changes nothing for a parser. Long lists are made while they are written.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::{Formatter, PrettyFormatter};

use super::untrusted::is_harmful;

/// Writes a value as an indented document.
pub fn write_pretty(out: impl Write, value: &impl Serialize) -> io::Result<()> {
    let formatter = EscapingFormatter(PrettyFormatter::new());
    let mut serializer = Serializer::with_formatter(out, formatter);
    Ok(value.serialize(&mut serializer)?)
}

/// A list whose items are made while it is written, so that they are not in memory at once.
pub struct LazyList<F>(pub F);

impl<F: Fn() -> I, I: Iterator<Item: Serialize>> Serialize for LazyList<F> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// The pretty formatter, with more characters escaped.
struct EscapingFormatter(PrettyFormatter<'static>);

impl Formatter for EscapingFormatter {
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_harmful(*c)) {
            writer.write_all(&rest.as_bytes()[..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            rest = &rest[at + c.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }

    fn begin_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_array_value(writer, first)
    }

    fn end_array_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: Write + ?Sized>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.0.begin_object_key(writer, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn written(value: &Value) -> String {
        let mut out = Vec::new();
        write_pretty(&mut out, value).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_moves_a_terminal_is_escaped() {
        let value = json!({ "a\u{9b}31m": ["x\u{202e}y", "\u{e0001}", "ä\u{7f}"] });
        let text = written(&value);
        let expected = "{\n  \"a\\u009b31m\": [\n    \"x\\u202ey\",\n    \"\\udb40\\udc01\",\n    \"ä\\u007f\"\n  ]\n}";
        assert_eq!(text, expected);
    }

    /// Is written as the number of those that exist.
    struct Item<'c>(&'c Cell<u32>);

    impl Drop for Item<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() - 1);
        }
    }

    impl Serialize for Item<'_> {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.serialize_u32(self.0.get())
        }
    }

    #[test]
    fn a_lazy_list_has_one_item_in_memory() {
        let count = &Cell::new(0);
        let list = LazyList(|| {
            (0..3).map(move |_| {
                count.set(count.get() + 1);
                Item(count)
            })
        });
        assert_eq!(serde_json::to_string(&list).unwrap(), "[1,1,1]");
    }

    proptest! {
        #[test]
        fn a_parser_reads_what_was_written(texts in prop::collection::vec(any::<String>(), 0..4)) {
            let value = json!({ "texts": texts, "none": [], "nothing": {} });
            let text = written(&value);
            prop_assert!(!text.chars().any(|c| c != '\n' && is_harmful(c)));
            prop_assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
        }
    }
}
