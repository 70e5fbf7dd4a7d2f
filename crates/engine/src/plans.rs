//! Plans of a build: one recipe or Dockerfile for several hosts, each on its matching base image.
//!
//! A runtime gives every host of a Windows build the same entry of an index, so hosts that one
//! image can serve share it: it is on the base of the oldest of them.

mod base;
mod history;
mod host;
mod image_files;
mod stages;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use base::PlannedBase;
pub(crate) use base::{HIVES, InterimImage};
use futures_util::future::try_join_all;
use history::BaseMetadata;
pub(crate) use history::with_commands;
pub(crate) use host::HostGroups;
pub use host::TargetHost;
#[cfg(test)]
pub(crate) use host::{common, leader};
use image_files::ImageExtractor;
use stages::EvaluationPass;
pub use stages::StageBases;
use wincimg_common::diagnose::{BoxError, Problem, error_chain};
use wincimg_dockerfile::stages::{Stages, WindowsInputs};
use wincimg_inspect::bases::{BaseMatch, BaseRegistry, MICROSOFT, NamedBase, ResolveError};
use wincimg_oci::store::Location;
use wincimg_recipe::{DownloadRequests, FileSource, Plan, PlanBase, Recipe};
use wincimg_registry::{KeyPath, Presence, Root};
use wincimg_windows::base_contents::BaseRequirements;

use super::bases::BaseSearch;
use super::build::{BuildContext, EngineOptions};
use super::definition::{BuildDefinition, DefinitionKind};
use super::downloads::{DownloadSet, LockMode};
use super::engine_choice::Engine;
use super::error;
use super::hybrid::WindowsSteps;
use super::origin::Origin;

/// Request for a build: definition, hosts and options.
pub struct BuildRequest {
    /// The definition.
    pub definition: BuildDefinition,
    /// The hosts; none if the images serve any.
    pub hosts: Vec<TargetHost>,
    /// Registry of base images.
    pub base_registry: BaseRegistry,
    /// Required match of base images.
    pub matched: BaseMatch,
    /// True if hosts of one build share an image if one can serve them, as an index requires.
    pub is_shared: bool,
    /// True if nothing is built unless every host gets an image.
    pub all_or_nothing: bool,
    /// The engine; by default one that can build the images. If it is a daemon, that carries out a
    /// Dockerfile as it is.
    pub engine: Option<Engine>,
    /// Labels in addition to those of the definition.
    pub labels: Vec<(String, String)>,
    /// The origin that images record in labels; none if they record none, not even their base.
    pub origin: Option<Origin>,
    /// Mode of downloads.
    pub downloads: LockMode,
    /// The command that updates the lock file.
    pub noting: String,
    /// Options of the engines.
    pub options: EngineOptions,
    /// Steps of a Dockerfile that run on Windows; none if they are errors.
    pub windows: Option<WindowsSteps>,
}

/// A planned image on a resolved base.
#[derive(Debug, Clone)]
pub struct PlannedImage {
    /// Its host; none if it serves any.
    pub host: Option<TargetHost>,
    /// The pinned base.
    pub base: PlannedBase,
    /// The plan.
    pub plan: Plan,
    /// Bases of a Dockerfile's stages; empty for a recipe.
    pub stages: StageBases,
    /// The image that the plan's instructions are on, if Windows made one on the base.
    pub(crate) windows: Option<PlannedBase>,
    /// True if Windows runs the next step on it.
    pub(crate) is_below_windows: bool,
    /// Annotations of its entry in an index.
    pub(crate) annotations: BTreeMap<String, String>,
}

impl PlannedImage {
    /// An image of one stage.
    pub(crate) fn new(host: Option<TargetHost>, base: PlannedBase, plan: Plan) -> Self {
        Self {
            host,
            base,
            plan,
            stages: StageBases::default(),
            windows: None,
            is_below_windows: false,
            annotations: BTreeMap::new(),
        }
    }

    /// The image that the plan's layers are on: what Windows made of the base, or the base.
    pub(crate) fn ground(&self) -> &PlannedBase {
        self.windows.as_ref().unwrap_or(&self.base)
    }

    /// Returns true if a layer directly above or below those of the plan has hives, as all that
    /// Windows makes do.
    pub(crate) fn requires_hives(&self) -> bool {
        self.is_below_windows || self.windows.is_some() || self.base.ends_with_hives()
    }

    /// The content of the image below that the build requires. A folder or key that a layer repeats
    /// keeps its rights, which are those of every such one unless somebody changed them.
    pub(crate) fn base_requirements(&self) -> BaseRequirements {
        let mut needs = self.plan.base_requirements();
        let ground = self.ground();
        needs.files |= self.plan.has_entries() && ground.may_have(BaseMetadata::Files);
        if ground.may_have(BaseMetadata::Keys) {
            needs.hives.extend(self.plan.changed_hives());
        }
        needs
    }

    /// Adds a note for the author of the definition, once.
    fn add_note(&mut self, note: String) {
        let notes = &mut self.plan.notes;
        if !notes.contains(&note) {
            notes.push(note);
        }
    }

    /// The version of its host, for reports.
    pub fn host_build(&self) -> Option<String> {
        self.plan.host_build.map(|version| version.to_string())
    }
}

/// Missing inputs, if no servers are contacted.
#[derive(Debug, Default)]
pub(crate) struct MissingInputs {
    pub(crate) files: DownloadRequests,
    /// Images with files of a recipe that no digest pins, each with the recipe.
    pub(crate) images_not_pinned: BTreeSet<(String, String)>,
    /// Lines of a Dockerfile whose effect depends on these.
    pub(crate) needs_download: BTreeSet<String>,
    /// Lines whose effect depends on the contents of a base, by the error without them.
    pub(crate) needs_contents: BTreeSet<String>,
}

/// Adds what packages of recipes leave behind. A plan that is only shown may lack the contents of
/// its base, and keeps the packages by their names.
fn install_packages(images: &mut [PlannedImage], is_shown_only: bool) -> Result<(), BoxError> {
    for image in images {
        let inside = Arc::clone(&image.ground().inside);
        let root = inside.key(&KeyPath::root_of(Root::Software));
        let is_unknown = matches!(root, Ok(Presence::Unknown)) && image.base.os_version.is_some();
        if !(is_shown_only && is_unknown) {
            image.plan.install_packages(inside.as_ref())?;
        }
    }
    Ok(())
}

impl BuildRequest {
    /// A request with default options.
    pub fn new(
        definition: BuildDefinition,
        hosts: Vec<TargetHost>,
        base_registry: BaseRegistry,
        matched: BaseMatch,
    ) -> Self {
        Self {
            definition,
            hosts,
            base_registry,
            matched,
            is_shared: true,
            all_or_nothing: true,
            engine: None,
            labels: Vec::new(),
            origin: None,
            downloads: LockMode::Pinned,
            noting: String::new(),
            options: EngineOptions::default(),
            windows: None,
        }
    }

    /// Inputs of an evaluation for steps that run on Windows.
    fn windows_inputs(&self) -> Option<WindowsInputs> {
        self.windows.as_ref().map(|_| WindowsInputs {
            is_rehearsal: self.downloads == LockMode::Offline,
            has_documents: self.options.buildkit().is_some(),
            ..WindowsInputs::default()
        })
    }

    /// The Dockerfile for a daemon to carry out.
    pub fn daemon_stages(&self) -> Option<&Stages> {
        let is_sent = self.engine == Some(Engine::Docker);
        self.definition.stages().filter(|_| is_sent)
    }

    /// Resolves all bases concurrently and fills in the recipe, or evaluates the Dockerfile, for
    /// each host.
    pub(crate) async fn on_bases(
        &self,
        hosts: &[TargetHost],
        search: &BaseSearch,
    ) -> Result<Vec<PlannedImage>, BoxError> {
        let sharing = self.sharing(hosts);
        let (recipe, wanted) = match &self.definition.made_by {
            DefinitionKind::Recipe(recipe) => (recipe, &sharing.asked_for),
            DefinitionKind::Dockerfile(stages) => {
                return self.stages_on_bases(stages, hosts, &sharing, search).await;
            }
        };
        let base = recipe.base(&self.definition.settings())?;
        let mut found = if recipe.has_base_image() {
            let named = self.base_registry.parse_dockerfile_name(&base)?;
            search.by_name(&named, wanted, self.matched).await?
        } else {
            let searching = search.for_recipe(&base, &self.base_registry, wanted, self.matched);
            searching.await?
        };
        let hosts = hosts_or_any(hosts).map(|host| {
            let base = sharing.base_for(host.map(|host| host.build), &mut found);
            self.planned(recipe, base, host)
        });
        hosts.collect()
    }

    /// The same for a Dockerfile, whose stages may have several bases.
    async fn stages_on_bases(
        &self,
        stages: &Stages,
        hosts: &[TargetHost],
        sharing: &HostGroups,
        search: &BaseSearch,
    ) -> Result<Vec<PlannedImage>, BoxError> {
        let names = self.image_names(stages, hosts).into_iter();
        let finding = names.map(|name| self.stage_base(stages, name, hosts, sharing, search));
        let found = try_join_all(finding).await?;
        let mut found: Vec<(&str, StageBaseFound)> = found.into_iter().flatten().collect();
        let plan_for = |(index, host): (usize, Option<&TargetHost>)| {
            let mut planned = BTreeMap::new();
            let mut own = None;
            let mut notes = Vec::new();
            for (name, found) in &mut found {
                let base = match found {
                    StageBaseFound::Local(bases) => bases[index].clone(),
                    StageBaseFound::Named(read, found) => {
                        let base = sharing.base_for(host.map(|host| host.build), found);
                        notes.extend(host.and_then(|host| other_windows(name, read, &base, host)));
                        base
                    }
                };
                if *name == stages.base() {
                    own = Some(base.clone());
                }
                planned.insert((*name).to_owned(), base);
            }
            let mut on_bases = StageBases::new(planned, self.windows_inputs());
            let mut instructions = None;
            if self.daemon_stages().is_some() {
                notes.extend(stages.secrets());
            } else {
                let (begun, printed) = on_bases.evaluate_draft(stages)?;
                notes.extend(printed);
                instructions = Some(begun);
            }
            let Some(base) = own else {
                unreachable!("the wanted stage's base is one of its bases");
            };
            // The instructions already contain the base's own for builds on it.
            let mut plan = Plan {
                instructions,
                notes,
                ..base.plan_of(stages.name(), host)
            };
            self.add_labels(&mut plan, &base);
            Ok(PlannedImage {
                stages: on_bases,
                ..PlannedImage::new(host.cloned(), base, plan)
            })
        };
        hosts_or_any(hosts).enumerate().map(plan_for).collect()
    }

    /// The images of a Dockerfile to resolve, by their names in it: its bases and, for a daemon, those
    /// to copy from that are for a Windows version, or Microsoft's, which a mirror may have.
    fn image_names<'s>(&self, stages: &'s Stages, hosts: &[TargetHost]) -> Vec<&'s str> {
        let mut names = stages.bases();
        if self.daemon_stages().is_none() || hosts.is_empty() {
            return names;
        }
        for (_, name) in stages.copied_images() {
            let is_for_host = match self.base_registry.parse_dockerfile_name(name) {
                Ok(NamedBase::OfHost { .. }) => true,
                Ok(NamedBase::Exact(_)) => {
                    let path = name.strip_prefix(MICROSOFT);
                    path.is_some_and(|path| path.starts_with('/'))
                }
                Err(_) => false,
            };
            if is_for_host && !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// Resolves one image of a Dockerfile, with its name. An image that a daemon only copies from is
    /// left as written if it does not resolve: the daemon may have it, and starts nothing of it.
    async fn stage_base<'n>(
        &self,
        stages: &Stages,
        name: &'n str,
        hosts: &[TargetHost],
        sharing: &HostGroups,
        search: &BaseSearch,
    ) -> Result<Option<(&'n str, StageBaseFound)>, BoxError> {
        if stages.is_local(name) {
            let place: Location = name.parse()?;
            let builds = hosts.iter().map(|host| host.build);
            let reading = builds
                .map(|build| PlannedBase::local(&place, &search.registry, build, self.matched));
            let bases = try_join_all(reading).await?;
            return Ok(Some((name, StageBaseFound::Local(bases))));
        }
        let base = self.base_registry.parse_dockerfile_name(name)?;
        let searching = search.by_name(&base, &sharing.asked_for, self.matched);
        match searching.await {
            Ok(found) => Ok(Some((name, StageBaseFound::Named(base, found)))),
            Err(error) if stages.bases().contains(&name) => {
                let is_sent = self.daemon_stages().is_some();
                Err(at_stage(stages, name, is_sent, error))
            }
            Err(error) => {
                tracing::debug!("{name} is sent as written: {}", error_chain(error.as_ref()));
                Ok(None)
            }
        }
    }

    /// Downloads files of recipes, extracts those of other images, and resolves them in the plans.
    async fn fetch_missing(
        &self,
        recipe: &Recipe,
        images: &mut [PlannedImage],
        supply: &mut DownloadSet,
        ctx: &BuildContext<'_>,
    ) -> Result<MissingInputs, BoxError> {
        let mut wants = DownloadRequests::new();
        for image in &*images {
            for (url, want) in image.plan.download_requests(recipe.origin()) {
                want.add_to(&mut wants, &url);
            }
        }
        supply.fetch(&wants, ctx.registry.http()).await?;
        let mut extractor = ImageExtractor::new(self, ctx, images);
        let mut images_not_pinned = BTreeSet::new();
        for image in images {
            for name in extractor.add_to(image, recipe, supply).await? {
                images_not_pinned.insert((recipe.origin().to_owned(), name));
            }
            image
                .plan
                .downloads_mut()
                .for_each(|file| supply.resolve(file));
        }
        Ok(MissingInputs {
            files: supply.missing(wants),
            images_not_pinned,
            ..MissingInputs::default()
        })
    }

    /// Extracts files of other images and downloads files, and evaluates a Dockerfile again, with
    /// or without the contents of its bases. Returns what is missing in the end: servers may not
    /// have been contacted.
    pub(crate) async fn evaluate(
        &self,
        images: &mut [PlannedImage],
        is_seen: bool,
        supply: &mut DownloadSet,
        ctx: &BuildContext<'_>,
    ) -> Result<MissingInputs, BoxError> {
        let stages = match &self.definition.made_by {
            DefinitionKind::Recipe(recipe) => {
                let lacking = self.fetch_missing(recipe, images, supply, ctx).await?;
                if is_seen {
                    install_packages(images, supply.is_offline())?;
                }
                return Ok(lacking);
            }
            // The daemon fetches what it needs.
            DefinitionKind::Dockerfile(_) if self.daemon_stages().is_some() => {
                return Ok(MissingInputs::default());
            }
            DefinitionKind::Dockerfile(stages) => stages,
        };
        let mut round = EvaluationPass {
            stages,
            images: ImageExtractor::new(self, ctx, images),
            supply,
            is_seen,
        };
        let mut lacking = MissingInputs::default();
        for image in images {
            round.evaluate(image, &mut lacking).await?;
            image.plan.check_base()?;
        }
        Ok(lacking)
    }

    /// Adds the labels of the origin, unless the definition sets them, and those of the user.
    fn add_labels(&self, plan: &mut Plan, base: &PlannedBase) {
        for (key, value) in self.origin_labels(base) {
            plan.labels.entry(key).or_insert(value);
        }
        plan.labels.extend(self.labels.iter().cloned());
    }

    /// The labels of the origin, without those that a Dockerfile sets.
    pub(crate) fn origin_labels(&self, base: &PlannedBase) -> BTreeMap<String, String> {
        let origin = self.origin.as_ref();
        let mut labels = origin.map_or_else(BTreeMap::new, |origin| origin.labels(base));
        if let Some(stages) = self.definition.stages() {
            labels.retain(|key, _| !stages.sets_label(key));
        }
        labels
    }

    fn sharing(&self, hosts: &[TargetHost]) -> HostGroups {
        let builds = hosts.iter().map(|host| host.build);
        HostGroups::new(builds.collect(), self.is_shared, self.matched)
    }

    /// Checks a Dockerfile as far as it is known without a base.
    fn check_stages(&self, stages: &Stages) -> Result<(), BoxError> {
        match self.daemon_stages() {
            Some(_) => stages.check_for_daemon()?,
            None => stages.check(self.windows.is_some())?,
        }
        if let Some(named) = stages.architecture()?
            && let Some(host) = self
                .hosts
                .iter()
                .find(|it| it.build.architecture.name() != named)
        {
            let problem = format!(
                "FROM --platform=windows/{named} is for another architecture than the host {host}"
            );
            return Err(Problem::request("dockerfile/request", problem)
                .hint("build it with `wincimg build IMAGE`, for hosts of that architecture")
                .into());
        }
        for name in stages.bases() {
            if stages.is_local(name) {
                name.parse::<Location>()?;
            } else {
                self.base_registry.parse_dockerfile_name(name)?;
            }
        }
        Ok(())
    }

    /// The plans as far as they are known without a base, so that a mistake in the recipe or its
    /// folder is reported before a registry is contacted: none if they depend on the base; hosts
    /// with the same plan share one.
    pub(crate) fn drafts(&self) -> Result<Vec<Plan>, BoxError> {
        let settings = &self.definition.settings();
        let recipe = match &self.definition.made_by {
            DefinitionKind::Recipe(recipe) => recipe,
            DefinitionKind::Dockerfile(stages) => {
                self.check_stages(stages)?;
                return Ok(Vec::new());
            }
        };
        let name = recipe.base(settings)?;
        let brings_windows = !self.definition.is_for_any_host()?;
        let checked = if recipe.has_base_image() {
            self.base_registry.parse_dockerfile_name(&name).map(drop)
        } else if brings_windows {
            self.base_registry.repository(&name).map(drop)
        } else {
            Ok(())
        };
        checked.map_err(|error| recipe.base_error(&error))?;
        let mut drafts: Vec<Plan> = Vec::new();
        if recipe.depends_on_base() {
            return Ok(drafts);
        }
        let first = self.hosts.first().map(|host| host.build.version);
        let base = PlanBase {
            name,
            digest: String::new(),
            os_version: first.filter(|_| brings_windows),
            ..PlanBase::default()
        };
        for host in hosts_or_any(&self.hosts) {
            let version = host.map(|host| host.build.version);
            let draft = recipe.plan(base.clone(), version, settings)?;
            draft.check_base()?;
            let is_known = drafts.iter().any(|known| known.is_same_except_host(&draft));
            if !is_known {
                drafts.push(draft);
            }
        }
        Ok(drafts)
    }

    /// Fills in the recipe for one base and one host.
    fn planned(
        &self,
        recipe: &Recipe,
        base: PlannedBase,
        host: Option<&TargetHost>,
    ) -> Result<PlannedImage, BoxError> {
        let version = host.map(|host| host.build.version);
        let mut plan = recipe.plan(base.for_plan(), version, &self.definition.settings())?;
        plan.check_base()?;
        check_architecture(&plan, &base)?;
        self.add_labels(&mut plan, &base);
        Ok(PlannedImage::new(host.cloned(), base, plan))
    }
}

/// The hosts, or one `None` for any.
fn hosts_or_any(hosts: &[TargetHost]) -> impl Iterator<Item = Option<&TargetHost>> {
    let any = hosts.is_empty().then_some(None);
    hosts.iter().map(Some).chain(any)
}

/// Rejects an embedded program in an image for another architecture.
fn check_architecture(plan: &Plan, base: &PlannedBase) -> Result<(), Problem> {
    let architecture = &base.image.config().architecture;
    let mut files = plan.entries_by_layer().flatten();
    if architecture == "amd64" || !files.any(|file| file.source() == Some(&FileSource::Shim)) {
        return Ok(());
    }
    let problem =
        format!("the embedded shim is a program for amd64: the image is for {architecture}");
    Err(Problem::request("recipe/architecture", problem)
        .hint("remove `embedded` from the recipe, or build with --platform windows/amd64"))
}

enum StageBaseFound {
    /// Of a registry, for each group of hosts.
    Named(NamedBase, Vec<PlannedBase>),
    /// Of a layout or archive, for each host.
    Local(Vec<PlannedBase>),
}

/// The error of a search for a base; of one for other systems than Windows, at its stage.
fn at_stage(stages: &Stages, base: &str, is_sent: bool, error: BoxError) -> BoxError {
    match error::search(&error) {
        Some(ResolveError::NotForWindows { systems, .. }) => {
            stages.base_of_other_system(base, systems, is_sent).into()
        }
        _ => error,
    }
}

/// Note for a Dockerfile that names another Windows than the host gets.
fn other_windows(
    name: &str,
    named: &NamedBase,
    base: &PlannedBase,
    host: &TargetHost,
) -> Option<String> {
    let NamedBase::OfHost { build, .. } = named else {
        return None;
    };
    let got = base.os_version.filter(|version| version.build != *build)?;
    Some(format!(
        "{name} has build {build}; host {} gets build {} instead",
        host.build, got.build
    ))
}
