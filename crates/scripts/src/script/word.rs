//! Words: bare ones, strings and variables.

use wincimg_windows::quoting::powershell::{is_double_quote, is_single_quote};

use super::{OutputUse, ScriptToken, TextPart, Tokenizer, Value, ends_word, is_name, is_quote};

impl Tokenizer<'_> {
    /// Reads an argument; several tokens for a member of a variable.
    pub(super) fn argument(&mut self) -> Vec<ScriptToken> {
        let Some(c) = self.peek() else {
            return Vec::new();
        };
        if is_quote(c) {
            let mut out = vec![ScriptToken::Value(self.string())];
            self.members(&mut out);
            return out;
        }
        if c == '$' {
            if self.second() == Some('(') {
                let mut value = Vec::new();
                self.variable(&mut value);
                let mut out = vec![ScriptToken::Value(value)];
                self.members(&mut out);
                return out;
            }
            let start = self.at;
            let mut value = Vec::new();
            if self.variable(&mut value) {
                let mut members = Vec::new();
                self.members(&mut members);
                if !members.is_empty() || self.peek().is_none_or(ends_word) {
                    return std::iter::once(ScriptToken::Value(value))
                        .chain(members)
                        .collect();
                }
            }
            self.at = start;
        }
        if c == '-' && self.second().is_some_and(|c| c.is_alphabetic() || c == '_') {
            return vec![ScriptToken::Value(self.parameter())];
        }
        vec![ScriptToken::Value(self.word())]
    }

    /// Reads `-Name`, which a dot or bracket ends, with a value after a colon.
    pub(super) fn parameter(&mut self) -> Value {
        let start = self.at;
        let name = self
            .take_while(|c| !ends_word(c) && !".[:\"'".contains(c))
            .to_owned();
        match self.peek() {
            Some('"' | '\'') => {
                self.at = start;
                self.word()
            }
            Some(':') => {
                self.next();
                let mut value = vec![TextPart::Text(format!("{name}:"))];
                match self.peek() {
                    Some(c) if is_quote(c) => {
                        append(&mut value, self.string());
                    }
                    Some(c) if !ends_word(c) => append(&mut value, self.word()),
                    _ => {}
                }
                value
            }
            _ => vec![TextPart::Text(name)],
        }
    }

    /// Parses a bare word, with its quoted parts and variables.
    pub(super) fn word(&mut self) -> Value {
        let mut value = Vec::new();
        let mut text = String::new();
        while let Some(c) = self.peek() {
            if is_quote(c) {
                push_text(&mut value, &mut text);
                append(&mut value, self.string());
            } else if c == '`' {
                self.next();
                text.extend(self.next());
            } else if c == '$' {
                push_text(&mut value, &mut text);
                if !self.variable(&mut value) {
                    self.next();
                    text.push('$');
                }
            } else if ends_word(c) {
                break;
            } else {
                self.next();
                text.push(c);
            }
        }
        push_text(&mut value, &mut text);
        value
    }

    /// Parses a string, from its opening quote.
    pub(super) fn string(&mut self) -> Value {
        let literal = self.next().is_some_and(is_single_quote);
        let closes = if literal {
            is_single_quote
        } else {
            is_double_quote
        };
        let mut value = Vec::new();
        let mut text = String::new();
        loop {
            let Some(c) = self.peek() else {
                self.state.is_broken = true;
                break;
            };
            if closes(c) {
                self.next();
                if !self.peek().is_some_and(closes) {
                    break;
                }
                self.next();
                text.push('"');
            } else if c == '`' && !literal {
                self.next();
                text.extend(self.next());
            } else if c == '$' && !literal {
                push_text(&mut value, &mut text);
                if !self.variable(&mut value) {
                    self.next();
                    text.push('$');
                }
            } else {
                self.next();
                text.push(c);
            }
        }
        if text.starts_with(['/', '-']) && value.is_empty() {
            text = strip_redundant_quotes(&text);
        }
        push_text(&mut value, &mut text);
        value
    }

    /// Parses `$name`, `${name}` or `$(script)`, if present.
    pub(super) fn variable(&mut self, value: &mut Value) -> bool {
        match self.second() {
            Some('(') => {
                self.at += 2;
                let mut tokens = Vec::new();
                self.statements(Some(')'), OutputUse::Used, &mut tokens);
                value.push(TextPart::Script(tokens));
            }
            Some('{') => {
                let Some(end) = self.rest().find('}') else {
                    return false;
                };
                value.push(TextPart::Variable(self.rest()[2..end].to_lowercase()));
                self.at += end + 1;
            }
            Some('$' | '^') => {
                value.push(TextPart::Variable(self.rest()[1..2].to_owned()));
                self.at += 2;
            }
            Some(c) if is_name(c) => value.push(TextPart::Variable(self.variable_name(is_name))),
            _ => return false,
        }
        true
    }
}

pub(super) fn push_text(value: &mut Value, text: &mut String) {
    if !text.is_empty() {
        let text = std::mem::take(text);
        append(value, vec![TextPart::Text(collapse_whitespace(&text))]);
    }
}

/// Appends to a value, merging adjacent text.
pub(super) fn append(value: &mut Value, more: Value) {
    for part in more {
        match (value.last_mut(), part) {
            (Some(TextPart::Text(text)), TextPart::Text(more)) => text.push_str(&more),
            (_, part) => value.push(part),
        }
    }
}

/// Replaces consecutive white space with one space.
pub(super) fn collapse_whitespace(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if !c.is_whitespace() {
            out.push(c);
        } else if !out.ends_with(' ') {
            out.push(' ');
        }
    }
    out
}

pub(super) fn strip_redundant_quotes(text: &str) -> String {
    let pieces: Vec<&str> = text.split('"').collect();
    let is_idle = pieces.len() % 2 == 1
        && pieces.iter().skip(1).step_by(2).all(|quoted| {
            !quoted.is_empty() && !quoted.contains(char::is_whitespace) && !quoted.ends_with('\\')
        });
    if is_idle {
        pieces.concat()
    } else {
        text.to_owned()
    }
}
