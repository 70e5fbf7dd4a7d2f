//! Planned content of tags, for checks before publishing.

use std::cmp::Reverse;

use wincimg_oci::document::Platform;
use wincimg_windows::version::WindowsVersion;

use super::{Publication, TaggedImage};
use crate::plans::{PlannedImage, TargetHost};

/// Planned content of a tag, and the hosts that must start it.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTag<'a> {
    /// The tag.
    pub tag: String,
    /// True if it is an index, false if it is a single image.
    pub is_index: bool,
    /// The images, in the order of the index.
    pub lines: Vec<PlannedTagEntry>,
    /// The hosts of the build.
    pub hosts: Vec<&'a TargetHost>,
}

/// An image under a tag.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTagEntry {
    /// Its platform, as a runtime sees it.
    pub platform: Platform,
    /// Its version of Windows, also if the platform does not have it.
    pub version: Option<WindowsVersion>,
}

impl PlannedTagEntry {
    pub(crate) fn from_planned(planned: &PlannedImage) -> Self {
        Self {
            platform: planned.base.image.config().platform(),
            version: planned.base.os_version,
        }
    }

    /// Returns true if it is an image; an artifact has no platform.
    pub(crate) fn is_an_image(&self) -> bool {
        !self.platform.os.is_empty()
    }
}

impl Publication<'_> {
    pub(crate) fn entries(&self) -> Vec<PlannedTagEntry> {
        let images = self.images.iter().map(|image| image.planned);
        images.map(PlannedTagEntry::from_planned).collect()
    }

    /// The planned tags: the index's with the kept entries, or each image's.
    pub(crate) fn planned_tags(&self, kept: &[PlannedTagEntry]) -> Vec<PlannedTag<'_>> {
        let Some(tag) = &self.index else {
            let images = self.images.iter();
            return images
                .map(|image| PlannedTag {
                    tag: image.tag.clone(),
                    is_index: false,
                    lines: vec![PlannedTagEntry::from_planned(image.planned)],
                    hosts: image.hosts().collect(),
                })
                .collect();
        };
        let mut lines = self.entries();
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

/// Sorts the entries of an index: other systems first, then Windows from the newest on, as Docker
/// takes the first image that is not newer than its host. Entries without a version come last,
/// because they match every host.
pub(crate) fn sort_entries<T>(lines: &mut [T], line: impl Fn(&T) -> &PlannedTagEntry) {
    lines.sort_by_key(|it| {
        let PlannedTagEntry { platform, version } = line(it);
        (platform.os == "windows", Reverse(*version))
    });
}
