//! cmd's commands that copy, move, rename and delete files.

use wincimg_windows::path::ImagePath;

use super::super::image::{Action, Later, Seen};
use super::super::machine::{
    Fitting, Now, Paths, Wildcards, child, is_nul, is_same, is_within, last_name, parent,
};
use super::super::trouble::Trouble;
use super::Cmd;
use super::builtins::Words;

impl Cmd<'_, '_> {
    pub(super) fn remove_folders(&mut self, words: &Words) -> Result<i32, Trouble> {
        words.only(&["/s", "/q"])?;
        if words.has("/s") && !words.has("/q") {
            return Err(Trouble::unclear("without /q it asks, and nobody answers"));
        }
        let mut code = i32::from(words.operands.is_empty());
        for operand in &words.operands {
            if operand.contains(['*', '?']) {
                return Err(Trouble::unclear("wildcards are not understood here"));
            }
            let path = self.machine.path(operand)?;
            match self.machine.now(&path)? {
                Now::Absent => code = 2,
                Now::File => code = 267,
                Now::Later => self.machine.apply(Action::Unclear(path))?,
                Now::Folder => {
                    if !words.has("/s") {
                        match self.machine.image.names(&path) {
                            Seen::Present(names) if names.is_empty() => {}
                            Seen::Present(_) => {
                                code = 145;
                                continue;
                            }
                            Seen::Later(Later) => {
                                self.machine.apply(Action::Unclear(path))?;
                                continue;
                            }
                            Seen::Absent | Seen::Unknown => {
                                return Err(Trouble::unknown(format!(
                                    "it fails unless {path} is empty"
                                )));
                            }
                        }
                    }
                    if is_within(&self.machine.folder, &path) {
                        return Err(Trouble::unclear("it deletes the working folder"));
                    }
                    self.machine.apply(Action::Delete(path))?;
                }
            }
        }
        Ok(code)
    }

    pub(super) fn delete(&mut self, words: &Words) -> Result<i32, Trouble> {
        words.only(&["/f", "/q", "/s"])?;
        if words.operands.is_empty() {
            return Ok(1);
        }
        let mut code = 0;
        for operand in &words.operands {
            if words.has("/s") {
                return Err(Trouble::unclear("/s is not understood here"));
            }
            let paths = self.machine.paths(operand, Wildcards::Cmd)?;
            let (folder, pattern, is_pattern) = match paths {
                Paths::One(path) => match self.machine.now(&path)? {
                    Now::Folder => (path, "*".to_owned(), true),
                    Now::Later => {
                        self.machine.apply(Action::Unclear(path))?;
                        continue;
                    }
                    Now::File => {
                        self.machine.apply(Action::Delete(path))?;
                        continue;
                    }
                    Now::Absent => {
                        let folder = parent(&path).unwrap_or_else(|| path.clone());
                        (folder, last_name(&path).to_owned(), false)
                    }
                },
                Paths::Pattern { folder, pattern } => (folder, pattern, true),
            };
            if is_pattern && !words.has("/q") && matches!(pattern.as_str(), "*" | "*.*") {
                return Err(Trouble::unclear("without /q it asks, and nobody answers"));
            }
            match self.machine.now(&folder)? {
                Now::Folder | Now::Later => {}
                Now::Absent | Now::File => {
                    code = 1;
                    continue;
                }
            }
            match self.machine.fitting(&folder, &pattern, Wildcards::Cmd)? {
                Fitting::Later => self.machine.apply(Action::Unclear(folder))?,
                Fitting::Paths(paths) => {
                    for path in paths {
                        match self.machine.now(&path)? {
                            Now::File => self.machine.apply(Action::Delete(path))?,
                            Now::Later => self.machine.apply(Action::Unclear(path))?,
                            Now::Folder | Now::Absent => {}
                        }
                    }
                }
            }
        }
        Ok(code)
    }

    /// The files that an operand means, for commands that take files only.
    fn files(&self, operand: &str) -> Result<Fitting, Trouble> {
        let (folder, pattern) = match self.machine.paths(operand, Wildcards::Cmd)? {
            Paths::One(path) => match self.machine.now(&path)? {
                Now::File => return Ok(Fitting::Paths(vec![path])),
                Now::Absent => return Ok(Fitting::Paths(Vec::new())),
                Now::Later => return Ok(Fitting::Later),
                Now::Folder => (path, "*".to_owned()),
            },
            Paths::Pattern { folder, pattern } => (folder, pattern),
        };
        match self.machine.fitting(&folder, &pattern, Wildcards::Cmd)? {
            Fitting::Later => Ok(Fitting::Later),
            Fitting::Paths(paths) => {
                let mut files = Vec::new();
                for path in paths {
                    if self.machine.now(&path)? != Now::Folder {
                        files.push(path);
                    }
                }
                Ok(Fitting::Paths(files))
            }
        }
    }

    pub(super) fn copy(&mut self, words: &Words) -> Result<i32, Trouble> {
        words.only(&["/y", "/b", "/v", "/z", "/-y"])?;
        if words.has("/-y") {
            return Err(Trouble::option("/-y"));
        }
        let (from, to) = match words.operands.as_slice() {
            [from] => (from, "."),
            [from, to] => (from, to.as_str()),
            _ => return Err(Trouble::unclear("it takes one source and one destination")),
        };
        if from.contains('+') {
            return Err(Trouble::unclear(
                "files put together with + are not understood",
            ));
        }
        let folder_is_meant = to.ends_with(['\\', '/']);
        let target = self.machine.path(to)?;
        let at_target = self.machine.now(&target)?;
        if is_nul(from) {
            return match at_target {
                Now::Folder => Err(Trouble::unclear("NUL cannot be copied into a folder")),
                Now::Later => self.machine.apply(Action::Unclear(target)).map(|()| 0),
                Now::File | Now::Absent => self
                    .machine
                    .apply(Action::Write {
                        path: target,
                        content: Vec::new(),
                    })
                    .map(|()| 0),
            };
        }
        let files = match self.files(from)? {
            Fitting::Paths(files) => files,
            Fitting::Later => {
                self.machine.apply(Action::Unclear(target))?;
                return Ok(0);
            }
        };
        if files.is_empty() {
            return Ok(self.machine.fails(1, format!("{from} is not there")));
        }
        match at_target {
            Now::Folder => {
                for file in files {
                    let to = child(&target, last_name(&file))?;
                    if is_same(&file, &to) {
                        return Ok(1);
                    }
                    self.put(file, to, true)?;
                }
            }
            Now::Later => self.machine.apply(Action::Unclear(target))?,
            Now::File | Now::Absent => {
                let [file] = files.as_slice() else {
                    return Err(Trouble::unclear(
                        "several files would be copied into one, one behind the other",
                    ));
                };
                if folder_is_meant || !self.machine.parent_is_there(&target)? {
                    return Ok(1);
                }
                if is_same(file, &target) {
                    return Ok(1);
                }
                self.put(file.clone(), target, true)?;
            }
        }
        Ok(0)
    }

    fn put(&mut self, from: ImagePath, to: ImagePath, is_copy: bool) -> Result<(), Trouble> {
        match self.machine.now(&to)? {
            Now::Folder => Err(Trouble::fails(format!("{to} is a folder"))),
            _ if is_copy => self.machine.apply(Action::Copy { from, to }),
            _ => self.machine.apply(Action::Move { from, to }),
        }
    }

    pub(super) fn move_files(&mut self, words: &Words) -> Result<i32, Trouble> {
        words.only(&["/y"])?;
        let [from, to] = words.operands.as_slice() else {
            return Err(Trouble::unclear("it takes one source and one destination"));
        };
        let target = self.machine.path(to)?;
        let at_target = self.machine.now(&target)?;
        let source = match self.machine.paths(from, Wildcards::Cmd)? {
            Paths::One(path) => match self.machine.now(&path)? {
                Now::Absent => {
                    return Ok(self.machine.fails(1, format!("{path} is not there")));
                }
                Now::Later => return self.moved_later(path, target),
                Now::Folder => return self.move_folder(path, target, at_target),
                Now::File => vec![path],
            },
            Paths::Pattern { .. } => match self.files(from)? {
                Fitting::Paths(files) => files,
                Fitting::Later => return self.moved_later(self.machine.path(".")?, target),
            },
        };
        if source.is_empty() {
            return Ok(1);
        }
        match at_target {
            Now::Folder => {
                for file in source {
                    let to = child(&target, last_name(&file))?;
                    self.put(file, to, false)?;
                }
            }
            Now::Later => return self.moved_later(source[0].clone(), target),
            Now::File | Now::Absent => {
                let [file] = source.as_slice() else {
                    return Ok(1);
                };
                if to.ends_with(['\\', '/']) || !self.machine.parent_is_there(&target)? {
                    return Ok(1);
                }
                // Whether it asks before it replaces depends on how it is run.
                if at_target == Now::File && !words.has("/y") {
                    return Err(Trouble::unclear(
                        "without /y it may ask, and nobody answers",
                    ));
                }
                self.put(file.clone(), target, false)?;
            }
        }
        Ok(0)
    }

    fn moved_later(&mut self, from: ImagePath, to: ImagePath) -> Result<i32, Trouble> {
        self.machine.apply(Action::Unclear(from))?;
        self.machine.apply(Action::Unclear(to))?;
        Ok(0)
    }

    fn move_folder(
        &mut self,
        from: ImagePath,
        target: ImagePath,
        at_target: Now,
    ) -> Result<i32, Trouble> {
        let to = match at_target {
            Now::Folder => child(&target, last_name(&from))?,
            Now::Later => return self.moved_later(from, target),
            Now::Absent if self.machine.parent_is_there(&target)? => target,
            Now::Absent | Now::File => return Ok(1),
        };
        if is_within(&to, &from) || is_within(&self.machine.folder, &from) {
            return Err(Trouble::unclear(
                "a folder would move into itself, or is worked in",
            ));
        }
        match self.machine.now(&to)? {
            Now::Absent => self.machine.apply(Action::Move { from, to }).map(|()| 0),
            Now::Later => self.moved_later(from, to),
            Now::Folder | Now::File => Ok(1),
        }
    }

    pub(super) fn rename(&mut self, words: &Words) -> Result<i32, Trouble> {
        words.only(&[])?;
        let [from, name] = words.operands.as_slice() else {
            return Ok(1);
        };
        if name.contains(['*', '?', '\\', '/', ':']) || from.contains(['*', '?']) {
            return Err(Trouble::unclear(
                "wildcards and paths are not understood here",
            ));
        }
        let from = self.machine.path(from)?;
        let Some(folder) = parent(&from) else {
            return Ok(1);
        };
        let to = child(&folder, name)?;
        match (self.machine.now(&from)?, self.machine.now(&to)?) {
            (Now::Later, _) | (_, Now::Later) => self.moved_later(from, to),
            (Now::Absent, _) => Ok(1),
            (_, at_target) if at_target == Now::Absent || is_same(&from, &to) => {
                self.machine.apply(Action::Move { from, to }).map(|()| 0)
            }
            _ => Ok(1),
        }
    }
}
