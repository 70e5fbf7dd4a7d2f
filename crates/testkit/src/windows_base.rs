//! Stand-in Windows base images in the form of Microsoft's, with small layers.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use wincimg_common::progress::Silent;
use wincimg_oci::document::{
    Descriptor, Document, History, Image, Index, ManifestFormat, Platform, Verbatim, sha256,
};
use wincimg_oci::store::Sink;

use super::image_locations::{registry, sink};
use super::test_bases::tar_of;

/// An image with its blobs.
#[derive(Clone)]
pub struct StandIn {
    pub image: Image,
    pub layers: Vec<(Descriptor, Bytes)>,
}

/// Pushes Nano Server of a version to a registry.
pub async fn put_nanoserver(host: &str, version: &str) {
    let reference = format!("{host}/windows/nanoserver:{version}");
    let sink = sink(&reference, &registry(host)).await;
    let base = StandIn::new(ManifestFormat::Docker, version, &[(40_000, 1)]);
    base.put(&sink, Some(version)).await;
}

/// A layer: a gzipped tar with one incompressible file below `Files/`.
pub fn layer(size: usize, seed: u64) -> (Bytes, Bytes) {
    let content = super::noise(size, seed);
    let tar = tar_of(&[(format!("Files/{seed}.bin"), content)]);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
    gzip.write_all(&tar).unwrap();
    (tar.into(), gzip.finish().unwrap().into())
}

impl StandIn {
    /// Windows on amd64 in a version, with a layer of each size; equal seeds give equal layers.
    pub fn new(format: ManifestFormat, os_version: &str, layers: &[(usize, u64)]) -> Self {
        let image = Image::empty(format, Platform::windows(os_version))
            .unwrap()
            .edit_config(|config| {
                config.config.shell = Some(vec!["powershell".into(), "-Command".into()]);
                config.created = Some("2020-01-14T00:00:00Z".into());
            })
            .unwrap();
        let mut stand_in = Self {
            image,
            layers: Vec::new(),
        };
        for &(size, seed) in layers {
            stand_in.push(format.layer_gzip(), size, seed, Vec::new());
        }
        stand_in
    }

    /// Adds a layer on top, of any type and with `urls`.
    pub fn push(&mut self, media_type: &str, size: usize, seed: u64, urls: Vec<String>) {
        let (tar, gzip) = layer(size, seed);
        let mut blob = Descriptor::new(media_type, sha256(&gzip), gzip.len() as u64);
        blob.urls = urls;
        let history = History {
            created_by: Some(format!("layer {seed}")),
            ..History::default()
        };
        self.append(blob, &tar, gzip, history);
    }

    pub fn append(&mut self, blob: Descriptor, tar: &[u8], gzip: Bytes, history: History) {
        let layered = self.image.append_layer(blob.clone(), sha256(tar), history);
        self.image = layered.unwrap();
        self.layers.push((blob, gzip));
    }

    pub fn document(&self) -> Document {
        Document::Manifest(Box::new(self.image.manifest().clone()))
    }

    /// Stores the configuration and the layers that a filter accepts.
    pub async fn put_blobs(&self, sink: &Sink, keep: impl Fn(&Descriptor) -> bool) {
        let config = &self.image.manifest().config;
        let bytes = self.image.config().bytes().clone();
        sink.put_blob(config, &bytes, &Silent).await.unwrap();
        for (blob, bytes) in &self.layers {
            if keep(blob) {
                sink.put_blob(blob, bytes, &Silent).await.unwrap();
            }
        }
    }

    /// Stores and publishes everything.
    pub async fn put(&self, sink: &Sink, tag: Option<&str>) {
        self.put_blobs(sink, |_| true).await;
        sink.publish(&self.document(), tag).await.unwrap();
    }
}

/// Stores and publishes an index of images, each with its `os.version`.
pub async fn put_index(
    format: ManifestFormat,
    images: &[StandIn],
    sink: &Sink,
    tag: Option<&str>,
) -> Document {
    for image in images {
        image.put_blobs(sink, |_| true).await;
        sink.put_document(&image.document()).await.unwrap();
    }
    let entries = images.iter().map(|image| image.image.index_entry());
    let index = Verbatim::new(Index::new(format, entries.collect())).unwrap();
    let document = Document::Index(index);
    sink.publish(&document, tag).await.unwrap();
    document
}
