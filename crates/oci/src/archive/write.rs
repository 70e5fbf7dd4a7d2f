//! Writes a docker-archive. Blobs are collected in unnamed files on the same disk, then packed in
//! sorted order: transfers run in parallel, and the same images give the same bytes.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use serde_json::json;
use tokio::io::AsyncReadExt;
use wincimg_common::diagnose::Problem;
use wincimg_common::files::{self, BufferedBlob, Spool};
use wincimg_common::lock;
use wincimg_common::progress::Task;

use super::format::{SavedImage, blob_member};
use crate::document::{
    Descriptor, Digest, Document, ImageConfig, Index, MAX_DOCUMENT, Manifest, ManifestFormat,
    Verbatim, media_type,
};
use crate::layout::{IMAGE_NAME, REF_NAME};
use crate::local_images::ARCHIVE;
use crate::reference::parse_reference;
use crate::remote::BlobSource;
use crate::stream;
use crate::stream::VerifyingReader;

/// Larger blobs are spooled to disk.
const IN_MEMORY: u64 = 256 * 1024;

/// A docker-archive being written; the file appears on [`ArchiveWriter::finish`].
#[derive(Debug, Clone)]
pub struct ArchiveWriter(Arc<PendingArchive>);

/// Equal if they write to the same path.
impl PartialEq for ArchiveWriter {
    fn eq(&self, other: &Self) -> bool {
        self.0.path == other.0.path
    }
}

impl Eq for ArchiveWriter {}

#[derive(Debug)]
struct PendingArchive {
    path: PathBuf,
    /// Keyed by name in the archive.
    blobs: Mutex<BTreeMap<String, Arc<BufferedBlob>>>,
    images: Mutex<Vec<(Document, Option<String>)>>,
}

impl ArchiveWriter {
    /// Starts an archive that replaces the file at `path`.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, Problem> {
        let path = path.into();
        fs::metadata(files::folder_of(&path)).map_err(stream::unwritable(&path))?;
        Ok(Self(Arc::new(PendingArchive {
            path,
            blobs: Mutex::default(),
            images: Mutex::default(),
        })))
    }

    /// The path of the finished file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns true if the blob was added; blobs are verified when added.
    pub fn has_blob(&self, digest: &Digest) -> bool {
        self.blobs().contains_key(&blob_member(digest))
    }

    /// Adds a blob and verifies its digest.
    pub async fn put_blob(
        &self,
        blob: &Descriptor,
        source: &dyn BlobSource,
        task: &dyn Task,
    ) -> Result<(), Problem> {
        let held = if blob.size <= IN_MEMORY {
            let of_source = |problem: Problem| problem.code(ARCHIVE.code);
            let unreadable = |error| of_source(stream::unreadable(blob, 0, error));
            let reader = source.open(0).await.map_err(unreadable)?;
            let mut bytes = Vec::new();
            let reader = VerifyingReader::new(reader, blob).map_err(of_source)?;
            let mut reader = reader.take(IN_MEMORY + 1);
            reader.read_to_end(&mut bytes).await.map_err(unreadable)?;
            task.advance(bytes.len() as u64);
            BufferedBlob::Memory(bytes.into())
        } else {
            let path = &self.0.path;
            let spool = Spool::in_folder(&spool_folder(path));
            let spool = spool.map_err(stream::unwritable(path))?;
            stream::write_blob(source, blob, spool.file(), path, ARCHIVE.code, task).await?;
            BufferedBlob::Disk(spool)
        };
        self.hold(&blob.digest, held);
        Ok(())
    }

    /// Adds a manifest or an index.
    pub fn put_document(&self, document: &Document) {
        let bytes = document.bytes().clone();
        self.hold(document.digest(), BufferedBlob::Memory(bytes));
    }

    fn hold(&self, digest: &Digest, held: BufferedBlob) {
        self.blobs().insert(blob_member(digest), Arc::new(held));
    }

    fn blobs(&self) -> MutexGuard<'_, BTreeMap<String, Arc<BufferedBlob>>> {
        lock(&self.0.blobs)
    }

    /// Lists an image or index whose parts were added, under a name such as `app:1.4`.
    pub fn tag(&self, document: Document, name: Option<&str>) {
        let mut images = self.images();
        images.retain(|(old, old_name)| {
            let same_name = old_name.as_deref() == name && name.is_some();
            let same_content = old_name.is_none() && old.digest() == document.digest();
            !same_name && !same_content
        });
        images.push((document, name.map(str::to_owned)));
    }

    /// Packs the archive and renames it to its path.
    pub async fn finish(&self) -> Result<(), Problem> {
        self.blocking(Self::pack).await
    }

    /// Packs the archive into a temporary file, instead of one at its path.
    pub async fn finish_unnamed(&self) -> Result<Spool, Problem> {
        self.blocking(|writer| {
            let path = &writer.0.path;
            let failed = stream::unwritable(path);
            let spool = Spool::in_folder(files::folder_of(path)).map_err(&failed)?;
            let documents = writer.documents()?;
            let packed = writer.pack_into(spool.file(), &documents);
            packed.map_err(failed)?;
            Ok(spool)
        })
        .await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let writer = self.clone();
        let done = tokio::task::spawn_blocking(move || work(&writer)).await;
        done.map_err(|error| stream::unwritable(&self.0.path)(io::Error::other(error)))?
    }

    fn images(&self) -> MutexGuard<'_, Vec<(Document, Option<String>)>> {
        lock(&self.0.images)
    }

    fn pack(&self) -> Result<(), Problem> {
        let path = &self.0.path;
        let documents = self.documents()?;
        files::replace(path, |file| self.pack_into(file, &documents))
            .map_err(stream::unwritable(path))?;
        Ok(())
    }

    /// The documents that list the images.
    fn documents(&self) -> Result<[(&'static str, Bytes); 3], Problem> {
        let mut images = self.images().clone();
        images.sort_by(|a, b| (&a.1, a.0.digest().as_ref()).cmp(&(&b.1, b.0.digest().as_ref())));
        let index = Verbatim::new(Index::new(
            ManifestFormat::Oci,
            images.iter().map(entry).collect(),
        ))
        .map_err(|source| self.unusable("index.json", source))?;
        let saved = serde_json::to_vec(&self.saved_images(&images)?)
            .map_err(|error| stream::unwritable(&self.0.path)(error.into()))?;
        let header = json!({"imageLayoutVersion": "1.0.0"}).to_string();
        Ok([
            ("oci-layout", header.into()),
            ("index.json", index.bytes().clone()),
            ("manifest.json", saved.into()),
        ])
    }

    fn pack_into(&self, file: &fs::File, documents: &[(&str, Bytes)]) -> io::Result<()> {
        let mut tar = tar::Builder::new(io::BufWriter::new(file));
        for (name, bytes) in documents {
            tar.append_data(&mut file_header(bytes.len() as u64), name, &bytes[..])?;
        }
        // Each blob is deleted once packed, so that the disk holds little more than one copy.
        let mut blobs = std::mem::take(&mut *self.blobs());
        while let Some((name, held)) = blobs.pop_first() {
            append(&mut tar, &name, &held)?;
        }
        tar.into_inner()?.flush()
    }

    /// Returns the entries of `manifest.json`: one for each image, including those of an index.
    /// `docker load` does not support indexes, so an index's name goes to its image if it has only
    /// one.
    fn saved_images(
        &self,
        images: &[(Document, Option<String>)],
    ) -> Result<Vec<SavedImage>, Problem> {
        let mut names: BTreeMap<String, (Verbatim<Manifest>, Vec<String>)> = BTreeMap::new();
        for (document, name) in images {
            let mut found = BTreeMap::new();
            self.add_images(document, &mut found)?;
            let name = name.as_ref().filter(|_| found.len() == 1);
            for (digest, manifest) in found {
                let (_, known) = names.entry(digest).or_insert((manifest, Vec::new()));
                known.extend(name.cloned());
            }
        }
        names
            .into_values()
            .map(|(manifest, names)| self.saved_image(&manifest, names))
            .collect()
    }

    /// Adds the images of a document and of the indexes in it, by digest. An attestation has the
    /// form of an image, but `docker load` rejects it.
    fn add_images(
        &self,
        document: &Document,
        found: &mut BTreeMap<String, Verbatim<Manifest>>,
    ) -> Result<(), Problem> {
        match document {
            Document::Manifest(manifest) => {
                let is_image = match manifest.is_image_by_type() {
                    Some(is_image) => is_image,
                    None => ImageConfig::is_in(&self.held_bytes(&manifest.config.digest)?),
                };
                if is_image {
                    found.insert(manifest.digest().to_string(), (**manifest).clone());
                }
            }
            Document::Index(index) => {
                let entries = index.manifests.iter().filter(|entry| {
                    let media_type = &entry.media_type;
                    let is_document =
                        media_type::is_manifest(media_type) || media_type::is_index(media_type);
                    is_document && entry.attested().is_none()
                });
                for entry in entries {
                    let document = Document::of_entry(entry, self.held_bytes(&entry.digest)?)
                        .map_err(|source| self.unusable(entry.digest.as_ref(), source))?;
                    self.add_images(&document, found)?;
                }
            }
        }
        Ok(())
    }

    fn saved_image(
        &self,
        manifest: &Verbatim<Manifest>,
        names: Vec<String>,
    ) -> Result<SavedImage, Problem> {
        let digest = &manifest.config.digest;
        let config = Verbatim::<ImageConfig>::verify(self.held_bytes(digest)?, digest)
            .map_err(|source| self.unusable(digest.as_ref(), source))?;
        let layer_sources = manifest
            .layers
            .iter()
            .zip(&config.rootfs.diff_ids)
            .filter(|(layer, _)| media_type::is_foreign(&layer.media_type))
            .map(|(layer, diff_id)| {
                let source = json!({
                    "mediaType": layer.media_type, "size": layer.size,
                    "digest": layer.digest, "urls": layer.urls,
                });
                (diff_id.to_string(), source)
            })
            .collect();
        Ok(SavedImage {
            config: blob_member(digest),
            repo_tags: Some(names),
            layers: Some(
                manifest
                    .layers
                    .iter()
                    .map(|layer| blob_member(&layer.digest))
                    .collect(),
            ),
            layer_sources,
        })
    }

    fn held_bytes(&self, digest: &Digest) -> Result<Bytes, Problem> {
        let held = self.blobs().get(&blob_member(digest)).cloned();
        let bytes = held.map_or_else(|| Ok(Bytes::new()), |held| held.bytes(MAX_DOCUMENT));
        bytes.map_err(stream::unwritable(&self.0.path))
    }

    fn unusable(&self, member: &str, source: Problem) -> Problem {
        let path = self.0.path.display();
        ARCHIVE.document(format!("{member} in {path}"), source)
    }
}

/// An image's entry in `index.json`, with the annotations that Docker and containerd look for.
fn entry((document, name): &(Document, Option<String>)) -> Descriptor {
    let mut entry = document.descriptor();
    if let Some(name) = name {
        let reference = parse_reference(name).ok();
        let tag = reference.as_ref().and_then(|reference| reference.tag());
        entry
            .annotations
            .insert(REF_NAME.to_owned(), tag.unwrap_or(name).to_owned());
        let full = reference.as_ref().map_or(name.clone(), ToString::to_string);
        entry.annotations.insert(IMAGE_NAME.to_owned(), full);
    }
    entry
}

/// The folder for blobs: that of the archive, unless this is a device or a pipe.
fn spool_folder(path: &Path) -> PathBuf {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return std::env::temp_dir();
    }
    files::folder_of(path).to_owned()
}

fn file_header(size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_size(size);
    header.set_mode(0o644);
    header.set_mtime(0);
    header
}

fn append<W: Write>(tar: &mut tar::Builder<W>, name: &str, held: &BufferedBlob) -> io::Result<()> {
    match held {
        BufferedBlob::Memory(bytes) => {
            tar.append_data(&mut file_header(bytes.len() as u64), name, &bytes[..])
        }
        BufferedBlob::Disk(spool) => {
            let file = files::open(spool.path())?;
            let size = file.metadata()?.len();
            tar.append_data(&mut file_header(size), name, file)
        }
    }
}
