//! Images between steps in a daemon, without a registry: loaded into it, and saved by it.

use std::sync::Arc;

use bollard::Docker;
use bollard::query_parameters::{CreateImageOptions, ImportImageOptions};
use bytes::Bytes;
use futures_util::TryStreamExt;
use tokio::sync::mpsc;
use tokio_util::io::ReaderStream;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_common::files::{PieceReader, Spool};
use wincimg_common::progress::{Progress, Silent};
use wincimg_layer::{Compression, WriteOptions, recompress};
use wincimg_oci::archive::{ArchiveWriter, UpperLayers};
use wincimg_oci::document::{Descriptor, Document, Image, Manifest, ManifestFormat, Verbatim};
use wincimg_oci::reference::{Reference, repository_of};
use wincimg_oci::remote::DaemonCredential;

use super::client::credentials;
use super::daemon::Daemon;
use super::engine::DockerEngine;
use super::error::DockerError;
use super::preflight::Preflight;
use crate::direct::{AddedLayer, blob_buffer};
use crate::plans::{InterimImage, PlannedBase};

/// Number of pieces of a saved image that wait for the disk.
const QUEUE_LENGTH: usize = 4;

impl DockerEngine<'_> {
    /// Loads an image between steps into the daemon, without the layers that this has. The layers of
    /// its base are pulled.
    pub(crate) async fn load(&self, image: &PlannedBase) -> Result<(), BoxError> {
        let Some(interim) = &image.interim else {
            return Ok(());
        };
        if self.daemon.has_image(&interim.name, &image.image).await? {
            return Ok(());
        }
        let source = image.source(self.registry).await?;
        let unplaced = || Problem::new("internal/segment", "the layers of a base are nowhere");
        let source = source.ok_or_else(unplaced)?;
        let present = self.layers_present(interim).await?;
        let archive = ArchiveWriter::create(std::env::temp_dir().join("wincimg-image"))?;
        let manifest = image.image.manifest();
        for layer in manifest.layers.iter().skip(present) {
            if !archive.has_blob(&layer.digest) {
                let blob = source.blob(layer)?;
                archive.put_blob(layer, &blob, &Silent).await?;
            }
        }
        let config = image.image.config().bytes();
        archive.put_blob(&manifest.config, config, &Silent).await?;
        let document = Document::Manifest(Box::new(manifest.clone()));
        archive.put_document(&document);
        archive.tag(document, Some(&interim.name));
        let archive = archive.finish_unnamed().await?;
        let loading = self.daemon.load(&interim.name, &archive, self.progress);
        loading.await?;
        if self.daemon.has_image(&interim.name, &image.image).await? {
            return Ok(());
        }
        let problem = format!("the daemon loaded {} with other layers", interim.name);
        Err(Problem::new("daemon/answer", problem).into())
    }

    /// The number of layers of an image that need not be loaded, from the lowest on.
    async fn layers_present(&self, interim: &InterimImage) -> Result<usize, BoxError> {
        let mut below = &interim.below;
        while let Some(next) = &below.interim {
            let layers = &below.image.config().rootfs.diff_ids;
            // A store of containerd looks for the blobs, which are its own there.
            if !self.info.has_containerd_store()
                && self.daemon.has_image(&next.name, &below.image).await?
            {
                return Ok(layers.len());
            }
            below = &next.below;
        }
        let Some(reference) = below.reference() else {
            return Ok(0);
        };
        let name = reference.to_string();
        if !self.daemon.has_image(&name, &below.image).await? {
            let needed = self.bytes_needed(below, 0).await?;
            Preflight::new(self.daemon, self.info).check_disk(needed)?;
            let credential = self.ask_registry(reference.registry()).await?;
            let pulling = self
                .daemon
                .pull(reference, credential.as_ref(), self.progress);
            pulling.await?;
        }
        Ok(below.image.manifest().layers.len())
    }
}

impl Daemon {
    /// Returns true if the daemon has an image of that name and with these layers.
    pub(crate) async fn has_image(&self, name: &str, image: &Image) -> Result<bool, DockerError> {
        let diff_ids = image.config().rootfs.diff_ids.iter().map(AsRef::as_ref);
        let found = self.find_image(name).await?;
        Ok(found.is_some_and(|found| diff_ids.eq(found.layers.iter().map(String::as_str))))
    }

    /// Pulls an image by digest.
    async fn pull(
        &self,
        reference: &Reference,
        credential: Option<&DaemonCredential>,
        progress: &dyn Progress,
    ) -> Result<(), DockerError> {
        let what = format!("pull {reference}");
        let options = CreateImageOptions {
            from_image: Some(repository_of(reference)),
            tag: reference.digest().or(reference.tag()).map(str::to_owned),
            ..CreateImageOptions::default()
        };
        let credential = credential.map(credentials);
        let call = async |docker: Docker| {
            let mut messages = docker.create_image(Some(options), None, credential);
            messages.try_next().await
        };
        self.follow_transfer(&what, progress, call, |_| {})
            .await
            .map_err(|error| error.about(&reference.to_string()))
    }

    async fn load(
        &self,
        name: &str,
        archive: &Spool,
        progress: &dyn Progress,
    ) -> Result<(), BoxError> {
        let what = format!("load {name}");
        let unreadable = |error| {
            let problem = "cannot read the image from its temporary file";
            Problem::new("file/io", problem).source(error)
        };
        let file = archive.reopen().map_err(unreadable)?;
        let file = file.file().try_clone().map_err(unreadable)?;
        let size = file.metadata().map_err(unreadable)?.len();
        let task = progress.task(&what, Some(size));
        let sent = Arc::clone(&task);
        let pieces = ReaderStream::with_capacity(tokio::fs::File::from_std(file), 256 << 10);
        let pieces = pieces.inspect_ok(move |piece: &Bytes| sent.advance(piece.len() as u64));
        let body = bollard::body_try_stream(pieces);
        let options = ImportImageOptions {
            quiet: true,
            ..ImportImageOptions::default()
        };
        let call = async |docker: Docker| {
            let mut messages = docker.import_image(options, body, None);
            messages.try_next().await
        };
        self.follow_transfer(&what, progress, call, |_| {}).await?;
        task.done("loaded");
        Ok(())
    }

    /// Saves an image, and compresses its layers above another.
    pub(crate) async fn save_above(
        &self,
        name: &str,
        below: &Image,
        compression: Compression,
        progress: &dyn Progress,
    ) -> Result<(Image, Vec<Arc<AddedLayer>>), BoxError> {
        let task = progress.task(&format!("save {name}"), None);
        let mut pieces = self.save(name).await?;
        let (sender, mut receiver) = mpsc::channel::<Bytes>(QUEUE_LENGTH);
        let archive = (name.to_owned(), below.clone());
        let reading = tokio::task::spawn_blocking(move || {
            let (name, below) = archive;
            let input = PieceReader::new(move || Ok(receiver.blocking_recv()));
            let upper = UpperLayers::read(&name, input, &below)?;
            compressed(&name, upper, &below, compression)
        });
        let receiving = async move {
            while let Some(piece) = pieces.next().await? {
                task.advance(piece.len() as u64);
                // The reader is gone if it failed.
                if sender.send(piece).await.is_err() {
                    break;
                }
            }
            task.done("saved");
            Ok::<_, DockerError>(())
        };
        receiving.await?;
        let stopped = || Problem::new("build/failed", "a thread stopped before the image was read");
        let (image, layers) = reading.await.map_err(|_| stopped())??;
        Ok((image, layers))
    }
}

/// The image on another, with new blobs for its own layers.
fn compressed(
    name: &str,
    upper: UpperLayers,
    below: &Image,
    compression: Compression,
) -> Result<(Image, Vec<Arc<AddedLayer>>), BoxError> {
    let format = ManifestFormat::Oci;
    let known = below.manifest().layers.iter();
    let known = || known.clone().zip(&below.config().rootfs.diff_ids);
    let mut descriptors: Vec<Descriptor> = below.manifest().layers.clone();
    let mut added = Vec::new();
    for layer in upper.layers {
        let Some(bytes) = &layer.bytes else {
            let same = known().find(|(_, diff_id)| **diff_id == layer.diff_id);
            descriptors.extend(same.map(|(blob, _)| blob.clone()));
            continue;
        };
        let mut blob = blob_buffer();
        let options = WriteOptions {
            compression,
            ..WriteOptions::default()
        };
        let unreadable = |error| {
            let problem = format!("cannot read a layer of {name}");
            Problem::new("file/io", problem).source(error)
        };
        let tar = bytes.open().map_err(unreadable)?;
        let written = recompress(tar, &mut blob, &options)?;
        if written.diff_id != layer.diff_id {
            let diff_id = &layer.diff_id;
            let problem = format!("the layer {diff_id} of {name} was saved with other content");
            return Err(Problem::new("daemon/answer", problem).into());
        }
        let layer = AddedLayer::from_blob(written, blob.finish());
        descriptors.push(layer.descriptor(format));
        added.push(Arc::new(layer));
    }
    let config = upper.config;
    let descriptor = config.descriptor(format.config());
    let mut manifest = Manifest::new(format, descriptor, descriptors);
    manifest.convert(format);
    Ok((Image::new(Verbatim::new(manifest)?, config)?, added))
}
