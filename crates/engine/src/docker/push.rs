//! Pushes by the daemon.

use bollard::Docker;
use bollard::query_parameters::PushImageOptions;
use futures_util::TryStreamExt;
use wincimg_common::progress::Progress;
use wincimg_oci::remote::DaemonCredential;

use super::client::credentials;
use super::daemon::Daemon;
use super::error::{DockerError, TRUNCATED, unanswered};

impl Daemon {
    /// Pushes the image of that name and tag, and returns the digest of its manifest. Dropping the
    /// future cancels the push.
    pub async fn push(
        &self,
        name: &str,
        tag: &str,
        credential: Option<&DaemonCredential>,
        progress: &dyn Progress,
    ) -> Result<String, DockerError> {
        let what = format!("push {name}:{tag}");
        let options = PushImageOptions {
            tag: Some(tag.to_owned()),
            platform: None,
        };
        let credential = credential.map(credentials);
        let call = async |docker: Docker| {
            let mut messages = docker.push_image(name, Some(options), credential);
            messages.try_next().await
        };
        let mut digest = None;
        let pushing = self.follow_transfer(&what, progress, call, |message| {
            let shown = || digest_in(message.status.as_deref()?, tag);
            let reported = message.pushed.clone().or_else(shown);
            digest = reported.or_else(|| digest.take());
        });
        let about = |error: DockerError| error.about(&format!("{name}:{tag}"));
        pushing.await.map_err(about)?;
        digest.ok_or_else(|| unanswered(&what, TRUNCATED).into())
    }
}

/// The digest in `1.4: digest: sha256:… size: 1234`, the only place where old daemons report it.
fn digest_in(status: &str, tag: &str) -> Option<String> {
    let rest = status.strip_prefix(tag)?.strip_prefix(": digest: ")?;
    Some(rest.split(' ').next()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_found_in_the_words_for_people() {
        let digest = digest_in("1.4: digest: sha256:abc size: 528", "1.4");
        assert_eq!(digest.as_deref(), Some("sha256:abc"));
        assert_eq!(digest_in("1.4: digest: sha256:abc size: 528", "1"), None);
        assert_eq!(digest_in("Pushed", "1.4"), None);
    }
}
