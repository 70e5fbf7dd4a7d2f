//! What the manifests of all commands have in common.

use serde_json::{Value, json};
use wincimg_common::shell::command_line;

/// Label with the name that a user gives to objects.
pub(crate) const INSTANCE: &str = "app.kubernetes.io/instance";
/// Label with the part of a name that differs between its workloads.
pub(crate) const COMPONENT: &str = "app.kubernetes.io/component";

/// Labels of an application's objects of a name.
pub(crate) fn labels(application: &str, name: &str) -> Value {
    json!({
        "app.kubernetes.io/name": application,
        INSTANCE: name,
        "app.kubernetes.io/managed-by": "wincimg",
    })
}

/// A namespace, and whether it admits `HostProcess` pods.
pub(crate) fn namespace(name: &str, is_privileged: bool) -> Value {
    let mut metadata = json!({"name": name});
    if is_privileged {
        metadata["labels"] = json!({"pod-security.kubernetes.io/enforce": "privileged"});
    }
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
}

/// `kubectl` with the words that choose a cluster.
pub(crate) fn kubectl(cluster: &[String]) -> String {
    let cluster = cluster.iter().map(String::as_str);
    let words: Vec<&str> = std::iter::once("kubectl").chain(cluster).collect();
    command_line(&words)
}
