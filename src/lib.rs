//! An image build toolkit for Windows containers: a recipe and a host build become a plan, a plan
//! becomes an image, with or without a Windows machine.
//!
//! Dependencies point one way: `cli` uses everything, `windows` uses nothing of the project.

pub mod catalog;
pub mod cli;
pub mod cluster;
pub mod demo;
pub mod diagnose;
pub mod dockerfile;
pub mod engine;
pub mod inspect;
pub mod layer;
pub mod lint;
pub mod net;
pub mod oci;
pub mod progress;
pub mod recipe;
pub mod report;
pub mod rollout;
pub mod shim;
pub mod windows;

// The tests of the modules share with those from outside what starts components and plays servers,
// where this library is called by its name.
#[cfg(test)]
extern crate self as wincimg;

#[cfg(test)]
#[path = "../tests/it/support/mod.rs"]
mod support;
