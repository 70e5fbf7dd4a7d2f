//! Publications, fixed before anything is built or sent: a tag for each image, and the index over
//! several.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use wincimg_common::diagnose::Problem;
use wincimg_inspect::bases::HOST_PROCESS;
use wincimg_oci::document::Platform;
use wincimg_recipe::Plan;
use wincimg_windows::compat::Architecture;
use wincimg_windows::release;
use wincimg_windows::version::WindowsVersion;

use super::plans::{PlannedImage, TargetHost};

/// Options for the names of images.
#[derive(Debug, Clone)]
pub struct NamingOptions {
    /// The image's name, without registry and tag.
    pub name: String,
    /// The requested tag: of the single image, or of the index over several.
    pub tag: Option<String>,
    /// Mode of the index.
    pub index: IndexMode,
    /// Style of versions in tags.
    pub style: TagStyle,
}

/// Style of an image's version of Windows in its tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TagStyle {
    /// `10.0.20348.2402`.
    #[default]
    Version,
    /// `ltsc2022`, as in the tags of base images.
    Release,
}

impl TagStyle {
    fn text(self, version: WindowsVersion) -> String {
        let release = release::from_build(version.build).and_then(|release| release.base_tag);
        match (self, release) {
            (Self::Release, Some(tag)) => tag.to_owned(),
            _ => version.os_version(),
        }
    }
}

/// Mode of the index over images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexMode {
    /// If there are several.
    Several,
    /// Also over a single one, for others to join.
    Always,
    /// Never: each image only has its version tag.
    Never,
}

/// Images and tags to be published, the same at every destination.
#[derive(Debug, Clone)]
pub(crate) struct Publication<'a> {
    /// Name of the images, without registry and tag.
    pub(crate) name: String,
    /// The images, in the order of the hosts.
    pub(crate) images: Vec<TaggedImage<'a>>,
    pub(crate) index: Option<String>,
}

/// An image to be built, and its tag.
#[derive(Debug, Clone)]
pub struct TaggedImage<'a> {
    /// The planned image.
    pub planned: &'a PlannedImage,
    /// The plans of all its hosts, which differ only in the host.
    pub(crate) for_hosts: Vec<&'a PlannedImage>,
    /// Its tag.
    pub tag: String,
}

impl<'a> Publication<'a> {
    /// Assigns the tags. A single image gets the requested tag; several get it with their version
    /// appended, and the index the tag itself.
    pub(crate) fn new(plans: &'a [PlannedImage], naming: &NamingOptions) -> Result<Self, Problem> {
        let mut images: Vec<TaggedImage<'a>> = Vec::new();
        for planned in plans {
            let same_base =
                |image: &&mut TaggedImage<'_>| image.planned.plan.base == planned.plan.base;
            match images.iter_mut().find(same_base) {
                Some(image) => {
                    check_same(image, planned, naming)?;
                    image.for_hosts.push(planned);
                }
                None => images.push(TaggedImage {
                    tag: String::new(),
                    for_hosts: vec![planned],
                    planned,
                }),
            }
        }
        let has_index = match naming.index {
            IndexMode::Several => images.len() > 1,
            IndexMode::Always => true,
            IndexMode::Never => false,
        };
        for image in &mut images {
            image.tag = naming.tag_of(image.planned, has_index);
        }
        check_tags(&images)?;
        Ok(Self {
            name: naming.name.clone(),
            images,
            index: has_index.then(|| naming.index_tag().to_owned()),
        })
    }

    /// The plans of the images.
    pub(crate) fn plans(&self) -> impl Iterator<Item = &Plan> {
        self.images.iter().map(|image| &image.planned.plan)
    }

    /// The main tag: the index's, or the single image's.
    pub(crate) fn tag(&self) -> &str {
        match (&self.index, self.images.first()) {
            (Some(index), _) => index,
            (None, Some(image)) => &image.tag,
            (None, None) => "latest",
        }
    }
}

impl<'a> TaggedImage<'a> {
    /// Its hosts; none if it serves any.
    pub fn hosts(&self) -> impl Iterator<Item = &'a TargetHost> + use<'a, '_> {
        let planned = self.for_hosts.iter();
        planned.filter_map(|planned| planned.host.as_ref())
    }
}

impl NamingOptions {
    /// The name and tag of a single image.
    pub(crate) fn tagged(name: &str, tag: &str) -> Self {
        Self {
            name: name.to_owned(),
            tag: Some(tag.to_owned()),
            index: IndexMode::Several,
            style: TagStyle::default(),
        }
    }

    /// The same with an index over a single image too, if others can join it.
    pub(crate) fn joinable(&self, can_be_joined: bool) -> Self {
        let index = match self.index {
            IndexMode::Several if can_be_joined => IndexMode::Always,
            mode => mode,
        };
        Self {
            index,
            ..self.clone()
        }
    }

    /// The tags to be written if each of these hosts gets a base of its exact version.
    pub(crate) fn likely_tags(&self, hosts: &[TargetHost]) -> BTreeSet<String> {
        let known = hosts.iter().map(|host| host.build);
        let known = known.filter(|host| host.version.revision.is_some());
        let known = known.map(|host| (host.version, host.architecture));
        let versions: BTreeSet<(WindowsVersion, Architecture)> = known.collect();
        let has_index = match self.index {
            IndexMode::Several => versions.len() > 1,
            IndexMode::Always => !versions.is_empty(),
            IndexMode::Never => false,
        };
        let index = has_index.then(|| self.index_tag().to_owned());
        let images = versions.into_iter();
        let images = images
            .map(|(version, architecture)| self.tag_for(Some(version), architecture, has_index));
        images.chain(index).collect()
    }

    pub(crate) fn index_tag(&self) -> &str {
        self.tag.as_deref().unwrap_or("latest")
    }

    /// The tag of an image: its version if no tag is requested, appended to the tag if there is an
    /// index. An image without a version is the same for every host.
    fn tag_of(&self, image: &PlannedImage, has_index: bool) -> String {
        let host = image.host.as_ref();
        let architecture = host.map_or_else(Architecture::default, |host| host.build.architecture);
        self.tag_for(image.base.os_version, architecture, has_index)
    }

    /// The suffix names another architecture than the usual one, as base images' tags do.
    fn tag_for(
        &self,
        version: Option<WindowsVersion>,
        architecture: Architecture,
        has_index: bool,
    ) -> String {
        let has_suffix = has_index || (self.index == IndexMode::Never && version.is_some());
        let suffix = version.map_or_else(
            || HOST_PROCESS.to_owned(),
            |version| match architecture {
                Architecture::Amd64 => self.style.text(version),
                Architecture::Arm64 => {
                    format!("{}-{}", self.style.text(version), architecture.name())
                }
            },
        );
        match (&self.tag, has_suffix) {
            (Some(tag), true) => format!("{tag}-{suffix}"),
            (Some(tag), false) => tag.clone(),
            (None, false) if version.is_none() => self.index_tag().to_owned(),
            (None, _) => suffix,
        }
    }
}

/// Rejects two different images for one tag, which a recipe that names the host makes of one base.
fn check_same(
    image: &TaggedImage<'_>,
    planned: &PlannedImage,
    naming: &NamingOptions,
) -> Result<(), Problem> {
    let (known, plan) = (&image.planned.plan, &planned.plan);
    if known.is_same_except_host(plan) {
        return Ok(());
    }
    let problem = format!(
        "hosts {} and {} share the base {}, and so the tag {}, but their images differ",
        known.host(),
        plan.host(),
        plan.base.name,
        naming.tag_of(planned, true)
    );
    Err(Problem::request("tag/same", problem)
        .hint("build for one of the two hosts, or add --match exact --no-index"))
}

/// Rejects two images with one tag, which versions would distinguish.
fn check_tags(images: &[TaggedImage<'_>]) -> Result<(), Problem> {
    let mut known = BTreeSet::new();
    let Some(image) = images.iter().find(|image| !known.insert(&image.tag)) else {
        return Ok(());
    };
    let problem = format!("several images have the tag {}", image.tag);
    Err(Problem::request("tag/same", problem)
        .hint("distinguish them by their versions: --tag-style version"))
}

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
