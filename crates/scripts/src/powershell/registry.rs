//! Cmdlets on the registry's values, and on services, which are kept there.

use wincimg_registry::{DataType, KeyPath, RegistryData, RegistryEdit, Typed};

use super::super::image::{Action, Later, Seen, ServiceStart};
use super::super::machine::Machine;
use super::super::tools::{empty_service, is_there};
use super::super::trouble::Trouble;
use super::ast::Command;
use super::bind::Takes;
use super::cmdlets::{Drive, drive, path_of};
use super::eval::Shell;
use super::value::Value;

const PROPERTY: Takes = Takes {
    values: &[
        "path",
        "literalpath=pspath=lp",
        "name",
        "value",
        "propertytype=type",
    ],
    switches: &["force"],
    positions: &["path", "name", "value"],
};

const NAMED: Takes = Takes {
    values: &["path", "literalpath=pspath=lp", "name"],
    switches: &["force"],
    positions: &["path", "name"],
};

const SERVICE: Takes = Takes {
    values: &[
        "name",
        "binarypathname",
        "displayname",
        "description",
        "startuptype",
        "dependson",
    ],
    switches: &[],
    positions: &["name", "binarypathname"],
};

/// The key that a path of PowerShell means: `HKLM:\SOFTWARE\x`, with either kind of slash.
pub(super) fn key(path: &str) -> Result<KeyPath, Trouble> {
    if path.contains(['*', '?']) {
        return Err(Trouble::unclear(
            "wildcards in a key's path are not understood",
        ));
    }
    let mut names = path.split([':', '\\', '/']).filter(|name| !name.is_empty());
    let root = names.next().unwrap_or_default();
    let below: Vec<&str> = names.collect();
    Machine::key_of(&format!(r"{root}\{}", below.join(r"\")))
}

/// The key above has to be there for a key to be made without `-Force`.
pub(super) fn parent_is_there(machine: &Machine<'_>, key: &KeyPath) -> Result<(), Trouble> {
    let mut parent = key.clone();
    parent.pop();
    if parent.components().is_empty() {
        return Ok(());
    }
    key_is_there(machine, &parent)
}

/// The key whose values are changed has to be there.
fn key_is_there(machine: &Machine<'_>, key: &KeyPath) -> Result<(), Trouble> {
    match is_there(&machine.image.key(key)) {
        Some(true) => Ok(()),
        Some(false) => Err(Trouble::fails(format!("{key} is not there"))),
        None => Err(Trouble::unknown(format!(
            "it fails unless the base has {key}"
        ))),
    }
}

impl Shell<'_, '_> {
    pub(super) fn set_property(
        &mut self,
        command: &Command,
        is_new: bool,
    ) -> Result<Value, Trouble> {
        let given = self.given(command, &PROPERTY)?;
        let path = path_of(&given)?.ok_or_else(|| Trouble::unclear("it names no key"))?;
        let key = match drive(&path)? {
            Drive::Registry(path) => key(&path)?,
            Drive::Iis(path) if !is_new => return self.iis_property(command, &path, &given),
            _ => {
                return Err(Trouble::unclear(
                    "it changes something else than the registry",
                ));
            }
        };
        let name = given.needed("name")?;
        let name = if name.eq_ignore_ascii_case("(default)") {
            String::new()
        } else {
            name
        };
        key_is_there(self.machine, &key)?;
        let before = self.machine.image.value(&key, &name);
        let forced = given.has("force");
        let kind = given.text("propertytype")?;
        let existing = match (&before, is_new, forced) {
            (Seen::Present(_), true, false) => {
                return Err(Trouble::fails(format!(
                    "{key} has the value {name:?} already"
                )));
            }
            (Seen::Present(data), false, _) => Some(data.kind()),
            (Seen::Unknown | Seen::Later(Later), true, false) => {
                return Err(Trouble::unknown(format!(
                    "it fails if the base's {key} has the value {name:?}"
                )));
            }
            (Seen::Unknown | Seen::Later(Later), false, _) if kind.is_none() => {
                return Err(Trouble::unknown(format!(
                    "of what type {name:?} is depends on the base's {key}"
                )));
            }
            _ => None,
        };
        let value = given.value("value").cloned().unwrap_or(Value::Null);
        let data = data(kind.as_deref(), existing, &value)?;
        self.machine
            .edit(RegistryEdit::SetValue { key, name, data })?;
        Ok(Value::Null)
    }

    pub(super) fn remove_property(&mut self, command: &Command) -> Result<Value, Trouble> {
        let given = self.given(command, &NAMED)?;
        let path = path_of(&given)?.ok_or_else(|| Trouble::unclear("it names no key"))?;
        let Drive::Registry(path) = drive(&path)? else {
            return Err(Trouble::unclear(
                "it changes something else than the registry",
            ));
        };
        let key = key(&path)?;
        let name = given.needed("name")?;
        match is_there(&self.machine.image.value(&key, &name)) {
            Some(true) => {}
            Some(false) => {
                return Err(Trouble::fails(format!("{key} has no value {name:?}")));
            }
            None => {
                return Err(Trouble::unknown(format!(
                    "it fails unless the base's {key} has the value {name:?}"
                )));
            }
        }
        self.machine.edit(RegistryEdit::DeleteValue { key, name })?;
        Ok(Value::Null)
    }

    pub(super) fn get_property(&mut self, command: &Command) -> Result<Value, Trouble> {
        let given = self.given(command, &NAMED)?;
        let path = path_of(&given)?.ok_or_else(|| Trouble::unclear("it names no key"))?;
        let (Drive::Registry(path), Some(name)) = (drive(&path)?, given.text("name")?) else {
            return Ok(Value::opaque("what a key holds is used"));
        };
        let key = key(&path)?;
        let value = match self.machine.image.value(&key, &name) {
            Seen::Present(data) => match data.typed() {
                Typed::Text(text) if data.kind() == DataType::SZ => Value::Text(text),
                Typed::Dword(number) => Value::Number(i64::from(number)),
                _ => return Ok(Value::opaque("what a key holds is used")),
            },
            Seen::Absent => return Err(Trouble::fails(format!("{key} has no value {name:?}"))),
            Seen::Later(Later) | Seen::Unknown => {
                return Ok(Value::Opaque(Trouble::unknown(format!(
                    "the value {name:?} of the base's {key} is not known"
                ))));
            }
        };
        Ok(Value::Table(vec![(name.to_lowercase(), value)]))
    }

    pub(super) fn service(&mut self, command: &Command, is_new: bool) -> Result<Value, Trouble> {
        let given = self.given(command, &SERVICE)?;
        let mut service = empty_service(&given.needed("name")?, is_new);
        service.command = given.text("binarypathname")?;
        service.display_name = given.text("displayname")?;
        service.description = given.text("description")?;
        let depends_on = given.texts("dependson")?;
        service.depends_on = (!depends_on.is_empty()).then_some(depends_on);
        if is_new && service.command.is_none() {
            return Err(Trouble::fails("a new service needs -BinaryPathName"));
        }
        service.start = match given.text("startuptype")?.map(|text| text.to_lowercase()) {
            None => is_new.then_some(ServiceStart::Auto),
            Some(text) => Some(match text.as_str() {
                "automatic" => ServiceStart::Auto,
                "automaticdelayedstart" => ServiceStart::Delayed,
                "manual" => ServiceStart::Demand,
                "disabled" => ServiceStart::Disabled,
                other => return Err(Trouble::option(other)),
            }),
        };
        self.apply(Action::Service(service))?;
        Ok(Value::Null)
    }
}

/// The data that a value becomes, of the type that is said, that it has, or that it looks like.
fn data(
    kind: Option<&str>,
    existing: Option<DataType>,
    value: &Value,
) -> Result<RegistryData, Trouble> {
    let wrong = || Trouble::fails("the value does not fit its type");
    let kind = match kind.map(str::to_lowercase).as_deref() {
        Some("string") => DataType::SZ,
        Some("expandstring") => DataType::EXPAND_SZ,
        Some("dword") => DataType::DWORD,
        Some("qword") => DataType::QWORD,
        Some("multistring") => DataType::MULTI_SZ,
        Some("binary") => DataType::BINARY,
        Some(other) => {
            return Err(Trouble::unclear(format!(
                "the type {other:?} is not understood"
            )));
        }
        None => match (existing, value) {
            (Some(kind), _) => kind,
            (None, Value::Number(number)) if i32::try_from(*number).is_ok() => DataType::DWORD,
            (None, Value::Number(_)) => DataType::QWORD,
            (None, Value::Text(_) | Value::Null) => DataType::SZ,
            (None, Value::List(items))
                if items.iter().all(|item| matches!(item, Value::Text(_))) =>
            {
                return Err(Trouble::unclear("the type of a list is not understood"));
            }
            _ => return Err(Trouble::unclear("the type of the value is not understood")),
        },
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
        _ => return Err(Trouble::unclear("the type of the value is not understood")),
    })
}

fn whole_number(value: &Value) -> Option<i64> {
    match value {
        Value::Text(text) => {
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

fn dword(value: &Value) -> Option<u32> {
    let number = whole_number(value)?;
    u32::try_from(number)
        .ok()
        .or_else(|| i32::try_from(number).ok().map(i32::cast_unsigned))
}
