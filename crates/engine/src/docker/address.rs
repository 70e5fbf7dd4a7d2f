//! Addresses of daemons, as Docker writes them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use reqwest::Url;
use wincimg_cluster::builder::{BuilderName, SCHEME};
use wincimg_cluster::live::ClusterContext;
use wincimg_common::diagnose::Problem;
use wincimg_common::untrusted::without_password;

use super::error::invalid_address;
use super::tls::TlsFiles;
use crate::buildkit::BuildkitAddress;

/// Why a text is not a URL.
type ParseError = <Url as FromStr>::Err;

const BUILDKIT: &str = "BuildKit runs steps of Dockerfiles only";

/// Address of a daemon.
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
    /// A pod of a builder, in which Docker's client connects to the daemon.
    Builder(BuilderAddress),
}

/// Address of a builder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuilderAddress {
    pub(super) name: BuilderName,
    /// The builds of Windows that it may have, the best first.
    pub(super) builds: Vec<u32>,
    /// The kubeconfig's context, if it is not the current one.
    pub(super) context: ClusterContext,
}

impl Address {
    /// Default address of the platform's daemon.
    pub(super) fn platform_default() -> Self {
        if cfg!(windows) {
            Self::default_pipe()
        } else {
            Self::Unix(Path::new("/var/run/docker.sock").to_owned())
        }
    }

    fn default_pipe() -> Self {
        Self::Pipe(r"\\.\pipe\docker_engine".to_owned())
    }

    /// Parses an address, with the TLS files of the connection: only TCP can be protected, and
    /// `https` always is.
    pub(super) fn read(
        text: &str,
        tls: Option<TlsFiles>,
    ) -> Result<(Self, Option<TlsFiles>), Problem> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("tcp", text));
        // The user of SSH is not a secret, and the hint repeats it.
        let shown = match rest.split_once('@') {
            Some((user, _)) if scheme == "ssh" && !user.contains(':') => text.into(),
            _ => without_password(text),
        };
        let failed = |problem: &str| invalid_address(&shown, problem);
        match scheme {
            "unix" if rest.is_empty() => Err(failed("the path is missing")),
            "unix" => Ok((Self::Unix(PathBuf::from(rest)), None)),
            // `daemon.json` has it like this too.
            "npipe" if rest.is_empty() => Ok((Self::default_pipe(), None)),
            "npipe" => Ok((Self::Pipe(rest.replace('/', r"\")), None)),
            "https" if tls.is_none() => Err(failed("https requires DOCKER_TLS_VERIFY=1")),
            "tcp" | "http" | "https" => {
                let tls = tls.filter(|_| scheme != "http");
                let default = if tls.is_some() { 2376 } else { 2375 };
                let (host, port) = host_and_port(rest).map_err(failed)?;
                let port = port.unwrap_or(default);
                Ok((Self::Tcp { host, port }, tls))
            }
            SCHEME => {
                let name = rest.parse();
                let name = name.map_err(|_| failed("expected kube://NAMESPACE/NAME"))?;
                let builder = BuilderAddress {
                    name,
                    builds: Vec::new(),
                    context: ClusterContext::default(),
                };
                Ok((Self::Builder(builder), None))
            }
            _ if BuildkitAddress::is_meant(text) => Err(failed(BUILDKIT)),
            "ssh" => Err(failed("SSH is not supported")),
            _ => Err(failed("unknown scheme")),
        }
    }
}

fn host_and_port(text: &str) -> Result<(String, Option<u16>), &'static str> {
    const MISSING: &str = "the host is missing";
    if text.contains('@') {
        return Err("a daemon's address cannot have a user and a password");
    }
    if text.trim_end_matches('/').contains(['/', '?', '#']) {
        return Err("a path after the port is not supported");
    }
    let url = Url::parse(&format!("tcp://{text}")).map_err(|error| match error {
        ParseError::EmptyHost => MISSING,
        ParseError::InvalidPort => "invalid port",
        _ => "invalid host",
    })?;
    let host = url.host_str().filter(|host| !host.is_empty());
    let host = host.ok_or(MISSING)?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    Ok((host.to_owned(), url.port()))
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Pipe(path) => write!(f, "npipe://{}", path.replace('\\', "/")),
            Self::Tcp { host, port } if host.contains(':') => write!(f, "tcp://[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "tcp://{host}:{port}"),
            Self::Builder(builder) => builder.name.fmt(f),
        }
    }
}
