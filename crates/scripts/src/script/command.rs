//! Whole commands: what only says something, what a program gets, and scripts for other shells.

use wincimg_windows::quoting::powershell::native_command_line;
use wincimg_windows::quoting::{argv, cmd};

use super::word::{append, squeezed, without_idle_quotes};
use super::{DEPTH, Part, Reader, Token, Use, read_at};

/// The commands that only say something.
const MESSAGES: [&str; 8] = [
    "write-host",
    "write-output",
    "write-error",
    "write-warning",
    "write-verbose",
    "write-information",
    "write-debug",
    "echo",
];

impl Reader<'_> {
    /// Makes a message of a command that only says something, and a script of another shell's.
    pub(super) fn end_command(&mut self, start: usize, used: Use, out: &mut Vec<Token>) {
        let Some(Token::Command(name)) = out.get(start) else {
            return;
        };
        // Where a variable begins the name, it is a program's path.
        let name = match name.last() {
            Some(Part::Text(name)) => name.to_lowercase(),
            _ => String::new(),
        };
        let is_message = MESSAGES.contains(&name.as_str())
            && used == Use::Nobody
            && !self.rest().starts_with('|')
            && !out[start..]
                .iter()
                .any(|token| matches!(token, Token::Sign(sign) if sign.contains('>')));
        if is_message {
            let said = out.split_off(start);
            out.push(Token::Message(only_run(said)));
            return;
        }
        let file = name.rsplit(['\\', '/']).next().unwrap_or_default();
        let shell = file.strip_suffix(".exe").unwrap_or(file).to_owned();
        let is_native = !is_cmdlet(&name);
        if is_native || matches!(name.as_str(), "start-process" | "saps" | "start") {
            as_programs_read(&mut out[start + 1..]);
        }
        if is_native {
            join_lists(out, start + 1);
        }
        let shell = shell.as_str();
        if matches!(shell, "powershell" | "pwsh" | "cmd")
            && let Some(line) = command_line(&out[start..])
        {
            let script = nested(shell, &line, self.depth);
            if let Some(script) = script {
                out.truncate(start + 1);
                out.push(script);
            }
        }
    }
}

/// Whether a name is of the form that PowerShell's own commands have.
pub fn is_cmdlet(name: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(char::is_alphanumeric);
    name.split_once('-')
        .is_some_and(|(verb, noun)| is_word(verb) && is_word(noun))
}

/// To a program quotes around what has no white space make no difference.
fn as_programs_read(tokens: &mut [Token]) {
    for token in tokens {
        match token {
            Token::Value(value) => {
                for part in value {
                    if let Part::Text(text) = part {
                        *text = without_idle_quotes(text);
                    }
                }
            }
            Token::Group(_, inside) => as_programs_read(inside),
            _ => {}
        }
    }
}

/// A program gets `a,b` as it stands.
fn join_lists(out: &mut Vec<Token>, start: usize) {
    let command = out.split_off(start);
    let mut tokens = command.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_comma = token == Token::Sign(",".to_owned());
        match (out.last_mut(), tokens.peek()) {
            (Some(Token::Value(value)), Some(Token::Value(_))) if is_comma => {
                if let Some(Token::Value(next)) = tokens.next() {
                    append(value, vec![Part::Text(",".to_owned())]);
                    append(value, next);
                }
            }
            _ => out.push(token),
        }
    }
}

/// The command line that PowerShell makes of a command, with a sign in place of each variable.
fn command_line(command: &[Token]) -> Option<String> {
    let words = command
        .iter()
        .map(|token| match token {
            Token::Command(value) | Token::Value(value) => value
                .iter()
                .map(|part| match part {
                    Part::Text(text) => Some(text.clone()),
                    Part::Variable(name) => Some(format!("\u{e000}{name}\u{e000}")),
                    Part::Script(_) => None,
                })
                .collect(),
            _ => None,
        })
        .collect::<Option<Vec<String>>>()?;
    Some(native_command_line(&words))
}

/// The script that a shell is given in its command line, read the way that shell reads it.
fn nested(shell: &str, line: &str, depth: usize) -> Option<Token> {
    if depth > DEPTH {
        return None;
    }
    if shell == "cmd" {
        let lower = line.to_ascii_lowercase();
        let at = lower.find(" /c ").or_else(|| lower.find(" /k "))?;
        let text = cmd::strip_quotes(&line[at + 4..]);
        return Some(Token::Group(
            "cmd",
            vec![Token::Sign(squeezed(text.trim()))],
        ));
    }
    let argv = argv::split(line, argv::Reader::CRuntime);
    let command = argv.iter().position(|word| is_command_option(word))?;
    let script = read_at(&argv[command + 1..].join(" "), depth + 1);
    let mut tokens: Vec<Token> = argv[1..command]
        .iter()
        .map(|word| Token::Sign(word.to_lowercase()))
        .collect();
    if !script.is_sound {
        tokens.push(Token::Stray);
    }
    tokens.extend(script.tokens);
    Some(Token::Group("powershell", tokens))
}

/// Whether an option of PowerShell means that a script follows.
pub fn is_command_option(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    lower
        .strip_prefix(['-', '/'])
        .is_some_and(|name| !name.is_empty() && "command".starts_with(name))
}

/// What a message runs: the words of it do not matter.
fn only_run(said: Vec<Token>) -> Vec<Token> {
    said.into_iter()
        .flat_map(|token| match token {
            Token::Value(value) => value
                .into_iter()
                .filter_map(|part| match part {
                    Part::Script(tokens) => Some(Token::Group("(", tokens)),
                    _ => None,
                })
                .collect(),
            Token::Group(..) | Token::Stray | Token::Message(_) => vec![token],
            _ => Vec::new(),
        })
        .collect()
}

/// What in an error to throw could not be read; the rest fails the one way or the other.
pub(super) fn only_stray(said: &[Token]) -> Vec<Token> {
    let mut found = Vec::new();
    for token in said {
        match token {
            Token::Stray => found.push(Token::Stray),
            Token::Group(_, inside) | Token::Message(inside) => found.extend(only_stray(inside)),
            _ => {}
        }
    }
    found
}
