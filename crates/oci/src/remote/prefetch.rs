//! Requests that are sent before anybody needs their answers: what can be guessed from what was typed
//! need not wait for an answer that only confirms it. To a registry far away each kind of them saves a
//! build one round trip of eight: the manifests of bases and of the tags that are pushed to, and what
//! lies beside a base.

use std::collections::HashMap;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use wincimg_common::lock;

use super::client::RegistryClient;
use super::error::RegistryError;
use super::manifests::RawManifest;
use super::repository::Repository;
use crate::document::{Descriptor, Digest};

/// An answer that waited longer than this is asked for again: tags move.
const MAX_AGE: Duration = Duration::from_secs(5);

/// Requests that are on their way.
#[derive(Default)]
pub(super) struct Prefetch {
    manifests: Pending<RawManifest>,
    referrers: Pending<Vec<Descriptor>>,
    wanted: OnceLock<WantedReferrers>,
}

/// Requests, and when they were sent.
struct Pending<A>(Mutex<HashMap<Key, Sent<A>>>);

type Sent<A> = (Instant, AbortOnDropHandle<Answer<A>>);

/// Repository, tag or digest, and with which rights it is asked for.
type Key = (String, String, bool);

type Answer<A> = Result<A, RegistryError>;

/// True if what is about an image will be asked for.
type Filter = dyn Fn(&Repository, &Digest) -> bool + Send + Sync;

/// What is about base images and will be asked for.
struct WantedReferrers {
    artifact_type: String,
    filter: Box<Filter>,
}

impl RegistryClient {
    /// Says that referrers of a type will be asked for, of each base image that the filter takes.
    pub fn want_referrers_of_bases(
        &self,
        artifact_type: &str,
        filter: impl Fn(&Repository, &Digest) -> bool + Send + Sync + 'static,
    ) {
        // Whoever says so again says the same.
        let _ = self.0.prefetch.wanted.set(WantedReferrers {
            artifact_type: artifact_type.to_owned(),
            filter: Box::new(filter),
        });
    }
}

impl Repository {
    /// Requests what a tag names, for whoever asks for it next and soon. A failure is not told: it is
    /// requested again then.
    pub fn prefetch_manifest(&self, tag: &str) {
        let (repository, tag) = (self.clone(), tag.to_owned());
        let key = self.key(&tag);
        let request = async move { repository.fetch_manifest_once(&tag).await };
        self.inner().prefetch.manifests.send(key, request);
    }

    /// What a tag names, where that was prefetched; once.
    pub(super) async fn prefetched_manifest(&self, tag: &str) -> Option<Answer<RawManifest>> {
        let answer = self.inner().prefetch.manifests.take(&self.key(tag)).await?;
        let is_certain = match &answer {
            Ok(_) => true,
            Err(error) => self.is_not_found_error(error),
        };
        is_certain.then_some(answer)
    }

    /// Requests the referrers of a base image that [`RegistryClient::want_referrers_of_bases`] spoke of.
    pub fn prefetch_referrers(&self, base: &Digest) {
        let prefetch = &self.inner().prefetch;
        let wanted = prefetch.wanted.get();
        if let Some(wanted) = wanted.filter(|wanted| (wanted.filter)(self, base)) {
            let (repository, base) = (self.clone(), base.clone());
            let artifact_type = wanted.artifact_type.clone();
            let key = self.key(base.as_ref());
            let request = async move { repository.fetch_referrers(&base, &artifact_type).await };
            prefetch.referrers.send(key, request);
        }
    }

    /// The referrers of a base image, where they were prefetched; once. A failure was tried again
    /// already.
    pub(super) async fn prefetched_referrers(
        &self,
        subject: &Digest,
        artifact_type: &str,
    ) -> Option<Answer<Vec<Descriptor>>> {
        let prefetch = &self.inner().prefetch;
        if prefetch.wanted.get()?.artifact_type != artifact_type {
            return None;
        }
        prefetch.referrers.take(&self.key(subject.as_ref())).await
    }

    fn key(&self, which: &str) -> Key {
        (self.to_string(), which.to_owned(), self.is_for_push())
    }
}

impl<A: Send + 'static> Pending<A> {
    /// Sends a request, unless that was done already.
    fn send(&self, key: Key, request: impl Future<Output = Answer<A>> + Send + 'static) {
        if let Ok(runtime) = Handle::try_current() {
            lock(&self.0).entry(key).or_insert_with(|| {
                let answer = AbortOnDropHandle::new(runtime.spawn(request));
                (Instant::now(), answer)
            });
        }
    }

    /// The answer to a request that was sent a short while ago.
    async fn take(&self, key: &Key) -> Option<Answer<A>> {
        let (sent, answer) = lock(&self.0).remove(key)?;
        if sent.elapsed() > MAX_AGE {
            return None;
        }
        answer.await.ok()
    }
}

impl<A> Default for Pending<A> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}
