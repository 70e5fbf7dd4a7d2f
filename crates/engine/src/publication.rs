//! What will be published, decided before anything is made or sent: a tag for each image, and the
//! index over several.

mod planned_tag;

use std::collections::{BTreeMap, BTreeSet};

pub use planned_tag::{PlannedTag, PlannedTagEntry, sort_entries};
use wincimg_common::diagnose::{Blame, Problem};
use wincimg_inspect::bases::HOST_PROCESS;
use wincimg_windows::compat::generation;

use super::plans::{PlannedImage, TargetHost};

/// Under which names images are published.
#[derive(Debug, Clone)]
pub struct NamingOptions {
    /// The image's name, without registry and tag.
    pub name: String,
    /// The tag that was asked for: of the one image, or of the index over several.
    pub tag: Option<String>,
    /// True if there is an index.
    pub index: IndexMode,
}

/// When images get an index over them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexMode {
    /// Where there are several.
    Several,
    /// Also over one, as others are to join it.
    Always,
    /// Each image has its version's tag and nothing else.
    Never,
}

/// What will be published, the same at every destination.
#[derive(Debug, Clone)]
pub struct Publication<'a> {
    /// The name of all of it, without registry and tag.
    pub name: String,
    /// The images, in the order of the hosts.
    pub images: Vec<TaggedImage<'a>>,
    /// The tag of the index over them, where there is one.
    pub index: Option<String>,
}

/// An image that is to be made, and the tag that it gets.
#[derive(Debug, Clone)]
pub struct TaggedImage<'a> {
    /// What is to be made.
    pub planned: &'a PlannedImage,
    /// The plans of all its hosts, which differ in the host alone.
    pub(crate) for_hosts: Vec<&'a PlannedImage>,
    /// Its tag.
    pub tag: String,
    /// What its entry in an index says besides.
    pub annotations: BTreeMap<String, String>,
}

impl<'a> Publication<'a> {
    /// Gives images their tags. One image gets the tag that was asked for; several get it with their
    /// version behind it, and the index the tag itself.
    pub fn new(plans: &'a [PlannedImage], naming: &NamingOptions) -> Result<Self, Problem> {
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
                    annotations: BTreeMap::new(),
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
        if has_index {
            check_builds(&images)?;
        }
        Ok(Self {
            name: naming.name.clone(),
            images,
            index: has_index.then(|| naming.index_tag().to_owned()),
        })
    }

    /// The tag by which all of it is known: the index's, or the only image's.
    pub fn tag(&self) -> &str {
        match (&self.index, self.images.first()) {
            (Some(index), _) => index,
            (None, Some(image)) => &image.tag,
            (None, None) => "latest",
        }
    }
}

impl<'a> TaggedImage<'a> {
    /// The hosts that it is for; none where it is for any.
    pub fn hosts(&self) -> impl Iterator<Item = &'a TargetHost> + use<'a, '_> {
        let planned = self.for_hosts.iter();
        planned.filter_map(|planned| planned.host.as_ref())
    }
}

impl NamingOptions {
    /// The tags that are written to if each of these hosts gets a base of just its version.
    pub fn likely_tags(&self, hosts: &[TargetHost]) -> BTreeSet<String> {
        let known = hosts.iter().map(|host| host.build.version);
        let known = known.filter(|version| version.revision.is_some());
        let versions: BTreeSet<String> = known.map(|version| version.os_version()).collect();
        let has_index = match self.index {
            IndexMode::Several => versions.len() > 1,
            IndexMode::Always => !versions.is_empty(),
            IndexMode::Never => false,
        };
        let index = has_index.then(|| self.index_tag().to_owned());
        let images = versions.into_iter();
        let images = images.map(|version| self.tag_for(Some(&version), has_index));
        images.chain(index).collect()
    }

    fn index_tag(&self) -> &str {
        self.tag.as_deref().unwrap_or("latest")
    }

    /// An image without any tag is known by its version, and one beside an index by that too. What has
    /// no version is the same image for every host.
    fn tag_of(&self, image: &PlannedImage, has_index: bool) -> String {
        self.tag_for(image.base.version_text().as_deref(), has_index)
    }

    fn tag_for(&self, version: Option<&str>, has_index: bool) -> String {
        let has_suffix = has_index || (self.index == IndexMode::Never && version.is_some());
        let suffix = version.unwrap_or(HOST_PROCESS);
        match (&self.tag, has_suffix) {
            (Some(tag), true) => format!("{tag}-{suffix}"),
            (Some(tag), false) => tag.clone(),
            (None, false) if version.is_none() => self.index_tag().to_owned(),
            (None, _) => suffix.to_owned(),
        }
    }
}

/// One tag cannot mean two different images, which a recipe that names the host makes of one base.
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
    Err(Problem::new("tag/same", problem)
        .blame(Blame::Request)
        .hint("build for one of the two hosts, or add --match exact --no-index"))
}

/// A runtime gives every host of a build the same entry of an index, so a second image of a build
/// would reach hosts that it is not for.
fn check_builds(images: &[TaggedImage<'_>]) -> Result<(), Problem> {
    // By the hosts' builds: several of them may use images of one older build.
    let mut needs: BTreeMap<u32, Vec<(String, Vec<TargetHost>)>> = BTreeMap::new();
    for image in images {
        let mut of_image: BTreeMap<u32, Vec<TargetHost>> = BTreeMap::new();
        for host in image.hosts() {
            let of_build = of_image.entry(host.build.version.build).or_default();
            of_build.push(host.clone());
        }
        for (build, hosts) in of_image {
            let of_build = needs.entry(build).or_default();
            of_build.push((image.tag.clone(), hosts));
        }
    }
    needs.retain(|_, images| images.len() > 1);
    if needs.is_empty() {
        return Ok(());
    }
    let could_share = needs.values().all(|images| {
        let hosts = images.iter().flat_map(|(_, hosts)| hosts);
        let mut kinds = hosts.map(|host| generation(host.build.version));
        let first = kinds.next().flatten();
        first.is_some() && kinds.all(|kind| kind == first)
    });
    let builds: Vec<String> = needs.keys().map(ToString::to_string).collect();
    let needs = needs.into_values().flatten().map(|(tag, hosts)| {
        let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
        format!("{tag} is for {}", hosts.join(", "))
    });
    let problem = format!(
        "one index cannot serve all hosts of build {}: {}",
        builds.join(" and "),
        needs.collect::<Vec<_>>().join("; ")
    );
    let share = if could_share {
        ", or let one image serve them with --match nearest"
    } else {
        ""
    };
    Err(Problem::new("tag/several", problem)
        .blame(Blame::Answer)
        .hint(format!(
            "a runtime gives every host of a build the same entry: publish these tags alone with \
             --no-index{share}"
        )))
}
