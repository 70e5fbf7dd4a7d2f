//! Nodes as `kubectl get nodes -o json` prints them.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Deserializer};
use serde_path_to_error::Segment;
use wincimg_common::diagnose::{Excerpt, Problem};
use wincimg_common::json::or_default;
use wincimg_windows::compat::{ContainerRuntime, HostBuild, WindowsEdition};
use wincimg_windows::version::WindowsVersion;

use super::pod::Hyperv;
use super::yaml::{
    Document, Items, MOST_OBJECTS, documents, excerpt, too_many_objects, without_place,
};

/// Label with a node's operating system.
pub(crate) const OS_LABEL: &str = "kubernetes.io/os";
/// Name of that label before Kubernetes 1.14.
pub(super) const OLD_OS_LABEL: &str = "beta.kubernetes.io/os";
pub(crate) const BUILD_LABEL: &str = "node.kubernetes.io/windows-build";

/// The operating system label of these nodes: the old one if none has the new one.
pub(crate) fn os_label(nodes: &[Node]) -> &'static str {
    let has = |label: &str| nodes.iter().any(|node| node.labels.contains_key(label));
    if has(OLD_OS_LABEL) && !has(OS_LABEL) {
        OLD_OS_LABEL
    } else {
        OS_LABEL
    }
}

/// The properties of a node that decide compatibility and scheduling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Name; absent for a host given by its build alone.
    pub name: Option<String>,
    /// Windows build; absent if it could not be read, and for other systems.
    pub build: Option<HostBuild>,
    /// Container runtime.
    pub runtime: ContainerRuntime,
    /// Version of its kubelet, `v1.31.4+rke2r1`; empty if not known.
    pub kubelet: String,
    /// `amd64`, `arm64`, …
    pub architecture: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// True if all of its labels are known.
    pub labels_are_complete: bool,
    /// Taints.
    pub taints: Vec<Taint>,
    /// True if it is cordoned.
    pub is_cordoned: bool,
}

/// A taint of a node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize)]
pub struct Taint {
    /// Its name.
    pub key: String,
    /// Its value.
    #[serde(default, deserialize_with = "or_default")]
    pub value: String,
    /// `NoSchedule`, `NoExecute` or `PreferNoSchedule`.
    #[serde(default, deserialize_with = "or_default")]
    pub effect: String,
}

impl Taint {
    /// The usual taint of Windows nodes, which keeps off pods that do not tolerate it.
    pub(crate) fn of_windows() -> Self {
        Self {
            key: "os".to_owned(),
            value: "windows".to_owned(),
            effect: "NoSchedule".to_owned(),
        }
    }

    /// Returns true if it is temporary: set and removed with a node's condition, removed once the
    /// node has started, or set before another node replaces it.
    pub(crate) fn is_passing(&self) -> bool {
        /// The cluster autoscaler ignores the first three on a starting node.
        const PREFIXES: [&str; 4] = [
            "startup-taint.cluster-autoscaler.kubernetes.io/",
            "status-taint.cluster-autoscaler.kubernetes.io/",
            "ignore-taint.cluster-autoscaler.kubernetes.io/",
            "aws-node-termination-handler/",
        ];
        // Drivers and agents, such as ebs.csi.aws.com, remove theirs when they run.
        self.key.ends_with("/agent-not-ready")
            || PREFIXES.iter().any(|prefix| self.key.starts_with(prefix))
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
                    | "karpenter.sh/disrupted"
                    | "karpenter.sh/disruption"
                    | "cloud.google.com/impending-node-termination"
            )
    }
}

/// The nodes of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NodeList {
    /// The Windows nodes, in the order of the list.
    pub windows: Vec<Node>,
    /// Nodes with other operating systems.
    pub others: Vec<Node>,
}

/// Error for input other than a list of nodes.
fn no_list(problem: impl Into<String>) -> Problem {
    Problem::request("cluster/nodes", problem)
        .hint("--nodes takes the output of: kubectl get nodes -o json (or -o yaml)")
}

/// Error for an object of another kind.
fn other_kind(found: &str) -> Problem {
    no_list(format!("expected a list of nodes, found {found}"))
}

/// Reads `null`, which some programs write for an empty list.
fn null_is_empty<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Vec<NodeObject>>, D::Error> {
    let items = Option::<Items<NodeObject>>::deserialize(deserializer)?;
    Ok(Some(items.map_or_else(Vec::new, |Items(items)| items)))
}

/// A node object of the API, or a list of them.
#[derive(Debug, Clone, Deserialize)]
#[serde(expecting = "a node object")]
pub(super) struct NodeObject {
    kind: Option<String>,
    #[serde(default, deserialize_with = "null_is_empty")]
    items: Option<Vec<NodeObject>>,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) metadata: Metadata,
    #[serde(default, deserialize_with = "or_default")]
    spec: Spec,
    #[serde(default, deserialize_with = "or_default")]
    status: Status,
}

#[derive(Debug, Clone, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Metadata {
    pub name: String,
    pub uid: String,
    pub resource_version: String,
    #[serde(default, deserialize_with = "or_default")]
    labels: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize, Default)]
struct Spec {
    #[serde(default, deserialize_with = "or_default")]
    taints: Vec<Taint>,
    #[serde(default, deserialize_with = "or_default")]
    unschedulable: bool,
}

#[derive(Debug, Clone, Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(default, deserialize_with = "or_default")]
    node_info: NodeInfo,
}

#[derive(Debug, Clone, Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct NodeInfo {
    operating_system: String,
    architecture: String,
    kernel_version: String,
    os_image: String,
    container_runtime_version: String,
    kubelet_version: String,
}

/// Reads lists of nodes, or single ones.
pub fn read_nodes(text: &str) -> Result<NodeList, Problem> {
    if text.trim().is_empty() {
        return Err(no_list("it is empty: expected a list of nodes")
            .hint("kubectl may have failed: run `kubectl get nodes -o json` by itself"));
    }
    let mut list = NodeList::default();
    // Lists of one cluster may overlap.
    let mut uids = HashSet::new();
    for document in read_documents(text)? {
        for item in document.into_items()? {
            let uid = &item.metadata.uid;
            if !uid.is_empty() && !uids.insert(uid.clone()) {
                continue;
            }
            match item.kind.as_deref() {
                None | Some("Node") => list.add(item),
                Some(kind) => return Err(other_kind(&format!("an item of kind {kind:?}"))),
            }
        }
    }
    if list.windows.is_empty() && list.others.is_empty() {
        return Err(no_list("the node list is empty")
            .hint("kubectl may use another cluster: check `kubectl config current-context`"));
    }
    Ok(list)
}

/// Error for what is wrong at a place of a text.
fn malformed(line: usize, column: usize, problem: &str, excerpt: Excerpt) -> Problem {
    no_list(format!(
        "line {line}, column {column}: {problem}; expected a list of nodes as JSON or YAML"
    ))
    .excerpt(Some(excerpt))
}

/// An answer of the API server in place of a list.
#[derive(Deserialize)]
struct ApiStatus {
    kind: String,
    message: String,
}

/// The error for a document that is an answer of the API server.
fn of_server(json: &str) -> Option<Problem> {
    let ApiStatus { kind, message } = serde_json::from_str(json).ok()?;
    let found = format!("an error of the API server: {message}");
    (kind == "Status").then(|| other_kind(&found))
}

/// Parses JSON as kubectl prints it, without its irrelevant fields; none if the text is something
/// else.
fn read_json(text: &str) -> Result<Option<NodeObject>, Problem> {
    let mut json = serde_json::Deserializer::from_str(text);
    match serde_path_to_error::deserialize(&mut json) {
        Ok(document) if json.end().is_ok() => Ok(Some(document)),
        Err(error) if error.inner().is_data() => {
            if let Some(answer) = of_server(text) {
                return Err(answer);
            }
            let inner = error.inner();
            let (line, column) = (inner.line(), inner.column());
            let (problem, excerpt) = (error.to_string(), excerpt(text, line, column));
            Err(malformed(line, column, without_place(&problem), excerpt))
        }
        _ => Ok(None),
    }
}

/// Parses the documents of a text.
fn read_documents(text: &str) -> Result<Vec<NodeObject>, Problem> {
    if text.trim_start().starts_with('{')
        && let Some(document) = read_json(text)?
    {
        return Ok(vec![document]);
    }
    let read = documents(text)
        .map_err(|error| malformed(error.line, error.column, &error.problem, error.excerpt))?;
    let objects = read.documents.into_iter();
    let objects = objects.filter(|document| document.json != "null");
    let mut items = 0;
    objects
        .map(|document| {
            let Document {
                line,
                json,
                item_lines,
                lacks,
            } = document;
            let wrong =
                |line, problem: &str| malformed(line, 1, problem, Excerpt::at_place(text, line, 1));
            if !json.starts_with('{') {
                return Err(wrong(line, "found plain text or a list without `items`"));
            }
            if let Some(part) = lacks {
                let problem = format!("found {}", part.found);
                return Err(wrong(line, &problem).hint(part.hint));
            }
            items += item_lines.len();
            if items > MOST_OBJECTS {
                return Err(wrong(line, &too_many_objects()));
            }
            let mut parser = serde_json::Deserializer::from_str(&json);
            serde_path_to_error::deserialize(&mut parser).map_err(|error| {
                if let Some(answer) = of_server(&json) {
                    return answer;
                }
                let mut path = error.path().iter();
                let item = match (path.next(), path.next()) {
                    (Some(Segment::Map { key }), Some(Segment::Seq { index }))
                        if key == "items" =>
                    {
                        item_lines.get(*index).copied()
                    }
                    _ => None,
                };
                let problem = error.to_string();
                wrong(item.unwrap_or(line), without_place(&problem))
            })
        })
        .collect()
}

impl NodeList {
    pub(super) fn add(&mut self, object: NodeObject) {
        // Virtual nodes capitalize it.
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
    /// The nodes of a document: its items, or itself.
    fn into_items(self) -> Result<Vec<Self>, Problem> {
        if self.items.is_none() && self.kind.as_deref() == Some("Node") {
            return Ok(vec![self]);
        }
        match (self.kind.as_deref(), self.items) {
            (None | Some("List" | "NodeList"), Some(items)) => Ok(items),
            (Some("List" | "NodeList"), None) => Err(other_kind("a list without items")),
            (Some(kind), _) => Err(other_kind(&format!("kind {kind:?}"))),
            (None, None) => Err(other_kind("an object without kind and items")),
        }
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
            let edition = WindowsEdition::from_product_name(&info.os_image);
            let host = HostBuild::new(version);
            HostBuild {
                edition: edition.unwrap_or(host.edition),
                ..host
            }
        });
        let architecture = match info.architecture.as_str() {
            "" => self.label("kubernetes.io/arch").unwrap_or("amd64"),
            architecture => architecture,
        };
        Node {
            build,
            runtime: ContainerRuntime::from_node(&info.container_runtime_version),
            architecture: architecture.to_owned(),
            kubelet: self.status.node_info.kubelet_version,
            name: Some(self.metadata.name),
            labels: self.metadata.labels,
            labels_are_complete: true,
            taints: self.spec.taints,
            is_cordoned: self.spec.unschedulable,
        }
    }
}

impl Node {
    /// `21` of the kubelet `v1.21.5`.
    fn minor_version(&self) -> Option<u32> {
        let minor = self.kubelet.strip_prefix("v1.")?.split('.').next()?;
        minor.parse().ok()
    }

    /// Returns true if its kubelet changes the owner of a pod's token, also on Windows, where that
    /// fails. Those with a build of their own, such as `v1.27.6+f67aeb3` of OpenShift, may have the
    /// fix of a later one.
    pub(crate) fn fails_to_chown(&self) -> bool {
        if self.kubelet.contains('+') {
            return false;
        }
        let patch = self.kubelet.split('.').nth(2).unwrap_or_default();
        let digits = patch.split(|letter: char| !letter.is_ascii_digit()).next();
        let patch: Option<u32> = digits.and_then(|digits| digits.parse().ok());
        matches!(
            (self.minor_version(), patch),
            (Some(21..=28), _) | (Some(29), Some(..=12)) | (Some(30), Some(..=8))
        )
    }

    /// Returns true if its Docker is behind cri-dockerd: Kubernetes 1.24 removed dockershim, and its
    /// flags from the kubelet.
    pub fn has_cri_dockerd(&self) -> bool {
        let minor = self.minor_version();
        self.runtime == ContainerRuntime::Docker && minor.is_some_and(|minor| minor >= 24)
    }

    /// Returns true if it is of RKE2, which runs containerd itself and writes its configuration at
    /// each start.
    pub fn is_of_rke2(&self) -> bool {
        self.kubelet.contains("+rke2")
    }

    /// Returns whether it runs host process containers, if known: Kubernetes 1.22 runs them with a
    /// feature gate. A node of unknown version counts as a current one.
    pub fn runs_host_process(&self) -> Option<bool> {
        match self.minor_version() {
            _ if !self.runtime.runs_host_process() => Some(false),
            Some(minor) if minor < 22 => Some(false),
            Some(22) => None,
            _ => Some(true),
        }
    }

    /// How pods request Hyper-V isolation on it. A node of unknown version counts as a current one.
    pub(crate) fn hyperv(&self) -> Hyperv {
        match (self.runtime, self.minor_version()) {
            (ContainerRuntime::Containerd(_), _) => Hyperv::OfContainerd,
            (ContainerRuntime::Docker, Some(minor)) if minor <= 20 => Hyperv::OfDocker,
            (ContainerRuntime::Docker, _) => Hyperv::No,
        }
    }

    /// Returns true if new pods are scheduled there now: neither cordoned nor not ready.
    pub(crate) fn takes_pods(&self) -> bool {
        const NOT_READY: [&str; 2] = [
            "node.kubernetes.io/not-ready",
            "node.kubernetes.io/unreachable",
        ];
        let mut taints = self.taints.iter();
        !self.is_cordoned && !taints.any(|taint| NOT_READY.contains(&taint.key.as_str()))
    }

    /// A Windows host given by its build alone: it admits every pod that does not contradict the
    /// build.
    pub fn from_build(build: HostBuild) -> Self {
        let labels = [
            (OS_LABEL, "windows".to_owned()),
            (OLD_OS_LABEL, "windows".to_owned()),
            ("kubernetes.io/arch", build.architecture.name().to_owned()),
            (BUILD_LABEL, format!("10.0.{}", build.version.build)),
        ];
        Self {
            name: None,
            build: Some(build),
            runtime: ContainerRuntime::CONTAINERD,
            kubelet: String::new(),
            architecture: build.architecture.name().to_owned(),
            labels: labels
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value))
                .collect(),
            labels_are_complete: false,
            taints: Vec::new(),
            is_cordoned: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use wincimg_common::diagnose::Diagnose;

    use super::*;

    fn message(text: &str) -> String {
        read_nodes(text).unwrap_err().to_string()
    }

    #[test]
    fn windows_nodes_are_taken_and_others_counted() {
        let list = read_nodes(
            r#"{"kind":"List","items":[
              {"kind":"Node","metadata":{"name":"w1"},"status":{"nodeInfo":{"operatingSystem":"windows",
                "kernelVersion":"10.0.17763.973","osImage":"Windows 10 Enterprise"}}},
              {"kind":"Node","metadata":{"name":"l1"},"status":{"nodeInfo":{"operatingSystem":"linux"}}},
              {"kind":"Node","metadata":{"name":"w2","labels":{"kubernetes.io/os":"windows",
                "node.kubernetes.io/windows-build":"10.0.20348"}}},
              {"kind":"Node","metadata":{"name":"virtual-kubelet"},
                "status":{"nodeInfo":{"operatingSystem":"Windows"}}}]}"#,
        )
        .unwrap();
        let windows = list.windows.iter();
        let seen = windows.map(|node| (node.name.as_deref(), node.build));
        let build = |version: &str, edition| HostBuild {
            edition,
            ..HostBuild::new(version.parse().unwrap())
        };
        let expected = [
            (Some("w1"), Some(build("17763.973", WindowsEdition::Client))),
            (Some("w2"), Some(build("20348", WindowsEdition::Server))),
            (Some("virtual-kubelet"), None),
        ];
        assert_eq!(seen.collect::<Vec<_>>(), expected);
        assert_eq!(list.others.len(), 1);
    }

    #[test]
    fn null_is_read_as_empty() {
        for node in [
            r#"{"kind":"Node","spec":null,"metadata":{"name":"w1"},"status":{"nodeInfo":{
                "operatingSystem":"windows"}}}"#,
            r#"{"items":[{"spec":null,"metadata":{"name":"w1"},"status":{"nodeInfo":{
                "operatingSystem":"windows"}}}]}"#,
        ] {
            assert_eq!(read_nodes(node).unwrap().windows.len(), 1, "{node}");
        }
        for node in [
            r#"{"kind":"Node","status":null}"#,
            r#"{"kind":"Node","metadata":null,"status":{"nodeInfo":null}}"#,
        ] {
            assert_eq!(read_nodes(node).unwrap().others.len(), 1, "{node}");
        }
    }

    fn node_of(kubelet: &str, runtime: &str) -> Node {
        let node = format!(
            r#"{{"kind":"Node","metadata":{{"name":"w1"}},"status":{{"nodeInfo":{{
              "operatingSystem":"windows","kubeletVersion":"{kubelet}",
              "containerRuntimeVersion":"{runtime}"}}}}}}"#
        );
        read_nodes(&node).unwrap().windows.remove(0)
    }

    #[test]
    fn the_kubelet_decides_with_the_runtime_whether_host_process_containers_run() {
        for (kubelet, runtime, runs) in [
            ("v1.30.4", "containerd://1.7.22", Some(true)),
            ("", "containerd://1.7.22", Some(true)),
            ("v1.23.0-rc.1+k3s1", "containerd://1.6.0", Some(true)),
            ("v1.22.17", "containerd://1.6.0", None),
            ("v1.22.17", "docker://20.10.9", Some(false)),
            ("v1.21.5", "containerd://1.6.30", Some(false)),
            ("v1.30.4", "containerd://1.5.9", Some(false)),
        ] {
            let node = node_of(kubelet, runtime);
            assert_eq!(node.runs_host_process(), runs, "{kubelet} {runtime}");
        }
    }

    #[test]
    fn a_kubelet_leaves_the_owner_of_a_token_since_kubernetes_1_31_and_two_updates() {
        for (kubelet, expected) in [
            ("v1.20.15", false),
            ("v1.21.2", true),
            ("v1.28.15-eks-5e0fdde", true),
            ("v1.29.12", true),
            ("v1.29.13", false),
            ("v1.30.8-gke.1000", true),
            ("v1.30.9", false),
            ("v1.31.0", false),
            ("v1.24.0-2566+5157800f2a3bc3", false),
            ("", false),
        ] {
            let node = node_of(kubelet, "containerd://1.7.22");
            assert_eq!(node.fails_to_chown(), expected, "{kubelet}");
        }
    }

    #[test]
    fn docker_is_behind_cri_dockerd_since_kubernetes_1_24() {
        for (kubelet, runtime, expected) in [
            ("v1.24.0", "docker://20.10.9", true),
            ("v1.29.0", "docker://24.0.7", true),
            ("v1.23.17", "docker://20.10.9", false),
            ("", "docker://20.10.9", false),
            ("v1.29.0", "containerd://1.7.22", false),
        ] {
            let node = node_of(kubelet, runtime);
            assert_eq!(node.has_cri_dockerd(), expected, "{kubelet} {runtime}");
        }
    }

    #[test]
    fn what_is_no_node_list_is_distinguished() {
        for (text, found) in [
            (r#"{"kind":"PodList","items":[]}"#, "kind \"PodList\""),
            (r#"{"items":[{"kind":"Pod"}]}"#, "an item of kind \"Pod\""),
            ("{}", "an object without kind and items"),
            (r#"{"kind":"List"}"#, "a list without items"),
        ] {
            let expected = format!("expected a list of nodes, found {found}");
            assert_eq!(message(text), expected);
        }
        for refused in [
            r#"{"kind":"Status","metadata":{},"status":"Failure","message":"no rights"}"#,
            "kind: Status\nmetadata: {}\nstatus: Failure\nmessage: no rights\n",
        ] {
            assert!(message(refused).ends_with("the API server: no rights"));
        }
        for empty in [
            r#"{"kind":"List","items":[]}"#,
            r#"{"kind":"List","items":null}"#,
            r#"{"items":null}"#,
        ] {
            assert_eq!(message(empty), "the node list is empty");
        }
        let list = message("[1]");
        assert!(list.contains("line 1, column 1"), "{list}");
        assert!(message("{\"kind\":\n \"Li").starts_with("line 2, column "));
        assert!(message("").starts_with("it is empty"));
        assert!(message(" \r\n").starts_with("it is empty"));
    }

    #[test]
    fn a_list_whose_end_is_missing_is_refused() {
        // As kubectl prints it: the kind is behind the items.
        let start = "apiVersion: v1\nitems:\n- kind: Node\n  metadata:\n    name: w1\n";
        for rest in ["", "    labels:\n", "  status:\n    nodeInfo: {}\nkind:"] {
            let problem = read_nodes(&format!("{start}{rest}")).unwrap_err();
            let message = problem.to_string();
            assert!(message.contains("a list without its kind"), "{message}");
            let hint = problem.diagnosis().hint.unwrap();
            assert!(hint.contains("`kind: List`"), "{hint}");
        }
        let problem = read_nodes("apiVersion: v1\nitems:").unwrap_err();
        let cut = problem.to_string();
        assert!(cut.contains("nothing after `items:`"), "{cut}");
        let hint = problem.diagnosis().hint.unwrap();
        assert!(hint.contains("`items: []`"), "{hint}");
        assert_eq!(
            message("kind: NodeList\nitems:\n"),
            "the node list is empty"
        );
        for items in ["[]", "null", ""] {
            let text = format!("apiVersion: v1\nitems: {items}\nkind: List\n");
            assert_eq!(message(&text), "the node list is empty");
        }
        let list = read_nodes(&format!("{start}kind: List\n")).unwrap();
        assert_eq!(list.others.len(), 1);
    }

    #[test]
    fn a_node_of_overlapping_lists_is_one() {
        let node = |uid: &str| format!(r#"{{"metadata":{{"name":"l","uid":"{uid}"}}}}"#);
        let list = format!(r#"{{"items":[{},{}]}}"#, node("a"), node(""));
        let other = format!(r#"{{"items":[{},{}]}}"#, node("a"), node("b"));
        let nodes = read_nodes(&[list, other].concat()).unwrap();
        assert_eq!(nodes.others.len(), 3);
    }

    #[test]
    fn there_is_a_limit_on_nodes() {
        let json = |count| format!("{{\"items\":[{}{{}}]}}", "{},".repeat(count - 1));
        let most = read_nodes(&json(MOST_OBJECTS)).unwrap();
        assert_eq!(most.others.len(), MOST_OBJECTS);
        for text in [json(MOST_OBJECTS + 1), json(MOST_OBJECTS / 2 + 1).repeat(2)] {
            let message = message(&text);
            assert!(message.contains("more than 100000 objects"), "{message}");
        }
    }

    #[test]
    fn a_fault_in_an_item_of_yaml_is_reported_at_the_item() {
        let text = "kind: List\nitems:\n- kind: Node\n  metadata: {name: a}\n- kind: Node\n  \
                    metadata: {name: [b]}\n";
        let message = message(text);
        let place = "line 5, column 1: items[1].metadata.name: ";
        assert!(message.starts_with(place), "{message}");
    }

    #[test]
    fn yaml_is_read_as_json_is() {
        let json = r#"{"kind":"List","items":[
          {"kind":"Node","metadata":{"name":"w1"},"status":{"nodeInfo":{"operatingSystem":"windows",
            "kernelVersion":"10.0.17763.973","osImage":"Windows Server 2019 Datacenter"}}}]}"#;
        let item = "  kind: Node\n  metadata: {name: w1}\n  status:\n    nodeInfo:\n      \
                    operatingSystem: windows\n      kernelVersion: 10.0.17763.973\n      \
                    osImage: Windows Server 2019 Datacenter\n";
        let expected = read_nodes(json).unwrap();
        let list = format!("apiVersion: v1\nkind: List\nitems:\n-{}", &item[1..]);
        assert_eq!(read_nodes(&list).unwrap(), expected);
        let document = item.replace("\n  ", "\n");
        let document = document.trim_start();
        assert_eq!(read_nodes(document).unwrap(), expected);
        // The last value of a duplicate key counts.
        let duplicate = format!("kind: List\n{document}kind: Node\n");
        assert_eq!(read_nodes(&duplicate).unwrap(), expected);
        let twice = read_nodes(&format!("# two\n---\n{document}---\n{document}")).unwrap();
        assert_eq!(twice.windows.len(), 2);
        let flow = "{kind: Node, metadata: {name: w1}, status: {nodeInfo: {operatingSystem: windows, \
                    kernelVersion: 10.0.17763.973, osImage: Windows Server 2019 Datacenter}}}";
        assert_eq!(read_nodes(flow).unwrap(), expected);
        for separator in ["\n---\n", "\n"] {
            let lists = read_nodes(&[json, json].join(separator)).unwrap();
            assert_eq!(lists.windows.len(), 2);
        }
        let wrong = r#"{"items":[{},{"metadata":{"labels":{"a":7}}}]}"#;
        for (text, problem) in [
            (wrong, "items[1].metadata.labels.a: invalid type"),
            ("NAME STATUS\nw1 Ready\n", "found plain text or a list"),
            ("- kind: Node\n", "a list without `items`"),
            ("kind: Pod\n", "found kind \"Pod\""),
            ("items: [\n", "expected a list of nodes as JSON or YAML"),
            ("# nothing\n", "the node list is empty"),
        ] {
            assert!(message(text).contains(problem), "{text}: {}", message(text));
        }
    }
}
