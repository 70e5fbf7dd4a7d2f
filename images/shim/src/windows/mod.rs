//! The shim at work: everything that calls Windows.

mod child;
mod console;
mod environment;
mod error;
mod file;
mod follow;
mod handle;
mod job;
mod library;
mod log;
mod registry;
pub mod run;
mod service;
mod socket;
mod stop;
mod wincat;
mod window;

use alloc::vec::Vec;

/// Text with the zero at its end that Windows wants.
fn terminated(text: &[u16]) -> Vec<u16> {
    let mut text = text.to_vec();
    text.push(0);
    text
}
