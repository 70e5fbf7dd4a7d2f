//! Target of a tag, read with as few requests as possible: an index names the versions of its
//! images; for any other image the configuration is read.

use std::collections::BTreeSet;

use futures_util::{StreamExt, TryStreamExt, stream};
use wincimg_common::diagnose::error_chain;
use wincimg_oci::document::{
    Descriptor, Digest, Document, ENTRIES_AT_ONCE, Image, ImageConfig, Index, MAX_DOCUMENT,
    Manifest, Platform, Verbatim,
};
use wincimg_oci::reference::with_digest;
use wincimg_oci::remote::{RegistryError, Repository};
use wincimg_windows::compat::{Architecture, HostBuild};
use wincimg_windows::version::WindowsVersion;

use super::best_fit::BaseMatch;
use super::resolve::BaseImage;

pub(super) struct TagTarget {
    index: Option<Digest>,
    image: Pointer,
}

enum Pointer {
    Entry(Box<Descriptor>),
    Loaded(Box<Image>),
}

/// A suitable image, or the reason why it cannot be a base. Connection errors are separate.
pub(super) type BaseResult<T> = Result<T, String>;

impl TagTarget {
    /// Loads the image of a tag for a host and checks that it has the expected version.
    pub(super) async fn load(
        self,
        repository: &Repository,
        tag: Option<&str>,
        os_version: WindowsVersion,
        host: HostBuild,
    ) -> Result<BaseResult<BaseImage>, RegistryError> {
        let image = match self.image {
            Pointer::Loaded(image) => *image,
            Pointer::Entry(entry) => {
                repository.prefetch_referrers(&entry.digest);
                match load_entry(repository, &entry).await? {
                    Ok(image) => image,
                    Err(reason) => return Ok(Err(reason)),
                }
            }
        };
        Ok(windows_version(&image, host.architecture).and_then(|own| {
            if own != os_version {
                return Err(format!(
                    "its index says {}, its image {}",
                    os_version.os_version(),
                    own.os_version()
                ));
            }
            let (registry, name) = (repository.host(), repository.name());
            Ok(BaseImage {
                reference: with_digest(registry, name, tag, image.digest()),
                index: self.index,
                os_version,
                matched: BaseMatch::compare(os_version, host),
                image,
            })
        }))
    }
}

/// Reads the target of a tag, once. Only of a missing tag, "not found" is an error.
pub(super) async fn read_tag(
    repository: &Repository,
    tag: &str,
    architecture: Architecture,
) -> Result<BaseResult<Vec<(WindowsVersion, TagTarget)>>, RegistryError> {
    let document = match read_document(repository, tag).await? {
        Ok(document) => document,
        Err(reason) => return Ok(Err(reason)),
    };
    match document {
        Document::Index(index) => read_index(repository, &index, architecture).await,
        Document::Manifest(manifest) => {
            repository.prefetch_referrers(manifest.digest());
            let image = match load_config(repository, *manifest).await? {
                Ok(image) => image,
                Err(reason) => return Ok(Err(reason)),
            };
            Ok(windows_version(&image, architecture).map(|version| {
                let image = Pointer::Loaded(Box::new(image));
                vec![(version, TagTarget { index: None, image })]
            }))
        }
    }
}

/// The images for Windows nodes in an index. If an entry has no `os.version`, because some build
/// tools do not write it, the configuration is read.
async fn read_index(
    repository: &Repository,
    index: &Verbatim<Index>,
    architecture: Architecture,
) -> Result<BaseResult<Vec<(WindowsVersion, TagTarget)>>, RegistryError> {
    let own = index.manifests.iter();
    let mut reads = Vec::new();
    for entry in own.filter(|entry| is_for_nodes(entry, architecture)) {
        reads.push(read_entry(repository, entry, architecture));
    }
    let outcomes = stream::iter(reads).buffered(ENTRIES_AT_ONCE);
    let outcomes: Vec<_> = outcomes.try_collect().await?;
    let mut seen = Vec::new();
    let mut problem = None;
    for outcome in outcomes {
        match outcome {
            Ok((version, image)) => {
                let index = Some(index.digest().clone());
                seen.push((version, TagTarget { index, image }));
            }
            Err(reason) => problem = Some(reason),
        }
    }
    if seen.is_empty() {
        return Ok(Err(problem.unwrap_or_else(|| {
            format!("its index has no image for windows/{}", architecture.name())
        })));
    }
    Ok(Ok(seen))
}

/// The systems of a tag's images, unless one is for Windows or does not name its system.
pub(super) async fn other_systems(
    repository: &Repository,
    tag: &str,
) -> Result<Option<String>, RegistryError> {
    let platforms: Vec<Option<Platform>> = match read_document(repository, tag).await? {
        Ok(Document::Index(index)) => {
            let entries = index.manifests.iter();
            entries.map(|entry| entry.platform.clone()).collect()
        }
        Ok(Document::Manifest(manifest)) => {
            let image = load_config(repository, *manifest).await?;
            vec![image.ok().map(|image| image.config().platform())]
        }
        Err(_) => Vec::new(),
    };
    let systems: Option<BTreeSet<String>> = platforms
        .into_iter()
        .map(|platform| Some(platform?.os).filter(|os| !os.is_empty() && os != "windows"))
        .collect();
    let mut systems = systems.unwrap_or_default();
    // That of attestations.
    systems.remove("unknown");
    let systems: Vec<String> = systems.into_iter().collect();
    Ok((!systems.is_empty()).then(|| systems.join(", ")))
}

/// The version of an entry's image.
async fn read_entry(
    repository: &Repository,
    entry: &Descriptor,
    architecture: Architecture,
) -> Result<BaseResult<(WindowsVersion, Pointer)>, RegistryError> {
    let platform = entry.platform.as_ref();
    let stated = platform.and_then(|platform| platform.os_version.as_deref()?.parse().ok());
    if let Some(version) = stated {
        return Ok(Ok((version, Pointer::Entry(Box::new(entry.clone())))));
    }
    let loaded = load_entry(repository, entry).await?;
    Ok(loaded.and_then(|image| {
        let version = windows_version(&image, architecture)?;
        Ok((version, Pointer::Loaded(Box::new(image))))
    }))
}

pub(super) fn is_for_nodes(entry: &Descriptor, architecture: Architecture) -> bool {
    entry.platform.as_ref().is_some_and(|platform| {
        platform.os == "windows" && platform.architecture == architecture.name()
    })
}

async fn load_entry(
    repository: &Repository,
    entry: &Descriptor,
) -> Result<BaseResult<Image>, RegistryError> {
    let document = match repository.get_manifest(entry.digest.as_ref()).await {
        Ok(raw) => Document::of_entry(entry, raw.bytes),
        Err(error) if error.is_not_found() => {
            return Ok(Err(format!("{} was not found", entry.digest)));
        }
        Err(error) => return Err(error),
    };
    match document {
        Ok(Document::Manifest(manifest)) => load_config(repository, *manifest).await,
        Ok(Document::Index(_)) => Ok(Err("its index contains another index".to_owned())),
        Err(error) => Ok(Err(error_chain(&error))),
    }
}

async fn read_document(
    repository: &Repository,
    tag: &str,
) -> Result<BaseResult<Document>, RegistryError> {
    let raw = repository.get_manifest(tag).await?;
    let document = Document::verify(&raw.media_type, raw.bytes, &raw.digest);
    Ok(document.map_err(|error| error_chain(&error)))
}

async fn load_config(
    repository: &Repository,
    manifest: Verbatim<Manifest>,
) -> Result<BaseResult<Image>, RegistryError> {
    let descriptor = &manifest.config;
    let not_an_image = || {
        let kind = &descriptor.media_type;
        format!("its configuration is of type {kind}, not an image's")
    };
    let is_image = manifest.is_image_by_type();
    if is_image == Some(false) {
        return Ok(Err(not_an_image()));
    }
    let bytes = match repository.get_blob(descriptor, MAX_DOCUMENT).await {
        Ok(bytes) => bytes,
        Err(error) if error.is_not_found() => {
            return Ok(Err("its configuration was not found".to_owned()));
        }
        Err(error) => return Err(error),
    };
    if is_image.is_none() && !ImageConfig::is_in(&bytes) {
        return Ok(Err(not_an_image()));
    }
    Ok(Verbatim::<ImageConfig>::verify(bytes, &descriptor.digest)
        .and_then(|config| Image::new(manifest, config))
        .map_err(|error| error_chain(&error)))
}

/// The Windows version of an image, or the reason why it is not for Windows nodes of an architecture.
pub(super) fn windows_version(
    image: &Image,
    architecture: Architecture,
) -> BaseResult<WindowsVersion> {
    let platform = image.config().platform();
    if platform.os != "windows" || platform.architecture != architecture.name() {
        return Err(format!(
            "its image is for {}/{}, not windows/{}",
            platform.os,
            platform.architecture,
            architecture.name()
        ));
    }
    match platform.os_version.as_deref().map(str::parse) {
        Some(Ok(version)) => Ok(version),
        Some(Err(_)) => Err(format!(
            "its image has {:?} as its os.version",
            platform.os_version.unwrap_or_default()
        )),
        None => Err("its image has no os.version".to_owned()),
    }
}
