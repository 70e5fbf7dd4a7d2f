//! Recipe keys that replace commands of a Dockerfile that require Windows.

use super::reference::Platform;
use super::stage::Stage;
use super::words::LintCommand;

/// A key of a recipe that replaces commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecipeAlternative {
    /// Key in a recipe.
    pub key: &'static str,
    /// Lines of the commands that it replaces, from 1.
    pub lines: Vec<usize>,
}

/// Finds the recipe keys that replace commands of a file.
pub(super) fn find(stages: &[Stage<'_>]) -> Vec<RecipeAlternative> {
    let steps = stages
        .iter()
        .filter(|stage| stage.platform != Platform::Linux)
        .flat_map(|stage| stage.all("RUN"));
    let mut offers: Vec<RecipeAlternative> = Vec::new();
    for step in steps {
        for command in step.commands() {
            let (Some(key), Some(word)) = (key_of(command), command.words.first()) else {
                continue;
            };
            let line = step.instruction.line_of(word.range.start) + 1;
            match offers.iter_mut().find(|offer| offer.key == key) {
                Some(offer) if offer.lines.last() == Some(&line) => {}
                Some(offer) => offer.lines.push(line),
                None => offers.push(RecipeAlternative {
                    key,
                    lines: vec![line],
                }),
            }
        }
    }
    offers
}

/// Recipe key that replaces a command.
fn key_of(command: &LintCommand) -> Option<&'static str> {
    let word = |place: usize| {
        let word = command.words.get(place)?;
        Some(word.value.to_ascii_lowercase())
    };
    let verb = word(1).unwrap_or_default();
    match command.program() {
        "appcmd" => {
            let object = word(2).unwrap_or_default();
            let is_known = match verb.as_str() {
                "set" | "add" => {
                    matches!(
                        object.as_str(),
                        "config" | "apppool" | "site" | "app" | "vdir"
                    )
                }
                "clear" => object == "config",
                _ => false,
            };
            is_known.then_some("[iis]")
        }
        "new-website"
        | "new-iissite"
        | "new-webapppool"
        | "new-webapplication"
        | "new-webvirtualdirectory"
        | "new-webbinding"
        | "set-webbinding"
        | "new-webhandler"
        | "set-webconfiguration"
        | "set-webconfigurationproperty"
        | "add-webconfigurationproperty"
        | "remove-webconfigurationproperty" => Some("[iis]"),
        "certutil" => {
            let mut words = command.words.iter();
            let adds = words
                .any(|word| word.eq_ignore_case("-addstore") || word.eq_ignore_case("/addstore"));
            adds.then_some("[certificates]")
        }
        "import-certificate" => Some("[certificates]"),
        "sc" => (verb == "create").then_some("[[services]]"),
        "new-service" => Some("[[services]]"),
        "icacls" => {
            let mut words = command.words.iter();
            let grants =
                words.any(|word| word.eq_ignore_case("/grant") || word.eq_ignore_case("/grant:r"));
            grants.then_some("[[access]]")
        }
        "setx" => {
            let names_path = verb == "path" || word(2).is_some_and(|name| name == "path");
            let mut words = command.words.iter();
            let is_machines =
                words.any(|word| word.eq_ignore_case("/m") || word.eq_ignore_case("-m"));
            (names_path && is_machines).then_some("path")
        }
        _ => None,
    }
}
