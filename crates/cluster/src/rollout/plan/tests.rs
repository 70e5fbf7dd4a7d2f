mod order;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use wincimg_windows::compat::{ContainerRuntime, HostBuild};

use super::*;
use crate::nodes::NodeList;
use crate::rollout::TagsByRepository;
use crate::rollout::fix::MOST_ACTIONS;
use crate::rollout::{CommandFlags, StartStatus};
use crate::workloads::WorkloadList;

fn version(text: &str) -> WindowsVersion {
    text.parse().unwrap()
}

fn request(hosts: &[&str], images: &[&str]) -> RolloutRequest {
    let host = |(index, text): (usize, &&str)| Node {
        name: Some(format!("n{index}")),
        ..Node::from_build(HostBuild::new(version(text)))
    };
    let image = |(index, text): (usize, &&str)| Image {
        reference: Some(format!("repo.example/i{index}:1")),
        content: ImageContent::Single(single(text)),
    };
    RolloutRequest {
        nodes: NodeList {
            windows: hosts.iter().enumerate().map(host).collect(),
            others: Vec::new(),
        },
        images: images.iter().enumerate().map(image).collect(),
        plain: images.len(),
        ..RolloutRequest::default()
    }
}

fn single(text: &str) -> Variant {
    Variant {
        os: "windows".to_owned(),
        architecture: "amd64".to_owned(),
        os_version: Some(version(text).os_version()),
        version: Some(version(text)),
        ..Variant::default()
    }
}

fn plan(request: &RolloutRequest) -> ActionPlan {
    ActionPlan::new(request, &Rollout::new(request))
}

/// The plan in short form: `patch n0,n1 to 17763.1158`, `build i0 for 17763.973 20348.1`, `pin p0
/// to 10.0.17763`.
fn short(hosts: &[&str], images: &[&str]) -> Vec<String> {
    short_of(&request(hosts, images))
}

fn shown(pin: &Pin) -> String {
    match pin {
        Pin::Selector { value, .. } => format!("to {value}"),
        Pin::Affinity(it) => format!("{:?} {}", it.operator, it.values.join(" ")),
    }
}

fn short_of(request: &RolloutRequest) -> Vec<String> {
    let plan = plan(request);
    assert_eq!(plan.then.incompatible, 0, "{plan:?}");
    let words = |versions: &[WindowsVersion]| {
        let words: Vec<String> = versions.iter().map(ToString::to_string).collect();
        words.join(" ")
    };
    let actions = plan.actions.iter().map(|action| match action {
        PlanAction::Pin { workload, pin, .. } => format!("pin p{workload} {}", shown(pin)),
        PlanAction::Patch { to, hosts, .. } => {
            let names: Vec<String> = hosts.iter().map(|host| format!("n{host}")).collect();
            format!("patch {} to {to}", names.join(","))
        }
        PlanAction::Rebuild {
            image, host_builds, ..
        } => format!("build i{image} for {}", words(host_builds)),
    });
    actions.collect()
}

#[test]
fn nothing_is_done_where_everything_starts() {
    assert!(short(&["17763.1158", "20348.1"], &[]).is_empty());
    assert!(short(&["17763.1158"], &["17763.2000"]).is_empty());
}

#[test]
fn images_are_built_rather_than_a_node_drained_and_patched() {
    assert_eq!(
        short(&["17763.973"], &["17763.1158", "17763.2114"]),
        ["build i0 for 17763.973", "build i1 for 17763.973"]
    );
}

#[test]
fn one_image_is_built_rather_than_three_nodes_patched() {
    assert_eq!(
        short(&["17763.973", "17763.1012", "17763.914"], &["17763.1158"]),
        ["build i0 for 17763.914"]
    );
}

#[test]
fn a_patched_node_takes_its_old_images_along() {
    // n1 needs the new side and shares its image with n0.
    assert_eq!(
        short(&["17763.973", "17763.1158"], &["17763.973"]),
        ["build i0 for 17763.1158", "patch n0 to 17763.1158"]
    );
}

#[test]
fn server_2016_ends_up_at_one_revision() {
    assert_eq!(
        short(&["14393.3504", "14393.3630"], &["14393.3630", "14393.3504"]),
        ["build i1 for 14393.3630", "patch n0 to 14393.3630"]
    );
}

#[test]
fn one_build_serves_all_newer_hosts_that_take_it() {
    assert_eq!(
        short(
            &["17763.5696", "20348.2402", "26100.2314", "26200.1"],
            &["17763.5696"]
        ),
        ["build i0 for 17763.5696 20348.2402 26200.1"]
    );
    assert_eq!(
        short(&["25398.1", "26100.2314"], &["17763.5696"]),
        ["build i0 for 17763.5696 25398.1"],
        "annual releases have no base of their own, and take that of 20348; what the image has for \
         other builds stays"
    );
}

#[test]
fn an_index_gets_one_revision_of_a_build() {
    let mut request = request(&["20348.2402", "26200.7171"], &["17763.5696"]);
    for node in &mut request.nodes.windows {
        node.runtime = ContainerRuntime::Docker;
    }
    let plan = plan(&request);
    let PlanAction::Rebuild { becomes, .. } = &plan.actions[0] else {
        panic!("{plan:?}");
    };
    let versions: Vec<String> = becomes.versions().map(|own| own.to_string()).collect();
    assert_eq!(versions, ["17763.5696", "20348.2402"]);
}

#[test]
fn what_nothing_fixes_is_left() {
    let mut request = request(&["19045.1", "17763.1158"], &["17763.1158"]);
    request.images.push(Image {
        reference: Some("repo.example/secret:1".to_owned()),
        content: ImageContent::Unreadable {
            reason: "401".to_owned(),
            hint: None,
        },
    });
    request.plain = 2;
    let plan = plan(&request);
    assert!(plan.actions.is_empty(), "{plan:?}");
    assert_eq!((plan.then.incompatible, plan.then.unknown), (1, 2));
}

#[test]
fn an_archive_becomes_a_layout_where_hosts_need_several_images() {
    let mut request = request(&["17763.1158", "20348.1"], &["17763.1158"]);
    request.images[0].reference = Some("docker-archive:web.tar".to_owned());
    let commands = plan(&request).actions[0].commands().to_vec();
    let build =
        "wincimg build RECIPE --host-build 17763.1158 --host-build 20348.1 --output oci:web";
    assert_eq!(commands, [build]);
}

#[test]
fn who_names_a_digest_has_to_name_the_new_one() {
    let digest = format!("repo.example/i0@sha256:{}", "1".repeat(64));
    let mut request = request(&["20348.1"], &["17763.1158"]);
    request.images[0].reference = Some(digest.clone());
    let mut rollout = Rollout::new(&request);
    let plan = rollout.advise(&request, &TagsByRepository::new());
    let rest = "and update the references to its digest";
    let title = plan.actions[0].title(&rollout);
    assert_eq!(title, format!("build {digest} (17763.1158) again, {rest}"));
    let fix = rollout
        .checks()
        .next()
        .unwrap()
        .finding
        .fix
        .clone()
        .unwrap();
    assert!(fix.contains(rest), "{fix}");
}

#[test]
fn an_image_on_a_disk_is_built_there_again_and_pushed_nowhere() {
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
    let commands: Vec<String> = plan
        .actions
        .iter()
        .flat_map(PlanAction::commands)
        .cloned()
        .collect();
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
    };
    let plan = plan(&request);
    let commands: Vec<&[String]> = plan.actions.iter().map(PlanAction::commands).collect();
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
            "wincimg hotfix script 17763.1158 --output KB4549949.ps1",
            "kubectl drain n0 --ignore-daemonsets --context 'my cluster'",
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

/// A workload: its kind, the images of its containers, and the nodes it names, by number.
type Landing = (&'static str, Vec<usize>, u32);

/// Restricts images to some of the hosts, by workloads that name them.
fn land(request: &mut RolloutRequest, landings: &[Landing]) {
    let documents = landings.iter().enumerate().map(|(index, landing)| {
        let (kind, images, hosts) = landing;
        let names = (0..32).filter(|host| hosts >> host & 1 == 1);
        let names: Vec<String> = names.map(|host| format!("n{host}")).collect();
        let containers = images
            .iter()
            .map(|image| format!("{{image: repo.example/i{image}:1}}"));
        let spec = format!(
            "{{os: {{name: windows}}, containers: [{}], affinity: {{nodeAffinity: \
             {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{matchFields: \
             [{{key: metadata.name, operator: In, values: [{}]}}]}}]}}}}}}}}",
            containers.collect::<Vec<_>>().join(", "),
            names.join(", ")
        );
        let template = format!("{{template: {{spec: {spec}}}}}");
        let spec = match *kind {
            "Pod" => spec,
            "CronJob" => format!("{{jobTemplate: {{spec: {template}}}}}"),
            _ => template,
        };
        format!("kind: {kind}\nmetadata: {{name: p{index}}}\nspec: {spec}\n")
    });
    let text: Vec<String> = documents.collect();
    give(request, &text.join("---\n"));
}

/// Checks only the workloads of a text.
fn give(request: &mut RolloutRequest, text: &str) {
    let mut list = WorkloadList::default();
    list.read(text, "test").unwrap();
    request.workloads = list.into_workloads();
    request.plain = 0;
}

fn linux() -> Variant {
    Variant {
        os: "linux".to_owned(),
        architecture: "amd64".to_owned(),
        ..Variant::default()
    }
}

/// A node that runs Linux.
fn other() -> Node {
    Node {
        name: Some("linux-a".to_owned()),
        labels: [("kubernetes.io/os".to_owned(), "linux".to_owned())].into(),
        ..Node::from_build(HostBuild::new(version("20348.1")))
    }
}

fn landed(hosts: &[&str], images: &[&str], landings: &[Landing]) -> RolloutRequest {
    let mut request = request(hosts, images);
    land(&mut request, landings);
    request
}

#[test]
fn a_workload_stays_where_it_starts() {
    let hosts = ["17763.1158", "20348.1", "20348.2402", "17763.5696"];
    let pinned = |kind| landed(&hosts, &["20348.1"], &[(kind, vec![0], 0b0111)]);
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
    let PlanAction::Pin {
        hosts, commands, ..
    } = &plan.actions[0]
    else {
        panic!("{plan:?}");
    };
    assert_eq!(hosts, &[1, 2]);
    assert_eq!(
        commands,
        &[
            "kubectl patch cronjob p0 --namespace default --type merge --patch \
             '{\"spec\":{\"jobTemplate\":{\"spec\":{\"template\":{\"spec\":{\"nodeSelector\":\
             {\"node.kubernetes.io/windows-build\":\"10.0.20348\"}}}}}}}'"
        ]
    );
}

#[test]
fn a_workload_stays_on_all_builds_where_it_starts() {
    let pinned = |hosts: &[&str], image: &str| {
        short_of(&landed(hosts, &[image], &[("Deployment", vec![0], 0b111)]))
    };
    assert_eq!(
        pinned(&["17763.1158", "20348.2402", "26100.2314"], "20348.2402"),
        ["pin p0 NotIn 10.0.17763"]
    );
    let hosts = [
        "14393.1", "17763.1", "18363.1", "20348.1", "20348.1", "26100.1",
    ];
    let landing = [("Deployment", vec![0], 0b11_1111)];
    let request = landed(&hosts, &["20348.2402"], &landing);
    assert_eq!(short_of(&request), ["pin p0 In 10.0.20348 10.0.26100"]);
    let plan = plan(&request);
    let rollout = Rollout::new(&request);
    assert_eq!(
        plan.actions[0].title(&rollout),
        "keep Deployment default/p0 on nodes whose label node.kubernetes.io/windows-build is \
         10.0.20348 or 10.0.26100 (leaves 3 of 6 nodes)"
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
fn what_takes_no_change_is_made_again() {
    let commands = |kind| {
        let landings = [(kind, vec![0], 0b11)];
        let mut request = landed(&["17763.1158", "20348.1"], &["20348.1"], &landings);
        request.flags.kubectl = vec!["--context".to_owned(), "my cluster".to_owned()];
        let mut rollout = Rollout::new(&request);
        let plan = rollout.advise(&request, &TagsByRepository::new());
        let fix = rollout.checks().next().unwrap().finding.fix.clone();
        assert_eq!(
            fix.as_deref(),
            Some(
                "delete it and recreate it on nodes with the label \
                 node.kubernetes.io/windows-build=10.0.20348 (leaves 1 of 2 nodes)"
            )
        );
        plan.actions[0].commands().to_vec()
    };
    let selector = "\"nodeSelector\":{\"node.kubernetes.io/windows-build\":\"10.0.20348\"}";
    assert_eq!(
        commands("Pod"),
        [
            format!(
                "kubectl get pod p0 --namespace default --context 'my cluster' --output json | \
                 kubectl patch --local --filename - --type merge --patch \
                 '{{\"spec\":{{{selector},\"nodeName\":null}}}}' --output json > pod-p0.json"
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
fn a_workload_is_not_pinned_where_its_image_is_built_again_anyway() {
    let landings = [
        ("Deployment", vec![0], 0b11),
        ("Deployment", vec![1], 0b11),
        ("CloneSet", vec![1], 0b01),
    ];
    assert_eq!(
        short_of(&landed(
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
    give(&mut request, text);
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
            "kubectl patch deployment p0 --namespace default --context production --type merge \
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
    give(&mut request, text);
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
    request.images[1].content = ImageContent::Unasked;
    let taint = r#"{"key":"os","value":"windows","effect":"NoSchedule"}"#;
    request.nodes.windows[0].taints = vec![serde_json::from_str(taint).unwrap()];
    request.nodes.others.push(other());
    let counts = |image: &str, spec: &str| {
        let mut request = request.clone();
        let spec = format!("{{containers: [{{image: repo.example/{image}:1}}]{spec}}}");
        give(
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

#[test]
fn a_pod_that_names_a_node_without_windows_gets_no_selector() {
    let mut request = request(&["20348.1"], &["20348.1"]);
    request.nodes.others.push(other());
    let text = "kind: Pod\nmetadata: {name: p0}\nspec: {nodeName: linux-a, containers: \
                [{image: repo.example/i0:1}]}\n";
    give(&mut request, text);
    let rollout = Rollout::new(&request);
    let rules: Vec<_> = rollout
        .notices
        .iter()
        .map(|notice| notice.finding.rule)
        .collect();
    assert_eq!(rules, ["no-host-selected"]);
}

#[test]
fn where_a_runtime_class_is_missing_that_is_said_and_no_more() {
    let mut request = request(&["20348.1"], &["20348.1"]);
    request.nodes.others.push(other());
    request.plain = 0;
    let found = |request: &mut RolloutRequest, class: &str| {
        let text = format!(
            "kind: Deployment\nmetadata: {{name: p0}}\nspec: {{template: {{spec: {{containers: \
             [{{image: repo.example/i0:1}}], runtimeClassName: windows2022}}}}}}\n---\n\
             kind: RuntimeClass\nmetadata: {{name: {class}}}\nhandler: runhcs-wcow-process\n\
             scheduling: {{tolerations: [{{key: os, value: Windows}}]}}\n"
        );
        give(request, &text);
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
fn host_process_containers_need_a_containerd_that_runs_them() {
    for (runtime, reason) in [
        (
            "docker://20.10.7",
            Some("host process containers need containerd, and the node runs Docker"),
        ),
        (
            "containerd://1.5.7",
            Some(
                "host process containers need containerd 1.6 or newer, and the node runs an older one",
            ),
        ),
        ("containerd://1.6.0", None),
    ] {
        let mut request = request(&["17763.1158"], &["17763.1158"]);
        request.nodes.windows[0].runtime = ContainerRuntime::from_node(runtime);
        let text = "kind: Pod\nmetadata: {name: p0}\nspec: {nodeName: n0, containers: [{image: \
                    'repo.example/i0:1', securityContext: {windowsOptions: {hostProcess: true}}}]}\n";
        give(&mut request, text);
        let rollout = Rollout::new(&request);
        let finding = rollout.placements[0].findings().next().unwrap();
        let refused = (finding.rule == "host-process-unsupported").then_some(&finding.reason[..]);
        assert_eq!(refused, reason, "{runtime}");
    }
}

#[test]
fn images_for_both_systems_need_no_selector_for_windows() {
    let mut request = request(&["20348.1"], &["20348.1"]);
    request.images[0].content = ImageContent::Index(vec![linux(), single("17763.1158")]);
    request.nodes.others.push(other());
    request.plain = 0;
    let rules = |request: &mut RolloutRequest, spec: &str| {
        let text = format!(
            "kind: Deployment\nmetadata: {{name: p0}}\nspec: {{template: {{spec: {{containers: \
             [{{image: repo.example/i0:1}}]{spec}}}}}}}\n"
        );
        give(request, &text);
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

#[test]
fn an_image_for_linux_is_never_built_over() {
    let mut request = landed(&["20348.1"], &["20348.1"], &[]);
    request.images[0].content = ImageContent::Single(linux());
    request.plain = 1;
    assert!(plan(&request).actions.is_empty());
    let text = "kind: Deployment\nmetadata: {name: p0}\nspec: {template: {spec: {containers: \
                [{image: repo.example/i0:1}], nodeSelector: {kubernetes.io/os: windows}}}}\n";
    give(&mut request, text);
    assert!(plan(&request).actions.is_empty(), "no node runs Linux");
    request.nodes.others.push(other());
    assert_eq!(short_of(&request), ["pin p0 to linux"]);
}

#[test]
fn nothing_is_built_for_a_node_that_is_being_emptied() {
    let mut request = landed(&["17763.1158"], &["20348.1"], &[("CloneSet", vec![0], 0b1)]);
    let advised = |request: &RolloutRequest| {
        let mut rollout = Rollout::new(request);
        let plan = rollout.advise(request, &TagsByRepository::new());
        let finding = rollout.checks().next().unwrap().finding.clone();
        let starts_with = |word: &str| finding.fix.as_ref().unwrap().starts_with(word);
        (
            plan.actions.len(),
            starts_with("build"),
            starts_with("nothing"),
        )
    };
    assert_eq!(advised(&request), (1, true, false));
    request.nodes.windows[0].is_cordoned = true;
    assert_eq!(advised(&request), (0, false, true));
}

const HOSTS: [&str; 9] = [
    "14393.3504",
    "14393.3630",
    "17763.914",
    "17763.973",
    "17763.1158",
    "18363.592",
    "18363.900",
    "20348.2402",
    "26100.2314",
];

/// Number of patched hosts, rebuilt images and pinned workloads, compared in this order.
type Cost = (usize, u32, usize);

/// The cost of the cheapest actions after which everything starts, by exhaustive search in the
/// order of cost.
fn cheapest(request: &RolloutRequest, landings: &[Landing]) -> Option<Cost> {
    let hosts: Vec<WindowsVersion> = request
        .nodes
        .windows
        .iter()
        .map(|node| node.build.unwrap().version)
        .collect();
    let patches: Vec<Vec<WindowsVersion>> = hosts
        .iter()
        .map(|own| {
            let all = HOSTS.iter().map(|text| version(text));
            let newer = all.filter(|other| other.build == own.build && other > own);
            [*own].into_iter().chain(newer).collect()
        })
        .collect();
    let pins: Vec<Vec<Option<u32>>> = landings
        .iter()
        .enumerate()
        .map(|(index, landing)| {
            [None]
                .into_iter()
                .chain(builds_where_it_starts(request, index, landing).map(Some))
                .collect()
        })
        .collect();
    let mut attempts: Vec<(Cost, Vec<usize>, u32, Vec<usize>)> = Vec::new();
    for patched in combinations(&patches) {
        for pinned in combinations(&pins) {
            for mask in 0..1_u32 << request.images.len() {
                let count = |picks: &[usize]| picks.iter().filter(|pick| **pick > 0).count();
                let cost = (count(&patched), mask.count_ones(), count(&pinned));
                attempts.push((cost, patched.clone(), mask, pinned.clone()));
            }
        }
    }
    attempts.sort();
    let works = |(_, patched, mask, pinned): &(Cost, Vec<usize>, u32, Vec<usize>)| {
        let mut after = request.clone();
        for (host, pick) in patched.iter().enumerate() {
            set_version(&mut after.nodes.windows[host], patches[host][*pick]);
        }
        let mut lands: Vec<u32> = landings.iter().map(|landing| landing.2).collect();
        for (workload, pick) in pinned.iter().enumerate() {
            if let Some(build) = pins[workload][*pick] {
                let pin = Pin::Selector {
                    label: "node.kubernetes.io/windows-build",
                    value: format!("10.0.{build}"),
                };
                pin.apply(&mut after.workloads[workload]);
                for (host, own) in hosts.iter().enumerate() {
                    if own.build != build {
                        lands[workload] &= !(1 << host);
                    }
                }
            }
        }
        for image in (0..request.images.len()).filter(|image| mask >> image & 1 == 1) {
            let uses = landings.iter().zip(&lands);
            let landed: u32 = uses
                .filter(|(landing, _)| landing.1.contains(&image))
                .fold(0, |all, (_, lands)| all | lands);
            let nodes = after.nodes.windows.iter().enumerate();
            let served = nodes
                .filter(|(host, _)| landed >> host & 1 == 1)
                .map(|(_, node)| graph::TargetHost {
                    version: node.build.unwrap().version,
                    runtime: node.runtime,
                })
                .collect();
            after.images[image] = rebuilt(&after.images[image], &builds_for(served));
        }
        Rollout::new(&after).summary.incompatible == 0
    };
    attempts
        .iter()
        .find(|attempt| works(attempt))
        .map(|(cost, ..)| *cost)
}

/// The builds on all of whose nodes a workload starts, if it does not start on all of its nodes.
fn builds_where_it_starts(
    request: &RolloutRequest,
    index: usize,
    landing: &Landing,
) -> impl Iterator<Item = u32> + use<> {
    let mut alone = request.clone();
    alone.workloads = vec![request.workloads[index].clone()];
    let rollout = Rollout::new(&alone);
    let mut builds: BTreeMap<u32, bool> = BTreeMap::new();
    for check in rollout.checks() {
        if let Some(build) = check.host.and_then(|host| host.build) {
            let starts = check.finding.outcome != VerdictOutcome::Incompatible;
            *builds.entry(build.version.build).or_insert(true) &= starts;
        }
    }
    let can_be_pinned = landing.0 != "CloneSet" && rollout.summary.incompatible > 0;
    builds
        .into_iter()
        .filter(move |(_, starts)| can_be_pinned && *starts)
        .map(|(build, _)| build)
}

/// All combinations of one option from each list, by index.
fn combinations<T>(options: &[Vec<T>]) -> Vec<Vec<usize>> {
    options.iter().fold(vec![Vec::new()], |all, options| {
        let longer = |picks: &Vec<usize>| {
            let picks = picks.clone();
            (0..options.len()).map(move |pick| [&picks[..], &[pick]].concat())
        };
        all.iter().flat_map(longer).collect()
    })
}

/// Cost of a plan.
fn cost(plan: &ActionPlan) -> Cost {
    let mut cost = (0, 0, 0);
    for action in &plan.actions {
        match action {
            PlanAction::Patch { hosts, .. } => cost.0 += hosts.len(),
            PlanAction::Rebuild { .. } => cost.1 += 1,
            PlanAction::Pin { .. } => cost.2 += 1,
        }
    }
    cost
}

#[test]
fn what_others_build_gets_another_tag_and_is_never_built() {
    let image = "mcr.microsoft.com/dotnet/aspnet:8.0-nanoserver-ltsc2022";
    let mut request = request(&["17763.5696", "17763.5700"], &["20348.2402"]);
    land(&mut request, &[("Deployment", vec![0], 0b11)]);
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
                 8.0-nanoserver-1809 --namespace default"
            )]
        )
    );
    let (_, fix, commands) = advised(&request, &TagsByRepository::new());
    assert!(fix.ends_with("one whose image fits these nodes"), "{fix}");
    assert!(commands.is_empty());
    // An image of the user is rebuilt.
    request.own = vec!["mcr.microsoft.com/dotnet".to_owned()];
    let (actions, _, commands) = advised(&request, &tags);
    assert_eq!(actions, 1);
    assert!(commands[0].starts_with("wincimg build RECIPE"));
}

#[test]
fn a_new_image_reaches_nodes_that_have_the_old_one() {
    let day = Some("2026-11-24".parse().unwrap());
    let built = |kind: &'static str, change: &dyn Fn(&mut RolloutRequest)| {
        let mut request = request(&["18363.900"], &["17763.1158"]);
        land(&mut request, &[(kind, vec![0], 0b1)]);
        request.today = day;
        "c0".clone_into(&mut request.workloads[0].template.containers[0].name);
        change(&mut request);
        let plan = plan(&request);
        let title = plan.actions[0].title(&Rollout::new(&request));
        (plan.actions[0].commands().to_vec(), title)
    };
    let (commands, title) = built("Deployment", &|_| {});
    assert!(
        commands[0].contains(" --tag 1-20261124 --push"),
        "{commands:?}"
    );
    assert!(
        commands[0].ends_with("--push"),
        "nothing is under the tag: {commands:?}"
    );
    assert_eq!(
        commands[1..],
        ["kubectl set image deployment/p0 c0=repo.example/i0:1-20261124 --namespace default"]
    );
    assert!(title.contains("under the new tag 1-20261124"), "{title}");
    let (commands, _) = built("Deployment", &|request| {
        request.workloads[0].template.containers[0].pulls_always = true;
    });
    assert_eq!(
        commands[1..],
        ["kubectl rollout restart deployment/p0 --namespace default"]
    );
    assert!(commands[0].contains(" --tag 1 "), "{commands:?}");
    let (commands, title) = built("CloneSet", &|_| {});
    assert_eq!(commands.len(), 1);
    assert!(title.contains("until imagePullPolicy is Always"), "{title}");
    let (commands, _) = built("Deployment", &|request| {
        request.images[0].content = ImageContent::Index(vec![linux(), single("17763.914")]);
    });
    assert!(
        commands[0].ends_with("--tag 1 --push --join"),
        "{commands:?}"
    );
}

/// Executes the actions with these commands.
fn carried_out(request: &RolloutRequest, plan: &ActionPlan, commands: &[String]) -> Rollout {
    let mut after = request.clone();
    let is_typed = |action: &&PlanAction| {
        let mut own = action.commands().iter();
        own.all(|command| commands.contains(command))
    };
    for action in plan.actions.iter().filter(is_typed) {
        match action {
            PlanAction::Pin { workload, pin, .. } => pin.apply(&mut after.workloads[*workload]),
            PlanAction::Patch { to, hosts, .. } => {
                for host in hosts {
                    set_version(&mut after.nodes.windows[*host], *to);
                }
            }
            PlanAction::Rebuild {
                image, host_builds, ..
            } => {
                let builds = host_builds.iter().map(|host| (*host, base_for(*host)));
                let builds: Vec<_> = builds.collect();
                after.images[*image] = rebuilt(&after.images[*image], &builds);
            }
        }
    }
    Rollout::new(&after)
}

/// Returns true if each image of each workload starts on each host where it can be scheduled.
fn outcomes(rollout: &Rollout) -> BTreeMap<(String, String, String), bool> {
    let checks = rollout.checks().filter_map(|check| {
        let key = (
            check.host?.name.clone()?,
            check.image?.reference.clone()?,
            check.workload?.id.name.clone(),
        );
        Some((key, check.finding.outcome != VerdictOutcome::Incompatible))
    });
    checks.collect()
}

/// Random hosts, images with versions, and workloads.
fn clusters() -> impl Strategy<Value = (RolloutRequest, Vec<Landing>)> {
    let hosts = prop::collection::vec(prop::sample::select(&HOSTS), 1..4);
    let versions = prop::collection::vec(prop::sample::select(&HOSTS), 1..3);
    let images = prop::collection::vec(versions, 1..4);
    let kinds = prop::sample::select(&["CloneSet", "Deployment", "Pod"]);
    let own = prop::collection::vec(0_usize..3, 1..3);
    let workloads = prop::collection::vec((kinds, own, 1_u32..8), 1..4);
    (hosts, images, workloads).prop_map(|(hosts, images, workloads)| {
        let mut request = request(&hosts, &vec!["17763.1"; images.len()]);
        for (image, versions) in request.images.iter_mut().zip(&images) {
            image.content = match &versions[..] {
                [only] => ImageContent::Single(single(only)),
                several => ImageContent::Index(several.iter().map(|text| single(text)).collect()),
            };
        }
        let workloads: Vec<Landing> = workloads
            .into_iter()
            .map(|(kind, own, hosts)| {
                let own: BTreeSet<usize> = own.iter().map(|image| image % images.len()).collect();
                (kind, own.into_iter().collect(), hosts)
            })
            .collect();
        land(&mut request, &workloads);
        (request, workloads)
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::with_cases(300)
    })]

    #[test]
    fn no_smaller_set_of_actions_does((request, workloads) in clusters()) {
        let plan = plan(&request);
        prop_assert_eq!(plan.then.incompatible, 0, "{:?}", plan);
        prop_assert_eq!(Some(cost(&plan)), cheapest(&request, &workloads), "{:?}", plan);
    }

    #[test]
    fn what_a_finding_advises_is_no_more_than_makes_its_workload_start((request, _) in clusters()) {
        let mut rollout = Rollout::new(&request);
        let before = outcomes(&rollout);
        let plan = rollout.advise(&request, &TagsByRepository::new());
        let works = |commands: &[String], workload: &str| {
            let after = outcomes(&carried_out(&request, &plan, commands));
            let mut own = after.iter().filter(|((.., name), _)| name == workload);
            own.all(|(_, starts)| *starts)
        };
        for check in rollout.checks() {
            let commands = &check.finding.commands;
            if check.finding.outcome != VerdictOutcome::Incompatible {
                continue;
            }
            if commands.is_empty() {
                prop_assert!(plan.actions.len() > MOST_ACTIONS);
                continue;
            }
            let workload = &check.workload.unwrap().id.name;
            prop_assert!(works(commands, workload), "{workload}: {:?}", commands);
            let is_advised = |action: &&PlanAction| {
                action.commands().iter().all(|command| commands.contains(command))
            };
            for spare in plan.actions.iter().filter(is_advised) {
                let fewer: Vec<String> = commands
                    .iter()
                    .filter(|command| !spare.commands().contains(command))
                    .cloned()
                    .collect();
                prop_assert!(!works(&fewer, workload), "{workload}: {:?}", spare);
            }
            let after = outcomes(&carried_out(&request, &plan, commands));
            let breaks = after.iter().any(|(key, starts)| !starts && before[key]);
            let fix = check.finding.fix.as_deref().unwrap();
            prop_assert_eq!(fix.contains("other images would then no longer start"), breaks, "{}", fix);
        }
    }
}
