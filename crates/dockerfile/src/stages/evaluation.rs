//! Evaluation of a Dockerfile: the instructions are applied one after the other to a stage's state.

mod copying;

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use wincimg_common::diagnose::error_chain;
use wincimg_common::untrusted::public_url;
use wincimg_recipe::{DownloadRequests, PlannedLayer, check_absolute};
use wincimg_registry::Presence;
use wincimg_scripts::{ScriptError, ScriptErrorKind};
use wincimg_windows::account::{find_account, is_known_account, missing_account};
use wincimg_windows::path::ImagePath;
use wincimg_windows::quoting::Escape;

use super::drive::Tree;
use super::error::{OnWindows, StepError, Workaround};
use super::segment::StepEngine;
use super::state::StageState;
use super::{BuildArguments, EvaluationResult, Inputs, StageBaseImage, StageError, Stages, run};
use crate::expand::Lexer;
use crate::instruction::{InstructionKind, ParsedInstruction, RunInstruction, read_trigger};

/// About a port of the host in `EXPOSE`.
pub(crate) const HOST_PORT: &str =
    "EXPOSE ignores what is before the colon: docker run -p maps ports";

pub(super) struct Evaluation<'a> {
    pub(super) stages: &'a Stages,
    pub(super) inputs: &'a Inputs,
    /// States that another stage may still read.
    pub(super) done: HashMap<usize, Rc<StageState>>,
    /// For each stage, the number of its reads to come.
    reads: Vec<usize>,
    /// Errors, without their consequences.
    pub(super) errors: Vec<StageError>,
    /// Names of the unknown results of segments.
    pub(super) pending: BTreeSet<String>,
    /// Actions that packages have, and that are left out as requested.
    pub(super) skipped: BTreeSet<String>,
    /// Number of bytes that `RUN` lines wrote, with those of entries, also of copies from stages.
    pub(super) written: u64,
    /// The result so far, without the state of the target stage.
    pub(super) result: EvaluationResult,
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(stages: &'a Stages, inputs: &'a Inputs) -> Self {
        Self {
            stages,
            inputs,
            done: HashMap::new(),
            reads: count_reads(stages, inputs),
            errors: Vec::new(),
            pending: BTreeSet::new(),
            skipped: BTreeSet::new(),
            written: 0,
            result: EvaluationResult::default(),
        }
    }

    /// Evaluates a stage, once, after those that it requires: to evaluate each of a long row inside the
    /// next one would overflow the stack.
    pub(super) fn evaluate_stage(&mut self, index: usize) -> Rc<StageState> {
        if !self.done.contains_key(&index) {
            self.evaluate_with_sources(index);
        }
        let state = Rc::clone(&self.done[&index]);
        self.reads[index] = self.reads[index].saturating_sub(1);
        // The last one takes the state over: copies of a long row would grow quadratically.
        if self.reads[index] == 0 {
            self.done.remove(&index);
        }
        state
    }

    fn evaluate_with_sources(&mut self, index: usize) {
        let stages = self.stages;
        for (needed, stage) in stages.needed_for(index) {
            let is_file_source = stage.folder.is_some() || stage.platform.is_some();
            let is_evaluated = needed == index || !is_file_source;
            if is_evaluated && !self.done.contains_key(&needed) {
                let state = self.evaluate_one(needed);
                self.done.insert(needed, Rc::new(state));
            }
        }
    }

    fn evaluate_one(&mut self, index: usize) -> StageState {
        let stages = self.stages;
        let begun = &stages.all[index];
        let mut state = match &begun.base {
            StageBaseImage::Stage(below) => Rc::unwrap_or_clone(self.evaluate_stage(*below)).fork(),
            StageBaseImage::Image(name) => match self.inputs.bases.get(name) {
                Some(base) => {
                    let tree = Tree::over(Arc::clone(&base.inside), name);
                    StageState::new(base.config.clone(), tree, name)
                }
                None => {
                    let mut state = StageState::unknown(name);
                    let error = stages.error(&begun.from, format!("unknown image {name:?}"));
                    self.record_error(&mut state, Err(error));
                    return state;
                }
            },
        };
        state.index = index;
        for trigger in std::mem::take(&mut state.config.on_build) {
            state.line = begun.from.line;
            let done = self.trigger(&mut state, &trigger);
            self.record_error(&mut state, done);
        }
        for (place, step) in begun.steps.iter().enumerate() {
            state.line = step.line;
            state.place = Some(place);
            let done = self.step(&mut state, step, stages.escape);
            self.record_error(&mut state, done);
        }
        self.close_segment(&mut state);
        state
    }

    /// Records an error and continues, so that all are reported at once, without possible
    /// consequences of another error.
    fn record_error(&mut self, state: &mut StageState, done: Result<(), StageError>) {
        let Err(error) = done else { return };
        let is_independent = error.step().is_some_and(|error| error.is_independent);
        let is_certain = is_independent && !state.is_postponed;
        if !state.has_failed || is_certain {
            state.is_postponed |= error.workaround() != Workaround::None;
            self.errors.push(error);
        }
        state.has_failed = true;
    }

    /// Evaluates an `ONBUILD` trigger of the base. Like the daemon, it uses `\` as the escape
    /// character.
    fn trigger(&mut self, state: &mut StageState, text: &str) -> Result<(), StageError> {
        let stages = self.stages;
        let from = &stages.all[state.index].from;
        let failed = |problem: String| {
            let base = &from.text;
            stages.error(from, format!("ONBUILD {text} of {base:?}: {problem}"))
        };
        let kind = read_trigger(text).map_err(&failed)?;
        let step = ParsedInstruction::from_trigger(kind, from.line, format!("ONBUILD {text}"));
        match &step.kind {
            InstructionKind::From(_) | InstructionKind::OnBuild(_) => {
                Err(failed("ONBUILD does not support it".to_owned()))
            }
            _ => self.step(state, &step, Escape::Backslash),
        }
    }

    fn step(
        &mut self,
        state: &mut StageState,
        step: &ParsedInstruction,
        escape: Escape,
    ) -> Result<(), StageError> {
        let done = self.evaluate_instruction(state, step, Lexer::new(escape));
        done.map_err(|error| self.stages.error(step, error))
    }

    fn evaluate_instruction(
        &mut self,
        state: &mut StageState,
        step: &ParsedInstruction,
        lexer: Lexer,
    ) -> Result<(), StepError> {
        let stages = self.stages;
        let arguments = &stages.arguments;
        let mut unset = Vec::new();
        match &step.kind {
            InstructionKind::Copy(copy) => {
                let copy = state.expand_copy(copy, lexer, arguments, &mut unset)?;
                self.note_unset(step, &unset);
                if let Some(reason) = self.not_pinned_urls(state, &copy) {
                    self.run_on_windows(state, step, reason);
                    return Ok(());
                }
                self.close_segment(state);
                self.place(state, step, StepEngine::Direct, None);
                self.copy_or_postpone(state, step, &copy)
            }
            InstructionKind::Run(line) => {
                let windows = self.inputs.windows.as_ref();
                run::check_flags(line, windows.is_some_and(|it| it.has_documents))
                    .map_err(|error| stages.run_error(state.index, &error))?;
                self.run(state, step, line)
            }
            kind => {
                if let InstructionKind::User(text) = kind {
                    let user = state.expand(lexer, text, arguments)?;
                    check_user(state, text, &user.text)?;
                }
                check_folders(state, kind, lexer, arguments)?;
                if let InstructionKind::Expose(text) = kind {
                    let ports = state.expand(lexer, text, arguments)?.text;
                    let place = self.stages.position(step);
                    let notes = ports.contains(':').then(|| format!("{place}: {HOST_PORT}"));
                    self.result.notes.extend(notes);
                }
                if let InstructionKind::Arg(names) = kind
                    && names.iter().any(|(name, _)| state.has_argument(name))
                {
                    // A daemon gets one value of a name for all lines.
                    self.close_segment(state);
                }
                let done = state.apply(kind, lexer, arguments, &mut unset);
                self.note_unset(step, &unset);
                let is_released = stages.is_below_target(state.index);
                let problem = state.start_problem(kind).filter(|_| is_released);
                let note =
                    problem.map(|problem| format!("{}: {problem}", self.stages.position(step)));
                self.result.notes.extend(note);
                let secrets = stages.secrets_in(state.index, step);
                self.result.notes.extend(secrets);
                self.place(state, step, StepEngine::Direct, None);
                Ok(done?)
            }
        }
    }

    fn note_unset(&mut self, step: &ParsedInstruction, unset: &[String]) {
        let place = self.stages.position(step);
        let notes = unset.iter();
        let notes = notes.map(|name| format!("{place}: ${name} is not set and expands to nothing"));
        self.result.notes.extend(notes);
    }

    /// Evaluates a `RUN` line whose commands are changes of files and registry.
    fn run(
        &mut self,
        state: &mut StageState,
        step: &ParsedInstruction,
        line: &RunInstruction,
    ) -> Result<(), StepError> {
        let mut lacking = BTreeSet::new();
        let mut wants = DownloadRequests::new();
        let done = run::execute(self, state, step, &line.program, &mut wants, &mut lacking);
        let reason = match &done {
            Err(trouble) if trouble.kind != ScriptErrorKind::Deferred => {
                self.windows_reason(state, trouble)
            }
            _ => self.not_pinned(&wants).filter(|_| state.place.is_some()),
        };
        if let Some(reason) = reason {
            self.check_document(state.index, line)?;
            self.run_on_windows(state, step, reason);
            return Ok(());
        }
        if state.segment.is_some() {
            // Now more of the image may be known.
            self.close_segment(state);
            return self.run(state, step, line);
        }
        for (url, want) in wants {
            want.add_to(&mut self.result.wants, &url);
        }
        if !lacking.is_empty() && !self.pending.contains(&state.base_name) {
            let base = state.base_name.clone();
            self.result.lacking.entry(base).or_default().extend(lacking);
        }
        let done = match done {
            Ok(_) if self.inputs.omits_unread && state.tree.marks.later.contains("") => {
                let reason = "it may depend on a line above that is left out".to_owned();
                self.place(state, step, StepEngine::Unknown, Some(reason));
                self.make_unclear(state, step, step.text.clone(), &ImagePath::drive());
                return Ok(());
            }
            Ok(done) => done,
            Err(failure) => return self.run_failed(state, step, &failure),
        };
        self.written = done.written;
        let place = self.stages.position(step);
        let notes = done.notes.into_iter();
        self.result
            .notes
            .extend(notes.map(|note| format!("{place}: {note}")));
        let packages = done.layer.packages.iter();
        let skipped = packages.flat_map(|it| it.options.skipped_actions.iter().cloned());
        self.skipped.extend(skipped);
        state.add_run(done.created_by, done.layer);
        state.tree.apply(done.seen.as_slice());
        state.tree.marks = done.marks;
        self.place(state, step, StepEngine::Direct, None);
        Ok(())
    }

    /// Refuses a here-document unless the worker has them.
    fn check_document(&self, stage: usize, line: &RunInstruction) -> Result<(), StepError> {
        match &self.inputs.windows {
            Some(windows) if windows.has_documents => Ok(()),
            _ => self.stages.check_document(stage, line),
        }
    }

    /// Returns the error of a line, unless more facts may resolve it.
    fn run_failed(
        &mut self,
        state: &mut StageState,
        step: &ParsedInstruction,
        trouble: &ScriptError,
    ) -> Result<(), StepError> {
        let is_unread = trouble.kind == ScriptErrorKind::NotKnown && self.is_rehearsal();
        let may_wait = match trouble.kind {
            ScriptErrorKind::Deferred => true,
            ScriptErrorKind::NotKnown | ScriptErrorKind::Fails => {
                is_unread || !self.result.unclear.is_empty()
            }
            _ => false,
        };
        let mut error = self.stages.run_error(state.index, trouble);
        if !may_wait {
            if state.place.is_none() && trouble.kind.is_for_windows() {
                // It is in no segment.
                error.hint = None;
                error.on_windows = Some(OnWindows::Trigger);
            }
            return Err(error);
        }
        self.place(state, step, StepEngine::Unknown, Some(trouble.to_string()));
        if is_unread {
            self.make_unclear(state, step, step.text.clone(), &ImagePath::drive());
            return Ok(());
        }
        self.postpone(state, step, step.text.clone(), error)
    }

    /// Returns true if a plan is only shown, without what nothing has read.
    fn is_rehearsal(&self) -> bool {
        let windows = self.inputs.windows.as_ref();
        self.inputs.omits_unread || windows.is_some_and(|windows| windows.is_rehearsal)
    }

    /// The reason if a line has downloads that only Windows may make.
    fn not_pinned(&self, wants: &DownloadRequests) -> Option<String> {
        let windows = self.inputs.windows.as_ref()?;
        let mut new = wants
            .keys()
            .filter(|url| !self.result.wants.contains_key(*url));
        let url = new.find(|url| windows.not_pinned.contains(*url))?;
        Some(format!("no digest pins {}", public_url(url)))
    }

    /// Postpones an instruction that depends on a download; what follows is uncertain until then.
    fn postpone(
        &mut self,
        state: &mut StageState,
        step: &ParsedInstruction,
        created_by: String,
        error: StepError,
    ) -> Result<(), StepError> {
        let here = &self.inputs.downloads;
        let all_here = self.result.wants.keys().all(|url| here.contains_key(url));
        if all_here && self.pending.is_empty() && !self.is_rehearsal() {
            return Err(error);
        }
        self.make_unclear(state, step, created_by, &ImagePath::drive());
        Ok(())
    }

    /// Adds an instruction without its effect; what is at the path is uncertain from here on.
    fn make_unclear(
        &mut self,
        state: &mut StageState,
        step: &ParsedInstruction,
        created_by: String,
        path: &ImagePath,
    ) {
        self.result.unclear.push(self.stages.position(step));
        state.add_layer(created_by, PlannedLayer::default());
        state.tree.marks.later.insert(path.key());
    }
}

/// How often each stage is read by others, at most.
fn count_reads(stages: &Stages, inputs: &Inputs) -> Vec<usize> {
    let count = stages.all.len();
    let mut bases = inputs.bases.values();
    // The triggers of a base may copy from any stage.
    if bases.any(|base| !base.config.on_build.is_empty()) {
        return vec![usize::MAX; count];
    }
    let mut reads = vec![0; count];
    for source in (0..count).flat_map(|index| stages.sources_of(index)) {
        reads[source] += 1;
    }
    reads
}

/// Checks that the image may have an account; of an unknown base, or after a line that is left
/// out, any is possible.
fn check_user(state: &StageState, written: &str, name: &str) -> Result<(), StepError> {
    let (inherited, tree) = (state.config.user.as_deref(), &state.tree);
    let found = find_account(name, inherited, tree.base(), tree.is_plain_windows);
    let found = found.map_err(|error| error_chain(&error))?;
    let is_missing = found == Presence::Absent && !state.tree.marks.later.contains("");
    let missing = || {
        let (problem, hint) = missing_account(name);
        is_missing.then(|| StepError::hinted(problem, hint))
    };
    let error = lost_backslash(written, name).or_else(missing);
    error.map_or(Ok(()), Err)
}

/// Refuses absolute paths whose backslashes the parser took for escape characters.
fn check_folders(
    state: &StageState,
    kind: &InstructionKind,
    lexer: Lexer,
    arguments: &BuildArguments,
) -> Result<(), StepError> {
    let folders = match kind {
        InstructionKind::Workdir(text) => std::slice::from_ref(text),
        InstructionKind::Volume(list) => list.as_slice(),
        _ => return Ok(()),
    };
    for written in folders {
        let folder = state.expand(lexer, written, arguments)?.text;
        let is_lost = folder != *written && folder == written.replace('\\', "");
        if is_lost && check_absolute(&folder).is_err() {
            let problem = format!("\\ is the escape character, so the path is {folder:?}");
            let path = written.replace('\\', "/");
            let hint = format!("write {path}, or begin the file with # escape=`");
            return Err(StepError::hinted(problem, hint));
        }
    }
    Ok(())
}

/// Finds what a name lost on its way through the parser.
fn lost_backslash(written: &str, user: &str) -> Option<StepError> {
    let written = written.trim();
    let is_lost = is_known_account(written) && user != written && user == written.replace('\\', "");
    is_lost.then(|| {
        let doubled = written.replace('\\', r"\\");
        StepError::hinted(
            format!("\\ is the escape character, so the account is {user:?}"),
            format!("write USER {doubled}, or begin the file with # escape=`"),
        )
    })
}
