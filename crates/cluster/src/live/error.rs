//! What goes wrong between this program and a cluster's API.

use std::time::Duration;

use wincimg_common::diagnose::Diagnose;

/// A cluster that did not say what was asked.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "cluster/answer")]
pub enum LiveError {
    /// The kubeconfig is missing or invalid.
    #[error("cannot find out which cluster to ask")]
    #[diagnose(
        code = "cluster/config",
        hint = "set KUBECONFIG, or name one of `kubectl config get-contexts` with --context"
    )]
    Config(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A context that is not in the kubeconfig.
    #[error("no context {name:?} in the kubeconfig")]
    #[diagnose(code = "cluster/config", hint = Some(other_context(nearest.as_deref())))]
    NoContext {
        /// What was asked for.
        name: String,
        /// The one that was probably meant.
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
        /// Its words.
        message: String,
    },
    /// 403: whoever asks may not do this.
    #[error("{address} refused to {what} (403): {message}")]
    #[diagnose(
        code = "cluster/denied",
        hint = "kubectl apply -f {granted_by} grants what is needed"
    )]
    Forbidden {
        /// The API server.
        address: String,
        /// What was asked for.
        what: String,
        /// Its words.
        message: String,
        /// The template that grants it.
        granted_by: &'static str,
    },
    /// Any other answer that is none.
    #[error("{address} did not {what} ({code}): {message}")]
    #[diagnose(hint = no_namespace(*code, what))]
    Refused {
        /// The API server.
        address: String,
        /// What was asked for.
        what: String,
        /// The HTTP status.
        code: u16,
        /// Its words.
        message: String,
    },
    /// Nothing came.
    #[error("{address} did not {what} within {} s", patience.as_secs())]
    #[diagnose(
        code = "cluster/unreachable",
        hint = "check with `kubectl get nodes` in the same context"
    )]
    Silent {
        /// The API server.
        address: String,
        /// What was asked for.
        what: String,
        /// How long it was waited for.
        patience: Duration,
    },
    /// The list changes faster than it can be read.
    #[error("{address} let the list of {what} expire before its last page, {times} times")]
    Forgotten {
        /// The API server.
        address: String,
        /// What was asked for.
        what: String,
        /// How often.
        times: usize,
    },
    /// The connection or the answer is broken.
    #[error("{address} cannot be asked to {what}")]
    #[diagnose(
        code = "cluster/unreachable",
        hint = "check with `kubectl get nodes` in the same context"
    )]
    Broken {
        /// The API server.
        address: String,
        /// What was asked for.
        what: String,
        /// Why.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// An object has a field of the wrong type.
    #[error("{object}: {problem}")]
    Object {
        /// Its kind and name.
        object: String,
        /// What is wrong.
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

/// Nothing can be made in a namespace that is not there.
fn no_namespace(code: u16, what: &str) -> Option<String> {
    (code == 404 && what.starts_with("create "))
        .then(|| "name a namespace that is there: `kubectl get namespaces`".to_owned())
}

impl LiveError {
    /// What was to be gone on with is too old.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Refused { code: 410, .. })
    }

    /// Asking again helps nobody: there is no right to it, or no such place.
    pub fn is_permanent(&self) -> bool {
        self.is_refusal() || matches!(self, Self::Config(_) | Self::Refused { code: 404, .. })
    }

    /// Whoever asks has no right to it, and will not get it by asking again.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Unauthorized { .. } | Self::Forbidden { .. })
    }
}
