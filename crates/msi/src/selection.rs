//! Which features and components are installed.

use std::collections::{BTreeMap, BTreeSet};

use super::database::Row;
use super::error::MsiError;
use super::session::Session;

/// A component: the files and settings that are installed together.
#[derive(Debug, Clone)]
pub(crate) struct Component {
    pub(crate) id: String,
    pub(crate) directory: String,
    pub(crate) key_path: String,
    attributes: u32,
    pub(crate) is_installed: bool,
    /// True if its feature is selected and its own condition is false: its files have no paths.
    pub(crate) is_disabled: bool,
}

const SOURCE_ONLY: u32 = 1;
/// Installed, or run from the source, as the feature says.
const OPTIONAL: u32 = 2;
const REGISTRY_KEY_PATH: u32 = 4;
const NEVER_OVERWRITE: u32 = 128;
const IS_64_BIT: u32 = 256;
const SHARED_DLL: u32 = 8;
const PERMANENT: u32 = 16;

/// A feature that runs from the source, unless a property names features.
const FAVOR_SOURCE: u32 = 1;
/// A feature that follows its parent.
const FOLLOW_PARENT: u32 = 2;
/// A feature that is advertised, and installed when it is first used.
const FAVOR_ADVERTISE: u32 = 4;

/// Properties that select features, besides `ADDLOCAL` and `REMOVE`.
pub(crate) const OTHER_SELECTIONS: [&str; 10] = [
    "ADDSOURCE", "ADDDEFAULT", "REINSTALL", "ADVERTISE", "COMPADDLOCAL", "COMPADDSOURCE",
    "COMPADDDEFAULT", "FILEADDLOCAL", "FILEADDSOURCE", "FILEADDDEFAULT",
];

impl Component {
    /// True if its registry keys are those of 64-bit programs.
    pub(crate) fn is_64_bit(&self) -> bool {
        self.attributes & IS_64_BIT != 0
    }

    /// True if its key path is a registry value.
    pub(crate) fn has_registry_key_path(&self) -> bool {
        self.attributes & REGISTRY_KEY_PATH != 0
    }

    /// True if its key file is counted in `SharedDLLs`.
    pub(crate) fn is_shared_dll(&self) -> bool {
        self.attributes & SHARED_DLL != 0
    }

    /// True if it stays when the product is removed.
    pub(crate) fn is_permanent(&self) -> bool {
        self.attributes & PERMANENT != 0
    }
}

/// Names of features.
type Features = BTreeSet<String>;

/// Maximum depth of features, and the one of Windows Installer.
const DEPTH: usize = 16;

impl Session<'_> {
    /// Selects features: those that properties name, or else by level.
    pub(crate) fn select_features(&mut self) -> Result<(), MsiError> {
        let database = self.database;
        if self.property("INSTALLLEVEL").is_empty() {
            self.set("INSTALLLEVEL", "1");
        }
        let install_level: i32 = self.property("INSTALLLEVEL").parse().unwrap_or(1);
        let mut levels = BTreeMap::new();
        for row in database.rows("Feature") {
            let level = self.feature_level(&row)?;
            levels.insert(row.text("Feature"), level);
        }
        let named = self.named_features()?;
        let mut selected = BTreeSet::new();
        for row in database.rows("Feature") {
            let name = row.text("Feature");
            let level = levels.get(name).copied().unwrap_or_default();
            let is_default = level > 0 && level <= install_level;
            let is_selected = match &named {
                Some((added, _)) => added.contains(name),
                None if row.flags("Attributes") & FAVOR_ADVERTISE != 0 => {
                    if is_default {
                        let note = format!("feature {name} is advertised, not installed");
                        self.notes.push(note);
                    }
                    false
                }
                None => is_default,
            };
            if is_selected {
                selected.insert(name);
            }
        }
        let removed = named.as_ref().map(|(_, removed)| removed);
        let selected = self.follow_parents(&selected, &levels, removed)?;
        let all = levels.into_keys();
        let states = all.map(|name| (name.to_owned(), selected.contains(name)));
        self.features = states.collect();
        Ok(())
    }

    /// The features of `ADDLOCAL` and of `REMOVE`, if there is one. Either replaces the selection by
    /// level, so that `REMOVE` alone selects none.
    fn named_features(&mut self) -> Result<Option<(Features, Features)>, MsiError> {
        if self.property("REMOVE").eq_ignore_ascii_case("ALL") {
            let why = "REMOVE=ALL removes the product, which requires Windows";
            return Err(MsiError::unsupported(why));
        }
        let mut others = OTHER_SELECTIONS.into_iter();
        if let Some(property) = others.find(|it| !self.property(it).is_empty()) {
            let why = format!("{property} is not supported: name features with ADDLOCAL");
            return Err(MsiError::unsupported(why));
        }
        let added = self.feature_list("ADDLOCAL")?;
        let removed = self.feature_list("REMOVE")?;
        if added.is_none() && removed.is_none() {
            return Ok(None);
        }
        if added.is_none() {
            let note = format!(
                "REMOVE without ADDLOCAL installs no feature: write ADDLOCAL=ALL REMOVE={}",
                self.property("REMOVE")
            );
            self.notes.push(note);
        }
        self.set("Preselected", "1");
        let named = (added.unwrap_or_default(), removed.unwrap_or_default());
        Ok(Some(named))
    }

    fn feature_level(&self, row: &Row<'_>) -> Result<i32, MsiError> {
        let name = row.text("Feature");
        let mut level = row.number("Level").unwrap_or(1);
        let conditions = self.database.rows("Condition");
        for condition in conditions.filter(|it| it.text("Feature_") == name) {
            if self.is_true(condition.text("Condition"), name)? {
                level = condition.number("Level").unwrap_or(level);
            }
        }
        Ok(level)
    }

    /// Named features select those above them, unless one is disabled or removed; by level, which
    /// removes none, a feature requires those above it.
    fn follow_parents(
        &self,
        selected: &BTreeSet<&str>,
        levels: &BTreeMap<&str, i32>,
        removed: Option<&Features>,
    ) -> Result<Features, MsiError> {
        let mut result = BTreeSet::new();
        for name in levels.keys() {
            let chain = self.feature_chain(name)?;
            let is_enabled = |at: usize| levels.get(chain[at]).is_some_and(|level| *level > 0);
            let follows = |at: usize| {
                let row = self.database.find("Feature", "Feature", chain[at]);
                at + 1 < chain.len()
                    && row.is_some_and(|row| row.flags("Attributes") & FOLLOW_PARENT != 0)
                    && is_enabled(at)
            };
            // The nearest feature that decides for itself.
            let own = (0..chain.len())
                .find(|at| !follows(*at))
                .unwrap_or_default();
            if let Some(removed) = removed {
                let is_out =
                    |at: usize| !is_enabled(at) || removed.contains(chain[at]) && !follows(at);
                if (0..chain.len()).any(is_out) {
                    continue;
                }
                if selected.contains(name) {
                    result.extend(chain.iter().map(|it| (*it).to_owned()));
                } else if selected.contains(chain[own]) {
                    result.insert((*name).to_owned());
                }
            } else if (0..chain.len()).all(|at| selected.contains(chain[at]) || follows(at)) {
                result.insert((*name).to_owned());
            }
        }
        Ok(result)
    }

    /// A feature and those above it.
    fn feature_chain<'n>(&'n self, name: &'n str) -> Result<Vec<&'n str>, MsiError> {
        let mut chain = vec![name];
        let mut at = name;
        while let Some(row) = self.database.find("Feature", "Feature", at) {
            let parent = row.text("Feature_Parent");
            if parent.is_empty() || parent == at {
                break;
            }
            chain.push(parent);
            if chain.len() > DEPTH {
                let why = format!("feature {name:?} is more than {DEPTH} levels deep");
                return Err(MsiError::damaged(why));
            }
            at = parent;
        }
        Ok(chain)
    }

    /// The features of a property; `ALL` names all. Names are case-sensitive.
    fn feature_list(&self, property: &str) -> Result<Option<Features>, MsiError> {
        let list = self.property(property);
        if list.is_empty() {
            return Ok(None);
        }
        let all = self.database.rows("Feature");
        let all: Features = all.map(|row| row.text("Feature").to_owned()).collect();
        if list.eq_ignore_ascii_case("ALL") {
            return Ok(Some(all));
        }
        let named = list.split(',').map(str::trim);
        let named: Features = named.filter(|it| !it.is_empty()).map(Into::into).collect();
        if let Some(unknown) = named.difference(&all).next() {
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            let all = all.join(", ");
            let why = format!("{property} names the feature {unknown:?}; the package has {all}");
            return Err(MsiError::Fails(why));
        }
        Ok(Some(named))
    }

    /// Selects components: those of a selected feature whose condition is true.
    pub(crate) fn select_components(&mut self) -> Result<(), MsiError> {
        let is_named = ["ADDLOCAL", "REMOVE"]
            .iter()
            .any(|it| !self.property(it).is_empty());
        let favors_source = |feature: &str| {
            let row = self.database.find("Feature", "Feature", feature);
            row.is_some_and(|row| row.flags("Attributes") & FAVOR_SOURCE != 0)
        };
        // Components of selected features, and whether one of these does not favor the source.
        let mut of_selected = BTreeMap::new();
        for row in self.database.rows("FeatureComponents") {
            let feature = row.text("Feature_");
            if self.features.get(feature).copied() == Some(true) {
                let is_local = is_named || !favors_source(feature);
                *of_selected.entry(row.text("Component_")).or_insert(false) |= is_local;
            }
        }
        let mut components = BTreeMap::new();
        for row in self.database.rows("Component") {
            let name = row.text("Component");
            let is_local = of_selected.get(name).copied();
            let is_selected = is_local.is_some();
            let is_disabled = is_selected && !self.is_true(row.text("Condition"), name)?;
            let attributes = row.flags("Attributes");
            let runs_from_source = attributes & SOURCE_ONLY != 0
                || attributes & OPTIONAL != 0 && is_local == Some(false);
            if is_selected && !is_disabled && runs_from_source {
                let why = format!("component {name} is not installed but runs from its source");
                return Err(MsiError::unsupported(why));
            }
            let component = Component {
                id: row.text("ComponentId").to_owned(),
                directory: row.text("Directory_").to_owned(),
                key_path: row.text("KeyPath").to_owned(),
                attributes,
                is_installed: is_selected && !is_disabled,
                is_disabled,
            };
            components.insert(name.to_owned(), component);
        }
        self.components = components;
        self.keep_existing()
    }

    /// Leaves out components that never replace what the image has.
    fn keep_existing(&mut self) -> Result<(), MsiError> {
        for (name, component) in self.components.clone() {
            if !component.is_installed || component.attributes & NEVER_OVERWRITE == 0 {
                continue;
            }
            let found = if component.has_registry_key_path() {
                self.existing_value(&component.key_path)?
            } else {
                self.existing_file(&component.key_path)?
            };
            if let (Some(found), Some(component)) = (found, self.components.get_mut(&name)) {
                component.is_installed = false;
                self.notes
                    .push(format!("{found} exists and is not replaced"));
            }
        }
        Ok(())
    }

    /// A key file that the image has.
    fn existing_file(&mut self, key_path: &str) -> Result<Option<String>, MsiError> {
        let Some(file) = self.file(key_path)? else {
            return Ok(None);
        };
        let found = self.system.entry(&file);
        let found = self.known(found, || format!("whether {file} exists"));
        Ok(found.map(|_| file.to_string()))
    }

    /// A key path in the registry that the image has: a value, or a key that has no value here.
    fn existing_value(&mut self, key_path: &str) -> Result<Option<String>, MsiError> {
        let database = self.database;
        let Some(row) = database.find("Registry", "Registry", key_path) else {
            return Ok(None);
        };
        let Some((key, name)) = self.key_and_name(&row)? else {
            return Ok(None);
        };
        let is_key = row.optional("Value").is_none() && ["+", "-", "*"].contains(&name.as_str());
        let (what, found) = if is_key {
            (key.to_string(), self.system.key(&key))
        } else {
            let found = self.system.value(&key, &name).map(drop);
            (format!("the value {name:?} of {key}"), found)
        };
        let found = self.known(found, || format!("whether {what} exists"));
        Ok(found.map(|()| what))
    }
}
