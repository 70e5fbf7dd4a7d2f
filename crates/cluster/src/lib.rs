//! What a Kubernetes cluster says about its nodes and about the pods that are to run on them.

pub mod live;
pub mod node_script;
pub mod nodes;
pub mod pod;
mod recent;
pub mod rollout;
pub mod scheduling;
mod search;
pub mod selector;
mod text;
pub mod workloads;
mod yaml;

use serde::{Deserialize, Deserializer};

/// Reads `null`, which Go writes for an empty list or map, as the empty value.
fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Ok(Option::<T>::deserialize(deserializer)?.unwrap_or_default())
}
