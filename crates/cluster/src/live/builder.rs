//! Connections to the Docker daemon of a [builder](crate::builder), by exec in its pod.

use std::sync::Mutex;
use std::time::Duration;

use http::Uri;
use k8s_openapi::api::core::v1::{ContainerStateTerminated, ContainerStatus, Pod};
use kube::api::Api;
use tokio::time::Instant;
use wincimg_common::diagnose::Problem;
use wincimg_common::{is_loopback, lock};

use super::exec::PodStream;
use super::{Cluster, ClusterContext, LiveError, REQUEST_TIMEOUT};
use crate::builder::BuilderName;

/// Joins its streams to the daemon of `DOCKER_HOST`, for Docker's `ssh://` too.
const DIAL_COMMAND: [&str; 3] = ["docker", "system", "dial-stdio"];

/// Interval of looks at a pod that is to become ready.
const INTERVAL: Duration = Duration::from_secs(2);

/// Time for the pod of an evicted one.
const SUCCESSOR_TIMEOUT: Duration = Duration::from_mins(5);

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
                Err(error @ LiveError::Refused(_, 403)) => {
                    forbidden.get_or_insert(error);
                    continue;
                }
                Err(error) => return Err(Problem::from_diagnosed(error)),
            };
            if let Some(problem) = problem_of(&found) {
                return Err(not_ready(&builder.namespace, name, &problem));
            }
            return Ok(Self {
                cluster,
                builder: builder.clone(),
                builds: builds.to_vec(),
                pod: name.clone(),
                identity: Mutex::new(identity(&found)),
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
        let dialled = self
            .cluster
            .exec(&self.builder.namespace, &self.pod, &DIAL_COMMAND);
        let dialled = dialled.await;
        dialled.map_err(|error| explain(error, &self.builder, &self.builds))
    }

    /// Returns true if the cluster's API has an address of this machine.
    pub fn is_behind_loopback(&self) -> bool {
        let address = self.cluster.address.parse::<Uri>();
        address.is_ok_and(|it| it.host().is_some_and(is_loopback))
    }

    /// Name of the pod.
    pub fn pod(&self) -> &str {
        &self.pod
    }

    /// What became of the pod: nothing, if the cluster does not say.
    pub async fn change(&self) -> PodChange {
        match self.cluster.pod(&self.builder.namespace, &self.pod).await {
            Ok(None) => PodChange::Gone,
            Ok(Some(found)) if is_ending(&found) || identity(&found) != *lock(&self.identity) => {
                PodChange::Gone
            }
            Ok(Some(found)) if problem_of(&found).is_some() => PodChange::Unready,
            Ok(Some(_)) | Err(_) => PodChange::None,
        }
    }

    /// Waits until the pod or its successor is ready.
    pub async fn wait_until_ready(&self) -> Result<(), Problem> {
        let deadline = Instant::now() + SUCCESSOR_TIMEOUT;
        loop {
            let found = self.cluster.pod(&self.builder.namespace, &self.pod).await;
            let problem = match found.map_err(Problem::from_diagnosed)? {
                Some(found) => match problem_of(&found) {
                    Some(problem) => problem,
                    None => {
                        *lock(&self.identity) = identity(&found);
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
        LiveError::Refused(problem, 403) => problem.hint(grant(builder, builds)),
        error => Problem::from_diagnosed(error),
    }
}

impl Cluster {
    async fn pod(&self, namespace: &str, name: &str) -> Result<Option<Pod>, LiveError> {
        let what = format!("get the pod {namespace}/{name}");
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        match self.within(REQUEST_TIMEOUT, &what, pods.get(name)).await {
            Ok(pod) => Ok(Some(pod)),
            Err(LiveError::Refused(_, 404)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn containers(pod: &Pod) -> &[ContainerStatus] {
    let status = pod.status.as_ref();
    let containers = status.and_then(|status| status.container_statuses.as_deref());
    containers.unwrap_or_default()
}

/// What a restart and a successor change.
fn identity(pod: &Pod) -> String {
    let restarts = containers(pod).iter().map(|it| i64::from(it.restart_count));
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    format!("{uid} {}", restarts.sum::<i64>())
}

/// Returns true if a pod will not be ready again.
fn is_ending(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
    matches!(phase, Some("Failed" | "Succeeded")) || pod.metadata.deletion_timestamp.is_some()
}

/// Why a pod is not ready, if it is not.
fn problem_of(pod: &Pod) -> Option<String> {
    if pod.metadata.deletion_timestamp.is_some() {
        return Some("it is being deleted".to_owned());
    }
    let status = pod.status.clone().unwrap_or_default();
    let unready = containers(pod).iter().find(|it| !it.ready);
    let is_running = status.phase.as_deref() == Some("Running");
    if is_running && unready.is_none() && !containers(pod).is_empty() {
        return None;
    }
    let mut conditions = status.conditions.into_iter().flatten();
    let unscheduled = conditions.find(|it| it.type_ == "PodScheduled" && it.status == "False");
    let own = joined([status.reason, status.message]);
    let reason = match (unscheduled, unready) {
        _ if !own.is_empty() => own,
        (Some(condition), _) => joined([Some("not scheduled".to_owned()), condition.message]),
        (None, Some(container)) => container_problem(container),
        (None, None) => String::new(),
    };
    Some(joined([status.phase, Some(reason)]))
}

fn container_problem(container: &ContainerStatus) -> String {
    let state = container.state.clone().unwrap_or_default();
    let before = container.last_state.clone();
    let before = before.and_then(|last| last.terminated).map(ended);
    let now = match (state.waiting, state.terminated) {
        (Some(waiting), _) => joined([waiting.reason, waiting.message]),
        (None, Some(terminated)) => ended(terminated),
        (None, None) => format!("the container {} is not ready", container.name),
    };
    let before = before.map(|before| format!("last ended with {before}"));
    joined([Some(now), before])
}

fn ended(state: ContainerStateTerminated) -> String {
    let code = format!("exit code {}", state.exit_code);
    joined([state.reason, Some(code), state.message])
}

/// The parts that are not empty, as `a: b`.
fn joined<const N: usize>(parts: [Option<String>; N]) -> String {
    let parts = parts.into_iter().flatten();
    let parts = parts.map(|part| part.trim().replace('\n', " "));
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    parts.join(": ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn problem(pod: serde_json::Value) -> Option<String> {
        problem_of(&serde_json::from_value(pod).unwrap())
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
                json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "status": {"phase": "Running"}}),
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
