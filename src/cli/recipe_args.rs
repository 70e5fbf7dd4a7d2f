//! Arguments of an image definition: a recipe and its variables or a Dockerfile, its hosts, and the
//! source of base images.

use clap::ValueHint;
use wincimg_cluster::live::ClusterContext;
use wincimg_common::files::TextFile;
use wincimg_common::progress::Silent;
use wincimg_dockerfile::stages::StageReplacement;
use wincimg_engine::build::BuildContext;
use wincimg_engine::definition::{BuildDefinition, BuildInput, dockerfile_of};
use wincimg_engine::notice::UPDATE_LOCK;
use wincimg_engine::plans::BuildRequest;
use wincimg_inspect::bases::BaseMatch;
use wincimg_recipe::Recipe;
use wincimg_windows::compat::Architecture;

use super::base::MatchArgs;
use super::hosts::Builds;
use crate::cli::prelude::*;

/// The image definition and the hosts. Its `--context` is a folder.
#[derive(Debug, Args)]
#[command(mut_arg("kube_context", |arg| arg.long("kube-context").alias(None::<&str>)))]
pub(super) struct RecipeArgs {
    /// A built-in recipe, a recipe file, a Dockerfile, or a folder that contains one
    #[arg(value_name = "IMAGE", add = complete::images_to_build())]
    pub(super) image: String,
    #[command(flatten)]
    hosts: HostArgs,
    #[command(flatten)]
    matched: MatchArgs,
    /// Platform of the image: windows/amd64 or windows/arm64 [default: windows/amd64]
    #[arg(long, value_name = "PLATFORM", value_parser = platform, hide_short_help = true)]
    platform: Option<Architecture>,
    /// Set a variable of the recipe (repeatable)
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_and_value, add = complete::variables())]
    values: Vec<(String, String)>,
    /// Build context [default: . for a recipe, its folder for a Dockerfile]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, hide_short_help = true)]
    context: Option<PathBuf>,
    #[command(flatten)]
    connection: BaseRegistryArgs,
}

/// Options of a Dockerfile.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Dockerfile options")]
pub(super) struct DockerfileArgs {
    /// Dockerfile with another name, relative to the working directory
    #[arg(short = 'f', long, value_name = "FILE", add = complete::dockerfiles())]
    pub(super) file: Option<PathBuf>,
    /// That of the folder, where a recipe counts otherwise
    #[arg(skip)]
    pub(super) found: Option<TextFile>,
    /// Stage to build [default: the last]
    #[arg(long, value_name = "STAGE", add = complete::stages(), hide_short_help = true)]
    target: Option<String>,
    /// Use a folder or an image (also oci:DIR[:TAG]) instead of building a stage (repeatable)
    #[arg(long = "stage", value_name = "NAME=DIR|IMAGE", value_parser = stage_and_place, add = complete::folders_for_stages(), hide_short_help = true)]
    stages: Vec<(String, String)>,
    #[command(flatten)]
    installers: InstallerArgs,
}

/// Options for the packages that a Dockerfile installs.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Dockerfile options")]
pub(super) struct InstallerArgs {
    /// Leave out a custom action of Windows Installer packages (repeatable)
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    skip_custom_action: Vec<String>,
    /// Feed of the packages of `choco install`: a folder of `.nupkg` files, or the URL of a v2 feed
    #[arg(long, value_name = "DIR|URL", value_hint = ValueHint::DirPath, hide_short_help = true)]
    choco_feed: Option<String>,
}

/// Parses `windows/amd64` or `windows/arm64`.
fn platform(text: &str) -> Result<Architecture, String> {
    let architecture = text
        .strip_prefix("windows/")
        .and_then(Architecture::from_name);
    architecture.ok_or_else(|| {
        format!("unsupported platform {text:?}: expected windows/amd64 or windows/arm64")
    })
}

impl InstallerArgs {
    /// Sets them for a definition.
    pub(super) fn apply_to(&self, input: &mut BuildInput) {
        input.skipped_actions.clone_from(&self.skip_custom_action);
        input.choco_feed.clone_from(&self.choco_feed);
    }
}

impl RecipeArgs {
    /// A definition from only a Dockerfile and hosts.
    pub(super) fn of_dockerfile(
        image: String,
        hosts: HostArgs,
        connection: BaseRegistryArgs,
    ) -> Self {
        Self {
            image,
            hosts,
            matched: MatchArgs {
                wanted: BaseMatch::Nearest,
            },
            platform: None,
            values: Vec::new(),
            context: None,
            connection,
        }
    }

    /// Reads the recipe, or the Dockerfile with its build arguments, and the hosts; checks them as
    /// far as possible without a registry.
    pub(super) fn read(
        &self,
        dockerfile: &DockerfileArgs,
        arguments: &[(String, String)],
        session: &Session,
    ) -> Result<(BuildRequest, Builds)> {
        let read = |architecture: Option<Architecture>| {
            let mut arguments = arguments.to_vec();
            if let Some(architecture) = architecture {
                let name = architecture.name();
                arguments.push(("TARGETARCH".to_owned(), name.to_owned()));
                arguments.push(("TARGETPLATFORM".to_owned(), format!("windows/{name}")));
            }
            self.named(dockerfile, arguments).read(session)
        };
        let other = |architecture: &Architecture| *architecture != Architecture::default();
        let mut definition = read(self.platform.filter(other))?;
        let architecture = self.architecture(&definition)?;
        if self.platform.is_none() && other(&architecture) {
            definition = read(Some(architecture))?;
        }
        definition.leave_out_cache(session.cache.folder().as_deref())?;
        if let Some(recipe) = definition.recipe() {
            self.check_context(recipe)?;
        }
        let base_registry = self.connection.base_registry.clone();
        let hosts = if self.hosts.is_given() {
            self.hosts.builds_of_images(session)?
        } else if definition.is_for_any_host()? {
            Builds::default()
        } else if let Some(windows) = definition.windows_of_base(&base_registry)? {
            Builds::of_base(windows, session)
        } else {
            self.hosts.builds_of_images(session)?
        };
        let hosts = hosts.on(architecture, session)?;
        let matched = self.matched.wanted;
        let mut request = BuildRequest::new(definition, hosts.targets(), base_registry, matched);
        let input = self.named(dockerfile, arguments.to_vec());
        // Only `build` has the flag.
        let words = ["build".to_owned()].into_iter();
        let words = words.chain(input.to_words(&request.definition));
        request.noting = lock_command(words.chain(self.base_words(&hosts)));
        Ok((request, hosts))
    }

    /// The architecture of the images: the given one, or that of the Dockerfile.
    fn architecture(&self, definition: &BuildDefinition) -> Result<Architecture> {
        let named = match definition.stages() {
            Some(stages) => stages.architecture()?,
            None => None,
        };
        let asked_for = named.as_deref().or(self.platform.map(Architecture::name));
        if let Some(other) = asked_for.filter(|it| *it != Architecture::Amd64.name())
            && definition.is_for_any_host()?
        {
            let problem = format!("the base for HostProcess containers is for amd64, not {other}");
            return Err(Failure::usage(problem).hint("build it for windows/amd64"));
        }
        let Some(named) = named else {
            return Ok(self.platform.unwrap_or_default());
        };
        let of_file = platform(&format!("windows/{named}"));
        let of_file = of_file.map_err(|problem| {
            Failure::usage(format!("FROM --platform: {problem}"))
                .hint("write FROM without --platform, and give it to the command")
        })?;
        match self.platform {
            Some(given) if given != of_file => {
                let given = given.name();
                let problem = format!(
                    "FROM --platform=windows/{named} contradicts --platform windows/{given}"
                );
                Err(Failure::usage(problem)
                    .hint("write FROM --platform=$TARGETPLATFORM, or remove the flag"))
            }
            _ => Ok(of_file),
        }
    }

    /// Rejects a context folder that does not exist, or that the recipe does not use.
    fn check_context(&self, recipe: &Recipe) -> Result<()> {
        let Some(context) = &self.context else {
            return Ok(());
        };
        let folder = context.display();
        if !context.is_dir() {
            let hint = "name the folder that context = \"…\" of the recipe is relative to; for a \
                        context of the kubeconfig, use --kube-context";
            return Err(Failure::usage(format!("--context {folder} is not a folder")).hint(hint));
        }
        // The current folder is the default.
        if recipe.uses_context() || context == Path::new(".") {
            return Ok(());
        }
        let problem =
            format!("--context {folder} has no effect: the recipe has no file with context");
        let hint = "remove it; paths of `from` are relative to the recipe's folder";
        Err(Failure::usage(problem).hint(hint))
    }

    fn named(&self, dockerfile: &DockerfileArgs, arguments: Vec<(String, String)>) -> BuildInput {
        let stages = dockerfile.stages.iter();
        let named = dockerfile.file.clone().map(TextFile::named);
        let mut input = BuildInput {
            image: self.image.clone(),
            values: self.values.clone(),
            context: self.context.clone(),
            file: named.or_else(|| dockerfile.found.clone()),
            target: dockerfile.target.clone(),
            stages: stages
                .map(|(name, text)| (name.clone(), StageReplacement::parse(text, Path::new(""))))
                .collect(),
            arguments,
            ..BuildInput::default()
        };
        dockerfile.installers.apply_to(&mut input);
        input
    }

    /// The cluster of the nodes and builders.
    pub(super) fn cluster(&self) -> ClusterContext {
        self.hosts.cluster.context()
    }

    /// Names of the set values, which may be secrets.
    pub(super) fn names_set(&self, arguments: &[(String, String)]) -> Vec<String> {
        let all = self.values.iter().chain(arguments);
        let mut names: Vec<String> = all.map(|(name, _)| name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// The default name of the images; reads the recipe or the Dockerfile.
    pub(super) fn default_name(
        &self,
        dockerfile: &DockerfileArgs,
        arguments: &[(String, String)],
    ) -> Result<String> {
        let input = self.named(dockerfile, arguments.to_vec());
        Ok(input.read(&Silent)?.name().to_owned())
    }

    /// Flags that choose the same hosts and bases.
    pub(super) fn base_words(&self, hosts: &Builds) -> Vec<String> {
        let mut words = self.hosts.to_words();
        if words.is_empty() {
            let builds = hosts.all().into_iter().map(|host| host.version);
            words.extend(flag_words("--host-build", builds));
        }
        if self.matched.wanted == BaseMatch::Exact {
            words.extend(flag_words("--match", ["exact"]));
        }
        let platform = self.platform.map(|it| format!("windows/{}", it.name()));
        words.extend(flag_words("--platform", platform));
        words.extend(self.connection.to_words());
        words
    }

    /// Rejects a Dockerfile, for a command that only takes recipes.
    pub(super) fn refuse_dockerfile(&self) -> Result<()> {
        match dockerfile_of(&self.image, None) {
            None => Ok(()),
            Some((file, _)) => {
                let problem = format!("{} is already a Dockerfile", file.path().display());
                Err(Failure::usage(problem).hint(format!(
                    "print the plan: {} --host-build … --dry-run",
                    command_line(&["wincimg", "build", &self.image])
                )))
            }
        }
    }

    /// Services for plans whose bases are read later.
    pub(super) fn online<'s>(&self, session: &'s Session) -> Result<BuildContext<'s>> {
        let ctx = online(&self.connection.registry, session)?;
        ctx.library.enable_prefetch();
        Ok(ctx)
    }
}

impl DockerfileArgs {
    /// A Dockerfile with another name.
    pub(super) fn of_file(file: Option<PathBuf>) -> Self {
        Self {
            file,
            ..Self::default()
        }
    }
}

/// The command with these arguments and the flag that locks its downloads.
pub(super) fn lock_command(arguments: impl Iterator<Item = String>) -> String {
    let mut words = vec!["wincimg".to_owned()];
    words.extend(without_values(arguments));
    words.push(UPDATE_LOCK.to_owned());
    command_line(&words)
}

/// Arguments of a command without the values of build arguments, which may be secret.
fn without_values(typed: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    const FLAG: &str = "--build-arg";
    let mut is_next = false;
    typed.map(move |word| {
        let start = if std::mem::replace(&mut is_next, word == FLAG) {
            0
        } else if word
            .strip_prefix(FLAG)
            .is_some_and(|it| it.starts_with('='))
        {
            FLAG.len() + 1
        } else {
            return word;
        };
        match word[start..].find('=') {
            Some(end) => format!("{}=…", &word[..start + end]),
            None => word,
        }
    })
}

/// Parses a build argument, which may have no value.
pub(super) fn build_argument(text: &str) -> Result<String, &'static str> {
    if text.starts_with('=') {
        return Err("expected KEY=VALUE, or KEY for its value in the environment");
    }
    Ok(text.to_owned())
}

/// Build arguments with values; those without one get the environment's.
pub(super) fn build_arguments(given: &[String]) -> Vec<(String, String)> {
    let arguments = given.iter();
    let arguments = arguments.filter_map(|argument| match argument.split_once('=') {
        Some((name, value)) => Some((name.to_owned(), value.to_owned())),
        None => Some((argument.clone(), std::env::var(argument).ok()?)),
    });
    arguments.collect()
}

pub(super) fn key_and_value(text: &str) -> Result<(String, String), String> {
    pair(text).ok_or_else(|| format!("invalid setting {}: expected KEY=VALUE", QuotedText(text)))
}

/// Parses the name of a stage and what replaces it.
fn stage_and_place(text: &str) -> Result<(String, String), &'static str> {
    pair(text).ok_or("expected the name of a stage and a folder or image: NAME=DIR, NAME=IMAGE")
}

fn pair(text: &str) -> Option<(String, String)> {
    let (key, value) = text.split_once('=')?;
    (!key.is_empty()).then(|| (key.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_command_has_no_values_of_build_arguments() {
        let typed = "build . --build-arg TOKEN=a=b --build-arg=KEY=c --build-arg NAME --set x=1";
        let shown: Vec<_> = without_values(typed.split(' ').map(str::to_owned)).collect();
        let expected = "build . --build-arg TOKEN=… --build-arg=KEY=… --build-arg NAME --set x=1";
        assert_eq!(shown.join(" "), expected);
    }
}
