//! The command line: parses the arguments, runs one command and converts its outcome to an exit
//! code.

mod argument_passwords;
mod base;
mod build;
mod cache_args;
mod check_compat;
mod command_context;
mod complete;
mod completions;
mod config;
mod convert;
mod demo;
mod docker_args;
mod doctor;
mod document_args;
mod error;
mod fleet;
mod groups;
mod hosts;
mod hotfix;
mod http_args;
mod images;
mod init;
mod input;
mod inspect;
mod lint;
mod login;
mod mirror;
mod node;
mod online_context;
mod output;
mod program_name;
mod progress;
mod prompt;
mod recipe_args;
mod registry_args;
mod render;
mod shutdown;
mod try_image;
mod update;
mod updates;

use std::process::ExitCode;
use std::time::Duration;

use clap::{ArgMatches, Args, CommandFactory as _, FromArgMatches, Parser, Subcommand};
use command_context::Session;
use config::{Arguments, ArgumentsError};
use error::Failure;

/// Build, check and copy Windows container images, from Linux.
#[derive(Debug, Parser)]
#[command(
    name = "wincimg",
    version = env!("WINCIMG_VERSION"),
    propagate_version = false,
    max_term_width = 100,
    after_help = "Exit codes: 0 success, 1 the answer is no, 2 invalid usage, 3 failure, 4 requires \
    Windows, 130 and 143 interrupted.\n\
        With --format json an error is an object on stdout too; docs/errors.md lists its codes."
)]
struct Cli {
    #[command(flatten)]
    global: GlobalArgs,
    #[command(subcommand)]
    command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
struct GlobalArgs {
    /// Print only the result and errors
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Log to stderr; repeat to include the libraries' logs
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// Read defaults for flags from this file [default: `WINCIMG_CONFIG`, then wincimg.toml in this
    /// folder or a parent]
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<std::path::PathBuf>,
    #[command(flatten)]
    cache: cache_args::CacheArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    Base(base::Base),
    Build(Box<build::Build>),
    CheckCompat(check_compat::CheckCompat),
    Completions(completions::Completions),
    Convert(Box<convert::Convert>),
    Demo(demo::Demo),
    Doctor(doctor::Doctor),
    Fleet(Box<fleet::FleetArgs>),
    Hotfix(hotfix::Hotfix),
    Images(images::Images),
    Init(Box<init::Init>),
    Inspect(inspect::Inspect),
    Lint(lint::Lint),
    Login(login::Login),
    Logout(login::Logout),
    Mirror(mirror::Mirror),
    Node(Box<node::Node>),
    Render(render::Render),
    Try(try_image::Try),
    Update(Box<update::Update>),
}

impl Command {
    fn run(self, session: &Session) -> Result<CommandOutcome, Failure> {
        match self {
            // This command can refresh the table first.
            Self::Hotfix(_)
            | Self::Completions(_)
            | Self::Demo(_)
            | Self::Doctor(_)
            | Self::Images(_)
            | Self::Login(_)
            | Self::Logout(_)
            | Self::Node(_)
            | Self::Try(_) => {}
            _ => {
                updates::updates_table(session);
            }
        }
        let relies_on_updates = match &self {
            Self::Base(base) => base.relies_on_updates(),
            _ => matches!(self, Self::Hotfix(_) | Self::Lint(_)),
        };
        let result = match self {
            Self::Base(command) => command.run(session),
            Self::Build(command) => command.run(session),
            Self::CheckCompat(command) => command.run(session),
            Self::Completions(command) => command.run(),
            Self::Convert(command) => command.run(session),
            Self::Demo(command) => command.run(),
            Self::Doctor(command) => command.run(),
            Self::Fleet(command) => command.run(session),
            Self::Hotfix(command) => command.run(session),
            Self::Images(command) => command.run(),
            Self::Init(command) => command.run(session),
            Self::Inspect(command) => command.run(session),
            Self::Lint(command) => command.run(session),
            Self::Login(command) => command.run(session),
            Self::Logout(command) => command.run(session),
            Self::Mirror(command) => command.run(session),
            Self::Node(command) => command.run(session),
            Self::Render(command) => command.run(session),
            Self::Try(command) => command.run(session),
            Self::Update(command) => command.run(session),
        };
        if result.is_ok() && relies_on_updates {
            updates::warn_if_stale(session, None);
        }
        result
    }
}

/// Outcome of a command that did not fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandOutcome {
    /// Success; a question was answered with yes.
    Yes,
    /// A question was answered with no.
    No,
    /// A program ran and ended with this exit code.
    Code(u8),
}

/// The definition of the command line, for the manual and other generated files.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Parses the arguments, runs the command and returns its exit code.
pub fn main() -> ExitCode {
    if let Some(code) = complete::answer() {
        return code;
    }
    let colour = command_context::colour_on_stderr();
    let Arguments { matches, warning } = match config::arguments(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(ArgumentsError::File(failure)) => return failure.report(colour),
        Err(ArgumentsError::Arguments(error)) => {
            print_refusal(&error);
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    let session = Session::new(cli.global.quiet, cli.global.verbose, cli.global.cache);
    if let Some(warning) = warning {
        session.warn(warning);
    }
    shutdown::watch(time_limit(&matches));
    let ended = cli.command.run(&session);
    if let Some(reason) = shutdown::reason() {
        shutdown::end(reason);
    }
    match ended {
        Ok(CommandOutcome::Yes) => ExitCode::SUCCESS,
        Ok(CommandOutcome::No) => ExitCode::from(1),
        Ok(CommandOutcome::Code(code)) => ExitCode::from(code),
        Err(failure) => {
            if wants_json(&matches) && !output::has_begun() {
                failure.print_json();
            }
            failure.report(session.colour)
        }
    }
}

/// Returns true if `--format json` is set, in any command.
fn wants_json(matches: &ArgMatches) -> bool {
    if let Some((_, inner)) = matches.subcommand() {
        return wants_json(inner);
    }
    let format = matches.try_get_raw("format").ok().flatten();
    format.is_some_and(|mut values| values.any(|value| value == "json"))
}

/// Value of `--timeout` of any command.
fn time_limit(matches: &ArgMatches) -> Option<Duration> {
    match matches.subcommand() {
        Some((_, inner)) => time_limit(inner),
        None => matches.try_get_one("timeout").ok().flatten().copied(),
    }
}

/// Prints the error in the arguments, or the requested help.
fn print_refusal(error: &clap::Error) {
    use std::io::Write as _;

    let text = error.to_string();
    let hidden = argument_passwords::redact(&text);
    // Nothing can be printed if stderr is closed.
    let _ = if hidden == text {
        error.print()
    } else {
        let hint = argument_passwords::hint().unwrap_or_default();
        writeln!(std::io::stderr(), "{hidden}hint: {hint}")
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn helps_without_example(command: &clap::Command, found: &mut Vec<String>) {
        for inner in command.get_subcommands() {
            let help = inner.get_after_help().map(ToString::to_string);
            if !help.is_some_and(|help| help.contains("\n  wincimg ")) {
                found.push(inner.get_name().to_owned());
            }
            helps_without_example(inner, found);
        }
    }

    #[test]
    fn every_commands_help_has_an_example() {
        let mut found = Vec::new();
        helps_without_example(&Cli::command(), &mut found);
        assert_eq!(found, Vec::<String>::new());
    }
}
