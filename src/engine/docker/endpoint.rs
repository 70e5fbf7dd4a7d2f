//! Which daemon is meant: by a flag, by Docker's environment variables, by a Docker context, or the
//! platform's own. The order is that of Docker's command line.

use std::ffi::OsString;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use reqwest::Url;

use super::contexts;
use super::tls::{TlsFiles, Trust};

use crate::diagnose::{Blame, Diagnose};

/// Where a daemon listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// A Unix domain socket.
    Unix(PathBuf),
    /// A named pipe of Windows.
    Pipe(String),
    /// A TCP port.
    Tcp {
        /// A name or an address.
        host: String,
        /// The port.
        port: u16,
    },
}

/// A daemon to be spoken to, and who named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Where it listens.
    pub address: Address,
    /// How the connection is protected, where it is.
    pub tls: Option<TlsFiles>,
    /// Who named it.
    pub origin: Origin,
}

/// Who named a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// `--docker-host`.
    Flag,
    /// `DOCKER_HOST`.
    Variable,
    /// A Docker context.
    Context(String),
    /// Nobody: it is where the platform has its daemon.
    Platform,
}

/// What Docker's environment variables say.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// `DOCKER_HOST`.
    pub host: Option<String>,
    /// `DOCKER_CONTEXT`.
    pub context: Option<String>,
    /// `DOCKER_CONFIG`, or `.docker` in the home directory.
    pub config: Option<PathBuf>,
    /// `DOCKER_CERT_PATH`.
    pub certificates: Option<PathBuf>,
    /// Whether `DOCKER_TLS_VERIFY` is set.
    pub tls_verify: bool,
    /// Whether `DOCKER_TLS` is set.
    pub tls: bool,
}

/// Why no daemon could be told.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// An address of a kind that is not known.
    #[error("{text:?} is no address of a Docker daemon: {problem}")]
    Address {
        /// What was given.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A context that is not there.
    #[error("there is no Docker context {name:?} in {}", folder.display())]
    NoContext {
        /// Its name.
        name: String,
        /// Where it was looked for.
        folder: PathBuf,
    },
    /// A file of Docker's that could not be used.
    #[error("cannot use {}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl Diagnose for EndpointError {
    fn hint(&self) -> Option<String> {
        self.hint()
    }

    fn blame(&self) -> Blame {
        match self {
            Self::Address { .. } | Self::NoContext { .. } => Blame::Request,
            Self::File { .. } => Blame::Circumstances,
        }
    }
}

impl EndpointError {
    /// What to type next, where there is something.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Address { text, .. } if text.starts_with("ssh://") => Some(
                "open a tunnel, as in `ssh -NL 2375:127.0.0.1:2375 HOST`, and give --docker-host \
                 tcp://127.0.0.1:2375"
                    .to_owned(),
            ),
            Self::Address { .. } => Some(
                "expected unix:///var/run/docker.sock, npipe:////./pipe/docker_engine or \
                 tcp://HOST:PORT"
                    .to_owned(),
            ),
            Self::NoContext { .. } => Some("`docker context ls` lists them".to_owned()),
            Self::File { .. } => None,
        }
    }
}

impl Environment {
    /// What the variables of this process say.
    pub fn of_process() -> Self {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let text = |name| variable(name).and_then(|value| OsString::into_string(value).ok());
        Self {
            host: text("DOCKER_HOST"),
            context: text("DOCKER_CONTEXT"),
            config: variable("DOCKER_CONFIG")
                .map(PathBuf::from)
                .or_else(|| Some(std::env::home_dir()?.join(".docker"))),
            certificates: variable("DOCKER_CERT_PATH").map(PathBuf::from),
            tls_verify: variable("DOCKER_TLS_VERIFY").is_some(),
            tls: variable("DOCKER_TLS").is_some(),
        }
    }

    /// Where `ca.pem`, `cert.pem` and `key.pem` are for a daemon that no context describes.
    fn tls_files(&self) -> Option<TlsFiles> {
        let trust = match (self.tls_verify, self.tls) {
            (true, _) => Trust::Authority,
            (false, true) => Trust::Anyone,
            (false, false) => return None,
        };
        let folder = self.certificates.as_ref().or(self.config.as_ref())?;
        Some(TlsFiles::in_folder(folder, trust))
    }
}

impl Endpoint {
    /// The daemon that is meant. A flag comes before `DOCKER_HOST`, that before `DOCKER_CONTEXT`,
    /// that before the context chosen with `docker context use`.
    pub fn find(flag: Option<&str>, environment: &Environment) -> Result<Self, EndpointError> {
        if let Some(text) = flag {
            return Self::plain(text, environment, Origin::Flag);
        }
        if let Some(text) = &environment.host {
            return Self::plain(text, environment, Origin::Variable);
        }
        if let Some(folder) = &environment.config {
            let chosen = match &environment.context {
                Some(name) => Some(name.clone()),
                None => contexts::current(folder)?,
            };
            if let Some(name) = chosen.filter(|name| name != contexts::DEFAULT) {
                return contexts::read(folder, &name);
            }
        }
        Ok(Self {
            address: Address::of_platform(),
            tls: None,
            origin: Origin::Platform,
        })
    }

    fn plain(text: &str, environment: &Environment, origin: Origin) -> Result<Self, EndpointError> {
        let tls = environment.tls_files();
        let (address, tls) = Address::read(text, tls)?;
        Ok(Self {
            address,
            tls,
            origin,
        })
    }

    /// Whether somebody asked for this daemon.
    pub fn is_chosen(&self) -> bool {
        self.origin != Origin::Platform
    }

    /// Whether what is sent can be read on the way by other machines.
    pub fn is_readable(&self) -> bool {
        match &self.address {
            Address::Tcp { host, .. } => self.tls.is_none() && !is_loopback(host),
            Address::Unix(_) | Address::Pipe(_) => false,
        }
    }

    /// Whether the daemon's files are files of this machine.
    pub fn is_local(&self) -> bool {
        matches!(self.address, Address::Unix(_) | Address::Pipe(_))
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

impl Address {
    /// Where the platform's daemon listens.
    pub(super) fn of_platform() -> Self {
        if cfg!(windows) {
            Self::Pipe(r"\\.\pipe\docker_engine".to_owned())
        } else {
            Self::Unix(Path::new("/var/run/docker.sock").to_owned())
        }
    }

    /// Reads an address, with what protects a connection there: only TCP can be protected, and
    /// `https` always is.
    pub(super) fn read(
        text: &str,
        tls: Option<TlsFiles>,
    ) -> Result<(Self, Option<TlsFiles>), EndpointError> {
        let failed = |problem| EndpointError::Address {
            text: text.to_owned(),
            problem,
        };
        let (scheme, rest) = text.split_once("://").unwrap_or(("tcp", text));
        match scheme {
            "unix" | "npipe" if rest.is_empty() => Err(failed("it has no path")),
            "unix" => Ok((Self::Unix(PathBuf::from(rest)), None)),
            "npipe" => Ok((Self::Pipe(rest.replace('/', r"\")), None)),
            "https" if tls.is_none() => Err(failed("DOCKER_TLS_VERIFY=1 says how to trust it")),
            "tcp" | "http" | "https" => {
                let tls = tls.filter(|_| scheme != "http");
                let default = if tls.is_some() { 2376 } else { 2375 };
                let (host, port) = host_and_port(rest).ok_or_else(|| failed("it has no host"))?;
                let port = port.unwrap_or(default);
                Ok((Self::Tcp { host, port }, tls))
            }
            "ssh" => Err(failed("connections over SSH are not made here")),
            _ => Err(failed("its scheme is not known")),
        }
    }
}

fn host_and_port(text: &str) -> Option<(String, Option<u16>)> {
    let url = Url::parse(&format!("tcp://{text}")).ok()?;
    let plain = url.username().is_empty() && url.query().is_none() && url.fragment().is_none();
    if !plain || !matches!(url.path(), "" | "/") {
        return None;
    }
    let host = url.host_str().filter(|host| !host.is_empty())?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Some((host.to_owned(), url.port()))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Pipe(path) => write!(f, "npipe://{}", path.replace('\\', "/")),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "tcp://[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "tcp://{host}:{port}"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("--docker-host"),
            Self::Variable => f.write_str("DOCKER_HOST"),
            Self::Context(name) => write!(f, "the Docker context {name:?}"),
            Self::Platform => f.write_str("the platform's default"),
        }
    }
}
