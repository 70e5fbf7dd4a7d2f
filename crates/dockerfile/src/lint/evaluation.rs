//! The builder's reading of a file: its parser, the state of each stage and the interpreters of
//! `RUN`. Unlike a build, it continues after an error.

use std::collections::HashMap;

use wincimg_common::diagnose::closest_match;
use wincimg_recipe::CommandForm;
use wincimg_scripts::ScriptErrorKind;
use wincimg_windows::path::ImagePath;
use wincimg_windows::quoting::Escape;

use super::packages::{CopiedFiles, CopiedPackages};
use super::prelude::*;
use super::rule::{Check, RULES};
use super::volume::DeclaredVolume;
use super::{Findings, escapes, rule};
use crate::expand::{ExpandedWord, Lexer};
use crate::instruction::{CopyInstruction, ParsedInstruction};
use crate::source::Instruction;
use crate::stages::{HOST_PORT, StageState, copy_target, script_error};

const INVALID: &str = "invalid-instruction";

/// An instruction with the state of its stage before it.
pub(super) struct EvaluatedStep<'a> {
    pub(super) linted: &'a LintFile<'a>,
    pub(super) stage: &'a Stage<'a>,
    pub(super) step: &'a LintStep<'a>,
    pub(super) kind: &'a InstructionKind,
    pub(super) state: &'a StageState,
    /// What the stage's instructions so far copied.
    pub(super) copied: &'a [CopiedFiles],
    /// Volumes so far.
    pub(super) volumes: &'a [DeclaredVolume],
}

impl EvaluatedStep<'_> {
    pub(super) fn lexer(&self) -> Lexer {
        Lexer::new(self.linted.file.escape)
    }

    /// A text with its variables; `None` if it is not valid.
    pub(super) fn expand(&self, text: &str) -> Option<ExpandedWord> {
        let arguments = &self.linted.arguments;
        self.state.expand(self.lexer(), text, arguments).ok()
    }

    /// A copy with its variables; `None` if it is not valid, or one is not set.
    pub(super) fn expand_copy(&self, copy: &CopyInstruction) -> Option<CopyInstruction> {
        let arguments = &self.linted.arguments;
        let mut unset = Vec::new();
        let copy = self
            .state
            .expand_copy(copy, self.lexer(), arguments, &mut unset);
        copy.ok().filter(|_| unset.is_empty())
    }
}

/// Position of the evaluation, and what a stage leaves to those that are built on it.
#[derive(Clone)]
struct StagePlace {
    /// Stage.
    index: usize,
    state: StageState,
    copied: Vec<CopiedFiles>,
    volumes: Vec<DeclaredVolume>,
    /// Folders that exist by now.
    made: Vec<ImagePath>,
}

pub(super) fn check(linted: &LintFile<'_>, findings: &mut Findings) {
    let invalid = rule::named(INVALID);
    findings.extend(invalid, check_file(linted));
    let mut names = HashMap::new();
    linted.read_stages(|index, stage, below: Option<StagePlace>| {
        findings.extend(invalid, check_from(linted, index, &mut names));
        let mut place = match below {
            Some(below) => StagePlace {
                index,
                state: below.state.fork_without_arguments(),
                ..below
            },
            None => StagePlace {
                index,
                state: StageState::unknown(&stage.image),
                copied: Vec::new(),
                volumes: Vec::new(),
                made: Vec::new(),
            },
        };
        for step in &stage.steps {
            check_step(linted, step, &mut place, findings);
        }
        place.copied.clear();
        place
    });
}

/// Errors of the file as a whole.
fn check_file(linted: &LintFile<'_>) -> Vec<Finding> {
    let file = linted.file;
    let directive = file.directive_problem;
    let directive = directive.map(|(line, message)| Finding::new(line, message));
    let mut instructions = file.instructions.iter();
    let first = instructions.find(|it| !matches!(it.keyword.as_str(), "ARG" | "ONBUILD"));
    // The parser reports an unknown keyword.
    let is_misplaced = |it: &&Instruction| {
        it.keyword != "FROM" && linted.is_whole_file() && crate::source::is_keyword(&it.keyword)
    };
    let misplaced = first.filter(is_misplaced).map(|instruction| {
        let message = "expected FROM before any instruction but ARG";
        Finding::new(instruction.lines().0, message)
    });
    let mut found = super::ignore::check_names(file);
    found.extend(directive.into_iter().chain(misplaced));
    found
}

/// `names` has the stages so far and their lines.
fn check_from(
    linted: &LintFile<'_>,
    index: usize,
    names: &mut HashMap<String, usize>,
) -> Vec<Finding> {
    let stage = &linted.stages[index];
    let instruction = stage.from;
    if instruction.keyword != "FROM" {
        return Vec::new();
    }
    let line = instruction.lines().0;
    let parsed = ParsedInstruction::read(instruction, linted.file.escape);
    let from = match parsed.map(|parsed| parsed.kind) {
        Ok(InstructionKind::From(from)) => from,
        Err(error) if !is_template(instruction.text()) => {
            return vec![Finding::new(line, error.message)];
        }
        _ => return Vec::new(),
    };
    let mut found = Vec::from_iter(check_image(linted, stage, &from.image));
    if let Some(name) = from.name
        && let Some(first) = names.insert(name.clone(), line + 1)
        // Only one of the two may be in the file that a template makes.
        && !linted.has_template_lines
    {
        let message = format!("the stage \"{name}\" is already defined on line {first}");
        found.push(Finding::new(line, message));
    }
    found
}

/// Reports a base image whose name lacks a part, as nothing sets its variable.
fn check_image(linted: &LintFile<'_>, stage: &Stage<'_>, image: &str) -> Option<Finding> {
    let line = stage.from.lines().0;
    let arguments = &linted.arguments;
    let of_shell = super::environment::shell_variables(image).find(|it| arguments.is_declared(it));
    if let Some(name) = of_shell {
        let message = format!("FROM does not expand %{name}%: write ${{{name}}}");
        return Some(Finding::new(line, message).of("shell-variable"));
    }
    if image.contains('\\') && !image.contains('$') && !is_template(image) {
        let name = image.replace('\\', "/");
        let message = format!("the parts of an image's name are separated by /: write {name}");
        return Some(Finding::new(line, message));
    }
    let expanded = arguments.expand(image, linted.file.escape).ok()?;
    let text = expanded.text.as_str();
    let is_known = expanded.unset.is_empty() && stage.reference().is_some();
    if let Some(message) = super::reference::refused_name(text).filter(|_| is_known) {
        return Some(Finding::new(line, message));
    }
    let is_broken = text.is_empty()
        || text.starts_with(['/', ':'])
        || text.ends_with([':', '@', '/'])
        || text.contains_any(&["//", "/:", ":-", ":."]);
    // A build gives an argument that has no default.
    let mut unset = expanded.unset.iter();
    let name = unset.find(|name| is_broken && !arguments.is_declared(name))?;
    let mut lines = linted.file.lines();
    if lines.any(|line| is_argument_comment(line) || is_template(line)) {
        return None;
    }
    if let Some(declared) = arguments.spelling(name).filter(|_| !stage.is_linux()) {
        // A daemon on Windows ignores the case.
        let message = format!(
            "${name} is empty with BuildKit on Linux, where the case of names counts: write ${declared}"
        );
        return Some(Finding::new(line, message).of("unset-variable").warning());
    }
    let is_in_stage = |it: &&Instruction| {
        it.keyword == "ARG" && it.text().split(['=', ' ']).next() == Some(name.as_str())
    };
    let message = match linted.file.instructions.iter().find(is_in_stage) {
        Some(argument) => format!(
            "${name} is empty here: FROM sees only arguments above the first FROM, and the one on \
             line {} is below; \"{text}\" is not the name of an image",
            argument.lines().0 + 1
        ),
        None => format!(
            "${name} is empty here, as no ARG above the first FROM declares it; \"{text}\" is not the \
             name of an image"
        ),
    };
    Some(Finding::new(line, message).of("unset-variable"))
}

/// Returns true for `# ARG NAME`, with which a template lists what its generator writes.
fn is_argument_comment(line: &str) -> bool {
    let argument = line.strip_prefix("# ARG ");
    argument.is_some_and(|name| !name.trim().contains([' ', '=']))
}

/// Double braces and percent signs around a name are filled in by another program.
pub(super) fn is_template(text: &str) -> bool {
    let has_braces = text.contains("{{") && !is_of_workflow(text);
    has_braces || text.contains("{%") || text.contains("<%") || text.contains("@@")
}

/// Contexts of a workflow's expressions, which only the file of the workflow has.
const WORKFLOW_CONTEXTS: [&str; 7] = [
    "secrets.", "github.", "vars.", "inputs.", "matrix.", "runner.", "steps.",
];

/// Returns true if all double braces are of `${{ github.sha }}` and the like.
fn is_of_workflow(text: &str) -> bool {
    text.match_indices("{{").all(|(at, _)| {
        let inside = text[at + 2..].trim_start();
        text[..at].ends_with('$') && inside.starts_with_any(&WORKFLOW_CONTEXTS)
    })
}

/// Message about an expression of a workflow, which Docker refuses.
fn workflow_message(instruction: &Instruction) -> Option<String> {
    let text = instruction.full_text();
    let has_expression = text.contains("${{") && is_of_workflow(text);
    has_expression.then(|| {
        "Docker does not know ${{ … }}, which is of workflows: declare an ARG, and set it in the \
         workflow with --build-arg"
            .to_owned()
    })
}

fn check_step(
    linted: &LintFile<'_>,
    step: &LintStep<'_>,
    place: &mut StagePlace,
    findings: &mut Findings,
) {
    let stage = &linted.stages[place.index];
    let invalid = rule::named(INVALID);
    let kind = match ParsedInstruction::read(step.instruction, linted.file.escape) {
        Ok(parsed) => parsed.kind,
        Err(error) => {
            let is_for_stage = !error.is_of_windows || stage.platform == Platform::Windows;
            let found = is_for_stage.then(|| check_invalid(linted, step, error.message));
            findings.extend(invalid, found.flatten());
            return;
        }
    };
    // What follows is not what the author meant.
    if escapes::continues_by_mistake(linted.file, step.instruction) {
        return;
    }
    if let InstructionKind::Copy(copy) = &kind {
        let found = super::stage_names::check_source(linted, place.index, step, copy);
        findings.extend(invalid, found);
    }
    if stage.is_linux() {
        return;
    }
    // Each word behind it would have a finding of its own.
    if let Some(operator) = shell_operator(step.instruction) {
        findings.add(invalid, step.finding(operator_message(step, operator)));
        return;
    }
    let kept = match &kind {
        InstructionKind::OnBuild(_) => {
            InstructionKind::read_own(step.instruction, linted.file.escape).ok()
        }
        _ => None,
    };
    let evaluated = EvaluatedStep {
        linted,
        stage,
        step,
        kind: kept.as_ref().unwrap_or(&kind),
        state: &place.state,
        copied: &place.copied,
        volumes: &place.volumes,
    };
    check_rules(&evaluated, kept.is_some(), findings);
    let copied = CopiedFiles::read(&evaluated);
    place.copied.extend(copied);
    let found = apply(linted, step, &kind, place);
    let found = found.unwrap_or_else(|message| check_refused(linted, stage, step, message));
    findings.extend(invalid, found);
    findings.extend(invalid, check_trigger(linted, stage, step));
}

/// Reports a flag of a trigger that the later build refuses.
fn check_trigger(linted: &LintFile<'_>, stage: &Stage<'_>, step: &LintStep<'_>) -> Option<Finding> {
    let text = step.instruction.trigger()?;
    let error = InstructionKind::read_own(step.instruction, linted.file.escape).err()?;
    let is_certain = stage.platform == Platform::Windows && !is_template(text);
    (is_certain && is_of_flag(&error.message))
        .then(|| super::unix::check_copy_flags(step, &error.message))
}

/// Returns true for the message about a flag that only Linux has.
fn is_of_flag(message: &str) -> bool {
    message.contains("--chown is unsupported") || message.contains("--chmod is unsupported")
}

/// Runs the rules that read the state of a stage.
fn check_rules(evaluated: &EvaluatedStep<'_>, is_trigger: bool, findings: &mut Findings) {
    for rule in &RULES {
        match rule.check {
            // A later build sets the variables of a trigger.
            _ if is_trigger && rule == "unset-variable" => {}
            Check::State(check) if evaluated.stage.platform == Platform::Windows => {
                findings.extend(rule, check(evaluated));
            }
            Check::AnyState(check) => findings.extend(rule, check(evaluated)),
            _ => {}
        }
    }
}

/// Applies an instruction to the state of its stage, with the finding about a `RUN` that fails or a port
/// of the host; the reason why it cannot be applied.
fn apply(
    linted: &LintFile<'_>,
    step: &LintStep<'_>,
    kind: &InstructionKind,
    place: &mut StagePlace,
) -> Result<Option<Finding>, String> {
    let stage = &linted.stages[place.index];
    let current = &mut place.state;
    let lexer = Lexer::new(linted.file.escape);
    let arguments = &linted.arguments;
    match kind {
        InstructionKind::Copy(copy) => {
            let mut unset = Vec::new();
            let copy = current.expand_copy(copy, lexer, arguments, &mut unset)?;
            if unset.is_empty() {
                copy_target(current, &copy)?;
            }
        }
        InstructionKind::Run(run) => {
            let mut packages = CopiedPackages::new(linted, &place.copied);
            let known = (&*current, &mut place.made, &mut packages);
            return Ok(check_run(linted, stage, step, known, &run.program));
        }
        kind => {
            let mut unset = Vec::new();
            current.apply(kind, lexer, arguments, &mut unset)?;
            match kind {
                InstructionKind::Env(list) => current.record_open(list, &unset),
                InstructionKind::Workdir(_) => {
                    place.made.extend(current.working_dir().ok());
                    let excess = place.made.len().saturating_sub(MAX_FOLDERS);
                    place.made.drain(..excess);
                }
                InstructionKind::Expose(text) if stage.platform == Platform::Windows => {
                    let ports = current.expand(lexer, text, arguments)?.text;
                    let has_host = ports.contains(':');
                    return Ok(has_host.then(|| step.finding(HOST_PORT).warning()));
                }
                InstructionKind::Volume(_) => {
                    DeclaredVolume::extend(&mut place.volumes, current);
                }
                _ => {}
            }
        }
    }
    Ok(None)
}

/// Reports an instruction that cannot be applied.
fn check_refused(
    linted: &LintFile<'_>,
    stage: &Stage<'_>,
    step: &LintStep<'_>,
    message: String,
) -> Option<Finding> {
    let instruction = step.instruction;
    let of_workflow = workflow_message(instruction);
    let is_certain = stage.platform == Platform::Windows
        && !is_template(instruction.full_text())
        && (of_workflow.is_some() || !is_open_value(instruction.text(), &message))
        && !is_own_drive(linted, &message);
    // Where BuildKit finds a folder, it copies into it.
    let is_folder_open = message.starts_with("several files");
    if !is_certain || is_folder_open && super::buildkit::requires_buildkit(linted) {
        return None;
    }
    let is_copy = matches!(instruction.keyword.as_str(), "ADD" | "COPY");
    let message = if is_copy && message.ends_with("is not closed") {
        let keyword = &instruction.keyword;
        format!(
            "{keyword} separates its arguments at spaces also in quotes: write them as an array, as \
             in {keyword} [\"a b\", \"C:/c d/\"]"
        )
    } else if instruction.keyword == "WORKDIR" && instruction.text().starts_with("[\"") {
        "WORKDIR takes a path, and not an array: write it without brackets and quotes".to_owned()
    } else {
        of_workflow.unwrap_or(message)
    };
    let severity = Severity::error_if(!is_folder_open);
    Some(step.finding(message).severity(severity))
}

/// True if an error is about a drive that the file defines.
fn is_own_drive(linted: &LintFile<'_>, message: &str) -> bool {
    message.contains("the only drive of an image")
        && linted.file.text().contains_any(&["DOS Devices", "subst "])
}

/// True if the error is about a variable whose value the file does not show.
fn is_open_value(text: &str, message: &str) -> bool {
    let parts = ["\"\"", "empty", "?", "invalid volume"];
    text.contains('$') && message.contains_any(&parts)
}

/// Maximum number of remembered folders: each stage takes over those of its base.
const MAX_FOLDERS: usize = 32;

/// Commands after which folders may not exist any more.
const REMOVING: [&str; 12] = [
    "rd", "rmdir", "del", "erase", "move", "ren", "rename", "rm", "ri", "mv", "robocopy", "delete",
];

/// Returns true if a line, in lower case, may remove or rename a folder.
pub(super) fn may_remove(text: &str) -> bool {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| REMOVING.contains(&word))
        || text.contains_any(&["remove-item", "move-item", "rename-item"])
}

/// A line that fails on every Windows.
fn check_run(
    linted: &LintFile<'_>,
    stage: &Stage<'_>,
    step: &LintStep<'_>,
    (current, made, packages): (&StageState, &mut Vec<ImagePath>, &mut CopiedPackages<'_>),
    program: &CommandForm,
) -> Option<Finding> {
    if !made.is_empty() && may_remove(step.lower_text()) {
        made.clear();
    }
    let shell = step.shell_words(current)?;
    if current.config.user.as_deref() == Some("ContainerUser") {
        let of_rights = super::user::check_rights(linted, stage, step);
        if of_rights.is_some() {
            return of_rights;
        }
    }
    // Variables of an unknown base can change any line.
    if stage.platform != Platform::Windows || !stage.knows_environment {
        return None;
    }
    // A line may fail on purpose, and that of a template is not what runs.
    let text = step.instruction.text();
    if text.contains("throw") || text.contains("exit") || is_template(text) {
        return None;
    }
    let error = script_error(current, program, &shell, made, packages)?;
    // An account that the file puts among the administrators may.
    let is_of_rights = error.to_string().contains(" may not ");
    if is_of_rights && linted.rights().names_administrators {
        return None;
    }
    let fails = error.kind == ScriptErrorKind::Fails
        // That the lines are joined is why.
        && super::joined::check(stage, step).is_none();
    let message = format!("this RUN fails: {error}");
    let found = step.finding_at(step.instruction.start() + error.at, message);
    fails.then(|| found.of("failing-run"))
}

/// Reports what the parser refuses, with a correction of a misspelt keyword.
fn check_invalid(linted: &LintFile<'_>, step: &LintStep<'_>, message: String) -> Option<Finding> {
    let (file, instruction) = (linted.file, step.instruction);
    if is_template(instruction.full_text()) {
        return None;
    }
    let message = match workflow_message(instruction) {
        Some(message) => message,
        None if message.starts_with("\"&&\" has no =") => operator_message(step, "&&"),
        None => message,
    };
    let line = step.line();
    if crate::source::is_keyword(&instruction.keyword) || instruction.trigger().is_some() {
        return Some(match () {
            () if message.starts_with("unexpected text after the array")
                && instruction.keyword != "SHELL" =>
            {
                let message = "unexpected text after the array: Docker ignores it or reads the whole line \
                    as a command, and wincimg refuses it; remove it";
                step.finding(message).warning()
            }
            () if is_of_flag(&message) => super::unix::check_copy_flags(step, &message),
            () => step.finding(message),
        });
    }
    let mut lines = (0..line).rev().map(|above| file.line(above));
    let above = lines.find(|line| !line.trim().is_empty());
    let ends_in = |ends: &[char]| above.is_some_and(|it| it.trim_end().ends_with(ends));
    let is_continuation = ends_in(&['`', '\\', '^', ';', '|', '&', ',']);
    // A template may write the directive as well, and any instruction.
    let has_other_end =
        file.escape == Escape::Backtick && ends_in(&['\\']) && !above.is_some_and(is_template);
    if linted.has_template_lines && !has_other_end {
        return None;
    }
    if is_continuation {
        // One finding says it for all lines that follow.
        let place = file.instructions.partition_point(|it| it.lines().0 < line);
        let before = file.instructions[..place].last();
        if before.is_some_and(|before| !crate::source::is_keyword(&before.keyword)) {
            return None;
        }
        // The finding about the directive says why.
        if let Some((_, escape)) = linted.misplaced_directive
            && ends_in(&[escape.character()])
        {
            return None;
        }
        let why = if file.lacks_directive(line) {
            ": begin the file with the line # escape=`".to_owned()
        } else {
            format!(", because it does not end in {}", file.escape.character())
        };
        let message = format!("{message}: the line above does not continue here{why}");
        return Some(step.finding(message));
    }
    Some(check_keyword(step, message))
}

/// The operator of a shell in an instruction that runs no commands.
fn shell_operator(instruction: &Instruction) -> Option<&'static str> {
    let text = instruction.text();
    let keyword = instruction.keyword.as_str();
    let is_plain = matches!(keyword, "ADD" | "COPY" | "USER" | "WORKDIR")
        && !instruction.has_here_document()
        && !is_template(text)
        && !super::comments::is_commented(text);
    let words = text.split_whitespace().filter(|_| is_plain);
    let mut words = words.take_while(|word| !word.contains(['"', '\'', '[']));
    words.find_map(|word| match word {
        "&&" => Some("&&"),
        "||" => Some("||"),
        _ => (word.ends_with(';') && !text.ends_with(word)).then_some(";"),
    })
}

fn operator_message(step: &LintStep<'_>, operator: &str) -> String {
    let keyword = &step.instruction.keyword;
    format!("{keyword} runs no commands: write what follows {operator} in a RUN")
}

/// Reports an unknown keyword.
fn check_keyword(step: &LintStep<'_>, message: String) -> Finding {
    let keyword = step.instruction.keyword.as_str();
    let written = &step.instruction.full_text()[..keyword.len()];
    if super::shells::is_known_cmdlet(written) {
        let end = step.file.escape.character();
        return step.finding(format!(
            "{written} is a cmdlet, and not an instruction: begin the line with RUN, or continue the RUN \
             above with {end} at its end"
        ));
    }
    let known = wincimg_recipe::KEYWORDS.into_iter();
    let meant = closest_match(keyword, known.filter(|_| !keyword.contains('-')));
    match meant.filter(|meant| is_valid_as(step, meant)) {
        Some(meant) => step.edited(message, &[Edit::new(0..keyword.len(), meant)]),
        None => step.finding(message),
    }
}

/// Returns true if an instruction is valid with another keyword.
fn is_valid_as(step: &LintStep<'_>, keyword: &str) -> bool {
    let instruction = step.instruction;
    // A letter could be anything.
    if instruction.keyword.len() < 3 {
        return false;
    }
    let arguments = &instruction.full_text()[instruction.keyword.len()..];
    let text = format!("{keyword}{arguments}");
    let file = crate::source::Dockerfile::read(&text);
    let escape = step.file.escape;
    let [only] = file.instructions.as_slice() else {
        return false;
    };
    let mut state = StageState::unknown("");
    let none = crate::stages::BuildArguments::default();
    ParsedInstruction::read(only, escape).is_ok_and(|parsed| {
        let done = state.apply(&parsed.kind, Lexer::new(escape), &none, &mut Vec::new());
        done.is_ok()
    })
}
