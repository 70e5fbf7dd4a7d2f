//! Pod templates in objects of other kinds than Kubernetes' own: job sets, scaled jobs, workflows,
//! runners.

use serde_json::{Map, Value, json};

/// The groups of Kubernetes' own API.
const GROUPS: [&str; 21] = [
    "",
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
];

/// Returns true if an `apiVersion` belongs to Kubernetes itself, whose pod-creating kinds are
/// known.
pub(super) fn is_of_kubernetes(api_version: &str) -> bool {
    let group = api_version
        .split_once('/')
        .map_or("", |(group, _version)| group);
    !api_version.is_empty() && GROUPS.contains(&group)
}

/// Finds pod templates in an object: a `spec` with `containers`, or such a spec by itself. A step
/// of an Argo workflow has a single `container` or `script`, and inherits its scheduling from the
/// workflow.
pub(super) fn pod_templates(object: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    if let Value::Object(object) = object {
        for (key, value) in object {
            if key != "metadata" && key != "status" {
                // Searched together with its key, for `spec` itself would match.
                search(&json!({ key.as_str(): value }), &Map::new(), &mut found);
            }
        }
    }
    found
}

fn search(value: &Value, workflow: &Map<String, Value>, found: &mut Vec<Value>) {
    let object = match value {
        Value::Array(items) => {
            for item in items {
                search(item, workflow, found);
            }
            return;
        }
        Value::Object(object) => object,
        _ => return,
    };
    if object.get("spec").is_some_and(has_containers) {
        found.push(value.clone());
        return;
    }
    if has_containers(value) {
        found.push(json!({ "spec": value }));
        return;
    }
    let step = ["container", "script"]
        .iter()
        .filter_map(|key| object.get(*key))
        .find(|container| has_image(container));
    if let Some(container) = step {
        let mut spec = workflow.clone();
        spec.extend(object.clone());
        spec.insert("containers".to_owned(), json!([container]));
        found.push(json!({ "spec": spec }));
        return;
    }
    let of_workflow = || {
        let keys = ["nodeSelector", "tolerations", "affinity", "securityContext"];
        let own = keys.iter().filter_map(|key| {
            let value = object.get(*key)?;
            Some(((*key).to_owned(), value.clone()))
        });
        own.collect::<Map<String, Value>>()
    };
    let inherited = object.contains_key("templates").then(of_workflow);
    for child in object.values() {
        search(child, inherited.as_ref().unwrap_or(workflow), found);
    }
}

fn has_containers(spec: &Value) -> bool {
    let containers = spec.get("containers").and_then(Value::as_array);
    containers.is_some_and(|containers| containers.iter().any(has_image))
}

fn has_image(container: &Value) -> bool {
    container.get("image").is_some_and(Value::is_string)
}
