//! Lists the commands by task in the program's own help, as git and docker do.

use std::fmt::Write as _;

use clap::Command;

const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Build images",
        &["build", "init", "convert", "render", "images", "try"],
    ),
    (
        "Check images and hosts",
        &["check-compat", "lint", "inspect", "base", "doctor"],
    ),
    (
        "Copy and update images",
        &[
            "push", "copy", "tag", "digest", "manifest", "mirror", "update", "fleet",
        ],
    ),
    ("Operate nodes", &["node", "hotfix"]),
    ("More", &["login", "logout", "demo", "completions", "help"]),
];

/// The command line with grouped help.
pub(super) fn grouped(command: Command) -> Command {
    let mut template = String::from("{about}\n\n{usage-heading} {usage}\n");
    for (title, names) in GROUPS {
        let _ = write!(template, "\n{title}:\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(Command::get_about);
            let about = about.map_or(
                "Print the help of a command".to_owned(),
                ToString::to_string,
            );
            let _ = writeln!(template, "  {name:<13} {about}");
        }
    }
    template += "\nOptions:\n{options}{after-help}";
    command.help_template(template)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_is_in_one_group_and_its_line_fits_a_terminal() {
        let listed: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        let command = Cli::command();
        for inner in command.get_subcommands() {
            let name = inner.get_name();
            assert_eq!(
                listed.iter().filter(|listed| **listed == name).count(),
                1,
                "{name}"
            );
            let about = inner.get_about().unwrap().to_string();
            assert!(about.len() <= 64, "{name}: {about}");
        }
        assert_eq!(listed.len(), command.get_subcommands().count() + 1);
    }
}
