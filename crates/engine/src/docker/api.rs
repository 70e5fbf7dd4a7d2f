//! The parts of the daemon's documents that are used. Every field is optional: a missing one is
//! reported where it is needed, and not by a parser made for another version of the API.

use std::collections::HashMap;

use bollard::models::ImageInspect;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use wincimg_oci::document::Image;
use wincimg_windows::compat::{HostBuild, Isolation, WindowsEdition};
use wincimg_windows::version::WindowsVersion;

/// Answer of `GET /info`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Info {
    /// `windows` or `linux`.
    #[serde(rename = "OSType", deserialize_with = "or_default")]
    pub(crate) os_type: String,
    /// The product, on Windows with the build and its revision in brackets.
    #[serde(deserialize_with = "or_default")]
    pub operating_system: String,
    /// On Windows `10.0.17763`, without a revision; absent before Docker 18.09.
    #[serde(rename = "OSVersion", deserialize_with = "or_default")]
    pub os_version: String,
    /// On Windows `10.0 14393 (14393.1770.amd64fre.rs1_release.170917-1700)`.
    #[serde(deserialize_with = "or_default")]
    pub kernel_version: String,
    /// On Windows the default isolation of containers.
    #[serde(deserialize_with = "or_default")]
    pub isolation: String,
    /// The version of Docker.
    #[serde(deserialize_with = "or_default")]
    pub server_version: String,
    /// The daemon's folder of images.
    #[serde(deserialize_with = "or_default")]
    pub(crate) docker_root_dir: String,
    /// Details of the daemon's store of images.
    #[serde(deserialize_with = "or_default")]
    pub(crate) driver_status: Vec<(String, String)>,
    /// The daemon's configuration of registries.
    #[serde(deserialize_with = "or_default")]
    pub registry_config: RegistryConfig,
}

/// The daemon's configuration of registries.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct RegistryConfig {
    /// Networks with registries that need no verified certificate.
    #[serde(rename = "InsecureRegistryCIDRs", deserialize_with = "or_default")]
    pub(crate) insecure_networks: Vec<String>,
    /// Registries named in `daemon.json`.
    #[serde(rename = "IndexConfigs", deserialize_with = "or_default")]
    pub registries: HashMap<String, KnownRegistry>,
}

/// A registry named in the daemon's configuration.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct KnownRegistry {
    /// True if its certificate is verified.
    #[serde(deserialize_with = "or_default")]
    pub secure: bool,
}

/// Details of an image in a daemon.
#[derive(Debug, Clone, Default)]
pub struct ImageInfo {
    /// The digest of its configuration.
    pub id: String,
    /// Its operating system.
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

impl ImageInfo {
    /// Returns true if its lowest layers are those of another image.
    pub(crate) fn is_on(&self, below: &Image) -> bool {
        let below = below.config().rootfs.diff_ids.iter();
        let own = self.layers.iter().take(below.len());
        below.map(AsRef::as_ref).eq(own.map(String::as_str))
    }
}

impl Info {
    /// Returns true if the daemon runs Windows containers.
    pub fn is_windows(&self) -> bool {
        match self.os_type.as_str() {
            "" => self.operating_system.contains("Windows"),
            os => os == "windows",
        }
    }

    /// Returns true if the daemon's images are in a store of containerd's, by the digests of their
    /// blobs; otherwise in one of its own, by those of their contents.
    pub(super) fn has_containerd_store(&self) -> bool {
        let mut status = self.driver_status.iter();
        status.any(|(key, value)| key == "driver-type" && value.starts_with("io.containerd."))
    }

    /// The operating system of the daemon's containers.
    pub fn os(&self) -> &str {
        match self.os_type.as_str() {
            "" if self.is_windows() => "windows",
            "" => "other",
            os => os,
        }
    }

    /// Version of the daemon's host, as far as it is reported.
    pub fn host_version(&self) -> Option<WindowsVersion> {
        let texts = [
            &self.operating_system, &self.os_version, &self.kernel_version,
        ];
        let versions = texts.iter().filter_map(|text| text.parse().ok());
        // The first complete version, or else the first partial one.
        let versions: Vec<WindowsVersion> = versions.collect();
        let whole = versions.iter().find(|version| version.revision.is_some());
        whole.or(versions.first()).copied()
    }

    /// Version and edition of the daemon's host, if known.
    pub fn host_build(&self) -> Option<HostBuild> {
        HostBuild::of_product(self.host_version()?, &self.operating_system)
    }

    /// Default isolation of containers: on clients Hyper-V, unless configured otherwise.
    pub fn default_isolation(&self) -> Isolation {
        let is_client = WindowsEdition::from_product_name(&self.operating_system)
            == Some(WindowsEdition::Client);
        match self.isolation.as_str() {
            "hyperv" => Isolation::HyperV,
            "process" => Isolation::Process,
            _ if is_client => Isolation::HyperV,
            _ => Isolation::Process,
        }
    }
}

/// The daemon writes `null` for empty values; values of an unexpected type count as absent.
fn or_default<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(T::deserialize(value).unwrap_or_default())
}
