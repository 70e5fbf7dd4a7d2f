//! Warnings that do not depend on the host: workloads that can be scheduled nowhere or anywhere, and
//! those about images.

mod images;

use std::collections::HashMap;
use std::rc::Rc;

use images::about_image;
use wincimg_common::shell::command_line;
use wincimg_windows::compat::{Concern, ContainerRuntime, Isolation, VerdictOutcome};

use super::finding::concern;
use super::fix_text::of_missing_class;
use super::image::Image;
use super::placement::{PlacedImage, Placement};
use super::verdict::find;
use super::{Finding, HostKind, Rollout, SharedFinding, first_names, host_name};
use crate::nodes::{Node, Taint, os_label};
use crate::pod::PodTemplate;
use crate::scheduling::{Operator, Requirement, Scheduling, System};
use crate::workloads::Workload;

/// A warning about a workload or an image, whatever the host.
#[derive(Debug, Clone)]
pub struct Warning {
    /// Index into [`super::Rollout::workloads`].
    pub workload: Option<usize>,
    /// Index into [`super::Rollout::images`].
    pub image: Option<usize>,
    /// Finding.
    pub finding: SharedFinding,
}

/// All warnings, in the order of the placements.
pub(super) fn all(rollout: &Rollout) -> Vec<Warning> {
    let mut notices = Vec::new();
    // Equal findings about one image are shared between workloads.
    let mut shared: HashMap<(usize, &str, String), SharedFinding> = HashMap::new();
    for placement in &rollout.placements {
        let workload = placement.workload.map(|index| &rollout.workloads[index]);
        if let Some(workload) = workload {
            for finding in about_scheduling(rollout, workload, placement) {
                notices.push(Warning {
                    workload: placement.workload,
                    image: None,
                    finding: Rc::new(finding),
                });
            }
        }
        for placed in &placement.images {
            let found = about_image(rollout, workload, placement, placed);
            notices.extend(found.into_iter().map(|finding| {
                let key = (placed.image, finding.rule, finding.reason.clone());
                let finding = shared.entry(key).or_insert_with(|| Rc::new(finding));
                Warning {
                    workload: placement.workload,
                    image: Some(placed.image),
                    finding: Rc::clone(finding),
                }
            }));
        }
    }
    notices.extend(linux_astray(rollout).map(|finding| Warning {
        workload: None,
        image: None,
        finding: Rc::new(finding),
    }));
    notices
}

/// Warning about workloads for Linux that can be scheduled on hosts.
fn linux_astray(rollout: &Rollout) -> Option<Finding> {
    let host = &rollout.astray.first()?.host;
    let astray = rollout.astray.iter();
    let mut names: Vec<String> = astray.map(|stray| stray.workload.to_string()).collect();
    names.sort();
    names.dedup();
    let names = first_names(names.into_iter(), 5);
    let key = os_label(&rollout.hosts);
    let or_taint = if rollout.astray.iter().any(|stray| stray.tolerates_windows) {
        String::new()
    } else {
        format!(
            ", or taint the Windows nodes, whose own pods must then tolerate that: kubectl taint \
             nodes --selector {key}=windows {}",
            in_words(&Taint::of_windows())
        )
    };
    Some(warn(
        Concern::NoLinuxSelector,
        format!(
            "nothing keeps workloads for Linux off Windows nodes such as {host}, where they do not \
             start: {names}"
        ),
        format!("add to their pods' specs: nodeSelector: {{{key}: linux}}{or_taint}"),
    ))
}

fn warn(about: Concern, reason: impl Into<String>, fix: impl Into<String>) -> Finding {
    concern(about, reason, fix, Isolation::Process)
}

fn about_scheduling(rollout: &Rollout, workload: &Workload, placement: &Placement) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(reason) = no_image(workload) {
        let fix = "set an image for each container of the pod";
        found.push(warn(Concern::NoImage, reason, fix));
    }
    if placement.selection.hosts.is_empty() {
        found.push(no_host_selected(rollout, workload, placement));
    }
    found.extend(no_windows_selector(rollout, workload, placement));
    found.extend(handler_of_docker(rollout, workload, placement));
    found.extend(token_owner(rollout, workload, placement));
    found
}

/// The warning about a pod with a user of Linux on a node whose kubelet fails to give it the token.
fn token_owner(rollout: &Rollout, workload: &Workload, placement: &Placement) -> Option<Finding> {
    let user = workload.template.token_user?;
    let hosts = placement.selection.hosts.iter();
    let mut hosts = hosts.map(|(host, _)| &rollout.hosts[*host as usize]);
    let host = hosts.find(|host| host.fails_to_chown())?;
    Some(warn(
        Concern::TokenOwner,
        format!(
            "its containers have runAsUser: {user}, and the kubelet of {} fails to give that user \
             the token of the service account (chown: not supported by windows), so that its pods \
             stay in ContainerCreating",
            host_name(host)
        ),
        "remove runAsUser from pods for Windows, or set automountServiceAccountToken: false in the \
         pod's spec, or update the node to Kubernetes 1.29.13, 1.30.9 or 1.31",
    ))
}

/// The warning about a runtime class for Docker on a node with containerd, which only starts pods
/// with the handlers that it has, and has this one only if its administrator added it.
fn handler_of_docker(
    rollout: &Rollout,
    workload: &Workload,
    placement: &Placement,
) -> Option<Finding> {
    if workload.template.handler.as_deref() != Some("docker") {
        return None;
    }
    let mut groups = placement.selection.groups.iter();
    let group = groups.find(|group| {
        let runtime = rollout.kinds[group.kind].runtime;
        // Of other runtimes, as of those without a version, nothing is known.
        !matches!(
            runtime,
            ContainerRuntime::Docker | ContainerRuntime::CONTAINERD
        )
    })?;
    let host = &rollout.hosts[*group.hosts.first()? as usize];
    Some(Finding {
        outcome: VerdictOutcome::Warning,
        ..warn(
            Concern::HandlerUnsupported,
            format!(
                "its runtime class has the handler docker, with which containerd, as on {}, starts \
                 no pod unless a runtime of that name was added to its configuration",
                host_name(host)
            ),
            "create the runtime class again with handler: runhcs-wcow-process",
        )
    })
}

/// The finding about a workload that no host admits: its pods stay pending, or do not start on the
/// nodes that take them.
fn no_host_selected(rollout: &Rollout, workload: &Workload, placement: &Placement) -> Finding {
    let template = &workload.template;
    let scheduling = &template.scheduling;
    let (reason, fix) = explain_no_host(rollout, template, &placement.images);
    let mut nodes = rollout.hosts.iter().chain(&rollout.others);
    let names_node =
        scheduling.node_name.is_some() && nodes.any(|node| scheduling.allows_node_name(node));
    let elsewhere = lands_only_elsewhere(rollout, workload, placement);
    let is_refused = names_node
        || template.is_refused_by_windows()
        || template.system() == System::Other
        || elsewhere.is_some();
    let (reason, fix) = match elsewhere {
        Some(name) => (
            format!(
                "only nodes without Windows take its pods, such as {name}, where they do not \
                 start: {reason}"
            ),
            format!(
                "{fix}, and add nodeSelector: {{{}: windows}}",
                os_label(&rollout.hosts)
            ),
        ),
        None => (reason, fix),
    };
    Finding {
        outcome: if is_refused {
            VerdictOutcome::Incompatible
        } else {
            VerdictOutcome::Warning
        },
        ..warn(Concern::NoHostSelected, reason, fix)
    }
}

/// A node without Windows that takes the pods of a workload, if no host does and they certainly do
/// not start there.
fn lands_only_elsewhere<'a>(
    rollout: &'a Rollout,
    workload: &Workload,
    placement: &Placement,
) -> Option<&'a str> {
    let template = &workload.template;
    let mut images = placement.images.iter();
    let needs_windows = template.system_of_os() == System::Windows
        || images.any(|placed| {
            let image = &rollout.images[placed.image];
            image.is_for("windows") && !image.is_for("linux")
        });
    // For these there are other reasons.
    let is_explained = template.missing_class().is_some()
        || template.scheduling.node_name.is_some()
        || template.system() == System::Other
        || template.contradicts_its_os();
    if needs_windows && placement.selection.hosts.is_empty() && !is_explained {
        without_windows(rollout, &template.scheduling)
    } else {
        None
    }
}

/// A node without Windows that takes pods.
fn without_windows<'a>(rollout: &'a Rollout, scheduling: &Scheduling) -> Option<&'a str> {
    let mut others = rollout.others.iter();
    let node = others.find(|node| scheduling.admits(node))?;
    Some(node.name.as_deref().unwrap_or_default())
}

/// The warning about a workload for Windows that nodes without Windows take too.
fn no_windows_selector(
    rollout: &Rollout,
    workload: &Workload,
    placement: &Placement,
) -> Option<Finding> {
    let scheduling = &workload.template.scheduling;
    let missing_class = workload.template.missing_class();
    let mut images = placement
        .images
        .iter()
        .map(|placed| &rollout.images[placed.image]);
    // Images for both systems start on nodes without Windows too.
    let needs_windows = workload.template.system() == System::Windows
        || (images.clone().any(|image| image.is_for("windows"))
            && !images.all(|image| image.is_for("linux")));
    // A pod with `nodeName` ignores its selector; what keeps it from all hosts is reported once.
    let is_said = placement.selection.hosts.is_empty()
        && (missing_class.is_some()
            || workload.template.system() == System::Other
            || workload.template.contradicts_its_os()
            || lands_only_elsewhere(rollout, workload, placement).is_some());
    if !needs_windows || scheduling.node_name.is_some() || is_said {
        return None;
    }
    let reason = match without_windows(rollout, scheduling) {
        Some(name) => {
            format!("its pods can land on nodes without Windows, such as {name}")
        }
        // A custom label may serve as well, unless a known node contradicts it.
        None if rollout.others.is_empty()
            && scheduling.system() == System::Unsaid
            && scheduling.is_unconstrained() =>
        {
            "it has no node selector, so in a mixed cluster its pods land on any node".to_owned()
        }
        None => return None,
    };
    let (reason, fix) = match missing_class {
        Some(class) => of_missing_class(class),
        None => (
            reason,
            format!(
                "add to the pod's spec: nodeSelector: {{{}: windows}}",
                os_label(&rollout.hosts)
            ),
        ),
    };
    Some(warn(Concern::NoWindowsSelector, reason, fix))
}

/// Reason why a workload without images cannot be checked.
fn no_image(workload: &Workload) -> Option<String> {
    let template = &workload.template;
    match &template.without_image[..] {
        [] if template.containers.is_empty() => Some("it has no containers".to_owned()),
        [] => None,
        [name] if !name.is_empty() => Some(format!("its container {name} has no image")),
        names if names.iter().any(String::is_empty) => {
            Some("it has containers without an image".to_owned())
        }
        names => Some(format!("its containers {} have no image", names.join(", "))),
    }
}

/// Reason and fix for a workload with these images that no host admits.
fn explain_no_host(
    rollout: &Rollout,
    template: &PodTemplate,
    images: &[PlacedImage],
) -> (String, String) {
    if template.contradicts_its_os() {
        return of_another_system(template);
    }
    let scheduling = &template.scheduling;
    let hosts = &rollout.hosts;
    let mut placed = images.iter().map(|placed| &rollout.images[placed.image]);
    let for_windows = placed.find(|image| image.is_for("windows") && !image.is_for("linux"));
    if let Some(image) = for_windows.filter(|_| template.system() == System::Other) {
        return of_windows_image(hosts, template, image);
    }
    if template.is_refused_by_windows() {
        return of_windows_nodes_alone(hosts, template);
    }
    if let Some(name) = &scheduling.node_name {
        return of_named_node(rollout, scheduling, name);
    }
    let hosts_of_labels = (0..hosts.len()).filter(|host| scheduling.matches_node(&hosts[*host]));
    let matching: Vec<usize> = hosts_of_labels.collect();
    let Some(&first) = matching.first() else {
        return of_selector(hosts, scheduling);
    };
    if let Some(class) = template.missing_class() {
        return of_missing_class(class);
    }
    // It is of no use to tolerate the taints of a node where it does not start.
    let kinds = rollout.kinds.iter();
    let starts: Vec<bool> = kinds
        .map(|kind| may_start(rollout, kind, template, images))
        .collect();
    let mut matching = matching.into_iter();
    let best = matching.find(|host| starts[rollout.kind_of[*host]]);
    let host = &hosts[best.unwrap_or(first)];
    let taints = scheduling.untolerated_taints(host);
    let taints: Vec<String> = taints.map(in_words).collect();
    let nodes = if scheduling.is_unconstrained() {
        "the Windows nodes"
    } else {
        "the nodes that its selector matches"
    };
    (
        format!(
            "{nodes}, such as {}, have taints that it does not tolerate: {}",
            host.name.as_deref().unwrap_or_default(),
            taints.join(", ")
        ),
        "add tolerations for them to the pod's spec".to_owned(),
    )
}

/// Returns true unless an image of a pod certainly does not start on a kind of host.
fn may_start(
    rollout: &Rollout,
    kind: &HostKind,
    template: &PodTemplate,
    images: &[PlacedImage],
) -> bool {
    template.containers.iter().all(|container| {
        let isolation = template.isolation(container, kind.hyperv, Isolation::Process);
        let mut images = images.iter().map(|placed| &rollout.images[placed.image]);
        let image = images.find(|image| image.reference.as_ref() == Some(&container.image));
        image.is_none_or(|image| {
            find(kind, image, isolation).outcome != VerdictOutcome::Incompatible
        })
    })
}

/// Reason and fix for a workload that names a node.
fn of_named_node(rollout: &Rollout, scheduling: &Scheduling, name: &str) -> (String, String) {
    let mut hosts = rollout.hosts.iter();
    let Some(host) = hosts.find(|host| scheduling.allows_node_name(host)) else {
        let mut others = rollout.others.iter();
        let what = if others.any(|node| node.name.as_deref() == Some(name)) {
            "does not run Windows: its pods fail there"
        } else {
            "is not one of the Windows nodes"
        };
        return (
            format!("it names the node {name}, which {what}"),
            "remove nodeName, or name one of the cluster's Windows nodes".to_owned(),
        );
    };
    let refusal = match scheduling.untolerated_taints(host).next() {
        Some(taint) if scheduling.matches_node(host) => {
            format!(
                "it has the taint {} that the pod does not tolerate",
                in_words(taint)
            )
        }
        _ => "it does not meet the pod's node selector and affinity".to_owned(),
    };
    (
        format!("it names the node {name}, whose kubelet refuses it: {refusal}"),
        "remove nodeName, or the fields of the pod that do not match this node".to_owned(),
    )
}

/// Reason and fix for a workload whose selector and affinity match no host.
fn of_selector(hosts: &[Node], scheduling: &Scheduling) -> (String, String) {
    if hosts.is_empty() {
        let reason = "no Windows node is left to take its pods";
        return (
            reason.to_owned(),
            "uncordon or add a Windows node".to_owned(),
        );
    }
    let (of_selector, of_affinity) = scheduling.unmet(hosts);
    let fields = match (of_selector.is_empty(), of_affinity.is_empty()) {
        (false, true) => "selector",
        (true, false) => "affinity",
        _ => "selector and affinity",
    };
    let unmet = || of_selector.iter().chain(&of_affinity);
    let Some(first) = unmet().next() else {
        return (
            format!("no Windows node meets its node {fields}"),
            format!("correct the {fields}, or label nodes with kubectl label node"),
        );
    };
    let words: Vec<String> = unmet().map(ToString::to_string).collect();
    let words = words.join(" or ");
    let wants_label = unmet().all(|it| matches!(it.operator, Operator::In | Operator::Exists));
    let reason = if wants_label {
        format!("no Windows node has the label {words}")
    } else {
        format!("no Windows node meets {words}")
    };
    if let Some(value) = not_a_number(hosts, first) {
        return (
            format!("{reason}: Gt and Lt compare integers, and {value} is not one"),
            "list the values of the label with the operator In".to_owned(),
        );
    }
    // The kubelet sets the labels of these domains, and resets them.
    let is_of_kubelet = |it: &Requirement| {
        let domain = it.key.split_once('/').map_or("", |(domain, _)| domain);
        matches!(
            domain,
            "kubernetes.io" | "node.kubernetes.io" | "beta.kubernetes.io"
        )
    };
    let fix = if unmet().all(is_of_kubelet) {
        format!("correct the {fields}, or add such nodes: the kubelet sets this label")
    } else if unmet().count() == 1
        && let Some(command) = label_command(hosts, first)
    {
        format!("correct the {fields}, or label nodes: `{command}`")
    } else {
        format!("correct the {fields}, or label nodes with kubectl label node")
    };
    (reason, fix)
}

/// The command that gives a node the label of a requirement, if this has a value for it.
fn label_command(hosts: &[Node], wanted: &Requirement) -> Option<String> {
    let is_value = matches!(wanted.operator, Operator::In);
    let value = wanted.values.first().filter(|_| is_value)?;
    if !is_label_value(value) {
        return None;
    }
    let label = format!("{}={value}", wanted.key);
    let mut words = vec!["kubectl", "label", "node", "NODE", &label];
    // Without it, kubectl keeps another value of the label.
    let has_label = |host: &Node| host.labels.contains_key(&wanted.key);
    if hosts.iter().any(has_label) {
        words.push("--overwrite");
    }
    Some(command_line(&words))
}

/// Returns true for a value that Kubernetes accepts.
fn is_label_value(value: &str) -> bool {
    let is_end = |c: char| c.is_ascii_alphanumeric();
    let is_inner = |c: char| is_end(c) || "-_.".contains(c);
    let has_ends = value.starts_with(is_end) && value.ends_with(is_end);
    value.len() <= 63 && value.chars().all(is_inner) && (has_ends || value.is_empty())
}

/// The value of a label that a requirement compares as an integer, which it is not.
fn not_a_number<'a>(hosts: &'a [Node], requirement: &Requirement) -> Option<&'a str> {
    if !matches!(requirement.operator, Operator::Gt | Operator::Lt) {
        return None;
    }
    let mut values = hosts
        .iter()
        .filter_map(|host| host.labels.get(&requirement.key));
    let value = values.find(|value| value.parse::<i64>().is_err())?;
    Some(value)
}

/// Reason and fix for a workload that selects nodes of another system than its own.
fn of_another_system(template: &PodTemplate) -> (String, String) {
    let os = template.os_name.as_deref().unwrap_or_default();
    let with = match template.scheduling.system() {
        System::Windows => "with",
        System::Other | System::Unsaid => "without",
    };
    (
        format!(
            "its os.name is {os}, but it selects nodes {with} Windows, whose kubelet refuses it \
             (PodOSNotSupported)"
        ),
        "set os.name of the pod to the system of the nodes, or correct its node selector"
            .to_owned(),
    )
}

/// Reason and fix for a workload of another system whose image is for Windows alone.
fn of_windows_image(hosts: &[Node], template: &PodTemplate, image: &Image) -> (String, String) {
    let (says, set_os) = match (&template.os_name, template.scheduling.system()) {
        (Some(os), System::Unsaid) => (format!("its os.name is {os}"), true),
        (os, _) => ("it selects nodes without Windows".to_owned(), os.is_some()),
    };
    let set_os = if set_os {
        ", and set os.name of the pod to windows"
    } else {
        ""
    };
    (
        format!(
            "{says}, but its image {} is for Windows alone",
            image.label()
        ),
        format!(
            "select nodes with Windows: nodeSelector: {{{}: windows}}{set_os}",
            os_label(hosts)
        ),
    )
}

/// Reason and fix for a workload of another system that only hosts take.
fn of_windows_nodes_alone(hosts: &[Node], template: &PodTemplate) -> (String, String) {
    let os = template.os_name.as_deref().unwrap_or_default();
    let host = hosts.iter().find(|host| template.scheduling.admits(host));
    let host = host.and_then(|host| host.name.as_deref());
    (
        format!(
            "its os.name is {os}, but only nodes with Windows take its pods, such as {}, whose \
             kubelet refuses them (PodOSNotSupported)",
            host.unwrap_or_default()
        ),
        "correct os.name of the pod, or its node selector, affinity and tolerations".to_owned(),
    )
}

/// `os=windows:NoSchedule`.
fn in_words(taint: &Taint) -> String {
    format!("{}={}:{}", taint.key, taint.value, taint.effect)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::NodeList;
    use crate::rollout::RolloutRequest;

    #[test]
    fn a_pod_goes_nowhere_where_no_windows_node_is_left() {
        let rollout = Rollout::new(&RolloutRequest {
            nodes: NodeList {
                windows: Vec::new(),
                others: vec![node("linux", None)],
            },
            ..RolloutRequest::default()
        });
        let (reason, fix) = explain_no_host(&rollout, &PodTemplate::default(), &[]);
        assert_eq!(reason, "no Windows node is left to take its pods");
        assert_eq!(fix, "uncordon or add a Windows node");
    }

    fn node(name: &str, taint: Option<&str>) -> Node {
        let build = wincimg_windows::compat::HostBuild::new("20348.1".parse().unwrap());
        Node {
            name: Some(name.to_owned()),
            labels_are_complete: true,
            taints: taint
                .map(|json| serde_json::from_str(json).unwrap())
                .into_iter()
                .collect(),
            ..Node::from_build(build)
        }
    }

    #[test]
    fn a_selector_that_contradicts_the_os_of_the_pod_is_said() {
        let rollout = Rollout::new(&RolloutRequest::default());
        for (os, selected, reason) in [
            ("linux", "windows", "it selects nodes with Windows"),
            ("windows", "linux", "it selects nodes without Windows"),
        ] {
            let template = PodTemplate {
                os_name: Some(os.to_owned()),
                scheduling: Scheduling {
                    selector: [("kubernetes.io/os".to_owned(), selected.to_owned())].into(),
                    ..Scheduling::default()
                },
                ..PodTemplate::default()
            };
            let why = explain_no_host(&rollout, &template, &[]).0;
            assert!(why.contains(reason), "{why}");
        }
    }

    #[test]
    fn why_a_pod_can_go_nowhere_is_said() {
        let taint = r#"{"key":"gpu","value":"yes","effect":"NoSchedule"}"#;
        let evicts = r#"{"key":"ill","value":"","effect":"NoExecute"}"#;
        let rollout = Rollout::new(&RolloutRequest {
            nodes: NodeList {
                windows: vec![
                    node("a", Some(taint)),
                    node("b", Some(taint)),
                    node("c", Some(evicts)),
                ],
                others: vec![node("linux", None)],
            },
            ..RolloutRequest::default()
        });
        let why = |scheduling: &Scheduling| {
            let template = PodTemplate {
                scheduling: scheduling.clone(),
                ..PodTemplate::default()
            };
            explain_no_host(&rollout, &template, &[]).0
        };
        let with = |key: &str, value: &str| Scheduling {
            selector: [(key.to_owned(), value.to_owned())].into(),
            ..Scheduling::default()
        };
        assert_eq!(
            why(&with("kubernetes.io/os", "windows")),
            "the nodes that its selector matches, such as a, have taints that it does not tolerate: \
             gpu=yes:NoSchedule"
        );
        assert!(why(&Scheduling::default()).starts_with("the Windows nodes, such as a, have"));
        assert_eq!(
            why(&with("pool", "x")),
            "no Windows node has the label pool=x"
        );
        for (terms, reason) in [
            (
                r#"[{"matchExpressions":[{"key":"kubernetes.io/os","operator":"In","values":["windows"]},
                {"key":"tier","operator":"Exists"}]}]"#,
                "no Windows node has the label tier",
            ),
            (
                r#"[{"matchExpressions":[{"key":"pool","operator":"In","values":["x","y"]}]},
                {"matchExpressions":[{"key":"kubernetes.io/os","operator":"NotIn","values":["windows"]}]}]"#,
                "no Windows node meets pool in (x,y) or kubernetes.io/os!=windows",
            ),
            (
                r#"[{"matchExpressions":[{"key":"node.kubernetes.io/windows-build","operator":"Gt",
                "values":["17763"]}]}]"#,
                "no Windows node meets node.kubernetes.io/windows-build>17763: Gt and Lt compare \
                 integers, and 10.0.20348 is not one",
            ),
            (
                "[{}]",
                "no Windows node meets its node selector and affinity",
            ),
        ] {
            let scheduling = Scheduling {
                affinity: Some(serde_json::from_str(terms).unwrap()),
                ..Scheduling::default()
            };
            assert_eq!(why(&scheduling), reason);
        }
        let named = |name: &str, scheduling: Scheduling| {
            why(&Scheduling {
                node_name: Some(name.to_owned()),
                ..scheduling
            })
        };
        for (name, scheduling, reason) in [
            (
                "gone",
                Scheduling::default(),
                "which is not one of the Windows nodes",
            ),
            (
                "linux",
                Scheduling::default(),
                "which does not run Windows: its pods fail there",
            ),
            (
                "a",
                with("pool", "x"),
                "whose kubelet refuses it: it does not meet",
            ),
            (
                "c",
                Scheduling::default(),
                "it has the taint ill=:NoExecute",
            ),
        ] {
            let why = named(name, scheduling);
            assert!(why.contains(reason), "{why}");
        }
    }
}
