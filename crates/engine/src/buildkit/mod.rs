//! `BuildKit`'s daemon, which runs steps on Windows, experimentally.
//!
//! Its protocol is gRPC in both directions. `buildctl`, its own client, speaks it: a library would
//! bring 19 crates, and bollard's returns neither the output of a failed step nor the digest.

mod address;
mod buildctl;
mod status;

pub use address::BuildkitAddress;
pub(crate) use buildctl::{Buildctl, BuildctlBuild, DaemonWorker};
