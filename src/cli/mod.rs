//! The command line: parses the arguments, runs one command and converts its outcome to an exit
//! code.

mod argument_passwords;
mod base;
mod build;
mod cache_args;
mod check_compat;
mod command_context;
mod command_groups;
mod complete;
mod config;
mod contents;
mod convert;
mod copy;
mod delete;
mod demo;
mod doctor;
mod document_args;
mod error;
mod fleet;
mod groups;
#[cfg(test)]
mod help_examples;
#[cfg(debug_assertions)]
mod hint_check;
mod hosts;
mod hotfix;
mod image_source;
mod images;
mod init;
mod input;
mod inspect;
mod lint;
mod login;
mod manifests;
mod mirror;
mod named_files;
mod node;
mod output;
mod prelude;
mod program_name;
mod progress;
mod prompt;
mod recipe_args;
mod registry_args;
mod render;
mod sbom;
mod scan;
mod security;
mod shutdown;
mod try_image;
mod update;
mod updates;

use std::process::ExitCode;

use build::docker_flags::in_place_of;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Args, CommandFactory as _, FromArgMatches, Parser, Subcommand};
use command_context::Session;
use config::ArgumentsError;
use error::Failure;
use output::{write_json, write_result};
pub(crate) use scan::{ScanReport, ScannedImage};

/// Build, check and copy Windows container images, from Linux.
#[derive(Debug, Parser)]
#[command(
    name = "wincimg",
    version = env!("WINCIMG_VERSION"),
    propagate_version = false,
    max_term_width = 100,
    after_help = "Exit codes: 0 success, 1 the answer is no, 2 invalid usage, 3 failure, 4 requires \
    Windows, 130 and 143 interrupted.\n\
        With --format json an error is an object on stdout too; docs/errors.md lists its codes.",
    mut_subcommands(command_groups::hide_grouped)
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
    /// File with defaults for flags [default: `WINCIMG_CONFIG`, then wincimg.toml]
    ///
    /// wincimg.toml is looked for in this folder and its parents. Your own
    /// ~/.config/wincimg/config.toml is read first.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<std::path::PathBuf>,
    #[command(flatten)]
    cache: cache_args::CacheArgs,
}

#[derive(Debug, Subcommand)]
enum Command {
    Build(Box<build::Build>),
    CheckCompat(check_compat::CheckCompat),
    Completions(complete::Completions),
    #[command(hide = true)]
    Convert(Box<convert::Convert>),
    Demo(demo::Demo),
    Doctor(doctor::Doctor),
    Fleet(Box<fleet::FleetArgs>),
    #[command(hide = true)]
    Hotfix(hotfix::Hotfix),
    Image(command_groups::Image),
    #[command(flatten)]
    OfImage(command_groups::ImageCommand),
    #[command(hide = true)]
    Images(images::Images),
    #[command(hide = true)]
    Init(Box<init::Init>),
    Lint(lint::Lint),
    Login(login::Login),
    Logout(login::Logout),
    Node(Box<node::Node>),
    Recipe(command_groups::Recipe),
    #[command(hide = true)]
    Render(render::Render),
}

impl Command {
    fn run(self, session: &Session) -> Result<CommandOutcome, Failure> {
        let reads_updates = match &self {
            // A group runs one of the other commands; `hotfix` can refresh the table first.
            Self::Image(_)
            | Self::Node(_)
            | Self::Recipe(_)
            | Self::Hotfix(_)
            | Self::Completions(_)
            | Self::Demo(_)
            | Self::Images(_)
            | Self::Login(_)
            | Self::Logout(_) => false,
            Self::OfImage(command) => command.reads_updates(),
            _ => true,
        };
        if reads_updates {
            updates::updates_table(session);
        }
        match self {
            Self::Build(command) => command.run(session),
            Self::CheckCompat(command) => command.run(session),
            Self::Completions(command) => command.run(),
            Self::Convert(command) => command.run(session),
            Self::Demo(command) => command.run(),
            Self::Doctor(command) => command.run(session),
            Self::Fleet(command) => command.run(session),
            Self::Hotfix(command) => command.run(session),
            Self::Image(group) => Self::OfImage(group.command).run(session),
            Self::OfImage(command) => command.run(session),
            Self::Images(command) => command.run(),
            Self::Init(command) => command.run(session),
            Self::Lint(command) => command.run(session),
            Self::Login(command) => command.run(session),
            Self::Logout(command) => command.run(session),
            Self::Node(command) => command.run(session),
            Self::Recipe(group) => group.run(session),
            Self::Render(command) => command.run(session),
        }
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

impl From<bool> for CommandOutcome {
    /// The answer to a question.
    fn from(is_yes: bool) -> Self {
        if is_yes { Self::Yes } else { Self::No }
    }
}

impl CommandOutcome {
    fn code(self) -> u8 {
        match self {
            Self::Yes => 0,
            Self::No => 1,
            Self::Code(code) => code,
        }
    }
}

/// The definition of the command line, for the manual and other generated files.
pub fn command() -> clap::Command {
    Cli::command()
}

#[cfg(test)]
fn with_subcommands(command: &clap::Command) -> Vec<&clap::Command> {
    let below = command.get_subcommands().flat_map(with_subcommands);
    std::iter::once(command).chain(below).collect()
}

/// Parses the arguments, runs the command and returns its exit code.
pub fn main() -> ExitCode {
    if let Some(code) = complete::answer() {
        return code;
    }
    let colour = command_context::colour_on_stderr();
    let (matches, warning) = match config::arguments(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(ArgumentsError::File(failure)) => {
            if typed_format(typed_arguments()).is_some_and(|format| format == "json") {
                failure.print_json();
            }
            return failure.report(colour);
        }
        Err(ArgumentsError::Arguments { error, is_json }) => {
            return print_refusal(error, is_json);
        }
    };
    let command = innermost(&matches);
    let is_json = wants_format(command, "json");
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => return print_refusal(error, is_json),
    };
    let mut session = Session::new(cli.global.quiet, cli.global.verbose, cli.global.cache);
    if let Some(warning) = &warning {
        session.warn(warning);
    }
    wincimg_common::process_group::adopt_orphans();
    let limit = command.try_get_one("timeout").ok().flatten().copied();
    let ended = shutdown::watch(limit, is_json).and_then(|()| cli.command.run(&session));
    if ended.is_ok() {
        wincimg_common::process_group::end_unkept();
    } else {
        wincimg_common::process_group::end_all();
    }
    if let Some(reason) = shutdown::reason() {
        shutdown::end(reason);
    }
    match ended {
        Ok(outcome) => ExitCode::from(outcome.code()),
        Err(failure) => {
            // The ignored settings may be the cause.
            if let Some(warning) = warning.filter(|_| session.quiet) {
                session.quiet = false;
                session.warn(warning);
            }
            if output::take() {
                print_in_format(&failure, command, is_json);
            }
            failure.report(session.colour)
        }
    }
}

/// Prints a failure in place of the result, in the command's format.
fn print_in_format(failure: &Failure, command: &ArgMatches, is_json: bool) {
    if is_json {
        failure.print_json();
    }
    for (name, format) in [
        ("github", output::ReviewFormat::Github),
        ("gitlab", output::ReviewFormat::Gitlab),
    ] {
        if wants_format(command, name) {
            failure.print_annotations(format);
        }
    }
}

/// Returns true if a command's `--format` is set to this.
fn wants_format(command: &ArgMatches, wanted: &str) -> bool {
    let format = command.try_get_raw("format").ok().flatten();
    format.is_some_and(|mut values| values.any(|value| value == wanted))
}

/// The typed arguments as text, with replacements for what is not UTF-8.
fn typed_arguments() -> impl Iterator<Item = String> {
    let arguments = std::env::args_os().skip(1);
    arguments.map(|argument| argument.to_string_lossy().into_owned())
}

/// The value of `--format` in the typed arguments, which may be invalid.
fn typed_format(arguments: impl Iterator<Item = String>) -> Option<String> {
    let mut arguments = arguments.take_while(|argument| argument != "--");
    while let Some(argument) = arguments.next() {
        let Some(rest) = argument.strip_prefix("--format") else {
            continue;
        };
        if rest.is_empty() {
            return arguments.next();
        }
        if let Some(value) = rest.strip_prefix('=') {
            return Some(value.to_owned());
        }
    }
    None
}

/// An error in the arguments: its message in one line, without usage; and its tip.
fn invalid_arguments(text: &str) -> Failure {
    let mut parts = text.split("\n\n").map(|part| {
        let words: Vec<&str> = part.split_whitespace().collect();
        words.join(" ")
    });
    let message = parts.next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(&message);
    let tip = parts.find_map(|part| Some(part.strip_prefix("tip: ")?.to_owned()));
    Failure::usage(message).hint_if(tip)
}

/// The arguments of the innermost command.
fn innermost(mut matches: &ArgMatches) -> &ArgMatches {
    while let Some((_, inner)) = matches.subcommand() {
        matches = inner;
    }
    matches
}

/// Replaces the tip of a flag of `docker build` or `docker login`, and removes that of a flag that
/// another command has: neither is a slip.
fn correct_tip(error: &mut clap::Error) {
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else {
        return;
    };
    // As in `--builder <ADDRESS>`.
    let flag = typed.split([' ', '[', '=']).next().unwrap_or_default();
    let is_of_another = config::is_flag(flag.trim_start_matches('-'));
    let is_mistaken = matches!(
        error.kind(),
        ErrorKind::UnknownArgument | ErrorKind::ValueValidation | ErrorKind::TooManyValues
    );
    // Its tip is for images of Linux.
    let is_slip = matches!(
        error.get(ContextKind::InvalidValue),
        Some(ContextValue::String(value)) if flag == "--platform" && !value.contains("linux")
    );
    let is_mistaken = is_mistaken && !is_slip && config::is_typed_command("build");
    let is_off = typed_arguments().any(|argument| {
        let value = argument.strip_prefix(flag);
        let value = value.and_then(|rest| rest.strip_prefix('='));
        value.and_then(config::boolean) == Some(false)
    });
    let is_password = ["-p", "--password"].contains(&flag) && config::is_typed_command("login");
    let tip = in_place_of(flag).filter(|_| is_mistaken);
    let tip = tip.or(is_password.then_some("pass it on stdin: --password-stdin < FILE"));
    let tip = tip.map(|tip| if is_off { "remove it: it is off" } else { tip });
    // The usage has the similar flag, too.
    if let Some(tip) = tip {
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Usage);
        let tips = ContextValue::StyledStrs(vec![tip.into()]);
        error.insert(ContextKind::Suggested, tips);
    } else if is_of_another && error.remove(ContextKind::SuggestedArg).is_some() {
        error.remove(ContextKind::Usage);
    }
}

/// Prints the error in the arguments, or the requested help, and returns the exit code. `is_json` is
/// the default of the format.
fn print_refusal(mut error: clap::Error, is_json: bool) -> ExitCode {
    use std::io::Write as _;

    correct_tip(&mut error);
    let text = error.to_string();
    let is_json = typed_format(typed_arguments()).map_or(is_json, |format| format == "json");
    if error.exit_code() != 0 && is_json {
        invalid_arguments(&text).print_json();
    }
    let hidden = argument_passwords::redact(&text);
    // A terminal does not show one, as at the end of a line with the line end of Windows.
    let shown = hidden.replace('\r', "\\r");
    let printed = if shown == text {
        error.print().and_then(|()| std::io::stdout().flush())
    } else if hidden == text {
        write!(std::io::stderr(), "{shown}")
    } else {
        let hint = argument_passwords::hint().unwrap_or_default();
        writeln!(std::io::stderr(), "{shown}hint: {hint}")
    };
    match (error.exit_code(), printed) {
        // The reader may close early, as `head` does.
        (0, Err(problem)) if problem.kind() != std::io::ErrorKind::BrokenPipe => {
            let failure = Failure::operation(problem).context("cannot write the result");
            failure.report(command_context::colour_on_stderr())
        }
        // An error cannot be printed if stderr is closed.
        (code, _) => ExitCode::from(u8::try_from(code).unwrap_or(2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_argument_is_an_error_in_json() {
        let refused = |arguments: &[&str]| {
            let error = Cli::try_parse_from(arguments).unwrap_err();
            invalid_arguments(&error.to_string()).document()
        };
        let unknown = refused(&["wincimg", "lint", "--shel", "cmd"]);
        assert_eq!(unknown["code"], "usage");
        assert_eq!(unknown["message"], "unexpected argument '--shel' found");
        let hint = unknown["hint"].as_str().unwrap();
        assert!(hint.contains("'--shell'"), "{hint}");
        let missing = refused(&["wincimg", "build"]);
        let message = missing["message"].as_str().unwrap();
        assert!(message.ends_with("were not provided: <IMAGE>"), "{message}");
    }

    #[test]
    fn the_format_is_found_in_invalid_arguments() {
        for (line, expected) in [
            ("build --nope --format json", Some("json")),
            ("build --format=json", Some("json")),
            ("build --format text json", Some("text")),
            ("build json --format", None),
            ("lint -- --format json", None),
        ] {
            let found = typed_format(line.split(' ').map(str::to_owned));
            assert_eq!(found.as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn no_help_repeats_its_first_paragraph() {
        for command in with_subcommands(&Cli::command()) {
            for argument in command.get_arguments() {
                let help = argument.get_long_help().map(ToString::to_string);
                let help = help.unwrap_or_default();
                let start = |text: &str| text.split(' ').take(3).collect::<Vec<_>>().join(" ");
                let starts: Vec<String> = help.split("\n\n").map(start).collect();
                let again = starts.iter().skip(1).find(|other| **other == starts[0]);
                assert_eq!(again, None, "{}: {help}", command.get_name());
            }
        }
    }

    #[test]
    fn the_help_lists_the_flags_of_hosts_together() {
        for command in with_subcommands(&Cli::command()) {
            let help = command.clone().render_long_help().to_string();
            let lines = help.lines().map(str::trim_start);
            let flags = lines.filter(|line| line.starts_with('-'));
            let flags = flags.filter_map(|line| line.split("--").nth(1)?.split(' ').next());
            let flags: Vec<&str> = flags.collect();
            let Some(kube) = flags.iter().position(|flag| *flag == "kube") else {
                continue;
            };
            let name = command.get_name();
            let expected: &[&str] = if name == "follow" {
                &[]
            } else {
                &["host-build", "nodes"]
            };
            assert!(flags[..kube].ends_with(expected), "{name}: {flags:?}");
            assert!(flags[kube + 1].ends_with("context"), "{name}: {flags:?}");
        }
    }

    #[test]
    fn every_command_takes_a_format_and_its_help_has_an_example() {
        for command in with_subcommands(&Cli::command()).into_iter().skip(1) {
            let name = command.get_name();
            let mut arguments = command.get_arguments();
            let format = arguments.find(|argument| argument.get_long() == Some("format"));
            assert!(format.is_some() || command.has_subcommands(), "{name}");
            // It is not about registries.
            let heading = format.and_then(clap::Arg::get_help_heading);
            assert_eq!(heading, None, "{name}");
            let help = command.get_after_help().map(ToString::to_string);
            let help = help.unwrap_or_default();
            assert!(help.contains("\n  wincimg "), "{name}");
        }
    }
}
