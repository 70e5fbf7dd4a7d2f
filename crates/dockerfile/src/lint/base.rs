//! Rules about `FROM`: the base image's Windows version, floating tags, and the host.

use wincimg_windows::compat::{HostBuild, Isolation, VerdictOutcome, base_release_for};
use wincimg_windows::release::ReleaseKind;
use wincimg_windows::update::{Update, UpdateKind, Updates};
use wincimg_windows::version::WindowsVersion;
use wincimg_windows::{compat, release};

use super::environment::split_name;
use super::prelude::*;
use super::reference::{SERVER_2016, SERVER_2022, TagVersion};
use crate::source::Instruction;

pub(super) fn check(linted: &LintFile<'_>) -> Vec<Finding> {
    let options = linted.options;
    let mut found = Vec::new();
    let mut floating = Vec::new();
    for stage in &linted.stages {
        let Some(reference) = stage.reference() else {
            continue;
        };
        if stage.is_linux() {
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
            // A build can override the argument. All repositories of `microsoft/` are gone.
            let written = stage.from.text();
            let is_gone = |name: &&str| written.starts_with(*name);
            let is_literal = ["microsoft/", "docker.io/microsoft/"].iter().any(is_gone);
            let is_default = written.contains('$') && !is_literal;
            let severity = match severity {
                Severity::Error if is_default => Severity::Warning,
                severity => severity,
            };
            let line = stage.from.line_of(stage.from.start());
            let dead = Finding::new(line, message).of("dead-base");
            found.push(dead.severity(severity));
        } else if let Some(message) = floating_message(reference, tag) {
            floating.push((stage, message, pinned.clone()));
        }
        if let (Some(host), Some(_)) = (options.host, version)
            && let Some(message) = host_message(reference, version, host)
        {
            let mismatch = pinning(linted, stage, message, pinned.as_deref());
            found.push(mismatch.of("base-host-mismatch"));
        }
    }
    found.extend(floating_finding(linted, &floating));
    found
}

/// A stage on a floating tag, with the message about it and the pinned name of its base.
type FloatingStage<'a> = (&'a Stage<'a>, (Severity, String), Option<String>);

/// One finding says it for the file.
fn floating_finding(linted: &LintFile<'_>, floating: &[FloatingStage<'_>]) -> Option<Finding> {
    let gravest = floating
        .iter()
        .min_by_key(|(_, (severity, _), _)| *severity);
    let (stage, (severity, message), pinned) = gravest?;
    let mut images: Vec<&str> = floating
        .iter()
        .map(|(stage, ..)| stage.image.as_str())
        .collect();
    images.sort_unstable();
    images.dedup();
    let message = match images.len() {
        1 => message.clone(),
        2 => format!("{message} (and another base of this file)"),
        count => format!("{message} (and {} other bases of this file)", count - 1),
    };
    Some(pinning(linted, stage, message, pinned.as_deref()).severity(*severity))
}

/// Reason why a base image cannot be pulled or gets no updates.
fn find_dead(reference: &Reference, tag: TagVersion) -> Option<(Severity, String)> {
    let repository = &reference.repository;
    let docker_hub = repository.strip_prefix("docker.io/").unwrap_or(repository);
    if let Some(name) = docker_hub.strip_prefix("microsoft/") {
        let message = removed_message(name, reference.tag.as_deref().unwrap_or_default());
        return Some((Severity::Error, message));
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
    let release = if is_own && name.is_some_and(|tag| tag.split('-').next() == Some("2009")) {
        // The first name of its tags.
        release::from_tag_word("20H2")?
    } else {
        release::from_build(tag.version?.build)?
    };
    let is_old_nano = release.build == SERVER_2016 && repository.ends_with("windows/nanoserver");
    let is_published = is_own
        || reference.names_windows()
        || reference.is_monthly()
        || repository.contains("mcr.microsoft.com/");
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

/// Message about a repository that Docker Hub does not have below `microsoft/`.
fn removed_message(name: &str, tag: &str) -> String {
    let successor = successor(name, tag);
    if name.starts_with("mssql-server-windows") {
        format!(
            "Microsoft removed microsoft/{name} from Docker Hub, so the pull fails, and has no image \
             of SQL Server for Windows any more; install it on mcr.microsoft.com/windows/servercore"
        )
    } else if successor.is_empty() {
        format!(
            "Docker Hub has no microsoft/{name}, as Microsoft removed its images from there in 2021, \
             so the pull fails; see whether mcr.microsoft.com has a successor"
        )
    } else if !name.contains('/') && !matches!(name, "servercore" | "windows") {
        format!(
            "Microsoft removed microsoft/{name} from Docker Hub in 2021, so the pull fails; use a tag \
             of mcr.microsoft.com{successor}"
        )
    } else {
        format!(
            "microsoft/{name} does not exist, so the pull fails; use a tag of \
             mcr.microsoft.com{successor}"
        )
    }
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

/// Successor of a repository of Microsoft on Docker Hub, or the one that was meant.
fn successor(name: &str, tag: &str) -> &'static str {
    match name {
        "windowsservercore" | "servercore" | "windows/servercore" => "/windows/servercore",
        "nanoserver" | "windows/nanoserver" => "/windows/nanoserver",
        "windows" => "/windows/server",
        "iis" | "windows/servercore/iis" => "/windows/servercore/iis",
        "aspnet" | "dotnet/framework/aspnet" => "/dotnet/framework/aspnet",
        "wcf" => "/dotnet/framework/wcf",
        "dotnet-framework-build" | "dotnet/framework/sdk" => "/dotnet/framework/sdk",
        "dotnet-framework" if tag.contains("sdk") => "/dotnet/framework/sdk",
        "dotnet-framework" | "dotnet/framework/runtime" => "/dotnet/framework/runtime",
        "dotnet-framework-samples" => "/dotnet/framework/samples",
        "dotnet" => successor_of_dotnet(tag),
        "aspnetcore-build" | "dotnet/sdk" => "/dotnet/sdk",
        "aspnetcore" | "dotnet/aspnet" => "/dotnet/aspnet",
        "powershell" => "/powershell",
        "windowsservercore-insider" => "/windows/servercore/insider",
        "nanoserver-insider" => "/windows/nanoserver/insider",
        _ => "",
    }
}

/// Successor of `microsoft/dotnet`: what had no support any more in 2020 stayed in the first repositories
/// (microsoft/containerregistry#85).
fn successor_of_dotnet(tag: &str) -> &'static str {
    let (first, second) = if tag.contains("aspnetcore") {
        ("/dotnet/core/aspnet", "/dotnet/aspnet")
    } else if tag.contains("runtime") || tag.contains("-core") {
        ("/dotnet/core/runtime", "/dotnet/runtime")
    } else {
        ("/dotnet/core/sdk", "/dotnet/sdk")
    };
    if tag.starts_with("1.") || tag.starts_with("2.2") {
        first
    } else {
        second
    }
}

/// Finding about a tag that moves; a note where its image may be the author's, or a finished version.
fn floating_message(reference: &Reference, tag: TagVersion) -> Option<(Severity, String)> {
    let is_finished = !reference.is_windows_base()
        && !reference.repository.contains("mcr.microsoft.com/")
        && reference.tag.as_deref().is_some_and(has_full_version);
    let severity = if is_finished || !reference.is_updated_monthly() {
        Severity::Note
    } else {
        Severity::Warning
    };
    // A name without a registry or an owner that Docker Hub is not known for.
    let is_local = !reference.repository.contains('/') && !reference.is_updated_monthly();
    let last = if is_local {
        "is the image of this name that was built or pulled last"
    } else {
        "is the image that was pushed last"
    };
    let message = match reference.tag.as_deref() {
        _ if reference.digest.is_some() => return None,
        None => format!("{} without a tag {last}", reference.repository),
        Some("latest") => format!("{}:latest {last}", reference.repository),
        // It gets no updates any more.
        Some(name) if name.contains("sac2016") => return None,
        Some(name)
            if !tag.fixed
                && reference.is_updated_monthly()
                && (tag.version.is_some()
                    || reference.is_monthly()
                    || name.contains_any(&["windowsservercore", "nanoserver"])) =>
        {
            format!(
                "{}:{name} is replaced when its Windows is updated",
                reference.repository
            )
        }
        Some(_) => return None,
    };
    let mend = if reference.is_windows_base() {
        "use a full version, 10.0.BUILD.REVISION, or a digest"
    } else {
        "use a tag that does not move, or a digest"
    };
    Some((severity, format!("{message}; {mend}")))
}

/// Returns true for `3.12.8-windowsservercore`, which moves only until the next version.
fn has_full_version(tag: &str) -> bool {
    let version = tag.split('-').next().unwrap_or_default();
    version.split('.').count() > 2 && version.chars().all(|c| c.is_ascii_digit() || c == '.')
}

/// Message about an image that does not run on a host.
fn host_message(
    reference: &Reference,
    version: Option<WindowsVersion>,
    host: HostBuild,
) -> Option<String> {
    let verdict = compat::check(Some(host), version, Isolation::Process);
    (verdict.outcome == VerdictOutcome::Incompatible).then(|| {
        format!(
            "{} does not run on host {host}: {}",
            reference.repository,
            verdict.reason()
        )
    })
}

/// A finding about a base whose correction names it with its full version.
fn pinning(
    linted: &LintFile<'_>,
    stage: &Stage<'_>,
    message: String,
    pinned: Option<&str>,
) -> Finding {
    let from = stage.from;
    let image = from.text().split_whitespace().next().unwrap_or_default();
    let start = from.start();
    let edit = pinned.and_then(|pinned| {
        if image.contains('$') {
            // The argument's default is corrected, and never a literal put over the argument.
            return default_edit(linted, image, &stage.image, pinned);
        }
        Some((from, Edit::new(start..start + image.len(), pinned)))
    });
    match edit {
        Some((instruction, edit)) => Finding::edited(linted.file, instruction, message, &[edit]),
        None => Finding::new(from.line_of(start), message),
    }
}

/// The `ARG` of the only variable of an image's name, and the edit of its default that makes the
/// name `pinned`.
fn default_edit<'a>(
    linted: &LintFile<'a>,
    written: &str,
    image: &str,
    pinned: &str,
) -> Option<(&'a Instruction, Edit)> {
    let (prefix, rest) = written.split_once('$')?;
    let (name, suffix) = match rest.strip_prefix('{') {
        Some(rest) => rest.split_once('}')?,
        None => split_name(rest),
    };
    if !name.has_only("_") || suffix.contains('$') {
        return None;
    }
    let value = image.strip_prefix(prefix)?.strip_suffix(suffix)?;
    let wanted = pinned.strip_prefix(prefix)?.strip_suffix(suffix)?;
    let mut instructions = linted.file.instructions.iter();
    let instruction = instructions
        .by_ref()
        .take_while(|it| it.keyword != "FROM")
        .find(|it| it.keyword == "ARG" && it.text().starts_with(&format!("{name}=")))?;
    let text = instruction.text();
    let default = text[name.len() + 1..].trim_matches('"');
    // Another base may use the argument too.
    let uses = linted
        .stages
        .iter()
        .filter(|stage| stage.from.text().contains(name));
    // A stage that declares it again has its value for other names.
    let declares = |text: &str| text.split_whitespace().any(|word| word == name);
    let mut stages = linted.stages.iter();
    let is_taken_over = stages.any(|stage| {
        stage
            .all("ARG")
            .any(|step| declares(step.instruction.text()))
    });
    if default != value || uses.count() != 1 || is_taken_over {
        return None;
    }
    let quote = usize::from(text[name.len() + 1..].starts_with('"'));
    let at = instruction.start() + name.len() + 1 + quote;
    Some((instruction, Edit::new(at..at + value.len(), wanted)))
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
