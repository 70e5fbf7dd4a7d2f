//! Programs whose path needs quotes, in images that `BuildKit` may build.
//!
//! `BuildKit` sets `ArgsEscaped` for any `CMD`, also in exec form. Docker and containerd then pass
//! the first word to Windows unquoted, and a path with a space is split.

use wincimg_windows::quoting::argv::ArgvParser;
use wincimg_windows::quoting::{argv, exec_form};

use super::prelude::*;

pub(super) fn check(stage: &Stage<'_>) -> Option<Finding> {
    let last = |keyword| stage.all(keyword).next_back();
    // Without a CMD the base decides, which the file does not show.
    let cmd = last("CMD")?;
    let step = last("ENTRYPOINT").unwrap_or(cmd);
    let program = step.instruction;
    let words = program.exec_form()?;
    let (word, arguments) = words.split_first()?;
    if !needs_quotes(word) {
        return None;
    }
    if is_command_line(word) {
        let mut argv = argv::split(word, ArgvParser::CRuntime);
        argv.extend_from_slice(arguments);
        let message = "the program and its arguments are one string, which works only where BuildKit \
            sets ArgsEscaped; write each as a string of its own";
        let correction = step.file.rewrite(program, &exec_form(&argv));
        return Some(step.finding(message).corrected(Some(correction)));
    }
    let (first, rest) = word.split_once([' ', '\t']).unwrap_or((word, ""));
    let what = if has_extension(word, &["bat", "cmd"]) {
        format!("cmd does not find \"{first}\"")
    } else {
        format!("the program takes \"{rest}\" for arguments")
    };
    Some(step.finding(format!(
        "BuildKit sets ArgsEscaped for an image with a CMD: Windows gets \"{word}\" without quotes, and \
         {what}; put the program in a path without spaces"
    )))
}

/// Returns true if a word contains arguments and is not a path with a space: options follow its
/// first space, or a name without a folder ends there.
pub(super) fn is_command_line(word: &str) -> bool {
    let Some((name, rest)) = word.split_once([' ', '\t']) else {
        return false;
    };
    let is_file = has_extension(rest, &["exe", "cmd", "bat"]);
    let is_name = !name.contains(['\\', '/']);
    rest.trim_start().starts_with(['-', '/']) || (is_name && !is_file)
}

/// Returns true if this rule would report a stage's program in exec form, which then is no
/// correction.
pub(super) fn is_bare(stage: &Stage<'_>, argv: &[String]) -> bool {
    stage.has("CMD") && argv.first().is_some_and(|word| needs_quotes(word))
}

fn needs_quotes(word: &str) -> bool {
    // A quoted path is correct in such an image.
    !word.starts_with('"') && word.contains([' ', '\t'])
}
