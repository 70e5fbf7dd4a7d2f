//! Options and errors of a check against a live cluster.

use clap::Args;
use wincimg_cluster::live::{Cluster, NodeSnapshot, WorkloadScope};
use wincimg_cluster::workloads::WorkloadList;

use crate::cli::complete;
use crate::cli::error::Failure;

/// Selection of a cluster and its workloads.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Cluster options")]
pub(super) struct KubeArgs {
    /// Read nodes from the cluster, and its workloads if no image is given
    #[arg(long)]
    pub(super) kube: bool,
    /// Kubeconfig context [default: the current context, or in a pod the pod's cluster]
    #[arg(long, value_name = "NAME", requires = "kube", add = complete::contexts())]
    context: Option<String>,
    /// Only workloads in this namespace
    #[arg(short, long, value_name = "NAME", requires = "kube")]
    namespace: Option<String>,
    /// Only workloads with matching labels, such as app=web,tier!=cache
    #[arg(short = 'l', long, value_name = "LABELS", requires = "kube")]
    selector: Option<String>,
    /// Watch the cluster: a live table on a terminal, otherwise one line per changed verdict
    #[arg(long, requires = "kube", conflicts_with_all = ["simulate", "simulate_hotfix"])]
    pub(super) watch: bool,
}

impl KubeArgs {
    /// Returns true if only some of the cluster's workloads are selected.
    pub(super) fn chooses_workloads(&self) -> bool {
        self.namespace.is_some() || self.selector.is_some()
    }

    /// Arguments that make kubectl use the same cluster.
    pub(super) fn to_words(&self) -> Vec<String> {
        let context = self.context.iter();
        context
            .flat_map(|context| ["--context".to_owned(), context.clone()])
            .collect()
    }

    pub(super) async fn connect(&self) -> Result<Cluster, Failure> {
        Ok(Cluster::connect(self.context.as_deref()).await?)
    }

    pub(super) async fn nodes(cluster: &Cluster) -> Result<NodeSnapshot, Failure> {
        Ok(cluster.nodes().await?)
    }

    pub(super) async fn workloads(&self, cluster: &Cluster) -> Result<WorkloadList, Failure> {
        let scope = WorkloadScope {
            namespace: self.namespace.clone(),
            selector: self.selector.clone(),
        };
        Ok(cluster.workloads(&scope).await?)
    }
}
