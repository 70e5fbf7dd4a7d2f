//! Services in an image, and the registry values that the service control manager reads when a
//! container starts.
//!
//! The values, their types and the format of `FailureActions` are those of services in a SYSTEM
//! hive of Windows.
//!
//! A new service has no subkey `Security`: in a hive of Windows 10 the services that installers
//! created have none, unless the installer set a descriptor afterwards
//! (`SetServiceObjectSecurity`, `sc sdset`). Windows then creates the subkey for administrators
//! only; without it, the service has the default descriptor.

#[cfg(feature = "document")]
mod document;
mod settings;

#[cfg(feature = "document")]
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

#[cfg(feature = "document")]
use schemars::JsonSchema;
#[cfg(feature = "document")]
use serde::Deserialize;
use serde::Serialize;
pub use settings::ServiceSettings;
#[cfg(feature = "document")]
use wincimg_common::document::{Text, text};
use wincimg_common::{Named, SerializeDisplay};
use wincimg_registry::{KeyPath, RegistryData, RegistryEdit, Root};

use super::checked_text;
use super::invalid::InvalidText;
use super::keys::{known_key, set_value};
use super::path::ImagePath;
use super::quoting::argv;

/// Longest name: Windows allows 256 characters, but 255 for a key.
pub(crate) const MAX_NAME: usize = 255;

/// A service in its own process. It replaces a service of that name in the base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "document", derive(Deserialize, JsonSchema))]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { name = \"Worker\", program = 'C:\\app\\worker.exe' }"
)]
pub struct Service {
    /// The service's name.
    pub name: ServiceName,
    /// Display name.
    pub display_name: Option<ServiceText>,
    /// Description.
    pub description: Option<ServiceText>,
    /// The program's full path.
    pub program: ServiceProgram,
    /// Its arguments, passed unchanged.
    #[serde(default)]
    pub arguments: Vec<ServiceArgument>,
    /// auto (with the container; the default), delayed-auto, demand or disabled.
    #[serde(default)]
    pub start: StartType,
    /// `LocalSystem` (the default), `LocalService`, `NetworkService` or NT SERVICE\NAME.
    #[serde(default)]
    pub account: ServiceAccount,
    /// Names of services that must run before it.
    #[serde(default)]
    pub depends_on: Vec<ServiceName>,
    /// Variables in addition to the container's.
    #[serde(default, deserialize_with = "document::variables")]
    #[cfg_attr(feature = "document", schemars(with = "BTreeMap<String, Text>"))]
    // The default is another type than the schema's.
    #[cfg_attr(feature = "document", schemars(skip_serializing_if = "Vec::is_empty"))]
    pub environment: Vec<ServiceText>,
    /// Actions of Windows if it exits without reporting that it stopped.
    pub on_failure: Option<FailureActions>,
}

/// A path of drive C, or one that begins with a variable of Windows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ServiceProgram(String);

/// A word of a command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct ServiceArgument(String);

checked_text!(
    /// A valid service name; case-insensitive.
    ServiceName,
    "name of a service",
    "1 to 255 characters without / and \\, not beginning with +",
    service_name
);
checked_text!(
    /// A non-empty text on one line.
    ServiceText,
    "text",
    "a non-empty line",
    line
);

/// Start type of a service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Named)]
#[serde(rename_all = "kebab-case")]
pub enum StartType {
    /// With the container.
    #[default]
    Auto,
    /// After a delay.
    DelayedAuto,
    /// On demand.
    Demand,
    /// Never.
    Disabled,
}

/// Account of a service. None of them has a password.
#[derive(Debug, Clone, Default, PartialEq, Eq, SerializeDisplay)]
pub enum ServiceAccount {
    /// The system.
    #[default]
    LocalSystem,
    /// Few rights, anonymous on the network.
    LocalService,
    /// Few rights, the machine on the network.
    NetworkService,
    /// The virtual account of a service, `NT SERVICE\NAME`.
    Virtual(ServiceName),
}

/// Actions of Windows when a service fails.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "document", derive(Deserialize, JsonSchema))]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { actions = [{ action = \"restart\", after = 5 }] }"
)]
pub struct FailureActions {
    /// Actions for the first failure, the second and so on; the last applies to all further ones.
    pub actions: Vec<FailureAction>,
    /// Seconds without a failure after which the count restarts; default: a day.
    #[serde(default = "document::day", deserialize_with = "document::seconds")]
    #[cfg_attr(feature = "document", schemars(with = "Text"))]
    pub reset_after: u32,
    /// The command line of the action run.
    pub command: Option<ServiceText>,
    /// True if stopping with an error counts as a failure, too.
    #[serde(default, deserialize_with = "text")]
    #[cfg_attr(feature = "document", schemars(with = "Text"))]
    pub also_on_error: bool,
}

/// Action of Windows for one failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "document", derive(Deserialize, JsonSchema))]
#[serde(
    deny_unknown_fields,
    expecting = "a table, such as { action = \"restart\", after = 5 }"
)]
pub struct FailureAction {
    /// restart, run or nothing.
    pub action: FailureKind,
    /// Delay in seconds; default: 0.
    // In documents; here and in plans it is in milliseconds.
    #[serde(default, deserialize_with = "document::delay")]
    #[serde(rename(serialize = "after_ms", deserialize = "after"))]
    #[cfg_attr(feature = "document", schemars(with = "Text"))]
    pub after: u32,
}

/// Kind of action for a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// None.
    Nothing,
    /// Restart the service.
    Restart,
    /// Run a command.
    Run,
    /// Windows starts again, which ends a container. Recipes do not have it.
    Reboot,
}

impl ServiceName {
    /// The key of the service.
    pub fn key(&self) -> KeyPath {
        known_key(Root::System, &["ControlSet001", "Services", &self.0])
    }

    /// Returns true if Windows considers the names equal.
    pub fn eq_ignore_case(&self, other: &Self) -> bool {
        self.0.to_lowercase() == other.0.to_lowercase()
    }
}

fn service_name(text: &str) -> Option<String> {
    let is_long = text.encode_utf16().count() > MAX_NAME;
    let is_odd = text.contains(|c: char| c.is_control() || matches!(c, '/' | '\\'));
    // In dependencies, a plus begins the name of a group of services.
    let is_blank = text.trim() != text || text.is_empty() || text.starts_with('+');
    (!is_long && !is_odd && !is_blank).then(|| text.to_owned())
}

fn line(text: &str) -> Option<String> {
    let is_line = !text.is_empty() && !text.contains(char::is_control);
    is_line.then(|| text.to_owned())
}

impl FromStr for ServiceArgument {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.contains(char::is_control) {
            return Err("a command line cannot contain control characters");
        }
        Ok(Self(text.to_owned()))
    }
}

impl FromStr for ServiceProgram {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let ServiceArgument(program) = text.parse()?;
        if program.contains('"') {
            return Err("the program's path cannot contain a quote".to_owned());
        }
        if program.starts_with('%') {
            return Ok(Self(program));
        }
        let path: Result<ImagePath, _> = program.parse();
        path.map(|path| Self(path.to_string()))
            .map_err(|problem| problem.to_string())
    }
}

impl StartType {
    const fn number(self) -> u32 {
        match self {
            Self::Auto | Self::DelayedAuto => 2,
            Self::Demand => 3,
            Self::Disabled => 4,
        }
    }
}

impl FromStr for StartType {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_name(text).ok_or_else(|| InvalidText::new("start", text, Self::NAMES))
    }
}

impl FromStr for ServiceAccount {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (domain, name) = text.split_once('\\').unwrap_or(("", text));
        let is = |text: &str, other: &str| text.eq_ignore_ascii_case(other);
        let authority = domain.is_empty() || is(domain, "NT AUTHORITY");
        Ok(match name {
            name if is(domain, "NT SERVICE") => Self::Virtual(name.parse()?),
            name if authority && is(&name.replace(' ', ""), "LocalService") => Self::LocalService,
            name if authority && is(&name.replace(' ', ""), "NetworkService") => {
                Self::NetworkService
            }
            name if matches!(domain, "" | ".") && is(name, "LocalSystem") => Self::LocalSystem,
            _ => {
                let expected = r"LocalSystem, LocalService, NetworkService or NT SERVICE\NAME: others have a password, which an image cannot store";
                return Err(InvalidText::new("account", text, expected));
            }
        })
    }
}

impl fmt::Display for ServiceAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LocalSystem => f.write_str("LocalSystem"),
            Self::LocalService => f.write_str(r"NT AUTHORITY\LocalService"),
            Self::NetworkService => f.write_str(r"NT AUTHORITY\NetworkService"),
            Self::Virtual(name) => write!(f, r"NT SERVICE\{name}"),
        }
    }
}

impl FromStr for FailureKind {
    type Err = InvalidText;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "nothing" => Ok(Self::Nothing),
            "restart" => Ok(Self::Restart),
            "run" => Ok(Self::Run),
            _ => Err(InvalidText::new("action", text, "restart, run or nothing")),
        }
    }
}

impl FailureActions {
    /// `SERVICE_FAILURE_ACTIONS` in the registry: instead of pointers, it has flags for a message
    /// and a command, and the offset of the actions.
    fn to_bytes(&self) -> Vec<u8> {
        let count = u32::try_from(self.actions.len()).unwrap_or(u32::MAX);
        let has_command = u32::from(self.command.is_some());
        let header = [self.reset_after, 0, has_command, count, 20];
        let actions = self.actions.iter().flat_map(|action| {
            let kind = match action.action {
                FailureKind::Nothing => 0,
                FailureKind::Restart => 1,
                FailureKind::Reboot => 2,
                FailureKind::Run => 3,
            };
            [kind, action.after]
        });
        let words = header.into_iter().chain(actions);
        words.flat_map(u32::to_le_bytes).collect()
    }

    /// The edits that give them to a service.
    pub fn edits(&self, name: &ServiceName) -> Vec<RegistryEdit> {
        let key = name.key();
        let mut values = vec![("FailureActions", RegistryData::binary(self.to_bytes()))];
        if let Some(command) = &self.command {
            values.push(("FailureCommand", RegistryData::sz(&command.0)));
        }
        if self.also_on_error {
            values.push(("FailureActionsOnNonCrashFailures", RegistryData::dword(1)));
        }
        let values = values.into_iter();
        let edits = values.map(|(name, data)| set_value(&key, name, data));
        edits.collect()
    }
}

impl Service {
    /// The command line.
    pub fn command_line(&self) -> String {
        let arguments = self.arguments.iter().map(|it| &it.0);
        let words: Vec<&String> = std::iter::once(&self.program.0).chain(arguments).collect();
        argv::join(&words)
    }

    /// The edits that create it, replacing a service of that name in the base with its subkeys.
    pub fn edits(&self) -> Vec<RegistryEdit> {
        let settings = ServiceSettings {
            command: Some(self.command_line()),
            display_name: self.display_name.clone(),
            description: self.description.clone(),
            start: Some(self.start),
            account: Some(self.account.clone()),
            depends_on: (!self.depends_on.is_empty()).then(|| self.depends_on.clone()),
        };
        let mut edits = settings.new_service(&self.name);
        if !self.environment.is_empty() {
            let lines = list(self.environment.iter().map(|it| &it.0));
            edits.push(set_value(&self.name.key(), "Environment", lines));
        }
        edits.extend(
            self.on_failure
                .iter()
                .flat_map(|failure| failure.edits(&self.name)),
        );
        edits
    }
}

/// A list of names or lines.
#[expect(
    clippy::expect_used,
    reason = "neither can be empty or have a null in it; their readers see to that"
)]
fn list<'a>(texts: impl Iterator<Item = &'a String>) -> RegistryData {
    let texts: Vec<&String> = texts.collect();
    RegistryData::multi_sz(&texts).expect("sound texts")
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, line) = (&self.name, self.command_line());
        write!(
            f,
            "{name} runs {line} as {}, {}",
            self.account,
            self.start.name()
        )
    }
}

#[cfg(test)]
mod tests;
