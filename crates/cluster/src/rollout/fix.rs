//! Fix of each finding, taken from the plan so that no two fixes contradict each other.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use wincimg_oci::reference::{parse_reference, repository_of};
use wincimg_windows::compat::{Concern, HostBuild, VerdictOutcome};

use super::commands::{CommandFlags, TemplateChange, image_step, inspect_command, mirror_command};
use super::fix_text::{
    ITS_CONTAINERD, NEW_INDEX, is_fixable, is_of_host_process, refused_in_index,
};
use super::image::Image;
use super::placement::{HostSelection, PlacedImage};
use super::plan::{ActionPlan, ActionStep, Effects, HostPart, Pin, PlanAction, to_a_build};
use super::tags::{TagsByRepository, find_matching_tag, mirrored_base, with_tag};
use super::verdict::{OR_LINUX, own_variant};
use super::{Finding, HostKind, Placement, Rollout, RolloutRequest, SharedFinding, host_names};

/// Maximum of actions that a finding lists; with more, it refers to the plan.
pub(super) const MOST_ACTIONS: usize = 8;

/// Maximum of commands that a finding lists: a rebuild has one for each workload with the image, and
/// each of these has the finding.
const MOST_COMMANDS: usize = 50;

impl Rollout {
    /// Creates the plan, and adds to every finding the actions that fix it.
    pub fn advise(&mut self, request: &RolloutRequest, tags: &TagsByRepository) -> ActionPlan {
        let plan = ActionPlan::new(request, self, tags);
        let advisor = FixResolver::new(&plan, self, &request.flags, tags);
        let advice: Vec<Vec<SharedFinding>> = advisor.all();
        let notices: Vec<Option<Finding>> = self
            .notices
            .iter()
            .map(|notice| {
                let workload = notice.workload?;
                let is_about_it = notice.finding.rule == Concern::NoWindowsSelector.name()
                    && self.workloads[workload].template.missing_class().is_none();
                is_about_it.then(|| advisor.pin_to_windows(&notice.finding, workload))
            })
            .collect();
        let placed = self.placements.iter_mut().flat_map(|it| &mut it.images);
        for (placed, advice) in placed.zip(advice) {
            placed.findings = advice;
        }
        for (notice, advised) in self.notices.iter_mut().zip(notices) {
            if let Some(advised) = advised {
                notice.finding = Rc::new(advised);
            }
        }
        plan
    }
}

struct FindingContext<'a> {
    place: usize,
    image: &'a Image,
    kind: &'a HostKind,
    placement: &'a Placement,
}

/// Resolves findings to actions.
struct FixResolver<'a> {
    plan: &'a ActionPlan,
    rollout: &'a Rollout,
    flags: &'a CommandFlags,
    tags: &'a TagsByRepository,
    effects: Effects<'a>,
    parts: HashMap<*const HostSelection, Vec<HostPart>>,
    /// Title of each action, for findings about other subjects.
    titles: Vec<String>,
}

/// Inputs of a fix: the finding, the image, the actions, and for a third-party image the placement.
type FixKey = (*const Finding, usize, Rc<Fix>, Option<usize>);

/// Actions that fix a finding.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct Fix {
    actions: BTreeSet<usize>,
    /// True if, run alone, they would break an image that starts today.
    breaks_others: bool,
}

impl<'a> FixResolver<'a> {
    fn new(
        plan: &'a ActionPlan,
        rollout: &'a Rollout,
        flags: &'a CommandFlags,
        tags: &'a TagsByRepository,
    ) -> Self {
        let effects = Effects::of(&plan.actions, rollout);
        let mut parts = HashMap::new();
        for placement in &rollout.placements {
            let selection = &placement.selection;
            let known = parts.entry(Rc::as_ptr(selection));
            known.or_insert_with(|| effects.parts(selection));
        }
        Self {
            plan,
            rollout,
            flags,
            tags,
            effects,
            parts,
            titles: plan
                .actions
                .iter()
                .map(|action| action.title(rollout))
                .collect(),
        }
    }

    /// The findings of every image of every placement, with their fixes; equal ones are shared.
    fn all(&self) -> Vec<Vec<SharedFinding>> {
        let mut known: HashMap<FixKey, SharedFinding> = HashMap::new();
        let mut fixes: HashMap<BTreeSet<usize>, Rc<Fix>> = HashMap::new();
        let mut all = Vec::new();
        for (index, placement) in self.rollout.placements.iter().enumerate() {
            // Images given by themselves have a fix each.
            let mut fix_of = |images: &[PlacedImage]| {
                let fix = fixes.entry(self.minimal_fix(index, images));
                let fix = fix.or_insert_with_key(|actions| {
                    Rc::new(Fix {
                        actions: actions.clone(),
                        breaks_others: self.breaks_others(actions),
                    })
                });
                Rc::clone(fix)
            };
            let of_workload = placement.workload.map(|_| fix_of(&placement.images));
            for placed in &placement.images {
                let of_workload = of_workload.clone();
                let minimal_fix =
                    of_workload.unwrap_or_else(|| fix_of(std::slice::from_ref(placed)));
                let groups = placement.selection.groups.iter().zip(&placed.findings);
                let advised = groups.map(|(group, finding)| {
                    // For a third-party image the command changes this workload.
                    let is_of_one = self.rollout.of_others[placed.image]
                        || self.is_beside_windows(finding, placement);
                    let own = is_of_one.then_some(index);
                    let minimal = Rc::clone(&minimal_fix);
                    let key = (Rc::as_ptr(finding), placed.image, minimal, own);
                    let advised = known.entry(key).or_insert_with(|| {
                        let about = FindingContext {
                            place: placed.image,
                            image: &self.rollout.images[placed.image],
                            kind: &self.rollout.kinds[group.kind],
                            placement,
                        };
                        self.better(finding, &about, &minimal_fix)
                    });
                    Rc::clone(advised)
                });
                all.push(advised.collect());
            }
        }
        all
    }

    /// The smallest set of the plan's actions after which these images of a placement start
    /// wherever they would after the whole plan; among equal sets the one that patches fewer nodes.
    fn minimal_fix(&self, index: usize, images: &[PlacedImage]) -> BTreeSet<usize> {
        let placement = &self.rollout.placements[index];
        let pin = placement
            .workload
            .and_then(|workload| self.effects.pins.get(&workload));
        if let Some(pin) = pin {
            return BTreeSet::from([*pin]);
        }
        let failing = |actions: &BTreeSet<usize>| {
            let outcomes = self.outcomes(placement, images, actions).into_iter();
            let failing = outcomes.filter(|(_, _, after)| *after == VerdictOutcome::Incompatible);
            failing.map(|(hosts, ..)| hosts).sum::<usize>()
        };
        let hosts = placement.selection.hosts.iter();
        let patches = hosts.filter_map(|(host, _)| self.effects.patches.get(&(*host as usize)));
        let patches: BTreeSet<usize> = patches.copied().collect();
        let rebuilds = self.effects.rebuilds_of(placement.workload, images);
        let mut actions: BTreeSet<usize> = patches.union(&rebuilds).copied().collect();
        let starting = |actions: &BTreeSet<usize>| {
            let outcomes = self.outcomes(placement, images, actions);
            let hosts = outcomes.chunks(images.len().max(1));
            let started = hosts.filter(|images| {
                let mut images = images.iter();
                images.all(|(_, _, after)| *after != VerdictOutcome::Incompatible)
            });
            started.map(|images| images[0].0).sum::<usize>()
        };
        if starting(&actions) == starting(&BTreeSet::new()) {
            return BTreeSet::new();
        }
        let left = failing(&actions);
        for action in patches.iter().chain(&rebuilds) {
            actions.remove(action);
            if failing(&actions) > left {
                actions.insert(*action);
            }
        }
        actions
    }

    /// Returns true if actions, run alone, would break an image that starts today.
    fn breaks_others(&self, actions: &BTreeSet<usize>) -> bool {
        let mut changed = actions.iter().map(|action| &self.plan.actions[*action]);
        let is_pin = |action: &PlanAction| matches!(action, PlanAction::Pin { .. });
        // A pin changes its own workload only.
        if changed.clone().all(is_pin) {
            return false;
        }
        let has_patches = changed.any(|it| matches!(it, PlanAction::Patch { .. }));
        let is_changed = |placement: &&Placement| {
            let (workload, images) = (placement.workload, &placement.images);
            let rebuilds = || self.effects.rebuilds_of(workload, images);
            has_patches || !rebuilds().is_disjoint(actions)
        };
        let mut others = self.rollout.placements.iter().filter(is_changed);
        others.any(|placement| {
            let outcomes = self.outcomes(placement, &placement.images, actions);
            outcomes.into_iter().any(|(_, before, after)| {
                before != VerdictOutcome::Incompatible && after == VerdictOutcome::Incompatible
            })
        })
    }

    /// Outcomes of a placement's images before and after these actions, each with the number of
    /// hosts.
    fn outcomes(
        &self,
        placement: &Placement,
        images: &[PlacedImage],
        actions: &BTreeSet<usize>,
    ) -> Vec<(usize, VerdictOutcome, VerdictOutcome)> {
        let parts = self.parts[&Rc::as_ptr(&placement.selection)].iter();
        let outcomes = parts.flat_map(|part| {
            let is_done = |action: usize| actions.contains(&action);
            let workload = placement.workload;
            let after = self.effects.outcomes(workload, images, part, is_done);
            let outcomes = images.iter().zip(after).map(|(placed, (after, _))| {
                let before = placed.findings[part.group].outcome;
                (part.hosts.len(), before, after)
            });
            outcomes.collect::<Vec<_>>()
        });
        outcomes.collect()
    }

    /// Returns true for an image for another system in a pod that has one for Windows alone.
    fn is_beside_windows(&self, finding: &Finding, placement: &Placement) -> bool {
        let mut images = placement.images.iter();
        finding.rule == Concern::NotWindows.name()
            && placement.workload.is_some()
            && images.any(|placed| {
                let image = &self.rollout.images[placed.image];
                image.is_for("windows") && !image.is_for("linux")
            })
    }

    fn better(
        &self,
        finding: &SharedFinding,
        about: &FindingContext<'_>,
        minimal_fix: &Fix,
    ) -> SharedFinding {
        let is_pinned = about
            .placement
            .workload
            .is_some_and(|workload| self.effects.pins.contains_key(&workload));
        // No other image helps a pod that is refused.
        let is_refused = finding.is_of_pod || is_of_host_process(finding, about.image);
        let is_of_others = !is_pinned && !is_refused && self.rollout.of_others[about.place];
        if is_of_others && finding.fix.as_deref() == Some(NEW_INDEX) {
            return Rc::new(self.without_index(finding, about));
        }
        if !is_pinned && self.is_beside_windows(finding, about.placement) {
            let fix = finding.fix.as_ref().map(|fix| fix.replace(OR_LINUX, ""));
            return Rc::new(Finding {
                fix,
                ..Finding::clone(finding)
            });
        }
        let nothing = Fix::default();
        let minimal_fix = match finding.outcome {
            VerdictOutcome::Compatible | VerdictOutcome::Warning => return Rc::clone(finding),
            VerdictOutcome::Incompatible if is_of_others => {
                return Rc::new(self.with_another_tag(finding, about));
            }
            VerdictOutcome::Incompatible
                if is_pinned || is_fixable(finding, about.image, about.kind) =>
            {
                minimal_fix
            }
            VerdictOutcome::Incompatible | VerdictOutcome::Unknown => &nothing,
        };
        let mut advised = self.advised(finding, about, minimal_fix);
        if let Some(fix) = &mut advised.fix
            && fix.contains(ITS_CONTAINERD)
        {
            let names = host_names(self.rollout, &self.refusing_hosts(about.kind));
            *fix = fix.replace(ITS_CONTAINERD, &format!("containerd of {names}"));
        }
        Rc::new(advised)
    }

    /// The hosts that refuse a base like those of a kind, with which they may share findings.
    fn refusing_hosts(&self, kind: &HostKind) -> Vec<usize> {
        let refused = |kind: &HostKind| (kind.build, refused_in_index(kind));
        let (kinds, own) = (self.rollout.kinds.iter(), refused(kind));
        let alike: Vec<bool> = kinds.map(|kind| refused(kind) == own).collect();
        let hosts = self.rollout.kind_of.iter().enumerate();
        let hosts = hosts.filter(|(_, kind)| alike[**kind]);
        hosts.map(|(host, _)| host).collect()
    }

    fn advised(&self, finding: &Finding, about: &FindingContext<'_>, minimal_fix: &Fix) -> Finding {
        let mut advised = finding.clone();
        let breaks_others = minimal_fix.breaks_others;
        let minimal_fix = &minimal_fix.actions;
        if minimal_fix.len() > MOST_ACTIONS {
            advised.fix = Some(format!(
                "run the plan that --plan prints: this requires {} of its actions",
                minimal_fix.len()
            ));
            advised.commands.clear();
        } else if !minimal_fix.is_empty() {
            let is_alone = minimal_fix.len() == 1;
            let fixes: Vec<String> = minimal_fix
                .iter()
                .map(|place| self.in_words(*place, finding, about, is_alone))
                .collect();
            let mut fix = fixes.join(", and ");
            let actions = minimal_fix.iter().map(|place| &self.plan.actions[*place]);
            fix.push_str(&by_hand(actions.clone()));
            if breaks_others {
                fix.push_str("; alone, it stops what starts today: --plan lists the rest");
            }
            advised.commands = actions.flat_map(PlanAction::commands).collect();
            if advised.commands.len() > MOST_COMMANDS {
                fix.push_str("; --plan lists the commands");
                advised.commands.clear();
            }
            advised.fix = Some(fix);
        } else if finding.outcome == VerdictOutcome::Unknown && about.kind.build.is_none() {
            advised.fix = advised.fix.map(|_| {
                "give the node's version, which it has in status.nodeInfo.kernelVersion, with \
                 --simulate NODE=BUILD.REVISION"
                    .to_owned()
            });
        } else if finding.outcome == VerdictOutcome::Unknown {
            advised.commands = inspect_command(finding, about.image, self.flags);
        }
        advised
    }

    /// Text of an action within a finding.
    fn in_words(
        &self,
        place: usize,
        finding: &Finding,
        about: &FindingContext<'_>,
        is_alone: bool,
    ) -> String {
        let action = &self.plan.actions[place];
        match action {
            PlanAction::Rebuild {
                image, host_builds, ..
            } if *image == about.place => {
                // The verdict's own fix is a rebuild for its host.
                let version = about.kind.build.map(|build| build.version);
                let is_for_host = version.is_some_and(|version| host_builds.contains(&version));
                let own = finding.fix.as_ref().filter(|_| is_alone && is_for_host);
                let words = own.cloned().unwrap_or_else(|| action.to_string());
                let name = action.new_tag_or_hint(about.image);
                match words.split_once("; or ") {
                    Some((build, other)) => format!("{build}{name}; or {other}"),
                    None => words + &name,
                }
            }
            PlanAction::Pin { workload, .. } if about.placement.workload == Some(*workload) => {
                action.to_string()
            }
            PlanAction::Rebuild { .. } | PlanAction::Pin { .. } => self.titles[place].clone(),
            PlanAction::Patch { hosts, .. } => {
                let words = action.to_string();
                let mut all = hosts.iter().map(|host| &self.rollout.hosts[*host]);
                if !all.all(|host| host.name.is_some()) {
                    return words;
                }
                let nodes = match hosts.len() {
                    1 => "the node",
                    _ => "the nodes",
                };
                words.replacen(nodes, &host_names(self.rollout, hosts), 1)
            }
        }
    }

    /// Fix for a third-party image. The workload is changed only to a tag that fits all nodes where
    /// its pods can be scheduled.
    fn with_another_tag(&self, finding: &Finding, about: &FindingContext<'_>) -> Finding {
        let mut advised = finding.clone();
        let is_for_windows = finding.rule != Concern::NotWindows.name();
        let text = about.image.reference.as_deref().unwrap_or_default();
        let Some(reference) = parse_reference(text).ok().filter(|_| is_for_windows) else {
            return advised;
        };
        let repository = repository_of(&reference);
        let tag = reference.tag().unwrap_or_default();
        // The other tag may be an index, too.
        let is_refused = refused_in_index(about.kind).is_some();
        let known = self.tags.get(text).filter(|_| !is_refused);
        let known = known.map(Vec::as_slice).unwrap_or_default();
        let groups = about.placement.selection.groups.iter();
        let hosts = groups.filter_map(|group| self.rollout.kinds[group.kind].build);
        let hosts: Vec<HostBuild> = hosts.collect();
        let for_all = find_matching_tag(tag, known, &hosts);
        let own: Vec<HostBuild> = about.kind.build.into_iter().collect();
        let named = for_all.or_else(|| find_matching_tag(tag, known, &own));
        let other_tag = match named {
            Some(tag) if for_all.is_none() => {
                format!("use another tag of {repository} for these nodes: {tag}")
            }
            Some(tag) => format!("use another tag of {repository}: {tag}"),
            None if is_refused => format!(
                "use the digest of an image of {repository} that fits these nodes: their containerd \
                 refuses it in an index"
            ),
            None => format!("use another tag of {repository}, one whose image fits these nodes"),
        };
        let pin = self.pin_by_hand(about.placement);
        advised.fix = Some(match pin.filter(|_| for_all.is_none()) {
            Some(pin) => format!("keep its pods {pin}, or {other_tag}"),
            None => other_tag,
        });
        if let (None, Some(mirrored)) = (named, mirrored_base(&reference)) {
            advised.commands = mirror_command(mirrored, &own, self.flags);
        }
        if let (Some(tag), Some(workload)) = (for_all, about.placement.workload) {
            let image = with_tag(&reference, tag);
            if let Some(step) = self.set_image(&mut advised, workload, text, &image) {
                advised.fix = Some(step);
            }
        }
        advised
    }

    /// The pin of a workload of which no command changes the template, so that the plan has none.
    fn pin_by_hand(&self, placement: &Placement) -> Option<Pin> {
        let workload = &self.rollout.workloads[placement.workload?];
        match TemplateChange::of(workload) {
            None => to_a_build(self.rollout, placement, workload, &self.rollout.others),
            Some(_) => None,
        }
    }

    /// Adds the command that gives a workload another image than `text`, or returns the step by
    /// hand; none for kinds with unknown fields, where the fix names the image.
    fn set_image(
        &self,
        advised: &mut Finding,
        workload: usize,
        text: &str,
        image: &str,
    ) -> Option<String> {
        let workload = &self.rollout.workloads[workload];
        match image_step(workload, text, image, self.flags) {
            ActionStep::Command(command) => {
                advised.commands = vec![command];
                None
            }
            ActionStep::Manual(step) => TemplateChange::of(workload).map(|_| step),
        }
    }

    /// Fix for a third-party index that is wrong: its publisher has to write it again, and a digest
    /// names an image without it.
    fn without_index(&self, finding: &Finding, about: &FindingContext<'_>) -> Finding {
        let mut advised = finding.clone();
        let text = about.image.reference.as_deref().unwrap_or_default();
        let Ok(reference) = parse_reference(text) else {
            return advised;
        };
        let repository = repository_of(&reference);
        let fix = format!(
            "report to the publisher of {repository} that its index states other platforms than \
             its images, or none"
        );
        let digest_on = |kind: &HostKind| {
            let place = own_variant(kind, about.image, finding.isolation)?;
            let manifest = about.image.variants()[place].manifest.as_ref()?;
            Some(manifest.digest.to_string())
        };
        let Some(digest) = digest_on(about.kind).filter(|_| finding.is_hidden) else {
            advised.fix = Some(fix);
            return advised;
        };
        let image = format!("{repository}@{digest}");
        let mut groups = about.placement.selection.groups.iter();
        let is_for_all = groups
            .all(|group| digest_on(&self.rollout.kinds[group.kind]).as_ref() == Some(&digest));
        let workload = about.placement.workload.filter(|_| is_for_all);
        let by_hand =
            workload.and_then(|workload| self.set_image(&mut advised, workload, text, &image));
        let step = by_hand
            .unwrap_or_else(|| format!("name the image for these nodes by its digest: {image}"));
        advised.fix = Some(format!("{fix}; until then, {step}"));
        advised
    }

    /// The warning with the plan's pin if there is one that keeps the pods on Windows too.
    fn pin_to_windows(&self, finding: &Finding, workload: usize) -> Finding {
        let mut advised = finding.clone();
        let pinned = self.effects.pins.get(&workload);
        let pinned = pinned.map(|place| &self.plan.actions[*place]);
        let pinned = pinned
            .filter(|action| matches!(action, PlanAction::Pin { pin, .. } if pin.requires_label()));
        match pinned {
            Some(action) => {
                advised.fix = Some(action.to_string() + &by_hand([action].into_iter()));
                advised.commands = action.commands();
            }
            None => {
                let workload = &self.rollout.workloads[workload];
                let pin = Pin::to_windows(&self.rollout.hosts);
                // Running pods are not deleted for a warning.
                let is_deleted = TemplateChange::of(workload) == Some(TemplateChange::MakeAgain);
                for step in pin.steps(workload, self.flags) {
                    match (step, &mut advised.fix) {
                        (ActionStep::Command(command), _) if !is_deleted => {
                            advised.commands.push(command);
                        }
                        (ActionStep::Manual(step), Some(fix)) => {
                            fix.push_str("; ");
                            fix.push_str(&step);
                        }
                        _ => {}
                    }
                }
            }
        }
        advised
    }
}

/// What follows the commands of actions, for the end of a sentence. The title of a patch has its
/// steps.
fn by_hand<'a>(actions: impl Iterator<Item = &'a PlanAction>) -> String {
    let actions = actions.filter(|action| !matches!(action, PlanAction::Patch { .. }));
    let mut steps = actions.flat_map(|action| {
        let commands = action.commands().len();
        let rest = action.steps()[commands..].iter();
        rest.map(move |step| (commands, step))
    });
    match (steps.next(), steps.next()) {
        (None, _) => String::new(),
        (Some((0, ActionStep::Manual(step))), None) => format!("; {step}"),
        (Some((1, ActionStep::Manual(step))), None) => format!("; after the command, {step}"),
        (Some((_, ActionStep::Manual(step))), None) => format!("; after the commands, {step}"),
        (Some(_), _) => "; --plan lists all steps".to_owned(),
    }
}
