//! An image in a daemon: pushed by the daemon, or saved to a file.

use std::fmt;

use wincimg_common::diagnose::BoxError;
use wincimg_common::files::Spool;
use wincimg_common::progress::Progress;
use wincimg_oci::remote::DaemonCredential;

use super::api::ImageInfo;
use super::daemon::Daemon;
use super::error::DockerError;

/// An image built by a daemon, with its name there.
pub(crate) struct DaemonImage<'a> {
    pub(super) daemon: &'a Daemon,
    pub(crate) info: ImageInfo,
    pub(super) name: String,
    pub(super) tag: String,
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

    /// Lets the daemon save the image to a temporary file, as a docker-archive.
    pub(crate) async fn save(&self, progress: &dyn Progress) -> Result<Spool, BoxError> {
        self.daemon.export(&self.to_string(), progress).await
    }
}
