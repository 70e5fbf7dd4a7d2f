//! Warnings about images that are out of support, too large, stop too early or have a floating tag.

use wincimg_oci::reference::parse_reference;
use wincimg_windows::compat::{Concern, ContainerRuntime, Isolation};
use wincimg_windows::release;
use wincimg_windows::version::WindowsVersion;

use super::super::fix_text::of_pause_image;
use super::super::image::Image;
use super::super::placement::{PlacedImage, Placement};
use super::super::verdict::needs_pause_image;
use super::super::{Finding, Rollout};
use super::warn;
use crate::pod::Hyperv;
use crate::workloads::Workload;

/// Bytes that a node with 100 Mbit/s downloads in the minute that dockershim's kubelet waits.
const PULLED_IN_A_MINUTE: u64 = 60 * 100_000_000 / 8;

pub(super) fn about_image(
    rollout: &Rollout,
    workload: Option<&Workload>,
    placement: &Placement,
    placed: &PlacedImage,
) -> Vec<Finding> {
    let image = &rollout.images[placed.image];
    let mut found = end_of_support(rollout, placed);
    if let Some(workload) = workload {
        found.extend(pull_deadline(rollout, image, placement, placed));
        found.extend(grace_period(rollout, workload, image, placement, placed));
        found.extend(pause_image(rollout, workload, placement, placed));
        found.extend(floating_tag(image));
    }
    found
}

/// A warning for each release whose support has ended, of the images for the hosts.
fn end_of_support(rollout: &Rollout, placed: &PlacedImage) -> Vec<Finding> {
    let findings = placed.findings.iter();
    let mut versions: Vec<WindowsVersion> =
        findings.filter_map(|finding| finding.image_build).collect();
    versions.sort_unstable();
    versions.dedup_by_key(|version| version.build);
    let ended = versions.into_iter().filter_map(|version| {
        let release = release::from_build(version.build)?;
        let end = release
            .extended_end
            .filter(|end| Some(*end) < rollout.today)?;
        let name = release.name;
        Some(Finding {
            image_build: Some(version),
            ..warn(
                Concern::EndOfSupport,
                format!("the image is built on {name}, which got its last update on {end}"),
                "build the image on a release that is supported, and move its nodes there",
            )
        })
    });
    ended.collect()
}

/// The warning about an image that does not start with containerd's usual pause image, one for the
/// host.
fn pause_image(
    rollout: &Rollout,
    workload: &Workload,
    placement: &Placement,
    placed: &PlacedImage,
) -> Option<Finding> {
    if workload.template.hyperv != Hyperv::OfContainerd {
        return None;
    }
    let groups = placement.selection.groups.iter().zip(&placed.findings);
    let mut older = groups.filter_map(|(group, finding)| {
        let (host, image) = (rollout.kinds[group.kind].build?, finding.image_build?);
        needs_pause_image(host, image, finding).then_some((host.version.build, image))
    });
    let (host, image) = older.next()?;
    Some(warn(
        Concern::PauseImage,
        format!(
            "containerd boots the virtual machine from a pause image, by default one of the host's \
             build {host}, which does not run image {image}"
        ),
        of_pause_image(image.build, host),
    ))
}

fn pull_deadline(
    rollout: &Rollout,
    image: &Image,
    placement: &Placement,
    placed: &PlacedImage,
) -> Option<Finding> {
    let groups = placement.selection.groups.iter().zip(&placed.findings);
    let too_large = groups.filter_map(|(group, finding)| {
        let is_docker = rollout.kinds[group.kind].runtime == ContainerRuntime::Docker;
        let size = image.variants().get(finding.variant?)?.size?;
        (is_docker && size > PULLED_IN_A_MINUTE).then_some((size, group.hosts.len()))
    });
    let (size, nodes) = too_large.reduce(|(a, m), (b, n)| (a.max(b), m + n))?;
    let gigabytes = format!("{}.{}", size / 1_000_000_000, size / 100_000_000 % 10);
    Some(warn(
        Concern::PullDeadline,
        format!(
            "the image has {gigabytes} GB to download, more than 100 Mbit/s transfer in a minute, \
             and the kubelet gives up after one minute on {} with Docker",
            if nodes == 1 {
                "1 node".to_owned()
            } else {
                format!("{nodes} nodes")
            }
        ),
        "start the kubelet, or cri-dockerd, on these nodes with --image-pull-progress-deadline=30m",
    ))
}

/// Under Docker the image's Windows registry limits the time to stop. containerd raises one of the
/// two values to that of the pod; whether the other still ends a process is not proven.
fn grace_period(
    rollout: &Rollout,
    workload: &Workload,
    image: &Image,
    placement: &Placement,
    placed: &PlacedImage,
) -> Vec<Finding> {
    let Some(wanted) = workload.template.grace_seconds else {
        return Vec::new();
    };
    let shortest = |is_docker: bool| {
        let groups = placement.selection.groups.iter().zip(&placed.findings);
        groups
            .filter(|(group, finding)| {
                finding.isolation != Isolation::HostProcess
                    && (rollout.kinds[group.kind].runtime == ContainerRuntime::Docker) == is_docker
            })
            .filter_map(|(_, finding)| image.variants().get(finding.variant?)?.stop_seconds)
            .min()
            .filter(|allowed| *allowed < wanted)
    };
    let docker = shortest(true).map(|allowed| {
        format!(
            "the pod gives its containers {wanted} s to stop, but the image's registry limits \
             it to {allowed} s"
        )
    });
    let containerd = shortest(false).map(|allowed| {
        format!(
            "the pod gives its containers {wanted} s to stop, which containerd passes on, but it is \
             not proven that Windows waits longer than the {allowed} s of the image's registry"
        )
    });
    let fix = format!(
        "set ProcessShutdownTimeoutSeconds and WaitToKillServiceTimeout in the image to {wanted} s, \
         as shutdown_timeout = {wanted} in a recipe does; where shim.exe is the entry point, set \
         WINCIMG_STOP_TIMEOUT={wanted} in the pod too"
    );
    [docker, containerd]
        .into_iter()
        .flatten()
        .map(|reason| warn(Concern::GracePeriod, reason, fix.as_str()))
        .collect()
}

fn floating_tag(image: &Image) -> Option<Finding> {
    let text = image.reference.as_deref()?;
    let reference = parse_reference(text).ok()?;
    if reference.digest().is_some() {
        return None;
    }
    let tag = reference.tag().unwrap_or("latest");
    // Microsoft's base images, and images that follow their scheme, have a tag for each release of
    // Windows.
    let last = tag.rsplit('-').next().unwrap_or(tag);
    let is_release = release::from_tag_word(last).is_some()
        || release::all().iter().any(|release| {
            let mut words = release.name.split(|c: char| !c.is_ascii_alphanumeric());
            // Shorter words are numbers such as those of Windows 10 and 11.
            words.any(|word| word.len() > 3 && word == last)
        });
    let names_a_version = tag.contains(|c: char| c.is_ascii_digit());
    (is_release || !names_a_version).then(|| {
        warn(
            Concern::FloatingTag,
            format!(
                "the tag {tag} can point to another image tomorrow, even to one that does not start"
            ),
            "name a version's tag or a digest",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::ImageContent;

    fn floats(reference: &str) -> bool {
        let image = Image {
            reference: Some(reference.to_owned()),
            content: ImageContent::Index(Vec::new()),
        };
        floating_tag(&image).is_some()
    }

    #[test]
    fn a_tag_floats_unless_it_names_a_version() {
        for reference in [
            "app",
            "repo/app:latest",
            "repo/app:stable",
            "mcr.microsoft.com/windows/nanoserver:ltsc2022",
            "mcr.microsoft.com/windows/nanoserver:1809",
            "mcr.microsoft.com/dotnet/framework/aspnet:4.8-windowsservercore-ltsc2019",
        ] {
            assert!(floats(reference), "{reference}");
        }
        let digest = "0".repeat(64);
        for reference in [
            "repo/app:1.4",
            "repo/app:v2",
            "mcr.microsoft.com/windows/nanoserver:10.0.17763.973",
            &format!("repo/app@sha256:{digest}"),
            &format!("repo/app:latest@sha256:{digest}"),
        ] {
            assert!(!floats(reference), "{reference}");
        }
    }
}
