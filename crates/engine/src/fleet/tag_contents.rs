//! Existing images: the tag of an image's index, read with one request, and the inputs of its
//! entries.

use std::collections::BTreeMap;

use wincimg_common::diagnose::{Blame, BoxError, Problem, error_chain};
use wincimg_oci::document::{BASE_DIGEST, Descriptor, Digest, Document};
use wincimg_oci::reference::Reference;
use wincimg_oci::remote::RegistryClient;
use wincimg_windows::version::WindowsVersion;

use super::report::FleetImageState;
use crate::inputs::INPUTS;
use crate::publication::PlannedTagEntry;

/// Inputs of an image, as annotated in an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ImageInputs {
    pub(super) inputs: Digest,
    pub(super) base: Digest,
}

impl ImageInputs {
    pub(super) fn annotations(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            (INPUTS.to_owned(), self.inputs.to_string()),
            (BASE_DIGEST.to_owned(), self.base.to_string()),
        ])
    }
}

/// Content of an index's tag.
pub(super) enum TagContents {
    /// The tag does not exist.
    Nothing,
    /// The registry does not let it be read, as some do with what does not exist.
    Denied(String),
    /// A single image without an index.
    One,
    /// An index with these entries.
    Entries(Vec<Descriptor>),
}

/// State of an image, and the reason.
pub(super) struct Verdict {
    pub(super) state: FleetImageState,
    pub(super) reason: Option<String>,
    pub(super) digest: Option<Digest>,
}

impl TagContents {
    /// Reads a tag.
    pub(super) async fn read(
        registry: &RegistryClient,
        reference: &Reference,
    ) -> Result<Self, BoxError> {
        let repository = registry.repository(reference).for_push();
        let tag = reference.tag().unwrap_or_default();
        let raw = match repository.get_manifest(tag).await {
            Ok(raw) => raw,
            Err(error) if error.is_not_found() => return Ok(Self::Nothing),
            Err(error) if error.is_not_allowed() => {
                return Ok(Self::Denied(error_chain(&error)));
            }
            Err(error) => return Err(error.into()),
        };
        let document = Document::verify(&raw.media_type, raw.bytes, &raw.digest);
        let document = document.map_err(|error| {
            let problem = format!("{reference} is neither an image nor an index");
            Problem::new("image/document", problem)
                .blame(Blame::Answer)
                .source(error)
        })?;
        Ok(match document {
            Document::Manifest(_) => Self::One,
            Document::Index(index) => Self::Entries(index.into_value().manifests),
        })
    }

    /// Versions of Windows of its entries.
    pub(super) fn versions(&self) -> Vec<WindowsVersion> {
        let entries = match self {
            Self::Entries(entries) => &entries[..],
            Self::Nothing | Self::Denied(_) | Self::One => &[],
        };
        let platforms = entries.iter().filter_map(|entry| entry.platform.as_ref());
        let versions = platforms.filter_map(|platform| platform.os_version.as_ref());
        versions.filter_map(|text| text.parse().ok()).collect()
    }

    /// State of an image. Images built by a daemon have no comparable inputs: only their version is
    /// checked.
    pub(super) fn status(
        &self,
        line: &PlannedTagEntry,
        made_of: &ImageInputs,
        is_daemons: bool,
    ) -> Verdict {
        let entries = match self {
            Self::Nothing => return Verdict::missing(None),
            Self::Denied(why) => {
                return Verdict::missing(Some(format!("or it exists and cannot be read: {why}")));
            }
            Self::One => {
                return Verdict::missing(Some(
                    "the tag is a single image, not an \
                                              index"
                        .to_owned(),
                ));
            }
            Self::Entries(entries) => entries,
        };
        let platform = &line.platform;
        let mut alike = entries.iter().filter_map(|entry| {
            let own = entry.platform.as_ref()?;
            let is_system = own.os == platform.os && own.architecture == platform.architecture;
            let version: Option<WindowsVersion> = match &own.os_version {
                Some(text) => Some(text.parse().ok()?),
                None => None,
            };
            let build = |version: Option<WindowsVersion>| version.map(|version| version.build);
            (is_system && build(version) == build(line.version)).then_some((entry, version))
        });
        let Some((entry, version)) = alike.next() else {
            return Verdict::missing(None);
        };
        let note = |name: &str| entry.annotations.get(name).map(String::as_str);
        let reason = if version != line.version {
            let text = |version: Option<WindowsVersion>| {
                version.map_or_else(String::new, |version| version.os_version())
            };
            format!(
                "base {} fits, and replaces {}",
                text(line.version),
                text(version)
            )
        } else if note(INPUTS) == Some(made_of.inputs.as_ref())
            || (is_daemons && note(INPUTS).is_none())
        {
            return Verdict {
                state: FleetImageState::Current,
                reason: None,
                digest: Some(entry.digest.clone()),
            };
        } else {
            match (note(INPUTS), note(BASE_DIGEST)) {
                (None, _) => "its inputs are not recorded".to_owned(),
                (_, Some(base)) if base != made_of.base.as_ref() => {
                    "its base was published again".to_owned()
                }
                _ => "its inputs have changed".to_owned(),
            }
        };
        Verdict {
            state: FleetImageState::Outdated,
            reason: Some(reason),
            digest: Some(entry.digest.clone()),
        }
    }
}

impl Verdict {
    fn missing(reason: Option<String>) -> Self {
        Self {
            state: FleetImageState::Missing,
            reason,
            digest: None,
        }
    }
}
