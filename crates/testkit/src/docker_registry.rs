//! Debian's `docker-registry` in the usual setups: plain, with TLS, with a password.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use super::component;
use super::programs::start_logged;

pub const USER: &str = "bob";
pub const PASSWORD: &str = "open sesame";

#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "they can be combined freely")]
pub struct Setup {
    /// A certificate for 127.0.0.1 from a throwaway CA.
    pub tls: bool,
    /// A self-signed certificate instead, marked as a CA's.
    pub self_signed: bool,
    /// That certificate has no name of the host.
    pub nameless: bool,
    /// The CA's own certificate has the name of a server.
    pub named_ca: bool,
    /// Requires client certificates of the CA.
    pub asks_clients: bool,
    /// Basic auth by htpasswd for [`USER`] and [`PASSWORD`].
    pub password: bool,
}

impl Setup {
    const PLAIN: Self = Self {
        tls: false,
        self_signed: false,
        nameless: false,
        named_ca: false,
        asks_clients: false,
        password: false,
    };
    pub const TLS: Self = Self {
        tls: true,
        ..Self::PLAIN
    };
    pub const PASSWORD: Self = Self {
        password: true,
        ..Self::PLAIN
    };
    pub const TLS_AND_PASSWORD: Self = Self {
        password: true,
        ..Self::TLS
    };
}

/// A registry that runs until it is dropped.
pub struct DockerRegistry {
    process: Child,
    folder: TempDir,
    port: u16,
    setup: Setup,
}

impl DockerRegistry {
    pub fn plain() -> Self {
        Self::start(Setup::PLAIN)
    }

    pub fn start(setup: Setup) -> Self {
        let program = component("docker-registry");
        let folder = tempfile::tempdir().unwrap();
        if setup.tls {
            certificates(folder.path(), ["localhost"]);
            if setup.named_ca {
                openssl(
                    folder.path(),
                    "req -x509 -key ca.key -out ca.pem -days 2 -subj /CN=throwaway -addext subjectAltName=DNS:localhost",
                );
            }
            if setup.self_signed {
                let mut arguments = format!(
                    "req -x509 {NEW_KEY} -keyout server.key -out server.pem -days 2 -subj /CN=registry"
                );
                if !setup.nameless {
                    arguments += " -addext subjectAltName=IP:127.0.0.1";
                }
                openssl(folder.path(), &arguments);
            }
        }
        if setup.password {
            make_htpasswd(folder.path());
        }
        let port = free_port();
        let config = folder.path().join("config.yml");
        fs::write(&config, yaml(folder.path(), port, setup)).unwrap();
        let mut command = Command::new(program);
        command.arg("serve").arg(&config);
        let mut registry = Self {
            process: start_logged(&mut command, folder.path()),
            folder,
            port,
            setup,
        };
        registry.wait();
        registry
    }

    /// `127.0.0.1:PORT`.
    pub fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// The CA's certificate in PEM.
    pub fn ca(&self) -> PathBuf {
        assert!(self.setup.tls, "only a registry with TLS has a CA");
        self.folder.path().join("ca.pem")
    }

    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("server.pem")
    }

    /// Creates a client certificate of the CA and its key in a folder.
    pub fn identify(&self, folder: &Path) {
        let from = self.folder.path();
        openssl(
            from,
            &format!("req {NEW_KEY} -keyout client.key -out client.csr -subj /CN=bob"),
        );
        openssl(
            from,
            "x509 -req -in client.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names.cnf -out client.pem",
        );
        fs::copy(from.join("client.pem"), folder.join("client.cert")).unwrap();
        fs::copy(from.join("client.key"), folder.join("client.key")).unwrap();
    }

    /// A `config.json` with the password for `host`, which may be a proxy's.
    pub fn docker_config(&self, host: &str, password: &str) -> PathBuf {
        let name = format!("docker-{}", host.replace(':', "-"));
        let folder = self.folder.path().join(name);
        fs::create_dir_all(&folder).unwrap();
        let entry = json!({ "username": USER, "password": password });
        super::docker_config(&folder, &json!({ "auths": { host: entry } }))
    }

    /// The registry's log, for debugging a test.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// The registry's storage, for tests that damage it.
    pub fn storage(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    pub fn blob_file(&self, digest: &str) -> PathBuf {
        let hex = digest.trim_start_matches("sha256:");
        self.storage()
            .join("docker/registry/v2/blobs/sha256")
            .join(&hex[..2])
            .join(hex)
            .join("data")
    }

    fn wait(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let ended = self.process.try_wait().unwrap();
            assert!(ended.is_none(), "docker-registry ended: {}", self.log());
            let is_late = Instant::now() > deadline;
            assert!(!is_late, "docker-registry does not listen: {}", self.log());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for DockerRegistry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn yaml(folder: &Path, port: u16, setup: Setup) -> String {
    let folder = folder.display();
    let mut text = format!(
        "version: 0.1\nlog:\n  level: warn\nstorage:\n  filesystem:\n    rootdirectory: {folder}/data\n  \
         delete:\n    enabled: true\nhttp:\n  addr: 127.0.0.1:{port}\n"
    );
    if setup.tls {
        text += &format!(
            "  tls:\n    certificate: {folder}/server.pem\n    key: {folder}/server.key\n"
        );
        if setup.asks_clients {
            text += &format!("    clientcas:\n      - {folder}/ca.pem\n");
        }
    }
    if setup.password {
        text += &format!("auth:\n  htpasswd:\n    realm: test\n    path: {folder}/htpasswd\n");
    }
    // Manifests with foreign layers are refused unless their URLs are allowed.
    text += "validation:\n  manifests:\n    urls:\n      allow: ['.*']\n";
    text
}

fn make_htpasswd(folder: &Path) {
    let output = Command::new(component("htpasswd"))
        .args(["-nbB", "-C", "4", USER, PASSWORD])
        .output()
        .unwrap();
    assert!(output.status.success(), "htpasswd failed");
    fs::write(folder.join("htpasswd"), output.stdout).unwrap();
}

/// Arguments of `openssl req` for a key that is fast to create.
const NEW_KEY: &str = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";

fn openssl(folder: &Path, arguments: &str) {
    let output = Command::new(component("openssl"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "openssl {arguments}: {printed}");
}

/// Creates a CA (`ca.pem`) and a certificate of it (`server.pem`, `server.key`) for 127.0.0.1 and
/// some names.
pub fn certificates<'n>(folder: &Path, names: impl IntoIterator<Item = &'n str>) {
    let names = names.into_iter().map(|name| format!(",DNS:{name}"));
    let names: String = names.collect();
    let extensions = format!("subjectAltName=IP:127.0.0.1{names}\nbasicConstraints=CA:FALSE\n");
    fs::write(folder.join("names.cnf"), extensions).unwrap();
    let run = |arguments: &str| openssl(folder, arguments);
    run(&format!(
        "req -x509 {NEW_KEY} -keyout ca.key -out ca.pem -days 2 -subj /CN=throwaway"
    ));
    run(&format!(
        "req {NEW_KEY} -keyout server.key -out server.csr -subj /CN=registry"
    ));
    run(
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names.cnf -out server.pem",
    );
}
