//! Watch of a cluster's nodes.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures_util::{Stream, StreamExt};
use kube::core::WatchEvent;
use kube::core::params::WatchParams;
use kube::core::request::Request;

use super::{Cluster, LiveError, NODES, NodeReference, REQUEST_TIMEOUT};
use crate::nodes::{NodeList, NodeObject};

/// Timeout of a watch, below the five minutes after which servers and networks end one anyway.
const WATCH_SECONDS: u32 = 290;

/// Idle timeout of a watch. A server sends a bookmark every minute, so a longer silence is a dead
/// connection, for example behind a load balancer.
const IDLE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 30);

/// Pause before a watch is restarted, so that a server which ends each at once is not overloaded.
const PAUSE: Duration = Duration::from_secs(2);

/// Minimum and maximum back-off after a failure, without jitter.
const BACK_OFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// Maximum of consecutive failures: an API server that is updated is unavailable for a while.
const FAILURES: usize = 20;

type Events = Pin<Box<dyn Stream<Item = Result<WatchEvent<NodeObject>, kube::Error>> + Send>>;

/// The nodes of a cluster at one moment.
#[derive(Debug, Clone, Default)]
pub struct NodeSnapshot {
    known: BTreeMap<String, NodeObject>,
    version: String,
}

/// Watch of the nodes from a snapshot on.
pub struct NodeWatch {
    cluster: Cluster,
    nodes: NodeSnapshot,
    events: Option<Events>,
    pause: Duration,
    failures: usize,
    waits: ExponentialBackoff,
    waiting: VecDeque<NodeChange>,
}

/// A change of a node.
#[derive(Debug, Clone)]
pub struct NodeChange {
    /// The node before; `None` if it is new.
    pub before: Option<NodeList>,
    /// The node after; `None` if it was deleted.
    pub after: Option<NodeList>,
}

impl NodeSnapshot {
    pub(super) fn new(objects: Vec<NodeObject>, version: String) -> Self {
        let known = objects
            .into_iter()
            .map(|object| (object.metadata.name.clone(), object))
            .collect();
        Self { known, version }
    }

    /// The nodes, by name.
    pub fn list(&self) -> NodeList {
        let mut list = NodeList::default();
        for object in self.known.values() {
            list.add(object.clone());
        }
        list
    }

    /// Each Windows node, alone in a list.
    pub fn windows(&self) -> impl Iterator<Item = (NodeReference, NodeList)> {
        self.known.values().filter_map(|object| {
            let list = single_node_list(object.clone());
            let reference = NodeReference {
                name: object.metadata.name.clone(),
                uid: object.metadata.uid.clone(),
            };
            (!list.windows.is_empty()).then_some((reference, list))
        })
    }
}

impl NodeWatch {
    /// Watches from a snapshot on; with the default one, the nodes are listed first.
    pub fn new(cluster: Cluster, nodes: NodeSnapshot) -> Self {
        Self {
            cluster,
            nodes,
            events: None,
            pause: Duration::ZERO,
            failures: 0,
            waits: waits(),
            waiting: VecDeque::new(),
        }
    }

    /// Current nodes.
    pub fn nodes(&self) -> &NodeSnapshot {
        &self.nodes
    }

    /// Waits for the next event and returns true if it changed the nodes. It never gives up: a call
    /// after a failure waits for the back-off.
    pub async fn poll(&mut self) -> Result<bool, LiveError> {
        self.step().await?;
        Ok(!std::mem::take(&mut self.waiting).is_empty())
    }

    /// Waits for the next change that affects compatibility, which heartbeats do not. Fails if the
    /// server refuses, or is unavailable for too long.
    pub async fn next(&mut self) -> Result<NodeChange, LiveError> {
        loop {
            if let Some(change) = self.waiting.pop_front() {
                return Ok(change);
            }
            match self.step().await {
                Err(error) if error.is_refusal() || self.failures > FAILURES => return Err(error),
                _ => {}
            }
        }
    }

    /// Starts the watch, processes one event, or lists again if the resource version expired. After
    /// a failure the next step waits first.
    async fn step(&mut self) -> Result<(), LiveError> {
        let done = self.try_step().await;
        if done.is_err() {
            self.events = None;
            self.failures += 1;
            self.pause = self.waits.next().unwrap_or(BACK_OFF.1);
        }
        done
    }

    async fn try_step(&mut self) -> Result<(), LiveError> {
        let Some(events) = &mut self.events else {
            tokio::time::sleep(self.pause).await;
            self.pause = PAUSE;
            if self.nodes.version.is_empty() {
                self.pause = Duration::ZERO;
                return self.list_again().await;
            }
            return match open(&self.cluster, &self.nodes.version).await {
                Ok(events) => {
                    self.events = Some(events);
                    Ok(())
                }
                Err(error) if error.is_gone() => self.list_again().await,
                Err(error) => Err(error),
            };
        };
        let Ok(event) = tokio::time::timeout(IDLE, events.next()).await else {
            return Err(self.cluster.timeout_error(IDLE, "watch nodes"));
        };
        match event {
            // The server ends every watch after a while.
            None => self.events = None,
            Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object))) => {
                let version = &object.metadata.resource_version;
                self.nodes.version.clone_from(version);
                self.update_node(object.metadata.name.clone(), Some(object));
            }
            Some(Ok(WatchEvent::Deleted(object))) => {
                self.nodes.version = object.metadata.resource_version;
                self.update_node(object.metadata.name, None);
            }
            Some(Ok(WatchEvent::Bookmark(bookmark))) => {
                self.nodes.version = bookmark.metadata.resource_version;
            }
            Some(Ok(WatchEvent::Error(status))) => {
                let error = self.cluster.error("watch nodes", kube::Error::Api(status));
                if error.is_gone() {
                    return self.list_again().await;
                }
                return Err(error);
            }
            Some(Err(error)) => return Err(self.cluster.error("watch nodes", error)),
        }
        (self.failures, self.waits) = (0, waits());
        Ok(())
    }

    async fn list_again(&mut self) -> Result<(), LiveError> {
        self.events = None;
        let now = self.cluster.nodes().await?;
        let gone: Vec<String> = self
            .nodes
            .known
            .keys()
            .filter(|name| !now.known.contains_key(*name))
            .cloned()
            .collect();
        for name in gone {
            self.update_node(name, None);
        }
        for (name, object) in now.known {
            self.update_node(name, Some(object));
        }
        self.nodes.version = now.version;
        Ok(())
    }

    fn update_node(&mut self, name: String, object: Option<NodeObject>) {
        let after = object.clone().map(single_node_list);
        let before = match object {
            Some(object) => self.nodes.known.insert(name, object),
            None => self.nodes.known.remove(&name),
        }
        .map(single_node_list);
        if before != after {
            self.waiting.push_back(NodeChange { before, after });
        }
    }
}

/// Back-off after failures, with jitter so that replicas do not retry at the same time.
fn waits() -> ExponentialBackoff {
    ExponentialBuilder::default()
        .with_min_delay(BACK_OFF.0)
        .with_max_delay(BACK_OFF.1)
        .with_jitter()
        .without_max_times()
        .build()
}

async fn open(cluster: &Cluster, version: &str) -> Result<Events, LiveError> {
    let parameters = WatchParams::default().timeout(WATCH_SECONDS);
    let request = Request::new(NODES)
        .watch(&parameters, version)
        .map_err(|error| cluster.error("watch nodes", kube::Error::BuildRequest(error)))?;
    let answer = cluster.client.request_events::<NodeObject>(request);
    let events = cluster
        .within(REQUEST_TIMEOUT, "watch nodes", answer)
        .await?;
    Ok(Box::pin(events))
}

fn single_node_list(object: NodeObject) -> NodeList {
    let mut list = NodeList::default();
    list.add(object);
    list
}
