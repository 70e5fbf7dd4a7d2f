//! Base images: which image of a repository is the right ground for a host, pinned by its digest.

mod fit;
mod tag;

pub use fit::{Fit, Match, Span};
pub use tag::{Arch, BaseTag, Flavour, Names};
