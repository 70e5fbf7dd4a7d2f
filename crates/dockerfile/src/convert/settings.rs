//! Permissions and IIS configuration of a layer as entries of a recipe.

use std::fmt::Write as _;

use serde_json::Value;
use wincimg_iis::config::{ConfigChange, ConfigEdit, ElementPath, PathStep};
use wincimg_windows::access::AccessChange;

use super::toml::{key, quoted, set_list, text};
use super::{BY_HAND, Reason};

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

/// Writes changes of the server configuration as entries for a layer.
pub(super) fn write_iis(edits: &[ConfigEdit], layer: &str, out: &mut String) -> Result<(), Reason> {
    let edits = in_recipe(edits);
    let mut edits = edits.as_slice();
    while let Some((first, _)) = edits.split_first() {
        let is_alike = |edit: &&ConfigEdit| {
            edit.section == first.section
                && edit.location == first.location
                && entry_key(&edit.change) == entry_key(&first.change)
        };
        let alike = edits.iter().take_while(is_alike).count();
        let word = entry_key(&first.change).map_err(|collection| {
            let why = format!("a recipe cannot replace all entries of {collection}");
            Reason::new(why, BY_HAND)
        })?;
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
    Ok(())
}

/// Key of an entry for a change; the collection that no entry can replace.
fn entry_key(change: &ConfigChange) -> Result<&'static str, &ElementPath> {
    Ok(match change {
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
        ConfigChange::Fill { collection, .. } => return Err(collection),
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

/// The changes as a recipe makes them. A collection of a new entry, such as the bindings of a new
/// site, is filled by adding to it.
pub(super) fn in_recipe(edits: &[ConfigEdit]) -> Vec<ConfigEdit> {
    let mut all = Vec::new();
    for (place, edit) in edits.iter().enumerate() {
        let with = |change| ConfigEdit {
            change,
            ..edit.clone()
        };
        match &edit.change {
            ConfigChange::New { entry, first } => all.push(with(ConfigChange::Add {
                entry: entry.clone(),
                first: *first,
            })),
            ConfigChange::Take { entry } => all.push(with(ConfigChange::Remove {
                entry: entry.clone(),
            })),
            ConfigChange::Fill {
                collection,
                entries,
            } if is_empty(collection, edit, &edits[..place]) => {
                all.extend(entries.iter().map(|entry| {
                    with(ConfigChange::Add {
                        entry: collection.clone().with(PathStep::Entry(entry.clone())),
                        first: false,
                    })
                }));
            }
            _ => all.push(edit.clone()),
        }
    }
    all
}

/// Returns true if the entry with a collection is new, and nothing was added to the collection.
fn is_empty(collection: &ElementPath, edit: &ConfigEdit, before: &[ConfigEdit]) -> bool {
    let mut is_new = false;
    for other in before {
        if other.section != edit.section || other.location != edit.location {
            continue;
        }
        match &other.change {
            ConfigChange::New { entry, .. } if is_above(entry, collection) => is_new = true,
            ConfigChange::New { entry, .. }
            | ConfigChange::Add { entry, .. }
            | ConfigChange::Ensure { entry }
                if is_above(collection, entry) =>
            {
                return false;
            }
            ConfigChange::Fill {
                collection: other, ..
            } if other == collection => return false,
            _ => {}
        }
    }
    is_new
}

/// Returns true if a path begins with another one, whose entries may have more attributes.
fn is_above(above: &ElementPath, path: &ElementPath) -> bool {
    let is_meant = |(above, own): (&PathStep, &PathStep)| match (above, own) {
        (PathStep::Entry(above), PathStep::Entry(own)) => own
            .attributes()
            .all(|wanted| above.attributes().any(|it| it == wanted)),
        (above, own) => above == own,
    };
    let (above, path) = (above.steps(), path.steps());
    above.len() <= path.len() && above.iter().zip(path).all(is_meant)
}
#[cfg(test)]
mod tests {
    use wincimg_iis::config::SectionPath;

    use super::*;

    fn edit(change: ConfigChange) -> ConfigEdit {
        ConfigEdit {
            section: SectionPath::of("system.applicationHost/sites"),
            location: None,
            change,
        }
    }

    fn new(entry: &str) -> ConfigEdit {
        edit(ConfigChange::New {
            entry: entry.parse().unwrap(),
            first: false,
        })
    }

    fn bindings(ports: &[&str]) -> ConfigEdit {
        let entries = ports.iter().map(|port| {
            let path: ElementPath = format!("[protocol='http',bindingInformation='*:{port}:']")
                .parse()
                .unwrap();
            match path.steps() {
                [PathStep::Entry(entry)] => entry.clone(),
                other => panic!("{other:?}"),
            }
        });
        edit(ConfigChange::Fill {
            collection: "[name='web'].bindings".parse().unwrap(),
            entries: entries.collect(),
        })
    }

    #[test]
    fn a_new_sites_bindings_are_added() {
        let edits = [
            new("[name='web',id='3']"),
            new("[name='web'].[path='/']"),
            bindings(&["81", "82"]),
        ];
        let mut out = String::new();
        write_iis(&edits, "run-2", &mut out).unwrap();
        for port in ["81", "82"] {
            let entry =
                format!("[name='web'].bindings.[protocol='http',bindingInformation='*:{port}:']");
            assert!(out.contains(&entry), "{out}");
        }
        // Where a site may have others, a recipe has no word for it.
        let added = new("[name='web'].bindings.[protocol='http',bindingInformation='*:80:']");
        for edits in [
            vec![bindings(&["81"])],
            vec![new("[name='other']"), bindings(&["81"])],
            vec![new("[name='web']"), added, bindings(&["81"])],
            vec![new("[name='web']"), bindings(&["81"]), bindings(&["82"])],
        ] {
            let refused = write_iis(&edits, "run-2", &mut String::new()).unwrap_err();
            assert!(refused.why.contains("[name='web'].bindings"), "{refused:?}");
        }
    }
}
