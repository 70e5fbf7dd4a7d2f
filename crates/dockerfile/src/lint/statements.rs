//! Statements of a PowerShell script, with their positions: loose enough for any text.

use super::TextExt;
use super::words::file_name;

/// A statement, or the part of one between braces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PowerShellStatement {
    /// Start in the instruction's joined text.
    pub(super) at: usize,
    /// Text, with `\"` as a quote.
    pub(super) text: String,
    /// The same in lower case: most rules look for words of it.
    pub(super) lower: String,
    /// Nesting in braces.
    pub(super) depth: usize,
}

impl PowerShellStatement {
    /// The command's name, in lower case, without its folder and `.exe`.
    pub(super) fn command(&self) -> &str {
        let file = file_name(self.written_command());
        file.strip_suffix(".exe").unwrap_or(file)
    }

    /// The command as written, in lower case and without quotes.
    pub(super) fn written_command(&self) -> &str {
        let (text, _) = self.command_text();
        let word = match text.chars().next() {
            Some(quote @ ('"' | '\'')) => text[1..].split(quote).next(),
            _ => text
                .split(|c: char| c.is_whitespace() || "()|;{}".contains(c))
                .next(),
        };
        word.unwrap_or_default()
    }

    /// True for a text in quotes, in place of a command, that no `&` calls.
    pub(super) fn is_text(&self) -> bool {
        let (text, is_called) = self.command_text();
        text.starts_with(['"', '\'']) && !is_called
    }

    /// The text from its command on, in lower case, behind an assignment and keywords; true if an `&`
    /// calls it.
    fn command_text(&self) -> (&str, bool) {
        let mut text = self.lower.trim_start();
        if text.starts_with('$')
            && let Some((name, value)) = text.split_once('=')
            && !name.contains(['(', ' ', '|']) | name.trim_end().split(' ').nth(1).is_none()
        {
            text = value.trim_start();
        }
        let mut rest = text.trim_start_matches(['&', '(', '@', ' ']);
        let is_called = text[..text.len() - rest.len()].contains('&');
        for keyword in ["return ", "do ", "else ", "try "] {
            rest = rest.strip_prefix(keyword).unwrap_or(rest);
        }
        (rest, is_called)
    }

    /// The letters that it begins with, in lower case.
    pub(super) fn keyword(&self) -> &str {
        let end = self.lower.find(|c: char| !c.is_ascii_alphabetic());
        &self.lower[..end.unwrap_or(self.lower.len())]
    }

    /// True if a parameter is given, by its name or one of at least this many letters.
    pub(super) fn has_parameter(&self, name: &str, shortest: usize) -> bool {
        self.parameters().any(|given| {
            given.len() > shortest && name.to_ascii_lowercase().starts_with(&given[1..])
        })
    }

    /// Parameters with their dash, in lower case.
    pub(super) fn parameters(&self) -> impl Iterator<Item = String> + '_ {
        let words = self.text.split_whitespace();
        let words = words.filter(|word| word.starts_with('-') && word.len() > 1);
        words.map(|word| {
            let word = word.split([':', '=']).next().unwrap_or_default();
            word.trim_end_matches([')', ';', ',']).to_ascii_lowercase()
        })
    }

    /// Options of a program, without their dash or slash, in lower case.
    pub(super) fn parameters_of_programs(&self) -> impl Iterator<Item = String> + '_ {
        let words = self.text.split_whitespace();
        words.filter_map(|word| {
            let option = word.strip_prefix(['-', '/'])?.trim_start_matches('-');
            Some(option.to_ascii_lowercase())
        })
    }

    pub(super) fn contains(&self, part: &str) -> bool {
        self.contains_any(&[part])
    }

    pub(super) fn contains_any(&self, parts: &[&str]) -> bool {
        self.lower.contains_any(parts)
    }
}

/// Characters outside of quotes and their positions; a quote after a backtick opens nothing.
pub(super) fn outside_quotes(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut quote: Option<char> = None;
    text.char_indices().filter(move |(at, c)| {
        let is_outside = quote.is_none();
        let is_quote = match quote {
            None => matches!(c, '"' | '\'') && !text[..*at].ends_with('`'),
            Some(open) => open == *c,
        };
        if is_quote {
            quote = is_outside.then_some(*c);
        }
        is_outside && !is_quote
    })
}

/// State of the reader.
#[derive(Default)]
struct Reader {
    found: Vec<PowerShellStatement>,
    text: String,
    start: Option<usize>,
    quote: Option<char>,
    parentheses: usize,
    braces: usize,
    is_in_variable: bool,
}

impl Reader {
    fn push(&mut self, c: char, at: usize) {
        if self.start.is_none() && c.is_whitespace() {
            return;
        }
        self.start.get_or_insert(at);
        self.text.push(c);
    }

    fn end(&mut self) {
        let text = std::mem::take(&mut self.text);
        if let Some(at) = self.start.take() {
            let text = text.trim_end().to_owned();
            self.found.push(PowerShellStatement {
                at,
                lower: text.to_ascii_lowercase(),
                text,
                depth: self.braces,
            });
        }
    }
}

/// Splits a script, which begins at `start`, at semicolons, line ends and braces that are not in quotes
/// or parentheses.
pub(super) fn statements(script: &str, start: usize) -> Vec<PowerShellStatement> {
    let mut reader = Reader::default();
    let characters = script.char_indices();
    let mut characters = characters.map(|(at, c)| (start + at, c)).peekable();
    while let Some((at, c)) = characters.next() {
        let next = characters.peek().map(|(_, next)| *next);
        match c {
            '\\' if next == Some('"') => continue,
            '`' => {
                reader.push(c, at);
                if let Some((at, c)) = characters.next() {
                    reader.push(c, at);
                }
                continue;
            }
            '"' | '\'' if reader.quote.is_none() => reader.quote = Some(c),
            c if reader.quote == Some(c) => reader.quote = None,
            _ if reader.quote.is_some() => {}
            '(' => reader.parentheses += 1,
            ')' => reader.parentheses = reader.parentheses.saturating_sub(1),
            ';' | '\n' if reader.parentheses == 0 => {
                reader.end();
                continue;
            }
            // `${env:NAME}`
            '{' if reader.text.ends_with('$') => reader.is_in_variable = true,
            '}' if reader.is_in_variable => reader.is_in_variable = false,
            '{' | '}' if reader.parentheses == 0 => {
                reader.end();
                reader.braces = match c {
                    '{' => reader.braces + 1,
                    _ => reader.braces.saturating_sub(1),
                };
                continue;
            }
            _ => {}
        }
        reader.push(c, at);
    }
    reader.end();
    reader.found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_in_quotes_is_a_command_only_behind_an_ampersand() {
        for (text, command, is_text) in [
            ("& 'C:\\a b\\X.exe' /S", "c:\\a b\\x.exe", false),
            ("'C:\\a b\\x.exe' /S", "c:\\a b\\x.exe", true),
            ("$x = ('Read-Host')", "read-host", true),
            ("$x = & 'Read-Host'", "read-host", false),
            ("return Read-Host", "read-host", false),
        ] {
            let statement = &statements(text, 0)[0];
            let found = (statement.written_command(), statement.is_text());
            assert_eq!(found, (command, is_text), "{text}");
        }
    }
}
