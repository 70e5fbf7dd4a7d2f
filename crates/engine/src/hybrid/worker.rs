//! Workers: machines with Windows that run the steps of a segment.
//!
//! Where no repository is named, images between steps are in the Docker daemon that runs the steps: the
//! image below is loaded into it, and the result is saved by it and stays there.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::Mutex;
use wincimg_cluster::live::PodChange;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_dockerfile::stages::WindowsSegment;
use wincimg_oci::document::Image;

use super::buildkit::BuildkitWorker;
use super::{CacheRepository, HybridBuild, digits};
use crate::build::{BuildContext, EngineOptions};
use crate::direct::{AddedLayer, assemble_directly};
use crate::docker::{
    Daemon, DockerBuildOptions, DockerEngine, Info, Preflight, StepError, connect_windows,
};
use crate::plans::{InterimImage, PlannedBase, PlannedImage};
use crate::publication::{NamingOptions, Publication};

/// How often steps start again because the daemon's pod was evicted.
const MAX_EVICTIONS: usize = 3;

/// Steps for a worker.
pub(super) struct WindowsBuild<'a> {
    /// The image below, in a registry or for the daemon.
    pub(super) ground: &'a PlannedImage,
    pub(super) segment: &'a WindowsSegment,
    /// The repository for the result; none if it stays in the daemon.
    pub(super) repository: Option<&'a CacheRepository>,
    pub(super) tag: &'a str,
}

/// The worker of a request: a machine that runs steps on Windows.
pub(super) enum Worker {
    /// A Docker daemon, also of a builder on nodes.
    Docker(Box<DockerWorker>),
    /// `BuildKit`'s daemon.
    Buildkit(Box<BuildkitWorker>),
}

impl Worker {
    /// Connects to the worker of the options; of a builder, to that for the first of the builds.
    pub(super) async fn connect(
        options: &EngineOptions,
        builds: &[u32],
        ctx: &BuildContext<'_>,
    ) -> Result<Self, BoxError> {
        Ok(match options.buildkit() {
            Some(address) => Self::Buildkit(Box::new(
                BuildkitWorker::connect(address, options, ctx).await?,
            )),
            None => Self::Docker(Box::new(DockerWorker::connect(options, builds).await?)),
        })
    }

    /// Checks that steps on an image can run there, as far as that is known.
    pub(super) fn check_base(&self, base: &PlannedBase) -> Result<(), Problem> {
        let Some(version) = base.os_version else {
            return Ok(());
        };
        match self {
            Self::Docker(worker) => {
                let preflight = Preflight::new(&worker.daemon, &worker.info);
                preflight.check_base(version, worker.options.isolation)?;
                Ok(())
            }
            Self::Buildkit(worker) => worker.check_base(version),
        }
    }

    /// The daemon, which keeps images itself; `BuildKit` needs a repository for them.
    pub(super) fn docker(&self) -> Result<&DockerWorker, BoxError> {
        match self {
            Self::Docker(worker) => Ok(worker),
            Self::Buildkit(_) => Err(no_place(NO_REPOSITORY)),
        }
    }

    /// A segment in the syntax of the worker.
    pub(super) fn adapt(&self, segment: &WindowsSegment) -> WindowsSegment {
        let segment = segment.clone();
        match self {
            Self::Docker(worker) if !worker.daemon.has_argument_lists() => {
                segment.with_single_arguments()
            }
            Self::Docker(_) | Self::Buildkit(_) => segment,
        }
    }

    /// Runs the steps, pushes the result to its repository, and returns its digest.
    pub(super) async fn run(
        &self,
        build: &WindowsBuild<'_>,
        ctx: &BuildContext<'_>,
    ) -> Result<String, BoxError> {
        match self {
            Self::Docker(worker) => worker.run(build, ctx).await,
            Self::Buildkit(worker) => worker.run(build, ctx).await,
        }
    }
}

/// A Docker daemon for Windows containers.
pub(super) struct DockerWorker {
    pub(super) daemon: Daemon,
    info: Info,
    options: DockerBuildOptions,
    /// Builds run one after the other: they share the daemon's machine.
    turn: Mutex<()>,
}

impl DockerWorker {
    async fn connect(options: &EngineOptions, builds: &[u32]) -> Result<Self, BoxError> {
        let (daemon, info) = connect_windows(options, builds).await?;
        Ok(Self {
            daemon,
            info,
            options: options.for_daemon(),
            turn: Mutex::new(()),
        })
    }

    /// Build arguments of a segment, and the proxies of Docker's configuration.
    fn arguments(&self, segment: &WindowsSegment) -> BTreeMap<String, String> {
        let mut arguments = segment.arguments.clone();
        let proxies = self.options.proxies();
        arguments.extend(proxies.map(|(name, value)| (name.clone(), value.clone())));
        let settings = &self.daemon.endpoint().settings;
        settings.add_proxies(&mut arguments);
        arguments
    }

    async fn run(
        &self,
        build: &WindowsBuild<'_>,
        ctx: &BuildContext<'_>,
    ) -> Result<String, BoxError> {
        let _turn = self.turn.lock().await;
        let mut evictions = 0;
        loop {
            let error = match self.run_once(build, ctx).await {
                Ok(digest) => return Ok(digest),
                Err(error) => error,
            };
            let Some(pod) = self.daemon.builder() else {
                return Err(error);
            };
            // A daemon that is being stopped may say that the step failed.
            let is_lost = match pod.change().await {
                PodChange::Gone => true,
                PodChange::Unready => failed_step(error.as_ref()).is_none(),
                PodChange::None => false,
            };
            if evictions == MAX_EVICTIONS || !is_lost {
                return Err(error);
            }
            evictions += 1;
            ctx.reporter.warn(&format_args!(
                "the pod {} is gone: waiting for its successor, on which the running step starts \
                 again",
                pod.pod()
            ));
            pod.wait_until_ready().await?;
        }
    }

    async fn run_once(
        &self,
        build: &WindowsBuild<'_>,
        ctx: &BuildContext<'_>,
    ) -> Result<String, BoxError> {
        let name = build.repository.map_or(NAME, |it| &it.name);
        let naming = NamingOptions::tagged(name, build.tag);
        let images = std::slice::from_ref(build.ground);
        let publication = Publication::new(images, &naming)?;
        let dockerfile = build.segment.dockerfile(&build.ground.base.label());
        let engine = DockerEngine {
            daemon: &self.daemon,
            info: &self.info,
            registry: &ctx.registry,
            options: DockerBuildOptions {
                arguments: self.arguments(build.segment),
                ..self.options.clone()
            },
            named_after: build.repository.map(|it| it.registry.clone()),
            pushes: build.repository.is_some(),
            progress: ctx.progress.as_ref(),
        };
        let loading = Box::pin(engine.load(&build.ground.base));
        loading.await.map_err(not_loaded)?;
        let made = Box::pin(engine.build_images(&publication, &[dockerfile])).await?;
        let mut digest = String::new();
        for image in made {
            digest = match build.repository {
                Some(_) => image.push(ctx.progress.as_ref()).await?,
                None => image.info.id,
            };
        }
        Ok(digest)
    }
}

/// The failure of a step of a worker's Dockerfile, if one failed.
pub(super) fn failed_step<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a StepError> {
    std::iter::successors(Some(error), |error| error.source()).find_map(|it| it.downcast_ref())
}

/// Name of the images in the daemon.
pub(super) const NAME: &str = "wincimg-cache";

impl HybridBuild<'_> {
    /// Makes the image below a segment, with its layers here.
    pub(super) async fn make_below(&self, planned: &PlannedImage) -> Result<PlannedBase, BoxError> {
        let naming = NamingOptions::tagged(NAME, "windows-base");
        if planned.base.source(&self.ctx.registry).await?.is_none() {
            return Err(no_place(NO_STORE));
        }
        let publication = Publication::new(std::slice::from_ref(planned), &naming)?;
        let making = assemble_directly(&publication, &self.request.options, self.ctx);
        let made = Box::pin(making).await?.pop();
        let nothing = || Problem::new("internal/segment", "no image was made below a step");
        let made = made.ok_or_else(nothing)?;
        let tag = format!("windows-base-{}", digits(made.image.config().digest()));
        Ok(interim(&tag, made.image, made.added, &planned.base))
    }
}

/// The ways to keep images between steps.
const HINT: &str = "push the image with --registry HOST[:PORT][/PREFIX] --push, or add \
                    --cache-to REPOSITORY";

const NO_STORE: &str = "steps on Windows require a repository for the images below and above \
                        them, or a base that the daemon can pull or load";

/// Why `BuildKit` needs one.
pub(super) const NO_REPOSITORY: &str =
    "BuildKit requires a repository for the images below and above the steps";

/// Error for images below and above steps that can be kept nowhere.
pub(super) fn no_place(problem: &str) -> BoxError {
    Problem::request("usage/cache", problem).hint(HINT).into()
}

/// Error for an image below steps that the daemon did not load.
pub(super) fn not_loaded(error: BoxError) -> BoxError {
    let remedy = error.diagnosis().hint;
    let remedy = remedy.map_or_else(String::new, |hint| format!("{hint}; or "));
    let what = "the image below the steps, in no registry, cannot be loaded into the Docker daemon";
    Problem::context(what, error)
        .hint(format!("{remedy}{HINT}"))
        .into()
}

impl DockerWorker {
    /// The result of a segment in the daemon, if that has it on the image below.
    pub(super) async fn find(
        &self,
        tag: &str,
        below: &PlannedBase,
        build: &HybridBuild<'_>,
    ) -> Result<Option<PlannedBase>, BoxError> {
        let Some(found) = self.daemon.find_image(&format!("{NAME}:{tag}")).await? else {
            return Ok(None);
        };
        if !found.is_on(&below.image) {
            return Ok(None);
        }
        self.save(tag, below, build).await.map(Some)
    }

    /// The result of a segment, whose layers above the image below are saved.
    pub(super) async fn save(
        &self,
        tag: &str,
        below: &PlannedBase,
        build: &HybridBuild<'_>,
    ) -> Result<PlannedBase, BoxError> {
        let name = format!("{NAME}:{tag}");
        let compression = build.request.options.compression;
        let progress = build.ctx.progress.as_ref();
        let saving = self
            .daemon
            .save_above(&name, &below.image, compression, progress);
        let (image, layers) = Box::pin(saving).await?;
        Ok(interim(tag, image, layers, below))
    }
}

/// An image of the daemon on another, for the same hosts.
fn interim(
    tag: &str,
    image: Image,
    layers: Vec<Arc<AddedLayer>>,
    below: &PlannedBase,
) -> PlannedBase {
    PlannedBase {
        interim: Some(Arc::new(InterimImage {
            name: format!("{NAME}:{tag}"),
            layers,
            below: below.clone(),
        })),
        ..below.with_image(None, image)
    }
}
