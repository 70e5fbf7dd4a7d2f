//! Where a workload could be kept so that it starts: a label that its images' nodes share.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Value, json};
use wincimg_windows::compat::{Outcome, revisions_matter};
use wincimg_windows::version::WindowsVersion;

use crate::nodes::{BUILD_LABEL, Node, os_label};
use crate::rollout::commands::{Flags, quoted, typed};
use crate::rollout::{Placement, Rollout};
use crate::scheduling::System;
use crate::workloads::{Workload, WorkloadId};

/// A node label that a workload asks for in addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// The label.
    pub label: &'static str,
    /// Its value.
    pub value: String,
}

/// How a workload gets a node label to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Its pods move to other nodes when its template changes.
    Patch,
    /// Kubernetes takes no change of it, or leaves its pods where they are: it is made again.
    MakeAgain,
}

impl Way {
    /// Nothing for kinds whose fields are not known, and for what has no name, or one that the
    /// cluster makes up.
    pub fn of(workload: &WorkloadId) -> Option<Self> {
        match workload.kind.as_str() {
            _ if workload.name.is_empty() || workload.name.ends_with('*') => None,
            "Deployment" | "DaemonSet" | "StatefulSet" | "CronJob" => Some(Self::Patch),
            "Pod" | "Job" | "ReplicaSet" | "ReplicationController" => Some(Self::MakeAgain),
            _ => None,
        }
    }
}

impl Pin {
    /// On nodes that run Windows, which are these.
    pub(in crate::rollout) fn to_windows(hosts: &[Node]) -> Self {
        Self {
            label: os_label(hosts),
            value: "windows".to_owned(),
        }
    }

    pub(super) fn admits(&self, node: &Node) -> bool {
        node.labels.get(self.label) == Some(&self.value)
    }

    /// Makes a workload ask for it.
    pub(super) fn apply(&self, workload: &mut Workload) {
        let selector = &mut workload.template.scheduling.selector;
        selector.insert(self.label.to_owned(), self.value.clone());
    }

    /// The commands that make a workload ask for it; none for a kind whose fields are not known. What is
    /// made again is written to a file first, so that it is not lost where the cluster does not take it.
    pub(in crate::rollout) fn commands(&self, workload: &WorkloadId, flags: &Flags) -> Vec<String> {
        let kind = workload.kind.to_ascii_lowercase();
        let name = workload.name.as_str();
        let patch = self.patch(&workload.kind).to_string();
        let patch = ["--type", "merge", "--patch", &patch];
        let kubectl = |words: &[&str]| typed(&[&["kubectl"], words].concat());
        let cluster: Vec<&str> = flags.kubectl.iter().map(String::as_str).collect();
        let object = [
            &[&kind, name, "--namespace", &workload.namespace],
            &cluster[..],
        ]
        .concat();
        match Way::of(workload) {
            None => Vec::new(),
            Some(Way::Patch) => vec![kubectl(&[&["patch"], &object[..], &patch].concat())],
            Some(Way::MakeAgain) => {
                let file = format!("{kind}-{name}.json");
                let json = ["--output", "json"];
                let get = kubectl(&[&["get"], &object[..], &json].concat());
                let local = ["patch", "--local", "--filename", "-"];
                let change = kubectl(&[&local[..], &patch, &json].concat());
                let replace = ["replace", "--force", "--filename", &file];
                vec![
                    format!("{get} | {change} > {}", quoted(&file)),
                    kubectl(&[&replace[..], &cluster].concat()),
                ]
            }
        }
    }

    /// The merge patch of the API's object that does the same. Of an object that is made again it
    /// takes away what the cluster added and takes back from nobody: where a pod landed, and the labels
    /// by which a job knew its pods.
    fn patch(&self, kind: &str) -> Value {
        let selector = json!({"nodeSelector": {self.label: self.value}});
        let in_template = |selector| json!({"template": {"spec": selector}});
        let mut spec = match kind {
            "Pod" => selector,
            "CronJob" => json!({"jobTemplate": {"spec": in_template(selector)}}),
            _ => in_template(selector),
        };
        match kind {
            "Pod" => spec["nodeName"] = Value::Null,
            "Job" => {
                spec["selector"] = Value::Null;
                spec["template"]["metadata"]["labels"] =
                    json!({"controller-uid": null, "batch.kubernetes.io/controller-uid": null});
            }
            _ => {}
        }
        json!({"spec": spec})
    }
}

/// A pin for every workload that does not start on some of its nodes, does on others as everything
/// is, and can be told where to land.
pub(super) fn candidates(rollout: &Rollout, others: &[Node]) -> BTreeMap<usize, Pin> {
    let placements = rollout.placements.iter();
    placements
        .filter(|placement| {
            let mut findings = placement.findings();
            findings.any(|finding| finding.outcome == Outcome::Incompatible)
        })
        .filter_map(|placement| {
            let index = placement.workload?;
            let workload = &rollout.workloads[index];
            Way::of(&workload.id)?;
            let pin = to_a_build(rollout, placement)
                .or_else(|| to_linux(rollout, placement, workload, others))?;
            Some((index, pin))
        })
        .collect()
}

/// What is known of a build where a workload lands.
#[derive(Default)]
struct Place {
    nodes: usize,
    /// How often an image does not start there.
    failing: usize,
    /// How often one starts with a warning.
    warned: usize,
    /// How often one starts though it is of another build.
    older: usize,
}

/// The build on all of whose nodes everything starts. Of several one without warnings; then one where
/// revisions do not matter, for no patch will ever be needed there; then that of most nodes; then the
/// images' own; then the newest.
fn to_a_build(rollout: &Rollout, placement: &Placement) -> Option<Pin> {
    let mut places: BTreeMap<&str, Place> = BTreeMap::new();
    for &(host, group) in &placement.selection.hosts {
        let node = &rollout.hosts[host as usize];
        let Some(label) = node.labels.get(BUILD_LABEL) else {
            continue;
        };
        let place = places.entry(label).or_default();
        place.nodes += 1;
        for placed in &placement.images {
            let finding = &placed.findings[group as usize];
            match finding.outcome {
                Outcome::Compatible => {}
                Outcome::Warning => place.warned += 1,
                Outcome::Incompatible | Outcome::Unknown => place.failing += 1,
            }
            let own = node.build.map(|build| build.version.build);
            place.older += usize::from(own != finding.image_build.map(|image| image.build));
        }
    }
    let (value, _) = places
        .into_iter()
        .filter(|(_, place)| place.failing == 0)
        .min_by_key(|(label, place)| {
            let build = label
                .parse()
                .ok()
                .map(|version: WindowsVersion| version.build);
            let is_settled = build.is_some_and(|build| !revisions_matter(build));
            (
                place.warned > 0,
                !is_settled,
                Reverse(place.nodes),
                place.older > 0,
                Reverse(build),
            )
        })?;
    Some(Pin {
        label: BUILD_LABEL,
        value: value.to_owned(),
    })
}

/// Linux, where all the images are for it and a node would take the pods.
fn to_linux(
    rollout: &Rollout,
    placement: &Placement,
    workload: &Workload,
    others: &[Node],
) -> Option<Pin> {
    let pin = Pin {
        label: os_label(others),
        value: "linux".to_owned(),
    };
    let mut images = placement.images.iter();
    let mut pinned = workload.clone();
    pin.apply(&mut pinned);
    let template = &pinned.template;
    let lands = |node: &Node| pin.admits(node) && template.scheduling.admits(node);
    (images.all(|placed| rollout.images[placed.image].is_for("linux"))
        && template.system() == System::Other
        && others.iter().any(lands))
    .then_some(pin)
}
