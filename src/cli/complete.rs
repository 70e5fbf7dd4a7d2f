//! Shell completion, and `wincimg completions`, which prints the script of a shell.
//!
//! The scripts of `wincimg completions` run the program with `WINCIMG_COMPLETE=N`: it answers
//! `wincimg -- WORD…` with the candidates for word N, one per line: the word, a tab, its
//! description. It reads files and uses no network.

mod candidates;

use crate::cli::prelude::*;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

pub(super) use candidates::*;
use clap::{ArgMatches, CommandFactory};
use clap_complete::engine::{CompletionCandidate, complete};

use super::Cli;

/// Variable with the index of the word to complete.
const VARIABLE: &str = "WINCIMG_COMPLETE";

/// Answers a completion script, if one calls.
pub(super) fn answer() -> Option<ExitCode> {
    let (mut words, index) = completion_request()?;
    words.truncate(index + 1);
    words.resize(index + 1, OsString::new());
    let is_new = words.last().is_some_and(|word| word.is_empty());
    let folder = std::env::current_dir().ok();
    // An invalid command line has no candidates.
    let found = complete(&mut Cli::command(), words, index, folder.as_deref()).unwrap_or_default();
    let is_flag = |candidate: &CompletionCandidate| {
        candidate.get_value().as_encoded_bytes().starts_with(b"-")
    };
    // Flags are offered only after a typed prefix: they would hide the other candidates.
    let hides_flags = is_new && !found.iter().all(is_flag);
    let mut lines = String::new();
    for candidate in found
        .iter()
        .filter(|found| !(hides_flags && is_flag(found)))
    {
        if let Some(value) = candidate.get_value().to_str().filter(|text| is_plain(text)) {
            let help = candidate.get_help().map(ToString::to_string);
            let help = help.as_deref().and_then(|help| help.lines().next());
            let help = help.filter(|help| is_plain(help)).unwrap_or_default();
            let _ = writeln!(lines, "{value}\t{help}");
        }
    }
    // Nothing can be printed if stdout is closed.
    let _ = io::stdout().write_all(lines.as_bytes());
    Some(ExitCode::SUCCESS)
}

/// The typed words, and the index of the one to complete.
fn completion_request() -> Option<(Vec<OsString>, usize)> {
    let index = std::env::var(VARIABLE).ok()?.parse().ok()?;
    let mut arguments = std::env::args_os().skip(1);
    let is_asked = arguments.next()? == "--";
    let words: Vec<OsString> = arguments.collect();
    // A script passes all words but the last, if that is empty and its shell drops it.
    (is_asked && (1..=words.len()).contains(&index)).then_some((words, index))
}

/// The arguments before the word to complete, as far as they can be parsed.
fn typed() -> Option<ArgMatches> {
    let (words, index) = completion_request()?;
    let command = Cli::command().ignore_errors(true);
    let matches = command.try_get_matches_from(&words[..index]).ok()?;
    let (name, inner) = matches.subcommand()?;
    let in_group = inner
        .subcommand()
        .filter(|_| ["image", "recipe"].contains(&name));
    Some(in_group.map_or(inner, |(_, inner)| inner).clone())
}

/// Names with control characters are left out: they would break lines.
fn is_plain(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

/// Print the completion script for a shell
///
/// Completes recipes and their variables, base images, OCI layouts, Dockerfile stages and
/// kubeconfig contexts, without network access.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    echo 'source <(wincimg completions bash)' >> ~/.bashrc\n  \
    echo 'autoload -Uz compinit; compinit; source <(wincimg completions zsh)' \\\n      \
    >> ~/.zshrc\n  \
    wincimg completions fish > ~/.config/fish/completions/wincimg.fish\n  \
    Add-Content $PROFILE 'wincimg completions powershell | Out-String | iex'")]
pub(super) struct Completions {
    /// Shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
    /// Output format: the script, or JSON that contains it
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Fish,
    #[value(alias = "pwsh")]
    Powershell,
    Zsh,
}

impl Shell {
    fn script(self) -> &'static str {
        match self {
            Self::Bash => include_str!("../../templates/completions/wincimg.bash"),
            Self::Fish => include_str!("../../templates/completions/wincimg.fish"),
            Self::Powershell => include_str!("../../templates/completions/wincimg.ps1"),
            Self::Zsh => include_str!("../../templates/completions/wincimg.zsh"),
        }
    }
}

impl Completions {
    pub(super) fn run(self) -> Result<CommandOutcome> {
        let script = self.shell.script();
        let shell = self.shell.to_possible_value();
        let shell = shell.as_ref().map_or("", |value| value.get_name());
        let answer = || json!({"shell": shell, "script": script});
        self.format
            .print(answer, |out| out.write_all(script.as_bytes()))
    }
}
