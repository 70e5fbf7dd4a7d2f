//! Why an image could not be tried.

use std::io;
use std::path::Path;

use wincimg_common::diagnose::{Diagnose, Problem};

/// An image that could not be tried.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "wine/failed")]
pub enum WineError {
    /// The image's program does not start.
    #[error("cannot start {command_line}: {}", reason(*code))]
    Program {
        /// The whole command line.
        command_line: String,
        /// Windows' error.
        code: u32,
    },
    /// Anything else.
    #[error(transparent)]
    #[diagnose(forward)]
    Other(#[from] Problem),
}

/// wine cannot do something.
pub(super) fn failed(problem: impl Into<String>) -> Problem {
    Problem::new("wine/failed", problem)
}

/// The machine's disk failed at a file or folder.
pub(super) fn unwritable(path: &Path) -> impl Fn(io::Error) -> WineError {
    move |error| {
        failed(format!("cannot write {}", path.display()))
            .hint("a Windows of wine takes 700 MB: set TMPDIR to a folder with room")
            .source(error)
            .into()
    }
}

/// wine ended before the program's end was known.
pub(super) fn lost() -> WineError {
    failed("wine ended before the program did").into()
}

const NOT_FOUND: [u32; 2] = [2, 3];
const NOT_64_BIT: [u32; 2] = [193, 216];

fn reason(code: u32) -> String {
    match code {
        code if NOT_FOUND.contains(&code) => {
            "the image's own layers have no such program, and wine has none either".to_owned()
        }
        code if NOT_64_BIT.contains(&code) => {
            "it is not a program for 64-bit Windows on this processor".to_owned()
        }
        code => format!("error {code} of Windows"),
    }
}

impl WineError {
    /// Returns true if the image's program is not there, or another one that it takes.
    pub fn is_missing_program(&self) -> bool {
        matches!(self, Self::Program { code, .. } if NOT_FOUND.contains(code))
    }
}
