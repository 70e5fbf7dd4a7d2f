//! `wincimg build`: builds images from a recipe or a Dockerfile, for each host.

mod daemon;
pub(super) mod destinations;
mod steps;
pub(super) mod tags;
pub(super) mod text;

use anyhow::anyhow;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::{Timestamp, Zoned};
use serde_json::json;
use wincimg_engine::base_contents::Purpose;
use wincimg_engine::build::{EngineOptions, build, plans};
use wincimg_engine::compat_check::check_served;
use wincimg_engine::delivery::{DeliveryReport, DeliveryTarget};
use wincimg_engine::downloads::LockMode;
use wincimg_engine::engine_choice::Engine;
use wincimg_engine::hybrid::WindowsSteps;
use wincimg_engine::listing::listing;
use wincimg_engine::plans::{BuildRequest, PlannedImage};
use wincimg_engine::publication::NamingOptions;
use wincimg_inspect::bases::parse_location;
use wincimg_layer::Compression;
use wincimg_oci::document::ManifestFormat;
use wincimg_oci::prefix::RegistryPrefix;
use wincimg_oci::reference::{is_repository, is_tag};
use wincimg_oci::store::Location;

use self::daemon::DaemonArgs;
use self::destinations::{check_output, destinations, output_place};
use self::steps::{StepArgs, write_steps};
use self::tags::TagArgs;
use self::text::{write_content, write_text};
use super::command_context::Session;
use super::document_args::DocumentArgs;
use super::error::Failure;
use super::output::{OutputFormat, write_json, write_result};
use super::recipe_args::{DockerfileArgs, RecipeArgs, ResolvedRequest, key_and_value};
use super::registry_args;
use super::{CommandOutcome, complete};
use crate::report::extended;

/// Build images from a recipe or a Dockerfile for each host
///
/// Each image is built on the base that fits its host. The direct engine writes layers and registry
/// changes itself, without Windows or Docker. It executes the RUN lines that it fully supports, and
/// names each line that requires Windows. The docker engine builds on a Docker daemon on Windows.
#[derive(Debug, Args)]
#[command(
    next_display_order = 10,
    after_help = "Examples:\n  \
    wincimg build pause --host-build 17763.973 --registry repo.mylan.k8s:8888 --push\n  \
    wincimg build ./web --nodes nodes.json --registry repo.mylan.k8s:8888/apps --tag 1.4 --push\n  \
    wincimg build pause --host-build 17763.973 --output oci:./pause\n  \
    wincimg build . --host-build 17763.973 --stage build=./out --build-arg VERSION=1.4\n  \
    wincimg build ./legacy --host-build 17763.973 --docker-host tcp://build01:2376 \\\n      \
    --registry repo.mylan.k8s:8888 --push\n\n\
    Without --push and --output the image goes to oci:./NAME-TAG, or stays in the Docker daemon."
)]
pub(super) struct Build {
    /// Registry to push to
    #[arg(long, value_name = "HOST[/PREFIX]")]
    registry: Option<RegistryPrefix>,
    /// Image name [default: the recipe's]
    #[arg(long, value_name = "NAME", value_parser = image_name)]
    name: Option<String>,
    /// Image tag; the tag of the index if there are several builds [default: the base's version, or
    /// latest]
    #[arg(long, value_name = "TAG", value_parser = image_tag)]
    tag: Option<String>,
    /// Push the image to the registry
    #[arg(long)]
    push: bool,
    /// Write the image to oci:DIR or docker-archive:FILE
    #[arg(long, value_name = "PLACE", value_parser = output_place, add = complete::places())]
    output: Option<Location>,
    /// Add a label to the image (repeatable)
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = key_and_value, hide_short_help = true)]
    labels: Vec<(String, String)>,
    #[command(flatten)]
    tags: TagArgs,
    /// Print the plan without building
    #[arg(long)]
    dry_run: bool,
    /// Pin downloads that have no checksum: write their digests to wincimg.lock next to the recipe
    /// or Dockerfile
    #[arg(long, conflicts_with = "dry_run", hide_short_help = true)]
    update_lock: bool,
    /// Build engine: direct, unless the recipe requires Windows
    #[arg(long, default_value = "auto", value_parser = engines(), hide_short_help = true)]
    engine: EngineChoice,
    /// Compression of new layers
    #[arg(long, value_enum, default_value = "gzip", hide_short_help = true)]
    compression: Compression,
    /// Reuse unchanged layers of this image too: a reference, oci:DIR[:TAG] or docker-archive:FILE
    /// (repeatable)
    #[arg(long, value_name = "IMAGE", value_parser = parse_location, conflicts_with = "no_cache", add = complete::images(), hide_short_help = true)]
    cache_from: Vec<Location>,
    #[command(flatten)]
    steps: StepArgs,
    /// Manifest format in the registry [default: the base's]
    #[arg(long, value_enum, value_name = "FORMAT", hide_short_help = true)]
    manifest_format: Option<ManifestFormat>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    // The last four, because a help heading also applies to the arguments after it.
    #[command(flatten)]
    recipe: RecipeArgs,
    #[command(flatten)]
    documents: DocumentArgs,
    #[command(flatten)]
    dockerfile: DockerfileArgs,
    #[command(flatten)]
    daemon: DaemonArgs,
}

/// Build engine; without one, any that can build the image.
type EngineChoice = Option<Engine>;

fn engines() -> impl TypedValueParser<Value = EngineChoice> {
    let all = [Engine::Docker, Engine::Direct];
    let names = ["auto"].into_iter().chain(all.map(Engine::name));
    PossibleValuesParser::new(names)
        .map(move |name| all.into_iter().find(|engine| engine.name() == name))
}

pub(super) fn image_name(text: &str) -> Result<String, &'static str> {
    let expected = "expected lower-case letters, digits and single - _ . /";
    is_repository(text).then(|| text.to_owned()).ok_or(expected)
}

pub(super) fn image_tag(text: &str) -> Result<String, &'static str> {
    let expected = "expected 1 to 128 letters, digits, dots, dashes and underscores";
    is_tag(text).then(|| text.to_owned()).ok_or(expected)
}

impl Build {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome, Failure> {
        self.check_places()?;
        let arguments = self.daemon.arguments();
        let names = self.recipe.names_set(&arguments);
        let wanted = self.recipe.read(&self.dockerfile, arguments, session)?;
        let ResolvedRequest {
            mut request,
            left_out,
            nodes,
        } = wanted;
        let created = source_date_epoch()?;
        request.engine = self.engine;
        request.is_shared = !self.tags.no_index;
        request.labels.clone_from(&self.labels);
        request.windows = self.windows_steps(&request);
        request.downloads = self.manner();
        request.options = EngineOptions {
            compression: self.compression,
            created,
            reuse: (!self.daemon.no_cache).then(|| self.cache_from.clone()),
            docker_host: self.daemon.host(),
            docker: self.daemon.options(),
        };
        let online = self.recipe.online(session)?;
        session.cache.enable_document_cache(&online.registry);
        let means = online.build_context();
        if self.dry_run {
            return registry_args::run(async {
                let images = plans(&request, Purpose::Rehearsal, &means).await?;
                if request.daemon_stages().is_some() {
                    session
                        .note("the daemon runs the instructions: the plan contains only the base");
                }
                self.print_plans(&images, &left_out)
            });
        }
        let today = Zoned::now().date();
        let pushed_to = self.registry.clone().filter(|_| self.push);
        let target = DeliveryTarget {
            naming: NamingOptions {
                name: self
                    .name
                    .clone()
                    .unwrap_or(request.design.name().to_owned()),
                tag: self.tag.clone(),
                index: self.tags.index(),
                style: self.tags.style(),
            },
            destinations: destinations(pushed_to, self.output.as_ref()),
            named_after: self.registry.clone(),
            flavour: self.manifest_format,
            existing: self.tags.existing(),
            documents: self
                .documents
                .to_options(request.design.source(), names, created),
            review: &|outlooks| check_served(outlooks, &nodes, today, session),
        };
        registry_args::run(async {
            let delivered = build(&request, target, &means).await?;
            self.print(&delivered, &left_out)
        })
    }

    /// The steps of a Dockerfile that a named daemon runs, if no engine was chosen.
    fn windows_steps(&self, request: &BuildRequest) -> Option<WindowsSteps> {
        let is_hybrid = self.engine.is_none()
            && self.daemon.host().is_some()
            && request.design.stages().is_some();
        is_hybrid.then(|| {
            let pushed_to = self.registry.clone().filter(|_| self.push);
            let name = self.name.as_deref().unwrap_or(request.design.name());
            self.steps.windows_steps(pushed_to, name)
        })
    }

    fn manner(&self) -> LockMode {
        match (self.dry_run, self.update_lock) {
            (true, _) => LockMode::Offline,
            (false, true) => LockMode::Noting,
            (false, false) => LockMode::Pinned,
        }
    }

    /// Rejects invalid destinations before any network access.
    fn check_places(&self) -> Result<(), Failure> {
        if self.push && self.registry.is_none() {
            let problem = anyhow!("--push requires a registry");
            return Err(Failure::usage(problem).hint("add --registry HOST[:PORT][/PREFIX]"));
        }
        if let Some(registry) = self.registry.as_ref().filter(|_| self.push)
            && let Err(error) = registry.check_for_pushes()
        {
            return Err(
                Failure::usage(anyhow!(error)).hint("name the user: --registry docker.io/USER")
            );
        }
        check_output(self.output.as_ref(), "--registry … --push")
    }

    fn print_plans(
        &self,
        images: &[PlannedImage],
        left_out: &[String],
    ) -> Result<CommandOutcome, Failure> {
        let contents = images.iter().map(|image| listing(&image.plan));
        let contents = contents.collect::<Result<Vec<_>, _>>()?;
        let plans = images.iter().zip(&contents);
        write_result(None, |out| match self.format {
            OutputFormat::Text => {
                for (index, (image, content)) in plans.enumerate() {
                    if index > 0 {
                        writeln!(out)?;
                    }
                    write_steps(image.stages.placements(), out)?;
                    write!(out, "{}", image.plan)?;
                    write_content(content, out)?;
                }
                Ok(())
            }
            OutputFormat::Json => {
                let plans: Vec<_> = plans
                    .map(|(image, content)| {
                        let steps = image.stages.placements();
                        extended(&image.plan, json!({"content": content, "steps": steps}))
                    })
                    .collect();
                write_json(&json!({ "plans": plans, "left_out": left_out }), out)
            }
        })?;
        Ok(CommandOutcome::Yes)
    }

    /// Prints the delivered images.
    fn print(
        &self,
        delivered: &DeliveryReport,
        left_out: &[String],
    ) -> Result<CommandOutcome, Failure> {
        let mut images = delivered.images.iter();
        let is_of_daemon = images.any(|image| image.engine == Engine::Docker.name());
        let kept = if is_of_daemon && !self.push && self.output.is_none() {
            "kept in the Docker daemon"
        } else {
            "written"
        };
        write_result(None, |out| match self.format {
            OutputFormat::Text => write_text(delivered, kept, out),
            OutputFormat::Json => {
                let more = json!({"left_out": left_out});
                write_json(&extended(delivered, more), out)
            }
        })?;
        Ok(CommandOutcome::Yes)
    }
}

/// Timestamp of new content, from `SOURCE_DATE_EPOCH` as for other reproducible builds.
pub(super) fn source_date_epoch() -> Result<Option<Timestamp>, Failure> {
    let Some(text) = std::env::var_os("SOURCE_DATE_EPOCH") else {
        return Ok(None);
    };
    let text = text.to_string_lossy();
    text.parse::<u32>()
        .ok()
        .and_then(|seconds| Timestamp::from_second(seconds.into()).ok())
        .map(Some)
        .ok_or_else(|| {
            Failure::usage(anyhow!("invalid SOURCE_DATE_EPOCH {text:?}"))
                .hint("set it to seconds since 1970, or unset it")
        })
}
