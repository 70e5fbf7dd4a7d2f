//! The demonstration's registry with images of any version, without any Windows files.

use std::collections::HashMap;
use std::sync::Mutex;

use bytes::Bytes;
use serde_json::{Value, json};
use wincimg_demo::{DemoRegistry, RegistryState};
use wincimg_oci::document::sha256;

use super::DOCKER_MANIFEST as MANIFEST;

const INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar";
const CONFIG: &str = "application/vnd.docker.container.image.v1+json";

/// A registry and the objects created for it; it stores those that a tag references.
pub struct FakeRegistry {
    registry: DemoRegistry,
    made: Mutex<HashMap<String, Bytes>>,
}

impl FakeRegistry {
    pub fn start() -> Self {
        Self {
            registry: DemoRegistry::start().unwrap(),
            made: Mutex::default(),
        }
    }

    /// `127.0.0.1:PORT`.
    pub fn host(&self) -> String {
        self.registry.host()
    }

    /// Creates an image manifest with this version in its configuration, and returns its digest.
    pub fn image(&self, os: &str, version: &str) -> String {
        self.image_with(&json!({"os": os, "architecture": "amd64", "os.version": version}))
    }

    /// Creates an image manifest with this configuration, and returns its digest.
    pub fn image_with(&self, config: &Value) -> String {
        self.image_of(config, &[])
    }

    /// Like [`Self::image_with`], with layers, each as its descriptor and the digest of its tar.
    pub fn image_of(&self, config: &Value, layers: &[(Value, String)]) -> String {
        let mut config = config.clone();
        let diff_ids: Vec<&String> = layers.iter().map(|(_, diff_id)| diff_id).collect();
        config["rootfs"] = json!({"type": "layers", "diff_ids": diff_ids});
        let config = self.make(CONFIG, config.to_string());
        let layers: Vec<&Value> = layers.iter().map(|(descriptor, _)| descriptor).collect();
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers,
        });
        digest_of(&self.make(MANIFEST, manifest.to_string()))
    }

    /// Creates an uncompressed layer, for [`FakeRegistry::image_of`].
    pub fn layer(&self, tar: Vec<u8>) -> (Value, String) {
        let descriptor = self.make(LAYER, tar);
        let digest = digest_of(&descriptor);
        (descriptor, digest)
    }

    /// Creates an index of images, each with the platform version that it claims.
    pub fn index(&self, entries: &[(&str, Option<&str>)]) -> String {
        let manifests = entries.iter().map(|(digest, version)| {
            let mut entry = self.entry(digest);
            entry["platform"] = json!({"os": "windows", "architecture": "amd64"});
            if let Some(version) = version {
                entry["platform"]["os.version"] = json!(version);
            }
            entry
        });
        self.index_of(&manifests.collect::<Vec<_>>())
    }

    pub fn index_of(&self, entries: &[Value]) -> String {
        let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries});
        digest_of(&self.make(INDEX, index.to_string()))
    }

    /// Returns an entry of an index for an image or an index, without a platform.
    pub fn entry(&self, digest: &str) -> Value {
        let bytes = self.made.lock().unwrap()[digest].clone();
        let document: Value = serde_json::from_slice(&bytes).unwrap();
        json!({"mediaType": document["mediaType"], "digest": digest, "size": bytes.len()})
    }

    /// Creates an index of images or indexes that states no platform.
    pub fn index_without_platforms(&self, digests: &[&str]) -> String {
        let entries = digests.iter().map(|digest| self.entry(digest));
        self.index_of(&entries.collect::<Vec<_>>())
    }

    /// Tags an image or an index, and stores all its references that were not lost.
    pub fn tag(&self, repository: &str, tag: &str, digest: &str) {
        let made = self.made.lock().unwrap();
        self.registry
            .with(|stored| add(&made, stored, repository, tag, digest));
    }

    /// Publishes an index of one Windows image under tags, like Microsoft, and returns the image's
    /// digest.
    pub fn publish(&self, repository: &str, tags: &[&str], version: &str) -> String {
        let image = self.image("windows", version);
        let index = self.index(&[(&image, Some(version))]);
        for tag in tags {
            self.tag(repository, tag, &index);
        }
        image
    }

    /// Removes a manifest or a blob before it is tagged.
    pub fn lose(&self, digest: &str) {
        self.made.lock().unwrap().remove(digest);
    }

    /// `METHOD PATH` of the requests so far, without the first ping.
    pub fn requests(&self) -> Vec<String> {
        let mut requests = self.registry.with(|stored| stored.requests().to_vec());
        requests.retain(|request| request != "GET /v2/");
        requests
    }

    /// Stores bytes and returns their descriptor.
    fn make(&self, media_type: &str, bytes: impl Into<Bytes>) -> Value {
        let bytes = bytes.into();
        let (digest, size) = (sha256(&bytes).to_string(), bytes.len());
        self.made.lock().unwrap().insert(digest.clone(), bytes);
        json!({"mediaType": media_type, "digest": digest, "size": size})
    }
}

fn add(
    made: &HashMap<String, Bytes>,
    stored: &mut RegistryState,
    repository: &str,
    which: &str,
    digest: &str,
) {
    let Some(bytes) = made.get(digest) else {
        return;
    };
    let document: Value = serde_json::from_slice(bytes).unwrap();
    let entries = |name: &str| document[name].as_array().cloned().unwrap_or_default();
    for manifest in entries("manifests") {
        let digest = digest_of(&manifest);
        add(made, stored, repository, &digest, &digest);
    }
    for blob in entries("layers").iter().chain([&document["config"]]) {
        if let Some(bytes) = blob["digest"].as_str().and_then(|digest| made.get(digest)) {
            stored.add_blob(repository, bytes.clone());
        }
    }
    let media_type = document["mediaType"].as_str().unwrap();
    stored.add_manifest(repository, which, media_type, bytes.clone());
}

fn digest_of(descriptor: &Value) -> String {
    descriptor["digest"].as_str().unwrap().to_owned()
}
