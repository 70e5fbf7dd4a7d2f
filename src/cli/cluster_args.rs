//! Arguments that select a cluster.

use clap::ValueHint;
use wincimg_cluster::live::{Cluster, ClusterContext, NodeSnapshot};

use super::http_args::USER_AGENT;
use crate::cli::prelude::*;

/// The flags that use a cluster.
pub(super) const CLUSTER_SOURCE: &str = "cluster_source";

/// Selection of a cluster.
#[derive(Debug, Clone, Args)]
pub(super) struct ClusterArgs {
    /// Read the nodes from the cluster
    #[arg(long, display_order = 3, group = CLUSTER_SOURCE)]
    kube: bool,
    /// Kubeconfig context [default: the current context, or in a pod the pod's cluster]
    #[arg(long = "context", alias = "kube-context", display_order = 4, value_name = "NAME", requires = CLUSTER_SOURCE, hide_short_help = true, add = complete::contexts())]
    kube_context: Option<String>,
    /// Kubeconfig file [default: `KUBECONFIG`, then ~/.kube/config]
    #[arg(long, display_order = 5, value_name = "FILE", value_hint = ValueHint::FilePath, requires = CLUSTER_SOURCE, hide_short_help = true)]
    kubeconfig: Option<PathBuf>,
}

impl ClusterArgs {
    /// Returns true if the nodes of a cluster are to be read.
    pub(super) fn is_set(&self) -> bool {
        self.kube
    }

    pub(super) fn context(&self) -> ClusterContext {
        ClusterContext {
            kubeconfig: self.kubeconfig.clone(),
            name: self.kube_context.clone(),
            user_agent: USER_AGENT,
        }
    }

    /// Arguments that make kubectl use the same cluster.
    pub(super) fn to_words(&self) -> Vec<String> {
        let file = self.kubeconfig.iter().map(|file| {
            let file = file.display().to_string();
            ["--kubeconfig".to_owned(), file]
        });
        let context = self.kube_context.iter();
        let context = context.map(|context| ["--context".to_owned(), context.clone()]);
        file.chain(context).flatten().collect()
    }

    pub(super) async fn connect(&self) -> Result<Cluster, Failure> {
        Ok(Cluster::connect(&self.context()).await?)
    }

    /// `cluster production (https://10.0.0.1:6443)`, for reports.
    pub(super) fn describe(&self, cluster: &Cluster) -> String {
        let address = &cluster.address;
        match &self.kube_context {
            Some(name) => format!("cluster {name} ({address})"),
            None => format!("cluster {address}"),
        }
    }

    pub(super) fn nodes(&self) -> Result<NodeSnapshot, Failure> {
        registry_args::run(async { Ok(self.connect().await?.nodes().await?) })
    }
}
