//! Bases in OCI layouts and docker-archives.

use wincimg_common::diagnose::{Blame, BoxError, Problem};
use wincimg_oci::document::{Document, Image};
use wincimg_oci::remote::RegistryClient;
use wincimg_oci::store::{Location, Source};
use wincimg_windows::compat::HostBuild;
use wincimg_windows::version::WindowsVersion;

use super::best_fit::{BaseMatch, Fit};
use super::tag_target::{is_for_nodes, windows_version};

/// A base in a file or folder.
#[derive(Debug, Clone)]
pub struct LocalBase {
    /// Its place.
    pub location: Location,
    /// Version in its configuration.
    pub os_version: WindowsVersion,
    /// Exact if it has the host's own revision.
    pub matched: BaseMatch,
    /// Manifest and configuration.
    pub image: Image,
}

impl LocalBase {
    /// Reads the image of a place, or the best one of its index for a host.
    pub async fn read(
        location: &Location,
        registry: &RegistryClient,
        host: HostBuild,
        wanted: BaseMatch,
    ) -> Result<Self, BoxError> {
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
        let mut best: Option<(Fit, Self)> = None;
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
            if best.as_ref().is_none_or(|(known, _)| *known < fit) {
                let found = Self {
                    location: location.clone(),
                    os_version,
                    matched: BaseMatch::compare(os_version, host),
                    image,
                };
                best = Some((fit, found));
            }
        }
        best.map(|(_, found)| found).ok_or_else(|| {
            let reasons = if reasons.is_empty() {
                format!("it has no image for windows/{}", host.architecture.name())
            } else {
                reasons.join("; ")
            };
            let problem = format!("{location} has no image for the host {host}: {reasons}");
            Problem::new("base/nothing-fits", problem)
                .blame(Blame::Answer)
                .into()
        })
    }
}
