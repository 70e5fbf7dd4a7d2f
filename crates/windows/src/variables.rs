//! Environment variables of a process in a container.

use std::collections::BTreeMap;

use wincimg_registry::{KeyPath, Root};

use crate::keys::known_key;

/// Variables with the same value in every container, whose drive is C:.
const FIXED: [(&str, &str); 14] = [
    ("ALLUSERSPROFILE", r"C:\ProgramData"),
    ("CommonProgramFiles", r"C:\Program Files\Common Files"),
    (
        "CommonProgramFiles(x86)",
        r"C:\Program Files (x86)\Common Files",
    ),
    ("CommonProgramW6432", r"C:\Program Files\Common Files"),
    ("ComSpec", r"C:\Windows\system32\cmd.exe"),
    ("OS", "Windows_NT"),
    ("ProgramData", r"C:\ProgramData"),
    ("ProgramFiles", r"C:\Program Files"),
    ("ProgramFiles(x86)", r"C:\Program Files (x86)"),
    ("ProgramW6432", r"C:\Program Files"),
    ("PUBLIC", r"C:\Users\Public"),
    ("SystemDrive", "C:"),
    ("SystemRoot", r"C:\Windows"),
    ("windir", r"C:\Windows"),
];

/// Variables of every container that its user or its host sets, at least in part.
const UNRECORDED: [&str; 18] = [
    "APPDATA", "COMPUTERNAME", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "LOGONSERVER",
    "NUMBER_OF_PROCESSORS", "PATHEXT", "PROCESSOR_IDENTIFIER", "PROCESSOR_LEVEL",
    "PROCESSOR_REVISION", "PSModulePath", "Path", "TEMP", "TMP", "USERDOMAIN", "USERNAME",
    "USERPROFILE",
];

/// The key with the machine's variables.
pub fn environment_key() -> KeyPath {
    let names = ["ControlSet001", "Control", "Session Manager", "Environment"];
    known_key(Root::System, &names)
}

/// The value of a variable that is the same in every container.
pub fn fixed_variable(name: &str) -> Option<&'static str> {
    let mut known = FIXED.iter();
    let found = known.find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, value)| *value)
}

/// Returns true if the machine's registry does not say the value of a variable.
pub fn is_unrecorded_variable(name: &str) -> bool {
    let mut known = UNRECORDED.iter();
    known.any(|known| known.eq_ignore_ascii_case(name))
}

/// Checks the name of a variable. The names of those before it are by their ASCII lower case.
pub fn check_new_variable(name: &str, others: &BTreeMap<String, String>) -> Result<(), String> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(format!("invalid name of a variable: {name:?}"));
    }
    match others.get(&name.to_ascii_lowercase()) {
        Some(known) => Err(format!(
            "{known} and {name} are the same variable on Windows"
        )),
        None => Ok(()),
    }
}

/// Fills in the variables with the same value in every container, and others; `None` if a text has
/// another one.
pub fn filled_in(text: &str, more: &[(&str, &str)]) -> Option<String> {
    let mut pieces = text.split('%');
    let mut out = pieces.next().unwrap_or_default().to_owned();
    while let Some(name) = pieces.next() {
        let after = pieces.next()?;
        let mut given = more.iter();
        let given = given.find(|(known, _)| known.eq_ignore_ascii_case(name));
        let given = given.map(|(_, value)| *value);
        out.push_str(fixed_variable(name).or(given)?);
        out.push_str(after);
    }
    Some(out)
}

/// Fills in the variables of a text that have a value; others stay.
pub fn expanded<V: AsRef<str>>(text: &str, value_of: impl Fn(&str) -> Option<V>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        out.push_str(before);
        let named = after.split_once('%');
        let known = named.and_then(|(name, after)| Some((value_of(name)?, after)));
        if let Some((value, after)) = known {
            out.push_str(value.as_ref());
            rest = after;
        } else {
            out.push('%');
            rest = after;
        }
    }
    out + rest
}
