//! An image build toolkit for Windows containers: a recipe and a host build become a plan, a plan
//! becomes an image, with or without a Windows machine.
//!
//! What the program knows can be used from other programs too: [`windows`] (versions, compatibility,
//! quoting, the registry and its hives), [`recipe`] (from a recipe to a plan), [`layer`] (Windows
//! layers), [`oci`] (images and the places they live in), [`inspect`] (what is in an image) and
//! [`provenance`] (bills of materials, and how an image came to be).
//!
//! Dependencies point one way: the command line uses everything, `windows` nothing of the project.

// The demonstration, and what the tests of the modules share with those from outside, call this
// library by its name.
extern crate self as wincimg;

mod archive;
mod catalog;
mod cli;
mod cluster;
#[doc(hidden)]
pub mod demo;
mod diagnose;
mod dockerfile;
mod engine;
mod excerpt;
mod files;
mod fleet;
mod foreign;
pub mod inspect;
pub mod layer;
mod lint;
mod net;
pub mod oci;
pub mod progress;
pub mod provenance;
pub mod recipe;
mod report;
mod rollout;
mod shim;
pub mod windows;
mod wine;

#[doc(hidden)]
pub use cli::{command, main};
pub use diagnose::{Blame, Diagnose};

// What starts components and plays servers, for the tests of the modules and those from outside.
#[cfg(test)]
#[path = "../tests/it/support/mod.rs"]
mod support;
