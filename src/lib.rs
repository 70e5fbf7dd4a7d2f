//! An image build toolkit for Windows containers: a recipe and a host build become a plan, a plan
//! becomes an image, with or without a Windows machine.
//!
//! Dependencies point one way: `cli` uses everything, `windows` uses nothing of the project.

// The demonstration, and what the tests of the modules share with those from outside, call this
// library by its name.
extern crate self as wincimg;

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

// What starts components and plays servers, for the tests of the modules and those from outside.
#[cfg(test)]
#[path = "../tests/it/support/mod.rs"]
mod support;
