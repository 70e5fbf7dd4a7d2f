//! Programs that share a repository: `8.0` of `dotnet/aspnet`.
//!
//! The flavour is the part of a tag before the one about Windows.

use std::cmp::Ordering;
use std::fmt;

/// The words of a tag before the part about Windows, such as `21-jdk`, and the edition that follows
/// them, such as `nanoserver`; versions are in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BaseFlavour {
    pub(super) words: Vec<String>,
    pub(super) edition: Option<String>,
}

impl BaseFlavour {
    /// Returns true if it starts with these words; the edition counts as the last.
    pub(super) fn begins_with(&self, words: &[String]) -> bool {
        let mut own = self.words.iter().chain(&self.edition);
        words
            .iter()
            .all(|word| own.next().is_some_and(|own| own.eq_ignore_ascii_case(word)))
    }

    fn versions(&self) -> impl Iterator<Item = Vec<Option<u32>>> {
        let words = self.words.iter();
        words.map(|word| word.split('.').map(|part| part.parse().ok()).collect())
    }
}

impl Ord for BaseFlavour {
    fn cmp(&self, other: &Self) -> Ordering {
        let by_version = self.versions().cmp(other.versions());
        by_version
            .then_with(|| self.words.cmp(&other.words))
            .then_with(|| self.edition.cmp(&other.edition))
    }
}

impl PartialOrd for BaseFlavour {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for BaseFlavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words.join("-"))
    }
}
