//! `HEALTHCHECK CMD`, whose text the daemon escapes like an argument, unlike that of `RUN`.
//!
//! After `cmd /S /C` the quotes arrive as `\"`: `powershell -command "exit 1"` becomes a string
//! that PowerShell prints, and the container is always healthy. After `powershell -Command` the
//! text arrives as written.

use wincimg_scripts::script;
use wincimg_windows::quoting::argv::ArgvParser;
use wincimg_windows::quoting::{argv, cmd as windows_cmd, exec_form, powershell};

use super::line::SourceLine;
use super::{NESTED_SHELL, cmd, is_template};
use crate::lint::environment::cmd_variables;
use crate::lint::prelude::*;
use crate::lint::variables::dollar_names;
use crate::source::json_array;

const MESSAGE: &str = "the daemon escapes the quotes of HEALTHCHECK CMD, and the program gets them \
    as part of its arguments; use the exec form";

const AFTER_CMD: &str = "the daemon escapes the quotes of HEALTHCHECK CMD, also in exec form, and \
    the program behind cmd gets them as part of its arguments; write it without quotes, as in findstr \
    tool.exe, or start a script file";

pub(super) fn check(step: &LintStep<'_>) -> Option<Finding> {
    let instruction = step.instruction;
    let text = instruction.health_command()?;
    if !text.contains('"') || is_template(text) {
        return None;
    }
    let after_cmd = || step.finding(AFTER_CMD).of(NESTED_SHELL);
    if text.starts_with('[') {
        let line = line_of_cmd(json_array(text)?)?;
        return changes(&line).then(after_cmd);
    }
    if step.shell == BaseShell::PowerShell {
        return check_under_powershell(step, text);
    }
    if step.shell != BaseShell::Cmd || !changes(text) {
        return None;
    }
    if needs_cmd(text) {
        return Some(after_cmd());
    }
    let correction = exec(text).map(|argv| {
        let keyword_and_flags = instruction.text().len() - text.len();
        let head = &instruction.text()[..keyword_and_flags];
        let arguments = format!("{head}{}", exec_form(&argv));
        step.file.rewrite(instruction, &arguments)
    });
    Some(step.finding(MESSAGE).of(NESTED_SHELL).corrected(correction))
}

/// The line that `cmd` runs, of an exec form that gives it one.
fn line_of_cmd(words: Vec<String>) -> Option<String> {
    let mut words = words.into_iter();
    let is_cmd = words.next().is_some_and(|it| program_name(&it) == "cmd");
    let mut words = words.skip_while(|it| !it.eq_ignore_ascii_case("/c"));
    let line = words.nth(1).filter(|_| is_cmd)?;
    words.next().is_none().then_some(line)
}

/// Returns true for a text with a variable, or with several commands of which only `exit` may be
/// omitted.
fn needs_cmd(text: &str) -> bool {
    // Between the two characters of an operator is an empty one.
    let is_needed = |line: &SourceLine| {
        let words = cmd::values(line);
        let program = words.first();
        program.is_some_and(|it| !it.eq_ignore_ascii_case("exit"))
    };
    let commands = cmd::lines(text);
    let needed = commands.iter().filter(|line| is_needed(line));
    cmd_variables(text).next().is_some() || needed.count() > 1
}

/// Reports a nested script in double quotes, in which the outer PowerShell expands the variables.
fn check_under_powershell(step: &LintStep<'_>, text: &str) -> Option<Finding> {
    let line = SourceLine::new(text);
    let script = cmd::script_of(&line)?;
    let inside = script.text.strip_prefix('"').unwrap_or_default();
    let name = dollar_names(inside).find(|name| {
        let used = format!("${name}");
        let mut after = inside.split(&used).skip(1);
        after.any(|text| text.trim_start().starts_with('='))
    })?;
    let message = format!(
        "the outer PowerShell expands ${name} in these quotes, and the inner one gets nothing \
         in its place: write the script without powershell -Command"
    );
    Some(step.finding(message).of(NESTED_SHELL))
}

/// Returns true if the daemon's escapes change the words of a command under cmd.
fn changes(text: &str) -> bool {
    let escaped = windows_cmd::strip_quotes(&argv::quote_always(text));
    let meant: Vec<SourceLine> = cmd::lines(text);
    let written: Vec<SourceLine> = cmd::lines(&escaped);
    if meant.len() != written.len() {
        return true;
    }
    meant.iter().zip(&written).any(|(meant, written)| {
        match (cmd::script_of(meant), cmd::script_of(written)) {
            (Some(meant), Some(written)) => {
                let meant = script::read(&powershell::script(&meant.text));
                let written = script::read(&powershell::script(&written.text));
                meant.is_sound() && !meant.is_equivalent(&written)
            }
            _ => cmd::is_program(meant) && cmd::values(meant) != cmd::values(written),
        }
    })
}

/// Words of a command that cmd only starts.
fn exec(text: &str) -> Option<Vec<String>> {
    if text.contains('%') {
        return None;
    }
    let line = windows_cmd::parse(text, |_| None).ok()?;
    let argv = argv::split(&line, ArgvParser::CRuntime);
    let name = argv.first()?;
    let is_script = has_extension(name, &["cmd", "bat", "ps1"]);
    (!is_script && !windows_cmd::is_built_in(name)).then_some(argv)
}
