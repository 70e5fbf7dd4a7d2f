//! A replayed Docker daemon on Windows: returns the responses of the Engine API's reference and of
//! Moby's Windows daemon, and records its requests.
//!
//! It replays `/_ping`, `/info`, the streams of the classic builder and of a push, and `/images/…`;
//! no Windows container runs.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// Responses of the daemon, which can be changed while it runs.
pub struct DaemonScript {
    /// The header of `/_ping`.
    pub api_version: String,
    /// The answer to `/info`.
    pub info: Value,
    /// Messages of a build, one list for each build; the last is repeated.
    pub builds: Vec<Vec<Value>>,
    pub images: HashMap<String, Value>,
    /// Messages of a push, and its effect on the registry.
    pub push: Push,
    /// The answer to `docker save`.
    pub saved: Vec<u8>,
    /// If set, a build sends its first message and then hangs.
    pub hangs: bool,
}

/// Maps a name with a tag to the messages of its push.
pub type Push = Box<dyn FnMut(&str) -> Vec<Value> + Send>;

#[derive(Debug, Clone, Default)]
pub struct DaemonRequest {
    pub method: String,
    pub path: String,
    pub query: HashMap<String, String>,
    pub headers: HeaderMap,
    /// Number of bytes in the body.
    pub bytes: u64,
    /// The bytes, unless there are many.
    pub body: Vec<u8>,
}

struct DaemonState {
    script: DaemonScript,
    asked: Vec<DaemonRequest>,
    /// Images by tagged name.
    names: HashMap<String, String>,
    /// Number of builds whose client disconnected.
    abandoned_builds: Arc<AtomicUsize>,
}

/// The daemon, which runs until it is dropped.
pub struct WindowsDaemon {
    server: SocketServer,
    shared: Arc<Mutex<DaemonState>>,
}

/// A server on a Unix socket, which runs until it is dropped.
pub(crate) struct SocketServer {
    pub(crate) folder: TempDir,
    task: JoinHandle<()>,
}

impl SocketServer {
    /// Starts in the caller's runtime.
    pub(crate) fn start(router: Router) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = tokio::net::UnixListener::bind(folder.path().join("socket")).unwrap();
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { folder, task }
    }

    pub(crate) fn host(&self) -> String {
        format!("unix://{}", self.folder.path().join("socket").display())
    }
}

/// A Windows daemon's response to `/info`, reduced to the relevant fields.
pub fn info(operating_system: &str, isolation: &str) -> Value {
    json!({
        "ID": "UL5C:WZCJ:QSVB:KBJ2:LJHN:JXWQ:QP5W:Y4KM:7E6P:Q6JF:MZZV:ABCD",
        "Containers": 0,
        "Images": 3,
        "Driver": "windowsfilter",
        "DriverStatus": [["Windows", ""]],
        "KernelVersion": "10.0 17763 (17763.1.amd64fre.rs5_release.180914-1434)",
        "OperatingSystem": operating_system,
        "OSVersion": "10.0.17763",
        "OSType": "windows",
        "Architecture": "x86_64",
        "RegistryConfig": {
            "InsecureRegistryCIDRs": ["127.0.0.0/8"],
            "IndexConfigs": {
                "docker.io": {"Name": "docker.io", "Mirrors": [], "Secure": true, "Official": true}
            },
            "Mirrors": []
        },
        "DockerRootDir": "C:\\ProgramData\\docker",
        "Name": "BUILD01",
        "ServerVersion": "20.10.24",
        "CgroupDriver": "",
        "Isolation": isolation,
        "Warnings": null
    })
}

/// The name of Windows Server 2019 with a revision, in the daemon's spelling.
pub fn server_2019(revision: u32) -> String {
    format!("Windows Server 2019 Datacenter Version 1809 (OS Build 17763.{revision})")
}

/// The daemon's JSON for an image.
pub fn shown(id: &str, os_version: &str, layers: &[String]) -> Value {
    json!({
        "Id": id,
        "Os": "windows",
        "OsVersion": os_version,
        "Architecture": "amd64",
        "RootFS": {"Type": "layers", "Layers": layers},
    })
}

/// The builder's messages for an image that was built.
pub fn built(id: &str) -> Vec<Value> {
    let short = &id["sha256:".len()..][..12];
    vec![
        json!({"stream": "Step 1/2 : FROM mcr.microsoft.com/windows/nanoserver"}),
        json!({"stream": "\n"}),
        json!({"stream": " ---> 4e9aff1f9b4d\n"}),
        json!({"stream": "Step 2/2 : RUN hostname"}),
        json!({"stream": "\n"}),
        json!({"stream": " ---> Running in 1b2c3d4e5f60\n"}),
        json!({"stream": "1B2C3D4E5F60\r\n"}),
        json!({"stream": "Removing intermediate container 1b2c3d4e5f60\n"}),
        json!({"aux": {"ID": id}}),
        json!({"stream": format!("Successfully built {short}\n")}),
    ]
}

impl WindowsDaemon {
    /// Starts a daemon on a Unix socket, in the caller's runtime.
    pub fn start() -> Self {
        let shared = Arc::new(Mutex::new(DaemonState {
            script: DaemonScript {
                api_version: "1.41".to_owned(),
                info: info(&server_2019(973), "process"),
                builds: Vec::new(),
                images: HashMap::new(),
                push: Box::new(|_| Vec::new()),
                saved: Vec::new(),
                hangs: false,
            },
            asked: Vec::new(),
            names: HashMap::new(),
            abandoned_builds: Arc::default(),
        }));
        let router = Router::new().fallback(answer).with_state(shared.clone());
        Self {
            server: SocketServer::start(router),
            shared,
        }
    }

    pub fn host(&self) -> String {
        self.server.host()
    }

    pub fn script(&self, change: impl FnOnce(&mut DaemonScript)) {
        change(&mut self.shared.lock().unwrap().script);
    }

    /// Number of builds that ended because their client disconnected.
    pub fn abandoned_builds(&self) -> usize {
        let shared = self.shared.lock().unwrap();
        shared.abandoned_builds.load(Ordering::SeqCst)
    }

    /// The requests with paths that contain a text.
    pub fn asked(&self, path: &str) -> Vec<DaemonRequest> {
        let shared = self.shared.lock().unwrap();
        let asked = shared.asked.iter().filter(|it| it.path.contains(path));
        asked.cloned().collect()
    }
}

impl Drop for SocketServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Limit on the recorded bytes of a body; the rest is only counted.
const MAX_RECORDED_BODY: usize = 16 << 20;

async fn answer(State(shared): State<Arc<Mutex<DaemonState>>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let mut asked = DaemonRequest {
        method: head.method.to_string(),
        path: head.uri.path().to_owned(),
        headers: head.headers,
        ..DaemonRequest::default()
    };
    let address = reqwest::Url::parse(&format!("http://docker{}", head.uri)).unwrap();
    asked.query = address.query_pairs().into_owned().collect();
    let mut body = body.into_data_stream();
    let mut whole = true;
    while let Some(piece) = body.next().await {
        let Ok(piece) = piece else {
            whole = false;
            break;
        };
        asked.bytes += piece.len() as u64;
        if asked.body.len() < MAX_RECORDED_BODY {
            asked.body.extend_from_slice(&piece);
        }
    }
    let mut shared = shared.lock().unwrap();
    shared.asked.push(asked.clone());
    if !whole {
        return refuse(StatusCode::BAD_REQUEST, "unexpected EOF");
    }
    let versioned = asked.path.strip_prefix("/v1.41");
    match (&head.method, versioned.unwrap_or(&asked.path)) {
        (&Method::GET, "/_ping") => {
            let version = shared.script.api_version.clone();
            let headers = [("api-version", version), ("ostype", "windows".to_owned())];
            (headers, "OK").into_response()
        }
        (&Method::GET, "/info") => shared.script.info.to_string().into_response(),
        (&Method::POST, "/build") => {
            let builds = &mut shared.script.builds;
            let messages = if builds.len() > 1 {
                builds.remove(0)
            } else {
                builds.first().cloned().unwrap_or_default()
            };
            if shared.script.hangs {
                return hang(&messages, shared.abandoned_builds.clone());
            }
            stream(&messages)
        }
        (&Method::GET, "/images/get") => shared.script.saved.clone().into_response(),
        (method, path) if path.starts_with("/images/") => {
            image(&mut shared, method, &path["/images/".len()..], &asked)
        }
        _ => refuse(StatusCode::NOT_FOUND, "page not found"),
    }
}

fn image(shared: &mut DaemonState, method: &Method, path: &str, asked: &DaemonRequest) -> Response {
    let (name, verb) = path.rsplit_once('/').unwrap();
    let id = shared
        .names
        .get(name)
        .map_or(name, String::as_str)
        .to_owned();
    match (method, verb) {
        (&Method::GET, "json") => match shared.script.images.get(&id) {
            Some(image) => image.to_string().into_response(),
            None => refuse(StatusCode::NOT_FOUND, &format!("No such image: {name}")),
        },
        (&Method::POST, "tag") => {
            let tagged = format!("{}:{}", asked.query["repo"], asked.query["tag"]);
            shared.names.insert(tagged, id);
            StatusCode::CREATED.into_response()
        }
        (&Method::POST, "push") => {
            let pushed = format!("{name}:{}", asked.query["tag"]);
            stream(&(shared.script.push)(&pushed))
        }
        _ => refuse(StatusCode::NOT_FOUND, "page not found"),
    }
}

/// A string among the messages is sent unchanged; as the last one without a line end.
fn stream(messages: &[Value]) -> Response {
    let lines = messages.iter().map(|message| match message {
        Value::String(text) => text.clone(),
        message => message.to_string(),
    });
    let mut lines = lines.collect::<Vec<_>>().join("\n");
    if !matches!(messages.last(), Some(Value::String(_))) {
        lines.push('\n');
    }
    Body::from(lines).into_response()
}

/// Increments a counter when it is dropped, as when a client disconnects.
struct HangupCounter(Arc<AtomicUsize>);

impl Drop for HangupCounter {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn hang(messages: &[Value], abandoned_builds: Arc<AtomicUsize>) -> Response {
    let first = format!("{}\n", messages[0]);
    let counted = HangupCounter(abandoned_builds);
    let rest = futures_util::stream::once(async move {
        let _counted = counted;
        std::future::pending::<Result<String, std::io::Error>>().await
    });
    let stream = futures_util::stream::iter([Ok(first)]).chain(rest);
    Body::from_stream(stream).into_response()
}

fn refuse(status: StatusCode, message: &str) -> Response {
    (status, json!({ "message": message }).to_string()).into_response()
}
