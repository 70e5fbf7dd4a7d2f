//! A machine's PATH that a line sets, as folders that the recipe adds to the base's.

use std::fmt::Write as _;
use std::sync::Arc;

use wincimg_recipe::{PlannedLayer, PlannedStep};
use wincimg_registry::name_folding::eq_ignore_case;
use wincimg_registry::{RegistryEdit, TypedData};
use wincimg_windows::base_contents::BaseContents;
use wincimg_windows::search_path::{PathAdditions, VARIABLE};

use super::toml::list;

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
pub(super) fn write(path: &PathAdditions, out: &mut String) {
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
