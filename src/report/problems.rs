//! Problems of directly named images, and warnings, grouped by cause.

use wincimg_cluster::rollout::is_deciding_rule;

use crate::report::prelude::*;

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
    let placed = rollout.placements.iter().flat_map(|placement| {
        let workload = placement.workload;
        findings(placement)
            .filter(move |(_, _, finding)| {
                workload.is_none() || finding.outcome == VerdictOutcome::Warning
            })
            .map(move |(image, hosts, finding)| (finding, Some(image), workload, hosts))
    });
    let nowhere: &[u32] = &[];
    let notices = rollout.notices.iter();
    let notices = notices
        .filter(|notice| !is_deciding_rule(notice.finding.rule))
        .map(|notice| (&*notice.finding, notice.image, notice.workload, nowhere));
    let mut known: HashMap<&Finding, usize> = HashMap::new();
    let mut problems: Vec<ReportProblem<'_>> = Vec::new();
    // Of each problem, true for each of its hosts.
    let mut has_host: Vec<Vec<bool>> = Vec::new();
    for (finding, image, workload, hosts) in placed.chain(notices) {
        if finding.outcome == VerdictOutcome::Compatible {
            continue;
        }
        let place = *known.entry(finding).or_insert(problems.len());
        if place == problems.len() {
            problems.push(ReportProblem {
                rollout,
                finding,
                images: Vec::new(),
                hosts: Vec::new(),
                workloads: Vec::new(),
            });
            has_host.push(Vec::new());
        }
        problems[place].add(image, workload);
        if !hosts.is_empty() {
            has_host[place].resize(rollout.hosts.len(), false);
        }
        for &host in hosts {
            has_host[place][host as usize] = true;
        }
    }
    for (problem, has_host) in problems.iter_mut().zip(has_host) {
        let hosts = (0..has_host.len()).filter(|&host| has_host[host]);
        problem.hosts = hosts.collect();
    }
    problems.sort_by_key(|problem| std::cmp::Reverse(problem.finding.outcome));
    problems
}

impl ReportProblem<'_> {
    fn add(&mut self, image: Option<usize>, workload: Option<usize>) {
        if let Some(image) = image
            && !self.images.contains(&image)
        {
            self.images.push(image);
        }
        if let Some(workload) = workload
            && self.workloads.last() != Some(&workload)
        {
            self.workloads.push(workload);
        }
    }

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
