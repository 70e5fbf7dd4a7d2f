//! What a Kubernetes cluster says about its Windows nodes.

pub mod nodes;
