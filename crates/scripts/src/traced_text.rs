//! Text with the source position of each character.

use std::ops::Range;

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
        let mut arguments = Vec::new();
        if !self.text.contains('"') {
            let mut start = 0;
            for word in self.text.split([' ', '\t']) {
                if !word.is_empty() {
                    arguments.push(self.part(start..start + word.len()));
                }
                start += word.len() + 1;
            }
            return arguments;
        }
        let mut current: Option<Self> = None;
        let mut quoted = false;
        let mut backslashes: Vec<usize> = Vec::new();
        let mut characters = self.characters().peekable();
        while let Some((c, at)) = characters.next() {
            if c == '\\' {
                backslashes.push(at);
                current.get_or_insert_default();
                continue;
            }
            let kept = if c == '"' {
                backslashes.len() / 2
            } else {
                backslashes.len()
            };
            let is_escaped = c == '"' && backslashes.len() % 2 == 1;
            if let Some(argument) = &mut current {
                for place in backslashes.drain(..).take(kept) {
                    argument.push('\\', place);
                }
            }
            match c {
                '"' if is_escaped => current.get_or_insert_default().push('"', at),
                '"' => {
                    let argument = current.get_or_insert_default();
                    if quoted && characters.next_if(|(next, _)| *next == '"').is_some() {
                        argument.push('"', at);
                    } else {
                        quoted = !quoted;
                    }
                }
                ' ' | '\t' if !quoted => arguments.extend(current.take()),
                _ => current.get_or_insert_default().push(c, at),
            }
        }
        if let Some(argument) = &mut current {
            for place in backslashes {
                argument.push('\\', place);
            }
        }
        arguments.extend(current);
        arguments
    }
}
