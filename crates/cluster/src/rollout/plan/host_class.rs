//! Classes of hosts that are equal for a plan: of one kind, with the same workloads, and with the
//! same labels as far as workloads may be pinned to them.

use std::collections::{BTreeMap, HashMap};

use super::pin::Pin;
use crate::rollout::Rollout;

/// A class of equal hosts.
pub(super) struct Class {
    pub(super) kind: usize,
    pub(super) hosts: Vec<usize>,
    open_to: Vec<LandingOption>,
}

/// A placement that includes a host.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct LandingOption {
    placement: u32,
    /// True if its pin would exclude the host.
    unless_pinned: bool,
}

/// The classes of all hosts of a rollout with a known build, for all pins that a plan may have.
pub(super) fn classify(rollout: &Rollout, pins: &BTreeMap<usize, Pin>) -> Vec<Class> {
    let mut of_host: Vec<Vec<LandingOption>> = vec![Vec::new(); rollout.hosts.len()];
    for (index, placement) in (0..).zip(&rollout.placements) {
        let pin = placement.workload.and_then(|workload| pins.get(&workload));
        for &(host, _) in &placement.selection.hosts {
            let host = host as usize;
            of_host[host].push(LandingOption {
                placement: index,
                unless_pinned: pin.is_some_and(|pin| !pin.admits(&rollout.hosts[host])),
            });
        }
    }
    let mut places = HashMap::new();
    let mut classes: Vec<Class> = Vec::new();
    for (host, open_to) in of_host.into_iter().enumerate() {
        let kind = rollout.kind_of[host];
        if rollout.kinds[kind].build.is_none() {
            continue;
        }
        let place = *places.entry((kind, open_to)).or_insert(classes.len());
        if place == classes.len() {
            classes.push(Class {
                kind,
                hosts: Vec::new(),
                open_to: Vec::new(),
            });
        }
        classes[place].hosts.push(host);
    }
    for ((_, open_to), place) in places {
        classes[place].open_to = open_to;
    }
    classes
}

impl Class {
    /// The placements that include these hosts after pinning.
    pub(super) fn placements(&self, rollout: &Rollout, pins: &BTreeMap<usize, Pin>) -> Vec<u32> {
        let is_pinned = |placement: u32| {
            let workload = rollout.placements[placement as usize].workload;
            workload.is_some_and(|workload| pins.contains_key(&workload))
        };
        let open = self.open_to.iter();
        open.filter(|open| !open.unless_pinned || !is_pinned(open.placement))
            .map(|open| open.placement)
            .collect()
    }
}
