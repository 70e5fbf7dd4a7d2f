//! `VOLUME` and the contents of its folder, which Windows does not copy into the volume.

use wincimg_windows::path::ImagePath;

use super::Finding;
use super::evaluation::EvaluatedStep;
use super::packages::CopiedFiles;
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
        "\"{name}\" is a volume by now, and what is copied there is not in the container: copy it \
         before VOLUME, or to another folder"
    );
    Some(it.step.finding(message))
}

/// Commands that write files; others may only name the folder, as in a configuration.
const WRITERS: [&str; 25] = [
    "add-content", "copy", "copy-item", "cp", "curl", "expand-archive", "git", "invoke-webrequest",
    "iwr", "md", "mkdir", "move", "move-item", "mv", "new-item", "ni", "out-file", "ren",
    "rename-item", "robocopy", "set-content", "start-bitstransfer", "tar", "wget", "xcopy",
];

/// Reports a `RUN` that writes into a volume.
fn check_run(it: &EvaluatedStep<'_>) -> Option<Finding> {
    let plain = |text: &str| {
        text.replace('\\', "/")
            .replace("//", "/")
            .to_ascii_lowercase()
    };
    let folders = volumes(it).filter(|name| name.len() > 3);
    let folders: Vec<(&String, String)> = folders
        .map(|name| (name, format!("{}/", plain(name).trim_end_matches('/'))))
        .collect();
    if folders.is_empty() {
        return None;
    }
    let name = it.step.commands().iter().find_map(|command| {
        let arguments = command.arguments().iter();
        let arguments = arguments.filter(|_| WRITERS.contains(&command.program()));
        let mut targets = command.files.iter().chain(arguments);
        targets.find_map(|word| {
            let path = plain(&word.value);
            let folder = folders.iter().find(|(_, folder)| path.contains(folder));
            folder.map(|(name, _)| *name)
        })
    })?;
    let message = format!(
        "\"{name}\" is a volume by now, and what RUN writes there is not in the container: move \
         VOLUME below"
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
    let message = format!(
        "\"{text}\" has files, and on Windows a volume must be an empty or new folder: the container \
         does not start, or does not have the files"
    );
    has_files.then(|| it.step.finding(message))
}

fn resolve(it: &EvaluatedStep<'_>, text: &str) -> Option<ImagePath> {
    let root = it.state.working_dir().ok()?;
    Some(image_path(&root, text).ok()?.path)
}

fn is_inside(path: &ImagePath, folder: &ImagePath) -> bool {
    path.strip_prefix(folder).is_some()
}
