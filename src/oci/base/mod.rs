//! Base images: which image of a repository is the right ground for a host, pinned by its digest.

mod estimate;
mod fit;
mod name;
mod pool;
mod tag;

pub use fit::{Fit, Match, Span};
pub use name::{BaseRegistry, NAMES, NameError};
pub use pool::Neighbour;
pub use tag::{Arch, BaseTag, Flavour, Names};
