//! Pods that run today, as far as the input has them, where no controller moves them to the new
//! state: Jobs with an old template, pods and volumes that a drain does not delete.

use std::collections::{BTreeMap, BTreeSet};

use super::effects::Effects;
use super::rebuild::new_name;
use super::{Interruption, Pin, PlanAction};
use crate::nodes::Node;
use crate::rollout::commands::{CommandFlags, DrainedHost, adopt_steps, kubectl_command};
use crate::rollout::{ActionStep, Placement, Rollout};
use crate::workloads::{Workload, WorkloadId};

/// The steps that delete the live Jobs of a `CronJob` whose pods do not start. They keep its old
/// template, and may block the next run, which makes another Job.
pub(super) fn delete_jobs(
    rollout: &Rollout,
    workload: usize,
    flags: &CommandFlags,
) -> Vec<ActionStep> {
    let own = &rollout.workloads[workload];
    let Some(placement) = rollout.placement_of(workload) else {
        return Vec::new();
    };
    let fails = |group: u32| placement.fails_in(group as usize);
    let hosts = &placement.selection.hosts;
    let jobs = own.jobs.iter().filter(|job| {
        let images = own.template.containers.iter().map(|it| &it.image);
        let is_on = |host: u32| {
            let name = rollout.hosts[host as usize].name.as_ref();
            name.is_some_and(|name| job.nodes.contains(name))
        };
        let fails_there = match &job.nodes[..] {
            [] => !hosts.is_empty() && hosts.iter().all(|&(_, group)| fails(group)),
            _ => hosts
                .iter()
                .any(|&(host, group)| is_on(host) && fails(group)),
        };
        job.images.iter().eq(images) && fails_there
    });
    let steps = jobs.map(|job| {
        let delete = kubectl_command(&["delete", "job", &job.name], own, flags);
        ActionStep::Command(format!("{delete} --ignore-not-found"))
    });
    steps.collect()
}

/// Returns true if the running pods of a workload keep the old image until their node is patched, if
/// it is.
pub(super) fn keeps_image(own: &Workload) -> bool {
    is_on_node(own) || own.id.kind == "DaemonSet" && own.controller.updates_on_delete()
}

/// Returns true for a pod that the kubelet of its node restarts in place with a changed image, as
/// far as the input tells.
pub(super) fn is_on_node(own: &Workload) -> bool {
    let is_bound = own.id.kind == "Pod" && own.template.scheduling.node_name.is_some();
    is_bound || is_unscheduled(own)
}

/// Returns true for the manifest of a pod that names no node: the pod may be on each node that
/// admits it.
fn is_unscheduled(own: &Workload) -> bool {
    let is_manifest = own.manifest().is_some();
    is_manifest && own.is_bare_pod() && own.template.scheduling.node_name.is_none()
}

/// Returns true for a pod on this node, with or without a manifest there.
fn is_bound_to(own: &Workload, node: &Node) -> bool {
    let is_pod = own.id.kind == "Pod" && own.id.group.is_empty();
    is_pod && node.name.is_some() && own.template.scheduling.node_name == node.name
}

/// A host with the steps of its pods that no controller moves to the new state.
pub(super) fn drained_host<'a>(
    rollout: &'a Rollout,
    host: usize,
    pins: &BTreeMap<usize, Pin>,
    rebuilds: &[PlanAction],
    flags: &CommandFlags,
) -> DrainedHost<'a> {
    let node = &rollout.hosts[host];
    let mut drained = DrainedHost {
        node,
        before: Vec::new(),
        if_there: Vec::new(),
        drained: Vec::new(),
        on_delete: Vec::new(),
        has_empty_dir: false,
    };
    let stays = |own: usize| pins.get(&own).is_none_or(|pin| pin.admits(node));
    for (_, workload, _) in landed(rollout, host, stays) {
        let own = &rollout.workloads[workload];
        drained.has_empty_dir |= own.loses_empty_dir();
        let is_unscheduled = is_unscheduled(own);
        if is_unscheduled || is_bound_to(own, node) {
            let (before, after) = if is_unscheduled {
                (&mut drained.if_there, None)
            } else {
                (&mut drained.before, Some(&mut drained.drained))
            };
            let mut images = Vec::new();
            let mut by_hand = Vec::new();
            for (from, to) in rebuilt_images(rollout, own, rebuilds) {
                let steps = adopt_steps(own, from, to.as_deref(), Vec::new(), flags);
                let steps = steps.into_iter();
                by_hand.extend(steps.filter(|step| matches!(step, ActionStep::Manual(_))));
                images.extend(to);
            }
            if own.is_bare_pod() {
                before.push(recreate_step(&own.id, is_unscheduled, &images));
            }
            after.unwrap_or(before).extend(by_hand);
        } else if keeps_image(own) && !rebuilt_images(rollout, own, rebuilds).is_empty() {
            drained.on_delete.push(&own.id);
        }
    }
    drained
}

/// The step for a pod that drain refuses.
fn recreate_step(id: &WorkloadId, is_unscheduled: bool, images: &[String]) -> ActionStep {
    let condition = if is_unscheduled {
        ", if it is on this node"
    } else {
        ""
    };
    let with = match images {
        [] => String::new(),
        [image] => format!(" with the image {image}"),
        images => format!(" with the images {}", images.join(", ")),
    };
    ActionStep::Manual(format!(
        "delete {id}, which drain refuses (it has no controller){condition}; create it again after \
         the uncordon{with}"
    ))
}

/// The images of a workload that are rebuilt, each with its new name if it gets one.
fn rebuilt_images<'a>(
    rollout: &'a Rollout,
    own: &Workload,
    rebuilds: &[PlanAction],
) -> Vec<(&'a str, Option<String>)> {
    let images = rebuilds.iter().filter_map(|action| {
        let PlanAction::Rebuild { image, new_tag, .. } = action else {
            return None;
        };
        let image = &rollout.images[*image];
        let name = image.reference.as_deref()?;
        let mut containers = own.template.containers.iter();
        let is_own = containers.any(|container| container.image == name);
        is_own.then(|| (name, new_name(image, new_tag.as_deref())))
    });
    images.collect()
}

/// The placed workloads whose pods may be on a host when it is drained, each with true if they start
/// there today. `stays` is true for a workload that its pin leaves there.
fn landed(
    rollout: &Rollout,
    host: usize,
    stays: impl Fn(usize) -> bool,
) -> impl Iterator<Item = (&Placement, usize, bool)> {
    rollout.placements.iter().filter_map(move |placement| {
        let workload = placement.workload?;
        let hosts = &placement.selection.hosts;
        let place = hosts.binary_search_by_key(&host, |&(own, _)| own as usize);
        let group = hosts[place.ok()?].1 as usize;
        stays(workload).then(|| (placement, workload, !placement.fails_in(group)))
    })
}

/// What the drains of patches end: `emptyDir` volumes, pods without a controller, and pods that find
/// no other host, beyond the known interruptions.
pub(super) fn ended_by_drains(
    rollout: &Rollout,
    actions: &[PlanAction],
    known: &[Interruption],
) -> Vec<Interruption> {
    let effects = Effects::of(actions, rollout);
    let mut all = Vec::new();
    for (place, action) in actions.iter().enumerate() {
        let PlanAction::Patch { hosts, .. } = action else {
            continue;
        };
        let mut ended: BTreeMap<(bool, usize), Vec<usize>> = BTreeMap::new();
        let mut seen = BTreeSet::new();
        for &host in hosts {
            let landed = landed(rollout, host, |own| effects.stays(own, host));
            for (placement, workload, _) in landed.filter(|(.., starts)| *starts) {
                let own = &rollout.workloads[workload];
                let is_there = is_unscheduled(own) || is_bound_to(own, &rollout.hosts[host]);
                // The next hosts are drained when this one takes pods again.
                let is_first = seen.insert(workload);
                let is_stopped = if own.is_bare_pod() {
                    is_there
                } else {
                    is_first
                        && own.is_evicted()
                        && !known.iter().any(|it| it.covers(workload, host, place))
                        && !effects.starts_on_any(placement, place, |other| other != host)
                };
                for (loses_data, is_ended) in [(false, is_stopped), (true, own.loses_empty_dir())] {
                    if is_ended {
                        ended.entry((loses_data, workload)).or_default().push(host);
                    }
                }
            }
        }
        let ended = ended.into_iter();
        all.extend(ended.map(|((loses_data, workload), hosts)| Interruption {
            workload,
            hosts,
            from: place,
            until: Some(place),
            loses_data,
        }));
    }
    all
}
