//! Evaluates a Dockerfile on the bases of one host: first with their names only, and again as more
//! becomes known: files of other images, downloads, contents of the bases.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::try_join_all;
use wincimg_common::diagnose::{BoxError, Problem, error_chain};
use wincimg_dockerfile::stages::{
    BaseImages, EvaluationResult, Inputs, SegmentId, StageBase, StageError, Stages, StepPlacement,
    WindowsInputs, WindowsSegment, run_requirements,
};
use wincimg_inspect::bases::{NamedBase, is_published_host_process};
use wincimg_inspect::windows_images;
use wincimg_oci::copy::PlatformFilter;
use wincimg_oci::document::Digest;
use wincimg_oci::store::{Location, Source};
use wincimg_recipe::Instructions;
use wincimg_windows::base_contents::{BaseContents, BaseRequirements};
use wincimg_windows::compat::HostBuild;

use super::history::BaseMetadata;
use super::image_files::{ImageExtractor, windows_of_linux};
use super::{MissingInputs, PlannedBase, PlannedImage};
use crate::downloads::DownloadSet;

/// Bases of a Dockerfile's stages, and their required contents.
#[derive(Debug, Clone, Default)]
pub struct StageBases {
    inputs: Inputs,
    /// The bases by their names in the file.
    pub(crate) bases: BTreeMap<String, PlannedBase>,
    /// Digests of the images to copy from, by their names in the file.
    pub(crate) copied: BTreeMap<String, Digest>,
    needs: BTreeMap<String, BaseRequirements>,
    /// True if the contents of one of them are required.
    pub(crate) requires_contents: bool,
    /// True if the instructions were evaluated with all known inputs: none was missing, and none
    /// was added since.
    are_settled: bool,
    /// Segments that Windows has to run first.
    pub(crate) segments: Vec<WindowsSegment>,
    /// Where each step of the Dockerfile runs.
    pub placements: Vec<StepPlacement>,
    /// Lines that a plan leaves out, because only a build reads what they depend on.
    pub left_out: Vec<String>,
}

impl StageBases {
    /// Bases by their names in the file; only their configurations are known.
    pub(super) fn new(
        bases: BTreeMap<String, PlannedBase>,
        windows: Option<WindowsInputs>,
    ) -> Self {
        let known: BaseImages = bases
            .iter()
            .map(|(name, base)| (name.clone(), stage_base(base)))
            .collect();
        Self {
            inputs: Inputs {
                bases: known,
                windows,
                ..Inputs::default()
            },
            bases,
            ..Self::default()
        }
    }

    pub(crate) fn required(&self) -> impl Iterator<Item = (&PlannedBase, BaseRequirements)> {
        let bases = self.bases.iter();
        bases.map(|(name, base)| (base, self.needs.get(name).cloned().unwrap_or_default()))
    }

    pub(crate) fn set_result(&mut self, segment: SegmentId, result: PlannedBase) {
        let name = result.label();
        if let Some(windows) = &mut self.inputs.windows {
            windows.results.insert(segment, name.clone());
        }
        self.inputs.bases.insert(name.clone(), stage_base(&result));
        self.bases.insert(name, result);
        self.segments.clear();
        self.are_settled = false;
    }

    /// Returns true if the instructions depend on the contents of a base.
    pub fn depends_on(&self, name: &str) -> bool {
        self.needs.contains_key(name)
    }

    pub(crate) fn set_contents(&mut self, digest: &Digest, inside: &Arc<dyn BaseContents>) {
        for (name, base) in &mut self.bases {
            if base.digest() == digest {
                base.inside = Arc::clone(inside);
                if let Some(known) = self.inputs.bases.get_mut(name) {
                    known.inside = Arc::clone(inside);
                    self.are_settled = false;
                }
            }
        }
    }

    /// Evaluates the instructions before anything is fetched or read; the result has notes for
    /// their author too.
    pub(super) fn evaluate_draft(
        &mut self,
        stages: &Stages,
    ) -> Result<(Instructions, Vec<String>), StageError> {
        let outcome = stages.evaluate_without_contents(&self.inputs)?;
        self.are_settled = outcome.is_complete();
        self.inputs.lacking = outcome.lacking;
        self.inputs.wants = outcome.wants;
        self.needs = outcome.needs;
        for (name, base) in &self.bases {
            if base.names(BaseMetadata::Programs) && stages.runs_on(name) {
                self.needs.insert(name.clone(), run_requirements());
            }
        }
        self.segments = outcome.segments;
        self.placements = outcome.placements;
        Ok((outcome.instructions, outcome.notes))
    }

    /// Returns true if another evaluation would have the same result.
    fn is_stable(&self, is_seen: bool) -> bool {
        let asked_for_nothing = self.inputs.lacking.is_empty() && self.inputs.wants.is_empty();
        self.are_settled || !is_seen && asked_for_nothing
    }

    /// Requests the contents of bases that are required. If they were requested already and no
    /// layer is read for a plan that is only shown, they are reported as missing.
    fn request_contents(
        &mut self,
        stages: &Stages,
        error: StageError,
        is_rehearsal: bool,
    ) -> Result<Option<String>, StageError> {
        let bases = stages.bases_to_inspect(&error);
        let is_asked_for = |base: &String| self.needs.contains_key(base);
        if !bases.iter().all(is_asked_for) {
            for base in bases {
                self.needs.entry(base).or_insert_with(run_requirements);
            }
            self.requires_contents = true;
            return Ok(None);
        }
        let is_unread = bases.iter().all(|base| !self.inputs.has_files_of(base));
        if is_rehearsal && is_unread && error.needs_base_contents() {
            return Ok(Some(error_chain(&error)));
        }
        Err(error)
    }
}

/// A base as an evaluation knows it.
fn stage_base(base: &PlannedBase) -> StageBase {
    StageBase {
        config: base.image.config().config.clone(),
        inside: Arc::clone(&base.inside),
        has_user_variables: base.names(BaseMetadata::UserVariables),
    }
}

/// One evaluation of a Dockerfile for its hosts, with the services that fetch its inputs.
pub(super) struct EvaluationPass<'a> {
    pub stages: &'a Stages,
    pub images: ImageExtractor<'a>,
    pub supply: &'a mut DownloadSet,
    /// True if the contents of the bases were read.
    pub is_seen: bool,
}

impl EvaluationPass<'_> {
    /// Evaluates it for one host, and returns what is missing in the end.
    pub(super) async fn evaluate(
        &mut self,
        image: &mut PlannedImage,
        lacking: &mut MissingInputs,
    ) -> Result<(), BoxError> {
        image.stages.requires_contents = false;
        if image.stages.is_stable(self.is_seen) {
            return Ok(());
        }
        let outcome = match self.outcome(image).await? {
            Ok(outcome) => outcome,
            Err(error) => {
                let is_rehearsal = self.supply.is_offline();
                let needed = image
                    .stages
                    .request_contents(self.stages, error, is_rehearsal)?;
                let Some(needed) = needed else {
                    return Ok(());
                };
                lacking.needs_contents.insert(needed);
                // The other lines are known.
                image.stages.inputs.omits_unread = true;
                self.outcome(image).await??
            }
        };
        image.stages.needs.extend(outcome.needs);
        image.stages.segments = outcome.segments;
        image.stages.placements = outcome.placements;
        let is_of_windows = outcome.base != self.stages.base();
        let ground = image.stages.bases.get(&outcome.base).cloned();
        image.windows = ground.filter(|_| is_of_windows);
        let mut instructions = outcome.instructions;
        instructions
            .downloads_mut()
            .for_each(|file| self.supply.resolve(file));
        image.plan.instructions = Some(instructions);
        lacking.files.extend(self.supply.missing(outcome.wants));
        if image.stages.inputs.omits_unread {
            image.stages.left_out = outcome.unclear;
        } else if self.supply.is_offline() {
            lacking.needs_download.extend(outcome.unclear);
        }
        for note in outcome.notes {
            image.add_note(note);
        }
        Ok(())
    }

    /// Evaluates the instructions with all inputs that can be fetched; the result may require more.
    /// The inner error is that of the instructions.
    async fn outcome(
        &mut self,
        image: &mut PlannedImage,
    ) -> Result<Result<EvaluationResult, StageError>, BoxError> {
        let hosts: Vec<HostBuild> = image.host.iter().map(|host| host.build).collect();
        loop {
            for (name, paths) in std::mem::take(&mut image.stages.inputs.lacking) {
                for base in self.images_named(&name, &image.stages, &hosts).await? {
                    if let Some(note) = self.other_windows(&name, &base, image) {
                        image.add_note(note);
                    }
                    let files = self.images.extract(&base, &paths).await?;
                    let here = image.stages.inputs.files.entry(name.clone()).or_default();
                    here.add(&paths, files);
                }
            }
            let inputs = &mut image.stages.inputs;
            if self.leave_to_windows(inputs) {
                inputs.wants = self
                    .evaluate_once(inputs)
                    .map_or_else(|_| inputs.wants.clone(), |outcome| outcome.wants);
                continue;
            }
            let http = self.images.ctx.registry.http();
            let came = self.supply.fetch(&inputs.wants, http).await?;
            inputs.downloads.clone_from(self.supply.files());
            let outcome = match self.evaluate_once(inputs) {
                Ok(outcome) => outcome,
                Err(error) => return Ok(Err(error)),
            };
            let is_whole = outcome.lacking.is_empty();
            let is_same = outcome.wants == inputs.wants && !came;
            let none_missing = || self.supply.missing(outcome.wants.clone()).is_empty();
            if is_whole && (is_same || none_missing()) {
                return Ok(Ok(outcome));
            }
            inputs.lacking = outcome.lacking;
            inputs.wants = outcome.wants;
        }
    }

    fn evaluate_once(&self, inputs: &Inputs) -> Result<EvaluationResult, StageError> {
        if self.is_seen {
            self.stages.evaluate(inputs)
        } else {
            self.stages.evaluate_without_contents(inputs)
        }
    }

    /// Leaves lines with downloads that no digest pins to Windows; returns true if there are more
    /// than before.
    fn leave_to_windows(&self, inputs: &mut Inputs) -> bool {
        let Some(windows) = inputs.windows.as_mut().filter(|_| !self.supply.is_noting()) else {
            return false;
        };
        let before = windows.not_pinned.len();
        let open = self.supply.not_pinned(&inputs.wants);
        windows
            .not_pinned
            .extend(open.into_iter().map(str::to_owned));
        windows.not_pinned.len() > before
    }

    /// Images that a name of the file stands for: a resolved base, or images of any registry.
    async fn images_named(
        &self,
        name: &str,
        on: &StageBases,
        hosts: &[HostBuild],
    ) -> Result<Vec<PlannedBase>, BoxError> {
        if let Some(base) = on.bases.get(name) {
            return Ok(vec![base.clone()]);
        }
        if let Some(platform) = self.stages.platform_of(name) {
            let found = self.images_for(name, platform).await;
            // What the user names instead may be for Windows.
            if found.is_err()
                && self.stages.is_replacement(name)
                && let Ok(found) = self.windows_replacement(name, hosts).await
                && !found.is_empty()
            {
                return Ok(found);
            }
            return found;
        }
        if hosts.is_empty() && !is_published_host_process(name) {
            let problem = format!("COPY --from={name} requires a host");
            return Err(Problem::request("dockerfile/request", problem)
                .hint("name one: --host-build B.R")
                .into());
        }
        self.images.resolve(name, hosts).await
    }

    /// Note for files of an image for another Windows version than its name or the base has. Those
    /// of stages have theirs.
    fn other_windows(
        &self,
        name: &str,
        found: &PlannedBase,
        image: &PlannedImage,
    ) -> Option<String> {
        if image.stages.bases.contains_key(name) || self.stages.is_local(name) {
            return None;
        }
        let registry = &self.images.request.base_registry;
        let named = registry.parse_dockerfile_name(name).ok()?;
        if let Some(note) = super::other_windows(name, &named, found, image.host.as_ref()?) {
            return Some(note);
        }
        let own = image.base.os_version?.build;
        let build = match found.os_version {
            Some(version) => version.build,
            None => windows_of_linux(&named)?,
        };
        (build != own).then(|| {
            format!("{name} is for build {build} of Windows, and the base has build {own}")
        })
    }

    /// The Windows image in place of a stage for another platform.
    async fn windows_replacement(
        &self,
        name: &str,
        hosts: &[HostBuild],
    ) -> Result<Vec<PlannedBase>, BoxError> {
        if !self.stages.is_local(name) {
            return self.images.resolve(name, hosts).await;
        }
        let place: Location = name.parse()?;
        let (registry, matched) = (&self.images.ctx.registry, self.images.request.matched);
        let hosts = hosts.iter();
        let reading = hosts.map(|host| PlannedBase::local(&place, registry, *host, matched));
        try_join_all(reading).await
    }

    /// The image for another platform than Windows, which is only a source of files.
    async fn images_for(&self, name: &str, platform: &str) -> Result<Vec<PlannedBase>, BoxError> {
        let failed = |problem: String| Problem::new("dockerfile/request", problem);
        let filter: PlatformFilter = platform
            .parse()
            .map_err(|error| failed(format!("FROM --platform={platform}: {error}")))?;
        let place: Location = if self.stages.is_local(name) {
            name.parse()?
        } else {
            let base_registry = &self.images.request.base_registry;
            let named = base_registry.parse_dockerfile_name(name)?;
            self.images.check_windows(name, windows_of_linux(&named))?;
            Location::Registry(match named {
                NamedBase::Exact(reference) => reference,
                NamedBase::OfHost { name, .. } => name.repository,
            })
        };
        let source = Source::open(&place, &self.images.ctx.registry).await?;
        let images = windows_images(&source, place.tag_or_digest(), &[filter]).await?;
        let [image] = images.as_slice() else {
            let count = images.len();
            let problem = format!("{name} has {count} images for {platform}: expected one");
            return Err(failed(problem).into());
        };
        Ok(vec![PlannedBase::new(Some(place), image.clone())])
    }
}
