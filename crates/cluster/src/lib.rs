//! Compatibility of a Kubernetes cluster's Windows nodes with the images of its workloads.
//!
//! ```
//! use wincimg_cluster::nodes::{Node, NodeList};
//! use wincimg_cluster::rollout::{Image, Rollout, RolloutRequest};
//! use wincimg_windows::compat::HostBuild;
//! use wincimg_windows::version::WindowsVersion;
//!
//! let host = HostBuild::new(WindowsVersion::new(17763, 973));
//! let rollout = Rollout::new(&RolloutRequest {
//!     nodes: NodeList {
//!         windows: vec![Node::from_build(host)],
//!         others: Vec::new(),
//!     },
//!     images: vec![Image::from_version(WindowsVersion::new(20348, 2402))],
//!     plain: 1,
//!     ..RolloutRequest::default()
//! });
//! assert!(!rollout.is_compatible(false));
//! for check in rollout.checks() {
//!     println!("{}", check.finding.reason);
//! }
//! ```

pub mod build_nodes;
pub mod builder;
mod constraints;
mod controller;
pub mod live;
pub mod manifest_text;
mod manifests;
pub mod names;
pub mod node_script;
pub mod nodes;
mod pod;
mod pod_templates;
pub mod prepull;
pub mod rollout;
pub mod scheduling;
pub mod selector;
pub mod workloads;
mod yaml;

use std::collections::BTreeMap;

use serde::Deserializer;
use wincimg_common::json::or_default;

/// Reads a map of texts, in which Go reads `null` as the empty one.
fn null_is_empty<'de, D>(deserializer: D) -> Result<BTreeMap<String, String>, D::Error>
where
    D: Deserializer<'de>,
{
    let map: BTreeMap<String, Option<String>> = or_default(deserializer)?;
    let texts = map.into_iter();
    Ok(texts
        .map(|(key, text)| (key, text.unwrap_or_default()))
        .collect())
}
