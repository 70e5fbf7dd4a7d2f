//! API objects as far as workloads need them: group, metadata, pod templates, and whether they run
//! pods.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use wincimg_common::json::or_default;

use super::WorkloadId;
use crate::constraints::in_subsets;
use crate::null_is_empty;
use crate::pod::{PodObject, PodTemplate, RuntimeClass};
use crate::pod_templates::{is_about_other_pods, is_of_kubernetes, pod_templates};
use crate::scheduling::Toleration;
use crate::yaml::is_of_helm;

/// Default of the API server for `terminationGracePeriodSeconds`.
const USUAL_GRACE_SECONDS: u64 = 30;

/// Kubernetes kinds that create pods.
const MAKERS: [&str; 9] = [
    "CronJob", "DaemonSet", "Deployment", "Job", "Pod", "PodTemplate", "ReplicaSet",
    "ReplicationController", "StatefulSet",
];

/// The group of an `apiVersion`, if it is not one of Kubernetes itself.
pub(super) fn group_of(api_version: &str) -> String {
    let group = api_version.split_once('/').map(|(group, _version)| group);
    let group = group.filter(|_| !is_of_kubernetes(api_version));
    group.unwrap_or_default().to_owned()
}

pub(super) fn api_version_of(object: &Value) -> &str {
    let version = object.get("apiVersion").and_then(Value::as_str);
    version.unwrap_or_default()
}

/// The template of an object, without the grace period that the API server adds to a live one. That
/// of a file must be rendered by Helm; in a cluster, any text is allowed.
pub(super) fn read_template(template: PodTemplate, is_live: bool) -> Result<PodTemplate, String> {
    if is_live {
        let grace_seconds = template.grace_seconds;
        return Ok(PodTemplate {
            grace_seconds: grace_seconds.filter(|own| *own != USUAL_GRACE_SECONDS),
            ..template
        });
    }
    if let Some(text) = template.texts().find(|text| is_of_helm(text)) {
        return Err(format!(
            "{text:?} is a Helm template: render it with `helm template`"
        ));
    }
    Ok(template)
}

/// JSON pointer to the pod or pod template of an object.
pub(super) fn template_pointer(kind: &str) -> &'static str {
    match kind {
        "Pod" => "",
        "CronJob" => "/spec/jobTemplate/spec/template",
        "PodTemplate" => "/template",
        _ => "/spec/template",
    }
}

/// Returns true for a Kubernetes kind. Other API groups have their own `Job`, with other fields.
fn is_maker(kind: &str, api_version: &str) -> bool {
    MAKERS.contains(&kind) && (api_version.is_empty() || is_of_kubernetes(api_version))
}

/// The pods or pod templates of an object; the error is of a Kubernetes kind's.
pub(super) fn templates_of(
    kind: &str,
    object: &Value,
) -> Result<Vec<PodTemplate>, serde_path_to_error::Error<serde_json::Error>> {
    let template = object.pointer(template_pointer(kind));
    let api_version = api_version_of(object);
    let is_known = is_of_kubernetes(api_version);
    if is_maker(kind, api_version) {
        let template = template.unwrap_or(&Value::Null);
        let template = serde_path_to_error::deserialize::<_, Option<PodObject>>(template)?;
        return Ok(vec![template.unwrap_or_default().into()]);
    }
    let has_containers = |template: &&Value| {
        let containers = template.pointer("/spec/containers");
        containers.is_some_and(Value::is_array)
    };
    let candidates = match template.filter(has_containers) {
        Some(template) => vec![template.clone()],
        None if is_known || is_about_other_pods(&group_of(api_version), kind) => Vec::new(),
        None => pod_templates(object),
    };
    // Their fields may have other types than those of Kubernetes.
    let templates = candidates.into_iter();
    let templates = templates.filter_map(|template| PodObject::deserialize(template).ok());
    let templates = templates.map(PodTemplate::from).collect();
    Ok(in_subsets(templates, kind, object))
}

type TypeCheck = fn(&Value) -> bool;

/// Fields of `spec` that [`is_inactive`] reads, of which the API server refuses other types.
const ACTIVITY: [(&str, &str, TypeCheck); 4] = [
    ("replicas", "a number", Value::is_number),
    ("suspend", "a boolean", Value::is_boolean),
    ("parallelism", "a number", Value::is_number),
    ("completions", "a number", Value::is_number),
];

/// Problem of such a field of a Kubernetes kind.
pub(super) fn wrong_type(kind: &str, object: &Value) -> Option<String> {
    let spec = object.get("spec");
    let spec = spec.filter(|_| is_maker(kind, api_version_of(object)))?;
    ACTIVITY.iter().find_map(|(name, expected, is_right)| {
        let value = spec.get(name)?;
        // A placeholder such as `${REPLICAS}` is not replaced yet.
        let is_open = value.as_str().is_some_and(|text| text.contains(['$', '{']));
        let is_wrong = !value.is_null() && !is_right(value) && !is_open;
        is_wrong.then(|| format!("spec.{name}: invalid type: {value}, expected {expected}"))
    })
}

/// Returns true if an object runs no pods: scaled to zero, suspended, paused, or completed.
pub(super) fn is_inactive(kind: &str, object: &Value) -> bool {
    let at = |pointer: &str| object.pointer(pointer);
    let is_zero = |pointer: &str| at(pointer).and_then(Value::as_f64) == Some(0.0);
    let has_ended = |condition: &Value| {
        let word = |key: &str| condition.get(key).and_then(Value::as_str);
        matches!(word("type"), Some("Complete" | "Failed")) && word("status") == Some("True")
    };
    let conditions = || at("/status/conditions").and_then(Value::as_array);
    let is_ended = match kind {
        // The last is of Argo's workflows alone.
        "Pod" | "Workflow" => {
            let phase = at("/status/phase").and_then(Value::as_str);
            matches!(phase, Some("Succeeded" | "Failed" | "Error"))
        }
        "Job" => {
            is_zero("/spec/parallelism")
                || is_zero("/spec/completions")
                || at("/status/completionTime").is_some_and(Value::is_string)
                || conditions().is_some_and(|all| all.iter().any(has_ended))
        }
        "ScaledJob" => keda_says(object, "paused", "true"),
        "ScaledObject" => keda_says(object, "paused-replicas", "0"),
        _ => false,
    };
    is_ended
        || at("/spec/suspend").and_then(Value::as_bool) == Some(true)
        || is_zero("/spec/replicas")
}

/// Returns true if an annotation of KEDA has this value.
pub(super) fn keda_says(object: &Value, name: &str, value: &str) -> bool {
    let annotation = format!("/metadata/annotations/autoscaling.keda.sh~1{name}");
    object.pointer(&annotation).and_then(Value::as_str) == Some(value)
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    #[serde(default, deserialize_with = "or_default")]
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    generate_name: String,
    #[serde(default, deserialize_with = "or_default")]
    pub(super) namespace: String,
    pub(super) uid: Option<String>,
    /// Any value, for Kubernetes alone refuses wrong ones.
    #[serde(default)]
    labels: Value,
    #[serde(default, deserialize_with = "or_default")]
    owner_references: Vec<OwnerReference>,
}

impl Metadata {
    /// The IDs of the object and of its controllers, as far as they are known, the nearest first.
    pub(super) fn into_ids(self, kind: &str, group: String) -> (WorkloadId, Vec<WorkloadId>) {
        let namespace = match self.namespace {
            namespace if namespace.is_empty() => "default".to_owned(),
            namespace => namespace,
        };
        let owner = self
            .owner_references
            .into_iter()
            .find(|owner| owner.controller)
            .map(|owner| WorkloadId {
                kind: owner.kind,
                group: group_of(&owner.api_version),
                namespace: namespace.clone(),
                name: owner.name,
            });
        let hash = self.labels.get("pod-template-hash").and_then(Value::as_str);
        let deployment = owner.as_ref().zip(hash);
        let deployment = deployment.and_then(|(owner, hash)| deployment_of(owner, hash));
        let owners = owner.into_iter().chain(deployment).collect();
        let id = WorkloadId {
            kind: kind.to_owned(),
            group,
            namespace,
            name: name_or_pattern(self.name, &self.generate_name),
        };
        (id, owners)
    }
}

/// The Deployment of a `ReplicaSet`, whose name is the Deployment's with the hash of the template.
fn deployment_of(owner: &WorkloadId, hash: &str) -> Option<WorkloadId> {
    let name = owner.name.strip_suffix(hash)?.strip_suffix('-')?;
    (owner.kind == "ReplicaSet" && !name.is_empty()).then(|| WorkloadId {
        kind: "Deployment".to_owned(),
        name: name.to_owned(),
        ..owner.clone()
    })
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct OwnerReference {
    #[serde(default, deserialize_with = "or_default")]
    api_version: String,
    kind: String,
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    controller: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct RuntimeClassObject {
    metadata: Metadata,
    #[serde(default)]
    handler: String,
    #[serde(default, deserialize_with = "or_default")]
    scheduling: ClassScheduling,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ClassScheduling {
    #[serde(default, deserialize_with = "null_is_empty")]
    node_selector: BTreeMap<String, String>,
    #[serde(default, deserialize_with = "or_default")]
    tolerations: Vec<Toleration>,
}

impl From<RuntimeClassObject> for RuntimeClass {
    fn from(object: RuntimeClassObject) -> Self {
        Self {
            name: object.metadata.name,
            handler: object.handler,
            selector: object.scheduling.node_selector,
            tolerations: object.scheduling.tolerations,
        }
    }
}

/// Name of an object, or `migrate-*` for a generated name.
pub(super) fn name_or_pattern(name: String, generate_name: &str) -> String {
    if name.is_empty() && !generate_name.is_empty() {
        format!("{generate_name}*")
    } else {
        name
    }
}
