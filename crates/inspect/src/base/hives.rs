//! The hives of a base and the paths of keys in them, including two that edits cannot reach.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};
use wincimg_registry::name_folding::eq_ignore_case;
use wincimg_registry::{KeyPath, KeyPathError, Root};

use super::collect::LayerPosition;

/// A hive that every Windows has. The numbers are part of the format of facts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BaseHive {
    /// `HKLM\SYSTEM`.
    System = 1,
    /// `HKLM\SOFTWARE`.
    Software = 2,
    /// `HKLM\SAM`, the accounts.
    Sam = 3,
    /// `HKLM\SECURITY`, the system's secrets.
    Security = 4,
    /// `HKU\.DEFAULT`.
    DefaultUser = 5,
}

impl BaseHive {
    /// All hives.
    pub const ALL: [Self; 5] = [
        Self::System,
        Self::Software,
        Self::Sam,
        Self::Security,
        Self::DefaultUser,
    ];

    /// The hive of a root that edits can reach.
    pub(crate) const fn from_root(root: Root) -> Self {
        match root {
            Root::System => Self::System,
            Root::Software => Self::Software,
            Root::DefaultUser => Self::DefaultUser,
        }
    }

    /// Short name, such as `HKLM\SYSTEM`.
    pub const fn short_name(self) -> &'static str {
        match self {
            Self::System => Root::System.short_name(),
            Self::Software => Root::Software.short_name(),
            Self::Sam => r"HKLM\SAM",
            Self::Security => r"HKLM\SECURITY",
            Self::DefaultUser => Root::DefaultUser.short_name(),
        }
    }

    /// Paths in the bottom layer: Windows' own, and the one after unpacking.
    pub const fn base_files(self) -> [&'static str; 2] {
        match self {
            Self::System => ["Files/Windows/System32/config/SYSTEM", "Hives/System_Base"],
            Self::Software => [
                "Files/Windows/System32/config/SOFTWARE",
                "Hives/Software_Base",
            ],
            Self::Sam => ["Files/Windows/System32/config/SAM", "Hives/Sam_Base"],
            Self::Security => [
                "Files/Windows/System32/config/SECURITY",
                "Hives/Security_Base",
            ],
            Self::DefaultUser => [
                "Files/Windows/System32/config/DEFAULT",
                "Hives/DefaultUser_Base",
            ],
        }
    }

    /// File with the changes of an upper layer.
    pub const fn delta_file(self) -> &'static str {
        match self {
            Self::System => "Hives/System_Delta",
            Self::Software => "Hives/Software_Delta",
            Self::Sam => "Hives/Sam_Delta",
            Self::Security => "Hives/Security_Delta",
            Self::DefaultUser => "Hives/DefaultUser_Delta",
        }
    }
}

impl BaseHive {
    /// The part of the hive that a file of a layer is or, above the bottom layer, changes.
    pub(crate) fn part(self, path: &str, place: LayerPosition) -> Option<HivePart> {
        let part = |file: &str| HivePart::from_path(path, file);
        match place {
            LayerPosition::Bottom => self.base_files().into_iter().find_map(part),
            LayerPosition::Above => part(self.delta_file()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HivePart {
    Primary,
    /// One of its two logs, by index.
    Log(usize),
}

impl HivePart {
    /// The part that a path in a layer is, for a hive at another path; none for other files.
    pub(crate) fn from_path(path: &str, primary: &str) -> Option<Self> {
        let (name, extension) = path.split_at_checked(primary.len())?;
        if !name.eq_ignore_ascii_case(primary) {
            return None;
        }
        if extension.is_empty() {
            return Some(Self::Primary);
        }
        let mut logs = [".LOG1", ".LOG2"].into_iter();
        let log = logs.position(|log| extension.eq_ignore_ascii_case(log))?;
        Some(Self::Log(log))
    }
}

/// A key of a base, in any of its hives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaseKeyPath {
    /// The hive.
    pub hive: BaseHive,
    /// The names from the hive's root down to the key.
    pub components: Vec<String>,
}

impl From<&KeyPath> for BaseKeyPath {
    fn from(path: &KeyPath) -> Self {
        Self {
            hive: BaseHive::from_root(path.root()),
            components: path.components().to_vec(),
        }
    }
}

impl FromStr for BaseKeyPath {
    type Err = KeyPathError;

    /// Accepts the paths of [`KeyPath`], and `HKLM\SAM` and `HKLM\SECURITY`.
    fn from_str(text: &str) -> Result<Self, KeyPathError> {
        let names: Vec<&str> = text
            .strip_suffix('\\')
            .unwrap_or(text)
            .split('\\')
            .collect();
        if let [machine, hive, below @ ..] = names.as_slice()
            && ["HKLM", "HKLM:", "HKEY_LOCAL_MACHINE"]
                .iter()
                .any(|name| eq_ignore_case(name, machine))
            && let Some(hive) = [BaseHive::Sam, BaseHive::Security]
                .into_iter()
                .find(|known| eq_ignore_case(known.short_name().trim_start_matches(r"HKLM\"), hive))
        {
            // The rules for names are the same in every hive.
            let mut path = KeyPath::root_of(Root::System);
            below.iter().try_for_each(|name| path.push(name))?;
            let components = path.components().to_vec();
            return Ok(Self { hive, components });
        }
        text.parse::<KeyPath>().map(|path| Self::from(&path))
    }
}

impl Serialize for BaseKeyPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for BaseKeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.hive.short_name())?;
        let mut names = self.components.iter();
        names.try_for_each(|name| write!(f, r"\{name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_next_to_their_hive() {
        let hive = BaseHive::System.base_files()[0];
        for (path, expected) in [
            (hive.to_owned(), Some(HivePart::Primary)),
            (hive.to_lowercase(), Some(HivePart::Primary)),
            (format!("{hive}.LOG1"), Some(HivePart::Log(0))),
            (format!("{hive}.log2"), Some(HivePart::Log(1))),
            (format!("{hive}.LOG"), None),
            (format!("{hive}.LOG12"), None),
            (format!("{hive}é"), None),
            (format!("other/{hive}"), None),
            (String::new(), None),
        ] {
            assert_eq!(HivePart::from_path(&path, hive), expected, "{path}");
        }
    }

    #[test]
    fn keys_of_all_five_hives_have_a_path() {
        for (text, expected) in [
            (
                r"HKLM\SYSTEM\CurrentControlSet\Control",
                r"HKLM\SYSTEM\ControlSet001\Control",
            ),
            (
                r"HKEY_LOCAL_MACHINE\sam\SAM\Domains\",
                r"HKLM\SAM\SAM\Domains",
            ),
            (r"hklm:\Security", r"HKLM\SECURITY"),
            (r"HKU\.DEFAULT\Console", r"HKU\.DEFAULT\Console"),
        ] {
            let path: BaseKeyPath = text.parse().unwrap();
            assert_eq!(path.to_string(), expected);
        }
        for text in [r"HKLM\SECURITY\\x", r"HKLM\BCD00000000", "", r"HKCU\x"] {
            assert!(text.parse::<BaseKeyPath>().is_err(), "{text}");
        }
    }
}
