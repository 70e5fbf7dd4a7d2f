//! Text with the source position of each character.

use std::ops::Range;

use wincimg_windows::quoting::argv::{self, ArgvParser};

/// Text with, for each byte, its offset in the text after `RUN`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct TracedText {
    text: String,
    at: Vec<usize>,
}

impl TracedText {
    /// Creates a text with consecutive offsets from `from`.
    pub(super) fn new(text: &str, from: usize) -> Self {
        Self {
            text: text.to_owned(),
            at: (from..from + text.len()).collect(),
        }
    }

    /// Creates a text whose bytes all have the same offset.
    pub(super) fn from_one(text: &str, at: usize) -> Self {
        Self {
            text: text.to_owned(),
            at: vec![at; text.len()],
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Source offset of a byte; past the end, that of the last byte.
    pub(super) fn origin(&self, at: usize) -> usize {
        let last = self.at.len().saturating_sub(1);
        self.at.get(at.min(last)).copied().unwrap_or_default()
    }

    pub(super) fn push(&mut self, c: char, at: usize) {
        self.text.push(c);
        self.at.extend(std::iter::repeat_n(at, c.len_utf8()));
    }

    pub(super) fn append(&mut self, other: &Self) {
        self.text.push_str(&other.text);
        self.at.extend_from_slice(&other.at);
    }

    pub(super) fn part(&self, range: Range<usize>) -> Self {
        Self {
            text: self.text[range.clone()].to_owned(),
            at: self.at[range].to_owned(),
        }
    }

    pub(super) fn from(&self, start: usize) -> Self {
        self.part(start..self.text.len())
    }

    /// The text without these characters at its start.
    pub(super) fn trim_start(&self, trimmed: &[char]) -> Self {
        let kept = self.text.trim_start_matches(trimmed);
        self.from(self.text.len() - kept.len())
    }

    /// The first word without its quotes, which keep it together, and the text after it.
    pub(super) fn split_word(&self, ends: impl Fn(char) -> bool) -> (String, Self) {
        let mut quoted = false;
        let end = self.text.find(|c: char| {
            quoted ^= c == '"';
            !quoted && ends(c)
        });
        let end = end.unwrap_or(self.text.len());
        (self.text[..end].replace('"', ""), self.from(end))
    }

    /// Removes the last character.
    pub(super) fn pop(&mut self) {
        self.text.pop();
        self.at.truncate(self.text.len());
    }

    /// Characters with their offsets.
    pub(super) fn characters(&self) -> impl Iterator<Item = (char, usize)> + '_ {
        self.text.char_indices().map(|(at, c)| (c, self.at[at]))
    }

    /// The arguments without their positions.
    pub(super) fn words(&self) -> Vec<String> {
        let arguments = self.arguments().into_iter();
        arguments.map(|argument| argument.text).collect()
    }

    /// Splits the text into arguments as the C runtime does, without a program name.
    pub(super) fn arguments(&self) -> Vec<Self> {
        let push = |it: &mut Self, at: usize, c| it.push(c, self.at[at]);
        let arguments = argv::fold_arguments(&self.text, ArgvParser::CRuntime, push);
        arguments
            .into_iter()
            .map(|(_, argument)| argument)
            .collect()
    }
}

/// The parts of a text between dividers outside quotes, without empty ones; quotes are kept.
pub(super) fn split_unquoted(
    text: &str,
    is_divider: impl Fn(char) -> bool,
) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    let parts = text.split(move |c: char| {
        is_quoted ^= c == '"';
        !is_quoted && is_divider(c)
    });
    parts.filter(|part| !part.is_empty())
}
