//! An image's configuration: its platform, its start configuration and the digests of its unpacked
//! layers.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Not;

use serde::de::{Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use wincimg_common::json::{or_default, or_default_values};

use super::descriptor::Platform;
use super::digest::Digest;
use super::verbatim::DocumentType;

/// An image's configuration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ImageConfig {
    /// Creation time of the image, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// `amd64`, `arm64`, …
    #[serde(deserialize_with = "or_default")]
    pub architecture: String,
    /// `windows`, `linux`, …
    #[serde(deserialize_with = "or_default")]
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
    /// Start configuration of a container.
    #[serde(deserialize_with = "or_default")]
    pub config: ContainerConfig,
    /// Digests of the unpacked layers.
    #[serde(deserialize_with = "or_default")]
    pub rootfs: RootFs,
    /// History of the image, one entry for each build step.
    #[serde(
        deserialize_with = "limited_history",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub history: Vec<History>,
    /// Fields unknown to this crate, preserved as they are.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl DocumentType for ImageConfig {
    const WHAT: &'static str = "image configuration";
}

impl ImageConfig {
    /// Returns true if bytes of an unspecific media type are an image's configuration, which alone
    /// names unpacked layers.
    pub fn is_in(bytes: &[u8]) -> bool {
        let value = serde_json::from_slice::<Value>(bytes);
        value.is_ok_and(|value| value.get("rootfs").is_some_and(Value::is_object))
    }

    /// Platform of the image.
    pub fn platform(&self) -> Platform {
        Platform {
            architecture: self.architecture.clone(),
            os: self.os.clone(),
            os_version: self.os_version.clone(),
            os_features: self.os_features.clone(),
            variant: self.variant.clone(),
            other: Map::new(),
        }
    }
}

/// Start configuration of a container.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct ContainerConfig {
    /// The account that the entry point runs as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Ports such as `80/tcp`; the values are empty objects.
    #[serde(
        deserialize_with = "or_default",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub exposed_ports: BTreeMap<String, Value>,
    /// Environment variables, `NAME=VALUE`.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// The program and its fixed arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entrypoint: Option<Vec<String>>,
    /// Default arguments, which can be overridden at run time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cmd: Option<Vec<String>>,
    /// True if entry point and command are a complete command line, which Windows does not quote
    /// again.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Not::not")]
    pub args_escaped: bool,
    /// The directory that the entry point starts in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_dir: Option<String>,
    /// Labels.
    #[serde(
        deserialize_with = "or_default_values",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub labels: BTreeMap<String, String>,
    /// Dockerfile instructions (`ONBUILD`) for images built on this one.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Vec::is_empty")]
    pub on_build: Vec<String>,
    /// The shell for `RUN` lines of child images; `cmd /S /C` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shell: Option<Vec<String>>,
    /// Fields unknown to this crate, preserved as they are.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Digests of an image's unpacked layers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RootFs {
    /// Always `layers`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Digests of the uncompressed layers, the base first.
    #[serde(deserialize_with = "or_default")]
    pub diff_ids: Vec<Digest>,
    /// Fields unknown to this crate, preserved as they are.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Default for RootFs {
    fn default() -> Self {
        Self {
            kind: "layers".to_owned(),
            diff_ids: Vec::new(),
            other: Map::new(),
        }
    }
}

/// Maximum number of build steps: far above real ones, of which each takes a hundred times the memory
/// of its `{}`.
const MOST_STEPS: usize = 10_000;

/// Reads a history up to the limit, or `null`.
fn limited_history<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<History>, D::Error> {
    struct Steps;

    impl<'de> Visitor<'de> for Steps {
        type Value = Vec<History>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {MOST_STEPS} steps")
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Vec::new())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut steps = Vec::new();
            while let Some(step) = list.next_element()? {
                if steps.len() == MOST_STEPS {
                    return Err(A::Error::invalid_length(MOST_STEPS + 1, &self));
                }
                steps.push(step);
            }
            Ok(steps)
        }
    }
    deserializer.deserialize_any(Steps)
}

/// One build step of an image.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    /// Creation time, as RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The instruction or tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<String>,
    /// A comment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// True if the step changed only the configuration and created no layer.
    #[serde(deserialize_with = "or_default", skip_serializing_if = "Not::not")]
    pub empty_layer: bool,
    /// Fields unknown to this crate, preserved as they are.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}
