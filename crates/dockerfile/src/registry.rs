//! Registry changes as calls of `reg`, or as .reg files if `reg` does not support them.
//!
//! Every call adds a layer and starts a container in the build, so many changes go into one file.

use wincimg_common::diagnose::Problem;
use wincimg_registry::hive::exists;
use wincimg_registry::regfile::{from_edits, to_utf16};
use wincimg_registry::{
    BaseReadError, DataType, KeyMode, KeyPath, RegistryData, RegistryEdit, Root, TypedData,
};
use wincimg_windows::base_contents::BaseContents;

/// Path in Windows.
pub(super) const REG: &str = r"C:\Windows\System32\reg.exe";

/// Maximum number of calls without a file.
const MOST_CALLS: usize = 12;

/// Maximum size of data without a file: longer data would be a line of thousands of digits.
const MOST_BYTES: usize = 256;

/// A step of registry changes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RegistryStep {
    /// Arguments of `reg`.
    Call(Vec<String>),
    /// Content of a .reg file.
    Import(Vec<u8>),
}

/// Steps that make these edits.
pub(super) fn steps(
    edits: &[RegistryEdit],
    inside: &dyn BaseContents,
) -> Result<Vec<RegistryStep>, Problem> {
    let next = edits.iter().skip(1).map(Some).chain([None]);
    let needed = edits
        .iter()
        .zip(next)
        .filter(|(edit, next)| !is_implied(edit, *next));
    let edits: Vec<&RegistryEdit> = needed.map(|(edit, _)| edit).collect();
    let calls = edits.iter().map(|edit| calls(edit, inside));
    let calls = calls.collect::<Result<Vec<Option<Vec<Vec<String>>>>, _>>();
    let calls = calls.map_err(|error| Problem::from_error("base/unreadable", error))?;
    let many = calls.iter().flatten().map(Vec::len).sum::<usize>() > MOST_CALLS;
    let mut steps = Vec::new();
    let mut file: Vec<&RegistryEdit> = Vec::new();
    for (edit, calls) in edits.into_iter().zip(calls) {
        let has_form = from_edits([edit]).is_some();
        match calls {
            Some(calls) if !(many && has_form) => {
                finish_file(&mut file, &mut steps);
                steps.extend(calls.into_iter().map(RegistryStep::Call));
            }
            _ if has_form => file.push(edit),
            _ => {
                let problem = format!(
                    "neither reg nor a .reg file can make the change to the registry: {edit}"
                );
                return Err(Problem::request("recipe/registry", problem));
            }
        }
    }
    finish_file(&mut file, &mut steps);
    Ok(steps)
}

/// Returns true for a key that the next edit creates with a value.
fn is_implied(edit: &RegistryEdit, next: Option<&RegistryEdit>) -> bool {
    let RegistryEdit::CreateKey {
        key,
        mode: KeyMode::Merge,
    } = edit
    else {
        return false;
    };
    matches!(next, Some(RegistryEdit::SetValue { key: own, .. }) if own == key)
}

/// Finishes a .reg file, if it has edits.
fn finish_file(file: &mut Vec<&RegistryEdit>, steps: &mut Vec<RegistryStep>) {
    let edits = std::mem::take(file);
    if !edits.is_empty()
        && let Some(text) = from_edits(edits)
    {
        steps.push(RegistryStep::Import(to_utf16(&text)));
    }
}

/// Returns true if something is deleted, which `reg` requires to exist.
pub(super) fn deletes(steps: &[RegistryStep]) -> bool {
    steps.iter().any(|step| match step {
        RegistryStep::Call(words) => words.first().is_some_and(|verb| verb == "delete"),
        RegistryStep::Import(_) => false,
    })
}

/// Calls that make an edit, if `reg` supports it.
pub(super) fn calls(
    edit: &RegistryEdit,
    inside: &dyn BaseContents,
) -> Result<Option<Vec<Vec<String>>>, BaseReadError> {
    // Calls add a key, with its parents, before they delete it; a file adds nothing.
    if let RegistryEdit::DeleteKey { key } = edit {
        let mut above = key.clone();
        above.pop();
        if exists(inside, &above)? != Some(true) {
            return Ok(None);
        }
    }
    Ok(reg_calls(edit))
}

fn reg_calls(edit: &RegistryEdit) -> Option<Vec<Vec<String>>> {
    let key = key_name(edit.key());
    if !is_plain(&key) {
        return None;
    }
    let add = |operands: &[&str]| call("add", &key, operands);
    let delete = |operands: &[&str]| call("delete", &key, operands);
    Some(match edit {
        RegistryEdit::SetValue { name, data, .. } => {
            let (kind, data) = reg_data(data)?;
            let set = ["/t", kind, "/d", &data];
            vec![add(&[&value(name)?, &set[..]].concat())]
        }
        RegistryEdit::DeleteValue { name, .. } => {
            let value = value(name)?;
            vec![add(&value), delete(&value)]
        }
        // A key that reg adds without a value has a default one; a file adds it without.
        RegistryEdit::CreateKey { mode, .. } => match mode {
            KeyMode::Merge | KeyMode::Replace => return None,
            KeyMode::ReplaceValues => vec![add(&[]), delete(&["/va"])],
        },
        RegistryEdit::DeleteKey { .. } => vec![add(&[]), delete(&[])],
        RegistryEdit::SetSecurity { .. } => return None,
    })
}

/// With `/f`: otherwise reg prompts for confirmation.
fn call(verb: &str, key: &str, operands: &[&str]) -> Vec<String> {
    let words = [&[verb, key], operands, &["/f"]].concat();
    words.into_iter().map(str::to_owned).collect()
}

/// Key as in a running container, the familiar form.
fn key_name(key: &KeyPath) -> String {
    let mut path = key.root().short_name().to_owned();
    for (depth, name) in key.components().iter().enumerate() {
        let is_control_set = key.root() == Root::System && depth == 0 && name == "ControlSet001";
        path.push('\\');
        path.push_str(if is_control_set {
            "CurrentControlSet"
        } else {
            name
        });
    }
    path
}

fn value(name: &str) -> Option<Vec<&str>> {
    if name.is_empty() {
        return Some(vec!["/ve"]);
    }
    is_plain(name).then(|| vec!["/v", name])
}

/// Type and data of a value as arguments of `reg`.
fn reg_data(data: &RegistryData) -> Option<(&'static str, String)> {
    match (data.kind(), data.typed()) {
        (DataType::SZ, TypedData::Text(text)) if is_data(&text) => Some(("REG_SZ", text)),
        (DataType::EXPAND_SZ, TypedData::Text(text)) if is_data(&text) => {
            Some(("REG_EXPAND_SZ", text))
        }
        (DataType::DWORD, TypedData::Dword(number)) => Some(("REG_DWORD", number.to_string())),
        (DataType::QWORD, TypedData::Qword(number)) => Some(("REG_QWORD", number.to_string())),
        (DataType::BINARY, TypedData::Bytes(bytes)) if (1..=MOST_BYTES).contains(&bytes.len()) => {
            Some(("REG_BINARY", hex::encode(bytes)))
        }
        // \0 separates the texts, so none may contain it.
        (DataType::MULTI_SZ, TypedData::List(list))
            if !list.is_empty() && list.iter().all(|text| is_data(text)) =>
        {
            Some(("REG_MULTI_SZ", list.join(r"\0")))
        }
        _ => None,
    }
}

/// Returns true if `reg` reads a text unchanged: it is not an option and has one line.
fn is_plain(text: &str) -> bool {
    !text.starts_with(['/', '-']) && !text.contains(char::is_control)
}

fn is_data(text: &str) -> bool {
    is_plain(text) && !text.contains(r"\0")
}
