//! Base images: which image of a repository is the right ground for a host, pinned by its digest.

mod estimate;
mod fit;
mod list;
mod look;
mod name;
mod pool;
mod resolve;
mod sorted;
mod tag;

pub use fit::{Fit, Match, Span};
pub use list::{ListedImage, Listing};
pub use name::{BASE_NAMES, BaseRegistry, NAMES, NameError};
pub use pool::Neighbour;
pub use resolve::{
    BaseImage, BaseRepository, NothingFits, Resolution, ResolveError, SetAside, resolve,
};
pub use tag::{Arch, BaseTag, Flavour, Names};
