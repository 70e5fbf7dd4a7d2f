//! Builds images without Windows and without Docker: the plan becomes layers and a changed
//! configuration on top of the base. Only the manifest and the configuration of the base are read.

mod describe;
mod error;
mod iis;
mod layer_reuse;
mod on_build;
mod streamed;
mod write;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::try_join_all;
use jiff::Timestamp;
use serde_json::Value;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_common::progress::Progress;
use wincimg_inspect::provenance::SourceFile;
use wincimg_oci::document::{
    BASE_NAME, CREATED, Descriptor, History, Image, ImageConfig, ManifestFormat, NewStep,
};
use wincimg_oci::store::{Location, Source};
use wincimg_recipe::{Instructions, Plan};

use self::describe::DescribedStep;
use self::error::{DirectError, needs_windows};
use self::layer_reuse::{LayerReuse, ReuseSources};
use self::streamed::LayerStreams;
use self::write::AddedLayers;
pub(super) use self::write::LayerBytes;
pub(crate) use self::write::{AddedLayer, AssembleOptions, blob_buffer};
use super::build::{BuildContext, EngineOptions};
use super::delivery::{BuiltImage, Delivery, DeliveryReport, DeliveryTarget};
use super::error::not_built;
use super::origin::annotations;
use super::plans::{HIVES, PlannedBase, PlannedImage};
use super::publication::Publication;

/// An image with finished documents and its new layers.
#[derive(Debug, Clone)]
pub(crate) struct AssembledImage {
    /// Manifest and configuration.
    pub(super) image: Image,
    /// Annotations of the manifest in OCI's format; none if it keeps its own.
    pub(super) annotations: Option<BTreeMap<String, String>>,
    /// The layers that the plan adds, if it changes a file or a registry value.
    pub(super) added: Vec<Arc<AddedLayer>>,
    /// Layers taken from another image, above those of the base.
    pub(super) carried: Option<ReusedLayers>,
}

/// Layers of an existing image, from which another is made.
#[derive(Debug, Clone)]
pub(super) struct ReusedLayers {
    pub(super) of: SourceFile,
    pub(super) source: Source,
    pub(super) layers: Vec<Descriptor>,
    /// True if the base's layers are among them.
    pub(super) has_base: bool,
}

/// Builds the images of a publication concurrently; identical layers are written once.
async fn build_images(
    publication: &Publication<'_>,
    options: &AssembleOptions,
    progress: &Arc<dyn Progress>,
) -> Result<Vec<AssembledImage>, BoxError> {
    let added = Arc::default();
    let images = publication.images.iter();
    let making = images.map(|image| make_one(image.planned, options, &added, progress));
    try_join_all(making).await
}

/// Compression and hashing would block the network, so they run on a thread of their own.
async fn make_one(
    image: &PlannedImage,
    options: &AssembleOptions,
    added: &Arc<AddedLayers>,
    progress: &Arc<dyn Progress>,
) -> Result<AssembledImage, BoxError> {
    let (plan, base) = (image.plan.clone(), image.ground().clone());
    let (options, added) = (options.clone(), Arc::clone(added));
    let progress = Arc::clone(progress);
    let name = name_of(&plan);
    let requires_hives = image.requires_hives();
    let work = move || {
        let progress = progress.as_ref();
        assemble(&plan, &base, requires_hives, &options, &added, progress)
    };
    let done = tokio::task::spawn_blocking(work).await;
    let stopped = || Problem::new("build/failed", "a thread stopped before the image was made");
    done.unwrap_or_else(|_| Err(stopped().into()))
        .map_err(|error| not_built(name, error))
}

/// Label of a plan's image in progress reports.
fn name_of(plan: &Plan) -> String {
    match plan.host_build {
        Some(version) => format!("{} for {version}", plan.name),
        None => plan.name.clone(),
    }
}

/// Rejects a plan that cannot be built on any base; writes nothing.
pub(crate) fn check_buildable(plan: &Plan) -> Result<(), BoxError> {
    check(plan)
        .map_err(DirectError::from)
        .and_then(|()| describe::check_describable(plan))
        .map_err(|error| not_built(name_of(plan), error))
}

/// Builds the image of a plan. This uses the processor and the disk: call it outside of
/// asynchronous code.
fn assemble(
    plan: &Plan,
    base: &PlannedBase,
    requires_hives: bool,
    options: &AssembleOptions,
    added: &AddedLayers,
    progress: &dyn Progress,
) -> Result<AssembledImage, DirectError> {
    let plan = &with_on_build(plan)?;
    let config = base.image.config();
    if config.os != "windows" {
        let (base, os) = (&plan.base.name, &config.os);
        let problem = format!("the base {base} is for {os:?}: expected a Windows image");
        return Err(Problem::new("base/no-windows", problem).into());
    }
    if let Some(package) = plan.packages().find(|it| it.product.is_none()) {
        let problem = format!("{package} is not installed in the plan");
        return Err(Problem::new("recipe/msi", problem).into());
    }
    let inside = base.inside.as_ref();
    iis::check_base(plan, inside)?;
    let (created, timestamp) = time_of(plan, &base.image, options)?;
    let mut image = base.image.with_distributable_layers()?;
    let described = describe::describe_steps(plan, &base.image, inside, timestamp, requires_hives)?;
    let layers = described.iter().filter_map(|step| step.layer.as_deref());
    for shared in iis::shared_bindings(layers, inside)? {
        progress.warn(&format!("{}: {shared}", name_of(plan)));
    }
    let mut steps = Vec::new();
    for step in described {
        let layer = match &step.layer {
            Some(layer) => Some(added.get_or_write(layer, &step.what, options, progress)?),
            None => None,
        };
        if let Some(layer) = &layer {
            image = layer.to_supported_format(image)?;
        }
        steps.push((step, layer));
    }
    let format = image.manifest().format();
    let new = steps
        .iter()
        .map(|(step, layer)| new_step(step, layer.as_deref(), format, &created));
    let image = image.append_steps(new, |config| configure(config, plan, &created))?;
    let layers = steps.into_iter().filter_map(|(_, layer)| layer).collect();
    Ok(AssembledImage {
        annotations: Some(annotations(image.config())),
        image,
        added: layers,
        carried: None,
    })
}

/// Changes the configuration of the base to that of the plan's image.
fn configure(config: &mut ImageConfig, plan: &Plan, created: &str) {
    if let Some(Instructions {
        author: Some(author),
        ..
    }) = &plan.instructions
    {
        let author = Value::String(author.clone());
        config.other.insert("author".to_owned(), author);
    }
    config.config = plan.container();
    let labels = &mut config.config.labels;
    let is_inherited = labels.get(CREATED) == plan.base.container.labels.get(CREATED);
    if is_inherited && !plan.labels.contains_key(CREATED) && plan.labels.contains_key(BASE_NAME) {
        labels.insert(CREATED.to_owned(), created.to_owned());
    }
    config.created = Some(created.to_owned());
}

/// A build step of an image, which may have a layer.
fn new_step(
    step: &DescribedStep,
    layer: Option<&AddedLayer>,
    format: ManifestFormat,
    created: &str,
) -> NewStep {
    let has_hives = step.layer.as_ref().is_some_and(|layer| layer.has_hives());
    let notes = [
        layer.and_then(AddedLayer::note),
        has_hives.then(|| HIVES.to_owned()),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    let history = History {
        created: Some(created.to_owned()),
        created_by: Some(step.created_by.clone()),
        comment: (!notes.is_empty()).then(|| notes.join(" ")),
        empty_layer: layer.is_none(),
        ..History::default()
    };
    NewStep {
        history,
        layer: layer.map(|layer| (layer.descriptor(format), layer.diff_id.clone())),
    }
}

/// Rejects a plan that requires Windows, and names the step that does.
pub(super) fn check(plan: &Plan) -> Result<(), Problem> {
    with_on_build(plan).map(drop)
}

/// The plan with the instructions of its base for builds on it, unless it requires Windows.
fn with_on_build(plan: &Plan) -> Result<Plan, Problem> {
    if let Some(step) = plan.steps.first() {
        return Err(needs_windows(format!(
            "the direct engine cannot run commands, which require Windows: step 1 of {} is `{}`",
            plan.steps.len(),
            step.command
        )));
    }
    on_build::apply_on_build(plan)
}

/// The timestamp for the configuration, and in seconds for the layer. A base may have none, or year
/// 1, as some builders write it: the layer then gets the earliest possible time.
fn time_of(plan: &Plan, base: &Image, options: &AssembleOptions) -> Result<(String, u64), Problem> {
    let own = || base.config().created.clone();
    let text = options.created.map(|time| time.to_string()).or_else(own);
    let text = text
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| Timestamp::UNIX_EPOCH.to_string());
    match text.parse::<Timestamp>() {
        Ok(time) => Ok((text, u64::try_from(time.as_second()).unwrap_or(0))),
        Err(_) => {
            let base = &plan.base.name;
            let problem = format!("the base {base} has the invalid creation time {text:?}");
            Err(Problem::new("base/document", problem)
                .hint("set SOURCE_DATE_EPOCH to the seconds since 1970 to use instead"))
        }
    }
}

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
