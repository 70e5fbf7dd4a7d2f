//! Sorted maps whose keys are places in a tree.

use std::collections::BTreeMap;

/// Removes what is within a place, and returns it. The order of the map has it next to that place, so
/// that nothing else is looked at.
///
/// ```
/// use std::collections::BTreeMap;
///
/// use wincimg_common::sorted::remove_within;
///
/// let mut map = BTreeMap::from([(vec!["a"], 1), (vec!["a", "b"], 2), (vec!["ab"], 3)]);
/// let place = vec!["a"];
/// assert_eq!(remove_within(&mut map, &place, |key| key.starts_with(&place)), [1, 2]);
/// assert_eq!(map, BTreeMap::from([(vec!["ab"], 3)]));
/// ```
pub fn remove_within<K: Ord + Clone, V>(
    map: &mut BTreeMap<K, V>,
    place: &K,
    is_within: impl Fn(&K) -> bool,
) -> Vec<V> {
    let within = map.range::<K, _>(place..).map(|(key, _)| key);
    let within: Vec<K> = within.take_while(|key| is_within(key)).cloned().collect();
    within.iter().filter_map(|key| map.remove(key)).collect()
}
