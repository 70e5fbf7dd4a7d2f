//! Checks for failures that would come late in a build, before anything is sent; and the
//! registries that a daemon trusts without a verified certificate, by its own rules.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::path::Path;

use ipnet::IpNet;
use serde_json::json;
use wincimg_common::diagnose::{Blame, Problem};
use wincimg_common::is_loopback;
use wincimg_oci::remote::Protocol;
use wincimg_windows::compat::{CompatVerdict, Isolation, VerdictOutcome, check};
use wincimg_windows::version::WindowsVersion;

use super::api::{Info, RegistryConfig};
use super::daemon::Daemon;

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

/// Networks that every daemon trusts, so they are not listed.
const ALWAYS: [&str; 2] = ["127.0.0.0/8", "::1/128"];

impl RegistryConfig {
    /// Returns true if the daemon accepts plain HTTP or any certificate from a registry.
    pub(super) async fn trusts(&self, registry: &str) -> bool {
        if let Some(known) = self.registries.get(registry) {
            return !known.secure;
        }
        let host = host_of(registry);
        let addresses = match host.parse::<IpAddr>() {
            Ok(address) => vec![address],
            // The name itself counts if it cannot be resolved: the daemon may use another DNS
            // server.
            Err(_) => match tokio::net::lookup_host((host, 0)).await {
                Ok(found) => found.map(|address| address.ip()).collect(),
                Err(_) => Vec::new(),
            },
        };
        self.insecure_networks
            .iter()
            .any(|network| addresses.iter().any(|address| is_within(*address, network)))
    }

    /// The configuration that trusts a registry in addition to those trusted already, as a JSON
    /// document.
    pub(super) fn trusting(&self, registry: &str) -> String {
        let named = self.registries.iter();
        let named = named
            .filter(|(_, known)| !known.secure)
            .map(|(name, _)| name);
        let networks = self.insecure_networks.iter();
        let networks = networks.filter(|network| !ALWAYS.contains(&network.as_str()));
        let mut trusted: BTreeSet<&str> = named.chain(networks).map(String::as_str).collect();
        trusted.insert(registry);
        json!({ "insecure-registries": trusted }).to_string()
    }
}

/// Instructions for making a daemon trust a registry.
pub(super) fn trust_instructions(info: &Info, registry: &str) -> String {
    let (file, restart) = if info.is_windows() {
        (
            r"C:\ProgramData\docker\config\daemon.json",
            "Restart-Service docker",
        )
    } else {
        ("/etc/docker/daemon.json", "systemctl restart docker")
    };
    format!(
        "on the daemon's machine set {} in {file} (keep its other settings) and run `{restart}`",
        info.registry_config.trusting(registry)
    )
}

/// Rejects a registry on this machine if a daemon runs on another.
pub(crate) fn check_reachable(
    registry: &str,
    daemon: &str,
    is_on_this_machine: bool,
) -> Result<(), Problem> {
    if is_on_this_machine || !is_loopback(host_of(registry)) {
        return Ok(());
    }
    let problem = format!(
        "the registry {registry} is on this machine, but {daemon} would look for it on its own \
         machine"
    );
    Err(Problem::new("daemon/another-machine", problem).hint(
        "name the registry by this machine's name or address, as the daemon's machine reaches it",
    ))
}

fn host_of(registry: &str) -> &str {
    if let Some((address, _)) = registry
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        return address;
    }
    registry.split(':').next().unwrap_or(registry)
}

fn is_within(address: IpAddr, network: &str) -> bool {
    let network = network.parse::<IpNet>();
    network.is_ok_and(|network| network.contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(json: &str) -> RegistryConfig {
        serde_json::from_str(json).unwrap()
    }

    const KNOWN: &str = r#"{
        "InsecureRegistryCIDRs": ["127.0.0.0/8", "10.1.0.0/16", "fd00::/8", "::1/128"],
        "IndexConfigs": {
            "docker.io": {"Secure": true},
            "repo.lan:5000": {"Secure": false},
            "10.1.0.9:5000": {"Secure": true}
        }
    }"#;

    #[test]
    async fn trust_goes_by_name_first_and_by_address_then() {
        let config = config(KNOWN);
        for (registry, expected) in [
            ("repo.lan:5000", true),
            // The port is part of the name.
            ("repo.lan:5001", false),
            ("repo.lan", false),
            ("docker.io", false),
            ("127.0.0.1:5000", true),
            ("127.9.9.9", true),
            ("10.1.2.3:5000", true),
            ("10.2.2.3:5000", false),
            ("10.1.0.9:5000", false),
            ("[fd00::1]:5000", true),
            ("[fe80::1]:5000", false),
            ("[::1]:5000", true),
            ("localhost:5000", true),
            ("unknown.invalid:5000", false),
        ] {
            assert_eq!(config.trusts(registry).await, expected, "{registry}");
        }
    }

    #[test]
    fn networks_are_compared_by_their_bits() {
        let is_within = |address: &str, network| is_within(address.parse().unwrap(), network);
        assert!(is_within("1.2.3.4", "0.0.0.0/0"));
        assert!(is_within("1.2.3.4", "1.2.3.4/32"));
        assert!(!is_within("1.2.3.5", "1.2.3.4/32"));
        assert!(!is_within("1.2.3.4", "::/0"));
        assert!(is_within("::1", "::/0"));
        for broken in ["", "1.2.3.4", "1.2.3.4/33", "1.2.3.4/x", "x/8"] {
            assert!(!is_within("1.2.3.4", broken), "{broken}");
        }
    }

    #[test]
    fn a_remedy_keeps_what_is_trusted_already() {
        let info = Info {
            os_type: "windows".to_owned(),
            registry_config: config(KNOWN),
            ..Info::default()
        };
        assert_eq!(
            info.registry_config.trusting("repo.mylan.k8s:8888"),
            r#"{"insecure-registries":["10.1.0.0/16","fd00::/8","repo.lan:5000","repo.mylan.k8s:8888"]}"#
        );
        let remedy = trust_instructions(&info, "repo.mylan.k8s:8888");
        assert!(remedy.contains("Restart-Service docker"));
    }
}
