//! The plans of a build: one recipe or Dockerfile for several hosts, each on the base image that fits it.
//!
//! A runtime gives every host of a build of Windows the same entry of an index, so hosts that one
//! image can serve share one: it is on the base that the oldest of them would take by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use futures_util::future::try_join_all;

use super::bases::{BaseSearch, Found, Wanted};
use super::downloads::{Supply, SupplyError};
use crate::cluster::nodes::Node;
use crate::diagnose::{Blame, Diagnose, Excerpt, in_one_line};
use crate::dockerfile::stages::{Bases, Inputs, StageBase, StageError, Stages, all_that_lines_ask};
use crate::inspect::{TakeError, Taken, take};
use crate::oci::base::{
    BaseImage, BaseRegistry, HOST_PROCESS, HostProcessBase, HostProcessError, Match, NameError,
    NamedBase, Resolution, ResolveError, SetAside,
};
use crate::oci::document::{Digest, Image};
use crate::oci::reference::Reference;
use crate::oci::remote::Registry;
use crate::oci::store::Source;
use crate::progress::Progress;
use crate::recipe::{
    NeedsWindowsInside, Plan, PlanBase, Recipe, RecipeError, Settings, Wants, variable,
};
use crate::windows::compat::{HostBuild, generation};
use crate::windows::inside::{Inside, Needs, Unseen};
use crate::windows::search_path::VARIABLE;
use crate::windows::version::WindowsVersion;

/// How many nodes are named where a host is.
const NAMED: usize = 3;

/// A build of Windows that images are for, and the nodes that run it, where they are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetHost {
    /// Its version and edition.
    pub build: HostBuild,
    /// The names of nodes.
    pub nodes: Vec<String>,
}

impl TargetHost {
    /// The different builds of nodes that tell theirs, oldest first, each with its nodes.
    pub fn of_nodes(nodes: &[Node]) -> Vec<Self> {
        let mut hosts: BTreeMap<HostBuild, Vec<String>> = BTreeMap::new();
        for node in nodes {
            if let Some(build) = node.build {
                hosts.entry(build).or_default().extend(node.name.clone());
            }
        }
        let hosts = hosts.into_iter();
        hosts.map(|(build, nodes)| Self { build, nodes }).collect()
    }
}

impl fmt::Display for TargetHost {
    /// `17763.973`, or `17763.973 (win-a, win-b and 4 more)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.build.fmt(f)?;
        let (named, more) = self.nodes.split_at(self.nodes.len().min(NAMED));
        match (named, more.len()) {
            ([], _) => Ok(()),
            (named, 0) => write!(f, " ({})", named.join(", ")),
            (named, more) => write!(f, " ({} and {more} more)", named.join(", ")),
        }
    }
}

/// What says how images are to be.
pub enum Blueprint<'a> {
    /// A recipe, and what it is filled in with.
    Recipe(&'a Recipe, Settings<'a>),
    /// A Dockerfile, with what was asked of it.
    Dockerfile(&'a Stages),
    /// The same, to be carried out by a daemon.
    Sent(&'a Stages),
}

/// A recipe or Dockerfile, and the hosts that its images are for.
pub struct BuildRequest<'a> {
    /// What is built.
    pub blueprint: Blueprint<'a>,
    /// The hosts; none where the base is for any.
    pub hosts: &'a [TargetHost],
    /// Where base images come from.
    pub base_registry: &'a BaseRegistry,
    /// Which base images will do.
    pub wanted: Match,
    /// Whether hosts of one build share an image where one can serve them, as an index needs it.
    pub is_shared: bool,
}

/// An image that is planned, on a base that was found.
#[derive(Debug, Clone)]
pub struct PlannedImage {
    /// The host that it is for; none where it is for any.
    pub host: Option<TargetHost>,
    /// The base, pinned.
    pub base: PlannedBase,
    /// What is made of it.
    pub plan: Plan,
    /// What a Dockerfile's stages are based on; a recipe has none.
    pub stages: StageBases,
    /// Base images that were passed over, and why.
    pub set_aside: Vec<SetAside>,
}

/// What the stages of a Dockerfile are based on, and what of that has to be known.
#[derive(Debug, Clone, Default)]
pub struct StageBases {
    inputs: Inputs,
    /// The bases by their names in the file.
    bases: BTreeMap<String, PlannedBase>,
    needs: BTreeMap<String, Needs>,
    /// Whether somebody has to look into one of them before it is known what the image is.
    pub wants_a_look: bool,
    /// Whether the instructions were carried out on all that is known: they lacked nothing, and nobody
    /// has told more since.
    are_settled: bool,
}

impl StageBases {
    /// The bases, and what has to be known of each.
    pub(super) fn asked(&self) -> impl Iterator<Item = (&PlannedBase, Needs)> {
        let bases = self.bases.iter();
        bases.map(|(name, base)| (base, self.needs.get(name).cloned().unwrap_or_default()))
    }

    /// The bases, by their names in the file.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &PlannedBase)> {
        let bases = self.bases.iter();
        bases.map(|(name, base)| (name.as_str(), base))
    }

    /// Whether the instructions depend on what is inside a base.
    pub fn depend_on(&self, name: &str) -> bool {
        self.needs.contains_key(name)
    }

    /// Takes in what is inside a base.
    pub(super) fn tell(&mut self, digest: &Digest, inside: &Arc<dyn Inside>) {
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
}

/// What an image is built on.
#[derive(Debug, Clone)]
pub struct PlannedBase {
    /// Where it is, by tag and by digest; nowhere where wincimg makes it.
    pub reference: Option<Reference>,
    /// Its version; none where it brings no Windows.
    pub os_version: Option<WindowsVersion>,
    /// Whether that is the host's own: exact, nearest, or any where there is none.
    pub matched: &'static str,
    /// Manifest and configuration.
    pub image: Image,
    /// What is inside, as far as it is known.
    pub inside: Arc<dyn Inside>,
}

impl PlannedImage {
    /// The version of its host, as results have it.
    pub fn host_build(&self) -> Option<String> {
        self.plan.host_build.map(|version| version.to_string())
    }
}

impl PlannedBase {
    /// The digest of its manifest.
    pub fn digest(&self) -> &Digest {
        self.image.digest()
    }

    /// Its version as results have it.
    pub fn version_text(&self) -> Option<String> {
        self.os_version.map(|version| version.os_version())
    }

    /// What results call it.
    pub fn label(&self) -> String {
        let reference = self.reference.as_ref();
        reference.map_or_else(|| HOST_PROCESS.to_owned(), ToString::to_string)
    }

    /// What people call it: by its tag, which says more than the digest that it is pinned to.
    pub fn for_people(&self) -> String {
        match &self.reference {
            Some(reference) => format!(
                "{}/{}:{}",
                reference.registry(),
                reference.repository(),
                reference.tag().unwrap_or_default()
            ),
            None => HOST_PROCESS.to_owned(),
        }
    }

    /// The plan of an image on it that is not made by one.
    pub(super) fn plan_of(&self, name: &str, host: &TargetHost) -> Plan {
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

    /// What the plan of an image on it has to know.
    fn for_plan(&self) -> PlanBase {
        let container = &self.image.config().config;
        PlanBase {
            name: self.for_people(),
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
            os_version: Some(base.os_version),
            matched: base.matched.name(),
            image: base.image,
            inside: Arc::new(Unseen),
        }
    }
}

impl From<HostProcessBase> for PlannedBase {
    fn from(base: HostProcessBase) -> Self {
        Self {
            reference: base.reference,
            os_version: None,
            matched: "any",
            image: base.image,
            inside: Arc::new(Unseen),
        }
    }
}

/// Why a build could not be planned.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The recipe does not fit what was asked.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// The Dockerfile cannot be carried out.
    #[error(transparent)]
    Dockerfile(#[from] StageError),
    /// Files of servers could not be had.
    #[error(transparent)]
    Supply(Box<SupplyError>),
    /// Files of another image could not be had.
    #[error(transparent)]
    Take(#[from] TakeError),
    /// The recipe's base is not the name of one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// The base is for `HostProcess` containers, and it could not be had.
    #[error(transparent)]
    HostProcess(#[from] HostProcessError),
    /// The recipe needs Windows inside, and its base has none.
    #[error(transparent)]
    NeedsWindowsInside(#[from] NeedsWindowsInside),
    /// No base fits, or none could be looked for.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// What others heard too that want the same base.
    #[error(transparent)]
    Shared(Arc<Self>),
}

impl PlanError {
    /// Why no base was found, where that is what is wrong.
    pub fn search(&self) -> Option<&ResolveError> {
        match self {
            Self::Resolve(error) => Some(error),
            Self::Shared(error) => error.search(),
            _ => None,
        }
    }
}

impl From<SupplyError> for PlanError {
    fn from(error: SupplyError) -> Self {
        Self::Supply(Box::new(error))
    }
}

impl Diagnose for PlanError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Recipe(error) => error.hint(),
            Self::Dockerfile(error) => error.hint(),
            Self::Supply(error) => error.hint(),
            Self::Take(error) => error.hint(),
            Self::Name(error) => error.hint(),
            Self::HostProcess(error) => error.hint(),
            Self::NeedsWindowsInside(_) => {
                Some("leave it out, or build on a base with Windows, such as nanoserver".to_owned())
            }
            Self::Resolve(error) => error.hint(),
            Self::Shared(error) => error.hint(),
        }
    }

    fn excerpt(&self) -> Option<Excerpt> {
        match self {
            Self::Recipe(error) => error.excerpt(),
            Self::Dockerfile(error) => error.excerpt(),
            Self::Resolve(error) => error.excerpt(),
            Self::Shared(error) => error.excerpt(),
            _ => None,
        }
    }

    fn blame(&self) -> Blame {
        match self {
            Self::Recipe(error) => error.blame(),
            Self::Dockerfile(error) => error.blame(),
            Self::Supply(error) => error.blame(),
            Self::Take(error) => error.blame(),
            Self::Name(error) => error.blame(),
            Self::HostProcess(error) => error.blame(),
            Self::NeedsWindowsInside(_) => Blame::Request,
            Self::Resolve(error) => error.blame(),
            Self::Shared(error) => error.blame(),
        }
    }
}

/// What is not here, where servers are not asked.
#[derive(Debug, Default)]
pub struct Lacking {
    /// What is to be downloaded.
    pub files: Wants,
    /// Lines of a Dockerfile of which it is not known what they do before that.
    pub unclear: BTreeSet<String>,
    /// Lines of which that is known after a look into their base, by what keeps them from being
    /// carried out without one.
    pub unlooked: BTreeSet<String>,
}

/// The bases that were found, and which host gets which.
struct FoundBases {
    /// The oldest hosts of those that share an image, in order.
    asked_for: Vec<HostBuild>,
    /// For each of these.
    found: Vec<Resolution>,
}

impl BuildRequest<'_> {
    /// Finds all bases at once and fills the recipe in, or carries the Dockerfile out, for each host.
    pub async fn plan(&self, search: &BaseSearch) -> Result<Vec<PlannedImage>, PlanError> {
        let (recipe, settings) = match &self.blueprint {
            Blueprint::Recipe(recipe, settings) => (*recipe, settings),
            Blueprint::Dockerfile(stages) | Blueprint::Sent(stages) => {
                return self.plan_stages(stages, search).await;
            }
        };
        let base = recipe.base(settings)?;
        let asked_for = self.leaders();
        let wanted = self.wanted_of(&asked_for);
        let found = if recipe.has_base_image() {
            let named = self.base_registry.named(&base)?;
            Found::OfHosts(search.named(&base, &named, &wanted).await?)
        } else {
            search.of_recipe(&base, &wanted).await?
        };
        let found = match found {
            Found::OfHosts(found) => found,
            Found::HostProcess(found) => {
                let base = PlannedBase::from(*found);
                let images = self.hosts_or_any();
                return images
                    .map(|host| Self::planned(recipe, settings, base.clone(), host, Vec::new()))
                    .collect();
            }
        };
        let mut bases = FoundBases { asked_for, found };
        self.hosts
            .iter()
            .map(|host| {
                let (base, set_aside) = self.base_for(host, &mut bases);
                Self::planned(recipe, settings, base, Some(host), set_aside)
            })
            .collect()
    }

    /// The same for a Dockerfile, whose stages may have several bases.
    async fn plan_stages(
        &self,
        stages: &Stages,
        search: &BaseSearch,
    ) -> Result<Vec<PlannedImage>, PlanError> {
        let asked_for = self.leaders();
        let wanted = self.wanted_of(&asked_for);
        let names = stages.bases();
        let finding = names.iter().map(async |name| {
            let base = self.base_registry.named(name)?;
            let found = search.named(name, &base, &wanted).await?;
            let asked_for = asked_for.clone();
            Ok::<_, PlanError>((base, FoundBases { asked_for, found }))
        });
        let mut found = try_join_all(finding).await?;
        let plan_for = |host: &TargetHost| {
            let mut bases = Bases::new();
            let mut planned = BTreeMap::new();
            let mut own = None;
            let mut notes = Vec::new();
            for (name, (named, found)) in names.iter().zip(&mut found) {
                let (base, set_aside) = self.base_for(host, found);
                notes.extend(other_windows(name, named, &base, host));
                let known = StageBase {
                    config: base.image.config().config.clone(),
                    inside: Arc::clone(&base.inside),
                };
                bases.insert((*name).to_owned(), known);
                planned.insert((*name).to_owned(), base.clone());
                if *name == stages.base() {
                    own = Some((base, set_aside));
                }
            }
            let mut inputs = Inputs {
                bases,
                ..Inputs::default()
            };
            let mut instructions = None;
            let mut needs = BTreeMap::new();
            let mut are_settled = false;
            if let Blueprint::Dockerfile(_) = self.blueprint {
                let outcome = stages.evaluate_unseen(&inputs)?;
                are_settled = outcome.lacks_nothing();
                inputs.lacking = outcome.lacking;
                inputs.wants = outcome.wants;
                needs = outcome.needs;
                notes.extend(outcome.notes);
                instructions = Some(outcome.instructions);
            }
            let Some((base, set_aside)) = own else {
                unreachable!("the wanted stage's base is one of its bases");
            };
            let plan = Plan {
                name: stages.name().to_owned(),
                base: PlanBase {
                    // They are among the instructions already.
                    on_build: Vec::new(),
                    ..base.for_plan()
                },
                host_build: Some(host.build.version),
                instructions,
                notes,
                ..Plan::default()
            };
            Ok(PlannedImage {
                host: Some(host.clone()),
                base,
                plan,
                stages: StageBases {
                    inputs,
                    bases: planned,
                    needs,
                    wants_a_look: false,
                    are_settled,
                },
                set_aside,
            })
        };
        self.hosts.iter().map(plan_for).collect()
    }

    /// Brings what recipes name of servers, and tells their plans.
    async fn bring(
        &self,
        recipe: &Recipe,
        images: &mut [PlannedImage],
        registry: &Registry,
        supply: &mut Supply,
    ) -> Result<Lacking, PlanError> {
        let mut wants = Wants::new();
        for image in &*images {
            for (url, want) in image.plan.wants(recipe.origin()) {
                want.added_to(&mut wants, &url);
            }
        }
        supply.bring(&wants, registry.http()).await?;
        for image in images {
            image
                .plan
                .downloads_mut()
                .for_each(|file| supply.tell(file));
        }
        Ok(Lacking {
            files: supply.lacking(wants),
            ..Lacking::default()
        })
    }

    /// Takes files of other images out of them and brings those of servers, and carries a Dockerfile
    /// out once more, before anyone has looked inside the bases or on what is known of them then. What
    /// is lacking in the end is told: servers may not have been asked.
    pub async fn look_again(
        &self,
        images: &mut [PlannedImage],
        registry: &Registry,
        supply: &mut Supply,
        progress: &Arc<dyn Progress>,
        is_seen: bool,
    ) -> Result<Lacking, PlanError> {
        let stages = match &self.blueprint {
            Blueprint::Recipe(recipe, _) => {
                return self.bring(recipe, images, registry, supply).await;
            }
            Blueprint::Dockerfile(stages) => stages,
            // Its daemon brings what it needs.
            Blueprint::Sent(_) => return Ok(Lacking::default()),
        };
        let mut lacking = Lacking::default();
        let mut known: Vec<(Digest, BTreeSet<String>, BTreeMap<String, Taken>)> = Vec::new();
        'images: for image in images {
            let StageBases {
                inputs,
                bases,
                needs,
                wants_a_look,
                are_settled,
            } = &mut image.stages;
            *wants_a_look = false;
            if *are_settled || !is_seen && inputs.lacking.is_empty() && inputs.wants.is_empty() {
                // Nothing comes to what the plan was made of.
                continue;
            }
            let hosts: Vec<HostBuild> = image.host.iter().map(|host| host.build).collect();
            // What is known now may show that more is needed.
            let outcome = loop {
                for (name, paths) in std::mem::take(&mut inputs.lacking) {
                    let found: Vec<PlannedBase> = match bases.get(&name) {
                        Some(base) => vec![base.clone()],
                        None => {
                            let named = self.base_registry.named(&name)?;
                            let found = named.resolve(registry, &hosts, self.wanted).await?;
                            found.into_iter().map(|found| found.base.into()).collect()
                        }
                    };
                    for base in found {
                        let Some(reference) = &base.reference else {
                            continue;
                        };
                        let same = |it: &&(Digest, BTreeSet<String>, BTreeMap<String, Taken>)| {
                            it.0 == *base.digest() && it.1 == paths
                        };
                        let files = match known.iter().find(same) {
                            Some((_, _, files)) => files.clone(),
                            None => {
                                let source = Source::Registry(registry.repository(reference));
                                let files = take(&source, &base.image, &paths, progress).await?;
                                known.push((base.digest().clone(), paths.clone(), files.clone()));
                                files
                            }
                        };
                        let here = inputs.files.entry(name.clone()).or_default();
                        here.add(&paths, files);
                    }
                }
                let came = supply.bring(&inputs.wants, registry.http()).await?;
                inputs.downloads.clone_from(supply.here());
                let evaluated = if is_seen {
                    stages.evaluate(inputs)
                } else {
                    stages.evaluate_unseen(inputs)
                };
                let outcome = match evaluated {
                    Ok(outcome) => outcome,
                    Err(error) => {
                        let is_rehearsal = supply.asks_nobody();
                        let unlooked = stalled(stages, error, inputs, needs, is_rehearsal)?;
                        *wants_a_look = unlooked.is_none();
                        lacking.unlooked.extend(unlooked);
                        continue 'images;
                    }
                };
                let is_whole = outcome.lacking.is_empty();
                let is_same = outcome.wants == inputs.wants && !came;
                if is_whole && (is_same || supply.lacking(outcome.wants.clone()).is_empty()) {
                    break outcome;
                }
                inputs.lacking = outcome.lacking;
                inputs.wants = outcome.wants;
            };
            needs.extend(outcome.needs);
            let mut instructions = outcome.instructions;
            instructions
                .downloads_mut()
                .for_each(|file| supply.tell(file));
            image.plan.instructions = Some(instructions);
            lacking.files.extend(supply.lacking(outcome.wants));
            lacking.unclear.extend(outcome.unclear);
            let known = &mut image.plan.notes;
            for note in outcome.notes {
                if !known.contains(&note) {
                    known.push(note);
                }
            }
        }
        Ok(lacking)
    }

    fn wanted_of<'a>(&'a self, hosts: &'a [HostBuild]) -> Wanted<'a> {
        Wanted {
            registry: self.base_registry,
            hosts,
            matched: self.wanted,
        }
    }

    /// The hosts whose bases are looked for: of those that share an image the oldest.
    fn leaders(&self) -> Vec<HostBuild> {
        let builds: Vec<HostBuild> = self.hosts.iter().map(|host| host.build).collect();
        let leaders = builds.iter().map(|host| self.leader(*host, &builds));
        let mut asked_for: Vec<HostBuild> = leaders.collect();
        asked_for.sort();
        asked_for.dedup();
        asked_for
    }

    /// The base of one host, and what was passed over for it, which is told once.
    fn base_for(&self, host: &TargetHost, bases: &mut FoundBases) -> (PlannedBase, Vec<SetAside>) {
        let builds: Vec<HostBuild> = self.hosts.iter().map(|host| host.build).collect();
        let leader = self.leader(host.build, &builds);
        let place = bases
            .asked_for
            .partition_point(|asked_for| *asked_for < leader);
        let set_aside = std::mem::take(&mut bases.found[place].set_aside);
        let place = if self.shares() {
            let versions = bases.found.iter().map(|found| found.base.os_version);
            common(place, &versions.collect::<Vec<_>>())
        } else {
            place
        };
        let mut base = bases.found[place].base.clone();
        base.matched = Match::of(base.os_version, host.build);
        (base.into(), set_aside)
    }

    /// The plans as far as they are known without a base, so that a mistake in the recipe or its folder
    /// is told before a registry is asked: none where that depends on the base, and hosts with the same
    /// plan share one.
    pub fn drafts(&self) -> Result<Vec<Plan>, PlanError> {
        let (recipe, settings) = match &self.blueprint {
            Blueprint::Recipe(recipe, settings) => (*recipe, settings),
            Blueprint::Dockerfile(stages) | Blueprint::Sent(stages) => {
                match self.blueprint {
                    Blueprint::Sent(_) => stages.check_sent()?,
                    _ => stages.check()?,
                }
                for name in stages.bases() {
                    self.base_registry.named(name)?;
                }
                return Ok(Vec::new());
            }
        };
        let name = recipe.base(settings)?;
        let brings_windows = recipe.has_base_image() || !HostProcessBase::is_named(&name);
        if recipe.has_base_image() {
            self.base_registry.named(&name)?;
        } else if brings_windows {
            self.base_registry.repository(&name)?;
        }
        let mut drafts: Vec<Plan> = Vec::new();
        if recipe.depends_on_base() {
            return Ok(drafts);
        }
        let first = self.hosts.first().map(|host| host.build.version);
        let base = PlanBase {
            name,
            digest: String::new(),
            os_version: first.filter(|_| brings_windows),
            shell: None,
            user: None,
            path: None,
            ..PlanBase::default()
        };
        for host in self.hosts_or_any() {
            let version = host.map(|host| host.build.version);
            let draft = recipe.plan(base.clone(), version, settings)?;
            draft.check_base()?;
            let is_known = drafts
                .iter()
                .any(|known| known.differs_in_host_alone(&draft));
            if !is_known {
                drafts.push(draft);
            }
        }
        Ok(drafts)
    }

    /// The hosts, or that it is for any.
    fn hosts_or_any(&self) -> impl Iterator<Item = Option<&TargetHost>> {
        let any = self.hosts.is_empty().then_some(None);
        self.hosts.iter().map(Some).chain(any)
    }

    /// Fills the recipe in for one base and one host.
    fn planned(
        recipe: &Recipe,
        settings: &Settings<'_>,
        base: PlannedBase,
        host: Option<&TargetHost>,
        set_aside: Vec<SetAside>,
    ) -> Result<PlannedImage, PlanError> {
        let version = host.map(|host| host.build.version);
        let plan = recipe.plan(base.for_plan(), version, settings)?;
        plan.check_base()?;
        Ok(PlannedImage {
            host: host.cloned(),
            base,
            plan,
            stages: StageBases::default(),
            set_aside,
        })
    }

    fn leader(&self, host: HostBuild, hosts: &[HostBuild]) -> HostBuild {
        if self.shares() {
            leader(host, hosts)
        } else {
            host
        }
    }

    /// Hosts that want exactly their own revision share with nobody.
    fn shares(&self) -> bool {
        self.is_shared && self.wanted == Match::Nearest
    }
}

/// What to say where a Dockerfile names another Windows than the host gets.
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
        "{name} is of build {build}; for host {} its place takes build {}",
        host.build, got.build
    ))
}

/// The host whose base another one takes: the oldest that accepts the same images. What starts on
/// one of them starts on all, and what is not newer than the oldest is newer than none.
pub fn leader(host: HostBuild, hosts: &[HostBuild]) -> HostBuild {
    let kind = |host: &HostBuild| {
        let version = host.version;
        Some((version.build, host.edition, generation(version)?))
    };
    let Some(own) = kind(&host) else {
        return host;
    };
    hosts
        .iter()
        .filter(|other| kind(other) == Some(own) && other.version.revision.is_some())
        .min()
        .copied()
        .unwrap_or(host)
}

/// The base that is used in place of one that was found, by their places: the oldest of its build
/// that starts where it does. Hosts of a newer build may have found a newer one of an older build,
/// which that build's own hosts would get too.
pub fn common(place: usize, found: &[WindowsVersion]) -> usize {
    let kind = |version: WindowsVersion| (version.build, generation(version));
    let own = kind(found[place]);
    let alike = (0..found.len()).filter(|other| kind(found[*other]) == own);
    alike.min_by_key(|other| found[*other]).unwrap_or(place)
}

/// Asks for looks into the bases of which more has to be known. Where they were asked for already and
/// no layer is read for a plan that is only shown, it is told what they would end.
fn stalled(
    stages: &Stages,
    error: StageError,
    inputs: &Inputs,
    needs: &mut BTreeMap<String, Needs>,
    is_rehearsal: bool,
) -> Result<Option<String>, StageError> {
    let bases = stages.bases_to_look_into(&error);
    let is_asked_for = |base: &String| needs.contains_key(base);
    if !bases.iter().all(is_asked_for) {
        for base in bases {
            needs.entry(base).or_insert_with(all_that_lines_ask);
        }
        return Ok(None);
    }
    let is_unlooked = bases.iter().all(|base| !inputs.knows_files_of(base));
    if is_rehearsal && is_unlooked && error.awaits_looks() {
        return Ok(Some(in_one_line(&error)));
    }
    Err(error)
}
