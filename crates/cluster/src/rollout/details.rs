//! What is fetched only for images that nodes would select: the manifests and configurations behind
//! the entries of an index, and the shutdown timeouts that a warning needs.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use tokio::sync::Semaphore;
use wincimg_common::progress::Progress;
use wincimg_inspect::bases::parse_location;
use wincimg_inspect::{contains_windows, shutdown_times};
use wincimg_oci::document::Document;
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::{Location, Source, StoreError};
use wincimg_windows::compat::Isolation;
use wincimg_windows::shutdown::DEFAULT_SECONDS;

use super::Rollout;
use super::fetch::{PARALLEL, unread};
use super::image::{EntryContent, Image, ImageContent, TOO_SMALL, Variant};
use super::verdict::fetched;

/// Images whose layers are read at once; they may be large.
const PARALLEL_LAYERS: usize = 4;

/// Details to fetch: the image, its variant, and whether its layers are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details(BTreeMap<(usize, usize), bool>);

impl Details {
    /// The details that the findings of a roll-out need and that are not known yet.
    pub fn missing(rollout: &Rollout) -> Self {
        let mut details = Self::default();
        for placement in &rollout.placements {
            let workload = placement.workload.map(|index| &rollout.workloads[index]);
            let is_patient = workload
                .and_then(|workload| workload.template.grace_seconds)
                .is_some_and(|seconds| seconds > u64::from(DEFAULT_SECONDS));
            for placed in &placement.images {
                let image = &rollout.images[placed.image];
                let groups = placement.selection.groups.iter().zip(&placed.findings);
                for (group, finding) in groups {
                    for place in fetched(&rollout.kinds[group.kind], image) {
                        let variant = &image.variants()[place];
                        let stop = is_patient
                            && variant.stop_seconds.is_none()
                            && finding.variant == Some(place)
                            && finding.isolation != Isolation::HostProcess;
                        let is_unread = matches!(image.content, ImageContent::Index(_))
                            && variant.content == EntryContent::Unread;
                        // What it contains matters unless a pod requests a host process.
                        let is_small = variant.host_process
                            && (workload.is_none() || finding.isolation != Isolation::HostProcess);
                        if (stop || is_unread || is_small) && variant.manifest.is_some() {
                            *details.0.entry((placed.image, place)).or_default() |= stop;
                        }
                    }
                }
            }
        }
        for (place, stop) in beside_misstated(&rollout.images) {
            details.0.entry(place).or_insert(stop);
        }
        details
    }

    /// Leaves out what is in a registry.
    #[must_use]
    pub fn of_this_machine(mut self, images: &[Image]) -> Self {
        let is_here = |image: &Image| {
            let location = image.location();
            location.is_some_and(|location| !matches!(location, Location::Registry(_)))
        };
        self.0.retain(|(image, _), _| is_here(&images[*image]));
        self
    }

    /// Returns true if no details are missing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Fetches the details into the images.
    pub async fn fetch(
        &self,
        images: &mut [Image],
        registry: &RegistryClient,
        progress: &Arc<dyn Progress>,
    ) {
        self.fetch_once(images, registry, progress).await;
        let mut rest = beside_misstated(images);
        rest.retain(|(image, _), _| self.0.keys().any(|(own, _)| own == image));
        Self(rest).fetch_once(images, registry, progress).await;
    }

    async fn fetch_once(
        &self,
        images: &mut [Image],
        registry: &RegistryClient,
        progress: &Arc<dyn Progress>,
    ) {
        let questions = self.0.iter().filter_map(|(&(image, place), &stop)| {
            let reference = images[image].reference.clone()?;
            let variant = images[image].variants().get(place)?.clone();
            Some(((image, place), stop, reference, variant))
        });
        let questions: Vec<_> = questions.collect();
        let layers = Semaphore::new(PARALLEL_LAYERS);
        let answers = stream::iter(questions)
            .map(async |(place, stop, reference, variant)| {
                let layers = stop.then_some(&layers);
                let found =
                    fetch_details(variant.clone(), layers, &reference, registry, progress).await;
                let found = found.unwrap_or_else(|error| Variant {
                    content: unread(&error),
                    ..variant
                });
                (place, found)
            })
            .buffer_unordered(PARALLEL)
            .collect::<Vec<_>>()
            .await;
        for ((image, place), found) in answers {
            images[image].variants_mut()[place] = found;
        }
    }
}

/// The unread images of each index that states one of them wrongly: they may be what starts.
fn beside_misstated(images: &[Image]) -> BTreeMap<(usize, usize), bool> {
    let images = images.iter().enumerate();
    let wrong = images.filter(|(_, image)| image.variants().iter().any(Variant::is_misstated));
    let unread = wrong.flat_map(|(index, image)| {
        let variants = image.variants().iter().enumerate();
        variants
            .filter(|(_, variant)| {
                variant.os == "windows"
                    && variant.content == EntryContent::Unread
                    && variant.manifest.is_some()
            })
            .map(move |(place, _)| ((index, place), false))
    });
    unread.collect()
}

/// The variant with what its documents say and, if layers are to be read, its shutdown timeout.
async fn fetch_details(
    variant: Variant,
    layers: Option<&Semaphore>,
    reference: &str,
    registry: &RegistryClient,
    progress: &Arc<dyn Progress>,
) -> Result<Variant, StoreError> {
    let (Ok(location), Some(entry)) = (parse_location(reference), &variant.manifest) else {
        return Ok(variant);
    };
    let source = Source::open(&location, registry).await?;
    let manifest = match source.document(entry).await? {
        Document::Manifest(manifest) => *manifest,
        Document::Index(_) => return Ok(variant),
    };
    if !source.is_image(&manifest).await? {
        let os = manifest.config.media_type.clone();
        return Ok(variant.with_image(Variant {
            os,
            ..Variant::default()
        }));
    }
    let image = source.image(manifest).await?;
    let mut own = Variant::of_image(&image);
    if own.host_process && contains_windows(&source, &image, TOO_SMALL).await == Some(true) {
        own.host_process = false;
    }
    if let Some(layers) = layers {
        // It fails only if it is closed.
        let _permit = layers.acquire().await;
        let times = shutdown_times(&source, &image, progress).await;
        // A layer that could not be read may override the others.
        let times = times.filter(|times| times.complete);
        own.stop_seconds = times.map(|times| times.seconds);
    }
    Ok(variant.with_image(own))
}
