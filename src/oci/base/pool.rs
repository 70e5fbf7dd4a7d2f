//! The images that a repository's tags offer, best first, with as few questions as possible.
//!
//! A tag that names its version is taken at its word until its image is looked at; for any other
//! there is an [`Estimate`], and as long as the best of what it may be is better than everything
//! that is certain, it is worth a question to the registry.

use std::collections::{BTreeMap, BTreeSet};

use super::estimate::Estimate;
use super::fit::{Fit, Match, Span};
use super::tag::{BaseTag, Flavour, Names};
use crate::windows::compat::HostBuild;
use crate::windows::update::Kb;
use crate::windows::version::WindowsVersion;

/// The offers that are still open for one host.
pub(super) struct Pool<S> {
    host: HostBuild,
    wanted: Match,
    offers: Vec<Offer<S>>,
    /// Tags that say nothing about Windows, the most promising last.
    vague: Vec<BaseTag>,
}

/// One image that can be had.
pub(super) struct Offer<S> {
    /// The tag it is found under.
    pub(super) tag: BaseTag,
    /// What is known about it.
    pub(super) basis: Basis<S>,
    estimate: Estimate,
}

/// Why an offer is believed to have its version; the greater, the better known.
pub(super) enum Basis<S> {
    /// It may have another.
    Guessed,
    /// The tag says so.
    Promised(WindowsVersion),
    /// The registry's index or the image itself says so.
    Seen(WindowsVersion, S),
}

impl<S> Pool<S> {
    /// Sorts out what a list of tags offers to a host.
    pub(super) fn new(tags: &[String], host: HostBuild, wanted: Match) -> Self {
        let sorted = Sorted::new(tags);
        let mut pool = Self {
            host,
            wanted,
            offers: Vec::new(),
            vague: sorted.vague(),
        };
        for (tag, version) in sorted.promised() {
            pool.offers
                .push(Offer::known(tag, version, Basis::Promised(version)));
        }
        for (tag, estimate) in sorted.guessed() {
            let basis = Basis::Guessed;
            pool.offers.push(Offer {
                tag,
                basis,
                estimate,
            });
        }
        pool
    }

    /// Whether no tag can be a base image's.
    pub(super) fn is_empty(&self) -> bool {
        self.offers.is_empty() && self.vague.is_empty()
    }

    /// Takes out the offer that fits best, or would if it turned out well; tags that say nothing
    /// come when there is no other.
    pub(super) fn take_best(&mut self) -> Option<Offer<S>> {
        let best = (0..self.offers.len())
            .filter_map(|index| Some((self.rank(&self.offers[index])?, index)))
            .max()
            .map(|(_, index)| index);
        match best {
            Some(index) => Some(self.offers.swap_remove(index)),
            None => self.vague.pop().map(|tag| Offer {
                tag,
                basis: Basis::Guessed,
                estimate: Estimate::of_floating(self.host.version.build, 0),
            }),
        }
    }

    /// Puts in what was found under a tag.
    pub(super) fn add(&mut self, tag: BaseTag, version: WindowsVersion, seen: S) {
        let basis = Basis::Seen(version, seen);
        self.offers.push(Offer::known(tag, version, basis));
    }

    /// The versions next to the host's among all that are left.
    pub(super) fn neighbours(&self) -> (Option<Neighbour>, Option<Neighbour>) {
        let known = || self.offers.iter().filter_map(Offer::as_neighbour);
        let own = self.host.version;
        (
            known()
                .filter(|it| it.version <= own)
                .max_by_key(|it| it.version),
            known()
                .filter(|it| it.version > own)
                .min_by_key(|it| it.version),
        )
    }

    fn rank<'o>(&self, offer: &'o Offer<S>) -> Option<impl Ord + use<'o, S>> {
        let fit = |version| Fit::of(version, self.host, self.wanted);
        // A tag that names the version goes before one that leads to it today.
        let names_it = matches!(offer.tag.names, Names::Version(_));
        let seen = matches!(offer.basis, Basis::Seen(..));
        Some((
            fit(offer.estimate.possible.nearest_to(self.host))?,
            &offer.tag.flavour,
            (names_it, seen),
            offer.estimate.likely.and_then(fit),
            offer.tag.plainness(),
        ))
    }
}

impl<S> Offer<S> {
    fn known(tag: BaseTag, version: WindowsVersion, basis: Basis<S>) -> Self {
        let revision = version.revision.unwrap_or(0);
        let estimate = Estimate {
            possible: Span {
                build: version.build,
                revisions: revision..=revision,
            },
            likely: Some(version),
        };
        Self {
            tag,
            basis,
            estimate,
        }
    }

    fn as_neighbour(&self) -> Option<Neighbour> {
        Some(Neighbour {
            version: self.estimate.likely?,
            tag: self.tag.text.clone(),
            certain: !matches!(self.basis, Basis::Guessed),
        })
    }
}

/// An image that does not fit, but comes near.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    /// Its version.
    pub version: WindowsVersion,
    /// The tag it is found under.
    pub tag: String,
    /// Whether the version is the tag's or the image's own word, not concluded from a date.
    pub certain: bool,
}

impl std::fmt::Display for Neighbour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let about = if self.certain { "" } else { "about " };
        write!(f, "{about}{} (tag {})", self.version, self.tag)
    }
}

/// Tags by what they name, for each the plainest of those that name the same.
#[derive(Default)]
struct Sorted {
    versions: BTreeMap<(WindowsVersion, Flavour), BaseTag>,
    updates: BTreeMap<(u32, Kb, Flavour), BaseTag>,
    dated: BTreeMap<(u32, jiff::civil::Date, Flavour), BaseTag>,
    floating: BTreeMap<(u32, String), BaseTag>,
    nothing: BTreeMap<String, BaseTag>,
}

fn keep_plainest<K: Ord>(map: &mut BTreeMap<K, BaseTag>, key: K, tag: BaseTag) {
    let kept = map.entry(key).or_insert_with(|| tag.clone());
    if tag.plainness() > kept.plainness() {
        *kept = tag;
    }
}

impl Sorted {
    fn new(tags: &[String]) -> Self {
        let mut sorted = Self::default();
        let usable = tags.iter().filter_map(|text| BaseTag::parse(text));
        for tag in usable.filter(BaseTag::is_for_servers) {
            sorted.put(tag);
        }
        sorted
    }

    fn put(&mut self, tag: BaseTag) {
        let flavour = tag.flavour.clone();
        let without_arch = tag.without_arch();
        match (tag.names, tag.date) {
            (Names::Version(version), _) => {
                keep_plainest(&mut self.versions, (version, flavour), tag);
            }
            (Names::Update { build, kb }, _) => {
                keep_plainest(&mut self.updates, (build, kb, flavour), tag);
            }
            (Names::Release { build }, Some(date)) => {
                keep_plainest(&mut self.dated, (build, date, flavour), tag);
            }
            (Names::Release { build }, None) => {
                keep_plainest(&mut self.floating, (build, without_arch), tag);
            }
            (Names::Nothing, _) => keep_plainest(&mut self.nothing, without_arch, tag),
        }
    }

    fn promised(&self) -> impl Iterator<Item = (BaseTag, WindowsVersion)> {
        self.versions
            .iter()
            .map(|((version, _), tag)| (tag.clone(), *version))
    }

    fn guessed(&self) -> Vec<(BaseTag, Estimate)> {
        let mut guessed: Vec<(BaseTag, Estimate)> = self.updates().collect();
        guessed.extend(
            self.dated
                .iter()
                .map(|((build, date, _), tag)| (tag.clone(), Estimate::of_date(*build, *date))),
        );
        let newest = self.newest_named(&guessed);
        let floating = self.floating.iter().map(|((build, _), tag)| {
            let newest = newest.get(&(*build, &tag.flavour)).copied();
            (
                tag.clone(),
                Estimate::of_floating(*build, newest.unwrap_or(0)),
            )
        });
        let floating: Vec<_> = floating.collect();
        guessed.extend(floating);
        guessed
    }

    /// Tags of updates, without those that are other names of an image whose version another tag
    /// says. Every image since 2019 has such a tag, so where a build has some, a KB that the table
    /// does not know belongs to one of them.
    fn updates(&self) -> impl Iterator<Item = (BaseTag, Estimate)> {
        let with_versions: BTreeSet<u32> = self
            .versions
            .keys()
            .map(|(version, _)| version.build)
            .collect();
        self.updates.iter().filter_map(
            move |((build, kb, flavour), tag)| match Estimate::of_update(*build, *kb) {
                Some(estimate) => {
                    let end = |revision| (WindowsVersion::new(*build, revision), flavour.clone());
                    let span = &estimate.possible.revisions;
                    let named = self
                        .versions
                        .range(end(*span.start())..=end(*span.end()))
                        .any(|((_, other), _)| other == flavour);
                    (!named).then(|| (tag.clone(), estimate))
                }
                None if with_versions.contains(build) => None,
                None => Some((tag.clone(), Estimate::of_floating(*build, 0))),
            },
        )
    }

    /// The newest revision that a build surely has.
    fn newest_named<'s>(
        &'s self,
        guessed: &'s [(BaseTag, Estimate)],
    ) -> BTreeMap<(u32, &'s Flavour), u32> {
        let promised = self
            .versions
            .iter()
            .map(|((version, flavour), _)| (version.build, flavour, version.revision.unwrap_or(0)));
        let estimated = guessed.iter().map(|(tag, estimate)| {
            let span = &estimate.possible;
            (span.build, &tag.flavour, *span.revisions.start())
        });
        let mut newest = BTreeMap::new();
        for (build, flavour, revision) in promised.chain(estimated) {
            let entry = newest.entry((build, flavour)).or_insert(revision);
            *entry = revision.max(*entry);
        }
        newest
    }

    fn vague(&self) -> Vec<BaseTag> {
        let mut tags: Vec<BaseTag> = self.nothing.values().cloned().collect();
        tags.sort_by(|a, b| (&a.flavour, a.plainness()).cmp(&(&b.flavour, b.plainness())));
        tags
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn pool(host: &str, tags: &[&str]) -> Pool<()> {
        let tags: Vec<String> = tags.iter().map(|&tag| tag.to_owned()).collect();
        Pool::new(&tags, HostBuild::new(host.parse().unwrap()), Match::Nearest)
    }

    /// What is taken, in order, when every guess turns out as `truth` says.
    fn asked(host: &str, tags: &[&str], truth: &[(&str, &str)]) -> Vec<String> {
        let mut pool = pool(host, tags);
        let mut asked = Vec::new();
        while let Some(offer) = pool.take_best() {
            match offer.basis {
                Basis::Guessed => {
                    asked.push(offer.tag.text.clone());
                    let of_tag = truth.iter().filter(|(tag, _)| *tag == offer.tag.text);
                    for (_, version) in of_tag {
                        pool.add(offer.tag.clone(), version.parse().unwrap(), ());
                    }
                }
                Basis::Promised(version) | Basis::Seen(version, ()) => {
                    asked.push(format!("{version} as {}", offer.tag.text));
                    break;
                }
            }
        }
        asked
    }

    #[test]
    fn a_named_version_is_taken_without_a_question() {
        let tags = [
            "ltsc2019",
            "1809",
            "1809-KB4534273",
            "10.0.17763.973-amd64",
            "10.0.17763.973",
            "10.0.17763.914",
        ];
        assert_eq!(
            asked("17763.973", &tags, &[]),
            ["17763.973 as 10.0.17763.973"]
        );
    }

    #[test]
    fn a_floating_tag_is_asked_about_only_by_a_host_newer_than_all_named_versions() {
        let tags = [
            "ltsc2022",
            "ltsc2022-amd64",
            "10.0.20348.100",
            "10.0.20348.200",
        ];
        assert_eq!(
            asked("20348.150", &tags, &[]),
            ["20348.100 as 10.0.20348.100"]
        );
        assert_eq!(
            asked("20348.300", &tags, &[("ltsc2022", "20348.200")]),
            ["ltsc2022", "20348.200 as 10.0.20348.200"]
        );
    }

    #[test]
    fn a_kb_that_another_tag_gives_a_version_is_not_asked_about() {
        let tags = ["1809-KB4546852", "1809-KB4532691", "10.0.17763.1040"];
        assert_eq!(
            asked("17763.1039", &tags, &[]),
            ["17763.1040 as 10.0.17763.1040"]
        );
    }

    #[test]
    fn kb_tags_alone_are_asked_about_where_they_may_fit() {
        let tags = ["1809-KB4534273", "1809-KB4530715", "1809-KB4532691"];
        assert_eq!(
            asked("17763.973", &tags, &[("1809-KB4534273", "17763.973")]),
            ["1809-KB4534273", "17763.973 as 1809-KB4534273"]
        );
    }

    #[test]
    fn of_dated_tags_the_hosts_month_is_asked_about_first() {
        let tags = [
            "4.8-windowsservercore-ltsc2019",
            "4.8-20191210-windowsservercore-ltsc2019",
            "4.8-20200114-windowsservercore-ltsc2019",
            "4.7.2-20200114-windowsservercore-ltsc2019",
            "4.8-20200211-windowsservercore-ltsc2019",
            "4.8",
            "latest",
        ];
        let january = "4.8-20200114-windowsservercore-ltsc2019";
        assert_eq!(
            asked("17763.973", &tags, &[(january, "17763.973")]),
            [january.to_owned(), format!("17763.973 as {january}")]
        );
    }

    #[test]
    fn a_guess_that_was_wrong_gives_way_to_the_next() {
        let december = "20191210-windowsservercore-ltsc2019";
        let january = "20200114-windowsservercore-ltsc2019";
        let truth = [(january, "17763.1040"), (december, "17763.914")];
        assert_eq!(
            asked("17763.973", &[december, january], &truth),
            [
                january.to_owned(),
                december.to_owned(),
                format!("17763.914 as {december}")
            ]
        );
    }

    #[test]
    fn tags_that_say_nothing_are_the_last_resort() {
        let truth = [("latest", "17763.973"), ("latest", "20348.1")];
        assert_eq!(
            asked("17763.973", &["latest", "ltsc2022"], &truth),
            ["latest", "17763.973 as latest"]
        );
    }

    #[test]
    fn previews_and_other_architectures_are_not_offered() {
        let tags = [
            "10.0.26100.1742-arm64",
            "ltsc2025-arm64",
            "10.0.26100.1742-preview",
            "v1",
        ];
        assert!(pool("26100.1742", &tags).is_empty());
    }

    #[test]
    fn neighbours_are_the_nearest_on_both_sides() {
        let pool = pool(
            "14393.3443",
            &[
                "10.0.14393.3326",
                "10.0.14393.3384",
                "10.0.14393.3504",
                "10.0.17763.973",
            ],
        );
        let (below, above) = pool.neighbours();
        assert_eq!(
            below.unwrap().to_string(),
            "14393.3384 (tag 10.0.14393.3384)"
        );
        assert_eq!(
            above.unwrap().to_string(),
            "14393.3504 (tag 10.0.14393.3504)"
        );
    }
}
