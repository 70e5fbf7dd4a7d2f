//! The images of a fleet as nodes are to pull them: by digest, with the layers that they share.

use futures_util::{StreamExt, TryStreamExt, stream};
use wincimg_cluster::build_nodes::BuildNodes;
use wincimg_cluster::nodes::Node;
use wincimg_cluster::prepull::{PrepullBuild, PrepullImage};
use wincimg_cluster::rollout::is_host_process;
use wincimg_common::diagnose::BoxError;
use wincimg_oci::document::{Descriptor, Document, ENTRIES_AT_ONCE, Manifest, Verbatim};
use wincimg_oci::reference::{Reference, repository_of};
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::{Location, Source, StoreError};
use wincimg_windows::compat::{HostBuild, Isolation, VerdictOutcome, check};
use wincimg_windows::version::WindowsVersion;

use super::{EntrySource, Fleet, FleetEntry};

/// Number of images read at once.
const MAX_READS: usize = 32;

/// The recipe of the pause image.
const PAUSE: &str = "pause";

/// The images of a fleet for its nodes.
#[derive(Debug, Clone)]
pub struct FleetPrepull {
    /// The images of each build of Windows, the oldest first; builds without any are left out.
    pub builds: Vec<PrepullBuild>,
    /// The fleet's pause image, by digest.
    pub pause: Option<String>,
    /// Images that are left out for nodes of a build, each with the reason: `has no image for build
    /// 17763`.
    pub left_out: Vec<(String, String)>,
}

/// What the registry has of an image.
struct PublishedImage {
    /// Reference by the digest of what the tag names: the same that a node resolves the tag to.
    reference: String,
    variants: Vec<PublishedVariant>,
}

/// An image for Windows, of an index or alone.
struct PublishedVariant {
    /// Its version; none if it contains no Windows.
    version: Option<WindowsVersion>,
    layers: Vec<Descriptor>,
}

/// Finds the images of a fleet for nodes. The pause image is not among them: it keeps the pods that
/// pull the others.
pub async fn prepull(
    fleet: &Fleet,
    nodes: &[Node],
    registry: &RegistryClient,
) -> Result<FleetPrepull, BoxError> {
    let entries = stream::iter(&fleet.entries);
    let found = entries.map(async |entry| (entry, published(entry, registry).await));
    let found: Vec<_> = found.buffered(MAX_READS).collect().await;
    let mut images = Vec::with_capacity(found.len());
    let mut pause = None;
    for (entry, published) in found {
        let published = published?;
        if matches!(&entry.work, EntrySource::Build(input) if input.image == PAUSE) {
            pause = published.map(|image| image.reference).or(pause);
        } else {
            images.push((entry, published));
        }
    }
    let mut result = FleetPrepull {
        builds: Vec::new(),
        pause,
        left_out: Vec::new(),
    };
    for nodes_of_build in BuildNodes::of_each(nodes) {
        let build = nodes_of_build.build;
        let is_own = |node: &&Node| node.build.is_some_and(|host| host.version.build == build);
        let mut own = Vec::new();
        for (entry, published) in &images {
            let hosts = nodes.iter().filter(is_own);
            let hosts = hosts.filter(|node| entry.matches(node));
            let hosts: Vec<HostBuild> = hosts.filter_map(|node| node.build).collect();
            if hosts.is_empty() {
                continue;
            }
            match published
                .as_ref()
                .map(|image| image.for_hosts(build, &hosts))
            {
                Some(Ok(image)) => own.push(PrepullImage {
                    selector: entry.selector.clone(),
                    ..image
                }),
                Some(Err(reason)) => result.left_out.push((entry.label(), reason)),
                None => result.left_out.push((entry.label(), no_image(build))),
            }
        }
        if !own.is_empty() {
            result.builds.push(PrepullBuild {
                nodes: nodes_of_build,
                images: own,
            });
        }
    }
    Ok(result)
}

impl PublishedImage {
    /// The image for hosts of a build, or the reason why there is none. A pod of the build has to
    /// start on all of them: its next images are pulled once this one has ended.
    fn for_hosts(&self, build: u32, hosts: &[HostBuild]) -> Result<PrepullImage, String> {
        let variants = || self.variants.iter();
        let is_own =
            |variant: &&PublishedVariant| variant.version.is_some_and(|it| it.build == build);
        let of_build = variants().find(is_own);
        let variant = of_build
            .or_else(|| variants().find(|variant| variant.version.is_none()))
            .ok_or_else(|| no_image(build))?;
        if let Some(version) = variant.version {
            let verdicts = hosts.iter().map(|host| {
                let verdict = check(Some(*host), Some(version), Isolation::Process);
                (host, verdict.outcome)
            });
            let mut failing = verdicts.filter(|(_, it)| *it == VerdictOutcome::Incompatible);
            if let Some((host, _)) = failing.next() {
                return Err(format!("is on {version} and does not start on host {host}"));
            }
        }
        Ok(PrepullImage {
            reference: self.reference.clone(),
            layers: variant.layers.clone(),
            host_process: variant.version.is_none(),
            selector: None,
        })
    }
}

fn no_image(build: u32) -> String {
    format!("has no image for build {build}")
}

/// Reads an entry's tag; none if it does not exist.
async fn published(
    entry: &FleetEntry,
    registry: &RegistryClient,
) -> Result<Option<PublishedImage>, StoreError> {
    let Some(reference) = entry.reference() else {
        return Ok(None);
    };
    let source = Source::open(&Location::Registry(reference.clone()), registry).await?;
    let document = match source.resolve(reference.tag()).await {
        Err(StoreError::Registry(error)) if error.is_not_found() => return Ok(None),
        document => document?,
    };
    let reference = pinned(&reference, &document);
    let mut variants = Vec::new();
    match document {
        Document::Manifest(manifest) => variants.extend(variant(&source, *manifest).await?),
        Document::Index(index) => {
            let entries = index.manifests.iter().filter(|it| it.is_for_windows());
            let mut reads = Vec::new();
            for entry in entries {
                reads.push(variant_of_entry(&source, entry));
            }
            let read = stream::iter(reads).buffered(ENTRIES_AT_ONCE);
            let read: Vec<Option<PublishedVariant>> = read.try_collect().await?;
            variants.extend(read.into_iter().flatten());
        }
    }
    Ok(Some(PublishedImage {
        reference,
        variants,
    }))
}

fn pinned(reference: &Reference, document: &Document) -> String {
    format!("{}@{}", repository_of(reference), document.digest())
}

/// The image of an index's entry.
async fn variant_of_entry(
    source: &Source,
    entry: &Descriptor,
) -> Result<Option<PublishedVariant>, StoreError> {
    match source.document(entry).await? {
        Document::Manifest(manifest) => variant(source, *manifest).await,
        Document::Index(_) => Ok(None),
    }
}

/// An image as a node pulls it; none if it is not for Windows, or for no known version of it.
async fn variant(
    source: &Source,
    manifest: Verbatim<Manifest>,
) -> Result<Option<PublishedVariant>, StoreError> {
    if !manifest.is_image() {
        return Ok(None);
    }
    let image = source.image(manifest).await?;
    let platform = image.config().platform();
    let layers = image.manifest().layers.clone();
    let os_version = platform.os_version.as_deref();
    let bottom = layers.first().map(|layer| layer.size);
    let version: Option<WindowsVersion> = os_version.and_then(|text| text.parse().ok());
    if version.is_none() && !is_host_process(&platform.os, os_version, bottom) {
        return Ok(None);
    }
    Ok(Some(PublishedVariant { version, layers }))
}
