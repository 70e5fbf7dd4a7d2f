//! Prompts on a terminal, optionally without echo.

use std::io::BufRead;

#[cfg(unix)]
use wincimg_common::lock;

use crate::cli::prelude::*;

pub(super) fn line(question: &str) -> Result<String> {
    ask(question)?;
    read()
}

/// Prompts for a line without echo.
#[cfg(unix)]
pub(super) fn hidden(question: &str) -> Result<String> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

    ask(question)?;
    let reading = "cannot use the terminal";
    let before = tcgetattr(io::stdin()).context(reading)?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    silent.local_modes.insert(LocalModes::ECHONL);
    *lock(&BEFORE) = Some(before);
    let answer = tcsetattr(io::stdin(), OptionalActions::Now, &silent)
        .context(reading)
        .and_then(|()| read());
    show_typing();
    answer
}

/// Prompts for a line without echo.
#[cfg(not(unix))]
pub(super) fn hidden(question: &str) -> Result<String> {
    ask(question)?;
    let answer = console::Term::stderr().read_secure_line();
    Ok(answer.context("cannot read from the terminal")?)
}

/// State of the terminal before echo was turned off.
#[cfg(unix)]
static BEFORE: std::sync::Mutex<Option<rustix::termios::Termios>> = std::sync::Mutex::new(None);

/// Restores echo, also if the process is ended by a signal.
pub(super) fn show_typing() {
    #[cfg(unix)]
    if let Some(before) = lock(&BEFORE).take() {
        use rustix::termios::{OptionalActions, tcsetattr};
        // If the terminal does not respond, nothing else can be tried.
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
    }
}

fn ask(question: &str) -> Result<()> {
    let mut terminal = io::stderr();
    let asked = write!(terminal, "{question}").and_then(|()| terminal.flush());
    asked.context("cannot write to the terminal")
}

fn read() -> Result<String> {
    let mut line = String::new();
    let length = io::stdin().lock().read_line(&mut line);
    if length.context("cannot read from the terminal")? == 0 {
        return Err(Failure::usage("empty input"));
    }
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
