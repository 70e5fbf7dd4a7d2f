//! Processing of a `RUN` line by a Windows daemon and the shells: an independent implementation, so
//! that the tests do not share the module's mistakes.

use std::fmt::Write;

use crate::quoting::argv::{ArgvParser, split, split_arguments};
use crate::quoting::{Escape, RunShell};

/// The arguments that the program finally gets.
pub fn argv(shell: RunShell, escape: Escape, instruction: &str) -> Vec<String> {
    let followed = format!("{instruction}\nLABEL after=1\n");
    let line = first_instruction(&followed, escape.character());
    let text = line.strip_prefix("RUN").expect("it is a RUN line");
    let text = text.trim_start_matches([' ', '\t', '\u{b}', '\n']);
    assert!(!text.starts_with("--"), "read as a flag: {text}");
    assert!(
        !opens_here_document(text),
        "read as a here-document: {text}"
    );
    if let Some(elements) = json(text) {
        assert_eq!(shell, RunShell::Exec, "read as JSON: {text}");
        let escaped: Vec<String> = elements.iter().map(|e| escaped_by_daemon(e)).collect();
        return split(&escaped.join(" "), ArgvParser::CommandLineToArgvW);
    }
    match shell {
        RunShell::Exec => panic!("not read as JSON: {text}"),
        RunShell::Cmd => split(&through_cmd(text), ArgvParser::CRuntime),
        RunShell::PowerShell => through_powershell(text),
    }
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

/// `cmd /S /C` with `PATH` and the like defined, as one state machine.
fn through_cmd(text: &str) -> String {
    let text = match text.strip_prefix('"') {
        Some(rest) => {
            let last = rest.rfind('"').expect("a second quote");
            format!("{}{}", &rest[..last], &rest[last + 1..])
        }
        None => text.to_owned(),
    };
    let expanded = expand(&text);
    let mut line = String::new();
    let (mut quoted, mut escaped) = (false, false);
    for c in expanded.chars() {
        if escaped {
            escaped = false;
        } else if c == '^' && !quoted {
            escaped = true;
            continue;
        } else if c == '"' {
            quoted = !quoted;
        } else {
            assert!(
                quoted || !"&|<>()".contains(c),
                "{c} is an operator in {text}"
            );
        }
        line.push(c);
    }
    assert!(!escaped, "a caret at the end of {text}");
    line
}

fn expand(text: &str) -> String {
    let Some((before, rest)) = text.split_once('%') else {
        return text.to_owned();
    };
    if let Some((name, after)) = rest.split_once('%') {
        let name = name.split(':').next().unwrap_or_default();
        if ["path", "a", "b", "="].contains(&name.to_ascii_lowercase().as_str()) {
            return format!("{before}EXPANDED{}", expand(after));
        }
    }
    format!("{before}%{}", expand(rest))
}

/// `powershell -Command`: the grammar of a call with literal strings, and the command line that
/// version 5.1 builds for a program.
fn through_powershell(text: &str) -> Vec<String> {
    let script = split_arguments(text, ArgvParser::CRuntime).join(" ");
    let mut characters = script.strip_prefix('&').expect("a call").chars().peekable();
    let mut words = Vec::new();
    while let Some(c) = characters.next() {
        if c == ' ' {
            continue;
        }
        let is_quote = |c: &char| "'‘’‚‛".contains(*c);
        assert!(is_quote(&c), "a bare word in {script}");
        let mut word = String::new();
        loop {
            let c = characters.next().expect("a closing quote");
            if is_quote(&c) {
                let Some(second) = characters.next_if(is_quote) else {
                    break;
                };
                word.push(second);
            } else {
                word.push(c);
            }
        }
        words.push(word);
    }
    let mut line = format!("\"{}\"", words[0]);
    for word in &words[1..] {
        assert!(!word.is_empty(), "an empty word is dropped");
        assert_ne!(word, "--%", "PowerShell keeps this word to itself");
        let mut odd = false;
        let mut before = ' ';
        let mut add_quotes = false;
        for c in word.chars() {
            odd ^= c == '"' && before != '\\';
            add_quotes |= c.is_whitespace() && !odd;
            before = c;
        }
        let quote = if add_quotes { "\"" } else { "" };
        write!(line, " {quote}{word}{quote}").unwrap();
    }
    split(&line, ArgvParser::CRuntime)
}
