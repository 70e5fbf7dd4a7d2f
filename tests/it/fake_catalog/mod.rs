//! A fake Update Catalog: paged searches, dialogs, files with ranges, and the faults seen in the
//! real one.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

pub mod setup;

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::State;
use axum::http::{Method, Request, Response, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::Digest as _;
use wincimg_testkit::cabinet::cabinet;
use wincimg_testkit::file_server::{ResponseFault, send, start_of};
use wincimg_testkit::serve;
use wincimg_testkit::serve::serve_with;

/// Page size of the real catalog.
const PAGE: usize = 25;

/// A catalog that runs until it is dropped.
pub struct FakeCatalog {
    pub host: String,
    content: Arc<Mutex<Content>>,
    _served: serve::TestServer,
}

#[derive(Default)]
struct Content {
    updates: Vec<Update>,
    served: HashMap<String, ServedFile>,
    /// Responses for the next requests for pages.
    instead: VecDeque<ResponseOverride>,
    release_info: String,
    requests: Vec<String>,
}

/// An update in searches and dialogs.
#[derive(Clone)]
pub struct Update {
    pub title: String,
    pub id: String,
    pub size: Option<u64>,
    pub files: Vec<Listed>,
}

/// A file in a dialog.
#[derive(Clone)]
pub struct Listed {
    pub name: String,
    pub sha1: Option<String>,
    pub sha256: Option<String>,
    /// Host of its link, if not the catalog's.
    pub host: Option<String>,
    /// Its link, if not derived from a host.
    pub link: Option<String>,
}

/// A file on the server.
pub struct ServedFile {
    pub bytes: Vec<u8>,
    pub etag: Option<String>,
    /// True if `If-Range` is supported.
    pub careful: bool,
    pub faults: VecDeque<ResponseFault>,
}

/// Response for a page.
#[derive(Clone)]
pub enum ResponseOverride {
    Status(u16),
    /// With status 200.
    Page(String),
}

pub const ERROR_PAGE: &str = "<html><body><div id='errorPageDisplayedError'>The website has \
    encountered a problem [Error number: 8DDD0010]</div></body></html>";

impl FakeCatalog {
    pub fn start() -> Self {
        let content = Arc::new(Mutex::new(Content::default()));
        let state = content.clone();
        let served = serve_with(|address| {
            let state = (state, address.to_string());
            Router::new().fallback(answer).with_state(state)
        });
        Self {
            host: served.host(),
            content,
            _served: served,
        }
    }

    /// Publishes an update with its files; returns its id.
    pub fn publish(&self, title: &str, files: &[(&str, Vec<u8>)]) -> String {
        let mut content = self.content.lock().unwrap();
        let id = format!("{:08x}-ce16-4700-9a6d-b2bb28974002", content.updates.len());
        let listed = files
            .iter()
            .map(|(name, bytes)| Listed::of(name, bytes))
            .collect();
        for (name, bytes) in files {
            let served = ServedFile {
                etag: Some(format!(
                    "\"{}\"",
                    &hex::encode(sha1::Sha1::digest(bytes))[..8]
                )),
                bytes: bytes.clone(),
                careful: true,
                faults: VecDeque::new(),
            };
            content.served.insert((*name).to_owned(), served);
        }
        content.updates.push(Update {
            title: title.to_owned(),
            id: id.clone(),
            size: Some(files.iter().map(|(_, bytes)| bytes.len() as u64).sum()),
            files: listed,
        });
        id
    }

    /// Changes the entry of the last update.
    pub fn change_last(&self, change: impl FnOnce(&mut Update)) {
        change(self.content.lock().unwrap().updates.last_mut().unwrap());
    }

    pub fn change_served(&self, name: &str, change: impl FnOnce(&mut ServedFile)) {
        change(self.content.lock().unwrap().served.get_mut(name).unwrap());
    }

    /// Sets the faults of the next requests for a file.
    pub fn fail(&self, name: &str, faults: impl IntoIterator<Item = ResponseFault>) {
        self.change_served(name, |served| served.faults.extend(faults));
    }

    /// Sets the responses for the next requests for pages.
    pub fn instead(&self, answers: impl IntoIterator<Item = ResponseOverride>) {
        self.content.lock().unwrap().instead.extend(answers);
    }

    pub fn set_release_info(&self, html: &str) {
        self.content.lock().unwrap().release_info = html.into();
    }

    /// Takes the requests so far: `METHOD PATH`, with the requested range for files.
    pub fn requests(&self) -> Vec<String> {
        std::mem::take(&mut self.content.lock().unwrap().requests)
    }
}

impl Listed {
    pub fn of(name: &str, bytes: &[u8]) -> Self {
        Self {
            name: name.to_owned(),
            sha1: Some(STANDARD.encode(sha1::Sha1::digest(bytes))),
            sha256: None,
            host: None,
            link: None,
        }
    }
}

/// A cabinet with the properties of an article's update package.
pub fn msu(article: &str, architecture: &str, padding: usize) -> Vec<u8> {
    let properties = format!(
        "Applies to=\"Windows 10.0\"\r\nBuild Date=\"2020/04/10\"\r\n\
         KB Article Number=\"{article}\"\r\nProcessor Architecture=\"{architecture}\"\r\n"
    );
    let name = format!("Windows10.0-KB{article}-x64-pkgProperties.txt");
    let noise: Vec<u8> = (0..padding)
        .map(|i| ((i * i) >> 3).to_le_bytes()[0])
        .collect();
    cabinet(&[("WSUSSCAN.cab", &noise), (&name, properties.as_bytes())])
}

type Shared = State<(Arc<Mutex<Content>>, String)>;

async fn answer(
    State((content, host)): Shared,
    request: Request<Body>,
) -> Result<Response<Body>, Infallible> {
    let (parts, body) = request.into_parts();
    let form = to_bytes(body, 1 << 20).await.unwrap_or_default();
    let form = String::from_utf8_lossy(&form).into_owned();
    let path = parts.uri.path().to_owned();
    let header = |name| {
        let value = parts.headers.get(name);
        value.map(|value| value.to_str().unwrap().to_owned())
    };
    let mut content = content.lock().unwrap();
    let range = header(header::RANGE)
        .map(|range| format!(" {range}"))
        .unwrap_or_default();
    content
        .requests
        .push(format!("{} {path}{range}", parts.method));
    let is_page = !path.starts_with("/files/");
    if is_page && let Some(instead) = content.instead.pop_front() {
        return Ok(match instead {
            ResponseOverride::Status(status) => plain(status, "later"),
            ResponseOverride::Page(html) => plain(200, html),
        });
    }
    Ok(match (parts.method, path.as_str()) {
        (Method::GET, "/Search.aspx") => plain(200, content.search(0)),
        (Method::POST, "/Search.aspx") => match next_page(&form) {
            Some(page) => plain(200, content.search(page)),
            None => plain(500, "no such postback"),
        },
        (Method::POST, "/DownloadDialog.aspx") => plain(200, content.dialog(&form, &host)),
        (Method::GET, "/release-info") => plain(200, content.release_info.clone()),
        (Method::GET, path) if !is_page => {
            let name = path.trim_start_matches("/files/");
            match content.served.get_mut(name) {
                Some(served) => served.send(
                    header(header::RANGE).as_deref(),
                    header(header::IF_RANGE).as_deref(),
                ),
                None => plain(404, "no such file"),
            }
        }
        _ => plain(404, "no such page"),
    })
}

fn plain(status: u16, body: impl Into<Body>) -> Response<Body> {
    let answer = Response::builder().status(status);
    let answer = if status == 429 {
        answer.header(header::RETRY_AFTER, "0")
    } else {
        answer
    };
    answer.body(body.into()).unwrap()
}

/// The page that a postback requests, after the one in its view state.
fn next_page(form: &str) -> Option<usize> {
    let mut fields = form.split('&').filter_map(|field| field.split_once('='));
    let mut field = |name: &str| fields.find(|(own, _)| *own == name).map(|(_, value)| value);
    let state = field("__VIEWSTATE")?
        .strip_prefix("state%2B")?
        .parse::<usize>()
        .ok()?;
    let target = field("__EVENTTARGET")?;
    (target == "ctl00%24catalogBody%24nextPageLinkText").then_some(state + 1)
}

impl Content {
    fn search(&self, page: usize) -> String {
        if self.updates.is_empty() {
            let words = "We did not find any results for your search";
            return format!("<span id='ctl00_catalogBody_noResultText'>{words}</span>");
        }
        let mut html = format!(
            "<html><script>var table = '<table id=\"x\">';</script>\
             <form method='post' action='./Search.aspx' id='aspnetForm'>\
             <input type='hidden' name='__EVENTTARGET' value='' />\
             <input type='hidden' name='__VIEWSTATE' value='state+{page}' />\
             <table id='ctl00_catalogBody_updateMatches'><tr id='headerRow'>"
        );
        let columns = ["title", "products", "class", "date", "version", "size"];
        for (number, column) in (1..).zip(columns) {
            let id = format!("ctl00_catalogBody_updateMatches_ctl02_{column}HeaderLink");
            write!(
                html,
                "<td id='header_C{number}'><a id='{id}'>{column}</a></td>"
            )
            .unwrap();
        }
        html += "</tr>";
        let rows = self.updates.iter().skip(page * PAGE).take(PAGE);
        for (number, update) in rows.enumerate() {
            let id = &update.id;
            let size = update.size.map_or_else(String::new, |size| {
                format!(
                    "<span id='{id}_size'>1 KB</span><span id='{id}_originalSize'>{size}</span>"
                )
            });
            let cells = [
                format!("<a id='{id}_link'>\n  {}\n</a>", update.title),
                "Windows Server 2019".to_owned(),
                "Security Updates".to_owned(),
                "4/14/2020".to_owned(),
                "n/a".to_owned(),
                size,
            ];
            write!(
                html,
                "<tr id='{id}_R{number}'><td id='{id}_C0_R{number}'></td>"
            )
            .unwrap();
            for (column, cell) in (1..).zip(cells) {
                write!(html, "<td id='{id}_C{column}_R{number}'>{cell}</td>").unwrap();
            }
            html += "</tr>";
        }
        html += "</table>";
        if (page + 1) * PAGE < self.updates.len() {
            html += "<a id='ctl00_catalogBody_nextPageLinkText' href=\"javascript:__doPostBack(\
                &#39;ctl00$catalogBody$nextPageLinkText&#39;,&#39;&#39;)\">Next</a>";
        }
        html + "</form></html>"
    }

    fn dialog(&self, form: &str, host: &str) -> String {
        let update = self
            .updates
            .iter()
            .find(|update| form.contains(&update.id))
            .unwrap();
        let mut script = format!(
            "<html><script>var downloadInformation = new Array();\n\
             downloadInformation[0] = new Object();\n\
             downloadInformation[0].updateID ='{}';\n\
             downloadInformation[0].files = new Array();\n",
            update.id
        );
        for (number, file) in update.files.iter().enumerate() {
            let mut set = |field: &str, value: &str| {
                writeln!(
                    script,
                    "downloadInformation[0].files[{number}].{field} = '{value}';"
                )
                .unwrap();
            };
            let host = file.host.as_deref().unwrap_or(host);
            let link = format!("http://{host}/files/{}", file.name);
            set("url", file.link.as_ref().unwrap_or(&link));
            set("digest", file.sha1.as_deref().unwrap_or_default());
            set("sha256", file.sha256.as_deref().unwrap_or_default());
            set("fileName", &file.name);
        }
        script + "</script></html>"
    }
}

impl ServedFile {
    fn send(&mut self, range: Option<&str>, if_range: Option<&str>) -> Response<Body> {
        let fault = self.faults.pop_front();
        if let Some(ResponseFault::Status(status)) = fault {
            return plain(status, "not now");
        }
        let same = !self.careful || if_range.is_none() || if_range == self.etag.as_deref();
        let start = start_of(range.filter(|_| same));
        if start >= self.bytes.len() {
            return plain(416, "no such range");
        }
        let mut answer = send(&Bytes::from(self.bytes.clone()), start, fault);
        if let Some(etag) = &self.etag {
            let etag = etag.parse().unwrap();
            answer.headers_mut().insert(header::ETAG, etag);
        }
        answer
    }
}
