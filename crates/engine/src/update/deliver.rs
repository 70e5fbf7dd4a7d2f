//! Bringing updated images to where they belong, with what others have under their tag.

use std::sync::Arc;

use wincimg_oci::document::Flavour;
use wincimg_oci::reference::Reference;
use wincimg_windows::compat::generation;
use wincimg_windows::version::WindowsVersion;

use super::carry::{self, Called};
use super::error::UpdateError;
use super::{PlannedUpdate, Updates, Verdict};
use crate::delivery::{Delivered, Delivery, Destination, Documents, Existing, Made, Review};
use crate::direct::{Assembled, Carried};
use crate::order::Means;
use crate::plans::PlannedImage;
use crate::publication::{IndexWhen, Naming, Publication, TaggedImage};

/// Where updated images go.
pub struct Target<'a> {
    /// The image that was updated.
    pub image: &'a Reference,
    /// The tag of the new one.
    pub tag: &'a str,
    /// What becomes of what tags mean already. What is updated makes room for what it comes to, and
    /// what its index has for others stays.
    pub existing: Existing,
    /// When there is an index; one stays one.
    pub index: IndexWhen,
    /// The places; the first one is the one that is reported.
    pub destinations: &'a [Destination],
    /// The words in which manifests are written; none for the image's own.
    pub flavour: Option<Flavour>,
    /// What goes along with the new images.
    pub documents: Documents,
}

/// Makes the images and brings them to every destination.
pub async fn deliver(
    updates: &Updates,
    target: &Target<'_>,
    means: &Means<'_>,
    review: &Review<'_>,
) -> Result<Delivered, UpdateError> {
    let naming = Naming {
        name: target.image.repository().to_owned(),
        tag: Some(target.tag.to_owned()),
        index: match target.index {
            IndexWhen::Several if updates.is_index => IndexWhen::Always,
            index => index,
        },
    };
    let images = updates.planned.iter().map(|it| it.planned.clone());
    let images: Vec<PlannedImage> = images.collect();
    let mut publication = Publication::new(&images, &naming)?;
    publication.documents.clone_from(&target.documents);
    let delivery = Delivery {
        registry: means.registry,
        progress: Arc::clone(means.progress),
        destinations: target.destinations,
        flavour: target.flavour,
        existing: existing(updates, target, means),
        review,
    };
    let made = make(&publication, updates)?.into_iter().map(Box::new);
    let made = made.map(Made::Assembled).collect();
    let delivered = delivery.deliver(&publication, async { Ok(made) });
    Ok(Box::pin(delivered).await?)
}

/// What becomes of the tag: under its own one an image is replaced by what was made of it.
fn existing(updates: &Updates, target: &Target<'_>, means: &Means<'_>) -> Existing {
    let is_same_tag = Some(target.tag) == target.image.tag();
    if target.existing != Existing::Protect || !is_same_tag || target.index == IndexWhen::Never {
        return target.existing;
    }
    if updates.is_index {
        return Existing::Join;
    }
    let planned = updates.planned.iter();
    let new: Vec<_> = planned
        .filter_map(|it| it.planned.base.os_version)
        .collect();
    let is_covered = |old: &WindowsVersion| new.iter().any(|new| new.build == old.build);
    if !updates.versions.iter().all(is_covered) {
        return Existing::Protect;
    }
    for old in &updates.versions {
        if !new.iter().any(|new| generation(*new) == generation(*old)) {
            means.tell.note(&format_args!(
                "{} will no longer have {old}, which hosts of that version need: they will not start \
                 what takes its place",
                target.image
            ));
        }
    }
    Existing::Replace
}

/// Makes the images of a publication, in their order: documents alone, as their layers are there.
fn make(publication: &Publication<'_>, updates: &Updates) -> Result<Vec<Assembled>, UpdateError> {
    let images = publication.images.iter();
    images.map(|image| make_one(image, updates)).collect()
}

fn make_one(image: &TaggedImage<'_>, updates: &Updates) -> Result<Assembled, UpdateError> {
    let mut all = updates.planned.iter();
    let is_it = |update: &&PlannedUpdate| std::ptr::eq(&raw const update.planned, image.planned);
    let same_base = |update: &&PlannedUpdate| update.planned.plan == image.planned.plan;
    let update = all.clone().find(is_it).or_else(|| all.find(same_base));
    let Some(update) = update else {
        unreachable!("a publication is of the images that were planned for it");
    };
    if update.verdict == Verdict::UpToDate {
        return Ok(Assembled {
            image: update.from.clone(),
            added: Vec::new(),
            carried: Some(Carried {
                source: updates.source.clone(),
                layers: update.from.manifest().layers.clone(),
                has_base: true,
            }),
        });
    }
    let called = Called {
        name: &update.planned.base.for_people(),
        note: update.notes_base,
    };
    let new = &update.planned.base.image;
    Ok(Assembled {
        image: carry::carried(&update.from, &update.old, new, &called)?,
        added: Vec::new(),
        carried: Some(Carried {
            source: updates.source.clone(),
            layers: update
                .own
                .iter()
                .map(|layer| layer.descriptor.clone())
                .collect(),
            has_base: false,
        }),
    })
}
