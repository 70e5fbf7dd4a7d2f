//! Defaults that typed arguments override or add to.

use std::ffi::OsString;

use clap::{Arg, ArgMatches, Command};

use super::apply::commands_on;
use super::{FlagDefault, ParsedCommand};

/// Groups of arguments that answer one question: if one of a group is typed, the file's defaults
/// for the others are dropped.
const ARGUMENT_GROUPS: [&[&str]; 3] = [
    // For which hosts?
    &["host-build", "nodes", "kube"],
    // Which images? The first is the positional argument of check-compat.
    &["references", "image-build", "workloads"],
    // Where do images go?
    &["push", "output"],
];

/// Flags for what is trusted, whose typed values add to the defaults: who follows a hint to add one
/// still needs the others.
const TRUSTED: [&str; 3] = ["ca-file", "insecure-registry", "token-server"];

/// The arguments, with the defaults of the typed flags of `TRUSTED`; those of later files count.
pub(super) fn with_trusted(
    arguments: &[OsString],
    matches: &ArgMatches,
    defaults: &[&FlagDefault],
) -> Vec<OsString> {
    let typed = ParsedCommand::new(matches);
    let mut completed = arguments.to_vec();
    for flag in TRUSTED {
        let latest = defaults.iter().rev();
        let mut of_flag = latest.filter(|default| default.flag == flag && default.is_for(&typed));
        let Some(default) = of_flag.next() else {
            continue;
        };
        if default.misfit.is_some() || !typed.has(&default.id) {
            continue;
        }
        let option = format!("--{flag}");
        let is_option = |argument: &OsString| {
            let text = argument.to_string_lossy();
            text.split('=').next() == Some(option.as_str())
        };
        // Beside the typed one, where the command takes it.
        if let Some(at) = completed.iter().position(is_option) {
            let values = default.values.iter();
            let values = values.map(|value| OsString::from(format!("{option}={value}")));
            completed.splice(at..at, values);
        }
    }
    completed
}

/// Ids of the arguments whose defaults a typed argument contradicts or adds to.
pub(super) fn overridden_defaults(
    command: &Command,
    matches: &ArgMatches,
    defaults: &[&FlagDefault],
) -> Vec<String> {
    let typed = ParsedCommand::new(matches);
    let commands = commands_on(command, typed.path.iter().map(String::as_str));
    let conflicts = conflicts(&commands);
    let arguments = || commands.iter().flat_map(|command| command.get_arguments());
    let answers: Vec<&Arg> = arguments()
        .filter(|arg| typed.has(arg.get_id().as_str()))
        .collect();
    let is_overridden = |default: &FlagDefault| {
        let Some(own) = arguments().find(|arg| *arg.get_id() == default.id) else {
            return false;
        };
        answers.iter().any(|answer| {
            let (a, b) = (own.get_id(), answer.get_id());
            share_group(own, answer)
                || conflicts
                    .iter()
                    .any(|pair| *pair == (a, b) || *pair == (b, a))
        })
    };
    defaults
        .iter()
        .filter(|default| default.counts(&typed) && is_overridden(default))
        .map(|default| default.id.clone())
        .collect()
}

/// Pairs of arguments that conflict.
fn conflicts<'a>(commands: &[&'a Command]) -> Vec<(&'a clap::Id, &'a clap::Id)> {
    let of_command = |command: &&'a Command| {
        let command = *command;
        command.get_arguments().flat_map(move |arg| {
            let others = command.get_arg_conflicts_with(arg).into_iter();
            others.map(move |other| (arg.get_id(), other.get_id()))
        })
    };
    commands.iter().flat_map(of_command).collect()
}

fn share_group(one: &Arg, other: &Arg) -> bool {
    let contains = |group: &&[&str], arg: &Arg| {
        let name = arg.get_long().unwrap_or(arg.get_id().as_str());
        group.contains(&name)
    };
    ARGUMENT_GROUPS
        .iter()
        .any(|group| contains(group, one) && contains(group, other))
}
