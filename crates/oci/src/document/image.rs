//! One image as a whole: a manifest with the configuration it names, and the changes that make
//! another image of it.

use super::config::{History, ImageConfig};
use super::descriptor::{Descriptor, Platform};
use super::digest::Digest;
use super::error::DocumentError;
use super::manifest::Manifest;
use super::media_type;
use super::media_type::ManifestFormat;
use super::verbatim::Verbatim;

/// A manifest and its configuration, which belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Image {
    manifest: Verbatim<Manifest>,
    config: Verbatim<ImageConfig>,
}

/// A layer to put on an image.
#[derive(Debug, Clone, PartialEq)]
pub struct NewLayer {
    /// The layer's blob as it is stored.
    pub blob: Descriptor,
    /// The digest of the uncompressed tar.
    pub diff_id: Digest,
    /// The layer's entry in the image's history.
    pub history: History,
}

impl Image {
    /// Puts a manifest and its configuration together, checking that they are of one image.
    pub fn new(
        manifest: Verbatim<Manifest>,
        config: Verbatim<ImageConfig>,
    ) -> Result<Self, DocumentError> {
        let inconsistent = |reason| Err(DocumentError::Inconsistent { reason });
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

    /// An image without layers, to start from nothing.
    pub fn empty(flavour: ManifestFormat, platform: Platform) -> Result<Self, DocumentError> {
        let config = Verbatim::new(ImageConfig {
            architecture: platform.architecture,
            os: platform.os,
            os_version: platform.os_version,
            os_features: platform.os_features,
            variant: platform.variant,
            ..ImageConfig::default()
        })?;
        let descriptor = Descriptor::new(flavour.config(), config.digest().clone(), config.size());
        let manifest = Verbatim::new(Manifest::new(flavour, descriptor, Vec::new()))?;
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

    /// The manifest's digest, which is the image's.
    pub fn digest(&self) -> &Digest {
        self.manifest.digest()
    }

    /// A pointer to the image for an index, with the platform that the configuration states.
    pub fn index_entry(&self) -> Descriptor {
        Descriptor::new(
            self.manifest.media_type(),
            self.digest().clone(),
            self.manifest.size(),
        )
        .with_platform(self.config.platform())
    }

    /// The image with one more layer on top.
    pub fn append_layer(&self, layer: NewLayer) -> Result<Self, DocumentError> {
        let config = self.config.edit(|config| {
            config.rootfs.diff_ids.push(layer.diff_id);
            config.history.push(layer.history);
        })?;
        self.with_config(config, |manifest| manifest.layers.push(layer.blob))
    }

    /// The image with a changed configuration; its list of layers must stay as it is.
    pub fn edit_config(
        &self,
        change: impl FnOnce(&mut ImageConfig),
    ) -> Result<Self, DocumentError> {
        let config = self.config.edit(change)?;
        self.with_config(config, |_| {})
    }

    /// The image with ordinary types on its foreign layers. The configuration stays what it was.
    pub fn with_distributable_layers(&self) -> Result<Self, DocumentError> {
        Ok(Self {
            manifest: self.manifest.edit(Manifest::make_layers_distributable)?,
            config: self.config.clone(),
        })
    }

    /// The image in the words of a flavour. The configuration and the layers stay what they were.
    pub fn in_flavour(&self, flavour: ManifestFormat) -> Result<Self, DocumentError> {
        let manifest = self.manifest.edit(|manifest| {
            manifest.media_type = Some(flavour.manifest().to_owned());
            for part in manifest.layers.iter_mut().chain([&mut manifest.config]) {
                part.media_type = media_type::in_flavour(&part.media_type, flavour);
            }
        })?;
        Ok(Self {
            manifest,
            config: self.config.clone(),
        })
    }

    fn with_config(
        &self,
        config: Verbatim<ImageConfig>,
        change: impl FnOnce(&mut Manifest),
    ) -> Result<Self, DocumentError> {
        let manifest = self.manifest.edit(|manifest| {
            manifest.config.digest = config.digest().clone();
            manifest.config.size = config.size();
            // An embedded copy of the old configuration would contradict the digest.
            manifest.config.other.remove("data");
            change(manifest);
        })?;
        Self::new(manifest, config)
    }
}
