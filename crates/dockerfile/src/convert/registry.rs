//! Registry changes of a layer as entries of a recipe, and a machine's PATH as folders that the
//! recipe adds to the base's.

use std::fmt::Write as _;
use std::sync::Arc;

use wincimg_recipe::{PlannedLayer, PlannedStep};
use wincimg_registry::name_folding::eq_ignore_case;
use wincimg_registry::{DataType, KeyMode, KeyPath, RegistryData, RegistryEdit, TypedData};
use wincimg_windows::base_contents::BaseContents;
use wincimg_windows::search_path::{PathAdditions, VARIABLE};

use super::toml::{key, list, quoted, set_list, set_text, text};

/// Changes to one key that fit into one entry: the key is created, then values are deleted, then
/// set.
#[derive(Default)]
struct Group<'e> {
    key: Option<&'e KeyPath>,
    mode: Option<KeyMode>,
    is_deleted: bool,
    deleted: Vec<&'e String>,
    set: Vec<(&'e str, &'e RegistryData)>,
}

impl<'e> Group<'e> {
    fn add(&mut self, edit: &'e RegistryEdit) {
        self.key = Some(edit.key());
        match edit {
            RegistryEdit::CreateKey { mode, .. } => self.mode = Some(*mode),
            RegistryEdit::DeleteKey { .. } => self.is_deleted = true,
            RegistryEdit::DeleteValue { name, .. } => self.deleted.push(name),
            RegistryEdit::SetValue { name, data, .. } => self.set.push((name, data)),
            // A recipe has no rights of keys, which the comparison with the Dockerfile finds.
            RegistryEdit::SetSecurity { .. } => {}
        }
    }

    /// Returns true if the entry can express a further change, in this order.
    fn takes(&self, edit: &RegistryEdit) -> bool {
        if self.is_deleted || Some(edit.key()) != self.key {
            return false;
        }
        match edit {
            RegistryEdit::SetValue { name, .. } => {
                let mut names = self.set.iter().map(|(name, _)| *name);
                !names.any(|known| eq_ignore_case(known, name))
            }
            RegistryEdit::DeleteValue { .. } => self.set.is_empty(),
            _ => false,
        }
    }

    fn write(&self, layer: &str, out: &mut String) {
        let _ = writeln!(out, "\n[[registry]]\nlayer = {}", quoted(layer));
        let key_text = self.key.map(ToString::to_string);
        set_text(out, "key", key_text.as_deref());
        if self.is_deleted {
            out.push_str("delete = true\n");
        }
        match self.mode {
            Some(KeyMode::Replace) => out.push_str("mode = \"replace\"\n"),
            Some(KeyMode::ReplaceValues) => out.push_str("mode = \"replace_values\"\n"),
            Some(KeyMode::Merge) | None => {}
        }
        set_list(out, "delete_values", self.deleted.iter().copied());
        match self.set.as_slice() {
            [] => {}
            [(name, data)] => {
                let _ = writeln!(out, "values = {{ {} = {} }}", key(name), value(data));
            }
            several => {
                out.push_str("[registry.values]\n");
                for (name, data) in several {
                    let _ = writeln!(out, "{} = {}", key(name), value(data));
                }
            }
        }
    }
}

/// Writes the changes as entries for a layer.
pub(super) fn write(edits: &[RegistryEdit], layer: &str, out: &mut String) {
    let mut group = Group::default();
    for edit in edits {
        if group.key.is_some() && !group.takes(edit) {
            std::mem::take(&mut group).write(layer, out);
        }
        group.add(edit);
    }
    if group.key.is_some() {
        group.write(layer, out);
    }
}

/// Data of a value. What a recipe cannot express is written as bytes of another type, which the
/// comparison with the Dockerfile finds.
fn value(data: &RegistryData) -> String {
    let kind = data.kind().name().unwrap_or("binary");
    let typed = |data: String| format!("{{ type = {kind:?}, data = {data} }}");
    match data.typed() {
        TypedData::Text(value) if data.kind() == DataType::SZ => text(&value),
        TypedData::Text(value) => typed(text(&value)),
        TypedData::List(values) => list(&values),
        TypedData::Dword(number) if data.kind() == DataType::DWORD => number.to_string(),
        TypedData::Dword(number) => typed(number.to_string()),
        TypedData::Qword(number) => typed(number.to_string()),
        TypedData::Bytes(bytes) => {
            let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            typed(format!("\"{}\"", digits.join(" ")))
        }
    }
}

/// Takes the only change of PATH out of the steps, if it adds folders to the base's PATH.
pub(super) fn take_additions(
    steps: &mut [PlannedStep],
    inside: &dyn BaseContents,
) -> Option<PathAdditions> {
    // `edit` names the key that has PATH.
    let no_change = PathAdditions::default().edit(inside).ok()?;
    let RegistryEdit::SetValue { key, data, .. } = &no_change else {
        return None;
    };
    let TypedData::Text(of_base) = data.typed() else {
        return None;
    };
    let is_path = |edit: &RegistryEdit| match edit {
        RegistryEdit::SetValue { key: own, name, .. }
        | RegistryEdit::DeleteValue { key: own, name } => {
            eq_ignore_case(name, VARIABLE) && own == key
        }
        RegistryEdit::CreateKey { key: own, .. } | RegistryEdit::DeleteKey { key: own } => {
            own == key
        }
        RegistryEdit::SetSecurity { .. } => false,
    };
    let layers = steps.iter().filter_map(|step| step.layer.as_ref());
    // What a package adds is added again with it.
    let mut of_packages = layers.clone().filter(|layer| !layer.packages.is_empty());
    if of_packages.any(|layer| layer.registry.iter().any(is_path)) {
        return None;
    }
    let mut changes = layers.flat_map(|layer| layer.registry.iter().filter(|edit| is_path(edit)));
    let (Some(RegistryEdit::SetValue { data, .. }), None) = (changes.next(), changes.next()) else {
        return None;
    };
    let TypedData::Text(path) = data.typed() else {
        return None;
    };
    let additions = PathAdditions::between(&of_base, &path)?;
    for step in steps {
        let Some(layer) = &step.layer else { continue };
        let kept = layer.registry.iter().filter(|edit| !is_path(edit));
        let layer = PlannedLayer {
            registry: kept.cloned().collect(),
            ..PlannedLayer::clone(layer)
        };
        step.layer = (!layer.is_empty()).then(|| Arc::new(layer));
    }
    Some(additions)
}

/// Writes the key of a recipe.
pub(super) fn write_additions(path: &PathAdditions, out: &mut String) {
    let PathAdditions { prepend, append } = path;
    let _ = match (prepend.as_slice(), append.as_slice()) {
        (_, []) => writeln!(out, "path = {}", list(prepend)),
        ([], _) => writeln!(out, "path = {{ append = {} }}", list(append)),
        _ => {
            let (prepend, append) = (list(prepend), list(append));
            writeln!(out, "path = {{ prepend = {prepend}, append = {append} }}")
        }
    };
}
