//! Writes images to one destination: uploads them in parts, lets the daemon that made them push, or
//! saves them from the daemon and uploads that.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use futures_util::future::try_join_all;
use tokio::sync::watch;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_common::progress::Progress;
use wincimg_oci::copy::{BlobAction, Copier, CopyOptions, CopyPlan, Foreign, PlannedBlob};
use wincimg_oci::document::media_type::is_foreign;
use wincimg_oci::document::{Descriptor, Digest, Document, Image, ManifestFormat};
use wincimg_oci::remote::{RegistryClient, Repository};
use wincimg_oci::store::{Location, Sink, Source, StoreError};

use super::BuiltImage;
use crate::direct::{AssembledImage, LayerBytes};
use crate::docker::DaemonImage;
use crate::plans::PlannedImage;
use crate::publication::TaggedImage;

/// Number of concurrent layer transfers, over all images.
const TRANSFERS: usize = 6;

pub(super) struct DestinationWriter<'a> {
    registry: &'a RegistryClient,
    progress: Arc<dyn Progress>,
    format: Option<ManifestFormat>,
    sink: &'a Sink,
    copier: Copier,
    /// Number of images with all their blobs at the destination.
    complete: watch::Sender<usize>,
}

/// An image as its destination has it: another manifest format gives it another digest.
pub(super) struct DestinationImage {
    pub(super) image: Image,
    /// True if the destination already had all of it.
    pub(super) up_to_date: bool,
}

impl<'a> DestinationWriter<'a> {
    pub(super) fn new(
        registry: &'a RegistryClient,
        progress: Arc<dyn Progress>,
        format: Option<ManifestFormat>,
        sink: &'a Sink,
    ) -> Self {
        let mut copier = Copier::new(registry.clone(), Arc::clone(&progress), TRANSFERS);
        // A build checks its tags itself.
        copier.replace = true;
        Self {
            registry,
            format,
            sink,
            copier,
            complete: watch::Sender::new(0),
            progress,
        }
    }

    /// Waits until that many images lack only their manifests.
    pub(super) async fn wait_for_parts(&self, images: usize) {
        let mut complete = self.complete.subscribe();
        // The sender lives as long as `self`.
        let _ = complete.wait_for(|complete| *complete >= images).await;
    }

    fn note_parts(&self) {
        self.complete.send_modify(|complete| *complete += 1);
    }

    /// Delivers one image; `before` is the previous value of its tag.
    pub(super) async fn publish(
        &self,
        image: &TaggedImage<'_>,
        made: &BuiltImage<'_>,
        before: Option<&Digest>,
        location: &Location,
    ) -> Result<DestinationImage, BoxError> {
        let tag = location.tag();
        let image = match (made, self.sink) {
            (BuiltImage::Assembled(assembled), _) => {
                Box::pin(self.send(image.planned, assembled, before, tag)).await?
            }
            (BuiltImage::InDaemon(made), Sink::Registry(repository)) => {
                let pushed = Box::pin(self.push(made, repository)).await?;
                self.note_parts();
                pushed
            }
            (BuiltImage::InDaemon(made), Sink::Layout(_) | Sink::Archive(_)) => {
                let saved = Box::pin(self.save(made, tag)).await?;
                self.note_parts();
                saved
            }
        };
        Ok(DestinationImage {
            up_to_date: before == Some(image.digest()),
            image,
        })
    }

    /// Uploads the missing blobs of an image concurrently, then its manifest.
    async fn send(
        &self,
        planned: &PlannedImage,
        assembled: &AssembledImage,
        before: Option<&Digest>,
        tag: Option<&str>,
    ) -> Result<Image, BoxError> {
        let image = self.in_format(assembled);
        let image = image.map_err(|error| Problem::from_error("daemon/answer", error))?;
        if before == Some(image.digest()) {
            self.note_parts();
            return Ok(image);
        }
        self.send_blobs(planned, assembled, &image).await?;
        self.note_parts();
        let root = Document::Manifest(Box::new(image.manifest().clone()));
        let config = &image.manifest().config;
        let parts: Vec<&Descriptor> = image.manifest().layers.iter().chain([config]).collect();
        let mut attempts = 0;
        while let Err(error) = self.sink.publish(&root, tag).await {
            attempts += 1;
            let retry = self.copier.forget_lost(error, attempts, &parts, self.sink);
            retry.await?;
            self.send_blobs(planned, assembled, &image).await?;
        }
        // The next build reads this configuration to find reusable layers.
        self.registry.cache_document(config, image.config().bytes());
        Ok(image)
    }

    /// Uploads the missing blobs of an image concurrently.
    async fn send_blobs(
        &self,
        planned: &PlannedImage,
        assembled: &AssembledImage,
        image: &Image,
    ) -> Result<(), StoreError> {
        let (copier, sink) = (&self.copier, self.sink);
        let added = async {
            // Two instructions may make the same layer.
            let mut seen = BTreeSet::new();
            let layers = assembled.added.iter();
            let layers = layers.filter(|layer| seen.insert(layer.diff_id.to_string()));
            let put = layers.map(async |layer| {
                let descriptor = layer.descriptor(image.manifest().format());
                match &layer.bytes {
                    LayerBytes::Here(_) => {
                        copier.ensure_bytes(&descriptor, layer.as_ref(), sink).await
                    }
                    LayerBytes::There(source) => self.ensure_blob(&descriptor, source).await,
                }
            });
            try_join_all(put).await.map(drop)
        };
        let config = copier.ensure_bytes(&image.manifest().config, image.config().bytes(), sink);
        let carried = async {
            match &assembled.carried {
                Some(carried) => self.ensure_blobs(&carried.layers, &carried.source).await,
                None => Ok(()),
            }
        };
        let base = async {
            let ground = planned.ground();
            if assembled.carried.as_ref().is_some_and(|it| it.has_base) {
                return Ok(());
            }
            // A base without a reference has no layers.
            match Box::pin(ground.source(self.registry)).await? {
                Some(source) => {
                    let layers = &ground.image.manifest().layers;
                    self.ensure_blobs(layers, &source).await
                }
                None => Ok(()),
            }
        };
        tokio::try_join!(added, config, carried, base).map(drop)
    }

    /// Copies layers of a store concurrently.
    async fn ensure_blobs(&self, blobs: &[Descriptor], source: &Source) -> Result<(), StoreError> {
        let copies = blobs.iter().map(|blob| self.ensure_blob(blob, source));
        try_join_all(copies).await.map(drop)
    }

    async fn ensure_blob(
        &self,
        blob: &Descriptor,
        source: &Source,
    ) -> Result<BlobAction, StoreError> {
        let blob = PlannedBlob::new(blob.clone(), Foreign::MakeOrdinary);
        self.copier.ensure_blob(&blob, source, self.sink).await
    }

    /// The image in the destination's format. A built one is in OCI's by default, which has
    /// annotations, so that it has one digest in registries and layouts.
    fn in_format(&self, assembled: &AssembledImage) -> Result<Image, Problem> {
        let is_built = assembled.annotations.is_some();
        let image = match self.format.or(is_built.then_some(ManifestFormat::Oci)) {
            Some(format) => {
                assembled.image.manifest().check_format(format)?;
                assembled.image.in_format(format)?
            }
            None => assembled.image.clone(),
        };
        match (&assembled.annotations, image.manifest().format()) {
            (Some(annotations), ManifestFormat::Oci) => image.with_annotations(annotations),
            _ => Ok(image),
        }
    }

    /// Lets the daemon push, and reads the pushed image from the registry.
    async fn push(
        &self,
        made: &DaemonImage<'_>,
        repository: &Repository,
    ) -> Result<Image, BoxError> {
        let pushed = made.push(self.progress.as_ref()).await;
        let digest = pushed.map_err(|error| {
            let what = format!("built and kept in the Docker daemon as {made}; not pushed");
            Problem::context(what, error)
        })?;
        let source = Source::Registry(repository.clone());
        let Document::Manifest(manifest) = source.resolve(Some(&digest)).await? else {
            return Err(not_an_image(format_args!("{repository}@{digest}")));
        };
        let image = source.image(*manifest).await?;
        let mut layers = image.manifest().layers.iter();
        if layers.any(|layer| is_foreign(&layer.media_type)) {
            self.progress.note(&format!(
                "Docker did not push the base's layers, so nodes will pull them from Microsoft; \
                 to copy them too: `wincimg image mirror {made} --to …`"
            ));
        }
        Ok(image)
    }

    /// Saves an image from the daemon to a file, and uploads it from there.
    async fn save(&self, made: &DaemonImage<'_>, tag: Option<&str>) -> Result<Image, BoxError> {
        let name = made.to_string();
        let file = made.daemon.export(&name, self.progress.as_ref()).await?;
        let saved = Location::Archive {
            file: file.path().to_owned(),
            name: None,
        };
        let source = Source::open(&saved, self.registry).await?;
        let options = CopyOptions {
            manifest_format: self.format,
            ..CopyOptions::default()
        };
        let plan = CopyPlan::new(&source, None, &options).await?;
        self.copier.copy(&plan, &source, self.sink, tag).await?;
        match plan.root {
            Document::Manifest(manifest) => Ok(source.image(*manifest).await?),
            Document::Index(_) => Err(not_an_image(made)),
        }
    }
}

/// Error for pushed or saved content that is not an image.
fn not_an_image(reference: impl fmt::Display) -> BoxError {
    let problem = format!("{reference} is an index: expected the image that Docker sent");
    Problem::new("daemon/answer", problem).into()
}
