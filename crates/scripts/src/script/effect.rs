//! Normalization of tokens that have the same effect.

use super::{ScriptToken, TextPart, Value};

/// Options of PowerShell that do not change what its commands do.
const IDLE_OPTIONS: [&str; 4] = ["-noprofile", "-noninteractive", "-nologo", "-nop"];

/// Commands whose effect ends with their shell.
const SHELL_STATE_COMMANDS: [&str; 12] = [
    "cd", "chdir", "sl", "pushd", "popd", "set-location", "push-location", "pop-location",
    "import-module", "set-variable", "set-strictmode", "set-executionpolicy",
];

/// Removes differences without effect: the number of backslashes at the end of a folder, a nested
/// PowerShell that leaves no state, and whether the arguments of a program are one text with
/// commas or a list.
pub(super) fn normalize(tokens: &[ScriptToken]) -> Vec<ScriptToken> {
    let mut out: Vec<ScriptToken> = Vec::with_capacity(tokens.len());
    for statement in tokens.split(|token| *token == ScriptToken::End) {
        if !out.is_empty() && !statement.is_empty() {
            out.push(ScriptToken::End);
        }
        match nested_script(statement) {
            Some(inside) => out.extend(normalize(inside)),
            None => {
                let start = out.len();
                out.extend(statement.iter().map(plain));
                split_arguments(&mut out, start);
            }
        }
    }
    out
}

/// Script of a nested PowerShell, if it has the same effect in the outer one.
fn nested_script(statement: &[ScriptToken]) -> Option<&[ScriptToken]> {
    let [
        ScriptToken::Command(name),
        ScriptToken::Group("powershell", tokens),
    ] = statement
    else {
        return None;
    };
    let [TextPart::Text(name)] = name.as_slice() else {
        return None;
    };
    let is_option = |token: &&ScriptToken| matches!(token, ScriptToken::Sign(sign) if IDLE_OPTIONS.contains(&sign.as_str()));
    let options = tokens.iter().take_while(is_option).count();
    let script = &tokens[options..];
    let is_powershell = name.eq_ignore_ascii_case("powershell");
    (is_powershell && script.iter().all(leaves_no_state)).then_some(script)
}

fn leaves_no_state(token: &ScriptToken) -> bool {
    let text = |value: &Value| match value.as_slice() {
        [TextPart::Text(text)] => Some(text.to_lowercase()),
        _ => None,
    };
    match token {
        ScriptToken::Command(name) => {
            text(name).is_some_and(|name| !SHELL_STATE_COMMANDS.contains(&name.as_str()))
        }
        ScriptToken::Value(value) => text(value).is_some(),
        ScriptToken::Sign(sign) => sign == ",",
        ScriptToken::End => true,
        _ => false,
    }
}

/// Splits the argument text of `Start-Process` into a list.
fn split_arguments(out: &mut Vec<ScriptToken>, start: usize) {
    let name = |token: &ScriptToken| match token {
        ScriptToken::Command(value) | ScriptToken::Value(value) => match value.as_slice() {
            [TextPart::Text(text)] => text.to_lowercase(),
            _ => String::new(),
        },
        _ => String::new(),
    };
    let is_start = out
        .get(start)
        .is_some_and(|token| matches!(name(token).as_str(), "start-process" | "saps" | "start"));
    if !is_start {
        return;
    }
    let is_option = |token: &ScriptToken| {
        let name = name(token);
        name == "-args" || name.len() > 1 && "-argumentlist".starts_with(&name)
    };
    let Some(at) = out[start..].iter().position(is_option) else {
        return;
    };
    let at = start + at + 1;
    let Some(ScriptToken::Value(value)) = out.get(at) else {
        return;
    };
    let has_space = value.iter().any(|part| match part {
        TextPart::Text(text) => text.contains(char::is_whitespace),
        _ => false,
    });
    let is_list = out.get(at + 1) == Some(&ScriptToken::Sign(",".to_owned()));
    if has_space || is_list {
        return;
    }
    let mut items: Vec<Value> = vec![Vec::new()];
    for part in value {
        match part {
            TextPart::Text(text) => {
                for (index, piece) in text.split(',').enumerate() {
                    if index > 0 {
                        items.push(Vec::new());
                    }
                    if let Some(item) = items.last_mut().filter(|_| !piece.is_empty()) {
                        item.push(TextPart::Text(piece.to_owned()));
                    }
                }
            }
            other => items
                .last_mut()
                .into_iter()
                .for_each(|item| item.push(other.clone())),
        }
    }
    let comma = || ScriptToken::Sign(",".to_owned());
    let tokens = items
        .into_iter()
        .flat_map(|item| [comma(), ScriptToken::Value(item)]);
    out.splice(at..=at, tokens.skip(1));
}

fn plain(token: &ScriptToken) -> ScriptToken {
    match token {
        ScriptToken::Value(value) => {
            let mut value = value.clone();
            if let [TextPart::Text(text)] = value.as_mut_slice()
                && is_on_a_drive(text)
                && text.ends_with('\\')
            {
                let end = text.trim_end_matches('\\').len();
                text.truncate(end + 1);
            }
            ScriptToken::Value(value)
        }
        ScriptToken::Group(open, inside) => {
            ScriptToken::Group(open, inside.iter().map(plain).collect())
        }
        ScriptToken::Message(inside) => ScriptToken::Message(inside.iter().map(plain).collect()),
        other => other.clone(),
    }
}

/// Returns true for a path with a drive.
fn is_on_a_drive(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|c| c.is_ascii_alphabetic())
        && characters.as_str().starts_with(":\\")
}
