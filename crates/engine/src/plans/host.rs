//! Hosts of images, and groups that share one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::{Serialize, Serializer};
use wincimg_cluster::nodes::Node;
use wincimg_inspect::bases::BaseMatch;
use wincimg_windows::compat::{HostBuild, generation};
use wincimg_windows::version::WindowsVersion;

use super::PlannedBase;
use crate::listing::first_names;

/// Maximum number of nodes to name with a host.
const MAX_NAMED: usize = 3;

/// A build of Windows, with its nodes if they are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TargetHost {
    /// Its version and edition; serialised as text.
    #[serde(rename = "host_build", serialize_with = "as_text")]
    pub build: HostBuild,
    /// The names of nodes.
    pub nodes: Vec<String>,
}

impl TargetHost {
    /// The distinct builds of nodes that report theirs, oldest first, each with its nodes.
    pub fn from_nodes(nodes: &[Node]) -> Vec<Self> {
        let mut hosts: BTreeMap<HostBuild, Vec<String>> = BTreeMap::new();
        for node in nodes {
            if let Some(build) = node.build {
                hosts.entry(build).or_default().extend(node.name.clone());
            }
        }
        let hosts = hosts.into_iter();
        hosts.map(|(build, nodes)| Self { build, nodes }).collect()
    }
}

impl fmt::Display for TargetHost {
    /// `17763.973`, or `17763.973 (win-a, win-b and 4 more)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.build.fmt(f)?;
        if self.nodes.is_empty() {
            return Ok(());
        }
        write!(f, " ({})", first_names(&self.nodes, MAX_NAMED))
    }
}

fn as_text<S: Serializer>(build: &HostBuild, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(build)
}

/// Groups of hosts that share an image, on the base of the oldest of them.
pub(crate) struct HostGroups {
    builds: Vec<HostBuild>,
    /// The hosts whose bases are resolved: the oldest of each group, in order.
    pub(crate) asked_for: Vec<HostBuild>,
    shares: bool,
}

impl HostGroups {
    /// Hosts that require their exact revision share no image.
    pub(crate) fn new(builds: Vec<HostBuild>, is_shared: bool, matched: BaseMatch) -> Self {
        let mut sharing = Self {
            builds,
            asked_for: Vec::new(),
            shares: is_shared && matched == BaseMatch::Nearest,
        };
        let leaders = sharing.builds.iter().map(|host| sharing.group_host(*host));
        let leaders: BTreeSet<HostBuild> = leaders.collect();
        sharing.asked_for = leaders.into_iter().collect();
        sharing
    }

    /// The base of one host, or of any. The first host of a group gets the tags to report.
    pub(crate) fn base_for(
        &self,
        host: Option<HostBuild>,
        found: &mut [PlannedBase],
    ) -> PlannedBase {
        let Some(host) = host else {
            let set_aside = std::mem::take(&mut found[0].set_aside);
            return PlannedBase {
                set_aside,
                ..found[0].clone()
            };
        };
        let leader = self.group_host(host);
        let asked_for = |asked_for: &HostBuild| *asked_for < leader;
        let place = self.asked_for.partition_point(asked_for);
        let versions: Option<Vec<_>> = found.iter().map(|found| found.os_version).collect();
        let used = match versions.filter(|_| self.shares) {
            Some(versions) => common(place, &versions),
            None => place,
        };
        let set_aside = std::mem::take(&mut found[place].set_aside);
        let version = found[used].os_version;
        PlannedBase {
            matched: version.map(|version| BaseMatch::compare(version, host)),
            set_aside,
            ..found[used].clone()
        }
    }

    fn group_host(&self, host: HostBuild) -> HostBuild {
        if self.shares {
            leader(host, &self.builds)
        } else {
            host
        }
    }
}

/// The host whose base another one uses: the oldest that accepts the same images. What starts on
/// one of them starts on all, and an image not newer than the oldest is not newer than any.
pub(crate) fn leader(host: HostBuild, hosts: &[HostBuild]) -> HostBuild {
    let kind = |host: &HostBuild| {
        let version = host.version;
        Some((
            version.build,
            host.edition,
            host.architecture,
            generation(version)?,
        ))
    };
    let Some(own) = kind(&host) else {
        return host;
    };
    hosts
        .iter()
        .filter(|other| kind(other) == Some(own) && other.version.revision.is_some())
        .min()
        .copied()
        .unwrap_or(host)
}

/// Index of the base to use instead of a resolved one: the oldest of its build that starts on the
/// same hosts. Hosts of a newer build may have resolved a newer base of an older build, which that
/// build's own hosts would get too.
pub(crate) fn common(place: usize, found: &[WindowsVersion]) -> usize {
    let kind = |version: WindowsVersion| (version.build, generation(version));
    let own = kind(found[place]);
    let alike = (0..found.len()).filter(|other| kind(found[*other]) == own);
    alike.min_by_key(|other| found[*other]).unwrap_or(place)
}
