//! Proxies of the environment.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use assert_cmd::Command;

use crate::failure::Fails;

/// Time for the note of a connection.
const SOON: Duration = Duration::from_secs(1);

/// A proxy on this machine: its address, and what it notes of each connection.
fn proxy<T: Send + 'static>(
    answer: impl Fn(TcpStream) -> std::io::Result<T> + Send + 'static,
) -> (String, Receiver<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (sender, noted) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if let Ok(note) = answer(stream) {
                let _ = sender.send(note);
            }
        }
    });
    (address, noted)
}

fn inspect(proxy: &str, timeout: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
    command
        .args(["image", "inspect", "registry.example.test/a:1"])
        .args(["--timeout", timeout])
        .env("HTTPS_PROXY", proxy)
        .env_remove("NO_PROXY")
        .env_remove("no_proxy");
    command
}

#[test]
fn a_socks_proxy_is_used_and_resolves_names() {
    let (address, noted) = proxy(|mut stream| {
        let mut start = [0; 2];
        stream.read_exact(&mut start)?;
        stream.read_exact(&mut vec![0; usize::from(start[1])])?;
        stream.write_all(&[5, 0])?;
        let mut request = [0; 5];
        stream.read_exact(&mut request)?;
        let mut host = vec![0; usize::from(request[4])];
        stream.read_exact(&mut host)?;
        // The host is unreachable.
        stream.write_all(&[5, 4, 0, 1, 0, 0, 0, 0, 0, 0])?;
        Ok(String::from_utf8_lossy(&host).into_owned())
    });
    let output = inspect(&format!("socks5h://{address}"), "5s").output();
    assert_eq!(output.unwrap().status.code(), Some(3));
    assert_eq!(noted.recv_timeout(SOON).unwrap(), "registry.example.test");
}

#[test]
fn what_a_proxy_refuses_is_not_tried_over_and_over() {
    for (status, advice, most) in [
        ("403 Forbidden", "NO_PROXY", 2),
        ("407 Proxy Authentication Required", "USER:PASSWORD", 1),
    ] {
        let (address, noted) = proxy(move |mut stream| {
            // The whole request, so that closing does not reset the connection.
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte)?;
                request.extend(byte);
            }
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")
        });
        let named = format!("the proxy {address} of HTTPS_PROXY");
        inspect(&format!("http://{address}"), "60s")
            .fails(3, "network/unreachable", &[&named])
            .advises(&[advice]);
        let tries = std::iter::from_fn(|| noted.recv_timeout(SOON).ok());
        assert_eq!(tries.count(), most, "{status}");
    }
}

#[test]
fn a_proxy_that_cannot_be_used_is_an_error_and_no_direct_connection() {
    let inspect = |proxy: &str| {
        let output = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
            // Neither of them is this machine, so a proxy applies.
            .args(["image", "inspect", "192.0.2.1:5/x:1", "--timeout", "9s"])
            .env("HTTPS_PROXY", proxy)
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(!printed.contains("s3cr3t"), "{printed}");
        (output.status.code(), printed)
    };
    for proxy in ["http://usr:s3cr3t@%zz", ":::", "socks9://x", "http://a b"] {
        let (code, printed) = inspect(proxy);
        assert_eq!(code, Some(2), "{proxy}: {printed}");
        assert!(printed.contains("HTTPS_PROXY is not"), "{proxy}: {printed}");
    }
    let (code, printed) = inspect("http://usr:s3cr3t@127.0.0.1:9");
    assert_eq!(code, Some(3), "{printed}");
    assert_contains!(printed, "the proxy 127.0.0.1:9 of HTTPS_PROXY");
}

#[test]
fn a_name_without_a_host_that_cannot_be_reached_is_said_to_be_on_docker_hub() {
    let output = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"))
        .args(["image", "inspect", "prod/shop:1", "--timeout", "9s"])
        .args(["--registry-config", wincimg_testkit::NO_CREDENTIALS])
        .env("HTTPS_PROXY", "http://127.0.0.1:9")
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert_contains!(
        printed,
        "write HOST/NAME for another registry",
        "HTTPS_PROXY"
    );
}
