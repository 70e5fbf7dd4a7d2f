//! The stage's registry: changes of this line and earlier ones over the base's registry.

use wincimg_registry::name_folding::eq_ignore_case;
use wincimg_registry::{KeyMode, KeyPath, Presence, RegistryData, RegistryEdit};
use wincimg_scripts::Lookup;
use wincimg_windows::base_contents::BaseContents;

use crate::stages::state::StageState;

/// Registry during a line.
pub(super) struct Keys<'a> {
    base: &'a dyn BaseContents,
    /// Edits of earlier lines.
    earlier: Vec<&'a RegistryEdit>,
    /// Edits of this line.
    pub(super) edits: Vec<RegistryEdit>,
}

impl<'a> Keys<'a> {
    pub(super) fn new(state: &'a StageState) -> Self {
        let layers = state.steps.iter().filter_map(|step| step.layer.as_ref());
        Self {
            base: state.tree.base(),
            earlier: layers.flat_map(|layer| &layer.registry).collect(),
            edits: Vec::new(),
        }
    }

    /// Edits, the last one first.
    fn changes(&self) -> impl Iterator<Item = &RegistryEdit> {
        let earlier = self.earlier.iter().rev().copied();
        self.edits.iter().rev().chain(earlier)
    }

    pub(super) fn value(&self, key: &KeyPath, name: &str) -> Lookup<RegistryData> {
        for edit in self.changes() {
            let is_key = is_same(edit.key(), key);
            match edit {
                RegistryEdit::SetValue {
                    name: own, data, ..
                } if is_key && eq_ignore_case(own, name) => {
                    return Lookup::Present(data.clone());
                }
                RegistryEdit::DeleteValue { name: own, .. }
                    if is_key && eq_ignore_case(own, name) =>
                {
                    return Lookup::Absent;
                }
                RegistryEdit::CreateKey {
                    mode: KeyMode::ReplaceValues,
                    ..
                } if is_key => return Lookup::Absent,
                _ if removes_contents(edit, key) => return Lookup::Absent,
                _ => {}
            }
        }
        let below = self.base.key(key).unwrap_or(Presence::Unknown);
        let value = below.and_then(|below| {
            let mut values = below.values.into_iter();
            let value = values.find(|(own, _)| eq_ignore_case(own, name));
            value.map_or(Presence::Absent, |(_, data)| Presence::Present(data))
        });
        value.of_image()
    }

    /// Keys that a line gave a value of this name.
    pub(super) fn with_value(&self, name: &str) -> impl Iterator<Item = &KeyPath> {
        self.changes().filter_map(move |edit| match edit {
            RegistryEdit::SetValue { key, name: own, .. } if eq_ignore_case(own, name) => Some(key),
            _ => None,
        })
    }

    /// Names of the values of a key.
    pub(super) fn value_names(&self, key: &KeyPath) -> Lookup<Vec<String>> {
        if self.key(key) == Lookup::Absent {
            return Lookup::Absent;
        }
        let below = match self.base.key(key).unwrap_or(Presence::Unknown) {
            Presence::Unknown => return Lookup::Unknown,
            Presence::Present(below) => below.values.into_iter().map(|(name, _)| name).collect(),
            Presence::Absent => Vec::new(),
        };
        let set = self.changes().filter_map(|edit| match edit {
            RegistryEdit::SetValue { key: own, name, .. } if is_same(own, key) => {
                Some(name.clone())
            }
            _ => None,
        });
        let mut names: Vec<String> = set.chain(below).collect();
        names.sort_unstable();
        names.dedup();
        names.retain(|name| self.value(key, name) != Lookup::Absent);
        Lookup::Present(names)
    }

    pub(super) fn key(&self, key: &KeyPath) -> Lookup<()> {
        for edit in self.changes() {
            match edit {
                RegistryEdit::SetValue { key: below, .. }
                | RegistryEdit::CreateKey { key: below, .. }
                | RegistryEdit::SetSecurity { key: below, .. }
                    if is_within(below, key) =>
                {
                    return Lookup::Present(());
                }
                _ if removes_contents(edit, key) => return Lookup::Absent,
                _ => {}
            }
        }
        let below = self.base.key(key).unwrap_or(Presence::Unknown);
        below.map(drop).of_image()
    }
}

pub(super) fn is_same(one: &KeyPath, other: &KeyPath) -> bool {
    one.components().len() == other.components().len() && is_within(one, other)
}

/// Returns true if an edit removes the previous contents of a key.
fn removes_contents(edit: &RegistryEdit, key: &KeyPath) -> bool {
    match edit {
        RegistryEdit::CreateKey {
            mode: KeyMode::Replace,
            key: above,
        }
        | RegistryEdit::DeleteKey { key: above } => is_within(key, above),
        _ => false,
    }
}

/// Returns true if a key is another one or below it.
fn is_within(key: &KeyPath, above: &KeyPath) -> bool {
    key.root() == above.root()
        && key.components().len() >= above.components().len()
        && std::iter::zip(key.components(), above.components())
            .all(|(one, other)| eq_ignore_case(one, other))
}
