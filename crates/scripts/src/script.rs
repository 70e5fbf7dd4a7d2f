//! Scripts of PowerShell that are read and not run: what they do, whatever their spelling.

use super::powershell::effect::{Effect, effect};

/// A script that can be compared with others.
#[derive(Debug, Clone)]
pub struct ParsedScript(Option<Effect>);

impl ParsedScript {
    /// True if it has PowerShell's grammar.
    pub fn is_sound(&self) -> bool {
        self.0.is_some()
    }

    /// True if a statement is only a string, which is likely a mistake.
    pub fn has_lone_string(&self) -> bool {
        self.0.as_ref().is_some_and(|it| it.has_lone_string)
    }

    /// True if both are sound and have the same effect.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        let effects = self.0.as_ref().zip(other.0.as_ref());
        effects.is_some_and(|(own, other)| own.text == other.text)
    }

    /// Name of the command, if the script is a single command.
    pub fn only_command(&self) -> Option<&str> {
        self.0.as_ref()?.only_command.as_deref()
    }
}

/// Parses a script.
pub fn read(text: &str) -> ParsedScript {
    ParsedScript(effect(text))
}

/// Returns true for a name of the form Verb-Noun.
pub fn is_cmdlet(name: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.chars().all(char::is_alphanumeric);
    name.split_once('-')
        .is_some_and(|(verb, noun)| is_word(verb) && is_word(noun))
}

/// Returns true for `-Command` or a prefix of it.
pub fn is_command_option(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    lower
        .strip_prefix(['-', '/'])
        .is_some_and(|name| !name.is_empty() && "command".starts_with(name))
}
