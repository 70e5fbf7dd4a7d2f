//! Bringing updated images to where they belong, with what others have under their tag.

use std::sync::Arc;

use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_oci::reference::Reference;
use wincimg_windows::compat::generation;
use wincimg_windows::version::WindowsVersion;

use super::carry::{self, Called};
use super::{PlannedUpdate, Updates, Verdict};
use crate::build::Means;
use crate::delivery::{Delivered, Delivery, Existing, Made, Target};
use crate::direct::{Assembled, Carried};
use crate::plans::PlannedImage;
use crate::publication::{IndexWhen, Publication, TaggedImage};

/// Makes the images and brings them to every destination. An index stays one; what is updated makes
/// room for what it comes to, and what its index has for others stays.
pub async fn deliver(
    updates: &Updates,
    image: &Reference,
    mut target: Target<'_>,
    means: &Means<'_>,
) -> Result<Delivered, BoxError> {
    target.existing = existing(updates, image, &target, means);
    if updates.is_index && target.naming.index == IndexWhen::Several {
        target.naming.index = IndexWhen::Always;
    }
    let images = updates.planned.iter().map(|it| it.planned.clone());
    let images: Vec<PlannedImage> = images.collect();
    let publication = Publication::new(&images, &target.naming)?;
    let delivery = Delivery {
        registry: means.registry,
        progress: Arc::clone(means.progress),
        target: &target,
    };
    let made = make(&publication, updates)?.into_iter().map(Box::new);
    let made = made.map(Made::Assembled).collect();
    let delivered = delivery.deliver(&publication, async { Ok(made) });
    Box::pin(delivered).await
}

/// What becomes of the tag: under its own one an image is replaced by what was made of it.
fn existing(
    updates: &Updates,
    image: &Reference,
    target: &Target<'_>,
    means: &Means<'_>,
) -> Existing {
    let naming = &target.naming;
    let is_same_tag = naming.tag.as_deref() == image.tag();
    if target.existing != Existing::Protect || !is_same_tag || naming.index == IndexWhen::Never {
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
                "{image} will no longer have {old}, which hosts of that version need: they will not \
                 start what takes its place"
            ));
        }
    }
    Existing::Replace
}

/// Makes the images of a publication, in their order: documents alone, as their layers are there.
fn make(publication: &Publication<'_>, updates: &Updates) -> Result<Vec<Assembled>, Problem> {
    let images = publication.images.iter();
    images.map(|image| make_one(image, updates)).collect()
}

fn make_one(image: &TaggedImage<'_>, updates: &Updates) -> Result<Assembled, Problem> {
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
    let carried = carry::carried(&update.from, &update.old, new, &called);
    Ok(Assembled {
        image: carried.map_err(|error| Problem::from_error("image/document", error))?,
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
