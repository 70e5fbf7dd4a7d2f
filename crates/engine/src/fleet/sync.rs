//! Builds the missing images of a fleet for its nodes.
//!
//! Images are checked concurrently, with a limit; those that are made of others of the fleet, after
//! these. Bases are resolved once for all of a level, and each tag is read with one request; images
//! that are up to date need no more.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures_util::{StreamExt, stream};
use jiff::Timestamp;
use jiff::civil::Date;
use tokio::sync::{OnceCell, Semaphore, SemaphorePermit};
use wincimg_cluster::nodes::Node;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_common::lock;
use wincimg_common::progress::Progress;
use wincimg_common::shell::command_line;
use wincimg_dockerfile::stages::StageError;
use wincimg_inspect::bases::{BaseRegistry, HOST_PROCESS};
use wincimg_layer::Compression;
use wincimg_oci::reference::Reference;
use wincimg_windows::compat::{Architecture, ContainerRuntime};

use super::report::{FleetImageState, FleetReport, ImageReport, ReportedError};
use super::tag_contents::{ImageInputs, TagContents};
use super::update::EntryUpdate;
use super::{EntrySource, Fleet, FleetEntry};
use crate::bases::BaseSearch;
use crate::build::{BuildContext, PlannedBuild};
use crate::compat_check::{check_served, check_tag};
use crate::definition::{BuildDefinition, BuildInput};
use crate::delivery::{
    AttachmentOptions, BuildPermit, DeliveryTarget, TagPolicy, TagValidator, default_layouts,
};
use crate::engine_choice::Engine;
use crate::notice::UPDATE_LOCK;
use crate::plans::{BuildRequest, PlannedImage, TargetHost};
use crate::publication::{IndexMode, NamingOptions, PlannedTag, PlannedTagEntry, Publication};
use crate::unserved::TargetIndex;

/// Number of images in work. Most of them wait a moment after publishing.
const MAX_IMAGES: usize = 128;
/// Number of concurrent checks.
const MAX_CHECKS: usize = 32;
/// Number of concurrent builds and uploads. They wait for the registry, so it exceeds the number of
/// cores.
const MAX_BUILDS: usize = 16;
/// Number of messages to remember, so that they are not repeated.
const MAX_PRINTED: usize = 10_000;

/// Mode of a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncMode {
    /// Missing images are only reported.
    Check,
    /// Missing images are built.
    Build,
}

/// Options of a sync.
#[derive(Clone, Copy)]
pub struct SyncOptions<'a> {
    /// Services of builds; bases are resolved again in each sync.
    pub ctx: &'a BuildContext<'a>,
    /// Registry of base images, unless the file sets one.
    pub base_registry: &'a BaseRegistry,
    /// Documents to attach to built images.
    pub documents: &'a AttachmentOptions,
    /// Timestamp of new layers, if it is not the base's.
    pub created: Option<Timestamp>,
    /// Date of the check of Windows' support.
    pub today: Date,
    /// Registry flags of this run, for the commands in hints.
    pub flags: &'a [String],
    /// Files that the caller writes, which are left out of the contexts of Dockerfiles.
    pub written: &'a [PathBuf],
    /// True if an image is published for all of its hosts or for none.
    pub all_or_nothing: bool,
}

/// Reports, and in [`SyncMode::Build`] builds, the missing images of a fleet for nodes. An error of
/// one image is in its report and does not stop the others.
pub async fn sync(
    fleet: &Fleet,
    nodes: &[Node],
    run: SyncOptions<'_>,
    mode: SyncMode,
) -> FleetReport {
    let mut work = SyncContext {
        run,
        mode,
        nodes,
        bases: BaseSearch::new(&run.ctx.registry),
        layouts: default_layouts(Path::new(".")),
        reached: Mutex::default(),
        printed: Mutex::default(),
        checks: Semaphore::new(MAX_CHECKS),
        builds: Arc::new(Semaphore::new(MAX_BUILDS)),
    };
    let mut images: BTreeMap<usize, ImageReport> = BTreeMap::new();
    for level in fleet.levels() {
        // The level before may have published bases of this one.
        work.bases = BaseSearch::new(&run.ctx.registry);
        let places = stream::iter(level.clone());
        let reports = places.map(|place| Box::pin(work.report_entry(&fleet.entries[place])));
        let reports: Vec<ImageReport> = reports.buffered(MAX_IMAGES).collect().await;
        for (place, mut report) in level.into_iter().zip(reports) {
            let below = &fleet.entries[place].below;
            let others = images.values();
            for other in others.filter(|other| below.contains(&other.reference)) {
                report.follow(other);
            }
            images.insert(place, report);
        }
    }
    let images = images.into_values().collect();
    let silent = nodes.iter().filter(|node| node.build.is_none());
    let left_out = silent.filter_map(|node| node.name.clone()).collect();
    FleetReport::new(fleet.file.clone(), images, left_out)
}

/// State shared by all images.
pub(super) struct SyncContext<'a> {
    pub(super) run: SyncOptions<'a>,
    pub(super) mode: SyncMode,
    nodes: &'a [Node],
    bases: BaseSearch,
    /// Default outputs in the working directory.
    layouts: Vec<PathBuf>,
    /// Answers of registries, by host.
    reached: Mutex<HashMap<String, PingResult>>,
    printed: Mutex<HashSet<String>>,
    checks: Semaphore,
    builds: Arc<Semaphore>,
}

/// Cached answer of a registry.
type PingResult = Arc<OnceCell<Result<(), ReportedError>>>;

/// A permit to check an image while others are.
pub(super) type CheckPermit<'a> = Option<SemaphorePermit<'a>>;

/// Reporter that drops what was reported before.
pub struct DedupReporter<'a> {
    /// Receives what is new.
    pub reporter: &'a dyn Progress,
    /// What was reported.
    pub printed: &'a Mutex<HashSet<String>>,
    /// The image that it is about.
    pub about: Option<String>,
}

impl DedupReporter<'_> {
    fn report(&self, message: &dyn Display, to: impl Fn(&dyn Progress, &dyn Display)) {
        let message = message.to_string();
        let mut printed = lock(self.printed);
        if printed.len() >= MAX_PRINTED {
            printed.clear();
        }
        if printed.insert(message.clone()) {
            drop(printed);
            match &self.about {
                Some(about) => to(self.reporter, &format_args!("{about}: {message}")),
                None => to(self.reporter, &message),
            }
        }
    }
}

impl Progress for DedupReporter<'_> {
    fn note(&self, message: &dyn Display) {
        self.report(message, |reporter, message| reporter.note(message));
    }

    fn warn(&self, message: &dyn Display) {
        self.report(message, |reporter, message| reporter.warn(message));
    }
}

impl SyncContext<'_> {
    async fn report_entry(&self, entry: &FleetEntry) -> ImageReport {
        let mut report = ImageReport::new(entry);
        if let Err(failure) = Box::pin(self.sync_entry(entry, &mut report)).await {
            report.fail(failure);
        }
        report
    }

    async fn sync_entry(
        &self,
        entry: &FleetEntry,
        report: &mut ImageReport,
    ) -> Result<(), ReportedError> {
        let check: CheckPermit<'_> = self.checks.acquire().await.ok();
        let dedup = DedupReporter {
            reporter: self.run.ctx.reporter,
            printed: &self.printed,
            about: Some(entry.label()),
        };
        let ctx = BuildContext {
            bases: self.bases.clone(),
            reporter: &dedup,
            ..self.run.ctx.clone()
        };
        let nodes = self.nodes.iter().filter(|node| entry.matches(node));
        // A list's images are for the usual architecture.
        let usual = Architecture::default().name();
        let nodes = nodes.filter(|node| node.architecture == usual);
        let nodes: Vec<Node> = nodes.cloned().collect();
        let sync = EntrySync {
            work: self,
            entry,
            nodes: &nodes,
            ctx: &ctx,
        };
        match &entry.work {
            EntrySource::Build(input) => Box::pin(sync.build(input, check, report)).await,
            EntrySource::Update { image, base } => {
                let hosts = TargetHost::from_nodes(&nodes);
                if !sync.has_hosts(&hosts, report) {
                    return Ok(());
                }
                self.check_registry(image).await?;
                let updating = EntryUpdate {
                    sync,
                    image,
                    base: base.as_deref(),
                    hosts: &hosts,
                };
                Box::pin(updating.run(check, report)).await
            }
        }
    }

    /// Exchanges a permit to check an image for one to build it. While waiting here, a build holds
    /// no resource that others wait for.
    pub(super) async fn build_permit(&self, check: CheckPermit<'_>) -> BuildPermit {
        drop(check);
        Mutex::new(Arc::clone(&self.builds).acquire_owned().await.ok())
    }

    /// Checks that an image's registry answers. Each is queried once, so that a thousand images do
    /// not wait one after the other for one that does not.
    async fn check_registry(&self, reference: &Reference) -> Result<(), ReportedError> {
        let (registry, host) = (&self.run.ctx.registry, reference.registry());
        let cell = Arc::clone(lock(&self.reached).entry(host.to_owned()).or_default());
        let answer = cell.get_or_init(async || match registry.ping(host).await {
            // A registry that rejects the ping may still serve the requests that follow.
            Err(error) if error.status().is_none() => Err(ReportedError::from(error)),
            _ => Ok(()),
        });
        answer.await.clone()
    }
}

/// An image of the fleet, and the services to check and publish it with.
pub(super) struct EntrySync<'a> {
    pub(super) work: &'a SyncContext<'a>,
    pub(super) entry: &'a FleetEntry,
    pub(super) nodes: &'a [Node],
    pub(super) ctx: &'a BuildContext<'a>,
}

impl EntrySync<'_> {
    async fn build(
        &self,
        input: &BuildInput,
        check: CheckPermit<'_>,
        report: &mut ImageReport,
    ) -> Result<(), ReportedError> {
        let (entry, run, ctx) = (self.entry, &self.work.run, self.ctx);
        let mut definition = input.read(ctx.reporter)?;
        definition.leave_out_cache(ctx.cache.as_deref())?;
        definition.leave_out(run.written.iter().cloned(), &self.work.layouts);
        let mut hosts = Vec::new();
        if !definition.is_for_any_host()? {
            hosts = TargetHost::from_nodes(self.nodes);
            if !self.has_hosts(&hosts, report) {
                return Ok(());
            }
        }
        let (Some(reference), Some(name)) = (entry.reference(), &entry.name) else {
            return Err(nameless(entry));
        };
        self.work.check_registry(&reference).await?;
        let request = self.request(definition, hosts);
        let standing = TagContents::read(&ctx.registry, &reference);
        let planning = request.plan(request.downloads(ctx)?, ctx);
        let (standing, planned) = tokio::join!(standing, planning);
        let reported = |error: BoxError| self.with_build_command(&request, error);
        let (standing, mut planned) = (standing?, planned.map_err(reported)?);
        request.resolve_copied(&mut planned.images, ctx).await;
        self.set_aside_conflicts(&mut planned, &standing)?;
        for host in planned.unserved.drain(..) {
            report.record_unserved(host);
        }
        if planned.images.is_empty() {
            return Ok(());
        }
        self.warn_of_old_runtimes(&planned.images, report);
        let documents = self.documents(input, &request);
        let review = |tags: &[PlannedTag<'_>]| self.review(tags);
        let mut target = entry.target(name, documents, &review);
        let (_, obstacle) = planned.engine();
        self.keep_missing(&mut planned, &target.naming, &standing, report)?;
        if self.work.mode == SyncMode::Check || planned.images.is_empty() {
            self.check_current(&standing, &planned.request.hosts, report);
            return Ok(());
        }
        if let Some(why) = obstacle {
            return Err(self.needs_daemon(&request, &why));
        }
        target.permit = self.work.build_permit(check).await;
        let made = Box::pin(planned.make(target, ctx)).await;
        report.record_built(made.map_err(reported)?);
        Ok(())
    }

    /// Checks planned tags on the nodes.
    pub(super) fn review(&self, tags: &[PlannedTag<'_>]) -> Result<(), Problem> {
        check_served(tags, self.nodes, self.work.run.today, self.ctx.reporter)
    }

    /// Moves the hosts whose images the tag's index cannot have to those without an image.
    fn set_aside_conflicts(
        &self,
        planned: &mut PlannedBuild<'_>,
        standing: &TagContents,
    ) -> Result<(), Problem> {
        let definition = &planned.request.definition;
        let command = |host: &TargetHost| {
            let mut words = self.build_command(definition, std::slice::from_ref(host));
            words.extend(self.entry.target_words());
            no_index_command(words)
        };
        let index = TargetIndex {
            tag: &self.entry.tag,
            existing: &standing.versions(),
            command: &command,
            all_or_nothing: self.work.run.all_or_nothing,
        };
        index.set_aside_conflicts(&mut planned.images, |image| image, &mut planned.unserved)
    }

    fn request(&self, definition: BuildDefinition, hosts: Vec<TargetHost>) -> BuildRequest {
        let (entry, run) = (self.entry, &self.work.run);
        let base_registry = entry.base_registry.as_ref();
        let base_registry = base_registry.unwrap_or(run.base_registry).clone();
        let mut request = BuildRequest::new(definition, hosts, base_registry, entry.matched);
        request.labels.clone_from(&entry.labels);
        request.origin = Some(request.definition.origin());
        request.all_or_nothing = run.all_or_nothing;
        request.options.compression = entry.compression;
        request.options.created = run.created;
        request.options.reuse = Some(Vec::new());
        let mut words = self.build_command(&request.definition, &request.hosts);
        words.push(UPDATE_LOCK.to_owned());
        request.noting = command_line(&words);
        request
    }

    /// The requested documents, with the source of this image.
    fn documents(&self, input: &BuildInput, request: &BuildRequest) -> AttachmentOptions {
        let mut documents = self.work.run.documents.clone();
        if let Some(reported) = &mut documents.provenance {
            let values = input.values.iter().chain(&input.arguments);
            reported.arguments = values.map(|(name, _)| name.clone()).collect();
            reported.arguments.sort();
            reported.arguments.dedup();
            reported.source = request.definition.source();
        }
        documents
    }

    /// The command that builds the image alone for these hosts, without its names.
    fn build_command(&self, definition: &BuildDefinition, hosts: &[TargetHost]) -> Vec<String> {
        let run = &self.work.run;
        let mut words = ["wincimg", "build"].map(str::to_owned).to_vec();
        if let EntrySource::Build(input) = &self.entry.work {
            words.extend(input.to_words(definition));
        }
        for host in hosts {
            words.extend(["--host-build".to_owned(), host.build.version.to_string()]);
        }
        words.extend(self.entry.option_words(run.base_registry));
        words.extend_from_slice(run.flags);
        words
    }

    /// Error for an image that only a daemon can build.
    fn needs_daemon(&self, request: &BuildRequest, why: &Problem) -> ReportedError {
        // Docker has its own compression and manifests.
        let entry = FleetEntry {
            compression: Compression::default(),
            manifest_format: None,
            ..self.entry.clone()
        };
        let by_daemon = EntrySync {
            entry: &entry,
            ..*self
        };
        let problem = format!("a Docker daemon on Windows is required: {why}");
        let command = by_daemon.daemon_command(request);
        ReportedError::from(Problem::answer("windows/needed", problem).hint(command))
    }

    /// The command that publishes the image with a Docker daemon.
    fn daemon_command(&self, request: &BuildRequest) -> String {
        let mut words = self.build_command(&request.definition, &request.hosts);
        words.extend(self.entry.target_words());
        words.extend(["--join", "--push", "--docker-host"].map(str::to_owned));
        words.push("tcp://HOST:2376".to_owned());
        command_line(&words)
    }

    /// The error of a plan or a build. `fleet` has no flag for a daemon: its hint names the whole
    /// command.
    fn with_build_command(&self, request: &BuildRequest, error: BoxError) -> ReportedError {
        let of_line = error.downcast_ref::<StageError>();
        let hint = of_line.and_then(|error| error.hint_with_daemon(&self.daemon_command(request)));
        let mut error = ReportedError::from(error);
        error.hint = hint.or(error.hint);
        error
    }

    /// Checks the hosts whose images are up to date: their runtimes may select other entries of the
    /// tag as it is.
    pub(super) fn check_current(
        &self,
        standing: &TagContents,
        hosts: &[TargetHost],
        report: &mut ImageReport,
    ) {
        let tag = &self.entry.tag;
        for host in hosts {
            let build = report.for_host(Some(host));
            if build.state != FleetImageState::Current {
                continue;
            }
            let planned = standing.tag_for(tag, host);
            match check_tag(&planned, self.nodes, self.work.run.today) {
                Ok(warnings) => {
                    for warning in &warnings {
                        self.ctx.reporter.warn(&format_args!("{tag}: {warning}"));
                    }
                    build.warnings = warnings;
                }
                Err(problem) => {
                    build.state = FleetImageState::Failed;
                    build.problem = Some(problem.into());
                }
            }
        }
    }

    /// Records the state of the images, and keeps those to be built, which get their inputs as
    /// annotations.
    fn keep_missing(
        &self,
        planned: &mut PlannedBuild<'_>,
        naming: &NamingOptions,
        standing: &TagContents,
        report: &mut ImageReport,
    ) -> Result<(), ReportedError> {
        let is_daemons = planned.engine().0 == Engine::Docker;
        let publication = Publication::new(&planned.images, naming)?;
        let images: Vec<_> = publication.images.iter().map(|it| it.planned).collect();
        let inputs = planned.request.inputs(&images, self.entry.compression)?;
        let mut missing = Vec::new();
        for (image, inputs) in publication.images.iter().zip(inputs) {
            let base = image.planned.base.digest().clone();
            let made_of = ImageInputs { inputs, base };
            let planned_entry = PlannedTagEntry::from_planned(image.planned);
            let verdict = standing.status(&planned_entry, &made_of, is_daemons);
            report.record_status(
                image,
                &tagged(self.entry, &naming.name, &image.tag),
                &verdict,
            );
            if !verdict.state.is_present() {
                missing.push(made_of);
            }
        }
        planned.images.retain_mut(|image| {
            let mut missing = missing.iter();
            let made_of = missing.find(|made_of| made_of.base == *image.base.digest());
            image.annotations = made_of.map(ImageInputs::annotations).unwrap_or_default();
            made_of.is_some()
        });
        Ok(())
    }

    /// Records an image's hosts, and warns if there are none.
    fn has_hosts(&self, hosts: &[TargetHost], report: &mut ImageReport) -> bool {
        for host in hosts {
            report.for_host(Some(host));
        }
        if hosts.is_empty() {
            let selector = self.entry.selector.as_ref();
            let which = selector.map_or_else(String::new, |it| format!(" matches {it}"));
            let warning = format!("no Windows node{which}");
            self.ctx
                .reporter
                .warn(&format_args!("line {}: {warning}", self.entry.line));
            report.warnings.push(warning);
        }
        !hosts.is_empty()
    }

    /// Warns of nodes whose runtime does not run an image without Windows out of its index.
    fn warn_of_old_runtimes(&self, images: &[PlannedImage], report: &mut ImageReport) {
        if images.iter().any(|image| image.base.os_version.is_some()) {
            return;
        }
        let nodes = self
            .nodes
            .iter()
            .filter(|node| !node.runtime.runs_unversioned());
        let names: Vec<&str> = nodes.filter_map(|node| node.name.as_deref()).collect();
        let Some(first) = names.first() else {
            return;
        };
        let lack = match names.len() {
            1 => format!("{first} does"),
            count => format!("{first} and {} more do", count - 1),
        };
        let warning = format!(
            "it contains no Windows and needs {}, which {lack} not have; with containerd 1.6.0 to \
             1.6.17, pods there can name the tag {}-{HOST_PROCESS}",
            ContainerRuntime::FOR_UNVERSIONED,
            self.entry.tag
        );
        self.ctx.reporter.warn(&warning);
        report.warnings.push(warning);
    }
}

/// Reference of one image of an index.
fn tagged(entry: &FleetEntry, name: &str, tag: &str) -> String {
    let joined = entry.registry.join(&format!("{name}:{tag}"));
    joined.map_or_else(|_| tag.to_owned(), |reference| reference.to_string())
}

impl FleetEntry {
    /// Its index in its registry, to which built images are added.
    pub(super) fn target<'a>(
        &self,
        name: &str,
        documents: AttachmentOptions,
        review: &'a TagValidator<'a>,
    ) -> DeliveryTarget<'a> {
        let naming = NamingOptions {
            index: IndexMode::Always,
            ..NamingOptions::tagged(name, &self.tag)
        };
        DeliveryTarget {
            manifest_format: self.manifest_format,
            existing: TagPolicy::Join,
            documents,
            ..DeliveryTarget::registry_only(naming, &self.registry, review)
        }
    }

    /// The words of `wincimg build` for its names.
    fn target_words(&self) -> impl Iterator<Item = String> {
        let flags = [
            ("--registry", self.registry.to_string()),
            ("--name", self.name.clone().unwrap_or_default()),
            ("--tag", self.tag.clone()),
        ];
        flags
            .into_iter()
            .flat_map(|(flag, value)| [flag.to_owned(), value])
    }

    pub(super) fn matches(&self, node: &Node) -> bool {
        let selector = self.selector.as_ref();
        selector.is_none_or(|selector| selector.matches(node))
    }
}

/// Command line that publishes an image under its version tag alone.
pub(super) fn no_index_command(mut words: Vec<String>) -> String {
    words.extend(["--no-index", "--push"].map(str::to_owned));
    command_line(&words)
}

/// Error for an image without a name.
fn nameless(entry: &FleetEntry) -> ReportedError {
    let (line, registry) = (entry.line, &entry.registry);
    let problem = format!("the image in line {line} has no name to push to {registry}");
    let error = Problem::request("fleet/invalid", problem).hint("set one: name = \"…\"");
    ReportedError::from(error)
}
