//! Exec in a pod as an API server does it: a WebSocket with the channels of `v4.channel.k8s.io` and
//! `v5.channel.k8s.io`. The program is the real Docker client.

use std::process::Stdio;

use axum::body::Body;
use axum::http::{HeaderValue, Response};
use futures_util::{SinkExt as _, StreamExt as _};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Message, Role};
use wincimg_testkit::component;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
/// Closes the channel of the next byte, in the fifth version.
const CLOSE: u8 = 255;

/// An exec of `docker system dial-stdio`.
pub(crate) struct Exec {
    /// `DOCKER_HOST` in the pod.
    pub(crate) daemon: String,
    pub(crate) protocol: &'static str,
    /// Changes when the pod is evicted.
    pub(crate) ended: watch::Receiver<u64>,
}

impl Exec {
    /// Switches the connection to the protocol, and serves it.
    pub(crate) fn answer(self, upgrade: OnUpgrade, key: &HeaderValue) -> Response<Body> {
        let response = Response::builder()
            .status(101)
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-accept", derive_accept_key(key.as_bytes()))
            .header("sec-websocket-protocol", self.protocol)
            .body(Body::empty())
            .unwrap();
        tokio::spawn(async move {
            let stream = TokioIo::new(upgrade.await.unwrap());
            let socket = WebSocketStream::from_raw_socket(stream, Role::Server, None).await;
            self.serve(socket).await;
        });
        response
    }

    async fn serve(mut self, socket: WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>) {
        let mut child = Command::new(component("docker"))
            .args(["system", "dial-stdio"])
            .env("DOCKER_HOST", &self.daemon)
            .env("HOME", "/nonexistent")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let (sender, mut outputs) = mpsc::channel(4);
        let output = child.stdout.take().unwrap();
        let errors = child.stderr.take().unwrap();
        tokio::spawn(send_output(STDOUT, output, sender.clone()));
        tokio::spawn(send_output(STDERR, errors, sender));
        let mut stdin = child.stdin.take();
        let (mut out, mut input) = socket.split();
        loop {
            tokio::select! {
                // As of a killed pod: no status, no closing message.
                _ = self.ended.changed() => return,
                output = outputs.recv() => match output {
                    Some(bytes) => {
                        if out.send(Message::binary(bytes)).await.is_err() {
                            return;
                        }
                    }
                    None => break,
                },
                message = input.next() => match message {
                    Some(Ok(Message::Binary(bytes))) => self.read(&bytes, &mut stdin).await,
                    Some(Ok(Message::Ping(_))) => {}
                    _ => return,
                },
            }
        }
        let status = Message::binary(end_of(&mut child).await);
        let _ = out.send(status).await;
        let _ = out.close().await;
    }

    async fn read(&self, message: &[u8], stdin: &mut Option<ChildStdin>) {
        match message {
            [STDIN, bytes @ ..] => {
                if let Some(stdin) = stdin {
                    let _ = stdin.write_all(bytes).await;
                }
            }
            [CLOSE, STDIN] if self.protocol.starts_with("v5") => *stdin = None,
            other => panic!("unexpected message {other:?}"),
        }
    }
}

/// Sends a stream of the program as messages of its channel.
async fn send_output(
    channel: u8,
    mut output: impl AsyncRead + Unpin,
    sender: mpsc::Sender<Vec<u8>>,
) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = output.read(&mut buffer).await {
        let message = [&[channel], &buffer[..count]].concat();
        if sender.send(message).await.is_err() {
            return;
        }
    }
}

/// The status of a program that has ended.
async fn end_of(child: &mut Child) -> Vec<u8> {
    let ended = child.wait().await.unwrap();
    let status = if ended.success() {
        json!({"metadata": {}, "status": "Success"})
    } else {
        json!({
            "metadata": {},
            "status": "Failure",
            "message": format!("command terminated with {ended}"),
            "reason": "NonZeroExitCode",
        })
    };
    [vec![STATUS], status.to_string().into_bytes()].concat()
}
