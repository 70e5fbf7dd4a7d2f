//! Facts attached to a base in its registry: finding, checking and pushing them.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_http::HttpError;
use wincimg_oci::document::{Artifact, Descriptor, Digest, sha256};
use wincimg_oci::remote::{RegistryError, Repository};

use super::{BaseFactsProvider, OPTIONAL_DOWNLOAD_TIMEOUT, OPTIONAL_FACTS_TIMEOUT};
use crate::base::{BaseFacts, FORMAT};

/// Artifact type of facts about a base.
const ARTIFACT_TYPE: &str = "application/vnd.wincimg.base.v1";
const CONTENT_TYPE: &str = "application/vnd.wincimg.base.facts.v1";
/// Annotation with the format version of facts.
const FORMAT_NOTE: &str = "vnd.wincimg.base.format";
/// Limit on the size of facts: several times those of the largest base.
const LARGEST: u64 = 192 << 20;
/// Limit on the artifacts that are read.
const MAX_ARTIFACTS: usize = 4;

/// Waits for a response, at most for this time if there is a limit.
fn in_time<T>(
    limit: Option<Duration>,
    what: String,
    response: impl Future<Output = Result<T, RegistryError>>,
) -> impl Future<Output = Result<T, RegistryError>> {
    // Boxed, for the futures that wait for this one would be large.
    let response = Box::pin(response);
    async move {
        let Some(limit) = limit else {
            return response.await;
        };
        tokio::time::timeout(limit, response)
            .await
            .map_err(|_| HttpError::TimeLimit { what, limit })?
    }
}

impl BaseFactsProvider {
    /// Queries registries for facts as soon as a base is resolved, for callers that [look
    /// up](Self::find_cached) all bases.
    pub fn enable_prefetch(&self) {
        let cache = self.cache.clone();
        self.registry
            .want_referrers_of_bases(ARTIFACT_TYPE, move |repository, base| {
                let cache = cache.as_ref();
                !cache.is_some_and(|cache| cache.has_answer(base, &repository.to_string()))
            });
    }

    /// The facts attached to a base in a repository; none if it has no usable ones. With
    /// `briefly`, a slow registry is not waited for.
    pub(super) async fn in_registry(
        &self,
        repository: &Repository,
        base: &Digest,
        briefly: bool,
    ) -> Result<Option<(BaseFacts, Bytes)>, RegistryError> {
        let what = format!("list referrers of {base} in {repository}");
        let limit = briefly.then_some(OPTIONAL_FACTS_TIMEOUT);
        let listed = in_time(limit, what, self.list(repository, base)).await?;
        for content in listed {
            if content.size > LARGEST {
                self.warn(format!(
                    "ignored facts about {base} in {repository}: {} bytes are too many",
                    content.size
                ));
                continue;
            }
            let what = format!("read blob {} of {repository}", content.digest);
            let limit = briefly.then_some(OPTIONAL_DOWNLOAD_TIMEOUT);
            let bytes = in_time(limit, what, repository.get_blob(&content, LARGEST)).await?;
            match BaseFacts::read(bytes.clone()) {
                Ok(facts) if facts.base_digest() == base => return Ok(Some((facts, bytes))),
                Ok(facts) => self.warn(format!(
                    "ignored facts in {repository}: they are about {}, but attached to {base}",
                    facts.base_digest()
                )),
                Err(error) => self.warn(format!(
                    "ignored facts about {base} in {repository}: {error}"
                )),
            }
        }
        Ok(None)
    }

    /// Lists facts about a base in a supported format, the newest first.
    async fn list(
        &self,
        repository: &Repository,
        base: &Digest,
    ) -> Result<Vec<Descriptor>, RegistryError> {
        let mut entries = repository.referrers(base, Some(ARTIFACT_TYPE)).await?;
        let format = |entry: &Descriptor| -> u32 {
            let printed = entry.annotations.get(FORMAT_NOTE);
            printed
                .and_then(|printed| printed.parse().ok())
                .unwrap_or(FORMAT)
        };
        entries.retain(|entry| format(entry) <= FORMAT);
        entries.sort_by_key(|entry| (std::cmp::Reverse(format(entry)), entry.digest.to_string()));
        let mut contents = Vec::new();
        for entry in entries.iter().take(MAX_ARTIFACTS) {
            match repository.artifact(entry, base, Some(ARTIFACT_TYPE)).await? {
                Some(artifact) => contents.extend(artifact.layers().first().cloned()),
                None => self.warn(format!(
                    "ignored {} in {repository}: it is listed as facts about {base}, but is missing \
                     or about something else",
                    entry.digest
                )),
            }
        }
        Ok(contents)
    }

    /// Attaches facts to a base.
    pub async fn push(
        &self,
        repository: &Repository,
        base: &Descriptor,
        facts: &Bytes,
    ) -> Result<(), BoxError> {
        let content = Descriptor::new(CONTENT_TYPE, sha256(facts), facts.len() as u64);
        let notes = BTreeMap::from([(FORMAT_NOTE.to_owned(), FORMAT.to_string())]);
        let artifact = Artifact::new(ARTIFACT_TYPE, base, vec![content.clone()], notes);
        let artifact = artifact.map_err(|error| Problem::from_error("base/unreadable", error))?;
        if !repository.has_blob(&content.digest).await? {
            let label = format!("{repository} contents of {}", base.digest);
            let task = self.progress.task(&label, Some(content.size));
            let sent = repository.put_blob(&content.digest, content.size, facts, task.as_ref());
            sent.await?;
            task.done("pushed");
        }
        Ok(repository.attach(&artifact).await?)
    }
}
