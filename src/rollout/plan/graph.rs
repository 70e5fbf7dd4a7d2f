//! Which images meet which hosts, and what has to change about either.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::rollout::{Content, HostKind, Image, Rollout, Variant};
use crate::windows::compat::{
    Edition, HostBuild, Isolation, Outcome, Runtime, accepted_builds, choose, generation,
};
use crate::windows::update::{Update, Updates};
use crate::windows::version::WindowsVersion;

/// Hosts and images that meet.
pub(super) struct Graph<'a> {
    pub(super) rollout: &'a Rollout,
    pub(super) groups: Vec<HostGroup>,
}

/// Hosts of one kind where the same images can land.
pub(super) struct HostGroup {
    build: HostBuild,
    runtime: Runtime,
    /// Indexes of the hosts.
    pub(super) hosts: Vec<usize>,
    /// The images that can land there and that an action could mend, and the version of each that
    /// the hosts would take.
    meets: BTreeMap<(usize, Isolation), Meeting>,
}

#[derive(Clone, Copy)]
struct Meeting {
    is_fine: bool,
    takes: Option<WindowsVersion>,
}

/// A host that an image is built for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Served {
    pub(super) version: WindowsVersion,
    pub(super) runtime: Runtime,
}

/// What is done.
#[derive(Debug, Clone, Default)]
pub(super) struct Choice {
    /// Groups that are patched, and to which version.
    pub(super) patched: BTreeMap<usize, WindowsVersion>,
    /// Images that are built again.
    pub(super) rebuilt: BTreeSet<usize>,
}

/// Groups of one build that images connect, with these images: they end up in one generation.
struct Component {
    groups: Vec<usize>,
    images: Vec<usize>,
    /// For each image the generation of what the groups take of it, where it is one.
    taken: Vec<Option<u32>>,
    /// The generations that they can end up in, and the version that brings a host there.
    options: Vec<(u32, WindowsVersion)>,
}

impl<'a> Graph<'a> {
    pub(super) fn of(rollout: &'a Rollout) -> Self {
        let mut of_host: Vec<Vec<u32>> = vec![Vec::new(); rollout.hosts.len()];
        for (index, placement) in (0..).zip(&rollout.placements) {
            for &(host, _) in &placement.selection.hosts {
                of_host[host as usize].push(index);
            }
        }
        let mut places: HashMap<(usize, Vec<u32>), usize> = HashMap::new();
        let mut groups: Vec<HostGroup> = Vec::new();
        let mut generations = Generations::default();
        for (host, placements) in of_host.into_iter().enumerate() {
            let kind = &rollout.kinds[rollout.kind_of[host]];
            let Some(build) = kind.build else { continue };
            let key = (rollout.kind_of[host], placements);
            if let Some(&place) = places.get(&key) {
                groups[place].hosts.push(host);
                continue;
            }
            let meets = meetings(rollout, host, build, &key.1, &mut generations);
            places.insert(key, groups.len());
            groups.push(HostGroup {
                build,
                runtime: kind.runtime,
                hosts: vec![host],
                meets,
            });
        }
        Self { rollout, groups }
    }

    /// The hosts that an image has to serve once the choice is carried out.
    pub(super) fn hosts_of(&self, image: usize, choice: &Choice) -> impl Iterator<Item = Served> {
        let groups = self
            .groups
            .iter()
            .enumerate()
            .filter(move |(_, group)| group.meets.keys().any(|(own, _)| *own == image));
        groups.map(|(index, group)| Served {
            version: *choice.patched.get(&index).unwrap_or(&group.build.version),
            runtime: group.runtime,
        })
    }

    /// The cheapest choice.
    pub(super) fn choose(&self) -> Choice {
        let components = self.components();
        let must = self.must_be_rebuilt();
        let mut picked: Vec<usize> = vec![0; components.len()];
        // An image can be in a component of each of several builds; so each is looked at again until
        // none has a cheaper option, given the others'.
        loop {
            let mut changed = false;
            for index in 0..components.len() {
                let cost_of = |option: usize| {
                    let mut trial = picked.clone();
                    trial[index] = option;
                    self.cost(&self.carry_out(&components, &trial, &must))
                };
                let best = (0..components[index].options.len())
                    // Of two that cost the same the newer generation, for its updates.
                    .min_by_key(|&option| (cost_of(option), std::cmp::Reverse(option)));
                if let Some(best) = best
                    && cost_of(best) < cost_of(picked[index])
                {
                    picked[index] = best;
                    changed = true;
                }
            }
            if !changed {
                return self.carry_out(&components, &picked, &must);
            }
        }
    }

    fn cost(&self, choice: &Choice) -> usize {
        let patched = choice
            .patched
            .keys()
            .map(|&group| self.groups[group].hosts.len());
        patched.sum::<usize>() + choice.rebuilt.len()
    }

    /// Images that only building again mends, whatever is patched.
    fn must_be_rebuilt(&self) -> BTreeSet<usize> {
        let mut must = BTreeSet::new();
        for group in &self.groups {
            for (&(image, isolation), meeting) in &group.meets {
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

    fn carry_out(
        &self,
        components: &[Component],
        picked: &[usize],
        must: &BTreeSet<usize>,
    ) -> Choice {
        let mut choice = Choice {
            rebuilt: must.clone(),
            ..Choice::default()
        };
        for (component, &option) in components.iter().zip(picked) {
            let Some(&(wanted, to)) = component.options.get(option) else {
                continue;
            };
            for (&image, taken) in component.images.iter().zip(&component.taken) {
                if *taken != Some(wanted) {
                    choice.rebuilt.insert(image);
                }
            }
            for &group in &component.groups {
                if generation(self.groups[group].build.version) != Some(wanted) {
                    choice.patched.insert(group, to);
                }
            }
        }
        choice
    }

    /// The generation of what a component's hosts take of an image.
    fn taken(&self, component: &Component, image: usize) -> Option<u32> {
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

    /// The version that brings a host into a generation: the update that reaches the newest image
    /// there, or the newest host.
    fn target(&self, component: &Component, build: u32, wanted: u32) -> WindowsVersion {
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
        Updates::embedded()
            .reaching(newest)
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
                taken: Vec::new(),
                options: Vec::new(),
            });
        }
        for component in &mut components {
            let images = component.images.iter();
            component.taken = images.map(|&image| self.taken(component, image)).collect();
            component.options = self.options(component);
        }
        components
    }

    /// The generations that all of a component can end up in: no host goes back.
    fn options(&self, component: &Component) -> Vec<(u32, WindowsVersion)> {
        let of_hosts = component
            .groups
            .iter()
            .filter_map(|&group| generation(self.groups[group].build.version));
        let oldest = of_hosts.max().unwrap_or_default();
        let build = self.groups[component.groups[0]].build.version.build;
        let of_images = component
            .images
            .iter()
            .flat_map(|&image| self.versions(component, image))
            .filter_map(generation);
        let newest_line = generation(WindowsVersion::new(build, u32::MAX))
            .filter(|generation| *generation != u32::MAX);
        let options: BTreeSet<u32> = of_images
            .chain(newest_line)
            .chain([oldest])
            .filter(|generation| *generation >= oldest)
            .filter(|generation| *generation == oldest || is_reachable(build, *generation))
            .collect();
        options
            .into_iter()
            .map(|wanted| (wanted, self.target(component, build, wanted)))
            .collect()
    }
}

/// Whether some update brings a host into a generation.
fn is_reachable(build: u32, wanted: u32) -> bool {
    let updates = Updates::embedded().of_build(build).iter();
    updates
        .map(Update::version)
        .any(|version| generation(version) == Some(wanted))
}

/// Whether the revision matters on a build, and is known.
fn has_generations(version: WindowsVersion) -> bool {
    let differs = generation(WindowsVersion::new(version.build, 0))
        != generation(WindowsVersion::new(version.build, u32::MAX));
    differs && generation(version).is_some()
}

/// The images that meet a host and that an action could mend or that are fine as they are.
fn meetings(
    rollout: &Rollout,
    host: usize,
    build: HostBuild,
    placements: &[u32],
    generations: &mut Generations,
) -> BTreeMap<(usize, Isolation), Meeting> {
    let mut meets = BTreeMap::new();
    for &index in placements {
        let placement = &rollout.placements[index as usize];
        let hosts = &placement.selection.hosts;
        let Ok(place) = hosts.binary_search_by_key(&host, |&(host, _)| host as usize) else {
            continue;
        };
        let group = hosts[place].1 as usize;
        for placed in &placement.images {
            let finding = &placed.findings[group];
            let image = &rollout.images[placed.image];
            let is_readable = !matches!(image.content, Content::Unreadable { .. });
            let is_hopeless = finding.outcome == Outcome::Unknown
                || finding.isolation == Isolation::HostProcess
                || (finding.isolation == Isolation::Process && is_old_client(build));
            if is_readable && !is_hopeless {
                let meeting = Meeting {
                    is_fine: finding.outcome != Outcome::Incompatible,
                    takes: finding
                        .image_build
                        .filter(|_| generations.is_one(rollout, host, placed.image, build)),
                };
                meets.insert((placed.image, finding.isolation), meeting);
            }
        }
    }
    meets
}

/// Whether all that a host may take of an image is of one generation, asked once for each kind of
/// host and image. Where it is not, no generation of hosts is right.
#[derive(Default)]
struct Generations(HashMap<(usize, usize), bool>);

impl Generations {
    fn is_one(&mut self, rollout: &Rollout, host: usize, image: usize, build: HostBuild) -> bool {
        let kind = rollout.kind_of[host];
        let known = self.0.entry((kind, image));
        *known.or_insert_with(|| {
            is_one_generation(&rollout.images[image], &rollout.kinds[kind], build)
        })
    }
}

fn is_one_generation(image: &Image, kind: &HostKind, build: HostBuild) -> bool {
    let variants = image.variants();
    let entries: Vec<_> = variants.iter().map(Variant::entry).collect();
    let places = choose(&entries, build, &kind.architecture, kind.runtime);
    let mut generations = places
        .into_iter()
        .map(|place| variants[place].version.and_then(generation));
    let first = generations.next();
    generations.all(|other| Some(other) == first)
}

fn is_old_client(build: HostBuild) -> bool {
    let takes_one = accepted_builds(build.version.build).count() == 1;
    build.edition == Edition::Client && takes_one
}
