//! Tokenizer of PowerShell: commands and their arguments, strings, variables, operators.
//!
//! Published grammars parse arguments as expressions, so that `$env:TEMP\x.zip` is an error and
//! `a"b c"d` two words. The words of a command matter here, so this follows PowerShell's own
//! tokenizer: a statement begins as a command or as an expression, quotes inside a bare word keep
//! it together, `$name.zip` is a member of `$name`, and `$(x)\y` is two words. The quoting of an
//! argument is dropped: `"a"`, `'a'` and `a` are the same token.

mod command;
mod effect;
mod expression;
mod statement;
mod word;

pub use command::{is_cmdlet, is_command_option};

use super::cursor::{Cursor, ends_word, is_quote};

/// Token, independent of its spelling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptToken {
    /// The name of a command.
    Command(Value),
    /// An argument of a command, or a string in an expression.
    Value(Value),
    /// A number, operator, member or type.
    Sign(String),
    /// Keyword.
    Keyword(String),
    /// Tokens in a pair of brackets.
    Group(&'static str, Vec<ScriptToken>),
    /// Command that only prints, with the scripts in its arguments.
    Message(Vec<ScriptToken>),
    /// The end of a statement.
    End,
    /// Unexpected character.
    Stray,
}

/// Text with variables and scripts.
pub type Value = Vec<TextPart>;

/// Part of a string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextPart {
    /// Characters; consecutive white space is one space.
    Text(String),
    /// A variable.
    Variable(String),
    /// Result of a script.
    Script(Vec<ScriptToken>),
}

/// Script as tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenizedScript {
    /// Its tokens.
    pub tokens: Vec<ScriptToken>,
    /// True if every quote and bracket is closed and no token is stray.
    pub is_sound: bool,
    /// True if a statement is only a string, which is likely a mistake.
    pub has_lone_string: bool,
}

impl TokenizedScript {
    /// Returns true if another script has the same effect.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        effect::normalize(&self.tokens) == effect::normalize(&other.tokens)
    }

    /// Name of the command, if the script is a single command.
    pub fn only_command(&self) -> Option<&str> {
        let (name, arguments) = match self.tokens.as_slice() {
            [ScriptToken::Command(name), arguments @ ..] => (name, arguments),
            // All commands that only print are equivalent.
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

/// Tokenizes a script. It never fails.
pub fn read(text: &str) -> TokenizedScript {
    read_at(text, 0)
}

/// Maximum depth of nested brackets and scripts.
const DEPTH: usize = 48;

fn read_at(text: &str, depth: usize) -> TokenizedScript {
    let mut reader = Tokenizer::new(text, depth);
    let mut tokens = Vec::new();
    reader.statements(None, OutputUse::Unused, &mut tokens);
    TokenizedScript {
        tokens,
        is_sound: !reader.state.is_broken,
        has_lone_string: reader.state.has_lone_string,
    }
}

/// Use of a statement's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutputUse {
    Used,
    Unused,
}

type Tokenizer<'a> = Cursor<'a, TokenizerState>;

#[derive(Default)]
struct TokenizerState {
    /// True after an unclosed quote or bracket, or a stray token.
    is_broken: bool,
    has_lone_string: bool,
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '?')
}

impl Tokenizer<'_> {
    fn stray(&mut self, out: &mut Vec<ScriptToken>) {
        self.state.is_broken = true;
        out.push(ScriptToken::Stray);
    }

    /// Skips white space and comments, but not line ends.
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
                        self.state.is_broken = true;
                    }
                },
                Some(_) => return,
            }
        }
    }
}
