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

/// Returns true for kinds whose containers are patterns or parts of the pods of other objects:
/// Kyverno's policies and sidecars of OpenKruise.
pub(super) fn is_about_other_pods(group: &str, kind: &str) -> bool {
    matches!(
        (group, kind),
        ("kyverno.io" | "policies.kyverno.io", _) | ("apps.kruise.io", "SidecarSet")
    )
}

/// Finds pod templates in an object: a `spec` with `containers`, or such a spec by itself. A step
/// of an Argo workflow has a `container`, a `script` or a `containerSet`, and inherits its scheduling
/// from the workflow.
pub(super) fn pod_templates(object: &Value) -> Vec<Value> {
    let mut found = Vec::new();
    if let Value::Object(object) = object {
        for (key, value) in object {
            if key != "metadata" && key != "status" {
                // Searched together with its key, for `spec` itself would match.
                let value = json!({ key.as_str(): value });
                search(&value, &WorkflowDefaults::default(), &mut found);
            }
        }
    }
    found
}

/// What the steps of an Argo workflow inherit.
#[derive(Default)]
struct WorkflowDefaults {
    /// Fields of the workflow, which those of a step replace.
    workflow: Map<String, Value>,
    /// Fields of its `templateDefaults`, into which those of a step are merged.
    defaults: Map<String, Value>,
}

impl WorkflowDefaults {
    fn from_workflow(workflow: &Map<String, Value>) -> Self {
        let defaults = workflow.get("templateDefaults").and_then(Value::as_object);
        Self {
            workflow: scheduling_of(workflow),
            defaults: defaults.map(scheduling_of).unwrap_or_default(),
        }
    }

    /// The pod of a step with these containers.
    fn pod(&self, step: &Map<String, Value>, containers: Value) -> Value {
        let mut own = self.defaults.clone();
        merge(&mut own, step);
        let mut spec = self.workflow.clone();
        spec.extend(own);
        spec.insert("containers".to_owned(), containers);
        json!({ "spec": spec })
    }
}

/// The fields of an Argo workflow that decide where its steps run.
fn scheduling_of(object: &Map<String, Value>) -> Map<String, Value> {
    let keys = ["nodeSelector", "tolerations", "affinity", "securityContext"];
    let own = keys.iter().filter_map(|key| {
        let value = object.get(*key)?;
        Some(((*key).to_owned(), value.clone()))
    });
    own.collect()
}

/// Merges maps by their keys; other values replace the existing ones.
fn merge(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (key, value) in from {
        match (into.get_mut(key), value) {
            (Some(Value::Object(into)), Value::Object(from)) => merge(into, from),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

fn search(value: &Value, inherited: &WorkflowDefaults, found: &mut Vec<Value>) {
    let object = match value {
        Value::Array(items) => {
            for item in items {
                search(item, inherited, found);
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
    if let Some(containers) = step_containers(object) {
        found.push(inherited.pod(object, containers));
        return;
    }
    let own = object
        .contains_key("templates")
        .then(|| WorkflowDefaults::from_workflow(object));
    for child in object.values() {
        search(child, own.as_ref().unwrap_or(inherited), found);
    }
}

/// The containers of a step of an Argo workflow.
fn step_containers(step: &Map<String, Value>) -> Option<Value> {
    let keys = ["container", "script"];
    let mut single = keys.iter().filter_map(|key| step.get(*key));
    if let Some(container) = single.find(|container| has_image(container)) {
        return Some(json!([container]));
    }
    let set = step.get("containerSet").filter(|set| has_containers(set))?;
    set.get("containers").cloned()
}

fn has_containers(spec: &Value) -> bool {
    let containers = spec.get("containers").and_then(Value::as_array);
    containers.is_some_and(|containers| containers.iter().any(has_image))
}

fn has_image(container: &Value) -> bool {
    container.get("image").is_some_and(Value::is_string)
}
