//! Sources and targets of images behind one interface: a registry, an OCI layout directory, or a
//! docker-archive file.
//!
//! Sources and sinks are separate types because an archive that is being written cannot be read
//! yet.

mod entries;
mod location;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
pub use entries::{EntryReader, EntryTarget};
pub use location::{LOCAL_SCHEMES, Location, LocationError, how_to_build, is_local_image};
use tokio::io::AsyncReadExt;
use wincimg_common::diagnose::{Diagnose, Problem};
use wincimg_common::progress::Task;

use super::archive::{ArchiveWriter, DockerArchive};
use super::document::{
    Artifact, Descriptor, Digest, Document, DocumentType, Image, ImageConfig, MAX_DOCUMENT,
    Manifest, Verbatim,
};
use super::layout::Layout;
use super::remote::{
    BlobReader, BlobSource, RawManifest, RegistryClient, RegistryError, Repository, is_cosign_tag,
    none_if_refused,
};
use super::stream::{BlobHandle, VerifyingReader, unreadable};

/// An image that could not be read or written.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "image/document")]
pub enum StoreError {
    /// A registry failed.
    #[error(transparent)]
    #[diagnose(forward)]
    Registry(#[from] RegistryError),
    /// A registry rejected an image whose layers have URLs, as foreign ones do, because of these or
    /// a missing blob.
    #[error(transparent)]
    #[diagnose(
        forward,
        hint = "the registry may refuse the URLs of the image's layers: `wincimg copy SRC DST \
                --ordinary-layers` stores the layers without them"
    )]
    RefusedUrls(RegistryError),
    /// A layout does not have the requested tag or digest.
    #[error(transparent)]
    #[diagnose(forward)]
    NotFound(Problem),
    /// A blob could not be read.
    #[error("cannot read a blob of {place}")]
    Blob {
        /// Location of the store.
        place: String,
        /// The reason.
        source: Problem,
    },
    /// Other errors, such as those of an archive.
    #[error(transparent)]
    #[diagnose(forward)]
    Other(#[from] Problem),
}

impl StoreError {
    /// Returns true if the store does not have it.
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::Registry(error) => error.is_not_found(),
            Self::NotFound(_) => true,
            _ => false,
        }
    }

    /// Returns true if a manifest was rejected because the registry lacks what it refers to.
    pub fn is_part_missing(&self) -> bool {
        matches!(self, Self::Registry(error) if error.is_blob_missing())
    }
}

/// A store that images are read from.
#[derive(Debug, Clone)]
pub enum Source {
    /// A repository of a registry.
    Registry(Repository),
    /// An OCI layout directory.
    Layout(Layout),
    /// A docker-archive file.
    Archive(DockerArchive),
    /// Layers in this process, above an image in another store, which has no document of theirs.
    Loose(LooseLayers),
}

impl Source {
    /// Opens the store; sends no request to a registry.
    pub async fn open(location: &Location, registry: &RegistryClient) -> Result<Self, StoreError> {
        Ok(match location {
            Location::Registry(reference) => Self::Registry(registry.repository(reference)),
            Location::Layout { dir, .. } => {
                let layout = Layout::open(dir).await?;
                Self::Layout(layout.with_progress(registry.http().shared_progress()))
            }
            Location::Archive { file, .. } => Self::Archive(DockerArchive::open(file).await?),
        })
    }

    /// Returns the image or index with this tag or digest; without one, a registry's `latest` or
    /// the only image of a layout or an archive.
    pub async fn resolve(&self, wanted: Option<&str>) -> Result<Document, StoreError> {
        match self {
            Self::Registry(repository) => {
                let wanted = wanted.unwrap_or("latest");
                let raw = match repository.get_manifest(wanted).await {
                    Ok(raw) => raw,
                    Err(error) => {
                        return Err(repository.with_suggestion(error, wanted).await.into());
                    }
                };
                self.verified(raw)
            }
            Self::Layout(layout) => layout.resolve(wanted).await,
            Self::Archive(archive) => Ok(archive.resolve(wanted).await?),
            Self::Loose(loose) => Box::pin(loose.below.resolve(wanted)).await,
        }
    }

    /// Reads the current tag of a location to be written. An archive is always overwritten, so it
    /// has none.
    pub async fn read_tag(
        location: &Location,
        registry: &RegistryClient,
    ) -> Result<Option<(Self, Document)>, StoreError> {
        match (location, location.tag()) {
            (Location::Registry(reference), Some(tag)) => {
                Self::in_repository(registry.repository(reference).for_push(), tag).await
            }
            (Location::Layout { dir, .. }, Some(tag)) if Layout::is_at(dir) => {
                let layout = Layout::open(dir).await?;
                let Some(digest) = layout.resolve_tag(tag).await? else {
                    return Ok(None);
                };
                let document = layout.resolve(Some(digest.as_ref())).await?;
                Ok(Some((Self::Layout(layout), document)))
            }
            _ => Ok(None),
        }
    }

    /// Returns the digest that [`Self::read_tag`] would read.
    pub async fn tag_digest(
        location: &Location,
        registry: &RegistryClient,
    ) -> Result<Option<Digest>, StoreError> {
        match (location, location.tag()) {
            (Location::Registry(reference), Some(tag)) => {
                let repository = registry.repository(reference).for_push();
                Ok(repository.head_manifest(tag).await?.map(|head| head.digest))
            }
            (Location::Layout { dir, .. }, Some(tag)) if Layout::is_at(dir) => {
                Layout::open(dir).await?.resolve_tag(tag).await
            }
            _ => Ok(None),
        }
    }

    /// Opens a store and resolves its tag or digest with one request; `None` if not found. With
    /// `is_target`, a registry is asked with credentials for pushing.
    pub async fn find(
        location: &Location,
        is_target: bool,
        registry: &RegistryClient,
    ) -> Result<Option<(Self, Document)>, StoreError> {
        match location {
            Location::Registry(reference) => {
                let mut repository = registry.repository(reference);
                if is_target {
                    repository = repository.for_push();
                }
                let wanted = location.tag_or_digest().unwrap_or("latest");
                Self::in_repository(repository, wanted).await
            }
            Location::Layout { dir, .. } if !Layout::is_at(dir) => Ok(None),
            Location::Layout { .. } | Location::Archive { .. } => {
                let source = Self::open(location, registry).await?;
                match source.resolve(location.tag_or_digest()).await {
                    Ok(document) => Ok(Some((source, document))),
                    Err(StoreError::NotFound(_)) => Ok(None),
                    Err(error) => Err(error),
                }
            }
        }
    }

    async fn in_repository(
        repository: Repository,
        wanted: &str,
    ) -> Result<Option<(Self, Document)>, StoreError> {
        let Some(raw) = repository.find_manifest(wanted).await? else {
            return Ok(None);
        };
        let source = Self::Registry(repository);
        let document = source.verified(raw)?;
        Ok(Some((source, document)))
    }

    /// Returns the manifest or index of an index's entry.
    pub async fn document(&self, entry: &Descriptor) -> Result<Document, StoreError> {
        match self {
            Self::Registry(repository) => {
                let raw = repository.get_manifest(entry.digest.as_ref()).await?;
                Document::of_entry(entry, raw.bytes).map_err(|error| self.unusable(error))
            }
            Self::Layout(layout) => layout.document(entry).await,
            Self::Archive(archive) => Ok(archive.document(entry).await?),
            Self::Loose(loose) => Box::pin(loose.below.document(entry)).await,
        }
    }

    /// Reads and verifies a configuration or another small document that is stored as a blob.
    pub async fn read<T: DocumentType>(
        &self,
        blob: &Descriptor,
    ) -> Result<Verbatim<T>, StoreError> {
        self.check_size(blob, MAX_DOCUMENT)?;
        let bytes = match self {
            Self::Registry(repository) => repository.get_blob(blob, MAX_DOCUMENT).await?,
            Self::Layout(layout) => layout.read(&blob.digest).await?,
            Self::Archive(archive) => archive.read(&blob.digest).await?,
            Self::Loose(loose) => return Box::pin(loose.below.read(blob)).await,
        };
        Verbatim::of_blob(blob, bytes).map_err(|error| self.unusable(error))
    }

    /// Returns true if the manifest is that of an image, not of a chart, a signature or another
    /// artifact. The configuration is read if its type does not tell.
    pub async fn is_image(&self, manifest: &Manifest) -> Result<bool, StoreError> {
        match manifest.is_image_by_type() {
            Some(is_image) => Ok(is_image),
            None => {
                let config = self.bytes(&manifest.config, MAX_DOCUMENT).await?;
                Ok(ImageConfig::is_in(&config))
            }
        }
    }

    /// Returns an image: the manifest with its configuration.
    pub async fn image(&self, manifest: Verbatim<Manifest>) -> Result<Image, StoreError> {
        let config = self.read(&manifest.config).await?;
        Image::new(manifest, config).map_err(|error| self.unusable(error))
    }

    /// Returns true if the store has the blob. The content is not verified.
    pub async fn has_blob(&self, blob: &Descriptor) -> Result<bool, StoreError> {
        match self {
            Self::Registry(repository) => Ok(repository.has_described_blob(blob).await?),
            Self::Layout(layout) => Ok(layout.blob_path(&blob.digest).is_file()),
            Self::Archive(archive) => Ok(archive.has_blob(&blob.digest)),
            Self::Loose(loose) => {
                Ok(loose.get(&blob.digest).is_some()
                    || Box::pin(loose.below.has_blob(blob)).await?)
            }
        }
    }

    /// Returns true if a layout or archive does not have a document that it refers to. A registry
    /// has all.
    pub(crate) fn lacks(&self, entry: &Descriptor) -> bool {
        match self {
            Self::Registry(_) => false,
            Self::Layout(layout) => !layout.blob_path(&entry.digest).is_file(),
            Self::Archive(archive) => !archive.has_blob(&entry.digest),
            Self::Loose(loose) => loose.below.lacks(entry),
        }
    }

    /// Returns the blob's bytes for a sink, which verifies them.
    pub fn blob(&self, blob: &Descriptor) -> Result<BlobHandle, StoreError> {
        Ok(match self {
            Self::Registry(repository) => BlobHandle::Remote(Box::new(repository.blob(blob))),
            Self::Layout(layout) => BlobHandle::Local(Arc::new(layout.blob(blob))),
            Self::Archive(archive) => BlobHandle::Local(Arc::new(archive.blob(blob)?)),
            Self::Loose(loose) => match loose.get(&blob.digest) {
                Some(bytes) => BlobHandle::Local(Arc::clone(bytes)),
                None => loose.below.blob(blob)?,
            },
        })
    }

    /// Opens a reader of the blob that fails at the end unless the content matched; discard all
    /// results then.
    pub async fn open_blob(&self, blob: &Descriptor) -> Result<BlobReader, StoreError> {
        let opened = self.blob(blob)?.open(0).await;
        let verified = opened
            .map_err(|error| unreadable(blob, 0, error))
            .and_then(|reader| VerifyingReader::new(reader, blob));
        match verified {
            Ok(reader) => Ok(Box::pin(reader)),
            Err(source) => Err(self.unreadable(source)),
        }
    }

    /// Returns the digest of what a tag or digest refers to; `None` if not found, as in an archive,
    /// which has nothing beside its images.
    pub async fn head(&self, which: &str) -> Result<Option<Digest>, StoreError> {
        match self {
            Self::Registry(repository) => {
                let found = repository.head_manifest(which).await;
                let found = match found {
                    Err(error) if is_cosign_tag(which) => none_if_refused(error)?,
                    found => found?,
                };
                Ok(found.map(|found| found.digest))
            }
            Self::Layout(layout) => match which.parse::<Digest>() {
                Ok(digest) => Ok(Some(digest).filter(|it| layout.blob_path(it).is_file())),
                Err(_) => layout.resolve_tag(which).await,
            },
            Self::Archive(_) | Self::Loose(_) => Ok(None),
        }
    }

    /// Reads and verifies the artifacts attached to a manifest, of one type or of all. An archive
    /// cannot have artifacts.
    pub async fn artifacts(
        &self,
        subject: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Vec<Artifact>, StoreError> {
        match self {
            Self::Registry(repository) => Ok(repository.artifacts(subject, artifact_type).await?),
            Self::Layout(layout) => {
                let mut found = layout.artifacts(subject).await?;
                found.retain(|it| artifact_type.is_none_or(|kind| it.artifact_type() == kind));
                Ok(found)
            }
            Self::Archive(_) | Self::Loose(_) => Ok(Vec::new()),
        }
    }

    /// Lists the artifacts attached to a manifest; an entry is unverified until it is read.
    pub(crate) async fn referrers(&self, subject: &Digest) -> Result<Vec<Descriptor>, StoreError> {
        match self {
            Self::Registry(repository) => Ok(repository.referrers(subject, None).await?),
            Self::Layout(layout) => layout.referrers(subject).await,
            Self::Archive(_) | Self::Loose(_) => Ok(Vec::new()),
        }
    }

    /// Returns the artifact of such an entry; `None` if a registry lists it for another subject.
    pub(crate) async fn artifact(
        &self,
        entry: &Descriptor,
        subject: &Digest,
    ) -> Result<Option<Artifact>, StoreError> {
        match self {
            Self::Registry(repository) => Ok(repository.usable_artifact(entry, subject).await?),
            _ => Ok(Artifact::read(self.document(entry).await?)),
        }
    }

    /// Notes the listed artifacts that a registry lacks.
    pub(crate) fn note_missing(&self, missing: &[Digest], subject: &Digest) {
        if let Self::Registry(repository) = self {
            repository.note_missing(missing, subject);
        }
    }

    /// Reads and verifies a blob of at most `most` bytes.
    pub async fn bytes(&self, blob: &Descriptor, most: u64) -> Result<Bytes, StoreError> {
        self.check_size(blob, most)?;
        let mut reader = self.open_blob(blob).await?;
        let mut bytes = Vec::new();
        let read = reader.read_to_end(&mut bytes).await;
        read.map_err(|error| self.unreadable(unreadable(blob, bytes.len() as u64, error)))?;
        Ok(bytes.into())
    }

    fn check_size(&self, blob: &Descriptor, most: u64) -> Result<(), StoreError> {
        if blob.size <= most {
            return Ok(());
        }
        let (digest, size) = (&blob.digest, blob.size);
        let problem = format!("{digest} in {self} has {size} bytes: expected at most {most}");
        Err(Problem::new("image/document", problem).into())
    }

    fn verified(&self, raw: RawManifest) -> Result<Document, StoreError> {
        Document::verify(&raw.media_type, raw.bytes, &raw.digest)
            .map_err(|error| self.unusable(error))
    }

    fn unreadable(&self, source: Problem) -> StoreError {
        let place = self.to_string();
        StoreError::Blob { place, source }
    }

    fn unusable(&self, source: Problem) -> StoreError {
        Problem::context(format!("cannot use the content of {self}"), source).into()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry(repository) => repository.fmt(f),
            Self::Layout(layout) => write!(f, "oci:{}", layout.root().display()),
            Self::Archive(archive) => write!(f, "docker-archive:{}", archive.path().display()),
            Self::Loose(loose) => loose.below.fmt(f),
        }
    }
}

/// Layers in this process, above an image in a store.
#[derive(Clone)]
pub struct LooseLayers {
    blobs: HashMap<Digest, Arc<dyn BlobSource>>,
    below: Box<Source>,
}

impl LooseLayers {
    /// Layers by the digests of their blobs; all others are in `below`.
    pub fn new(blobs: HashMap<Digest, Arc<dyn BlobSource>>, below: Source) -> Self {
        Self {
            blobs,
            below: Box::new(below),
        }
    }

    fn get(&self, digest: &Digest) -> Option<&Arc<dyn BlobSource>> {
        self.blobs.get(digest)
    }
}

impl fmt::Debug for LooseLayers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LooseLayers")
            .field("blobs", &self.blobs.keys())
            .field("below", &self.below)
            .finish()
    }
}

/// A store that images are written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sink {
    /// A repository of a registry.
    Registry(Repository),
    /// An OCI layout directory.
    Layout(Layout),
    /// A docker-archive file, which appears when the sink is finished.
    Archive(ArchiveWriter),
}

impl Sink {
    /// Opens the store, or creates it.
    pub async fn create(
        location: &Location,
        registry: &RegistryClient,
    ) -> Result<Self, StoreError> {
        Ok(match location {
            Location::Registry(reference) => {
                Self::Registry(registry.repository(reference).for_push())
            }
            Location::Layout { dir, .. } => {
                let layout = Layout::create(dir).await?;
                Self::Layout(layout.with_progress(registry.http().shared_progress()))
            }
            Location::Archive { file, .. } => Self::Archive(ArchiveWriter::create(file)?),
        })
    }

    /// Returns the digest that a tag or digest refers to in a registry, which guarantees that all
    /// referenced content exists; `None` for other stores.
    pub(super) async fn published(&self, which: &str) -> Result<Option<Digest>, StoreError> {
        let Self::Registry(repository) = self else {
            return Ok(None);
        };
        let published = repository.head_manifest(which).await?;
        Ok(published.map(|published| published.digest))
    }

    /// Returns true if a registry has this document.
    pub(super) async fn is_published(&self, document: &Document) -> Result<bool, StoreError> {
        let digest = document.digest();
        Ok(self.published(digest.as_ref()).await?.as_ref() == Some(digest))
    }

    /// Returns true if the store has the complete blob.
    pub async fn has_blob(&self, blob: &Descriptor) -> Result<bool, StoreError> {
        match self {
            Self::Registry(repository) => Ok(repository.has_described_blob(blob).await?),
            Self::Layout(layout) => layout.has_blob(blob).await,
            Self::Archive(writer) => Ok(writer.has_blob(&blob.digest)),
        }
    }

    /// Stores a blob and verifies its digest.
    pub async fn put_blob(
        &self,
        blob: &Descriptor,
        source: &dyn BlobSource,
        task: &dyn Task,
    ) -> Result<(), StoreError> {
        match self {
            Self::Registry(repository) => {
                repository
                    .put_blob(&blob.digest, blob.size, source, task)
                    .await?;
            }
            Self::Layout(layout) => layout.put_blob(blob, source, task).await?,
            Self::Archive(writer) => writer.put_blob(blob, source, task).await?,
        }
        Ok(())
    }

    /// Copies a blob from another store. A layout keeps an interrupted download and resumes it next
    /// time.
    pub async fn copy_blob(
        &self,
        blob: &Descriptor,
        from: &BlobHandle,
        task: &dyn Task,
    ) -> Result<(), StoreError> {
        match (self, from.as_download()) {
            (Self::Layout(layout), Some(remote)) => {
                let path = layout.place_for(blob).await?;
                Ok(remote.download(&path, task).await?)
            }
            _ => self.put_blob(blob, from, task).await,
        }
    }

    /// Stores a manifest that an index will reference, untagged.
    pub async fn put_document(&self, document: &Document) -> Result<(), StoreError> {
        match self {
            Self::Registry(_) => {
                if !self.is_published(document).await? {
                    self.publish(document, None).await?;
                }
            }
            Self::Layout(layout) => layout.put_document(document).await?,
            Self::Archive(writer) => writer.put_document(document),
        }
        Ok(())
    }

    /// Publishes an image or an index whose content exists.
    pub async fn publish(&self, document: &Document, tag: Option<&str>) -> Result<(), StoreError> {
        match self {
            Self::Registry(repository) => {
                let which = tag.unwrap_or(document.digest().as_ref());
                let bytes = document.bytes().clone();
                repository
                    .put_manifest(which, document.media_type(), bytes)
                    .await?;
            }
            Self::Layout(layout) => {
                layout.put_document(document).await?;
                layout.tag(document.descriptor(), tag).await?;
            }
            Self::Archive(writer) => {
                writer.put_document(document);
                writer.tag(document.clone(), tag);
            }
        }
        Ok(())
    }

    /// Publishes under a tag if the tag still refers to `seen`, and returns true if it did. A
    /// layout is locked meanwhile; a registry cannot be locked and always publishes.
    pub async fn publish_if_unchanged(
        &self,
        document: &Document,
        tag: Option<&str>,
        seen: Option<&Digest>,
    ) -> Result<bool, StoreError> {
        match (self, tag) {
            (Self::Layout(layout), Some(tag)) => {
                layout.put_document(document).await?;
                layout
                    .tag_if_unchanged(document.descriptor(), tag, seen)
                    .await
            }
            _ => self.publish(document, tag).await.map(|()| true),
        }
    }

    /// Attaches an artifact, whose content is stored, to its subject. An archive cannot have
    /// artifacts.
    pub async fn attach(&self, artifact: &Artifact) -> Result<(), StoreError> {
        match self {
            Self::Registry(repository) => Ok(repository.attach(artifact).await?),
            Self::Layout(layout) => layout.attach(artifact).await,
            Self::Archive(_) => Ok(()),
        }
    }

    /// Returns the store as a source; `None` for an archive, which cannot be read while it is
    /// written.
    pub fn as_source(&self) -> Option<Source> {
        match self {
            Self::Registry(repository) => Some(Source::Registry(repository.clone())),
            Self::Layout(layout) => Some(Source::Layout(layout.clone())),
            Self::Archive(_) => None,
        }
    }

    /// Returns true if another process can publish between a check of the tag and the write.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Registry(_))
    }

    /// Finishes writing; has an effect only for archives.
    pub async fn finish(&self) -> Result<(), StoreError> {
        match self {
            Self::Registry(_) | Self::Layout(_) => Ok(()),
            Self::Archive(writer) => Ok(writer.finish().await?),
        }
    }
}

impl fmt::Display for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Registry(repository) => repository.fmt(f),
            Self::Layout(layout) => write!(f, "oci:{}", layout.root().display()),
            Self::Archive(writer) => write!(f, "docker-archive:{}", writer.path().display()),
        }
    }
}
