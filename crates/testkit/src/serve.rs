//! A small HTTP server from an axum router, for responses that no real registry gives.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::Router;
use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::docker_registry::certificates;

/// A server that runs until it is dropped.
pub struct TestServer {
    address: SocketAddr,
    _stop: oneshot::Sender<()>,
    /// With TLS, the folder of its certificate and CA.
    certificates: Option<TempDir>,
}

impl TestServer {
    /// `127.0.0.1:PORT`.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// `http://127.0.0.1:PORT/PATH`, with TLS `https://127.0.0.1:PORT/PATH`.
    pub fn url(&self, path: &str) -> String {
        let scheme = self.certificates.as_ref().map_or("http", |_| "https");
        format!("{scheme}://{}/{path}", self.address)
    }

    /// The CA's certificate in PEM.
    pub fn ca(&self) -> PathBuf {
        let folder = self.certificates.as_ref().unwrap();
        folder.path().join("ca.pem")
    }
}

pub fn serve(router: Router) -> TestServer {
    serve_with(|_| router)
}

/// Serves a router on loopback with TLS and a certificate of its own CA.
pub(crate) fn serve_tls(router: Router) -> TestServer {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path(), ["localhost"]);
    let acceptor = acceptor(folder.path());
    let mut served = serve_by(|_| router, |tcp| Tls { tcp, acceptor });
    served.certificates = Some(folder);
    served
}

pub fn acceptor(folder: &Path) -> TlsAcceptor {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let chain = CertificateDer::pem_file_iter(folder.join("server.pem")).unwrap();
    let chain = chain.collect::<Result<Vec<_>, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.join("server.key")).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

/// Listener for TLS connections; others are dropped.
struct Tls {
    tcp: tokio::net::TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for Tls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (stream, address) = Listener::accept(&mut self.tcp).await;
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}

pub fn serve_with(router: impl FnOnce(SocketAddr) -> Router) -> TestServer {
    serve_by(router, |tcp| tcp)
}

fn serve_by<L: Listener<Addr = SocketAddr>>(
    router: impl FnOnce(SocketAddr) -> Router,
    listener_of: impl FnOnce(tokio::net::TcpListener) -> L + Send + 'static,
) -> TestServer {
    let (listener, address) = listen();
    let router = router(address);
    let stop = in_background(async move || {
        let listener = tokio::net::TcpListener::from_std(listener).unwrap();
        axum::serve(listener_of(listener), router).await.unwrap();
    });
    TestServer {
        address,
        _stop: stop,
        certificates: None,
    }
}

/// Opens a free port of this machine, for tokio to take over.
pub fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Runs a future on its own thread until the returned value is dropped.
pub fn in_background<F: Future<Output = ()>>(
    work: impl FnOnce() -> F + Send + 'static,
) -> oneshot::Sender<()> {
    let (stop, stopped) = oneshot::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            tokio::select! {
                () = work() => {}
                _ = stopped => {}
            }
        });
    });
    stop
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_says_whether_the_server_has_tls() {
        let mut served = serve(Router::new());
        assert_eq!(served.url("a"), format!("http://{}/a", served.host()));
        served.certificates = Some(tempfile::tempdir().unwrap());
        assert_eq!(served.url("a"), format!("https://{}/a", served.host()));
    }
}
