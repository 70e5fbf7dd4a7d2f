//! Conversion of a program's command line to its arguments, and back.
//!
//! Two parsers exist. For `CommandLineToArgvW` (and every C runtime before 2008), `""` inside a
//! quoted part is a quote *and ends* the part; for the C runtime since 2008, it is a quote and the
//! part continues. [`quote`] writes two adjacent quotes only for an empty argument, where both
//! agree, so its output is the same for either.

use std::borrow::Cow;

/// Parser of the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArgvParser {
    /// `CommandLineToArgvW` of shell32.
    CommandLineToArgvW,
    /// The C runtime since Visual C++ 2008, the universal one included.
    CRuntime,
}

/// Splits a command line. The first argument, the program, has other rules: backslashes never
/// escape, and quotes only keep spaces together.
pub fn split(line: &str, reader: ArgvParser) -> Vec<String> {
    let (program, rest) = split_program(line, reader);
    let mut argv = vec![program];
    add_arguments(rest, reader, &mut argv);
    argv
}

/// Splits the text after a program's name, without the rules for the first argument.
pub fn split_arguments(text: &str, reader: ArgvParser) -> Vec<String> {
    let mut argv = Vec::new();
    add_arguments(text, reader, &mut argv);
    argv
}

fn add_arguments(mut text: &str, reader: ArgvParser, argv: &mut Vec<String>) {
    loop {
        text = text.trim_start_matches(is_blank);
        if text.is_empty() {
            return;
        }
        let (argument, after) = split_argument(text, reader);
        argv.push(argument);
        text = after;
    }
}

fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t'
}

fn split_program(line: &str, reader: ArgvParser) -> (String, &str) {
    match (reader, line.strip_prefix('"')) {
        (ArgvParser::CommandLineToArgvW, Some(quoted)) => {
            let (program, rest) = quoted.split_once('"').unwrap_or((quoted, ""));
            (program.to_owned(), rest)
        }
        (ArgvParser::CommandLineToArgvW, None) => {
            let end = line.find(is_blank).unwrap_or(line.len());
            (line[..end].to_owned(), &line[end..])
        }
        (ArgvParser::CRuntime, _) => {
            let mut quoted = false;
            let end = line.find(|c| {
                quoted ^= c == '"';
                is_blank(c) && !quoted
            });
            let (program, rest) = line.split_at(end.unwrap_or(line.len()));
            (program.replace('"', ""), rest)
        }
    }
}

/// Reads one argument; `text` starts with its first character.
fn split_argument(text: &str, reader: ArgvParser) -> (String, &str) {
    let end = text.find([' ', '\t', '"']).unwrap_or(text.len());
    if !text[end..].starts_with('"') {
        return (text[..end].to_owned(), &text[end..]);
    }
    let mut argument = String::new();
    let mut quoted = false;
    let mut backslashes = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            '\\' => backslashes += 1,
            '"' => {
                argument.extend(std::iter::repeat_n('\\', backslashes / 2));
                if backslashes % 2 == 1 {
                    argument.push('"');
                } else if quoted && characters.next_if(|(_, next)| *next == '"').is_some() {
                    argument.push('"');
                    quoted = reader == ArgvParser::CRuntime;
                } else {
                    quoted = !quoted;
                }
                backslashes = 0;
            }
            _ => {
                argument.extend(std::iter::repeat_n('\\', backslashes));
                backslashes = 0;
                if is_blank(c) && !quoted {
                    return (argument, &text[at..]);
                }
                argument.push(c);
            }
        }
    }
    argument.extend(std::iter::repeat_n('\\', backslashes));
    (argument, "")
}

/// Writes an argument for either parser, with quotes only if required.
///
/// Not for the program: a command line's first word knows no escaped quotes.
pub fn quote(argument: &str) -> Cow<'_, str> {
    if needs_quotes(argument) {
        Cow::Owned(quote_always(argument))
    } else {
        Cow::Borrowed(argument)
    }
}

/// Returns true if an argument requires quotes.
///
/// Includes white space at which the parsers do not split, because Windows PowerShell checks for
/// it.
pub(crate) fn needs_quotes(argument: &str) -> bool {
    argument.is_empty() || argument.contains(|c: char| c == '"' || c.is_whitespace())
}

/// Writes an argument in quotes, required or not.
pub fn quote_always(argument: &str) -> String {
    let mut quoted = String::with_capacity(argument.len() + 2);
    quoted.push('"');
    let mut backslashes = 0;
    for c in argument.chars() {
        if c == '"' {
            // Backslashes before a quote escape each other; one more escapes the quote.
            quoted.extend(std::iter::repeat_n('\\', backslashes + 1));
        }
        backslashes = if c == '\\' { backslashes + 1 } else { 0 };
        quoted.push(c);
    }
    quoted.extend(std::iter::repeat_n('\\', backslashes));
    quoted.push('"');
    quoted
}

/// One command line of a program and its arguments.
///
/// The program is set in quotes where it has a space; it must not contain a quote itself.
pub fn join<S: AsRef<str>>(argv: &[S]) -> String {
    let mut words = argv.iter().map(AsRef::as_ref);
    let mut line = String::new();
    if let Some(program) = words.next() {
        if program.is_empty() || program.contains(char::is_whitespace) {
            line.push('"');
            line.push_str(program);
            line.push('"');
        } else {
            line.push_str(program);
        }
    }
    for argument in words {
        line.push(' ');
        line.push_str(&quote(argument));
    }
    line
}
