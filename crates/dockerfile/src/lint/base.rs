//! Rules about `FROM`: the base image's Windows version, floating tags, and the host.

use wincimg_windows::compat::{HostBuild, Isolation, VerdictOutcome, base_release_for};
use wincimg_windows::release::ReleaseKind;
use wincimg_windows::update::{Update, UpdateKind, Updates};
use wincimg_windows::version::WindowsVersion;
use wincimg_windows::{compat, release};

use super::correction::Edit;
use super::reference::{Platform, Reference, SERVER_2022, TagVersion};
use super::stage::{Stage, StageBaseRef};
use super::{Findings, LintOptions, LintRule, Severity};
use crate::source::Instruction;

pub(super) fn check(stages: &[Stage<'_>], options: &LintOptions, findings: &mut Findings<'_>) {
    for stage in stages {
        let StageBaseRef::Image(reference) = &stage.base else {
            continue;
        };
        if stage.platform == Platform::Linux {
            continue;
        }
        let tag = reference.version();
        let known = options.facts(&stage.image);
        let version = known.and_then(|facts| facts.version).or(tag.version);
        let pinned = pinned(reference, version, options.host);
        // An answer of the registry takes precedence.
        let is_there = options.bases.contains_key(&stage.image);
        let dead = find_dead(reference, tag)
            .filter(|(severity, _)| *severity != Severity::Error || !is_there);
        if let Some((severity, message)) = dead {
            let rule = LintRule::DeadBase;
            // A build can override the argument.
            let is_default = stage.from.text().starts_with('$');
            let severity = if is_default {
                Severity::Warning
            } else {
                severity
            };
            report(rule, severity, stage.from, message, None, findings);
        } else {
            check_floating(stage.from, reference, tag, pinned.as_deref(), findings);
        }
        if let (Some(host), Some(_)) = (options.host, version) {
            check_host(
                stage.from,
                reference,
                version,
                host,
                pinned.as_deref(),
                findings,
            );
        }
    }
}

/// Reason why a base image cannot be pulled or gets no updates.
fn find_dead(reference: &Reference, tag: TagVersion) -> Option<(Severity, String)> {
    let repository = &reference.repository;
    let docker_hub = repository.strip_prefix("docker.io/").unwrap_or(repository);
    if let Some(name) = docker_hub.strip_prefix("microsoft/") {
        let successor = successor(name, reference.tag.as_deref().unwrap_or_default());
        return Some((
            Severity::Error,
            format!(
                "Microsoft removed microsoft/{name} from Docker Hub in 2021, so the pull fails; use \
                 a tag of mcr.microsoft.com{successor}"
            ),
        ));
    }
    let name = reference.tag.as_deref();
    let is_own = repository.starts_with("mcr.microsoft.com/") && reference.is_windows_base();
    if is_own && reference.digest.is_none() && matches!(name, None | Some("latest")) {
        return Some((
            Severity::Error,
            format!(
                "{repository} has no tag latest, so the pull fails; use a version, such as \
                 {}",
                server_2022(reference)
            ),
        ));
    }
    let version = tag.version?;
    let release = release::from_build(version.build)?;
    let is_old_nano = version.build == 14393 && repository.ends_with("windows/nanoserver");
    let is_published =
        is_own || reference.is_monthly() || repository.contains("mcr.microsoft.com/");
    (is_published && (release.kind == ReleaseKind::Sac || is_old_nano)).then(|| {
        let what = if is_old_nano {
            "Nano Server 2016"
        } else {
            release.name
        };
        (
            Severity::Warning,
            format!(
                "support for {what} has ended, and this image gets no updates; use a release of \
                 the long-term channel, such as {}",
                server_2022(reference)
            ),
        )
    })
}

/// Server 2022's tag of the same base.
fn server_2022(reference: &Reference) -> String {
    let tag = "ltsc2022";
    let repository = reference.repository_for(SERVER_2022);
    match repository.filter(|_| reference.is_windows_base()) {
        Some(repository) => format!("{repository}:{tag}"),
        None => tag.to_owned(),
    }
}

/// Successor of a repository of Microsoft on Docker Hub.
fn successor(name: &str, tag: &str) -> &'static str {
    match name {
        "windowsservercore" => "/windows/servercore",
        "nanoserver" => "/windows/nanoserver",
        "iis" => "/windows/servercore/iis",
        "aspnet" => "/dotnet/framework/aspnet",
        "wcf" => "/dotnet/framework/wcf",
        "dotnet-framework-build" => "/dotnet/framework/sdk",
        "dotnet-framework" if tag.contains("sdk") => "/dotnet/framework/sdk",
        "dotnet-framework" => "/dotnet/framework/runtime",
        "dotnet" if tag.contains("sdk") => "/dotnet/sdk",
        "dotnet" if tag.contains("aspnetcore") => "/dotnet/aspnet",
        "dotnet" => "/dotnet/runtime",
        "aspnetcore" => "/dotnet/aspnet",
        "aspnetcore-build" => "/dotnet/sdk",
        "powershell" => "/powershell",
        _ => "",
    }
}

fn check_floating(
    from: &Instruction,
    reference: &Reference,
    tag: TagVersion,
    pinned: Option<&str>,
    findings: &mut Findings<'_>,
) {
    let message = match reference.tag.as_deref() {
        _ if reference.digest.is_some() => return,
        None => format!(
            "{} without a tag is the image that was pushed last",
            reference.repository
        ),
        Some("latest") => format!(
            "{}:latest is the image that was pushed last",
            reference.repository
        ),
        Some(name)
            if !tag.fixed
                && reference.is_updated_monthly()
                && (tag.version.is_some() || reference.is_monthly()) =>
        {
            format!(
                "{}:{name} moves to a new revision every month",
                reference.repository
            )
        }
        Some(_) => return,
    };
    let mend = if reference.is_windows_base() {
        "use a full version such as 10.0.17763.973, or a digest"
    } else {
        "use a tag that does not move, or a digest"
    };
    let message = format!("{message}; {mend}");
    report(
        LintRule::FloatingBase,
        Severity::Warning,
        from,
        message,
        pinned,
        findings,
    );
}

fn check_host(
    from: &Instruction,
    reference: &Reference,
    version: Option<WindowsVersion>,
    host: HostBuild,
    pinned: Option<&str>,
    findings: &mut Findings<'_>,
) {
    let verdict = compat::check(Some(host), version, Isolation::Process);
    if verdict.outcome != VerdictOutcome::Incompatible {
        return;
    }
    let message = format!(
        "{} does not run on host {host}: {}",
        reference.repository,
        verdict.reason()
    );
    report(
        LintRule::BaseHostMismatch,
        Severity::Error,
        from,
        message,
        pinned,
        findings,
    );
}

fn report(
    rule: LintRule,
    severity: Severity,
    from: &Instruction,
    message: String,
    pinned: Option<&str>,
    findings: &mut Findings<'_>,
) {
    let image = from.text().split_whitespace().next().unwrap_or_default();
    let start = from.start();
    match pinned {
        Some(pinned) => {
            let edit = Edit::new(start..start + image.len(), pinned);
            findings.add_edits(rule, severity, from, message, &[edit]);
        }
        None => findings.add(rule, severity, from.line_of(start), message),
    }
}

/// Reference with a full version: the host's if known, else the newest that the tag can mean. Only
/// the tags of Windows' own images are predictable.
fn pinned(
    reference: &Reference,
    version: Option<WindowsVersion>,
    host: Option<HostBuild>,
) -> Option<String> {
    if !reference.is_windows_base() {
        return None;
    }
    let version = match host {
        Some(host) => newest_compatible(host)?,
        None => latest_monthly_update(version?.build, None)?.version(),
    };
    let repository = reference.repository_for(version.build)?;
    Some(format!("{repository}:{}", version.os_version()))
}

/// Newest base image that a host certainly runs.
fn newest_compatible(host: HostBuild) -> Option<WindowsVersion> {
    let build = base_release_for(host.version.build)?.build;
    let limit = host
        .version
        .revision
        .filter(|_| build == host.version.build);
    Some(latest_monthly_update(build, limit)?.version())
}

/// Latest monthly security update of a build: base images are published with these.
fn latest_monthly_update(build: u32, limit: Option<u32>) -> Option<&'static Update> {
    Updates::global()
        .by_build(build)
        .iter()
        .rev()
        .filter(|update| limit.is_none_or(|limit| update.revision <= limit))
        .find(|update| update.kind == UpdateKind::Week('B'))
}
