//! The smallest set of actions after which everything starts: images to build again, and nodes to
//! patch.
//!
//! On most builds a host takes or does not take an image for good, and only building it again helps.
//! Where the revision decides, hosts and images that meet have to come from one *generation* (see
//! [`generation`]), and hosts only ever move to a newer one. So all that are connected, host by
//! image by host, end up in one generation, and the cheapest is found by counting: one for each node
//! that is patched, one for each image that is built again.

mod cover;
mod graph;

use std::collections::BTreeSet;

use super::advice::{patch_commands, rebuild_command};
use super::image::{Content, Image, Variant};
use super::simulate::move_to;
use super::{Request, Rollout, Summary};
use crate::windows::update::{Kb, Updates};
use crate::windows::version::WindowsVersion;

use cover::builds_for;
use graph::{Choice, Graph};

/// What to do so that everything starts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// In the order in which they are best done.
    pub actions: Vec<Action>,
    /// How everything comes out then: what none of the actions mends is still there.
    pub then: Summary,
}

/// One thing to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Bring nodes to a version.
    Patch {
        /// The version.
        to: WindowsVersion,
        /// The first update that gets there, where one is known.
        kb: Option<Kb>,
        /// Indexes into the hosts.
        hosts: Vec<usize>,
        /// What to type.
        commands: Vec<String>,
    },
    /// Build an image for hosts.
    Rebuild {
        /// Index into the images.
        image: usize,
        /// The versions of the hosts that it is for.
        host_builds: Vec<WindowsVersion>,
        /// What to type.
        commands: Vec<String>,
    },
}

impl Plan {
    /// Plans for a request and the answers to it.
    pub fn new(request: &Request, rollout: &Rollout) -> Self {
        let graph = Graph::of(rollout);
        let choice = graph.choose();
        let mut after = request.clone();
        let mut actions = patches(&graph, &choice, &mut after);
        actions.extend(rebuilds(&graph, &choice, &mut after));
        let then = if actions.is_empty() {
            rollout.summary
        } else {
            Rollout::new(after).summary
        };
        Self { actions, then }
    }
}

impl Action {
    /// What to type.
    pub fn commands(&self) -> &[String] {
        match self {
            Self::Patch { commands, .. } | Self::Rebuild { commands, .. } => commands,
        }
    }
}

fn patches(graph: &Graph<'_>, choice: &Choice, after: &mut Request) -> Vec<Action> {
    let mut targets: Vec<(WindowsVersion, Vec<usize>)> = Vec::new();
    for (group, to) in &choice.patched {
        let hosts = &graph.groups[*group].hosts;
        for &host in hosts {
            move_to(&mut after.nodes.windows[host], *to);
        }
        match targets.iter_mut().find(|(known, _)| known == to) {
            Some((_, all)) => all.extend(hosts),
            None => targets.push((*to, hosts.clone())),
        }
    }
    targets.sort();
    let actions = targets.into_iter().map(|(to, mut hosts)| {
        hosts.sort_unstable();
        let kb = Updates::embedded()
            .reaching(to)
            .and_then(|update| update.kb);
        Action::Patch {
            to,
            kb,
            hosts,
            commands: patch_commands(to, kb),
        }
    });
    actions.collect()
}

fn rebuilds(graph: &Graph<'_>, choice: &Choice, after: &mut Request) -> Vec<Action> {
    let mut actions = Vec::new();
    for &image in &choice.rebuilt {
        let hosts: BTreeSet<_> = graph.hosts_of(image, choice).collect();
        let builds = builds_for(hosts);
        after.images[image] = rebuilt(&after.images[image], &builds);
        let host_builds: Vec<WindowsVersion> = builds.into_iter().map(|(host, _)| host).collect();
        actions.push(Action::Rebuild {
            image,
            commands: vec![rebuild_command(&graph.rollout.images[image], &host_builds)],
            host_builds,
        });
    }
    actions
}

/// The image as it is once it was built for hosts, each with the version of its base.
fn rebuilt(image: &Image, builds: &[(WindowsVersion, WindowsVersion)]) -> Image {
    let variants: Vec<Variant> = builds
        .iter()
        .map(|(_, base)| Variant {
            os: "windows".to_owned(),
            architecture: "amd64".to_owned(),
            os_version: Some(base.os_version()),
            version: Some(*base),
            ..Variant::default()
        })
        .collect();
    let content = match &variants[..] {
        [single] => Content::Single(single.clone()),
        _ => Content::Index(variants),
    };
    Image {
        reference: image.reference.clone(),
        content,
    }
}

#[cfg(test)]
mod tests;
