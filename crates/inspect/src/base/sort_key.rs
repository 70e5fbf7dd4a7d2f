//! Sort keys of the tables: names folded as Windows compares them, each after a byte that is lower
//! than any other. So everything below a path follows it without a gap.

use wincimg_registry::name_folding::upcase;
use wincimg_windows::path::ImagePath;

use super::hives::{BaseHive, BaseKeyPath};

const SEPARATOR: u8 = 0;
/// Precedes a second byte for the two that would not sort right.
const ESCAPE: u8 = 1;

pub(crate) fn push(key: &mut Vec<u8>, name: &str) {
    key.push(SEPARATOR);
    for character in name.chars() {
        let upper = match u16::try_from(u32::from(character)) {
            Ok(unit) => char::from_u32(u32::from(upcase(unit))).unwrap_or(character),
            Err(_) => character,
        };
        match upper {
            '\0' => key.extend([ESCAPE, 1]),
            '\u{1}' => key.extend([ESCAPE, 2]),
            _ => key.extend(upper.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
}

pub(super) fn for_hive(hive: BaseHive) -> Vec<u8> {
    // The first byte identifies the hive; it separates no names.
    vec![hive as u8]
}

pub(super) fn for_key(path: &BaseKeyPath) -> Vec<u8> {
    with_names(for_hive(path.hive), path.components.iter())
}

fn with_names(mut key: Vec<u8>, names: impl Iterator<Item: AsRef<str>>) -> Vec<u8> {
    for name in names {
        push(&mut key, name.as_ref());
    }
    key
}

/// Names joined by `/`, as in a layer below `Files`.
pub(crate) fn for_layer_path(path: &str) -> Vec<u8> {
    let names = path.split('/').filter(|name| !name.is_empty());
    with_names(Vec::with_capacity(path.len() + 1), names)
}

pub(super) fn for_file(path: &ImagePath) -> Vec<u8> {
    with_names(Vec::new(), path.components().iter())
}

/// Key of the first possible entry below a path.
pub(crate) fn below(key: &[u8]) -> Vec<u8> {
    [key, &[SEPARATOR]].concat()
}

/// Key after everything below a path.
pub(crate) fn behind(key: &[u8]) -> Vec<u8> {
    [key, &[SEPARATOR + 1]].concat()
}

/// Number of names in the path.
pub(crate) fn depth(key: &[u8]) -> usize {
    key.split(|&byte| byte == SEPARATOR).count() - 1
}

/// Key of the parent; none for a root.
pub(crate) fn parent(key: &[u8]) -> Option<&[u8]> {
    let end = key.iter().rposition(|&byte| byte == SEPARATOR)?;
    Some(&key[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_below_something_follows_it_without_a_gap() {
        let mut paths = ["A\u{1}", "a", "A/z/y", "a.txt", "a b/c", "a/Z", "A\0", "b"];
        paths.sort_by_key(|path| for_layer_path(path));
        let sorted = ["a", "a/Z", "A/z/y", "A\0", "A\u{1}", "a b/c", "a.txt", "b"];
        assert_eq!(paths, sorted);
        let key = for_layer_path("a");
        let within = |path: &str| (below(&key)..behind(&key)).contains(&for_layer_path(path));
        assert!(within("A/z/y") && within("a/Z"));
        assert!(!within("a") && !within("a\0") && !within("a b") && !within("b"));
    }

    #[test]
    fn names_are_the_same_as_windows_takes_them() {
        assert_eq!(for_layer_path("Ünï/x"), for_layer_path("ünÏ/X"));
        assert_ne!(for_layer_path("straße"), for_layer_path("strasse"));
        let (child, folder) = (for_layer_path("a/b"), for_layer_path("A"));
        assert_eq!(parent(&child), Some(folder.as_slice()));
        assert_eq!(parent(&for_layer_path("")), None);
    }
}
