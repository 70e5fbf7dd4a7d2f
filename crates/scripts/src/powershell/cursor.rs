//! Position in a script that is parsed.

use wincimg_windows::quoting::powershell::{is_double_quote, is_single_quote};

use super::super::error::ScriptError;

/// A script that is parsed from its start.
pub(super) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    /// Depth of nested brackets, blocks and scripts.
    pub(super) depth: usize,
    /// Number of commands so far, without those in script blocks.
    pub(super) commands: usize,
    /// True if a comma ends an expression, as in the arguments of a method.
    pub(super) is_argument: bool,
    /// True if `&&` and `||` end the process: Windows PowerShell reads the script as its command line.
    pub(super) fails_at_chains: bool,
    /// The first syntax that the interpreter does not run.
    pub(super) unsupported: Option<ScriptError>,
}

/// Returns true for a quote of either kind.
pub(super) fn is_quote(c: char) -> bool {
    is_double_quote(c) || is_single_quote(c)
}

/// Returns true for a character of a name.
pub(super) fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns true for a character that ends a word of a command.
pub(super) fn ends_word(c: char) -> bool {
    c.is_whitespace() || "(){};,|&<>".contains(c)
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            commands: 0,
            is_argument: false,
            fails_at_chains: false,
            unsupported: None,
        }
    }

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

    /// Reads `$name` or `$scope:name` and returns the name in lower case. Question marks and colons
    /// belong to it; two colons are an operator.
    pub(super) fn variable_name(&mut self) -> String {
        self.next();
        let start = self.at;
        loop {
            self.take_while(|c| is_name(c) || c == '?');
            if self.peek() != Some(':') || self.second() == Some(':') {
                break;
            }
            self.next();
        }
        let name = self.text[start..self.at].to_lowercase();
        if let Some(drive) = name.strip_suffix(':')
            && !drive.contains(':')
        {
            let why = format!("${name} is the variable without a name of a drive");
            let error = ScriptError::unclear(why).help("write ${name} before a colon");
            self.refuse(error.at_position(start));
        }
        name
    }

    pub(super) fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| !keep(c)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }
}
