//! Why an image could not be put on another base.

use wincimg_common::diagnose::Diagnose;
use wincimg_inspect::base::FactsError;
use wincimg_inspect::bases::{BASE_NAMES, NameError, ResolveError};
use wincimg_inspect::library::LibraryError;
use wincimg_inspect::{InspectError, LayerError};
use wincimg_oci::document::DocumentError;

use crate::delivery::DeliveryError;
use crate::plans::PlanError;
use crate::publication::PublicationError;

/// Why an image could not be put on another base.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "update/failed", blame = Answer)]
pub enum UpdateError {
    /// The image could not be read.
    #[error(transparent)]
    #[diagnose(forward)]
    Image(#[from] InspectError),
    /// It is for other systems.
    #[error("{image} has no image for Windows: it has {platforms}")]
    #[diagnose(code = "image/not-windows")]
    NotWindows {
        /// The image.
        image: String,
        /// What it has.
        platforms: String,
    },
    /// Its version of Windows is not one.
    #[error("{image} has {version:?} as its os.version: expected 10.0.BUILD.REVISION")]
    #[diagnose(code = "image/version")]
    Version {
        /// The image.
        image: String,
        /// What it says.
        version: String,
    },
    /// What was named as its base is not the name of one.
    #[error(transparent)]
    #[diagnose(forward)]
    Name(#[from] NameError),
    /// Nothing says what it was built on.
    #[error(
        "cannot tell which base {image} was built on: it names none, and its lowest layers are not \
         those of {}",
        tried.join(", ")
    )]
    #[diagnose(
        code = "base/unknown",
        hint = "name the repository of its base with --base; {BASE_NAMES}, and --base-registry says where they are"
    )]
    UnknownBase {
        /// The image.
        image: String,
        /// The bases whose layers were compared.
        tried: Vec<String>,
    },
    /// It says to be built on what is somewhere that nobody named.
    #[error("{image} says to be built on {base}: that host is not asked because an image says so")]
    #[diagnose(code = "base/elsewhere", hint = "if that is right, add --base {base}")]
    BaseElsewhere {
        /// The image.
        image: String,
        /// What it says.
        base: String,
    },
    /// The base that it was built on is not there any more.
    #[error(
        "the base that {image} was built on is gone: {base} has no image of {version} with its layers"
    )]
    #[diagnose(
        code = "base/gone",
        hint = "name a repository that still has it with --base, such as a mirror's, or build the image again: `wincimg build`"
    )]
    BaseGone {
        /// The image.
        image: String,
        /// Where it was looked for.
        base: String,
        /// The version of Windows.
        version: String,
    },
    /// Two repositories have its lowest layers.
    #[error("the lowest layers of {image} are those of {}", bases.join(" and of "))]
    #[diagnose(code = "base/ambiguous", hint = Some(format!("say which one is meant: --base {}", bases.first().map_or("", String::as_str))))]
    SeveralBases {
        /// The image.
        image: String,
        /// The repositories.
        bases: Vec<String>,
    },
    /// No base fits a host, or none could be looked for.
    #[error(transparent)]
    #[diagnose(forward)]
    Base(#[from] PlanError),
    /// One of its layers could not be read.
    #[error(transparent)]
    #[diagnose(forward, blame = Circumstances, excerpt = None)]
    Layer(Box<LayerError>),
    /// What is inside a base could not be found out.
    #[error(
        "cannot find out what is inside {base}, with which the layers of the image are compared"
    )]
    #[diagnose(forward, blame = Circumstances, excerpt = None)]
    Look {
        /// The base.
        base: String,
        /// Why not.
        source: Box<LibraryError>,
    },
    /// What is known of a base cannot be read.
    #[error(transparent)]
    #[diagnose(forward, blame = Circumstances, hint = "run the same command again: it is read from the base anew")]
    Facts(#[from] FactsError),
    /// What it comes to cannot be published.
    #[error(transparent)]
    #[diagnose(forward)]
    Publication(#[from] PublicationError),
    /// The images did not arrive.
    #[error(transparent)]
    #[diagnose(forward)]
    Delivery(Box<DeliveryError>),
    /// The new image cannot be written.
    #[error(transparent)]
    #[diagnose(code = "image/document", blame = Circumstances)]
    Document(#[from] DocumentError),
}

impl From<LayerError> for UpdateError {
    fn from(error: LayerError) -> Self {
        Self::Layer(Box::new(error))
    }
}

impl UpdateError {
    /// What a search for a base ended with, where it is that.
    pub fn of_search(&self) -> Option<&ResolveError> {
        match self {
            Self::Base(error) => error.search(),
            _ => None,
        }
    }
}

impl From<DeliveryError> for UpdateError {
    fn from(error: DeliveryError) -> Self {
        Self::Delivery(Box::new(error))
    }
}
