//! Which image of an index a node's runtime takes. The kubelet leaves that to it, and the two
//! runtimes differ: containerd takes only entries that it expects to start, Docker anything that is
//! not newer than the host.

use super::{HostBuild, accepted_builds};
use crate::version::WindowsVersion;

/// What runs a node's containers, as far as it decides which image is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Runtime {
    /// The Docker daemon, behind dockershim or cri-dockerd.
    Docker,
    /// A containerd that knows of the ABI that is stable since Windows Server 2022.
    Containerd,
    /// A containerd before 1.6.23 or 1.7.6, which wants the host's own build.
    OldContainerd,
    /// A containerd before 1.6, which runs no host process containers either.
    OldestContainerd,
}

impl Runtime {
    /// What a person calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Docker => "Docker",
            Self::Containerd | Self::OldContainerd | Self::OldestContainerd => "containerd",
        }
    }

    /// Reads a node's `containerRuntimeVersion`, such as `containerd://1.7.22`. What cannot be read
    /// counts as today's usual runtime.
    pub fn of_node(text: &str) -> Self {
        match text.split_once("://") {
            Some(("docker", _)) => Self::Docker,
            Some(("containerd", version)) => Self::of_containerd(version),
            _ => Self::Containerd,
        }
    }

    fn of_containerd(version: &str) -> Self {
        let numbers: Vec<u32> = version
            .trim_start_matches('v')
            .split(['.', '-', '+'])
            .map_while(|part| part.parse().ok())
            .collect();
        match numbers[..] {
            [1, minor, ..] if minor < 6 => Self::OldestContainerd,
            [1, 6, patch, ..] if patch < 23 => Self::OldContainerd,
            [1, 7, patch, ..] if patch < 6 => Self::OldContainerd,
            _ => Self::Containerd,
        }
    }
}

/// What an index says about one of its images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry<'a> {
    /// `windows`, `linux`, …
    pub os: &'a str,
    /// `amd64`, `arm64`, …
    pub architecture: &'a str,
    /// `10.0.17763.973`, where the index says it.
    pub os_version: Option<&'a str>,
}

impl Entry<'_> {
    fn version(&self) -> Option<WindowsVersion> {
        self.os_version.and_then(|text| text.parse().ok())
    }

    fn says_nothing(&self) -> bool {
        self.os_version.is_none_or(str::is_empty)
    }
}

/// The entries that a host's runtime may take, by their places: none, one, or two where versions of
/// the runtime differ.
///
/// Among several that fit, containerd took the one with the highest revision, and since
/// github.com/containerd/platforms 1.0.0-rc.2 the one whose `os.version` is last as a text.
pub fn choose(
    entries: &[Entry<'_>],
    host: HostBuild,
    architecture: &str,
    runtime: Runtime,
) -> Vec<usize> {
    let mut fitting: Vec<usize> = (0..entries.len())
        .filter(|&index| {
            let entry = &entries[index];
            entry.os == "windows"
                && entry.architecture == architecture
                && fits(entry, host.version.build, runtime)
        })
        .collect();
    if runtime == Runtime::Docker {
        let own_build = format!("10.0.{}", host.version.build);
        fitting.sort_by_key(|&index| {
            !entries[index]
                .os_version
                .is_some_and(|version| version.starts_with(&own_build))
        });
        fitting.truncate(1);
        return fitting;
    }
    let revision = |index: &usize| entries[*index].version().and_then(|own| own.revision);
    // The first of equals, as a stable sort leaves it in front.
    let first_of_greatest = |fitting: &[usize], greater: &dyn Fn(&usize, &usize) -> bool| {
        fitting
            .iter()
            .copied()
            .reduce(|best, next| if greater(&next, &best) { next } else { best })
    };
    let by_revision = first_of_greatest(&fitting, &|a, b| revision(a) > revision(b));
    let by_text = first_of_greatest(&fitting, &|a, b| {
        entries[*a].os_version > entries[*b].os_version
    });
    let mut chosen: Vec<usize> = by_revision.into_iter().chain(by_text).collect();
    chosen.dedup();
    chosen
}

fn fits(entry: &Entry<'_>, host: u32, runtime: Runtime) -> bool {
    if entry.says_nothing() {
        return true;
    }
    let Some(image) = entry.version() else {
        // Docker leaves out only what it can read and knows to be newer.
        return runtime == Runtime::Docker;
    };
    match runtime {
        Runtime::Docker => image.build <= host,
        Runtime::Containerd => accepted_builds(host).contains(&image.build),
        Runtime::OldContainerd | Runtime::OldestContainerd => image.build == host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(os_version: &str) -> Entry<'_> {
        Entry {
            os: "windows",
            architecture: "amd64",
            os_version: (!os_version.is_empty()).then_some(os_version),
        }
    }

    fn taken(versions: &[&str], host: &str, runtime: Runtime) -> Vec<usize> {
        let entries: Vec<_> = versions.iter().map(|version| windows(version)).collect();
        let host = HostBuild::new(host.parse().unwrap());
        choose(&entries, host, "amd64", runtime)
    }

    const PAUSE: [&str; 3] = ["10.0.17763.5696", "10.0.20348.2402", "10.0.26100.2314"];

    #[test]
    fn containerd_takes_the_entry_of_the_hosts_build() {
        assert_eq!(taken(&PAUSE, "17763.973", Runtime::Containerd), [0]);
        assert_eq!(taken(&PAUSE, "20348.1", Runtime::Containerd), [1]);
        assert!(taken(&PAUSE, "18363.1", Runtime::Containerd).is_empty());
    }

    #[test]
    fn newer_hosts_take_down_level_entries_if_containerd_knows_of_the_stable_abi() {
        let two = &PAUSE[..2];
        assert_eq!(taken(two, "26100.1", Runtime::Containerd), [1]);
        assert!(taken(two, "26100.1", Runtime::OldContainerd).is_empty());
        assert_eq!(taken(two, "20348.1", Runtime::OldContainerd), [1]);
    }

    #[test]
    fn versions_of_containerd_differ_about_which_of_several_comes_first() {
        let same_build = ["10.0.17763.973", "10.0.17763.1158"];
        assert_eq!(taken(&same_build, "17763.973", Runtime::Containerd), [1, 0]);
        let same_length = ["10.0.17763.1158", "10.0.17763.5696"];
        assert_eq!(taken(&same_length, "17763.973", Runtime::Containerd), [1]);
    }

    #[test]
    fn docker_takes_what_is_not_newer_and_its_own_build_first() {
        assert_eq!(taken(&PAUSE, "20348.1", Runtime::Docker), [1]);
        assert_eq!(taken(&PAUSE, "18363.1", Runtime::Docker), [0]);
        assert!(taken(&PAUSE, "14393.1", Runtime::Docker).is_empty());
    }

    #[test]
    fn an_entry_without_a_version_is_for_every_host() {
        assert_eq!(taken(&[""], "18363.1", Runtime::Containerd), [0]);
        let with_one = ["", "10.0.20348.2402"];
        assert_eq!(taken(&with_one, "20348.1", Runtime::Containerd), [1]);
    }

    #[test]
    fn other_systems_and_architectures_are_left_alone() {
        let entries = [
            Entry {
                os: "linux",
                ..windows("")
            },
            Entry {
                architecture: "arm64",
                ..windows("10.0.20348.1")
            },
        ];
        let host = HostBuild::new("20348.1".parse().unwrap());
        assert!(choose(&entries, host, "amd64", Runtime::Containerd).is_empty());
        assert_eq!(choose(&entries, host, "arm64", Runtime::Docker), [1]);
    }

    #[test]
    fn a_nodes_runtime_is_read_from_its_version() {
        for (text, runtime) in [
            ("docker://19.3.14", Runtime::Docker),
            ("containerd://1.7.22", Runtime::Containerd),
            ("containerd://1.7.5+azure", Runtime::OldContainerd),
            ("containerd://1.6.6", Runtime::OldContainerd),
            ("containerd://1.6.28+unknown", Runtime::Containerd),
            ("containerd://2.0.0-rc.1", Runtime::Containerd),
            ("containerd://1.6.0-rc.1", Runtime::OldContainerd),
            ("containerd://1.5.2", Runtime::OldestContainerd),
            ("", Runtime::Containerd),
        ] {
            assert_eq!(Runtime::of_node(text), runtime, "{text}");
        }
    }
}
