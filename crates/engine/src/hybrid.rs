//! Steps of a Dockerfile that Windows runs, in a build that is otherwise direct.
//!
//! A [segment](WindowsSegment) is run on the image that stands so far, which is pushed first. Its
//! result is pushed too, under a tag made of its key: the same steps on the same image are run once
//! for all machines that see the registry. Without one, both are in the daemon. Then the Dockerfile is
//! evaluated again with the result in place of a base, until no segment is left.

mod buildkit;
mod worker;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Mutex};

use futures_util::future::join_all;
use serde_json::json;
use tokio::sync::OnceCell;
use wincimg_common::diagnose::{BoxError, Diagnose, Excerpt, Problem, error_chain};
use wincimg_common::digest::{Digest, sha256};
use wincimg_common::lock;
use wincimg_dockerfile::stages::{SegmentStep, Stages, WindowsSegment};
use wincimg_oci::document::{Document, Image};
use wincimg_oci::prefix::RegistryPrefix;
use wincimg_oci::reference::{Reference, prefix_and_name, repository_of};
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::{Location, Source};
use wincimg_recipe::{Instructions, PlannedStep};

use self::worker::{NAME, NO_REPOSITORY, WindowsBuild, Worker, no_place};
use crate::base_contents::{Purpose, load_contents};
use crate::build::{BuildContext, EngineOptions};
use crate::delivery::DeliveryTarget;
use crate::direct::deliver_directly;
use crate::docker::one_line;
use crate::downloads::DownloadSet;
use crate::plans::{BuildRequest, PlannedBase, PlannedImage};
use crate::publication::{NamingOptions, Publication};

/// Name of the engine in reports.
pub(crate) const HYBRID: &str = "hybrid";

/// Number of digits of a digest in a tag.
const DIGITS: usize = 32;

/// Options of steps that run on Windows.
#[derive(Debug, Clone, Default)]
pub struct WindowsSteps {
    /// The repository that images below and above them are pushed to; without one, they are in the
    /// daemon.
    pub cache: Option<CacheRepository>,
    /// True if that is the repository of the built image, which others may pull from.
    pub is_of_image: bool,
}

impl WindowsSteps {
    /// The place of the images below and above them; `BuildKit` keeps none.
    pub fn place(&self, options: &EngineOptions) -> Option<String> {
        match &self.cache {
            Some(cache) => Some(cache.to_string()),
            None if options.buildkit().is_some() => None,
            None => Some(format!("docker-daemon:{NAME}")),
        }
    }
}

/// A repository for images between steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheRepository {
    /// Its registry, with a path prefix.
    pub registry: RegistryPrefix,
    /// Its name there.
    pub name: String,
}

impl CacheRepository {
    /// The repository of a reference, whose tag does not count.
    pub fn of_reference(reference: &Reference) -> Option<Self> {
        let (prefix, name) = prefix_and_name(reference);
        Some(Self {
            registry: prefix.parse().ok()?,
            name: name.to_owned(),
        })
    }

    fn reference(&self, tag: &str) -> Result<Reference, BoxError> {
        Ok(self.registry.join(&format!("{}:{tag}", self.name))?)
    }
}

impl fmt::Display for CacheRepository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.registry.join(&self.name) {
            Ok(reference) => f.write_str(&repository_of(&reference)),
            Err(_) => f.write_str(&self.name),
        }
    }
}

/// Error for a step of a Dockerfile that failed on Windows.
#[derive(Debug, thiserror::Error, Diagnose)]
#[error("{file}:{line}: Windows cannot run the step")]
#[diagnose(forward, excerpt = Some(Excerpt::from_quoted(*line, command, "fails on Windows").in_file(file)))]
pub struct FailedStep {
    /// The Dockerfile.
    pub file: String,
    /// Its first line there, from 1.
    pub line: usize,
    /// Its lines.
    pub command: String,
    /// Its failure and its last output, on one line.
    pub message: String,
    source: Problem,
}

/// Runs all segments of the images' Dockerfile that have no result yet.
pub(crate) async fn run_windows_steps(
    request: &BuildRequest,
    images: &mut [PlannedImage],
    supply: &mut DownloadSet,
    ctx: &BuildContext<'_>,
) -> Result<(), BoxError> {
    let has_segments = |image: &PlannedImage| !image.stages.segments.is_empty();
    let (Some(steps), true) = (&request.windows, images.iter().any(has_segments)) else {
        return Ok(());
    };
    if steps.place(&request.options).is_none() {
        return Err(no_place(NO_REPOSITORY));
    }
    note_readable_stages(steps, images, ctx);
    let build = HybridBuild {
        request,
        steps,
        ctx,
        workers: Mutex::default(),
    };
    // The next segments of all images at once: those for several builds of Windows run on machines of
    // their own.
    while images.iter().any(has_segments) {
        let running = images.iter().map(|image| {
            let (build, supply) = (&build, &*supply);
            async move {
                let Some(segment) = image.stages.segments.first().cloned() else {
                    return Ok(None);
                };
                let result = Box::pin(build.result_of(image, &segment, supply)).await?;
                Ok::<_, BoxError>(Some((segment.id, result)))
            }
        });
        // All of them to their end: what one has built is kept if another fails.
        let results = join_all(running).await;
        for (image, result) in images.iter_mut().zip(results) {
            if let Some((id, result)) = result? {
                image.stages.set_result(id, result);
                let images = std::slice::from_mut(image);
                Box::pin(request.finish(images, Purpose::Layers, supply, ctx)).await?;
            }
        }
    }
    Ok(())
}

/// Notes the stages that the repository of the built image gets, although the image lacks them.
fn note_readable_stages(steps: &WindowsSteps, images: &[PlannedImage], ctx: &BuildContext<'_>) {
    let Some(repository) = steps.cache.as_ref().filter(|_| steps.is_of_image) else {
        return;
    };
    let segments = images.iter().flat_map(|image| &image.stages.segments);
    let others = segments.filter(|segment| !segment.is_of_target);
    let stages: BTreeSet<&str> = others.map(|segment| segment.stage.as_str()).collect();
    for stage in stages {
        ctx.reporter.note(&format_args!(
            "whoever can pull from {repository} can read the files and build arguments of the stage \
             {stage}: --cache-to REPOSITORY keeps them elsewhere"
        ));
    }
}

/// A build with steps on Windows.
struct HybridBuild<'a> {
    request: &'a BuildRequest,
    steps: &'a WindowsSteps,
    ctx: &'a BuildContext<'a>,
    /// The worker for each build of Windows, connected for the first segment that no repository
    /// has. A daemon that is not a builder's is the only one.
    workers: Mutex<BTreeMap<Vec<u32>, WorkerCell>>,
}

type WorkerCell = Arc<OnceCell<Arc<Worker>>>;

impl HybridBuild<'_> {
    /// The image that a segment makes: from a repository, or from the worker.
    async fn result_of(
        &self,
        image: &PlannedImage,
        segment: &WindowsSegment,
        supply: &DownloadSet,
    ) -> Result<PlannedBase, BoxError> {
        self.connect_first(image, segment).await?;
        let ground = self.ground_of(image, segment, supply).await?;
        let key = segment_key(ground.base.image.config().digest(), segment);
        let tag = format!("windows-{}", digits(&key));
        let (lines, is_one) = lines_of(segment);
        let known = Box::pin(self.known_result(image, segment, &ground.base, &tag));
        if let Some(known) = known.await? {
            let (verb, whose) = if is_one {
                ("does", "its")
            } else {
                ("do", "their")
            };
            self.ctx.reporter.note(&format_args!(
                "{lines} {verb} not run again: {} is {whose} result",
                known.display_name()
            ));
            return Ok(known);
        }
        let worker = self.worker(image, &ground.base).await?;
        let segment = &worker.adapt(segment);
        let run = if is_one { "runs" } else { "run" };
        let base = ground.base.display_name();
        self.ctx
            .reporter
            .note(&format_args!("{lines} {run} on Windows, on {base}"));
        let build = WindowsBuild {
            ground: &ground,
            segment,
            repository: self.steps.cache.as_ref(),
            tag: &tag,
        };
        let ran = worker.run(&build, self.ctx).await;
        let digest = ran.map_err(|error| self.failed(segment, error))?;
        match &self.steps.cache {
            Some(cache) => {
                let reference = cache.reference(&format!("{tag}@{digest}"))?;
                self.read(&reference, &ground.base).await
            }
            None => worker.docker()?.save(&tag, &ground.base, self).await,
        }
    }

    /// The result of a segment in a repository or the daemon, unless its steps are to be run again.
    async fn known_result(
        &self,
        image: &PlannedImage,
        segment: &WindowsSegment,
        below: &PlannedBase,
        tag: &str,
    ) -> Result<Option<PlannedBase>, BoxError> {
        if self.runs_again(segment) {
            return Ok(None);
        }
        match self.find(tag, below).await? {
            None if self.steps.cache.is_none() => {
                let worker = self.worker(image, below).await?;
                worker.docker()?.find(tag, below, self).await
            }
            known => Ok(known),
        }
    }

    /// Returns true if an earlier result does not count: a URL may have another file by now, which
    /// the worker's own cache knows.
    fn runs_again(&self, segment: &WindowsSegment) -> bool {
        self.request.options.docker.no_cache || segment.has_downloads()
    }

    /// Connects to the worker before an image is made for it, unless an earlier build pushed that:
    /// then a result may be there, too, and no worker is required.
    async fn connect_first(
        &self,
        image: &PlannedImage,
        segment: &WindowsSegment,
    ) -> Result<(), BoxError> {
        let Some(base) = image.stages.bases.get(&segment.base) else {
            return Ok(());
        };
        let is_made = segment.below.is_some() || !is_placed(base);
        if is_made && !self.is_begun(segment, base).await? {
            self.worker(image, base).await?;
        }
        Ok(())
    }

    /// Returns true if a repository has the image below a segment, of this or an earlier content.
    async fn is_begun(
        &self,
        segment: &WindowsSegment,
        base: &PlannedBase,
    ) -> Result<bool, BoxError> {
        if self.runs_again(segment) {
            return Ok(false);
        }
        let tag = below_tag(base, segment);
        for repository in self.repositories() {
            let place = Location::Registry(repository.reference(&tag)?);
            // What it refuses is reported by the push.
            let found = Source::find(&place, false, &self.ctx.registry).await;
            if matches!(found, Ok(Some(_))) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The worker for the steps of an image on another, which must be able to run them.
    async fn worker(
        &self,
        image: &PlannedImage,
        below: &PlannedBase,
    ) -> Result<Arc<Worker>, BoxError> {
        let options = &self.request.options;
        let builds = if options.has_builder() {
            builds_of(image, below)
        } else {
            Vec::new()
        };
        let worker = Arc::clone(lock(&self.workers).entry(builds.clone()).or_default());
        let connecting = worker.get_or_try_init(|| async {
            let worker = Worker::connect(options, &builds, self.ctx).await?;
            Ok::<_, BoxError>(Arc::new(worker))
        });
        let worker = connecting.await?;
        worker.check_base(below)?;
        Ok(Arc::clone(worker))
    }

    /// The image below a segment, as a plan of its own.
    async fn ground_of(
        &self,
        image: &PlannedImage,
        segment: &WindowsSegment,
        supply: &DownloadSet,
    ) -> Result<PlannedImage, BoxError> {
        let Some(base) = image.stages.bases.get(&segment.base) else {
            let problem = format!("the image {:?} below a step is not known", segment.base);
            return Err(Problem::new("internal/segment", problem).into());
        };
        let host = image.host.as_ref();
        let plan = base.plan_of(&image.plan.name, host);
        let mut planned = PlannedImage {
            is_below_windows: true,
            ..PlannedImage::new(host.cloned(), base.clone(), plan)
        };
        // A base in no registry is pushed as it is, or loaded, without the name of the built image.
        let unpushed = (!is_placed(base)).then(|| Instructions {
            steps: vec![PlannedStep {
                line: None,
                created_by: "wincimg build".to_owned(),
                layer: None,
            }],
            container: base.image.config().config.clone(),
            author: None,
        });
        let Some(mut below) = segment.below.clone().or(unpushed) else {
            return Ok(planned);
        };
        below.downloads_mut().for_each(|file| supply.resolve(file));
        planned.plan.instructions = Some(below);
        let images = std::slice::from_mut(&mut planned);
        load_contents(images, Purpose::Layers, self.ctx).await?;
        planned.base = match &self.steps.cache {
            Some(cache) => {
                let tag = below_tag(&planned.base, segment);
                let naming = NamingOptions::tagged(&cache.name, &tag);
                let publication = Publication::new(std::slice::from_ref(&planned), &naming)?;
                let target = DeliveryTarget::registry_only(naming, &cache.registry, &|_| Ok(()));
                let options = &self.request.options;
                let delivering = deliver_directly(&publication, options, &target, self.ctx);
                let delivered = Box::pin(delivering).await?;
                let digest = delivered.images.first().map(|image| image.digest.as_str());
                let pushed = format!("{tag}@{}", digest.unwrap_or_default());
                self.read(&cache.reference(&pushed)?, base).await?
            }
            None => self.make_below(&planned).await?,
        };
        Ok(planned)
    }

    /// The repositories that may have images of earlier builds.
    fn repositories(&self) -> impl Iterator<Item = CacheRepository> {
        let more = self.request.options.reuse.iter().flatten();
        let more = more.filter_map(|place| match place {
            Location::Registry(reference) => CacheRepository::of_reference(reference),
            _ => None,
        });
        self.steps.cache.iter().cloned().chain(more)
    }

    /// The result of a segment in a repository. What is not on the image below is ignored.
    async fn find(&self, tag: &str, below: &PlannedBase) -> Result<Option<PlannedBase>, BoxError> {
        for repository in self.repositories() {
            let reference = repository.reference(tag)?;
            let place = Location::Registry(reference.clone());
            let found = Source::find(&place, false, &self.ctx.registry).await?;
            let Some((source, Document::Manifest(manifest))) = found else {
                continue;
            };
            let image = source.image(*manifest).await?;
            if is_on(&image, &below.image) {
                let digest = image.digest();
                let reference = repository.reference(&format!("{tag}@{digest}"))?;
                return Ok(Some(
                    below.with_image(Some(Location::Registry(reference)), image),
                ));
            }
        }
        Ok(None)
    }

    /// A pushed image on another.
    async fn read(
        &self,
        reference: &Reference,
        below: &PlannedBase,
    ) -> Result<PlannedBase, BoxError> {
        let image = pushed_image(reference, &self.ctx.registry).await?;
        if !is_on(&image, &below.image) {
            let base = below.display_name();
            let problem = format!("{reference} does not have the layers of {base} below its own");
            return Err(Problem::new("daemon/other-base", problem).into());
        }
        let place = Location::Registry(reference.clone());
        Ok(below.with_image(Some(place), image))
    }

    /// Error for a segment without a result, with the line of the Dockerfile if a step failed.
    fn failed(&self, segment: &WindowsSegment, error: BoxError) -> BoxError {
        let file = self.request.definition.stages().map(Stages::file);
        let file = file.map_or_else(String::new, |file| file.display().to_string());
        let failure = worker::failed_step(error.as_ref());
        // A daemon has the image below if a step ran on it.
        let is_kept = self.steps.cache.is_some() || failure.is_some();
        let place = self.steps.place(&self.request.options);
        if let (Some(place), Some(first), true) = (
            place,
            segment.steps.first(),
            segment.below.is_some() && is_kept,
        ) {
            let line = first.line;
            self.ctx.reporter.note(&format_args!(
                "the next build reuses the layers before line {line}, which are in {place}"
            ));
        }
        let step = failure.and_then(|failure| segment.step(failure.step.number));
        match (failure, step) {
            (Some(failure), Some(step)) => FailedStep {
                file,
                line: step.line,
                command: step.shown(),
                message: one_line(&error_chain(failure)),
                source: Problem::from_diagnosed(error),
            }
            .into(),
            _ => {
                let lines = lines_of(segment).0;
                let what = format!("{file}: Windows returned no image for {lines}");
                Problem::context(what, error).into()
            }
        }
    }
}

/// Returns true if a daemon has a base, or can pull it.
fn is_placed(base: &PlannedBase) -> bool {
    base.reference().is_some() || base.interim.is_some()
}

/// Tag of the image below a segment: the same in the next build, whose unchanged layers are then not
/// written again.
fn below_tag(base: &PlannedBase, segment: &WindowsSegment) -> String {
    let stage = format!("{} {} {}", base.digest(), segment.stage, segment.id);
    format!("windows-base-{}", digits(&sha256(stage.as_bytes())))
}

/// An image that a worker or this program pushed.
async fn pushed_image(reference: &Reference, registry: &RegistryClient) -> Result<Image, BoxError> {
    let source = Source::Registry(registry.repository(reference));
    let Document::Manifest(manifest) = source.resolve(reference.digest()).await? else {
        let problem = format!("{reference} is an index: expected an image");
        return Err(Problem::new("daemon/answer", problem).into());
    };
    Ok(source.image(*manifest).await?)
}

/// The builds of Windows that run the steps of an image: that of the image below, and that of its
/// host, on which it starts.
fn builds_of(image: &PlannedImage, below: &PlannedBase) -> Vec<u32> {
    let host = image.host.as_ref().map(|host| host.build.version.build);
    let own = below.os_version.map(|version| version.build);
    let mut builds: Vec<u32> = own.into_iter().chain(host).collect();
    builds.dedup();
    builds
}

/// The first digits of a digest, for a tag.
fn digits(digest: &Digest) -> String {
    let text = digest.to_string();
    let hex = text.rsplit(':').next().unwrap_or_default();
    hex.chars().take(DIGITS).collect()
}

/// `line 3` or `lines 3 to 9`: the steps of a segment, and whether it is one line.
fn lines_of(segment: &WindowsSegment) -> (String, bool) {
    let line = |step: Option<&SegmentStep>| step.map_or(0, |step| step.line);
    let first = line(segment.steps.first());
    match line(segment.steps.last()) {
        last if last == first => (format!("line {first}"), true),
        last => (format!("lines {first} to {last}"), false),
    }
}

/// Returns true if an image has all layers of another below its own.
fn is_on(image: &Image, below: &Image) -> bool {
    let own = &image.config().rootfs.diff_ids;
    own.starts_with(&below.config().rootfs.diff_ids) && image.config().os == below.config().os
}

/// Raised when the same inputs are run in another way.
const EDITION: u32 = 2;

/// Digest of the image below, the Dockerfile with its escape directive, and the values of its build
/// arguments. It reads no other files: those of the build context are in the image below.
fn segment_key(below: &Digest, segment: &WindowsSegment) -> Digest {
    let inputs = json!({
        "edition": EDITION,
        "below": below,
        "dockerfile": segment.dockerfile("").dockerfile,
        "arguments": segment.arguments,
    });
    sha256(inputs.to_string().as_bytes())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use wincimg_common::files::TextFile;
    use wincimg_dockerfile::stages::{DockerfileRequest, Inputs, StageBase, Stages, WindowsInputs};
    use wincimg_oci::document::ContainerConfig;
    use wincimg_registry::UnknownBase;

    use super::*;

    const BASE: &str = "repo.lan/base:ltsc2022";

    /// The key of the only segment of a Dockerfile with these instructions.
    fn key(below: &str, text: &str, argument: &str) -> Digest {
        key_of_file(below, &format!("FROM {BASE}\n{text}"), argument)
    }

    fn key_of_file(below: &str, text: &str, argument: &str) -> Digest {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("Dockerfile");
        std::fs::write(&file, text).unwrap();
        let request = DockerfileRequest {
            skipped_actions: Vec::new(),
            choco_feed: None,
            file: TextFile::named(file),
            folder: folder.path().to_owned(),
            context: folder.path().to_owned(),
            target: None,
            arguments: vec![("A".to_owned(), argument.to_owned())],
            replacements: BTreeMap::new(),
        };
        let stages = Stages::read(&request).unwrap();
        let base = StageBase {
            config: ContainerConfig::default(),
            inside: Arc::new(UnknownBase),
            has_user_variables: false,
        };
        let inputs = Inputs {
            bases: [(BASE.to_owned(), base)].into(),
            windows: Some(WindowsInputs::default()),
            ..Inputs::default()
        };
        let result = stages.evaluate(&inputs).unwrap();
        assert_eq!(result.segments.len(), 1);
        segment_key(&sha256(below.as_bytes()), &result.segments[0])
    }

    #[test]
    fn what_decides_the_result_decides_the_key() {
        let text = "ARG A\nRUN one.exe %A%\nLABEL x=y\n";
        let known = key("below", text, "1");
        // Neither the folder, nor comments, nor what follows.
        let commented = "ARG A\n# a comment\nRUN one.exe %A%\nLABEL x=z\n";
        assert_eq!(key("below", commented, "1"), known);
        for other in [
            key("other", text, "1"),
            key("below", text, "2"),
            key("below", "ARG A\nRUN two.exe %A%\n", "1"),
            key("below", "ARG A\nENV B=1\nRUN one.exe %A%\n", "1"),
        ] {
            assert_ne!(other, known);
        }
        // An argument that no line declares does not count.
        let plain = "RUN one.exe\n";
        assert_eq!(key("below", plain, "1"), key("below", plain, "2"));
    }

    #[test]
    fn an_escape_directive_is_another_key() {
        // Without the directive, the backslash joins the lines.
        let text = format!("FROM {BASE}\nRUN x.exe C:\\dir\\\nRUN x.exe two\n");
        let corrected = format!("# escape=`\n{text}");
        let key = |text: &str| key_of_file("below", text, "1");
        assert_ne!(key(&text), key(&corrected));
    }
}
