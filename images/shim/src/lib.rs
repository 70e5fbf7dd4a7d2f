//! The graceful-shutdown entry point of Windows container images.
//!
//! What needs no Windows (options, command lines, times, messages, lines of logs) builds and is tested anywhere,
//! and `wincimg inspect` reads an image's settings with it; `windows` does the work.

#![no_std]

extern crate alloc;

/// The entry point, compiled for Windows on amd64.
#[cfg(feature = "executables")]
pub const EXECUTABLE: &[u8] = include_bytes!("../shim.exe");
/// What starts an image's program under wine, compiled likewise.
#[cfg(feature = "executables")]
pub const STARTER: &[u8] = include_bytes!("../start.exe");

pub mod args;
pub mod cmdline;
pub mod glob;
pub mod limit;
pub mod lines;
pub mod log_monitor;
pub mod message;
pub mod pe;
#[cfg(windows)]
pub mod windows;
