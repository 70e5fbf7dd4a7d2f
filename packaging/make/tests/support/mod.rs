//! What the program's own tests have too.

#![allow(dead_code, unreachable_pub)]

#[path = "../../../../crates/testkit/src/dockerd.rs"]
pub mod dockerd;
#[path = "../../../../crates/testkit/src/programs.rs"]
pub mod programs;

pub use programs::component;

pub mod places {
    /// A path in a temporary folder.
    pub fn path(folder: &tempfile::TempDir, name: &str) -> String {
        folder.path().join(name).to_str().unwrap().to_owned()
    }
}
