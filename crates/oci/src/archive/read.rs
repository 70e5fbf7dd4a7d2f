//! Reads a docker-archive in place: one scan of the tar records the position of each member.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use wincimg_common::diagnose::Problem;
use wincimg_common::files;
use wincimg_common::shell::{command_line, quote};

use super::format::{Members, SavedImage, blob_member, normalised};
use crate::document::{
    Descriptor, Digest, Document, Hasher, ImageConfig, Index, MAX_DOCUMENT, Manifest,
    ManifestFormat, Verbatim, sha256,
};
use crate::layout::{IMAGE_NAME, Selection, select};
use crate::local_images::ARCHIVE;
use crate::stream::FileRange;

/// A docker-archive opened for reading.
#[derive(Debug, Clone)]
pub struct DockerArchive(Arc<Contents>);

#[derive(Debug)]
struct Contents {
    path: PathBuf,
    members: Members<FilePlace>,
    index: Index,
    /// Blobs of an older archive, whose members are not named by digest.
    blobs: HashMap<Digest, Blob>,
}

#[derive(Debug)]
enum Blob {
    Member(String),
    Made(Bytes),
    /// Stands for the manifest of an image that cannot be read; reading it reports why.
    Unreadable(SavedImage),
}

/// Blobs of one image.
type Blobs = Vec<(Digest, Blob)>;

impl DockerArchive {
    /// Opens an archive and reads its table of contents.
    pub async fn open(path: impl Into<PathBuf>) -> Result<Self, Problem> {
        let path = path.into();
        let opened = path.clone();
        match tokio::task::spawn_blocking(move || Contents::read(opened)).await {
            Ok(contents) => Ok(Self(Arc::new(contents?))),
            Err(error) => Err(ARCHIVE.unreadable(&path)(io::Error::other(error))),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns the image or index with this name, tag or digest; without one, the only image.
    pub async fn resolve(&self, which: Option<&str>) -> Result<Document, Problem> {
        let path = &self.0.path;
        match select(&self.0.index, which) {
            Selection::Found(entry) => self.document(entry).await,
            Selection::Several { known } => Err(ARCHIVE.several_images(path, &known)),
            Selection::NotFound { known } => {
                match which.and_then(|which| which.parse::<Digest>().ok()) {
                    Some(digest) if self.has_blob(&digest) => {
                        let bytes = self.read(&digest).await?;
                        Document::verify("", bytes, &digest)
                            .map_err(|source| self.0.unusable(digest.as_ref(), source))
                    }
                    _ => Err(ARCHIVE.not_found(path, which, &known)),
                }
            }
        }
    }

    /// Returns the manifest or index of an index's entry.
    pub async fn document(&self, entry: &Descriptor) -> Result<Document, Problem> {
        let bytes = self.read(&entry.digest).await?;
        Document::of_entry(entry, bytes)
            .map_err(|source| self.0.unusable(entry.digest.as_ref(), source))
    }

    /// Reads a small blob whole. The digest is checked by the parser.
    pub async fn read(&self, digest: &Digest) -> Result<Bytes, Problem> {
        let (contents, digest) = (self.0.clone(), digest.clone());
        let read = tokio::task::spawn_blocking(move || contents.read_blob(&digest));
        let read = read.await;
        read.map_err(|error| self.0.unreadable(io::Error::other(error)))?
    }

    /// Returns true if the archive has the blob.
    pub fn has_blob(&self, digest: &Digest) -> bool {
        self.0.blobs.contains_key(digest) || self.0.members.get(&blob_member(digest)).is_some()
    }

    /// Returns the bytes of a blob, not verified.
    pub fn blob(&self, blob: &Descriptor) -> Result<FileRange, Problem> {
        let member = match self.0.blobs.get(&blob.digest) {
            Some(Blob::Member(member)) => member.clone(),
            Some(Blob::Made(_) | Blob::Unreadable(_)) | None => blob_member(&blob.digest),
        };
        self.0.range(&member)
    }
}

impl Contents {
    fn read(path: PathBuf) -> Result<Self, Problem> {
        let members = scan(&path)?;
        let mut contents = Self {
            path,
            members,
            index: Index::new(ManifestFormat::Oci, Vec::new()),
            blobs: HashMap::new(),
        };
        if contents.members.get("index.json").is_some() {
            let bytes = contents.read_member("index.json")?;
            contents.index = Verbatim::<Index>::parse(bytes)
                .map_err(|source| contents.unusable("index.json", source))?
                .into_value();
            contents.complete_index();
        } else if contents.members.get("manifest.json").is_some() {
            contents.make_manifests(contents.saved_images()?);
        } else {
            return Err(contents.broken("it has neither manifest.json nor index.json"));
        }
        Ok(contents)
    }

    /// Adds the images that only `manifest.json` has, or has with all layers: Docker lists no image
    /// without a tag in `index.json`.
    fn complete_index(&mut self) {
        let mut saved = self.saved_images().unwrap_or_default();
        let place = |member: &str| self.members.get(member).copied();
        let (mut listed, mut incomplete) = (HashSet::new(), HashSet::new());
        let mut seen = HashSet::new();
        let mut open = self.index.manifests.clone();
        while let Some(entry) = open.pop() {
            if !seen.insert(entry.digest.clone()) {
                continue;
            }
            let bytes = self.read_blob(&entry.digest);
            match bytes.and_then(|bytes| Document::of_entry(&entry, bytes)) {
                Ok(Document::Index(index)) => open.extend(index.into_value().manifests),
                Ok(Document::Manifest(manifest)) if self.lacks_layers(&manifest, &saved) => {
                    incomplete.insert(entry.digest);
                }
                Ok(Document::Manifest(manifest)) => {
                    listed.extend(place(&blob_member(&manifest.config.digest)));
                }
                // It may be any of the images, and is reported when it is read.
                Err(_) if place(&blob_member(&entry.digest)).is_some() => return,
                Err(_) => {}
            }
        }
        saved.retain(|image| place(&image.config).is_some_and(|it| !listed.contains(&it)));
        let entries = &mut self.index.manifests;
        entries.retain(|entry| !incomplete.contains(&entry.digest));
        self.make_manifests(saved);
    }

    /// Returns true if only `manifest.json` names the layers that the archive has of an image: Docker
    /// 25.0.0 wrote manifests without layers, and later ones on Windows name foreign layers by their
    /// compressed form, which is not stored.
    fn lacks_layers(&self, manifest: &Manifest, saved: &[SavedImage]) -> bool {
        let is_stored = |member: &String| self.members.get(member).is_some();
        let config = blob_member(&manifest.config.digest);
        let mut saved = saved.iter().filter(|image| image.config == config);
        let mut lacking = manifest.layers.iter();
        let is_incomplete = manifest.layers.is_empty()
            || lacking.any(|layer| !is_stored(&blob_member(&layer.digest)));
        is_incomplete
            && saved.any(|image| {
                let layers = image.layers.as_deref().unwrap_or_default();
                !layers.is_empty() && layers.iter().all(is_stored)
            })
    }

    fn saved_images(&self) -> Result<Vec<SavedImage>, Problem> {
        let bytes = self.read_member("manifest.json")?;
        serde_json::from_slice(&bytes)
            .map_err(|error| self.broken(format!("its manifest.json is damaged: {error}")))
    }

    /// Generates the manifests of images that only `manifest.json` names.
    fn make_manifests(&mut self, saved: Vec<SavedImage>) {
        for image in saved {
            let names = image.repo_tags.clone().unwrap_or_default();
            let (entry, blob) = match self.manifest_of(&image) {
                Ok((manifest, parts)) => {
                    self.blobs.extend(parts);
                    let entry = manifest.descriptor(manifest.media_type());
                    (entry, Blob::Made(manifest.bytes().clone()))
                }
                Err(_) => {
                    let digest = sha256(image.config.as_bytes());
                    let entry = Descriptor::new(ManifestFormat::Docker.manifest(), digest, 0);
                    (entry, Blob::Unreadable(image))
                }
            };
            self.blobs.insert(entry.digest.clone(), blob);
            if names.is_empty() {
                self.index.manifests.push(entry);
                continue;
            }
            for name in names {
                let mut entry = entry.clone();
                entry.annotations.insert(IMAGE_NAME.to_owned(), name);
                self.index.manifests.push(entry);
            }
        }
    }

    /// Returns the manifest of an image, and where its configuration and layers are.
    fn manifest_of(&self, image: &SavedImage) -> Result<(Verbatim<Manifest>, Blobs), Problem> {
        let config = Verbatim::<ImageConfig>::parse(self.read_member(&image.config)?)
            .map_err(|source| self.unusable(&image.config, source))?;
        let members = image.layers.as_deref().unwrap_or_default();
        let diff_ids = &config.rootfs.diff_ids;
        if members.len() != diff_ids.len() {
            let (config, layers, named) = (&image.config, diff_ids.len(), members.len());
            return Err(self.broken(format!(
                "{config} has {layers} layers, manifest.json names {named}"
            )));
        }
        let mut layers = Vec::with_capacity(members.len());
        let mut parts = Vec::with_capacity(members.len() + 1);
        for (member, diff_id) in members.iter().zip(diff_ids) {
            let layer = self.layer(member, diff_id)?;
            parts.push((layer.digest.clone(), Blob::Member(member.clone())));
            layers.push(layer);
        }
        let descriptor = config.descriptor(ManifestFormat::Docker.config());
        parts.push((config.digest().clone(), Blob::Member(image.config.clone())));
        Verbatim::new(Manifest::new(ManifestFormat::Docker, descriptor, layers))
            .map(|manifest| (manifest, parts))
            .map_err(|source| self.unusable("manifest.json", source))
    }

    /// Returns a layer's descriptor. The digest of a plain tar is its `diff_id`, which is verified
    /// when the layer is read; that of a compressed layer is computed here.
    fn layer(&self, member: &str, diff_id: &Digest) -> Result<Descriptor, Problem> {
        let range = self.range(member)?;
        let failed = |source| self.unreadable(source);
        let mut reader = range.reader().map_err(failed)?;
        let mut magic = Vec::new();
        reader
            .by_ref()
            .take(4)
            .read_to_end(&mut magic)
            .map_err(failed)?;
        if magic == ZSTD {
            let problem = format!("has a layer that is compressed with zstd, {member}");
            let archive = format!("docker-archive:{}", self.path.display());
            let copy = command_line(&["skopeo", "copy", &archive, "oci:DIR:TAG"]);
            return Err(ARCHIVE.unusable(&self.path, problem).hint(format!(
                "copy it to a layout, where such layers are read: `{copy}`"
            )));
        }
        if !magic.starts_with(&GZIP) {
            return Ok(Descriptor::new(
                ManifestFormat::Docker.layer(),
                diff_id.clone(),
                range.len,
            ));
        }
        let mut hasher = Hasher::default();
        hasher.update(&magic);
        hasher.read_all(&mut reader).map_err(failed)?;
        Ok(Descriptor::new(
            ManifestFormat::Docker.layer_gzip(),
            hasher.finish(),
            range.len,
        ))
    }

    fn read_blob(&self, digest: &Digest) -> Result<Bytes, Problem> {
        match self.blobs.get(digest) {
            Some(Blob::Made(bytes)) => Ok(bytes.clone()),
            Some(Blob::Member(member)) => self.read_member(member),
            Some(Blob::Unreadable(image)) => {
                let (manifest, _) = self.manifest_of(image)?;
                Ok(manifest.bytes().clone())
            }
            None => self.read_member(&blob_member(digest)),
        }
    }

    fn read_member(&self, member: &str) -> Result<Bytes, Problem> {
        let range = self.range(member)?;
        if range.len > MAX_DOCUMENT {
            let size = range.len;
            let problem = format!(
                "has {member} with {size} bytes: expected a document of at most {MAX_DOCUMENT}"
            );
            return Err(ARCHIVE.unusable(&self.path, problem));
        }
        let bytes = range.read().map_err(|source| self.unreadable(source))?;
        Ok(bytes.into())
    }

    fn range(&self, member: &str) -> Result<FileRange, Problem> {
        match self.members.get(member) {
            Some(&(start, len)) => Ok(FileRange::new(&self.path, start, len)),
            None => Err(ARCHIVE.unusable(&self.path, format!("lacks {member}"))),
        }
    }

    fn broken(&self, reason: impl fmt::Display) -> Problem {
        ARCHIVE.invalid(&self.path, reason)
    }

    fn unusable(&self, member: &str, source: Problem) -> Problem {
        let path = self.path.display();
        ARCHIVE.document(format!("{member} in {path}"), source)
    }

    fn unreadable(&self, source: io::Error) -> Problem {
        ARCHIVE.unreadable(&self.path)(source)
    }
}

const GZIP: [u8; 2] = [0x1F, 0x8B];
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// Offset and length of a file of the tar.
type FilePlace = (u64, u64);

fn scan(path: &Path) -> Result<Members<FilePlace>, Problem> {
    let unreadable = ARCHIVE.unreadable(path);
    let opened = files::open(path).map_err(&unreadable);
    let mut file = opened.map_err(|problem| {
        let layout = path
            .is_dir()
            .then(|| quote(&format!("oci:{}", path.display())));
        problem.hint_if(layout.map(|layout| format!("for an OCI layout, type {layout}")))
    })?;
    let len = file.metadata().map_err(&unreadable)?.len();
    refuse_compressed(path, &mut file)?;
    file.rewind().map_err(&unreadable)?;
    // The rest of the message is an entry's name or field: arbitrary bytes if the file is not a
    // tar.
    let broken = |error: io::Error| {
        let error = error.to_string();
        let problem = error.split(": ").next().unwrap_or_default();
        let problem = problem.split(" when getting ").next().unwrap_or_default();
        let reason = format!("it cannot be read as a tar: {}", problem.escape_debug());
        ARCHIVE.invalid(path, reason)
    };
    let mut members = Members::new();
    let mut archive = tar::Archive::new(Headers::new(file));
    for entry in archive.entries_with_seek().map_err(broken)? {
        let entry = entry.map_err(broken)?;
        let kind = entry.header().entry_type();
        let name = normalised(&String::from_utf8_lossy(&entry.path_bytes()));
        if kind.is_file() || kind.is_contiguous() {
            let (start, size) = (entry.raw_file_position(), entry.size());
            let end = start.saturating_add(size);
            if end > len {
                let problem =
                    format!("is truncated: entry {name} ends at byte {end}, the file at {len}");
                return Err(ARCHIVE.unusable(path, problem));
            }
            members.files.insert(name, (start, size));
        } else {
            members.add_link(&name, &entry);
        }
    }
    Ok(members)
}

/// The tar's headers, limited to a size between two seeks: the tar library reads long names and PAX
/// records whole, whatever their length.
struct Headers {
    file: File,
    left: u64,
}

const LARGEST_HEADERS: u64 = 1024 * 1024;

impl Headers {
    fn new(file: File) -> Self {
        Self {
            file,
            left: LARGEST_HEADERS,
        }
    }
}

impl Read for Headers {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        let left = self.left.checked_sub(read as u64);
        self.left = left.ok_or_else(|| io::Error::other("a header is larger than 1 MiB"))?;
        Ok(read)
    }
}

impl Seek for Headers {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.left = LARGEST_HEADERS;
        self.file.seek(to)
    }
}

fn refuse_compressed(path: &Path, file: &mut File) -> Result<(), Problem> {
    let mut magic = Vec::new();
    file.take(4)
        .read_to_end(&mut magic)
        .map_err(ARCHIVE.unreadable(path))?;
    let with = if magic.starts_with(&GZIP) {
        "gzip"
    } else if magic == ZSTD {
        "zstd"
    } else {
        return Ok(());
    };
    // A compressed archive cannot be read in place.
    let problem = format!("is compressed with {with}: unpack it first");
    Err(ARCHIVE.unusable(path, problem))
}
