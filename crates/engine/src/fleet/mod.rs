//! A fleet of images: a file that lists them, and what brings each to every Windows build among its
//! nodes.
//!
//! [`Fleet::read`] reads the file. [`bring`] asks once what bases and what tags there are, says what is
//! missing, and in [`Mode::Build`] makes that and nothing else; it may be called again and again. A
//! [`Shard`] is what of a fleet belongs to one of several that work on it.

mod bring;
mod file;
pub mod follow;
mod report;
mod shard;
mod standing;
mod update;

pub use bring::{Mode, Run, bring};
pub use file::schema;
pub use report::{BuildReport, ImageReport, Report, State, Trouble};
pub use shard::{INDEX_VARIABLE, Shard};
use wincimg_cluster::selector::LabelSelector;
use wincimg_inspect::bases::{BaseRegistry, Match};
use wincimg_layer::Compression;
use wincimg_oci::document::Flavour;
use wincimg_oci::prefix::RegistryPrefix;
use wincimg_oci::reference::Reference;

use crate::design::Named;

/// Images that are to be there for the nodes that there are.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// The file that lists them.
    pub file: String,
    /// The images, in its order.
    pub entries: Vec<Entry>,
}

/// One image of a fleet.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Where it stands in the file.
    pub line: usize,
    /// What it is made from, as it stands there.
    pub from: String,
    /// The same, with all that is said besides.
    pub work: Work,
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
    pub matched: Match,
    /// Labels that it gets.
    pub labels: Vec<(String, String)>,
    /// How its layers are compressed.
    pub compression: Compression,
    /// The words of its manifests; the base's without one.
    pub flavour: Option<Flavour>,
}

/// How an image is made.
#[derive(Debug, Clone)]
pub enum Work {
    /// It is built.
    Build(Named),
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

impl Entry {
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
