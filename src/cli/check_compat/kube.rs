//! Options of a check against a live cluster.

use clap::Args;

use crate::cli::Failure;
use crate::cli::cluster_values::namespace;

/// Selection of a cluster's workloads.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Cluster options")]
pub(super) struct KubeArgs {
    /// Only workloads in this namespace
    #[arg(short = 'n', long, value_name = "NAME", value_parser = namespace, requires = "kube")]
    pub(super) namespace: Option<String>,
    /// Only workloads with matching labels, such as app=web,tier!=cache
    #[arg(long, value_name = "LABELS", requires = "kube", hide_short_help = true)]
    pub(super) workload_selector: Option<String>,
    /// Watch the cluster: a live table on a terminal, otherwise one line per changed verdict
    #[arg(long, requires = "kube", conflicts_with_all = ["simulate", "simulate_hotfix"])]
    pub(super) watch: bool,
}

impl KubeArgs {
    /// Returns true if only some of the cluster's workloads are selected.
    pub(super) fn chooses_workloads(&self) -> bool {
        self.namespace.is_some() || self.workload_selector.is_some()
    }

    /// Error for a selection without workloads: a gate must not pass because of a misspelt name.
    pub(super) fn no_workload(&self) -> Failure {
        let namespace = self.namespace.as_ref();
        let namespace = namespace.map(|name| format!(" in the namespace {name}"));
        let selector = self.workload_selector.as_ref();
        let selector = selector.map(|labels| format!(" matches {labels}"));
        let parts: String = namespace.into_iter().chain(selector).collect();
        Failure::usage(format!("no workload{parts}")).hint(
            "run `kubectl get namespaces`; --workload-selector takes labels as listed by `kubectl \
             get deployments --show-labels`",
        )
    }
}
