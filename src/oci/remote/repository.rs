//! One repository: a name on a host, its tags, and its neighbours there.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{HeaderMap, LINK};
use reqwest::{Method, Url};
use serde::Deserialize;

use super::challenge::Scope;
use super::error::RegistryError;
use super::host::Host;
use super::registry::{Inner, Registry};
use super::request::{Request, Target};
use crate::net::host_of;
use crate::oci::reference::{Reference, parse_reference};

/// Tags asked for at once. Registries may give fewer and say so by a link to the next page.
const TAGS_PAGE: usize = 1000;
/// More than any repository has; a list without end must not fill the memory.
const MOST_TAGS: usize = 1_000_000;
const TAGS_LIMIT: u64 = 32 * 1024 * 1024;
/// As many other repositories as are worth a question each.
const MOST_NEIGHBOURS: usize = 100;
const NEIGHBOURS_LIMIT: u64 = 1024 * 1024;
/// Registries on object storage may take minutes to walk through themselves.
const NEIGHBOURS_PATIENCE: Duration = Duration::from_secs(5);

/// A repository of a registry. Clones are cheap and share everything.
#[derive(Clone)]
pub struct Repository {
    pub(super) registry: Registry,
    pub(super) host: Arc<Host>,
    name: Arc<str>,
}

impl Registry {
    /// The repository that a reference names.
    pub fn repository(&self, reference: &Reference) -> Repository {
        Repository {
            registry: self.clone(),
            host: self.0.host(reference.registry()),
            name: reference.repository().into(),
        }
    }
}

impl Repository {
    /// The host as references name it: `docker.io`, `repo.lan:5000`.
    pub fn host(&self) -> &str {
        &self.host.name
    }

    /// The name below the host: `library/nginx`.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn inner(&self) -> &Inner {
        &self.registry.0
    }

    /// A request without headers and body to a path below `/v2/NAME/`.
    pub(super) fn request(&self, method: Method, path: &str, what: String) -> Request<'_> {
        let scope = match method {
            Method::GET | Method::HEAD => Scope::pull(&self.name),
            _ => Scope::push(&self.name),
        };
        let path = format!("{}/{path}", self.name);
        Request::new(&self.host, scope, method, path, what)
    }

    /// All tags, in the registry's order, with one request for each page.
    pub async fn tags(&self) -> Result<Vec<String>, RegistryError> {
        let mut tags = Vec::new();
        let mut known = HashSet::new();
        let mut gives_links = false;
        let what = format!("list the tags of {self}");
        let mut request = self.request(
            Method::GET,
            &format!("tags/list?n={TAGS_PAGE}"),
            what.clone(),
        );
        loop {
            let (headers, url, body) = self.inner().fetch(&request, TAGS_LIMIT).await?;
            let broken = |reason: String| RegistryError::protocol(host_of(&url), &what, reason);
            let page: TagPage = serde_json::from_slice(&body)
                .map_err(|error| broken(format!("it is not a list of tags: {error}")))?;
            let page = page.tags.unwrap_or_default();
            let length = page.len();
            let before = tags.len();
            tags.extend(page.into_iter().filter(|tag| known.insert(tag.clone())));
            let grew = tags.len() > before;
            if tags.len() > MOST_TAGS {
                return Err(broken(format!("it has more than {MOST_TAGS} tags")));
            }

            request.target = match next_page(&headers, &url) {
                Some(next) if !grew || next.origin() != url.origin() => {
                    return Err(broken(
                        "its link to the next page leads nowhere new".to_owned(),
                    ));
                }
                Some(next) => {
                    gives_links = true;
                    Target::Url(next)
                }
                // A registry that fills the page and gives no link may still know `last`; one that
                // does not repeats itself, and that is the end.
                None if length == TAGS_PAGE && grew && !gives_links => match tags.last() {
                    Some(last) => Target::Api(format!(
                        "{}/tags/list?n={TAGS_PAGE}&last={last}",
                        self.name()
                    )),
                    None => return Ok(tags),
                },
                None => return Ok(tags),
            };
        }
    }

    /// Some of the host's other repositories; none where the registry does not list them, to us
    /// or at all.
    pub async fn neighbours(&self) -> Vec<Self> {
        let body = tokio::time::timeout(NEIGHBOURS_PATIENCE, self.catalog()).await;
        let names = body.ok().flatten().and_then(|body| body.repositories);
        names
            .unwrap_or_default()
            .iter()
            .filter(|name| *name != self.name())
            .filter_map(|name| parse_reference(&format!("{}/{name}", self.host())).ok())
            .take(MOST_NEIGHBOURS)
            .map(|reference| self.registry.repository(&reference))
            .collect()
    }

    async fn catalog(&self) -> Option<Catalog> {
        let what = format!("list the repositories of {}", self.host());
        let path = format!("_catalog?n={MOST_NEIGHBOURS}");
        let request = Request::new(&self.host, Scope::none(), Method::GET, path, what);
        let answer = self.inner().fetch_once(&request, NEIGHBOURS_LIMIT).await;
        let (_, _, body) = answer.ok()?;
        serde_json::from_slice(&body).ok()
    }
}

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

#[derive(Deserialize)]
struct TagPage {
    /// `null` in a repository without tags.
    tags: Option<Vec<String>>,
}

#[derive(Deserialize)]
struct Catalog {
    repositories: Option<Vec<String>>,
}

/// The target of `Link: <…>; rel="next"`.
fn next_page(headers: &HeaderMap, url: &Url) -> Option<Url> {
    headers
        .get_all(LINK)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(",<").flat_map(|link| link.split(", <")))
        .find_map(|link| {
            let (target, parameters) = link.trim().trim_start_matches('<').split_once('>')?;
            let is_next = parameters.split(';').any(|parameter| {
                let parameter = parameter.trim().trim_end_matches(',').replace('"', "");
                parameter.eq_ignore_ascii_case("rel=next")
            });
            if is_next { url.join(target).ok() } else { None }
        })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used)]

    use super::*;

    fn next(link: &str) -> Option<String> {
        let mut headers = HeaderMap::new();
        headers.insert(LINK, link.parse().unwrap());
        let url = "https://host/v2/a/tags/list?n=2".parse().unwrap();
        next_page(&headers, &url).map(String::from)
    }

    #[test]
    fn a_link_to_the_next_page_may_be_relative_or_absolute() {
        let expected = Some("https://host/v2/a/tags/list?n=2&last=b".to_owned());
        assert_eq!(
            next(r#"</v2/a/tags/list?n=2&last=b>; rel="next""#),
            expected
        );
        assert_eq!(
            next("<https://host/v2/a/tags/list?n=2&last=b>;rel=next"),
            expected
        );
        assert_eq!(
            next(r#"</v2/>; rel="first", </v2/a/tags/list?n=2&last=b>; rel="next""#),
            expected
        );
    }

    #[test]
    fn other_links_are_not_pages() {
        assert_eq!(next(r#"</docs>; rel="help""#), None);
    }
}
