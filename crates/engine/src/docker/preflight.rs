//! Checks for failures that would come late in a build, before anything is sent.

use std::path::Path;

use wincimg_common::diagnose::{Blame, Problem};
use wincimg_oci::remote::Protocol;
use wincimg_windows::compat::{CompatVerdict, Isolation, VerdictOutcome, check};
use wincimg_windows::version::WindowsVersion;

use super::api::Info;
use super::daemon::Daemon;
use super::trust::{check_reachable, trust_instructions};

/// A daemon with its system information.
#[derive(Debug)]
pub struct Preflight<'a> {
    daemon: &'a Daemon,
    info: &'a Info,
}

impl<'a> Preflight<'a> {
    /// Preflight checks of a daemon with this system information.
    pub fn new(daemon: &'a Daemon, info: &'a Info) -> Self {
        Self { daemon, info }
    }

    fn daemon(&self) -> String {
        self.daemon.endpoint().address.to_string()
    }

    /// Checks that it runs Windows containers.
    pub fn check_windows(&self) -> Result<(), Problem> {
        if self.info.is_windows() {
            return Ok(());
        }
        let (daemon, os) = (self.daemon(), self.info.os());
        let problem =
            format!("the Docker daemon at {daemon} runs {os} containers: expected windows");
        Err(Problem::new("windows/needed", problem)
            .blame(Blame::Windows)
            .hint(
                "name a daemon on Windows with --docker-host; to switch Docker Desktop to Windows \
                 containers: `DockerCli.exe -SwitchDaemon`",
            ))
    }

    /// Checks that steps on a base can run there. Passes with the verdict if that is unknown.
    pub fn check_base(
        &self,
        base: WindowsVersion,
        isolation: Option<Isolation>,
    ) -> Result<CompatVerdict, Problem> {
        let host = self.info.host_build();
        let isolation = isolation.unwrap_or_else(|| self.info.default_isolation());
        let verdict = check(host, Some(base), isolation);
        if verdict.outcome != VerdictOutcome::Incompatible {
            return Ok(verdict);
        }
        let under_hyperv = check(host, Some(base), Isolation::HyperV);
        let (daemon, reason) = (self.daemon(), verdict.reason());
        let problem = format!("the Docker daemon at {daemon} cannot run the base: {reason}");
        let hint = if isolation != Isolation::HyperV && under_hyperv.is_startable() {
            "add --isolation hyperv, or build on a host of the base's version"
        } else {
            "build on a host that is not older than the base"
        };
        Err(Problem::new("daemon/cannot-run", problem).hint(hint))
    }

    /// Checks that the daemon would connect to a registry like this machine did. Certificates are
    /// not checked: the daemon may trust another CA.
    pub async fn check_registry(&self, registry: &str, reached: Protocol) -> Result<(), Problem> {
        let daemon = format!("the Docker daemon at {}", self.daemon());
        check_reachable(registry, &daemon, self.daemon.is_on_this_machine())?;
        let config = &self.info.registry_config;
        if reached != Protocol::PlainHttp || config.trusts(registry).await {
            return Ok(());
        }
        let problem =
            format!("{daemon} does not trust the registry {registry}, which is plain HTTP");
        let remedy = if self.daemon.builder().is_some() {
            format!(
                "apply the output of `wincimg node builder --kube --image IMAGE \
                 --insecure-registry {registry}`"
            )
        } else {
            trust_instructions(self.info, registry)
        };
        Err(Problem::new("daemon/registry-not-trusted", problem).hint(remedy))
    }

    /// Checks the free space in the daemon's folder of images, if the daemon is on this machine.
    pub(crate) fn check_disk(&self, needed: u64) -> Result<(), Problem> {
        let folder = Path::new(&self.info.docker_root_dir);
        if !self.daemon.endpoint().is_local() || !folder.is_dir() {
            return Ok(());
        }
        match fs4::available_space(folder) {
            Ok(free) if free < needed => {
                let (folder, free, needed) = (folder.display(), free >> 20, needed >> 20);
                let problem =
                    format!("{folder} has {free} MiB free, but the build needs about {needed} MiB");
                Err(Problem::new("daemon/disk-full", problem)
                    .hint("free disk space, for example with `docker system prune`"))
            }
            _ => Ok(()),
        }
    }
}
