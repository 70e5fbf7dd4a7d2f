//! Parses a Dockerfile and its build options.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use wincimg_common::diagnose::{Diagnose as _, Problem, closest_match, error_chain};
use wincimg_common::files::{TextFile, missing_path_hint, or_here};
use wincimg_layer::DiskSource;
use wincimg_layer::dockerignore::{FILE_NAME, IgnoreRules};
use wincimg_oci::store::LOCAL_SCHEMES;
use wincimg_recipe::{FileSource, LOCK_FILE, PlannedContent};

use super::choco_feed::ChocoFeed;
use super::error::StepError;
use super::files::{Files as _, Folder};
use super::{BuildArguments, Result, Stage, StageBaseImage, StageError, Stages};
use crate::instruction::{FromInstruction, InstructionError, InstructionKind, ParsedInstruction};
use crate::lint::{JOINED, advice_on_join};
use crate::source::{Dockerfile, Instruction, is_keyword};

/// Hint for a base without Windows.
const WINDOWS_BASE: &str = "use a base such as mcr.microsoft.com/windows/nanoserver";

/// A Dockerfile with its build options.
#[derive(Debug, Clone)]
pub struct DockerfileRequest {
    /// Dockerfile.
    pub file: TextFile,
    /// Folder that the image is named after.
    pub folder: PathBuf,
    /// Context folder.
    pub context: PathBuf,
    /// Target stage; the last by default.
    pub target: Option<String>,
    /// Build arguments.
    pub arguments: Vec<(String, String)>,
    /// Custom actions of Windows Installer packages to leave out.
    pub skipped_actions: Vec<String>,
    /// Feed of Chocolatey packages: a folder, or a URL.
    pub choco_feed: Option<String>,
    /// Replacements of stages, by the stages' names.
    pub replacements: BTreeMap<String, StageReplacement>,
}

/// What replaces the output of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StageReplacement {
    /// A folder with its drive.
    Folder(PathBuf),
    /// An image, which other stages may be based on.
    Image(String),
}

impl StageReplacement {
    /// Parses a folder, relative to another, a reference with a registry, or `oci:DIR[:TAG]` and
    /// `docker-archive:FILE[:NAME]`. If there is such a folder, it is meant.
    pub fn parse(text: &str, above: &Path) -> Self {
        if let Some(place) = local_image(text, above) {
            return Self::Image(place);
        }
        let path = above.join(text);
        let host = text.split_once('/').map_or("", |(host, _)| host);
        let is_host = !host.starts_with('.') && !host.contains('\\');
        let has_registry = is_host && (host == "localhost" || host.contains(['.', ':']));
        if has_registry && !path.exists() {
            Self::Image(text.to_owned())
        } else {
            Self::Folder(path)
        }
    }
}

impl fmt::Display for StageReplacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => folder.display().fmt(f),
            Self::Image(image) => f.write_str(image),
        }
    }
}

/// The place of an image in a layout or archive, which may be relative to a folder; none for others.
pub fn local_image(text: &str, above: &Path) -> Option<String> {
    let (scheme, place) = LOCAL_SCHEMES
        .iter()
        .find_map(|scheme| Some((scheme, text.strip_prefix(scheme)?)))?;
    Some(format!("{scheme}{}", above.join(place).display()))
}

/// Error of an instruction that cannot be read, which the lines around it may explain.
fn unreadable(
    file: &Dockerfile<'_>,
    instruction: &Instruction,
    error: InstructionError,
) -> StepError {
    if let Some(hint) = advice_on_join(file, instruction) {
        return StepError::hinted(JOINED, hint);
    }
    let is_continuation = !is_keyword(&instruction.keyword);
    if is_continuation && file.lacks_directive(instruction.lines().0) {
        let why = "the line above does not continue here";
        let hint = "begin the file with the line # escape=`";
        return StepError::hinted(format!("{}: {why}", error.message), hint);
    }
    StepError {
        hint: error.hint,
        ..error.message.into()
    }
}

impl Stages {
    /// Reads a Dockerfile and its ignore file.
    pub fn read(request: &DockerfileRequest) -> Result<Self> {
        let text = request.file.read().map_err(|source| {
            let file = request.file.clone();
            StageError::Unreadable { file, source }
        })?;
        let path = request.file.path();
        let file = Dockerfile::read(&text);
        if let Some((at, problem)) = file.directive_problem {
            let line = text.lines().nth(at).unwrap_or_default();
            return Err(StageError::at(path, at + 1, line, problem.to_owned()));
        }
        let mut stages = Self {
            request: request.clone(),
            text: text.clone(),
            name: image_name(request),
            escape: file.escape,
            joins: BTreeMap::new(),
            all: Vec::new(),
            target: 0,
            context: context(path, &text, &request.context)?,
            archives: wincimg_layer::archive::Archives::default(),
            arguments: BuildArguments::new(request.arguments.clone()),
            feed: request
                .choco_feed
                .as_deref()
                .map(ChocoFeed::read)
                .transpose()?,
        };
        for instruction in &file.instructions {
            let line = instruction.lines().0 + 1;
            let step = ParsedInstruction::read(instruction, file.escape).map_err(|error| {
                let error = unreadable(&file, instruction, error);
                StageError::at(path, line, instruction.full_text(), error)
            })?;
            let hint = advice_on_join(&file, instruction);
            stages.joins.extend(hint.map(|hint| (line, hint)));
            stages.add_instruction(step)?;
        }
        if stages.all.is_empty() {
            let problem = format!("{} has no FROM", path.display());
            return Err(StageError::Request(problem, None));
        }
        stages.select_target(request)?;
        Ok(stages)
    }

    fn add_instruction(&mut self, step: ParsedInstruction) -> Result<()> {
        match (&step.kind, self.all.last_mut()) {
            (InstructionKind::From(from), _) => {
                let from = from.clone();
                self.start_stage(step, &from)
            }
            (InstructionKind::Arg(list), None) => {
                for (name, default) in list {
                    let declared = self
                        .arguments
                        .declare(name, default.as_deref(), self.escape);
                    declared.map_err(|problem| self.error(&step, problem))?;
                }
                Ok(())
            }
            (_, None) => {
                let problem = "expected FROM before any instruction but ARG";
                Err(self.error(&step, problem.to_owned()))
            }
            (_, Some(stage)) => {
                stage.steps.push(step);
                Ok(())
            }
        }
    }

    fn start_stage(&mut self, step: ParsedInstruction, from: &FromInstruction) -> Result<()> {
        let number = self.all.len();
        let image = self.global(&step, &from.image)?;
        if image.is_empty() {
            return Err(self.error(&step, "the base has no name".to_owned()));
        }
        if let Some(platform) = &from.platform {
            self.global(&step, platform)?;
        }
        let same = self
            .all
            .iter()
            .find(|stage| Some(&stage.name) == from.name.as_ref());
        if let Some(same) = same {
            let problem = format!(
                "the stage {:?} is already defined on line {}",
                same.name, same.from.line
            );
            return Err(self.error(&step, problem));
        }
        let base = match self.stage_before(number, &image) {
            // In `FROM` a number is an image, not a stage.
            Some(below) if image.parse::<usize>().is_err() => StageBaseImage::Stage(below),
            _ => StageBaseImage::Image(image),
        };
        self.all.push(Stage {
            name: from.name.clone().unwrap_or_else(|| number.to_string()),
            from: step,
            base,
            steps: Vec::new(),
            folder: None,
            is_replaced: false,
            platform: None,
        });
        Ok(())
    }

    /// Expands a word before or in `FROM`, where only global arguments are set.
    fn global(&self, step: &ParsedInstruction, text: &str) -> Result<String> {
        let expanded = self.arguments.expand(text, self.escape);
        let expanded = expanded.map_err(|problem| self.error(step, problem))?;
        match expanded.unset.first() {
            Some(name) if matches!(step.kind, InstructionKind::From(_)) => {
                let (why, further) = if self.arguments.is_declared(name) {
                    (format!("ARG {name} has no default"), String::new())
                } else {
                    let why = "no ARG before the first FROM sets it".to_owned();
                    (why, format!(", and ARG {name} above FROM"))
                };
                let problem = format!("{name} is not set: {why}");
                let hint = format!("add --build-arg {name}=VALUE{further}");
                Err(self.error(step, StepError::hinted(problem, hint)))
            }
            _ => Ok(expanded.text),
        }
    }

    /// Finds the target stage, and replaces others.
    fn select_target(&mut self, request: &DockerfileRequest) -> Result<()> {
        let count = self.all.len();
        let find = |stages: &Self, name: &str| {
            stages.stage_before(count, name).ok_or_else(|| {
                let names: Vec<&str> = stages.all.iter().map(|stage| stage.name.as_str()).collect();
                let problem = format!("{} has no stage {name:?}", stages.file().display());
                let hint = match closest_match(name, names.iter().copied()) {
                    Some(meant) => format!("did you mean {meant:?}?"),
                    None => format!("its stages are: {}", names.join(", ")),
                };
                StageError::Request(problem, Some(hint))
            })
        };
        self.target = match &request.target {
            Some(name) => find(self, name)?,
            None => count - 1,
        };
        let are_empty: Vec<bool> = self.all.iter().map(|it| it.steps.is_empty()).collect();
        for (name, replacement) in &request.replacements {
            let index = find(self, name)?;
            match replacement {
                StageReplacement::Folder(folder) => self.replace_by_folder(index, name, folder)?,
                StageReplacement::Image(image) => {
                    let stage = &mut self.all[index];
                    stage.base = StageBaseImage::Image(image.clone());
                    stage.steps.clear();
                }
            }
            self.all[index].is_replaced = true;
        }
        self.find_file_sources(&are_empty)?;
        self.check_bases()
    }

    fn replace_by_folder(&mut self, index: usize, name: &str, folder: &Path) -> Result<()> {
        if self.is_below_target(index) {
            let problem =
                format!("the image is based on the stage {name:?}, which a folder cannot replace");
            let hint = format!("name an image in its place: --stage {name}=IMAGE");
            return Err(StageError::Request(problem, Some(hint)));
        }
        if !folder.is_dir() {
            let place = folder.display();
            let problem = format!("--stage {name}={place}: folder not found");
            let hint = if folder.is_file() {
                format!("name an archive of an image with its kind: docker-archive:{place}")
            } else {
                let compiled = || format!("compile the stage {name:?} into that folder first");
                missing_path_hint(folder).unwrap_or_else(compiled)
            };
            return Err(StageError::Request(problem, Some(hint)));
        }
        let rules = folder.join(FILE_NAME);
        let place = Folder::new(DiskSource::folder(folder), IgnoreRules::default(), rules);
        self.all[index].folder = Some(place);
        Ok(())
    }

    /// Finds the stages that are an image of another platform without steps, from which others copy
    /// files: `FROM --platform=linux/amd64 IMAGE AS core`. Another image in place of one is for the
    /// same platform; in place of steps, it may be for Windows.
    fn find_file_sources(&mut self, are_empty: &[bool]) -> Result<()> {
        for (index, is_empty) in are_empty.iter().enumerate() {
            let stage = &self.all[index];
            let StageBaseImage::Image(image) = &stage.base else {
                continue;
            };
            let is_source = index != self.target
                && stage.folder.is_none()
                && *is_empty
                && image != "scratch"
                && !self
                    .all
                    .iter()
                    .any(|other| other.base == StageBaseImage::Stage(index));
            let platform = self.platform(stage)?;
            let mut all = self.all.iter().enumerate();
            let clashes = all.any(|(other, it)| other != index && it.base.is_image(image));
            if is_source && !clashes {
                self.all[index].platform = platform;
            }
        }
        Ok(())
    }

    /// The platform that `FROM` names.
    fn platform_in(&self, stage: &Stage) -> Result<Option<String>> {
        match &stage.from.kind {
            InstructionKind::From(from) => from
                .platform
                .as_ref()
                .map(|platform| self.global(&stage.from, platform))
                .transpose(),
            _ => Ok(None),
        }
    }

    /// Platform of a stage's image, if it is not Windows.
    fn platform(&self, stage: &Stage) -> Result<Option<String>> {
        let is_other = |it: &String| !it.is_empty() && it.split('/').next() != Some("windows");
        Ok(self.platform_in(stage)?.filter(is_other))
    }

    /// The architecture that `FROM --platform=windows/ARCHITECTURE` of the required stages names, if
    /// one does.
    pub fn architecture(&self) -> Result<Option<String>> {
        let mut named: Option<String> = None;
        for (index, stage) in self.needed() {
            if stage.is_replaced {
                continue;
            }
            let platform = self.platform_in(stage)?.unwrap_or_default();
            let Some(own) = platform.strip_prefix("windows/") else {
                continue;
            };
            match &named {
                Some(known) if known != own => {
                    let problem = format!("another stage is for windows/{known}");
                    let hint = format!("use {}", self.replacement_of(index));
                    return Err(self.error(&stage.from, StepError::hinted(problem, hint)));
                }
                _ => named = Some(own.to_owned()),
            }
        }
        Ok(named)
    }

    /// Refuses bases that are not for Windows.
    fn check_bases(&self) -> Result<()> {
        for (index, stage) in self.needed() {
            let (StageBaseImage::Image(image), None) = (&stage.base, &stage.folder) else {
                continue;
            };
            if image == "scratch" {
                let error = StepError::hinted("FROM scratch contains no Windows", WINDOWS_BASE);
                return Err(self.error(&stage.from, error));
            }
            if stage.is_replaced || stage.platform.is_some() {
                continue;
            }
            if let Some(platform) = self.platform(stage)? {
                return Err(self.other_system(index, &platform, false));
            }
        }
        Ok(())
    }

    /// Error for the stage whose base image, by its name in the file, is for other systems than
    /// Windows; `is_sent` if a Docker daemon is to build the file.
    pub fn base_of_other_system(&self, base: &str, systems: &str, is_sent: bool) -> StageError {
        let stages = self.needed().filter(|(_, stage)| stage.folder.is_none());
        let own = stages.filter(|(_, stage)| stage.base.is_image(base));
        // To replace another stage on this base would not be enough.
        let index = own
            .map(|(index, _)| index)
            .max_by_key(|index| self.is_below_target(*index));
        self.other_system(index.unwrap_or(self.target), systems, is_sent)
    }

    fn other_system(&self, index: usize, system: &str, is_sent: bool) -> StageError {
        let stage = &self.all[index];
        let problem = format!("the stage {:?} is for {system}", stage.name);
        let hint = if self.is_below_target(index) {
            WINDOWS_BASE.to_owned()
        } else {
            // A daemon builds every stage itself.
            let without = if is_sent {
                "omit --engine docker, and "
            } else {
                ""
            };
            format!("{without}use {}", self.replacement_of(index))
        };
        self.error(&stage.from, StepError::hinted(problem, hint))
    }

    /// Returns true if instructions of the image may set a label.
    pub fn sets_label(&self, key: &str) -> bool {
        let may_name = |name: &String| {
            let plain = name.replace(['"', '\'', '\\', '`'], "");
            plain == key || name.contains('$') && self.text.contains(key)
        };
        let sets = |step: &ParsedInstruction| match &step.kind {
            InstructionKind::Label(pairs) => pairs.iter().any(|(name, _)| may_name(name)),
            InstructionKind::OnBuild(trigger) => trigger.contains(key),
            _ => false,
        };
        let mut stages = self.all.iter().enumerate();
        stages.any(|(index, stage)| self.is_below_target(index) && stage.steps.iter().any(sets))
    }

    /// Returns true for the target stage, and for those that it is based on.
    pub(super) fn is_below_target(&self, index: usize) -> bool {
        self.is_based_on(self.target, index)
    }

    /// Returns true for a stage itself, and for those that it is based on.
    pub(super) fn is_based_on(&self, stage: usize, below: usize) -> bool {
        let mut stages = std::iter::successors(Some(stage), |stage| match self.all[*stage].base {
            StageBaseImage::Stage(below) => Some(below),
            StageBaseImage::Image(_) => None,
        });
        stages.any(|stage| stage == below)
    }
}

/// The first file of these paths in the context of a file, which is its folder.
pub(crate) fn context_file(
    file: &Path,
    mut paths: impl Iterator<Item = String>,
) -> Option<FileSource> {
    let context = context_beside(file, "")?;
    paths.find_map(|path| match context.find(&path).ok()??.content {
        PlannedContent::File(source) => Some(source),
        _ => None,
    })
}

/// Returns true if the folder of a file, with this text, has something at a path that the folder's
/// `.dockerignore` excludes.
pub(crate) fn is_excluded(file: &Path, text: &str, path: &str) -> bool {
    context_beside(file, text).is_some_and(|context| context.hides(path))
}

/// Number of files and folders beside a file, with this text, that match a pattern.
pub(crate) fn count_matches(file: &Path, text: &str, pattern: &str) -> usize {
    let found = context_beside(file, text).and_then(|context| context.search(pattern).ok());
    found.map_or(0, |found| found.len())
}

/// The context of a file, with this text, which is its folder.
fn context_beside(file: &Path, text: &str) -> Option<Folder> {
    context(file, text, or_here(file.parent()?)).ok()
}

/// The context, without files excluded by `NAME.dockerignore` or `.dockerignore`, and without the
/// lock file unless the Dockerfile names it: it says what the first build found.
fn context(file: &Path, text: &str, folder: &Path) -> Result<Folder> {
    let failed = |error: Problem| StageError::Request(error_chain(&error), error.diagnosis().hint);
    if !folder.is_dir() {
        let problem = format!("the context {} is not a folder", folder.display());
        return Err(StageError::Request(problem, None));
    }
    let mut own = file.as_os_str().to_owned();
    own.push(FILE_NAME);
    let own = PathBuf::from(own);
    let root = DiskSource::folder(folder);
    let rules = IgnoreRules::read_file(&DiskSource::from(own.clone())).map_err(failed)?;
    let (rules, ignore) = match rules {
        Some(ignore) => (own, ignore),
        None => (
            folder.join(FILE_NAME),
            IgnoreRules::read_folder(&root).map_err(failed)?,
        ),
    };
    let own = lock_file(file, folder).filter(|_| !text.contains(LOCK_FILE));
    Ok(Folder::new(
        root,
        ignore.after(IgnoreRules::of_paths(own)),
        rules,
    ))
}

/// Path of the lock file next to a Dockerfile, from the context folder.
fn lock_file(file: &Path, folder: &Path) -> Option<String> {
    let own = std::fs::canonicalize(Path::new(".").join(file.parent()?)).ok()?;
    let context = std::fs::canonicalize(folder).ok()?;
    let inside = own.strip_prefix(context).ok()?.join(LOCK_FILE);
    Some(inside.to_str()?.replace('\\', "/"))
}

/// Name of the image, from its folder.
fn image_name(request: &DockerfileRequest) -> String {
    let folder = Path::new(".").join(&request.folder);
    let whole = std::fs::canonicalize(&folder).unwrap_or(folder);
    let name = whole
        .file_name()
        .map(|name| name.to_string_lossy().to_lowercase());
    let name = name.unwrap_or_default();
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return "image".to_owned();
    }
    words.join("-")
}
#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A Dockerfile at a path of the context, with lock files there and at the top.
    fn read(file: &str, text: &str) -> (Vec<String>, String) {
        let folder = tempfile::tempdir().unwrap();
        let context = folder.path().join("shop");
        let file = context.join(file);
        let inside = file.parent().unwrap();
        fs::create_dir_all(inside).unwrap();
        fs::write(&file, format!("FROM a:1\n{text}")).unwrap();
        for folder in [inside, &context] {
            fs::write(folder.join(LOCK_FILE), "").unwrap();
        }
        let request = DockerfileRequest {
            file: TextFile::named(file),
            folder: context.clone(),
            context: context.join("."),
            target: None,
            arguments: Vec::new(),
            skipped_actions: Vec::new(),
            choco_feed: None,
            replacements: BTreeMap::new(),
        };
        let stages = Stages::read(&request).unwrap();
        let sources = stages.sources().unwrap().into_iter();
        let locks = sources.map(|(path, _)| path);
        let locks = locks.filter(|path| path.ends_with(LOCK_FILE)).collect();
        (locks, stages.name().to_owned())
    }

    #[test]
    fn the_lock_file_is_not_in_the_context_unless_it_is_named() {
        assert_eq!(read("Dockerfile", "COPY . C:/app").0, [""; 0]);
        let named = read("Dockerfile", "COPY wincimg.lock C:/app/").0;
        assert_eq!(named, ["context/wincimg.lock"]);
        // Another one is an ordinary file.
        let other = read("docker/win.Dockerfile", "COPY . C:/app").0;
        assert_eq!(other, ["context/wincimg.lock"]);
    }

    #[test]
    fn an_image_is_named_after_the_given_folder() {
        assert_eq!(read("docker/win.Dockerfile", "").1, "shop");
    }
}
