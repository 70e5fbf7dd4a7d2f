//! Talks to the catalog: every page of a search, and the files of an update.

use std::time::Duration;

use reqwest::Url;
use serde_json::json;
use wincimg_common::diagnose::Diagnose;
use wincimg_common::foreign::without_password;
use wincimg_http::{Exchange, Http, HttpError, Transient, host_of};

use super::dialog::{DialogError, UpdateFile, read_dialog};
use super::links;
use super::page::{Hit, Page, PageError, Postback, read_page};

/// The catalog that everybody uses.
pub const DEFAULT_CATALOG: &str = "https://www.catalog.update.microsoft.com";

/// Real pages have a tenth of a megabyte.
pub(super) const PAGE_LIMIT: u64 = 16 << 20;
/// The real catalog stops at 40 pages; more than this is a loop.
const MOST_PAGES: usize = 100;

/// Why the catalog could not be asked.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "catalog/answer")]
pub enum CatalogError {
    /// Not the address of a web site.
    #[error("invalid address of a catalog {0:?}: expected https://HOST[:PORT][/PATH]")]
    #[diagnose(code = "usage/address", blame = Request)]
    Address(String),
    /// No answer.
    #[error(transparent)]
    #[diagnose(forward, hint = unreachable_hint(_0))]
    Http(#[from] HttpError),
    /// A page that cannot be read as the answer to a search.
    #[error("cannot use the answer of {host} to the search for {query:?}")]
    #[diagnose(
        hint = "the catalog may be overloaded: try again later, or name a copy with --catalog"
    )]
    Page {
        /// Host and port.
        host: String,
        /// What was searched for.
        query: String,
        /// What is wrong with it.
        source: PageError,
    },
    /// Pages of results that never end.
    #[error("{host} answers the search for {query:?} with the same page again and again")]
    #[diagnose(
        hint = "the catalog may be overloaded: try again later, or name a copy with --catalog"
    )]
    Endless {
        /// Host and port.
        host: String,
        /// What was searched for.
        query: String,
    },
    /// A link that leads where no update is.
    #[error("{host} links {name} to {url:?}: {problem}")]
    #[diagnose(
        hint = "Microsoft's catalog links to its own servers: ask it without a copy or a proxy in between"
    )]
    Link {
        /// Host and port.
        host: String,
        /// The file.
        name: String,
        /// The link.
        url: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A page that cannot be read as the list of an update's files.
    #[error("cannot use the answer of {host} to the request for the links of {update_id}")]
    #[diagnose(
        hint = "the catalog may be overloaded: try again later, or name a copy with --catalog"
    )]
    Dialog {
        /// Host and port.
        host: String,
        /// The update.
        update_id: String,
        /// What is wrong with it.
        source: DialogError,
    },
}

impl Transient for CatalogError {
    /// The catalog's page for errors comes and goes with its load.
    fn is_transient(&self) -> bool {
        match self {
            Self::Http(error) => error.is_transient(),
            Self::Page { source, .. } => matches!(source, PageError::Reported(_)),
            Self::Dialog { source, .. } => matches!(source, DialogError::Reported(_)),
            Self::Address(_) | Self::Link { .. } | Self::Endless { .. } => false,
        }
    }

    fn is_settled(&self) -> bool {
        matches!(self, Self::Http(error) if error.is_settled())
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Http(error) => error.retry_after(),
            _ => None,
        }
    }
}

fn unreachable_hint(error: &HttpError) -> Option<String> {
    match error {
        HttpError::Unreachable { .. } => Some(
            "check the network and HTTPS_PROXY, or name a copy of the catalog with --catalog"
                .to_owned(),
        ),
        error => error.diagnosis().hint,
    }
}

/// The Microsoft Update Catalog, or a copy of it.
pub struct Catalog<'h> {
    http: &'h Http,
    address: Url,
}

impl<'h> Catalog<'h> {
    /// The catalog at an address.
    pub fn at(address: &str, http: &'h Http) -> Result<Self, CatalogError> {
        let mut url = Url::parse(address)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| CatalogError::Address(without_password(address).into_owned()))?;
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        http.check(&Exchange::get("open the catalog", url.clone()))?;
        Ok(Self { http, address: url })
    }

    fn url(&self, page: &str) -> Result<Url, CatalogError> {
        self.address
            .join(page)
            .map_err(|_| CatalogError::Address(self.address.to_string()))
    }

    /// Every update that a search finds, from all of its pages.
    pub async fn search(&self, query: &str) -> Result<Vec<Hit>, CatalogError> {
        let mut url = self.url("Search.aspx")?;
        url.query_pairs_mut().append_pair("q", query);
        let mut hits: Vec<Hit> = Vec::new();
        let mut postback = None;
        for _ in 0..MOST_PAGES {
            let (found, next) = match self.result_page(query, &url, postback.as_ref()).await? {
                Page::Nothing => return Ok(hits),
                Page::Hits { hits, next } => (hits, next),
            };
            let known = hits.len();
            for hit in found {
                if !hits.iter().any(|known| known.update_id == hit.update_id) {
                    hits.push(hit);
                }
            }
            if next.is_none() {
                return Ok(hits);
            }
            if hits.len() == known {
                break;
            }
            postback = next;
        }
        Err(CatalogError::Endless {
            host: host_of(&url),
            query: query.to_owned(),
        })
    }

    async fn result_page(
        &self,
        query: &str,
        url: &Url,
        postback: Option<&Postback>,
    ) -> Result<Page, CatalogError> {
        let what = "search the catalog";
        let exchange = match postback {
            None => Exchange::get(what, url.clone()),
            Some(Postback(fields)) => Exchange::form(what, url.clone(), fields),
        };
        self.http
            .repeat(|| async {
                let html = self.http.page(&exchange, PAGE_LIMIT).await?;
                read_page(&html).map_err(|source| CatalogError::Page {
                    host: host_of(url),
                    query: query.to_owned(),
                    source,
                })
            })
            .await
    }

    /// The files of an update.
    pub async fn files(&self, update_id: &str) -> Result<Vec<UpdateFile>, CatalogError> {
        let url = self.url("DownloadDialog.aspx")?;
        let ids = json!([{
            "size": 0,
            "languages": "",
            "uidInfo": update_id,
            "updateID": update_id,
        }]);
        let fields = [("updateIDs".to_owned(), ids.to_string())];
        let exchange = Exchange::form("list the update's files", url, &fields);
        let files = self
            .http
            .repeat(|| async {
                let html = self.http.page(&exchange, PAGE_LIMIT).await?;
                read_dialog(&html, update_id).map_err(|source| CatalogError::Dialog {
                    host: host_of(&exchange.url),
                    update_id: update_id.to_owned(),
                    source,
                })
            })
            .await?;
        for file in &files {
            links::check(&file.url, &self.address).map_err(|problem| CatalogError::Link {
                host: host_of(&exchange.url),
                name: file.name.clone(),
                url: file.url.chars().take(200).collect(),
                problem,
            })?;
        }
        Ok(files)
    }
}
