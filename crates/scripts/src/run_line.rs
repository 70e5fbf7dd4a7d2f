//! A RUN line as a whole.

use wincimg_windows::path::ImagePath;
use wincimg_windows::quoting::argv;

use super::error::ScriptError;
use super::image::ImageState;
use super::process::Process;
use super::tools::{self, Starter};
use super::traced_text::TracedText;
use super::variables::Variables;

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
#[derive(Clone, Copy)]
pub struct RunEnvironment<'a> {
    /// Values of the image configuration's variables and of build arguments, by names in any case.
    pub variables: &'a dyn Fn(&str) -> Option<String>,
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
            tools::command_line(&mut machine, Starter::Windows, &line)
        }
        RunCommand::Exec(words) => {
            let line = TracedText::from_one(&argv::join(words), 0);
            tools::command_line(&mut machine, Starter::Daemon, &line)
        }
    };
    match code.map_err(|error| error.at_position(0))? {
        0 => match machine.unread.take() {
            Some(error) => Err(error.at_position(0)),
            None => Ok(()),
        },
        code => Err(machine
            .take_error(format!("the line ends with exit code {code}"))
            .at_position(0)),
    }
}
