//! Expressions: operands, members and operators.

use super::{DEPTH, OutputUse, ScriptToken, TextPart, Tokenizer, ends_word, is_name, is_quote};

impl Tokenizer<'_> {
    /// Reads members, calls and indexes directly after an operand.
    pub(super) fn members(&mut self, out: &mut Vec<ScriptToken>) {
        loop {
            let is_member = |next: Option<char>| {
                next.is_some_and(|c| c.is_alphabetic() || matches!(c, '_' | '$' | '"' | '\'' | '('))
            };
            match self.peek() {
                Some('.') if is_member(self.second()) => {
                    self.next();
                    self.member(".", out);
                }
                Some(':') if self.rest().starts_with("::") => {
                    self.at += 2;
                    self.member("::", out);
                }
                Some('[') => self.bracket(true, out),
                _ => return,
            }
        }
    }

    pub(super) fn member(&mut self, sign: &str, out: &mut Vec<ScriptToken>) {
        match self.peek() {
            Some(c) if is_quote(c) => {
                out.push(ScriptToken::Sign(sign.to_owned()));
                let name = self.string();
                out.push(ScriptToken::Value(name));
            }
            Some('$') => {
                let mut name = Vec::new();
                self.variable(&mut name);
                out.push(ScriptToken::Sign(sign.to_owned()));
                out.push(ScriptToken::Value(name));
            }
            _ => {
                let name = self
                    .take_while(|c| c.is_alphanumeric() || c == '_')
                    .to_lowercase();
                out.push(ScriptToken::Sign(format!("{sign}{name}")));
            }
        }
        if self.peek() == Some('(') {
            self.next();
            let mut inside = Vec::new();
            self.operands(')', &mut inside);
            out.push(ScriptToken::Group("call", inside));
        }
    }

    /// Reads an index or a type.
    pub(super) fn bracket(&mut self, is_index: bool, out: &mut Vec<ScriptToken>) {
        self.next();
        if is_index {
            let mut inside = Vec::new();
            self.operands(']', &mut inside);
            out.push(ScriptToken::Group("[", inside));
            return;
        }
        let start = self.at;
        let mut depth = 1;
        while depth > 0 {
            match self.next() {
                Some('[') => depth += 1,
                Some(']') => depth -= 1,
                Some(_) => {}
                None => {
                    self.stray(out);
                    return;
                }
            }
        }
        let name = self.text[start..self.at - 1].to_lowercase();
        out.push(ScriptToken::Sign(format!("[{name}]")));
    }

    /// Reads the arguments of a method or an index.
    pub(super) fn operands(&mut self, close: char, out: &mut Vec<ScriptToken>) {
        if self.depth > DEPTH {
            self.at = self.text.len();
            self.stray(out);
            return;
        }
        self.depth += 1;
        loop {
            self.skip_blanks();
            let at = self.at;
            match self.peek() {
                None => {
                    self.stray(out);
                    break;
                }
                Some(c) if c == close => {
                    self.next();
                    break;
                }
                Some('\n') => {
                    self.next();
                }
                Some(_) => self.expression(out),
            }
            if self.at == at {
                self.next();
                self.stray(out);
            }
        }
        self.depth -= 1;
    }

    pub(super) fn hash(&mut self, out: &mut Vec<ScriptToken>) {
        self.at += 2;
        let mut inside = Vec::new();
        if self.depth > DEPTH {
            self.at = self.text.len();
            self.stray(out);
            return;
        }
        self.depth += 1;
        loop {
            self.skip_blanks();
            match self.peek() {
                None => {
                    self.stray(&mut inside);
                    break;
                }
                Some('}') => {
                    self.next();
                    break;
                }
                Some(';' | '\n') => {
                    self.next();
                    continue;
                }
                Some(c) if is_quote(c) => {
                    let key = self.string();
                    inside.push(ScriptToken::Value(key));
                }
                Some(c) if c.is_alphanumeric() || c == '_' => {
                    let key = self.take_while(|c| c.is_alphanumeric() || c == '_');
                    inside.push(ScriptToken::Value(vec![TextPart::Text(key.to_owned())]));
                }
                Some(_) => self.operand(&mut inside),
            }
            self.skip_blanks();
            if self.eat("=") {
                self.skip_blanks();
                self.statement(OutputUse::Used, false, &mut inside);
            } else if self.peek() != Some('}') {
                self.next();
                self.stray(&mut inside);
            }
        }
        self.depth -= 1;
        out.push(ScriptToken::Group("@{", inside));
    }

    /// Reads an operand other than a string or number.
    pub(super) fn operand(&mut self, out: &mut Vec<ScriptToken>) {
        match self.peek() {
            Some('$') => {
                let mut value = Vec::new();
                if self.variable(&mut value) {
                    out.push(ScriptToken::Value(value));
                } else {
                    self.next();
                    self.stray(out);
                }
            }
            Some('(') => self.group("(", ')', OutputUse::Used, out),
            Some('{') => self.group("{", '}', OutputUse::Unused, out),
            Some('@') if self.second() == Some('(') => self.group("@(", ')', OutputUse::Used, out),
            Some('@') if self.second() == Some('{') => self.hash(out),
            _ => {
                self.next();
                self.stray(out);
            }
        }
        self.members(out);
    }

    pub(super) fn expression(&mut self, out: &mut Vec<ScriptToken>) {
        // Two operands require an operator between them.
        let mut has_operand = false;
        loop {
            self.skip_blanks();
            let Some(c) = self.peek() else { return };
            match c {
                ';' | '\n' | '|' | ')' | '}' | ']' => return,
                '&' if self.second() == Some('&') => return,
                '=' => {
                    self.next();
                    self.assigned("=", out);
                    return;
                }
                '+' | '-' | '*' | '/' | '%' if self.second() == Some('=') => {
                    self.at += 2;
                    self.assigned(&format!("{c}="), out);
                    return;
                }
                '>' => self.redirected(out),
                '+' | '-' if self.rest().starts_with("++") || self.rest().starts_with("--") => {
                    self.at += 2;
                    out.push(ScriptToken::Sign(format!("{c}{c}")));
                }
                ',' | '+' | '-' | '*' | '/' | '%' | '!' => {
                    let sign = self.operator(c);
                    out.push(ScriptToken::Sign(sign));
                    has_operand = false;
                }
                '.' if self.eat("..") => {
                    out.push(ScriptToken::Sign("..".to_owned()));
                    has_operand = false;
                }
                '[' if !has_operand => {
                    self.bracket(false, out);
                    self.members(out);
                    // A type may be alone or a cast.
                    has_operand = matches!(out.last(), Some(ScriptToken::Group("call", _)));
                }
                _ if c.is_alphabetic() => {
                    let word = self.take_while(is_name).to_lowercase();
                    if word == "in" && has_operand {
                        out.push(ScriptToken::Sign(word));
                        has_operand = false;
                    } else {
                        self.stray(out);
                    }
                }
                _ => {
                    if has_operand {
                        self.stray(out);
                    }
                    self.value(c, out);
                    has_operand = true;
                }
            }
        }
    }

    fn redirected(&mut self, out: &mut Vec<ScriptToken>) {
        self.redirection(out);
        self.skip_blanks();
        if self.peek().is_some_and(|c| !ends_word(c)) {
            let target = self.argument();
            out.extend(target);
        }
    }

    /// Reads an operator that begins with this character.
    fn operator(&mut self, c: char) -> String {
        self.next();
        if c == '-' && self.peek().is_some_and(char::is_alphabetic) {
            let name = self.take_while(char::is_alphanumeric).to_lowercase();
            return format!("-{name}");
        }
        c.to_string()
    }

    /// Reads a string, number or operand that begins with this character.
    fn value(&mut self, c: char, out: &mut Vec<ScriptToken>) {
        if is_quote(c) {
            let string = self.string();
            out.push(ScriptToken::Value(string));
            self.members(out);
        } else if c.is_ascii_digit() || c == '.' {
            self.number(out);
        } else {
            self.operand(out);
        }
    }

    pub(super) fn assigned(&mut self, sign: &str, out: &mut Vec<ScriptToken>) {
        out.push(ScriptToken::Sign(sign.to_owned()));
        self.rest_of_statement(out);
    }

    /// Reads a number; in canonical form it equals its text.
    pub(super) fn number(&mut self, out: &mut Vec<ScriptToken>) {
        let text = self
            .take_while(|c| c.is_ascii_alphanumeric() || c == '.')
            .to_owned();
        let as_text = text.len() < 10
            && text.bytes().all(|b| b.is_ascii_digit())
            && (text == "0" || !text.starts_with('0'));
        if as_text {
            out.push(ScriptToken::Value(vec![TextPart::Text(text)]));
        } else if text.starts_with(|c: char| c.is_ascii_digit()) {
            out.push(ScriptToken::Sign(text));
        } else {
            self.stray(out);
        }
    }
}
