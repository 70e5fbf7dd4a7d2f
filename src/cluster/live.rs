//! Nodes and workloads from a cluster's API, read and never written: lists in pages, and a watch
//! that survives what watches run into.

use std::time::Duration;

use futures_util::future::try_join_all;
use kube::client::Client;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use kube::core::params::ListParams;
use kube::core::request::Request;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::null_is_default;
use super::workloads::WorkloadList;

use crate::diagnose::{Diagnose, nearest};

mod watch;

pub use watch::{NodeChange, NodeSnapshot, NodeWatch};

/// How many objects a page has, as kubectl asks for.
const PAGE: u32 = 500;

/// A page that takes longer than this will not come.
const PATIENCE: Duration = Duration::from_mins(1);

/// How often a list is begun again whose pages became too old.
const RESTARTS: usize = 3;

/// Where the nodes are.
const NODES: &str = "/api/v1/nodes";

/// What makes pods, and where it is: API and plural name.
const WORKLOADS: [(&str, &str, &str); 8] = [
    ("Deployment", "/apis/apps/v1", "deployments"),
    ("DaemonSet", "/apis/apps/v1", "daemonsets"),
    ("StatefulSet", "/apis/apps/v1", "statefulsets"),
    ("ReplicaSet", "/apis/apps/v1", "replicasets"),
    ("CronJob", "/apis/batch/v1", "cronjobs"),
    ("Job", "/apis/batch/v1", "jobs"),
    ("ReplicationController", "/api/v1", "replicationcontrollers"),
    ("Pod", "/api/v1", "pods"),
];

/// A cluster that is asked.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    address: String,
}

/// Which workloads.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// Only those of this namespace.
    pub namespace: Option<String>,
    /// Only those whose labels match, as kubectl's `--selector` has it.
    pub selector: Option<String>,
}

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
    /// 403: whoever asks may not see this.
    #[error("{address} refused to list {what} (403): {message}")]
    Forbidden {
        /// The API server.
        address: String,
        /// What was asked for.
        what: String,
        /// Its words.
        message: String,
    },
    /// Any other answer that is none.
    #[error("{address} did not list {what} ({code}): {message}")]
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
    #[error("{address} did not list {what} within {} s", PATIENCE.as_secs())]
    Silent {
        /// The API server.
        address: String,
        /// What was asked for.
        what: String,
    },
    /// The list changes faster than it can be read.
    #[error("{address} let the list of {what} expire before its last page, {RESTARTS} times")]
    Forgotten {
        /// The API server.
        address: String,
        /// What was asked for.
        what: String,
    },
    /// The connection or the answer is broken.
    #[error("cannot list {what} from {address}")]
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
            Self::Forbidden { .. } => {
                "kubectl apply -f templates/ci/kubernetes/rbac.yaml grants what is needed"
            }
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

impl LiveError {
    fn is_gone(&self) -> bool {
        matches!(self, Self::Refused { code: 410, .. })
    }
}

/// A page of a list.
#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct Page<T> {
    #[serde(default, deserialize_with = "null_is_default")]
    metadata: PageMetadata,
    #[serde(default, deserialize_with = "null_is_default")]
    items: Vec<T>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    next: String,
    #[serde(default)]
    resource_version: String,
}

/// The names of the kubeconfig's contexts, as far as it can be read.
pub fn contexts() -> Vec<String> {
    let read = Kubeconfig::read().unwrap_or_default();
    read.contexts
        .into_iter()
        .map(|context| context.name)
        .collect()
}

impl Cluster {
    /// The cluster of a kubeconfig's context; without one of the current context or, inside a pod,
    /// the pod's own.
    pub async fn connect(context: Option<&str>) -> Result<Self, LiveError> {
        let failed = |error: Box<dyn std::error::Error + Send + Sync>| LiveError::Config(error);
        let config = match context {
            Some(name) => {
                let read = Kubeconfig::read().map_err(|error| failed(error.into()))?;
                let names = || read.contexts.iter().map(|known| known.name.as_str());
                if !names().any(|known| known == name) {
                    return Err(LiveError::NoContext {
                        name: name.to_owned(),
                        nearest: nearest(name, names()),
                    });
                }
                let options = KubeConfigOptions {
                    context: context.map(str::to_owned),
                    ..KubeConfigOptions::default()
                };
                Config::from_kubeconfig(&options)
                    .await
                    .map_err(|error| failed(error.into()))?
            }
            None => Config::infer()
                .await
                .map_err(|error| failed(error.into()))?,
        };
        let address = config.cluster_url.to_string();
        let client = Client::try_from(config).map_err(|error| failed(error.into()))?;
        Ok(Self {
            client,
            address: address.trim_end_matches('/').to_owned(),
        })
    }

    /// All nodes as they are now.
    pub async fn nodes(&self) -> Result<NodeSnapshot, LiveError> {
        let (objects, version) = self.list("nodes", NODES, None).await?;
        Ok(NodeSnapshot::new(objects, version))
    }

    /// The workloads of the scope, and the cluster's runtime classes. What is done already is left
    /// out: it starts no more.
    pub async fn workloads(&self, scope: &Scope) -> Result<WorkloadList, LiveError> {
        let kinds = WORKLOADS.iter().map(async |(kind, api, plural)| {
            let path = match &scope.namespace {
                Some(namespace) => format!("{api}/namespaces/{namespace}/{plural}"),
                None => format!("{api}/{plural}"),
            };
            let listed = self.list_if_known(plural, &path, scope.selector.as_deref());
            Ok((*kind, listed.await?))
        });
        let classes = async {
            let path = "/apis/node.k8s.io/v1/runtimeclasses";
            let listed = self.list_if_known("runtimeclasses", path, None).await?;
            Ok(vec![("RuntimeClass", listed)])
        };
        let (classes, kinds) = tokio::try_join!(classes, try_join_all(kinds))?;
        let mut list = WorkloadList::default();
        for (kind, objects) in classes.into_iter().chain(kinds) {
            for object in objects {
                if is_done(kind, &object) {
                    continue;
                }
                let workloads = list
                    .add_object(kind, object)
                    .map_err(|(object, problem)| LiveError::Object { object, problem })?;
                list.workloads.extend(workloads);
            }
        }
        Ok(list)
    }

    /// A list of a kind that old clusters do not have.
    async fn list_if_known(
        &self,
        what: &str,
        path: &str,
        selector: Option<&str>,
    ) -> Result<Vec<Value>, LiveError> {
        match self.list(what, path, selector).await {
            Ok((objects, _)) => Ok(objects),
            Err(LiveError::Refused { code: 404, .. }) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Everything of a list and its version, page by page.
    async fn list<T: DeserializeOwned>(
        &self,
        what: &str,
        path: &str,
        selector: Option<&str>,
    ) -> Result<(Vec<T>, String), LiveError> {
        for _ in 0..RESTARTS {
            match self.pages(what, path, selector).await {
                // The server keeps a list's pages for some minutes only.
                Err(error) if error.is_gone() => {}
                result => return result,
            }
        }
        Err(LiveError::Forgotten {
            address: self.address.clone(),
            what: what.to_owned(),
        })
    }

    async fn pages<T: DeserializeOwned>(
        &self,
        what: &str,
        path: &str,
        selector: Option<&str>,
    ) -> Result<(Vec<T>, String), LiveError> {
        let mut parameters = ListParams::default().limit(PAGE);
        parameters.label_selector = selector.map(str::to_owned);
        let mut items = Vec::new();
        loop {
            let request = Request::new(path)
                .list(&parameters)
                .map_err(|error| self.error(what, kube::Error::BuildRequest(error)))?;
            let answer = self.client.request::<Page<T>>(request);
            let page = tokio::time::timeout(PATIENCE, answer)
                .await
                .map_err(|_| LiveError::Silent {
                    address: self.address.clone(),
                    what: what.to_owned(),
                })?
                .map_err(|error| self.error(what, error))?;
            items.extend(page.items);
            if page.metadata.next.is_empty() {
                return Ok((items, page.metadata.resource_version));
            }
            parameters.continue_token = Some(page.metadata.next);
        }
    }

    fn error(&self, what: &str, error: kube::Error) -> LiveError {
        let (address, what) = (self.address.clone(), what.to_owned());
        let status = match error {
            kube::Error::Api(status) => status,
            error => {
                return LiveError::Broken {
                    address,
                    what,
                    source: match error {
                        // It only repeats what its cause says.
                        kube::Error::Service(cause) => cause,
                        other => other.into(),
                    },
                };
            }
        };
        let message = match status.message.as_str() {
            "" => status.reason.clone(),
            message => message.trim().replace('\n', " "),
        };
        match status.code {
            401 => LiveError::Unauthorized { address, message },
            403 => LiveError::Forbidden {
                address,
                what,
                message,
            },
            code => LiveError::Refused {
                address,
                what,
                code,
                message,
            },
        }
    }
}

/// Whether nothing of it will ever start again.
fn is_done(kind: &str, object: &Value) -> bool {
    match kind {
        "Pod" => matches!(
            object.pointer("/status/phase").and_then(Value::as_str),
            Some("Succeeded" | "Failed")
        ),
        "Job" => object.pointer("/status/completionTime").is_some(),
        _ => false,
    }
}
