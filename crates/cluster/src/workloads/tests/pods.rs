//! Pods and pod templates.

use wincimg_windows::compat::{ContainerRuntime, HostBuild, Isolation};

use super::*;
use crate::nodes::Node;
use crate::pod::Hyperv;
use crate::scheduling::System;

#[test]
fn sidecars_count_and_containers_for_debugging_do_not() {
    let (images, _) = found(
        "kind: Pod\nmetadata: {name: p}\nspec:\n  \
         initContainers: [{name: proxy, image: proxy:1, restartPolicy: Always}]\n  \
         containers: [{name: app, image: app:1}]\n  \
         ephemeralContainers: [{name: debugger, image: debug:1}]\n",
    );
    assert_eq!(
        images,
        [["proxy:1", "app:1"]],
        "an ephemeral container is put into a running pod, and never starts with one"
    );
}

#[test]
fn the_policy_of_an_image_is_that_of_its_tag_unless_it_is_given() {
    use crate::pod::PullPolicy::{Always, IfNotPresent, Never};

    let policy = |container: &str| {
        let text = format!("kind: Pod\nspec: {{containers: [{{{container}}}]}}\n");
        read(&text)[0].template.containers[0].pull_policy
    };
    for (container, expected) in [
        ("image: a", Always),
        ("image: 'a:latest'", Always),
        ("image: 'a:1'", IfNotPresent),
        ("image: 'a:1', imagePullPolicy: ''", IfNotPresent),
        ("image: 'a:1', imagePullPolicy: Always", Always),
        ("image: a, imagePullPolicy: IfNotPresent", IfNotPresent),
        ("image: a, imagePullPolicy: Never", Never),
    ] {
        assert_eq!(policy(container), expected, "{container}");
    }
}

#[test]
fn nodes_tolerations_or_the_system_of_a_pod_make_it_one_for_windows() {
    let windows = "nodeSelector: {kubernetes.io/os: windows}";
    let linux = "nodeSelector: {kubernetes.io/os: linux}";
    let tolerates = "tolerations: [{key: os, value: windows}]";
    for (spec, expected) in [
        ("os: {name: windows}".to_owned(), System::Windows),
        ("os: {name: linux}".to_owned(), System::Other),
        (format!("os: {{name: linux}}, {linux}"), System::Other),
        (format!("os: {{name: linux}}, {tolerates}"), System::Other),
        (format!("os: {{name: linux}}, {windows}"), System::Windows),
        (format!("os: {{name: windows}}, {linux}"), System::Windows),
        (format!("{linux}, {tolerates}"), System::Other),
        (windows.to_owned(), System::Windows),
        (tolerates.to_owned(), System::Windows),
        (tolerates.replace("windows", "Windows"), System::Windows),
        (tolerates.replace("windows", "linux"), System::Unsaid),
    ] {
        let pod = format!("kind: Pod\nspec: {{{spec}, containers: [{{image: i}}]}}");
        assert_eq!(read(&pod)[0].template.system(), expected, "{spec}");
    }
}

#[test]
fn a_pod_has_the_node_selector_of_its_openshift_namespace() {
    let selected = |annotation: &str, namespace: &str| {
        let text = format!(
            "kind: Pod\nmetadata: {{name: p, namespace: {namespace}}}\nspec: {{nodeSelector: {{pool: \
             own}}, containers: [{{image: i}}]}}\n---\napiVersion: v1\nkind: Namespace\nmetadata:\n  \
             name: shop\n  annotations: {{openshift.io/node-selector: {annotation}}}\n"
        );
        let selector = read(&text).remove(0).template.scheduling.selector;
        let words = selector.iter().map(|(key, value)| format!("{key}={value}"));
        words.collect::<Vec<_>>().join(",")
    };
    let windows = "'kubernetes.io/os=windows, infra='";
    assert_eq!(
        selected(windows, "shop"),
        "infra=,kubernetes.io/os=windows,pool=own"
    );
    assert_eq!(selected(windows, "other"), "pool=own");
    for none in ["''", "'no label'", "7"] {
        assert_eq!(selected(none, "shop"), "pool=own", "{none}");
    }
}

#[test]
fn a_static_pod_stays_on_its_node() {
    let owner = "{kind: Node, name: n-etcd, controller: true}";
    let workloads = read(&made("etcd", owner, "e"));
    assert_eq!(workloads[0].id.to_string(), "Pod default/etcd");
    assert!(!workloads[0].owns_template, "a file of the node does");
    assert_eq!(
        workloads[0].template.scheduling.node_name.as_deref(),
        Some("n-etcd")
    );
}

#[test]
fn the_annotation_counts_on_docker_up_to_kubernetes_1_20_and_host_processes_have_no_isolation() {
    let workloads = read(
        "kind: Pod\nmetadata: {annotations: {experimental.windows.kubernetes.io/isolation-type: hyperv}}\n\
         spec: {containers: [{image: i}]}\n---\n\
         kind: Pod\nmetadata: {name: hpc}\nspec:\n  securityContext: {windowsOptions: {hostProcess: true}}\n  \
         containers: [{image: i}, {image: j, securityContext: {windowsOptions: {hostProcess: false}}}]\n",
    );
    let old = &workloads[0].template;
    for (runtime, kubelet, expected) in [
        (ContainerRuntime::Docker, "v1.20.0", Isolation::HyperV),
        (ContainerRuntime::Docker, "v1.21.0", Isolation::Process),
        (ContainerRuntime::Docker, "", Isolation::Process),
        (ContainerRuntime::CONTAINERD, "v1.20.0", Isolation::Process),
    ] {
        let node = Node {
            runtime,
            kubelet: kubelet.to_owned(),
            ..Node::from_build(HostBuild::new("17763.1158".parse().unwrap()))
        };
        let found = old.isolation(&old.containers[0], node.hyperv(), Isolation::Process);
        assert_eq!(found, expected, "{runtime:?} {kubelet}");
    }
    assert_eq!(old.system(), System::Windows);
    let host = &workloads[1].template;
    assert_eq!(host.system(), System::Windows);
    let of = |index: usize| {
        let container = &host.containers[index];
        host.isolation(container, Hyperv::OfContainerd, Isolation::Process)
    };
    assert_eq!(of(0), Isolation::HostProcess);
    assert_eq!(of(1), Isolation::Process);
}

#[test]
fn a_workload_without_an_image_is_one_all_the_same() {
    for (text, without_image) in [
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {}\n",
            vec![],
        ),
        ("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n", vec![]),
        (
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: x}\nspec: {template: {spec: \
             {containers: [{name: a, image: ''}, {name: b}, {name: c, image: c}]}}}\n",
            vec!["a", "b"],
        ),
    ] {
        let workloads = read(text);
        assert_eq!(workloads.len(), 1, "{text}");
        assert_eq!(workloads[0].template.without_image, without_image, "{text}");
    }
}

#[test]
fn what_kubernetes_accepts_is_read() {
    let pod = |spec: &str| {
        let text = format!(
            "kind: Pod\nmetadata: {{name: p}}\nspec: {{{spec}, containers: [{{image: i}}]}}\n"
        );
        read(&text).remove(0).template
    };
    for (seconds, expected) in [
        ("-1", Some(1)),
        ("-9223372036854775808", Some(1)),
        ("0", Some(0)),
        ("90.0", Some(90)),
        ("null", None),
    ] {
        let template = pod(&format!("terminationGracePeriodSeconds: {seconds}"));
        assert_eq!(template.grace_seconds, expected, "{seconds}");
    }
    let selector = pod("nodeSelector: {pool: null}").scheduling.selector;
    assert_eq!(selector.get("pool").map(String::as_str), Some(""));
    let host = Node::from_build(HostBuild::new("17763.1158".parse().unwrap()));
    let admits = |terms: &str| {
        let affinity = format!(
            "affinity: {{nodeAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: \
             {{nodeSelectorTerms: {terms}}}}}}}"
        );
        pod(&affinity).scheduling.admits(&host)
    };
    let windows = "{matchExpressions: [{key: kubernetes.io/os, operator: In, values: [windows]}]}";
    assert!(!admits("[null]"), "such a term matches no node");
    assert!(admits(&format!("[null, {windows}]")));
    let names = "kind: Pod\nmetadata:\n  name: null\n  generateName: p-\n  annotations: {a: 1}\n  \
                 labels: {commit: 12e4567}\n  ownerReferences: [{kind: A, name: a, controller: null}]\n\
                 spec: {containers: [{name: null, image: i}]}\n";
    assert_eq!(read(names)[0].id.name, "p-*");
    for seconds in ["1.5", "\"30\""] {
        let text = format!(
            "kind: Pod\nmetadata: {{name: p}}\nspec: {{terminationGracePeriodSeconds: {seconds}}}\n"
        );
        let place = "line 1: Pod p: spec.terminationGracePeriodSeconds: ";
        assert!(message(&text).starts_with(place), "{}", message(&text));
    }
}

#[test]
fn thousands_of_different_pods_of_one_owner_are_read_in_time() {
    let pod = |number: usize| {
        format!(
            r#"{{"kind":"Pod","metadata":{{"name":"p{number}","uid":"u",
            "ownerReferences":[{{"kind":"ReplicaSet","name":"r","controller":true}}]}},
            "spec":{{"nodeSelector":{{"a":"{number}"}},"containers":[{{"image":"i"}}]}}}}"#
        )
    };
    let text: String = (0..20_000).map(pod).collect();
    let started = std::time::Instant::now();
    assert_eq!(read(&text).len(), 20_000);
    // Comparing each with each takes minutes.
    assert!(started.elapsed() < std::time::Duration::from_mins(1));
}
