//! The hosts that an image serves, by their releases.

use super::{HostBuild, Isolation, check};
use crate::release::{self, Release, ReleaseKind};
use crate::update::{Update, Updates};
use crate::version::WindowsVersion;

/// The hosts of one release that start an image under process isolation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServedHosts {
    /// Their release.
    pub release: &'static Release,
    /// The revisions that start it.
    pub revisions: ServedRevisions,
}

/// The revisions of a release that start an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServedRevisions {
    /// All of them.
    All,
    /// This one and newer ones.
    From(WindowsVersion),
    /// This one and older ones.
    UpTo(WindowsVersion),
    /// Only this one.
    Only(WindowsVersion),
}

/// The server releases whose hosts start an image under process isolation, oldest first.
pub fn served_by(image: WindowsVersion) -> Vec<ServedHosts> {
    let servers = release::all()
        .iter()
        .filter(|release| release.kind != ReleaseKind::Client);
    servers
        .filter_map(|release| {
            Some(ServedHosts {
                release,
                revisions: revisions(release, image)?,
            })
        })
        .collect()
}

fn revisions(release: &Release, image: WindowsVersion) -> Option<ServedRevisions> {
    let starts = |version: WindowsVersion| {
        let host = HostBuild::new(version);
        check(Some(host), Some(image), Isolation::Process).is_startable()
    };
    let updates = Updates::global().by_build(release.build);
    let mut known: Vec<WindowsVersion> = updates.iter().map(Update::version).collect();
    if release.build == image.build && !known.contains(&image) {
        known.push(image);
    }
    let served: Vec<WindowsVersion> = known.iter().copied().filter(|it| starts(*it)).collect();
    let (first, last) = (*served.iter().min()?, *served.iter().max()?);
    let newer = starts(WindowsVersion::new(release.build, u32::MAX));
    Some(match (newer, served.len()) {
        (_, all) if all == known.len() => ServedRevisions::All,
        (true, _) => ServedRevisions::From(first),
        (false, 1) => ServedRevisions::Only(first),
        (false, _) => ServedRevisions::UpTo(last),
    })
}

impl std::fmt::Display for ServedHosts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.release.name)?;
        match self.revisions {
            ServedRevisions::All => Ok(()),
            ServedRevisions::From(version) => write!(f, " from {version} on"),
            ServedRevisions::UpTo(version) => write!(f, " up to {version}"),
            ServedRevisions::Only(version) => write!(f, " {version} only"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(build: u32, revision: u32) -> Vec<String> {
        let served = served_by(WindowsVersion::new(build, revision));
        served.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn an_image_serves_the_hosts_that_start_it() {
        for (build, revision, hosts) in [
            (17763, 2183, "2019 (1809) from 17763.1039 on"),
            (17763, 973, "2019 (1809) up to 17763.1012"),
            (14393, 4467, "2016 (1607) 14393.4467 only"),
        ] {
            let expected = format!("Windows Server {hosts}");
            assert_eq!(served(build, revision), [expected]);
        }
        for (build, revision, is_for_2022) in [(20348, 2402, true), (26100, 1742, false)] {
            let served = served(build, revision);
            let has = |release: &str| served.iter().any(|served| served == release);
            assert_eq!(has("Windows Server 2022"), is_for_2022, "{served:?}");
            assert!(has("Windows Server 2025"), "{served:?}");
        }
    }

    #[test]
    fn a_host_with_its_own_revision_is_among_them() {
        for update in Updates::embedded().all() {
            let is_client = release::from_build(update.build)
                .is_none_or(|release| release.kind == ReleaseKind::Client);
            let served = served_by(update.version());
            let has_own = served.iter().any(|it| it.release.build == update.build);
            assert!(has_own || is_client, "{}", update.version());
        }
    }
}
