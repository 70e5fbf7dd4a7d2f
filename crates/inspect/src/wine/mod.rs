//! An image's own layers in a Windows of wine, and its entry point started there: a smoke test where
//! there is no Windows.
//!
//! [`StartCommand`] says what a container of the image starts, [`Own`](crate::Own) what its layers
//! come to; both are plain values. [`Prefix`] is a Windows of wine in a temporary folder: it takes
//! files and registry, and runs the program as a container would.
//!
//! Nothing here keeps a program from the machine that it runs on. wine is not a sandbox: a program that
//! wants to gets at every file of whoever started it.

mod drive;
mod error;
mod find;
mod prefix;
mod start;

pub use find::WineInstallation;
pub use prefix::Prefix;
pub use start::{StartCommand, StartError};
