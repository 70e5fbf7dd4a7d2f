//! What `wincimg demo` shows the real code against: a registry inside the process, and base images
//! without a byte of Windows in them.
//!
//! It stands on the library as anybody else would, so that the tests from outside can include it.

mod base;
mod server;

pub use base::add_base_images;
pub use server::{DemoRegistry, Stored};
