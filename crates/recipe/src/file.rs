//! The shape of a recipe's file.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;
use wincimg_windows::path::ImagePath;

use super::access::AccessEntry;
use super::certificates::CertificatesEntry;
use super::container::HealthEntry;
use super::files::Target;
use super::iis::IisEntry;
use super::layers::LayerEntry;
use super::path::PathEntry;
use super::plan::{Port, ShutdownTimeout};
use super::registry::RegistryEntry;
use super::services::ServiceEntry;
use super::text::{Field, Text, Texts};

/// What is known of a recipe before its variables have values; of other keys nothing is read.
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

/// A recipe: what a Windows container image is to hold.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "wincimg recipe")]
pub(super) struct RecipeFile {
    /// The image's name.
    pub(super) name: Text,
    /// One sentence on what the image is for.
    #[expect(dead_code, reason = "it is read before variables have values")]
    description: Option<Text>,
    /// nanoserver, servercore, server, windows, aspnet, iis, or a repository; where that has several
    /// flavours, with one behind a colon: dotnet/aspnet:8.0. Or hostprocess, for an image without
    /// Windows inside.
    pub(super) base: Option<Text>,
    /// In place of base, the base as a Dockerfile names it, such as golang:1.22 or
    /// repo.lan/own@sha256:…: of its tag the host decides on Windows alone, and on nothing else.
    pub(super) base_image: Option<Text>,
    /// Look inside the base although nothing here needs it, so that the image fits it better.
    #[serde(default)]
    pub(super) look_inside: bool,
    /// Values that a build may set with --set NAME=VALUE.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Variable>")]
    #[expect(dead_code, reason = "they are read before they have values")]
    variables: BTreeMap<String, Spanned<Variable>>,
    /// Layers of their own, the lowest first; files and registry changes name theirs with layer. What
    /// names none goes into the recipe's last layer.
    #[serde(default)]
    pub(super) layers: Vec<LayerEntry>,
    /// Files and folders that go into the image.
    #[serde(default)]
    pub(super) files: Vec<FileEntry>,
    /// Changes to the image's registry.
    #[serde(default)]
    #[schemars(with = "Vec<RegistryEntry>")]
    pub(super) registry: Vec<Spanned<RegistryEntry>>,
    /// Environment variables.
    #[serde(default)]
    pub(super) env: BTreeMap<String, Text>,
    /// Folders that are added to the base's PATH.
    pub(super) path: Option<PathEntry>,
    /// The program that a container runs, with its arguments.
    pub(super) entrypoint: Option<Vec<Text>>,
    /// Arguments that follow the entry point unless others are given, or the program without one; one
    /// text is taken apart at its spaces, as Windows does.
    pub(super) cmd: Option<Texts>,
    /// True if entry point and arguments are a ready command line, as a Dockerfile's shell form
    /// makes it: Windows does not quote it again.
    #[serde(default)]
    pub(super) args_escaped: bool,
    /// User that runs it: `ContainerUser`, `ContainerAdministrator` or a user of the image.
    pub(super) user: Option<Text>,
    /// The folder it starts in.
    pub(super) working_dir: Option<Field<ImagePath>>,
    /// Ports it listens on, as 8080 or 53/udp.
    #[serde(default)]
    pub(super) ports: Vec<Field<Port>>,
    /// Folders whose content containers keep apart from the image.
    #[serde(default)]
    pub(super) volumes: Vec<Text>,
    /// The signal that asks a container to stop.
    pub(super) stop_signal: Option<Text>,
    /// What reads lines in shell form in Dockerfiles that are built on the image.
    #[serde(default)]
    pub(super) shell: Vec<Text>,
    /// Instructions for Dockerfiles that are built on the image.
    #[serde(default)]
    pub(super) on_build: Vec<Text>,
    /// Health check of Docker.
    pub(super) healthcheck: Option<HealthEntry>,
    /// Author of the image.
    pub(super) author: Option<Text>,
    /// Labels of the image.
    #[serde(default)]
    pub(super) labels: BTreeMap<String, Text>,
    /// Seconds that a container gets to stop; sets both registry keys of Windows.
    pub(super) shutdown_timeout: Option<Field<ShutdownTimeout>>,
    /// Certificates that Windows trusts in the image.
    pub(super) certificates: Option<CertificatesEntry>,
    /// Rights on files and folders.
    #[serde(default)]
    pub(super) access: Vec<AccessEntry>,
    /// Services of the image.
    #[serde(default)]
    pub(super) services: Vec<ServiceEntry>,
    /// Settings of a site on IIS, which the base has to have.
    pub(super) iis: Option<IisEntry>,
    /// Commands that run during the build, as `ContainerAdministrator`. They need Windows, so only
    /// the docker engine takes them.
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
pub(super) struct Variable {
    /// Type of the value.
    #[serde(rename = "type", default)]
    pub(super) kind: VariableType,
    /// The value if none is set; without a default it has to be set.
    pub(super) default: Option<Text>,
    /// Description.
    pub(super) description: Option<String>,
}

/// Type of a variable's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, serde::Serialize, JsonSchema)]
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

impl fmt::Display for VariableType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
        })
    }
}

/// One file or folder; exactly one of from, context, url, embedded, content and base64 says where it comes
/// from.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { from = \"app\", to = \"/app\" }"
)]
pub(super) struct FileEntry {
    /// A path relative to the recipe's folder.
    pub(super) from: Option<Text>,
    /// A path relative to the build's context.
    pub(super) context: Option<Text>,
    /// URL of the file.
    pub(super) url: Option<Text>,
    /// The SHA-256 of the download; without it, wincimg.lock next to the recipe has it.
    pub(super) sha256: Option<Text>,
    /// True if what is in an archive goes there, in place of the archive: true, or the only kind
    /// that it may be, zip, tar or 7z. A tar may be compressed by gzip, zstd, xz or bzip2.
    pub(super) unpack: Option<Text>,
    /// Number of names dropped from the start of each path in the archive.
    pub(super) strip: Option<Text>,
    /// A program that is part of wincimg: shim.
    pub(super) embedded: Option<Text>,
    /// The file's text itself.
    pub(super) content: Option<Text>,
    /// How that is written: utf-8 (the default) or utf-16, as PowerShell does.
    pub(super) encoding: Option<Text>,
    /// The file's bytes themselves.
    pub(super) base64: Option<Text>,
    /// The layer that it goes into; the recipe's last where absent.
    pub(super) layer: Option<Text>,
    /// Where it goes in the image; a file given with a separator at the end goes into that folder.
    pub(super) to: Field<Target>,
}

/// One command of the build; either command or shell.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { shell = \"dir\" } or { command = [\"cmd\", \"/c\", \"dir\"] }"
)]
pub(super) struct RunEntry {
    /// A program and its arguments, which reach it as they are.
    pub(super) command: Option<Vec<Text>>,
    /// A line for the image's shell.
    pub(super) shell: Option<Text>,
}

/// The JSON schema of recipe files, for editors.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(RecipeFile).to_value()
}
