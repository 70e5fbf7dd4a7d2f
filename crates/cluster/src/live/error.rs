//! Errors of requests to a cluster's API.

use wincimg_common::diagnose::{Diagnose, Problem};

/// Error of a request to a cluster.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "cluster/answer")]
pub enum LiveError {
    /// The kubeconfig is missing or invalid.
    #[error("cannot determine which cluster to connect to")]
    #[diagnose(
        code = "cluster/config",
        hint = "set --kubeconfig or KUBECONFIG, and choose a context of `kubectl config get-contexts`"
    )]
    Config(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// 401: missing or wrong credentials.
    #[error("{address} refused the credentials (401): {message}")]
    #[diagnose(
        code = "cluster/denied",
        hint = "log in again, and check with `kubectl get nodes` in the same context"
    )]
    Unauthorized {
        /// The API server.
        address: String,
        /// The server's message.
        message: String,
    },
    /// 403: missing permissions.
    #[error("{address} refused to {what} (403): {message}")]
    #[diagnose(
        code = "cluster/denied",
        hint = "grant the permissions with: kubectl apply -f {granted_by}"
    )]
    Forbidden {
        /// The API server.
        address: String,
        /// The request, such as `list nodes`.
        what: String,
        /// The server's message.
        message: String,
        /// Template that grants them.
        granted_by: &'static str,
    },
    /// Any other error status.
    #[error("{address} failed to {what} ({code}): {message}")]
    #[diagnose(hint = no_namespace(*code, what))]
    Refused {
        /// The API server.
        address: String,
        /// The request, such as `list nodes`.
        what: String,
        /// The HTTP status.
        code: u16,
        /// The server's message.
        message: String,
    },
    /// Other errors.
    #[error(transparent)]
    #[diagnose(forward)]
    Other(#[from] Problem),
}

/// Error for a context that is not in the kubeconfig.
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
fn no_namespace(code: u16, what: &str) -> Option<String> {
    (code == 404 && what.starts_with("create "))
        .then(|| "name an existing namespace: `kubectl get namespaces` lists them".to_owned())
}

impl LiveError {
    /// Returns true for 410: the continue token or resource version expired.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Refused { code: 410, .. })
    }

    /// Returns true if a retry cannot help: no permission, or no such resource.
    pub fn is_permanent(&self) -> bool {
        self.is_refusal() || matches!(self, Self::Config(_) | Self::Refused { code: 404, .. })
    }

    /// Returns true if the server refused the request for lack of permission.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Unauthorized { .. } | Self::Forbidden { .. })
    }
}
