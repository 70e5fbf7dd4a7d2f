//! What `wincimg demo` shows the real code against: a registry inside the process, and base images
//! without a byte of Windows in them.

mod base;
mod registry;

pub use base::add_base_images;
pub use registry::{DemoRegistry, Stored};
