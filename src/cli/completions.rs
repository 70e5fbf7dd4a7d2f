//! `wincimg completions`: prints the completion script of a shell, which calls this program.

use crate::cli::prelude::*;

/// Print the completion script for a shell
///
/// Completes recipes and their variables, base images, OCI layouts, Dockerfile stages and
/// kubeconfig contexts, without network access.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    echo 'source <(wincimg completions bash)' >> ~/.bashrc\n  \
    echo 'autoload -Uz compinit; compinit; source <(wincimg completions zsh)' \\\n      \
    >> ~/.zshrc\n  \
    wincimg completions fish > ~/.config/fish/completions/wincimg.fish\n  \
    Add-Content $PROFILE 'wincimg completions powershell | Out-String | iex'")]
pub(super) struct Completions {
    /// Shell
    #[arg(value_name = "SHELL", value_enum)]
    shell: Shell,
    /// Output format: the script, or JSON that contains it
    #[arg(long, value_enum, default_value = "text")]
    format: OutputFormat,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Fish,
    #[value(alias = "pwsh")]
    Powershell,
    Zsh,
}

impl Shell {
    fn script(self) -> &'static str {
        match self {
            Self::Bash => include_str!("../../templates/completions/wincimg.bash"),
            Self::Fish => include_str!("../../templates/completions/wincimg.fish"),
            Self::Powershell => include_str!("../../templates/completions/wincimg.ps1"),
            Self::Zsh => include_str!("../../templates/completions/wincimg.zsh"),
        }
    }
}

impl Completions {
    pub(super) fn run(self) -> Result<CommandOutcome, Failure> {
        let script = self.shell.script();
        let shell = self.shell.to_possible_value();
        let shell = shell.as_ref().map_or("", |value| value.get_name());
        let answer = || json!({"shell": shell, "script": script});
        self.format
            .print(answer, |out| out.write_all(script.as_bytes()))
    }
}
