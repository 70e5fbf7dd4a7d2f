//! One repository: a name on a host, its tags, and its neighbours there.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use reqwest::header::HeaderMap;
use reqwest::{Method, Response, StatusCode, Url};
use serde::Deserialize;
use wincimg_http::host_of;

use super::capabilities::UploadMode;
use super::challenge::Scope;
use super::client::{Inner, RegistryClient};
use super::error::RegistryError;
use super::host::Host;
use super::link::Next;
use super::request::{Request, RequestTarget};
use crate::reference::{Reference, parse_reference};

/// More than any repository has; a list without end must fill neither the memory nor the day.
const MOST_TAGS: usize = 1_000_000;
const MOST_BYTES: usize = 64 * 1024 * 1024;
const LONGEST_LISTING: Duration = Duration::from_mins(2);
const TAGS_LIMIT: u64 = 32 * 1024 * 1024;
/// Empty pages in a row that a registry may give: some leave out tags after they made the pages.
const MOST_EMPTY_PAGES: usize = 100;
/// As many other repositories as are worth a question each.
const MOST_NEIGHBOURS: usize = 100;
const NEIGHBOURS_LIMIT: u64 = 1024 * 1024;
/// Registries on object storage may take minutes to walk through themselves.
const NEIGHBOURS_PATIENCE: Duration = Duration::from_secs(5);

/// A repository of a registry. Clones are cheap and share everything.
#[derive(Clone)]
pub struct Repository {
    pub(super) registry: RegistryClient,
    pub(super) host: Arc<Host>,
    name: Arc<str>,
    /// True if the repository is written to.
    target: bool,
}

impl RegistryClient {
    /// The repository that a reference names.
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
    /// The same repository as one that is pushed to. What is there is asked about with the right to
    /// write, so that one token does for all, and a refusal to say means that it is not known: the
    /// repository may not exist before the push, which will show who may not.
    #[must_use]
    pub fn for_push(mut self) -> Self {
        self.target = true;
        self
    }

    /// Returns true if the repository is written to.
    pub(super) fn is_for_push(&self) -> bool {
        self.target
    }

    /// The host as references name it: `docker.io`, `repo.lan:5000`.
    pub fn host(&self) -> &str {
        &self.host.name
    }

    /// The name below the host: `library/nginx`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns true if the host takes blobs in pieces, as far as it has shown.
    pub fn supports_chunks(&self) -> bool {
        self.host.takes.get().manner != Some(UploadMode::Whole)
    }

    pub(super) fn inner(&self) -> &Inner {
        &self.registry.0
    }

    /// A request without headers and body to a path below `/v2/NAME/`.
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

    /// Asks by HEAD whether something is there; by GET where the host refuses HEAD.
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
        // The same refusal to a GET would be about something else.
        if !answer
            .as_ref()
            .is_err_and(RegistryError::is_head_unsupported)
        {
            self.host.takes.update(|known| known.heads = false);
        }
        answer
    }

    /// Returns true if an error to a question whether something is there means no more than that it
    /// is not.
    pub(super) fn is_not_found_error(&self, error: &RegistryError) -> bool {
        error.is_not_found() || self.target && error.is_not_allowed()
    }

    /// All tags, in the registry's order, with one request for each page. A list that ended early
    /// would let a wrong image be chosen, so it ends where the registry says so; one that has no end
    /// is said to be cut.
    pub async fn tags(&self) -> Result<Vec<String>, RegistryError> {
        let mut tags = Vec::new();
        let mut known = HashSet::new();
        let mut gives_links = false;
        let mut fruitless = 0;
        let what = format!("list the tags of {self}");
        let mut page = Page::After(None);
        let started = Instant::now();
        let mut bytes = 0;
        loop {
            let (headers, url, body) = self.fetch_page(&page, &what).await?;
            bytes += body.len();
            let broken = |reason: String| RegistryError::protocol(host_of(&url), &what, reason);
            let list: TagPage = serde_json::from_slice(&body)
                .map_err(|error| broken(format!("it is not a list of tags: {error}")))?;
            let list = list.tags.unwrap_or_default();
            let (before, length) = (tags.len(), list.len());
            let is_empty = list.iter().all(Option::is_none);
            let new = list.into_iter().flatten();
            tags.extend(new.filter(|tag| known.insert(tag.clone())));
            let grew = tags.len() > before;
            let is_endless =
                tags.len() > MOST_TAGS || bytes > MOST_BYTES || started.elapsed() > LONGEST_LISTING;
            if is_endless && Next::read(&headers) != Next::None {
                self.inner().http.progress().note(&format!(
                    "the list of tags of {self} does not end: the first {} count",
                    tags.len()
                ));
                return Ok(tags);
            }
            let is_full = self.host.takes.get().tags_page == Some(length);
            fruitless = if grew { 0 } else { fruitless + 1 };
            page = match Next::read(&headers) {
                Next::At(target) => {
                    gives_links = true;
                    let next = Page::behind(&target, &url, tags.last());
                    // The same question again is no more than the end.
                    if is_empty && next == page {
                        break;
                    }
                    if !grew && (!is_empty || fruitless > MOST_EMPTY_PAGES) {
                        let reason = "its link to the next page leads nowhere new";
                        return Err(broken(reason.to_owned()));
                    }
                    next
                }
                // Behind the last tag there is an empty page. Where the same one comes again, the
                // registry does not know `last`, and the rest is behind that link.
                Next::Unclear if !grew && length > 0 => {
                    let reason = "its link to the next page cannot be read";
                    return Err(broken(reason.to_owned()));
                }
                Next::Unclear if grew => Page::After(tags.last().cloned()),
                // A registry that fills the page and gives no link may still know `last`; one that
                // does not repeats itself, and that is the end.
                Next::None if is_full && grew && !gives_links => Page::After(tags.last().cloned()),
                Next::None | Next::Unclear => break,
            };
        }
        Ok(tags)
    }

    /// Returns true if nothing has a tag here yet. Where that cannot be told, something may.
    pub async fn is_new(&self) -> bool {
        let what = format!("ask {self} for a tag");
        let request = self.request(Method::GET, "tags/list?n=1", what);
        match self.inner().fetch_once(&request, TAGS_LIMIT).await {
            Ok((_, _, body)) => {
                let page = serde_json::from_slice(&body);
                page.is_ok_and(|page: TagPage| page.tags.is_none_or(|tags| tags.is_empty()))
            }
            Err(error) => self.is_not_found_error(&error),
        }
    }

    /// One page of tags; a shorter one where the registry refuses the length that was asked for.
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

    /// Some of the host's other repositories, to mount from; none where the registry does not mount,
    /// or does not list them, to us or at all.
    pub async fn mount_candidates(&self) -> Vec<Self> {
        if !self.host.takes.get().mounts {
            return Vec::new();
        }
        let body = tokio::time::timeout(NEIGHBOURS_PATIENCE, self.catalog()).await;
        let names = body.ok().flatten().and_then(|body| body.repositories);
        names
            .unwrap_or_default()
            .iter()
            .flatten()
            .filter(|name| *name != self.name())
            .filter_map(|name| parse_reference(&format!("{}/{name}", self.host())).ok())
            .take(MOST_NEIGHBOURS)
            .map(|reference| self.registry.repository(&reference))
            .collect()
    }

    async fn catalog(&self) -> Option<Catalog> {
        let what = format!("list the repositories of {}", self.host());
        let path = format!("_catalog?n={MOST_NEIGHBOURS}");
        let request = Request::new(&self.host, "", Method::GET, path, what);
        let answer = self.inner().fetch_once(&request, NEIGHBOURS_LIMIT).await;
        let (_, _, body) = answer.ok()?;
        serde_json::from_slice(&body).ok()
    }
}

/// The same repository, whatever is to be done with it.
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
    /// The one behind a tag, or the first.
    After(Option<String>),
    /// The one that a link names by its query, at the place where the first one was. Registries
    /// behind a proxy do not know their own address: they write `http`, another port, or a path
    /// that only they know.
    Query(String),
    /// The one at a URL of the same host, which says it in a way of its own.
    At(Url),
}

impl Page {
    /// The page that a link names.
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
struct TagPage {
    /// `null` in a repository without tags, and for one that is being deleted.
    tags: Option<Vec<Option<String>>>,
}

#[derive(Deserialize)]
struct Catalog {
    repositories: Option<Vec<Option<String>>>,
}
