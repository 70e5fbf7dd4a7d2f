//! Pods that land on no node where they start, and workloads for another system.

use super::*;

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
fn a_label_that_no_node_has_is_set_by_a_command() {
    let mut request = request(&["20348.1"], &["20348.1"]);
    request.nodes.windows[0].labels_are_complete = true;
    for (labels, fix) in [
        (
            "pool: gpu",
            "or label nodes: `kubectl label node NODE pool=gpu`",
        ),
        (
            "pool: gpu, tier: a",
            "or label nodes with kubectl label node",
        ),
        // Kubernetes accepts no such value.
        ("pool: c d", "or label nodes with kubectl label node"),
        ("pool: -gpu", "or label nodes with kubectl label node"),
    ] {
        let selector = format!(", nodeSelector: {{kubernetes.io/os: windows, {labels}}}");
        set_workload(&mut request, "Deployment", "i0", &selector);
        let (_, _, said) = noticed(&request);
        assert!(said.contains(fix), "{said}");
        assert!(!said.contains("--overwrite"), "{said}");
    }
    let labels = &mut request.nodes.windows[0].labels;
    labels.insert("pool".to_owned(), "cpu".to_owned());
    let selector = ", nodeSelector: {kubernetes.io/os: windows, pool: gpu}";
    set_workload(&mut request, "Deployment", "i0", selector);
    let (_, _, said) = noticed(&request);
    assert!(said.contains("NODE pool=gpu --overwrite`"), "{said}");
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
fn an_image_for_linux_beside_one_for_windows_alone_is_not_moved_to_linux() {
    let mut request = request(&["20348.1"], &["20348.1", "20348.1"]);
    request.images[1].content = ImageContent::Single(linux());
    let init = ", initContainers: [{image: repo.example/i1:1}]";
    for (image, init, has_other) in [("i0", init, false), ("i1", "", true)] {
        let fields = format!("{init}, nodeSelector: {{kubernetes.io/os: windows}}");
        set_workload(&mut request, "Deployment", image, &fields);
        let (rollout, _) = advise(&request);
        let mut findings = rollout.checks().map(|check| check.finding);
        let finding = findings.find(|finding| finding.rule == "not-windows");
        let fix = finding.and_then(|finding| finding.fix.as_deref()).unwrap();
        assert!(fix.starts_with("name an image for Windows"), "{fix}");
        assert_eq!(fix.contains("kubernetes.io/os: linux"), has_other, "{fix}");
    }
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
