//! Effects of a plan's actions on each workload, image and host.

use std::collections::HashMap;

use wincimg_windows::compat::{CompatRule, VerdictOutcome};

use super::PlanAction;
use crate::rollout::finding::find;
use crate::rollout::{Finding, Rollout};

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

    /// Outcome of an image on a kind of host after the image is rebuilt or the host patched by an
    /// action, and its rule.
    pub(in crate::rollout) fn verdict(
        &self,
        image: usize,
        kind: usize,
        finding: &Finding,
        is_rebuilt: bool,
        patch: Option<usize>,
    ) -> (VerdictOutcome, &'static str) {
        let rebuild = self.rebuilds.get(&image).filter(|_| is_rebuilt);
        let becomes = rebuild.and_then(|rebuild| match &self.actions[*rebuild] {
            PlanAction::Rebuild { becomes, .. } => Some(becomes),
            _ => None,
        });
        let to = patch.and_then(|patch| match &self.actions[patch] {
            PlanAction::Patch { to, .. } => Some(*to),
            _ => None,
        });
        if finding.is_of_handler() || becomes.is_none() && to.is_none() {
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
    matches!(
        outcome,
        VerdictOutcome::Compatible | VerdictOutcome::Warning
    ) && rule != CompatRule::HostReportedBroken.name()
}
