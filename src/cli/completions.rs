//! `wincimg completions`: what a shell needs to complete this program's arguments.

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use serde_json::json;

use super::failure::Failure;
use super::output::{Format, write_json, write_result};
use super::{Answer, Cli};

/// Print the completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  wincimg completions bash > /etc/bash_completion.d/wincimg")]
pub(super) struct Completions {
    /// The shell that will read it
    #[arg(value_name = "SHELL")]
    shell: Shell,
    /// The form of the result: the script, or JSON with the script in it
    #[arg(long, value_enum, default_value = "text")]
    format: Format,
}

impl Completions {
    pub(super) fn run(self) -> Result<Answer, Failure> {
        // The generator panics when its reader goes away, so it writes to memory first.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "wincimg", &mut script);
        write_result(None, |out| match self.format {
            Format::Text => out.write_all(&script),
            Format::Json => {
                let script = String::from_utf8_lossy(&script);
                write_json(
                    &json!({"shell": self.shell.to_string(), "script": script}),
                    out,
                )
            }
        })?;
        Ok(Answer::Yes)
    }
}
