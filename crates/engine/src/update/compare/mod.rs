//! Compares what an image's own layers touch in both bases.
//!
//! A layer that only adds what neither base has is safe. If it touches content of a base, both
//! bases are compared there: content that is the same in both was not changed by servicing, so the
//! layer hides no change. A copy of a file of the base, wherever it is, must be one of a file that is
//! the same in both: a build copies the new one. A folder that a layer repeats does not change its content, but its rights
//! replace those of the base; so they must be the same in both bases, or the layer's must be the
//! new base's.

mod copies;
mod files;
mod independent;
mod keys;

use std::collections::{BTreeSet, HashMap, HashSet};

pub(super) use independent::is_independent;
use wincimg_inspect::base::{BaseFacts, BaseHive, FactsError};
use wincimg_inspect::layer_diff::LayerDiff;

use super::conflict::Conflict;

/// Maximum number of conflicts to report for a layer.
const MAX_CONFLICTS: usize = 100;

/// A path or key, and its conflict.
pub(super) type FoundConflict = (String, Conflict);

/// Comparison of two bases with all required contents known.
pub(super) struct Comparison<'f> {
    old: &'f BaseFacts,
    new: &'f BaseFacts,
    /// Folders and files of the image's own layers so far.
    own: HashSet<String>,
    folders: HashMap<String, files::ParentState>,
    copies: copies::BaseCopies,
    /// Keys of layers that hide those below.
    hidden: HashMap<BaseHive, Vec<Vec<String>>>,
}

impl<'f> Comparison<'f> {
    /// Compares the image's current base with the new one, for the image's own layers.
    pub(super) fn new<'l>(
        old: &'f BaseFacts,
        new: &'f BaseFacts,
        own: impl Iterator<Item = &'l LayerDiff>,
    ) -> Result<Self, FactsError> {
        Ok(Self {
            old,
            new,
            own: HashSet::new(),
            folders: HashMap::new(),
            copies: copies::BaseCopies::find(old, new, own)?,
            hidden: HashMap::new(),
        })
    }

    /// Conflicts of the next layer of the image, above those before.
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
            let conflict = Conflict::NotKnown("it cannot be read in both bases".to_owned());
            (what.to_owned(), conflict)
        });
        found.extend(unknown);
        Ok(found)
    }
}

/// Content that cannot be compared.
pub(super) fn incomparable(touched: &LayerDiff) -> Vec<FoundConflict> {
    let strange = touched.strange.iter();
    let found = strange.map(|it| (it.place.clone(), Conflict::Strange(it.what.clone())));
    found.collect()
}
