//! Errors of requests to a cluster's API.

use std::time::Duration;

use wincimg_common::diagnose::Diagnose;

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
    /// A context that is not in the kubeconfig.
    #[error("no context {name:?} in the kubeconfig")]
    #[diagnose(code = "cluster/config", hint = Some(other_context(nearest.as_deref())))]
    NoContext {
        /// The request, such as `list nodes`.
        name: String,
        /// The existing name that is most similar.
        nearest: Option<String>,
    },
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
    /// Timeout.
    #[error("{address} failed to {what} within {} s", wait_limit.as_secs())]
    #[diagnose(
        code = "cluster/unreachable",
        hint = "check with `kubectl get nodes` in the same context"
    )]
    Silent {
        /// The API server.
        address: String,
        /// The request, such as `list nodes`.
        what: String,
        /// The timeout.
        wait_limit: Duration,
    },
    /// The list changes faster than it can be read.
    #[error("the list of {what} at {address} expired before its last page, {times} times")]
    Forgotten {
        /// The API server.
        address: String,
        /// The request, such as `list nodes`.
        what: String,
        /// Number of tries.
        times: usize,
    },
    /// The connection failed or the response is invalid.
    #[error("failed to {what} at {address}")]
    #[diagnose(
        code = "cluster/unreachable",
        hint = "check with `kubectl get nodes` in the same context"
    )]
    Broken {
        /// The API server.
        address: String,
        /// The request, such as `list nodes`.
        what: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An object has a field of the wrong type.
    #[error("{object}: {problem}")]
    Object {
        /// Its kind and name.
        object: String,
        /// The problem.
        problem: String,
    },
}

fn other_context(nearest: Option<&str>) -> String {
    let list = "`kubectl config get-contexts` lists them";
    nearest.map_or_else(
        || list.to_owned(),
        |near| format!("did you mean {near:?}? {list}"),
    )
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
