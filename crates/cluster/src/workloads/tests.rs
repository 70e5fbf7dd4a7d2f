//! Workloads from texts, and the helpers of all their tests.

mod controllers;
mod custom_resources;
mod documents;
mod pods;
mod runtime_classes;

use super::*;

fn listed(text: &str) -> WorkloadList {
    let mut list = WorkloadList::default();
    list.read(text, "app.yaml")
        .unwrap_or_else(|error| panic!("{error}"));
    list.apply_references();
    list
}

fn read(text: &str) -> Vec<Workload> {
    listed(text).into_workloads()
}

fn message(text: &str) -> String {
    WorkloadList::default()
        .read(text, "app.yaml")
        .unwrap_err()
        .to_string()
}

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  template:
    spec:
      nodeSelector: {kubernetes.io/os: windows}
      terminationGracePeriodSeconds: 120
      initContainers:
      - {name: setup, image: repo/setup:1}
      containers:
      - {name: web, image: repo/web:1.4}
";

/// A pod created by a controller, as a cluster returns it.
fn made(name: &str, owner: &str, image: &str) -> String {
    format!(
        "---\nkind: Pod\nmetadata:\n  name: {name}\n  uid: abc\n  ownerReferences: [{owner}]\n\
         spec: {{nodeName: n-{name}, terminationGracePeriodSeconds: 30, containers: [{{name: c, image: {image}}}]}}\n"
    )
}

/// The images of each workload found, and the skipped objects.
fn found(text: &str) -> (Vec<Vec<String>>, Vec<String>) {
    let list = listed(text);
    let skipped = list.skipped.iter().map(ToString::to_string).collect();
    let images = list.into_workloads().into_iter().map(|workload| {
        let containers = workload.template.containers.into_iter();
        containers.map(|container| container.image).collect()
    });
    (images.collect(), skipped)
}
