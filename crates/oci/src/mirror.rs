//! Complete copies of images in another registry: foreign layers are downloaded from their URLs and
//! made ordinary, so that nodes need no internet access.
//!
//! An image keeps its repository's path and its tag; the mirror's host replaces its host, and the
//! prefix precedes the path: `mcr.microsoft.com/windows/nanoserver:1809` mirrored to
//! `repo.mylan.k8s:9999/mcr` is `repo.mylan.k8s:9999/mcr/windows/nanoserver:1809`, where
//! `--base-registry repo.mylan.k8s:9999/mcr` finds it. On Docker Hub, where names have two parts,
//! both use `docker.io/me/windows-nanoserver:1809`. An image given by digest alone gets no tag.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use serde::{Serialize, Serializer};
use wincimg_common::diagnose::{Diagnose as _, Problem, error_chain};
use wincimg_common::progress::Progress;

use super::copy::{
    BlobAction, Copier, CopyOptions, CopyPlan, CopyReport, Foreign, PlatformFilter, ReferrerReport,
    Watcher,
};
use super::document::{Digest, ManifestFormat};
use super::prefix::RegistryPrefix;
use super::reference::{Reference, repository_of};
use super::remote::{RegistryClient, Repository};
use super::store::{Sink, Source, StoreError};

/// Images copied at once; blobs have their own limit.
const IMAGES: usize = 4;
/// Facts of `wincimg image base index`, which [`MirrorHook`] handles.
const FACTS: &str = "application/vnd.wincimg.base.v1";

/// Images that cannot be mirrored as asked.
fn invalid_names(problem: String) -> Problem {
    Problem::request("mirror/names", problem)
}

/// Returns an image's name in the mirror at `target`.
pub fn mirrored_name(target: &RegistryPrefix, source: &MirrorSource) -> Result<Reference, Problem> {
    let MirrorSource { image, path } = source;
    target.check_for_pushes().map_err(|error| {
        invalid_names(error.to_string()).hint("name the user: --to docker.io/USER")
    })?;
    let end = match (image.tag(), image.digest()) {
        (Some(tag), _) => format!(":{tag}"),
        (None, Some(digest)) => format!("@{digest}"),
        (None, None) => String::new(),
    };
    let name = target.join(&format!("{path}{end}"));
    let problem = || invalid_names(format!("{image} cannot be mirrored to {target}"));
    name.map_err(|error| problem().source(error))
}

/// An image to mirror.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MirrorSource {
    /// The image.
    pub image: Reference,
    /// Its path below the target.
    pub path: String,
}

impl From<Reference> for MirrorSource {
    /// An image that keeps its path.
    fn from(image: Reference) -> Self {
        let path = image.repository().to_owned();
        Self { image, path }
    }
}

/// Options for mirroring.
#[derive(Debug, Clone)]
pub struct MirrorOptions {
    /// Platforms of the images of an index to copy; all if empty.
    pub platforms: Vec<PlatformFilter>,
    /// Maximum number of concurrent blob transfers.
    pub jobs: usize,
    /// True to report only what would be copied.
    pub dry_run: bool,
    /// The format of manifests; `None` keeps the source's.
    pub manifest_format: Option<ManifestFormat>,
    /// True to replace tags of the target whatever others published under them.
    pub replace: bool,
    /// Digests of tags of the target when they were checked, by name (`HOST/NAME:TAG`): an image is
    /// not published if others published its tag since.
    pub checked: HashMap<String, Option<Digest>>,
    /// True if artifacts attached to images are copied too.
    pub with_referrers: bool,
}

impl Default for MirrorOptions {
    fn default() -> Self {
        Self {
            platforms: Vec::new(),
            jobs: 6,
            dry_run: false,
            manifest_format: None,
            replace: false,
            checked: HashMap::new(),
            with_referrers: true,
        }
    }
}

/// Report of mirroring, or of a dry run.
#[derive(Debug, Serialize)]
pub struct MirrorReport {
    /// True if nothing was copied.
    pub dry_run: bool,
    /// The images, in the requested order.
    pub images: Vec<MirroredImage>,
    /// Sums over all images.
    pub totals: Totals,
}

/// Outcome for one image.
#[derive(Debug, Default, Serialize)]
pub struct MirroredImage {
    /// The requested image.
    pub source: String,
    /// Its name in the mirror.
    pub target: String,
    /// The copied image; `None` where it failed.
    #[serde(flatten)]
    pub copied: Option<CopyReport>,
    /// Facts collected about the images.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub facts: Vec<CompanionReport>,
    /// Artifacts attached to the images, with their outcomes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<ReferrerReport>,
    /// The error, of copying or of the copied image; serialised as text with its causes, with its
    /// code and its hint beside it.
    #[serde(flatten, serialize_with = "described")]
    pub error: Option<StoreError>,
}

/// Facts about one image, attached to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CompanionReport {
    /// The image's digest in the mirror.
    pub image: String,
    /// Its outcome.
    pub outcome: CompanionOutcome,
    /// Size of the attached facts in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The reason for failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The reason why no runtime can unpack the image, which is the error of the mirrored one.
    #[serde(skip)]
    pub defect: Option<String>,
}

/// Outcome of collecting facts about an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CompanionOutcome {
    /// The mirror already had them.
    Present,
    /// They were collected and attached.
    Made,
    /// They could not be collected or stored; the image is mirrored all the same.
    Failed,
}

/// Inspects images while they are mirrored and attaches the results.
pub trait MirrorHook: Watcher {
    /// Prepares for an image, before its blobs are transferred.
    fn start_image<'a>(&'a self, copying: MirrorJob<'a>) -> BoxFuture<'a, CompanionTask<'a>>;
}

/// The work for an image after it is mirrored.
pub struct CompanionTask<'a>(pub BoxFuture<'a, Vec<CompanionReport>>);

/// An image or index being mirrored.
#[derive(Clone, Copy)]
pub struct MirrorJob<'a> {
    /// The planned content.
    pub plan: &'a CopyPlan,
    /// The source.
    pub from: &'a Repository,
    /// The target.
    pub to: &'a Repository,
}

/// Sums over all images; a blob shared by several images is counted for each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Blobs that were copied or downloaded.
    pub copied_blobs: u64,
    /// Their bytes.
    pub copied_bytes: u64,
    /// Blobs that the registry mounted from another of its repositories.
    pub mounted_blobs: u64,
    /// Their bytes.
    pub mounted_bytes: u64,
    /// Blobs that already existed.
    pub present_blobs: u64,
    /// Their bytes.
    pub present_bytes: u64,
    /// Images that failed.
    pub failed_images: u64,
}

/// Mirrors images. One that fails does not stop the others.
///
/// # Errors
/// Fails only if the images cannot all have a name in the mirror; other errors are in the report of
/// each image.
pub async fn mirror(
    registry: &RegistryClient,
    images: &[MirrorSource],
    target: &RegistryPrefix,
    options: &MirrorOptions,
    companion: Option<Arc<dyn MirrorHook>>,
    progress: Arc<dyn Progress>,
) -> Result<MirrorReport, Problem> {
    let named = mirrored_names(images, target)?;
    // A dry run does not collect facts.
    let companion = companion.filter(|_| !options.dry_run);
    let mut copier = Copier::new(registry.clone(), progress, options.jobs);
    copier.dry_run = options.dry_run;
    copier.replace = options.replace;
    copier.checked.clone_from(&options.checked);
    copier.watcher = companion.clone().map(|it| it as Arc<dyn Watcher>);
    let mirror = Mirror {
        registry,
        copier: &copier,
        options,
        companion: companion.as_deref(),
    };
    let work: Vec<_> = named
        .iter()
        .map(|(source, target)| mirror.one(source, target))
        .collect();
    // A dry run reports a shared blob for the first image that needs it, so the order must be
    // fixed.
    let at_once = if options.dry_run { 1 } else { IMAGES };
    let images: Vec<MirroredImage> = stream::iter(work).buffered(at_once).collect().await;
    Ok(MirrorReport {
        dry_run: options.dry_run,
        totals: totals(&images),
        images,
    })
}

/// Maps images to their names in the mirror, each once; no two have one name.
pub fn mirrored_names(
    images: &[MirrorSource],
    target: &RegistryPrefix,
) -> Result<Vec<(Reference, Reference)>, Problem> {
    let mut sources: HashMap<String, &Reference> = HashMap::new();
    let mut named = Vec::with_capacity(images.len());
    for source in images {
        let name = mirrored_name(target, source)?;
        let image = &source.image;
        match sources.insert(name.to_string(), image) {
            Some(other) if other != image => {
                return Err(invalid_names(format!(
                    "{other} and {image} would both become {name}: mirror them under different \
                     prefixes"
                )));
            }
            Some(_) => {}
            None => named.push((image.clone(), name)),
        }
    }
    Ok(named)
}

/// State shared by all images of one call.
struct Mirror<'a> {
    registry: &'a RegistryClient,
    copier: &'a Copier,
    options: &'a MirrorOptions,
    companion: Option<&'a dyn MirrorHook>,
}

impl Mirror<'_> {
    async fn one(&self, source: &Reference, target: &Reference) -> MirroredImage {
        let mut image = MirroredImage {
            source: source.to_string(),
            ..MirroredImage::default()
        };
        let copied = self.copy(source, target, &mut image).await;
        let defect = || image.facts.iter().find_map(find_defect);
        image.error = copied.err().or_else(defect);
        image.target = published_name(target, image.copied.as_ref());
        image
    }

    async fn copy(
        &self,
        source: &Reference,
        target: &Reference,
        image: &mut MirroredImage,
    ) -> Result<(), StoreError> {
        let from = self.registry.repository(source);
        let to = self.registry.repository(target).for_push();
        let wanted = source.digest().or(source.tag());
        let options = CopyOptions {
            platforms: self.options.platforms.clone(),
            foreign: Foreign::MakeOrdinary,
            manifest_format: self.options.manifest_format,
            ..CopyOptions::default()
        };
        let (place, sink) = (Source::Registry(from.clone()), Sink::Registry(to.clone()));
        let plan = CopyPlan::new(&place, wanted, &options).await?;
        let copying = MirrorJob {
            plan: &plan,
            from: &from,
            to: &to,
        };
        let conclusion = match self.companion {
            Some(companion) => Some(companion.start_image(copying).await),
            None => None,
        };
        image.copied = Some(self.copier.copy(&plan, &place, &sink, target.tag()).await?);
        if let Some(conclusion) = conclusion {
            image.facts = conclusion.0.await;
        }
        if self.options.with_referrers {
            let copying = self
                .copier
                .copy_referrers(&plan, &place, &sink, Some(FACTS));
            image.beside = copying.await;
        }
        Ok(())
    }
}

fn find_defect(found: &CompanionReport) -> Option<StoreError> {
    let defect = found.defect.as_ref()?;
    let problem = format!("{} is mirrored, but {defect}", found.image);
    let problem = Problem::new("image/layer", problem)
        .hint("build the image again, or push it again from where it was made");
    Some(problem.into())
}

/// Returns the name to pull the image by; its digest may have changed.
fn published_name(target: &Reference, copied: Option<&CopyReport>) -> String {
    match copied {
        Some(report) if target.tag().is_none() => {
            format!("{}@{}", repository_of(target), report.digest)
        }
        _ => target.to_string(),
    }
}

#[expect(clippy::ref_option, reason = "serde passes the field like this")]
fn described<S: Serializer>(error: &Option<StoreError>, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct ErrorReport {
        error: String,
        code: &'static str,
        hint: Option<String>,
    }
    let described = error.as_ref().map(|error| {
        let diagnosis = error.diagnosis();
        ErrorReport {
            error: error_chain(error),
            code: diagnosis.code,
            hint: diagnosis.hint,
        }
    });
    described.serialize(serializer)
}

fn totals(images: &[MirroredImage]) -> Totals {
    let mut totals = Totals::default();
    for image in images {
        let Some(copied) = &image.copied else {
            totals.failed_images += 1;
            continue;
        };
        for blob in &copied.blobs {
            let (blobs, bytes) = match blob.action {
                BlobAction::Copy | BlobAction::Download { .. } => {
                    (&mut totals.copied_blobs, &mut totals.copied_bytes)
                }
                BlobAction::Mount { .. } => (&mut totals.mounted_blobs, &mut totals.mounted_bytes),
                BlobAction::Present => (&mut totals.present_blobs, &mut totals.present_bytes),
                BlobAction::Skip => continue,
            };
            *blobs += 1;
            *bytes += blob.size;
        }
    }
    totals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::parse_reference;

    const DIGEST: &str = "sha256:6c3c624b58dbbcd3c0dd82b4c53f04194d1247c6eebdaab7c610cf7d66709b3b";

    fn name(target: &str, image: &str) -> String {
        let target: RegistryPrefix = target.parse().unwrap();
        mirrored_name(&target, &parse_reference(image).unwrap().into())
            .unwrap()
            .to_string()
    }

    #[test]
    fn an_image_keeps_its_path_and_tag_under_the_mirrors_host_and_prefix() {
        let image = "mcr.microsoft.com/windows/nanoserver:1809";
        let expected = "repo.lan:9999/windows/nanoserver:1809";
        assert_eq!(name("repo.lan:9999", image), expected);
        let expected = "repo.lan:9999/mcr.microsoft.com/windows/nanoserver:1809";
        assert_eq!(name("repo.lan:9999/mcr.microsoft.com/", image), expected);
        assert_eq!(name("repo.lan", "nginx"), "repo.lan/library/nginx:latest");
    }

    #[test]
    fn a_digest_gets_no_tag_and_yields_to_one() {
        let alone = format!("host.io/a@{DIGEST}");
        assert_eq!(name("repo.lan", &alone), format!("repo.lan/a@{DIGEST}"));
        let expected = "repo.lan/a:1";
        assert_eq!(name("repo.lan", &format!("host.io/a:1@{DIGEST}")), expected);
    }

    #[test]
    fn two_images_with_one_name_are_refused_and_a_repeated_one_is_taken_once() {
        let target: RegistryPrefix = "repo.lan".parse().unwrap();
        let images = |texts: &[&str]| -> Vec<MirrorSource> {
            texts
                .iter()
                .map(|text| parse_reference(text).unwrap().into())
                .collect()
        };
        let error =
            mirrored_names(&images(&["one.io/a/b:1", "two.io/a/b:1"]), &target).unwrap_err();
        assert!(error.to_string().contains("would both become"), "{error}");
        let named = mirrored_names(&images(&["one.io/a:1", "one.io/a:1"]), &target).unwrap();
        assert_eq!(named.len(), 1);
    }
}
