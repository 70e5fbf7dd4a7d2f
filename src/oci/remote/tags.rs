//! The tags of a repository, page by page.

use std::collections::HashSet;

use reqwest::header::{HeaderMap, LINK};
use reqwest::{Method, Url};
use serde::Deserialize;

use super::request::Target;
use super::{RegistryError, Repository};
use crate::net::host_of;

/// Tags asked for at once. Registries may give fewer and say so by a link to the next page.
const PAGE: usize = 1000;
/// More than any repository has; a list without end must not fill the memory.
const MOST_TAGS: usize = 1_000_000;
const PAGE_LIMIT: u64 = 32 * 1024 * 1024;

#[derive(Deserialize)]
struct TagList {
    /// `null` in a repository without tags.
    tags: Option<Vec<String>>,
}

impl Repository {
    /// All tags, in the registry's order, with one request for each page.
    pub async fn tags(&self) -> Result<Vec<String>, RegistryError> {
        let mut tags = Vec::new();
        let mut known = HashSet::new();
        let mut gives_links = false;
        let what = format!("list the tags of {self}");
        let mut request = self.request(Method::GET, &format!("tags/list?n={PAGE}"), what.clone());
        loop {
            let (headers, url, body) = self.inner().fetch(&request, PAGE_LIMIT).await?;
            let broken = |reason: String| RegistryError::Protocol {
                host: host_of(&url),
                what: what.clone(),
                reason,
            };
            let page: TagList = serde_json::from_slice(&body)
                .map_err(|error| broken(format!("it is no list of tags: {error}")))?;
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
                None if length == PAGE && grew && !gives_links => match tags.last() {
                    Some(last) => {
                        Target::Api(format!("{}/tags/list?n={PAGE}&last={last}", self.name()))
                    }
                    None => return Ok(tags),
                },
                None => return Ok(tags),
            };
        }
    }
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
