//! Applies the defaults of a file to the definition of the command line.

use std::ops::Range;

use clap::builder::ValueParser;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Command};
use toml::Spanned;
use toml::de::{DeTable, DeValue};
use wincimg_common::diagnose::closest_match;

use super::paths::resolved;
use super::trust::is_refused;
use super::{Defaults, File, FlagDefault, InvalidValue};
use crate::cli::prelude::*;
use crate::cli::program_name;

/// Flags that a file cannot set: they are about the file or about one call.
const NOT_IN_FILE: [&str; 4] = ["config", "entrypoint", "help", "version"];

/// Commands that copy what others made, and the flag that they take from their own table alone: a
/// default for builds must not change the digest of a copy.
const COPIES: ([&str; 2], &str) = (["copy", "push"], "manifest-format");

/// Groups of commands that also have a top-level name; a table of either name applies to both.
const GROUPS: [&str; 3] = ["image", "node", "recipe"];

/// The command line with a file's defaults, and these defaults; the arguments in `without` get
/// none.
pub(super) fn apply(
    command: Command,
    file: &File,
    without: &[String],
) -> Result<(Command, Defaults)> {
    let document = DeTable::parse(&file.text)
        .map_err(|error| file.problem(error.span().unwrap_or_default(), error.message()))?;
    let mut work = Work {
        file,
        without,
        document: document.get_ref(),
        defaults: Defaults::default(),
    };
    let own = Table {
        entries: document.get_ref(),
        is_alias: false,
    };
    let command = work.table(command, &[own], &[], &[])?;
    Ok((command, work.defaults))
}

/// Values of a flag, and their positions in the file.
#[derive(Clone)]
struct Setting {
    flag: String,
    values: Vec<String>,
    span: Range<usize>,
}

#[derive(Clone, Copy)]
struct Table<'a> {
    entries: &'a DeTable<'a>,
    /// True if it is named after the command's other name, where its keys are checked.
    is_alias: bool,
}

impl Table<'_> {
    fn get(self, name: &str) -> Option<Self> {
        let entries = self.entries.get(name)?.get_ref().as_table()?;
        Some(Self { entries, ..self })
    }
}

struct Work<'a> {
    file: &'a File,
    without: &'a [String],
    document: &'a DeTable<'a>,
    defaults: Defaults,
}

impl<'a> Work<'a> {
    /// The settings of a command in its tables, and those inherited; later ones replace earlier
    /// ones.
    fn settings(
        &self,
        command: &Command,
        tables: &[Table<'a>],
        inherited: &[Setting],
    ) -> Result<Vec<Setting>> {
        let (copies, own) = COPIES;
        let is_copy = copies.contains(&command.get_name());
        let inherited = inherited.iter().filter(|it| !is_copy || it.flag != own);
        let mut settings: Vec<Setting> = inherited.cloned().collect();
        let entries = tables
            .iter()
            .flat_map(|table| table.entries.iter().map(move |entry| (table, entry)));
        for (table, (key, value)) in entries {
            let name = key.get_ref().to_string();
            if let Some(entries) = value.get_ref().as_table() {
                if !table.is_alias && command.find_subcommand(&name).is_none() {
                    return Err(if has_flag(command, &name) {
                        self.flag_as_table(command, &name, entries, key.span())
                    } else {
                        self.unknown_table(command, &name, key.span())
                    });
                }
                continue;
            }
            if NOT_IN_FILE.contains(&name.as_str()) || !has_flag(command, &name) {
                if table.is_alias {
                    continue;
                }
                let problem = format!("unknown flag --{name}");
                let is_global = argument(&program_name::command(), &name).is_some();
                if is_global && !NOT_IN_FILE.contains(&name.as_str()) {
                    let hint = "it is for all commands: set it at the top of the file";
                    return Err(self.file.problem(key.span(), &problem).hint(hint));
                }
                let known = flags(command).into_iter();
                return Err(self.unknown(key.span(), &problem, &name, known));
            }
            let values = values_of(value).map_err(|(span, problem)| {
                self.file.problem(span, &format!("{name}: {problem}"))
            })?;
            settings.retain(|known| known.flag != name);
            settings.push(Setting {
                flag: name,
                values,
                span: value.span(),
            });
        }
        Ok(settings)
    }

    fn unknown_table(&self, command: &Command, name: &str, span: Range<usize>) -> Failure {
        let known = command.get_subcommands();
        let known = known.filter(|it| !NOT_IN_FILE.contains(&it.get_name()));
        let (hidden, shown): (Vec<&Command>, Vec<&Command>) =
            known.partition(|it| it.is_hide_set());
        let mut names: Vec<&str> = shown.into_iter().map(Command::get_name).collect();
        names.sort_unstable();
        let problem = match names[..] {
            [] => format!("unknown command {name:?}"),
            _ => format!("unknown command {name:?}: expected {}", names.join(", ")),
        };
        // The older top-level names count, too.
        names.extend(hidden.into_iter().map(Command::get_name));
        self.unknown(span, &problem, name, names.into_iter())
    }

    /// Error for a table in place of the values of a flag, such as `set`, which is one in a fleet.
    fn flag_as_table(
        &self,
        command: &Command,
        name: &str,
        entries: &DeTable<'_>,
        span: Range<usize>,
    ) -> Failure {
        let problem = format!("{name} is a flag: expected a value or a list, found table");
        let pairs = entries.iter().filter_map(|(key, value)| {
            let pair = format!("{}={}", key.get_ref(), scalar(value).ok()?);
            Some(format!("{pair:?}"))
        });
        let hint =
            takes_pairs(command, name).then(|| format!("{name} = [{}]", joined(pairs, ", ")));
        self.file.problem(span, &problem).hint_if(hint)
    }

    fn unknown<'k>(
        &self,
        span: Range<usize>,
        problem: &str,
        name: &str,
        known: impl Iterator<Item = &'k str>,
    ) -> Failure {
        let meant = closest_match(name, known);
        let hint = meant.map(|meant| format!("did you mean {meant}?"));
        self.file.problem(span, problem).hint_if(hint)
    }

    /// The table of a grouped command's other name.
    fn alias(&self, path: &[String]) -> Option<Table<'a>> {
        let document = Table {
            entries: self.document,
            is_alias: true,
        };
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        match path[..] {
            ["images"] => document.get("recipe")?.get("list"),
            ["recipe", "list" | "show" | "schema"] => document.get("images"),
            [name] => GROUPS
                .iter()
                .find_map(|group| document.get(group)?.get(name)),
            [group, name] if GROUPS.contains(&group) => document.get(name),
            _ => None,
        }
    }

    fn table(
        &mut self,
        mut command: Command,
        tables: &[Table<'a>],
        path: &[String],
        inherited: &[Setting],
    ) -> Result<Command> {
        let settings = self.settings(&command, tables, inherited)?;
        for setting in &settings {
            command = self.set(command, path, setting);
        }
        let subcommands = command.get_subcommands();
        let subcommands: Vec<String> = subcommands.map(|sub| sub.get_name().to_owned()).collect();
        for name in subcommands {
            let path = [path, std::slice::from_ref(&name)].concat();
            let own = tables.iter().filter_map(|table| table.get(&name));
            let of_command: Vec<Table<'a>> = self.alias(&path).into_iter().chain(own).collect();
            let mut failure = None;
            command = command.mut_subcommand(&name, |sub| {
                let fallback = sub.clone();
                self.table(sub, &of_command, &path, &settings)
                    .unwrap_or_else(|error| {
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

    fn set(&mut self, command: Command, path: &[String], setting: &Setting) -> Command {
        let Some(arg) = argument(&command, &setting.flag) else {
            return command;
        };
        // A counted flag has no default to replace; verbosity is set for each call.
        if matches!(arg.get_action(), ArgAction::Count) {
            return command;
        }
        let id = arg.get_id().to_string();
        if self.without.contains(&id) {
            return command;
        }
        let folder = self.file.path.parent().unwrap_or(Path::new(""));
        let values = setting.values.iter();
        let values: Vec<String> = values.map(|value| resolved(arg, value, folder)).collect();
        let mut default = FlagDefault {
            flag: setting.flag.clone(),
            command: path.to_vec(),
            id: id.clone(),
            values: values.clone(),
            misfit: None,
        };
        if !self.file.is_named && is_refused(arg, &values, folder) {
            self.defaults.left_out.push(default);
            return command;
        }
        default.misfit = misfit(arg, &values).map(|why| {
            let command = path.join(" ");
            let problem = format!("`wincimg {command} --{}` {why}", setting.flag);
            (setting.span.clone(), problem)
        });
        let fits = default.misfit.is_none();
        self.defaults.set.push(default);
        // A flag that the file sets is no longer required.
        command.mut_arg(id, |arg| {
            let arg = arg.required(false);
            if fits {
                arg.default_values(values)
            } else {
                arg
            }
        })
    }
}

/// The program, and the commands that these words name, each below the one before.
pub(in crate::cli) fn commands_on<'a, 'w>(
    command: &'a Command,
    words: impl Iterator<Item = &'w str>,
) -> Vec<&'a Command> {
    let mut commands = vec![command];
    let mut here = command;
    for next in words {
        if let Some(next) = here.find_subcommand(next) {
            commands.push(next);
            here = next;
        }
    }
    commands
}

pub(in crate::cli) fn argument<'a>(command: &'a Command, flag: &str) -> Option<&'a Arg> {
    let mut arguments = command.get_arguments();
    arguments.find(|arg| {
        let aliases = arg.get_all_aliases().unwrap_or_default();
        arg.get_long() == Some(flag) || aliases.contains(&flag)
    })
}

/// Returns true if a command or one of its subcommands has a flag of this name.
pub(in crate::cli) fn has_flag(command: &Command, name: &str) -> bool {
    argument(command, name).is_some() || command.get_subcommands().any(|sub| has_flag(sub, name))
}

/// Returns true if such a flag takes `KEY=VALUE`.
fn takes_pairs(command: &Command, name: &str) -> bool {
    let own = argument(command, name).and_then(Arg::get_value_names);
    let mut values = own.unwrap_or_default().iter();
    values.any(|value| value.contains('='))
        || command.get_subcommands().any(|sub| takes_pairs(sub, name))
}

/// Settings that a file can have for a command and its subcommands.
fn flags(command: &Command) -> Vec<&str> {
    let own = command.get_arguments().filter_map(Arg::get_long);
    let below = command.get_subcommands().flat_map(flags);
    own.chain(below)
        .filter(|name| !NOT_IN_FILE.contains(name))
        .collect()
}

/// What is wrong with the values of a flag, if anything.
fn misfit(arg: &Arg, values: &[String]) -> Option<String> {
    // clap would take the first.
    if values.len() > 1 && !matches!(arg.get_action(), ArgAction::Append) {
        return Some("accepts only one value".to_owned());
    }
    let parser = arg.get_value_parser();
    let mut refused = values.iter().map(|value| (value, refusal(parser, value)));
    let (value, why) = refused.find_map(|(value, why)| Some((value, why?)))?;
    Some(format!("does not accept {}: {why}", QuotedText(value)))
}

/// Reason why a flag does not accept a value; none if it does.
fn refusal(parser: &ValueParser, value: &str) -> Option<String> {
    let arg = Arg::new("value").long("value").value_parser(parser.clone());
    let command = Command::new("trial").no_binary_name(true).arg(arg);
    let error = command
        .try_get_matches_from([format!("--value={value}")])
        .err()?;
    Some(match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(accepted)) => format!("expected {}", accepted.join(", ")),
        _ => std::error::Error::source(&error)
            .map_or_else(|| "invalid value".to_owned(), ToString::to_string),
    })
}

fn values_of(value: &Spanned<DeValue<'_>>) -> Result<Vec<String>, InvalidValue> {
    match value.get_ref() {
        DeValue::Array(items) => items.iter().map(scalar).collect(),
        _ => scalar(value).map(|value| vec![value]),
    }
}

fn scalar(value: &Spanned<DeValue<'_>>) -> Result<String, InvalidValue> {
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
