//! A fake Kubernetes API server: paged lists, watches, refusals; leases and events with versions
//! and conflicts.
#![allow(unreachable_pub, clippy::unwrap_used)]

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Request, Response};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use wincimg_testkit::serve::{TestServer, serve};

use crate::pod_exec::Exec;

/// A server that runs until it is dropped.
pub struct Api {
    state: Shared,
    folder: TempDir,
    _served: TestServer,
}

type Shared = Arc<Mutex<ApiState>>;

/// A node with Windows and this kernel.
pub fn windows_node(name: &str, kernel: &str) -> Value {
    json!({
        "kind": "Node",
        "metadata": {"name": name, "resourceVersion": "7", "labels": {"kubernetes.io/os": "windows"}},
        "spec": {},
        "status": {"nodeInfo": {
            "operatingSystem": "windows", "architecture": "amd64", "kernelVersion": kernel,
            "osImage": "Windows Server 2019 Datacenter", "containerRuntimeVersion": "containerd://1.7.22",
        }},
    })
}

/// The version of an unmodified list.
const FIRST_VERSION: u64 = 7;

#[derive(Default)]
struct ApiState {
    lists: HashMap<String, Vec<Value>>,
    /// Written objects, by path.
    objects: BTreeMap<String, Value>,
    /// Number of writes, to `objects` or by `change`.
    writes: u64,
    /// Events for every watch, with the version after each.
    history: Vec<(u64, Value)>,
    /// Watches of an older version get 410.
    compacted: u64,
    /// Status of every response, and end of every watch.
    fault: Option<u16>,
    after_gone: HashMap<String, Vec<Value>>,
    refused: HashMap<String, u16>,
    refused_watches: Option<u16>,
    pages_to_forget: usize,
    /// Every page is followed by the first.
    repeats: bool,
    /// Part of the targets whose responses do not end.
    endless: Option<String>,
    requests: Vec<(String, String)>,
    /// `User-Agent` of the last request.
    agent: String,
    to_say: Vec<Value>,
    /// Address of the Docker daemon in each pod that programs can be run in, by path.
    daemons: HashMap<String, String>,
    /// Ends the programs in all pods.
    evictions: tokio::sync::watch::Sender<u64>,
    /// Commands that were run.
    commands: Vec<Vec<String>>,
    /// Protocol that the server prefers for them.
    protocol: &'static str,
}

impl Api {
    pub fn start() -> Self {
        let state = Shared::default();
        let answers = state.clone();
        let served = serve(Router::new().fallback(answer).with_state(answers));
        let folder = tempfile::tempdir().unwrap();
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": served.url("")}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "users": [{"name": "test", "user": {"token": "secret"}}],
        });
        std::fs::write(folder.path().join("config"), config.to_string()).unwrap();
        Self {
            state,
            folder,
            _served: served,
        }
    }

    /// A kubeconfig for this server.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    /// Sets the list of a path; other paths have empty lists.
    pub fn set(&self, path: &str, items: Vec<Value>) {
        self.state
            .lock()
            .unwrap()
            .lists
            .insert(path.to_owned(), items);
    }

    /// Sets the list of a path after a watch got 410.
    pub fn on_gone(&self, path: &str, items: Vec<Value>) {
        self.state
            .lock()
            .unwrap()
            .after_gone
            .insert(path.to_owned(), items);
    }

    /// Sets the status of a path.
    pub fn refuse(&self, path: &str, code: u16) {
        self.state
            .lock()
            .unwrap()
            .refused
            .insert(path.to_owned(), code);
    }

    /// Sets the status of watches.
    pub fn refuse_watches(&self, code: u16) {
        self.state.lock().unwrap().refused_watches = Some(code);
    }

    /// Makes the next `count` pages after the first return 410.
    pub fn forget_pages(&self, count: usize) {
        self.state.lock().unwrap().pages_to_forget = count;
    }

    /// Makes the first page follow every page.
    pub fn repeat_pages(&self) {
        self.state.lock().unwrap().repeats = true;
    }

    /// Makes the responses to targets with this part not end.
    pub fn answer_endlessly(&self, part: &str) {
        self.state.lock().unwrap().endless = Some(part.to_owned());
    }

    /// Changes a node, in the list and for every watch.
    pub fn change(&self, node: &Value) {
        let mut state = self.state.lock().unwrap();
        let nodes = state.lists.entry("/api/v1/nodes".to_owned()).or_default();
        let name = &node["metadata"]["name"];
        let before = nodes.len();
        nodes.retain(|known| known["metadata"]["name"] != *name);
        let kind = if nodes.len() < before {
            "MODIFIED"
        } else {
            "ADDED"
        };
        nodes.push(node.clone());
        let version = state.next_version();
        let mut node = node.clone();
        node["metadata"]["resourceVersion"] = json!(version.to_string());
        state
            .history
            .push((version, json!({"type": kind, "object": node})));
    }

    /// Sets the status of all responses and ends watches; `None` restores the default.
    pub fn fault(&self, code: Option<u16>) {
        self.state.lock().unwrap().fault = code;
    }

    /// Makes watches of versions until now return 410.
    pub fn compact(&self) {
        let mut state = self.state.lock().unwrap();
        state.compacted = state.next_version();
    }

    /// The object written at a path.
    pub fn object(&self, path: &str) -> Option<Value> {
        self.state.lock().unwrap().objects.get(path).cloned()
    }

    /// All objects below this path.
    pub fn objects(&self, path: &str) -> Vec<Value> {
        let state = self.state.lock().unwrap();
        let objects = state.objects.iter();
        objects
            .filter(|(own, _)| own.starts_with(path))
            .map(|(_, object)| object.clone())
            .collect()
    }

    /// Writes an object like another client.
    pub fn put(&self, path: &str, object: &Value) {
        let mut state = self.state.lock().unwrap();
        state.write(path, object.clone());
    }

    /// Removes an object like another client.
    pub fn remove(&self, path: &str) {
        self.state.lock().unwrap().objects.remove(path);
    }

    /// Sets the Docker daemon that programs in a pod reach.
    pub fn set_daemon(&self, path: &str, host: &str) {
        let mut state = self.state.lock().unwrap();
        state.daemons.insert(path.to_owned(), host.to_owned());
    }

    /// Makes the server offer only one of the protocols of exec.
    pub fn set_exec_protocol(&self, protocol: &'static str) {
        self.state.lock().unwrap().protocol = protocol;
    }

    /// Ends the connections to all programs in pods.
    pub fn end_programs(&self) {
        let state = self.state.lock().unwrap();
        state.evictions.send_modify(|count| *count += 1);
    }

    /// The programs that were run in pods.
    pub fn commands(&self) -> Vec<Vec<String>> {
        self.state.lock().unwrap().commands.clone()
    }

    /// Sends an event to watches.
    pub fn say(&self, event: &Value) {
        self.state.lock().unwrap().to_say.push(event.clone());
    }

    /// The queries of all requests to a path.
    pub fn requests_to(&self, path: &str) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let requests = state.requests.iter();
        requests
            .filter_map(|(_, target)| {
                let (own, query) = target.split_once('?').unwrap_or((target, ""));
                (own == path).then(|| query.to_owned())
            })
            .collect()
    }

    /// `User-Agent` of the last request.
    pub fn agent(&self) -> String {
        self.state.lock().unwrap().agent.clone()
    }

    /// The paths of all requests.
    pub fn paths(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let targets = state.requests.iter().map(|(_, target)| target);
        targets
            .map(|target| target.split('?').next().unwrap().to_owned())
            .collect()
    }

    /// Methods and targets of all requests.
    pub fn targets(&self) -> Vec<(String, String)> {
        self.state.lock().unwrap().requests.clone()
    }

    /// The methods of all requests.
    pub fn methods(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        state
            .requests
            .iter()
            .map(|(method, _)| method.clone())
            .collect()
    }
}

impl ApiState {
    fn version(&self) -> u64 {
        FIRST_VERSION + self.writes
    }

    fn next_version(&mut self) -> u64 {
        self.writes += 1;
        self.version()
    }

    fn write(&mut self, path: &str, mut object: Value) -> Response<Body> {
        object["metadata"]["resourceVersion"] = json!(self.next_version().to_string());
        self.objects.insert(path.to_owned(), object.clone());
        json_response(200, &object)
    }

    /// Answers a request for a written object: a lease or an event.
    fn answer_object(&mut self, method: &str, path: &str, body: &[u8]) -> Response<Body> {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let found = self.objects.get(path).cloned();
        match (method, found) {
            ("GET", Some(object)) => json_response(200, &object),
            ("GET", None) if path.ends_with("/events") => {
                let objects = self.objects.iter().filter(|(own, _)| own.starts_with(path));
                let items: Vec<&Value> = objects.map(|(_, object)| object).collect();
                let list = json!({
                    "kind": "EventList", "apiVersion": "events.k8s.io/v1", "metadata": {},
                    "items": items,
                });
                json_response(200, &list)
            }
            ("POST", _) => {
                let path = format!("{path}/{}", body["metadata"]["name"].as_str().unwrap());
                if self.objects.contains_key(&path) {
                    return status(409, "already exists");
                }
                match complaint(&body) {
                    Some(problem) => status(422, &problem),
                    None => self.write(&path, body),
                }
            }
            ("PUT", Some(object)) => {
                let version = &body["metadata"]["resourceVersion"];
                if *version != object["metadata"]["resourceVersion"] {
                    return status(409, "the object has been modified");
                }
                match complaint(&body) {
                    Some(problem) => status(422, &problem),
                    None => self.write(path, body),
                }
            }
            ("PATCH", Some(mut object)) => {
                for (key, value) in body.as_object().unwrap() {
                    object[key] = value.clone();
                }
                match complaint(&object) {
                    Some(problem) => status(422, &problem),
                    None => self.write(path, object),
                }
            }
            _ => status(404, "not found"),
        }
    }
}

/// Returns the error of the real server for an invalid object.
fn complaint(object: &Value) -> Option<String> {
    let micro = |time: &Value| {
        time.as_str().is_some_and(|time| {
            let fraction = time.strip_suffix('Z').and_then(|time| time.split_once('.'));
            fraction.is_some_and(|(_, digits)| digits.len() == 6)
        })
    };
    let text = |key: &str, longest: usize| {
        let text = object[key].as_str().unwrap_or_default();
        !text.is_empty() && text.len() <= longest
    };
    let name = object["metadata"]["name"].as_str().unwrap();
    let is_right = match object["kind"].as_str() {
        Some("Lease") => {
            let spec = &object["spec"];
            spec["leaseDurationSeconds"]
                .as_i64()
                .is_some_and(|it| it > 0)
                && spec["leaseTransitions"].as_i64().is_some_and(|it| it >= 0)
                && micro(&spec["renewTime"])
                && micro(&spec["acquireTime"])
        }
        Some("Event") => {
            text("reason", 128)
                && text("action", 128)
                && text("note", 1024)
                && text("reportingController", 253)
                && text("reportingInstance", 128)
                && ["Normal", "Warning"]
                    .map(Some)
                    .contains(&object["type"].as_str())
                && micro(&object["eventTime"])
                && object["regarding"]["kind"] == "Node"
                && object["metadata"]["namespace"] == "default"
                && (object["series"].is_null()
                    || object["series"]["count"].as_i64().is_some_and(|it| it >= 2))
        }
        _ => false,
    };
    (!is_right || name.len() > 253).then(|| format!("{object} is invalid"))
}

async fn answer(State(state): State<Shared>, request: Request<Body>) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let upgrade = parts.extensions.remove::<hyper::upgrade::OnUpgrade>();
    let body = axum::body::to_bytes(body, 1 << 20)
        .await
        .unwrap_or_default();
    let request = Request::from_parts(parts, ());
    let path = request.uri().path().to_owned();
    let query = request.uri().query().unwrap_or_default().to_owned();
    let parameter = |name: &str| {
        let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
        pairs
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.to_owned())
    };
    let mut played = state.lock().unwrap();
    let target = request.uri().path_and_query().unwrap().to_string();
    played.requests.push((request.method().to_string(), target));
    let agent = request.headers().get("user-agent");
    played.agent = agent.map_or_else(String::new, |it| it.to_str().unwrap().to_owned());
    if request
        .headers()
        .get("authorization")
        .is_none_or(|token| token != "Bearer secret")
    {
        return status(401, "Unauthorized");
    }
    if let Some(code) = played.fault {
        return status(code, "the server is unwell");
    }
    let part = played.endless.as_deref();
    if part.is_some_and(|part| request.uri().to_string().contains(part)) {
        return endless();
    }
    let watches = parameter("watch").is_some();
    let refused = played.refused.get(&path).copied();
    match refused.or(played.refused_watches.filter(|_| watches)) {
        Some(401) => return status(401, "Unauthorized"),
        Some(403) if watches => {
            return status(403, "nodes is forbidden: User \"ci\" cannot watch resource");
        }
        Some(403) if path == "/api/v1/nodes" => {
            return status(403, "nodes is forbidden: User \"ci\" cannot list resource");
        }
        Some(code) => return status(code, "no"),
        None => {}
    }
    if let Some(pod) = path.strip_suffix("/exec") {
        let Some(daemon) = played.daemons.get(pod).cloned() else {
            return status(404, "pods not found");
        };
        let words = query
            .split('&')
            .filter_map(|pair| pair.strip_prefix("command="));
        played.commands.push(words.map(str::to_owned).collect());
        let offered = request.headers()["sec-websocket-protocol"]
            .to_str()
            .unwrap();
        let protocol = match played.protocol {
            "" => "v5.channel.k8s.io",
            protocol => protocol,
        };
        assert!(offered.split(", ").any(|it| it == protocol), "{offered}");
        let ended = played.evictions.subscribe();
        let start = Exec {
            daemon,
            protocol,
            ended,
        };
        return start.answer(upgrade.unwrap(), &request.headers()["sec-websocket-key"]);
    }
    if ["/leases", "/events", "/pods/"]
        .iter()
        .any(|kind| path.contains(kind))
    {
        return played.answer_object(request.method().as_str(), &path, &body);
    }
    if watches {
        let from = parameter("resourceVersion").and_then(|text| text.parse().ok());
        let from = from.unwrap_or_default();
        if from < played.compacted {
            return status(410, "too old resource version");
        }
        drop(played);
        return watch(state, path, from);
    }
    let start: usize = parameter("continue").map_or(0, |text| text.parse().unwrap());
    if start > 0 && played.pages_to_forget > 0 {
        played.pages_to_forget -= 1;
        return status(410, "The provided continue parameter is too old");
    }
    let limit: usize = parameter("limit").map_or(usize::MAX, |text| text.parse().unwrap());
    let all = played.lists.get(&path).cloned().unwrap_or_default();
    let end = all.len().min(start.saturating_add(limit));
    let mut metadata = json!({"resourceVersion": played.version().to_string()});
    if end < all.len() {
        metadata["continue"] = json!(end.to_string());
    }
    if played.repeats {
        metadata["continue"] = json!("0");
    }
    let page =
        json!({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": all[start..end]});
    json_response(200, &page)
}

/// Sends events, one per line, and keeps the connection open; an event `END` ends the watch, as
/// servers do after a while.
fn watch(state: Shared, path: String, from: u64) -> Response<Body> {
    let start = (state, path, from);
    let events = futures_util::stream::unfold(start, |(state, path, mut from)| async move {
        loop {
            let next = {
                let mut played = state.lock().unwrap();
                if played.fault.is_some() || from < played.compacted {
                    return None;
                }
                let news = played.history.iter().find(|(version, _)| *version > from);
                match news.cloned() {
                    Some((version, event)) => {
                        from = version;
                        Some(event)
                    }
                    None => (!played.to_say.is_empty()).then(|| played.to_say.remove(0)),
                }
            };
            let Some(event) = next else {
                tokio::time::sleep(Duration::from_millis(20)).await;
                continue;
            };
            if event["type"] == "END" {
                return None;
            }
            if event["type"] == "ERROR" {
                let mut played = state.lock().unwrap();
                if let Some(items) = played.after_gone.remove(&path) {
                    played.lists.insert(path.clone(), items);
                }
            }
            let line = Ok::<_, std::io::Error>(Bytes::from(format!("{event}\n")));
            return Some((line, (state, path, from)));
        }
    });
    let body = Body::from_stream(events);
    Response::builder()
        .header("content-type", "application/json")
        .body(body)
        .unwrap()
}

/// A response without an end or a line break.
fn endless() -> Response<Body> {
    let piece = Bytes::from(vec![b' '; 1 << 20]);
    let pieces = futures_util::stream::repeat(piece).map(Ok::<_, std::io::Error>);
    Response::new(Body::from_stream(pieces))
}

fn status(code: u16, message: &str) -> Response<Body> {
    let reason = match code {
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        _ => "",
    };
    json_response(
        code,
        &json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": code,
        }),
    )
}

fn json_response(code: u16, value: &Value) -> Response<Body> {
    let response = Response::builder()
        .status(code)
        .header("content-type", "application/json");
    response.body(Body::from(value.to_string())).unwrap()
}
