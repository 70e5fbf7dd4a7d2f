//! A fleet of images: a file that lists them, and what brings each to every Windows build among its
//! nodes.
//!
//! [`Fleet::read`] reads the file. [`sync`](sync()) asks once which bases and tags exist, reports what is
//! missing, and in [`SyncMode::Build`] builds only that; it can be called again at any time. A
//! [`Shard`] is what of a fleet belongs to one of several that work on it.

mod file;
pub mod follow;
mod report;
mod shard;
mod sync;
mod tag_contents;
mod update;

pub use file::schema;
pub use report::{BuildReport, FleetImageState, FleetReport, ImageReport, ReportedError};
pub use shard::{INDEX_VARIABLE, Shard};
pub use sync::{SyncMode, SyncOptions, sync};
use wincimg_cluster::selector::LabelSelector;
use wincimg_inspect::bases::{BaseMatch, BaseRegistry};
use wincimg_layer::Compression;
use wincimg_oci::document::ManifestFormat;
use wincimg_oci::prefix::RegistryPrefix;
use wincimg_oci::reference::Reference;

use crate::definition::BuildInput;

/// Images that are to be there for the nodes that there are.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// The file that lists them.
    pub file: String,
    /// The images, in its order.
    pub entries: Vec<FleetEntry>,
}

/// One image of a fleet.
#[derive(Debug, Clone)]
pub struct FleetEntry {
    /// Where it stands in the file.
    pub line: usize,
    /// What it is made from, as it stands there.
    pub from: String,
    /// The same, with all that is said besides.
    pub work: EntrySource,
    /// Where it is pushed to.
    pub registry: RegistryPrefix,
    /// Its name; none where only what is built has it, and that cannot be read.
    pub name: Option<String>,
    /// The tag of its index.
    pub tag: String,
    /// Which nodes it is for; all without one.
    pub selector: Option<LabelSelector>,
    /// Where its base comes from, where the file says so.
    pub base_registry: Option<BaseRegistry>,
    /// How close that has to be to the hosts.
    pub matched: BaseMatch,
    /// Labels that it gets.
    pub labels: Vec<(String, String)>,
    /// How its layers are compressed.
    pub compression: Compression,
    /// The words of its manifests; the base's without one.
    pub flavour: Option<ManifestFormat>,
}

/// How an image is made.
#[derive(Debug, Clone)]
pub enum EntrySource {
    /// It is built.
    Build(BuildInput),
    /// It is put on another base, without its sources.
    Update {
        /// What it is now.
        image: Reference,
        /// What it was built on, where the file says so.
        base: Option<String>,
    },
}

impl Fleet {
    /// The part that belongs to one of several.
    #[must_use]
    pub fn part(mut self, shard: Shard) -> Self {
        self.entries.retain(|entry| shard.has(&entry.label()));
        self
    }
}

impl FleetEntry {
    /// The tag of its index.
    pub fn reference(&self) -> Option<Reference> {
        let name = self.name.as_ref()?;
        self.registry.join(&format!("{name}:{}", self.tag)).ok()
    }

    /// What it is called: by its tag, or what it is made from where nobody can read that.
    pub fn label(&self) -> String {
        let reference = self.reference();
        reference.map_or_else(|| self.from.clone(), |reference| reference.to_string())
    }
}
