//! Rebuilds of images: for which hosts and under which tag, and the steps by which workloads get
//! them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;
use wincimg_oci::store::Location;
use wincimg_windows::compat::{Isolation, VerdictOutcome, generation};
use wincimg_windows::release::{self, ReleaseKind};
use wincimg_windows::version::WindowsVersion;

use super::build_targets::{base_for, builds_for};
use super::graph::{Choice, Graph};
use super::{ActionStep, Pin, PlanAction, running};
use crate::nodes::Node;
use crate::pod::PullPolicy;
use crate::rollout::commands::{
    CommandFlags, adopt_steps, rebuild_command, tag_command, update_steps,
};
use crate::rollout::fix_text::refused_in_index;
use crate::rollout::image::{Image, ImageContent, Variant};
use crate::rollout::tags::{TagsByRepository, index_tag, with_suffix, with_tag};
use crate::rollout::verdict::find;
use crate::rollout::{HostKind, Placement, Rollout, RolloutRequest};
use crate::workloads::Workload;

/// A host with the version of the base that an image gets for it.
type Build = (WindowsVersion, WindowsVersion);

/// The actions that rebuild the chosen images, which are rebuilt in `after`, too.
pub(super) fn rebuilds(
    graph: &Graph<'_>,
    choice: &Choice,
    pins: &BTreeMap<usize, Pin>,
    patched: &BTreeMap<usize, WindowsVersion>,
    after: &mut RolloutRequest,
    tags: &TagsByRepository,
) -> Vec<PlanAction> {
    let mut actions = Vec::new();
    let mut given = BTreeSet::new();
    for &place in &choice.rebuilt {
        let users = ImageUsers {
            rollout: graph.rollout,
            place,
            pins,
            patched,
            flags: &after.flags,
        };
        let image = users.image();
        let (builds, becomes) = becomes(graph, choice, place);
        let host_builds: Vec<WindowsVersion> = builds.iter().map(|(host, _)| *host).collect();
        let mut workloads = users.workloads();
        let own = workloads.iter().map(|(own, _)| *own);
        let mut keep_tag: Vec<usize> = own.filter(|own| users.keeps_tag(*own, &becomes)).collect();
        let existing = image.reference.as_ref().and_then(|own| tags.get(own));
        let existing = existing.map(Vec::as_slice).unwrap_or_default();
        let is_needed = !keep_tag.is_empty() || has_copies(image, &workloads);
        let today = after.today.filter(|_| is_needed);
        let new_tag = today.and_then(|today| new_tag(image, today, existing, &given));
        let tag = new_tag.as_deref();
        if tag.is_none() {
            keep_tag.clear();
        }
        workloads.retain(|(own, _)| !keep_tag.contains(own));
        let to = new_name(image, tag);
        given.extend(to.clone());
        // A new tag has no entries, except for those that it gets from the old one.
        let others = existing_entries_flag(image, &builds);
        let others = others.filter(|flag| tag.is_none() || *flag == "--join");
        let copy = tag.zip(others);
        let copy = copy.and_then(|(tag, _)| tag_command(image, tag, &after.flags));
        let is_used = !workloads.is_empty();
        let build = rebuild_command(image, &host_builds, others, tag, is_used, &after.flags);
        let commands = copy.into_iter().chain([build]).map(ActionStep::Command);
        let steps = commands.chain(users.adopt(to.as_deref(), &workloads));
        let steps: Vec<ActionStep> = steps.collect();
        replace_image(after, place, &becomes, to, graph.rollout, &keep_tag);
        actions.push(PlanAction::Rebuild {
            image: place,
            steps,
            host_builds,
            holds: Vec::new(),
            keep_tag,
            new_tag,
            becomes: Box::new(becomes),
        });
    }
    actions
}

/// The builds of an image for the hosts that it has to serve, and what it becomes.
pub(super) fn becomes(graph: &Graph<'_>, choice: &Choice, place: usize) -> (Vec<Build>, Image) {
    let image = &graph.rollout.images[place];
    let hosts: BTreeSet<_> = graph.hosts_of(place, choice).collect();
    let builds = with_own_builds(builds_for(hosts), image, &graph.rollout.hosts);
    let becomes = rebuilt(image, &builds);
    (builds, becomes)
}

/// Returns true if a host's runtime refuses its base in an index, and what an image becomes is one.
pub(super) fn is_refused(kind: &HostKind, becomes: &Image, isolation: Isolation) -> bool {
    refused_in_index(kind).is_some()
        && find(kind, becomes, isolation).outcome == VerdictOutcome::Incompatible
}

/// Replaces an image by the rebuilt one: under its new name, if workloads keep the old one.
fn replace_image(
    after: &mut RolloutRequest,
    place: usize,
    becomes: &Image,
    to: Option<String>,
    rollout: &Rollout,
    keep_tag: &[usize],
) {
    let old = std::mem::replace(&mut after.images[place], becomes.clone());
    if keep_tag.is_empty() {
        return;
    }
    for own in &mut after.workloads {
        let mut kept = keep_tag.iter().map(|kept| &rollout.workloads[*kept].id);
        if kept.any(|id| *id == own.id) {
            continue;
        }
        for container in &mut own.template.containers {
            if let Some(to) = &to
                && Some(&container.image) == old.reference.as_ref()
            {
                container.image.clone_from(to);
            }
        }
    }
    after.images[place].reference = to;
    after.images.push(old);
}

/// The nodes of a workload that are patched after its image is rebuilt.
enum PatchedLater {
    None,
    Some,
    All,
}

struct ImageUsers<'a> {
    rollout: &'a Rollout,
    place: usize,
    pins: &'a BTreeMap<usize, Pin>,
    /// The hosts that are patched, each with its new version.
    patched: &'a BTreeMap<usize, WindowsVersion>,
    flags: &'a CommandFlags,
}

impl<'a> ImageUsers<'a> {
    fn image(&self) -> &'a Image {
        &self.rollout.images[self.place]
    }

    /// The workloads that run the image on the checked hosts after pinning, with their indexes.
    fn workloads(&self) -> Vec<(usize, &'a Workload)> {
        let reference = self.image().reference.as_ref();
        let all = self.rollout.workloads.iter().enumerate();
        let users = all.filter(|(index, user)| {
            let pin = self.pins.get(index);
            let mut containers = user.template.containers.iter();
            let mut hosts = self.rollout.hosts.iter();
            containers.any(|container| Some(&container.image) == reference)
                && pin.is_none_or(|pin| hosts.any(|host| pin.admits(host)))
        });
        users.collect()
    }

    /// Returns true if a workload starts on all its hosts with the old image, and one of them refuses
    /// the new one.
    fn keeps_tag(&self, workload: usize, becomes: &Image) -> bool {
        let Some(placement) = self.rollout.placement_of(workload) else {
            return false;
        };
        let groups = placement.selection.groups.iter().enumerate();
        let refusing = groups.filter(|(place, group)| {
            let kind = &self.rollout.kinds[group.kind];
            let mut images = placement.images.iter();
            images.any(|own| {
                let isolation = own.findings[*place].isolation;
                own.image == self.place && is_refused(kind, becomes, isolation)
            })
        });
        let refusing: BTreeSet<usize> = refusing.map(|(place, _)| place).collect();
        let mut hosts = self.hosts_of(workload);
        !refusing.is_empty()
            && hosts.any(|(_, group)| refusing.contains(&group))
            && !self.needs_rebuild(workload)
    }

    /// The steps after which workloads run the rebuilt image, under its new name if it has one.
    /// Those by hand, with what follows them, are last, and only for workloads that need it.
    fn adopt(&self, to: Option<&str>, users: &[(usize, &Workload)]) -> Vec<ActionStep> {
        let from = self.image().reference.as_deref().unwrap_or_default();
        let mut commands = Vec::new();
        let mut by_hand: Vec<ActionStep> = Vec::new();
        for &(index, user) in users {
            let update = self.update(index, to.is_some());
            let mut steps = adopt_steps(user, from, to, update, self.flags);
            if running::is_on_node(user) {
                match self.patched_later(index) {
                    PatchedLater::None => {}
                    // The new image may not start there before.
                    PatchedLater::All => continue,
                    PatchedLater::Some => steps = steps_elsewhere(user, steps),
                }
            }
            let is_command = |step: &&ActionStep| matches!(step, ActionStep::Command(_));
            let rest = steps.split_off(steps.iter().take_while(is_command).count());
            // Several manifests may be of one object.
            steps.retain(|step| !commands.contains(step));
            // An absent owner is there once for each template of its pods.
            let is_new = rest.iter().any(|step| !by_hand.contains(step));
            if rest.is_empty() || is_new && self.needs_rebuild(index) {
                commands.extend(steps);
                by_hand.extend(rest);
            }
        }
        commands.extend(by_hand);
        commands
    }

    /// The steps after which a changed template of a workload reaches its pods.
    fn update(&self, workload: usize, has_new_name: bool) -> Vec<ActionStep> {
        let Some(deleted) = self.deleted_at_once(workload) else {
            return Vec::new();
        };
        let placement = self.rollout.placement_of(workload);
        let mut findings = placement.into_iter().flat_map(Placement::findings);
        let is_failing = findings.any(|it| it.outcome == VerdictOutcome::Incompatible);
        let own = &self.rollout.workloads[workload];
        let mut steps = update_steps(own, is_failing, deleted, self.flags);
        // A pod that waits for a reused tag gets it.
        if has_new_name {
            steps.extend(running::delete_jobs(self.rollout, workload, self.flags));
        }
        steps
    }

    /// The pods of a workload that are deleted once its image is rebuilt, where they are replaced
    /// only then. Those of a `DaemonSet` on nodes that are patched wait for that: a drain leaves
    /// them, and the new image may not start there before.
    fn deleted_at_once(&self, workload: usize) -> Option<&'static str> {
        const ONE_BY_ONE: &str = "one after the other";
        if self.rollout.workloads[workload].id.kind != "DaemonSet" {
            return Some(ONE_BY_ONE);
        }
        match self.patched_later(workload) {
            PatchedLater::None => Some(ONE_BY_ONE),
            PatchedLater::All => None,
            PatchedLater::Some => {
                Some("one after the other, except on the nodes that are patched later")
            }
        }
    }

    fn patched_later(&self, workload: usize) -> PatchedLater {
        let nodes: Vec<usize> = self.hosts_of(workload).map(|(host, _)| host).collect();
        let waiting = nodes.iter().filter(|host| self.patched.contains_key(*host));
        match waiting.count() {
            0 => PatchedLater::None,
            waiting if waiting == nodes.len() => PatchedLater::All,
            _ => PatchedLater::Some,
        }
    }

    /// The hosts where the pods of a workload can be scheduled after pinning, with their groups.
    fn hosts_of(&self, workload: usize) -> impl Iterator<Item = (usize, usize)> {
        let pin = self.pins.get(&workload);
        let placement = self.rollout.placement_of(workload);
        let hosts = placement.into_iter().flat_map(|it| &it.selection.hosts);
        let hosts = hosts.map(|&(host, group)| (host as usize, group as usize));
        hosts.filter(move |(host, _)| pin.is_none_or(|pin| pin.admits(&self.rollout.hosts[*host])))
    }

    /// Returns true if a workload does not start everywhere without the rebuild of the image.
    fn needs_rebuild(&self, workload: usize) -> bool {
        let Some(placement) = self.rollout.placement_of(workload) else {
            return false;
        };
        let fails = |group: usize| {
            let mut own = placement
                .images
                .iter()
                .filter(|own| own.image == self.place);
            own.any(|own| own.findings[group].outcome == VerdictOutcome::Incompatible)
        };
        let mut hosts = self.hosts_of(workload);
        hosts.any(|(host, group)| self.patched.contains_key(&host) || fails(group))
    }
}

/// The steps for a pod that may be on a node that is patched later, where it is not.
fn steps_elsewhere(pod: &Workload, steps: Vec<ActionStep>) -> Vec<ActionStep> {
    let steps = steps.into_iter().map(|step| {
        let (ActionStep::Command(text) | ActionStep::Manual(text)) = step;
        let id = &pod.id;
        ActionStep::Manual(format!(
            "unless {id} is on a node that is patched later: {text}"
        ))
    });
    steps.collect()
}

/// Returns true if nodes keep their copy of an image of these workloads.
fn has_copies(image: &Image, users: &[(usize, &Workload)]) -> bool {
    let Some(Location::Registry(reference)) = image.location() else {
        return false;
    };
    let keeps_copy = |(_, user): &(usize, &Workload)| {
        let mut containers = user.template.containers.iter();
        reference.digest().is_some()
            || containers.any(|own| {
                Some(&own.image) == image.reference.as_ref()
                    && own.pull_policy != PullPolicy::Always
            })
    };
    users.iter().any(keeps_copy)
}

/// A new tag of an image: not one of these that exist, nor one that the plan gives to another image.
fn new_tag(
    image: &Image,
    today: Date,
    existing: &[String],
    given: &BTreeSet<String>,
) -> Option<String> {
    let Some(Location::Registry(reference)) = image.location() else {
        return None;
    };
    let day = today.strftime("%Y%m%d").to_string();
    let again = (2_u32..).map(|number| format!("{day}-{number}"));
    let suffixes = [day.clone()].into_iter().chain(again);
    let own = reference.tag().and_then(index_tag);
    let mut tags = suffixes.map(|suffix| with_suffix(own, &suffix));
    tags.find(|tag| !existing.contains(tag) && !given.contains(&with_tag(&reference, tag)))
}

pub(super) fn new_name(image: &Image, tag: Option<&str>) -> Option<String> {
    match (tag, image.location()) {
        (Some(tag), Some(Location::Registry(reference))) => Some(with_tag(&reference, tag)),
        _ => None,
    }
}

/// Flag for the existing entries of a tag: those for other systems are kept, those of a rebuilt
/// build are replaced.
fn existing_entries_flag(image: &Image, builds: &[Build]) -> Option<&'static str> {
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

fn can_build(variant: &Variant) -> bool {
    variant.os == "windows" && variant.architecture == "amd64" && variant.version.is_some()
}

/// Adds the builds that the image has already: for the oldest host of that build, or for hosts
/// outside the check, unless its base is dead. Of two revisions of one build only one would ever be
/// selected, and an archive holds one image.
fn with_own_builds(mut builds: Vec<Build>, image: &Image, hosts: &[Node]) -> Vec<Build> {
    if matches!(image.location(), Some(Location::Archive { .. })) {
        return builds;
    }
    let mut own: Vec<WindowsVersion> = image
        .variants()
        .iter()
        .filter(|variant| can_build(variant))
        .filter_map(|variant| variant.version)
        .collect();
    own.sort_by_key(|version| Reverse(*version));
    for version in own {
        let known = || hosts.iter().filter_map(|host| Some(host.build?.version));
        let release = release::from_build(version.build);
        // The bases of this channel get no updates: only its own hosts need them.
        let is_dead = release.is_some_and(|release| release.kind == ReleaseKind::Sac)
            && known().all(|host| host.build != version.build);
        if !is_dead && builds.iter().all(|(_, base)| base.build != version.build) {
            let alike = known().filter(|host| {
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
pub(super) fn rebuilt(image: &Image, builds: &[Build]) -> Image {
    let kept = image.variants().iter().filter(|own| !can_build(own));
    let bases: BTreeSet<WindowsVersion> = builds.iter().map(|(_, base)| *base).collect();
    let mut variants: Vec<Variant> = bases
        .into_iter()
        .map(Variant::of_version)
        .chain(kept.cloned())
        .collect();
    // As a build orders an index: Docker takes the first.
    variants.sort_by_key(|own| (own.os == "windows", Reverse(own.version)));
    let content = match &variants[..] {
        [single] => ImageContent::Single(single.clone()),
        _ => ImageContent::Index(variants),
    };
    Image {
        reference: image.reference.clone(),
        content,
    }
}
