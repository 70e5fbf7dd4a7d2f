//! Parser of strings, variables and words.

use wincimg_windows::quoting::powershell::{is_double_quote, is_single_quote};

use super::super::error::Result;
use super::ast::{Expression, StringPart};
use super::parse::{Parser, ends_word, is_name, is_quote};

impl Parser<'_> {
    pub(super) fn here_string(&mut self, is_literal: bool) -> Result<Expression> {
        // The quote may be a typographic one.
        self.next();
        self.next();
        self.take_while(|c| c.is_whitespace() && c != '\n');
        if self.next() != Some('\n') {
            return Err(self.error("unexpected text after @\""));
        }
        let end = if is_literal { "\n'@" } else { "\n\"@" };
        // An empty one has a single line end.
        let Some(length) = self.text[self.at - 1..].find(end) else {
            return Err(self.error("unclosed here-string"));
        };
        let inside = self.rest()[..length.saturating_sub(1)].to_owned();
        let inside = inside.strip_suffix('\r').unwrap_or(&inside).to_owned();
        self.at += length.saturating_sub(1) + end.len() - usize::from(length == 0);
        if is_literal || !inside.contains(['$', '`']) {
            return Ok(Expression::Text(inside));
        }
        self.refuse(self.error("variables in a here-string are not supported"));
        Ok(Expression::Text(inside))
    }

    /// Parses a string, from its opening quote.
    pub(super) fn string(&mut self) -> Result<Expression> {
        let start = self.at;
        let is_literal = self.next().is_some_and(is_single_quote);
        let closes = if is_literal {
            is_single_quote
        } else {
            is_double_quote
        };
        let mut pieces = Vec::new();
        let mut text = String::new();
        loop {
            let Some(c) = self.peek() else {
                self.at = start;
                return Err(self.error("unclosed quote"));
            };
            if closes(c) {
                self.next();
                match self.peek() {
                    Some(next) if closes(next) => {
                        self.next();
                        text.push(next);
                    }
                    _ => break,
                }
            } else if c == '`' && !is_literal {
                self.next();
                text.extend(self.escaped());
            } else if c == '$' && !is_literal {
                self.dollar(&mut pieces, &mut text)?;
            } else {
                self.next();
                text.push(c);
            }
        }
        if pieces.is_empty() {
            return Ok(Expression::Text(text));
        }
        push(&mut pieces, &mut text);
        Ok(Expression::Filled(pieces))
    }

    /// Parses a variable in a string, or a literal dollar sign.
    fn dollar(&mut self, pieces: &mut Vec<StringPart>, text: &mut String) -> Result<()> {
        match self.variable()? {
            Some(piece) => {
                push(pieces, text);
                pieces.push(piece);
            }
            None => {
                self.next();
                text.push('$');
            }
        }
        Ok(())
    }

    /// Reads the character after a backtick.
    fn escaped(&mut self) -> Option<char> {
        let c = self.next()?;
        if matches!(c, 'e' | 'u') && !self.fails_at_chains {
            self.refuse(self.error(format!("`{c} is another character in PowerShell 7")));
        }
        Some(match c {
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            '0' => '\0',
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'v' => '\u{b}',
            other => other,
        })
    }

    /// Parses `$name`, `${name}` or `$(script)`, if present.
    pub(super) fn variable(&mut self) -> Result<Option<StringPart>> {
        match self.second() {
            Some('(') => {
                self.at += 2;
                let statements = self.deeper(|parser| parser.statements(Some(')')))?;
                self.next();
                Ok(Some(StringPart::Script(statements)))
            }
            Some('{') => {
                let Some(end) = self.rest().find('}') else {
                    return Err(self.error("unclosed {"));
                };
                let name = self.rest()[2..end].to_lowercase();
                self.at += end + 1;
                Ok(Some(StringPart::Variable(name)))
            }
            Some(c @ ('$' | '?' | '^')) => {
                self.at += 2;
                Ok(Some(StringPart::Variable(c.to_string())))
            }
            Some(c) if is_name(c) => Ok(Some(StringPart::Variable(self.variable_name()))),
            _ => Ok(None),
        }
    }

    /// Parses an argument of a command.
    pub(super) fn argument(&mut self) -> Result<Expression> {
        let Some(c) = self.peek() else {
            return Err(self.expected("an argument"));
        };
        match c {
            '(' => return self.primary(),
            '{' => return self.script_block(),
            '@' if matches!(self.second(), Some('(' | '{' | '"' | '\'')) => return self.primary(),
            _ if ends_word(c) => return Err(self.expected("an argument")),
            _ => {}
        }
        if is_quote(c) {
            let string = self.string()?;
            let value = self.members(string)?;
            // Text directly after a closing quote is a separate argument.
            if self.peek().is_some_and(|c| !ends_word(c)) {
                self.refuse(self.error("text directly after a quote is not supported"));
            }
            return Ok(value);
        }
        if c == '$' {
            let start = self.at;
            let is_script = self.second() == Some('(');
            if let Some(piece) = self.variable()? {
                let after = self.rest();
                let value = self.members(from_part(piece))?;
                let members = &after[..after.len() - self.rest().len()];
                // What brackets have is read only once.
                let is_version = members.strip_prefix('.').is_some_and(|it| {
                    it.starts_with(|c: char| c.is_ascii_digit())
                        && it.chars().all(|c| is_name(c) || c == '.')
                });
                // Text directly after a member is a separate argument, as in `$file.zip/x`.
                let has_member = !members.is_empty() && !is_version;
                if has_member || self.peek().is_none_or(ends_word) {
                    return Ok(value);
                }
                if is_script {
                    // So is text directly after this.
                    let is_path = self
                        .peek()
                        .is_some_and(|c| c.is_alphabetic() || "/\\".contains(c));
                    if !is_path && !self.rest().starts_with("..") {
                        self.refuse(self.error("text directly after $(…) is not supported"));
                    }
                    return Ok(value);
                }
            }
            self.at = start;
        }
        self.word()
    }

    /// Parses a bare word, with its quoted parts and variables.
    pub(super) fn word(&mut self) -> Result<Expression> {
        let mut pieces = Vec::new();
        let mut text = String::new();
        let mut is_bare = true;
        while let Some(c) = self.peek() {
            if is_quote(c) {
                is_bare = false;
                match self.string()? {
                    Expression::Text(inside) => text.push_str(&inside),
                    Expression::Filled(inside) => {
                        push(&mut pieces, &mut text);
                        pieces.extend(inside);
                    }
                    _ => {}
                }
            } else if c == '`' {
                self.next();
                is_bare = false;
                text.extend(self.escaped());
            } else if c == '$' {
                self.dollar(&mut pieces, &mut text)?;
            } else if ends_word(c) {
                break;
            } else {
                self.next();
                text.push(c);
            }
        }
        if pieces.is_empty() {
            return Ok(if is_bare {
                Expression::Word(text)
            } else {
                Expression::Text(text)
            });
        }
        push(&mut pieces, &mut text);
        Ok(Expression::Filled(pieces))
    }
}

fn push(pieces: &mut Vec<StringPart>, text: &mut String) {
    if !text.is_empty() {
        pieces.push(StringPart::Text(std::mem::take(text)));
    }
}

/// Converts a part of a string to an expression.
pub(super) fn from_part(piece: StringPart) -> Expression {
    match piece {
        StringPart::Text(text) => Expression::Text(text),
        StringPart::Variable(name) => Expression::Variable(name),
        StringPart::Script(statements) => Expression::Script(statements),
    }
}
