//! Why images did not arrive.

use std::path::PathBuf;

use wincimg_common::diagnose::Diagnose;
use wincimg_inspect::provenance::AttachError;
use wincimg_oci::copy::CopyError;
use wincimg_oci::document::DocumentError;
use wincimg_oci::reference::ReferenceError;
use wincimg_oci::store::{Location, StoreError};

use super::standing::Taken;
use crate::docker::{DockerError, SaveError};
use crate::error::EngineError;

/// Why images did not arrive.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "output/write")]
pub enum DeliveryError {
    /// Registry, name and tag do not make a reference.
    #[error(transparent)]
    #[diagnose(forward)]
    Reference(#[from] ReferenceError),
    /// An image could not be made.
    #[error(transparent)]
    #[diagnose(forward)]
    Engine(#[from] EngineError),
    /// An image could not be brought to its place.
    #[error("could not deliver {image}")]
    #[diagnose(forward)]
    Image {
        /// Where it should be.
        image: String,
        /// Why.
        source: Box<RouteError>,
    },
    /// The images would go into a folder that goes into the images.
    #[error("the output {} is inside {}, which goes into the image", output.display(), folder.display())]
    #[diagnose(code = "output/inside", blame = Request, hint = "write it elsewhere, as with --output oci:../image, or name it in .dockerignore")]
    OutputInside {
        /// Where images go.
        output: PathBuf,
        /// The folder of the recipe or the context.
        folder: PathBuf,
    },
    /// What would be published does not start where it is to.
    #[error(transparent)]
    #[diagnose(forward)]
    Unserved(#[from] Unserved),
    /// A tag has what the build would take away.
    #[error(transparent)]
    #[diagnose(forward)]
    Taken(#[from] Taken),
    /// Others publish under the tag all the time.
    #[error("gave up publishing {place}: other builds published it again and again meanwhile")]
    #[diagnose(code = "tag/contended", hint = "run the same command again")]
    Contended {
        /// The tag.
        place: String,
    },
    /// There is nowhere for documents about images.
    #[error("{place} has no place for documents beside an image")]
    #[diagnose(code = "usage/documents", blame = Request, hint = "push to a registry with --registry … --push, or write --output oci:DIR")]
    NoPlaceForDocuments {
        /// Where images would go.
        place: &'static str,
    },
    /// All images are there, but a document about one of them is not.
    #[error(
        "delivered all images, but could not attach the {document} document to {image}{}",
        and_attached(attached)
    )]
    #[diagnose(forward, blame = Circumstances, hint = source.diagnosis().hint.or_else(|| Some("run the same command again: what is there is not sent again".to_owned())))]
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
    #[diagnose(forward, blame = Circumstances)]
    Store(#[from] StoreError),
}

fn and_attached(attached: &[&str]) -> String {
    if attached.is_empty() {
        return String::new();
    }
    format!(" (attached: {})", attached.join(", "))
}

impl Taken {
    pub(super) fn way_out(&self) -> &'static str {
        if self.can_join {
            "add --join to keep it beside what is built, or --replace to drop it"
        } else {
            "choose another --tag, or add --replace to drop it"
        }
    }
}

/// Hosts that what would be published does not serve.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Diagnose)]
#[error("the {what} {tag} would not start on {host}: {reason}")]
#[diagnose(code = "tag/unserved", blame = Answer, hint = (*what == "index").then(|| "publish the images under their versions' tags alone with --no-index, and let pods name the one for their hosts".to_owned()))]
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

/// Why one image did not arrive at its place.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "daemon/answer")]
pub enum RouteError {
    /// The daemon did not push it.
    #[error("built and kept in the Docker daemon as {kept}; not pushed")]
    #[diagnose(forward, blame = Circumstances)]
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
    #[diagnose(forward, blame = Circumstances)]
    Save(#[from] SaveError),
    /// A part could not be copied.
    #[error(transparent)]
    #[diagnose(forward, blame = Circumstances)]
    Copy(#[from] CopyError),
    /// The image's documents do not fit together.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A place failed.
    #[error(transparent)]
    #[diagnose(forward, blame = Circumstances)]
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
