//! Artifacts attached to an image in its repository: facts, SBOMs, signatures.
//!
//! A registry with distribution specification 1.1 records a manifest's subject and lists the
//! referrers of a digest. For others, the list is an index under a tag derived from the image's
//! digest, which every tool updates by itself: entries of others are kept, and an update that
//! another tool overwrote is repeated.

use std::collections::HashSet;
use std::fmt;
use std::slice;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::{Method, StatusCode, Url};
use wincimg_common::diagnose::error_chain;
use wincimg_common::progress::Silent;

use super::error::RegistryError;
use super::link::NextPage;
use super::repository::Repository;
use super::request::RequestTarget;
use crate::document::{
    Artifact, Descriptor, Digest, Document, EMPTY, Index, ManifestFormat, Verbatim, hasher_of,
    media_type, sha256,
};

/// Maximum size of a list; the specification's recommendation for manifests.
const LIMIT: u64 = 4 * 1024 * 1024;
/// More pages and entries than any real image has.
const MOST_PAGES: usize = 64;
const MOST_ENTRIES: usize = 10_000;
/// Maximum size of the manifests attached to one image, together; a real one has about a kilobyte.
const MOST_BYTES: usize = 32 * 1024 * 1024;
/// Number of attached manifests that are read in parallel.
pub(crate) const PARALLEL: usize = 8;
/// Suffixes of the digest in the tags of cosign: SBOMs, attestations, signatures.
const COSIGN_SUFFIXES: [&str; 3] = ["sbom", "att", "sig"];
/// Maximum number of writes of a list with concurrent writers.
const ATTEMPTS: u32 = 8;
/// Maximum wait for another writer that read the list before it was written.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// What a query does not have unescaped.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'.')
    .remove(b'_')
    .remove(b'-')
    .remove(b'~');

impl Repository {
    /// Publishes an artifact whose content exists, so that it is found by its subject.
    pub async fn attach(&self, artifact: &Artifact) -> Result<(), RegistryError> {
        let document = artifact.document();
        let empty = sha256(EMPTY);
        let is_empty = artifact.has_empty_config();
        if is_empty && !self.has_blob(&empty).await? {
            self.put_empty(&empty).await?;
        }
        let publish = || {
            let which = document.digest().as_ref();
            self.publish(which, document.media_type(), document.bytes().clone())
        };
        let published = match publish().await {
            // With concurrent writers, a registry may report the blob inconsistently.
            Err(error) if is_empty && error.is_blob_missing() => {
                self.put_empty(&empty).await?;
                publish().await?
            }
            published => published?,
        };
        if published.knows_subject {
            self.host.takes.update(|known| known.referrers = true);
            return Ok(());
        }
        self.enlist(artifact).await
    }

    async fn put_empty(&self, digest: &Digest) -> Result<(), RegistryError> {
        let bytes = Bytes::from_static(EMPTY);
        let size = EMPTY.len() as u64;
        self.put_blob(digest, size, &bytes, &Silent).await
    }

    /// Returns the listed artifacts of a type, or of any, attached to a manifest. An entry is
    /// unverified until the artifact is read.
    pub async fn referrers(
        &self,
        subject: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Vec<Descriptor>, RegistryError> {
        if let Some(wanted) = artifact_type
            && let Some(answer) = self.prefetched_referrers(subject, wanted).await
        {
            return answer;
        }
        Box::pin(self.fetch_referrers(subject, artifact_type)).await
    }

    /// Like [`Repository::referrers`], without prefetched responses.
    pub(super) async fn fetch_referrers(
        &self,
        subject: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Vec<Descriptor>, RegistryError> {
        let tag = tag_of(subject);
        let (listed, under_tag) = if self.host.takes.get().referrers {
            (self.ask(subject, artifact_type).await, None)
        } else {
            // Only a request shows which of the two ways a registry supports; sending both at once
            // halves the time.
            let asking = self.ask(subject, artifact_type);
            let (listed, under_tag) = tokio::join!(asking, self.list_under(&tag));
            (listed, Some(under_tag))
        };
        let mut entries = if let Some(listed) = listed? {
            self.host.takes.update(|known| known.referrers = true);
            listed
        } else {
            let under_tag = match under_tag {
                Some(found) => found?,
                None => self.list_under(&tag).await?,
            };
            match under_tag {
                Some(List::Index(index)) => index.into_value().manifests,
                Some(List::Other) | None => Vec::new(),
            }
        };
        entries.retain(|entry| artifact_type.is_none_or(|it| entry.artifact_type() == Some(it)));
        Ok(entries)
    }

    /// Returns the artifact of an entry, if its subject matches, and its type where one is wanted.
    /// One that the registry lacks is not attached: a registry that cleans up deletes artifacts,
    /// which have no tag, and keeps the list, which has one. One that cannot be used is not, either.
    pub async fn artifact(
        &self,
        entry: &Descriptor,
        subject: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Option<Artifact>, RegistryError> {
        match self.read_listed(entry, subject, artifact_type).await {
            Err(error) if self.is_not_found_error(&error) => {
                self.note_missing(slice::from_ref(&entry.digest), subject);
                Ok(None)
            }
            read => read,
        }
    }

    /// Like [`Repository::artifact`], but fails for an artifact that the registry lacks.
    async fn read_listed(
        &self,
        entry: &Descriptor,
        subject: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Option<Artifact>, RegistryError> {
        let raw = self.get_manifest(entry.digest.as_ref()).await?;
        let artifact = match Document::verify(&raw.media_type, raw.bytes, &entry.digest) {
            Ok(document) => Artifact::read(document),
            Err(problem) => {
                let note = not_attached(entry, subject, &error_chain(&problem));
                self.inner().http.progress().note(&note);
                None
            }
        };
        Ok(artifact.filter(|artifact| {
            artifact.subject().digest == *subject
                && artifact_type.is_none_or(|it| artifact.artifact_type() == it)
        }))
    }

    /// Like [`Repository::artifact`], but fails for an artifact that cannot be used, or that the
    /// registry lacks.
    pub(crate) async fn usable_artifact(
        &self,
        entry: &Descriptor,
        subject: &Digest,
    ) -> Result<Option<Artifact>, RegistryError> {
        let raw = self.get_manifest(entry.digest.as_ref()).await?;
        let document = Document::verify(&raw.media_type, raw.bytes, &entry.digest)?;
        let artifact = Artifact::read(document);
        Ok(artifact.filter(|artifact| artifact.subject().digest == *subject))
    }

    /// Notes the listed artifacts that the registry lacks.
    pub(crate) fn note_missing(&self, missing: &[Digest], subject: &Digest) {
        let note = match missing {
            [] => return,
            [one] => format!(
                "ignored {one}, which is listed as attached to {subject}: {self} does not have it"
            ),
            [first, ..] => format!(
                "ignored {} documents such as {first}, which are listed as attached to {subject}: \
                 {self} does not have them",
                missing.len()
            ),
        };
        self.inner().http.progress().note(&note);
    }

    /// Returns the artifacts attached to a manifest, of one type or of all.
    pub async fn artifacts(
        &self,
        subject: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Vec<Artifact>, RegistryError> {
        let (mut found, mut missing) = (Vec::new(), Vec::new());
        let mut size = 0;
        let entries = self.referrers(subject, artifact_type).await?.into_iter();
        let reads = entries.map(|entry| async move {
            let read = self.read_listed(&entry, subject, artifact_type).await;
            (entry.digest, read)
        });
        let mut reads = stream::iter(reads).buffered(PARALLEL);
        while let Some((digest, read)) = reads.next().await {
            if size > MOST_BYTES {
                let progress = self.inner().http.progress();
                progress.note(&format!(
                    "{self} has more than {} MiB of manifests attached to {subject}: using the \
                     first {}",
                    MOST_BYTES >> 20,
                    found.len()
                ));
                break;
            }
            match read {
                Ok(Some(artifact)) => {
                    size += artifact.document().bytes().len();
                    found.push(artifact);
                }
                Ok(None) => {}
                Err(error) if self.is_not_found_error(&error) => missing.push(digest),
                Err(error) => return Err(error),
            }
        }
        self.note_missing(&missing, subject);
        Ok(found)
    }

    /// Queries the referrers API; `None` if the registry lacks it.
    async fn ask(
        &self,
        subject: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Option<Vec<Descriptor>>, RegistryError> {
        let what = format!("list the referrers of {subject} in {self}");
        let filter = artifact_type
            .map(|it| format!("?artifactType={}", utf8_percent_encode(it, UNRESERVED)));
        let path = format!("referrers/{subject}{}", filter.unwrap_or_default());
        let mut request = self.request(Method::GET, &path, what);
        let mut found: Vec<Descriptor> = Vec::new();
        for _ in 0..MOST_PAGES {
            let (headers, url, body) = match self.inner().fetch(&request, LIMIT).await {
                Ok(page) => page,
                Err(error) if found.is_empty() && knows_nothing(&error) => return Ok(None),
                Err(error) if found.is_empty() && self.is_not_found_error(&error) => {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            };
            // A proxy may answer any request with a page of its own.
            let Ok(index) = serde_json::from_slice::<Index>(&body) else {
                return Ok(None);
            };
            let grew = !index.manifests.is_empty();
            found.extend(index.manifests);
            let next = match NextPage::read(&headers) {
                NextPage::At(target) if grew && found.len() < MOST_ENTRIES => behind(&target, &url),
                _ => None,
            };
            let Some(next) = next else { break };
            request.target = RequestTarget::Url(next);
        }
        found.truncate(MOST_ENTRIES);
        Ok(Some(found))
    }

    /// Adds an artifact to the list under its subject's tag.
    async fn enlist(&self, artifact: &Artifact) -> Result<(), RegistryError> {
        let tag = tag_of(&artifact.subject().digest);
        let entry = artifact.entry();
        let problem = |reason: &str| {
            let what = format!("list {} under tag {tag} of {self}", entry.digest);
            RegistryError::protocol(self.host(), &what, reason)
        };
        let mut gone = HashSet::new();
        for attempt in 0..=ATTEMPTS {
            let started = Instant::now();
            let list = match self.list_under(&tag).await? {
                Some(List::Index(list)) => *list,
                Some(List::Other) => {
                    return Err(problem("the tag exists and is not a list of referrers"));
                }
                None => Verbatim::new(Index::new(ManifestFormat::Oci, Vec::new()))
                    .map_err(|error| problem(&error.to_string()))?,
            };
            if list.manifests.iter().any(|it| it.digest == entry.digest) {
                return Ok(());
            }
            // The last round only reads.
            if attempt == ATTEMPTS {
                break;
            }
            let longer = list.edit(|list| {
                list.manifests.retain(|it| !gone.contains(&it.digest));
                list.manifests.push(entry.clone());
            });
            let longer = longer.map_err(|error| problem(&error.to_string()))?;
            let put = self.put_manifest(&tag, longer.media_type(), longer.bytes().clone());
            match put.await {
                // Another writer of the same artifact, or a cleaner: it is published again.
                Err(error) if error.is_blob_missing() && attempt + 1 < ATTEMPTS => {
                    let (document, which) = (artifact.document(), entry.digest.as_ref());
                    if attempt > 0 {
                        self.put_manifest(which, document.media_type(), document.bytes().clone())
                            .await?;
                    }
                    // Or earlier artifacts that are gone: they are not listed any more.
                    gone = self.missing(&list.manifests).await?;
                }
                put => drop(put?),
            }
            // After this pause, a writer that read the old list has written its own; the next round
            // detects if it overwrote ours. Jitter keeps two processes apart.
            let jitter = 2 + (std::process::id() ^ attempt) % 3;
            let pause = started.elapsed() * jitter;
            tokio::time::sleep(pause.min(LONGEST_PAUSE)).await;
        }
        Err(problem("other writers keep overwriting it"))
    }

    /// Returns the digests of the entries that the repository does not have.
    async fn missing(&self, entries: &[Descriptor]) -> Result<HashSet<Digest>, RegistryError> {
        let mut missing = HashSet::new();
        for entry in entries {
            if self.head_manifest(entry.digest.as_ref()).await?.is_none() {
                missing.insert(entry.digest.clone());
            }
        }
        Ok(missing)
    }

    async fn list_under(&self, tag: &str) -> Result<Option<List>, RegistryError> {
        let found = self.find_manifest(tag).await;
        let Some(raw) = found.or_else(none_if_refused)? else {
            return Ok(None);
        };
        let index = Verbatim::<Index>::verify(raw.bytes, &raw.digest).ok();
        // Some registries announce any document as text.
        let is_index = |index: &Verbatim<Index>| {
            media_type::is_index(index.media_type.as_deref().unwrap_or(&raw.media_type))
        };
        Ok(Some(match index.filter(is_index) {
            Some(index) => List::Index(Box::new(index)),
            None => List::Other,
        }))
    }
}

/// Content of a list's tag.
enum List {
    Index(Box<Verbatim<Index>>),
    /// Not a list, but for example an image.
    Other,
}

/// The tag of a manifest's list of referrers: as specified, up to 32 characters of the algorithm
/// and 64 of the digest.
pub(crate) fn tag_of(subject: &Digest) -> String {
    let algorithm = subject.algorithm();
    let cut = |text: &str, most: usize| -> String {
        let is_fit = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let characters = text.chars().take(most);
        characters
            .map(|c| if is_fit(c) { c } else { '-' })
            .collect()
    };
    format!("{}-{}", cut(algorithm, 32), cut(subject.digest(), 64))
}

/// The tags under which cosign stores what it attaches to a manifest, each with its suffix.
pub fn cosign_tags(subject: &Digest) -> [(&'static str, String); 3] {
    COSIGN_SUFFIXES.map(|suffix| (suffix, format!("{}.{suffix}", tag_of(subject))))
}

/// Returns true if it is such a tag of any manifest.
pub(crate) fn is_cosign_tag(tag: &str) -> bool {
    tag.rsplit_once('.')
        .is_some_and(|(list, suffix)| COSIGN_SUFFIXES.contains(&suffix) && is_list_tag(list))
}

/// Returns true if it is the tag of a list of referrers of any manifest.
pub(crate) fn is_list_tag(tag: &str) -> bool {
    let subject = tag.replacen('-', ":", 1).parse::<Digest>();
    subject.is_ok_and(|subject| hasher_of(&subject).is_ok())
}

/// Note about a listed artifact that a layout lacks, or that cannot be used.
pub(crate) fn not_attached(
    entry: &Descriptor,
    subject: &dyn fmt::Display,
    reason: &dyn fmt::Display,
) -> String {
    let digest = &entry.digest;
    format!("ignored {digest}, which is listed as attached to {subject}: {reason}")
}

/// The answer for a tag that is derived from a digest: Artifactory refuses tags that do not exist, and
/// the image of the digest was read with the same credential.
pub(crate) fn none_if_refused<T>(error: RegistryError) -> Result<Option<T>, RegistryError> {
    match error.status() {
        Some(StatusCode::FORBIDDEN) => Ok(None),
        _ => Err(error),
    }
}

/// Returns true if a registry's error means that it lacks the referrers API.
fn knows_nothing(error: &RegistryError) -> bool {
    error.status().is_some_and(|status| {
        matches!(
            status,
            StatusCode::NOT_FOUND
                | StatusCode::BAD_REQUEST
                | StatusCode::METHOD_NOT_ALLOWED
                | StatusCode::NOT_ACCEPTABLE
                | StatusCode::NOT_IMPLEMENTED
        )
    })
}

/// The next page, on the same host.
fn behind(target: &str, here: &Url) -> Option<Url> {
    let next = here.join(target).ok()?;
    // A registry behind a proxy may name the wrong scheme or port.
    let mut url = here.clone();
    url.set_query(next.query());
    if next.path().contains("/referrers/") {
        return (url != *here).then_some(url);
    }
    (next.origin() == here.origin()).then_some(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_of_a_list_is_the_specifications() {
        let digest = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        assert_eq!(tag_of(&digest.parse().unwrap()), digest.replace(':', "-"));
        let long = format!("sha512:{}", "a".repeat(128));
        let tag = tag_of(&long.parse().unwrap());
        assert_eq!(tag, format!("sha512-{}", "a".repeat(64)));
    }

    #[test]
    fn the_tags_of_cosign_are_recognised() {
        let digest = format!("sha256:{}", "a".repeat(64)).parse().unwrap();
        for (suffix, tag) in cosign_tags(&digest) {
            assert!(tag.ends_with(suffix), "{tag}");
            assert!(is_cosign_tag(&tag), "{tag}");
        }
        let list = tag_of(&digest);
        for tag in [&*list, &format!("{list}.txt"), "app-1.sig", "1.4.sig"] {
            assert!(!is_cosign_tag(tag), "{tag}");
            assert_eq!(is_list_tag(tag), tag == list, "{tag}");
        }
    }

    #[test]
    fn a_type_is_written_for_a_query() {
        let encoded = utf8_percent_encode("application/vnd.a.b+json", UNRESERVED);
        assert_eq!(encoded.to_string(), "application%2Fvnd.a.b%2Bjson");
    }

    #[test]
    fn the_next_page_stays_at_its_host() {
        let here: Url = "https://repo.lan/v2/a/referrers/sha256:a?artifactType=t"
            .parse()
            .unwrap();
        let next = |target: &str| behind(target, &here).map(|url| url.to_string());
        let expected = "https://repo.lan/v2/a/referrers/sha256:a?next=2";
        for target in [
            "/v2/a/referrers/sha256:a?next=2",
            "http://repo.lan:8080/v2/a/referrers/sha256:a?next=2",
        ] {
            assert_eq!(next(target).as_deref(), Some(expected), "{target}");
        }
        assert_eq!(next("https://other.lan/page"), None);
        assert_eq!(next("?artifactType=t"), None);
    }
}
