//! Keys that exist in a base.

use crate::base::{BaseKeys, BaseReadError, Presence};
use crate::name_folding::FoldedName;
use crate::{KeyPath, Root};

/// Keys that every Windows image has, including Nano Server, with their parents.
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

/// Returns true if a base has a key, by its known content or that of every Windows; `None` if
/// unknown.
pub fn exists(inside: &dyn BaseKeys, key: &KeyPath) -> Result<Option<bool>, BaseReadError> {
    Ok(match inside.key(key)? {
        Presence::Present(_) => Some(true),
        Presence::Absent => Some(false),
        Presence::Unknown => in_every_windows(key).then_some(true),
    })
}

/// Returns true if every image of Windows has a key.
pub(super) fn in_every_windows(key: &KeyPath) -> bool {
    let wanted: Vec<FoldedName> = key
        .components()
        .iter()
        .map(|name| FoldedName::new(name))
        .collect();
    let leads_to = |path: &&str| {
        let known: Vec<FoldedName> = path.split('\\').map(FoldedName::new).collect();
        known.starts_with(&wanted)
    };
    let mut roots = IN_EVERY_WINDOWS.iter();
    let paths = roots.find(|(root, _)| *root == key.root());
    wanted.is_empty() || paths.is_some_and(|(_, paths)| paths.iter().any(leads_to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_windows_has_some_keys_in_any_case() {
        for (key, known) in [
            (r"HKLM\SYSTEM\CurrentControlSet\Services", true),
            (r"HKLM\SOFTWARE", true),
            (r"HKLM\SOFTWARE\microsoft\WINDOWS\currentversion", true),
            (r"HKU\.DEFAULT", true),
            (r"HKLM\SOFTWARE\Contoso", false),
            (r"HKLM\SYSTEM\CurrentControlSet\Services\DiagTrack", false),
            (r"HKU\.DEFAULT\Control Panel", false),
        ] {
            assert_eq!(in_every_windows(&key.parse().unwrap()), known, "{key}");
        }
    }
}
