//! Bringing updated images to where they belong, with what others have under their tag.

use std::sync::Arc;

use super::error::UpdateError;
use super::{Updates, make};
use crate::engine::delivery::{Delivered, Delivery, Destination, Existing, Made, Review};
use crate::engine::order::Means;
use crate::engine::plans::PlannedImage;
use crate::engine::publication::{IndexWhen, Naming, Publication};
use crate::oci::document::Flavour;
use crate::oci::reference::Reference;
use crate::windows::compat::generation;
use crate::windows::version::WindowsVersion;

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
    let images = updates.updates.iter().map(|it| it.planned.clone());
    let images: Vec<PlannedImage> = images.collect();
    let publication = Publication::new(&images, &naming)?;
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
    let planned = updates.updates.iter();
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
