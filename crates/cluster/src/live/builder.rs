//! Connections to the Docker daemon of a [builder](crate::builder), by exec in its pod.

use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;

use kube::core::request::Request;
use serde::Deserialize;
use tokio::time::Instant;
use wincimg_common::diagnose::Problem;
use wincimg_common::lock;

use super::exec::PodStream;
use super::{Cluster, ClusterContext, LiveError, PATIENCE};
use crate::builder::BuilderName;
use crate::null_is_default;

/// Joins its streams to the daemon of `DOCKER_HOST`, for Docker's `ssh://` too.
const DIAL: [&str; 3] = ["docker", "system", "dial-stdio"];

/// Interval of looks at a pod that is to become ready.
const INTERVAL: Duration = Duration::from_secs(2);

/// Time for the pod of an evicted one.
const SUCCESSION: Duration = Duration::from_mins(5);

/// Error of a pod that does not run, or not yet; `problem` is what the cluster says about it.
fn not_ready(namespace: &str, pod: &str, problem: &str) -> Problem {
    let problem = format!("the pod {pod} in the namespace {namespace} is not ready: {problem}");
    Problem::new("daemon/unreachable", problem).hint(format!(
        "see `kubectl describe pod {pod} --namespace {namespace}`"
    ))
}

/// Command that makes the builder of a build.
fn creation(builder: &BuilderName, builds: &[u32]) -> String {
    let BuilderName { namespace, name } = builder;
    match builds.first() {
        Some(build) => format!(
            "apply the output of `wincimg node builder --namespace {namespace} --name {name} \
             --host-build {build} --image IMAGE`"
        ),
        None => {
            "a builder has a pod for each Windows build: build for one of them at a time".to_owned()
        }
    }
}

fn grant(builder: &BuilderName, builds: &[u32]) -> String {
    let namespace = &builder.namespace;
    let build = builds.first();
    let role = build.map_or_else(
        || "of its build".to_owned(),
        |build| builder.workload(*build),
    );
    format!(
        "let an administrator grant you the Role {role} of the namespace {namespace}, which `wincimg \
         node builder` makes: `kubectl create rolebinding NAME --namespace {namespace} --role {role} \
         --user USER`"
    )
}

/// A change of a pod since it was connected to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PodChange {
    /// It is ready, and has not been restarted.
    None,
    /// It is not ready.
    Unready,
    /// It was evicted, deleted or restarted, or is about to be.
    Gone,
}

/// The daemon in a pod. Each connection is an exec of its own.
pub struct BuilderConnection {
    cluster: Cluster,
    builder: BuilderName,
    builds: Vec<u32>,
    pod: String,
    /// Identity of the pod, which its successor does not have.
    identity: Mutex<String>,
}

impl BuilderConnection {
    /// Finds the pod of a builder for one of these builds, the first that there is, which must be
    /// ready. A pod with the builder's own name serves every build.
    pub async fn connect(
        context: &ClusterContext,
        builder: &BuilderName,
        builds: &[u32],
    ) -> Result<Self, Problem> {
        let cluster = Cluster::connect(context).await;
        let cluster = cluster.map_err(Problem::from_diagnosed)?;
        let names = builds.iter().map(|build| builder.pod(*build));
        let names: Vec<String> = names.chain([builder.name.clone()]).collect();
        // A Role grants the pod of one build: others may exist or not.
        let mut forbidden = None;
        for name in &names {
            let found = match cluster.pod(&builder.namespace, name).await {
                Ok(Some(found)) => found,
                Ok(None) => continue,
                Err(error @ LiveError::Forbidden { .. }) => {
                    forbidden.get_or_insert(error);
                    continue;
                }
                Err(error) => return Err(Problem::from_diagnosed(error)),
            };
            if let Some(problem) = found.problem() {
                return Err(not_ready(&builder.namespace, name, &problem));
            }
            return Ok(Self {
                cluster,
                builder: builder.clone(),
                builds: builds.to_vec(),
                pod: name.clone(),
                identity: Mutex::new(found.identity()),
            });
        }
        Err(match forbidden.filter(|_| !builds.is_empty()) {
            Some(error) => explain(error, builder, builds),
            None => {
                let (names, namespace) = (names.join(" or "), &builder.namespace);
                let problem = format!("no pod {names} in the namespace {namespace}");
                Problem::new("daemon/unreachable", problem).hint(creation(builder, builds))
            }
        })
    }

    /// Connects to the daemon.
    pub async fn dial(&self) -> Result<PodStream, Problem> {
        let dialled = self.cluster.exec(&self.builder.namespace, &self.pod, &DIAL);
        let dialled = dialled.await;
        dialled.map_err(|error| explain(error, &self.builder, &self.builds))
    }

    /// Returns true if the cluster's API has an address of this machine.
    pub fn is_behind_loopback(&self) -> bool {
        let address = self.cluster.address();
        let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
        let host = rest.rsplit_once(':').map_or(rest, |(host, _)| host);
        let host = host.trim_matches(['[', ']']);
        let is_loopback = |ip: IpAddr| ip.is_loopback();
        host == "localhost" || host.parse().is_ok_and(is_loopback)
    }

    /// Name of the pod.
    pub fn pod(&self) -> &str {
        &self.pod
    }

    /// What became of the pod: nothing, if the cluster does not say.
    pub async fn change(&self) -> PodChange {
        match self.cluster.pod(&self.builder.namespace, &self.pod).await {
            Ok(None) => PodChange::Gone,
            Ok(Some(found)) if found.is_ending() || found.identity() != *lock(&self.identity) => {
                PodChange::Gone
            }
            Ok(Some(found)) if found.problem().is_some() => PodChange::Unready,
            Ok(Some(_)) | Err(_) => PodChange::None,
        }
    }

    /// Waits until the pod or its successor is ready.
    pub async fn wait_until_ready(&self) -> Result<(), Problem> {
        let deadline = Instant::now() + SUCCESSION;
        loop {
            let found = self.cluster.pod(&self.builder.namespace, &self.pod).await;
            let problem = match found.map_err(Problem::from_diagnosed)? {
                Some(found) => match found.problem() {
                    Some(problem) => problem,
                    None => {
                        *lock(&self.identity) = found.identity();
                        return Ok(());
                    }
                },
                None => "it was not created again".to_owned(),
            };
            if Instant::now() >= deadline {
                return Err(not_ready(&self.builder.namespace, &self.pod, &problem));
            }
            tokio::time::sleep(INTERVAL).await;
        }
    }
}

fn explain(error: LiveError, builder: &BuilderName, builds: &[u32]) -> Problem {
    match error {
        LiveError::Forbidden {
            address,
            what,
            message,
            ..
        } => {
            let problem = format!("{address} refused to {what} (403): {message}");
            Problem::new("cluster/denied", problem).hint(grant(builder, builds))
        }
        error => Problem::from_diagnosed(error),
    }
}

impl Cluster {
    /// A pod, if there is one with that name.
    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<PodObject>, LiveError> {
        let what = format!("get the pod {namespace}/{name}");
        let request = Request::new(format!("/api/v1/namespaces/{namespace}/pods"));
        let request = request
            .get(name, &kube::core::params::GetParams::default())
            .map_err(|error| self.error(&what, kube::Error::BuildRequest(error)))?;
        let answer = self.client.request::<PodObject>(request);
        match self.within(PATIENCE, &what, answer).await {
            Ok(pod) => Ok(Some(pod)),
            Err(LiveError::Refused { code: 404, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The parts of a pod that say whether it is ready.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PodObject {
    metadata: PodMetadata,
    status: PodStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodMetadata {
    uid: String,
    deletion_timestamp: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct PodStatus {
    phase: String,
    reason: String,
    message: String,
    #[serde(deserialize_with = "null_is_default")]
    conditions: Vec<Condition>,
    #[serde(deserialize_with = "null_is_default")]
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    kind: String,
    status: String,
    message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerStatus {
    name: String,
    ready: bool,
    restart_count: u64,
    state: ContainerState,
    last_state: ContainerState,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    waiting: Option<StateDetails>,
    terminated: Option<StateDetails>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StateDetails {
    reason: String,
    message: String,
    exit_code: Option<i64>,
}

impl StateDetails {
    fn describe(&self) -> String {
        let code = self.exit_code.map(|code| format!("exit code {code}"));
        let parts = [Some(self.reason.clone()), code, Some(self.message.clone())];
        joined(parts.into_iter().flatten())
    }
}

/// The parts that are not empty, as `a: b`.
fn joined(parts: impl Iterator<Item = String>) -> String {
    let parts: Vec<String> = parts
        .map(|part| part.trim().replace('\n', " "))
        .filter(|part| !part.is_empty())
        .collect();
    parts.join(": ")
}

impl PodObject {
    /// What a restart and a successor change.
    fn identity(&self) -> String {
        let restarts: u64 = self
            .status
            .container_statuses
            .iter()
            .map(|it| it.restart_count)
            .sum();
        format!("{} {restarts}", self.metadata.uid)
    }

    /// Returns true if it will not be ready again.
    fn is_ending(&self) -> bool {
        let is_done = matches!(self.status.phase.as_str(), "Failed" | "Succeeded");
        is_done || self.metadata.deletion_timestamp.is_some()
    }

    /// Why the pod is not ready, if it is not.
    fn problem(&self) -> Option<String> {
        let status = &self.status;
        if self.metadata.deletion_timestamp.is_some() {
            return Some("it is being deleted".to_owned());
        }
        let all_ready = status.container_statuses.iter().all(|it| it.ready);
        if status.phase == "Running" && all_ready && !status.container_statuses.is_empty() {
            return None;
        }
        let unscheduled = status
            .conditions
            .iter()
            .find(|it| it.kind == "PodScheduled" && it.status == "False");
        let unready = status.container_statuses.iter().find(|it| !it.ready);
        let own = [status.reason.clone(), status.message.clone()];
        let reason = match (unscheduled, unready) {
            _ if own.iter().any(|text| !text.is_empty()) => joined(own.into_iter()),
            (Some(condition), _) => {
                joined(["not scheduled".to_owned(), condition.message.clone()].into_iter())
            }
            (None, Some(container)) => container.problem(),
            (None, None) => String::new(),
        };
        Some(joined([status.phase.clone(), reason].into_iter()))
    }
}

impl ContainerStatus {
    fn problem(&self) -> String {
        let now = self
            .state
            .waiting
            .as_ref()
            .or(self.state.terminated.as_ref());
        let before = self.last_state.terminated.as_ref();
        let before = before.map(|last| format!("last ended with {}", last.describe()));
        let now = now.map_or_else(
            || format!("the container {} is not ready", self.name),
            StateDetails::describe,
        );
        joined([now, before.unwrap_or_default()].into_iter())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problem(pod: serde_json::Value) -> Option<String> {
        serde_json::from_value::<PodObject>(pod).unwrap().problem()
    }

    #[test]
    fn a_pod_says_why_it_is_not_ready() {
        let ready = json!({"name": "dockerd", "ready": true, "state": {"running": {}}});
        assert_eq!(
            problem(json!({"status": {"phase": "Running", "containerStatuses": [ready]}})),
            None
        );
        let cases = [
            (
                json!({"metadata": {"deletionTimestamp": "x"}, "status": {"phase": "Running"}}),
                "it is being deleted",
            ),
            (
                json!({"status": {"phase": "Failed", "reason": "Evicted", "message": "low on disk"}}),
                "Failed: Evicted: low on disk",
            ),
            (
                json!({"status": {"phase": "Pending", "conditions": [
                    {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
                ]}}),
                "Pending: not scheduled: 0/3 nodes are available",
            ),
            (
                json!({"status": {"phase": "Pending", "containerStatuses": [{"name": "dockerd",
                    "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no\nsuch image"}}}]}}),
                "Pending: ImagePullBackOff: no such image",
            ),
            (
                json!({"status": {"phase": "Running", "containerStatuses": [{"name": "dockerd",
                    "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                    "lastState": {"terminated": {"reason": "Error", "exitCode": 1}}}]}}),
                "Running: CrashLoopBackOff: last ended with Error: exit code 1",
            ),
            (
                json!({"status": {"phase": "Running", "containerStatuses": [{"name": "dockerd",
                    "ready": false, "state": {"running": {}}}]}}),
                "Running: the container dockerd is not ready",
            ),
            (
                json!({"status": {"phase": "Pending", "containerStatuses": null}}),
                "Pending",
            ),
        ];
        for (pod, expected) in cases {
            assert_eq!(problem(pod).as_deref(), Some(expected));
        }
    }
}
