//! `wincimg doctor`: checks what the other commands require, and prints a fix for each problem.

mod catalog;
mod daemon;
mod programs;
mod push;

use std::time::Instant;

use futures_util::future::join_all;
use wincimg_common::Named;
use wincimg_common::diagnose::Diagnose;
use wincimg_http::CertificateFiles;
use wincimg_inspect::bases::{BaseRegistry, BaseRepository, ResolveError};
use wincimg_oci::remote::{AuthScheme, Ping, Protocol, RegistryError};

use self::catalog::CatalogArg;
use super::argument_passwords::redact;
use super::error::label;
use super::image_source::DockerArgs;
use super::updates;
use crate::cli::prelude::*;

/// Check registries, credentials, Docker, catalog and programs
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    wincimg doctor --registry repo.mylan.k8s:8888\n  \
    wincimg doctor --registry repo.mylan.k8s:8888/apps/trial --push\n  \
    wincimg doctor --docker-host tcp://build01:2376 \\\n      \
    --registry repo.mylan.k8s:8888\n  \
    wincimg doctor --base-registry repo.mylan.k8s:9999/mcr.microsoft.com \\\n      \
    --insecure-registry repo.mylan.k8s:9999\n\n\
    Exit code 0: no problem found. 1: at least one problem; each has a fix.")]
pub(super) struct Doctor {
    /// Registry that images are pushed to (repeatable)
    #[arg(
        long = "registry",
        value_name = "HOST[/PREFIX]",
        help_heading = "Registry options"
    )]
    registries: Vec<RegistryPrefix>,
    /// Test a push to the repository in --registry, and delete the pushed data
    #[arg(long, requires = "registries", help_heading = "Registry options")]
    push: bool,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
    #[command(flatten)]
    catalog: CatalogArg,
    #[command(flatten)]
    connection: BaseRegistryArgs,
    #[command(flatten)]
    docker: DockerArgs,
}

const BASES: &str = "base images";

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    /// Kind of the check: "registry", "credentials", …
    #[serde(rename = "check")]
    kind: &'static str,
    subject: String,
    state: CheckState,
    finding: String,
    /// Fix, if it is a problem.
    fix: Option<String>,
}

/// Status of one check; the words are part of the JSON interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Named)]
#[serde(rename_all = "lowercase")]
enum CheckState {
    Ok,
    /// Not checked, or not required.
    Skipped,
    Problem,
}

impl CheckState {
    fn colour(self) -> &'static str {
        match self {
            Self::Ok => "32",
            Self::Skipped => "33",
            Self::Problem => "31",
        }
    }
}

impl Check {
    fn ok(kind: &'static str, subject: &str, finding: impl Into<String>) -> Self {
        Self::new(kind, subject, CheckState::Ok, finding)
    }

    fn skipped(kind: &'static str, subject: &str, finding: impl Into<String>) -> Self {
        Self::new(kind, subject, CheckState::Skipped, finding)
    }

    fn problem(
        kind: &'static str,
        subject: &str,
        finding: impl Into<String>,
        fix: impl Into<String>,
    ) -> Self {
        let fix = fix.into();
        #[cfg(debug_assertions)]
        super::hint_check::check(&fix, std::iter::empty());
        Self {
            fix: Some(redact(&fix).into_owned()),
            ..Self::new(kind, subject, CheckState::Problem, finding)
        }
    }

    fn new(
        kind: &'static str,
        subject: &str,
        state: CheckState,
        finding: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            subject: subject.to_owned(),
            state,
            finding: redact(&finding.into()).into_owned(),
            fix: None,
        }
    }

    fn is_problem(&self) -> bool {
        self.state == CheckState::Problem
    }
}

impl Doctor {
    pub(super) fn run(self, session: &Session) -> Result<CommandOutcome> {
        let connection = &self.connection.registry;
        let registry = connection.connect_with_short_timeout()?;
        let certificates = connection.certificates.files()?;
        let pushed_to = self.pushed_to()?;
        let trial = connection.connect_for_test_push(push::PIECE)?;
        let checks = registry_args::run(async {
            let mut checks = self.check_all(&registry, certificates).await;
            for reference in &pushed_to {
                // An unreachable registry is already reported.
                let host = reference.registry();
                let unreached = |check: &Check| {
                    let about = matches!(check.kind, "registry" | "credentials");
                    about && check.subject == host && check.is_problem()
                };
                if checks.iter().any(unreached) {
                    let subject = reference.repository();
                    let subject = format!("{host}/{subject}");
                    checks.push(Check::skipped("push", &subject, not_reached(host)));
                } else {
                    checks.extend(push::check(&trial, reference).await);
                }
            }
            checks.extend(programs::check());
            checks.push(updates_table(session));
            Ok(checks)
        })?;
        let ok = !checks.iter().any(Check::is_problem);
        let answer = || json!({"ok": ok, "checks": checks});
        self.format.print(answer, |out| {
            write_text(&checks, colour_on(&io::stdout()), out)
        })?;
        Ok(ok.into())
    }

    async fn check_all(
        &self,
        registry: &RegistryClient,
        certificates: CertificateFiles,
    ) -> Vec<Check> {
        let base = &self.connection.base_registry;
        let (started, wait_limit) = (Instant::now(), self.connection.registry.short_timeout());
        let hosts = self.hosts().into_iter().map(|host| async move {
            let (mut checks, connection) = check_host(registry, &host).await;
            if host == base.0.host() {
                checks.extend(match connection {
                    Some(_) => check_base(registry, base).await,
                    None => {
                        let subject = base.to_string();
                        Some(Check::skipped(BASES, &subject, not_reached(&host)))
                    }
                });
            }
            (checks, connection.map(|connection| (host, connection)))
        });
        let insecure = &self.connection.registry.insecure;
        let catalog = self.catalog.check(insecure, certificates, wait_limit);
        let (hosts, catalog) = tokio::join!(join_all(hosts), catalog);
        let (checks, reached): (Vec<_>, Vec<_>) = hosts.into_iter().unzip();
        let mut checks: Vec<Check> = checks.into_iter().flatten().collect();
        let reached: Vec<_> = reached.into_iter().flatten().collect();
        // Checked last, within the remaining time.
        let rest = wait_limit.saturating_sub(started.elapsed());
        checks.extend(daemon::check(&self.docker, &reached, rest).await);
        checks.push(catalog);
        checks
    }

    /// Repositories of the trial push.
    fn pushed_to(&self) -> Result<Vec<Reference>> {
        let targets = self.registries.iter().filter(|_| self.push);
        targets.map(push::repository_of).collect()
    }

    /// Every host in flags, each once: registries to push to, the registry of base images, and
    /// hosts with trust settings. A trusted host without a port applies to all of its ports, so it
    /// is not checked itself if one of them is named; the catalog is not a registry.
    fn hosts(&self) -> Vec<String> {
        let pushed_to = self.registries.iter().map(RegistryPrefix::host);
        let mut hosts: Vec<String> = Vec::new();
        for host in pushed_to.chain([self.connection.base_registry.0.host()]) {
            if !hosts.iter().any(|known| known == host) {
                hosts.push(host.to_owned());
            }
        }
        let catalog = self.catalog.host();
        for host in &self.connection.registry.insecure {
            let covers = |known: &String| {
                let port = known.strip_prefix(host.as_str());
                port.is_some_and(|port| port.is_empty() || port.starts_with(':'))
            };
            if !hosts.iter().chain(&catalog).any(covers) {
                hosts.push(host.clone());
            }
        }
        hosts
    }
}

fn updates_table(session: &Session) -> Check {
    let table = updates::updates_table(session);
    let (kind, subject) = ("updates", "table");
    if let Some(newest) = table.stale_since(Zoned::now().date()) {
        return Check::skipped(kind, subject, updates::stale_in_words(newest, 17763));
    }
    let newest = table.all().iter().map(|update| update.date).max();
    let newest = newest.map_or_else(|| "none".to_owned(), |date| date.to_string());
    let finding = format!("KB numbers are known up to {newest}");
    Check::ok(kind, subject, finding)
}

/// Checks of a host, and the protocol if it is reachable.
async fn check_host(registry: &RegistryClient, host: &str) -> (Vec<Check>, Option<Protocol>) {
    match registry.ping(host).await {
        Ok(ping) => {
            let checks = vec![
                Check::ok("registry", host, reached(ping.connection)),
                Check::ok("credentials", host, login(&ping)),
            ];
            (checks, Some(ping.connection))
        }
        // The registry responds, so what remains is fine.
        Err(error) if is_about_credentials(&error) => {
            (vec![failed("credentials", host, &error)], None)
        }
        Err(error) => (vec![failed("registry", host, &error)], None),
    }
}

fn not_reached(host: &str) -> String {
    format!("not checked, because of the problem with {host}")
}

fn reached(connection: Protocol) -> &'static str {
    match connection {
        Protocol::Https => "reachable over TLS with a trusted certificate",
        Protocol::UnverifiedHttps => {
            "reachable over TLS; listed as insecure, so its certificate is not verified"
        }
        Protocol::PlainHttp => "reachable over plain HTTP",
    }
}

fn login(ping: &Ping) -> String {
    match ping.login {
        AuthScheme::NotNeeded => "none needed".to_owned(),
        AuthScheme::Basic => format!("accepted: {}", ping.credential),
        AuthScheme::Token => format!("token issued for {}", ping.credential),
    }
}

fn is_about_credentials(error: &RegistryError) -> bool {
    match error {
        RegistryError::Denied { .. }
        | RegistryError::PlainCredentials { .. }
        | RegistryError::TokenServer { .. }
        | RegistryError::Credential { .. } => true,
        RegistryError::GaveUp { last, .. } => is_about_credentials(last),
        _ => false,
    }
}

/// Checks access to base images: the registry may respond while the mirror's prefix is wrong.
async fn check_base(registry: &RegistryClient, base: &BaseRegistry) -> Option<Check> {
    const SAMPLE: &str = "nanoserver";
    let subject = base.to_string();
    let reference = base.repository(SAMPLE).ok()?;
    let mirror =
        || format!("fill it with: wincimg image mirror base:{SAMPLE} --nodes FILE --to {base}");
    let listing = async {
        let bases = BaseRepository::open(registry, &reference, &[]).await?;
        Ok((bases.listing()?, bases))
    };
    match listing.await {
        Ok((listing, bases)) => {
            let images = listing.images.len();
            Some(if images == 0 {
                let finding = format!("{bases} has no tag of a base image");
                Check::problem(BASES, &subject, finding, mirror())
            } else {
                let finding = format!("found images of {SAMPLE}: {images}");
                Check::ok(BASES, &subject, finding)
            })
        }
        Err(ResolveError::NoRepository { .. }) => {
            let finding = format!("repository {} not found", reference.repository.repository());
            let fix = format!("check the prefix of --base-registry, or {}", mirror());
            Some(Check::problem(BASES, &subject, finding, fix))
        }
        Err(error) => Some(failed(BASES, &subject, &error)),
    }
}

fn failed(kind: &'static str, host: &str, error: &dyn Diagnose) -> Check {
    let finding = error_chain(error);
    let diagnosis = error.diagnosis();
    let fix = diagnosis
        .hint
        .or_else(|| fix_of_answer(host, diagnosis.code))
        .unwrap_or_else(|| {
            format!("check the name {host}, DNS, the firewall, HTTPS_PROXY and NO_PROXY")
        });
    Check::problem(kind, host, finding, fix)
}

/// Returns the fix for an error without a hint if the host answered.
fn fix_of_answer(host: &str, code: &str) -> Option<String> {
    matches!(code, "network/answer" | "registry/answer").then(|| {
        format!("{host} answers, so the network works: see its message, or ask its operator")
    })
}

fn write_text(checks: &[Check], colour: bool, out: &mut dyn Write) -> io::Result<()> {
    for check in checks {
        let name = check.state.name();
        let gap = " ".repeat("problem".len() - name.len());
        let state = label(name, check.state.colour(), colour);
        let (kind, subject, finding) = (check.kind, &check.subject, &check.finding);
        let (subject, finding) = (UntrustedText(subject), UntrustedText(finding));
        writeln!(out, "{state}{gap}  {kind} {subject}: {finding}")?;
        if let Some(fix) = &check.fix {
            let fix_label = label("fix:", "36", colour);
            writeln!(out, "         {fix_label} {}", UntrustedText(fix))?;
        }
    }
    Ok(())
}
