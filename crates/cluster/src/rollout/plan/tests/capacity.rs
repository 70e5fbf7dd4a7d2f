use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

use super::search::{clusters, execute};
use super::*;

/// A `DaemonSet` on all Windows nodes.
const SET: &str = "kind: DaemonSet\nmetadata: {name: p0}\nspec: {template: {spec: {os: {name: \
                   windows}, nodeSelector: {kubernetes.io/os: windows}, containers: [{image: \
                   repo.example/i0:1}]}}}\n";

fn starting(rollout: &Rollout, workload: usize) -> usize {
    let mut outcomes = rollout.outcomes();
    outcomes.nth(workload).unwrap().starts_on
}

#[test]
fn a_daemon_set_keeps_every_node_where_it_starts() {
    // It starts on three of four nodes, two of which share their build with the fourth.
    let hosts = ["20348.2402", "17763.1158", "17763.1158", "17763.973"];
    let mut request = request(&hosts, &["17763.1158"]);
    set_workloads(&mut request, SET);
    request.images[0].content =
        ImageContent::Index(vec![single("17763.1158"), single("20348.2402")]);
    assert_eq!(starting(&Rollout::new(&request), 0), 3);
    assert_eq!(
        short_of(&request),
        ["patch n3 to 17763.1158"],
        "a pin to 20348 would cost it two nodes"
    );
}

#[test]
fn a_daemon_set_stays_on_all_builds_where_it_starts() {
    let hosts = ["17763.1158", "20348.1", "26100.2314"];
    let request = restricted(&hosts, &["20348.1"], &[("DaemonSet", vec![0], 0b111)]);
    assert_eq!(starting(&Rollout::new(&request), 0), 2);
    assert_eq!(short_of(&request), ["pin p0 NotIn 10.0.17763"]);
}

#[test]
fn a_pin_that_loses_nodes_says_so() {
    let hosts = ["20348.2402", "20348.2402", "17763.1158", "17763.973"];
    let mut request = restricted(&hosts, &["17763.1158"], &[("Deployment", vec![0], 0b1111)]);
    request.images[0].content =
        ImageContent::Index(vec![single("17763.1158"), single("20348.2402")]);
    let plan = plan(&request);
    let title = plan.actions[0].title(&Rollout::new(&request));
    assert!(
        title.ends_with("(keeps 2 of 4 nodes; it starts on 3 now)"),
        "{title}"
    );
    let counts = |starts, of| NodeCounts { starts, of };
    assert_eq!(
        plan.capacity,
        [[CapacityChange {
            workload: 0,
            before: counts(3, 4),
            after: counts(2, 2),
        }]]
    );
}

#[test]
fn nothing_is_done_for_a_workload_that_stays_broken() {
    let mut request = restricted(
        &["17763.973", "17763.1158"],
        &["17763.1158", "17763.1"],
        &[("Deployment", vec![0], 0b11)],
    );
    assert_eq!(plan(&request).actions.len(), 1);
    // A second container, for Linux.
    restrict(&mut request, &[("Deployment", vec![0, 1], 0b11)]);
    request.images[1].content = ImageContent::Single(linux());
    let (rollout, plan) = advise(&request);
    assert_eq!(plan.actions, []);
    let mut commands = rollout.checks().flat_map(|check| &check.finding.commands);
    assert_eq!(commands.next(), None);
}

#[test]
fn a_patch_lists_every_step_of_its_nodes() {
    let steps = |hosts: &[&str]| {
        let plan = plan(&request(hosts, &["17763.973", "17763.1158"]));
        let mut actions = plan.actions.iter();
        let patch = actions.find(|action| matches!(action, PlanAction::Patch { .. }));
        let patch = patch.unwrap();
        (steps_of(patch), patch.commands().len())
    };
    let one = [
        "$ wincimg node hotfix script 17763.1158 --output KB4549949.ps1",
        "$ kubectl drain n0 --ignore-daemonsets",
        "run KB4549949.ps1 on n0 as an administrator",
        "$ kubectl uncordon n0",
    ];
    let expected = (one.map(str::to_owned).to_vec(), 2);
    assert_eq!(steps(&["17763.973", "17763.1158"]), expected);
    let (two, commands) = steps(&["17763.973", "17763.973", "17763.1158"]);
    assert_eq!((two.len(), commands), (7, 1));
    let (many, _) = steps(&[&["17763.973"; 9][..], &["17763.1158"]].concat());
    let repeat = "repeat the last 3 steps for each of the other 8 nodes";
    assert_eq!(many[4..], [repeat]);
}

#[test]
fn text_and_command_name_the_same_build() {
    let request = request(&["17763.973", "17763.1012"], &["17763.1158"]);
    let (rollout, _) = advise(&request);
    for check in rollout.checks() {
        let fix = check.finding.fix.as_deref().unwrap();
        assert!(fix.contains("17763.973"), "{fix}");
        assert!(check.finding.commands[0].contains("--host-build 17763.973 "));
    }
}

#[test]
fn the_warning_about_the_selector_has_the_pin_of_the_plan() {
    for (hosts, selector, words) in [
        (
            &["17763.1158", "20348.2402"][..],
            "{\"node.kubernetes.io/windows-build\":\"10.0.20348\"}",
            "node.kubernetes.io/windows-build=10.0.20348",
        ),
        // One off the other nodes leads to Linux, too.
        (
            &["17763.1158", "20348.2402", "26100.2314"],
            "{\"kubernetes.io/os\":\"windows\"}",
            "nodeSelector: {kubernetes.io/os: windows}",
        ),
    ] {
        let mut request = request(hosts, &["20348.2402"]);
        set_workload(&mut request, "Deployment", "i0", "");
        let (rollout, _) = advise(&request);
        let warning = rollout
            .checks()
            .find(|check| check.finding.rule == "no-windows-selector");
        let finding = warning.unwrap().finding;
        assert!(finding.commands[0].contains(selector), "{finding:?}");
        let fix = finding.fix.as_deref().unwrap();
        assert!(fix.contains(words), "{fix}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::with_cases(100)
    })]

    #[test]
    fn no_plan_costs_a_daemon_set_a_node((request, _) in clusters()) {
        let mut request = request;
        for workload in &mut request.workloads {
            "DaemonSet".clone_into(&mut workload.id.kind);
        }
        let rollout = Rollout::new(&request);
        let plan = plan(&request);
        for (action, changes) in plan.actions.iter().zip(&plan.capacity) {
            for change in changes.iter().filter(|_| matches!(action, PlanAction::Pin { .. })) {
                prop_assert!(change.after.starts >= change.before.starts, "{:?}", plan);
            }
        }
        let all: Vec<String> = plan.actions.iter().flat_map(PlanAction::commands).collect();
        let after = execute(&request, &plan, &all);
        for index in 0..rollout.workloads.len() {
            prop_assert!(starting(&after, index) >= starting(&rollout, index), "{:?}", plan);
        }
    }

    #[test]
    fn the_last_count_of_a_workload_is_that_of_the_whole_plan((request, _) in clusters()) {
        let plan = plan(&request);
        let all: Vec<String> = plan.actions.iter().flat_map(PlanAction::commands).collect();
        let after = execute(&request, &plan, &all);
        let mut last: BTreeMap<usize, NodeCounts> = BTreeMap::new();
        for change in plan.capacity.iter().flatten() {
            if let Some(before) = last.insert(change.workload, change.after) {
                prop_assert_eq!(before, change.before);
            }
        }
        let outcomes: Vec<_> = after.outcomes().collect();
        for (workload, counts) in last {
            let outcome = &outcomes[workload];
            prop_assert_eq!((counts.starts, counts.of), (outcome.starts_on, outcome.nodes), "{:?}", plan);
        }
    }
}
