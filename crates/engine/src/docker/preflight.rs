//! What would make a build fail late, asked before anything is sent.

use std::path::{Path, PathBuf};

use wincimg_common::diagnose::Diagnose;
use wincimg_oci::remote::Connection;
use wincimg_windows::compat::{Isolation, Outcome, Verdict, judge};
use wincimg_windows::version::WindowsVersion;

use super::api::Info;
use super::daemon::Daemon;
use super::endpoint::is_loopback;
use super::trust::{Remedy, host_of};

/// Why a daemon need not even begin.
#[derive(Debug, thiserror::Error, Diagnose)]
pub enum Obstacle {
    /// It makes other containers.
    #[error("the Docker daemon at {daemon} makes {os} containers: expected windows")]
    #[diagnose(
        code = "windows/needed",
        hint = "name a daemon on Windows with --docker-host, or build with --engine direct, which needs none unless the recipe has commands; Docker Desktop changes over with `DockerCli.exe -SwitchDaemon`"
    )]
    NotWindows {
        /// Where it is.
        daemon: String,
        /// What it makes.
        os: String,
    },
    /// Its machine does not run the base.
    #[error("the Docker daemon at {daemon} cannot run the base: {reason}")]
    #[diagnose(code = "daemon/cannot-run", hint = Some(other_host(*hyperv_would).to_owned()))]
    CannotRun {
        /// Where it is.
        daemon: String,
        /// Why not.
        reason: String,
        /// Whether it could under Hyper-V isolation.
        hyperv_would: bool,
    },
    /// It would not speak with a registry.
    #[error(
        "the Docker daemon at {daemon} does not trust the registry {registry}, which is plain HTTP"
    )]
    #[diagnose(code = "daemon/registry-not-trusted", hint = Some(remedy.to_string()))]
    NotTrusted {
        /// Where it is.
        daemon: String,
        /// The registry.
        registry: String,
        /// What to do.
        remedy: Remedy,
    },
    /// What it would speak with is another registry.
    #[error(
        "the registry {registry} is on this machine, and the Docker daemon at {daemon} would look for it on its own"
    )]
    #[diagnose(
        code = "daemon/another-machine",
        hint = "name the registry as the daemon's machine reaches it, by this machine's name or address"
    )]
    AnotherMachine {
        /// Where it is.
        daemon: String,
        /// The registry.
        registry: String,
    },
    /// There is no room.
    #[error(
        "{} has {} MiB free, and the build needs about {} MiB",
        folder.display(),
        free >> 20,
        needed >> 20
    )]
    #[diagnose(
        code = "daemon/disk-full",
        hint = "make room, for example with `docker system prune`"
    )]
    Disk {
        /// Where images are kept.
        folder: PathBuf,
        /// Bytes that are free.
        free: u64,
        /// Bytes that are needed.
        needed: u64,
    },
}

fn other_host(hyperv_would: bool) -> &'static str {
    if hyperv_would {
        "add --isolation hyperv, or build on a host of the base's version"
    } else {
        "build on a host that is not older than the base"
    }
}

/// A daemon with what it says of itself.
#[derive(Debug)]
pub struct Preflight<'a> {
    daemon: &'a Daemon,
    info: &'a Info,
}

impl<'a> Preflight<'a> {
    /// Takes a daemon with its own answer to what it is.
    pub fn new(daemon: &'a Daemon, info: &'a Info) -> Self {
        Self { daemon, info }
    }

    fn daemon(&self) -> String {
        self.daemon.endpoint().address.to_string()
    }

    /// Whether it makes Windows containers.
    pub fn windows(&self) -> Result<(), Obstacle> {
        if self.info.is_windows() {
            return Ok(());
        }
        Err(Obstacle::NotWindows {
            daemon: self.daemon(),
            os: self.info.os().to_owned(),
        })
    }

    /// Whether steps on a base can run there. The verdict may be that nobody can tell.
    pub fn base(
        &self,
        base: WindowsVersion,
        isolation: Option<Isolation>,
    ) -> Result<Verdict, Obstacle> {
        let host = self.info.host_build();
        let isolation = isolation.unwrap_or_else(|| self.info.default_isolation());
        let verdict = judge(host, Some(base), isolation);
        if verdict.outcome != Outcome::Incompatible {
            return Ok(verdict);
        }
        let under_hyperv = judge(host, Some(base), Isolation::HyperV);
        Err(Obstacle::CannotRun {
            daemon: self.daemon(),
            reason: verdict.reason(),
            hyperv_would: isolation != Isolation::HyperV && under_hyperv.starts(),
        })
    }

    /// Whether it would speak with a registry that was reached like this. Certificates are the
    /// daemon's own business: it may have a CA that this machine has not.
    pub async fn registry(&self, registry: &str, reached: Connection) -> Result<(), Obstacle> {
        if is_loopback(host_of(registry)) && !self.daemon.endpoint().is_on_this_machine() {
            return Err(Obstacle::AnotherMachine {
                daemon: self.daemon(),
                registry: registry.to_owned(),
            });
        }
        let config = &self.info.registry_config;
        if reached != Connection::PlainHttp || config.trusts(registry).await {
            return Ok(());
        }
        Err(Obstacle::NotTrusted {
            daemon: self.daemon(),
            registry: registry.to_owned(),
            remedy: Remedy::new(self.info, registry),
        })
    }

    /// Whether there is room where the daemon keeps images, which only a daemon on this machine
    /// lets anybody find out.
    pub fn disk(&self, needed: u64) -> Result<(), Obstacle> {
        let folder = Path::new(&self.info.docker_root_dir);
        if !self.daemon.endpoint().is_local() || !folder.is_dir() {
            return Ok(());
        }
        match fs4::available_space(folder) {
            Ok(free) if free < needed => Err(Obstacle::Disk {
                folder: folder.to_owned(),
                free,
                needed,
            }),
            _ => Ok(()),
        }
    }
}
