//! Graph of images and hosts, and the search for the fewest changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use wincimg_windows::compat::{
    ContainerRuntime, HostBuild, Isolation, VerdictOutcome, generation, is_revision_relevant,
};
use wincimg_windows::update::{Update, Updates};
use wincimg_windows::version::WindowsVersion;

use super::host_class::{Class, classify};
use super::pin::Pin;
use crate::rollout::fix_text::is_fixable;
use crate::rollout::verdict::choices;
use crate::rollout::{HostKind, Image, Placement, Rollout};

/// Graph of the hosts and the images that can run there.
pub(super) struct Graph<'a> {
    pub(super) rollout: &'a Rollout,
    pub(super) groups: Vec<HostGroup>,
}

/// Hosts of one kind where the same images can run.
pub(super) struct HostGroup {
    build: HostBuild,
    runtime: ContainerRuntime,
    pub(super) hosts: Vec<usize>,
    /// The images that can run there and that an action could fix, with the version that the hosts
    /// would select.
    meets: Rc<Edges>,
}

type Edges = BTreeMap<(usize, Isolation), Edge>;

/// A kind of host, and the placements that include it.
type GroupKey = (usize, Vec<u32>);

/// Data that the graphs of one rollout share, independent of pins.
pub(super) struct GraphCache<'a> {
    rollout: &'a Rollout,
    classes: Vec<Class>,
    meetings: HashMap<Rc<GroupKey>, Rc<Edges>>,
    /// True for a kind of host and an image if all variants that the host may select are of one
    /// generation. Otherwise no generation of hosts is right.
    one_generation: HashMap<(usize, usize), bool>,
}

#[derive(Clone, Copy)]
struct Edge {
    is_fine: bool,
    takes: Option<WindowsVersion>,
}

/// A host that an image is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct TargetHost {
    pub(super) version: WindowsVersion,
    pub(super) runtime: ContainerRuntime,
}

/// Selected changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Choice {
    /// Groups to patch, with the version.
    pub(super) patched: BTreeMap<usize, WindowsVersion>,
    pub(super) rebuilt: BTreeSet<usize>,
}

/// Groups of one build that images connect, with these images: they end up in one generation.
struct Component {
    groups: Vec<usize>,
    images: Vec<usize>,
}

impl<'a> GraphCache<'a> {
    /// Creates the cache with all pins that a plan may have.
    pub(super) fn new(rollout: &'a Rollout, pins: &BTreeMap<usize, Pin>) -> Self {
        Self {
            rollout,
            classes: classify(rollout, pins),
            meetings: HashMap::new(),
            one_generation: HashMap::new(),
        }
    }
}

impl<'a> Graph<'a> {
    /// Creates the graph for a set of pins.
    pub(super) fn of(known: &mut GraphCache<'a>, pins: &BTreeMap<usize, Pin>) -> Self {
        let rollout = known.rollout;
        let mut places: HashMap<Rc<GroupKey>, usize> = HashMap::new();
        let mut groups: Vec<HostGroup> = Vec::new();
        for class in &known.classes {
            let kind = &rollout.kinds[class.kind];
            let Some(build) = kind.build else { continue };
            let landing = Rc::new((class.kind, class.placements(rollout, pins)));
            if let Some(&place) = places.get(&landing) {
                groups[place].hosts.extend(&class.hosts);
                continue;
            }
            let one_generation = &mut known.one_generation;
            let meets = known.meetings.entry(Rc::clone(&landing));
            let meets = meets.or_insert_with(|| {
                let meets = meetings(rollout, class.hosts[0], build, &landing.1, one_generation);
                Rc::new(meets)
            });
            places.insert(landing, groups.len());
            groups.push(HostGroup {
                build,
                runtime: kind.runtime,
                hosts: class.hosts.clone(),
                meets: Rc::clone(meets),
            });
        }
        Self { rollout, groups }
    }

    /// The hosts that an image has to serve after the selected changes.
    pub(super) fn hosts_of(
        &self,
        image: usize,
        choice: &Choice,
    ) -> impl Iterator<Item = TargetHost> {
        let groups = self
            .groups
            .iter()
            .enumerate()
            .filter(move |(_, group)| group.meets.keys().any(|(own, _)| *own == image));
        groups.map(|(index, group)| TargetHost {
            version: *choice.patched.get(&index).unwrap_or(&group.build.version),
            runtime: group.runtime,
        })
    }

    pub(super) fn patched_hosts(&self, choice: &Choice) -> BTreeMap<usize, WindowsVersion> {
        let patched = choice.patched.iter();
        patched
            .flat_map(|(&group, &to)| self.groups[group].hosts.iter().map(move |&host| (host, to)))
            .collect()
    }

    /// The choice that patches the fewest hosts, and among those rebuilds the fewest images.
    ///
    /// Hosts of one build that images connect end up in one generation, the newest of theirs,
    /// because no host is downgraded.
    pub(super) fn solve(&self) -> Choice {
        let mut choice = Choice {
            rebuilt: self.must_be_rebuilt(),
            ..Choice::default()
        };
        for component in self.components() {
            let of_hosts = component.groups.iter();
            let Some(wanted) = of_hosts
                .filter_map(|&group| generation(self.groups[group].build.version))
                .max()
            else {
                continue;
            };
            for &image in &component.images {
                if self.selected_generation(&component, image) != Some(wanted) {
                    choice.rebuilt.insert(image);
                }
            }
            let to = self.target(&component, wanted);
            for &group in &component.groups {
                if generation(self.groups[group].build.version) != Some(wanted) {
                    choice.patched.insert(group, to);
                }
            }
        }
        choice
    }

    /// Images that need a rebuild, whatever is patched.
    fn must_be_rebuilt(&self) -> BTreeSet<usize> {
        let mut must = BTreeSet::new();
        for group in &self.groups {
            for (&(image, isolation), meeting) in group.meets.iter() {
                let is_about_revisions = isolation == Isolation::Process
                    && meeting.takes.is_some_and(|version| {
                        version.build == group.build.version.build && has_generations(version)
                    });
                if !meeting.is_fine && !is_about_revisions {
                    must.insert(image);
                }
            }
        }
        must
    }

    /// Generation of the variant that a component's hosts select.
    fn selected_generation(&self, component: &Component, image: usize) -> Option<u32> {
        let versions = self.versions(component, image);
        let mut generations = versions.map(generation);
        let first = generations.next()??;
        generations
            .all(|other| other == Some(first))
            .then_some(first)
    }

    fn versions<'g>(
        &'g self,
        component: &'g Component,
        image: usize,
    ) -> impl Iterator<Item = WindowsVersion> + 'g {
        component.groups.iter().filter_map(move |&group| {
            let group = &self.groups[group];
            let meeting = group.meets.get(&(image, Isolation::Process))?;
            meeting
                .takes
                .filter(|version| version.build == group.build.version.build)
        })
    }

    /// The version that puts a host into a generation: the update of the newest image there, or of
    /// the newest host.
    fn target(&self, component: &Component, wanted: u32) -> WindowsVersion {
        let build = self.groups[component.groups[0]].build.version.build;
        let of_images = component
            .images
            .iter()
            .flat_map(|&image| self.versions(component, image));
        let of_hosts = component
            .groups
            .iter()
            .map(|&group| self.groups[group].build.version);
        let in_generation = |version: &WindowsVersion| generation(*version) == Some(wanted);
        let newest_image = of_images.filter(in_generation).max();
        let newest = newest_image
            .or_else(|| of_hosts.filter(in_generation).max())
            .unwrap_or(WindowsVersion::new(build, wanted));
        Updates::global()
            .first_reaching(newest)
            .map(Update::version)
            .filter(in_generation)
            .unwrap_or(newest)
    }

    fn components(&self) -> Vec<Component> {
        let mut components: Vec<Component> = Vec::new();
        for (index, group) in self.groups.iter().enumerate() {
            if !has_generations(group.build.version) {
                continue;
            }
            let images: BTreeSet<usize> = group
                .meets
                .keys()
                .filter(|(_, isolation)| *isolation == Isolation::Process)
                .map(|(image, _)| *image)
                .collect();
            if images.is_empty() {
                continue;
            }
            let build = group.build.version.build;
            let is_connected = |component: &Component| {
                self.groups[component.groups[0]].build.version.build == build
                    && component.images.iter().any(|image| images.contains(image))
            };
            let mut groups = vec![index];
            let mut all_images = images.clone();
            let mut rest = Vec::with_capacity(components.len());
            for component in components {
                if is_connected(&component) {
                    groups.extend(component.groups);
                    all_images.extend(component.images);
                } else {
                    rest.push(component);
                }
            }
            components = rest;
            components.push(Component {
                groups,
                images: all_images.into_iter().collect(),
            });
        }
        components
    }
}

/// Returns true if the revision matters on a build, and is known.
fn has_generations(version: WindowsVersion) -> bool {
    is_revision_relevant(version.build) && generation(version).is_some()
}

/// Returns true if pods of a workload do not start on hosts of this kind after any plan, because of
/// an image that no action changes: nothing is done for their other images there.
fn stays_broken(rollout: &Rollout, placement: &Placement, group: usize, kind: usize) -> bool {
    let mut images = placement.images.iter();
    placement.workload.is_some()
        && images.any(|placed| {
            let finding = &placed.findings[group];
            let image = &rollout.images[placed.image];
            finding.outcome == VerdictOutcome::Incompatible
                && (rollout.of_others[placed.image]
                    || !is_fixable(finding, image, &rollout.kinds[kind]))
        })
}

/// The images that can run on a host and that start or that an action could fix.
fn meetings(
    rollout: &Rollout,
    host: usize,
    build: HostBuild,
    placements: &[u32],
    one_generation: &mut HashMap<(usize, usize), bool>,
) -> Edges {
    let mut meets = BTreeMap::new();
    let kind = rollout.kind_of[host];
    for &index in placements {
        let placement = &rollout.placements[index as usize];
        let hosts = &placement.selection.hosts;
        let Ok(place) = hosts.binary_search_by_key(&host, |&(host, _)| host as usize) else {
            continue;
        };
        let group = hosts[place].1 as usize;
        if stays_broken(rollout, placement, group, kind) {
            continue;
        }
        for placed in &placement.images {
            let finding = &placed.findings[group];
            let image = &rollout.images[placed.image];
            let is_own = !rollout.of_others[placed.image];
            if is_own && is_fixable(finding, image, &rollout.kinds[kind]) {
                let is_one = one_generation.entry((kind, placed.image));
                let is_one = *is_one
                    .or_insert_with(|| is_one_generation(image, &rollout.kinds[kind], build));
                let meeting = Edge {
                    is_fine: finding.outcome != VerdictOutcome::Incompatible,
                    takes: finding.image_build.filter(|_| is_one),
                };
                meets.insert((placed.image, finding.isolation), meeting);
            }
        }
    }
    meets
}

fn is_one_generation(image: &Image, kind: &HostKind, build: HostBuild) -> bool {
    let variants = image.variants();
    let mut generations = choices(kind, build, variants)
        .into_iter()
        .filter_map(|choice| choice.entry)
        .map(|entry| variants[entry].version.and_then(generation));
    let first = generations.next();
    generations.all(|other| Some(other) == first)
}
