//! A command line with the position of each character in the instruction, and its words.

use std::ops::Range;

use wincimg_windows::quoting::argv::{self, ArgvParser};

/// A text with the position of each byte in the instruction's text.
#[derive(Debug, Clone, Default)]
pub(super) struct SourceLine {
    pub(super) text: String,
    at: Vec<usize>,
}

/// A word of a command line.
#[derive(Debug, Clone)]
pub(super) struct Word {
    pub(super) value: String,
    /// Range in the line.
    pub(super) range: Range<usize>,
}

/// A double quote in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Quote {
    pub(super) at: usize,
    pub(super) backslashes: usize,
}

/// A part between two grouping quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct QuotedSpan {
    pub(super) open: Quote,
    pub(super) close: Quote,
    /// True if it contains quotes for the program.
    pub(super) has_literal: bool,
}

impl QuotedSpan {
    pub(super) fn new(open: Quote, close: Quote) -> Self {
        Self {
            open,
            close,
            has_literal: false,
        }
    }
}

impl SourceLine {
    pub(super) fn new(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            at: (0..text.len()).collect(),
        }
    }

    pub(super) fn push(&mut self, c: char, at: usize) {
        self.text.push(c);
        self.at.extend((0..c.len_utf8()).map(|byte| at + byte));
    }

    /// Position of a byte of the line in the instruction's text.
    pub(super) fn origin(&self, at: usize) -> usize {
        self.at.get(at).copied().unwrap_or_default()
    }

    pub(super) fn from(&self, start: usize) -> Self {
        Self {
            text: self.text[start..].to_owned(),
            at: self.at[start..].to_owned(),
        }
    }

    pub(super) fn truncate(&mut self, length: usize) {
        self.text.truncate(length);
        self.at.truncate(length);
    }

    /// Splits the line into words like the C runtime.
    pub(super) fn words(&self) -> Vec<Word> {
        let push = |it: &mut String, _, c| it.push(c);
        let words = argv::fold_arguments(&self.text, ArgvParser::CRuntime, push).into_iter();
        words.map(|(range, value)| Word { value, range }).collect()
    }

    /// The quoted parts, and true if the last of them is closed.
    pub(super) fn parts(&self) -> (Vec<QuotedSpan>, bool) {
        let mut parts = Vec::new();
        let mut open: Option<(Quote, bool)> = None;
        let mut backslashes = 0;
        let mut characters = self.text.char_indices().peekable();
        while let Some((at, c)) = characters.next() {
            if c == '\\' {
                backslashes += 1;
                continue;
            }
            if c == '"' {
                let quote = Quote { at, backslashes };
                let doubled = open.is_some()
                    && backslashes % 2 == 0
                    && characters.next_if(|(_, next)| *next == '"').is_some();
                if backslashes % 2 == 1 || doubled {
                    if let Some((_, has_literal)) = &mut open {
                        *has_literal = true;
                    }
                } else if let Some((open, has_literal)) = open.take() {
                    parts.push(QuotedSpan {
                        open,
                        close: quote,
                        has_literal,
                    });
                } else {
                    open = Some((quote, false));
                }
            }
            backslashes = 0;
        }
        (parts, open.is_none())
    }

    /// The texts before a part, in its quotes and after it.
    pub(super) fn around(&self, part: QuotedSpan) -> (&str, &str, &str) {
        let (before, rest) = self.text.split_at(part.open.at);
        let (inside, after) = rest.split_at(part.close.at - part.open.at);
        (before, &inside[1..], &after[1..])
    }

    /// True for quotes in quotes, which end the outer ones: `"a "b" c"`.
    pub(super) fn is_nested(&self) -> bool {
        let (parts, _) = self.parts();
        parts.windows(2).any(|pair| {
            let [first, second] = pair else { return false };
            let inside = &self.text[first.open.at + 1..first.close.at];
            let between = &self.text[first.close.at + 1..second.open.at];
            let is_word =
                |c: char| c.is_alphanumeric() || matches!(c, '\\' | '/' | ')' | '}' | '$');
            inside.trim_start().contains(' ')
                && between.starts_with(is_word)
                && between.ends_with(is_word)
        })
    }

    /// All quotes in pairs, as at a prompt, where a backslash before a quote ends a path; `None`
    /// without such a backslash.
    pub(super) fn pairs(&self) -> Option<Vec<QuotedSpan>> {
        let quotes: Vec<Quote> = self
            .text
            .match_indices('"')
            .map(|(at, _)| Quote {
                at,
                backslashes: at - self.text[..at].trim_end_matches('\\').len(),
            })
            .collect();
        let is_last = |pair: &[Quote]| pair.last().is_some_and(|quote| quote.backslashes % 2 == 1);
        if !quotes.chunks(2).any(is_last) {
            return None;
        }
        quotes
            .chunks(2)
            .map(|pair| match *pair {
                [open, close] if open.backslashes == 0 => {
                    let after = self.text[close.at + 1..].chars().next();
                    let ends = after.is_none_or(|c| c.is_whitespace() || ";,)|}".contains(c));
                    (close.backslashes % 2 == 0 || ends).then_some(QuotedSpan::new(open, close))
                }
                _ => None,
            })
            .collect()
    }
}
