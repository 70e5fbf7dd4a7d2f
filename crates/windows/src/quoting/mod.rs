//! Command lines of Windows: quoting a list of arguments as one text, and splitting it again.
//!
//! Windows passes a program one string, which every program splits by itself. The text after `RUN`
//! in a Dockerfile passes up to three parsers before the program gets its arguments: the
//! Dockerfile's (line joining, JSON), the shell's ([`cmd`] or [`powershell`]) and the program's
//! ([`argv`]). [`command_text`] writes the text that yields the given list, or fails if the shell
//! cannot express it. The exec form nearly always can.

pub mod argv;
pub mod cmd;
pub mod powershell;

#[cfg(test)]
mod tests;

use std::fmt;

/// Shell that reads the text after `RUN`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RunShell {
    /// None: a JSON array, which the daemon turns into a command line itself.
    Exec,
    /// `cmd /S /C`, the default.
    Cmd,
    /// Windows PowerShell 5.1, `powershell -Command …`.
    PowerShell,
}

impl fmt::Display for RunShell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exec => "the exec form",
            Self::Cmd => "cmd",
            Self::PowerShell => "PowerShell",
        })
    }
}

/// A Dockerfile's escape character: at a line's end it joins the next line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub enum Escape {
    /// `\`, unless the Dockerfile says otherwise.
    #[default]
    Backslash,
    /// `` ` ``, after the directive `` # escape=` ``.
    Backtick,
}

impl Escape {
    /// The character itself.
    pub fn character(self) -> char {
        match self {
            Self::Backslash => '\\',
            Self::Backtick => '`',
        }
    }
}

/// Reason why an argument list has no text that a shell would read back as the same list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct QuotingError(String);

fn empty() -> QuotingError {
    QuotingError("the command is empty: expected a program and its arguments".to_owned())
}

/// Limit of `CreateProcess`: 32767 characters including the terminating zero.
const PROCESS_LIMIT: usize = 32766;

/// The text after `RUN`, `CMD` or `ENTRYPOINT` that runs this program with these arguments.
pub fn command_text<S: AsRef<str>>(
    shell: RunShell,
    escape: Escape,
    argv: &[S],
) -> Result<String, QuotingError> {
    let argv: Vec<&str> = argv.iter().map(AsRef::as_ref).collect();
    check_words(shell, &argv)?;
    let (text, length, limit) = match shell {
        RunShell::Exec => {
            let length = utf16_len(&argv::join(&argv));
            (exec_form(&argv), length, PROCESS_LIMIT)
        }
        RunShell::Cmd => {
            let text = cmd::quote(&argv, escape)?;
            let length = utf16_len(cmd::PREFIX) + utf16_len(&text);
            (text, length, cmd::LIMIT)
        }
        RunShell::PowerShell => {
            let text = powershell::quote(&argv);
            let length = utf16_len(powershell::PREFIX) + utf16_len(&text);
            (text, length, PROCESS_LIMIT)
        }
    };
    if length > limit {
        return Err(QuotingError(format!(
            "the command line has {length} characters: the limit of {shell} is {limit}"
        )));
    }
    Ok(text)
}

/// A JSON array as the daemon reads it.
pub fn exec_form<S: AsRef<str>>(argv: &[S]) -> String {
    let elements: Vec<String> = argv
        .iter()
        .map(|argument| serde_json::Value::from(argument.as_ref()).to_string())
        .collect();
    format!("[{}]", elements.join(", "))
}

fn utf16_len(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Rejects what no quoting can express: an invalid program name, a NUL and, for the shells, whose
/// text is one line of the Dockerfile, a line break.
fn check_words(shell: RunShell, argv: &[&str]) -> Result<(), QuotingError> {
    let program = argv.first().ok_or_else(empty)?;
    if program.is_empty()
        || program.ends_with('\\')
        || program.contains(|c: char| c.is_ascii_control() || "\"<>|?*".contains(c))
    {
        return Err(QuotingError(format!(
            "invalid program name {program:?}: it is empty, ends in a backslash or has one of \"<>|?* or a control character"
        )));
    }
    let forbidden: &[char] = match shell {
        RunShell::Exec => &['\0'],
        // cmd treats Ctrl-Z as the end of a line.
        RunShell::Cmd => &['\0', '\n', '\r', '\u{1a}'],
        RunShell::PowerShell => &['\0', '\n', '\r'],
    };
    for (index, argument) in argv.iter().enumerate() {
        if let Some(character) = argument.chars().find(|c| forbidden.contains(c)) {
            return Err(QuotingError(format!(
                "{shell} cannot escape {character:?} in argument {index}"
            )));
        }
    }
    Ok(())
}
