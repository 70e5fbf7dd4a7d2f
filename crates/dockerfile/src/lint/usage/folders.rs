//! Copies of folders without the files in them.

use std::collections::HashMap;

use wincimg_windows::quoting::Escape;

use crate::lint::copied_files::with_slashes;
use crate::lint::prelude::*;
use crate::lint::words::has_drive;

/// Options of `Copy-Item` that do not change what it copies.
const HARMLESS: [&str; 8] = [
    "-path", "-literalpath", "-destination", "-force", "-passthru", "-verbose", "-erroraction",
    "-ea",
];

/// Position of a `Copy-Item` of a folder without `-Recurse`, and a message.
pub(super) fn without_files(
    stage: &Stage<'_>,
    step: &LintStep<'_>,
) -> Option<(usize, &'static str)> {
    let command = step.find(|command| {
        let source = copied_item(command).map(folder_name);
        let first = source.and_then(|source| stage.folders().get(&source));
        first.is_some_and(|line| *line < step.line()) && !step.is_cut(command)
    })?;
    let message = "Copy-Item without -Recurse copies a folder without its files: add -Recurse";
    Some((command.start(), message))
}

/// The only item of a `Copy-Item` that takes nothing below it.
fn copied_item(command: &LintCommand) -> Option<&str> {
    let is_other =
        |word: &str| word.starts_with('@') || word.starts_with('-') && !HARMLESS.contains(&word);
    if !command.grammar.is_powershell()
        || !["copy-item", "cpi", "copy", "cp"].contains(&command.program())
        || command.has_input
        || command.any(is_other)
    {
        return None;
    }
    let named = command.value_of(&["-path", "-literalpath"]);
    let item = named.or(command.words.get(1))?.value.as_str();
    (!item.contains(['*', '?', '[', ',', '$', '%'])).then_some(item)
}

/// A path as this rule compares it.
fn folder_name(path: &str) -> String {
    let path = with_slashes(&path.to_ascii_lowercase());
    let path = path.strip_prefix("c:").unwrap_or(&path);
    path.trim_end_matches('/').to_owned()
}

/// Folders that `WORKDIR` and copies make, each with its first line.
pub(in crate::lint) fn folders(steps: &[LintStep<'_>]) -> HashMap<String, usize> {
    let mut found = HashMap::new();
    for step in steps {
        let text = step.instruction.text();
        let is_copy = step.is("COPY") || step.is("ADD");
        let mut words = text.rsplit([' ', '\t', '"', ',', ']']);
        let path = match () {
            () if step.is("WORKDIR") => text.trim_matches('"'),
            () if is_copy => words.find(|it| !it.is_empty()).unwrap_or_default(),
            () => continue,
        };
        let is_eaten = path.contains('\\') && step.file.escape == Escape::Backslash;
        let is_whole = path.starts_with(['/', '\\']) || has_drive(path);
        let is_folder = !is_copy || path.ends_with(['/', '\\']);
        if is_whole && is_folder && !is_eaten && !path.contains(['$', '%']) {
            found.entry(folder_name(path)).or_insert(step.line());
        }
    }
    // Every image has the root.
    found.remove("");
    found
}
