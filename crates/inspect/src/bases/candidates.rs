//! The images that a repository's tags offer, best first, with as few questions as possible.
//!
//! A tag that names its version is taken at its word until its image is looked at; for any other
//! there is an [`Estimate`], and as long as the best of what it may be is better than everything
//! that is certain, it is worth a question to the registry.

use std::collections::BTreeSet;

use wincimg_windows::compat::HostBuild;
use wincimg_windows::version::WindowsVersion;

use super::best_fit::{BaseMatch, Fit, Span};
use super::estimate::Estimate;
use super::flavour::BaseFlavour;
use super::tag::{BaseTag, TagPrecision};
use super::tags_by_image::TagsByImage;

/// The offers that are still open for one host.
pub(super) struct CandidateQueue<S> {
    host: HostBuild,
    wanted: BaseMatch,
    open: Vec<BaseCandidate<S>>,
    /// Tags that say nothing about Windows, the most promising last.
    vague: Vec<BaseTag>,
}

/// One image that can be had.
pub(super) struct BaseCandidate<S> {
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

impl<S> CandidateQueue<S> {
    /// Sorts out what a list of tags offers to a host.
    pub(super) fn new(tags: &[String], host: HostBuild, wanted: BaseMatch) -> Self {
        let by_image = TagsByImage::new(tags);
        let mut offers = Self {
            host,
            wanted,
            open: Vec::new(),
            vague: by_image.without_version(),
        };
        for (tag, version) in by_image.with_exact_version() {
            offers
                .open
                .push(BaseCandidate::known(tag, version, Basis::Promised(version)));
        }
        for (tag, estimate) in by_image.with_estimated_version() {
            let basis = Basis::Guessed;
            offers.open.push(BaseCandidate {
                tag,
                basis,
                estimate,
            });
        }
        offers
    }

    /// The flavours of what fits, or may.
    pub(super) fn flavours(&self) -> BTreeSet<BaseFlavour> {
        let fitting = self.open.iter().filter(|offer| self.rank(offer).is_some());
        let fitting: BTreeSet<BaseFlavour> =
            fitting.map(|offer| offer.tag.flavour.clone()).collect();
        if fitting.is_empty() && self.open.is_empty() {
            return self.vague.iter().map(|tag| tag.flavour.clone()).collect();
        }
        fitting
    }

    /// Takes out the offer that fits best, or would if it turned out well; tags that say nothing
    /// come when there is no other.
    pub(super) fn pop_best(&mut self) -> Option<BaseCandidate<S>> {
        let best = (0..self.open.len())
            .filter_map(|index| Some((self.rank(&self.open[index])?, index)))
            .max()
            .map(|(_, index)| index);
        match best {
            Some(index) => Some(self.open.swap_remove(index)),
            None => self.vague.pop().map(|tag| BaseCandidate {
                tag,
                basis: Basis::Guessed,
                estimate: Estimate::from_floating_tag(self.host.version.build, 0),
            }),
        }
    }

    /// Puts in what was found under a tag.
    pub(super) fn add(&mut self, tag: BaseTag, version: WindowsVersion, seen: S) {
        let basis = Basis::Seen(version, seen);
        self.open.push(BaseCandidate::known(tag, version, basis));
    }

    /// The versions next to the host's among all that are left.
    pub(super) fn nearest_versions(&self) -> (Option<NearestImage>, Option<NearestImage>) {
        let known = || self.open.iter().filter_map(BaseCandidate::as_neighbour);
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

    fn rank<'o>(&self, offer: &'o BaseCandidate<S>) -> Option<impl Ord + use<'o, S>> {
        let fit = |version| Fit::of(version, self.host, self.wanted);
        // A tag that names the version goes before one that leads to it today.
        let names_it = matches!(offer.tag.names, TagPrecision::Version(_));
        let seen = matches!(offer.basis, Basis::Seen(..));
        Some((
            fit(offer.estimate.possible.nearest_to(self.host))?,
            &offer.tag.flavour,
            (names_it, seen),
            offer.estimate.likely.and_then(fit),
            offer.tag.sort_key(),
        ))
    }
}

impl<S> BaseCandidate<S> {
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

    fn as_neighbour(&self) -> Option<NearestImage> {
        Some(NearestImage {
            version: self.estimate.likely?,
            tag: self.tag.text.clone(),
            certain: !matches!(self.basis, Basis::Guessed),
        })
    }
}

/// An image that does not fit, but comes near.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearestImage {
    /// Its version.
    pub version: WindowsVersion,
    /// The tag it is found under.
    pub tag: String,
    /// True if the version is the tag's or the image's own word, not concluded from a date.
    pub certain: bool,
}

impl std::fmt::Display for NearestImage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let about = if self.certain { "" } else { "about " };
        write!(f, "{about}{} (tag {})", self.version, self.tag)
    }
}

#[cfg(test)]
mod tests;
