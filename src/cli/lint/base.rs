//! Facts about a base image for the linter: its shell and its version of Windows.

use wincimg_dockerfile::lint::{BaseConfig, BaseShell};
use wincimg_inspect::bases::{BaseMatch, Fit};
use wincimg_oci::document::{Descriptor, Document, Index};

use crate::cli::prelude::*;

/// Facts from an image's configuration; of an index, the image for the host.
pub(super) async fn facts(
    location: &Location,
    registry: &RegistryClient,
    host: Option<HostBuild>,
) -> Result<BaseConfig> {
    let source = Source::open(location, registry).await?;
    let manifest = match source.resolve(location.tag_or_digest()).await? {
        Document::Manifest(manifest) => *manifest,
        Document::Index(index) => {
            let Some(entry) = windows_entry(&index, host) else {
                return Ok(NOT_WINDOWS);
            };
            match source.document(entry).await? {
                Document::Manifest(manifest) => *manifest,
                Document::Index(_) => {
                    return Err(Failure::operation(format!(
                        "{location} holds an index within an index"
                    )));
                }
            }
        }
    };
    let image = source.image(manifest).await?;
    let config = image.config();
    if config.os != "windows" {
        return Ok(NOT_WINDOWS);
    }
    let shell = config.config.shell.as_deref().unwrap_or_default();
    Ok(BaseConfig {
        shell: BaseShell::of_config(shell),
        version: version(config.os_version.as_deref()),
        is_windows: true,
    })
}

const NOT_WINDOWS: BaseConfig = BaseConfig {
    shell: BaseShell::Other,
    version: None,
    is_windows: false,
};

/// Version in an image's configuration or index entry.
fn version(os_version: Option<&str>) -> Option<WindowsVersion> {
    os_version?.parse().ok()
}

/// The entry that fits the host best; without a fit or a host, the newest.
fn windows_entry(index: &Index, host: Option<HostBuild>) -> Option<&Descriptor> {
    index
        .manifests
        .iter()
        .filter_map(|entry| {
            let platform = entry.platform.as_ref().filter(|p| p.os == "windows")?;
            let version = version(platform.os_version.as_deref());
            let fit = host
                .zip(version)
                .and_then(|(host, version)| Fit::of(version, host, BaseMatch::Nearest));
            Some(((fit, version), entry))
        })
        .max_by_key(|(rank, _)| *rank)
        .map(|(_, entry)| entry)
}
