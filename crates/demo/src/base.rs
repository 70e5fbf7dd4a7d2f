//! Stand-in base images for a demonstration: complete in a registry, but without Windows.

use bytes::Bytes;
use wincimg_common::diagnose::Diagnose;
use wincimg_layer::{LayerError, WriteOptions};
use wincimg_oci::document::{
    Descriptor, Document, DocumentError, History, Image, Index, ManifestFormat, NewLayer, Platform,
    Verbatim,
};
use wincimg_windows::version::WindowsVersion;

use super::server::RegistryState;

/// Creation time of the bases.
const CREATED: &str = "2020-01-14T00:00:00Z";
const CREATED_SECONDS: u64 = 1_578_960_000;

/// Error of creating a stand-in base image.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "internal/stand-in")]
pub enum StandInError {
    /// Writing its layer failed.
    #[error("cannot write the layer of the stand-in image")]
    Layer(#[from] LayerError),
    /// Writing its documents failed.
    #[error("cannot write the documents of the stand-in image")]
    Document(#[from] DocumentError),
}

/// Adds a base image of each version to a repository, tagged as Microsoft tags them: an index of
/// one image under the full version.
pub fn add_base_images(
    stored: &mut RegistryState,
    repository: &str,
    versions: &[WindowsVersion],
) -> Result<(), StandInError> {
    for version in versions {
        let (image, layer) = base_image(*version)?;
        stored.add_blob(repository, layer);
        stored.add_blob(repository, image.config().bytes().clone());
        let manifest = image.manifest();
        stored.add_manifest(
            repository,
            image.digest().as_ref(),
            manifest.media_type(),
            manifest.bytes().clone(),
        );
        let index = Verbatim::new(Index::new(
            ManifestFormat::Docker,
            vec![image.index_entry()],
        ))?;
        let index = Document::Index(index);
        stored.add_manifest(
            repository,
            &version.os_version(),
            index.media_type(),
            index.bytes().clone(),
        );
    }
    Ok(())
}

fn base_image(version: WindowsVersion) -> Result<(Image, Bytes), StandInError> {
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
    .append_layer(NewLayer {
        blob: Descriptor::new(
            ManifestFormat::Docker.layer_gzip(),
            written.digest,
            written.size,
        ),
        diff_id: written.diff_id,
        history: History {
            created: Some(CREATED.to_owned()),
            created_by: Some("a stand-in for Windows".to_owned()),
            ..History::default()
        },
    })?
    .edit_config(|config| {
        config.created = Some(CREATED.to_owned());
        config.config.user = Some("ContainerUser".to_owned());
        config.config.cmd = Some(vec!["c:\\windows\\system32\\cmd.exe".to_owned()]);
    })?;
    Ok((image, blob.into()))
}
