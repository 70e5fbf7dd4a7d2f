//! `fleet follow`: a node with a new build of Windows appears, and its images are there before pods
//! need them.
//!
//! Of several replicas one does the work (`leading`); when it has to stop, what it does is dropped
//! before another may begin. It keeps no state of its own: what is there is in the registry, so that
//! it may be started, stopped and killed at any moment.

mod known;
mod leading;
mod metrics;
mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use jiff::Zoned;
pub use known::{Brought, NodeState, Outcome, Patience};
use known::{Demand, Known};
use leading::{Leading, elect, lost, won};
pub(crate) use metrics::Metrics;
pub use server::listen;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;
use wincimg_cluster::live::{
    Cluster, Election, LeaseName, LiveError, NodeEvent, NodeReference, NodeSnapshot, NodeWatch,
    Recorder, Terms,
};
use wincimg_cluster::nodes::NodeList;

use super::{BuildReport, Fleet, Mode, Report, Run, State, bring};

/// In whose name events are written.
pub(crate) const CONTROLLER: &str = "wincimg-fleet-follow";

/// How long it takes to let others have the lease, at most.
const TO_RELEASE: Duration = Duration::from_secs(5);

/// When events are tried again that the cluster did not take.
const EVENTS_AGAIN: Duration = Duration::from_secs(30);

/// As many entries are named in an event.
const NAMED: usize = 3;

/// How it is followed.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What replicas compete for.
    pub lease: LeaseName,
    /// How this one is called; nobody else is.
    pub identity: String,
    /// How long things take around the lease.
    pub terms: Terms,
    /// How often everything is looked at again.
    pub resync: Duration,
    /// How long is waited after failures.
    pub patience: Patience,
    /// Nodes come in groups: so long after a change is waited for more.
    pub settle: Duration,
    /// The version of the program, as its metrics say.
    pub version: &'static str,
    /// The command that says more about what is missing.
    pub next_command: String,
}

/// What happens while a fleet is followed.
#[derive(Debug)]
pub enum Happening<'a> {
    /// This replica does the work from now on.
    Leads,
    /// Another one does, who may be known.
    Waits(Option<&'a str>),
    /// This replica does the work no more.
    Stopped,
    /// The cluster did not do what was asked. It is asked again.
    Trouble(&'a LiveError),
    /// Something is known about an image that was not.
    Image(&'a Brought),
    /// What a node asks for is there, or is not.
    Node(&'a NodeReference, &'a NodeState),
}

/// Who is told what happens.
pub type Tell = Arc<dyn Fn(Happening<'_>) + Send + Sync>;

/// A part that runs beside the others, and ends with them.
struct Beside<T>(JoinHandle<T>);

impl<T> Drop for Beside<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Follows the nodes of a cluster until it is to stop. Ends with an error only where the cluster never
/// let it begin.
pub async fn follow(
    cluster: Cluster,
    fleet: Fleet,
    run: Run<'_>,
    settings: Settings,
    listener: Option<TcpListener>,
    tell: Tell,
    stop: impl Future<Output = ()>,
) -> Result<(), LiveError> {
    let metrics = Arc::new(Metrics::new(settings.version, settings.terms.duration));
    let _serving = listener.map(|listener| {
        let serving = server::serve(listener, Arc::clone(&metrics));
        Beside(tokio::spawn(serving))
    });
    let (nodes_to, nodes) = watch::channel(None);
    let watching = watch_nodes(
        cluster.clone(),
        nodes_to,
        Arc::clone(&metrics),
        Arc::clone(&tell),
    );
    let mut watching = Beside(tokio::spawn(watching));
    let (leading_to, leading) = watch::channel(None);
    let (stop_electing, stopped) = oneshot::channel();
    let lease = settings.lease.clone();
    let identity = settings.identity.clone();
    let electing = elect(
        Election::new(cluster.clone(), lease, identity, settings.terms),
        settings.terms.retry(),
        leading_to,
        Arc::clone(&metrics),
        Arc::clone(&tell),
        stopped,
    );
    let mut electing = Beside(tokio::spawn(electing));
    let worker = Worker {
        recorder: Recorder::new(cluster, CONTROLLER, settings.identity.clone()),
        fleet,
        run,
        settings,
        metrics,
        tell,
        trouble: String::new(),
    };
    let ended = tokio::select! {
        () = stop => Ok(()),
        ended = &mut watching.0 => result_of(ended),
        ended = &mut electing.0 => return result_of(ended),
        () = worker.run(nodes, leading) => Ok(()),
    };
    // The work was dropped: now another may do it.
    let _ = stop_electing.send(());
    let released = tokio::time::timeout(TO_RELEASE, &mut electing.0).await;
    ended.and(released.map_or(Ok(()), result_of))
}

fn result_of(ended: Result<Result<(), LiveError>, JoinError>) -> Result<(), LiveError> {
    match ended {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Ok(()),
        },
    }
}

/// Keeps the nodes as they are now. Fails only where the cluster never let it see them.
async fn watch_nodes(
    cluster: Cluster,
    nodes: watch::Sender<Option<Arc<NodeSnapshot>>>,
    metrics: Arc<Metrics>,
    tell: Tell,
) -> Result<(), LiveError> {
    let know = |snapshot: &NodeSnapshot| {
        let list = snapshot.list();
        let builds = list.windows.iter().filter_map(|node| node.build);
        let builds: BTreeSet<_> = builds.map(|build| build.version).collect();
        metrics.knows_nodes(list.windows.len(), builds.len());
    };
    let mut watch = NodeWatch::unlisted(cluster);
    let (mut has_seen, mut last_trouble) = (false, String::new());
    loop {
        match watch.look().await {
            Ok(has_changed) => {
                metrics.sees_nodes();
                // Heartbeats of thousands of nodes change nothing, and cost nothing.
                if has_changed || !has_seen {
                    know(watch.nodes());
                    nodes.send_replace(Some(Arc::new(watch.nodes().clone())));
                }
                has_seen = true;
                last_trouble.clear();
            }
            Err(error) if !has_seen && error.is_for_good() => return Err(error),
            Err(error) => {
                metrics.cluster_failed();
                let trouble = error.to_string();
                if trouble != last_trouble {
                    tell(Happening::Trouble(&error));
                    metrics.lost_nodes(trouble.clone());
                    last_trouble = trouble;
                }
            }
        }
    }
}

/// Who does the work while this replica leads.
struct Worker<'a> {
    fleet: Fleet,
    run: Run<'a>,
    settings: Settings,
    recorder: Recorder,
    metrics: Arc<Metrics>,
    tell: Tell,
    /// Why the last event was not taken, which is told once.
    trouble: String,
}

type Nodes = watch::Receiver<Option<Arc<NodeSnapshot>>>;

impl Worker<'_> {
    async fn run(mut self, nodes: Nodes, mut leading: watch::Receiver<Leading>) {
        loop {
            won(&mut leading).await;
            tokio::select! {
                biased;
                () = lost(leading.clone()) => {}
                () = self.lead(nodes.clone()) => return,
            }
        }
    }

    /// Does the work, for as long as nobody drops it. What was known before it led is worth nothing:
    /// another may have worked since.
    async fn lead(&mut self, mut nodes: Nodes) {
        let mut known = Known::new(self.settings.patience);
        let mut said = BTreeMap::new();
        let mut resync = Instant::now() + self.settings.resync;
        loop {
            let Ok(snapshot) = nodes.wait_for(Option::is_some).await.map(|it| it.clone()) else {
                return;
            };
            let snapshot = snapshot.unwrap_or_default();
            nodes.mark_unchanged();
            let list = snapshot.list();
            let now = Instant::now();
            known.ask(demand(&self.fleet, &list), now);
            if resync <= now {
                known.resync(now);
                resync = now + self.settings.resync;
            }
            self.round(&mut known, &list).await;
            self.metrics.images(known.count());
            let mut wake = known.next_due().map_or(resync, |due| due.min(resync));
            if self.say(&known, &snapshot, &mut said).await.is_err() {
                wake = wake.min(Instant::now() + EVENTS_AGAIN);
            }
            tokio::select! {
                () = tokio::time::sleep_until(wake) => {}
                changed = nodes.changed() => match changed {
                    Ok(()) => tokio::time::sleep(self.settings.settle).await,
                    Err(_) => return,
                },
            }
        }
    }

    /// Brings what is due.
    async fn round(&mut self, known: &mut Known, nodes: &NodeList) {
        let begun = Instant::now();
        let due = known.due(begun);
        if due.is_empty() {
            return;
        }
        let part = Fleet {
            file: self.fleet.file.clone(),
            entries: self
                .fleet
                .entries
                .iter()
                .filter(|entry| due.contains(&entry.label()))
                .cloned()
                .collect(),
        };
        let run = Run {
            today: Zoned::now().date(),
            ..self.run
        };
        let report = bring(&part, &nodes.windows, run, Mode::Build).await;
        let brought = outcomes(&report, &demand(&part, nodes));
        let count = |is_one: fn(&Outcome) -> bool| {
            brought.iter().filter(|one| is_one(&one.outcome)).count()
        };
        let made = count(|outcome| *outcome == Outcome::Made);
        let failed = count(|outcome| matches!(outcome, Outcome::Missing { .. }));
        self.metrics.round(begun.elapsed(), made, failed);
        for news in known.take(&due, brought, Instant::now()) {
            (self.tell)(Happening::Image(&news));
        }
    }

    /// Says of each node what was not said of it: whether what it asks for is there. Stops at the first
    /// event that the cluster does not take.
    async fn say(
        &mut self,
        known: &Known,
        snapshot: &NodeSnapshot,
        said: &mut BTreeMap<NodeReference, Said>,
    ) -> Result<(), ()> {
        let nodes: Vec<(NodeReference, NodeList)> = snapshot.windows().collect();
        let there: BTreeSet<&NodeReference> = nodes.iter().map(|(node, _)| node).collect();
        said.retain(|node, _| there.contains(node));
        for (node, alone) in &nodes {
            let state = known.state_of(&demand(&self.fleet, alone));
            if matches!(state, NodeState::Unknown | NodeState::Ready(0)) {
                continue;
            }
            let is = Said::of(alone, &state);
            let before = said.get(node);
            if before == Some(&is) {
                continue;
            }
            let event = event(&is.build, &state, &self.settings.next_command);
            let written = self.recorder.say(node, &event, before.is_some()).await;
            self.metrics.event(written.is_ok());
            if let Err(error) = written {
                let trouble = error.to_string();
                if trouble != self.trouble {
                    (self.tell)(Happening::Trouble(&error));
                    self.trouble = trouble;
                }
                return Err(());
            }
            self.trouble.clear();
            (self.tell)(Happening::Node(node, &state));
            said.insert(node.clone(), is);
        }
        Ok(())
    }
}

/// What nodes ask of a fleet.
fn demand(fleet: &Fleet, nodes: &NodeList) -> Demand {
    let mut demand = Demand::new();
    for entry in &fleet.entries {
        let nodes = nodes.windows.iter().filter(|node| entry.selects(node));
        let builds: BTreeSet<String> = nodes
            .filter_map(|node| Some(node.build?.to_string()))
            .collect();
        if !builds.is_empty() {
            demand.insert(entry.label(), builds);
        }
    }
    demand
}

/// What a report says about each build that was asked for. One image may be for any build.
fn outcomes(report: &Report, demand: &Demand) -> Vec<Brought> {
    let mut brought = Vec::new();
    for image in &report.images {
        let builds = demand.get(&image.reference).into_iter().flatten();
        for build in builds {
            let is_meant =
                |known: &&BuildReport| known.host_build.as_ref().is_none_or(|known| known == build);
            let found = image.builds.iter().find(is_meant);
            let outcome = match found.map(|found| found.state) {
                Some(State::Current) => Outcome::Ready,
                Some(State::Built) => Outcome::Made,
                _ => {
                    let trouble = found.and_then(|found| found.problem.as_ref());
                    let trouble = trouble.or(image.problem.as_ref());
                    Outcome::Missing {
                        problem: trouble.map_or_else(
                            || "it was not made".to_owned(),
                            |trouble| trouble.problem.clone(),
                        ),
                        hint: trouble.and_then(|trouble| trouble.hint.clone()),
                    }
                }
            };
            brought.push(Brought {
                entry: image.reference.clone(),
                build: build.clone(),
                outcome,
            });
        }
    }
    brought
}

/// What makes an event about a node news: why something is missing may be told in other words each
/// time.
#[derive(PartialEq, Eq)]
struct Said {
    build: String,
    missing: BTreeSet<String>,
    of: usize,
}

impl Said {
    fn of(node: &NodeList, state: &NodeState) -> Self {
        let build = node.windows.iter().find_map(|node| node.build);
        let (missing, of) = match state {
            NodeState::Missing { missing, of } => (missing.keys().cloned().collect(), *of),
            NodeState::Ready(of) => (BTreeSet::new(), *of),
            NodeState::Unknown => (BTreeSet::new(), 0),
        };
        Self {
            build: build.map_or_else(String::new, |build| build.to_string()),
            missing,
            of,
        }
    }
}

fn event(build: &str, state: &NodeState, next_command: &str) -> NodeEvent {
    match state {
        NodeState::Missing { missing, of } => {
            let count = missing.len();
            let verb = if count == 1 { "is" } else { "are" };
            let named = missing.iter().take(NAMED);
            let mut named: Vec<String> = named
                .map(|(name, problem)| format!("{name} ({problem})"))
                .collect();
            if count > NAMED {
                named.push(format!("and {} more", count - NAMED));
            }
            NodeEvent {
                is_warning: true,
                reason: "ImagesMissing",
                action: "BringImages",
                note: format!(
                    "{count} of {of} images for Windows {build} {verb} missing; see `{next_command}`: {}",
                    named.join(", ")
                ),
            }
        }
        NodeState::Ready(count) => NodeEvent {
            is_warning: false,
            reason: "ImagesReady",
            action: "BringImages",
            note: match count {
                1 => format!("the image for Windows {build} is there"),
                count => format!("all {count} images for Windows {build} are there"),
            },
        },
        NodeState::Unknown => NodeEvent {
            is_warning: false,
            reason: "ImagesUnknown",
            action: "BringImages",
            note: format!("nobody looked for the images for Windows {build} yet"),
        },
    }
}
