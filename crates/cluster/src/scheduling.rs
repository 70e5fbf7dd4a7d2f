//! The scheduler's hard rules that depend on nodes: selector, affinity, taints.
//!
//! Temporary conditions are ignored: a node that is cordoned or not ready today may admit the pod
//! tomorrow.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use wincimg_common::json::or_default;

use super::nodes::{BUILD_LABEL, Node, OLD_OS_LABEL, OS_LABEL, Taint};

/// The only node field that an affinity can match.
const NODE_NAME: &str = "metadata.name";

/// Scheduling constraints of a pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Scheduling {
    /// `nodeName`, which bypasses the scheduler.
    pub node_name: Option<String>,
    /// Labels that a node must have.
    pub selector: BTreeMap<String, String>,
    /// Terms of the required node affinity, of which a node must meet one.
    pub(crate) affinity: Option<Vec<SelectorTerm>>,
    /// Tolerations.
    pub tolerations: Vec<Toleration>,
}

/// Requirements that a node must meet all at once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SelectorTerm {
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(crate) match_expressions: Vec<Requirement>,
    /// Requirements on fields, of which only `metadata.name` exists.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(crate) match_fields: Vec<Requirement>,
}

/// One requirement of a term.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Requirement {
    /// The label's or field's name.
    pub key: String,
    /// Operator.
    pub operator: Operator,
    /// Values to compare with.
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub values: Vec<String>,
}

/// Operator of a requirement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub enum Operator {
    /// The label is one of the values.
    In,
    /// The label is absent or none of the values.
    NotIn,
    /// The label exists.
    Exists,
    /// The label is absent.
    DoesNotExist,
    /// The label is a number and greater.
    Gt,
    /// The label is a number and less.
    Lt,
}

/// A toleration.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Deserialize)]
pub struct Toleration {
    /// Their name; empty for all.
    #[serde(default, deserialize_with = "or_default")]
    pub key: String,
    /// `Equal`, which is the default, `Exists`, `Gt` or `Lt`.
    #[serde(default, deserialize_with = "or_default")]
    pub operator: String,
    /// Their value.
    #[serde(default, deserialize_with = "or_default")]
    pub value: String,
    /// Their effect; empty for all.
    #[serde(default, deserialize_with = "or_default")]
    pub effect: String,
}

/// Operating system that a pod requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum System {
    /// Windows.
    Windows,
    /// Another system.
    Other,
    /// Unspecified.
    Unsaid,
}

impl System {
    /// The system of a label's value. A misspelt one states none.
    pub(super) fn named(value: &str) -> Self {
        // Those for which Kubernetes or a virtual node's provider has a kubelet.
        const OTHERS: [&str; 4] = ["linux", "darwin", "freebsd", "wasm"];
        if value.eq_ignore_ascii_case("windows") {
            Self::Windows
        } else if OTHERS.contains(&value) {
            Self::Other
        } else {
            Self::Unsaid
        }
    }
}

impl Scheduling {
    /// Values of its selector and affinity, and the node that it names.
    pub(super) fn values(&self) -> impl Iterator<Item = &str> {
        let terms = self.affinity.iter().flatten();
        let requirements =
            terms.flat_map(|term| term.match_expressions.iter().chain(&term.match_fields));
        let values = requirements.flat_map(|requirement| &requirement.values);
        let values = values.chain(self.selector.values()).chain(&self.node_name);
        values.map(String::as_str)
    }

    /// Returns true if a pod can be scheduled on this node.
    pub(crate) fn admits(&self, node: &Node) -> bool {
        self.matches_node(node) && self.untolerated_taints(node).next().is_none()
    }

    /// Taints of a node that the pod does not tolerate. With `nodeName` only `NoExecute` counts,
    /// which the kubelet enforces; the others are enforced by the scheduler.
    pub(crate) fn untolerated_taints<'a>(
        &'a self,
        node: &'a Node,
    ) -> impl Iterator<Item = &'a Taint> {
        let taints = node.taints.iter();
        let counts = |taint: &Taint| self.node_name.is_none() || taint.effect == "NoExecute";
        taints.filter(move |taint| {
            counts(taint) && !self.tolerates(taint) && !self.tolerates_on_gke(node, taint)
        })
    }

    /// Returns true for the taint of GKE's Windows nodes if a webhook of GKE adds its toleration to
    /// the pod, which has to select these nodes.
    fn tolerates_on_gke(&self, node: &Node, taint: &Taint) -> bool {
        let os = self.selector.get(OS_LABEL);
        os.is_some_and(|os| os == "windows")
            && (taint.key.as_str(), taint.value.as_str()) == ("node.kubernetes.io/os", "windows")
            && taint.effect == "NoSchedule"
            && node.labels.contains_key("cloud.google.com/gke-nodepool")
    }

    /// Returns true if nothing but taints can keep a pod off this node.
    pub(crate) fn matches_node(&self, node: &Node) -> bool {
        self.allows_node_name(node) && self.selects(node)
    }

    pub(crate) fn allows_node_name(&self, node: &Node) -> bool {
        match (&self.node_name, &node.name) {
            (Some(wanted), Some(name)) => wanted == name,
            _ => true,
        }
    }

    /// Returns true if the node meets its selector and affinity.
    fn selects(&self, node: &Node) -> bool {
        let selected = self
            .selector
            .iter()
            .all(|(key, value)| match node.labels.get(key) {
                Some(own) => own == value,
                None => !node.labels_are_complete,
            });
        selected
            && self
                .affinity
                .as_ref()
                .is_none_or(|terms| terms.iter().any(|term| term.is_met_by(node)))
    }

    /// Requirements of the selector that none of the nodes meets, and where each term of the
    /// affinity has one, the first of each.
    pub(crate) fn unmet(&self, nodes: &[Node]) -> (Vec<Requirement>, Vec<Requirement>) {
        let selector = self.selector.iter();
        let selector = selector.map(|(key, value)| Requirement::of_label(key, value));
        let is_unmet = |label: &Requirement| !nodes.iter().any(|node| label.may_be_met(node));
        let of_selector = selector.filter(is_unmet).collect();
        let terms = self.affinity.iter().flatten();
        let firsts: Option<Vec<&Requirement>> = terms
            .map(|term| term.match_expressions.iter().find(|label| is_unmet(label)))
            .collect();
        let mut of_affinity: Vec<Requirement> = Vec::new();
        for label in firsts.unwrap_or_default() {
            if !of_affinity.contains(label) {
                of_affinity.push(label.clone());
            }
        }
        (of_selector, of_affinity)
    }

    /// Returns true if it has neither a selector nor an affinity.
    pub(crate) fn is_unconstrained(&self) -> bool {
        self.selector.is_empty() && self.affinity.is_none()
    }

    /// Adds a required label. Where that contradicts the selector the API server refuses the pod,
    /// so both are kept, and no node matches.
    pub(super) fn require(&mut self, label: &str, value: &str) {
        let own = self.selector.entry(label.to_owned());
        if own.or_insert_with(|| value.to_owned()) == value {
            return;
        }
        self.require_all(&Requirement::of_label(label, value));
    }

    /// Adds a requirement to every term. An empty term matches no node, and stays empty.
    pub(super) fn require_all(&mut self, requirement: &Requirement) {
        match &mut self.affinity {
            Some(terms) => {
                for term in terms.iter_mut().filter(|term| !term.is_empty()) {
                    term.match_expressions.push(requirement.clone());
                }
            }
            None => {
                self.affinity = Some(vec![SelectorTerm {
                    match_expressions: vec![requirement.clone()],
                    ..SelectorTerm::default()
                }]);
            }
        }
    }

    /// Removes and returns the node names that the controller of a `DaemonSet` writes into each pod
    /// in place of the set's own affinity.
    pub(super) fn take_node_names(&mut self) -> Vec<String> {
        if let Some([term]) = self.affinity.as_deref()
            && term.match_expressions.is_empty()
            && let [field] = term.match_fields.as_slice()
            && field.key == NODE_NAME
            && field.operator == Operator::In
        {
            let names = field.values.clone();
            self.affinity = None;
            return names;
        }
        Vec::new()
    }

    /// Restores the node names of all pods of a set, which stand in for its affinity.
    pub(super) fn require_node_names(&mut self, names: BTreeSet<String>) {
        if names.is_empty() {
            return;
        }
        let fields = Requirement {
            key: NODE_NAME.to_owned(),
            operator: Operator::In,
            values: names.into_iter().collect(),
        };
        self.affinity = Some(vec![SelectorTerm {
            match_fields: vec![fields],
            ..SelectorTerm::default()
        }]);
    }

    /// Returns true if a taint does not keep the pod off its nodes.
    pub(crate) fn tolerates(&self, taint: &Taint) -> bool {
        let keeps_off = matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
        !keeps_off
            || taint.is_passing()
            || self
                .tolerations
                .iter()
                .any(|toleration| toleration.covers(taint))
    }

    /// The operating system of all nodes that it admits, as far as labels state it.
    pub fn system(&self) -> System {
        let named = |key: &str| match self.selector.get(key).map(String::as_str) {
            Some(name) => System::named(name),
            None => System::Unsaid,
        };
        let from_build = if self.selector.contains_key(BUILD_LABEL) {
            System::Windows
        } else {
            System::Unsaid
        };
        [named(OS_LABEL), named(OLD_OS_LABEL), from_build]
            .into_iter()
            .find(|system| *system != System::Unsaid)
            .unwrap_or_else(|| self.system_of_affinity())
    }

    fn system_of_affinity(&self) -> System {
        let mut systems = self.affinity.iter().flatten().map(SelectorTerm::system);
        match systems.next() {
            Some(first) if systems.all(|system| system == first) => first,
            _ => System::Unsaid,
        }
    }
}

impl SelectorTerm {
    /// Returns true if a node meets the term; an empty term matches no node.
    fn is_met_by(&self, node: &Node) -> bool {
        let mut labels = self.match_expressions.iter();
        let fields = || {
            self.match_fields.iter().all(|requirement| {
                requirement.key == NODE_NAME
                    && (node.name.is_none() || requirement.is_met_by(node.name.as_deref()))
            })
        };
        !self.is_empty() && labels.all(|label| label.may_be_met(node)) && fields()
    }

    fn is_empty(&self) -> bool {
        self.match_expressions.is_empty() && self.match_fields.is_empty()
    }

    fn system(&self) -> System {
        self.match_expressions
            .iter()
            .map(Requirement::system)
            .find(|system| *system != System::Unsaid)
            .unwrap_or(System::Unsaid)
    }
}

impl Requirement {
    /// The requirement that a label has this value.
    pub(crate) fn of_label(key: &str, value: &str) -> Self {
        Self {
            key: key.to_owned(),
            operator: Operator::In,
            values: vec![value.to_owned()],
        }
    }

    /// Returns true if the labels of a node meet it, as far as they are known.
    pub(super) fn may_be_met(&self, node: &Node) -> bool {
        let label = node.labels.get(&self.key);
        let may_have_it = label.is_none() && !node.labels_are_complete;
        may_have_it || self.is_met_by(label.map(String::as_str))
    }

    pub(super) fn is_met_by(&self, value: Option<&str>) -> bool {
        let listed = |value: &str| self.values.iter().any(|listed| listed == value);
        match self.operator {
            Operator::In => value.is_some_and(listed),
            Operator::NotIn => !value.is_some_and(listed),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::Gt => self.numbers(value).is_some_and(|(own, bound)| own > bound),
            Operator::Lt => self.numbers(value).is_some_and(|(own, bound)| own < bound),
        }
    }

    /// The label and the value as numbers; a label's value has no sign.
    fn numbers(&self, value: Option<&str>) -> Option<(i64, i64)> {
        let [bound] = &self.values[..] else {
            return None;
        };
        bound.strip_prefix(|c: char| c.is_ascii_digit())?;
        Some((value?.parse().ok()?, bound.parse().ok()?))
    }

    fn system(&self) -> System {
        let is_os = self.key == OS_LABEL || self.key == OLD_OS_LABEL;
        let names_windows = self.values.iter().any(|value| value == "windows");
        match self.operator {
            Operator::In if is_os && self.values == ["windows"] => System::Windows,
            Operator::In if is_os && !names_windows => System::Other,
            Operator::NotIn if is_os && names_windows => System::Other,
            Operator::In | Operator::Exists | Operator::Gt | Operator::Lt
                if self.key == BUILD_LABEL =>
            {
                System::Windows
            }
            _ => System::Unsaid,
        }
    }
}

impl Toleration {
    fn covers(&self, taint: &Taint) -> bool {
        let names_it = self.key == taint.key || (self.key.is_empty() && self.operator == "Exists");
        let fits = match self.operator.as_str() {
            "" | "Equal" => self.value == taint.value,
            "Exists" => true,
            "Gt" => self.numbers(taint).is_some_and(|(taint, own)| taint > own),
            "Lt" => self.numbers(taint).is_some_and(|(taint, own)| taint < own),
            _ => false,
        };
        names_it && fits && (self.effect.is_empty() || self.effect == taint.effect)
    }

    /// The values of the taint and the toleration as numbers, without leading zeros.
    fn numbers(&self, taint: &Taint) -> Option<(i64, i64)> {
        let number = |text: &str| {
            let number: i64 = text.parse().ok()?;
            (number.to_string() == text).then_some(number)
        };
        Some((number(&taint.value)?, number(&self.value)?))
    }
}

#[cfg(test)]
mod tests;
