//! Stages of a build, with their bases and the shell of each instruction.

use std::collections::HashMap;

use wincimg_windows::quoting::Escape;

use super::LintOptions;
use super::reference::{Platform, Reference};
use super::shell::BaseShell;
use crate::expand::Lexer;
use crate::source::{Dockerfile, Instruction};

#[derive(Debug)]
pub(super) enum StageBaseRef {
    Scratch,
    /// Another stage, by index.
    Stage(usize),
    Image(Reference),
    /// A name with a build argument without a default.
    Unknown,
}

/// One `FROM` with its instructions.
#[derive(Debug)]
pub(super) struct Stage<'a> {
    pub(super) from: &'a Instruction,
    pub(super) base: StageBaseRef,
    /// Base image as in `FROM`, with arguments expanded.
    pub(super) image: String,
    pub(super) platform: Platform,
    pub(super) steps: Vec<LintStep<'a>>,
    shell: BaseShell,
}

/// An instruction and its shell.
#[derive(Debug, Clone, Copy)]
pub(super) struct LintStep<'a> {
    pub(super) instruction: &'a Instruction,
    pub(super) shell: BaseShell,
}

/// State while the stages are read.
struct StageReader<'a> {
    arguments: HashMap<String, String>,
    stages: Vec<Stage<'a>>,
    names: HashMap<String, usize>,
    escape: Escape,
}

pub(super) fn stages<'a>(file: &'a Dockerfile<'_>, options: &LintOptions) -> Vec<Stage<'a>> {
    let mut reader = StageReader {
        arguments: HashMap::new(),
        stages: Vec::new(),
        names: HashMap::new(),
        escape: file.escape,
    };
    for instruction in &file.instructions {
        match (instruction.keyword.as_str(), reader.stages.last_mut()) {
            ("FROM", _) => reader.start_stage(instruction, options),
            ("ARG", None) => reader.arguments.extend(defaults(instruction.text())),
            // Only ARG may precede the first FROM; a fragment of a file is linted anyway.
            (_, None) => {
                reader.start_stage(instruction, options);
                if let Some(stage) = reader.stages.last_mut() {
                    stage.base = StageBaseRef::Unknown;
                    stage.platform = by_escape(file.escape);
                    stage.shell = options.shell_of("").unwrap_or(BaseShell::Unknown);
                    stage.push(instruction);
                }
            }
            (_, Some(stage)) => stage.push(instruction),
        }
    }
    for index in 0..reader.stages.len() {
        if let StageBaseRef::Stage(base) = reader.stages[index].base {
            reader.stages[index].platform = reader.stages[base].platform;
        }
        let stage = &mut reader.stages[index];
        if stage.platform == Platform::Unknown {
            stage.platform = stage.platform_of_steps();
        }
    }
    reader.stages
}

const OF_LINUX: [&str; 14] = [
    "apt-get",
    "apt install",
    "apt update",
    "apk add",
    "apk --",
    "yum ",
    "dnf ",
    "/bin/",
    "chmod ",
    "chown ",
    "mkdir -p",
    "rm -rf",
    "set -e",
    "useradd",
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
    fn push(&mut self, instruction: &'a Instruction) {
        if instruction.keyword == "SHELL"
            && let Some(words) = instruction.exec_form()
        {
            self.shell = BaseShell::of_config(&words);
            if self.platform == Platform::Unknown {
                self.platform = platform_of_shell(&words, self.shell);
            }
            // `pwsh` reads scripts alike on both, but not quotes on its command line.
            if self.platform == Platform::Unknown && self.shell == BaseShell::PowerShell {
                self.shell = BaseShell::Unknown;
            }
        }
        self.steps.push(LintStep {
            instruction,
            shell: self.shell,
        });
    }

    /// Platform of a stage by its commands.
    fn platform_of_steps(&self) -> Platform {
        let is_linux = self.steps.iter().any(|step| {
            let text = step.instruction.text();
            OF_LINUX.iter().any(|word| text.contains(word))
        });
        if is_linux {
            Platform::Linux
        } else {
            Platform::Unknown
        }
    }
}

impl<'a> StageReader<'a> {
    fn start_stage(&mut self, from: &'a Instruction, options: &LintOptions) {
        let mut words = from.text().split_whitespace();
        let image = words
            .next()
            .and_then(|word| expand(word, &self.arguments, self.escape))
            .filter(|image| image.chars().all(is_of_reference));
        let name = match (words.next(), words.next()) {
            (Some(word), Some(name)) if word.eq_ignore_ascii_case("as") => {
                Some(name.to_ascii_lowercase())
            }
            _ => None,
        };
        let base = match &image {
            None => StageBaseRef::Unknown,
            Some(image) if image == "scratch" => StageBaseRef::Scratch,
            Some(image) => match self.names.get(&image.to_ascii_lowercase()) {
                Some(index) => StageBaseRef::Stage(*index),
                None => StageBaseRef::Image(Reference::parse(image)),
            },
        };
        let image = image.unwrap_or_default();
        let facts = options.facts(&image);
        let asked = from.flag("platform").unwrap_or_default();
        let platform = match &base {
            StageBaseRef::Image(_) if facts.is_some_and(|facts| !facts.is_windows) => {
                Platform::Linux
            }
            _ if asked.starts_with("linux") => Platform::Linux,
            _ if asked.starts_with("windows") => Platform::Windows,
            StageBaseRef::Image(reference) => reference.platform(),
            StageBaseRef::Stage(index) => self.stages[*index].platform,
            StageBaseRef::Scratch | StageBaseRef::Unknown => Platform::Unknown,
        };
        let platform = match platform {
            Platform::Unknown => by_escape(self.escape),
            known => known,
        };
        let shell = match &base {
            StageBaseRef::Stage(index) => self.stages[*index].shell,
            StageBaseRef::Scratch => BaseShell::Cmd,
            StageBaseRef::Image(reference) => options
                .shell_of(&image)
                .unwrap_or_else(|| reference.shell(options.host.map(|host| host.version.build))),
            StageBaseRef::Unknown => options.shell_of("").unwrap_or(BaseShell::Unknown),
        };
        if let Some(name) = name {
            self.names.insert(name, self.stages.len());
        }
        self.stages.push(Stage {
            from,
            base,
            image,
            platform,
            steps: Vec::new(),
            shell,
        });
    }
}

/// Returns true if a character is valid in an image's name; others are placeholders of a template.
fn is_of_reference(c: char) -> bool {
    c.is_alphanumeric() || "./:@_-[]".contains(c)
}

/// Names and values of `ARG a=b c` that have a value.
fn defaults(text: &str) -> Vec<(String, String)> {
    text.split_whitespace()
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| {
            let value = value.trim_matches(['"', '\'']);
            (name.to_owned(), value.to_owned())
        })
        .collect()
}

/// Expands variables; `None` if one is unknown.
fn expand(word: &str, arguments: &HashMap<String, String>, escape: Escape) -> Option<String> {
    let value = |name: &str| arguments.get(name).cloned();
    let expanded = Lexer::new(escape).expand(word, &value).ok()?;
    (expanded.unset.is_empty() && !expanded.text.is_empty()).then_some(expanded.text)
}
