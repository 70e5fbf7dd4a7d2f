//! Windows' comparison of key and value names: each UTF-16 code unit on its own, by a fixed table
//! of Unicode 5.1.
//!
//! The table is Unicode's simple upper case of the characters assigned then, if the lower case of
//! the result is the original (so neither `ı` nor `ſ` nor `µ` changes), and the Greek letters with
//! iota subscript. It is pinned here by exclusion, so that a newer Unicode never changes a hive's
//! bytes. It has no difference to the results of `RtlUpcaseUnicodeChar` of Windows 10 for all 65536
//! units, as recorded by yarp.

use std::cmp::Ordering;

/// Letters whose upper case was added to Unicode after the table.
const ADDED_TO_UNICODE: [(u16, u16); 23] = [
    (0x019B, 0x019B),
    (0x023F, 0x0240),
    (0x0252, 0x0252),
    (0x025C, 0x025C),
    (0x0261, 0x0261),
    (0x0264, 0x0266),
    (0x026A, 0x026A),
    (0x026C, 0x026C),
    (0x0282, 0x0282),
    (0x0287, 0x0287),
    (0x029D, 0x029E),
    (0x03F3, 0x03F3),
    (0x0525, 0x052F),
    (0x10D0, 0x10FF),
    (0x13F8, 0x13FD),
    (0x1C80, 0x1C8A),
    (0x1D8E, 0x1D8E),
    (0x2C5F, 0x2C5F),
    (0x2CEC, 0x2CF3),
    (0x2D27, 0x2D2D),
    (0xA661, 0xA661),
    (0xA699, 0xA69B),
    (0xA791, 0xABBF),
];

/// Upper case of one UTF-16 code unit in Windows' registry.
pub fn upcase(unit: u16) -> u16 {
    match unit {
        0x61..=0x7A => unit - 0x20,
        0..=0x7F => unit,
        0x1F80..=0x1F87 | 0x1F90..=0x1F97 | 0x1FA0..=0x1FA7 => unit + 8,
        0x1FB3 | 0x1FC3 | 0x1FF3 => unit + 9,
        _ if ADDED_TO_UNICODE
            .iter()
            .any(|&(first, last)| (first..=last).contains(&unit)) =>
        {
            unit
        }
        _ => simple_upper(unit).unwrap_or(unit),
    }
}

fn simple_upper(unit: u16) -> Option<u16> {
    let lower = char::from_u32(u32::from(unit))?;
    let upper = only(lower.to_uppercase())?;
    if only(upper.to_lowercase())? != lower {
        return None;
    }
    u16::try_from(u32::from(upper)).ok()
}

fn only(mut chars: impl Iterator<Item = char>) -> Option<char> {
    let first = chars.next()?;
    chars.next().is_none().then_some(first)
}

/// A name in the form in which Windows compares and sorts it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FoldedName(Box<[u16]>);

impl FoldedName {
    /// Folds a name; two names are the same to Windows when their folded forms are equal.
    pub fn new(name: &str) -> Self {
        if name.is_ascii() {
            return Self(
                name.bytes()
                    .map(|byte| u16::from(byte.to_ascii_uppercase()))
                    .collect(),
            );
        }
        Self(name.encode_utf16().map(upcase).collect())
    }

    /// The hash of an entry in a subkey list (`lh`).
    pub(crate) fn hash37(&self) -> u32 {
        self.0.iter().fold(0, |hash: u32, &unit| {
            hash.wrapping_mul(37).wrapping_add(u32::from(unit))
        })
    }
}

/// Compares two names as Windows does.
pub fn compare(left: &str, right: &str) -> Ordering {
    left.encode_utf16()
        .map(upcase)
        .cmp(right.encode_utf16().map(upcase))
}

/// Returns true if two names are the same on Windows.
pub fn eq_ignore_case(left: &str, right: &str) -> bool {
    compare(left, right).is_eq()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_size_of_the_one_that_windows_writes_into_its_volumes() {
        let mapped = (0..=u16::MAX).filter(|&unit| upcase(unit) != unit).count();
        assert_eq!(mapped, 973);
    }

    #[test]
    fn the_table_does_not_move_with_the_unicode_of_the_compiler() {
        let sum = (0..=u16::MAX).fold(0_u32, |sum, unit| {
            sum.wrapping_mul(31).wrapping_add(u32::from(upcase(unit)))
        });
        assert_eq!(sum, 0xB33F_D1D6);
    }

    #[test]
    fn letters_change_one_by_one_and_never_in_number() {
        for (lower, upper) in [
            ("a", "A"),
            ("ä", "Ä"),
            ("ÿ", "Ÿ"),
            ("я", "Я"),
            ("σ", "Σ"),
            ("ᾳ", "ᾼ"),
            ("ⓐ", "Ⓐ"),
        ] {
            assert!(eq_ignore_case(lower, upper), "{lower} {upper}");
        }
        for (left, right) in [("ß", "SS"), ("ı", "I"), ("µ", "Μ"), ("ს", "Ს"), ("𐐨", "𐐀")]
        {
            assert!(!eq_ignore_case(left, right), "{left} {right}");
        }
    }

    #[test]
    fn names_sort_by_code_unit_so_that_an_underscore_comes_after_z() {
        assert_eq!(compare("z", "_"), Ordering::Less);
        assert_eq!(compare("abc", "ABD"), Ordering::Less);
        assert_eq!(FoldedName::new("zebra"), FoldedName::new("ZEBRA"));
    }

    #[test]
    fn the_hash_is_the_one_next_to_the_name_in_a_real_hive() {
        assert_eq!(FoldedName::new("Parameters").hash37(), 0x6E7F_EA98);
    }
}
