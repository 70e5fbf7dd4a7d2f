//! `VOLUME` and the contents of its folder, which Windows does not copy into the volume.

use wincimg_windows::path::ImagePath;

use super::evaluation::{EvaluatedStep, may_remove};
use super::packages::CopiedFiles;
use super::stage::LintStep;
use super::words::{Word, file_name};
use super::{Finding, Severity};
use crate::instruction::InstructionKind;
use crate::stages::image_path;

pub(super) fn check(it: &EvaluatedStep<'_>) -> Vec<Finding> {
    match it.kind {
        InstructionKind::Volume(list) => {
            let texts = list.iter().filter_map(|text| it.expand(text));
            let found = texts.filter_map(|text| check_volume(it, &text.text));
            found.collect()
        }
        InstructionKind::Copy(_) => Vec::from_iter(check_copy(it)),
        InstructionKind::Run(_) => Vec::from_iter(check_run(it)),
        _ => Vec::new(),
    }
}

/// Names of the volumes so far.
fn volumes<'a>(it: &EvaluatedStep<'a>) -> impl Iterator<Item = &'a String> {
    let volumes = it.state.config.other.get("Volumes");
    let volumes = volumes.and_then(|volumes| volumes.as_object());
    volumes.into_iter().flat_map(|volumes| volumes.keys())
}

/// Reports a copy into a volume.
fn check_copy(it: &EvaluatedStep<'_>) -> Option<Finding> {
    let mut volumes = volumes(it).peekable();
    volumes.peek()?;
    let copied = CopiedFiles::read(it)?;
    let name = volumes.find(|name| {
        let folder = resolve(it, name);
        folder.is_some_and(|folder| is_inside(&copied.target, &folder))
    })?;
    let message = format!(
        "\"{name}\" is a volume, and what is copied there is not in the container: copy it to another \
         folder"
    );
    Some(it.step.finding(message))
}

/// Commands that write files; others may only name the folder, as in a configuration.
const WRITERS: [&str; 25] = [
    "add-content", "copy", "copy-item", "cp", "curl", "expand-archive", "git", "invoke-webrequest",
    "iwr", "md", "mkdir", "move", "move-item", "mv", "new-item", "ni", "out-file", "ren",
    "rename-item", "robocopy", "set-content", "start-bitstransfer", "tar", "wget", "xcopy",
];

/// A path as this rule compares it.
fn plain(text: &str) -> String {
    let text = text.replace('\\', "/").replace("//", "/");
    text.to_ascii_lowercase()
}

/// A folder as this rule compares it, with a `/` at its end.
fn plain_folder(text: &str) -> String {
    format!("{}/", plain(text).trim_end_matches('/'))
}

/// Returns true for a word with a path in a folder.
fn has_path_in(word: &str, folder: &str) -> bool {
    let mut places = word.match_indices(folder).map(|(at, _)| at);
    places.any(|at| !word[..at].ends_with(|c: char| c.is_ascii_alphanumeric()))
}

/// Reports a `RUN` that writes into a volume.
fn check_run(it: &EvaluatedStep<'_>) -> Option<Finding> {
    let folders: Vec<(&String, String)> =
        volumes(it).map(|name| (name, plain_folder(name))).collect();
    if folders.is_empty() {
        return None;
    }
    let name = it.step.commands().iter().find_map(|command| {
        let arguments = command.arguments().iter();
        let arguments = arguments.filter(|_| WRITERS.contains(&command.program()));
        let mut targets = command.files.iter().chain(arguments);
        targets.find_map(|word| {
            let path = plain(&word.value);
            let folder = folders
                .iter()
                .find(|(_, folder)| has_path_in(&path, folder));
            folder.map(|(name, _)| *name)
        })
    })?;
    let message = format!(
        "\"{name}\" is a volume by now, and what RUN writes there is not in the container: write to \
         another folder, or make empty folders above VOLUME"
    );
    Some(it.step.finding(message).warning())
}

fn check_volume(it: &EvaluatedStep<'_>, text: &str) -> Option<Finding> {
    let folder = resolve(it, text)?;
    // The parser refuses the drive itself.
    if folder.components().is_empty() {
        return None;
    }
    let has_files = it.copied.iter().any(|it| is_inside(&it.target, &folder));
    if !has_files && !has_files_of_run(it, &plain_folder(text)) {
        return None;
    }
    let message = format!(
        "\"{text}\" has files, and on Windows a volume must be an empty or new folder: the container \
         does not start, or does not have the files"
    );
    let severity = Severity::error_if(has_files);
    Some(it.step.finding(message).severity(severity))
}

/// Commands whose paths are of files that they write.
const DOWNLOADERS: [&str; 8] = [
    "add-content", "curl", "expand-archive", "invoke-webrequest", "iwr", "out-file", "set-content",
    "start-bitstransfer",
];

/// Returns true if a `RUN` above writes files into a folder, and none may empty it.
fn has_files_of_run(it: &EvaluatedStep<'_>, folder: &str) -> bool {
    let runs = it.stage.before(it.step).iter().filter(|it| it.is("RUN"));
    let may_empty = |step: &LintStep<'_>| {
        let text = plain(step.lower_text());
        may_remove(step.lower_text())
            && (text.contains(['$', '%']) || text.contains(folder.trim_end_matches('/')))
    };
    if runs.clone().any(may_empty) {
        return false;
    }
    let mut commands = runs.flat_map(LintStep::commands);
    commands.any(|command| {
        let arguments = command.arguments();
        // A file that only keeps the folder may be hidden.
        let is_inside = |word: &&Word| {
            has_path_in(&plain_folder(&word.value), folder)
                && !file_name(&word.value).starts_with('.')
        };
        let target = match command.program() {
            "copy" | "copy-item" | "cp" | "xcopy" => arguments
                .iter()
                .rfind(|word| !word.value.starts_with(['-', '/'])),
            program if DOWNLOADERS.contains(&program) => arguments.iter().find(is_inside),
            _ => None,
        };
        let output = command.files.iter().filter(|_| !command.has_input);
        let is_empty = command.has(&["nul"]);
        !is_empty
            && target
                .into_iter()
                .chain(output)
                .any(|word| is_inside(&word))
    })
}

fn resolve(it: &EvaluatedStep<'_>, text: &str) -> Option<ImagePath> {
    let root = it.state.working_dir().ok()?;
    Some(image_path(&root, text).ok()?.path)
}

fn is_inside(path: &ImagePath, folder: &ImagePath) -> bool {
    path.strip_prefix(folder).is_some()
}
