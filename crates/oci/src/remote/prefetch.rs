//! Requests sent before their responses are needed. What can be guessed from the command line need
//! not wait for a response that only confirms it. For a distant registry, each kind saves a build
//! one round trip of eight: the manifests of bases, those of target tags, and artifacts attached to
//! a base.

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

/// An older response is requested again: tags move.
const MAX_AGE: Duration = Duration::from_secs(5);

/// Requests in flight.
#[derive(Default)]
pub(super) struct Prefetch {
    manifests: RequestMap<RawManifest>,
    referrers: RequestMap<Vec<Descriptor>>,
    wanted: OnceLock<WantedReferrers>,
}

/// Requests, and the time they were sent.
type RequestMap<A> = Mutex<HashMap<Key, SentRequest<A>>>;

type SentRequest<A> = (Instant, AbortOnDropHandle<RequestResult<A>>);

/// Repository, tag or digest, and whether it is requested for a push.
type Key = (String, String, bool);

type RequestResult<A> = Result<A, RegistryError>;

/// Returns true if an image's referrers will be requested.
type Filter = dyn Fn(&Repository, &Digest) -> bool + Send + Sync;

/// Referrers of base images that will be requested.
struct WantedReferrers {
    artifact_type: String,
    filter: Box<Filter>,
}

impl RegistryClient {
    /// Sets the type of referrers to prefetch for base images that the filter accepts.
    pub fn want_referrers_of_bases(
        &self,
        artifact_type: &str,
        filter: impl Fn(&Repository, &Digest) -> bool + Send + Sync + 'static,
    ) {
        // Later calls set the same value.
        let _ = self.0.prefetch.wanted.set(WantedReferrers {
            artifact_type: artifact_type.to_owned(),
            filter: Box::new(filter),
        });
    }
}

impl Repository {
    /// Prefetches a tag's manifest for the next request soon after. A failure is not reported: the
    /// request is repeated then.
    pub fn prefetch_manifest(&self, tag: &str) {
        let (repository, tag) = (self.clone(), tag.to_owned());
        let key = self.key(&tag);
        let request = async move { repository.fetch_manifest_once(&tag).await };
        send(&self.inner().prefetch.manifests, key, request);
    }

    /// Takes the prefetched manifest of a tag, if any.
    pub(super) async fn prefetched_manifest(
        &self,
        tag: &str,
    ) -> Option<RequestResult<RawManifest>> {
        let answer = take(&self.inner().prefetch.manifests, &self.key(tag)).await?;
        let is_certain = match &answer {
            Ok(_) => true,
            Err(error) => self.is_not_found_error(error),
        };
        is_certain.then_some(answer)
    }

    /// Prefetches the referrers of a base image as set by
    /// [`RegistryClient::want_referrers_of_bases`].
    pub fn prefetch_referrers(&self, base: &Digest) {
        let prefetch = &self.inner().prefetch;
        let wanted = prefetch.wanted.get();
        if let Some(wanted) = wanted.filter(|wanted| (wanted.filter)(self, base)) {
            let (repository, base) = (self.clone(), base.clone());
            let artifact_type = wanted.artifact_type.clone();
            let key = self.key(base.as_ref());
            let request = async move {
                repository
                    .fetch_referrers(&base, Some(&artifact_type))
                    .await
            };
            send(&prefetch.referrers, key, request);
        }
    }

    /// Takes the prefetched referrers of a base image, if any. A failure was already retried.
    pub(super) async fn prefetched_referrers(
        &self,
        subject: &Digest,
        artifact_type: &str,
    ) -> Option<RequestResult<Vec<Descriptor>>> {
        let prefetch = &self.inner().prefetch;
        if prefetch.wanted.get()?.artifact_type != artifact_type {
            return None;
        }
        take(&prefetch.referrers, &self.key(subject.as_ref())).await
    }

    fn key(&self, which: &str) -> Key {
        (self.to_string(), which.to_owned(), self.is_for_push())
    }
}

/// Sends a request, unless it was sent before.
fn send<A: Send + 'static>(
    requests: &RequestMap<A>,
    key: Key,
    request: impl Future<Output = RequestResult<A>> + Send + 'static,
) {
    if let Ok(runtime) = Handle::try_current() {
        lock(requests).entry(key).or_insert_with(|| {
            let answer = AbortOnDropHandle::new(runtime.spawn(request));
            (Instant::now(), answer)
        });
    }
}

/// Takes the response to a recent request.
async fn take<A>(requests: &RequestMap<A>, key: &Key) -> Option<RequestResult<A>> {
    let (sent, answer) = lock(requests).remove(key)?;
    if sent.elapsed() > MAX_AGE {
        return None;
    }
    answer.await.ok()
}
