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

use std::ffi::OsString;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Command, CommandFactory};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Cli;
use super::failure::Failure;
use crate::position::line_and_column;

const FILE_NAME: &str = "wincimg.toml";

/// Flags that a file cannot set: they are about the file, or about one call.
const NOT_IN_FILE: [&str; 3] = ["config", "help", "version"];

/// The command line with the defaults of `--config FILE` or of `wincimg.toml` in this folder, and
/// which file that was.
pub(super) fn command_with_defaults(
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<(Command, Option<PathBuf>), Failure> {
    let command = Cli::command();
    let (path, text) = match asked_for(arguments) {
        Some(path) => {
            let text = std::fs::read_to_string(&path).map_err(|error| {
                Failure::from(error).context(format!("cannot read {}", path.display()))
            })?;
            (path, text)
        }
        None => match std::fs::read_to_string(FILE_NAME) {
            Ok(text) => (PathBuf::from(FILE_NAME), text),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok((command, None));
            }
            Err(error) => {
                return Err(Failure::from(error).context(format!("cannot read {FILE_NAME}")));
            }
        },
    };
    Ok((apply(command, &path, &text)?, Some(path)))
}

/// The flag whose value is refused, where that value is not among the arguments but a default.
pub(super) fn flag_at_fault(
    error: &clap::Error,
    arguments: impl IntoIterator<Item = OsString>,
) -> Option<String> {
    let Some(ContextValue::String(shown)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let flag = shown
        .split(' ')
        .next()
        .filter(|word| word.starts_with("--"))?;
    let is_flag = |argument: OsString| {
        let argument = argument.to_string_lossy();
        let rest = argument.strip_prefix(flag);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    let is_refused_value = matches!(
        error.kind(),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation
    );
    (is_refused_value && !arguments.into_iter().any(is_flag)).then(|| flag.to_owned())
}

/// The file that `--config` names; the real parse of the arguments comes later.
fn asked_for(arguments: impl IntoIterator<Item = OsString>) -> Option<PathBuf> {
    let mut arguments = arguments.into_iter().skip(1);
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

fn apply(command: Command, path: &Path, text: &str) -> Result<Command, Failure> {
    let at = |span: Range<usize>, problem: String| {
        let (line, column) = line_and_column(text, span.start);
        Failure::usage(anyhow!("{}:{line}:{column}: {problem}", path.display()))
    };
    let document = DeTable::parse(text)
        .map_err(|error| at(error.span().unwrap_or_default(), error.message().to_owned()))?;
    apply_table(command, document.get_ref(), &[], &at)
}

fn apply_table(
    mut command: Command,
    table: &DeTable<'_>,
    inherited: &[(String, Vec<String>)],
    at: &impl Fn(Range<usize>, String) -> Failure,
) -> Result<Command, Failure> {
    let mut flags = inherited.to_vec();
    let mut tables = Vec::new();
    for (key, value) in table {
        let name = key.get_ref().to_string();
        if let DeValue::Table(inner) = value.get_ref() {
            if command.find_subcommand(&name).is_none() {
                return Err(at(key.span(), format!("there is no command {name:?}")));
            }
            tables.push((name, inner));
            continue;
        }
        if NOT_IN_FILE.contains(&name.as_str()) || !has_flag(&command, &name) {
            return Err(at(key.span(), format!("there is no flag --{name} here")));
        }
        let values =
            values_of(value).map_err(|(span, problem)| at(span, format!("{name}: {problem}")))?;
        flags.retain(|(known, _)| *known != name);
        flags.push((name, values));
    }
    for (name, values) in &flags {
        command = with_default(command, name, values);
    }
    let subcommands: Vec<String> = command
        .get_subcommands()
        .map(|sub| sub.get_name().to_owned())
        .collect();
    let empty = DeTable::default();
    for name in subcommands {
        let own = tables
            .iter()
            .find(|(known, _)| *known == name)
            .map_or(&empty, |(_, inner)| *inner);
        let mut failure = None;
        command = command.mut_subcommand(&name, |sub| {
            let fallback = sub.clone();
            apply_table(sub, own, &flags, at).unwrap_or_else(|error| {
                failure = Some(error);
                fallback
            })
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
    }
    Ok(command)
}

fn has_flag(command: &Command, name: &str) -> bool {
    command
        .get_arguments()
        .any(|arg| arg.get_long() == Some(name))
        || command.get_subcommands().any(|sub| has_flag(sub, name))
}

fn with_default(command: Command, name: &str, values: &[String]) -> Command {
    let id = command
        .get_arguments()
        .find(|arg| arg.get_long() == Some(name))
        .map(|arg| {
            (
                arg.get_id().clone(),
                matches!(arg.get_action(), ArgAction::Count),
            )
        });
    match id {
        // A counted flag has no default to replace; how much to say is asked for at each call.
        Some((_, true)) | None => command,
        // A flag that the file sets need not be given any more.
        Some((id, false)) => command.mut_arg(id, |arg| {
            arg.required(false).default_values(values.to_vec())
        }),
    }
}

/// What is wrong with a value, and where it stands in the file.
type Misfit = (Range<usize>, String);

fn values_of(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, Misfit> {
    match value.get_ref() {
        DeValue::Array(items) => items.iter().map(scalar).collect(),
        _ => scalar(value).map(|value| vec![value]),
    }
}

fn scalar(value: &Spanned<DeValue<'_>>) -> Result<String, Misfit> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.to_string()),
        DeValue::Boolean(flag) => Ok(flag.to_string()),
        DeValue::Float(number) => {
            Err((value.span(), format!("write {} in quotes", number.as_str())))
        }
        other => {
            let problem = format!(
                "expected a string, a number, true, false or a list of these, found {}",
                other.type_str()
            );
            Err((value.span(), problem))
        }
    }
}
