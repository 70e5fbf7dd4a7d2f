//! Pins of workloads to a node label that compatible nodes share.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Value, json};
use wincimg_common::shell::{command_line, quote};
use wincimg_windows::compat::VerdictOutcome;

use super::effects::is_expected_to_start;
use crate::nodes::{BUILD_LABEL, Node, os_label};
use crate::rollout::commands::{CommandFlags, TemplateChange, absent_owner, namespace_flag};
use crate::rollout::{ActionStep, Placement, Rollout};
use crate::scheduling::{Operator, Requirement, System};
use crate::workloads::Workload;

/// Node label that a pin requires: a node selector for one value, a node affinity for several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin(Requirement);

impl Pin {
    pub(in crate::rollout) fn to_windows(hosts: &[Node]) -> Self {
        Self::to_label(os_label(hosts), "windows")
    }

    pub(super) fn to_label(label: &str, value: &str) -> Self {
        Self(Requirement::of_label(label, value))
    }

    /// The label and the value of a node selector.
    pub fn selector(&self) -> Option<(&str, &str)> {
        match (self.0.operator, &self.0.values[..]) {
            (Operator::In, [value]) => Some((self.0.key.as_str(), value.as_str())),
            _ => None,
        }
    }

    /// The requirement of a node affinity.
    pub fn affinity(&self) -> Option<&Requirement> {
        self.selector().is_none().then_some(&self.0)
    }

    pub(super) fn admits(&self, node: &Node) -> bool {
        let own = node.labels.get(&self.0.key);
        self.0.is_met_by(own.map(String::as_str))
    }

    /// Returns true if it leaves only nodes with its label.
    pub(in crate::rollout) fn requires_label(&self) -> bool {
        self.0.operator == Operator::In
    }

    pub(super) fn apply(&self, workload: &mut Workload) {
        let scheduling = &mut workload.template.scheduling;
        match self.selector() {
            Some((label, value)) => {
                let selector = &mut scheduling.selector;
                selector.insert(label.to_owned(), value.to_owned());
            }
            None => scheduling.require_all(&self.0),
        }
    }

    /// The steps that apply the pin; none for a kind with unknown fields. A workload that is
    /// recreated is saved to a file first, so that it is not lost if the cluster refuses it.
    pub(in crate::rollout) fn steps(
        &self,
        workload: &Workload,
        flags: &CommandFlags,
    ) -> Vec<ActionStep> {
        let patch = self.patch(workload).to_string();
        let id = &workload.id;
        let kind = id.kind.to_ascii_lowercase();
        let name = id.name.as_str();
        let patch = ["--type", "merge", "--patch", &patch];
        let kubectl = |words: &[&str]| command_line(&[&["kubectl"], words].concat());
        let cluster: Vec<&str> = flags.kubectl.iter().map(String::as_str).collect();
        let namespace = namespace_flag(workload);
        let object = [&[kind.as_str(), name], &namespace[..], &cluster[..]].concat();
        match TemplateChange::of(workload) {
            None => Vec::new(),
            Some(TemplateChange::ByHand) => {
                let owner = absent_owner(workload, flags);
                vec![ActionStep::Manual(format!("change {owner}"))]
            }
            Some(TemplateChange::Patch) => {
                let change = kubectl(&[&["patch"], &object[..], &patch].concat());
                vec![ActionStep::Command(change)]
            }
            Some(TemplateChange::MakeAgain) => {
                let file = format!("{kind}-{name}.json");
                let json = ["--output", "json"];
                let get = kubectl(&[&["get"], &object[..], &json].concat());
                let local = ["patch", "--local", "--filename", "-"];
                let change = kubectl(&[&local[..], &patch, &json].concat());
                let replace = flags.kubectl(&["replace", "--force", "--filename", &file]);
                let save = format!("{get} | {change} > {}", quote(&file));
                vec![ActionStep::Command(save), ActionStep::Command(replace)]
            }
        }
    }

    /// The merge patch of the API object. For an object that is recreated it removes the fields
    /// that the cluster added and accepts in no new object: the node of a pod and its containers for
    /// debugging, and the labels by which a job selects its pods, unless they are the user's.
    fn patch(&self, workload: &Workload) -> Value {
        let kind = workload.id.kind.as_str();
        let selector = match self.selector() {
            Some((label, value)) => json!({"nodeSelector": {label: value}}),
            // A merge replaces a whole list, so it repeats the existing items.
            None => {
                let mut scheduling = workload.template.scheduling.clone();
                scheduling.require_all(&self.0);
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
            "Pod" => {
                spec["nodeName"] = Value::Null;
                spec["ephemeralContainers"] = Value::Null;
            }
            "Job" if !workload.has_manual_selector => {
                spec["selector"] = Value::Null;
                spec["template"]["metadata"]["labels"] =
                    json!({"controller-uid": null, "batch.kubernetes.io/controller-uid": null});
            }
            _ => {}
        }
        json!({"spec": spec})
    }
}

/// A pin for every workload that starts on some of its nodes but not on all, and that can be
/// pinned.
pub(super) fn candidates(rollout: &Rollout, others: &[Node]) -> BTreeMap<usize, Pin> {
    let placements = rollout.placements.iter();
    placements
        .filter(|placement| {
            let mut findings = placement.findings();
            findings.any(|finding| {
                finding.outcome == VerdictOutcome::Incompatible && !finding.is_hidden
            })
        })
        .filter_map(|placement| {
            let index = placement.workload?;
            let workload = &rollout.workloads[index];
            TemplateChange::of(workload)?;
            let pin = to_a_build(rollout, placement, workload, others)
                .or_else(|| to_linux(rollout, placement, workload, others))?;
            Some((index, pin))
        })
        .collect()
}

/// The hosts on which all images of a placement are expected to start.
pub(super) fn starting_hosts(placement: &Placement) -> impl Iterator<Item = usize> {
    let hosts = placement.selection.hosts.iter();
    hosts
        .filter(|(_, group)| starts_in(placement, *group as usize))
        .map(|&(host, _)| host as usize)
}

fn starts_in(placement: &Placement, group: usize) -> bool {
    let mut images = placement.images.iter();
    images.all(|placed| {
        let finding = &placed.findings[group];
        is_expected_to_start((finding.outcome, finding.rule))
    })
}

/// Pin to the builds on all of whose nodes the workload starts. It bars no node of another system
/// where the pods start too. A daemon set serves each node by itself, so a pin must not cost it any
/// node where it starts; other pods move to other nodes.
pub(in crate::rollout) fn to_a_build(
    rollout: &Rollout,
    placement: &Placement,
    workload: &Workload,
    others: &[Node],
) -> Option<Pin> {
    let mut builds: BTreeMap<&str, (usize, bool)> = BTreeMap::new();
    let mut has_unlabelled = false;
    for &(host, group) in &placement.selection.hosts {
        let node = &rollout.hosts[host as usize];
        let starts = starts_in(placement, group as usize);
        match node.labels.get(BUILD_LABEL) {
            Some(label) => {
                let (nodes, all_start) = builds.entry(label).or_insert((0, true));
                *nodes += 1;
                *all_start &= starts;
            }
            None => has_unlabelled = true,
        }
    }
    let keep = builds.iter().filter(|(_, (_, all_start))| *all_start);
    let keep: Vec<(&str, usize)> = keep.map(|(label, (nodes, _))| (*label, *nodes)).collect();
    let is_daemon_set = workload.id.kind == "DaemonSet";
    let kept: usize = keep.iter().map(|(_, nodes)| nodes).sum();
    let lands_elsewhere = others
        .iter()
        .any(|node| workload.template.scheduling.admits(node));
    let starts_elsewhere = lands_elsewhere && fits_linux(rollout, placement, workload);
    let is_short = is_daemon_set && kept < starting_hosts(placement).count();
    if is_short || keep.is_empty() || starts_elsewhere && has_unlabelled {
        return None;
    }
    if let [(label, _)] = keep[..]
        && !starts_elsewhere
    {
        return Some(Pin::to_label(BUILD_LABEL, label));
    }
    let leave: Vec<&str> = builds
        .into_iter()
        .filter(|(_, (_, all_start))| !all_start)
        .map(|(label, _)| label)
        .collect();
    // To nodes without the label, such as Linux ones, `NotIn` would lead.
    let is_shorter = leave.len() < keep.len() && !has_unlabelled && !lands_elsewhere;
    let (operator, values) = if starts_elsewhere || is_shorter {
        (Operator::NotIn, leave)
    } else {
        (
            Operator::In,
            keep.into_iter().map(|(label, _)| label).collect(),
        )
    };
    Some(Pin(Requirement {
        key: BUILD_LABEL.to_owned(),
        operator,
        values: values.into_iter().map(str::to_owned).collect(),
    }))
}

/// Returns true if the pods of a workload start on nodes with Linux, too.
fn fits_linux(rollout: &Rollout, placement: &Placement, workload: &Workload) -> bool {
    let mut images = placement.images.iter();
    workload.template.system_of_os() == System::Unsaid
        && images.all(|placed| rollout.images[placed.image].is_for("linux"))
}

impl fmt::Display for Pin {
    /// `on nodes with the label kubernetes.io/os=windows`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((label, value)) = self.selector() {
            return write!(f, "on nodes with the label {label}={value}");
        }
        let place = match self.0.operator {
            Operator::NotIn => "off",
            _ => "on",
        };
        let values = self.0.values.join(" or ");
        write!(f, "{place} nodes whose label {} is {values}", self.0.key)
    }
}

/// Pin to Linux, if all the images are for it and a node admits the pods. Of a workload that selects
/// Windows rather the image is wrong, and no command can name the right one.
fn to_linux(
    rollout: &Rollout,
    placement: &Placement,
    workload: &Workload,
    others: &[Node],
) -> Option<Pin> {
    let pin = Pin::to_label(os_label(others), "linux");
    let mut images = placement.images.iter();
    let mut pinned = workload.clone();
    pin.apply(&mut pinned);
    let template = &pinned.template;
    let selects_windows = workload.template.scheduling.system() == System::Windows;
    let is_host_process = template.containers.iter().any(|own| own.host_process);
    let loses_nodes = workload.id.kind == "DaemonSet" && starting_hosts(placement).next().is_some();
    let lands = |node: &Node| pin.admits(node) && template.scheduling.admits(node);
    (images.all(|placed| rollout.images[placed.image].is_for("linux"))
        && template.system() == System::Other
        && !selects_windows
        && !is_host_process
        && !loses_nodes
        && others.iter().any(lands))
    .then_some(pin)
}
