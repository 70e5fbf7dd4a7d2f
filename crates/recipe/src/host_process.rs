//! Features that an image without Windows cannot have.

use wincimg_common::diagnose::Problem;
use wincimg_images::shim;

use super::Plan;

impl Plan {
    /// Rejects a plan that requires Windows on a base without it.
    pub fn check_base(&self) -> Result<(), Problem> {
        let refused = |what: &str, reason: &str| {
            let problem =
                format!("{what} cannot be in an image for HostProcess containers: {reason}");
            Err(Problem::request("base/no-windows", problem)
                .hint("remove it, or build on a base with Windows, such as nanoserver"))
        };
        if self.base.os_version.is_some() {
            return Ok(());
        }
        if self.shutdown_timeout.is_some() {
            return refused(
                "shutdown_timeout",
                "it is two registry values, and the container uses the host's registry",
            );
        }
        if !self.certificates.is_empty() {
            return refused(
                "certificates",
                "they are registry values, and the container uses the host's registry",
            );
        }
        if !self.services.is_empty() {
            return refused("services", "the host's services run instead");
        }
        if self.path.is_some() {
            return refused("path", "the container has the host's PATH");
        }
        let in_layers = self.instruction_layers().flat_map(|layer| &layer.registry);
        if let Some(edit) = self.registry.iter().chain(in_layers).next() {
            return refused(
                &format!("the registry change \"{edit}\""),
                "the container uses the host's registry, and Windows rejects changes to hives without content",
            );
        }
        if self.iis.is_some() || self.requires_server_config() {
            return refused("iis", "the image has no IIS");
        }
        if !self.steps.is_empty() {
            return refused("run", "the image has no Windows to run commands");
        }
        let container = self.container();
        let entrypoint = container.entrypoint.unwrap_or_default();
        let cmd = container.cmd.unwrap_or_default();
        let shim = shim::detect(&entrypoint, &cmd, &container.env);
        let asks_registry = shim
            .and_then(|shim| shim.settings)
            .is_some_and(|settings| settings.stop_timeout.is_none());
        if asks_registry {
            return refused(
                "the shim without --stop-timeout",
                "it reads the timeout from the registry, and the container uses the host's",
            );
        }
        Ok(())
    }

    /// A warning if its user is an account that a HostProcess container does not have.
    pub fn user_warning(&self) -> Option<String> {
        if self.base.os_version.is_some() {
            return None;
        }
        let user = self.container().user?;
        let name = user.rsplit('\\').next()?;
        let mut of_containers = ["ContainerUser", "ContainerAdministrator"].iter();
        let is_missing = of_containers.any(|account| name.eq_ignore_ascii_case(account));
        is_missing.then(|| {
            format!(
                r"hosts have no user {user}: HostProcess containers run as NT AUTHORITY\SYSTEM, NT AUTHORITY\LocalService, NT AUTHORITY\NetworkService or a local group of the host; change user, or set runAsUserName in each pod"
            )
        })
    }
}
