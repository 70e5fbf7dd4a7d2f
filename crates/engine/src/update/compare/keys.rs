//! Compares keys and values of a layer's delta hives with both bases.

use wincimg_inspect::base::{BaseHive, BaseKeyPath, FactsError};
use wincimg_inspect::layer_diff::{ContentHash, KeyDiff, KeyEffect, LayerDiff};
use wincimg_registry::name_folding::eq_ignore_case;
use wincimg_registry::{BaseKey, Presence};

use super::{Comparison, FoundConflict, MAX_CONFLICTS};
use crate::update::conflict::Conflict;

/// Keys that only servicing writes.
const SERVICED: [(BaseHive, &[&str]); 3] = [
    (
        BaseHive::Software,
        &[
            "Microsoft",
            "Windows",
            "CurrentVersion",
            "Component Based Servicing",
        ],
    ),
    (
        BaseHive::Software,
        &["Microsoft", "Windows", "CurrentVersion", "SideBySide"],
    ),
    (
        BaseHive::Software,
        &["Microsoft", "Windows", "CurrentVersion", "SMI"],
    ),
];

impl Comparison<'_> {
    pub(super) fn keys(
        &mut self,
        hive: BaseHive,
        touched: &LayerDiff,
        found: &mut Vec<FoundConflict>,
    ) -> Result<(), FactsError> {
        for key in touched.keys.iter().filter(|key| key.hive == hive) {
            if found.len() >= MAX_CONFLICTS {
                break;
            }
            let path = BaseKeyPath {
                hive,
                components: key.components.clone(),
            };
            if let Some(conflict) = self.key(&path, key)? {
                found.push((path.to_string(), conflict));
            }
        }
        Ok(())
    }

    fn key(&mut self, path: &BaseKeyPath, key: &KeyDiff) -> Result<Option<Conflict>, FactsError> {
        let is_serviced = |(hive, names): &(BaseHive, &[&str])| {
            *hive == path.hive && begins(&path.components, names)
        };
        let says_something = !key.values.is_empty() || key.over != KeyEffect::Merges;
        if says_something && SERVICED.iter().any(is_serviced) {
            return Ok(Some(Conflict::Servicing));
        }
        // A key that hides the one below was compared with all of it; its content is the image's
        // own.
        let hidden = self.hidden.entry(path.hive).or_default();
        let is_hidden = |top: &Vec<String>| begins(&path.components, top);
        if hidden.iter().any(is_hidden) {
            return Ok(None);
        }
        if matches!(key.over, KeyEffect::Hides | KeyEffect::Deletes) {
            hidden.push(path.components.clone());
            return self.keys_below(path);
        }
        let (old, new) = (self.old.key_at(path)?, self.new.key_at(path)?);
        let (old, new) = match (old, new) {
            (Presence::Absent, Presence::Absent) => return Ok(None),
            (Presence::Unknown, _) | (_, Presence::Unknown) => {
                let what = "it cannot be read in both bases".to_owned();
                return Ok(Some(Conflict::NotKnown(what)));
            }
            (old, new) => (old.present(), new.present()),
        };
        let is_only_passed = !says_something;
        Ok(match (&old, &new) {
            (Some(_), None) if is_only_passed => None,
            (Some(_), None) => Some(Conflict::Gone),
            (_, Some(new)) => {
                let of = |key: &BaseKey| ContentHash::from_descriptor(&key.security);
                let is_same = old.as_ref().is_some_and(|old| of(old) == of(new));
                if key.over == KeyEffect::HidesValues {
                    let old: &[_] = old.as_ref().map_or(&[], |old| &old.values);
                    if let Some(name) = first_difference(old, &new.values) {
                        return Ok(Some(Conflict::Value(name)));
                    }
                }
                if let Some(name) = value(key, old.as_ref(), new) {
                    Some(Conflict::Value(name))
                } else if !is_same && of(new) != key.rights && !path.components.is_empty() {
                    Some(Conflict::Rights)
                } else {
                    None
                }
            }
            (None, None) => None,
        })
    }

    /// The first difference between the bases at a key and below it.
    fn keys_below(&self, path: &BaseKeyPath) -> Result<Option<Conflict>, FactsError> {
        match (self.old.key_at(path)?, self.new.key_at(path)?) {
            (Presence::Absent, Presence::Absent) => return Ok(None),
            (Presence::Present(_), Presence::Absent) => return Ok(Some(Conflict::Gone)),
            (Presence::Absent, Presence::Present(_)) => return Ok(Some(Conflict::Came)),
            _ => {}
        }
        let mut old = self.old.keys_below(path)?;
        let mut new = self.new.keys_below(path)?;
        loop {
            let (old, new) = (old.next().transpose()?, new.next().transpose()?);
            match (&old, &new) {
                (None, None) => return Ok(None),
                (Some(old), Some(new))
                    if old.path.components.len() == new.path.components.len()
                        && begins(&old.path.components, &new.path.components)
                        && first_difference(&old.key.values, &new.key.values).is_none() => {}
                (Some(key), _) | (None, Some(key)) => {
                    return Ok(Some(Conflict::ChangedBelow(key.path.to_string())));
                }
            }
        }
    }
}

/// A value that the layer sets or deletes and that differs between the bases, unless the layer has
/// the new base's value.
fn value(key: &KeyDiff, old: Option<&BaseKey>, new: &BaseKey) -> Option<String> {
    let in_base = |base: &BaseKey, name: &str| {
        let mut values = base.values.iter();
        let found = values.find(|(known, _)| eq_ignore_case(known, name));
        found.map(|(_, data)| ContentHash::from_data(data))
    };
    let mut values = key.values.iter();
    let differs = |(name, data): &&(String, Option<ContentHash>)| {
        let before = old.and_then(|old| in_base(old, name));
        let now = in_base(new, name);
        before != now && *data != now
    };
    values.find(differs).map(|(name, _)| name.clone())
}

/// The name of the first value that differs.
fn first_difference<D: PartialEq>(old: &[(String, D)], new: &[(String, D)]) -> Option<String> {
    let lacks = |others: &[(String, D)], value: &(String, D)| {
        let is_it = |other: &(String, D)| eq_ignore_case(&other.0, &value.0) && other.1 == value.1;
        !others.iter().any(is_it)
    };
    let gone = old.iter().find(|value| lacks(new, value));
    let came = || new.iter().find(|value| lacks(old, value));
    gone.or_else(came).map(|(name, _)| name.clone())
}

fn begins<S: AsRef<str>>(path: &[String], top: &[S]) -> bool {
    let pairs = || path.iter().zip(top);
    path.len() >= top.len() && pairs().all(|(own, name)| eq_ignore_case(own, name.as_ref()))
}
