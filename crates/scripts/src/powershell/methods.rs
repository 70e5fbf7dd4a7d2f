//! Members and methods that are understood.

use wincimg_registry::{RegistryData, RegistryEdit};

use super::super::image::{Action, Later, Seen};
use super::super::machine::{Machine, Now, parent};
use super::super::tools;
use super::super::trouble::Trouble;
use super::super::variables::{MACHINE, of_the_machine};
use super::eval::Shell;
use super::operators;
use super::value::{Value, bounded};

fn unclear(name: &str) -> Trouble {
    Trouble::unclear(format!("{name} is not understood"))
}

/// A member of a value or type.
pub(super) fn member(of: Value, name: &str, is_static: bool) -> Result<Value, Trouble> {
    match (&of, name) {
        (Value::Opaque(_), _) => Ok(of),
        (Value::Type(of), name) if is_static => static_member(of, name),
        (Value::FileHash(path, algorithm), "hash") => Ok(Value::Digest(path.clone(), *algorithm)),
        (Value::Table(entries), name) => Ok(entries
            .iter()
            .rfind(|(key, _)| key == name)
            .map_or(Value::Null, |(_, value)| value.clone())),
        (Value::Item(path) | Value::Listed(path), name)
            if super::reads::item_member(path, name).is_some() =>
        {
            Ok(super::reads::item_member(path, name).unwrap_or(Value::Null))
        }
        (Value::Text(text), "path") => Ok(Value::Text(text.clone())),
        (Value::Text(text), "length") => {
            let length = i64::try_from(text.encode_utf16().count()).unwrap_or(i64::MAX);
            Ok(Value::Number(length))
        }
        (Value::List(items), "count" | "length") => Ok(Value::Number(
            i64::try_from(items.len()).unwrap_or(i64::MAX),
        )),
        (_, name) => Err(unclear(&format!("the member {name}"))),
    }
}

impl Shell<'_, '_> {
    pub(super) fn call(
        &mut self,
        of: Value,
        name: &str,
        is_static: bool,
        arguments: &[Value],
    ) -> Result<Value, Trouble> {
        match (of, name) {
            (Value::Type(of), name) if is_static => self.static_call(&of, name, arguments),
            (Value::WebClient, "downloadfile") => {
                let [url, file] = arguments else {
                    return Err(unclear("the call of DownloadFile"));
                };
                let file = self.process_path(&file.text()?)?;
                tools::download(self.machine, &url.text()?, &file, true)?;
                Ok(Value::Null)
            }
            (Value::WebClient, "dispose") => Ok(Value::Null),
            (
                value @ (Value::Digest(..) | Value::FileHash(..)),
                "tolower" | "toupper" | "tostring" | "trim" | "tolowerinvariant"
                | "toupperinvariant",
            ) if arguments.is_empty() => Ok(value),
            (Value::Digest(path, algorithm), "equals") => {
                operators::binary("eq", Value::Digest(path, algorithm), first(arguments)?)
            }
            (Value::Opaque(trouble), _) => Err(trouble),
            (Value::Text(text), name) => text_method(&text, name, arguments),
            (Value::Number(number), "tostring") if arguments.is_empty() => {
                Ok(Value::Text(number.to_string()))
            }
            (_, name) => Err(unclear(&format!("the method {name}"))),
        }
    }

    /// Notes that an assembly is loaded.
    pub(super) fn loads(&mut self, name: &str) {
        let name = name.split(',').next().unwrap_or_default().trim();
        self.has_zip |= name.eq_ignore_ascii_case("System.IO.Compression.FileSystem");
    }

    /// A path as .NET reads it: in the process's folder, which `cd` does not change.
    fn process_path(&self, text: &str) -> Result<String, Trouble> {
        let path = super::super::machine::resolve(text, &self.process_folder)?;
        Ok(path.to_string())
    }

    fn static_call(&mut self, of: &str, name: &str, arguments: &[Value]) -> Result<Value, Trouble> {
        match (of, name, arguments) {
            ("environment", "setenvironmentvariable", [variable, value]) => {
                let value = (*value != Value::Null).then(|| value.text()).transpose()?;
                let value = value.filter(|value| !value.is_empty());
                self.machine.variables.set(&variable.text()?, value);
                Ok(Value::Null)
            }
            ("environment", "setenvironmentvariable", [variable, value, target]) => {
                self.set_machine_variable(variable, value, target)
            }
            ("environment", "getenvironmentvariable", [variable]) => {
                Ok(self.variable(&format!("env:{}", variable.text()?)))
            }
            ("environment", "getenvironmentvariable", [variable, target]) => {
                self.machine_variable(&variable.text()?, &target.text()?)
            }
            ("io.path", "combine", parts) => {
                let mut path = String::new();
                for part in parts {
                    let part = part.text()?;
                    if part.starts_with(['\\', '/']) || part.contains(':') || path.is_empty() {
                        path = part;
                    } else {
                        if !path.ends_with(['\\', '/']) {
                            path.push('\\');
                        }
                        path.push_str(&part);
                    }
                }
                bounded(path)
            }
            ("io.path", "gettemppath", []) => match self.variable("env:temp") {
                Value::Text(path) => Ok(Value::Text(path + r"\")),
                other => Ok(other),
            },
            ("io.directory", "createdirectory", [folder]) => {
                let path = self.process_path(&folder.text()?)?;
                let path = self.machine.path(&path)?;
                self.machine.apply(Action::MakeFolder(path))?;
                Ok(Value::opaque("what CreateDirectory gives is used"))
            }
            ("io.file" | "io.directory", "exists", [file]) => {
                let path = self.process_path(&file.text()?)?;
                let path = self.machine.path(&path)?;
                match self.machine.now(&path)? {
                    Now::Later => Err(Trouble::later(
                        "it depends on a file that is not downloaded yet",
                    )),
                    Now::Absent => Ok(Value::Bool(false)),
                    now => Ok(Value::Bool((now == Now::File) == (of == "io.file"))),
                }
            }
            ("io.file", "writealltext", [file, text]) => {
                let path = self.process_path(&file.text()?)?;
                let path = self.machine.path(&path)?;
                if parent(&path).is_some() && !self.machine.parent_is_there(&path)? {
                    return Err(Trouble::fails(format!("the folder of {path} is not there")));
                }
                let content = text.text()?.into_bytes();
                self.machine.apply(Action::Write { path, content })?;
                Ok(Value::Null)
            }
            ("io.compression.zipfile", _, _) if !self.has_zip => Err(Trouble::unclear(
                "Windows PowerShell does not know the type until it is loaded",
            )
            .help("put Add-Type -AssemblyName System.IO.Compression.FileSystem before it")),
            ("io.compression.zipfile", "extracttodirectory", [archive, folder]) => {
                let archive = self.process_path(&archive.text()?)?;
                let folder = self.process_path(&folder.text()?)?;
                tools::unpack_zip(self.machine, &archive, &folder, false)?;
                Ok(Value::Null)
            }
            ("string", "isnullorempty" | "isnullorwhitespace", [value]) => {
                let text = value.text()?;
                Ok(Value::Bool(if name == "isnullorempty" {
                    text.is_empty()
                } else {
                    text.trim().is_empty()
                }))
            }
            ("string", "format", [template, rest @ ..]) => {
                operators::format(template, &Value::List(rest.to_vec()))
            }
            ("string", "join", [divider, items]) => bounded(items.texts()?.join(&divider.text()?)),
            ("reflection.assembly", "loadwithpartialname", [name]) => {
                self.loads(&name.text()?);
                Ok(Value::opaque("an assembly is used"))
            }
            _ => Err(unclear(&format!("[{of}]::{name}"))),
        }
    }

    fn set_machine_variable(
        &mut self,
        variable: &Value,
        value: &Value,
        target: &Value,
    ) -> Result<Value, Trouble> {
        let name = variable.text()?;
        match target.text()?.to_lowercase().as_str() {
            "machine" | "2" => {}
            "process" | "0" => {
                let value = Some(value.text()?).filter(|value| !value.is_empty());
                self.machine.variables.set(&name, value);
                return Ok(Value::Null);
            }
            "user" | "1" => return Err(tools::of_a_user()),
            other => return Err(Trouble::fails(format!("{other:?} is not a target"))),
        }
        let key = Machine::key_of(MACHINE)?;
        let value = value.text()?;
        self.machine.edit(if value.is_empty() {
            RegistryEdit::DeleteValue { key, name }
        } else {
            let data = RegistryData::sz(&value);
            RegistryEdit::SetValue { key, name, data }
        })?;
        Ok(Value::Null)
    }

    fn machine_variable(&mut self, name: &str, target: &str) -> Result<Value, Trouble> {
        match target.to_lowercase().as_str() {
            "process" => Ok(self.variable(&format!("env:{name}"))),
            "machine" => Ok(match of_the_machine(name, &*self.machine.image) {
                Seen::Present(value) => Value::Text(value),
                Seen::Absent => Value::Null,
                Seen::Later(Later) | Seen::Unknown => Value::Opaque(Trouble::unknown(format!(
                    "the machine's variable {name} is not known"
                ))),
            }),
            "user" => Ok(Value::Opaque(Trouble::unknown(format!(
                "the user's variable {name} is not known"
            )))),
            other => Err(Trouble::fails(format!("{other:?} is not a target"))),
        }
    }
}

fn first(arguments: &[Value]) -> Result<Value, Trouble> {
    match arguments {
        [one] => Ok(one.clone()),
        _ => Err(Trouble::unclear("the call is not understood")),
    }
}

fn static_member(of: &str, name: &str) -> Result<Value, Trouble> {
    match (of, name) {
        ("environmentvariabletarget", "machine" | "user" | "process") => {
            Ok(Value::Text(name.to_owned()))
        }
        ("net.securityprotocoltype", _) => Ok(Value::Text(name.to_owned())),
        ("net.servicepointmanager", "securityprotocol") => Ok(Value::Text("tls12".to_owned())),
        ("environment", "newline") => Ok(Value::text_value("\r\n")),
        ("string", "empty") => Ok(Value::text_value("")),
        _ => Err(unclear(&format!("[{of}]::{name}"))),
    }
}

fn text_method(text: &str, name: &str, arguments: &[Value]) -> Result<Value, Trouble> {
    let words: Vec<String> = arguments
        .iter()
        .map(Value::text)
        .collect::<Result<_, _>>()?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match (name, words.as_slice()) {
        ("tolower" | "tolowerinvariant", []) => Ok(Value::Text(text.to_lowercase())),
        ("toupper" | "toupperinvariant", []) => Ok(Value::Text(text.to_uppercase())),
        ("tostring", []) => Ok(Value::text_value(text)),
        ("trim", []) => Ok(Value::text_value(text.trim())),
        ("trim", [characters]) => Ok(Value::text_value(
            text.trim_matches(|c| characters.contains(c)),
        )),
        ("trimend", [characters]) => Ok(Value::text_value(
            text.trim_end_matches(|c| characters.contains(c)),
        )),
        ("trimstart", [characters]) => Ok(Value::text_value(
            text.trim_start_matches(|c| characters.contains(c)),
        )),
        ("trimend", []) => Ok(Value::text_value(text.trim_end())),
        ("trimstart", []) => Ok(Value::text_value(text.trim_start())),
        ("replace", [from, to]) if !from.is_empty() => bounded(text.replace(from, to)),
        ("startswith", [with]) => Ok(Value::Bool(text.starts_with(with))),
        ("endswith", [with]) => Ok(Value::Bool(text.ends_with(with))),
        ("contains", [with]) => Ok(Value::Bool(text.contains(with))),
        ("equals", [with]) => Ok(Value::Bool(text == *with)),
        ("split", [divider]) if divider.chars().count() == 1 => Ok(Value::List(
            text.split(divider).map(Value::text_value).collect(),
        )),
        ("substring", [start]) => substring(text, start, None),
        ("substring", [start, length]) => substring(text, start, Some(length)),
        _ => Err(unclear(&format!("the method {name}"))),
    }
}

fn substring(text: &str, start: &str, length: Option<&str>) -> Result<Value, Trouble> {
    let wrong = || Trouble::fails("the part of the text is not there");
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
    Ok(Value::Text(part.iter().collect()))
}
