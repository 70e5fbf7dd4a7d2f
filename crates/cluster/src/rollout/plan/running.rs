//! Pods that run today, as far as the input has them, where no controller moves them to the new
//! state: Jobs with an old template, pods and volumes that a drain does not delete.

use std::collections::{BTreeMap, HashMap};

use wincimg_windows::compat::VerdictOutcome;

use super::{ActionSteps, Interruption, Pin, PlanAction, adopt_steps, new_name};
use crate::rollout::commands::{CommandFlags, DrainedHost, shell_command};
use crate::rollout::{ActionStep, Rollout};

/// The steps that delete the live Jobs of a `CronJob` whose pods do not start. They keep its old
/// template, and may block the next run, which makes another Job.
pub(super) fn delete_jobs(
    rollout: &Rollout,
    workload: usize,
    flags: &CommandFlags,
) -> Vec<ActionStep> {
    let own = &rollout.workloads[workload];
    let mut placements = rollout.placements.iter();
    let Some(placement) = placements.find(|placement| placement.workload == Some(workload)) else {
        return Vec::new();
    };
    let fails = |group: u32| {
        let mut images = placement.images.iter();
        images.any(|placed| placed.findings[group as usize].outcome == VerdictOutcome::Incompatible)
    };
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
        let mut words = vec!["kubectl", "delete", "job", &job.name];
        words.extend(["--namespace", &own.id.namespace, "--ignore-not-found"]);
        words.extend(flags.kubectl.iter().map(String::as_str));
        ActionStep::Command(shell_command(&words))
    });
    steps.collect()
}

/// A host with what its drain would be refused for.
pub(super) fn drained_host<'a>(
    rollout: &'a Rollout,
    host: usize,
    pins: &BTreeMap<usize, Pin>,
) -> DrainedHost<'a> {
    let node = &rollout.hosts[host];
    let workloads = rollout.workloads.iter().filter(|own| {
        own.is_bare_pod() && node.name.is_some() && own.template.scheduling.node_name == node.name
    });
    DrainedHost {
        node,
        bare_pods: workloads.map(|own| &own.id).collect(),
        has_empty_dir: with_empty_dir(rollout, host, |workload| pins.get(&workload))
            .next()
            .is_some(),
    }
}

/// The workloads whose pods may have `emptyDir` volumes on a host when it is drained.
fn with_empty_dir<'a>(
    rollout: &'a Rollout,
    host: usize,
    pin_of: impl Fn(usize) -> Option<&'a Pin>,
) -> impl Iterator<Item = usize> {
    let placements = rollout.placements.iter().filter(move |placement| {
        let hosts = &placement.selection.hosts;
        placement.workload.is_some_and(|workload| {
            rollout.workloads[workload].loses_empty_dir()
                && hosts
                    .binary_search_by_key(&host, |&(own, _)| own as usize)
                    .is_ok()
                && pin_of(workload).is_none_or(|pin| pin.admits(&rollout.hosts[host]))
        })
    });
    placements.filter_map(|placement| placement.workload)
}

/// The `emptyDir` volumes that the drains of patches delete.
pub(super) fn lost_data(rollout: &Rollout, actions: &[PlanAction]) -> Vec<Interruption> {
    let pins = actions.iter().filter_map(|action| match action {
        PlanAction::Pin { workload, pin, .. } => Some((*workload, pin)),
        _ => None,
    });
    let pins: HashMap<usize, &Pin> = pins.collect();
    let mut all = Vec::new();
    for (place, action) in actions.iter().enumerate() {
        let PlanAction::Patch { hosts, .. } = action else {
            continue;
        };
        let mut lost: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &host in hosts {
            for workload in with_empty_dir(rollout, host, |own| pins.get(&own).copied()) {
                lost.entry(workload).or_default().push(host);
            }
        }
        all.extend(lost.into_iter().map(|(workload, hosts)| Interruption {
            workload,
            hosts,
            from: place,
            until: Some(place),
            loses_data: true,
        }));
    }
    all
}

/// Gives a pod that runs on a host its new image after the patch of the host: the kubelet restarts
/// the container in place, where the image does not start before.
pub(super) fn defer_images(
    rollout: &Rollout,
    actions: &mut [PlanAction],
    interruptions: &[Interruption],
    flags: &CommandFlags,
) {
    for Interruption {
        workload,
        from,
        until,
        ..
    } in interruptions
    {
        let own = &rollout.workloads[*workload];
        if !own.is_bare_pod() || own.template.scheduling.node_name.is_none() {
            continue;
        }
        let Some(until) = *until else { continue };
        let PlanAction::Rebuild {
            image,
            new_tag,
            steps,
            ..
        } = &mut actions[*from]
        else {
            continue;
        };
        let image = &rollout.images[*image];
        let name = image.reference.as_deref().unwrap_or_default();
        let new = new_name(image, new_tag.as_deref());
        let deferred = take(
            steps,
            &adopt_steps(own, name, new.as_deref(), Vec::new(), flags),
        );
        if let PlanAction::Patch { steps, .. } = &mut actions[until] {
            steps.rest.extend(deferred);
        }
    }
}

/// Removes some of the steps, and returns those that were there.
fn take(steps: &mut ActionSteps, some: &[ActionStep]) -> Vec<ActionStep> {
    let is_own = |step: &ActionStep| some.contains(step);
    let commands = std::mem::take(&mut steps.commands).into_iter();
    let (mut taken, commands): (Vec<_>, Vec<_>) =
        commands.map(ActionStep::Command).partition(is_own);
    let rest = std::mem::take(&mut steps.rest).into_iter();
    let (of_rest, rest): (Vec<_>, Vec<_>) = rest.partition(is_own);
    taken.extend(of_rest);
    *steps = ActionSteps::new(commands.into_iter().chain(rest), usize::MAX);
    taken
}
