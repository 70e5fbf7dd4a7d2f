//! Images that a replayed daemon builds on base images: the base with one more layer.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use wincimg_demo::DemoRegistry;
use wincimg_inspect::bases::{BaseImage, BaseMatch, BaseRegistry, resolve};
use wincimg_oci::document::{Descriptor, History, Image, ManifestFormat, sha256};
use wincimg_oci::remote::RegistryClient;
use wincimg_windows::compat::HostBuild;
use wincimg_windows::version::WindowsVersion;

use super::windows_daemon::{WindowsDaemon, built, shown};

/// The Nano Server base of a version.
pub async fn base(registry: &RegistryClient, bases: &str, version: WindowsVersion) -> BaseImage {
    let bases: BaseRegistry = bases.parse().unwrap();
    let repository = bases.repository("nanoserver").unwrap();
    let host = HostBuild::new(version);
    let found = resolve(registry, &repository, host, BaseMatch::Exact).await;
    found.unwrap().base
}

/// Lets the daemon build an image on each base, and push them like Docker.
pub fn build_all(windows: &WindowsDaemon, stored: &Arc<DemoRegistry>, bases: &[BaseImage]) {
    let made: Vec<Image> = bases.iter().map(build).collect();
    windows.script(|script| {
        script.builds = made.iter().map(|image| built(&id(image))).collect();
        for image in &made {
            script.images.insert(id(image), as_shown(image));
        }
        let stored = Arc::clone(stored);
        script.push = Box::new(move |name| push(&stored, &made, name));
    });
}

/// The image that a daemon would build: the base and one more layer.
pub fn build(base: &BaseImage) -> Image {
    let bytes = layer_bytes(base.os_version);
    let digest = sha256(&bytes);
    let media_type = ManifestFormat::Docker.layer_gzip();
    let blob = Descriptor::new(media_type, digest.clone(), bytes.len() as u64);
    let layered = base.image.append_layer(blob, digest, History::default());
    layered.unwrap()
}

fn layer_bytes(version: WindowsVersion) -> Bytes {
    Bytes::from(format!("a layer of {version}"))
}

/// Digest of the configuration.
pub fn id(image: &Image) -> String {
    image.config().digest().to_string()
}

fn os_version(image: &Image) -> &str {
    image.config().os_version.as_deref().unwrap()
}

/// The daemon's JSON for the image.
pub fn as_shown(image: &Image) -> Value {
    let layers = image.config().rootfs.diff_ids.iter();
    let layers: Vec<String> = layers.map(ToString::to_string).collect();
    shown(&id(image), os_version(image), &layers)
}

/// Adds the image of a name to the registry, and returns Docker's messages.
fn push(stored: &DemoRegistry, made: &[Image], name: &str) -> Vec<Value> {
    let (path, tag) = name.rsplit_once(':').unwrap();
    let (_, repository) = path.split_once('/').unwrap();
    let mut images = made.iter();
    let image = images.find(|image| tag.ends_with(os_version(image)));
    let image = image.unwrap_or(&made[0]);
    let version = os_version(image).parse().unwrap();
    let digest = stored.with(|stored| {
        stored.add_blob(repository, image.config().bytes().clone());
        stored.add_blob(repository, layer_bytes(version));
        let manifest = image.manifest();
        let bytes = manifest.bytes().clone();
        stored.add_manifest(repository, tag, manifest.media_type(), bytes)
    });
    let size = image.manifest().size();
    vec![
        json!({"status": format!("The push refers to repository [{path}]")}),
        json!({"status": "Preparing", "progressDetail": {}, "id": "5f70bf18a086"}),
        json!({"status": "Skipped foreign layer", "progressDetail": {}, "id": "e4b31be9e9cb"}),
        json!({"status": "Pushing", "progressDetail": {"current": 512, "total": 1024}, "id": "5f70bf18a086"}),
        json!({"status": "Pushed", "progressDetail": {}, "id": "5f70bf18a086"}),
        json!({"status": format!("{tag}: digest: {digest} size: {size}")}),
        json!({"progressDetail": {}, "aux": {"Tag": tag, "Digest": digest, "Size": size}}),
    ]
}
