//! Linter for errors in Dockerfiles that occur only on Windows, with corrections.
//!
//! [`lint`] takes a text and what is known of base images and host, and returns findings; it reads
//! no file but packages and the `.dockerignore` of [`LintOptions::file`]. A correction replaces whole lines, has no findings itself and, for the quote rules,
//! passes the intended arguments to the program (both are tested).

mod absent;
mod alternative;
mod args_escaped;
mod arrays;
mod base;
mod buildkit;
mod builtins;
mod cmd_lines;
mod comments;
mod copied_files;
mod copies;
mod correction;
mod documents;
mod effects;
mod entrypoint;
mod environment;
mod escapes;
mod evaluation;
mod exec_form;
mod exit_codes;
mod features;
mod fixes;
mod healthcheck;
mod ignore;
mod iis;
mod installers;
mod instructions;
mod joined;
mod line_effects;
mod line_end;
mod missing_folder;
mod nano;
mod newer_powershell;
mod packages;
mod powershell_output;
mod prelude;
mod programs;
mod prompts;
mod quotes;
mod reference;
mod registry;
mod repository;
mod rule;
mod secrets;
mod services;
mod shell;
mod shells;
mod single_quotes;
mod spaces;
mod stage;
mod stage_names;
mod statements;
mod tls;
mod unix;
mod unix_paths;
mod usage;
mod user;
mod variables;
mod volume;
mod words;

#[cfg(test)]
mod tests;

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::iter;
use std::path::PathBuf;

pub use alternative::RecipeAlternative;
use correction::{Correction, Edit};
pub use fixes::{FixSelection, fixed};
pub(crate) use line_end::{JOINED, advice_on_join};
use reference::{Platform, Reference};
pub(crate) use reference::{names_linux, names_nano_server, names_windows};
use rule::Check;
pub use rule::{Fix, RULES, Rule};
pub(crate) use secrets::{IN_HISTORY, is_secret};
pub use shell::BaseShell;
use stage::{Stage, StageBaseRef};
pub(crate) use stage_names::not_above;
use user::FileRights;
use wincimg_common::Named;
use wincimg_windows::compat::HostBuild;
use wincimg_windows::quoting::Escape;
use wincimg_windows::version::WindowsVersion;

use crate::source::{Dockerfile, Instruction};
use crate::stages::BuildArguments;

/// Questions that most rules ask of a text.
trait TextExt {
    /// Returns true if it contains one of these.
    fn contains_any(&self, parts: &[&str]) -> bool;
    /// Returns true if it begins with one of these.
    fn starts_with_any(&self, parts: &[&str]) -> bool;
    /// Returns true if it ends with one of these.
    fn ends_with_any(&self, parts: &[&str]) -> bool;
    /// Returns true if it is one of these in any case.
    fn is_any_of(&self, names: &[&str]) -> bool;
    /// Returns true if it begins with a letter of ASCII.
    fn starts_with_letter(&self) -> bool;
    /// The text between two quotes, if it begins and ends with them.
    fn in_quotes(&self, quote: char) -> Option<&str>;
    /// Returns true if it has only letters and digits of ASCII and these characters.
    fn has_only(&self, others: &str) -> bool;
    /// Returns true if it is such a text and begins with a letter.
    fn is_name(&self, others: &str) -> bool;
}

impl TextExt for str {
    fn contains_any(&self, parts: &[&str]) -> bool {
        parts.iter().any(|part| self.contains(part))
    }

    fn starts_with_any(&self, parts: &[&str]) -> bool {
        parts.iter().any(|part| self.starts_with(part))
    }

    fn ends_with_any(&self, parts: &[&str]) -> bool {
        parts.iter().any(|part| self.ends_with(part))
    }

    fn is_any_of(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.eq_ignore_ascii_case(name))
    }

    fn starts_with_letter(&self) -> bool {
        self.starts_with(|c: char| c.is_ascii_alphabetic())
    }

    fn in_quotes(&self, quote: char) -> Option<&str> {
        self.strip_prefix(quote)?.strip_suffix(quote)
    }

    fn has_only(&self, others: &str) -> bool {
        self.chars()
            .all(|c| c.is_ascii_alphanumeric() || others.contains(c))
    }

    fn is_name(&self, others: &str) -> bool {
        self.starts_with_letter() && self.has_only(others)
    }
}

/// Facts that the text does not contain.
#[derive(Debug, Clone, Default)]
pub struct LintOptions {
    /// Shell of every base image; by default each image's own.
    pub shell: Option<BaseShell>,
    /// Configuration of every base image.
    pub base: Option<BaseConfig>,
    /// Configurations of base images, by their names in [`base_images`].
    pub bases: HashMap<String, BaseConfig>,
    /// Target host.
    pub host: Option<HostBuild>,
    /// The file, if its packages and `.dockerignore` are to be read: its folder is the build context.
    pub file: Option<PathBuf>,
}

/// Facts from an image's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BaseConfig {
    /// Shell of `RUN` in shell form.
    pub shell: BaseShell,
    /// Windows version.
    pub version: Option<WindowsVersion>,
    /// True if the image is for Windows.
    pub is_windows: bool,
}

impl LintOptions {
    fn facts(&self, image: &str) -> Option<&BaseConfig> {
        self.base.as_ref().or_else(|| self.bases.get(image))
    }

    fn shell_of(&self, image: &str) -> Option<BaseShell> {
        self.shell.or_else(|| Some(self.facts(image)?.shell))
    }
}

/// Base images of a file, each once, without its own stages.
pub fn base_images(source: &str) -> Vec<String> {
    let file = Dockerfile::read(source);
    let (stages, _) = stage::stages(&file, &LintOptions::default());
    let mut images: Vec<String> = stages
        .into_iter()
        .filter(|stage| stage.reference().is_some())
        .map(|stage| stage.image)
        .collect();
    images.sort_unstable();
    images.dedup();
    images
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Named)]
#[named(rename_all = "lowercase")]
pub enum Severity {
    /// The line fails or does something other than it says.
    Error,
    /// The line works, but not everywhere or not for long.
    Warning,
    /// The line works, and something else works better.
    Note,
}

impl Severity {
    /// An error if what a finding says is certain, else a warning.
    fn error_if(is_certain: bool) -> Self {
        if is_certain {
            Self::Error
        } else {
            Self::Warning
        }
    }
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintFinding {
    /// First line, from 1.
    pub line: usize,
    /// Last line, also of those that [`Self::fix`] replaces.
    pub last_line: usize,
    /// Rule.
    pub rule: &'static Rule,
    /// Severity.
    pub severity: Severity,
    /// Explanation in one sentence.
    pub message: String,
    /// Replacement for the lines `fix_line` to `last_line`, if it is certain.
    pub fix: Option<String>,
    /// First line that the fix replaces: `line`, or one above for a fix that moves a line up.
    pub fix_line: usize,
}

/// What lint tells of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintResult {
    /// Findings in line order, without those that comments ignore.
    pub findings: Vec<LintFinding>,
    /// Recipe keys that replace commands.
    pub alternatives: Vec<RecipeAlternative>,
}

/// Lints a Dockerfile.
pub fn lint(source: &str, options: &LintOptions) -> LintResult {
    let mut result = evaluate(source, options, |file| LintResult {
        findings: find(file),
        alternatives: alternative::find(&file.stages),
    });
    let options = LintOptions {
        file: None,
        ..options.clone()
    };
    correction::extend_corrections(source, &mut result.findings, |text| {
        evaluate(text, &options, find)
    });
    result
}

fn evaluate<T>(source: &str, options: &LintOptions, read: impl FnOnce(&LintFile<'_>) -> T) -> T {
    let mut file = Dockerfile::read(source);
    file.inline_here_documents();
    let (stages, arguments) = stage::stages(&file, options);
    read(&LintFile {
        file: &file,
        stages,
        arguments,
        declared: declared_names(&file),
        rights: OnceCell::new(),
        misplaced_directive: escapes::misplaced_directive(&file),
        has_template_lines: file.lines().any(|it| {
            let begun = it.trim_start();
            ["{{", "{%", "<%"].iter().any(|it| begun.starts_with(it))
        }),
        options,
    })
}

/// Names that an `ARG` or `ENV` of a file declares.
fn declared_names<'a>(file: &'a Dockerfile<'_>) -> HashSet<&'a str> {
    let instructions = file
        .instructions
        .iter()
        .filter(|it| matches!(it.keyword.as_str(), "ARG" | "ENV") && it.trigger().is_none());
    let words = instructions.flat_map(|it| it.text().split_whitespace());
    words.filter_map(|word| word.split('=').next()).collect()
}

fn find(linted: &LintFile<'_>) -> Vec<LintFinding> {
    let mut findings = Findings::default();
    evaluation::check(linted, &mut findings);
    for rule in &RULES {
        match rule.check {
            Check::File(check) => findings.extend(rule, check(linted)),
            Check::Later(check) => {
                let found = check(linted, &findings.found);
                findings.extend(rule, found);
            }
            _ => {}
        }
        for stage in &linted.stages {
            let is_windows = stage.platform == Platform::Windows;
            let steps = stage.steps.iter();
            match rule.check {
                Check::Stage(check) if is_windows => findings.extend(rule, check(stage)),
                Check::Step(check) if is_windows => {
                    steps.for_each(|step| findings.extend(rule, check(stage, step)));
                }
                Check::Run(check) if is_windows => {
                    let runs = steps.filter(|step| step.is("RUN"));
                    runs.for_each(|step| findings.extend(rule, check(stage, step)));
                }
                Check::AnyStep(check) if !stage.is_linux() => {
                    steps.for_each(|step| findings.extend(rule, check(stage, step)));
                }
                // The evaluation runs those of a state, and another rule those that it shares.
                _ => {}
            }
        }
    }
    ignore::check(linted.file, without_consequences(findings.sorted()))
}

/// Rules, and those whose errors on the same line explain their findings.
const CONSEQUENCES: [(&[&str], &[&str]); 5] = [
    (
        &["prompt", "basic-parsing", "error-action"],
        &["nano-server-lacks"],
    ),
    (
        &["invalid-instruction"],
        &["invalid-json", "eaten-backslash", "shell-variable"],
    ),
    (&["foreign-variable"], &["cmdlet-under-cmd"]),
    (&["unknown-user"], &["unix-permissions"]),
    (&["invalid-instruction"], &["inline-comment"]),
];

/// Findings without those that another one on their line explains.
fn without_consequences(mut findings: Vec<LintFinding>) -> Vec<LintFinding> {
    let errors: BTreeSet<(usize, &str)> = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .map(|finding| (finding.line, finding.rule.name))
        .collect();
    let names = ["unknown-repository", "unknown-stage", "unknown-tag"];
    let misnamed: HashSet<usize> = findings
        .iter()
        .filter(|finding| names.contains(&finding.rule.name))
        .map(|finding| finding.line)
        .collect();
    findings.retain(|finding| {
        let (line, name) = (finding.line, finding.rule.name);
        let by_any = matches!(name, "failing-run" | "semicolon-under-cmd")
            && errors
                .range((line, "")..(line + 1, ""))
                .any(|(_, other)| *other != name);
        let by_name = matches!(name, "floating-base" | "dead-base") && misnamed.contains(&line);
        let mut known = CONSEQUENCES.iter();
        let by_other = known.any(|(rules, others)| {
            let mut others = others.iter();
            rules.contains(&name) && others.any(|other| errors.contains(&(line, *other)))
        });
        !by_any && !by_name && !by_other
    });
    findings
}

/// A file with its stages.
struct LintFile<'a> {
    file: &'a Dockerfile<'a>,
    stages: Vec<Stage<'a>>,
    /// Declared before the first stage.
    arguments: BuildArguments,
    /// Names that an `ARG` or `ENV` declares.
    declared: HashSet<&'a str>,
    rights: OnceCell<FileRights>,
    /// Line, from 0, and character of an escape directive that is too far down.
    misplaced_directive: Option<(usize, Escape)>,
    /// True if a line begins like one of a template: others may be of its language, and no instructions.
    has_template_lines: bool,
    options: &'a LintOptions,
}

impl<'a> LintFile<'a> {
    /// The stages on Windows.
    fn windows_stages<'s>(&'s self) -> impl Iterator<Item = &'s Stage<'a>> {
        let stages = self.stages.iter();
        stages.filter(|stage| stage.platform == Platform::Windows)
    }

    /// Reads the stages from top to bottom, each with what the one that it is built on left. The last of
    /// several takes that over: copies in a long row would grow quadratically.
    fn read_stages<'s, T: Clone>(
        &'s self,
        mut read: impl FnMut(usize, &'s Stage<'a>, Option<T>) -> T,
    ) {
        let base = |stage: &Stage<'_>| match stage.base {
            StageBaseRef::Stage(base) => Some(base),
            _ => None,
        };
        // Numbers of stages that are still to be built on each.
        let mut waiting = vec![0_usize; self.stages.len()];
        for base in self.stages.iter().filter_map(base) {
            waiting[base] += 1;
        }
        let mut left: Vec<Option<T>> = Vec::with_capacity(self.stages.len());
        for (index, stage) in self.stages.iter().enumerate() {
            let below = base(stage).and_then(|base| {
                waiting[base] -= 1;
                match waiting[base] {
                    0 => left[base].take(),
                    _ => left[base].clone(),
                }
            });
            let own = read(index, stage, below);
            left.push((waiting[index] > 0).then_some(own));
        }
    }

    /// A stage and the stages it is built on, from top to bottom.
    fn chain<'s>(&'s self, stage: &'s Stage<'a>) -> impl Iterator<Item = &'s Stage<'a>> {
        iter::successors(Some(stage), |stage| match stage.base {
            StageBaseRef::Stage(index) => self.stages.get(index),
            _ => None,
        })
    }

    /// The image that a stage, with the stages it is built on, begins with.
    fn base_image<'s>(&'s self, stage: &'s Stage<'a>) -> Option<&'s Reference> {
        self.chain(stage).last()?.reference()
    }

    /// The stage that an instruction of another stage names, by its name or number.
    fn source(&self, user: &Stage<'_>, from: &str) -> Option<&Stage<'a>> {
        let line = user.from.lines().0;
        let stages = self.stages.as_slice();
        let own = stages.partition_point(|stage| stage.from.lines().0 < line);
        let earlier = &stages[..own];
        let is_named = |stage: &&Stage<'_>| {
            let name = stage.name.as_deref();
            name.is_some_and(|name| name.eq_ignore_ascii_case(from))
        };
        let named = earlier.iter().rfind(is_named);
        named.or_else(|| earlier.get(from.parse::<usize>().ok()?))
    }

    fn rights(&self) -> &FileRights {
        self.rights.get_or_init(|| FileRights::read(self.file))
    }

    /// False for a part of a file, without `FROM`.
    fn is_whole_file(&self) -> bool {
        let mut instructions = self.file.instructions.iter();
        instructions.any(|instruction| instruction.keyword == "FROM")
    }
}

/// What a check finds.
struct Finding {
    /// From 0.
    line: usize,
    message: String,
    /// By default that of the check.
    rule: Option<&'static str>,
    /// By default the rule's level.
    severity: Option<Severity>,
    /// May begin above the line.
    correction: Option<Correction>,
}

impl Finding {
    /// A finding of the check's own rule, with its level; `line` counts from 0.
    fn new(line: usize, message: impl Into<String>) -> Self {
        Self {
            line,
            message: message.into(),
            rule: None,
            severity: None,
            correction: None,
        }
    }

    /// A finding whose correction edits an instruction. The first edit is its position if no line
    /// can be given.
    fn edited(
        file: &Dockerfile<'_>,
        instruction: &Instruction,
        message: impl Into<String>,
        edits: &[Edit],
    ) -> Self {
        let correction = file.apply_edits(instruction, edits);
        let line = match (&correction, edits) {
            (Some(correction), _) => correction.first_line - 1,
            (None, [first, ..]) => instruction.line_of(first.range.start),
            (None, []) => instruction.lines().0,
        };
        Self::new(line, message).corrected(correction)
    }

    /// The finding with its correction, if there is one.
    fn corrected(self, correction: Option<Correction>) -> Self {
        Self { correction, ..self }
    }

    /// The finding as one of another rule.
    fn of(self, rule: &'static str) -> Self {
        let rule = Some(rule);
        Self { rule, ..self }
    }

    /// The finding with a severity other than the rule's level.
    fn severity(self, severity: Severity) -> Self {
        let severity = Some(severity);
        Self { severity, ..self }
    }

    fn warning(self) -> Self {
        self.severity(Severity::Warning)
    }
}

/// Findings so far.
#[derive(Default)]
struct Findings {
    found: Vec<LintFinding>,
    /// Bytes of the corrections.
    corrected: usize,
}

/// Largest sum of corrections in bytes: each repeats its lines, and a line may have many.
const MOST_CORRECTED: usize = 1 << 20;

impl Findings {
    /// Adds what the check of a rule found.
    fn extend(&mut self, rule: &'static Rule, found: impl IntoIterator<Item = Finding>) {
        found.into_iter().for_each(|it| self.add(rule, it));
    }

    fn add(&mut self, rule: &'static Rule, finding: Finding) {
        let rule = finding.rule.map_or(rule, rule::named);
        let line = finding.line + 1;
        let last_line = finding.correction.as_ref().map(|it| it.last_line);
        let correction = finding.correction.filter(|it| {
            self.corrected += it.text.len();
            self.corrected <= MOST_CORRECTED
        });
        self.found.push(LintFinding {
            line,
            last_line: last_line.unwrap_or(line),
            rule,
            severity: finding.severity.unwrap_or(rule.level),
            message: finding.message,
            fix_line: correction.as_ref().map_or(line, |it| it.first_line),
            fix: correction.map(|it| it.text),
        });
    }

    fn sorted(mut self) -> Vec<LintFinding> {
        let order = |finding: &LintFinding| rule::position(finding.rule);
        self.found
            .sort_by_key(|finding| (finding.line, order(finding)));
        self.found.dedup();
        self.found
    }
}
