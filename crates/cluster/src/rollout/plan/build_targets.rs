//! The fewest builds of an image that serve all its hosts.

use std::collections::BTreeSet;

use wincimg_windows::compat::base_release_for;
use wincimg_windows::update::Updates;
use wincimg_windows::version::WindowsVersion;

use super::graph::TargetHost;

/// The hosts to build for, oldest first, each with the version of the base that it gets.
///
/// From the oldest host on, each that is not served yet gets a build, which may serve newer hosts
/// too. This is optimal: a base older than the host's own serves fewer of the newer hosts.
pub(super) fn builds_for(hosts: BTreeSet<TargetHost>) -> Vec<(WindowsVersion, WindowsVersion)> {
    let mut builds: Vec<(WindowsVersion, WindowsVersion)> = Vec::new();
    for host in hosts {
        let (version, runtime) = (host.version, host.runtime);
        let mut bases = builds.iter().map(|(_, base)| *base);
        let is_served = bases.any(|base| runtime.certainly_accepts(version.build, base.build));
        if !is_served {
            let own = base_for(version);
            // Every host would select the same of two revisions of one build.
            let mut bases = builds.iter().map(|(_, base)| *base);
            let base = bases.find(|base| base.build == own.build).unwrap_or(own);
            builds.push((version, base));
        }
    }
    builds
}

pub(super) fn base_for(host: WindowsVersion) -> WindowsVersion {
    match base_release_for(host.build) {
        Some(release) if release.build != host.build => {
            Updates::global().newest_version(release.build)
        }
        _ => host,
    }
}
