//! A repository: its tags, and other repositories of its host.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Method, Response, StatusCode, Url};
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use wincimg_http::host_of;

use super::capabilities::UploadMode;
use super::challenge::Scope;
use super::client::{Inner, RegistryClient};
use super::error::RegistryError;
use super::host::Host;
use super::link::NextPage;
use super::request::{Request, RequestTarget};
use crate::document::is_web_page;
use crate::reference::{Reference, parse_reference};

/// Larger than any real repository; an endless list must not exhaust memory or time.
const MOST_TAGS: usize = 250_000;
const MOST_BYTES: usize = 32 * 1024 * 1024;
const LONGEST_LISTING: Duration = Duration::from_mins(2);
const TAGS_LIMIT: u64 = 32 * 1024 * 1024;
/// Maximum number of empty pages in a row: some registries filter tags after paging.
const MOST_EMPTY_PAGES: usize = 100;
/// Maximum number of other repositories to query.
const MOST_NEIGHBOURS: usize = 100;
/// Listing repositories can take minutes on registries with object storage.
const NEIGHBOURS_TIMEOUT: Duration = Duration::from_secs(5);

/// A repository of a registry. Clones are cheap and share everything.
#[derive(Clone)]
pub struct Repository {
    pub(super) registry: RegistryClient,
    pub(super) host: Arc<Host>,
    name: Arc<str>,
    /// True if the repository is a push target.
    target: bool,
}

impl RegistryClient {
    /// Returns the repository of a reference.
    pub fn repository(&self, reference: &Reference) -> Repository {
        Repository {
            registry: self.clone(),
            host: self.0.host(reference.registry()),
            name: reference.repository().into(),
            target: false,
        }
    }
}

impl Repository {
    /// Returns the repository as a push target. Reads then request write access too, so that one
    /// token suffices, and a denied read counts as not found: the repository may not exist before
    /// the push, which will report missing permissions.
    #[must_use]
    pub fn for_push(mut self) -> Self {
        self.target = true;
        self
    }

    pub(super) fn is_for_push(&self) -> bool {
        self.target
    }

    /// The host's name in references: `docker.io`, `repo.lan:5000`.
    pub fn host(&self) -> &str {
        &self.host.name
    }

    /// The name below the host: `library/nginx`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true unless the host has refused chunked uploads.
    pub fn supports_chunks(&self) -> bool {
        self.host.takes.get().mode != Some(UploadMode::Whole)
    }

    pub(super) fn inner(&self) -> &Inner {
        &self.registry.0
    }

    /// Creates a request without headers and body for a path below `/v2/NAME/`.
    pub(super) fn request(&self, method: Method, path: &str, what: String) -> Request<'_> {
        let scope = match method {
            Method::GET | Method::HEAD if !self.target => Scope::pull(&self.name),
            _ => Scope::push(&self.name),
        };
        let path = format!("{}/{path}", self.name);
        let mut request = Request::new(&self.host, &self.name, method, path, what);
        request.scope = scope;
        request
    }

    /// Checks by HEAD if something exists; by GET if the host refuses HEAD.
    pub(super) async fn head_or_get(
        &self,
        mut request: Request<'_>,
    ) -> Result<Response, RegistryError> {
        if self.host.takes.get().heads {
            match self.inner().call(&request).await {
                Err(error) if error.is_head_unsupported() => {}
                answer => return answer,
            }
        }
        request.method = Method::GET;
        let answer = self.inner().call(&request).await;
        // If GET is refused alike, the cause is not HEAD.
        if !answer
            .as_ref()
            .is_err_and(RegistryError::is_head_unsupported)
        {
            self.host.takes.update(|known| known.heads = false);
        }
        answer
    }

    /// The answer to an existence check; `None` if it means not found.
    pub(super) fn found<T>(
        &self,
        answer: Result<T, RegistryError>,
    ) -> Result<Option<T>, RegistryError> {
        match answer {
            Ok(found) => Ok(Some(found)),
            Err(error) if self.is_not_found_error(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns true if an error of an existence check means not found.
    pub(super) fn is_not_found_error(&self, error: &RegistryError) -> bool {
        error.is_not_found() || self.target && error.is_not_allowed()
    }

    /// Returns all tags in the registry's order, one request per page. The list is complete,
    /// because a missing tag could select a wrong image; an endless list is truncated with a note.
    pub async fn tags(&self) -> Result<Vec<String>, RegistryError> {
        let mut tags = Vec::new();
        // Hashes, because the list may be long.
        let (mut known, hashes) = (HashSet::new(), RandomState::new());
        let mut gives_links = false;
        let mut fruitless = 0;
        let what = format!("list the tags of {self}");
        let mut page = Page::After(None);
        let started = Instant::now();
        let mut bytes = 0;
        loop {
            let (headers, url, body) = self.fetch_page(&page, &what).await?;
            bytes += body.len();
            let broken = |reason: &str| RegistryError::protocol(host_of(&url), &what, reason);
            let list = TagList::read(&body).map_err(|error| match error {
                _ if is_web_page(&body) => RegistryError::web_page(host_of(&url), &what),
                error => broken(&format!("it is not a list of tags: {error}")),
            })?;
            let before = tags.len();
            let is_empty = list.tags.is_empty();
            let is_new = |tag: &String| known.insert(hashes.hash_one(tag));
            tags.extend(list.tags.into_iter().filter(is_new));
            let grew = tags.len() > before;
            let next = NextPage::read(&headers);
            if next != NextPage::None && self.is_endless(tags.len(), bytes, started) {
                return Ok(tags);
            }
            let is_full = self.host.takes.get().tags_page == Some(list.length);
            fruitless = if grew { 0 } else { fruitless + 1 };
            page = match next {
                NextPage::At(target) => {
                    gives_links = true;
                    let next = Page::behind(&target, &url, tags.last());
                    // Repeating the same empty page means the end.
                    if is_empty && next == page {
                        break;
                    }
                    if !grew && (!is_empty || fruitless > MOST_EMPTY_PAGES) {
                        let reason =
                            "its link to the next page leads to a page that was already read";
                        return Err(broken(reason));
                    }
                    next
                }
                // An empty page follows the last tag. If the same page repeats, the registry does
                // not support `last`, and the rest is behind the unparsed link.
                NextPage::Unclear if !grew && list.length > 0 => {
                    return Err(broken("its link to the next page cannot be read"));
                }
                NextPage::Unclear if grew => Page::After(tags.last().cloned()),
                // A registry that fills the page without a link may still support `last`; one that
                // does not returns the same page, which ends the list.
                NextPage::None if is_full && grew && !gives_links => {
                    Page::After(tags.last().cloned())
                }
                NextPage::None | NextPage::Unclear => break,
            };
        }
        Ok(tags)
    }

    /// Returns true for a list longer than any real one, and notes that the rest is not read.
    fn is_endless(&self, tags: usize, bytes: usize, started: Instant) -> bool {
        let is_endless =
            tags >= MOST_TAGS || bytes > MOST_BYTES || started.elapsed() > LONGEST_LISTING;
        if is_endless {
            self.inner().http.progress().note(&format!(
                "the list of tags of {self} does not end: using the first {tags}"
            ));
        }
        is_endless
    }

    /// Returns true if the repository has no tags; false if unknown.
    pub async fn is_new(&self) -> bool {
        let what = format!("list the tags of {self}");
        let request = self.request(Method::GET, "tags/list?n=1", what);
        match self.inner().fetch_once(&request, TAGS_LIMIT).await {
            Ok((_, _, body)) => TagList::read(&body).is_ok_and(|list| list.length == 0),
            Err(error) => self.is_not_found_error(&error),
        }
    }

    /// Fetches a page of tags; a shorter one if the registry refuses the requested length.
    async fn fetch_page(
        &self,
        page: &Page,
        what: &str,
    ) -> Result<(HeaderMap, Url, Bytes), RegistryError> {
        loop {
            let takes = self.host.takes.get();
            let path = match page {
                Page::After(last) => {
                    let length = takes.tags_page.map(|length| format!("n={length}"));
                    let last = last.as_ref().map(|last| format!("last={last}"));
                    let query: Vec<_> = length.into_iter().chain(last).collect();
                    format!("tags/list?{}", query.join("&"))
                }
                Page::Query(query) => format!("tags/list?{query}"),
                Page::At(_) => String::new(),
            };
            let mut request = self.request(Method::GET, &path, what.to_owned());
            if let Page::At(url) = page {
                request.target = RequestTarget::Url(url.clone());
            }
            match (self.inner().fetch(&request, TAGS_LIMIT).await, page) {
                (Err(error), Page::After(_))
                    if error.status() == Some(StatusCode::BAD_REQUEST)
                        && self
                            .host
                            .takes
                            .update(|it| it.shorten_page(takes.tags_page)) => {}
                (answer, _) => return answer,
            }
        }
    }

    /// Returns other repositories of the host to mount from; none if the registry does not mount or
    /// does not list them.
    pub(crate) async fn mount_candidates(&self) -> Vec<Self> {
        if !self.host.takes.get().mounts {
            return Vec::new();
        }
        let names = self.neighbours(MOST_NEIGHBOURS, NEIGHBOURS_TIMEOUT).await;
        names
            .unwrap_or_default()
            .iter()
            .filter(|name| *name != self.name())
            .filter_map(|name| parse_reference(&format!("{}/{name}", self.host())).ok())
            .take(MOST_NEIGHBOURS)
            .map(|reference| self.registry.repository(&reference))
            .collect()
    }
}

/// Equal by host and name, whether push target or not.
impl PartialEq for Repository {
    fn eq(&self, other: &Self) -> bool {
        self.host.name == other.host.name && self.name == other.name
    }
}

impl Eq for Repository {}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host.name, self.name)
    }
}

impl fmt::Debug for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Repository({self})")
    }
}

/// A page of the list of tags.
#[derive(PartialEq, Eq)]
enum Page {
    /// The page after a tag, or the first.
    After(Option<String>),
    /// The page of a link, by its query only, at the path of the first page. Registries behind a
    /// proxy do not know their own address: they write `http`, another port, or an internal path.
    Query(String),
    /// The page at another URL of the same host.
    At(Url),
}

impl Page {
    /// The page that a link refers to.
    fn behind(target: &str, here: &Url, last: Option<&String>) -> Self {
        let Ok(url) = here.join(target) else {
            return Self::After(last.cloned());
        };
        match url.query() {
            Some(query) if !query.is_empty() && url.path().ends_with("/tags/list") => {
                Self::Query(query.to_owned())
            }
            _ if url.origin() == here.origin() => Self::At(url),
            _ => Self::After(last.cloned()),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct TagPage {
    /// `null` in a repository without tags or being deleted.
    pub(super) tags: Option<TagList>,
}

/// The tags of a page; of one without end, the first.
#[derive(Default)]
pub(super) struct TagList {
    /// Number of entries.
    length: usize,
    pub(super) tags: Vec<String>,
}

impl TagList {
    fn read(page: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(page).map(|page: TagPage| page.tags.unwrap_or_default())
    }
}

impl<'de> Deserialize<'de> for TagList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = TagList;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of tags")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<TagList, A::Error> {
                let mut list = TagList::default();
                while let Some(tag) = entries.next_element::<Option<Cow<'_, str>>>()? {
                    list.length += 1;
                    // Some registries list a tag that is being deleted as null.
                    let tag = tag.filter(|_| list.tags.len() < MOST_TAGS);
                    list.tags.extend(tag.map(Cow::into_owned));
                }
                Ok(list)
            }
        }

        deserializer.deserialize_seq(Entries)
    }
}
