//! Order of a plan's actions, and the workloads that start in between.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use wincimg_oci::store::Location;

use super::search::clusters;
use super::*;
use crate::pod::{Container, PullPolicy};
use crate::rollout::tags::with_tag;

/// Interruptions of a plan: the workload, its hosts, and the interval of actions.
fn interrupted(plan: &ActionPlan) -> Vec<(usize, Vec<usize>, usize, Option<usize>)> {
    let all = plan.interruptions.iter();
    all.map(|it| (it.workload, it.hosts.clone(), it.from, it.until))
        .collect()
}

#[test]
fn an_image_is_rolled_out_while_the_hosts_that_need_a_patch_for_it_are_cordoned() {
    // n1 needs the new side and shares its image with n0.
    let hosts = ["17763.973", "17763.1158"];
    let mut request = restricted(&hosts, &["17763.973"], &[("Deployment", vec![0], 0b11)]);
    assert_eq!(
        short_of(&request),
        ["build i0 for 17763.1158", "patch n0 to 17763.1158"]
    );
    let plan_of_one = plan(&request);
    assert!(
        plan_of_one.interruptions.is_empty(),
        "its new pods go to n1"
    );
    // The existing tag takes effect on pods with the build.
    assert_eq!(plan_of_one.actions[0].commands()[0], "kubectl cordon n0");
    request.today = Some("2026-11-24".parse().unwrap());
    let plan = plan(&request);
    let commands = plan.actions[0].commands();
    assert!(commands[0].starts_with("wincimg build"), "{commands:?}");
    assert_eq!(commands[1], "kubectl cordon n0");
    assert!(commands[2].starts_with("kubectl set image"), "{commands:?}");
}

#[test]
fn nothing_is_cordoned_for_a_daemon_set_which_is_interrupted() {
    let hosts = ["17763.973", "17763.1158"];
    let request = restricted(&hosts, &["17763.973"], &[("DaemonSet", vec![0], 0b11)]);
    assert_eq!(
        short_of(&request),
        ["build i0 for 17763.1158", "patch n0 to 17763.1158"]
    );
    let plan = plan(&request);
    assert_eq!(interrupted(&plan), [(0, vec![0], 0, Some(1))]);
    let commands = plan.actions[0].commands();
    assert!(
        commands.iter().all(|it| !it.contains("cordon")),
        "{commands:?}"
    );
}

#[test]
fn what_a_build_does_not_break_comes_first_and_is_not_interrupted() {
    let hosts = ["17763.973", "17763.1158", "18363.592", "18363.900"];
    let images = ["17763.973", "18363.592", "17763.1"];
    let landings = [
        ("Deployment", vec![0], 0b0011),
        ("Deployment", vec![1], 0b1100),
        ("CloneSet", vec![2], 0b1000),
    ];
    let request = restricted(&hosts, &images, &landings);
    assert_eq!(
        short_of(&request),
        [
            "build i2 for 17763.973 18363.900",
            "build i0 for 17763.1158",
            "patch n0 to 17763.1158",
            "build i1 for 18363.900",
            "patch n2 to 18363.900",
        ]
    );
    let plan = plan(&request);
    assert!(plan.interruptions.is_empty(), "{plan:?}");
    let cordons = [1, 3].map(|place| plan.actions[place].commands()[0].clone());
    assert_eq!(cordons, ["kubectl cordon n0", "kubectl cordon n2"]);
}

/// The steps of the patch of n0, which shares an image with n1, beside these objects.
fn patch_beside(objects: &str) -> (ActionPlan, Vec<String>) {
    let mut request = request(&["17763.973", "17763.1158"], &["17763.973"]);
    request.today = Some("2026-11-24".parse().unwrap());
    let shared = "kind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {os: {name: \
                  windows}, containers: [{name: c, image: 'repo.example/i0:1'}]}}}\n---\n";
    set_workloads(&mut request, &format!("{shared}{objects}"));
    let plan = plan(&request);
    let mut actions = plan.actions.iter();
    let patch = actions.find(|action| matches!(action, PlanAction::Patch { .. }));
    let steps = patch.unwrap().steps().iter().map(|step| match step {
        ActionStep::Command(text) | ActionStep::Manual(text) => text.clone(),
    });
    let steps = steps.collect();
    (plan, steps)
}

#[test]
fn a_drain_is_not_refused_and_its_losses_are_named() {
    let spec = "os: {name: windows}, containers: [{name: c, image: 'repo.example/i0:1'}]";
    let volumes = "volumes: [{name: v, emptyDir: {}}]";
    let pod = |more: &str, spec: &str| {
        format!("kind: Pod\nmetadata: {{name: bare, namespace: shop{more}}}\nspec: {{{spec}}}\n")
    };
    let on_n0 = format!("{spec}, nodeName: n0");
    let owner =
        |kind: &str| format!(", ownerReferences: [{{kind: {kind}, name: n0, controller: true}}]");
    let made_by = |kind: &str| {
        format!(
            "kind: {kind}\nmetadata: {{name: cache}}\nspec: {{template: {{spec: {{{spec}, {volumes}}}}}}}\n"
        )
    };
    let (moved, deleting) = (
        "delete Pod shop/bare, which drain refuses (it has no controller); create it again after \
         the uncordon with the image repo.example/i0:1-20261124",
        "kubectl drain n0 --ignore-daemonsets --delete-emptydir-data",
    );
    for (objects, is_moved, is_lost) in [
        (pod("", &on_n0), true, false),
        (pod("", &format!("{on_n0}, {volumes}")), true, true),
        (pod("", &format!("{spec}, nodeName: n1")), false, false),
        (pod(&owner("ReplicaSet"), &on_n0), false, false),
        (
            pod(&owner("ReplicaSet"), &format!("{on_n0}, {volumes}")),
            false,
            true,
        ),
        (
            pod(&owner("Node"), &format!("{on_n0}, {volumes}")),
            false,
            false,
        ),
        (made_by("Deployment"), false, true),
        (made_by("DaemonSet"), false, false),
    ] {
        let (plan, steps) = patch_beside(&objects);
        let place = |text: &str| steps.iter().position(|step| step == text);
        let drain = if is_lost {
            deleting
        } else {
            "kubectl drain n0 --ignore-daemonsets"
        };
        let drain = place(drain);
        assert!(drain.is_some(), "{objects} {steps:?}");
        let expected = drain.filter(|_| is_moved).map(|drain| drain - 1);
        assert_eq!(place(moved), expected, "{objects} {steps:?}");
        let lost = plan.interruptions.iter().filter(|it| it.loses_data);
        let lost: Vec<_> = lost
            .map(|it| (it.workload, it.hosts.clone(), it.from))
            .collect();
        let expected = is_lost.then(|| (1, vec![0], plan.actions.len() - 1));
        assert_eq!(lost, expected.into_iter().collect::<Vec<_>>(), "{objects}");
        let mut others = plan.interruptions.iter().filter(|it| !it.loses_data);
        let is_stopped = others.any(|it| it.workload == 1 && it.until == Some(it.from));
        assert_eq!(is_stopped, is_moved, "{objects}");
    }
}

#[test]
fn what_stops_before_its_pods_find_another_host_is_named() {
    let object = |kind: &str, image: &str, nodes: &str, fields: &str| {
        let terms =
            format!("[{{matchFields: [{{key: metadata.name, operator: In, values: [{nodes}]}}]}}]");
        let template = format!(
            "template: {{spec: {{os: {{name: windows}}, containers: [{{name: c, image: \
             'repo.example/{image}:1'}}], affinity: {{nodeAffinity: \
             {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: {terms}}}}}}}}}}}"
        );
        let spec = match kind {
            "CronJob" => format!("jobTemplate: {{spec: {{{template}}}}}"),
            _ => template,
        };
        format!("kind: {kind}\nmetadata: {{name: own}}\nspec: {{{spec}{fields}}}\n")
    };
    let until_the_patch = vec![(1, vec![0], 0, Some(1))];
    let by_the_drain = vec![(1, vec![0], 1, Some(1))];
    let recreate = ", strategy: {type: Recreate}";
    for (objects, expected) in [
        (object("Deployment", "i0", "n0", ""), &by_the_drain),
        // Needs nothing of the plan.
        (object("Deployment", "other", "n0", ""), &by_the_drain),
        (object("Deployment", "i0", "n0", recreate), &until_the_patch),
        (
            object("Deployment", "i0", "n0", ", replicas: 4"),
            &until_the_patch,
        ),
        (object("StatefulSet", "i0", "n0", ""), &until_the_patch),
        (object("CronJob", "i0", "n0", ""), &until_the_patch),
        (object("Deployment", "i0", "n0, n1", recreate), &Vec::new()),
        (object("Deployment", "i0", "n1", recreate), &Vec::new()),
    ] {
        let (plan, _) = patch_beside(&objects);
        assert_eq!(plan.actions.len(), 2, "{plan:?}");
        assert_eq!(&interrupted(&plan), expected, "{objects}");
    }
}

#[test]
fn what_moves_among_drained_hosts_is_not_named() {
    // n0 and n1 are patched for the image that n2 needs, too.
    let hosts = ["17763.973", "17763.973", "17763.1158"];
    let landings = [
        ("Deployment", vec![0], 0b111),
        ("Deployment", vec![1], 0b011),
        ("Deployment", vec![1], 0b010),
    ];
    let mut request = restricted(&hosts, &["17763.1158", "17763.1158"], &landings);
    // Those on n0 and n1 use no Windows of their image.
    request.images.truncate(1);
    assert_eq!(short_of(&request), ["patch n0,n1 to 17763.1158"]);
    assert_eq!(interrupted(&plan(&request)), [(2, vec![1], 0, Some(0))]);
}

#[test]
fn pods_that_do_not_start_lose_no_data_but_would_be_refused() {
    let object = |name: &str, image: &str, volumes: &str| {
        format!(
            "---\nkind: Deployment\nmetadata: {{name: {name}}}\nspec: {{template: {{spec: {{os: \
             {{name: windows}}, containers: [{{name: c, image: 'repo.example/{image}:1'}}]{volumes}}}}}}}\n"
        )
    };
    let broken = object("old", "i1", ", volumes: [{name: v, emptyDir: {}}]");
    let mut request = request(&["17763.973", "17763.1158"], &["17763.973", "20348.1"]);
    set_workloads(&mut request, &(object("web", "i0", "") + &broken));
    rename(
        &mut request,
        1,
        "mcr.microsoft.com/windows/servercore:10.0.20348.1",
    );
    let plan = plan(&request);
    let patch = plan.actions.last().unwrap().steps();
    let drain = "kubectl drain n0 --ignore-daemonsets --delete-emptydir-data";
    let drain = ActionStep::Command(drain.to_owned());
    assert!(patch.contains(&drain), "{plan:?}");
    assert!(plan.interruptions.is_empty(), "{plan:?}");
}

#[test]
fn a_running_pod_gets_its_image_with_the_patch_of_its_host() {
    let pod = |node: &str, owner: &str| {
        format!(
            "kind: Pod\nmetadata: {{name: bare{owner}}}\nspec: {{nodeName: {node}, os: {{name: \
             windows}}, containers: [{{name: c, image: 'repo.example/i0:1'}}]}}\n"
        )
    };
    let image = "kubectl set image pod/bare c=repo.example/i0:1-20261124";
    let has_image = |plan: &ActionPlan| {
        let mut steps = plan.actions.iter().flat_map(PlanAction::steps);
        steps.any(|step| *step == ActionStep::Command(image.to_owned()))
    };
    let (on_old, _) = patch_beside(&pod("n0", ""));
    assert!(!has_image(&on_old), "{on_old:?}");
    let (on_new, _) = patch_beside(&pod("n1", ""));
    assert!(has_image(&on_new), "{on_new:?}");
    // The kubelet restarts a static pod at once.
    let owner = ", ownerReferences: [{kind: Node, name: n0, controller: true}]";
    let (of_manifest, patch) = patch_beside(&pod("n0", owner));
    let manifest = "set the image repo.example/i0:1-20261124 in the manifest of Pod default/bare, \
                    a static pod, on its node";
    assert_eq!(patch[1], "kubectl drain n0 --ignore-daemonsets");
    assert_eq!(patch[2], manifest);
    assert!(patch[3].starts_with("run "), "{patch:?}");
    let before = of_manifest.actions[0].steps();
    let is_there = before.contains(&ActionStep::Manual(manifest.to_owned()));
    assert!(!is_there, "{before:?}");
    assert!(of_manifest.interruptions.is_empty(), "{of_manifest:?}");
    let mut changes = of_manifest.capacity[0].iter();
    assert!(
        changes.all(|change| change.workload != 1),
        "{of_manifest:?}"
    );
}

#[test]
fn a_pod_that_may_run_on_a_patched_node_is_not_changed_in_place_there() {
    let pod = |names: &str, more: &str| {
        format!(
            "kind: Pod\nmetadata: {{name: bare{more}}}\nspec: {{os: {{name: windows}}, containers: \
             [{{name: c, image: 'repo.example/i0:1'}}], affinity: {{nodeAffinity: \
             {{requiredDuringSchedulingIgnoredDuringExecution: {{nodeSelectorTerms: [{{matchFields: \
             [{{key: metadata.name, operator: In, values: [{names}]}}]}}]}}}}}}}}\n"
        )
    };
    let delete = "delete Pod default/bare, which drain refuses (it has no controller), if it is on \
                  this node; create it again after the uncordon with the image \
                  repo.example/i0:1-20261124";
    let set = "kubectl set image pod/bare c=repo.example/i0:1-20261124";
    let steps_on = |hosts: &[&str], object: &str| {
        let mut request = request(hosts, &["17763.973"]);
        request.today = Some("2026-11-24".parse().unwrap());
        let shared = "---\nkind: Deployment\nmetadata: {name: web}\nspec: {template: {spec: {os: \
                      {name: windows}, containers: [{name: c, image: 'repo.example/i0:1'}]}}}\n";
        set_workloads(&mut request, &format!("{object}{shared}"));
        let plan = plan(&request);
        let stopped = plan.interruptions.iter().map(|it| it.hosts.clone());
        let stopped: Vec<_> = stopped.collect();
        (plan.actions.iter().flat_map(steps_of).collect(), stopped)
    };
    let hosts = ["17763.973", "17763.1158"];
    let (steps, stopped): (Vec<String>, _) = steps_on(&hosts, &pod("n0", ""));
    assert!(!steps.iter().any(|step| step.contains(set)), "{steps:?}");
    let place = steps.iter().position(|step| step == delete);
    let drain = "$ kubectl drain n0 --ignore-daemonsets";
    let drain = steps.iter().position(|step| step == drain).unwrap();
    assert_eq!(place, Some(drain - 1), "{steps:?}");
    assert_eq!(stopped, [vec![0]]);
    // It may be on another node, too.
    let (steps, _): (Vec<String>, _) = steps_on(&hosts, &pod("n0, n1", ""));
    let elsewhere = format!("unless Pod default/bare is on a node that is patched later: {set}");
    assert!(steps.contains(&elsewhere), "{steps:?}");
    assert!(steps.iter().any(|step| step == delete), "{steps:?}");
    // It is not on a node that is patched, or on none at all.
    for object in [pod("n1", ""), pod("n0", ", uid: '1'")] {
        let (steps, stopped): (Vec<String>, _) = steps_on(&hosts, &object);
        assert!(steps.contains(&format!("$ {set}")), "{steps:?}");
        assert!(stopped.is_empty(), "{stopped:?}");
    }
    // Many nodes have the steps of one as an example.
    let many = [&["17763.973"; 5][..], &["17763.1158"]].concat();
    let (steps, _): (Vec<String>, _) = steps_on(&many, &pod("n0, n1, n2, n3, n4", ""));
    let drains = steps.iter().filter(|step| step.contains("kubectl drain"));
    assert_eq!(drains.count(), 1, "{steps:?}");
    assert!(steps.iter().any(|step| step == delete), "{steps:?}");
}

#[test]
fn what_a_patch_breaks_for_good_is_said() {
    let hosts = ["17763.973", "17763.1158"];
    let landings = [("Deployment", vec![0], 0b11), ("Deployment", vec![1], 0b01)];
    let mut request = restricted(&hosts, &["17763.973", "17763.973"], &landings);
    rename(
        &mut request,
        1,
        "mcr.microsoft.com/windows/servercore:10.0.17763.973",
    );
    let plan = plan(&request);
    assert_eq!(plan.actions.len(), 2);
    assert_eq!(plan.then.incompatible, 1);
    assert_eq!(interrupted(&plan), [(1, vec![0], 1, None)]);
}

#[test]
fn a_pinned_workload_gets_the_new_tag_where_its_host_is_patched() {
    let hosts = ["17763.973", "17763.1158", "18363.592", "18363.900"];
    let landings = [
        ("Deployment", vec![0], 0b0101),
        ("Deployment", vec![0], 0b0010),
        ("Deployment", vec![0], 0b1000),
    ];
    let mut request = restricted(&hosts, &["17763.973"], &landings);
    request.today = Some("2026-11-24".parse().unwrap());
    assert_eq!(
        short_of(&request),
        [
            "pin p0 to 10.0.17763",
            "build i0 for 17763.1158 18363.900",
            "patch n0 to 17763.1158",
        ]
    );
    let plan = plan(&request);
    let reported = plan.actions[1].commands().into_iter();
    let reported = reported.filter(|command| command.starts_with("kubectl set image deployment/p"));
    assert_eq!(reported.count(), 3, "{plan:?}");
}

fn rename(request: &mut RolloutRequest, image: usize, name: &str) {
    let old = request.images[image].reference.replace(name.to_owned());
    let workloads = request.workloads.iter_mut();
    for container in workloads.flat_map(|own| &mut own.template.containers) {
        if Some(&container.image) == old.as_ref() {
            name.clone_into(&mut container.image);
        }
    }
}

/// The containers of the workload that a step names.
fn containers_of<'a>(state: &'a mut RolloutRequest, object: &str) -> &'a mut [Container] {
    let mut workloads = state.workloads.iter_mut();
    let own = workloads.find(|own| object.ends_with(&format!("/{}", own.id.name)));
    &mut own.unwrap().template.containers
}

fn apply_step(state: &mut RolloutRequest, step: &ActionStep) {
    let (ActionStep::Command(text) | ActionStep::Manual(text)) = step;
    let words: Vec<&str> = text.split(' ').collect();
    match &words[..] {
        ["set", "the", "image", image, "in", "CloneSet", id] => {
            let (old, _) = image.rsplit_once('-').unwrap();
            let containers = containers_of(state, id).iter_mut();
            for container in containers.filter(|own| own.image == old) {
                (*image).clone_into(&mut container.image);
            }
        }
        ["delete", "Pod", id, ..] => {
            let made = words.iter().map(|word| word.trim_end_matches(','));
            let made = made.filter(|word| {
                let mut images = state.images.iter();
                images.any(|own| own.reference.as_deref() == Some(*word))
            });
            let made: Vec<&str> = made.collect();
            for container in containers_of(state, id.trim_end_matches(',')) {
                let mut made = made.iter();
                let new = made.find(|new| new.rsplit_once('-').unwrap().0 == container.image);
                if let Some(new) = new {
                    (*new).clone_into(&mut container.image);
                }
            }
        }
        ["kubectl", "cordon", names @ ..] => {
            for node in &mut state.nodes.windows {
                let name = node.name.as_deref().unwrap_or_default();
                node.is_cordoned |= names.contains(&name);
            }
        }
        ["kubectl", "set", "image", object, changes @ ..] => {
            for container in containers_of(state, object) {
                let mut changes = changes.iter().filter_map(|change| change.split_once('='));
                if let Some((_, image)) = changes.find(|(name, _)| *name == container.name) {
                    image.clone_into(&mut container.image);
                }
            }
        }
        _ => {}
    }
}

/// Applies an action's steps to a cluster: a new tag is set on its workloads, and a patched host is
/// uncordoned.
fn after(state: &RolloutRequest, action: &PlanAction) -> RolloutRequest {
    let mut state = state.clone();
    for step in action.steps() {
        apply_step(&mut state, step);
    }
    match action {
        PlanAction::Pin { workload, pin, .. } => pin.apply(&mut state.workloads[*workload]),
        PlanAction::Patch { to, hosts, .. } => {
            for host in hosts {
                let node = &mut state.nodes.windows[*host];
                set_version(node, *to);
                node.is_cordoned = false;
            }
        }
        PlanAction::Rebuild {
            image,
            becomes,
            new_tag: Some(tag),
            ..
        } => {
            let Some(Location::Registry(reference)) = state.images[*image].location() else {
                panic!("only a registry has tags");
            };
            state.images.push(Image {
                reference: Some(with_tag(&reference, tag)),
                ..Image::clone(becomes)
            });
        }
        PlanAction::Rebuild { image, becomes, .. } => state.images[*image] = Image::clone(becomes),
    }
    state
}

/// Returns true if each workload starts on each host where its pods can be scheduled.
fn landed_on(state: &RolloutRequest) -> BTreeMap<(usize, usize), bool> {
    let rollout = Rollout::new(state);
    let mut starts = BTreeMap::new();
    for placement in &rollout.placements {
        let Some(workload) = placement.workload else {
            continue;
        };
        // Only some of the workloads are checked.
        let name = &rollout.workloads[workload].id.name;
        let workload = name[1..].parse().unwrap();
        for &(host, group) in &placement.selection.hosts {
            let mut images = placement.images.iter();
            let starts_here = images
                .all(|own| own.findings[group as usize].outcome != VerdictOutcome::Incompatible);
            starts.insert((workload, host as usize), starts_here);
        }
    }
    starts
}

/// Workloads that start in `before` and not in `now`, though their pods can be scheduled there.
fn lost(
    before: &BTreeMap<(usize, usize), bool>,
    now: &BTreeMap<(usize, usize), bool>,
) -> BTreeSet<(usize, usize)> {
    let lost = now
        .iter()
        .filter(|(pair, starts)| !**starts && before.get(*pair) == Some(&true));
    lost.map(|(pair, _)| *pair).collect()
}

/// Returns true if some order of the actions never loses a pair. `lost` has what each set of
/// executed actions loses, with one bit for each action.
fn is_avoidable(pair: (usize, usize), lost: &[BTreeSet<(usize, usize)>]) -> bool {
    let mut reached = vec![true];
    for (done, lost) in lost.iter().enumerate().skip(1) {
        let mut before = (0..usize::BITS).map(|bit| done & !(1 << bit));
        let is_reached = before.any(|before| before != done && reached[before]);
        reached.push(is_reached && !lost.contains(&pair));
    }
    reached.last() == Some(&true)
}

/// More clusters: third-party images, cordoned nodes, with and without new tags.
fn mixed_clusters() -> impl Strategy<Value = RolloutRequest> {
    let tags = prop::sample::select(&[None, Some("2026-11-24")]);
    (clusters(), 0_usize..9, 0_usize..9, tags).prop_map(
        |((mut request, _), other, cordoned, day)| {
            request.today = day.map(|day| day.parse().unwrap());
            for (index, own) in request.workloads.iter_mut().enumerate() {
                for container in &mut own.template.containers {
                    container.name = container.image.replace(['/', ':', '.'], "");
                    if index % 2 == 1 {
                        container.pull_policy = PullPolicy::Always;
                    }
                }
            }
            if other < request.images.len() {
                rename(
                    &mut request,
                    other,
                    "mcr.microsoft.com/windows/servercore:1",
                );
            }
            if let Some(node) = request.nodes.windows.get_mut(cordoned) {
                node.is_cordoned = true;
            }
            request
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::with_cases(100)
    })]

    #[test]
    fn nothing_that_starts_today_fails_in_between(request in mixed_clusters()) {
        let plan = plan(&request);
        let today = landed_on(&request);
        let is_cordoned = |state: &RolloutRequest, host: usize| state.nodes.windows[host].is_cordoned;
        let mut state = request.clone();
        let mut ever_lost = BTreeSet::new();
        for (step, action) in plan.actions.iter().enumerate() {
            state = after(&state, action);
            let lost = lost(&today, &landed_on(&state));
            let printed: BTreeSet<(usize, usize)> = plan
                .interruptions
                .iter()
                .filter(|it| it.from <= step && it.until.is_none_or(|until| step < until))
                .flat_map(|it| it.hosts.iter().map(move |host| (it.workload, *host)))
                .collect();
            for pair in &printed {
                prop_assert!(lost.contains(pair), "{:?} after {} of {:?}", pair, step, plan);
            }
            for pair in &lost {
                let goes_elsewhere = is_cordoned(&state, pair.1);
                prop_assert!(printed.contains(pair) || goes_elsewhere, "after {} of {:?}", step, plan);
            }
            ever_lost.extend(lost);
        }
        // Each interruption occurs in every order.
        let count = plan.actions.len();
        if ever_lost.is_empty() || count > 7 {
            return Ok(());
        }
        let mut states = vec![request.clone()];
        for done in 1..1_usize << count {
            let last = usize::try_from(done.ilog2()).unwrap();
            let state = after(&states[done & !(1 << last)], &plan.actions[last]);
            states.push(state);
        }
        let of_states: Vec<_> = states
            .iter()
            .map(|state| lost(&today, &landed_on(state)))
            .collect();
        for pair in ever_lost {
            prop_assert!(!is_avoidable(pair, &of_states), "{:?} of {:?}", pair, plan);
        }
    }
}
