//! Effects of a plan's actions on each workload, image and host.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use wincimg_windows::compat::{CompatRule, VerdictOutcome};

use super::PlanAction;
use crate::rollout::placement::PlacedImage;
use crate::rollout::verdict::find;
use crate::rollout::{Finding, HostSelection, Placement, Rollout};

/// Hosts of one kind, all patched by one action or by none.
pub(in crate::rollout) struct HostPart {
    /// Index of their group in the selection.
    pub(in crate::rollout) group: usize,
    kind: usize,
    pub(super) patch: Option<usize>,
    pub(in crate::rollout) hosts: Vec<usize>,
}

/// Indexes of the actions, by what they change.
pub(in crate::rollout) struct Effects<'a> {
    rollout: &'a Rollout,
    actions: &'a [PlanAction],
    /// By the workload.
    pub(in crate::rollout) pins: HashMap<usize, usize>,
    /// By the image.
    pub(in crate::rollout) rebuilds: HashMap<usize, usize>,
    /// By the host.
    pub(in crate::rollout) patches: HashMap<usize, usize>,
}

impl<'a> Effects<'a> {
    pub(in crate::rollout) fn of(actions: &'a [PlanAction], rollout: &'a Rollout) -> Self {
        let mut effects = Self {
            rollout,
            actions,
            pins: HashMap::new(),
            rebuilds: HashMap::new(),
            patches: HashMap::new(),
        };
        for (place, action) in actions.iter().enumerate() {
            match action {
                PlanAction::Pin { workload, .. } => {
                    effects.pins.insert(*workload, place);
                }
                PlanAction::Rebuild { image, .. } => {
                    effects.rebuilds.insert(*image, place);
                }
                PlanAction::Patch { hosts, .. } => {
                    let hosts = hosts.iter().map(|host| (*host, place));
                    effects.patches.extend(hosts);
                }
            }
        }
        effects
    }

    /// Returns true if the pods of a workload can be scheduled on a host after its pin, if it has one.
    pub(super) fn stays(&self, workload: usize, host: usize) -> bool {
        match self.pins.get(&workload).map(|pin| &self.actions[*pin]) {
            Some(PlanAction::Pin { pin, .. }) => pin.admits(&self.rollout.hosts[host]),
            _ => true,
        }
    }

    /// The rebuild of an image that a workload gets, if it does not keep the old tag.
    fn rebuild_of(&self, workload: Option<usize>, image: usize) -> Option<usize> {
        let rebuild = *self.rebuilds.get(&image)?;
        let keeps_tag = |own: usize| match &self.actions[rebuild] {
            PlanAction::Rebuild { keep_tag, .. } => keep_tag.contains(&own),
            _ => false,
        };
        (!workload.is_some_and(keeps_tag)).then_some(rebuild)
    }

    /// The rebuilds of images that a workload gets.
    pub(in crate::rollout) fn rebuilds_of(
        &self,
        workload: Option<usize>,
        images: &[PlacedImage],
    ) -> BTreeSet<usize> {
        let images = images.iter();
        let rebuilds = images.filter_map(|placed| self.rebuild_of(workload, placed.image));
        rebuilds.collect()
    }

    pub(in crate::rollout) fn parts(&self, selection: &HostSelection) -> Vec<HostPart> {
        let groups = selection.groups.iter().enumerate();
        let parts = groups.flat_map(|(group, own)| {
            let mut by_patch: BTreeMap<Option<usize>, Vec<usize>> = BTreeMap::new();
            for host in own.hosts.iter().map(|host| *host as usize) {
                let patch = self.patches.get(&host).copied();
                by_patch.entry(patch).or_default().push(host);
            }
            let by_patch = by_patch.into_iter();
            by_patch.map(move |(patch, hosts)| HostPart {
                group,
                kind: own.kind,
                patch,
                hosts,
            })
        });
        parts.collect()
    }

    /// Returns true if new pods of a workload start on one of these hosts after the first `done`
    /// actions, and go there.
    pub(super) fn starts_on_any(
        &self,
        placement: &Placement,
        done: usize,
        is_among: impl Fn(usize) -> bool,
    ) -> bool {
        let own = placement.workload;
        let stays = |host: usize| own.is_none_or(|own| self.stays(own, host));
        let takes_pods = |host: usize| is_among(host) && stays(host) && self.takes_pods(host, done);
        self.parts(&placement.selection).iter().any(|part| {
            let mut outcomes = self.outcomes(own, &placement.images, part, |action| action < done);
            part.hosts.iter().any(|host| takes_pods(*host))
                && outcomes.all(|(outcome, _)| outcome != VerdictOutcome::Incompatible)
        })
    }

    /// Returns true if a host takes new pods after the first `done` actions. The step after a patch
    /// uncordons it.
    fn takes_pods(&self, host: usize, done: usize) -> bool {
        let is_patched = self.patches.get(&host).is_some_and(|patch| *patch < done);
        let mut actions = self.actions[..done].iter();
        let mut is_held = || {
            actions.any(|action| match action {
                PlanAction::Rebuild { holds, .. } => holds.contains(&host),
                PlanAction::Pin { .. } | PlanAction::Patch { .. } => false,
            })
        };
        is_patched || self.rollout.hosts[host].takes_pods() && !is_held()
    }

    /// Outcomes of a workload's images on a part of the hosts after the actions that are done, and
    /// their rules.
    pub(in crate::rollout) fn outcomes(
        &self,
        workload: Option<usize>,
        images: &[PlacedImage],
        part: &HostPart,
        is_done: impl Fn(usize) -> bool,
    ) -> impl Iterator<Item = (VerdictOutcome, &'static str)> {
        let patch = part.patch.filter(|patch| is_done(*patch));
        images.iter().map(move |placed| {
            let rebuild = self.rebuild_of(workload, placed.image);
            let rebuild = rebuild.filter(|rebuild| is_done(*rebuild));
            let finding = &placed.findings[part.group];
            self.verdict(placed.image, part.kind, finding, rebuild, patch)
        })
    }

    /// Outcome of an image on a kind of host after these actions rebuild the image and patch the
    /// host, and its rule.
    fn verdict(
        &self,
        image: usize,
        kind: usize,
        finding: &Finding,
        rebuild: Option<usize>,
        patch: Option<usize>,
    ) -> (VerdictOutcome, &'static str) {
        let becomes = rebuild.and_then(|rebuild| match &self.actions[rebuild] {
            PlanAction::Rebuild { becomes, .. } => Some(becomes.as_ref()),
            _ => None,
        });
        let to = patch.and_then(|patch| match &self.actions[patch] {
            PlanAction::Patch { to, .. } => Some(*to),
            _ => None,
        });
        if finding.is_of_pod || becomes.is_none() && to.is_none() {
            return (finding.outcome, finding.rule);
        }
        let mut kind = self.rollout.kinds[kind].clone();
        if let (Some(build), Some(to)) = (&mut kind.build, to) {
            build.version = to;
        }
        let image = becomes.unwrap_or(&self.rollout.images[image]);
        let found = find(&kind, image, finding.isolation);
        (found.outcome, found.rule)
    }
}

/// Returns true if an outcome by a rule is that an image starts, and not that it is reported to
/// fail.
pub(super) fn is_expected_to_start((outcome, rule): (VerdictOutcome, &str)) -> bool {
    outcome <= VerdictOutcome::Warning && rule != CompatRule::HostReportedBroken.name()
}
