//! Delivers images to their destinations, whichever engine made them.
//!
//! While the images are built, the registry's current tags are prefetched. Then each destination
//! gets what it lacks: blobs, manifests, and last the index.

mod destination;
mod destination_writer;
mod documents;
mod existing_tag;
mod index;
mod report;

use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use futures_util::future::try_join_all;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_common::files::or_here;
use wincimg_common::lock;
use wincimg_common::progress::Progress;
use wincimg_inspect::provenance::SourceFile;
use wincimg_oci::document::{Digest, ManifestFormat};
use wincimg_oci::layout::Layout;
use wincimg_oci::prefix::RegistryPrefix;
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::{Location, Sink};
use wincimg_windows::version::WindowsVersion;

pub use self::destination::Destination;
pub(crate) use self::destination::check_cache;
use self::destination_writer::{DestinationImage, DestinationWriter};
pub use self::documents::{AttachmentOptions, RunDetails};
use self::documents::{LayerScanner, Subject};
pub(crate) use self::existing_tag::{ExistingTag, TagEntry};
pub use self::existing_tag::{TagPolicy, check_overwrite, removed_entries};
pub use self::index::IndexUpdate;
use self::index::{ExpectedIndex, kept_with, read_tag};
pub use self::report::{DeliveredCopy, DeliveredImage, DeliveredIndex, DeliveryReport};
use super::build::BuildContext;
use super::direct::AssembledImage;
use super::docker::DaemonImage;
use super::engine_choice::Engine;
use super::hybrid::HYBRID;
use super::plans::{PlannedImage, TargetHost};
use super::publication::{NamingOptions, PlannedTag, PlannedTagEntry, Publication};

/// Destinations of images, and their names.
pub struct DeliveryTarget<'a> {
    /// Names of the images.
    pub naming: NamingOptions,
    /// The destinations; the first one is reported. Without any, images stay in the daemon that
    /// made them.
    pub destinations: Vec<Destination>,
    /// The registry that images in a daemon are named after.
    pub named_after: Option<RegistryPrefix>,
    /// Format of manifests in a registry; the base's if absent.
    pub manifest_format: Option<ManifestFormat>,
    /// Policy for existing tags.
    pub existing: TagPolicy,
    /// Other tags that the caller copies the images to; checked before anything is sent.
    pub other_tags: Vec<Location>,
    /// Documents to attach to the images.
    pub documents: AttachmentOptions,
    /// Check of planned tags on their hosts, before anything is sent.
    pub review: &'a TagValidator<'a>,
    /// Permit to build, given back when all that takes memory and the network is done.
    pub permit: BuildPermit,
}

/// A permit to build while others do, or none if no limit applies.
pub type BuildPermit = Mutex<Option<OwnedSemaphorePermit>>;

impl<'a> DeliveryTarget<'a> {
    pub(crate) fn registry_only(
        naming: NamingOptions,
        registry: &RegistryPrefix,
        review: &'a TagValidator<'a>,
    ) -> Self {
        Self {
            naming,
            destinations: vec![Destination::Registry(registry.clone())],
            named_after: None,
            manifest_format: None,
            existing: TagPolicy::Replace,
            other_tags: Vec::new(),
            documents: AttachmentOptions::default(),
            review,
            permit: BuildPermit::default(),
        }
    }

    /// The target of images that an engine makes: without a destination, the direct engine writes a
    /// layout, and what a daemon makes stays there. A daemon has its own format.
    pub(crate) fn for_engine(
        mut self,
        engine: Engine,
        publication: &Publication<'_>,
    ) -> Result<Self, Problem> {
        match engine {
            Engine::Docker => self.manifest_format = None,
            Engine::Direct if self.destinations.is_empty() => {
                let folder = format!("./{}", default_layout(&publication.name, publication.tag()));
                refuse_link(&folder)?;
                self.destinations = vec![Destination::Layout(folder.into())];
            }
            Engine::Direct => {}
        }
        Ok(self)
    }

    /// The registry among the destinations.
    pub(crate) fn registry(&self) -> Option<&RegistryPrefix> {
        self.destinations.iter().find_map(|place| match place {
            Destination::Registry(registry) => Some(registry),
            Destination::Layout(_) | Destination::Archive(..) => None,
        })
    }

    /// Versions of Windows that the index's tag has at the destinations, unless it is replaced.
    pub(crate) async fn existing_versions(
        &self,
        registry: &RegistryClient,
    ) -> Result<Vec<WindowsVersion>, BoxError> {
        let naming = &self.naming;
        let reading = self.destinations.iter().map(async |destination| {
            let location = destination.location(&naming.name, naming.index_tag())?;
            let standing = ExistingTag::read(&location, self.existing, registry).await;
            let standing = standing.map_err(|error| delivery_error(&location, error))?;
            Ok::<_, BoxError>(standing.map_or_else(Vec::new, |standing| standing.versions()))
        });
        Ok(try_join_all(reading).await?.concat())
    }

    /// Rejects another tag that an image of the index has: the index would replace it.
    fn check_names(
        &self,
        destination: &Destination,
        publication: &Publication<'_>,
    ) -> Result<(), BoxError> {
        let images = publication.images.iter();
        for image in images.filter(|_| publication.index.is_some()) {
            let location = destination.location(&publication.name, &image.tag)?;
            if self.other_tags.contains(&location) {
                let problem = format!("{location} would be two images: the index, and one in it");
                return Err(Problem::request("tag/same", problem)
                    .hint("remove that --tag: the image for that version gets it anyway")
                    .into());
            }
        }
        Ok(())
    }
}

/// Delivers images to their target.
pub(crate) struct Delivery<'a> {
    pub(crate) registry: &'a RegistryClient,
    /// Display of transfers, and receiver of warnings.
    pub(crate) progress: Arc<dyn Progress>,
    /// Destinations and names.
    pub(crate) target: &'a DeliveryTarget<'a>,
    /// Existing images of the registry's repository that its index gets too.
    pub(crate) carried: Vec<TagEntry>,
    /// Other fields of an index whose tag has none to keep.
    pub(crate) index_fields: Option<&'a Map<String, Value>>,
}

/// Checks planned tags, and rejects what does not start on its hosts.
pub type TagValidator<'a> = dyn Fn(&[PlannedTag<'_>]) -> Result<(), Problem> + Sync + 'a;

/// State of a destination before anything is sent.
struct DestinationState {
    /// Digest of each image's tag, if the destination has the whole image.
    images: Vec<Option<Digest>>,
    /// Entries to keep in the index.
    kept: Vec<PlannedTagEntry>,
}

/// A destination that has all images, with the report of them.
type DeliveredDestination = (DeliveryReport, Vec<DestinationImage>, Sink);

/// Maximum number of tags to prefetch before the final tags are known.
const MAX_PREFETCHED: usize = 8;

/// Number of images whose documents are attached concurrently.
const ATTACHING: usize = 4;

/// Prefetches the tags that will probably be written.
pub(crate) fn prefetch_tags(
    target: &DeliveryTarget<'_>,
    hosts: &[TargetHost],
    registry: &RegistryClient,
) {
    if target.existing == TagPolicy::Replace {
        return;
    }
    let tags = target.naming.likely_tags(hosts);
    for destination in &target.destinations {
        for tag in tags.iter().take(MAX_PREFETCHED) {
            if let Ok(Location::Registry(reference)) =
                destination.location(&target.naming.name, tag)
            {
                let repository = registry.repository(&reference).for_push();
                repository.prefetch_manifest(tag);
            }
        }
    }
}

/// Name of the layout of an image without a destination.
pub fn default_layout(name: &str, tag: &str) -> String {
    format!("{}-{tag}", name.replace('/', "-"))
}

/// The layouts in a folder that builds wrote there without a destination: their names end with one
/// of their tags. An interrupted build leaves one without entries.
pub fn default_layouts(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(or_here(folder)).into_iter().flatten();
    let paths = entries.flatten().map(|entry| entry.path());
    paths
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_named = |tag: &String| name.ends_with(&default_layout("", tag));
            Layout::own_tags_at(path)
                .is_some_and(|tags| tags.is_empty() || tags.iter().flatten().any(is_named))
        })
        .collect()
}

/// Rejects a layout that the user did not name if it is a link: whoever made the current folder's
/// contents would decide where the image is written.
fn refuse_link(layout: &str) -> Result<(), Problem> {
    if !Path::new(layout).is_symlink() {
        return Ok(());
    }
    let problem = format!("did not write to the default output: {layout} is a link");
    Err(Problem::request("output/write", problem).hint(format!(
        "to write where it leads, add --output oci:{layout}"
    )))
}

/// Error for an image that could not be delivered.
fn delivery_error(location: &Location, source: impl Into<BoxError>) -> Problem {
    Problem::context(format!("cannot deliver {location}"), source)
}

impl<'a> Delivery<'a> {
    pub(crate) fn new(target: &'a DeliveryTarget<'a>, ctx: &'a BuildContext<'_>) -> Self {
        Self {
            registry: &ctx.registry,
            progress: Arc::clone(&ctx.progress),
            target,
            carried: Vec::new(),
            index_fields: None,
        }
    }

    /// The existing images that the index of a destination gets too.
    fn carried(&self, destination: &Destination) -> &[TagEntry] {
        match destination {
            Destination::Registry(_) => &self.carried,
            Destination::Layout(_) | Destination::Archive(..) => &[],
        }
    }

    /// Waits for an engine to build the images of a publication, in their order, and delivers them
    /// to every destination.
    pub(crate) async fn deliver<'m>(
        &self,
        publication: &Publication<'_>,
        making: impl Future<Output = Result<Vec<BuiltImage<'m>>, BoxError>>,
    ) -> Result<DeliveryReport, BoxError> {
        let (destinations, documents) = (&self.target.destinations, &self.target.documents);
        for destination in destinations {
            destination.check(publication)?;
            self.target.check_names(destination, publication)?;
            let is_docker = self.target.manifest_format == Some(ManifestFormat::Docker);
            if is_docker && destination.format().is_some() {
                let note = "--manifest-format docker does not apply to OCI layouts, which keep \
                            OCI's format";
                self.progress.note(&note);
            }
        }
        documents.check(destinations)?;
        // All steps that can fail without a destination come first, so that nothing is written
        // then. Meanwhile the registry is queried, which reports a missing login at once.
        let making = async { Box::pin(making).await };
        let (made, seen) = tokio::try_join!(making, self.check_destinations(publication))?;
        if destinations.is_empty() {
            return Ok(report::kept_in_daemon(publication, &made));
        }
        let has_bills = !documents.bills.is_empty();
        let scanner = LayerScanner::new(if has_bills { &made } else { &[] });
        let mut places = Vec::with_capacity(seen.len());
        for (destination, seen) in destinations.iter().zip(seen) {
            let published = self.publish_images(publication, &made, &seen, destination);
            places.push(Box::pin(published).await?);
        }
        // Reports follow when all images are at all destinations.
        let mut delivered = DeliveryReport::default();
        for (destination, place) in destinations.iter().zip(places) {
            let reported = self.report_documents(publication, &made, place, destination, &scanner);
            delivered.add(Box::pin(reported).await?);
        }
        Ok(delivered)
    }

    /// Attaches the documents to the images of one destination.
    async fn report_documents(
        &self,
        publication: &Publication<'_>,
        made: &[BuiltImage<'_>],
        (mut delivered, arrived, sink): DeliveredDestination,
        destination: &Destination,
        scanner: &LayerScanner,
    ) -> Result<DeliveryReport, BoxError> {
        let documents = &self.target.documents;
        if documents.is_empty() {
            return Ok(delivered);
        }
        let images = publication.images.iter().zip(made).zip(&arrived);
        let work: Vec<_> = images
            .map(|((image, made), arrived)| {
                Box::pin(async {
                    let location = destination.location(&publication.name, &image.tag)?;
                    let subject = Subject {
                        image,
                        made,
                        arrived,
                        location,
                    };
                    let progress = self.progress.as_ref();
                    let attaching = documents.attach(&subject, scanner, &sink, progress);
                    Ok::<_, BoxError>((Box::pin(attaching).await?, subject.location))
                })
            })
            .collect();
        let reported: Vec<_> = stream::iter(work).buffered(ATTACHING).try_collect().await?;
        for (documents, location) in reported {
            let reference = location.to_string();
            let images = delivered.images.iter_mut();
            for image in images.filter(|image| image.reference == reference) {
                image.documents.clone_from(&documents);
            }
        }
        Ok(delivered)
    }

    /// Checks every destination, and rejects a delivery that would remove entries there or publish
    /// what does not start.
    async fn check_destinations(
        &self,
        publication: &Publication<'_>,
    ) -> Result<Vec<DestinationState>, BoxError> {
        let destinations = self.target.destinations.iter();
        let looking =
            destinations.map(|destination| self.read_destination(publication, destination));
        let others = self.check_other_tags(publication);
        let (seen, ()) = tokio::try_join!(try_join_all(looking), others)?;
        let mut kept: Vec<&[PlannedTagEntry]> =
            seen.iter().map(|seen| seen.kept.as_slice()).collect();
        if kept.is_empty() {
            kept.push(&[]);
        }
        for (place, lines) in kept.iter().enumerate() {
            if !kept[..place].contains(lines) {
                (self.target.review)(&publication.planned_tags(lines))?;
            }
        }
        Ok(seen)
    }

    /// Rejects a delivery that would remove entries of the other tags.
    async fn check_other_tags(&self, publication: &Publication<'_>) -> Result<(), BoxError> {
        let new = publication.entries();
        let existing = self.target.existing;
        let checks = self.target.other_tags.iter().map(async |location| {
            let standing = ExistingTag::read(location, existing, self.registry).await;
            let standing = standing.map_err(|error| delivery_error(location, error))?;
            kept_with(&[], standing.as_ref(), &new, existing, location)?;
            Ok::<_, BoxError>(())
        });
        try_join_all(checks).await.map(drop)
    }

    /// Current tags of one destination, and the entries to keep.
    async fn read_destination(
        &self,
        publication: &Publication<'_>,
        destination: &Destination,
    ) -> Result<DestinationState, BoxError> {
        // The tag of a single image cannot be joined.
        let existing = match self.target.existing {
            TagPolicy::Join => TagPolicy::Protect,
            existing => existing,
        };
        // Only a registry is certain to have all of a tag's image.
        let is_registry = matches!(destination, Destination::Registry(_));
        let images = publication.images.iter().map(async |image| {
            let new = [PlannedTagEntry::from_planned(image.planned)];
            let location = destination.location(&publication.name, &image.tag)?;
            let (digest, _) = self
                .read_destination_tag(&location, &new, existing, &[])
                .await?;
            Ok::<_, BoxError>(digest.filter(|_| is_registry))
        });
        let new = publication.entries();
        let index = async {
            match &publication.index {
                Some(tag) => {
                    let location = destination.location(&publication.name, tag)?;
                    let carried = self.carried(destination);
                    self.read_destination_tag(&location, &new, self.target.existing, carried)
                        .await
                }
                None => Ok((None, Vec::new())),
            }
        };
        let (images, (_, kept)) = tokio::try_join!(try_join_all(images), index)?;
        Ok(DestinationState { images, kept })
    }

    async fn read_destination_tag(
        &self,
        location: &Location,
        new: &[PlannedTagEntry],
        existing: TagPolicy,
        carried: &[TagEntry],
    ) -> Result<(Option<Digest>, Vec<PlannedTagEntry>), BoxError> {
        let standing = ExistingTag::read(location, existing, self.registry)
            .await
            .map_err(|error| delivery_error(location, error))?;
        let kept = kept_with(carried, standing.as_ref(), new, existing, location)?;
        if let Some(standing) = &standing {
            standing.note_replaced(new, location, self.progress.as_ref());
        }
        let kept = kept.into_iter().map(|entry| entry.line).collect();
        Ok((standing.map(|standing| standing.digest), kept))
    }

    /// Delivers all images to one destination whose tags were read before.
    async fn publish_images(
        &self,
        publication: &Publication<'_>,
        made: &[BuiltImage<'_>],
        seen: &DestinationState,
        destination: &Destination,
    ) -> Result<DeliveredDestination, BoxError> {
        let place = destination.location(&publication.name, publication.tag())?;
        let sink = Sink::create(&place, self.registry).await?;
        let route = DestinationWriter::new(
            self.registry,
            Arc::clone(&self.progress),
            destination.format().or(self.target.manifest_format),
            &sink,
        );
        let sending = publish_all(publication, made, &seen.images, destination, &route);
        // The index's tag is read while the manifests are sent.
        let tag = publication.index.as_ref();
        let index = tag.map(|tag| destination.location(&publication.name, tag));
        let index = index.transpose()?;
        let reading = async {
            let Some(index) = index.as_ref().filter(|_| sink.is_shared()) else {
                return Ok(None);
            };
            route.wait_for_parts(made.len()).await;
            let read = read_tag(index, self.target.existing, self.registry).await?;
            Ok::<_, BoxError>(Some(read))
        };
        let ((arrived, images), seen_last) = tokio::try_join!(sending, Box::pin(reading))?;
        // What follows are a few documents, and a pause.
        lock(&self.target.permit).take();
        let index = match &index {
            Some(location) => {
                let expected = ExpectedIndex {
                    kept: &seen.kept,
                    carried: self.carried(destination),
                    last: seen_last,
                    images: &arrived,
                };
                let publishing = self.publish_index(publication, expected, location, &sink);
                Some(Box::pin(publishing).await?)
            }
            None => None,
        };
        sink.finish().await?;
        let delivered = DeliveryReport {
            images,
            index,
            failed: Vec::new(),
        };
        Ok((delivered, arrived, sink))
    }
}

/// Publishes all images at one destination; `before` are the previous values of their tags. Returns
/// them as they are there, and what to report of them.
async fn publish_all(
    publication: &Publication<'_>,
    made: &[BuiltImage<'_>],
    before: &[Option<Digest>],
    destination: &Destination,
    route: &DestinationWriter<'_>,
) -> Result<(Vec<DestinationImage>, Vec<DeliveredImage>), BoxError> {
    let images = publication.images.iter().zip(made).zip(before);
    let work: Vec<_> = images
        .map(|((image, made), before)| {
            Box::pin(async {
                let location = destination.location(&publication.name, &image.tag)?;
                let arrived = route.publish(image, made, before.as_ref(), &location).await;
                let arrived = arrived.map_err(|error| delivery_error(&location, error))?;
                let reported = report::add_published(image, made, &arrived, &location);
                Ok::<_, BoxError>((arrived, reported))
            })
        })
        .collect();
    // A daemon exports images one after the other.
    let in_daemon = made
        .iter()
        .any(|made| matches!(made, BuiltImage::InDaemon(_)));
    let at_once = if in_daemon { 1 } else { work.len().max(1) };
    let sending = stream::iter(work).buffered(at_once);
    let done: Vec<_> = sending.try_collect().await?;
    let (arrived, reported): (Vec<_>, Vec<Vec<_>>) = done.into_iter().unzip();
    Ok((arrived, reported.into_iter().flatten().collect()))
}

/// An image that an engine made.
pub(crate) enum BuiltImage<'a> {
    /// Its documents and added layers are here, the base's layers where the base is.
    Assembled(Box<AssembledImage>),
    /// All of it is in a daemon.
    InDaemon(Box<DaemonImage<'a>>),
}

impl BuiltImage<'_> {
    /// The image that an update made it from.
    fn updated(&self) -> Option<&SourceFile> {
        match self {
            Self::Assembled(assembled) => assembled.carried.as_ref().map(|reused| &reused.of),
            Self::InDaemon(_) => None,
        }
    }

    /// Name of the engine that made it.
    fn engine(&self, planned: &PlannedImage) -> &'static str {
        match self {
            _ if planned.windows.is_some() => HYBRID,
            Self::Assembled(_) if self.updated().is_some() => "update",
            Self::Assembled(_) => "direct",
            Self::InDaemon(_) => "docker",
        }
    }
}
