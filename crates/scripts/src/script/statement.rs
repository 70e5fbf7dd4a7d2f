//! Statements: commands with their arguments, keywords and expressions.

use super::command::stray_tokens;
use super::word::collapse_whitespace;
use super::{DEPTH, OutputUse, ScriptToken, TextPart, Tokenizer, ends_word, is_quote};

/// Keywords that begin a statement.
const KEYWORDS: [&str; 28] = [
    "begin", "break", "catch", "class", "continue", "do", "else", "elseif", "end", "enum", "exit",
    "filter", "finally", "for", "foreach", "function", "if", "param", "process", "return",
    "switch", "throw", "trap", "try", "until", "using", "while", "dynamicparam",
];

impl Tokenizer<'_> {
    /// Reads statements up to a closing bracket or the end.
    pub(super) fn statements(
        &mut self,
        close: Option<char>,
        used: OutputUse,
        out: &mut Vec<ScriptToken>,
    ) {
        if self.depth > DEPTH {
            self.at = self.text.len();
            self.stray(out);
            return;
        }
        self.depth += 1;
        let mut in_pipeline = false;
        loop {
            self.skip_blanks();
            let Some(c) = self.peek() else {
                if close.is_some() {
                    self.stray(out);
                }
                break;
            };
            if Some(c) == close {
                self.next();
                break;
            }
            match c {
                ';' | '\n' => {
                    self.next();
                    if !matches!(out.last(), None | Some(ScriptToken::End)) {
                        out.push(ScriptToken::End);
                    }
                    in_pipeline = false;
                }
                '|' => {
                    let sign = if self.eat("||") { "||" } else { "|" };
                    self.eat("|");
                    out.push(ScriptToken::Sign(sign.to_owned()));
                    in_pipeline = true;
                }
                '&' if self.eat("&&") => {
                    out.push(ScriptToken::Sign("&&".to_owned()));
                }
                ')' | '}' | ']' => {
                    self.next();
                    self.stray(out);
                }
                _ => self.statement(used, in_pipeline, out),
            }
        }
        if out.last() == Some(&ScriptToken::End) {
            out.pop();
        }
        self.depth -= 1;
    }

    pub(super) fn group(
        &mut self,
        open: &'static str,
        close: char,
        used: OutputUse,
        out: &mut Vec<ScriptToken>,
    ) {
        self.at += open.len();
        let mut inside = Vec::new();
        self.statements(Some(close), used, &mut inside);
        out.push(ScriptToken::Group(open, inside));
    }

    pub(super) fn statement(
        &mut self,
        used: OutputUse,
        in_pipeline: bool,
        out: &mut Vec<ScriptToken>,
    ) {
        let start = out.len();
        match self.peek() {
            Some('{') => self.group("{", '}', OutputUse::Unused, out),
            Some(sign @ ('&' | '.')) if self.is_call(sign) => {
                self.next();
                self.skip_blanks();
                self.call(out);
                self.arguments(out);
                self.end_command(start, used, out);
            }
            Some(c) if self.begins_command(c) => {
                let word = self.word();
                let name = match word.as_slice() {
                    [TextPart::Text(name)] => name.to_lowercase(),
                    _ => String::new(),
                };
                if !in_pipeline && KEYWORDS.contains(&name.as_str()) {
                    self.keyword(name, out);
                } else {
                    out.push(ScriptToken::Command(word));
                    self.arguments(out);
                    self.end_command(start, used, out);
                }
            }
            _ => {
                let at = self.at;
                self.expression(out);
                let is_string = self.text[at..].starts_with(is_quote)
                    && matches!(&out[start..], [ScriptToken::Value(_)]);
                if is_string
                    && used == OutputUse::Unused
                    && !in_pipeline
                    && !self.rest().starts_with('|')
                {
                    self.state.has_lone_string = true;
                }
                if self.at == at {
                    self.next();
                    self.stray(out);
                }
            }
        }
    }

    /// Returns true for `&` or `.` before a command.
    pub(super) fn is_call(&self, sign: char) -> bool {
        match self.second() {
            Some(next) if sign == '&' => next != '&',
            Some(next) => next.is_whitespace() || matches!(next, '$' | '"' | '\'' | '(' | '{'),
            None => false,
        }
    }

    pub(super) fn begins_command(&self, c: char) -> bool {
        if c.is_ascii_digit() || matches!(c, '.' | '-' | '+') {
            // `7z` and `.\x` are commands, `7`, `.5` and `-1` are not.
            let end = self.rest().find(ends_word).unwrap_or(self.rest().len());
            let word = &self.rest()[..end];
            return match c {
                '.' => word.starts_with(".\\") || word.starts_with("./") || word.starts_with(".."),
                '-' | '+' => false,
                _ => word.contains(|c: char| c.is_alphabetic()) && !word.contains(".."),
            };
        }
        !is_quote(c) && !"$@[({!,<>=#".contains(c)
    }

    pub(super) fn keyword(&mut self, name: String, out: &mut Vec<ScriptToken>) {
        let word = name.clone();
        out.push(ScriptToken::Keyword(name));
        self.skip_blanks();
        match word.as_str() {
            "throw" => {
                let mut printed = Vec::new();
                self.rest_of_statement(&mut printed);
                out.push(ScriptToken::Message(stray_tokens(&printed)));
            }
            "return" | "exit" => self.rest_of_statement(out),
            "function" | "filter" | "class" | "enum" | "using" => {
                self.take_while(|c| !"({;".contains(c));
                if self.peek() == Some('(') {
                    self.group("(", ')', OutputUse::Used, out);
                }
            }
            "catch" | "trap" => {
                while self.peek() == Some('[') {
                    self.bracket(false, out);
                    self.skip_blanks();
                }
            }
            _ if self.peek() == Some('(') => self.group("(", ')', OutputUse::Used, out),
            _ => {}
        }
    }

    pub(super) fn rest_of_statement(&mut self, out: &mut Vec<ScriptToken>) {
        self.skip_blanks();
        if self.peek().is_some_and(|c| !";|)}\n".contains(c)) {
            self.statement(OutputUse::Used, false, out);
        }
    }

    /// Reads the command after `&`.
    pub(super) fn call(&mut self, out: &mut Vec<ScriptToken>) {
        let start = out.len();
        match self.peek() {
            Some('(') => self.group("(", ')', OutputUse::Used, out),
            Some('{') => self.group("{", '}', OutputUse::Unused, out),
            Some(c) if !ends_word(c) => {
                let word = self.argument();
                out.extend(word);
            }
            _ => self.stray(out),
        }
        if let Some(ScriptToken::Value(name)) = out.get(start).cloned() {
            out[start] = ScriptToken::Command(name);
        }
    }

    /// Reads the arguments of a command.
    pub(super) fn arguments(&mut self, out: &mut Vec<ScriptToken>) {
        loop {
            self.skip_blanks();
            let Some(c) = self.peek() else { return };
            match c {
                ';' | '|' | '\n' | ')' | '}' => return,
                '&' if self.second() == Some('&') => return,
                '&' | '<' => {
                    self.next();
                    self.stray(out);
                }
                ',' => {
                    self.next();
                    out.push(ScriptToken::Sign(",".to_owned()));
                }
                '>' => self.redirection(out),
                '0'..='9' | '*' if self.second() == Some('>') => self.redirection(out),
                '(' => {
                    self.group("(", ')', OutputUse::Used, out);
                    self.members(out);
                }
                '{' => self.group("{", '}', OutputUse::Unused, out),
                '@' if self.second() == Some('(') => self.group("@(", ')', OutputUse::Used, out),
                '@' if self.second() == Some('{') => self.hash(out),
                '-' if self.eat("--%") => {
                    let rest = self.take_while(|c| c != '|' && c != '\n').trim();
                    let rest = vec![TextPart::Text(collapse_whitespace(rest))];
                    out.push(ScriptToken::Value(rest));
                }
                _ => {
                    let word = self.argument();
                    out.extend(word);
                }
            }
        }
    }

    pub(super) fn redirection(&mut self, out: &mut Vec<ScriptToken>) {
        let sign: String = self
            .take_while(|c| c.is_ascii_digit() || matches!(c, '*' | '>'))
            .to_owned();
        out.push(ScriptToken::Sign(sign));
        if self.eat("&") {
            let to = self.take_while(|c| c.is_ascii_digit()).to_owned();
            out.push(ScriptToken::Sign(format!("&{to}")));
        }
    }
}
