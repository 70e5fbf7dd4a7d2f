//! What the controller of a workload asks for beyond the pod template: steps before a changed
//! template reaches the pods, and nodes for all of them together.

use serde_json::Value;

/// The label by which each node is a topology of its own.
pub(crate) const HOSTNAME_LABEL: &str = "kubernetes.io/hostname";

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Controller {
    /// What keeps a changed template from the pods, in the order in which it is removed.
    pub(crate) update_holds: Vec<UpdateHold>,
    /// With fewer replicas, a changed template stops no pod before its successor runs.
    surges_below: usize,
    /// Number of pods; one if it is not known.
    pub(crate) replicas: usize,
    /// Node labels of which no two pods may have the same value.
    pub(crate) separating_labels: Vec<String>,
    /// True if spread constraints count nodes that a pin excludes.
    spreads: bool,
    /// True if its pods go where pods of other workloads are, which may stay where they are.
    follows_others: bool,
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
        let replicas = object.pointer("/spec/replicas").and_then(Value::as_u64);
        let replicas = replicas.and_then(|replicas| usize::try_from(replicas).ok());
        let replicas = replicas.unwrap_or(1);
        let template = object.pointer("/spec/template").unwrap_or(&Value::Null);
        Self {
            update_holds: update_holds(kind, object),
            surges_below: surges_below(kind, object),
            replicas,
            separating_labels: separating_labels(template),
            spreads: spreads(template),
            follows_others: follows_others(template),
        }
    }

    /// Returns true if a changed template stops no pod before its successor runs.
    pub(crate) fn surges(&self) -> bool {
        self.replicas < self.surges_below
    }

    /// The constraint whose pods may fit no node once a pin takes nodes away.
    pub(crate) fn constraint(&self) -> Option<&'static str> {
        if self.spreads && self.replicas > 1 {
            return Some("spread constraints");
        }
        self.follows_others.then_some("pod affinity")
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

/// The number of replicas from which a roll-out stops old pods before it starts new ones: a Deployment
/// does once a pod may be unavailable, all others always do. The API server rounds `maxUnavailable`
/// down, and `maxSurge` up.
fn surges_below(kind: &str, object: &Value) -> usize {
    let at = |field: &str| object.pointer(&format!("/spec/strategy/{field}"));
    let percent = |value: &Value| {
        let text = value.as_str()?.strip_suffix('%')?;
        text.parse::<usize>().ok()
    };
    let is_zero = |value: &Value| value.as_u64() == Some(0) || percent(value) == Some(0);
    let surges = kind == "Deployment"
        && at("type").and_then(Value::as_str) != Some("Recreate")
        && !at("rollingUpdate/maxSurge").is_some_and(is_zero);
    match at("rollingUpdate/maxUnavailable") {
        _ if !surges => 0,
        None => 4,
        Some(value) if is_zero(value) => usize::MAX,
        Some(value) => percent(value).map_or(0, |percent| 100_usize.div_ceil(percent)),
    }
}

/// Items of a list of a template.
fn items<'a>(template: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    let list = template.pointer(pointer).and_then(Value::as_array);
    list.into_iter().flatten()
}

fn separating_labels(template: &Value) -> Vec<String> {
    const TERMS: &str =
        "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    let terms = items(template, TERMS).filter(|term| selects_own_pods(term, template));
    let labels = terms.filter_map(|term| term.get("topologyKey")?.as_str());
    let containers = items(template, "/spec/containers");
    let mut ports = containers.flat_map(|container| items(container, "/ports"));
    let has_host_port = ports.any(|port| {
        let port = port.get("hostPort").and_then(Value::as_u64);
        port.is_some_and(|port| port != 0)
    });
    let hostname = has_host_port.then_some(HOSTNAME_LABEL);
    labels.chain(hostname).map(str::to_owned).collect()
}

fn spreads(template: &Value) -> bool {
    let counts_excluded_nodes = |spread: &Value| {
        let word = |key: &str| spread.get(key).and_then(Value::as_str);
        word("whenUnsatisfiable") == Some("DoNotSchedule")
            && (word("nodeAffinityPolicy") == Some("Ignore") || spread.get("minDomains").is_some())
    };
    items(template, "/spec/topologySpreadConstraints").any(counts_excluded_nodes)
}

fn follows_others(template: &Value) -> bool {
    const TERMS: &str = "/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    items(template, TERMS).any(|term| !selects_own_pods(term, template))
}

/// Returns true if a term of pod affinity or anti-affinity selects pods of its own template.
fn selects_own_pods(term: &Value, template: &Value) -> bool {
    let Some(selector) = term.get("labelSelector").and_then(Value::as_object) else {
        return false;
    };
    let labels = template.pointer("/metadata/labels");
    let label = |key: &str| labels.and_then(|labels| labels.get(key));
    let own = selector.get("matchLabels").and_then(Value::as_object);
    let mut own = own.into_iter().flatten();
    let expressions = selector.get("matchExpressions").and_then(Value::as_array);
    let mut expressions = expressions.into_iter().flatten();
    let is_met = |expression: &Value| {
        let key = expression.get("key").and_then(Value::as_str);
        let label = key.and_then(label);
        let values = expression.get("values").and_then(Value::as_array);
        match expression.get("operator").and_then(Value::as_str) {
            Some("In") => label
                .zip(values)
                .is_some_and(|(label, values)| values.contains(label)),
            Some("Exists") => label.is_some(),
            _ => false,
        }
    };
    // Those name other namespaces.
    ["namespaces", "namespaceSelector"]
        .iter()
        .all(|key| term.get(key).is_none())
        && own.all(|(key, value)| label(key) == Some(value))
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
    fn pods_need_a_topology_each_where_they_keep_off_each_other() {
        let labels_of = |spec: Value| {
            separating_labels(&json!({"metadata": {"labels": {"app": "web"}}, "spec": spec}))
        };
        let labels = |topology: &str, selector: Value| {
            let term = json!({"topologyKey": topology, "labelSelector": selector});
            let terms = json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
            labels_of(json!({"affinity": {"podAntiAffinity": terms}}))
        };
        let zone = "topology.kubernetes.io/zone";
        let of_app = |app: &str| json!({"matchLabels": {"app": app}});
        let any = |values: Value| json!({"matchExpressions": [{"key": "app", "operator": "In", "values": values}]});
        assert_eq!(labels(HOSTNAME_LABEL, of_app("web")), [HOSTNAME_LABEL]);
        assert_eq!(labels(zone, any(json!(["api", "web"]))), [zone]);
        let none: [&str; 0] = [];
        assert_eq!(labels(zone, any(json!(["api"]))), none);
        assert_eq!(labels(zone, of_app("api")), none);
        let port = |port: u16| labels_of(json!({"containers": [{"ports": [{"hostPort": port}]}]}));
        assert_eq!(port(8080), [HOSTNAME_LABEL]);
        assert_eq!(port(0), none);
    }

    #[test]
    fn a_deployment_surges_where_no_pod_may_be_unavailable() {
        let surges = |kind: &str, replicas: usize, strategy: Value| {
            let spec = json!({"replicas": replicas, "strategy": strategy});
            Controller::of(kind, &json!({ "spec": spec })).surges()
        };
        let rolling = |fields: Value| json!({"rollingUpdate": fields});
        for (replicas, strategy, expected) in [
            (3, json!({}), true),
            (4, json!({}), false),
            (4, rolling(json!({"maxUnavailable": 0})), true),
            (4, rolling(json!({"maxUnavailable": "10%"})), true),
            (1, rolling(json!({"maxUnavailable": "100%"})), false),
            (1, rolling(json!({"maxUnavailable": 1})), false),
            (1, rolling(json!({"maxSurge": 0})), false),
            (1, json!({"type": "Recreate"}), false),
        ] {
            assert_eq!(
                surges("Deployment", replicas, strategy.clone()),
                expected,
                "{strategy}"
            );
            assert!(!surges("StatefulSet", replicas, strategy));
        }
    }
}
