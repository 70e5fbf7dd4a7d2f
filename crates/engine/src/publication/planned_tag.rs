//! What a tag will mean once everything is published: what hosts will find there, before they do.

use std::cmp::Reverse;

use wincimg_oci::document::Platform;
use wincimg_windows::version::WindowsVersion;

use super::{Publication, TaggedImage};
use crate::plans::TargetHost;

/// What a tag will mean, and the hosts that are to start it.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTag<'a> {
    /// The tag.
    pub tag: String,
    /// True if it is an index; else it is one image.
    pub is_index: bool,
    /// The images, in the order of the index.
    pub lines: Vec<PlannedTagEntry>,
    /// The hosts that the build is for.
    pub hosts: Vec<&'a TargetHost>,
}

/// An image under a tag.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTagEntry {
    /// What it runs on, as a runtime sees it.
    pub platform: Platform,
    /// Its version of Windows, also where the platform does not say it.
    pub version: Option<WindowsVersion>,
}

impl PlannedTagEntry {
    /// The line of an image that is to be made.
    pub fn from_image(image: &TaggedImage<'_>) -> Self {
        Self {
            platform: image.planned.base.image.config().platform(),
            version: image.planned.base.os_version,
        }
    }
}

impl Publication<'_> {
    /// What its tags will mean: the index's, with the lines that are kept in it, or each image's.
    pub fn planned_tags(&self, kept: &[PlannedTagEntry]) -> Vec<PlannedTag<'_>> {
        let Some(tag) = &self.index else {
            let images = self.images.iter();
            return images
                .map(|image| PlannedTag {
                    tag: image.tag.clone(),
                    is_index: false,
                    lines: vec![PlannedTagEntry::from_image(image)],
                    hosts: image.hosts().collect(),
                })
                .collect();
        };
        let mut lines: Vec<PlannedTagEntry> = self
            .images
            .iter()
            .map(PlannedTagEntry::from_image)
            .collect();
        lines.extend(kept.iter().cloned());
        sort_entries(&mut lines, |line| line);
        vec![PlannedTag {
            tag: tag.clone(),
            is_index: true,
            lines,
            hosts: self.images.iter().flat_map(TaggedImage::hosts).collect(),
        }]
    }
}

/// Puts the lines of an index in order: other systems first, then Windows from the newest on, as
/// Docker takes the first image that is not newer than its host. What does not say its version comes
/// last, because it seems to be for every host.
pub fn sort_entries<T>(lines: &mut [T], line: impl Fn(&T) -> &PlannedTagEntry) {
    lines.sort_by_key(|it| {
        let PlannedTagEntry { platform, version } = line(it);
        (platform.os == "windows", Reverse(*version))
    });
}
