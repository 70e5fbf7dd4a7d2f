//! Position in a PowerShell script that is read.

/// A script that is read from its start, with what its reader remembers.
pub(super) struct Cursor<'a, S> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    /// Depth of nested brackets, blocks and scripts.
    pub(super) depth: usize,
    pub(super) state: S,
}

/// Returns true for a character that ends a word of a command.
pub(super) fn ends_word(c: char) -> bool {
    c.is_whitespace() || "(){};,|&<>".contains(c)
}

impl<'a, S: Default> Cursor<'a, S> {
    pub(super) fn new(text: &'a str, depth: usize) -> Self {
        Self {
            text,
            at: 0,
            depth,
            state: S::default(),
        }
    }
}

impl<'a, S> Cursor<'a, S> {
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    pub(super) fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    pub(super) fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| !keep(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }
}
