//! `wincimg build`: images from a recipe, for the hosts that are to run them.

mod daemon;
mod engine;
pub(super) mod tags;
pub(super) mod text;

use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use jiff::{Timestamp, Zoned};
use serde::Serialize;
use serde_json::json;
use wincimg_common::progress::Progress;
use wincimg_dockerfile::stages::Stages;
use wincimg_engine::choice::{Engine, Wish};
use wincimg_engine::delivery::{Delivered, Delivery, Destination, Existing, Review, foresee};
use wincimg_engine::downloads::Manner;
use wincimg_engine::inside::Purpose;
use wincimg_engine::listing::{Listed, listing};
use wincimg_engine::order::{Reuse, deliver_directly};
use wincimg_engine::plans::{PlannedImage, TargetHost};
use wincimg_engine::publication::{Naming, Publication};
use wincimg_engine::served::review;
use wincimg_inspect::bases::parse_location;
use wincimg_layer::{Compression, Remembered};
use wincimg_oci::prefix::RegistryPrefix;
use wincimg_oci::reference::{is_repository, is_tag};
use wincimg_oci::remote::Registry;
use wincimg_oci::store::{Location, LocationError};
use wincimg_recipe::Plan;

use self::daemon::DaemonArgs;
use self::engine::EngineArg;
use self::tags::TagArgs;
use self::text::{write_content, write_text};
use super::document_args::DocumentArgs;
use super::failure::Failure;
use super::output::{Format, write_json, write_result};
use super::recipe_args::{DockerfileArgs, RecipeArgs, Wanted, key_and_value, noting};
use super::registry_args::{self, ManifestFormat};
use super::session::Session;
use super::{Answer, complete};

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
    #[arg(long, value_enum, default_value = "auto")]
    engine: EngineArg,
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
    compression: CompressionArg,
    /// Take unchanged layers from an image too, beside what the tag has: a reference, oci:DIR[:TAG]
    /// or docker-archive:FILE (repeatable)
    #[arg(long, value_name = "IMAGE", value_parser = parse_location, conflicts_with = "no_cache", add = complete::images())]
    cache_from: Vec<Location>,
    /// The format of manifests in a registry [default: the base's]
    #[arg(long, value_enum, value_name = "FORMAT")]
    manifest_format: Option<ManifestFormat>,
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

/// What both engines work with.
struct Job<'a> {
    publication: &'a Publication<'a>,
    registry: &'a Registry,
    progress: Arc<dyn Progress>,
    created: Option<Timestamp>,
    existing: Existing,
    review: &'a Review<'a>,
    /// What the tars of layers came to in earlier runs.
    remembered: Remembered,
    /// The Dockerfile that a daemon carries out; it makes one of a recipe's plan itself.
    sent: Option<&'a Stages>,
}

/// What the JSON says beside what was delivered.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    delivered: &'a Delivered,
    left_out: &'a [String],
}

/// A plan, and every file that it puts into the image.
#[derive(Serialize)]
struct PlanReport<'a> {
    #[serde(flatten)]
    plan: &'a Plan,
    content: &'a [Listed],
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CompressionArg {
    Gzip,
    Zstd,
}

impl From<CompressionArg> for Compression {
    fn from(argument: CompressionArg) -> Self {
        match argument {
            CompressionArg::Gzip => Self::Gzip,
            CompressionArg::Zstd => Self::Zstd,
        }
    }
}

pub(super) fn image_name(text: &str) -> Result<String, &'static str> {
    let expected = "expected lower-case letters, digits and single - _ . /";
    is_repository(text).then(|| text.to_owned()).ok_or(expected)
}

pub(super) fn image_tag(text: &str) -> Result<String, &'static str> {
    let expected = "expected 1 to 128 letters, digits, dots, dashes and underscores";
    is_tag(text).then(|| text.to_owned()).ok_or(expected)
}

/// A text that is not even a reference was meant as a path, whose form is all that helps.
pub(super) fn output_place(text: &str) -> Result<Location, String> {
    parse_location(text).map_err(|error| match error {
        LocationError::Reference(_) => {
            format!("invalid output {text:?}: expected oci:DIR or docker-archive:FILE")
        }
        LocationError::Meant { meant, .. } if meant.starts_with("did you mean") => {
            format!("invalid output {text:?}: {meant}")
        }
        LocationError::Meant { .. } => {
            let is_file = Path::new(text).extension().is_some() && !Path::new(text).is_dir();
            let scheme = if is_file { "docker-archive" } else { "oci" };
            format!("invalid output {text:?}: type {scheme}:{text}")
        }
        LocationError::NoPath { .. } => error.to_string(),
    })
}

impl Build {
    pub(super) fn run(self, session: &Session) -> Result<Answer, Failure> {
        self.check_places()?;
        let arguments = self.daemon.arguments();
        let wanted = self.recipe.read(&self.dockerfile, arguments, session)?;
        let Wanted {
            mut order,
            left_out,
            nodes,
        } = wanted;
        if let EngineArg::Docker = self.engine {
            order.design.send();
        }
        let wish = Wish::from(self.engine);
        let mut supply = order.supply(self.manner(), session.cache.downloads(), noting())?;
        let drafts = order.drafts()?;
        order.check_pins(&drafts, &supply)?;
        wish.rehearse(&drafts)?;
        let created = source_date_epoch()?;
        let names = self.recipe.names_set(&self.daemon.arguments());
        let documents = self.documents.wanted(order.design.source(), names, created);
        let online = self.recipe.online(session)?;
        session.cache.keep_documents(&online.registry);
        let means = online.means();
        let naming = Naming {
            name: self.name.clone().unwrap_or(order.design.name().to_owned()),
            tag: self.tag.clone(),
            index: self.tags.index(),
        };
        registry_args::run(async {
            self.foresee(&online.registry, &naming, &order.hosts);
            let mut images = order.plan(!self.tags.no_index, &means).await?;
            order.bring(&mut images, &mut supply, &means).await?;
            let (engine, reason) = wish.choose(images.iter().map(|image| &image.plan));
            let purpose = match engine {
                _ if self.dry_run => Purpose::Rehearsal,
                Engine::Direct => Purpose::Layers,
                Engine::Docker => Purpose::Dockerfile,
            };
            let looking = order.look(&mut images, purpose, &mut supply, &means);
            looking.await?;
            for image in &mut images {
                image.plan.labels.extend(self.labels.iter().cloned());
            }
            if self.dry_run {
                if order.design.sent().is_some() {
                    session.note(
                        "the daemon carries the instructions out: the plan has the base alone",
                    );
                }
                return self.print_plans(&images, &left_out);
            }
            if self.registry.is_some() && !self.push {
                session.note("nothing is pushed without --push");
            }
            tracing::info!("engine {}: {reason}", engine.name());
            let today = Zoned::now().date();
            let mut publication = Publication::new(&images, &naming)?;
            publication.documents = documents;
            let job = Job {
                publication: &publication,
                registry: &online.registry,
                progress: Arc::clone(&online.progress),
                created,
                existing: self.tags.existing(),
                review: &|outlooks| review(outlooks, &nodes, today, session),
                remembered: session.cache.remembered(),
                sent: order.design.sent(),
            };
            let mut destinations = self.destinations();
            self.check_format(engine, &destinations)?;
            self.check_cache(engine)?;
            let delivered = match engine {
                Engine::Direct => {
                    if destinations.is_empty() {
                        destinations.push(default_layout(job.publication));
                    }
                    self.build_directly(&destinations, job).await?
                }
                Engine::Docker => {
                    let registry = self.registry.as_ref();
                    self.daemon
                        .build(&destinations, registry, &reason, job)
                        .await?
                }
            };
            let kept = if destinations.is_empty() {
                "left in the Docker daemon"
            } else {
                "written"
            };
            self.print(&delivered, kept, &left_out)
        })
    }

    /// Asks ahead what the tags mean that will probably be written to.
    fn foresee(&self, registry: &Registry, naming: &Naming, hosts: &[TargetHost]) {
        if !self.dry_run && self.tags.existing() != Existing::Replace {
            let tags = naming.likely_tags(hosts);
            foresee(registry, &self.destinations(), &naming.name, &tags);
        }
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
        match &self.output {
            Some(Location::Registry(_)) => {
                let problem = anyhow!("--output is for directories and files");
                Err(Failure::usage(problem).hint(
                    "write to oci:DIR or docker-archive:FILE, or push with --registry … --push",
                ))
            }
            Some(
                tagged @ (Location::Layout { tag: Some(_), .. }
                | Location::Archive { name: Some(_), .. }),
            ) => Err(Failure::usage(anyhow!("{tagged} has a tag of its own"))
                .hint("give the tag with --tag")),
            _ => Ok(()),
        }
    }

    /// Refuses a format of manifests that cannot be had.
    fn check_format(&self, engine: Engine, destinations: &[Destination]) -> Result<(), Failure> {
        let pushes = || {
            let mut places = destinations.iter();
            places.any(|place| matches!(place, Destination::Registry(_)))
        };
        match (self.manifest_format, engine, self.compression) {
            (Some(_), Engine::Docker, _) if pushes() => {
                let problem = anyhow!(
                    "--manifest-format needs the direct engine: Docker pushes in a format of its own"
                );
                Err(Failure::usage(problem)
                    .hint("convert what Docker pushed: wincimg mirror IMAGE --to HOST[:PORT][/PREFIX] --manifest-format docker|oci"))
            }
            (Some(ManifestFormat::Docker), _, CompressionArg::Zstd) => {
                let problem = anyhow!("Docker's manifests have no type for layers in zstd");
                Err(Failure::usage(problem)
                    .hint("use --compression gzip, or --manifest-format oci"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses images to take layers from where a daemon makes its own.
    fn check_cache(&self, engine: Engine) -> Result<(), Failure> {
        if engine == Engine::Docker && !self.cache_from.is_empty() {
            let problem =
                anyhow!("--cache-from needs the direct engine: Docker has a cache of its own");
            return Err(Failure::usage(problem).hint("leave --cache-from out"));
        }
        Ok(())
    }

    async fn build_directly(
        &self,
        destinations: &[Destination],
        job: Job<'_>,
    ) -> Result<Delivered, Failure> {
        let delivery = Delivery {
            registry: job.registry,
            progress: job.progress,
            destinations,
            flavour: self.manifest_format.map(Into::into),
            existing: job.existing,
            review: job.review,
        };
        let compression = self.compression.into();
        let reuse = (!self.daemon.no_cache).then(|| Reuse {
            from: self.cache_from.clone(),
            remembered: job.remembered,
        });
        let delivering =
            deliver_directly(job.publication, compression, job.created, reuse, &delivery);
        Ok(delivering.await?)
    }

    /// Where the images were asked to go; nowhere where nothing was said. The registry comes first:
    /// its references are what a pipeline goes on with.
    fn destinations(&self) -> Vec<Destination> {
        let mut destinations = Vec::new();
        if self.push
            && let Some(registry) = &self.registry
        {
            destinations.push(Destination::Registry(registry.clone()));
        }
        match &self.output {
            Some(Location::Layout { dir, .. }) => {
                destinations.push(Destination::Layout(dir.clone()));
            }
            Some(Location::Archive { file, .. }) => {
                destinations.push(Destination::Archive(file.clone()));
            }
            Some(Location::Registry(_)) | None => {}
        }
        destinations
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
                    .map(|(plan, content)| PlanReport { plan, content })
                    .collect();
                write_json(&json!({ "plans": plans, "left_out": left_out }), out)
            }
        })?;
        Ok(Answer::Yes)
    }

    /// Prints what was delivered; `kept` is the word for images that were not pushed.
    fn print(
        &self,
        delivered: &Delivered,
        kept: &str,
        left_out: &[String],
    ) -> Result<Answer, Failure> {
        write_result(None, |out| match self.format {
            Format::Text => write_text(delivered, kept, out),
            Format::Json => {
                let report = Report {
                    delivered,
                    left_out,
                };
                write_json(&report, out)
            }
        })?;
        Ok(Answer::Yes)
    }
}

/// Where the direct engine leaves images that were asked to go nowhere.
fn default_layout(publication: &Publication<'_>) -> Destination {
    let name = publication.name.replace('/', "-");
    Destination::Layout(format!("./{name}-{}", publication.tag()).into())
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
