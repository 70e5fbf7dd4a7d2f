//! A registry with scripted responses, for products that cannot be installed here.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use super::serve::{TestServer, serve, serve_tls};

#[derive(Debug, Clone)]
pub struct ScriptedRequest {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl ScriptedRequest {
    /// `METHOD PATH`, without the query.
    pub fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The value of a query parameter, not decoded.
    pub fn field(&self, name: &str) -> Option<&str> {
        let mut fields = self.query.split('&');
        fields.find_map(|field| field.strip_prefix(name)?.strip_prefix('='))
    }
}

/// The requests so far.
#[derive(Debug, Clone, Default)]
pub struct RequestLog(Arc<Mutex<Vec<ScriptedRequest>>>);

impl RequestLog {
    pub fn all(&self) -> Vec<ScriptedRequest> {
        self.0.lock().unwrap().clone()
    }

    pub fn forget(&self) {
        self.0.lock().unwrap().clear();
    }

    pub fn lines(&self) -> Vec<String> {
        self.all().iter().map(ScriptedRequest::line).collect()
    }

    /// Number of requests with this method and end of the path.
    pub fn count(&self, method: &str, end: &str) -> usize {
        let all = self.all();
        let like = |asked: &&ScriptedRequest| asked.method == method && asked.path.ends_with(end);
        all.iter().filter(like).count()
    }
}

fn router(
    answer: impl Fn(&ScriptedRequest) -> Response + Clone + Send + Sync + 'static,
) -> (RequestLog, Router) {
    let log = RequestLog::default();
    let seen = log.clone();
    let handle = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
        let asked = ScriptedRequest {
            method,
            path: uri.path().to_owned(),
            query: uri.query().unwrap_or_default().to_owned(),
            headers,
            body,
        };
        let response = answer(&asked);
        seen.0.lock().unwrap().push(asked);
        async move { response }
    };
    let router = Router::new()
        .fallback(handle)
        .layer(DefaultBodyLimit::disable());
    (log, router)
}

/// A registry over plain HTTP.
pub fn scripted(
    answer: impl Fn(&ScriptedRequest) -> Response + Clone + Send + Sync + 'static,
) -> (RequestLog, TestServer) {
    let (log, router) = router(answer);
    (log, serve(router))
}

/// A registry over TLS.
pub fn scripted_tls(
    answer: impl Fn(&ScriptedRequest) -> Response + Clone + Send + Sync + 'static,
) -> (RequestLog, TestServer) {
    let (log, router) = router(answer);
    (log, serve_tls(router))
}

pub fn answer(status: u16, headers: &[(&str, &str)], body: impl Into<String>) -> Response {
    let mut response = (StatusCode::from_u16(status).unwrap(), body.into()).into_response();
    for (name, value) in headers {
        let name = axum::http::HeaderName::from_bytes(name.as_bytes()).unwrap();
        response.headers_mut().append(name, value.parse().unwrap());
    }
    response
}
