//! Cmdlets that create files, folders and keys.

use wincimg_registry::{KeyMode, RegistryData, RegistryEdit};

use super::super::error::{self, Result, ScriptError};
use super::super::image::{EntryKind, ImageAction, Lookup, PendingDownload};
use super::super::process::PathState;
use super::super::tools::make_link;
use super::ast::CommandAst;
use super::drive::Drive;
use super::eval::Shell;
use super::parameters::{BoundParameters, ParameterSet};
use super::value::PsValue;

const NEW: ParameterSet = ParameterSet("[path] name itemtype=type value=target force? confirm=cf?");

impl Shell<'_, '_> {
    pub(super) fn new_directory(&mut self, command: &CommandAst) -> Result<PsValue> {
        let given = self.bind_parameters(command, &NEW)?;
        if given.value("itemtype").is_some() || given.value("value").is_some() {
            return error::unclear("mkdir supports only paths and -Force");
        }
        self.make_all(command, &given, true)
    }

    pub(super) fn new_item(&mut self, command: &CommandAst) -> Result<PsValue> {
        let given = self.bind_parameters(command, &NEW)?;
        let kind = given.text("itemtype")?.map(|kind| kind.to_lowercase());
        match kind.as_deref() {
            None | Some("file") => self.make_all(command, &given, false),
            Some("directory" | "container" | "d" | "dir") => self.make_all(command, &given, true),
            Some("symboliclink") => self.new_link(&given),
            Some(kind @ ("junction" | "hardlink")) => Err(ScriptError::unclear(format!(
                "links ({kind}) are not supported"
            ))
            .help("use a symbolic link: New-Item -ItemType SymbolicLink")),
            Some(kind) if "directory".starts_with(kind) => self.make_all(command, &given, true),
            Some(kind) => error::option(kind),
        }
    }

    /// A symbolic link. Its kind is that of the target, which has to exist.
    fn new_link(&mut self, given: &BoundParameters) -> Result<PsValue> {
        let target = given.required("value")?;
        let link = match given.text("name")? {
            None => given.required("path")?,
            Some(name) => match given.text("path")? {
                None => name,
                Some(folder) => format!(r"{}\{name}", folder.trim_end_matches(['\\', '/'])),
            },
        };
        let link = self.file_path(&link, "it does not link a file")?;
        if given.has("force") || target.get(1..3) != Some(":\\") {
            return error::unclear(
                "only links without -Force and with an absolute target, as in C:\\x, are supported",
            );
        }
        let path = self.machine.path(&target)?;
        let to_folder = match self.machine.path_state(&path)? {
            PathState::Folder => true,
            PathState::File => false,
            PathState::Absent => {
                return error::unclear(format!(
                    "whether it fails without the target {path} is unknown"
                ));
            }
            PathState::Deferred => return error::later(format!("{path} is downloaded later")),
        };
        match make_link(self.machine, &link, &target, to_folder)? {
            0 => Ok(PsValue::Null),
            _ => Err(self.machine.take_error("it fails".to_owned())),
        }
    }

    fn make_all(
        &mut self,
        command: &CommandAst,
        given: &BoundParameters,
        is_folder: bool,
    ) -> Result<PsValue> {
        let on_error = self.error_action(command)?;
        let name = given.text("name")?;
        let mut paths = given.texts("path")?;
        match (&name, paths.is_empty()) {
            (None, true) => return error::unclear("no path given"),
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
            match self.drive(&path)? {
                Drive::File(path) => {
                    made.push(PsValue::Item(self.machine.path(&path)?));
                    let result = if is_folder {
                        self.make_folder(&path, given.has("force"))
                    } else {
                        self.make_file(&path, given)
                    };
                    self.handle_result(on_error, result)?;
                }
                Drive::Registry(path) => self.make_key(&path, given)?,
                Drive::Iis(_) => return error::unclear("several items of IIS: are not supported"),
                Drive::Environment(_) => return error::unclear("env: is not supported here"),
            }
        }
        Ok(PsValue::from_items(made))
    }

    fn make_folder(&mut self, path: &str, forced: bool) -> Result<()> {
        let path = self.machine.path(path)?;
        match self.machine.entry(&path) {
            Lookup::Present(EntryKind::Folder) if forced => Ok(()),
            Lookup::Present(_) => error::fails(format!("{path} already exists")),
            Lookup::Absent => self.apply(ImageAction::MakeFolder(path)),
            Lookup::Deferred(PendingDownload) => self.apply(ImageAction::Unclear(path)),
            Lookup::Unknown if forced => self.apply(ImageAction::MakeFolder(path)),
            Lookup::Unknown => error::unknown(format!("it fails if the base has {path}")),
        }
    }

    fn make_file(&mut self, path: &str, given: &BoundParameters) -> Result<()> {
        let path = self.machine.file_path(path)?;
        let text = given.text("value")?.unwrap_or_default();
        if !text.is_ascii() {
            return error::unclear("non-ASCII text is not supported here");
        }
        let forced = given.has("force");
        match self.machine.path_state(&path)? {
            PathState::Folder => return error::fails(format!("{path} is a folder")),
            PathState::File if !forced => return error::fails(format!("{path} already exists")),
            PathState::Deferred => return self.apply(ImageAction::Unclear(path)),
            PathState::File | PathState::Absent => {}
        }
        self.machine.ensure_parent(&path, forced)?;
        self.apply(ImageAction::Write {
            path,
            content: text.into_bytes(),
        })
    }

    fn make_key(&mut self, path: &str, given: &BoundParameters) -> Result<()> {
        let key = super::registry::key(path)?;
        let forced = given.has("force");
        let mode = match (self.machine.image.key(&key), forced) {
            (Lookup::Absent, _) => KeyMode::Merge,
            (_, true) => KeyMode::Replace,
            (Lookup::Present(()), false) => return error::fails(format!("{key} already exists")),
            (_, false) => return error::unknown(format!("it fails if the base has {key}")),
        };
        if !forced {
            super::registry::check_parent_exists(self.machine, &key)?;
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
}
