//! `reg add`, `reg delete` and `reg import`.

use wincimg_registry::{DataType, KeyPath, RegistryData, RegistryEdit, regfile};

use super::super::error::{self, Result, ScriptError};
use super::super::image::{Lookup, PendingDownload, exists};
use super::super::process::Process;

pub(super) fn run(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    let Some((verb, rest)) = words.split_first() else {
        return error::unclear("missing verb");
    };
    match verb.to_ascii_lowercase().as_str() {
        "add" => add(machine, rest),
        "delete" => delete(machine, rest),
        "import" => import(machine, rest),
        "query" => query(machine, rest),
        verb => error::unclear(format!("reg {verb} is not supported")),
    }
}

#[derive(Default)]
struct Options {
    key: String,
    /// Name of the value; empty for the default one.
    value: Option<String>,
    kind: Option<String>,
    data: Option<String>,
    separator: Option<String>,
    forced: bool,
    all_values: bool,
}

impl Options {
    fn read(words: &[String]) -> Result<Self> {
        let mut options = Self::default();
        let mut rest = words.iter();
        options.key = rest
            .next()
            .cloned()
            .ok_or_else(|| ScriptError::fails("no key given"))?;
        let mut given: Vec<String> = Vec::new();
        while let Some(word) = rest.next() {
            let mut next = || {
                rest.next()
                    .cloned()
                    .ok_or_else(|| ScriptError::fails(format!("{word} requires a value")))
            };
            let switch = word.to_ascii_lowercase();
            // One of the two names the value.
            let kind = if switch == "/ve" {
                "/v"
            } else {
                switch.as_str()
            };
            if given.iter().any(|earlier| earlier == kind) {
                return error::fails(format!("{word} is given twice"));
            }
            given.push(kind.to_owned());
            match switch.as_str() {
                "/v" => options.value = Some(next()?),
                "/ve" => options.value = Some(String::new()),
                "/t" => options.kind = Some(next()?),
                "/d" => options.data = Some(next()?),
                "/s" => options.separator = Some(next()?),
                "/f" => options.forced = true,
                "/va" => options.all_values = true,
                "/reg:64" => {}
                _ => return error::option(word),
            }
        }
        Ok(options)
    }

    /// Returns true if the image has the value, or the key.
    fn exists(&self, machine: &Process<'_>, key: &KeyPath, unknown: &str) -> Result<bool> {
        match &self.value {
            Some(name) => exists(&machine.image.value(key, name), unknown),
            None => exists(&machine.image.key(key), unknown),
        }
    }
}

fn key(text: &str) -> Result<KeyPath> {
    let root = text.split('\\').next().unwrap_or_default();
    if root.ends_with(':') {
        return error::fails(format!(
            "invalid key name {text}: {root} is a drive of PowerShell"
        ));
    }
    Process::parse_key(text)
}

fn add(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    let options = Options::read(words)?;
    let key = key(&options.key)?;
    if options.all_values {
        return error::fails("/va is an option of reg delete");
    }
    // Without a name it sets the default value.
    let name = options.value.unwrap_or_default();
    let unknown = "without /f it fails if the value exists";
    if !options.forced && exists(&machine.image.value(&key, &name), unknown)? {
        let why = "the value already exists, and without /f it asks for confirmation";
        return error::fails(why);
    }
    let separator = options.separator.as_ref();
    if let Some(separator) = separator.filter(|it| it.chars().count() != 1) {
        return error::fails(format!(
            "the separator \"{separator}\" is not one character"
        ));
    }
    let kind = options.kind.as_deref().unwrap_or("REG_SZ");
    let data = data(
        kind,
        options.data.as_deref().unwrap_or_default(),
        options.separator.as_deref().unwrap_or(r"\0"),
    )?;
    machine.edit(RegistryEdit::SetValue { key, name, data })?;
    Ok(0)
}

/// Parses the data of a value as `reg` does.
fn data(kind: &str, text: &str, separator: &str) -> Result<RegistryData> {
    let wrong = || ScriptError::fails(format!("\"{text}\" is not data of type {kind}"));
    let number = |text: &str| match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).ok(),
        None => text.parse().ok(),
    };
    let name = kind.to_ascii_lowercase();
    let name = match name.as_str() {
        "reg_dword_little_endian" => "reg_dword",
        name => name,
    };
    let known = DataType::from_name(name).filter(|_| name.starts_with("reg_"));
    Ok(match known {
        Some(DataType::SZ) => RegistryData::sz(text),
        Some(DataType::EXPAND_SZ) => RegistryData::expand_sz(text),
        Some(DataType::NONE) => RegistryData::new(DataType::NONE, RegistryData::sz(text).bytes()),
        // It writes both in little endian.
        Some(dword @ (DataType::DWORD | DataType::DWORD_BIG_ENDIAN)) => {
            let number = number(text).and_then(|number| u32::try_from(number).ok());
            RegistryData::new(dword, number.ok_or_else(wrong)?.to_le_bytes())
        }
        // Unlike a DWORD, it is 0 without data, and may be negative.
        Some(DataType::QWORD) if text.is_empty() => RegistryData::qword(0),
        Some(DataType::QWORD) => {
            let negative = || text.parse().ok().map(i64::cast_unsigned);
            RegistryData::qword(number(text).or_else(negative).ok_or_else(wrong)?)
        }
        Some(DataType::MULTI_SZ) if text.is_empty() => {
            RegistryData::multi_sz::<&str>(&[]).map_err(|_| wrong())?
        }
        // A single separator is an empty text, which a list cannot have otherwise.
        Some(DataType::MULTI_SZ) if text == separator => {
            RegistryData::new(DataType::MULTI_SZ, [0; 4])
        }
        Some(DataType::MULTI_SZ) => {
            let text = text.strip_suffix(separator).unwrap_or(text);
            let texts: Vec<&str> = text.split(separator).collect();
            RegistryData::multi_sz(&texts).map_err(|_| wrong())?
        }
        Some(DataType::BINARY) => {
            let digits = format!("{}{text}", "0".repeat(text.len() % 2));
            RegistryData::binary(hex::decode(digits).map_err(|_| wrong())?)
        }
        _ => return error::unclear(format!("unsupported type {kind:?}")),
    })
}

fn delete(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    let options = Options::read(words)?;
    if options.all_values || options.data.is_some() || options.kind.is_some() {
        return error::option("/va");
    }
    if !options.forced {
        return error::fails("without /f it asks for confirmation");
    }
    let key = key(&options.key)?;
    let unknown = format!("it fails unless {key} in the base has what it deletes");
    if !options.exists(machine, &key, &unknown)? {
        return Ok(machine.fail(1, format!("nothing to delete in {key}")));
    }
    machine.edit(match options.value {
        Some(name) => RegistryEdit::DeleteValue { key, name },
        None => RegistryEdit::DeleteKey { key },
    })?;
    Ok(0)
}

fn import(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    let [file] = words else {
        return error::unclear("expected one file");
    };
    let path = machine.path(file)?;
    match machine.image.content(&path) {
        Lookup::Present(content) => {
            let has_mark =
                content.starts_with(&[0xFF, 0xFE]) || content.starts_with("\u{FEFF}".as_bytes());
            if !content.is_ascii() && !has_mark && !content.starts_with(b"REGEDIT4") {
                let why = format!("reg reads {path} by the code page of Windows");
                return Err(ScriptError::unclear(why).help("save the file as UTF-16"));
            }
            let imported = regfile::import(&content)
                .map_err(|error| ScriptError::unclear(format!("{path}: {error}")))?;
            for edit in imported.edits {
                machine.edit(edit)?;
            }
            Ok(0)
        }
        Lookup::Absent => Ok(machine.fail(1, format!("{path} not found"))),
        Lookup::Deferred(PendingDownload) => Ok(0),
        Lookup::Unknown => error::unknown(format!("the content of {path} is unknown")),
    }
}

fn query(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    let options = Options::read(words)?;
    let key = key(&options.key)?;
    let unknown = format!("it fails unless the base has {key}");
    let found = options.exists(machine, &key, &unknown)?;
    Ok(i32::from(!found))
}
