//! Layers that plans add to their bases: each is written once for all images, and reused if it
//! exists.
//!
//! Images for several hosts differ in their bases. With the same timestamp, as set by
//! `SOURCE_DATE_EPOCH`, their layers are identical: one is compressed, sent and stored instead of
//! four.

use std::sync::{Arc, Mutex};

use wincimg_common::lock;
use wincimg_common::progress::Progress;
use wincimg_layer::Layer;

use super::error::DirectError;
use super::write::{AddedLayer, AssembleOptions, write};

/// The layers written so far.
#[derive(Default)]
pub(super) struct AddedLayers(Mutex<Vec<(Arc<Layer>, Slot)>>);

/// A layer's lock is held while it is written, so that other users wait for it.
type Slot = Arc<Mutex<Option<Arc<AddedLayer>>>>;

impl AddedLayers {
    /// A layer, written unless it exists.
    pub(super) fn get_or_write(
        &self,
        layer: &Arc<Layer>,
        what: &str,
        options: &AssembleOptions,
        progress: &dyn Progress,
    ) -> Result<Arc<AddedLayer>, DirectError> {
        let slot = self.slot(layer);
        let mut slot = lock(&slot);
        Ok(match &*slot {
            Some(added) => Arc::clone(added),
            None => Arc::clone(slot.insert(write(layer, what, options, progress)?)),
        })
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
    use wincimg_recipe::{Plan, PlanBase, Recipe, RecipeInputs};
    use wincimg_registry::UnknownBase;

    use super::super::describe::describe_steps;
    use super::*;

    fn pause_for(host: &str) -> Plan {
        let base = PlanBase {
            name: format!("mcr.microsoft.com/windows/nanoserver:{host}"),
            digest: format!("sha256:{host:0>64}"),
            os_version: Some(host.parse().unwrap()),
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

    fn of(layers: &AddedLayers, plan: &Plan, timestamp: u64) -> Vec<Arc<AddedLayer>> {
        let options = AssembleOptions::default();
        let base = Image::empty(ManifestFormat::Oci, Platform::windows("10.0.17763.973")).unwrap();
        let steps = describe_steps(plan, &base, &UnknownBase, timestamp, false).unwrap();
        let described = steps.into_iter().filter_map(|step| step.layer);
        described
            .map(|layer| layers.get_or_write(&layer, "x", &options, &Silent))
            .collect::<Result<_, _>>()
            .unwrap()
    }

    fn added(layers: &AddedLayers, plan: &Plan, timestamp: u64) -> Arc<AddedLayer> {
        of(layers, plan, timestamp).remove(0)
    }

    #[test]
    fn images_for_several_hosts_share_a_layer_of_the_same_time() {
        let layers = AddedLayers::default();
        let first = added(&layers, &pause_for("17763.973"), 1);
        let other = added(&layers, &pause_for("20348.2402"), 1);
        assert!(Arc::ptr_eq(&first, &other));
        let later = added(&layers, &pause_for("20348.2402"), 2);
        assert_ne!(first.diff_id, later.diff_id);
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
