//! Registry contents of an image's layers: the changes of each layer, their result, and both as a
//! registration file.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;
use wincimg_oci::document::Digest;
use wincimg_registry::hive::{Hive, HiveReadError, Key};
use wincimg_registry::{RegistryEdit, Root, hive, regfile};
use wincimg_windows::shutdown::ShutdownValue;

use super::error::{LayerProblem, LayerReadError};
use super::layers::{LayerHives, base_files};
use super::shutdown::{Effect, ShutdownSetting, effect_on};

/// First line of a registration file.
const HEADER: &str = "Windows Registry Editor Version 5.00";

/// Form of an image's registry changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RegistryFormat {
    /// As a list of changes.
    Changes,
    /// As a registration file.
    File,
}

/// Registry changes of the layers.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum RegistryReport {
    /// As a list of changes.
    Changes {
        /// Changes of each layer, the lowest first.
        layers: Vec<LayerChanges>,
        /// Effect in a container: keys and values that a layer adds and no other one removes, on
        /// top of the base's registry if requested.
        result: Vec<RegistryEdit>,
        /// True if the base's registry is included.
        over_base: bool,
    },
    /// As a registration file.
    File(String),
}

/// Registry changes of one layer.
#[derive(Debug, Serialize)]
pub struct LayerChanges {
    /// Layer number, counted from 1 at the bottom.
    pub layer: usize,
    /// The layer's digest.
    pub digest: Digest,
    /// The changes.
    pub changes: Vec<RegistryEdit>,
    /// Hives of the layer that are not read.
    pub other_hives: Vec<String>,
}

/// All results from hives.
pub(super) struct Findings {
    /// The settings in effect, in the order of [`ShutdownValue::BOTH`].
    pub(super) shutdown: [Option<ShutdownSetting>; 2],
    pub(super) registry: Option<RegistryReport>,
    pub(super) problems: Vec<LayerReadError>,
}

/// Analyses hives. The bottom layer's hives, if it has any, are the base of the changes.
pub(super) fn analyse(layers: &[LayerHives], form: Option<RegistryFormat>) -> Findings {
    let mut problems = Vec::new();
    let opened: Vec<OpenedLayer<'_>> = layers
        .iter()
        .map(|layer| OpenedLayer::new(layer, &mut problems))
        .collect();
    let shutdown = ShutdownValue::BOTH.map(|setting| in_effect(setting, &opened));
    let registry = form.map(|form| match form {
        RegistryFormat::Changes => changes(opened, &mut problems),
        RegistryFormat::File => RegistryReport::File(file(opened)),
    });
    Findings {
        shutdown,
        registry,
        problems,
    }
}

/// A layer with its hives read.
struct OpenedLayer<'h> {
    layer: &'h LayerHives,
    roots: BTreeMap<Root, Key<'h>>,
    changes: Vec<RegistryEdit>,
}

impl<'h> OpenedLayer<'h> {
    fn new(layer: &'h LayerHives, problems: &mut Vec<LayerReadError>) -> Self {
        let mut opened = Self {
            layer,
            roots: BTreeMap::new(),
            changes: Vec::new(),
        };
        if opened.is_base() {
            let missing: Vec<&str> = Root::ALL
                .into_iter()
                .filter(|root| !layer.hives.contains_key(root))
                .map(|root| base_files(root)[0])
                .collect();
            if !missing.is_empty() {
                let files = missing.join(", ");
                problems.push(opened.problem(LayerProblem::NoBase { files }));
            }
        }
        for (&root, bytes) in &layer.hives {
            if let Err(problem) = opened.open(root, bytes) {
                problems.push(opened.problem(problem));
            }
        }
        opened
    }

    fn open(
        &mut self,
        root: Root,
        bytes: &'h Result<Vec<u8>, HiveReadError>,
    ) -> Result<(), LayerProblem> {
        let name = self.file_name(root);
        let read = bytes.as_ref().map_err(Clone::clone);
        let key = read
            .and_then(|bytes| Hive::read(bytes))
            .map_err(|source| LayerProblem::Hive { name, source })?
            .root;
        if !self.is_base() {
            let edits = hive::edits(root, &key);
            self.changes
                .extend(edits.map_err(|source| LayerProblem::Key { name, source })?);
        }
        self.roots.insert(root, key);
        Ok(())
    }

    fn is_base(&self) -> bool {
        self.layer.layer == 0
    }

    fn file_name(&self, root: Root) -> &'static str {
        if self.is_base() {
            base_files(root)[0]
        } else {
            root.delta_name()
        }
    }

    fn problem(&self, problem: LayerProblem) -> LayerReadError {
        problem.in_layer(self.layer.layer, &self.layer.digest)
    }
}

/// The value in a container, as far as layers above the bottom one set it.
fn in_effect(setting: ShutdownValue, layers: &[OpenedLayer<'_>]) -> Option<ShutdownSetting> {
    let changes = layers.iter().filter(|opened| !opened.is_base());
    changes.fold(None, |below, opened| {
        let Some(root) = opened.roots.get(&Root::System) else {
            return below;
        };
        match effect_on(setting, root) {
            Effect::None => below,
            Effect::Gone => None,
            Effect::Set(data) => {
                let LayerHives { layer, digest, .. } = opened.layer;
                Some(ShutdownSetting {
                    milliseconds: setting.milliseconds(&data),
                    data,
                    layer: layer + 1,
                    layer_digest: digest.clone(),
                })
            }
        }
    })
}

fn changes(mut opened: Vec<OpenedLayer<'_>>, problems: &mut Vec<LayerReadError>) -> RegistryReport {
    let layers = opened
        .iter_mut()
        .filter(|opened| !opened.is_base())
        .map(|opened| LayerChanges {
            layer: opened.layer.layer + 1,
            digest: opened.layer.digest.clone(),
            changes: std::mem::take(&mut opened.changes),
            other_hives: opened.layer.others.clone(),
        })
        .collect();
    let base = opened.iter().position(OpenedLayer::is_base);
    let base = base.map(|at| (opened[at].layer.layer, opened[at].layer.digest.clone()));
    let mut result = Vec::new();
    for (root, key) in merged(opened) {
        match (hive::edits(root, &key), &base) {
            (Ok(edits), _) => result.extend(edits),
            // The names in the other layers were already processed.
            (Err(source), Some((layer, digest))) => {
                let name = base_files(root)[0];
                problems.push(LayerProblem::Key { name, source }.in_layer(*layer, digest));
            }
            (Err(_), None) => {}
        }
    }
    RegistryReport::Changes {
        layers,
        result,
        over_base: base.is_some(),
    }
}

/// The merged state of each hive that any layer has.
fn merged(layers: Vec<OpenedLayer<'_>>) -> Vec<(Root, Key<'_>)> {
    let mut hives: BTreeMap<Root, (Option<Key<'_>>, Vec<Key<'_>>)> = BTreeMap::new();
    for opened in layers {
        let is_base = opened.is_base();
        for (root, key) in opened.roots {
            let (base, deltas) = hives.entry(root).or_default();
            if is_base {
                *base = Some(key);
            } else {
                deltas.push(key);
            }
        }
    }
    hives
        .into_iter()
        .filter_map(|(root, (base, deltas))| Some((root, hive::merge(base, deltas)?)))
        .collect()
}

/// With the base, the merged state; without it, the changes in the order of the layers, so that
/// importing the file has the effect of the layers.
fn file(layers: Vec<OpenedLayer<'_>>) -> String {
    let mut text = format!("{HEADER}\r\n");
    if layers.iter().any(OpenedLayer::is_base) {
        for (root, key) in merged(layers) {
            text.push_str(&body(root, &key));
        }
        return text;
    }
    for opened in layers.iter().filter(|opened| !opened.roots.is_empty()) {
        let LayerHives { layer, digest, .. } = opened.layer;
        let _ = write!(text, "\r\n; layer {}, {digest}\r\n", layer + 1);
        for (root, key) in &opened.roots {
            text.push_str(&body(*root, key));
        }
    }
    text
}

/// A hive's part of a file that holds several.
fn body(root: Root, key: &Key<'_>) -> String {
    let text = regfile::export(root.long_name(), key);
    let keys = text.strip_prefix(HEADER).unwrap_or(&text);
    format!("{}\r\n", keys.trim_end_matches(['\r', '\n']))
}
