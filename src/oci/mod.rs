//! Images as values and the places they live in.

pub mod document;
pub mod reference;
pub mod registry;
pub mod base;
pub mod reference;
