//! Interpreter for RUN lines: parses a line with the grammar of its shell and applies its commands,
//! in order, to an [`ImageState`].
//!
//! Nothing is guessed: an unsupported command, option or syntax, and a result that depends on
//! unknown content of the image, is a [`ScriptError`] that names it. Nothing is downloaded either:
//! whatever depends on a download is [`Deferred`].
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
pub mod script;
mod tools;
mod traced_text;
mod variables;
mod wildcards;

#[cfg(test)]
mod tests;

pub use error::{ScriptError, ScriptErrorKind};
pub use image::{
    Algorithm, Deferred, EntryKind, IisCommand, ImageAction, ImageState, InstallAction,
    InstallerProgram, LinkAction, Lookup, OverwriteMode, PackageFeed, ServiceChange, UnpackAction,
    UnpackFormat,
};
use process::Process;
use traced_text::TracedText;
use variables::Variables;
pub use variables::is_administrator;
use wincimg_windows::path::ImagePath;

/// Command of a RUN line.
#[derive(Debug, Clone, Copy)]
pub enum RunCommand<'a> {
    /// Text for the shell, with its lines joined; a here-document keeps its line ends.
    Shell {
        /// Command line of the current SHELL.
        shell: &'a [String],
        /// Text of the line.
        text: &'a str,
    },
    /// Program and arguments.
    Exec(&'a [String]),
}

/// Environment of a RUN line.
#[derive(Debug, Clone, Copy)]
pub struct RunEnvironment<'a> {
    /// Variables of the image configuration and the build arguments.
    pub variables: &'a [(String, String)],
    /// Working folder.
    pub folder: &'a ImagePath,
    /// User of the image configuration; `ContainerAdministrator` if none.
    pub user: Option<&'a str>,
}

/// Applies a RUN line to an image. Changes made before an error are kept.
pub fn run_line(
    command: RunCommand<'_>,
    setting: RunEnvironment<'_>,
    image: &mut dyn ImageState,
) -> Result<(), ScriptError> {
    let variables = Variables::new(setting.variables, setting.user);
    let mut machine = Process::new(image, variables, setting.folder.clone());
    let code = match command {
        RunCommand::Shell { shell, text } => {
            let mut line = TracedText::from_one(&shell.join(" "), 0);
            line.push(' ', 0);
            line.append(&TracedText::new(text, 0));
            tools::command_line(&mut machine, &line)
        }
        RunCommand::Exec(words) => {
            let words: Vec<TracedText> = words
                .iter()
                .map(|word| TracedText::from_one(word, 0))
                .collect();
            tools::program(&mut machine, &words)
        }
    };
    match code.map_err(|error| error.at_position(0))? {
        0 => Ok(()),
        code => {
            let error = machine.error.take();
            let error = error.unwrap_or_else(|| {
                ScriptError::fails(format!("the line ends with exit code {code}"))
            });
            Err(error.at_position(0))
        }
    }
}
