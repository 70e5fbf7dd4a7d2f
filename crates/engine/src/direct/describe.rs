//! Describes a layer before it is written: files, hives, and descriptors that fit the base.

use std::sync::Arc;

use wincimg_common::diagnose::Problem;
use wincimg_iis::IisSettings;
use wincimg_layer::{BaseOverlay, Layer, LayerError, LayerPart};
use wincimg_oci::document::{Image, ManifestFormat, Platform};
use wincimg_recipe::{Plan, PlannedEntry, PlannedLayer, add_entries, add_hives, copy_metadata};
use wincimg_registry::hive::{FileTime, empty_hive, layer_hives, required_hives, unchanged_hives};
use wincimg_registry::{BaseKey, BaseKeys, BaseReadError, KeyPath, Presence, UnknownBase};
use wincimg_windows::account::{find_account, missing_account};
use wincimg_windows::base_contents::{BaseContents, BaseFile, FileKind};
use wincimg_windows::known_folders::WindowsBase;
use wincimg_windows::path::{HIVE_FILES, ImagePath};

use super::error::DirectError;
use super::iis;
use crate::plans::with_commands;

/// Entries of at least this size get a layer of their own: they take longer to write and to send
/// than another layer costs.
const MIN_LAYER_SIZE: u64 = 16 << 20;

/// An image's step: its text in the history, and its layer if it changes something.
pub(super) struct DescribedStep {
    /// Label for progress reports.
    pub(super) what: String,
    pub(super) created_by: String,
    pub(super) layer: Option<Arc<Layer>>,
}

/// Checks whether a plan's layers can be written, as far as that does not depend on its base.
pub(super) fn check_describable(plan: &Plan) -> Result<(), DirectError> {
    let image = &Image::empty(ManifestFormat::Oci, Platform::windows(""))?;
    let windows = WindowsBase(&UnknownBase);
    let inside = ground(plan, image, &windows);
    // What depends on the contents of the base is checked with them.
    let is_read_first = plan.base_requirements().files;
    let mut plan = plan.clone();
    plan.path = None;
    let checkable = |mut step: PlannedLayer| {
        if is_read_first {
            step.access.clear();
        }
        if !required_hives(&step.registry).is_empty() {
            step.registry.clear();
        }
        step
    };
    let mut below = BaseOverlay::over(inside);
    for step in plan.instruction_layers() {
        let layer = describe_step(&checkable(step.clone()), None, &below, 0)?;
        layer.drive()?;
        below.lay(&Arc::new(layer))?;
    }
    // A file that is not downloaded yet cannot be merged with.
    if plan.downloads_mut().any(|file| file.content.is_none()) {
        plan.iis = None;
    }
    let own = checkable(own_layer(&plan, &below)?);
    describe_step(&own, plan.iis.as_ref(), &below, 0)?.drive()?;
    Ok(())
}

/// Description of all layers that a plan adds to its base, with the steps of its history.
///
/// Either all of them have hives, or none: containerd's CIM snapshotters open those of the layer
/// below one that has them. `requires_hives` is true if layers above or below the plan's have some.
pub(super) fn describe_steps(
    plan: &Plan,
    image: &Image,
    inside: &dyn BaseContents,
    timestamp: u64,
    requires_hives: bool,
) -> Result<Vec<DescribedStep>, DirectError> {
    let is_bottom = is_bottom(plan, image);
    let windows = WindowsBase(inside);
    let base = ground(plan, image, &windows);
    check_user(plan, base)?;
    let mut below = BaseOverlay::over(base);
    let mut described = Vec::new();
    for step in plan.instructions.iter().flat_map(|all| &all.steps) {
        let mut done = DescribedStep {
            what: plan.name.clone(),
            created_by: step.created_by.clone(),
            layer: None,
        };
        if let Some(own) = &step.layer {
            let layer = Arc::new(describe_step(own, None, &below, timestamp)?);
            below.lay(&layer)?;
            done.created_by = with_commands(done.created_by, own, &layer, plan);
            done.layer = Some(layer);
        }
        described.push(done);
    }
    let own = own_layer(plan, &below)?;
    let parts = describe_own(plan, &own, image, &below, timestamp)?;
    drop(below);
    let has_content =
        |step: &DescribedStep| step.layer.as_ref().is_some_and(|layer| !layer.is_empty());
    // The steps are the whole history, unless the plan has more.
    let is_whole = !described.is_empty() && (!is_bottom || described.iter().any(has_content));
    for (place, layer) in parts {
        if layer.is_empty() && is_whole {
            continue;
        }
        let what = place.map_or_else(|| plan.name.clone(), |at| format!("{}: {at}", plan.name));
        let text = format!("wincimg build {what}");
        described.push(DescribedStep {
            created_by: with_commands(text, &own, &layer, plan),
            what,
            layer: Some(Arc::new(layer)),
        });
    }
    if is_bottom {
        let place = described.iter().position(has_content);
        let lowest = place.unwrap_or(described.len().saturating_sub(1));
        if let Some(layer) = described.get_mut(lowest).and_then(|it| it.layer.as_mut()) {
            bottom(Arc::make_mut(layer), file_time(timestamp))?;
        }
    }
    let layers = described.iter_mut().filter_map(|step| step.layer.as_mut());
    add_unchanged_hives(layers, base, file_time(timestamp), requires_hives)?;
    for step in &mut described {
        step.layer.take_if(|layer| layer.is_empty());
    }
    Ok(described)
}

/// Rejects a user that the image does not have, if the accounts of its base are known.
fn check_user(plan: &Plan, base: &dyn BaseContents) -> Result<(), DirectError> {
    let Some(user) = &plan.user else {
        return Ok(());
    };
    if find_account(user, plan.base.user.as_deref(), base, false)? == Presence::Absent {
        let (problem, hint) = missing_account(user);
        return Err(Problem::request("recipe/invalid", problem)
            .hint(hint)
            .into());
    }
    Ok(())
}

/// Gives all layers hives if one of them has some, or if they are required.
fn add_unchanged_hives<'l>(
    layers: impl Iterator<Item = &'l mut Arc<Layer>>,
    base: &dyn BaseKeys,
    time: FileTime,
    are_required: bool,
) -> Result<(), DirectError> {
    let layers: Vec<_> = layers.filter(|layer| !layer.is_empty()).collect();
    if !are_required && !layers.iter().any(|layer| layer.has_hives()) {
        return Ok(());
    }
    let hives = unchanged_hives(base, time)?;
    for layer in layers.into_iter().filter(|layer| !layer.has_hives()) {
        add_hives(Arc::make_mut(layer), hives.iter().cloned())?;
    }
    Ok(())
}

/// Description of the layer of a plan's own files and registry changes: one for each large entry of
/// its files, and one for the rest.
fn describe_own<'p>(
    plan: &'p Plan,
    own: &PlannedLayer,
    image: &Image,
    below: &BaseOverlay<'_>,
    timestamp: u64,
) -> Result<Vec<LayerPart<'p>>, DirectError> {
    let layer = describe_step(own, plan.iis.as_ref(), below, timestamp)?;
    if is_bottom(plan, image) {
        return Ok(vec![(None, layer)]);
    }
    let places = plan.files.iter().map(|file| &file.path);
    Ok(layer.split(places, MIN_LAYER_SIZE)?)
}

/// The layer of a plan's own files and registry changes, with the working directory.
fn own_layer(plan: &Plan, below: &BaseOverlay<'_>) -> Result<PlannedLayer, DirectError> {
    let mut own = plan.own_layer(below)?;
    let folder = working_dir_to_make(plan, below)?.cloned();
    own.entries.extend(folder.map(PlannedEntry::folder));
    Ok(own)
}

fn file_time(timestamp: u64) -> FileTime {
    FileTime::from_unix_seconds(i64::try_from(timestamp).unwrap_or(i64::MAX))
}

/// Description of a layer, above those before; with settings of a site on IIS, its `web.config`.
fn describe_step(
    step: &PlannedLayer,
    site: Option<&IisSettings>,
    below: &BaseOverlay<'_>,
    timestamp: u64,
) -> Result<Layer, DirectError> {
    let mut layer = Layer::new(timestamp);
    add_entries(&mut layer, &step.entries)?;
    copy_metadata(&mut layer, &step.kept, below)?;
    if let Some(owner) = &step.owner {
        layer.set_owner(owner.sid());
    }
    if let Some(site) = site {
        iis::configure(&mut layer, site, below)?;
    }
    layer.copy_up(&step.access, below, &step.anew)?;
    let inside = &BaseOverlay::without(below, &step.anew);
    iis::configure_server(&mut layer, &step.iis, inside)?;
    layer.fit_to_base(inside)?;
    if !step.access.is_empty() {
        let changed = layer.change_access(&step.access, inside);
        changed.map_err(Problem::from_diagnosed)?;
        layer.fit_to_base(inside)?;
    }
    let hives = layer_hives(&step.registry, inside, file_time(timestamp))?;
    add_hives(&mut layer, hives)?;
    Ok(layer)
}

/// Returns true if the lowest layer of a plan is the lowest of its image.
fn is_bottom(plan: &Plan, image: &Image) -> bool {
    plan.base.os_version.is_none() && image.manifest().layers.is_empty()
}

/// The content below the layers of a plan.
fn ground<'a>(plan: &Plan, image: &Image, windows: &'a WindowsBase<'_>) -> &'a dyn BaseContents {
    match plan.base.os_version {
        Some(_) => windows,
        None if is_bottom(plan, image) => &EmptyBase,
        None => windows.0,
    }
}

/// Adds what Windows requires in the bottom layer of an image: all its hives, even if empty. A
/// `HostProcess` container reads the host's.
fn bottom(layer: &mut Layer, time: FileTime) -> Result<(), DirectError> {
    layer.set_bottom();
    for path in HIVE_FILES {
        layer.file(path.parse().map_err(LayerError::Path)?, empty_hive(time)?);
    }
    Ok(())
}

/// The content below the bottom layer of an image: no file.
#[derive(Debug)]
struct EmptyBase;

impl BaseKeys for EmptyBase {
    fn key(&self, _: &KeyPath) -> Result<Presence<BaseKey>, BaseReadError> {
        Ok(Presence::Unknown)
    }
}

impl BaseContents for EmptyBase {
    fn file(&self, path: &ImagePath) -> Result<Presence<BaseFile>, BaseReadError> {
        if !path.components().is_empty() {
            return Ok(Presence::Absent);
        }
        Ok(Presence::Present(BaseFile {
            name: String::new(),
            kind: FileKind::Folder,
            attributes: 0x10,
            security: None,
        }))
    }

    fn read_dir(&self, _: &ImagePath) -> Result<Presence<Vec<BaseFile>>, BaseReadError> {
        Ok(Presence::Absent)
    }

    fn folders_below(
        &self,
        _: &ImagePath,
    ) -> Result<Presence<Vec<(ImagePath, BaseFile)>>, BaseReadError> {
        Ok(Presence::Absent)
    }

    fn content(&self, _: &ImagePath) -> Result<Presence<Vec<u8>>, BaseReadError> {
        Ok(Presence::Absent)
    }
}

/// The working directory, if the layer has to create it: a Dockerfile's `WORKDIR` does, while
/// Windows starts no program in a missing folder. An entry for an existing folder would replace its
/// descriptor, so on a base with unknown contents the base's own working directory is left alone.
fn working_dir_to_make<'a>(
    plan: &'a Plan,
    below: &BaseOverlay<'_>,
) -> Result<Option<&'a ImagePath>, DirectError> {
    let folder = plan.working_dir.as_ref();
    let Some(folder) = folder.filter(|folder| !folder.components().is_empty()) else {
        return Ok(None);
    };
    let of_base = plan.base.container.working_dir.as_deref();
    let is_base = of_base.is_some_and(|path| path.eq_ignore_ascii_case(&folder.to_string()));
    Ok(match below.file(folder).map_err(LayerError::Inside)? {
        Presence::Unknown => (!is_base).then_some(folder),
        Presence::Present(found) if found.kind == FileKind::Link(()) => None,
        // Folders of the base, and of layers below, get no entry.
        Presence::Absent | Presence::Present(_) => Some(folder),
    })
}

#[cfg(test)]
mod tests;
