//! An OCI image layout: a directory that holds images as files named by their digests.
//!
//! Every file is written under a temporary name and renamed, and `index.json` is replaced last, so
//! that an interrupted run leaves complete blobs for the next run and no dangling references.
//! Existing blobs are verified and kept.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::{fmt, fs, io};

use bytes::Bytes;
use serde_json::{Value, json};
use wincimg_common::diagnose::{Problem, error_chain};
use wincimg_common::files;
use wincimg_common::lock;
use wincimg_common::progress::{Progress, Silent, Task};
use wincimg_common::shell::quote;

use super::document::{
    Artifact, Descriptor, Digest, Document, EMPTY, Index, MAX_DOCUMENT, ManifestFormat, Verbatim,
    media_type, sha256, subject_in,
};
use super::local_images::LAYOUT;
use super::remote::{BlobSource, not_attached, tag_of};
use super::store::StoreError;
use super::stream::{self, FileRange};

mod entries;

pub(super) use entries::{
    IMAGE_NAME, REF_NAME, Selection, find_saved, find_tag, images, is_ambiguous, put_entry, select,
};

/// Larger than the index of any real layout, which has one entry for each image.
const MAX_INDEX: u64 = 64 * 1024 * 1024;

/// Maximum number of artifacts in a layout.
const MOST_ARTIFACTS: usize = 10_000;

/// An OCI image layout on disk.
#[derive(Clone)]
pub struct Layout {
    root: PathBuf,
    progress: Arc<dyn Progress>,
    /// Missing and damaged artifacts that this value or its clones already reported.
    reported: Arc<Mutex<HashSet<Digest>>>,
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Layout").field(&self.root).finish()
    }
}

impl PartialEq for Layout {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root
    }
}

impl Eq for Layout {}

fn layout_hint(path: &Path) -> String {
    if path.is_file() {
        let archive = quote(&format!("docker-archive:{}", path.display()));
        format!("for a file from docker save or wincimg, type {archive}")
    } else {
        "oci: requires a folder with index.json and oci-layout, as written by `wincimg build --output oci:DIR`"
            .to_owned()
    }
}

impl Layout {
    /// Opens an existing layout.
    pub async fn open(root: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let layout = Self::new(root.into());
        layout.blocking(Self::check).await?;
        Ok(layout)
    }

    /// Opens a layout, or creates an empty one. Refuses a directory with other content.
    pub async fn create(root: impl Into<PathBuf>) -> Result<Self, StoreError> {
        let layout = Self::new(root.into());
        layout.blocking(Self::make).await?;
        Ok(layout)
    }

    fn new(root: PathBuf) -> Self {
        Self {
            root,
            progress: Arc::new(Silent),
            reported: Arc::default(),
        }
    }

    /// Sets the display of waits for other processes.
    #[must_use]
    pub fn with_progress(self, progress: Arc<dyn Progress>) -> Self {
        Self { progress, ..self }
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Reads the layout's `index.json`.
    pub async fn index(&self) -> Result<Index, StoreError> {
        self.blocking(|layout| Ok(layout.read_index()?.into_value()))
            .await
    }

    /// Returns the image or index with this tag or digest; without one, the only image, or the index
    /// that has all others.
    pub async fn resolve(&self, which: Option<&str>) -> Result<Document, StoreError> {
        let index = self.index().await?;
        let descriptor = match select(&index, which) {
            Selection::Found(descriptor) => descriptor,
            // A child of an index has no entry of its own, but can be requested by digest.
            Selection::NotFound { known } => match which.and_then(|which| which.parse().ok()) {
                Some(digest) if self.blob_path(&digest).is_file() => {
                    let bytes = self.read(&digest).await?;
                    return Document::verify("", bytes, &digest)
                        .map_err(|source| self.unusable(&digest, source));
                }
                _ => {
                    let problem = LAYOUT.not_found(&self.root, which, &known);
                    return Err(StoreError::NotFound(problem));
                }
            },
            Selection::Several { known } => {
                let root = match which {
                    None => self.root_index(&index).await?,
                    Some(_) => None,
                };
                return root.ok_or_else(|| LAYOUT.several_images(&self.root, &known).into());
            }
        };
        self.document(descriptor).await
    }

    /// The index that has all other images of the layout, as a build for several hosts writes it.
    async fn root_index(&self, layout: &Index) -> Result<Option<Document>, StoreError> {
        let indexes = images(layout).filter(|entry| media_type::is_index(&entry.media_type));
        for entry in indexes {
            let document = self.document(entry).await?;
            let Document::Index(index) = &document else {
                continue;
            };
            let is_covered = |other: &Descriptor| {
                let mut parts = index.manifests.iter();
                other.digest == entry.digest || parts.any(|part| part.digest == other.digest)
            };
            if images(layout).all(is_covered) {
                return Ok(Some(document));
            }
        }
        Ok(None)
    }

    /// Returns the manifest or index of an index's entry.
    pub async fn document(&self, entry: &Descriptor) -> Result<Document, StoreError> {
        let bytes = self.read(&entry.digest).await?;
        Document::of_entry(entry, bytes).map_err(|source| self.unusable(&entry.digest, source))
    }

    fn unusable(&self, digest: &Digest, source: Problem) -> StoreError {
        let path = self.blob_path(digest);
        LAYOUT.document(path.display(), source).into()
    }

    /// Reads a small blob whole. The digest is checked by the parser.
    pub async fn read(&self, digest: &Digest) -> Result<Bytes, StoreError> {
        let digest = digest.clone();
        self.blocking(move |layout| layout.read_small(&digest))
            .await
    }

    /// Path of a blob in the layout.
    pub fn blob_path(&self, digest: &Digest) -> PathBuf {
        self.blob_dir(digest).join(digest.digest())
    }

    fn blob_dir(&self, digest: &Digest) -> PathBuf {
        self.root.join("blobs").join(digest.algorithm())
    }

    /// Returns the path of a blob and creates its directory. The user named the layout, but whoever
    /// made a link in it would decide where the blob is written.
    fn create_place(&self, digest: &Digest) -> Result<PathBuf, StoreError> {
        let dir = self.blob_dir(digest);
        if let Some(link) = dir.ancestors().take(2).find(|inside| inside.is_symlink()) {
            let (root, link) = (self.root.display(), link.display());
            let problem = format!("did not write to {root}: {link} is a link");
            return Err(Problem::request("output/write", problem)
                .hint("remove the link, or write to another folder")
                .into());
        }
        files::create_folder(&dir).map_err(stream::unwritable(&dir))?;
        Ok(self.blob_path(digest))
    }

    /// Same as `create_place`; the caller writes the verified blob.
    pub(super) async fn place_for(&self, blob: &Descriptor) -> Result<PathBuf, StoreError> {
        let digest = blob.digest.clone();
        self.blocking(move |layout| layout.create_place(&digest))
            .await
    }

    /// Returns the bytes of a blob, not verified.
    pub fn blob(&self, blob: &Descriptor) -> FileRange {
        FileRange::whole(self.blob_path(&blob.digest), blob)
    }

    /// Returns true if the blob exists and matches its digest.
    pub async fn has_blob(&self, blob: &Descriptor) -> Result<bool, StoreError> {
        let blob = blob.clone();
        self.blocking(move |layout| {
            let path = layout.blob_path(&blob.digest);
            Ok(stream::contains_blob(&path, &blob)?)
        })
        .await
    }

    /// Stores a blob.
    pub async fn put_blob(
        &self,
        blob: &Descriptor,
        source: &dyn BlobSource,
        task: &dyn Task,
    ) -> Result<(), StoreError> {
        let path = self.create_place(&blob.digest)?;
        let mut draft = stream::draft_in(&self.blob_dir(&blob.digest))?;
        stream::write_blob(source, blob, draft.file(), &path, LAYOUT.code, task).await?;
        Ok(stream::persist(draft, &path)?)
    }

    /// Stores a manifest or an index as a blob, untagged.
    pub async fn put_document(&self, document: &Document) -> Result<(), StoreError> {
        let descriptor = document.descriptor();
        let bytes = document.bytes().clone();
        self.blocking(move |layout| {
            let path = layout.blob_path(&descriptor.digest);
            if stream::contains_blob(&path, &descriptor)? {
                return Ok(());
            }
            let path = layout.create_place(&descriptor.digest)?;
            Ok(stream::write_atomically(&path, &bytes)?)
        })
        .await
    }

    /// Lists a stored manifest or index, with or without a tag. The tag's previous entry is
    /// removed.
    pub async fn tag(&self, descriptor: Descriptor, tag: Option<&str>) -> Result<(), StoreError> {
        let tag = tag.map(str::to_owned);
        self.blocking(move |layout| {
            let _lock = layout.lock()?;
            layout.put(descriptor, tag.as_deref())
        })
        .await
    }

    /// Tags like [`Layout::tag`], if the tag still refers to `seen`; otherwise changes nothing and
    /// returns false.
    pub(crate) async fn tag_if_unchanged(
        &self,
        descriptor: Descriptor,
        tag: &str,
        seen: Option<&Digest>,
    ) -> Result<bool, StoreError> {
        let (tag, seen) = (tag.to_owned(), seen.cloned());
        self.blocking(move |layout| {
            let _lock = layout.lock()?;
            if find_tag(&*layout.read_index()?, &tag) != seen.as_ref() {
                return Ok(false);
            }
            layout.put(descriptor, Some(&tag))?;
            Ok(true)
        })
        .await
    }

    /// Lists an artifact whose content is stored, and stores the empty configuration.
    pub async fn attach(&self, artifact: &Artifact) -> Result<(), StoreError> {
        let empty = sha256(EMPTY);
        self.put_document(artifact.document()).await?;
        let entry = artifact.entry();
        let is_empty = artifact.has_empty_config();
        self.blocking(move |layout| {
            if is_empty && !layout.blob_path(&empty).is_file() {
                stream::write_atomically(&layout.create_place(&empty)?, EMPTY)?;
            }
            let _lock = layout.lock()?;
            layout.put(entry, None)
        })
        .await
    }

    /// Returns the artifacts attached to a manifest that the layout lists and has.
    pub async fn artifacts(&self, subject: &Digest) -> Result<Vec<Artifact>, StoreError> {
        let mut found = Vec::new();
        for entry in self.referrers(subject).await? {
            match self.document(&entry).await {
                Ok(document) => found.extend(Artifact::read(document)),
                Err(error) => {
                    let note = not_attached(&entry, subject, &error_chain(&error));
                    self.progress.note(&note);
                }
            }
        }
        Ok(found)
    }

    /// Lists the artifacts attached to a manifest that the layout has: those in `index.json`, and
    /// those in a list under the manifest's tag, as regctl writes it. An entry is unverified until
    /// it is read.
    pub(crate) async fn referrers(&self, subject: &Digest) -> Result<Vec<Descriptor>, StoreError> {
        let subject = subject.clone();
        self.blocking(move |layout| layout.find_referrers(&subject))
            .await
    }

    fn find_referrers(&self, subject: &Digest) -> Result<Vec<Descriptor>, StoreError> {
        let index = self.read_index()?;
        let under_tag = match find_tag(&index, &tag_of(subject)) {
            Some(digest) => {
                Verbatim::<Index>::verify(self.read_small(digest)?, digest)
                    .map_err(|source| self.unusable(digest, source))?
                    .into_value()
                    .manifests
            }
            None => Vec::new(),
        };
        let under_tag = under_tag.iter().map(|entry| (entry, true));
        let entries = index.manifests.iter();
        // Not every tool states an artifact's type here.
        let entries = entries.map(|entry| (entry, entry.artifact_type().is_some()));
        let mut seen = HashSet::new();
        let listed = under_tag
            .chain(entries)
            .filter(|(entry, _)| seen.insert(&entry.digest));
        Ok(listed
            .take(MOST_ARTIFACTS)
            .filter_map(|(entry, is_artifact)| self.attached_entry(entry, is_artifact, subject))
            .collect())
    }

    /// Returns the complete entry of an artifact if that is attached to the manifest. One that is
    /// damaged may have been attached to any.
    fn attached_entry(
        &self,
        entry: &Descriptor,
        is_artifact: bool,
        subject: &Digest,
    ) -> Option<Descriptor> {
        let is_first = || is_artifact && lock(&self.reported).insert(entry.digest.clone());
        if !self.blob_path(&entry.digest).is_file() {
            if is_first() {
                let reason = format!("{} does not have it", self.root.display());
                let note = not_attached(entry, &"one of its images", &reason);
                self.progress.note(&note);
            }
            return None;
        }
        let bytes = self.read_small(&entry.digest).ok();
        let stated = bytes.as_ref().and_then(|bytes| subject_in(bytes).ok());
        let Some(stated) = stated else {
            return is_first().then(|| entry.clone());
        };
        if stated.as_ref() != Some(subject) {
            return None;
        }
        let document = Document::of_entry(entry, bytes?).ok();
        let artifact = document.and_then(Artifact::read);
        Some(artifact.map_or_else(|| entry.clone(), |artifact| artifact.entry()))
    }

    pub(crate) async fn resolve_tag(&self, tag: &str) -> Result<Option<Digest>, StoreError> {
        let index = self.index().await?;
        self.check_tag(&index, tag)?;
        let found = find_tag(&index, tag).or_else(|| find_saved(&index, tag));
        Ok(found.cloned())
    }

    /// Tags of the images and indexes that the layout lists, with their entries.
    pub(crate) async fn tags(&self) -> Result<Vec<(String, Descriptor)>, StoreError> {
        let index = self.index().await?;
        let entries = index.manifests.into_iter();
        let tags = entries.filter_map(|entry| {
            let tag = entry.annotations.get(REF_NAME)?.clone();
            Some((tag, entry))
        });
        Ok(tags.collect())
    }

    /// Removes a tag of a digest from the index, or without one every entry of the digest. Blobs
    /// stay: another process may be about to list them.
    pub(crate) async fn remove(
        &self,
        digest: &Digest,
        tag: Option<String>,
    ) -> Result<(), StoreError> {
        let digest = digest.clone();
        self.blocking(move |layout| {
            let _lock = layout.lock()?;
            layout.edit_index(|index| {
                index.manifests.retain(|entry| {
                    let is_tag = tag.is_none() || entry.annotations.get(REF_NAME) == tag.as_ref();
                    entry.digest != digest || !is_tag
                });
            })
        })
        .await
    }

    /// Returns true if the directory is a layout.
    pub fn is_at(root: &Path) -> bool {
        root.join("oci-layout").is_file()
    }

    /// The tag of each entry in the layout of a directory; none if it is not one, or states more than
    /// this program writes.
    pub fn own_tags_at(root: &Path) -> Option<Vec<Option<String>>> {
        let layout = Self::new(root.to_owned());
        layout.check().ok()?;
        let index = layout.read_index().ok()?;
        let is_own = |entry: &Descriptor| entry.annotations.keys().all(|key| key == REF_NAME);
        let entries = index.manifests.iter();
        let tags =
            entries.map(|entry| is_own(entry).then(|| entry.annotations.get(REF_NAME).cloned()));
        index.media_type.as_ref()?;
        tags.collect()
    }

    /// Adds a stored document to the index; the caller holds the lock.
    fn put(&self, descriptor: Descriptor, tag: Option<&str>) -> Result<(), StoreError> {
        if let Some(tag) = tag {
            self.check_tag(&*self.read_index()?, tag)?;
        }
        self.edit_index(|index| put_entry(index, descriptor, tag))
    }

    /// Rejects a tag of several images, as `docker save` writes them, of which none would stay.
    fn check_tag(&self, index: &Index, tag: &str) -> Result<(), StoreError> {
        if !is_ambiguous(index, tag) {
            return Ok(());
        }
        let root = self.root.display();
        let problem = format!("{root} has several images with the tag {tag}, which would be lost");
        Err(Problem::answer("tag/taken", problem)
            .hint("choose another tag or another folder")
            .into())
    }

    /// Edits the index; the caller holds the lock.
    fn edit_index(&self, edit: impl FnOnce(&mut Index)) -> Result<(), StoreError> {
        let path = self.root.join("index.json");
        let index = self.read_index()?;
        let changed = index.edit(edit);
        let changed = changed.map_err(|source| LAYOUT.document(path.display(), source))?;
        if changed.digest() != index.digest() {
            stream::write_atomically(&path, changed.bytes())?;
        }
        Ok(())
    }

    /// Runs file operations on a thread of their own, so that transfers continue.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let layout = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&layout)).await;
        done.map_err(|error| LAYOUT.unreadable(&self.root)(io::Error::other(error)))?
    }

    fn check(&self) -> Result<(), StoreError> {
        let path = self.root.join("oci-layout");
        let header = match files::read(&path, MAX_DOCUMENT) {
            Ok(header) => header,
            Err(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                    let reason = match (self.root.exists(), self.root.is_dir()) {
                        (true, true) => "it has no file oci-layout",
                        (true, false) => "it is a file",
                        (false, _) => "it does not exist",
                    };
                    return Err(self.not_a_layout(reason));
                }
                _ => return Err(LAYOUT.unreadable(&path)(error).into()),
            },
        };
        let version = serde_json::from_slice::<Value>(&header)
            .ok()
            .and_then(|header| Some(header.get("imageLayoutVersion")?.as_str()?.to_owned()));
        match version {
            Some(version) if version.starts_with("1.") => Ok(()),
            Some(version) => {
                Err(self.not_a_layout(format!("its version is {version}, expected 1.0.0")))
            }
            None => Err(self.not_a_layout("its file oci-layout is damaged")),
        }
    }

    fn not_a_layout(&self, reason: impl fmt::Display) -> StoreError {
        let problem = LAYOUT.invalid(&self.root, reason);
        problem.hint(layout_hint(&self.root)).into()
    }

    fn make(&self) -> Result<(), StoreError> {
        let header = self.root.join("oci-layout");
        if header.exists() {
            return self.check();
        }
        if let Some(find_foreign_file) = self.find_foreign_file()? {
            let reason = format!("it has no file oci-layout, but {find_foreign_file}");
            return Err(self.not_a_layout(reason));
        }
        let index = self.root.join("index.json");
        let empty = Verbatim::new(Index::new(ManifestFormat::Oci, Vec::new()));
        let empty = empty.map_err(|source| LAYOUT.document(index.display(), source))?;
        // The marker comes last: a directory that has it is a complete layout. Another process may
        // be creating the same layout and be ahead.
        stream::write_if_new(&index, empty.bytes())?;
        let marker = json!({"imageLayoutVersion": "1.0.0"}).to_string();
        Ok(stream::write_if_new(&header, marker.as_bytes())?)
    }

    /// Returns a file that an unfinished layout cannot contain.
    fn find_foreign_file(&self) -> Result<Option<String>, StoreError> {
        let entries = match fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(LAYOUT.unreadable(&self.root)(error).into()),
        };
        let known = |name: &str| {
            matches!(name, "blobs" | "index.json" | "oci-layout") || files::is_draft(name)
        };
        Ok(entries
            .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
            .find(|name| !known(name)))
    }

    fn read_index(&self) -> Result<Verbatim<Index>, StoreError> {
        let path = self.root.join("index.json");
        let bytes = files::find_again(&self.root, || files::read(&path, MAX_INDEX))
            .map_err(LAYOUT.unreadable(&path))?;
        Verbatim::parse(bytes.into())
            .map_err(|source| LAYOUT.document(path.display(), source).into())
    }

    pub(super) fn read_small(&self, digest: &Digest) -> Result<Bytes, StoreError> {
        let path = self.blob_path(digest);
        let unusable = |problem: String| StoreError::from(LAYOUT.unusable(&self.root, problem));
        let size = match fs::metadata(&path) {
            Ok(data) => data.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(unusable(format!("lacks {digest}")));
            }
            Err(error) => return Err(LAYOUT.unreadable(&path)(error).into()),
        };
        if size > MAX_DOCUMENT {
            return Err(unusable(format!(
                "has {digest} with {size} bytes: expected a document of at most {MAX_DOCUMENT}"
            )));
        }
        let bytes = FileRange::new(&path, 0, size)
            .read()
            .map_err(LAYOUT.unreadable(&path))?;
        Ok(bytes.into())
    }

    /// Prevents other processes from changing `index.json` between read and write. `None` where the
    /// file system has no locks, and after a long wait: there the last one wins.
    fn lock(&self) -> Result<Option<fs::File>, StoreError> {
        let path = self.root.join("oci-layout");
        let file = files::find_again(&self.root, || files::open(&path))
            .map_err(LAYOUT.unreadable(&path))?;
        // NFS locks only files that are open for writing.
        let writable = fs::File::options().read(true).append(true).open(&path);
        let file = writable.unwrap_or(file);
        match files::lock_file(&file, &self.root, self.progress.as_ref()) {
            Ok(is_held) => Ok(is_held.then_some(file)),
            Err(error) => {
                tracing::debug!(%error, path = %path.display(), "no lock");
                Ok(None)
            }
        }
    }
}
