//! Checks the daemon of the docker engine. A daemon that the user did not name may be missing or
//! run other containers: the direct engine requires none.

use std::time::Duration;

use tokio::time::timeout;
use wincimg_common::diagnose::{Diagnose, error_chain};
use wincimg_engine::docker::{Daemon, DockerError, Endpoint, Info, Preflight};
use wincimg_oci::remote::Protocol;

use super::Check;
use crate::cli::image_source::DockerArgs;

const KIND: &str = "docker daemon";
const NOT_REQUIRED: &str = "--engine direct requires none unless the recipe has commands";

/// Checks the daemon, and that it trusts the reachable registries.
pub(super) async fn check(
    arguments: &DockerArgs,
    reached: &[(String, Protocol)],
    wait_limit: Duration,
) -> Vec<Check> {
    let endpoint = match arguments.endpoint() {
        Ok(endpoint) => endpoint,
        Err(error) => {
            let fix = error.diagnosis().hint;
            let fix = fix.unwrap_or_else(|| "correct or remove the file".to_owned());
            return vec![Check::problem(KIND, "unknown", error.to_string(), fix)];
        }
    };
    let subject = endpoint.address.to_string();
    let checking = async {
        let (daemon, info) = ask(endpoint.clone()).await?;
        Ok::<_, DockerError>(check_answer(&daemon, &info, &subject, reached).await)
    };
    match timeout(wait_limit, checking).await {
        Ok(Ok(checks)) => checks,
        Ok(Err(_)) | Err(_) if !endpoint.is_chosen() => {
            let finding = format!("not found; {NOT_REQUIRED}");
            vec![Check::skipped(KIND, &subject, finding)]
        }
        Err(_) => {
            let fix = "raise the limit with --timeout";
            vec![Check::problem(KIND, &subject, "no answer in time", fix)]
        }
        Ok(Err(error)) => {
            let fix = error.diagnosis().hint;
            let fix = fix.unwrap_or_else(|| format!("check that {subject} is a Docker daemon"));
            vec![Check::problem(KIND, &subject, error_chain(&error), fix)]
        }
    }
}

async fn ask(endpoint: Endpoint) -> Result<(Daemon, Info), DockerError> {
    let daemon = Daemon::connect(endpoint).await?;
    let info = daemon.info().await?;
    Ok((daemon, info))
}

async fn check_answer(
    daemon: &Daemon,
    info: &Info,
    subject: &str,
    reached: &[(String, Protocol)],
) -> Vec<Check> {
    let preflight = Preflight::new(daemon, info);
    if let Err(obstacle) = preflight.check_windows() {
        return vec![if daemon.endpoint().is_chosen() {
            refused(KIND, subject, &obstacle)
        } else {
            let finding = format!("runs {} containers; {NOT_REQUIRED}", info.os());
            Check::skipped(KIND, subject, finding)
        }];
    }
    let mut checks = vec![version(daemon, info, subject)];
    for (host, connection) in reached {
        checks.push(match preflight.check_registry(host, *connection).await {
            Ok(()) if *connection != Protocol::PlainHttp => continue,
            Ok(()) => Check::ok("docker trust", host, "the daemon trusts it over plain HTTP"),
            Err(obstacle) => refused("docker trust", host, &obstacle),
        });
    }
    checks
}

fn refused(kind: &'static str, subject: &str, obstacle: &dyn Diagnose) -> Check {
    let fix = obstacle.diagnosis().hint.unwrap_or_default();
    Check::problem(kind, subject, obstacle.to_string(), fix)
}

fn version(daemon: &Daemon, info: &Info, subject: &str) -> Check {
    let finding = |host: &str| {
        format!(
            "Docker {} (API {}) on {host}, {} isolation",
            info.server_version,
            daemon.api_version(),
            info.default_isolation().name()
        )
    };
    let product = &info.operating_system;
    match (info.host_version(), info.host_build()) {
        (Some(version), Some(_)) if version.revision.is_some() => {
            Check::ok(KIND, subject, finding(&format!("Windows {version}")))
        }
        (Some(_), None) => Check::problem(
            KIND,
            subject,
            finding(&format!(
                "{product:?}, which does not report whether it is Windows Server"
            )),
            "run `(Get-CimInstance Win32_OperatingSystem).Caption` there; if it is not Windows \
             Server, build with --isolation hyperv",
        ),
        (version, _) => Check::problem(
            KIND,
            subject,
            finding(&match version {
                Some(version) => format!(
                    "{product:?} (build {}), which does not report its revision",
                    version.build
                ),
                None => format!("{product:?}, which does not report its version"),
            }),
            "install a newer Docker there, so that bases can be checked against the host's version",
        ),
    }
}
