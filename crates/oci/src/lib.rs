//! Images as values and the places they live in.
//!
//! ```
//! use std::sync::Arc;
//! use wincimg_common::progress::Silent;
//! use wincimg_demo::{DemoRegistry, add_base_images};
//! use wincimg_inspect::bases::{BaseRegistry, Match, resolve};
//! use wincimg_oci::remote::{Options, Registry};
//! use wincimg_windows::compat::HostBuild;
//! use wincimg_windows::version::WindowsVersion;
//!
//! // A registry inside this process, in place of mcr.microsoft.com.
//! let demo = DemoRegistry::start()?;
//! let version = WindowsVersion::new(17763, 973);
//! demo.with(|stored| add_base_images(stored, "windows/nanoserver", &[version]))?;
//!
//! let options = Options {
//!     insecure: vec![demo.host()],
//!     ..Options::default()
//! };
//! let registry = Registry::new(options, Arc::new(Silent))?;
//! let bases: BaseRegistry = demo.host().parse()?;
//! let nanoserver = bases.repository("nanoserver")?;
//! let host = HostBuild::new(version);
//! let runtime = tokio::runtime::Runtime::new()?;
//! let found = runtime.block_on(resolve(&registry, &nanoserver, host, Match::Exact))?;
//! assert_eq!(found.base.os_version, version);
//! println!("{}", found.base.reference);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod archive;
pub mod copy;
pub mod document;
pub mod layout;
pub mod mirror;
pub mod prefix;
pub mod reference;
pub mod remote;
pub mod store;
pub mod stream;
