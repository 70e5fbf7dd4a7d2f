//! Where a workload could be kept so that it starts: a label that its images' nodes share.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::cluster::nodes::{BUILD_LABEL, Node, OS_LABEL};
use crate::cluster::scheduling::System;
use crate::cluster::workloads::{Workload, WorkloadId};
use crate::rollout::commands::{Flags, typed};
use crate::rollout::{Placement, Rollout};
use crate::windows::compat::{Outcome, revisions_matter};
use crate::windows::version::WindowsVersion;

/// A node label that a workload asks for in addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The label.
    pub label: &'static str,
    /// Its value.
    pub value: String,
}

/// Kinds whose pods move to other nodes when their template changes.
const PATCHABLE: [&str; 4] = ["Deployment", "DaemonSet", "StatefulSet", "CronJob"];

impl Pin {
    /// On nodes that run Windows.
    pub(in crate::rollout) fn to_windows() -> Self {
        Self {
            label: OS_LABEL,
            value: "windows".to_owned(),
        }
    }

    pub(super) fn admits(&self, node: &Node) -> bool {
        node.labels.get(self.label) == Some(&self.value)
    }

    /// Makes a workload ask for it.
    pub(super) fn apply(&self, workload: &mut Workload) {
        let selector = &mut workload.template.scheduling.selector;
        selector.insert(self.label.to_owned(), self.value.clone());
    }

    /// The command that makes a workload ask for it; nothing for a kind that cannot be patched.
    pub(in crate::rollout) fn command(
        &self,
        workload: &WorkloadId,
        flags: &Flags,
    ) -> Option<String> {
        let patch = self.patch(workload)?;
        let kind = workload.kind.to_ascii_lowercase();
        let mut words = vec!["kubectl", "patch", &kind, &workload.name];
        words.extend(["--namespace", &workload.namespace]);
        words.extend(flags.kubectl.iter().map(String::as_str));
        words.extend(["--type", "merge", "--patch", &patch]);
        Some(typed(&words))
    }

    /// The patch of the API's object that does the same; nothing for a kind that takes none.
    fn patch(&self, workload: &WorkloadId) -> Option<String> {
        if !is_patchable(workload) {
            return None;
        }
        let selector = serde_json::json!({"nodeSelector": {self.label: self.value}});
        let wrap = |inner| serde_json::json!({"spec": {"template": {"spec": inner}}});
        let patch = match workload.kind.as_str() {
            "CronJob" => serde_json::json!({"spec": {"jobTemplate": wrap(selector)}}),
            _ => wrap(selector),
        };
        Some(patch.to_string())
    }
}

fn is_patchable(workload: &WorkloadId) -> bool {
    PATCHABLE.contains(&workload.kind.as_str()) && !workload.name.is_empty()
}

/// A pin for every workload that does not start on some of its nodes, does on others as everything
/// is, and can be patched.
pub(super) fn candidates(rollout: &Rollout, others: &[Node]) -> BTreeMap<usize, Pin> {
    let placements = rollout.placements.iter();
    placements
        .filter(|placement| {
            let mut findings = placement.findings();
            findings.any(|finding| finding.outcome == Outcome::Incompatible)
        })
        .filter_map(|placement| {
            let index = placement.workload?;
            let workload = &rollout.workloads[index];
            if !is_patchable(&workload.id) {
                return None;
            }
            let pin = to_a_build(rollout, placement)
                .or_else(|| to_linux(rollout, placement, workload, others))?;
            Some((index, pin))
        })
        .collect()
}

/// The build on all of whose nodes everything starts. Of several one where revisions do not matter,
/// for no patch will ever be needed there; then that of most nodes; then the newest.
fn to_a_build(rollout: &Rollout, placement: &Placement) -> Option<Pin> {
    let mut builds: BTreeMap<&str, (bool, usize)> = BTreeMap::new();
    for &(host, group) in &placement.selection.hosts {
        let Some(label) = rollout.hosts[host as usize].labels.get(BUILD_LABEL) else {
            continue;
        };
        let starts = placement.images.iter().all(|placed| {
            matches!(
                placed.findings[group as usize].outcome,
                Outcome::Compatible | Outcome::Warning
            )
        });
        let (fits, count) = builds.entry(label).or_insert((true, 0));
        *fits &= starts;
        *count += 1;
    }
    let (value, _) = builds
        .into_iter()
        .filter(|(_, (fits, _))| *fits)
        .min_by_key(|(label, (_, count))| {
            let build = label
                .parse()
                .ok()
                .map(|version: WindowsVersion| version.build);
            let is_settled = build.is_some_and(|build| !revisions_matter(build));
            (!is_settled, Reverse(*count), Reverse(build))
        })?;
    Some(Pin {
        label: BUILD_LABEL,
        value: value.to_owned(),
    })
}

/// Linux, where all the images are for it and a node would take the pods.
fn to_linux(
    rollout: &Rollout,
    placement: &Placement,
    workload: &Workload,
    others: &[Node],
) -> Option<Pin> {
    let pin = Pin {
        label: OS_LABEL,
        value: "linux".to_owned(),
    };
    let mut images = placement.images.iter();
    let mut pinned = workload.clone();
    pin.apply(&mut pinned);
    let template = &pinned.template;
    let lands = |node: &Node| pin.admits(node) && template.scheduling.admits(node);
    (images.all(|placed| rollout.images[placed.image].is_for("linux"))
        && template.system() == System::Other
        && others.iter().any(lands))
    .then_some(pin)
}
