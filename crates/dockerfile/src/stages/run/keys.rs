//! The stage's registry: changes of this line and earlier ones over the base's registry.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::iter;

use wincimg_common::sorted::remove_within;
use wincimg_registry::hive::follow_links;
use wincimg_registry::name_folding::{FoldedName, eq_ignore_case};
use wincimg_registry::{BaseKey, KeyMode, KeyPath, Presence, RegistryData, RegistryEdit};
use wincimg_scripts::Lookup;

use crate::stages::state::StageState;

/// Root and names of a key, in the order of keys.
type KeyPlace = Vec<FoldedName>;

/// What edits leave of keys and values: to search thousands of edits for each would take too long.
#[derive(Debug, Clone, Default)]
pub(in crate::stages) struct ChangedKeys {
    keys: BTreeMap<KeyPlace, ChangedKey>,
    /// Keys of which nothing from before is left, nor within them.
    removed: BTreeSet<KeyPlace>,
}

#[derive(Debug, Clone, Default)]
struct ChangedKey {
    /// False if only values were deleted.
    is_created: bool,
    /// True if no value from before is left.
    is_emptied: bool,
    /// Data of the values; none if deleted.
    values: HashMap<FoldedName, Option<RegistryData>>,
}

impl ChangedKeys {
    pub(in crate::stages) fn apply(&mut self, edit: &RegistryEdit) {
        let place = place(edit.key());
        match edit {
            RegistryEdit::SetValue { name, data, .. } => {
                let key = self.created(place);
                key.values.insert(FoldedName::new(name), Some(data.clone()));
            }
            RegistryEdit::DeleteValue { name, .. } => {
                let key = self.keys.entry(place).or_default();
                key.values.insert(FoldedName::new(name), None);
            }
            RegistryEdit::CreateKey { mode, .. } => {
                if *mode == KeyMode::Replace {
                    self.remove(place.clone());
                }
                let key = self.created(place);
                if *mode == KeyMode::ReplaceValues {
                    key.is_emptied = true;
                    key.values.clear();
                }
            }
            RegistryEdit::DeleteKey { .. } => self.remove(place),
            RegistryEdit::SetSecurity { .. } => {
                self.created(place);
            }
        }
    }

    fn created(&mut self, place: KeyPlace) -> &mut ChangedKey {
        let key = self.keys.entry(place).or_default();
        key.is_created = true;
        key
    }

    /// The changed keys at and below a place.
    fn within<'a>(
        &'a self,
        place: &'a KeyPlace,
    ) -> impl Iterator<Item = (&'a KeyPlace, &'a ChangedKey)> {
        let from = self.keys.range(place.clone()..);
        from.take_while(move |(own, _)| own.starts_with(place))
    }

    fn remove(&mut self, place: KeyPlace) {
        let gone = remove_within(&mut self.keys, &place, |own| own.starts_with(&place));
        // The keys above were created with it, and remain.
        if gone.iter().any(|key| key.is_created)
            && let [above @ .., _] = place.as_slice()
        {
            self.created(above.to_vec());
        }
        self.removed.insert(place);
    }

    fn is_removed(&self, place: &KeyPlace) -> bool {
        let mut depths = 1..=place.len();
        !self.removed.is_empty() && depths.any(|depth| self.removed.contains(&place[..depth]))
    }

    /// The value, if edits say what it is.
    fn value(&self, place: &KeyPlace, name: &FoldedName) -> Option<Lookup<RegistryData>> {
        let key = self.keys.get(place);
        if let Some(data) = key.and_then(|key| key.values.get(name)) {
            return Some(data.clone().map_or(Lookup::Absent, Lookup::Present));
        }
        let is_gone = key.is_some_and(|key| key.is_emptied) || self.is_removed(place);
        is_gone.then_some(Lookup::Absent)
    }

    /// The key, if edits say whether it exists.
    fn key(&self, place: &KeyPlace) -> Option<Lookup<()>> {
        if self.within(place).any(|(_, key)| key.is_created) {
            return Some(Lookup::Present(()));
        }
        self.is_removed(place).then_some(Lookup::Absent)
    }
}

/// Registry during a line.
pub(super) struct Keys<'a> {
    /// The stage before the line.
    state: &'a StageState,
    /// Edits of this line.
    edits: Vec<RegistryEdit>,
    changed: ChangedKeys,
}

impl<'a> Keys<'a> {
    pub(super) fn new(state: &'a StageState) -> Self {
        Self {
            state,
            edits: Vec::new(),
            changed: ChangedKeys::default(),
        }
    }

    pub(super) fn edit(&mut self, edits: impl IntoIterator<Item = RegistryEdit>) {
        for mut edit in edits {
            if let Some(key) = self.reached(edit.key()) {
                *edit.key_mut() = key;
            }
            self.changed.apply(&edit);
            self.edits.push(edit);
        }
    }

    pub(super) fn into_edits(self) -> Vec<RegistryEdit> {
        self.edits
    }

    /// Edits, the last one first.
    fn changes(&self) -> impl Iterator<Item = &RegistryEdit> {
        let steps = self.state.steps.iter().rev();
        let layers = steps.filter_map(|step| step.layer.as_ref());
        let earlier = layers.flat_map(|layer| layer.registry.iter().rev());
        self.edits.iter().rev().chain(earlier)
    }

    /// What was changed, by this line or those before.
    fn changed(&self) -> [&ChangedKeys; 2] {
        [&self.changed, &self.state.registry]
    }

    /// The key that a path reaches through links of the base; `None` if no layer can change it.
    fn reached(&self, key: &KeyPath) -> Option<KeyPath> {
        follow_links(key, self.state.tree.base()).ok()
    }

    fn of_base(&self, key: &KeyPath) -> Presence<BaseKey> {
        self.state.tree.base().key(key).unwrap_or(Presence::Unknown)
    }

    pub(super) fn value(&self, key: &KeyPath, name: &str) -> Lookup<RegistryData> {
        let Some(key) = &self.reached(key) else {
            return Lookup::Unknown;
        };
        let (place, folded) = (place(key), FoldedName::new(name));
        let mut changed = self.changed().into_iter();
        if let Some(found) = changed.find_map(|changed| changed.value(&place, &folded)) {
            return found;
        }
        let value = self.of_base(key).and_then(|below| {
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
        let Some(key) = &self.reached(key) else {
            return Lookup::Unknown;
        };
        if self.key(key) == Lookup::Absent {
            return Lookup::Absent;
        }
        let below = match self.of_base(key) {
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
        let Some(key) = &self.reached(key) else {
            return Lookup::Unknown;
        };
        let place = place(key);
        let mut changed = self.changed().into_iter();
        let found = changed.find_map(|changed| changed.key(&place));
        found.unwrap_or_else(|| self.of_base(key).map(drop).of_image())
    }
}

fn place(key: &KeyPath) -> KeyPlace {
    let names = key.components().iter().map(String::as_str);
    let names = iter::once(key.root().short_name()).chain(names);
    names.map(FoldedName::new).collect()
}

pub(super) fn is_same(one: &KeyPath, other: &KeyPath) -> bool {
    let mut names = iter::zip(one.components(), other.components());
    one.root() == other.root()
        && one.components().len() == other.components().len()
        && names.all(|(one, other)| eq_ignore_case(one, other))
}
#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;
    use wincimg_registry::testing::Keys as TestKeys;
    use wincimg_windows::testing::TestBaseContents;

    use super::*;
    use crate::stages::drive::Tree;

    const KEYS: [&str; 4] = [
        r"HKLM\SOFTWARE\A", r"HKLM\SOFTWARE\a\B", r"HKLM\SOFTWARE\A\b\C", r"HKLM\SOFTWARE\AB",
    ];
    const NAMES: [&str; 3] = ["x", "X", "y"];

    fn key(number: usize) -> KeyPath {
        KEYS[number].parse().unwrap()
    }

    fn edit(number: usize, (kind, of, name): (u8, usize, usize)) -> RegistryEdit {
        let (key, name) = (key(of), NAMES[name].to_owned());
        let created = |key, mode| RegistryEdit::CreateKey { key, mode };
        match kind {
            0 => RegistryEdit::SetValue {
                key,
                name,
                data: RegistryData::dword(u32::try_from(number).unwrap()),
            },
            1 => RegistryEdit::DeleteValue { key, name },
            2 => RegistryEdit::DeleteKey { key },
            3 => created(key, KeyMode::Merge),
            4 => created(key, KeyMode::Replace),
            _ => created(key, KeyMode::ReplaceValues),
        }
    }

    fn is_within(key: &KeyPath, above: &KeyPath) -> bool {
        place(key).starts_with(&place(above))
    }

    /// Returns true if an edit removes the previous contents of a key.
    fn removes(edit: &RegistryEdit, key: &KeyPath) -> bool {
        match edit {
            RegistryEdit::CreateKey {
                mode: KeyMode::Replace,
                key: above,
            }
            | RegistryEdit::DeleteKey { key: above } => is_within(key, above),
            _ => false,
        }
    }

    fn value_in(edit: &RegistryEdit, key: &KeyPath, name: &str) -> Option<Lookup<RegistryData>> {
        let is_key = is_same(edit.key(), key);
        match edit {
            RegistryEdit::SetValue {
                name: own, data, ..
            } if is_key && eq_ignore_case(own, name) => Some(Lookup::Present(data.clone())),
            RegistryEdit::DeleteValue { name: own, .. } if is_key && eq_ignore_case(own, name) => {
                Some(Lookup::Absent)
            }
            RegistryEdit::CreateKey {
                mode: KeyMode::ReplaceValues,
                ..
            } if is_key => Some(Lookup::Absent),
            _ => removes(edit, key).then_some(Lookup::Absent),
        }
    }

    fn key_in(edit: &RegistryEdit, key: &KeyPath) -> Option<Lookup<()>> {
        match edit {
            RegistryEdit::SetValue { key: below, .. }
            | RegistryEdit::CreateKey { key: below, .. }
                if is_within(below, key) =>
            {
                Some(Lookup::Present(()))
            }
            _ => removes(edit, key).then_some(Lookup::Absent),
        }
    }

    proptest! {
        #[test]
        fn the_last_edit_that_says_something_counts(
            kinds in proptest::collection::vec((0..6_u8, 0..4_usize, 0..3_usize), 0..12)
        ) {
            let mut changed = ChangedKeys::default();
            let edits: Vec<_> = kinds.into_iter().enumerate().map(|(at, it)| edit(at, it)).collect();
            for edit in &edits {
                changed.apply(edit);
            }
            for key in (0..KEYS.len()).map(key) {
                let mut last_first = edits.iter().rev();
                let expected = last_first.find_map(|edit| key_in(edit, &key));
                prop_assert_eq!(changed.key(&place(&key)), expected, "{} {:?}", key, edits);
                for name in NAMES {
                    let mut last_first = edits.iter().rev();
                    let expected = last_first.find_map(|edit| value_in(edit, &key, name));
                    let value = changed.value(&place(&key), &FoldedName::new(name));
                    prop_assert_eq!(value, expected, "{} {} {:?}", key, name, edits);
                }
            }
        }
    }

    #[test]
    fn values_are_found_among_thousands() {
        let state = StageState::unknown("x");
        let mut keys = Keys::new(&state);
        for number in 0..10_000 {
            let (key, name) = (key(2), format!("V{number}"));
            assert!(!matches!(keys.value(&key, &name), Lookup::Present(_)));
            let data = RegistryData::dword(number);
            keys.edit([RegistryEdit::SetValue { key, name, data }]);
        }
        let last = Lookup::Present(RegistryData::dword(9_999));
        assert_eq!(keys.value(&key(2), "v9999"), last);
    }

    #[test]
    fn keys_are_found_through_links_of_the_base() {
        const A: &str = r"HKLM\SOFTWARE\A";
        let value = [("v", RegistryData::dword(1))];
        let base = TestKeys::default()
            .with_key(A, "O:SYG:SYD:", &[])
            .with_key(r"HKLM\SOFTWARE\A\B", "O:SYG:SYD:", &value)
            .with_link(r"HKLM\SOFTWARE\Link", r"\Registry\Machine\SOFTWARE\A")
            .with_link(r"HKLM\SOFTWARE\Out", r"\Registry\Machine\HARDWARE");
        let mut state = StageState::unknown("x");
        state.tree = Tree::over(Arc::new(TestBaseContents::from(base)), "x");
        let mut keys = Keys::new(&state);
        let (linked, out) = (r"HKLM\SOFTWARE\link\b", r"HKLM\SOFTWARE\Out\b");
        let (linked, out): (KeyPath, KeyPath) = (linked.parse().unwrap(), out.parse().unwrap());
        assert_eq!(keys.key(&linked), Lookup::Present(()));
        assert_eq!(keys.key(&out), Lookup::Unknown);
        assert!(matches!(keys.value(&linked, "V"), Lookup::Present(_)));
        let name = "v".to_owned();
        keys.edit([RegistryEdit::DeleteValue { key: linked, name }]);
        assert_eq!(keys.value(&key(1), "v"), Lookup::Absent);
    }
}
