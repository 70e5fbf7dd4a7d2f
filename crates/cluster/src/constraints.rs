//! What objects other than a pod template add to the scheduling of its pods: the subsets of a
//! `UnitedDeployment` of OpenKruise, and namespaces of OpenShift.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use wincimg_common::json::or_default;

use super::pod::PodTemplate;
use super::scheduling::{SelectorTerm, Toleration};

/// A subset of a `UnitedDeployment`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Subset {
    #[serde(default, deserialize_with = "or_default")]
    node_selector_term: SelectorTerm,
    #[serde(default, deserialize_with = "or_default")]
    tolerations: Vec<Toleration>,
}

impl Subset {
    /// Its pods. Of the term, OpenKruise adds only the requirements on labels.
    fn pod(&self, template: &PodTemplate) -> PodTemplate {
        let mut template = template.clone();
        let scheduling = &mut template.scheduling;
        for requirement in &self.node_selector_term.match_expressions {
            scheduling.require_all(requirement);
        }
        scheduling
            .tolerations
            .extend(self.tolerations.iter().cloned());
        template
    }
}

/// The pods of an object with these templates: those of a `UnitedDeployment` once for each subset.
pub(super) fn in_subsets(
    templates: Vec<PodTemplate>,
    kind: &str,
    object: &Value,
) -> Vec<PodTemplate> {
    let subsets = object.pointer("/spec/topology/subsets");
    let subsets = subsets.filter(|_| kind == "UnitedDeployment");
    let subsets = subsets.and_then(|subsets| Vec::<Subset>::deserialize(subsets).ok());
    if let ([template], Some(subsets @ [_, ..])) = (&templates[..], subsets.as_deref()) {
        return subsets.iter().map(|subset| subset.pod(template)).collect();
    }
    templates
}

/// The name of a namespace, and the node selector that OpenShift adds to all of its pods.
pub(super) fn of_namespace(object: &Value) -> Option<(String, BTreeMap<String, String>)> {
    let word = |pointer: &str| object.pointer(pointer).and_then(Value::as_str);
    let selector = word("/metadata/annotations/openshift.io~1node-selector")?;
    let labels = selector.split(',').map(|label| {
        let (key, value) = label.split_once('=')?;
        Some((key.trim().to_owned(), value.trim().to_owned()))
    });
    let labels: Option<BTreeMap<String, String>> = labels.collect();
    Some((word("/metadata/name")?.to_owned(), labels?))
}
