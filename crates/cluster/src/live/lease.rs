//! Which of several replicas does the work: the one whose name stands in a Lease of the cluster.
//!
//! As client-go has it. The clocks of replicas differ, so nobody compares times that another wrote:
//! whoever waits measures, on its own clock, for how long the record has not changed. Whoever holds
//! the lease counts from before it asked for it, and gives up a third of its time before others may
//! take it. Two that write at once are told apart by the record's version.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, PostParams};
use tokio::time::Instant;

use super::{Cluster, LiveError};

/// A lease that says nothing of its length is kept for this long after it was seen to change.
const LONGEST: Duration = Duration::from_hours(1);

/// Where a lease is.
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

/// How long things take around a lease.
#[derive(Debug, Clone, Copy)]
pub struct LeaseConfig {
    /// How long others wait once a record does not change any more.
    pub duration: Duration,
}

impl LeaseConfig {
    /// Who could not renew for this long stops its work.
    pub(crate) fn renew_deadline(self) -> Duration {
        self.duration * 2 / 3
    }

    /// How often the lease is renewed, or looked at.
    pub fn retry_period(self) -> Duration {
        self.duration * 2 / 15
    }

    fn patience(self) -> Duration {
        self.renew_deadline() / 2
    }
}

/// What one look at the lease came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leadership {
    /// It is ours until then, unless it is renewed.
    Ours(Instant),
    /// It is another's, who may be known.
    Anothers(Option<String>),
}

/// One candidate for a lease.
pub struct LeaderElector {
    cluster: Cluster,
    leases: Api<Lease>,
    lease: LeaseName,
    own: Candidate,
}

/// What a candidate knows, without what it asks.
#[derive(Debug)]
struct Candidate {
    identity: String,
    terms: LeaseConfig,
    seen: Option<ObservedRecord>,
}

/// The record as it was last seen to change.
#[derive(Debug)]
struct ObservedRecord {
    lease: Lease,
    since: Instant,
}

impl LeaderElector {
    /// A candidate whose name nobody else has: a program that was killed and started again must not
    /// take itself for the one that it was.
    pub fn new(cluster: Cluster, lease: LeaseName, identity: String, terms: LeaseConfig) -> Self {
        let leases = Api::namespaced(cluster.client.clone(), &lease.namespace);
        Self {
            cluster,
            leases,
            lease,
            own: Candidate {
                identity,
                terms,
                seen: None,
            },
        }
    }

    /// Takes the lease, renews it, or sees who has it.
    pub async fn try_acquire_or_renew(&mut self) -> Result<Leadership, LiveError> {
        // The holder knows the record already; where somebody changed it, a second look tells.
        if let Some(own) = self.own.held().cloned()
            && let Some(standing) = self.write(own, "renew").await?
        {
            return Ok(standing);
        }
        let asked = self.leases.get(&self.lease.name);
        let found = match self.within("read", asked).await {
            Ok(lease) => Some(lease),
            Err(LiveError::Refused { code: 404, .. }) => None,
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
                self.own.see(lease, now);
                match self.own.takes(now) {
                    Some(lease) => self.write(lease, "take").await?,
                    None => None,
                }
            }
        };
        Ok(standing.unwrap_or_else(|| Leadership::Anothers(self.own.holder())))
    }

    /// Writes the record with our name in it. Nothing where somebody else was quicker.
    async fn write(&mut self, lease: Lease, verb: &str) -> Result<Option<Leadership>, LiveError> {
        // From before it was asked: others count from later.
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
                    since + self.own.terms.renew_deadline(),
                )))
            }
            Err(LiveError::Refused { code: 409, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Lets others have the lease at once, if it is ours.
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
            // Somebody else has it already.
            Ok(_)
            | Err(LiveError::Refused {
                code: 404 | 409, ..
            }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn within<T>(
        &self,
        verb: &str,
        answer: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, LiveError> {
        let what = format!("{verb} the lease {}", self.lease);
        let patience = self.own.terms.patience();
        self.cluster.within(patience, &what, answer).await
    }
}

impl Candidate {
    /// The record, where our name is in it.
    fn held(&self) -> Option<&Lease> {
        let seen = self.seen.as_ref()?;
        (holder(&seen.lease) == Some(self.identity.as_str())).then_some(&seen.lease)
    }

    /// Whose name is in the record.
    fn holder(&self) -> Option<String> {
        let seen = self.seen.as_ref()?;
        holder(&seen.lease).map(str::to_owned)
    }

    /// Takes in the record as it is; what did not change keeps its age.
    fn see(&mut self, lease: Lease, now: Instant) {
        let since = match &self.seen {
            Some(seen) if seen.lease.spec == lease.spec => seen.since,
            _ => now,
        };
        self.seen = Some(ObservedRecord { lease, since });
    }

    /// The record to write our name into, if it is ours, nobody's, or was left by who had it.
    fn takes(&self, now: Instant) -> Option<Lease> {
        let seen = self.seen.as_ref()?;
        let is_free = match holder(&seen.lease) {
            None => true,
            Some(name) if name == self.identity => true,
            Some(_) => now.duration_since(seen.since) >= self.kept_for(&seen.lease),
        };
        is_free.then(|| seen.lease.clone())
    }

    /// How long whoever has it may be silent: what its holder promised to others.
    fn kept_for(&self, lease: &Lease) -> Duration {
        let spec = lease.spec.as_ref();
        let seconds = spec.and_then(|spec| spec.lease_duration_seconds);
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        match seconds {
            Some(seconds) if seconds > 0 => Duration::from_secs(seconds).min(LONGEST),
            _ => self.terms.duration,
        }
    }

    /// What the record says when our name is in it.
    fn spec(&self, before: Option<&LeaseSpec>, now: Timestamp) -> LeaseSpec {
        let before = before.cloned().unwrap_or_default();
        let is_renewal = before.holder_identity.as_deref() == Some(self.identity.as_str());
        let transitions = before.lease_transitions.unwrap_or_default();
        let had_a_holder = before.acquire_time.is_some();
        // A part of a second would be lost, and others wait too short.
        let seconds = self.terms.duration.as_secs_f64().ceil();
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

    const TERMS: LeaseConfig = LeaseConfig {
        duration: Duration::from_secs(15),
    };

    fn candidate(identity: &str) -> Candidate {
        Candidate {
            identity: identity.to_owned(),
            terms: TERMS,
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
        assert_eq!(TERMS.renew_deadline(), Duration::from_secs(10));
        assert_eq!(TERMS.retry_period(), Duration::from_secs(2));
        assert!(TERMS.renew_deadline() + TERMS.patience() <= TERMS.duration);
    }

    #[test]
    fn a_lease_is_taken_once_it_has_not_changed_for_as_long_as_it_says() {
        let (holder, mut other) = (candidate("a"), candidate("b"));
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        // The holder's clock is years behind, which nobody looks at.
        let first = holder.spec(None, second(1000));
        other.see(lease(first.clone()), now);
        assert_eq!(other.takes(after(14)), None);
        // It was renewed: everything counts from then.
        let renewed = holder.spec(Some(&first), second(1010));
        assert_eq!(renewed.acquire_time, first.acquire_time);
        assert_eq!(renewed.lease_transitions, Some(0));
        other.see(lease(renewed.clone()), after(14));
        other.see(lease(renewed.clone()), after(20));
        assert_eq!(other.takes(after(28)), None);
        let taken = other.takes(after(29)).unwrap();
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
        other.see(lease(released), now);
        assert!(other.takes(now).is_some());
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
            assert_eq!(other.kept_for(&lease(spec)), Duration::from_secs(kept));
        }
    }
}
