//! An in-memory registry, small but complete enough for pulls, pushes, mounts and tag lists.
//!
//! It listens on loopback, on a port that the system picks, and stops when it is dropped.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{
    CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LINK, LOCATION, RANGE,
};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::sync::oneshot;
use wincimg_common::lock;
use wincimg_oci::document::media_type::OCI_INDEX;
use wincimg_oci::document::sha256;

/// Limit on the pieces of an upload; the images of a demonstration are far smaller.
const LARGEST_BODY: usize = 64 << 20;
/// Number of tags on one page of a list.
const LONGEST_PAGE: usize = 1000;
const CONTENT_DIGEST: HeaderName = HeaderName::from_static("docker-content-digest");
const SUBJECT: HeaderName = HeaderName::from_static("oci-subject");

/// A running registry.
#[derive(Debug)]
pub struct DemoRegistry {
    address: SocketAddr,
    stored: Arc<Mutex<RegistryState>>,
    /// Dropped with the registry, which ends the server.
    _stop: oneshot::Sender<()>,
}

/// Contents of a registry.
#[derive(Debug, Default)]
pub struct RegistryState {
    repositories: BTreeMap<String, Repository>,
    blobs: HashMap<String, Bytes>,
    uploads: HashMap<String, Vec<u8>>,
    begun: usize,
    /// `METHOD PATH` of every request.
    requests: Vec<String>,
}

#[derive(Debug, Default)]
struct Repository {
    tags: BTreeMap<String, String>,
    manifests: HashMap<String, (String, Bytes)>,
    blobs: Vec<String>,
}

impl DemoRegistry {
    /// Starts a registry on a free port.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let stored = Arc::<Mutex<RegistryState>>::default();
        let (stop, stopped) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let served = Arc::clone(&stored);
        std::thread::Builder::new()
            .name("demo-registry".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        _ = serve(listener, served) => {}
                        _ = stopped => {}
                    }
                });
            })?;
        Ok(Self {
            address,
            stored,
            _stop: stop,
        })
    }

    /// `127.0.0.1:PORT`.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// Reads or changes the contents, without HTTP.
    pub fn with<T>(&self, change: impl FnOnce(&mut RegistryState) -> T) -> T {
        change(&mut lock(&self.stored))
    }
}

impl RegistryState {
    /// Adds a blob to a repository and returns its digest.
    pub fn add_blob(&mut self, repository: &str, bytes: Bytes) -> String {
        let digest = sha256(&bytes).to_string();
        self.blobs.insert(digest.clone(), bytes);
        self.repository(repository).blobs.push(digest.clone());
        digest
    }

    /// Adds a manifest or an index to a repository under a tag, and returns its digest.
    pub fn add_manifest(
        &mut self,
        repository: &str,
        which: &str,
        media_type: &str,
        bytes: Bytes,
    ) -> String {
        let digest = sha256(&bytes).to_string();
        let repository = self.repository(repository);
        repository
            .manifests
            .insert(digest.clone(), (media_type.to_owned(), bytes));
        if which != digest {
            repository.tags.insert(which.to_owned(), digest.clone());
        }
        digest
    }

    /// The requests so far: method and path of each.
    pub fn requests(&self) -> &[String] {
        &self.requests
    }

    fn repository(&mut self, name: &str) -> &mut Repository {
        self.repositories.entry(name.to_owned()).or_default()
    }
}

async fn serve(listener: TcpListener, stored: Arc<Mutex<RegistryState>>) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (connection, _) = listener.accept().await?;
        let stored = Arc::clone(&stored);
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let stored = Arc::clone(&stored);
                async move { Ok::<_, Infallible>(answer(request, &stored).await) }
            });
            // A client may disconnect.
            let _ = http1::Builder::new()
                .serve_connection(TokioIo::new(connection), service)
                .await;
        });
    }
}

type DemoResponse = Response<Full<Bytes>>;

/// Path of a request: `/v2/NAME/KIND/REST`.
struct ApiPath<'a> {
    repository: &'a str,
    kind: ApiKind,
    rest: &'a str,
    query: &'a str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ApiKind {
    Tags,
    Manifest,
    Referrers,
    Upload,
    Blob,
}

async fn answer(request: Request<Incoming>, stored: &Mutex<RegistryState>) -> DemoResponse {
    let (head, body) = request.into_parts();
    let path = head.uri.path();
    let target = ApiPath::parse(path, head.uri.query().unwrap_or_default());
    let upload = target
        .as_ref()
        .filter(|target| target.kind == ApiKind::Upload);
    let mut body = Limited::new(body, LARGEST_BODY);
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else {
            return refusal(StatusCode::PAYLOAD_TOO_LARGE, "SIZE_INVALID");
        };
        let piece = frame.into_data().unwrap_or_default();
        match upload {
            // The received part of an upload is kept, even if the connection breaks before the end.
            Some(upload) => lock(stored).append(upload.rest, &piece),
            None => whole.extend_from_slice(&piece),
        }
    }
    let body = Bytes::from(whole);
    let mut stored = lock(stored);
    stored.requests.push(format!("{} {path}", head.method));
    if path == "/v2/" {
        return plain(StatusCode::OK, Bytes::from_static(b"{}"));
    }
    let Some(target) = target else {
        return refusal(StatusCode::NOT_FOUND, "NAME_UNKNOWN");
    };
    let mut answer = match target.kind {
        ApiKind::Tags => stored.list_tags(&target),
        ApiKind::Referrers => stored.list_referrers(&target),
        ApiKind::Manifest => stored.manifest(&head.method, &target, &head.headers, body),
        ApiKind::Upload => stored.upload(&head.method, &target),
        ApiKind::Blob => stored.blob(&target, &head.headers),
    };
    if head.method == Method::HEAD {
        let length = hyper::body::Body::size_hint(answer.body()).lower();
        answer.headers_mut().insert(CONTENT_LENGTH, length.into());
        *answer.body_mut() = Full::default();
    }
    answer
}

impl<'a> ApiPath<'a> {
    fn parse(path: &'a str, query: &'a str) -> Option<Self> {
        let path = path.strip_prefix("/v2/")?;
        let kinds = [
            ("/blobs/uploads/", ApiKind::Upload),
            ("/blobs/", ApiKind::Blob),
            ("/manifests/", ApiKind::Manifest),
            ("/referrers/", ApiKind::Referrers),
            ("/tags/list", ApiKind::Tags),
        ];
        kinds.into_iter().find_map(|(word, kind)| {
            let (repository, rest) = path.rsplit_once(word)?;
            Some(Self {
                repository,
                kind,
                rest,
                query,
            })
        })
    }

    /// A parameter of the query, decoded as far as digests and names require it.
    fn parameter(&self, name: &str) -> Option<String> {
        self.query.split('&').find_map(|pair| {
            let (key, value) = pair.split_once('=')?;
            (key == name).then(|| {
                let decoded = value.replace("%3A", ":").replace("%2F", "/");
                decoded.replace("%2B", "+")
            })
        })
    }
}

impl RegistryState {
    fn list_tags(&mut self, target: &ApiPath<'_>) -> DemoResponse {
        let Some(repository) = self.repositories.get(target.repository) else {
            return refusal(StatusCode::NOT_FOUND, "NAME_UNKNOWN");
        };
        let page = target
            .parameter("n")
            .and_then(|number| number.parse().ok())
            .map_or(LONGEST_PAGE, |asked: usize| asked.min(LONGEST_PAGE));
        let last = target.parameter("last").unwrap_or_default();
        let mut tags: Vec<&String> = repository.tags.keys().filter(|tag| **tag > last).collect();
        let more = tags.len() > page;
        tags.truncate(page);
        let body = serde_json::json!({ "name": target.repository, "tags": tags });
        let mut answer = plain(StatusCode::OK, body.to_string().into());
        if let (true, Some(last)) = (more, tags.last()) {
            let next = format!(
                "</v2/{}/tags/list?n={page}&last={last}>; rel=\"next\"",
                target.repository
            );
            set(&mut answer, LINK, &next);
        }
        answer
    }

    /// The manifests whose subject is the target, with their types.
    fn list_referrers(&mut self, target: &ApiPath<'_>) -> DemoResponse {
        let wanted = target.parameter("artifactType");
        let manifests = self.repositories.get(target.repository);
        let manifests = manifests.into_iter().flat_map(|it| &it.manifests);
        let mut found: Vec<Value> = manifests
            .filter(|(_, (_, bytes))| subject_of(bytes).as_deref() == Some(target.rest))
            .filter_map(|(digest, (media_type, bytes))| {
                let about: Value = serde_json::from_slice(bytes).ok()?;
                let artifact_type = about["artifactType"].as_str()?;
                let entry = serde_json::json!({
                    "mediaType": media_type,
                    "digest": digest,
                    "size": bytes.len(),
                    "artifactType": artifact_type,
                    "annotations": about["annotations"],
                });
                let is_wanted = wanted.as_ref().is_none_or(|it| it == artifact_type);
                is_wanted.then_some(entry)
            })
            .collect();
        found.sort_by_key(|entry| entry["digest"].to_string());
        let body = serde_json::json!({
            "schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": found,
        });
        let mut answer = plain(StatusCode::OK, body.to_string().into());
        set(&mut answer, CONTENT_TYPE, OCI_INDEX);
        answer
    }

    fn manifest(
        &mut self,
        method: &Method,
        target: &ApiPath<'_>,
        headers: &HeaderMap,
        body: Bytes,
    ) -> DemoResponse {
        if *method == Method::PUT {
            let media_type = headers
                .get(CONTENT_TYPE)
                .and_then(|value| value.to_str().ok())
                .unwrap_or_default()
                .to_owned();
            let subject = subject_of(&body);
            let digest = self.add_manifest(target.repository, target.rest, &media_type, body);
            let mut answer = plain(StatusCode::CREATED, Bytes::new());
            set(&mut answer, CONTENT_DIGEST, &digest);
            if let Some(subject) = subject {
                set(&mut answer, SUBJECT, &subject);
            }
            return answer;
        }
        let found = self.repositories.get(target.repository).and_then(|known| {
            let digest = known
                .tags
                .get(target.rest)
                .map_or(target.rest, String::as_str);
            let (media_type, bytes) = known.manifests.get(digest)?;
            Some((digest, media_type, bytes.clone()))
        });
        match found {
            Some((digest, media_type, bytes)) => {
                let mut answer = plain(StatusCode::OK, bytes);
                set(&mut answer, CONTENT_TYPE, media_type);
                set(&mut answer, CONTENT_DIGEST, digest);
                answer
            }
            None => refusal(StatusCode::NOT_FOUND, "MANIFEST_UNKNOWN"),
        }
    }

    fn blob(&mut self, target: &ApiPath<'_>, headers: &HeaderMap) -> DemoResponse {
        let here = self
            .repositories
            .get(target.repository)
            .is_some_and(|known| known.blobs.iter().any(|digest| digest == target.rest));
        let Some(bytes) = self.blobs.get(target.rest).filter(|_| here) else {
            return refusal(StatusCode::NOT_FOUND, "BLOB_UNKNOWN");
        };
        let start = headers
            .get(RANGE)
            .and_then(|range| {
                range
                    .to_str()
                    .ok()?
                    .strip_prefix("bytes=")?
                    .split('-')
                    .next()
            })
            .and_then(|start| start.parse::<usize>().ok());
        let mut answer = match start {
            Some(start) if start < bytes.len() => {
                let mut part = plain(StatusCode::PARTIAL_CONTENT, bytes.slice(start..));
                let range = format!("bytes {start}-{}/{}", bytes.len() - 1, bytes.len());
                set(&mut part, hyper::header::CONTENT_RANGE, &range);
                part
            }
            Some(_) => plain(StatusCode::RANGE_NOT_SATISFIABLE, Bytes::new()),
            None => plain(StatusCode::OK, bytes.clone()),
        };
        set(&mut answer, CONTENT_DIGEST, target.rest);
        answer
    }

    fn append(&mut self, upload: &str, piece: &[u8]) {
        if let Some(upload) = self.uploads.get_mut(upload) {
            upload.extend_from_slice(piece);
        }
    }

    fn upload(&mut self, method: &Method, target: &ApiPath<'_>) -> DemoResponse {
        if *method == Method::POST {
            return self.begin_upload(target);
        }
        let Some(upload) = self.uploads.get(target.rest) else {
            return refusal(StatusCode::NOT_FOUND, "BLOB_UPLOAD_UNKNOWN");
        };
        if *method == Method::DELETE {
            self.uploads.remove(target.rest);
            return plain(StatusCode::NO_CONTENT, Bytes::new());
        }
        if *method != Method::PUT {
            let range = format!("0-{}", upload.len().saturating_sub(1));
            let status = if *method == Method::GET {
                StatusCode::NO_CONTENT
            } else {
                StatusCode::ACCEPTED
            };
            let mut answer = plain(status, Bytes::new());
            set(&mut answer, RANGE, &range);
            set(
                &mut answer,
                LOCATION,
                &place(target.repository, target.rest),
            );
            return answer;
        }
        let bytes = Bytes::from(self.uploads.remove(target.rest).unwrap_or_default());
        if target.parameter("digest").as_deref() != Some(sha256(&bytes).as_ref()) {
            return refusal(StatusCode::BAD_REQUEST, "DIGEST_INVALID");
        }
        let digest = self.add_blob(target.repository, bytes);
        let mut answer = plain(StatusCode::CREATED, Bytes::new());
        set(&mut answer, CONTENT_DIGEST, &digest);
        answer
    }

    fn begin_upload(&mut self, target: &ApiPath<'_>) -> DemoResponse {
        let mountable = target.parameter("mount").filter(|digest| {
            let from = target.parameter("from").unwrap_or_default();
            self.repositories
                .get(&from)
                .is_some_and(|from| from.blobs.contains(digest))
        });
        if let Some(digest) = mountable {
            self.repository(target.repository)
                .blobs
                .push(digest.clone());
            let mut answer = plain(StatusCode::CREATED, Bytes::new());
            set(&mut answer, CONTENT_DIGEST, &digest);
            return answer;
        }
        self.begun += 1;
        let id = self.begun.to_string();
        self.uploads.insert(id.clone(), Vec::new());
        let mut answer = plain(StatusCode::ACCEPTED, Bytes::new());
        set(&mut answer, LOCATION, &place(target.repository, &id));
        answer
    }
}

fn subject_of(manifest: &[u8]) -> Option<String> {
    let manifest: Value = serde_json::from_slice(manifest).ok()?;
    Some(manifest["subject"]["digest"].as_str()?.to_owned())
}

fn place(repository: &str, upload: &str) -> String {
    format!("/v2/{repository}/blobs/uploads/{upload}")
}

fn plain(status: StatusCode, body: Bytes) -> DemoResponse {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = status;
    answer
}

fn refusal(status: StatusCode, code: &str) -> DemoResponse {
    let body = serde_json::json!({ "errors": [{ "code": code, "message": code.to_lowercase() }] });
    plain(status, body.to_string().into())
}

/// Sets a header. The value comes from a header or a path, so it is valid.
fn set(answer: &mut DemoResponse, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        answer.headers_mut().insert(name, value);
    }
}
