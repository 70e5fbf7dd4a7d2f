//! Rules about `FROM`: which Windows the base image is, whether it stays that, and whether it runs
//! on the host.

use super::reader::{Edit, Instruction};
use super::stage::{Base, Stage};
use super::{Findings, Options, Rule, Severity};
use crate::windows::compat::{self, HostBuild, Isolation, Outcome, base_release_for};
use crate::windows::release;
use crate::windows::update::{Update, UpdateKind, Updates};
use crate::windows::version::WindowsVersion;

/// The parts of an image's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    /// Registry and path, in small letters.
    pub(super) repository: String,
    tag: Option<String>,
    digest: Option<String>,
}

impl Reference {
    pub(super) fn parse(text: &str) -> Self {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest.to_owned())),
            None => (text, None),
        };
        // A colon before the last slash is a port.
        let path = name.rfind('/').map_or(0, |slash| slash + 1);
        let (repository, tag) = match name[path..].split_once(':') {
            Some((_, tag)) => (&name[..name.len() - tag.len() - 1], Some(tag.to_owned())),
            None => (name, None),
        };
        Self {
            repository: repository.to_ascii_lowercase(),
            tag,
            digest,
        }
    }

    /// The build of Windows inside, as far as the tag tells.
    pub(super) fn build(&self) -> Option<u32> {
        Some(version_of(self.tag.as_deref()).version?.build)
    }

    /// Whether this is one of Windows' own base images, whose tags are plain versions. A mirror
    /// keeps the end of the name.
    fn is_windows_base(&self) -> bool {
        ["nanoserver", "servercore", "server"]
            .iter()
            .any(|name| self.repository.ends_with(&format!("windows/{name}")))
            || self.repository == "mcr.microsoft.com/windows"
    }

    /// Whether this is one of Microsoft's images on top of those, whose tags are given to another
    /// image every month unless they have a version or a date in them.
    fn is_monthly(&self) -> bool {
        self.repository.contains("dotnet/framework/")
            || self.repository.ends_with("windows/servercore/iis")
    }
}

/// What a tag says about the Windows inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TagVersion {
    version: Option<WindowsVersion>,
    /// Whether the tag names one image for good.
    fixed: bool,
}

pub(super) fn check(stages: &[Stage<'_>], options: &Options, findings: &mut Findings<'_>) {
    for stage in stages {
        let Base::Image(reference) = &stage.base else {
            continue;
        };
        let tag = version_of(reference.tag.as_deref());
        let version = options.base_version.or(tag.version);
        let pinned = pinned(reference, version, options.host);
        check_floating(stage.from, reference, tag, pinned.as_deref(), findings);
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
            "{} without a tag is whatever was pushed last",
            reference.repository
        ),
        Some("latest") => format!(
            "{}:latest is whatever was pushed last",
            reference.repository
        ),
        Some(name) if !tag.fixed && (tag.version.is_some() || reference.is_monthly()) => format!(
            "{}:{name} moves to a new revision every month",
            reference.repository
        ),
        Some(_) => return,
    };
    let mend = if reference.is_windows_base() {
        "name a full version such as 10.0.17763.973, or a digest"
    } else {
        "name a tag that stays, or a digest"
    };
    let message = format!("{message}; {mend}");
    report(
        Rule::FloatingBase,
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
    let verdict = compat::judge(Some(host), version, Isolation::Process);
    if verdict.outcome != Outcome::Incompatible {
        return;
    }
    let message = format!(
        "{} does not run on host {host}: {}",
        reference.repository,
        verdict.reason()
    );
    report(
        Rule::BaseHostMismatch,
        Severity::Error,
        from,
        message,
        pinned,
        findings,
    );
}

fn report(
    rule: Rule,
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
            findings.edit(rule, severity, from, message, &[edit]);
        }
        None => findings.only(rule, severity, from.line_of(start), message),
    }
}

/// The reference with a full version: the host's where that is known, or else the newest that the
/// tag can mean. Only Windows' own images have tags that can be told in advance.
fn pinned(
    reference: &Reference,
    version: Option<WindowsVersion>,
    host: Option<HostBuild>,
) -> Option<String> {
    if !reference.is_windows_base() {
        return None;
    }
    let version = match host {
        Some(host) => fitting(host)?,
        None => monthly(version?.build, None)?.version(),
    };
    Some(format!("{}:{}", reference.repository, version.os_version()))
}

/// The newest base image that a host runs for certain.
fn fitting(host: HostBuild) -> Option<WindowsVersion> {
    let build = base_release_for(host.version.build)?.build;
    let limit = host
        .version
        .revision
        .filter(|_| build == host.version.build);
    Some(monthly(build, limit)?.version())
}

/// The last monthly security update of a build, which is when base images are published.
fn monthly(build: u32, limit: Option<u32>) -> Option<&'static Update> {
    Updates::embedded()
        .of_build(build)
        .iter()
        .rev()
        .filter(|update| limit.is_none_or(|limit| update.revision <= limit))
        .find(|update| update.kind == UpdateKind::Week('B'))
}

fn version_of(tag: Option<&str>) -> TagVersion {
    let parts = || tag.unwrap_or_default().split(['-', '_']);
    let full = parts()
        .filter(|part| part.starts_with("10.0."))
        .find_map(|part| part.parse::<WindowsVersion>().ok());
    if let Some(version) = full {
        return TagVersion {
            version: Some(version),
            fixed: version.revision.is_some(),
        };
    }
    let build = parts()
        .find_map(release::named_in_tag)
        .map(|release| release.build);
    let kb = parts()
        .filter(|part| part.to_ascii_uppercase().starts_with("KB"))
        .find_map(|part| part.parse().ok());
    let updated = kb.and_then(|kb| {
        Updates::embedded()
            .of_kb(kb)
            .find(|update| build.is_none_or(|build| update.build == build))
    });
    let dated = parts().any(|part| part.len() == 8 && part.bytes().all(|b| b.is_ascii_digit()));
    TagVersion {
        version: updated
            .map(Update::version)
            .or(build.map(WindowsVersion::of_build)),
        fixed: kb.is_some() || dated,
    }
}
