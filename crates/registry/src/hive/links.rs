//! Resolution of the base's links in edits.
//!
//! A program that opens a link reaches its target, and so does `reg import`. A delta does not
//! follow links: a plain key over a link hides the link. So an edit must name the target.

use std::collections::HashMap;

use super::WriteError;
use crate::base::{BaseKey, BaseKeys, Presence};
use crate::name_folding::eq_ignore_case;
use crate::{DataType, KeyPath, RegistryData, RegistryEdit};

/// Maximum number of links on a path, at least that of the kernel.
const MOST_LINKS: usize = 32;

pub(super) fn resolve_links(
    edits: &[RegistryEdit],
    inside: &dyn BaseKeys,
) -> Result<Vec<RegistryEdit>, WriteError> {
    let mut known: HashMap<&KeyPath, KeyPath> = HashMap::new();
    let mut followed = Vec::with_capacity(edits.len());
    for edit in edits {
        let reached = match known.get(edit.key()) {
            Some(reached) => reached.clone(),
            None => follow_links(edit.key(), inside)?,
        };
        let mut edit_there = edit.clone();
        edit_there.key_mut().clone_from(&reached);
        known.insert(edit.key(), reached);
        followed.push(edit_there);
    }
    Ok(followed)
}

/// The key that a program reaches by a path through links of the base.
pub fn follow_links(key: &KeyPath, inside: &dyn BaseKeys) -> Result<KeyPath, WriteError> {
    let refused = |problem: &str| {
        WriteError::Refused(format!(
            "cannot resolve a link of the base in {key}: {problem}"
        ))
    };
    let mut reached = key.clone();
    for _ in 0..=MOST_LINKS {
        let Some((link, depth)) = first_link(&reached, inside)? else {
            return Ok(reached);
        };
        let mut target = link
            .link
            .ok_or_else(|| refused("it refers to a key that no layer can change"))?;
        for name in &reached.components()[depth..] {
            target
                .push(name)
                .map_err(|_| refused("the path is too deep"))?;
        }
        reached = target;
    }
    Err(refused("the path has more than 32 links"))
}

/// The first link on a path, and its depth.
fn first_link(
    path: &KeyPath,
    inside: &dyn BaseKeys,
) -> Result<Option<(BaseKey, usize)>, WriteError> {
    let mut above = KeyPath::root_of(path.root());
    for (place, name) in path.components().iter().enumerate() {
        if above.push(name).is_err() {
            break;
        }
        match inside.key(&above)? {
            Presence::Present(key) if is_link(&key) => return Ok(Some((key, place + 1))),
            Presence::Present(_) => {}
            Presence::Absent | Presence::Unknown => break,
        }
    }
    Ok(None)
}

fn is_link(key: &BaseKey) -> bool {
    let is_target = |(name, data): &(String, RegistryData)| {
        data.kind() == DataType::LINK && eq_ignore_case(name, "SymbolicLinkValue")
    };
    key.link.is_some() || key.values.iter().any(is_target)
}
