//! Layers that plans add to their bases: each is written once for all images, and reused if it
//! exists.
//!
//! Images for several hosts differ in their bases. With the same timestamp, as set by
//! `SOURCE_DATE_EPOCH`, their layers are identical: one is compressed, sent and stored instead of
//! four.

use std::sync::{Arc, Mutex};

use wincimg_common::lock;
use wincimg_common::progress::Progress;
use wincimg_layer::{BaseOverlay, Layer};
use wincimg_recipe::{Plan, PlannedLayer};

use super::BaseSource;
use super::describe::{describe, describe_step, is_bottom};
use super::error::DirectError;
use super::write::{AddedLayer, AssembleOptions, write};

/// Entries of at least this size get a layer of their own: they take longer to write and to send
/// than another layer costs.
const MIN_LAYER_SIZE: u64 = 16 << 20;

/// The layers written so far.
#[derive(Default)]
pub(super) struct AddedLayers(Mutex<Vec<(Arc<Layer>, Slot)>>);

/// A layer's lock is held while it is written, so that other users wait for it.
type Slot = Arc<Mutex<Option<Arc<AddedLayer>>>>;

impl AddedLayers {
    /// The layers that a plan adds to its base, with their descriptions, written unless they exist:
    /// one for each large entry of its files, and one for the rest. There is none if the plan
    /// changes no file and no registry value.
    pub(super) fn get_or_write(
        &self,
        plan: &Plan,
        base: BaseSource<'_>,
        timestamp: u64,
        options: &AssembleOptions,
        progress: &dyn Progress,
    ) -> Result<Vec<(String, Arc<AddedLayer>)>, DirectError> {
        let layer = describe(plan, base, timestamp)?;
        let parts = if is_bottom(plan, base) {
            vec![(None, layer)]
        } else {
            layer.split(plan.files.iter().map(|file| &file.target), MIN_LAYER_SIZE)?
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

    /// The layer of one Dockerfile instruction, above those of the instructions before, to which it
    /// is added.
    pub(super) fn get_or_write_step(
        &self,
        step: &PlannedLayer,
        plan: &Plan,
        below: &mut BaseOverlay<'_>,
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

#[cfg(test)]
mod tests {
    use wincimg_common::progress::Silent;
    use wincimg_oci::document::{Image, ManifestFormat, Platform};
    use wincimg_recipe::{PlanBase, Recipe, RecipeInputs};
    use wincimg_registry::UnknownBase;

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
        let settings = RecipeInputs {
            values: &values,
            context: std::path::Path::new("."),
        };
        let version = base.os_version;
        recipe.plan(base, version, &settings).unwrap()
    }

    fn of(layers: &AddedLayers, plan: &Plan, timestamp: u64) -> Vec<(String, Arc<AddedLayer>)> {
        let options = AssembleOptions::default();
        let base = Image::empty(ManifestFormat::Oci, Platform::windows("10.0.17763.973")).unwrap();
        let base = BaseSource {
            image: &base,
            inside: &UnknownBase,
        };
        let added = layers.get_or_write(plan, base, timestamp, &options, &Silent);
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
