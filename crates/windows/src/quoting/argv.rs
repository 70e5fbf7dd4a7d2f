//! Conversion of a program's command line to its arguments, and back.
//!
//! Two parsers exist. For `CommandLineToArgvW` (and every C runtime before 2008), `""` inside a
//! quoted part is a quote *and ends* the part; for the C runtime since 2008, it is a quote and the
//! part continues. [`quote`] writes two adjacent quotes only for an empty argument, where both
//! agree, so its output is the same for either.

use std::borrow::Cow;
use std::ops::Range;

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
    argv.extend(split_arguments(rest, reader));
    argv
}

/// Splits the text after a program's name, without the rules for the first argument.
pub fn split_arguments(text: &str, reader: ArgvParser) -> Vec<String> {
    let arguments = fold_arguments(text, reader, |it: &mut String, _, c| it.push(c));
    arguments
        .into_iter()
        .map(|(_, argument)| argument)
        .collect()
}

/// Splits the text after a program's name to the arguments' ranges, and to what `push` makes of their
/// characters and the positions of these.
pub fn fold_arguments<T: Default>(
    text: &str,
    reader: ArgvParser,
    push: impl Fn(&mut T, usize, char),
) -> Vec<(Range<usize>, T)> {
    let mut arguments = Vec::new();
    let mut start = 0;
    loop {
        start = text.len() - text[start..].trim_start_matches(is_blank).len();
        if start == text.len() {
            return arguments;
        }
        let mut argument = T::default();
        let length = read_argument(&text[start..], reader, |at, c| {
            push(&mut argument, start + at, c);
        });
        arguments.push((start..start + length, argument));
        start += length;
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

/// Finds the characters of one argument and their positions, and returns its length; `text` starts with
/// its first character.
fn read_argument(text: &str, reader: ArgvParser, mut found: impl FnMut(usize, char)) -> usize {
    let mut quoted = false;
    let mut backslashes = 0;
    let mut characters = text.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        if c == '\\' {
            backslashes += 1;
            continue;
        }
        let is_escaped = c == '"' && backslashes % 2 == 1;
        let kept = backslashes / if c == '"' { 2 } else { 1 };
        let first = at - backslashes;
        (first..first + kept).for_each(|at| found(at, '\\'));
        backslashes = 0;
        if c != '"' {
            if is_blank(c) && !quoted {
                return at;
            }
            found(at, c);
        } else if is_escaped {
            found(at, '"');
        } else if quoted && characters.next_if(|(_, next)| *next == '"').is_some() {
            found(at, '"');
            quoted = reader == ArgvParser::CRuntime;
        } else {
            quoted = !quoted;
        }
    }
    (text.len() - backslashes..text.len()).for_each(|at| found(at, '\\'));
    text.len()
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
