//! What `wincimg demo` shows the real code against: a registry inside the process, and base images
//! without a byte of Windows in them.
//!
//! It stands on the library as anybody else would, so that the tests from outside can include it.
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
