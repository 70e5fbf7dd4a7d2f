//! Complete commands: messages, arguments of programs, and scripts for other shells.

use wincimg_windows::quoting::powershell::native_command_line;
use wincimg_windows::quoting::{argv, cmd};

use super::word::{append, collapse_whitespace, strip_redundant_quotes};
use super::{DEPTH, OutputUse, ScriptToken, TextPart, Tokenizer, read_at};

/// Commands that only print.
const MESSAGES: [&str; 8] = [
    "write-host", "write-output", "write-error", "write-warning", "write-verbose",
    "write-information", "write-debug", "echo",
];

impl Tokenizer<'_> {
    /// Turns a command that only prints into a message, and a shell's command line into a script.
    pub(super) fn end_command(
        &mut self,
        start: usize,
        used: OutputUse,
        out: &mut Vec<ScriptToken>,
    ) {
        let Some(ScriptToken::Command(name)) = out.get(start) else {
            return;
        };
        // After a variable, the rest is part of a program's path.
        let name = match name.last() {
            Some(TextPart::Text(name)) => name.to_lowercase(),
            _ => String::new(),
        };
        let is_message = MESSAGES.contains(&name.as_str())
            && used == OutputUse::Unused
            && !self.rest().starts_with('|')
            && !out[start..]
                .iter()
                .any(|token| matches!(token, ScriptToken::Sign(sign) if sign.contains('>')));
        if is_message {
            let printed = out.split_off(start);
            out.push(ScriptToken::Message(message_scripts(printed)));
            return;
        }
        let file = name.rsplit(['\\', '/']).next().unwrap_or_default();
        let shell = file.strip_suffix(".exe").unwrap_or(file).to_owned();
        let is_native = !is_cmdlet(&name);
        if is_native || matches!(name.as_str(), "start-process" | "saps" | "start") {
            strip_argument_quotes(&mut out[start + 1..]);
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

/// Returns true for a name of the form Verb-Noun.
pub fn is_cmdlet(name: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(char::is_alphanumeric);
    name.split_once('-')
        .is_some_and(|(verb, noun)| is_word(verb) && is_word(noun))
}

/// Removes quotes around text without white space, which do not matter to a program.
fn strip_argument_quotes(tokens: &mut [ScriptToken]) {
    for token in tokens {
        match token {
            ScriptToken::Value(value) => {
                for part in value {
                    if let TextPart::Text(text) = part {
                        *text = strip_redundant_quotes(text);
                    }
                }
            }
            ScriptToken::Group(_, inside) => strip_argument_quotes(inside),
            _ => {}
        }
    }
}

/// Joins `a,b` to one argument, as a program gets it.
fn join_lists(out: &mut Vec<ScriptToken>, start: usize) {
    let command = out.split_off(start);
    let mut tokens = command.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_comma = token == ScriptToken::Sign(",".to_owned());
        match (out.last_mut(), tokens.peek()) {
            (Some(ScriptToken::Value(value)), Some(ScriptToken::Value(_))) if is_comma => {
                if let Some(ScriptToken::Value(next)) = tokens.next() {
                    append(value, vec![TextPart::Text(",".to_owned())]);
                    append(value, next);
                }
            }
            _ => out.push(token),
        }
    }
}

/// Command line that PowerShell builds, with a placeholder for each variable.
fn command_line(command: &[ScriptToken]) -> Option<String> {
    let words = command
        .iter()
        .map(|token| match token {
            ScriptToken::Command(value) | ScriptToken::Value(value) => value
                .iter()
                .map(|part| match part {
                    TextPart::Text(text) => Some(text.clone()),
                    TextPart::Variable(name) => Some(format!("\u{e000}{name}\u{e000}")),
                    TextPart::Script(_) => None,
                })
                .collect(),
            _ => None,
        })
        .collect::<Option<Vec<String>>>()?;
    Some(native_command_line(&words))
}

/// Tokenizes the script in the command line of a shell.
fn nested(shell: &str, line: &str, depth: usize) -> Option<ScriptToken> {
    if depth > DEPTH {
        return None;
    }
    if shell == "cmd" {
        let lower = line.to_ascii_lowercase();
        let at = lower.find(" /c ").or_else(|| lower.find(" /k "))?;
        let text = cmd::strip_quotes(&line[at + 4..]);
        return Some(ScriptToken::Group(
            "cmd",
            vec![ScriptToken::Sign(collapse_whitespace(text.trim()))],
        ));
    }
    let argv = argv::split(line, argv::ArgvParser::CRuntime);
    let command = argv.iter().position(|word| is_command_option(word))?;
    let script = read_at(&argv[command + 1..].join(" "), depth + 1);
    let mut tokens: Vec<ScriptToken> = argv[1..command]
        .iter()
        .map(|word| ScriptToken::Sign(word.to_lowercase()))
        .collect();
    if !script.is_sound {
        tokens.push(ScriptToken::Stray);
    }
    tokens.extend(script.tokens);
    Some(ScriptToken::Group("powershell", tokens))
}

/// Returns true for `-Command` or a prefix of it.
pub fn is_command_option(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    lower
        .strip_prefix(['-', '/'])
        .is_some_and(|name| !name.is_empty() && "command".starts_with(name))
}

/// Scripts in a message; its text does not matter.
fn message_scripts(printed: Vec<ScriptToken>) -> Vec<ScriptToken> {
    printed
        .into_iter()
        .flat_map(|token| match token {
            ScriptToken::Value(value) => value
                .into_iter()
                .filter_map(|part| match part {
                    TextPart::Script(tokens) => Some(ScriptToken::Group("(", tokens)),
                    _ => None,
                })
                .collect(),
            ScriptToken::Group(..) | ScriptToken::Stray | ScriptToken::Message(_) => vec![token],
            _ => Vec::new(),
        })
        .collect()
}

/// Stray tokens in a thrown error; the rest of it does not matter.
pub(super) fn stray_tokens(printed: &[ScriptToken]) -> Vec<ScriptToken> {
    let mut found = Vec::new();
    for token in printed {
        match token {
            ScriptToken::Stray => found.push(ScriptToken::Stray),
            ScriptToken::Group(_, inside) | ScriptToken::Message(inside) => {
                found.extend(stray_tokens(inside));
            }
            _ => {}
        }
    }
    found
}
