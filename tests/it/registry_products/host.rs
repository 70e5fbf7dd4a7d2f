//! Fake registries under their real names: a proxy that handles every connection itself with a
//! certificate of its own CA.

use std::collections::HashSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::{fs, io};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use wincimg_demo::RegistryState;
use wincimg_testkit::docker_registry::certificates;
use wincimg_testkit::serve::{acceptor, in_background, listen};

use super::profile::{Profile, Quirk};
use super::profiles::ALL;
use super::simulated::{PASSWORD, SimulatedRegistry, lock, plain};

/// Registries that run until this is dropped.
pub struct RegistryHost {
    address: SocketAddr,
    folder: TempDir,
    registries: Arc<Vec<SimulatedRegistry>>,
    /// Requested hosts that are not among these.
    strangers: Arc<Mutex<Vec<String>>>,
    _stop: oneshot::Sender<()>,
}

impl RegistryHost {
    /// Starts registries with these profiles.
    pub fn start(profiles: &[&'static Profile]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_certificates(folder.path());
        let acceptor = acceptor(folder.path());
        let registries: Vec<SimulatedRegistry> = profiles
            .iter()
            .map(|&profile| SimulatedRegistry::new(profile))
            .collect();
        let registries = Arc::new(registries);
        let strangers = Arc::<Mutex<Vec<String>>>::default();
        let (listener, address) = listen();
        let (served, unknown) = (Arc::clone(&registries), Arc::clone(&strangers));
        let stop = in_background(async move || {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((connection, _)) = listener.accept().await {
                let (served, unknown) = (Arc::clone(&served), Arc::clone(&unknown));
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    // A client may disconnect.
                    let _ = converse(connection, acceptor, &served, &unknown).await;
                });
            }
        });
        Self {
            address,
            folder,
            registries,
            strangers,
            _stop: stop,
        }
    }

    /// The environment in which a program uses these registries instead of the real ones.
    pub fn environment(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("HTTPS_PROXY", format!("http://{}", self.address).into()),
            ("SSL_CERT_FILE", self.folder.path().join("ca.pem")),
        ]
    }

    /// The same environment, for a program that trusts another CA too.
    pub fn trusting(&self, ca: &Path) -> Vec<(&'static str, PathBuf)> {
        let own = self.folder.path().join("ca.pem");
        let both = self.folder.path().join("both.pem");
        let certificates = [own.as_path(), ca].map(|file| fs::read(file).unwrap());
        fs::write(&both, certificates.concat()).unwrap();
        let mut environment = self.environment();
        environment[1].1 = both;
        environment
    }

    /// Docker's `config.json` with the logins of all users.
    pub fn config(&self) -> PathBuf {
        let file = self.folder.path().join("config.json");
        let logins = self.registries.iter().map(|simulated| simulated.profile);
        let logins = logins.filter(|profile| !profile.user.is_empty());
        let auths: serde_json::Map<String, Value> = logins
            .map(|profile| {
                let login = if profile.has(Quirk::RefreshToken) {
                    let pair = BASE64_STANDARD.encode(format!("{}:", profile.user));
                    serde_json::json!({ "auth": pair, "identitytoken": PASSWORD })
                } else {
                    let pair = BASE64_STANDARD.encode(format!("{}:{PASSWORD}", profile.user));
                    serde_json::json!({ "auth": pair })
                };
                (profile.key.to_owned(), login)
            })
            .collect();
        let config = serde_json::json!({ "auths": auths });
        fs::write(&file, config.to_string()).unwrap();
        file
    }

    /// Docker's `config.json` of a user without logins.
    pub fn no_login(&self) -> PathBuf {
        let file = self.folder.path().join("empty.json");
        fs::write(&file, "{}").unwrap();
        file
    }

    /// Creates repositories, for a registry that requires it before a push.
    pub fn create(&self, profile: &Profile, repository: &str) {
        let simulated = self.simulated(profile);
        lock(&simulated.memory)
            .repositories
            .insert(repository.to_owned());
    }

    /// Changes what a registry holds, without HTTP.
    pub fn with<T>(&self, profile: &Profile, change: impl FnOnce(&mut RegistryState) -> T) -> T {
        self.simulated(profile).registry.with(change)
    }

    /// Host where a registry's content can be read without login.
    pub fn behind(&self, profile: &Profile) -> String {
        self.simulated(profile).registry.host()
    }

    /// Requested hosts that are not served.
    pub fn strangers(&self) -> Vec<String> {
        lock(&self.strangers).clone()
    }

    fn simulated(&self, profile: &Profile) -> &SimulatedRegistry {
        let mut registries = self.registries.iter();
        registries
            .find(|simulated| simulated.profile.name == profile.name)
            .unwrap()
    }
}

/// Writes a CA, and a certificate of it for the hosts of all products, made once: openssl takes as
/// long as a command.
fn write_certificates(folder: &Path) {
    const FILES: [&str; 3] = ["ca.pem", "server.pem", "server.key"];
    static MADE: OnceLock<[Vec<u8>; 3]> = OnceLock::new();
    let made = MADE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let hosts: HashSet<&str> = ALL.iter().flat_map(|profile| profile.hosts()).collect();
        certificates(folder.path(), hosts);
        FILES.map(|file| fs::read(folder.path().join(file)).unwrap())
    });
    for (file, bytes) in FILES.iter().zip(made) {
        fs::write(folder.join(file), bytes).unwrap();
    }
}

/// Handles one connection to the proxy: `CONNECT HOST:443`, and then that host.
async fn converse(
    mut connection: TcpStream,
    acceptor: TlsAcceptor,
    registries: &Arc<Vec<SimulatedRegistry>>,
    strangers: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(connection.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let target = head.split(' ').nth(1).unwrap_or_default();
    let host = target.trim_end_matches(":443").to_owned();
    let found = registries
        .iter()
        .position(|simulated| simulated.profile.hosts().contains(&host.as_str()));
    let (Some(found), true) = (found, head.starts_with("CONNECT ")) else {
        lock(strangers).push(target.to_owned());
        return connection
            .write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
            .await;
    };
    connection.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
    let stream = acceptor.accept(connection).await?;
    let service = service_fn(|request: Request<Incoming>| {
        let (registries, host) = (Arc::clone(registries), host.clone());
        async move {
            let (head, body) = request.into_parts();
            let body = body
                .collect()
                .await
                .map(http_body_util::Collected::to_bytes);
            let Ok(body) = body else {
                return Ok::<_, Infallible>(plain(400));
            };
            Ok(registries[found].answer(&host, &head, body).await)
        }
    });
    let _ = hyper::server::conn::http1::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
    Ok(())
}
