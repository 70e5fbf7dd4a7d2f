//! From a recipe to images where they belong.
//!
//! [`build::build`] is the way from top to bottom. A [request](plans::BuildRequest) is for a [`definition`]
//! and hosts: [`plans`] finds the bases and makes the plans; what is [`base_contents`] the bases is found out
//! as far as that helps, and what the plans name of servers is there by its digest ([`downloads`]); a
//! [`publication`] says what will be published before anything is. An engine makes the images:
//! [`direct`] without Windows, [`docker`] in a daemon there. An [`update`] makes an image of one that
//! is there. One [`delivery`] brings what either made to its target.
//!
//! ```
//! use wincimg_engine::fleet::Shard;
//!
//! // The second of three that share the work.
//! let shard = Shard::new(1, 3)?;
//! let images = ["shop/web", "shop/orders", "shop/mail"];
//! let mine: Vec<_> = images.iter().filter(|image| shard.has(image)).collect();
//! println!("{mine:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

// `#[test]` is its own.
#[cfg(test)]
#[macro_use]
extern crate wincimg_testkit;

pub mod base_contents;
pub mod bases;
pub mod build;
pub mod compat_check;
pub mod definition;
pub mod delivery;
pub mod direct;
pub mod docker;
pub mod downloads;
pub mod engine_choice;
pub mod error;
pub mod fleet;
pub mod inputs;
pub mod listing;
pub mod notice;
pub mod plans;
pub mod publication;
pub mod update;

#[cfg(test)]
fn main() -> std::process::ExitCode {
    wincimg_testkit::harness::main()
}
