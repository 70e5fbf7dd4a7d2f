//! Checks a publication on the hosts it is for, by the rules of `check-compat`, so that the check
//! finds nothing against a successful build.

use jiff::civil::Date;
use wincimg_cluster::nodes::{Node, NodeList};
use wincimg_cluster::rollout::{
    Image, ImageContent, Rollout, RolloutCheck, RolloutRequest, Variant,
};
use wincimg_common::diagnose::Problem;
use wincimg_common::progress::Progress;
use wincimg_windows::compat::{
    CompatRule, ContainerRuntime, HostBuild, Isolation, VerdictOutcome, check as judge,
};
use wincimg_windows::version::WindowsVersion;

use crate::plans::TargetHost;
use crate::publication::{PlannedTag, PlannedTagEntry};

/// Rejects images that some host does not start, and warns of what a strict check would reject on
/// that day.
pub fn check_served(
    tags: &[PlannedTag<'_>],
    nodes: &[Node],
    today: Date,
    reporter: &dyn Progress,
) -> Result<(), Problem> {
    for planned in tags {
        for warning in check_tag(planned, nodes, today)? {
            reporter.warn(&format_args!("{}: {warning}", planned.tag));
        }
    }
    Ok(())
}

/// Checks one tag and warns, each warning once.
pub(crate) fn check_tag(
    planned: &PlannedTag<'_>,
    nodes: &[Node],
    today: Date,
) -> Result<Vec<String>, Problem> {
    // An image without Windows inside runs on any host.
    let lines = planned.lines.iter();
    let mut of_windows = lines.filter(|it| it.platform.os == "windows");
    if of_windows.all(is_host_process) {
        return Ok(Vec::new());
    }
    let rollout = Rollout::new(&RolloutRequest {
        nodes: NodeList {
            windows: hosts_of(planned, nodes),
            others: Vec::new(),
        },
        images: vec![image(planned)],
        plain: 1,
        isolation: Some(Isolation::Process),
        today: Some(today),
        ..RolloutRequest::default()
    });
    let mut warnings: Vec<String> = Vec::new();
    for check in rollout.checks() {
        let finding = check.finding;
        match finding.outcome {
            VerdictOutcome::Compatible => {}
            VerdictOutcome::Warning => {
                let reason = &finding.reason;
                let warning = match unreported(planned, &check) {
                    Some(version) => {
                        format!("{reason}; the index has {version} too: {VERSION_TAGS}")
                    }
                    None => reason.clone(),
                };
                if !warnings.contains(&warning) {
                    warnings.push(warning);
                }
            }
            VerdictOutcome::Incompatible | VerdictOutcome::Unknown => {
                let host = check.host.map(name).unwrap_or_default();
                return Err(unserved(planned, &host, &finding.reason));
            }
        }
    }
    Ok(warnings)
}

/// How each host gets its image where an index does not give it. `fleet build` says this too, and
/// has no such flag.
const VERSION_TAGS: &str = "publish only the version tags with `wincimg build --no-index` or \
                            `wincimg image update --no-index`, and let each pod name the one for \
                            its host";

/// The image of an index that starts on a host, where the one that it selects is reported to fail.
/// No order of the entries helps: some runtimes prefer the newest.
fn unreported(planned: &PlannedTag<'_>, check: &RolloutCheck<'_>) -> Option<WindowsVersion> {
    let host = check.host?.build;
    let is_reported = check.finding.rule == CompatRule::HostReportedBroken.name();
    let starts = |version: &WindowsVersion| {
        let verdict = judge(host, Some(*version), Isolation::Process);
        verdict.outcome == VerdictOutcome::Compatible
    };
    let mut versions = planned.lines.iter().filter_map(|line| line.version);
    versions.find(starts).filter(|_| is_reported)
}

/// Error for an image that a host does not start.
fn unserved(planned: &PlannedTag<'_>, host: &str, reason: &str) -> Problem {
    let what = if planned.is_index { "index" } else { "image" };
    let tag = &planned.tag;
    let problem = format!("the {what} {tag} would not start on {host}: {reason}");
    let hint = planned.is_index.then_some(VERSION_TAGS);
    Problem::answer("tag/unserved", problem).hint_if(hint)
}

/// Returns true if an image of a tag has no Windows inside.
fn is_host_process(line: &PlannedTagEntry) -> bool {
    line.platform.os == "windows" && line.version.is_none()
}

/// The hosts of a tag. If only the build of a host is known, it may have either runtime.
fn hosts_of(planned: &PlannedTag<'_>, nodes: &[Node]) -> Vec<Node> {
    let is_served = |build: HostBuild| {
        let mut hosts = planned.hosts.iter();
        hosts.any(|TargetHost { build: served, .. }| *served == build)
    };
    let served = nodes
        .iter()
        .filter(|node| node.build.is_some_and(is_served));
    served
        .flat_map(|node| {
            let runtimes = match node.name {
                Some(_) => vec![node.runtime],
                None => vec![ContainerRuntime::CONTAINERD, ContainerRuntime::Docker],
            };
            runtimes.into_iter().map(|runtime| Node {
                runtime,
                ..node.clone()
            })
        })
        .collect()
}

/// The tag as the check would read it.
fn image(planned: &PlannedTag<'_>) -> Image {
    let variant = |line: &PlannedTagEntry| Variant {
        version: line.version,
        host_process: is_host_process(line),
        ..Variant::of_platform(&line.platform)
    };
    // An entry without a platform is a companion of an image, which no runtime pulls.
    let images = planned.lines.iter();
    let images = images.filter(|line| !matches!(line.platform.os.as_str(), "" | "unknown"));
    let mut variants: Vec<Variant> = images.map(variant).collect();
    let content = match variants.pop() {
        Some(variant) if !planned.is_index => ImageContent::Single(variant),
        last => {
            variants.extend(last);
            ImageContent::Index(variants)
        }
    };
    Image {
        reference: Some(planned.tag.clone()),
        content,
    }
}

/// `17763.973 (win-a) with containerd`.
fn name(node: &Node) -> String {
    let build = node.build.map(|build| build.to_string());
    let build = build.unwrap_or_default();
    let node_name = node.name.as_ref();
    let node_name = node_name.map_or_else(String::new, |name| format!(" ({name})"));
    format!("{build}{node_name} with {}", node.runtime.name())
}

#[cfg(test)]
mod tests;
