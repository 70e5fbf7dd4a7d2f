//! Order of the actions, and the interruptions in between.
//!
//! Pins come first: they move pods off nodes where they do not start, and later actions cannot
//! break those pods. Rebuilds that break nothing are next.
//!
//! A host that crosses a change of the interface and the images of its pods change together: until
//! both are on the new side, new pods do not start there. The image is first, for the roll-out of
//! most Deployments stops no pod before its successor starts, while a host is drained before it is
//! patched. From the first of them until its patch the host is cordoned, so that new pods go to
//! other hosts, or wait for one. Only those of a `DaemonSet` do not heed that.

use std::collections::{BTreeMap, BTreeSet};

use wincimg_windows::compat::VerdictOutcome;

use super::effects::{Effects, HostPart};
use super::running::keeps_image;
use super::{Interruption, PlanAction};
use crate::rollout::{Placement, Rollout};
use crate::workloads::Workload;

/// Hosts where the pods of a workload start today and can be scheduled throughout.
struct HostSet<'a> {
    placement: &'a Placement,
    part: HostPart,
    /// Actions that affect these hosts, in order.
    actions: BTreeSet<usize>,
}

/// Sorts actions; those of one kind keep their order.
pub(super) fn ordered(rollout: &Rollout, actions: Vec<PlanAction>) -> Vec<PlanAction> {
    let mut before: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let mut held: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let effects = Effects::of(&actions, rollout);
    for place in affected_places(rollout, &effects) {
        let Some(patch) = place.part.patch else {
            continue;
        };
        if interrupted_intervals(&effects, &place, false).is_empty() {
            continue;
        }
        let own = place.placement.workload.map(|own| &rollout.workloads[own]);
        for rebuild in place.actions.iter().filter(|action| **action != patch) {
            before.entry(patch).or_default().insert(*rebuild);
            let hosts = held.entry(*rebuild).or_default();
            if own.is_none_or(heeds_cordon) {
                hosts.extend(&place.part.hosts);
            }
        }
    }
    let mut order: Vec<usize> = Vec::with_capacity(actions.len());
    let is_free = |index: &usize| match actions[*index] {
        PlanAction::Pin { .. } => true,
        PlanAction::Rebuild { .. } => !held.contains_key(index),
        PlanAction::Patch { .. } => false,
    };
    order.extend((0..actions.len()).filter(is_free));
    let patches = actions.iter().enumerate();
    let patches = patches.filter(|(_, action)| matches!(action, PlanAction::Patch { .. }));
    for (patch, _) in patches {
        let rebuilds = before.remove(&patch).unwrap_or_default();
        let rebuilds = rebuilds.into_iter().filter(|own| !order.contains(own));
        let rebuilds: Vec<usize> = rebuilds.collect();
        order.extend(rebuilds);
        order.push(patch);
    }
    let mut actions: Vec<Option<PlanAction>> = actions.into_iter().map(Some).collect();
    let mut cordoned = BTreeSet::new();
    let in_order = order.into_iter().filter_map(|index| {
        let mut action = actions[index].take()?;
        if let (PlanAction::Rebuild { holds, .. }, Some(hosts)) = (&mut action, held.remove(&index))
        {
            let hosts = hosts.into_iter();
            *holds = hosts.filter(|host| cordoned.insert(*host)).collect();
        }
        Some(action)
    });
    in_order.collect()
}

/// Returns true if new pods of a workload do not go to a cordoned host.
fn heeds_cordon(workload: &Workload) -> bool {
    workload.id.kind != "DaemonSet" && workload.template.scheduling.node_name.is_none()
}

/// Workloads that do not start between some of the actions, though they do today. Until a patch,
/// that is those whose new image does not wait for it, and that do not heed the cordon of its hosts,
/// or whose pods a roll-out stops before their successors find another host.
pub(super) fn interruptions(rollout: &Rollout, actions: &[PlanAction]) -> Vec<Interruption> {
    let effects = Effects::of(actions, rollout);
    let mut all: BTreeMap<(usize, usize, Option<usize>), BTreeSet<usize>> = BTreeMap::new();
    for place in affected_places(rollout, &effects) {
        let Some(workload) = place.placement.workload else {
            continue;
        };
        let own = &rollout.workloads[workload];
        let keeps_image = keeps_image(own);
        let keeps_running = |from: usize| {
            own.is_bare_pod()
                || own.controller.surges()
                || effects.starts_on_any(place.placement, from + 1, |_| true)
        };
        let is_spared = |from: usize| keeps_image || heeds_cordon(own) && keeps_running(from);
        let mut intervals = interrupted_intervals(&effects, &place, keeps_image);
        intervals.retain(|&(from, until)| until.is_none() || !is_spared(from));
        for (from, until) in intervals {
            let hosts = all.entry((from, workload, until)).or_default();
            hosts.extend(&place.part.hosts);
        }
    }
    let all = all.into_iter();
    let all = all.map(|((from, workload, until), hosts)| Interruption {
        workload,
        hosts: hosts.into_iter().collect(),
        from,
        until,
        loses_data: false,
    });
    all.collect()
}

/// Intervals of actions in which pods do not start in a place. `keeps_image` is true for those that
/// get a rebuilt image only with the patch of their node.
fn interrupted_intervals(
    effects: &Effects<'_>,
    place: &HostSet<'_>,
    keeps_image: bool,
) -> Vec<(usize, Option<usize>)> {
    let starts_after = |last: usize| {
        let (workload, images) = (place.placement.workload, &place.placement.images);
        let has_image = !keeps_image || place.part.patch.is_none_or(|patch| patch <= last);
        let is_done = |action: usize| has_image && action <= last;
        let mut outcomes = effects.outcomes(workload, images, &place.part, is_done);
        outcomes.all(|(after, _)| after != VerdictOutcome::Incompatible)
    };
    let mut lost = Vec::new();
    let mut since = None;
    for &action in &place.actions {
        match (since, starts_after(action)) {
            (None, false) => since = Some(action),
            (Some(from), true) => {
                lost.push((from, Some(action)));
                since = None;
            }
            _ => {}
        }
    }
    lost.extend(since.map(|from| (from, None)));
    lost
}

/// Places where workloads start today and an action has an effect. Pods of a cordoned host run on,
/// and come back when it is uncordoned.
fn affected_places<'a>(rollout: &'a Rollout, effects: &Effects<'_>) -> Vec<HostSet<'a>> {
    let mut places = Vec::new();
    for placement in &rollout.placements {
        let Some(workload) = placement.workload else {
            continue;
        };
        let rebuilds = effects.rebuilds_of(Some(workload), &placement.images);
        let parts = effects.parts(&placement.selection).into_iter();
        let parts = parts.map(|mut part| {
            part.hosts.retain(|host| effects.stays(workload, *host));
            HostSet {
                placement,
                actions: rebuilds.iter().copied().chain(part.patch).collect(),
                part,
            }
        });
        places.extend(parts.filter(|place| {
            let is_affected = !place.actions.is_empty() && !place.part.hosts.is_empty();
            is_affected && !placement.fails_in(place.part.group)
        }));
    }
    places
}
