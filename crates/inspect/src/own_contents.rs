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
use super::layers::{ROOT_ALONE, base_files, has_root_alone};
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

/// Returns for each layer whether it is Windows itself: those that Microsoft applied according to the
/// history, other foreign layers without a step there, and a bottom layer that is foreign or has a
/// registry.
pub(super) async fn windows_layers(
    source: &Source,
    image: &Image,
    progress: &Arc<dyn Progress>,
) -> Result<Vec<bool>, Problem> {
    let facts = ImageFacts::new(image);
    let mut found: Vec<bool> = Vec::new();
    for (number, blob) in image.manifest().layers.iter().enumerate() {
        found.push(match is_windows(&facts, number) {
            Some(is_windows) => is_windows,
            None => has_registry_of_windows(source, blob, progress).await?,
        });
    }
    Ok(found)
}

/// Returns whether a layer is Windows itself; none if only its contents show it.
fn is_windows(facts: &ImageFacts, number: usize) -> Option<bool> {
    let layer = facts.layers.get(number);
    let step = layer.and_then(|layer| layer.created_by.as_deref());
    let is_of_windows = step.map(|step| {
        let mut steps = STEPS_OF_WINDOWS.iter();
        steps.any(|known| step.starts_with(known))
    });
    let is_foreign = layer.is_none_or(|layer| layer.foreign);
    match (number, is_of_windows) {
        (_, Some(true)) => Some(true),
        // Layers of programs may be foreign, too.
        (0, _) | (_, None) if is_foreign => Some(true),
        (0, _) => None,
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
    fn windows_is_known_by_its_steps_and_by_foreign_layers_that_are_not_a_programs() {
        const FOREIGN: &str = "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip";
        let platform = Platform::windows("10.0.17763.973");
        let mut image = Image::empty(ManifestFormat::Oci, platform).unwrap();
        let layers = [
            (FOREIGN, "a program"),
            (FOREIGN, "Install update 1809"),
            (FOREIGN, ""),
            (FOREIGN, "COPY a program"),
            ("application/x", "Apply image 1809"),
            ("application/x", ""),
        ];
        for (number, (media_type, step)) in layers.iter().enumerate() {
            let digest = sha256(number.to_string().as_bytes());
            let blob = Descriptor::new(*media_type, digest.clone(), 1 << 30);
            let history = History {
                created_by: Some((*step).to_owned()),
                ..History::default()
            };
            image = image.append_layer(blob, digest, history).unwrap();
        }
        let facts = ImageFacts::new(&image);
        let found = (0..layers.len()).map(|number| is_windows(&facts, number));
        let expected = [true, true, true, false, true, false].map(Some);
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_contents_of_a_bottom_layer_show_whether_it_is_windows() {
        let platform = Platform::windows("10.0.17763.973");
        let image = Image::empty(ManifestFormat::Oci, platform).unwrap();
        let digest = sha256(b"");
        let blob = Descriptor::new("application/x", digest.clone(), 1 << 30);
        let image = image.append_layer(blob, digest, History::default());
        let facts = ImageFacts::new(&image.unwrap());
        assert_eq!(is_windows(&facts, 0), None);
    }
}
