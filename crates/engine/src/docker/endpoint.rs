//! Which daemon is meant: by a flag, by Docker's environment variables, by a Docker context, or the
//! platform's own. The order is that of Docker's command line.

use std::ffi::OsString;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use wincimg_common::diagnose::Problem;
use wincimg_oci::remote::docker_folder;

use super::address::Address;
use super::contexts;
use super::settings::DockerConfig;
use super::tls::{TlsFiles, TlsVerification};

/// A daemon to be spoken to, and who named it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Where it listens.
    pub address: Address,
    /// How the connection is protected, where it is.
    pub tls: Option<TlsFiles>,
    /// Who named it.
    pub origin: EndpointSource,
    /// What Docker's configuration has for it.
    pub settings: DockerConfig,
}

/// Who named a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndpointSource {
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
    /// True if `DOCKER_TLS_VERIFY` is set.
    pub(crate) tls_verify: bool,
    /// True if `DOCKER_TLS` is set.
    pub tls: bool,
}

impl Environment {
    /// What the variables of this process say.
    pub fn from_env() -> Self {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let text = |name| variable(name).and_then(|value| OsString::into_string(value).ok());
        Self {
            host: text("DOCKER_HOST"),
            context: text("DOCKER_CONTEXT"),
            config: docker_folder(),
            certificates: variable("DOCKER_CERT_PATH").map(PathBuf::from),
            tls_verify: variable("DOCKER_TLS_VERIFY").is_some(),
            tls: variable("DOCKER_TLS").is_some(),
        }
    }

    /// Where `ca.pem`, `cert.pem` and `key.pem` are for a daemon that no context describes.
    fn tls_files(&self) -> Option<TlsFiles> {
        let trust = match (self.tls_verify, self.tls) {
            (true, _) => TlsVerification::Authority,
            (false, true) => TlsVerification::Anyone,
            (false, false) => return None,
        };
        let folder = self.certificates.as_ref().or(self.config.as_ref())?;
        Some(TlsFiles::in_folder(folder, trust))
    }
}

/// Where a daemon is, how it is trusted, and who said so.
type EndpointChoice = (Address, Option<TlsFiles>, EndpointSource);

impl Environment {
    fn daemon(&self, flag: Option<&str>) -> Result<EndpointChoice, Problem> {
        let plain = |text: &str, origin| {
            let (address, tls) = Address::read(text, self.tls_files())?;
            Ok((address, tls, origin))
        };
        if let Some(text) = flag {
            return plain(text, EndpointSource::Flag);
        }
        if let Some(text) = &self.host {
            return plain(text, EndpointSource::Variable);
        }
        if let Some(folder) = &self.config {
            let chosen = match &self.context {
                Some(name) => Some(name.clone()),
                None => contexts::current(folder)?,
            };
            if let Some(name) = chosen.filter(|name| name != contexts::DEFAULT) {
                let (address, tls) = contexts::read(folder, &name)?;
                return Ok((address, tls, EndpointSource::Context(name)));
            }
        }
        Ok((Address::platform_default(), None, EndpointSource::Platform))
    }
}

impl Endpoint {
    /// The daemon that is meant. A flag comes before `DOCKER_HOST`, that before `DOCKER_CONTEXT`,
    /// that before the context chosen with `docker context use`.
    pub fn find(flag: Option<&str>, environment: &Environment) -> Result<Self, Problem> {
        let (address, tls, origin) = environment.daemon(flag)?;
        let settings = match &environment.config {
            Some(folder) => DockerConfig::read(folder, &address.to_string())?,
            None => DockerConfig::default(),
        };
        Ok(Self {
            address,
            tls,
            origin,
            settings,
        })
    }

    /// Returns true if somebody asked for this daemon.
    pub fn is_chosen(&self) -> bool {
        self.origin != EndpointSource::Platform
    }

    /// Returns true if what is sent can be read on the way by other machines.
    pub fn is_readable(&self) -> bool {
        match &self.address {
            Address::Tcp { host, .. } => self.tls.is_none() && !is_loopback(host),
            Address::Unix(_) | Address::Pipe(_) => false,
        }
    }

    /// Returns true if `localhost` means the same to the daemon, as far as its address says. Behind
    /// a tunnel it does not, which nobody can see from here.
    pub(crate) fn is_on_this_machine(&self) -> bool {
        match &self.address {
            Address::Tcp { host, .. } => is_loopback(host),
            Address::Unix(_) | Address::Pipe(_) => true,
        }
    }

    /// Returns true if the daemon's files are files of this machine.
    pub fn is_local(&self) -> bool {
        matches!(self.address, Address::Unix(_) | Address::Pipe(_))
    }
}

pub(super) fn is_loopback(host: &str) -> bool {
    host == "localhost"
        || host
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

impl fmt::Display for EndpointSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("--docker-host"),
            Self::Variable => f.write_str("DOCKER_HOST"),
            Self::Context(name) => write!(f, "the Docker context {name:?}"),
            Self::Platform => f.write_str("the platform's default"),
        }
    }
}
