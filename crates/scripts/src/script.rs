//! What PowerShell reads in a script: commands and their arguments, strings, variables, operators.
//!
//! The published grammars read arguments as expressions, so that `$env:TEMP\x.zip` is a mistake to
//! them and `a"b c"d` two words. A command's words are what matters here, so this follows
//! PowerShell's own tokenizer: a statement begins as a command or as an expression, quotes inside
//! a bare word keep it together, `$name.zip` is a member of `$name`, and `$(x)\y` is two words.
//! How an argument is written does not show: `"a"`, `'a'` and `a` are the same token.

mod command;
mod effect;
mod expression;
mod statement;
mod word;

pub use command::{is_cmdlet, is_command_option};

/// A piece of a script, without the way it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptToken {
    /// The name of a command.
    Command(Value),
    /// An argument of a command, or a string in an expression.
    Value(Value),
    /// A number, operator, member or type.
    Sign(String),
    /// A word of the language.
    Keyword(String),
    /// What stands in a pair of brackets.
    Group(&'static str, Vec<ScriptToken>),
    /// A command that only says something: what it runs in order to say it.
    Message(Vec<ScriptToken>),
    /// The end of a statement.
    End,
    /// Something that may not stand where it does.
    Stray,
}

/// A text with what is put into it.
pub type Value = Vec<TextPart>;

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextPart {
    /// Characters; white space in a row counts once.
    Text(String),
    /// A variable.
    Variable(String),
    /// The result of a script.
    Script(Vec<ScriptToken>),
}

/// A script that has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenizedScript {
    /// Its tokens.
    pub tokens: Vec<ScriptToken>,
    /// True if every quote and bracket is closed and nothing is stray.
    pub is_sound: bool,
    /// True if a statement is nothing but a string, which no one writes on purpose.
    pub has_lone_string: bool,
}

impl TokenizedScript {
    /// Returns true if another script does the same.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        effect::normalize(&self.tokens) == effect::normalize(&other.tokens)
    }

    /// The name of the command that the script is, if it is one command and no more.
    pub fn only_command(&self) -> Option<&str> {
        let (name, arguments) = match self.tokens.as_slice() {
            [ScriptToken::Command(name), arguments @ ..] => (name, arguments),
            // Which of those that only say something does not matter.
            [ScriptToken::Message(_)] => return Some("write-output"),
            _ => return None,
        };
        let is_more = |token: &ScriptToken| match token {
            ScriptToken::Sign(sign) => sign != ",",
            ScriptToken::Value(_) | ScriptToken::Group(..) => false,
            _ => true,
        };
        match name.as_slice() {
            [TextPart::Text(name)] if self.is_sound && !arguments.iter().any(is_more) => Some(name),
            _ => None,
        }
    }
}

/// Reads a script; any text can be read.
pub fn read(text: &str) -> TokenizedScript {
    read_at(text, 0)
}

/// How deep brackets and scripts in scripts are followed.
const DEPTH: usize = 48;

fn read_at(text: &str, depth: usize) -> TokenizedScript {
    let mut reader = Tokenizer {
        text,
        at: 0,
        depth,
        is_sound: true,
        has_lone_string: false,
    };
    let mut tokens = Vec::new();
    reader.statements(None, Use::Nobody, &mut tokens);
    TokenizedScript {
        tokens,
        is_sound: reader.is_sound,
        has_lone_string: reader.has_lone_string,
    }
}

/// True if anything takes what a statement gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    Somebody,
    Nobody,
}

struct Tokenizer<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    is_sound: bool,
    has_lone_string: bool,
}

/// What ends a word in a command.
fn ends_word(c: char) -> bool {
    c.is_whitespace() || "(){};,|&<>".contains(c)
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '?')
}

impl Tokenizer<'_> {
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

    fn stray(&mut self, out: &mut Vec<ScriptToken>) {
        self.is_sound = false;
        out.push(ScriptToken::Stray);
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
}
