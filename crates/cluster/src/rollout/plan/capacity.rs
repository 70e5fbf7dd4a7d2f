//! Number of nodes on which each workload starts, before and after each action.

use std::collections::BTreeSet;

use serde::Serialize;

use super::effects::{Effects, HostPart, is_expected_to_start};
use super::running::keeps_image;
use super::{Pin, PlanAction};
use crate::controller::HOSTNAME_LABEL;
use crate::nodes::Node;
use crate::rollout::{Placement, Rollout, host_names};
use crate::workloads::Workload;

/// Nodes of a workload before and after an action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapacityChange {
    /// Index into the workloads.
    pub workload: usize,
    /// Nodes before the action.
    pub before: NodeCounts,
    /// Nodes after it.
    pub after: NodeCounts,
}

/// Nodes where the pods of a workload can be scheduled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct NodeCounts {
    /// Number of nodes on which they start.
    pub starts: usize,
    /// Number of all nodes.
    pub of: usize,
}

/// The workloads whose nodes each action changes.
pub(super) fn changes(rollout: &Rollout, actions: &[PlanAction]) -> Vec<Vec<CapacityChange>> {
    let effects = Effects::of(actions, rollout);
    let mut changes = vec![Vec::new(); actions.len()];
    for placement in &rollout.placements {
        let Some(workload) = placement.workload else {
            continue;
        };
        let nodes = WorkloadNodes::new(placement, workload, &effects, rollout);
        let mut before = nodes.count(None);
        for &action in &nodes.actions {
            let after = nodes.count(Some(action));
            if after != before {
                changes[action].push(CapacityChange {
                    workload,
                    before,
                    after,
                });
            }
            before = after;
        }
    }
    changes
}

/// Why the pods of a workload may find no node where a pin leaves these hosts, if they may not. Pods
/// of a `DaemonSet` are also scheduled on nodes that take no others.
pub(super) fn shortage(
    workload: &Workload,
    pin: &Pin,
    hosts: &[usize],
    rollout: &Rollout,
) -> Option<String> {
    if hosts.is_empty() || workload.id.kind == "DaemonSet" {
        return None;
    }
    let scheduling = &workload.template.scheduling;
    let others = rollout.others.iter();
    let others = others.filter(|node| pin.admits(node) && scheduling.admits(node));
    let nodes = hosts.iter().map(|host| &rollout.hosts[*host]);
    let nodes = nodes.chain(others).filter(|node| node.takes_pods());
    let remaining: Vec<&Node> = nodes.collect();
    if remaining.is_empty() {
        return Some(format!(
            "no new pods go to {} while cordoned or not ready",
            host_names(rollout, hosts)
        ));
    }
    let own = &workload.controller;
    let needed = own.replicas;
    let counts = own.separating_labels.iter();
    let mut counts = counts.filter_map(|label| Some((label, topologies(&remaining, label)?)));
    if let Some((label, left)) = counts.find(|(_, left)| *left < needed) {
        let what = match label.as_str() {
            HOSTNAME_LABEL => "nodes".to_owned(),
            label => format!("values of {label}"),
        };
        return Some(format!(
            "{needed} replicas need {needed} {what}; {left} remain"
        ));
    }
    let constraint = own.constraint()?;
    Some(format!("its {constraint} may leave pods pending"))
}

/// Number of values that a label has on these nodes; none if one lacks it, where any number of pods
/// may be scheduled.
fn topologies(nodes: &[&Node], label: &str) -> Option<usize> {
    if label == HOSTNAME_LABEL {
        return Some(nodes.len());
    }
    let values = nodes.iter().map(|node| node.labels.get(label));
    let values: BTreeSet<&String> = values.collect::<Option<_>>()?;
    Some(values.len())
}

struct WorkloadNodes<'a> {
    placement: &'a Placement,
    effects: &'a Effects<'a>,
    pin: Option<usize>,
    /// True if its pods get a rebuilt image only with the patch of their node.
    keeps_image: bool,
    /// Each with the number of hosts that the workload's pin admits.
    parts: Vec<(HostPart, usize)>,
    /// Actions that affect the workload, in order.
    actions: BTreeSet<usize>,
}

impl<'a> WorkloadNodes<'a> {
    fn new(
        placement: &'a Placement,
        workload: usize,
        effects: &'a Effects<'a>,
        rollout: &Rollout,
    ) -> Self {
        let pin = effects.pins.get(&workload).copied();
        let parts = effects.parts(&placement.selection).into_iter().map(|part| {
            let hosts = part.hosts.iter();
            let pinned = hosts.filter(|host| effects.stays(workload, **host)).count();
            (part, pinned)
        });
        let parts: Vec<_> = parts.collect();
        let mut own = effects.rebuilds_of(Some(workload), &placement.images);
        own.extend(parts.iter().filter_map(|(part, _)| part.patch));
        own.extend(pin);
        Self {
            placement,
            effects,
            pin,
            keeps_image: keeps_image(&rollout.workloads[workload]),
            parts,
            actions: own,
        }
    }

    /// The nodes after all actions up to this one.
    fn count(&self, last: Option<usize>) -> NodeCounts {
        let is_done = |action: usize| last.is_some_and(|last| action <= last);
        let is_pinned = self.pin.is_some_and(is_done);
        let mut counts = NodeCounts { starts: 0, of: 0 };
        for (part, pinned) in &self.parts {
            let hosts = if is_pinned { *pinned } else { part.hosts.len() };
            counts.of += hosts;
            let has_image = !self.keeps_image || part.patch.is_none_or(is_done);
            let is_done_here = |action: usize| has_image && is_done(action);
            let (workload, images) = (self.placement.workload, &self.placement.images);
            let mut outcomes = self.effects.outcomes(workload, images, part, is_done_here);
            if outcomes.all(is_expected_to_start) {
                counts.starts += hosts;
            }
        }
        counts
    }
}
