//! Which nodes a pod can be put on: the scheduler's hard rules, as far as nodes decide them.
//!
//! What comes and goes is left out: a node that is cordoned or not ready today is one that the pod
//! may be put on tomorrow.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::nodes::{BUILD_LABEL, Node, OLD_OS_LABEL, OS_LABEL, Taint};
use super::null_is_default;

/// The only field of a node that an affinity can ask for.
const NODE_NAME: &str = "metadata.name";

/// Where a pod may be put.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Scheduling {
    /// The one node that the pod names, past the scheduler.
    pub node_name: Option<String>,
    /// Labels that a node must have.
    pub selector: BTreeMap<String, String>,
    /// Terms of the required node affinity, of which a node must meet one.
    pub(crate) affinity: Option<Vec<SelectorTerm>>,
    /// Which taints do not matter.
    pub tolerations: Vec<Toleration>,
}

/// Requirements that a node must meet all at once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SelectorTerm {
    /// About its labels.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(crate) match_expressions: Vec<Requirement>,
    /// About its fields, of which there is only `metadata.name`.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub(crate) match_fields: Vec<Requirement>,
}

/// One requirement of a term.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub struct Requirement {
    /// The label's or field's name.
    pub key: String,
    /// What is required of it.
    pub operator: Operator,
    /// What it is held against.
    #[serde(
        default,
        deserialize_with = "null_is_default",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub values: Vec<String>,
}

/// How a requirement holds a label against values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub enum Operator {
    /// It is one of them.
    In,
    /// It is absent or none of them.
    NotIn,
    /// It is there.
    Exists,
    /// It is absent.
    DoesNotExist,
    /// It is a number and greater.
    Gt,
    /// It is a number and less.
    Lt,
}

/// Taints that do not matter to a pod.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Deserialize)]
pub struct Toleration {
    /// Their name; empty for all.
    #[serde(default, deserialize_with = "null_is_default")]
    pub key: String,
    /// `Equal`, which is the default, `Exists`, `Gt` or `Lt`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub operator: String,
    /// Their value.
    #[serde(default, deserialize_with = "null_is_default")]
    pub value: String,
    /// Their effect; empty for all.
    #[serde(default, deserialize_with = "null_is_default")]
    pub effect: String,
}

/// Which system a pod asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum System {
    /// Windows, and nothing else.
    Windows,
    /// Something else.
    Other,
    /// It does not say.
    Unsaid,
}

impl Scheduling {
    /// Returns true if a pod may be put on this node.
    pub(crate) fn admits(&self, node: &Node) -> bool {
        self.matches_node(node) && self.untolerated_taints(node).next().is_none()
    }

    /// What keeps a pod off this node. Of a pod that names its node, the kubelet refuses what does not
    /// tolerate a `NoExecute` taint; the other taints are the scheduler's.
    pub(crate) fn untolerated_taints<'a>(
        &'a self,
        node: &'a Node,
    ) -> impl Iterator<Item = &'a Taint> {
        let taints = node.taints.iter();
        let counts = |taint: &Taint| self.node_name.is_none() || taint.effect == "NoExecute";
        taints.filter(move |taint| counts(taint) && !self.tolerates(taint))
    }

    /// Returns true if nothing but taints can keep a pod off this node.
    pub fn matches_node(&self, node: &Node) -> bool {
        self.allows_node_name(node) && self.selects(node)
    }

    /// Returns true if it names no other node.
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

    /// Returns true if it has neither a selector nor an affinity.
    pub(crate) fn is_unconstrained(&self) -> bool {
        self.selector.is_empty() && self.affinity.is_none()
    }

    /// Wants a label in addition. Where that contradicts the selector the API server refuses the pod,
    /// so both are kept, and no node has both.
    pub(super) fn require(&mut self, label: &str, value: &str) {
        let own = self.selector.entry(label.to_owned());
        if own.or_insert_with(|| value.to_owned()) == value {
            return;
        }
        self.require_all(&Requirement {
            key: label.to_owned(),
            operator: Operator::In,
            values: vec![value.to_owned()],
        });
    }

    /// Wants something of a node's labels in addition, whichever of its terms the node meets. A term
    /// that asks for nothing is met by no node, and stays so.
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

    /// Returns true if its affinity names nodes, as that of a pod of a `DaemonSet` does.
    pub(super) fn names_nodes(&self) -> bool {
        let mut terms = self.affinity.iter().flatten();
        terms.any(|term| !term.match_fields.is_empty())
    }

    /// Takes out the node that the controller of a `DaemonSet` writes into each pod, in place of
    /// the set's own affinity.
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

    /// Puts back the nodes of all pods that were found to be alike: what the set's affinity was, only
    /// they tell.
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

    fn tolerates(&self, taint: &Taint) -> bool {
        let keeps_off = matches!(taint.effect.as_str(), "NoSchedule" | "NoExecute");
        !keeps_off
            || taint.is_passing()
            || self
                .tolerations
                .iter()
                .any(|toleration| toleration.covers(taint))
    }

    /// The system that every node it admits runs, as far as its text says so.
    pub fn system(&self) -> System {
        let named = |key: &str| match self.selector.get(key).map(String::as_str) {
            Some("windows") => System::Windows,
            Some(_) => System::Other,
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
    /// A term that requires nothing is met by no node.
    fn is_met_by(&self, node: &Node) -> bool {
        let labels = || {
            self.match_expressions.iter().all(|requirement| {
                let label = node.labels.get(&requirement.key);
                let may_have_it = label.is_none() && !node.labels_are_complete;
                may_have_it || requirement.is_met_by(label.map(String::as_str))
            })
        };
        let fields = || {
            self.match_fields.iter().all(|requirement| {
                requirement.key == NODE_NAME
                    && (node.name.is_none() || requirement.is_met_by(node.name.as_deref()))
            })
        };
        !self.is_empty() && labels() && fields()
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

    /// The label and what it is held against, which has to be a label's value itself: without a sign.
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

    /// The taint's number and its own, without leading zeros.
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
