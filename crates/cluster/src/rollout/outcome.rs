//! Outcome of each workload, and of each image given by itself: the number of its nodes on which it
//! starts.

use wincimg_common::Named;
use wincimg_windows::compat::{Concern, VerdictOutcome};

use super::{Placement, Rollout};

/// Outcome of a workload's pods, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Named)]
#[named(rename_all = "lowercase")]
pub enum StartStatus {
    /// They start on none of the nodes where they can be scheduled.
    Nowhere,
    /// No node admits them.
    #[named(rename = "nowhere")]
    Unplaced,
    /// They can be scheduled where they do not start.
    Somewhere,
    /// Unknown for some of the nodes; they start on the others.
    Unknown,
    /// They start wherever they are scheduled, with a warning.
    #[named(rename = "everywhere")]
    Warned,
    /// They start wherever they are scheduled.
    Everywhere,
}

/// Outcome of a workload, or of an image given by itself.
#[derive(Debug, Clone)]
pub struct WorkloadOutcome<'a> {
    /// Subject.
    pub subject: Subject,
    /// Hosts where it can be scheduled, and the findings there.
    pub placement: &'a Placement,
    /// Status.
    pub starts: StartStatus,
    /// Number of nodes where it can be scheduled.
    pub nodes: usize,
    /// Number of these on which it starts.
    pub starts_on: usize,
    /// Number of these on which it is unknown whether it starts.
    pub unknown_on: usize,
}

/// A workload or an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Index into [`Rollout::workloads`].
    Workload(usize),
    /// Index into [`Rollout::images`].
    Image(usize),
}

/// Number of subjects by status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutcomeCounts([usize; StartStatus::ALL.len()]);

impl StartStatus {
    /// Returns true if action or information is needed before it starts everywhere.
    pub fn needs_action(self) -> bool {
        self < Self::Warned
    }
}

impl Rollout {
    /// Outcome of each image given by itself, then of each workload.
    pub fn outcomes(&self) -> impl Iterator<Item = WorkloadOutcome<'_>> {
        let warned = WarnedSubjects::of(self);
        self.placements.iter().flat_map(move |placement| -> Vec<_> {
            let one = |subject, images| self.placement_outcome(subject, placement, images, &warned);
            match placement.workload {
                Some(workload) => vec![one(Subject::Workload(workload), &placement.images[..])],
                None => placement
                    .images
                    .iter()
                    .map(|placed| one(Subject::Image(placed.image), std::slice::from_ref(placed)))
                    .collect(),
            }
        })
    }

    /// Number of workloads by outcome, or of images if there are no workloads.
    pub fn count_outcomes(&self) -> OutcomeCounts {
        self.outcomes()
            .filter(|prospect| prospect.is_workload() != self.workloads.is_empty())
            .map(|prospect| prospect.starts)
            .collect()
    }

    fn placement_outcome<'a>(
        &self,
        subject: Subject,
        placement: &'a Placement,
        images: &[super::placement::PlacedImage],
        warned: &WarnedSubjects,
    ) -> WorkloadOutcome<'a> {
        let (mut starts_on, mut breaks_on, mut has_warning) = (0, 0, warned.has(subject));
        for (place, group) in placement.selection.groups.iter().enumerate() {
            let outcomes = || images.iter().map(|placed| placed.findings[place].outcome);
            has_warning |= outcomes().any(|outcome| outcome == VerdictOutcome::Warning);
            // All containers of a pod have to start.
            if outcomes().any(|outcome| outcome == VerdictOutcome::Incompatible) {
                breaks_on += group.hosts.len();
            } else if outcomes().all(|outcome| outcome != VerdictOutcome::Unknown) {
                starts_on += group.hosts.len();
            }
        }
        let nodes = placement.selection.hosts.len();
        // A container without an image is unknown.
        let is_unsaid = match subject {
            Subject::Workload(workload) => {
                let template = &self.workloads[workload].template;
                !template.without_image.is_empty() || template.containers.is_empty()
            }
            Subject::Image(_) => false,
        };
        if is_unsaid {
            starts_on = 0;
        }
        let may_land = || match subject {
            Subject::Workload(workload) => {
                let template = &self.workloads[workload].template;
                self.hosts.iter().any(|host| template.class_may_admit(host))
            }
            Subject::Image(_) => false,
        };
        let starts = if nodes == 0 && may_land() {
            StartStatus::Unknown
        } else if nodes == 0 {
            StartStatus::Unplaced
        } else if breaks_on == nodes {
            StartStatus::Nowhere
        } else if breaks_on > 0 {
            StartStatus::Somewhere
        } else if starts_on < nodes {
            StartStatus::Unknown
        } else if has_warning {
            StartStatus::Warned
        } else {
            StartStatus::Everywhere
        };
        WorkloadOutcome {
            subject,
            placement,
            starts,
            nodes,
            starts_on,
            unknown_on: nodes - starts_on - breaks_on,
        }
    }
}

impl WorkloadOutcome<'_> {
    /// Returns true if it is a workload rather than an image.
    pub(crate) fn is_workload(&self) -> bool {
        matches!(self.subject, Subject::Workload(_))
    }
}

impl OutcomeCounts {
    /// Number of subjects with this status.
    pub fn get(&self, starts: StartStatus) -> usize {
        self.0[starts as usize]
    }
}

impl FromIterator<StartStatus> for OutcomeCounts {
    fn from_iter<T: IntoIterator<Item = StartStatus>>(all: T) -> Self {
        let mut tally = Self::default();
        for starts in all {
            tally.0[starts as usize] += 1;
        }
        tally
    }
}

/// Workloads and images that have a warning.
struct WarnedSubjects {
    workloads: Vec<bool>,
    images: Vec<bool>,
}

impl WarnedSubjects {
    fn of(rollout: &Rollout) -> Self {
        let mut warned = Self {
            workloads: vec![false; rollout.workloads.len()],
            images: vec![false; rollout.images.len()],
        };
        for notice in &rollout.notices {
            match (notice.workload, notice.image) {
                (Some(workload), _) => warned.workloads[workload] = true,
                (None, Some(image)) => warned.images[image] = true,
                (None, None) => {}
            }
        }
        warned
    }

    fn has(&self, subject: Subject) -> bool {
        match subject {
            Subject::Workload(workload) => self.workloads[workload],
            Subject::Image(image) => self.images[image],
        }
    }
}

/// Returns true if a notice of this rule makes the outcome unknown, instead of being a mere
/// warning.
pub fn is_deciding_rule(rule: &str) -> bool {
    [Concern::NoHostSelected, Concern::NoImage]
        .iter()
        .any(|concern| concern.name() == rule)
}
