//! Facts about bases and their sources: the cache on this machine, artifacts attached to a base in
//! its registry, and the base's layers.
//!
//! Anyone with write access to a repository can publish wrong facts about the bases in it. So facts
//! of a repository are used for that repository alone, and only if they name the base's digest.
//! Facts from layers, whose digests were checked, are used for the base in any repository.

mod cache;
mod layer_diff;
mod layers;
mod mirror;
mod remote;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fmt, io};

use bytes::Bytes;
pub use cache::{CacheNamespace, FactsCache};
pub use mirror::MirrorFactsCollector;
use serde::Serialize;
use wincimg_common::diagnose::{BoxError, Diagnose, error_chain};
use wincimg_common::lock;
use wincimg_common::progress::Progress;
use wincimg_http::{HttpError, file_error};
use wincimg_oci::document::{Digest, Image};
use wincimg_oci::remote::{RegistryClient, RegistryError};
use wincimg_oci::store::Source;
use wincimg_registry::Presence as Answer;
use wincimg_windows::base_contents::{BaseContents, BaseRequirements};
use wincimg_windows::path::ImagePath;

use super::base::{
    BaseFacts, BaseHive, BaseKeyPath, BaseProblem, CollectedLayer, Extent, FactsError, assemble,
};

/// Limit on the time that a registry may take to answer about optional facts.
const OPTIONAL_FACTS_TIMEOUT: Duration = Duration::from_secs(3);
/// Limit on the time for the download of optional facts, which are a few megabytes.
const OPTIONAL_DOWNLOAD_TIMEOUT: Duration = Duration::from_secs(15);

/// Provider of facts about bases.
#[derive(Clone)]
pub struct BaseFactsProvider {
    registry: RegistryClient,
    cache: Option<FactsCache>,
    progress: Arc<dyn Progress>,
    /// Failures that did not stop anything, each once.
    warnings: Arc<Mutex<BTreeSet<String>>>,
}

/// Source of facts about a base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FactsSource {
    /// The cache on this machine.
    Cache,
    /// An artifact attached to the base in this repository.
    Repository(#[serde(skip_serializing)] String),
    /// The layers.
    Layers,
    /// No facts.
    Nowhere,
}

impl fmt::Display for FactsSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cache => f.write_str("from the cache"),
            Self::Repository(name) => write!(f, "from {name}"),
            Self::Layers => f.write_str("from the base's layers"),
            Self::Nowhere => {
                f.write_str("unknown: security descriptors follow Windows' documentation")
            }
        }
    }
}

/// Facts about a base and their source.
#[derive(Debug, Clone)]
pub struct ResolvedFacts {
    /// The facts.
    pub facts: Arc<BaseFacts>,
    /// Their source.
    pub from: FactsSource,
    /// True if they were attached in the repository, where whoever may push can forge them.
    pub is_attached: bool,
}

/// Error for a base without any of the hives that every Windows has.
#[derive(Debug, thiserror::Error, Diagnose)]
#[error("{0}")]
#[diagnose(code = "base/unreadable")]
struct NoRegistry(String);

impl BaseFactsProvider {
    /// Creates a provider that stores facts in `cache`, if there is one.
    pub fn new(
        registry: RegistryClient,
        cache: Option<FactsCache>,
        progress: Arc<dyn Progress>,
    ) -> Self {
        Self {
            registry,
            cache,
            progress,
            warnings: Arc::default(),
        }
    }

    /// Returns and clears the warnings so far.
    pub fn take_warnings(&self) -> BTreeSet<String> {
        let mut warnings = lock(&self.warnings);
        std::mem::take(&mut warnings)
    }

    /// Finds facts about a base without reading its layers. If they are optional, a slow registry
    /// is not waited for.
    pub async fn find_cached(
        &self,
        place: &Source,
        base: &Digest,
        needs: &BaseRequirements,
    ) -> Option<ResolvedFacts> {
        if let Some(known) = self.in_cache(place, base, needs) {
            return Some(known);
        }
        let Source::Registry(repository) = place else {
            return None;
        };
        let name = repository.to_string();
        if let Some(cache) = &self.cache
            && cache.is_known_absent(base, &name)
        {
            return None;
        }
        match self.in_registry(repository, base, needs.is_empty()).await {
            Ok(Some((facts, bytes))) => {
                self.update_cache(|cache| {
                    cache.store(base, CacheNamespace::Repository(&name), &bytes)
                });
                Some(ResolvedFacts {
                    facts: Arc::new(facts),
                    from: FactsSource::Repository(name),
                    is_attached: true,
                })
            }
            Ok(None) => {
                self.update_cache(|cache| cache.store_absence(base, &name));
                None
            }
            Err(error) => {
                let problem = error_chain(&error);
                tracing::info!("cannot read facts about {base} from {name}: {problem}");
                if needs.is_empty() {
                    // The next build does not wait for it again.
                    self.update_cache(|cache| cache.store_absence(base, &name));
                }
                let is_slow = matches!(error, RegistryError::Http(HttpError::TimeLimit { .. }));
                if is_slow || !needs.is_empty() {
                    self.warn(format!(
                        "cannot read facts about the base from {name}: {problem}"
                    ));
                }
                None
            }
        }
    }

    /// Reads the layers of a base as far as `extent` goes and stores the facts; also returns their
    /// bytes.
    pub async fn read(
        &self,
        place: &Source,
        image: &Image,
        extent: &Extent,
    ) -> Result<(ResolvedFacts, Bytes), BoxError> {
        let layers =
            layers::read(&self.registry, place, image, extent, self.progress.as_ref()).await?;
        let (base, version) = (image.digest(), image.config().os_version.as_deref());
        let (facts, bytes) = self
            .assemble_and_store(base, version, extent, layers)
            .await?;
        if let Extent::Part(_) = extent {
            // The layers were not read to their ends, so the repository vouches for the facts.
            let place = place.to_string();
            self.update_cache(|cache| cache.store(base, CacheNamespace::Part(&place), &bytes));
        }
        let known = ResolvedFacts {
            facts: Arc::new(facts),
            from: FactsSource::Layers,
            is_attached: false,
        };
        Ok((known, bytes))
    }

    /// Assembles facts from the collected layers of a base, and stores them if they are complete.
    async fn assemble_and_store(
        &self,
        base: &Digest,
        os_version: Option<&str>,
        extent: &Extent,
        layers: Vec<CollectedLayer>,
    ) -> Result<(BaseFacts, Bytes), BoxError> {
        let (about, version) = (base.clone(), os_version.map(str::to_owned));
        let made_to = extent.clone();
        let made = tokio::task::spawn_blocking(move || {
            assemble(&about, version.as_deref(), &made_to, layers)
        });
        // It fails only while the program is being terminated.
        let bytes = made
            .await
            .map_err(|error| FactsError::Io(io::Error::other(error)))??;
        let facts = BaseFacts::read(bytes.clone())?;
        if let Extent::Everything = extent {
            if !BaseHive::ALL.iter().any(|&hive| facts.has_hive(hive)) {
                let problems = facts.problems().iter();
                let why = problems.map(|it| format!(": {}: {}", it.place, it.problem));
                let why: String = why.take(1).collect();
                return Err(
                    NoRegistry(format!("{base} has no readable registry hives{why}")).into(),
                );
            }
            self.update_cache(|cache| cache.store(base, CacheNamespace::Layers, &bytes));
        }
        Ok((facts, bytes))
    }

    /// Returns true if the cache has the facts that were read from a base's layers.
    pub fn is_cached(&self, base: &Digest) -> bool {
        let cache = self.cache.as_ref();
        cache.is_some_and(|cache| cache.find(base, CacheNamespace::Layers).is_some())
    }

    /// The bytes of facts that were read from a base's layers on this machine.
    fn cached_layer_facts(&self, base: &Digest) -> Option<Bytes> {
        let cache = self.cache.as_ref()?;
        let path = cache.find(base, CacheNamespace::Layers)?;
        self.open_cached(cache, &path, base)?;
        std::fs::read(path).ok().map(Into::into)
    }

    fn in_cache(
        &self,
        place: &Source,
        base: &Digest,
        needs: &BaseRequirements,
    ) -> Option<ResolvedFacts> {
        let cache = self.cache.as_ref()?;
        let place = place.to_string();
        let whole = CacheNamespace::complete_namespaces(&place);
        // If partial facts were used where they are optional, images would depend on earlier
        // builds.
        let part = (!needs.is_empty()).then_some(CacheNamespace::Part(&place));
        whole.into_iter().chain(part).find_map(|origin| {
            let path = cache.find(base, origin)?;
            let facts = self.open_cached(cache, &path, base)?;
            let known = ResolvedFacts {
                facts: Arc::new(facts),
                from: FactsSource::Cache,
                is_attached: matches!(origin, CacheNamespace::Repository(_)),
            };
            known.covers(needs).then_some(known)
        })
    }

    /// Opens a file of the cache; a damaged one or one about another base is removed.
    fn open_cached(&self, cache: &FactsCache, path: &Path, base: &Digest) -> Option<BaseFacts> {
        match BaseFacts::open(path) {
            Ok(facts) if facts.base_digest() == base => Some(facts),
            Err(FactsError::Io(_)) => None,
            outcome => {
                let problem = outcome.err().map_or_else(
                    || "it is about another base".to_owned(),
                    |error| error_chain(&error),
                );
                self.warn(format!(
                    "removed {}, which is created again when required: {problem}",
                    path.display()
                ));
                cache.remove(path);
                None
            }
        }
    }

    /// Writes to the cache; a failure is only a warning.
    fn update_cache(&self, write: impl FnOnce(&FactsCache) -> io::Result<()>) {
        let Some(cache) = &self.cache else { return };
        if let Err(source) = write(cache) {
            let error = file_error("write to", cache.folder())(source);
            self.warn(format!(
                "cannot cache facts about bases: {}",
                error_chain(&error)
            ));
        }
    }

    fn warn(&self, warning: String) {
        let mut warnings = lock(&self.warnings);
        warnings.insert(warning);
    }
}

impl ResolvedFacts {
    /// Returns true if the facts are sufficient for a plan. Facts that are missing although all
    /// layers were read for them do not exist, except for contents of files, which are not all kept.
    pub fn covers(&self, needs: &BaseRequirements) -> bool {
        let facts = &self.facts;
        let is_complete = facts.is_complete();
        let lacks_content = |path: &ImagePath| match facts.content(path) {
            Ok(content) => content == Answer::Unknown,
            Err(_) => !is_complete,
        };
        let mut hives = needs.hives.iter().map(|&root| BaseHive::from_root(root));
        let has_rest = is_complete
            || hives.all(|hive| facts.has_hive(hive)) && (!needs.files || facts.has_files());
        has_rest && !needs.contents.iter().any(lacks_content)
    }

    /// Problems of the hives that a plan requires.
    pub fn problems_of(&self, needs: &BaseRequirements) -> impl Iterator<Item = &BaseProblem> {
        let hives = needs.hives.iter().map(|&root| BaseHive::from_root(root));
        let hives: Vec<BaseHive> = hives.collect();
        let problems = self.facts.problems().iter();
        problems.filter(move |problem| hives.iter().any(|&hive| problem.is_of(hive)))
    }

    /// Reads all facts of a file of the cache, which removes the file if it is damaged, so that it
    /// is created again; returns true if it was removed.
    pub fn remove_if_damaged(&self) -> bool {
        self.from == FactsSource::Cache && self.read_all().is_err()
    }

    fn read_all(&self) -> Result<(), FactsError> {
        for hive in BaseHive::ALL {
            let components = Vec::new();
            let root = BaseKeyPath { hive, components };
            self.facts
                .keys_below(&root)?
                .try_for_each(|key| key.map(drop))?;
        }
        let mut files = self.facts.files_below(&ImagePath::drive())?;
        files.try_for_each(|file| file.map(drop))
    }
}
