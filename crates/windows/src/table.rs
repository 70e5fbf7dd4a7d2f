//! Reads the embedded tab-separated tables.

use std::str::FromStr;

/// An invalid row of a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TableError {
    /// Counted from 1, comments included.
    pub line: usize,
    /// The problem.
    pub problem: String,
}

/// The fields of one row, read from left to right.
pub struct TableRow<'a> {
    line: usize,
    fields: std::str::Split<'a, char>,
}

impl<'a> TableRow<'a> {
    /// An error about this row.
    pub fn error(&self, problem: impl Into<String>) -> TableError {
        TableError {
            line: self.line,
            problem: problem.into(),
        }
    }

    /// The next field.
    pub fn text(&mut self, name: &str) -> Result<&'a str, TableError> {
        match self.fields.next() {
            Some(field) => Ok(field),
            None => Err(self.error(format!("missing {name}"))),
        }
    }

    /// The next field, parsed.
    pub fn value<T: FromStr>(&mut self, name: &str) -> Result<T, TableError> {
        let text = self.text(name)?;
        text.parse().map_err(|_| self.invalid(name, text))
    }

    /// A field with one of these words.
    pub fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> Result<T, TableError> {
        let text = self.text(name)?;
        let found = words.iter().find(|(word, _)| *word == text);
        found
            .map(|(_, value)| *value)
            .ok_or_else(|| self.invalid(name, text))
    }

    /// A field that is `-` or empty for none.
    pub(crate) fn optional_text(&mut self, name: &str) -> Result<Option<&'a str>, TableError> {
        let text = self.text(name)?;
        Ok(Some(text).filter(|text| !text.is_empty() && *text != "-"))
    }

    /// An optional field, parsed.
    pub fn optional<T: FromStr>(&mut self, name: &str) -> Result<Option<T>, TableError> {
        let text = self.optional_text(name)?;
        text.map(|text| text.parse().map_err(|_| self.invalid(name, text)))
            .transpose()
    }

    /// A field with a list of texts.
    pub fn list(&mut self, name: &str, separator: char) -> Result<Vec<&'a str>, TableError> {
        let text = self.optional_text(name)?;
        Ok(text
            .map(|text| text.split(separator).map(str::trim).collect())
            .unwrap_or_default())
    }

    fn invalid(&self, name: &str, text: &str) -> TableError {
        self.error(format!("invalid {name} {text:?}"))
    }
}

/// The rows of a table that the program carries.
pub(crate) fn embedded<T>(
    text: &'static str,
    read: impl Fn(&mut TableRow<'static>) -> Result<T, TableError>,
) -> Vec<T> {
    #[expect(clippy::expect_used, reason = "embedded; a test reads every row")]
    read_rows(text, read).expect("the embedded table is sound")
}

/// Reads every row that is neither empty nor a comment with `read`; surplus fields are an error.
pub fn read_rows<'a, T>(
    text: &'a str,
    read: impl Fn(&mut TableRow<'a>) -> Result<T, TableError>,
) -> Result<Vec<T>, TableError> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(index, line)| {
            let mut row = TableRow {
                line: index + 1,
                fields: line.split('\t'),
            };
            let value = read(&mut row)?;
            match row.fields.next() {
                None => Ok(value),
                Some(extra) => Err(row.error(format!("surplus field {extra:?}"))),
            }
        })
        .collect()
}
