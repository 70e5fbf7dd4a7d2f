//! The nodes of a Windows build, as the pods of generated manifests have to know them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::nodes::{BUILD_LABEL, Node, OS_LABEL, Taint};
use crate::scheduling::Scheduling;

/// The nodes of a build, as far as a pod has to know them.
#[derive(Debug, Clone)]
pub struct BuildNodes {
    /// Their build.
    pub build: u32,
    /// Their labels, by which a pod selects them.
    pub(crate) selector: BTreeMap<String, String>,
    pub(crate) tolerations: Vec<Value>,
}

impl BuildNodes {
    /// Nodes of a build. Known nodes decide the tolerations; for others they are those of the usual
    /// taints of Windows nodes.
    pub fn new(build: u32, nodes: &[&Node]) -> Self {
        let known = nodes.iter().filter(|node| node.name.is_some());
        let mut taints: Vec<&Taint> = known.flat_map(|node| &node.taints).collect();
        taints.retain(|taint| !taint.is_passing() && taint.effect != "PreferNoSchedule");
        let mut tolerations: Vec<Value> = Vec::new();
        let is_known = nodes.iter().any(|node| node.name.is_some());
        let usual = ["os", "node.kubernetes.io/os", "sku"];
        let usual = usual.iter().filter(|_| !is_known);
        let usual =
            usual.map(|key| json!({"key": key, "operator": "Exists", "effect": "NoSchedule"}));
        let of_nodes = taints.into_iter().map(|taint| {
            json!({
                "key": taint.key,
                "operator": "Equal",
                "value": taint.value,
                "effect": taint.effect,
            })
        });
        for toleration in usual.chain(of_nodes) {
            if !tolerations.contains(&toleration) {
                tolerations.push(toleration);
            }
        }
        let labels = [
            (OS_LABEL, "windows".to_owned()),
            (BUILD_LABEL, format!("10.0.{build}")),
        ];
        let labels = labels.map(|(key, value)| (key.to_owned(), value));
        Self {
            build,
            selector: labels.into(),
            tolerations,
        }
    }

    /// The nodes of each build, the oldest first, with these labels besides the build's; hosts
    /// without a known build are left out.
    pub fn of_each(nodes: &[Node], labels: &[(String, String)]) -> Vec<Self> {
        let mut builds: BTreeMap<u32, Vec<&Node>> = BTreeMap::new();
        for node in nodes {
            if let Some(host) = node.build {
                builds.entry(host.version.build).or_default().push(node);
            }
        }
        let builds = builds.into_iter().map(|(build, own)| {
            let mut nodes = Self::new(build, &own);
            nodes.selector.extend(labels.iter().cloned());
            nodes
        });
        builds.collect()
    }

    /// Returns true if a pod of the build may be scheduled on one of these nodes. The labels of a
    /// host without a name are unknown.
    pub fn select_any(&self, nodes: &[Node]) -> bool {
        let scheduling = Scheduling {
            selector: self.selector.clone(),
            ..Scheduling::default()
        };
        self.own(nodes).any(|node| scheduling.matches_node(node))
    }

    /// The labels that nodes of the build lack, so that no pod is scheduled there, each with the
    /// names of these nodes.
    pub fn missing_labels<'a>(&self, nodes: &'a [Node]) -> Vec<(String, Vec<&'a str>)> {
        let missing = self.selector.iter().map(|(key, value)| {
            let lacking = self
                .own(nodes)
                .filter(|node| node.labels.get(key) != Some(value));
            let names = lacking.filter_map(|node| node.name.as_deref());
            (format!("{key}={value}"), names.collect::<Vec<_>>())
        });
        missing.filter(|(_, names)| !names.is_empty()).collect()
    }

    /// Those of these nodes that have the build.
    pub fn own<'a>(&self, nodes: &'a [Node]) -> impl Iterator<Item = &'a Node> {
        let build = self.build;
        let is_own = move |node: &&Node| node.build.is_some_and(|it| it.version.build == build);
        nodes.iter().filter(is_own)
    }
}

#[cfg(test)]
mod tests {
    use wincimg_windows::compat::HostBuild;

    use super::*;

    fn host() -> Node {
        Node::from_build(HostBuild::new("20348.2402".parse().unwrap()))
    }

    #[test]
    fn known_nodes_decide_what_is_tolerated() {
        let taint = |text: &str| serde_json::from_str::<Taint>(text).unwrap();
        let mut node = host();
        let usual = BuildNodes::new(20348, &[&node]);
        assert_eq!(usual.tolerations.len(), 3);
        node.name = Some("win-a".to_owned());
        assert!(BuildNodes::new(20348, &[&node]).tolerations.is_empty());
        node.taints = vec![
            taint(r#"{"key": "sku", "value": "Windows", "effect": "NoSchedule"}"#),
            taint(r#"{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}"#),
            taint(r#"{"key": "spot", "value": "yes", "effect": "PreferNoSchedule"}"#),
        ];
        let same = node.clone();
        let nodes = BuildNodes::new(20348, &[&node, &same]);
        let sku =
            json!({"key": "sku", "operator": "Equal", "value": "Windows", "effect": "NoSchedule"});
        assert_eq!(nodes.tolerations, [sku]);
    }

    #[test]
    fn nodes_without_a_selected_label_are_named() {
        fn owned(labels: &[(&str, &str)]) -> Vec<(String, String)> {
            let labels = labels.iter();
            let labels = labels.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            labels.collect()
        }
        let node = |name: &str, labels: &[(&str, &str)]| Node {
            name: Some(name.to_owned()),
            labels: owned(labels).into_iter().collect(),
            labels_are_complete: true,
            ..host()
        };
        let (os, build) = ((OS_LABEL, "windows"), (BUILD_LABEL, "10.0.20348"));
        let nodes = [
            node("win-a", &[os]),
            node("win-b", &[os, build, ("pool", "old")]),
            host(),
        ];
        let of = |labels: &[(&str, &str)]| BuildNodes::of_each(&nodes, &owned(labels)).remove(0);
        let build = format!("{BUILD_LABEL}=10.0.20348");
        let plain = of(&[]);
        let expected = [(build.clone(), vec!["win-a"])];
        assert_eq!(plain.missing_labels(&nodes), expected);
        assert!(plain.select_any(&nodes) && !plain.select_any(&nodes[..1]));
        let new = of(&[("pool", "new")]);
        let pool = ("pool=new".to_owned(), vec!["win-a", "win-b"]);
        assert_eq!(new.missing_labels(&nodes), [(build, vec!["win-a"]), pool]);
        // A host that is only a build may have any label.
        assert!(new.select_any(&nodes) && !new.select_any(&nodes[..2]));
    }
}
