//! Export of keys to a registration file of version 5.00.
//!
//! A delta's deletions become the file's own (`[-key]`, `"name"=-`), and a replaced key is deleted
//! first. Two cases cannot be expressed and become a comment: a key that hides only the values
//! below, and a key with a control character in its name, which is left out.

use std::fmt::Write as _;

use crate::hive::{Key, Semantics};
use crate::{DataType, RegistryData, TypedData};

/// Maximum line length of `regedit` before it breaks a list of bytes.
const WIDTH: usize = 80;

/// The keys of a hive or of a merged view as a registration file. `prefix` is the name of the root,
/// such as `HKEY_LOCAL_MACHINE\SYSTEM`.
pub fn export(prefix: &str, root: &Key<'_>) -> String {
    let mut out = String::from("Windows Registry Editor Version 5.00\r\n");
    write_key(&mut out, &mut prefix.to_owned(), root, false);
    out.push_str("\r\n");
    out
}

/// Encodes a text, such as a registration file, in UTF-16 with a byte order mark, as Windows writes
/// it.
pub fn to_utf16(text: &str) -> Vec<u8> {
    std::iter::once(0xFEFF)
        .chain(text.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect()
}

fn write_key(out: &mut String, path: &mut String, key: &Key<'_>, within_new: bool) {
    let semantics = key.layer.semantics;
    if semantics == Semantics::Tombstone {
        push_line(out, &["\r\n[-", path, "]"]);
        return;
    }
    let new = within_new || semantics == Semantics::SupersedeTree;
    if new && !within_new {
        push_line(out, &["\r\n[-", path, "]"]);
    }
    push_line(out, &["\r\n[", path, "]"]);
    if semantics == Semantics::SupersedeLocal {
        push_line(out, &["; hides all values that the layers below have here"]);
    }
    for value in &key.values {
        write_value(out, &value.name, value.data().as_ref());
    }
    let length = path.len();
    for subkey in &key.subkeys {
        if subkey.name.contains(char::is_control) {
            let _ = write!(out, "\r\n; left out: a key named {:?}\r\n", subkey.name);
            continue;
        }
        path.push('\\');
        path.push_str(&subkey.name);
        write_key(out, path, subkey, new);
        path.truncate(length);
    }
}

pub(super) fn push_line(out: &mut String, parts: &[&str]) {
    out.extend(parts.iter().copied());
    out.push_str("\r\n");
}

/// Writes a value; without data, its deletion.
pub(super) fn write_value(out: &mut String, name: &str, data: Option<&RegistryData>) {
    let start = out.len();
    if name.is_empty() {
        out.push('@');
    } else {
        write_quoted(out, name);
    }
    out.push('=');
    let column = out[start..].encode_utf16().count();
    match data {
        None => out.push('-'),
        Some(data) => write_data(out, data, column),
    }
    out.push_str("\r\n");
}

fn write_data(out: &mut String, data: &RegistryData, column: usize) {
    match (data.kind(), data.typed()) {
        (DataType::SZ, TypedData::Text(text)) if !text.contains(char::is_control) => {
            write_quoted(out, &text);
        }
        (DataType::DWORD, TypedData::Dword(number)) => {
            let _ = write!(out, "dword:{number:08x}");
        }
        (DataType::BINARY, _) => write_bytes(out, "hex:", data.bytes(), column),
        (kind, _) => write_bytes(out, &format!("hex({:x}):", kind.0), data.bytes(), column),
    }
}

fn write_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\0' => out.push_str("\\0"),
            _ => out.push(c),
        }
    }
    out.push('"');
}

/// Writes comma-separated bytes in hexadecimal; long lines are continued, indented by two.
fn write_bytes(out: &mut String, tag: &str, bytes: &[u8], column: usize) {
    out.push_str(tag);
    let mut column = column + tag.len();
    for (index, byte) in bytes.iter().enumerate() {
        let last = index + 1 == bytes.len();
        let _ = write!(out, "{byte:02x}");
        column += 2;
        if last {
            break;
        }
        out.push(',');
        column += 1;
        if column + 3 >= WIDTH {
            out.push_str("\\\r\n  ");
            column = 2;
        }
    }
}
