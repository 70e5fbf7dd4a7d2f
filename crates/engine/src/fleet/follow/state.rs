//! State of a fleet's images in a controller: required builds, existing images, failures and
//! retries. Pure: the time is passed in.

use std::collections::{BTreeMap, BTreeSet};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use tokio::time::Instant;

/// Required builds of Windows, by entry of the fleet.
pub(super) type RequiredBuilds = BTreeMap<String, BTreeSet<String>>;

/// Outcome of one entry for one build of Windows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryOutcome {
    /// Its image existed.
    Ready,
    /// Its image was built.
    Made,
    /// Its image is missing.
    Missing {
        /// Error.
        problem: String,
        /// Hint.
        hint: Option<String>,
    },
}

impl EntryOutcome {
    fn is_ready(&self) -> bool {
        !matches!(self, Self::Missing { .. })
    }
}

/// Result of an entry for a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryResult {
    /// The entry.
    pub entry: String,
    /// The build.
    pub build: String,
    /// The outcome.
    pub outcome: EntryOutcome,
}

/// State of a node's images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// The entries whose images are missing, each with its error.
    pub missing: BTreeMap<String, String>,
    /// The number of required images.
    pub of: usize,
}

#[derive(Debug)]
pub(super) struct FleetState {
    /// Delays after failures.
    delays: ExponentialBuilder,
    entries: BTreeMap<String, EntryState>,
}

#[derive(Debug)]
struct EntryState {
    asked_for: BTreeSet<String>,
    outcomes: BTreeMap<String, EntryOutcome>,
    /// Time of the next check; none if all images exist.
    due: Option<Instant>,
    waits: ExponentialBackoff,
}

impl FleetState {
    /// A state without results.
    pub(super) fn new(delays: ExponentialBuilder) -> Self {
        Self {
            delays,
            entries: BTreeMap::new(),
        }
    }

    /// Sets the required builds. An entry with new ones is due at once, also if it waits after a
    /// failure; entries that are not required any more are forgotten.
    pub(super) fn set_demand(&mut self, demand: RequiredBuilds, now: Instant) {
        self.entries.retain(|name, _| demand.contains_key(name));
        for (name, builds) in demand {
            let delays = self.delays;
            let entry = self.entries.entry(name).or_insert_with(|| EntryState {
                asked_for: BTreeSet::new(),
                outcomes: BTreeMap::new(),
                due: None,
                waits: delays.build(),
            });
            if !builds.is_subset(&entry.asked_for) {
                entry.due = Some(now);
            }
            entry.outcomes.retain(|build, _| builds.contains(build));
            entry.asked_for = builds;
        }
    }

    /// Makes everything due: images may have been deleted.
    pub(super) fn resync(&mut self, now: Instant) {
        for entry in self.entries.values_mut() {
            entry.due = Some(now);
        }
    }

    pub(super) fn due(&self, now: Instant) -> BTreeSet<String> {
        let due = self.entries.iter();
        due.filter(|(_, entry)| entry.due.is_some_and(|due| due <= now))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// The next time at which an entry is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.entries.values().filter_map(|entry| entry.due).min()
    }

    /// Takes the results of entries, and returns those that are new or changed.
    pub(super) fn record(
        &mut self,
        tried: &BTreeSet<String>,
        results: Vec<EntryResult>,
        now: Instant,
    ) -> Vec<EntryResult> {
        let mut news = Vec::new();
        for one in results {
            let Some(entry) = self.entries.get_mut(&one.entry) else {
                continue;
            };
            let before = entry
                .outcomes
                .insert(one.build.clone(), one.outcome.clone());
            let is_same = match (&before, &one.outcome) {
                (_, EntryOutcome::Made) | (None, _) => false,
                (Some(before), after) => before == after || (before.is_ready() && after.is_ready()),
            };
            if !is_same {
                news.push(one);
            }
        }
        for name in tried {
            let Some(entry) = self.entries.get_mut(name) else {
                continue;
            };
            let is_there = |build| {
                entry
                    .outcomes
                    .get(build)
                    .is_some_and(EntryOutcome::is_ready)
            };
            if entry.asked_for.iter().all(is_there) {
                entry.due = None;
                entry.waits = self.delays.build();
            } else {
                entry.due = entry.waits.next().map(|wait| now + wait);
            }
        }
        news
    }

    /// The state of the images of one node; none if not all of them are checked yet.
    pub(super) fn state_of(&self, demand: &RequiredBuilds) -> Option<NodeState> {
        let mut missing = BTreeMap::new();
        let mut of = 0;
        for (name, builds) in demand {
            for build in builds {
                of += 1;
                let entry = self.entries.get(name);
                let outcome = entry.and_then(|entry| entry.outcomes.get(build));
                if let EntryOutcome::Missing { problem, .. } = outcome? {
                    missing.insert(name.clone(), problem.clone());
                }
            }
        }
        Some(NodeState { missing, of })
    }

    /// Numbers of images that exist, are missing, and are unknown.
    pub(super) fn count(&self) -> Count {
        let mut count = Count::default();
        for entry in self.entries.values() {
            for build in &entry.asked_for {
                match entry.outcomes.get(build) {
                    None => count.unknown += 1,
                    Some(outcome) if outcome.is_ready() => count.ready += 1,
                    Some(_) => count.missing += 1,
                }
            }
        }
        count
    }
}

/// Numbers of images by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Count {
    /// Existing.
    pub ready: usize,
    /// Missing.
    pub missing: usize,
    /// Not checked yet.
    pub unknown: usize,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const OLD: &str = "17763.973";
    const NEW: &str = "17763.1158";
    const DELAYS: ExponentialBuilder = ExponentialBuilder::new()
        .with_min_delay(Duration::from_secs(10))
        .with_max_delay(Duration::from_secs(30))
        .without_max_times();

    fn demand(entries: &[(&str, &[&str])]) -> RequiredBuilds {
        let entries = entries.iter();
        entries
            .map(|(name, builds)| ((*name).to_owned(), names(builds)))
            .collect()
    }

    fn names(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn result(entry: &str, build: &str, outcome: EntryOutcome) -> EntryResult {
        EntryResult {
            entry: entry.to_owned(),
            build: build.to_owned(),
            outcome,
        }
    }

    fn missing() -> EntryOutcome {
        EntryOutcome::Missing {
            problem: "no base".to_owned(),
            hint: None,
        }
    }

    #[test]
    fn a_new_build_makes_due_what_asks_for_it_and_nothing_else() {
        let now = Instant::now();
        let mut known = FleetState::new(DELAYS);
        known.set_demand(demand(&[("a", &[OLD]), ("b", &[OLD])]), now);
        assert_eq!(known.due(now), names(&["a", "b"]));
        let all = names(&["a", "b"]);
        let ready = |entry| result(entry, OLD, EntryOutcome::Ready);
        let news = known.record(&all, vec![ready("a"), ready("b")], now);
        assert_eq!(news.len(), 2);
        assert_eq!(known.due(now), names(&[]));
        assert_eq!(known.next_due(), None);
        // Another node of the same build requires nothing new.
        known.set_demand(demand(&[("a", &[OLD]), ("b", &[OLD])]), now);
        assert_eq!(known.due(now), names(&[]));
        known.set_demand(demand(&[("a", &[OLD, NEW]), ("b", &[OLD])]), now);
        assert_eq!(known.due(now), names(&["a"]));
        assert_eq!(known.state_of(&demand(&[("a", &[NEW])])), None);
        let made = vec![ready("a"), result("a", NEW, EntryOutcome::Made)];
        let news = known.record(&names(&["a"]), made.clone(), now);
        assert_eq!(news, made[1..]);
        let (missing, of) = (BTreeMap::new(), 1);
        assert_eq!(
            known.state_of(&demand(&[("a", &[NEW])])),
            Some(NodeState { missing, of })
        );
        known.set_demand(demand(&[("a", &[NEW])]), now);
        assert_eq!(
            known.count(),
            Count {
                ready: 1,
                ..Count::default()
            }
        );
        known.resync(now);
        assert_eq!(known.due(now), names(&["a"]));
    }

    #[test]
    fn a_failure_waits_longer_each_time_unless_it_is_required_again() {
        let now = Instant::now();
        let after = |seconds| now + Duration::from_secs(seconds);
        let mut known = FleetState::new(DELAYS);
        known.set_demand(demand(&[("a", &[OLD])]), now);
        let fail = |known: &mut FleetState, at| {
            known.record(&names(&["a"]), vec![result("a", OLD, missing())], at)
        };
        assert_eq!(fail(&mut known, now).len(), 1);
        assert_eq!(known.next_due(), Some(after(10)));
        assert_eq!(fail(&mut known, after(10)), []);
        assert_eq!(known.next_due(), Some(after(30)));
        assert_eq!(fail(&mut known, after(30)), []);
        assert_eq!(known.next_due(), Some(after(60)));
        assert_eq!(fail(&mut known, after(60)), []);
        assert_eq!(known.next_due(), Some(after(90)));
        let state = known.state_of(&demand(&[("a", &[OLD])]));
        let missing = BTreeMap::from([("a".to_owned(), "no base".to_owned())]);
        assert_eq!(state, Some(NodeState { missing, of: 1 }));
        known.set_demand(demand(&[("a", &[OLD, NEW])]), after(61));
        assert_eq!(known.due(after(61)), names(&["a"]));
        let made = vec![
            result("a", OLD, EntryOutcome::Made),
            result("a", NEW, EntryOutcome::Made),
        ];
        assert_eq!(known.record(&names(&["a"]), made, after(61)).len(), 2);
        assert_eq!(known.next_due(), None);
    }

    #[test]
    fn an_entry_of_which_nothing_was_heard_is_tried_again() {
        let now = Instant::now();
        let mut known = FleetState::new(DELAYS);
        known.set_demand(demand(&[("a", &[OLD])]), now);
        assert_eq!(known.record(&names(&["a"]), Vec::new(), now), []);
        assert_eq!(
            known.next_due(),
            DELAYS.build().next().map(|first| now + first)
        );
    }
}
