//! Export of edits to a registration file.

use super::export::{push_line, write_value};
use crate::{KeyMode, RegistryEdit};

/// Writes edits as a registration file of version 5.00. `None` if one of them cannot be expressed:
/// a key that loses its values and keeps its subkeys, rights, and names with control characters.
pub fn from_edits<'a>(edits: impl IntoIterator<Item = &'a RegistryEdit>) -> Option<String> {
    let mut out = String::from("Windows Registry Editor Version 5.00\r\n");
    for edit in edits {
        let key = edit.key().long_form();
        plain(&key)?;
        match edit {
            RegistryEdit::DeleteKey { .. } => push_line(&mut out, &["\r\n[-", &key, "]"]),
            RegistryEdit::SetSecurity { .. } => return None,
            RegistryEdit::CreateKey { mode, .. } => {
                match mode {
                    KeyMode::Merge => {}
                    KeyMode::Replace => push_line(&mut out, &["\r\n[-", &key, "]"]),
                    KeyMode::ReplaceValues => return None,
                }
                push_line(&mut out, &["\r\n[", &key, "]"]);
            }
            RegistryEdit::DeleteValue { name, .. } => {
                push_line(&mut out, &["\r\n[", &key, "]"]);
                write_value(&mut out, plain(name)?, None);
            }
            RegistryEdit::SetValue { name, data, .. } => {
                push_line(&mut out, &["\r\n[", &key, "]"]);
                write_value(&mut out, plain(name)?, Some(data));
            }
        }
    }
    Some(out)
}

/// The name itself, unless it has control characters.
fn plain(name: &str) -> Option<&str> {
    (!name.contains(char::is_control)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::regfile::import;
    use crate::{DataType, KeyPath, RegistryData};

    fn key() -> KeyPath {
        r"HKLM\SOFTWARE\Acme [1]\a".parse().unwrap()
    }

    fn set(name: &str, data: RegistryData) -> RegistryEdit {
        RegistryEdit::SetValue {
            key: key(),
            name: name.to_owned(),
            data,
        }
    }

    #[test]
    fn what_is_imported_again_is_the_same() {
        let edits = [
            RegistryEdit::DeleteKey {
                key: r"HKLM\SYSTEM\CurrentControlSet\Services\x".parse().unwrap(),
            },
            set("", RegistryData::sz("a \"b\" \\ ; c")),
            set("n \"q\" \\", RegistryData::dword(7)),
            set("text", RegistryData::sz("two\nlines")),
            set("list", RegistryData::multi_sz(&["a", r"b\0c"]).unwrap()),
            set("empty list", RegistryData::multi_sz::<&str>(&[]).unwrap()),
            set("bytes", RegistryData::binary(vec![7; 100])),
            set("odd", RegistryData::new(DataType::SZ, [1, 2, 3])),
            set("none", RegistryData::new(DataType::NONE, [])),
            RegistryEdit::DeleteValue {
                key: key(),
                name: "gone".to_owned(),
            },
        ];
        let imported = import(from_edits(&edits).unwrap().as_bytes())
            .unwrap()
            .edits;
        let without_keys: Vec<RegistryEdit> = imported
            .into_iter()
            .filter(|edit| !matches!(edit, RegistryEdit::CreateKey { .. }))
            .collect();
        assert_eq!(without_keys, edits);
    }

    #[test]
    fn a_replaced_key_is_deleted_first_and_other_replacing_has_no_form() {
        let create = |mode| RegistryEdit::CreateKey { key: key(), mode };
        let text = from_edits(&[create(KeyMode::Replace)]).unwrap();
        let path = r"HKEY_LOCAL_MACHINE\SOFTWARE\Acme [1]\a";
        assert!(
            text.ends_with(&format!("\r\n[-{path}]\r\n\r\n[{path}]\r\n")),
            "{text}"
        );
        assert_eq!(from_edits(&[create(KeyMode::ReplaceValues)]), None);
        assert_eq!(from_edits(&[set("a\nb", RegistryData::dword(1))]), None);
    }
}
