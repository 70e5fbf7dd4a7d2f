//! The shipped manifests, checked against the API's types: finds unknown fields and fields of the
//! wrong type.

use std::path::Path;

use k8s_openapi::api::apps::v1::{DaemonSet, Deployment, StatefulSet};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

const MANIFESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/templates/ci/kubernetes");

/// Returns the unknown fields of a manifest: those lost when it is parsed and serialized again.
fn unknown<T: DeserializeOwned + Serialize>(manifest: &Value) -> Vec<String> {
    match serde_json::from_value::<T>(manifest.clone()) {
        Ok(read) => lost(manifest, &serde_json::to_value(read).unwrap(), ""),
        Err(error) => vec![error.to_string()],
    }
}

fn lost(before: &Value, after: &Value, path: &str) -> Vec<String> {
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => before
            .iter()
            // Empty values are omitted when serialized.
            .filter(|(_, value)| !is_empty(value))
            .flat_map(|(key, value)| {
                let path = format!("{path}.{key}");
                after
                    .get(key)
                    .map_or_else(|| vec![path.clone()], |after| lost(value, after, &path))
            })
            .collect(),
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => before
            .iter()
            .zip(after)
            .enumerate()
            .flat_map(|(index, (before, after))| lost(before, after, &format!("{path}[{index}]")))
            .collect(),
        _ if before == after => Vec::new(),
        _ => vec![format!("{path}: {before} became {after}")],
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null()
        || value.as_object().is_some_and(serde_json::Map::is_empty)
        || value.as_array().is_some_and(Vec::is_empty)
}

pub(crate) fn unknown_by_kind(manifest: &Value) -> Vec<String> {
    let text = |key: &str| manifest[key].as_str().unwrap_or_default();
    match (text("apiVersion"), text("kind")) {
        ("v1", "Namespace") => unknown::<Namespace>(manifest),
        ("v1", "ServiceAccount") => unknown::<ServiceAccount>(manifest),
        ("v1", "ConfigMap") => unknown::<ConfigMap>(manifest),
        ("v1", "Secret") => unknown::<Secret>(manifest),
        ("apps/v1", "DaemonSet") => unknown::<DaemonSet>(manifest),
        ("apps/v1", "StatefulSet") => unknown::<StatefulSet>(manifest),
        ("apps/v1", "Deployment") => unknown::<Deployment>(manifest),
        ("batch/v1", "CronJob") => unknown::<CronJob>(manifest),
        ("batch/v1", "Job") => unknown::<Job>(manifest),
        ("rbac.authorization.k8s.io/v1", "ClusterRole") => unknown::<ClusterRole>(manifest),
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding") => {
            unknown::<ClusterRoleBinding>(manifest)
        }
        ("rbac.authorization.k8s.io/v1", "Role") => unknown::<Role>(manifest),
        ("rbac.authorization.k8s.io/v1", "RoleBinding") => unknown::<RoleBinding>(manifest),
        // Kustomize's own, which the API server never sees.
        ("kustomize.config.k8s.io/v1beta1", "Kustomization") => Vec::new(),
        (version, kind) => vec![format!("{version} {kind} is of no known kind")],
    }
}

fn manifests() -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for folder in [MANIFESTS.to_owned(), format!("{MANIFESTS}/fleet")] {
        let mut files: Vec<_> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|it| it == "yaml"))
            .collect();
        files.sort();
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let name = Path::file_name(&file)
                .unwrap()
                .to_string_lossy()
                .into_owned();
            let documents: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
            found.extend(
                documents
                    .into_iter()
                    .map(|document| (name.clone(), document)),
            );
        }
    }
    found
}

#[test]
fn every_field_of_the_manifests_is_one_that_kubernetes_knows() {
    let manifests = manifests();
    assert!(manifests.len() > 12, "{}", manifests.len());
    for (file, manifest) in manifests {
        let kind = manifest["kind"].as_str().unwrap_or_default();
        assert_eq!(
            unknown_by_kind(&manifest),
            Vec::<String>::new(),
            "{file}: {kind}"
        );
    }
}

#[test]
fn a_misspelt_field_is_found_wherever_it_is() {
    let (_, mut deployment) = manifests()
        .into_iter()
        .find(|(_, manifest)| manifest["kind"] == "Deployment")
        .unwrap();
    let container = "/spec/template/spec/containers/0";
    let container = deployment.pointer_mut(container).unwrap();
    container["readynessProbe"] = container["readinessProbe"].take();
    container["securityContext"]["readOnlyRootFileSystem"] = Value::Bool(true);
    let path = ".spec.template.spec.containers[0]";
    assert_eq!(
        unknown_by_kind(&deployment),
        [
            format!("{path}.securityContext.readOnlyRootFileSystem"),
            format!("{path}.readynessProbe"),
        ]
    );
    deployment["spec"]["replicas"] = Value::from("two");
    assert!(unknown_by_kind(&deployment)[0].contains("invalid type"));
}

/// Pods run as `nobody`, write only to their own scratch space, and gain no permissions.
#[test]
fn every_pod_is_as_restricted_as_it_can_be() {
    let mut pods = 0;
    let image = concat!("registry.example/tools/wincimg:", env!("CARGO_PKG_VERSION"));
    for (file, manifest) in manifests() {
        let template = [
            "/spec/jobTemplate/spec/template/spec",
            "/spec/template/spec",
        ]
        .into_iter()
        .find_map(|path| manifest.pointer(path));
        let Some(pod) = template else {
            continue;
        };
        pods += 1;
        assert_eq!(pod["securityContext"]["runAsNonRoot"], true, "{file}");
        for container in pod["containers"].as_array().unwrap() {
            let security = &container["securityContext"];
            assert_eq!(security["readOnlyRootFilesystem"], true, "{file}");
            assert_eq!(security["allowPrivilegeEscalation"], false, "{file}");
            assert_eq!(security["capabilities"]["drop"][0], "ALL", "{file}");
            assert_eq!(container["image"], image, "{file}");
            assert!(
                container["resources"]["limits"]["memory"].is_string(),
                "{file}"
            );
        }
    }
    assert_eq!(pods, 5);
}
