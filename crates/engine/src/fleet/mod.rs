//! Fleets of images: a file that lists them, and their builds for every Windows build among the
//! nodes.
//!
//! [`Fleet::read`] reads the file. [`sync`](sync()) queries bases and tags once, reports what is
//! missing, and in [`SyncMode::Build`] builds only that; it can be called again at any time. A
//! [`Shard`] is the part of a fleet that one of several workers handles.

mod file;
pub mod follow;
mod prepull;
mod report;
mod shard;
mod sync;
mod tag_contents;
mod update;

use std::collections::{BTreeMap, HashMap};

pub use file::schema;
pub use prepull::{ExcludedImage, FleetPrepull, PrepullProblem, prepull};
pub use report::{BuildReport, FleetImageState, FleetReport, ImageReport, ReportedError};
pub use shard::{INDEX_VARIABLE, Shard};
pub use sync::{DedupReporter, SyncMode, SyncOptions, sync};
use wincimg_cluster::selector::LabelSelector;
use wincimg_inspect::bases::{BaseMatch, BaseRegistry};
use wincimg_layer::Compression;
use wincimg_oci::document::ManifestFormat;
use wincimg_oci::prefix::RegistryPrefix;
use wincimg_oci::reference::Reference;

use crate::definition::BuildInput;

/// Images required by the existing nodes.
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
    /// Its line in the file.
    pub line: usize,
    /// Its source, as written in the file.
    pub from: String,
    /// The source with all its options.
    pub work: EntrySource,
    /// Registry to push to.
    pub registry: RegistryPrefix,
    /// Its name; none if only the definition has it and that cannot be read.
    pub name: Option<String>,
    /// Tag of its index.
    pub tag: String,
    /// Label selector of its nodes; all nodes without one.
    pub selector: Option<LabelSelector>,
    /// Registry of its base, if the file sets one.
    pub base_registry: Option<BaseRegistry>,
    /// Required match of its base with the hosts.
    pub matched: BaseMatch,
    /// Labels to add.
    pub labels: Vec<(String, String)>,
    /// Compression of its layers.
    pub compression: Compression,
    /// Format of its manifests. Without one, OCI, and for an updated image its own.
    pub manifest_format: Option<ManifestFormat>,
    /// Labels of the entries that it is built on or copies files from.
    pub below: Vec<String>,
    /// Those it is made of have lower ones.
    pub level: usize,
}

/// Source of an image.
#[derive(Debug, Clone)]
pub enum EntrySource {
    /// Built.
    Build(BuildInput),
    /// Rebased without its sources.
    Update {
        /// The current image.
        image: Reference,
        /// Its base, if the file sets one.
        base: Option<String>,
    },
}

impl Fleet {
    /// Changes the input of each image that is built from a Dockerfile.
    pub fn for_each_dockerfile(&mut self, change: impl Fn(&mut BuildInput)) {
        for entry in &mut self.entries {
            if let EntrySource::Build(input) = &mut entry.work
                && input.is_dockerfile()
            {
                change(input);
            }
        }
    }

    /// The part of the fleet in a shard: an image is in that of the one below it.
    #[must_use]
    pub fn part(mut self, shard: Shard) -> Self {
        let labels: Vec<String> = self.entries.iter().map(FleetEntry::label).collect();
        let places: HashMap<&String, usize> = labels.iter().zip(0..).collect();
        let place_below = |place: usize| places.get(self.entries[place].below.first()?).copied();
        let is_in_shard = (0..labels.len()).map(|mut lowest| {
            while let Some(below) = place_below(lowest) {
                lowest = below;
            }
            shard.has(&labels[lowest])
        });
        let mut is_in_shard = is_in_shard.collect::<Vec<bool>>().into_iter();
        self.entries
            .retain(|_| is_in_shard.next().unwrap_or_default());
        self
    }

    /// Places of the images in the order of their builds, by level.
    fn levels(&self) -> impl Iterator<Item = Vec<usize>> {
        let mut levels: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, entry) in self.entries.iter().enumerate() {
            levels.entry(entry.level).or_default().push(place);
        }
        levels.into_values()
    }
}

impl FleetEntry {
    /// The words of a command for its options, beside its names.
    fn option_words(&self, default_registry: &BaseRegistry) -> Vec<String> {
        let Self {
            line: _,
            from: _,
            work: _,
            registry: _,
            name: _,
            tag: _,
            selector: _,
            base_registry,
            matched,
            labels,
            compression,
            manifest_format,
            below: _,
            level: _,
        } = self;
        let base_registry = base_registry.as_ref().unwrap_or(default_registry);
        let mut flags = vec![("--base-registry", base_registry.to_string())];
        if *matched == BaseMatch::Exact {
            flags.push(("--match", "exact".to_owned()));
        }
        let labels = labels.iter();
        flags.extend(labels.map(|(key, value)| ("--label", format!("{key}={value}"))));
        if *compression == Compression::Zstd {
            flags.push(("--compression", "zstd".to_owned()));
        }
        let format = manifest_format.map(|format| match format {
            ManifestFormat::Docker => "docker",
            ManifestFormat::Oci => "oci",
        });
        flags.extend(format.map(|format| ("--manifest-format", format.to_owned())));
        let words = flags.into_iter();
        words
            .flat_map(|(flag, value)| [flag.to_owned(), value])
            .collect()
    }

    /// Reference of its index.
    pub fn reference(&self) -> Option<Reference> {
        let name = self.name.as_ref()?;
        self.registry.join(&format!("{name}:{}", self.tag)).ok()
    }

    /// Label of the entry: its reference, or its source if the name cannot be read.
    pub fn label(&self) -> String {
        let reference = self.reference();
        reference.map_or_else(|| self.from.clone(), |reference| reference.to_string())
    }
}
