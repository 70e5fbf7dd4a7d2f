//! The shim's options, from its command line and from `SHIM_*` variables.
//!
//! The variables win: the command line is baked into an image, the environment belongs to whoever
//! runs it.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::glob::{self, LogFiles};
use crate::limit;

/// The variable for the log files, of which a recipe's `logs` makes use.
pub const LOG_VARIABLE: &str = "SHIM_LOG";

/// What `--help` prints.
pub const HELP: &str = include_str!("help.txt");

/// What the shim was asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// Print the help.
    Help,
    /// Print the version.
    Version,
    /// Wait for a stop request and nothing else.
    Pause(Settings),
    /// Run a program, a service or both.
    Run {
        /// The options in force.
        settings: Settings,
        /// Which token of the command line names the program; none where a service is all there is.
        program: Option<usize>,
    },
}

/// The options in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The time from the stop request to the end; none: what the container's registry allows.
    pub stop_timeout: Option<Duration>,
    /// How long to wait before stopping anything.
    pub drain: Duration,
    /// How the program is told to stop.
    pub stop_signal: StopSignal,
    /// A command line to run first when a stop is requested.
    pub pre_stop: Option<Vec<u16>>,
    /// A Windows service to run.
    pub service: Option<Vec<u16>>,
    /// Whether processes that the program leaves behind are ended with it.
    pub kill_tree: bool,
    /// Log files whose lines go to standard output.
    pub logs: Vec<LogFiles>,
    /// A `LogMonitorConfig.json` that names more of them.
    pub log_config: Option<Vec<u16>>,
    /// How messages are written.
    pub log_format: LogFormat,
    /// Whether only warnings and errors are written.
    pub quiet: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            stop_timeout: None,
            drain: Duration::ZERO,
            stop_signal: StopSignal::CtrlBreak,
            pre_stop: None,
            service: None,
            kill_tree: true,
            logs: Vec::new(),
            log_config: None,
            log_format: LogFormat::Text,
            quiet: false,
        }
    }
}

/// How a program is told to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// `CTRL_BREAK_EVENT`, to the program's own process group.
    CtrlBreak,
    /// `CTRL_C_EVENT`, to everything on the console.
    CtrlC,
    /// `WM_CLOSE`, to the program's windows.
    Close,
    /// Nothing: the pre-stop command tells it, or the end of the service does.
    None,
}

impl StopSignal {
    /// The word that stands for it in options and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CtrlBreak => "ctrl-break",
            Self::CtrlC => "ctrl-c",
            Self::Close => "close",
            Self::None => "none",
        }
    }
}

/// How messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// A line of words.
    Text,
    /// A JSON object a line.
    Json,
}

impl LogFormat {
    /// The word that stands for it in options.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// Why the options make no sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UsageError {
    /// An option that does not exist.
    UnknownOption(String),
    /// An option stands without its value.
    MissingValue(&'static str),
    /// A value is not of its kind.
    BadValue {
        /// The option or variable.
        name: &'static str,
        /// What it was given.
        value: String,
        /// What it takes.
        expected: &'static str,
    },
    /// A word where `--` or an option was expected.
    Stray(String),
    /// An option that has no meaning in pause mode.
    NotWithPause(&'static str),
    /// Neither a program nor a service was named.
    NothingToRun,
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownOption(option) => {
                write!(f, "unknown option {option}; put -- before the program")
            }
            Self::MissingValue(name) => write!(f, "{name} needs a value"),
            Self::BadValue {
                name,
                value,
                expected,
            } => write!(f, "{name} takes {expected}, not '{value}'"),
            Self::Stray(word) => write!(f, "unexpected '{word}'; put -- before the program"),
            Self::NotWithPause(name) => write!(f, "{name} has no meaning in pause mode"),
            Self::NothingToRun => f.write_str("no program to run; give one after --, or --service"),
        }
    }
}

impl core::error::Error for UsageError {}

/// Reads the options from a command line's tokens (the first is the shim's own name) and from the
/// environment. Variables that are empty count as not set.
pub fn parse<'a>(
    tokens: impl IntoIterator<Item = &'a [u16]>,
    variable: impl Fn(&str) -> Option<Vec<u16>>,
) -> Result<Request, UsageError> {
    let mut settings = Settings::default();
    let mut first_given = None;
    let mut pause = false;
    let mut program = None;
    let mut tokens = tokens.into_iter().enumerate().skip(1).peekable();
    while let Some((_, token)) = tokens.next() {
        let token = String::from_utf16_lossy(token);
        match token.as_str() {
            "--" => {
                program = tokens.peek().map(|&(index, _)| index);
                break;
            }
            "-h" | "--help" => return Ok(Request::Help),
            "-v" | "-V" | "--version" => return Ok(Request::Version),
            "pause" => pause = true,
            _ => {
                let given = Given::of(&token)?;
                let value = match given.value {
                    Some(value) => value.encode_utf16().collect(),
                    None => tokens
                        .next_if(|(_, next)| *next != DASHES)
                        .map(|(_, next)| next.to_vec())
                        .ok_or(UsageError::MissingValue(given.option.flag))?,
                };
                (given.option.set)(&mut settings, given.option.flag, &value)?;
                if !given.option.in_pause {
                    first_given.get_or_insert(given.option.flag);
                }
            }
        }
    }
    if pause {
        if let Some(flag) = first_given {
            return Err(UsageError::NotWithPause(flag));
        }
        if program.is_some() {
            return Err(UsageError::NotWithPause("a program"));
        }
    }
    for option in &OPTIONS {
        if let Some(value) = variable(option.variable).filter(|value| !value.is_empty()) {
            (option.set)(&mut settings, option.variable, &value)?;
        }
    }
    if pause {
        Ok(Request::Pause(settings))
    } else if program.is_none() && settings.service.is_none() {
        Err(UsageError::NothingToRun)
    } else {
        Ok(Request::Run { settings, program })
    }
}

const DASHES: &[u16] = &[b'-' as u16, b'-' as u16];

/// An option as it stands on the command line.
struct Given<'a> {
    option: &'static Opt,
    /// None where the value is the next token.
    value: Option<&'a str>,
}

impl<'a> Given<'a> {
    fn of(token: &'a str) -> Result<Self, UsageError> {
        let (flag, value) = match token.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (token, None),
        };
        let named = |name: &str| OPTIONS.iter().find(|option| option.flag == name);
        if let Some(option) = named(flag) {
            return Ok(Self {
                option,
                value: value.or(option.bare),
            });
        }
        if token == "--no-kill-tree"
            && let Some(option) = named("--kill-tree")
        {
            return Ok(Self {
                option,
                value: Some("off"),
            });
        }
        Err(if token.starts_with('-') {
            UsageError::UnknownOption(token.into())
        } else {
            UsageError::Stray(token.into())
        })
    }
}

/// What is known of an option.
struct Opt {
    flag: &'static str,
    variable: &'static str,
    /// The value that the flag alone stands for, where it needs none.
    bare: Option<&'static str>,
    in_pause: bool,
    /// Sets the option from a value; the name is for the message where that fails.
    set: fn(&mut Settings, &'static str, &[u16]) -> Result<(), UsageError>,
}

const OPTIONS: [Opt; 10] = [
    Opt {
        flag: "--stop-timeout",
        variable: "SHIM_STOP_TIMEOUT",
        bare: None,
        in_pause: false,
        set: |settings, name, value| {
            settings.stop_timeout = if glob::is_same(value, "auto") {
                None
            } else {
                Some(time(name, value, "seconds or 'auto'")?)
            };
            Ok(())
        },
    },
    Opt {
        flag: "--drain",
        variable: "SHIM_DRAIN",
        bare: None,
        in_pause: false,
        set: |settings, name, value| {
            settings.drain = time(name, value, "seconds")?;
            Ok(())
        },
    },
    Opt {
        flag: "--stop-signal",
        variable: "SHIM_STOP_SIGNAL",
        bare: None,
        in_pause: false,
        set: |settings, name, value| {
            let signals = [
                StopSignal::CtrlBreak,
                StopSignal::CtrlC,
                StopSignal::Close,
                StopSignal::None,
            ];
            let words = signals.map(StopSignal::as_str);
            let place = one_of(name, value, &words, "ctrl-break, ctrl-c, close or none")?;
            settings.stop_signal = signals[place];
            Ok(())
        },
    },
    Opt {
        flag: "--pre-stop",
        variable: "SHIM_PRE_STOP",
        bare: None,
        in_pause: false,
        set: |settings, name, value| {
            settings.pre_stop = named(name, value, "a command or 'none'")?;
            Ok(())
        },
    },
    Opt {
        flag: "--service",
        variable: "SHIM_SERVICE",
        bare: None,
        in_pause: false,
        set: |settings, name, value| {
            settings.service = named(name, value, "a service's name or 'none'")?;
            Ok(())
        },
    },
    Opt {
        flag: "--kill-tree",
        variable: "SHIM_KILL_TREE",
        bare: Some("on"),
        in_pause: false,
        set: |settings, name, value| {
            settings.kill_tree = switch(name, value)?;
            Ok(())
        },
    },
    Opt {
        flag: "--log",
        variable: LOG_VARIABLE,
        bare: None,
        in_pause: false,
        set: add_logs,
    },
    Opt {
        flag: "--log-config",
        variable: "SHIM_LOG_CONFIG",
        bare: None,
        in_pause: false,
        set: |settings, name, value| {
            settings.log_config = named(name, value, "a file's path or 'none'")?;
            Ok(())
        },
    },
    Opt {
        flag: "--log-format",
        variable: "SHIM_LOG_FORMAT",
        bare: None,
        in_pause: true,
        set: |settings, name, value| {
            let formats = [LogFormat::Text, LogFormat::Json];
            let words = formats.map(LogFormat::as_str);
            settings.log_format = formats[one_of(name, value, &words, "text or json")?];
            Ok(())
        },
    },
    Opt {
        flag: "--quiet",
        variable: "SHIM_QUIET",
        bare: Some("on"),
        in_pause: true,
        set: |settings, name, value| {
            settings.quiet = switch(name, value)?;
            Ok(())
        },
    },
];

fn bad(name: &'static str, value: &[u16], expected: &'static str) -> UsageError {
    UsageError::BadValue {
        name,
        value: String::from_utf16_lossy(value),
        expected,
    }
}

/// Which of a few words a value is.
#[inline(never)]
fn one_of(
    name: &'static str,
    value: &[u16],
    words: &[&str],
    expected: &'static str,
) -> Result<usize, UsageError> {
    let place = words.iter().position(|word| glob::is_same(value, word));
    place.ok_or_else(|| bad(name, value, expected))
}

fn time(name: &'static str, value: &[u16], expected: &'static str) -> Result<Duration, UsageError> {
    limit::seconds(value).ok_or_else(|| bad(name, value, expected))
}

fn switch(name: &'static str, value: &[u16]) -> Result<bool, UsageError> {
    let words = ["on", "true", "yes", "1", "off", "false", "no", "0"];
    one_of(name, value, &words, "on or off").map(|place| place < 4)
}

/// A text, or `none` to take back one that the image's entry point gives.
fn named(
    name: &'static str,
    value: &[u16],
    expected: &'static str,
) -> Result<Option<Vec<u16>>, UsageError> {
    if value.iter().all(|&unit| unit == u16::from(b' ')) {
        Err(bad(name, value, expected))
    } else if glob::is_same(value, "none") {
        Ok(None)
    } else {
        Ok(Some(value.to_vec()))
    }
}

/// Adds log files to those of the options before; the variable replaces them all.
fn add_logs(settings: &mut Settings, name: &'static str, value: &[u16]) -> Result<(), UsageError> {
    if name == LOG_VARIABLE {
        settings.logs.clear();
    }
    for pattern in value.split(|&unit| unit == u16::from(b';')) {
        if glob::is_path(pattern) {
            settings.logs.push(LogFiles {
                pattern: pattern.to_vec(),
                named: false,
            });
        // A name alone is a mistake, or the format that this option took once.
        } else if !pattern.is_empty() && !glob::is_same(value, "none") {
            return Err(bad(name, pattern, "paths, joined by ';', or 'none'"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
