//! What goes wrong between this program and a cluster's API.

use std::time::Duration;

use wincimg_common::diagnose::Diagnose;

/// A cluster that did not say what was asked.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// The kubeconfig is missing or invalid.
    #[error("cannot find out which cluster to ask")]
    Config(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// A context that is not in the kubeconfig.
    #[error("no context {name:?} in the kubeconfig")]
    NoContext {
        /// What was asked for.
        name: String,
        /// The one that was probably meant.
        nearest: Option<String>,
    },
    /// 401: missing or wrong credentials.
    #[error("{address} refused the credentials (401): {message}")]
    Unauthorized {
        /// The API server.
        address: String,
        /// Its words.
        message: String,
    },
    /// 403: whoever asks may not do this.
    #[error("{address} refused to {what} (403): {message}")]
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

impl Diagnose for LiveError {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::NoContext {
                nearest: Some(near),
                ..
            } => {
                return Some(format!(
                    "did you mean {near:?}? `kubectl config get-contexts` lists them"
                ));
            }
            Self::NoContext { .. } => "`kubectl config get-contexts` lists them",
            Self::Config(_) => {
                "set KUBECONFIG, or name one of `kubectl config get-contexts` with --context"
            }
            Self::Unauthorized { .. } => {
                "log in again, and check with `kubectl get nodes` in the same context"
            }
            Self::Broken { .. } | Self::Silent { .. } => {
                "check with `kubectl get nodes` in the same context"
            }
            // Nothing can be made in a namespace that is not there.
            Self::Refused {
                code: 404, what, ..
            } if what.starts_with("create ") => {
                "name a namespace that is there: `kubectl get namespaces`"
            }
            Self::Forbidden { granted_by, .. } => {
                return Some(format!(
                    "kubectl apply -f {granted_by} grants what is needed"
                ));
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

impl LiveError {
    /// What was to be gone on with is too old.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Refused { code: 410, .. })
    }

    /// Asking again helps nobody: there is no right to it, or no such place.
    pub fn is_for_good(&self) -> bool {
        self.is_refusal() || matches!(self, Self::Config(_) | Self::Refused { code: 404, .. })
    }

    /// Whoever asks has no right to it, and will not get it by asking again.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Unauthorized { .. } | Self::Forbidden { .. })
    }
}
