//! Errors of running an image under wine.

use std::io;
use std::path::Path;

use wincimg_common::diagnose::{Diagnose, Problem};

use crate::drive::DriveError;

/// An image that cannot be run under wine.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "wine/failed")]
pub enum WineError {
    /// The image's program cannot be started.
    #[error("cannot start {command_line}: {}", reason(*code))]
    Program {
        /// The whole command line.
        command_line: String,
        /// Windows error code.
        code: u32,
    },
    /// Anything else.
    #[error(transparent)]
    #[diagnose(forward)]
    Other(#[from] Problem),
}

pub(super) fn failed(problem: impl Into<String>) -> Problem {
    Problem::new("wine/failed", problem)
}

/// Error of writing a file or folder.
pub(super) fn unwritable(path: &Path) -> impl Fn(io::Error) -> WineError {
    move |error| {
        failed(format!("cannot write {}", path.display()))
            .hint("a wine prefix requires 700 MB: set TMPDIR to a folder with enough space")
            .source(error)
            .into()
    }
}

impl From<DriveError> for WineError {
    fn from(error: DriveError) -> Self {
        unwritable(&error.path)(error.source)
    }
}

/// Error for wine that ended before the program's exit was known.
pub(super) fn exited_early() -> WineError {
    failed("wine ended before the program did").into()
}

const NOT_FOUND: [u32; 2] = [2, 3];
const NOT_64_BIT: [u32; 2] = [193, 216];

fn reason(code: u32) -> String {
    match code {
        code if NOT_FOUND.contains(&code) => {
            "program not found in the image's own layers or in wine".to_owned()
        }
        code if NOT_64_BIT.contains(&code) => {
            "it is not a program for 64-bit Windows on this processor".to_owned()
        }
        code => format!("Windows error {code}"),
    }
}

impl WineError {
    /// Returns true if the image's program or one that it requires is missing.
    pub fn is_missing_program(&self) -> bool {
        matches!(self, Self::Program { code, .. } if NOT_FOUND.contains(code))
    }
}
