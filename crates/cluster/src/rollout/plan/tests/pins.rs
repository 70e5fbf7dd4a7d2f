//! Workloads that are pinned to nodes, and those that cannot be.

use super::*;
use crate::pod::PullPolicy;

#[test]
fn a_workload_stays_where_it_starts() {
    let hosts = ["17763.1158", "20348.1", "20348.2402", "17763.5696"];
    let pinned = |kind| restricted(&hosts, &["20348.1"], &[(kind, vec![0], 0b0111)]);
    assert_eq!(
        short_of(&pinned("Deployment")),
        ["pin p0 to 10.0.20348"],
        "the image is not built again"
    );
    for kind in ["Pod", "Job", "ReplicaSet"] {
        assert_eq!(short_of(&pinned(kind)), ["pin p0 to 10.0.20348"], "{kind}");
    }
    assert_eq!(
        short_of(&pinned("CloneSet")),
        ["build i0 for 17763.1158 20348.1"],
        "the fields of this kind are unknown"
    );
    let plan = plan(&pinned("CronJob"));
    let PlanAction::Pin { hosts, .. } = &plan.actions[0] else {
        panic!("{plan:?}");
    };
    assert_eq!(hosts, &[1, 2]);
    assert_eq!(
        plan.actions[0].commands(),
        ["kubectl patch cronjob p0 --type merge --patch \
             '{\"spec\":{\"jobTemplate\":{\"spec\":{\"template\":{\"spec\":{\"nodeSelector\":\
             {\"node.kubernetes.io/windows-build\":\"10.0.20348\"}}}}}}}'"]
    );
}

#[test]
fn a_workload_stays_on_all_builds_where_it_starts() {
    let pinned = |hosts: &[&str], image: &str| {
        short_of(&restricted(
            hosts,
            &[image],
            &[("Deployment", vec![0], 0b111)],
        ))
    };
    assert_eq!(
        pinned(&["17763.1158", "20348.2402", "26100.2314"], "20348.2402"),
        ["pin p0 NotIn 10.0.17763"]
    );
    let hosts = [
        "14393.1", "17763.1", "18363.1", "20348.1", "20348.1", "26100.1",
    ];
    let landing = [("Deployment", vec![0], 0b11_1111)];
    let request = restricted(&hosts, &["20348.2402"], &landing);
    assert_eq!(short_of(&request), ["pin p0 In 10.0.20348 10.0.26100"]);
    let plan = plan(&request);
    let rollout = Rollout::new(&request);
    assert_eq!(
        plan.actions[0].title(&rollout),
        "keep Deployment default/p0 on nodes whose label node.kubernetes.io/windows-build is \
         10.0.20348 or 10.0.26100 (keeps 3 of 6 nodes)"
    );
    // A merge replaces the list, so each term of the patch repeats the existing affinity.
    assert!(plan.actions[0].commands()[0].contains(
        "\"nodeSelectorTerms\":[{\"matchExpressions\":[{\"key\":\"node.kubernetes.io/windows-build\",\
         \"operator\":\"In\",\"values\":[\"10.0.20348\",\"10.0.26100\"]}],\"matchFields\":"
    ), "{:?}", plan.actions[0].commands());
    // Images of 26100 are reported to fail on 26200.
    assert_eq!(
        pinned(&["20348.2402", "26100.2314", "26200.6584"], "26100.2314"),
        ["pin p0 to 10.0.26100"]
    );
}

#[test]
fn pods_and_jobs_are_recreated() {
    let commands = |kind| {
        let landings = [(kind, vec![0], 0b11)];
        let mut request = restricted(&["17763.1158", "20348.1"], &["20348.1"], &landings);
        request.flags.kubectl = vec!["--context".to_owned(), "my cluster".to_owned()];
        let mut rollout = Rollout::new(&request);
        let plan = rollout.advise(&request, &TagsByRepository::new());
        let fix = rollout.checks().next().unwrap().finding.fix.clone();
        assert_eq!(
            fix.as_deref(),
            Some(
                "delete it and recreate it on nodes with the label \
                 node.kubernetes.io/windows-build=10.0.20348 (keeps 1 of 2 nodes)"
            )
        );
        plan.actions[0].commands()
    };
    let selector = "\"nodeSelector\":{\"node.kubernetes.io/windows-build\":\"10.0.20348\"}";
    assert_eq!(
        commands("Pod"),
        [
            format!(
                "kubectl get pod p0 --context 'my cluster' --output json | \
                 kubectl patch --local --filename - --type merge --patch \
                 '{{\"spec\":{{{selector},\"nodeName\":null,\
                 \"ephemeralContainers\":null}}}}' --output json > pod-p0.json"
            ),
            "kubectl replace --force --filename pod-p0.json --context 'my cluster'".to_owned(),
        ]
    );
    let of_job = format!(
        "'{{\"spec\":{{\"template\":{{\"spec\":{{{selector}}},\"metadata\":{{\"labels\":\
         {{\"controller-uid\":null,\"batch.kubernetes.io/controller-uid\":null}}}}}},\
         \"selector\":null}}}}' --output json > job-p0.json"
    );
    let job = commands("Job");
    assert!(job[0].ends_with(&of_job), "{}\n{of_job}", job[0]);
}

#[test]
fn a_custom_resource_gets_no_command_for_its_namesake_of_kubernetes() {
    let spec = "template: {spec: {os: {name: windows}, containers: [{name: c, image: \
                'repo.example/i0:1'}]}}";
    for (kind, group, spec) in [
        ("Job", "batch.volcano.sh", format!("tasks: [{{{spec}}}]")),
        ("StatefulSet", "apps.kruise.io", spec.to_owned()),
        ("DaemonSet", "apps.kruise.io", spec.to_owned()),
    ] {
        let text = format!(
            "apiVersion: {group}/v1beta1\nkind: {kind}\nmetadata: {{name: p0}}\nspec: {{{spec}}}\n"
        );
        let mut request = request(&["17763.1158", "20348.1"], &["20348.1"]);
        request.today = Some("2026-11-24".parse().unwrap());
        set_workloads(&mut request, &text);
        let mut rollout = Rollout::new(&request);
        let plan = rollout.advise(&request, &TagsByRepository::new());
        let [PlanAction::Rebuild { .. }] = &plan.actions[..] else {
            panic!("{plan:?}");
        };
        let steps = plan.actions[0].steps();
        let by_hand =
            format!("set the image repo.example/i0:1-20261124 in {kind}.{group} default/p0");
        assert_eq!(
            steps.last(),
            Some(&ActionStep::Manual(by_hand)),
            "{steps:?}"
        );
        let mut commands = rollout.checks().flat_map(|check| &check.finding.commands);
        let of_kubectl = commands.find(|command| command.contains("kubectl"));
        assert_eq!(of_kubectl, None);
    }
    let old = format!(
        "apiVersion: extensions/v1beta1\nkind: Deployment\nmetadata: {{name: p0}}\nspec: {{{spec}}}\n"
    );
    let mut request = request(&["17763.1158", "20348.1"], &["20348.1"]);
    set_workloads(&mut request, &old);
    let commands = plan(&request).actions[0].commands();
    assert!(
        commands[0].starts_with("kubectl patch deployment p0 "),
        "{commands:?}"
    );
}

#[test]
fn a_live_job_whose_pods_do_not_start_is_deleted_after_its_cron_job_is_changed() {
    let spec = "{template: {spec: {os: {name: windows}, containers: [{name: c, image: \
                'repo.example/i0:1'}]}}}";
    let cron_job = format!(
        "kind: CronJob\nmetadata: {{name: seed, namespace: shop}}\nspec: {{jobTemplate: {{spec: \
         {spec}}}}}\n"
    );
    let job = format!(
        "---\nkind: Job\nmetadata: {{name: seed-1, namespace: shop, ownerReferences: [{{apiVersion: \
         batch/v1, kind: CronJob, name: seed, controller: true}}]}}\nspec: {spec}\n"
    );
    let pod = |node: &str| {
        let pod = owned("Pod", "seed-1-x", "kind: Job, name: seed-1", "");
        format!(
            "---\n{}",
            pod.replace("spec: {", &format!("spec: {{nodeName: {node}, "))
        )
    };
    let delete = "kubectl delete job seed-1 --namespace shop --ignore-not-found";
    let ended = job.clone() + "status: {completionTime: now}\n";
    let other = job.replace("i0:1", "i1:1");
    // n0 runs none of the pods.
    let both = ["17763.1158", "20348.1"];
    for (hosts, made, is_deleted) in [
        (&both[..], job.clone() + &pod("n0"), true),
        (&both[..], job.clone() + &pod("n1"), false),
        (&both[..], job.clone(), false),
        (&both[..], other + &pod("n0"), false),
        (&both[..], ended, false),
        (&both[..1], job.clone(), true),
        (&both[..1], String::new(), false),
    ] {
        let mut request = request(hosts, &["20348.1", "20348.1"]);
        request.today = Some("2026-11-24".parse().unwrap());
        set_workloads(&mut request, &(cron_job.clone() + &made));
        let steps = plan(&request).actions[0].steps();
        let place = steps
            .iter()
            .position(|step| *step == ActionStep::Command(delete.to_owned()));
        let expected = is_deleted.then(|| steps.len() - 1);
        assert_eq!(place, expected, "{made} {steps:?}");
    }
}

#[test]
fn a_job_keeps_a_selector_that_is_the_users() {
    let mut request = request(&["17763.1158", "20348.1"], &["20348.1"]);
    let text = "kind: Job\nmetadata: {name: p0}\nspec: {manualSelector: true, selector: \
                {matchLabels: {job: p0}}, template: {metadata: {labels: {job: p0}}, spec: {os: \
                {name: windows}, containers: [{image: repo.example/i0:1}]}}}\n";
    set_workloads(&mut request, text);
    let commands = plan(&request).actions[0].commands();
    assert!(
        commands[0].ends_with(
            "--patch '{\"spec\":{\"template\":{\"spec\":{\"nodeSelector\":\
             {\"node.kubernetes.io/windows-build\":\"10.0.20348\"}}}}}' --output json > job-p0.json"
        ),
        "{commands:?}"
    );
}

/// An object that another one owns, with labels.
fn owned(kind: &str, name: &str, owner: &str, labels: &str) -> String {
    let spec = "os: {name: windows}, containers: [{name: c0, image: repo.example/i0:1}]";
    let spec = match kind {
        "Pod" => spec.to_owned(),
        _ => format!("template: {{spec: {{{spec}}}}}"),
    };
    format!(
        "kind: {kind}\nmetadata:\n  name: {name}\n  namespace: shop\n  labels: {{{labels}}}\n  \
         ownerReferences: [{{{owner}, controller: true}}]\nspec: {{{spec}}}\n"
    )
}

/// Objects by kind, name, owner and labels, each with the owner of its template and the arguments of
/// `kubectl get` for that.
const OWNED: [(&str, &str, &str, &str, &str, &str); 6] = {
    const HASH: &str = "pod-template-hash: 5d4f8";
    const SET: &str = "kind: ReplicaSet, name: web-5d4f8";
    const WEB: &str = "kind: Deployment, name: web";
    [
        (
            "Pod", "a", SET, HASH, "Deployment shop/web", "deployment web",
        ),
        (
            "ReplicaSet", "web-5d4f8", WEB, HASH, "Deployment shop/web", "deployment web",
        ),
        (
            "Pod",
            "a",
            SET,
            "",
            "ReplicaSet shop/web-5d4f8 or the object that owns it",
            "replicaset web-5d4f8",
        ),
        (
            "Job",
            "seed-1",
            "kind: CronJob, name: seed",
            "",
            "CronJob shop/seed",
            "cronjob seed",
        ),
        (
            "Pod",
            "a",
            "kind: Job, name: seed-1",
            "",
            "Job shop/seed-1 or the object that owns it",
            "job seed-1",
        ),
        (
            "Pod",
            "a",
            "kind: DaemonSet, name: logs",
            "",
            "DaemonSet shop/logs",
            "daemonset logs",
        ),
    ]
};

#[test]
fn what_another_object_owns_gets_no_command_but_the_name_of_its_owner() {
    for (kind, name, owner, labels, template_owner, object) in OWNED {
        let mut request = request(&["17763.1158", "20348.1"], &["20348.1"]);
        set_workloads(&mut request, &owned(kind, name, owner, labels));
        request.flags.kubectl = vec!["--context".to_owned(), "test".to_owned()];
        let mut rollout = Rollout::new(&request);
        let plan = rollout.advise(&request, &TagsByRepository::new());
        let step = format!(
            "change {template_owner}, which is not in the input: for a command, pass it to \
             --workloads too: kubectl get {object} --namespace shop --context test --output yaml"
        );
        assert_eq!(
            plan.actions[0].steps(),
            [ActionStep::Manual(step.clone())],
            "{kind} of {owner}"
        );
        assert_eq!(plan.then.incompatible, 0);
        let finding = rollout.checks().next().unwrap().finding;
        assert_eq!(
            finding.fix,
            Some(format!(
                "keep its pods on nodes with the label node.kubernetes.io/windows-build=10.0.20348 \
                 (keeps 1 of 2 nodes); {step}"
            ))
        );
        assert!(finding.commands.is_empty(), "{finding:?}");
    }
}

#[test]
fn an_owner_that_the_cluster_was_not_asked_for_is_changed_by_hand() {
    let mut request = request(&["17763.1158", "20348.1"], &["20348.1"]);
    let object = owned("Pod", "a", "kind: DaemonSet, name: logs", "");
    set_workloads(&mut request, &object);
    request.flags.is_live = true;
    let step = "change DaemonSet shop/logs, which is not among the workloads that were read: \
                change it by hand";
    let steps = plan(&request).actions[0].steps();
    assert_eq!(steps, [ActionStep::Manual(step.to_owned())]);
}

#[test]
fn what_another_object_owns_is_restarted_by_hand() {
    let mut request = request(&["18363.900"], &["17763.1158"]);
    let object = owned("Pod", "a", "kind: DaemonSet, name: logs", "");
    set_workloads(&mut request, &object);
    request.workloads[0].template.containers[0].pull_policy = PullPolicy::Always;
    let steps = plan(&request).actions[0].steps();
    let step = "restart DaemonSet shop/logs, which is not in the input: for a command, pass it to \
                --workloads too: kubectl get daemonset logs --namespace shop --output yaml";
    assert_eq!(steps[1..], [ActionStep::Manual(step.to_owned())]);
}

#[test]
fn the_selector_of_what_another_object_owns_is_added_by_hand() {
    let mut request = request(&["20348.1"], &["20348.1"]);
    let object = owned("Pod", "a", "kind: StatefulSet, name: db", "");
    set_workloads(&mut request, &object.replace("os: {name: windows}, ", ""));
    let mut rollout = Rollout::new(&request);
    rollout.advise(&request, &TagsByRepository::new());
    let finding = &rollout.notices[0].finding;
    assert_eq!(finding.rule, "no-windows-selector");
    assert!(finding.commands.is_empty(), "{finding:?}");
    let fix = finding.fix.as_deref().unwrap();
    assert!(fix.contains("; change StatefulSet shop/db, which"), "{fix}");
}

#[test]
fn a_workload_is_not_pinned_where_its_image_is_built_again_anyway() {
    let landings = [
        ("Deployment", vec![0], 0b11),
        ("Deployment", vec![1], 0b11),
        ("CloneSet", vec![1], 0b01),
    ];
    assert_eq!(
        short_of(&restricted(
            &["17763.1158", "20348.1"],
            &["20348.1", "20348.2"],
            &landings
        )),
        ["pin p0 to 10.0.20348", "build i1 for 17763.1158 20348.1"]
    );
}

#[test]
fn a_warning_of_pods_that_land_anywhere_comes_with_the_patch() {
    let mut request = request(&["20348.1"], &["20348.1"]);
    let text = "kind: Deployment\nmetadata: {name: p0}\nspec: {template: {spec: {containers: \
                [{image: repo.example/i0:1}]}}}\n";
    set_workloads(&mut request, text);
    request.flags.kubectl = vec!["--context".to_owned(), "production".to_owned()];
    let mut rollout = Rollout::new(&request);
    assert!(
        rollout
            .advise(&request, &TagsByRepository::new())
            .actions
            .is_empty()
    );
    assert_eq!(rollout.notices[0].finding.rule, "no-windows-selector");
    assert_eq!(
        rollout.notices[0].finding.commands,
        [
            "kubectl patch deployment p0 --context production --type merge \
             --patch '{\"spec\":{\"template\":{\"spec\":{\"nodeSelector\":\
             {\"kubernetes.io/os\":\"windows\"}}}}}'"
        ]
    );
}

#[test]
fn the_selector_that_is_advised_is_a_label_that_the_nodes_have() {
    let mut request = request(&["17763.1158"], &["17763.1158"]);
    // Label of Kubernetes before 1.14.
    let old = ("beta.kubernetes.io/os".to_owned(), "windows".to_owned());
    request.nodes.windows[0].labels = [old].into();
    let text = "kind: Deployment\nmetadata: {name: p0}\nspec: {template: {spec: {containers: \
                [{image: repo.example/i0:1}]}}}\n";
    set_workloads(&mut request, text);
    let mut rollout = Rollout::new(&request);
    rollout.advise(&request, &TagsByRepository::new());
    let advice = rollout.notices[0].finding.advice().unwrap();
    assert!(
        advice.contains("nodeSelector: {beta.kubernetes.io/os: windows}")
            && advice.contains(r#"{"nodeSelector":{"beta.kubernetes.io/os":"windows"}}"#),
        "{advice}"
    );
}

#[test]
fn a_pod_that_only_linux_takes_is_for_linux_where_its_images_are_for_both() {
    let mut request = request(&["20348.1"], &["20348.1", "20348.1"]);
    request.images[0].content = ImageContent::Index(vec![linux(), single("20348.1")]);
    request.images[1].content = Image::unasked("b:1".to_owned()).content;
    let taint = r#"{"key":"os","value":"windows","effect":"NoSchedule"}"#;
    request.nodes.windows[0].taints = vec![serde_json::from_str(taint).unwrap()];
    request.nodes.others.push(linux_node());
    let counts = |image: &str, spec: &str| {
        let mut request = request.clone();
        let spec = format!("{{containers: [{{image: repo.example/{image}:1}}]{spec}}}");
        set_workloads(
            &mut request,
            &format!("kind: Pod\nmetadata: {{name: p0}}\nspec: {spec}"),
        );
        let rollout = Rollout::new(&request);
        let decided = (rollout.workloads.len(), rollout.other_workloads);
        (decided, rollout.undecided.len())
    };
    let tolerates = ", tolerations: [{operator: Exists}]";
    assert_eq!(counts("i0", ""), ((0, 1), 0));
    assert_eq!(counts("i0", tolerates), ((1, 0), 0));
    // A static pod with an unreadable image.
    assert_eq!(counts("i1", ", nodeName: linux-a"), ((0, 1), 0));
    assert_eq!(counts("i1", ", nodeName: n0"), ((1, 0), 0));
    assert_eq!(counts("i1", ""), ((0, 0), 1));
}

/// The first workload's outcome, the rule and outcome of each notice, and the advice of the first.
fn noticed(request: &RolloutRequest) -> (StartStatus, Vec<(&'static str, VerdictOutcome)>, String) {
    let mut rollout = Rollout::new(request);
    rollout.advise(request, &TagsByRepository::new());
    let starts = rollout.outcomes().next().unwrap().starts;
    let findings = rollout.notices.iter().map(|notice| &notice.finding);
    let rules = findings.map(|it| (it.rule, it.outcome)).collect();
    let first = rollout.notices.first().map(|notice| &notice.finding);
    let said = first.map(|it| format!("{}; {:?}; {:?}", it.reason, it.fix, it.commands));
    (starts, rules, said.unwrap_or_default())
}

#[test]
fn a_workload_that_only_nodes_without_windows_take_starts_nowhere() {
    use VerdictOutcome::{Incompatible, Warning};

    let mut request = request(&["20348.1"], &["20348.1", "20348.1"]);
    request.images[1].content = ImageContent::Index(vec![linux(), single("20348.1")]);
    let taint = r#"{"key":"os","value":"windows","effect":"NoSchedule"}"#;
    request.nodes.windows[0].taints = vec![serde_json::from_str(taint).unwrap()];
    request.nodes.others.push(linux_node());
    let found = |image: &str, spec: &str| {
        let mut request = request.clone();
        let text = format!(
            "kind: Deployment\nmetadata: {{name: p0}}\nspec: {{template: {{spec: {{containers: \
             [{{image: repo.example/{image}:1}}]{spec}}}}}}}\n"
        );
        set_workloads(&mut request, &text);
        let is_compatible = Rollout::new(&request).is_compatible(false);
        (noticed(&request), is_compatible)
    };
    let refused = vec![("no-host-selected", Incompatible)];
    for (image, spec) in [("i0", ""), ("i1", ", os: {name: windows}")] {
        let ((starts, rules, said), is_compatible) = found(image, spec);
        assert_eq!((starts, rules), (StartStatus::Nowhere, refused.clone()));
        assert!(!is_compatible);
        for words in [
            "such as linux-a, where they do not start",
            "os=windows:NoSchedule",
            "add tolerations",
            "and add nodeSelector: {kubernetes.io/os: windows}\"); []",
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
    // Its pods stay pending.
    let ((starts, rules, _), is_compatible) =
        found("i0", ", nodeSelector: {kubernetes.io/os: windows}");
    let pending = vec![("no-host-selected", Warning)];
    assert_eq!((starts, rules), (StartStatus::Unplaced, pending));
    assert!(is_compatible);
    // They may land on Windows.
    let ((starts, rules, _), is_compatible) = found("i0", ", tolerations: [{operator: Exists}]");
    let astray = vec![("no-windows-selector", Warning)];
    assert_eq!((starts, rules), (StartStatus::Warned, astray));
    assert!(is_compatible);
}

#[test]
fn the_taints_to_tolerate_are_those_of_a_node_where_it_starts() {
    let mut request = request(&["17763.1158", "20348.1"], &["20348.1", "17763.1158"]);
    let taint = |json: &str| serde_json::from_str(json).unwrap();
    request.nodes.windows[0].taints =
        vec![taint(r#"{"key":"gpu","value":"y","effect":"NoSchedule"}"#)];
    request.nodes.windows[1].taints = vec![
        taint(r#"{"key":"spot","effect":"PreferNoSchedule"}"#),
        taint(r#"{"key":"os","value":"windows","effect":"NoSchedule"}"#),
    ];
    for (image, node, taints) in [
        ("i0", "n1", "os=windows:NoSchedule"),
        ("i1", "n0", "gpu=y:NoSchedule"),
    ] {
        let text = format!(
            "kind: Deployment\nmetadata: {{name: p0}}\nspec: {{template: {{spec: {{containers: \
             [{{image: repo.example/{image}:1}}], nodeSelector: {{kubernetes.io/os: windows}}}}}}}}\n"
        );
        set_workloads(&mut request, &text);
        let (starts, _, said) = noticed(&request);
        assert_eq!(starts, StartStatus::Unplaced);
        let words = format!("such as {node}, have taints that it does not tolerate: {taints}; ");
        assert!(said.contains(&words), "{said}");
    }
}

/// A Windows node with the label `pool=one`, and a Linux node.
fn one_node_of_each_system() -> RolloutRequest {
    let mut request = request(&["20348.1"], &["20348.1"]);
    let node = &mut request.nodes.windows[0];
    node.labels_are_complete = true;
    node.labels.insert("pool".to_owned(), "one".to_owned());
    request.nodes.others.push(Node {
        labels_are_complete: true,
        ..linux_node()
    });
    request
}

#[test]
fn a_workload_for_linux_that_only_windows_nodes_take_starts_nowhere() {
    let mut request = one_node_of_each_system();
    request.images[0].content = ImageContent::Single(linux());
    let found = |request: &mut RolloutRequest, spec: &str| {
        let text = format!(
            "kind: Deployment\nmetadata: {{name: p0}}\nspec: {{template: {{spec: {{containers: \
             [{{image: repo.example/i0:1}}]{spec}}}}}}}\n"
        );
        set_workloads(request, &text);
        let mut rollout = Rollout::new(request);
        let plan = rollout.advise(request, &TagsByRepository::new());
        assert!(plan.actions.is_empty(), "{plan:?}");
        let starts = rollout.outcomes().next().map(|outcome| outcome.starts);
        let rules: Vec<&str> = rollout.checks().map(|check| check.finding.rule).collect();
        (starts, rules)
    };
    let selects = ", nodeSelector: {pool: one}";
    let nowhere = (Some(StartStatus::Nowhere), vec!["not-windows"]);
    assert_eq!(found(&mut request, selects), nowhere);
    let astray = (None, vec!["no-linux-selector"]);
    assert_eq!(found(&mut request, ""), astray);
    // A runtime class that is not in the input may select other nodes.
    let with_class = format!("{selects}, runtimeClassName: kata");
    assert_eq!(found(&mut request, &with_class), astray);
    // Nodes like the tainted ones may be added, or have a scheduler of their own.
    let taint = r#"{"key":"a","effect":"NoSchedule"}"#;
    request.nodes.others[0].taints = vec![serde_json::from_str(taint).unwrap()];
    assert_eq!(found(&mut request, ""), astray);
    // A list of Windows nodes alone lacks the others.
    request.nodes.others.clear();
    assert_eq!(found(&mut request, selects), astray);
}

#[test]
fn a_pod_with_the_os_linux_needs_a_selector_too() {
    let mut request = one_node_of_each_system();
    // Its image is not asked for.
    let found = |request: &mut RolloutRequest, spec: &str| {
        let text = format!(
            "kind: Pod\nmetadata: {{name: p0}}\nspec: {{os: {{name: linux}}, containers: \
             [{{image: a:1}}]{spec}}}\n"
        );
        set_workloads(request, &text);
        let rollout = Rollout::new(request);
        let starts = rollout.outcomes().next().map(|outcome| outcome.starts);
        let findings = rollout.checks().map(|check| check.finding);
        let findings = findings.map(|it| (it.rule, it.outcome, it.reason.clone()));
        (starts, findings.collect::<Vec<_>>())
    };
    let (starts, findings) = found(&mut request, "");
    let [("no-linux-selector", VerdictOutcome::Warning, reason)] = &findings[..] else {
        panic!("{findings:?}");
    };
    assert_eq!(starts, None);
    assert!(
        reason.contains("such as n0") && reason.ends_with(": Pod default/p0"),
        "{reason}"
    );
    let with_selector = found(&mut request, ", nodeSelector: {kubernetes.io/os: linux}");
    assert_eq!(with_selector, (None, Vec::new()));
    for landing in [", nodeSelector: {pool: one}", ", nodeName: n0"] {
        let (starts, findings) = found(&mut request, landing);
        let [("no-host-selected", VerdictOutcome::Incompatible, reason)] = &findings[..] else {
            panic!("{landing}: {findings:?}");
        };
        assert_eq!(starts, Some(StartStatus::Nowhere), "{landing}");
        assert!(
            reason.contains("such as n0, whose kubelet refuses"),
            "{reason}"
        );
    }
    assert_eq!(
        found(&mut request, ", nodeName: linux-a"),
        (None, Vec::new())
    );
    // A list of Windows nodes alone lacks the others.
    request.nodes.others.clear();
    let (starts, findings) = found(&mut request, ", nodeSelector: {pool: one}");
    assert_eq!((starts, findings[0].0), (None, "no-linux-selector"));
}

#[test]
fn a_list_of_windows_nodes_alone_does_not_say_where_other_pods_land() {
    let mut request = request(&["20348.1"], &["20348.1"]);
    let taint = r#"{"key":"os","value":"windows","effect":"NoSchedule"}"#;
    request.nodes.windows[0].taints = vec![serde_json::from_str(taint).unwrap()];
    let text = "kind: Deployment\nmetadata: {name: p0}\nspec: {template: {spec: {containers: \
                [{image: repo.example/i0:1}]}}}\n";
    set_workloads(&mut request, text);
    assert_eq!(noticed(&request).0, StartStatus::Unplaced);
    assert!(Rollout::new(&request).is_compatible(false));
}

#[test]
fn a_pod_that_names_a_node_without_windows_gets_no_selector() {
    let mut request = request(&["20348.1"], &["20348.1"]);
    request.nodes.others.push(linux_node());
    let text = "kind: Pod\nmetadata: {name: p0}\nspec: {nodeName: linux-a, containers: \
                [{image: repo.example/i0:1}]}\n";
    set_workloads(&mut request, text);
    let rollout = Rollout::new(&request);
    let rules: Vec<_> = rollout
        .notices
        .iter()
        .map(|notice| notice.finding.rule)
        .collect();
    assert_eq!(rules, ["no-host-selected"]);
}

#[test]
fn a_pin_leads_no_pod_to_a_node_without_windows() {
    let mut request = request(&["17763.1158", "20348.2402", "26100.2314"], &["20348.2402"]);
    request.nodes.others.push(linux_node());
    request.plain = 0;
    let text = "kind: Deployment\nmetadata: {name: p0}\nspec: {template: {spec: {containers: \
                [{image: repo.example/i0:1}]}}}\n";
    set_workloads(&mut request, text);
    assert_eq!(short_of(&request), ["pin p0 In 10.0.20348 10.0.26100"]);
}

#[test]
fn only_a_missing_runtime_class_is_reported() {
    let mut request = request(&["20348.1"], &["20348.1"]);
    request.nodes.others.push(linux_node());
    request.plain = 0;
    let found = |request: &mut RolloutRequest, class: &str| {
        let text = format!(
            "kind: Deployment\nmetadata: {{name: p0}}\nspec: {{template: {{spec: {{containers: \
             [{{image: repo.example/i0:1}}], runtimeClassName: windows2022}}}}}}\n---\n\
             kind: RuntimeClass\nmetadata: {{name: {class}}}\nhandler: runhcs-wcow-process\n\
             scheduling: {{tolerations: [{{key: os, value: Windows}}]}}\n"
        );
        set_workloads(request, &text);
        let mut rollout = Rollout::new(request);
        rollout.advise(request, &TagsByRepository::new());
        let starts = rollout.outcomes().next().unwrap().starts;
        let notices = rollout.notices.iter();
        let notices: Vec<_> = notices
            .map(|notice| {
                let finding = &notice.finding;
                let names_class = finding
                    .reason
                    .contains("class windows2022 is not in the input");
                (finding.rule, names_class, finding.commands.len())
            })
            .collect();
        (starts, notices)
    };
    assert_eq!(
        found(&mut request, "another"),
        (StartStatus::Warned, vec![("no-windows-selector", true, 0)])
    );
    let taint = r#"{"key":"os","value":"Windows","effect":"NoSchedule"}"#;
    request.nodes.windows[0].taints = vec![serde_json::from_str(taint).unwrap()];
    assert_eq!(
        found(&mut request, "another"),
        (StartStatus::Unknown, vec![("no-host-selected", true, 0)])
    );
    assert_eq!(
        found(&mut request, "windows2022"),
        (StartStatus::Warned, vec![("no-windows-selector", false, 1)])
    );
}

#[test]
fn an_image_that_an_unknown_runtime_class_may_isolate_is_not_judged() {
    use VerdictOutcome::{Compatible, Incompatible, Unknown};

    let judged = |runtime: &str, class: &str, image: &str| {
        let mut request = request(&["17763.1158"], &[image]);
        request.nodes.windows[0].runtime = ContainerRuntime::from_node(runtime);
        let text = format!(
            "kind: Pod\nmetadata: {{name: p0}}\nspec: {{runtimeClassName: foo, containers: \
             [{{image: 'repo.example/i0:1'}}]}}\n---\nkind: RuntimeClass\nmetadata: {{name: \
             {class}}}\nhandler: runhcs-wcow-process\n"
        );
        set_workloads(&mut request, &text);
        let mut rollout = Rollout::new(&request);
        rollout.advise(&request, &TagsByRepository::new());
        let finding = rollout.placements[0].findings().next().unwrap();
        let asks = finding.fix.as_deref().unwrap_or_default();
        (finding.outcome, asks.contains("kubectl get runtimeclass"))
    };
    let containerd = "containerd://1.7.0";
    assert_eq!(judged(containerd, "bar", "17763.973"), (Unknown, true));
    assert_eq!(
        judged(containerd, "foo", "17763.973"),
        (Incompatible, false)
    );
    // In either isolation it starts, or does not.
    assert_eq!(judged(containerd, "bar", "17763.1158"), (Compatible, false));
    assert_eq!(judged(containerd, "bar", "20348.1"), (Incompatible, false));
    assert_eq!(
        judged("docker://20.10.7", "bar", "17763.973"),
        (Incompatible, false)
    );
    // Docker starts nothing with a handler of containerd's.
    assert_eq!(
        judged("docker://20.10.7", "foo", "17763.1158"),
        (Incompatible, false)
    );
}

#[test]
fn an_unknown_runtime_class_may_select_the_nodes_where_an_image_starts() {
    let mut request = request(&["17763.1158", "20348.1"], &["20348.1"]);
    let text = "kind: Pod\nmetadata: {name: p0}\nspec: {runtimeClassName: foo, containers: \
                [{image: 'repo.example/i0:1'}]}\n";
    set_workloads(&mut request, text);
    let rollout = Rollout::new(&request);
    let outcomes: Vec<_> = rollout.placements[0]
        .findings()
        .map(|it| it.outcome)
        .collect();
    assert_eq!(
        outcomes,
        [VerdictOutcome::Unknown, VerdictOutcome::Compatible]
    );
}

#[test]
fn what_has_to_run_windows_is_not_pinned_to_linux_for_its_image() {
    let pinned = |fields: &str| {
        let mut request = request(&["20348.1"], &["20348.1"]);
        request.images[0].content = ImageContent::Single(linux());
        request.nodes.others.push(linux_node());
        let text = format!(
            "kind: Pod\nmetadata: {{name: p0}}\nspec: {{tolerations: [{{key: os, value: windows}}], \
             {fields} containers: [{{image: 'repo.example/i0:1'}}]}}\n"
        );
        set_workloads(&mut request, &text);
        let mut rollout = Rollout::new(&request);
        let plan = rollout.advise(&request, &TagsByRepository::new());
        let finding = rollout.placements[0].findings().next().unwrap();
        (plan.actions.len(), finding.fix.clone().unwrap_or_default())
    };
    assert_eq!(pinned("").0, 1);
    let (actions, fix) = pinned("nodeSelector: {kubernetes.io/os: windows},");
    assert_eq!(actions, 0);
    assert!(fix.starts_with("name an image for Windows, or "), "{fix}");
    let host_process = "hostNetwork: true, securityContext: {windowsOptions: {hostProcess: true}},";
    assert_eq!(pinned(host_process).0, 0);
}

#[test]
fn workloads_for_linux_that_a_windows_node_admits_are_one_warning() {
    let checked = |taint: Option<&str>, selector: &str| {
        let mut request = request(&["20348.1"], &["20348.1"]);
        request.images[0].content = ImageContent::Index(vec![linux()]);
        let taints = taint.map(|taint| serde_json::from_str(taint).unwrap());
        request.nodes.windows[0].taints = taints.into_iter().collect();
        let pod = |name: &str| {
            format!(
                "kind: Pod\nmetadata: {{name: {name}}}\nspec: {{nodeSelector: {selector}, \
                 containers: [{{image: 'repo.example/i0:1'}}]}}\n---\n"
            )
        };
        set_workloads(&mut request, &(pod("a") + &pod("b")));
        let rollout = Rollout::new(&request);
        assert!(rollout.is_compatible(false));
        let said = rollout.notices.iter().map(|notice| &notice.finding);
        let said: Vec<_> = said.map(|it| (it.rule, it.reason.clone())).collect();
        (rollout.is_compatible(true), said)
    };
    let (is_clean, said) = checked(None, "{}");
    assert!(!is_clean);
    let [("no-linux-selector", reason)] = &said[..] else {
        panic!("{said:?}");
    };
    assert!(
        reason.contains("such as n0") && reason.ends_with("Pod default/a, Pod default/b"),
        "{reason}"
    );
    let taint = r#"{"key":"os","value":"windows","effect":"NoSchedule"}"#;
    assert_eq!(checked(Some(taint), "{}"), (true, Vec::new()));
    let selector = "{kubernetes.io/os: linux}";
    assert_eq!(checked(None, selector), (true, Vec::new()));
}

#[test]
fn no_taint_is_advised_that_workloads_for_linux_tolerate() {
    let mut request = request(&["20348.1"], &["20348.1"]);
    request.images[0].content = ImageContent::Index(vec![linux()]);
    let advised = |request: &mut RolloutRequest, tolerations: &str| {
        let pod = |name: &str, tolerations: &str| {
            format!(
                "kind: Pod\nmetadata: {{name: {name}}}\nspec: {{tolerations: {tolerations}, \
                 containers: [{{image: 'repo.example/i0:1'}}]}}\n---\n"
            )
        };
        set_workloads(request, &(pod("a", "[]") + &pod("b", tolerations)));
        let rollout = Rollout::new(request);
        let finding = &rollout.notices[0].finding;
        assert_eq!(finding.rule, "no-linux-selector");
        finding.fix.clone().unwrap()
    };
    let select = "add to their pods' specs: nodeSelector: {kubernetes.io/os: linux}";
    let taint = format!(
        "{select}, or taint the Windows nodes, whose own pods must then tolerate that: kubectl taint \
         nodes --selector kubernetes.io/os=windows os=windows:NoSchedule"
    );
    assert_eq!(advised(&mut request, "[]"), taint);
    assert_eq!(
        advised(
            &mut request,
            "[{key: os, operator: Exists, effect: NoExecute}]"
        ),
        taint
    );
    assert_eq!(advised(&mut request, "[{operator: Exists}]"), select);
    assert_eq!(
        advised(&mut request, "[{key: os, operator: Exists}]"),
        select
    );
}

#[test]
fn host_process_containers_need_a_kubelet_and_a_containerd_that_run_them() {
    let refused = "host process containers need Kubernetes 1.23 and containerd 1.6 or newer, and \
                   the node runs an older one or Docker";
    let gated = "on Kubernetes 1.22 host process containers need the feature gate \
                 WindowsHostProcessContainers";
    for (runtime, kubelet, expected) in [
        (
            "docker://20.10.7",
            None,
            Some((VerdictOutcome::Incompatible, refused)),
        ),
        (
            "containerd://1.5.7",
            Some(30),
            Some((VerdictOutcome::Incompatible, refused)),
        ),
        (
            "containerd://1.6.0",
            Some(21),
            Some((VerdictOutcome::Incompatible, refused)),
        ),
        (
            "containerd://1.6.0",
            Some(22),
            Some((VerdictOutcome::Unknown, gated)),
        ),
        ("containerd://1.6.0", Some(23), None),
        ("containerd://1.6.0", None, None),
    ] {
        // Of two nodes that differ in their kubelet alone, the other one runs them.
        let mut request = request(&["17763.1158"; 2], &["17763.1158"]);
        request.nodes.windows[0].runtime = ContainerRuntime::from_node(runtime);
        request.nodes.windows[0].kubelet = kubelet;
        request.nodes.windows[1].kubelet = Some(30);
        let text = "kind: Pod\nmetadata: {name: p0}\nspec: {hostNetwork: true, containers: [{image: \
                    'repo.example/i0:1', securityContext: {windowsOptions: {hostProcess: true}}}]}\n";
        set_workloads(&mut request, text);
        let rollout = Rollout::new(&request);
        let findings: Vec<_> = rollout.checks().filter(|it| it.host.is_some()).collect();
        let seen = |finding: &Finding| {
            (finding.rule == "host-process-unsupported")
                .then(|| (finding.outcome, finding.reason.clone()))
        };
        let expected = expected.map(|(outcome, reason)| (outcome, reason.to_owned()));
        assert_eq!(seen(findings[0].finding), expected, "{runtime} {kubelet:?}");
        assert_eq!(seen(findings[1].finding), None, "{runtime} {kubelet:?}");
    }
}

#[test]
fn a_pod_that_the_api_server_refuses_for_its_host_process_starts_nowhere() {
    let host_process = "securityContext: {windowsOptions: {hostProcess: true}}";
    // Another image would not help, whoever builds it.
    let check = |image: &str, kind: &str, more: &str| {
        let mut request = request(&["17763.1158", "20348.1"], &["17763.1158"]);
        request.images[0].reference = Some(image.to_owned());
        let more = more.replace("IMAGE", image);
        let spec = format!(
            "{{nodeSelector: {{kubernetes.io/os: windows}}, containers: [{{name: a, image: \
             '{image}'{more}}}"
        );
        let text = match kind {
            "Pod" => format!("kind: Pod\nmetadata: {{name: p0}}\nspec: {spec}\n"),
            _ => format!(
                "apiVersion: acme.example/v1\nkind: {kind}\nmetadata: {{name: p0}}\nspec: \
                 {{template: {{spec: {spec}}}}}\n"
            ),
        };
        set_workloads(&mut request, &text);
        let mut rollout = Rollout::new(&request);
        let plan = rollout.advise(&request, &TagsByRepository::new());
        let starts = rollout.outcomes().next().unwrap().starts;
        let finding = rollout.placements[0].findings().next().unwrap().clone();
        (starts, finding, plan.actions.len())
    };
    let network = "HostProcess containers need hostNetwork: true";
    let beside = "the container b beside them is not one";
    let b = "{name: b, image: IMAGE}";
    let set_network = "set hostNetwork: true in the pod's spec";
    let one_kind = "make all containers of the pod HostProcess containers, or move the others to \
                    another pod";
    let alone = format!(", {host_process}}}]");
    for (more, reasons, fix) in [
        (alone.clone(), network.to_owned(), set_network.to_owned()),
        (
            format!(", {host_process}}}, {b}], hostNetwork: true"),
            beside.to_owned(),
            one_kind.to_owned(),
        ),
        (
            format!(", {host_process}}}, {b}], hostNetwork: false"),
            format!("{network}, and {beside}"),
            format!("{set_network}, and {one_kind}"),
        ),
    ] {
        for image in ["repo.example/i0:1", "docker.io/acme/i0:1"] {
            let (starts, finding, actions) = check(image, "Pod", &more);
            assert_eq!((starts, actions), (StartStatus::Nowhere, 0), "{more}");
            assert_eq!(finding.rule, "host-process-unsupported");
            let reason = format!("the API server refuses the pod: {reasons}");
            assert_eq!((finding.reason, finding.fix), (reason, Some(fix.clone())));
        }
    }
    for (kind, more) in [
        ("Pod", format!("{alone}, hostNetwork: true")),
        ("Pod", format!("}}], hostNetwork: true, {host_process}")),
        // A template is filled in later.
        ("Pod", format!("{alone}, hostNetwork: '${{NETWORK}}'")),
        // Its operator may add the field.
        ("Agent", alone),
    ] {
        let (starts, ..) = check("repo.example/i0:1", kind, &more);
        assert_ne!(starts, StartStatus::Nowhere, "{kind} {more}");
    }
}

#[test]
fn a_daemon_set_for_both_systems_stays_on_linux_nodes() {
    let mut request = request(&["17763.1158", "20348.1"], &["20348.1"]);
    request.images[0].content = ImageContent::Index(vec![linux(), single("20348.1")]);
    request.nodes.others.push(linux_node());
    for (os, pin) in [
        ("", "NotIn 10.0.17763"),
        ("os: {name: windows}, ", "to 10.0.20348"),
    ] {
        let text = format!(
            "kind: DaemonSet\nmetadata: {{name: p0}}\nspec: {{template: {{spec: {{{os}containers: \
             [{{image: repo.example/i0:1}}]}}}}}}\n"
        );
        set_workloads(&mut request, &text);
        assert_eq!(short_of(&request), [format!("pin p0 {pin}")]);
    }
}

#[test]
fn images_for_both_systems_need_no_selector_for_windows() {
    let mut request = request(&["20348.1"], &["20348.1"]);
    request.images[0].content = ImageContent::Index(vec![linux(), single("17763.1158")]);
    request.nodes.others.push(linux_node());
    request.plain = 0;
    let rules = |request: &mut RolloutRequest, spec: &str| {
        let text = format!(
            "kind: Deployment\nmetadata: {{name: p0}}\nspec: {{template: {{spec: {{containers: \
             [{{image: repo.example/i0:1}}]{spec}}}}}}}\n"
        );
        set_workloads(request, &text);
        let rollout = Rollout::new(request);
        let notices = rollout.notices.iter();
        notices
            .map(|notice| notice.finding.rule)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        rules(&mut request, ", os: {name: windows}"),
        ["no-windows-selector"]
    );
    assert!(rules(&mut request, "").is_empty());
    assert_eq!(short_of(&request), ["pin p0 to linux"]);
}
