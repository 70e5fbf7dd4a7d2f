//! `wincimg build`: builds images from a recipe or a Dockerfile, for each host.

mod all;
mod daemon;
pub(super) mod destinations;
pub(super) mod docker_flags;
pub(super) mod image_name;
mod metadata;
mod other_names;
mod steps;
pub(super) mod text;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgGroup, ValueHint};
use jiff::Timestamp;
use wincimg_common::files::folder_of;
use wincimg_engine::base_contents::Purpose;
use wincimg_engine::build::{BuildContext, EngineOptions, PlannedBuild, build, plans};
use wincimg_engine::compat_check::check_served;
use wincimg_engine::definition::BuildDefinition;
use wincimg_engine::delivery::{BuildPermit, DeliveryReport, DeliveryTarget, default_layouts};
use wincimg_engine::downloads::LockMode;
use wincimg_engine::engine_choice::Engine;
use wincimg_engine::hybrid::{CacheRepository, WindowsSteps};
use wincimg_engine::listing::listing;
use wincimg_engine::plans::BuildRequest;
use wincimg_engine::unserved::UnservedHost;
use wincimg_layer::Compression;
use wincimg_oci::reference::{is_repository, is_tag};
use wincimg_windows::compat::Architecture;

use self::daemon::DaemonArgs;
use self::destinations::{
    cached_image, check_inputs, check_joined, check_output, destinations, is_created, output_place,
};
use self::image_name::TagArgs;
use self::image_name::{ImageName, tag_or_name};
use self::metadata::{check_single, image_id, is_metadata, metadata};
use self::other_names::other_tags;
use self::steps::{cache_repository, write_steps};
use self::text::{write_content, write_paths, write_references, write_text};
use super::document_args::DocumentArgs;
use super::hosts::CLUSTER_SOURCE;
use super::output::{ReviewFormat, check_distinct, check_file, remove_result, write_annotations};
use super::recipe_args::{DockerfileArgs, RecipeArgs, key_and_value, lock_command};
use super::typed_arguments;
use crate::cli::prelude::*;

/// Build images from a recipe or a Dockerfile for each host
///
/// Each image is built on the base that fits its host. The direct engine writes layers and registry
/// changes itself, without Windows or Docker. It executes the RUN lines that it fully supports, and
/// names each line that requires Windows. The docker engine builds on a Docker daemon on Windows.
#[derive(Debug, Args)]
#[command(
    next_display_order = 10,
    mut_args(for_short_help),
    mut_arg("docker_host", |arg| arg.help(
        "Docker daemon to use [default: `DOCKER_HOST`, then Docker's context, then the platform's \
         default; for lines of a Dockerfile, none]"
    )),
    group = ArgGroup::new(CLUSTER_SOURCE).multiple(true),
    after_help = "Examples:\n  \
    wincimg build pause --host-build 17763.973 \\\n      \
    --registry repo.mylan.k8s:8888 --push\n  \
    wincimg build ./web --nodes nodes.json \\\n      \
    --registry repo.mylan.k8s:8888/apps --tag 1.4 --push\n  \
    wincimg build . --host-build ltsc2022 \\\n      \
    -t repo.mylan.k8s:8888/apps/web:1.4 --push\n  \
    wincimg build pause --host-build 17763.973 --output oci:./pause\n  \
    wincimg build . --host-build 17763.973 \\\n      \
    --stage build=./out --build-arg VERSION=1.4\n  \
    wincimg build ./legacy --host-build 17763.973 \\\n      \
    --docker-host tcp://build01:2376 --registry repo.mylan.k8s:8888 --push\n  \
    wincimg build ./legacy --kube --builder kube://wincimg-builder/builder \\\n      \
    --registry repo.mylan.k8s:8888 --push\n\n\
    Without --push and --output the image goes to oci:./NAME-TAG, or stays in the Docker daemon.\n\
    With --quiet, prints only the image's reference by digest."
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(super) struct Build {
    /// Registry to push to
    #[arg(long, value_name = "HOST[/PREFIX]")]
    registry: Option<RegistryPrefix>,
    /// Image name [default: the recipe's]
    #[arg(long, value_name = "NAME", value_parser = image_name, hide_short_help = true)]
    name: Option<String>,
    /// Image tag, or the whole HOST/NAME:TAG (repeatable) [default: the base's version, or latest]
    #[arg(short, long, value_name = "TAG", value_parser = tag_or_name)]
    tag: Vec<ImageName>,
    /// Push the image to the registry
    #[arg(long)]
    push: bool,
    /// Write the image to oci:DIR or docker-archive:FILE
    #[arg(short, long, value_name = "PLACE", value_parser = output_place, add = complete::places())]
    output: Option<Location>,
    /// Write the result to this file, with the keys of docker buildx
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "dry_run", hide_short_help = true)]
    metadata_file: Option<PathBuf>,
    /// Write the image ID to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "dry_run", hide_short_help = true)]
    iidfile: Option<PathBuf>,
    /// Add a label to the image (repeatable)
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = key_and_value, hide_short_help = true)]
    labels: Vec<(String, String)>,
    /// Add an annotation to the manifest of each image (repeatable)
    #[arg(long = "annotation", value_name = "KEY=VALUE", value_parser = annotation, hide_short_help = true)]
    annotations: Vec<(String, String)>,
    #[command(flatten)]
    tags: TagArgs,
    /// Build every recipe and Dockerfile below the folder IMAGE
    #[arg(long, conflicts_with_all = ["name", "output", "metadata_file", "iidfile", "file", "target", "stages"], hide_short_help = true)]
    all: bool,
    /// Publish the images of all hosts, or none
    #[arg(long, hide_short_help = true)]
    all_or_nothing: bool,
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
    #[arg(long, value_name = "IMAGE", value_parser = cached_image, conflicts_with = "no_cache", add = complete::images(), hide_short_help = true)]
    cache_from: Vec<Location>,
    /// Repository for the images below and above steps that run on Windows [default: the image's,
    /// with --push; else they stay in the daemon]
    #[arg(long, value_name = "REPOSITORY", value_parser = cache_repository, hide_short_help = true)]
    cache_to: Option<CacheRepository>,
    /// Manifest format [default: oci]
    #[arg(long, value_enum, value_name = "FORMAT", hide_short_help = true)]
    manifest_format: Option<ManifestFormat>,
    /// Output format
    #[arg(long, value_enum, default_value = "text", hide_short_help = true)]
    format: ReviewFormat,
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

/// Hides shared flags in `-h`, which lists those that most builds need.
fn for_short_help(arg: clap::Arg) -> clap::Arg {
    let is_rare = ["base_registry", "docker_host", "builder"].contains(&arg.get_id().as_str());
    if is_rare {
        arg.hide_short_help(true)
    } else {
        arg
    }
}

/// Parses an annotation of a manifest, as buildx does.
fn annotation(text: &str) -> Result<(String, String), String> {
    let (key, value) = key_and_value(text.strip_prefix("manifest:").unwrap_or(text))?;
    if key.contains(':') {
        let expected = "expected KEY=VALUE, which is for the manifest of each image";
        return Err(format!(
            "invalid annotation {}: {expected}",
            QuotedText(text)
        ));
    }
    Ok((key, value))
}

/// Build engine; without one, any that can build the image.
type EngineChoice = Option<Engine>;

fn engines() -> impl TypedValueParser<Value = EngineChoice> {
    let names = ["auto"].into_iter().chain(Engine::ALL.map(Engine::name));
    PossibleValuesParser::new(names).map(|name| Engine::from_name(&name))
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
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        if self.all {
            return self.run_all(session);
        }
        let (outcome, document) = self.build(session)?;
        if let Some(document) = document {
            write_result(None, |out| write_json(&document, out))?;
        }
        Ok(outcome)
    }

    /// Builds the images of one definition and prints them; in JSON, returns the result instead.
    fn build(&self, session: &Session) -> Result<(CommandOutcome, Option<Value>)> {
        let mut others = self.names()?;
        self.check_places(&others)?;
        self.daemon.check()?;
        let naming = others.remove(0);
        let arguments = self.daemon.arguments();
        let names = self.recipe.names_set(&arguments);
        let wanted = self.recipe.read(&self.dockerfile, &arguments, session);
        // What was read may be one of them.
        self.remove_results()?;
        let (mut request, hosts) = wanted?;
        request.noting = lock_command(typed_arguments());
        let created = source_date_epoch()?;
        request.engine = self.engine;
        request.is_shared = !self.tags.no_index;
        request.all_or_nothing = self.all_or_nothing;
        request.labels.clone_from(&self.labels);
        request.origin = Some(request.definition.origin());
        request.windows = self.windows_steps(&request, &naming);
        request.downloads = self.mode();
        request.options = self.engine_options(&request.definition, created);
        let ctx = self.recipe.online(session)?;
        let today = Zoned::now().date();
        let flag = self.flag_of_one();
        let pushed_to = naming.registry.clone().filter(|_| self.push);
        naming.note_tag(request.definition.name(), session);
        let name = naming.name.unwrap_or(request.definition.name().to_owned());
        let others = other_tags(&others, &name)?;
        let checked = others.iter().filter(|_| !self.tags.no_index);
        let written = self.written(&request.definition);
        let here = default_layouts(Path::new("."));
        request.definition.leave_out(written, &here);
        let target = DeliveryTarget {
            naming: self.tags.naming(name, naming.tag),
            destinations: destinations(pushed_to, self.output.as_ref(), naming.registry.as_ref()),
            named_after: naming.registry,
            manifest_format: self.manifest_format,
            existing: self.tags.existing(),
            other_tags: checked.cloned().collect(),
            documents: self
                .documents
                .to_options(request.definition.source(), names, created),
            review: &|tags| {
                flag.map_or(Ok(()), |flag| check_single(flag, tags))?;
                check_served(tags, &hosts.nodes, today, session)
            },
            permit: BuildPermit::default(),
        };
        registry_args::run(async {
            if self.dry_run {
                let rehearsing = self.rehearse(&request, &target, &ctx, &hosts.left_out, session);
                return Box::pin(rehearsing).await;
            }
            let mut delivered = build(&request, target, &ctx).await?;
            let tagged = self.add_names(&others, &mut delivered, &ctx, session).await;
            let printed = self.finish(&delivered, tagged, &hosts.left_out, session);
            Ok((report_failed(&delivered.failed, session), printed?))
        })
    }

    /// Prints the plans.
    async fn rehearse(
        &self,
        request: &BuildRequest,
        target: &DeliveryTarget<'_>,
        ctx: &BuildContext<'_>,
        left_out: &[String],
        session: &Session,
    ) -> Result<(CommandOutcome, Option<Value>)> {
        let planned = plans(request, Purpose::Rehearsal, Some(target), ctx).await?;
        if request.daemon_stages().is_some() {
            session.note("the daemon runs the instructions: the plan contains only the base");
        }
        let steps = request.windows.as_ref();
        let place = steps.and_then(|steps| steps.place(&request.options));
        let locations = planned.locations(target)?;
        let locations: Vec<String> = locations.iter().map(ToString::to_string).collect();
        let printed = self.print_plans(&planned, &locations, place.as_deref(), left_out)?;
        Ok((report_failed(&planned.unserved, session), printed))
    }

    fn engine_options(
        &self,
        definition: &BuildDefinition,
        created: Option<Timestamp>,
    ) -> EngineOptions {
        EngineOptions {
            compression: self.compression,
            created,
            reuse: (!self.daemon.no_cache).then(|| self.cache_from.clone()),
            docker_host: self.daemon.host(),
            cluster: self.recipe.cluster(),
            docker: self.daemon.options(),
            annotations: self.annotations.clone(),
            daemon_flags: self.daemon_flags(definition),
        }
    }

    /// The steps of a Dockerfile that a named daemon runs, if no engine was chosen.
    fn windows_steps(&self, request: &BuildRequest, naming: &ImageName) -> Option<WindowsSteps> {
        let is_hybrid = self.engine.is_none()
            && self.daemon.host().is_some()
            && request.definition.stages().is_some();
        is_hybrid.then(|| {
            let pushed_to = naming.registry.clone().filter(|_| self.push);
            let name = naming.name.as_deref().unwrap_or(request.definition.name());
            let of_image = pushed_to.map(|registry| CacheRepository {
                registry,
                name: name.to_owned(),
            });
            WindowsSteps {
                cache: self.cache_to.clone().or(of_image),
                is_of_image: self.cache_to.is_none(),
            }
        })
    }

    fn mode(&self) -> LockMode {
        match (self.dry_run, self.update_lock) {
            (true, _) => LockMode::Offline,
            (false, true) => LockMode::Noting,
            (false, false) => LockMode::Pinned,
        }
    }

    /// Registry, name and tag of the images, and those of their other names. A whole name as the
    /// tag takes precedence over defaults of a file, and cannot be combined with typed ones.
    fn names(&self) -> Result<Vec<ImageName>> {
        if self.tag.is_empty() {
            return Ok(vec![self.named(&ImageName::default())]);
        }
        let mut names: Vec<ImageName> = Vec::with_capacity(self.tag.len());
        for typed in &self.tag {
            if let Some((name, tag)) = typed.name_and_tag() {
                let registry_flag = typed.registry.as_ref().map(|_| "--registry");
                let mut flags = registry_flag.into_iter().chain(["--name"]);
                if let Some(flag) = flags.find(|flag| is_typed(flag)) {
                    let registry = typed.registry.as_ref();
                    let registry = registry.map_or_else(String::new, |it| format!("{it}/"));
                    let problem =
                        format!("{flag} cannot be combined with -t {registry}{name}:{tag}");
                    return Err(Failure::usage(problem).hint(format!("remove {flag}")));
                }
            }
            let name = self.named(typed);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn named(&self, typed: &ImageName) -> ImageName {
        ImageName {
            registry: typed.registry.clone().or(self.registry.clone()),
            name: typed.name.clone().or(self.name.clone()),
            tag: typed.tag.clone(),
        }
    }

    /// What this build writes. An output in a folder of a recipe is refused.
    fn written(&self, definition: &BuildDefinition) -> Vec<PathBuf> {
        let output = match &self.output {
            Some(Location::Layout { dir, .. }) => Some(dir),
            Some(Location::Archive { file, .. }) => Some(file),
            Some(Location::Registry(_)) | None => None,
        };
        let output = output.filter(|_| definition.stages().is_some());
        let files = output.into_iter().chain(&self.metadata_file);
        files.chain(&self.iidfile).cloned().collect()
    }

    /// Rejects invalid destinations before any network access.
    fn check_places(&self, names: &[ImageName]) -> Result<()> {
        if names.len() > 1 && !self.push {
            let problem = "several names require --push";
            return Err(Failure::usage(problem).hint(
                "add --push, or add tags to what was built: `wincimg image tag oci:DIR TAG`",
            ));
        }
        if self.engine == Some(Engine::Docker) && self.cache_to.is_some() {
            let problem = "--cache-to requires the direct engine: Docker has its own cache";
            return Err(Failure::usage(problem).hint("remove --cache-to"));
        }
        for name in names.iter().filter(|_| self.push) {
            let Some(registry) = &name.registry else {
                let problem = "--push requires a registry";
                return Err(Failure::usage(problem)
                    .hint("add --registry HOST[:PORT][/PREFIX], or name it in -t HOST/NAME:TAG"));
            };
            if let Err(error) = registry.check_for_pushes() {
                return Err(Failure::usage(error).hint("name the user: --registry docker.io/USER"));
            }
        }
        let files = self.metadata_file.iter().chain(&self.iidfile);
        for file in files.clone() {
            if !is_created(folder_of(file), self.output.as_ref()) {
                check_file(file)?;
            }
        }
        let archive = match &self.output {
            Some(Location::Archive { file, .. }) => Some(file),
            _ => None,
        };
        check_distinct(None, files.clone().chain(archive))?;
        let file = self.dockerfile.file.as_deref();
        check_inputs(files.chain(archive), Path::new(&self.recipe.image), file)?;
        if let (Some(output), true) = (&self.output, self.tags.join && !self.push) {
            check_joined(output)?;
        }
        check_output(self.output.as_ref(), "--registry … --push")
    }

    /// Removes the files about an earlier image: a script that goes on after an error must not read
    /// them. Others may be what the build reads.
    fn remove_results(&self) -> Result<()> {
        let mut files = self.metadata_file.iter().chain(&self.iidfile);
        files.try_for_each(|file| remove_result(file, is_metadata))
    }

    fn print_plans(
        &self,
        planned: &PlannedBuild<'_>,
        locations: &[String],
        place: Option<&str>,
        left_out: &[String],
    ) -> Result<Option<Value>> {
        let images = &planned.images;
        let contents = images.iter().map(|image| listing(&image.plan));
        let contents = contents.collect::<Result<Vec<_>, _>>()?;
        let plans = images.iter().zip(&contents);
        let worker = self.daemon.worker();
        if self.format == ReviewFormat::Json {
            let plans: Vec<_> = plans
                .map(|(image, content)| {
                    let more = json!({
                        "content": content.files,
                        "deleted": content.deleted,
                        "steps": image.stages.placements,
                        "step_images": place,
                        "architecture": image.base.image.config().architecture,
                        "left_out": image.stages.left_out,
                    });
                    extended(&image.plan, more)
                })
                .collect();
            return Ok(Some(json!({
                "plans": plans, "destinations": locations, "failed": planned.unserved,
                "left_out": left_out, "worker": worker,
            })));
        }
        write_result(None, |out| {
            if self.format == ReviewFormat::Gitlab {
                return write_annotations(self.format, &[], out);
            }
            for (index, (image, content)) in plans.enumerate() {
                if index > 0 {
                    writeln!(out)?;
                }
                write_steps(&image.stages.placements, worker.as_ref(), place, out)?;
                let architecture = &image.base.image.config().architecture;
                if architecture != Architecture::Amd64.name() {
                    writeln!(out, "platform    windows/{}", UntrustedText(architecture))?;
                }
                write!(out, "{}", image.plan)?;
                write_content(&content.files, out)?;
                write_paths("deletes", &content.deleted, out)?;
                write_paths("left out", &image.stages.left_out, out)?;
            }
            if images.len() > 1 && !locations.is_empty() {
                writeln!(out)?;
            }
            write_paths("destination", locations, out)
        })?;
        Ok(None)
    }

    /// The typed flags that only a daemon uses; those of a file of defaults are for all builds.
    fn daemon_flags(&self, definition: &BuildDefinition) -> Vec<&'static str> {
        let flags = self.daemon.flags(definition.recipe().is_some());
        flags.filter(|flag| is_typed(flag)).collect()
    }

    /// Writes the files about the delivered images and prints the images, also if a file or another
    /// name fails: they are published by now. In JSON, returns the result instead.
    fn finish(
        &self,
        delivered: &DeliveryReport,
        named: Result<()>,
        left_out: &[String],
        session: &Session,
    ) -> Result<Option<Value>> {
        let files = self.write_files(delivered);
        let written = named.and(files);
        let printed = self.print(delivered, left_out, session)?;
        if let (Err(_), Some(document)) = (&written, &printed) {
            write_result(None, |out| write_json(document, out))?;
        }
        written.map(|()| printed)
    }

    /// The flag that is about one image.
    fn flag_of_one(&self) -> Option<&'static str> {
        let metadata = self.metadata_file.as_ref().map(|_| "--metadata-file");
        let other_name = (self.tag.len() > 1).then_some("a second --tag");
        metadata
            .or(self.iidfile.as_ref().map(|_| "--iidfile"))
            .or(other_name)
    }

    fn write_files(&self, delivered: &DeliveryReport) -> Result<()> {
        // All hosts may lack an image.
        let Some(id) = image_id(delivered) else {
            return Ok(());
        };
        if let Some(file) = &self.metadata_file {
            write_result(Some(file), |out| write_json(&metadata(delivered), out))?;
        }
        if let Some(file) = &self.iidfile {
            write_result(Some(file), |out| write!(out, "{id}"))?;
        }
        Ok(())
    }

    /// Prints the delivered images.
    fn print(
        &self,
        delivered: &DeliveryReport,
        left_out: &[String],
        session: &Session,
    ) -> Result<Option<Value>> {
        if self.format == ReviewFormat::Json {
            let more = json!({"left_out": left_out});
            return Ok(Some(extended(delivered, more)));
        }
        let mut images = delivered.images.iter();
        let is_of_daemon = images.any(|image| image.engine == Engine::Docker.name());
        let kept = if is_of_daemon && !self.push && self.output.is_none() {
            "kept in the Docker daemon"
        } else {
            "written"
        };
        write_result(None, |out| match self.format {
            ReviewFormat::Gitlab => write_annotations(self.format, &[], out),
            _ if session.quiet => write_references(delivered, out),
            _ => write_text(delivered, kept, out),
        })?;
        Ok(None)
    }
}

/// Reports the hosts without an image; the answer is no if there are any.
pub(super) fn report_failed(failed: &[UnservedHost], session: &Session) -> CommandOutcome {
    for UnservedHost { host, error } in failed {
        let failure = Failure::no(format!("no image for host {host}: {}", error.problem));
        failure.hint_if(error.hint.as_ref()).report(session.colour);
    }
    failed.is_empty().into()
}

/// Returns true if the flag is in this run's arguments, and not only in a file of defaults.
pub(super) fn is_typed(flag: &str) -> bool {
    typed_arguments().any(|argument| {
        let rest = argument.strip_prefix(flag);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })
}

/// Timestamp of new content, from `SOURCE_DATE_EPOCH` as for other reproducible builds.
pub(super) fn source_date_epoch() -> Result<Option<Timestamp>> {
    let Some(text) = std::env::var_os("SOURCE_DATE_EPOCH") else {
        return Ok(None);
    };
    let text = text.to_string_lossy();
    text.parse::<u32>()
        .ok()
        .and_then(|seconds| Timestamp::from_second(seconds.into()).ok())
        .map(Some)
        .ok_or_else(|| {
            Failure::usage(format!("invalid SOURCE_DATE_EPOCH {text:?}"))
                .hint("set it to seconds since 1970, or unset it")
        })
}
