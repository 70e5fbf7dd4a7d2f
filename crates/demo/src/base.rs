//! Stand-in base images for a demonstration: complete in a registry, but without Windows.

use std::error::Error;

use bytes::Bytes;
use wincimg_common::diagnose::Problem;
use wincimg_layer::{LayerError, WriteOptions};
use wincimg_oci::document::{
    Descriptor, Document, History, Image, Index, ManifestFormat, Platform, Verbatim,
};
use wincimg_windows::version::WindowsVersion;

use super::server::RegistryState;

const CREATED: &str = "2020-01-14T00:00:00Z";
const CREATED_SECONDS: u64 = 1_578_960_000;

/// Adds a base image of each version to a repository, tagged as Microsoft tags them: an index of
/// one image under the full version.
pub fn add_base_images(
    stored: &mut RegistryState,
    repository: &str,
    versions: &[WindowsVersion],
) -> Result<(), Problem> {
    for version in versions {
        let (image, index, layer) = base_image(*version).map_err(|error| {
            Problem::new("internal/stand-in", "cannot write the stand-in image").source(error)
        })?;
        stored.add_blob(repository, layer);
        stored.add_blob(repository, image.config().bytes().clone());
        let manifest = image.manifest();
        stored.add_manifest(
            repository,
            image.digest().as_ref(),
            manifest.media_type(),
            manifest.bytes().clone(),
        );
        stored.add_manifest(
            repository,
            &version.os_version(),
            index.media_type(),
            index.bytes().clone(),
        );
    }
    Ok(())
}

/// The image, its index and its layer.
fn base_image(
    version: WindowsVersion,
) -> Result<(Image, Document, Bytes), Box<dyn Error + Send + Sync>> {
    let mut layer = wincimg_layer::Layer::new(CREATED_SECONDS);
    let text = format!("This stands in for Windows {version}.\r\n");
    let name = "License.txt".parse().map_err(LayerError::from)?;
    layer.file(name, Bytes::from(text.into_bytes()));
    let mut blob = Vec::new();
    let written = layer.write(&mut blob, &WriteOptions::default())?;
    let image = Image::empty(
        ManifestFormat::Docker,
        Platform::windows(version.os_version()),
    )?
    .append_layer(
        Descriptor::new(
            ManifestFormat::Docker.layer_gzip(),
            written.digest,
            written.size,
        ),
        written.diff_id,
        History {
            created: Some(CREATED.to_owned()),
            created_by: Some("a stand-in for Windows".to_owned()),
            ..History::default()
        },
    )?
    .edit_config(|config| {
        config.created = Some(CREATED.to_owned());
        config.config.user = Some("ContainerUser".to_owned());
        config.config.cmd = Some(vec!["c:\\windows\\system32\\cmd.exe".to_owned()]);
    })?;
    let entries = vec![image.index_entry()];
    let index = Verbatim::new(Index::new(ManifestFormat::Docker, entries))?;
    Ok((image, Document::Index(index), blob.into()))
}
