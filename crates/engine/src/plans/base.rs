//! Bases of planned images.

use std::collections::HashMap;
use std::sync::Arc;

use wincimg_inspect::bases::{BaseImage, HOST_PROCESS, HostProcessBase, LocalBase};
use wincimg_oci::document::{Digest, Image};
use wincimg_oci::reference::Reference;
use wincimg_oci::remote::BlobSource;
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::{Location, LooseLayers, Source, StoreError};
use wincimg_recipe::{Plan, PlanBase, variable};
use wincimg_registry::UnknownBase;
use wincimg_windows::base_contents::BaseContents;
use wincimg_windows::search_path::VARIABLE;
use wincimg_windows::version::WindowsVersion;

use super::TargetHost;
use crate::direct::AddedLayer;

/// The base of an image.
#[derive(Debug, Clone)]
pub struct PlannedBase {
    /// Reference with tag and digest; none if it is in no registry.
    pub reference: Option<Reference>,
    /// The layout or archive that it is in; without a reference and this, wincimg makes it.
    pub local: Option<Location>,
    /// The image between steps that it is, if it is in neither.
    pub(crate) interim: Option<Arc<InterimImage>>,
    /// Its version; none if it has no Windows inside.
    pub os_version: Option<WindowsVersion>,
    /// Match with the host's version: exact, nearest, or any if there is none.
    pub matched: &'static str,
    /// Manifest and configuration.
    pub image: Image,
    /// Its contents, as far as they are known.
    pub inside: Arc<dyn BaseContents>,
}

/// An image between steps of a Dockerfile, in the Docker daemon that runs them.
#[derive(Debug)]
pub(crate) struct InterimImage {
    /// Its name in the daemon.
    pub(crate) name: String,
    /// Its layers above those of the image below.
    pub(crate) layers: Vec<Arc<AddedLayer>>,
    /// The image below.
    pub(crate) below: PlannedBase,
}

impl PlannedBase {
    /// The store that it is in; none if wincimg makes it.
    pub(crate) async fn source(
        &self,
        registry: &RegistryClient,
    ) -> Result<Option<Source>, StoreError> {
        let mut blobs: HashMap<Digest, Arc<dyn BlobSource>> = HashMap::new();
        let mut stored = self;
        while let Some(interim) = &stored.interim {
            for layer in &interim.layers {
                let bytes = Arc::clone(layer) as Arc<dyn BlobSource>;
                blobs.insert(layer.digest.clone(), bytes);
            }
            stored = &interim.below;
        }
        let source = stored.stored_source(registry).await?;
        Ok(source.map(|source| {
            if blobs.is_empty() {
                return source;
            }
            Source::Loose(LooseLayers::new(blobs, source))
        }))
    }

    async fn stored_source(&self, registry: &RegistryClient) -> Result<Option<Source>, StoreError> {
        match (&self.reference, &self.local) {
            (Some(reference), _) => Ok(Some(Source::Registry(registry.repository(reference)))),
            (None, Some(place)) => Source::open(place, registry).await.map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Digest of its manifest.
    pub fn digest(&self) -> &Digest {
        self.image.digest()
    }

    /// Its version, for reports.
    pub fn version_text(&self) -> Option<String> {
        self.os_version.map(|version| version.os_version())
    }

    /// Its name in reports, and of an image between steps in its daemon.
    pub fn label(&self) -> String {
        if let Some(interim) = &self.interim {
            return interim.name.clone();
        }
        match (&self.reference, &self.local) {
            (Some(reference), _) => reference.to_string(),
            (None, Some(place)) => format!("{place}@{}", self.digest()),
            (None, None) => HOST_PROCESS.to_owned(),
        }
    }

    /// Its name in messages: the tag, which says more than the pinned digest.
    pub fn display_name(&self) -> String {
        if let Some(interim) = &self.interim {
            return format!("docker-daemon:{}", interim.name);
        }
        match (&self.reference, &self.local) {
            (Some(reference), _) => format!(
                "{}/{}:{}",
                reference.registry(),
                reference.repository(),
                reference.tag().unwrap_or_default()
            ),
            (None, Some(place)) => place.to_string(),
            (None, None) => HOST_PROCESS.to_owned(),
        }
    }

    /// Initial plan for an image on it, without the base's `ONBUILD` instructions.
    pub(crate) fn plan_of(&self, name: &str, host: &TargetHost) -> Plan {
        Plan {
            name: name.to_owned(),
            base: PlanBase {
                on_build: Vec::new(),
                ..self.for_plan()
            },
            host_build: Some(host.build.version),
            ..Plan::default()
        }
    }

    /// The base as plans describe it.
    pub(super) fn for_plan(&self) -> PlanBase {
        let container = &self.image.config().config;
        PlanBase {
            name: self.display_name(),
            digest: self.digest().to_string(),
            os_version: self.os_version,
            shell: container.shell.clone(),
            user: container.user.clone().filter(|user| !user.is_empty()),
            path: variable(&container.env, VARIABLE).map(str::to_owned),
            on_build: container.on_build.clone(),
            container: container.clone(),
        }
    }
}

impl From<BaseImage> for PlannedBase {
    fn from(base: BaseImage) -> Self {
        Self {
            reference: Some(base.reference),
            local: None,
            interim: None,
            os_version: Some(base.os_version),
            matched: base.matched.name(),
            image: base.image,
            inside: Arc::new(UnknownBase),
        }
    }
}

impl From<LocalBase> for PlannedBase {
    fn from(base: LocalBase) -> Self {
        Self {
            reference: None,
            local: Some(base.location),
            interim: None,
            os_version: Some(base.os_version),
            matched: base.matched.name(),
            image: base.image,
            inside: Arc::new(UnknownBase),
        }
    }
}

impl From<HostProcessBase> for PlannedBase {
    fn from(base: HostProcessBase) -> Self {
        Self {
            reference: base.reference,
            local: None,
            interim: None,
            os_version: None,
            matched: "any",
            image: base.image,
            inside: Arc::new(UnknownBase),
        }
    }
}
