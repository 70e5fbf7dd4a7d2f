//! Division of a fleet among several workers. The hash of an image's name decides, so that each
//! keeps its images whatever is added or removed, and no two ever write to one tag.

use std::fmt;
use std::str::FromStr;

use wincimg_common::digest::sha256;

/// The variable with the index of a pod of a Kubernetes Indexed Job.
pub const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// One part of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    index: u32,
    of: u32,
}

/// A text that is not a shard.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid shard {0:?}: expected I/N with I from 0 to N-1, as {INDEX_VARIABLE} counts: 0/8 to 7/8"
)]
pub struct ShardError(String);

impl Shard {
    /// The shard with this index, counted from 0, of this number of shards.
    pub fn new(index: u32, of: u32) -> Result<Self, ShardError> {
        let shard = Self { index, of };
        if index < of {
            Ok(shard)
        } else {
            Err(ShardError(shard.to_string()))
        }
    }

    /// Returns true if the name belongs to the shard.
    pub fn has(self, name: &str) -> bool {
        let hash = sha256(name.as_bytes());
        u64::from_str_radix(&hash.digest()[..16], 16)
            .is_ok_and(|start| start % u64::from(self.of) == u64::from(self.index))
    }
}

impl FromStr for Shard {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let shard = text.split_once('/').and_then(|(index, of)| {
            let (index, of) = (index.parse().ok()?, of.parse().ok()?);
            Self::new(index, of).ok()
        });
        shard.ok_or_else(|| ShardError(text.to_owned()))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_name_is_in_exactly_one_shard(name in ".{0,80}", of in 1_u32..64) {
            let owners = (0..of).filter(|index| Shard::new(*index, of).unwrap().has(&name));
            prop_assert_eq!(owners.count(), 1);
        }

        #[test]
        fn what_is_written_is_read_again(of in 1_u32..1000, index in 0_u32..1000) {
            let text = format!("{index}/{of}");
            match text.parse::<Shard>() {
                Ok(shard) => prop_assert_eq!(shard.to_string(), text),
                Err(_) => prop_assert!(index >= of),
            }
        }
    }

    #[test]
    fn names_keep_their_shards_between_releases() {
        let shard = |name: &str| (0..8).find(|index| Shard::new(*index, 8).unwrap().has(name));
        assert_eq!(shard("repo.lan/apps/web:1.4"), Some(WEB));
        assert_eq!(shard("repo.lan/apps/shop:2"), Some(SHOP));
    }

    /// By `printf %s NAME | sha256sum`.
    const WEB: u32 = 4;
    const SHOP: u32 = 7;

    #[test]
    fn thousands_are_spread_evenly() {
        for index in 0..8 {
            let shard = Shard::new(index, 8).unwrap();
            let own = (0..1000).filter(|number| shard.has(&format!("repo.lan/app-{number}:1")));
            let count = own.count();
            assert!((90..160).contains(&count), "{index}: {count}");
        }
    }

    #[test]
    fn what_is_not_a_part_is_refused_with_the_way_to_count() {
        for text in ["", "8/8", "1", "/", "a/b", "-1/4", "0/0", "1/2/3", " 0/2"] {
            let error = text.parse::<Shard>().unwrap_err().to_string();
            let expected = format!("invalid shard {text:?}");
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}
