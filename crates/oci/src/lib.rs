//! Images as values, and the stores that hold them.
//!
//! ```
//! use std::sync::Arc;
//! use wincimg_common::progress::Silent;
//! use wincimg_demo::{DemoRegistry, add_base_images};
//! use wincimg_oci::remote::{RegistryClient, RegistryOptions};
//!
//! // A registry inside this process.
//! let demo = DemoRegistry::start()?;
//! let version = "17763.973".parse()?;
//! demo.with(|stored| add_base_images(stored, "windows/nanoserver", &[version]))?;
//!
//! let options = RegistryOptions {
//!     insecure: vec![demo.host()],
//!     ..RegistryOptions::default()
//! };
//! let registry = RegistryClient::new(options, Arc::new(Silent))?;
//! let image = format!("{}/windows/nanoserver", demo.host()).parse()?;
//! let runtime = tokio::runtime::Runtime::new()?;
//! let tags = runtime.block_on(registry.repository(&image).tags())?;
//! println!("{tags:?}");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod archive;
pub mod copy;
pub mod deletion;
pub mod document;
pub mod layout;
mod local_images;
pub mod mirror;
pub mod prefix;
pub mod reference;
pub mod remote;
pub mod store;
mod stream;
