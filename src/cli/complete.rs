//! Shell completion.
//!
//! The scripts of `wincimg completions` ask the program: with `WINCIMG_COMPLETE=N` it answers
//! `wincimg -- WORD…` with what word N can be, a line each: the word, a tab, what it is. It reads
//! files and asks nobody.

mod candidates;

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::ExitCode;

pub(super) use candidates::*;
use clap::{ArgMatches, CommandFactory};
use clap_complete::engine::{CompletionCandidate, complete};

use super::Cli;

/// Variable that holds the index of the word to complete.
const VARIABLE: &str = "WINCIMG_COMPLETE";

/// Answers a script, if it is one that asks.
pub(super) fn answer() -> Option<ExitCode> {
    let (mut words, index) = completion_request()?;
    words.truncate(index + 1);
    words.resize(index + 1, OsString::new());
    let is_new = words.last().is_some_and(|word| word.is_empty());
    let folder = std::env::current_dir().ok();
    // A command line that makes no sense has no word that would fit.
    let found = complete(&mut Cli::command(), words, index, folder.as_deref()).unwrap_or_default();
    let is_flag = |candidate: &CompletionCandidate| {
        candidate.get_value().as_encoded_bytes().starts_with(b"-")
    };
    // Before anything is typed, flags would bury the rest.
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
    // Nothing can be printed when stdout is closed.
    let _ = std::io::stdout().write_all(lines.as_bytes());
    Some(ExitCode::SUCCESS)
}

/// The words that were typed, and which of them is asked about.
fn completion_request() -> Option<(Vec<OsString>, usize)> {
    let index = std::env::var(VARIABLE).ok()?.parse().ok()?;
    let mut arguments = std::env::args_os().skip(1);
    let is_asked = arguments.next()? == "--";
    let words: Vec<OsString> = arguments.collect();
    // A script passes all words but the last, if that is empty and its shell loses it.
    (is_asked && (1..=words.len()).contains(&index)).then_some((words, index))
}

/// The arguments before the word that is asked about, as far as they can be read.
fn typed() -> Option<ArgMatches> {
    let (words, index) = completion_request()?;
    let command = Cli::command().ignore_errors(true);
    let matches = command.try_get_matches_from(&words[..index]).ok()?;
    Some(matches.subcommand()?.1.clone())
}

/// Names with control characters would break lines, or worse.
fn is_plain(text: &str) -> bool {
    !text.chars().any(char::is_control)
}
