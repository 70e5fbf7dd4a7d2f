//! The content that must exist before an image can be published, determined from manifests before
//! any blob is transferred.

use std::collections::{HashMap, HashSet};

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, TryStreamExt, stream};
use wincimg_common::diagnose::Problem;

use super::platform::PlatformFilter;
use crate::document::{
    Descriptor, Digest, Document, ImageConfig, Index, MAX_DEPTH, Manifest, ManifestFormat,
    Platform, Verbatim, media_type, too_deep,
};
use crate::store::{Source, StoreError};

/// Manifests read at once.
const PARALLEL: usize = 4;

/// Handling of foreign layers, found in older Windows base images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Foreign {
    /// They stay foreign. A registry gets their bytes only if the source has them; layouts and
    /// archives always do, because they would be unusable without.
    #[default]
    Keep,
    /// They are copied, from their `urls` if the source lacks them, and get ordinary media types; no
    /// layer, configuration or manifest keeps `urls`. The digests of manifests and indexes change;
    /// those of configurations do not.
    MakeOrdinary,
}

/// Options of a copy plan.
#[derive(Debug, Clone, Default)]
pub struct CopyOptions {
    /// Platforms of the images of an index to copy; all if empty, and the index stays unchanged.
    pub platforms: Vec<PlatformFilter>,
    /// Handling of foreign layers.
    pub foreign: Foreign,
    /// The format of manifests and indexes; `None` keeps the source's. Skopeo, for one, reads only
    /// layouts in OCI format.
    pub manifest_format: Option<ManifestFormat>,
    /// True if the images join another index, which is published for them: an index that has them
    /// in the source is not copied.
    pub joins: bool,
}

impl CopyOptions {
    fn includes(&self, platform: &Platform) -> bool {
        let mut filters = self.platforms.iter();
        self.platforms.is_empty() || filters.any(|filter| filter.matches(platform))
    }
}

/// An image or an index as it will be published, with all content it references.
#[derive(Debug, Clone)]
pub struct CopyPlan {
    /// The document to publish.
    pub root: Document,
    /// The root's digest in the source; differs if the root was rewritten.
    pub source_digest: Digest,
    /// The manifests that the root references, in the order of publication.
    pub children: Vec<Document>,
    /// The digests of these in the source, in the same order.
    pub sources: Vec<Digest>,
    /// The blobs that they reference, each once.
    pub blobs: Vec<PlannedBlob>,
    /// Platforms of the images, if the index states them.
    pub platforms: Vec<Platform>,
    /// See [`CopyOptions::joins`].
    pub(super) joins: bool,
    /// Attestations that an index loses, because they name the bytes of images that change.
    pub(super) left: Vec<Descriptor>,
}

/// A blob that an image needs.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedBlob {
    /// The blob as the source describes it.
    pub descriptor: Descriptor,
    /// True if a registry may lack it, as those that Docker pushes to lack foreign layers: clients
    /// have its URLs.
    pub(crate) optional_in_registries: bool,
}

impl PlannedBlob {
    /// A blob of an image with this handling of foreign layers.
    pub fn new(descriptor: Descriptor, foreign: Foreign) -> Self {
        Self {
            optional_in_registries: foreign == Foreign::Keep
                && media_type::is_foreign(&descriptor.media_type)
                && !descriptor.urls.is_empty(),
            descriptor,
        }
    }
}

impl CopyPlan {
    /// Reads the manifests of the image or index and computes their published form.
    pub async fn new(
        source: &Source,
        wanted: Option<&str>,
        options: &CopyOptions,
    ) -> Result<Self, StoreError> {
        Self::of(source, source.resolve(wanted).await?, options).await
    }

    /// The same for a document of the source.
    pub(super) async fn of(
        source: &Source,
        root: Document,
        options: &CopyOptions,
    ) -> Result<Self, StoreError> {
        let source_digest = root.digest().clone();
        let mut options = options.clone();
        if root.is_artifact() {
            options.manifest_format = None;
        }
        let planner = Planner {
            source,
            options: &options,
        };
        if let Document::Manifest(manifest) = &root {
            planner.check_platform(manifest).await?;
        }
        let node = planner.visit(root, 0).await?;
        let mut plan = Self {
            root: node.document.clone(),
            source_digest,
            children: Vec::new(),
            sources: Vec::new(),
            blobs: Vec::new(),
            platforms: Vec::new(),
            joins: options.joins,
            left: Vec::new(),
        };
        plan.take(node, options.foreign, &mut HashSet::new());
        plan.children.pop();
        plan.sources.pop();
        Ok(plan)
    }

    /// Returns true if layers have URLs in the published form.
    pub(super) fn has_urls(&self) -> bool {
        let mut documents = self.children.iter().chain([&self.root]);
        documents.any(|document| {
            matches!(document, Document::Manifest(manifest)
                if manifest.layers.iter().any(|layer| !layer.urls.is_empty()))
        })
    }

    /// Adds a document and its descendants, each once, children first.
    fn take(&mut self, node: PlanNode, foreign: Foreign, taken: &mut HashSet<Digest>) {
        for child in node.children {
            self.take(child, foreign, taken);
        }
        for descriptor in node.blobs {
            if taken.insert(descriptor.digest.clone()) {
                self.blobs.push(PlannedBlob::new(descriptor, foreign));
            }
        }
        self.platforms.extend(node.platform);
        self.left.extend(node.left);
        if taken.insert(node.document.digest().clone()) {
            self.children.push(node.document);
            self.sources.push(node.source);
        }
    }
}

/// A document with the content it references.
struct PlanNode {
    /// The published form.
    document: Document,
    source: Digest,
    children: Vec<PlanNode>,
    blobs: Vec<Descriptor>,
    platform: Option<Platform>,
    left: Vec<Descriptor>,
}

struct Planner<'a> {
    source: &'a Source,
    options: &'a CopyOptions,
}

impl Planner<'_> {
    /// Checks the platform of a single image, which only its configuration states.
    async fn check_platform(&self, manifest: &Verbatim<Manifest>) -> Result<(), StoreError> {
        if self.options.platforms.is_empty() || !self.source.is_image(manifest).await? {
            return Ok(());
        }
        let config: Verbatim<ImageConfig> = self.source.read(&manifest.config).await?;
        let platform = config.platform();
        if self.options.includes(&platform) {
            return Ok(());
        }
        Err(self.no_platform(manifest.digest(), &platform.to_string()))
    }

    /// Error for a document without an image for the requested platforms.
    fn no_platform(&self, document: &Digest, available: &str) -> StoreError {
        let Self { source, options } = self;
        let wanted = options.platforms.iter().map(ToString::to_string);
        let wanted = wanted.collect::<Vec<_>>().join(", ");
        let problem =
            format!("{source} ({document}) has no image for {wanted}: it has {available}");
        Problem::answer("image/no-platform", problem).into()
    }

    async fn visit(&self, document: Document, depth: usize) -> Result<PlanNode, StoreError> {
        match document {
            Document::Manifest(manifest) => self.visit_manifest(&manifest),
            Document::Index(index) => self.visit_index(index, depth).await,
        }
    }

    fn visit_manifest(&self, manifest: &Verbatim<Manifest>) -> Result<PlanNode, StoreError> {
        if let Some(format) = self.options.manifest_format {
            manifest.check_format(format)?;
        }
        let mut blobs = manifest.layers.clone();
        blobs.push(manifest.config.clone());
        let published = manifest.edit(|manifest| {
            if self.options.foreign == Foreign::MakeOrdinary {
                manifest.make_layers_distributable();
            }
            if let Some(format) = self.options.manifest_format {
                manifest.convert(format);
            }
        })?;
        Ok(PlanNode {
            document: Document::Manifest(Box::new(published)),
            source: manifest.digest().clone(),
            children: Vec::new(),
            blobs,
            platform: None,
            left: Vec::new(),
        })
    }

    async fn visit_index(
        &self,
        index: Verbatim<Index>,
        depth: usize,
    ) -> Result<PlanNode, StoreError> {
        if depth == MAX_DEPTH {
            return Err(too_deep(&index).into());
        }
        let source = index.digest().clone();
        let chosen = self.chosen(&index, depth).await?;
        let visits: Vec<_> = chosen
            .iter()
            .map(|entry| self.visit_entry(entry, &index, depth))
            .collect();
        let children: Vec<PlanNode> = stream::iter(visits)
            .buffered(PARALLEL)
            .try_collect()
            .await?;
        let mut renamed: HashMap<String, Descriptor> = chosen
            .iter()
            .zip(&children)
            .map(|(entry, child)| (entry.digest.to_string(), child.document.descriptor()))
            .collect();
        let is_kept = |(entry, _): &(Descriptor, PlanNode)| {
            let image = entry.attested().and_then(|about| renamed.get(about));
            image.is_none_or(|image| entry.attested() == Some(image.digest.as_ref()))
        };
        let (kept, left): (Vec<_>, Vec<_>) = chosen.into_iter().zip(children).partition(is_kept);
        let left: Vec<Descriptor> = left.into_iter().map(|(entry, _)| entry).collect();
        for entry in &left {
            renamed.remove(entry.digest.as_ref());
        }
        let published = index.edit(|index| {
            rename_entries(index, &renamed);
            if self.options.foreign == Foreign::MakeOrdinary {
                for entry in &mut index.manifests {
                    entry.urls.clear();
                }
            }
            if let Some(format) = self.options.manifest_format {
                index.convert(format);
            }
        })?;
        Ok(PlanNode {
            document: Document::Index(published),
            source,
            children: kept.into_iter().map(|(_, child)| child).collect(),
            blobs: Vec::new(),
            platform: None,
            left,
        })
    }

    fn visit_entry<'a>(
        &'a self,
        entry: &'a Descriptor,
        index: &'a Index,
        depth: usize,
    ) -> BoxFuture<'a, Result<PlanNode, StoreError>> {
        Box::pin(async move {
            let document = match self.source.document(entry).await {
                Err(StoreError::Other(problem)) if self.source.lacks(entry) => {
                    let hint = self.present_platforms(index, entry);
                    return Err(StoreError::from(problem.hint_if(hint)));
                }
                // As after a mirror of some platforms by a tool that keeps the index.
                Err(error @ StoreError::Registry(_)) if error.is_not_found() => {
                    let platform = entry.platform.as_ref();
                    let platform = platform.map_or_else(String::new, |it| format!(" for {it}"));
                    let (source, digest) = (self.source, &entry.digest);
                    let problem =
                        format!("the index lists {digest}{platform}, which {source} does not have");
                    let hint = self.present_platforms(index, entry);
                    return Err(Problem::context(problem, error).hint_if(hint).into());
                }
                document => document?,
            };
            let mut node = self.visit(document, depth + 1).await?;
            node.platform.clone_from(&entry.platform);
            Ok(node)
        })
    }

    /// Hint for an index of which a store lacks at least an entry: containerd and Docker save it
    /// with only those images that they pulled.
    fn present_platforms(&self, index: &Index, absent: &Descriptor) -> Option<String> {
        let present = index.manifests.iter();
        let present =
            present.filter(|entry| entry.digest != absent.digest && !self.source.lacks(entry));
        let platforms = present.filter_map(|entry| entry.platform.as_ref());
        let platforms = platforms.filter(|platform| platform.os != "unknown");
        let platforms: Vec<String> = platforms.map(ToString::to_string).collect();
        (!platforms.is_empty()).then(|| {
            let flags = platforms.join(" --platform ");
            format!("it has only some images of the index: copy those with --platform {flags}")
        })
    }

    /// Returns the entries for the requested platforms, and their attestations if the source has
    /// them.
    async fn chosen(
        &self,
        index: &Verbatim<Index>,
        depth: usize,
    ) -> Result<Vec<Descriptor>, StoreError> {
        let entries = &index.manifests;
        if self.options.platforms.is_empty() {
            return Ok(entries.clone());
        }
        let checks = entries.iter().map(|entry| self.includes(entry, depth));
        let checks: Vec<_> = checks.collect();
        let checked: Vec<bool> = stream::iter(checks)
            .buffered(PARALLEL)
            .try_collect()
            .await?;
        let included = entries.iter().zip(checked);
        let included: HashSet<_> = included
            .filter_map(|(entry, is_included)| is_included.then_some(&entry.digest))
            .collect();
        if included.is_empty() {
            let available = entries.iter().filter_map(|entry| entry.platform.as_ref());
            let available: Vec<String> = available.map(ToString::to_string).collect();
            let available = match available.join(", ") {
                none if none.is_empty() => "none".to_owned(),
                all => all,
            };
            return Err(self.no_platform(index.digest(), &available));
        }
        let about_included = |entry: &Descriptor| {
            let about = entry.attested();
            about.is_some_and(|about| included.iter().any(|digest| about == digest.as_ref()))
                && !self.source.lacks(entry)
        };
        Ok(entries
            .iter()
            .filter(|entry| included.contains(&entry.digest) || about_included(entry))
            .cloned()
            .collect())
    }

    /// Returns true if an entry is for a requested platform. One that states none, or no version, is
    /// read: it may be an index, and an image has its platform in the configuration.
    fn includes<'a>(
        &'a self,
        entry: &'a Descriptor,
        depth: usize,
    ) -> BoxFuture<'a, Result<bool, StoreError>> {
        Box::pin(async move {
            if let Some(platform) = &entry.platform {
                let mut filters = self.options.platforms.iter();
                let is_included = self.options.includes(platform);
                if is_included || !filters.any(|filter| filter.may_match(platform)) {
                    return Ok(is_included);
                }
            }
            if self.source.lacks(entry) {
                return Ok(false);
            }
            let document = match self.source.document(entry).await {
                Err(error) if error.is_not_found() => return Ok(false),
                document => document?,
            };
            match document {
                Document::Manifest(manifest) => {
                    if !self.source.is_image(&manifest).await? {
                        return Ok(false);
                    }
                    let config: Verbatim<ImageConfig> = self.source.read(&manifest.config).await?;
                    Ok(self.options.includes(&config.platform()))
                }
                Document::Index(inner) if depth + 1 < MAX_DEPTH => {
                    for entry in &inner.manifests {
                        if self.includes(entry, depth + 1).await? {
                            return Ok(true);
                        }
                    }
                    Ok(false)
                }
                Document::Index(_) => Ok(false),
            }
        })
    }
}

/// Replaces the descriptors of renamed entries and keeps their other fields.
fn rename_entries(index: &mut Index, renamed: &HashMap<String, Descriptor>) {
    index.manifests.retain_mut(|entry| {
        let Some(new) = renamed.get(entry.digest.as_ref()) else {
            return false;
        };
        if entry.digest != new.digest {
            entry.digest = new.digest.clone();
            entry.size = new.size;
            // An embedded copy of the old manifest would contradict the digest.
            entry.other.remove("data");
        }
        true
    });
}
