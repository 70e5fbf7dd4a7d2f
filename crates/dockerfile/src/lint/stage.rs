//! Stages of a build, with their bases and the shell of each instruction.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use wincimg_windows::quoting::Escape;

use super::reference::{Platform, Reference};
use super::shell::BaseShell;
use super::statements::PowerShellStatement;
use super::user::RunNames;
use super::variables::SetVariables;
use super::volume::RunFiles;
use super::words::{Grammar, LintCommand, LintScript, StepScripts, program_name};
use super::{Edit, Finding, LintOptions, TextExt, line_effects, missing_folder, usage};
use crate::instruction::{InstructionKind, ParsedInstruction};
use crate::source::{Dockerfile, Instruction};
use crate::stages::{BuildArguments, StageState};

#[derive(Debug)]
pub(super) enum StageBaseRef {
    Scratch,
    /// Another stage, by index.
    Stage(usize),
    Image(Reference),
    /// The parts of an image's name that are certain: its tag has a build argument without a
    /// default, and its version is unknown.
    Repository(Reference),
    /// A name with a build argument without a default.
    Unknown,
}

/// One `FROM` with its instructions.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    pub(super) from: &'a Instruction,
    /// Name, in lower case.
    pub(super) name: Option<String>,
    pub(super) base: StageBaseRef,
    /// Base image as in `FROM`, with arguments expanded; its repository if its tag is unknown.
    pub(super) image: String,
    pub(super) platform: Platform,
    pub(super) steps: Vec<LintStep<'a>>,
    pub(super) index: StageIndex<'a>,
    /// True if another stage is built on it.
    pub(super) is_base: bool,
    /// True if the base's configuration sets no variables and no working directory.
    pub(super) knows_environment: bool,
    shell: BaseShell,
    is_core: bool,
}

/// What the rules ask of a stage again and again, most of it read when the first one asks.
#[derive(Debug, Default)]
pub(super) struct StageIndex<'a> {
    keywords: HashSet<&'a str>,
    /// Positions of its `SHELL` instructions.
    shells: Vec<usize>,
    /// Position of the first step with a text in lower case, by the text.
    mentions: RefCell<HashMap<String, Option<usize>>>,
    /// The first `RUN` that begins with a variable of PowerShell, by its name in lower case.
    assignments: HashMap<String, usize>,
    run_names: OnceCell<RunNames>,
    set_variables: OnceCell<SetVariables>,
    service_signs: OnceCell<[Option<usize>; 2]>,
    run_files: OnceCell<RunFiles>,
    folder_signs: OnceCell<[Option<usize>; 2]>,
    folders: OnceCell<HashMap<String, usize>>,
    /// True if the base has PowerShell 7, or a line names it.
    pub(super) has_pwsh: OnceCell<bool>,
    /// Lines from the installer of Chocolatey 2 on, until one may bring another version.
    pub(super) chocolatey: OnceCell<Range<usize>>,
}

/// An instruction and its shell.
#[derive(Debug)]
pub(super) struct LintStep<'a> {
    pub(super) file: &'a Dockerfile<'a>,
    pub(super) instruction: &'a Instruction,
    pub(super) shell: BaseShell,
    /// True if the shell is `pwsh` and not Windows PowerShell.
    pub(super) is_core: bool,
    /// True for a `CMD` whose words are arguments of an `ENTRYPOINT`.
    pub(super) is_argument: bool,
    scripts: OnceCell<StepScripts>,
    lower: OnceCell<String>,
}

impl LintStep<'_> {
    fn scripts_read(&self) -> &StepScripts {
        self.scripts.get_or_init(|| StepScripts::read(self))
    }

    /// All commands of a `RUN`, `CMD`, `ENTRYPOINT` or `HEALTHCHECK`, also in nested scripts; none in
    /// arguments of an `ENTRYPOINT`.
    pub(super) fn commands(&self) -> &[LintCommand] {
        &self.scripts_read().commands
    }

    /// Those that cmd reads.
    pub(super) fn of_cmd(&self) -> impl Iterator<Item = &LintCommand> {
        let commands = self.commands().iter();
        commands.filter(|it| it.grammar == Grammar::Cmd)
    }

    /// Those that PowerShell reads.
    pub(super) fn of_powershell(&self) -> impl Iterator<Item = &LintCommand> {
        let commands = self.commands().iter();
        commands.filter(|it| it.grammar.is_powershell())
    }

    /// The first of them that a test accepts.
    pub(super) fn find(&self, is_meant: impl Fn(&LintCommand) -> bool) -> Option<&LintCommand> {
        self.commands().iter().find(|it| is_meant(it))
    }

    /// What is first found in one of them.
    pub(super) fn find_map<'s, T>(
        &'s self,
        read: impl FnMut(&'s LintCommand) -> Option<T>,
    ) -> Option<T> {
        self.commands().iter().find_map(read)
    }

    /// A part of the joined text.
    pub(super) fn part(&self, range: &Range<usize>) -> &str {
        self.instruction.part(range.clone())
    }

    /// Its scripts, outer before inner.
    pub(super) fn scripts(&self) -> &[LintScript] {
        &self.scripts_read().scripts
    }

    /// Those of Windows PowerShell.
    pub(super) fn windows_powershell_scripts(
        &self,
    ) -> impl DoubleEndedIterator<Item = &LintScript> {
        let scripts = self.scripts().iter();
        scripts.filter(|script| script.grammar == Grammar::PowerShell)
    }

    /// Its scripts of PowerShell.
    pub(super) fn powershell_scripts(&self) -> impl Iterator<Item = &LintScript> {
        let scripts = self.scripts().iter();
        scripts.filter(|script| script.grammar.is_powershell())
    }

    /// Statements of those.
    pub(super) fn statements(&self) -> impl Iterator<Item = &PowerShellStatement> {
        self.powershell_scripts()
            .flat_map(|script| &script.statements)
    }

    /// True for a position in what PowerShell reads before another shell does.
    pub(super) fn is_in_powershell(&self, at: usize) -> bool {
        self.scripts_read().is_in_powershell(at)
    }

    pub(super) fn is(&self, keyword: &str) -> bool {
        self.instruction.keyword == keyword
    }

    /// True for an `ARG` or `ENV` of a variable, also if Docker refuses it.
    pub(super) fn declares(&self, name: &str) -> bool {
        let begins = |word: &str| {
            let rest = word.strip_prefix(name);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        };
        let mut words = self.instruction.text().split_whitespace();
        let is_own = || self.instruction.trigger().is_none();
        (self.is("ARG") || self.is("ENV")) && is_own() && words.any(begins)
    }

    /// Joined text of the instruction in lower case, made once: most rules look for words of it.
    pub(super) fn lower_full_text(&self) -> &str {
        self.lower
            .get_or_init(|| self.instruction.full_text().to_ascii_lowercase())
    }

    /// Text after the keyword and its flags, in lower case.
    pub(super) fn lower_text(&self) -> &str {
        self.lower_full_text()[self.instruction.start()..].trim_end()
    }

    /// Command line of the shell; `None` if it is unknown.
    pub(super) fn shell_words(&self, state: &StageState) -> Option<Vec<String>> {
        if let Some(words) = state.config.shell.clone() {
            return Some(words);
        }
        let words: &[&str] = match self.shell {
            BaseShell::Cmd => &["cmd", "/S", "/C"],
            BaseShell::PowerShell if !self.is_core => &["powershell", "-Command"],
            _ => return None,
        };
        Some(words.iter().map(|word| (*word).to_owned()).collect())
    }

    /// Its first line, from 0.
    pub(super) fn line(&self) -> usize {
        self.instruction.lines().0
    }

    /// Line of one of its commands.
    pub(super) fn line_of(&self, command: &LintCommand) -> usize {
        self.line_at(command.start())
    }

    /// True for a command that a parenthesis of PowerShell cuts: its options may be behind that.
    pub(super) fn is_cut(&self, command: &LintCommand) -> bool {
        let end = command.words.last().map_or(0, |word| word.range.end);
        let rest = self.instruction.full_text()[end..].trim_start();
        rest.starts_with(['(', '{'])
    }

    /// Line of a position in the joined text, or the first.
    pub(super) fn line_at(&self, position: usize) -> usize {
        self.instruction.line_of(position)
    }

    /// A finding about the instruction.
    pub(super) fn finding(&self, message: impl Into<String>) -> Finding {
        Finding::new(self.line(), message)
    }

    /// A finding about a position in the joined text.
    pub(super) fn finding_at(&self, position: usize, message: impl Into<String>) -> Finding {
        Finding::new(self.line_at(position), message)
    }

    /// A finding whose correction edits the instruction.
    pub(super) fn edited(&self, message: impl Into<String>, edits: &[Edit]) -> Finding {
        Finding::edited(self.file, self.instruction, message, edits)
    }
}

/// State while the stages are read.
struct StageReader<'a> {
    arguments: BuildArguments,
    stages: Vec<Stage<'a>>,
    names: HashMap<String, usize>,
    escape: Escape,
}

/// Stages, and the build arguments before the first.
pub(super) fn stages<'a>(
    file: &'a Dockerfile<'_>,
    options: &LintOptions,
) -> (Vec<Stage<'a>>, BuildArguments) {
    let mut reader = StageReader {
        arguments: BuildArguments::default(),
        stages: Vec::new(),
        names: HashMap::new(),
        escape: file.escape,
    };
    for instruction in &file.instructions {
        match (instruction.keyword.as_str(), reader.stages.last_mut()) {
            ("FROM", _) => reader.start_stage(instruction, options),
            ("ARG", None) => reader.declare(instruction),
            // Only ARG may precede the first FROM; a fragment of a file is linted anyway.
            (_, None) => {
                reader.start_stage(instruction, options);
                if let Some(stage) = reader.stages.last_mut() {
                    stage.base = StageBaseRef::Unknown;
                    stage.platform = by_escape(file.escape);
                    stage.shell = options.shell_of("").unwrap_or(BaseShell::Unknown);
                    stage.push(file, instruction);
                }
            }
            (_, Some(stage)) => stage.push(file, instruction),
        }
    }
    let mut has_entrypoint = Vec::with_capacity(reader.stages.len());
    for index in 0..reader.stages.len() {
        let inherits = match &reader.stages[index].base {
            StageBaseRef::Stage(base) => has_entrypoint[*base],
            StageBaseRef::Image(image) | StageBaseRef::Repository(image) => image.has_iis(),
            StageBaseRef::Scratch | StageBaseRef::Unknown => false,
        };
        if let StageBaseRef::Stage(base) = reader.stages[index].base {
            reader.stages[index].platform = reader.stages[base].platform;
        }
        let stage = &mut reader.stages[index];
        has_entrypoint.push(stage.find_arguments(inherits));
        if stage.platform == Platform::Unknown {
            stage.platform = stage.platform_of_steps();
        }
    }
    (reader.stages, reader.arguments)
}

const LINUX_COMMANDS: [&str; 14] = [
    "apt-get", "apt install", "apt update", "apk add", "apk --", "yum ", "dnf ", "/bin/", "chmod ",
    "chown ", "mkdir -p", "rm -rf", "set -e", "useradd",
];

/// Platform by escape character, if the base does not tell: Linux files do not change it.
fn by_escape(escape: Escape) -> Platform {
    match escape {
        Escape::Backtick => Platform::Windows,
        Escape::Backslash => Platform::Unknown,
    }
}

/// Platform of a shell, as far as its name tells: `pwsh` runs on both.
fn platform_of_shell(words: &[String], shell: BaseShell) -> Platform {
    let Some(path) = words.first() else {
        return Platform::Unknown;
    };
    if path.starts_with('/') {
        return Platform::Linux;
    }
    let is_known = matches!(shell, BaseShell::Cmd | BaseShell::PowerShell);
    if is_known && !path.eq_ignore_ascii_case("pwsh") {
        Platform::Windows
    } else {
        Platform::Unknown
    }
}

impl<'a> Stage<'a> {
    fn push(&mut self, file: &'a Dockerfile<'_>, instruction: &'a Instruction) {
        if instruction.keyword == "SHELL"
            && let Some(words) = shell_words(instruction)
        {
            self.shell = BaseShell::of_config(&words);
            self.is_core = is_core(&words);
            if self.platform == Platform::Unknown {
                self.platform = platform_of_shell(&words, self.shell);
            }
            // `pwsh` reads scripts alike on both, but not quotes on its command line.
            if self.platform == Platform::Unknown && self.shell == BaseShell::PowerShell {
                self.shell = BaseShell::Unknown;
            }
        }
        let is_script = instruction.keyword == "RUN" && self.shell == BaseShell::PowerShell;
        if is_script && let Some(name) = assigned_variable(instruction) {
            let first = self.index.assignments.entry(name.to_ascii_lowercase());
            first.or_insert(self.steps.len());
        }
        if instruction.keyword == "SHELL" {
            self.index.shells.push(self.steps.len());
        }
        self.index.keywords.insert(&instruction.keyword);
        self.steps.push(LintStep {
            file,
            instruction,
            shell: self.shell,
            is_core: self.is_core,
            is_argument: false,
            scripts: OnceCell::new(),
            lower: OnceCell::new(),
        });
    }

    /// Finds the arguments of its `ENTRYPOINT` and returns true if it has one; `inherits` is true if its
    /// base has.
    fn find_arguments(&mut self, inherits: bool) -> bool {
        let own = self.all("ENTRYPOINT").next_back();
        let has_entrypoint = own.map_or(inherits, |step| {
            let words = step.instruction.exec_form();
            words.is_none_or(|words| !words.is_empty())
        });
        for step in self.steps.iter_mut().filter(|step| step.is("CMD")) {
            step.is_argument = has_entrypoint;
        }
        has_entrypoint
    }

    /// The image that it begins with.
    pub(super) fn reference(&self) -> Option<&Reference> {
        match &self.base {
            StageBaseRef::Image(reference) => Some(reference),
            _ => None,
        }
    }

    /// True if that is one of Microsoft's.
    pub(super) fn is_of_microsoft(&self) -> bool {
        self.reference().is_some_and(Reference::is_of_microsoft)
    }

    /// The repository that it begins with, also if its tag is unknown.
    pub(super) fn repository(&self) -> Option<&Reference> {
        match &self.base {
            StageBaseRef::Image(reference) | StageBaseRef::Repository(reference) => Some(reference),
            _ => None,
        }
    }

    pub(super) fn is_linux(&self) -> bool {
        self.platform == Platform::Linux
    }

    /// Its instructions with a keyword.
    pub(super) fn all(&self, keyword: &str) -> impl DoubleEndedIterator<Item = &LintStep<'a>> {
        self.steps.iter().filter(move |step| step.is(keyword))
    }

    /// Returns true if it has an instruction with a keyword.
    pub(super) fn has(&self, keyword: &str) -> bool {
        self.index.keywords.contains(keyword)
    }

    /// The steps above one of its steps.
    pub(super) fn before(&self, step: &LintStep<'_>) -> &[LintStep<'a>] {
        &self.steps[..self.position(step)]
    }

    /// Position of the first `RUN` that begins with a variable of PowerShell.
    pub(super) fn assignment(&self, name: &str) -> Option<usize> {
        self.index
            .assignments
            .get(&name.to_ascii_lowercase())
            .copied()
    }

    /// The names in its `RUN` lines.
    pub(super) fn run_names(&self) -> &RunNames {
        let read = || RunNames::read(&self.steps);
        self.index.run_names.get_or_init(read)
    }

    /// The variables of its containers that its lines set.
    pub(super) fn set_variables(&self) -> &SetVariables {
        let read = || SetVariables::read(&self.steps);
        self.index.set_variables.get_or_init(read)
    }

    /// True if one of its first lines makes a service start with Windows, and if one may install one.
    pub(super) fn service_signs(&self, lines: usize) -> [bool; 2] {
        let read = || line_effects::service_signs(&self.steps);
        let signs = *self.index.service_signs.get_or_init(read);
        signs.map(|first| first.is_some_and(|first| first < lines))
    }

    /// True if one of its first lines may bring any folder to the root, and if one may make folders that it
    /// does not name.
    pub(super) fn folder_signs(&self, lines: usize) -> [bool; 2] {
        let read = || missing_folder::folder_signs(&self.steps);
        let signs = *self.index.folder_signs.get_or_init(read);
        signs.map(|first| first.is_some_and(|first| first < lines))
    }

    /// Folders that its `WORKDIR` and copies make, each with its first line.
    pub(super) fn folders(&self) -> &HashMap<String, usize> {
        let read = || usage::folders(&self.steps);
        self.index.folders.get_or_init(read)
    }

    /// What its `RUN` lines do to files.
    pub(super) fn run_files(&self) -> &RunFiles {
        let read = || RunFiles::read(&self.steps);
        self.index.run_files.get_or_init(read)
    }

    /// The steps up to one of its steps, and that one.
    pub(super) fn until(&self, step: &LintStep<'_>) -> &[LintStep<'a>] {
        &self.steps[..=self.position(step)]
    }

    /// Returns true if a step above one of its steps contains one of these texts in lower case. Each is
    /// searched for once, as every line may ask.
    pub(super) fn mentions_above(&self, step: &LintStep<'_>, parts: &[&str]) -> bool {
        let place = self.position(step);
        let mut mentions = self.index.mentions.borrow_mut();
        parts.iter().any(|part| {
            let mut steps = self.steps.iter();
            let search = || steps.position(|it| it.lower_full_text().contains(*part));
            let first = mentions.entry((*part).to_owned()).or_insert_with(search);
            first.is_some_and(|first| first < place)
        })
    }

    /// Its last `SHELL` above one of its steps.
    pub(super) fn shell_of(&self, step: &LintStep<'_>) -> Option<&LintStep<'a>> {
        let place = self.position(step);
        let above = self.index.shells.partition_point(|shell| *shell < place);
        self.index.shells[..above]
            .last()
            .map(|shell| &self.steps[*shell])
    }

    /// The steps below one of its steps.
    pub(super) fn after(&self, step: &LintStep<'_>) -> &[LintStep<'a>] {
        &self.steps[self.position(step) + 1..]
    }

    fn position(&self, step: &LintStep<'_>) -> usize {
        self.steps.partition_point(|it| it.line() < step.line())
    }

    /// Platform of a stage by its commands.
    fn platform_of_steps(&self) -> Platform {
        let mut texts = self.steps.iter().map(|step| step.instruction.text());
        if texts.any(|text| text.contains_any(&LINUX_COMMANDS)) {
            Platform::Linux
        } else {
            Platform::Unknown
        }
    }
}

/// Name of the variable that a script of PowerShell begins to set.
pub(super) fn assigned_variable(instruction: &Instruction) -> Option<&str> {
    let (name, _) = instruction.text().strip_prefix('$')?.split_once('=')?;
    let name = name.trim_end();
    (!name.is_empty() && name.has_only("_")).then_some(name)
}

/// Words of `SHELL`; those of cmd and PowerShell also if Docker refuses how they are written.
fn shell_words(instruction: &Instruction) -> Option<Vec<String>> {
    instruction.exec_form().or_else(|| {
        let text = instruction.text().to_ascii_lowercase();
        let words = text.split(|c: char| c.is_whitespace() || "[]\"',".contains(c));
        let words = words.filter(|word| !word.is_empty()).map(str::to_owned);
        let words: Vec<String> = words.collect();
        let program = program_name(words.first()?);
        matches!(program.as_str(), "cmd" | "powershell" | "pwsh").then_some(words)
    })
}

impl<'a> StageReader<'a> {
    fn start_stage(&mut self, from: &'a Instruction, options: &LintOptions) {
        let parsed = ParsedInstruction::read(from, self.escape);
        let parsed = parsed.ok().and_then(|parsed| match parsed.kind {
            InstructionKind::From(from) => Some(from),
            _ => None,
        });
        let word = match &parsed {
            Some(parsed) => Some(parsed.image.as_str()),
            // What follows the image may be wrong.
            None => from.text().split_whitespace().next(),
        };
        let (base, image) = self.base(word.unwrap_or_default());
        let name = parsed.and_then(|parsed| parsed.name);
        let is_other = options.facts(&image).is_some_and(|it| !it.is_windows);
        let platform = self.platform(from, &base, is_other);
        let (shell, is_core, knows_environment) = match &base {
            StageBaseRef::Stage(index) => {
                let base = &mut self.stages[*index];
                base.is_base = true;
                (base.shell, base.is_core, base.knows_environment)
            }
            StageBaseRef::Scratch => (BaseShell::Cmd, false, false),
            StageBaseRef::Image(reference) | StageBaseRef::Repository(reference) => {
                let build = options.host.map(|host| host.version.build);
                let known = options.shell_of(&image);
                let shell = known.unwrap_or_else(|| reference.shell(build));
                (shell, false, reference.is_plain())
            }
            StageBaseRef::Unknown => {
                let shell = options.shell_of("").unwrap_or(BaseShell::Unknown);
                (shell, false, false)
            }
        };
        let place = self.stages.len();
        self.names.extend(name.clone().map(|name| (name, place)));
        self.stages.push(Stage {
            from,
            name,
            base,
            image,
            platform,
            steps: Vec::new(),
            index: StageIndex::default(),
            is_base: false,
            knows_environment,
            shell,
            is_core,
        });
    }

    /// The base that `FROM` names, and the name of its image.
    fn base(&self, written: &str) -> (StageBaseRef, String) {
        let image = self.expand(written);
        let Some(image) = image.filter(|image| image.chars().all(is_of_reference)) else {
            let Some(reference) = certain_parts(written) else {
                return (StageBaseRef::Unknown, String::new());
            };
            let repository = reference.repository.clone();
            return (StageBaseRef::Repository(reference), repository);
        };
        let base = match self.names.get(&image.to_ascii_lowercase()) {
            _ if image == "scratch" => StageBaseRef::Scratch,
            Some(index) => StageBaseRef::Stage(*index),
            None => StageBaseRef::Image(Reference::parse(&image)),
        };
        (base, image)
    }

    /// `is_other` is true for a base image that is known not to be for Windows.
    fn platform(&self, from: &Instruction, base: &StageBaseRef, is_other: bool) -> Platform {
        let asked = from.flag("platform").unwrap_or_default();
        let platform = match base {
            StageBaseRef::Image(_) | StageBaseRef::Repository(_) if is_other => Platform::Linux,
            _ if asked.starts_with("linux") => Platform::Linux,
            _ if asked.starts_with("windows") => Platform::Windows,
            StageBaseRef::Image(reference) | StageBaseRef::Repository(reference) => {
                reference.platform()
            }
            StageBaseRef::Stage(index) => self.stages[*index].platform,
            StageBaseRef::Scratch | StageBaseRef::Unknown => Platform::Unknown,
        };
        match platform {
            Platform::Unknown => by_escape(self.escape),
            known => known,
        }
    }

    fn declare(&mut self, instruction: &Instruction) {
        let Ok(parsed) = ParsedInstruction::read(instruction, self.escape) else {
            return;
        };
        let InstructionKind::Arg(list) = parsed.kind else {
            return;
        };
        for (name, default) in list {
            let declared = self
                .arguments
                .declare(&name, default.as_deref(), self.escape);
            if declared.is_err() {
                // Its value is unknown.
                let _ = self.arguments.declare(&name, None, self.escape);
            }
        }
    }

    /// Expands variables; `None` if one is unknown.
    fn expand(&self, word: &str) -> Option<String> {
        let expanded = self.arguments.expand(word, self.escape).ok()?;
        (expanded.unset.is_empty() && !expanded.text.is_empty()).then_some(expanded.text)
    }
}

/// The repository and the words of the tag that have no variable, of a name with a variable in its tag
/// or digest only.
fn certain_parts(written: &str) -> Option<Reference> {
    let literal = &written[..written.find('$')?];
    let path = literal.rfind('/').map_or(0, |slash| slash + 1);
    let end = path + literal[path..].find([':', '@'])?;
    let (repository, version) = written.split_at(end);
    if version.contains('/') || !repository.chars().all(is_of_reference) {
        return None;
    }
    let is_word = |word: &&str| !word.is_empty() && word.has_only("._");
    let tag = version[1..].split('@').next().unwrap_or_default();
    let words: Vec<&str> = tag.split('-').filter(is_word).collect();
    Some(Reference {
        tag: (!words.is_empty()).then(|| words.join("-")),
        ..Reference::parse(repository)
    })
}

/// Returns true for `pwsh`, which differs from Windows PowerShell.
fn is_core(words: &[String]) -> bool {
    words
        .first()
        .is_some_and(|path| program_name(path) == "pwsh")
}

/// Returns true if a character is valid in an image's name; others are placeholders of a template.
fn is_of_reference(c: char) -> bool {
    c.is_alphanumeric() || "./:@_-[]".contains(c)
}
