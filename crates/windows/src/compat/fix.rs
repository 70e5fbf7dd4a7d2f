//! Fixes for a verdict that is not green.

use std::fmt;

use super::{HostBuild, base_release_for, floating_tag_for};
use crate::update::Kb;
use crate::version::WindowsVersion;

/// The next action for a verdict that is not green.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fix {
    /// Install updates on the host.
    PatchHost {
        /// The version to reach.
        to: WindowsVersion,
        /// The first update to that version, if it is known.
        kb: Option<Kb>,
    },
    /// Build the image again on a base that fits the host.
    RebuildImage {
        /// The host it is for.
        host: HostBuild,
        /// True if Hyper-V isolation would run the image as it is.
        or_hyperv: bool,
    },
    /// Ask for Hyper-V isolation.
    UseHyperV,
    /// Try it on such a host before the rollout.
    TryFirst,
    /// Build the image again on an older base and ask for Hyper-V isolation: no base
    /// has the host's own build.
    RebuildForHyperV {
        /// The host it is for.
        host: HostBuild,
    },
    /// Find the unknown version.
    FindVersion,
}

/// The version of the images of a host's update. Those of 2020-02 for 17763.1039 are 17763.1040.
fn own_image(host: WindowsVersion) -> WindowsVersion {
    match host {
        WindowsVersion {
            build: 17763,
            revision: Some(1039),
        } => WindowsVersion::new(17763, 1040),
        host => host,
    }
}

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PatchHost { to, kb: Some(kb) } => {
                write!(f, "update the host to {to} with {}", kb.describe())
            }
            Self::PatchHost { to, kb: None } => write!(
                f,
                "update the host to {to} with the newest cumulative update of its build"
            ),
            Self::RebuildImage { host, or_hyperv } => {
                f.write_str("build the image again on a base that fits the host: ")?;
                let exact = host.version.revision.is_some_and(|_| {
                    base_release_for(host.version.build)
                        .is_some_and(|release| release.build == host.version.build)
                });
                let version = own_image(host.version).os_version();
                match (exact, floating_tag_for(*host)) {
                    (true, Some(tag)) => write!(f, "tag {version} or {tag}")?,
                    (true, None) => write!(f, "tag {version}")?,
                    (false, Some(tag)) => write!(f, "tag {tag}")?,
                    (false, None) => write!(f, "one of build {}", host.version.build)?,
                }
                if *or_hyperv {
                    f.write_str("; or run it with Hyper-V isolation")?;
                }
                Ok(())
            }
            Self::UseHyperV => f.write_str("run it with Hyper-V isolation"),
            Self::TryFirst => f.write_str(
                "try the image on such a host; LTSC 2022 images are reported to run there with Hyper-V \
                 isolation",
            ),
            Self::RebuildForHyperV { host } => write!(
                f,
                "build the image again on a base that is not newer than build {}, and run it with Hyper-V isolation",
                host.version.build
            ),
            Self::FindVersion => f.write_str(
                "give the full version, such as 17763.973: a node has it in \
                 status.nodeInfo.kernelVersion, an image in its config's os.version",
            ),
        }
    }
}
