//! Lexer for words of a Dockerfile: quotes, escapes, and variables with their modifiers.
//!
//! The rules are those of `BuildKit`'s lexer, almost a shell's: `${NAME:-default}`, `:+`, `:?`, the
//! same without the colon, `#`, `##`, `%`, `%%` with `*` and `?`, `/` and `//`.

use std::iter::Peekable;
use std::str::Chars;

use regex::{NoExpand, Regex};
use wincimg_common::untrusted::QuotedText;
use wincimg_windows::quoting::Escape;

/// Maximum nesting of variables in modifiers.
const DEEPEST: usize = 100;
/// Maximum size of an expanded text.
const LONGEST: usize = 1 << 20;

/// A text without quotes and variables.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExpandedWord {
    /// The text.
    pub text: String,
    /// Text split at unquoted spaces.
    pub words: Vec<String>,
    /// Variables that are used and not set.
    pub unset: Vec<String>,
}

const TOO_DEEP: &str = "variables are nested too deeply";
const TOO_LONG: &str = "its variables expand to more than 1 MiB";

/// Error for an unclosed quote or brace.
fn open(what: &str) -> String {
    format!("{what} is not closed")
}

/// Settings for reading words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lexer {
    pub escape: Escape,
    /// True if quotes are plain characters, as in here-documents.
    pub(crate) keeps_quotes: bool,
}

impl Lexer {
    /// Lexer for the arguments of instructions.
    pub(crate) const fn new(escape: Escape) -> Self {
        Self {
            escape,
            keeps_quotes: false,
        }
    }

    pub(crate) fn expand(
        self,
        text: &str,
        value: &dyn Fn(&str) -> Option<String>,
    ) -> Result<ExpandedWord, String> {
        if !text.contains(['$', '\'', '"', self.escape.character()]) {
            return Ok(ExpandedWord {
                text: text.to_owned(),
                words: text.split_whitespace().map(str::to_owned).collect(),
                unset: Vec::new(),
            });
        }
        let mut reader = WordReader {
            lexer: self,
            rest: text.chars().peekable(),
            value,
            unset: Vec::new(),
            depth: 0,
            left: LONGEST,
        };
        let (text, words) = reader.read(None, false)?;
        Ok(ExpandedWord {
            text,
            words,
            unset: reader.unset,
        })
    }
}

/// A text of a trigger; none if it has variables or escapes, or an open quote.
pub fn expand_plain(text: &str) -> Option<ExpandedWord> {
    let is_plain = !text.contains(['$', Escape::Backslash.character()]);
    let expanded = is_plain.then(|| Lexer::new(Escape::Backslash).expand(text, &|_| None));
    expanded?.ok()
}

struct WordReader<'a> {
    lexer: Lexer,
    rest: Peekable<Chars<'a>>,
    value: &'a dyn Fn(&str) -> Option<String>,
    unset: Vec<String>,
    depth: usize,
    /// Remaining part of [`LONGEST`].
    left: usize,
}

/// Text and its words under construction.
#[derive(Default)]
struct Words {
    text: String,
    done: Vec<String>,
    word: String,
}

impl Words {
    /// Adds a character that is neither quoted nor escaped.
    fn add(&mut self, c: char) {
        self.text.push(c);
        if c.is_whitespace() {
            if !self.word.is_empty() {
                self.done.push(std::mem::take(&mut self.word));
            }
        } else {
            self.word.push(c);
        }
    }

    fn add_quoted(&mut self, text: &str) {
        self.text.push_str(text);
        self.word.push_str(text);
    }

    fn end(mut self) -> (String, Vec<String>) {
        if !self.word.is_empty() {
            self.done.push(self.word);
        }
        (self.text, self.done)
    }
}

impl WordReader<'_> {
    /// Reads to the end, or past a required character.
    fn read(
        &mut self,
        stop: Option<char>,
        keeps_escapes: bool,
    ) -> Result<(String, Vec<String>), String> {
        let mut words = Words::default();
        let escape = self.lexer.escape.character();
        while let Some(c) = self.rest.next() {
            if Some(c) == stop {
                return Ok(words.end());
            }
            match c {
                '$' => self.variable()?.chars().for_each(|c| words.add(c)),
                '\'' if !self.lexer.keeps_quotes => words.add_quoted(&self.single_quoted()?),
                '"' if !self.lexer.keeps_quotes => {
                    words.add_quoted(&self.double_quoted(keeps_escapes)?);
                }
                c if c == escape => {
                    let kept = keeps_escapes.then_some(c);
                    let escaped: String = kept.into_iter().chain(self.rest.next()).collect();
                    words.add_quoted(&escaped);
                }
                c => words.add(c),
            }
        }
        match stop {
            Some('/') => Err(open("${…/")),
            Some(_) => Err(open("${")),
            None => Ok(words.end()),
        }
    }

    fn single_quoted(&mut self) -> Result<String, String> {
        let mut text = String::new();
        for c in self.rest.by_ref() {
            if c == '\'' {
                return Ok(text);
            }
            text.push(c);
        }
        Err(open("'"))
    }

    fn double_quoted(&mut self, keeps_escapes: bool) -> Result<String, String> {
        let mut text = String::new();
        let mut has_escaped_quote = false;
        let escape = self.lexer.escape.character();
        while let Some(c) = self.rest.next() {
            match c {
                '"' => return Ok(text),
                '$' => text.push_str(&self.variable()?),
                c if c == escape => {
                    if keeps_escapes {
                        text.push(c);
                    }
                    match self.rest.peek() {
                        None => {}
                        Some(next) if *next == '"' || *next == '$' || *next == escape => {
                            has_escaped_quote |= *next == '"';
                            text.extend(self.rest.next());
                        }
                        Some(_) if keeps_escapes => {}
                        Some(_) => text.push(c),
                    }
                }
                c => text.push(c),
            }
        }
        let problem = open("\"");
        Err(if has_escaped_quote {
            format!("{problem}, as {escape}\" is an escaped quote: drop the {escape}")
        } else {
            problem
        })
    }

    /// Expands a variable after its `$`.
    fn variable(&mut self) -> Result<String, String> {
        if self.depth == DEEPEST {
            return Err(TOO_DEEP.to_owned());
        }
        self.depth += 1;
        let value = self.modified()?;
        self.depth -= 1;
        self.left = self.left.checked_sub(value.len()).ok_or(TOO_LONG)?;
        Ok(value)
    }

    fn modified(&mut self) -> Result<String, String> {
        if self.rest.next_if_eq(&'{').is_none() {
            let name = self.name();
            if name.is_empty() {
                return Ok("$".to_owned());
            }
            return Ok(self.value_of(&name));
        }
        match self.rest.peek() {
            None => return Err(open("${")),
            Some('{' | '}' | ':') => {
                let problem = "invalid variable in braces: expected a name, as in ${NAME}";
                return Err(problem.to_owned());
            }
            Some(_) => {}
        }
        let name = self.name();
        let mut modifier = String::new();
        let mut take = |reader: &mut Self| {
            let c = reader.rest.next();
            modifier.extend(c);
            c
        };
        let Some(mut c) = take(self) else {
            return Err(open("${"));
        };
        let empty_is_unset = c == ':';
        if empty_is_unset {
            c = take(self).ok_or_else(|| open("${"))?;
        }
        match c {
            '}' if !empty_is_unset => Ok(self.value_of(&name)),
            '-' | '+' | '?' => {
                let value = (self.value)(&name);
                let value = value.filter(|value| !(empty_is_unset && value.is_empty()));
                self.value_or_word(c, &name, value)
            }
            '#' | '%' if !empty_is_unset => {
                let (pattern, _) = self.read(Some('}'), true)?;
                let value = self.value_of(&name);
                let longest = pattern.strip_prefix(c);
                let own = longest.unwrap_or(&pattern);
                trimmed(&value, own, c == '%', longest.is_some())
            }
            '/' if !empty_is_unset => {
                let all = self.rest.next_if_eq(&'/').is_some();
                let (pattern, _) = self.read(Some('/'), true)?;
                let (replacement, _) = self.read(Some('}'), true)?;
                let value = self.value_of(&name);
                if value.len().saturating_mul(replacement.len()) > LONGEST {
                    return Err(TOO_LONG.to_owned());
                }
                replaced(&value, &pattern, &replacement, all)
            }
            _ => Err(format!(
                "unknown modifier {} of a variable: expected one of :- :+ :? - + ? # % /",
                QuotedText(&modifier)
            )),
        }
    }

    /// Expands `-word`, `+word` or `?word` of a variable, after the sign.
    fn value_or_word(
        &mut self,
        sign: char,
        name: &str,
        value: Option<String>,
    ) -> Result<String, String> {
        let (word, _) = self.read(Some('}'), false)?;
        match (sign, value) {
            ('-', value) => Ok(value.unwrap_or(word)),
            ('+', value) => Ok(value.map_or_else(String::new, |_| word)),
            (_, Some(value)) => Ok(value),
            (_, None) if word.is_empty() => Err(format!("{name} requires a value")),
            (_, None) => Err(format!("{name}: {word}")),
        }
    }

    fn value_of(&mut self, name: &str) -> String {
        (self.value)(name).unwrap_or_else(|| {
            if !self.unset.iter().any(|known| known == name) {
                self.unset.push(name.to_owned());
            }
            String::new()
        })
    }

    /// Reads a name; a number or a special character of a shell is one too.
    fn name(&mut self) -> String {
        let mut name = String::new();
        match self.rest.peek() {
            Some(c) if c.is_numeric() => {
                while let Some(c) = self.rest.next_if(|c| c.is_numeric()) {
                    name.push(c);
                }
            }
            Some('@' | '*' | '#' | '?' | '-' | '$' | '!') => name.extend(self.rest.next()),
            _ => {
                while let Some(c) = self.rest.next_if(|c| c.is_alphanumeric() || *c == '_') {
                    name.push(c);
                }
            }
        }
        name
    }
}

/// The parts of a shell's pattern as regular expressions; each `*` takes as much or as little as it can.
fn pattern_parts(text: &str, longest: bool) -> Result<Vec<String>, String> {
    let mut parts = Vec::new();
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        parts.push(match c {
            '*' if longest => ".*".to_owned(),
            '*' => ".*?".to_owned(),
            '?' => ".".to_owned(),
            '\\' => match rest.next() {
                Some(c @ ('}' | '/' | '*' | '?' | '\\')) => regex::escape(&c.to_string()),
                _ => {
                    return Err(format!(
                        "invalid pattern {text:?}: \\ escapes only *, ?, / and \\"
                    ));
                }
            },
            c => regex::escape(&c.to_string()),
        });
    }
    Ok(parts)
}

fn compiled(expression: &str) -> Result<Regex, String> {
    Regex::new(expression).map_err(|_| "a pattern of a variable is too long".to_owned())
}

/// Removes the pattern's match from the start or the end of a value; the end is read backwards.
fn trimmed(value: &str, pattern: &str, at_end: bool, longest: bool) -> Result<String, String> {
    let mut parts = pattern_parts(pattern, longest)?;
    if !at_end {
        let regex = compiled(&format!("^{}", parts.concat()))?;
        return Ok(regex.replace(value, "").into_owned());
    }
    parts.reverse();
    let regex = compiled(&format!("^{}", parts.concat()))?;
    let backwards: String = value.chars().rev().collect();
    Ok(regex.replace(&backwards, "").chars().rev().collect())
}

fn replaced(value: &str, pattern: &str, by: &str, all: bool) -> Result<String, String> {
    let regex = compiled(&pattern_parts(pattern, true)?.concat())?;
    let most = usize::from(!all);
    Ok(regex.replacen(value, most, NoExpand(by)).into_owned())
}
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(name: &str) -> Option<String> {
        let known = match name {
            "HOME" => r"C:\Users\me",
            "EMPTY" => "",
            "VERSION" => "1.22.3-rc1",
            "FILE" => "tool-1.2.tar.gz",
            "LIST" => "a b",
            "MESSAGE" => "foobarfoo",
            _ => return None,
        };
        Some(known.to_owned())
    }

    fn expand(text: &str) -> Result<String, String> {
        Lexer::new(Escape::Backslash)
            .expand(text, &value)
            .map(|it| it.text)
    }

    #[test]
    fn variables_and_modifiers_are_what_docker_documents() {
        for (text, expected) in [
            ("$VERSION", "1.22.3-rc1"),
            ("${VERSION}x", "1.22.3-rc1x"),
            ("$NONE", ""),
            ("${NONE:-word}", "word"),
            ("${EMPTY:-word}", "word"),
            ("${EMPTY-word}", ""),
            ("${NONE-word}", "word"),
            ("${VERSION:+word}", "word"),
            ("${EMPTY:+word}", ""),
            ("${EMPTY+word}", "word"),
            ("${NONE:-$VERSION}", "1.22.3-rc1"),
            ("${NONE:-${EMPTY:-deep}}", "deep"),
            ("${VERSION%-*}", "1.22.3"),
            ("${VERSION%.*}", "1.22"),
            ("${VERSION%%.*}", "1"),
            ("${VERSION#*.}", "22.3-rc1"),
            ("${VERSION##*.}", "3-rc1"),
            ("${FILE%.tar.??}", "tool-1.2"),
            ("${MESSAGE/foo/x}", "xbarfoo"),
            ("${MESSAGE//foo/x}", "xbarx"),
            ("${MESSAGE/f*o/x}", "x"),
            ("${MESSAGE//o/}", "fbarf"),
            ("${MESSAGE/none/x}", "foobarfoo"),
            ("${MESSAGE##*o}", ""),
            ("${MESSAGE#*o}", "obarfoo"),
            ("${MESSAGE%%o*}", "f"),
            ("${MESSAGE%.}", "foobarfoo"),
            ("${MESSAGE//*/x}", "x"),
            ("${LIST/ /\\$1}", "a\\$1b"),
            ("a\\$VERSION", "a$VERSION"),
            ("'$VERSION'", "$VERSION"),
            ("\"$VERSION\"", "1.22.3-rc1"),
            ("\"a\\b\"", "a\\b"),
            ("\"a\\\"b\"", "a\"b"),
            ("a\\b", "ab"),
            ("a\\", "a"),
            ("$", "$"),
            ("$ x", "$ x"),
            ("100%", "100%"),
            ("$$", ""),
            ("${HOME}", r"C:\Users\me"),
        ] {
            assert_eq!(expand(text).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn variables_in_variables_end_somewhere() {
        let nested = |depth| format!("{}x{}", "${NONE:-".repeat(depth), "}".repeat(depth));
        assert_eq!(expand(&nested(DEEPEST)).as_deref(), Ok("x"));
        assert_eq!(expand(&nested(DEEPEST + 1)), Err(TOO_DEEP.to_owned()));
        assert_eq!(expand(&nested(50_000)), Err(TOO_DEEP.to_owned()));
        assert_eq!(
            expand(&"$VERSION".repeat(LONGEST / 10 + 1)),
            Err(TOO_LONG.to_owned())
        );
        let long = "y".repeat(LONGEST / 9 + 1);
        assert_eq!(
            expand(&format!("${{MESSAGE//o/{long}}}")),
            Err(TOO_LONG.to_owned())
        );
    }

    #[test]
    fn what_does_not_close_is_an_error() {
        for text in [
            "${", "${A", "${A:-", "'a", "\"a", "${}", "${:x}", "${{A}", "${A:#x}", "${A!}",
            "${A/x", "${A/x/y", "${A:}", "${A#\\a}",
        ] {
            assert!(expand(text).is_err(), "{text}");
        }
        assert_eq!(expand("${NONE:?set it}").unwrap_err(), "NONE: set it");
        let unknown = expand(r"${NONE\a}").unwrap_err();
        assert!(
            unknown.starts_with(r#"unknown modifier "\" of"#),
            "{unknown}"
        );
        assert_eq!(
            expand(r#""C:\app\""#).unwrap_err(),
            r#"" is not closed, as \" is an escaped quote: drop the \"#
        );
        assert!(expand("${EMPTY?}").is_ok() && expand("${EMPTY:?}").is_err());
    }

    #[test]
    fn the_backtick_escapes_with_a_directive() {
        let lexer = Lexer::new(Escape::Backtick);
        let expand = |text| lexer.expand(text, &value).unwrap().text;
        assert_eq!(expand(r"C:\app\$VERSION"), r"C:\app\1.22.3-rc1");
        assert_eq!(expand(r"C:\app\`$VERSION"), r"C:\app\$VERSION");
        assert_eq!(expand(r"${HOME%\\*}"), r"C:\Users");
    }

    #[test]
    fn words_end_at_spaces_of_values_but_not_of_quotes() {
        let words = |text| {
            let lexer = Lexer::new(Escape::Backslash);
            lexer.expand(text, &value).unwrap().words
        };
        assert_eq!(
            words("$LIST 'c d' \"$LIST\" e\\ f"),
            ["a", "b", "c d", "a b", "e f"]
        );
        assert!(words("$NONE").is_empty());
    }

    #[test]
    fn only_variables_whose_value_was_wanted_are_reported() {
        let lexer = Lexer::new(Escape::Backslash);
        let unset = |text| lexer.expand(text, &value).unwrap().unset;
        assert_eq!(unset("$A ${B} ${C%x} $A"), ["A", "B", "C"]);
        assert!(unset("${A:-x} ${B+y} $VERSION").is_empty());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in r#"[a-z$ {}:+?#%/*'"\\`-]{0,24}"#) {
            let _ = expand(&text);
        }

        /// A removed prefix or suffix and the rest make the whole.
        #[test]
        fn what_is_cut_off_was_there(text in "[ab.]{0,8}", pattern in "[ab.*?]{0,4}") {
            let rest = |at_end, longest| trimmed(&text, &pattern, at_end, longest).unwrap();
            for longest in [false, true] {
                prop_assert!(text.ends_with(&rest(false, longest)));
                prop_assert!(text.starts_with(&rest(true, longest)));
            }
            prop_assert!(rest(false, false).len() >= rest(false, true).len());
        }

        /// Single quotes keep any text without single quotes.
        #[test]
        fn single_quotes_hold(text in "[^']{0,16}") {
            prop_assert_eq!(expand(&format!("'{text}'")), Ok(text));
        }
    }
}
