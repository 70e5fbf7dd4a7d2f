//! What plans add to their bases: a layer each, written once however many images add the same, and
//! not at all where it is somewhere already.
//!
//! Images for several hosts differ in their bases. Where the time of everything new is the same too,
//! as `SOURCE_DATE_EPOCH` makes it, so are their layers: one is compressed, sent and kept, not four.

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use wincimg_common::lock;
use wincimg_common::progress::Progress;
use wincimg_layer::{
    BlobBuffer, BufferedBlob, Compression, Laid, Layer, LayerError, LayerPath, Without,
    WriteOptions,
};
use wincimg_oci::document::{Descriptor, Digest, DocumentError, Flavour, Image, Platform};
use wincimg_oci::store::Source;
use wincimg_recipe::{
    Instructions, Plan, PlannedContent, PlannedLayer, add_entries, add_files, keep,
};
use wincimg_registry::hive::{FileTime, empty_hive, layer_hives};
use wincimg_registry::{Known, RegistryEdit, Unseen};
use wincimg_windows::access::Access;
use wincimg_windows::inside::{BaseFileKind, Inside};
use wincimg_windows::path::ImagePath;

use super::ahead::{Ahead, Growing};
use super::error::DirectError;
use super::held::{self, Found, Held, HeldLayer, WORTH_A_LOOK};
use super::{Base, iis};

/// A layer up to this size never touches the disk.
const IN_MEMORY: usize = 4 << 20;

/// What of a recipe's files comes to so much is a layer of its own: it takes longer to write and to send than
/// a layer more costs.
const WORTH_A_LAYER: u64 = 16 << 20;

/// How an image is put together.
#[derive(Clone, Default)]
pub(crate) struct AssembleOptions {
    /// The compression of new layers.
    pub compression: Compression,
    /// The time that everything new carries; the base's own where absent.
    pub created: Option<Timestamp>,
    /// Set from elsewhere, this ends the work soon.
    pub cancelled: Arc<AtomicBool>,
    /// Where layers may be already.
    pub held: Arc<Held>,
    /// Where large layers go while they are written.
    pub ahead: Option<Arc<Ahead>>,
}

/// A layer that is ready to be sent, to as many places as need it.
#[derive(Debug)]
pub(crate) struct AddedLayer {
    digest: Digest,
    size: u64,
    diff_id: Digest,
    compression: Compression,
    /// Whether others may look for it.
    is_noted: bool,
    bytes: LayerBytes,
}

/// Where a layer's bytes are, compressed.
#[derive(Debug)]
pub(crate) enum LayerBytes {
    /// They were written now.
    Here(BufferedBlob),
    /// They are somewhere already.
    There(Source),
}

/// The layers that were written so far.
#[derive(Default)]
pub(super) struct AddedLayers(Mutex<Vec<(Arc<Layer>, Slot)>>);

/// Whoever writes a layer holds its lock, so that others who need it find it done.
type Slot = Arc<Mutex<Option<Arc<AddedLayer>>>>;

impl AddedLayer {
    /// How manifests in one flavour's words name the layer.
    pub(crate) fn descriptor(&self, flavour: Flavour) -> Descriptor {
        let media_type = match (self.compression, flavour) {
            (Compression::Gzip, Flavour::Docker) => Flavour::Docker.layer_gzip(),
            (compression, _) => compression.oci_media_type(),
        };
        Descriptor::new(media_type, self.digest.clone(), self.size)
    }

    /// What the history says of a layer that others may look for.
    pub(super) fn note(&self) -> Option<String> {
        self.is_noted
            .then(|| held::note(&self.diff_id, self.compression))
    }

    /// An image in words that have one for the layer: Docker has no type for zstd, and skopeo
    /// refuses OCI's in a manifest of Docker's.
    pub(super) fn in_its_words(&self, image: Image) -> Result<Image, DocumentError> {
        match self.compression {
            Compression::Gzip => Ok(image),
            Compression::Zstd => image.in_flavour(Flavour::Oci),
        }
    }

    /// The digest of the layer's bytes, compressed.
    pub(crate) fn digest(&self) -> &Digest {
        &self.digest
    }

    /// The digest of the layer's tar.
    pub(crate) fn diff_id(&self) -> Digest {
        self.diff_id.clone()
    }

    /// Where the layer's bytes are, compressed.
    pub(crate) fn bytes(&self) -> &LayerBytes {
        &self.bytes
    }

    /// The same bytes where they are here, for whoever reads them on a thread of its own.
    pub(crate) fn open(&self) -> Option<io::Result<Box<dyn Read + Send>>> {
        let LayerBytes::Here(blob) = &self.bytes else {
            return None;
        };
        Some(match blob {
            BufferedBlob::Memory(bytes) => Ok(Box::new(Cursor::new(bytes.clone()))),
            BufferedBlob::Disk(spool) => match File::open(spool.path()) {
                Ok(file) => Ok(Box::new(file)),
                Err(error) => Err(error),
            },
        })
    }
}

impl AddedLayers {
    /// The layers that a plan adds to its base, each with what is in it, written now unless they were before: one
    /// for each large entry of its files, and one for the rest. There is none where the plan changes no file and no
    /// registry value.
    pub(super) fn of(
        &self,
        plan: &Plan,
        base: Base<'_>,
        timestamp: u64,
        options: &AssembleOptions,
        progress: &dyn Progress,
    ) -> Result<Vec<(String, Arc<AddedLayer>)>, DirectError> {
        let layer = describe(plan, base, timestamp)?;
        let parts = if is_bottom(plan, base) {
            vec![(None, layer)]
        } else {
            layer.split(plan.files.iter().map(|file| &file.target), WORTH_A_LAYER)?
        };
        let mut added = Vec::with_capacity(parts.len());
        for (place, layer) in parts {
            let what = place.map_or_else(|| plan.name.clone(), |at| format!("{}: {at}", plan.name));
            if let Some(layer) = self.written(&Arc::new(layer), &what, options, progress)? {
                added.push((what, layer));
            }
        }
        Ok(added)
    }

    /// The layer of one instruction of a Dockerfile, in the same way, over those of the ones before,
    /// to which it is added.
    pub(super) fn of_step(
        &self,
        step: &PlannedLayer,
        plan: &Plan,
        below: &mut Laid<'_>,
        timestamp: u64,
        options: &AssembleOptions,
        progress: &dyn Progress,
    ) -> Result<Option<Arc<AddedLayer>>, DirectError> {
        let layer = Arc::new(describe_step(step, below, timestamp)?);
        below.lay(&layer)?;
        self.written(&layer, &plan.name, options, progress)
    }

    fn written(
        &self,
        layer: &Arc<Layer>,
        what: &str,
        options: &AssembleOptions,
        progress: &dyn Progress,
    ) -> Result<Option<Arc<AddedLayer>>, DirectError> {
        if layer.is_empty() {
            return Ok(None);
        }
        let slot = self.slot(layer);
        let mut slot = lock(&slot);
        let added = match &*slot {
            Some(added) => Arc::clone(added),
            None => Arc::clone(slot.insert(Arc::new(write(layer, what, options, progress)?))),
        };
        Ok(Some(added))
    }

    fn slot(&self, layer: &Arc<Layer>) -> Slot {
        let mut known = lock(&self.0);
        if let Some((_, slot)) = known.iter().find(|(known, _)| known == layer) {
            return Arc::clone(slot);
        }
        let slot = Slot::default();
        known.push((Arc::clone(layer), Arc::clone(&slot)));
        slot
    }
}

/// Looks for what keeps a plan's layer from being written, as far as that is not up to its base.
pub(super) fn rehearse(plan: &Plan) -> Result<(), DirectError> {
    let base = Base {
        image: &Image::empty(Flavour::Oci, Platform::windows(""))?,
        inside: &Unseen,
    };
    for step in plan.instructions.iter().flat_map(Instructions::layers) {
        describe_step(step, &Unseen, 0)?.drive()?;
    }
    let mut plan = plan.clone();
    if plan.needs().files {
        plan.access.clear();
    }
    // A file that is not downloaded yet cannot be merged with.
    if plan.downloads_mut().any(|file| file.content.is_none()) {
        plan.iis = None;
    }
    let mut layer = describe_files(&plan, base, 0)?;
    // What takes a look into the base is found when it was taken.
    if plan.needs().hives.is_empty() {
        let edits = plan.registry_edits(base.inside)?;
        add_hives(&mut layer, &edits, base.inside, 0)?;
    }
    layer.drive()?;
    Ok(())
}

fn describe(plan: &Plan, base: Base<'_>, timestamp: u64) -> Result<Layer, DirectError> {
    let mut layer = describe_files(plan, base, timestamp)?;
    let edits = plan.registry_edits(base.inside)?;
    add_hives(&mut layer, &edits, base.inside, timestamp)?;
    Ok(layer)
}

fn add_hives(
    layer: &mut Layer,
    edits: &[RegistryEdit],
    inside: &dyn Inside,
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

fn describe_files(plan: &Plan, base: Base<'_>, timestamp: u64) -> Result<Layer, DirectError> {
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
    fit(&mut layer, &plan.access, base.inside)?;
    Ok(layer)
}

fn describe_step(
    step: &PlannedLayer,
    inside: &dyn Inside,
    timestamp: u64,
) -> Result<Layer, DirectError> {
    let mut layer = Layer::new(timestamp);
    add_entries(&mut layer, &step.entries)?;
    keep(&mut layer, &step.kept, inside)?;
    let inside = &Without {
        inside,
        gone: &step.anew,
    };
    iis::configure_server(&mut layer, &step.iis, inside)?;
    fit(&mut layer, &step.access, inside)?;
    add_hives(&mut layer, &step.registry, inside, timestamp)?;
    Ok(layer)
}

/// Fits the files to what they are laid over, and grants rights on them.
fn fit(layer: &mut Layer, access: &[Access], inside: &dyn Inside) -> Result<(), DirectError> {
    layer.settle(inside)?;
    if !access.is_empty() {
        layer.grant(access, inside)?;
        layer.settle(inside)?;
    }
    Ok(())
}

/// Whether the plan's layer is the lowest of its image.
fn is_bottom(plan: &Plan, base: Base<'_>) -> bool {
    plan.base.os_version.is_none() && base.image.manifest().layers.is_empty()
}

/// What Windows wants to see in the bottom layer of an image: all its hives, though nothing is in
/// them. A container that is a program on the host reads the host's.
fn bottom(layer: &mut Layer, time: FileTime) -> Result<(), DirectError> {
    for hive in ["DEFAULT", "SAM", "SECURITY", "SOFTWARE", "SYSTEM"] {
        let path = format!("Windows/System32/config/{hive}");
        layer.file(path.parse().map_err(LayerError::Path)?, empty_hive(time)?);
    }
    Ok(())
}

/// The working directory, where the layer has to bring it: a Dockerfile's `WORKDIR` makes it, while
/// Windows starts no program in a folder that is not there. An entry for a folder that is there
/// would replace its descriptor, so on a base into which nobody has looked its own working directory
/// and what lies in Windows' folders are left alone.
fn working_dir_to_make<'a>(
    plan: &'a Plan,
    base: Base<'_>,
) -> Result<Option<&'a ImagePath>, DirectError> {
    let Some(folder) = plan.working_dir.as_ref() else {
        return Ok(None);
    };
    let steps = plan.instructions.iter().flat_map(Instructions::layers);
    let mut entries = steps.flat_map(|layer| &layer.entries);
    let is_made = entries.any(|entry| {
        entry.content != PlannedContent::Deleted && entry.path.below(folder).is_some()
    });
    if folder.components().is_empty() || is_made {
        return Ok(None);
    }
    match base.inside.file(folder).map_err(LayerError::Inside)? {
        Known::Unknown => {}
        Known::Present(found) if found.kind == BaseFileKind::Link => return Ok(None),
        // What the base has gets no entry.
        Known::Absent | Known::Present(_) => return Ok(Some(folder)),
    }
    let of_base = base.image.config().config.working_dir.as_deref();
    let is_base = of_base.is_some_and(|path| path.eq_ignore_ascii_case(&folder.to_string()));
    Ok((!folder.is_of_windows() && !is_base).then_some(folder))
}

fn write(
    layer: &Layer,
    what: &str,
    options: &AssembleOptions,
    progress: &dyn Progress,
) -> Result<AddedLayer, DirectError> {
    let task = progress.task(&format!("layer of {what}"), None);
    let how = WriteOptions {
        compression: options.compression,
        threads: None,
        cancelled: &options.cancelled,
        progress: task.as_ref(),
    };
    let mut layer = layer.arranged()?;
    let (found, stamp) = options.held.find(&mut layer, &how)?;
    let is_changed = match found {
        Found::There(held) => {
            task.done("unchanged");
            return Ok(held.into_added());
        }
        Found::Changed => true,
        Found::Unknown => false,
    };
    task.set_position(0);
    let blob = BlobBuffer::new(IN_MEMORY, std::env::temp_dir());
    let mut blob = Growing::new(blob, options.ahead.clone(), is_changed);
    let written = layer.write(&mut blob, &how)?;
    options.held.remember(stamp.as_ref(), &written.diff_id);
    task.done("written");
    let blob = blob.finish(&written.digest);
    Ok(AddedLayer {
        digest: written.digest,
        size: written.size,
        diff_id: written.diff_id,
        compression: written.compression,
        is_noted: written.uncompressed_size > WORTH_A_LOOK,
        bytes: LayerBytes::Here(blob),
    })
}

impl HeldLayer {
    fn into_added(self) -> AddedLayer {
        AddedLayer {
            digest: self.descriptor.digest,
            size: self.descriptor.size,
            diff_id: self.diff_id,
            compression: self.compression,
            is_noted: true,
            bytes: LayerBytes::There(self.source),
        }
    }
}

#[cfg(test)]
mod tests {
    use wincimg_common::progress::Silent;
    use wincimg_recipe::{PlanBase, Recipe, Settings};

    use super::*;

    fn pause_for(host: &str) -> Plan {
        let base = PlanBase {
            name: format!("mcr.microsoft.com/windows/nanoserver:{host}"),
            digest: format!("sha256:{host:0>64}"),
            os_version: Some(host.parse().unwrap()),
            shell: None,
            user: None,
            path: None,
            ..PlanBase::default()
        };
        let recipe = Recipe::find("pause").unwrap();
        let values = std::collections::BTreeMap::new();
        let settings = Settings {
            values: &values,
            context: std::path::Path::new("."),
        };
        let version = base.os_version;
        recipe.plan(base, version, &settings).unwrap()
    }

    fn of(layers: &AddedLayers, plan: &Plan, timestamp: u64) -> Vec<(String, Arc<AddedLayer>)> {
        let options = AssembleOptions::default();
        let base = Image::empty(Flavour::Oci, Platform::windows("10.0.17763.973")).unwrap();
        let base = Base {
            image: &base,
            inside: &Unseen,
        };
        let added = layers.of(plan, base, timestamp, &options, &Silent);
        added.unwrap()
    }

    fn added(layers: &AddedLayers, plan: &Plan, timestamp: u64) -> Arc<AddedLayer> {
        of(layers, plan, timestamp).remove(0).1
    }

    #[test]
    fn images_for_several_hosts_share_a_layer_of_the_same_time() {
        let layers = AddedLayers::default();
        let first = added(&layers, &pause_for("17763.973"), 1);
        let other = added(&layers, &pause_for("20348.2402"), 1);
        assert!(Arc::ptr_eq(&first, &other));
        let later = added(&layers, &pause_for("20348.2402"), 2);
        assert_ne!(first.diff_id(), later.diff_id());
    }

    #[test]
    fn a_layer_that_several_ask_for_at_once_is_written_once() {
        let known = AddedLayers::default();
        let plan = pause_for("17763.973");
        let layers: Vec<_> = std::thread::scope(|scope| {
            let workers = [(); 4].map(|()| scope.spawn(|| added(&known, &plan, 1)));
            workers.map(|worker| worker.join().unwrap()).into()
        });
        assert!(layers.iter().all(|layer| Arc::ptr_eq(layer, &layers[0])));
    }

    #[test]
    fn a_plan_that_changes_nothing_in_a_layer_adds_none() {
        let plan = Plan {
            files: Vec::new(),
            registry: Vec::new(),
            shutdown_timeout: None,
            ..pause_for("17763.973")
        };
        assert!(of(&AddedLayers::default(), &plan, 1).is_empty());
    }
}
