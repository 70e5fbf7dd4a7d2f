//! Messages of the shim, to standard error: standard output is the program's.

use core::fmt;

use windows_sys::Win32::Foundation::SYSTEMTIME;
use windows_sys::Win32::System::SystemInformation::GetSystemTime;

use super::environment;
use crate::args::{LogFormat, Settings};
use crate::message::{Level, Message, Time};

/// Numbers for programs that read the log.
pub(super) type Fields<'a> = &'a [(&'static str, u64)];

/// Where messages go and which are wanted.
#[derive(Debug, Clone, Copy)]
pub(super) struct Log {
    format: LogFormat,
    quiet: bool,
}

impl Log {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            format: settings.log_format,
            quiet: settings.quiet,
        }
    }

    pub(super) fn info(self, event: &'static str, fields: Fields<'_>, text: fmt::Arguments<'_>) {
        if !self.quiet {
            self.write(Level::Info, event, fields, text);
        }
    }

    pub(super) fn warning(self, event: &'static str, text: fmt::Arguments<'_>) {
        self.write(Level::Warning, event, &[], text);
    }

    pub(super) fn error(self, event: &'static str, fields: Fields<'_>, text: fmt::Arguments<'_>) {
        self.write(Level::Error, event, fields, text);
    }

    fn write(
        self,
        level: Level,
        event: &'static str,
        fields: Fields<'_>,
        text: fmt::Arguments<'_>,
    ) {
        let message = Message {
            time: now(),
            level,
            event,
            text,
            fields,
        };
        environment::print_error(&message.line(self.format));
    }
}

fn now() -> Time {
    let mut now = SYSTEMTIME::default();
    // SAFETY: the time is written to a local.
    unsafe { GetSystemTime(&raw mut now) };
    Time {
        date: [now.wYear, now.wMonth, now.wDay],
        clock: [now.wHour, now.wMinute, now.wSecond, now.wMilliseconds],
    }
}
