//! A model of Moby's parser and shell lexer, as far as rendered Dockerfiles need it.

use wincimg_windows::quoting::Escape;
use wincimg_windows::testing::run_line::argv;

/// An instruction: its keyword, and the text after it.
pub(super) type Instruction = (String, String);

/// Instructions of a file whose escape character is the backtick. None may have a second line.
pub(super) fn instructions(dockerfile: &str) -> Vec<Instruction> {
    assert!(dockerfile.starts_with("# escape=`\n"), "{dockerfile}");
    dockerfile
        .split('\n')
        .filter(|line| !line.trim().is_empty() && !line.trim_start().starts_with('#'))
        .map(|line| {
            assert!(
                !line.trim_end_matches([' ', '\t']).ends_with('`'),
                "joined: {line}"
            );
            let (keyword, rest) = line.split_once(' ').unwrap();
            (keyword.to_owned(), rest.to_owned())
        })
        .collect()
}

/// Arguments of the programs of all `RUN` lines.
pub(super) fn runs(dockerfile: &str) -> Vec<Vec<String>> {
    instructions(dockerfile)
        .iter()
        .filter(|(keyword, _)| keyword == "RUN")
        .map(|(_, text)| argv(Escape::Backtick, &format!("RUN {text}")))
        .collect()
}

/// The array of the only instruction of this name.
pub(super) fn array(dockerfile: &str, name: &str) -> Option<Vec<String>> {
    let text = single(dockerfile, name)?;
    Some(serde_json::from_str(&text).unwrap())
}

/// The last instruction of this name, its word read.
pub(super) fn value(dockerfile: &str, name: &str) -> Option<String> {
    let found = instructions(dockerfile)
        .into_iter()
        .rfind(|(keyword, _)| keyword == name)?;
    Some(process(&found.1))
}

/// The names and values of all instructions of this name.
pub(super) fn pairs(dockerfile: &str, name: &str) -> Vec<(String, String)> {
    instructions(dockerfile)
        .iter()
        .filter(|(keyword, _)| keyword == name)
        .flat_map(|(_, text)| words(text))
        .map(|word| {
            let (key, value) = word.split_once('=').unwrap();
            (process(key), process(value))
        })
        .collect()
}

fn single(dockerfile: &str, name: &str) -> Option<String> {
    let mut found = instructions(dockerfile)
        .into_iter()
        .filter(|(keyword, _)| keyword == name);
    let first = found.next();
    assert_eq!(found.next(), None);
    first.map(|(_, text)| text)
}

/// `parseWords`: at spaces outside quotes; quotes and escapes stay.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match quote {
            None if c.is_whitespace() => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                continue;
            }
            None if c == '"' || c == '\'' => quote = Some(c),
            Some(open) if open == c => quote = None,
            _ => {}
        }
        word.push(c);
        if c == '`' && quote != Some('\'') {
            word.extend(characters.next());
        }
    }
    assert_eq!(quote, None, "a quote is open in {text}");
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// The lexer's `ProcessWord`, with no variable set.
fn process(word: &str) -> String {
    let mut out = String::new();
    let mut characters = word.chars().peekable();
    let mut double = false;
    while let Some(c) = characters.next() {
        match c {
            '\'' if !double => {
                for c in characters.by_ref().take_while(|c| *c != '\'') {
                    out.push(c);
                }
            }
            '"' => double = !double,
            '$' => {
                while characters
                    .next_if(|c| c.is_ascii_alphanumeric() || "_{}:".contains(*c))
                    .is_some()
                {}
            }
            '`' if double => match characters.next_if(|c| matches!(c, '"' | '$' | '`')) {
                Some(escaped) => out.push(escaped),
                None => out.push('`'),
            },
            '`' => out.extend(characters.next()),
            _ => out.push(c),
        }
    }
    assert!(!double, "a quote is open in {word}");
    out
}
