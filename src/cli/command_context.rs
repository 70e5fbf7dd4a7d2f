//! Context that commands share: verbosity and output.

use std::fmt::Display;
use std::io::{IsTerminal, Write};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use wincimg_common::progress::Reporter;
use wincimg_common::untrusted::Untrusted;

use super::argument_passwords;
use super::cache_args::CacheArgs;
use super::error::label;

/// One run of the program.
#[derive(Debug)]
pub(super) struct Session {
    /// Only the result and errors are wanted.
    pub(super) quiet: bool,
    /// True if stderr takes colours and moving bars.
    pub(super) colour: bool,
    /// What is kept between runs.
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
        session
    }

    /// Tells the user something that is not the result.
    pub(super) fn note(&self, message: impl Display) {
        self.print_message("note:", "36", message);
    }

    /// Tells the user something that may need attention.
    pub(super) fn warn(&self, message: impl Display) {
        self.print_message("warning:", "33", message);
    }

    fn print_message(&self, word: &str, colour_code: &str, message: impl Display) {
        if !self.quiet {
            let word = label(word, colour_code, self.colour);
            // Nothing can be printed when stderr is closed.
            let message = Untrusted(message).to_string();
            let _ = writeln!(
                std::io::stderr(),
                "{word} {}",
                argument_passwords::redact(&message)
            );
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
            .with_writer(std::io::stderr)
            .with_ansi(self.colour)
            .with_target(verbose > 1)
            .without_time();
        tracing_subscriber::registry()
            .with(wanted)
            .with(lines)
            .init();
    }
}

impl Reporter for Session {
    fn note(&self, message: &dyn Display) {
        Self::note(self, message);
    }

    fn warn(&self, message: &dyn Display) {
        Self::warn(self, message);
    }
}

/// Returns true if stderr takes colours and bars.
pub(super) fn colour_on_stderr() -> bool {
    colour_on(&std::io::stderr())
}

/// Colours and bars are for people in front of a terminal who did not ask for none.
pub(super) fn colour_on(stream: &impl IsTerminal) -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    // A terminal that does not say what it is can neither draw nor colour.
    let can_draw = cfg!(windows) || std::env::var_os("TERM").is_some_and(|kind| kind != "dumb");
    stream.is_terminal() && can_draw && !set("NO_COLOR") && !set("CI")
}
