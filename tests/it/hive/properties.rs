//! Properties of any edits: they are read back unchanged, and a container sees their result.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use wincimg_registry::hive::{
    FileTime, Hive, HiveFile, Key, edits, layer_hives, merge, unfitted_hives,
};
use wincimg_registry::security::{ChildKind, DescriptorLayout, SecurityDescriptor, Sid};
use wincimg_registry::testing::{Keys, read_descriptor};
use wincimg_registry::{
    DataType, KeyMode, KeyPath, RegistryData, RegistryEdit, Root, UnknownBase, name_folding,
    regfile,
};
use wincimg_testkit::kernel_rules::check;

const KEYS: [&str; 3] = ["alpha", "ß-µ", "ключ"];
const VALUES: [&str; 3] = ["", "x", "Ünï"];

/// A name in any case; equal for Windows.
fn in_some_case(name: &'static str) -> impl Strategy<Value = String> {
    let upper = |name: &str| -> String {
        let units = name.encode_utf16().map(name_folding::upcase);
        char::decode_utf16(units).map(Result::unwrap).collect()
    };
    select(vec![name.to_owned(), upper(name)])
}

fn key() -> impl Strategy<Value = KeyPath> {
    vec(select(&KEYS[..]).prop_flat_map(in_some_case), 1..=3).prop_map(|names| {
        let root = KeyPath::root_of(Root::Software);
        names
            .iter()
            .fold(root, |key, name| key.child(name).unwrap())
    })
}

fn value_name() -> impl Strategy<Value = String> {
    select(&VALUES[..]).prop_flat_map(in_some_case)
}

fn data() -> impl Strategy<Value = RegistryData> {
    let size = prop_oneof![8 => 0..20_usize, 1 => 16_340..16_350_usize];
    (0..13_u32, size, any::<u8>()).prop_map(|(kind, size, byte)| {
        let bytes: Vec<u8> = (byte..=255).cycle().take(size).collect();
        RegistryData::new(DataType(kind), bytes)
    })
}

fn edit() -> impl Strategy<Value = RegistryEdit> {
    let mode = select(vec![
        KeyMode::Merge,
        KeyMode::Replace,
        KeyMode::ReplaceValues,
    ]);
    prop_oneof![
        4 => (key(), value_name(), data())
            .prop_map(|(key, name, data)| RegistryEdit::SetValue { key, name, data }),
        1 => (key(), value_name()).prop_map(|(key, name)| RegistryEdit::DeleteValue { key, name }),
        2 => (key(), mode).prop_map(|(key, mode)| RegistryEdit::CreateKey { key, mode }),
        1 => key().prop_map(|key| RegistryEdit::DeleteKey { key }),
    ]
}

/// Adds the null that Windows adds to a text of a registration file that has none.
fn end_text(edit: &mut RegistryEdit) {
    let RegistryEdit::SetValue { data, .. } = edit else {
        return;
    };
    let kind = data.kind();
    if [DataType::SZ, DataType::EXPAND_SZ, DataType::MULTI_SZ].contains(&kind) {
        let mut bytes = data.bytes().to_vec();
        bytes.resize(bytes.len().next_multiple_of(2), 0);
        bytes.extend([0, 0]);
        *data = RegistryData::new(kind, bytes);
    }
}

/// An edit that removes nothing.
fn addition() -> impl Strategy<Value = RegistryEdit> {
    prop_oneof![
        (key(), value_name(), data()).prop_map(|(key, name, data)| RegistryEdit::SetValue {
            key,
            name,
            data
        }),
        key().prop_map(|key| RegistryEdit::CreateKey {
            key,
            mode: KeyMode::Merge
        }),
    ]
}

fn hive_of(edits: &[RegistryEdit]) -> Vec<u8> {
    let mut hives = unfitted_hives(edits, FileTime(1)).unwrap();
    hives
        .pop()
        .map(|hive| super::sound(hive.bytes))
        .unwrap_or_default()
}

/// A registry without layers, changed by edits in sequence.
#[derive(Debug, Default, PartialEq)]
struct Plain(
    BTreeMap<Vec<name_folding::FoldedName>, BTreeMap<name_folding::FoldedName, RegistryData>>,
);

impl Plain {
    fn apply(&mut self, edit: &RegistryEdit) {
        let names = edit.key().components().iter();
        let path: Vec<_> = names
            .map(|name| name_folding::FoldedName::new(name))
            .collect();
        match edit {
            RegistryEdit::SetValue { name, data, .. } => {
                let name = name_folding::FoldedName::new(name);
                self.key(&path).insert(name, data.clone());
            }
            RegistryEdit::DeleteValue { name, .. } => {
                if let Some(values) = self.0.get_mut(&path) {
                    values.remove(&name_folding::FoldedName::new(name));
                }
            }
            RegistryEdit::CreateKey { mode, .. } => {
                if *mode == KeyMode::Replace {
                    self.remove(&path);
                }
                let values = self.key(&path);
                if *mode == KeyMode::ReplaceValues {
                    values.clear();
                }
            }
            RegistryEdit::DeleteKey { .. } => self.remove(&path),
            RegistryEdit::SetSecurity { .. } => {
                self.key(&path);
            }
        }
    }

    fn key(
        &mut self,
        path: &[name_folding::FoldedName],
    ) -> &mut BTreeMap<name_folding::FoldedName, RegistryData> {
        for end in 0..path.len() {
            self.0.entry(path[..end].to_vec()).or_default();
        }
        self.0.entry(path.to_vec()).or_default()
    }

    fn remove(&mut self, path: &[name_folding::FoldedName]) {
        self.0.retain(|key, _| !key.starts_with(path));
    }

    fn of(root: &Key<'_>) -> Self {
        let mut plain = Self::default();
        plain.add(&mut Vec::new(), root);
        plain
    }

    fn add(&mut self, path: &mut Vec<name_folding::FoldedName>, key: &Key<'_>) {
        let values = key.values.iter();
        let values = values.map(|v| (name_folding::FoldedName::new(&v.name), v.data().unwrap()));
        self.0.insert(path.clone(), values.collect());
        for subkey in &key.subkeys {
            path.push(name_folding::FoldedName::new(&subkey.name));
            self.add(path, subkey);
            path.pop();
        }
    }
}

/// Every key that an edit can affect, each with a value.
fn full_base() -> Vec<RegistryEdit> {
    let mut level = vec![KeyPath::root_of(Root::Software)];
    let mut all = Vec::new();
    for _ in 0..3 {
        level = level
            .iter()
            .flat_map(|key| KEYS.map(|name| key.child(name).unwrap()))
            .collect();
        all.extend(level.clone());
    }
    let value = |key| RegistryEdit::SetValue {
        key,
        name: "x".into(),
        data: RegistryData::dword(9),
    };
    all.into_iter().map(value).collect()
}

/// One descriptor for each key of a base; some are inherited not at all or in part.
static DESCRIPTORS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let passed_on = ["CI", "", "CIIO", "OI", "CINP", "OICI"];
    let accounts = ["CO", "BU", "BA"];
    let descriptors = (0..40).map(|number| {
        let (flags, account) = (passed_on[number % 6], accounts[number % 3]);
        let list =
            format!("(A;;KA;;;SY)(A;{flags};0x200{number:02x};;;{account})(A;{flags};GR;;;AU)");
        let text = format!("O:BAG:SYD:P{list}");
        let descriptor: SecurityDescriptor = text.parse().unwrap();
        descriptor.to_bytes(DescriptorLayout::OwnerFirst)
    });
    descriptors.collect()
});

/// Gives each key its own descriptor, and a class except for the root.
fn distinguish<'h>(key: &mut Key<'h>, descriptors: &mut impl Iterator<Item = &'h Vec<u8>>) {
    key.security = descriptors.next().unwrap();
    for subkey in &mut key.subkeys {
        subkey.class = Some(format!("class of {}", subkey.name));
        distinguish(subkey, descriptors);
    }
}

/// Returns true if edits leave part of an existing key.
fn survives(path: &KeyPath, edits: &[RegistryEdit]) -> bool {
    let path: Vec<_> = path
        .components()
        .iter()
        .map(|n| name_folding::FoldedName::new(n))
        .collect();
    edits.iter().all(|edit| {
        let names = edit.key().components().iter();
        let gone: Vec<_> = names
            .map(|name| name_folding::FoldedName::new(name))
            .collect();
        let starts_anew = matches!(
            edit,
            RegistryEdit::DeleteKey { .. }
                | RegistryEdit::CreateKey {
                    mode: KeyMode::Replace,
                    ..
                }
        );
        !(starts_anew && path.starts_with(&gone))
    })
}

/// Asserts that a key of the base keeps its descriptor and its class, and that a new one inherits.
fn check_access(
    key: &Key<'_>,
    base: Option<&Key<'_>>,
    above: Option<&SecurityDescriptor>,
    path: &mut KeyPath,
    edits: &[RegistryEdit],
) -> Result<(), TestCaseError> {
    let base = base.filter(|_| survives(path, edits));
    let descriptor = read_descriptor(key.security);
    if let Some(base) = base {
        prop_assert_eq!(key.security, base.security, "{}", path);
        let loses_class = edits.iter().any(|edit| {
            matches!(
                edit,
                RegistryEdit::CreateKey {
                    mode: KeyMode::ReplaceValues,
                    ..
                }
            )
        });
        if !loses_class {
            prop_assert_eq!(&key.class, &base.class, "{}", path);
        }
    } else {
        let system = Sid::local_system();
        let inherited = above
            .unwrap()
            .inherited_by(ChildKind::Key, &system, &system);
        prop_assert_eq!(&descriptor, &inherited, "{}", path);
        prop_assert_eq!(&key.class, &None);
    }
    for subkey in &key.subkeys {
        path.push(&subkey.name).unwrap();
        let below = base.and_then(|base| base.subkey(&subkey.name));
        check_access(subkey, below, Some(&descriptor), path, edits)?;
        path.pop();
    }
    Ok(())
}

fn software(hives: &[HiveFile]) -> Option<&[u8]> {
    let mut hives = hives.iter();
    let hive = hives.find(|hive| hive.name == "Software_Delta")?;
    assert!(check(&hive.bytes).unwrap().is_fresh());
    Some(&hive.bytes)
}

/// A quarter of the usual cases, unless `PROPTEST_CASES` says how many: most of them write several
/// hives.
fn config() -> ProptestConfig {
    let usual = ProptestConfig::default();
    let part = std::env::var_os("PROPTEST_CASES").map_or(4, |_| 1);
    ProptestConfig {
        cases: usual.cases / part,
        failure_persistence: None,
        ..usual
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn edits_come_back_from_the_hive_that_holds_them(list in vec(edit(), 1..12)) {
        let bytes = hive_of(&list);
        let hive = Hive::read(&bytes).unwrap();
        let read = edits(Root::Software, &hive.root).unwrap();
        prop_assert_eq!(hive_of(&read), &*bytes);
        let again = hive_of(&read);
        let again = Hive::read(&again).unwrap();
        prop_assert_eq!(edits(Root::Software, &again.root).unwrap(), read);
    }

    #[test]
    fn a_value_that_was_set_last_comes_back_exactly(key in key(), name in value_name(), data in data()) {
        let edit = RegistryEdit::SetValue { key, name, data };
        let bytes = hive_of(std::slice::from_ref(&edit));
        let hive = Hive::read(&bytes).unwrap();
        prop_assert_eq!(edits(Root::Software, &hive.root).unwrap(), [edit]);
    }

    #[test]
    fn a_container_sees_what_the_edits_say(
        first in vec(addition(), 0..8),
        second in vec(edit(), 1..12),
    ) {
        let base = full_base();
        let mut plain = Plain::default();
        for edit in base.iter().chain(&first).chain(&second) {
            plain.apply(edit);
        }
        let layers = [base, first, second].map(|list| hive_of(&list));
        let roots = layers.iter().filter(|bytes| !bytes.is_empty());
        let view = merge(None, roots.map(|bytes| Hive::read(bytes).unwrap().root)).unwrap();
        prop_assert_eq!(Plain::of(&view), plain);
    }

    #[test]
    fn a_layer_on_a_known_base_has_the_edits_and_creates_nothing_else(
        below in vec(addition(), 1..6),
        above in vec(edit(), 1..12),
    ) {
        let mut plain = Plain::default();
        for edit in &below {
            plain.apply(edit);
        }
        let base = hive_of(&below);
        let mut base = Hive::read(&base).unwrap().root;
        distinguish(&mut base, &mut DESCRIPTORS.iter());
        let inside = Keys::default().with_hive(Root::Software, &base);
        let hives = layer_hives(&above, &inside, FileTime(1)).unwrap();
        prop_assert!(hives.is_empty() || hives.len() == 5);
        let delta = software(&hives).map(|bytes| Hive::read(bytes).unwrap().root);
        let view = merge(Some(base.clone()), delta).unwrap();
        for edit in &above {
            plain.apply(edit);
        }
        prop_assert_eq!(Plain::of(&view), plain);
        check_access(&view, Some(&base), None, &mut KeyPath::root_of(Root::Software), &above)?;
    }

    #[test]
    fn a_layer_on_an_unknown_base_creates_no_key_that_no_edit_creates(above in vec(edit(), 1..12)) {
        let Ok(hives) = layer_hives(&above, &UnknownBase, FileTime(1)) else {
            return Ok(());
        };
        // On a base without keys, only created ones exist.
        let mut plain = Plain::default();
        plain.key(&[]);
        for edit in &above {
            plain.apply(edit);
        }
        let delta = software(&hives).map(|bytes| Hive::read(bytes).unwrap().root);
        let view = merge(None, delta);
        let seen = view.map_or_else(Plain::default, |root| Plain::of(&root));
        prop_assert!(seen.0.keys().all(|key| plain.0.contains_key(key)), "{seen:?}");
    }

    #[test]
    fn a_registration_file_of_a_hive_makes_the_same_hive(
        first in addition(),
        mut list in vec(edit(), 0..12),
    ) {
        let no_words_for = |edit: &RegistryEdit| {
            matches!(edit, RegistryEdit::CreateKey { mode: KeyMode::ReplaceValues, .. })
        };
        list.retain(|edit| !no_words_for(edit));
        list.push(first);
        list.iter_mut().for_each(end_text);
        let bytes = hive_of(&list);
        let hive = Hive::read(&bytes).unwrap();
        let text = regfile::export(Root::Software.long_name(), &hive.root);
        let read = regfile::import(&regfile::to_utf16(&text)).unwrap().edits;
        prop_assert_eq!(hive_of(&read), bytes);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[HKLM\\\\SOFTWARE:OGDS();ABF0x\\[\\]\"=@,é-]{0,40}", bytes in vec(any::<u8>(), 0..60)) {
        let _ = text.parse::<KeyPath>();
        if let Ok(descriptor) = text.parse::<SecurityDescriptor>() {
            let bytes = descriptor.to_bytes(DescriptorLayout::ListsFirst);
            prop_assert_eq!(read_descriptor(&bytes), descriptor);
        }
        let _ = regfile::import(&bytes);
        let _ = regfile::import(format!("REGEDIT4\n[HKEY_USERS\\.DEFAULT]\n{text}").as_bytes());
        let _ = Hive::read(&bytes);
    }
}
