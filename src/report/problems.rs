//! What is not green, with everything that shares one cause put together.

use std::collections::HashMap;
use std::rc::Rc;

use super::in_words;
use crate::rollout::{Finding, Rollout, host_label, severity};
use crate::windows::compat::Outcome;

/// One cause, and all hosts and workloads that it is about.
pub(super) struct Problem<'a> {
    rollout: &'a Rollout,
    pub(super) finding: &'a Finding,
    pub(super) image: Option<usize>,
    /// Indexes of hosts, sorted.
    pub(super) hosts: Vec<usize>,
    /// Indexes of workloads, in their order.
    pub(super) workloads: Vec<usize>,
}

/// The problems, the worst first.
pub(super) fn problems(rollout: &Rollout) -> Vec<Problem<'_>> {
    let mut collected = Collected {
        rollout,
        known: HashMap::new(),
        causes: Vec::new(),
    };
    for placement in &rollout.placements {
        for placed in &placement.images {
            for (group, finding) in placement.selection.groups.iter().zip(&placed.findings) {
                collected.add(
                    finding,
                    Some(placed.image),
                    placement.workload,
                    &group.hosts,
                );
            }
        }
    }
    for notice in &rollout.notices {
        collected.add(&notice.finding, notice.image, notice.workload, &[]);
    }
    collected.into_problems()
}

/// A cause while it is collected.
struct Cause<'a> {
    finding: &'a Finding,
    image: Option<usize>,
    has_host: Vec<bool>,
    workloads: Vec<usize>,
}

struct Collected<'a> {
    rollout: &'a Rollout,
    known: HashMap<(Option<usize>, *const Finding), usize>,
    causes: Vec<Cause<'a>>,
}

impl<'a> Collected<'a> {
    fn add(
        &mut self,
        finding: &'a Rc<Finding>,
        image: Option<usize>,
        workload: Option<usize>,
        hosts: &[u32],
    ) {
        if finding.outcome == Outcome::Compatible {
            return;
        }
        let causes = &mut self.causes;
        let place = *self
            .known
            .entry((image, Rc::as_ptr(finding)))
            .or_insert_with(|| {
                causes.push(Cause {
                    finding,
                    image,
                    has_host: Vec::new(),
                    workloads: Vec::new(),
                });
                causes.len() - 1
            });
        let cause = &mut self.causes[place];
        if !hosts.is_empty() {
            cause.has_host.resize(self.rollout.hosts.len(), false);
        }
        for &host in hosts {
            cause.has_host[host as usize] = true;
        }
        if let Some(workload) = workload
            && cause.workloads.last() != Some(&workload)
        {
            cause.workloads.push(workload);
        }
    }

    fn into_problems(self) -> Vec<Problem<'a>> {
        let rollout = self.rollout;
        let mut problems: Vec<Problem<'a>> = self
            .causes
            .into_iter()
            .map(|cause| Problem {
                rollout,
                finding: cause.finding,
                image: cause.image,
                hosts: (0..cause.has_host.len())
                    .filter(|&host| cause.has_host[host])
                    .collect(),
                workloads: cause.workloads,
            })
            .collect();
        problems.sort_by_key(|problem| std::cmp::Reverse(severity(problem.finding.outcome)));
        problems
    }
}

impl Problem<'_> {
    /// The image, or the workload that the problem is about where it is about no image.
    pub(super) fn subject(&self) -> String {
        match self.image {
            Some(image) => self.rollout.images[image].label(),
            None => self.workloads_in_words(),
        }
    }

    /// The first few hosts by name, and how many more there are.
    pub(super) fn hosts_in_words(&self) -> String {
        in_words(
            self.hosts
                .iter()
                .map(|&host| host_label(&self.rollout.hosts[host])),
        )
    }

    /// The first few workloads by name, and how many more there are.
    pub(super) fn workloads_in_words(&self) -> String {
        in_words(
            self.workloads
                .iter()
                .map(|&workload| self.rollout.workloads[workload].id.to_string()),
        )
    }
}
