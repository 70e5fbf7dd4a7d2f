//! The manifest of one image: its configuration and its layers.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wincimg_common::diagnose::Problem;
use wincimg_common::json::or_default;

use super::MAX_DOCUMENT;
use super::descriptor::Descriptor;
use super::media_type;
use super::media_type::{LayerCompression, ManifestFormat};
use super::verbatim::DocumentType;

/// An image's configuration and layers, by digest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Manifest {
    /// Always 2.
    pub(crate) schema_version: u32,
    /// The document's media type; OCI writers may omit it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media_type: Option<String>,
    /// The image's configuration.
    pub config: Descriptor,
    /// The layers, the base first.
    #[serde(default, deserialize_with = "or_default")]
    pub layers: Vec<Descriptor>,
    /// Fields unknown to this crate, preserved as they are.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl DocumentType for Manifest {
    const WHAT: &'static str = "image manifest";
}

impl Manifest {
    /// Creates a manifest in a format.
    pub fn new(format: ManifestFormat, config: Descriptor, layers: Vec<Descriptor>) -> Self {
        Self {
            schema_version: 2,
            media_type: Some(format.manifest().to_owned()),
            config,
            layers,
            other: Map::new(),
        }
    }

    /// The media type under which the manifest is published.
    pub fn media_type(&self) -> &str {
        match self.media_type.as_deref() {
            None | Some("") => media_type::OCI_MANIFEST,
            Some(stated) => stated,
        }
    }

    /// Format of the manifest.
    pub fn format(&self) -> ManifestFormat {
        ManifestFormat::from_media_type(self.media_type())
    }

    /// Returns true if the manifest is that of an image, not of a chart, a signature or another
    /// artifact; none if only the content of the configuration tells, as
    /// [`ImageConfig::is_in`](super::ImageConfig::is_in) reads it.
    pub fn is_image_by_type(&self) -> Option<bool> {
        let config = &self.config;
        let is_unspecific = media_type::is_unspecific(&config.media_type)
            && config.size <= MAX_DOCUMENT
            && !self.other.contains_key("artifactType");
        (!is_unspecific).then(|| media_type::is_config(&config.media_type))
    }

    /// Gives foreign layers their ordinary media types and removes the URLs of all blobs, so that
    /// clients pull them from the registry: containerd tries URLs first, whatever the type.
    pub fn make_layers_distributable(&mut self) {
        self.config.urls.clear();
        for layer in &mut self.layers {
            layer.media_type = media_type::distributable(&layer.media_type);
            layer.urls.clear();
        }
    }

    /// Fails if a format has no type for one of the layers: other tools reject OCI's types in a
    /// manifest of Docker's.
    pub fn check_format(&self, format: ManifestFormat) -> Result<(), Problem> {
        let is_zstd = |layer: &&Descriptor| {
            media_type::compression(&layer.media_type) == Some(LayerCompression::Zstd)
        };
        match self.layers.iter().find(is_zstd) {
            Some(layer) if format == ManifestFormat::Docker => {
                let problem = format!(
                    "layer {} is compressed with zstd, which Docker's format does not have",
                    layer.digest
                );
                Err(Problem::new("registry/manifest-format", problem)
                    .hint("use OCI's format with --manifest-format oci"))
            }
            _ => Ok(()),
        }
    }

    /// Converts the manifest to a format; the configuration's bytes are unchanged.
    pub fn convert(&mut self, format: ManifestFormat) {
        self.media_type = Some(format.manifest().to_owned());
        for blob in self.layers.iter_mut().chain([&mut self.config]) {
            blob.media_type = media_type::in_format(&blob.media_type, format);
        }
    }
}
