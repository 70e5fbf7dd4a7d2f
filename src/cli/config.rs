//! `wincimg.toml`: defaults of flags, for a folder or a pipeline.
//!
//! A key is a flag's long name. At the top of the file it applies to every command that has the
//! flag; in a table named after a command, to that command alone (`[hotfix.fetch]` for a nested
//! one), under each of its names: `[hotfix]` is also for `node hotfix`:
//!
//! ```toml
//! insecure-registry = ["repo.mylan.k8s:8888"]
//! [check-compat]
//! strict = true
//! ```
//!
//! Paths are relative to the file's folder.
//!
//! Typed arguments take precedence: a default is dropped if its own flag is typed, or any flag that
//! it would contradict or add to. Hosts and certificates that are trusted add to those of the file.
//!
//! A file in a folder may come from a checkout. Settings that lower security, and paths out of its
//! folder, apply only from a file that the user names, and from the user's own file in the home
//! folder, which is read first.

pub(super) mod apply;
mod overrides;
mod paths;
mod trust;

use std::ffi::OsString;
use std::ops::Range;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command};
use wincimg_common::diagnose::{Excerpt, line_and_column};
use wincimg_common::files::{LeadsOut, TextFile, named_path_hint};

use self::apply::commands_on;
use super::cache_args::folder_in;
use super::{program_name, typed_arguments};
use crate::cli::prelude::*;

const FILE_NAME: &str = "wincimg.toml";
/// The user's own file, below the folder for settings.
const OWN_FILE: &str = "wincimg/config.toml";
/// Variable that names the file if no flag does.
const VARIABLE: &str = "WINCIMG_CONFIG";

/// Reason for the lack of arguments.
pub(super) enum ArgumentsError {
    /// The file of defaults is invalid.
    File(Failure),
    /// The arguments are invalid, or ask for help alone.
    Arguments {
        error: clap::Error,
        /// True if the command's output is JSON by default.
        is_json: bool,
    },
}

impl From<Failure> for ArgumentsError {
    fn from(failure: Failure) -> Self {
        Self::File(failure)
    }
}

impl From<clap::Error> for ArgumentsError {
    fn from(error: clap::Error) -> Self {
        Self::Arguments {
            error,
            is_json: false,
        }
    }
}

/// The arguments with the defaults of `--config FILE`, of the file in the environment variable, or
/// of `wincimg.toml` in this folder or a parent; and a warning about the file.
pub(super) fn arguments(
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<(ArgMatches, Option<String>), ArgumentsError> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let command = program_name::command();
    let (arguments, off) = without_switch_values(&command, &arguments);
    let plain = command.try_get_matches_from(&arguments);
    if is_about_program(&plain) {
        return Ok((plain?, None));
    }
    let mut files: Vec<File> = File::find_own()?.into_iter().collect();
    if let Some(file) = File::find(&arguments)?
        && files.iter().all(|own| own.path != file.path)
    {
        files.push(file);
    }
    if files.is_empty() {
        return Ok((plain?, None));
    }
    with_defaults(&files, &arguments, &off).map_err(|error| match error {
        ArgumentsError::Arguments { error, .. } => ArgumentsError::Arguments {
            error,
            is_json: is_json_by_default(&files, &arguments),
        },
        file @ ArgumentsError::File(_) => file,
    })
}

/// Returns true for help, the version and completion scripts, which are the same with any file.
fn is_about_program(parsed: &Result<ArgMatches, clap::Error>) -> bool {
    match parsed {
        Ok(matches) => matches.subcommand_name() == Some("completions"),
        Err(error) => matches!(
            error.kind(),
            ErrorKind::DisplayHelp
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                | ErrorKind::DisplayVersion
        ),
    }
}

/// The arguments with switches as clap takes them, and the IDs of those that are off. Scripts for
/// buildx give switches a value: `--push=true`, `-q=0`. The last one counts. A switch that is off
/// conflicts with nothing, and has no default from a file.
fn without_switch_values(
    command: &Command,
    arguments: &[OsString],
) -> (Vec<OsString>, Vec<String>) {
    let commands = commands_on(command, words(arguments));
    let end = arguments.iter().position(|argument| argument == "--");
    let (flags, rest) = arguments.split_at(end.unwrap_or(arguments.len()));
    let mut plain: Vec<OsString> = rest.iter().rev().cloned().collect();
    let mut off = Vec::new();
    let mut decided = BTreeSet::new();
    for argument in flags.iter().rev() {
        let text = argument.to_str();
        let Some((arg, flag, value)) = text.and_then(|text| switch_and_value(&commands, text))
        else {
            plain.push(argument.clone());
            continue;
        };
        if decided.contains(arg.get_id()) {
            continue;
        }
        // A counted one may be repeated.
        if value.is_some() || matches!(arg.get_action(), ArgAction::SetTrue) {
            decided.insert(arg.get_id());
        }
        let long = arg.get_long().filter(|_| !flag.starts_with("--"));
        match (boolean(value.unwrap_or("true")), value.zip(long)) {
            (Some(true), _) => plain.push(flag.into()),
            (Some(false), _) => off.push(arg.get_id().to_string()),
            // Of `-q=x`, clap would name the `=`.
            (None, Some((value, long))) => plain.push(format!("--{long}={value}").into()),
            (None, None) => plain.push(argument.clone()),
        }
    }
    plain.reverse();
    (plain, off)
}

/// A truth value as Docker's programs read it.
pub(super) fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// A switch, its flag as typed, and its value if the argument has one.
fn switch_and_value<'c, 'a>(
    commands: &[&'c Command],
    argument: &'a str,
) -> Option<(&'c Arg, &'a str, Option<&'a str>)> {
    let (flag, value) = match argument.split_once('=') {
        Some((flag, value)) => (flag, Some(value)),
        None => (argument, None),
    };
    let find = |command: &'c Command| match flag.strip_prefix("--") {
        Some(name) => apply::argument(command, name),
        None => {
            let name = flag.strip_prefix('-')?;
            let mut arguments = command.get_arguments();
            arguments.find(|arg| arg.get_short().is_some_and(|own| name.chars().eq([own])))
        }
    };
    let arg = commands.iter().rev().copied().find_map(find)?;
    let is_switch = matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::Count);
    is_switch.then_some((arg, flag, value))
}

/// The words after the program's name, some of which are the names of commands.
fn words(arguments: &[OsString]) -> impl Iterator<Item = &str> {
    arguments.iter().skip(1).filter_map(|it| it.to_str())
}

/// The arguments with the files' defaults that they do not override, and a warning. Switches that are
/// `off` have no default.
fn with_defaults(
    files: &[File],
    arguments: &[OsString],
    off: &[String],
) -> Result<(ArgMatches, Option<String>), ArgumentsError> {
    let (matches, defaults) = parse(files, arguments, off)?;
    let set: Vec<&FlagDefault> = defaults.iter().flat_map(|all| &all.set).collect();
    let overridden = overrides::overridden_defaults(&program_name::command(), &matches, &set);
    let completed = overrides::with_trusted(arguments, &matches, &set);
    let (matches, defaults) = if overridden.is_empty() && completed == arguments {
        (matches, defaults)
    } else {
        parse(files, &completed, &[off, &overridden[..]].concat())?
    };
    let mut warning = None;
    for (file, defaults) in files.iter().zip(&defaults) {
        file.check(&matches, &defaults.set)?;
        warning = warning.or(file.warning(&matches, defaults));
    }
    Ok((matches, warning))
}

/// Parses the arguments with the files' defaults, of which later ones replace earlier ones, except
/// those of the arguments in `without`.
fn parse(
    files: &[File],
    arguments: &[OsString],
    without: &[String],
) -> Result<(ArgMatches, Vec<Defaults>), ArgumentsError> {
    let (command, defaults) = applied(files, without)?;
    Ok((command.try_get_matches_from(arguments)?, defaults))
}

/// Returns true if the files set JSON for the command that invalid arguments name.
fn is_json_by_default(files: &[File], arguments: &[OsString]) -> bool {
    let Ok((command, _)) = applied(files, &[]) else {
        return false;
    };
    let commands = commands_on(&command, words(arguments));
    let innermost = commands.last().into_iter();
    let mut arguments = innermost.flat_map(|command| command.get_arguments());
    let format = arguments.find(|it| it.get_id() == "format");
    format.is_some_and(|it| it.get_default_values().iter().any(|it| it == "json"))
}

/// The command line with the files' defaults, and these.
fn applied(files: &[File], without: &[String]) -> Result<(Command, Vec<Defaults>)> {
    let mut command = program_name::command();
    let mut defaults = Vec::with_capacity(files.len());
    for file in files {
        let (applied, of_file) = apply::apply(command, file, without)?;
        command = applied;
        defaults.push(of_file);
    }
    Ok((command, defaults))
}

pub(super) fn is_flag(name: &str) -> bool {
    apply::has_flag(&program_name::command(), name)
}

/// Returns true if the typed arguments name this command.
pub(super) fn is_typed_command(name: &str) -> bool {
    let typed: Vec<String> = typed_arguments().collect();
    let program = program_name::command();
    let commands = commands_on(&program, typed.iter().map(String::as_str));
    matches!(commands[..], [_, command] if command.get_name() == name)
}

fn own_file() -> Option<PathBuf> {
    let settings = folder_in("XDG_CONFIG_HOME")
        .or_else(|| folder_in("APPDATA"))
        .or_else(|| Some(folder_in("HOME")?.join(".config")))?;
    Some(settings.join(OWN_FILE))
}

/// The file of `--config`, found before the arguments are parsed.
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

struct File {
    path: PathBuf,
    text: String,
    /// True if the user named it, or it is the user's own.
    is_named: bool,
}

/// Flags set by a file.
#[derive(Default)]
struct Defaults {
    set: Vec<FlagDefault>,
    /// Settings that only a file that the user names can have.
    left_out: Vec<FlagDefault>,
}

/// A default that the file sets for one command.
struct FlagDefault {
    /// The flag's long name.
    flag: String,
    /// Names of the command, outermost first.
    command: Vec<String>,
    id: String,
    /// The values, as they are typed.
    values: Vec<String>,
    /// Problem of the value and its position; it is not set then.
    misfit: Option<InvalidValue>,
}

/// Problem of a value, and its position in the file.
type InvalidValue = (Range<usize>, String);

impl FlagDefault {
    /// Returns true if the default is for the typed command and its flag was not typed.
    fn counts(&self, typed: &ParsedCommand<'_>) -> bool {
        self.is_for(typed) && !typed.has(&self.id)
    }

    fn is_for(&self, typed: &ParsedCommand<'_>) -> bool {
        typed.path.starts_with(&self.command)
    }
}

struct ParsedCommand<'a> {
    path: Vec<String>,
    arguments: &'a ArgMatches,
}

impl<'a> ParsedCommand<'a> {
    fn new(matches: &'a ArgMatches) -> Self {
        let mut path = Vec::new();
        let mut arguments = matches;
        while let Some((name, inner)) = arguments.subcommand() {
            path.push(name.to_owned());
            arguments = inner;
        }
        Self { path, arguments }
    }

    /// Returns true if an argument was typed; a default is not.
    fn has(&self, id: &str) -> bool {
        let is_known = self.arguments.ids().any(|known| known == id);
        is_known && self.arguments.value_source(id) == Some(ValueSource::CommandLine)
    }
}

impl File {
    fn find(arguments: &[OsString]) -> Result<Option<Self>> {
        let variable = || std::env::var_os(VARIABLE).filter(|path| !path.is_empty());
        let named = asked_for(arguments).or_else(|| variable().map(PathBuf::from));
        let is_named = named.is_some();
        let Some(path) = named.or_else(trust::nearest_file) else {
            return Ok(None);
        };
        Self::read(path, is_named).map(Some)
    }

    fn find_own() -> Result<Option<Self>> {
        let path = own_file().filter(|path| path.is_file());
        path.map(|path| Self::read(path, true)).transpose()
    }

    fn read(path: PathBuf, is_named: bool) -> Result<Self> {
        let file = if is_named {
            TextFile::named(&path)
        } else {
            TextFile::found(&path)
        };
        match file.read() {
            Ok(text) => Ok(Self {
                path,
                text,
                is_named,
            }),
            Err(error) => {
                let name = path.display().to_string();
                let hint = LeadsOut::is_cause_of(&error)
                    .then(|| format!("if that file is meant, name it: --config {}", quote(&name)));
                let failure = Failure::from(error).context(format!("cannot read {name}"));
                Err(failure.hint_if(hint.or_else(|| named_path_hint(&path))))
            }
        }
    }

    /// Warns of the file's flags that are ignored for the typed command.
    fn warning(&self, matches: &ArgMatches, defaults: &Defaults) -> Option<String> {
        let typed = ParsedCommand::new(matches);
        let left_out = defaults.left_out.iter();
        let flags = left_out.filter(|default| default.counts(&typed));
        let mut flags: Vec<&str> = flags.map(|default| default.flag.as_str()).collect();
        flags.sort_unstable();
        flags.dedup();
        (!flags.is_empty()).then(|| {
            let path = self.path.display().to_string();
            format!(
                "ignored {} in {path}: settings that lower security or lead out of its folder \
                 require a file that you name, with --config {} or {VARIABLE}, or your own {}",
                flags.join(", "),
                quote(&path),
                own_file().unwrap_or_default().display()
            )
        })
    }

    /// Rejects a value that the typed command does not accept; other commands may.
    fn check(&self, matches: &ArgMatches, defaults: &[FlagDefault]) -> Result<()> {
        let typed = ParsedCommand::new(matches);
        let misfit = defaults
            .iter()
            .filter(|default| default.counts(&typed))
            .find_map(|default| default.misfit.clone());
        match misfit {
            Some((span, problem)) => Err(self.problem(span, &problem).hint(format!(
                "a key at the top of {} applies to every command with that flag, one in a table \
                 such as [build] to that command alone",
                self.path.display()
            ))),
            None => Ok(()),
        }
    }

    fn problem(&self, span: Range<usize>, problem: &str) -> Failure {
        let (line, column) = line_and_column(&self.text, span.start);
        let path = self.path.display();
        Failure::usage(format!("{path}:{line}:{column}: {problem}"))
            .excerpt(Excerpt::from_span(&self.text, span).in_file(&self.path.display().to_string()))
    }
}
