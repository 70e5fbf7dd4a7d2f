//! Delivers updated images, and keeps the other entries of their tag.

use std::collections::BTreeMap;

use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_inspect::provenance::SourceFile;
use wincimg_oci::document::{BASE_DIGEST, BASE_NAME, CREATED, Descriptor, Digest, Index, Verbatim};
use wincimg_oci::reference::Reference;
use wincimg_oci::store::Location;
use wincimg_windows::compat::generation;
use wincimg_windows::version::WindowsVersion;

use super::hives::{self, CompletedLayers};
use super::rebase::{self, BaseLabel};
use super::{BaseDetection, PlannedUpdate, UpdatePlan, UpdateVerdict};
use crate::build::BuildContext;
use crate::delivery::{
    BuiltImage, Delivery, DeliveryReport, DeliveryTarget, Destination, ExistingTag, TagEntry,
    TagPolicy,
};
use crate::direct::{AssembledImage, ReusedLayers};
use crate::inputs::INPUTS;
use crate::plans::PlannedImage;
use crate::publication::{IndexMode, Publication, TaggedImage};

/// Builds the updated images, adding hives to layers that lack them, and delivers them to every
/// destination. An index stays an index; updated images replace their old versions, and its other
/// entries are kept, under another tag too.
pub async fn deliver(
    updates: &UpdatePlan,
    image: &Reference,
    target: DeliveryTarget<'_>,
    ctx: &BuildContext<'_>,
) -> Result<DeliveryReport, BoxError> {
    let target = DeliveryTarget {
        existing: existing(updates, image, &target, ctx),
        ..target
    };
    let images = updates.planned.iter().map(|update| PlannedImage {
        annotations: entry_annotations(update, updates.index.as_ref()),
        ..update.planned.clone()
    });
    let images: Vec<PlannedImage> = images.collect();
    let naming = target.naming.joinable(updates.index.is_some());
    let publication = Publication::new(&images, &naming)?;
    // Its own tag has them.
    let is_same_tag = target.naming.tag.as_deref() == image.tag();
    let mut destinations = target.destinations.iter();
    let file = destinations.find(|it| !matches!(it, Destination::Registry(_)));
    let others = if is_same_tag && file.is_none() {
        Vec::new()
    } else {
        others(updates, image, &publication, target.existing).await?
    };
    if let Some(file) = file {
        // Their layers are not read.
        let left_out = others.iter().filter(|entry| !entry.is_attestation());
        let left_out: Vec<String> = left_out.map(ToString::to_string).collect();
        if !left_out.is_empty() {
            let location = file.location(&publication.name, publication.tag())?;
            ctx.reporter.note(&format_args!(
                "{location} gets the updated images alone, without {}",
                left_out.join(", ")
            ));
        }
    }
    let delivery = Delivery {
        carried: if is_same_tag { Vec::new() } else { others },
        index_fields: updates.index.as_ref().map(|index| &index.other),
        ..Delivery::new(&target, ctx)
    };
    let completed = hives::complete(updates, ctx).await?;
    let mut made = Vec::with_capacity(publication.images.len());
    for tagged in &publication.images {
        let assembled = make(tagged, updates, image, &completed)?;
        made.push(BuiltImage::Assembled(Box::new(assembled)));
    }
    let delivered = delivery.deliver(&publication, async { Ok(made) });
    Box::pin(delivered).await
}

/// The annotations of an image's entry in the index: those of the entry that it replaces, as far as
/// they are true of it, and its own.
fn entry_annotations(
    update: &PlannedUpdate,
    index: Option<&Verbatim<Index>>,
) -> BTreeMap<String, String> {
    let mut entries = index.into_iter().flat_map(|index| &index.manifests);
    let replaced = entries.find(|entry| entry.digest == *update.from.digest());
    let mut annotations = replaced.map_or_else(BTreeMap::new, |entry| entry.annotations.clone());
    let base = &update.planned.base;
    if update.verdict != UpdateVerdict::UpToDate {
        for name in [CREATED, INPUTS] {
            annotations.remove(name);
        }
        let mut set = |name: &str, value: String| {
            if let Some(noted) = annotations.get_mut(name) {
                *noted = value;
            }
        };
        set(BASE_NAME, base.display_name());
        set(BASE_DIGEST, base.digest().to_string());
    }
    annotations.extend(update.planned.annotations.clone());
    annotations
}

/// The entries of the image's index that no updated image replaces, and all its attestations.
async fn others(
    updates: &UpdatePlan,
    image: &Reference,
    publication: &Publication<'_>,
    existing: TagPolicy,
) -> Result<Vec<TagEntry>, BoxError> {
    let has_others = publication.index.is_some() && existing != TagPolicy::Replace;
    let Some(index) = updates.index.as_ref().filter(|_| has_others) else {
        return Ok(Vec::new());
    };
    let standing = ExistingTag::from_index(&updates.source, index.clone()).await?;
    let location = Location::Registry(image.clone());
    let mut others = standing.kept_entries(&publication.entries(), TagPolicy::Join, &location)?;
    others.extend(standing.attestations().cloned());
    Ok(others)
}

/// Policy for the tag: an update replaces the image under its own tag, unless hosts still need it.
fn existing(
    updates: &UpdatePlan,
    image: &Reference,
    target: &DeliveryTarget<'_>,
    ctx: &BuildContext<'_>,
) -> TagPolicy {
    let naming = &target.naming;
    let is_same_tag = naming.tag.as_deref() == image.tag();
    if target.existing != TagPolicy::Protect || !is_same_tag || naming.index == IndexMode::Never {
        return target.existing;
    }
    let planned = updates.planned.iter();
    let new: Vec<_> = planned
        .filter_map(|it| it.planned.base.os_version)
        .collect();
    // Hosts that have the newer one's updates cannot start the older one.
    let goes_back = |old: &WindowsVersion| {
        let mut new = new.iter().filter(|new| new.build == old.build);
        new.any(|new| new < old && generation(*new) != generation(*old))
    };
    if updates.versions.iter().any(goes_back) {
        return TagPolicy::Protect;
    }
    if updates.index.is_some() {
        return TagPolicy::Join;
    }
    let is_covered = |old: &WindowsVersion| new.iter().any(|new| new.build == old.build);
    if !updates.versions.iter().all(is_covered) {
        return TagPolicy::Protect;
    }
    let is_served = |old: &WindowsVersion| {
        let mut new = new.iter().filter(|new| new.build == old.build);
        new.any(|new| generation(*new) == generation(*old))
    };
    for old in &updates.versions {
        if !is_served(old) {
            ctx.reporter.note(&format_args!(
                "{image} will no longer have {old}: hosts of that version cannot start its \
                 replacement"
            ));
        }
    }
    TagPolicy::Replace
}

/// Builds an image of a publication: only documents, as its layers exist.
fn make(
    image: &TaggedImage<'_>,
    updates: &UpdatePlan,
    name: &Reference,
    completed: &CompletedLayers,
) -> Result<AssembledImage, Problem> {
    let mut all = updates.planned.iter();
    let Some(update) = all.find(|it| it.planned.plan == image.planned.plan) else {
        unreachable!("a publication is of the images that were planned for it");
    };
    let of = SourceFile {
        kind: "image",
        name: name.to_string(),
        digest: update.from.digest().clone(),
    };
    if update.verdict == UpdateVerdict::UpToDate {
        return Ok(AssembledImage {
            image: update.from.clone(),
            annotations: None,
            added: Vec::new(),
            carried: Some(ReusedLayers {
                of,
                source: updates.source.clone(),
                layers: update.from.manifest().layers.clone(),
                has_base: true,
            }),
        });
    }
    let called = BaseLabel {
        name: &update.planned.base.display_name(),
        // A base that could not be detected is named from now on.
        note: update.on.found_by == BaseDetection::Asked,
    };
    let bases = (&update.old, &update.planned.base.image);
    let own = own_layers(update, completed);
    let rebased = rebase::rebase(&update.from, bases, own, &called);
    let layers = update.own.iter();
    let (added, kept): (Vec<_>, Vec<_>) = layers.partition(|layer| !layer.added_hives.is_empty());
    Ok(AssembledImage {
        image: rebased.map_err(|error| Problem::from_error("image/document", error))?,
        annotations: None,
        added: added
            .into_iter()
            .filter_map(|layer| completed.get(&layer.descriptor.digest).cloned())
            .collect(),
        carried: Some(ReusedLayers {
            of,
            source: updates.source.clone(),
            layers: kept
                .into_iter()
                .map(|layer| layer.descriptor.clone())
                .collect(),
            has_base: false,
        }),
    })
}

/// The layers above the base in the new image.
fn own_layers(update: &PlannedUpdate, completed: &CompletedLayers) -> Vec<(Descriptor, Digest)> {
    let image = &update.from;
    let below = update.old.config().rootfs.diff_ids.len();
    let diff_ids = image.config().rootfs.diff_ids.iter().skip(below);
    let layers = update.own.iter().zip(diff_ids);
    let layers = layers.map(|(layer, diff_id)| {
        let kept = || (layer.descriptor.clone(), diff_id.clone());
        // Another image with the same layer may require hives in it.
        let is_kept = layer.added_hives.is_empty();
        let made = completed.get(&layer.descriptor.digest).filter(|_| !is_kept);
        made.map_or_else(kept, |made| {
            let format = image.manifest().format();
            (made.descriptor(format), made.diff_id.clone())
        })
    });
    layers.collect()
}
