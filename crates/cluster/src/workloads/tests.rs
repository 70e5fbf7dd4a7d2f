use std::fmt::Write as _;

use wincimg_windows::compat::{ContainerRuntime, HostBuild, Isolation};

use super::*;
use crate::nodes::Node;
use crate::pod::Hyperv;
use crate::scheduling::System;

fn read(text: &str) -> Vec<Workload> {
    let mut list = WorkloadList::default();
    list.read(text, "app.yaml")
        .unwrap_or_else(|error| panic!("{error}"));
    list.into_workloads()
}

fn message(text: &str) -> String {
    WorkloadList::default()
        .read(text, "app.yaml")
        .unwrap_err()
        .to_string()
}

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  template:
    spec:
      nodeSelector: {kubernetes.io/os: windows}
      terminationGracePeriodSeconds: 120
      initContainers:
      - {name: setup, image: repo/setup:1}
      containers:
      - {name: web, image: repo/web:1.4}
";

#[test]
fn documents_lists_and_kinds_are_read_in_order() {
    let text = format!(
        "# a comment\n---\n{DEPLOYMENT}---\napiVersion: v1\nkind: Service\nmetadata: {{name: web}}\n---\n---\n\
         kind: List\nitems:\n\
         - kind: CronJob\n  metadata: {{name: nightly}}\n  spec:\n    jobTemplate:\n      spec:\n        template:\n          \
         spec: {{containers: [{{name: job, image: repo/job:2}}]}}\n\
         - kind: Pod\n  metadata: {{name: one}}\n  spec: {{containers: [{{name: a, image: repo/a}}], nodeSelector: null}}\n"
    );
    let workloads = read(&text);
    let seen: Vec<_> = workloads
        .iter()
        .map(|workload| {
            let id = &workload.id;
            let images: Vec<_> = workload
                .template
                .containers
                .iter()
                .map(|container| container.image.as_str())
                .collect();
            (
                id.to_string(),
                images.join(" "),
                workload.origin.as_ref().unwrap().line,
            )
        })
        .collect();
    let expected = [
        ("Deployment shop/web", "repo/setup:1 repo/web:1.4", 3),
        ("CronJob default/nightly", "repo/job:2", 23),
        ("Pod default/one", "repo/a", 30),
    ]
    .map(|(id, images, line)| (id.to_owned(), images.to_owned(), line));
    assert_eq!(seen, expected);
    assert_eq!(workloads[0].template.grace_seconds, Some(120));
    assert_eq!(workloads[0].template.system(), System::Windows);
}

#[test]
fn what_helm_template_prints_is_read_with_its_empty_documents_and_anchors() {
    let workloads = read(
        "---\n# Source: shop/templates/empty.yaml\n---\n# Source: shop/templates/web.yaml\n\n\
         apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: \"web\"\n  labels: &labels\n    app: web\n\
         spec:\n  selector: {matchLabels: *labels}\n  template:\n    metadata: {labels: *labels}\n    \
         spec:\n      nodeSelector: {kubernetes.io/os: windows}\n      containers:\n      \
         - &app {name: a, image: \"app:1\"}\n      - {<<: *app, name: b}\n---\n# the end\n",
    );
    let names: Vec<_> = workloads[0]
        .template
        .containers
        .iter()
        .map(|container| (container.name.as_str(), container.image.as_str()))
        .collect();
    assert_eq!(names, [("a", "app:1"), ("b", "app:1")]);
    assert_eq!(workloads.len(), 1);
}

#[test]
fn sidecars_count_and_containers_for_debugging_do_not() {
    let workloads = read(
        "kind: Pod\nmetadata: {name: p}\nspec:\n  \
         initContainers: [{name: proxy, image: proxy:1, restartPolicy: Always}]\n  \
         containers: [{name: app, image: app:1}]\n  \
         ephemeralContainers: [{name: debugger, image: debug:1}]\n",
    );
    let images: Vec<_> = workloads[0]
        .template
        .containers
        .iter()
        .map(|container| container.image.as_str())
        .collect();
    assert_eq!(
        images,
        ["proxy:1", "app:1"],
        "an ephemeral container is put into a running pod, and never starts with one"
    );
}

#[test]
fn every_kind_with_a_pod_template_counts_even_one_that_kubernetes_does_not_have() {
    for kind in [
        "DaemonSet", "StatefulSet", "ReplicaSet", "ReplicationController", "Job", "Rollout",
    ] {
        let text = DEPLOYMENT.replace("kind: Deployment", &format!("kind: {kind}"));
        assert_eq!(read(&text)[0].id.kind, kind);
    }
    assert!(read("kind: Certificate\nspec: {template: {spec: {hosts: [a]}}}").is_empty());
}

#[test]
fn json_of_kubectl_is_read_also_where_items_do_not_say_their_kind() {
    let text = r#"{"kind":"PodList","items":[
        {"metadata":{"name":"p"},"spec":{"containers":[{"name":"c","image":"i"}]}}]}
        {"kind":"Pod","metadata":{"name":"q"},"spec":{"containers":[{"name":"c","image":"i"}]}}"#;
    let workloads = read(text);
    let names: Vec<_> = workloads
        .iter()
        .map(|workload| {
            (
                workload.id.name.as_str(),
                workload.origin.as_ref().unwrap().line,
            )
        })
        .collect();
    assert_eq!(names, [("p", 2), ("q", 3)]);
}

#[test]
fn a_fault_in_an_item_of_a_list_is_reported_at_the_item() {
    let item = |image: &str| {
        format!(
            "- kind: Pod\n  metadata: {{name: p}}\n  spec: {{containers: [{{image: {image}}}]}}\n"
        )
    };
    let yaml = format!("kind: List\nitems:\n{}\n# third\n{}", item("a"), item("7"));
    assert!(
        message(&yaml).starts_with("line 8: Pod p: "),
        "{}",
        message(&yaml)
    );
    let yaml = format!("items:\n{}- text\n", item("a"));
    assert!(message(&yaml).starts_with("line 5: "), "{}", message(&yaml));
    let anchored = "a: &a {kind: Pod, spec: 1}\nitems:\n- {kind: Service, apiVersion: v1}\n- *a\n";
    assert!(
        message(anchored).starts_with("line 4: "),
        "{}",
        message(anchored)
    );
    let json = r#"{"items" : [],
        "metadata": {"items": [1, {"]": "[{\\\"\\\\"}], "a": "items"},
        "items": [{"kind": "Pod", "spec": {"containers": [{"image": "a"}, {"image": "b"}]}},
        {
          "kind": "Pod",
          "spec": {"containers": [{"image": 7}]}}]}"#;
    assert!(
        message(json).starts_with("line 4: Pod "),
        "{}",
        message(json)
    );
}

/// A pod created by a controller, as a cluster returns it.
fn made(name: &str, owner: &str, image: &str) -> String {
    format!(
        "---\nkind: Pod\nmetadata:\n  name: {name}\n  uid: abc\n  ownerReferences: [{owner}]\n\
         spec: {{nodeName: n-{name}, terminationGracePeriodSeconds: 30, containers: [{{name: c, image: {image}}}]}}\n"
    )
}

#[test]
fn what_another_workload_made_is_left_out() {
    let owner = "{kind: Job, name: nightly, controller: true}";
    let job = "kind: Job\nmetadata: {name: nightly}\nspec: {template: {spec: {containers: [{image: j}]}}}\n";
    let workloads = read(&format!("{job}{}", made("nightly-1", owner, "j")));
    assert_eq!(workloads.len(), 1);
    assert_eq!(workloads[0].id.kind, "Job");
}

#[test]
fn a_kind_of_another_group_is_another_kind() {
    let job = |api: &str| {
        format!(
            "---\napiVersion: {api}\nkind: Job\nmetadata: {{name: x}}\nspec: {{template: {{spec: \
             {{containers: [{{image: j}}]}}}}}}\n"
        )
    };
    let pod = |api: &str| {
        made(
            "x-1",
            &format!("{{apiVersion: {api}, kind: Job, name: x, controller: true}}"),
            "p",
        )
    };
    let ids = |text: String| {
        let workloads = read(&text).into_iter();
        workloads.map(|it| it.id.to_string()).collect::<Vec<_>>()
    };
    let (own, other) = ("Job default/x", "Job.batch.volcano.sh default/x");
    let volcano = "batch.volcano.sh/v1alpha1";
    assert_eq!(ids(job("batch/v1") + &job(volcano)), [own, other]);
    assert_eq!(ids(job("batch/v1") + &pod("batch/v1")), [own]);
    assert_eq!(ids(job("batch/v1") + &pod(volcano)), [own, other]);
    assert_eq!(ids(job(volcano) + &pod(volcano)), [other]);
    // Kubernetes' own kinds had other groups.
    let old = job("extensions/v1beta1");
    assert_eq!(ids(old + &pod("batch/v1")), [own]);
}

#[test]
fn pods_of_something_that_is_not_listed_count_as_it_once() {
    let owner = "{kind: ReplicaSet, name: web-5d, controller: true}";
    let text =
        made("web-1", owner, "w:1") + &made("web-2", owner, "w:1") + &made("web-3", owner, "w:2");
    let workloads = read(&text);
    let images: Vec<_> = workloads
        .iter()
        .map(|workload| workload.template.containers[0].image.as_str())
        .collect();
    assert_eq!(images, ["w:1", "w:2"]);
    assert!(
        workloads
            .iter()
            .all(|workload| workload.id.kind == "ReplicaSet")
    );
    assert_eq!(workloads[0].template.scheduling.node_name, None);
    assert_eq!(
        workloads[0].template.grace_seconds, None,
        "the 30 seconds are the default of the API server"
    );
}

#[test]
fn a_replica_set_is_of_the_deployment_in_its_name_if_its_hash_is_a_label() {
    let owner = "{kind: ReplicaSet, name: web-5d, controller: true}";
    let pod = made("web-5d-1", owner, "w:1");
    let labelled = |hash: &str| {
        pod.replace(
            "uid: abc",
            &format!("labels: {{pod-template-hash: {hash}}}"),
        )
    };
    for (text, id) in [
        (pod.clone(), "ReplicaSet default/web-5d"),
        (labelled("6e"), "ReplicaSet default/web-5d"),
        (labelled("5d"), "Deployment default/web"),
    ] {
        let workloads = read(&text);
        assert_eq!(workloads[0].id.to_string(), id);
        assert!(!workloads[0].owns_template);
    }
    let deployment = DEPLOYMENT.replace("namespace: shop", "namespace: default");
    let workloads = read(&(deployment + &labelled("5d")));
    assert_eq!(workloads.len(), 1, "{workloads:?}");
    assert!(workloads[0].owns_template);
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
fn a_pod_that_tolerates_a_windows_taint_is_for_windows_however_it_is_written() {
    for (value, expected) in [
        ("windows", System::Windows),
        ("Windows", System::Windows),
        ("linux", System::Unsaid),
    ] {
        let pod = format!(
            "kind: Pod\nspec: {{tolerations: [{{key: os, value: {value}}}], containers: [{{image: i}}]}}"
        );
        assert_eq!(read(&pod)[0].template.system(), expected, "{value}");
    }
}

#[test]
fn nodes_or_the_system_of_a_pod_make_it_one_for_windows() {
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
    ] {
        let pod = format!("kind: Pod\nspec: {{{spec}, containers: [{{image: i}}]}}");
        assert_eq!(read(&pod)[0].template.system(), expected, "{spec}");
    }
}

#[test]
fn what_the_cluster_gives_a_name_is_called_by_what_it_begins_with() {
    let job = |name: &str| {
        format!(
            "---\nkind: Job\nmetadata: {{{name}}}\nspec: {{template: {{spec: {{containers: [{{image: j}}]}}}}}}\n"
        )
    };
    let text = job("generateName: migrate-") + &job("generateName: seed-, name: seed-x7");
    let names: Vec<_> = read(&text)
        .into_iter()
        .map(|workload| workload.id.name)
        .collect();
    assert_eq!(names, ["migrate-*", "seed-x7"]);
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
fn pods_of_a_daemon_set_are_one_on_the_nodes_where_they_are() {
    let pod = |node: &str, image: &str| {
        format!(
            "---\nkind: Pod\nmetadata:\n  name: logs-{node}\n  ownerReferences: \
             [{{kind: DaemonSet, name: logs, controller: true}}]\n\
             spec:\n  nodeName: {node}\n  containers: [{{image: {image}}}]\n  affinity:\n    \
             nodeAffinity:\n      requiredDuringSchedulingIgnoredDuringExecution:\n        \
             nodeSelectorTerms: [{{matchFields: [{{key: metadata.name, operator: In, values: [{node}]}}]}}]\n"
        )
    };
    let workloads = read(&(pod("a", "w:1") + &pod("b", "w:1") + &pod("c", "w:2")));
    let seen: Vec<_> = workloads
        .iter()
        .map(|workload| {
            let admits = |name: &&str| {
                let host = Node::from_build(HostBuild::new("17763.1158".parse().unwrap()));
                let host = Node {
                    name: Some((*name).to_owned()),
                    ..host
                };
                workload.template.scheduling.admits(&host)
            };
            let nodes: Vec<&str> = ["a", "b", "c", "d"].into_iter().filter(admits).collect();
            (workload.id.to_string(), nodes.join(" "))
        })
        .collect();
    let id = "DaemonSet default/logs".to_owned();
    assert_eq!(seen, [(id.clone(), "a b".to_owned()), (id, "c".to_owned())]);
}

#[test]
fn a_runtime_class_adds_its_selector_and_its_isolation() {
    let class = "\
kind: RuntimeClass
metadata: {name: old}
handler: runhcs-wcow-hypervisor-17763
scheduling:
  nodeSelector: {kubernetes.io/os: windows, node.kubernetes.io/windows-build: 10.0.20348}
  tolerations: [{key: os, value: windows}]
---
kind: Pod
metadata: {name: p}
spec: {runtimeClassName: old, containers: [{name: c, image: i}]}
";
    let workloads = read(class);
    let template = &workloads[0].template;
    assert_eq!(template.scheduling.selector.len(), 2);
    assert_eq!(template.scheduling.tolerations.len(), 1);
    assert_eq!(template.system(), System::Windows);
    let isolation =
        |runtime| template.isolation(&template.containers[0], runtime, Isolation::Process);
    assert_eq!(isolation(ContainerRuntime::CONTAINERD), Isolation::HyperV);
    assert_eq!(isolation(ContainerRuntime::Docker), Isolation::Process);
}

#[test]
fn a_pod_that_contradicts_its_runtime_class_lands_nowhere() {
    let with_build = |build: &str| {
        let text = format!(
            "kind: RuntimeClass\nmetadata: {{name: old}}\nhandler: runhcs-wcow-process\n\
             scheduling: {{nodeSelector: {{node.kubernetes.io/windows-build: 10.0.17763}}}}\n---\n\
             kind: Pod\nspec:\n  runtimeClassName: old\n  containers: [{{image: i}}]\n  \
             nodeSelector: {{node.kubernetes.io/windows-build: {build}}}\n"
        );
        read(&text).remove(0).template.scheduling
    };
    let hosts = ["17763.1158", "20348.1"]
        .map(|version| Node::from_build(HostBuild::new(version.parse().unwrap())));
    let admitted = |build: &str| {
        hosts
            .iter()
            .filter(|host| with_build(build).admits(host))
            .count()
    };
    assert_eq!(admitted("10.0.17763"), 1);
    assert_eq!(admitted("10.0.20348"), 0);
}

#[test]
fn an_unknown_runtime_class_is_judged_by_its_name() {
    let hyperv = |class: &str| {
        let pod =
            format!("kind: Pod\nspec: {{runtimeClassName: {class}, containers: [{{image: i}}]}}");
        read(&pod)[0].template.hyperv
    };
    assert_eq!(hyperv("windows-hyperv"), Hyperv::OfContainerd);
    assert_eq!(hyperv("windows-2019"), Hyperv::No);
}

#[test]
fn the_old_annotation_asks_docker_alone_and_host_processes_have_no_isolation() {
    let workloads = read(
        "kind: Pod\nmetadata: {annotations: {experimental.windows.kubernetes.io/isolation-type: hyperv}}\n\
         spec: {containers: [{image: i}]}\n---\n\
         kind: Pod\nmetadata: {name: hpc}\nspec:\n  securityContext: {windowsOptions: {hostProcess: true}}\n  \
         containers: [{image: i}, {image: j, securityContext: {windowsOptions: {hostProcess: false}}}]\n",
    );
    let old = &workloads[0].template;
    let isolation = |runtime| old.isolation(&old.containers[0], runtime, Isolation::Process);
    assert_eq!(isolation(ContainerRuntime::Docker), Isolation::HyperV);
    assert_eq!(isolation(ContainerRuntime::CONTAINERD), Isolation::Process);
    assert_eq!(old.system(), System::Windows);
    let host = &workloads[1].template;
    assert_eq!(host.system(), System::Windows);
    let of = |index: usize| {
        host.isolation(
            &host.containers[index],
            ContainerRuntime::CONTAINERD,
            Isolation::Process,
        )
    };
    assert_eq!(of(0), Isolation::HostProcess);
    assert_eq!(of(1), Isolation::Process);
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    assert_eq!(
        message("kind: Pod\nmetadata: {name: p}\nspec: {containers: [{image: 7}]}"),
        "line 1: Pod p: spec.containers[0].image: invalid type: integer `7`, expected a string"
    );
    assert_eq!(
        message("---\na: 1\n"),
        "line 2: expected a Kubernetes object with a kind, found an object without one"
    );
    assert_eq!(
        message("- a\n"),
        "line 1: expected a Kubernetes object with a kind, found a list"
    );
    let malformed = message("kind: Pod\nspec: {a: [\n");
    assert!(malformed.starts_with("line "), "{malformed}");
    assert!(
        malformed.ends_with("expected Kubernetes objects as YAML or JSON"),
        "{malformed}"
    );
    let json = message("{\"kind\":\n \"Po");
    assert!(json.starts_with("line 2, column "), "{json}");
    let operator = message(
        "kind: Pod\nmetadata: {name: p}\nspec: {containers: [], affinity: {nodeAffinity: \
         {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: \
         [{matchExpressions: [{key: a, operator: Is}]}]}}}}",
    );
    assert!(operator.contains("unknown variant `Is`"), "{operator}");
}

#[test]
fn text_that_repeats_itself_without_end_is_refused() {
    let mut text = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
    for level in 1..12 {
        let before = format!("*a{},", level - 1).repeat(9);
        writeln!(text, "a{level}: &a{level} [{before}]").unwrap();
    }
    let started = std::time::Instant::now();
    assert!(WorkloadList::default().read(&text, "bomb").is_err());
    // Trying all alternatives would never end.
    assert!(started.elapsed() < std::time::Duration::from_mins(1));
}

#[test]
fn comments_are_no_matter_however_many_there_are() {
    let comments = "# as AKS writes them\n".repeat(1000);
    let inner = "        # and here\n".repeat(1000);
    let text = DEPLOYMENT.replace(
        "      containers:\n",
        &format!("{inner}      containers:\n"),
    );
    assert_eq!(read(&format!("{comments}{text}{comments}")), {
        let mut plain = read(DEPLOYMENT);
        plain[0].origin.as_mut().unwrap().line = 1001;
        plain
    });
}

#[test]
fn of_a_key_that_is_repeated_the_last_counts_with_a_warning() {
    let text = DEPLOYMENT.replace(
        "image: repo/web:1.4",
        "image: repo/old:1, image: repo/web:1.4",
    );
    let mut list = WorkloadList::default();
    list.read(&text, "app.yaml").unwrap();
    assert_eq!(list.warnings.len(), 1);
    assert_eq!(
        list.warnings[0],
        "app.yaml: line 12: duplicate mapping key: image; the last value is used"
    );
    assert_eq!(list.into_workloads(), read(DEPLOYMENT));
    // Other errors remain.
    assert!(message(&format!("{text}  - [\n")).contains("expected Kubernetes objects"));
}

#[test]
fn of_a_key_that_is_repeated_in_json_the_last_counts_with_a_warning_too() {
    let pod = |name: &str, image: &str| {
        format!(
            "{{\"kind\": \"Pod\", \"metadata\": {{\"name\": \"{name}\"}},\n \"spec\": {{\"containers\": \
             [{{\"name\": \"c\", {image}\"image\": \"repo/web:1.4\"}}]}}}}\n"
        )
    };
    let plain = pod("p", "");
    let twice = format!("{plain}{}", pod("q", "\"image\": \"repo/old:1\",\n"));
    let mut list = WorkloadList::default();
    list.read(&twice, "pods.json").unwrap();
    assert_eq!(
        list.warnings,
        ["pods.json: line 5: duplicate mapping key: image; the last value is used"]
    );
    let images = found(&twice).0;
    assert_eq!(images, [["repo/web:1.4"], ["repo/web:1.4"]]);
    let mut list = WorkloadList::default();
    list.read(&plain, "pods.json").unwrap();
    assert_eq!(list.warnings, [""; 0]);
    // Other errors remain.
    assert!(message(&format!("{twice}{{")).contains("EOF"));
}

/// The images of each workload found, and the skipped objects.
fn found(text: &str) -> (Vec<Vec<String>>, Vec<String>) {
    let mut list = WorkloadList::default();
    list.read(text, "app.yaml").unwrap();
    let skipped = list.skipped.iter().map(ToString::to_string).collect();
    let images = list.into_workloads().into_iter().map(|workload| {
        let containers = workload.template.containers.into_iter();
        containers.map(|container| container.image).collect()
    });
    (images.collect(), skipped)
}

#[test]
fn pods_are_found_in_kinds_that_kubernetes_does_not_have() {
    for (text, images) in [
        (
            "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: x}\nspec:\n  \
             replicatedJobs:\n  - name: a\n    template: {spec: {template: {spec: {containers: \
             [{image: a}]}}}}\n  - name: b\n    template: {spec: {template: {spec: {containers: \
             [{image: b}, {image: c}]}}}}\n",
            vec![vec!["a"], vec!["b", "c"]],
        ),
        (
            "apiVersion: keda.sh/v1alpha1\nkind: ScaledJob\nmetadata: {name: x}\nspec:\n  \
             jobTargetRef: {template: {spec: {containers: [{image: a}]}}}\n",
            vec![vec!["a"]],
        ),
        (
            "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: x}\nspec:\n  \
             templates:\n  - {name: a, container: {image: a}}\n  - {name: b, script: {image: b}}\n  \
             - {name: c, steps: [[{name: d, template: a}]]}\n",
            vec![vec!["a"], vec!["b"]],
        ),
        (
            "apiVersion: actions.summerwind.dev/v1alpha1\nkind: RunnerDeployment\nmetadata: \
             {name: x}\nspec: {template: {spec: {repository: r, containers: [{name: runner, \
             image: a}]}}}\n",
            vec![vec!["a"]],
        ),
        (
            "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: x}\nspec:\n  \
             tasks: [{template: {spec: {containers: [{image: a}]}}}, {template: {spec: \
             {containers: [{image: a}]}}}]\n",
            // Duplicates are merged.
            vec![vec!["a"]],
        ),
    ] {
        let images: Vec<Vec<String>> = images
            .into_iter()
            .map(|images| images.into_iter().map(str::to_owned).collect())
            .collect();
        assert_eq!(found(text), (images, Vec::new()), "{text}");
    }
}

#[test]
fn a_workflows_step_runs_where_the_workflow_does() {
    let text = "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: x}\nspec:\n  \
                nodeSelector: {kubernetes.io/os: windows}\n  templates:\n  \
                - {name: a, container: {image: a}}\n  \
                - {name: b, container: {image: b}, nodeSelector: {kubernetes.io/os: linux}}\n";
    let systems: Vec<System> = read(text)
        .iter()
        .map(|workload| workload.template.system())
        .collect();
    assert_eq!(systems, [System::Windows, System::Other]);
}

#[test]
fn what_makes_no_pods_is_skipped_and_said_where_its_kind_is_unknown() {
    let certificate = "apiVersion: cert-manager.io/v1\nkind: Certificate\nmetadata: {name: web}\n\
                       spec: {containers: none}\n";
    let service = "---\napiVersion: v1\nkind: Service\nmetadata: {name: web}\n";
    let list = "---\napiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: web}}]\n";
    assert_eq!(
        found(&format!("{certificate}{service}{list}---\n{DEPLOYMENT}")),
        (
            vec![vec!["repo/setup:1".to_owned(), "repo/web:1.4".to_owned()]],
            vec!["Certificate.cert-manager.io default/web (app.yaml, line 1)".to_owned()]
        )
    );
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
fn objects_are_read_as_json_documents_and_in_flow_style_too() {
    let pod = |name: &str| {
        format!(
            r#"{{"kind":"Pod","metadata":{{"name":"{name}"}},"spec":{{"containers":[{{"name":"c","image":"a:1"}}]}}}}"#
        )
    };
    let flow = "{kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: 'a:1'}]}}";
    for text in [
        format!("{}\n---\n{}\n", pod("a"), pod("b")),
        format!("---\n{}\n---\n{}", pod("a"), pod("b")),
        format!("{}\n{}", pod("a"), pod("b")),
        format!("{flow}\n---\n{}\n", pod("b")),
        format!(
            "{}\n---\nkind: Pod\nmetadata: {{name: b}}\nspec: {{containers: []}}\n",
            pod("a")
        ),
    ] {
        let mut list = WorkloadList::default();
        list.read(&text, "pods").unwrap();
        let names: Vec<_> = list
            .workloads
            .iter()
            .map(|pod| pod.id.name.as_str())
            .collect();
        assert_eq!(names, ["a", "b"], "{text}");
    }
}

#[test]
fn a_workload_whose_template_another_object_runs_is_active() {
    let rollout = |replicas: u32| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Rollout\nmetadata: {{name: ro, namespace: shop}}\n\
             spec: {{replicas: {replicas}, workloadRef: {{kind: Deployment, name: web}}}}\n---\n"
        )
    };
    let deployment = DEPLOYMENT.replace("spec:\n  template", "spec:\n  replicas: 0\n  template");
    for (text, inactive, skipped) in [
        (rollout(2) + &deployment, 0, 0),
        (format!("{deployment}---\n{}", rollout(2)), 0, 0),
        (rollout(0) + &deployment, 1, 1),
        (deployment.clone(), 1, 0),
    ] {
        let mut list = WorkloadList::default();
        list.read(&text, "app.yaml").unwrap();
        assert_eq!(
            (list.remove_inactive(), list.skipped.len()),
            (inactive, skipped),
            "{text}"
        );
    }
}

#[test]
fn what_argo_and_keda_ended_suspended_or_paused_is_inactive() {
    let argo = |kind: &str, more: &str, spec: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: {kind}\nmetadata: {{name: x}}\n{more}\n\
             spec: {{{spec}templates: [{{name: a, container: {{image: a}}}}]}}\n"
        )
    };
    let scaled_job = |annotation: &str| {
        format!(
            "apiVersion: keda.sh/v1alpha1\nkind: ScaledJob\nmetadata: {{name: x, annotations: \
             {{autoscaling.keda.sh/paused: '{annotation}'}}}}\nspec: {{jobTargetRef: {{template: \
             {{spec: {{containers: [{{image: a}}]}}}}}}}}\n"
        )
    };
    for (text, inactive) in [
        (argo("Workflow", "status: {phase: Running}", ""), 0),
        (argo("Workflow", "status: {phase: Succeeded}", ""), 1),
        (argo("Workflow", "status: {phase: Failed}", ""), 1),
        (argo("Workflow", "status: {phase: Error}", ""), 1),
        (argo("CronWorkflow", "", "suspend: false, "), 0),
        (argo("CronWorkflow", "", "suspend: true, "), 1),
        (scaled_job("false"), 0),
        (scaled_job("true"), 1),
        (
            DEPLOYMENT.replace("spec:\n  t", "spec:\n  replicas: 0.0\n  t"),
            1,
        ),
    ] {
        let mut list = WorkloadList::default();
        list.read(&text, "app.yaml").unwrap();
        assert_eq!(list.remove_inactive(), inactive, "{text}");
        assert_eq!(list.workloads.len(), 1 - inactive, "{text}");
    }
}

#[test]
fn what_keda_holds_at_zero_is_inactive() {
    let scaled = |annotation: &str| {
        format!(
            "---\napiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {{name: x, namespace: \
             shop, annotations: {{autoscaling.keda.sh/{annotation}}}}}\nspec: {{scaleTargetRef: \
             {{name: web}}}}\n"
        )
    };
    // `paused` keeps the replicas that there are.
    for (annotation, inactive) in [
        ("paused-replicas: '0'", 1),
        ("paused-replicas: '2'", 0),
        ("paused: 'true'", 0),
    ] {
        for text in [
            scaled(annotation) + "---\n" + DEPLOYMENT,
            DEPLOYMENT.to_owned() + &scaled(annotation),
        ] {
            let mut list = WorkloadList::default();
            list.read(&text, "app.yaml").unwrap();
            assert_eq!(list.remove_inactive(), inactive, "{text}");
        }
    }
}

#[test]
fn a_template_of_helm_is_called_one() {
    let read = |text: &str| {
        WorkloadList::default()
            .read(text, "x")
            .unwrap_err()
            .to_string()
    };
    let block = "kind: Pod\nspec:\n  {{- if .Values.windows }}\n  containers: []\n  {{- end }}\n";
    assert!(
        read(block).starts_with("line 3, column 3: this is a Helm template"),
        "{}",
        read(block)
    );
    for action in [
        "tpl ((.Files.Glob \"conf/*\").AsConfig) .",
        "$port := 80",
        ".Capabilities.KubeVersion",
    ] {
        let text = format!("kind: ConfigMap\ndata:\n  {{{{- {action} }}}}\n  a: b\n");
        let place = "line 3, column 3: this is a Helm template";
        assert!(read(&text).starts_with(place), "{}", read(&text));
    }
    let image = "kind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n  - image: \"{{ .Values.image }}:1\"\n";
    assert_eq!(
        read(image),
        "line 1: Pod default/p: \"{{ .Values.image }}:1\" is a Helm template: render it with \
         `helm template`"
    );
    for field in [
        "nodeSelector: {kubernetes.io/os: \"{{ .Values.os }}\"}",
        "runtimeClassName: \"{{ .Values.class }}\"",
        "os: {name: \"{{ .Values.os }}\"}",
    ] {
        let pod = format!("kind: Pod\nspec: {{{field}, containers: [{{image: a}}]}}\n");
        assert!(read(&pod).contains("is a Helm template"), "{}", read(&pod));
    }
    let other = read("kind: Pod\nspec:\n  containers:\n  - image: {{ .ServerCore }}\n");
    assert!(other.contains("{{ begins a template"), "{other}");
    // Argo's own parameters are unchanged, and a damaged text without any is reported as such.
    let argo = "kind: Pod\nspec: {containers: [{image: '{{inputs.parameters.image}}'}]}\n";
    WorkloadList::default().read(argo, "x").unwrap();
    assert!(!read("kind: [\n").contains("Helm"));
}

#[test]
fn a_field_of_the_wrong_type_is_named_with_its_path() {
    let text = "kind: CronJob\nmetadata: {name: c}\nspec: {jobTemplate: {spec: {template: {spec: \
                {containers: [{image: {repository: a}}]}}}}}\n";
    let error = WorkloadList::default().read(text, "x").unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1: CronJob c: spec.jobTemplate.spec.template.spec.containers[0].image: invalid type: \
         map, expected a string"
    );
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
fn a_custom_resource_may_have_fields_of_other_types() {
    let resource = "apiVersion: example.com/v1\nkind: App\nmetadata: {name: a}\nspec:\n  template:\n    \
                    spec: {terminationGracePeriodSeconds: '{{ seconds }}', containers: [{image: a}]}\n";
    assert_eq!(
        found(&format!("{resource}---\n{DEPLOYMENT}")),
        (
            vec![vec!["repo/setup:1".to_owned(), "repo/web:1.4".to_owned()]],
            vec!["App.example.com default/a (app.yaml, line 1)".to_owned()]
        )
    );
}

#[test]
fn an_object_of_a_cluster_is_no_template_of_helm() {
    let text = "kind: Pod\nmetadata: {name: p, uid: abc}\nspec: {containers: [{image: '{{ .Values.a }}'}]}\n";
    assert_eq!(found(text).0, [["{{ .Values.a }}"]]);
}
