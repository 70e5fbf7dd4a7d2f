//! Scripts of PowerShell that are read and not run: what they do, whatever their spelling.

use super::powershell::effect::effect;

/// A script that can be compared with others.
#[derive(Debug, Clone, Default)]
pub struct ParsedScript {
    /// What it does; `None` if it does not have PowerShell's grammar.
    pub(super) effect: Option<String>,
    /// True if a statement is only a string, which is likely a mistake.
    pub has_lone_string: bool,
    /// Name of the command, if the script is a single command.
    pub only_command: Option<String>,
}

impl ParsedScript {
    /// True if it has PowerShell's grammar.
    pub fn is_sound(&self) -> bool {
        self.effect.is_some()
    }

    /// True if both are sound and have the same effect.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        self.is_sound() && self.effect == other.effect
    }
}

/// Parses a script.
pub fn read(text: &str) -> ParsedScript {
    effect(text).unwrap_or_default()
}

/// Returns true for a name of the form Verb-Noun.
pub fn is_cmdlet(name: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(char::is_alphanumeric);
    name.split_once('-')
        .is_some_and(|(verb, noun)| is_word(verb) && is_word(noun))
}

/// Returns true for `-Command` or a prefix of it.
pub fn is_command_option(word: &str) -> bool {
    is_option(word, "command")
}

/// Returns true for `-File` or a prefix of it.
pub fn is_file_option(word: &str) -> bool {
    is_option(word, "file")
}

fn is_option(word: &str, option: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    lower
        .strip_prefix(['-', '/'])
        .is_some_and(|name| !name.is_empty() && option.starts_with(name))
}
