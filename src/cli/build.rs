//! `wincimg build`: images from a recipe, for the hosts that are to run them.

mod daemon;
pub(super) mod places;
pub(super) mod tags;
pub(super) mod text;

use anyhow::anyhow;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::{Timestamp, Zoned};
use serde_json::json;
use wincimg_engine::build::{MakeOptions, build, plans};
use wincimg_engine::choice::Engine;
use wincimg_engine::delivery::{Delivered, Target};
use wincimg_engine::downloads::Manner;
use wincimg_engine::inside::Purpose;
use wincimg_engine::listing::listing;
use wincimg_engine::plans::PlannedImage;
use wincimg_engine::publication::Naming;
use wincimg_engine::served::review;
use wincimg_inspect::bases::parse_location;
use wincimg_layer::Compression;
use wincimg_oci::document::Flavour;
use wincimg_oci::prefix::RegistryPrefix;
use wincimg_oci::reference::{is_repository, is_tag};
use wincimg_oci::store::Location;

use self::daemon::DaemonArgs;
use self::places::{check_output, destinations, output_place};
use self::tags::TagArgs;
use self::text::{write_content, write_text};
use super::document_args::DocumentArgs;
use super::failure::Failure;
use super::output::{Format, write_json, write_result};
use super::recipe_args::{DockerfileArgs, RecipeArgs, Wanted, key_and_value};
use super::registry_args;
use super::session::Session;
use super::{Answer, complete};
use crate::report::extended;

/// Build an image from a recipe or a Dockerfile, on the base that fits each host
///
/// The direct engine writes layers and registry changes itself and needs neither Windows nor Docker.
/// Of a Dockerfile, RUN lines are read and done without Windows where all of them is understood; else
/// the line is named. What has to run on Windows goes to a Docker daemon there.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg build pause --host-build 17763.973 --registry repo.mylan.k8s:8888 --push\n  \
    wincimg build ./web --nodes nodes.json --registry repo.mylan.k8s:8888/apps --tag 1.4 --push\n  \
    wincimg build pause --host-build 17763.973 --output oci:./pause\n  \
    wincimg build . --host-build 17763.973 --stage build=./out --build-arg VERSION=1.4\n  \
    wincimg build ./legacy --host-build 17763.973 --docker-host tcp://build01:2376 \\\n      \
    --registry repo.mylan.k8s:8888 --push\n\n\
    Without --push and --output the image goes to oci:./NAME-TAG, or stays in the Docker daemon.")]
pub(super) struct Build {
    /// Who builds: direct, unless the recipe needs Windows
    #[arg(long, default_value = "auto", value_parser = engines())]
    engine: EngineChoice,
    /// Where to push the image to
    #[arg(long, value_name = "HOST[:PORT][/PREFIX]")]
    registry: Option<RegistryPrefix>,
    /// The image's name [default: the recipe's]
    #[arg(long, value_name = "NAME", value_parser = image_name)]
    name: Option<String>,
    /// The image's tag; with several builds the index's [default: the base's version, latest]
    #[arg(long, value_name = "TAG", value_parser = image_tag)]
    tag: Option<String>,
    /// Give the image a label (repeatable)
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = key_and_value)]
    labels: Vec<(String, String)>,
    /// Push to the registry
    #[arg(long)]
    push: bool,
    /// Write to oci:DIR or docker-archive:FILE
    #[arg(long, value_name = "PLACE", value_parser = output_place, add = complete::places())]
    output: Option<Location>,
    #[command(flatten)]
    tags: TagArgs,
    /// Print the plan and build nothing
    #[arg(long)]
    dry_run: bool,
    /// Pin downloads that have no checksum: note their digests in wincimg.lock, beside the recipe or
    /// the Dockerfile
    #[arg(long, conflicts_with = "dry_run")]
    update_lock: bool,
    /// How the recipe's layer is compressed
    #[arg(long, value_enum, default_value = "gzip")]
    compression: Compression,
    /// Take unchanged layers from an image too, beside what the tag has: a reference, oci:DIR[:TAG]
    /// or docker-archive:FILE (repeatable)
    #[arg(long, value_name = "IMAGE", value_parser = parse_location, conflicts_with = "no_cache", add = complete::images())]
    cache_from: Vec<Location>,
    /// The format of manifests in a registry [default: the base's]
    #[arg(long, value_enum, value_name = "FORMAT")]
    manifest_format: Option<Flavour>,
    /// The form of the result
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
    // The last four, because the heading of each goes for what follows it.
    #[command(flatten)]
    recipe: RecipeArgs,
    #[command(flatten)]
    documents: DocumentArgs,
    #[command(flatten)]
    dockerfile: DockerfileArgs,
    #[command(flatten)]
    daemon: DaemonArgs,
}

/// Who builds; nobody in particular where the one is meant that can.
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
    pub(super) fn run(self, session: &Session) -> Result<Answer, Failure> {
        self.check_places()?;
        let arguments = self.daemon.arguments();
        let names = self.recipe.names_set(&arguments);
        let wanted = self.recipe.read(&self.dockerfile, arguments, session)?;
        let Wanted {
            mut request,
            left_out,
            nodes,
        } = wanted;
        let created = source_date_epoch()?;
        request.engine = self.engine;
        request.is_shared = !self.tags.no_index;
        request.labels.clone_from(&self.labels);
        request.downloads = self.manner();
        request.options = MakeOptions {
            compression: self.compression,
            created,
            reuse: (!self.daemon.no_cache).then(|| self.cache_from.clone()),
            docker_host: self.daemon.host(),
            docker: self.daemon.options(),
        };
        let online = self.recipe.online(session)?;
        session.cache.keep_documents(&online.registry);
        let means = online.means();
        if self.dry_run {
            return registry_args::run(async {
                let images = plans(&request, Purpose::Rehearsal, &means).await?;
                if request.sent().is_some() {
                    session.note(
                        "the daemon carries the instructions out: the plan has the base alone",
                    );
                }
                self.print_plans(&images, &left_out)
            });
        }
        let today = Zoned::now().date();
        let pushed_to = self.registry.clone().filter(|_| self.push);
        let target = Target {
            naming: Naming {
                name: self
                    .name
                    .clone()
                    .unwrap_or(request.design.name().to_owned()),
                tag: self.tag.clone(),
                index: self.tags.index(),
            },
            destinations: destinations(pushed_to, self.output.as_ref()),
            named_after: self.registry.clone(),
            flavour: self.manifest_format,
            existing: self.tags.existing(),
            documents: self
                .documents
                .wanted(request.design.source(), names, created),
            review: &|outlooks| review(outlooks, &nodes, today, session),
        };
        registry_args::run(async {
            let delivered = build(&request, target, &means).await?;
            self.print(&delivered, &left_out)
        })
    }

    fn manner(&self) -> Manner {
        match (self.dry_run, self.update_lock) {
            (true, _) => Manner::Offline,
            (false, true) => Manner::Noting,
            (false, false) => Manner::Pinned,
        }
    }

    /// Refuses places that nothing can be sent to before anything is asked of the network.
    fn check_places(&self) -> Result<(), Failure> {
        if self.push && self.registry.is_none() {
            let problem = anyhow!("--push needs a registry to push to");
            return Err(
                Failure::usage(problem).hint("name it with --registry HOST[:PORT][/PREFIX]")
            );
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

    fn print_plans(&self, images: &[PlannedImage], left_out: &[String]) -> Result<Answer, Failure> {
        let contents = images.iter().map(|image| listing(&image.plan));
        let contents = contents.collect::<Result<Vec<_>, _>>()?;
        let plans = images.iter().map(|image| &image.plan).zip(&contents);
        write_result(None, |out| match self.format {
            Format::Text => {
                for (index, (plan, content)) in plans.enumerate() {
                    if index > 0 {
                        writeln!(out)?;
                    }
                    write!(out, "{plan}")?;
                    write_content(content, out)?;
                }
                Ok(())
            }
            Format::Json => {
                let plans: Vec<_> = plans
                    .map(|(plan, content)| extended(plan, json!({"content": content})))
                    .collect();
                write_json(&json!({ "plans": plans, "left_out": left_out }), out)
            }
        })?;
        Ok(Answer::Yes)
    }

    /// Prints what was delivered.
    fn print(&self, delivered: &Delivered, left_out: &[String]) -> Result<Answer, Failure> {
        let mut images = delivered.images.iter();
        let is_of_daemon = images.any(|image| image.engine == Engine::Docker.name());
        let kept = if is_of_daemon && !self.push && self.output.is_none() {
            "left in the Docker daemon"
        } else {
            "written"
        };
        write_result(None, |out| match self.format {
            Format::Text => write_text(delivered, kept, out),
            Format::Json => {
                let more = json!({"left_out": left_out});
                write_json(&extended(delivered, more), out)
            }
        })?;
        Ok(Answer::Yes)
    }
}

/// The time that new layers carry, as reproducible builds ask for it.
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
