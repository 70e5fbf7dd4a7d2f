//! Linter for errors in Dockerfiles that occur only on Windows, with corrections.
//!
//! [`lint`] is pure: it takes a text and what is known of base images and host, and returns
//! findings. A correction replaces whole lines, has no findings itself and, for the quote rules,
//! passes the intended arguments to the program (both are tested).

mod alternative;
mod args_escaped;
mod base;
mod correction;
mod entrypoint;
mod environment;
mod iis;
mod line_end;
mod nano;
mod quotes;
mod reference;
mod registry;
mod shell;
mod stage;
mod words;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

pub use alternative::{RecipeAlternative, recipe_alternatives};
use correction::{Correction, Edit};
use reference::Platform;
pub use shell::BaseShell;
use wincimg_windows::compat::HostBuild;
use wincimg_windows::version::WindowsVersion;

use crate::source::{Dockerfile, Instruction};

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
    let mut images: Vec<String> = stage::stages(&file, &LintOptions::default())
        .into_iter()
        .filter(|stage| matches!(stage.base, stage::StageBaseRef::Image(_)))
        .map(|stage| stage.image)
        .collect();
    images.sort_unstable();
    images.dedup();
    images
}

/// A rule; the names are part of the command line's contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LintRule {
    /// PowerShell drops plain double quotes from its command line.
    QuotesUnderPowershell,
    /// In cmd a backslash does not escape a quote.
    BackslashQuotesUnderCmd,
    /// A backslash at a line's end joins the next line.
    TrailingBackslash,
    /// IIS requires the dot of a file extension.
    FileExtensionDot,
    /// A shutdown time in the wrong registry type has no effect.
    ShutdownValueType,
    /// One shutdown time is in seconds, the other in milliseconds.
    ShutdownValueUnit,
    /// The two shutdown times work only together.
    ShutdownPair,
    /// Without `/f` `reg` prompts before it overwrites or deletes.
    RegAddForce,
    /// The tag of the base image is floating.
    FloatingBase,
    /// The base image does not run on the host.
    BaseHostMismatch,
    /// A shell starts the program.
    ShellFormEntrypoint,
    /// A nested shell drops quotes, or gets quotes that were intended otherwise.
    QuotesInNestedShell,
    /// `%PATH%` is not expanded outside cmd.
    PathNotExpanded,
    /// The base image is no longer published or supported.
    DeadBase,
    /// Nano Server does not have the program, or its user may not run it.
    NanoServerLacks,
    /// `BuildKit` sets `ArgsEscaped` for a command line that is not escaped.
    ArgsEscaped,
}

impl LintRule {
    /// All rules, in the order of the documentation.
    pub const ALL: [Self; 16] = [
        Self::QuotesUnderPowershell,
        Self::BackslashQuotesUnderCmd,
        Self::TrailingBackslash,
        Self::FileExtensionDot,
        Self::ShutdownValueType,
        Self::ShutdownValueUnit,
        Self::ShutdownPair,
        Self::RegAddForce,
        Self::FloatingBase,
        Self::BaseHostMismatch,
        Self::ShellFormEntrypoint,
        Self::QuotesInNestedShell,
        Self::PathNotExpanded,
        Self::DeadBase,
        Self::NanoServerLacks,
        Self::ArgsEscaped,
    ];

    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::QuotesUnderPowershell => "quotes-under-powershell",
            Self::BackslashQuotesUnderCmd => "backslash-quotes-under-cmd",
            Self::TrailingBackslash => "trailing-backslash",
            Self::FileExtensionDot => "file-extension-dot",
            Self::ShutdownValueType => "shutdown-value-type",
            Self::ShutdownValueUnit => "shutdown-value-unit",
            Self::ShutdownPair => "shutdown-pair",
            Self::RegAddForce => "reg-add-force",
            Self::FloatingBase => "floating-base",
            Self::BaseHostMismatch => "base-host-mismatch",
            Self::ShellFormEntrypoint => "shell-form-entrypoint",
            Self::QuotesInNestedShell => "quotes-in-nested-shell",
            Self::PathNotExpanded => "path-not-expanded",
            Self::DeadBase => "dead-base",
            Self::NanoServerLacks => "nano-server-lacks",
            Self::ArgsEscaped => "args-escaped",
        }
    }

    /// Summary in one sentence.
    pub fn summary(self) -> &'static str {
        match self {
            Self::QuotesUnderPowershell => {
                "PowerShell drops plain double quotes from its command line before it reads the script"
            }
            Self::BackslashQuotesUnderCmd => {
                "In cmd a backslash does not escape a quote, and the program gets an extra quote"
            }
            Self::TrailingBackslash => "A backslash at the end of a line joins the next line",
            Self::FileExtensionDot => "IIS requires the dot of a file extension",
            Self::ShutdownValueType => {
                "WaitToKillServiceTimeout is a REG_SZ, ProcessShutdownTimeoutSeconds a REG_DWORD"
            }
            Self::ShutdownValueUnit => {
                "WaitToKillServiceTimeout is in milliseconds, ProcessShutdownTimeoutSeconds in seconds"
            }
            Self::ShutdownPair => "The two shutdown times work only together and for the same time",
            Self::RegAddForce => {
                "Without /f reg prompts for confirmation, which a build cannot give"
            }
            Self::FloatingBase => "A floating tag can become another base image at any time",
            Self::BaseHostMismatch => "The base image does not run on the host",
            Self::ShellFormEntrypoint => {
                "In shell form a shell starts the program, which may not get the shutdown event"
            }
            Self::QuotesInNestedShell => {
                "powershell.exe drops plain double quotes from its command line, and HEALTHCHECK CMD escapes them"
            }
            Self::PathNotExpanded => {
                "ENV does not expand %NAME%, and its PATH hides the registry's"
            }
            Self::DeadBase => "The base image cannot be pulled or no longer gets updates",
            Self::NanoServerLacks => {
                "Nano Server does not have this program, or its user may not run it"
            }
            Self::ArgsEscaped => {
                "An image that BuildKit builds with a CMD gives Windows the program's path without quotes"
            }
        }
    }
}

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// The line fails or does something other than it says.
    Error,
    /// The line works, but not everywhere or not for long.
    Warning,
}

impl Severity {
    /// Name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LintFinding {
    /// First line, from 1.
    pub line: usize,
    /// Last line that [`Self::fix`] replaces.
    pub last_line: usize,
    /// Rule.
    pub rule: LintRule,
    /// Severity.
    pub severity: Severity,
    /// Explanation in one sentence.
    pub message: String,
    /// Replacement for the lines `line` to `last_line`, if it is certain.
    pub fix: Option<String>,
}

/// Lints a Dockerfile and returns findings in line order.
pub fn lint(source: &str, options: &LintOptions) -> Vec<LintFinding> {
    let mut findings = find(source, options);
    correction::extend_corrections(source, &mut findings, |text| find(text, options));
    findings
}

fn find(source: &str, options: &LintOptions) -> Vec<LintFinding> {
    let file = Dockerfile::read(source);
    let stages = stage::stages(&file, options);
    let mut findings = Findings {
        file: &file,
        found: Vec::new(),
    };
    base::check(&stages, options, &mut findings);
    for stage in &stages {
        if stage.platform == Platform::Linux {
            continue;
        }
        let before = findings.found.len();
        for step in &stage.steps {
            line_end::check(step, &mut findings);
            quotes::check(step, &mut findings);
            iis::check(step, &mut findings);
            environment::check(stage, step, &mut findings);
        }
        if stage.platform == Platform::Windows {
            entrypoint::check(stage, before, &mut findings);
            args_escaped::check(stage, &mut findings);
        }
    }
    nano::check(&stages, &mut findings);
    registry::check(&stages, &mut findings);
    findings.sorted()
}

/// Findings so far, with the file for corrections.
struct Findings<'a> {
    file: &'a Dockerfile<'a>,
    found: Vec<LintFinding>,
}

impl Findings<'_> {
    /// Adds a finding whose correction edits an instruction. The first edit is its position if no
    /// line can be given.
    fn add_edits(
        &mut self,
        rule: LintRule,
        severity: Severity,
        instruction: &Instruction,
        message: impl Into<String>,
        edits: &[Edit],
    ) {
        let line = edits.first().map_or(instruction.lines().0, |edit| {
            instruction.line_of(edit.range.start)
        });
        match self.file.apply_edits(instruction, edits) {
            Some(correction) => self.add_correction(rule, severity, message, correction),
            None => self.add(rule, severity, line, message),
        }
    }

    /// Adds a finding with a correction.
    fn add_correction(
        &mut self,
        rule: LintRule,
        severity: Severity,
        message: impl Into<String>,
        correction: Correction,
    ) {
        self.found.push(LintFinding {
            line: correction.first_line,
            last_line: correction.last_line,
            rule,
            severity,
            message: message.into(),
            fix: Some(correction.text),
        });
    }

    /// Adds a finding without a correction; `line` counts from 0.
    fn add(&mut self, rule: LintRule, severity: Severity, line: usize, message: impl Into<String>) {
        self.found.push(LintFinding {
            line: line + 1,
            last_line: line + 1,
            rule,
            severity,
            message: message.into(),
            fix: None,
        });
    }

    fn sorted(mut self) -> Vec<LintFinding> {
        self.found
            .sort_by_key(|finding| (finding.line, finding.rule));
        self.found.dedup();
        self.found
    }
}
