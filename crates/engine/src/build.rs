//! From a request to delivered images: [`build`] runs all steps.
//!
//! Each step makes or completes a value: drafts, which need no network; a plan on each resolved
//! base; the plans with the contents of their bases; tags; images; the delivery report. A fleet
//! leaves out what exists between the plan and the rest; an update has other plans, and the same
//! steps around them.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use wincimg_cluster::builder::SCHEME;
use wincimg_cluster::live::ClusterContext;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_common::progress::Progress;
use wincimg_http::Downloads;
use wincimg_inspect::facts_provider::BaseFactsProvider;
use wincimg_layer::{Compression, DiffIdCache};
use wincimg_oci::document::ManifestFormat;
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::Location;

use super::base_contents::{Purpose, load_contents};
use super::bases::BaseSearch;
use super::buildkit::BuildkitAddress;
use super::delivery::{DeliveryReport, DeliveryTarget, check_cache, prefetch_tags};
use super::direct::deliver_directly;
use super::docker::{DockerBuildOptions, deliver_by_docker};
use super::downloads::DownloadSet;
use super::engine_choice::Engine;
use super::error::search;
use super::hybrid::run_windows_steps;
use super::notice::{
    notes, report_missing, report_planned, report_pools, report_searched_tags, report_shims,
};
use super::plans::{BuildRequest, PlannedImage, TargetHost};
use super::publication::Publication;
use super::unserved::{UnservedHost, served};

/// Services that requests are carried out with.
#[derive(Clone)]
pub struct BuildContext<'a> {
    /// The client for all registries.
    pub registry: RegistryClient,
    /// Resolver of bases.
    pub bases: BaseSearch,
    /// Provider of the contents of bases.
    pub library: BaseFactsProvider,
    /// Cache of downloads.
    pub downloads: Downloads,
    /// Cache of the diff IDs of layers written in earlier runs.
    pub remembered: DiffIdCache,
    /// Folder of the caches, if there is one.
    pub cache: Option<PathBuf>,
    /// Display of running transfers.
    pub progress: Arc<dyn Progress>,
    /// Receiver of notes and warnings.
    pub reporter: &'a dyn Progress,
}

/// Options of the engines.
#[derive(Debug, Clone, Default)]
pub struct EngineOptions {
    /// Compression of new layers.
    pub compression: Compression,
    /// Timestamp of new content; the base's own where absent.
    pub created: Option<Timestamp>,
    /// Images whose layers may be reused, in addition to the tags that are replaced; if absent, all
    /// layers are written.
    pub reuse: Option<Vec<Location>>,
    /// The Docker daemon, if it is not the one that Docker itself would use.
    pub docker_host: Option<String>,
    /// The cluster of a daemon in a pod.
    pub cluster: ClusterContext,
    /// Options of builds by the daemon.
    pub docker: DockerBuildOptions,
    /// Annotations of the manifests, which Docker's format does not have.
    pub annotations: Vec<(String, String)>,
    /// Flags given for the daemon, which no other engine uses.
    pub daemon_flags: Vec<&'static str>,
}

impl EngineOptions {
    /// The address of `BuildKit`'s daemon, if that is named in place of Docker's.
    pub(crate) fn buildkit(&self) -> Option<BuildkitAddress> {
        self.docker_host.as_ref()?.parse().ok()
    }

    /// Options of builds by Docker's daemon, with the timestamp of new content.
    pub(crate) fn for_daemon(&self) -> DockerBuildOptions {
        let seconds = |time: Timestamp| u64::try_from(time.as_second()).ok();
        DockerBuildOptions {
            timestamp: self.created.and_then(seconds),
            ..self.docker.clone()
        }
    }

    /// Returns true if the daemon is a builder's: one for each build of Windows.
    pub(crate) fn has_builder(&self) -> bool {
        let host = self.docker_host.as_deref().unwrap_or_default();
        host.split_once("://")
            .is_some_and(|(scheme, _)| scheme == SCHEME)
    }
}

/// Plans of the requested images, with all that a purpose requires. With a target, its tag counts
/// too.
pub async fn plans<'r>(
    request: &'r BuildRequest,
    purpose: Purpose,
    target: Option<&DeliveryTarget<'_>>,
    ctx: &BuildContext<'_>,
) -> Result<PlannedBuild<'r>, BoxError> {
    let downloads = request.downloads(ctx)?;
    request.check(&downloads, ctx)?;
    let mut planned = request.plan(downloads, ctx).await?;
    if let Some(target) = target {
        planned.set_aside_conflicts(target, ctx).await?;
    }
    planned.check_flags()?;
    Box::pin(planned.finish(purpose, ctx)).await?;
    Ok(planned)
}

/// Builds the requested images, and delivers them to their target.
pub async fn build(
    request: &BuildRequest,
    target: DeliveryTarget<'_>,
    ctx: &BuildContext<'_>,
) -> Result<DeliveryReport, BoxError> {
    // Reports a mistake in the recipe or its folder before a registry is contacted.
    let downloads = request.downloads(ctx)?;
    request.check(&downloads, ctx)?;
    prefetch_tags(&target, &request.hosts, &ctx.registry);
    // The matching bases, and a plan on each.
    let mut planned = request.plan(downloads, ctx).await?;
    planned.set_aside_conflicts(&target, ctx).await?;
    Box::pin(planned.make(target, ctx)).await
}

/// The planned images of a request, each on its base, and the hosts without one.
pub struct PlannedBuild<'r> {
    pub(crate) request: &'r BuildRequest,
    /// Their downloads.
    pub downloads: DownloadSet,
    /// The images, in the order of their hosts.
    pub images: Vec<PlannedImage>,
    /// Hosts without an image.
    pub unserved: Vec<UnservedHost>,
}

impl BuildRequest {
    /// The files to download, as far as they are pinned or may be locked.
    pub fn downloads(&self, ctx: &BuildContext<'_>) -> Result<DownloadSet, BoxError> {
        let (lock, again) = (self.definition.lock()?, self.noting.clone());
        let store = ctx.downloads.clone();
        Ok(DownloadSet::new(self.downloads, store, lock, again))
    }

    /// Rejects what is wrong on any base: a recipe that cannot be filled in, downloads that are not
    /// pinned, what the engine cannot build, a cache that goes into the image.
    fn check(&self, downloads: &DownloadSet, ctx: &BuildContext<'_>) -> Result<(), BoxError> {
        if let Some(engine) = self.engine {
            self.check_flags(engine)?;
        }
        let drafts = self.drafts()?;
        if let Some(cache) = &ctx.cache {
            check_cache(cache, drafts.iter())?;
        }
        if let Some(recipe) = self.definition.recipe() {
            for draft in &drafts {
                let wants = draft.download_requests(recipe.origin());
                downloads.check(&wants)?;
            }
        }
        let (engine, _) = Engine::choose(self.engine, drafts.iter());
        for draft in &drafts {
            engine.check_buildable(draft)?;
        }
        Ok(())
    }

    /// Rejects flags that the engine does not use.
    fn check_flags(&self, engine: Engine) -> Result<(), Problem> {
        let mut flags = self.options.daemon_flags.iter();
        let Some(flag) = flags.next().filter(|_| engine == Engine::Direct) else {
            return Ok(());
        };
        let problem = format!("{flag} is for the docker engine, and the direct engine builds this");
        let hint = match (*flag, self.engine) {
            ("--build-arg", _) => {
                "set a variable of the recipe with --set, or add --engine docker".into()
            }
            (_, Some(engine)) => format!("remove {flag} or --engine {}", engine.name()),
            (_, None) => format!("remove {flag}, or add --engine docker"),
        };
        Err(Problem::request("usage", problem).hint(hint))
    }

    /// Resolves the bases and makes a plan on each; reports rejected tags. Hosts without a base are
    /// set aside; if no host has one, or all are required, the first of them is the error.
    pub async fn plan(
        &self,
        downloads: DownloadSet,
        ctx: &BuildContext<'_>,
    ) -> Result<PlannedBuild<'_>, BoxError> {
        // One host alone has nothing to continue with.
        let is_whole = self.all_or_nothing || self.hosts.len() == 1;
        let plan = async |hosts: &[TargetHost]| {
            let images = self.on_bases(hosts, &ctx.bases).await;
            let images = images.inspect_err(|error| {
                if let Some(error) = search(error) {
                    report_searched_tags(error, ctx.reporter);
                }
            })?;
            report_planned(&images, ctx.reporter);
            Ok(images)
        };
        let planned = served(&self.hosts, is_whole, plan).await;
        let (images, unserved) = planned.map_err(|error| self.error_on_any_base(error))?;
        Ok(PlannedBuild {
            request: self,
            downloads,
            images: images.unwrap_or_default(),
            unserved,
        })
    }

    /// The error on any base, in place of a base that is not found or reached.
    fn error_on_any_base(&self, error: BoxError) -> BoxError {
        let code = error.diagnosis().code;
        if code != "network/unreachable" && !code.starts_with("base/") {
            return error;
        }
        self.drafts().err().unwrap_or(error)
    }

    /// Completes planned images, all at once or one after a step on Windows.
    pub(crate) async fn finish(
        &self,
        images: &mut [PlannedImage],
        purpose: Purpose,
        supply: &mut DownloadSet,
        ctx: &BuildContext<'_>,
    ) -> Result<(), BoxError> {
        let mut reported = notes(images);
        self.evaluate(images, false, supply, ctx).await?;
        // New facts may require further ones.
        loop {
            let unread = load_contents(images, purpose, ctx).await?;
            let lacking = self.evaluate(images, true, supply, ctx).await;
            let is_last =
                lacking.is_err() || !images.iter().any(|image| image.stages.requires_contents);
            if is_last {
                for note in &unread {
                    ctx.reporter.note(note);
                }
            }
            let lacking = lacking?;
            let known = notes(images);
            for note in known.difference(&reported) {
                ctx.reporter.note(note);
            }
            reported = known;
            if let Some((lock, written)) = supply.write_lock(ctx.progress.as_ref())? {
                ctx.reporter.note(&format_args!(
                    "{lock}: {} new, {} changed, {} unchanged",
                    written.new, written.changed, written.same
                ));
                for url in &written.with_query {
                    ctx.reporter.warn(&format_args!(
                        "{lock} contains the query of {url}, which may be secret: a digest next \
                         to the URL keeps it out"
                    ));
                }
            }
            if is_last {
                report_missing(&lacking, supply, ctx.reporter);
                return Ok(());
            }
        }
    }
}

impl PlannedBuild<'_> {
    /// The engine that can build all of the images, and what requires Windows, if that decides.
    pub(crate) fn engine(&self) -> (Engine, Option<Problem>) {
        let plans = self.images.iter().map(|image| &image.plan);
        Engine::choose(self.request.engine, plans)
    }

    /// Rejects flags that the engine of the images does not use. The daemon of steps on Windows uses
    /// them, if there are such steps.
    fn check_flags(&self) -> Result<(), Problem> {
        if self.images.is_empty() || self.request.windows.is_some() {
            return Ok(());
        }
        self.request.check_flags(self.engine().0)
    }

    /// Fetches downloads, reads the required contents of the bases, and evaluates a Dockerfile on
    /// them.
    pub async fn finish(
        &mut self,
        purpose: Purpose,
        ctx: &BuildContext<'_>,
    ) -> Result<(), BoxError> {
        let (images, downloads) = (&mut self.images, &mut self.downloads);
        self.request.finish(images, purpose, downloads, ctx).await?;
        report_shims(&self.images, ctx.reporter);
        report_pools(&self.images, ctx.reporter);
        Ok(())
    }

    /// Where the images and their index go, by the named destinations of a target.
    pub fn locations(&self, target: &DeliveryTarget<'_>) -> Result<Vec<Location>, BoxError> {
        if self.images.is_empty() {
            return Ok(Vec::new());
        }
        let publication = self.publication(target)?;
        let images = publication.images.iter().map(|image| &image.tag);
        let tags: Vec<&String> = images.chain(&publication.index).collect();
        let mut locations = Vec::new();
        for destination in &target.destinations {
            for tag in &tags {
                locations.push(destination.location(&publication.name, tag)?);
            }
        }
        locations.extend(target.other_tags.iter().cloned());
        Ok(locations)
    }

    /// What will be published. Missing images can join later.
    fn publication(&self, target: &DeliveryTarget<'_>) -> Result<Publication<'_>, Problem> {
        let naming = target.naming.joinable(!self.unserved.is_empty());
        Publication::new(&self.images, &naming)
    }

    /// Makes the images, and delivers them to their target.
    pub(crate) async fn make(
        mut self,
        target: DeliveryTarget<'_>,
        ctx: &BuildContext<'_>,
    ) -> Result<DeliveryReport, BoxError> {
        if self.images.is_empty() {
            return Ok(DeliveryReport {
                failed: self.unserved,
                ..DeliveryReport::default()
            });
        }
        let request = self.request;
        let (engine, obstacle) = self.engine();
        self.check_flags()?;
        // The downloads, and the required contents of the bases.
        Box::pin(self.finish(engine.purpose(), ctx)).await?;
        let running = run_windows_steps(request, &mut self.images, &mut self.downloads, ctx);
        Box::pin(running).await?;
        if target.named_after.is_some() && target.registry().is_none() {
            ctx.reporter.note(&"nothing is pushed without --push");
        }
        match &obstacle {
            Some(why) => tracing::info!("engine {}: {why}", engine.name()),
            None => tracing::info!("engine {}", engine.name()),
        }
        let publication = self.publication(&target)?;
        request.options.check(engine, &target)?;
        if let Some(cache) = &ctx.cache {
            check_cache(cache, publication.plans())?;
        }
        let target = target.for_engine(engine, &publication)?;
        let delivered = match engine {
            Engine::Direct => {
                let delivering = deliver_directly(&publication, &request.options, &target, ctx);
                Box::pin(delivering).await?
            }
            Engine::Docker => {
                let delivering =
                    deliver_by_docker(request, &publication, obstacle.as_ref(), &target, ctx);
                Box::pin(delivering).await?
            }
        };
        Ok(DeliveryReport {
            failed: self.unserved,
            ..delivered
        })
    }
}

impl EngineOptions {
    /// Rejects what an engine cannot do.
    fn check(&self, engine: Engine, target: &DeliveryTarget<'_>) -> Result<(), Problem> {
        let is_docker = engine == Engine::Docker;
        let (problem, hint) = match target.manifest_format {
            Some(_) if is_docker && target.registry().is_some() => (
                "--manifest-format requires the direct engine: Docker pushes its own format",
                "convert what Docker pushed: wincimg image mirror IMAGE --to HOST[:PORT][/PREFIX] \
                 --manifest-format docker|oci",
            ),
            Some(ManifestFormat::Docker) if self.compression == Compression::Zstd => (
                "Docker manifests have no media type for zstd layers",
                "use --compression gzip, or --manifest-format oci",
            ),
            manifest_format
                if !self.annotations.is_empty()
                    && (is_docker || manifest_format == Some(ManifestFormat::Docker)) =>
            {
                (
                    "--annotation requires the direct engine, and manifests in OCI's format",
                    "use --label instead",
                )
            }
            _ if is_docker && self.reuse.iter().flatten().count() > 0 => (
                "--cache-from requires the direct engine: Docker has its own cache",
                "remove --cache-from",
            ),
            _ => return Ok(()),
        };
        Err(Problem::request("usage", problem).hint(hint))
    }
}
