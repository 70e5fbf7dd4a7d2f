//! The keys of a recipe file.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;
use wincimg_common::Named;
use wincimg_common::document::items;
use wincimg_windows::path::ImagePath;
use wincimg_windows::service::Service;

use super::access::AccessEntry;
use super::certificates::CertificatesEntry;
use super::container::HealthEntry;
use super::files::Target;
use super::iis::IisEntry;
use super::layers::LayerEntry;
use super::packages::PackageEntry;
use super::path::PathEntry;
use super::plan::{LogPattern, Port, ShutdownTimeout};
use super::registry::RegistryEntry;
use super::text::{Field, Text, Texts};

/// The keys of a recipe that are read before its variables have values.
#[derive(Debug, Deserialize)]
pub(super) struct Head {
    pub(super) name: Text,
    pub(super) description: Option<Text>,
    pub(super) base: Option<Text>,
    pub(super) base_image: Option<Text>,
    #[serde(default)]
    pub(super) variables: BTreeMap<String, Spanned<Variable>>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, Text>,
    #[serde(default)]
    pub(super) labels: BTreeMap<String, Text>,
}

/// A recipe: content and configuration of a Windows container image.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "wincimg recipe")]
pub(super) struct RecipeFile {
    /// The image's name.
    pub(super) name: Text,
    /// Purpose of the image, in one sentence.
    #[expect(dead_code, reason = "it is read before variables have values")]
    description: Option<Text>,
    /// The base: nanoserver, servercore, server, windows, aspnet, iis, or a repository, followed by
    /// a flavour if it has several: dotnet/aspnet:8.0. Or hostprocess, for an image without
    /// Windows.
    pub(super) base: Option<Text>,
    /// The base as a Dockerfile names it, instead of base: golang:1.22 or repo.lan/own@sha256:….
    /// The host selects only the Windows version of its tag.
    pub(super) base_image: Option<Text>,
    /// Inspect the base even if no other key requires it, so that the layers fit it.
    #[serde(default)]
    pub(super) look_inside: bool,
    /// Values that a build may set with --set NAME=VALUE.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Variable>")]
    #[expect(dead_code, reason = "they are read before they have values")]
    variables: BTreeMap<String, Spanned<Variable>>,
    /// Separate layers, the lowest first. Files and registry changes select one with layer; those
    /// without go into the recipe's last layer.
    #[serde(default)]
    pub(super) layers: Vec<LayerEntry>,
    /// Files and folders that go into the image.
    #[serde(default)]
    pub(super) files: Vec<FileEntry>,
    /// Changes to the image's registry.
    #[serde(default)]
    #[schemars(with = "Vec<RegistryEntry>")]
    pub(super) registry: Vec<Spanned<RegistryEntry>>,
    /// Runtimes by name, each a layer below those of packages: vcruntime-14. The archive of one is
    /// beside the recipe.
    #[serde(default)]
    pub(super) runtimes: Vec<Text>,
    /// Windows Installer packages, each a layer above the named ones.
    #[serde(default)]
    #[schemars(with = "Vec<PackageEntry>")]
    pub(super) msi: Vec<Spanned<PackageEntry>>,
    /// Environment variables.
    #[serde(default)]
    pub(super) env: BTreeMap<String, Text>,
    /// Folders added to the base's PATH.
    pub(super) path: Option<PathEntry>,
    /// The program that a container runs, with its arguments.
    pub(super) entrypoint: Option<Vec<Text>>,
    /// Default arguments of the entry point, or the program if there is no entry point. A string is
    /// split at its spaces, as Windows does.
    pub(super) cmd: Option<Texts>,
    /// True if entry point and arguments are one complete command line, as from a Dockerfile's
    /// shell form: Windows does not quote it again.
    #[serde(default)]
    pub(super) args_escaped: bool,
    /// User of the program: `ContainerUser`, `ContainerAdministrator` or a user of the image.
    pub(super) user: Option<Text>,
    /// Working directory of the program.
    pub(super) working_dir: Option<Field<ImagePath>>,
    /// Ports that the program listens on, such as 8080 or 53/udp.
    #[serde(default)]
    pub(super) ports: Vec<Field<Port>>,
    /// Volumes: folders whose content containers store outside of the image.
    #[serde(default)]
    pub(super) volumes: Vec<Text>,
    /// The signal that asks a container to stop.
    pub(super) stop_signal: Option<Text>,
    /// Shell for shell-form instructions in Dockerfiles based on the image.
    #[serde(default)]
    pub(super) shell: Vec<Text>,
    /// Instructions that run in Dockerfiles based on the image.
    #[serde(default)]
    pub(super) on_build: Vec<Text>,
    /// Health check of Docker.
    pub(super) healthcheck: Option<HealthEntry>,
    /// Author of the image.
    pub(super) author: Option<Text>,
    /// Labels of the image.
    #[serde(default)]
    pub(super) labels: BTreeMap<String, Text>,
    /// Seconds that a container has to stop; sets both registry values of Windows.
    pub(super) shutdown_timeout: Option<Field<ShutdownTimeout>>,
    /// Log files whose lines the shim prints, as patterns: C:\logs\**\*.log.
    #[serde(default, deserialize_with = "items")]
    #[schemars(with = "Texts")]
    pub(super) logs: Vec<LogPattern>,
    /// Certificates that Windows trusts in the image.
    pub(super) certificates: Option<CertificatesEntry>,
    /// Rights on files and folders.
    #[serde(default)]
    pub(super) access: Vec<AccessEntry>,
    /// Services of the image.
    #[serde(default)]
    pub(super) services: Vec<Service>,
    /// Settings of IIS, which the base must include.
    pub(super) iis: Option<IisEntry>,
    /// Commands that run during the build, as `ContainerAdministrator`. They require Windows and
    /// the docker engine.
    #[serde(default)]
    #[schemars(with = "Vec<RunEntry>")]
    pub(super) run: Vec<Spanned<RunEntry>>,
}

/// A value that a build may set.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { type = \"integer\", default = 1 }"
)]
pub struct Variable {
    /// Type of the value.
    #[serde(rename = "type", default)]
    pub kind: VariableType,
    /// Default value; a variable without one must be set.
    pub(super) default: Option<Text>,
    /// Description.
    pub description: Option<String>,
}

impl Variable {
    /// Default value.
    pub fn default_value(&self) -> Option<&str> {
        self.default.as_ref().map(|text| text.value.as_str())
    }
}

/// Type of a variable's value.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, serde::Serialize, JsonSchema, Named,
)]
#[serde(rename_all = "lowercase")]
pub enum VariableType {
    /// Any text.
    #[default]
    String,
    /// A whole number.
    Integer,
    /// true or false.
    Boolean,
}

impl VariableType {
    pub(super) fn accepts(self, value: &str) -> bool {
        match self {
            Self::String => true,
            Self::Integer => value.parse::<i64>().is_ok(),
            Self::Boolean => matches!(value, "true" | "false"),
        }
    }
}

/// A file or folder. Its source is exactly one of from, context, url, embedded, content and base64;
/// image with from is the path in that image.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { from = \"app\", to = \"/app\" }"
)]
pub(super) struct FileEntry {
    /// A path relative to the recipe's folder; with image, a path in that image.
    pub(super) from: Option<Text>,
    /// The image that has the file: a reference with a registry, oci:DIR[:TAG] or
    /// docker-archive:FILE[:NAME], relative to the recipe's folder. Of an index, or of a tag that
    /// names a Windows version, the one for the host. Its digest is in wincimg.lock, or in the
    /// reference.
    pub(super) image: Option<Text>,
    /// A path relative to the build's context.
    pub(super) context: Option<Text>,
    /// URL of the file.
    pub(super) url: Option<Text>,
    /// SHA-256 of the download; default: the one in wincimg.lock next to the recipe.
    pub(super) sha256: Option<Text>,
    /// Unpack the archive into the destination: true for every format, or the only format
    /// accepted: zip, tar (also compressed with gzip, zstd, xz or bzip2) or 7z.
    pub(super) unpack: Option<Text>,
    /// Number of leading path components to remove from each path in the archive.
    pub(super) strip: Option<Text>,
    /// A program built into wincimg: shim.
    pub(super) embedded: Option<Text>,
    /// The file's content as text.
    pub(super) content: Option<Text>,
    /// Encoding of content: utf-8 (the default) or utf-16, as PowerShell writes it.
    pub(super) encoding: Option<Text>,
    /// The file's content in base64.
    pub(super) base64: Option<Text>,
    /// Name of its layer; default: the recipe's last.
    pub(super) layer: Option<Text>,
    /// Destination in the image. A trailing separator makes it the folder for the file.
    pub(super) to: Field<Target>,
}

/// One command of the build; either command or shell.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { shell = \"dir\" } or { command = [\"cmd\", \"/c\", \"dir\"] }"
)]
pub(super) struct RunEntry {
    /// A program and its arguments, passed unchanged.
    pub(super) command: Option<Vec<Text>>,
    /// A command line for the image's shell.
    pub(super) shell: Option<Text>,
}

/// The JSON schema of recipe files, for editors.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(RecipeFile).to_value()
}
