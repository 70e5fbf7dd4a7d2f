//! Runtime classes.

use wincimg_windows::compat::{HostBuild, Isolation};

use super::*;
use crate::nodes::Node;
use crate::pod::Hyperv;
use crate::scheduling::System;

#[test]
fn a_runtime_class_adds_its_selector_and_its_isolation() {
    let class = "\
kind: RuntimeClass
metadata: {name: old}
handler: runhcs-wcow-hypervisor-17763
scheduling:
  nodeSelector: {kubernetes.io/os: windows, node.kubernetes.io/windows-build: 10.0.20348}
  tolerations: [{key: os, value: windows}]
---
kind: Pod
metadata: {name: p}
spec: {runtimeClassName: old, containers: [{name: c, image: i}]}
";
    let workloads = read(class);
    let template = &workloads[0].template;
    assert_eq!(template.scheduling.selector.len(), 2);
    assert_eq!(template.scheduling.tolerations.len(), 1);
    assert_eq!(template.system(), System::Windows);
    assert_eq!(template.machine_build(), Some(17763));
    let isolation =
        |supported| template.isolation(&template.containers[0], supported, Isolation::Process);
    assert_eq!(isolation(Hyperv::OfContainerd), Isolation::HyperV);
    assert_eq!(isolation(Hyperv::OfDocker), Isolation::Process);
    assert_eq!(isolation(Hyperv::No), Isolation::Process);
}

#[test]
fn a_pod_that_contradicts_its_runtime_class_lands_nowhere() {
    let with_build = |build: &str| {
        let text = format!(
            "kind: RuntimeClass\nmetadata: {{name: old}}\nhandler: runhcs-wcow-process\n\
             scheduling: {{nodeSelector: {{node.kubernetes.io/windows-build: 10.0.17763}}}}\n---\n\
             kind: Pod\nspec:\n  runtimeClassName: old\n  containers: [{{image: i}}]\n  \
             nodeSelector: {{node.kubernetes.io/windows-build: {build}}}\n"
        );
        read(&text).remove(0).template.scheduling
    };
    let hosts = ["17763.1158", "20348.1"]
        .map(|version| Node::from_build(HostBuild::new(version.parse().unwrap())));
    let admitted = |build: &str| {
        hosts
            .iter()
            .filter(|host| with_build(build).admits(host))
            .count()
    };
    assert_eq!(admitted("10.0.17763"), 1);
    assert_eq!(admitted("10.0.20348"), 0);
}

#[test]
fn the_name_of_an_unknown_runtime_class_says_nothing() {
    for class in ["no-hyperv", "windows-hyperv", "windows-2019"] {
        let pod =
            format!("kind: Pod\nspec: {{runtimeClassName: {class}, containers: [{{image: i}}]}}");
        let workloads = read(&pod);
        let template = &workloads[0].template;
        assert_eq!(template.hyperv, Hyperv::No, "{class}");
        assert_eq!(template.missing_class(), Some(class));
    }
}
