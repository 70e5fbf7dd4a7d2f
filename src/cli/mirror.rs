//! `wincimg image mirror`: copies images with all layers to another registry.

use futures_util::future::join_all;
use wincimg_engine::delivery::check_overwrite;
use wincimg_engine::notice::report_searched_tags;
use wincimg_http::Transient as _;
use wincimg_inspect::bases::{BaseName, BaseRepository, NAMES, Resolution};
use wincimg_inspect::facts_provider::MirrorFactsCollector;
use wincimg_oci::copy::{BlobAction, CopyOptions, CopyPlan, CopyReport, ReferrerOutcome};
use wincimg_oci::mirror::{
    CompanionOutcome, MirrorHook, MirrorOptions, MirrorReport, MirrorSource, MirroredImage, mirror,
    mirrored_name, mirrored_names,
};
use wincimg_oci::prefix::PrefixError;
use wincimg_oci::reference::repository_of;
use wincimg_oci::remote::RegistryError;
use wincimg_oci::store::{LocationError, StoreError, is_local_image};

use super::base::MatchArgs;
use super::copy::{not_copied, report_referrers};
use crate::cli::prelude::*;
use wincimg_oci::document::Digest;

/// Copy images with all layers to your own registry
#[derive(Debug, Args)]
#[command(
    mut_arg("wanted", |arg| arg.hide_short_help(false)),
    after_help = "Examples:\n  \
    wincimg image mirror mcr.microsoft.com/windows/nanoserver:ltsc2019 \\\n      \
    --to repo.mylan.k8s:9999/mcr.microsoft.com\n  \
    kubectl get nodes -o json |\n      \
    wincimg image mirror base:nanoserver base:aspnet --nodes - \\\n      \
    --to repo.mylan.k8s:9999\n\n\
    Foreign layers are fetched from their URLs and become ordinary layers. Existing content is not\n\
    sent again; after an interruption, run the same command again."
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(super) struct Mirror {
    /// Image to copy, or base:NAME for the base image of each host
    #[arg(value_name = "IMAGE", required = true, add = complete::images_to_mirror())]
    images: Vec<String>,
    /// Target registry; images keep their path and tag below it
    #[arg(long, value_name = "HOST[/PREFIX]", value_parser = target_registry)]
    to: RegistryPrefix,
    #[command(flatten)]
    hosts: HostArgs,
    #[command(flatten)]
    matched: MatchArgs,
    /// Copy only images of this platform from an index (repeatable)
    #[arg(
        long,
        value_name = "OS/ARCH[:OSVERSION]",
        default_value = "windows/amd64"
    )]
    platform: Vec<PlatformFilter>,
    /// Copy the index with all its images
    #[arg(long, conflicts_with = "platform")]
    all_platforms: bool,
    /// Number of layers copied in parallel
    #[arg(long, value_name = "N", default_value_t = MirrorOptions::default().jobs, value_parser = read_jobs, hide_short_help = true)]
    jobs: usize,
    /// Manifest format in the target registry [default: the source's]
    #[arg(long, value_enum, value_name = "FORMAT", hide_short_help = true)]
    manifest_format: Option<ManifestFormat>,
    /// Replace a tag even if that removes images of other platforms or builds, or signatures
    #[arg(long, hide_short_help = true)]
    replace: bool,
    /// Do not index the files and registry keys of Windows images
    #[arg(long, hide_short_help = true)]
    no_facts: bool,
    /// Do not copy attached artifacts: SBOMs, provenance, signatures
    #[arg(long, hide_short_help = true)]
    no_referrers: bool,
    /// Copy nothing unless every base image exists
    #[arg(long, hide_short_help = true)]
    all_or_nothing: bool,
    /// Print what would be copied, with sizes, without copying
    #[arg(long)]
    dry_run: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    connection: BaseRegistryArgs,
}

fn target_registry(text: &str) -> Result<RegistryPrefix, String> {
    if is_local_image(text) {
        return Err(format!(
            "expected a registry; an image is written to a folder or file with `{} --ordinary-layers`",
            command_line(&["wincimg", "copy", "IMAGE", text])
        ));
    }
    text.parse().map_err(|error: PrefixError| error.to_string())
}

fn read_jobs(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(jobs @ 1..=64) => Ok(jobs),
        _ => Err("expected a number from 1 to 64".to_owned()),
    }
}

/// Parses the name of an image in a registry. A local path of other commands would be an image on
/// Docker Hub here, which is never intended.
fn in_a_registry(image: &str) -> Result<Reference> {
    let not_there = |place: &str| {
        let problem = format!("cannot mirror {place}: it is not in a registry");
        Failure::usage(problem).hint(
            "push a build with `wincimg build … --registry … --push`, or a local image with \
             `wincimg push PLACE HOST/NAME:TAG --ordinary-layers`",
        )
    };
    match parse_location(image) {
        Ok(Location::Registry(reference)) => Ok(reference),
        Ok(place) => Err(not_there(&place.to_string())),
        Err(error @ LocationError::Meant { .. }) => {
            let name = image.split(':').next().unwrap_or_default();
            if !NAMES.iter().any(|(short, _)| *short == name) {
                return Err(not_there(image));
            }
            Err(Failure::usage(error).hint(format!(
                "to select the tag for each host, use base:{name} with --host-build 17763.973 or \
                 --nodes FILE"
            )))
        }
        Err(error) => Err(Failure::usage(error)),
    }
}

enum MirrorImage {
    Image(Reference),
    /// The base image for each host, from this repository.
    Base(BaseName),
}

impl Mirror {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let wanted = self.wanted_images(session)?;
        let progress = display(session);
        let registry = self.connection.registry.connect_with(progress.clone())?;
        let mut options = MirrorOptions {
            platforms: self.platforms(),
            jobs: self.jobs,
            dry_run: self.dry_run,
            manifest_format: self.manifest_format,
            replace: self.replace,
            checked: HashMap::new(),
            with_referrers: !self.no_referrers,
        };
        let library = session.cache.facts_provider(&registry, &progress);
        let facts = (!self.no_facts).then(|| {
            let maker = MirrorFactsCollector::new(library.clone());
            Arc::new(maker) as Arc<dyn MirrorHook>
        });
        let hosts: Vec<HostBuild> = if self.hosts.is_given() {
            let builds = self.hosts.builds_of_images(session)?.all();
            builds.into_iter().collect()
        } else {
            Vec::new()
        };
        let (report, missing) = registry_args::run(async {
            let resolving = self.resolve(&registry, &wanted, &hosts, session, &mut options.checked);
            let (images, missing) = resolving.await?;
            let mirroring = mirror(&registry, &images, &self.to, &options, facts, progress);
            Ok((mirroring.await?, missing))
        })?;
        for warning in library.take_warnings() {
            session.warn(warning);
        }
        for recorded in report.images.iter().flat_map(|image| &image.facts) {
            if let Some(problem) = &recorded.problem {
                session.warn(format_args!(
                    "cannot attach the index of {}: {problem}",
                    recorded.image
                ));
            }
        }
        let beside = report.images.iter().flat_map(|image| &image.beside);
        let failed = report_referrers(beside, session);
        let lacking: Vec<Value> = missing.iter().map(MissingBase::to_json).collect();
        let answer = || extended(&report, json!({"missing": lacking}));
        self.format.print(answer, |out| write_text(&report, out))?;
        conclude(report, missing, failed, session)
    }

    fn platforms(&self) -> Vec<PlatformFilter> {
        if self.all_platforms {
            Vec::new()
        } else {
            self.platform.clone()
        }
    }

    fn wanted_images(&self, session: &Session) -> Result<Vec<MirrorImage>> {
        let mut wanted = Vec::with_capacity(self.images.len());
        for image in &self.images {
            wanted.push(match image.strip_prefix("base:") {
                Some(name) => {
                    let repository = self.connection.base_registry.repository(name);
                    MirrorImage::Base(repository?)
                }
                None => MirrorImage::Image(in_a_registry(image)?),
            });
        }
        let has_base = wanted
            .iter()
            .any(|image| matches!(image, MirrorImage::Base(_)));
        if has_base && !self.hosts.is_given() {
            return Err(Failure::usage("base:NAME requires a host")
                .hint("add --kube, --nodes FILE or --host-build 17763.973"));
        }
        if !has_base && self.hosts.is_given() {
            session.warn("the hosts have no effect: only base:NAME depends on them");
        }
        Ok(wanted)
    }

    /// The images to copy, and the base images that do not exist: one for each build of the hosts.
    /// Adds the digests of the checked tags.
    async fn resolve(
        &self,
        registry: &RegistryClient,
        wanted: &[MirrorImage],
        hosts: &[HostBuild],
        session: &Session,
        checked: &mut HashMap<String, Option<Digest>>,
    ) -> Result<(Vec<MirrorSource>, Vec<MissingBase>)> {
        let (mut images, mut missing) = (Vec::new(), Vec::new());
        for image in wanted {
            let repository = match image {
                MirrorImage::Image(reference) => {
                    images.push(MirrorSource::from(reference.clone()));
                    continue;
                }
                MirrorImage::Base(repository) => repository,
            };
            let resolving = self.resolve_base(registry, repository, hosts, session);
            for base in resolving.await {
                match base {
                    Ok(image) => images.push(image),
                    Err(base) => missing.push(base),
                }
            }
        }
        mirrored_names(&images, &self.to)?;
        if !self.replace {
            let checks = images.iter().map(|image| self.check_tag(registry, image));
            let checks = join_all(checks).await;
            let checks = std::mem::take(&mut images).into_iter().zip(checks);
            for (image, check) in checks {
                match check {
                    Ok(tag) => {
                        checked.extend(tag);
                        images.push(image);
                    }
                    Err(failure) => missing.push(MissingBase {
                        name: image.image.to_string(),
                        host: None,
                        failure,
                    }),
                }
            }
        }
        if images.is_empty() || self.all_or_nothing {
            let several = missing.len() > 1;
            let failures = missing.drain(..).map(|it| it.failure).collect();
            if let Some(last) = Failure::report_all_but_last(failures, session.colour) {
                return Err(if several && self.all_or_nothing {
                    last.context("nothing is copied, because of --all-or-nothing")
                } else {
                    last
                });
            }
        }
        Ok((images, missing))
    }

    /// The base image for each host.
    async fn resolve_base(
        &self,
        registry: &RegistryClient,
        name: &BaseName,
        hosts: &[HostBuild],
        session: &Session,
    ) -> Vec<Result<MirrorSource, MissingBase>> {
        let opening = async {
            let bases = BaseRepository::open(registry, name, hosts).await?;
            bases.with_single_flavour(hosts, self.matched.wanted)
        };
        let bases = match opening.await {
            Ok(bases) => bases,
            Err(error) => return vec![Err(MissingBase::new(name, None, error.into()))],
        };
        let mut resolved = Vec::with_capacity(hosts.len());
        for host in hosts {
            let found = bases.resolve(*host, self.matched.wanted).await;
            if let Err(error) = &found {
                report_searched_tags(error, session);
            }
            resolved.push(match found {
                Ok(found) => Ok(self.base_source(report_found(&found, *host, &bases, session))),
                Err(error) => Err(MissingBase::new(name, Some(*host), error.into())),
            });
        }
        resolved
    }

    /// A base image, whose path below the registry of bases is the one below the target: the target
    /// is a registry of bases then.
    fn base_source(&self, image: Reference) -> MirrorSource {
        let path = self.connection.base_registry.0.path_below(&image);
        let path = path.unwrap_or(image.repository()).to_owned();
        MirrorSource { image, path }
    }

    /// Rejects an image that would remove entries of its tag in the mirror, as another `--platform`
    /// does, and returns the tag with its digest. A mirror that cannot be reached is an error here,
    /// because past the time limit the source would be blamed. Other problems are those of mirroring
    /// the image.
    async fn check_tag(
        &self,
        registry: &RegistryClient,
        source: &MirrorSource,
    ) -> Result<Option<(String, Option<Digest>)>> {
        let target = mirrored_name(&self.to, source)?;
        let image = &source.image;
        let repository = registry.repository(&target);
        let Some(tag) = target.tag() else {
            return Ok(None);
        };
        let name = format!("{repository}:{tag}");
        let standing = match repository.head_manifest(tag).await.map_err(Failure::from) {
            Ok(Some(found)) => found.digest,
            Ok(None) => return Ok(Some((name, None))),
            Err(failure) if failure.is_unreachable() || failure.is_time_limit() => {
                return Err(failure);
            }
            Err(_) => return Ok(None),
        };
        let standing = Some((name, Some(standing)));
        let source = Source::Registry(registry.repository(image));
        let options = CopyOptions {
            platforms: self.platforms(),
            ..CopyOptions::default()
        };
        let wanted = image.digest().or(image.tag());
        let Ok(plan) = CopyPlan::new(&source, wanted, &options).await else {
            return Ok(standing);
        };
        let target = Location::Registry(target.clone());
        let checked = check_overwrite(&target, &source, &plan, registry).await;
        checked.map_err(|error| {
            Failure::from(error).hint(
                "mirror them, too, with --platform or --all-platforms, or add --replace to \
                 remove them",
            )
        })?;
        Ok(standing)
    }
}

/// An image that is not mirrored: a base that does not exist for a host, or cannot be listed for
/// any, or an image that would remove others.
struct MissingBase {
    name: String,
    host: Option<HostBuild>,
    failure: Failure,
}

impl MissingBase {
    fn new(name: &BaseName, host: Option<HostBuild>, failure: Failure) -> Self {
        let name = repository_of(&name.repository);
        Self {
            name,
            host,
            failure,
        }
    }

    fn to_json(&self) -> Value {
        let document = self.failure.document();
        json!({
            "image": self.name,
            "host_build": self.host.map(|host| host.to_string()),
            "problem": self.failure.in_one_line(),
            "code": document["code"],
            "hint": document["hint"],
        })
    }
}

/// Reports the base image found for a host, and returns its reference.
fn report_found(
    found: &Resolution,
    host: HostBuild,
    bases: &BaseRepository,
    session: &Session,
) -> Reference {
    for tag in &found.set_aside {
        session.warn(tag);
    }
    if let Some(warning) = found.base.warning(host) {
        session.warn(warning);
    }
    let tag = found.base.reference.tag().unwrap_or_default();
    session.note(format_args!("host {host}: {bases}:{tag}"));
    found.base.published_reference()
}

/// Reports failures, with the number of attached documents that were not copied; the other images
/// are mirrored.
fn conclude(
    report: MirrorReport,
    missing: Vec<MissingBase>,
    failed: usize,
    session: &Session,
) -> Result<CommandOutcome> {
    let total = report.images.len() + missing.len();
    let errors = || report.images.iter().filter_map(|it| it.error.as_ref());
    let is_answered = errors().next().is_none() && failed == 0;
    let is_worth_repeating = failed > 0
        || errors().any(may_pass)
        || missing.iter().any(|it| it.failure.is_unreachable());
    let failures = report.images.into_iter().filter_map(|image| {
        let error = image.error?;
        Some(Failure::from(error).context(format!("cannot mirror {}", image.source)))
    });
    let mut failures: Vec<Failure> = failures.collect();
    failures.extend(missing.into_iter().map(|missing| {
        let what = match missing.host {
            Some(host) => format!("cannot mirror {} for host {host}", missing.name),
            None => format!("cannot mirror {}", missing.name),
        };
        missing.failure.context(what)
    }));
    match (failures.pop(), failures.len()) {
        (None, _) if failed > 0 => Err(not_copied("mirrored all images", failed)),
        (None, _) => Ok(CommandOutcome::Yes),
        (Some(only), 0) => Err(only),
        (Some(last), others) => {
            for failure in failures {
                failure.report(session.colour);
            }
            last.report(session.colour);
            let problem = format!("failed to mirror {} of {total} images", others + 1);
            Err(match (is_answered, is_worth_repeating) {
                (true, _) => Failure::no(problem),
                (false, false) => Failure::operation(problem),
                (false, true) => Failure::operation(problem)
                    .hint("run the same command again: only these images are copied"),
            })
        }
    }
}

/// Returns true if the same copy may succeed later: a registry could not be reached, or was busy.
fn may_pass(error: &StoreError) -> bool {
    match error {
        StoreError::Registry(error) => {
            matches!(error, RegistryError::GaveUp { .. }) || error.is_transient()
        }
        StoreError::Blob { .. } => true,
        _ => false,
    }
}

fn write_text(report: &MirrorReport, out: &mut dyn Write) -> io::Result<()> {
    for image in &report.images {
        if let Some(copied) = &image.copied {
            write_image(image, copied, report.dry_run, out)?;
        }
    }
    let totals = &report.totals;
    let failed = usize::try_from(totals.failed_images).unwrap_or(usize::MAX);
    if failed == report.images.len() {
        // Zeros would look like success; the errors follow.
        return Ok(());
    }
    if failed > 0 {
        write!(out, "failed: {failed} of {}; ", report.images.len())?;
    }
    let copied = if report.dry_run { "to copy" } else { "copied" };
    let mounted = if report.dry_run {
        "to mount"
    } else {
        "mounted"
    };
    writeln!(
        out,
        "{copied}: {} in {} blob{}; {mounted}: {} in {}; already present: {} in {}",
        BinaryBytes(totals.copied_bytes),
        totals.copied_blobs,
        if totals.copied_blobs == 1 { "" } else { "s" },
        BinaryBytes(totals.mounted_bytes),
        totals.mounted_blobs,
        BinaryBytes(totals.present_bytes),
        totals.present_blobs,
    )
}

fn write_image(
    image: &MirroredImage,
    copied: &CopyReport,
    dry_run: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let state = match (copied.up_to_date, dry_run) {
        (true, _) => "up to date",
        (false, true) => "would be published",
        (false, false) => "published",
    };
    let (source, target) = (UntrustedText(&image.source), UntrustedText(&image.target));
    writeln!(out, "{source} -> {target}")?;
    writeln!(out, "  {} {state}", copied.digest)?;
    for recorded in &image.facts {
        let what = match recorded.outcome {
            CompanionOutcome::Present => "already indexed",
            CompanionOutcome::Made => "index created and attached",
            CompanionOutcome::Failed => "not indexed",
        };
        let size = recorded
            .size
            .map_or_else(String::new, |size| format!(" ({})", BinaryBytes(size)));
        writeln!(out, "  contents of {}: {what}{size}", recorded.image)?;
    }
    for carried in &image.beside {
        let what = match (carried.outcome, dry_run) {
            (ReferrerOutcome::Present, _) => "already present",
            (ReferrerOutcome::Copied, false) => "copied",
            (ReferrerOutcome::Copied, true) => "would be copied",
            (ReferrerOutcome::Left | ReferrerOutcome::Failed | ReferrerOutcome::Unknown, _) => {
                continue;
            }
        };
        let kind = UntrustedText(&carried.kind);
        writeln!(out, "  attached to {}: {kind} {what}", carried.about)?;
    }
    if dry_run {
        for blob in &copied.blobs {
            let size = BinaryBytes(blob.size).to_string();
            let what = in_words(&blob.action);
            writeln!(out, "  {} {size:>12} {}", blob.digest, UntrustedText(what))?;
        }
    }
    Ok(())
}

fn in_words(action: &BlobAction) -> String {
    match action {
        BlobAction::Present => "already present".to_owned(),
        BlobAction::Mount { from } => format!("would be mounted from {from}"),
        BlobAction::Copy => "would be copied".to_owned(),
        BlobAction::Download { from } => format!("would be downloaded from {from}"),
        BlobAction::Skip => "not copied".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use wincimg_common::diagnose::Problem;

    use super::*;

    #[test]
    fn only_what_a_registry_did_not_answer_may_pass() {
        let gone = || RegistryError::DigestAlgorithm("md5:0".to_owned());
        let gave_up = RegistryError::GaveUp {
            attempts: 3,
            last: Box::new(gone()),
        };
        assert!(may_pass(&gave_up.into()));
        assert!(!may_pass(&gone().into()));
        let empty = Problem::new("image/no-platform", "web has no image for windows/amd64");
        assert!(!may_pass(&empty.into()));
    }
}
