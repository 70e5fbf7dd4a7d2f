//! Parsing by Windows PowerShell 5.1 of the text after `powershell -Command`.
//!
//! Three parsers run in a row. `powershell.exe` splits its command line like any program, which
//! removes plain double quotes but keeps `\"`, and joins the words with single spaces to a script.
//! The script has PowerShell's grammar, in which a string in single quotes is literal, and the
//! typographic quotes ‘ ’ ‚ ‛ are single quotes, too. To start a program, PowerShell builds a
//! command line again: it puts quotes around a word with white space without escaping anything in
//! it, drops empty words, interprets a word `--%`, and lets a backslash at the end of a word
//! escape its closing quote. PowerShell 7.3 and newer quote correctly.

use super::argv::{self, ArgvParser};

/// The script that PowerShell runs for a text after `powershell -Command`.
pub fn script(text: &str) -> String {
    argv::split_arguments(text, ArgvParser::CRuntime).join(" ")
}

/// Returns true if this character is a single quote in PowerShell.
pub fn is_single_quote(c: char) -> bool {
    matches!(c, '\'' | '‘' | '’' | '‚' | '‛')
}

/// Returns true if this character is a double quote in PowerShell.
pub fn is_double_quote(c: char) -> bool {
    matches!(c, '"' | '“' | '”' | '„')
}

/// Returns true if this character is a dash in PowerShell, which begins a parameter.
pub fn is_dash(c: char) -> bool {
    matches!(c, '-' | '–' | '—' | '―')
}

/// A string in single quotes, in which only quotes are escaped, by doubling.
pub fn literal(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('\'');
    for c in text.chars() {
        quoted.push(c);
        if is_single_quote(c) {
            quoted.push(c);
        }
    }
    quoted.push('\'');
    quoted
}

/// The command line that Windows PowerShell builds for a program from the words of its script.
pub fn native_command_line<S: AsRef<str>>(words: &[S]) -> String {
    let mut words = words.iter().map(AsRef::as_ref);
    let mut line = words
        .next()
        .map(|program| argv::join(&[program]))
        .unwrap_or_default();
    for word in words.filter(|word| *word != "--%") {
        line.push(' ');
        if has_unquoted_space(word) {
            line.push('"');
            line.push_str(word);
            line.push('"');
        } else {
            line.push_str(word);
        }
    }
    line
}

/// PowerShell's own test for white space outside quotes, by which it decides to add quotes.
fn has_unquoted_space(word: &str) -> bool {
    let mut quoted = false;
    let mut after_backslash = false;
    for c in word.chars() {
        if c == '"' && !after_backslash {
            quoted = !quoted;
        } else if c.is_whitespace() && !quoted {
            return true;
        }
        after_backslash = c == '\\';
    }
    false
}

/// The words of a script that is one plain command: a name or `&` and a string, then bare words
/// and strings without variables. `None` if PowerShell would do more than start a program.
pub fn simple_command(script: &str) -> Option<Vec<String>> {
    let script = script.trim();
    let called = script.strip_prefix('&').map(str::trim_start);
    let mut rest = called.unwrap_or(script);
    // Without `&` a string at the start is a value to print, not a command.
    if called.is_none() && rest.starts_with(|c| is_single_quote(c) || is_double_quote(c)) {
        return None;
    }
    let mut words = Vec::new();
    while !rest.is_empty() {
        let (word, after) = read_word(rest)?;
        words.push(word);
        rest = after.trim_start();
    }
    (!words.is_empty()).then_some(words)
}

fn read_word(text: &str) -> Option<(String, &str)> {
    let first = text.chars().next()?;
    let (word, rest) = if is_single_quote(first) {
        read_string(&text[first.len_utf8()..], is_single_quote, |_| false)?
    } else if is_double_quote(first) {
        read_string(&text[first.len_utf8()..], is_double_quote, |c| {
            matches!(c, '$' | '`')
        })?
    } else {
        let end = text.find(char::is_whitespace).unwrap_or(text.len());
        let (bare, rest) = text.split_at(end);
        if !bare.chars().all(is_bare) || bare.starts_with(['@', '#']) || bare == "--%" {
            return None;
        }
        (bare.to_owned(), rest)
    };
    (rest.is_empty() || rest.starts_with(char::is_whitespace)).then_some((word, rest))
}

/// Reads a string up to its closing quote; two quotes in a row are one in the string.
fn read_string(
    text: &str,
    is_quote: fn(char) -> bool,
    is_special: fn(char) -> bool,
) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        if is_special(c) {
            return None;
        }
        if is_quote(c) {
            match characters.next_if(|(_, next)| is_quote(*next)) {
                Some((_, second)) => value.push(second),
                None => return Some((value, &text[at + c.len_utf8()..])),
            }
        } else {
            value.push(c);
        }
    }
    None
}

/// Returns true if a character is literal in a word without quotes.
fn is_bare(c: char) -> bool {
    !is_single_quote(c) && !is_double_quote(c) && !"$`(){};|&<>,@#".contains(c) && !c.is_control()
}
