//! Lines in shell form that run a program with any arguments, for the tests of what reads such lines.
//! wincimg writes the exec form.

use crate::quoting::cmd::is_built_in;
use crate::quoting::{Escape, argv, powershell};

/// Prefix that the daemon puts before a text for cmd, with a space.
pub const CMD_PREFIX: &str = "cmd /S /C ";

/// The text after `cmd /S /C` that runs this program with these arguments.
///
/// A percent sign cannot be escaped: `%%` means one only in batch files. But outside a batch file a
/// variable that does not exist is not replaced, and a caret that is dropped later is part of the
/// name when variables are looked up. So a `^` after every `%` outside quotes preserves `%PATH%`, as
/// `%^PATH%`, unless a variable's name begins with a caret. That is why an argument's quotes are
/// escaped, too: cmd is then never inside quotes.
///
/// Wine's cmd (8.0) drops carets before it looks up variables, so it replaces `%^PATH%`; the tests
/// that run it use no percent signs.
pub fn for_cmd<S: AsRef<str>>(words: &[S], escape: Escape) -> String {
    let (program, arguments) = words.split_first().expect("a program");
    let program: &str = program.as_ref();
    // The name must be in real quotes, where a caret does not protect `%NAME%`.
    assert!(!program.contains('%'), "cmd cannot escape {program}");
    let plain = is_plain_program(program);
    let mut line = if plain {
        program.to_owned()
    } else {
        format!("\"{program}\"")
    };
    for (index, argument) in arguments.iter().map(AsRef::as_ref).enumerate() {
        line.push(' ');
        let last = index + 1 == arguments.len();
        if last && plain && argument.ends_with(escape.character()) {
            // At a line's end the character would join the next line of the Dockerfile.
            push_escaped(&mut line, &argv::quote_always(argument));
        } else {
            push_escaped(&mut line, &argv::quote(argument));
        }
        if line.ends_with('%') && !last {
            // The space that follows must not begin a variable's name either.
            line.push('^');
        }
    }
    // With additional quotes around everything, /S strips only those.
    if plain { line } else { format!("\"{line}\"") }
}

/// Adds text with every special character escaped for cmd.
fn push_escaped(line: &mut String, text: &str) {
    let mut after_percent = false;
    for c in text.chars() {
        if after_percent || "\"^&|<>()@!".contains(c) {
            line.push('^');
        }
        line.push(c);
        after_percent = c == '%';
    }
}

/// Returns true if a program's name needs no quotes; a built-in's name does, to mean a program.
fn is_plain_program(program: &str) -> bool {
    program.starts_with(|c: char| c.is_ascii_alphanumeric())
        && program
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '\\' | '-' | '_'))
        && !is_built_in(program)
}

/// The text after `powershell -Command` that runs this program with these arguments: words that are
/// already quoted for the program, because PowerShell 5.1 does not quote them.
pub fn for_powershell<S: AsRef<str>>(words: &[S]) -> String {
    let words = words.iter().map(AsRef::as_ref).enumerate();
    let words = words.map(|(index, word)| {
        if index > 0 && (argv::needs_quotes(word) || word == "--%") {
            powershell::literal(&argv::quote_always(word))
        } else {
            powershell::literal(word)
        }
    });
    let words: Vec<String> = words.collect();
    // As one argument, which keeps its spaces.
    argv::quote_always(&format!("& {}", words.join(" ")))
}
