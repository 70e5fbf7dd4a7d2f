//! Leader election of replicas: it runs concurrently with the work.

use std::sync::{Arc, Mutex};

use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use wincimg_cluster::live::{LeaderElector, Leadership, LiveError};
use wincimg_common::lock;

use super::metrics::Metrics;
use super::{ControllerEvent, EventHandler};

/// End of this replica's leadership, if it leads.
pub(super) type LeaderDeadline = Option<Instant>;

/// Takes part in the election until stopped, and releases the lease then. Fails only if the cluster
/// never allowed it to take part.
pub(super) async fn elect(
    mut election: LeaderElector,
    leading: watch::Sender<LeaderDeadline>,
    metrics: Arc<Mutex<Metrics>>,
    on_event: EventHandler,
    stop: oneshot::Receiver<()>,
) -> Result<(), LiveError> {
    let taking_part = take_part(&mut election, &leading, &metrics, &on_event);
    let ended = tokio::select! {
        error = taking_part => Err(error),
        _ = stop => Ok(()),
    };
    leading.send_replace(None);
    lock(&metrics).record_lease_lost();
    // If this fails, the next leader waits until the lease expires.
    if let Err(error) = election.release().await {
        on_event(ControllerEvent::Failure(&error));
    }
    ended
}

async fn take_part(
    election: &mut LeaderElector,
    leading: &watch::Sender<LeaderDeadline>,
    metrics: &Mutex<Metrics>,
    on_event: &EventHandler,
) -> LiveError {
    let mut has_had_an_answer = false;
    let mut last_holder = None;
    let mut last_trouble = String::new();
    loop {
        lock(metrics).beat = Instant::now();
        let until = *leading.borrow();
        let turn = election.try_acquire_or_renew();
        let turned = match until {
            Some(until) => tokio::time::timeout_at(until, turn).await.ok(),
            None => Some(turn.await),
        };
        match turned {
            Some(Ok(Leadership::Ours(until))) => {
                lock(metrics).set_leader(true);
                if leading.send_replace(Some(until)).is_none() {
                    on_event(ControllerEvent::Leads);
                }
                (has_had_an_answer, last_holder) = (true, None);
                last_trouble.clear();
            }
            Some(Ok(Leadership::Anothers(holder))) => {
                lock(metrics).set_leader(false);
                if leading.send_replace(None).is_some() {
                    on_event(ControllerEvent::Stopped);
                }
                if last_holder.as_ref() != Some(&holder) {
                    on_event(ControllerEvent::Waits(holder.as_deref()));
                    last_holder = Some(holder);
                }
                has_had_an_answer = true;
                last_trouble.clear();
            }
            Some(Err(error)) => {
                lock(metrics).cluster_failures += 1;
                if !has_had_an_answer && error.is_permanent() {
                    return error;
                }
                let failure = error.to_string();
                if failure != last_trouble {
                    on_event(ControllerEvent::Failure(&error));
                    last_trouble = failure;
                }
            }
            // It took until after the deadline.
            None => lock(metrics).cluster_failures += 1,
        }
        let until = *leading.borrow();
        if until.is_some_and(|until| until <= Instant::now()) {
            leading.send_replace(None);
            lock(metrics).record_lease_lost();
            on_event(ControllerEvent::Stopped);
        }
        tokio::time::sleep(election.retry_period()).await;
    }
}

/// Waits until this replica leads.
pub(super) async fn wait_for_leadership(leading: &mut watch::Receiver<LeaderDeadline>) {
    // The sender lives until everything ends.
    let is_ours = |leading: &LeaderDeadline| leading.is_some_and(|until| until > Instant::now());
    if leading.wait_for(is_ours).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Waits until this replica has to stop its work: by its own clock, also if the election hangs.
pub(super) async fn wait_for_loss(mut leading: watch::Receiver<LeaderDeadline>) {
    loop {
        let Some(until) = *leading.borrow_and_update() else {
            return;
        };
        tokio::select! {
            changed = leading.changed() => if changed.is_err() {
                return;
            },
            () = tokio::time::sleep_until(until) => return,
        }
    }
}
