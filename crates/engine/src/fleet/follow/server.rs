//! HTTP server for `/metrics`, `/healthz` and `/readyz`.

use std::convert::Infallible;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use wincimg_common::lock;

use super::metrics::{self, Metrics};

/// Maximum number of concurrent connections; more wait.
const CONNECTIONS: usize = 64;

/// Time limit for receiving a request.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Listens at `HOST:PORT`, or on all addresses at `:PORT`.
pub async fn listen(place: &str) -> io::Result<TcpListener> {
    if let Some(port) = place.strip_prefix(':').and_then(|port| port.parse().ok()) {
        // The IPv6 address accepts IPv4 too, if the system has IPv6.
        let everywhere: [SocketAddr; 2] = [
            (Ipv6Addr::UNSPECIFIED, port).into(),
            (Ipv4Addr::UNSPECIFIED, port).into(),
        ];
        return TcpListener::bind(&everywhere[..]).await;
    }
    let addresses: Vec<SocketAddr> = place.to_socket_addrs()?.collect();
    TcpListener::bind(&addresses[..]).await
}

/// Serves until it is dropped.
pub(super) async fn serve(listener: TcpListener, metrics: Arc<Mutex<Metrics>>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file descriptors, for example, which is temporary.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        let metrics = Arc::clone(&metrics);
        connections.spawn(async move {
            let _place = place;
            let service = service_fn(|request: Request<Incoming>| {
                let answer = answer(&metrics, request.method(), request.uri().path());
                async move { Ok::<_, Infallible>(answer) }
            });
            let served = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(TIME_LIMIT)
                .serve_connection(TokioIo::new(stream), service);
            // Errors of closed connections are ignored.
            let _ = served.await;
        });
    }
}

fn answer(metrics: &Mutex<Metrics>, method: &Method, path: &str) -> Response<Full<Bytes>> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET is allowed\n");
        let allowed = HeaderValue::from_static("GET, HEAD");
        response.headers_mut().insert(ALLOW, allowed);
        return response;
    }
    let health = |problem: Option<String>| match problem {
        None => plain(StatusCode::OK, "ok\n"),
        Some(problem) => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{problem}\n")),
    };
    match path {
        "/metrics" => {
            let mut response = plain(StatusCode::OK, lock(metrics).to_text());
            let kind = HeaderValue::from_static(metrics::CONTENT_TYPE);
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
        }
        "/healthz" => health(lock(metrics).liveness_error()),
        "/readyz" => health(lock(metrics).readiness_error()),
        _ => plain(
            StatusCode::NOT_FOUND,
            "not found: expected /metrics, /healthz or /readyz\n",
        ),
    }
}

fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}
