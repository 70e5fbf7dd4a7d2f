//! What a fleet comes to, image by image and build by build.

use serde::Serialize;
use wincimg_common::diagnose::{Blame, BoxError, error_chain};

use super::FleetEntry;
use super::tag_contents::Verdict;
use crate::delivery::DeliveryReport;
use crate::plans::TargetHost;
use crate::publication::TaggedImage;

/// What became of a fleet, or would become of it.
#[derive(Debug, Clone, Serialize)]
pub struct FleetReport {
    /// True if every image is there for all builds of its nodes.
    pub complete: bool,
    /// How many of what.
    pub summary: FleetSummary,
    /// The file.
    pub file: String,
    /// The part of it that this is about.
    pub shard: Option<String>,
    /// The images, in the file's order.
    pub images: Vec<ImageReport>,
    /// Nodes that do not tell their version of Windows.
    pub left_out: Vec<String>,
}

/// How many images for builds there are of each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FleetSummary {
    /// There as they should be.
    pub current: usize,
    /// Made in this run.
    pub built: usize,
    /// Not there.
    pub missing: usize,
    /// There, and to be made anew.
    pub outdated: usize,
    /// Could not be made, or not even be asked for.
    pub failed: usize,
}

/// One image of the fleet.
#[derive(Debug, Clone, Serialize)]
pub struct ImageReport {
    /// The tag of its index; what it is made from where nobody knows its name.
    pub reference: String,
    /// What it is made from, as it stands in the file.
    pub from: String,
    /// The line where it stands.
    pub line: usize,
    /// Each build of Windows among its nodes.
    pub builds: Vec<BuildReport>,
    /// What is wrong with all of it.
    pub problem: Option<ReportedError>,
}

/// An image for one build of Windows.
#[derive(Debug, Clone, Serialize)]
pub struct BuildReport {
    /// The build; none where one image is for any.
    pub host_build: Option<String>,
    /// The nodes that run it.
    pub nodes: Vec<String>,
    /// How it is there.
    pub state: FleetImageState,
    /// Why it was, or has to be, made.
    pub reason: Option<String>,
    /// The image, by the tag of its version.
    pub image: Option<String>,
    /// Its digest, where it is there.
    pub digest: Option<String>,
    /// The version of Windows that it has or is to have.
    pub os_version: Option<String>,
    /// What kept it from being made.
    pub problem: Option<ReportedError>,
}

/// How an image is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FleetImageState {
    /// As it should be.
    Current,
    /// Made in this run.
    Built,
    /// Not at all.
    Missing,
    /// On another base or of other files than it should be.
    Outdated,
    /// It could not be made, or not even be asked for.
    Failed,
}

impl FleetImageState {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Built => "built",
            Self::Missing => "missing",
            Self::Outdated => "outdated",
            Self::Failed => "failed",
        }
    }

    /// Returns true if hosts find an image as it should be.
    pub fn is_present(self) -> bool {
        matches!(self, Self::Current | Self::Built)
    }
}

/// What went wrong, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportedError {
    /// What, with its causes.
    pub problem: String,
    /// The next command to type, or what to change.
    pub hint: Option<String>,
    /// Who has to do something about it.
    #[serde(skip)]
    pub blame: Blame,
}

impl<E: Into<BoxError>> From<E> for ReportedError {
    fn from(error: E) -> Self {
        let error: BoxError = error.into();
        let diagnosis = error.diagnosis();
        Self {
            problem: error_chain(error.as_ref()),
            hint: diagnosis.hint,
            blame: diagnosis.blame,
        }
    }
}

impl FleetReport {
    pub(super) fn new(file: String, images: Vec<ImageReport>, left_out: Vec<String>) -> Self {
        let mut summary = FleetSummary::default();
        for image in &images {
            for build in &image.builds {
                *match build.state {
                    FleetImageState::Current => &mut summary.current,
                    FleetImageState::Built => &mut summary.built,
                    FleetImageState::Missing => &mut summary.missing,
                    FleetImageState::Outdated => &mut summary.outdated,
                    FleetImageState::Failed => &mut summary.failed,
                } += 1;
            }
            if image.builds.is_empty() && image.problem.is_some() {
                summary.failed += 1;
            }
        }
        Self {
            complete: summary.missing + summary.outdated + summary.failed == 0,
            summary,
            file,
            shard: None,
            images,
            left_out,
        }
    }

    /// Returns true if nothing at all could be found out, because nobody could be asked.
    pub fn is_unreachable(&self) -> bool {
        let is_blind = |trouble: &ReportedError| trouble.blame == Blame::Circumstances;
        let mut images = self.images.iter();
        !self.images.is_empty() && images.all(|image| image.problem.as_ref().is_some_and(is_blind))
    }
}

impl ImageReport {
    /// An image of which nothing is known yet.
    pub(super) fn new(entry: &FleetEntry) -> Self {
        Self {
            reference: entry.label(),
            from: entry.from.clone(),
            line: entry.line,
            builds: Vec::new(),
            problem: None,
        }
    }

    /// Something is wrong with all of it that is not there already.
    pub(super) fn fail(&mut self, trouble: ReportedError) {
        for build in &mut self.builds {
            if !build.state.is_present() {
                build.state = FleetImageState::Failed;
            }
        }
        self.problem = Some(trouble);
    }

    /// Notes how an image is there for each of its hosts.
    pub(super) fn record_status(&mut self, image: &TaggedImage<'_>, tag: &str, verdict: &Verdict) {
        for planned in &image.for_hosts {
            let build = self.for_host(planned.host.as_ref());
            build.state = verdict.state;
            build.reason.clone_from(&verdict.reason);
            build.digest = verdict.digest.as_ref().map(ToString::to_string);
            build.image = Some(tag.to_owned());
            build.os_version = planned.base.version_text();
        }
    }

    /// Notes what was made.
    pub(super) fn record_built(&mut self, delivered: DeliveryReport) {
        for image in delivered.images {
            let builds = self.builds.iter_mut();
            for build in builds.filter(|build| build.image.as_ref() == Some(&image.reference)) {
                build.state = FleetImageState::Built;
                build.digest = Some(image.digest.clone());
            }
        }
    }

    /// What is known of a host's image.
    pub(super) fn for_host(&mut self, host: Option<&TargetHost>) -> &mut BuildReport {
        let name = host.map(|host| host.build.to_string());
        let known = self
            .builds
            .iter()
            .position(|build| build.host_build == name);
        let place = known.unwrap_or_else(|| {
            self.builds.push(BuildReport {
                host_build: name,
                nodes: host.map(|host| host.nodes.clone()).unwrap_or_default(),
                state: FleetImageState::Missing,
                reason: None,
                image: None,
                digest: None,
                os_version: None,
                problem: None,
            });
            self.builds.len() - 1
        });
        &mut self.builds[place]
    }
}
