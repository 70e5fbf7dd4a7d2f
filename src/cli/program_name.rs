//! Name of the program: as a kubectl plugin it is `kubectl-wincimg` and called as `kubectl
//! wincimg`, so help, examples and hints have that name too.

use std::borrow::Cow;
use std::path::Path;
use std::sync::LazyLock;

use clap::{Command, CommandFactory as _};

use super::{Cli, groups};

const NAME: &str = "wincimg";

/// Command that calls the program, if it is not its name.
static PLUGIN: LazyLock<Option<&str>> = LazyLock::new(|| {
    let called = std::env::args_os().next()?;
    plugin(Path::new(&called))
});

fn plugin(called: &Path) -> Option<&'static str> {
    let stem = called.file_stem()?.to_str()?;
    (stem == "kubectl-wincimg").then_some("kubectl wincimg")
}

/// The command line with the name that the program was called by.
pub(super) fn command() -> Command {
    let command = groups::grouped(Cli::command());
    match *PLUGIN {
        Some(name) => renamed(command, name).bin_name(name),
        None => command,
    }
}

/// Rewrites the commands in a text to the name that must be typed.
pub(super) fn with_program_name(text: &str) -> Cow<'_, str> {
    match *PLUGIN {
        Some(name) => Cow::Owned(replaced(text, name)),
        None => Cow::Borrowed(text),
    }
}

/// Rewrites the examples in the help of every command.
fn renamed(mut command: Command, name: &str) -> Command {
    if let Some(help) = command.get_after_help().map(ToString::to_string) {
        command = command.after_help(replaced(&help, name));
    }
    let inner = command.get_subcommands();
    let inner: Vec<String> = inner.map(|inner| inner.get_name().to_owned()).collect();
    inner.iter().fold(command, |command, inner| {
        command.mut_subcommand(inner, |inner| renamed(inner, name))
    })
}

/// The text with `name` in place of the program's name where it begins a command: a separate word,
/// followed by another one.
fn replaced(text: &str, name: &str) -> String {
    let mut result = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(at) = rest.find(NAME) {
        let (before, found) = rest.split_at(at);
        let after = &found[NAME.len()..];
        result.push_str(before);
        let begins =
            !result.ends_with(|last: char| last.is_alphanumeric() || "-_./:".contains(last));
        let is_command = after.starts_with(' ')
            && after[1..].starts_with(|next: char| next.is_ascii_lowercase());
        result.push_str(if begins && is_command { name } else { NAME });
        rest = after;
    }
    result + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kubectl_finds_it_by_its_name() {
        let name = |called| plugin(Path::new(called));
        assert_eq!(name("/usr/bin/kubectl-wincimg"), Some("kubectl wincimg"));
        assert_eq!(name("kubectl-wincimg.exe"), Some("kubectl wincimg"));
        assert_eq!(name("/usr/bin/wincimg"), None);
    }

    #[test]
    fn commands_are_renamed_and_nothing_else() {
        let printed = |text| replaced(text, "kubectl wincimg");
        assert_eq!(
            printed("`wincimg login h`, or\n  wincimg lint . | wincimg build"),
            "`kubectl wincimg login h`, or\n  kubectl wincimg lint . | kubectl wincimg build"
        );
        for text in [
            "oci:./wincimg or", "wincimg.toml", "h/wincimg as", "wincimg-report x", "wincimg",
        ] {
            assert_eq!(printed(text), text);
        }
    }

    #[test]
    fn examples_of_every_command_have_the_name() {
        let command = renamed(Cli::command(), "kubectl wincimg");
        let build = command.find_subcommand("build").unwrap();
        let help = build.get_after_help().unwrap().to_string();
        assert!(help.contains("\n  kubectl wincimg build pause "), "{help}");
        assert!(!help.contains("\n  wincimg "), "{help}");
    }
}
