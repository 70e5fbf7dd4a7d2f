//! Images, and the selection of Windows workloads by their images.

use std::collections::BTreeMap;

use wincimg_inspect::bases::parse_location;
use wincimg_oci::document::{self, Descriptor, Platform, needed_variant};
use wincimg_oci::store::Location;
use wincimg_windows::compat::{IndexEntry, architecture_name};
use wincimg_windows::version::WindowsVersion;

use crate::nodes::{Node, Taint};
use crate::pod::PodTemplate;
use crate::scheduling::System;
use crate::workloads::{Workload, WorkloadId};

/// An image to check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Reference, if it has one.
    pub reference: Option<String>,
    /// Content.
    pub content: ImageContent,
}

/// Content of an image reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageContent {
    /// A Windows image given by its version alone.
    Stated(WindowsVersion),
    /// One image.
    Single(Variant),
    /// An index of images.
    Index(Vec<Variant>),
    /// It could not be read.
    Unreadable {
        /// The reason.
        reason: String,
        /// Hint.
        hint: Option<String>,
    },
}

/// One image of an index, or a single image.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Variant {
    /// `windows`, `linux`, … or the type of what is not an image.
    pub os: String,
    /// `amd64`, `arm64`, …
    pub architecture: String,
    /// `variant` of the index entry: `v8`.
    pub processor_variant: Option<String>,
    /// `os.features` of the index entry.
    pub os_features: Vec<String>,
    /// `os.version` of the index entry, or of a single image's configuration.
    pub os_version: Option<String>,
    /// Windows version of what starts, even if the index does not state it.
    pub version: Option<WindowsVersion>,
    /// The descriptor of its manifest, if that can be read.
    pub manifest: Option<Box<Descriptor>>,
    /// Compressed size of its layers in bytes.
    pub size: Option<u64>,
    /// Shutdown timeout of its Windows registry in seconds.
    pub stop_seconds: Option<u64>,
    /// True if it contains no Windows, so that only host process containers can run it.
    pub host_process: bool,
    /// True if its entry of the index states no platform, or it is in an index in the index. Docker
    /// selects no such entry, and some versions of containerd follow it without reading its version.
    pub without_platform: bool,
    /// What is behind its entry of the index.
    pub content: EntryContent,
}

/// What is behind an entry of an index.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum EntryContent {
    /// Not read.
    #[default]
    Unread,
    /// A configuration for this system.
    Image {
        /// `windows`, `linux`, …
        os: String,
        /// `amd64`, `arm64`, …
        architecture: String,
    },
    /// It is not in the registry.
    Missing,
    /// It could not be read, for this reason.
    Unreadable(String),
}

impl Image {
    /// An image given by its version alone.
    pub fn from_version(version: WindowsVersion) -> Self {
        Self {
            reference: None,
            content: ImageContent::Stated(version),
        }
    }

    /// An image whose name has a placeholder such as `${TAG}`.
    pub fn with_placeholder(reference: &str) -> Option<Self> {
        let (start, rest) = reference.split_once("${")?;
        let (name, _) = rest.split_once('}')?;
        let placeholder = &reference[start.len()..start.len() + name.len() + "${}".len()];
        Some(Self {
            reference: Some(reference.to_owned()),
            content: ImageContent::Unreadable {
                reason: format!("its name has the placeholder {placeholder}"),
                hint: Some("replace placeholders first, as envsubst does".to_owned()),
            },
        })
    }

    /// An image that is not fetched (`--offline`).
    pub fn unasked(reference: String) -> Self {
        Self {
            reference: Some(reference),
            content: ImageContent::Unreadable {
                reason: "--offline allows no registry access".to_owned(),
                hint: Some("describe it with --images FILE, or omit --offline".to_owned()),
            },
        }
    }

    /// Version, if it is the same for every host.
    pub fn version(&self) -> Option<WindowsVersion> {
        match &self.content {
            ImageContent::Stated(version) => Some(*version),
            ImageContent::Single(variant) => variant.version,
            ImageContent::Index(_) | ImageContent::Unreadable { .. } => None,
        }
    }

    /// Windows versions of all variants.
    pub fn versions(&self) -> impl Iterator<Item = WindowsVersion> {
        let stated = match &self.content {
            ImageContent::Stated(version) => Some(*version),
            _ => None,
        };
        let variants = self.variants().iter().filter_map(|variant| variant.version);
        stated.into_iter().chain(variants)
    }

    /// Label for reports.
    pub fn label(&self) -> String {
        match (&self.reference, self.version()) {
            (Some(reference), Some(version)) => format!("{reference} ({version})"),
            (Some(reference), None) => reference.clone(),
            (None, Some(version)) => version.to_string(),
            (None, None) => "?".to_owned(),
        }
    }

    pub(super) fn location(&self) -> Option<Location> {
        parse_location(self.reference.as_deref()?).ok()
    }

    /// Addition to a rebuild: a digest refers to the old image.
    pub(super) fn digest_hint(&self) -> &'static str {
        match self.location() {
            Some(Location::Registry(reference)) if reference.digest().is_some() => {
                ", and update the references to its digest"
            }
            _ => "",
        }
    }

    /// Variants.
    pub fn variants(&self) -> &[Variant] {
        match &self.content {
            ImageContent::Single(variant) => std::slice::from_ref(variant),
            ImageContent::Index(variants) => variants,
            ImageContent::Stated(_) | ImageContent::Unreadable { .. } => &[],
        }
    }

    /// Variants, to add details.
    pub(crate) fn variants_mut(&mut self) -> &mut [Variant] {
        match &mut self.content {
            ImageContent::Single(variant) => std::slice::from_mut(variant),
            ImageContent::Index(variants) => variants,
            ImageContent::Stated(_) | ImageContent::Unreadable { .. } => &mut [],
        }
    }

    /// Returns true if its content is known.
    pub(super) fn is_readable(&self) -> bool {
        !matches!(self.content, ImageContent::Unreadable { .. })
    }

    pub(super) fn is_for(&self, system: &str) -> bool {
        match &self.content {
            ImageContent::Stated(_) => system == "windows",
            _ => self.variants().iter().any(|variant| variant.os == system),
        }
    }
}

impl Variant {
    /// An entry of an index whose manifest was not read.
    pub fn of_platform(platform: &Platform) -> Self {
        let os_version = platform.os_version.as_deref();
        Self {
            // Runtimes ignore its case.
            os: platform.os.to_ascii_lowercase(),
            architecture: platform.architecture.clone(),
            processor_variant: platform.variant.clone(),
            os_features: platform.os_features.clone(),
            version: os_version.and_then(|text| text.parse().ok()),
            os_version: platform.os_version.clone(),
            ..Self::default()
        }
    }

    /// An image of this version, for amd64.
    pub(super) fn of_version(version: WindowsVersion) -> Self {
        Self {
            version: Some(version),
            ..Self::of_platform(&Platform::windows(version.os_version()))
        }
    }

    /// An image by its own manifest and configuration.
    pub fn of_image(image: &document::Image) -> Self {
        let platform = image.config().platform();
        let layers = &image.manifest().layers;
        let bottom = layers.first().map(|layer| layer.size);
        Self {
            host_process: is_host_process(&platform.os, platform.os_version.as_deref(), bottom),
            manifest: Some(Box::new(image.index_entry())),
            size: Some(layers.iter().map(|layer| layer.size).sum()),
            ..Self::of_platform(&platform)
        }
    }

    /// The entry with what its own manifest and configuration say: the index decides what a runtime
    /// selects, and they decide what starts.
    #[must_use]
    pub fn with_image(self, own: Self) -> Self {
        Self {
            version: own.version.or(self.version),
            size: own.size,
            stop_seconds: own.stop_seconds.or(self.stop_seconds),
            host_process: own.host_process,
            content: EntryContent::Image {
                os: own.os,
                architecture: own.architecture,
            },
            ..self
        }
    }

    /// The entry as an index would have it that states the platform of its image.
    #[must_use]
    pub(super) fn with_own_platform(&self) -> Self {
        let EntryContent::Image { os, architecture } = &self.content else {
            return self.clone();
        };
        let or_stated = |own: &String, stated: &String| {
            let known = if own.is_empty() { stated } else { own };
            known.clone()
        };
        let own_version = self.version.map(|version| version.os_version());
        Self {
            os: or_stated(os, &self.os),
            architecture: or_stated(architecture, &self.architecture),
            os_version: own_version.or_else(|| self.os_version.clone()),
            ..self.clone()
        }
    }

    /// Returns true if its index states another platform than its image, or no version.
    pub(super) fn is_misstated(&self) -> bool {
        matches!(self.content, EntryContent::Image { .. })
            && self.with_own_platform().entry() != self.entry()
    }

    /// The type of an artifact: a chart, a signature or another document that is not an image.
    pub(super) fn artifact(&self) -> Option<&str> {
        self.os.contains('/').then_some(self.os.as_str())
    }

    /// Its entry as a runtime sees it in the index.
    pub fn entry(&self) -> IndexEntry<'_> {
        let (os, architecture) = if self.without_platform {
            ("", "")
        } else {
            (self.os.as_str(), self.architecture.as_str())
        };
        let mut features = self.os_features.iter().map(String::as_str);
        IndexEntry {
            os,
            architecture,
            variant: needed_variant(
                architecture_name(&self.architecture),
                self.processor_variant.as_deref(),
            ),
            feature: features.find(|feature| *feature != "win32k"),
            os_version: self.os_version.as_deref(),
            is_missing: matches!(self.content, EntryContent::Missing),
        }
    }

    /// `windows/amd64 10.0.17763.973`.
    pub fn platform(&self) -> String {
        let platform = format!("{}/{}", self.os, self.architecture);
        match &self.os_version {
            Some(version) if !version.is_empty() => format!("{platform} {version}"),
            _ => platform,
        }
    }
}

/// The bottom layer of Nano Server is a hundred times larger.
pub(super) const TOO_SMALL: u64 = 1 << 20;

/// Returns true if an image contains no Windows: it has no `os.version`, and its bottom layer is
/// too small.
pub fn is_host_process(os: &str, os_version: Option<&str>, bottom: Option<u64>) -> bool {
    os == "windows"
        && os_version.is_none_or(str::is_empty)
        && bottom.is_some_and(|size| size < TOO_SMALL)
}

#[derive(Default)]
pub(super) struct WorkloadsBySystem {
    /// Those for Windows. One that does not state its system and whose images could not be read
    /// counts as such if it could be scheduled on a host, because it has to be checked there; so
    /// does one for Linux that only hosts admit, and one whose image is for Windows alone.
    pub(super) for_windows: Vec<Workload>,
    /// The other ones that do not state their system, and whose images could not be read.
    pub(super) undecided: Vec<WorkloadId>,
    /// The other ones for Linux that could be scheduled on a host.
    pub(super) astray: Vec<Stray>,
}

/// A workload for Linux that could be scheduled on a host.
#[derive(Debug, Clone)]
pub(super) struct Stray {
    pub(super) workload: WorkloadId,
    pub(super) host: String,
    /// True if it tolerates the taint by which hosts keep other pods off.
    pub(super) tolerates_windows: bool,
}

pub(super) fn by_system(
    workloads: &[Workload],
    images: &[Image],
    places: &BTreeMap<&str, usize>,
    hosts: &[Node],
    others: &[Node],
) -> WorkloadsBySystem {
    let mut divided = WorkloadsBySystem::default();
    for workload in workloads {
        let containers = workload.template.containers.iter();
        let own = containers.filter_map(|container| places.get(container.image.as_str()));
        let own: Vec<&Image> = own.map(|&place| &images[place]).collect();
        let reach = Reach {
            template: &workload.template,
            hosts,
            others,
        };
        divided.add(workload, &own, &reach);
    }
    divided
}

impl WorkloadsBySystem {
    fn add(&mut self, workload: &Workload, images: &[&Image], reach: &Reach<'_>) {
        let is_unreadable = |image: &&Image| !image.is_readable();
        let may_be_windows = |image: &&Image| image.is_for("windows") || !image.is_readable();
        // An image for both systems does not decide.
        let only = |system: &str, other: &str| {
            let mut images = images.iter();
            images.any(|image| image.is_for(system) && !image.is_for(other))
        };
        let scheduling = &workload.template.scheduling;
        let system = workload.template.system();
        let is_for_linux = || match system {
            System::Windows => false,
            // All containers of a pod run on one node, so one of them decides for all.
            System::Unsaid => only("linux", "windows"),
            // The scheduler does not heed `os.name`.
            System::Other => scheduling.system() == System::Unsaid,
        };
        let is_for_windows = match system {
            System::Windows => true,
            // `nodeName` decides, whatever its images are.
            System::Unsaid if reach.names_host() => true,
            // One that selects another system starts nowhere.
            System::Unsaid | System::Other if only("windows", "linux") => true,
            System::Unsaid | System::Other if is_for_linux() => match reach.first_named_host() {
                Some(_) if reach.has_only_hosts() => true,
                Some(host) => {
                    self.astray.push(Stray {
                        workload: workload.id.clone(),
                        host: host.to_owned(),
                        tolerates_windows: scheduling.tolerates(&Taint::of_windows()),
                    });
                    false
                }
                None => false,
            },
            System::Unsaid if scheduling.node_name.is_some() && reach.has_other() => false,
            System::Unsaid if images.is_empty() && reach.has_host() => true,
            System::Unsaid
                if (images.is_empty() || images.iter().any(is_unreadable)) && !reach.has_host() =>
            {
                self.undecided.push(workload.id.clone());
                false
            }
            // Its images are for both systems, and only nodes of the other one admit it.
            System::Unsaid if !reach.has_host() && reach.has_other() => false,
            System::Unsaid => images.iter().any(may_be_windows),
            System::Other => false,
        };
        if is_for_windows {
            self.for_windows.push(workload.clone());
        }
    }
}

/// Where the scheduler could put the pods of a workload.
struct Reach<'a> {
    template: &'a PodTemplate,
    hosts: &'a [Node],
    others: &'a [Node],
}

impl Reach<'_> {
    fn names_host(&self) -> bool {
        let scheduling = &self.template.scheduling;
        let mut hosts = self.hosts.iter().filter(|host| host.name.is_some());
        scheduling.node_name.is_some() && hosts.any(|host| scheduling.allows_node_name(host))
    }

    /// Name of a host that admits them. Of a host that is only a version, no taint is known.
    fn first_named_host(&self) -> Option<&str> {
        let scheduling = &self.template.scheduling;
        let mut admitting = self.hosts.iter().filter(|host| scheduling.admits(host));
        admitting.find_map(|host| host.name.as_deref())
    }

    fn has_host(&self) -> bool {
        let mut hosts = self.hosts.iter();
        hosts.any(|host| self.template.scheduling.admits(host))
    }

    fn has_other(&self) -> bool {
        let mut others = self.others.iter();
        others.any(|node| self.template.scheduling.admits(node))
    }

    /// Returns true if they land on hosts alone. A list without other nodes does not have those
    /// where they land. One with tainted ones may lack others, scaled to zero, and Fargate's
    /// scheduler ignores the taint of its nodes.
    fn has_only_hosts(&self) -> bool {
        let scheduling = &self.template.scheduling;
        let is_known = !self.others.is_empty() || scheduling.node_name.is_some();
        let mut others = self.others.iter();
        let is_elsewhere = others.any(|node| scheduling.matches_node(node));
        is_known && !is_elsewhere && self.template.missing_class().is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_of_an_entry_has_any_case() {
        let platform = Platform {
            os: "Windows".to_owned(),
            ..Platform::windows("10.0.20348.1")
        };
        assert_eq!(Variant::of_platform(&platform).os, "windows");
    }
}
