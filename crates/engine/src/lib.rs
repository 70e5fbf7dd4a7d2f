//! From a recipe to delivered images.
//!
//! [`build::build`] runs all steps. A [request](plans::BuildRequest) is for a [`definition`] and
//! hosts: [`plans`] resolves the bases and makes the plans; [`base_contents`] reads the bases as
//! far as required, and [`downloads`] fetches files by digest; a [`publication`] fixes all tags
//! before anything is built. An engine builds the images: `direct` without Windows, [`docker`] in a
//! daemon on Windows; [`hybrid`] does both by step. An [`update`] rebases an existing image. One
//! [`delivery`] sends the result of either to its target.
//!
//! ```
//! use wincimg_engine::fleet::Shard;
//!
//! // The second of three workers.
//! let shard = Shard::new(1, 3)?;
//! let images = ["shop/web", "shop/orders", "shop/mail"];
//! let mine: Vec<_> = images.iter().filter(|image| shard.has(image)).collect();
//! println!("{mine:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// `#[test]` of the test kit replaces the standard one.
#[cfg(test)]
#[macro_use]
extern crate wincimg_testkit;

pub mod base_contents;
pub mod bases;
pub mod build;
pub mod buildkit;
pub mod compat_check;
pub mod definition;
pub mod delivery;
mod direct;
pub mod docker;
pub mod downloads;
pub mod engine_choice;
pub mod error;
pub mod fleet;
pub mod hybrid;
mod inputs;
pub mod listing;
pub mod notice;
pub mod origin;
pub mod plans;
pub mod publication;
pub mod unserved;
pub mod update;

#[cfg(test)]
fn main() -> std::process::ExitCode {
    wincimg_testkit::harness::main()
}
