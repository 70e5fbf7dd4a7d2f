//! A Dockerfile for a Docker daemon: with pinned bases and its build context.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use wincimg_common::diagnose::Diagnose as _;
use wincimg_common::digest::sha256;
use wincimg_common::files::{LARGEST_TEXT, text_of};
use wincimg_layer::EntryContent;
use wincimg_layer::dockerignore::FILE_NAME;
use wincimg_recipe::{FileSource, PlannedContent};

use super::error::StepError;
use super::files::{Files, Folder};
use super::{Result, StageBaseImage, StageError, Stages, run};
use crate::instruction::{CopyInstruction, FromInstruction, InstructionKind, ParsedInstruction};
use crate::lint::{IN_HISTORY, is_secret, names_linux};
use crate::source::{Dockerfile, Instruction};
use crate::{ContextContent, ContextEntry, RenderedDockerfile};

impl Stages {
    /// Refuses options and flags that a daemon does not support.
    pub fn check_for_daemon(&self) -> Result<()> {
        let Some(stage) = self.all.iter().find(|stage| stage.is_replaced) else {
            return self.check_flags();
        };
        let problem = format!(
            "a Docker daemon builds the stage {:?} itself: nothing can replace it",
            stage.name
        );
        let hint = "omit --stage or --engine docker".to_owned();
        Err(StageError::Request(problem, Some(hint)))
    }

    /// Refuses flags and here-documents that only `BuildKit` supports. A stage for Linux has another
    /// error, once its base is known.
    fn check_flags(&self) -> Result<()> {
        let stages = self.needed();
        let stages = stages.filter(|(index, _)| !names_linux(self.base_of(*index)));
        let errors = stages.flat_map(|(index, stage)| {
            stage.steps.iter().filter_map(move |step| {
                let checked = match &step.kind {
                    InstructionKind::Run(line) => run::check_flags(line, false)
                        .map_err(|error| self.run_error(index, &error))
                        .and_then(|()| self.check_document(index, line)),
                    InstructionKind::Copy(copy) => check_copy(copy),
                    _ => Ok(()),
                };
                Some(self.error(step, checked.err()?))
            })
        });
        StageError::all(errors.collect()).map_or(Ok(()), Err)
    }

    /// Images that required stages copy files from, by their names in the file, each with the line
    /// of the instruction.
    pub fn copied_images(&self) -> impl Iterator<Item = (usize, &str)> {
        self.needed().flat_map(move |(index, stage)| {
            stage.steps.iter().filter_map(move |step| {
                let InstructionKind::Copy(copy) = &step.kind else {
                    return None;
                };
                let from = copy.from.as_deref()?;
                let is_image = self.stage_before(index, from).is_none();
                is_image.then_some((step.line, from))
            })
        })
    }

    /// Warnings of secrets of the command line that the image's history gets.
    pub fn secrets(&self) -> Vec<String> {
        let stages = self.needed();
        let steps = stages.flat_map(|(index, stage)| stage.steps.iter().map(move |it| (index, it)));
        steps
            .flat_map(|(index, step)| self.secrets_in(index, step))
            .collect()
    }

    pub(super) fn secrets_in(&self, index: usize, step: &ParsedInstruction) -> Vec<String> {
        let InstructionKind::Arg(list) = &step.kind else {
            return Vec::new();
        };
        let place = self.position(step);
        let is_given = |name: &str| {
            let value = self.arguments.argument(name);
            value.is_some_and(|value| is_secret(name, &value))
        };
        list.iter()
            .filter(|(name, _)| self.is_below_target(index) && is_given(name))
            .map(|(name, _)| {
                format!("{place}: everyone who has the image can read {name}: {IN_HISTORY}")
            })
            .collect()
    }

    /// Dockerfile and context for a daemon, with other names of images in `FROM` and `COPY --from`.
    pub fn for_daemon(
        &self,
        images: &BTreeMap<String, String>,
        labels: &BTreeMap<String, String>,
    ) -> Result<RenderedDockerfile> {
        let dockerfile = self.pinned(images);
        let mut context = folder_entries(&self.context)?;
        // Like Docker's client: the daemon removes both before it builds.
        let digest = sha256(dockerfile.as_bytes());
        let name = format!(".dockerfile.{}", &digest.digest()[..20]);
        let rules = context.iter().position(|entry| entry.path == FILE_NAME);
        let rules = match rules.map(|place| context.remove(place)) {
            Some(_) => {
                let file = self.context.source(FILE_NAME);
                file.read(LARGEST_TEXT).and_then(text_of).map_err(|error| {
                    let problem = format!("cannot read {}: {error}", file.path.display());
                    StageError::Request(problem, error.diagnosis().hint)
                })?
            }
            None => FILE_NAME.to_owned(),
        };
        let rules = format!("{rules}\n{name}\n");
        context.push(ContextEntry::generated(FILE_NAME, rules.into_bytes()));
        Ok(RenderedDockerfile {
            dockerfile,
            context,
            name: Some(name),
            target: self.request.target.clone(),
            labels: labels.clone(),
        })
    }

    /// Text with pinned images and the same lines. A daemon builds all stages before the target: those
    /// that the image does not need are empty ones on its base.
    fn pinned(&self, images: &BTreeMap<String, String>) -> String {
        let mut lines: Vec<String> = self.text.lines().map(str::to_owned).collect();
        let file = Dockerfile::read(&self.text);
        let all = file.instructions.iter();
        let begins: Vec<_> = all.filter(|it| it.keyword == "FROM").collect();
        let needed: BTreeSet<usize> = self.needed().map(|(index, _)| index).collect();
        for (index, (instruction, stage)) in begins.iter().zip(&self.all).enumerate() {
            let (first, mut last) = instruction.lines();
            let image = match &stage.base {
                _ if index < self.target && !needed.contains(&index) => {
                    let next = begins.get(index + 1);
                    last = next.map_or(lines.len(), |next| next.lines().0) - 1;
                    self.base()
                }
                StageBaseImage::Image(image) => image.as_str(),
                StageBaseImage::Stage(_) => continue,
            };
            let Some(pinned) = images.get(image) else {
                continue;
            };
            let named = match &stage.from.kind {
                InstructionKind::From(FromInstruction {
                    name: Some(name), ..
                }) => format!(" AS {name}"),
                _ => String::new(),
            };
            for line in lines.iter_mut().take(last + 1).skip(first) {
                line.clear();
            }
            if let Some(line) = lines.get_mut(first) {
                *line = format!("FROM {pinned}{named}");
            }
        }
        let copied: BTreeMap<usize, &str> = self.copied_images().collect();
        for instruction in &file.instructions {
            if let Some(image) = copied.get(&(instruction.lines().0 + 1))
                && let Some(pinned) = images.get(*image)
                && let Some((line, columns)) = source_image(instruction, image)
                && let Some(line) = lines.get_mut(line)
            {
                line.replace_range(columns, pinned);
            }
        }
        lines.push(String::new());
        lines.join("\n")
    }

    /// All local sources of the instructions: the context, and the folders that replace stages.
    pub fn sources(&self) -> Result<Vec<(String, EntryContent)>> {
        let mut sources = Vec::new();
        let stages = self.all.iter();
        let folders = stages.filter_map(|stage| Some((&stage.name, stage.folder.as_ref()?)));
        let mut add = |at: &str, folder: &Folder| {
            for ContextEntry { path, content } in folder_entries(folder)? {
                let content = match content {
                    ContextContent::Folder => EntryContent::Directory,
                    ContextContent::File(source) => EntryContent::File(source),
                    ContextContent::Link(link) => EntryContent::Symlink(link),
                };
                sources.push((format!("{at}/{path}"), content));
            }
            Ok::<_, StageError>(())
        };
        add("context", &self.context)?;
        for (name, folder) in folders {
            add(&format!("stage {name}"), folder)?;
        }
        if let Some(feed) = &self.feed {
            for (name, source) in feed.files() {
                sources.push((
                    format!("choco-feed/{name}"),
                    EntryContent::File((&source).into()),
                ));
            }
        }
        Ok(sources)
    }
}

/// Refuses what a daemon's builder ignores without a word, or misunderstands.
fn check_copy(copy: &CopyInstruction) -> Result<(), StepError> {
    let (what, instead) = if copy.checksum.is_some() {
        ("--checksum", "ignores it")
    } else if !copy.excluded.is_empty() {
        ("--exclude", "ignores it")
    } else if copy.unpack.is_some() {
        ("--unpack", "ignores it")
    } else if !copy.documents.is_empty() {
        ("here-documents", "takes them for names of files")
    } else {
        return Ok(());
    };
    let problem = format!("only BuildKit supports {what}: a Docker daemon {instead}");
    Err(StepError::hinted(problem, "omit --engine docker"))
}

/// Line and columns of the image in `--from`.
fn source_image(instruction: &Instruction, image: &str) -> Option<(usize, Range<usize>)> {
    let head = instruction.head();
    let flag = "--from=";
    let value = head.find(flag)? + flag.len();
    let start = value + head[value..].find(image)?;
    instruction.place(&(start..start + image.len()))
}

/// A folder without excluded files, folders before their contents.
fn folder_entries(top: &Folder) -> Result<Vec<ContextEntry>> {
    let failed = |problem: String| StageError::Request(problem, None);
    let mut entries = Vec::new();
    let mut pending = vec![String::new()];
    while let Some(folder) = pending.pop() {
        for found in top.inside(&folder, "").map_err(failed)? {
            let content = match found.content {
                PlannedContent::Folder => {
                    pending.push(found.path.clone());
                    ContextContent::Folder
                }
                PlannedContent::File(FileSource::Disk(file)) => ContextContent::File(file.into()),
                PlannedContent::Link(link) => ContextContent::Link(link),
                PlannedContent::File(_) | PlannedContent::Deleted => continue,
            };
            let path = found.path;
            entries.push(ContextEntry { path, content });
        }
    }
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(entries)
}
