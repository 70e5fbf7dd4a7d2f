//! Selection of the daemon: by a flag, Docker's environment variables, a Docker context, or the
//! platform's default. The order is that of Docker's CLI.
//!
//! In the folder of that, `contexts/meta/ID/meta.json` has the address of a context's daemon, and
//! `contexts/tls/ID/docker/*.pem` its TLS files; ID is the SHA-256 of the context's name.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use wincimg_cluster::builder::SCHEME;
use wincimg_cluster::live::ClusterContext;
use wincimg_common::diagnose::{Problem, closest_match};
use wincimg_common::is_loopback;
use wincimg_oci::document::sha256;
use wincimg_oci::remote::docker_folder;

use super::address::Address;
use super::error::{no_context, unusable};
use super::settings::{ConfigFile, DockerConfig, read_json};
use super::tls::{TlsFiles, TlsVerification};

/// A daemon's address, and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its address.
    pub address: Address,
    /// TLS files, if the connection is protected.
    pub tls: Option<TlsFiles>,
    /// Source of the address: a flag, a variable or a Docker context.
    pub(super) origin: String,
    /// Docker's configuration for it.
    pub settings: DockerConfig,
}

/// Source of the address, if the user selected no daemon.
pub(super) const PLATFORM: &str = "the platform's default";

/// Docker's environment variables.
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
    /// Reads the variables of this process.
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

    /// TLS files of a daemon that no context describes.
    fn tls_files(&self) -> Option<TlsFiles> {
        let trust = match (self.tls_verify, self.tls) {
            (true, _) => TlsVerification::Authority,
            (false, true) => TlsVerification::Anyone,
            (false, false) => return None,
        };
        let folder = self.certificates.as_ref().or(self.config.as_ref())?;
        Some(TlsFiles::in_folder(folder, trust))
    }

    fn daemon(&self, flag: Option<&str>) -> Result<(Address, Option<TlsFiles>, String), Problem> {
        let plain = |text: &str, origin: &str| {
            let (address, tls) = Address::read(text, self.tls_files())?;
            Ok((address, tls, origin.to_owned()))
        };
        if let Some(text) = flag {
            let is_builder = text.starts_with(&format!("{SCHEME}://"));
            let flag = if is_builder {
                "--builder"
            } else {
                "--docker-host"
            };
            return plain(text, flag);
        }
        if let Some(text) = &self.host {
            return plain(text, "DOCKER_HOST");
        }
        if let Some(folder) = &self.config {
            let chosen = match &self.context {
                Some(name) => Some(name.clone()),
                None => current_context(folder)?,
            };
            if let Some(name) = chosen.filter(|name| name != DEFAULT_CONTEXT) {
                let (address, tls) = read_context(folder, &name)?;
                return Ok((address, tls, format!("the Docker context {name:?}")));
            }
        }
        Ok((Address::platform_default(), None, PLATFORM.to_owned()))
    }
}

impl Endpoint {
    /// Selects the daemon. The flag precedes `DOCKER_HOST`, that `DOCKER_CONTEXT`, and that the
    /// context selected by `docker context use`.
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

    /// The same builder for one of these builds of Windows, in the cluster of a context; other
    /// daemons stay as they are.
    #[must_use]
    pub(super) fn for_builds(mut self, builds: &[u32], context: &ClusterContext) -> Self {
        if let Address::Builder(builder) = &mut self.address {
            builder.builds = builds.to_vec();
            builder.context = context.clone();
        }
        self
    }

    /// Returns true if the user selected this daemon.
    pub fn is_chosen(&self) -> bool {
        self.origin != PLATFORM
    }

    /// Returns true if other machines can read the connection.
    pub fn is_readable(&self) -> bool {
        match &self.address {
            Address::Tcp { host, .. } => self.tls.is_none() && !is_loopback(host),
            // The cluster's API is always protected.
            Address::Unix(_) | Address::Pipe(_) | Address::Builder(_) => false,
        }
    }

    /// Returns true if `localhost` is the same for the daemon, as far as its address shows. Behind
    /// a tunnel it is not, which cannot be detected.
    pub(crate) fn is_on_this_machine(&self) -> bool {
        match &self.address {
            Address::Tcp { host, .. } => is_loopback(host),
            Address::Unix(_) | Address::Pipe(_) => true,
            Address::Builder(_) => false,
        }
    }

    /// Returns true if the daemon's files are on this machine.
    pub fn is_local(&self) -> bool {
        matches!(self.address, Address::Unix(_) | Address::Pipe(_))
    }
}

/// The name that stands for no context.
const DEFAULT_CONTEXT: &str = "default";

/// Other programs write these files too, with `null` for empty values.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Meta {
    endpoints: Option<HashMap<String, Option<MetaEndpoint>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct MetaEndpoint {
    host: Option<String>,
    #[serde(rename = "SkipTLSVerify")]
    skip_tls_verify: Option<bool>,
}

/// The context selected by `docker context use`, if any.
fn current_context(folder: &Path) -> Result<Option<String>, Problem> {
    let chosen = ConfigFile::read(folder)?.current_context;
    Ok(chosen.filter(|name| !name.is_empty()))
}

/// Address and TLS files of a context's daemon.
fn read_context(folder: &Path, name: &str) -> Result<(Address, Option<TlsFiles>), Problem> {
    let contexts = folder.join("contexts");
    let digest = sha256(name.as_bytes());
    let id = digest.digest();
    let file = contexts.join("meta").join(id).join("meta.json");
    let meta: Meta = read_json(&file)?.ok_or_else(|| {
        let nearest = nearest_name(&contexts, name);
        no_context(name, &contexts, nearest.as_deref())
    })?;
    let mut endpoints = meta.endpoints.unwrap_or_default();
    let endpoint = endpoints.remove("docker").flatten();
    let endpoint = endpoint.ok_or_else(|| unusable(&file, &"it names no endpoint \"docker\""))?;
    let Some(host) = endpoint.host.filter(|host| !host.is_empty()) else {
        return Ok((Address::platform_default(), None));
    };
    let tls = tls_files(
        &contexts.join("tls").join(id).join("docker"),
        endpoint.skip_tls_verify.unwrap_or_default(),
    );
    Address::read(&host, tls)
}

fn nearest_name(contexts: &Path, typed: &str) -> Option<String> {
    let folders = std::fs::read_dir(contexts.join("meta")).ok()?;
    let names: Vec<String> = folders
        .filter_map(|folder| {
            let file = folder.ok()?.path().join("meta.json");
            let named: Option<Value> = read_json(&file).ok()?;
            Some(named?["Name"].as_str()?.to_owned())
        })
        .collect();
    closest_match(typed, names.iter().map(String::as_str))
}

/// A context without certificates is not protected, unless it skips verification.
fn tls_files(folder: &Path, skip_verify: bool) -> Option<TlsFiles> {
    let files = TlsFiles::in_folder(folder, TlsVerification::Anyone);
    let trust = match (files.authority.is_file(), skip_verify) {
        (_, true) => TlsVerification::Anyone,
        (true, false) => TlsVerification::Authority,
        (false, false) if files.identity.is_some() => TlsVerification::System,
        (false, false) => return None,
    };
    Some(TlsFiles { trust, ..files })
}
