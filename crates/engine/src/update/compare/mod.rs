//! Whether an image's own layers mean the same on another base.
//!
//! A layer that only adds what neither base has is safe. Where it touches what a base has, both bases
//! are compared at that place: what is the same in both was not changed by servicing, so the layer
//! hides nothing of it. A folder that a layer repeats is no change of what is in it, but its rights
//! go over those of the base's; so they must not differ between the bases, unless the layer's are the
//! new base's.

mod files;
mod independent;
mod keys;

use std::collections::BTreeSet;

pub(super) use independent::is_independent;
use wincimg_inspect::base::{BaseFacts, BaseHive, FactsError};
use wincimg_inspect::layer_diff::LayerDiff;

use super::conflict::Conflict;

/// The most that is told of one layer.
const MOST: usize = 100;

/// Something at a place.
pub(super) type FoundConflict = (String, Conflict);

/// Two bases, of which everything is known that is asked.
pub(super) struct Comparison<'f> {
    old: &'f BaseFacts,
    new: &'f BaseFacts,
    files: files::FileState,
    keys: keys::KeyState,
}

impl<'f> Comparison<'f> {
    /// Of the base that an image is on, and the one that it is to be put on.
    pub(super) fn new(old: &'f BaseFacts, new: &'f BaseFacts) -> Self {
        Self {
            old,
            new,
            files: files::FileState::default(),
            keys: keys::KeyState::default(),
        }
    }

    /// What is in the way of the next layer of the image, which lies over those before.
    pub(super) fn layer(&mut self, touched: &LayerDiff) -> Result<Vec<FoundConflict>, FactsError> {
        let mut found = incomparable(touched);
        let mut unknown: BTreeSet<&str> = BTreeSet::new();
        let bases = [self.old, self.new];
        if !touched.files.is_empty() {
            if bases.iter().all(|base| base.has_files()) {
                self.files(touched, &mut found)?;
            } else {
                unknown.insert("files");
            }
        }
        for hive in BaseHive::ALL {
            if !touched.keys.iter().any(|key| key.hive == hive) {
                continue;
            }
            if bases.iter().all(|base| base.has_hive(hive)) {
                self.keys(hive, touched, &mut found)?;
            } else {
                unknown.insert(hive.short_name());
            }
        }
        let unknown = unknown.into_iter().map(|what| {
            let conflict = Conflict::NotKnown("it could not be read in both bases".to_owned());
            (what.to_owned(), conflict)
        });
        found.extend(unknown);
        Ok(found)
    }
}

/// What nobody can compare.
pub(super) fn incomparable(touched: &LayerDiff) -> Vec<FoundConflict> {
    let strange = touched.strange.iter();
    let found = strange.map(|it| (it.place.clone(), Conflict::Strange(it.what.clone())));
    found.collect()
}
