//! The layers of a recipe: what each brings, and what the image's history says of it.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Deserialize;
use wincimg_iis::IisSettings;
use wincimg_windows::path::ImagePath;

use super::files::planned_entry;
use super::text::{Text, Values};
use super::{
    Instructions, Plan, PlannedContent, PlannedEntry, PlannedLayer, PlannedStep, Recipe,
    RecipeError, Settings,
};

/// A layer of its own; with `created_by` alone, a line of the history that has none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { name = \"deps\" }"
)]
pub(super) struct LayerEntry {
    /// What files and registry changes call it that go into it.
    name: Option<Text>,
    /// What the image's history says of it.
    created_by: Option<Text>,
    /// Folders that are made in it.
    #[serde(default)]
    folders: Vec<Text>,
    /// Files and folders of the base, or of layers before it, that are gone with all that is in them.
    #[serde(default)]
    deletes: Vec<Text>,
}

impl Recipe {
    /// Gives a plan what only a recipe with layers has, or one that says more of containers than
    /// others.
    pub(super) fn add_instructions(
        &self,
        plan: &mut Plan,
        values: &Values,
        settings: &Settings<'_>,
    ) -> Result<(), RecipeError> {
        let steps = self.steps(values, settings)?;
        let file = &self.file;
        let says_nothing =
            |iis: &IisSettings| iis.server_edits().is_empty() && iis.site_edits().is_empty();
        if !steps.is_empty() && plan.iis.as_ref().is_some_and(says_nothing) {
            // All that is said of IIS is in layers.
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
            container: self.container(plan, values)?,
            author: self.parsed_option(file.author.as_ref(), values)?,
        });
        Ok(())
    }

    /// The layers in the order of their entries, then those that are only named.
    fn steps(
        &self,
        values: &Values,
        settings: &Settings<'_>,
    ) -> Result<Vec<PlannedStep>, RecipeError> {
        let file = &self.file;
        let mut steps = Vec::with_capacity(file.layers.len());
        let mut names: Vec<Option<String>> = Vec::with_capacity(file.layers.len());
        for entry in &file.layers {
            let name = self.parsed_option::<String>(entry.name.as_ref(), values)?;
            if let (Some(text), Some(name)) = (&entry.name, &name)
                && names.iter().flatten().any(|known| known == name)
            {
                return Err(self.error(text, format!("two layers have the name {name:?}")));
            }
            let mut layer = PlannedLayer::default();
            for (texts, content) in [
                (&entry.deletes, PlannedContent::Deleted),
                (&entry.folders, PlannedContent::Folder),
            ] {
                for text in texts {
                    let path: ImagePath = self.parsed(text, values)?;
                    if path.components().is_empty() {
                        return Err(self.error(text, "the drive itself is always there"));
                    }
                    let content = content.clone();
                    layer.entries.push(PlannedEntry { path, content });
                }
            }
            steps.push(self.step_of(entry.created_by.as_ref(), name.as_deref(), layer, values)?);
            names.push(name);
        }
        let files = file.files.iter().filter_map(|entry| entry.layer.as_ref());
        let registry = file.registry.iter();
        let access = file.access.iter().filter_map(|entry| entry.layer.as_ref());
        let config = file.iis.iter().flat_map(|iis| &iis.config);
        let mut meant: Vec<&Text> = files
            .chain(registry.filter_map(|entry| entry.get_ref().layer.as_ref()))
            .chain(access)
            .chain(config.filter_map(|entry| entry.layer.as_ref()))
            .collect();
        meant.sort_by_key(|text| text.offset);
        for text in meant {
            let name = self.resolve(text, values)?;
            if !names.iter().flatten().any(|known| *known == name) {
                steps.push(self.step_of(None, Some(&name), PlannedLayer::default(), values)?);
                names.push(Some(name));
            }
        }
        for (name, step) in names.iter().zip(&mut steps) {
            let layer = Arc::make_mut(step.layer.get_or_insert_default());
            let is_own = |text: &Option<Text>| -> Result<bool, RecipeError> {
                let own = text.as_ref().map(|text| self.resolve(text, values));
                Ok(own
                    .transpose()?
                    .is_some_and(|own| Some(&own) == name.as_ref()))
            };
            for entry in &file.files {
                if is_own(&entry.layer)? {
                    let file = self.planned_file(entry, values, settings)?;
                    if file.unpack.is_some() {
                        let problem =
                            "what is unpacked goes into the recipe's last layer: leave out layer";
                        return Err(self.error(&entry.to, problem));
                    }
                    layer.entries.push(planned_entry(file));
                }
            }
            for entry in &file.registry {
                if is_own(&entry.get_ref().layer)? {
                    layer
                        .registry
                        .extend(self.registry_edits(entry, values)?.edits);
                }
            }
            for entry in &file.access {
                if is_own(&entry.layer)? {
                    layer.access.push(self.access(entry, values)?);
                }
            }
            for entry in file.iis.iter().flat_map(|iis| &iis.config) {
                if is_own(&entry.layer)? {
                    layer.iis.extend(self.config(entry, values)?);
                }
            }
            if layer.is_empty() {
                step.layer = None;
            }
        }
        Ok(steps)
    }

    fn step_of(
        &self,
        created_by: Option<&Text>,
        name: Option<&str>,
        layer: PlannedLayer,
        values: &Values,
    ) -> Result<PlannedStep, RecipeError> {
        let created_by = match created_by {
            Some(text) => self.resolve(text, values)?,
            None => format!(
                "wincimg build {}: {}",
                self.name(),
                name.unwrap_or("a layer without a name")
            ),
        };
        Ok(PlannedStep {
            line: None,
            created_by,
            layer: Some(Arc::new(layer)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{plan, problem};

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
        let told: Vec<(&str, usize, usize)> = steps
            .iter()
            .map(|step| {
                let layer = step.layer.as_ref();
                let count = layer.map_or((0, 0), |it| (it.entries.len(), it.registry.len()));
                (step.created_by.as_str(), count.0, count.1)
            })
            .collect();
        assert_eq!(
            told,
            [
                ("by hand", 2, 1),
                ("ENV A=1", 0, 0),
                ("wincimg build app: deps", 1, 0)
            ]
        );
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
        let container = made.container(&made.base.container);
        assert_eq!(container.env, ["Z=1", "A=2"]);
        assert!(container.args_escaped);
        assert_eq!(
            container.cmd.as_deref(),
            Some(&["cmd /S /C a b".to_owned()][..])
        );
        let other = serde_json::to_string(&container.other).unwrap();
        assert_eq!(
            other,
            r#"{"Healthcheck":{"Test":["CMD","x"],"Interval":90000000000,"Retries":2},"Volumes":{"C:\\data":{}},"StopSignal":"3"}"#
        );
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (body, expected) in [
            (
                "[[layers]]\nname = \"a\"\n[[layers]]\nname = \"a\"\n",
                "two layers",
            ),
            ("[[layers]]\ndeletes = ['C:\\']\n", "the drive itself"),
            ("[healthcheck]\ntest = [\"x\"]\n", "invalid test"),
            (
                "[healthcheck]\ntest = [\"NONE\"]\ninterval = \"soon\"\n",
                "invalid \"soon\"",
            ),
            (
                "[[files]]\nbase64 = \"?\"\nto = 'C:\\a'\n",
                "invalid base64",
            ),
            (
                "[[files]]\ncontent = \"a\"\nencoding = \"latin-1\"\nto = 'C:\\a'\n",
                "expected utf-8 or utf-16",
            ),
        ] {
            let said = problem(body);
            assert!(said.contains(expected), "{body}: {said}");
        }
    }
}
