//! Which pod of which workload could land on which node, and would it start there?
//!
//! [`Rollout::new`] is a pure function from what is known of hosts, images and workloads to every
//! answer; reading clusters and registries comes before it, reports come after. Nodes of one kind
//! get the same answer, so that thousands of them cost little.

mod commands;
mod details;
mod fetch;
mod finding;
mod fix;
mod image;
mod outcome;
mod outdated;
mod placement;
mod plan;
mod simulate;
mod tags;
mod warning;

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

pub use commands::{CommandFlags, shell_command as command_line};
pub use details::Details;
pub use fetch::{ImageRequest, fetch};
use finding::CompatibilityChecker;
pub use finding::{Finding, HostKind, severity};
pub use image::{Image, ImageContent, Variant, is_host_process};
use jiff::civil::Date;
pub use outcome::{OutcomeCounts, StartStatus, Subject, WorkloadOutcome, is_deciding_rule};
pub use outdated::OutdatedImage;
use placement::Selections;
pub use placement::{HostSelection, Placement};
pub use plan::{AFTER_A_PATCH, ActionPlan, Interruption, Pin, PlanAction};
pub use simulate::{Simulation, SimulationMatches, apply_hotfix};
pub use tags::{TagsByRepository, fetch_tags};
pub use warning::Warning;
use wincimg_windows::compat::{Isolation, VerdictOutcome};

use crate::nodes::{Node, NodeList};
use crate::workloads::{SkippedObject, Workload, WorkloadId};

/// What is to be answered.
#[derive(Debug, Clone, Default)]
pub struct RolloutRequest {
    /// The hosts, and the other nodes of their cluster.
    pub nodes: NodeList,
    /// Every image that is asked about, by itself or by a workload.
    pub images: Vec<Image>,
    /// How many of them, from the first on, are to start on every host.
    pub plain: usize,
    /// The workloads.
    pub workloads: Vec<Workload>,
    /// What was given with them and may make pods in a way that is not known.
    pub skipped: Vec<SkippedObject>,
    /// How many workloads were left out because they run nothing as they stand.
    pub inactive: usize,
    /// How nodes keep containers apart where nobody asks for anything.
    pub isolation: Option<Isolation>,
    /// The day on which support is looked at.
    pub today: Option<Date>,
    /// What the commands that are advised need as this run did.
    pub flags: CommandFlags,
    /// Prefixes of references on public registries whose images the user builds.
    pub own: Vec<String>,
}

/// The answers.
#[derive(Debug, Clone)]
pub struct Rollout {
    /// Down the matrix.
    pub hosts: Vec<Node>,
    /// The other nodes of their cluster.
    others: Vec<Node>,
    /// Across the matrix.
    pub images: Vec<Image>,
    /// Those that are for Windows.
    pub workloads: Vec<Workload>,
    /// Kinds of hosts: all of one kind get the same answers.
    pub kinds: Vec<HostKind>,
    /// For each host its kind.
    pub kind_of: Vec<usize>,
    /// The images on the hosts where they could land.
    pub placements: Vec<Placement>,
    /// What deserves a look whatever the host.
    pub notices: Vec<Warning>,
    /// How everything came out.
    pub summary: CheckCounts,
    /// How many workloads are for other systems.
    pub other_workloads: usize,
    /// Workloads that do not say their system, whose images could not be read, and that no host takes.
    pub undecided: Vec<WorkloadId>,
    /// Objects of unknown kinds in which no pods were found.
    pub skipped: Vec<SkippedObject>,
    /// How many workloads were left out because they run nothing as they stand.
    pub inactive: usize,
    /// What to do so that everything starts, where that was asked for.
    pub plan: Option<ActionPlan>,
    /// What is taken to be otherwise than it is, such as `3 nodes with KB4549949`.
    pub what_if: Vec<String>,
    /// The day on which support was looked at.
    pub today: Option<Date>,
    /// As the request says it.
    own: Vec<String>,
    /// What becomes of the workloads as things are, where something is taken to be otherwise.
    pub as_it_is: Option<OutcomeCounts>,
}

/// One answer.
#[derive(Debug, Clone, Copy)]
pub struct RolloutCheck<'a> {
    /// Where; absent where the answer is about no host.
    pub host: Option<&'a Node>,
    /// The image; absent where the answer is about the workload alone.
    pub image: Option<&'a Image>,
    /// Whose image it is, where it is a workload's.
    pub workload: Option<&'a Workload>,
    /// What was found.
    pub finding: &'a Finding,
}

/// How many checks came out how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct CheckCounts {
    /// Will start.
    pub compatible: usize,
    /// Will start, but someone should look.
    pub warning: usize,
    /// Will not start.
    pub incompatible: usize,
    /// Nobody can tell.
    pub unknown: usize,
}

impl Rollout {
    /// Answers everything.
    pub fn new(request: &RolloutRequest) -> Self {
        let usual = request.isolation.unwrap_or(Isolation::Process);
        let NodeList {
            windows: hosts,
            others,
        } = request.nodes.clone();
        let images = request.images.clone();
        let places: BTreeMap<&str, usize> = images
            .iter()
            .enumerate()
            .rev()
            .filter_map(|(place, image)| Some((image.reference.as_deref()?, place)))
            .collect();
        let (workloads, undecided) =
            image::for_windows(&request.workloads, &images, &places, &hosts, &others);
        let mut judge = CompatibilityChecker::new(&hosts, &images);
        let mut selections = Selections::new(&hosts, &judge);
        let mut placements = Vec::with_capacity(workloads.len() + 1);
        if request.plain > 0 {
            placements.push(Placement::for_images(
                0..request.plain,
                &selections.all(),
                usual,
                &mut judge,
            ));
        }
        for (index, workload) in workloads.iter().enumerate() {
            let selection = selections.select(&workload.template.scheduling);
            placements.push(Placement::for_workload(
                index, workload, &places, &selection, usual, &mut judge,
            ));
        }
        let (kinds, kind_of) = judge.into_kinds();
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
            skipped: request.skipped.clone(),
            inactive: request.inactive,
            plan: None,
            what_if: Vec::new(),
            as_it_is: None,
            today: request.today,
            own: request.own.clone(),
        };
        rollout.notice();
        rollout
    }

    /// Takes in what was found out about the images since: it changes no verdict about a host.
    pub fn add_details(&mut self, images: &[Image]) {
        self.images = images.to_vec();
        self.notice();
    }

    fn notice(&mut self) {
        self.notices = warning::all(self);
        self.summary = CheckCounts::count(&self.placements, &self.notices);
    }

    /// Returns true if an image is built by others, so that no build of the user's helps.
    fn is_of_others(&self, image: usize) -> bool {
        let reference = self.images[image].reference.as_deref();
        reference.is_some_and(|reference| tags::is_third_party(reference, &self.own))
    }

    /// The names of the hosts that take no new pods for now.
    pub fn cordoned(&self) -> Vec<&str> {
        let cordoned = self.hosts.iter().filter(|host| host.is_cordoned);
        cordoned.filter_map(|host| host.name.as_deref()).collect()
    }

    /// Returns true if everything will start; `strict` wants it without warnings too.
    pub fn is_compatible(&self, strict: bool) -> bool {
        self.summary.incompatible == 0
            && self.summary.unknown == 0
            && !(strict && self.summary.warning > 0)
    }

    /// Every answer: workload by workload, host by host, image by image.
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

    /// The isolations that occur, in words.
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

    /// How many checks there were.
    pub fn total(&self) -> usize {
        self.compatible + self.warning + self.incompatible + self.unknown
    }
}

impl fmt::Display for CheckCounts {
    /// `3 checks: 2 compatible, 1 incompatible`; what did not occur is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            (self.compatible, VerdictOutcome::Compatible),
            (self.warning, VerdictOutcome::Warning),
            (self.incompatible, VerdictOutcome::Incompatible),
            (self.unknown, VerdictOutcome::Unknown),
        ];
        let total = self.total();
        write!(f, "{total} check{}", if total == 1 { "" } else { "s" })?;
        let mut separator = ": ";
        for (count, outcome) in parts {
            if count > 0 {
                write!(f, "{separator}{count} {}", outcome.name())?;
                separator = ", ";
            }
        }
        Ok(())
    }
}

/// What a person calls this host.
pub fn host_label(host: &Node) -> String {
    match (&host.name, host.build) {
        (Some(name), Some(build)) => format!("{name} ({build})"),
        (Some(name), None) => name.clone(),
        (None, Some(build)) => build.to_string(),
        (None, None) => "?".to_owned(),
    }
}

/// A finding that several places share.
type Shared = Rc<Finding>;
