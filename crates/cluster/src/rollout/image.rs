//! What is known of an image, and which workloads are for Windows by what their images are.

use std::collections::BTreeMap;

use wincimg_inspect::bases::parse_location;
use wincimg_oci::document::Digest;
use wincimg_oci::store::Location;
use wincimg_windows::compat::IndexEntry;
use wincimg_windows::version::WindowsVersion;

use crate::nodes::Node;
use crate::scheduling::System;
use crate::workloads::{Workload, WorkloadId};

/// An image that hosts are to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Where it is, if it came from somewhere.
    pub reference: Option<String>,
    /// What is known of it.
    pub content: ImageContent,
}

/// What a reference leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageContent {
    /// Only a version was given, and it is for Windows.
    Stated(WindowsVersion),
    /// One image.
    Single(Variant),
    /// An index of images.
    Index(Vec<Variant>),
    /// No registry was asked.
    Unasked,
    /// It could not be read.
    Unreadable {
        /// Why not.
        reason: String,
        /// What to do about it.
        hint: Option<String>,
    },
}

/// One image of those that a reference can mean.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Variant {
    /// `windows`, `linux`, …
    pub os: String,
    /// `amd64`, `arm64`, …
    pub architecture: String,
    /// What the index, or for a single image the configuration, says in `os.version`.
    pub os_version: Option<String>,
    /// The version of Windows in it, also where the index does not say it.
    pub version: Option<WindowsVersion>,
    /// Its digest.
    pub digest: Option<Digest>,
    /// How many bytes its layers have as they are downloaded.
    pub size: Option<u64>,
    /// How many seconds its registry lets a process take to stop.
    pub stop_seconds: Option<u64>,
    /// True if it brings no Windows, so that only host process containers can run it.
    pub host_process: bool,
}

impl Image {
    /// An image of which only the version is given.
    pub fn from_version(version: WindowsVersion) -> Self {
        Self {
            reference: None,
            content: ImageContent::Stated(version),
        }
    }

    /// Its version, where every host gets the same.
    pub fn version(&self) -> Option<WindowsVersion> {
        match &self.content {
            ImageContent::Stated(version) => Some(*version),
            ImageContent::Single(variant) => variant.version,
            ImageContent::Index(_) | ImageContent::Unasked | ImageContent::Unreadable { .. } => {
                None
            }
        }
    }

    /// All versions of Windows that it can turn out to have.
    pub fn versions(&self) -> impl Iterator<Item = WindowsVersion> {
        let stated = match &self.content {
            ImageContent::Stated(version) => Some(*version),
            _ => None,
        };
        let variants = self.variants().iter().filter_map(|variant| variant.version);
        stated.into_iter().chain(variants)
    }

    /// What a person calls it.
    pub fn label(&self) -> String {
        match (&self.reference, self.version()) {
            (Some(reference), Some(version)) => format!("{reference} ({version})"),
            (Some(reference), None) => reference.clone(),
            (None, Some(version)) => version.to_string(),
            (None, None) => "?".to_owned(),
        }
    }

    /// Where it is, read as a place.
    pub(super) fn location(&self) -> Option<Location> {
        parse_location(self.reference.as_deref()?).ok()
    }

    /// What is left to do once it was built again: a digest stays with the old image.
    pub(super) fn digest_hint(&self) -> &'static str {
        match self.location() {
            Some(Location::Registry(reference)) if reference.digest().is_some() => {
                ", and name the new image where its digest is named"
            }
            _ => "",
        }
    }

    /// The images that it can mean.
    pub fn variants(&self) -> &[Variant] {
        match &self.content {
            ImageContent::Single(variant) => std::slice::from_ref(variant),
            ImageContent::Index(variants) => variants,
            ImageContent::Stated(_) | ImageContent::Unasked | ImageContent::Unreadable { .. } => {
                &[]
            }
        }
    }

    /// The same, to add what was found out later.
    pub(crate) fn variants_mut(&mut self) -> &mut [Variant] {
        match &mut self.content {
            ImageContent::Single(variant) => std::slice::from_mut(variant),
            ImageContent::Index(variants) => variants,
            ImageContent::Stated(_) | ImageContent::Unasked | ImageContent::Unreadable { .. } => {
                &mut []
            }
        }
    }

    /// Returns true if anything is known of it.
    pub(super) fn is_readable(&self) -> bool {
        !matches!(
            self.content,
            ImageContent::Unasked | ImageContent::Unreadable { .. }
        )
    }

    pub(super) fn is_for(&self, system: &str) -> bool {
        match &self.content {
            ImageContent::Stated(_) => system == "windows",
            _ => self.variants().iter().any(|variant| variant.os == system),
        }
    }
}

impl Variant {
    /// What a runtime sees of it in the index.
    pub fn entry(&self) -> IndexEntry<'_> {
        IndexEntry {
            os: &self.os,
            architecture: &self.architecture,
            os_version: self.os_version.as_deref(),
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

/// Returns true if an image has no Windows inside: none is named, and its bottom layer has no room
/// for one.
pub fn is_host_process(os: &str, os_version: Option<&str>, bottom: Option<u64>) -> bool {
    /// The bottom layer of a Nano Server has a hundred times as much.
    const TOO_SMALL: u64 = 1 << 20;
    os == "windows"
        && os_version.is_none_or(str::is_empty)
        && bottom.is_some_and(|size| size < TOO_SMALL)
}

/// The workloads that are for Windows, and those of which nobody can tell: they do not say it, and
/// their images could not be read. Where one of these could land on a host all the same, it has to be
/// asked whether it would start there, so it counts as one for Windows.
pub(super) fn for_windows(
    workloads: &[Workload],
    images: &[Image],
    places: &BTreeMap<&str, usize>,
    hosts: &[Node],
    others: &[Node],
) -> (Vec<Workload>, Vec<WorkloadId>) {
    let mut taken = Vec::with_capacity(workloads.len());
    let mut undecided = Vec::new();
    for workload in workloads {
        let own: Vec<&Image> = workload
            .template
            .containers
            .iter()
            .filter_map(|container| places.get(container.image.as_str()))
            .map(|&place| &images[place])
            .collect();
        let is_unreadable = |image: &&Image| !image.is_readable();
        let may_be_windows = |image: &&Image| image.is_for("windows") || !image.is_readable();
        // An image for both goes where its own nodes are, so it does not decide alone.
        let only = |system: &str, other: &str| {
            own.iter()
                .any(|image| image.is_for(system) && !image.is_for(other))
        };
        let scheduling = &workload.template.scheduling;
        let names_host = || {
            hosts
                .iter()
                .any(|host| host.name.is_some() && scheduling.allows_node_name(host))
        };
        let could_land = || hosts.iter().any(|host| scheduling.admits(host));
        let lands_elsewhere = || others.iter().any(|node| scheduling.admits(node));
        match workload.template.system() {
            System::Windows => taken.push(workload.clone()),
            // It goes where it says, whatever its images are.
            System::Unsaid if scheduling.node_name.is_some() && names_host() => {
                taken.push(workload.clone());
            }
            System::Unsaid if only("windows", "linux") => taken.push(workload.clone()),
            // All containers of a pod run on one node, so one of them speaks for all.
            System::Unsaid if only("linux", "windows") => {}
            System::Unsaid if scheduling.node_name.is_some() && lands_elsewhere() => {}
            System::Unsaid if own.is_empty() && could_land() => taken.push(workload.clone()),
            System::Unsaid
                if (own.is_empty() || own.iter().any(is_unreadable)) && !could_land() =>
            {
                undecided.push(workload.id.clone());
            }
            // Its images are for both systems, and only the other one takes it.
            System::Unsaid if !could_land() && lands_elsewhere() => {}
            System::Unsaid if own.iter().any(may_be_windows) => taken.push(workload.clone()),
            System::Unsaid | System::Other => {}
        }
    }
    (taken, undecided)
}
