//! What will be published, decided before anything is made or sent: a tag for each image, and the
//! index over several.

use super::plans::PlannedImage;
use crate::diagnose::{Blame, Diagnose};
use crate::oci::document::{Descriptor, Document, DocumentError, Flavour, Index, Verbatim};

/// Under which names images are published.
#[derive(Debug, Clone)]
pub struct Naming {
    /// The image's name, without registry and tag.
    pub name: String,
    /// The tag that was asked for: of the one image, or of the index over several.
    pub tag: Option<String>,
}

/// What will be published, the same at every destination.
#[derive(Debug, Clone)]
pub struct Publication<'a> {
    /// The name of all of it, without registry and tag.
    pub name: String,
    /// The images, in the order of the hosts. Two hosts with the same base share a tag.
    pub images: Vec<TaggedImage<'a>>,
    /// The index over them, where there are several.
    pub index: Option<TaggedIndex>,
}

/// An image that is to be made, and the tag that it gets.
#[derive(Debug, Clone)]
pub struct TaggedImage<'a> {
    /// What is to be made.
    pub planned: &'a PlannedImage,
    /// Its tag.
    pub tag: String,
}

/// An index that is to be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaggedIndex {
    /// Its tag.
    pub tag: String,
    /// The images that it names, by their places among the publication's, in the order of the index.
    pub images: Vec<usize>,
}

/// Two hosts got the same base, but their images differ.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "hosts {first} and {second} share the base {base}, and so the tag {tag}, but their images differ"
)]
pub struct SameTag {
    /// One host.
    first: String,
    /// The other.
    second: String,
    /// What they share.
    base: String,
    /// The tag that can mean only one of them.
    tag: String,
}

impl Diagnose for SameTag {
    fn hint(&self) -> Option<String> {
        Some("build for one of the two hosts, or use --match exact".to_owned())
    }

    fn blame(&self) -> Blame {
        Blame::Request
    }
}

impl<'a> Publication<'a> {
    /// Gives images their tags. One image gets the tag that was asked for; several get it with their
    /// version behind it, and the index the tag itself.
    pub fn new(images: &'a [PlannedImage], naming: &Naming) -> Result<Self, SameTag> {
        let several = images.len() > 1;
        let tagged: Vec<_> = images
            .iter()
            .map(|planned| TaggedImage {
                tag: naming.tag_of(planned, several),
                planned,
            })
            .collect();
        check_tags(&tagged)?;
        let index = several.then(|| {
            let mut order: Vec<usize> = (0..images.len()).collect();
            order.sort_by_key(|&place| images[place].base.os_version);
            TaggedIndex {
                tag: naming.index_tag().to_owned(),
                images: order,
            }
        });
        Ok(Self {
            name: naming.name.clone(),
            images: tagged,
            index,
        })
    }

    /// The tag by which all of it is known: the index's, or the only image's.
    pub fn tag(&self) -> &str {
        match (&self.index, self.images.first()) {
            (Some(index), _) => &index.tag,
            (None, Some(image)) => &image.tag,
            (None, None) => "latest",
        }
    }
}

impl TaggedIndex {
    /// The index itself, once its images' entries are known; `entries` has one for each image of the
    /// publication.
    pub(super) fn document(&self, entries: &[Descriptor]) -> Result<Document, DocumentError> {
        let mut named: Vec<Descriptor> = Vec::with_capacity(self.images.len());
        for entry in self.images.iter().filter_map(|&place| entries.get(place)) {
            if !named.iter().any(|known| known.digest == entry.digest) {
                named.push(entry.clone());
            }
        }
        let flavour = named
            .first()
            .map_or(Flavour::Oci, |entry| Flavour::of(&entry.media_type));
        Ok(Document::Index(Verbatim::new(Index::new(flavour, named))?))
    }
}

impl Naming {
    fn index_tag(&self) -> &str {
        self.tag.as_deref().unwrap_or("latest")
    }

    /// An image without any tag is known by its version.
    fn tag_of(&self, image: &PlannedImage, several: bool) -> String {
        let version = image.base.os_version.os_version();
        match (&self.tag, several) {
            (Some(tag), false) => tag.clone(),
            (Some(tag), true) => format!("{tag}-{version}"),
            (None, _) => version,
        }
    }
}

/// One tag cannot mean two different images.
fn check_tags(images: &[TaggedImage<'_>]) -> Result<(), SameTag> {
    for (place, image) in images.iter().enumerate() {
        for earlier in &images[..place] {
            let (plan, other) = (&image.planned.plan, &earlier.planned.plan);
            let mut same = plan.clone();
            same.host_build = other.host_build;
            if same.base == other.base && same != *other {
                return Err(SameTag {
                    first: other.host_build.to_string(),
                    second: plan.host_build.to_string(),
                    base: same.base.name,
                    tag: image.tag.clone(),
                });
            }
        }
    }
    Ok(())
}
