//! A docker-archive: the tar file that `docker save` writes and `docker load` reads.
//!
//! Two formats are read. The older has a `manifest.json` that names a configuration and layer tars,
//! but no image manifest, so one is generated in Docker's format. The newer, which Docker 25 and
//! this crate write, is an OCI layout inside a tar, plus a `manifest.json`; it preserves the
//! image's digest.

mod format;
mod read;
mod upper;
mod write;

pub use read::DockerArchive;
pub use upper::{UpperLayer, UpperLayers};
pub use write::ArchiveWriter;
