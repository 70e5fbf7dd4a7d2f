//! Will this image start on this host? The rules of Windows, as a table and one function.
//!
//! Under process isolation a container shares the host's kernel, so the host's build decides how
//! much an image may differ (see [`ERAS`]); under Hyper-V isolation it brings its own.

use std::fmt;

use super::release::{self, Release, ReleaseKind};
use super::update::{Kb, Update, Updates};
use super::version::WindowsVersion;

/// Whether a machine runs Windows Server or a client edition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Edition {
    /// Windows Server.
    Server,
    /// Windows 10 or 11.
    Client,
}

impl Edition {
    /// Reads the product name that a node reports, such as `Windows Server 2019 Datacenter`.
    pub fn of_product(name: &str) -> Option<Self> {
        if name.contains("Windows Server") {
            Some(Self::Server)
        } else if name.contains("Windows 10") || name.contains("Windows 11") {
            Some(Self::Client)
        } else {
            None
        }
    }
}

/// The side of the host: which version of Windows, and which edition of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostBuild {
    /// Its build and revision.
    pub version: WindowsVersion,
    /// A client edition follows rules of its own.
    pub edition: Edition,
}

impl HostBuild {
    /// A host of this version, taken for a server unless only clients have its build.
    pub fn new(version: WindowsVersion) -> Self {
        let edition = match release::of_build(version.build) {
            Some(release) if release.kind == ReleaseKind::Client => Edition::Client,
            _ => Edition::Server,
        };
        Self { version, edition }
    }
}

impl fmt::Display for HostBuild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.version.fmt(f)
    }
}

/// How a container is kept apart from its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Isolation {
    /// It shares the host's kernel.
    Process,
    /// It runs in a small virtual machine with a kernel of its own.
    HyperV,
}

impl Isolation {
    /// The word on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Process => "process",
            Self::HyperV => "hyperv",
        }
    }
}

/// The answer in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// It starts.
    Compatible,
    /// It starts, but someone should look.
    Warning,
    /// It does not start.
    Incompatible,
    /// Nobody can tell from what is known.
    Unknown,
}

/// Which rule decided; the names are part of the command line's contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Rule {
    /// Host and image have the same build.
    BuildMatch,
    /// This host takes only its own build.
    BuildMismatch,
    /// Server 2016, and the revisions are equal.
    RevisionMatch2016,
    /// Server 2016 takes only its own revision.
    RevisionMismatch2016,
    /// Host and image are on different sides of the security update of 2020-02-11.
    Baseline202002,
    /// An older image within the range that the host accepts.
    DownlevelLtsc,
    /// The image is newer than its host.
    ImageNewerThanHost,
    /// The image is older than the range that the host accepts.
    TooOldForHost,
    /// Hyper-V isolation, and the image is not newer.
    HypervOk,
    /// Hyper-V isolation, but the image is newer.
    HypervImageNewer,
    /// Client editions before Windows 11 do not run process-isolated containers in production.
    ClientProcessIsolation,
    /// A version that decides is not known.
    UnknownBuild,
}

impl Outcome {
    /// The word in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Compatible => "compatible",
            Self::Warning => "warning",
            Self::Incompatible => "incompatible",
            Self::Unknown => "unknown",
        }
    }
}

impl Rule {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::BuildMatch => "build-match",
            Self::BuildMismatch => "build-mismatch",
            Self::RevisionMatch2016 => "revision-match-2016",
            Self::RevisionMismatch2016 => "revision-mismatch-2016",
            Self::Baseline202002 => "baseline-2020-02",
            Self::DownlevelLtsc => "downlevel-ltsc",
            Self::ImageNewerThanHost => "image-newer-than-host",
            Self::TooOldForHost => "too-old-for-host",
            Self::HypervOk => "hyperv-ok",
            Self::HypervImageNewer => "hyperv-image-newer",
            Self::ClientProcessIsolation => "client-process-isolation",
            Self::UnknownBuild => "unknown-build",
        }
    }

    /// What following or breaking this rule means.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::BuildMatch | Self::RevisionMatch2016 | Self::DownlevelLtsc | Self::HypervOk => {
                Outcome::Compatible
            }
            Self::BuildMismatch
            | Self::RevisionMismatch2016
            | Self::Baseline202002
            | Self::ImageNewerThanHost
            | Self::TooOldForHost
            | Self::HypervImageNewer
            | Self::ClientProcessIsolation => Outcome::Incompatible,
            Self::UnknownBuild => Outcome::Unknown,
        }
    }
}

/// The next thing to do about a verdict that is not green.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fix {
    /// Install updates on the host.
    PatchHost {
        /// The revision to reach.
        to: WindowsVersion,
        /// The first update that gets there, where one is known.
        kb: Option<Kb>,
    },
    /// Build the image again on a base that fits the host.
    RebuildImage {
        /// The host it is for.
        host: HostBuild,
        /// Whether Hyper-V isolation would run the image as it is.
        or_hyperv: bool,
    },
    /// Ask for Hyper-V isolation.
    UseHyperV,
    /// Find out the version that is missing.
    FindVersion,
}

/// What was decided about one image on one host, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// The answer.
    pub outcome: Outcome,
    /// The rule behind it.
    pub rule: Rule,
    /// What to do, where there is something to do.
    pub fix: Option<Fix>,
    host: Option<HostBuild>,
    image: Option<WindowsVersion>,
}

/// How much an image may differ from the host under process isolation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Accepts {
    /// The same build and the same revision.
    SameRevision,
    /// The same build.
    SameBuild,
    /// From the last stable release before the host up to the host.
    DownLevel,
}

/// What hosts accept, by the first build of each era, newest first.
const ERAS: [(u32, Accepts); 4] = [
    (20348, Accepts::DownLevel),
    (14394, Accepts::SameBuild),
    (14393, Accepts::SameRevision),
    (0, Accepts::SameBuild),
];

/// Windows 11's first build: from here on client editions run process-isolated containers.
const FIRST_CLIENT_WITH_PROCESS_ISOLATION: u32 = 22000;

/// The first revision of each build that has the changed user/kernel interface of 2020-02-11.
const LINE_OF_2020_02: [(u32, u32); 4] = [(14393, 3504), (17763, 1039), (18362, 657), (18363, 657)];

/// Decides whether an image starts on a host. A version that could not be read is `None`.
pub fn judge(
    host: Option<HostBuild>,
    image: Option<WindowsVersion>,
    isolation: Isolation,
) -> Verdict {
    let rule = match (host, image) {
        (Some(host), Some(image)) => match isolation {
            Isolation::Process => rule_for_process_isolation(host, image),
            Isolation::HyperV if image.build <= host.version.build => Rule::HypervOk,
            Isolation::HyperV => Rule::HypervImageNewer,
        },
        _ => Rule::UnknownBuild,
    };
    Verdict {
        outcome: rule.outcome(),
        rule,
        fix: fix_for(rule, host, image),
        host,
        image,
    }
}

fn rule_for_process_isolation(host: HostBuild, image: WindowsVersion) -> Rule {
    let build = host.version.build;
    if host.edition == Edition::Client && build < FIRST_CLIENT_WITH_PROCESS_ISOLATION {
        return Rule::ClientProcessIsolation;
    }
    match accepts(build) {
        Accepts::DownLevel if image.build > build => Rule::ImageNewerThanHost,
        Accepts::DownLevel if image.build == build => Rule::BuildMatch,
        Accepts::DownLevel => match release::stable_abi_before(build) {
            Some(oldest) if image.build >= oldest.build => Rule::DownlevelLtsc,
            _ => Rule::TooOldForHost,
        },
        _ if image.build != build => Rule::BuildMismatch,
        Accepts::SameRevision => match (host.version.revision, image.revision) {
            (Some(host), Some(image)) if host == image => Rule::RevisionMatch2016,
            (Some(_), Some(_)) => Rule::RevisionMismatch2016,
            _ => Rule::UnknownBuild,
        },
        Accepts::SameBuild => match line_of_2020_02(build) {
            None => Rule::BuildMatch,
            Some(line) => match (host.version.revision, image.revision) {
                (Some(host), Some(image)) if (host >= line) == (image >= line) => Rule::BuildMatch,
                (Some(_), Some(_)) => Rule::Baseline202002,
                _ => Rule::UnknownBuild,
            },
        },
    }
}

fn accepts(build: u32) -> Accepts {
    ERAS.iter()
        .find(|(first, _)| build >= *first)
        .map_or(Accepts::SameBuild, |(_, accepts)| *accepts)
}

fn line_of_2020_02(build: u32) -> Option<u32> {
    LINE_OF_2020_02
        .iter()
        .find(|(listed, _)| *listed == build)
        .map(|(_, revision)| *revision)
}

fn fix_for(rule: Rule, host: Option<HostBuild>, image: Option<WindowsVersion>) -> Option<Fix> {
    let (Some(host), Some(image)) = (host, image) else {
        return Some(Fix::FindVersion);
    };
    match rule.outcome() {
        Outcome::Compatible | Outcome::Warning => None,
        Outcome::Unknown => Some(Fix::FindVersion),
        Outcome::Incompatible => {
            let hyperv_would = image.build <= host.version.build;
            let update = Updates::embedded().reaching(image);
            // Server 2016 takes no revision but the image's, which no update may bring.
            let patchable = accepts(image.build) != Accepts::SameRevision
                || update.is_some_and(|update| update.version() == image);
            Some(match rule {
                Rule::ClientProcessIsolation if hyperv_would => Fix::UseHyperV,
                Rule::RevisionMismatch2016 | Rule::Baseline202002
                    if host.version < image && patchable =>
                {
                    Fix::PatchHost {
                        to: update.map_or(image, Update::version),
                        kb: update.and_then(|update| update.kb),
                    }
                }
                _ => Fix::RebuildImage {
                    host,
                    or_hyperv: hyperv_would,
                },
            })
        }
    }
}

/// The release whose base images fit a host that may have none of its own, as a client has not.
pub fn base_release_for(build: u32) -> Option<&'static Release> {
    let own = release::of_build(build).filter(|release| release.base_tag.is_some());
    own.or_else(|| {
        (accepts(build) == Accepts::DownLevel)
            .then(|| release::stable_abi_before(build))
            .flatten()
    })
}

/// The floating tag whose newest image starts on a host: none where the host is too far behind it.
pub fn floating_tag_for(host: HostBuild) -> Option<&'static str> {
    let release = base_release_for(host.version.build)?;
    let newest = Updates::embedded()
        .newest(release.build)
        .map_or(WindowsVersion::of_build(release.build), Update::version);
    let verdict = judge(Some(host), Some(newest), Isolation::Process);
    (verdict.outcome == Outcome::Compatible)
        .then_some(release.base_tag.as_deref())
        .flatten()
}

impl Verdict {
    /// Why, in the words of an operator: both versions and the rule.
    pub fn reason(&self) -> String {
        let (Some(host), Some(image)) = (self.host, self.image) else {
            let missing = match (self.host, self.image) {
                (None, Some(_)) => "the host's Windows version is not known",
                (Some(_), None) => "the image's Windows version is not known",
                _ => "neither the host's nor the image's Windows version is known",
            };
            return missing.to_owned();
        };
        let build = host.version.build;
        match self.rule {
            Rule::BuildMatch => format!("host {host} and image {image} have the same build"),
            Rule::BuildMismatch => format!(
                "host {host} runs only images of its own build; image {image} is of {}",
                release::name_of(image.build)
            ),
            Rule::RevisionMatch2016 => {
                format!("host {host} and image {image} have the same revision")
            }
            Rule::RevisionMismatch2016 => format!(
                "Windows Server 2016 runs only images of its own revision: host {host}, image {image}"
            ),
            Rule::Baseline202002 => {
                let (older, newer) = if host.version < image {
                    ("host", "image")
                } else {
                    ("image", "host")
                };
                let line = WindowsVersion {
                    build,
                    revision: line_of_2020_02(build),
                };
                format!(
                    "host {host} and image {image} are on different sides of the security update of \
                     2020-02-11 ({line}), which changed the user/kernel interface: the {newer} has it, \
                     the {older} has not"
                )
            }
            Rule::DownlevelLtsc => format!(
                "host {host} runs images from {} up to its own build; image {image} is in that range",
                oldest_accepted(build)
            ),
            Rule::ImageNewerThanHost => format!(
                "image {image} ({}) is newer than host {host}",
                release::name_of(image.build)
            ),
            Rule::TooOldForHost => format!(
                "host {host} runs images from {} up to its own build; image {image} ({}) is older",
                oldest_accepted(build),
                release::name_of(image.build)
            ),
            Rule::HypervOk => {
                format!(
                    "under Hyper-V isolation host {host} runs image {image}, which is not newer"
                )
            }
            Rule::HypervImageNewer => format!(
                "even under Hyper-V isolation host {host} cannot run image {image} ({}), which is newer",
                release::name_of(image.build)
            ),
            Rule::ClientProcessIsolation => format!(
                "host {host} is a client ({}), which does not run process-isolated containers in \
                 production; image {image} would need Hyper-V isolation",
                release::name_of(build)
            ),
            Rule::UnknownBuild => {
                let side = match (host.version.revision, image.revision) {
                    (None, None) => format!("the revisions of host {host} and image {image} are"),
                    (None, _) => format!("the revision of host {host} is"),
                    _ => format!("the revision of image {image} is"),
                };
                format!("{side} not known, and on build {build} it decides")
            }
        }
    }
}

fn oldest_accepted(build: u32) -> String {
    let oldest = release::stable_abi_before(build).map_or(build, |release| release.build);
    release::name_of(oldest)
}

impl fmt::Display for Fix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PatchHost { to, kb: Some(kb) } => write!(
                f,
                "bring the host to {to} with {kb}: wincimg hotfix fetch {kb} --output ./hotfix"
            ),
            Self::PatchHost { to, kb: None } => write!(
                f,
                "bring the host to {to} with the newest cumulative update of its build"
            ),
            Self::RebuildImage { host, or_hyperv } => {
                f.write_str("build the image again on a base that fits the host: ")?;
                let exact = host.version.revision.is_some_and(|_| {
                    base_release_for(host.version.build)
                        .is_some_and(|release| release.build == host.version.build)
                });
                match (exact, floating_tag_for(*host)) {
                    (true, Some(tag)) => write!(f, "tag {} or {tag}", host.version.os_version())?,
                    (true, None) => write!(f, "tag {}", host.version.os_version())?,
                    (false, Some(tag)) => write!(f, "tag {tag}")?,
                    (false, None) => write!(f, "one of build {}", host.version.build)?,
                }
                if *or_hyperv {
                    f.write_str("; or run it with Hyper-V isolation")?;
                }
                Ok(())
            }
            Self::UseHyperV => f.write_str("run it with Hyper-V isolation"),
            Self::FindVersion => f.write_str(
                "give the full version, such as 17763.973: a node has it in \
                 status.nodeInfo.kernelVersion, an image in its config's os.version",
            ),
        }
    }
}

#[cfg(test)]
mod tests;
