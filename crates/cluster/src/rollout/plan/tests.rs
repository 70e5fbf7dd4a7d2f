//! Plans for small clusters, and the helpers of all tests of plans.

mod both_systems;
mod capacity;
mod effects;
mod landing;
mod order;
mod pins;
mod refused_pods;
mod runtime_classes;
mod search;
mod updates;

use wincimg_windows::compat::{ContainerRuntime, HostBuild, Isolation};

use super::*;
use crate::nodes::{Node, NodeList, Taint};
use crate::rollout::fix::MOST_ACTIONS;
use crate::rollout::{CommandFlags, EntryContent, ImageContent, StartStatus, Variant};
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
    Variant::of_version(version(text))
}

fn plan(request: &RolloutRequest) -> ActionPlan {
    ActionPlan::new(request, &Rollout::new(request), &TagsByRepository::new())
}

/// The steps of an action: commands begin with `$`.
fn steps_of(action: &PlanAction) -> Vec<String> {
    let steps = action.steps().iter().map(|step| match step {
        ActionStep::Command(command) => format!("$ {command}"),
        ActionStep::Manual(text) => text.clone(),
    });
    steps.collect()
}

/// A plan, and the rollout whose findings have its actions as fixes.
fn advise(request: &RolloutRequest) -> (Rollout, ActionPlan) {
    let mut rollout = Rollout::new(request);
    let plan = rollout.advise(request, &TagsByRepository::new());
    (rollout, plan)
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

/// The plan in short form: `patch n0,n1 to 17763.1158`, `build i0 for 17763.973 20348.1`, `pin p0
/// to 10.0.17763`.
fn short(hosts: &[&str], images: &[&str]) -> Vec<String> {
    short_of(&request(hosts, images))
}

fn show_pin(pin: &Pin) -> String {
    match (pin.selector(), pin.affinity()) {
        (Some((_, value)), None) => format!("to {value}"),
        (None, Some(it)) => format!("{:?} {}", it.operator, it.values.join(" ")),
        both => panic!("{both:?}"),
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
        PlanAction::Pin { workload, pin, .. } => format!("pin p{workload} {}", show_pin(pin)),
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
fn nothing_is_built_on_a_dead_base_that_no_host_needs() {
    assert_eq!(
        short(&["17763.5696"], &["17134.1305"]),
        ["build i0 for 17763.5696"]
    );
    assert_eq!(
        short(&["17134.1305", "17763.5696"], &["17134.1305"]),
        ["build i0 for 17134.1305 17763.5696"]
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
    assert_eq!(versions, ["20348.2402", "17763.5696"]);
}

#[test]
fn what_no_action_fixes_is_left() {
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

/// An index of images of versions, each with the version that its entry states, if any.
fn index(entries: &[(&str, &str)]) -> Image {
    let variants = entries.iter().map(|(stated, own)| {
        let entry = Variant {
            os_version: (!stated.is_empty()).then(|| version(stated).os_version()),
            ..single(own)
        };
        entry.with_image(single(own))
    });
    Image {
        reference: Some("repo.example/i0:1".to_owned()),
        content: ImageContent::Index(variants.collect()),
    }
}

#[test]
fn an_index_that_hides_its_images_is_written_again_and_nothing_is_built() {
    let hosts = ["17763.1158", "20348.2402"];
    for stated in [["", ""], ["20348.2402", "17763.1158"]] {
        let mut request = request(&hosts, &[]);
        request.images = vec![index(&[(stated[0], hosts[0]), (stated[1], hosts[1])])];
        request.plain = 1;
        let (rollout, plan) = advise(&request);
        assert!(plan.actions.is_empty(), "{plan:?}");
        let findings = rollout.checks().map(|check| check.finding);
        let failing: Vec<_> = findings
            .filter(|finding| finding.outcome == VerdictOutcome::Incompatible)
            .collect();
        assert!(!failing.is_empty(), "{stated:?}");
        for finding in failing {
            assert_eq!(finding.rule, "contradicting-entry");
            let fix = finding.fix.as_deref().unwrap();
            assert!(fix.starts_with("write the index again"), "{finding:?}");
            assert!(finding.commands.is_empty(), "{finding:?}");
        }
    }
}

#[test]
fn an_image_that_its_index_states_wrongly_is_built_if_it_starts_nowhere() {
    let mut request = request(&["20348.2402"], &[]);
    request.images = vec![index(&[("20348.2402", "17763.1158")])];
    request.plain = 1;
    let plan = plan(&request);
    assert!(
        matches!(plan.actions[..], [PlanAction::Rebuild { .. }]),
        "{plan:?}"
    );
}

#[test]
fn an_image_whose_entry_containerd_refuses_is_built_for_it() {
    let variant = Variant {
        processor_variant: Some("v2".to_owned()),
        ..single("20348.2402")
    };
    let features = Variant {
        os_features: ["win32k", "gpu"].map(str::to_owned).to_vec(),
        ..single("20348.2402")
    };
    let alias = Variant {
        architecture: "x86_64".to_owned(),
        content: EntryContent::Image {
            os: "windows".to_owned(),
            architecture: "amd64".to_owned(),
        },
        ..single("20348.2402")
    };
    let (docker, old, new) = (
        "docker://20.10.9", "containerd://2.2.0", "containerd://2.3.0",
    );
    for (runtime, entry, actions, end) in [
        (old, &variant, 1, ": its entry is for the variant v2"),
        (docker, &variant, 0, ""),
        (new, &features, 1, ": its entry requires the feature gpu"),
        (old, &features, 0, ""),
        (docker, &features, 0, ""),
        (old, &alias, 0, ""),
    ] {
        let mut request = request(&["20348.2402"], &[]);
        request.nodes.windows[0].runtime = ContainerRuntime::from_node(runtime);
        request.images = vec![Image {
            reference: Some("repo.example/i0:1".to_owned()),
            content: ImageContent::Index(vec![entry.clone()]),
        }];
        request.plain = 1;
        let (rollout, plan) = advise(&request);
        let then = plan.then.incompatible;
        assert_eq!((plan.actions.len(), then), (actions, 0), "{plan:?}");
        let finding = rollout.checks().next().unwrap().finding;
        assert!(finding.reason.ends_with(end), "{finding:?}");
        let fix = finding.fix.as_deref().unwrap_or_default();
        assert!(!fix.contains("move the node"), "{fix}");
    }
}

#[test]
fn a_reason_names_the_versions_of_containerd_that_select_nothing() {
    let mut request = request(&["26200.7171"], &[]);
    request.images = vec![index(&[
        ("20348.3091", "20348.3091"),
        ("22621.3155", "20348.5870"),
    ])];
    request.plain = 1;
    let rollout = Rollout::new(&request);
    let reason = &rollout.checks().next().unwrap().finding.reason;
    let end = "; containerd 1.7.6 to 2.1.5 would select 20348.3091; containerd 2.1.6 to 2.3.4 \
               selects none";
    assert!(reason.ends_with(end), "{reason}");
}

#[test]
fn an_image_without_a_version_is_not_inspected_again() {
    for (stated, reason) in [
        (None, "the image's configuration has no os.version"),
        (
            Some("foo"),
            "the image's os.version \"foo\" is not a version of Windows",
        ),
    ] {
        let mut request = request(&["20348.2402"], &["20348.2402"]);
        request.images[0].content = ImageContent::Single(Variant {
            os_version: stated.map(str::to_owned),
            version: None,
            ..single("20348.2402")
        });
        let (rollout, _) = advise(&request);
        let finding = rollout.checks().next().unwrap().finding;
        assert_eq!(finding.reason, reason);
        let fix = finding.fix.as_deref().unwrap();
        assert!(fix.contains("--image-build"), "{fix}");
        assert!(finding.commands.is_empty(), "{finding:?}");
    }
}

#[test]
fn an_artifact_is_no_image_for_another_system() {
    let mut request = request(&["20348.2402"], &["20348.2402"]);
    request.images[0].content = ImageContent::Single(Variant {
        os: "application/vnd.cncf.helm.config.v1+json".to_owned(),
        ..Variant::default()
    });
    let rollout = Rollout::new(&request);
    let finding = rollout.checks().next().unwrap().finding;
    assert_eq!(
        finding.reason,
        "not an image: an artifact of type application/vnd.cncf.helm.config.v1+json, which \
         pods cannot run"
    );
    assert_eq!(finding.fix.as_deref(), Some("name an image"));
}

/// A workload: its kind, the images of its containers, and the nodes it names, by number.
type Landing = (&'static str, Vec<usize>, u32);

/// Restricts images to some of the hosts, by workloads that name them.
fn restrict(request: &mut RolloutRequest, landings: &[Landing]) {
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
    set_workloads(request, &text.join("---\n"));
}

/// A workload p0 with this image, such as `i0`, and further fields of its pods.
fn object(kind: &str, image: &str, fields: &str) -> String {
    let spec = format!("{{containers: [{{image: repo.example/{image}:1}}]{fields}}}");
    let spec = match kind {
        "Pod" => spec,
        _ => format!("{{template: {{spec: {spec}}}}}"),
    };
    format!("kind: {kind}\nmetadata: {{name: p0}}\nspec: {spec}\n")
}

/// Checks only such a workload.
fn set_workload(request: &mut RolloutRequest, kind: &str, image: &str, fields: &str) {
    set_workloads(request, &object(kind, image, fields));
}

fn set_workloads(request: &mut RolloutRequest, text: &str) {
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

fn linux_node() -> Node {
    Node {
        name: Some("linux-a".to_owned()),
        labels: [("kubernetes.io/os".to_owned(), "linux".to_owned())].into(),
        ..Node::from_build(HostBuild::new(version("20348.1")))
    }
}

fn restricted(hosts: &[&str], images: &[&str], landings: &[Landing]) -> RolloutRequest {
    let mut request = request(hosts, images);
    restrict(&mut request, landings);
    request
}
