//! Context that commands share: verbosity and output.

use std::io::IsTerminal;

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use super::argument_passwords;
use super::cache_args::CacheArgs;
use super::error::label;
use crate::cli::prelude::*;

/// Context of one run of the program.
#[derive(Debug, Clone)]
pub(super) struct Session {
    /// True if only the result and errors are printed.
    pub(super) quiet: bool,
    /// True if stderr supports colours and progress bars.
    pub(super) colour: bool,
    pub(super) cache: CacheArgs,
}

impl Session {
    /// Sets up logging for this run.
    pub(super) fn new(quiet: bool, verbose: u8, cache: CacheArgs) -> Self {
        let session = Self {
            quiet,
            cache,
            colour: colour_on_stderr(),
        };
        if verbose > 0 {
            session.log(verbose);
        }
        if let Some(folder) = session.cache.ignored_folder() {
            session.warn(format!(
                "the cache {} is not used, because other users can change it; set its owner and \
                 mode, or name a folder with --cache-dir DIR",
                folder.display()
            ));
        }
        session
    }

    /// Prints a note, which is not part of the result.
    pub(super) fn note(&self, message: impl Display) {
        self.print_message("note:", "36", message);
    }

    pub(super) fn warn(&self, message: impl Display) {
        self.print_message("warning:", "33", message);
    }

    fn print_message(&self, word: &str, colour_code: &str, message: impl Display) {
        if !self.quiet {
            let word = label(word, colour_code, self.colour);
            let message = UntrustedText(message).to_string();
            let line = format!("{word} {}\n", argument_passwords::redact(&message));
            // Nothing can be printed if stderr is closed.
            let _ = io::stderr().write_all(line.as_bytes());
        }
    }

    fn log(&self, verbose: u8) {
        let own = Targets::new().with_target("wincimg", LevelFilter::DEBUG);
        let wanted = if verbose > 1 {
            own.with_default(LevelFilter::DEBUG)
        } else {
            own
        };
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(io::stderr)
            .with_ansi(self.colour)
            .with_target(verbose > 1)
            .without_time();
        tracing_subscriber::registry()
            .with(wanted)
            .with(lines)
            .init();
    }
}

impl Progress for Session {
    fn note(&self, message: &dyn Display) {
        Self::note(self, message);
    }

    fn warn(&self, message: &dyn Display) {
        Self::warn(self, message);
    }
}

/// Returns true if stderr supports colours and bars.
pub(super) fn colour_on_stderr() -> bool {
    colour_on(&io::stderr())
}

/// Colours and bars require a terminal, and no setting against them.
pub(super) fn colour_on(stream: &impl IsTerminal) -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    // A terminal without a type supports neither.
    let can_draw = cfg!(windows) || std::env::var_os("TERM").is_some_and(|kind| kind != "dumb");
    stream.is_terminal() && can_draw && !set("NO_COLOR") && !set("CI")
}
