//! Client of a cluster's API: paged lists of nodes and workloads, and a watch that recovers from
//! errors.
//!
//! Nodes and workloads are only read. `fleet follow` alone writes: one lease (`lease`) and events
//! about nodes (`events`). A [`BuilderConnection`] runs a program in a builder's pod.

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::try_join_all;
use kube::client::Client;
use kube::config::Kubeconfig;
use kube::core::params::ListParams;
use kube::core::request::Request;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wincimg_common::diagnose::Problem;
use wincimg_common::json::or_default;

use super::workloads::WorkloadList;

mod builder;
mod client;
mod config;
mod credentials;
mod error;
mod events;
mod exec;
mod lease;
mod plugin;
mod proxy;
mod watch;

pub use builder::{BuilderConnection, PodChange};
pub use error::LiveError;
use error::{no_namespace, unreachable};
pub use events::{EventRecorder, NodeEvent, NodeReference};
pub use exec::{PodStream, ProgramError};
pub use lease::{LeaderElector, Leadership, LeaseName};
use plugin::Plugin;
pub use watch::{NodeChange, NodeSnapshot, NodeWatch};

/// Objects per page, the default of kubectl.
const PAGE: u32 = 500;

/// Maximum size of a list.
const MAX_LIST_BYTES: usize = 1 << 30;
/// Maximum number of pages of a list.
const MAX_PAGES: usize = 2000;

/// Timeout of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// Retries of a list whose continue token expired.
const RESTARTS: usize = 3;

/// Template that grants the permissions of a check.
const ROLE: &str = "templates/ci/kubernetes/rbac.yaml";

const NODES: &str = "/api/v1/nodes";

/// Kinds that create pods, each with its API and plural name.
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

/// Client of one cluster.
#[derive(Clone)]
pub struct Cluster {
    client: Client,
    /// URL of the API server.
    pub address: String,
    /// The proxy to it, to follow the URL.
    proxy: String,
    /// The namespace of the context; inside a pod the pod's own.
    pub namespace: String,
    /// Template that grants the permissions, for hints.
    pub rbac_template: &'static str,
}

#[derive(Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct Page<T> {
    #[serde(default, deserialize_with = "or_default")]
    metadata: PageMetadata,
    #[serde(default, deserialize_with = "or_default")]
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

/// Selection of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClusterContext {
    /// The kubeconfig, if it is not kubectl's.
    pub kubeconfig: Option<PathBuf>,
    /// The kubeconfig's context, if it is not the current one.
    pub name: Option<String>,
    /// The name of the client in the cluster's audit log.
    pub user_agent: &'static str,
}

impl Cluster {
    /// Connects to the cluster of a kubeconfig's context: by default the current context or, inside
    /// a pod, the pod's own cluster.
    pub async fn connect(context: &ClusterContext) -> Result<Self, LiveError> {
        let (mut config, proxy) = config::read(context).await?;
        credentials::refuse_gcp(&config.auth_info)?;
        credentials::trim_tokens(&mut config.auth_info)?;
        let plugin = Plugin::start(&mut config.auth_info).await?;
        if let (Ok(name), Ok(value)) = ("user-agent".parse(), context.user_agent.parse()) {
            config.headers.push((name, value));
        }
        let address = config.cluster_url.to_string();
        let namespace = config.default_namespace.clone();
        let client = client::client(config, plugin)
            .map_err(|error| LiveError::Config(error.to_string().into()))?;
        Ok(Self {
            client,
            address: address.trim_end_matches('/').to_owned(),
            proxy,
            namespace,
            rbac_template: ROLE,
        })
    }

    /// Lists all nodes.
    pub async fn nodes(&self) -> Result<NodeSnapshot, LiveError> {
        let (objects, version) = self.list("nodes", NODES, None).await?;
        Ok(NodeSnapshot::new(objects, version))
    }

    /// Lists the workloads of a namespace or all, and the cluster's runtime classes; `selector` has
    /// the syntax of kubectl's `--selector`.
    pub async fn workloads(
        &self,
        namespace: Option<&str>,
        selector: Option<&str>,
    ) -> Result<WorkloadList, LiveError> {
        let kinds = WORKLOADS.iter().map(async |(kind, api, plural)| {
            let path = match namespace {
                Some(namespace) => format!("{api}/namespaces/{namespace}/{plural}"),
                None => format!("{api}/{plural}"),
            };
            let listed = self.list_if_known(plural, &path, selector);
            Ok::<_, LiveError>((*kind, listed.await?))
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
                let workloads = list
                    .add_object(kind, object)
                    .map_err(|problem| Problem::new("cluster/answer", problem))?;
                list.workloads.extend(workloads);
            }
        }
        Ok(list)
    }

    /// Lists a kind that old clusters do not have.
    async fn list_if_known(
        &self,
        what: &str,
        path: &str,
        selector: Option<&str>,
    ) -> Result<Vec<Value>, LiveError> {
        match self.list(what, path, selector).await {
            Ok((objects, _)) => Ok(objects),
            Err(LiveError::Refused(_, 404)) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Lists all pages, and the resource version.
    async fn list<T: DeserializeOwned>(
        &self,
        what: &str,
        path: &str,
        selector: Option<&str>,
    ) -> Result<(Vec<T>, String), LiveError> {
        for _ in 0..RESTARTS {
            match self.pages(what, path, selector).await {
                // A continue token expires after some minutes.
                Err(error) if error.is_gone() => {}
                result => return result,
            }
        }
        let problem = format!(
            "the list of {what} at {} expired before its last page, {RESTARTS} times",
            self.address
        );
        Err(Problem::new("cluster/answer", problem).into())
    }

    async fn pages<T: DeserializeOwned>(
        &self,
        what: &str,
        path: &str,
        selector: Option<&str>,
    ) -> Result<(Vec<T>, String), LiveError> {
        let mut parameters = ListParams::default().limit(PAGE);
        parameters.label_selector = selector.map(str::to_owned);
        let what = format!("list {what}");
        let (mut items, mut size) = (Vec::new(), 0);
        for _ in 0..MAX_PAGES {
            let body = self.page(path, &parameters);
            let body = self.within(REQUEST_TIMEOUT, &what, body).await?;
            size += body.len();
            if size > MAX_LIST_BYTES {
                break;
            }
            let page: Page<T> = serde_json::from_str(&body)
                .map_err(|error| self.error(&what, kube::Error::SerdeError(error)))?;
            items.extend(page.items);
            let next = page.metadata.next;
            if next.is_empty() {
                return Ok((items, page.metadata.resource_version));
            }
            if parameters.continue_token.as_ref() == Some(&next) {
                break;
            }
            parameters.continue_token = Some(next);
        }
        Err(self.too_large(&what))
    }

    async fn page(&self, path: &str, parameters: &ListParams) -> Result<String, kube::Error> {
        let request = Request::new(path)
            .list(parameters)
            .map_err(kube::Error::BuildRequest)?;
        self.client.request_text(request).await
    }

    /// Applies the timeout to a request.
    async fn within<T>(
        &self,
        wait_limit: Duration,
        what: &str,
        answer: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, LiveError> {
        match tokio::time::timeout(wait_limit, answer).await {
            Ok(answer) => answer.map_err(|error| self.error(what, error)),
            Err(_) => Err(self.timeout_error(wait_limit, what)),
        }
    }

    /// Error for a response or a list above its limits.
    fn too_large(&self, what: &str) -> LiveError {
        let address = &self.address;
        let problem =
            format!("{address} failed to {what}: the answer is too large or does not end");
        Problem::new("cluster/answer", problem).into()
    }

    fn timeout_error(&self, wait_limit: Duration, what: &str) -> LiveError {
        let (address, proxy, seconds) = (&self.address, &self.proxy, wait_limit.as_secs());
        unreachable(format!(
            "{address}{proxy} failed to {what} within {seconds} s"
        ))
        .into()
    }

    /// Error for a connection that failed, or an invalid response.
    fn broken(&self, what: &str, cause: impl Into<Box<dyn Error + Send + Sync>>) -> LiveError {
        let problem = format!("failed to {what} at {}{}", self.address, self.proxy);
        unreachable(problem).source(cause).into()
    }

    fn error(&self, what: &str, error: kube::Error) -> LiveError {
        if client::is_too_large(&error) {
            return self.too_large(what);
        }
        let status = match error {
            kube::Error::Api(status) => status,
            // The outer error only repeats its cause.
            kube::Error::Service(cause) => {
                return match cause.downcast::<Problem>() {
                    Ok(plugin) => LiveError::Other(*plugin),
                    Err(cause) => self.broken(what, cause),
                };
            }
            other => return self.broken(what, other),
        };
        let message = match status.message.as_str() {
            "" => status.reason.clone(),
            message => message.trim().replace('\n', " "),
        };
        let (address, code) = (&self.address, status.code);
        let problem = match code {
            401 => {
                let problem = format!("{address} refused the credentials (401): {message}");
                Problem::new("cluster/denied", problem)
                    .hint("log in again, and check with `kubectl get nodes` in the same context")
            }
            403 => {
                let problem = format!("{address} refused to {what} (403): {message}");
                let template = self.rbac_template;
                Problem::new("cluster/denied", problem).hint(format!(
                    "bind this user to the roles of {template} in wincimg's repository: that file \
                     binds a service account alone"
                ))
            }
            _ => {
                let problem = format!("{address} failed to {what} ({code}): {message}");
                Problem::new("cluster/answer", problem).hint_if(no_namespace(code, what))
            }
        };
        LiveError::Refused(problem, code)
    }
}
