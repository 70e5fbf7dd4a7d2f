//! Tests of the examples in the help, as a shell reads them.

use std::fs;
use std::process::Command as Process;

use clap::{Command, CommandFactory as _, Parser as _};

use super::{Cli, with_subcommands};

/// Columns of a terminal, which wraps longer lines without a backslash.
const COLUMNS: usize = 80;

/// Has the programs of the examples write their names and arguments to files.
const RECORD: &str = r#"
for program in wincimg kubectl docker tar echo; do
    eval "$program() { printf '%s\\0' $program \"\$@\" '' >> words.$program; }"
done
"#;

/// Adds the examples in the help of a command.
fn examples(command: &Command, found: &mut Vec<String>) {
    let help = command.get_after_help().map(ToString::to_string);
    let help = help.unwrap_or_default();
    let block = help.strip_prefix("Examples:\n").unwrap_or_default();
    let block = block.split("\n\n").next().unwrap_or_default();
    let own = found.len();
    for line in block.lines() {
        assert!(line.chars().count() < COLUMNS, "{line}");
        // What continues an example is indented more.
        match found[own..].last_mut() {
            Some(example) if line.starts_with("    ") => {
                example.push('\n');
                example.push_str(line);
            }
            _ => found.push(line.to_owned()),
        }
    }
}

/// The commands of an example, each with its words.
fn typed(example: &str) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir_all(path(".config/fish/completions")).unwrap();
    fs::write(path("password.txt"), "").unwrap();
    // That of PowerShell, whose `>>` appends UTF-16, has no command of this shell.
    let line = example.replace("Add-Content", "echo");
    let output = Process::new("/bin/sh")
        .args(["-c", &format!("{RECORD}{line}")])
        .current_dir(folder.path())
        .env("HOME", folder.path())
        .env("PATH", "")
        .env("PROFILE", "profile.ps1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{example}: {output:?}");
    assert!(output.stderr.is_empty(), "{example}: {output:?}");
    let mut commands = Vec::new();
    for program in ["wincimg", "kubectl", "docker", "tar", "echo"] {
        let words = fs::read_to_string(path(&format!("words.{program}"))).unwrap_or_default();
        let own = words.split("\0\0").filter(|command| !command.is_empty());
        commands.extend(own.map(|own| own.split('\0').map(str::to_owned).collect()));
    }
    commands
}

#[test]
fn examples_can_be_typed_in_a_shell() {
    let mut found = Vec::new();
    for command in with_subcommands(&Cli::command()) {
        examples(command, &mut found);
    }
    let mut parsed = 0;
    for example in &found {
        let commands = typed(example);
        let backslashes = |text: &str| text.matches('\\').count();
        let kept = commands.iter().flatten().map(|word| backslashes(word));
        let kept: usize = kept.sum();
        assert_eq!(kept, backslashes(&example.replace("\\\n", "")), "{example}");
        for words in commands.iter().filter(|words| words[0] == "wincimg") {
            // An ellipsis stands for the rest of a digest.
            let digest = "0".repeat(64);
            let words = words.iter().map(|word| word.replace('…', &digest));
            Cli::try_parse_from(words).unwrap_or_else(|error| panic!("{example}: {error}"));
            parsed += 1;
        }
    }
    assert!(parsed > 100, "{parsed}");
}
