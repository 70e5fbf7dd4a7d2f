//! Descriptors of content: media type, digest, size and, in an index, platform.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use wincimg_common::json::{or_default, or_default_values};

use super::digest::Digest;

/// Maximum size of a blob in bytes: far above real ones, and small enough that those of all blobs of
/// a document can be added up.
const LARGEST: u64 = 1 << 40;
/// The annotation by which attestations of buildx name their image.
const ATTESTED: &str = "vnd.docker.reference.digest";

/// A descriptor of a blob or a manifest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Media type of the content; empty if an old writer omitted it.
    #[serde(default)]
    pub media_type: String,
    /// Digest of the content.
    pub digest: Digest,
    /// Size in bytes.
    #[serde(deserialize_with = "size")]
    pub size: u64,
    /// Download URLs of a foreign layer.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub urls: Vec<String>,
    /// Platform of an index's entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Annotations.
    #[serde(
        default,
        deserialize_with = "or_default_values",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub annotations: BTreeMap<String, String>,
    /// Fields unknown to this crate, preserved as they are.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Descriptor {
    /// A descriptor with only the required fields.
    pub fn new(media_type: impl Into<String>, digest: Digest, size: u64) -> Self {
        Self {
            media_type: media_type.into(),
            digest,
            size,
            urls: Vec::new(),
            platform: None,
            annotations: BTreeMap::new(),
            other: Map::new(),
        }
    }

    /// Returns true if its platform is one of Windows.
    pub fn is_for_windows(&self) -> bool {
        let platform = self.platform.as_ref();
        platform.is_some_and(|platform| platform.os == "windows")
    }

    /// Digest of the image that an index's entry attests.
    pub fn attested(&self) -> Option<&str> {
        self.annotations.get(ATTESTED).map(String::as_str)
    }

    /// The same descriptor with a platform.
    #[must_use]
    pub fn with_platform(mut self, platform: Platform) -> Self {
        self.platform = Some(platform);
        self
    }
}

/// Platform of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Platform {
    /// `amd64`, `arm64`, …
    pub architecture: String,
    /// `windows`, `linux`, …
    pub os: String,
    /// The version of Windows inside the image, `10.0.17763.973`.
    #[serde(rename = "os.version", skip_serializing_if = "Option::is_none")]
    pub os_version: Option<String>,
    /// Features required of the host, such as `win32k`.
    #[serde(
        rename = "os.features",
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub os_features: Vec<String>,
    /// The processor's variant, `v8`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// Fields unknown to this crate, preserved as they are.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Platform {
    /// Windows on amd64 in this version.
    pub fn windows(os_version: impl Into<String>) -> Self {
        Self {
            architecture: "amd64".to_owned(),
            os: "windows".to_owned(),
            os_version: Some(os_version.into()),
            ..Self::default()
        }
    }
}

impl fmt::Display for Platform {
    /// `windows/amd64:10.0.17763.973`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        for (sign, part) in [('/', &self.variant), (':', &self.os_version)] {
            if let Some(part) = part.as_deref().filter(|part| !part.is_empty()) {
                write!(f, "{sign}{part}")?;
            }
        }
        Ok(())
    }
}

/// The variant of an architecture, unless it is the usual one, which containerd drops: `v8` of arm64.
pub fn needed_variant<'a>(architecture: &str, variant: Option<&'a str>) -> Option<&'a str> {
    variant.filter(|variant| {
        !matches!(
            (architecture, *variant),
            (_, "") | ("amd64", "v1") | ("arm64", "8" | "v8" | "v8.0")
        )
    })
}

fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    let size = u64::deserialize(deserializer)?;
    if size > LARGEST {
        let expected = "a size of at most 1 TiB";
        return Err(D::Error::invalid_value(
            Unexpected::Unsigned(size),
            &expected,
        ));
    }
    Ok(size)
}
