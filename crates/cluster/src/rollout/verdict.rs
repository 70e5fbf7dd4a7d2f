//! Check of one image on one kind of host.

use std::cmp::Reverse;

use wincimg_windows::compat::{
    self, CompatRule, Concern, ContainerRuntime, HostBuild, Isolation, RuntimeChoice,
    VerdictOutcome, architecture_name, check as judge_versions, choose,
};
use wincimg_windows::version::WindowsVersion;

use super::finding::{Finding, HostKind, concern};
use super::first_names;
use super::fix_text::{NEW_INDEX, build_too, has_windows_inside, in_words, takes_a_base};
use super::image::{EntryContent, Image, ImageContent, Variant};

pub(super) fn find(host: &HostKind, image: &Image, isolation: Isolation) -> Finding {
    if isolation == Isolation::HostProcess
        && let Some(refused) = without_host_process(host)
    {
        return refused;
    }
    match &image.content {
        ImageContent::Stated(version) => {
            let variant = Variant {
                architecture: host.architecture.clone(),
                ..Variant::of_version(*version)
            };
            Finding {
                variant: None,
                ..single(host, &variant, isolation)
            }
        }
        ImageContent::Single(variant) => single(host, variant, isolation),
        ImageContent::Index(variants) => of_index(host, variants, isolation),
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
    by_variant(host, std::slice::from_ref(variant), 0, isolation)
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
    let choices = choices(host, build, variants);
    let is_none = |choice: &RuntimeChoice| choice.entry.is_none();
    if choices.iter().any(is_none) && has_hidden_image(host, variants) {
        return without_platform(isolation);
    }
    let found = by_choices(host, variants, &choices, isolation);
    if found.outcome != VerdictOutcome::Incompatible {
        return found;
    }
    match by_own_platforms(host, build, variants, isolation) {
        Some(own) => hidden(&own, found),
        None => found,
    }
}

/// Returns true if an entry without a usable platform has an image for a host.
fn has_hidden_image(host: &HostKind, variants: &[Variant]) -> bool {
    let mut hidden = variants.iter().filter(|variant| variant.without_platform);
    hidden.any(|variant| variant.os == "windows" && variant.architecture == host.architecture)
}

fn without_platform(isolation: Isolation) -> Finding {
    let rule = CompatRule::UnknownBuild;
    let reason = "the index has entries without a platform, or other indexes, which runtimes read \
                  differently";
    Finding {
        fix: Some(NEW_INDEX.to_owned()),
        ..Finding::new((rule.outcome(), rule.name()), reason.to_owned(), isolation)
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
    (found.outcome < VerdictOutcome::Unknown).then_some(found)
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

/// Variants that versions of a host's runtime fetch.
pub(super) fn fetched(host: &HostKind, image: &Image) -> Vec<usize> {
    match (&image.content, host.build) {
        (ImageContent::Index(variants), Some(build)) => {
            let entries: Vec<_> = variants.iter().map(Variant::entry).collect();
            let fetched = compat::fetched(&entries, build, &host.architecture, host.runtime);
            fetched.into_iter().collect()
        }
        _ => taken(host, image),
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
    taken.sort_by_key(|(finding, _)| Reverse(finding.outcome));
    let refused = choices.iter().find(|choice| choice.entry.is_none());
    let (worst, by) = match (taken.first(), refused) {
        (Some((worst, _)), Some(refused)) if worst.outcome == VerdictOutcome::Compatible => {
            return Finding {
                outcome: VerdictOutcome::Warning,
                ..filtered(host, variants, worst, &refused.by)
            };
        }
        (Some(worst), _) => worst.clone(),
        (None, refused) => {
            return match (refused, would_start(host, variants, isolation)) {
                (Some(refused), Some(best)) => Finding {
                    variant: None,
                    ..filtered(host, variants, &best, &refused.by)
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
    let this = format!(": {by} selects this entry of the index");
    let others = match other {
        Some((other, Some(others))) => format!("{this}; {others} would select {other}"),
        Some((other, None)) => format!("{this}, though it has {other}"),
        None => String::new(),
    };
    let none = refused.map(|refused| format!("; {} selects none", refused.by));
    let none = none.unwrap_or_default();
    Finding {
        reason: format!("{}{others}{none}", worst.reason),
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
        .filter(|finding| finding.outcome < VerdictOutcome::Unknown)
        .min_by_key(|finding| finding.outcome)
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
fn filtered(host: &HostKind, variants: &[Variant], finding: &Finding, by: &str) -> Finding {
    let hosts = host.versions().unwrap_or_default();
    let starts = match host.build.zip(finding.image_build) {
        Some((build, image)) if needs_pause_image(build, image, finding) => format!(
            "under Hyper-V isolation host {hosts} runs image {image} with a pause image of the \
             image's build"
        ),
        _ => finding.reason.clone(),
    };
    let mut reason = format!("{starts}, but {by} refuses to pull it there");
    let entry = finding.variant.map(|place| variants[place].entry());
    let refused = entry.and_then(|entry| match (entry.variant, entry.feature) {
        (Some(variant), _) => Some(format!("is for the variant {variant}")),
        (None, feature) => feature.map(|feature| format!("requires the feature {feature}")),
    });
    if let Some(refused) = &refused {
        reason.push_str(": its entry ");
        reason.push_str(refused);
    }
    let instead = match finding.image_build {
        Some(_) if takes_a_base(host) => "build the image for this host too",
        Some(_) => "give the image for it a tag of its own, without an index",
        None => "keep its pods off it",
    };
    // Only an image without Windows has no version.
    let versions = match host.build.zip(finding.image_build) {
        _ if refused.is_some() => None,
        Some((host, image)) => ContainerRuntime::containerd_for(host.version.build, image.build),
        None => Some(ContainerRuntime::FOR_UNVERSIONED.to_owned()),
    };
    let fix = match versions {
        Some(versions) => format!("move the node to {versions}, or {instead}"),
        None => instead.to_owned(),
    };
    Finding {
        image_build: finding.image_build,
        variant: finding.variant,
        ..concern(Concern::FilteredAtPull, reason, fix, finding.isolation)
    }
}

/// Returns true if an image needs a pause image of its own build: under Hyper-V isolation containerd
/// boots the virtual machine from the pause image, by default the host's, and containers share its
/// kernel.
pub(super) fn needs_pause_image(host: HostBuild, image: WindowsVersion, finding: &Finding) -> bool {
    finding.rule == CompatRule::HypervOk.name()
        && image.build < host.version.build
        && !judge_versions(Some(host), Some(image), Isolation::Process).is_startable()
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
        let is_good = found.outcome <= VerdictOutcome::Warning;
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
        "set hostNetwork and securityContext.windowsOptions.hostProcess of the pod, or build on a base \
         with Windows"
            .to_owned()
    };
    Finding {
        variant: Some(place),
        ..concern(Concern::HostProcessUnsupported, reason, fix, isolation)
    }
}

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
            let architectures =
                [architecture, &variant.architecture].map(|it| architecture_name(it));
            let (rule, fix) = if !is_same(os, &variant.os) {
                (Concern::NotWindows, NEW_INDEX.to_owned())
            } else if !is_same(architectures[0], architectures[1]) {
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

/// The other fix for an image for Linux, unless the pod has one for Windows too.
pub(super) const OR_LINUX: &str =
    ", or select nodes with Linux instead: nodeSelector: {kubernetes.io/os: linux}";

fn not_windows(found: &str, isolation: Isolation) -> Finding {
    if found.is_empty() {
        let reason = "the image is an index without images";
        let fix = "name an image, or build this one again";
        return concern(Concern::NotWindows, reason, fix, isolation);
    }
    let fix = format!("name an image for Windows{OR_LINUX}");
    let reason = format!("the image is not for Windows: found {found}");
    concern(Concern::NotWindows, reason, fix, isolation)
}

fn platforms(variants: &[Variant]) -> String {
    let mut names: Vec<String> = variants.iter().map(Variant::platform).collect();
    names.dedup();
    first_names(names.into_iter(), 8)
}
