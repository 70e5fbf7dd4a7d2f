//! The rules of compatibility, their names in reports, and their outcomes. The names are part of
//! the command line's contract.

use wincimg_common::Named;

/// Outcome of a check, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Named)]
#[named(rename_all = "lowercase")]
pub enum VerdictOutcome {
    /// It starts.
    Compatible,
    /// It starts, but should be checked.
    Warning,
    /// Unknown.
    Unknown,
    /// It does not start.
    Incompatible,
}

/// The rule that decided about the versions of host and image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Named)]
#[named(rename_all = "kebab-case")]
pub enum CompatRule {
    /// Host and image have the same build.
    BuildMatch,
    /// The same build, but the host lacks updates that the image has.
    ImageNewerRevision,
    /// The rules allow it, but it is reported to fail.
    HostReportedBroken,
    /// This host runs only its own build.
    BuildMismatch,
    /// Server 2016 and equal revisions.
    #[named(rename = "revision-match-2016")]
    RevisionMatch2016,
    /// Server 2016 runs only its own revision.
    #[named(rename = "revision-mismatch-2016")]
    RevisionMismatch2016,
    /// Host and image are on different sides of the security update of 2020-02-11.
    #[named(rename = "baseline-2020-02")]
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
    /// A host process container: a program on the host, with any base.
    HostProcess,
    /// The outcome depends on an unknown version.
    UnknownBuild,
}

/// A problem or warning about a container other than the versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Named)]
#[named(rename_all = "kebab-case")]
pub enum Concern {
    /// The image is an index, and the host's runtime selects none of its entries.
    NoMatchingPlatform,
    /// The image would start, but versions of the host's runtime refuse to pull it.
    FilteredAtPull,
    /// The image is for another system.
    NotWindows,
    /// The index lists a missing image.
    MissingManifest,
    /// The index states another platform than the image.
    ContradictingEntry,
    /// Host process containers require containerd 1.6 or newer.
    HostProcessUnsupported,
    /// The host's runtime does not know the handler of the workload's runtime class.
    HandlerUnsupported,
    /// The pod sets a field that the API server refuses for its system.
    ForbiddenField,
    /// A container of the workload has no image.
    NoImage,
    /// No node matches the workload.
    NoHostSelected,
    /// The virtual machine of the workload may not run the image.
    PauseImage,
    /// Nothing keeps the workload off nodes that do not run Windows.
    NoWindowsSelector,
    /// Nothing keeps workloads for Linux off nodes that run Windows.
    NoLinuxSelector,
    /// The image is based on a release without further updates.
    EndOfSupport,
    /// The kubelet cannot give the pod's token to its user.
    TokenOwner,
    /// The kubelet may time out before the image is pulled.
    PullDeadline,
    /// The pod's grace period is longer than the image's shutdown timeout.
    GracePeriod,
    /// The tag may point to another image later.
    FloatingTag,
}

impl CompatRule {
    /// The outcome of this rule.
    pub fn outcome(self) -> VerdictOutcome {
        match self {
            Self::BuildMatch
            | Self::RevisionMatch2016
            | Self::DownlevelLtsc
            | Self::HypervOk
            | Self::HostProcess => VerdictOutcome::Compatible,
            Self::BuildMismatch
            | Self::RevisionMismatch2016
            | Self::Baseline202002
            | Self::ImageNewerThanHost
            | Self::TooOldForHost
            | Self::HypervImageNewer
            | Self::ClientProcessIsolation => VerdictOutcome::Incompatible,
            Self::ImageNewerRevision | Self::HostReportedBroken => VerdictOutcome::Warning,
            Self::UnknownBuild => VerdictOutcome::Unknown,
        }
    }
}

impl Concern {
    /// The outcome of this concern.
    pub fn outcome(self) -> VerdictOutcome {
        match self {
            Self::NoMatchingPlatform
            | Self::FilteredAtPull
            | Self::NotWindows
            | Self::MissingManifest
            | Self::HostProcessUnsupported
            | Self::HandlerUnsupported
            | Self::ForbiddenField => VerdictOutcome::Incompatible,
            Self::ContradictingEntry
            | Self::NoImage
            | Self::NoHostSelected
            | Self::PauseImage
            | Self::NoWindowsSelector
            | Self::NoLinuxSelector
            | Self::EndOfSupport
            | Self::TokenOwner
            | Self::PullDeadline
            | Self::GracePeriod
            | Self::FloatingTag => VerdictOutcome::Warning,
        }
    }
}
