//! The images of a repository from its tags, without a request for each image.

use std::collections::BTreeMap;

use jiff::civil::Date;
use wincimg_windows::update::{Kb, Updates};
use wincimg_windows::version::WindowsVersion;

use super::flavour::BaseFlavour;
use super::tag::{BaseTag, TagPrecision};

/// Images of a repository, from its tags alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseListing {
    /// Images for Windows nodes, the newest first.
    pub images: Vec<BaseListingEntry>,
    /// Number of tags of other flavours or architectures, of previews, and of unknown form.
    pub other_tags: usize,
}

/// Tags of the same image, according to their names; the derived order is the listing's.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct BaseListingEntry {
    /// The build, and the revision if a tag names it; none for tags like `latest`.
    pub version: Option<WindowsVersion>,
    /// True if the tags move to newer images.
    pub floating: bool,
    /// The day in the tag, or the update's.
    pub date: Option<Date>,
    /// The cumulative update in it, if a tag or the table of updates names it.
    pub kb: Option<Kb>,
    flavour: BaseFlavour,
    /// The tags, the simplest first.
    pub tags: Vec<String>,
}

impl BaseListing {
    /// Groups tags; `other_tags` counts the rest of the repository.
    pub(super) fn new(tags: Vec<BaseTag>, other_tags: usize) -> Self {
        let mut images: BTreeMap<BaseListingEntry, Vec<BaseTag>> = BTreeMap::new();
        for tag in tags {
            let image = BaseListingEntry::from_tag(&tag);
            images.entry(image).or_default().push(tag);
        }
        let images = images.into_iter().rev().map(|(image, mut tags)| {
            tags.sort_by_cached_key(|tag| std::cmp::Reverse(tag.sort_key()));
            let tags = tags.into_iter().map(|tag| tag.text).collect();
            BaseListingEntry { tags, ..image }
        });
        Self {
            images: images.collect(),
            other_tags,
        }
    }
}

impl BaseListingEntry {
    /// The image of a tag, without its tags.
    fn from_tag(tag: &BaseTag) -> Self {
        let version = match tag.names {
            TagPrecision::Version(version) => Some(version),
            TagPrecision::Update { build, kb } => Some(version_of(build, kb)),
            TagPrecision::Release { build } => Some(WindowsVersion::from_build(build)),
            TagPrecision::Nothing => None,
        };
        let with_revision = version.filter(|version| version.revision.is_some());
        let update = with_revision.and_then(|version| Updates::global().exact(version));
        let kb = match tag.names {
            TagPrecision::Update { kb, .. } => Some(kb),
            _ => update.and_then(|update| update.kb),
        };
        Self {
            version,
            floating: kb.is_none() && with_revision.is_none() && tag.date.is_none(),
            date: tag.date.or(update.map(|update| update.date)),
            kb,
            flavour: tag.flavour.clone(),
            tags: Vec::new(),
        }
    }
}

/// The revision of a KB, if it has exactly one.
fn version_of(build: u32, kb: Kb) -> WindowsVersion {
    let mut updates = Updates::global()
        .by_kb(kb)
        .filter(|update| update.build == build);
    match (updates.next(), updates.next()) {
        (Some(update), None) => update.version(),
        _ => WindowsVersion::from_build(build),
    }
}

#[cfg(test)]
mod tests {
    use wincimg_windows::compat::Architecture;

    use super::*;
    use crate::bases::FlavourSelector;

    fn listing(tags: &[&str]) -> BaseListing {
        let tags: Vec<String> = tags.iter().map(|&tag| tag.to_owned()).collect();
        let usual = FlavourSelector::Usual;
        let named = usual.matching_tags("nanoserver", &tags, Architecture::Amd64);
        let named = named.unwrap();
        let others = tags.len() - named.len();
        BaseListing::new(named, others)
    }

    #[test]
    fn spellings_of_one_image_are_one_entry() {
        let tags = [
            "1809-KB4534273-amd64", "1809-KB4534273", "10.0.17763.973-amd64", "10.0.17763.973",
        ];
        let listing = listing(&tags);
        assert_eq!(listing.images.len(), 1);
        let image = &listing.images[0];
        assert_eq!(image.version, Some(WindowsVersion::new(17763, 973)));
        assert_eq!(image.kb.unwrap().to_string(), "KB4534273");
        assert_eq!(image.date.unwrap().to_string(), "2020-01-14");
        assert_eq!(image.tags[0], "10.0.17763.973");
        assert_eq!(image.tags.len(), 4);
    }

    #[test]
    fn the_newest_come_first_and_what_moves_is_marked() {
        let listing = listing(&[
            "latest", "ltsc2019", "10.0.17763.973", "ltsc2022", "10.0.20348.10",
        ]);
        let images = listing.images.iter();
        let rows = images.map(|image| (image.tags[0].as_str(), image.floating));
        let expected = [
            ("10.0.20348.10", false),
            ("ltsc2022", true),
            ("10.0.17763.973", false),
            ("ltsc2019", true),
            ("latest", true),
        ];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_has_other_software_in_it_is_another_image() {
        let month = "20200114-windowsservercore-ltsc2019";
        let listing = listing(&[&format!("4.8-{month}"), &format!("4.7.2-{month}")]);
        assert_eq!(listing.images.len(), 2);
        assert_eq!(listing.images[0].tags, [format!("4.8-{month}")]);
    }

    #[test]
    fn what_is_not_for_windows_nodes_is_counted() {
        let listing = listing(&["ltsc2025-arm64", "10.0.26100.1-preview", "v1", "ltsc2025"]);
        assert_eq!(listing.other_tags, 3);
        assert_eq!(listing.images.len(), 1);
    }
}
