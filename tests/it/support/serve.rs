//! A small HTTP server from an axum router, for answers that no real registry gives.

use std::net::{SocketAddr, TcpListener};

use axum::Router;
use tokio::sync::oneshot;

/// A server that runs until it is dropped.
pub struct Served {
    address: SocketAddr,
    _stop: oneshot::Sender<()>,
}

impl Served {
    /// `127.0.0.1:PORT`.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    /// `http://127.0.0.1:PORT/PATH`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }
}

/// Serves a router on loopback.
pub fn serve(router: Router) -> Served {
    serve_with(|_| router)
}

/// Serves a router that knows where it is served.
pub fn serve_with(router: impl FnOnce(SocketAddr) -> Router) -> Served {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let router = router(address);
    let (stop, stopped) = oneshot::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            tokio::select! {
                served = axum::serve(listener, router) => served.unwrap(),
                _ = stopped => {}
            }
        });
    });
    Served {
        address,
        _stop: stop,
    }
}
