//! Candidate images of a repository's tags, best first, with as few requests as possible.
//!
//! A tag that names its version is trusted until its image is read. Any other has an [`Estimate`],
//! and is requested only while its best possible version is better than every certain one.

use std::collections::BTreeSet;

use wincimg_windows::compat::HostBuild;
use wincimg_windows::version::WindowsVersion;

use super::best_fit::{BaseMatch, Fit, Span};
use super::estimate::Estimate;
use super::flavour::BaseFlavour;
use super::tag::{BaseTag, TagPrecision};
use super::tags_by_image::TagsByImage;

/// The remaining candidates for one host.
pub(super) struct CandidateQueue<S> {
    host: HostBuild,
    wanted: BaseMatch,
    open: Vec<BaseCandidate<S>>,
    /// Tags that name no Windows version, the most promising last.
    vague: Vec<BaseTag>,
}

pub(super) struct BaseCandidate<S> {
    pub(super) tag: BaseTag,
    pub(super) basis: VersionSource<S>,
    estimate: Estimate,
}

/// Basis of a candidate's version; the greater, the more reliable.
pub(super) enum VersionSource<S> {
    Guessed,
    /// The tag names it.
    Promised(WindowsVersion),
    /// The registry's index or the image itself names it.
    Seen(WindowsVersion, S),
}

impl<S> CandidateQueue<S> {
    /// Creates the candidates of a list of tags for a host.
    pub(super) fn new(tags: &[String], host: HostBuild, wanted: BaseMatch) -> Self {
        let by_image = TagsByImage::new(tags, host.architecture);
        let mut offers = Self {
            host,
            wanted,
            open: Vec::new(),
            vague: by_image.without_version(),
        };
        for (tag, version) in by_image.with_exact_version() {
            offers.open.push(BaseCandidate::known(
                tag,
                version,
                VersionSource::Promised(version),
            ));
        }
        for (tag, estimate) in by_image.with_estimated_version() {
            let basis = VersionSource::Guessed;
            offers.open.push(BaseCandidate {
                tag,
                basis,
                estimate,
            });
        }
        offers
    }

    /// The flavours of candidates that fit or may fit.
    pub(super) fn flavours(&self) -> BTreeSet<BaseFlavour> {
        let fitting = self.open.iter().filter(|offer| self.rank(offer).is_some());
        let fitting: BTreeSet<BaseFlavour> =
            fitting.map(|offer| offer.tag.flavour.clone()).collect();
        if fitting.is_empty() && self.open.is_empty() {
            return self.vague.iter().map(|tag| tag.flavour.clone()).collect();
        }
        fitting
    }

    /// Removes the candidate with the best known or possible version; vague tags come last.
    pub(super) fn pop_best(&mut self) -> Option<BaseCandidate<S>> {
        let best = (0..self.open.len())
            .filter_map(|index| Some((self.rank(&self.open[index])?, index)))
            .max()
            .map(|(_, index)| index);
        match best {
            Some(index) => Some(self.open.swap_remove(index)),
            None => self.vague.pop().map(|tag| BaseCandidate {
                tag,
                basis: VersionSource::Guessed,
                estimate: Estimate::from_floating_tag(self.host.version.build, 0),
            }),
        }
    }

    pub(super) fn add(&mut self, tag: BaseTag, version: WindowsVersion, seen: S) {
        let basis = VersionSource::Seen(version, seen);
        self.open.push(BaseCandidate::known(tag, version, basis));
    }

    /// The nearest versions around the host's among the remaining candidates.
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
        // A tag that names the version ranks before one that points to it today.
        let names_it = matches!(offer.tag.names, TagPrecision::Version(_));
        let seen = matches!(offer.basis, VersionSource::Seen(..));
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
    fn known(tag: BaseTag, version: WindowsVersion, basis: VersionSource<S>) -> Self {
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
            certain: !matches!(self.basis, VersionSource::Guessed),
        })
    }
}

/// An image that does not fit, but is nearest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NearestImage {
    /// Its version.
    pub version: WindowsVersion,
    /// Its tag.
    pub tag: String,
    /// True if the tag or the image names the version; false if it is estimated from a date.
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
