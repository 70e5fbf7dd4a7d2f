//! What makes an image start on a host, in words: mostly a build for it.

use wincimg_oci::store::Location;
use wincimg_windows::compat::{
    Concern, ContainerRuntime, Fix, Isolation, VerdictOutcome, WindowsEdition, accepted_builds,
    base_release_for,
};

use super::finding::{Finding, HostKind};
use super::image::{Image, ImageContent, Variant};

/// Returns true if the image starts there or a plan can make it: an image that could not be read is
/// unknown, one for Linux is not replaced, one that contains no Windows is the same after a
/// rebuild, one that only its index hides exists, and some hosts run no image at all, or pull none
/// that they run from an index.
pub(super) fn is_fixable(finding: &Finding, image: &Image, host: &HostKind) -> bool {
    let is_old_client = host.build.is_some_and(|build| {
        build.edition == WindowsEdition::Client && accepted_builds(build.version.build).count() == 1
    });
    finding.outcome != VerdictOutcome::Unknown
        && !is_of_host_process(finding, image)
        && finding.rule != Concern::NotWindows.name()
        && !finding.is_of_pod
        && !finding.is_hidden
        && finding.isolation != Isolation::HostProcess
        && !(finding.isolation == Isolation::Process && is_old_client)
        && host.architecture == "amd64"
        && image.is_readable()
        && !refuses_rebuilt(host, image)
}

/// Returns true if no other image helps: the host runs no host process containers, or the image
/// starts as one only.
pub(super) fn is_of_host_process(finding: &Finding, image: &Image) -> bool {
    finding.rule == Concern::HostProcessUnsupported.name()
        && (finding.isolation == Isolation::HostProcess || !has_windows_inside(image.variants()))
}

/// The build of a host's base if the host's runtime refuses its images in an index.
pub(super) fn refused_in_index(host: &HostKind) -> Option<u32> {
    let build = host.build?.version.build;
    let base = base_release_for(build)?.build;
    (!host.runtime.may_accept(build, base)).then_some(base)
}

/// Returns true if a host's runtime refuses what a plan builds for the host: an index, as the image
/// stays for others too, unless an archive holds it.
fn refuses_rebuilt(host: &HostKind, image: &Image) -> bool {
    let is_archive = || matches!(image.location(), Some(Location::Archive { .. }));
    refused_in_index(host).is_some_and(|base| match &image.content {
        ImageContent::Index(_) => true,
        ImageContent::Single(own) => {
            own.version.is_none_or(|own| own.build != base) && !is_archive()
        }
        _ => false,
    })
}

/// Fix for an index that states its images wrongly.
pub(super) const NEW_INDEX: &str = "write the index again, from its images' own platforms";

/// The runtime of a host in a fix, until the host has a name.
pub(super) const ITS_CONTAINERD: &str = "its containerd";

/// The fix by a build for a host, with a tag of its own if the host's runtime refuses it in an index.
fn by_build(host: &HostKind, build: String) -> String {
    if refused_in_index(host).is_none() {
        return build;
    }
    format!("{build}; {ITS_CONTAINERD} refuses it in an index, so give it a tag of its own")
}

/// The fix where an index has no image for a host.
pub(super) fn build_too(host: &HostKind) -> String {
    by_build(host, "build the image for this host too".to_owned())
}

/// Returns true if a host's runtime certainly accepts an image that is built for it.
pub(super) fn takes_a_base(host: &HostKind) -> bool {
    host.build.is_some_and(|host_build| {
        let build = host_build.version.build;
        let release = base_release_for(build);
        release.is_some_and(|release| host.runtime.certainly_accepts(build, release.build))
    })
}

/// Returns true if one of these images contains Windows.
pub(super) fn has_windows_inside(variants: &[Variant]) -> bool {
    let mut of_windows = variants.iter().filter(|variant| variant.os == "windows");
    of_windows.any(|variant| !variant.host_process)
}

/// Describes a fix. Patching requires a drain, so it is listed after the rebuild.
pub(super) fn in_words(fix: Fix, host: &HostKind) -> String {
    match (fix, host.build) {
        (Fix::RebuildImage { .. }, _) => by_build(host, with_pause_image(fix, host)),
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
        (fix, _) => with_pause_image(fix, host),
    }
}

/// A fix in words. containerd boots the virtual machine of Hyper-V isolation from the pause image.
fn with_pause_image(fix: Fix, host: &HostKind) -> String {
    let is_hyperv = match fix {
        Fix::RebuildImage { or_hyperv, .. } => or_hyperv,
        Fix::UseHyperV | Fix::RebuildForHyperV { .. } => true,
        Fix::PatchHost { .. } | Fix::TryFirst | Fix::FindVersion => false,
    };
    // Of a host without a version of its runtime, this is not known.
    let is_containerd = host.runtime != ContainerRuntime::CONTAINERD
        && matches!(host.runtime, ContainerRuntime::Containerd(_));
    if is_hyperv && is_containerd {
        format!("{fix} and a pause image of its build")
    } else {
        fix.to_string()
    }
}

/// The fix for an image of a build in a virtual machine of another one.
pub(super) fn of_pause_image(image: u32, machine: u32) -> String {
    format!(
        "use a runtime class whose sandbox image has build {image}, or build the image again for \
         build {machine}"
    )
}

/// Reason and fix for a runtime class that is not in the input.
pub(super) fn of_missing_class(class: &str) -> (String, String) {
    (
        format!(
            "its runtime class {class} is not in the input: its handler, node selector and \
             tolerations decide where and how its pods start"
        ),
        "pass its runtime class to --workloads too: kubectl get runtimeclass -o yaml".to_owned(),
    )
}
