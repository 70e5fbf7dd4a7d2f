//! Processing of a command line by `cmd /S /C` before the program sees it.
//!
//! In order: the first and the last quote go if the text begins with a quote; `%NAME%` is replaced,
//! inside quotes too; then `"` switches between quoted and not, and outside quotes `^` makes the
//! next character ordinary while `& | < >` and line ends divide commands.
//!
//! `!` is ordinary: delayed expansion is off unless `/V:ON` or the registry asks for it.

/// Maximum number of characters in one line of cmd.
pub const LIMIT: usize = 8191;

/// Reason why a text is not one plain command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CmdParseError {
    /// An operator outside quotes divides or redirects it.
    #[error("{0:?} outside quotes divides or redirects the command")]
    Operator(char),
    /// It starts with a word or sign that only cmd interprets.
    #[error("a command cannot start with {0:?}")]
    Start(char),
}

/// The command line that cmd passes to the program, for a text after `cmd /S /C`.
///
/// `variable` looks up the environment, whose names cmd compares without regard to case.
pub fn parse(
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, CmdParseError> {
    let expanded = expand(strip_quotes(text), variable);
    unescape(expanded.trim_start_matches(is_delimiter))
}

/// The quote-stripping rule of `/S`: only a text that begins with a quote loses it, and its last.
pub fn strip_quotes(text: &str) -> String {
    let text = text.trim_start_matches([' ', '\t']);
    let Some(rest) = text.strip_prefix('"') else {
        return text.to_owned();
    };
    match rest.rsplit_once('"') {
        Some((before, after)) => format!("{before}{after}"),
        None => rest.to_owned(),
    }
}

/// Replaces `%NAME%`, `%NAME:from=to%` and `%NAME:~start,length%` as on the command line, where
/// unknown names are not replaced.
///
/// Inserts the whole value for the two longer forms: here it matters only that the text is
/// replaced.
fn expand(mut text: String, variable: impl Fn(&str) -> Option<String>) -> String {
    let mut from = 0;
    while let Some(start) = text[from..].find('%').map(|at| from + at) {
        from = start + 1;
        let Some(end) = text[from..].find('%').map(|at| from + at) else {
            break;
        };
        let inside = &text[from..end];
        // A colon right before the closing sign belongs to the name.
        let name = match inside.split_once(':') {
            Some((name, modifier)) if !modifier.is_empty() => name,
            _ => inside,
        };
        if !name.is_empty()
            && let Some(value) = variable(name)
        {
            text.replace_range(start..=end, &value);
            from = start + value.len();
        }
    }
    text
}

/// Drops carets outside quotes and rejects a text that is not a single command.
fn unescape(text: &str) -> Result<String, CmdParseError> {
    if let Some(start) = text.chars().next().filter(|c| "(@:".contains(*c)) {
        return Err(CmdParseError::Start(start));
    }
    let mut line = String::with_capacity(text.len());
    let mut quoted = false;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => quoted = !quoted,
            '^' if !quoted => {
                line.extend(characters.next());
                continue;
            }
            '&' | '|' | '<' | '>' if !quoted => return Err(CmdParseError::Operator(c)),
            '\n' => return Err(CmdParseError::Operator(c)),
            _ => {}
        }
        line.push(c);
    }
    Ok(line)
}

/// Characters that cmd skips before a command's name.
fn is_delimiter(c: char) -> bool {
    matches!(c, ' ' | '\t' | ',' | ';' | '=')
}

/// The names that cmd reads as its own commands when they are not in quotes.
const BUILT_IN: [&str; 45] = [
    "assoc", "break", "call", "cd", "chdir", "cls", "color", "copy", "date", "del", "dir", "dpath",
    "echo", "endlocal", "erase", "exit", "for", "ftype", "goto", "if", "keys", "md", "mkdir",
    "mklink", "move", "path", "pause", "popd", "prompt", "pushd", "rd", "rem", "ren", "rename",
    "rmdir", "set", "setlocal", "shift", "start", "time", "title", "type", "ver", "verify", "vol",
];

/// Returns true if this word, without quotes, is a built-in command of cmd.
pub fn is_built_in(word: &str) -> bool {
    let name = word.split(['.', ':', '\\', '/']).next().unwrap_or_default();
    BUILT_IN.contains(&name.to_ascii_lowercase().as_str())
}
