//! Compatibility of an image with a host: the rules of Windows as a table and one function.
//!
//! Under process isolation a container shares the host's kernel, so the host's build decides how
//! much an image may differ (the table is in `compat/rule.rs`); under Hyper-V isolation it has its
//! own.

mod fix;
mod reported_breaks;
mod rule;
mod runtime;
mod served;

use std::fmt;
use std::ops::RangeInclusive;

pub use fix::Fix;
pub use rule::{CompatRule, Concern, VerdictOutcome};
pub use runtime::{
    ContainerRuntime, Containerd, IndexEntry, RuntimeChoice, architecture_name, choose, fetched,
};
pub use served::{ServedHosts, ServedRevisions, served_by};
use wincimg_common::Named;

use super::release::{self, ImageRange, Release, ReleaseKind};
use super::update::{Update, Updates};
use super::version::WindowsVersion;

/// True if a machine runs Windows Server or a client edition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WindowsEdition {
    /// Windows Server.
    Server,
    /// Windows 10 or 11.
    Client,
}

impl WindowsEdition {
    /// Reads the product name that a node or a daemon reports, such as `Windows Server 2019
    /// Datacenter`. Daemons of today call every client `Microsoft Windows Version 23H2 (OS Build
    /// …)`; `Microsoft Windows [Version …]` is what `ver` prints on servers too.
    pub fn from_product_name(name: &str) -> Option<Self> {
        const CLIENTS: [&str; 4] = [
            "Windows 10",
            "Windows 11",
            "Microsoft Windows Version ",
            "Microsoft Windows (",
        ];
        if name.contains("Windows Server") {
            Some(Self::Server)
        } else if CLIENTS.iter().any(|client| name.contains(client)) {
            Some(Self::Client)
        } else {
            None
        }
    }
}

/// Processor architecture of a host and its images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Named)]
#[named(rename_all = "lowercase")]
pub enum Architecture {
    /// 64-bit x86.
    #[default]
    Amd64,
    /// 64-bit Arm.
    Arm64,
}

/// Version and edition of Windows on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostBuild {
    /// Its build and revision.
    pub version: WindowsVersion,
    /// Its edition; clients have other rules than servers.
    pub edition: WindowsEdition,
    /// The architecture of images for it.
    pub architecture: Architecture,
}

impl HostBuild {
    /// A host of this version and product name; none if its edition decides what it runs, but
    /// neither the name nor the version reveals it.
    pub fn of_product(version: WindowsVersion, name: &str) -> Option<Self> {
        let taken = Self::new(version);
        let client = Self {
            edition: WindowsEdition::Client,
            ..taken
        };
        match WindowsEdition::from_product_name(name) {
            Some(edition) => Some(Self { edition, ..taken }),
            None => {
                let matters = is_client_without_process_isolation(client);
                (taken == client || !matters).then_some(taken)
            }
        }
    }

    /// A host of this version: a server, unless only clients have its build.
    pub fn new(version: WindowsVersion) -> Self {
        let edition = match release::from_build(version.build) {
            Some(release) if release.kind == ReleaseKind::Client => WindowsEdition::Client,
            _ => WindowsEdition::Server,
        };
        Self {
            version,
            edition,
            architecture: Architecture::Amd64,
        }
    }
}

impl fmt::Display for HostBuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.version.fmt(f)
    }
}

/// Isolation of a container from its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Named)]
#[named(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Isolation {
    /// It shares the host's kernel.
    Process,
    /// It runs in a small virtual machine with a kernel of its own.
    #[named(rename = "hyperv")]
    #[cfg_attr(feature = "clap", value(name = "hyperv"))]
    HyperV,
    /// No isolation: a Kubernetes `hostProcess` container is a program on the host.
    #[cfg_attr(feature = "clap", value(skip))]
    HostProcess,
}

/// Verdict on one image on one host, with the reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompatVerdict {
    /// The answer.
    pub outcome: VerdictOutcome,
    /// The rule behind it.
    pub rule: CompatRule,
    /// Fix, where there is one.
    pub fix: Option<Fix>,
    host: Option<HostBuild>,
    image: Option<WindowsVersion>,
}

const HOST_PROCESS: &str =
    "a host process container is a program on the host and requires no matching Windows version";

/// Decides whether an image starts on a host. A version that could not be read is `None`.
pub fn check(
    host: Option<HostBuild>,
    image: Option<WindowsVersion>,
    isolation: Isolation,
) -> CompatVerdict {
    let rule = match (isolation, host, image) {
        (_, Some(host), Some(image)) if is_reported_broken(host, image, isolation) => {
            CompatRule::HostReportedBroken
        }
        (Isolation::HostProcess, _, _) => CompatRule::HostProcess,
        (Isolation::Process, Some(host), Some(image)) => rule_for_process_isolation(host, image),
        (Isolation::HyperV, Some(host), Some(image)) if image.build <= host.version.build => {
            CompatRule::HypervOk
        }
        (Isolation::HyperV, Some(_), Some(_)) => CompatRule::HypervImageNewer,
        _ => CompatRule::UnknownBuild,
    };
    CompatVerdict {
        outcome: rule.outcome(),
        rule,
        fix: fix_for(rule, host, image),
        host,
        image,
    }
}

fn rule_for_process_isolation(host: HostBuild, image: WindowsVersion) -> CompatRule {
    let build = host.version.build;
    if is_client_without_process_isolation(host) {
        return CompatRule::ClientProcessIsolation;
    }
    match runs(build) {
        ImageRange::Range if image.build > build => CompatRule::ImageNewerThanHost,
        ImageRange::Range if image.build == build => same_build(host.version, image),
        ImageRange::Range => match release::oldest_for(build) {
            Some(oldest) if image.build >= oldest.build => CompatRule::DownlevelLtsc,
            _ => CompatRule::TooOldForHost,
        },
        _ if image.build != build => CompatRule::BuildMismatch,
        ImageRange::OwnRevision => match (host.version.revision, image.revision) {
            (Some(host), Some(image)) if host == image => CompatRule::RevisionMatch2016,
            (Some(_), Some(_)) => CompatRule::RevisionMismatch2016,
            _ => CompatRule::UnknownBuild,
        },
        ImageRange::OwnBuild => match abi_change(build) {
            None => same_build(host.version, image),
            Some(line) => match (host.version.revision, image.revision) {
                (Some(own), Some(revision)) if (own >= line) == (revision >= line) => {
                    same_build(host.version, image)
                }
                (Some(_), Some(_)) => CompatRule::Baseline202002,
                _ => CompatRule::UnknownBuild,
            },
        },
    }
}

/// The rule for versions of one build that share the user/kernel interface: documented to work,
/// whichever is newer.
fn same_build(host: WindowsVersion, image: WindowsVersion) -> CompatRule {
    if lags(host, image) {
        CompatRule::ImageNewerRevision
    } else {
        CompatRule::BuildMatch
    }
}

/// Returns true if a host lacks an update that an image of its build has. The images of a month may
/// have a greater revision than the month's update of the hosts.
fn lags(host: WindowsVersion, image: WindowsVersion) -> bool {
    let (Some(own), Some(revision)) = (host.revision, image.revision) else {
        return false;
    };
    let updates = Updates::global();
    let is_unlisted = updates
        .newest(image.build)
        .is_none_or(|newest| newest.version() < image);
    host.build == image.build
        && own < revision
        && (is_unlisted
            || updates.by_build(image.build).iter().any(|update| {
                let listed = update.version();
                listed > host && listed <= image
            }))
}

/// Returns true if an image is reported to fail on a host of another build.
fn is_reported_broken(host: HostBuild, image: WindowsVersion, isolation: Isolation) -> bool {
    isolation != Isolation::HostProcess
        && host.version.build != image.build
        && reported_breaks::find_reported(host, image, isolation).is_some()
}

/// Generation of a version within its build: equal generations work together under process
/// isolation, and a patched host has a higher one. None if it depends on an unknown revision.
pub fn generation(version: WindowsVersion) -> Option<u32> {
    revisions_alike(version).map(|revisions| *revisions.start())
}

/// The revisions of a version's generation.
pub fn revisions_alike(version: WindowsVersion) -> Option<RangeInclusive<u32>> {
    let own = version.revision;
    Some(match (runs(version.build), abi_change(version.build)) {
        (ImageRange::OwnRevision, _) => own?..=own?,
        (_, Some(line)) if own? >= line => line..=u32::MAX,
        (_, Some(line)) => 0..=line.saturating_sub(1),
        (_, None) => 0..=u32::MAX,
    })
}

/// Returns true if hosts of a build differ in the images that they run.
pub fn is_revision_relevant(build: u32) -> bool {
    generation(WindowsVersion::new(build, 0)) != generation(WindowsVersion::new(build, u32::MAX))
}

/// The oldest and the newest build that a host runs under process isolation, with any revision.
pub fn accepted_builds(host: u32) -> RangeInclusive<u32> {
    match runs(host) {
        ImageRange::Range => release::oldest_for(host).map_or(host, |release| release.build)..=host,
        ImageRange::OwnRevision | ImageRange::OwnBuild => host..=host,
    }
}

/// The images that a host runs. An unlisted build has the rule of the release before it, except for
/// the equal revision, which only Windows Server 2016 requires.
fn runs(build: u32) -> ImageRange {
    match release::up_to_build(build) {
        Some(release) if release.build == build || release.runs == ImageRange::Range => {
            release.runs
        }
        _ => ImageRange::OwnBuild,
    }
}

/// From Windows 11 on, client editions run process-isolated containers: their hosts are the first
/// clients that run a range of images.
fn is_client_without_process_isolation(host: HostBuild) -> bool {
    host.edition == WindowsEdition::Client
        && !release::all().iter().any(|release| {
            release.kind == ReleaseKind::Client
                && release.runs == ImageRange::Range
                && release.build <= host.version.build
        })
}

/// The first revision of a build that has the changed user/kernel interface of 2020-02-11.
fn abi_change(build: u32) -> Option<u32> {
    release::from_build(build)?.abi_change
}

fn fix_for(
    rule: CompatRule,
    host: Option<HostBuild>,
    image: Option<WindowsVersion>,
) -> Option<Fix> {
    if rule == CompatRule::HostProcess {
        return None;
    }
    let (Some(host), Some(image)) = (host, image) else {
        return Some(Fix::FindVersion);
    };
    match rule.outcome() {
        VerdictOutcome::Compatible => None,
        VerdictOutcome::Warning if rule == CompatRule::HostReportedBroken => Some(Fix::TryFirst),
        VerdictOutcome::Warning => Some(patch(image)),
        VerdictOutcome::Unknown => Some(Fix::FindVersion),
        VerdictOutcome::Incompatible => {
            let hyperv_would = image.build <= host.version.build;
            let update = update_for(image);
            // Server 2016 requires exactly the image's revision, which may be no update's.
            let patchable = match runs(image.build) {
                ImageRange::OwnRevision => update.is_some_and(|update| update.version() == image),
                _ => update.is_some() || Updates::global().first_reaching(image).is_none(),
            };
            Some(match rule {
                CompatRule::ClientProcessIsolation if hyperv_would => Fix::UseHyperV,
                CompatRule::ClientProcessIsolation | CompatRule::HypervImageNewer
                    if base_release_for(host.version.build).is_none() =>
                {
                    Fix::RebuildForHyperV { host }
                }
                CompatRule::RevisionMismatch2016 | CompatRule::Baseline202002
                    if host.version < image && patchable =>
                {
                    patch(image)
                }
                _ => Fix::RebuildImage {
                    host,
                    or_hyperv: hyperv_would,
                },
            })
        }
    }
}

/// The update to an image's revision that keeps the host able to run the image.
fn update_for(image: WindowsVersion) -> Option<&'static Update> {
    let own = generation(image);
    Updates::global().all_reaching(image).find(|update| {
        runs(image.build) == ImageRange::OwnRevision || generation(update.version()) == own
    })
}

/// Update of a host to an image's revision.
fn patch(image: WindowsVersion) -> Fix {
    let update = update_for(image);
    Fix::PatchHost {
        to: update.map_or(image, Update::version),
        kb: update.and_then(|update| update.kb),
    }
}

/// The release whose base images fit a host: its own, or for a client the last earlier one whose
/// images are not reported to fail on it.
pub fn base_release_for(build: u32) -> Option<&'static Release> {
    let own = release::from_build(build).filter(|release| release.base_tag.is_some());
    let older = || {
        let builds = accepted_builds(build);
        let candidates = release::all().iter().rev().filter(move |release| {
            release.base_tag.is_some() && release.build < build && builds.contains(&release.build)
        });
        let host = HostBuild::new(WindowsVersion::from_build(build));
        let is_reported = |release: &&Release| {
            let image = WindowsVersion::from_build(release.build);
            is_reported_broken(host, image, Isolation::Process)
        };
        let mut unreported = candidates.clone().filter(|release| !is_reported(release));
        unreported.next().or_else(|| candidates.clone().next())
    };
    own.or_else(older)
}

/// The floating tag whose newest image starts on a host; none if the host is older.
pub(crate) fn floating_tag_for(host: HostBuild) -> Option<&'static str> {
    let release = base_release_for(host.version.build)?;
    let newest = Updates::global().newest_version(release.build);
    let verdict = check(Some(host), Some(newest), Isolation::Process);
    (verdict.outcome == VerdictOutcome::Compatible)
        .then_some(release.base_tag)
        .flatten()
}

impl CompatVerdict {
    /// Returns true if the image starts, with or without a warning.
    pub fn is_startable(&self) -> bool {
        self.outcome <= VerdictOutcome::Warning
    }

    /// Reason for operators: both versions and the rule.
    pub fn reason(&self) -> String {
        let host = self.host.map(|host| host.to_string());
        self.reason_for(&host.unwrap_or_default())
    }

    /// The reason with another name for the host, such as one for all hosts with this verdict.
    pub fn reason_for(&self, host: &str) -> String {
        if self.rule == CompatRule::HostProcess {
            return HOST_PROCESS.to_owned();
        }
        let (Some(HostBuild { version, .. }), Some(image)) = (self.host, self.image) else {
            return self.unknown_version().to_owned();
        };
        let build = version.build;
        let of = release::name_of(image.build);
        match self.rule {
            CompatRule::BuildMatch => format!("host {host} and image {image} have the same build"),
            CompatRule::ImageNewerRevision => {
                let reports = match self.reports(&[Isolation::Process]) {
                    Some(entry) => format!("and {entry}"),
                    None => "which is documented to work, but is reported to fail on some updates"
                        .to_owned(),
                };
                format!("image {image} is newer than host {host} of the same build, {reports}")
            }
            CompatRule::HostReportedBroken => {
                let reports = self.reports(&[Isolation::HyperV, Isolation::Process]);
                let reports = reports.map(ToString::to_string).unwrap_or_default();
                format!("host {host} should run image {image} by Windows' rules, but {reports}")
            }
            CompatRule::BuildMismatch => {
                format!("host {host} runs only images of its own build; image {image} is of {of}")
            }
            CompatRule::RevisionMatch2016 => {
                format!("host {host} and image {image} have the same revision")
            }
            CompatRule::RevisionMismatch2016 => format!(
                "Windows Server 2016 runs only images of its own revision: host {host}, image {image}"
            ),
            CompatRule::Baseline202002 => across_baseline(host, version, image),
            CompatRule::DownlevelLtsc => format!(
                "host {host} runs images from {} up to its own build; image {image} is in that range",
                oldest_accepted(build)
            ),
            CompatRule::ImageNewerThanHost => {
                format!("image {image} ({of}) is newer than host {host}")
            }
            CompatRule::TooOldForHost => format!(
                "host {host} runs images from {} up to its own build; image {image} ({of}) is older",
                oldest_accepted(build)
            ),
            CompatRule::HypervOk => format!(
                "under Hyper-V isolation host {host} runs image {image}, whose build is not newer"
            ),
            CompatRule::HypervImageNewer => format!(
                "even under Hyper-V isolation host {host} cannot run image {image} ({of}), which is newer"
            ),
            CompatRule::ClientProcessIsolation => format!(
                "host {host} is a client with Windows 10, which does not run process-isolated \
                 containers in production; image {image} would need Hyper-V isolation"
            ),
            CompatRule::HostProcess => HOST_PROCESS.to_owned(),
            CompatRule::UnknownBuild => unknown_revision(host, version, image),
        }
    }

    /// The reason of a verdict without a version of the host or the image.
    fn unknown_version(&self) -> &'static str {
        match (self.host, self.image) {
            (None, Some(_)) => "the host's Windows version is unknown",
            (Some(_), None) => "the image's Windows version is unknown",
            _ => "the Windows versions of the host and the image are unknown",
        }
    }

    /// Reports of failures under the first of these isolations that has some.
    fn reports(&self, isolations: &[Isolation]) -> Option<&'static reported_breaks::ReportedBreak> {
        let (host, image) = (self.host?, self.image?);
        let mut isolations = isolations.iter();
        isolations.find_map(|isolation| reported_breaks::find_reported(host, image, *isolation))
    }
}

/// Reason of a host and an image with different user/kernel interfaces.
fn across_baseline(host: &str, version: WindowsVersion, image: WindowsVersion) -> String {
    let (older, newer) = if version < image {
        ("host", "image")
    } else {
        ("image", "host")
    };
    let line = WindowsVersion {
        build: version.build,
        revision: abi_change(version.build),
    };
    format!(
        "host {host} and image {image} are on different sides of the security update of \
         2020-02-11 ({line}), which changed the user/kernel interface: the {newer} has it, \
         the {older} does not"
    )
}

/// Reason of a host and an image of which a decisive revision is unknown.
fn unknown_revision(host: &str, version: WindowsVersion, image: WindowsVersion) -> String {
    let side = match (version.revision, image.revision) {
        (None, None) => format!("the revisions of host {host} and image {image} are"),
        (None, _) => format!("the revision of host {host} is"),
        _ => format!("the revision of image {image} is"),
    };
    format!("{side} unknown, but decisive on build {}", version.build)
}

fn oldest_accepted(build: u32) -> String {
    let oldest = release::oldest_for(build).map_or(build, |release| release.build);
    release::name_of(oldest)
}

#[cfg(test)]
mod tests;
