//! Demonstration for `wincimg demo`: an in-process registry, and base images without any Windows
//! files.
//!
//! It uses the library like any other client, so that external tests can include it.
//!
//! ```
//! use wincimg_demo::{DemoRegistry, add_base_images};
//! use wincimg_windows::version::WindowsVersion;
//!
//! let registry = DemoRegistry::start()?;
//! let version = WindowsVersion::new(17763, 973);
//! registry.with(|stored| add_base_images(stored, "windows/nanoserver", &[version]))?;
//! println!("docker pull {}/windows/nanoserver:{version}", registry.host());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod base;
mod server;

pub use base::add_base_images;
pub use server::{DemoRegistry, RegistryState};
