//! Client of the catalog: every page of a search, and the files of an update.

use reqwest::Url;
use serde_json::json;
use wincimg_common::diagnose::Problem;
use wincimg_common::untrusted::without_password;
use wincimg_http::{AddressPolicy, AddressScope, Exchange, HttpClient, HttpError, host_of};

use super::dialog::{UpdateFile, read_dialog};
use super::page::{Page, PageError, SearchResult, read_page};

/// Address of Microsoft's catalog.
pub const DEFAULT_CATALOG: &str = "https://www.catalog.update.microsoft.com";

/// Maximum size of a page; real ones have about 100 KB.
pub(super) const PAGE_LIMIT: u64 = 16 << 20;
/// Maximum number of pages; the real catalog stops at 40, so more is a loop.
const MOST_PAGES: usize = 100;

const OVERLOADED: &str =
    "the catalog may be overloaded: try again later, or pass a copy with --catalog";

/// Error of a request to the catalog.
fn not_answered(error: HttpError) -> Problem {
    let hint = match &error {
        HttpError::Unreachable { .. } => {
            Some("check the network and HTTPS_PROXY, or pass a copy of the catalog with --catalog")
        }
        HttpError::Status {
            status,
            retry_after: None,
            ..
        } if matches!(status.as_u16(), 429 | 502..=504) => Some(OVERLOADED),
        _ => None,
    };
    Problem::from_diagnosed(error).hint_if(hint)
}

/// Problem of an invalid response.
fn unusable(problem: String) -> Problem {
    Problem::new("catalog/answer", problem).hint(OVERLOADED)
}

fn invalid_address(address: &str) -> Problem {
    let problem =
        format!("invalid address of a catalog {address:?}: expected https://HOST[:PORT][/PATH]");
    Problem::request("usage/address", problem)
}

/// The Microsoft Update Catalog, or a copy of it.
pub struct Catalog<'h> {
    http: &'h HttpClient,
    address: Url,
}

impl<'h> Catalog<'h> {
    /// Creates a client for the catalog at an address.
    pub fn new(address: &str, http: &'h HttpClient) -> Result<Self, Problem> {
        let mut url = Url::parse(address)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| invalid_address(&without_password(address)))?;
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        http.check(&Exchange::get("open the catalog", url.clone()))
            .map_err(not_answered)?;
        Ok(Self { http, address: url })
    }

    fn url(&self, page: &str) -> Result<Url, Problem> {
        self.address
            .join(page)
            .map_err(|_| invalid_address(self.address.as_str()))
    }

    /// Searches for updates, over all result pages.
    pub async fn search(&self, query: &str) -> Result<Vec<SearchResult>, Problem> {
        let mut url = self.url("Search.aspx")?;
        url.query_pairs_mut().append_pair("q", query);
        let mut hits: Vec<SearchResult> = Vec::new();
        let mut postback: Option<Vec<(String, String)>> = None;
        for _ in 0..MOST_PAGES {
            let page = self.result_page(query, &url, postback.as_deref()).await?;
            let known = hits.len();
            for hit in page.hits {
                if !hits.iter().any(|known| known.update_id == hit.update_id) {
                    hits.push(hit);
                }
            }
            if page.next.is_none() {
                return Ok(hits);
            }
            if hits.len() == known {
                break;
            }
            postback = page.next;
        }
        let host = host_of(&url);
        let problem =
            format!("{host} returns the same page of the search for {query:?} repeatedly");
        Err(unusable(problem))
    }

    async fn result_page(
        &self,
        query: &str,
        url: &Url,
        postback: Option<&[(String, String)]>,
    ) -> Result<Page, Problem> {
        let what = "search the catalog";
        let exchange = match postback {
            None => Exchange::get(what, url.clone()),
            Some(fields) => Exchange::form(what, url.clone(), fields),
        };
        let what = format!("the search for {query:?}");
        self.page(exchange, &what, read_page).await
    }

    /// Reads the response to a request.
    async fn page<T>(
        &self,
        mut exchange: Exchange<'_>,
        request: &str,
        read: impl Fn(&str) -> Result<T, PageError>,
    ) -> Result<T, Problem> {
        exchange.addresses = AddressPolicy::ThisMachineToo;
        let answer = self
            .http
            .retry(|| async {
                let html = self.http.page(&exchange, PAGE_LIMIT).await?;
                read(&html).map_err(|error| {
                    let passes = matches!(error, PageError::Reported(_));
                    let host = host_of(&exchange.url);
                    let problem = unusable(format!("invalid response of {host} to {request}"));
                    let problem = problem.source(error);
                    if passes {
                        HttpError::Passing(problem)
                    } else {
                        HttpError::Other(problem)
                    }
                })
            })
            .await;
        answer.map_err(not_answered)
    }

    /// Lists the files of an update.
    pub async fn files(&self, update_id: &str) -> Result<Vec<UpdateFile>, Problem> {
        let url = self.url("DownloadDialog.aspx")?;
        let ids = json!([{
            "size": 0,
            "languages": "",
            "uidInfo": update_id,
            "updateID": update_id,
        }]);
        let fields = [("updateIDs".to_owned(), ids.to_string())];
        let host = host_of(&url);
        let exchange = Exchange::form("list the update's files", url, &fields);
        let what = format!("the request for the links of {update_id}");
        let read = |html: &str| read_dialog(html, update_id);
        let files = self.page(exchange, &what, read).await?;
        for file in &files {
            check_link(&file.url, &self.address).map_err(|problem| {
                let name = &file.name;
                let url: String = file.url.chars().take(200).collect();
                let problem = format!("{host} links {name} to {url:?}: {problem}");
                Problem::new("catalog/answer", problem).hint(
                    "Microsoft's catalog links to its own servers: use it without a copy or a proxy \
                     in between",
                )
            })?;
        }
        Ok(files)
    }
}

/// Checks that a link may be followed: a page from a proxy or a copy could link to a service that
/// only this machine, or a node that runs a script, can reach. A catalog on this machine may link to
/// this machine.
fn check_link(link: &str, catalog: &Url) -> Result<(), &'static str> {
    let url: Url = link.parse().map_err(|_| "it is not a web address")?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("it is not a web address");
    }
    match AddressScope::of_url(&url) {
        AddressScope::World => Ok(()),
        AddressScope::ThisMachine if AddressScope::of_url(catalog) == AddressScope::ThisMachine => {
            Ok(())
        }
        AddressScope::ThisMachine => Err("it refers to this machine"),
        AddressScope::Metadata => Err("it is an address where clouds keep their credentials"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THIS_MACHINE: &str = "it refers to this machine";
    const METADATA: &str = "it is an address where clouds keep their credentials";

    #[test]
    fn links_lead_to_web_addresses_of_other_machines_alone() {
        let catalog = DEFAULT_CATALOG.parse().unwrap();
        for (link, expected) in [
            ("http://download.windowsupdate.com/c/a.msu", Ok(())),
            ("http://10.1.2.3/a.msu", Ok(())),
            ("file:///etc/passwd", Err("it is not a web address")),
            (r"\\server\share\a.msu", Err("it is not a web address")),
            ("ftp://host/a.msu", Err("it is not a web address")),
            (r"C:\a.msu", Err("it is not a web address")),
            ("http://a.localhost/a.msu", Err(THIS_MACHINE)),
            ("http://0x7f.1/a.msu", Err(THIS_MACHINE)),
            ("http://[::ffff:127.0.0.1]/a.msu", Err(THIS_MACHINE)),
            ("http://169.254.169.254/latest/meta-data", Err(METADATA)),
            ("http://[fe80::1]/a.msu", Err(METADATA)),
        ] {
            assert_eq!(check_link(link, &catalog), expected, "{link}");
        }
    }

    #[test]
    fn a_catalog_on_this_machine_may_link_to_itself_but_not_to_neighbours() {
        let own: Url = "http://127.0.0.1:8080/".parse().unwrap();
        assert_eq!(check_link("http://localhost:8081/a.msu", &own), Ok(()));
        assert!(check_link("http://169.254.169.254/a.msu", &own).is_err());
    }
}
