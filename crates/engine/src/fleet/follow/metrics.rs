//! Metrics of a controller in Prometheus' text format, and its health.

use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::state::Count;

/// Content type of Prometheus' text format.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Measurements, shared by all parts of a controller.
#[derive(Debug)]
pub(super) struct Metrics {
    version: &'static str,
    /// Maximum time between two answers of the cluster.
    silence: Duration,
    started: Instant,
    /// Last heartbeat of the election.
    pub(super) beat: Instant,
    /// Last answer of the cluster about the lease.
    lease: Option<Instant>,
    /// Error of the node watch, if the known nodes are not current.
    pub(super) nodes: Result<(), String>,
    leads: bool,
    pub(super) windows_nodes: usize,
    pub(super) builds: usize,
    pub(super) images: Option<Count>,
    made: u64,
    failed: u64,
    rounds: [u64; 2],
    seconds: f64,
    last_seconds: f64,
    last_success: Option<Timestamp>,
    pub(super) events: u64,
    pub(super) lost_events: u64,
    pub(super) cluster_failures: u64,
}

impl Metrics {
    /// Metrics without measurements. The cluster may be silent for that long.
    pub(super) fn new(version: &'static str, silence: Duration) -> Self {
        let now = Instant::now();
        Self {
            version,
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
        }
    }

    /// Records an answer of the cluster about the lease.
    pub(super) fn set_leader(&mut self, leads: bool) {
        self.lease = Some(Instant::now());
        self.leads = leads;
        if !leads {
            // Only the leader reports images.
            self.images = None;
        }
    }

    pub(super) fn record_lease_lost(&mut self) {
        (self.leads, self.images) = (false, None);
    }

    pub(super) fn record_reconcile(&mut self, took: Duration, made: usize, failed: usize) {
        self.made += made as u64;
        self.failed += failed as u64;
        self.rounds[usize::from(failed > 0)] += 1;
        self.last_seconds = took.as_secs_f64();
        self.seconds += took.as_secs_f64();
        if failed == 0 {
            self.last_success = Some(Timestamp::now());
        }
    }

    /// Error of the process itself that a restart would fix; failures of the cluster do not count.
    pub(super) fn liveness_error(&self) -> Option<String> {
        let still = self.beat.elapsed();
        (still > self.silence * 4 + Duration::from_secs(30))
            .then(|| format!("no progress for {} s", still.as_secs()))
    }

    /// Reason why it cannot work at present.
    pub(super) fn readiness_error(&self) -> Option<String> {
        if let Err(problem) = &self.nodes {
            return Some(problem.clone());
        }
        let silent = self.lease.unwrap_or(self.started).elapsed();
        (silent > self.silence)
            .then(|| format!("no answer about the lease for {} s", silent.as_secs()))
    }

    /// All metrics in Prometheus' text format.
    pub(super) fn to_text(&self) -> String {
        let images = self.images.map(|images| {
            format!(
                include_str!("images.prom"),
                ready = images.ready,
                missing = images.missing,
                unknown = images.unknown
            )
        });
        let success = self
            .last_success
            .map(|time| format!(include_str!("success.prom"), seconds = time.as_second()));
        format!(
            include_str!("metrics.prom"),
            version = self.version,
            leads = u8::from(self.leads),
            ready = u8::from(self.readiness_error().is_none()),
            windows_nodes = self.windows_nodes,
            builds = self.builds,
            images = images.unwrap_or_default(),
            made = self.made,
            failed = self.failed,
            complete = self.rounds[0],
            incomplete = self.rounds[1],
            seconds = self.seconds,
            rounds = self.rounds.iter().sum::<u64>(),
            last_seconds = self.last_seconds,
            success = success.unwrap_or_default(),
            events = self.events,
            lost_events = self.lost_events,
            cluster_failures = self.cluster_failures
        )
    }
}
