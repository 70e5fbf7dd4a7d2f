//! Base images: which image of a repository is the right ground for a host, pinned by its digest.

mod behind_tag;
mod best_fit;
mod choice;
mod estimate;
mod flavour;
mod host_process;
mod list;
mod name;
mod named;
mod offers;
mod resolve;
mod tag;
mod tags_by_image;

pub use best_fit::{Fit, Match, Span};
pub use choice::Choice;
pub use flavour::Flavour;
pub use host_process::{HOST_PROCESS, HostProcessBase};
pub use list::{ListedImage, Listing};
pub use name::{BASE_NAMES, BaseName, BaseRegistry, NAMES, NameError, parse_location};
pub use named::NamedBase;
pub use offers::Neighbour;
pub use resolve::{
    BaseImage, BaseRepository, NothingFits, Resolution, ResolveError, SetAside, resolve, warning,
};
pub use tag::{Arch, Names};
