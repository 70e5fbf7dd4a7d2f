//! Commands of cmd that copy, move, rename and delete files.

use wincimg_windows::path::ImagePath;

use super::super::error::{self, Result, ScriptError};
use super::super::image::{EntryKind, ImageAction, Lookup, PendingDownload};
use super::super::process::{
    HIDDEN, HIDDEN_OR_SYSTEM, PathState, Paths, READ_ONLY, Wildcards, access_denied,
    check_no_wildcards, is_everything, is_nul, is_same, is_within,
};
use super::Cmd;
use super::builtins::Words;

impl Cmd<'_, '_> {
    pub(super) fn remove_folders(&mut self, words: &Words) -> Result<i32> {
        words.allow_only(&["/s", "/q"])?;
        if words.has("/s") && !words.has("/q") {
            return error::unclear("without /q it asks for confirmation");
        }
        let mut code = i32::from(words.operands.is_empty());
        for operand in &words.operands {
            check_no_wildcards(operand, &['*', '?'])?;
            let path = self.machine.path(operand)?;
            match self.machine.link(&path) {
                Some(EntryKind::Folder) if !words.has("/s") => {
                    self.machine.apply(ImageAction::Delete(path))?;
                    continue;
                }
                Some(EntryKind::File(())) => {
                    code = 267;
                    continue;
                }
                _ => {}
            }
            match self.machine.path_state(&path)? {
                PathState::Absent => code = 2,
                PathState::File => code = 267,
                PathState::Deferred => self.machine.apply(ImageAction::Unclear(path))?,
                PathState::Folder if words.has("/s") => self.machine.delete(path)?,
                PathState::Folder => match self.machine.is_empty(&path)? {
                    Some(true) => self.machine.delete(path)?,
                    Some(false) => code = 145,
                    None => self.machine.apply(ImageAction::Unclear(path))?,
                },
            }
        }
        Ok(code)
    }

    pub(super) fn delete(&mut self, words: &Words) -> Result<i32> {
        words.allow_only(&["/f", "/q", "/s"])?;
        if words.operands.is_empty() {
            return Ok(1);
        }
        let mut code = 0;
        for operand in &words.operands {
            let paths = self.machine.paths(operand, Wildcards::Cmd)?;
            let (folder, pattern, is_pattern) = match paths {
                Paths::One(path)
                    if !words.has("/s")
                        && self.machine.link(&path) == Some(EntryKind::File(())) =>
                {
                    self.machine.apply(ImageAction::Delete(path))?;
                    continue;
                }
                Paths::One(path) => match self.machine.path_state(&path)? {
                    PathState::Folder => (path, "*".to_owned(), true),
                    PathState::Deferred => {
                        self.machine.apply(ImageAction::Unclear(path))?;
                        continue;
                    }
                    PathState::File if !words.has("/s") => {
                        self.delete_file(path, words)?;
                        continue;
                    }
                    PathState::File | PathState::Absent => {
                        let folder = path.parent().unwrap_or_else(|| path.clone());
                        (folder, path.name().to_owned(), false)
                    }
                },
                Paths::Pattern { folder, pattern } => (folder, pattern, true),
            };
            if is_pattern && !words.has("/q") && is_everything(&pattern) {
                return error::unclear("without /q it asks for confirmation");
            }
            match self.machine.path_state(&folder)? {
                PathState::Folder | PathState::Deferred => {
                    self.delete_matches(folder, &pattern, words)?;
                }
                PathState::Absent | PathState::File if words.has("/s") => {
                    return error::unclear(format!("whether it fails without {folder} is unknown"));
                }
                PathState::Absent | PathState::File => code = 1,
            }
        }
        Ok(code)
    }

    /// Deletes the files in a folder that match a pattern, with `/s` also those below it.
    fn delete_matches(&mut self, folder: ImagePath, pattern: &str, words: &Words) -> Result<()> {
        let mut pending = vec![folder];
        while let Some(folder) = pending.pop() {
            self.machine.step()?;
            let paths = self
                .machine
                .glob(&folder, pattern, Wildcards::Cmd, HIDDEN_OR_SYSTEM)?;
            let Some(paths) = paths else {
                self.machine.apply(ImageAction::Unclear(folder))?;
                continue;
            };
            for path in paths {
                match self.machine.path_state(&path)? {
                    PathState::File => self.delete_file(path, words)?,
                    PathState::Deferred => self.machine.apply(ImageAction::Unclear(path))?,
                    PathState::Folder | PathState::Absent => {}
                }
            }
            if !words.has("/s") {
                continue;
            }
            let all = self.machine.glob(&folder, "*", Wildcards::Cmd, 0)?;
            for path in all.unwrap_or_default() {
                if self.machine.path_state(&path)? != PathState::Folder {
                    continue;
                }
                if self.machine.has_attribute(&path, HIDDEN_OR_SYSTEM) {
                    return error::unclear(format!("whether /s reaches into {path} is unknown"));
                }
                pending.push(path);
            }
        }
        Ok(())
    }

    /// Deletes a file. Without `/a`, what is hidden is not found.
    fn delete_file(&mut self, path: ImagePath, words: &Words) -> Result<()> {
        if self.machine.has_attribute(&path, HIDDEN_OR_SYSTEM) {
            return Ok(());
        }
        if self.machine.has_attribute(&path, READ_ONLY) && !words.has("/f") {
            // The exit code is that of success, and the file stays.
            return Err(ScriptError::refused(access_denied(&path)).help("add /f"));
        }
        self.machine.apply(ImageAction::Delete(path))
    }

    /// Files that an operand matches, except hidden ones; `None` if a download decides.
    fn files(&self, operand: &str) -> Result<Option<Vec<ImagePath>>> {
        let (folder, pattern) = match self.machine.paths(operand, Wildcards::Cmd)? {
            Paths::One(path) => match self.machine.path_state(&path)? {
                PathState::File if !self.machine.has_attribute(&path, HIDDEN_OR_SYSTEM) => {
                    return Ok(Some(vec![path]));
                }
                PathState::File | PathState::Absent => return Ok(Some(Vec::new())),
                PathState::Deferred => return Ok(None),
                PathState::Folder => (path, "*".to_owned()),
            },
            Paths::Pattern { folder, pattern } => (folder, pattern),
        };
        let Some(paths) = self
            .machine
            .glob(&folder, &pattern, Wildcards::Cmd, HIDDEN_OR_SYSTEM)?
        else {
            return Ok(None);
        };
        let files = self
            .machine
            .with_state(paths, |state| state != PathState::Folder)?;
        Ok(Some(files))
    }

    pub(super) fn copy(&mut self, words: &Words) -> Result<i32> {
        words.allow_only(&["/y", "/b", "/v", "/z"])?;
        let (from, to) = match words.operands.as_slice() {
            [from] => (from, "."),
            [from, to] => (from, to.as_str()),
            _ => return error::unclear("expected one source and one destination"),
        };
        if from.contains('+') {
            return self.join_files(from, to, words);
        }
        if is_nul(from) {
            return self.copy_nothing(to);
        }
        if let Paths::Pattern { folder, pattern } = self.machine.paths(to, Wildcards::Cmd)? {
            return self.copy_renamed(from, &folder, &pattern);
        }
        let target = self.machine.path(to)?;
        let at_target = self.machine.path_state(&target)?;
        let Some(files) = self.files(from)? else {
            return self.machine.finish(ImageAction::Unclear(target));
        };
        if files.is_empty() {
            return Ok(self.machine.fail(1, format!("{from} not found")));
        }
        match at_target {
            PathState::Folder => {
                for file in files {
                    let to = target.join(file.name())?;
                    if is_same(&file, &to) || self.transfer(file, to, true)? != 0 {
                        return Ok(1);
                    }
                }
            }
            PathState::Deferred => self.machine.apply(ImageAction::Unclear(target))?,
            PathState::File | PathState::Absent => {
                let [file] = files.as_slice() else {
                    return error::unclear("several files would be joined into one");
                };
                let is_folder_meant = to.ends_with(['\\', '/']);
                if is_folder_meant || !self.machine.check_parent_exists(&target)? {
                    return Ok(1);
                }
                let source = self.machine.paths(from, Wildcards::Cmd)?;
                let is_named = source == Paths::One(file.clone());
                if !is_named && !words.has("/b") {
                    return error::unclear(
                        "copy joins the files of a pattern as text, which ends at their first Ctrl+Z; \
                         name the file, or add /b",
                    );
                }
                if is_same(file, &target) {
                    return Ok(1);
                }
                return self.transfer(file.clone(), target, true);
            }
        }
        Ok(0)
    }

    /// Copies files under other names: `copy *.txt *.bak`.
    fn copy_renamed(&mut self, from: &str, folder: &ImagePath, mask: &str) -> Result<i32> {
        let Some(files) = self.files(from)? else {
            return self.machine.finish(ImageAction::Unclear(folder.clone()));
        };
        if files.is_empty() {
            return Ok(self.machine.fail(1, format!("{from} not found")));
        }
        let count = files.len();
        for file in files {
            let to = folder.join(&renamed(file.name(), mask)?)?;
            if is_same(&file, &to) {
                return error::unclear(format!("{to} would be copied to itself"));
            }
            if !self.machine.check_parent_exists(&to)? || self.transfer(file, to, true)? != 0 {
                return Ok(1);
            }
        }
        if self.files(from)?.is_none_or(|found| found.len() != count) {
            return error::unclear(format!("whether {from} includes the copies is unclear"));
        }
        Ok(0)
    }

    /// Joins files: `copy /b a+b c`.
    fn join_files(&mut self, from: &str, to: &str, words: &Words) -> Result<i32> {
        if !words.has("/b") || words.operands.len() < 2 || from.contains(['*', '?']) {
            return error::unclear("only copy /b A+B FILE joins files here");
        }
        let mut joined = Vec::new();
        for name in from.split('+') {
            let path = self.machine.path(name)?;
            match self.machine.image.content(&path) {
                // Without /b before it, a file would end at its first Ctrl+Z.
                Lookup::Present(content) if content.contains(&0x1a) => {
                    return error::unclear(format!("{name} has a Ctrl+Z, which may end it"));
                }
                Lookup::Present(_) if self.machine.has_attribute(&path, HIDDEN_OR_SYSTEM) => {
                    return error::unclear(format!("{name} is hidden, and may not be found"));
                }
                Lookup::Present(content) => {
                    self.machine.hold(content.len())?;
                    joined.extend(content);
                }
                Lookup::Deferred(PendingDownload) => return error::unread_file(),
                Lookup::Absent => return error::unclear(format!("{name} not found")),
                Lookup::Unknown => return Err(self.machine.unknown_content(&path)),
            }
        }
        let path = self.machine.file_path(to)?;
        if self.machine.path_state(&path)? != PathState::Absent
            || !self.machine.check_parent_exists(&path)?
        {
            return error::unclear(format!("{path} is not a new file of a folder"));
        }
        self.machine.finish(ImageAction::Write {
            path,
            content: joined,
        })
    }

    /// Copies `NUL`, which creates or empties a file.
    fn copy_nothing(&mut self, to: &str) -> Result<i32> {
        let path = self.machine.path(to)?;
        if self.machine.has_attribute(&path, READ_ONLY | HIDDEN) {
            return Ok(self.machine.fail(1, access_denied(&path)));
        }
        self.machine.finish(match self.machine.path_state(&path)? {
            PathState::Folder => return error::unclear("NUL cannot be copied into a folder"),
            PathState::Deferred => ImageAction::Unclear(path),
            PathState::File | PathState::Absent => ImageAction::Write {
                path: self.machine.file_path(to)?,
                content: Vec::new(),
            },
        })
    }

    fn transfer(&mut self, from: ImagePath, to: ImagePath, is_copy: bool) -> Result<i32> {
        if self.machine.path_state(&to)? == PathState::Folder {
            return error::fails(format!("{to} is a folder"));
        }
        let denied = if is_copy {
            READ_ONLY | HIDDEN
        } else {
            READ_ONLY
        };
        if self.machine.has_attribute(&to, denied) {
            return Ok(self.machine.fail(1, access_denied(&to)));
        }
        self.machine.finish(if is_copy {
            ImageAction::Copy { from, to }
        } else {
            ImageAction::Move { from, to }
        })
    }

    pub(super) fn move_files(&mut self, words: &Words) -> Result<i32> {
        words.allow_only(&["/y"])?;
        let [from, to] = words.operands.as_slice() else {
            return error::unclear("expected one source and one destination");
        };
        let target = self.machine.path(to)?;
        let at_target = self.machine.path_state(&target)?;
        let source = match self.machine.paths(from, Wildcards::Cmd)? {
            Paths::One(path) => match self.machine.path_state(&path)? {
                PathState::Absent => return Ok(self.machine.fail(1, format!("{path} not found"))),
                PathState::Deferred => return self.moved_later(path, target),
                PathState::Folder => return self.move_folder(path, target, at_target),
                PathState::File => vec![path],
            },
            Paths::Pattern { .. } => match self.files(from)? {
                Some(files) => files,
                None => return self.moved_later(self.machine.path(".")?, target),
            },
        };
        if source.is_empty() {
            return Ok(1);
        }
        match at_target {
            PathState::Folder => {
                for file in source {
                    let to = target.join(file.name())?;
                    if self.transfer(file, to, false)? != 0 {
                        return Ok(1);
                    }
                }
            }
            PathState::Deferred => return self.moved_later(source[0].clone(), target),
            PathState::File | PathState::Absent => {
                let [file] = source.as_slice() else {
                    return Ok(1);
                };
                if to.ends_with(['\\', '/']) || !self.machine.check_parent_exists(&target)? {
                    return Ok(1);
                }
                // Its prompt before it replaces a file depends on how it is run.
                if at_target == PathState::File && !words.has("/y") {
                    return error::unclear("without /y it may ask for confirmation");
                }
                return self.transfer(file.clone(), target, false);
            }
        }
        Ok(0)
    }

    fn moved_later(&mut self, from: ImagePath, to: ImagePath) -> Result<i32> {
        self.machine.apply(ImageAction::Unclear(from))?;
        self.machine.finish(ImageAction::Unclear(to))
    }

    fn move_folder(
        &mut self,
        from: ImagePath,
        target: ImagePath,
        at_target: PathState,
    ) -> Result<i32> {
        let to = match at_target {
            PathState::Folder => target.join(from.name())?,
            PathState::Deferred => return self.moved_later(from, target),
            PathState::Absent if self.machine.check_parent_exists(&target)? => target,
            PathState::Absent | PathState::File => return Ok(1),
        };
        if is_within(&to, &from) {
            return Err(
                ScriptError::unclear(format!("{from} would be moved into itself"))
                    .help("use ren to change the case of a name"),
            );
        }
        if is_within(&self.machine.folder, &from) {
            return error::unclear("it moves the working folder");
        }
        match self.machine.path_state(&to)? {
            PathState::Absent => self.machine.finish(ImageAction::Move { from, to }),
            PathState::Deferred => self.moved_later(from, to),
            PathState::Folder | PathState::File => Ok(1),
        }
    }

    pub(super) fn rename(&mut self, words: &Words) -> Result<i32> {
        words.allow_only(&[])?;
        let [from, name] = words.operands.as_slice() else {
            return Ok(1);
        };
        if name.contains(['\\', '/', ':']) {
            return error::unclear("paths are not supported here");
        }
        let is_mask = name.contains(['*', '?']);
        let found = match self.machine.paths(from, Wildcards::Cmd)? {
            Paths::One(path) if is_mask && self.machine.path_state(&path)? == PathState::Folder => {
                return error::unclear("wildcards are not supported for a folder");
            }
            Paths::One(path) => vec![path],
            Paths::Pattern { folder, pattern } => {
                let all = self.machine.glob(&folder, &pattern, Wildcards::Cmd, 0)?;
                let Some(all) = all else {
                    return self.machine.finish(ImageAction::Unclear(folder));
                };
                self.files_to_rename(all)?
            }
        };
        for from in &found {
            let to = if is_mask {
                renamed(from.name(), name)?
            } else {
                name.clone()
            };
            let code = self.rename_one(from, &to)?;
            if code != 0 && found.len() > 1 {
                return error::unclear(format!("whether it goes on after {from} is unclear"));
            }
            if code != 0 {
                return Ok(code);
            }
        }
        // Without a match it fails.
        Ok(i32::from(found.is_empty()))
    }

    /// The files of a pattern; folders are left out.
    fn files_to_rename(&self, all: Vec<ImagePath>) -> Result<Vec<ImagePath>> {
        let mut files = Vec::new();
        for path in all {
            if self.machine.has_attribute(&path, HIDDEN_OR_SYSTEM) {
                return error::unclear(format!("whether it renames {path}, too, is unclear"));
            }
            if self.machine.path_state(&path)? != PathState::Folder {
                files.push(path);
            }
        }
        Ok(files)
    }

    fn rename_one(&mut self, from: &ImagePath, name: &str) -> Result<i32> {
        let Some(folder) = from.parent() else {
            return Ok(1);
        };
        let to = folder.join(name)?;
        match (
            self.machine.path_state(from)?,
            self.machine.path_state(&to)?,
        ) {
            (PathState::Deferred, _) | (_, PathState::Deferred) => {
                self.moved_later(from.clone(), to)
            }
            (PathState::Absent, _) => Ok(1),
            _ if from.name() == name => Ok(0),
            (_, at_target) if at_target == PathState::Absent || is_same(from, &to) => {
                self.machine.finish(ImageAction::Move {
                    from: from.clone(),
                    to,
                })
            }
            _ => Ok(1),
        }
    }
}

/// The name that a pattern gives to a file: `*.bak`, `new.*`, `*.*` and `*`. Others have rules that no
/// document of Microsoft describes.
fn renamed(name: &str, mask: &str) -> Result<String> {
    let is_plain = |part: &str| !part.is_empty() && !part.contains(['*', '?', '.']);
    let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    match mask.split_once('.') {
        None if mask == "*" => Ok(name.to_owned()),
        Some(("*", "*")) if name.contains('.') => Ok(name.to_owned()),
        Some(("*", new)) if is_plain(new) => Ok(format!("{stem}.{new}")),
        Some((new, "*")) if is_plain(new) && is_plain(stem) && is_plain(extension) => {
            Ok(format!("{new}.{extension}"))
        }
        _ => error::unclear(format!("the name that {mask} gives to {name} is unclear")),
    }
}
