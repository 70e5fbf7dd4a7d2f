//! Permissions and IIS configuration of a layer as entries of a recipe.

use std::fmt::Write as _;

use serde_json::Value;
use wincimg_iis::config::{ConfigChange, ConfigEdit};
use wincimg_windows::access::AccessChange;

use super::toml::{key, quoted, set_list, text};

/// Writes the granted permissions as entries for a layer. Another change is omitted, which the
/// comparison with the Dockerfile finds.
pub(super) fn write_access(all: &[AccessChange], layer: &str, out: &mut String) {
    for change in all {
        let AccessChange::Grant(access) = change else {
            continue;
        };
        let _ = writeln!(out, "\n[[access]]\nlayer = {}", quoted(layer));
        let _ = writeln!(out, "path = {}", text(&access.path.to_string()));
        let grants: Vec<String> = access
            .grants
            .iter()
            .map(|grant| {
                let account = key(&grant.account.to_string());
                format!("{account} = {:?}", grant.rights.name())
            })
            .collect();
        let _ = writeln!(out, "grant = {{ {} }}", grants.join(", "));
        // Recipes use the plan's values.
        let inherit = serde_json::to_value(access.inherit).unwrap_or_default();
        if let Some(word) = Value::as_str(&inherit).filter(|word| *word != "all") {
            let _ = writeln!(out, "inherit = {word:?}");
        }
    }
}

/// Writes changes of the server configuration as entries for a layer. One that a recipe cannot
/// express is omitted, which the comparison with the Dockerfile finds.
pub(super) fn write_iis(edits: &[ConfigEdit], layer: &str, out: &mut String) {
    let mut edits = edits;
    while let Some((first, _)) = edits.split_first() {
        let is_alike = |edit: &&ConfigEdit| {
            edit.section == first.section
                && edit.location == first.location
                && entry_key(&edit.change) == entry_key(&first.change)
        };
        let alike = edits.iter().take_while(is_alike).count();
        let Some(word) = entry_key(&first.change) else {
            edits = &edits[alike..];
            continue;
        };
        let _ = writeln!(out, "\n[[iis.config]]\nlayer = {}", quoted(layer));
        let _ = writeln!(out, "section = {}", text(first.section.as_str()));
        if let Some(location) = &first.location {
            let _ = writeln!(out, "location = {}", text(&location.to_string()));
        }
        let printed = edits[..alike].iter();
        let printed: Vec<(String, &str)> = printed.map(|it| path_and_value(&it.change)).collect();
        let count = match word {
            "delegate" => {
                let _ = writeln!(out, "delegate = {}", printed[0].0);
                1
            }
            "set" => {
                // A recipe applies a table in the order of its keys.
                let pairs = printed.windows(2);
                let count = 1 + pairs.take_while(|pair| pair[0].0 < pair[1].0).count();
                let set = printed[..count].iter();
                let set = set.map(|(path, value)| format!("{} = {}", key(path), text(value)));
                let _ = writeln!(out, "set = {{ {} }}", set.collect::<Vec<_>>().join(", "));
                count
            }
            word => {
                set_list(out, word, printed.iter().map(|(path, _)| path));
                alike
            }
        };
        edits = &edits[count..];
    }
}

/// Key of an entry for a change.
fn entry_key(change: &ConfigChange) -> Option<&'static str> {
    Some(match change {
        ConfigChange::Set { .. } => "set",
        // The entry is new in the recipe too, because the Dockerfile was evaluated.
        ConfigChange::Add { first: false, .. } | ConfigChange::New { first: false, .. } => "add",
        ConfigChange::Add { first: true, .. } | ConfigChange::New { first: true, .. } => {
            "add_first"
        }
        ConfigChange::Ensure { .. } => "ensure",
        ConfigChange::Remove { .. } | ConfigChange::Take { .. } => "remove",
        ConfigChange::Delegate { .. } => "delegate",
        ConfigChange::Clear { .. } => "clear",
        ConfigChange::Fill { .. } => return None,
    })
}

/// Path and new value of a change.
fn path_and_value(change: &ConfigChange) -> (String, &str) {
    match change {
        ConfigChange::Set {
            element,
            attribute,
            value,
        } => {
            let dot = if element.steps().is_empty() { "" } else { "." };
            (format!("{element}{dot}{attribute}"), value)
        }
        ConfigChange::Add { entry, .. }
        | ConfigChange::New { entry, .. }
        | ConfigChange::Ensure { entry }
        | ConfigChange::Take { entry }
        | ConfigChange::Remove { entry } => (entry.to_string(), ""),
        ConfigChange::Delegate { allowed } => (allowed.to_string(), ""),
        ConfigChange::Clear { element } => (element.to_string(), ""),
        ConfigChange::Fill { collection, .. } => (collection.to_string(), ""),
    }
}

/// Normalizes a change as a recipe reads it.
pub(super) fn normalize_for_recipe(edit: &ConfigEdit) -> ConfigEdit {
    let mut edit = edit.clone();
    edit.change = match edit.change {
        ConfigChange::New { entry, first } => ConfigChange::Add { entry, first },
        ConfigChange::Take { entry } => ConfigChange::Remove { entry },
        change => change,
    };
    edit
}
