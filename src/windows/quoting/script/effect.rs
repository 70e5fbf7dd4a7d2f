//! What of a script's tokens makes a difference.

use super::{Part, Token, Value};

/// Options of PowerShell that do not change what its commands do.
const IDLE_OPTIONS: [&str; 4] = ["-noprofile", "-noninteractive", "-nologo", "-nop"];

/// Commands whose effect ends with the shell that ran them.
const OF_THE_SHELL: [&str; 12] = [
    "cd",
    "chdir",
    "sl",
    "pushd",
    "popd",
    "set-location",
    "push-location",
    "pop-location",
    "import-module",
    "set-variable",
    "set-strictmode",
    "set-executionpolicy",
];

/// The tokens without differences that make none: how many backslashes end a folder's name, and
/// whether a command runs here or in a PowerShell of its own that nothing is left of.
pub(super) fn of(tokens: &[Token]) -> Vec<Token> {
    let mut out: Vec<Token> = Vec::with_capacity(tokens.len());
    for statement in tokens.split(|token| *token == Token::End) {
        if !out.is_empty() && !statement.is_empty() {
            out.push(Token::End);
        }
        match script_of_its_own(statement) {
            Some(inside) => out.extend(of(inside)),
            None => out.extend(statement.iter().map(plain)),
        }
    }
    out
}

/// The script of a statement that only starts PowerShell with it, if it works as well without.
fn script_of_its_own(statement: &[Token]) -> Option<&[Token]> {
    let [Token::Command(name), Token::Group("powershell", tokens)] = statement else {
        return None;
    };
    let [Part::Text(name)] = name.as_slice() else {
        return None;
    };
    let is_option = |token: &&Token| matches!(token, Token::Sign(sign) if IDLE_OPTIONS.contains(&sign.as_str()));
    let options = tokens.iter().take_while(is_option).count();
    let script = &tokens[options..];
    let is_powershell = name.eq_ignore_ascii_case("powershell");
    (is_powershell && script.iter().all(leaves_nothing)).then_some(script)
}

fn leaves_nothing(token: &Token) -> bool {
    let text = |value: &Value| match value.as_slice() {
        [Part::Text(text)] => Some(text.to_lowercase()),
        _ => None,
    };
    match token {
        Token::Command(name) => {
            text(name).is_some_and(|name| !OF_THE_SHELL.contains(&name.as_str()))
        }
        Token::Value(value) => text(value).is_some(),
        Token::Sign(sign) => sign == ",",
        Token::End => true,
        _ => false,
    }
}

fn plain(token: &Token) -> Token {
    match token {
        Token::Value(value) => {
            let mut value = value.clone();
            if let [Part::Text(text)] = value.as_mut_slice()
                && is_on_a_drive(text)
                && text.ends_with('\\')
            {
                let end = text.trim_end_matches('\\').len();
                text.truncate(end + 1);
            }
            Token::Value(value)
        }
        Token::Group(open, inside) => Token::Group(open, inside.iter().map(plain).collect()),
        Token::Message(inside) => Token::Message(inside.iter().map(plain).collect()),
        other => other.clone(),
    }
}

/// Whether a text is the path of a file, from the drive on.
fn is_on_a_drive(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && characters.as_str().starts_with(":\\")
}
