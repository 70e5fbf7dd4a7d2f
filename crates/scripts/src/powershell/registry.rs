//! Cmdlets on registry values, and on services, which the registry holds.

use wincimg_registry::{DataType, KeyPath, RegistryData, RegistryEdit, TypedData};
use wincimg_windows::service::StartType;
use wincimg_windows::variables::filled_in;

use super::super::error::{self, Result, ScriptError};
use super::super::image::{ImageAction, Lookup, PendingDownload, exists};
use super::super::process::Process;
use super::super::tools::services;
use super::ast::CommandAst;
use super::drive::{Drive, path_of};
use super::eval::Shell;
use super::parameters::ParameterSet;
use super::value::PsValue;

const PROPERTY: ParameterSet =
    ParameterSet("[path] literalpath=pspath=lp [name] [value] propertytype=type force? filter!");

const NAMED: ParameterSet = ParameterSet("[path] literalpath=pspath=lp [name] force? filter!");

const SERVICE: ParameterSet = ParameterSet(
    "[name=servicename] [binarypathname] displayname description startuptype dependson status!",
);

/// Parses a PowerShell path of a key: `HKLM:\SOFTWARE\x`, with either slash.
pub(super) fn key(path: &str) -> Result<KeyPath> {
    if path.contains(['*', '?']) {
        return error::unclear("wildcards in a key path are not supported");
    }
    let path = path.trim_start_matches(['\\', '/']);
    let (root, below) = path.split_once([':', '\\', '/']).unwrap_or((path, ""));
    if below.contains(':') {
        return error::unclear("a colon in a key path is not supported");
    }
    let names = below.split(['\\', '/']).filter(|name| !name.is_empty());
    let below: Vec<&str> = names.collect();
    Process::parse_key(&format!(r"{root}\{}", below.join(r"\")))
}

/// Checks that the parent key exists, which creating a key without `-Force` requires.
pub(super) fn check_parent_exists(machine: &Process<'_>, key: &KeyPath) -> Result<()> {
    let mut parent = key.clone();
    parent.pop();
    if parent.components().is_empty() {
        return Ok(());
    }
    check_key_exists(machine, &parent)
}

pub(super) fn check_key_exists(machine: &Process<'_>, key: &KeyPath) -> Result<()> {
    let unknown = format!("it fails unless the base has {key}");
    if exists(&machine.image.key(key), &unknown)? {
        return Ok(());
    }
    error::fails(format!("{key} not found"))
}

impl Shell<'_, '_> {
    pub(super) fn set_property(&mut self, command: &CommandAst, is_new: bool) -> Result<()> {
        let given = self.bind_parameters(command, &PROPERTY)?;
        let path = path_of(&given)?.ok_or_else(|| ScriptError::unclear("no key given"))?;
        let key = match self.drive(&path)? {
            Drive::Registry(path) => key(&path)?,
            Drive::Iis(path) if !is_new => return self.iis_property(command, &path, &given),
            _ => return error::unclear("it does not change the registry"),
        };
        let name = given.required("name")?;
        let name = if name.eq_ignore_ascii_case("(default)") {
            String::new()
        } else {
            name
        };
        check_key_exists(self.machine, &key)?;
        let before = self.machine.image.value(&key, &name);
        let forced = given.has("force");
        let kind = given.text("propertytype")?;
        let is_number = kind.as_ref().is_some_and(|kind| {
            kind.eq_ignore_ascii_case("dword") || kind.eq_ignore_ascii_case("qword")
        });
        if let Some(value) = given.value("value").filter(|_| !is_number) {
            command.check_number(value)?;
        }
        let existing = match (&before, is_new, forced) {
            (Lookup::Present(_), true, false) => {
                return error::fails(format!("the value {name:?} of {key} already exists"));
            }
            (Lookup::Present(data), false, _) => Some(data.kind()),
            (Lookup::Unknown | Lookup::Deferred(PendingDownload), true, false) => {
                return error::unknown(format!(
                    "it fails if {key} in the base has the value {name:?}"
                ));
            }
            (Lookup::Unknown | Lookup::Deferred(PendingDownload), false, _) if kind.is_none() => {
                return error::unknown(format!(
                    "the type of {name:?} depends on {key} in the base"
                ));
            }
            _ => None,
        };
        let value = given.value("value").cloned().unwrap_or(PsValue::Null);
        let data = data(kind.as_deref(), existing, &value)?;
        self.machine
            .edit(RegistryEdit::SetValue { key, name, data })
    }

    pub(super) fn remove_property(&mut self, command: &CommandAst) -> Result<()> {
        let given = self.bind_parameters(command, &NAMED)?;
        let path = path_of(&given)?.ok_or_else(|| ScriptError::unclear("no key given"))?;
        let Drive::Registry(path) = self.drive(&path)? else {
            return error::unclear("it does not change the registry");
        };
        let key = key(&path)?;
        let name = given.required("name")?;
        let unknown = format!("it fails unless {key} in the base has the value {name:?}");
        if !exists(&self.machine.image.value(&key, &name), &unknown)? {
            return error::fails(format!("{key} has no value {name:?}"));
        }
        self.machine.edit(RegistryEdit::DeleteValue { key, name })
    }

    pub(super) fn get_property(&mut self, command: &CommandAst) -> Result<PsValue> {
        let given = self.bind_parameters(command, &NAMED)?;
        let path = path_of(&given)?.ok_or_else(|| ScriptError::unclear("no key given"))?;
        let (Drive::Registry(path), Some(name)) = (self.drive(&path)?, given.text("name")?) else {
            return Ok(PsValue::opaque("the content of a key is used"));
        };
        let key = key(&path)?;
        let value = match self.machine.image.value(&key, &name) {
            Lookup::Present(data) => match data.typed() {
                TypedData::Text(text) if data.kind() == DataType::SZ => PsValue::Text(text),
                TypedData::Text(text) if data.kind() == DataType::EXPAND_SZ => {
                    match filled_in(&text, &[]) {
                        Some(text) => PsValue::Text(text),
                        None => return Ok(PsValue::opaque("the content of a key is used")),
                    }
                }
                TypedData::Dword(number) => PsValue::Number(i64::from(number)),
                _ => return Ok(PsValue::opaque("the content of a key is used")),
            },
            Lookup::Absent => return error::fails(format!("{key} has no value {name:?}")),
            Lookup::Deferred(PendingDownload) | Lookup::Unknown => {
                return Ok(PsValue::Opaque(ScriptError::unknown(format!(
                    "the value {name:?} of {key} in the base is unknown"
                ))));
            }
        };
        Ok(PsValue::Object(vec![(name.to_lowercase(), value)].into()))
    }

    pub(super) fn service(&mut self, command: &CommandAst, is_new: bool) -> Result<()> {
        let given = self.bind_parameters(command, &SERVICE)?;
        let mut service = services::empty(&given.required("name")?, is_new)?;
        let text = |name| {
            given
                .text(name)?
                .as_deref()
                .map(services::setting)
                .transpose()
        };
        let settings = &mut service.settings;
        settings.command = given.text("binarypathname")?;
        settings.display_name = text("displayname")?;
        settings.description = text("description")?;
        let depends_on = given.texts("dependson")?;
        if !depends_on.is_empty() {
            let names = depends_on.iter().map(String::as_str);
            settings.depends_on = Some(services::services(names)?);
        }
        if is_new && settings.command.is_none() {
            return error::fails("a new service requires -BinaryPathName");
        }
        settings.start = match given.text("startuptype")?.map(|text| text.to_lowercase()) {
            None => is_new.then_some(StartType::Auto),
            Some(text) => Some(match text.as_str() {
                "automatic" => StartType::Auto,
                "automaticdelayedstart" => StartType::DelayedAuto,
                "manual" => StartType::Demand,
                "disabled" => StartType::Disabled,
                other => return error::option(other),
            }),
        };
        self.apply(ImageAction::Service(service))
    }
}

/// Data of a value: of the given type, of its current type, or of the type that it looks like.
fn data(kind: Option<&str>, existing: Option<DataType>, value: &PsValue) -> Result<RegistryData> {
    let is_rounded = matches!(value, PsValue::Text(text) if text.trim().parse::<f64>().is_ok());
    let is_kept = kind.is_none() && existing.is_some();
    let wrong = || {
        if is_rounded {
            return ScriptError::unclear("a number with a fraction is not supported here");
        }
        if is_kept {
            return ScriptError::unclear("whether the value keeps its type is unclear");
        }
        ScriptError::fails("the value does not match its type")
    };
    let kind = match kind.map(str::to_lowercase).as_deref() {
        Some("string") => DataType::SZ,
        Some("expandstring") => DataType::EXPAND_SZ,
        Some("dword") => DataType::DWORD,
        Some("qword") => DataType::QWORD,
        Some("multistring") => DataType::MULTI_SZ,
        Some("binary") => DataType::BINARY,
        Some(other) => return error::unclear(format!("unsupported type {other:?}")),
        None => fitting_kind(existing, value, is_rounded)?,
    };
    Ok(match kind {
        DataType::SZ => RegistryData::sz(&value.text()?),
        DataType::EXPAND_SZ => RegistryData::expand_sz(&value.text()?),
        DataType::DWORD => RegistryData::dword(dword(value).ok_or_else(wrong)?),
        DataType::QWORD => {
            let number = whole_number(value).ok_or_else(wrong)?;
            RegistryData::qword(u64::try_from(number).map_err(|_| wrong())?)
        }
        DataType::MULTI_SZ => RegistryData::multi_sz(&value.texts()?).map_err(|_| wrong())?,
        DataType::BINARY => {
            let bytes = value
                .clone()
                .items()
                .iter()
                .map(|item| whole_number(item).and_then(|number| u8::try_from(number).ok()))
                .collect::<Option<Vec<u8>>>();
            RegistryData::binary(bytes.ok_or_else(wrong)?)
        }
        _ => return error::unclear("unsupported type of value"),
    })
}

/// The type of a value without a given one: that of the value before, or the one that it looks like.
fn fitting_kind(existing: Option<DataType>, value: &PsValue, is_rounded: bool) -> Result<DataType> {
    match (existing, value) {
        // What does not convert to the current type replaces it.
        (Some(DataType::DWORD | DataType::QWORD), PsValue::Text(text))
            if !is_rounded && text.starts_with(char::is_alphabetic) =>
        {
            Ok(DataType::SZ)
        }
        (Some(kind), _) => Ok(kind),
        (None, PsValue::Number(number)) if i32::try_from(*number).is_ok() => Ok(DataType::DWORD),
        (None, PsValue::Number(_)) => Ok(DataType::QWORD),
        (None, PsValue::Text(_) | PsValue::Null) => Ok(DataType::SZ),
        (None, PsValue::List(items))
            if items.iter().all(|item| matches!(item, PsValue::Text(_))) =>
        {
            error::unclear("unsupported type of a list")
        }
        _ => error::unclear("unsupported type of value"),
    }
}

fn whole_number(value: &PsValue) -> Option<i64> {
    match value {
        PsValue::Null => Some(0),
        PsValue::Text(text) => {
            let text = text.trim();
            let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
            match hexadecimal {
                Some(digits) => i64::from_str_radix(digits, 16).ok(),
                None => text.parse().ok(),
            }
        }
        other => other.number(),
    }
}

fn dword(value: &PsValue) -> Option<u32> {
    let number = whole_number(value)?;
    u32::try_from(number)
        .ok()
        .or_else(|| i32::try_from(number).ok().map(i32::cast_unsigned))
}
