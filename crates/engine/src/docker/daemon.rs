//! A connected daemon, and its calls besides builds.

use std::{fmt, io};

use bollard::Docker;
use bollard::query_parameters::{PushImageOptions, TagImageOptions};
use futures_util::TryStreamExt;
use tokio::io::AsyncWriteExt;
use wincimg_cluster::live::BuilderConnection;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_common::files::Spool;
use wincimg_common::progress::Progress;
use wincimg_oci::remote::DaemonCredential;

use super::api::{ImageInfo, Info};
use super::client::{Client, credentials, within};
use super::endpoint::Endpoint;
use super::error::{ApiVersion, DockerError, TRUNCATED, unanswered, unexpected};
use super::transport::BodyChunks;

/// API version of Docker 17.06, the first that reports an image's version of Windows.
const OLDEST: ApiVersion = ApiVersion(1, 30);
const NEWEST: ApiVersion = ApiVersion(1, 47);

/// API version of Docker 20.10, the first whose `ARG` takes several names.
const ARGUMENT_LISTS: ApiVersion = ApiVersion(1, 41);

/// A connected daemon.
pub struct Daemon {
    pub(super) client: Client,
}

impl Daemon {
    /// Connects, and negotiates the API version.
    pub async fn connect(endpoint: Endpoint) -> Result<Self, DockerError> {
        let mut client = Client::new(endpoint, OLDEST)?;
        let what = "report its API version";
        let ping = client.call_raw(what, "", async |docker| docker.ping().await);
        let response = within(what, ping).await?.response;
        let found = response
            .headers()
            .get("api-version")
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        let received = ApiVersion::read(found);
        let received = received.ok_or_else(|| unexpected(what, &"no Api-Version header"))?;
        if received < OLDEST {
            let problem =
                format!("the Docker daemon has API version {found}: expected {OLDEST} or newer");
            return Err(Problem::new("daemon/too-old", problem)
                .hint("install a newer Docker on that machine")
                .into());
        }
        client.version = received.min(NEWEST);
        Ok(Self { client })
    }

    /// Its address and the source of that.
    pub fn endpoint(&self) -> &Endpoint {
        &self.client.endpoint
    }

    /// The pod of a builder, if the daemon is in one.
    pub(crate) fn builder(&self) -> Option<&BuilderConnection> {
        self.client.transport.builder.get()
    }

    /// Returns true if `localhost` is the same for the daemon, as far as its address shows; of a
    /// builder, that of its cluster.
    pub(crate) fn is_on_this_machine(&self) -> bool {
        match self.builder() {
            Some(builder) => builder.is_behind_loopback(),
            None => self.endpoint().is_on_this_machine(),
        }
    }

    /// The negotiated API version.
    pub fn api_version(&self) -> ApiVersion {
        self.client.version
    }

    /// Returns true if an `ARG` may declare several names.
    pub(crate) fn has_argument_lists(&self) -> bool {
        self.client.version >= ARGUMENT_LISTS
    }

    /// The daemon's system information.
    pub async fn info(&self) -> Result<Info, DockerError> {
        let what = "report its system information";
        let work = async {
            let call = async |docker: Docker| docker.info().await;
            let answer = self.client.call_raw(what, "", call).await?;
            BodyChunks::new(what, answer).document().await
        };
        within(what, work).await
    }

    /// Details of an image.
    pub async fn image(&self, name: &str) -> Result<ImageInfo, DockerError> {
        let what = format!("show the image {name}");
        let call = async |docker: Docker| docker.inspect_image(name).await;
        self.client.call(&what, call).await.map(Into::into)
    }

    pub(crate) async fn find_image(&self, name: &str) -> Result<Option<ImageInfo>, DockerError> {
        match self.image(name).await {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Tags an image.
    pub async fn tag(&self, image: &str, name: &str, tag: &str) -> Result<(), DockerError> {
        let what = format!("tag {image} as {name}:{tag}");
        let options = TagImageOptions {
            repo: Some(name.to_owned()),
            tag: Some(tag.to_owned()),
        };
        let call = async |docker: Docker| docker.tag_image(image, Some(options)).await;
        self.client.call(&what, call).await
    }

    /// Exports an image to a temporary file, as `docker save` does.
    pub async fn export(&self, name: &str, progress: &dyn Progress) -> Result<Spool, BoxError> {
        let file = Spool::in_folder(&std::env::temp_dir()).map_err(not_saved)?;
        let task = progress.task(&format!("save {name}"), None);
        let mut pieces = self.save(name).await?;
        let out = tokio::fs::File::create(file.path()).await;
        let mut out = out.map_err(not_saved)?;
        while let Some(piece) = pieces.next().await? {
            out.write_all(&piece).await.map_err(not_saved)?;
            task.advance(piece.len() as u64);
        }
        out.flush().await.map_err(not_saved)?;
        task.done("saved");
        Ok(file)
    }

    /// The image as `docker save` writes it. It may be large and slow.
    pub(super) async fn save(&self, name: &str) -> Result<BodyChunks, DockerError> {
        let what = format!("save {name}");
        let call = async |docker: Docker| docker.export_images(&[name]).try_next().await;
        let answer = self.client.call_raw(&what, "", call).await?;
        Ok(BodyChunks::new(&what, answer))
    }
}

/// Error for a saved image that cannot be written to the disk.
fn not_saved(error: io::Error) -> Problem {
    let what = "cannot write the saved image to a temporary file";
    Problem::new("file/io", what).source(error)
}

impl fmt::Debug for Daemon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Daemon")
            .field("endpoint", self.endpoint())
            .field("version", &self.client.version)
            .finish_non_exhaustive()
    }
}

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
