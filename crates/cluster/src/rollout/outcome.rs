//! Outcome of each workload, and of each image given by itself: the number of its nodes on which it
//! starts.

use std::collections::HashMap;

use wincimg_common::Named;
use wincimg_windows::compat::{Concern, VerdictOutcome};

use super::{Placement, Rollout};

/// Outcome of a workload's pods, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Named)]
#[named(rename_all = "lowercase")]
pub enum StartStatus {
    /// They start on none of the nodes that take them; if no host does, nodes of another system.
    Nowhere,
    /// No node admits them: they stay pending.
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
    /// Number of these on which it has a warning.
    pub warned_on: usize,
    /// Number of these on which it is unknown whether it starts.
    pub unknown_on: usize,
}

/// A workload or an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
        let noticed = self.worst_notices();
        self.placements.iter().flat_map(move |placement| -> Vec<_> {
            let one = |subject: Subject, images| {
                let noticed = noticed.get(&subject).copied();
                self.placement_outcome(subject, placement, images, noticed)
            };
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
        let mut counts = OutcomeCounts::default();
        for outcome in self.outcomes() {
            let is_workload = matches!(outcome.subject, Subject::Workload(_));
            if is_workload != self.workloads.is_empty() {
                counts.0[outcome.starts as usize] += 1;
            }
        }
        counts
    }

    fn worst_notices(&self) -> HashMap<Subject, VerdictOutcome> {
        let mut worst: HashMap<Subject, VerdictOutcome> = HashMap::new();
        for notice in &self.notices {
            let image = notice.image.map(Subject::Image);
            let Some(subject) = notice.workload.map(Subject::Workload).or(image) else {
                continue;
            };
            let outcome = notice.finding.outcome;
            let known = worst.entry(subject).or_insert(outcome);
            *known = outcome.max(*known);
        }
        worst
    }

    fn placement_outcome<'a>(
        &self,
        subject: Subject,
        placement: &'a Placement,
        images: &[super::placement::PlacedImage],
        noticed: Option<VerdictOutcome>,
    ) -> WorkloadOutcome<'a> {
        let (mut starts_on, mut breaks_on, mut warned_on) = (0, 0, 0);
        for (place, group) in placement.selection.groups.iter().enumerate() {
            let outcomes = || images.iter().map(|placed| placed.findings[place].outcome);
            if noticed.is_some() || outcomes().any(|outcome| outcome == VerdictOutcome::Warning) {
                warned_on += group.hosts.len();
            }
            // All containers of a pod have to start.
            if outcomes().any(|outcome| outcome == VerdictOutcome::Incompatible) {
                breaks_on += group.hosts.len();
            } else if outcomes().all(|outcome| outcome != VerdictOutcome::Unknown) {
                starts_on += group.hosts.len();
            }
        }
        let nodes = placement.selection.hosts.len();
        let template = placement.workload.map(|own| &self.workloads[own].template);
        // A container without an image is unknown.
        if template.is_some_and(|own| !own.without_image.is_empty() || own.containers.is_empty()) {
            starts_on = 0;
        }
        let may_land = || {
            let mut hosts = self.hosts.iter();
            template.is_some_and(|own| hosts.any(|host| own.class_may_admit(host)))
        };
        let starts = if nodes == 0 && may_land() {
            StartStatus::Unknown
        } else if nodes == 0 && noticed != Some(VerdictOutcome::Incompatible) {
            StartStatus::Unplaced
        } else if breaks_on == nodes {
            StartStatus::Nowhere
        } else if breaks_on > 0 {
            StartStatus::Somewhere
        } else if starts_on < nodes {
            StartStatus::Unknown
        } else if warned_on > 0 {
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
            warned_on,
            unknown_on: nodes - starts_on - breaks_on,
        }
    }
}

impl OutcomeCounts {
    /// Number of subjects with this status.
    pub fn get(&self, starts: StartStatus) -> usize {
        self.0[starts as usize]
    }
}

/// Returns true if a notice of this rule makes the outcome unknown, instead of being a mere
/// warning.
pub fn is_deciding_rule(rule: &str) -> bool {
    [Concern::NoHostSelected, Concern::NoImage]
        .iter()
        .any(|concern| concern.name() == rule)
}
