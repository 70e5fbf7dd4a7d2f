//! A server that plays the Kubernetes API: lists in pages, watches, refusals.
#![allow(unreachable_pub, clippy::unwrap_used)]

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Request, Response};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::serve::{Served, serve};

/// A server that runs until it is dropped.
pub struct Api {
    state: Shared,
    folder: TempDir,
    _served: Served,
}

type Shared = Arc<Mutex<Played>>;

#[derive(Default)]
struct Played {
    lists: HashMap<String, Vec<Value>>,
    after_gone: HashMap<String, Vec<Value>>,
    refused: HashMap<String, u16>,
    refused_watches: Option<u16>,
    pages_to_forget: usize,
    requests: Vec<(String, String)>,
    to_say: Vec<Value>,
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

    /// A kubeconfig that leads here.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    /// What a path lists; every other path lists nothing.
    pub fn set(&self, path: &str, items: Vec<Value>) {
        self.state
            .lock()
            .unwrap()
            .lists
            .insert(path.to_owned(), items);
    }

    /// What a path lists once a watch was told that it is too old.
    pub fn on_gone(&self, path: &str, items: Vec<Value>) {
        self.state
            .lock()
            .unwrap()
            .after_gone
            .insert(path.to_owned(), items);
    }

    /// A path that is answered with this status.
    pub fn refuse(&self, path: &str, code: u16) {
        self.state
            .lock()
            .unwrap()
            .refused
            .insert(path.to_owned(), code);
    }

    /// Watches are answered with this status.
    pub fn refuse_watches(&self, code: u16) {
        self.state.lock().unwrap().refused_watches = Some(code);
    }

    /// The next so many pages after the first are answered with 410.
    pub fn forget_pages(&self, count: usize) {
        self.state.lock().unwrap().pages_to_forget = count;
    }

    /// The next thing that a watch is told.
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

    /// The paths of all requests.
    pub fn paths(&self) -> Vec<String> {
        let state = self.state.lock().unwrap();
        let targets = state.requests.iter().map(|(_, target)| target);
        targets
            .map(|target| target.split('?').next().unwrap().to_owned())
            .collect()
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

async fn answer(State(state): State<Shared>, request: Request<Body>) -> Response<Body> {
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
    if request
        .headers()
        .get("authorization")
        .is_none_or(|token| token != "Bearer secret")
    {
        return status(401, "Unauthorized");
    }
    let watches = parameter("watch").is_some();
    let refused = played.refused.get(&path).copied();
    match refused.or(played.refused_watches.filter(|_| watches)) {
        Some(401) => return status(401, "Unauthorized"),
        Some(403) if watches => {
            return status(403, "nodes is forbidden: User \"ci\" cannot watch resource");
        }
        Some(403) => return status(403, "nodes is forbidden: User \"ci\" cannot list resource"),
        Some(code) => return status(code, "no"),
        None => {}
    }
    if watches {
        drop(played);
        return watch(state, path);
    }
    let start: usize = parameter("continue").map_or(0, |text| text.parse().unwrap());
    if start > 0 && played.pages_to_forget > 0 {
        played.pages_to_forget -= 1;
        return status(410, "The provided continue parameter is too old");
    }
    let limit: usize = parameter("limit").map_or(usize::MAX, |text| text.parse().unwrap());
    let all = played.lists.get(&path).cloned().unwrap_or_default();
    let end = all.len().min(start.saturating_add(limit));
    let mut metadata = json!({"resourceVersion": "7"});
    if end < all.len() {
        metadata["continue"] = json!(end.to_string());
    }
    let page =
        json!({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": all[start..end]});
    json_response(200, &page)
}

/// Says what is to be said, one event a line, and then keeps the connection open; an event `END` ends
/// the watch, as servers do after a while.
fn watch(state: Shared, path: String) -> Response<Body> {
    let events = futures_util::stream::unfold((state, path), |(state, path)| async move {
        loop {
            let next = {
                let mut played = state.lock().unwrap();
                (!played.to_say.is_empty()).then(|| played.to_say.remove(0))
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
            return Some((line, (state, path)));
        }
    });
    let body = Body::from_stream(events);
    Response::builder()
        .header("content-type", "application/json")
        .body(body)
        .unwrap()
}

fn status(code: u16, message: &str) -> Response<Body> {
    json_response(
        code,
        &json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": message, "reason": "", "code": code,
        }),
    )
}

fn json_response(code: u16, value: &Value) -> Response<Body> {
    let response = Response::builder()
        .status(code)
        .header("content-type", "application/json");
    response.body(Body::from(value.to_string())).unwrap()
}
