//! Findings, and the kinds of hosts that share them.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use wincimg_windows::compat::{
    CompatRule, Concern, ContainerRuntime, HostBuild, Isolation, VerdictOutcome, WindowsEdition,
    check, generation,
};
use wincimg_windows::version::WindowsVersion;

use super::SharedFinding;
use super::fix_text::{of_missing_class, of_pause_image};
use super::image::Image;
use super::verdict::{find, taken};
use crate::nodes::Node;
use crate::pod::Hyperv;

/// Properties of a host that decide findings; hosts of one kind share them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostKind {
    /// Windows build of the oldest host; absent if it could not be read.
    pub build: Option<HostBuild>,
    /// Windows version of the newest host.
    pub newest: Option<WindowsVersion>,
    /// Container runtime.
    pub runtime: ContainerRuntime,
    /// `amd64`, `arm64`, …
    pub architecture: String,
    /// Whether it runs host process containers, if known.
    pub(super) runs_host_process: Option<bool>,
    /// The way to request Hyper-V isolation that it supports.
    pub(super) hyperv: Hyperv,
}

/// Up to this number of host versions each is its own kind. Beyond it, versions that every image
/// treats alike are grouped, so that findings do not grow with the number of updates in a cluster.
const MANY_VERSIONS: usize = 30;

/// Key by which hosts are grouped into kinds.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Windows {
    Unknown,
    Exactly(HostBuild),
    /// Build, edition, generation, whether the revision is known, and how many of the images'
    /// revisions it has reached.
    Alike(u32, WindowsEdition, Option<u32>, bool, usize),
}

impl Windows {
    /// `revisions` are the versions of all images, sorted.
    fn from_node(host: &Node, is_exact: bool, revisions: &[WindowsVersion]) -> Self {
        match host.build {
            None => Self::Unknown,
            Some(build) if is_exact => Self::Exactly(build),
            Some(HostBuild {
                version, edition, ..
            }) => Self::Alike(
                version.build,
                edition,
                generation(version),
                version.revision.is_some(),
                revisions.partition_point(|image| *image <= version),
            ),
        }
    }
}

/// Result for one image on one kind of host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Finding {
    /// The outcome.
    pub outcome: VerdictOutcome,
    /// Name of the rule.
    pub rule: &'static str,
    /// Reason.
    pub reason: String,
    /// Suggested fix.
    pub fix: Option<String>,
    /// Commands of the fix.
    pub commands: Vec<String>,
    /// Isolation of the container.
    pub isolation: Isolation,
    /// Version of the image that the host would select.
    pub image_build: Option<WindowsVersion>,
    /// Index of the variant that the host would select.
    pub variant: Option<usize>,
    /// True if an image of the index starts there, but the index hides it.
    pub(super) is_hidden: bool,
    /// True if a build for the host does not help: the pod is refused, or the virtual machine of its
    /// runtime class decides.
    pub is_of_pod: bool,
}

impl Finding {
    /// A finding by the rule of this outcome, without a fix.
    pub(super) fn new(
        (outcome, rule): (VerdictOutcome, &'static str),
        reason: String,
        isolation: Isolation,
    ) -> Self {
        Self {
            outcome,
            rule,
            reason,
            fix: None,
            commands: Vec::new(),
            isolation,
            image_build: None,
            variant: None,
            is_hidden: false,
            is_of_pod: false,
        }
    }

    /// The fix with its commands, in one line.
    pub fn advice(&self) -> Option<String> {
        Some(in_one_line(self.fix.as_ref()?, &self.commands))
    }
}

/// A fix with its commands: `FIX; type: COMMAND; then: COMMAND`. Between commands there may be steps
/// by hand, which the fix names.
pub fn in_one_line(fix: &str, commands: &[impl AsRef<str>]) -> String {
    let commands: Vec<&str> = commands.iter().map(AsRef::as_ref).collect();
    if commands.is_empty() {
        fix.to_owned()
    } else {
        format!("{fix}; type: {}", commands.join("; then: "))
    }
}

impl HostKind {
    fn of(host: &Node) -> Self {
        Self {
            build: host.build,
            newest: host.build.map(|build| build.version),
            runtime: host.runtime,
            architecture: host.architecture.clone(),
            runs_host_process: host.runs_host_process(),
            hyperv: host.hyperv(),
        }
    }

    fn add(&mut self, host: &Node) {
        let version = |build: Option<HostBuild>| build.map(|build| build.version);
        if version(host.build) < version(self.build) {
            self.build = host.build;
        }
        self.newest = self.newest.max(version(host.build));
    }

    /// `17763.973`, or `17763.1039 to 17763.2300`.
    pub fn versions(&self) -> Option<String> {
        let oldest = self.build?.version;
        Some(match self.newest {
            Some(newest) if newest != oldest => format!("{oldest} to {newest}"),
            _ => oldest.to_string(),
        })
    }
}

/// Checks each pair of kind and image once; equal findings are shared, so that reports list them
/// once.
pub(super) struct CompatibilityChecker<'a> {
    images: &'a [Image],
    pub(super) kinds: Vec<HostKind>,
    pub(super) kind_of: Vec<usize>,
    known: HashMap<(usize, usize, Isolation), SharedFinding>,
    found: HashSet<SharedFinding>,
}

impl<'a> CompatibilityChecker<'a> {
    pub(super) fn new(hosts: &[Node], images: &'a [Image]) -> Self {
        let versions: HashSet<Option<HostBuild>> = hosts.iter().map(|host| host.build).collect();
        let is_exact = versions.len() <= MANY_VERSIONS;
        let mut revisions: Vec<WindowsVersion> = images.iter().flat_map(Image::versions).collect();
        revisions.sort_unstable();
        let mut kinds: Vec<HostKind> = Vec::new();
        let mut places: HashMap<_, usize> = HashMap::new();
        let kind_of = hosts
            .iter()
            .map(|host| {
                let windows = Windows::from_node(host, is_exact, &revisions);
                let of_pods = (host.runtime, host.runs_host_process(), host.hyperv());
                let key = (windows, of_pods, host.architecture.as_str());
                let kind = *places.entry(key).or_insert_with(|| {
                    kinds.push(HostKind::of(host));
                    kinds.len() - 1
                });
                kinds[kind].add(host);
                kind
            })
            .collect();
        Self {
            images,
            kinds,
            kind_of,
            known: HashMap::new(),
            found: HashSet::new(),
        }
    }

    /// Isolation of an image on a kind of host if no pod specifies it.
    pub(super) fn isolation_of(&self, kind: usize, image: usize, usual: Isolation) -> Isolation {
        let image = &self.images[image];
        let variants = image.variants();
        let taken = taken(&self.kinds[kind], image);
        if !taken.is_empty() && taken.iter().all(|place| variants[*place].host_process) {
            Isolation::HostProcess
        } else {
            usual
        }
    }

    pub(super) fn finding(
        &mut self,
        kind: usize,
        image: usize,
        isolation: Isolation,
    ) -> SharedFinding {
        let key = (kind, image, isolation);
        if let Some(known) = self.known.get(&key) {
            return Rc::clone(known);
        }
        let finding = find(&self.kinds[kind], &self.images[image], isolation);
        let finding = self.shared(finding);
        self.known.insert(key, Rc::clone(&finding));
        finding
    }

    /// The finding if the runtime class is unknown: it may be one for Hyper-V isolation, in which
    /// an image may start that does not in process isolation, or select another one of the nodes.
    pub(super) fn finding_of_class(
        &mut self,
        kind: usize,
        image: usize,
        isolation: Isolation,
        (class, has_other_nodes): (&str, bool),
    ) -> SharedFinding {
        let own = self.finding(kind, image, isolation);
        let fails = |finding: &Finding| finding.outcome == VerdictOutcome::Incompatible;
        let is_containerd = matches!(self.kinds[kind].runtime, ContainerRuntime::Containerd(_));
        let may_isolate = is_containerd && isolation == Isolation::Process;
        let helps =
            has_other_nodes || may_isolate && !fails(&self.finding(kind, image, Isolation::HyperV));
        if !fails(&own) || !helps {
            return own;
        }
        let (reason, fix) = of_missing_class(class);
        self.shared(Finding {
            outcome: VerdictOutcome::Unknown,
            rule: CompatRule::UnknownBuild.name(),
            reason: format!("{reason}; without it {}", own.reason),
            fix: Some(fix),
            ..Finding::clone(&own)
        })
    }

    /// The finding in a virtual machine of this build, if the runtime class states it. Containers share
    /// its kernel, whose revision is not known. The host selects the image of an index.
    pub(super) fn finding_in_machine(
        &mut self,
        kind: usize,
        image: usize,
        isolation: Isolation,
        machine: Option<u32>,
    ) -> SharedFinding {
        let own = self.finding(kind, image, isolation);
        let is_open = own.rule == CompatRule::HypervOk.name();
        let (Some(build), Some(version)) = (machine, own.image_build.filter(|_| is_open)) else {
            return own;
        };
        let host = HostBuild::new(WindowsVersion {
            build,
            revision: version.revision.filter(|_| version.build == build),
        });
        let verdict = check(Some(host), Some(version), Isolation::Process);
        let reason = verdict.reason_for(&build.to_string());
        self.finding_of_pod(Finding {
            outcome: verdict.outcome,
            rule: verdict.rule.name(),
            reason: format!("in the virtual machine of its runtime class, {reason}"),
            fix: verdict.fix.map(|fix| match verdict.outcome {
                VerdictOutcome::Incompatible => of_pause_image(version.build, build),
                _ => fix.to_string(),
            }),
            ..Finding::clone(&own)
        })
    }

    /// The finding where Docker is told to start a pod with a handler that it does not know.
    pub(super) fn finding_of_handler(
        &mut self,
        handler: &str,
        isolation: Isolation,
    ) -> SharedFinding {
        let reason =
            format!("the node runs Docker, which starts no pod with the handler {handler}");
        let fix = "move the node to containerd, or keep these pods off it";
        self.finding_of_pod(concern(Concern::HandlerUnsupported, reason, fix, isolation))
    }

    /// The finding where the API server refuses a pod.
    pub(super) fn finding_of_refusal(
        &mut self,
        about: Concern,
        reason: &str,
        fix: &str,
        isolation: Isolation,
    ) -> SharedFinding {
        // One finding for all containers of the pod.
        let isolation = match about {
            Concern::HostProcessUnsupported => Isolation::HostProcess,
            _ => isolation,
        };
        self.finding_of_pod(concern(about, reason, fix, isolation))
    }

    fn finding_of_pod(&mut self, finding: Finding) -> SharedFinding {
        self.shared(Finding {
            is_of_pod: true,
            ..finding
        })
    }

    /// The equal finding that is known already, or else this one.
    fn shared(&mut self, finding: Finding) -> SharedFinding {
        if let Some(same) = self.found.get(&finding) {
            return Rc::clone(same);
        }
        let finding = Rc::new(finding);
        self.found.insert(Rc::clone(&finding));
        finding
    }
}

/// A finding that does not depend on versions.
pub(super) fn concern(
    concern: Concern,
    reason: impl Into<String>,
    fix: impl Into<String>,
    isolation: Isolation,
) -> Finding {
    let rule = (concern.outcome(), concern.name());
    Finding {
        fix: Some(fix.into()),
        ..Finding::new(rule, reason.into(), isolation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_every_command_of_a_fix() {
        let mut finding = concern(Concern::NoImage, "reason", "fix it", Isolation::Process);
        assert_eq!(finding.advice().unwrap(), "fix it");
        finding.commands = vec!["a | b".to_owned(), "c".to_owned(), "d".to_owned()];
        let expected = "fix it; type: a | b; then: c; then: d";
        assert_eq!(finding.advice().unwrap(), expected);
    }
}
