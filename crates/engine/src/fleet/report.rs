//! Report of a fleet, by image and build.

use serde::Serialize;
use wincimg_common::Named;
use wincimg_common::diagnose::{Blame, BoxError, error_chain};
use wincimg_windows::missing_fixes::MissingFixes;

use super::FleetEntry;
use super::tag_contents::Verdict;
use crate::delivery::DeliveryReport;
use crate::plans::TargetHost;
use crate::publication::TaggedImage;
use crate::unserved::UnservedHost;

/// Report of a fleet.
#[derive(Debug, Clone, Serialize)]
pub struct FleetReport {
    /// True if every image exists for all builds of its nodes.
    pub complete: bool,
    /// Numbers of images by state.
    pub summary: FleetSummary,
    /// The file.
    pub file: String,
    /// The shard that was handled.
    pub shard: Option<String>,
    /// The images, in the file's order.
    pub images: Vec<ImageReport>,
    /// Nodes without a known version of Windows.
    pub left_out: Vec<String>,
    /// Security fixes that the images lack, if a table of them is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing_fixes: Option<MissingFixes>,
}

/// Numbers of images and builds by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FleetSummary {
    /// Up to date.
    pub current: usize,
    /// Built in this run.
    pub built: usize,
    /// Missing.
    pub missing: usize,
    /// To be built again.
    pub outdated: usize,
    /// Failed to build, or to be checked.
    pub failed: usize,
}

/// One image of the fleet.
#[derive(Debug, Clone, Serialize)]
pub struct ImageReport {
    /// Reference of its index; its source if the name is unknown.
    pub reference: String,
    /// Its source, as written in the file.
    pub from: String,
    /// Its line in the file.
    pub line: usize,
    /// Each build of Windows among its nodes.
    pub builds: Vec<BuildReport>,
    /// Error that concerns all of it.
    pub problem: Option<ReportedError>,
    /// Warnings about its nodes, such as a selector that matches none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// An image for one build of Windows.
#[derive(Debug, Clone, Default, Serialize)]
pub struct BuildReport {
    /// The build; none if one image serves any.
    pub host_build: Option<String>,
    /// The nodes that run it.
    pub nodes: Vec<String>,
    /// State of the image.
    pub state: FleetImageState,
    /// Reason for building it.
    pub reason: Option<String>,
    /// The image, with the tag of its version.
    pub image: Option<String>,
    /// Its digest, if it exists.
    pub digest: Option<String>,
    /// Its current or planned version of Windows.
    pub os_version: Option<String>,
    /// Error of its build.
    pub problem: Option<ReportedError>,
    /// Warnings about the image that its nodes select from the tag.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// State of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Named)]
#[serde(rename_all = "lowercase")]
pub enum FleetImageState {
    /// Up to date.
    Current,
    /// Built in this run.
    Built,
    /// Missing.
    #[default]
    Missing,
    /// On another base or of other inputs than now.
    Outdated,
    /// Failed to build, or to be checked.
    Failed,
}

impl BuildReport {
    /// Records what a tag has of the image.
    pub(super) fn record(&mut self, verdict: &Verdict) {
        self.state = verdict.state;
        self.reason.clone_from(&verdict.reason);
        self.digest = verdict.digest.as_ref().map(ToString::to_string);
    }
}

impl FleetImageState {
    /// Returns true if the image exists and is up to date.
    pub fn is_present(self) -> bool {
        matches!(self, Self::Current | Self::Built)
    }
}

/// An error with its hint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReportedError {
    /// Stable identifier for scripts, as in `--format json` of a failure.
    pub code: &'static str,
    /// The error with its causes.
    pub problem: String,
    /// The next command to type, or what to change.
    pub hint: Option<String>,
    /// The party that has to act on it.
    #[serde(skip)]
    pub blame: Blame,
}

impl<E: Into<BoxError>> From<E> for ReportedError {
    fn from(error: E) -> Self {
        let error: BoxError = error.into();
        let diagnosis = error.diagnosis();
        Self {
            code: diagnosis.code,
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
            missing_fixes: None,
        }
    }

    /// Returns true if nothing could be checked because no registry answered.
    pub fn is_unreachable(&self) -> bool {
        let is_blind = |failure: &ReportedError| failure.blame == Blame::Circumstances;
        let mut images = self.images.iter();
        !self.images.is_empty() && images.all(|image| image.problem.as_ref().is_some_and(is_blind))
    }
}

impl ImageReport {
    /// An image that is not checked yet.
    pub(super) fn new(entry: &FleetEntry) -> Self {
        Self {
            reference: entry.label(),
            from: entry.from.clone(),
            line: entry.line,
            builds: Vec::new(),
            problem: None,
            warnings: Vec::new(),
        }
    }

    /// Sets the error of the image, and fails its builds that are not up to date.
    pub(super) fn fail(&mut self, failure: ReportedError) {
        for build in &mut self.builds {
            if !build.state.is_present() {
                build.state = FleetImageState::Failed;
            }
        }
        self.problem = Some(failure);
    }

    /// Records what a build of an image below leaves of this one, which is made of it.
    pub(super) fn follow(&mut self, below: &Self) {
        let lacks_base = |failure: &ReportedError| {
            matches!(
                failure.code,
                "base/not-found" | "base/nothing-fits" | "registry/not-found"
            )
        };
        let is_unplanned = self.problem.as_ref().is_some_and(lacks_base);
        for base in &below.builds {
            let is_missing = base.state == FleetImageState::Missing;
            if !is_missing && base.state != FleetImageState::Outdated {
                continue;
            }
            for own in &mut self.builds {
                if base.host_build.is_some() && own.host_build != base.host_build {
                    continue;
                }
                let has_no_base = is_unplanned || own.problem.as_ref().is_some_and(lacks_base);
                own.state = match own.state {
                    FleetImageState::Current => FleetImageState::Outdated,
                    FleetImageState::Failed if is_missing && has_no_base => {
                        FleetImageState::Missing
                    }
                    _ => continue,
                };
                own.problem = None;
                own.reason = Some(format!("{} is {}", below.reference, base.state.name()));
            }
        }
        let mut builds = self.builds.iter();
        let is_explained = builds.all(|own| own.state == FleetImageState::Missing);
        if is_unplanned && is_explained && !self.builds.is_empty() {
            self.problem = None;
        }
    }

    pub(super) fn record_unserved(&mut self, unserved: UnservedHost) {
        let build = self.for_host(Some(&unserved.host));
        build.state = FleetImageState::Failed;
        build.problem = Some(unserved.error);
    }

    pub(super) fn record_status(&mut self, image: &TaggedImage<'_>, tag: &str, verdict: &Verdict) {
        for planned in &image.for_hosts {
            let build = self.for_host(planned.host.as_ref());
            build.record(verdict);
            build.image = Some(tag.to_owned());
            build.os_version = planned.base.version_text();
        }
    }

    pub(super) fn record_built(&mut self, delivered: DeliveryReport) {
        for image in delivered.images {
            let builds = self.builds.iter_mut();
            for build in builds.filter(|build| build.image.as_ref() == Some(&image.reference)) {
                build.state = FleetImageState::Built;
                build.digest = Some(image.digest.clone());
            }
        }
    }

    pub(super) fn for_host(&mut self, host: Option<&TargetHost>) -> &mut BuildReport {
        let name = host.map(|host| host.build.to_string());
        let mut builds = self.builds.iter();
        let known = builds.position(|build| build.host_build == name);
        let place = known.unwrap_or_else(|| {
            self.builds.push(BuildReport {
                host_build: name,
                nodes: host.map(|host| host.nodes.clone()).unwrap_or_default(),
                ..BuildReport::default()
            });
            self.builds.len() - 1
        });
        &mut self.builds[place]
    }
}
