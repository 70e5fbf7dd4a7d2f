//! Interpreter for RUN lines: parses a line with the grammar of its shell and applies its commands,
//! in order, to an [`ImageState`].
//!
//! Nothing is guessed: an unsupported command, option or syntax, and a result that depends on
//! unknown content of the image, is a [`ScriptError`] that names it. Nothing is downloaded either:
//! whatever depends on a download is deferred.
//!
//! ```
//! use wincimg_scripts::script::read;
//!
//! // The quoting of an argument does not matter, its value does.
//! assert!(read("Remove-Item 'C:\\a b'").is_equivalent(&read("Remove-Item \"C:\\a b\"")));
//! assert!(!read("Remove-Item C:\\a b").is_equivalent(&read("Remove-Item \"C:\\a b\"")));
//! ```

mod chocolatey;
mod cmd;
mod error;
mod image;
mod permissions;
mod powershell;
mod process;
mod run_line;
pub mod script;
mod tools;
mod traced_text;
mod variables;
mod wildcards;

#[cfg(test)]
mod tests;

pub use error::{ScriptError, ScriptErrorKind};
pub use image::{
    EntryKind, IisCommand, ImageAction, ImageState, InstallAction, InstallerProgram, LinkAction,
    Lookup, PackageFeed, PendingDownload, ServiceChange, UnpackAction, UnpackFormat,
};
pub use run_line::{RunCommand, RunEnvironment, run_line};
pub use tools::is_windows_program;
pub use variables::is_administrator;
