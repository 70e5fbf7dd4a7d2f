//! Paths of Linux: `/dev/null`, `~` for the home folder, and `./program` under cmd.

use super::prelude::*;
use super::shells::{is_known_cmdlet, is_read_by_powershell};

const NULL: &str = "/dev/null";

pub(super) fn check(it: &EvaluatedStep<'_>) -> Option<Finding> {
    if it.step.shell == BaseShell::Other {
        return None;
    }
    let folders: &[String] = match it.kind {
        InstructionKind::Workdir(text) => std::slice::from_ref(text),
        InstructionKind::Copy(copy) => std::slice::from_ref(&copy.target),
        InstructionKind::Volume(list) => list,
        _ => return check_commands(it.step),
    };
    folders.iter().find(|folder| is_home(folder))?;
    let keyword = &it.step.instruction.keyword;
    let message = format!(
        "{keyword} does not expand ~ and makes a folder of this name: write the whole path"
    );
    Some(it.step.finding(message))
}

fn is_home(path: &str) -> bool {
    path == "~" || path.starts_with("~/") || path.starts_with("~\\")
}

fn check_commands(step: &LintStep<'_>) -> Option<Finding> {
    let (word, message) = step.find_map(|command| {
        let null = command.files.iter().find(|word| word.value == NULL);
        let is_own = |word: &Word| {
            command.grammar.is_powershell() && is_read_by_powershell(step, word.start())
        };
        let redirected = null.map(|word| (word, null_message(is_own(word))));
        redirected
            .or_else(|| null_argument(command).map(|word| (word, argument_message(command))))
            .or_else(|| cmd_path(step, command))
    })?;
    Some(step.finding_at(word.start(), message))
}

/// `is_of_powershell` is true if PowerShell writes, which knows no device.
fn null_message(is_of_powershell: bool) -> &'static str {
    if is_of_powershell {
        "Windows has no /dev/null, and writing to it fails: use $null"
    } else {
        "Windows has no /dev/null, and writing to it fails: use NUL"
    }
}

fn argument_message(command: &LintCommand) -> &'static str {
    let is_program = has_extension(command.word(0), &["exe"]);
    if command.grammar.is_powershell() && !is_program {
        "Windows has no /dev/null, and cmdlets write to no device: write | Out-Null instead of it"
    } else {
        null_message(false)
    }
}

/// `/dev/null` as an output file of a download or cmdlet; ports of programs may know it.
fn null_argument(command: &LintCommand) -> Option<&Word> {
    let writes = matches!(command.program(), "curl" | "wget" | "iwr" | "irm")
        || is_known_cmdlet(command.word(0));
    let mut arguments = command.arguments().iter().filter(|_| writes);
    arguments.find(|word| {
        let before = word.value.strip_suffix(NULL);
        before.is_some_and(|before| before.is_empty() || before.starts_with('-'))
    })
}

/// Commands of cmd that take paths.
const TAKE_PATHS: [&str; 10] = [
    "cd", "chdir", "md", "mkdir", "copy", "xcopy", "move", "del", "rd", "rmdir",
];

/// A path that cmd does not read as in Linux.
fn cmd_path<'a>(step: &LintStep<'_>, command: &'a LintCommand) -> Option<(&'a Word, &'static str)> {
    if command.grammar != Grammar::Cmd || step.shell == BaseShell::Unknown {
        return None;
    }
    let program = &command.words[0];
    // In quotes the whole word is the program.
    let written = step.part(&program.range);
    if written.starts_with("./") || written.starts_with("../") {
        let message = "cmd reads / as the start of a switch and runs the program \".\": write \\";
        return Some((program, message));
    }
    let makes_path = TAKE_PATHS.contains(&command.program());
    let mut arguments = command.arguments().iter().filter(|_| makes_path);
    let home = arguments.find(|word| is_home(&word.value))?;
    Some((home, "cmd does not expand ~: write %USERPROFILE%"))
}
