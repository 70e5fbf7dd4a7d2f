//! RUN lines without running them: read with the grammar of the shell in force, command by command,
//! and carried out on an [`ImageState`] where every one of them is understood.
//!
//! Nothing is guessed at. A command, option or piece of grammar that is not understood, and an
//! outcome that depends on something that nobody has looked at, is a [`ScriptError`] that names it. What
//! a line does is done in order, each command seeing what the ones before it left.
//!
//! Nothing is downloaded: whatever depends on a download is [`Later`].
//!
//! ```
//! use wincimg_scripts::script::read;
//!
//! // How an argument is written does not matter, what it says does.
//! assert!(read("Remove-Item 'C:\\a b'").is_equivalent(&read("Remove-Item \"C:\\a b\"")));
//! assert!(!read("Remove-Item C:\\a b").is_equivalent(&read("Remove-Item \"C:\\a b\"")));
//! ```

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

#[cfg(test)]
mod tests;

pub use error::{ScriptError, ScriptErrorKind};
pub use image::{
    AccessGrant, Algorithm, EntryKind, IisCommand, ImageAction, ImageState, Later, Lookup,
    OverwriteMode, ServiceChange, ServiceStart, UnpackAction, UnpackFormat,
};
use process::Process;
use traced_text::TracedText;
use variables::Variables;
use wincimg_windows::path::ImagePath;

/// What stands after `RUN`.
#[derive(Debug, Clone, Copy)]
pub enum RunCommand<'a> {
    /// A text for the shell, its lines joined; a here-document with its line ends.
    Shell {
        /// The words of the shell in force.
        shell: &'a [String],
        /// The text.
        text: &'a str,
    },
    /// A program and its arguments.
    Exec(&'a [String]),
}

/// What a line is run in.
#[derive(Debug, Clone, Copy)]
pub struct RunEnvironment<'a> {
    /// The variables of the image's configuration and of the build's arguments.
    pub variables: &'a [(String, String)],
    /// The working folder.
    pub folder: &'a ImagePath,
    /// Who runs it, where the image says so; otherwise `ContainerAdministrator`.
    pub user: Option<&'a str>,
}

/// Does to an image what a line does; what was done before trouble came stays done.
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
    match code.map_err(|trouble| trouble.at_position(0))? {
        0 => Ok(()),
        code => {
            let error = machine.error.take();
            let trouble = error.unwrap_or_else(|| {
                ScriptError::fails(format!("the line ends with exit code {code}"))
            });
            Err(trouble.at_position(0))
        }
    }
}
