//! Images as values and the places they live in.

pub mod archive;
pub mod base;
pub mod copy;
pub mod document;
pub mod layout;
pub mod mirror;
pub mod prefix;
pub mod reference;
pub mod remote;
pub mod store;
pub mod stream;
