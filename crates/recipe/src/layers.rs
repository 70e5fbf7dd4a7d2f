//! The layers of a recipe: the content of each, and its text in the image's history.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;
use wincimg_iis::IisSettings;
use wincimg_windows::access::AccessChange;
use wincimg_windows::path::ImagePath;

use super::file::RecipeFile;
use super::files::TakenPaths;
use super::text::{Field, Text};
use super::{
    Instructions, Plan, PlannedContent, PlannedEntry, PlannedLayer, PlannedStep, Recipe,
    RecipeInputs, Result,
};

/// A separate layer; with `created_by` alone, a history entry without a layer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { name = \"deps\" }"
)]
pub(super) struct LayerEntry {
    /// Name by which files and registry changes select it.
    name: Option<Text>,
    /// Its text in the image's history.
    created_by: Option<Text>,
    /// Folders to create.
    #[serde(default)]
    folders: Vec<Field<ImagePath>>,
    /// Files and folders of the base, or of earlier layers, to delete with all their contents.
    #[serde(default)]
    deletes: Vec<Field<ImagePath>>,
}

/// A layer with the name of its entry, if it has one.
type NamedLayer<'f> = (Option<&'f Text>, PlannedLayer);

impl Recipe {
    /// Adds to the plan its layers, and the container configuration that only Dockerfiles set
    /// otherwise.
    pub(super) fn add_instructions(
        &self,
        plan: &mut Plan,
        file: &RecipeFile,
        steps: Vec<PlannedStep>,
    ) -> Result<()> {
        let is_unspecified =
            |iis: &IisSettings| iis.server_edits().is_empty() && iis.site_edits().is_empty();
        if !steps.is_empty() && plan.iis.as_ref().is_some_and(is_unspecified) {
            // All settings of IIS are in layers.
            plan.iis = None;
        }
        let says_more = file.args_escaped
            || file.author.is_some()
            || file.healthcheck.is_some()
            || file.stop_signal.is_some()
            || !file.volumes.is_empty()
            || !file.shell.is_empty()
            || !file.on_build.is_empty();
        if steps.is_empty() && !says_more {
            return Ok(());
        }
        plan.instructions = Some(Instructions {
            steps,
            container: self.container(plan, file)?,
            author: file.author.as_ref().map(|author| author.value.clone()),
        });
        Ok(())
    }

    /// The layers in the order of their entries, then those that have no entry.
    pub(super) fn steps(
        &self,
        file: &RecipeFile,
        settings: &RecipeInputs<'_>,
        taken: &mut TakenPaths,
    ) -> Result<Vec<PlannedStep>> {
        let mut layers = self.own_layers(file)?;
        for entry in &file.files {
            if let Some(layer) = layer_of(&mut layers, entry.layer.as_ref()) {
                let planned = self.planned_file(entry, settings, taken)?;
                layer.entries.push(planned);
            }
        }
        for entry in &file.registry {
            if let Some(layer) = layer_of(&mut layers, entry.get_ref().layer.as_ref()) {
                layer.registry.extend(self.registry_edits(entry)?.edits);
            }
        }
        for entry in &file.access {
            if let Some(layer) = layer_of(&mut layers, entry.layer.as_ref()) {
                layer.access.push(AccessChange::Grant(self.access(entry)?));
            }
        }
        for entry in file.iis.iter().flat_map(|iis| &iis.config) {
            if let Some(layer) = layer_of(&mut layers, entry.layer.as_ref()) {
                layer.iis.extend(self.config(entry)?);
            }
        }
        let runtimes = file.runtimes.iter();
        let steps: Result<Vec<_>, _> = runtimes.map(|name| self.runtime(name)).collect();
        let mut steps_after = steps?;
        let recipe = self.name();
        let step = |created_by: String, layer: PlannedLayer| PlannedStep {
            line: None,
            created_by,
            layer: (!layer.is_empty()).then(|| Arc::new(layer)),
        };
        for entry in &file.msi {
            let package = self.package(entry)?;
            match layer_of(&mut layers, entry.get_ref().layer.as_ref()) {
                Some(layer) => layer.packages.push(package),
                None => {
                    let text = format!("wincimg build {recipe}: {}", package.options.file_name);
                    let mut layer = PlannedLayer::default();
                    layer.packages.push(package);
                    steps_after.push(step(text, layer));
                }
            }
        }
        let texts = file.layers.iter().map(|entry| entry.created_by.as_ref());
        let texts = texts.chain(std::iter::repeat(None));
        let steps = layers.into_iter().zip(texts).map(|((name, layer), text)| {
            let name = name.map_or("a layer without a name", |name| &name.value);
            let created_by = text.map_or_else(
                || format!("wincimg build {recipe}: {name}"),
                |text| text.value.clone(),
            );
            step(created_by, layer)
        });
        Ok(steps.chain(steps_after).collect())
    }

    /// The layers with an entry, then those that other entries name.
    fn own_layers<'f>(&self, file: &'f RecipeFile) -> Result<Vec<NamedLayer<'f>>> {
        let mut layers = Vec::with_capacity(file.layers.len());
        for entry in &file.layers {
            if let Some(text) = &entry.name
                && layer_of(&mut layers, Some(text)).is_some()
            {
                let problem = format!("two layers have the name {:?}", text.value);
                return Err(self.error(text, problem));
            }
            layers.push((entry.name.as_ref(), self.own_layer(entry)?));
        }
        let config = file.iis.iter().flat_map(|iis| &iis.config);
        let registry = file.registry.iter().map(Spanned::get_ref);
        let packages = file.msi.iter().map(Spanned::get_ref);
        let mut named: Vec<&Text> = file
            .files
            .iter()
            .map(|entry| &entry.layer)
            .chain(registry.map(|entry| &entry.layer))
            .chain(file.access.iter().map(|entry| &entry.layer))
            .chain(packages.map(|entry| &entry.layer))
            .chain(config.map(|entry| &entry.layer))
            .flatten()
            .collect();
        named.sort_by_key(|text| text.offset);
        for text in named {
            if layer_of(&mut layers, Some(text)).is_none() {
                layers.push((Some(text), PlannedLayer::default()));
            }
        }
        Ok(layers)
    }

    /// The layer with the folders and deletions of its entry.
    fn own_layer(&self, entry: &LayerEntry) -> Result<PlannedLayer> {
        let mut layer = PlannedLayer::default();
        for (fields, content) in [
            (&entry.deletes, PlannedContent::Deleted),
            (&entry.folders, PlannedContent::Folder),
        ] {
            for field in fields {
                if field.value.components().is_empty() {
                    return Err(self.error(field, "cannot create or delete the drive itself"));
                }
                if content == PlannedContent::Deleted && field.value.is_essential() {
                    let problem = format!("Windows needs {}: it cannot be deleted", field.value);
                    return Err(self.error(field, problem));
                }
                layer.entries.push(PlannedEntry {
                    path: field.value.clone(),
                    content: content.clone(),
                });
            }
        }
        Ok(layer)
    }
}

/// The layer of that name.
fn layer_of<'l>(
    layers: &'l mut [NamedLayer<'_>],
    name: Option<&Text>,
) -> Option<&'l mut PlannedLayer> {
    let name = &name?.value;
    let is_it = |known: Option<&Text>| known.is_some_and(|known| known.value == *name);
    let layer = layers.iter_mut().find(|(known, _)| is_it(*known));
    layer.map(|(_, layer)| layer)
}

#[cfg(test)]
mod tests {
    use super::super::tests::plan;

    #[test]
    fn layers_are_in_the_order_of_their_entries_and_then_as_they_are_named() {
        let made = plan(
            "[[layers]]\nname = \"late\"\ncreated_by = \"by hand\"\ndeletes = ['C:\\old']\n\
             [[layers]]\ncreated_by = \"ENV A=1\"\n\
             [[files]]\ncontent = \"1\"\nto = 'C:\\own.txt'\n\
             [[files]]\nlayer = \"deps\"\ncontent = \"2\"\nto = 'C:\\deps.txt'\n\
             [[registry]]\nlayer = \"late\"\nkey = 'HKLM\\SOFTWARE\\A'\n\
             [[files]]\nlayer = \"late\"\ncontent = \"3\"\nto = 'C:\\late.txt'\n",
        );
        let made = made.unwrap();
        let steps = &made.instructions.as_ref().unwrap().steps;
        let reported: Vec<(&str, usize, usize)> = steps
            .iter()
            .map(|step| {
                let layer = step.layer.as_ref();
                let count = layer.map_or((0, 0), |it| (it.entries.len(), it.registry.len()));
                (step.created_by.as_str(), count.0, count.1)
            })
            .collect();
        let deps = ("wincimg build app: deps", 1, 0);
        assert_eq!(reported, [("by hand", 2, 1), ("ENV A=1", 0, 0), deps]);
        assert_eq!((made.files.len(), made.registry.len()), (1, 0));
    }

    #[test]
    fn variables_keep_their_order_and_a_line_for_the_shell_is_ready() {
        let made = plan(
            "args_escaped = true\ncmd = [\"cmd /S /C a b\"]\nstop_signal = \"3\"\n\
             volumes = ['C:\\data']\n[env]\nZ = \"1\"\nA = \"2\"\n\
             [healthcheck]\ntest = [\"CMD\", \"x\"]\nretries = 2\ninterval = \"1m30s\"\n",
        );
        let made = made.unwrap();
        let container = made.container();
        assert_eq!(container.env, ["Z=1", "A=2"]);
        assert!(container.args_escaped);
        assert_eq!(container.cmd.unwrap(), ["cmd /S /C a b"]);
        let other = serde_json::to_string(&container.other).unwrap();
        let expected = r#"{"Healthcheck":{"Test":["CMD","x"],"Interval":90000000000,"Retries":2},"Volumes":{"C:\\data":{}},"StopSignal":"3"}"#;
        assert_eq!(other, expected);
    }
}
