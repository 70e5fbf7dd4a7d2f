//! Supported members and methods.

use wincimg_registry::RegistryData;
use wincimg_windows::path::ImagePath;

use super::super::error::{self, Result, ScriptError};
use super::super::image::{ImageAction, Lookup, PendingDownload};
use super::super::process::{PathState, READ_ONLY, resolve, resolve_file};
use super::super::tools;
use super::super::variables::machine_variable;
use super::eval::Shell;
use super::has_word;
use super::operators;
use super::output_cmdlets::item_member;
use super::value::{PsValue, limited_text};

fn unclear(name: &str) -> ScriptError {
    ScriptError::unclear(format!("unsupported {name}"))
}

fn member(of: PsValue, name: &str, is_static: bool) -> Result<PsValue> {
    match (&of, name) {
        (PsValue::Opaque(_), _) => Ok(of),
        (PsValue::Type(of), name) if is_static => static_member(of, name),
        (PsValue::Process(code), "exitcode") => Ok(PsValue::Number(i64::from(*code))),
        (PsValue::Process(_), _) => Ok(PsValue::Opaque(PsValue::process_used())),
        (PsValue::FileHash(path, algorithm), "hash") => {
            Ok(PsValue::Digest(path.clone(), *algorithm))
        }
        (PsValue::Table(entries), name) => table_member(entries, name),
        (PsValue::Object(entries), name) => match entry(entries, name) {
            Some(value) => Ok(value.clone()),
            None => Err(unclear(&format!("member {name}"))),
        },
        (PsValue::Item(path) | PsValue::Listed(path), name)
            if let Some(value) = item_member(path, name) =>
        {
            Ok(value)
        }
        (PsValue::Null, "fullname") => Ok(PsValue::Null),
        (PsValue::Text(text), "path") => Ok(PsValue::Text(text.clone())),
        (PsValue::Text(text), "length") => Ok(PsValue::count(text.encode_utf16().count())),
        (PsValue::List(items), "count" | "length") => {
            of.check_known()?;
            Ok(PsValue::count(items.len()))
        }
        (_, name) => Err(unclear(&format!("member {name}"))),
    }
}

/// The value of a key or property, whose name is in lower case.
pub(super) fn entry<'a>(entries: &'a [(String, PsValue)], name: &str) -> Option<&'a PsValue> {
    let found = entries.iter().rfind(|(key, _)| key == name);
    found.map(|(_, value)| value)
}

/// A key of a hashtable, else a property of every hashtable, else nothing.
pub(super) fn table_member(entries: &[(String, PsValue)], name: &str) -> Result<PsValue> {
    match (entry(entries, name), name) {
        (Some(value), _) => Ok(value.clone()),
        (None, "count") => Ok(PsValue::count(entries.len())),
        // The order of keys depends on the hashes that .NET computes.
        (None, "keys" | "values") => Ok(PsValue::opaque(format!(
            "the {name} of a hashtable are used"
        ))),
        (
            None,
            "length" | "isfixedsize" | "isreadonly" | "issynchronized" | "syncroot" | "comparer"
            | "psbase" | "psobject" | "psadapted" | "psextended" | "pstypenames",
        ) => Err(unclear(&format!("member {name}"))),
        (None, _) => Ok(PsValue::Null),
    }
}

impl Shell<'_, '_> {
    /// A member of a value, whose name is in lower case.
    pub(super) fn member(&mut self, of: PsValue, name: &str, is_static: bool) -> Result<PsValue> {
        if matches!(of, PsValue::Process(_)) && name == "exitcode" {
            self.machine.unread = None;
        }
        // The name of a folder has no extension.
        if let (PsValue::Item(path) | PsValue::Listed(path), "basename") = (&of, name)
            && path.name().contains('.')
            && self.machine.path_state(path)? == PathState::Folder
        {
            return Ok(PsValue::text_value(path.name()));
        }
        if let (PsValue::Item(path) | PsValue::Listed(path), "psiscontainer") = (&of, name) {
            return match self.machine.path_state(path)? {
                PathState::Folder => Ok(PsValue::Bool(true)),
                PathState::File => Ok(PsValue::Bool(false)),
                PathState::Absent | PathState::Deferred => Err(unclear("member PSIsContainer")),
            };
        }
        if let (PsValue::List(items), "fullname") = (&of, name) {
            let names = items
                .iter()
                .map(|item| self.member(item.clone(), name, false));
            return names.collect::<Result<_>>().map(PsValue::from_items);
        }
        let value = member(of, name, is_static)?;
        self.check_strict(&value)?;
        Ok(value)
    }

    pub(super) fn call(
        &mut self,
        of: PsValue,
        name: &str,
        is_static: bool,
        arguments: &[PsValue],
    ) -> Result<PsValue> {
        match (of, name) {
            (PsValue::Type(of), name) if is_static => self.static_call(&of, name, arguments),
            (PsValue::WebClient, "downloadfile") => {
                let [url, file] = arguments else {
                    return Err(unclear("call of DownloadFile"));
                };
                let path = resolve_file(&file.text()?, &self.process_folder)?;
                tools::download(self.machine, &url.text()?, path, true)?;
                Ok(PsValue::Null)
            }
            (PsValue::WebClient, "dispose") => Ok(PsValue::Null),
            (PsValue::Process(_), "waitforexit") if arguments.is_empty() => {
                self.unawaited = 0;
                Ok(PsValue::Null)
            }
            (PsValue::Process(_), _) => Err(PsValue::process_used()),
            (
                value @ (PsValue::Digest(..) | PsValue::FileHash(..)),
                "tolower" | "toupper" | "tostring" | "trim" | "tolowerinvariant"
                | "toupperinvariant",
            ) if arguments.is_empty() => Ok(value),
            (value @ PsValue::Digest(..), "equals") => match arguments {
                [one] => operators::binary("eq", value, one.clone()),
                _ => error::unclear("unsupported call"),
            },
            // Arithmetic with times has no effect.
            (value @ PsValue::Opaque(_), name) if is_time(name) => Ok(value),
            (PsValue::Opaque(error), _) => Err(error),
            (PsValue::Text(text), name) => text_method(&text, name, arguments),
            (PsValue::Table(entries), "containskey" | "contains") => match arguments {
                [PsValue::Text(key)] => {
                    let found = entry(&entries, &key.to_lowercase());
                    Ok(PsValue::Bool(
                        found.is_some() && key.parse::<i64>().is_err(),
                    ))
                }
                _ => Err(unclear(&format!("call of {name}"))),
            },
            (PsValue::Number(number), "tostring") if arguments.is_empty() => {
                Ok(PsValue::Text(number.to_string()))
            }
            (_, name) => Err(unclear(&format!("method {name}"))),
        }
    }

    /// Records a loaded assembly.
    pub(super) fn add_assembly(&mut self, name: &str) {
        let name = name.split(',').next().unwrap_or_default().trim();
        self.has_zip |= name.eq_ignore_ascii_case("System.IO.Compression.FileSystem");
    }

    fn static_call(&mut self, of: &str, name: &str, arguments: &[PsValue]) -> Result<PsValue> {
        match (of, name, arguments) {
            ("environment", _, _) => self.environment_call(name, arguments),
            ("io.file" | "io.directory", _, _) => self.file_call(of, name, arguments),
            ("io.path", "combine", parts) => combined_path(parts),
            ("io.path", "gettemppath", []) => match self.variable("env:temp") {
                PsValue::Text(path) => Ok(PsValue::Text(path + r"\")),
                other => Ok(other),
            },
            ("io.compression.zipfile", _, _) if !self.has_zip => Err(ScriptError::unclear(
                "Windows PowerShell requires its assembly to be loaded first",
            )
            .help("put Add-Type -AssemblyName System.IO.Compression.FileSystem before it")),
            ("io.compression.zipfile", "extracttodirectory", [archive, folder]) => {
                let [archive, folder] = [archive, folder].map(|it| self.process_path(it));
                let (archive, folder) = (archive?.to_string(), folder?.to_string());
                tools::unpack_zip(self.machine, &archive, &folder, false)?;
                Ok(PsValue::Null)
            }
            ("timespan", "fromdays" | "fromhours" | "fromminutes" | "fromseconds", [value]) => {
                time_span(&name[4..], value)
            }
            ("string", "isnullorempty", [value]) => Ok(PsValue::Bool(value.text()?.is_empty())),
            ("string", "isnullorwhitespace", [value]) => {
                Ok(PsValue::Bool(value.text()?.trim().is_empty()))
            }
            ("string", "format", [template, rest @ ..]) => {
                operators::format(template, &PsValue::List(rest.to_vec()))
            }
            ("string", "join", [divider, items]) => {
                limited_text(items.texts()?.join(&divider.text()?))
            }
            ("reflection.assembly", "loadwithpartialname", [name]) => {
                self.add_assembly(&name.text()?);
                Ok(PsValue::opaque("an assembly is used"))
            }
            _ => Err(unclear(&format!("[{of}]::{name}"))),
        }
    }

    fn environment_call(&mut self, name: &str, arguments: &[PsValue]) -> Result<PsValue> {
        match (name, arguments) {
            ("setenvironmentvariable", [variable, value]) => {
                let value = Some(value.text()?).filter(|value| !value.is_empty());
                self.machine.variables.set(&variable.text()?, value);
                Ok(PsValue::Null)
            }
            ("setenvironmentvariable", [variable, value, target]) => {
                self.set_machine_variable(variable, value, target)
            }
            ("getenvironmentvariable", [variable]) => {
                Ok(self.variable(&format!("env:{}", variable.text()?)))
            }
            ("getenvironmentvariable", [variable, target]) => {
                self.machine_variable(&variable.text()?, &target.text()?)
            }
            _ => Err(unclear(&format!("[environment]::{name}"))),
        }
    }

    /// Resolves a path as .NET does: against the folder of the process, which `cd` does not change.
    fn process_path(&self, path: &PsValue) -> Result<ImagePath> {
        resolve(&path.text()?, &self.process_folder)
    }

    fn file_call(&mut self, of: &str, name: &str, arguments: &[PsValue]) -> Result<PsValue> {
        let [file, rest @ ..] = arguments else {
            return Err(unclear(&format!("[{of}]::{name}")));
        };
        match (of, name, rest) {
            ("io.directory", "createdirectory", []) => {
                let path = self.process_path(file)?;
                self.machine.apply(ImageAction::MakeFolder(path))?;
                Ok(PsValue::opaque("the result of CreateDirectory is used"))
            }
            (_, "exists", []) => match self.machine.path_state(&self.process_path(file)?)? {
                PathState::Deferred => error::unread_file(),
                PathState::Absent => Ok(PsValue::Bool(false)),
                now => Ok(PsValue::Bool((now == PathState::File) == (of == "io.file"))),
            },
            ("io.file", "writealltext", [text]) => {
                let path = resolve_file(&file.text()?, &self.process_folder)?;
                self.machine.ensure_parent(&path, false)?;
                self.machine.check_attributes(&path, READ_ONLY)?;
                let content = text.text()?.into_bytes();
                self.machine.apply(ImageAction::Write { path, content })?;
                Ok(PsValue::Null)
            }
            _ => Err(unclear(&format!("[{of}]::{name}"))),
        }
    }

    fn set_machine_variable(
        &mut self,
        variable: &PsValue,
        value: &PsValue,
        target: &PsValue,
    ) -> Result<PsValue> {
        let name = variable.text()?;
        let target = target.text()?.to_lowercase();
        // An empty text removes the variable.
        let text = || Ok::<_, ScriptError>(Some(value.text()?).filter(|text| !text.is_empty()));
        let data = || Ok::<_, ScriptError>(text()?.as_deref().map(RegistryData::sz));
        match target.as_str() {
            "machine" | "2" => tools::set_machine_variable(self.machine, &name, data()?)?,
            "process" | "0" => self.machine.variables.set(&name, text()?),
            "user" | "1" => match data()? {
                Some(data) => tools::set_user_variable(self.machine, &name, data)?,
                None => return error::unclear("removing a user variable is not supported"),
            },
            other => return error::fails(format!("{other:?} is not a valid target")),
        }
        Ok(PsValue::Null)
    }

    fn machine_variable(&mut self, name: &str, target: &str) -> Result<PsValue> {
        match target.to_lowercase().as_str() {
            "process" => Ok(self.variable(&format!("env:{name}"))),
            "machine" => Ok(match machine_variable(name, &*self.machine.image) {
                Lookup::Present(value) => PsValue::Text(value),
                Lookup::Absent => PsValue::Null,
                Lookup::Deferred(PendingDownload) | Lookup::Unknown => {
                    PsValue::Opaque(ScriptError::unknown(format!(
                        "the value of the machine variable {name} is unknown"
                    )))
                }
            }),
            "user" => Ok(PsValue::Opaque(ScriptError::unknown(format!(
                "the value of the user variable {name} is unknown"
            )))),
            other => error::fails(format!("{other:?} is not a valid target")),
        }
    }
}

/// Joins parts of a path; an absolute one replaces those before it.
fn combined_path(parts: &[PsValue]) -> Result<PsValue> {
    let mut path = String::new();
    for part in parts {
        let part = part.text()?;
        if part.is_empty() {
            continue;
        }
        if part.starts_with(['\\', '/']) || part.contains(':') || path.is_empty() {
            path = part;
        } else {
            // After a drive alone .NET adds none.
            if !path.ends_with(['\\', '/', ':']) {
                path.push('\\');
            }
            path.push_str(&part);
        }
    }
    limited_text(path)
}

/// A time span of whole units.
fn time_span(unit: &str, value: &PsValue) -> Result<PsValue> {
    let seconds = match unit {
        "days" => 86_400,
        "hours" => 3_600,
        "minutes" => 60,
        _ => 1,
    };
    let count = match value {
        PsValue::Number(count) => u32::try_from(*count).ok(),
        _ => None,
    };
    let total = u64::from(count.ok_or_else(|| unclear("number of units of time"))?) * seconds;
    let (days, rest) = (total / 86_400, total % 86_400);
    let (hours, minutes, seconds) = (rest / 3_600, rest / 60 % 60, rest % 60);
    let clock = format!("{hours:02}:{minutes:02}:{seconds:02}");
    Ok(PsValue::TimeSpan(if days == 0 {
        clock
    } else {
        format!("{days}.{clock}")
    }))
}

fn static_member(of: &str, name: &str) -> Result<PsValue> {
    match (of, name) {
        ("environmentvariabletarget", "machine" | "user" | "process") => {
            Ok(PsValue::Text(name.to_owned()))
        }
        ("net.securityprotocoltype", _) => Ok(PsValue::Text(name.to_owned())),
        ("net.servicepointmanager", "securityprotocol") => Ok(PsValue::Text("tls12".to_owned())),
        ("environment", "newline") => Ok(PsValue::text_value("\r\n")),
        // The PowerShell of 32 bits is not run here.
        ("environment", "is64bitoperatingsystem" | "is64bitprocess") => Ok(PsValue::Bool(true)),
        ("intptr", "size") => Ok(PsValue::Number(8)),
        ("string", "empty") => Ok(PsValue::text_value("")),
        ("timespan", "zero") => Ok(PsValue::TimeSpan("00:00:00".to_owned())),
        _ => Err(unclear(&format!("[{of}]::{name}"))),
    }
}

fn text_method(text: &str, name: &str, arguments: &[PsValue]) -> Result<PsValue> {
    let words: Vec<String> = arguments
        .iter()
        .map(PsValue::text)
        .collect::<Result<_, _>>()?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_trimmed = |c: char| match words.first() {
        Some(characters) => characters.contains(c),
        None => c.is_whitespace(),
    };
    match (name, words.as_slice()) {
        ("tolower" | "tolowerinvariant", []) => Ok(PsValue::Text(text.to_lowercase())),
        ("toupper" | "toupperinvariant", []) => Ok(PsValue::Text(text.to_uppercase())),
        ("tostring", []) => Ok(PsValue::text_value(text)),
        ("trim", [] | [_]) => Ok(PsValue::text_value(text.trim_matches(is_trimmed))),
        ("trimend", [] | [_]) => Ok(PsValue::text_value(text.trim_end_matches(is_trimmed))),
        ("trimstart", [] | [_]) => Ok(PsValue::text_value(text.trim_start_matches(is_trimmed))),
        ("replace", [from, to]) if !from.is_empty() => limited_text(text.replace(from, to)),
        ("startswith", [with]) => Ok(PsValue::Bool(text.starts_with(with))),
        ("endswith", [with]) => Ok(PsValue::Bool(text.ends_with(with))),
        ("contains", [with]) => Ok(PsValue::Bool(text.contains(with))),
        ("equals", [with]) => Ok(PsValue::Bool(text == *with)),
        ("split", [divider]) if divider.chars().count() == 1 => Ok(PsValue::List(
            text.split(divider).map(PsValue::text_value).collect(),
        )),
        ("substring", [start]) => substring(text, start, None),
        ("substring", [start, length]) => substring(text, start, Some(length)),
        _ => Err(unclear(&format!("method {name}"))),
    }
}

fn substring(text: &str, start: &str, length: Option<&str>) -> Result<PsValue> {
    let wrong = || ScriptError::fails("substring out of range");
    let characters: Vec<char> = text.chars().collect();
    let start: usize = start.parse().map_err(|_| wrong())?;
    let end = match length {
        None => characters.len(),
        Some(length) => length
            .parse::<usize>()
            .ok()
            .and_then(|length| start.checked_add(length))
            .ok_or_else(wrong)?,
    };
    let part = characters.get(start..end).ok_or_else(wrong)?;
    Ok(PsValue::Text(part.iter().collect()))
}

/// Returns true for `adddays` and the like.
fn is_time(name: &str) -> bool {
    const UNITS: &str = "days hours minutes seconds milliseconds months years";
    name.strip_prefix("add")
        .is_some_and(|unit| has_word(UNITS, unit))
}
