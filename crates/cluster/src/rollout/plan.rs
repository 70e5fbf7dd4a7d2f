//! The smallest set of actions after which everything starts: workloads to pin, images to rebuild,
//! and nodes to patch.
//!
//! The least disruptive set is preferred. As few nodes as possible are patched, for that stops
//! everything that runs there; given these, as few images as possible are rebuilt; and a workload
//! is pinned only where that saves one of either.
//!
//! On most builds only a rebuild makes an image start on a host. Where the revision decides, hosts
//! and images that meet have to come from one *generation* (see [`generation`]), and hosts only
//! ever move to a newer one. So all that are connected, host by image by host, end up in the newest
//! generation among them. Fewer connections never need more actions: all pins are applied first,
//! and those that save nothing are removed.
//!
//! [`generation`]: wincimg_windows::compat::generation

mod build_targets;
mod capacity;
mod effects;
mod graph;
mod host_class;
mod order;
mod pin;
mod running;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use build_targets::{base_for, builds_for};
pub use capacity::{CapacityChange, NodeCounts};
pub(super) use effects::Effects;
use graph::{Choice, Graph, GraphCache};
use jiff::civil::Date;
pub use pin::Pin;
use wincimg_oci::store::Location;
use wincimg_windows::compat::{CompatRule, VerdictOutcome, generation};
use wincimg_windows::update::{Kb, Updates};
use wincimg_windows::version::WindowsVersion;

use super::commands::{
    CommandFlags, DrainedHost, THAT_FAIL, TemplateChange, adopt_steps, cordon_command, patch_steps,
    rebuild_command, tag_command, update_steps,
};
use super::finding::is_fixable;
use super::image::{Image, ImageContent, Variant};
use super::placement::HostKindGroup;
use super::simulate::set_version;
use super::tags::{TagsByRepository, with_suffix, with_tag};
use super::{CheckCounts, Finding, OutcomeCounts, Rollout, RolloutRequest};
use crate::nodes::Node;
use crate::pod::PullPolicy;
use crate::workloads::Workload;

/// Actions after which everything starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActionPlan {
    /// Actions in the order of execution.
    pub actions: Vec<PlanAction>,
    /// For each action, the workloads whose nodes it changes.
    pub capacity: Vec<Vec<CapacityChange>>,
    /// Workloads that start today but not at some point in between, in any order of the actions, and
    /// those that lose data.
    pub interruptions: Vec<Interruption>,
    /// Counts after all actions; findings that no action fixes remain.
    pub then: CheckCounts,
    /// Outcomes of the workloads after all actions.
    pub tally: OutcomeCounts,
    /// Indexes of the hosts that select images then which are reported to fail there.
    pub reported_broken: Vec<usize>,
}

/// A workload whose new pods do not start on some of the nodes where they do today, or whose pods
/// there are deleted or lose data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interruption {
    /// Index into the workloads.
    pub workload: usize,
    /// Indexes of the hosts.
    pub hosts: Vec<usize>,
    /// Index of the action that starts the interruption.
    pub from: usize,
    /// Index of the action that ends it, if any; that which starts it, if it deletes pods or data.
    pub until: Option<usize>,
    /// True if the action deletes the data of `emptyDir` volumes, which kubectl drain does.
    pub loses_data: bool,
}

/// An action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanAction {
    /// Pin a workload to nodes where it starts.
    Pin {
        /// Index into the workloads.
        workload: usize,
        /// The pin.
        pin: Pin,
        /// Method of applying the pin.
        way: TemplateChange,
        /// Indexes of the hosts where it can be scheduled then.
        hosts: Vec<usize>,
        /// Number of hosts before.
        of: usize,
        /// Number of the hosts before on which it starts.
        starts_on: usize,
        /// Why its pods may find no node there now, if they may not.
        shortage: Option<String>,
        /// Steps.
        steps: ActionSteps,
    },
    /// Update nodes to a version.
    Patch {
        /// The version.
        to: WindowsVersion,
        /// The first update with that version, if known.
        kb: Option<Kb>,
        /// Indexes into the hosts.
        hosts: Vec<usize>,
        /// Steps.
        steps: ActionSteps,
    },
    /// Rebuild an image for hosts.
    Rebuild {
        /// Index into the images.
        image: usize,
        /// Versions of the hosts that it is built for.
        host_builds: Vec<WindowsVersion>,
        /// The image after the rebuild.
        becomes: Image,
        /// New tag, because nodes keep their copy of the old one.
        new_tag: Option<String>,
        /// Indexes of the hosts that are cordoned until they are patched, because the new image
        /// does not start there before.
        holds: Vec<usize>,
        /// Steps.
        steps: ActionSteps,
    },
}

/// The steps of an action, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActionSteps {
    /// Commands to type one after the other.
    pub commands: Vec<String>,
    /// The steps after them.
    pub rest: Vec<ActionStep>,
}

/// A step of an action.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ActionStep {
    /// A command to type.
    Command(String),
    /// Something to do by hand.
    Manual(String),
}

impl ActionPlan {
    /// Plans for a request and the answers to it.
    pub fn new(request: &RolloutRequest, rollout: &Rollout, tags: &TagsByRepository) -> Self {
        if rollout.summary.incompatible == 0 {
            return Self {
                then: rollout.summary,
                tally: rollout.count_outcomes(),
                ..Self::default()
            };
        }
        let (pins, graph, choice) = choose(request, rollout);
        let mut after = request.clone();
        let mut actions = pinned(&pins, rollout, &mut after);
        actions.extend(rebuilds(&graph, &choice, &pins, &mut after, tags));
        let patches = patches(&graph, &choice, &pins, &actions, &mut after);
        actions.extend(patches);
        let mut actions = order::ordered(rollout, actions);
        for action in &mut actions {
            action.hold(rollout, &request.flags);
        }
        let mut interruptions = order::interruptions(rollout, &actions);
        interruptions.extend(running::ended_by_drains(rollout, &actions));
        let after = (!actions.is_empty()).then(|| Rollout::new(&after));
        let then = after.as_ref().unwrap_or(rollout);
        Self {
            capacity: capacity::changes(rollout, &actions),
            interruptions,
            actions,
            then: then.summary,
            tally: then.count_outcomes(),
            reported_broken: reported_broken(then).into_iter().collect(),
        }
    }
}

/// The hosts that select images which are reported to fail there.
fn reported_broken(rollout: &Rollout) -> BTreeSet<usize> {
    let mut hosts = BTreeSet::new();
    for placement in &rollout.placements {
        for (place, group) in placement.selection.groups.iter().enumerate() {
            let mut images = placement.images.iter();
            let rule = CompatRule::HostReportedBroken.name();
            if images.any(|placed| placed.findings[place].rule == rule) {
                hosts.extend(group.hosts.iter().map(|host| *host as usize));
            }
        }
    }
    hosts
}

impl ActionSteps {
    /// Steps of which up to `most` commands are typed before the first step by hand.
    pub(super) fn new(steps: impl IntoIterator<Item = ActionStep>, most: usize) -> Self {
        let mut all = Self::default();
        for step in steps {
            match step {
                ActionStep::Command(command)
                    if all.rest.is_empty() && all.commands.len() < most =>
                {
                    all.commands.push(command);
                }
                step => all.rest.push(step),
            }
        }
        all
    }

    /// The steps by hand.
    pub(super) fn by_hand(&self) -> impl Iterator<Item = &str> {
        self.rest.iter().filter_map(|step| match step {
            ActionStep::Manual(text) => Some(text.as_str()),
            ActionStep::Command(_) => None,
        })
    }
}

impl PlanAction {
    /// The steps of any action.
    pub(super) fn own_steps(&self) -> &ActionSteps {
        match self {
            Self::Pin { steps, .. } | Self::Patch { steps, .. } | Self::Rebuild { steps, .. } => {
                steps
            }
        }
    }

    /// Commands to type before the first step by hand.
    pub fn commands(&self) -> &[String] {
        &self.own_steps().commands
    }

    /// Steps, in order.
    pub fn steps(&self) -> Vec<ActionStep> {
        let ActionSteps { commands, rest } = self.own_steps();
        let commands = commands.iter().cloned().map(ActionStep::Command);
        commands.chain(rest.iter().cloned()).collect()
    }
}

impl PlanAction {
    /// Adds the command that cordons the hosts where the new image does not start yet. A new tag
    /// takes effect with the change of a workload; a reused tag takes effect with the build.
    fn hold(&mut self, rollout: &Rollout, flags: &CommandFlags) {
        let Self::Rebuild {
            holds,
            new_tag,
            steps: ActionSteps { commands, .. },
            ..
        } = self
        else {
            return;
        };
        let hosts = holds.iter().map(|host| &rollout.hosts[*host]);
        let is_of_build = |command: &&String| new_tag.is_some() && command.starts_with("wincimg ");
        let place = commands.iter().take_while(is_of_build).count();
        if let Some(command) = cordon_command(hosts, flags) {
            commands.insert(place, command);
        }
    }

    /// Title with the names of its objects.
    pub fn title(&self, rollout: &Rollout) -> String {
        match self {
            Self::Pin {
                workload, pin, way, ..
            } => {
                let id = &rollout.workloads[*workload].id;
                let what = match way {
                    TemplateChange::Patch | TemplateChange::ByHand => format!("keep {id}"),
                    TemplateChange::MakeAgain => format!("delete {id} and recreate it"),
                };
                format!("{what} {pin}{}", self.nodes_left())
            }
            Self::Rebuild { image, .. } => {
                let image = &rollout.images[*image];
                format!(
                    "build {} again{}",
                    image.label(),
                    self.new_tag_or_hint(image)
                )
            }
            Self::Patch { .. } => self.to_string(),
        }
    }
}

impl PlanAction {
    /// ` (keeps 3 of 5 nodes)`, with the nodes that are lost and why the rest may not do, if so; empty
    /// where it moves to nodes outside the check.
    fn nodes_left(&self) -> String {
        match self {
            Self::Pin {
                hosts,
                of,
                starts_on,
                shortage,
                ..
            } if !hosts.is_empty() => {
                let left = hosts.len();
                let lost = match starts_on.saturating_sub(left) {
                    0 => String::new(),
                    _ => format!("; it starts on {starts_on} now"),
                };
                let shortage = shortage.iter().map(|shortage| format!("; {shortage}"));
                let shortage: String = shortage.collect();
                format!(" (keeps {left} of {of} nodes{lost}{shortage})")
            }
            _ => String::new(),
        }
    }

    /// The new tag of a rebuilt image, or what a digest of the old one requires.
    pub(super) fn new_tag_or_hint(&self, image: &Image) -> String {
        match self {
            Self::Rebuild {
                new_tag: Some(tag), ..
            } => format!(", under the new tag {tag}, because nodes keep their copy of the old one"),
            _ => image.digest_hint().to_owned(),
        }
    }
}

impl fmt::Display for PlanAction {
    /// Title without the names of its objects.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pin { pin, way, .. } => {
                f.write_str(match way {
                    TemplateChange::Patch | TemplateChange::ByHand => "keep its pods",
                    TemplateChange::MakeAgain => "delete it and recreate it",
                })?;
                write!(f, " {pin}{}", self.nodes_left())
            }
            Self::Rebuild { host_builds, .. } => {
                let builds: Vec<String> = host_builds.iter().map(ToString::to_string).collect();
                write!(f, "build the image again for {}", builds.join(", "))
            }
            Self::Patch { to, kb, hosts, .. } => {
                f.write_str(match hosts.len() {
                    1 => "drain the node and update it",
                    _ => "drain the nodes one by one and update them",
                })?;
                write!(f, " to {to}")?;
                kb.map_or(Ok(()), |kb| write!(f, " with {}", kb.describe()))?;
                f.write_str(AFTER_A_PATCH)
            }
        }
    }
}

/// Steps after a patch command.
const AFTER_A_PATCH: &str =
    "; run the script there as an administrator, and kubectl uncordon it afterwards";

/// Maximum number of pins whose removal is tried one by one.
const TRIED: usize = 50;

fn choose<'a>(
    request: &RolloutRequest,
    rollout: &'a Rollout,
) -> (BTreeMap<usize, Pin>, Graph<'a>, Choice) {
    let mut pins = pin::candidates(rollout, &request.nodes.others);
    let mut known = GraphCache::new(rollout, &pins);
    let mut graph = Graph::of(&mut known, &pins);
    let mut choice = graph.solve();
    let spare = fixed_by_other_actions(rollout, &pins, &choice, &graph.patched_hosts(&choice));
    let mut attempts = vec![spare.clone()];
    attempts.extend(spare.into_iter().take(TRIED).map(|one| vec![one]));
    for attempt in attempts {
        let mut fewer = pins.clone();
        fewer.retain(|workload, _| !attempt.contains(workload));
        if fewer.len() == pins.len() {
            continue;
        }
        let other = Graph::of(&mut known, &fewer);
        let other_choice = other.solve();
        if other_choice.rebuilt == choice.rebuilt
            && other.patched_hosts(&other_choice) == graph.patched_hosts(&choice)
        {
            (pins, graph, choice) = (fewer, other, other_choice);
        }
    }
    (pins, graph, choice)
}

/// The pinned workloads that other actions may fix: their images are rebuilt or their hosts patched
/// anyway.
fn fixed_by_other_actions(
    rollout: &Rollout,
    pins: &BTreeMap<usize, Pin>,
    choice: &Choice,
    patched: &BTreeMap<usize, WindowsVersion>,
) -> Vec<usize> {
    let is_mended = |place: usize, group: &HostKindGroup, finding: &Finding| {
        let mut hosts = group.hosts.iter().map(|host| *host as usize);
        !rollout.is_of_others(place)
            && is_fixable(finding, &rollout.images[place], &rollout.kinds[group.kind])
            && (choice.rebuilt.contains(&place) || hosts.any(|host| patched.contains_key(&host)))
    };
    let placements = rollout.placements.iter();
    placements
        .filter(|placement| {
            placement.images.iter().all(|placed| {
                let mut groups = placement.selection.groups.iter().zip(&placed.findings);
                groups.all(|(group, finding)| {
                    finding.outcome != VerdictOutcome::Incompatible
                        || is_mended(placed.image, group, finding)
                })
            })
        })
        .filter_map(|placement| placement.workload)
        .filter(|workload| pins.contains_key(workload))
        .collect()
}

fn pinned(
    pins: &BTreeMap<usize, Pin>,
    rollout: &Rollout,
    after: &mut RolloutRequest,
) -> Vec<PlanAction> {
    let mut actions = Vec::new();
    // The result has a subset of the workloads, in the same order.
    let mut rest = after.workloads.iter_mut();
    for (index, workload) in rollout.workloads.iter().enumerate() {
        let Some(own) = rest.find(|other| *other == workload) else {
            continue;
        };
        let Some(pin) = pins.get(&index) else {
            continue;
        };
        pin.apply(own);
        let Some(placement) = rollout.placement_of(index) else {
            continue;
        };
        let hosts = placement.selection.hosts.iter();
        let hosts: Vec<usize> = hosts.map(|&(host, _)| host as usize).collect();
        let left = hosts.iter().copied();
        let left: Vec<usize> = left
            .filter(|&host| pin.admits(&rollout.hosts[host]))
            .collect();
        // The controller of a DaemonSet itself deletes the pods on nodes that it leaves.
        let update = match workload.id.kind.as_str() {
            "DaemonSet" => Vec::new(),
            _ => update_steps(workload, true, THAT_FAIL, &after.flags),
        };
        let steps = pin.steps(workload, &after.flags).into_iter().chain(update);
        let steps = steps.chain(running::delete_jobs(rollout, index, &after.flags));
        actions.push(PlanAction::Pin {
            workload: index,
            of: hosts.len(),
            starts_on: pin::starting_hosts(placement).count(),
            shortage: capacity::shortage(workload, &left, rollout),
            hosts: left,
            steps: ActionSteps::new(steps, usize::MAX),
            way: TemplateChange::of(workload).unwrap_or(TemplateChange::ByHand),
            pin: pin.clone(),
        });
    }
    actions
}

fn patches(
    graph: &Graph<'_>,
    choice: &Choice,
    pins: &BTreeMap<usize, Pin>,
    rebuilds: &[PlanAction],
    after: &mut RolloutRequest,
) -> Vec<PlanAction> {
    let mut targets: BTreeMap<WindowsVersion, Vec<usize>> = BTreeMap::new();
    for (host, to) in graph.patched_hosts(choice) {
        set_version(&mut after.nodes.windows[host], to);
        targets.entry(to).or_default().push(host);
    }
    let actions = targets.into_iter().map(|(to, hosts)| {
        let kb = Updates::global()
            .first_reaching(to)
            .and_then(|update| update.kb);
        let flags = &after.flags;
        let nodes: Vec<DrainedHost<'_>> = hosts
            .iter()
            .map(|&host| running::drained_host(graph.rollout, host, pins, rebuilds, flags))
            .collect();
        let steps = patch_steps(to, kb, nodes, flags);
        // Several nodes are best drained one after the other.
        let most = if hosts.len() == 1 { usize::MAX } else { 1 };
        PlanAction::Patch {
            to,
            kb,
            steps: ActionSteps::new(steps, most),
            hosts,
        }
    });
    actions.collect()
}

/// The pods of a workload that are deleted once its image is rebuilt, where they are replaced only
/// then. Those of a `DaemonSet` on nodes that are patched wait for that: a drain leaves them, and
/// the new image may not start there before.
fn deleted_at_once(
    rollout: &Rollout,
    workload: usize,
    pins: &BTreeMap<usize, Pin>,
    patched: &BTreeMap<usize, WindowsVersion>,
) -> Option<&'static str> {
    const ONE_BY_ONE: &str = "one after the other";
    if rollout.workloads[workload].id.kind != "DaemonSet" {
        return Some(ONE_BY_ONE);
    }
    let nodes = nodes_of(rollout, workload, pins);
    let waiting = nodes.iter().filter(|host| patched.contains_key(*host));
    match waiting.count() {
        0 => Some(ONE_BY_ONE),
        waiting if waiting == nodes.len() => None,
        _ => Some("one after the other, except on the nodes that are patched later"),
    }
}

/// The hosts where the pods of a workload can be scheduled after pinning.
fn nodes_of(rollout: &Rollout, workload: usize, pins: &BTreeMap<usize, Pin>) -> BTreeSet<usize> {
    let pin = pins.get(&workload);
    let placement = rollout.placement_of(workload);
    let hosts = placement.into_iter().flat_map(|it| &it.selection.hosts);
    let hosts = hosts.map(|&(host, _)| host as usize);
    hosts
        .filter(|host| pin.is_none_or(|pin| pin.admits(&rollout.hosts[*host])))
        .collect()
}

/// The new tag of an image of which nodes keep their copy: not one of these that exist, nor one that
/// the plan gives to another image.
fn new_tag(
    image: &Image,
    users: &[(usize, &Workload)],
    today: Option<Date>,
    existing: &[String],
    given: &BTreeSet<String>,
) -> Option<String> {
    let Some(Location::Registry(reference)) = image.location() else {
        return None;
    };
    let keeps_copy = |(_, user): &(usize, &Workload)| {
        let mut containers = user.template.containers.iter();
        reference.digest().is_some()
            || containers.any(|own| {
                Some(&own.image) == image.reference.as_ref()
                    && own.pull_policy != PullPolicy::Always
            })
    };
    if !users.iter().any(keeps_copy) {
        return None;
    }
    let day = today?.strftime("%Y%m%d").to_string();
    let again = (2_u32..).map(|number| format!("{day}-{number}"));
    let suffixes = [day.clone()].into_iter().chain(again);
    let mut tags = suffixes.map(|suffix| with_suffix(reference.tag(), &suffix));
    tags.find(|tag| !existing.contains(tag) && !given.contains(&with_tag(&reference, tag)))
}

fn rebuilds(
    graph: &Graph<'_>,
    choice: &Choice,
    pins: &BTreeMap<usize, Pin>,
    after: &mut RolloutRequest,
    tags: &TagsByRepository,
) -> Vec<PlanAction> {
    let mut actions = Vec::new();
    let mut given = BTreeSet::new();
    let patched = graph.patched_hosts(choice);
    for &place in &choice.rebuilt {
        let image = &graph.rollout.images[place];
        let hosts: BTreeSet<_> = graph.hosts_of(place, choice).collect();
        let builds = with_own_builds(builds_for(hosts), image, &graph.rollout.hosts);
        let host_builds: Vec<WindowsVersion> = builds.iter().map(|(host, _)| *host).collect();
        let mut users = workloads_of_image(graph.rollout, image, pins);
        let existing = image.reference.as_ref().and_then(|own| tags.get(own));
        let existing = existing.map(Vec::as_slice).unwrap_or_default();
        let new_tag = new_tag(image, &users, after.today, existing, &given);
        let tag = new_tag.as_deref();
        let to = new_name(image, tag);
        given.extend(to.clone());
        let flags = &after.flags;
        // A new tag has no entries, except for those that it gets from the old one.
        let others = existing_entries_flag(image, &builds);
        let others = others.filter(|flag| tag.is_none() || *flag == "--join");
        let copy = tag.zip(others);
        let copy = copy.and_then(|(tag, _)| tag_command(image, tag, flags));
        let build = rebuild_command(image, &host_builds, others, tag, flags);
        let commands = copy.into_iter().chain([build]).map(ActionStep::Command);
        let needs_it = |user: usize| needs_rebuild(graph.rollout, user, place, pins, &patched);
        let update = |user: usize| {
            let Some(deleted) = deleted_at_once(graph.rollout, user, pins, &patched) else {
                return Vec::new();
            };
            let own = &graph.rollout.workloads[user];
            let is_failing = fails_somewhere(graph.rollout, user);
            let mut steps = update_steps(own, is_failing, deleted, flags);
            // A pod that waits for a reused tag gets it.
            if to.is_some() {
                steps.extend(running::delete_jobs(graph.rollout, user, flags));
            }
            steps
        };
        users.retain(|(user, _)| !running::waits_for_patch(graph.rollout, *user, &patched));
        let adopted = adopted(image, to.as_deref(), &users, (needs_it, update), flags);
        let steps = commands.chain(adopted);
        actions.push(PlanAction::Rebuild {
            image: place,
            steps: ActionSteps::new(steps, usize::MAX),
            host_builds,
            holds: Vec::new(),
            new_tag,
            becomes: rebuilt(image, &builds),
        });
        after.images[place] = rebuilt(image, &builds);
    }
    actions
}

/// The name of an image with a new tag.
fn new_name(image: &Image, tag: Option<&str>) -> Option<String> {
    match (tag, image.location()) {
        (Some(tag), Some(Location::Registry(reference))) => Some(with_tag(&reference, tag)),
        _ => None,
    }
}

/// The steps after which workloads run a rebuilt image. Those by hand are last, and only for
/// workloads that need it. `update` has the steps after which a changed template reaches the pods.
fn adopted(
    image: &Image,
    to: Option<&str>,
    users: &[(usize, &Workload)],
    (needs_it, update): (impl Fn(usize) -> bool, impl Fn(usize) -> Vec<ActionStep>),
    flags: &CommandFlags,
) -> Vec<ActionStep> {
    let from = image.reference.as_deref().unwrap_or_default();
    let mut commands = Vec::new();
    let mut by_hand: Vec<ActionStep> = Vec::new();
    for &(index, user) in users {
        let steps = adopt_steps(user, from, to, update(index), flags);
        let mut own = steps.iter();
        if own.all(|step| matches!(step, ActionStep::Command(_))) {
            commands.extend(steps);
            continue;
        }
        // An absent owner is there once for each template of its pods.
        let is_new = steps.iter().any(|step| !by_hand.contains(step));
        if is_new && needs_it(index) {
            by_hand.extend(steps);
        }
    }
    commands.extend(by_hand);
    commands
}

/// Returns true if a workload does not start on some host where its pods can be scheduled.
fn fails_somewhere(rollout: &Rollout, workload: usize) -> bool {
    rollout.placement_of(workload).is_some_and(|placement| {
        let mut findings = placement.findings();
        findings.any(|finding| finding.outcome == VerdictOutcome::Incompatible)
    })
}

/// Returns true if a workload does not start everywhere without the rebuild of an image.
fn needs_rebuild(
    rollout: &Rollout,
    workload: usize,
    image: usize,
    pins: &BTreeMap<usize, Pin>,
    patched: &BTreeMap<usize, WindowsVersion>,
) -> bool {
    let Some(placement) = rollout.placement_of(workload) else {
        return false;
    };
    let pin = pins.get(&workload);
    let fails = |group: usize| {
        let mut own = placement.images.iter().filter(|own| own.image == image);
        own.any(|own| own.findings[group].outcome == VerdictOutcome::Incompatible)
    };
    let mut hosts = placement.selection.hosts.iter();
    hosts.any(|&(host, group)| {
        let host = host as usize;
        pin.is_none_or(|pin| pin.admits(&rollout.hosts[host]))
            && (patched.contains_key(&host) || fails(group as usize))
    })
}

/// The workloads that run an image on the checked hosts after pinning, with their indexes.
fn workloads_of_image<'a>(
    rollout: &'a Rollout,
    image: &Image,
    pins: &BTreeMap<usize, Pin>,
) -> Vec<(usize, &'a Workload)> {
    let all = rollout.workloads.iter().enumerate();
    let users = all.filter(|(index, user)| {
        let pin = pins.get(index);
        let mut containers = user.template.containers.iter();
        let mut hosts = rollout.hosts.iter();
        containers.any(|container| Some(&container.image) == image.reference.as_ref())
            && pin.is_none_or(|pin| hosts.any(|host| pin.admits(host)))
    });
    users.collect()
}

/// Flag for the existing entries of a tag: those for other systems are kept, those of a rebuilt
/// build are replaced.
fn existing_entries_flag(
    image: &Image,
    builds: &[(WindowsVersion, WindowsVersion)],
) -> Option<&'static str> {
    let mut variants = image.variants().iter();
    let is_rebuilt = |variant: &Variant| {
        variant
            .version
            .is_some_and(|own| builds.iter().all(|(_, base)| *base != own))
    };
    if variants.clone().any(|variant| !can_build(variant)) {
        Some("--join")
    } else if variants.any(is_rebuilt) {
        Some("--replace")
    } else {
        None
    }
}

/// Returns true if a build replaces this variant.
fn can_build(variant: &Variant) -> bool {
    variant.os == "windows" && variant.architecture == "amd64" && variant.version.is_some()
}

/// Adds the builds that the image has already: for the oldest host of that build, or for hosts
/// outside the check. Of two revisions of one build only one would ever be selected, and an archive
/// holds one image.
fn with_own_builds(
    mut builds: Vec<(WindowsVersion, WindowsVersion)>,
    image: &Image,
    hosts: &[Node],
) -> Vec<(WindowsVersion, WindowsVersion)> {
    if matches!(image.location(), Some(Location::Archive { .. })) {
        return builds;
    }
    let mut own: Vec<WindowsVersion> = image
        .variants()
        .iter()
        .filter(|variant| can_build(variant))
        .filter_map(|variant| variant.version)
        .collect();
    own.sort_by_key(|version| std::cmp::Reverse(*version));
    for version in own {
        if builds.iter().all(|(_, base)| base.build != version.build) {
            let known = hosts.iter().filter_map(|host| Some(host.build?.version));
            let alike = known.filter(|host| {
                host.build == version.build && generation(*host) == generation(version)
            });
            let host = alike.min().unwrap_or(version);
            builds.push((host, base_for(host)));
        }
    }
    builds.sort();
    builds
}

/// The image after a build for hosts, each with the version of its base, plus its entries for other
/// systems.
fn rebuilt(image: &Image, builds: &[(WindowsVersion, WindowsVersion)]) -> Image {
    let kept = image.variants().iter().filter(|own| !can_build(own));
    let bases: BTreeSet<WindowsVersion> = builds.iter().map(|(_, base)| *base).collect();
    let variants: Vec<Variant> = bases
        .into_iter()
        .map(|base| Variant {
            os: "windows".to_owned(),
            architecture: "amd64".to_owned(),
            os_version: Some(base.os_version()),
            version: Some(base),
            ..Variant::default()
        })
        .chain(kept.cloned())
        .collect();
    let content = match &variants[..] {
        [single] => ImageContent::Single(single.clone()),
        _ => ImageContent::Index(variants),
    };
    Image {
        reference: image.reference.clone(),
        content,
    }
}

#[cfg(test)]
mod tests;
