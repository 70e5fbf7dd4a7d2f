//! Existing images: the tag of an image's index, read with one request, and the inputs of its
//! entries.

use std::collections::BTreeMap;

use wincimg_common::diagnose::{BoxError, Problem, error_chain};
use wincimg_oci::document::{BASE_DIGEST, Digest, Document, Index};
use wincimg_oci::reference::Reference;
use wincimg_oci::remote::RegistryClient;
use wincimg_windows::version::WindowsVersion;

use super::report::FleetImageState;
use crate::delivery::TagEntry;
use crate::inputs::INPUTS;
use crate::plans::TargetHost;
use crate::publication::{PlannedTag, PlannedTagEntry};

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
pub(super) struct TagContents {
    entries: Vec<TagEntry>,
    /// The reason why a tag that may exist has no entries.
    no_entries: Option<String>,
}

/// State of an image, and the reason.
#[derive(Default)]
pub(super) struct Verdict {
    pub(super) state: FleetImageState,
    pub(super) reason: Option<String>,
    pub(super) digest: Option<Digest>,
}

impl TagContents {
    pub(super) async fn read(
        registry: &RegistryClient,
        reference: &Reference,
    ) -> Result<Self, BoxError> {
        let repository = registry.repository(reference).for_push();
        let tag = reference.tag().unwrap_or_default();
        let nothing = |no_entries: Option<String>| Self {
            entries: Vec::new(),
            no_entries,
        };
        let raw = match repository.get_manifest(tag).await {
            Ok(raw) => raw,
            Err(error) if error.is_not_found() => return Ok(nothing(None)),
            // As some registries do with what does not exist.
            Err(error) if error.is_not_allowed() => {
                let why = error_chain(&error);
                return Ok(nothing(Some(format!(
                    "or it exists and cannot be read: {why}"
                ))));
            }
            Err(error) => return Err(error.into()),
        };
        let document = Document::verify(&raw.media_type, raw.bytes, &raw.digest);
        let document = document.map_err(|error| {
            let problem = format!("{reference} is neither an image nor an index");
            Problem::answer("image/document", problem).source(error)
        })?;
        Ok(match document {
            Document::Manifest(_) => {
                nothing(Some("the tag is a single image, not an index".to_owned()))
            }
            Document::Index(index) => Self::of_index(&index),
        })
    }

    pub(super) fn of_index(index: &Index) -> Self {
        let entries = index.manifests.iter().cloned();
        Self {
            entries: entries.map(TagEntry::new).collect(),
            no_entries: None,
        }
    }

    pub(super) fn tag_for<'a>(&self, tag: &str, host: &'a TargetHost) -> PlannedTag<'a> {
        let lines = self.entries.iter().map(|entry| entry.line.clone());
        PlannedTag {
            tag: tag.to_owned(),
            is_index: true,
            lines: lines.collect(),
            hosts: vec![host],
        }
    }

    pub(super) fn versions(&self) -> Vec<WindowsVersion> {
        let entries = self.entries.iter();
        entries.filter_map(|entry| entry.line.version).collect()
    }

    /// State of an image. Images built by a daemon have no comparable inputs: only their version is
    /// checked.
    pub(super) fn status(
        &self,
        line: &PlannedTagEntry,
        made_of: &ImageInputs,
        is_daemons: bool,
    ) -> Verdict {
        let build = |line: &PlannedTagEntry| line.version.map(|version| version.build);
        let mut entries = self.entries.iter();
        let alike = entries.find(|TagEntry { line: own, .. }| {
            own.platform.os == line.platform.os
                && own.platform.architecture == line.platform.architecture
                && build(own) == build(line)
        });
        let Some(TagEntry {
            descriptor,
            line: own,
        }) = alike
        else {
            return Verdict {
                reason: self.no_entries.clone(),
                ..Verdict::default()
            };
        };
        let note = |name: &str| descriptor.annotations.get(name).map(String::as_str);
        let inputs = note(INPUTS);
        let reason = if own.version != line.version {
            let text = |version: Option<WindowsVersion>| {
                version.map_or_else(String::new, |version| version.os_version())
            };
            let (new, old) = (text(line.version), text(own.version));
            Some(format!("base {new} fits, and replaces {old}"))
        } else if inputs == Some(made_of.inputs.as_ref()) || (is_daemons && inputs.is_none()) {
            None
        } else {
            let reason = match (inputs, note(BASE_DIGEST)) {
                (None, _) => "its inputs are not recorded",
                (_, Some(base)) if base != made_of.base.as_ref() => "its base was published again",
                _ => "its inputs have changed",
            };
            Some(reason.to_owned())
        };
        Verdict {
            state: match &reason {
                None => FleetImageState::Current,
                Some(_) => FleetImageState::Outdated,
            },
            reason,
            digest: Some(descriptor.digest.clone()),
        }
    }
}
