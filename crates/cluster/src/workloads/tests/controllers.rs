//! Kubernetes' own kinds that make pods, and what they own.

use wincimg_windows::compat::HostBuild;

use super::*;
use crate::nodes::Node;

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
fn a_job_that_is_to_complete_no_pod_is_inactive() {
    for (completions, inactive) in [("0", 1), ("1", 0), ("null", 0)] {
        let text = format!(
            "kind: Job\nmetadata: {{name: j}}\nspec: {{completions: {completions}, template: {{spec: \
             {{containers: [{{image: j}}]}}}}}}\n"
        );
        assert_eq!(listed(&text).remove_inactive(), inactive, "{text}");
    }
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
fn a_workload_has_at_least_the_replicas_that_its_autoscaler_keeps() {
    const HPA: &str = "autoscaling/v2\nkind: HorizontalPodAutoscaler";
    const KEDA: &str = "keda.sh/v1alpha1\nkind: ScaledObject";
    let deployment = |spec: &str| DEPLOYMENT.replace("spec:\n  t", &format!("spec:\n{spec}  t"));
    let own = "apiVersion: apps/v1, kind: Deployment, name: web";
    let other = "apiVersion: apps/v1, kind: StatefulSet, name: web";
    let two = "  replicas: 2\n";
    for (kind, least, target, spec, replicas) in [
        (HPA, "minReplicas: 3, ", own, "", 3),
        (HPA, "minReplicas: 3, ", own, two, 3),
        (HPA, "", own, two, 2),
        (HPA, "", own, "", 1),
        (HPA, "minReplicas: 3, ", other, two, 2),
        (KEDA, "minReplicaCount: 3, ", "name: web", "", 3),
        (
            KEDA, "minReplicaCount: 0, ", "name: web", "  replicas: 0\n", 1,
        ),
    ] {
        let autoscaler = format!(
            "---\napiVersion: {kind}\nmetadata: {{name: a, namespace: shop}}\nspec: \
             {{{least}scaleTargetRef: {{{target}}}}}\n---\n"
        );
        let deployment = deployment(spec);
        for text in [
            format!("{deployment}{autoscaler}"),
            format!("{autoscaler}{deployment}"),
        ] {
            let workloads = read(&text);
            assert_eq!(workloads.len(), 1, "{text}");
            assert_eq!(workloads[0].controller.replicas, replicas, "{text}");
        }
    }
    let paused = format!(
        "---\napiVersion: {KEDA}\nmetadata: {{name: a, namespace: shop, annotations: \
         {{autoscaling.keda.sh/paused: 'true'}}}}\nspec: {{minReplicaCount: 3, scaleTargetRef: \
         {{name: web}}}}\n"
    );
    assert_eq!(read(&(deployment("") + &paused))[0].controller.replicas, 1);
}

#[test]
fn as_many_autoscalers_as_workloads_are_read_in_time() {
    let pair = |number: usize| {
        format!(
            r#"{{"kind":"Deployment","metadata":{{"name":"d{number}"}}}}
            {{"apiVersion":"keda.sh/v1alpha1","kind":"ScaledObject","metadata":{{"name":"s{number}"}},
            "spec":{{"scaleTargetRef":{{"name":"d{number}"}}}}}}"#
        )
    };
    let pairs: Vec<String> = (0..20_000).map(pair).collect();
    let started = std::time::Instant::now();
    // In one file, and in a file each.
    for texts in [&[pairs.concat()][..], &pairs[..]] {
        let mut list = WorkloadList::default();
        for text in texts {
            list.read(text, "app.yaml").unwrap();
        }
        list.apply_references();
        assert_eq!((list.workloads.len(), list.skipped.len()), (20_000, 0));
    }
    // Comparing each with each takes minutes.
    assert!(started.elapsed() < std::time::Duration::from_mins(1));
}
