//! What happens to a cluster's nodes while one looks.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use kube::core::WatchEvent;
use kube::core::params::WatchParams;
use kube::core::request::Request;

use super::{Cluster, LiveError, NODES};
use crate::cluster::nodes::{NodeList, NodeObject};

/// A server ends a watch about every five minutes anyway; this keeps it from being the network's
/// decision.
const WATCH_SECONDS: u32 = 290;

/// How long to wait before a watch is begun again, so that a server which ends every one at once is
/// not overrun.
const PAUSE: Duration = Duration::from_secs(2);

/// How often in a row a watch may fail: an API server that is updated is away for a while.
const FAILURES: usize = 30;

type Events = Pin<Box<dyn Stream<Item = Result<WatchEvent<NodeObject>, kube::Error>> + Send>>;

/// The nodes of a cluster at one moment.
#[derive(Debug, Clone)]
pub struct NodeSnapshot {
    known: BTreeMap<String, NodeObject>,
    version: String,
}

/// What happens to the nodes of a cluster after a moment.
pub struct NodeWatch {
    cluster: Cluster,
    nodes: NodeSnapshot,
    events: Option<Events>,
    has_begun: bool,
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
}

impl NodeWatch {
    /// What happens from this moment on.
    pub fn new(cluster: Cluster, nodes: NodeSnapshot) -> Self {
        Self {
            cluster,
            nodes,
            events: None,
            has_begun: false,
            waiting: VecDeque::new(),
        }
    }

    /// The next change that matters for what starts on a node: heartbeats do not.
    pub async fn next(&mut self) -> Result<NodeChange, LiveError> {
        let mut failures = 0;
        loop {
            if let Some(change) = self.waiting.pop_front() {
                return Ok(change);
            }
            match self.step().await {
                Ok(()) => failures = 0,
                Err(LiveError::Unauthorized { address, message }) => {
                    return Err(LiveError::Unauthorized { address, message });
                }
                Err(error @ LiveError::Forbidden { .. }) => return Err(error),
                Err(error) => {
                    self.events = None;
                    failures += 1;
                    if failures > FAILURES {
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Takes one event in, or begins the watch, or lists again where the watch became too old.
    async fn step(&mut self) -> Result<(), LiveError> {
        let events = match &mut self.events {
            Some(events) => events,
            none => {
                if std::mem::replace(&mut self.has_begun, true) {
                    tokio::time::sleep(PAUSE).await;
                }
                match open(&self.cluster, &self.nodes.version).await {
                    Ok(events) => none.insert(events),
                    Err(error) if error.is_gone() => return self.list_again().await,
                    Err(error) => return Err(error),
                }
            }
        };
        match events.next().await {
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
                let error = self.cluster.error("nodes", kube::Error::Api(status));
                if error.is_gone() {
                    return self.list_again().await;
                }
                return Err(error);
            }
            Some(Err(error)) => return Err(self.cluster.error("nodes", error)),
        }
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

async fn open(cluster: &Cluster, version: &str) -> Result<Events, LiveError> {
    let parameters = WatchParams::default().timeout(WATCH_SECONDS);
    let request = Request::new(NODES)
        .watch(&parameters, version)
        .map_err(|error| cluster.error("nodes", kube::Error::BuildRequest(error)))?;
    let events = cluster
        .client
        .request_events::<NodeObject>(request)
        .await
        .map_err(|error| cluster.error("nodes", error))?;
    Ok(Box::pin(events))
}

fn alone(object: NodeObject) -> NodeList {
    let mut list = NodeList::default();
    list.add(object);
    list
}
