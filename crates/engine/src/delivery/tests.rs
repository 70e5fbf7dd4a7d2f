//! Builds plans with a Windows daemon and delivers them to a registry: the daemon is replayed (see
//! `wincimg_testkit::windows_daemon`); the plans, the registry and the checked content are real.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use wincimg_common::diagnose::BoxError;
use wincimg_common::progress::Silent;
use wincimg_demo::{DemoRegistry, add_base_images};
use wincimg_dockerfile::RenderedDockerfile;
use wincimg_inspect::bases::{BaseImage, BaseMatch};
use wincimg_oci::document::{Image, sha256};
use wincimg_oci::remote::RegistryClient;
use wincimg_testkit::chain;
use wincimg_testkit::windows_builds::{as_shown, build, build_all, id};
use wincimg_testkit::windows_daemon::{WindowsDaemon, info, server_2019};
use wincimg_windows::compat::{HostBuild, Isolation};
use wincimg_windows::version::WindowsVersion;

use super::{
    AttachmentOptions, BuildPermit, BuiltImage, Delivery, DeliveryReport, DeliveryTarget,
    Destination, TagPolicy,
};
use crate::bases::BaseSearch;
use crate::definition::BuildInput;
use crate::docker::{Daemon, DockerBuildOptions, DockerEngine, Endpoint, Environment};
use crate::plans::{BuildRequest, PlannedImage, TargetHost};
use crate::publication::{NamingOptions, Publication};

/// A recipe that only Windows can build.
const RECIPE: &str = r#"
name = "app"
base = "nanoserver"
[[run]]
command = ["hostname"]
"#;

const OLD: WindowsVersion = WindowsVersion::new(17763, 973);
const LATER: WindowsVersion = WindowsVersion::new(17763, 1158);
const NEWER: WindowsVersion = WindowsVersion::new(20348, 2402);

/// A registry with bases, a daemon, and plans for hosts.
struct Site {
    stored: Arc<DemoRegistry>,
    registry: RegistryClient,
    windows: WindowsDaemon,
    images: Vec<PlannedImage>,
}

/// The base of an image as the replayed daemon's builds use it.
fn base_of(image: &PlannedImage) -> BaseImage {
    BaseImage {
        reference: image.base.reference().unwrap().clone(),
        index: None,
        os_version: image.base.os_version.unwrap(),
        matched: BaseMatch::Exact,
        image: image.base.image.clone(),
    }
}

impl Site {
    async fn new(hosts: &[WindowsVersion]) -> Self {
        let stored = Arc::new(DemoRegistry::start().unwrap());
        stored
            .with(|stored| add_base_images(stored, "mcr/windows/nanoserver", hosts))
            .unwrap();
        let registry =
            RegistryClient::new(wincimg_testkit::options(&stored.host()), Arc::new(Silent))
                .unwrap();
        let images = plan(&registry, &format!("{}/mcr", stored.host()), hosts).await;
        let site = Self {
            stored,
            registry,
            windows: WindowsDaemon::start(),
            images,
        };
        site.build_all();
        site
    }

    fn build_all(&self) {
        let bases: Vec<BaseImage> = self.images.iter().map(base_of).collect();
        build_all(&self.windows, &self.stored, &bases);
    }

    async fn deliver(
        &self,
        options: DockerBuildOptions,
        destinations: &[Destination],
    ) -> Result<DeliveryReport, BoxError> {
        let endpoint = Endpoint::find(Some(&self.windows.host()), &Environment::default()).unwrap();
        let daemon = Daemon::connect(endpoint).await.unwrap();
        let info = daemon.info().await.unwrap();
        let registry = destinations.iter().find_map(|place| match place {
            Destination::Registry(registry) => Some(registry.clone()),
            _ => None,
        });
        let engine = DockerEngine {
            daemon: &daemon,
            info: &info,
            registry: &self.registry,
            options,
            pushes: registry.is_some(),
            named_after: registry.clone(),
            progress: &Silent,
        };
        let target = DeliveryTarget {
            naming: NamingOptions::tagged("team/app", "1.4"),
            destinations: destinations.to_vec(),
            named_after: registry,
            flavour: None,
            existing: TagPolicy::Protect,
            documents: AttachmentOptions::default(),
            review: &|_| Ok(()),
            permit: BuildPermit::default(),
        };
        let publication = Publication::new(&self.images, &target.naming).unwrap();
        let dockerfiles: Vec<RenderedDockerfile> = self.images.iter().map(dockerfile).collect();
        let making = async {
            let made = engine.build_images(&publication, &dockerfiles).await?;
            Ok(made
                .into_iter()
                .map(Box::new)
                .map(BuiltImage::InDaemon)
                .collect())
        };
        let delivery = Delivery {
            registry: &self.registry,
            progress: Arc::new(Silent),
            target: &target,
            carried: Vec::new(),
            index_fields: None,
        };
        Box::pin(delivery.deliver(&publication, making)).await
    }

    fn to_registry(&self) -> [Destination; 1] {
        [Destination::Registry(self.stored.host().parse().unwrap())]
    }
}

/// Plans of the recipe.
async fn plan(
    registry: &RegistryClient,
    bases: &str,
    hosts: &[WindowsVersion],
) -> Vec<PlannedImage> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recipe.toml");
    fs::write(&path, RECIPE).unwrap();
    let hosts: Vec<TargetHost> = hosts
        .iter()
        .map(|version| TargetHost {
            build: HostBuild::new(*version),
            nodes: Vec::new(),
        })
        .collect();
    let named = BuildInput {
        image: path.display().to_string(),
        context: Some(folder.path().to_owned()),
        ..BuildInput::default()
    };
    let design = named.read(&Silent).unwrap();
    let request = BuildRequest::new(design, hosts, bases.parse().unwrap(), BaseMatch::Exact);
    let search = BaseSearch::new(registry);
    request.on_bases(&request.hosts, &search).await.unwrap()
}

fn dockerfile(planned: &PlannedImage) -> RenderedDockerfile {
    let name = &planned.plan.base.name;
    RenderedDockerfile {
        dockerfile: format!("FROM {name}\nRUN [\"hostname\"]\n"),
        context: Vec::new(),
        ..RenderedDockerfile::default()
    }
}

#[test]
async fn a_pushed_image_is_reported_as_the_registry_has_it() {
    let site = Site::new(&[OLD]).await;
    let delivered = site
        .deliver(DockerBuildOptions::default(), &site.to_registry())
        .await
        .unwrap();
    let image = &delivered.images[0];
    assert_eq!(
        image.reference,
        format!("{}/team/app:1.4", site.stored.host())
    );
    assert_eq!(
        image.digest,
        build(&base_of(&site.images[0])).digest().to_string()
    );
    assert_eq!(image.engine, "docker");
    assert_eq!(image.os_version.as_deref(), Some("10.0.17763.973"));
    assert!(image.pushed && !image.up_to_date);
    let from: Vec<&str> = image.layers.iter().map(|layer| layer.from).collect();
    assert_eq!(from, ["base", "recipe"]);
    assert!(
        image
            .layers
            .iter()
            .all(|layer| layer.digest.is_some() && layer.size.is_some())
    );
    assert!(delivered.index.is_none());

    site.build_all();
    let again = site
        .deliver(DockerBuildOptions::default(), &site.to_registry())
        .await
        .unwrap();
    assert!(again.images[0].up_to_date);
}

#[test]
async fn images_for_several_hosts_get_an_index_over_what_was_pushed() {
    let site = Site::new(&[OLD, NEWER]).await;
    let server_2022 = "Windows Server 2022 Datacenter Version 21H2 (OS Build 20348.2402)";
    site.windows
        .script(|script| script.info = info(server_2022, "process"));
    let options = DockerBuildOptions {
        // Only Hyper-V isolation runs both builds on one host.
        isolation: Some(Isolation::HyperV),
        ..DockerBuildOptions::default()
    };
    let delivered = site.deliver(options, &site.to_registry()).await.unwrap();
    let tags: Vec<&str> = delivered
        .images
        .iter()
        .map(|image| image.reference.rsplit_once(':').unwrap().1)
        .collect();
    assert_eq!(tags, ["1.4-10.0.17763.973", "1.4-10.0.20348.2402"]);
    let index = delivered.index.unwrap();
    assert_eq!(
        index.reference,
        format!("{}/team/app:1.4", site.stored.host())
    );
    let repository = wincimg_testkit::repository(
        wincimg_testkit::options(&site.stored.host()),
        &index.reference,
    );
    let raw = repository.get_manifest("1.4").await.unwrap();
    assert_eq!(raw.digest.to_string(), index.digest);
    let document: Value = serde_json::from_slice(&raw.bytes).unwrap();
    let versions: Vec<&str> = document["manifests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["platform"]["os.version"].as_str().unwrap())
        .collect();
    assert_eq!(versions, ["10.0.20348.2402", "10.0.17763.973"]);
}

#[test]
async fn without_a_destination_the_image_stays_in_the_daemon_under_its_name() {
    let site = Site::new(&[OLD]).await;
    let delivered = site
        .deliver(DockerBuildOptions::default(), &[])
        .await
        .unwrap();
    let image = &delivered.images[0];
    assert_eq!(image.reference, "team/app:1.4");
    assert_eq!(image.digest, id(&build(&base_of(&site.images[0]))));
    assert!(!image.pushed);
    assert_eq!(image.layers[1].digest, None);
    assert_eq!(site.windows.asked("/tag")[0].query["repo"], "team/app");
    assert!(site.windows.asked("/push").is_empty());
}

/// `docker save` of an image, in the format used since Docker 25 too.
fn saved(image: &Image, layers: &[Bytes]) -> Vec<u8> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut add = |name: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, bytes).unwrap();
    };
    let config = format!("{}.json", image.config().digest().digest());
    add(&config, image.config().bytes());
    let mut names = Vec::new();
    for (number, layer) in layers.iter().enumerate() {
        names.push(format!("{number}/layer.tar"));
        add(&names[number], layer);
    }
    let manifest = json!([{"Config": config, "RepoTags": ["team/app:1.4"], "Layers": names}]);
    add("manifest.json", manifest.to_string().as_bytes());
    archive.into_inner().unwrap()
}

#[test]
async fn an_image_can_be_taken_out_of_the_daemon_into_a_layout() {
    let site = Site::new(&[OLD]).await;
    let (lower, upper) = (Bytes::from("a tar below"), Bytes::from("a tar above"));
    // The daemon saves layers uncompressed; any other blob serves as the base here.
    let mut image = build(&base_of(&site.images[0]));
    image = image
        .edit_config(|config| config.rootfs.diff_ids = vec![sha256(&lower), sha256(&upper)])
        .unwrap();
    site.windows
        .script(|script| script.saved = saved(&image, &[lower, upper]));
    let folder = tempfile::tempdir().unwrap();
    let layout = folder.path().join("app");
    let destinations = [Destination::Layout(layout.clone())];
    let delivered = site
        .deliver(DockerBuildOptions::default(), &destinations)
        .await
        .unwrap();
    let reported = &delivered.images[0];
    assert_eq!(reported.reference, format!("oci:{}:1.4", layout.display()));
    assert_eq!(
        site.windows.asked("/images/get")[0].query["names"],
        "team/app:1.4"
    );
    let manifest = blob(&layout, &reported.digest);
    assert_eq!(
        manifest["mediaType"],
        "application/vnd.oci.image.manifest.v1+json"
    );
    for layer in &reported.layers {
        assert_eq!(layer.digest.as_deref(), Some(layer.diff_id.as_str()));
    }
}

fn blob(layout: &Path, digest: &str) -> Value {
    let file = layout
        .join("blobs/sha256")
        .join(digest.trim_start_matches("sha256:"));
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

#[test]
async fn what_the_daemon_built_is_held_against_the_plan() {
    let site = Site::new(&[OLD]).await;
    let image = build(&base_of(&site.images[0]));
    let right = as_shown(&image);
    for (change, expected) in [
        (
            json!({"OsVersion": "10.0.17763.1"}),
            "image of windows 10.0.17763.1: expected windows 10.0.17763.973",
        ),
        (json!({"Os": "linux"}), "image of linux 10.0.17763.973"),
        (
            json!({"RootFS": {"Type": "layers", "Layers": ["sha256:00"]}}),
            "on layers that are not those of the base",
        ),
        (
            json!({"RootFS": null}),
            "on layers that are not those of the base",
        ),
    ] {
        site.build_all();
        let mut wrong = right.clone();
        for (key, value) in change.as_object().unwrap() {
            wrong[key] = value.clone();
        }
        site.windows.script(|script| {
            script.images.insert(id(&image), wrong);
        });
        let delivered = site
            .deliver(DockerBuildOptions::default(), &site.to_registry())
            .await;
        let error = delivered.unwrap_err();
        assert!(chain(error.as_ref()).contains(expected), "{error}");
        assert!(error.diagnosis().hint.unwrap().contains("--pull"));
        assert!(
            site.windows.asked("/tag").is_empty(),
            "it got a name all the same"
        );
    }
}

#[test]
async fn a_base_that_cannot_run_there_is_refused_before_anything_is_sent() {
    const OLDER_HOST: &str = "Windows Server 2016 Datacenter Version 1607 (OS Build 14393.5000)";
    let site = Site::new(&[LATER]).await;
    let before = server_2019(973);
    let none = None;
    let hyperv = Some(Isolation::HyperV);
    for (system, default, asked, expected) in [
        (
            before.as_str(),
            "process",
            none,
            Some("add --isolation hyperv"),
        ),
        (&before, "process", hyperv, None),
        (&before, "hyperv", none, None),
        (
            &before,
            "hyperv",
            Some(Isolation::Process),
            Some("add --isolation hyperv"),
        ),
        (&server_2019(1158), "process", none, None),
        (OLDER_HOST, "process", none, Some("not older than the base")),
        (OLDER_HOST, "hyperv", none, Some("not older than the base")),
        // Windows 10 runs it under Hyper-V isolation alone.
        (
            "Windows 10 Pro Version 1809 (OS Build 17763.1158)",
            "process",
            none,
            Some("add --isolation hyperv"),
        ),
        // An old Docker does not report its host's revision, so the result is unknown.
        ("Windows Server 2019 Datacenter", "process", none, None),
    ] {
        site.build_all();
        site.windows
            .script(|script| script.info = info(system, default));
        let builds = site.windows.asked("/build").len();
        let options = DockerBuildOptions {
            isolation: asked,
            ..DockerBuildOptions::default()
        };
        let delivered = site.deliver(options, &site.to_registry()).await;
        match (expected, delivered) {
            (None, Ok(_)) => {}
            (Some(hint), Err(error)) => {
                assert!(
                    chain(error.as_ref()).contains("cannot run the base"),
                    "{error}"
                );
                assert!(
                    error.diagnosis().hint.unwrap().contains(hint),
                    "{system} {default}"
                );
                assert_eq!(site.windows.asked("/build").len(), builds);
            }
            (expected, delivered) => panic!("{system} {default}: {expected:?} {delivered:?}"),
        }
    }
}

#[test]
async fn a_registry_that_the_daemon_does_not_trust_is_refused_with_what_to_write() {
    let site = Site::new(&[OLD]).await;
    site.windows
        .script(|script| script.info["RegistryConfig"]["InsecureRegistryCIDRs"] = json!([]));
    let delivered = site
        .deliver(DockerBuildOptions::default(), &site.to_registry())
        .await;
    let error = delivered.unwrap_err();
    let host = site.stored.host();
    assert!(chain(error.as_ref()).contains(&format!("does not trust the registry {host}")));
    let hint = error.diagnosis().hint.unwrap();
    assert!(
        hint.contains(&format!(r#"{{"insecure-registries":["{host}"]}}"#)),
        "{hint}"
    );
    assert!(hint.contains("Restart-Service docker"), "{hint}");
    assert!(site.windows.asked("/build").is_empty());
}

#[test]
async fn a_linux_daemon_is_refused_and_its_flag_named() {
    let site = Site::new(&[OLD]).await;
    site.windows
        .script(|script| script.info["OSType"] = json!("linux"));
    let error = site
        .deliver(DockerBuildOptions::default(), &[])
        .await
        .unwrap_err();
    assert!(chain(error.as_ref()).contains("runs linux containers: expected windows"));
    assert!(error.diagnosis().hint.unwrap().contains("--docker-host"));
}
