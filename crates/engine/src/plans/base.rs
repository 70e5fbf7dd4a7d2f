//! Bases of planned images.

use std::collections::HashMap;
use std::sync::Arc;

use wincimg_common::diagnose::BoxError;
use wincimg_inspect::bases::{
    BaseImage, BaseMatch, HOST_PROCESS, RejectedTag, Resolution, read_local_base,
};
use wincimg_oci::document::media_type::is_foreign;
use wincimg_oci::document::{Digest, Image};
use wincimg_oci::reference::{Reference, tagged_name};
use wincimg_oci::remote::BlobSource;
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::{Location, LooseLayers, Source, StoreError};
use wincimg_recipe::{Plan, PlanBase};
use wincimg_registry::UnknownBase;
use wincimg_windows::base_contents::BaseContents;
use wincimg_windows::compat::HostBuild;
use wincimg_windows::version::WindowsVersion;

use super::TargetHost;
use super::history::BaseMetadata;
use crate::direct::AddedLayer;

/// Note in the history of a layer of this program that has hives.
pub(crate) const HIVES: &str = "io.wincimg.hives";

/// The base of an image.
#[derive(Debug, Clone)]
pub struct PlannedBase {
    /// Its place, in a registry by tag and digest; none if wincimg makes it.
    pub place: Option<Location>,
    /// The image between steps that it is, if it has no place.
    pub(crate) interim: Option<Arc<InterimImage>>,
    /// Its version; none if it has no Windows inside.
    pub os_version: Option<WindowsVersion>,
    /// Match with the host's version; none if it runs on any.
    pub matched: Option<BaseMatch>,
    /// Manifest and configuration.
    pub image: Image,
    /// Its contents, as far as they are known.
    pub inside: Arc<dyn BaseContents>,
    /// The tags that were skipped because they contradict their images, until they are reported.
    pub set_aside: Vec<RejectedTag>,
}

/// An image between steps of a Dockerfile, in the Docker daemon that runs them.
#[derive(Debug)]
pub(crate) struct InterimImage {
    /// Its name in the daemon.
    pub(crate) name: String,
    /// Its layers above those of the image below.
    pub(crate) layers: Vec<Arc<AddedLayer>>,
    pub(crate) below: PlannedBase,
}

impl PlannedBase {
    /// A base that runs on any host; nothing is known of its contents.
    pub(crate) fn new(place: Option<Location>, image: Image) -> Self {
        Self {
            place,
            interim: None,
            os_version: None,
            matched: None,
            image,
            inside: Arc::new(UnknownBase),
            set_aside: Vec::new(),
        }
    }

    /// The image of a layout or archive for a host.
    pub(super) async fn local(
        place: &Location,
        registry: &RegistryClient,
        host: HostBuild,
        matched: BaseMatch,
    ) -> Result<Self, BoxError> {
        let (os_version, image) = read_local_base(place, registry, host, matched).await?;
        Ok(Self {
            os_version: Some(os_version),
            matched: Some(BaseMatch::compare(os_version, host)),
            ..Self::new(Some(place.clone()), image)
        })
    }

    /// Another image, for the same hosts.
    pub(crate) fn with_image(&self, place: Option<Location>, image: Image) -> Self {
        Self {
            os_version: self.os_version,
            matched: self.matched,
            ..Self::new(place, image)
        }
    }

    /// Reference with tag and digest, if it is in a registry.
    pub fn reference(&self) -> Option<&Reference> {
        match &self.place {
            Some(Location::Registry(reference)) => Some(reference),
            _ => None,
        }
    }

    /// Its match in reports: exact, nearest, or any.
    pub fn match_name(&self) -> &'static str {
        self.matched.map_or("any", BaseMatch::name)
    }

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
        let Some(place) = &stored.place else {
            return Ok(None);
        };
        let source = Source::open(place, registry).await?;
        let mut foreign = stored.image.manifest().layers.clone();
        // The images above it have no URLs.
        foreign.retain(|layer| {
            self.interim.is_some() && is_foreign(&layer.media_type) && !layer.urls.is_empty()
        });
        for layer in foreign {
            if !source.has_blob(&layer).await? {
                let there = registry.url_source(&layer.urls, &layer);
                blobs.insert(layer.digest, Arc::new(there));
            }
        }
        Ok(Some(if blobs.is_empty() {
            source
        } else {
            Source::Loose(LooseLayers::new(blobs, source))
        }))
    }

    /// Digest of its manifest.
    pub fn digest(&self) -> &Digest {
        self.image.digest()
    }

    /// Returns true if it may have what layers on it keep only if it is read: its history names a
    /// command that makes such things, or fewer layers than there are.
    pub(super) fn may_have(&self, metadata: BaseMetadata) -> bool {
        let config = self.image.config();
        let steps = config.history.iter().filter(|step| !step.empty_layer);
        steps.count() < config.rootfs.diff_ids.len() || self.names(metadata)
    }

    /// Returns true if its history names a command for it.
    pub(super) fn names(&self, metadata: BaseMetadata) -> bool {
        let history = self.image.config().history.iter();
        let mut steps = history.filter(|step| !step.empty_layer);
        steps.any(|step| {
            step.created_by
                .as_deref()
                .is_some_and(|text| metadata.is_in(text))
        })
    }

    /// Returns true if its topmost layer is of this program and has hives.
    pub(super) fn ends_with_hives(&self) -> bool {
        let mut steps = self.image.config().history.iter().rev();
        let top = steps.find(|step| !step.empty_layer);
        let notes = top.and_then(|step| step.comment.as_deref());
        notes.is_some_and(|notes| notes.split_whitespace().any(|note| note == HIVES))
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
        match &self.place {
            Some(Location::Registry(reference)) => reference.to_string(),
            Some(place) => format!("{place}@{}", self.digest()),
            None => HOST_PROCESS.to_owned(),
        }
    }

    /// Its name in messages: the tag, which says more than the pinned digest.
    pub fn display_name(&self) -> String {
        if let Some(interim) = &self.interim {
            return format!("docker-daemon:{}", interim.name);
        }
        match &self.place {
            Some(Location::Registry(reference)) => tagged_name(reference),
            Some(place) => place.to_string(),
            None => HOST_PROCESS.to_owned(),
        }
    }

    /// Initial plan for an image on it, without the base's `ONBUILD` instructions.
    pub(crate) fn plan_of(&self, name: &str, host: Option<&TargetHost>) -> Plan {
        Plan {
            name: name.to_owned(),
            base: PlanBase {
                on_build: Vec::new(),
                ..self.for_plan()
            },
            host_build: host.map(|host| host.build.version),
            ..Plan::default()
        }
    }

    pub(super) fn for_plan(&self) -> PlanBase {
        let container = &self.image.config().config;
        PlanBase {
            name: self.display_name(),
            digest: self.digest().to_string(),
            os_version: self.os_version,
            shell: container.shell.clone(),
            user: container.user.clone().filter(|user| !user.is_empty()),
            on_build: container.on_build.clone(),
            container: container.clone(),
        }
    }
}

impl From<Resolution> for PlannedBase {
    fn from(found: Resolution) -> Self {
        Self {
            set_aside: found.set_aside,
            ..found.base.into()
        }
    }
}

impl From<BaseImage> for PlannedBase {
    fn from(base: BaseImage) -> Self {
        Self {
            os_version: Some(base.os_version),
            matched: Some(base.matched),
            ..Self::new(Some(Location::Registry(base.reference)), base.image)
        }
    }
}

#[cfg(test)]
mod tests {
    use wincimg_common::progress::Silent;
    use wincimg_oci::document::{Descriptor, History, ManifestFormat, Platform, sha256};
    use wincimg_oci::reference::parse_reference;
    use wincimg_testkit::loopback_options;
    use wincimg_testkit::mirror_fixture::FOREIGN;
    use wincimg_testkit::scripted::{answer, scripted};

    use super::*;

    /// A base with these steps, each with true for a layer.
    fn base(steps: &[(&str, bool)]) -> PlannedBase {
        let platform = Platform::windows("10.0.17763.973");
        let mut image = Image::empty(ManifestFormat::Oci, platform).unwrap();
        for (text, has_layer) in steps {
            let history = History {
                created_by: Some((*text).to_owned()),
                empty_layer: !has_layer,
                ..History::default()
            };
            let layer = Descriptor::new("application/x", sha256(text.as_bytes()), 1);
            image = if *has_layer {
                image.append_layer(layer, sha256(text.as_bytes()), history)
            } else {
                image.edit_config(|config| config.history.push(history))
            }
            .unwrap();
        }
        PlannedBase::new(None, image)
    }

    #[test]
    fn a_base_is_read_if_its_history_says_so_or_not_enough() {
        const WINDOWS: (&str, bool) = ("Apply image 10.0.17763.973", true);
        let found = |base: &PlannedBase| {
            [BaseMetadata::Files, BaseMetadata::Keys].map(|metadata| base.may_have(metadata))
        };
        for (step, expected) in [
            (("COPY dir /app # buildkit", true), [false, false]),
            (("ENV A=icacls", false), [false, false]),
            ((r"RUN icacls C:\app /reset", true), [true, false]),
            (
                (r"wincimg build app, regini HKLM\SOFTWARE\App", true),
                [false, true],
            ),
        ] {
            assert_eq!(found(&base(&[WINDOWS, step])), expected, "{step:?}");
        }
        let squashed = base(&[WINDOWS, ("COPY dir /app", true)]);
        let image = squashed
            .image
            .edit_config(|config| config.history.truncate(1));
        assert_eq!(found(&PlannedBase::new(None, image.unwrap())), [true, true]);
    }

    #[test]
    fn a_base_ends_with_hives_if_its_topmost_layer_has_them() {
        let ends_with_hives = |noted: usize| {
            let steps = [
                ("Apply image", true),
                ("COPY a b", true),
                ("ENV A=1", false),
            ];
            let image = base(&steps).image.edit_config(|config| {
                config.history[noted].comment = Some(format!("io.wincimg.inputs=a {HIVES}"));
            });
            PlannedBase::new(None, image.unwrap()).ends_with_hives()
        };
        assert_eq!([0, 1].map(ends_with_hives), [false, true]);
    }

    #[test]
    async fn a_foreign_layer_below_steps_is_read_from_its_url() {
        let (_, served) = scripted(|asked| match asked.path.as_str() {
            "/layer" | "/v2/" => answer(200, &[], "layer"),
            _ => answer(404, &[], ""),
        });
        let digest = sha256(b"layer");
        let mut layer = Descriptor::new(FOREIGN, digest.clone(), 5);
        layer.urls = vec![served.url("layer")];
        let platform = Platform::windows("10.0.17763.973");
        let image = Image::empty(ManifestFormat::Docker, platform).unwrap();
        let image = image.append_layer(layer, digest, History::default());
        let image = image.unwrap();
        let reference = parse_reference(&format!("{}/base:1", served.host())).unwrap();
        let above = PlannedBase::new(None, image.with_distributable_layers().unwrap());
        let interim = InterimImage {
            name: "wincimg-cache:a".to_owned(),
            layers: Vec::new(),
            below: PlannedBase::new(Some(Location::Registry(reference)), image),
        };
        let above = PlannedBase {
            interim: Some(Arc::new(interim)),
            ..above
        };
        let registry = RegistryClient::new(loopback_options(None), Arc::new(Silent)).unwrap();
        let source = above.source(&registry).await.unwrap().unwrap();
        let blob = &above.image.manifest().layers[0];
        assert_eq!(source.bytes(blob, 10).await.unwrap(), "layer");
    }
}
