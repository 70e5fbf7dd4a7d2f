//! Workloads whose images are for Linux and for Windows.

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
