//! The parts of the daemon's documents that are used. Everything may be absent: what is missing is
//! noticed where it is needed, and not by a parser that knows another version of the API.

use std::collections::HashMap;

use bollard::models::ImageInspect;
use serde::{Deserialize, Deserializer};

use crate::windows::compat::{Edition, HostBuild, Isolation};
use crate::windows::version::WindowsVersion;

/// What `GET /info` says of a daemon.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Info {
    /// `windows` or `linux`.
    #[serde(rename = "OSType")]
    pub os_type: String,
    /// The product, on Windows with the build and its revision in brackets.
    pub operating_system: String,
    /// On Windows `10.0.17763`, without a revision.
    #[serde(rename = "OSVersion")]
    pub os_version: String,
    /// On Windows the isolation of containers that ask for none.
    pub isolation: String,
    /// The version of Docker.
    pub server_version: String,
    /// Where the daemon keeps images.
    pub docker_root_dir: String,
    /// What the daemon knows of registries.
    #[serde(deserialize_with = "or_default")]
    pub registry_config: RegistryConfig,
}

/// What a daemon knows of registries.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct RegistryConfig {
    /// Networks whose registries need not be trusted.
    #[serde(rename = "InsecureRegistryCIDRs", deserialize_with = "or_default")]
    pub insecure_networks: Vec<String>,
    /// Registries that `daemon.json` names.
    #[serde(rename = "IndexConfigs", deserialize_with = "or_default")]
    pub registries: HashMap<String, KnownRegistry>,
}

/// A registry that a daemon's configuration names.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct KnownRegistry {
    /// Whether it has to prove who it is.
    pub secure: bool,
}

/// What a daemon knows of an image.
#[derive(Debug, Clone, Default)]
pub struct ImageInfo {
    /// The digest of its configuration.
    pub id: String,
    /// The operating system it is for.
    pub os: String,
    /// Its version of Windows.
    pub os_version: String,
    /// The digests of its uncompressed layers, the lowest first.
    pub layers: Vec<String>,
}

impl From<ImageInspect> for ImageInfo {
    fn from(image: ImageInspect) -> Self {
        let layers = image.root_fs.and_then(|files| files.layers);
        Self {
            id: image.id.unwrap_or_default(),
            os: image.os.unwrap_or_default(),
            os_version: image.os_version.unwrap_or_default(),
            layers: layers.unwrap_or_default(),
        }
    }
}

impl Info {
    /// Whether the daemon makes Windows containers.
    pub fn is_windows(&self) -> bool {
        self.os_type == "windows"
    }

    /// The version of the machine that the daemon runs on.
    pub fn host_build(&self) -> Option<HostBuild> {
        let version: WindowsVersion = self
            .operating_system
            .parse()
            .or_else(|_| self.os_version.parse())
            .ok()?;
        Some(HostBuild {
            version,
            edition: Edition::of_product(&self.operating_system).unwrap_or(Edition::Server),
        })
    }

    /// How containers are isolated that ask for nothing.
    pub fn default_isolation(&self) -> Isolation {
        if self.isolation == Isolation::HyperV.name() {
            Isolation::HyperV
        } else {
            Isolation::Process
        }
    }
}

/// The daemon writes `null` for what is empty.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
