//! Nodes as `kubectl get nodes -o json` prints them.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, Read};

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use wincimg_common::diagnose::{Diagnose, Excerpt};
use wincimg_windows::compat::{Edition, HostBuild, Runtime};
use wincimg_windows::version::WindowsVersion;

use super::null_is_default;
use super::recent::Recent;
use super::text::without_place;
use super::yaml::documents;

/// The label that says which system a node runs.
pub(crate) const OS_LABEL: &str = "kubernetes.io/os";
/// Its name before Kubernetes 1.14.
pub(super) const OLD_OS_LABEL: &str = "beta.kubernetes.io/os";
/// The label that says which build of Windows a node runs.
pub(crate) const BUILD_LABEL: &str = "node.kubernetes.io/windows-build";

/// The label by which these nodes say their system: the old one where none has the new one.
pub(crate) fn os_label(nodes: &[Node]) -> &'static str {
    let has = |label: &str| nodes.iter().any(|node| node.labels.contains_key(label));
    if has(OLD_OS_LABEL) && !has(OS_LABEL) {
        OLD_OS_LABEL
    } else {
        OS_LABEL
    }
}

/// A node, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name; absent for a host of which only the build was given.
    pub name: Option<String>,
    /// Which Windows it runs; absent where that could not be read, and for other systems.
    pub build: Option<HostBuild>,
    /// What runs its containers.
    pub runtime: Runtime,
    /// `amd64`, `arm64`, …
    pub architecture: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether it has no other labels than these.
    pub labels_are_complete: bool,
    /// What keeps pods off it.
    pub taints: Vec<Taint>,
}

/// What keeps pods off a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
pub struct Taint {
    /// Its name.
    pub key: String,
    /// Its value.
    #[serde(default, deserialize_with = "null_is_default")]
    pub value: String,
    /// `NoSchedule`, `NoExecute` or `PreferNoSchedule`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub effect: String,
}

impl Taint {
    /// Whether it is set and removed as a node's condition changes, or gone once the node has started.
    pub(super) fn is_passing(&self) -> bool {
        /// What the cluster autoscaler takes for a node that is about to be ready.
        const OF_AUTOSCALER: [&str; 3] = [
            "startup-taint.cluster-autoscaler.kubernetes.io/",
            "status-taint.cluster-autoscaler.kubernetes.io/",
            "ignore-taint.cluster-autoscaler.kubernetes.io/",
        ];
        // Drivers and agents, such as ebs.csi.aws.com, take theirs away when they run.
        self.key.ends_with("/agent-not-ready")
            || OF_AUTOSCALER
                .iter()
                .any(|prefix| self.key.starts_with(prefix))
            || matches!(
                self.key.as_str(),
                "node.kubernetes.io/not-ready"
                    | "node.kubernetes.io/unreachable"
                    | "node.kubernetes.io/unschedulable"
                    | "node.kubernetes.io/memory-pressure"
                    | "node.kubernetes.io/disk-pressure"
                    | "node.kubernetes.io/pid-pressure"
                    | "node.kubernetes.io/network-unavailable"
                    | "node.kubernetes.io/out-of-service"
                    | "node.cloudprovider.kubernetes.io/uninitialized"
                    | "node.cloudprovider.kubernetes.io/shutdown"
                    | "ToBeDeletedByClusterAutoscaler"
                    | "DeletionCandidateOfClusterAutoscaler"
                    | "node.cluster.x-k8s.io/uninitialized"
                    | "karpenter.sh/unregistered"
            )
    }
}

/// The nodes of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeList {
    /// The Windows nodes, in the order of the list.
    pub windows: Vec<Node>,
    /// Those that run something else.
    pub others: Vec<Node>,
}

/// Why a text is not a list of nodes.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "cluster/nodes", blame = Request)]
pub enum NodesError {
    /// It cannot be read at all.
    #[error("cannot read the node list")]
    #[diagnose(code = "file/io", blame = Circumstances)]
    Unreadable(#[source] std::io::Error),
    /// There is nothing in it.
    #[error("it is empty: expected a list of nodes")]
    #[diagnose(
        hint = "kubectl may have failed: see what `kubectl get nodes -o json` says by itself"
    )]
    NoText,
    /// It is neither JSON nor YAML, ends too early, or a field has the wrong type.
    #[error("line {line}, column {column}: {problem}; expected a list of nodes as JSON or YAML")]
    #[diagnose(hint = "--nodes takes the output of: kubectl get nodes -o json (or -o yaml)", excerpt = Some((**excerpt).clone()))]
    Malformed {
        /// Counted from 1.
        line: usize,
        /// Counted from 1.
        column: usize,
        /// What the parser says.
        problem: String,
        /// The line, with a mark below the word.
        excerpt: Box<Excerpt>,
    },
    /// It is JSON of another kind.
    #[error("expected a list of nodes, found {0}")]
    #[diagnose(hint = "--nodes takes the output of: kubectl get nodes -o json (or -o yaml)")]
    OtherKind(String),
    /// It lists nothing.
    #[error("the node list is empty")]
    #[diagnose(
        hint = "kubectl may ask another cluster: `kubectl config current-context` says which"
    )]
    Empty,
}

/// A document that is written as an object; derived code alone would take a list too.
struct Object(Document);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object, as kubectl prints it")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object, A::Error> {
                Document::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

#[derive(Deserialize)]
struct Document {
    kind: Option<String>,
    #[serde(default, deserialize_with = "null_is_no_item")]
    items: Option<Vec<NodeObject>>,
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

/// A list without items is written as `null` by some programs; it is a list all the same.
fn null_is_no_item<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<NodeObject>>, D::Error> {
    null_is_default(deserializer).map(Some)
}

/// A node as the API gives it.
#[derive(Debug, Clone, Deserialize)]
#[serde(expecting = "a node object")]
pub(super) struct NodeObject {
    kind: Option<String>,
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Clone, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    name: String,
    #[serde(default)]
    uid: String,
    #[serde(default)]
    resource_version: String,
    #[serde(default, deserialize_with = "null_is_default")]
    labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize, Default)]
struct Spec {
    #[serde(default, deserialize_with = "null_is_default")]
    taints: Vec<Taint>,
}

#[derive(Debug, Clone, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(default)]
    node_info: NodeInfo,
}

#[derive(Debug, Clone, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct NodeInfo {
    #[serde(default)]
    operating_system: String,
    #[serde(default)]
    architecture: String,
    #[serde(default)]
    kernel_version: String,
    #[serde(default)]
    os_image: String,
    #[serde(default)]
    container_runtime_version: String,
}

/// Reads a list of nodes, or a single one.
pub fn read_nodes(source: impl Read) -> Result<NodeList, NodesError> {
    let mut reader = std::io::BufReader::with_capacity(1 << 16, source);
    if !has_text(&mut reader).map_err(NodesError::Unreadable)? {
        return Err(NodesError::NoText);
    }
    let Object(document) = if is_json(&mut reader).map_err(NodesError::Unreadable)? {
        let mut recent = Recent::new(reader);
        serde_json::from_reader(&mut recent).map_err(|error| from_json(error, recent))?
    } else {
        from_yaml(reader)?
    };
    let items = match (document.kind.as_deref(), document.items) {
        (Some("Node"), None) => vec![NodeObject {
            kind: None,
            metadata: document.metadata,
            spec: document.spec,
            status: document.status,
        }],
        (None | Some("List" | "NodeList"), Some(items)) => items,
        (Some("List" | "NodeList"), None) => {
            return Err(NodesError::OtherKind("a list without items".to_owned()));
        }
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
        list.add(item);
    }
    Ok(list)
}

/// Whether anything but white space comes. What is looked at stays to be read, so that positions in
/// messages are right; only a start of nothing but white space is passed over.
fn has_text(reader: &mut impl BufRead) -> std::io::Result<bool> {
    loop {
        let seen = reader.fill_buf()?;
        if seen.iter().any(|byte| !byte.is_ascii_whitespace()) {
            return Ok(true);
        }
        let length = seen.len();
        if length == 0 {
            return Ok(false);
        }
        reader.consume(length);
    }
}

/// Whether text begins as JSON does.
fn is_json(reader: &mut impl BufRead) -> std::io::Result<bool> {
    let seen = reader.fill_buf()?;
    let first = seen.iter().find(|byte| !byte.is_ascii_whitespace());
    Ok(matches!(first, Some(b'{' | b'[')))
}

/// YAML as `kubectl get nodes -o yaml` prints it, or a document for each node.
fn from_yaml(mut reader: impl Read) -> Result<Object, NodesError> {
    let mut text = String::new();
    reader
        .read_to_string(&mut text)
        .map_err(NodesError::Unreadable)?;
    let read = documents(&text).map_err(|malformed| NodesError::Malformed {
        line: malformed.line,
        column: malformed.column,
        problem: malformed.problem,
        excerpt: Box::new(malformed.excerpt),
    })?;
    let mut objects = Vec::new();
    let mut line = 1;
    for (place, document) in read.documents {
        match document {
            Value::Null => continue,
            Value::Object(_) => objects.push(document),
            _ => {
                return Err(NodesError::Malformed {
                    line: place,
                    column: 1,
                    problem: "found plain text or a list".to_owned(),
                    excerpt: Box::new(Excerpt::at_place(&text, place, 1)),
                });
            }
        }
        line = place;
    }
    let document = match objects.len() {
        0 => return Err(NodesError::Empty),
        1 => objects.remove(0),
        _ => serde_json::json!({ "kind": "List", "items": objects }),
    };
    Object::deserialize(document).map_err(|error| NodesError::Malformed {
        line,
        column: 1,
        problem: error.to_string(),
        excerpt: Box::new(Excerpt::at_place(&text, line, 1)),
    })
}

fn from_json(error: serde_json::Error, recent: Recent<impl Read>) -> NodesError {
    if error.is_io() {
        return NodesError::Unreadable(error.into());
    }
    NodesError::Malformed {
        line: error.line(),
        column: error.column(),
        problem: without_place(&error.to_string()).to_owned(),
        excerpt: Box::new(recent.excerpt(error.line(), error.column())),
    }
}

impl NodeList {
    pub(super) fn add(&mut self, object: NodeObject) {
        // Virtual nodes write it with a capital.
        let is_windows = object.system().eq_ignore_ascii_case("windows");
        let node = object.into_node(is_windows);
        if is_windows {
            self.windows.push(node);
        } else {
            self.others.push(node);
        }
    }
}

impl NodeObject {
    pub(super) fn name(&self) -> &str {
        &self.metadata.name
    }

    pub(super) fn uid(&self) -> &str {
        &self.metadata.uid
    }

    pub(super) fn version(&self) -> &str {
        &self.metadata.resource_version
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.metadata.labels.get(name).map(String::as_str)
    }

    fn system(&self) -> &str {
        match self.status.node_info.operating_system.as_str() {
            "" => self
                .label(OS_LABEL)
                .or_else(|| self.label(OLD_OS_LABEL))
                .unwrap_or_default(),
            system => system,
        }
    }

    fn into_node(self, is_windows: bool) -> Node {
        let info = &self.status.node_info;
        let version: Option<WindowsVersion> = info
            .kernel_version
            .parse()
            .ok()
            .or_else(|| self.label(BUILD_LABEL).and_then(|build| build.parse().ok()));
        let build = version.filter(|_| is_windows).map(|version| {
            match Edition::of_product(&info.os_image) {
                Some(edition) => HostBuild { version, edition },
                None => HostBuild::new(version),
            }
        });
        let architecture = match info.architecture.as_str() {
            "" => self.label("kubernetes.io/arch").unwrap_or("amd64"),
            architecture => architecture,
        };
        Node {
            build,
            runtime: Runtime::of_node(&info.container_runtime_version),
            architecture: architecture.to_owned(),
            name: Some(self.metadata.name),
            labels: self.metadata.labels,
            labels_are_complete: true,
            taints: self.spec.taints,
        }
    }
}

impl Node {
    /// A Windows host of which only the build is known: nothing about it rules a pod out that does
    /// not contradict the build.
    pub fn of_build(build: HostBuild) -> Self {
        let labels = [
            (OS_LABEL, "windows".to_owned()),
            (OLD_OS_LABEL, "windows".to_owned()),
            ("kubernetes.io/arch", "amd64".to_owned()),
            (BUILD_LABEL, format!("10.0.{}", build.version.build)),
        ];
        Self {
            name: None,
            build: Some(build),
            runtime: Runtime::CONTAINERD,
            architecture: "amd64".to_owned(),
            labels: labels
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            labels_are_complete: false,
            taints: Vec::new(),
        }
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
                    node.name.as_deref().unwrap_or_default(),
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
        assert_eq!(list.others.len(), 1);
    }

    #[test]
    fn a_node_that_writes_windows_with_a_capital_runs_windows() {
        let list = read(
            r#"{"kind":"Node","metadata":{"name":"virtual-kubelet"},
                "status":{"nodeInfo":{"operatingSystem":"Windows"}}}"#,
        )
        .unwrap();
        assert_eq!((list.windows.len(), list.others.len()), (1, 0));
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
        assert!(message("").starts_with("it is empty"));
        assert!(message(" \r\n").starts_with("it is empty"));
        assert_eq!(
            message(r#"{"kind":"List"}"#),
            "expected a list of nodes, found a list without items"
        );
        for null in [r#"{"kind":"List","items":null}"#, r#"{"items":null}"#] {
            assert_eq!(message(null), "the node list is empty");
        }
    }

    #[test]
    fn yaml_is_read_as_json_is() {
        let json = r#"{"kind":"List","items":[
          {"kind":"Node","metadata":{"name":"w1"},"status":{"nodeInfo":{"operatingSystem":"windows",
            "kernelVersion":"10.0.17763.973","osImage":"Windows Server 2019 Datacenter"}}}]}"#;
        let item = "  kind: Node\n  metadata: {name: w1}\n  status:\n    nodeInfo:\n      \
                    operatingSystem: windows\n      kernelVersion: 10.0.17763.973\n      \
                    osImage: Windows Server 2019 Datacenter\n";
        let expected = read(json).unwrap();
        let list = format!("apiVersion: v1\nkind: List\nitems:\n-{}", &item[1..]);
        assert_eq!(read(&list).unwrap(), expected);
        let document = item.replace("\n  ", "\n");
        let document = document.trim_start();
        assert_eq!(read(document).unwrap(), expected);
        let twice = read(&format!("# two\n---\n{document}---\n{document}")).unwrap();
        assert_eq!(twice.windows.len(), 2);
        for (text, problem) in [
            ("NAME STATUS\nw1 Ready\n", "found plain text or a list"),
            ("- kind: Node\n", "found plain text or a list"),
            ("kind: Pod\n", "found kind \"Pod\""),
            ("items: [\n", "expected a list of nodes as JSON or YAML"),
            ("# nothing\n", "the node list is empty"),
        ] {
            assert!(message(text).contains(problem), "{text}: {}", message(text));
        }
    }
}
