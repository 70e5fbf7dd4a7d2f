//! What the linter has to know of a base image: its shell and its version of Windows.

use anyhow::anyhow;

use super::super::failure::Failure;
use crate::oci::base::{Fit, Match};
use crate::oci::document::{Descriptor, Document, ImageConfig, Index};
use crate::oci::remote::Registry;
use crate::oci::store::{Location, Source};
use crate::windows::compat::HostBuild;
use crate::windows::version::WindowsVersion;

/// The configuration of an image; of several, the one that the host would take.
pub(super) async fn config_of(
    location: &Location,
    registry: &Registry,
    host: Option<HostBuild>,
) -> Result<ImageConfig, Failure> {
    let source = Source::open(location, registry).await?;
    let manifest = match source.resolve(location.wanted()).await? {
        Document::Manifest(manifest) => *manifest,
        Document::Index(index) => {
            let entry = windows_entry(&index, host).ok_or_else(|| not_windows(location))?;
            match source.document(entry).await? {
                Document::Manifest(manifest) => *manifest,
                Document::Index(_) => {
                    return Err(anyhow!("{location} holds an index within an index").into());
                }
            }
        }
    };
    let image = source.image(manifest).await?;
    let config = image.config();
    if config.os != "windows" {
        return Err(not_windows(location));
    }
    Ok(ImageConfig::clone(config))
}

/// The version that an image's configuration or an index states.
pub(super) fn version(os_version: Option<&str>) -> Option<WindowsVersion> {
    os_version?.parse().ok()
}

/// The entry that fits the host best; where none fits or no host is known, the newest.
fn windows_entry(index: &Index, host: Option<HostBuild>) -> Option<&Descriptor> {
    index
        .manifests
        .iter()
        .filter_map(|entry| {
            let platform = entry.platform.as_ref().filter(|p| p.os == "windows")?;
            let version = version(platform.os_version.as_deref());
            let fit = host
                .zip(version)
                .and_then(|(host, version)| Fit::of(version, host, Match::Nearest));
            Some(((fit, version), entry))
        })
        .max_by_key(|(rank, _)| *rank)
        .map(|(_, entry)| entry)
}

fn not_windows(location: &Location) -> Failure {
    Failure::usage(anyhow!("{location} is not a Windows image"))
        .hint("give --base the image that the Dockerfile's FROM names")
}
