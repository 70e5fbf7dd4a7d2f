//! Image details that are fetched only if a warning needs them: download size and shutdown timeout.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures_util::{StreamExt, stream};
use wincimg_common::progress::Progress;
use wincimg_inspect::bases::parse_location;
use wincimg_inspect::shutdown_times;
use wincimg_oci::document::Document;
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::{Source, StoreError};
use wincimg_windows::compat::{ContainerRuntime, Isolation};
use wincimg_windows::shutdown::DEFAULT_SECONDS;

use super::image::Image;
use super::{Finding, Rollout};

/// Images fetched at once; their layers may be large.
const PARALLEL: usize = 4;

/// Details to fetch: the image, its variant, and whether its layers are read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Details(BTreeMap<(usize, usize), bool>);

/// Details of one variant.
struct VariantDetails {
    place: (usize, usize),
    size: u64,
    stop_seconds: Option<u64>,
}

impl Details {
    /// The details that the warnings of a roll-out need and that are not known yet.
    pub fn missing(rollout: &Rollout) -> Self {
        let mut details = Self::default();
        for placement in &rollout.placements {
            let Some(workload) = placement.workload.map(|index| &rollout.workloads[index]) else {
                continue;
            };
            let is_patient = workload
                .template
                .grace_seconds
                .is_some_and(|seconds| seconds > u64::from(DEFAULT_SECONDS));
            for placed in &placement.images {
                let groups = placement.selection.groups.iter().zip(&placed.findings);
                for (group, finding) in groups {
                    let is_docker = rollout.kinds[group.kind].runtime == ContainerRuntime::Docker;
                    details.add(rollout, placed.image, finding, is_docker, is_patient);
                }
            }
        }
        details
    }

    fn add(
        &mut self,
        rollout: &Rollout,
        image: usize,
        finding: &Finding,
        is_docker: bool,
        is_patient: bool,
    ) {
        let variants = rollout.images[image].variants();
        let Some((place, variant)) = finding.variant.and_then(|at| Some((at, variants.get(at)?)))
        else {
            return;
        };
        let stop = is_patient
            && variant.stop_seconds.is_none()
            && finding.isolation != Isolation::HostProcess;
        let size = is_docker && variant.size.is_none();
        if (stop || size) && variant.digest.is_some() {
            *self.0.entry((image, place)).or_default() |= stop;
        }
    }

    /// Returns true if no details are missing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Fetches the details into the images; returns those that failed.
    pub async fn fetch(
        &self,
        images: &mut [Image],
        registry: &RegistryClient,
        progress: &Arc<dyn Progress>,
    ) -> BTreeSet<String> {
        let questions = self.0.iter().filter_map(|(&(image, variant), &stop)| {
            let reference = images[image].reference.clone()?;
            let digest = images[image].variants().get(variant)?.digest.clone()?;
            Some(((image, variant), stop, reference, digest.to_string()))
        });
        let questions: Vec<_> = questions.collect();
        let answers = stream::iter(questions)
            .map(async |(place, stop, reference, digest)| {
                let found =
                    fetch_details(place, stop, &reference, &digest, registry, progress).await;
                found.ok().flatten().ok_or(reference)
            })
            .buffered(PARALLEL)
            .collect::<Vec<_>>()
            .await;
        let mut failed = BTreeSet::new();
        for answer in answers {
            match answer {
                Ok(found) => found.put(images),
                Err(reference) => {
                    failed.insert(reference);
                }
            }
        }
        failed
    }
}

impl VariantDetails {
    fn put(self, images: &mut [Image]) {
        let (image, variant) = self.place;
        if let Some(variant) = images[image].variants_mut().get_mut(variant) {
            variant.size = Some(self.size);
            variant.stop_seconds = variant.stop_seconds.or(self.stop_seconds);
        }
    }
}

async fn fetch_details(
    place: (usize, usize),
    stop: bool,
    reference: &str,
    digest: &str,
    registry: &RegistryClient,
    progress: &Arc<dyn Progress>,
) -> Result<Option<VariantDetails>, StoreError> {
    let Ok(location) = parse_location(reference) else {
        return Ok(None);
    };
    let source = Source::open(&location, registry).await?;
    let Document::Manifest(manifest) = source.resolve(Some(digest)).await? else {
        return Ok(None);
    };
    let image = source.image(*manifest).await?;
    let times = if stop {
        shutdown_times(&source, &image, progress).await
    } else {
        None
    };
    Ok(Some(VariantDetails {
        place,
        size: image.manifest().layers.iter().map(|layer| layer.size).sum(),
        // A layer that could not be read may override the others.
        stop_seconds: times
            .filter(|times| times.complete)
            .map(|times| times.seconds),
    }))
}
