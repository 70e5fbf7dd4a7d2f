//! An image: a manifest with its configuration, and functions that derive other images.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wincimg_common::diagnose::Problem;

use super::MAX_DOCUMENT;
use super::config::{History, ImageConfig};
use super::descriptor::{Descriptor, Platform};
use super::digest::Digest;
use super::error::unusable;
use super::manifest::Manifest;
use super::media_type::ManifestFormat;
use super::verbatim::Verbatim;

/// The manifest's field for annotations.
const ANNOTATIONS: &str = "annotations";

/// The annotations among a document's fields, as far as they are texts.
pub(super) fn annotations(fields: &Map<String, Value>) -> BTreeMap<String, String> {
    let all = fields.get(ANNOTATIONS).and_then(Value::as_object);
    let texts = all.into_iter().flatten().filter_map(|(key, value)| {
        let value = value.as_str()?;
        Some((key.clone(), value.to_owned()))
    });
    texts.collect()
}

/// A manifest and its matching configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    manifest: Verbatim<Manifest>,
    config: Verbatim<ImageConfig>,
}

/// A build step to add to an image.
#[derive(Debug, Clone, PartialEq)]
pub struct NewStep {
    /// Its entry in the image's history.
    pub history: History,
    /// Its stored layer with the digest of the uncompressed tar, if it has one.
    pub layer: Option<(Descriptor, Digest)>,
}

impl Image {
    /// Combines a manifest with its configuration; fails if they do not match.
    pub fn new(
        manifest: Verbatim<Manifest>,
        config: Verbatim<ImageConfig>,
    ) -> Result<Self, Problem> {
        let inconsistent = |reason: String| {
            let problem = format!("the image's manifest and configuration disagree: {reason}");
            Err(unusable(problem))
        };
        if manifest.config.digest != *config.digest() {
            return inconsistent(format!(
                "the manifest names {}, the configuration is {}",
                manifest.config.digest,
                config.digest()
            ));
        }
        if manifest.layers.len() != config.rootfs.diff_ids.len() {
            return inconsistent(format!(
                "the manifest has {} layers, the configuration {}",
                manifest.layers.len(),
                config.rootfs.diff_ids.len()
            ));
        }
        Ok(Self { manifest, config })
    }

    /// What the image records under a key: an annotation of its manifest, or else a label. Tools
    /// that change an image without its configuration, such as `crane rebase`, set the annotation.
    pub fn recorded(&self, key: &str) -> Option<&str> {
        let annotations = self.manifest.other.get(ANNOTATIONS);
        let annotation = annotations.and_then(|it| it.get(key)?.as_str());
        let label = || self.config.config.labels.get(key).map(String::as_str);
        annotation.or_else(label).filter(|value| !value.is_empty())
    }

    /// The annotations of its manifest.
    pub fn annotations(&self) -> BTreeMap<String, String> {
        annotations(&self.manifest.other)
    }

    /// An image without layers.
    pub fn empty(format: ManifestFormat, platform: Platform) -> Result<Self, Problem> {
        let config = Verbatim::new(ImageConfig {
            architecture: platform.architecture,
            os: platform.os,
            os_version: platform.os_version,
            os_features: platform.os_features,
            variant: platform.variant,
            ..ImageConfig::default()
        })?;
        let descriptor = config.descriptor(format.config());
        let manifest = Verbatim::new(Manifest::new(format, descriptor, Vec::new()))?;
        Ok(Self { manifest, config })
    }

    /// The manifest.
    pub fn manifest(&self) -> &Verbatim<Manifest> {
        &self.manifest
    }

    /// The configuration.
    pub fn config(&self) -> &Verbatim<ImageConfig> {
        &self.config
    }

    /// The image's digest, which is that of its manifest.
    pub fn digest(&self) -> &Digest {
        self.manifest.digest()
    }

    /// Returns a descriptor of the image for an index, with the configuration's platform.
    pub fn index_entry(&self) -> Descriptor {
        let entry = self.manifest.descriptor(self.manifest.media_type());
        entry.with_platform(self.config.platform())
    }

    /// Returns the image with one more layer on top: its stored blob, and the digest of its
    /// uncompressed tar.
    pub fn append_layer(
        &self,
        blob: Descriptor,
        diff_id: Digest,
        history: History,
    ) -> Result<Self, Problem> {
        let layer = Some((blob, diff_id));
        self.append_steps([NewStep { history, layer }], |_| {})
    }

    /// Returns the image with more build steps on top, and then a changed configuration. All at
    /// once, because each change serializes both documents.
    pub fn append_steps(
        &self,
        steps: impl IntoIterator<Item = NewStep>,
        change: impl FnOnce(&mut ImageConfig),
    ) -> Result<Self, Problem> {
        let mut blobs = Vec::new();
        let config = self.config.edit(|config| {
            for step in steps {
                config.history.push(step.history);
                if let Some((blob, diff_id)) = step.layer {
                    blobs.push(blob);
                    config.rootfs.diff_ids.push(diff_id);
                }
            }
            change(config);
        })?;
        self.with_config(config, |manifest| manifest.layers.append(&mut blobs))
    }

    /// Returns the image with a changed configuration, whose layers must stay the same.
    pub fn edit_config(&self, change: impl FnOnce(&mut ImageConfig)) -> Result<Self, Problem> {
        let config = self.config.edit(change)?;
        self.with_config(config, |_| {})
    }

    /// Returns the image with ordinary media types for foreign layers, and without URLs of layers. The
    /// configuration is unchanged.
    pub fn with_distributable_layers(&self) -> Result<Self, Problem> {
        self.with_manifest(Manifest::make_layers_distributable)
    }

    /// Converts the image to a format. The configuration and the layers are unchanged.
    pub fn in_format(&self, format: ManifestFormat) -> Result<Self, Problem> {
        self.with_manifest(|manifest| manifest.convert(format))
    }

    /// Returns the image with these annotations in place of all others.
    pub fn with_annotations(
        &self,
        annotations: &BTreeMap<String, String>,
    ) -> Result<Self, Problem> {
        self.with_manifest(|manifest| {
            let fields = &mut manifest.other;
            fields.shift_remove(ANNOTATIONS);
            if !annotations.is_empty() {
                fields.insert(ANNOTATIONS.to_owned(), json!(annotations));
            }
        })
    }

    fn with_manifest(&self, change: impl FnOnce(&mut Manifest)) -> Result<Self, Problem> {
        Ok(Self {
            manifest: self.manifest.edit(change)?,
            config: self.config.clone(),
        })
    }

    fn with_config(
        &self,
        config: Verbatim<ImageConfig>,
        change: impl FnOnce(&mut Manifest),
    ) -> Result<Self, Problem> {
        let size = config.size();
        if size > MAX_DOCUMENT {
            let problem = format!(
                "the image's configuration has {size} bytes: expected at most {MAX_DOCUMENT}"
            );
            return Err(unusable(problem).hint("shorten labels, variables and commands"));
        }
        let manifest = self.manifest.edit(|manifest| {
            manifest.config.digest = config.digest().clone();
            manifest.config.size = size;
            // An embedded copy of the old configuration would contradict the digest.
            manifest.config.other.remove("data");
            change(manifest);
        })?;
        Self::new(manifest, config)
    }
}
