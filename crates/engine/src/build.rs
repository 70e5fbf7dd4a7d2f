//! From a request to images where they belong: [`build`] says in which steps.
//!
//! Each step makes a value or completes one: drafts, which ask nobody; a plan on each base that was
//! found; the same with all that is known of the base; tags; images; what was delivered. Who wants no
//! images, or looks at the plans in between, takes the steps one by one.

use std::sync::Arc;

use jiff::Timestamp;
use wincimg_common::diagnose::{Blame, BoxError, Problem};
use wincimg_common::progress::{Progress, Reporter};
use wincimg_http::Downloads;
use wincimg_inspect::facts_provider::BaseFactsProvider;
use wincimg_layer::{Compression, DiffIdCache};
use wincimg_oci::document::ManifestFormat;
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::Location;
use wincimg_recipe::Plan;

use super::base_contents::{Purpose, load_contents};
use super::bases::BaseSearch;
use super::delivery::{DeliveryReport, DeliveryTarget, Destination, prefetch_tags};
use super::direct::deliver_directly;
use super::docker::{DockerBuildOptions, deliver_by_docker};
use super::downloads::DownloadSet;
use super::engine_choice::{Engine, EngineReason};
use super::error::search;
use super::notice::{Notice, notes, report_missing, report_planned, report_searched_tags};
use super::plans::{BuildRequest, PlannedImage};
use super::publication::Publication;

/// What requests are carried out with.
#[derive(Clone, Copy)]
pub struct BuildContext<'a> {
    /// The client for all registries.
    pub registry: &'a RegistryClient,
    /// Who looks for bases.
    pub bases: &'a BaseSearch,
    /// Who knows what is inside bases.
    pub library: &'a BaseFactsProvider,
    /// What was downloaded.
    pub downloads: &'a Downloads,
    /// What the tars of layers came to in earlier runs.
    pub remembered: &'a DiffIdCache,
    /// Who is shown what is under way.
    pub progress: &'a Arc<dyn Progress>,
    /// Who is told what deserves to be read.
    pub tell: &'a dyn Reporter,
}

/// How images are made.
#[derive(Debug, Clone, Default)]
pub struct EngineOptions {
    /// The compression of new layers.
    pub compression: Compression,
    /// The time that everything new carries; the base's own where absent.
    pub created: Option<Timestamp>,
    /// Images that may have the layers too, beside the tags that are replaced; without these all
    /// layers are written.
    pub reuse: Option<Vec<Location>>,
    /// The Docker daemon, where it is not the one that Docker itself would find.
    pub docker_host: Option<String>,
    /// How it builds.
    pub docker: DockerBuildOptions,
}

/// The plans of the images that are asked for, with all that has to be known for a purpose.
pub async fn plans(
    request: &BuildRequest,
    purpose: Purpose,
    means: &BuildContext<'_>,
) -> Result<Vec<PlannedImage>, BoxError> {
    let mut supply = request.downloads(means)?;
    request.check(&supply)?;
    let mut images = request.plan(means).await?;
    let finishing = request.finish(&mut images, purpose, &mut supply, means);
    Box::pin(finishing).await?;
    Ok(images)
}

/// Builds the images that are asked for, and brings them to their target.
pub async fn build(
    request: &BuildRequest,
    mut target: DeliveryTarget<'_>,
    means: &BuildContext<'_>,
) -> Result<DeliveryReport, BoxError> {
    // A mistake in the recipe or its folder is told before a registry is asked.
    let mut supply = request.downloads(means)?;
    request.check(&supply)?;
    prefetch_tags(&target, &request.hosts, means.registry);
    // The bases that fit, and a plan on each.
    let mut images = request.plan(means).await?;
    let (engine, reason) = request.engine_for(images.iter().map(|image| &image.plan));
    // What the plans download, and what they have to know of their bases.
    let finishing = request.finish(&mut images, engine.purpose(), &mut supply, means);
    Box::pin(finishing).await?;
    if target.is_not_pushed() {
        means.tell.note(&Notice::NotPushed);
    }
    tracing::info!("engine {}: {reason}", engine.name());
    // What will be published, before anything is made.
    let publication = Publication::new(&images, &target.naming)?;
    request.options.check(engine, &target)?;
    match engine {
        Engine::Direct => {
            if target.destinations.is_empty() {
                let name = publication.name.replace('/', "-");
                let folder = format!("./{name}-{}", publication.tag());
                target.destinations.push(Destination::Layout(folder.into()));
            }
            let delivering = deliver_directly(&publication, &request.options, &target, means);
            Box::pin(delivering).await
        }
        Engine::Docker => {
            target.flavour = None;
            Box::pin(deliver_by_docker(
                request,
                &publication,
                reason,
                &target,
                means,
            ))
            .await
        }
    }
}

impl BuildRequest {
    /// The files that are downloaded, as far as anything pins them or they may be noted.
    pub fn downloads(&self, means: &BuildContext<'_>) -> Result<DownloadSet, BoxError> {
        let lock = self.design.lock()?;
        let store = means.downloads.clone();
        Ok(DownloadSet::new(
            self.downloads,
            store,
            lock,
            self.noting.clone(),
        ))
    }

    /// Refuses what is wrong whatever the bases are: a recipe that cannot be filled in, downloads that
    /// nothing pins, what the engine cannot make.
    pub fn check(&self, supply: &DownloadSet) -> Result<(), BoxError> {
        let drafts = self.drafts()?;
        if let Some(recipe) = self.design.recipe() {
            for draft in &drafts {
                let wants = draft.download_requests(recipe.origin());
                supply.check(&wants)?;
            }
        }
        let (engine, _) = self.engine_for(drafts.iter());
        for draft in &drafts {
            engine.check_buildable(draft)?;
        }
        Ok(())
    }

    /// Finds the bases and makes a plan on each; what was passed over is said on the way.
    pub async fn plan(&self, means: &BuildContext<'_>) -> Result<Vec<PlannedImage>, BoxError> {
        let images = self.on_bases(means.bases).await.inspect_err(|error| {
            if let Some(error) = search(error) {
                report_searched_tags(error, means.tell);
            }
        })?;
        report_planned(&images, means.tell);
        Ok(images)
    }

    /// The engine that makes all of the images, and why it is that one.
    pub fn engine_for<'a>(&self, plans: impl Iterator<Item = &'a Plan>) -> (Engine, EngineReason) {
        Engine::choose(self.engine, plans)
    }

    /// Brings what the plans download, finds out what they have to know of their bases, and carries a
    /// Dockerfile out on that.
    pub async fn finish(
        &self,
        images: &mut [PlannedImage],
        purpose: Purpose,
        supply: &mut DownloadSet,
        means: &BuildContext<'_>,
    ) -> Result<(), BoxError> {
        self.evaluate(images, false, supply, means).await?;
        // What is known then may show that more has to be.
        loop {
            load_contents(images, purpose, means).await?;
            let told = notes(images);
            let lacking = self.evaluate(images, true, supply, means).await?;
            report_missing(&lacking, supply, means.tell);
            for note in notes(images).difference(&told) {
                means.tell.note(note);
            }
            if let Some((lock, written)) = supply.write_lock()? {
                let (lock, written) = (&lock, &written);
                means.tell.note(&Notice::Noted { lock, written });
            }
            if !images.iter().any(|image| image.stages.wants_a_look) {
                return Ok(());
            }
        }
    }
}

impl EngineOptions {
    /// Refuses what an engine cannot do.
    fn check(&self, engine: Engine, target: &DeliveryTarget<'_>) -> Result<(), Problem> {
        let is_docker = engine == Engine::Docker;
        let (problem, hint) = match target.flavour {
            Some(_) if is_docker && target.registry().is_some() => (
                "--manifest-format requires the direct engine: Docker pushes its own format",
                "convert what Docker pushed: wincimg mirror IMAGE --to HOST[:PORT][/PREFIX] \
                 --manifest-format docker|oci",
            ),
            Some(ManifestFormat::Docker) if self.compression == Compression::Zstd => (
                "Docker manifests have no media type for zstd layers",
                "use --compression gzip, or --manifest-format oci",
            ),
            _ if is_docker && self.reuse.iter().flatten().count() > 0 => (
                "--cache-from requires the direct engine: Docker has its own cache",
                "remove --cache-from",
            ),
            _ => return Ok(()),
        };
        Err(Problem::new("usage", problem)
            .blame(Blame::Request)
            .hint(hint))
    }
}
