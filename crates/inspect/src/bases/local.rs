//! Bases in OCI layouts and docker-archives.

use wincimg_common::diagnose::{BoxError, Problem};
use wincimg_oci::document::{Document, Image};
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::{Location, Source};
use wincimg_windows::compat::HostBuild;
use wincimg_windows::version::WindowsVersion;

use super::best_fit::{BaseMatch, Fit};
use super::tag_target::{is_for_nodes, windows_version};

/// Reads the image of a place, or the best one of its index for a host, and its version.
pub async fn read_local_base(
    location: &Location,
    registry: &RegistryClient,
    host: HostBuild,
    wanted: BaseMatch,
) -> Result<(WindowsVersion, Image), BoxError> {
    let source = Source::open(location, registry).await?;
    let manifests = match source.resolve(location.tag_or_digest()).await? {
        Document::Manifest(manifest) => vec![*manifest],
        Document::Index(index) => {
            let mut manifests = Vec::new();
            for entry in &index.manifests {
                if !is_for_nodes(entry, host.architecture) {
                    continue;
                }
                if let Document::Manifest(manifest) = source.document(entry).await? {
                    manifests.push(*manifest);
                }
            }
            manifests
        }
    };
    let mut reasons = Vec::new();
    let mut best: Option<(Fit, WindowsVersion, Image)> = None;
    for manifest in manifests {
        let image = source.image(manifest).await?;
        let os_version = match windows_version(&image, host.architecture) {
            Ok(version) => version,
            Err(reason) => {
                reasons.push(reason);
                continue;
            }
        };
        let Some(fit) = Fit::of(os_version, host, wanted) else {
            reasons.push(format!("its image is {}", os_version.os_version()));
            continue;
        };
        if best.as_ref().is_none_or(|(known, ..)| *known < fit) {
            best = Some((fit, os_version, image));
        }
    }
    let found = best.map(|(_, os_version, image)| (os_version, image));
    found.ok_or_else(|| {
        let reasons = if reasons.is_empty() {
            format!("it has no image for windows/{}", host.architecture.name())
        } else {
            reasons.join("; ")
        };
        let problem = format!("{location} has no image for the host {host}: {reasons}");
        Problem::answer("base/nothing-fits", problem).into()
    })
}
