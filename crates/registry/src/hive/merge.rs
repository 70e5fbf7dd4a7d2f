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
    deltas.into_iter().fold(
        base.and_then(without_tombstones),
        |below, above| match below {
            Some(below) => merge_key(below, above),
            None => without_tombstones(above),
        },
    )
}

/// Merges a key over the one of the same path below.
fn merge_key<'h>(mut below: Key<'h>, mut above: Key<'h>) -> Option<Key<'h>> {
    match above.layer.semantics {
        Semantics::Tombstone => return None,
        Semantics::SupersedeTree => return without_tombstones(above),
        Semantics::SupersedeLocal => {
            below.values.clear();
            below.class = above.class.take();
        }
        Semantics::Merge => {
            if !above.layer.inherit_class {
                below.class = above.class.take();
            }
        }
    }
    below.security = above.security;
    below.timestamp = below.timestamp.max(above.timestamp);
    merge_values(&mut below.values, above.values);
    merge_subkeys(&mut below.subkeys, above.subkeys);
    Some(below)
}

fn merge_values<'h>(below: &mut Vec<Value<'h>>, above: Vec<Value<'h>>) {
    if above.is_empty() {
        return;
    }
    let mut places: BTreeMap<_, _> = (0..)
        .zip(below.iter())
        .map(|(place, value)| (value.folded(), place))
        .collect();
    for value in above {
        if let Some(&place) = places.get(&value.folded()) {
            below[place].content = value.content;
        } else {
            places.insert(value.folded(), below.len());
            below.push(value);
        }
    }
    below.retain(|value| value.content != ValueContent::Tombstone);
}

fn merge_subkeys<'h>(below: &mut Vec<Key<'h>>, above: Vec<Key<'h>>) {
    if above.is_empty() {
        return;
    }
    let mut keys: BTreeMap<_, _> = below.drain(..).map(|key| (key.folded(), key)).collect();
    for key in above {
        let name = key.folded();
        let result = match keys.remove(&name) {
            Some(lower) => merge_key(lower, key),
            None => without_tombstones(key),
        };
        if let Some(result) = result {
            keys.insert(name, result);
        }
    }
    below.extend(keys.into_values());
}

/// Removes deletion marks from a key without one below.
fn without_tombstones(mut key: Key<'_>) -> Option<Key<'_>> {
    if key.layer.semantics == Semantics::Tombstone {
        return None;
    }
    key.layer = LayerSemantics::default();
    key.values
        .retain(|value| value.content != ValueContent::Tombstone);
    key.subkeys = key
        .subkeys
        .into_iter()
        .filter_map(without_tombstones)
        .collect();
    Some(key)
}
