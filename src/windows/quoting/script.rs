//! What PowerShell reads in a script: commands and their arguments, strings, variables, operators.
//!
//! The published grammars read arguments as expressions, so that `$env:TEMP\x.zip` is a mistake to
//! them and `a"b c"d` two words. A command's words are what matters here, so this follows
//! PowerShell's own tokenizer: a statement begins as a command or as an expression, quotes inside
//! a bare word keep it together, `$name.zip` is a member of `$name`, and `$(x)\y` is two words.
//! How an argument is written does not show: `"a"`, `'a'` and `a` are the same token.

use super::powershell::{is_double_quote, is_single_quote, native_command_line};
use super::{argv, cmd};

/// A piece of a script, without the way it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// The name of a command.
    Command(Value),
    /// An argument of a command, or a string in an expression.
    Value(Value),
    /// A number, operator, member or type.
    Sign(String),
    /// A word of the language.
    Keyword(String),
    /// What stands in a pair of brackets.
    Group(&'static str, Vec<Token>),
    /// A command that only says something: what it runs in order to say it.
    Message(Vec<Token>),
    /// The end of a statement.
    End,
    /// Something that may not stand where it does.
    Stray,
}

/// A text with what is put into it.
pub type Value = Vec<Part>;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// Characters; white space in a row counts once.
    Text(String),
    /// A variable.
    Variable(String),
    /// The result of a script.
    Script(Vec<Token>),
}

/// A script that has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Its tokens.
    pub tokens: Vec<Token>,
    /// Whether every quote and bracket is closed and nothing is stray.
    pub is_sound: bool,
    /// Whether a statement is nothing but a string, which no one writes on purpose.
    pub has_lone_string: bool,
}

/// Reads a script; any text can be read.
pub fn read(text: &str) -> Script {
    read_at(text, 0)
}

/// How deep brackets and scripts in scripts are followed.
const DEPTH: usize = 48;

fn read_at(text: &str, depth: usize) -> Script {
    let mut reader = Reader {
        text,
        at: 0,
        depth,
        is_sound: true,
        has_lone_string: false,
    };
    let mut tokens = Vec::new();
    reader.statements(None, Use::Nobody, &mut tokens);
    Script {
        tokens,
        is_sound: reader.is_sound,
        has_lone_string: reader.has_lone_string,
    }
}

/// Whether anything takes what a statement gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Somebody,
    Nobody,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    is_sound: bool,
    has_lone_string: bool,
}

/// The words that begin a statement of the language.
const KEYWORDS: [&str; 28] = [
    "begin",
    "break",
    "catch",
    "class",
    "continue",
    "do",
    "else",
    "elseif",
    "end",
    "enum",
    "exit",
    "filter",
    "finally",
    "for",
    "foreach",
    "function",
    "if",
    "param",
    "process",
    "return",
    "switch",
    "throw",
    "trap",
    "try",
    "until",
    "using",
    "while",
    "dynamicparam",
];

/// The commands that only say something.
const MESSAGES: [&str; 8] = [
    "write-host",
    "write-output",
    "write-error",
    "write-warning",
    "write-verbose",
    "write-information",
    "write-debug",
    "echo",
];

/// What ends a word in a command.
fn ends_word(c: char) -> bool {
    c.is_whitespace() || "(){};,|&<>".contains(c)
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '?')
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn second(&self) -> Option<char> {
        self.rest().chars().nth(1)
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn take_while(&mut self, keep: impl Fn(char) -> bool) -> &str {
        let start = self.at;
        while self.peek().is_some_and(&keep) {
            self.next();
        }
        &self.text[start..self.at]
    }

    fn stray(&mut self, out: &mut Vec<Token>) {
        self.is_sound = false;
        out.push(Token::Stray);
    }

    /// Skips white space but no line ends, and comments.
    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some('\n') | None => return,
                Some(c) if c.is_whitespace() => {
                    self.next();
                }
                Some('`') if self.second().is_none_or(char::is_whitespace) => {
                    self.next();
                    self.next();
                }
                Some('#') => {
                    self.take_while(|c| c != '\n');
                }
                Some('<') if self.second() == Some('#') => match self.rest().find("#>") {
                    Some(end) => self.at += end + 2,
                    None => {
                        self.at = self.text.len();
                        self.is_sound = false;
                    }
                },
                Some(_) => return,
            }
        }
    }

    /// Reads statements up to a closing bracket or the end.
    fn statements(&mut self, close: Option<char>, used: Use, out: &mut Vec<Token>) {
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
                    if !matches!(out.last(), None | Some(Token::End)) {
                        out.push(Token::End);
                    }
                    in_pipeline = false;
                }
                '|' => {
                    let sign = if self.eat("||") { "||" } else { "|" };
                    self.eat("|");
                    out.push(Token::Sign(sign.to_owned()));
                    in_pipeline = true;
                }
                '&' if self.eat("&&") => {
                    out.push(Token::Sign("&&".to_owned()));
                }
                ')' | '}' | ']' => {
                    self.next();
                    self.stray(out);
                }
                _ => self.statement(used, in_pipeline, out),
            }
        }
        if out.last() == Some(&Token::End) {
            out.pop();
        }
        self.depth -= 1;
    }

    fn group(&mut self, open: &'static str, close: char, used: Use, out: &mut Vec<Token>) {
        self.at += open.len();
        let mut inside = Vec::new();
        self.statements(Some(close), used, &mut inside);
        out.push(Token::Group(open, inside));
    }

    fn statement(&mut self, used: Use, in_pipeline: bool, out: &mut Vec<Token>) {
        let start = out.len();
        match self.peek() {
            Some('{') => self.group("{", '}', Use::Nobody, out),
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
                    [Part::Text(name)] => name.to_lowercase(),
                    _ => String::new(),
                };
                if !in_pipeline && KEYWORDS.contains(&name.as_str()) {
                    self.keyword(name, out);
                } else {
                    out.push(Token::Command(word));
                    self.arguments(out);
                    self.end_command(start, used, out);
                }
            }
            _ => {
                let at = self.at;
                self.expression(out);
                let is_string = self.text[at..]
                    .starts_with(|c| is_single_quote(c) || is_double_quote(c))
                    && matches!(&out[start..], [Token::Value(_)]);
                if is_string && used == Use::Nobody && !in_pipeline && !self.rest().starts_with('|')
                {
                    self.has_lone_string = true;
                }
                if self.at == at {
                    self.next();
                    self.stray(out);
                }
            }
        }
    }

    /// `&` or `.` before what is to be run.
    fn is_call(&self, sign: char) -> bool {
        match self.second() {
            Some(next) if sign == '&' => next != '&',
            Some(next) => next.is_whitespace() || matches!(next, '$' | '"' | '\'' | '(' | '{'),
            None => false,
        }
    }

    fn begins_command(&self, c: char) -> bool {
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
        !is_single_quote(c) && !is_double_quote(c) && !"$@[({!,<>=#".contains(c)
    }

    fn keyword(&mut self, name: String, out: &mut Vec<Token>) {
        let word = name.clone();
        out.push(Token::Keyword(name));
        self.skip_blanks();
        match word.as_str() {
            "throw" => {
                let mut said = Vec::new();
                self.rest_of_statement(&mut said);
                out.push(Token::Message(only_stray(&said)));
            }
            "return" | "exit" => self.rest_of_statement(out),
            "function" | "filter" | "class" | "enum" | "using" => {
                self.take_while(|c| !"({;".contains(c));
                if self.peek() == Some('(') {
                    self.group("(", ')', Use::Somebody, out);
                }
            }
            "catch" | "trap" => {
                while self.peek() == Some('[') {
                    self.bracket(false, out);
                    self.skip_blanks();
                }
            }
            _ if self.peek() == Some('(') => self.group("(", ')', Use::Somebody, out),
            _ => {}
        }
    }

    fn rest_of_statement(&mut self, out: &mut Vec<Token>) {
        self.skip_blanks();
        if self.peek().is_some_and(|c| !";|)}\n".contains(c)) {
            self.statement(Use::Somebody, false, out);
        }
    }

    /// What `&` runs.
    fn call(&mut self, out: &mut Vec<Token>) {
        let start = out.len();
        match self.peek() {
            Some('(') => self.group("(", ')', Use::Somebody, out),
            Some('{') => self.group("{", '}', Use::Nobody, out),
            Some(c) if !ends_word(c) => {
                let word = self.argument();
                out.extend(word);
            }
            _ => self.stray(out),
        }
        if let Some(Token::Value(name)) = out.get(start).cloned() {
            out[start] = Token::Command(name);
        }
    }

    /// The arguments of a command.
    fn arguments(&mut self, out: &mut Vec<Token>) {
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
                    out.push(Token::Sign(",".to_owned()));
                }
                '>' => self.redirection(out),
                '0'..='9' | '*' if self.second() == Some('>') => self.redirection(out),
                '(' => {
                    self.group("(", ')', Use::Somebody, out);
                    self.members(out);
                }
                '{' => self.group("{", '}', Use::Nobody, out),
                '@' if self.second() == Some('(') => self.group("@(", ')', Use::Somebody, out),
                '@' if self.second() == Some('{') => self.hash(out),
                '-' if self.eat("--%") => {
                    let rest = self.take_while(|c| c != '|' && c != '\n').trim();
                    let rest = vec![Part::Text(squeezed(rest))];
                    out.push(Token::Value(rest));
                }
                _ => {
                    let word = self.argument();
                    out.extend(word);
                }
            }
        }
    }

    fn redirection(&mut self, out: &mut Vec<Token>) {
        let sign: String = self
            .take_while(|c| c.is_ascii_digit() || matches!(c, '*' | '>'))
            .to_owned();
        out.push(Token::Sign(sign));
        if self.eat("&") {
            let to = self.take_while(|c| c.is_ascii_digit()).to_owned();
            out.push(Token::Sign(format!("&{to}")));
        }
    }

    /// One argument; more than one token where a member of a variable is taken.
    fn argument(&mut self) -> Vec<Token> {
        let Some(c) = self.peek() else {
            return Vec::new();
        };
        if is_double_quote(c) || is_single_quote(c) {
            let mut out = vec![Token::Value(self.string())];
            self.members(&mut out);
            return out;
        }
        if c == '$' {
            if self.second() == Some('(') {
                let mut value = Vec::new();
                self.variable(&mut value);
                let mut out = vec![Token::Value(value)];
                self.members(&mut out);
                return out;
            }
            let start = self.at;
            let mut value = Vec::new();
            if self.variable(&mut value) {
                let mut members = Vec::new();
                self.members(&mut members);
                if !members.is_empty() || self.peek().is_none_or(ends_word) {
                    return std::iter::once(Token::Value(value))
                        .chain(members)
                        .collect();
                }
            }
            self.at = start;
        }
        if c == '-' && self.second().is_some_and(|c| c.is_alphabetic() || c == '_') {
            return vec![Token::Value(self.parameter())];
        }
        vec![Token::Value(self.word())]
    }

    /// `-Name`, which a dot or a bracket ends, and what is joined to it by a colon.
    fn parameter(&mut self) -> Value {
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
                let mut value = vec![Part::Text(format!("{name}:"))];
                match self.peek() {
                    Some(c) if is_double_quote(c) || is_single_quote(c) => {
                        append(&mut value, self.string());
                    }
                    Some(c) if !ends_word(c) => append(&mut value, self.word()),
                    _ => {}
                }
                value
            }
            _ => vec![Part::Text(name)],
        }
    }

    /// A bare word, in which quotes keep things together and variables are filled in.
    fn word(&mut self) -> Value {
        let mut value = Vec::new();
        let mut text = String::new();
        while let Some(c) = self.peek() {
            if is_double_quote(c) || is_single_quote(c) {
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

    /// A string of either kind, from its opening quote on.
    fn string(&mut self) -> Value {
        let literal = self.next().is_some_and(is_single_quote);
        let is_quote = if literal {
            is_single_quote
        } else {
            is_double_quote
        };
        let mut value = Vec::new();
        let mut text = String::new();
        loop {
            let Some(c) = self.peek() else {
                self.is_sound = false;
                break;
            };
            if is_quote(c) {
                self.next();
                if !self.peek().is_some_and(is_quote) {
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
            text = without_idle_quotes(&text);
        }
        push_text(&mut value, &mut text);
        value
    }

    /// `$name`, `${name}` or `$(script)`; nothing is read where it is none of them.
    fn variable(&mut self, value: &mut Value) -> bool {
        match self.second() {
            Some('(') => {
                self.at += 2;
                let mut tokens = Vec::new();
                self.statements(Some(')'), Use::Somebody, &mut tokens);
                value.push(Part::Script(tokens));
            }
            Some('{') => {
                let Some(end) = self.rest().find('}') else {
                    return false;
                };
                value.push(Part::Variable(self.rest()[2..end].to_lowercase()));
                self.at += end + 1;
            }
            Some('$' | '^') => {
                value.push(Part::Variable(self.rest()[1..2].to_owned()));
                self.at += 2;
            }
            Some(c) if is_name(c) => {
                self.next();
                let mut name = self.take_while(is_name).to_lowercase();
                if self.peek() == Some(':') && self.second().is_some_and(is_name) {
                    self.next();
                    name.push(':');
                    name.push_str(&self.take_while(is_name).to_lowercase());
                }
                value.push(Part::Variable(name));
            }
            _ => return false,
        }
        true
    }

    /// Members, calls and indexes right behind an operand.
    fn members(&mut self, out: &mut Vec<Token>) {
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

    fn member(&mut self, sign: &str, out: &mut Vec<Token>) {
        match self.peek() {
            Some(c) if is_double_quote(c) || is_single_quote(c) => {
                out.push(Token::Sign(sign.to_owned()));
                let name = self.string();
                out.push(Token::Value(name));
            }
            Some('$') => {
                let mut name = Vec::new();
                self.variable(&mut name);
                out.push(Token::Sign(sign.to_owned()));
                out.push(Token::Value(name));
            }
            _ => {
                let name = self
                    .take_while(|c| c.is_alphanumeric() || c == '_')
                    .to_lowercase();
                out.push(Token::Sign(format!("{sign}{name}")));
            }
        }
        if self.peek() == Some('(') {
            self.next();
            let mut inside = Vec::new();
            self.operands(')', &mut inside);
            out.push(Token::Group("call", inside));
        }
    }

    /// An index of an operand, or a type.
    fn bracket(&mut self, is_index: bool, out: &mut Vec<Token>) {
        self.next();
        if is_index {
            let mut inside = Vec::new();
            self.operands(']', &mut inside);
            out.push(Token::Group("[", inside));
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
        out.push(Token::Sign(format!("[{name}]")));
    }

    /// The arguments of a method or an index: expressions only.
    fn operands(&mut self, close: char, out: &mut Vec<Token>) {
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

    fn hash(&mut self, out: &mut Vec<Token>) {
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
                Some(c) if is_double_quote(c) || is_single_quote(c) => {
                    let key = self.string();
                    inside.push(Token::Value(key));
                }
                Some(c) if c.is_alphanumeric() || c == '_' => {
                    let key = self.take_while(|c| c.is_alphanumeric() || c == '_');
                    inside.push(Token::Value(vec![Part::Text(key.to_owned())]));
                }
                Some(_) => self.operand(&mut inside),
            }
            self.skip_blanks();
            if self.eat("=") {
                self.skip_blanks();
                self.statement(Use::Somebody, false, &mut inside);
            } else if self.peek() != Some('}') {
                self.next();
                self.stray(&mut inside);
            }
        }
        self.depth -= 1;
        out.push(Token::Group("@{", inside));
    }

    /// One operand that is no string and no number.
    fn operand(&mut self, out: &mut Vec<Token>) {
        match self.peek() {
            Some('$') => {
                let mut value = Vec::new();
                if self.variable(&mut value) {
                    out.push(Token::Value(value));
                } else {
                    self.next();
                    self.stray(out);
                }
            }
            Some('(') => self.group("(", ')', Use::Somebody, out),
            Some('{') => self.group("{", '}', Use::Nobody, out),
            Some('@') if self.second() == Some('(') => self.group("@(", ')', Use::Somebody, out),
            Some('@') if self.second() == Some('{') => self.hash(out),
            _ => {
                self.next();
                self.stray(out);
            }
        }
        self.members(out);
    }

    fn expression(&mut self, out: &mut Vec<Token>) {
        // Two operands need an operator between them.
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
                '-' if self.second().is_some_and(char::is_alphabetic) => {
                    self.next();
                    let name = self.take_while(char::is_alphanumeric).to_lowercase();
                    out.push(Token::Sign(format!("-{name}")));
                    has_operand = false;
                }
                '>' => {
                    self.redirection(out);
                    self.skip_blanks();
                    if self.peek().is_some_and(|c| !ends_word(c)) {
                        let target = self.argument();
                        out.extend(target);
                    }
                }
                '+' | '-' if self.rest().starts_with("++") || self.rest().starts_with("--") => {
                    self.at += 2;
                    out.push(Token::Sign(format!("{c}{c}")));
                }
                ',' | '+' | '-' | '*' | '/' | '%' | '!' => {
                    self.next();
                    out.push(Token::Sign(c.to_string()));
                    has_operand = false;
                }
                '.' if self.eat("..") => {
                    out.push(Token::Sign("..".to_owned()));
                    has_operand = false;
                }
                '[' if !has_operand => {
                    self.bracket(false, out);
                    self.members(out);
                    // A type may stand alone or before what it converts.
                    has_operand = matches!(out.last(), Some(Token::Group("call", _)));
                }
                _ if c.is_alphabetic() => {
                    let word = self.take_while(is_name).to_lowercase();
                    if word == "in" && has_operand {
                        out.push(Token::Sign(word));
                        has_operand = false;
                    } else {
                        self.stray(out);
                    }
                }
                _ => {
                    if has_operand {
                        self.stray(out);
                    }
                    if is_double_quote(c) || is_single_quote(c) {
                        let string = self.string();
                        out.push(Token::Value(string));
                        self.members(out);
                    } else if c.is_ascii_digit() || c == '.' {
                        self.number(out);
                    } else {
                        self.operand(out);
                    }
                    has_operand = true;
                }
            }
        }
    }

    fn assigned(&mut self, sign: &str, out: &mut Vec<Token>) {
        out.push(Token::Sign(sign.to_owned()));
        self.rest_of_statement(out);
    }

    /// A number; one that reads the same as a text is one.
    fn number(&mut self, out: &mut Vec<Token>) {
        let text = self
            .take_while(|c| c.is_ascii_alphanumeric() || c == '.')
            .to_owned();
        let as_text = text.len() < 10
            && text.bytes().all(|b| b.is_ascii_digit())
            && (text == "0" || !text.starts_with('0'));
        if as_text {
            out.push(Token::Value(vec![Part::Text(text)]));
        } else if text.starts_with(|c: char| c.is_ascii_digit()) {
            out.push(Token::Sign(text));
        } else {
            self.stray(out);
        }
    }

    /// Makes a message of a command that only says something, and a script of another shell's.
    fn end_command(&mut self, start: usize, used: Use, out: &mut Vec<Token>) {
        let Some(Token::Command(name)) = out.get(start) else {
            return;
        };
        // Where a variable begins the name, it is a program's path.
        let name = match name.last() {
            Some(Part::Text(name)) => name.to_lowercase(),
            _ => String::new(),
        };
        let is_message = MESSAGES.contains(&name.as_str())
            && used == Use::Nobody
            && !self.rest().starts_with('|')
            && !out[start..]
                .iter()
                .any(|token| matches!(token, Token::Sign(sign) if sign.contains('>')));
        if is_message {
            let said = out.split_off(start);
            out.push(Token::Message(only_run(said)));
            return;
        }
        let file = name.rsplit(['\\', '/']).next().unwrap_or_default();
        let shell = file.strip_suffix(".exe").unwrap_or(file).to_owned();
        let is_native = !is_cmdlet(&name);
        if is_native || matches!(name.as_str(), "start-process" | "saps" | "start") {
            as_programs_read(&mut out[start + 1..]);
        }
        if is_native {
            join_lists(out, start + 1);
        }
        let shell = shell.as_str();
        if matches!(shell, "powershell" | "pwsh" | "cmd")
            && let Some(line) = command_line(&out[start..])
        {
            let script = nested(shell, &line, self.depth);
            if let Some(script) = script {
                out.truncate(start + 1);
                out.push(script);
            }
        }
    }
}

/// Whether a name is of the form that PowerShell's own commands have.
fn is_cmdlet(name: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(char::is_alphanumeric);
    name.split_once('-')
        .is_some_and(|(verb, noun)| is_word(verb) && is_word(noun))
}

/// To a program quotes around what has no white space make no difference.
fn as_programs_read(tokens: &mut [Token]) {
    for token in tokens {
        match token {
            Token::Value(value) => {
                for part in value {
                    if let Part::Text(text) = part {
                        *text = without_idle_quotes(text);
                    }
                }
            }
            Token::Group(_, inside) => as_programs_read(inside),
            _ => {}
        }
    }
}

fn without_idle_quotes(text: &str) -> String {
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

/// A program gets `a,b` as it stands.
fn join_lists(out: &mut Vec<Token>, start: usize) {
    let command = out.split_off(start);
    let mut tokens = command.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_comma = token == Token::Sign(",".to_owned());
        match (out.last_mut(), tokens.peek()) {
            (Some(Token::Value(value)), Some(Token::Value(_))) if is_comma => {
                if let Some(Token::Value(next)) = tokens.next() {
                    append(value, vec![Part::Text(",".to_owned())]);
                    append(value, next);
                }
            }
            _ => out.push(token),
        }
    }
}

/// The command line that PowerShell makes of a command, with a sign in place of each variable.
fn command_line(command: &[Token]) -> Option<String> {
    let words = command
        .iter()
        .map(|token| match token {
            Token::Command(value) | Token::Value(value) => value
                .iter()
                .map(|part| match part {
                    Part::Text(text) => Some(text.clone()),
                    Part::Variable(name) => Some(format!("\u{e000}{name}\u{e000}")),
                    Part::Script(_) => None,
                })
                .collect(),
            _ => None,
        })
        .collect::<Option<Vec<String>>>()?;
    Some(native_command_line(&words))
}

/// The script that a shell is given in its command line, read the way that shell reads it.
fn nested(shell: &str, line: &str, depth: usize) -> Option<Token> {
    if depth > DEPTH {
        return None;
    }
    if shell == "cmd" {
        let lower = line.to_ascii_lowercase();
        let at = lower.find(" /c ").or_else(|| lower.find(" /k "))?;
        let text = cmd::strip_quotes(&line[at + 4..]);
        return Some(Token::Group(
            "cmd",
            vec![Token::Sign(squeezed(text.trim()))],
        ));
    }
    let argv = argv::split(line, argv::Reader::CRuntime);
    let command = argv.iter().position(|word| is_command_option(word))?;
    let script = read_at(&argv[command + 1..].join(" "), depth + 1);
    let mut tokens: Vec<Token> = argv[1..command]
        .iter()
        .map(|word| Token::Sign(word.to_lowercase()))
        .collect();
    if !script.is_sound {
        tokens.push(Token::Stray);
    }
    tokens.extend(script.tokens);
    Some(Token::Group("powershell", tokens))
}

/// Whether an option of PowerShell means that a script follows.
pub fn is_command_option(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    lower
        .strip_prefix(['-', '/'])
        .is_some_and(|name| !name.is_empty() && "command".starts_with(name))
}

/// What a message runs: the words of it do not matter.
fn only_run(said: Vec<Token>) -> Vec<Token> {
    said.into_iter()
        .flat_map(|token| match token {
            Token::Value(value) => value
                .into_iter()
                .filter_map(|part| match part {
                    Part::Script(tokens) => Some(Token::Group("(", tokens)),
                    _ => None,
                })
                .collect(),
            Token::Group(..) | Token::Stray | Token::Message(_) => vec![token],
            _ => Vec::new(),
        })
        .collect()
}

/// What in an error to throw could not be read; the rest fails the one way or the other.
fn only_stray(said: &[Token]) -> Vec<Token> {
    let mut found = Vec::new();
    for token in said {
        match token {
            Token::Stray => found.push(Token::Stray),
            Token::Group(_, inside) | Token::Message(inside) => found.extend(only_stray(inside)),
            _ => {}
        }
    }
    found
}

fn push_text(value: &mut Value, text: &mut String) {
    if !text.is_empty() {
        let text = std::mem::take(text);
        append(value, vec![Part::Text(squeezed(&text))]);
    }
}

/// Adds to a value, one text behind another being one.
fn append(value: &mut Value, more: Value) {
    for part in more {
        match (value.last_mut(), part) {
            (Some(Part::Text(text)), Part::Text(more)) => text.push_str(&more),
            (_, part) => value.push(part),
        }
    }
}

/// A text with one space for any white space in a row.
fn squeezed(text: &str) -> String {
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
