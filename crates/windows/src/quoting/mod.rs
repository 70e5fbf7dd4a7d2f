//! Command lines of Windows: quoting a list of arguments as one text, and splitting it again.
//!
//! Windows passes a program one string, which every program splits by itself. The text after `RUN`
//! in a Dockerfile passes up to three parsers before the program gets its arguments: the
//! Dockerfile's (line joining, JSON), the shell's ([`cmd`] or [`powershell`]) and the program's
//! ([`argv`]). [`exec_command`] writes the exec form, which has no shell and expresses nearly every
//! list.

pub mod argv;
pub mod cmd;
pub mod powershell;

#[cfg(test)]
mod tests;

use wincimg_common::untrusted::QuotedText;

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

/// Reason why a list of arguments has no exec form.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct QuotingError(String);

fn empty() -> QuotingError {
    QuotingError("the command is empty: expected a program and its arguments".to_owned())
}

/// Limit of `CreateProcess`: 32767 characters including the terminating zero.
const PROCESS_LIMIT: usize = 32766;

/// The text after `RUN` that runs this program with these arguments, as a JSON array, which the
/// daemon turns into a command line itself.
pub fn exec_command<S: AsRef<str>>(argv: &[S]) -> Result<String, QuotingError> {
    let program: &str = argv.first().ok_or_else(empty)?.as_ref();
    if program.is_empty()
        || program.ends_with('\\')
        || program.contains(|c: char| c.is_ascii_control() || "\"<>|?*".contains(c))
    {
        return Err(QuotingError(format!(
            "invalid program name {}: it is empty, ends in a backslash or has one of \"<>|?* or a control character",
            QuotedText(program)
        )));
    }
    let place = argv.iter().position(|word| word.as_ref().contains('\0'));
    if let Some(index) = place {
        return Err(QuotingError(format!(
            "the exec form cannot escape '\\0' in argument {index}"
        )));
    }
    let length = argv::join(argv).encode_utf16().count();
    if length > PROCESS_LIMIT {
        return Err(QuotingError(format!(
            "the command line has {length} characters: the limit of the exec form is {PROCESS_LIMIT}"
        )));
    }
    Ok(exec_form(argv))
}

/// A JSON array as the daemon reads it.
pub fn exec_form<S: AsRef<str>>(argv: &[S]) -> String {
    let elements: Vec<String> = argv
        .iter()
        .map(|argument| serde_json::Value::from(argument.as_ref()).to_string())
        .collect();
    format!("[{}]", elements.join(", "))
}
