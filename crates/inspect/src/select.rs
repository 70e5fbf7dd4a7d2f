//! Selection of the images that a reference names.

use std::error::Error;

use serde::{Deserialize, Serialize, Serializer};
use wincimg_common::diagnose::{Problem, error_chain};
use wincimg_oci::copy::PlatformFilter;
use wincimg_oci::document::{
    Descriptor, Digest, Document, Image, Manifest, Platform, Verbatim, media_type,
};
use wincimg_oci::store::{EntryReader, EntryTarget, Source, StoreError};

use super::InspectError;

/// Annotation of buildx for attestations of images.
const ATTESTATION: &str = "vnd.docker.reference.type";

/// An entry of an index that is not selected.
#[derive(Debug, Serialize)]
pub struct OtherEntry {
    /// The digest of the manifest.
    pub digest: Digest,
    /// Its platform, according to the index.
    pub platform: Option<String>,
    /// Its kind.
    #[serde(flatten)]
    pub kind: EntryKind,
}

/// Kind of an entry that is not selected.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum EntryKind {
    /// An image for another platform.
    Image,
    /// A statement about an image, such as its provenance.
    Attestation {
        /// The digest of the image.
        image: Option<String>,
    },
    /// An artifact that is not an image.
    Artifact,
    /// An entry that the store does not have.
    Missing {
        /// Reason.
        #[serde(serialize_with = "as_text")]
        problem: StoreError,
    },
    /// An entry that cannot be read.
    Unreadable {
        /// Reason.
        #[serde(serialize_with = "as_text")]
        problem: StoreError,
    },
}

impl EntryKind {
    fn unread(problem: StoreError) -> Self {
        if problem.is_not_found() {
            Self::Missing { problem }
        } else {
            Self::Unreadable { problem }
        }
    }

    /// Why it could not be read.
    pub fn into_problem(self) -> Option<StoreError> {
        match self {
            Self::Missing { problem } | Self::Unreadable { problem } => Some(problem),
            Self::Image | Self::Attestation { .. } | Self::Artifact => None,
        }
    }
}

/// An entry of an index, as the index has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StatedEntry {
    /// The digest of the manifest.
    pub digest: Digest,
    /// Its platform, according to the index; absent for entries of an inner index, which runtimes
    /// read differently.
    pub platform: Option<StatedPlatform>,
}

/// A platform that an index states.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatedPlatform {
    /// `windows`, `linux`, …
    pub os: String,
    /// `10.0.17763.973`, if the index has it.
    pub os_version: Option<String>,
    /// `amd64`, `arm64`, …
    pub architecture: String,
    /// Variant of the architecture, if the index has it: `v8`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Features that the index requires of the host, such as `win32k`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub os_features: Vec<String>,
}

/// The selected images, and the other entries.
#[derive(Default)]
pub(super) struct SelectedImages {
    pub(super) images: Vec<Image>,
    pub(super) others: Vec<OtherEntry>,
    /// All entries of an index and of those in it, in their order.
    pub(super) entries: Option<Vec<StatedEntry>>,
}

/// An entry as the index has it, and its image if that is selected, or else what it is.
type SelectedEntry = (StatedEntry, Result<Box<Image>, OtherEntry>);

/// Selects the images for the given platforms; without any, those of an index for Windows, or a
/// single image of any platform.
pub(super) async fn choose(
    source: &Source,
    document: Document,
    filters: &[PlatformFilter],
) -> Result<SelectedImages, InspectError> {
    let choice = Choice { source, filters };
    let mut chosen = SelectedImages::default();
    match document {
        Document::Manifest(manifest) => chosen.images.push(choice.only_image(*manifest).await?),
        Document::Index(index) => {
            let entries = chosen.entries.insert(Vec::new());
            for (stated, selected) in source.entries(&index, &choice).await? {
                entries.push(stated);
                match selected {
                    Ok(image) => chosen.images.push(*image),
                    Err(other) => chosen.others.push(other),
                }
            }
            let is_unread = |other: &OtherEntry| {
                matches!(
                    other.kind,
                    EntryKind::Missing { .. } | EntryKind::Unreadable { .. }
                )
            };
            if chosen.images.is_empty()
                && !filters.is_empty()
                && !chosen.others.iter().any(is_unread)
            {
                let platforms = chosen
                    .others
                    .iter()
                    .filter_map(|other| other.platform.clone());
                return Err(choice.no_platform(platforms.collect()).into());
            }
        }
    }
    Ok(chosen)
}

struct Choice<'a> {
    source: &'a Source,
    filters: &'a [PlatformFilter],
}

impl EntryReader for Choice<'_> {
    type Item = SelectedEntry;

    async fn read(
        &self,
        entry: &Descriptor,
        is_nested: bool,
    ) -> Result<EntryTarget<SelectedEntry>, StoreError> {
        let is_index = media_type::is_index(&entry.media_type);
        let (mut stated, selected) = if entry.annotations.contains_key(ATTESTATION) {
            let image = entry.attested().map(str::to_owned);
            other(entry, EntryKind::Attestation { image })
        } else if let (false, Some(platform)) = (is_index, &entry.platform)
            && !self.includes(platform)
            && !self.filters.iter().any(|it| it.may_match(platform))
        {
            other(entry, EntryKind::Image)
        } else {
            match self.source.document(entry).await {
                Ok(Document::Index(inner)) => return Ok(EntryTarget::Index(inner)),
                Ok(Document::Manifest(manifest)) => self.image(entry, *manifest).await,
                Err(problem) => other(entry, EntryKind::unread(problem)),
            }
        };
        stated.platform = stated.platform.filter(|_| !is_nested);
        Ok(EntryTarget::Items(vec![(stated, selected)]))
    }
}

impl Choice<'_> {
    async fn only_image(&self, manifest: Verbatim<Manifest>) -> Result<Image, InspectError> {
        if !self.source.is_image(&manifest).await? {
            return Err(InspectError::NotAnImage {
                place: self.source.to_string(),
                digest: manifest.digest().clone(),
                media_type: manifest.config.media_type.clone(),
            });
        }
        let image = self.source.image(manifest).await?;
        let platform = image.config().platform();
        if self.filters.is_empty() || self.includes(&platform) {
            Ok(image)
        } else {
            // Of a signature, for example.
            let is_empty = platform.os.is_empty() && platform.architecture.is_empty();
            let available = (!is_empty).then(|| platform.to_string());
            Err(self.no_platform(available.into_iter().collect()).into())
        }
    }

    /// An entry that may be a requested image: if the index does not name its platform, or no
    /// version, the configuration does.
    async fn image(&self, entry: &Descriptor, manifest: Verbatim<Manifest>) -> SelectedEntry {
        match self.source.is_image(&manifest).await {
            Ok(true) => {}
            Ok(false) => return other(entry, EntryKind::Artifact),
            Err(problem) => return other(entry, EntryKind::unread(problem)),
        }
        let stated_platform = entry.platform.as_ref();
        let is_stated = stated_platform.is_some_and(|platform| self.includes(platform));
        let selected = match self.source.image(manifest).await {
            Ok(image) if is_stated || self.includes(&image.config().platform()) => {
                Ok(Box::new(image))
            }
            Ok(image) => Err(OtherEntry {
                digest: entry.digest.clone(),
                platform: Some(image.config().platform().to_string()),
                kind: EntryKind::Image,
            }),
            Err(problem) => return other(entry, EntryKind::unread(problem)),
        };
        (stated(entry), selected)
    }

    fn includes(&self, platform: &Platform) -> bool {
        if self.filters.is_empty() {
            platform.os == "windows"
        } else {
            self.filters.iter().any(|filter| filter.matches(platform))
        }
    }

    fn no_platform(&self, mut available: Vec<String>) -> Problem {
        let wanted: Vec<String> = self.filters.iter().map(ToString::to_string).collect();
        if available.is_empty() {
            available.push("none".to_owned());
        }
        let problem = format!(
            "{} has no image for {}: it has {}",
            self.source,
            wanted.join(", "),
            available.join(", ")
        );
        Problem::answer("image/no-platform", problem)
    }
}

fn other(entry: &Descriptor, kind: EntryKind) -> SelectedEntry {
    let other = OtherEntry {
        digest: entry.digest.clone(),
        platform: entry.platform.as_ref().map(ToString::to_string),
        kind,
    };
    (stated(entry), Err(other))
}

fn stated(entry: &Descriptor) -> StatedEntry {
    let platform = entry.platform.as_ref().map(|platform| StatedPlatform {
        os: platform.os.clone(),
        os_version: platform.os_version.clone(),
        architecture: platform.architecture.clone(),
        variant: platform.variant.clone(),
        os_features: platform.os_features.clone(),
    });
    StatedEntry {
        digest: entry.digest.clone(),
        platform,
    }
}

fn as_text<S: Serializer>(error: &impl Error, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&error_chain(error))
}
