//! From a Dockerfile to what its instructions come to: stages, and of the one that is wanted the
//! layers and the configuration.
//!
//! [`Stages::evaluate`] is pure but for the files of the context. What it has to know of images is
//! given to it; what it lacks it answers as [`Need`]s, and is asked again when they are there.

mod copy;
mod download;
mod error;
mod files;
mod of_stage;
mod paths;
mod read;
mod run;
mod sent;
mod state;
mod tree;
mod unpack;

#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use super::expand::Lexer;
use super::instruction::{Copy, Kind, Program, Step};
use super::run::{Trouble, TroubleKind};
use super::source::Dockerfile;
use crate::archive::Archives;
use crate::diagnose::in_one_line;
use crate::net::Downloaded;
use crate::oci::document::ContainerConfig;
use crate::recipe::dockerignore::Ignore;
use crate::recipe::{FileSource, Instructions, PlannedContent, PlannedLayer, Wants};
use crate::windows::iis::{schema_files, server_config};
use crate::windows::inside::{Inside, Known, Needs};
use crate::windows::path::ImagePath;
use crate::windows::quoting::Escape;
use crate::windows::registry::Root;

use copy::Draft;
use files::{Files, Folder, OfImage, fixed_part};
use of_stage::OfStage;
use run::Ground;
use state::State;
use tree::Tree;

use error::Remedy;

pub use error::StageError;
pub use files::ImageFiles;
pub use read::Request;

/// A Dockerfile that was read, with what was asked of it.
#[derive(Debug)]
pub struct Stages {
    file: PathBuf,
    /// What stands in it.
    text: String,
    /// The stage that was named.
    wanted: Option<String>,
    name: String,
    escape: Escape,
    all: Vec<Stage>,
    target: usize,
    context: Folder,
    archives: Archives,
    /// Values of build arguments, as they were given.
    given: Vec<(String, String)>,
    /// Values of arguments before the first stage.
    global: Vec<(String, Option<String>)>,
}

/// One stage.
#[derive(Debug)]
struct Stage {
    from: Step,
    /// Its name, or its number.
    name: String,
    base: Base,
    steps: Vec<Step>,
    /// What is in place of it.
    folder: Option<Folder>,
}

/// What a stage begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Base {
    /// A stage before it.
    Stage(usize),
    /// An image, by the name that it has in the file.
    Image(String),
}

/// What has to be known of an image that a stage is based on.
#[derive(Debug, Clone)]
pub struct StageBase {
    /// How its containers start.
    pub config: ContainerConfig,
    /// What is inside.
    pub inside: Arc<dyn Inside>,
}

/// What images say, by their names in the file.
pub type Bases = BTreeMap<String, StageBase>;

/// What a Dockerfile is carried out with.
#[derive(Debug, Clone, Default)]
pub struct Inputs {
    /// What stages are based on.
    pub bases: Bases,
    /// Files of images by the names of the images in the file, as far as they were taken out of them.
    pub files: BTreeMap<String, ImageFiles>,
    /// What of images is still lacking: paths by the names of the images.
    pub lacking: BTreeMap<String, BTreeSet<String>>,
    /// Files that were downloaded, by their URLs.
    pub downloads: BTreeMap<String, Downloaded>,
    /// All files that are to be, as far as that is known.
    pub wants: Wants,
}

impl Inputs {
    /// Whether somebody has looked for files in a base.
    pub fn knows_files_of(&self, base: &str) -> bool {
        let base = self.bases.get(base);
        let drive = base.map(|base| base.inside.file(&ImagePath::drive()));
        matches!(drive, Some(Ok(Known::Absent | Known::Present(_))))
    }
}

/// What a Dockerfile comes to on its bases.
#[derive(Debug)]
pub struct Outcome {
    /// What is made of the base.
    pub instructions: Instructions,
    /// What its author may want to know.
    pub notes: Vec<String>,
    /// Paths in images that have to be taken out of them first; what there is then is not all.
    pub lacking: BTreeMap<String, BTreeSet<String>>,
    /// What is downloaded, whether it is here or not.
    pub wants: Wants,
    /// Lines of which it is not known what they do before more of that is here.
    pub unclear: Vec<String>,
    /// What has to be known of bases first, by their names in the file; likewise.
    pub needs: BTreeMap<String, Needs>,
}

/// One evaluation.
struct Evaluation<'a> {
    stages: &'a Stages,
    inputs: &'a Inputs,
    lacking: BTreeMap<String, BTreeSet<String>>,
    wants: Wants,
    done: HashMap<usize, Rc<State>>,
    notes: Vec<String>,
    unclear: Vec<String>,
    /// What was not carried out, but for what follows from that.
    troubles: Vec<StageError>,
}

impl Stages {
    /// The name that the image gets unless another is asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The Dockerfile.
    pub fn file(&self) -> &std::path::Path {
        &self.file
    }

    /// The image that the wanted stage is based on, by its name in the file.
    pub fn base(&self) -> &str {
        self.base_of(self.target)
    }

    /// The image that a stage is based on, through other stages or at once.
    fn base_of(&self, mut index: usize) -> &str {
        loop {
            match &self.all[index].base {
                Base::Image(name) => return name,
                Base::Stage(below) => index = *below,
            }
        }
    }

    /// The bases, by their names in the file, that have to be looked into before it is known whether
    /// this is an error.
    pub fn bases_to_look_into(&self, error: &StageError) -> BTreeSet<String> {
        let remedies = error.lines().map(StageError::remedy);
        let stages = remedies.filter_map(|remedy| match remedy {
            Remedy::Look(stage) => Some(stage),
            Remedy::None | Remedy::Again => None,
        });
        stages.map(|stage| self.base_of(stage).to_owned()).collect()
    }

    /// The images that stages are based on which the wanted one needs, by their names in the file.
    pub fn bases(&self) -> Vec<&str> {
        let needed = self.needed();
        let mut names = Vec::new();
        for (stage, _) in self.all.iter().zip(needed).filter(|(_, needed)| *needed) {
            if let (Base::Image(name), None) = (&stage.base, &stage.folder)
                && !names.contains(&name.as_str())
            {
                names.push(name.as_str());
            }
        }
        names
    }

    /// Which stages the wanted one needs.
    fn needed(&self) -> Vec<bool> {
        let mut needed = vec![false; self.all.len()];
        needed[self.target] = true;
        for index in (0..=self.target).rev() {
            let stage = &self.all[index];
            if !needed[index] || stage.folder.is_some() {
                continue;
            }
            if let Base::Stage(below) = stage.base {
                needed[below] = true;
            }
            for step in &stage.steps {
                if let Kind::Copy(Copy {
                    from: Some(from), ..
                }) = &step.kind
                    && let Some(other) = self.stage_before(index, from)
                {
                    needed[other] = true;
                }
            }
        }
        needed
    }

    /// The stage of a name or number that comes before another.
    fn stage_before(&self, index: usize, name: &str) -> Option<usize> {
        let before = &self.all[..index];
        let named = before
            .iter()
            .rposition(|stage| stage.name.eq_ignore_ascii_case(name));
        named.or_else(|| name.parse().ok().filter(|number| *number < index))
    }

    /// What keeps the wanted stage from being made, as far as that is known without its base.
    pub fn check(&self) -> Result<(), StageError> {
        let needed = self.needed();
        for (index, stage) in self.all.iter().enumerate() {
            if !needed[index] || stage.folder.is_some() {
                continue;
            }
            let mut shell = self.shell_under(index);
            for step in &stage.steps {
                match &step.kind {
                    Kind::Shell(words) => shell = Some(words),
                    Kind::Run(program) => {
                        if let Some(trouble) = run::needs_windows(program, shell) {
                            return Err(self.not_run(stage, step, &trouble));
                        }
                    }
                    Kind::Copy(copy) => self.check_copy(index, step, copy)?,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The shell that a stage begins with, where a stage that it is based on says so.
    fn shell_under(&self, index: usize) -> Option<&[String]> {
        let Base::Stage(below) = self.all[index].base else {
            return None;
        };
        let steps = self.all[below].steps.iter().rev();
        let own = steps.into_iter().find_map(|step| match &step.kind {
            Kind::Shell(words) => Some(words.as_slice()),
            _ => None,
        });
        own.or_else(|| self.shell_under(below))
    }

    fn check_copy(&self, index: usize, step: &Step, copy: &Copy) -> Result<(), StageError> {
        let Some(from) = &copy.from else {
            return Ok(());
        };
        if self.stage_before(index, from).is_some() {
            return Ok(());
        }
        let later = self.all[index..].iter();
        if let Some(later) = later
            .into_iter()
            .find(|stage| stage.name.eq_ignore_ascii_case(from))
        {
            let problem = format!(
                "the stage {from:?} begins on line {} and is not made yet",
                later.from.line
            );
            return Err(self.error(step, problem));
        }
        if from.parse::<usize>().is_ok() {
            let problem = format!("there is no stage {from} before this one");
            let help = match index {
                0 => "it is the first stage; numbers count from 0".to_owned(),
                _ => format!("stages before it have the numbers 0 to {}", index - 1),
            };
            return Err(self.error(step, problem).with_hint(help));
        }
        Ok(())
    }

    fn error(&self, step: &Step, problem: impl Into<String>) -> StageError {
        StageError::at(&self.file, step.line, &step.text, problem)
    }

    /// Says why the commands of a line are not carried out.
    fn not_run(&self, stage: &Stage, step: &Step, trouble: &Trouble) -> StageError {
        let is_target = std::ptr::eq(stage, &raw const self.all[self.target]);
        let hint = if let Some(help) = trouble.help {
            help.to_owned()
        } else if trouble.kind == TroubleKind::Fails {
            "it would fail in a container too: correct the line".to_owned()
        } else if is_target {
            "do the same with COPY and ENV or the keys of a recipe, or let Docker on Windows build it: \
             --engine docker"
                .to_owned()
        } else {
            format!(
                "run what the stage does beforehand, and put the folder with its files in its place: \
                 --stage {}=DIR",
                stage.name
            )
        };
        let remedy = match trouble.kind {
            TroubleKind::NotKnown if trouble.help.is_none() => {
                let mut all = self.all.iter();
                let place = all.position(|other| std::ptr::eq(other, stage));
                place.map_or(Remedy::None, Remedy::Look)
            }
            TroubleKind::Fails => Remedy::Again,
            _ => Remedy::None,
        };
        let problem = match trouble.kind {
            TroubleKind::NeedsWindows => "RUN needs Windows",
            TroubleKind::NotUnderstood => "RUN is not understood",
            TroubleKind::NotKnown | TroubleKind::Later => "RUN depends on what is not known",
            TroubleKind::Fails => "RUN fails",
            TroubleKind::Refused => "RUN is not carried out",
        };
        let (line, text) = step.line_at(trouble.at);
        let error = StageError::at(&self.file, line, &text, format!("{problem}: {trouble}"))
            .with_hint(hint);
        let error = error.or(remedy);
        match trouble.kind {
            TroubleKind::NeedsWindows | TroubleKind::NotUnderstood | TroubleKind::Refused => {
                error.by_itself()
            }
            TroubleKind::NotKnown | TroubleKind::Later | TroubleKind::Fails => error,
        }
    }

    /// Carries the instructions out as far as can be told before anyone has looked inside the bases:
    /// where that is not all of them, what there is says what has to be known.
    pub fn evaluate_unseen(&self, inputs: &Inputs) -> Result<Outcome, StageError> {
        self.evaluate(inputs).or_else(|error| {
            if error.remedy() == Remedy::None {
                return Err(error);
            }
            let bases = self.bases_to_look_into(&error).into_iter();
            let needs = bases.map(|base| (base, all_that_lines_ask())).collect();
            let outcome = self.unfinished(inputs, BTreeMap::new()).ok_or(error)?;
            Ok(Outcome { needs, ..outcome })
        })
    }

    /// Carries the instructions out on bases, which have to be there for all of [`Self::bases`].
    pub fn evaluate(&self, inputs: &Inputs) -> Result<Outcome, StageError> {
        let mut evaluation = Evaluation {
            stages: self,
            inputs,
            lacking: BTreeMap::new(),
            wants: Wants::new(),
            done: HashMap::new(),
            notes: Vec::new(),
            unclear: Vec::new(),
            troubles: Vec::new(),
        };
        let made = evaluation.made(self.target);
        let troubles = std::mem::take(&mut evaluation.troubles);
        let made = made.and_then(|state| StageError::all(troubles).map_or(Ok(state), Err));
        let state = match made {
            Ok(state) => state,
            // What is lacking may be the reason.
            Err(error) if !evaluation.lacking.is_empty() => {
                let outcome = self.unfinished(inputs, evaluation.lacking).ok_or(error)?;
                let wants = evaluation.wants;
                return Ok(Outcome { wants, ..outcome });
            }
            Err(error) => return Err(error),
        };
        let mut notes = evaluation.notes;
        notes.dedup();
        Ok(Outcome {
            lacking: evaluation.lacking,
            wants: evaluation.wants,
            unclear: evaluation.unclear,
            needs: BTreeMap::new(),
            instructions: Instructions {
                steps: state.steps.clone(),
                container: state.config.clone(),
                author: state.author.clone(),
            },
            notes,
        })
    }

    /// What there is where the instructions cannot be carried out yet.
    fn unfinished(
        &self,
        inputs: &Inputs,
        lacking: BTreeMap<String, BTreeSet<String>>,
    ) -> Option<Outcome> {
        let base = inputs.bases.get(self.base())?;
        Some(Outcome {
            instructions: Instructions {
                steps: Vec::new(),
                container: base.config.clone(),
                author: None,
            },
            notes: Vec::new(),
            lacking,
            needs: BTreeMap::new(),
            wants: Wants::new(),
            unclear: Vec::new(),
        })
    }
}

/// What RUN lines may ask about a base.
pub fn all_that_lines_ask() -> Needs {
    Needs {
        hives: [Root::System, Root::Software].into(),
        files: true,
        contents: server_config().into_iter().chain(schema_files()).collect(),
    }
}

impl Evaluation<'_> {
    fn made(&mut self, index: usize) -> Result<Rc<State>, StageError> {
        if let Some(done) = self.done.get(&index) {
            return Ok(Rc::clone(done));
        }
        let begun = &self.stages.all[index];
        let mut state = match &begun.base {
            Base::Stage(below) => self.made(*below)?.continued(),
            Base::Image(name) => {
                let Some(base) = self.inputs.bases.get(name) else {
                    let problem = format!("nothing is known of the image {name:?}");
                    return Err(self.stages.error(&begun.from, problem));
                };
                let tree = Tree::over(Arc::clone(&base.inside), name);
                State::on(base.config.clone(), tree)
            }
        };
        for trigger in std::mem::take(&mut state.config.on_build) {
            state.line = begun.from.line;
            let done = self.trigger(index, &mut state, &trigger);
            self.note_trouble(&mut state, done);
        }
        for step in &begun.steps {
            state.line = step.line;
            let done = self.step(index, &mut state, step);
            self.note_trouble(&mut state, done);
        }
        let state = Rc::new(state);
        self.done.insert(index, Rc::clone(&state));
        Ok(state)
    }

    /// Goes on after an instruction that was not carried out, so that all of them are told at once.
    /// What may be a consequence of one is not.
    fn note_trouble(&mut self, state: &mut State, done: Result<(), StageError>) {
        let Err(error) = done else { return };
        let is_certain = error.stands_alone() && !state.is_put_off;
        if !state.is_spoiled || is_certain {
            state.is_put_off |= error.remedy() != Remedy::None;
            self.troubles.push(error);
        }
        state.is_spoiled = true;
    }

    /// Carries out what an image or stage has kept for those that are based on it. A daemon reads it
    /// with `\` as the escape character, whatever its file had.
    fn trigger(&mut self, index: usize, state: &mut State, text: &str) -> Result<(), StageError> {
        let stages = self.stages;
        let from = &stages.all[index].from;
        let failed = |problem: String| {
            let base = &from.text;
            stages.error(
                from,
                format!("what {base:?} brings, ONBUILD {text}: {problem}"),
            )
        };
        let file = Dockerfile::read(text);
        let [instruction] = file.instructions.as_slice() else {
            return Err(failed("expected one instruction".to_owned()));
        };
        let step = Step::read(instruction, Escape::Backslash).map_err(failed)?;
        let step = step.standing_at(from.line, format!("ONBUILD {text}"));
        match &step.kind {
            Kind::From(_) | Kind::OnBuild(_) => {
                Err(failed("it cannot be kept for later".to_owned()))
            }
            _ => self.carry_out(index, state, &step, Lexer::new(Escape::Backslash)),
        }
    }

    fn step(&mut self, index: usize, state: &mut State, step: &Step) -> Result<(), StageError> {
        self.carry_out(index, state, step, Lexer::new(self.stages.escape))
    }

    fn carry_out(
        &mut self,
        index: usize,
        state: &mut State,
        step: &Step,
        lexer: Lexer,
    ) -> Result<(), StageError> {
        let stages = self.stages;
        let failed = |problem: String| stages.error(step, problem);
        let given = &stages.given;
        let notes = &mut self.notes;
        let mut expanded = |state: &State, text: &str| {
            let expanded = state.expand(lexer, text, given).map_err(failed)?;
            for name in &expanded.unset {
                notes.push(format!(
                    "{}:{}: ${name} has no value and stands for nothing",
                    stages.file.display(),
                    step.line
                ));
            }
            Ok(expanded)
        };
        let mut pairs = |state: &State, pairs: &[(String, String)]| {
            let mut all = Vec::new();
            for (name, value) in pairs {
                all.push((expanded(state, name)?.text, expanded(state, value)?.text));
            }
            Ok(all)
        };
        match &step.kind {
            Kind::Env(list) => {
                let list = pairs(state, list)?;
                state.env(&list);
            }
            Kind::Label(list) => {
                let list = pairs(state, list)?;
                state.label(&list);
            }
            Kind::Arg(list) => {
                for (name, default) in list {
                    let known = stages.argument(name);
                    let value = match (known, default) {
                        (Some(given), _) => Some(given),
                        (None, Some(text)) => Some(expanded(state, text)?.text),
                        (None, None) => stages.global_argument(name),
                    };
                    state.arg(name, value);
                }
            }
            Kind::User(text) => {
                let user = expanded(state, text)?.text;
                state.user(user);
            }
            Kind::Workdir(text) => {
                let folder = expanded(state, text)?.text;
                if folder.is_empty() {
                    return Err(failed("the working directory is empty".to_owned()));
                }
                state.workdir(&folder).map_err(failed)?;
            }
            Kind::Expose(text) => {
                let words = expanded(state, text)?.words;
                state.expose(&words).map_err(failed)?;
            }
            Kind::Volume(list) => {
                let mut folders = Vec::new();
                for text in list {
                    folders.push(expanded(state, text)?.text);
                }
                state.volume(&folders).map_err(failed)?;
            }
            Kind::StopSignal(text) => {
                let signal = expanded(state, text)?.text;
                state.stop_signal(signal).map_err(failed)?;
            }
            Kind::Copy(copy) => {
                let mut copy = copy.clone();
                for text in copy.sources.iter_mut().chain([&mut copy.target]) {
                    *text = expanded(state, text)?.text;
                }
                if let Some(text) = &mut copy.checksum {
                    *text = expanded(state, text)?.text;
                }
                if let Err(error) = self.copy(index, state, step, &copy) {
                    let error = match copy.from {
                        None => error.by_itself(),
                        Some(_) => error,
                    };
                    self.put_off(state, step, copied(&copy), error)?;
                }
            }
            Kind::Cmd(program) => state.cmd(program.clone()),
            Kind::Entrypoint(program) => state.entrypoint(program.clone()),
            Kind::Health(health) => state.health(health.clone()),
            Kind::Maintainer(author) => state.maintainer(author.clone()),
            Kind::OnBuild(trigger) => state.on_build(trigger.clone()),
            Kind::Shell(words) => state.shell(words.clone()),
            Kind::Run(program) => self.run(index, state, step, program)?,
            Kind::From(_) => {}
        }
        Ok(())
    }

    /// Carries commands out that can be read as changes of files and registry.
    fn run(
        &mut self,
        index: usize,
        state: &mut State,
        step: &Step,
        program: &Program,
    ) -> Result<(), StageError> {
        let stages = self.stages;
        let base = stages.base_of(index);
        let ground = Ground {
            image: base,
            files: self.inputs.files.get(base),
        };
        let mut lacking = BTreeSet::new();
        let place = format!("{}:{}", stages.file.display(), step.line);
        let fetching = run::Fetching {
            place: &place,
            here: &self.inputs.downloads,
            wants: &mut self.wants,
        };
        let done = run::carry_out(
            state,
            program,
            &stages.archives,
            ground,
            fetching,
            &mut lacking,
        );
        if !lacking.is_empty() {
            let known = self.lacking.entry(base.to_owned()).or_default();
            known.extend(lacking);
        }
        let done = match done {
            Ok(done) => done,
            Err(trouble) => {
                let may_wait = match trouble.kind {
                    TroubleKind::Later => true,
                    TroubleKind::NotKnown | TroubleKind::Fails => !self.unclear.is_empty(),
                    _ => false,
                };
                let error = stages.not_run(&stages.all[index], step, &trouble);
                if !may_wait {
                    return Err(error);
                }
                return self.put_off(state, step, step.text.clone(), error);
            }
        };
        let notes = done.notes.into_iter();
        self.notes
            .extend(notes.map(|note| format!("{place}: {note}")));
        state.add_run(done.created_by, done.layer);
        state.tree.apply(done.seen.as_slice());
        state.tree.later = done.later;
        Ok(())
    }

    /// Goes on behind an instruction that may be carried out once more is downloaded; nothing is known
    /// for certain of what comes behind it before.
    fn put_off(
        &mut self,
        state: &mut State,
        step: &Step,
        created_by: String,
        error: StageError,
    ) -> Result<(), StageError> {
        let here = &self.inputs.downloads;
        if self.wants.keys().all(|url| here.contains_key(url)) {
            return Err(error);
        }
        let place = format!("{}:{}", self.stages.file.display(), step.line);
        self.unclear.push(place);
        state.add_layer(created_by, PlannedLayer::default());
        state.tree.later.insert(String::new());
        Ok(())
    }

    fn copy(
        &mut self,
        index: usize,
        state: &mut State,
        step: &Step,
        copy: &Copy,
    ) -> Result<(), StageError> {
        let stages = self.stages;
        let failed = |problem: String| stages.error(step, problem);
        let mut target =
            paths::target(&state.working_dir().map_err(failed)?, &copy.target).map_err(failed)?;
        let rules = copy.excluded.join("\n");
        let excluded = Ignore::read(&rules, std::path::Path::new("--exclude"))
            .map_err(|error| failed(in_one_line(&error)))?;
        if copy.sources.len() + copy.documents.len() > 1 && !target.is_folder {
            return Err(failed(format!(
                "several files go to {:?}: end it with a separator, as in {:?}",
                copy.target,
                format!("{}/", copy.target)
            )));
        }
        target.is_folder |= target.path.components().is_empty();
        let other = match &copy.from {
            None => None,
            Some(from) => match stages.stage_before(index, from) {
                Some(other) if stages.all[other].folder.is_some() => Some((other, None)),
                Some(other) => Some((other, Some(self.made(other)?))),
                None => {
                    stages.check_copy(index, step, copy)?;
                    None
                }
            },
        };
        if let Some((_, Some(there))) = &other {
            state.is_spoiled |= there.is_spoiled;
            state.is_put_off |= there.is_put_off;
        }
        let made_there;
        let lacking = RefCell::default();
        let taken;
        let image = copy.from.as_deref().filter(|_| other.is_none());
        let files: &dyn Files = match (&other, image) {
            (None, Some(name)) => {
                let is_lacking = self.image_lacks(name, step, copy)?;
                let known = self.inputs.files.get(name);
                let Some(known) = known.filter(|_| !is_lacking) else {
                    state.add_layer(copied(copy), PlannedLayer::default());
                    return Ok(());
                };
                taken = OfImage { files: known, name };
                &taken
            }
            (None, None) => &stages.context,
            (Some((other, None)), _) => match &stages.all[*other].folder {
                Some(folder) => folder,
                None => &stages.context,
            },
            (Some((other, Some(state))), _) => {
                self.check_drive(*other, state, step, copy)?;
                let image = stages.base_of(*other);
                let files = self.inputs.files.get(image);
                made_there = OfStage {
                    tree: &state.tree,
                    name: &stages.all[*other].name,
                    base: Ground { image, files },
                    lacking: &lacking,
                };
                &made_there
            }
        };
        let mut draft = Draft::new(&state.tree);
        let mut done = Ok(());
        for source in &copy.sources {
            let own = self.copy_source(&mut draft, files, source, &target, &excluded, step, copy);
            done = done.and(own);
        }
        let lacking = lacking.take();
        if let (Some((other, _)), false) = (&other, lacking.is_empty()) {
            let name = stages.base_of(*other).to_owned();
            self.lacking.entry(name).or_default().extend(lacking);
            state.add_layer(copied(copy), PlannedLayer::default());
            return Ok(());
        }
        done?;
        for document in &copy.documents {
            let mut text = document.text.clone();
            if document.expands {
                let lexer = Lexer {
                    escape: Escape::Backslash,
                    keeps_quotes: true,
                };
                text = state
                    .expand(lexer, &text, &stages.given)
                    .map_err(failed)?
                    .text;
            }
            let path = draft.file_target(&target, &document.name).map_err(failed)?;
            let content = PlannedContent::File(FileSource::Text(text));
            draft.put(path, content).map_err(failed)?;
        }
        let layer = PlannedLayer {
            entries: draft.done(),
            ..PlannedLayer::default()
        };
        state.add_layer(copied(copy), layer);
        Ok(())
    }

    /// Notes what has to be taken out of an image before it can be copied, and whether that is so.
    fn image_lacks(&mut self, name: &str, step: &Step, copy: &Copy) -> Result<bool, StageError> {
        let stages = self.stages;
        let failed = |problem: String| stages.error(step, problem);
        let known = self.inputs.files.get(name);
        let mut is_lacking = false;
        for source in &copy.sources {
            let pattern = paths::source(source).map_err(failed)?;
            let place = fixed_part(&pattern);
            if place.is_empty() {
                let problem = format!("{source:?} is the whole drive of {name}");
                return Err(failed(problem).with_hint("name the folder that is wanted"));
            }
            if known.is_none_or(|known| !known.knows(place)) {
                let lacking = self.lacking.entry(name.to_owned()).or_default();
                lacking.insert(place.to_owned());
                is_lacking = true;
            }
        }
        Ok(is_lacking)
    }

    /// Refuses what would take a look at all that a stage's base has on its drive.
    fn check_drive(
        &self,
        other: usize,
        state: &State,
        step: &Step,
        copy: &Copy,
    ) -> Result<(), StageError> {
        let failed = |problem: String| self.stages.error(step, problem);
        let name = &self.stages.all[other].name;
        for source in &copy.sources {
            let pattern = paths::source(source).map_err(failed)?;
            if pattern.is_empty() {
                let problem = format!("{source:?} is the whole drive of the stage {name:?}");
                return Err(failed(problem).with_hint("name the folder that is wanted"));
            }
            let listed = state.tree.listed(&ImagePath::drive());
            let listed = listed.map_err(|error| failed(in_one_line(&error)))?;
            if fixed_part(&pattern).is_empty() && listed == Known::Unknown {
                let problem = format!(
                    "what {source:?} stands for is not known: the stage {name:?} has its base's drive"
                );
                let error = failed(problem).with_hint("name the folder or file that is wanted");
                return Err(error.or(Remedy::Look(other)));
            }
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    fn copy_source(
        &mut self,
        draft: &mut Draft<'_>,
        files: &dyn Files,
        source: &str,
        target: &paths::Target,
        excluded: &Ignore,
        step: &Step,
        copy: &Copy,
    ) -> Result<(), StageError> {
        let stages = self.stages;
        let failed = |problem: String| stages.error(step, problem);
        if download::is_url(source) {
            return self.add_url(draft, source, target, step, copy);
        }
        self.checksum(step, copy)?;
        let pattern = paths::source(source).map_err(failed)?;
        if copy.unpack.unwrap_or(copy.is_add) {
            let found = files.matching(&pattern).map_err(failed)?;
            let mut unpacked = Vec::new();
            for found in &found {
                let added = unpack::added(&self.stages.archives, &found.content);
                unpacked.extend(added.map_err(|error| failed(in_one_line(&error)))?);
            }
            if !unpacked.is_empty() && unpacked.len() < found.len() {
                return Err(failed(format!(
                    "{source:?} stands for archives and other files: ADD them one by one"
                )));
            }
            if !unpacked.is_empty() {
                for entries in unpacked {
                    draft.unpacked(target, entries).map_err(failed)?;
                }
                return Ok(());
            }
        }
        draft
            .copy(files, &pattern, target, excluded)
            .map_err(failed)
    }
}

/// A copy in the words of an image's history.
fn copied(copy: &Copy) -> String {
    let keyword = if copy.is_add { "ADD" } else { "COPY" };
    let sources = copy.sources.iter().cloned();
    let documents = copy.documents.iter();
    let documents = documents.map(|document| format!("<<{}", document.name));
    let sources: Vec<String> = sources.chain(documents).collect();
    format!("{keyword} {} {} # buildkit", sources.join(" "), copy.target)
}
