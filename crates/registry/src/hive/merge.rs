//! The registry of a container: a base hive merged with the deltas of its layers.

use std::collections::BTreeMap;

use super::{Key, LayerSemantics, Semantics, Value, ValueContent};

/// Merges the delta hives over the base, the lowest layer first, to keys without deletion marks,
/// each with its topmost descriptor, class and data.
///
/// Without a base it has the additions of the layers alone. A key keeps the spelling of the lowest
/// layer. The result is empty if the last hive deletes its own root, which no hive of Windows does.
pub fn merge<'h>(
    base: Option<Key<'h>>,
    deltas: impl IntoIterator<Item = Key<'h>>,
) -> Option<Key<'h>> {
    let mut hives = base.into_iter().chain(deltas).skip_while(is_mark);
    let lowest = alone(hives.next()?);
    without_marks(hives.fold(lowest, combine_keys))
}

/// Combines delta hives, the lowest layer first, to one with the effect of all of them on any base.
/// Deletion marks stay as long as something below may have what they delete.
pub fn combine<'h>(deltas: impl IntoIterator<Item = Key<'h>>) -> Option<Key<'h>> {
    deltas.into_iter().reduce(combine_keys)
}

fn combine_keys<'h>(mut below: Key<'h>, mut above: Key<'h>) -> Key<'h> {
    let over = above.layer.semantics;
    if over == Semantics::Tombstone {
        return above;
    }
    if is_mark(&below) || over == Semantics::SupersedeTree {
        return alone(above);
    }
    if over == Semantics::SupersedeLocal {
        below.values.clear();
        if below.layer.semantics != Semantics::SupersedeTree {
            below.layer.semantics = Semantics::SupersedeLocal;
        }
    }
    if over == Semantics::SupersedeLocal || !above.layer.inherit_class {
        below.class = above.class.take();
        below.layer.inherit_class = false;
    }
    below.security = above.security;
    below.timestamp = below.timestamp.max(above.timestamp);
    let hides_values = below.layer.semantics != Semantics::Merge;
    replace_values(&mut below.values, above.values);
    if hides_values {
        below.values.retain(|value| !is_deleted(value));
    }
    let is_new = below.layer.semantics == Semantics::SupersedeTree;
    merge_children(
        &mut below.subkeys,
        above.subkeys,
        |lower, key| match lower {
            Some(lower) => Some(combine_keys(lower, key)).filter(|key| !is_new || !is_mark(key)),
            None if is_new => (!is_mark(&key)).then(|| alone(key)),
            None => Some(key),
        },
    );
    below
}

/// A key that hides everything below, without the marks that then have no effect.
fn alone(mut key: Key<'_>) -> Key<'_> {
    key.layer.semantics = Semantics::SupersedeTree;
    key.layer.inherit_class = false;
    key.values.retain(|value| !is_deleted(value));
    key.subkeys.retain(|subkey| !is_mark(subkey));
    key.subkeys = key.subkeys.into_iter().map(alone).collect();
    key
}

fn is_mark(key: &Key<'_>) -> bool {
    key.layer.semantics == Semantics::Tombstone
}

fn is_deleted(value: &Value<'_>) -> bool {
    value.content == ValueContent::Tombstone
}

/// Replaces the values of the same names, and adds the others.
fn replace_values<'h>(below: &mut Vec<Value<'h>>, above: Vec<Value<'h>>) {
    if above.is_empty() {
        return;
    }
    let mut places: BTreeMap<_, _> = (0..)
        .zip(below.iter())
        .map(|(place, value)| (value.folded(), place))
        .collect();
    for value in above {
        if let Some(&place) = places.get(&value.folded()) {
            if is_deleted(&below[place]) {
                below[place].name = value.name;
            }
            below[place].content = value.content;
        } else {
            places.insert(value.folded(), below.len());
            below.push(value);
        }
    }
}

fn merge_children<'h>(
    below: &mut Vec<Key<'h>>,
    above: Vec<Key<'h>>,
    mut merged: impl FnMut(Option<Key<'h>>, Key<'h>) -> Option<Key<'h>>,
) {
    if above.is_empty() {
        return;
    }
    let mut keys: BTreeMap<_, _> = below.drain(..).map(|key| (key.folded(), key)).collect();
    for key in above {
        let name = key.folded();
        if let Some(result) = merged(keys.remove(&name), key) {
            keys.insert(name, result);
        }
    }
    below.extend(keys.into_values());
}

/// A key that hides everything below, without layer semantics; none if it is a mark itself.
fn without_marks(mut key: Key<'_>) -> Option<Key<'_>> {
    if is_mark(&key) {
        return None;
    }
    key.layer = LayerSemantics::default();
    let subkeys = key.subkeys.into_iter();
    key.subkeys = subkeys.filter_map(without_marks).collect();
    Some(key)
}
