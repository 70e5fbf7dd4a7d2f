//! Cmdlets that create, copy, move, rename and delete files, folders and keys.

use wincimg_common::untrusted::QuotedText;
use wincimg_registry::RegistryEdit;
use wincimg_windows::path::ImagePath;

use super::super::error::{self, Result, ScriptError};
use super::super::image::{EntryKind, ImageAction};
use super::super::process::{
    HIDDEN, HIDDEN_OR_SYSTEM, PathState, Paths, READ_ONLY, Wildcards, access_denied,
    check_no_wildcards, is_like, is_same, is_within,
};
use super::ast::CommandAst;
use super::drive::{Drive, TWO_PATHS, path_of};
use super::eval::{ErrorAction, Shell};
use super::parameters::{BoundParameters, ParameterSet};
use super::registry;
use super::value::{Input, PsValue};

const REMOVE: ParameterSet =
    ParameterSet("[path] literalpath=pspath=lp recurse? force? confirm=cf? filter! credential!");

const TRANSFER: ParameterSet = ParameterSet(
    "[path] literalpath=pspath=lp [destination] recurse? force? container? passthru? confirm=cf? \
     filter! credential!",
);

const RENAME: ParameterSet =
    ParameterSet("[path] literalpath=pspath=lp [newname] force? passthru?");

const LIST: ParameterSet = ParameterSet(
    "[path] literalpath=pspath=lp [filter] include force? file=af? directory=ad=d? recurse=s? \
     depth!",
);

/// Where `Copy-Item` and `Move-Item` put files.
struct Destination {
    path: ImagePath,
    /// True if it is written as a folder.
    is_folder: bool,
}

#[derive(Debug, Clone, Copy)]
struct TransferMode {
    is_move: bool,
    is_forced: bool,
    is_recursive: bool,
    on_error: ErrorAction,
}

impl Shell<'_, '_> {
    /// Paths given by name, position or pipeline, and whether they may have wildcards.
    fn sources(given: &BoundParameters, input: Input) -> Result<(Vec<String>, bool)> {
        let is_given = given.value("path").or(given.value("literalpath")).is_some();
        if is_given && input.is_some() {
            return error::unclear(TWO_PATHS);
        }
        if let Some(value) = given.value("literalpath") {
            return Ok((value.texts()?, false));
        }
        if given.value("path").is_some() {
            return Ok((given.texts("path")?, true));
        }
        match input {
            Some(value) => Ok((value.piped_paths()?, false)),
            None => error::unclear("no path given"),
        }
    }

    /// The paths of a source; `None` if a download decides. Wildcards match what is hidden only by
    /// force.
    fn resolved(
        &self,
        source: &str,
        wild: bool,
        is_forced: bool,
    ) -> Result<Option<Vec<ImagePath>>> {
        if !wild {
            return Ok(Some(vec![self.machine.path(source)?]));
        }
        match self.machine.paths(source, Wildcards::PowerShell)? {
            Paths::One(path) => Ok(Some(vec![path])),
            Paths::Pattern { folder, pattern } => {
                let except = left_out(is_forced);
                self.machine
                    .glob(&folder, &pattern, Wildcards::PowerShell, except)
            }
        }
    }

    fn is_wild(source: &str, wild: bool) -> bool {
        wild && source.contains(['*', '?', '['])
    }

    pub(super) fn remove_item(&mut self, command: &CommandAst, input: Input) -> Result<()> {
        let on_error = self.error_action(command)?;
        let given = self.bind_parameters(command, &REMOVE)?;
        let (sources, wild) = Self::sources(&given, input)?;
        for source in sources {
            match self.drive(&source)? {
                Drive::File(path) => self.remove_files(&path, wild, &given, on_error)?,
                Drive::Registry(path) => {
                    let key = registry::key(&path)?;
                    let found = registry::check_key_exists(self.machine, &key);
                    if found.is_err() {
                        self.handle_result(on_error, found)?;
                        continue;
                    }
                    if !given.has("recurse") {
                        let why = "without -Recurse it asks before it deletes a key with subkeys";
                        return error::unclear(why);
                    }
                    self.machine.edit(RegistryEdit::DeleteKey { key })?;
                }
                Drive::Environment(name) => self.machine.variables.set(&name, None),
                Drive::Iis(path) => {
                    let done = self.iis_removal(&path, &given);
                    self.handle_result(on_error, done)?;
                }
            }
        }
        Ok(())
    }

    fn remove_files(
        &mut self,
        source: &str,
        wild: bool,
        given: &BoundParameters,
        on_error: ErrorAction,
    ) -> Result<()> {
        let is_wild = Self::is_wild(source, wild);
        let is_forced = given.has("force");
        let Some(paths) = self.resolved(source, wild, is_forced)? else {
            let folder = self.folder_of(source)?;
            return self.apply(ImageAction::Unclear(folder));
        };
        for path in paths {
            if self.machine.link(&path) == Some(EntryKind::File(())) {
                self.apply(ImageAction::Delete(path))?;
                continue;
            }
            let state = self.machine.path_state(&path)?;
            if !is_forced
                && let Some(kept) = self
                    .machine
                    .first_with(&path, READ_ONLY | HIDDEN_OR_SYSTEM)?
            {
                let error = ScriptError::fails(format!(
                    "cannot remove {kept}: You do not have sufficient access rights to perform this \
                     operation"
                ));
                let error = error.help("add -Force");
                if state == PathState::Folder {
                    // The rest of it goes.
                    return Err(error);
                }
                self.handle_error(on_error, error)?;
                continue;
            }
            match state {
                PathState::Absent if is_wild => {}
                PathState::Absent => {
                    let error = ScriptError::fails(format!("{path} not found"));
                    self.handle_error(on_error, error)?;
                }
                PathState::Deferred => self.apply(ImageAction::Unclear(path))?,
                PathState::File => self.apply(ImageAction::Delete(path))?,
                PathState::Folder => self.remove_folder(path, given.has("recurse"))?,
            }
        }
        Ok(())
    }

    fn remove_folder(&mut self, path: ImagePath, recurses: bool) -> Result<()> {
        if recurses {
            return self.machine.delete(path);
        }
        match self.machine.is_empty(&path)? {
            Some(true) => self.machine.delete(path),
            Some(false) => error::unclear(
                "without -Recurse it asks before it deletes a folder that is not empty",
            ),
            None => self.apply(ImageAction::Unclear(path)),
        }
    }

    fn folder_of(&self, source: &str) -> Result<ImagePath> {
        match self.machine.paths(source, Wildcards::PowerShell)? {
            Paths::One(path) => Ok(path),
            Paths::Pattern { folder, .. } => Ok(folder),
        }
    }

    pub(super) fn transfer_item(
        &mut self,
        command: &CommandAst,
        input: Input,
        is_move: bool,
    ) -> Result<()> {
        let on_error = self.error_action(command)?;
        let given = self.bind_parameters(command, &TRANSFER)?;
        if given.has("passthru") {
            return error::option("-PassThru");
        }
        if given
            .value("container")
            .is_some_and(|value| *value == PsValue::Bool(false))
        {
            return error::option("-Container:$false");
        }
        let (sources, wild) = Self::sources(&given, input)?;
        let destination = self.file_path(
            &given.required("destination")?,
            "the destination is not a folder",
        )?;
        let mode = TransferMode {
            is_move,
            is_forced: given.has("force"),
            is_recursive: given.has("recurse"),
            on_error,
        };
        let to = Destination {
            path: self.machine.path(&destination)?,
            is_folder: destination.ends_with(['\\', '/']),
        };
        for source in sources {
            let source = self.file_path(&source, "only files are supported")?;
            let Some(paths) = self.resolved(&source, wild, mode.is_forced)? else {
                self.unclear(self.folder_of(&source)?, to.path.clone(), is_move)?;
                continue;
            };
            if paths.len() > 1 && self.machine.path_state(&to.path)? == PathState::Absent {
                return error::unclear(format!(
                    "cannot copy or move several files to {}, which is not a folder",
                    to.path
                ));
            }
            for path in paths {
                if self.machine.path_state(&path)? == PathState::Absent {
                    if !Self::is_wild(&source, wild) {
                        let error = ScriptError::fails(format!("{path} not found"));
                        self.handle_error(on_error, error)?;
                    }
                    continue;
                }
                let done = self.transfer(path, &to, mode);
                self.handle_result(on_error, done)?;
            }
        }
        Ok(())
    }

    fn transfer(&mut self, from: ImagePath, to: &Destination, mode: TransferMode) -> Result<()> {
        let Some(to) = self.target(&from, to, mode)? else {
            return self.unclear(from, to.path.clone(), mode.is_move);
        };
        let source = self.machine.path_state(&from)?;
        let at_target = self.machine.path_state(&to)?;
        if source == PathState::Deferred || at_target == PathState::Deferred {
            return self.unclear(from, to, mode.is_move);
        }
        if is_same(&from, &to) || is_within(&to, &from) {
            return error::unclear("a folder would be copied or moved into itself");
        }
        if mode.is_move {
            if is_within(&self.machine.folder, &from) {
                return error::unclear("it moves the working folder");
            }
            return match at_target {
                PathState::Absent => self.apply(ImageAction::Move { from, to }),
                PathState::File if mode.is_forced && source == PathState::File => {
                    self.apply(ImageAction::Move { from, to })
                }
                _ => error::fails(format!("{to} already exists")),
            };
        }
        match (source, at_target) {
            (PathState::File, PathState::Folder) => error::fails(format!("{to} is a folder")),
            (PathState::Folder, PathState::File) => error::fails(format!("{to} is a file")),
            (PathState::Folder, _) if !mode.is_recursive => match at_target {
                // Without -Recurse, only the folder itself is copied.
                PathState::Absent => self.apply(ImageAction::MakeFolder(to)),
                _ => error::unclear(
                    "copying a folder without -Recurse to an existing one is not supported",
                ),
            },
            // It is an error, after which the files are copied all the same.
            (PathState::Folder, PathState::Folder) if !mode.is_forced => {
                let error = ScriptError::fails(format!("{to} already exists"));
                if mode.on_error == ErrorAction::Continue {
                    self.apply(ImageAction::Copy { from, to })?;
                }
                Err(error.help("add -Force"))
            }
            (_, PathState::File)
                if !mode.is_forced && self.machine.has_attribute(&to, READ_ONLY | HIDDEN) =>
            {
                Err(ScriptError::fails(access_denied(&to)).help("add -Force"))
            }
            _ => self.apply(ImageAction::Copy { from, to }),
        }
    }

    /// The new path of a file or folder; `None` if it is unclear until a download.
    fn target(
        &self,
        from: &ImagePath,
        to: &Destination,
        mode: TransferMode,
    ) -> Result<Option<ImagePath>> {
        let source = self.machine.path_state(from)?;
        let target = &to.path;
        match self.machine.path_state(target)? {
            PathState::Deferred => Ok(None),
            PathState::Folder => Ok(Some(target.join(from.name())?)),
            PathState::File if source == PathState::Folder => {
                error::fails(format!("{target} is a file"))
            }
            PathState::Absent if !self.machine.check_parent_exists(target)? => {
                let why = format!("the folder of {target} does not exist");
                Err(if source == PathState::File || mode.is_move {
                    ScriptError::fails(why)
                } else {
                    ScriptError::unclear(why)
                })
            }
            PathState::Absent if to.is_folder && source == PathState::File => {
                error::unclear(format!("folder {target} not found"))
            }
            PathState::File | PathState::Absent => Ok(Some(target.clone())),
        }
    }

    fn unclear(&mut self, from: ImagePath, to: ImagePath, is_move: bool) -> Result<()> {
        if is_move {
            self.apply(ImageAction::Unclear(from))?;
        }
        self.apply(ImageAction::Unclear(to))
    }

    pub(super) fn rename_item(&mut self, command: &CommandAst, input: Input) -> Result<()> {
        let given = self.bind_parameters(command, &RENAME)?;
        let source = match (path_of(&given)?, input) {
            (Some(path), None) => path,
            (Some(_), Some(_)) => return error::unclear(TWO_PATHS),
            (None, Some(input)) => match input.piped_paths()?.as_slice() {
                [] => return Ok(()),
                [path] => path.clone(),
                _ => return error::unclear("several paths are not supported"),
            },
            (None, None) => return error::unclear("no path given"),
        };
        let source = self.file_path(&source, "it does not rename a file")?;
        check_no_wildcards(&source, &['*', '?', '['])?;
        let from = self.machine.path(&source)?;
        let name = given.required("newname")?;
        let folder = from.parent();
        let folder = folder.ok_or_else(|| ScriptError::fails("cannot rename the drive"))?;
        let name = name
            .strip_prefix(r".\")
            .or(name.strip_prefix("./"))
            .unwrap_or(&name);
        // A full path in the same folder counts as its last name.
        let name = match name.rsplit_once(['\\', '/']) {
            None => name,
            Some((_, last)) => {
                let is_here =
                    |path: ImagePath| path.parent().is_some_and(|it| is_same(&it, &folder));
                if !name.contains(':') || !is_here(self.machine.path(name)?) {
                    return error::fails(format!("the new name {} is a path", QuotedText(name)));
                }
                last
            }
        };
        let to = folder.join(name)?;
        match (
            self.machine.path_state(&from)?,
            self.machine.path_state(&to)?,
        ) {
            (PathState::Deferred, _) | (_, PathState::Deferred) => self.unclear(from, to, true),
            (PathState::Absent, _) => error::fails(format!("{from} not found")),
            // Windows lets a file change the case of its name, and refuses a folder.
            (PathState::File, PathState::File) if is_same(&from, &to) => {
                self.apply(ImageAction::Move { from, to })
            }
            (_, PathState::Absent) => self.apply(ImageAction::Move { from, to }),
            _ => error::fails(format!("{to} already exists")),
        }
    }

    pub(super) fn get_items(&mut self, command: &CommandAst, itself: bool) -> Result<PsValue> {
        let given = self.bind_parameters(command, &LIST)?;
        let source = path_of(&given)?.unwrap_or_else(|| ".".to_owned());
        let Drive::File(source) = self.drive(&source)? else {
            return Ok(PsValue::opaque("the listing is used"));
        };
        let filter = given.text("filter")?;
        if !itself && (given.has("recurse") || given.value("include").is_some()) {
            return self.items_below(&source, &given);
        }
        let path = match self.machine.paths(&source, Wildcards::PowerShell)? {
            Paths::One(path) => path,
            Paths::Pattern { folder, pattern } => {
                if filter.is_some() {
                    return error::unclear("-Filter with a pattern as path is not supported");
                }
                let wildcards = Wildcards::PowerShell;
                // PowerShell finds the paths, and gets each by its whole path.
                return self.matching_items(&folder, &pattern, wildcards, PsValue::Item, &given);
            }
        };
        match (self.machine.path_state(&path)?, filter) {
            (PathState::Absent, _) => error::fails(format!("{path} not found")),
            (PathState::Deferred, _) => Ok(listed_later()),
            (PathState::Folder, Some(filter)) if !itself => {
                self.matching_items(&path, &filter, Wildcards::Cmd, PsValue::Listed, &given)
            }
            (PathState::Folder, None) if !itself => {
                self.matching_items(&path, "*", Wildcards::PowerShell, PsValue::Listed, &given)
            }
            (_, Some(_)) => error::unclear("-Filter of one item is not supported"),
            (_, None) => Ok(PsValue::Item(path)),
        }
    }

    /// `-Recurse` for files: a list with folders would change while its items are deleted or
    /// moved.
    fn items_below(&mut self, source: &str, given: &BoundParameters) -> Result<PsValue> {
        let included = given.texts("include")?;
        if !given.has("recurse") || !given.has("file") || given.has("directory") {
            return error::unclear("of -Recurse and -Include, only -Recurse -File is supported");
        }
        if included.iter().any(|pattern| pattern.contains(['[', '`'])) {
            return error::unclear("only the wildcards * and ? are supported");
        }
        let top = self.machine.only_path(source)?;
        if self.machine.path_state(&top)? == PathState::Absent {
            return error::fails(format!("{top} not found"));
        }
        let except = left_out(given.has("force"));
        let pattern = given.text("filter")?.unwrap_or_else(|| "*".to_owned());
        let files = match self.machine.files_below(top, &[pattern], except) {
            Ok(Some(files)) => files,
            Ok(None) => return Ok(listed_later()),
            Err(error) => return Ok(PsValue::Opaque(error)),
        };
        let is_included = |path: &ImagePath| {
            let name = path.name();
            included.is_empty() || included.iter().any(|pattern| is_like(name, pattern))
        };
        let files = files.into_iter().filter(is_included);
        Ok(PsValue::from_items(files.map(PsValue::Listed).collect()))
    }

    fn matching_items(
        &mut self,
        folder: &ImagePath,
        pattern: &str,
        wildcards: Wildcards,
        item: fn(ImagePath) -> PsValue,
        given: &BoundParameters,
    ) -> Result<PsValue> {
        let except = left_out(given.has("force"));
        let paths = match self.machine.glob(folder, pattern, wildcards, except) {
            Ok(Some(paths)) => paths,
            Ok(None) => return Ok(listed_later()),
            Err(error) => return Ok(PsValue::Opaque(error)),
        };
        // Windows lists folders before files.
        let (mut folders, mut others) = (Vec::new(), Vec::new());
        for path in paths {
            let now = self.machine.path_state(&path)?;
            let wanted = (!given.has("file") || now == PathState::File)
                && (!given.has("directory") || now == PathState::Folder);
            match now {
                PathState::Folder if wanted => folders.push(item(path)),
                _ if wanted => others.push(item(path)),
                _ => {}
            }
        }
        folders.extend(others);
        Ok(PsValue::from_items(folders))
    }
}

/// A listing that depends on a download.
fn listed_later() -> PsValue {
    PsValue::Opaque(ScriptError::later(
        "the listing is known only after a download",
    ))
}

/// Attributes of what wildcards and lists leave out.
fn left_out(is_forced: bool) -> u32 {
    if is_forced { 0 } else { HIDDEN }
}
