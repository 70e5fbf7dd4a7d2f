//! Leader election between replicas by a Lease of the cluster.
//!
//! The algorithm is that of client-go. Clocks of replicas differ, so no replica compares times that
//! another wrote: a candidate measures on its own clock how long the record has not changed. The
//! leader counts from before its request, and stops a third of the duration before others may take
//! over. The resource version decides between concurrent writes.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, PostParams};
use tokio::time::Instant;

use super::{Cluster, LiveError};

/// Duration of a lease that does not state its own.
const LONGEST: Duration = Duration::from_hours(1);

/// Namespace and name of a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeaseName {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for LeaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A leader that could not renew for this long stops its work.
fn renew_deadline(lease_duration: Duration) -> Duration {
    lease_duration * 2 / 3
}

fn retry_period(lease_duration: Duration) -> Duration {
    lease_duration * 2 / 15
}

/// Timeout of a request.
fn wait_limit(lease_duration: Duration) -> Duration {
    renew_deadline(lease_duration) / 2
}

/// Result of an attempt to acquire the lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    /// This replica leads, until then unless it renews.
    Ours(Instant),
    /// Another replica leads, with its name if known.
    Anothers(Option<String>),
}

/// A candidate for a lease.
pub struct LeaderElector {
    cluster: Cluster,
    leases: Api<Lease>,
    lease: LeaseName,
    own: Candidate,
}

/// State of a candidate, without the client.
#[derive(Debug)]
struct Candidate {
    identity: String,
    /// Time that candidates wait after the last change of the record.
    duration: Duration,
    seen: Option<ObservedRecord>,
}

/// The record, and when its last change was observed.
#[derive(Debug)]
struct ObservedRecord {
    lease: Lease,
    since: Instant,
}

impl LeaderElector {
    /// Creates a candidate with a unique name: a program that was killed and restarted must not
    /// take itself for its predecessor.
    pub fn new(cluster: Cluster, lease: LeaseName, identity: String, duration: Duration) -> Self {
        let leases = Api::namespaced(cluster.client.clone(), &lease.namespace);
        Self {
            cluster,
            leases,
            lease,
            own: Candidate {
                identity,
                duration,
                seen: None,
            },
        }
    }

    /// Interval of renewals and checks.
    pub fn retry_period(&self) -> Duration {
        retry_period(self.own.duration)
    }

    /// Acquires or renews the lease, or returns the current leader.
    pub async fn try_acquire_or_renew(&mut self) -> Result<Leadership, LiveError> {
        // The leader knows the record; after a conflict it is read again.
        if let Some(own) = self.own.held().cloned()
            && let Some(standing) = self.write(own, "renew").await?
        {
            return Ok(standing);
        }
        let asked = self.leases.get(&self.lease.name);
        let found = match self.within("read", asked).await {
            Ok(lease) => Some(lease),
            Err(LiveError::Refused(_, 404)) => None,
            Err(error) => return Err(error),
        };
        let now = Instant::now();
        let standing = match found {
            None => {
                let lease = Lease {
                    metadata: ObjectMeta {
                        name: Some(self.lease.name.clone()),
                        namespace: Some(self.lease.namespace.clone()),
                        ..ObjectMeta::default()
                    },
                    spec: None,
                };
                self.write(lease, "create").await?
            }
            Some(lease) => {
                self.own.observe(lease, now);
                match self.own.acquirable_record(now) {
                    Some(lease) => self.write(lease, "take").await?,
                    None => None,
                }
            }
        };
        Ok(standing.unwrap_or_else(|| Leadership::Anothers(self.own.holder())))
    }

    /// Writes the record with this replica as holder. Returns `None` on a conflict.
    async fn write(&mut self, lease: Lease, verb: &str) -> Result<Option<Leadership>, LiveError> {
        // Counted from before the request: others count from later.
        let since = Instant::now();
        let lease = Lease {
            spec: Some(self.own.spec(lease.spec.as_ref(), Timestamp::now())),
            ..lease
        };
        let parameters = PostParams::default();
        let written = if lease.metadata.resource_version.is_some() {
            let asked = self.leases.replace(&self.lease.name, &parameters, &lease);
            self.within(verb, asked).await
        } else {
            self.within(verb, self.leases.create(&parameters, &lease))
                .await
        };
        match written {
            Ok(lease) => {
                self.own.seen = Some(ObservedRecord { lease, since });
                Ok(Some(Leadership::Ours(
                    since + renew_deadline(self.own.duration),
                )))
            }
            Err(LiveError::Refused(_, 409)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Releases the lease, if this replica holds it.
    pub async fn release(&mut self) -> Result<(), LiveError> {
        let Some(mut lease) = self.own.held().cloned() else {
            return Ok(());
        };
        let now = Some(MicroTime(Timestamp::now()));
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            acquire_time: now.clone(),
            renew_time: now,
            ..lease.spec.unwrap_or_default()
        });
        self.own.seen = None;
        let parameters = PostParams::default();
        let asked = self.leases.replace(&self.lease.name, &parameters, &lease);
        match self.within("release", asked).await {
            // Another replica holds it already.
            Ok(_) | Err(LiveError::Refused(_, 404 | 409)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn within<T>(
        &self,
        verb: &str,
        answer: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, LiveError> {
        let what = format!("{verb} the lease {}", self.lease);
        let wait_limit = wait_limit(self.own.duration);
        self.cluster.within(wait_limit, &what, answer).await
    }
}

impl Candidate {
    /// Returns the record if this replica holds it.
    fn held(&self) -> Option<&Lease> {
        let seen = self.seen.as_ref()?;
        (holder(&seen.lease) == Some(self.identity.as_str())).then_some(&seen.lease)
    }

    fn holder(&self) -> Option<String> {
        let seen = self.seen.as_ref()?;
        holder(&seen.lease).map(str::to_owned)
    }

    /// Stores the record; an unchanged one keeps its age.
    fn observe(&mut self, lease: Lease, now: Instant) {
        let since = match &self.seen {
            Some(seen) if seen.lease.spec == lease.spec => seen.since,
            _ => now,
        };
        self.seen = Some(ObservedRecord { lease, since });
    }

    /// Returns the record to write if this replica holds it, no replica does, or it expired.
    fn acquirable_record(&self, now: Instant) -> Option<Lease> {
        let seen = self.seen.as_ref()?;
        let is_free = match holder(&seen.lease) {
            None => true,
            Some(name) if name == self.identity => true,
            Some(_) => now.duration_since(seen.since) >= self.lease_duration(&seen.lease),
        };
        is_free.then(|| seen.lease.clone())
    }

    /// Duration that the holder wrote into the record.
    fn lease_duration(&self, lease: &Lease) -> Duration {
        let spec = lease.spec.as_ref();
        let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        match seconds {
            Some(seconds) if seconds > 0 => Duration::from_secs(seconds).min(LONGEST),
            _ => self.duration,
        }
    }

    /// Record with this replica as holder.
    fn spec(&self, before: Option<&LeaseSpec>, now: Timestamp) -> LeaseSpec {
        let before = before.cloned().unwrap_or_default();
        let is_renewal = before.holder_identity.as_deref() == Some(self.identity.as_str());
        let transitions = before.lease_transitions.unwrap_or_default();
        let had_a_holder = before.acquire_time.is_some();
        // Rounded up, for a fraction would be lost and others would wait too short.
        let seconds = self.duration.as_secs_f64().ceil();
        #[expect(
            clippy::cast_possible_truncation,
            reason = "a lease takes seconds or minutes"
        )]
        let seconds = seconds as i32;
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(seconds),
            acquire_time: match before.acquire_time {
                Some(time) if is_renewal => Some(time),
                _ => Some(MicroTime(now)),
            },
            renew_time: Some(MicroTime(now)),
            lease_transitions: Some(if had_a_holder && !is_renewal {
                transitions.saturating_add(1)
            } else {
                transitions
            }),
            ..before
        }
    }
}

fn holder(lease: &Lease) -> Option<&str> {
    let name = lease.spec.as_ref()?.holder_identity.as_deref()?;
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DURATION: Duration = Duration::from_secs(15);

    fn candidate(identity: &str) -> Candidate {
        Candidate {
            identity: identity.to_owned(),
            duration: DURATION,
            seen: None,
        }
    }

    fn lease(spec: LeaseSpec) -> Lease {
        Lease {
            spec: Some(spec),
            ..Lease::default()
        }
    }

    fn second(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn who_works_stops_before_another_may_begin() {
        assert_eq!(renew_deadline(DURATION), Duration::from_secs(10));
        assert_eq!(retry_period(DURATION), Duration::from_secs(2));
        assert!(renew_deadline(DURATION) + wait_limit(DURATION) <= DURATION);
    }

    #[test]
    fn a_lease_is_taken_once_it_has_not_changed_for_as_long_as_it_says() {
        let (holder, mut other) = (candidate("a"), candidate("b"));
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        // The holder's clock is years behind, which has no effect.
        let first = holder.spec(None, second(1000));
        other.observe(lease(first.clone()), now);
        assert_eq!(other.acquirable_record(after(14)), None);
        // A renewal restarts the wait.
        let renewed = holder.spec(Some(&first), second(1010));
        assert_eq!(renewed.acquire_time, first.acquire_time);
        assert_eq!(renewed.lease_transitions, Some(0));
        other.observe(lease(renewed.clone()), after(14));
        other.observe(lease(renewed.clone()), after(20));
        assert_eq!(other.acquirable_record(after(28)), None);
        let taken = other.acquirable_record(after(29)).unwrap();
        let taken = other.spec(taken.spec.as_ref(), second(99));
        assert_eq!(taken.holder_identity.as_deref(), Some("b"));
        assert_eq!(taken.lease_transitions, Some(1));
        assert_eq!(taken.acquire_time, Some(MicroTime(second(99))));
    }

    #[test]
    fn what_was_released_is_free_at_once_and_what_lasts_for_ever_is_not_believed() {
        let mut other = candidate("b");
        let now = Instant::now();
        let released = LeaseSpec {
            holder_identity: Some(String::new()),
            ..candidate("a").spec(None, second(1))
        };
        other.observe(lease(released), now);
        assert!(other.acquirable_record(now).is_some());
        for (seconds, kept) in [
            (None, 15),
            (Some(-4), 15),
            (Some(60), 60),
            (Some(i32::MAX), 3600),
        ] {
            let spec = LeaseSpec {
                lease_duration_seconds: seconds,
                ..candidate("a").spec(None, second(1))
            };
            assert_eq!(
                other.lease_duration(&lease(spec)),
                Duration::from_secs(kept)
            );
        }
    }
}
