//! Errors of requests to a cluster's API.

use wincimg_common::diagnose::{Diagnose, Problem};

/// Error of a request to a cluster.
#[derive(Debug, thiserror::Error, Diagnose)]
pub enum LiveError {
    /// The kubeconfig is missing or invalid.
    #[error("cannot determine which cluster to connect to")]
    #[diagnose(
        code = "cluster/config",
        hint = "set --kubeconfig or KUBECONFIG, and choose a context of `kubectl config get-contexts`"
    )]
    Config(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server refused the request with this HTTP status.
    #[error("{0}")]
    #[diagnose(forward)]
    Refused(Problem, u16),
    /// Other errors.
    #[error(transparent)]
    #[diagnose(forward)]
    Other(#[from] Problem),
}

pub(super) fn no_context(name: &str, nearest: Option<String>) -> LiveError {
    let list = "`kubectl config get-contexts` lists them";
    let hint = nearest.map_or_else(
        || list.to_owned(),
        |near| format!("did you mean {near:?}? {list}"),
    );
    let problem = format!("no context {name:?} in the kubeconfig");
    Problem::new("cluster/config", problem).hint(hint).into()
}

/// Error for a server that does not answer, or breaks off.
pub(super) fn unreachable(problem: String) -> Problem {
    Problem::new("cluster/unreachable", problem)
        .hint("check with `kubectl get nodes` in the same context")
}

/// Hint for a request that failed because its namespace does not exist.
pub(super) fn no_namespace(code: u16, what: &str) -> Option<String> {
    (code == 404 && what.starts_with("create "))
        .then(|| "name an existing namespace: `kubectl get namespaces` lists them".to_owned())
}

impl LiveError {
    /// Returns true for 410: the continue token or resource version expired.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Refused(_, 410))
    }

    /// Returns true if a retry cannot help: no permission, or no such resource.
    pub fn is_permanent(&self) -> bool {
        self.is_refusal() || matches!(self, Self::Config(_) | Self::Refused(_, 404))
    }

    /// Returns true if the server refused the request for lack of permission.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(_, 401 | 403))
    }
}
