//! Finding for one image on one kind of host.

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use wincimg_oci::store::Location;
use wincimg_windows::compat::{
    CompatRule, Concern, ContainerRuntime, Fix, HostBuild, Isolation, RuntimeChoice,
    VerdictOutcome, WindowsEdition, accepted_builds, base_release_for, check as judge_versions,
    choose, choose_single, generation,
};
use wincimg_windows::version::WindowsVersion;

use super::image::{EntryContent, Image, ImageContent, Variant};
use super::{Shared, first_names};
use crate::nodes::Node;

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
}

impl Finding {
    /// A finding by the rule of this outcome, without a fix.
    fn new(
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
        }
    }

    /// Returns true if the runtime refuses the pod, with any image.
    pub(super) fn is_of_handler(&self) -> bool {
        self.rule == Concern::HandlerUnsupported.name()
    }

    /// The fix with its first command, in one line.
    pub fn advice(&self) -> Option<String> {
        let fix = self.fix.as_ref()?;
        Some(match self.commands.first() {
            Some(command) => format!("{fix}; type: {command}"),
            None => fix.clone(),
        })
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

/// Severity of an outcome, the worst last.
pub fn severity(outcome: VerdictOutcome) -> u8 {
    match outcome {
        VerdictOutcome::Compatible => 0,
        VerdictOutcome::Warning => 1,
        VerdictOutcome::Unknown => 2,
        VerdictOutcome::Incompatible => 3,
    }
}

/// Returns true if the image starts there or a plan can make it: an image that could not be read is
/// unknown, one for Linux is not replaced, one that contains no Windows is the same after a
/// rebuild, one that only its index hides exists, and some hosts run no image at all, or pull none
/// that they run.
pub(super) fn is_fixable(finding: &Finding, image: &Image, host: &HostKind) -> bool {
    let is_old_client = host.build.is_some_and(|build| {
        build.edition == WindowsEdition::Client && accepted_builds(build.version.build).count() == 1
    });
    let needs_host_process = finding.rule == Concern::HostProcessUnsupported.name()
        && !has_windows_inside(image.variants());
    finding.outcome != VerdictOutcome::Unknown
        && !needs_host_process
        && finding.rule != Concern::NotWindows.name()
        && !finding.is_of_handler()
        && !finding.is_hidden
        && finding.isolation != Isolation::HostProcess
        && !(finding.isolation == Isolation::Process && is_old_client)
        && host.architecture == "amd64"
        && image.is_readable()
        && !refuses_rebuilt(host, image)
}

/// The build of a host's base if the host's runtime refuses its images in an index.
pub(super) fn refused_in_index(host: &HostKind) -> Option<u32> {
    let build = host.build?.version.build;
    let base = base_release_for(build)?.build;
    (!host.runtime.may_accept(build, base)).then_some(base)
}

/// The build of a host's base if the host's runtime refuses its images in an index and alone: no
/// image that is built for the host starts there.
pub(super) fn refused_base(host: &HostKind) -> Option<u32> {
    let base = refused_in_index(host)?;
    let image = WindowsVersion::from_build(base);
    let alone = choose_single(Some(image), host.build?, host.runtime);
    let is_refused = alone.iter().all(|choice| choice.entry.is_none());
    is_refused.then_some(base)
}

/// Returns true if a host's runtime refuses what a plan builds for the host: an index, as the image
/// stays for others too, unless an archive holds it.
fn refuses_rebuilt(host: &HostKind, image: &Image) -> bool {
    let is_archive = || matches!(image.location(), Some(Location::Archive { .. }));
    refused_in_index(host).is_some_and(|base| {
        let is_in_index = match &image.content {
            ImageContent::Index(_) => true,
            ImageContent::Single(own) => {
                own.version.is_none_or(|own| own.build != base) && !is_archive()
            }
            _ => false,
        };
        is_in_index || refused_base(host).is_some()
    })
}

/// The runtime of a host in a fix, until the host has a name.
pub(super) const ITS_CONTAINERD: &str = "its containerd";

/// The fix by a build for a host, unless the host's runtime refuses that.
fn by_build(host: &HostKind, build: String) -> String {
    let Some((base, own)) = refused_in_index(host).zip(host.build) else {
        return build;
    };
    if refused_base(host).is_none() {
        let alone = "refuses it in an index, so give it a tag of its own";
        return format!("{build}; {ITS_CONTAINERD} {alone}");
    }
    let versions = ContainerRuntime::containerd_for(own.version.build, base);
    format!(
        "{ITS_CONTAINERD} refuses the bases that start there: install {versions}, or keep its pods \
         off it"
    )
}

/// The fix where an index has no image for a host.
fn build_too(host: &HostKind) -> String {
    by_build(host, "build the image for this host too".to_owned())
}

/// Returns true if a host's runtime certainly accepts an image that is built for it.
fn takes_a_base(host: &HostKind) -> bool {
    host.build.is_some_and(|host_build| {
        let build = host_build.version.build;
        let release = base_release_for(build);
        release.is_some_and(|release| host.runtime.certainly_accepts(build, release.build))
    })
}

/// Checks each pair of kind and image once; equal findings are shared, so that reports list them
/// once.
pub(super) struct CompatibilityChecker<'a> {
    images: &'a [Image],
    pub(super) kinds: Vec<HostKind>,
    /// The kind of each host.
    pub(super) kind_of: Vec<usize>,
    known: HashMap<(usize, usize, Isolation), Shared>,
    found: HashSet<Shared>,
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
                let of_pods = (host.runtime, host.runs_host_process());
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

    pub(super) fn finding(&mut self, kind: usize, image: usize, isolation: Isolation) -> Shared {
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
    ) -> Shared {
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

    /// The finding where Docker is told to start a pod with a handler that it does not know.
    pub(super) fn finding_of_handler(&mut self, handler: &str, isolation: Isolation) -> Shared {
        let reason =
            format!("the node runs Docker, which starts no pod with the handler {handler}");
        let fix = "move the node to containerd, or keep these pods off it";
        self.shared(concern(Concern::HandlerUnsupported, reason, fix, isolation))
    }

    /// The equal finding that is known already, or else this one.
    fn shared(&mut self, finding: Finding) -> Shared {
        if let Some(same) = self.found.get(&finding) {
            return Rc::clone(same);
        }
        let finding = Rc::new(finding);
        self.found.insert(Rc::clone(&finding));
        finding
    }
}

/// Reason and fix for a runtime class that is not in the input.
pub(super) fn of_missing_class(class: &str) -> (String, String) {
    (
        format!(
            "its runtime class {class} is not in the input, and its handler, and the node selector \
             and tolerations that it may add, decide where and how its pods start"
        ),
        "pass its runtime class to --workloads too: kubectl get runtimeclass -o yaml".to_owned(),
    )
}

/// Checks one image on one kind of host.
pub(super) fn find(host: &HostKind, image: &Image, isolation: Isolation) -> Finding {
    if isolation == Isolation::HostProcess
        && let Some(refused) = without_host_process(host)
    {
        return refused;
    }
    match &image.content {
        ImageContent::Stated(version) => {
            let variant = Variant {
                os: "windows".to_owned(),
                architecture: host.architecture.clone(),
                os_version: Some(version.os_version()),
                version: Some(*version),
                ..Variant::default()
            };
            Finding {
                variant: None,
                ..single(host, &variant, isolation)
            }
        }
        ImageContent::Single(variant) => single(host, variant, isolation),
        ImageContent::Index(variants) => of_index(host, variants, isolation),
        ImageContent::Unasked => {
            let fix = "describe it with --images FILE, or omit --offline";
            unreadable("--offline allows no registry access", Some(fix), isolation)
        }
        ImageContent::Unreadable { reason, hint } => unreadable(reason, hint.as_deref(), isolation),
    }
}

/// The finding where a host does not certainly run host process containers. Its reason fits all
/// such hosts, which reports list together.
fn without_host_process(host: &HostKind) -> Option<Finding> {
    let (outcome, reason) = match host.runs_host_process {
        Some(true) => return None,
        Some(false) => (
            VerdictOutcome::Incompatible,
            "host process containers need Kubernetes 1.23 and containerd 1.6 or newer, and the node \
             runs an older one or Docker",
        ),
        None => (
            VerdictOutcome::Unknown,
            "on Kubernetes 1.22 host process containers need the feature gate \
             WindowsHostProcessContainers",
        ),
    };
    let fix =
        "move the node to Kubernetes 1.23 and containerd 1.6 or newer, or keep these pods off it";
    let about = Concern::HostProcessUnsupported;
    Some(Finding {
        outcome,
        ..concern(about, reason, fix, Isolation::HostProcess)
    })
}

fn unreadable(reason: &str, fix: Option<&str>, isolation: Isolation) -> Finding {
    let rule = CompatRule::UnknownBuild;
    Finding {
        fix: fix.map(str::to_owned),
        ..Finding::new(
            (rule.outcome(), rule.name()),
            format!("cannot read the image: {reason}"),
            isolation,
        )
    }
}

fn single(host: &HostKind, variant: &Variant, isolation: Isolation) -> Finding {
    if let Some(kind) = variant.artifact() {
        let reason = format!("not an image: an artifact of type {kind}, which pods cannot run");
        return concern(Concern::NotWindows, reason, "name an image", isolation);
    }
    if variant.os != "windows" {
        return not_windows(&variant.platform(), isolation);
    }
    if variant.architecture != host.architecture {
        return Finding {
            image_build: variant.version,
            ..no_match(host, std::slice::from_ref(variant), isolation)
        };
    }
    let choices = match host.build {
        Some(build) => choose_single(variant.version, build, host.runtime),
        None => Vec::new(),
    };
    let own = by_variant(host, std::slice::from_ref(variant), 0, isolation);
    // That a runtime rejects the image too is not a better reason.
    let is_reason = own.outcome == VerdictOutcome::Incompatible;
    if choices.is_empty() || isolation == Isolation::HyperV || is_reason {
        return own;
    }
    by_choices(host, std::slice::from_ref(variant), &choices, isolation)
}

fn of_index(host: &HostKind, variants: &[Variant], isolation: Isolation) -> Finding {
    if !variants.iter().any(|variant| variant.os == "windows") {
        return not_windows(&platforms(variants), isolation);
    }
    let Some(build) = host.build else {
        if isolation != Isolation::HostProcess {
            return Finding {
                reason: "the host's Windows version is unknown, and determines which image of \
                         the index is selected"
                    .to_owned(),
                ..by_version(host, None, None, isolation)
            };
        }
        let mut of_windows = (0..variants.len()).filter(|place| variants[*place].os == "windows");
        return match of_windows.next() {
            Some(place) => by_variant(host, variants, place, isolation),
            None => no_match(host, variants, isolation),
        };
    };
    let found = by_choices(host, variants, &choices(host, build, variants), isolation);
    if found.outcome != VerdictOutcome::Incompatible {
        return found;
    }
    match by_own_platforms(host, build, variants, isolation) {
        Some(own) => hidden(&own, found),
        None => found,
    }
}

/// The finding if the index stated the platforms of its images, where that makes one start.
fn by_own_platforms(
    host: &HostKind,
    build: HostBuild,
    variants: &[Variant],
    isolation: Isolation,
) -> Option<Finding> {
    if !variants.iter().any(Variant::is_misstated) {
        return None;
    }
    let variants: Vec<Variant> = variants.iter().map(Variant::with_own_platform).collect();
    let choices = choices(host, build, &variants);
    let found = by_choices(host, &variants, &choices, isolation);
    (severity(found.outcome) < severity(VerdictOutcome::Unknown)).then_some(found)
}

/// The variant that would start on a host if the index stated the platforms of its images.
pub(super) fn own_variant(host: &HostKind, image: &Image, isolation: Isolation) -> Option<usize> {
    by_own_platforms(host, host.build?, image.variants(), isolation)?.variant
}

/// Finding for a host that has an image in the index, which the index states wrongly.
fn hidden(own: &Finding, found: Finding) -> Finding {
    let image = match own.image_build {
        Some(version) => format!("image {version}"),
        None => "an image".to_owned(),
    };
    Finding {
        rule: Concern::ContradictingEntry.name(),
        reason: format!(
            "{}; {image} of the index would start, but entries of the index state another platform \
             than their images, or no os.version",
            found.reason
        ),
        fix: Some(NEW_INDEX.to_owned()),
        is_hidden: true,
        ..found
    }
}

/// Variants that versions of a host's runtime select, or could select if its build is unknown.
pub(super) fn taken(host: &HostKind, image: &Image) -> Vec<usize> {
    let variants = image.variants();
    match (&image.content, host.build) {
        (ImageContent::Single(_), _) => vec![0],
        (_, Some(build)) => {
            let choices = choices(host, build, variants).into_iter();
            choices.filter_map(|choice| choice.entry).collect()
        }
        (_, None) => (0..variants.len())
            .filter(|place| variants[*place].os == "windows")
            .collect(),
    }
}

/// What versions of a host's runtime select.
pub(super) fn choices(
    host: &HostKind,
    build: HostBuild,
    variants: &[Variant],
) -> Vec<RuntimeChoice> {
    let entries: Vec<_> = variants.iter().map(Variant::entry).collect();
    choose(&entries, build, &host.architecture, host.runtime)
}

/// Checks what a host selects: the worst finding if versions of its runtime differ.
fn by_choices(
    host: &HostKind,
    variants: &[Variant],
    choices: &[RuntimeChoice],
    isolation: Isolation,
) -> Finding {
    let taken = choices.iter().filter_map(|choice| {
        let finding = by_variant(host, variants, choice.entry?, isolation);
        Some((finding, &choice.by))
    });
    let mut taken: Vec<(Finding, &String)> = taken.collect();
    taken.sort_by_key(|(finding, _)| Reverse(severity(finding.outcome)));
    let refused = choices.iter().find(|choice| choice.entry.is_none());
    let (worst, by) = match (taken.first(), refused) {
        (Some((worst, _)), Some(refused)) if severity(worst.outcome) == 0 => {
            return Finding {
                outcome: VerdictOutcome::Warning,
                ..filtered(host, worst, &refused.by)
            };
        }
        (Some(worst), _) => worst.clone(),
        (None, refused) => {
            return match (refused, would_start(host, variants, isolation)) {
                (Some(refused), Some(best)) => Finding {
                    variant: None,
                    ..filtered(host, &best, &refused.by)
                },
                _ => no_match(host, variants, isolation),
            };
        }
    };
    let best = taken
        .last()
        .filter(|(best, _)| best.outcome != worst.outcome);
    let other = match best {
        Some((best, others)) => best.image_build.map(|other| (other, Some(*others))),
        None => better(host, variants, &worst, isolation).map(|other| (other, None)),
    };
    let Some((other, others)) = other else {
        return worst;
    };
    let others = others.map(|others| format!("; {others} would select {other}"));
    let others = others.unwrap_or_else(|| format!(", though it has {other}"));
    Finding {
        reason: format!(
            "{}: {by} selects this entry of the index{others}",
            worst.reason
        ),
        ..worst
    }
}

/// Finding of the entry that would start best if it were selected.
fn would_start(host: &HostKind, variants: &[Variant], isolation: Isolation) -> Option<Finding> {
    let own = |place: &usize| {
        let variant = &variants[*place];
        let without_windows = variant.host_process && isolation == Isolation::HostProcess;
        variant.os == "windows"
            && variant.architecture == host.architecture
            && (variant.version.is_some() || without_windows)
    };
    (0..variants.len())
        .filter(own)
        .map(|place| by_variant(host, variants, place, isolation))
        .filter(|finding| finding.outcome != VerdictOutcome::Unknown)
        .min_by_key(|finding| severity(finding.outcome))
        .filter(|finding| severity(finding.outcome) < severity(VerdictOutcome::Unknown))
}

/// Version of an entry that would start where the selected one does not.
fn better(
    host: &HostKind,
    variants: &[Variant],
    taken: &Finding,
    isolation: Isolation,
) -> Option<WindowsVersion> {
    let best = would_start(host, variants, isolation)?;
    let is_better = taken.outcome == VerdictOutcome::Incompatible && variants.len() > 1;
    best.image_build.filter(|_| is_better)
}

/// Finding for an image that would start, but that the runtime refuses to pull.
fn filtered(host: &HostKind, finding: &Finding, by: &str) -> Finding {
    let reason = format!("{}, but {by} refuses to pull it there", finding.reason);
    let has_windows = finding.image_build.is_some();
    let instead = if has_windows && takes_a_base(host) {
        "build the image for this host too"
    } else {
        "keep its pods off it"
    };
    // Only an image without Windows has no version.
    let versions = host.build.zip(finding.image_build).map_or_else(
        || ContainerRuntime::FOR_UNVERSIONED.to_owned(),
        |(host, image)| ContainerRuntime::containerd_for(host.version.build, image.build),
    );
    let fix = format!("move the node to {versions}, or {instead}");
    Finding {
        image_build: finding.image_build,
        variant: finding.variant,
        ..concern(Concern::FilteredAtPull, reason, fix, finding.isolation)
    }
}

fn by_variant(
    host: &HostKind,
    variants: &[Variant],
    place: usize,
    isolation: Isolation,
) -> Finding {
    let variant = &variants[place];
    if let Some(problem) = contradiction(host, variant, isolation) {
        return Finding {
            variant: Some(place),
            ..problem
        };
    }
    if let Some(image) = other_build(variant) {
        let found = by_version(host, Some(image), Some(place), isolation);
        let reason = format!(
            "{}; its entry of the index is for {}",
            found.reason,
            variant.platform()
        );
        let is_good = severity(found.outcome) <= severity(VerdictOutcome::Warning);
        return Finding {
            rule: if is_good {
                Concern::ContradictingEntry.name()
            } else {
                found.rule
            },
            outcome: found.outcome.max(VerdictOutcome::Warning),
            fix: found.fix.or_else(|| Some(NEW_INDEX.to_owned())),
            reason,
            ..found
        };
    }
    if !variant.host_process || isolation == Isolation::HostProcess {
        let found = by_version(host, variant.version, Some(place), isolation);
        let is_of_image = found.outcome == VerdictOutcome::Unknown && variant.version.is_none();
        return if is_of_image && host.build.is_some() {
            without_version(variant, found)
        } else {
            found
        };
    }
    let reason = "the image contains no Windows, so only a host process container can run it";
    let fix = if has_windows_inside(variants) {
        build_too(host)
    } else {
        "set securityContext.windowsOptions.hostProcess of the pod, or build on a base with Windows"
            .to_owned()
    };
    Finding {
        variant: Some(place),
        ..concern(Concern::HostProcessUnsupported, reason, fix, isolation)
    }
}

/// Fix for an index that states its images wrongly.
pub(super) const NEW_INDEX: &str = "write the index again, from its images' own platforms";

/// Finding for an image whose configuration does not say its version.
fn without_version(variant: &Variant, found: Finding) -> Finding {
    let reason = match variant.os_version.as_deref() {
        None | Some("") => "the image's configuration has no os.version".to_owned(),
        Some(text) => format!("the image's os.version {text:?} is not a version of Windows"),
    };
    let fix = "set os_version in the file for --images that wincimg image inspect --format json \
               writes, check a version by itself with --image-build 17763.973, or build the image \
               again, which states it";
    Finding {
        reason,
        fix: Some(fix.to_owned()),
        ..found
    }
}

/// Finding for an entry of an index whose manifest is missing or for another system.
fn contradiction(host: &HostKind, variant: &Variant, isolation: Isolation) -> Option<Finding> {
    let entry = variant.platform();
    let (rule, reason, fix) = match &variant.content {
        EntryContent::Unread => return None,
        EntryContent::Missing => (
            Concern::MissingManifest,
            format!("the index lists an image for {entry} that does not exist (404)"),
            "push the image again, with its index".to_owned(),
        ),
        EntryContent::Unreadable(reason) => return Some(unreadable(reason, None, isolation)),
        EntryContent::Image { os, architecture } => {
            let is_same = |own: &str, stated: &str| own.is_empty() || own == stated;
            let (rule, fix) = if !is_same(os, &variant.os) {
                (Concern::NotWindows, NEW_INDEX.to_owned())
            } else if !is_same(architecture, &variant.architecture) {
                // A right index would not have an image for this host either.
                (Concern::ContradictingEntry, build_too(host))
            } else {
                return None;
            };
            let own = Variant {
                os: os.clone(),
                architecture: architecture.clone(),
                ..Variant::default()
            };
            let own = match own.artifact() {
                Some(kind) => format!("an artifact of type {kind}"),
                None => format!("for {}", own.platform()),
            };
            let reason = format!("the index has this image for {entry}, but it is {own}");
            (rule, reason, fix)
        }
    };
    Some(Finding {
        outcome: VerdictOutcome::Incompatible,
        ..concern(rule, reason, fix, isolation)
    })
}

/// Version of an image of another build than its entry of the index.
fn other_build(variant: &Variant) -> Option<WindowsVersion> {
    let stated: WindowsVersion = variant.os_version.as_deref()?.parse().ok()?;
    variant.version.filter(|own| own.build != stated.build)
}

fn has_windows_inside(variants: &[Variant]) -> bool {
    let mut of_windows = variants.iter().filter(|variant| variant.os == "windows");
    of_windows.any(|variant| !variant.host_process)
}

fn by_version(
    host: &HostKind,
    version: Option<WindowsVersion>,
    variant: Option<usize>,
    isolation: Isolation,
) -> Finding {
    let verdict = judge_versions(host.build, version, isolation);
    let hosts = host.versions().unwrap_or_default();
    let rule = (verdict.outcome, verdict.rule.name());
    Finding {
        fix: verdict.fix.map(|fix| match verdict.outcome {
            // It starts already, so a new image would not help.
            VerdictOutcome::Warning => fix.to_string(),
            _ => in_words(fix, host),
        }),
        image_build: version,
        variant,
        ..Finding::new(rule, verdict.reason_for(&hosts), isolation)
    }
}

fn no_match(host: &HostKind, variants: &[Variant], isolation: Isolation) -> Finding {
    let wanted = match host.build {
        Some(build) => format!(
            "windows/{} for build {}",
            host.architecture, build.version.build
        ),
        None => format!("windows/{}", host.architecture),
    };
    let reason = format!(
        "the image has no entry for the node's runtime: expected {wanted}, found {}",
        platforms(variants)
    );
    let fix = build_too(host);
    concern(Concern::NoMatchingPlatform, reason, fix, isolation)
}

fn not_windows(found: &str, isolation: Isolation) -> Finding {
    if found.is_empty() {
        let reason = "the image is an index without images";
        let fix = "name an image, or build this one again";
        return concern(Concern::NotWindows, reason, fix, isolation);
    }
    let fix = "name an image for Windows, or keep its pods off these nodes with nodeSelector: \
               {kubernetes.io/os: linux}";
    let reason = format!("the image is not for Windows: found {found}");
    concern(Concern::NotWindows, reason, fix, isolation)
}

/// Describes a fix. Patching requires a drain, so it is listed after the rebuild.
fn in_words(fix: Fix, host: &HostKind) -> String {
    match (fix, host.build) {
        (Fix::RebuildImage { .. }, _) => by_build(host, fix.to_string()),
        (Fix::PatchHost { to, kb }, Some(host)) => {
            let rebuild = Fix::RebuildImage {
                host,
                or_hyperv: false,
            };
            let with = kb
                .map(|kb| format!(" with {}", kb.describe()))
                .unwrap_or_default();
            format!("{rebuild}; or drain the host and update it to {to}{with}")
        }
        (fix, _) => fix.to_string(),
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

fn platforms(variants: &[Variant]) -> String {
    let mut names: Vec<String> = variants.iter().map(Variant::platform).collect();
    names.dedup();
    first_names(names.into_iter(), 8)
}
