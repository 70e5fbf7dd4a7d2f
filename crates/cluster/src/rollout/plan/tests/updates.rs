//! How a changed template reaches the pods, and the nodes that they find.

use super::*;

/// A workload on the Windows nodes, with further fields of its spec, and its image `i0`.
fn workload(kind: &str, fields: &str) -> String {
    format!(
        "kind: {kind}\nmetadata: {{name: p0, namespace: shop}}\nspec: {{selector: {{matchLabels: \
         {{app: web}}}}, template: {{metadata: {{labels: {{app: web}}}}, spec: {{os: {{name: \
         windows}}, containers: [{{name: c, image: 'repo.example/i0:1'}}]}}}}{fields}}}\n"
    )
}

/// The steps of each action for a workload: commands begin with `$`.
fn steps_for(hosts: &[&str], image: &str, text: &str) -> Vec<Vec<String>> {
    let mut request = request(hosts, &[image]);
    request.today = Some("2026-11-24".parse().unwrap());
    set_workloads(&mut request, text);
    let plan = plan(&request);
    assert_eq!(plan.then.incompatible, 0, "{plan:?}");
    plan.actions.iter().map(steps_of).collect()
}

const DELETE: &str = "delete the pods of StatefulSet shop/p0 one after the other: they are \
                      replaced only then (OnDelete)";
const ON_DELETE: &str = ", updateStrategy: {type: OnDelete}";

#[test]
fn pods_that_are_replaced_once_deleted_are_deleted_one_by_one_after_the_change() {
    let set = workload("StatefulSet", ON_DELETE);
    let steps = steps_for(&["18363.900"], "17763.1158", &set);
    assert_eq!(steps[0].last().map(String::as_str), Some(DELETE));
    // A pin spares those that start where they are.
    let steps = steps_for(&["18363.900", "17763.1158"], "17763.1158", &set);
    let failing = "delete the pods of StatefulSet shop/p0 that do not start, if any: they are \
                   replaced only then (OnDelete)";
    assert_eq!(steps[0].last().map(String::as_str), Some(failing));
    // A rolling update needs nothing.
    let rolling = steps_for(&["18363.900"], "17763.1158", &workload("DaemonSet", ""));
    let last = rolling[0].last().unwrap();
    assert!(last.starts_with("$ kubectl set image"), "{last}");
}

#[test]
fn an_object_with_several_manifests_is_changed_once() {
    let text = workload("Deployment", "");
    let steps = |text: &str| steps_for(&["18363.900"], "17763.1158", text);
    assert_eq!(steps(&format!("{text}---\n{text}")), steps(&text));
}

#[test]
fn an_image_that_is_always_pulled_needs_no_restart_of_deleted_pods() {
    let set = workload("StatefulSet", ON_DELETE)
        .replace("{name: c,", "{name: c, imagePullPolicy: Always,");
    let steps = steps_for(&["18363.900"], "17763.1158", &set);
    assert_eq!(steps[0].len(), 2, "{steps:?}");
    assert_eq!(steps[0][1], DELETE);
}

#[test]
fn the_pods_of_a_daemon_set_are_deleted_after_their_node_is_patched() {
    let set = workload("DaemonSet", ON_DELETE);
    let hosts = ["17763.973", "17763.973", "17763.1158"];
    let steps = steps_for(&hosts, "17763.973", &set);
    assert_eq!(steps.len(), 2, "{steps:?}");
    let now = "delete the pods of DaemonSet shop/p0 one after the other, except on the nodes that \
               are patched later: they are replaced only then (OnDelete)";
    assert_eq!(steps[0].last().map(String::as_str), Some(now));
    let on = |node: &str| {
        let delete = "delete the pod of DaemonSet shop/p0 on";
        format!("{delete} {node}: it is replaced only then (OnDelete)")
    };
    let uncordon = |node: &str| format!("$ kubectl uncordon {node}");
    assert_eq!(steps[1][3..5], [uncordon("n0"), on("n0")]);
    assert_eq!(steps[1][7..], [uncordon("n1"), on("n1")]);
    // One of many nodes stands for all.
    let hosts = [&["17763.973"; 5][..], &["17763.1158"]].concat();
    let steps = steps_for(&hosts, "17763.973", &set);
    let repeat = "repeat the last 4 steps for each of the other 4 nodes".to_owned();
    assert_eq!(steps[1][4..], [on("n0"), repeat]);
    // Its running pods keep the old image until then.
    let mut request = request(&["17763.973", "17763.1158"], &["17763.973"]);
    let rolling = workload("DaemonSet", "");
    for (text, count) in [(&set, 0), (&rolling, 1)] {
        set_workloads(&mut request, text);
        assert_eq!(plan(&request).interruptions.len(), count, "{text}");
    }
    // Without a patch, after the image is set.
    let steps = steps_for(&["18363.900"], "17763.1158", &set);
    let all = DELETE.replace("StatefulSet", "DaemonSet");
    assert_eq!(steps[0].last(), Some(&all));
    // The controller itself leaves nodes.
    let steps = steps_for(&["20348.1", "17763.1158"], "17763.1158", &set);
    assert_eq!((steps.len(), steps[0].len()), (1, 1), "{steps:?}");
}

#[test]
fn a_partition_and_pods_that_do_not_start_hold_up_a_stateful_set() {
    let steps = |fields: &str| {
        let text = workload("StatefulSet", fields);
        let steps = steps_for(&["20348.1", "17763.1158"], "17763.1158", &text);
        steps[0][1..].to_vec()
    };
    let by_hand = "delete the pods of StatefulSet shop/p0 that do not start, if any: its \
                   controller waits for them (OrderedReady)";
    assert_eq!(steps(""), [by_hand]);
    let partition = ", updateStrategy: {type: RollingUpdate, rollingUpdate: {partition: 2}}";
    let to_0 = "set the partition of StatefulSet shop/p0 from 2 to 0, because pods below it keep \
                the old template: kubectl patch statefulset/p0 --type merge --patch \
                '{\"spec\":{\"updateStrategy\":{\"rollingUpdate\":{\"partition\":0}}}}' \
                --namespace shop";
    assert_eq!(steps(partition), [to_0, by_hand]);
    let parallel = ", podManagementPolicy: Parallel";
    assert_eq!(steps(parallel), [""; 0]);
    // A finding has the command after its fix.
    let mut request = request(&["20348.1", "17763.1158"], &["17763.1158"]);
    set_workloads(&mut request, &workload("StatefulSet", ""));
    let (rollout, _) = advise(&request);
    let mut fixes = rollout
        .checks()
        .filter_map(|check| check.finding.fix.as_deref());
    let fix = fixes.next().unwrap();
    let expected = format!("; after the command, {by_hand}");
    assert!(fix.ends_with(&expected), "{fix}");
}

#[test]
fn the_command_for_a_workload_comes_before_steps_by_hand_for_others() {
    let mut request = request(&["20348.1"], &["17763.1158"]);
    request.today = Some("2026-11-24".parse().unwrap());
    let set = workload("StatefulSet", "").replace("p0", "p1");
    set_workloads(&mut request, &format!("{}---\n{set}", workload("Job", "")));
    let (rollout, _) = advise(&request);
    let set_image =
        "kubectl set image statefulset/p1 c=repo.example/i0:1-20261124 --namespace shop";
    for check in rollout.checks().filter(|check| check.host.is_some()) {
        let commands = &check.finding.commands;
        assert_eq!(commands.last().map(String::as_str), Some(set_image));
    }
}

#[test]
fn a_paused_deployment_is_resumed_by_hand() {
    let resume = "resume Deployment shop/p0, which is paused and rolls out no change: kubectl \
                  rollout resume deployment/p0 --namespace shop";
    let paused = workload("Deployment", ", paused: true");
    let steps = steps_for(&["20348.1", "17763.1158"], "17763.1158", &paused);
    assert_eq!(steps[0][1..], [resume]);
    let always = paused.replace("{name: c,", "{name: c, imagePullPolicy: Always,");
    let steps = steps_for(&["18363.900"], "17763.1158", &always);
    let restart = "$ kubectl rollout restart deployment/p0 --namespace shop";
    assert_eq!(steps[0][1..], [resume, restart], "it refuses before");
}

#[test]
fn a_pin_says_if_its_nodes_do_not_take_all_pods() {
    let hosts = ["20348.1", "17763.1158", "17763.1158"];
    let title = |fields: &str, change: &dyn Fn(&mut Node)| {
        let mut request = request(&hosts, &["17763.1158"]);
        set_workloads(&mut request, &workload("Deployment", fields));
        request.nodes.windows[1..].iter_mut().for_each(change);
        let plan = plan(&request);
        plan.actions[0].title(&Rollout::new(&request))
    };
    let unreachable = |node: &mut Node| {
        let taint = r#"{"key": "node.kubernetes.io/unreachable", "effect": "NoSchedule"}"#;
        node.taints.push(serde_json::from_str(taint).unwrap());
    };
    let full = "(keeps 2 of 3 nodes; no new pods go to n1, n2 while cordoned or not ready)";
    for change in [
        &(|node: &mut Node| node.is_cordoned = true) as &dyn Fn(&mut Node),
        &unreachable,
    ] {
        let title = title("", change);
        assert!(title.ends_with(full), "{title}");
    }
    let open = title("", &|_| {});
    assert!(open.ends_with("(keeps 2 of 3 nodes)"), "{open}");
}

#[test]
fn a_pin_says_if_pods_that_keep_apart_find_too_few_nodes() {
    let title = |replicas: usize, fields: &str| {
        let mut request = request(&["20348.1", "17763.1158", "17763.1158"], &["17763.1158"]);
        for (node, zone) in request.nodes.windows.iter_mut().zip(["a", "b", "b"]) {
            node.labels.insert("zone".to_owned(), zone.to_owned());
        }
        let text = workload("Deployment", &format!(", replicas: {replicas}"));
        let text = text.replace("containers", &format!("{fields}, containers"));
        set_workloads(&mut request, &text);
        let plan = plan(&request);
        plan.actions[0].title(&Rollout::new(&request))
    };
    let affinity = |kind: &str, key: &str, app: &str| {
        format!(
            "affinity: {{{kind}: {{requiredDuringSchedulingIgnoredDuringExecution: [{{topologyKey: \
             {key}, labelSelector: {{matchLabels: {{app: {app}}}}}}}]}}}}"
        )
    };
    let apart = |key: &str| affinity("podAntiAffinity", key, "web");
    let spread = |more: &str| {
        format!(
            "topologySpreadConstraints: [{{topologyKey: zone, whenUnsatisfiable: DoNotSchedule, \
             maxSkew: 1{more}}}]"
        )
    };
    let host = "kubernetes.io/hostname";
    for (replicas, fields, end) in [
        (3, apart(host), "; 3 replicas need 3 nodes; 2 remain)"),
        (2, apart(host), ")"),
        (
            2,
            apart("zone"),
            "; 2 replicas need 2 values of zone; 1 remain)",
        ),
        (2, apart("rack"), ")"),
        (2, spread(""), ")"),
        (
            2,
            spread(", minDomains: 2"),
            "; its spread constraints may leave pods pending)",
        ),
        (
            2,
            spread(", nodeAffinityPolicy: Ignore"),
            "; its spread constraints may leave pods pending)",
        ),
        (
            1,
            affinity("podAffinity", host, "api"),
            "; its pod affinity may leave pods pending)",
        ),
        (2, affinity("podAffinity", host, "web"), ")"),
    ] {
        let title = title(replicas, &fields);
        let end = format!("(keeps 2 of 3 nodes{end}");
        assert!(title.ends_with(&end), "{title}");
    }
}

#[test]
fn a_new_tag_is_valid_and_free() {
    let tag = |old: &str, existing: &[&str]| {
        let name = format!("repo.example/i0:{old}");
        let mut request = request(&["18363.900"], &["17763.1158"]);
        let text = workload("Deployment", "").replace("repo.example/i0:1", &name);
        set_workloads(&mut request, &text);
        request.images[0].reference = Some(name.clone());
        request.today = Some("2026-11-24".parse().unwrap());
        let existing = existing.iter().map(|tag| (*tag).to_owned()).collect();
        let tags = TagsByRepository::from([(name, existing)]);
        let plan = ActionPlan::new(&request, &Rollout::new(&request), &tags);
        match &plan.actions[..] {
            [PlanAction::Rebuild { new_tag, .. }] => new_tag.clone().unwrap(),
            actions => panic!("{actions:?}"),
        }
    };
    assert_eq!(tag("1", &[]), "1-20261124");
    assert_eq!(tag("10.0.17763.1158", &[]), "20261124");
    assert_eq!(tag("1-10.0.17763.1158", &[]), "1-20261124");
    assert_eq!(tag("1", &["1", "1-20261124"]), "1-20261124-2");
    let taken = ["1-20261124", "1-20261124-2", "1-20261124-4"];
    assert_eq!(tag("1", &taken), "1-20261124-3");
    let long = tag(&"a".repeat(128), &[]);
    assert_eq!(long, format!("{}-20261124", "a".repeat(119)));
    let next = tag(&"a".repeat(128), &[long.as_str()]);
    assert_eq!(next, format!("{}-20261124-2", "a".repeat(117)));
}

#[test]
fn two_images_of_one_repository_get_different_tags() {
    let mut request = request(&["18363.900"], &["17763.1158", "17763.973"]);
    request.today = Some("2026-11-24".parse().unwrap());
    let digests = ["1", "2"].map(|digit| format!("repo.example/i@sha256:{}", digit.repeat(64)));
    let mut text = String::new();
    for (image, digest) in request.images.iter_mut().zip(&digests) {
        image.reference = Some(digest.clone());
        text += "---\n";
        text += &workload("Deployment", "").replace("repo.example/i0:1", digest);
    }
    set_workloads(&mut request, &text);
    let plan = plan(&request);
    let tags = plan.actions.iter().map(|action| match action {
        PlanAction::Rebuild { new_tag, .. } => new_tag.clone().unwrap(),
        other => panic!("{other:?}"),
    });
    let tags: Vec<String> = tags.collect();
    assert_eq!(tags, ["20261124", "20261124-2"]);
}

#[test]
fn what_is_reported_to_fail_after_a_plan_is_not_promised() {
    let mut request = request(&["26200.7019", "26100.1742"], &["17763.5830"]);
    for node in &mut request.nodes.windows {
        node.runtime = ContainerRuntime::from_node("containerd://2.2.0");
    }
    set_workloads(&mut request, &workload("Deployment", ""));
    let planned = plan(&request);
    assert_eq!(planned.then.incompatible, 0, "{planned:?}");
    assert_eq!(planned.reported_broken, [0]);
    let after = planned.capacity[0][0].after;
    assert_eq!(after, NodeCounts { starts: 1, of: 2 });
    // Images of 20348 are not reported to fail there.
    request.nodes.windows[0].runtime = ContainerRuntime::from_node("containerd://2.4.0");
    request.nodes.windows.pop();
    let planned = plan(&request);
    assert_eq!(planned.then.incompatible, 0, "{planned:?}");
    assert_eq!(planned.reported_broken, [0_usize; 0]);
}
