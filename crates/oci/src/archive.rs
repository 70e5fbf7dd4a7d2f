//! A docker-archive: the tar file of `docker save`, which `docker load` takes.
//!
//! Two kinds are read. The older has a `manifest.json` that names a configuration and layer tars, and
//! no image manifest, so one is made up in Docker's words. The newer, which Docker 25 and this crate
//! write, is an OCI layout inside a tar with a `manifest.json` beside it, and keeps the image's digest.

mod error;
mod format;
mod read;
mod write;

pub use error::DockerArchiveError;
pub use read::DockerArchive;
pub use write::ArchiveWriter;
