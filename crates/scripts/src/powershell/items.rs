//! Cmdlets that make, copy, move, rename and delete files, folders and keys.

use wincimg_registry::{KeyMode, RegistryData, RegistryEdit};
use wincimg_windows::path::ImagePath;

use super::super::image::{Action, Entry, Later, Seen};
use super::super::machine::{
    Fitting, Now, Paths, Wildcards, child, is_same, is_within, last_name, parent,
};
use super::super::tools::is_there;
use super::super::trouble::Trouble;
use super::ast::Command;
use super::bind::{Given, Takes};
use super::cmdlets::{Drive, drive, path_of};
use super::eval::{OnError, Shell};
use super::value::Value;

const REMOVE: Takes = Takes {
    values: &["path", "literalpath=pspath=lp"],
    switches: &["recurse", "force", "confirm=cf"],
    positions: &["path"],
};

const TRANSFER: Takes = Takes {
    values: &["path", "literalpath=pspath=lp", "destination"],
    switches: &["recurse", "force", "container", "passthru", "confirm=cf"],
    positions: &["path", "destination"],
};

const RENAME: Takes = Takes {
    values: &["path", "literalpath=pspath=lp", "newname"],
    switches: &["force", "passthru"],
    positions: &["path", "newname"],
};

const NEW: Takes = Takes {
    values: &["path", "name", "itemtype=type", "value=target"],
    switches: &["force", "confirm=cf"],
    positions: &["path"],
};

const LIST: Takes = Takes {
    values: &["path", "literalpath=pspath=lp", "filter"],
    switches: &["force", "file", "directory"],
    positions: &["path", "filter"],
};

impl Shell<'_, '_> {
    /// The paths that a cmdlet is given, by name, place or pipe; and whether wildcards count.
    fn sources(given: &Given, input: Option<Value>) -> Result<(Vec<String>, bool), Trouble> {
        if let Some(value) = given.value("literalpath") {
            return Ok((value.texts()?, false));
        }
        if given.value("path").is_some() {
            return Ok((given.texts("path")?, true));
        }
        match input {
            Some(value) => Ok((value.piped_paths()?, false)),
            None => Err(Trouble::unclear("it names no path")),
        }
    }

    /// What a source means.
    fn resolved(&self, source: &str, wild: bool) -> Result<Fitting, Trouble> {
        if !wild {
            return self
                .machine
                .path(source)
                .map(|path| Fitting::Paths(vec![path]));
        }
        match self.machine.paths(source, Wildcards::PowerShell)? {
            Paths::One(path) => Ok(Fitting::Paths(vec![path])),
            Paths::Pattern { folder, pattern } => {
                self.machine
                    .fitting(&folder, &pattern, Wildcards::PowerShell)
            }
        }
    }

    fn is_wild(source: &str, wild: bool) -> bool {
        wild && source.contains(['*', '?', '['])
    }

    pub(super) fn remove_item(
        &mut self,
        command: &Command,
        input: Option<Value>,
    ) -> Result<Value, Trouble> {
        let on_error = self.error_action(command)?;
        let given = self.given(command, &REMOVE)?;
        let (sources, wild) = Self::sources(&given, input)?;
        for source in sources {
            match drive(&source)? {
                Drive::File(path) => self.remove_files(&path, wild, &given, on_error)?,
                Drive::Registry(path) => self.remove_key(&path, &given, on_error)?,
                Drive::Environment(name) => self.machine.variables.set(&name, None),
                Drive::Iis(path) => {
                    let done = self.iis_removal(&path, &given);
                    self.settled(on_error, done)?;
                }
            }
        }
        Ok(Value::Null)
    }

    fn remove_files(
        &mut self,
        source: &str,
        wild: bool,
        given: &Given,
        on_error: OnError,
    ) -> Result<(), Trouble> {
        let is_wild = Self::is_wild(source, wild);
        let paths = match self.resolved(source, wild)? {
            Fitting::Paths(paths) => paths,
            Fitting::Later => {
                let folder = self.folder_of(source)?;
                return self.apply(Action::Unclear(folder));
            }
        };
        for path in paths {
            match self.machine.now(&path)? {
                Now::Absent if is_wild => {}
                Now::Absent => {
                    let trouble = Trouble::fails(format!("{path} is not there"));
                    self.failed(on_error, trouble)?;
                }
                Now::Later => self.apply(Action::Unclear(path))?,
                Now::File => self.apply(Action::Delete(path))?,
                Now::Folder => self.remove_folder(path, given.has("recurse"))?,
            }
        }
        Ok(())
    }

    fn remove_folder(&mut self, path: ImagePath, recurses: bool) -> Result<(), Trouble> {
        if is_within(&self.machine.folder, &path) {
            return Err(Trouble::unclear("it deletes the working folder"));
        }
        if !recurses {
            match self.machine.image.names(&path) {
                Seen::Present(names) if names.is_empty() => {}
                Seen::Later(Later) => return self.apply(Action::Unclear(path)),
                Seen::Present(_) => {
                    return Err(Trouble::unclear(
                        "without -Recurse it asks whether a folder that is not empty goes, and nobody answers",
                    ));
                }
                Seen::Absent | Seen::Unknown => {
                    return Err(Trouble::unknown(format!("it fails unless {path} is empty")));
                }
            }
        }
        self.apply(Action::Delete(path))
    }

    fn remove_key(&mut self, path: &str, given: &Given, on_error: OnError) -> Result<(), Trouble> {
        let key = super::registry::key(path)?;
        match is_there(&self.machine.image.key(&key)) {
            Some(true) => {}
            Some(false) => {
                let trouble = Trouble::fails(format!("{key} is not there"));
                return self.failed(on_error, trouble);
            }
            None => {
                return Err(Trouble::unknown(format!(
                    "it fails unless the base has {key}"
                )));
            }
        }
        if !given.has("recurse") {
            return Err(Trouble::unclear(
                "without -Recurse it asks whether a key with others below it goes",
            ));
        }
        self.machine.edit(RegistryEdit::DeleteKey { key })
    }

    /// The folder that a pattern looks in.
    fn folder_of(&self, source: &str) -> Result<ImagePath, Trouble> {
        match self.machine.paths(source, Wildcards::PowerShell)? {
            Paths::One(path) => Ok(path),
            Paths::Pattern { folder, .. } => Ok(folder),
        }
    }

    pub(super) fn transfer_item(
        &mut self,
        command: &Command,
        input: Option<Value>,
        is_move: bool,
    ) -> Result<Value, Trouble> {
        let on_error = self.error_action(command)?;
        let given = self.given(command, &TRANSFER)?;
        if given.has("passthru") {
            return Err(Trouble::option("-PassThru"));
        }
        let (sources, wild) = Self::sources(&given, input)?;
        let Drive::File(destination) = drive(&given.needed("destination")?)? else {
            return Err(Trouble::unclear("it goes to something else than a folder"));
        };
        for source in sources {
            let Drive::File(source) = drive(&source)? else {
                return Err(Trouble::unclear("it takes something else than files"));
            };
            let is_wild = Self::is_wild(&source, wild);
            let target = self.machine.path(&destination)?;
            let paths = match self.resolved(&source, wild)? {
                Fitting::Paths(paths) => paths,
                Fitting::Later => {
                    if is_move {
                        let folder = self.folder_of(&source)?;
                        self.apply(Action::Unclear(folder))?;
                    }
                    self.apply(Action::Unclear(target))?;
                    continue;
                }
            };
            if paths.len() > 1 && self.machine.now(&target)? == Now::Absent {
                return Err(Trouble::unclear(format!(
                    "several files go to {target}, which is not a folder"
                )));
            }
            for path in paths {
                if self.machine.now(&path)? == Now::Absent {
                    if !is_wild {
                        let trouble = Trouble::fails(format!("{path} is not there"));
                        self.failed(on_error, trouble)?;
                    }
                    continue;
                }
                let is_folder_meant = destination.ends_with(['\\', '/']);
                let done = self.transfer(path, &target, is_folder_meant, &given, is_move);
                self.settled(on_error, done)?;
            }
        }
        Ok(Value::Null)
    }

    fn transfer(
        &mut self,
        from: ImagePath,
        target: &ImagePath,
        is_folder_meant: bool,
        given: &Given,
        is_move: bool,
    ) -> Result<(), Trouble> {
        let source = self.machine.now(&from)?;
        let to = match self.machine.now(target)? {
            Now::Later => return self.unclear(from, target.clone(), is_move),
            Now::Folder => child(target, last_name(&from))?,
            Now::File if source == Now::Folder => {
                return Err(Trouble::fails(format!("{target} is a file")));
            }
            Now::File => target.clone(),
            Now::Absent => {
                if !self.machine.parent_is_there(target)? {
                    return Err(if source == Now::File || is_move {
                        Trouble::fails(format!("the folder of {target} is not there"))
                    } else {
                        Trouble::unclear(format!("the folder of {target} is not there"))
                    });
                }
                if is_folder_meant && source == Now::File {
                    return Err(Trouble::unclear(format!(
                        "{target} is meant to be a folder and is not there"
                    )));
                }
                target.clone()
            }
        };
        let at_target = self.machine.now(&to)?;
        if source == Now::Later || at_target == Now::Later {
            return self.unclear(from, to, is_move);
        }
        if is_same(&from, &to) || is_within(&to, &from) {
            return Err(Trouble::unclear("something would go into itself"));
        }
        if is_move {
            if is_within(&self.machine.folder, &from) {
                return Err(Trouble::unclear("it moves the working folder"));
            }
            return match at_target {
                Now::Absent => self.apply(Action::Move { from, to }),
                Now::File if given.has("force") && source == Now::File => {
                    self.apply(Action::Move { from, to })
                }
                _ => Err(Trouble::fails(format!("{to} is there already"))),
            };
        }
        match (source, at_target) {
            (Now::File, Now::Folder) => Err(Trouble::fails(format!("{to} is a folder"))),
            (Now::Folder, Now::File) => Err(Trouble::fails(format!("{to} is a file"))),
            (Now::Folder, _) if !given.has("recurse") => match at_target {
                // Of a folder only the folder is copied.
                Now::Absent => self.apply(Action::MakeFolder(to)),
                _ => Err(Trouble::unclear(
                    "a folder without -Recurse is there already",
                )),
            },
            _ => self.apply(Action::Copy { from, to }),
        }
    }

    fn unclear(&mut self, from: ImagePath, to: ImagePath, is_move: bool) -> Result<(), Trouble> {
        if is_move {
            self.apply(Action::Unclear(from))?;
        }
        self.apply(Action::Unclear(to))
    }

    pub(super) fn rename_item(&mut self, command: &Command) -> Result<Value, Trouble> {
        let given = self.given(command, &RENAME)?;
        let source = path_of(&given)?.ok_or_else(|| Trouble::unclear("it names no path"))?;
        let Drive::File(source) = drive(&source)? else {
            return Err(Trouble::unclear("it renames something else than a file"));
        };
        if source.contains(['*', '?', '[']) {
            return Err(Trouble::unclear("wildcards are not understood here"));
        }
        let from = self.machine.path(&source)?;
        let name = given.needed("newname")?;
        let folder = parent(&from).ok_or_else(|| Trouble::fails("the drive has no name"))?;
        let name = name
            .strip_prefix(r".\")
            .or(name.strip_prefix("./"))
            .unwrap_or(&name);
        // A whole path is taken for its last name where it leads to the same folder.
        let name = match name.rsplit_once('\\') {
            None => name,
            Some((_, last)) => {
                let is_here = name.contains(':')
                    && parent(&self.machine.path(name)?).is_some_and(|it| is_same(&it, &folder));
                if !is_here {
                    return Err(Trouble::fails(format!("the new name {name:?} is a path")));
                }
                last
            }
        };
        let to = child(&folder, name)?;
        match (self.machine.now(&from)?, self.machine.now(&to)?) {
            (Now::Later, _) | (_, Now::Later) => self.unclear(from, to, true)?,
            (Now::Absent, _) => return Err(Trouble::fails(format!("{from} is not there"))),
            (_, Now::Absent) => self.apply(Action::Move { from, to })?,
            _ => return Err(Trouble::fails(format!("{to} is there already"))),
        }
        Ok(Value::Null)
    }

    pub(super) fn new_directory(&mut self, command: &Command) -> Result<Value, Trouble> {
        let given = self.given(command, &NEW)?;
        if given.value("itemtype").is_some() || given.value("value").is_some() {
            return Err(Trouble::unclear(
                "of mkdir only paths and -Force are understood",
            ));
        }
        self.make_all(command, &given, true)
    }

    pub(super) fn new_item(&mut self, command: &Command) -> Result<Value, Trouble> {
        let given = self.given(command, &NEW)?;
        let kind = given.text("itemtype")?.map(|kind| kind.to_lowercase());
        match kind.as_deref() {
            None | Some("file") => self.make_all(command, &given, false),
            Some("directory" | "container" | "d" | "dir") => self.make_all(command, &given, true),
            Some(kind @ ("symboliclink" | "junction" | "hardlink")) => Err(Trouble::unclear(
                format!("links ({kind}) are not understood"),
            )),
            Some(kind) if "directory".starts_with(kind) => self.make_all(command, &given, true),
            Some(kind) => Err(Trouble::option(kind)),
        }
    }

    fn make_all(
        &mut self,
        command: &Command,
        given: &Given,
        is_folder: bool,
    ) -> Result<Value, Trouble> {
        let on_error = self.error_action(command)?;
        let name = given.text("name")?;
        let mut paths = given.texts("path")?;
        match (&name, paths.is_empty()) {
            (None, true) => return Err(Trouble::unclear("it names no path")),
            (Some(name), true) => paths.push(name.clone()),
            (Some(name), false) => {
                for path in &mut paths {
                    *path = format!(r"{}\{name}", path.trim_end_matches(['\\', '/']));
                }
            }
            (None, false) => {}
        }
        let mut made = Vec::new();
        for path in paths {
            match drive(&path)? {
                Drive::File(path) => {
                    made.push(Value::Item(self.machine.path(&path)?));
                    let result = if is_folder {
                        self.make_folder(&path, given.has("force"))
                    } else {
                        self.make_file(&path, given)
                    };
                    self.settled(on_error, result)?;
                }
                Drive::Registry(path) => self.make_key(&path, given)?,
                Drive::Iis(_) => {
                    return Err(Trouble::unclear("several items of IIS: are not understood"));
                }
                Drive::Environment(_) => {
                    return Err(Trouble::unclear("env: is not understood here"));
                }
            }
        }
        Ok(Value::of(made))
    }

    fn make_folder(&mut self, path: &str, forced: bool) -> Result<(), Trouble> {
        let path = self.machine.path(path)?;
        match self.machine.entry(&path) {
            Seen::Present(Entry::Folder) if forced => Ok(()),
            Seen::Present(_) => Err(Trouble::fails(format!("{path} is there already"))),
            Seen::Absent => self.apply(Action::MakeFolder(path)),
            Seen::Later(Later) => self.apply(Action::Unclear(path)),
            Seen::Unknown if forced => self.apply(Action::MakeFolder(path)),
            Seen::Unknown => Err(Trouble::unknown(format!("it fails if the base has {path}"))),
        }
    }

    fn make_file(&mut self, path: &str, given: &Given) -> Result<(), Trouble> {
        let path = self.machine.path(path)?;
        let text = given.text("value")?.unwrap_or_default();
        if !text.is_ascii() {
            return Err(Trouble::unclear("text beyond ASCII is not understood here"));
        }
        let forced = given.has("force");
        match self.machine.now(&path)? {
            Now::Folder => return Err(Trouble::fails(format!("{path} is a folder"))),
            Now::File if !forced => {
                return Err(Trouble::fails(format!("{path} is there already")));
            }
            Now::Later => return self.apply(Action::Unclear(path)),
            Now::File | Now::Absent => {}
        }
        if !self.machine.parent_is_there(&path)? {
            match parent(&path) {
                Some(folder) if forced => self.apply(Action::MakeFolder(folder))?,
                _ => return Err(Trouble::fails(format!("the folder of {path} is not there"))),
            }
        }
        self.apply(Action::Write {
            path,
            content: text.into_bytes(),
        })
    }

    fn make_key(&mut self, path: &str, given: &Given) -> Result<(), Trouble> {
        let key = super::registry::key(path)?;
        let forced = given.has("force");
        let mode = match (is_there(&self.machine.image.key(&key)), forced) {
            (Some(false), _) => KeyMode::Merge,
            (Some(true) | None, true) => KeyMode::Replace,
            (Some(true), false) => return Err(Trouble::fails(format!("{key} is there already"))),
            (None, false) => {
                return Err(Trouble::unknown(format!("it fails if the base has {key}")));
            }
        };
        if !forced {
            super::registry::parent_is_there(self.machine, &key)?;
        }
        self.machine.edit(RegistryEdit::CreateKey {
            key: key.clone(),
            mode,
        })?;
        if let Some(value) = given.text("value")? {
            self.machine.edit(RegistryEdit::SetValue {
                key,
                name: String::new(),
                data: RegistryData::sz(&value),
            })?;
        }
        Ok(())
    }

    /// What `Get-ChildItem` and `Get-Item` list, where that is known.
    pub(super) fn get_items(&mut self, command: &Command, itself: bool) -> Result<Value, Trouble> {
        let given = self.given(command, &LIST)?;
        let later = || {
            Value::Opaque(Trouble::later(
                "what is listed is known only after a download",
            ))
        };
        let source = path_of(&given)?.unwrap_or_else(|| ".".to_owned());
        let Drive::File(source) = drive(&source)? else {
            return Ok(Value::opaque("what is listed is used"));
        };
        let filter = given.text("filter")?;
        let path = match self.machine.paths(&source, Wildcards::PowerShell)? {
            Paths::One(path) if itself || filter.is_none() => path,
            Paths::One(path) => {
                let pattern = filter.unwrap_or_default();
                return self.fitting_items(&path, &pattern, &given);
            }
            Paths::Pattern { folder, pattern } => {
                return self.fitting_items(&folder, &pattern, &given);
            }
        };
        match self.machine.now(&path)? {
            Now::Absent => Err(Trouble::fails(format!("{path} is not there"))),
            Now::Later => Ok(later()),
            Now::File => Ok(Value::Item(path)),
            Now::Folder if itself => Ok(Value::Item(path)),
            Now::Folder => self.fitting_items(&path, "*", &given),
        }
    }

    fn fitting_items(
        &mut self,
        folder: &ImagePath,
        pattern: &str,
        given: &Given,
    ) -> Result<Value, Trouble> {
        let fitting = match self.machine.fitting(folder, pattern, Wildcards::PowerShell) {
            Ok(fitting) => fitting,
            Err(trouble) => return Ok(Value::Opaque(trouble)),
        };
        let Fitting::Paths(paths) = fitting else {
            return Ok(Value::Opaque(Trouble::later(
                "what is listed is known only after a download",
            )));
        };
        let mut items = Vec::new();
        for path in paths {
            let now = self.machine.now(&path)?;
            let wanted = (!given.has("file") || now == Now::File)
                && (!given.has("directory") || now == Now::Folder);
            if wanted {
                items.push(Value::Listed(path));
            }
        }
        Ok(Value::of(items))
    }
}
