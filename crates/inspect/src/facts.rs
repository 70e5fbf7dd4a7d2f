//! Facts from an image's manifest and configuration, and about its Windows.

use std::collections::BTreeMap;
use std::error::Error;

use serde::{Serialize, Serializer};
use serde_json::Value;
use wincimg_common::diagnose::error_chain;
use wincimg_images::shim;
use wincimg_images::shim::Shim;
use wincimg_images::wrapper::{Wrapper, wrappers};
use wincimg_oci::document::{BASE_DIGEST, BASE_NAME, Digest, Image, Platform, media_type};
use wincimg_windows::release;
use wincimg_windows::update::{Update, Updates};
use wincimg_windows::version::WindowsVersion;

use super::contents::ImageWaste;
use super::{
    LayerReadError, LayerReadStatus, RegistryReport, ShutdownTimes, SkipReason, UnclosedHive,
};

/// All facts about one image.
#[derive(Debug, Serialize)]
pub struct ImageFacts {
    /// The digest of the image's manifest.
    pub digest: Digest,
    /// The manifest's type.
    pub media_type: String,
    /// `windows`, `linux`, …
    pub os: String,
    /// The version of Windows inside, `10.0.17763.973`.
    pub os_version: Option<String>,
    /// `amd64`, `arm64`, …
    pub architecture: String,
    /// The processor's variant, `v8`.
    pub variant: Option<String>,
    /// The name of the Windows release.
    pub release: Option<&'static str>,
    /// The last cumulative update that the image contains.
    pub update: Option<Update>,
    /// Creation time, according to the image.
    pub created: Option<String>,
    /// The base, according to the labels.
    pub base: Option<BaseAnnotation>,
    /// The program and its fixed arguments.
    pub entrypoint: Option<Vec<String>>,
    /// Arguments that can be replaced when the image is run.
    pub cmd: Option<Vec<String>>,
    /// True if these are a complete command line, which Windows does not quote again.
    pub args_escaped: bool,
    /// The shim and its settings, if it is the entry point.
    pub shim: Option<Shim>,
    /// The programs that it runs before its own, outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub wrappers: Vec<Wrapper>,
    /// The shell of a child image's `RUN` lines; without one, `cmd /S /C`.
    pub shell: Option<Vec<String>>,
    /// The account that the entry point runs as.
    pub user: Option<String>,
    /// The directory that it starts in.
    pub working_dir: Option<String>,
    /// Environment variables, `NAME=VALUE`.
    pub env: Vec<String>,
    /// Ports, `80/tcp`.
    pub ports: Vec<String>,
    /// Folders that containers get a volume for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub volumes: Vec<String>,
    /// The check of a container's health, as it is written: `Test`, `Interval` and others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub healthcheck: Option<Value>,
    /// Instructions of `ONBUILD`, for images built on this one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_build: Vec<String>,
    /// Annotations of the manifest.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Labels.
    pub labels: BTreeMap<String, String>,
    /// The size of all layers as they are stored.
    pub size: u64,
    /// The layers, the base first.
    pub layers: Vec<LayerFacts>,
    /// Time that a container gets to stop; none if no layer was to be read.
    pub shutdown: Option<ShutdownTimes>,
    /// Registry changes of the layers, if requested.
    pub registry: Option<RegistryReport>,
    /// Files that no container sees, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waste: Option<ImageWaste>,
}

/// One layer of an image.
#[derive(Debug, Serialize)]
pub struct LayerFacts {
    /// The digest of the layer as it is stored.
    pub digest: Digest,
    /// The digest of the uncompressed tar.
    pub diff_id: Digest,
    /// Its size as it is stored.
    pub size: u64,
    /// Its type.
    pub media_type: String,
    /// True if registries may omit its bytes.
    pub foreign: bool,
    /// The build step that created it, according to the image's history.
    pub created_by: Option<String>,
    /// Extent to which it was read for its registry changes.
    #[serde(flatten)]
    pub reading: LayerReadStatus,
    /// Its hives that were not closed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unclosed_hives: Vec<UnclosedHive>,
    /// Compression of its bytes, if its type says another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored_as: Option<&'static str>,
    /// Parts of it without effect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Problems found while reading it.
    #[serde(serialize_with = "as_texts", skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<LayerReadError>,
}

/// Base of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BaseAnnotation {
    /// Its reference.
    pub name: Option<String>,
    /// Its digest.
    pub digest: Option<String>,
}

impl ImageFacts {
    /// Facts from the documents; no layer is read yet.
    pub(super) fn new(image: &Image) -> Self {
        let (manifest, config) = (image.manifest(), image.config());
        let version = config
            .os_version
            .as_deref()
            .filter(|_| config.os == "windows")
            .and_then(|text| text.parse::<WindowsVersion>().ok());
        let container = &config.config;
        let layers = layers(image);
        let entrypoint = container.entrypoint.as_deref().unwrap_or_default();
        let cmd = container.cmd.as_deref().unwrap_or_default();
        Self {
            digest: image.digest().clone(),
            media_type: manifest.media_type().to_owned(),
            os: config.os.clone(),
            os_version: config.os_version.clone(),
            architecture: config.architecture.clone(),
            variant: config.variant.clone(),
            release: version
                .and_then(|version| release::from_build(version.build))
                .map(|release| release.name),
            update: version
                .and_then(|version| Updates::global().contained_in(version))
                .copied(),
            created: config.created.clone(),
            base: base_of(image),
            entrypoint: container.entrypoint.clone(),
            cmd: container.cmd.clone(),
            args_escaped: container.args_escaped,
            shim: shim::detect(entrypoint, cmd, &container.env),
            wrappers: wrappers(entrypoint, cmd, &container.env),
            shell: container.shell.clone(),
            user: non_empty(container.user.as_ref()),
            working_dir: non_empty(container.working_dir.as_ref()),
            env: container.env.clone(),
            ports: container.exposed_ports.keys().cloned().collect(),
            volumes: match container.other.get("Volumes") {
                Some(Value::Object(volumes)) => volumes.keys().cloned().collect(),
                _ => Vec::new(),
            },
            healthcheck: container
                .other
                .get("Healthcheck")
                .filter(|check| check.is_object())
                .cloned(),
            on_build: container.on_build.clone(),
            annotations: image.annotations(),
            labels: container.labels.clone(),
            size: layers.iter().map(|layer| layer.size).sum(),
            layers,
            shutdown: None,
            registry: None,
            waste: None,
        }
    }

    /// Returns true if the image is for Windows.
    pub fn is_windows(&self) -> bool {
        self.os == "windows"
    }

    /// Platform of the image.
    pub fn platform(&self) -> Platform {
        Platform {
            os: self.os.clone(),
            architecture: self.architecture.clone(),
            variant: self.variant.clone(),
            os_version: self.os_version.clone(),
            ..Platform::default()
        }
    }
}

/// Docker writes an empty text for an unset value.
fn non_empty(text: Option<&String>) -> Option<String> {
    text.filter(|text| !text.is_empty()).cloned()
}

fn base_of(image: &Image) -> Option<BaseAnnotation> {
    let (name, digest) = (image.recorded(BASE_NAME), image.recorded(BASE_DIGEST));
    (name.is_some() || digest.is_some()).then(|| BaseAnnotation {
        name: name.map(str::to_owned),
        digest: digest.map(str::to_owned),
    })
}

fn layers(image: &Image) -> Vec<LayerFacts> {
    let steps: Vec<Option<String>> = image
        .config()
        .history
        .iter()
        .filter(|step| !step.empty_layer)
        .map(|step| non_empty(step.created_by.as_ref()))
        .collect();
    // A history that does not match the layers is ignored.
    let fits = steps.len() == image.manifest().layers.len();
    let mut steps = steps.into_iter().filter(|_| fits);
    std::iter::zip(&image.manifest().layers, &image.config().rootfs.diff_ids)
        .map(|(blob, diff_id)| LayerFacts {
            digest: blob.digest.clone(),
            diff_id: diff_id.clone(),
            size: blob.size,
            media_type: blob.media_type.clone(),
            foreign: media_type::is_foreign(&blob.media_type),
            created_by: steps.next().flatten(),
            reading: LayerReadStatus::Skipped {
                reason: SkipReason::NotAsked,
            },
            unclosed_hives: Vec::new(),
            stored_as: None,
            warnings: Vec::new(),
            problems: Vec::new(),
        })
        .collect()
}

fn as_texts<S: Serializer>(errors: &[impl Error], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(errors.iter().map(|error| error_chain(error)))
}
