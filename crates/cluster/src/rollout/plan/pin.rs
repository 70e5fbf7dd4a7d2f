//! Where a workload could be kept so that it starts: a label that its images' nodes share.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};
use wincimg_windows::compat::{CompatRule, VerdictOutcome};

use crate::nodes::{BUILD_LABEL, Node, os_label};
use crate::rollout::commands::{CommandFlags, shell_command, shell_quote};
use crate::rollout::{Placement, Rollout};
use crate::scheduling::{Operator, Requirement, System};
use crate::workloads::{Workload, WorkloadId};

/// What a workload asks of a node's label in addition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pin {
    /// A node selector: it has this value.
    Selector {
        /// The label.
        label: &'static str,
        /// Its value.
        value: String,
    },
    /// A node affinity, where one value is not enough.
    Affinity(Requirement),
}

/// How a workload gets a node label to ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinMethod {
    /// Its pods move to other nodes when its template changes.
    Patch,
    /// Kubernetes takes no change of it, or leaves its pods where they are: it is made again.
    MakeAgain,
}

impl PinMethod {
    /// Nothing for kinds whose fields are not known, and for what has no name, or one that the
    /// cluster makes up.
    pub fn for_workload(workload: &WorkloadId) -> Option<Self> {
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
        Self::Selector {
            label: os_label(hosts),
            value: "windows".to_owned(),
        }
    }

    pub(super) fn admits(&self, node: &Node) -> bool {
        match self {
            Self::Selector { label, value } => node.labels.get(*label) == Some(value),
            Self::Affinity(requirement) => {
                let own = node.labels.get(&requirement.key);
                requirement.is_met_by(own.map(String::as_str))
            }
        }
    }

    /// Makes a workload ask for it.
    pub(super) fn apply(&self, workload: &mut Workload) {
        let scheduling = &mut workload.template.scheduling;
        match self {
            Self::Selector { label, value } => {
                let selector = &mut scheduling.selector;
                selector.insert((*label).to_owned(), value.clone());
            }
            Self::Affinity(requirement) => scheduling.require_all(requirement),
        }
    }

    /// The commands that make a workload ask for it; none for a kind whose fields are not known. What is
    /// made again is written to a file first, so that it is not lost where the cluster does not take it.
    pub(in crate::rollout) fn commands(
        &self,
        workload: &Workload,
        flags: &CommandFlags,
    ) -> Vec<String> {
        let patch = self.patch(workload).to_string();
        let workload = &workload.id;
        let kind = workload.kind.to_ascii_lowercase();
        let name = workload.name.as_str();
        let patch = ["--type", "merge", "--patch", &patch];
        let kubectl = |words: &[&str]| shell_command(&[&["kubectl"], words].concat());
        let cluster: Vec<&str> = flags.kubectl.iter().map(String::as_str).collect();
        let object = [
            &[&kind, name, "--namespace", &workload.namespace],
            &cluster[..],
        ]
        .concat();
        match PinMethod::for_workload(workload) {
            None => Vec::new(),
            Some(PinMethod::Patch) => vec![kubectl(&[&["patch"], &object[..], &patch].concat())],
            Some(PinMethod::MakeAgain) => {
                let file = format!("{kind}-{name}.json");
                let json = ["--output", "json"];
                let get = kubectl(&[&["get"], &object[..], &json].concat());
                let local = ["patch", "--local", "--filename", "-"];
                let change = kubectl(&[&local[..], &patch, &json].concat());
                let replace = ["replace", "--force", "--filename", &file];
                vec![
                    format!("{get} | {change} > {}", shell_quote(&file)),
                    kubectl(&[&replace[..], &cluster].concat()),
                ]
            }
        }
    }

    /// The merge patch of the API's object that does the same. Of an object that is made again it
    /// takes away what the cluster added and takes back from nobody: where a pod landed, and the labels
    /// by which a job knew its pods.
    fn patch(&self, workload: &Workload) -> Value {
        let kind = workload.id.kind.as_str();
        let selector = match self {
            Self::Selector { label, value } => json!({"nodeSelector": {*label: value}}),
            // A merge takes the place of a whole list, so what is there stands in it too.
            Self::Affinity(requirement) => {
                let mut scheduling = workload.template.scheduling.clone();
                scheduling.require_all(requirement);
                let terms = json!({"nodeSelectorTerms": scheduling.affinity});
                let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": terms});
                json!({"affinity": {"nodeAffinity": required}})
            }
        };
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
            findings.any(|finding| finding.outcome == VerdictOutcome::Incompatible)
        })
        .filter_map(|placement| {
            let index = placement.workload?;
            let workload = &rollout.workloads[index];
            PinMethod::for_workload(&workload.id)?;
            let pin = to_a_build(rollout, placement, workload)
                .or_else(|| to_linux(rollout, placement, workload, others))?;
            Some((index, pin))
        })
        .collect()
}

/// The builds on all of whose nodes everything starts, so that no node is lost where it does.
fn to_a_build(rollout: &Rollout, placement: &Placement, workload: &Workload) -> Option<Pin> {
    let mut builds: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
    let mut has_others = false;
    for &(host, group) in &placement.selection.hosts {
        let node = &rollout.hosts[host as usize];
        let mut findings = placement.images.iter();
        let starts = findings.all(|placed| {
            let finding = &placed.findings[group as usize];
            matches!(
                finding.outcome,
                VerdictOutcome::Compatible | VerdictOutcome::Warning
            ) && finding.rule != CompatRule::HostReportedBroken.name()
        });
        match node.labels.get(BUILD_LABEL) {
            Some(label) => {
                let (nodes, all_start) = builds.entry(label).or_insert((0, true));
                *nodes += 1;
                *all_start &= starts;
            }
            None => has_others = true,
        }
    }
    let keep = builds.iter().filter(|(_, (_, all_start))| *all_start);
    let keep: Vec<(&str, usize)> = keep.map(|(label, (nodes, _))| (*label, *nodes)).collect();
    let most = keep.iter().max_by_key(|(_, nodes)| *nodes)?;
    // Of a set that is only known by its pods, nobody knows the affinity to add to.
    let is_unknown = workload.id.kind == "DaemonSet" && workload.template.scheduling.names_nodes();
    if keep.len() == 1 || is_unknown {
        return Some(Pin::Selector {
            label: BUILD_LABEL,
            value: most.0.to_owned(),
        });
    }
    let leave: Vec<&str> = builds
        .into_iter()
        .filter(|(_, (_, all_start))| !all_start)
        .map(|(label, _)| label)
        .collect();
    // Nodes without the label would stay, and nobody knows whether it starts there.
    let (operator, values) = if leave.len() < keep.len() && !has_others {
        (Operator::NotIn, leave)
    } else {
        (
            Operator::In,
            keep.into_iter().map(|(label, _)| label).collect(),
        )
    };
    Some(Pin::Affinity(Requirement {
        key: BUILD_LABEL.to_owned(),
        operator,
        values: values.into_iter().map(str::to_owned).collect(),
    }))
}

impl fmt::Display for Pin {
    /// `on nodes with the label kubernetes.io/os=windows`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Selector { label, value } => write!(f, "on nodes with the label {label}={value}"),
            Self::Affinity(Requirement {
                key,
                operator,
                values,
            }) => {
                let place = match operator {
                    Operator::NotIn => "off nodes whose label",
                    _ => "on nodes whose label",
                };
                write!(f, "{place} {key} is {}", values.join(" or "))
            }
        }
    }
}

/// Linux, where all the images are for it and a node would take the pods.
fn to_linux(
    rollout: &Rollout,
    placement: &Placement,
    workload: &Workload,
    others: &[Node],
) -> Option<Pin> {
    let pin = Pin::Selector {
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
