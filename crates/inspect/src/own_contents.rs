//! Contents of an image's own layers: those that are not Windows itself, merged.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{Read as _, Take};
use std::sync::Arc;

use wincimg_common::diagnose::Problem;
use wincimg_common::progress::Progress;
use wincimg_oci::document::{Descriptor, Image};
use wincimg_oci::store::Source;
use wincimg_registry::Root;

use super::entries::Layout;
use super::extract::{ExtractedEntry, FoundEntry, resolve_links, search, unreadable};
use super::facts::ImageFacts;
use super::layers::{ROOT_ALONE, SMALL_LAYER, base_files, has_root_alone};
use super::registry::{RegistryFormat, RegistryReport, analyse};

/// History entries of the layers of Microsoft's bases.
const STEPS_OF_WINDOWS: [&str; 2] = ["Apply image ", "Install update "];

/// The contents of an image without Windows.
#[derive(Debug, Default)]
pub struct OwnContents {
    /// Files and folders, by paths from the drive's root with slashes.
    pub files: BTreeMap<String, ExtractedEntry>,
    /// Deleted paths in lower case.
    pub gone: Vec<String>,
    /// Registry changes as a registration file; none if there are no changes.
    pub registry: Option<String>,
    /// The included layers, counted from 1 at the bottom.
    pub layers: Vec<usize>,
    /// The layers of Windows itself, with their stored sizes.
    pub windows: Vec<(usize, u64)>,
}

/// Returns for each layer whether it is Windows itself: foreign layers, those that Microsoft applied
/// according to the history, and a bottom layer that is large, in an image for one Windows version,
/// or has a registry.
pub(super) async fn windows_layers(
    source: &Source,
    image: &Image,
    progress: &Arc<dyn Progress>,
) -> Result<Vec<bool>, Problem> {
    let facts = ImageFacts::new(image);
    let mut found: Vec<bool> = Vec::new();
    for (number, blob) in image.manifest().layers.iter().enumerate() {
        found.push(match is_windows(&facts, number, blob) {
            Some(is_windows) => is_windows,
            None => has_registry_of_windows(source, blob, progress).await?,
        });
    }
    Ok(found)
}

/// Returns whether a layer is Windows itself; none if only its contents show it.
fn is_windows(facts: &ImageFacts, number: usize, blob: &Descriptor) -> Option<bool> {
    let layer = facts.layers.get(number);
    let step = layer.and_then(|layer| layer.created_by.as_deref());
    let step_of_windows = |step: &str| {
        let mut steps = STEPS_OF_WINDOWS.iter();
        steps.any(|known| step.starts_with(known))
    };
    if layer.is_none_or(|layer| layer.foreign) || step.is_some_and(step_of_windows) {
        return Some(true);
    }
    // Images of `HostProcess` containers have no version.
    let is_large = blob.size > SMALL_LAYER && facts.os_version.is_some();
    match number {
        0 if is_large => Some(true),
        0 => None,
        _ => Some(false),
    }
}

/// Reads an image's own layers to their end.
pub async fn read_own_contents(
    source: &Source,
    image: &Image,
    progress: &Arc<dyn Progress>,
) -> Result<OwnContents, Problem> {
    let mut own = OwnContents::default();
    let windows = windows_layers(source, image, progress).await?;
    let mut layers: Vec<(usize, &Descriptor)> = Vec::new();
    for (number, (blob, is_windows)) in image.manifest().layers.iter().zip(windows).enumerate() {
        if is_windows {
            own.windows.push((number + 1, blob.size));
        } else {
            layers.push((number, blob));
        }
    }
    own.layers = layers.iter().map(|(number, _)| number + 1).collect();
    let everything = BTreeSet::from([String::new()]);
    let found = search(source, &layers, Layout::Windows, &everything, progress).await?;
    own.gone = found.gone;
    // A hard link to a file in Windows' layers stays a link.
    let layout = Layout::Windows;
    own.files = resolve_links(source, &layers, layout, found.entries, progress).await?;
    if !found.hives.is_empty() {
        let mut hives = found.hives;
        for hives in &mut hives {
            // The registry of Windows in the bottom layer is not included.
            hives.layer = hives.layer.max(1);
        }
        let read = move || analyse(&hives, Some(RegistryFormat::File));
        // It fails only while the program is being terminated, and then the result is not used.
        if let Ok(mut findings) = tokio::task::spawn_blocking(read).await {
            if let Some(problem) = findings.problems.pop() {
                return Err(unreadable(&problem.digest, problem.source));
            }
            if let Some(RegistryReport::File(text)) = findings.registry {
                own.registry = Some(text);
            }
        }
    }
    Ok(own)
}

/// An image for `HostProcess` containers has only stubs there.
async fn has_registry_of_windows(
    source: &Source,
    bottom: &Descriptor,
    progress: &Arc<dyn Progress>,
) -> Result<bool, Problem> {
    let file = base_files(Root::System)[0];
    let path = file.strip_prefix("Files/").unwrap_or(file).to_owned();
    let found = search(
        source,
        &[(0, bottom)],
        Layout::Windows,
        &BTreeSet::from([path]),
        progress,
    )
    .await?;
    let mut found = found.entries.into_values();
    Ok(found.any(|seen| match seen {
        FoundEntry::Taken(ExtractedEntry::File(part)) => {
            let mut bytes = Vec::new();
            let read = |mut file: Take<File>| file.read_to_end(&mut bytes);
            let is_read = part.length() <= ROOT_ALONE && part.open().and_then(read).is_ok();
            !(is_read && has_root_alone(&bytes))
        }
        // Windows' own layers have it as a hard link.
        FoundEntry::Again { .. } => true,
        FoundEntry::Taken(_) => false,
    }))
}

#[cfg(test)]
mod tests {
    use wincimg_oci::document::{History, ManifestFormat, Platform, sha256};

    use super::*;

    #[test]
    fn a_large_bottom_layer_is_windows_in_an_image_with_a_version() {
        let host_process = Platform {
            os_version: None,
            ..Platform::windows("")
        };
        for (platform, size, expected) in [
            (
                Platform::windows("10.0.17763.973"),
                SMALL_LAYER + 1,
                Some(true),
            ),
            (Platform::windows("10.0.17763.973"), SMALL_LAYER, None),
            (host_process, SMALL_LAYER + 1, None),
        ] {
            let image = Image::empty(ManifestFormat::Oci, platform).unwrap();
            let digest = sha256(b"");
            let blob = Descriptor::new("application/x", digest.clone(), size);
            let image = image.append_layer(blob.clone(), digest, History::default());
            let facts = ImageFacts::new(&image.unwrap());
            assert_eq!(is_windows(&facts, 0, &blob), expected);
        }
    }
}
