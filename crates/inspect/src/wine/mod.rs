//! Runs an image's own layers and entry point under wine: a smoke test without Windows.
//!
//! [`StartCommand`] is the start command of a container, [`OwnContents`](crate::OwnContents) the
//! contents of the image's own layers; both are plain values. [`Prefix`] is a wine prefix in a
//! temporary folder: it receives files and registry, and runs the program as a container would.
//!
//! wine is not a sandbox: a program could access every file of the user who started it. [`Sandbox`]
//! isolates it.

mod error;
mod find;
mod prefix;
mod sandbox;
mod start;

pub use find::WineInstallation;
pub use prefix::Prefix;
pub use sandbox::Sandbox;
pub use start::{StartCommand, StartError};
