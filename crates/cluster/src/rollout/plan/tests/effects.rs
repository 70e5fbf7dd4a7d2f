//! Commands of a plan, and what they do to images and tags.

use super::*;
use crate::pod::PullPolicy;

#[test]
fn an_archive_becomes_a_layout_where_hosts_need_several_images() {
    let mut request = request(&["17763.1158", "20348.1"], &["17763.1158"]);
    request.images[0].reference = Some("docker-archive:web.tar".to_owned());
    let commands = plan(&request).actions[0].commands();
    let build =
        "wincimg build RECIPE --host-build 17763.1158 --host-build 20348.1 --output oci:web";
    assert_eq!(commands, [build]);
}

#[test]
fn a_reference_by_digest_gets_the_new_one() {
    let digest = format!("repo.example/i0@sha256:{}", "1".repeat(64));
    let mut request = request(&["20348.1"], &["17763.1158"]);
    request.images[0].reference = Some(digest.clone());
    let (rollout, plan) = advise(&request);
    let rest = "and update the references to its digest";
    let title = plan.actions[0].title(&rollout);
    assert_eq!(title, format!("build {digest} (17763.1158) again, {rest}"));
    let finding = rollout.checks().next().unwrap().finding;
    let fix = finding.fix.as_deref().unwrap();
    assert!(fix.contains(rest), "{fix}");
}

#[test]
fn an_image_on_disk_is_rebuilt_there_and_not_pushed() {
    let mut request = request(&["17763.1158"], &["17763.973", "17763.973", "17763.973"]);
    let places = [
        "oci:./my images:1.4",
        "oci:web",
        "docker-archive:web.tar:web:1",
    ];
    for (image, place) in request.images.iter_mut().zip(places) {
        image.reference = Some(place.to_owned());
    }
    let plan = plan(&request);
    let commands: Vec<String> = plan.actions.iter().flat_map(PlanAction::commands).collect();
    assert_eq!(
        commands,
        [
            "wincimg build RECIPE --host-build 17763.1158 --output 'oci:./my images' --tag 1.4 --replace",
            "wincimg build RECIPE --host-build 17763.1158 --output oci:web --replace",
            "wincimg build RECIPE --host-build 17763.1158 --output docker-archive:web.tar",
        ]
    );
}

#[test]
fn commands_are_ready_to_type() {
    let mut request = request(&["17763.973", "17763.1158"], &["17763.1158", "20348.1"]);
    request.flags = CommandFlags {
        registry: vec!["--insecure-registry".to_owned(), "repo.example".to_owned()],
        kubectl: vec!["--context".to_owned(), "my cluster".to_owned()],
        is_live: false,
    };
    let plan = plan(&request);
    let commands: Vec<Vec<String>> = plan.actions.iter().map(PlanAction::commands).collect();
    assert_eq!(
        commands[0],
        [
            "wincimg build RECIPE --host-build 17763.1158 --host-build 20348.1 --registry \
             repo.example --name i1 --tag 1 --push --insecure-registry repo.example"
        ]
    );
    assert_eq!(
        commands[1],
        [
            "wincimg node hotfix script 17763.1158 --output KB4549949.ps1",
            "kubectl drain n0 --ignore-daemonsets --context 'my cluster'",
        ]
    );
}

#[test]
fn several_hosts_do_not_get_an_index_under_the_tag_of_one_version() {
    for (tag, flags) in [
        ("10.0.17763.973", ""),
        ("1.4-10.0.17763.973", "--tag 1.4 "),
        ("1.4-beta", "--tag 1.4-beta "),
    ] {
        let mut request = request(&["17763.973", "20348.1"], &["17763.973"]);
        request.images[0].reference = Some(format!("repo.example/web:{tag}"));
        let build = format!(
            "wincimg build RECIPE --host-build 17763.973 --host-build 20348.1 --registry \
             repo.example --name web {flags}--push"
        );
        assert_eq!(plan(&request).actions[0].commands(), [build], "{tag}");
    }
}

#[test]
fn an_image_named_by_its_digest_gets_a_tag_that_the_reader_chooses() {
    let mut request = request(&["17763.1158"], &["17763.973"]);
    let digest = "0".repeat(64);
    request.images[0].reference = Some(format!("repo.example/web@sha256:{digest}"));
    let plan = plan(&request);
    assert_eq!(
        plan.actions[0].commands(),
        [
            "wincimg build RECIPE --host-build 17763.1158 --registry repo.example --name web --tag TAG \
             --push"
        ]
    );
}

#[test]
fn what_an_image_has_for_other_systems_is_kept() {
    let mut request = request(&["20348.1"], &["17763.1"]);
    let old = single("17763.973");
    request.images[0].content = ImageContent::Index(vec![linux(), single("17763.914"), old]);
    let plan = plan(&request);
    assert_eq!(
        plan.actions[0].commands(),
        [
            "wincimg build RECIPE --host-build 17763.973 --host-build 20348.1 --registry \
             repo.example --name i0 --tag 1 --push --join"
        ]
    );
}

#[test]
fn an_image_for_linux_is_never_built_over() {
    let mut request = restricted(&["20348.1"], &["20348.1"], &[]);
    request.images[0].content = ImageContent::Single(linux());
    request.plain = 1;
    assert!(plan(&request).actions.is_empty());
    set_workload(
        &mut request,
        "Deployment",
        "i0",
        ", nodeSelector: {kubernetes.io/os: windows}",
    );
    assert!(plan(&request).actions.is_empty(), "no node runs Linux");
    request.nodes.others.push(linux_node());
    assert!(plan(&request).actions.is_empty(), "it selects Windows");
}

#[test]
fn a_cordoned_node_counts_as_before_and_stays_cordoned() {
    let mut request = request(&["17763.973", "17763.1158"], &["17763.1158"]);
    restrict(&mut request, &[("Deployment", vec![0], 0b11)]);
    assert_eq!(short_of(&request), ["patch n0 to 17763.1158"]);
    request.nodes.windows[1].is_cordoned = true;
    assert_eq!(short_of(&request), ["patch n0 to 17763.1158"]);
    request.nodes.windows[0].is_cordoned = true;
    let plan = plan(&request);
    let steps = plan.actions[0].steps();
    let uncordon = |step: &ActionStep| format!("{step:?}").contains("uncordon");
    assert!(!steps.iter().any(uncordon), "{steps:?}");
}

#[test]
fn an_image_is_built_for_the_hosts_that_there_are() {
    let mut request = restricted(
        &["20348.2402", "26100.2894"],
        &["26100.3194"],
        &[("Deployment", vec![0], 0b1)],
    );
    assert_eq!(short_of(&request), ["build i0 for 20348.2402 26100.2894"]);
    // Hosts outside of the check may use an entry of another build.
    request.nodes.windows.pop();
    assert_eq!(short_of(&request), ["build i0 for 20348.2402 26100.3194"]);
}

#[test]
fn a_custom_resource_with_an_image_of_others_is_pinned_by_hand() {
    let image = "mcr.microsoft.com/windows/nanoserver:ltsc2022";
    let landing = [("CloneSet", vec![0], 0b11)];
    let mut request = restricted(&["17763.1158", "20348.1"], &["20348.1"], &landing);
    request.images[0].reference = Some(image.to_owned());
    image.clone_into(&mut request.workloads[0].template.containers[0].image);
    let (rollout, plan) = advise(&request);
    assert!(plan.actions.is_empty(), "{plan:?}");
    let finding = rollout.checks().next().unwrap().finding;
    assert_eq!(
        finding.fix.as_deref(),
        Some(
            "keep its pods on nodes with the label node.kubernetes.io/windows-build=10.0.20348, or \
             use another tag of mcr.microsoft.com/windows/nanoserver, one whose image fits these nodes"
        )
    );
}

#[test]
fn what_others_build_gets_another_tag_and_is_never_built() {
    let image = "mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-ltsc2022";
    let mut request = request(&["17763.5696", "17763.5700"], &["20348.2402"]);
    restrict(&mut request, &[("Deployment", vec![0], 0b11)]);
    request.images[0].reference = Some(image.to_owned());
    image.clone_into(&mut request.workloads[0].template.containers[0].image);
    let tags: TagsByRepository = [(
        image.to_owned(),
        ["8.0-nanoserver-1809", "8.0-nanoserver-ltsc2022"]
            .map(str::to_owned)
            .into(),
    )]
    .into();
    let advised = |request: &RolloutRequest, tags: &TagsByRepository| {
        let mut rollout = Rollout::new(request);
        let plan = rollout.advise(request, tags);
        let finding = rollout.checks().next().unwrap().finding.clone();
        (plan.actions.len(), finding.fix.unwrap(), finding.commands)
    };
    let container = request.workloads[0].template.containers[0].name.clone();
    assert_eq!(
        advised(&request, &tags),
        (
            0,
            "use another tag of mcr.microsoft.com/dotnet/aspnet: 8.0-nanoserver-1809".to_owned(),
            vec![format!(
                "kubectl set image deployment/p0 {container}=mcr.microsoft.com/dotnet/aspnet:\
                 8.0-nanoserver-1809"
            )]
        )
    );
    let (_, fix, commands) = advised(&request, &TagsByRepository::new());
    assert!(fix.ends_with("one whose image fits these nodes"), "{fix}");
    assert!(commands.is_empty());
    // A mirror of Microsoft's bases gets the base of the nodes.
    let mut mirrored = request.clone();
    let image = "repo.lan:5000/mcr/windows/nanoserver:ltsc2022";
    mirrored.images[0].reference = Some(image.to_owned());
    image.clone_into(&mut mirrored.workloads[0].template.containers[0].image);
    let (actions, fix, commands) = advised(&mirrored, &TagsByRepository::new());
    assert_eq!(actions, 0, "{commands:?}");
    assert!(
        fix.contains("repo.lan:5000/mcr/windows/nanoserver"),
        "{fix}"
    );
    assert_eq!(
        commands,
        ["wincimg image mirror base:nanoserver --to repo.lan:5000/mcr --host-build 17763.5696"]
    );
    // An image of the user is rebuilt.
    request.own = vec!["mcr.microsoft.com/dotnet".to_owned()];
    let (actions, _, commands) = advised(&request, &tags);
    assert_eq!(actions, 1);
    assert!(commands[0].starts_with("wincimg build RECIPE"));
}

/// The commands and later steps of the rebuild of an image that its workloads, of these kinds, need,
/// and its title.
fn rebuild_for(
    kinds: &[&'static str],
    change: impl Fn(&mut RolloutRequest),
) -> (Vec<String>, Vec<ActionStep>, String) {
    let mut request = request(&["18363.900"], &["17763.1158"]);
    let landings: Vec<Landing> = kinds.iter().map(|kind| (*kind, vec![0], 0b1)).collect();
    restrict(&mut request, &landings);
    request.today = Some("2026-11-24".parse().unwrap());
    for workload in &mut request.workloads {
        "c0".clone_into(&mut workload.template.containers[0].name);
    }
    change(&mut request);
    let plan = plan(&request);
    let title = plan.actions[0].title(&Rollout::new(&request));
    let commands = plan.actions[0].commands();
    let rest = plan.actions[0].steps()[commands.len()..].to_vec();
    (commands, rest, title)
}

/// The command that sets the new image of the first of these workloads.
const SET: &str = "kubectl set image deployment/p0 c0=repo.example/i0:1-20261124";

#[test]
fn a_new_image_reaches_nodes_that_have_the_old_one() {
    let (commands, rest, title) = rebuild_for(&["Deployment"], |_| {});
    assert_eq!(rest, []);
    assert!(
        commands[0].contains(" --tag 1-20261124 --push"),
        "{commands:?}"
    );
    assert!(
        commands[0].ends_with("--push"),
        "nothing is under the tag: {commands:?}"
    );
    assert_eq!(commands[1..], [SET]);
    assert!(title.contains("under the new tag 1-20261124"), "{title}");
    let (commands, ..) = rebuild_for(&["Deployment"], |request| {
        request.workloads[0].template.containers[0].pull_policy = PullPolicy::Always;
    });
    assert_eq!(commands[1..], ["kubectl rollout restart deployment/p0"]);
    assert!(commands[0].contains(" --tag 1 "), "{commands:?}");
}

#[test]
fn a_new_tag_keeps_the_entries_for_other_systems() {
    let (commands, ..) = rebuild_for(&["Deployment"], |request| {
        request.images[0].content = ImageContent::Index(vec![linux(), single("17763.914")]);
    });
    assert_eq!(
        commands[0],
        "wincimg image tag repo.example/i0:1 1-20261124"
    );
    assert!(
        commands[1].ends_with("--tag 1-20261124 --push --join"),
        "{commands:?}"
    );
    assert_eq!(commands[2..], [SET]);
}

#[test]
fn a_workload_without_a_command_for_a_new_image_costs_others_none() {
    let kinds = ["Deployment", "Job", "CloneSet", "ReplicaSet", "Pod"];
    let (commands, rest, _) = rebuild_for(&kinds, |_| {});
    assert_eq!(commands.len(), 3, "{commands:?}");
    assert_eq!(commands[1], SET);
    assert!(commands[2].starts_with("kubectl set image pod/p4 c0="));
    let manual = [
        "recreate Job default/p1 with the image repo.example/i0:1-20261124",
        "set the image repo.example/i0:1-20261124 in CloneSet default/p2",
        "recreate ReplicaSet default/p3 with the image repo.example/i0:1-20261124",
    ];
    assert_eq!(rest, manual.map(|text| ActionStep::Manual(text.to_owned())));
}

#[test]
fn an_image_that_is_never_pulled_is_loaded_before_it_is_used() {
    let (commands, rest, _) = rebuild_for(&["Deployment", "Deployment"], |request| {
        request.workloads[0].template.containers[0].pull_policy = PullPolicy::Never;
    });
    assert!(commands[1].contains("deployment/p1"), "{commands:?}");
    let load = "load repo.example/i0:1-20261124 on each node of Deployment default/p0, which never \
                pulls it (imagePullPolicy: Never)";
    assert_eq!(
        rest,
        [
            ActionStep::Manual(load.to_owned()),
            ActionStep::Command(SET.to_owned()),
        ]
    );
}

#[test]
fn a_finding_refers_to_the_plan_where_a_command_follows_a_step_by_hand() {
    let landing = [("Deployment", vec![0], 0b1)];
    let mut request = restricted(&["18363.900"], &["17763.1158"], &landing);
    request.today = Some("2026-11-24".parse().unwrap());
    request.workloads[0].template.containers[0].pull_policy = PullPolicy::Never;
    let (rollout, _) = advise(&request);
    let finding = rollout.checks().next().unwrap().finding;
    assert_eq!(finding.commands.len(), 1, "{finding:?}");
    let fix = finding.fix.as_deref().unwrap();
    assert!(fix.ends_with("; --plan lists all steps"), "{fix}");
}

#[test]
fn a_wrong_index_of_others_is_reported_whatever_its_workload_needs_until_then() {
    let image = "mcr.microsoft.com/dotnet/aspnet:8.0";
    let digest = format!("sha256:{}", "1".repeat(64));
    let landing = [("Job", vec![0], 0b1)];
    let mut request = restricted(&["20348.2402"], &["20348.2402"], &landing);
    let manifest = serde_json::json!({"mediaType": "a", "digest": digest, "size": 1});
    let entry = Variant {
        os_version: None,
        manifest: Some(serde_json::from_value(manifest).unwrap()),
        ..single("20348.2402")
    };
    request.images[0] = Image {
        reference: Some(image.to_owned()),
        content: ImageContent::Index(vec![entry.with_image(single("20348.2402"))]),
    };
    image.clone_into(&mut request.workloads[0].template.containers[0].image);
    request.nodes.windows[0].runtime = ContainerRuntime::from_node("containerd://1.6.17");
    let (rollout, _) = advise(&request);
    let finding = rollout.checks().next().unwrap().finding;
    let fix = finding.fix.as_deref().unwrap();
    let step = format!(
        "; until then, recreate Job default/p0 with the image mcr.microsoft.com/dotnet/aspnet@{digest}"
    );
    assert!(fix.starts_with("report to the publisher"), "{fix}");
    assert!(fix.ends_with(&step), "{fix}");
    assert!(finding.commands.is_empty(), "{finding:?}");
}

#[test]
fn what_starts_with_the_old_image_is_not_changed_by_hand() {
    let mut request = restricted(
        &["18363.900", "17763.1158"],
        &["17763.1158"],
        &[("Deployment", vec![0], 0b01), ("Job", vec![0], 0b10)],
    );
    request.today = Some("2026-11-24".parse().unwrap());
    let steps = steps_of(&plan(&request).actions[0]);
    let are_commands = steps.iter().all(|step| step.starts_with("$ "));
    assert!(are_commands, "{steps:?}");
}

#[test]
fn nothing_is_built_into_an_index_for_a_host_whose_containerd_refuses_it_there() {
    let advised = |runtime: &str, image: &str| {
        let mut request = request(&["26200.7171", "20348.2402"], &[image]);
        restrict(&mut request, &[("Deployment", vec![0], 0b01)]);
        request.nodes.windows[0].runtime = ContainerRuntime::from_node(runtime);
        let (rollout, plan) = advise(&request);
        let finding = rollout.checks().next().unwrap().finding.clone();
        let fix = finding.fix.unwrap_or_default();
        (plan.actions.len(), fix, finding.commands.len())
    };
    for runtime in ["containerd://2.1.6", "containerd://1.7.3"] {
        // The image stays for others.
        let (actions, fix, commands) = advised(runtime, "17763.5696");
        assert_eq!((actions, commands), (0, 0), "{fix}");
        assert!(fix.starts_with("build the image again on a base"), "{fix}");
        assert!(fix.ends_with(TAKES_ALONE), "{fix}");
        let starts = advised(runtime, "20348.2402");
        assert_eq!(starts, (0, String::new(), 0));
    }
    for runtime in ["containerd://1.7.20", "containerd://2.4.0"] {
        let (actions, fix, commands) = advised(runtime, "17763.5696");
        assert_eq!(actions, 1, "{runtime}: {fix}");
        assert!(commands > 0, "{runtime}");
    }
    // Another tag of what others build may be an index.
    let mut request = request(&["26200.7171"], &["17763.5696"]);
    request.nodes.windows[0].runtime = ContainerRuntime::from_node("containerd://2.1.6");
    let image = "mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-1809";
    request.images[0].reference = Some(image.to_owned());
    let tags = ["8.0-nanoserver-1809", "8.0-nanoserver-ltsc2022"].map(str::to_owned);
    let tags: TagsByRepository = [(image.to_owned(), tags.to_vec())].into();
    let mut rollout = Rollout::new(&request);
    rollout.advise(&request, &tags);
    let fix = rollout.checks().next().unwrap().finding.fix.clone();
    assert_eq!(
        fix.as_deref(),
        Some(
            "use the digest of an image of mcr.microsoft.com/dotnet/aspnet that fits these nodes: \
             their containerd refuses it in an index"
        )
    );
}

#[test]
fn what_starts_on_a_host_that_refuses_the_new_index_keeps_its_tag() {
    let hosts = ["17763.5696", "25398.1128", "20348.2402"];
    // On all nodes, on that of 17763, and on that of 25398.
    let landings = [0b111, 0b001, 0b010].map(|hosts| ("Deployment", vec![0], hosts));
    for (landings, pins, changed) in [
        (&landings[..2], 1, "deployment/p1"),
        (&landings[1..], 0, "deployment/p0"),
    ] {
        let mut request = restricted(&hosts, &["20348.2402"], landings);
        request.nodes.windows[1].runtime = ContainerRuntime::from_node("containerd://1.7.3");
        // Without a new tag, all get the new image.
        assert!(!plan(&request).interruptions.is_empty());
        request.today = Some("2026-11-24".parse().unwrap());
        let found = plan(&request);
        assert_eq!(found.then.incompatible, 0, "{found:?}");
        assert!(found.interruptions.is_empty(), "{found:?}");
        let (rebuild, others) = found.actions.split_last().unwrap();
        assert_eq!(others.len(), pins, "{found:?}");
        let commands = rebuild.commands();
        let (build, rest) = commands.split_first().unwrap();
        assert!(build.starts_with("wincimg build "), "{found:?}");
        assert!(!rest.is_empty(), "{found:?}");
        for command in rest {
            assert!(command.contains(changed), "{found:?}");
        }
    }
}

#[test]
fn a_fix_names_all_nodes_whose_containerd_refuses_their_base() {
    let hosts = ["26200.7171", "26200.7171", "20348.2402"];
    let mut request = request(&hosts, &["17763.5696"]);
    for (node, version) in request.nodes.windows.iter_mut().zip(["2.1.6", "2.2.0"]) {
        node.runtime = ContainerRuntime::from_node(&format!("containerd://{version}"));
    }
    let (rollout, _) = advise(&request);
    for check in rollout.checks().take(2) {
        let fix = check.finding.fix.as_deref().unwrap();
        assert!(fix.contains("; containerd of n0, n1 refuses it "), "{fix}");
    }
}

/// The end of the fix where containerd refuses it in an index.
const TAKES_ALONE: &str = "; containerd of n0 refuses it in an index, so give it a tag of its own";

#[test]
fn what_stays_alone_is_built_for_a_host_that_refuses_its_base_in_an_index() {
    let on = |runtime: &str, image: Image| {
        let mut request = request(&["26200.7171"], &[]);
        request.nodes.windows[0].runtime = ContainerRuntime::from_node(runtime);
        request.images = vec![image];
        request.plain = 1;
        let (rollout, plan) = advise(&request);
        let finding = rollout.checks().next().unwrap().finding;
        let fix = finding.fix.clone().unwrap_or_default();
        (plan.actions.len(), plan.then.incompatible, fix)
    };
    let old = "containerd://1.7.3";
    let archive = Image {
        reference: Some("docker-archive:web.tar".to_owned()),
        content: ImageContent::Single(single("17763.5696")),
    };
    for image in [Image::from_version(version("17763.5696")), archive] {
        for runtime in [old, "containerd://2.1.6"] {
            let (actions, left, fix) = on(runtime, image.clone());
            assert_eq!((actions, left), (1, 0), "{fix}");
        }
    }
    for entries in [
        [("17763.5696", "17763.5696")],
        [("20348.2402", "20348.2402")],
    ] {
        let (actions, left, fix) = on(old, index(&entries));
        assert_eq!((actions, left), (0, 1), "{fix}");
    }
    let (_, _, fix) = on(old, index(&[("17763.5696", "17763.5696")]));
    assert_eq!(
        fix,
        "build the image for this host too".to_owned() + TAKES_ALONE
    );
    // A right index would not have an image for the host either.
    let arm = Variant {
        architecture: "arm64".to_owned(),
        ..single("26100.1742")
    };
    let arm = Image {
        reference: Some("repo.example/i0:1".to_owned()),
        content: ImageContent::Index(vec![single("26100.1742").with_image(arm)]),
    };
    let (actions, _, fix) = on("containerd://2.1.6", arm);
    assert_eq!(actions, 0);
    assert!(fix.ends_with(TAKES_ALONE), "{fix}");
}

#[test]
fn a_fix_names_the_nodes_to_drain() {
    let hosts = ["17763.973", "17763.973", "17763.1158"];
    for (hosts, words) in [
        (&hosts[..], "drain n0, n1 one by one and update them to "),
        (&hosts[1..], "drain n0 and update it to "),
    ] {
        let request = request(hosts, &["17763.973"]);
        let (rollout, _) = advise(&request);
        let mut checks = rollout.checks().map(|check| check.finding);
        let failing = checks.find(|finding| finding.outcome == VerdictOutcome::Incompatible);
        let fix = failing.unwrap().fix.as_deref().unwrap();
        assert!(fix.contains(words), "{fix}");
    }
}

#[test]
fn a_fix_of_many_workloads_is_found_once_and_refers_to_the_plan() {
    let hosts = ["17763.973", "17763.1012", "17763.914"];
    let landing = [("Deployment", vec![0], 0b111)];
    let mut request = restricted(&hosts, &["17763.1158"], &landing);
    let workload = request.workloads.remove(0);
    let workloads = (0..1000).map(|number| {
        let mut own = workload.clone();
        own.id.name = format!("p{number}");
        own
    });
    request.workloads = workloads.collect();
    let (rollout, plan) = advise(&request);
    assert_eq!(plan.actions.len(), 1, "{:?}", plan.actions);
    let finding = rollout.checks().next().unwrap().finding;
    assert!(finding.commands.is_empty());
    let fix = finding.fix.as_deref().unwrap();
    assert!(fix.ends_with("; --plan lists the commands"), "{fix}");
}
