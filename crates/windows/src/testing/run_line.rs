//! Processing of a `RUN` line in exec form by a Windows daemon: an independent implementation, so that
//! the tests do not share the module's mistakes.

use crate::quoting::Escape;
use crate::quoting::argv::{ArgvParser, split};

/// The arguments that the program finally gets.
pub fn argv(escape: Escape, instruction: &str) -> Vec<String> {
    let followed = format!("{instruction}\nLABEL after=1\n");
    let line = first_instruction(&followed, escape.character());
    let text = line.strip_prefix("RUN").expect("it is a RUN line");
    let text = text.trim_start_matches([' ', '\t', '\u{b}', '\n']);
    assert!(!text.starts_with("--"), "read as a flag: {text}");
    assert!(
        !opens_here_document(text),
        "read as a here-document: {text}"
    );
    let Some(elements) = json(text) else {
        panic!("not read as JSON: {text}");
    };
    let escaped: Vec<String> = elements.iter().map(|e| escaped_by_daemon(e)).collect();
    split(&escaped.join(" "), ArgvParser::CommandLineToArgvW)
}

/// Joins lines as long as one ends in the escape character, a doubled one excepted.
fn first_instruction(dockerfile: &str, escape: char) -> String {
    let mut joined = String::new();
    for line in dockerfile.split('\n') {
        let line = line.trim_end_matches('\r');
        let body = line.trim_end_matches([' ', '\t']);
        let escapes = body.chars().rev().take_while(|c| *c == escape).count();
        if escapes != 1 {
            joined.push_str(line);
            break;
        }
        joined.push_str(&body[..body.len() - 1]);
    }
    joined
}

/// Returns true if a word outside quotes looks like `<<EOF`; a backslash escapes, whatever the
/// Dockerfile's own escape character is.
fn opens_here_document(text: &str) -> bool {
    let mut in_quote = None;
    let mut word = String::new();
    let mut words = Vec::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (in_quote, c) {
            (None | Some('"'), '\\') => {
                word.push(c);
                word.extend(characters.next());
                continue;
            }
            (None, '"' | '\'') => in_quote = Some(c),
            (Some(quote), _) if quote == c => in_quote = None,
            (None, _) if c.is_whitespace() => words.push(std::mem::take(&mut word)),
            _ => {}
        }
        word.push(c);
    }
    words.push(word);
    words.iter().any(|word| {
        word.trim_start_matches(|c: char| c.is_ascii_digit())
            .strip_prefix("<<")
            .is_some_and(|rest| !rest.contains('<'))
    })
}

/// The first JSON value of the text, if that is an array of strings.
fn json(text: &str) -> Option<Vec<String>> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    text.starts_with('[').then(|| values.next())??.ok()
}

/// Go's `EscapeArg`.
fn escaped_by_daemon(argument: &str) -> String {
    if argument.is_empty() {
        return "\"\"".to_owned();
    }
    let spaced = argument.contains([' ', '\t']);
    let mut out = String::new();
    let mut slashes = 0;
    for c in argument.chars() {
        match c {
            '\\' => slashes += 1,
            '"' => {
                out.push_str(&"\\".repeat(slashes + 1));
                slashes = 0;
            }
            _ => slashes = 0,
        }
        out.push(c);
    }
    if spaced {
        return format!("\"{out}{}\"", "\\".repeat(slashes));
    }
    out
}
