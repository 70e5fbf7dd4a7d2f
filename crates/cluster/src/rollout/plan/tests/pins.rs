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
        let (rollout, plan) = advise(&request);
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
        let (rollout, plan) = advise(&request);
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
        let pod = owned("Pod", "seed-1-x", "Job seed-1", "");
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
        let plan = plan(&request);
        let steps = plan.actions[0].steps();
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

/// An object that another one owns, such as `Job seed`, with labels.
fn owned(kind: &str, name: &str, owner: &str, labels: &str) -> String {
    let (owner_kind, owner_name) = owner.split_once(' ').unwrap();
    let spec = "os: {name: windows}, containers: [{name: c0, image: repo.example/i0:1}]";
    let spec = match kind {
        "Pod" => spec.to_owned(),
        _ => format!("template: {{spec: {{{spec}}}}}"),
    };
    format!(
        "kind: {kind}\nmetadata:\n  name: {name}\n  namespace: shop\n  labels: {{{labels}}}\n  \
         ownerReferences: [{{kind: {owner_kind}, name: {owner_name}, controller: true}}]\nspec: \
         {{{spec}}}\n"
    )
}

/// Objects by kind, name, owner and labels, each with the owner of its template and the arguments of
/// `kubectl get` for that.
const OWNED: &str = "\
Pod | a | ReplicaSet web-5d4f8 | pod-template-hash: 5d4f8 | Deployment shop/web | deployment web
ReplicaSet | web-5d4f8 | Deployment web | pod-template-hash: 5d4f8 | Deployment shop/web | deployment web
Pod | a | ReplicaSet web-5d4f8 | | ReplicaSet shop/web-5d4f8 or the object that owns it | replicaset web-5d4f8
Job | seed-1 | CronJob seed | | CronJob shop/seed | cronjob seed
Pod | a | Job seed-1 | | Job shop/seed-1 or the object that owns it | job seed-1
Pod | a | DaemonSet logs | | DaemonSet shop/logs | daemonset logs
";

#[test]
fn what_another_object_owns_gets_no_command_but_the_name_of_its_owner() {
    for row in OWNED.lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [kind, name, owner, labels, template_owner, object] = cells[..] else {
            panic!("{row}");
        };
        let mut request = request(&["17763.1158", "20348.1"], &["20348.1"]);
        set_workloads(&mut request, &owned(kind, name, owner, labels));
        request.flags.kubectl = vec!["--context".to_owned(), "test".to_owned()];
        let (rollout, plan) = advise(&request);
        let step = format!(
            "change {template_owner}, which is not in the input: for a command, pass it to \
             --workloads too: kubectl get {object} --namespace shop --context test --output yaml"
        );
        assert_eq!(
            plan.actions[0].steps(),
            [ActionStep::Manual(step.clone())],
            "{row}"
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
    set_workloads(&mut request, &owned("Pod", "a", "DaemonSet logs", ""));
    request.flags.is_live = true;
    let step = "change DaemonSet shop/logs, which is not among the workloads that were read: \
                change it by hand";
    let plan = plan(&request);
    let steps = plan.actions[0].steps();
    assert_eq!(steps, [ActionStep::Manual(step.to_owned())]);
}

#[test]
fn what_another_object_owns_is_restarted_by_hand() {
    let mut request = request(&["18363.900"], &["17763.1158"]);
    set_workloads(&mut request, &owned("Pod", "a", "DaemonSet logs", ""));
    request.workloads[0].template.containers[0].pull_policy = PullPolicy::Always;
    let plan = plan(&request);
    let steps = plan.actions[0].steps();
    let step = "restart DaemonSet shop/logs, which is not in the input: for a command, pass it to \
                --workloads too: kubectl get daemonset logs --namespace shop --output yaml";
    assert_eq!(steps[1..], [ActionStep::Manual(step.to_owned())]);
}

#[test]
fn the_selector_of_what_another_object_owns_is_added_by_hand() {
    let mut request = request(&["20348.1"], &["20348.1"]);
    let object = owned("Pod", "a", "StatefulSet db", "");
    set_workloads(&mut request, &object.replace("os: {name: windows}, ", ""));
    let (rollout, _) = advise(&request);
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
    set_workload(&mut request, "Deployment", "i0", "");
    request.flags.kubectl = vec!["--context".to_owned(), "production".to_owned()];
    let (rollout, plan) = advise(&request);
    assert_eq!(plan.actions, []);
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
    set_workload(&mut request, "Deployment", "i0", "");
    let (rollout, _) = advise(&request);
    let advice = rollout.notices[0].finding.advice().unwrap();
    assert!(
        advice.contains("nodeSelector: {beta.kubernetes.io/os: windows}")
            && advice.contains(r#"{"nodeSelector":{"beta.kubernetes.io/os":"windows"}}"#),
        "{advice}"
    );
}
