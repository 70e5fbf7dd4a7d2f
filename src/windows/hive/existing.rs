//! What a layer may delete without creating anything.
//!
//! To delete something, a delta needs every key above it, and says of those that they merge. Where
//! the image below has such a key, that changes nothing. Where it does not, the merging key is all
//! that there is of it, and a container finds a new, empty key. No mark says "only if it is there":
//! a tombstone on the key above would delete what it holds. So it takes knowledge of the image below
//! to delete in a key that no edit creates.

use std::collections::BTreeSet;

use super::WriteError;
use crate::windows::registry::upcase::Folded;
use crate::windows::registry::{KeyPath, RegistryEdit, Root};

/// Whether the image below has a key; `None` where that is not known.
pub type Exists<'a> = &'a dyn Fn(&KeyPath) -> Option<bool>;

/// Keys that every Windows image has, Nano Server's too, with the keys above them.
const IN_EVERY_WINDOWS: [(Root, &[&str]); 3] = [
    (
        Root::System,
        &[
            r"ControlSet001\Control\Lsa",
            r"ControlSet001\Control\Session Manager\Environment",
            r"ControlSet001\Control\Session Manager\Memory Management",
            r"ControlSet001\Services\Tcpip\Parameters",
        ],
    ),
    (
        Root::Software,
        &[
            r"Classes",
            r"Microsoft\Cryptography",
            r"Microsoft\Ole",
            r"Microsoft\Rpc",
            r"Microsoft\SystemCertificates\ROOT\Certificates",
            r"Microsoft\Windows\CurrentVersion",
            r"Microsoft\Windows NT\CurrentVersion",
            r"Policies\Microsoft",
        ],
    ),
    (Root::DefaultUser, &[r"Software\Microsoft"]),
];

/// What is known of an image that nobody has looked into: it is Windows.
pub fn in_every_windows(key: &KeyPath) -> Option<bool> {
    let wanted = folded(key.components());
    let leads_to = |path: &&str| {
        let known: Vec<Folded> = path.split('\\').map(Folded::new).collect();
        known.starts_with(&wanted)
    };
    let (_, paths) = IN_EVERY_WINDOWS
        .iter()
        .find(|(root, _)| *root == key.root())?;
    (wanted.is_empty() || paths.iter().any(leads_to)).then_some(true)
}

/// The edits without those that delete where there is nothing, which would create it. Fails where it
/// is not known whether there is something.
pub(super) fn effective<'e>(
    edits: &'e [RegistryEdit],
    exists: Exists<'_>,
) -> Result<Vec<&'e RegistryEdit>, WriteError> {
    let created: BTreeSet<(Root, Vec<Folded>)> = edits
        .iter()
        .filter(|edit| creates(edit))
        .flat_map(|edit| {
            let path = folded(edit.key().components());
            let above = (0..=path.len()).map(move |end| path[..end].to_vec());
            above.map(|path| (edit.key().root(), path))
        })
        .collect();
    let mut effective = Vec::with_capacity(edits.len());
    for edit in edits {
        let Some(holder) = deletes_in(edit) else {
            effective.push(edit);
            continue;
        };
        if created.contains(&(holder.root(), folded(holder.components())))
            || there(&holder, exists).ok_or_else(|| unknown(edit, &holder))?
        {
            effective.push(edit);
        }
    }
    Ok(effective)
}

/// Whether a key is there, from what is known of it and of the keys above it.
fn there(key: &KeyPath, exists: Exists<'_>) -> Option<bool> {
    let mut above = key.clone();
    let known = exists(key);
    while known.is_none() && !above.components().is_empty() {
        above.pop();
        if exists(&above) == Some(false) {
            return Some(false);
        }
    }
    known
}

fn unknown(edit: &RegistryEdit, holder: &KeyPath) -> WriteError {
    WriteError::UnknownHolder {
        edit: Box::new(edit.clone()),
        holder: holder.clone(),
    }
}

fn creates(edit: &RegistryEdit) -> bool {
    matches!(
        edit,
        RegistryEdit::SetValue { .. } | RegistryEdit::CreateKey { .. }
    )
}

/// The key that an edit takes something out of.
fn deletes_in(edit: &RegistryEdit) -> Option<KeyPath> {
    match edit {
        RegistryEdit::DeleteValue { key, .. } => Some(key.clone()),
        RegistryEdit::DeleteKey { key } => {
            let mut holder = key.clone();
            holder.pop();
            Some(holder)
        }
        RegistryEdit::SetValue { .. } | RegistryEdit::CreateKey { .. } => None,
    }
}

fn folded(names: &[String]) -> Vec<Folded> {
    names.iter().map(|name| Folded::new(name)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::windows::registry::{KeyMode, RegistryData};

    fn key(text: &str) -> KeyPath {
        text.parse().unwrap()
    }

    fn delete(text: &str) -> RegistryEdit {
        RegistryEdit::DeleteKey { key: key(text) }
    }

    fn unset(text: &str) -> RegistryEdit {
        RegistryEdit::DeleteValue {
            key: key(text),
            name: "v".into(),
        }
    }

    #[test]
    fn what_every_windows_has_can_hold_deletions() {
        for edit in [
            delete(r"HKLM\SYSTEM\CurrentControlSet\Services\DiagTrack"),
            delete(r"HKLM\SOFTWARE\Contoso"),
            delete(r"HKLM\SOFTWARE\microsoft\WINDOWS\currentversion\x"),
            unset(r"HKLM\SYSTEM\CurrentControlSet\Control"),
            unset(r"HKU\.DEFAULT"),
        ] {
            let edits = [edit];
            let effective = effective(&edits, &in_every_windows).unwrap();
            assert_eq!(effective, [&edits[0]]);
        }
    }

    #[test]
    fn below_a_key_that_may_be_missing_nothing_is_deleted_blindly() {
        for edit in [
            delete(r"HKLM\SOFTWARE\Contoso\Agent"),
            unset(r"HKLM\SYSTEM\CurrentControlSet\Services\DiagTrack"),
            delete(r"HKU\.DEFAULT\Control Panel\Desktop"),
        ] {
            let error = effective(std::slice::from_ref(&edit), &in_every_windows).unwrap_err();
            assert!(matches!(error, WriteError::UnknownHolder { .. }), "{edit}");
        }
    }

    #[test]
    fn an_edit_that_creates_the_key_settles_it_before_or_after() {
        let create = RegistryEdit::CreateKey {
            key: key(r"HKLM\SOFTWARE\CONTOSO\x"),
            mode: KeyMode::Merge,
        };
        let set = RegistryEdit::SetValue {
            key: key(r"HKLM\SOFTWARE\Contoso\Agent"),
            name: "v".into(),
            data: RegistryData::dword(1),
        };
        let gone = delete(r"HKLM\SOFTWARE\Contoso\Agent");
        for edits in [[create, gone.clone()], [gone, set]] {
            let effective = effective(&edits, &in_every_windows).unwrap();
            assert_eq!(effective, [&edits[0], &edits[1]]);
        }
    }

    #[test]
    fn where_the_key_is_known_to_be_missing_the_deletion_is_left_out() {
        let missing = |path: &KeyPath| {
            let depth = path.components().len();
            (depth < 2).then_some(depth == 0)
        };
        let edits = [
            delete(r"HKLM\SOFTWARE\Contoso\Agent\x"),
            unset(r"HKLM\SOFTWARE\Contoso"),
            delete(r"HKLM\SOFTWARE\Contoso"),
        ];
        assert_eq!(effective(&edits, &missing).unwrap(), [&edits[2]]);
    }
}
