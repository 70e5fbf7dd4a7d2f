//! What the controller of a workload asks for beyond the pod template: steps before a changed
//! template reaches the pods, and a node for each of them.

use serde_json::{Map, Value};

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Controller {
    /// What keeps a changed template from the pods, in the order in which it is removed.
    pub(crate) update_holds: Vec<UpdateHold>,
    /// Number of nodes that all replicas need together, if no two of them may share one.
    pub(crate) nodes_needed: Option<usize>,
}

/// A reason why a changed pod template does not reach the pods by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum UpdateHold {
    /// A paused Deployment rolls out nothing before it is resumed.
    Paused,
    /// `OnDelete`: a pod is replaced once it is deleted.
    OnDelete,
    /// The pods of a `StatefulSet` below this ordinal keep the old template, also when recreated.
    Partition(u64),
    /// `OrderedReady`: the controller of a `StatefulSet` waits for every pod that does not start.
    UnreadyPods,
}

impl Controller {
    pub(crate) fn of(kind: &str, object: &Value) -> Self {
        Self {
            update_holds: update_holds(kind, object),
            nodes_needed: nodes_needed(object),
        }
    }

    /// Returns true if pods are replaced only once they are deleted.
    pub(crate) fn updates_on_delete(&self) -> bool {
        self.update_holds.contains(&UpdateHold::OnDelete)
    }
}

fn update_holds(kind: &str, object: &Value) -> Vec<UpdateHold> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let is_on_delete = text("/spec/updateStrategy/type") == Some("OnDelete");
    match kind {
        "Deployment" if object.pointer("/spec/paused") == Some(&Value::Bool(true)) => {
            vec![UpdateHold::Paused]
        }
        "DaemonSet" | "StatefulSet" if is_on_delete => vec![UpdateHold::OnDelete],
        "StatefulSet" => {
            let partition = object.pointer("/spec/updateStrategy/rollingUpdate/partition");
            let partition = partition.and_then(Value::as_u64);
            let partition = partition.filter(|partition| *partition > 0);
            let is_ordered = text("/spec/podManagementPolicy") != Some("Parallel");
            let unready = is_ordered.then_some(UpdateHold::UnreadyPods);
            partition
                .map(UpdateHold::Partition)
                .into_iter()
                .chain(unready)
                .collect()
        }
        _ => Vec::new(),
    }
}

fn nodes_needed(object: &Value) -> Option<usize> {
    let template = object.pointer("/spec/template")?;
    let labels = template.pointer("/metadata/labels")?.as_object()?;
    let terms = "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    let mut terms = template.pointer(terms)?.as_array()?.iter();
    let replicas = match object.pointer("/spec/replicas") {
        Some(replicas) => usize::try_from(replicas.as_u64()?).ok()?,
        None => 1,
    };
    terms
        .any(|term| separates(term, labels))
        .then_some(replicas)
}

/// Returns true if an anti-affinity keeps pods with these labels off each other's nodes.
fn separates(term: &Value, labels: &Map<String, Value>) -> bool {
    let Some(selector) = term.get("labelSelector").and_then(Value::as_object) else {
        return false;
    };
    let own = selector.get("matchLabels").and_then(Value::as_object);
    let mut own = own.into_iter().flatten();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    let mut expressions = expressions.into_iter().flatten();
    let is_met = |expression: &Value| {
        let key = expression.get("key").and_then(Value::as_str);
        let label = key.and_then(|key| labels.get(key));
        let values = expression.get("values").and_then(Value::as_array);
        match expression.get("operator").and_then(Value::as_str) {
            Some("In") => label
                .zip(values)
                .is_some_and(|(label, values)| values.contains(label)),
            Some("Exists") => label.is_some(),
            _ => false,
        }
    };
    term.get("topologyKey").and_then(Value::as_str) == Some("kubernetes.io/hostname")
        // Those name other namespaces.
        && ["namespaces", "namespaceSelector"].iter().all(|key| term.get(key).is_none())
        && own.all(|(key, value)| labels.get(key) == Some(value))
        && expressions.all(is_met)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_template_is_held_by_what_its_object_says() {
        let on_delete = json!({"updateStrategy": {"type": "OnDelete"}});
        let partition = json!({"updateStrategy": {"rollingUpdate": {"partition": 2}}});
        for (kind, spec, expected) in [
            ("Deployment", json!({}), vec![]),
            (
                "Deployment",
                json!({"paused": true}),
                vec![UpdateHold::Paused],
            ),
            ("Deployment", json!({"paused": false}), vec![]),
            ("DaemonSet", json!({}), vec![]),
            ("DaemonSet", on_delete.clone(), vec![UpdateHold::OnDelete]),
            ("StatefulSet", on_delete, vec![UpdateHold::OnDelete]),
            ("StatefulSet", json!({}), vec![UpdateHold::UnreadyPods]),
            (
                "StatefulSet",
                json!({"podManagementPolicy": "Parallel"}),
                vec![],
            ),
            (
                "StatefulSet",
                partition,
                vec![UpdateHold::Partition(2), UpdateHold::UnreadyPods],
            ),
        ] {
            let object = json!({ "spec": spec });
            assert_eq!(update_holds(kind, &object), expected, "{kind} {object}");
        }
    }

    #[test]
    fn replicas_need_a_node_each_where_they_keep_off_each_other() {
        let needed = |topology: &str, selector: Value| {
            let term = json!({"topologyKey": topology, "labelSelector": selector});
            let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
            nodes_needed(&json!({"spec": {"replicas": 4, "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"affinity": {"podAntiAffinity": terms}},
            }}}))
        };
        let host = "kubernetes.io/hostname";
        let web = json!({"matchLabels": {"app": "web"}});
        let any = |values: Value| json!({"matchExpressions": [{"key": "app", "operator": "In", "values": values}]});
        assert_eq!(needed(host, web.clone()), Some(4));
        assert_eq!(needed(host, any(json!(["api", "web"]))), Some(4));
        assert_eq!(needed(host, any(json!(["api"]))), None);
        assert_eq!(needed(host, json!({"matchLabels": {"app": "api"}})), None);
        assert_eq!(needed("topology.kubernetes.io/zone", web), None);
    }
}
