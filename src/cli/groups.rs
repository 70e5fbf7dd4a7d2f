//! Lists the commands by task in the program's own help, as git and docker do.

use std::fmt::Write as _;

use clap::Command;

const GROUPS: [(&str, &[&str]); 5] = [
    ("Build images", &["build", "recipe"]),
    (
        "Check images and hosts",
        &["check-compat", "lint", "doctor"],
    ),
    (
        "Copy and update images",
        &["push", "copy", "image", "fleet"],
    ),
    ("Operate nodes", &["node"]),
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
        let listed = GROUPS.iter().flat_map(|(_, names)| *names).copied();
        let listed: Vec<&str> = listed.collect();
        let command = Cli::command();
        let visible = || {
            let all = command.get_subcommands();
            all.filter(|inner| !inner.is_hide_set())
        };
        for inner in visible() {
            let name = inner.get_name();
            let count = listed.iter().filter(|listed| **listed == name).count();
            assert_eq!(count, 1, "{name}");
            let about = inner.get_about().unwrap().to_string();
            assert!(about.len() <= 64, "{name}: {about}");
        }
        assert_eq!(listed.len(), visible().count() + 1);
        // A hidden name is that of a command in a group.
        let grouped: Vec<&str> = visible()
            .flat_map(Command::get_subcommands)
            .map(Command::get_name)
            .collect();
        for inner in command.get_subcommands().filter(|it| it.is_hide_set()) {
            let name = inner.get_name();
            assert!(grouped.contains(&name) || name == "images", "{name}");
        }
    }
}

#[cfg(test)]
mod short_help {
    use clap::CommandFactory as _;

    use crate::cli::{Cli, with_subcommands};

    /// Flags that a command's `-h` lists, of its own.
    fn shown(command: &clap::Command) -> Vec<&str> {
        let own = command.get_arguments();
        let own = own.filter(|arg| !arg.is_hide_short_help_set() && !arg.is_hide_set());
        own.filter_map(clap::Arg::get_long).collect()
    }

    #[test]
    fn the_short_help_lists_a_dozen_flags() {
        for command in with_subcommands(&Cli::command()) {
            let flags = shown(command);
            assert!(flags.len() <= 12, "{}: {flags:?}", command.get_name());
        }
    }
}
