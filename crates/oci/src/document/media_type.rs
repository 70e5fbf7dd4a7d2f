//! Media types of images, in Docker's format and in OCI's.

/// Docker's image manifest, version 2 schema 2.
pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
/// Docker's manifest list.
pub(crate) const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
pub(crate) const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
/// Docker's layer, a gzipped tar.
pub const DOCKER_LAYER_GZIP: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";
/// Docker's layer, a plain tar.
pub(crate) const DOCKER_LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar";
pub(crate) const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// OCI's image index.
pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
pub(crate) const OCI_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// OCI's layer, a gzipped tar.
pub const OCI_LAYER_GZIP: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// OCI's layer, a plain tar.
pub const OCI_LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

const DOCKER_FOREIGN: &str = "application/vnd.docker.image.rootfs.foreign.diff.tar";
const OCI_FOREIGN: &str = "application/vnd.oci.image.layer.nondistributable.v1.tar";

/// Format of manifests and indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(
    feature = "schema",
    derive(serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "lowercase")
)]
pub enum ManifestFormat {
    /// Docker's format, supported by every registry.
    Docker,
    /// OCI format.
    Oci,
}

impl ManifestFormat {
    /// The format that a media type belongs to; OCI if it does not tell.
    pub fn from_media_type(media_type: &str) -> Self {
        if media_type.starts_with("application/vnd.docker.") {
            Self::Docker
        } else {
            Self::Oci
        }
    }

    const fn pick(self, docker: &'static str, oci: &'static str) -> &'static str {
        match self {
            Self::Docker => docker,
            Self::Oci => oci,
        }
    }

    /// Media type of an image manifest.
    pub const fn manifest(self) -> &'static str {
        self.pick(DOCKER_MANIFEST, OCI_MANIFEST)
    }

    /// Media type of an index, which Docker calls a manifest list.
    pub const fn index(self) -> &'static str {
        self.pick(DOCKER_INDEX, OCI_INDEX)
    }

    /// Media type of an image configuration.
    pub const fn config(self) -> &'static str {
        self.pick(DOCKER_CONFIG, OCI_CONFIG)
    }

    /// Media type of a gzipped layer.
    pub const fn layer_gzip(self) -> &'static str {
        self.pick(DOCKER_LAYER_GZIP, OCI_LAYER_GZIP)
    }

    /// Media type of an uncompressed layer.
    pub const fn layer(self) -> &'static str {
        self.pick(DOCKER_LAYER, OCI_LAYER)
    }

    const fn foreign_layer(self) -> &'static str {
        self.pick(DOCKER_FOREIGN, OCI_FOREIGN)
    }
}

/// Returns true if the type is that of an image manifest.
pub fn is_manifest(media_type: &str) -> bool {
    matches!(media_type, DOCKER_MANIFEST | OCI_MANIFEST)
}

/// Returns true if the type is that of an index or a manifest list.
pub fn is_index(media_type: &str) -> bool {
    matches!(media_type, DOCKER_INDEX | OCI_INDEX)
}

pub(crate) fn is_config(media_type: &str) -> bool {
    matches!(media_type, DOCKER_CONFIG | OCI_CONFIG)
}

/// Returns true if a configuration of this type may be an image's: old clients and registries wrote
/// these types (docker/distribution#1621), and Docker reads such images.
pub(crate) fn is_unspecific(media_type: &str) -> bool {
    matches!(
        media_type,
        "" | "application/octet-stream" | "application/json" | "text/html"
    )
}

/// Returns true if the type is that of a foreign layer, which registries need not store:
/// Microsoft's base layers before 2023.
pub fn is_foreign(media_type: &str) -> bool {
    foreign_suffix(media_type).is_some()
}

/// The ordinary type for a foreign layer's type; other types are unchanged.
pub fn distributable(media_type: &str) -> String {
    match foreign_suffix(media_type) {
        Some((format, suffix)) => format!("{}{suffix}", format.layer()),
        None => media_type.to_owned(),
    }
}

/// The equivalent type in a format; unchanged if the format has none.
pub(crate) fn in_format(media_type: &str, format: ManifestFormat) -> String {
    let fixed = if is_manifest(media_type) {
        format.manifest()
    } else if is_index(media_type) {
        format.index()
    } else if is_config(media_type) {
        format.config()
    } else {
        return layer_in_format(media_type, format).unwrap_or_else(|| media_type.to_owned());
    };
    fixed.to_owned()
}

fn layer_in_format(media_type: &str, format: ManifestFormat) -> Option<String> {
    let suffix = match (compression(media_type)?, format) {
        (LayerCompression::None, _) => "",
        (LayerCompression::Gzip, ManifestFormat::Docker) => ".gzip",
        (LayerCompression::Gzip, ManifestFormat::Oci) => "+gzip",
        (LayerCompression::Zstd, ManifestFormat::Docker) => return None,
        (LayerCompression::Zstd, ManifestFormat::Oci) => "+zstd",
    };
    let stem = if is_foreign(media_type) {
        format.foreign_layer()
    } else {
        format.layer()
    };
    Some(format!("{stem}{suffix}"))
}

/// Format and compression suffix of a foreign layer's type.
fn foreign_suffix(media_type: &str) -> Option<(ManifestFormat, &str)> {
    let formats = [ManifestFormat::Docker, ManifestFormat::Oci].into_iter();
    let (format, suffix) = formats
        .map(|format| (format, media_type.strip_prefix(format.foreign_layer())))
        .find_map(|(format, suffix)| Some((format, suffix?)))?;
    (suffix.is_empty() || suffix.starts_with(['.', '+'])).then_some((format, suffix))
}

/// Compression of a layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayerCompression {
    /// A plain tar.
    None,
    /// A gzipped tar.
    Gzip,
    /// A tar compressed with zstd.
    Zstd,
}

/// Compression of a layer of this type; `None` where the type is not a layer's.
pub fn compression(media_type: &str) -> Option<LayerCompression> {
    let ordinary = distributable(media_type);
    let suffix = ordinary
        .strip_prefix(DOCKER_LAYER)
        .or_else(|| ordinary.strip_prefix(OCI_LAYER))?;
    match suffix {
        "" => Some(LayerCompression::None),
        ".gzip" | "+gzip" => Some(LayerCompression::Gzip),
        ".zstd" | "+zstd" => Some(LayerCompression::Zstd),
        _ => None,
    }
}
