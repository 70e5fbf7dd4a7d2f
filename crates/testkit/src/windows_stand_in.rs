//! A real Docker daemon that runs Linux containers in place of Windows ones: what a client sends and
//! gets is as with a daemon on Windows, and the steps of a build run.
//!
//! In between, images change their system: each image of Windows that is pulled gets a twin for Linux
//! in the registry, and each pushed image one for Windows; loaded and saved images are changed on
//! their way. Their layers are the same.

mod buildctl;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Barrier, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};
use wincimg_demo::DemoRegistry;

use self::buildctl::BuildctlState;
use super::dockerd::Dockerd;
use super::windows_daemon::{SocketServer, info, server_2019};
use crate::DOCKER_MANIFEST;

/// The daemon, which runs until it is dropped.
pub struct WindowsStandIn {
    server: SocketServer,
    shared: Arc<StandInState>,
}

struct StandInState {
    dockerd: Dockerd,
    registry: Arc<DemoRegistry>,
    machine: Machine,
    /// Dockerfiles of the builds, as they were sent.
    builds: Mutex<Vec<String>>,
    buildctl: BuildctlState,
    /// The names of the files of each loaded image.
    loads: Mutex<Vec<Vec<String>>>,
}

/// The machine that the daemon seems to run on.
#[derive(Debug, Clone)]
pub struct Machine {
    /// The version of Windows that all images have.
    pub version: &'static str,
    /// The product, as the daemon reports it.
    pub product: String,
    /// Builds wait here for those of other machines.
    pub meeting: Option<Arc<Barrier>>,
}

impl Machine {
    pub fn server_2019() -> Self {
        Self {
            version: "10.0.17763.973",
            product: server_2019(973),
            meeting: None,
        }
    }

    pub fn server_2022() -> Self {
        Self {
            version: "10.0.20348.2402",
            product: "Windows Server 2022 Datacenter Version 21H2 (OS Build 20348.2402)".to_owned(),
            meeting: None,
        }
    }
}

impl WindowsStandIn {
    /// Starts a daemon on a Unix socket, in the caller's runtime.
    pub fn start(registry: Arc<DemoRegistry>) -> Self {
        Self::start_on(registry, Machine::server_2019())
    }

    pub fn start_on(registry: Arc<DemoRegistry>, machine: Machine) -> Self {
        let shared = Arc::new(StandInState {
            dockerd: Dockerd::start(),
            registry,
            machine,
            builds: Mutex::default(),
            buildctl: BuildctlState::default(),
            loads: Mutex::default(),
        });
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&shared));
        Self {
            server: SocketServer::start(router),
            shared,
        }
    }

    pub fn host(&self) -> String {
        self.server.host()
    }

    /// The Dockerfiles of all builds so far.
    pub fn builds(&self) -> Vec<String> {
        self.shared.builds.lock().unwrap().clone()
    }

    /// The names of the files of each loaded image.
    pub fn loads(&self) -> Vec<Vec<String>> {
        self.shared.loads.lock().unwrap().clone()
    }
}

impl Drop for WindowsStandIn {
    fn drop(&mut self) {
        // Tasks of open connections may keep it.
        self.shared.dockerd.stop();
    }
}

async fn answer(State(shared): State<Arc<StandInState>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let target = head.uri.path_and_query().unwrap().to_string();
    let headers = head.headers.iter();
    let headers = headers.filter(|(name, _)| {
        let name = name.as_str();
        name == "content-type" || name.starts_with("x-registry")
    });
    let headers = headers.flat_map(|(name, value)| {
        let value = value.to_str().unwrap();
        [name.as_str(), ": ", value, "\r\n"]
    });
    let headers: String = headers.collect();
    let reply =
        tokio::task::spawn_blocking(move || shared.reply(&head.method, &target, &headers, &body));
    let reply = reply.await.unwrap();
    let mut response = Response::builder().status(reply.status);
    for name in ["api-version", "content-type"] {
        if let Some(value) = reply.header(name) {
            response = response.header(name, value);
        }
    }
    response.body(Body::from(reply.body)).unwrap()
}

struct Reply {
    status: StatusCode,
    head: String,
    body: Vec<u8>,
}

impl Reply {
    fn header(&self, wanted: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        let mut values = lines.filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        values.next().map(|(_, value)| value)
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

impl StandInState {
    fn reply(&self, method: &Method, target: &str, headers: &str, body: &Bytes) -> Reply {
        let path = target.split('?').next().unwrap();
        let is_build = method == Method::POST && path.ends_with("/build");
        let (target, body) = if is_build {
            let target = format!("{target}&networkmode=none");
            if let Some(meeting) = &self.machine.meeting {
                meeting.wait();
            }
            (target, self.for_linux(body))
        } else if path.ends_with("/images/load") {
            let image = Self::converted_archive(body, Self::make_linux);
            let mut loads = self.loads.lock().unwrap();
            loads.push(files_of(body).into_iter().map(|(name, _)| name).collect());
            (target.to_owned(), image)
        } else {
            (self.with_twin(target), body.to_vec())
        };
        let mut reply = self.forward(method, &target, headers, &body);
        if path.ends_with("/info") {
            let info = info(&self.machine.product, "process");
            reply.body = info.to_string().into_bytes();
        } else if path.ends_with("/json") && reply.status == StatusCode::OK {
            let mut image = reply.json();
            image["Os"] = json!("windows");
            image["OsVersion"] = json!(self.machine.version);
            reply.body = image.to_string().into_bytes();
        } else if path.ends_with("/push") {
            reply.body = self.for_windows(path, reply.body);
        } else if path.ends_with("/images/get") && reply.status == StatusCode::OK {
            let body = Bytes::from(reply.body);
            reply.body = Self::converted_archive(&body, |config| self.make_windows(config));
        }
        reply
    }

    /// A request about an image that is named by digest, for its twin.
    fn with_twin(&self, target: &str) -> String {
        let parts = |target: &str| {
            let (_, rest) = target.split_once("/images/")?;
            if let Some(query) = rest.strip_prefix("create?") {
                let values = query.split('&').filter_map(|it| it.split_once('='));
                let values: Vec<_> = values.collect();
                let value = |name| values.iter().find(|(key, _)| *key == name).map(|it| it.1);
                return Some((value("fromImage")?.to_owned(), value("tag")?.to_owned()));
            }
            let (name, digest) = rest.strip_suffix("/json")?.split_once('@')?;
            Some((name.to_owned(), digest.to_owned()))
        };
        let Some((name, digest)) = parts(target) else {
            return target.to_owned();
        };
        let plain = |text: &str| text.replace("%2F", "/").replace("%3A", ":");
        let twin = self.twin(&format!("{}@{}", plain(&name), plain(&digest)));
        let (_, twin) = twin.split_once('@').unwrap();
        let same = if digest.contains("%3A") {
            twin.replace(':', "%3A")
        } else {
            twin.to_owned()
        };
        target.replace(&digest, &same)
    }

    fn make_linux(config: &mut Value) {
        config["os"] = json!("linux");
        config.as_object_mut().unwrap().remove("os.version");
    }

    fn make_windows(&self, config: &mut Value) {
        config["os"] = json!("windows");
        config["os.version"] = json!(self.machine.version);
    }

    /// An archive of one image, with another configuration of the same name.
    fn converted_archive(archive: &[u8], change: impl Fn(&mut Value)) -> Vec<u8> {
        let files = files_of(archive);
        let find = |name: &str| &files.iter().find(|(it, _)| it == name).unwrap().1;
        let images: Value = serde_json::from_slice(find("manifest.json")).unwrap();
        let named = images[0]["Config"].as_str().unwrap();
        let mut sent = tar::Archive::new(archive);
        let mut rewritten = tar::Builder::new(Vec::new());
        for entry in sent.entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut header = entry.header().clone();
            let path = entry.path().unwrap().into_owned();
            if path.to_str() == Some(named) {
                let mut config: Value = serde_json::from_slice(find(named)).unwrap();
                change(&mut config);
                let config = config.to_string();
                header.set_size(config.len() as u64);
                rewritten
                    .append_data(&mut header, path, config.as_bytes())
                    .unwrap();
            } else if let Some(target) = entry.link_name().unwrap() {
                let target = target.into_owned();
                rewritten.append_link(&mut header, path, target).unwrap();
            } else {
                rewritten
                    .append_data(&mut header, path, &mut entry)
                    .unwrap();
            }
        }
        rewritten.into_inner().unwrap()
    }

    fn forward(&self, method: &Method, target: &str, headers: &str, body: &[u8]) -> Reply {
        let host = self.dockerd.host();
        let stream = UnixStream::connect(host.strip_prefix("unix://").unwrap()).unwrap();
        exchange(stream, &format!("{method} {target}"), headers, body)
    }

    /// A build context on the twin of its base.
    fn for_linux(&self, context: &[u8]) -> Vec<u8> {
        let mut sent = tar::Archive::new(context);
        let mut rewritten = tar::Builder::new(Vec::new());
        for (index, entry) in sent.entries().unwrap().enumerate() {
            let mut entry = entry.unwrap();
            let mut header = entry.header().clone();
            let path = entry.path().unwrap().into_owned();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            if index == 0 {
                let text = String::from_utf8(bytes).unwrap();
                self.builds.lock().unwrap().push(text.clone());
                let lines = text.lines().map(|line| match line.strip_prefix("FROM ") {
                    Some(image) => format!("FROM {}\n", self.twin(image)),
                    None => format!("{line}\n"),
                });
                bytes = lines.collect::<String>().into_bytes();
                header.set_size(bytes.len() as u64);
            }
            rewritten
                .append_data(&mut header, path, bytes.as_slice())
                .unwrap();
        }
        rewritten.into_inner().unwrap()
    }

    /// The Linux twin of an image that is named with its digest.
    fn twin(&self, image: &str) -> String {
        // An image that was loaded has changed on its way.
        let Some((name, digest)) = image.split_once('@') else {
            return image.to_owned();
        };
        let host = self.registry.host();
        let path = name.strip_prefix(&format!("{host}/")).unwrap();
        let repository = path.split(':').next().unwrap();
        let twin = self.converted(repository, digest, "twin", Self::make_linux);
        format!("{host}/{repository}@{twin}")
    }

    /// The messages of a push, with the digest of the Windows twin.
    fn for_windows(&self, path: &str, messages: Vec<u8>) -> Vec<u8> {
        let text = String::from_utf8(messages).unwrap();
        let Some(pushed) = pushed(&text) else {
            return text.into_bytes();
        };
        let digest = pushed["Digest"].as_str().unwrap();
        let tag = pushed["Tag"].as_str().unwrap();
        let (_, name) = path.split_once("/images/").unwrap();
        let name = name.strip_suffix("/push").unwrap().replace("%2F", "/");
        let (_, repository) = name.split_once('/').unwrap();
        let twin = self.windows_twin(repository, digest, tag);
        text.replace(digest, &twin).into_bytes()
    }

    /// The Windows twin of a pushed image.
    fn windows_twin(&self, repository: &str, digest: &str, tag: &str) -> String {
        self.converted(repository, digest, tag, |config| self.make_windows(config))
    }

    /// Adds an image with another configuration under a tag, and returns its digest.
    fn converted(
        &self,
        repository: &str,
        digest: &str,
        tag: &str,
        change: impl FnOnce(&mut Value),
    ) -> String {
        let mut manifest = self.get(&format!("{repository}/manifests/{digest}"));
        let config = manifest["config"]["digest"].as_str().unwrap().to_owned();
        let mut config = self.get(&format!("{repository}/blobs/{config}"));
        change(&mut config);
        let config = config.to_string();
        manifest["config"]["size"] = json!(config.len());
        self.registry.with(|stored| {
            manifest["config"]["digest"] = json!(stored.add_blob(repository, config.into()));
            let media_type = manifest["mediaType"].as_str().unwrap_or(DOCKER_MANIFEST);
            stored.add_manifest(repository, tag, media_type, manifest.to_string().into())
        })
    }

    fn get(&self, path: &str) -> Value {
        let stream = TcpStream::connect(self.registry.host()).unwrap();
        let accept =
            format!("Accept: {DOCKER_MANIFEST}, application/vnd.oci.image.manifest.v1+json\r\n");
        let reply = exchange(stream, &format!("GET /v2/{path}"), &accept, &[]);
        assert_eq!(reply.status, StatusCode::OK, "{path}");
        reply.json()
    }
}

/// What the messages of a push say of the pushed image: its digest and tag.
fn pushed(messages: &str) -> Option<Value> {
    let mut lines = messages.lines();
    lines.find_map(|line| {
        let mut said = serde_json::from_str::<Value>(line).unwrap();
        let aux = said["aux"].take();
        aux["Digest"].is_string().then_some(aux)
    })
}

fn files_of(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(archive);
    let files = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (entry.path().unwrap().display().to_string(), bytes)
    });
    files.collect()
}

/// A request in the version of HTTP whose answers end with the connection.
fn exchange(mut stream: impl Read + Write, request: &str, headers: &str, body: &[u8]) -> Reply {
    let length = body.len();
    let head =
        format!("{request} HTTP/1.0\r\nHost: docker\r\n{headers}Content-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut whole = Vec::new();
    stream.read_to_end(&mut whole).unwrap();
    let end = whole
        .windows(4)
        .position(|bytes| bytes == b"\r\n\r\n")
        .unwrap();
    let head = String::from_utf8(whole[..end].to_vec()).unwrap();
    let status = head.split(' ').nth(1).unwrap();
    Reply {
        status: status.parse().unwrap(),
        body: whole[end + 4..].to_vec(),
        head,
    }
}
