//! An image in a daemon, and its two ways out: pushed by the daemon itself, or saved to a file.

use std::path::Path;
use std::{fmt, io};

use tokio::io::AsyncWriteExt;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_common::progress::Progress;
use wincimg_oci::remote::DaemonCredential;

use super::api::ImageInfo;
use super::daemon::Daemon;
use super::error::DockerError;

/// An image that a daemon made, under the name that it has there.
pub struct DaemonImage<'a> {
    pub(super) daemon: &'a Daemon,
    /// What the daemon says of it.
    pub(crate) info: ImageInfo,
    pub(super) name: String,
    pub(super) tag: String,
    /// What the daemon needs to push it.
    pub(super) credential: Option<DaemonCredential>,
}

impl fmt::Display for DaemonImage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.name, self.tag)
    }
}

impl DaemonImage<'_> {
    /// Lets the daemon push the image to the registry in its name; the digest that it has there.
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

/// The disk did not take an image that the daemon saves.
pub(crate) fn not_saved(error: io::Error) -> Problem {
    let what = "cannot write the saved image to a temporary file";
    Problem::new("file/io", what).source(error)
}
