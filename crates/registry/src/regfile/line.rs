//! A position in one line of a registration file, for error messages.

use super::RegFileError;

/// The unread rest of a line.
#[derive(Clone, Copy)]
pub(super) struct LineCursor<'t> {
    number: usize,
    whole: &'t str,
    rest: &'t str,
}

impl<'t> LineCursor<'t> {
    pub(super) fn new(number: usize, text: &'t str) -> Self {
        Self {
            number,
            whole: text,
            rest: text,
        }
    }

    pub(super) fn rest(&self) -> &'t str {
        self.rest
    }

    /// Consumes a text if it is next, ignoring case.
    pub(super) fn take(&mut self, text: &str) -> bool {
        match self.rest.get(..text.len()) {
            Some(start) if start.eq_ignore_ascii_case(text) => {
                self.rest = &self.rest[text.len()..];
                true
            }
            _ => false,
        }
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next()?;
        self.rest = chars.as_str();
        Some(next)
    }

    /// Consumes characters while the predicate holds.
    pub(super) fn take_while(&mut self, so: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !so(c)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(end);
        self.rest = rest;
        taken
    }

    pub(super) fn skip_blanks(&mut self) {
        self.take_while(|c| c == ' ' || c == '\t');
    }

    /// Returns true if only blanks and a comment are left.
    pub(super) fn is_done(mut self) -> bool {
        self.skip_blanks();
        self.rest.is_empty() || self.rest.starts_with(';')
    }

    /// Checks that only blanks and a comment are left.
    pub(super) fn end(mut self) -> Result<(), RegFileError> {
        self.skip_blanks();
        if self.is_done() {
            Ok(())
        } else {
            Err(self.expected("the end of the line"))
        }
    }

    /// Error that something else is expected at this position.
    pub(super) fn expected(&self, what: &str) -> RegFileError {
        self.error(format!("expected {what}"))
    }

    pub(super) fn error(&self, problem: impl Into<String>) -> RegFileError {
        let before = self.whole.len() - self.rest.len();
        RegFileError {
            line: self.number,
            column: self.whole[..before].chars().count() + 1,
            problem: problem.into(),
        }
    }
}
