//! Pods that land on no node where they start: nodes of another system, missing runtime classes and
//! host processes.

use super::*;

#[test]
fn a_pod_that_only_linux_takes_is_for_linux_where_its_images_are_for_both() {
    let mut request = request(&["20348.1"], &["20348.1", "20348.1"]);
    request.images[0].content = ImageContent::Index(vec![linux(), single("20348.1")]);
    request.images[1].content = Image::unasked("b:1".to_owned()).content;
    request.nodes.windows[0].taints = vec![Taint::of_windows()];
    request.nodes.others.push(linux_node());
    let counts = |image: &str, spec: &str| {
        let mut request = request.clone();
        set_workload(&mut request, "Pod", image, spec);
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
    let (rollout, _) = advise(request);
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
    request.nodes.windows[0].taints = vec![Taint::of_windows()];
    request.nodes.others.push(linux_node());
    let found = |image: &str, spec: &str| {
        let mut request = request.clone();
        set_workload(&mut request, "Deployment", image, spec);
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
        let selector = ", nodeSelector: {kubernetes.io/os: windows}";
        set_workload(&mut request, "Deployment", image, selector);
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
        set_workload(request, "Deployment", "i0", spec);
        let (rollout, plan) = advise(request);
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
fn a_workload_for_linux_with_an_image_for_windows_alone_starts_nowhere() {
    let mut request = one_node_of_each_system();
    let found = |request: &mut RolloutRequest, spec: &str| {
        set_workload(request, "Deployment", "i0", spec);
        let (rollout, plan) = advise(request);
        assert!(plan.actions.is_empty(), "{plan:?}");
        let starts = rollout.outcomes().next().map(|outcome| outcome.starts);
        let findings = rollout.checks().map(|check| check.finding);
        let findings = findings.map(|it| (it.rule, it.outcome, it.advice().unwrap_or_default()));
        (starts, findings.collect::<Vec<_>>())
    };
    let selects = ", nodeSelector: {kubernetes.io/os: linux}";
    let fix = "select nodes with Windows: nodeSelector: {kubernetes.io/os: windows}";
    let with_os = format!("{fix}, and set os.name of the pod to windows");
    let both = format!("{selects}, os: {{name: linux}}");
    for others in [true, false] {
        if !others {
            request.nodes.others.clear();
        }
        for (spec, fix) in [
            (selects, fix),
            (", os: {name: linux}", with_os.as_str()),
            (both.as_str(), with_os.as_str()),
        ] {
            let finding = (
                "no-host-selected",
                VerdictOutcome::Incompatible,
                fix.to_owned(),
            );
            let expected = (Some(StartStatus::Nowhere), vec![finding]);
            assert_eq!(found(&mut request, spec), expected, "{spec} {others}");
        }
    }
    for content in [
        ImageContent::Index(vec![linux(), single("20348.1")]),
        ImageContent::Single(linux()),
        Image::unasked("a:1".to_owned()).content,
    ] {
        request.images[0].content = content;
        assert_eq!(found(&mut request, selects), (None, Vec::new()));
    }
}

#[test]
fn a_runtime_class_for_docker_is_a_warning_on_containerd() {
    let rules = |runtime: &str, handler: &str, image: &str| {
        let mut request = request(&["20348.1"], &[image]);
        request.nodes.windows[0].runtime = ContainerRuntime::from_node(runtime);
        let fields = ", runtimeClassName: a, nodeSelector: {kubernetes.io/os: windows}";
        let class = format!("---\nkind: RuntimeClass\nmetadata: {{name: a}}\nhandler: {handler}\n");
        set_workloads(&mut request, &(object("Pod", "i0", fields) + &class));
        let (starts, rules, _) = noticed(&request);
        (starts, rules)
    };
    let warned = vec![("handler-unsupported", VerdictOutcome::Warning)];
    let containerd = "containerd://1.7.20";
    assert_eq!(
        rules(containerd, "docker", "20348.1"),
        (StartStatus::Warned, warned.clone())
    );
    assert_eq!(
        rules(containerd, "docker", "17763.1158"),
        (StartStatus::Nowhere, warned)
    );
    let good = (StartStatus::Everywhere, Vec::new());
    for (runtime, handler) in [
        (containerd, "runhcs-wcow-process"),
        ("docker://20.10.7", "docker"),
        ("", "docker"),
    ] {
        assert_eq!(
            rules(runtime, handler, "20348.1"),
            good,
            "{runtime} {handler}"
        );
    }
}

#[test]
fn a_list_of_windows_nodes_alone_does_not_say_where_other_pods_land() {
    let mut request = request(&["20348.1"], &["20348.1"]);
    request.nodes.windows[0].taints = vec![Taint::of_windows()];
    set_workload(&mut request, "Deployment", "i0", "");
    assert_eq!(noticed(&request).0, StartStatus::Unplaced);
    assert!(Rollout::new(&request).is_compatible(false));
}

#[test]
fn a_pod_that_names_a_node_without_windows_gets_no_selector() {
    let mut request = request(&["20348.1"], &["20348.1"]);
    request.nodes.others.push(linux_node());
    set_workload(&mut request, "Pod", "i0", ", nodeName: linux-a");
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
    set_workload(&mut request, "Deployment", "i0", "");
    assert_eq!(short_of(&request), ["pin p0 In 10.0.20348 10.0.26100"]);
}

#[test]
fn only_a_missing_runtime_class_is_reported() {
    let mut request = request(&["20348.1"], &["20348.1"]);
    request.nodes.others.push(linux_node());
    request.plain = 0;
    let found = |request: &mut RolloutRequest, class: &str| {
        let class = format!(
            "---\nkind: RuntimeClass\nmetadata: {{name: {class}}}\nhandler: runhcs-wcow-process\n\
             scheduling: {{tolerations: [{{key: os, value: Windows}}]}}\n"
        );
        let workload = object("Deployment", "i0", ", runtimeClassName: windows2022");
        set_workloads(request, &(workload + &class));
        let (rollout, _) = advise(request);
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
        let class = format!(
            "---\nkind: RuntimeClass\nmetadata: {{name: {class}}}\nhandler: runhcs-wcow-process\n"
        );
        let pod = object("Pod", "i0", ", runtimeClassName: foo-hyperv");
        set_workloads(&mut request, &(pod + &class));
        let (rollout, _) = advise(&request);
        let finding = rollout.placements[0].findings().next().unwrap();
        let asks = finding.fix.as_deref().unwrap_or_default();
        (finding.outcome, asks.contains("kubectl get runtimeclass"))
    };
    let containerd = "containerd://1.7.0";
    assert_eq!(judged(containerd, "bar", "17763.973"), (Unknown, true));
    assert_eq!(
        judged(containerd, "foo-hyperv", "17763.973"),
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
        judged("docker://20.10.7", "foo-hyperv", "17763.1158"),
        (Incompatible, false)
    );
}

#[test]
fn the_build_of_the_virtual_machine_decides_on_containerd() {
    use VerdictOutcome::{Compatible, Incompatible, Warning};

    let on_2022 = |image: &str| {
        let mut request = request(&["20348.2402"], &[image]);
        request.nodes.windows[0].runtime = ContainerRuntime::from_node("containerd://1.7.24");
        request
    };
    let judged = |handler: &str, image: &str| {
        let mut request = on_2022(image);
        let class =
            format!("---\nkind: RuntimeClass\nmetadata: {{name: hv}}\nhandler: {handler}\n");
        let fields = ", runtimeClassName: hv, nodeSelector: {kubernetes.io/os: windows}";
        set_workloads(&mut request, &(object("Deployment", "i0", fields) + &class));
        let (rollout, plan) = advise(&request);
        assert_eq!(plan.actions, []);
        let findings = rollout.checks().map(|check| check.finding);
        let findings = findings.map(|finding| (finding.rule, finding.outcome));
        findings.collect::<Vec<_>>()
    };
    let ok = ("hyperv-ok", Compatible);
    let handler = "runhcs-wcow-hypervisor";
    assert_eq!(judged(handler, "20348.1"), [ok]);
    assert_eq!(
        judged(handler, "17763.5820"),
        [ok, ("pause-image", Warning)]
    );
    let numbered = "runhcs-wcow-hypervisor-17763";
    assert_eq!(
        judged(numbered, "17763.5820"),
        [("build-match", Compatible)]
    );
    assert_eq!(
        judged(numbered, "20348.1"),
        [("build-mismatch", Incompatible)]
    );
    let rollout = Rollout::new(&on_2022("17763.5820"));
    let fix = rollout.checks().next().unwrap().finding.fix.clone();
    let fix = fix.unwrap_or_default();
    let end = "; or run it with Hyper-V isolation and a pause image of its build";
    assert!(fix.ends_with(end), "{fix}");
}

#[test]
fn an_unknown_runtime_class_may_select_the_nodes_where_an_image_starts() {
    let mut request = request(&["17763.1158", "20348.1"], &["20348.1"]);
    set_workload(&mut request, "Pod", "i0", ", runtimeClassName: foo");
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
        let fields = format!(", tolerations: [{{key: os, value: windows}}]{fields}");
        set_workload(&mut request, "Pod", "i0", &fields);
        let (rollout, plan) = advise(&request);
        let finding = rollout.placements[0].findings().next().unwrap();
        (plan.actions.len(), finding.fix.clone().unwrap_or_default())
    };
    assert_eq!(pinned("").0, 1);
    let (actions, fix) = pinned(", nodeSelector: {kubernetes.io/os: windows}");
    assert_eq!(actions, 0);
    assert!(fix.starts_with("name an image for Windows, or "), "{fix}");
    let host_process =
        ", hostNetwork: true, securityContext: {windowsOptions: {hostProcess: true}}";
    assert_eq!(pinned(host_process).0, 0);
}

#[test]
fn workloads_for_linux_that_a_windows_node_admits_are_one_warning() {
    let checked = |taint: Option<&str>, selector: &str| {
        let mut request = request(&["20348.1"], &["20348.1"]);
        request.images[0].content = ImageContent::Index(vec![linux()]);
        let taints = taint.map(|taint| serde_json::from_str(taint).unwrap());
        request.nodes.windows[0].taints = taints.into_iter().collect();
        let pod = object("Pod", "i0", &format!(", nodeSelector: {selector}"));
        let other = pod.replace("p0", "p1");
        set_workloads(&mut request, &format!("{pod}---\n{other}"));
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
        reason.contains("such as n0") && reason.ends_with("Pod default/p0, Pod default/p1"),
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
        let other = object("Pod", "i0", &format!(", tolerations: {tolerations}"));
        let other = other.replace("p0", "p1");
        set_workloads(request, &(object("Pod", "i0", "") + "---\n" + &other));
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
    let refused = (
        VerdictOutcome::Incompatible,
        "host process containers need Kubernetes 1.23 and containerd 1.6 or newer, and the node runs \
         an older one or Docker",
    );
    let gated = (
        VerdictOutcome::Unknown,
        "on Kubernetes 1.22 host process containers need the feature gate \
         WindowsHostProcessContainers",
    );
    for (runtime, kubelet, expected) in [
        ("docker://20.10.7", "", Some(refused)),
        ("containerd://1.5.7", "v1.30.0", Some(refused)),
        ("containerd://1.6.0", "v1.21.0", Some(refused)),
        ("containerd://1.6.0", "v1.22.0", Some(gated)),
        ("containerd://1.6.0", "v1.23.0", None),
        ("containerd://1.6.0", "", None),
    ] {
        // Of two nodes that differ in their kubelet alone, the other one runs them.
        let mut request = request(&["17763.1158"; 2], &["17763.1158"]);
        request.nodes.windows[0].runtime = ContainerRuntime::from_node(runtime);
        request.nodes.windows[0].kubelet = kubelet.to_owned();
        request.nodes.windows[1].kubelet = "v1.30.0".to_owned();
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
        assert_eq!(seen(findings[0].finding), expected, "{runtime} {kubelet}");
        assert_eq!(seen(findings[1].finding), None, "{runtime} {kubelet}");
    }
}

#[test]
fn no_tag_of_others_is_advised_for_host_process_containers() {
    let image = "mcr.microsoft.com/windows/nanoserver:1809";
    let fix = |runtime: ContainerRuntime, content: Variant, fields: &str| {
        let mut request = request(&["17763.1158"], &["17763.1158"]);
        request.images[0].reference = Some(image.to_owned());
        request.images[0].content = ImageContent::Single(content);
        request.nodes.windows[0].runtime = runtime;
        let text = format!(
            "kind: Pod\nmetadata: {{name: p0}}\nspec: {{hostNetwork: true, containers: [{{image: \
             '{image}'{fields}}}]}}\n"
        );
        set_workloads(&mut request, &text);
        let (rollout, _) = advise(&request);
        let finding = rollout.placements[0].findings().next().unwrap();
        assert_eq!(finding.rule, "host-process-unsupported");
        finding.fix.clone().unwrap()
    };
    let host_process = ", securityContext: {windowsOptions: {hostProcess: true}}";
    let moved = fix(ContainerRuntime::Docker, single("17763.1158"), host_process);
    let expected =
        "move the node to Kubernetes 1.23 and containerd 1.6 or newer, or keep these pods off it";
    assert_eq!(moved, expected);
    let without_windows = Variant {
        host_process: true,
        ..single("17763.1158")
    };
    let set = fix(ContainerRuntime::CONTAINERD, without_windows, "");
    assert!(set.starts_with("set hostNetwork and "), "{set}");
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
        let (rollout, plan) = advise(&request);
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
fn a_pod_whose_os_is_windows_has_no_fields_of_linux() {
    let check = |container: &str, fields: &str| {
        let mut request = request(&["17763.1158", "20348.1"], &["17763.1158"]);
        let text = format!(
            "kind: Pod\nmetadata: {{name: p0}}\nspec: {{containers: [{{image: \
             'repo.example/i0:1'{container}}}]{fields}}}\n"
        );
        set_workloads(&mut request, &text);
        let (rollout, plan) = advise(&request);
        let starts = rollout.outcomes().next().unwrap().starts;
        let finding = rollout.placements[0].findings().next().unwrap().clone();
        (starts, finding, plan.actions.len())
    };
    let os = ", os: {name: windows}";
    let of_pod = format!("{os}, securityContext: {{runAsUser: 0, fsGroup: 2000}}");
    let of_both = "securityContext.fsGroup, securityContext.runAsUser, \
                   containers[*].securityContext.privileged";
    let of_init = format!(
        "{os}, hostPID: true, initContainers: [{{image: 'repo.example/i0:1', securityContext: \
         {{capabilities: {{}}}}}}]"
    );
    for (container, fields, refused) in [
        (", securityContext: {privileged: false}", of_pod, of_both),
        (
            "",
            of_init,
            "hostPID, initContainers[*].securityContext.capabilities",
        ),
    ] {
        let (starts, finding, actions) = check(container, &fields);
        assert_eq!((starts, actions), (StartStatus::Nowhere, 0), "{fields}");
        assert_eq!(finding.rule, "forbidden-field");
        let reason = format!("the API server refuses the pod: os.name windows forbids {refused}");
        let fix = format!("remove from the pod's spec: {refused}");
        assert_eq!((finding.reason, finding.fix), (reason, Some(fix)));
    }
    let host_process = ", securityContext: {windowsOptions: {hostProcess: true}, runAsUser: 1}";
    let (_, finding, _) = check(host_process, os);
    assert_eq!(finding.rule, "host-process-unsupported");
    let ending = ", and os.name windows forbids containers[*].securityContext.runAsUser";
    assert!(finding.reason.ends_with(ending), "{}", finding.reason);
    let not_set = ", hostPID: false, hostUsers: null, securityContext: {runAsNonRoot: true, \
                   runAsUser: null, sysctls: [], windowsOptions: {runAsUserName: a}}";
    // Without os.name, Windows ignores such fields.
    let without_os = ", securityContext: {fsGroup: 2000}";
    for fields in [format!("{os}{not_set}"), without_os.to_owned()] {
        let (starts, ..) = check("", &fields);
        assert_ne!(starts, StartStatus::Nowhere, "{fields}");
    }
}

#[test]
fn a_user_of_linux_is_a_warning_where_the_kubelet_fails_to_give_it_the_token() {
    let selector = ", nodeSelector: {kubernetes.io/os: windows}";
    let rules = |kubelet: &str, fields: &str| {
        let mut request = request(&["17763.1158"], &["17763.1158"]);
        request.nodes.windows[0].kubelet = kubelet.to_owned();
        set_workload(&mut request, "Pod", "i0", &format!("{selector}{fields}"));
        let (starts, rules, _) = noticed(&request);
        (starts, rules)
    };
    let user = ", securityContext: {runAsUser: 0}";
    let warned = vec![("token-owner", VerdictOutcome::Warning)];
    let (old, fixed) = ("v1.29.12", "v1.29.13");
    assert_eq!(rules(old, user), (StartStatus::Warned, warned));
    let silent = (StartStatus::Everywhere, Vec::new());
    assert_eq!(rules(fixed, user), silent);
    for more in [
        ", automountServiceAccountToken: false",
        // Users that differ do not own the token.
        ", initContainers: [{image: 'repo.example/i0:1', securityContext: {runAsUser: 1}}]",
    ] {
        assert_eq!(rules(old, &format!("{user}{more}")), silent, "{more}");
    }
    assert_eq!(rules(old, ""), silent);
}

/// A workload without a selector, whose image is for Linux and for the build of n1, on nodes of both
/// systems.
fn for_both_systems(hosts: &[&str], kind: &str, spec: &str) -> RolloutRequest {
    let mut request = request(hosts, &[hosts[1]]);
    request.images[0].content = ImageContent::Index(vec![linux(), single(hosts[1])]);
    request.nodes.others.push(linux_node());
    set_workload(&mut request, kind, "i0", spec);
    request
}

#[test]
fn a_workload_for_both_systems_stays_on_linux_nodes() {
    let two = ["17763.1158", "20348.1"];
    let three = ["17763.1158", "20348.1", "26100.1"];
    for kind in ["DaemonSet", "Deployment", "StatefulSet"] {
        for (hosts, os, pin) in [
            (&two[..], "", "NotIn 10.0.17763"),
            (&three[..], "", "NotIn 10.0.17763"),
            (&two[..], ", os: {name: windows}", "to 10.0.20348"),
        ] {
            let request = for_both_systems(hosts, kind, os);
            assert_eq!(short_of(&request), [format!("pin p0 {pin}")], "{kind}");
        }
    }
}

#[test]
fn a_workload_for_both_systems_leaves_windows_where_no_label_keeps_it_off_a_node() {
    let unlabelled = |kind: &str| {
        let mut request = for_both_systems(&["17763.1158", "20348.1"], kind, "");
        let node = &mut request.nodes.windows[0];
        node.labels = [("kubernetes.io/os".to_owned(), "windows".to_owned())].into();
        short_of(&request)
    };
    assert_eq!(unlabelled("Deployment"), ["pin p0 to linux"]);
    // A daemon set would lose the other node.
    assert_eq!(unlabelled("DaemonSet"), ["build i0 for 17763.1158 20348.1"]);
}

#[test]
fn nodes_with_linux_count_among_those_that_remain() {
    let shortage = |lands_elsewhere: bool| {
        let mut request = for_both_systems(&["17763.1158", "20348.1"], "Deployment", "");
        request.nodes.windows[1].is_cordoned = true;
        if !lands_elsewhere {
            request.nodes.others.clear();
        }
        let plan = plan(&request);
        let PlanAction::Pin { shortage, .. } = &plan.actions[0] else {
            panic!("{plan:?}");
        };
        shortage.is_some()
    };
    assert!(shortage(false));
    assert!(!shortage(true));
}

#[test]
fn images_for_both_systems_need_no_selector_for_windows() {
    let mut request = request(&["20348.1"], &["20348.1"]);
    request.images[0].content = ImageContent::Index(vec![linux(), single("17763.1158")]);
    request.nodes.others.push(linux_node());
    request.plain = 0;
    let rules = |request: &mut RolloutRequest, spec: &str| {
        set_workload(request, "Deployment", "i0", spec);
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
