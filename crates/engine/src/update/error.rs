//! Why an image could not be put on another base.

use wincimg_common::diagnose::{Blame, Diagnose, Excerpt};
use wincimg_inspect::base::FactsError;
use wincimg_inspect::bases::{BASE_NAMES, NameError, ResolveError};
use wincimg_inspect::library::LibraryError;
use wincimg_inspect::{InspectError, LayerError};
use wincimg_oci::document::DocumentError;

use crate::delivery::DeliveryError;
use crate::plans::PlanError;
use crate::publication::PublicationError;

/// Why an image could not be put on another base.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// The image could not be read.
    #[error(transparent)]
    Image(#[from] InspectError),
    /// It is for other systems.
    #[error("{image} has no image for Windows: it has {platforms}")]
    NotWindows {
        /// The image.
        image: String,
        /// What it has.
        platforms: String,
    },
    /// Its version of Windows is not one.
    #[error("{image} has {version:?} as its os.version: expected 10.0.BUILD.REVISION")]
    Version {
        /// The image.
        image: String,
        /// What it says.
        version: String,
    },
    /// What was named as its base is not the name of one.
    #[error(transparent)]
    Name(#[from] NameError),
    /// Nothing says what it was built on.
    #[error(
        "cannot tell which base {image} was built on: it names none, and its lowest layers are not \
         those of {}",
        tried.join(", ")
    )]
    UnknownBase {
        /// The image.
        image: String,
        /// The bases whose layers were compared.
        tried: Vec<String>,
    },
    /// It says to be built on what is somewhere that nobody named.
    #[error("{image} says to be built on {base}: that host is not asked because an image says so")]
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
    SeveralBases {
        /// The image.
        image: String,
        /// The repositories.
        bases: Vec<String>,
    },
    /// No base fits a host, or none could be looked for.
    #[error(transparent)]
    Base(#[from] PlanError),
    /// One of its layers could not be read.
    #[error(transparent)]
    Layer(Box<LayerError>),
    /// What is inside a base could not be found out.
    #[error(
        "cannot find out what is inside {base}, with which the layers of the image are compared"
    )]
    Look {
        /// The base.
        base: String,
        /// Why not.
        source: Box<LibraryError>,
    },
    /// What is known of a base cannot be read.
    #[error(transparent)]
    Facts(#[from] FactsError),
    /// What it comes to cannot be published.
    #[error(transparent)]
    Publication(#[from] PublicationError),
    /// The images did not arrive.
    #[error(transparent)]
    Delivery(Box<DeliveryError>),
    /// The new image cannot be written.
    #[error(transparent)]
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

impl Diagnose for UpdateError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Image(error) => return error.hint(),
            Self::Name(error) => return error.hint(),
            Self::Base(error) => return error.hint(),
            Self::Layer(error) => return error.hint(),
            Self::Look { source, .. } => return source.hint(),
            Self::Publication(error) => return error.hint(),
            Self::Delivery(error) => return error.hint(),
            Self::Facts(_) => {
                "run the same command again: it is read from the base anew".to_owned()
            }
            Self::UnknownBase { .. } => format!(
                "name the repository of its base with --base; {BASE_NAMES}, and --base-registry says \
                 where they are"
            ),
            Self::BaseElsewhere { base, .. } => format!("if that is right, add --base {base}"),
            Self::BaseGone { .. } => {
                "name a repository that still has it with --base, such as a mirror's, or build the \
                 image again: `wincimg build`"
                    .to_owned()
            }
            Self::SeveralBases { bases, .. } => {
                let first = bases.first().map_or("", String::as_str);
                format!("say which one is meant: --base {first}")
            }
            Self::NotWindows { .. } | Self::Version { .. } | Self::Document(_) => return None,
        })
    }

    fn blame(&self) -> Blame {
        match self {
            Self::Image(error) => error.blame(),
            Self::Name(error) => error.blame(),
            Self::Base(error) => error.blame(),
            Self::Publication(error) => error.blame(),
            Self::Delivery(error) => error.blame(),
            Self::NotWindows { .. }
            | Self::Version { .. }
            | Self::UnknownBase { .. }
            | Self::BaseElsewhere { .. }
            | Self::BaseGone { .. }
            | Self::SeveralBases { .. } => Blame::Answer,
            Self::Layer(_) | Self::Look { .. } | Self::Facts(_) | Self::Document(_) => {
                Blame::Circumstances
            }
        }
    }

    fn excerpt(&self) -> Option<Excerpt> {
        match self {
            Self::Image(error) => error.excerpt(),
            Self::Base(error) => error.excerpt(),
            Self::Delivery(error) => error.excerpt(),
            _ => None,
        }
    }
}
