//! Bringing images to where they belong, whichever engine made them.
//!
//! While the images are made, a registry is asked what their tags mean so far. Then each destination
//! gets what it lacks: the parts of an image, its manifest, and at last the index over several.

mod destination;
mod error;
mod made;
mod output_in_input;
mod report;
mod route;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;

use futures_util::future::try_join_all;
use futures_util::{StreamExt, TryStreamExt, stream};

use self::route::{Arrived, Route};
use super::error::EngineError;
use super::publication::{Line, Outlook, Publication, arrange};
use crate::oci::document::{Descriptor, Digest, Document, DocumentError, Flavour, Index, Verbatim};
use crate::oci::remote::Registry;
use crate::oci::store::Sink;
use crate::progress::Progress;

pub use self::destination::Destination;
pub use self::error::{DeliveryError, Unserved};
pub use self::made::Made;
pub use self::report::{Delivered, DeliveredCopy, DeliveredImage, DeliveredIndex};

/// Brings images to destinations; the first one is the one that is reported.
pub struct Delivery<'a> {
    /// The client for all registries.
    pub registry: &'a Registry,
    /// Who is told.
    pub progress: Arc<dyn Progress>,
    /// Where images go. Without any they stay where they were made, which only a daemon's can.
    pub destinations: &'a [Destination],
    /// The words in which manifests are written in a registry; none for the base's own.
    pub flavour: Option<Flavour>,
    /// Who says whether what will be published serves its hosts, before anything is sent.
    pub review: &'a Review<'a>,
}

/// Looks at what tags will mean, and refuses what does not start on a host that it is for.
pub type Review<'a> = dyn Fn(&[Outlook<'_>]) -> Result<(), Unserved> + Sync + 'a;

impl Delivery<'_> {
    /// Waits for an engine to make the images of a publication, in their order, and brings them to
    /// every destination.
    pub async fn deliver<'m>(
        &self,
        publication: &Publication<'_>,
        making: impl Future<Output = Result<Vec<Made<'m>>, EngineError>>,
    ) -> Result<Delivered, DeliveryError> {
        for destination in self.destinations {
            destination.check(publication)?;
        }
        (self.review)(&publication.outlooks(&[]))?;
        // Everything that can fail without a destination comes first: nothing is written there then.
        // A registry is asked meanwhile what it has, and whoever is not let in hears it at once.
        let making = async { Ok(Box::pin(making).await?) };
        let looking = self
            .destinations
            .iter()
            .map(|it| self.look(publication, it));
        let (made, before) = tokio::try_join!(making, try_join_all(looking))?;
        if self.destinations.is_empty() {
            return Ok(report::left_behind(publication, &made));
        }
        let mut delivered = Delivered::default();
        for (destination, before) in self.destinations.iter().zip(before) {
            let brought = self.bring(publication, &made, &before, destination);
            delivered.add(Box::pin(brought).await?);
        }
        Ok(delivered)
    }

    /// What the images' tags mean so far, where the destination is a registry.
    async fn look(
        &self,
        publication: &Publication<'_>,
        destination: &Destination,
    ) -> Result<Vec<Option<Digest>>, DeliveryError> {
        let Destination::Registry(_) = destination else {
            return Ok(vec![None; publication.images.len()]);
        };
        try_join_all(publication.images.iter().map(async |image| {
            let location = destination.location(&publication.name, &image.tag)?;
            let sink = Sink::create(&location, self.registry).await?;
            let published = sink.published(&image.tag).await;
            published.map_err(|error| DeliveryError::image(&location, error))
        }))
        .await
    }

    /// Brings all images to one destination; `before` is what their tags meant there.
    async fn bring(
        &self,
        publication: &Publication<'_>,
        made: &[Made<'_>],
        before: &[Option<Digest>],
        destination: &Destination,
    ) -> Result<Delivered, DeliveryError> {
        let place = destination.location(&publication.name, publication.tag())?;
        let sink = Sink::create(&place, self.registry).await?;
        let route = Route::new(
            self.registry,
            Arc::clone(&self.progress),
            destination.flavour().or(self.flavour),
            &sink,
        );
        let images = publication.images.iter().zip(made).zip(before);
        let work: Vec<_> = images
            .map(|((image, made), before)| {
                Box::pin(async {
                    let location = destination.location(&publication.name, &image.tag)?;
                    let arrived = route.bring(image, made, before.as_ref(), &location).await;
                    let arrived =
                        arrived.map_err(|error| DeliveryError::image(&location, error))?;
                    let reported = report::arrived(image, made, &arrived, &location);
                    Ok::<_, DeliveryError>((arrived, reported))
                })
            })
            .collect();
        // A daemon gives its images out one after the other.
        let in_daemon = made.iter().any(|made| matches!(made, Made::InDaemon(_)));
        let at_once = if in_daemon { 1 } else { work.len().max(1) };
        let done: Vec<_> = stream::iter(work).buffered(at_once).try_collect().await?;
        let (arrived, images): (Vec<Arrived>, Vec<Vec<DeliveredImage>>) = done.into_iter().unzip();
        let images = images.into_iter().flatten().collect();
        let index = match &publication.index {
            Some(tag) => {
                let location = destination.location(&publication.name, tag)?;
                let digest = publish_index(publication, tag, &arrived, &sink).await?;
                Some(DeliveredIndex::new(&location, &digest))
            }
            None => None,
        };
        sink.finish().await?;
        Ok(Delivered { images, index })
    }
}

/// Puts an index over images that are there. One over a new image is new itself, so only where none
/// is new it is asked for first.
async fn publish_index(
    publication: &Publication<'_>,
    tag: &str,
    arrived: &[Arrived],
    sink: &Sink,
) -> Result<Digest, DeliveryError> {
    let lines = publication.images.iter().map(Line::planned);
    let entries = arrived.iter().map(|it| it.image.index_entry());
    let document = index_over(lines.zip(entries).collect())?;
    let none_is_new = arrived.iter().all(|image| image.up_to_date);
    if !(none_is_new && sink.publishes(&document, Some(tag)).await?) {
        sink.publish(&document, Some(tag)).await?;
    }
    Ok(document.digest().clone())
}

fn index_over(mut entries: Vec<(Line, Descriptor)>) -> Result<Document, DocumentError> {
    arrange(&mut entries, |(line, _)| line);
    let entries: Vec<Descriptor> = entries.into_iter().map(|(_, entry)| entry).collect();
    let flavour = entries
        .first()
        .map_or(Flavour::Oci, |entry| Flavour::of(&entry.media_type));
    Ok(Document::Index(Verbatim::new(Index::new(
        flavour, entries,
    ))?))
}
