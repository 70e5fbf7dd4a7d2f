//! Recipe keys that replace commands of a Dockerfile that require Windows.

use super::prelude::*;

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
            let Some(key) = key_of(command) else { continue };
            let line = step.line_of(command) + 1;
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
    let verb = command.word(1).to_ascii_lowercase();
    let object = command.word(2).to_ascii_lowercase();
    match command.program() {
        "appcmd" => {
            let objects: &[&str] = match verb.as_str() {
                "set" | "add" => &["config", "apppool", "site", "app", "vdir"],
                "clear" => &["config"],
                _ => &[],
            };
            objects.contains(&object.as_str()).then_some("[iis]")
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
        "certutil" => command
            .has(&["-addstore", "/addstore"])
            .then_some("[certificates]"),
        "import-certificate" => Some("[certificates]"),
        "sc" => (verb == "create").then_some("[[services]]"),
        "new-service" => Some("[[services]]"),
        "icacls" => command.has(&["/grant", "/grant:r"]).then_some("[[access]]"),
        "setx" => {
            let names_path = verb == "path" || object == "path";
            // `%PATH:C:\app;=%` removes a folder.
            let removes = command.any(|word| word.contains("%path:"));
            (names_path && !removes && command.has(&["/m", "-m"])).then_some("path")
        }
        _ => None,
    }
}
