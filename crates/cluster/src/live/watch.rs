//! What happens to a cluster's nodes while one looks.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use futures_util::{Stream, StreamExt};
use kube::core::WatchEvent;
use kube::core::params::WatchParams;
use kube::core::request::Request;

use super::{Cluster, LiveError, NODES, NodeReference, PATIENCE};
use crate::nodes::{NodeList, NodeObject};

/// A server ends a watch about every five minutes anyway; this keeps it from being the network's
/// decision.
const WATCH_SECONDS: u32 = 290;

/// A server sends a bookmark every minute, and ends a watch by then. What stays silent for longer has
/// lost its connection without a word, as behind a load balancer that forgot it.
const IDLE: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 30);

/// How long to wait before a watch is begun again, so that a server which ends every one at once is
/// not overrun.
const PAUSE: Duration = Duration::from_secs(2);

/// The first and the longest wait after a failure, before chance adds to it.
const BACK_OFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// How often in a row a watch may fail, for somebody who waits: an API server that is updated is away
/// for a while.
const FAILURES: usize = 20;

type Events = Pin<Box<dyn Stream<Item = Result<WatchEvent<NodeObject>, kube::Error>> + Send>>;

/// The nodes of a cluster at one moment.
#[derive(Debug, Clone, Default)]
pub struct NodeSnapshot {
    known: BTreeMap<String, NodeObject>,
    version: String,
}

/// What happens to the nodes of a cluster after a moment.
pub struct NodeWatch {
    cluster: Cluster,
    nodes: NodeSnapshot,
    events: Option<Events>,
    pause: Duration,
    failures: usize,
    waits: ExponentialBackoff,
    waiting: VecDeque<NodeChange>,
}

/// A node before and after something happened to it.
#[derive(Debug, Clone)]
pub struct NodeChange {
    /// What it was; nothing if it is new.
    pub before: Option<NodeList>,
    /// What it is; nothing if it is gone.
    pub after: Option<NodeList>,
}

impl NodeSnapshot {
    pub(super) fn new(objects: Vec<NodeObject>, version: String) -> Self {
        let known = objects
            .into_iter()
            .map(|object| (object.name().to_owned(), object))
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
            let list = alone(object.clone());
            let reference = NodeReference {
                name: object.name().to_owned(),
                uid: object.uid().to_owned(),
            };
            (!list.windows.is_empty()).then_some((reference, list))
        })
    }
}

impl NodeWatch {
    /// What happens from this moment on.
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

    /// The same, where the nodes are still to be listed.
    pub fn without_list(cluster: Cluster) -> Self {
        Self::new(cluster, NodeSnapshot::default())
    }

    /// The nodes as they are now.
    pub fn nodes(&self) -> &NodeSnapshot {
        &self.nodes
    }

    /// Looks for what happens next, and says whether it changed the nodes. It never gives up: whoever
    /// looks again after a failure waits until it is time to.
    pub async fn poll(&mut self) -> Result<bool, LiveError> {
        self.step().await?;
        Ok(!std::mem::take(&mut self.waiting).is_empty())
    }

    /// The next change that matters for what starts on a node: heartbeats do not. Fails for good where
    /// the server refuses, or is away for too long.
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

    /// Begins the watch, takes one event in, or lists again where the watch became too old. After a
    /// failure the next step waits before it begins again.
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
            return Err(self.cluster.silence(IDLE, "watch nodes"));
        };
        match event {
            // The server ends every watch after a while.
            None => self.events = None,
            Some(Ok(WatchEvent::Added(object) | WatchEvent::Modified(object))) => {
                object.version().clone_into(&mut self.nodes.version);
                self.note(object.name().to_owned(), Some(object));
            }
            Some(Ok(WatchEvent::Deleted(object))) => {
                object.version().clone_into(&mut self.nodes.version);
                self.note(object.name().to_owned(), None);
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
            self.note(name, None);
        }
        for (name, object) in now.known {
            self.note(name, Some(object));
        }
        self.nodes.version = now.version;
        Ok(())
    }

    fn note(&mut self, name: String, object: Option<NodeObject>) {
        let after = object.clone().map(alone);
        let before = match object {
            Some(object) => self.nodes.known.insert(name, object),
            None => self.nodes.known.remove(&name),
        }
        .map(alone);
        if before != after {
            self.waiting.push_back(NodeChange { before, after });
        }
    }
}

/// How long to wait before each try after a failure: never quite the same, so that replicas do not
/// come all at once.
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
    let events = cluster.within(PATIENCE, "watch nodes", answer).await?;
    Ok(Box::pin(events))
}

fn alone(object: NodeObject) -> NodeList {
    let mut list = NodeList::default();
    list.add(object);
    list
}
