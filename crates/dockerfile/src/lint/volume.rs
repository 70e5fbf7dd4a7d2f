//! `VOLUME` and the contents of its folder, which Windows does not copy into the volume.

use wincimg_windows::path::ImagePath;

use super::evaluation::EvaluatedStep;
use super::packages::CopiedFiles;
use super::{Findings, Severity};
use crate::instruction::InstructionKind;
use crate::stages::image_path;

const RULE: &str = "volume-content";

pub(super) fn check(it: &EvaluatedStep<'_>, findings: &mut Findings<'_>) {
    match it.kind {
        InstructionKind::Volume(list) => {
            for text in list.iter().filter_map(|text| it.expand(text)) {
                if let Some(folder) = resolve(it, &text.text) {
                    check_volume(it, &text.text, &folder, findings);
                }
            }
        }
        InstructionKind::Copy(_) => {
            let volumes = it.state.config.other.get("Volumes");
            let Some(volumes) = volumes.and_then(|volumes| volumes.as_object()) else {
                return;
            };
            let Some(copied) = CopiedFiles::read(it) else {
                return;
            };
            let inside = volumes
                .keys()
                .filter_map(|name| Some((name, resolve(it, name)?)))
                .find(|(_, folder)| is_inside(&copied.target, folder));
            if let Some((name, _)) = inside {
                let message = format!(
                    "\"{name}\" is a volume by now, and what is copied there is not in the container: \
                     copy it before VOLUME, or to another folder"
                );
                findings.add(RULE, Severity::Error, it.line(), message);
            }
        }
        InstructionKind::Run(_) => check_run(it, findings),
        _ => {}
    }
}

/// Commands that write files; others may only name the folder, as in a configuration.
const WRITERS: [&str; 25] = [
    "add-content", "copy", "copy-item", "cp", "curl", "expand-archive", "git", "invoke-webrequest",
    "iwr", "md", "mkdir", "move", "move-item", "mv", "new-item", "ni", "out-file", "ren",
    "rename-item", "robocopy", "set-content", "start-bitstransfer", "tar", "wget", "xcopy",
];

/// Reports a `RUN` that writes into a volume.
fn check_run(it: &EvaluatedStep<'_>, findings: &mut Findings<'_>) {
    let volumes = it.state.config.other.get("Volumes");
    let Some(volumes) = volumes.and_then(|volumes| volumes.as_object()) else {
        return;
    };
    let plain = |text: &str| {
        text.replace('\\', "/")
            .replace("//", "/")
            .to_ascii_lowercase()
    };
    let folders = volumes.keys().filter(|name| name.len() > 3);
    let folders: Vec<(&String, String)> = folders
        .map(|name| (name, format!("{}/", plain(name).trim_end_matches('/'))))
        .collect();
    if folders.is_empty() {
        return;
    }
    let found = it.step.commands().iter().find_map(|command| {
        let arguments = command.arguments().iter();
        let arguments = arguments.filter(|_| WRITERS.contains(&command.program()));
        let mut targets = command.files.iter().chain(arguments);
        targets.find_map(|word| {
            let path = plain(&word.value);
            let folder = folders.iter().find(|(_, folder)| path.contains(folder));
            folder.map(|(name, _)| *name)
        })
    });
    if let Some(name) = found {
        let message = format!(
            "\"{name}\" is a volume by now, and what RUN writes there is not in the container: move \
             VOLUME below"
        );
        findings.add(RULE, Severity::Warning, it.line(), message);
    }
}

fn check_volume(
    it: &EvaluatedStep<'_>,
    text: &str,
    folder: &ImagePath,
    findings: &mut Findings<'_>,
) {
    if folder.components().is_empty() {
        let message = "the drive C: cannot be a volume: name a folder";
        findings.add(RULE, Severity::Error, it.line(), message);
    } else if it.copied.iter().any(|it| is_inside(&it.target, folder)) {
        let message = format!(
            "\"{text}\" has files, and on Windows a volume must be an empty or new folder: the \
             container does not start, or does not have the files"
        );
        findings.add(RULE, Severity::Error, it.line(), message);
    }
}

fn resolve(it: &EvaluatedStep<'_>, text: &str) -> Option<ImagePath> {
    let root = it.state.working_dir().ok()?;
    Some(image_path(&root, text).ok()?.path)
}

fn is_inside(path: &ImagePath, folder: &ImagePath) -> bool {
    path.strip_prefix(folder).is_some()
}
