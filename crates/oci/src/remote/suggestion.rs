//! Suggestions for images that a registry does not have. Costs one more request, for tags or
//! repositories, which may fail.

use std::sync::atomic::Ordering;
use std::time::Duration;

use reqwest::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use wincimg_common::diagnose::closest_match;

use super::error::RegistryError;
use super::referrers::{is_cosign_tag, is_list_tag};
use super::repository::{Repository, TagPage};
use super::request::Request;
use crate::document::Digest;

/// Maximum additional time for a hint.
const TIMEOUT: Duration = Duration::from_secs(3);
/// Names requested; those of a larger registry are incomplete.
const MOST_NAMES: usize = 1000;
const LIMIT: u64 = 1024 * 1024;
/// Tags shown if none is similar.
const SHOWN: usize = 5;
/// Maximum difference in length between a name and its misspelling: `servercore` is not that of
/// `server`.
const MAX_LENGTH_DIFFERENCE: usize = 2;
/// Maximum number of images with a hint in one run: hundreds of errors are not misspellings.
pub(super) const MOST_GUESSES: usize = 8;

#[derive(Deserialize)]
struct Catalog {
    repositories: Option<Vec<Option<String>>>,
}

impl Repository {
    /// Adds a suggestion to a not-found error, and whether the repository does not exist, which most
    /// registries say only of its tags.
    pub async fn with_suggestion(&self, mut error: RegistryError, which: &str) -> RegistryError {
        let guesses = &self.inner().guesses;
        if !error.is_not_found()
            || which.parse::<Digest>().is_ok()
            || guesses.fetch_add(1, Ordering::Relaxed) >= MOST_GUESSES
        {
            return error;
        }
        let (is_missing, suggestion) = match self.some_tags().await {
            Ok(tags) => (false, like_tag(self, which, &tags)),
            Err(Some(refusal)) if refusal.is_not_found() => {
                let meant = self.similar_repository().await;
                let suggestion = meant.map(|meant| format!("did you mean {meant}?"));
                (refusal.is_repository_missing(), suggestion)
            }
            Err(_) => (false, None),
        };
        if let RegistryError::NotFound {
            is_repository_missing,
            hint,
            ..
        } = &mut error
        {
            *is_repository_missing |= is_missing;
            if suggestion.is_some() {
                *hint = suggestion;
            }
        }
        error
    }

    /// Returns the repository of this host with the most similar name.
    pub async fn similar_repository(&self) -> Option<String> {
        let names = self.neighbours(MOST_NAMES, TIMEOUT).await?;
        let name = most_similar(self.name(), &names).filter(|name| name != self.name())?;
        Some(format!("{}/{name}", self.host()))
    }

    /// Returns the first repositories of this host, unless that takes too long.
    pub(super) async fn neighbours(&self, most: usize, timeout: Duration) -> Option<Vec<String>> {
        let what = format!("list the repositories of {}", self.host());
        let path = format!("_catalog?n={most}");
        let request = Request::new(&self.host, "", Method::GET, path, what);
        let catalog: Catalog = self.fetch_json_once(&request, timeout).await.ok()?;
        Some(catalog.repositories?.into_iter().flatten().collect())
    }

    /// Returns the first page of tags, or the refusal.
    async fn some_tags(&self) -> Result<Vec<String>, Option<RegistryError>> {
        let what = format!("list the tags of {self}");
        let path = format!("tags/list?n={MOST_NAMES}");
        let request = self.request(Method::GET, &path, what);
        let list: TagPage = self.fetch_json_once(&request, TIMEOUT).await?;
        Ok(list.tags.unwrap_or_default().tags)
    }

    /// Sends a request without retries.
    async fn fetch_json_once<T: DeserializeOwned>(
        &self,
        request: &Request<'_>,
        timeout: Duration,
    ) -> Result<T, Option<RegistryError>> {
        let answer = self.inner().fetch_once(request, LIMIT);
        let answer = tokio::time::timeout(timeout, answer).await;
        let (_, _, body) = answer.map_err(|_| None)?.map_err(Some)?;
        serde_json::from_slice(&body).map_err(|_| None)
    }
}

/// Returns a hint with the most similar tag, or else some existing tags.
fn like_tag(repository: &Repository, which: &str, tags: &[String]) -> Option<String> {
    // What is attached to images has tags, too.
    let tags = tags.iter().map(String::as_str);
    let tags: Vec<&str> = tags
        .filter(|tag| !is_list_tag(tag) && !is_cosign_tag(tag))
        .collect();
    if let Some(meant) = closest_match(which, tags.iter().copied()) {
        return Some(format!("did you mean {repository}:{meant}?"));
    }
    let shown: Vec<&str> = tags.iter().rev().take(SHOWN).copied().collect();
    let named = shown.join(", ");
    Some(match (shown.len(), tags.len() - shown.len()) {
        (0, _) => return None,
        (1, 0) => format!("its only tag is {named}"),
        (_, 0) => format!("its tags are {named}"),
        (_, more) => format!("its tags are {named} and {more} more"),
    })
}

/// Returns the name with the most similar last part; of several, the one with the most similar
/// folder.
fn most_similar(name: &str, known: &[String]) -> Option<String> {
    let own = last_part(name);
    let ends = known.iter().map(|path| last_part(path));
    let near = ends.filter(|end| end.len().abs_diff(own.len()) <= MAX_LENGTH_DIFFERENCE);
    let meant = closest_match(own, near)?;
    let paths = known.iter().map(String::as_str);
    let mut alike = paths.filter(|path| last_part(path) == meant);
    closest_match(name, alike.clone()).or_else(|| alike.next().map(str::to_owned))
}

fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_and_another_folder_are_seen_through() {
        let known = ["shop/web", "shop/cache", "windows/nanoserver"].map(str::to_owned);
        let like = |name: &str| most_similar(name, &known);
        assert_eq!(like("shop/wbe").as_deref(), Some("shop/web"));
        assert_eq!(like("nanoserver").as_deref(), Some("windows/nanoserver"));
        let meant = like("mcr/windows/nanosever");
        assert_eq!(meant.as_deref(), Some("windows/nanoserver"));
        assert_eq!(like("team/ledger"), None);
        // Other images, not slips.
        assert_eq!(like("shop/ledger"), None);
        assert_eq!(like("windows/server"), None);
    }
}
