//! A fake registry: the demo registry behind a profile's differences.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, LOCATION, RANGE};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use wincimg_demo::DemoRegistry;

use super::login::Proof;
use super::profile::{Login, Profile, Quirk};

/// The password, and the refresh token, of every user.
pub const PASSWORD: &str = "open sesame";

/// A registry: its differences and its content.
pub struct SimulatedRegistry {
    pub profile: &'static Profile,
    pub registry: DemoRegistry,
    pub memory: Mutex<Memory>,
}

#[derive(Default)]
pub struct Memory {
    /// Repositories that exist.
    pub repositories: HashSet<String>,
    /// Permissions of each token: `NAME:ACTION`.
    pub tokens: HashMap<String, HashSet<String>>,
    pub uploads: HashMap<String, Upload>,
    pub limited: bool,
}

/// State of an upload, and how it may continue.
#[derive(Default)]
pub struct Upload {
    pub size: u64,
    pub first: u64,
    pub last: u64,
    /// Changes with each response.
    pub state: u32,
}

pub type HttpResponse = Response<Full<Bytes>>;

/// A request's subject: `/v2/NAME/KIND/REST`.
pub struct Target<'a> {
    pub repository: &'a str,
    pub kind: &'static str,
    pub rest: &'a str,
}

/// The value of a difference in the profile, if present.
macro_rules! quirk {
    ($simulated:expr, $quirk:ident) => {
        $simulated.profile.find(|quirk| match quirk {
            $crate::registry_products::profile::Quirk::$quirk(value) => Some(value),
            _ => None,
        })
    };
}
pub(super) use quirk;

impl SimulatedRegistry {
    pub fn new(profile: &'static Profile) -> Self {
        Self {
            profile,
            registry: DemoRegistry::start().unwrap(),
            memory: Mutex::default(),
        }
    }

    pub async fn answer(&self, host: &str, head: &Parts, body: Bytes) -> HttpResponse {
        let path = head.uri.path();
        if self.profile.blobs_from() == Some(host) {
            return self.blob_from_elsewhere(head).await;
        }
        if let Login::Token {
            host: realm,
            path: at,
            ..
        } = self.profile.login
            && (realm, at) == (host, path)
        {
            return self.token(head, &body);
        }
        if host != self.profile.api {
            return plain(404);
        }
        let proof = self.proof(head);
        if path == "/v2/" {
            return match proof {
                Proof::None | Proof::Wrong if !matches!(self.profile.login, Login::Open) => {
                    self.challenge(None, false)
                }
                _ => with_body(200, "{}"),
            };
        }
        let Some(target) = Target::of(path) else {
            return plain(404);
        };
        if let Some(refusal) = self.denial(&proof, head, &target) {
            return refusal;
        }
        let answer = match target.kind {
            "tags/list" => self.tags(head, &target).await,
            "manifests/" => self.manifest(head, &target, body).await,
            "blobs/uploads/" => self.upload(&proof, head, &target, body).await,
            _ => self.blob(head, &target).await,
        };
        let changed = head.method == Method::PUT && answer.status() == StatusCode::CREATED;
        if changed {
            let mut memory = lock(&self.memory);
            memory.repositories.insert(target.repository.to_owned());
        }
        answer
    }

    pub fn has(&self, quirk: Quirk) -> bool {
        self.profile.has(quirk)
    }

    pub fn find<T>(&self, question: impl Fn(Quirk) -> Option<T>) -> Option<T> {
        self.profile.find(question)
    }

    /// Forwards to the registry behind.
    pub async fn behind(
        &self,
        method: Method,
        uri: &str,
        head: Option<&Parts>,
        body: Bytes,
    ) -> HttpResponse {
        let connection = TcpStream::connect(self.registry.host()).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(connection))
                .await
                .unwrap();
        tokio::spawn(connection);
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri.parse().unwrap();
        let headers = request.headers_mut();
        headers.insert(HOST, self.registry.host().parse().unwrap());
        for name in [CONTENT_TYPE, RANGE] {
            if let Some(value) = head.and_then(|head| head.headers.get(&name)) {
                headers.insert(name, value.clone());
            }
        }
        let (head, body) = sender.send_request(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Response::from_parts(head, Full::new(body))
    }

    pub async fn pass(&self, head: &Parts, body: Bytes) -> HttpResponse {
        let uri = head.uri.path_and_query().unwrap().to_string();
        self.behind(head.method.clone(), &uri, Some(head), body)
            .await
    }

    /// Converts the registry's own errors to this profile's format.
    pub fn refused(&self, answer: HttpResponse) -> HttpResponse {
        match answer.status().as_u16() {
            404 => self.error(404, "NOT_FOUND"),
            400 => self.error(400, "DIGEST_INVALID"),
            _ => answer,
        }
    }

    /// An error in this profile's format.
    pub fn error(&self, status: u16, code: &str) -> HttpResponse {
        let body = self.find(|quirk| match quirk {
            Quirk::Errors(body) => Some(
                body.replace("400", &status.to_string())
                    .replace("M\"", &format!("{code}\"")),
            ),
            _ => None,
        });
        let body = body.unwrap_or_else(|| {
            format!(
                r#"{{"errors":[{{"code":"{code}","message":"{}","detail":null}}]}}"#,
                code.to_lowercase()
            )
        });
        with_body(status, &body)
    }
}

impl<'a> Target<'a> {
    pub fn of(path: &'a str) -> Option<Self> {
        let path = path.strip_prefix("/v2/")?;
        let kinds = ["blobs/uploads/", "blobs/", "manifests/", "tags/list"];
        kinds.into_iter().find_map(|kind| {
            let (repository, rest) = path.rsplit_once(kind)?;
            let repository = repository.strip_suffix('/')?;
            Some(Self {
                repository,
                kind,
                rest,
            })
        })
    }
}

/// The fields of a query or a form, decoded.
pub fn fields(query: &str) -> Vec<(String, String)> {
    let url = reqwest::Url::parse(&format!("http://host/?{query}")).unwrap();
    url.query_pairs().into_owned().collect()
}

pub fn location(answer: &HttpResponse) -> String {
    let location = answer.headers().get(LOCATION);
    location
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
        .to_owned()
}

pub async fn body_of(answer: &mut HttpResponse) -> Bytes {
    let body = std::mem::take(answer.body_mut())
        .collect()
        .await
        .unwrap()
        .to_bytes();
    *answer.body_mut() = Full::new(body.clone());
    body
}

pub fn plain(status: u16) -> HttpResponse {
    with_body(status, "")
}

pub fn with_body(status: u16, body: &str) -> HttpResponse {
    let mut answer = Response::new(Full::new(Bytes::from(body.to_owned())));
    *answer.status_mut() = StatusCode::from_u16(status).unwrap();
    set(&mut answer, CONTENT_LENGTH, &body.len().to_string());
    answer
}

pub fn set(answer: &mut HttpResponse, name: HeaderName, value: &str) {
    answer.headers_mut().insert(name, value.parse().unwrap());
}
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
