//! Runtime classes: those that are missing, and those for Docker or for Hyper-V isolation.

use super::*;

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
fn an_image_that_containerd_pulls_from_no_index_needs_its_own_pause_image() {
    let on = |host: &str, image: &str| {
        let mut request = request(&[host], &[]);
        request.nodes.windows[0].runtime = ContainerRuntime::from_node("containerd://2.2.0");
        request.images = vec![index(&[(image, image)])];
        request.plain = 1;
        request.isolation = Some(Isolation::HyperV);
        let rollout = Rollout::new(&request);
        let finding = rollout.checks().next().unwrap().finding;
        assert_eq!(finding.rule, "filtered-at-pull", "{finding:?}");
        finding.reason.clone()
    };
    let reason = on("20348.2402", "17763.5820");
    let start = "under Hyper-V isolation host 20348.2402 runs image 17763.5820 with a pause image of \
                 the image's build, but containerd ";
    assert!(reason.starts_with(start), "{reason}");
    // The kernel of the host's own pause image runs it.
    let reason = on("26200.7171", "20348.3091");
    assert!(!reason.contains("pause image"), "{reason}");
}
