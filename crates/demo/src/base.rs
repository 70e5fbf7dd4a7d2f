//! Base images for a demonstration: right in every way that a registry shows, but for the Windows.

use bytes::Bytes;
use wincimg_common::diagnose::Diagnose;
use wincimg_layer::{LayerError, WriteOptions};
use wincimg_oci::document::{
    Descriptor, Document, DocumentError, History, Image, Index, ManifestFormat, NewLayer, Platform,
    Verbatim,
};
use wincimg_windows::version::WindowsVersion;

use super::server::RegistryState;

/// What the bases say about when they were made.
const CREATED: &str = "2020-01-14T00:00:00Z";
const CREATED_SECONDS: u64 = 1_578_960_000;

/// A stand-in that could not be made.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "internal/stand-in")]
pub enum StandInError {
    /// Its layer.
    #[error("the stand-in's layer could not be written")]
    Layer(#[from] LayerError),
    /// Its documents.
    #[error("the stand-in's documents could not be written")]
    Document(#[from] DocumentError),
}

/// Puts a base image of each version into a repository, tagged as Microsoft tags them: an index of
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
