//! Paths of registry keys: a hive of an image, and the names below it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::Link;
use super::name_folding::eq_ignore_case;

/// The hives of an image that edits can change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Root {
    /// `HKLM\SYSTEM`: services, drivers, shutdown times.
    System,
    /// `HKLM\SOFTWARE`: programs and their settings.
    Software,
    /// `HKU\.DEFAULT`: the user settings of the system account.
    DefaultUser,
}

impl Root {
    /// All of them, in the order in which a layer holds their deltas.
    pub const ALL: [Self; 3] = [Self::System, Self::Software, Self::DefaultUser];

    /// The file in a layer's `Hives` directory that holds changes to this hive.
    pub const fn delta_name(self) -> &'static str {
        match self {
            Self::System => "System_Delta",
            Self::Software => "Software_Delta",
            Self::DefaultUser => "DefaultUser_Delta",
        }
    }

    /// The hive whose changes a file of a layer's `Hives` directory holds.
    pub fn from_delta_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|root| root.delta_name().eq_ignore_ascii_case(name))
    }

    /// The short name, `HKLM\SYSTEM`.
    pub const fn short_name(self) -> &'static str {
        match self {
            Self::System => r"HKLM\SYSTEM",
            Self::Software => r"HKLM\SOFTWARE",
            Self::DefaultUser => r"HKU\.DEFAULT",
        }
    }

    /// The name in registration files, `HKEY_LOCAL_MACHINE\SYSTEM`.
    pub const fn long_name(self) -> &'static str {
        match self {
            Self::System => r"HKEY_LOCAL_MACHINE\SYSTEM",
            Self::Software => r"HKEY_LOCAL_MACHINE\SOFTWARE",
            Self::DefaultUser => r"HKEY_USERS\.DEFAULT",
        }
    }
}

/// Maximum length of a key's name, in UTF-16 code units.
const MAX_KEY_NAME: usize = 255;
/// Maximum number of names below a hive's root: Windows allows 512 levels,
/// `\REGISTRY\MACHINE\SYSTEM` are three.
const MAX_COMPONENTS: usize = 509;

/// Keys without which Windows does not run, except for the roots of the hives.
const ESSENTIAL: [(Root, &str); 9] = [
    (Root::System, "ControlSet001"),
    (Root::System, r"ControlSet001\Control"),
    (Root::System, r"ControlSet001\Services"),
    (Root::Software, "Classes"),
    (Root::Software, "Microsoft"),
    (Root::Software, r"Microsoft\Windows"),
    (Root::Software, r"Microsoft\Windows\CurrentVersion"),
    (Root::Software, r"Microsoft\Windows NT"),
    (Root::Software, r"Microsoft\Windows NT\CurrentVersion"),
];

/// A key of one of an image's hives, as read from `HKLM\SYSTEM\CurrentControlSet\Services\x`.
///
/// `CurrentControlSet` is `ControlSet001`, the only name in an image's hives. A path through a
/// [`Link`] is that of the target. Names keep their case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyPath {
    root: Root,
    components: Vec<String>,
}

/// Error of parsing a key path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyPathError {
    /// Its root is unknown, a name is empty, too long or has an invalid character, or there are too
    /// many.
    #[error("{0}")]
    Invalid(String),
    /// The key exists in Windows, but not in the hives that an image's layers can change.
    #[error("{root} cannot be read or changed in an image: {reason}; {instead}")]
    Unreachable {
        /// The requested part of the registry.
        root: String,
        /// Why it cannot be reached.
        reason: &'static str,
        /// The alternative.
        instead: &'static str,
    },
}

impl KeyPath {
    /// The root key of a hive.
    pub const fn root_of(root: Root) -> Self {
        Self {
            root,
            components: Vec::new(),
        }
    }

    /// The hive.
    pub fn root(&self) -> Root {
        self.root
    }

    /// The names from the hive's root down to the key; none for the root itself.
    pub fn components(&self) -> &[String] {
        &self.components
    }

    /// Returns true if it is a key without which Windows does not run.
    pub fn is_essential(&self) -> bool {
        let own = self.components.join("\\");
        let mut keys = ESSENTIAL.iter();
        own.is_empty() || keys.any(|(root, path)| *root == self.root && eq_ignore_case(&own, path))
    }

    /// The key of that name below this one.
    pub fn child(&self, name: &str) -> Result<Self, KeyPathError> {
        let mut child = self.clone();
        child.push(name)?;
        Ok(child)
    }

    /// Goes down to the key of that name.
    pub fn push(&mut self, name: &str) -> Result<(), KeyPathError> {
        if name.is_empty() {
            return Err(empty_name(&format!("{self}\\")));
        }
        let (length, depth) = (name.encode_utf16().count(), self.components.len() + 1);
        let problem = if name.contains(['\\', '\0']) {
            format!("the key name {name:?} contains a backslash or a null")
        } else if length > MAX_KEY_NAME {
            format!(
                "the key name {name:?} has {length} UTF-16 units: the maximum is {MAX_KEY_NAME}"
            )
        } else if depth > MAX_COMPONENTS {
            format!(
                "a key {depth} levels below its hive's root is too deep: the maximum is {MAX_COMPONENTS}"
            )
        } else {
            self.components.push(name.to_owned());
            return Ok(());
        };
        Err(KeyPathError::Invalid(problem))
    }

    /// Goes back up by one name, if there is one.
    pub fn pop(&mut self) {
        self.components.pop();
    }

    /// The path in the spelling of registration files, `HKEY_LOCAL_MACHINE\…`.
    pub(crate) fn long_form(&self) -> String {
        self.spelled(self.root.long_name())
    }

    fn spelled(&self, root: &str) -> String {
        let mut text = root.to_owned();
        for component in &self.components {
            text.push('\\');
            text.push_str(component);
        }
        text
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelled(self.root.short_name()))
    }
}

impl FromStr for KeyPath {
    type Err = KeyPathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text).map(|(path, _)| path)
    }
}

impl KeyPath {
    /// Parses a path, and returns the link that it went through.
    pub fn parse(text: &str) -> Result<(Self, Option<Link>), KeyPathError> {
        let whole = text.strip_suffix('\\').unwrap_or(text);
        let (top, rest) = whole.split_once('\\').unwrap_or((whole, ""));
        let (second, below) = rest.split_once('\\').unwrap_or((rest, ""));
        let root = hive_root(top, second).map_err(|refusal| match refusal {
            Some((reason, instead)) => KeyPathError::Unreachable {
                root: format!("{top}\\{second}").trim_end_matches('\\').to_owned(),
                reason,
                instead,
            },
            None => KeyPathError::Invalid(format!(
                r#""{text}" starts with an unknown root: expected HKLM\SYSTEM\…, HKLM\SOFTWARE\… or HKU\.DEFAULT\…"#
            )),
        })?;

        let mut path = Self::root_of(root);
        for (position, name) in below.split('\\').enumerate() {
            if name.is_empty() && below.is_empty() {
                break;
            }
            if name.is_empty() {
                return Err(empty_name(text));
            }
            let current =
                root == Root::System && position == 0 && eq_ignore_case(name, "CurrentControlSet");
            path.push(if current { "ControlSet001" } else { name })?;
        }
        let link = Link::resolve(root, &mut path.components);
        Ok((path, link))
    }
}

fn empty_name(path: &str) -> KeyPathError {
    let rule = "names are separated by one backslash";
    KeyPathError::Invalid(format!("\"{path}\" contains an empty name: {rule}"))
}

type Refusal = (&'static str, &'static str);

/// Only the processes of a container have a user. Windows has the hive of new users in
/// `C:\Users\Default`; `HKU\.DEFAULT` is not it.
const INSTEAD_OF_USER: &str = r"use HKU\.DEFAULT for the system account; for the user of a container, run reg with HKCU in the entry point";

/// The hive of the first two names; otherwise the reason why it cannot be changed, `None` for an
/// unknown one.
fn hive_root(top: &str, second: &str) -> Result<Root, Option<Refusal>> {
    let top = top.strip_suffix(':').unwrap_or(top).to_ascii_uppercase();
    let top = match top.as_str() {
        "HKEY_LOCAL_MACHINE" => "HKLM",
        "HKEY_USERS" => "HKU",
        "HKEY_CURRENT_USER" => "HKCU",
        "HKEY_CLASSES_ROOT" => "HKCR",
        "HKEY_CURRENT_CONFIG" => "HKCC",
        short => short,
    };
    let second = second.to_ascii_uppercase();
    let refusal = match (top, second.as_str()) {
        ("HKLM", "SYSTEM") => return Ok(Root::System),
        ("HKLM", "SOFTWARE") => return Ok(Root::Software),
        ("HKU", ".DEFAULT") => return Ok(Root::DefaultUser),
        ("HKLM", "HARDWARE") => (
            "Windows creates it in memory at every start",
            "set it in the container's entry point",
        ),
        ("HKLM", "SAM" | "SECURITY") => (
            "it contains accounts and secrets that Windows manages itself",
            "use net user or secedit in a RUN line on a Windows builder",
        ),
        ("HKLM", name) if name.starts_with("BCD") => (
            "a container does not boot from its image",
            "change the host's boot configuration with bcdedit",
        ),
        ("HKCU", _) => (
            "the user is known only when a process runs",
            INSTEAD_OF_USER,
        ),
        ("HKCR", _) => (
            "it is a view of two other keys",
            r"use HKLM\SOFTWARE\Classes, which has the settings for all users",
        ),
        ("HKCC", _) => (
            "it is a link to another key",
            r"use HKLM\SYSTEM\CurrentControlSet\Hardware Profiles\0001",
        ),
        ("HKU", "S-1-5-18") => (
            "it is another name of the system account's settings",
            r"use HKU\.DEFAULT",
        ),
        ("HKU", _) => (
            "a user's hive is a file in the user's profile, not a hive of the image",
            INSTEAD_OF_USER,
        ),
        _ => return Err(None),
    };
    Err(Some(refusal))
}

impl Serialize for KeyPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for KeyPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}
