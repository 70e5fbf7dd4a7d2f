//! `dir`, whose exit code says whether it finds something. What it prints is in the language of
//! Windows.

use wincimg_windows::path::ImagePath;

use super::super::error::{self, Result};
use super::super::image::{EntryKind, Lookup, PendingDownload};
use super::super::process::{
    HIDDEN_OR_SYSTEM, PathState, Paths, Wildcards, is_everything, is_same,
};
use super::Cmd;
use super::builtins::Words;

impl Cmd<'_, '_> {
    pub(super) fn list(&self, words: &Words) -> Result<i32> {
        let mut wanted = None;
        for switch in &words.switches {
            let Some(attributes) = switch.strip_prefix("/a") else {
                continue;
            };
            wanted = match attributes.trim_start_matches(':') {
                "" => None,
                "d" => Some(PathState::Folder),
                "-d" => Some(PathState::File),
                _ => {
                    let why = format!("which files have the attributes of {switch} is unknown");
                    return error::unclear(why);
                }
            };
        }
        let here = [".".to_owned()];
        let operands = match words.operands.as_slice() {
            [] => here.as_slice(),
            operands => operands,
        };
        for operand in operands {
            if self.has_listed(operand, wanted, words)? {
                return Ok(0);
            }
        }
        Ok(1)
    }

    /// Returns true if `dir` lists something.
    fn has_listed(&self, operand: &str, wanted: Option<PathState>, words: &Words) -> Result<bool> {
        let is_here = |path: &ImagePath| is_same(path, &self.machine.folder);
        let (folder, pattern) = match self.machine.paths(operand, Wildcards::Cmd)? {
            Paths::Pattern { folder, pattern } => (folder, pattern),
            Paths::One(path) => match self.machine.entry(&path) {
                Lookup::Unknown if !is_here(&path) => {
                    return error::unknown(format!("it fails unless the base has {path}"));
                }
                Lookup::Deferred(PendingDownload) => return Ok(true),
                Lookup::Present(EntryKind::Folder) | Lookup::Unknown => (path, "*".to_owned()),
                Lookup::Present(EntryKind::File(()))
                    if wanted != Some(PathState::Folder)
                        && !self.machine.has_attribute(&path, left_out(words)) =>
                {
                    return Ok(true);
                }
                Lookup::Present(EntryKind::File(())) | Lookup::Absent if !words.has("/s") => {
                    return Ok(false);
                }
                Lookup::Present(EntryKind::File(())) | Lookup::Absent => {
                    let folder = path.parent().unwrap_or_else(ImagePath::drive);
                    (folder, path.name().to_owned())
                }
            },
        };
        if is_everything(&pattern) && wanted != Some(PathState::File) {
            // The drive has the folder Windows; others have . and .., which /b leaves out.
            let is_drive = folder.components().is_empty();
            let has_dots = !words.has("/b")
                && (is_here(&folder) || self.machine.path_state(&folder)? == PathState::Folder);
            if is_drive || has_dots {
                return Ok(true);
            }
        }
        self.has_match(folder, &pattern, wanted, words)
    }

    /// Returns true if a folder, or one below it, has an entry that matches a pattern.
    fn has_match(
        &self,
        folder: ImagePath,
        pattern: &str,
        wanted: Option<PathState>,
        words: &Words,
    ) -> Result<bool> {
        let except = left_out(words);
        let mut pending = vec![folder];
        while let Some(folder) = pending.pop() {
            let paths = self
                .machine
                .glob(&folder, pattern, Wildcards::Cmd, except)?;
            let Some(paths) = paths else {
                return Ok(true);
            };
            for path in paths {
                let state = self.machine.path_state(&path)?;
                if state == PathState::Deferred || wanted.is_none_or(|wanted| wanted == state) {
                    return Ok(true);
                }
            }
            if !words.has("/s") {
                continue;
            }
            let all = self.machine.glob(&folder, "*", Wildcards::Cmd, except)?;
            let all = all.unwrap_or_default();
            let is_folder = |state| state == PathState::Folder;
            pending.extend(self.machine.with_state(all, is_folder)?);
        }
        Ok(false)
    }
}

/// Attributes of what `dir` leaves out.
fn left_out(words: &Words) -> u32 {
    let shows_all = |switch: &String| switch.starts_with("/a");
    if words.switches.iter().any(shows_all) {
        0
    } else {
        HIDDEN_OR_SYSTEM
    }
}
