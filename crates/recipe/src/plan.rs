//! The plan: everything about an image to be made, and nothing about how.

mod from_recipe;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub(super) use from_recipe::{LogPattern, Port, ShutdownTimeout};
use serde::Serialize;
use wincimg_common::untrusted::UntrustedText;
use wincimg_iis::{IisSettings, server_config};
use wincimg_oci::document::ContainerConfig;
use wincimg_registry::{RegistryEdit, Root, hive};
use wincimg_windows::access::{Access, AccessChange};
use wincimg_windows::base_contents::{BaseContents, BaseRequirements};
use wincimg_windows::certificate::TrustedCertificate;
use wincimg_windows::path::ImagePath;
use wincimg_windows::search_path::{PathAdditions, SearchPathError};
use wincimg_windows::service::Service;
use wincimg_windows::shutdown;
use wincimg_windows::version::WindowsVersion;

use super::packages::HIVES;
use super::source::{DownloadRequest, DownloadRequests, FileSource, ImageFiles, PlannedDownload};
use super::{Instructions, PlannedArchive, PlannedEntry, PlannedLayer};

/// Everything about an image to be made. Equal plans make equal images.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Plan {
    /// The image's name, without registry and tag.
    pub name: String,
    /// The base image.
    pub base: PlanBase,
    /// The host that it is for; none for any host.
    pub host_build: Option<WindowsVersion>,
    /// Dockerfile instructions or recipe layers, which apply before the fields below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Instructions>,
    /// True if the layers are fitted to the base's content even if no other field requires it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub looks_inside: bool,
    /// Files put into it; no two may be the same file.
    #[serde(serialize_with = "as_files")]
    pub files: Vec<PlannedEntry>,
    /// Registry changes, in order, except for those that other fields imply.
    pub registry: Vec<RegistryEdit>,
    /// Variables added to the base's environment.
    pub env: BTreeMap<String, String>,
    /// Folders added to the base's PATH.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathAdditions>,
    /// The program that a container runs; the base's where absent.
    pub entrypoint: Option<Vec<String>>,
    /// Default arguments; the base's where absent.
    pub cmd: Option<Vec<String>>,
    /// User; the base's where absent.
    pub user: Option<String>,
    /// Working directory; the base's where absent.
    pub working_dir: Option<ImagePath>,
    /// Ports added to the base's, as `8080/tcp`.
    pub ports: Vec<String>,
    /// Labels added to the base's.
    pub labels: BTreeMap<String, String>,
    /// Seconds that a container has to stop; the base's where absent.
    pub shutdown_timeout: Option<u32>,
    /// The certificates that Windows trusts in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub certificates: Vec<TrustedCertificate>,
    /// The rights that it grants, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub access: Vec<Access>,
    /// Its services.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
    /// Settings of IIS.
    pub iis: Option<IisSettings>,
    /// Commands to run on Windows during the build.
    pub steps: Vec<PlannedCommand>,
    /// Notes for the recipe's author.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Warnings for the recipe's author.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The image that another one is built on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PlanBase {
    /// Its reference by tag, or by digest if it has no tag.
    pub name: String,
    /// The digest of its manifest.
    pub digest: String,
    /// Its version of Windows; none where it contains no Windows.
    #[serde(serialize_with = "as_os_version")]
    pub os_version: Option<WindowsVersion>,
    /// Shell for its commands in shell form; `cmd` where absent.
    pub shell: Option<Vec<String>>,
    /// User of its programs; an administrator where absent.
    pub user: Option<String>,
    /// Its `ONBUILD` instructions, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on_build: Vec<String>,
    /// Configuration of its containers.
    #[serde(skip)]
    pub container: ContainerConfig,
}

impl PlanBase {
    /// Returns true for one of Microsoft's images of Windows without other programs, by its name
    /// there or in a mirror: at the top of its drive are only the folders of Windows.
    pub(super) fn is_windows_alone(&self) -> bool {
        let mut segments = self.name.split('@').next().unwrap_or_default().rsplit('/');
        let last = segments.next().unwrap_or_default();
        match (last.split(':').next().unwrap_or_default(), segments.next()) {
            ("nanoserver" | "servercore" | "server", above) => {
                above.is_none_or(|it| it == "windows")
            }
            ("windows", above) => above.is_none_or(|it| it == "mcr.microsoft.com"),
            _ => false,
        }
    }

    /// Returns true for one of Microsoft's images without a `web.config` of a site, by its name
    /// there or in a mirror.
    fn lacks_web_config(&self) -> bool {
        let name = self.name.split('@').next().unwrap_or_default();
        let (above, last) = name.rsplit_once('/').unwrap_or(("", name));
        let last = last.split(':').next().unwrap_or_default();
        let repository = format!("/{above}/{last}");
        let with_iis = [
            "/windows/servercore/iis",
            "/dotnet/framework/aspnet",
            "/dotnet/framework/wcf",
        ];
        self.is_windows_alone() || with_iis.iter().any(|own| repository.ends_with(own))
    }
}

/// With the leading `10.0.`, as image configurations and the other results write it.
#[expect(clippy::ref_option, reason = "serde hands the field over like this")]
fn as_os_version<S: serde::Serializer>(
    version: &Option<WindowsVersion>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    version
        .map(|version| version.os_version())
        .serialize(serializer)
}

/// As in recipes, where an archive is a file with options.
fn as_files<S: serde::Serializer>(
    files: &[PlannedEntry],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    #[serde(untagged)]
    enum File<'f> {
        Archive(&'f PlannedArchive),
        Other {
            source: &'f FileSource,
            target: &'f ImagePath,
        },
    }
    serializer.collect_seq(files.iter().filter_map(|file| {
        Some(match file.source()? {
            FileSource::Unpacked(archive) => File::Archive(archive),
            source => File::Other {
                source,
                target: &file.path,
            },
        })
    }))
}

/// A command that requires Windows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlannedCommand {
    /// Command to run.
    pub command: CommandForm,
}

/// Form of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandForm {
    /// A program and its arguments.
    Exec(Vec<String>),
    /// A line for the image's shell.
    Shell(String),
}

impl Plan {
    /// The host that it is for, as recipes and results call it.
    pub fn host(&self) -> String {
        host_name(self.host_build)
    }

    /// Returns true if another plan makes the same image for another host, whatever is said of them.
    pub fn is_same_except_host(&self, other: &Self) -> bool {
        let for_other = Self {
            host_build: other.host_build,
            notes: other.notes.clone(),
            warnings: other.warnings.clone(),
            ..self.clone()
        };
        for_other == *other
    }

    /// The layer of its fields, above those of its instructions, for a base with this content; its
    /// settings of IIS are not included.
    pub fn own_layer(&self, inside: &dyn BaseContents) -> Result<PlannedLayer, SearchPathError> {
        let mut own = self.own_layer_on_any_base();
        let path = self.path.as_ref().map(|path| path.edit(inside));
        own.registry.extend(path.transpose()?);
        Ok(own)
    }

    /// The same without PATH, whose value depends on the base.
    pub(super) fn own_layer_on_any_base(&self) -> PlannedLayer {
        let certificates = self.certificates.iter().map(TrustedCertificate::edit);
        let services = self.services.iter().flat_map(Service::edits);
        let registry = self.registry.iter().cloned();
        let timeout = self.shutdown_timeout.into_iter().flat_map(shutdown::edits);
        let declared = certificates.chain(services);
        let access = self.access.iter().cloned();
        PlannedLayer {
            entries: self.files.clone(),
            registry: declared.chain(registry).chain(timeout).collect(),
            access: access.map(AccessChange::Grant).collect(),
            ..PlannedLayer::default()
        }
    }

    /// The layers of its instructions, in order, below that of its fields.
    pub fn instruction_layers(&self) -> impl Iterator<Item = &PlannedLayer> {
        self.instructions.iter().flat_map(Instructions::layers)
    }

    /// The entries of each layer, in order: those of its instructions, then its files.
    pub fn entries_by_layer(&self) -> impl Iterator<Item = &[PlannedEntry]> {
        let layers = self.instruction_layers();
        let entries = layers.map(|layer| layer.entries.as_slice());
        entries.chain([self.files.as_slice()])
    }

    /// Returns true if a layer has files or folders of its own.
    pub fn has_entries(&self) -> bool {
        self.working_dir.is_some()
            || self.iis.is_some()
            || self.entries_by_layer().any(|entries| !entries.is_empty())
    }

    /// Returns true if the plan changes the server configuration of IIS, or a site whose folder only
    /// that names.
    pub fn requires_server_config(&self) -> bool {
        let settings = self.iis.as_ref();
        settings.is_some_and(|iis| iis.path.is_none() || !iis.server_edits().is_empty())
            || self.instruction_layers().any(|layer| !layer.iis.is_empty())
    }

    /// The `web.config` that the plan changes, if it names its folder.
    fn web_config(&self) -> Option<ImagePath> {
        let settings = self.iis.as_ref();
        let settings = settings.filter(|iis| !iis.site_edits().is_empty())?;
        settings.path.as_ref()?.join("web.config").ok()
    }

    /// The downloads of its files; `place` is the file that names them.
    pub fn download_requests(&self, place: &str) -> DownloadRequests {
        let mut wants = DownloadRequests::new();
        let entries = self.instruction_layers().flat_map(|layer| &layer.entries);
        let files = self.files.iter().chain(entries).filter_map(|entry| {
            let name = entry.path.components().last().cloned();
            Some((entry.source()?, name.unwrap_or_default()))
        });
        let packages = self.packages();
        let packages = packages.map(|it| (&it.file, it.options.file_name.clone()));
        for (source, name) in files.chain(packages) {
            let Some(download) = source.download() else {
                continue;
            };
            let want = DownloadRequest {
                digests: download.digest.iter().cloned().collect(),
                name,
                follows: true,
                place: place.to_owned(),
            };
            want.add_to(&mut wants, &download.url);
        }
        wants
    }

    /// The downloads of its files.
    pub fn downloads_mut(&mut self) -> impl Iterator<Item = &mut PlannedDownload> {
        let own = self.files.iter_mut().filter_map(PlannedEntry::download_mut);
        let instructions = self.instructions.iter_mut();
        own.chain(instructions.flat_map(Instructions::downloads_mut))
    }

    /// Files of other images, each with its target.
    pub fn image_files_mut(&mut self) -> impl Iterator<Item = (&ImagePath, &mut ImageFiles)> {
        let instructions = self.instructions.iter_mut();
        let layers = instructions.flat_map(Instructions::fetched_layers_mut);
        let entries = layers.flat_map(|layer| &mut layer.entries);
        let entries = self.files.iter_mut().chain(entries);
        entries.filter_map(PlannedEntry::image_files_mut)
    }

    /// The hives whose keys it changes, except for that of PATH, which is always required.
    pub fn changed_hives(&self) -> BTreeSet<Root> {
        let own = self.own_layer_on_any_base();
        let layers = self.instruction_layers().chain([&own]);
        let edits = layers.flat_map(|layer| &layer.registry);
        edits.map(|edit| edit.key().root()).collect()
    }

    /// The content of the base that the build requires.
    pub fn base_requirements(&self) -> BaseRequirements {
        let mut needs = BaseRequirements::default();
        if self.looks_inside {
            needs.hives.extend(Root::ALL);
            needs.files = true;
        }
        let own = self.own_layer_on_any_base();
        for layer in self.instruction_layers().chain([&own]) {
            needs.hives.extend(hive::required_hives(&layer.registry));
        }
        needs.files |= self.grants_on_base() || self.makes_folder_of_windows();
        if self.path.is_some() {
            needs.hives.insert(Root::System);
        }
        if self.lacks_packages() {
            needs.hives.extend(HIVES);
            needs.files = true;
        }
        let mut changed: Vec<ImagePath> = Vec::new();
        if self.requires_server_config() {
            changed.extend(server_config());
        }
        if needs.files || !changed.is_empty() || !self.base.lacks_web_config() {
            changed.extend(self.web_config());
        }
        // New versions keep the descriptors, and the schema files are listed.
        needs.files |= !changed.is_empty();
        needs.contents.extend(changed);
        needs
    }
}

/// `17763.973`, or `any`.
fn host_name(host_build: Option<WindowsVersion>) -> String {
    host_build.map_or_else(|| "any".to_owned(), |version| version.to_string())
}

impl fmt::Display for CommandForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exec(arguments) => f.write_str(&arguments.join(" ")),
            Self::Shell(line) => f.write_str(line),
        }
    }
}

/// A line about a plan: a label and a text.
pub(super) type Fact = (&'static str, String);

/// Facts with the same label, in order.
pub(super) fn facts<T: fmt::Display>(
    what: &'static str,
    items: impl IntoIterator<Item = T>,
) -> impl Iterator<Item = Fact> {
    items.into_iter().map(move |item| (what, item.to_string()))
}

/// `NAME=value`; control characters as in lists, where a backslash is another one.
fn assignments<'a>(
    pairs: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> impl Iterator<Item = String> {
    pairs.into_iter().map(|(name, value)| {
        if value.contains(char::is_control) {
            format!("{name}={value:?}")
        } else {
            format!("{name}={value}")
        }
    })
}

fn iis_facts(iis: &IisSettings) -> Vec<String> {
    let folder = iis.path.as_ref().map(|path| format!(" in {path}"));
    let mut all = vec![format!("{}{}", iis.site, folder.unwrap_or_default())];
    let served = iis.file_extensions.iter();
    all.extend(served.map(|it| format!("may serve {it}")));
    let types = iis.mime_types.iter();
    all.extend(types.map(|(it, kind)| format!("{it} is {kind}")));
    let documents = iis.default_documents.iter();
    all.extend(documents.map(|it| format!("default document {it}")));
    all.extend(iis.server_edits().iter().map(ToString::to_string));
    all
}

impl fmt::Display for Plan {
    /// One fact per line; fields that only the base sets are omitted.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (what, printed) in self.facts() {
            writeln!(f, "{what:<12}{}", UntrustedText(printed))?;
        }
        Ok(())
    }
}

impl Plan {
    fn facts(&self) -> Vec<Fact> {
        let version = self.base.os_version.map(|version| version.to_string());
        let version = version.as_deref().unwrap_or("no Windows inside");
        let mut all = vec![
            ("image", self.name.clone()),
            ("host build", self.host()),
            ("base", format!("{} ({version})", self.base.name)),
            ("", self.base.digest.clone()),
        ];
        all.extend(facts("onbuild", &self.base.on_build));
        all.extend(self.instructions.iter().flat_map(Instructions::facts));
        let files = self.files.iter().filter_map(|file| {
            let source = file.source()?;
            let line = format!("{} from {source}", file.path);
            Some(match source {
                FileSource::Unpacked(archive) => format!("{line}, {}", archive.unpack),
                _ => line,
            })
        });
        all.extend(facts("file", files));
        all.extend(facts("certificate", &self.certificates));
        all.extend(facts("access", &self.access));
        all.extend(facts("service", &self.services));
        let timeout = self.shutdown_timeout.into_iter().flat_map(shutdown::edits);
        all.extend(facts(
            "registry",
            self.registry.iter().cloned().chain(timeout),
        ));
        all.extend(facts("iis", self.iis.iter().flat_map(iis_facts)));
        all.extend(facts("run", self.steps.iter().map(|step| &step.command)));
        all.extend(facts("env", assignments(&self.env)));
        if let Some(PathAdditions { prepend, append }) = &self.path {
            let before = prepend.iter().map(|it| format!("{it}, before the base's"));
            all.extend(facts("path", before));
            let after = append.iter().map(|it| format!("{it}, after the base's"));
            all.extend(facts("path", after));
        }
        // As lists in Rust and JSON.
        let quoted = |words: &Vec<String>| format!("{words:?}");
        all.extend(facts("entrypoint", self.entrypoint.iter().map(quoted)));
        all.extend(facts("cmd", self.cmd.iter().map(quoted)));
        all.extend(facts("user", &self.user));
        all.extend(facts("workdir", &self.working_dir));
        all.extend(facts("port", &self.ports));
        // Those of instructions contain the base's, which the plan's own replace.
        let below = self.instructions.iter().flat_map(|it| &it.container.labels);
        let labels: BTreeMap<&String, &String> = below.chain(&self.labels).collect();
        all.extend(facts("label", assignments(labels)));
        all
    }
}
