//! Problems of directly named images, and warnings, grouped by cause.

use std::collections::HashMap;

use wincimg_cluster::rollout::{Finding, Rollout, is_deciding_rule, severity};
use wincimg_windows::compat::VerdictOutcome;

use super::{hosts_in_words, in_words};

/// One cause, with all of its hosts and workloads.
pub(super) struct ReportProblem<'a> {
    rollout: &'a Rollout,
    pub(super) finding: &'a Finding,
    /// Indexes of images; none if only workloads are affected.
    pub(super) images: Vec<usize>,
    /// Indexes of hosts, sorted.
    pub(super) hosts: Vec<usize>,
    /// Indexes of workloads, in their order.
    pub(super) workloads: Vec<usize>,
}

/// The problems, the worst first.
pub(super) fn problems(rollout: &Rollout) -> Vec<ReportProblem<'_>> {
    let mut collected = ProblemCollector {
        rollout,
        known: HashMap::new(),
        causes: Vec::new(),
    };
    for placement in &rollout.placements {
        for placed in &placement.images {
            for (group, finding) in placement.selection.groups.iter().zip(&placed.findings) {
                if placement.workload.is_some() && finding.outcome != VerdictOutcome::Warning {
                    continue;
                }
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
        if is_deciding_rule(notice.finding.rule) {
            continue;
        }
        collected.add(&notice.finding, notice.image, notice.workload, &[]);
    }
    collected.into_problems()
}

/// A cause during collection.
struct Cause<'a> {
    finding: &'a Finding,
    images: Vec<usize>,
    has_host: Vec<bool>,
    workloads: Vec<usize>,
}

struct ProblemCollector<'a> {
    rollout: &'a Rollout,
    known: HashMap<&'a Finding, usize>,
    causes: Vec<Cause<'a>>,
}

impl<'a> ProblemCollector<'a> {
    fn add(
        &mut self,
        finding: &'a Finding,
        image: Option<usize>,
        workload: Option<usize>,
        hosts: &[u32],
    ) {
        if finding.outcome == VerdictOutcome::Compatible {
            return;
        }
        let causes = &mut self.causes;
        let place = *self.known.entry(finding).or_insert_with(|| {
            causes.push(Cause {
                finding,
                images: Vec::new(),
                has_host: Vec::new(),
                workloads: Vec::new(),
            });
            causes.len() - 1
        });
        let cause = &mut self.causes[place];
        if let Some(image) = image
            && !cause.images.contains(&image)
        {
            cause.images.push(image);
        }
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

    fn into_problems(self) -> Vec<ReportProblem<'a>> {
        let rollout = self.rollout;
        let mut problems: Vec<ReportProblem<'a>> = self
            .causes
            .into_iter()
            .map(|cause| ReportProblem {
                rollout,
                finding: cause.finding,
                images: cause.images,
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

impl ReportProblem<'_> {
    /// The images; without any, the workloads, which are not listed if they are for Linux.
    pub(super) fn subject(&self) -> String {
        let images = self.images.iter();
        if self.images.is_empty() && self.workloads.is_empty() {
            "workloads for Linux".to_owned()
        } else if self.images.is_empty() {
            self.format_workloads()
        } else {
            in_words(images.map(|&image| self.rollout.images[image].label()))
        }
    }

    /// Names of a few hosts, or the number of many.
    pub(super) fn format_hosts(&self) -> String {
        hosts_in_words(self.rollout, &self.hosts)
    }

    /// Names of the first few workloads, and the number of the others.
    pub(super) fn format_workloads(&self) -> String {
        in_words(
            self.workloads
                .iter()
                .map(|&workload| self.rollout.workloads[workload].id.to_string()),
        )
    }
}
