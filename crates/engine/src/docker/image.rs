//! An image in a daemon: pushed by the daemon, or saved to a file.

use std::path::Path;
use std::{fmt, io};

use tokio::io::AsyncWriteExt;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_common::progress::Progress;
use wincimg_oci::remote::DaemonCredential;

use super::api::ImageInfo;
use super::daemon::Daemon;
use super::error::DockerError;

/// An image built by a daemon, with its name there.
pub struct DaemonImage<'a> {
    pub(super) daemon: &'a Daemon,
    /// Its details.
    pub(crate) info: ImageInfo,
    pub(super) name: String,
    pub(super) tag: String,
    /// Credential for the push.
    pub(super) credential: Option<DaemonCredential>,
}

impl fmt::Display for DaemonImage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.tag)
    }
}

impl DaemonImage<'_> {
    /// Lets the daemon push the image to the registry in its name; returns its digest there.
    pub(crate) async fn push(&self, progress: &dyn Progress) -> Result<String, DockerError> {
        let credential = self.credential.as_ref();
        let pushed = self
            .daemon
            .push(&self.name, &self.tag, credential, progress);
        pushed.await
    }

    /// Lets the daemon save the image to a file, as a docker-archive.
    pub(crate) async fn save(&self, path: &Path, progress: &dyn Progress) -> Result<(), BoxError> {
        let name = self.to_string();
        let task = progress.task(&format!("save {name}"), None);
        let mut pieces = self.daemon.save(&name).await?;
        let file = tokio::fs::File::create(path).await;
        let mut file = file.map_err(not_saved)?;
        while let Some(piece) = pieces.next().await? {
            file.write_all(&piece).await.map_err(not_saved)?;
            task.advance(piece.len() as u64);
        }
        file.flush().await.map_err(not_saved)?;
        task.done("saved");
        Ok(())
    }
}

/// Error for a saved image that cannot be written to the disk.
pub(crate) fn not_saved(error: io::Error) -> Problem {
    let what = "cannot write the saved image to a temporary file";
    Problem::new("file/io", what).source(error)
}
