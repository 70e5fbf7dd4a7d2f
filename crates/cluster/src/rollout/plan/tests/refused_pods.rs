//! Pods that nodes or the API server refuse: host processes, and fields of Linux.

use super::*;

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
    let not_one = "securityContext: {windowsOptions: {hostProcess: false}}";
    let contradicts = "hostProcess of the container a contradicts that of the pod";
    let one_value = "set both to the same value, or remove one";
    for (more, reasons, fix) in [
        (alone.clone(), network.to_owned(), set_network.to_owned()),
        (
            format!("{alone}, hostNetwork: true, {not_one}"),
            contradicts.to_owned(),
            one_value.to_owned(),
        ),
        (
            format!(", {not_one}}}], hostNetwork: true, {host_process}"),
            contradicts.to_owned(),
            one_value.to_owned(),
        ),
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
        ("Pod", format!("{alone}, hostNetwork: true, {host_process}")),
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
