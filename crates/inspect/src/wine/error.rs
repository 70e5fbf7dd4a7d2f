//! Why an image could not be tried.

use std::io;
use std::path::PathBuf;

use wincimg_common::diagnose::Diagnose;

/// An image that could not be tried.
#[derive(Debug, thiserror::Error, Diagnose)]
#[diagnose(code = "wine/failed")]
pub enum WineError {
    /// It is not installed.
    #[error("wine is not installed, which runs Windows programs here")]
    #[diagnose(code = "wine/missing", hint = "apt-get install wine64")]
    NoWine,
    /// Something else than what was named is there.
    #[error("there is no wine at {}", file.display())]
    #[diagnose(
        code = "wine/missing",
        hint = "unset WINELOADER and WINESERVER, or set them to wine's files"
    )]
    NotThere {
        /// The file.
        file: PathBuf,
    },
    /// The machine's disk failed.
    #[error("cannot write {}", path.display())]
    #[diagnose(hint = "a Windows of wine takes 700 MB: set TMPDIR to a folder with room")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// wine could not be started.
    #[error("cannot start {}", program.display())]
    NotStarted {
        /// The program.
        program: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// wine did not do what it was started for.
    #[error("wine cannot {what}: {}", said.trim())]
    Failed {
        /// What it was started for.
        what: &'static str,
        /// What it said.
        said: String,
    },
    /// A path of this machine that Windows programs cannot have.
    #[error("the folder for temporary files, {}, has a name that is not text", path.display())]
    NotText {
        /// The path.
        path: PathBuf,
    },
    /// The image's folder cannot be entered.
    #[error("cannot enter the image's working folder {folder}: error {code} of Windows")]
    Folder {
        /// The folder.
        folder: String,
        /// The error.
        code: u32,
    },
    /// The image's program does not start.
    #[error("cannot start {command_line}: {}", reason(*code))]
    Program {
        /// The whole command line.
        command_line: String,
        /// Windows' error.
        code: u32,
    },
    /// wine ended before the program's end was known.
    #[error("wine ended before the program did")]
    Lost,
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
    /// Whether the image's program is not there, or another one that it takes.
    pub fn is_missing_program(&self) -> bool {
        matches!(self, Self::Program { code, .. } if NOT_FOUND.contains(code))
    }
}
