//! Facts beside a base in its registry: found, believed as far as they name the base, and put there.

use std::collections::BTreeMap;

use bytes::Bytes;
use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_http::HttpError;
use wincimg_oci::document::{Artifact, Descriptor, Digest, sha256};
use wincimg_oci::remote::{RegistryError, Repository};

use super::{BaseFactsProvider, PATIENCE};
use crate::base::{BaseFacts, FORMAT};

/// What facts about a base are among all that can lie beside an image.
const ARTIFACT_TYPE: &str = "application/vnd.wincimg.base.v1";
const CONTENT_TYPE: &str = "application/vnd.wincimg.base.facts.v1";
/// The annotation that says which format facts are in.
const FORMAT_NOTE: &str = "vnd.wincimg.base.format";
/// The largest facts that are read: several times what the largest base has.
const LARGEST: u64 = 512 << 20;
/// As many claims to be facts are looked at.
const MOST_LOOKS: usize = 4;

impl BaseFactsProvider {
    /// Has registries asked what they know of a base as soon as it is found, for who will
    /// [look](Self::find_cached) at all bases.
    pub fn enable_prefetch(&self) {
        let cache = self.cache.clone();
        self.registry
            .want_referrers_of_bases(ARTIFACT_TYPE, move |repository, base| {
                let cache = cache.as_ref();
                !cache.is_some_and(|cache| cache.has_answer(base, &repository.to_string()))
            });
    }

    /// The facts that a repository has beside a base; nothing where it has none that are of use. It
    /// is not waited for long where that is said.
    pub(super) async fn in_registry(
        &self,
        repository: &Repository,
        base: &Digest,
        briefly: bool,
    ) -> Result<Option<(BaseFacts, Bytes)>, RegistryError> {
        let listing = self.listed(repository, base);
        let listed = if briefly {
            let what = format!("list what is about {base} in {repository}");
            let in_time = tokio::time::timeout(PATIENCE, listing).await;
            in_time.map_err(|_| HttpError::TimeLimit {
                what,
                limit: PATIENCE,
            })??
        } else {
            listing.await?
        };
        for content in listed {
            if content.size > LARGEST {
                self.warn(format!(
                    "facts about {base} in {repository} are left alone: they have {} bytes",
                    content.size
                ));
                continue;
            }
            let bytes = repository.get_blob(&content, LARGEST).await?;
            match BaseFacts::read(bytes.clone()) {
                Ok(facts) if facts.base_digest() == base => return Ok(Some((facts, bytes))),
                Ok(facts) => self.warn(format!(
                    "facts in {repository} are left alone: they are about {}, and lie beside {base}",
                    facts.base_digest()
                )),
                Err(error) => self.warn(format!(
                    "facts about {base} in {repository} are left alone: {error}"
                )),
            }
        }
        Ok(None)
    }

    /// What a repository says to be facts about a base in a format that is read, the newest first.
    async fn listed(
        &self,
        repository: &Repository,
        base: &Digest,
    ) -> Result<Vec<Descriptor>, RegistryError> {
        let mut entries = repository.referrers(base, ARTIFACT_TYPE).await?;
        let format = |entry: &Descriptor| -> u32 {
            let said = entry.annotations.get(FORMAT_NOTE);
            said.and_then(|said| said.parse().ok()).unwrap_or(FORMAT)
        };
        entries.retain(|entry| format(entry) <= FORMAT);
        entries.sort_by_key(|entry| (std::cmp::Reverse(format(entry)), entry.digest.to_string()));
        let mut contents = Vec::new();
        for entry in entries.iter().take(MOST_LOOKS) {
            match repository.artifact(entry, base, ARTIFACT_TYPE).await? {
                Some(artifact) => contents.extend(artifact.manifest().layers.first().cloned()),
                None => self.warn(format!(
                    "{} in {repository} is left alone: it is listed as facts about {base} and says \
                     something else itself",
                    entry.digest
                )),
            }
        }
        Ok(contents)
    }

    /// Puts facts beside a base.
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
            let label = format!("{repository} what is inside {}", base.digest);
            let task = self.progress.task(&label, Some(content.size));
            let sent = repository.put_blob(&content.digest, content.size, facts, task.as_ref());
            sent.await?;
            task.done("pushed");
        }
        Ok(repository.attach(&artifact).await?)
    }
}
