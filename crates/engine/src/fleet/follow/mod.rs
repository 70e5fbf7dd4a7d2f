//! `fleet follow`: builds images for a new Windows build among the nodes before pods need them.
//!
//! Of several replicas one leads; when it has to stop, its work is dropped before another may
//! begin. It keeps no state of its own: the state is in the registry, so that it may be started,
//! stopped and killed at any moment.

mod election;
mod metrics;
mod server;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backon::ExponentialBuilder;
use election::{LeaderDeadline, elect, wait_for_leadership, wait_for_loss};
use jiff::Zoned;
use metrics::Metrics;
pub use server::listen;
pub use state::{EntryOutcome, EntryResult, NodeState};
use state::{FleetState, RequiredBuilds};
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinError;
use tokio::time::Instant;
use tokio_util::task::AbortOnDropHandle;
use wincimg_cluster::live::{
    Cluster, EventRecorder, LeaderElector, LeaseName, LiveError, NodeEvent, NodeReference,
    NodeSnapshot, NodeWatch,
};
use wincimg_cluster::nodes::NodeList;
use wincimg_common::lock;

use super::{BuildReport, Fleet, FleetImageState, FleetReport, SyncMode, SyncOptions, sync};

/// Reporting controller of events.
pub(crate) const CONTROLLER: &str = "wincimg-fleet-follow";

/// Time limit for releasing the lease.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// Delay before rejected events are sent again.
const EVENT_RETRY_DELAY: Duration = Duration::from_secs(30);

/// Maximum number of entries to name in an event.
const MAX_NAMED: usize = 3;

/// Configuration of a controller.
#[derive(Debug, Clone)]
pub struct ControllerConfig {
    /// The lease that replicas compete for.
    pub lease: LeaseName,
    /// Unique name of this replica.
    pub identity: String,
    /// Time that candidates wait after the last change of the lease.
    pub lease_duration: Duration,
    /// Interval between checks of everything.
    pub resync: Duration,
    /// Delay after the first failure of an image; it doubles up to `resync`.
    pub retry: Duration,
    /// Wait for further changes after a change, as nodes come in groups.
    pub settle: Duration,
    /// Version of the program, for its metrics.
    pub version: &'static str,
    /// The command that shows details about what is missing.
    pub next_command: String,
}

/// Event of a controller.
#[derive(Debug)]
pub enum ControllerEvent<'a> {
    /// This replica leads from now on.
    Leads,
    /// Another one leads, whose name may be known.
    Waits(Option<&'a str>),
    /// This replica leads no longer.
    Stopped,
    /// A request to the cluster failed. It is retried.
    Failure(&'a LiveError),
    /// The result of an image changed.
    Image(&'a EntryResult),
    /// Images were checked or built; not always all of them.
    Checked(&'a FleetReport),
    /// The state of a node's images.
    Node(&'a NodeReference, &'a NodeState),
}

/// Handler of events.
pub type EventHandler = Arc<dyn Fn(ControllerEvent<'_>) + Send + Sync>;

/// Controller of a fleet: builds its images for the nodes of a cluster.
pub struct FleetController<'a> {
    /// The cluster with the nodes.
    pub cluster: Cluster,
    /// The images.
    pub fleet: Fleet,
    /// How images are built.
    pub run: SyncOptions<'a>,
    /// Its configuration.
    pub config: ControllerConfig,
    /// Where metrics and health are served.
    pub listener: Option<TcpListener>,
    /// The handler of its events.
    pub on_event: EventHandler,
}

impl FleetController<'_> {
    /// Follows the nodes until it is stopped. Fails only if the cluster never allowed it to begin.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), LiveError> {
        let (cluster, config, on_event) = (self.cluster, self.config, self.on_event);
        let metrics = Metrics::new(config.version, config.lease_duration);
        let metrics = Arc::new(Mutex::new(metrics));
        let _serving = self.listener.map(|listener| {
            let serving = server::serve(listener, Arc::clone(&metrics));
            AbortOnDropHandle::new(tokio::spawn(serving))
        });
        let (nodes_to, nodes) = watch::channel(None);
        let watching = watch_nodes(
            cluster.clone(),
            nodes_to,
            Arc::clone(&metrics),
            Arc::clone(&on_event),
        );
        let mut watching = AbortOnDropHandle::new(tokio::spawn(watching));
        let (leading_to, leading) = watch::channel(None);
        let (stop_electing, stopped) = oneshot::channel();
        let (lease, identity) = (config.lease.clone(), config.identity.clone());
        let electing = elect(
            LeaderElector::new(cluster.clone(), lease, identity, config.lease_duration),
            leading_to,
            Arc::clone(&metrics),
            Arc::clone(&on_event),
            stopped,
        );
        let mut electing = AbortOnDropHandle::new(tokio::spawn(electing));
        let worker = Reconciler {
            recorder: EventRecorder::new(cluster, CONTROLLER, config.identity.clone()),
            fleet: self.fleet,
            run: self.run,
            config,
            metrics,
            on_event,
            failure: String::new(),
        };
        let ended = tokio::select! {
            () = stop => Ok(()),
            ended = &mut watching => result_of(ended),
            ended = &mut electing => return result_of(ended),
            () = worker.run(nodes, leading) => Ok(()),
        };
        // The work was dropped: another replica may lead now.
        let _ = stop_electing.send(());
        let released = tokio::time::timeout(RELEASE_TIMEOUT, &mut electing).await;
        ended.and(released.map_or(Ok(()), result_of))
    }
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

/// Watches the nodes. Fails only if the cluster never allowed that.
async fn watch_nodes(
    cluster: Cluster,
    nodes: watch::Sender<Option<Arc<NodeSnapshot>>>,
    metrics: Arc<Mutex<Metrics>>,
    on_event: EventHandler,
) -> Result<(), LiveError> {
    let know = |snapshot: &NodeSnapshot| {
        let list = snapshot.list();
        let builds = list.windows.iter().filter_map(|node| node.build);
        let builds: BTreeSet<_> = builds.map(|build| build.version).collect();
        let mut metrics = lock(&metrics);
        (metrics.windows_nodes, metrics.builds) = (list.windows.len(), builds.len());
    };
    let mut watch = NodeWatch::new(cluster, NodeSnapshot::default());
    let (mut has_seen, mut last_trouble) = (false, String::new());
    loop {
        match watch.poll().await {
            Ok(has_changed) => {
                lock(&metrics).nodes = Ok(());
                // Heartbeats of thousands of nodes change nothing, and must cost nothing.
                if has_changed || !has_seen {
                    know(watch.nodes());
                    nodes.send_replace(Some(Arc::new(watch.nodes().clone())));
                }
                has_seen = true;
                last_trouble.clear();
            }
            Err(error) if !has_seen && error.is_permanent() => return Err(error),
            Err(error) => {
                lock(&metrics).cluster_failures += 1;
                let failure = error.to_string();
                if failure != last_trouble {
                    on_event(ControllerEvent::Failure(&error));
                    lock(&metrics).nodes = Err(failure.clone());
                    last_trouble = failure;
                }
            }
        }
    }
}

/// Does the work while this replica leads.
struct Reconciler<'a> {
    fleet: Fleet,
    run: SyncOptions<'a>,
    config: ControllerConfig,
    recorder: EventRecorder,
    metrics: Arc<Mutex<Metrics>>,
    on_event: EventHandler,
    /// Last reported error of events, to report it once.
    failure: String,
}

type Nodes = watch::Receiver<Option<Arc<NodeSnapshot>>>;

/// State in the last event about a node: its build, the entries whose images are missing, and the
/// number of images. The reason for a missing image may be worded differently each time.
type PrintedState = (String, BTreeSet<String>, usize);

impl Reconciler<'_> {
    async fn run(mut self, nodes: Nodes, mut leading: watch::Receiver<LeaderDeadline>) {
        loop {
            wait_for_leadership(&mut leading).await;
            tokio::select! {
                biased;
                () = wait_for_loss(leading.clone()) => {}
                () = self.lead(nodes.clone()) => return,
            }
        }
    }

    /// Does the work until it is dropped. Earlier state is outdated: another replica may have
    /// worked since.
    async fn lead(&mut self, mut nodes: Nodes) {
        let ControllerConfig { retry, resync, .. } = self.config;
        let delays = ExponentialBuilder::new()
            .with_min_delay(retry)
            .with_max_delay(resync.max(retry))
            .without_max_times();
        let mut known = FleetState::new(delays);
        let mut printed = BTreeMap::new();
        let mut next_resync = Instant::now() + resync;
        self.recorder.read_existing().await;
        loop {
            let Ok(snapshot) = nodes.wait_for(Option::is_some).await.map(|it| it.clone()) else {
                return;
            };
            let snapshot = snapshot.unwrap_or_default();
            nodes.mark_unchanged();
            let list = snapshot.list();
            let now = Instant::now();
            known.set_demand(demand(&self.fleet, &list), now);
            if next_resync <= now {
                known.resync(now);
                next_resync = now + resync;
            }
            self.round(&mut known, &list).await;
            lock(&self.metrics).images = Some(known.count());
            let mut wake = known
                .next_due()
                .map_or(next_resync, |due| due.min(next_resync));
            if self
                .emit_event(&known, &snapshot, &mut printed)
                .await
                .is_err()
            {
                wake = wake.min(Instant::now() + EVENT_RETRY_DELAY);
            }
            tokio::select! {
                () = tokio::time::sleep_until(wake) => {}
                changed = nodes.changed() => match changed {
                    Ok(()) => tokio::time::sleep(self.config.settle).await,
                    Err(_) => return,
                },
            }
        }
    }

    /// Builds what is due.
    async fn round(&mut self, known: &mut FleetState, nodes: &NodeList) {
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
        let run = SyncOptions {
            today: Zoned::now().date(),
            ..self.run
        };
        let report = sync(&part, &nodes.windows, run, SyncMode::Build).await;
        let results = outcomes(&report, &demand(&part, nodes));
        let count = |is_one: fn(&EntryOutcome) -> bool| {
            results.iter().filter(|one| is_one(&one.outcome)).count()
        };
        let made = count(|outcome| *outcome == EntryOutcome::Made);
        let failed = count(|outcome| matches!(outcome, EntryOutcome::Missing { .. }));
        lock(&self.metrics).record_reconcile(begun.elapsed(), made, failed);
        for news in known.record(&due, results, Instant::now()) {
            (self.on_event)(ControllerEvent::Image(&news));
        }
        (self.on_event)(ControllerEvent::Checked(&report));
    }

    /// Emits an event for each node whose state changed. Stops at the first event that the cluster
    /// rejects.
    async fn emit_event(
        &mut self,
        known: &FleetState,
        snapshot: &NodeSnapshot,
        printed: &mut BTreeMap<NodeReference, PrintedState>,
    ) -> Result<(), ()> {
        let nodes: Vec<(NodeReference, NodeList)> = snapshot.windows().collect();
        let there: BTreeSet<&NodeReference> = nodes.iter().map(|(node, _)| node).collect();
        printed.retain(|node, _| there.contains(node));
        for (node, alone) in &nodes {
            let state = known.state_of(&demand(&self.fleet, alone));
            let Some(state) = state.filter(|state| state.of > 0) else {
                continue;
            };
            let build = alone.windows.iter().find_map(|node| node.build);
            let build = build.map_or_else(String::new, |build| build.to_string());
            let missing = state.missing.keys().cloned().collect();
            let is: PrintedState = (build, missing, state.of);
            let before = printed.get(node);
            if before == Some(&is) {
                continue;
            }
            let event = event(&is.0, &state, &self.config.next_command);
            let written = self.recorder.record(node, &event, before.is_some()).await;
            if let Err(error) = written {
                lock(&self.metrics).lost_events += 1;
                let failure = error.to_string();
                if failure != self.failure {
                    (self.on_event)(ControllerEvent::Failure(&error));
                    self.failure = failure;
                }
                return Err(());
            }
            lock(&self.metrics).events += 1;
            self.failure.clear();
            (self.on_event)(ControllerEvent::Node(node, &state));
            printed.insert(node.clone(), is);
        }
        Ok(())
    }
}

fn demand(fleet: &Fleet, nodes: &NodeList) -> RequiredBuilds {
    let mut demand = RequiredBuilds::new();
    for entry in &fleet.entries {
        let nodes = nodes.windows.iter().filter(|node| entry.matches(node));
        let builds: BTreeSet<String> = nodes
            .filter_map(|node| Some(node.build?.to_string()))
            .collect();
        if !builds.is_empty() {
            demand.insert(entry.label(), builds);
        }
    }
    demand
}

/// Results of a report for each required build. One image may serve any build.
fn outcomes(report: &FleetReport, demand: &RequiredBuilds) -> Vec<EntryResult> {
    let mut results = Vec::new();
    for image in &report.images {
        let builds = demand.get(&image.reference).into_iter().flatten();
        for build in builds {
            let is_meant =
                |known: &&BuildReport| known.host_build.as_ref().is_none_or(|known| known == build);
            let found = image.builds.iter().find(is_meant);
            let outcome = match found.map(|found| found.state) {
                Some(FleetImageState::Current) => EntryOutcome::Ready,
                Some(FleetImageState::Built) => EntryOutcome::Made,
                _ => {
                    let failure = found.and_then(|found| found.problem.as_ref());
                    let failure = failure.or(image.problem.as_ref());
                    EntryOutcome::Missing {
                        problem: failure.map_or_else(
                            || "it was not built".to_owned(),
                            |failure| failure.problem.clone(),
                        ),
                        hint: failure.and_then(|failure| failure.hint.clone()),
                    }
                }
            };
            results.push(EntryResult {
                entry: image.reference.clone(),
                build: build.clone(),
                outcome,
            });
        }
    }
    results
}

fn event(build: &str, state: &NodeState, next_command: &str) -> NodeEvent {
    let NodeState { missing, of } = state;
    let count = missing.len();
    if count == 0 {
        return NodeEvent {
            is_warning: false,
            reason: "ImagesReady",
            action: "BuildImages",
            note: match of {
                1 => format!("the image for Windows {build} is ready"),
                of => format!("all {of} images for Windows {build} are ready"),
            },
        };
    }
    let verb = if count == 1 { "is" } else { "are" };
    let named = missing.iter().take(MAX_NAMED);
    let mut named: Vec<String> = named
        .map(|(name, problem)| format!("{name} ({problem})"))
        .collect();
    if count > MAX_NAMED {
        named.push(format!("and {} more", count - MAX_NAMED));
    }
    NodeEvent {
        is_warning: true,
        reason: "ImagesMissing",
        action: "BuildImages",
        note: format!(
            "{count} of {of} images for Windows {build} {verb} missing; see `{next_command}`: {}",
            named.join(", ")
        ),
    }
}
