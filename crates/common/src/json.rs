//! JSON for a terminal or a log: characters that move the cursor or the direction of text are
//! escaped, which changes nothing for a parser. Long lists are made while they are written.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Deserialize, Deserializer, Serialize};

use super::untrusted::is_harmful;

/// Writes a value as an indented document that ends with a newline.
pub fn write_pretty(mut out: impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(EscapingWriter(&mut out), value)?;
    out.write_all(b"\n")
}

/// Reads `null`, which Go writes for an empty list or map, as the empty value.
pub fn or_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}

/// Reads a map or `null`, and `null` as a value of it as the empty value, as Go does.
pub fn or_default_values<'de, D, V>(deserializer: D) -> Result<BTreeMap<String, V>, D::Error>
where
    D: Deserializer<'de>,
    V: Deserialize<'de> + Default,
{
    let map: BTreeMap<String, Option<V>> = or_default(deserializer)?;
    let values = map.into_iter();
    Ok(values
        .map(|(key, value)| (key, value.unwrap_or_default()))
        .collect())
}

/// A list whose items are made while it is written, so that they are not in memory at once.
pub struct LazyList<F>(pub F);

impl<F: Fn() -> I, I: Iterator<Item: Serialize>> Serialize for LazyList<F> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// Escapes characters of a document, which only its strings have.
pub struct EscapingWriter<W>(pub W);

impl<W: Write> Write for EscapingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.iter().all(|byte| matches!(byte, b' '..=b'~' | b'\n')) {
            self.0.write_all(bytes)?;
            return Ok(bytes.len());
        }
        // Whole characters are written at once.
        let mut rest = str::from_utf8(bytes).map_err(io::Error::other)?;
        let is_escaped = |(_, c): &(usize, char)| is_harmful(*c) && *c != '\n';
        while let Some((at, c)) = rest.char_indices().find(is_escaped) {
            self.0.write_all(&rest.as_bytes()[..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(self.0, "\\u{unit:04x}")?;
            }
            rest = &rest[at + c.len_utf8()..];
        }
        self.0.write_all(rest.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
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
        let expected = "{\n  \"a\\u009b31m\": [\n    \"x\\u202ey\",\n    \"\\udb40\\udc01\",\n    \"ä\\u007f\"\n  ]\n}\n";
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
