//! Current content of a tag, and the entries to keep: what others use is not removed.

use std::fmt;

use wincimg_common::diagnose::{BoxError, Diagnose, Problem};
use wincimg_common::progress::Progress;
use wincimg_oci::copy::CopyPlan;
use wincimg_oci::document::{
    Descriptor, Digest, Document, ImageConfig, Index, Manifest, Platform, Verbatim, media_type,
    needed_variant,
};
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::{EntryReader, EntryTarget, Location, Source, StoreError};
use wincimg_windows::compat::generation;
use wincimg_windows::version::WindowsVersion;

use crate::publication::PlannedTagEntry;

/// Policy for existing tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TagPolicy {
    /// Rejects a delivery that would remove entries of the tag.
    #[default]
    Protect,
    /// Keeps entries that a build does not replace.
    Join,
    /// Replaces the tag with the built images.
    Replace,
}

/// The way around a tag for a build; a copy has no version tags.
const VERSION_TAG: &str = "publish this one under a version tag with --no-index";

/// Current content of a tag.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ExistingTag {
    pub(super) digest: Digest,
    /// The index, if it is one.
    pub(super) index: Option<Index>,
    entries: Vec<TagEntry>,
}

/// An image that a tag leads to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TagEntry {
    pub(crate) descriptor: Descriptor,
    pub(crate) line: PlannedTagEntry,
}

impl ExistingTag {
    /// Reads the tag of a location; none if it does not exist. Tags to be replaced are not read.
    pub(super) async fn read(
        location: &Location,
        existing: TagPolicy,
        registry: &RegistryClient,
    ) -> Result<Option<Self>, StoreError> {
        if existing == TagPolicy::Replace {
            let digest = Source::tag_digest(location, registry).await?;
            return Ok(digest.map(|digest| Self {
                digest,
                index: None,
                entries: Vec::new(),
            }));
        }
        let standing = Self::read_content(location, registry).await;
        standing.map_err(|error| match error {
            StoreError::Other(problem) if problem.diagnosis().code == "image/document" => {
                let way_out = "to write the tag anew, add --replace, or choose another tag";
                problem.hint(way_out).into()
            }
            error => error,
        })
    }

    async fn read_content(
        location: &Location,
        registry: &RegistryClient,
    ) -> Result<Option<Self>, StoreError> {
        let Some((source, document)) = Source::read_tag(location, registry).await? else {
            return Ok(None);
        };
        Ok(Some(match document {
            Document::Manifest(manifest) => Self {
                digest: manifest.digest().clone(),
                index: None,
                entries: vec![single(&source, *manifest).await?],
            },
            Document::Index(index) => Self::from_index(&source, index).await?,
        }))
    }

    /// The content of an index and of those in it, whatever its tag.
    pub(crate) async fn from_index(
        source: &Source,
        index: Verbatim<Index>,
    ) -> Result<Self, StoreError> {
        let reader = TagReader {
            source,
            planned: &[],
        };
        Ok(Self {
            digest: index.digest().clone(),
            entries: source.entries(&index, &reader).await?,
            index: Some(index.into_value()),
        })
    }

    /// The images to keep with the new ones.
    pub(crate) fn kept_entries(
        &self,
        new: &[PlannedTagEntry],
        existing: TagPolicy,
        place: &Location,
    ) -> Result<Vec<TagEntry>, Problem> {
        match existing {
            TagPolicy::Replace => Ok(Vec::new()),
            TagPolicy::Protect => {
                self.check_removed(new, place, VERSION_TAG)?;
                Ok(Vec::new())
            }
            TagPolicy::Join => {
                // Only images can be entries of an index; a chart cannot.
                let is_stranger = |it: &&TagEntry| self.index.is_none() && !it.is_an_image();
                let strangers: Vec<_> = self.images().filter(is_stranger).collect();
                if !strangers.is_empty() {
                    let (them, taken) = (them(strangers.len()), list(strangers.iter()));
                    let problem = format!("{place} has {taken}, which cannot be in an index");
                    return Err(Problem::answer("tag/taken", problem).hint(format!(
                        "choose another tag, or --replace instead of --join to remove {them}"
                    )));
                }
                // An index has one image for a build, so an older one of that build is replaced.
                let stays =
                    |entry: &&TagEntry| !new.iter().any(|new| entry.is_replaced_by(new, false));
                Ok(self.images().filter(stays).cloned().collect())
            }
        }
    }

    /// Rejects new images that would remove others.
    fn check_removed(
        &self,
        new: &[PlannedTagEntry],
        place: &Location,
        other_tag: &str,
    ) -> Result<(), Problem> {
        let removed = self.removed_images(new);
        if removed.is_empty() {
            return Ok(());
        }
        let can_join = removed.iter().all(|entry| entry.is_an_image())
            && new.iter().all(PlannedTagEntry::is_an_image);
        let displaced = |entry: &&&TagEntry| {
            let mut new = new.iter();
            new.any(|new| entry.is_replaced_by(new, false))
        };
        let displaced = list(removed.iter().filter(displaced));
        let (them, taken) = (them(removed.len()), list(removed.iter()));
        let problem = format!("{place} has {taken}, which would be removed");
        let way_out = match (can_join, displaced.as_str()) {
            (true, "") => {
                format!("add --join to keep {them} in the index, or --replace to remove {them}")
            }
            (true, displaced) => format!(
                "an index has one image per Windows build: {other_tag}, or add --join to replace \
                 {displaced} and keep all others"
            ),
            (false, _) => format!("choose another tag, or add --replace to remove {them}"),
        };
        Err(Problem::answer("tag/taken", problem).hint(way_out))
    }

    /// Images that the new ones would remove without serving their hosts.
    fn removed_images(&self, new: &[PlannedTagEntry]) -> Vec<&TagEntry> {
        self.images()
            .filter(|entry| !new.iter().any(|new| entry.is_replaced_by(new, true)))
            .collect()
    }

    /// Its entries without attestations.
    fn images(&self) -> impl Iterator<Item = &TagEntry> {
        self.entries.iter().filter(|entry| !entry.is_attestation())
    }

    pub(crate) fn attestations(&self) -> impl Iterator<Item = &TagEntry> {
        self.entries.iter().filter(|entry| entry.is_attestation())
    }

    /// Returns true if it has the entries of a new index, in an order that another tool gave them: a
    /// signature of the index would be lost for nothing.
    pub(super) fn has_entries_of(&self, new: &Document) -> bool {
        let (Some(own), Document::Index(new)) = (&self.index, new) else {
            return false;
        };
        let mut entries = new.manifests.iter();
        own.manifests.len() == new.manifests.len()
            && entries.all(|entry| own.manifests.contains(entry))
    }

    pub(super) fn versions(&self) -> Vec<WindowsVersion> {
        let entries = self.entries.iter();
        entries.filter_map(|entry| entry.line.version).collect()
    }

    /// Returns true if it has an image for each system and build of the new ones.
    pub(super) fn has(&self, new: &[PlannedTagEntry]) -> bool {
        let has =
            |new: &PlannedTagEntry| self.entries.iter().any(|it| it.is_replaced_by(new, false));
        new.iter().all(has)
    }

    /// Names the entries that are replaced although hosts may need them: their build has one entry,
    /// and the new one does not start on their hosts.
    pub(super) fn note_replaced(
        &self,
        new: &[PlannedTagEntry],
        place: &Location,
        progress: &dyn Progress,
    ) {
        let displaced = |entry: &&TagEntry| {
            let replaced = |is_strict| new.iter().any(|new| entry.is_replaced_by(new, is_strict));
            replaced(false) && !replaced(true)
        };
        for entry in self.entries.iter().filter(displaced) {
            progress.note(&format!(
                "{place} will no longer have {entry}, which another revision of its build \
                 replaces: hosts that need it cannot start the new one"
            ));
        }
    }
}

fn list<'e>(entries: impl Iterator<Item = &'e &'e TagEntry>) -> String {
    let entries: Vec<String> = entries.map(ToString::to_string).collect();
    entries.join(", ")
}

fn them(count: usize) -> &'static str {
    if count == 1 { "it" } else { "them" }
}

/// Rejects a copy that would remove entries of a tag for other platforms or Windows builds.
pub async fn check_overwrite(
    target: &Location,
    source: &Source,
    plan: &CopyPlan,
    registry: &RegistryClient,
) -> Result<(), BoxError> {
    let written = overwritten(target, source, &plan.root, &plan.children, registry).await?;
    if let Some((standing, new)) = written {
        standing.check_removed(&new, target, "choose another tag")?;
    }
    Ok(())
}

/// The entries of a tag for platforms or Windows builds that an image or index in its place does not
/// have.
pub async fn removed_entries(
    target: &Location,
    source: &Source,
    root: &Document,
    registry: &RegistryClient,
) -> Result<Vec<String>, StoreError> {
    let written = overwritten(target, source, root, &[], registry).await?;
    let removed = written
        .iter()
        .flat_map(|(tag, new)| tag.removed_images(new));
    Ok(removed.map(ToString::to_string).collect())
}

/// A tag, and the images of an image or index in its place; none if they are the same.
async fn overwritten(
    target: &Location,
    source: &Source,
    root: &Document,
    planned: &[Document],
    registry: &RegistryClient,
) -> Result<Option<(ExistingTag, Vec<PlannedTagEntry>)>, StoreError> {
    let standing = ExistingTag::read(target, TagPolicy::Protect, registry).await?;
    let Some(standing) = standing.filter(|standing| standing.digest != *root.digest()) else {
        return Ok(None);
    };
    let new = entries_of(source, root, planned).await?;
    Ok(Some((standing, lines(&new))))
}

/// The entries that an image or index would have in an index. The documents that it references are
/// planned, or in the source.
pub(super) async fn entries_of(
    source: &Source,
    root: &Document,
    planned: &[Document],
) -> Result<Vec<TagEntry>, StoreError> {
    match root {
        Document::Manifest(manifest) => Ok(vec![single(source, (**manifest).clone()).await?]),
        Document::Index(index) => {
            let reader = TagReader { source, planned };
            source.entries(index, &reader).await
        }
    }
}

pub(super) fn lines(entries: &[TagEntry]) -> Vec<PlannedTagEntry> {
    entries.iter().map(|entry| entry.line.clone()).collect()
}

impl TagEntry {
    pub(crate) fn new(descriptor: Descriptor) -> Self {
        let platform = descriptor.platform.clone().unwrap_or_default();
        let version = version_of(&platform);
        Self {
            line: PlannedTagEntry { platform, version },
            descriptor,
        }
    }

    /// Returns true if a new image replaces this one: same system and build and, with `same_hosts`,
    /// the same hosts.
    pub(super) fn is_replaced_by(&self, new: &PlannedTagEntry, same_hosts: bool) -> bool {
        system(&self.line.platform) == system(&new.platform)
            && match (self.line.version, new.version) {
                (Some(version), Some(newer)) => {
                    version.build == newer.build
                        && (!same_hosts || generation(version) == generation(newer))
                }
                // Both have no Windows inside, and serve all hosts.
                (None, None) => true,
                _ => false,
            }
    }

    /// Returns true if the index says what a runtime selects it by.
    fn is_stated(&self) -> bool {
        let PlannedTagEntry { platform, version } = &self.line;
        let is_known = match platform.os.as_str() {
            "" => false,
            "windows" => version.is_some(),
            _ => true,
        };
        self.is_attestation() || (is_known && !media_type::is_index(&self.descriptor.media_type))
    }

    pub(super) fn is_an_image(&self) -> bool {
        self.line.is_an_image()
    }

    pub(crate) fn is_attestation(&self) -> bool {
        self.descriptor.attested().is_some()
    }
}

impl fmt::Display for TagEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_an_image() {
            self.line.platform.fmt(f)
        } else {
            let entry = &self.descriptor;
            let kind = entry.artifact_type().unwrap_or(&entry.media_type);
            write!(f, "an artifact of type {kind}")
        }
    }
}

/// A tag of a single image. A chart or another artifact has no platform.
async fn single(source: &Source, manifest: Verbatim<Manifest>) -> Result<TagEntry, StoreError> {
    if source.is_image(&manifest).await? {
        let platform = platform(source, &manifest).await?;
        let entry = manifest.descriptor(manifest.media_type());
        return Ok(TagEntry::new(entry.with_platform(platform)));
    }
    let name = "artifactType";
    let kind = manifest.other.get(name).cloned();
    let kind = kind.unwrap_or_else(|| manifest.config.media_type.clone().into());
    let mut descriptor = Document::Manifest(Box::new(manifest)).descriptor();
    descriptor.other.insert(name.to_owned(), kind);
    Ok(TagEntry::new(descriptor))
}

/// The platform of an image, whose layers are not checked: artifacts of oras have an image's
/// configuration that names none.
async fn platform(source: &Source, manifest: &Manifest) -> Result<Platform, StoreError> {
    let config: Verbatim<ImageConfig> = source.read(&manifest.config).await?;
    Ok(config.platform())
}

/// Reads the images that a tag leads to.
struct TagReader<'a> {
    source: &'a Source,
    /// Documents that are planned, which the source may lack.
    planned: &'a [Document],
}

impl EntryReader for TagReader<'_> {
    type Item = TagEntry;

    /// If an entry does not state its platform or version of Windows, its configuration does.
    async fn read(
        &self,
        descriptor: &Descriptor,
        _: bool,
    ) -> Result<EntryTarget<TagEntry>, StoreError> {
        let mut entry = TagEntry::new(descriptor.clone());
        if entry.is_stated() {
            return Ok(EntryTarget::Items(vec![entry]));
        }
        match self.document(descriptor).await {
            Ok(Document::Index(inner)) => return Ok(EntryTarget::Index(inner)),
            Ok(Document::Manifest(manifest)) => {
                if self.source.is_image(&manifest).await? {
                    let own = platform(self.source, &manifest).await?;
                    entry.line.version = version_of(&own);
                    if entry.line.platform.os.is_empty() {
                        entry.line.platform = own;
                    }
                }
            }
            // Some stores have only some of an index's images.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        Ok(EntryTarget::Items(vec![entry]))
    }
}

impl TagReader<'_> {
    async fn document(&self, descriptor: &Descriptor) -> Result<Document, StoreError> {
        let mut planned = self.planned.iter();
        match planned.find(|document| *document.digest() == descriptor.digest) {
            Some(document) => Ok(document.clone()),
            None => self.source.document(descriptor).await,
        }
    }
}

/// Operating system, architecture and variant, as runtimes compare them.
fn system(platform: &Platform) -> (&str, &str, Option<&str>) {
    let architecture = platform.architecture.as_str();
    let variant = needed_variant(architecture, platform.variant.as_deref());
    (&platform.os, architecture, variant)
}

fn version_of(platform: &Platform) -> Option<WindowsVersion> {
    platform.os_version.as_deref()?.parse().ok()
}
