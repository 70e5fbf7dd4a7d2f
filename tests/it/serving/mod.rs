//! Serving a router on loopback, for tests that play a server.

use std::net::SocketAddr;

use axum::Router;

/// Serves on a free port until the test's process ends; the router may want to know which.
pub(crate) fn serve(router: impl FnOnce(SocketAddr) -> Router) -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    let router = router(address);
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, router).await.unwrap();
        });
    });
    address
}
