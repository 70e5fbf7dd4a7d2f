//! Nodes as `kubectl get nodes -o json` prints them.

use std::collections::BTreeMap;
use std::io::Read;

use serde::Deserialize;

use crate::windows::compat::{Edition, HostBuild};
use crate::windows::version::WindowsVersion;

/// A Windows node; its build is absent where no part of it could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowsNode {
    /// The node's name.
    pub name: String,
    /// Which Windows it runs.
    pub build: Option<HostBuild>,
}

/// The nodes of a cluster, as far as they matter here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeList {
    /// The Windows nodes, in the order of the list.
    pub windows: Vec<WindowsNode>,
    /// How many nodes run something else.
    pub others: usize,
}

/// Why a text is no list of nodes.
#[derive(Debug, thiserror::Error)]
pub enum NodesError {
    /// It cannot be read at all.
    #[error("cannot read the node list")]
    Unreadable(#[source] std::io::Error),
    /// It is not JSON, ends too early, or a field has the wrong type.
    #[error("line {line}, column {column}: {problem}; expected a list of nodes as JSON")]
    Malformed {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        /// What the JSON parser says.
        problem: String,
    },
    /// It is JSON of another kind.
    #[error("expected a list of nodes, found {0}")]
    OtherKind(String),
    /// It lists nothing.
    #[error("the node list is empty")]
    Empty,
}

#[derive(Deserialize)]
#[serde(expecting = "an object, as kubectl prints it")]
struct Document {
    kind: Option<String>,
    items: Option<Vec<Node>>,
    #[serde(flatten)]
    itself: Fields,
}

#[derive(Deserialize)]
#[serde(expecting = "a node object")]
struct Node {
    kind: Option<String>,
    #[serde(flatten)]
    fields: Fields,
}

#[derive(Deserialize, Default)]
struct Fields {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize, Default)]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(default)]
    node_info: NodeInfo,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct NodeInfo {
    #[serde(default)]
    operating_system: String,
    #[serde(default)]
    kernel_version: String,
    #[serde(default)]
    os_image: String,
}

/// Reads a list of nodes, or a single one.
pub fn read_nodes(source: impl Read) -> Result<NodeList, NodesError> {
    let reader = std::io::BufReader::with_capacity(1 << 16, source);
    let document: Document = serde_json::from_reader(reader).map_err(from_json)?;
    let items = match (document.kind.as_deref(), document.items) {
        (Some("Node"), None) => vec![Node {
            kind: None,
            fields: document.itself,
        }],
        (None | Some("List" | "NodeList"), Some(items)) => items,
        (Some(kind), _) => return Err(NodesError::OtherKind(format!("kind {kind:?}"))),
        (None, None) => {
            return Err(NodesError::OtherKind(
                "an object without kind and items".to_owned(),
            ));
        }
    };
    if items.is_empty() {
        return Err(NodesError::Empty);
    }
    let mut list = NodeList::default();
    for item in items {
        match item.kind.as_deref() {
            None | Some("Node") => {}
            Some(kind) => return Err(NodesError::OtherKind(format!("an item of kind {kind:?}"))),
        }
        match item.fields.windows_node() {
            Some(node) => list.windows.push(node),
            None => list.others += 1,
        }
    }
    Ok(list)
}

fn from_json(error: serde_json::Error) -> NodesError {
    if error.is_io() {
        return NodesError::Unreadable(error.into());
    }
    let text = error.to_string();
    let problem = match text.rsplit_once(" at line ") {
        Some((problem, _)) => problem.to_owned(),
        None => text,
    };
    NodesError::Malformed {
        line: error.line(),
        column: error.column(),
        problem,
    }
}

impl Fields {
    fn windows_node(self) -> Option<WindowsNode> {
        let info = &self.status.node_info;
        let label = |name: &str| self.metadata.labels.get(name).map(String::as_str);
        let system = match info.operating_system.as_str() {
            "" => label("kubernetes.io/os").unwrap_or_default(),
            system => system,
        };
        if system != "windows" {
            return None;
        }
        let version: Option<WindowsVersion> = info.kernel_version.parse().ok().or_else(|| {
            label("node.kubernetes.io/windows-build").and_then(|build| build.parse().ok())
        });
        let build = version.map(|version| match Edition::of_product(&info.os_image) {
            Some(edition) => HostBuild { version, edition },
            None => HostBuild::new(version),
        });
        Some(WindowsNode {
            name: self.metadata.name,
            build,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<NodeList, NodesError> {
        read_nodes(text.as_bytes())
    }

    fn message(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn windows_nodes_are_taken_and_others_counted() {
        let list = read(
            r#"{"kind":"List","items":[
              {"kind":"Node","metadata":{"name":"w1"},"status":{"nodeInfo":{"operatingSystem":"windows",
                "kernelVersion":"10.0.17763.973","osImage":"Windows Server 2019 Datacenter"}}},
              {"kind":"Node","metadata":{"name":"l1"},"status":{"nodeInfo":{"operatingSystem":"linux"}}},
              {"kind":"Node","metadata":{"name":"w2","labels":{"kubernetes.io/os":"windows",
                "node.kubernetes.io/windows-build":"10.0.20348"}}},
              {"kind":"Node","metadata":{"name":"w3"},"status":{"nodeInfo":{"operatingSystem":"windows"}}}]}"#,
        )
        .unwrap();
        let seen: Vec<_> = list
            .windows
            .iter()
            .map(|node| {
                (
                    node.name.as_str(),
                    node.build.map(|build| build.to_string()),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                ("w1", Some("17763.973".to_owned())),
                ("w2", Some("20348".to_owned())),
                ("w3", None)
            ]
        );
        assert_eq!(list.others, 1);
    }

    #[test]
    fn a_single_node_is_a_list_of_one() {
        let list = read(
            r#"{"kind":"Node","metadata":{"name":"w1"},
                "status":{"nodeInfo":{"operatingSystem":"windows","kernelVersion":"10.0.19045.1",
                "osImage":"Windows 10 Enterprise"}}}"#,
        )
        .unwrap();
        assert_eq!(list.windows[0].build.unwrap().edition, Edition::Client);
    }

    #[test]
    fn what_is_no_node_list_is_told_apart() {
        assert_eq!(
            message(r#"{"kind":"List","items":[]}"#),
            "the node list is empty"
        );
        assert_eq!(
            message(r#"{"kind":"PodList","items":[]}"#),
            "expected a list of nodes, found kind \"PodList\""
        );
        assert_eq!(
            message(r#"{"kind":"List","items":[{"kind":"Pod"}]}"#),
            "expected a list of nodes, found an item of kind \"Pod\""
        );
        assert_eq!(
            message("{}"),
            "expected a list of nodes, found an object without kind and items"
        );
        assert!(
            message("[1]").contains("line 1, column 1"),
            "{}",
            message("[1]")
        );
        assert!(message("{\"kind\":\n \"Li").starts_with("line 2, column "));
        assert!(message("").contains("EOF"));
    }
}
