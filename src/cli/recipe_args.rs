//! Which images are meant: a recipe, its variables, the hosts, and where base images come from.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::anyhow;
use clap::{Args, ValueHint};

use super::base::{MatchArg, tell_what_was_looked_at};
use super::complete;
use super::failure::Failure;
use super::hosts::{Builds, HostArgs};
use super::progress::display;
use super::registry_args::{BaseRegistryArgs, RegistryArgs};
use super::session::Session;
use crate::cluster::nodes::Node;
use crate::diagnose::nearest;
use crate::dockerfile::Outline;
use crate::dockerfile::stages::{Request, Stages};
use crate::engine::downloads::{Lock, Manner, Supply};
use crate::engine::inside::{Purpose, look_inside};
use crate::engine::plans::{Blueprint, BuildRequest, Lacking, PlanError, PlannedImage, TargetHost};
use crate::files::{LARGEST_TEXT, read_text};
use crate::layer::secrets;
use crate::lint::has_from;
use crate::oci::base::{BaseRegistry, HostProcessBase, Match, warning};
use crate::oci::remote::Registry;
use crate::progress::Progress;
use crate::recipe::dockerignore::FILE_NAME;
use crate::recipe::{Plan, Recipe, Settings, shipped};
use crate::rollout::command_line;

/// The flag that has downloads noted.
pub(super) const UPDATE_LOCK: &str = "--update-lock";

/// What is built, and the hosts that its images are for.
#[derive(Debug, Args)]
pub(super) struct RecipeArgs {
    /// A recipe that ships, a recipe file, a Dockerfile, or a folder with one of them
    #[arg(value_name = "IMAGE", add = complete::images_to_build())]
    image: String,
    #[command(flatten)]
    hosts: HostArgs,
    /// How close base images have to be to the host
    #[arg(
        long = "match",
        value_name = "MATCH",
        value_enum,
        default_value = "nearest"
    )]
    wanted: MatchArg,
    /// Set a variable of the recipe (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value, add = complete::variables())]
    values: Vec<(String, String)>,
    /// The folder that context files are in [default: a recipe's is ., a Dockerfile's its own]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    context: Option<PathBuf>,
    #[command(flatten)]
    base: BaseRegistryArgs,
    #[command(flatten)]
    connection: RegistryArgs,
}

/// What is asked of a Dockerfile.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Dockerfile options")]
pub(super) struct DockerfileArgs {
    /// The Dockerfile, where the folder has it under another name
    #[arg(short = 'f', long, value_name = "FILE", add = complete::dockerfiles())]
    file: Option<PathBuf>,
    /// The stage to build [default: the last]
    #[arg(long, value_name = "STAGE", add = complete::stages())]
    target: Option<String>,
    /// Put a folder in place of what a stage would make (repeatable)
    #[arg(long = "stage", value_name = "NAME=DIR", value_parser = key_and_value, add = complete::folders_for_stages())]
    stages: Vec<(String, String)>,
}

/// What images are planned by.
enum Plans {
    Recipe(Box<Recipe>),
    Dockerfile(Box<Stages>),
}

/// What was asked for, read and checked as far as that goes without a registry.
pub(super) struct Wanted<'a> {
    blueprint: Plans,
    values: BTreeMap<String, String>,
    hosts: Builds,
    context: PathBuf,
    base_registry: &'a BaseRegistry,
    matched: Match,
    /// Whether a daemon carries the Dockerfile out.
    is_sent: bool,
}

impl RecipeArgs {
    /// What is meant by a Dockerfile and hosts alone.
    pub(super) fn of_dockerfile(
        image: String,
        hosts: HostArgs,
        base: BaseRegistryArgs,
        connection: RegistryArgs,
    ) -> Self {
        Self {
            image,
            hosts,
            wanted: MatchArg::Nearest,
            values: Vec::new(),
            context: None,
            base,
            connection,
        }
    }

    /// Reads the recipe, or the Dockerfile with its build arguments, and the hosts.
    pub(super) fn read(
        &self,
        dockerfile: &DockerfileArgs,
        arguments: Vec<(String, String)>,
        session: &Session,
    ) -> Result<Wanted<'_>, Failure> {
        if let Some((file, folder)) = self.dockerfile(dockerfile) {
            return self.read_dockerfile(file, folder, dockerfile, arguments, session);
        }
        dockerfile.refuse()?;
        if let Some(path) = Recipe::hidden(&self.image) {
            session.note(format_args!(
                "using the recipe {:?} that ships; the one in this folder is {}",
                self.image,
                path.display()
            ));
        }
        let recipe = Recipe::find(&self.image)?;
        let values = self.values.iter().cloned().collect();
        let base = recipe.base(&Settings {
            values: &values,
            context: self.context.as_deref().unwrap_or(Path::new(".")),
        })?;
        // One image without Windows inside is for all hosts.
        let makes_base = !recipe.has_base_image() && HostProcessBase::is_named(&base);
        let hosts = if makes_base && !self.hosts.are_given() {
            Builds::default()
        } else {
            self.hosts.distinct_builds(session)?
        };
        Ok(Wanted {
            blueprint: Plans::Recipe(Box::new(recipe)),
            values,
            hosts,
            context: self.context.clone().unwrap_or(PathBuf::from(".")),
            base_registry: &self.base.base_registry,
            matched: self.wanted.into(),
            is_sent: false,
        })
    }

    /// The Dockerfile that is meant, and the folder that its files are in; none where a recipe is.
    fn dockerfile(&self, options: &DockerfileArgs) -> Option<(PathBuf, PathBuf)> {
        let (file, own) = dockerfile_of(&self.image, options.file.clone())?;
        Some((file, self.context.clone().unwrap_or(own)))
    }

    fn read_dockerfile(
        &self,
        file: PathBuf,
        context: PathBuf,
        options: &DockerfileArgs,
        arguments: Vec<(String, String)>,
        session: &Session,
    ) -> Result<Wanted<'_>, Failure> {
        if let Some((key, _)) = self.values.first() {
            let problem = anyhow!(
                "--set is for recipes, and {} is a Dockerfile",
                file.display()
            );
            return Err(Failure::usage(problem).hint(format!(
                "give a build argument its value: --build-arg {key}=VALUE"
            )));
        }
        let folders = options.stages.iter();
        let request = Request {
            file,
            context: context.clone(),
            target: options.target.clone(),
            arguments,
            folders: folders
                .map(|(name, folder)| (name.clone(), folder.into()))
                .collect(),
        };
        let stages = Stages::read(&request)?;
        for unused in unused_arguments(&request) {
            session.warn(unused);
        }
        Ok(Wanted {
            blueprint: Plans::Dockerfile(Box::new(stages)),
            values: BTreeMap::new(),
            hosts: self.hosts.distinct_builds(session)?,
            context,
            base_registry: &self.base.base_registry,
            matched: self.wanted.into(),
            is_sent: false,
        })
    }

    /// Refuses a Dockerfile, for whoever has no use for one.
    pub(super) fn refuse_dockerfile(&self) -> Result<(), Failure> {
        match self.dockerfile(&DockerfileArgs::default()) {
            None => Ok(()),
            Some((file, _)) => {
                let problem = anyhow!("{} is a Dockerfile already", file.display());
                Err(Failure::usage(problem).hint(format!(
                    "see what it comes to: wincimg build {} --host-build … --dry-run",
                    self.image
                )))
            }
        }
    }

    /// The client for all registries of this run.
    pub(super) fn connect(&self, progress: Arc<dyn Progress>) -> Result<Registry, Failure> {
        self.connection.connect(progress)
    }
}

/// The Dockerfile that an image's name means, and its folder; none where it means a recipe.
pub(super) fn dockerfile_of(image: &str, file: Option<PathBuf>) -> Option<(PathBuf, PathBuf)> {
    let place = Path::new(image);
    if let Some(file) = file {
        return Some((file, place.to_owned()));
    }
    if shipped().iter().any(|recipe| recipe.name == image) {
        return None;
    }
    if place.is_dir() {
        let file = place.join("Dockerfile");
        let is_meant = file.is_file() && !place.join("recipe.toml").is_file();
        return is_meant.then(|| (file, place.to_owned()));
    }
    let folder = place
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    let is_meant = is_dockerfile(place) || reads_like_a_dockerfile(place);
    is_meant.then(|| (place.to_owned(), folder.to_owned()))
}

/// Whether a file is a Dockerfile by what is in it, whatever its name is.
fn reads_like_a_dockerfile(file: &Path) -> bool {
    let is_recipe = file.extension().is_some_and(|end| end == "toml");
    !is_recipe && file.is_file() && read_text(file, LARGEST_TEXT).is_ok_and(|text| has_from(&text))
}

/// Whether a file is a Dockerfile by its name.
pub(super) fn is_dockerfile(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default();
    let name = name.to_string_lossy().to_lowercase();
    name == "dockerfile"
        || name.starts_with("dockerfile.")
        || name.ends_with(".dockerfile")
        || name.starts_with("dockerfile-")
}

/// Which build arguments no `ARG` takes, and those that were probably meant.
fn unused_arguments(request: &Request) -> Vec<String> {
    let known = Outline::read(&request.file).unwrap_or_default().arguments;
    let names = || known.iter().map(|(name, _)| name.as_str());
    let given = request.arguments.iter().map(|(name, _)| name);
    let unused = given.filter(|name| {
        // Everybody's, whether a line asks for them or not.
        let is_everybodys = name.to_uppercase().ends_with("_PROXY")
            || ["TARGET", "BUILD", "SOURCE_DATE_EPOCH"]
                .iter()
                .any(|start| name.starts_with(start));
        !is_everybodys && !names().any(|known| known == name.as_str())
    });
    unused
        .map(|name| {
            let file = request.file.display();
            let meant = nearest(name, names());
            let meant = meant.map(|meant| format!(": did you mean {meant}?"));
            format!(
                "no ARG of {file} takes the build argument {name}{}",
                meant.unwrap_or_default()
            )
        })
        .collect()
}

impl DockerfileArgs {
    /// A Dockerfile of another name than usual.
    pub(super) fn of_file(file: Option<PathBuf>) -> Self {
        Self {
            file,
            ..Self::default()
        }
    }

    /// Refuses what means nothing for a recipe.
    fn refuse(&self) -> Result<(), Failure> {
        let given = [
            ("--target", self.target.is_some()),
            ("--stage", !self.stages.is_empty()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((flag, _)) => {
                let problem = anyhow!("{flag} is for Dockerfiles, and this is a recipe");
                Err(Failure::usage(problem).hint("name a Dockerfile, or leave it out"))
            }
        }
    }
}

impl Wanted<'_> {
    /// The name that images get unless another is asked for.
    pub(super) fn name(&self) -> &str {
        match &self.blueprint {
            Plans::Recipe(recipe) => recipe.name(),
            Plans::Dockerfile(stages) => stages.name(),
        }
    }

    /// The Dockerfile, where it is one.
    pub(super) fn stages(&self) -> Option<&Stages> {
        match &self.blueprint {
            Plans::Recipe(_) => None,
            Plans::Dockerfile(stages) => Some(stages),
        }
    }

    /// Leaves a Dockerfile to a daemon, as it is.
    pub(super) fn send(&mut self) {
        self.is_sent = true;
    }

    /// The Dockerfile that a daemon carries out.
    pub(super) fn sent(&self) -> Option<&Stages> {
        self.stages().filter(|_| self.is_sent)
    }

    /// The folder that files are in.
    pub(super) fn context(&self) -> &Path {
        &self.context
    }

    /// Where base images come from.
    pub(super) fn base_registry(&self) -> &BaseRegistry {
        self.base_registry
    }

    /// The nodes that get no image, because they do not tell their version.
    pub(super) fn left_out(&self) -> &[String] {
        &self.hosts.left_out
    }

    /// The hosts, as far as they tell their version.
    pub(super) fn nodes(&self) -> &[Node] {
        &self.hosts.nodes
    }

    /// The plans as far as the recipe and its folder alone tell them.
    pub(super) fn drafts(&self) -> Result<Vec<Plan>, Failure> {
        Ok(self.request(&self.hosts.targets(), true).drafts()?)
    }

    fn request<'b>(&'b self, hosts: &'b [TargetHost], is_shared: bool) -> BuildRequest<'b> {
        BuildRequest {
            blueprint: match &self.blueprint {
                Plans::Recipe(recipe) => {
                    let settings = Settings {
                        values: &self.values,
                        context: &self.context,
                    };
                    Blueprint::Recipe(recipe, settings)
                }
                Plans::Dockerfile(stages) if self.is_sent => Blueprint::Sent(stages),
                Plans::Dockerfile(stages) => Blueprint::Dockerfile(stages),
            },
            hosts,
            base_registry: self.base_registry,
            wanted: self.matched,
            is_shared,
        }
    }

    /// The files that are downloaded: those that are pinned, or where that is said all of them.
    pub(super) fn supply(&self, manner: Manner, session: &Session) -> Result<Supply, Failure> {
        let folder = match &self.blueprint {
            Plans::Recipe(recipe) => recipe.folder(),
            Plans::Dockerfile(stages) => stages.file().parent(),
        };
        let lock = folder.map(Lock::in_folder).transpose()?;
        let mut words = vec!["wincimg".to_owned()];
        let arguments = std::env::args_os().skip(1);
        words.extend(arguments.map(|word| word.to_string_lossy().into_owned()));
        words.push(UPDATE_LOCK.to_owned());
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let store = session.cache.downloads();
        Ok(Supply::new(manner, store, lock, command_line(&words)))
    }

    /// Refuses a recipe's downloads that nothing pins.
    pub(super) fn check_pins(&self, drafts: &[Plan], supply: &Supply) -> Result<(), Failure> {
        let Plans::Recipe(recipe) = &self.blueprint else {
            return Ok(());
        };
        for draft in drafts {
            supply.check(&draft.wants(recipe.origin()))?;
        }
        Ok(())
    }

    /// Brings what is downloaded, as far as that is known before anyone has looked inside the bases.
    pub(super) async fn bring(
        &self,
        images: &mut [PlannedImage],
        registry: &Registry,
        supply: &mut Supply,
        session: &Session,
    ) -> Result<(), Failure> {
        let hosts = self.hosts.targets();
        let request = self.request(&hosts, true);
        let progress = display(session);
        let bringing = request.look_again(images, registry, supply, &progress, false);
        bringing.await?;
        Ok(())
    }

    /// Finds out what is inside the bases, and carries a Dockerfile out on them.
    pub(super) async fn look(
        &self,
        images: &mut [PlannedImage],
        purpose: Purpose,
        registry: &Registry,
        supply: &mut Supply,
        session: &Session,
    ) -> Result<(), Failure> {
        // What is known then may show that more has to be.
        loop {
            look(images, purpose, registry, session).await?;
            self.look_again(images, registry, supply, session).await?;
            if !images.iter().any(|image| image.stages.wants_a_look) {
                return Ok(());
            }
        }
    }

    /// Carries a Dockerfile out on bases of which more is known by now, and brings what is lacking.
    async fn look_again(
        &self,
        images: &mut [PlannedImage],
        registry: &Registry,
        supply: &mut Supply,
        session: &Session,
    ) -> Result<(), Failure> {
        let hosts = self.hosts.targets();
        let request = self.request(&hosts, true);
        let progress = display(session);
        let told = notes(images);
        let looking = request.look_again(images, registry, supply, &progress, true);
        let lacking = looking.await?;
        tell_what_is_lacking(&lacking, supply, session);
        for note in notes(images).difference(&told) {
            session.note(note);
        }
        if let Some((lock, written)) = supply.write_lock()? {
            session.note(format_args!(
                "{lock}: {} new, {} changed, {} as before",
                written.new, written.changed, written.same
            ));
        }
        Ok(())
    }

    /// Finds the bases and fills the recipe in for each; what was passed over is said on the way.
    /// Hosts of one build share an image where one can serve them, unless each is to have its own.
    pub(super) async fn plan(
        &self,
        is_shared: bool,
        registry: &Registry,
        session: &Session,
    ) -> Result<Vec<PlannedImage>, Failure> {
        let hosts = self.hosts.targets();
        let request = self.request(&hosts, is_shared);
        let images = request.plan(registry).await.inspect_err(|error| {
            if let PlanError::Resolve(error) = error {
                tell_what_was_looked_at(error, session);
            }
        })?;
        for tag in images.iter().flat_map(|image| &image.set_aside) {
            session.warn(tag);
        }
        for note in &notes(&images) {
            session.note(note);
        }
        let warnings = images.iter().flat_map(|image| &image.plan.warnings);
        for warning in warnings.collect::<BTreeSet<_>>() {
            session.warn(warning);
        }
        for image in &images {
            let version = image.base.os_version;
            let host = image.host.as_ref();
            if let Some((version, host)) = version.zip(host)
                && let Some(warning) = warning(version, host.build)
            {
                session.warn(warning);
            }
        }
        // Images for several hosts mostly have the same files.
        let mut contents: Vec<&Plan> = Vec::new();
        for image in &images {
            let plan = &image.plan;
            let is_same = |known: &&Plan| {
                known.files == plan.files && known.instructions == plan.instructions
            };
            if !contents.iter().any(is_same) {
                contents.push(plan);
            }
        }
        // What cannot be read is told by whoever reads it.
        let contents = contents.into_iter().filter_map(|plan| secrets(plan).ok());
        let found: BTreeSet<String> = contents.flatten().collect();
        if !found.is_empty() {
            session.warn(secrets_warning(&found));
        }
        Ok(images)
    }
}

/// Finds out what is inside the bases of planned images, for whoever makes them, and says what there
/// is to say about that.
async fn look(
    images: &mut [PlannedImage],
    purpose: Purpose,
    registry: &Registry,
    session: &Session,
) -> Result<(), Failure> {
    let library = session.cache.library(registry, &display(session));
    let tell = |note: String| session.note(note);
    let looks = look_inside(images, &library, registry, purpose, &tell).await;
    for warning in library.take_warnings() {
        session.warn(warning);
    }
    for look in looks? {
        tracing::info!("inside {}: {}", look.base, look.from);
        if let Some(missing) = look.missing {
            session.note(format_args!(
                "a build reads {missing} of {} from its layers",
                look.base
            ));
        }
        for problem in look.problems {
            session.warn(format!("inside {}: {problem}", look.base));
        }
    }
    Ok(())
}

/// What authors may want to know of their images, each word once: images for several hosts are read
/// from the same recipe.
fn notes(images: &[PlannedImage]) -> BTreeSet<String> {
    let notes = images.iter().flat_map(|image| &image.plan.notes);
    notes.cloned().collect()
}

/// Tells what a build would download first.
fn tell_what_is_lacking(lacking: &Lacking, supply: &Supply, session: &Session) {
    let not_pinned = supply.not_pinned(&lacking.files);
    for (url, want) in &lacking.files {
        if not_pinned.contains(&url.as_str()) {
            session.warn(format_args!(
                "{}: nothing says what {url} has to be: build with {UPDATE_LOCK} once",
                want.place
            ));
        } else {
            session.note(format_args!("{}: a build downloads {url}", want.place));
        }
    }
    for place in &lacking.unclear {
        session.note(format_args!(
            "{place}: what it does is known when that is here: the plan leaves it out"
        ));
    }
    for problem in &lacking.unlooked {
        session.note(format_args!(
            "{problem}: a build looks into the base first, and the plan leaves it out, with the \
             other instructions; after `wincimg base index` of the base it is known here too"
        ));
    }
}

/// Tells in one line which files look like secrets.
fn secrets_warning(found: &BTreeSet<String>) -> String {
    const MOST_NAMES: usize = 4;
    let mut names: Vec<&str> = found.iter().map(String::as_str).collect();
    let more = names.len().saturating_sub(MOST_NAMES);
    names.truncate(MOST_NAMES);
    let more = match more {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "everybody who pulls the image can read what may be a secret: {}{more}; list it in {FILE_NAME} to leave it out",
        names.join(", ")
    )
}

/// Build arguments with their values; those without one have the environment's.
pub(super) fn build_arguments(given: &[String]) -> Vec<(String, String)> {
    let arguments = given.iter();
    let arguments = arguments.filter_map(|argument| match argument.split_once('=') {
        Some((name, value)) => Some((name.to_owned(), value.to_owned())),
        None => Some((argument.clone(), std::env::var(argument).ok()?)),
    });
    arguments.collect()
}

/// Reads `KEY=VALUE`.
pub(super) fn key_and_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("invalid setting {text:?}: expected KEY=VALUE")),
    }
}
