//! `wincimg copy` and `wincimg push`: copies an image or index, byte for byte, under any name.

use std::slice;

use wincimg_engine::delivery::{
    IndexUpdate, TagPolicy, check_overwrite, default_layout, removed_entries,
};
use wincimg_oci::copy::{
    BlobAction, Copier, CopyOptions, CopyPlan, CopyReport, Foreign, ReferrerOutcome, ReferrerReport,
};
use wincimg_oci::document::Document;
use wincimg_oci::document::media_type::is_foreign;
use wincimg_oci::layout::Layout;
use wincimg_oci::reference::{prefix_and_name, repository_of};

use super::build::destinations::check_joined;
use super::build::image_name::tag_policy;
use super::build::image_tag;
use super::contents::{is_path_in_image, one_of};
use super::output::write_json_document;
use crate::cli::prelude::*;

/// Number of layers copied in parallel.
const JOBS: usize = 6;

/// Copy an image or index under another name
///
/// Copies between registries, OCI layouts and docker-archive files, and from a Docker daemon. The
/// digest stays the same, unless --platform selects images of an index, --join adds them to another,
/// --manifest-format or --ordinary-layers converts them, or an archive lacks the original manifest.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg copy repo.mylan.k8s:8888/app:1.4 repo.mylan.k8s:8888/prod/app:1.4\n  \
    wincimg copy repo.mylan.k8s:8888/app:1.4 oci:./app:1.4\n  \
    wincimg copy oci:./app docker-archive:app.tar:app:1.4\n  \
    wincimg copy repo.mylan.k8s:8888/app:1.4-ltsc2022 \\\n      \
    repo.mylan.k8s:8888/app:1.4 --join\n\n\
    To copy many images and their foreign layers to a mirror, use `wincimg image mirror`.")]
pub(super) struct Copy {
    /// Image to copy: a reference, oci:DIR[:TAG], docker-archive:FILE[:NAME] or docker-daemon:NAME
    #[arg(value_name = "SRC", value_parser = image_to_copy, add = complete::images())]
    source: ImageSource,
    /// New name: a reference, oci:DIR[:TAG] or docker-archive:FILE[:NAME]
    #[arg(value_name = "DST", value_parser = parse_location, add = complete::images())]
    target: Location,
    #[command(flatten)]
    options: CopyArgs,
}

/// Push an OCI layout or archive to a registry
///
/// The image keeps its digest, so what was scanned and signed is what is pushed, unless
/// --manifest-format or --ordinary-layers converts it. Attached SBOMs, provenance and signatures are
/// pushed too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg build . --host-build ltsc2022 --output oci:./app\n  \
    wincimg push oci:./app repo.mylan.k8s:8888/app:1.4\n  \
    wincimg push -q docker-archive:app.tar repo.mylan.k8s:8888/app:1.4")]
pub(super) struct Push {
    /// Image to push: oci:DIR[:TAG], docker-archive:FILE[:NAME] or docker-daemon:NAME
    #[arg(value_name = "SRC", value_parser = local_image, add = complete::images())]
    source: ImageSource,
    /// Name in the registry
    #[arg(value_name = "HOST/NAME[:TAG]", value_parser = parse_reference)]
    target: Reference,
    #[command(flatten)]
    options: CopyArgs,
}

/// Options of a copy.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
struct CopyArgs {
    /// Copy only images of this platform from an index (repeatable) [default: all]
    #[arg(long, value_name = "OS/ARCH[:OSVERSION]")]
    platform: Vec<PlatformFilter>,
    /// Add the images to the index of the target's tag, as `build --join` does
    #[arg(long, conflicts_with = "replace")]
    join: bool,
    /// Remove entries of the target's tag for other platforms and Windows builds, and signatures of
    /// the target under cosign's tags
    #[arg(long)]
    replace: bool,
    /// Do not copy attached artifacts: SBOMs, provenance, signatures
    #[arg(long)]
    no_referrers: bool,
    /// Manifest format in the target: converting changes the digest, so signatures and other attached
    /// artifacts are not copied [default: the source's]
    #[arg(long, value_enum, value_name = "FORMAT", hide_short_help = true)]
    manifest_format: Option<ManifestFormat>,
    /// Store foreign layers, which old Windows bases have, as ordinary ones without URLs, as
    /// `image mirror` does; changes the digest
    #[arg(long, hide_short_help = true)]
    ordinary_layers: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    places: SourceArgs,
}

/// Parses an image, and not files of one.
fn image_to_copy(text: &str) -> Result<ImageSource, String> {
    if is_path_in_image(text) {
        let problem = "is a path in an image: copy its files with `wincimg image cp`";
        return Err(format!("{} {problem}", QuotedText(text)));
    }
    parse_source(text).map_err(|error| error.to_string())
}

/// Parses the location of an image that is not in a registry.
fn local_image(text: &str) -> Result<ImageSource, String> {
    let source = parse_source(text);
    let source = source.map_err(|error| error_chain(&error))?;
    match source.stored() {
        Some(Location::Registry(_)) => Err(format!(
            "expected oci:DIR[:TAG], docker-archive:FILE[:NAME] or docker-daemon:NAME; copy between \
             registries with `{} …`",
            command_line(&["wincimg", "copy", text])
        )),
        _ => Ok(source),
    }
}

impl Copy {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        self.options.copy(&self.source, &self.target, session)
    }
}

impl Push {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let target = Location::Registry(self.target);
        self.options.copy(&self.source, &target, session)
    }
}

/// A copy of an image or index under another name.
pub(super) struct ImageCopy {
    /// What is copied, and how; the policy decides on joining.
    pub(super) options: CopyOptions,
    /// Policy for the existing entries of the tag.
    pub(super) existing: TagPolicy,
    /// True if attached artifacts are copied, too.
    pub(super) with_referrers: bool,
}

pub(super) struct CopiedImage {
    target: Location,
    foreign: Foreign,
    pub(super) report: CopyReport,
    /// The entries of the tag's index that the images joined.
    kept: Vec<String>,
    /// The attached artifacts.
    pub(super) beside: Vec<ReferrerReport>,
}

impl CopiedImage {
    /// Number of attached artifacts that the target has.
    fn artifacts(&self) -> usize {
        let has = |it: &&ReferrerReport| {
            matches!(
                it.outcome,
                ReferrerOutcome::Present | ReferrerOutcome::Copied
            )
        };
        self.beside.iter().filter(has).count()
    }
}

impl CopyArgs {
    fn copy(
        &self,
        source: &ImageSource,
        target: &Location,
        session: &Session,
    ) -> Result<CommandOutcome> {
        let target = named_like(target, &source.location);
        if source.stored() == Some(&target) {
            let problem = format!("{source} and {target} are the same image");
            return Err(Failure::usage(problem).hint("name another DST"));
        }
        if self.join {
            check_joined(&target)?;
        }
        if self.join && target.tag().is_none() {
            let problem = format!("--join requires a tag, which {target} does not have");
            return Err(Failure::usage(problem).hint("add the tag of the index to DST"));
        }
        if let Some(from) = source.stored() {
            note_built(from, session);
        }
        let copied = registry_args::run(self.transfer(source, target, session))?;
        let failed = report_referrers(copied.beside.iter(), session);
        let outcome = self.print(source, &copied, session)?;
        if failed > 0 {
            return Err(not_copied("copied the image", failed));
        }
        Ok(outcome)
    }

    async fn transfer(
        &self,
        location: &ImageSource,
        target: Location,
        session: &Session,
    ) -> Result<CopiedImage> {
        let reader = self.places.connect(session)?;
        let opened = reader.open(location).await?;
        let source: &Source = &opened;
        let copy = ImageCopy {
            options: CopyOptions {
                platforms: self.platform.clone(),
                foreign: if self.ordinary_layers {
                    Foreign::MakeOrdinary
                } else {
                    Foreign::Keep
                },
                manifest_format: self.manifest_format,
                joins: self.join,
            },
            existing: tag_policy(self.join, self.replace),
            with_referrers: !self.no_referrers,
        };
        let (registry, progress) = (&reader.registry, &reader.progress);
        let wanted = location.tag_or_digest();
        let copying = copy.run((source, wanted), target, registry, progress);
        Box::pin(copying).await
    }

    fn print(
        &self,
        source: &ImageSource,
        copied: &CopiedImage,
        session: &Session,
    ) -> Result<CommandOutcome> {
        let pinned = by_digest(&copied.target, &copied.report.digest);
        let answer = || {
            let more = json!({
                "source": source.to_string(),
                "target": copied.target.to_string(),
                "reference": pinned,
                "artifacts": copied.artifacts(),
                "kept": copied.kept,
            });
            extended(&copied.report, more)
        };
        self.format.print(answer, |out| {
            if session.quiet {
                writeln!(out, "{pinned}")
            } else {
                write_text(copied, out)
            }
        })
    }
}

impl ImageCopy {
    /// Copies an image of a source, with its tag or digest there.
    pub(super) async fn run(
        &self,
        (source, wanted): (&Source, Option<&str>),
        target: Location,
        registry: &RegistryClient,
        progress: &Arc<dyn Progress>,
    ) -> Result<CopiedImage> {
        let plan = CopyPlan::new(source, wanted, &self.options).await?;
        let joined = match self.existing {
            TagPolicy::Replace => None,
            TagPolicy::Protect => {
                check_overwrite(&target, source, &plan, registry).await?;
                None
            }
            TagPolicy::Join => {
                let notes = progress.as_ref();
                let joining = IndexUpdate::of_copy(&target, source, &plan, registry, notes);
                Some(Box::pin(joining).await?)
            }
        };
        let sink = Sink::create(&target, registry).await?;
        let mut copier = Copier::new(registry.clone(), Arc::clone(progress), JOBS);
        copier.replace = self.existing == TagPolicy::Replace;
        let tag = target.tag().filter(|_| !self.options.joins);
        let mut report = copier.copy(&plan, source, &sink, tag).await?;
        let mut kept = Vec::new();
        if let Some(joined) = joined {
            let index = Box::pin(joined.join(&sink)).await?;
            report.up_to_date &= index.up_to_date;
            report.digest = index.digest;
            kept = index.kept;
        }
        let beside = if self.with_referrers {
            copier.copy_referrers(&plan, source, &sink, None).await
        } else {
            Vec::new()
        };
        sink.finish().await?;
        Ok(CopiedImage {
            target,
            foreign: self.options.foreign,
            report,
            kept,
            beside,
        })
    }
}

fn write_text(copied: &CopiedImage, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", copied.target)?;
    writeln!(out, "  digest   {}", copied.report.digest)?;
    if !copied.kept.is_empty() {
        writeln!(out, "  kept     {}", copied.kept.join(", "))?;
    }
    let artifacts = copied.artifacts();
    if artifacts > 0 {
        writeln!(out, "  attached {}", count(artifacts, "artifact"))?;
    }
    write_foreign(copied, out)?;
    let outcome = match (&copied.target, copied.report.up_to_date) {
        (_, true) => "up to date, nothing was sent",
        (Location::Registry(_), false) => "pushed",
        (Location::Layout { .. } | Location::Archive { .. }, false) => "written",
    };
    writeln!(out, "  {outcome}")
}

/// Names the layers that nodes take from elsewhere, or try to.
fn write_foreign(copied: &CopiedImage, out: &mut dyn Write) -> io::Result<()> {
    if copied.foreign != Foreign::Keep || !matches!(copied.target, Location::Registry(_)) {
        return Ok(());
    }
    let blobs = copied.report.blobs.iter();
    let foreign = blobs.filter(|blob| is_foreign(&blob.media_type));
    let (absent, present): (Vec<_>, Vec<_>) =
        foreign.partition(|blob| blob.action == BlobAction::Skip);
    for (layers, effect) in [
        (absent, "not in the registry: nodes need the URLs"),
        (
            present,
            "in the registry, but containerd tries the URLs first",
        ),
    ] {
        if !layers.is_empty() {
            let size = BinaryBytes(layers.iter().map(|layer| layer.size).sum());
            let layers = count(layers.len(), "layer");
            writeln!(
                out,
                "  foreign  {layers} ({size}) {effect}; add --ordinary-layers"
            )?;
        }
    }
    Ok(())
}

/// Notes that a build wrote an image here with the name of one that is read from its registry.
fn note_built(image: &Location, session: &Session) {
    let Location::Registry(reference) = image else {
        return;
    };
    let (_, name) = prefix_and_name(reference);
    let layout = reference.tag().map(|tag| default_layout(name, tag));
    if let Some(layout) = layout.filter(|layout| Layout::is_at(Path::new(layout))) {
        session.note(format_args!(
            "{reference} is read from its registry; what a build wrote here is oci:./{layout}"
        ));
    }
}

/// A layout or archive without a tag gets the source's.
fn named_like(target: &Location, source: &Location) -> Location {
    match (target, source) {
        (Location::Layout { dir, tag: None }, source) => Location::Layout {
            dir: dir.clone(),
            tag: match source {
                Location::Archive { name, .. } => {
                    let name = name.as_deref().and_then(|name| name.rsplit_once(':'));
                    name.map(|(_, tag)| tag.to_owned())
                }
                _ => source.tag().map(str::to_owned),
            },
        },
        (Location::Archive { file, name: None }, Location::Registry(reference)) => {
            let tag = reference.tag().unwrap_or("latest");
            Location::Archive {
                file: file.clone(),
                name: Some(format!("{}:{tag}", reference.repository())),
            }
        }
        _ => target.clone(),
    }
}

/// The reference of an image by its digest alone. An archive has none.
pub(super) fn by_digest(location: &Location, digest: &str) -> String {
    match location {
        Location::Registry(reference) => format!("{}@{digest}", repository_of(reference)),
        Location::Layout { dir, .. } => format!("oci:{}:{digest}", dir.display()),
        Location::Archive { .. } => location.to_string(),
    }
}

/// Add tags to an image in a registry or layout
///
/// Nothing is copied: the tags refer to the same digest.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg image tag repo.mylan.k8s:8888/app:1.4 latest 1\n  \
    wincimg image tag repo.mylan.k8s:8888/app@sha256:… 1.4\n  \
    wincimg image tag oci:./app:1.4 latest")]
pub(super) struct Tag {
    /// Image: a reference or oci:DIR[:TAG]
    #[arg(value_name = "IMAGE", value_parser = parse_location, add = complete::images())]
    image: Location,
    /// New tags
    #[arg(value_name = "TAG", required = true, value_parser = new_tag)]
    tags: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    registry: RegistryArgs,
}

/// Parses a tag. `docker tag` takes a whole name.
fn new_tag(text: &str) -> Result<String, String> {
    image_tag(text).map_err(|expected| match parse_reference(text) {
        Ok(_) => format!(
            "{expected}; for another name: {}",
            command_line(&["wincimg", "copy", "IMAGE", text])
        ),
        Err(_) => expected.to_owned(),
    })
}

impl Tag {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        if matches!(self.image, Location::Archive { .. }) {
            let problem = format!("cannot add a tag to {}", self.image);
            return Err(Failure::usage(problem).hint(format!(
                "copy it under the new name: {} oci:DIR:TAG",
                command_line(&["wincimg", "copy", &self.image.to_string()])
            )));
        }
        note_built(&self.image, session);
        let registry = self.registry.connect(session)?;
        let (digest, places) = registry_args::run(async {
            let source = Source::open(&self.image, &registry).await?;
            let document = source.resolve(self.image.tag_or_digest()).await?;
            let sink = Sink::create(&self.image, &registry).await?;
            for tag in &self.tags {
                let target = self.tagged(tag);
                note_removed(&target, &source, &document, &registry, session).await;
                sink.publish(&document, Some(tag)).await?;
            }
            let places = self.tags.iter().map(|tag| format!("{sink}:{tag}"));
            Ok((document.digest().to_string(), places.collect::<Vec<_>>()))
        })?;
        let answer = || json!({"digest": digest, "tags": places});
        self.format.print(answer, |out| {
            places
                .iter()
                .try_for_each(|place| writeln!(out, "{place} {digest}"))
        })
    }

    /// The image under another tag.
    fn tagged(&self, tag: &str) -> Location {
        match &self.image {
            Location::Registry(image) => {
                let (host, path) = (image.registry(), image.repository());
                Location::Registry(Reference::new(host, path, Some(tag), None))
            }
            Location::Layout { dir, .. } => Location::Layout {
                dir: dir.clone(),
                tag: Some(tag.to_owned()),
            },
            archive @ Location::Archive { .. } => archive.clone(),
        }
    }
}

/// Names the images of a tag that another document does not have. Tags that cannot be read are
/// replaced, too.
async fn note_removed(
    target: &Location,
    source: &Source,
    document: &Document,
    registry: &RegistryClient,
    session: &Session,
) {
    let removed = removed_entries(target, source, document, registry).await;
    if let Some(removed) = removed.ok().filter(|removed| !removed.is_empty()) {
        let removed = removed.join(", ");
        session.note(format_args!("{target} will no longer have {removed}"));
    }
}

/// The image of two commands that print something about it.
#[derive(Debug, Args)]
struct OneImage {
    /// Image: a reference, oci:DIR[:TAG] or docker-archive:FILE[:NAME]
    #[arg(value_name = "IMAGE", value_parser = parse_location, add = complete::images())]
    image: Location,
    /// Select the image of this platform from an index
    #[arg(long, value_name = "OS/ARCH[:OSVERSION]")]
    platform: Option<PlatformFilter>,
    #[command(flatten)]
    registry: RegistryArgs,
}

impl OneImage {
    fn document(&self, session: &Session) -> Result<Document> {
        let registry = self.registry.connect(session)?;
        registry_args::run(async {
            let source = Source::open(&self.image, &registry).await?;
            let document = source.resolve(self.image.tag_or_digest()).await?;
            let Some(wanted) = &self.platform else {
                return Ok(document);
            };
            let images = windows_images_in(&source, document, slice::from_ref(wanted)).await?;
            let image = one_of(&self.image.clone().into(), images, Some(wanted))?;
            Ok(Document::Manifest(Box::new(image.manifest().clone())))
        })
    }
}

/// Print the digest of an image or index
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg image digest repo.mylan.k8s:8888/app:1.4\n  \
    wincimg image digest oci:./app --platform windows/amd64:17763")]
pub(super) struct Digest {
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    // The last one, because a help heading also applies to the arguments after it.
    #[command(flatten)]
    image: OneImage,
}

impl Digest {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let document = self.image.document(session)?;
        let digest = document.digest().to_string();
        let reference = by_digest(&self.image.image, &digest);
        let answer = || json!({"digest": digest, "reference": reference});
        self.format.print(answer, |out| writeln!(out, "{digest}"))
    }
}

/// Print the manifest of an image or index, unchanged
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg image manifest repo.mylan.k8s:8888/app:1.4\n  \
    wincimg image manifest oci:./app --platform windows/amd64:17763")]
pub(super) struct Manifest {
    /// Format of errors; the manifest is JSON in either case
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    // The last one, because a help heading also applies to the arguments after it.
    #[command(flatten)]
    image: OneImage,
}

impl Manifest {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let document = self.image.document(session)?;
        write_json_document(document.bytes())?;
        Ok(CommandOutcome::Yes)
    }
}

/// Warns of documents that were not copied, and returns the number of failures.
pub(super) fn report_referrers<'r>(
    reports: impl Iterator<Item = &'r ReferrerReport>,
    session: &Session,
) -> usize {
    let mut failed = 0;
    for report in reports {
        let ReferrerReport { about, kind, .. } = report;
        let what = match report.outcome {
            ReferrerOutcome::Left | ReferrerOutcome::Failed => {
                format!("{kind} attached to {about} is")
            }
            ReferrerOutcome::Unknown => format!("the documents attached to {about} are"),
            ReferrerOutcome::Present | ReferrerOutcome::Copied => continue,
        };
        let changed = "the copy of the image has another digest";
        let reason = report.problem.as_deref().unwrap_or(changed);
        session.warn(format_args!("{what} not copied: {reason}"));
        failed += usize::from(report.outcome != ReferrerOutcome::Left);
    }
    failed
}

/// Failure for documents that were not copied, after the images were.
pub(super) fn not_copied(done: &str, failed: usize) -> Failure {
    let documents = count(failed, "attached document");
    Failure::operation(format!("{done}, but failed to copy {documents}")).hint(
        "if the network or a registry failed, run the same command again; --no-referrers \
             skips attached documents",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(text: &str) -> Location {
        text.parse().unwrap()
    }

    #[test]
    fn a_copy_without_a_name_has_the_sources() {
        for (target, source, expected) in [
            ("oci:out", "repo.lan/app:1", "oci:out:1"),
            ("oci:out", "oci:in:1", "oci:out:1"),
            ("oci:out:2", "oci:in:1", "oci:out:2"),
            ("oci:out", "docker-archive:a.tar:app:1", "oci:out:1"),
            (
                "docker-archive:a.tar",
                "repo.lan/x/app:1",
                "docker-archive:a.tar:x/app:1",
            ),
            ("repo.lan/app:2", "oci:in:1", "repo.lan/app:2"),
        ] {
            let named = named_like(&location(target), &location(source));
            assert_eq!(named.to_string(), expected, "{source} {target}");
        }
    }

    #[test]
    fn a_path_in_an_image_is_not_an_image() {
        for text in [
            r"repo.lan:5000/app:1:C:\app",
            "repo.lan/app:1:/app",
            r"oci:./app:C:\app",
            "oci:./app:/app",
        ] {
            let problem = image_to_copy(text).unwrap_err();
            assert!(problem.contains("`wincimg image cp`"), "{problem}");
        }
        for text in [
            "repo.lan:5000/app:1",
            "oci:/app:1",
            r"oci:C:\app",
            "docker-archive:/a.tar:app:1",
        ] {
            assert!(image_to_copy(text).is_ok(), "{text}");
        }
        let problem = image_to_copy("https://repo.lan/app").unwrap_err();
        assert!(!problem.contains("image cp"), "{problem}");
    }

    #[test]
    fn a_reference_by_digest_has_no_tag() {
        let digest = "sha256:aa";
        for (text, expected) in [
            ("repo.lan:5000/x/app:1", "repo.lan:5000/x/app@sha256:aa"),
            ("oci:out:1", "oci:out:sha256:aa"),
            ("docker-archive:a.tar:app:1", "docker-archive:a.tar:app:1"),
        ] {
            assert_eq!(by_digest(&location(text), digest), expected);
        }
    }
}
