//! Windows command lines: one string for each process, which every program splits for itself.
//!
//! The shim splits its own only to find its options. What follows `--` is handed on as it was
//! written, because taking it apart and putting it together again is how quotes get lost.

use alloc::vec::Vec;

use crate::glob::is_same;

/// A piece of a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// What the piece means, with quotes and escapes resolved.
    pub text: Vec<u16>,
    /// Where in the command line it begins.
    pub start: usize,
}

const SPACE: u16 = b' ' as u16;
const TAB: u16 = b'\t' as u16;
const QUOTE: u16 = b'"' as u16;
const BACKSLASH: u16 = b'\\' as u16;

/// Splits a command line as the C runtime does; the first token is the program's own name.
pub fn split(line: &[u16]) -> Vec<Token> {
    let mut tokens = Vec::new();
    let (name, mut at) = program_name(line);
    tokens.push(Token {
        text: name,
        start: 0,
    });
    loop {
        while line.get(at).copied().is_some_and(is_blank) {
            at += 1;
        }
        if at == line.len() {
            return tokens;
        }
        let (text, end) = argument(line, at);
        tokens.push(Token { text, start: at });
        at = end;
    }
}

/// Whether a command line's first token names a program, in whatever folder and case, with or without
/// `.exe`.
pub fn names_program(token: &[u16], name: &str) -> bool {
    let is_end_of_folder =
        |unit: &u16| [BACKSLASH, u16::from(b'/'), u16::from(b':')].contains(unit);
    let file = token.rsplit(is_end_of_folder).next().unwrap_or_default();
    let stem = file.len().checked_sub(".exe".len());
    let stem = stem.and_then(|length| file.split_at_checked(length));
    is_same(file, name)
        || stem.is_some_and(|(stem, end)| is_same(stem, name) && is_same(end, ".exe"))
}

fn is_blank(unit: u16) -> bool {
    unit == SPACE || unit == TAB
}

/// The first piece follows a rule of its own: a backslash there never escapes a quote.
fn program_name(line: &[u16]) -> (Vec<u16>, usize) {
    let mut name = Vec::new();
    let mut quoted = false;
    for (at, &unit) in line.iter().enumerate() {
        match unit {
            QUOTE => quoted = !quoted,
            unit if is_blank(unit) && !quoted => return (name, at),
            unit => name.push(unit),
        }
    }
    (name, line.len())
}

fn argument(line: &[u16], start: usize) -> (Vec<u16>, usize) {
    let mut text = Vec::new();
    let mut quoted = false;
    let mut at = start;
    while let Some(&unit) = line.get(at) {
        match unit {
            unit if is_blank(unit) && !quoted => break,
            BACKSLASH => {
                let run = line[at..].iter().take_while(|&&u| u == BACKSLASH).count();
                at += run;
                let escapes = line.get(at) == Some(&QUOTE);
                let kept = if escapes { run / 2 } else { run };
                text.extend(core::iter::repeat_n(BACKSLASH, kept));
                if escapes && run % 2 == 1 {
                    text.push(QUOTE);
                    at += 1;
                }
                continue;
            }
            QUOTE if quoted && line.get(at + 1) == Some(&QUOTE) => {
                text.push(QUOTE);
                at += 1;
            }
            QUOTE => quoted = !quoted,
            unit => text.push(unit),
        }
        at += 1;
    }
    (text, at)
}

#[cfg(test)]
mod tests {
    use alloc::string::String;

    use super::*;

    fn wide(text: &str) -> Vec<u16> {
        text.encode_utf16().collect()
    }

    fn words(line: &str) -> Vec<String> {
        split(&wide(line))
            .into_iter()
            .map(|token| String::from_utf16_lossy(&token.text))
            .collect()
    }

    #[test]
    fn blanks_separate_and_quotes_join() {
        assert_eq!(
            words("shim.exe  a\tb \"c d\" e\"f g\"h \"\""),
            ["shim.exe", "a", "b", "c d", "ef gh", ""]
        );
    }

    #[test]
    fn backslashes_count_only_before_a_quote() {
        assert_eq!(
            words(r#"s a\b\\c "d\\" \"e\" "f\\\"g" h\"#),
            ["s", r"a\b\\c", r"d\", r#""e""#, r#"f\"g"#, r"h\"]
        );
    }

    #[test]
    fn a_doubled_quote_inside_quotes_is_a_quote() {
        assert_eq!(words(r#"s "a""b" """" c"#), ["s", r#"a"b"#, r#"""#, "c"]);
    }

    #[test]
    fn the_program_name_knows_no_escapes() {
        assert_eq!(
            words(r#""C:\Program Files\wincimg\" x"#),
            [r"C:\Program Files\wincimg\", "x"]
        );
        assert_eq!(words(r#"C:\a" "b\shim.exe x"#), [r"C:\a b\shim.exe", "x"]);
    }

    #[test]
    fn a_program_is_named_in_any_folder_and_case() {
        for name in [
            "wincat",
            "wincat.exe",
            "WinCat.EXE",
            r"C:\Windows\System32\wincat.exe",
            "C:/Windows/System32/wincat",
            "C:wincat.exe",
        ] {
            assert!(names_program(&wide(name), "wincat"), "{name}");
        }
        for name in [
            "", "shim.exe", "wincat.exe.exe", "xwincat.exe", r"wincat\shim.exe", ".exe",
        ] {
            assert!(!names_program(&wide(name), "wincat"), "{name}");
        }
    }

    #[test]
    fn an_empty_line_has_an_empty_program_name() {
        assert_eq!(words(""), [""]);
        assert_eq!(words("   a"), ["", "a"]);
    }

    #[test]
    fn a_token_knows_where_it_was_written() {
        let line = wide(r#"shim.exe --   "a b"  c "#);
        let tokens = split(&line);
        let tail = String::from_utf16_lossy(&line[tokens[2].start..]);
        assert_eq!(tail, r#""a b"  c "#);
    }

    #[test]
    fn units_that_are_no_text_are_kept() {
        let line = [u16::from(b's'), SPACE, 0xD800, 0x41];
        assert_eq!(split(&line)[1].text, [0xD800, 0x41]);
    }
}
