//! Bringing built images to where they belong: a tag for each, and an index over several.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::try_join_all;

use super::addition::{Additions, AssembleOptions};
use super::delivered::{Delivered, DeliveredImage, DeliveredIndex, base_of, layers_of};
use super::direct::{Assembled, assemble, publish};
use super::docker::DaemonError;
use super::error::DirectError;
use super::order::PlannedImage;
use super::output;
use crate::diagnose::{Blame, Diagnose};
use crate::oci::copy::Copier;
use crate::oci::document::{Descriptor, Digest, Document, DocumentError, Flavour, Index, Sealed};
use crate::oci::reference::{Reference, ReferenceError, parse_reference};
use crate::oci::remote::Registry;
use crate::oci::store::{Location, Sink, Source, StoreError};
use crate::progress::Progress;

/// How many layers of bases are on their way at once, over all images.
pub(super) const TRANSFERS: usize = 6;

/// Where images go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// A registry, with the path in front of the image's name.
    Registry(String),
    /// An OCI layout directory.
    Layout(PathBuf),
    /// A docker-archive file.
    Archive(PathBuf),
}

/// Under which names images go there.
#[derive(Debug, Clone)]
pub struct Naming {
    /// The image's name, without registry and tag.
    pub name: String,
    /// The tag that was asked for: of the one image, or of the index over several.
    pub tag: Option<String>,
}

/// Why images did not arrive.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// Registry, name and tag do not make a reference.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// An image could not be made or sent.
    #[error("{image} could not be built")]
    Image {
        /// Its name and tag.
        image: String,
        /// Why.
        #[source]
        source: Box<DirectError>,
    },
    /// The daemon could not make or send an image.
    #[error("{image} could not be built")]
    Daemon {
        /// Its name and tag.
        image: String,
        /// Why.
        #[source]
        source: Box<DaemonError>,
    },
    /// Two hosts got the same base, but their images differ.
    #[error(
        "hosts {first} and {second} share the base {base}, and so the tag {tag}, but their images differ"
    )]
    SameTag {
        /// One host.
        first: String,
        /// The other.
        second: String,
        /// What they share.
        base: String,
        /// The tag that can mean only one of them.
        tag: String,
    },
    /// The images would go into a folder that goes into the images.
    #[error("the output {} lies in {}, which is to be in the image", output.display(), folder.display())]
    OutputInside {
        /// Where images go.
        output: PathBuf,
        /// The folder of the recipe or the context.
        folder: PathBuf,
    },
    /// A thread of the program ended early.
    #[error("the work on {0} was lost")]
    Lost(String),
    /// The documents of an image or of the index could not be made.
    #[error("the image's documents could not be written")]
    Documents(#[from] DocumentError),
    /// A place failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Diagnose for DeliveryError {
    fn hint(&self) -> Option<String> {
        self.hint()
    }

    fn blame(&self) -> Blame {
        match self {
            Self::Reference(_) | Self::SameTag { .. } | Self::OutputInside { .. } => Blame::Request,
            Self::Image { source, .. } => source.blame(),
            _ => Blame::Circumstances,
        }
    }
}

impl DeliveryError {
    /// What to type next, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Image { source, .. } => source.hint(),
            Self::Daemon { source, .. } => source.hint(),
            Self::Store(error) => error.hint(),
            Self::SameTag { .. } => {
                Some("build for one of the two hosts, or use --match exact".to_owned())
            }
            Self::OutputInside { .. } => Some(
                "write it elsewhere, as with --output oci:../image, or name it in .dockerignore"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// Makes images from their plans, all at once, and brings them to where they belong.
pub struct Delivery<'a> {
    registry: &'a Registry,
    options: AssembleOptions,
    progress: Arc<dyn Progress>,
    additions: Arc<Additions>,
}

/// The way of all images of one delivery.
struct Route<'a> {
    destination: &'a Destination,
    naming: &'a Naming,
    several: bool,
    sink: &'a Sink,
    copier: &'a Copier,
}

impl<'a> Delivery<'a> {
    /// A delivery with a client for all registries.
    pub fn new(
        registry: &'a Registry,
        options: AssembleOptions,
        progress: Arc<dyn Progress>,
    ) -> Self {
        Self {
            registry,
            options,
            progress,
            additions: Arc::default(),
        }
    }

    /// Builds once and delivers to every destination; the first one is the one that is told of.
    pub async fn deliver(
        &self,
        images: &[PlannedImage],
        destinations: &[Destination],
        naming: &Naming,
    ) -> Result<Delivered, DeliveryError> {
        check_tags(images, naming)?;
        for destination in destinations {
            check_output(images, destination)?;
        }
        // Everything that can fail without a destination comes first: nothing is written there then.
        // A registry is asked meanwhile what it has, and whoever is not let in hears it at once.
        let assembling = try_join_all(images.iter().map(|image| self.assemble(image)));
        let looking = destinations.iter().map(|it| self.look(images, it, naming));
        let (assembled, published) = tokio::try_join!(assembling, try_join_all(looking))?;
        let mut delivered = Delivered::default();
        for (destination, published) in destinations.iter().zip(published) {
            let here = assembled
                .iter()
                .map(|image| destination.in_its_words(image))
                .collect::<Result<Vec<_>, _>>()?;
            let brought = self.bring(images, &here, &published, destination, naming);
            delivered.add(brought.await?);
        }
        Ok(delivered)
    }

    /// What the images' tags mean so far, where the destination is a registry.
    async fn look(
        &self,
        images: &[PlannedImage],
        destination: &Destination,
        naming: &Naming,
    ) -> Result<Vec<Option<Digest>>, DeliveryError> {
        let Destination::Registry(_) = destination else {
            return Ok(vec![None; images.len()]);
        };
        let several = images.len() > 1;
        try_join_all(images.iter().map(async |image| {
            let tag = naming.tag_of(image, several);
            let location = destination.location(naming, &tag)?;
            let sink = Sink::create(&location, self.registry).await?;
            let published = sink.published(&tag).await;
            published.map_err(|error| failed(&location, error.into()))
        }))
        .await
    }

    async fn bring(
        &self,
        images: &[PlannedImage],
        assembled: &[Assembled],
        published: &[Option<Digest>],
        destination: &Destination,
        naming: &Naming,
    ) -> Result<Delivered, DeliveryError> {
        let several = images.len() > 1;
        let copier = Copier::new(self.registry.clone(), Arc::clone(&self.progress), TRANSFERS);
        let first = images.first().map_or_else(
            || naming.index_tag().to_owned(),
            |image| naming.tag_of(image, several),
        );
        let route = Route {
            destination,
            naming,
            several,
            sink: &Sink::create(&destination.location(naming, &first)?, self.registry).await?,
            copier: &copier,
        };
        let work =
            images
                .iter()
                .zip(assembled)
                .zip(published)
                .map(|((image, assembled), published)| {
                    self.deliver_one(image, assembled, published.as_ref(), &route)
                });
        let done = try_join_all(work).await?;
        let index = if several {
            let entries = done.iter().map(|(_, entry)| entry.clone()).collect();
            let none_is_new = done.iter().all(|(image, _)| image.up_to_date);
            Some(deliver_index(entries, none_is_new, destination, naming, route.sink).await?)
        } else {
            None
        };
        route.sink.finish().await?;
        Ok(Delivered {
            images: done.into_iter().map(|(image, _)| image).collect(),
            index,
        })
    }

    async fn deliver_one(
        &self,
        image: &PlannedImage,
        assembled: &Assembled,
        published: Option<&Digest>,
        route: &Route<'_>,
    ) -> Result<(DeliveredImage, Descriptor), DeliveryError> {
        let tag = route.naming.tag_of(image, route.several);
        let location = route.destination.location(route.naming, &tag)?;
        let source = Source::Registry(self.registry.repository(&image.base.reference));
        let digest = assembled.image.digest();
        let up_to_date = published == Some(digest);
        if !up_to_date {
            let (sink, copier) = (route.sink, route.copier);
            Box::pin(publish(assembled, &source, sink, location.tag(), copier))
                .await
                .map_err(|error| failed(&location, error))?;
        }
        let delivered = DeliveredImage {
            reference: location.to_string(),
            digest: digest.to_string(),
            engine: "direct",
            host_build: image.plan.host_build.to_string(),
            os_version: image.base.os_version.os_version(),
            base: base_of(image),
            layers: layers_of(&assembled.image, assembled.base_layers),
            pushed: matches!(route.destination, Destination::Registry(_)),
            up_to_date,
            copies: Vec::new(),
        };
        Ok((delivered, assembled.image.index_entry()))
    }

    /// Compression and hashing would keep the network waiting, so they get a thread of their own.
    async fn assemble(&self, image: &PlannedImage) -> Result<Assembled, DeliveryError> {
        let plan = image.plan.clone();
        let base = image.base.image.clone();
        let options = self.options.clone();
        let additions = Arc::clone(&self.additions);
        let progress = Arc::clone(&self.progress);
        let name = format!("{} for {}", plan.name, plan.host_build);
        let work = move || assemble(&plan, &base, &options, &additions, progress.as_ref());
        tokio::task::spawn_blocking(work)
            .await
            .map_err(|_| DeliveryError::Lost(name.clone()))?
            .map_err(|source| DeliveryError::Image {
                image: name,
                source: Box::new(source),
            })
    }
}

fn failed(image: &Location, source: DirectError) -> DeliveryError {
    DeliveryError::Image {
        image: image.to_string(),
        source: Box::new(source),
    }
}

/// Puts an index over images that are there. One over a new image is new itself, so only where
/// none is new it is asked for first.
pub(super) async fn deliver_index(
    mut entries: Vec<Descriptor>,
    none_is_new: bool,
    destination: &Destination,
    naming: &Naming,
    sink: &Sink,
) -> Result<DeliveredIndex, DeliveryError> {
    let location = destination.location(naming, naming.index_tag())?;
    entries.sort_by_key(version_of);
    entries.dedup_by(|a, b| a.digest == b.digest);
    let flavour = entries
        .first()
        .map_or(Flavour::Oci, |entry| Flavour::of(&entry.media_type));
    let index = Document::Index(Sealed::new(Index::new(flavour, entries))?);
    if !(none_is_new && sink.publishes(&index, location.tag()).await?) {
        sink.publish(&index, location.tag()).await?;
    }
    Ok(DeliveredIndex {
        reference: location.to_string(),
        digest: index.digest().to_string(),
        copies: Vec::new(),
    })
}

/// The order of an index: by build and revision, not by text.
fn version_of(entry: &Descriptor) -> Option<crate::windows::version::WindowsVersion> {
    entry.platform.as_ref()?.os_version.as_ref()?.parse().ok()
}

/// One tag cannot mean two different images.
pub(super) fn check_tags(images: &[PlannedImage], naming: &Naming) -> Result<(), DeliveryError> {
    for (index, image) in images.iter().enumerate() {
        for earlier in &images[..index] {
            let mut same = image.plan.clone();
            same.host_build = earlier.plan.host_build;
            if same.base == earlier.plan.base && same != earlier.plan {
                return Err(DeliveryError::SameTag {
                    first: earlier.plan.host_build.to_string(),
                    second: image.plan.host_build.to_string(),
                    base: same.base.name,
                    tag: naming.tag_of(image, true),
                });
            }
        }
    }
    Ok(())
}

fn check_output(images: &[PlannedImage], destination: &Destination) -> Result<(), DeliveryError> {
    let (Destination::Layout(output) | Destination::Archive(output)) = destination else {
        return Ok(());
    };
    let mut files = images.iter().flat_map(|image| &image.plan.files);
    match files.find_map(|file| output::folder_around(output, file)) {
        Some(folder) => Err(DeliveryError::OutputInside {
            output: output.clone(),
            folder: folder.to_owned(),
        }),
        None => Ok(()),
    }
}

impl Naming {
    /// The tag of the index over several images.
    pub fn index_tag(&self) -> &str {
        self.tag.as_deref().unwrap_or("latest")
    }

    /// One image gets the tag that was asked for, several get it with their version behind it; an
    /// image without any is known by its version.
    pub fn tag_of(&self, image: &PlannedImage, several: bool) -> String {
        let version = image.base.os_version.os_version();
        match (&self.tag, several) {
            (Some(tag), false) => tag.clone(),
            (Some(tag), true) => format!("{tag}-{version}"),
            (None, _) => version,
        }
    }
}

impl Destination {
    /// The image in the words that are understood there.
    fn in_its_words(&self, image: &Assembled) -> Result<Assembled, DocumentError> {
        match self {
            // A layout with Docker's documents is one that other tools do not read.
            Self::Layout(_) => image.in_flavour(Flavour::Oci),
            Self::Registry(_) | Self::Archive(_) => Ok(image.clone()),
        }
    }

    /// Where an image of that tag goes.
    pub fn location(&self, naming: &Naming, tag: &str) -> Result<Location, ReferenceError> {
        Ok(match self {
            Self::Registry(registry) => Location::Registry(reference(registry, &naming.name, tag)?),
            Self::Layout(dir) => Location::Layout {
                dir: dir.clone(),
                tag: Some(tag.to_owned()),
            },
            Self::Archive(file) => Location::Archive {
                file: file.clone(),
                name: Some(format!("{}:{tag}", naming.name)),
            },
        })
    }
}

fn reference(registry: &str, name: &str, tag: &str) -> Result<Reference, ReferenceError> {
    parse_reference(&format!("{}/{name}:{tag}", registry.trim_end_matches('/')))
}
