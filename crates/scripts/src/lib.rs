//! RUN lines without running them: read with the grammar of the shell in force, command by command,
//! and carried out on an [`Image`] where every one of them is understood.
//!
//! Nothing is guessed at. A command, option or piece of grammar that is not understood, and an
//! outcome that depends on something that nobody has looked at, is a [`Trouble`] that names it. What
//! a line does is done in order, each command seeing what the ones before it left.
//!
//! Nothing is downloaded: whatever depends on a download is [`Later`].
//!
//! ```
//! use wincimg_scripts::script::read;
//!
//! // How an argument is written does not matter, what it says does.
//! assert!(read("Remove-Item 'C:\\a b'").does_what(&read("Remove-Item \"C:\\a b\"")));
//! assert!(!read("Remove-Item C:\\a b").does_what(&read("Remove-Item \"C:\\a b\"")));
//! ```

mod cmd;
mod image;
mod machine;
mod powershell;
mod rights;
pub mod script;
mod tools;
mod traced;
mod trouble;
mod variables;

#[cfg(test)]
mod tests;

pub use image::{
    Access, Action, Algorithm, Entry, Existing, Format, Iis, Image, Later, Seen, Service,
    ServiceStart, Unpack,
};
use machine::Machine;
use traced::Traced;
pub use trouble::{Trouble, TroubleKind};
use variables::Variables;
use wincimg_windows::path::ImagePath;

/// What stands after `RUN`.
#[derive(Debug, Clone, Copy)]
pub enum Command<'a> {
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
pub struct Setting<'a> {
    /// The variables of the image's configuration and of the build's arguments.
    pub variables: &'a [(String, String)],
    /// The working folder.
    pub folder: &'a ImagePath,
    /// Who runs it, where the image says so; otherwise `ContainerAdministrator`.
    pub user: Option<&'a str>,
}

/// Does to an image what a line does; what was done before trouble came stays done.
pub fn perform(
    command: Command<'_>,
    setting: Setting<'_>,
    image: &mut dyn Image,
) -> Result<(), Trouble> {
    let variables = Variables::new(setting.variables, setting.user);
    let mut machine = Machine::new(image, variables, setting.folder.clone());
    let code = match command {
        Command::Shell { shell, text } => {
            let mut line = Traced::from_one(&shell.join(" "), 0);
            line.push(' ', 0);
            line.append(&Traced::new(text, 0));
            tools::command_line(&mut machine, &line)
        }
        Command::Exec(words) => {
            let words: Vec<Traced> = words.iter().map(|word| Traced::from_one(word, 0)).collect();
            tools::program(&mut machine, &words)
        }
    };
    match code.map_err(|trouble| trouble.placed(0))? {
        0 => Ok(()),
        code => {
            let error = machine.error.take();
            let trouble = error
                .unwrap_or_else(|| Trouble::fails(format!("the line ends with exit code {code}")));
            Err(trouble.placed(0))
        }
    }
}
