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
mod rebuild;
mod running;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub use capacity::{CapacityChange, NodeCounts};
pub(super) use effects::{Effects, HostPart};
use graph::{Choice, Graph, GraphCache};
pub use pin::Pin;
pub(super) use pin::to_a_build;
use rebuild::{becomes, is_refused, rebuilds};
use wincimg_windows::compat::{CompatRule, VerdictOutcome};
use wincimg_windows::update::{Kb, Updates};
use wincimg_windows::version::WindowsVersion;

use super::commands::{
    CommandFlags, DrainedHost, THAT_FAIL, TemplateChange, cordon_command, patch_steps, update_steps,
};
use super::fix_text::is_fixable;
use super::image::Image;
use super::placement::HostKindGroup;
use super::simulate::set_version;
use super::tags::TagsByRepository;
use super::{CheckCounts, Finding, OutcomeCounts, Rollout, RolloutRequest};

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

impl Interruption {
    /// Returns true if it lasts until an action, or longer, on a host.
    fn covers(&self, workload: usize, host: usize, action: usize) -> bool {
        self.workload == workload
            && self.hosts.contains(&host)
            && self.from <= action
            && self.until.is_none_or(|until| until >= action)
    }
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
        /// Steps, in order.
        steps: Vec<ActionStep>,
    },
    /// Update nodes to a version.
    Patch {
        /// The version.
        to: WindowsVersion,
        /// The first update with that version, if known.
        kb: Option<Kb>,
        /// Indexes into the hosts.
        hosts: Vec<usize>,
        /// Steps, in order.
        steps: Vec<ActionStep>,
    },
    /// Rebuild an image for hosts.
    Rebuild {
        /// Index into the images.
        image: usize,
        /// Versions of the hosts that it is built for.
        host_builds: Vec<WindowsVersion>,
        /// The image after the rebuild.
        becomes: Box<Image>,
        /// New tag, because nodes keep their copy of the old one.
        new_tag: Option<String>,
        /// Indexes of the hosts that are cordoned until they are patched, because the new image
        /// does not start there before.
        holds: Vec<usize>,
        /// Indexes of the workloads that keep the old tag, because one of their hosts refuses the
        /// new index.
        keep_tag: Vec<usize>,
        /// Steps, in order.
        steps: Vec<ActionStep>,
    },
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
        let hosts = graph.patched_hosts(&choice);
        let mut after = request.clone();
        let mut actions = pinned(&pins, rollout, &mut after);
        let rebuilds = rebuilds(&graph, &choice, &pins, &hosts, &mut after, tags);
        actions.extend(rebuilds);
        let patches = patches(rollout, hosts, &pins, &actions, &mut after);
        actions.extend(patches);
        let mut actions = order::ordered(rollout, actions);
        for action in &mut actions {
            action.hold(rollout, &request.flags);
        }
        let mut interruptions = order::interruptions(rollout, &actions);
        let ended = running::ended_by_drains(rollout, &actions, &interruptions);
        interruptions.extend(ended);
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

impl PlanAction {
    /// Steps, in order.
    pub fn steps(&self) -> &[ActionStep] {
        match self {
            Self::Pin { steps, .. } | Self::Patch { steps, .. } | Self::Rebuild { steps, .. } => {
                steps
            }
        }
    }

    /// Commands to type before the first step by hand.
    pub fn commands(&self) -> Vec<String> {
        let most = match self {
            // They are best drained one after the other.
            Self::Patch { hosts, .. } if hosts.len() > 1 => 1,
            _ => usize::MAX,
        };
        let commands = self.steps().iter().map_while(|step| match step {
            ActionStep::Command(command) => Some(command.clone()),
            ActionStep::Manual(_) => None,
        });
        commands.take(most).collect()
    }

    /// Adds the command that cordons the hosts where the new image does not start yet. A new tag
    /// takes effect with the change of a workload; a reused tag takes effect with the build.
    fn hold(&mut self, rollout: &Rollout, flags: &CommandFlags) {
        let Self::Rebuild {
            holds,
            new_tag,
            steps,
            ..
        } = self
        else {
            return;
        };
        let hosts = holds.iter().map(|host| &rollout.hosts[*host]);
        let is_of_build = |step: &&ActionStep| {
            let ActionStep::Command(command) = step else {
                return false;
            };
            new_tag.is_some() && command.starts_with("wincimg ")
        };
        let place = steps.iter().take_while(is_of_build).count();
        if let Some(command) = cordon_command(hosts, flags) {
            steps.insert(place, ActionStep::Command(command));
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
                f.write_str(
                    "; run the script there as an administrator, and kubectl uncordon it afterwards",
                )
            }
        }
    }
}

/// Maximum number of pins whose removal is tried one by one.
const MAX_TRIED_PINS: usize = 50;

fn choose<'a>(
    request: &RolloutRequest,
    rollout: &'a Rollout,
) -> (BTreeMap<usize, Pin>, Graph<'a>, Choice) {
    let mut pins = pin::candidates(rollout, &request.nodes.others);
    let mut known = GraphCache::new(rollout, &pins);
    let mut graph = Graph::of(&mut known, &pins);
    let mut choice = graph.solve();
    let spare = fixed_by_other_actions(&graph, &pins, &choice);
    let mut attempts = vec![spare.clone()];
    attempts.extend(spare.into_iter().take(MAX_TRIED_PINS).map(|one| vec![one]));
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
/// anyway, and no host where they start refuses the new image.
fn fixed_by_other_actions(
    graph: &Graph<'_>,
    pins: &BTreeMap<usize, Pin>,
    choice: &Choice,
) -> Vec<usize> {
    let rollout = graph.rollout;
    let patched = graph.patched_hosts(choice);
    let rebuilt = choice.rebuilt.iter();
    let rebuilt: BTreeMap<usize, Image> = rebuilt
        .map(|&place| (place, becomes(graph, choice, place).1))
        .collect();
    let is_mended = |place: usize, group: &HostKindGroup, finding: &Finding| {
        let mut hosts = group.hosts.iter().map(|host| *host as usize);
        !rollout.of_others[place]
            && is_fixable(finding, &rollout.images[place], &rollout.kinds[group.kind])
            && (rebuilt.contains_key(&place) || hosts.any(|host| patched.contains_key(&host)))
    };
    let is_lost = |place: usize, group: &HostKindGroup, finding: &Finding| {
        let becomes = rebuilt.get(&place);
        let kind = &rollout.kinds[group.kind];
        becomes.is_some_and(|becomes| is_refused(kind, becomes, finding.isolation))
    };
    let placements = rollout.placements.iter();
    placements
        .filter(|placement| {
            placement.images.iter().all(|placed| {
                let mut groups = placement.selection.groups.iter().zip(&placed.findings);
                groups.all(|(group, finding)| match finding.outcome {
                    VerdictOutcome::Incompatible => is_mended(placed.image, group, finding),
                    _ => !is_lost(placed.image, group, finding),
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
            shortage: capacity::shortage(workload, pin, &left, rollout),
            hosts: left,
            steps: steps.collect(),
            way: TemplateChange::of(workload).unwrap_or(TemplateChange::ByHand),
            pin: pin.clone(),
        });
    }
    actions
}

fn patches(
    rollout: &Rollout,
    patched: BTreeMap<usize, WindowsVersion>,
    pins: &BTreeMap<usize, Pin>,
    rebuilds: &[PlanAction],
    after: &mut RolloutRequest,
) -> Vec<PlanAction> {
    let mut targets: BTreeMap<WindowsVersion, Vec<usize>> = BTreeMap::new();
    for (host, to) in patched {
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
            .map(|&host| running::drained_host(rollout, host, pins, rebuilds, flags))
            .collect();
        PlanAction::Patch {
            to,
            kb,
            steps: patch_steps(to, kb, nodes, flags),
            hosts,
        }
    });
    actions.collect()
}

#[cfg(test)]
mod tests;
