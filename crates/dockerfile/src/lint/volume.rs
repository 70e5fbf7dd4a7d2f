//! `VOLUME` and the contents of its folder, which Windows does not copy into the volume.

use std::slice;

use wincimg_windows::path::ImagePath;

use super::evaluation::may_remove;
use super::packages::CopiedFiles;
use super::prelude::*;
use crate::stages::{StageState, image_path};

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

/// A volume that containers have by now.
#[derive(Clone)]
pub(super) struct DeclaredVolume {
    name: String,
    /// In lower case, with `/`, also at its end.
    folder: String,
    path: Option<ImagePath>,
}

impl DeclaredVolume {
    /// Adds the volumes of a stage that are new.
    pub(super) fn extend(known: &mut Vec<Self>, state: &StageState) {
        let volumes = state.config.other.get("Volumes");
        let volumes = volumes.and_then(|volumes| volumes.as_object());
        let names = volumes.into_iter().flat_map(|volumes| volumes.keys());
        // The configuration has them in the order of the lines.
        let new = names.skip(known.len()).map(|name| Self {
            name: name.clone(),
            folder: plain_folder(name),
            // The parser refuses relative ones.
            path: resolve(state, name),
        });
        known.extend(new);
    }
}

/// Reports a copy into a volume.
fn check_copy(it: &EvaluatedStep<'_>) -> Option<Finding> {
    if it.volumes.is_empty() {
        return None;
    }
    let copied = CopiedFiles::read(it)?;
    let volume = it.volumes.iter().find(|volume| {
        let folder = volume.path.as_ref();
        folder.is_some_and(|folder| is_inside(&copied.target, folder))
    })?;
    let message = format!(
        "\"{}\" is a volume, and what is copied there is not in the container: copy it to another \
         folder",
        volume.name
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

/// Returns true for a word that is a path in a folder, also after an option or in a list.
fn has_path_in(word: &str, folder: &str) -> bool {
    let mut places = word.match_indices(folder).map(|(at, _)| at);
    places.any(|at| is_before_path(&word[..at]))
}

/// Others are the beginning of a text with a path, such as a line of a configuration.
fn is_before_path(text: &str) -> bool {
    let text = text.trim_end_matches(['"', '\'']);
    // The folder may have no drive.
    let is_drive = text.len() == 2 && text.ends_with(':');
    let is_option = text.starts_with('-') && (text.len() == 2 || text.ends_with([':', '=']));
    text.is_empty() || text.ends_with(',') || is_drive || is_option
}

/// Reports a `RUN` that writes into a volume.
fn check_run(it: &EvaluatedStep<'_>) -> Option<Finding> {
    if it.volumes.is_empty() {
        return None;
    }
    let volume = it.step.find_map(|command| {
        let arguments = command.arguments().iter();
        let arguments = arguments.filter(|_| WRITERS.contains(&command.program()));
        let mut targets = command.files.iter().chain(arguments);
        targets.find_map(|word| {
            let path = plain(&word.value);
            let mut volumes = it.volumes.iter();
            volumes.find(|volume| has_path_in(&path, &volume.folder))
        })
    })?;
    let message = format!(
        "\"{}\" is a volume by now, and what RUN writes there is not in the container: write to \
         another folder, or make empty folders above VOLUME",
        volume.name
    );
    Some(it.step.finding(message).warning())
}

fn check_volume(it: &EvaluatedStep<'_>, text: &str) -> Option<Finding> {
    let folder = resolve(it.state, text)?;
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
    let position = it.stage.before(it.step).len();
    let is_above = |(place, _): &&(usize, String)| *place < position;
    let may_empty =
        |text: &str| text.contains(['$', '%']) || text.contains(folder.trim_end_matches('/'));
    let files = it.stage.run_files();
    let mut written = files.written.iter().take_while(is_above);
    let mut removing = files.removing.iter().take_while(is_above);
    written.any(|(_, path)| has_path_in(path, folder)) && !removing.any(|(_, text)| may_empty(text))
}

/// What the `RUN` lines of a stage do to files, each with the position of its line.
#[derive(Debug)]
pub(super) struct RunFiles {
    /// Paths that they write, in lower case, with `/`, also at their ends.
    written: Vec<(usize, String)>,
    /// The lines that may remove files, in lower case, with `/`.
    removing: Vec<(usize, String)>,
}

impl RunFiles {
    pub(super) fn read(steps: &[LintStep<'_>]) -> Self {
        let runs = steps.iter().enumerate().filter(|(_, step)| step.is("RUN"));
        let written = runs.clone().flat_map(|(place, step)| {
            let commands = step.commands().iter().filter(|it| !it.has(&["nul"]));
            let words = commands.flat_map(written_words);
            // A file that only keeps the folder may be hidden.
            let words = words.filter(|word| !file_name(&word.value).starts_with('.'));
            words.map(move |word| (place, plain_folder(&word.value)))
        });
        let removing = runs.filter(|(_, step)| may_remove(step.lower_text()));
        let removing = removing.map(|(place, step)| (place, plain(step.lower_text())));
        Self {
            written: written.collect(),
            removing: removing.collect(),
        }
    }
}

/// The words of a command with files that it writes.
fn written_words(command: &LintCommand) -> impl Iterator<Item = &Word> {
    let arguments = command.arguments();
    let targets = match command.program() {
        "copy" | "copy-item" | "cp" | "xcopy" => {
            let named = command.value_of(&["-destination"]);
            let target = named.or_else(|| arguments.iter().rfind(|word| !word.is_option()));
            target.map(slice::from_ref).unwrap_or_default()
        }
        "new-item" | "ni" if makes_file(command) => arguments,
        program if DOWNLOADERS.contains(&program) => arguments,
        _ => &[],
    };
    let output = command.files.iter().filter(move |_| !command.has_input);
    targets.iter().chain(output)
}

/// Returns true for a `New-Item` of a file that is not hidden and has no value, which may be a path.
fn makes_file(command: &LintCommand) -> bool {
    let kind = command.value_of(&["-itemtype", "-type"]);
    kind.is_some_and(|it| it.eq_ignore_case("file"))
        && !command.any(|it| it == "-value" || it.starts_with('.'))
}

fn resolve(state: &StageState, text: &str) -> Option<ImagePath> {
    let root = state.working_dir().ok()?;
    Some(image_path(&root, text).ok()?.path)
}

fn is_inside(path: &ImagePath, folder: &ImagePath) -> bool {
    path.strip_prefix(folder).is_some()
}
