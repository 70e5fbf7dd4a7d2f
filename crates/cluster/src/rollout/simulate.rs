//! Simulation of patched nodes.

use std::fmt;
use std::str::FromStr;

use wincimg_common::wildcards;
use wincimg_windows::compat::HostBuild;
use wincimg_windows::update::{Kb, Update, Updates};
use wincimg_windows::version::WindowsVersion;

use crate::nodes::Node;

/// A simulated version of nodes: `NODE=BUILD`, where a `*` in NODE matches anything. A pattern
/// applies to nodes of BUILD's own build only, because no update changes the build. A node given by
/// name gets any version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulation {
    /// Name or pattern of the nodes.
    pub nodes: String,
    /// Simulated version.
    pub version: WindowsVersion,
}

/// Number of nodes that a simulation matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimulationMatches {
    /// Nodes with a new version.
    pub moved: usize,
    /// Nodes of other builds, which are unchanged.
    pub left: usize,
}

impl FromStr for Simulation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = "expected NODE=BUILD such as win-a=17763.1158 or win-*=17763.1158";
        text.split_once('=')
            .filter(|(nodes, _)| !nodes.is_empty())
            .and_then(|(nodes, version)| {
                Some(Self {
                    nodes: nodes.to_owned(),
                    version: version.parse().ok()?,
                })
            })
            .ok_or_else(|| format!("invalid simulation {text:?}: {expected}"))
    }
}

impl fmt::Display for Simulation {
    /// `win-*=17763.1158`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.nodes, self.version)
    }
}

impl Simulation {
    /// Sets the version of the matching nodes.
    pub fn apply(&self, nodes: &mut [Node]) -> SimulationMatches {
        let is_pattern = self.nodes.contains('*');
        // No name has a `?`, which is not a wildcard here.
        let fits = |name: &str| !self.nodes.contains('?') && wildcards::matches(&self.nodes, name);
        let mut named = SimulationMatches::default();
        for node in nodes {
            let version = node.build.map(|build| build.to_string());
            let name = node.name.as_deref().or(version.as_deref());
            if !name.is_some_and(fits) {
                continue;
            }
            let has_build = node
                .build
                .is_some_and(|build| build.version.build == self.version.build);
            if is_pattern && !has_build {
                named.left += 1;
            } else {
                set_version(node, self.version);
                named.moved += 1;
            }
        }
        named
    }
}

/// Applies an update to every node of its build with an older version; returns their number.
pub fn apply_hotfix(kb: Kb, nodes: &mut [Node]) -> usize {
    let mut patched = 0;
    for node in nodes {
        let newer = node.build.and_then(|host| {
            Updates::global()
                .by_kb(kb)
                .map(Update::version)
                .find(|version| version.build == host.version.build && *version > host.version)
        });
        if let Some(version) = newer {
            set_version(node, version);
            patched += 1;
        }
    }
    patched
}

pub(super) fn set_version(node: &mut Node, version: WindowsVersion) {
    node.build = Some(match node.build {
        Some(build) => HostBuild { version, ..build },
        None => HostBuild::new(version),
    });
    if let Some(label) = node.labels.get_mut("node.kubernetes.io/windows-build") {
        *label = format!("10.0.{}", version.build);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, version: &str) -> Node {
        Node {
            name: Some(name.to_owned()),
            ..Node::from_build(HostBuild::new(version.parse().unwrap()))
        }
    }

    fn versions(nodes: &[Node]) -> Vec<String> {
        nodes
            .iter()
            .map(|node| node.build.unwrap().to_string())
            .collect()
    }

    #[test]
    fn a_pattern_moves_nodes_of_its_build_alone() {
        let mut nodes = [
            node("win-a", "17763.973"),
            node("win-b", "20348.2402"),
            node("win-c", "17763"),
            Node {
                build: None,
                ..node("win-d", "17763.1")
            },
            node("other", "17763.973"),
        ];
        let simulation: Simulation = "win-*=17763.1158".parse().unwrap();
        assert_eq!(
            simulation.apply(&mut nodes),
            SimulationMatches { moved: 2, left: 2 }
        );
        assert_eq!(nodes[3].build, None);
        nodes[3].build = nodes[4].build;
        assert_eq!(
            versions(&nodes),
            [
                "17763.1158", "20348.2402", "17763.1158", "17763.973", "17763.973"
            ]
        );
    }

    #[test]
    fn a_node_moves_with_its_label() {
        let mut nodes = [node("win-a", "17763.973"), node("other", "17763.973")];
        let simulation: Simulation = "win-a=20348.2402".parse().unwrap();
        assert_eq!(
            simulation.apply(&mut nodes),
            SimulationMatches { moved: 1, left: 0 }
        );
        assert_eq!(versions(&nodes), ["20348.2402", "17763.973"]);
        assert_eq!(
            nodes[0].labels["node.kubernetes.io/windows-build"],
            "10.0.20348"
        );
    }

    #[test]
    fn a_hotfix_reaches_older_nodes_of_its_build_alone() {
        let mut nodes = [
            node("a", "17763.973"),
            node("b", "17763.5696"),
            node("c", "20348.1"),
            node("d", "17763"),
        ];
        assert_eq!(apply_hotfix("KB4549949".parse().unwrap(), &mut nodes), 2);
        assert_eq!(
            versions(&nodes),
            ["17763.1158", "17763.5696", "20348.1", "17763.1158"]
        );
    }

    #[test]
    fn what_is_no_simulation_is_refused() {
        for text in ["", "win-a", "=17763.1", "win-a=", "win-a=new"] {
            assert!(text.parse::<Simulation>().is_err(), "{text}");
        }
    }
}
