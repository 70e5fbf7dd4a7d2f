//! `wincimg.toml`: the defaults of flags, for one folder or one pipeline.
//!
//! A key is a flag's long name. At the top of the file it holds for every command that has the
//! flag; in a table named after a command, for that command alone (`[hotfix.fetch]` for a nested one):
//!
//! ```toml
//! insecure-registry = ["repo.mylan.k8s:8888"]
//! [check-compat]
//! strict = true
//! ```
//!
//! What is typed has the last word: a default gives way to its own flag, and to any flag that it
//! would contradict or add to.
//!
//! A file that lies in a folder came there with a checkout perhaps. What lowers security counts only
//! from one that the user names.

mod apply;
mod overrides;

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::ArgMatches;
use clap::parser::ValueSource;
use wincimg_common::diagnose::{Excerpt, line_and_column};
use wincimg_common::files;
use wincimg_common::files::LARGEST_TEXT;

use super::error::Failure;
use super::program_name;

const FILE_NAME: &str = "wincimg.toml";
/// Names the file where no flag does.
const VARIABLE: &str = "WINCIMG_CONFIG";

/// Reason why there are no arguments.
pub(super) enum ArgumentsError {
    /// The file of defaults is at fault.
    File(Failure),
    /// The arguments are, or they ask for help alone.
    Arguments(clap::Error),
}

impl From<Failure> for ArgumentsError {
    fn from(failure: Failure) -> Self {
        Self::File(failure)
    }
}

impl From<clap::Error> for ArgumentsError {
    fn from(error: clap::Error) -> Self {
        Self::Arguments(error)
    }
}

/// The arguments, with the defaults of a file for what they do not say.
pub(super) struct Arguments {
    pub(super) matches: ArgMatches,
    /// Warnings about the file.
    pub(super) warning: Option<String>,
}

/// The arguments, with the defaults of `--config FILE`, of the file that the environment names, or of
/// `wincimg.toml` in this folder or one above it.
pub(super) fn arguments(
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<Arguments, ArgumentsError> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let Some(file) = File::find(&arguments)? else {
        return Ok(Arguments {
            matches: program_name::command().try_get_matches_from(arguments)?,
            warning: None,
        });
    };
    let (matches, defaults) = file.parse(&arguments, &[])?;
    let overridden =
        overrides::overridden_defaults(&program_name::command(), &matches, &defaults.set);
    let (matches, defaults) = if overridden.is_empty() {
        (matches, defaults)
    } else {
        file.parse(&arguments, &overridden)?
    };
    file.check(&matches, &defaults.set)?;
    let warning = file.warning(&matches, &defaults);
    Ok(Arguments { matches, warning })
}

/// The file that `--config` names; the real parse of the arguments comes later.
fn asked_for(arguments: &[OsString]) -> Option<PathBuf> {
    let mut arguments = arguments.iter().skip(1);
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        if text == "--" {
            return None;
        }
        if text == "--config" {
            return arguments.next().map(PathBuf::from);
        }
        if let Some(path) = text.strip_prefix("--config=") {
            return Some(PathBuf::from(path));
        }
    }
    None
}

/// The file in this folder, or in the nearest one above that has it.
fn nearest_file() -> Option<PathBuf> {
    if Path::new(FILE_NAME).is_file() {
        return Some(PathBuf::from(FILE_NAME));
    }
    let folder = std::env::current_dir().ok()?;
    let mut files = folder.ancestors().map(|above| above.join(FILE_NAME));
    files.find(|file| file.is_file())
}

/// A file of defaults.
struct File {
    path: PathBuf,
    text: String,
    /// True if the user named it.
    is_named: bool,
}

/// Flags set by a file.
#[derive(Default)]
struct Defaults {
    set: Vec<FlagDefault>,
    /// What lowers security, in a file that the user did not name.
    left_out: Vec<FlagDefault>,
}

/// A default that the file sets for one command.
struct FlagDefault {
    /// The flag's long name.
    flag: String,
    /// The command, by the names that lead to it.
    command: Vec<String>,
    /// The argument's id.
    id: String,
    /// What is wrong with the value, and where it stands; it is not set then.
    misfit: Option<InvalidValue>,
}

/// What is wrong with a value, and where it stands in the file.
type InvalidValue = (Range<usize>, String);

impl FlagDefault {
    /// Returns true if it is for the command that was typed, and its flag was not.
    fn counts(&self, typed: &ParsedCommand<'_>) -> bool {
        typed.path.starts_with(&self.command) && !typed.has(&self.id)
    }
}

/// The command that was typed.
struct ParsedCommand<'a> {
    path: Vec<String>,
    arguments: &'a ArgMatches,
}

impl<'a> ParsedCommand<'a> {
    fn new(matches: &'a ArgMatches) -> Self {
        let mut typed = Self {
            path: Vec::new(),
            arguments: matches,
        };
        while let Some((name, inner)) = typed.arguments.subcommand() {
            typed.path.push(name.to_owned());
            typed.arguments = inner;
        }
        typed
    }

    /// Returns true if an argument was typed; a default is not.
    fn has(&self, id: &str) -> bool {
        let is_known = self.arguments.ids().any(|known| known == id);
        is_known && self.arguments.value_source(id) == Some(ValueSource::CommandLine)
    }
}

impl File {
    fn find(arguments: &[OsString]) -> Result<Option<Self>, Failure> {
        let variable = || std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
        let named = asked_for(arguments).or_else(|| variable().map(PathBuf::from));
        let is_named = named.is_some();
        let Some(path) = named.or_else(nearest_file) else {
            return Ok(None);
        };
        match files::read_text(&path, LARGEST_TEXT) {
            Ok(text) => Ok(Some(Self {
                path,
                text,
                is_named,
            })),
            Err(error) => {
                Err(Failure::from(error).context(format!("cannot read {}", path.display())))
            }
        }
    }

    /// Tells which of the flags that the file sets do not count for the command that was typed.
    fn warning(&self, matches: &ArgMatches, defaults: &Defaults) -> Option<String> {
        let typed = ParsedCommand::new(matches);
        let left_out = defaults.left_out.iter();
        let mut flags: Vec<&str> = left_out
            .filter(|default| default.counts(&typed))
            .map(|default| default.flag.as_str())
            .collect();
        flags.sort_unstable();
        flags.dedup();
        (!flags.is_empty()).then(|| {
            let path = self.path.display();
            format!(
                "{} of {path} left out: what lowers security counts only from a file that you name, \
                 with --config {path} or {VARIABLE}",
                flags.join(", ")
            )
        })
    }

    /// Parses the arguments with the file's defaults, but for those of the arguments in `without`.
    fn parse(
        &self,
        arguments: &[OsString],
        without: &[String],
    ) -> Result<(ArgMatches, Defaults), ArgumentsError> {
        let (command, defaults) = apply::apply(program_name::command(), self, without)?;
        Ok((command.try_get_matches_from(arguments)?, defaults))
    }

    /// Refuses a value that the command which was typed does not take; others may take it.
    fn check(&self, matches: &ArgMatches, defaults: &[FlagDefault]) -> Result<(), Failure> {
        let typed = ParsedCommand::new(matches);
        let misfit = defaults
            .iter()
            .filter(|default| default.counts(&typed))
            .find_map(|default| default.misfit.clone());
        match misfit {
            Some((span, problem)) => Err(self.problem(span, &problem).hint(format!(
                "a key at the top of {} is for every command that has the flag, one in a table \
                 such as [build] for that command alone",
                self.path.display()
            ))),
            None => Ok(()),
        }
    }

    fn problem(&self, span: Range<usize>, problem: &str) -> Failure {
        let (line, column) = line_and_column(&self.text, span.start);
        Failure::usage(anyhow!(
            "{}:{line}:{column}: {problem}",
            self.path.display()
        ))
        .excerpt(Excerpt::from_span(&self.text, span))
    }
}
