//! Tags of a repository grouped by image: one tag for each distinguishable image, with its known or
//! estimated version.

use std::collections::{BTreeMap, BTreeSet};

use wincimg_windows::compat::Architecture;
use wincimg_windows::update::Kb;
use wincimg_windows::version::WindowsVersion;

use super::estimate::Estimate;
use super::flavour::BaseFlavour;
use super::tag::{BaseTag, TagPrecision};

/// Tags grouped by image, the simplest of each group.
#[derive(Default)]
pub(super) struct TagsByImage {
    versions: BTreeMap<(WindowsVersion, BaseFlavour), BaseTag>,
    updates: BTreeMap<(u32, Kb, BaseFlavour), BaseTag>,
    dated: BTreeMap<(u32, jiff::civil::Date, BaseFlavour), BaseTag>,
    floating: BTreeMap<(u32, String), BaseTag>,
    nothing: BTreeMap<String, BaseTag>,
}

fn keep_plainest<K: Ord>(map: &mut BTreeMap<K, BaseTag>, key: K, tag: BaseTag) {
    let kept = map.entry(key).or_insert_with(|| tag.clone());
    if tag.sort_key() > kept.sort_key() {
        *kept = tag;
    }
}

impl TagsByImage {
    pub(super) fn new(tags: &[String], architecture: Architecture) -> Self {
        let mut by_image = Self::default();
        let usable = tags.iter().filter_map(|text| BaseTag::parse(text));
        for tag in usable.filter(|tag| tag.is_for(architecture)) {
            by_image.put(tag);
        }
        by_image
    }

    fn put(&mut self, tag: BaseTag) {
        let flavour = tag.flavour.clone();
        let without_arch = tag.without_arch();
        match (tag.names, tag.date) {
            (TagPrecision::Version(version), _) => {
                keep_plainest(&mut self.versions, (version, flavour), tag);
            }
            (TagPrecision::Update { build, kb }, _) => {
                keep_plainest(&mut self.updates, (build, kb, flavour), tag);
            }
            (TagPrecision::Release { build }, Some(date)) => {
                keep_plainest(&mut self.dated, (build, date, flavour), tag);
            }
            (TagPrecision::Release { build }, None) => {
                keep_plainest(&mut self.floating, (build, without_arch), tag);
            }
            (TagPrecision::Nothing, _) => keep_plainest(&mut self.nothing, without_arch, tag),
        }
    }

    pub(super) fn with_exact_version(&self) -> impl Iterator<Item = (BaseTag, WindowsVersion)> {
        self.versions
            .iter()
            .map(|((version, _), tag)| (tag.clone(), *version))
    }

    pub(super) fn with_estimated_version(&self) -> Vec<(BaseTag, Estimate)> {
        let mut guessed: Vec<(BaseTag, Estimate)> = self.updates().collect();
        guessed.extend(
            self.dated
                .iter()
                .map(|((build, date, _), tag)| (tag.clone(), Estimate::from_date(*build, *date))),
        );
        let newest = self.newest_named(&guessed);
        let floating = self.floating.iter().map(|((build, _), tag)| {
            let newest = newest.get(&(*build, &tag.flavour)).copied();
            (
                tag.clone(),
                Estimate::from_floating_tag(*build, newest.unwrap_or(0)),
            )
        });
        let floating: Vec<_> = floating.collect();
        guessed.extend(floating);
        guessed
    }

    /// Update tags, without those of images whose version another tag names. Every image since 2019
    /// has such a tag, so if a build has some, an unknown KB belongs to one of them.
    fn updates(&self) -> impl Iterator<Item = (BaseTag, Estimate)> {
        let with_versions: BTreeSet<u32> = self
            .versions
            .keys()
            .map(|(version, _)| version.build)
            .collect();
        self.updates
            .iter()
            .filter_map(move |((build, kb, flavour), tag)| {
                match Estimate::from_update(*build, *kb) {
                    Some(estimate) => {
                        let end =
                            |revision| (WindowsVersion::new(*build, revision), flavour.clone());
                        let span = &estimate.possible.revisions;
                        let named = self
                            .versions
                            .range(end(*span.start())..=end(*span.end()))
                            .any(|((_, other), _)| other == flavour);
                        (!named).then(|| (tag.clone(), estimate))
                    }
                    None if with_versions.contains(build) => None,
                    None => Some((tag.clone(), Estimate::from_floating_tag(*build, 0))),
                }
            })
    }

    /// The newest revision that a build certainly has.
    fn newest_named<'s>(
        &'s self,
        guessed: &'s [(BaseTag, Estimate)],
    ) -> BTreeMap<(u32, &'s BaseFlavour), u32> {
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

    pub(super) fn without_version(&self) -> Vec<BaseTag> {
        let mut tags: Vec<BaseTag> = self.nothing.values().cloned().collect();
        tags.sort_by(|a, b| (&a.flavour, a.sort_key()).cmp(&(&b.flavour, b.sort_key())));
        tags
    }
}
