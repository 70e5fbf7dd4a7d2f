//! `wincimg image update`: rebases an image on the base that fits its hosts, without its sources.

mod text;

use wincimg_engine::build::BuildContext;
use wincimg_engine::compat_check::check_served;
use wincimg_engine::delivery::{
    AttachmentOptions, BuildPermit, DeliveryReport, DeliveryTarget, TagValidator,
};
use wincimg_engine::error::search;
use wincimg_engine::notice::report_searched_tags;
use wincimg_engine::unserved::{UnservedHost, repeated_without_index};
use wincimg_engine::update;
use wincimg_engine::update::{BaseSetting, UpdatePlan, UpdateRequest};
use wincimg_inspect::bases::warning;
use wincimg_oci::store::LocationError;
use wincimg_windows::compat::Architecture;

use self::text::{write_hint, write_plan};
use super::base::MatchArgs;
use super::build::destinations::{check_output, destinations, output_place};
use super::build::image_name::TagArgs;
use super::build::text::write_text;
use super::build::{image_tag, report_failed, source_date_epoch};
use super::document_args::DocumentArgs;
use crate::cli::prelude::*;

/// Rebase an image onto its current base, without its sources
///
/// The image's own layers are kept. They are compared with the old and the new base; if a layer
/// hides or repeats something that an update changed, the image is left unchanged, and the layer
/// and the file or key are named.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg image update repo.mylan.k8s:8888/app:1.4 --nodes nodes.json --push\n  \
    wincimg image update repo.mylan.k8s:8888/app:1.4 --host-build 17763.1158 \\\n      \
    --tag 1.4-may --push\n  \
    wincimg image update repo.mylan.k8s:8888/app:1.4 --nodes nodes.json \\\n      \
    --push --sbom=spdx\n  \
    wincimg image update repo.mylan.k8s:8888/app:1.4 --nodes nodes.json --check\n\n\
    Without --push and --output, prints what would be pushed.")]
pub(super) struct Update {
    /// Image in a registry
    #[arg(value_name = "IMAGE")]
    image: String,
    #[command(flatten)]
    hosts: HostArgs,
    #[command(flatten)]
    matched: MatchArgs,
    /// Base of the image, such as nanoserver, dotnet/aspnet:8.0 or a reference [default: recorded
    /// in the image, or recognised by its lowest layers]
    #[arg(long, value_name = "BASE", add = complete::bases())]
    base: Option<String>,
    /// Tag of the new image [default: the image's own]
    #[arg(short, long, value_name = "TAG", value_parser = image_tag)]
    tag: Option<String>,
    /// Push to the image's repository
    #[arg(long)]
    push: bool,
    /// Write the image to oci:DIR or docker-archive:FILE
    #[arg(short, long, value_name = "PLACE", value_parser = output_place, add = complete::places())]
    output: Option<Location>,
    /// Only check whether the image is up to date; exit code 1 if it is not
    #[arg(long, conflicts_with_all = ["push", "output"])]
    check: bool,
    #[command(flatten)]
    tags: TagArgs,
    /// Publish the images of all hosts, or none
    #[arg(long, hide_short_help = true)]
    all_or_nothing: bool,
    /// Manifest format in the registry [default: the image's]
    #[arg(long, value_enum, value_name = "FORMAT", hide_short_help = true)]
    manifest_format: Option<ManifestFormat>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    connection: BaseRegistryArgs,
    // The last one, because a help heading also applies to the arguments after it.
    #[command(flatten)]
    documents: DocumentArgs,
}

impl Update {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let image = self.image()?;
        self.check_base()?;
        let tag = self.target_tag(&image)?;
        check_output(self.output.as_ref(), "--push")?;
        let hosts = self.hosts.builds_of_images(session)?;
        let hosts = hosts.on(Architecture::default(), session)?;
        let targets = hosts.targets();
        let ctx = online(&self.connection.registry, session)?;
        let request = UpdateRequest {
            image: &image,
            hosts: &targets,
            base: self.base.as_deref(),
            base_setting: BaseSetting::Flag,
            base_registry: &self.connection.base_registry,
            wanted: self.matched.wanted,
            is_shared: !self.tags.no_index,
            reads_bases: !self.check,
        };
        let work = async {
            let planning = self.plan(&request, &tag, session, &ctx);
            let (updates, failed) = planning.await?;
            let print = |updates: Option<&UpdatePlan>, delivered: DeliveryReport| {
                self.print(&image, updates, &delivered, &hosts.left_out)?;
                Ok(report_failed(&delivered.failed, session))
            };
            let none = DeliveryReport {
                failed,
                ..DeliveryReport::default()
            };
            let Some(updates) = updates else {
                return print(None, none);
            };
            let plan = |answer| match print(Some(&updates), none.clone())? {
                CommandOutcome::Yes => Ok(answer),
                failed => Ok(failed),
            };
            if self.check || updates.are_refused() || updates.planned.is_empty() {
                return plan(updates.are_up_to_date().into());
            }
            let created = source_date_epoch()?;
            let documents = self.documents.to_options(None, Vec::new(), created);
            // The image, and so its provenance, would be the same; an SBOM may be missing.
            if self.is_done(&updates, &image, &tag) && documents.bills.is_empty() {
                return plan(CommandOutcome::Yes);
            }
            if !self.push && self.output.is_none() {
                session.note("nothing is pushed without --push");
                return plan(CommandOutcome::Yes);
            }
            let today = Zoned::now().date();
            let review: &TagValidator<'_> =
                &|tags| check_served(tags, &hosts.nodes, today, session);
            let target = self.target(&image, tag.clone(), documents, review)?;
            let mut delivered = update::deliver(&updates, &image, target, &ctx).await?;
            delivered.failed.extend(none.failed);
            print(Some(&updates), delivered)
        };
        registry_args::run(work)
    }

    /// Plans the updates, and prints the warnings.
    async fn plan(
        &self,
        request: &UpdateRequest<'_>,
        tag: &str,
        session: &Session,
        ctx: &BuildContext<'_>,
    ) -> Result<(Option<UpdatePlan>, Vec<UnservedHost>)> {
        // One host alone has nothing to continue with.
        let is_whole = self.all_or_nothing || request.hosts.len() == 1;
        let command = &repeated_without_index;
        let planned = update::plan_served(request, tag, is_whole, command, ctx).await;
        for warning in ctx.library.take_warnings() {
            session.warn(warning);
        }
        let planned = planned.inspect_err(|error| {
            if let Some(error) = search(error) {
                report_searched_tags(error, session);
            }
        })?;
        if let (Some(updates), _) = &planned {
            warn(updates, session);
        }
        Ok(planned)
    }

    /// Returns true if the tag has all images already, and nothing else is to be written.
    fn is_done(&self, updates: &UpdatePlan, image: &Reference, tag: &str) -> bool {
        let is_same_tag = Some(tag) == image.tag() && image.digest().is_none();
        updates.are_up_to_date() && is_same_tag && self.output.is_none()
    }

    fn target<'r>(
        &self,
        image: &Reference,
        tag: String,
        documents: AttachmentOptions,
        review: &'r TagValidator<'r>,
    ) -> Result<DeliveryTarget<'r>> {
        let name = image.repository().to_owned();
        Ok(DeliveryTarget {
            naming: self.tags.naming(name, Some(tag)),
            destinations: destinations(self.prefix(image)?, self.output.as_ref(), None),
            named_after: None,
            manifest_format: self.manifest_format,
            existing: self.tags.existing(),
            other_tags: Vec::new(),
            documents,
            review,
            permit: BuildPermit::default(),
        })
    }

    fn image(&self) -> Result<Reference> {
        match parse_location(&self.image) {
            Ok(Location::Registry(reference)) => Ok(reference),
            Ok(place) => {
                let problem = format!("cannot update {place}: it is not in a registry");
                Err(Failure::usage(problem).hint("push it first: wincimg push PLACE HOST/NAME:TAG"))
            }
            Err(error @ LocationError::Meant { .. }) => Err(Failure::usage(error)),
            Err(error) => Err(error.into()),
        }
    }

    /// Refuses a base on this machine: newer ones are looked for in its repository.
    fn check_base(&self) -> Result<()> {
        let base = self.base.as_deref();
        let place = base.and_then(|base| parse_source(base).ok());
        match place {
            Some(place) if !matches!(place.stored(), Some(Location::Registry(_))) => {
                let problem = format!("--base {place} is not in a registry");
                Err(Failure::usage(problem).hint(
                    "name the repository of the base, in which newer ones are looked for: \
                     --base nanoserver or --base HOST/NAME",
                ))
            }
            _ => Ok(()),
        }
    }

    fn target_tag(&self, image: &Reference) -> Result<String> {
        let own = image.tag().filter(|_| image.digest().is_none());
        match (&self.tag, own) {
            (Some(tag), _) => Ok(tag.clone()),
            (None, Some(tag)) => Ok(tag.to_owned()),
            (None, None) if self.push || self.output.is_some() => {
                let problem = "an image with a digest has no tag to update";
                Err(Failure::usage(problem).hint("set the tag of the new image with --tag"))
            }
            (None, None) => Ok("latest".to_owned()),
        }
    }

    /// Registry that the new image is pushed to.
    fn prefix(&self, image: &Reference) -> Result<Option<RegistryPrefix>> {
        let prefix = self
            .push
            .then(|| image.registry().parse::<RegistryPrefix>());
        let prefix = prefix.transpose();
        prefix.map_err(Failure::usage)
    }

    fn print(
        &self,
        image: &Reference,
        updates: Option<&UpdatePlan>,
        delivered: &DeliveryReport,
        left_out: &[String],
    ) -> Result<CommandOutcome> {
        let answer = || {
            let reports = updates.map(reports).unwrap_or_default();
            extended(delivered, json!({"updates": reports, "left_out": left_out}))
        };
        self.format.print(answer, |out| match updates {
            Some(updates) if delivered.images.is_empty() => {
                write_plan(image, updates, out)?;
                write_hint(updates, out)
            }
            Some(_) => write_text(delivered, "written", out),
            None => Ok(()),
        })
    }
}

fn reports(updates: &UpdatePlan) -> Vec<Value> {
    let updates = updates.planned.iter();
    let reports = updates.map(|update| {
        let base = &update.planned.base;
        json!({
            "host_build": update.planned.host_build(),
            "status": update.verdict.name(),
            "image": update.from.digest(),
            "on": update.on,
            "base": {
                "reference": base.label(),
                "digest": base.digest(),
                "os_version": base.version_text(),
                "match": base.match_name(),
            },
            "layers": update.own,
            "obstacles": update.verdict.obstacles(),
        })
    });
    reports.collect()
}

/// Warnings about the bases, each once.
fn warn(updates: &UpdatePlan, session: &Session) {
    let mut reported: Vec<String> = Vec::new();
    for update in &updates.planned {
        let planned = &update.planned;
        let aside = planned.base.set_aside.iter().map(ToString::to_string);
        let version = planned.base.os_version;
        let host = planned.host.as_ref().map(|host| host.build);
        let speaks_against = version
            .zip(host)
            .and_then(|(version, host)| warning(version, host));
        for text in aside.chain(speaks_against) {
            if !reported.contains(&text) {
                session.warn(&text);
                reported.push(text);
            }
        }
    }
}
