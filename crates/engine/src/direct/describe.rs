//! Describes a layer before it is written: files, hives, and descriptors that fit the base.

use wincimg_layer::{Layer, LayerError, LayerPath, Without};
use wincimg_oci::document::{Image, ManifestFormat, Platform};
use wincimg_recipe::{
    Instructions, Plan, PlannedContent, PlannedLayer, add_entries, add_files, copy_metadata,
};
use wincimg_registry::hive::{FileTime, empty_hive, layer_hives};
use wincimg_registry::{Presence, RegistryEdit, UnknownBase};
use wincimg_windows::access::AccessChange;
use wincimg_windows::base_contents::{BaseContents, FileKind};
use wincimg_windows::path::ImagePath;

use super::error::DirectError;
use super::{BaseSource, iis};

/// Checks whether a plan's layer can be written, as far as that does not depend on its base.
pub(super) fn check_describable(plan: &Plan) -> Result<(), DirectError> {
    let base = BaseSource {
        image: &Image::empty(ManifestFormat::Oci, Platform::windows(""))?,
        inside: &UnknownBase,
    };
    for step in plan.instructions.iter().flat_map(Instructions::layers) {
        describe_step(step, &UnknownBase, 0)?.drive()?;
    }
    let mut plan = plan.clone();
    if plan.base_requirements().files {
        plan.access.clear();
    }
    // A file that is not downloaded yet cannot be merged with.
    if plan.downloads_mut().any(|file| file.content.is_none()) {
        plan.iis = None;
    }
    let mut layer = describe_files(&plan, base, 0)?;
    // The rest depends on the contents of the base, and is checked with them.
    if plan.base_requirements().hives.is_empty() {
        let edits = plan.registry_edits(base.inside)?;
        add_hives(&mut layer, &edits, base.inside, 0)?;
    }
    layer.drive()?;
    Ok(())
}

/// Description of the layer that a plan adds to its base.
pub(super) fn describe(
    plan: &Plan,
    base: BaseSource<'_>,
    timestamp: u64,
) -> Result<Layer, DirectError> {
    let mut layer = describe_files(plan, base, timestamp)?;
    let edits = plan.registry_edits(base.inside)?;
    add_hives(&mut layer, &edits, base.inside, timestamp)?;
    Ok(layer)
}

fn add_hives(
    layer: &mut Layer,
    edits: &[RegistryEdit],
    inside: &dyn BaseContents,
    timestamp: u64,
) -> Result<(), DirectError> {
    for hive in layer_hives(edits, inside, file_time(timestamp))? {
        let name = hive.name.parse().map_err(LayerError::Path)?;
        layer.hive(name, hive.bytes);
    }
    Ok(())
}

fn file_time(timestamp: u64) -> FileTime {
    FileTime::from_unix_seconds(i64::try_from(timestamp).unwrap_or(i64::MAX))
}

fn describe_files(plan: &Plan, base: BaseSource<'_>, timestamp: u64) -> Result<Layer, DirectError> {
    let mut layer = Layer::new(timestamp);
    add_files(&mut layer, &plan.files)?;
    if let Some(folder) = working_dir_to_make(plan, base)? {
        layer.directory(LayerPath::try_from(folder).map_err(LayerError::Path)?);
    }
    if let Some(settings) = &plan.iis {
        iis::configure(&mut layer, settings, base.inside)?;
    }
    if is_bottom(plan, base) {
        bottom(&mut layer, file_time(timestamp))?;
    }
    let access: Vec<_> = plan
        .access
        .iter()
        .cloned()
        .map(AccessChange::Grant)
        .collect();
    fit(&mut layer, &access, base.inside)?;
    Ok(layer)
}

/// Description of the layer of one Dockerfile instruction.
pub(super) fn describe_step(
    step: &PlannedLayer,
    inside: &dyn BaseContents,
    timestamp: u64,
) -> Result<Layer, DirectError> {
    let mut layer = Layer::new(timestamp);
    add_entries(&mut layer, &step.entries)?;
    copy_metadata(&mut layer, &step.kept, inside)?;
    let inside = &Without {
        inside,
        gone: &step.anew,
    };
    iis::configure_server(&mut layer, &step.iis, inside)?;
    fit(&mut layer, &step.access, inside)?;
    add_hives(&mut layer, &step.registry, inside, timestamp)?;
    Ok(layer)
}

/// Fits the files to those of the base, and changes the rights on them.
fn fit(
    layer: &mut Layer,
    access: &[AccessChange],
    inside: &dyn BaseContents,
) -> Result<(), DirectError> {
    layer.fit_to_base(inside)?;
    if !access.is_empty() {
        layer.change_access(access, inside)?;
        layer.fit_to_base(inside)?;
    }
    Ok(())
}

/// Returns true if the plan's layer is the lowest of its image.
pub(super) fn is_bottom(plan: &Plan, base: BaseSource<'_>) -> bool {
    plan.base.os_version.is_none() && base.image.manifest().layers.is_empty()
}

/// Adds what Windows requires in the bottom layer of an image: all its hives, even if empty. A
/// `HostProcess` container reads the host's.
fn bottom(layer: &mut Layer, time: FileTime) -> Result<(), DirectError> {
    for hive in ["DEFAULT", "SAM", "SECURITY", "SOFTWARE", "SYSTEM"] {
        let path = format!("Windows/System32/config/{hive}");
        layer.file(path.parse().map_err(LayerError::Path)?, empty_hive(time)?);
    }
    Ok(())
}

/// The working directory, if the layer has to create it: a Dockerfile's `WORKDIR` does, while
/// Windows starts no program in a missing folder. An entry for an existing folder would replace its
/// descriptor, so on a base with unknown contents the base's own working directory and Windows'
/// folders are left alone.
fn working_dir_to_make<'a>(
    plan: &'a Plan,
    base: BaseSource<'_>,
) -> Result<Option<&'a ImagePath>, DirectError> {
    let Some(folder) = plan.working_dir.as_ref() else {
        return Ok(None);
    };
    let steps = plan.instructions.iter().flat_map(Instructions::layers);
    let mut entries = steps.flat_map(|layer| &layer.entries);
    let is_made = entries.any(|entry| {
        entry.content != PlannedContent::Deleted && entry.path.strip_prefix(folder).is_some()
    });
    if folder.components().is_empty() || is_made {
        return Ok(None);
    }
    match base.inside.file(folder).map_err(LayerError::Inside)? {
        Presence::Unknown => {}
        Presence::Present(found) if found.kind == FileKind::Link(()) => return Ok(None),
        // Folders of the base get no entry.
        Presence::Absent | Presence::Present(_) => return Ok(Some(folder)),
    }
    let of_base = base.image.config().config.working_dir.as_deref();
    let is_base = of_base.is_some_and(|path| path.eq_ignore_ascii_case(&folder.to_string()));
    Ok((!folder.is_of_windows() && !is_base).then_some(folder))
}
