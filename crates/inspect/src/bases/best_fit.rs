//! Selection of the best version for a host: the rules of [`compat`](wincimg_windows::compat)
//! decide which versions fit, the distance to the host ranks them.

use std::cmp::Reverse;
use std::ops::RangeInclusive;

use wincimg_common::Named;
use wincimg_windows::compat::{CompatRule, HostBuild, Isolation, check};
use wincimg_windows::version::WindowsVersion;

/// Criterion of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Named)]
#[named(rename_all = "lowercase")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[cfg_attr(
    feature = "schema",
    derive(serde::Deserialize, schemars::JsonSchema),
    serde(rename_all = "lowercase")
)]
pub enum BaseMatch {
    /// The nearest revision that starts on the host.
    #[default]
    Nearest,
    /// Only the host's own revision.
    Exact,
}

impl BaseMatch {
    /// Compares an image that starts on a host with the host's revision.
    pub fn compare(image: WindowsVersion, host: HostBuild) -> Self {
        if image == host.version {
            Self::Exact
        } else {
            Self::Nearest
        }
    }
}

/// Rank of a version that starts on a host; the greatest fits best.
///
/// The host's own revision ranks first, then the newest version not newer than the host, then the
/// oldest that is newer, which sometimes fails. Versions that are reported to fail on this host
/// rank last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fit {
    exact: bool,
    unreported: bool,
    distance: Distance,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Distance {
    NewerThanHost(Reverse<WindowsVersion>),
    NotNewer(WindowsVersion),
}

impl Fit {
    /// Ranks one version; `None` if it does not fit.
    pub fn of(version: WindowsVersion, host: HostBuild, wanted: BaseMatch) -> Option<Self> {
        let exact = version.revision.is_some() && version == host.version;
        let verdict = check(Some(host), Some(version), Isolation::Process);
        if !verdict.is_startable() || (wanted == BaseMatch::Exact && !exact) {
            return None;
        }
        let distance = match (version.revision, host.version.revision) {
            (Some(image), Some(own)) if version.build == host.version.build && image > own => {
                Distance::NewerThanHost(Reverse(version))
            }
            _ => Distance::NotNewer(version),
        };
        Some(Self {
            exact,
            unreported: verdict.rule != CompatRule::HostReportedBroken,
            distance,
        })
    }
}

/// The possible versions of an image, all of one build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    /// The build.
    pub build: u32,
    /// The revisions.
    pub revisions: RangeInclusive<u32>,
}

impl Span {
    /// The version in it that fits a host best: the host's own, or the nearest end.
    pub(crate) fn nearest_to(&self, host: HostBuild) -> WindowsVersion {
        let (oldest, newest) = (*self.revisions.start(), *self.revisions.end());
        let revision = match host.version.revision {
            Some(own) if self.build == host.version.build => own.max(oldest).min(newest),
            _ => newest,
        };
        WindowsVersion::new(self.build, revision)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn host(text: &str) -> HostBuild {
        HostBuild::new(text.parse().unwrap())
    }

    fn best(host_text: &str, versions: &[&str], wanted: BaseMatch) -> Option<String> {
        versions
            .iter()
            .map(|text| text.parse().unwrap())
            .filter_map(|version| Some((Fit::of(version, host(host_text), wanted)?, version)))
            .max()
            .map(|(_, version)| version.to_string())
    }

    fn nearest(host: &str, versions: &[&str]) -> Option<String> {
        best(host, versions, BaseMatch::Nearest)
    }

    #[test]
    fn the_line_of_2020_02_is_not_crossed() {
        assert_eq!(nearest("17763.1158", &["17763.973"]), None);
        assert_eq!(nearest("17763.973", &["17763.1158"]), None);
    }

    #[test]
    fn server_2016_takes_its_own_revision_only() {
        let versions = ["14393.3384", "14393.3443"];
        assert_eq!(nearest("14393.3443", &versions).unwrap(), "14393.3443");
        assert_eq!(nearest("14393.3441", &versions), None);
    }

    #[test]
    fn an_older_build_comes_before_a_newer_revision_of_the_hosts_own() {
        let versions = ["20348.3000", "20348.5499", "26100.2033"];
        assert_eq!(nearest("26100.1", &versions).unwrap(), "20348.5499");
        assert_eq!(nearest("26100.2314", &versions).unwrap(), "26100.2033");
        assert_eq!(nearest("26100.1742", &versions[2..]).unwrap(), "26100.2033");
        assert_eq!(nearest("25398.1", &versions).unwrap(), "20348.5499");
    }

    #[test]
    fn an_exact_match_takes_nothing_else() {
        let exact = |versions: &[&str]| best("17763.973", versions, BaseMatch::Exact);
        assert_eq!(exact(&["17763.914", "17763.1012"]), None);
        assert_eq!(exact(&["17763.914", "17763.973"]).unwrap(), "17763.973");
    }

    #[test]
    fn a_host_without_a_revision_gets_the_newest_where_the_revision_does_not_decide() {
        let versions = ["20348.10", "20348.20"];
        assert_eq!(nearest("20348", &versions).unwrap(), "20348.20");
        assert_eq!(nearest("17763", &["17763.973"]), None);
    }

    const BUILDS: [u32; 8] = [14393, 17763, 18363, 19042, 20348, 22621, 25398, 26100];

    fn any_version() -> impl Strategy<Value = WindowsVersion> {
        (proptest::sample::select(BUILDS.to_vec()), 0_u32..5000)
            .prop_map(|(build, revision)| WindowsVersion::new(build, revision))
    }

    proptest! {
        #[test]
        fn a_fit_is_what_the_judge_accepts(own in any_version(), image in any_version()) {
            let host = HostBuild::new(own);
            let accepted = check(Some(host), Some(image), Isolation::Process).is_startable();
            prop_assert_eq!(Fit::of(image, host, BaseMatch::Nearest).is_some(), accepted);
            prop_assert_eq!(
                Fit::of(image, host, BaseMatch::Exact).is_some(),
                accepted && own == image
            );
        }

        #[test]
        fn nothing_that_is_nearer_is_passed_over(
            own in any_version(),
            images in proptest::collection::vec(any_version(), 0..30),
        ) {
            let host = HostBuild::new(own);
            let fitting = |image: &&WindowsVersion| {
                check(Some(host), Some(**image), Isolation::Process).is_startable()
            };
            let chosen = images
                .iter()
                .filter_map(|image| Some((Fit::of(*image, host, BaseMatch::Nearest)?, image)))
                .max()
                .map(|(_, image)| *image);
            prop_assert_eq!(chosen.is_some(), images.iter().any(|image| fitting(&image)));
            let Some(chosen) = chosen else { return Ok(()) };
            for other in images.iter().filter(fitting){
                let as_near = chosen == *other || chosen == own;
                let nearer = if *other <= own {
                    chosen <= own && chosen > *other
                } else {
                    chosen < *other
                };
                prop_assert!(as_near || nearer, "{} was passed over for {}", other, chosen);
            }
        }

        #[test]
        fn the_nearest_end_of_a_span_is_its_best_version(
            own in any_version(),
            build in proptest::sample::select(BUILDS.to_vec()),
            oldest in 0_u32..300,
            length in 0_u32..300,
        ) {
            let host = HostBuild::new(own);
            let span = Span { build, revisions: oldest..=oldest + length };
            let fit = |version| Fit::of(version, host, BaseMatch::Nearest);
            let best = span.revisions.clone().map(|revision| fit(WindowsVersion::new(build, revision))).max();
            prop_assert_eq!(best.flatten(), fit(span.nearest_to(host)));
        }
    }
}
