//! The ways out of a daemon: pushed by itself, or saved to a file and copied from there.

use std::path::Path;
use std::sync::Arc;

use tokio::io::AsyncWriteExt;

use super::deliver::{Built, DaemonDelivery, DaemonError, base_layers};
use crate::engine::delivered::{DeliveredLayer, layers_of};
use crate::engine::delivery::TRANSFERS;
use crate::oci::copy::{Copier, CopyOptions, CopyPlan};
use crate::oci::document::{Descriptor, Document, Flavour, Image, media_type::is_foreign};
use crate::oci::remote::{DaemonCredential, Repository};
use crate::oci::store::{Location, Sink, Source};

/// An image that left the daemon.
pub(super) struct Moved {
    pub(super) entry: Descriptor,
    pub(super) layers: Vec<DeliveredLayer>,
    pub(super) up_to_date: bool,
}

impl DaemonDelivery<'_> {
    /// Lets the daemon push, and looks in the registry at what arrived.
    pub(super) async fn push(
        &self,
        built: &Built<'_>,
        repository: &Repository,
        credential: Option<&DaemonCredential>,
    ) -> Result<Moved, DaemonError> {
        let before = repository.head_manifest(&built.tag).await?;
        let progress = self.progress.as_ref();
        let digest = self
            .daemon
            .push(&built.name, &built.tag, credential, progress)
            .await?;
        let source = Source::Registry(repository.clone());
        let image = match source.resolve(Some(&digest)).await? {
            Document::Manifest(manifest) => source.image(*manifest).await?,
            Document::Index(_) => {
                return Err(DaemonError::Index {
                    reference: format!("{}@{digest}", built.name),
                });
            }
        };
        if image
            .manifest()
            .layers
            .iter()
            .any(|layer| is_foreign(&layer.media_type))
        {
            self.progress.note(&format!(
                "Docker did not push the base's layers, which nodes will get from Microsoft: \
                 `wincimg mirror {}:{} --to …` brings them along",
                built.name, built.tag
            ));
        }
        Ok(Moved {
            up_to_date: before.is_some_and(|before| before.digest().to_string() == digest),
            entry: image.index_entry(),
            layers: layers_of(&image, base_layers(built.planned)),
        })
    }

    /// Takes an image out of the daemon, by way of a file, and copies it from there.
    pub(super) async fn save(
        &self,
        built: &Built<'_>,
        location: &Location,
        sink: &Sink,
        flavour: Option<Flavour>,
    ) -> Result<Moved, DaemonError> {
        let file = tempfile::Builder::new()
            .suffix(".tar")
            .tempfile()
            .map_err(DaemonError::Save)?;
        let name = format!("{}:{}", built.name, built.tag);
        self.save_to(&name, file.path()).await?;
        let source = Location::Archive {
            file: file.path().to_owned(),
            name: None,
        };
        let source = Source::open(&source, self.registry).await?;
        let options = CopyOptions {
            flavour,
            ..CopyOptions::default()
        };
        let plan = CopyPlan::new(&source, None, &options).await?;
        let copier = Copier::new(self.registry.clone(), Arc::clone(&self.progress), TRANSFERS);
        copier.copy(&plan, &source, sink, location.tag()).await?;
        let Document::Manifest(manifest) = plan.root else {
            return Err(DaemonError::Index {
                reference: location.to_string(),
            });
        };
        let config = source.read(&manifest.config).await?;
        let image = Image::new(*manifest, config)?;
        Ok(Moved {
            up_to_date: false,
            entry: image.index_entry(),
            layers: layers_of(&image, base_layers(built.planned)),
        })
    }

    async fn save_to(&self, name: &str, path: &Path) -> Result<(), DaemonError> {
        let task = self.progress.task(&format!("save {name}"), None);
        let mut pieces = self.daemon.save(name).await?;
        let mut file = tokio::fs::File::create(path)
            .await
            .map_err(DaemonError::Save)?;
        while let Some(piece) = pieces.next().await? {
            file.write_all(&piece).await.map_err(DaemonError::Save)?;
            task.advance(piece.len() as u64);
        }
        file.flush().await.map_err(DaemonError::Save)
    }
}
