//! Evaluation of a Dockerfile: stages, and layers and configuration of the target stage.
//!
//! [`Stages::evaluate`] is pure except for files of the context. It gets facts about images as
//! inputs and returns missing ones as requests; the caller calls it again with the answers.

mod arguments;
mod choco_feed;
mod copy;
mod daemon;
mod drive;
mod error;
mod evaluation;
mod files;
mod paths;
mod read;
mod run;
mod segment;
mod state;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub(crate) use arguments::BuildArguments;
use choco_feed::ChocoFeed;
pub use copy::ImageCopy;
pub(crate) use copy::target as copy_target;
pub use error::{FailedLine, StageError};
use error::{OnWindows, StepError, Workaround, heading};
use evaluation::Evaluation;
pub(crate) use evaluation::HOST_PORT;
pub use files::ExtractedFiles;
use files::{Files as _, Folder};
pub(crate) use paths::{source as source_path, target as image_path};
pub use read::{DockerfileRequest, StageReplacement, local_image};
pub(crate) use read::{context_file, count_matches, is_excluded};
pub(crate) use run::{KnownPackages, script_error};
pub use segment::{
    SegmentId, SegmentStep, StepEngine, StepPlacement, WindowsInputs, WindowsSegment,
};
pub(crate) use state::StageState;
use wincimg_http::DownloadedFile;
use wincimg_iis::server_config;
use wincimg_layer::archive::Archives;
use wincimg_oci::document::ContainerConfig;
use wincimg_oci::store::is_local_image;
use wincimg_recipe::{DownloadRequests, Instructions};
use wincimg_registry::{Presence, Root};
pub use wincimg_scripts::is_windows_program;
use wincimg_scripts::{ScriptError, ScriptErrorKind};
use wincimg_windows::base_contents::{BaseContents, BaseRequirements};
use wincimg_windows::path::ImagePath;
use wincimg_windows::quoting::Escape;

use super::instruction::{
    CopyInstruction, InstructionKind, ParsedInstruction, RunInstruction, read_trigger,
};
use super::lint::{JOINED, names_linux, names_windows, not_above};

/// What the evaluation gives, or the error of the file.
type Result<T, E = StageError> = std::result::Result<T, E>;

/// A parsed Dockerfile with its build options.
#[derive(Debug)]
pub struct Stages {
    /// The options.
    pub request: DockerfileRequest,
    text: String,
    name: String,
    escape: Escape,
    /// What to do about instructions that a path's backslash joins with the next line, by their lines.
    joins: BTreeMap<usize, String>,
    all: Vec<Stage>,
    target: usize,
    context: Folder,
    archives: Archives,
    arguments: BuildArguments,
    feed: Option<ChocoFeed>,
}

#[derive(Debug)]
struct Stage {
    from: ParsedInstruction,
    /// Name or number.
    name: String,
    base: StageBaseImage,
    steps: Vec<ParsedInstruction>,
    /// Folder that replaces it.
    folder: Option<Folder>,
    /// True if a folder or an image replaces it.
    is_replaced: bool,
    /// Platform other than Windows, if it is only a source of files: an image without steps.
    platform: Option<String>,
}

/// Base of a stage.
#[derive(Debug, Clone, PartialEq, Eq)]
enum StageBaseImage {
    /// An earlier stage.
    Stage(usize),
    /// An image, by its name in the file.
    Image(String),
}

impl StageBaseImage {
    fn is_image(&self, name: &str) -> bool {
        matches!(self, Self::Image(own) if own == name)
    }
}

/// Facts about a base image.
#[derive(Debug, Clone)]
pub struct StageBase {
    /// Container configuration.
    pub config: ContainerConfig,
    /// Contents.
    pub inside: Arc<dyn BaseContents>,
    /// True if a step of it may have set variables of users.
    pub has_user_variables: bool,
}

/// Base images by their names in the file.
pub type BaseImages = BTreeMap<String, StageBase>;

/// Inputs of an evaluation.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// Base images.
    pub bases: BaseImages,
    /// Extracted files by the images' names in the file.
    pub files: BTreeMap<String, ExtractedFiles>,
    /// Paths that are not extracted yet, by the images' names.
    pub lacking: BTreeMap<String, BTreeSet<String>>,
    /// Downloaded files by URL.
    pub downloads: BTreeMap<String, DownloadedFile>,
    /// All known download requests.
    pub wants: DownloadRequests,
    /// True if lines that depend on unread contents of a base are left out: for a plan that is only
    /// shown.
    pub omits_unread: bool,
    /// Inputs for steps that Windows runs; none if it runs none.
    pub windows: Option<WindowsInputs>,
}

impl Inputs {
    /// Returns true if files of a base were extracted.
    pub fn has_files_of(&self, base: &str) -> bool {
        let base = self.bases.get(base);
        let drive = base.map(|base| base.inside.file(&ImagePath::drive()));
        matches!(drive, Some(Ok(Presence::Absent | Presence::Present(_))))
    }
}

/// Result of an evaluation.
#[derive(Debug, Default)]
pub struct EvaluationResult {
    /// Layers and configuration on the base.
    pub instructions: Instructions,
    /// True if the evaluation finished; otherwise `instructions` is empty.
    is_finished: bool,
    /// Notes for the author.
    pub notes: Vec<String>,
    /// Paths that must be extracted from images first; the result is incomplete until then.
    pub lacking: BTreeMap<String, BTreeSet<String>>,
    /// Downloads, present or not.
    pub wants: DownloadRequests,
    /// Lines that are left out: they depend on missing downloads, or on unread contents of a base.
    pub unclear: Vec<String>,
    /// Required facts about bases, by their names in the file; the result is incomplete until then.
    pub needs: BTreeMap<String, BaseRequirements>,
    /// The image that `instructions` are on, by its name among the bases.
    pub base: String,
    /// Segments without a result; the evaluation is incomplete until Windows ran them. The first
    /// depends on none of the others.
    pub segments: Vec<WindowsSegment>,
    /// Where each step runs.
    pub placements: Vec<StepPlacement>,
}

impl EvaluationResult {
    /// Returns true if nothing is missing: another evaluation with the same inputs gives the same
    /// result.
    pub fn is_complete(&self) -> bool {
        self.is_finished
            && self.lacking.is_empty()
            && self.wants.is_empty()
            && self.unclear.is_empty()
            && self.segments.is_empty()
    }
}

impl Stages {
    /// Default name of the image.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Text of the Dockerfile.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// URL of the feed of Chocolatey packages; those of a folder are among [`Self::sources`].
    pub fn choco_feed_url(&self) -> Option<&str> {
        self.feed.as_ref().and_then(ChocoFeed::url)
    }

    /// Path of the Dockerfile.
    pub fn file(&self) -> &Path {
        self.request.file.path()
    }

    /// Leaves files and folders that this program writes out of the context, and of the folders that
    /// replace stages.
    pub fn leave_out(&mut self, written: &[PathBuf]) {
        let replaced = self.all.iter_mut().filter_map(|it| it.folder.as_mut());
        for folder in replaced.chain([&mut self.context]) {
            folder.leave_out(written);
        }
    }

    /// Base image of the target stage, by its name in the file.
    pub fn base(&self) -> &str {
        self.base_of(self.target)
    }

    /// Base image of a stage, directly or through other stages.
    fn base_of(&self, mut index: usize) -> &str {
        loop {
            match &self.all[index].base {
                StageBaseImage::Image(name) => return name,
                StageBaseImage::Stage(below) => index = *below,
            }
        }
    }

    /// Bases to index, by their names in the file, to resolve an error.
    pub fn bases_to_inspect(&self, error: &StageError) -> BTreeSet<String> {
        let workarounds = error.lines().map(StageError::workaround);
        let stages = workarounds.filter_map(|workaround| match workaround {
            Workaround::IndexBase(stage) => Some(stage),
            Workaround::None | Workaround::Retry => None,
        });
        stages.map(|stage| self.base_of(stage).to_owned()).collect()
    }

    /// Base images of all required stages, by their names in the file.
    pub fn bases(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for (_, stage) in self.needed() {
            if let (StageBaseImage::Image(name), None, None) =
                (&stage.base, &stage.folder, &stage.platform)
                && !names.contains(&name.as_str())
            {
                names.push(name.as_str());
            }
        }
        names
    }

    /// Returns true if a required stage runs lines on the base of this name.
    pub fn runs_on(&self, base: &str) -> bool {
        let runs = |step: &ParsedInstruction| matches!(step.kind, InstructionKind::Run(_));
        self.needed().any(|(index, stage)| {
            let is_built = stage.folder.is_none() && self.base_of(index) == base;
            is_built && stage.steps.iter().any(runs)
        })
    }

    /// Returns true if the base of this name is in a layout or archive, which only a replacement of a
    /// stage can be.
    pub fn is_local(&self, base: &str) -> bool {
        is_local_image(base) && self.is_replacement(base)
    }

    /// Returns true if the image of this name replaces a stage.
    pub fn is_replacement(&self, image: &str) -> bool {
        let mut stages = self.all.iter();
        stages.any(|stage| stage.is_replaced && stage.base.is_image(image))
    }

    /// Platform of an image that is only a source of files, if `FROM` names one.
    pub fn platform_of(&self, image: &str) -> Option<&str> {
        self.all.iter().find_map(|stage| match &stage.base {
            StageBaseImage::Image(name) if name == image => stage.platform.as_deref(),
            _ => None,
        })
    }

    /// The stages that the target stage requires, with their positions.
    fn needed(&self) -> impl Iterator<Item = (usize, &Stage)> {
        self.needed_for(self.target)
    }

    /// The stages that a stage requires, and itself, with their positions.
    fn needed_for(&self, last: usize) -> impl Iterator<Item = (usize, &Stage)> {
        let mut needed = vec![false; self.all.len()];
        needed[last] = true;
        for index in (0..=last).rev() {
            if needed[index] && self.all[index].folder.is_none() {
                for source in self.sources_of(index) {
                    needed[source] = true;
                }
            }
        }
        let stages = self.all.iter().enumerate();
        stages.filter(move |(index, _)| needed[*index])
    }

    /// The stages that a stage is based on or copies from.
    fn sources_of(&self, index: usize) -> Vec<usize> {
        let mut sources = self.copied_by(index);
        if let StageBaseImage::Stage(below) = self.all[index].base {
            sources.push(below);
        }
        sources
    }

    /// The stages that a stage copies from, also in triggers of the stage below.
    fn copied_by(&self, index: usize) -> Vec<usize> {
        let copied = |kind: &InstructionKind| match kind {
            InstructionKind::Copy(copy) => self.stage_before(index, copy.from.as_deref()?),
            _ => None,
        };
        let stage = &self.all[index];
        let own = stage.steps.iter().filter_map(|step| copied(&step.kind));
        let mut sources: Vec<usize> = own.collect();
        if let StageBaseImage::Stage(below) = stage.base {
            let steps = self.all[below].steps.iter();
            sources.extend(steps.filter_map(|step| match &step.kind {
                InstructionKind::OnBuild(trigger) => copied(&read_trigger(trigger).ok()?),
                _ => None,
            }));
        }
        sources
    }

    /// Index of an earlier stage by name or number.
    fn stage_before(&self, index: usize, name: &str) -> Option<usize> {
        let before = &self.all[..index];
        let named = before
            .iter()
            .rposition(|stage| stage.name.eq_ignore_ascii_case(name));
        named.or_else(|| name.parse().ok().filter(|number| *number < index))
    }

    /// Checks all required stages, as far as possible without the bases. Steps that require Windows
    /// are errors unless it can run them, or an installer is among them whose file is not read yet: then
    /// all are known only with that file. Those that require Linux always are.
    pub fn check(&self, has_windows: bool) -> Result<()> {
        let mut errors = Vec::new();
        let mut failures = Vec::new();
        let scripts = self.batch_files();
        for (index, stage) in self.needed().filter(|(_, stage)| stage.folder.is_none()) {
            let mut shell = self.shell_under(index);
            for step in &stage.steps {
                match &step.kind {
                    InstructionKind::Shell(words) => shell = Some(words),
                    InstructionKind::Run(line) => {
                        let failure = self.needs_system(index, line, shell, &scripts);
                        failures.extend(failure.map(|failure| (index, step, failure)));
                    }
                    InstructionKind::Copy(copy) => {
                        let error = self.check_copy(index, copy).err();
                        errors.extend(error.map(|error| (step.line, self.error(step, error))));
                    }
                    _ => {}
                }
            }
        }
        // With the file of an installer, all such lines are known.
        let before = failures.len();
        failures.retain(|(_, _, failure)| failure.kind != ScriptErrorKind::NotKnown);
        let is_later = has_windows || failures.len() < before;
        // A line of Linux tells what the other lines on its base are for, if its name does not.
        let of_linux: BTreeSet<&str> = failures
            .iter()
            .filter(|(_, _, failure)| failure.kind == ScriptErrorKind::NeedsLinux)
            .map(|(index, _, _)| self.base_of(*index))
            .filter(|base| !names_windows(base))
            .collect();
        for (index, step, mut failure) in failures {
            let base = self.base_of(index);
            // What Windows can run depends on the base itself, which is resolved later.
            if of_linux.contains(base) || !has_windows && names_linux(base) {
                failure.kind = ScriptErrorKind::NeedsLinux;
            }
            if !is_later || failure.kind == ScriptErrorKind::NeedsLinux {
                errors.push((step.line, self.error(step, self.run_error(index, &failure))));
            }
        }
        errors.sort_by_key(|(line, _)| *line);
        StageError::all(errors.into_iter().map(|(_, error)| error).collect()).map_or(Ok(()), Err)
    }

    /// Error for a line that requires Windows or Linux on any base.
    fn needs_system(
        &self,
        index: usize,
        line: &RunInstruction,
        shell: Option<&[String]>,
        scripts: &BTreeSet<String>,
    ) -> Option<ScriptError> {
        let failure = run::needs_system(&line.program, shell, self.feed.as_ref(), scripts);
        let is_of_linux = failure
            .as_ref()
            .is_some_and(|it| it.kind == ScriptErrorKind::NeedsLinux);
        if is_of_linux || names_linux(self.base_of(index)) {
            return failure;
        }
        let failure = failure.map(|failure| match failure.help {
            None if line.is_document => failure.help(run::AS_ONE_LINE),
            _ => failure,
        });
        run::check_flags(line, false).err().or(failure)
    }

    /// Names of batch files, in lower case, that the file names, or that the context has at its top or
    /// in a copied folder: a line may run them without the extension.
    fn batch_files(&self) -> BTreeSet<String> {
        let steps = self.needed().flat_map(|(_, stage)| &stage.steps);
        let copied = steps.filter_map(|step| match &step.kind {
            InstructionKind::Copy(copy) if copy.from.is_none() => Some(&copy.sources),
            _ => None,
        });
        let copied = copied.flatten().filter_map(|it| paths::source(it).ok());
        let folders: BTreeSet<String> = copied.chain([String::new()]).collect();
        let listed = folders
            .iter()
            .flat_map(|folder| self.context.list_paths(folder).unwrap_or_default())
            .map(|(path, _)| path.rsplit('/').next().unwrap_or_default().to_lowercase());
        let ends_name = |c: char| c.is_whitespace() || r#""',/\()[]&|;:="#.contains(c);
        let named = self.text.split(ends_name).map(str::to_lowercase);
        let is_batch = |name: &String| [".bat", ".cmd"].iter().any(|end| name.ends_with(end));
        listed.chain(named).filter(is_batch).collect()
    }

    /// Initial shell of a stage, if one of its base stages sets it.
    fn shell_under(&self, mut index: usize) -> Option<&[String]> {
        while let StageBaseImage::Stage(below) = self.all[index].base {
            let mut steps = self.all[below].steps.iter().rev();
            let own = steps.find_map(|step| match &step.kind {
                InstructionKind::Shell(words) => Some(words.as_slice()),
                _ => None,
            });
            if own.is_some() {
                return own;
            }
            index = below;
        }
        None
    }

    fn check_copy(&self, index: usize, copy: &CopyInstruction) -> Result<(), StepError> {
        let Some(from) = &copy.from else {
            return Ok(());
        };
        if self.stage_before(index, from).is_some() {
            return Ok(());
        }
        let mut later = self.all[index..].iter();
        if let Some(later) = later.position(|stage| stage.name.eq_ignore_ascii_case(from)) {
            return Err(not_above(from, self.all[index + later].from.line, later == 0).into());
        }
        if from.parse::<usize>().is_ok() {
            let help = match index {
                0 => "it is the first stage; numbers count from 0".to_owned(),
                _ => format!("the stages before it are numbered 0 to {}", index - 1),
            };
            let problem = format!("no stage {from} before this one");
            return Err(StepError::hinted(problem, help));
        }
        if from.contains('$') {
            let hint = format!("add FROM {from} AS NAME above, and copy from NAME");
            return Err(StepError::hinted("--from does not expand variables", hint));
        }
        Ok(())
    }

    fn position(&self, step: &ParsedInstruction) -> String {
        format!("{}:{}", self.file().display(), step.line)
    }

    fn error(&self, step: &ParsedInstruction, error: impl Into<StepError>) -> StageError {
        let mut error: StepError = error.into();
        if let Some(hint) = self.joins.get(&step.line).filter(|_| error.kind.is_none()) {
            JOINED.clone_into(&mut error.problem);
            error.hint = Some(hint.clone());
        }
        let (line, text) = match error.at {
            Some(at) => step.line_at(at),
            None => (step.line, step.text.clone()),
        };
        StageError::at(self.file(), line, &text, error)
    }

    /// Error for a `RUN` line of a stage, with a hint.
    fn run_error(&self, index: usize, failure: &ScriptError) -> StepError {
        let workaround = match failure.kind {
            ScriptErrorKind::NotKnown if failure.help.is_none() => Workaround::IndexBase(index),
            ScriptErrorKind::Fails => Workaround::Retry,
            _ => Workaround::None,
        };
        let is_independent = !matches!(
            failure.kind,
            ScriptErrorKind::NotKnown | ScriptErrorKind::Deferred | ScriptErrorKind::Fails
        );
        StepError {
            problem: format!("{}: {failure}", heading(failure.kind).1),
            hint: Some(self.run_hint(index, failure)),
            on_windows: self.on_windows(index, failure),
            workaround,
            kind: Some(failure.kind),
            at: Some(failure.at),
            is_independent,
        }
    }

    /// Refuses a here-document for a Docker daemon.
    fn check_document(&self, index: usize, line: &RunInstruction) -> Result<(), StepError> {
        run::check_document(line).map_err(|error| StepError {
            // Its first line, not that of the script.
            at: None,
            ..self.run_error(index, &error)
        })
    }

    /// What Windows can do about a `RUN` line.
    fn on_windows(&self, index: usize, failure: &ScriptError) -> Option<OnWindows> {
        match (failure.help, failure.kind) {
            (_, ScriptErrorKind::NeedsLinux) | (None, ScriptErrorKind::Fails) => None,
            (Some(_), _) => failure.runs_on_windows.then_some(OnWindows::Line),
            (None, kind) if kind.is_for_windows() => Some(OnWindows::Line),
            (None, _) => (index == self.target).then_some(OnWindows::Image),
        }
    }

    /// What to do about a `RUN` line without Windows.
    fn run_hint(&self, index: usize, failure: &ScriptError) -> String {
        let is_target = index == self.target;
        let instead = self.replacement_of(index);
        match (failure.help, failure.kind) {
            (_, ScriptErrorKind::NeedsLinux) if self.is_below_target(index) => {
                "use a base for Windows, and its programs".to_owned()
            }
            (_, ScriptErrorKind::NeedsLinux) => {
                format!("build the stage beforehand, and use {instead}")
            }
            (Some(help), ScriptErrorKind::NeedsWindows) if !is_target => {
                format!("{help}, or use {instead}")
            }
            (Some(help), _) => help.to_owned(),
            (None, ScriptErrorKind::Fails) => {
                "correct the line: it fails in a container too".to_owned()
            }
            (None, _) if !is_target => format!("build the stage beforehand, and use {instead}"),
            (None, _) => "use COPY, ENV or the keys of a recipe instead".to_owned(),
        }
    }

    /// What can replace a stage: only an image below the target, else folders for the stages on it
    /// that files are copied from.
    fn replacement_of(&self, index: usize) -> String {
        let name = &self.all[index].name;
        if self.is_below_target(index) {
            return format!("an image in its place: --stage {name}=IMAGE");
        }
        let mut others = self.all.iter();
        let mut copied = BTreeSet::from([index]);
        if others.any(|other| other.base == StageBaseImage::Stage(index)) {
            let needed = self.needed().filter(|(_, stage)| stage.folder.is_none());
            copied = needed.flat_map(|(user, _)| self.copied_by(user)).collect();
            let is_built = |stage: usize| self.all[stage].folder.is_none();
            copied.retain(|stage| is_built(*stage) && self.is_based_on(*stage, index));
        }
        let folders = copied.iter().map(|stage| &self.all[*stage].name);
        let folders: Vec<String> = folders.map(|it| format!("--stage {it}=DIR")).collect();
        let is_alone = copied.len() == 1 && copied.contains(&index);
        let what = if is_alone {
            "its files instead"
        } else {
            "the files of each stage that is copied from"
        };
        format!("a folder with {what}: {}", folders.join(" "))
    }

    /// Evaluates without the contents of bases; an incomplete result has the required facts.
    pub fn evaluate_without_contents(&self, inputs: &Inputs) -> Result<EvaluationResult> {
        self.evaluate(inputs).or_else(|error| {
            if error.workaround() == Workaround::None {
                return Err(error);
            }
            let bases = self.bases_to_inspect(&error).into_iter();
            let needs = bases.map(|base| (base, run_requirements())).collect();
            let outcome = self.incomplete(inputs).ok_or(error)?;
            Ok(EvaluationResult { needs, ..outcome })
        })
    }

    /// Evaluates on bases, which must be given for all of [`Self::bases`].
    pub fn evaluate(&self, inputs: &Inputs) -> Result<EvaluationResult> {
        let mut evaluation = Evaluation::new(self, inputs);
        let state = evaluation.evaluate_stage(self.target);
        let Evaluation {
            errors,
            mut result,
            skipped,
            ..
        } = evaluation;
        match StageError::all(errors) {
            // A missing file may be the cause.
            Some(error) if !result.lacking.is_empty() => {
                return Ok(EvaluationResult {
                    lacking: result.lacking,
                    wants: result.wants,
                    ..self.incomplete(inputs).ok_or(error)?
                });
            }
            Some(error) => return Err(error),
            None => {}
        }
        let is_direct = |it: &StepPlacement| it.engine == StepEngine::Direct;
        if result.unclear.is_empty() && result.placements.iter().all(is_direct) {
            let named = self.request.skipped_actions.iter();
            result.notes.extend(
                named
                    .filter(|name| !skipped.contains(*name))
                    .map(|name| format!("--skip-custom-action {name}: no package has this action")),
            );
        }
        result.notes.dedup();
        result.placements.sort_by_key(|step| step.line);
        Ok(EvaluationResult {
            instructions: Instructions {
                steps: state.steps.clone(),
                container: state.config.clone(),
                author: state.author.clone(),
            },
            is_finished: true,
            base: state.base_name.clone(),
            ..result
        })
    }

    /// Result of an evaluation that cannot finish yet.
    fn incomplete(&self, inputs: &Inputs) -> Option<EvaluationResult> {
        let base = inputs.bases.get(self.base())?;
        Some(EvaluationResult {
            instructions: Instructions {
                container: base.config.clone(),
                ..Instructions::default()
            },
            base: self.base().to_owned(),
            ..EvaluationResult::default()
        })
    }
}

/// Facts about a base that RUN lines may require.
pub fn run_requirements() -> BaseRequirements {
    BaseRequirements {
        hives: [Root::System, Root::Software].into(),
        files: true,
        contents: server_config().into_iter().collect(),
    }
}
