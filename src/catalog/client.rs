//! Talks to the catalog: every page of a search, and the files of an update.

use reqwest::{Client, Method, Request, Url};
use serde_json::json;

use super::dialog::{DialogError, UpdateFile, read_dialog};
use super::http::{Http, HttpError, Vouched};
use super::page::{Hit, Page, PageError, Postback, read_page};
use super::retry;
use crate::diagnose::{Blame, Diagnose};
use crate::net::{ClientError, host_of};

/// The catalog that everybody uses.
pub const DEFAULT_CATALOG: &str = "https://www.catalog.update.microsoft.com";

/// The real catalog stops at 40 pages; more than this is no search but a loop.
const MOST_PAGES: usize = 100;

/// Why the catalog could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// Not the address of a web site.
    #[error("{0:?} is no address of a catalog: expected https://HOST[:PORT][/PATH]")]
    Address(String),
    /// No answer.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// An answer to a search that is none.
    #[error("cannot use the answer of {host} to the search for {query:?}")]
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
    Endless {
        /// Host and port.
        host: String,
        /// What was searched for.
        query: String,
    },
    /// An answer to the question for an update's files that is none.
    #[error("cannot use the answer of {host} to the request for the links of {update_id}")]
    Dialog {
        /// Host and port.
        host: String,
        /// The update.
        update_id: String,
        /// What is wrong with it.
        source: DialogError,
    },
}

impl Diagnose for CatalogError {
    fn blame(&self) -> Blame {
        match self {
            Self::Address(_) => Blame::Request,
            Self::Http(error) => error.blame(),
            _ => Blame::Circumstances,
        }
    }
}

impl CatalogError {
    /// The catalog's page for errors and broken answers come and go with its load.
    fn is_transient(&self) -> bool {
        match self {
            Self::Http(error) => error.is_transient(),
            Self::Page {
                source: PageError::Reported(_),
                ..
            }
            | Self::Dialog {
                source: DialogError::Reported(_),
                ..
            } => true,
            _ => false,
        }
    }

    fn retry_after(&self) -> Option<std::time::Duration> {
        match self {
            Self::Http(error) => error.retry_after(),
            _ => None,
        }
    }
}

/// The Microsoft Update Catalog, or a copy of it.
pub struct Catalog<'h> {
    http: &'h Http,
    client: Client,
    address: Url,
}

impl<'h> Catalog<'h> {
    /// The catalog at an address.
    pub fn at(address: &str, http: &'h Http) -> Result<Self, CatalogError> {
        let mut url = Url::parse(address)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| CatalogError::Address(address.to_owned()))?;
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        let client = http.client(&url, Vouched::ByConnection)?;
        Ok(Self {
            http,
            client,
            address: url,
        })
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
        self.repeat(async || {
            let request = match postback {
                None => Request::new(Method::GET, url.clone()),
                Some(Postback(fields)) => self.form(url, fields)?,
            };
            let html = self
                .http
                .page("search the catalog", &self.client, request)
                .await?;
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
        self.repeat(async || {
            let request = self.form(&url, &fields)?;
            let html = self
                .http
                .page("list the update's files", &self.client, request)
                .await?;
            read_dialog(&html, update_id).map_err(|source| CatalogError::Dialog {
                host: host_of(&url),
                update_id: update_id.to_owned(),
                source,
            })
        })
        .await
    }

    fn form(&self, url: &Url, fields: &[(String, String)]) -> Result<Request, HttpError> {
        self.client
            .post(url.clone())
            .form(fields)
            .build()
            .map_err(|error| HttpError::Client(ClientError::Setup(error)))
    }

    async fn repeat<T>(
        &self,
        operation: impl AsyncFnMut() -> Result<T, CatalogError>,
    ) -> Result<T, CatalogError> {
        retry::run(
            &self.http.retry,
            self.http.progress.as_ref(),
            operation,
            CatalogError::is_transient,
            CatalogError::retry_after,
        )
        .await
    }
}
