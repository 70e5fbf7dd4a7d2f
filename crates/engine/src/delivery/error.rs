//! Why images did not arrive.

use std::path::PathBuf;

use wincimg_common::diagnose::{Blame, Diagnose, Excerpt};
use wincimg_inspect::provenance::AttachError;
use wincimg_oci::copy::CopyError;
use wincimg_oci::document::DocumentError;
use wincimg_oci::reference::ReferenceError;
use wincimg_oci::store::{Location, StoreError};

use super::standing::Taken;
use crate::docker::{DockerError, SaveError};
use crate::error::EngineError;

/// Why images did not arrive.
#[derive(Debug, thiserror::Error)]
pub enum DeliveryError {
    /// Registry, name and tag do not make a reference.
    #[error(transparent)]
    Reference(#[from] ReferenceError),
    /// An image could not be made.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// An image could not be brought to its place.
    #[error("could not deliver {image}")]
    Image {
        /// Where it should be.
        image: String,
        /// Why.
        source: Box<RouteError>,
    },
    /// The images would go into a folder that goes into the images.
    #[error("the output {} is inside {}, which goes into the image", output.display(), folder.display())]
    OutputInside {
        /// Where images go.
        output: PathBuf,
        /// The folder of the recipe or the context.
        folder: PathBuf,
    },
    /// What would be published does not start where it is to.
    #[error(transparent)]
    Unserved(#[from] Unserved),
    /// A tag has what the build would take away.
    #[error(transparent)]
    Taken(#[from] Taken),
    /// Others publish under the tag all the time.
    #[error("gave up publishing {place}: other builds published it again and again meanwhile")]
    Contended {
        /// The tag.
        place: String,
    },
    /// There is nowhere for documents about images.
    #[error("{place} has no place for documents beside an image")]
    NoPlaceForDocuments {
        /// Where images would go.
        place: &'static str,
    },
    /// All images are there, but a document about one of them is not.
    #[error(
        "delivered all images, but could not attach the {document} document to {image}{}",
        and_attached(attached)
    )]
    Document {
        /// The image.
        image: String,
        /// What could not be attached.
        document: &'static str,
        /// What was.
        attached: Vec<&'static str>,
        /// Why.
        source: Box<AttachError>,
    },
    /// The index could not be written.
    #[error("could not write the index")]
    Index(#[from] DocumentError),
    /// A place failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn and_attached(attached: &[&str]) -> String {
    if attached.is_empty() {
        return String::new();
    }
    format!(" (attached: {})", attached.join(", "))
}

impl Diagnose for Taken {
    fn hint(&self) -> Option<String> {
        let hint = if self.can_join {
            "add --join to keep it beside what is built, or --replace to drop it"
        } else {
            "choose another --tag, or add --replace to drop it"
        };
        Some(hint.to_owned())
    }

    fn blame(&self) -> Blame {
        Blame::Answer
    }
}

/// Hosts that what would be published does not serve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the {what} {tag} would not start on {host}: {reason}")]
pub struct Unserved {
    /// Index or image.
    pub what: &'static str,
    /// Its tag.
    pub tag: String,
    /// The first such host.
    pub host: String,
    /// Why not.
    pub reason: String,
}

impl Diagnose for Unserved {
    fn hint(&self) -> Option<String> {
        (self.what == "index").then(|| {
            "publish the images under their versions' tags alone with --no-index, and let pods name \
             the one for their hosts"
                .to_owned()
        })
    }

    fn blame(&self) -> Blame {
        Blame::Answer
    }
}

/// Why one image did not arrive at its place.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// The daemon did not push it.
    #[error("built and kept in the Docker daemon as {kept}; not pushed")]
    NotPushed {
        /// What the daemon calls it.
        kept: String,
        /// Why not.
        source: DockerError,
    },
    /// What the daemon pushed or saved is not an image.
    #[error("{reference} is an index: expected the image that Docker sent")]
    NotAnImage {
        /// Where it is.
        reference: String,
    },
    /// The daemon did not save it.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// A part could not be copied.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The image's documents do not fit together.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A place failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl DeliveryError {
    pub(super) fn image(location: &Location, source: impl Into<RouteError>) -> Self {
        Self::Image {
            image: location.to_string(),
            source: Box::new(source.into()),
        }
    }
}

impl Diagnose for DeliveryError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Engine(error) => error.hint(),
            Self::Image { source, .. } => source.hint(),
            Self::Store(error) => error.hint(),
            Self::Unserved(error) => error.hint(),
            Self::Taken(error) => error.hint(),
            Self::Contended { .. } => Some("run the same command again".to_owned()),
            Self::NoPlaceForDocuments { .. } => Some(
                "push to a registry with --registry … --push, or write --output oci:DIR".to_owned(),
            ),
            Self::Document { source, .. } => source.hint().or_else(|| {
                Some("run the same command again: what is there is not sent again".to_owned())
            }),
            Self::OutputInside { .. } => Some(
                "write it elsewhere, as with --output oci:../image, or name it in .dockerignore"
                    .to_owned(),
            ),
            Self::Reference(_) | Self::Index(_) => None,
        }
    }

    fn blame(&self) -> Blame {
        match self {
            Self::Reference(_) | Self::OutputInside { .. } | Self::NoPlaceForDocuments { .. } => {
                Blame::Request
            }
            Self::Engine(error) => error.blame(),
            Self::Unserved(error) => error.blame(),
            Self::Taken(error) => error.blame(),
            Self::Image { source, .. } => source.blame(),
            Self::Store(_) | Self::Index(_) | Self::Document { .. } | Self::Contended { .. } => {
                Blame::Circumstances
            }
        }
    }

    fn excerpt(&self) -> Option<Excerpt> {
        match self {
            Self::Engine(error) => error.excerpt(),
            Self::Image { source, .. } => source.excerpt(),
            Self::Store(error) => error.excerpt(),
            _ => None,
        }
    }
}

impl Diagnose for RouteError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NotPushed { source, .. } => source.hint(),
            Self::Copy(error) => error.hint(),
            Self::Store(error) => error.hint(),
            Self::Save(error) => error.hint(),
            Self::NotAnImage { .. } | Self::Document(_) => None,
        }
    }

    fn excerpt(&self) -> Option<Excerpt> {
        match self {
            Self::Copy(error) => error.excerpt(),
            Self::Store(error) => error.excerpt(),
            _ => None,
        }
    }
}
