//! Delivery by the direct engine: images are built while their destinations are checked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wincimg_common::diagnose::BoxError;
use wincimg_oci::store::Location;

use super::layer_reuse::{LayerReuse, ReuseSources};
use super::streamed::LayerStreams;
use super::{AssembleOptions, AssembledImage, build_images};
use crate::build::{BuildContext, EngineOptions};
use crate::delivery::{BuiltImage, Delivery, DeliveryReport, DeliveryTarget};
use crate::publication::Publication;

/// Builds the images of a publication and delivers them to their target.
pub(crate) async fn deliver_directly(
    publication: &Publication<'_>,
    options: &EngineOptions,
    target: &DeliveryTarget<'_>,
    ctx: &BuildContext<'_>,
) -> Result<DeliveryReport, BoxError> {
    let held = match &options.reuse {
        Some(images) => held(publication, images, target, ctx)?,
        None => LayerReuse::default(),
    };
    let streams = streams(publication, target, ctx)?.map(Arc::new);
    // Dropped with this future, so that its threads stop and do not delay the exit.
    let cancelled = CancelOnDrop::default();
    let assemble = AssembleOptions {
        compression: options.compression,
        created: options.created,
        cancelled: Arc::clone(&cancelled.0),
        held: Arc::new(held),
        streams: streams.clone(),
    };
    let making = async {
        let made = build_images(publication, &assemble, &ctx.progress).await?;
        let made = made.into_iter().map(|mut image| {
            let annotations = options.annotations.iter().cloned();
            image
                .annotations
                .get_or_insert_default()
                .extend(annotations);
            BuiltImage::Assembled(Box::new(image))
        });
        Ok(made.collect())
    };
    let delivery = Delivery::new(target, ctx);
    let delivered = Box::pin(delivery.deliver(publication, making)).await;
    drop(cancelled);
    if let Some(streams) = streams {
        streams.end().await;
    }
    delivered
}

/// Builds the images of a publication without a destination: all of their layers stay here.
pub(crate) async fn assemble_directly(
    publication: &Publication<'_>,
    options: &EngineOptions,
    ctx: &BuildContext<'_>,
) -> Result<Vec<AssembledImage>, BoxError> {
    let cancelled = CancelOnDrop::default();
    let assemble = AssembleOptions {
        compression: options.compression,
        created: options.created,
        cancelled: Arc::clone(&cancelled.0),
        ..AssembleOptions::default()
    };
    build_images(publication, &assemble, &ctx.progress).await
}

/// Streams of the layers of a publication: to its first registry.
fn streams(
    publication: &Publication<'_>,
    target: &DeliveryTarget<'_>,
    ctx: &BuildContext<'_>,
) -> Result<Option<LayerStreams>, BoxError> {
    for destination in &target.destinations {
        let place = destination.location(&publication.name, publication.tag())?;
        if let Location::Registry(reference) = place {
            let repository = ctx.registry.repository(&reference);
            return Ok(Some(LayerStreams::to(repository.for_push())));
        }
    }
    Ok(None)
}

/// Sources of reusable layers for a publication.
fn held(
    publication: &Publication<'_>,
    images: &[Location],
    target: &DeliveryTarget<'_>,
    ctx: &BuildContext<'_>,
) -> Result<LayerReuse, BoxError> {
    let mut tags = Vec::new();
    for destination in &target.destinations {
        for image in &publication.images {
            tags.push(destination.location(&publication.name, &image.tag)?);
        }
    }
    // An archive is always written as a whole.
    tags.retain(|place| !matches!(place, Location::Archive { .. }));
    let asked = ReuseSources {
        tags,
        named: images.to_vec(),
        registry: ctx.registry.clone(),
        progress: Arc::clone(&ctx.progress),
    };
    Ok(LayerReuse {
        asked: Some(Arc::new(asked.report_missing())),
        remembered: ctx.remembered.clone(),
        ..LayerReuse::default()
    })
}

/// Stops the threads of a build when the build is cancelled.
#[derive(Default)]
pub(crate) struct CancelOnDrop(pub(crate) Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
