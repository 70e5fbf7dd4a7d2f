//! The nodes of a Windows build, as the pods of generated manifests have to know them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::nodes::{BUILD_LABEL, Node, OS_LABEL, Taint};

/// The nodes of a build, as far as a pod has to know them.
#[derive(Debug, Clone)]
pub struct BuildNodes {
    /// Their build.
    pub build: u32,
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
        Self { build, tolerations }
    }

    /// The nodes of each build, the oldest first; hosts without a known build are left out.
    pub fn of_each(nodes: &[Node]) -> Vec<Self> {
        let mut builds: BTreeMap<u32, Vec<&Node>> = BTreeMap::new();
        for node in nodes {
            if let Some(host) = node.build {
                builds.entry(host.version.build).or_default().push(node);
            }
        }
        let builds = builds.into_iter();
        builds.map(|(build, own)| Self::new(build, &own)).collect()
    }

    /// The labels of the nodes, as a pod selects them.
    pub(crate) fn selector(&self) -> Value {
        json!({OS_LABEL: "windows", BUILD_LABEL: format!("10.0.{}", self.build)})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_nodes_decide_what_is_tolerated() {
        let taint = |text: &str| serde_json::from_str::<Taint>(text).unwrap();
        let mut node = Node::from_build(wincimg_windows::compat::HostBuild::new(
            "20348.2402".parse().unwrap(),
        ));
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
        assert_eq!(
            nodes.tolerations,
            [
                json!({"key": "sku", "operator": "Equal", "value": "Windows", "effect": "NoSchedule"})
            ]
        );
    }
}
