//! Metrics of a controller in Prometheus' text format, and its health.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;
use wincimg_common::lock;

use super::state::Count;

/// Content type of Prometheus' text format.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Measurements, shared by all parts of a controller.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// Version of the program.
    version: &'static str,
    state: Mutex<MetricsState>,
}

#[derive(Debug)]
struct MetricsState {
    /// Maximum time between two answers of the cluster.
    silence: Duration,
    started: Instant,
    /// Last heartbeat of the election.
    beat: Instant,
    /// Last answer of the cluster about the lease.
    lease: Option<Instant>,
    /// Error of the node watch, if the known nodes are not current.
    nodes: Result<(), String>,
    leads: bool,
    windows_nodes: usize,
    builds: usize,
    images: Option<Count>,
    made: u64,
    failed: u64,
    rounds: [u64; 2],
    seconds: f64,
    last_seconds: f64,
    last_success: Option<Timestamp>,
    events: u64,
    lost_events: u64,
    cluster_failures: u64,
}

impl Metrics {
    /// Metrics without measurements. The cluster may be silent for that long.
    pub(crate) fn new(version: &'static str, silence: Duration) -> Self {
        let now = Instant::now();
        Self {
            version,
            state: Mutex::new(MetricsState {
                silence,
                started: now,
                beat: now,
                lease: None,
                nodes: Err("the nodes are not known yet".to_owned()),
                leads: false,
                windows_nodes: 0,
                builds: 0,
                images: None,
                made: 0,
                failed: 0,
                rounds: [0; 2],
                seconds: 0.0,
                last_seconds: 0.0,
                last_success: None,
                events: 0,
                lost_events: 0,
                cluster_failures: 0,
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, MetricsState> {
        lock(&self.state)
    }

    pub(super) fn record_heartbeat(&self) {
        self.state().beat = Instant::now();
    }

    pub(super) fn set_leader(&self, leads: bool) {
        let mut state = self.state();
        state.lease = Some(Instant::now());
        state.leads = leads;
        if !leads {
            // Only the leader reports images.
            state.images = None;
        }
    }

    pub(super) fn record_lease_lost(&self) {
        let mut state = self.state();
        (state.leads, state.images) = (false, None);
    }

    pub(super) fn record_watch_ok(&self) {
        self.state().nodes = Ok(());
    }

    pub(super) fn set_node_counts(&self, windows_nodes: usize, builds: usize) {
        let mut state = self.state();
        (state.windows_nodes, state.builds) = (windows_nodes, builds);
    }

    pub(super) fn record_watch_error(&self, problem: String) {
        self.state().nodes = Err(problem);
    }

    pub(super) fn record_cluster_error(&self) {
        self.state().cluster_failures += 1;
    }

    pub(super) fn set_image_counts(&self, count: Count) {
        self.state().images = Some(count);
    }

    pub(super) fn record_reconcile(&self, took: Duration, made: usize, failed: usize) {
        let mut state = self.state();
        state.made += made as u64;
        state.failed += failed as u64;
        state.rounds[usize::from(failed > 0)] += 1;
        state.last_seconds = took.as_secs_f64();
        state.seconds += took.as_secs_f64();
        if failed == 0 {
            state.last_success = Some(Timestamp::now());
        }
    }

    pub(super) fn event(&self, was_written: bool) {
        let mut state = self.state();
        if was_written {
            state.events += 1;
        } else {
            state.lost_events += 1;
        }
    }

    /// Error of the process itself that a restart would fix; failures of the cluster do not count.
    pub(super) fn liveness_error(&self) -> Option<String> {
        let state = self.state();
        let still = state.beat.elapsed();
        (still > state.silence * 4 + Duration::from_secs(30))
            .then(|| format!("no progress for {} s", still.as_secs()))
    }

    /// Reason why it cannot work at present.
    pub(super) fn readiness_error(&self) -> Option<String> {
        let state = self.state();
        if let Err(problem) = &state.nodes {
            return Some(problem.clone());
        }
        let silent = state.lease.unwrap_or(state.started).elapsed();
        (silent > state.silence)
            .then(|| format!("no answer about the lease for {} s", silent.as_secs()))
    }

    /// All metrics in Prometheus' text format.
    pub(super) fn to_text(&self) -> String {
        let ready = self.readiness_error().is_none();
        let state = self.state();
        let mut text = Text(String::with_capacity(4096));
        let version = self.version;
        text.head("build_info", "gauge", "The version of wincimg.");
        text.value("build_info", &format!("{{version=\"{version}\"}}"), 1);
        text.single(
            "leader",
            "gauge",
            "1 if this replica is the leader, else 0.",
            u8::from(state.leads),
        );
        text.single(
            "ready",
            "gauge",
            "1 if the cluster and the lease answer, else 0.",
            u8::from(ready),
        );
        text.single(
            "windows_nodes",
            "gauge",
            "Windows nodes of the cluster.",
            state.windows_nodes,
        );
        text.single(
            "windows_builds",
            "gauge",
            "Distinct Windows builds among the nodes.",
            state.builds,
        );
        if let Some(images) = state.images {
            text.head(
                "images",
                "gauge",
                "Required images, one for each entry and build; reported by the leader.",
            );
            text.value("images", "{state=\"ready\"}", images.ready);
            text.value("images", "{state=\"missing\"}", images.missing);
            text.value("images", "{state=\"unknown\"}", images.unknown);
        }
        text.single("images_made_total", "counter", "Images built.", state.made);
        text.single(
            "image_failures_total",
            "counter",
            "Attempts after which an image was still missing.",
            state.failed,
        );
        text.head("rounds_total", "counter", "Rounds of work, by result.");
        text.value("rounds_total", "{result=\"complete\"}", state.rounds[0]);
        text.value("rounds_total", "{result=\"incomplete\"}", state.rounds[1]);
        text.head("round_duration_seconds", "summary", "Duration of rounds.");
        text.value("round_duration_seconds_sum", "", state.seconds);
        text.value(
            "round_duration_seconds_count",
            "",
            state.rounds[0] + state.rounds[1],
        );
        text.single(
            "last_round_duration_seconds",
            "gauge",
            "Duration of the last round.",
            state.last_seconds,
        );
        if let Some(time) = state.last_success {
            text.single(
                "last_success_timestamp_seconds",
                "gauge",
                "Time of the last round that left no image missing.",
                time.as_second(),
            );
        }
        text.head(
            "events_total",
            "counter",
            "Events about nodes, by whether the cluster accepted them.",
        );
        text.value("events_total", "{result=\"written\"}", state.events);
        text.value("events_total", "{result=\"failed\"}", state.lost_events);
        text.single(
            "cluster_failures_total",
            "counter",
            "Failed requests to the cluster.",
            state.cluster_failures,
        );
        text.0
    }
}

/// Metrics as text.
struct Text(String);

impl Text {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a String cannot fail.
        let _ = writeln!(
            self.0,
            "# HELP wincimg_fleet_{name} {help}\n# TYPE wincimg_fleet_{name} {kind}"
        );
    }

    fn value(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "wincimg_fleet_{name}{labels} {value}");
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: impl std::fmt::Display) {
        self.head(name, kind, help);
        self.value(name, "", value);
    }
}
