//! Selection of an image from an index by a node's container runtime. Runtimes and their versions
//! differ in which entries they accept, and which of several they prefer. An image without an index
//! is accepted by all: what it unpacks, containerd compares by the system alone, unless its setting
//! `check_platform_supported` is on.

use std::collections::BTreeSet;

use super::{HostBuild, accepted_builds};
use crate::release;
use crate::version::WindowsVersion;

/// Container runtime of a node, as far as its selection of images differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ContainerRuntime {
    /// The Docker daemon, behind dockershim or cri-dockerd.
    Docker,
    /// containerd.
    Containerd(Containerd),
}

/// Versions of containerd that select the same images, by the first of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Containerd {
    /// Unknown: one of those with support for the ABI that is stable since Windows Server 2022.
    Unknown,
    /// Before 1.6, without host process containers.
    V1_0,
    /// Own build only, and no entry without a version.
    V1_6,
    /// Own build only.
    V1_6_18,
    /// The stable ABI.
    V1_6_23,
    /// Own build only; from here on the first matching entry.
    V1_7,
    /// The stable ABI.
    V1_7_6,
    /// The transfer service, which fetches all matching entries.
    V2_1,
    /// containerd/platforms 1.0.0-rc.2: from the last LTSC release before the host.
    V2_1_6,
    /// containerd/platforms 1.0.0-rc.4: the same, without entries that require features other than
    /// `win32k`.
    V2_3,
    /// containerd/platforms 1.0.0-rc.5: from the LTSC release before the host's own generation.
    V2_3_5,
}

impl Containerd {
    /// All known ones, each with its first and last version.
    const ALL: [(Self, [u32; 3], &str); 10] = [
        (Self::V1_0, [0, 0, 0], "1.5.18"),
        (Self::V1_6, [1, 6, 0], "1.6.17"),
        (Self::V1_6_18, [1, 6, 18], "1.6.22"),
        (Self::V1_6_23, [1, 6, 23], "1.6.39"),
        (Self::V1_7, [1, 7, 0], "1.7.5"),
        (Self::V1_7_6, [1, 7, 6], "2.0.x"),
        (Self::V2_1, [2, 1, 0], "2.1.5"),
        (Self::V2_1_6, [2, 1, 6], "2.2.x"),
        (Self::V2_3, [2, 3, 0], "2.3.4"),
        (Self::V2_3_5, [2, 3, 5], ""),
    ];

    fn of_version(text: &str) -> Self {
        let mut parts = text.trim_start_matches('v').split(['.', '-', '+']);
        let mut number = || parts.next().and_then(|part| part.parse::<u32>().ok());
        let Some(major) = number() else {
            return Self::Unknown;
        };
        let version = [major, number().unwrap_or(0), number().unwrap_or(0)];
        // 2.4.0-beta.0 has the platforms of 2.3.4.
        let mut early = ["-alpha", "-beta", "-rc"].iter();
        let is_early = version <= [2, 4, 0] && early.any(|end| text.contains(end));
        let known = Self::ALL.iter().rev();
        known
            .copied()
            .find(|(alike, since, _)| *since <= version && !(is_early && *alike == Self::V2_3_5))
            .map_or(Self::Unknown, |(alike, _, _)| alike)
    }

    /// The possible versions, with their indexes in `ALL`.
    fn possible(self) -> impl Iterator<Item = (usize, Self)> {
        let is_possible = move |alike: Self| match self {
            Self::Unknown => alike >= Self::V1_6_23 && alike != Self::V1_7,
            known => alike == known,
        };
        let all = Self::ALL.into_iter().map(|(alike, _, _)| alike).enumerate();
        all.filter(move |(_, alike)| is_possible(*alike))
    }

    /// `1.6.23 to 1.6.39` and `2.1.6 and newer`.
    fn spans(places: &[usize]) -> Vec<String> {
        let spans = places.chunk_by(|one, next| one + 1 == *next).map(|span| {
            let (_, [major, minor, patch], _) = Self::ALL[span[0]];
            let (newest, _, last) = Self::ALL[span[span.len() - 1]];
            match newest {
                Self::V1_0 => "before 1.6".to_owned(),
                Self::V2_3_5 if span.len() == 1 => "newer than 2.3.4".to_owned(),
                Self::V2_3_5 => format!("{major}.{minor}.{patch} and newer"),
                _ => format!("{major}.{minor}.{patch} to {last}"),
            }
        });
        spans.collect()
    }

    /// Returns true if an entry of this build matches a host.
    fn accepts(self, host: u32, image: u32) -> bool {
        let oldest = match self {
            // The host's own build.
            Self::V1_0 | Self::V1_6 | Self::V1_6_18 | Self::V1_7 => None,
            // From Windows Server 2022 on, up to the host.
            Self::V1_6_23 | Self::V1_7_6 | Self::V2_1 => {
                release::first_stable_abi().filter(|first| first.build <= host)
            }
            // From the last release with a stable ABI before the host on.
            Self::V2_1_6 | Self::V2_3 => release::stable_abi_before(host),
            // The builds that the host runs.
            Self::V2_3_5 | Self::Unknown => return accepted_builds(host).contains(&image),
        };
        (oldest.map_or(host, |release| release.build)..=host).contains(&image)
    }

    /// Those of some entries that match a host.
    fn matching(self, entries: &[IndexEntry<'_>], of_host: &[usize], host: u32) -> Vec<usize> {
        let matching = of_host.iter().copied();
        let matching = matching.filter(|&index| self.takes(&entries[index], host));
        matching.collect()
    }

    fn takes(self, entry: &IndexEntry<'_>, host: u32) -> bool {
        entry.variant.is_none()
            && (entry.feature.is_none() || self < Self::V2_3)
            && match entry.version() {
                Some(image) => self.accepts(host, image.build),
                None => entry.is_unspecified() && self.selects_unversioned(),
            }
    }

    fn selects_unversioned(self) -> bool {
        !matches!(self, Self::V1_0 | Self::V1_6)
    }

    /// Returns true if a pull fetches all entries that match, and fails if one of them is missing.
    fn fetches_all(self) -> bool {
        self >= Self::V2_1
    }

    /// Chooses one of several entries that match.
    fn choose(self, entries: &[IndexEntry<'_>], matching: &[usize]) -> Option<usize> {
        let revision = |index: usize| entries[index].version().and_then(|own| own.revision);
        let text = |index: usize| entries[index].os_version.unwrap_or_default();
        // The first of equals, as with a stable sort.
        matching.iter().copied().reduce(|best, next| {
            let is_better = match self {
                Self::V1_0 | Self::V1_6 | Self::V1_6_18 | Self::V1_6_23 => {
                    revision(next) > revision(best)
                }
                Self::V1_7 | Self::V1_7_6 | Self::V2_1 => false,
                // The one whose `os.version` sorts last as text.
                Self::V2_1_6 | Self::V2_3 | Self::V2_3_5 | Self::Unknown => text(next) > text(best),
            };
            if is_better { next } else { best }
        })
    }
}

impl ContainerRuntime {
    /// A containerd of unknown version.
    pub const CONTAINERD: Self = Self::Containerd(Containerd::Unknown);

    /// The runtimes of [`Self::runs_unversioned`].
    pub const FOR_UNVERSIONED: &str = "containerd 1.6.18 or newer";

    /// Display name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Docker => "Docker",
            Self::Containerd(_) => "containerd",
        }
    }

    /// Reads a node's `containerRuntimeVersion`, such as `containerd://1.7.22`. Unknown text counts
    /// as a current containerd.
    pub fn from_node(text: &str) -> Self {
        match text.split_once("://") {
            Some(("docker", _)) => Self::Docker,
            Some(("containerd", version)) => Self::Containerd(Containerd::of_version(version)),
            _ => Self::CONTAINERD,
        }
    }

    /// Returns true if it runs `HostProcess` containers.
    pub fn runs_host_process(self) -> bool {
        !matches!(self, Self::Docker | Self::Containerd(Containerd::V1_0))
    }

    /// Returns true if it selects an image without Windows from an index, whose entry has no version,
    /// and runs it.
    pub fn runs_unversioned(self) -> bool {
        matches!(self, Self::Containerd(version) if version.selects_unversioned())
    }

    /// Returns true if a host selects a startable image from every index that has one. Docker may
    /// select an older entry.
    pub fn certainly_accepts(self, host: u32, image: u32) -> bool {
        match self {
            Self::Docker => image == host,
            Self::Containerd(version) => {
                let mut possible = version.possible();
                possible.all(|(_, alike)| alike.accepts(host, image))
            }
        }
    }

    /// Returns true if a host pulls an image from an index, with some possible version of its
    /// runtime.
    pub fn may_accept(self, host: u32, image: u32) -> bool {
        match self {
            Self::Docker => image <= host,
            Self::Containerd(version) => {
                let mut possible = version.possible();
                possible.any(|(_, alike)| alike.accepts(host, image))
            }
        }
    }

    /// The versions of containerd with which a host pulls an image from an index, if there are some:
    /// `containerd 1.7.6 to 2.1.5 or newer than 2.3.4`.
    pub fn containerd_for(host: u32, image: u32) -> Option<String> {
        let all = Containerd::ALL.into_iter().enumerate();
        let accepting = all.filter(|(_, (alike, ..))| alike.accepts(host, image));
        let places: Vec<usize> = accepting.map(|(place, _)| place).collect();
        let versions = match &Containerd::spans(&places)[..] {
            [] => return None,
            [first @ .., last] if first.len() > 1 => format!("{}, or {last}", first.join(", ")),
            spans => spans.join(" or "),
        };
        Some(format!("containerd {versions}"))
    }
}

/// Platform of an image in an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry<'a> {
    /// `windows`, `linux`, …
    pub os: &'a str,
    /// `amd64`, `arm64`, …
    pub architecture: &'a str,
    /// Variant of the architecture, unless it is the usual one: containerd refuses another on
    /// Windows, and Docker does not distinguish them.
    pub variant: Option<&'a str>,
    /// A feature of the host that it requires, other than `win32k`: containerd refuses it since 2.3.
    pub feature: Option<&'a str>,
    /// `10.0.17763.973`, if the index has it.
    pub os_version: Option<&'a str>,
    /// True if its manifest does not exist.
    pub is_missing: bool,
}

impl IndexEntry<'_> {
    /// Its version, as runtimes read it: `20348.2402` is none, and only the build has to be a number.
    fn version(&self) -> Option<WindowsVersion> {
        let mut parts = self.os_version?.strip_prefix("10.0.")?.split('.');
        Some(WindowsVersion {
            build: parts.next()?.parse().ok()?,
            revision: parts.next().and_then(|part| part.parse().ok()),
        })
    }

    fn is_unspecified(&self) -> bool {
        self.os_version.is_none_or(str::is_empty)
    }
}

/// The entry that a runtime, or some of its versions, selects, or that fails its pull.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuntimeChoice {
    /// Position of the entry; absent if none is selected.
    pub entry: Option<usize>,
    /// The runtime, such as `containerd 1.7.6 to 2.1.5`.
    pub by: String,
}

/// Selects the entry for a host's runtime: several choices if they depend on an unknown version.
pub fn choose(
    entries: &[IndexEntry<'_>],
    host: HostBuild,
    architecture: &str,
    runtime: ContainerRuntime,
) -> Vec<RuntimeChoice> {
    let build = host.version.build;
    let of_host = of_host(entries, architecture, runtime);
    match runtime {
        ContainerRuntime::Docker => vec![RuntimeChoice {
            entry: choose_as_docker(entries, &of_host, build),
            by: runtime.name().to_owned(),
        }],
        ContainerRuntime::Containerd(version) => choices(version, |alike| {
            let matching = alike.matching(entries, &of_host, build);
            let missing = matching.iter().find(|index| entries[**index].is_missing);
            let failing = missing.filter(|_| alike.fetches_all()).copied();
            failing.or_else(|| alike.choose(entries, &matching))
        }),
    }
}

/// The entries that a host's runtime, or some of its possible versions, fetches.
pub fn fetched(
    entries: &[IndexEntry<'_>],
    host: HostBuild,
    architecture: &str,
    runtime: ContainerRuntime,
) -> BTreeSet<usize> {
    let chosen = choose(entries, host, architecture, runtime).into_iter();
    let mut fetched: BTreeSet<usize> = chosen.filter_map(|choice| choice.entry).collect();
    if let ContainerRuntime::Containerd(version) = runtime {
        let of_host = of_host(entries, architecture, runtime);
        let all = version.possible().filter(|(_, alike)| alike.fetches_all());
        fetched.extend(
            all.flat_map(|(_, alike)| alike.matching(entries, &of_host, host.version.build)),
        );
    }
    fetched
}

/// The architecture that containerd reads in an index, in any case. Docker knows no aliases.
pub fn architecture_name(text: &str) -> &str {
    const ALIASES: [(&str, &str); 5] = [
        ("amd64", "amd64"),
        ("x86_64", "amd64"),
        ("x86-64", "amd64"),
        ("arm64", "arm64"),
        ("aarch64", "arm64"),
    ];
    let mut aliases = ALIASES.iter();
    let known = aliases.find(|(alias, _)| alias.eq_ignore_ascii_case(text));
    known.map_or(text, |(_, name)| *name)
}

/// The entries for Windows on an architecture.
fn of_host(
    entries: &[IndexEntry<'_>],
    architecture: &str,
    runtime: ContainerRuntime,
) -> Vec<usize> {
    let of_host = (0..entries.len()).filter(|&index| {
        let stated = entries[index].architecture;
        let stated = match runtime {
            ContainerRuntime::Docker => stated,
            ContainerRuntime::Containerd(_) => architecture_name(stated),
        };
        entries[index].os == "windows" && stated == architecture
    });
    of_host.collect()
}

/// The choices of all possible versions, without duplicates.
fn choices(
    version: Containerd,
    choose: impl Fn(Containerd) -> Option<usize>,
) -> Vec<RuntimeChoice> {
    let mut choices: Vec<(Option<usize>, Vec<usize>)> = Vec::new();
    for (place, alike) in version.possible() {
        let entry = choose(alike);
        match choices.iter_mut().find(|(known, _)| *known == entry) {
            Some((_, by)) => by.push(place),
            None => choices.push((entry, vec![place])),
        }
    }
    let choices = choices.into_iter();
    let choices = choices.map(|(entry, by)| RuntimeChoice {
        entry,
        by: format!("containerd {}", Containerd::spans(&by).join(" and ")),
    });
    choices.collect()
}

/// The first entry of the host's build, else the first that is not newer. Entries with unreadable
/// versions are candidates, too.
fn choose_as_docker(entries: &[IndexEntry<'_>], of_host: &[usize], build: u32) -> Option<usize> {
    let is_left_in = |index: &&usize| {
        let version = entries[**index].version();
        version.is_none_or(|image| image.build <= build)
    };
    let own_build = format!("10.0.{build}.");
    let is_own = |index: &&usize| {
        let version = entries[**index].os_version;
        version.is_some_and(|version| version.starts_with(&own_build))
    };
    let left_in = || of_host.iter().filter(is_left_in);
    left_in().find(is_own).or_else(|| left_in().next()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(os_version: &str) -> IndexEntry<'_> {
        IndexEntry {
            os: "windows",
            architecture: "amd64",
            variant: None,
            feature: None,
            os_version: (!os_version.is_empty()).then_some(os_version),
            is_missing: false,
        }
    }

    fn host(version: &str) -> HostBuild {
        HostBuild::new(version.parse().unwrap())
    }

    fn choices(versions: &[&str], on: &str, runtime: ContainerRuntime) -> Vec<RuntimeChoice> {
        let entries: Vec<_> = versions.iter().map(|version| windows(version)).collect();
        choose(&entries, host(on), "amd64", runtime)
    }

    fn taken<'a>(versions: &[&'a str], on: &str, runtime: &str) -> Option<&'a str> {
        let choices = choices(versions, on, ContainerRuntime::from_node(runtime));
        assert_eq!(choices.len(), 1, "{choices:?}");
        choices[0].entry.map(|entry| versions[entry])
    }

    /// Derived from the sources of each version: containerd's own `platforms` up to 1.7.18,
    /// then containerd/platforms 0.2.1 (1.7.19 on), 1.0.0-rc.0 (2.0.0), rc.1 (2.0.2), rc.2 (2.1.6),
    /// rc.4 (2.3.0) and rc.5.
    #[test]
    fn each_version_of_containerd_takes_what_its_platforms_package_says() {
        const A: &str = "10.0.17763.1012";
        const B: &str = "10.0.17763.1158";
        const C: &str = "10.0.17763.973";
        const L22: &str = "10.0.20348.5870";
        const L25: &str = "10.0.26100.2314";
        const NEXT: &str = "10.0.26200.7171";
        let same: &[&str] = &[A, B];
        let shorter: &[&str] = &[B, C];
        let both: &[&str] = &[L22, L25];
        let unversioned: &[&str] = &["", B];
        for (versions, host, runtime, expected) in [
            (same, "17763.1158", "1.5.18", Some(B)),
            (same, "17763.1158", "1.6.6", Some(B)),
            (same, "17763.1158", "1.6.38", Some(B)),
            (same, "17763.1158", "1.7.0", Some(A)),
            (same, "17763.1158", "1.7.20", Some(A)),
            (same, "17763.1158", "2.0.4", Some(A)),
            (same, "17763.1158", "2.1.5", Some(A)),
            (same, "17763.1158", "2.1.6", Some(B)),
            (same, "17763.1158", "2.2.0", Some(B)),
            (shorter, "17763.1158", "1.6.38", Some(B)),
            (shorter, "17763.1158", "1.7.20", Some(B)),
            (shorter, "17763.1158", "2.2.0", Some(C)),
            (shorter, "17763.1158", "2.4.0", Some(C)),
            // The revision is compared without the build.
            (both, "26100.1", "1.6.38", Some(L22)),
            (both, "26100.1", "1.7.30", Some(L22)),
            (both, "26100.1", "2.1.6", Some(L25)),
            (both, "26100.1", "1.6.22", Some(L25)),
            (both, "26100.1", "1.7.5", Some(L25)),
            (&[L22], "26100.1", "1.6.22", None),
            (&[L22], "26100.1", "1.7.5", None),
            (&[L22], "26100.1", "1.7.6", Some(L22)),
            (&[L22], "22621.1", "1.6.23", Some(L22)),
            (&[L22], "26200.1", "1.6.38", Some(L22)),
            (&[L22], "26200.1", "1.7.30", Some(L22)),
            (&[L22], "26200.1", "2.0.5", Some(L22)),
            (&[L22], "26200.1", "2.1.6", None),
            (&[L22], "26200.1", "2.2.3", None),
            (&[L22], "26200.1", "2.3.4", None),
            (&[L22], "26200.1", "2.4.0", Some(L22)),
            (both, "26200.1", "2.3.4", Some(L25)),
            (&[NEXT], "26100.1", "2.4.0", None),
            (unversioned, "17763.1158", "1.6.0", Some(B)),
            (unversioned, "17763.1158", "1.6.18", Some(B)),
            (unversioned, "17763.1158", "1.7.20", Some("")),
            (unversioned, "17763.1158", "2.2.0", Some(B)),
            (&[""], "17763.1158", "1.6.17", None),
            (&[""], "17763.1158", "1.6.18", Some("")),
        ] {
            let runtime = format!("containerd://{runtime}");
            let found = taken(versions, host, &runtime);
            assert_eq!(found, expected, "{versions:?} on {host} with {runtime}");
        }
    }

    #[test]
    fn an_image_without_windows_is_for_the_versions_that_select_it() {
        for (runtime, is_run) in [
            ("docker://20.10.9", false),
            ("containerd://1.5.18", false),
            ("containerd://1.6.17", false),
            ("containerd://1.6.18", true),
            ("containerd://2.4.0", true),
            ("", true),
        ] {
            let runtime = ContainerRuntime::from_node(runtime);
            assert_eq!(runtime.runs_unversioned(), is_run, "{runtime:?}");
        }
        let oldest = ContainerRuntime::FOR_UNVERSIONED.replace("containerd ", "containerd://");
        let oldest = ContainerRuntime::from_node(oldest.trim_end_matches(" or newer"));
        assert_eq!(oldest, ContainerRuntime::Containerd(Containerd::V1_6_18));
    }

    #[test]
    fn where_the_version_is_not_known_each_choice_says_whose_it_is() {
        let same_build = ["10.0.17763.1012", "10.0.17763.1158"];
        let found = choices(&same_build, "17763.1158", ContainerRuntime::CONTAINERD);
        let found: Vec<_> = found.iter().map(|it| (it.entry, it.by.as_str())).collect();
        assert_eq!(
            found,
            [
                (Some(1), "containerd 1.6.23 to 1.6.39 and 2.1.6 and newer"),
                (Some(0), "containerd 1.7.6 to 2.1.5"),
            ]
        );
        let one = ["10.0.17763.5696", "10.0.20348.2402"];
        assert_eq!(
            choices(&one, "17763.1", ContainerRuntime::CONTAINERD).len(),
            1
        );
    }

    #[test]
    fn a_client_past_the_last_ltsc_release_pulls_its_base_with_some_versions_alone() {
        let accepts = |runtime: &str, host: u32, image: u32| {
            ContainerRuntime::from_node(runtime).may_accept(host, image)
        };
        assert!(accepts("containerd://2.1.5", 26200, 20348));
        assert!(!accepts("containerd://2.1.6", 26200, 20348));
        assert!(accepts("containerd://2.1.6", 26200, 26100));
        assert!(accepts("containerd://2.4.0", 26200, 20348));
        assert!(accepts("", 26200, 20348), "of an unknown version");
        assert!(!accepts("containerd://1.7.0", 26200, 20348));
        assert!(accepts("docker://20.10.9", 26200, 20348));
        assert!(!accepts("docker://20.10.9", 20348, 26200));
        assert_eq!(
            ContainerRuntime::containerd_for(26200, 20348).as_deref(),
            Some("containerd 1.6.23 to 1.6.39, 1.7.6 to 2.1.5, or newer than 2.3.4")
        );
        assert_eq!(
            ContainerRuntime::containerd_for(22621, 20348).as_deref(),
            Some("containerd 1.6.23 to 1.6.39 or 1.7.6 and newer")
        );
        assert_eq!(ContainerRuntime::containerd_for(20348, 17763), None);
    }

    const PAUSE: [&str; 3] = ["10.0.17763.5696", "10.0.20348.2402", "10.0.26100.2314"];

    #[test]
    fn docker_takes_what_is_not_newer_and_its_own_build_first() {
        const DOCKER: &str = "docker://20.10.9";
        assert_eq!(taken(&PAUSE, "20348.1", DOCKER), Some(PAUSE[1]));
        assert_eq!(taken(&PAUSE, "18363.1", DOCKER), Some(PAUSE[0]));
        assert_eq!(taken(&PAUSE, "14393.1", DOCKER), None);
    }

    #[test]
    fn a_version_is_read_as_runtimes_read_it() {
        for runtime in ["containerd://1.6.38", "containerd://2.2.0"] {
            assert_eq!(taken(&["20348.2402"], "20348.1", runtime), None);
            for rest in ["", ".", ".abc", ".2402.1", ".2402-amd64", ".99999999999"] {
                let version = format!("10.0.20348{rest}");
                let found = taken(&[version.as_str()], "20348.1", runtime);
                assert_eq!(found, Some(version.as_str()));
            }
            assert_eq!(taken(&["10.0.x.2402"], "20348.1", runtime), None);
        }
        // Docker prefers what begins with its build and a dot.
        let short = ["10.0.17763", "10.0.20348"];
        assert_eq!(taken(&short, "20348.1", "docker://20.10.9"), Some(short[0]));
    }

    #[test]
    fn the_transfer_service_fetches_all_that_matches() {
        let missing = IndexEntry {
            is_missing: true,
            ..windows("10.0.20348.2402")
        };
        let entries = [windows("10.0.26100.2314"), missing];
        for (version, on, expected) in [
            ("2.0.5", "26100.1", 0),
            ("2.1.0", "26100.1", 1),
            ("2.4.0", "26100.1", 1),
            ("2.4.0", "26200.1", 1),
            ("2.2.0", "26200.1", 0),
        ] {
            let runtime = ContainerRuntime::from_node(&format!("containerd://{version}"));
            let choices = choose(&entries, host(on), "amd64", runtime);
            assert_eq!(choices[0].entry, Some(expected), "{version} on {on}");
        }
    }

    #[test]
    fn containerd_refuses_entries_for_a_variant_of_the_architecture() {
        let entries = [IndexEntry {
            variant: Some("v2"),
            ..windows("10.0.20348.1")
        }];
        for (runtime, expected) in [
            (ContainerRuntime::CONTAINERD, None),
            (ContainerRuntime::Docker, Some(0)),
        ] {
            let found = choose(&entries, host("20348.1"), "amd64", runtime);
            assert_eq!(found[0].entry, expected, "{runtime:?}");
        }
    }

    #[test]
    fn containerd_refuses_entries_for_features_that_no_host_has_since_2_3() {
        let entries = [IndexEntry {
            feature: Some("gpu"),
            ..windows("10.0.20348.1")
        }];
        for (runtime, expected) in [
            ("containerd://2.2.7", Some(0)),
            ("containerd://2.3.0", None),
            ("containerd://2.4.0", None),
            ("docker://20.10.9", Some(0)),
        ] {
            let runtime = ContainerRuntime::from_node(runtime);
            let found = choose(&entries, host("20348.1"), "amd64", runtime);
            assert_eq!(found[0].entry, expected, "{runtime:?}");
        }
    }

    #[test]
    fn other_systems_and_architectures_are_left_alone() {
        let entries = [
            IndexEntry {
                os: "linux",
                ..windows("")
            },
            IndexEntry {
                architecture: "arm64",
                ..windows("10.0.20348.1")
            },
        ];
        let chosen = |architecture, runtime| {
            let choices = choose(&entries, host("20348.1"), architecture, runtime);
            choices[0].entry
        };
        assert_eq!(chosen("amd64", ContainerRuntime::CONTAINERD), None);
        assert_eq!(chosen("arm64", ContainerRuntime::Docker), Some(1));
    }

    #[test]
    fn containerd_alone_knows_aliases_of_architectures() {
        for (alias, architecture) in [
            ("x86_64", "amd64"),
            ("x86-64", "amd64"),
            ("AMD64", "amd64"),
            ("aarch64", "arm64"),
        ] {
            let entries = [IndexEntry {
                architecture: alias,
                ..windows("10.0.20348.1")
            }];
            for (runtime, expected) in [
                (ContainerRuntime::CONTAINERD, Some(0)),
                (ContainerRuntime::Docker, None),
            ] {
                let choices = choose(&entries, host("20348.1"), architecture, runtime);
                assert_eq!(choices[0].entry, expected, "{alias} on {runtime:?}");
            }
        }
    }

    #[test]
    fn a_nodes_runtime_is_read_from_its_version() {
        use Containerd::*;
        for (text, version) in [
            ("containerd://1.7.22", V1_7_6),
            ("containerd://1.7.5+azure", V1_7),
            ("containerd://1.6.6", V1_6),
            ("containerd://1.6.28+unknown", V1_6_23),
            ("containerd://v2.0.0-rc.1", V1_7_6),
            ("containerd://1.6.0-rc.1", V1_6),
            ("containerd://1.5.2", V1_0),
            ("containerd://2.1.6-k3s2", V2_1_6),
            ("containerd://2.4", V2_3_5),
            ("containerd://2.2.7", V2_1_6),
            ("containerd://2.3.0", V2_3),
            ("containerd://2.4.0-beta.0", V2_3),
            ("containerd://2.5.0-beta.0", V2_3_5),
            ("containerd://Unknown", Unknown),
            ("", Unknown),
        ] {
            assert_eq!(
                ContainerRuntime::from_node(text),
                ContainerRuntime::Containerd(version),
                "{text}"
            );
        }
        assert_eq!(
            ContainerRuntime::from_node("docker://19.3.14"),
            ContainerRuntime::Docker
        );
    }
}
