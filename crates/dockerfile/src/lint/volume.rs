//! `VOLUME` and the contents of its folder, which Windows does not copy into the volume.

use wincimg_windows::path::ImagePath;

use super::evaluation::EvaluatedStep;
use super::reference::Platform;
use super::{Findings, Severity};
use crate::instruction::InstructionKind;
use crate::stages::{copy_target, image_path};

const RULE: &str = "volume-content";

/// Folder that a `COPY` fills.
pub(super) fn filled_folder(it: &EvaluatedStep<'_>) -> Option<ImagePath> {
    let InstructionKind::Copy(copy) = it.kind else {
        return None;
    };
    let mut unset = Vec::new();
    let arguments = &it.linted.arguments;
    let copy = it
        .state
        .expand_copy(copy, it.lexer(), arguments, &mut unset)
        .ok()?;
    let target = copy_target(it.state, &copy).ok()?;
    unset.is_empty().then_some(target.path)
}

pub(super) fn check(it: &EvaluatedStep<'_>, findings: &mut Findings<'_>) {
    if it.stage.platform != Platform::Windows {
        return;
    }
    match it.kind {
        InstructionKind::Volume(list) => {
            let given = &it.linted.arguments.given;
            for text in list {
                let Ok(text) = it.state.expand(it.lexer(), text, given) else {
                    continue;
                };
                let Some(folder) = resolve(it, &text.text) else {
                    continue;
                };
                check_volume(it, &text.text, &folder, findings);
            }
        }
        InstructionKind::Copy(_) => {
            let volumes = it.state.config.other.get("Volumes");
            let Some(volumes) = volumes.and_then(|volumes| volumes.as_object()) else {
                return;
            };
            let Some(target) = filled_folder(it) else {
                return;
            };
            let inside = volumes
                .keys()
                .filter_map(|name| Some((name, resolve(it, name)?)))
                .find(|(_, folder)| is_inside(&target, folder));
            if let Some((name, _)) = inside {
                let message = format!(
                    "{name:?} is a volume by now, and what is copied there is not in the container: \
                     copy it before VOLUME, or to another folder"
                );
                findings.add(RULE, Severity::Error, it.line(), message);
            }
        }
        InstructionKind::Run(_) => check_run(it, findings),
        _ => {}
    }
}

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
    let text = plain(it.step.instruction.text());
    let found = volumes.keys().find(|name| {
        let name = plain(name);
        name.len() > 3 && text.contains(&format!("{}/", name.trim_end_matches('/')))
    });
    if let Some(name) = found {
        let message = format!(
            "{name:?} is a volume by now, and what RUN writes there is not in the container: move \
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
    } else if it.filled.iter().any(|filled| is_inside(filled, folder)) {
        let message = format!(
            "{text:?} has files, and on Windows a volume must be an empty or new folder: the \
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
    let (path, folder) = (path.components(), folder.components());
    path.len() >= folder.len()
        && path
            .iter()
            .zip(folder)
            .all(|(one, other)| one.eq_ignore_ascii_case(other))
}
