//! Segments of a Dockerfile: runs of steps that only Windows can run, and where each step runs.
//!
//! A segment begins at a `RUN` that requires Windows and ends at the last such `RUN` before a step
//! that needs the build context, another stage, or no Windows. Settings in between are part of it.
//! What follows a segment is evaluated on its result like on a base: its contents are unknown until
//! they are read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use wincimg_common::Named;
use wincimg_common::untrusted::without_passwords;
use wincimg_recipe::Instructions;
use wincimg_scripts::{ScriptError, ScriptErrorKind};
use wincimg_windows::quoting::Escape;

use super::drive::Tree;
use super::evaluation::Evaluation;
use super::run::ChangedKeys;
use super::state::StageState;
use super::{StageBaseImage, Stages};
use crate::RenderedDockerfile;
use crate::instruction::{InstructionKind, ParsedInstruction};
use crate::source::Dockerfile;

/// Position of a segment: its stage, and its first and last step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId {
    stage: usize,
    first: usize,
    last: usize,
}

/// `0.3-5`: stage, first and last step.
impl fmt::Display for SegmentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}-{}", self.stage, self.first, self.last)
    }
}

/// Inputs for steps that Windows runs.
#[derive(Debug, Clone, Default)]
pub struct WindowsInputs {
    /// Images that segments made, by their names among the bases.
    pub results: BTreeMap<SegmentId, String>,
    /// URLs that no digest pins: lines that download them run on Windows.
    pub not_pinned: BTreeSet<String>,
    /// True if the plan is only shown: the contents of bases are not read.
    pub is_rehearsal: bool,
    /// True if `BuildKit` runs them, which has here-documents.
    pub has_documents: bool,
}

/// A run of steps for Windows, with the image that they are run on.
#[derive(Debug, Clone)]
pub struct WindowsSegment {
    /// Its position.
    pub id: SegmentId,
    /// Name or number of its stage.
    pub stage: String,
    /// True if the built image has the layers of the stage.
    pub is_of_target: bool,
    /// The image below, by its name among the bases.
    pub base: String,
    /// Layers and configuration between that image and the first step, if there are any.
    pub below: Option<Instructions>,
    /// The steps.
    pub steps: Vec<SegmentStep>,
    /// Names of the build arguments that are declared before the first step, and that it sees.
    declared: Vec<String>,
    /// True if an `ARG` takes only one name.
    has_single_arguments: bool,
    /// Values of build arguments.
    pub arguments: BTreeMap<String, String>,
    /// The escape directive of the file, if it is not the default.
    directive: Option<&'static str>,
}

/// A step of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentStep {
    /// First line in the Dockerfile, from 1.
    pub line: usize,
    /// Its lines.
    pub text: String,
    /// Names of the build arguments that it declares.
    declares: Vec<String>,
}

impl SegmentStep {
    /// Its lines without passwords in URLs.
    pub fn shown(&self) -> String {
        without_passwords(&self.text)
    }

    fn has_keyword(&self, keywords: &[&str]) -> bool {
        let keyword = self.text.split_whitespace().next().unwrap_or_default();
        keywords.iter().any(|it| keyword.eq_ignore_ascii_case(it))
    }
}

impl WindowsSegment {
    /// Its Dockerfile on an image.
    pub fn dockerfile(&self, image: &str) -> RenderedDockerfile {
        let declared = self.declarations();
        let declared = declared.map(|names| format!("ARG {}\n", names.join(" ")));
        let steps = self.steps.iter().map(|step| format!("{}\n", step.text));
        RenderedDockerfile {
            dockerfile: self.text(image, &declared.chain(steps).collect::<String>()),
            ..RenderedDockerfile::default()
        }
    }

    /// Its Dockerfile on an image, with the values of build arguments in place of their defaults, for
    /// a client that shows arguments in the process list. Fails with the name of an argument whose
    /// value has several lines.
    pub fn dockerfile_with_values(&self, image: &str) -> Result<String, String> {
        let declared = self.declarations().map(|names| self.declaration(names));
        let steps = self.steps.iter().map(|step| {
            let is_known = |name: &String| self.arguments.contains_key(name);
            if step.declares.iter().any(is_known) {
                self.declaration(&step.declares)
            } else {
                Ok(format!("{}\n", step.text))
            }
        });
        let lines = declared.chain(steps).collect::<Result<String, String>>()?;
        Ok(self.text(image, &lines))
    }

    fn text(&self, image: &str, lines: &str) -> String {
        format!(
            "{}FROM {image}\n{lines}",
            self.directive.unwrap_or_default()
        )
    }

    /// The segment for a daemon whose `ARG` takes one name, as Docker's before 20.10.
    #[must_use]
    pub fn with_single_arguments(self) -> Self {
        Self {
            has_single_arguments: true,
            ..self
        }
    }

    /// The names of each `ARG` before the first step: one for all of them, because each is a layer on
    /// Windows.
    fn declarations(&self) -> std::slice::Chunks<'_, String> {
        let count = if self.has_single_arguments {
            1
        } else {
            usize::MAX
        };
        self.declared.chunks(count)
    }

    /// `ARG NAME='value'`; an argument without a value is only named.
    fn declaration(&self, names: &[String]) -> Result<String, String> {
        let words = names.iter().map(|name| match self.arguments.get(name) {
            Some(value) if value.contains(['\r', '\n']) => Err(name.to_owned()),
            // In single quotes, every character stands for itself.
            Some(value) => Ok(format!("{name}='{}'", value.replace('\'', r#"'"'"'"#))),
            None => Ok(name.to_owned()),
        });
        let words = words.collect::<Result<Vec<_>, String>>()?;
        Ok(format!("ARG {}\n", words.join(" ")))
    }

    /// Number of instructions of its Dockerfile.
    pub fn instruction_count(&self) -> usize {
        self.declarations().len() + self.steps.len() + 1
    }

    /// Numbers of the instructions of its Dockerfile that make a layer, where `FROM` is the first.
    pub fn layer_numbers(&self) -> Vec<usize> {
        let makes_layer = |step: &SegmentStep| step.has_keyword(&["RUN", "COPY", "ADD", "WORKDIR"]);
        let before = self.declarations().len() + 2;
        let steps = self.steps.iter().enumerate();
        let layers = steps.filter(|(_, step)| makes_layer(step));
        std::iter::once(1)
            .chain(layers.map(|(index, _)| index + before))
            .collect()
    }

    /// Returns true if it downloads files that no digest pins: it has no other `ADD`.
    pub fn has_downloads(&self) -> bool {
        self.steps.iter().any(|step| step.has_keyword(&["ADD"]))
    }

    /// The step with a number of its Dockerfile, where `FROM` is the first.
    pub fn step(&self, number: usize) -> Option<&SegmentStep> {
        self.steps
            .get(number.checked_sub(self.declarations().len() + 2)?)
    }
}

/// Where a step of a Dockerfile runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepPlacement {
    /// Name or number of its stage.
    pub stage: String,
    /// Its line, from 1.
    pub line: usize,
    /// Its text on one line.
    pub text: String,
    /// The engine.
    pub engine: StepEngine,
    /// Reason, if it does not run here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Engine of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Named)]
#[serde(rename_all = "snake_case")]
pub enum StepEngine {
    /// This program, without Windows.
    Direct,
    /// Windows.
    Windows,
    /// One of both: it depends on contents that only a build reads.
    Unknown,
}

/// A segment under construction, at the end of a stage's steps so far.
#[derive(Debug, Clone)]
pub(super) struct OpenSegment {
    id: SegmentId,
    base: String,
    below: Option<Instructions>,
    declared: Vec<String>,
}

/// Name of the contents below steps whose segment is not complete.
const OPEN: &str = "the preceding steps on Windows";

impl Evaluation<'_> {
    /// Returns the reason if a failed line runs on Windows instead.
    pub(super) fn windows_reason(
        &self,
        state: &StageState,
        trouble: &ScriptError,
    ) -> Option<String> {
        self.inputs.windows.as_ref()?;
        state.place?;
        let is_for_windows = match trouble.kind {
            ScriptErrorKind::NeedsWindows | ScriptErrorKind::NotUnderstood => true,
            ScriptErrorKind::NotKnown => {
                let base = &state.base_name;
                self.is_of_windows_steps(base) || self.inputs.has_files_of(base)
            }
            _ => false,
        };
        is_for_windows.then(|| trouble.to_string())
    }

    /// Returns true if a name stands for the result of a segment.
    pub(super) fn is_of_windows_steps(&self, name: &str) -> bool {
        let windows = self.inputs.windows.as_ref();
        let mut results = windows.into_iter().flat_map(|it| it.results.values());
        name == OPEN || self.pending.contains(name) || results.any(|known| known == name)
    }

    /// Adds a step to the segment at the end of a stage, or begins one.
    pub(super) fn run_on_windows(
        &mut self,
        state: &mut StageState,
        step: &ParsedInstruction,
        reason: String,
    ) {
        let Some(place) = state.place else { return };
        match &mut state.segment {
            Some(open) => open.id.last = place,
            None => state.segment = Some(self.open_segment(state, place)),
        }
        state.steps.clear();
        state.registry = ChangedKeys::default();
        OPEN.clone_into(&mut state.base_name);
        state.tree = Tree::unknown(OPEN);
        state.makers.clear();
        self.place(state, step, StepEngine::Windows, Some(reason));
    }

    fn open_segment(&self, state: &StageState, place: usize) -> OpenSegment {
        let own = &self.stages.all[state.index];
        let is_setting = |step: &ParsedInstruction| {
            !matches!(
                step.kind,
                InstructionKind::Run(_) | InstructionKind::Copy(_)
            )
        };
        let has_triggers = |name: &String| {
            let base = self.inputs.bases.get(name);
            base.is_none_or(|base| !base.config.on_build.is_empty())
        };
        // Windows can apply the settings itself, which saves an image in between.
        let is_on_base = match &own.base {
            StageBaseImage::Image(name) => *name == state.base_name && !has_triggers(name),
            StageBaseImage::Stage(_) => false,
        };
        let before = &own.steps[..place];
        let mut names = BTreeSet::new();
        // A daemon gets one value of a name for all lines.
        let is_once = declared_names(before).all(|name| names.insert(name));
        let is_whole = is_on_base && is_once && before.iter().all(is_setting);
        // What Windows made stands as it is: an image on it would have the name of the built one.
        let is_on_result = state.steps.is_empty()
            && state.config.on_build.is_empty()
            && self.is_of_windows_steps(&state.base_name);
        OpenSegment {
            id: SegmentId {
                stage: state.index,
                first: if is_whole { 0 } else { place },
                last: place,
            },
            base: state.base_name.clone(),
            below: (!is_whole && !is_on_result).then(|| self.image_below(state)),
            declared: if is_whole {
                Vec::new()
            } else {
                state.visible_arguments()
            },
        }
    }

    /// The image below a segment.
    fn image_below(&self, state: &StageState) -> Instructions {
        let mut below = Instructions {
            steps: state.steps.clone(),
            container: state.config.clone(),
            author: state.author.clone(),
        };
        // The next `FROM` would carry them out.
        below.container.on_build.clear();
        // As in Docker, only the history of a released image has the values of its arguments.
        let is_released = self.stages.is_below_target(state.index);
        for step in below.steps.iter_mut().filter(|_| !is_released) {
            if step.created_by.starts_with("ARG ")
                && let Some(end) = step.created_by.find('=')
            {
                step.created_by.truncate(end);
            }
        }
        below
    }

    /// Ends the segment at the end of a stage's steps so far: what follows is on its result.
    pub(super) fn close_segment(&mut self, state: &mut StageState) {
        let Some(open) = state.segment.take() else {
            return;
        };
        let id = open.id;
        self.place_settings(id);
        let windows = self.inputs.windows.as_ref();
        let result = windows.and_then(|windows| windows.results.get(&id));
        let base = result.and_then(|name| self.inputs.bases.get(name));
        let name = match result {
            Some(name) => name.clone(),
            None => self.add_pending(open, state),
        };
        state.tree = match base {
            Some(base) => Tree::over(Arc::clone(&base.inside), &name),
            None => Tree::unknown(&name),
        };
        let layers = state.steps.iter().filter_map(|step| step.layer.as_ref());
        for layer in layers {
            state.tree.apply(&layer.entries);
        }
        state.base_name = name;
    }

    fn add_pending(&mut self, open: OpenSegment, state: &StageState) -> String {
        let id = open.id;
        let own = &self.stages.all[id.stage];
        let steps = &own.steps[id.first..=id.last];
        let last = steps.last().map_or(0, |step| step.line);
        let name = format!("{} after line {last}", self.stages.file().display());
        self.pending.insert(name.clone());
        let texts = self.stages.source_lines();
        let declared = open.declared.iter().chain(declared_names(steps));
        self.result.segments.push(WindowsSegment {
            id,
            stage: own.name.clone(),
            is_of_target: self.stages.is_below_target(id.stage),
            base: open.base,
            below: open.below,
            steps: steps
                .iter()
                .map(|step| SegmentStep {
                    line: step.line,
                    text: texts.get(&step.line).cloned().unwrap_or_default(),
                    declares: declared_names(std::slice::from_ref(step))
                        .cloned()
                        .collect(),
                })
                .collect(),
            arguments: declared
                .filter_map(|name| Some((name.clone(), state.argument_value(name)?)))
                .collect(),
            declared: open.declared,
            has_single_arguments: false,
            directive: (self.stages.escape == Escape::Backtick).then_some("# escape=`\n"),
        });
        name
    }

    /// Records that Windows applies the settings of a segment.
    fn place_settings(&mut self, id: SegmentId) {
        let steps = &self.stages.all[id.stage].steps[id.first..=id.last];
        let lines: BTreeSet<usize> = steps.iter().map(|step| step.line).collect();
        let placed = self.result.placements.iter_mut();
        let settings = placed.filter(|it| it.engine == StepEngine::Direct);
        for setting in settings.filter(|it| lines.contains(&it.line)) {
            setting.engine = StepEngine::Windows;
            setting.reason = Some("it is sent with a line that runs there".to_owned());
        }
    }

    /// Records where a step runs.
    pub(super) fn place(
        &mut self,
        state: &StageState,
        step: &ParsedInstruction,
        engine: StepEngine,
        reason: Option<String>,
    ) {
        self.result.placements.push(StepPlacement {
            stage: self.stages.all[state.index].name.clone(),
            line: step.line,
            text: without_passwords(&step.text),
            engine,
            reason,
        });
    }
}

/// Names of the build arguments that steps declare.
fn declared_names(steps: &[ParsedInstruction]) -> impl Iterator<Item = &String> {
    let lists = steps.iter().flat_map(|step| match &step.kind {
        InstructionKind::Arg(list) => list.as_slice(),
        _ => &[],
    });
    lists.map(|(name, _)| name)
}

impl Stages {
    /// The lines of each instruction, by its first line.
    fn source_lines(&self) -> BTreeMap<usize, String> {
        let file = Dockerfile::read(&self.text);
        let mut begins: Vec<usize> = file.instructions.iter().map(|it| it.lines().0).collect();
        begins.push(file.lines().count());
        let texts = begins.windows(2).map(|bounds| {
            let mut lines: Vec<&str> = (bounds[0]..bounds[1]).map(|line| file.line(line)).collect();
            // Comments and empty lines before the next instruction.
            while lines.len() > 1
                && lines.last().is_some_and(|line| {
                    let line = line.trim_start();
                    line.is_empty() || line.starts_with('#')
                })
            {
                lines.pop();
            }
            (bounds[0] + 1, lines.join("\n"))
        });
        texts.collect()
    }
}

#[cfg(test)]
mod tests;
