//! Compatibility check of workloads and images against hosts.
//!
//! [`Rollout::new`] is a pure function from hosts, images and workloads to findings; clusters and
//! registries are read before it, reports are written after it. Nodes of one kind share their
//! findings, so that thousands of them cost little.

mod commands;
mod details;
mod fetch;
mod finding;
mod fix;
mod fix_text;
mod image;
mod outcome;
mod outdated;
mod placement;
mod plan;
mod simulate;
mod tags;
mod verdict;
mod warning;

use std::collections::BTreeMap;
use std::rc::Rc;

pub use commands::CommandFlags;
pub use details::Details;
pub use fetch::{ImageRequest, fetch};
use finding::CompatibilityChecker;
pub use finding::{Finding, HostKind, in_one_line};
use image::Stray;
pub use image::{EntryContent, Image, ImageContent, Variant, is_host_process};
use jiff::civil::Date;
pub use outcome::{OutcomeCounts, StartStatus, Subject, WorkloadOutcome, is_deciding_rule};
pub use outdated::OutdatedImage;
use placement::Selections;
pub use placement::{HostSelection, Placement};
pub use plan::{ActionPlan, ActionStep, CapacityChange, Interruption, NodeCounts, Pin, PlanAction};
pub use simulate::{Simulation, SimulationMatches, apply_hotfix};
pub use tags::{TagsByRepository, fetch_tags};
pub use warning::Warning;
use wincimg_windows::compat::{Isolation, VerdictOutcome};
use wincimg_windows::missing_fixes::MissingFixes;

use crate::nodes::{Node, NodeList};
use crate::workloads::{SkippedObject, Workload, WorkloadId};

/// Input of a check.
#[derive(Debug, Clone, Default)]
pub struct RolloutRequest {
    /// The hosts, and the other nodes of their cluster.
    pub nodes: NodeList,
    /// Every image to check, given by itself or by a workload.
    pub images: Vec<Image>,
    /// Number of images, from the first on, that are checked on every host.
    pub plain: usize,
    /// The workloads.
    pub workloads: Vec<Workload>,
    /// Objects of unknown kinds that may create pods.
    pub skipped: Vec<SkippedObject>,
    /// Number of inactive workloads that were left out.
    pub inactive: usize,
    /// Default isolation of the nodes.
    pub isolation: Option<Isolation>,
    /// Date for end-of-support checks and new tags; without it, rebuilt images keep their tags.
    pub today: Option<Date>,
    /// Flags that the suggested commands repeat.
    pub flags: CommandFlags,
    /// Prefixes of references on public registries whose images the user builds.
    pub own: Vec<String>,
}

/// Result of a check.
#[derive(Debug, Clone)]
pub struct Rollout {
    /// Rows of the matrix.
    pub hosts: Vec<Node>,
    /// The other nodes of their cluster.
    others: Vec<Node>,
    /// Columns of the matrix.
    pub images: Vec<Image>,
    /// Workloads for Windows.
    pub workloads: Vec<Workload>,
    /// Kinds of hosts, which share their findings.
    pub kinds: Vec<HostKind>,
    /// Kind of each host.
    pub kind_of: Vec<usize>,
    /// Images with the hosts where they could be scheduled.
    pub placements: Vec<Placement>,
    /// Warnings that do not depend on the host.
    pub notices: Vec<Warning>,
    /// Counts by outcome.
    pub summary: CheckCounts,
    /// Number of workloads for other systems.
    pub other_workloads: usize,
    /// Workloads that do not state their system, whose images could not be read, and that no host
    /// admits.
    pub undecided: Vec<WorkloadId>,
    /// Workloads for Linux that a host admits.
    astray: Vec<Stray>,
    /// Objects of unknown kinds in which no pods were found.
    pub skipped: Vec<SkippedObject>,
    /// Number of inactive workloads that were left out.
    pub inactive: usize,
    /// Plan, if requested.
    pub plan: Option<ActionPlan>,
    /// Simulated changes, such as `3 nodes with KB4549949`.
    pub what_if: Vec<String>,
    /// Date of the end-of-support checks.
    pub today: Option<Date>,
    /// True for each third-party image, which the user cannot rebuild.
    of_others: Vec<bool>,
    /// Outcomes without the simulation, if there is one.
    pub as_it_is: Option<OutcomeCounts>,
    /// Security fixes that the images lack, if a table of them is there.
    pub missing_fixes: Option<MissingFixes>,
}

/// One check.
#[derive(Debug, Clone, Copy)]
pub struct RolloutCheck<'a> {
    /// Host; absent where the finding does not depend on one.
    pub host: Option<&'a Node>,
    /// Image; absent where the finding is about the workload alone.
    pub image: Option<&'a Image>,
    /// Workload of the image, if any.
    pub workload: Option<&'a Workload>,
    /// Finding.
    pub finding: &'a Finding,
}

/// Number of checks by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct CheckCounts {
    /// Will start.
    pub compatible: usize,
    /// Will start, with a warning.
    pub warning: usize,
    /// Will not start.
    pub incompatible: usize,
    /// Cannot be determined.
    pub unknown: usize,
}

impl Rollout {
    /// Checks all images and workloads.
    pub fn new(request: &RolloutRequest) -> Self {
        Self::on(request.nodes.clone(), request)
    }

    /// Checks them on other nodes than those of the request.
    pub fn on(nodes: NodeList, request: &RolloutRequest) -> Self {
        let usual = request.isolation.unwrap_or(Isolation::Process);
        let NodeList {
            windows: hosts,
            others,
        } = nodes;
        let images = request.images.clone();
        let places = places_by_reference(&images);
        let image::WorkloadsBySystem {
            for_windows: workloads,
            undecided,
            astray,
        } = image::by_system(&request.workloads, &images, &places, &hosts, &others);
        let mut judge = CompatibilityChecker::new(&hosts, &images);
        let mut selections = Selections::new(&hosts, &judge);
        let mut placements = Vec::with_capacity(workloads.len() + 1);
        if request.plain > 0 {
            let (plain, all) = (0..request.plain, selections.all());
            placements.push(Placement::for_images(plain, &all, usual, &mut judge));
        }
        for (index, workload) in workloads.iter().enumerate() {
            let selection = selections.select(&workload.template);
            placements.push(Placement::for_workload(
                index, workload, &places, &selection, usual, &mut judge,
            ));
        }
        let CompatibilityChecker { kinds, kind_of, .. } = judge;
        let of_others = images.iter().map(|image| {
            let reference = image.reference.as_deref();
            reference.is_some_and(|reference| tags::is_third_party(reference, &request.own))
        });
        let of_others = of_others.collect();
        let mut rollout = Self {
            other_workloads: request.workloads.len() - workloads.len() - undecided.len(),
            hosts,
            others,
            images,
            workloads,
            kinds,
            kind_of,
            placements,
            notices: Vec::new(),
            summary: CheckCounts::default(),
            undecided,
            astray,
            skipped: request.skipped.clone(),
            inactive: request.inactive,
            plan: None,
            what_if: Vec::new(),
            as_it_is: None,
            missing_fixes: None,
            today: request.today,
            of_others,
        };
        rollout.notices = warning::all(&rollout);
        rollout.summary = CheckCounts::count(&rollout.placements, &rollout.notices);
        rollout
    }

    /// Names of the cordoned hosts.
    pub fn cordoned(&self) -> Vec<&str> {
        let cordoned = self.hosts.iter().filter(|host| host.is_cordoned);
        cordoned.filter_map(|host| host.name.as_deref()).collect()
    }

    /// Number of workloads for Linux that a host admits.
    pub fn strays(&self) -> usize {
        self.astray.len()
    }

    /// Returns true if everything will start; with `strict`, also without warnings.
    pub fn is_compatible(&self, strict: bool) -> bool {
        let mut outcomes = self.outcomes();
        self.summary.incompatible == 0
            && self.summary.unknown == 0
            && outcomes.all(|outcome| outcome.starts != StartStatus::Unknown)
            && !(strict && self.summary.warning > 0)
    }

    /// Every check, by workload, host and image.
    pub fn checks(&self) -> impl Iterator<Item = RolloutCheck<'_>> {
        let placed = self
            .placements
            .iter()
            .flat_map(move |placement| self.checks_of(placement));
        let noticed = self.notices.iter().map(|notice| RolloutCheck {
            host: None,
            image: notice.image.map(|image| &self.images[image]),
            workload: notice.workload.map(|workload| &self.workloads[workload]),
            finding: &notice.finding,
        });
        placed.chain(noticed)
    }

    fn checks_of<'a>(&'a self, placement: &'a Placement) -> impl Iterator<Item = RolloutCheck<'a>> {
        let workload = placement.workload.map(|workload| &self.workloads[workload]);
        placement
            .selection
            .hosts
            .iter()
            .flat_map(move |&(host, group)| {
                placement.images.iter().map(move |placed| RolloutCheck {
                    host: Some(&self.hosts[host as usize]),
                    image: Some(&self.images[placed.image]),
                    workload,
                    finding: &placed.findings[group as usize],
                })
            })
    }

    /// Isolations that occur, for reports.
    pub fn isolations(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for finding in self.placements.iter().flat_map(Placement::findings) {
            let name = finding.isolation.name();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.sort_unstable_by(|a, b| b.cmp(a));
        names.join(", ")
    }

    /// Where the pods of a workload can be scheduled, if it is placed.
    fn placement_of(&self, workload: usize) -> Option<&Placement> {
        let mut placements = self.placements.iter();
        placements.find(|placement| placement.workload == Some(workload))
    }
}

/// The first place of each reference among the images.
fn places_by_reference(images: &[Image]) -> BTreeMap<&str, usize> {
    let places = images.iter().enumerate().rev();
    places
        .filter_map(|(place, image)| Some((image.reference.as_deref()?, place)))
        .collect()
}

impl CheckCounts {
    fn count(placements: &[Placement], notices: &[Warning]) -> Self {
        let mut summary = Self::default();
        for placement in placements {
            for placed in &placement.images {
                for (group, finding) in placement.selection.groups.iter().zip(&placed.findings) {
                    summary.add(finding.outcome, group.hosts.len());
                }
            }
        }
        for notice in notices {
            summary.add(notice.finding.outcome, 1);
        }
        summary
    }

    fn add(&mut self, outcome: VerdictOutcome, count: usize) {
        *match outcome {
            VerdictOutcome::Compatible => &mut self.compatible,
            VerdictOutcome::Warning => &mut self.warning,
            VerdictOutcome::Incompatible => &mut self.incompatible,
            VerdictOutcome::Unknown => &mut self.unknown,
        } += count;
    }
}

/// Label of a host for reports.
pub fn host_label(host: &Node) -> String {
    match (&host.name, host.build) {
        (Some(name), Some(build)) => format!("{name} ({build})"),
        (Some(name), None) => name.clone(),
        (None, Some(build)) => build.to_string(),
        (None, None) => "?".to_owned(),
    }
}

/// Name of a host; without one, its version.
pub fn host_name(host: &Node) -> String {
    host.name.clone().unwrap_or_else(|| host_label(host))
}

/// Names of a few hosts, and the number of the others.
pub fn host_names(rollout: &Rollout, hosts: &[usize]) -> String {
    let hosts = hosts.iter().map(|&host| &rollout.hosts[host]);
    first_names(hosts.map(host_name), 5)
}

/// The first names, and the number of the others.
pub fn first_names(names: impl ExactSizeIterator<Item = String>, most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let mut first: Vec<String> = names.take(most).collect();
    if more > 0 {
        first.push(format!("{more} more"));
    }
    first.join(", ")
}

type SharedFinding = Rc<Finding>;
