//! The state of an installation while its sequence is followed: properties, folders, selection.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use wincimg_registry::{KeyPath, Presence, RegistryData};
use wincimg_windows::path::ImagePath;
use wincimg_windows::variables::{
    environment_key, filled_in, fixed_variable, is_unrecorded_variable,
};

use super::condition;
use super::database::{Database, Row};
use super::directories::profile_variable;
use super::error::MsiError;
use super::plan::{InstallOptions, Product};
use super::registry::software_key;
use super::selection::Component;
use super::summary::Summary;

/// What an installation asks of the image that it changes.
pub trait InstalledSystem {
    /// A registry value; the empty name is the default value of the key.
    fn value(&self, key: &KeyPath, name: &str) -> Presence<RegistryData>;

    /// Names of the values of a registry key.
    fn value_names(&self, key: &KeyPath) -> Presence<Vec<String>>;

    /// A registry key.
    fn key(&self, key: &KeyPath) -> Presence<()>;

    /// A file or folder; true for a folder.
    fn entry(&self, path: &ImagePath) -> Presence<bool>;

    /// The names in a folder.
    fn names(&self, folder: &ImagePath) -> Presence<Vec<String>>;

    /// The content of a small file.
    fn content(&self, file: &ImagePath) -> Presence<Vec<u8>>;

    /// A variable that the image's configuration sets; the others are in the registry.
    fn variable(&self, name: &str) -> Option<String>;
}

/// Parts of Windows whose versions packages ask for: keys below `Microsoft`, and folders.
const PARTS_OF_WINDOWS: [&str; 7] = [
    "inetsrv", "InetStp", "Microsoft.NET", "NET Framework Setup", "PowerShell", "Windows NT",
    "WindowsPowerShell",
];

fn is_part_of_windows(name: &str) -> bool {
    PARTS_OF_WINDOWS
        .iter()
        .any(|own| name.eq_ignore_ascii_case(own))
}

/// A system with nothing but some files and a Windows of an unknown version, for a package that is
/// only looked at.
#[derive(Debug, Clone, Default)]
pub struct BareSystem {
    /// Files whose content the package may read, such as transforms.
    pub files: Vec<(ImagePath, Vec<u8>)>,
}

impl InstalledSystem for BareSystem {
    fn value(&self, key: &KeyPath, _: &str) -> Presence<RegistryData> {
        let mut pairs = key.components().windows(2);
        let is_part = |pair: &[String]| {
            pair[0].eq_ignore_ascii_case("Microsoft") && is_part_of_windows(&pair[1])
        };
        if pairs.any(is_part) {
            return Presence::Unknown;
        }
        Presence::Absent
    }

    fn value_names(&self, _: &KeyPath) -> Presence<Vec<String>> {
        Presence::Absent
    }

    fn key(&self, _: &KeyPath) -> Presence<()> {
        Presence::Absent
    }

    fn entry(&self, path: &ImagePath) -> Presence<bool> {
        let is = |own: &str, name: &str| own.eq_ignore_ascii_case(name);
        match path.components() {
            [windows, ..] if !is(windows, "Windows") => Presence::Absent,
            [] | [_] => Presence::Present(true),
            [_, name] if is(name, "System32") || is(name, "SysWOW64") => Presence::Present(true),
            names if names.iter().any(|name| is_part_of_windows(name)) => Presence::Unknown,
            _ => Presence::Absent,
        }
    }

    fn names(&self, _: &ImagePath) -> Presence<Vec<String>> {
        Presence::Absent
    }

    fn content(&self, file: &ImagePath) -> Presence<Vec<u8>> {
        let own = self.files.iter().find(|(path, _)| path == file);
        own.map_or(Presence::Absent, |(_, bytes)| {
            Presence::Present(bytes.clone())
        })
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

/// State of an installation.
pub(crate) struct Session<'a> {
    pub(crate) database: &'a Database,
    pub(crate) system: &'a dyn InstalledSystem,
    pub(crate) options: &'a InstallOptions,
    pub(crate) summary: &'a Summary,
    /// Size of the package's file.
    pub(crate) package_size: u64,
    /// The applied transforms that are files, of which copies are kept.
    pub(crate) transforms: Vec<(ImagePath, Vec<u8>)>,
    pub(crate) product: Product,
    pub(crate) properties: BTreeMap<String, String>,
    /// Paths of the directories with a backslash at the end, from `CostFinalize` on.
    pub(crate) directories: BTreeMap<String, String>,
    /// Selected features.
    pub(crate) features: BTreeMap<String, bool>,
    pub(crate) components: BTreeMap<String, Component>,
    /// Things that are asked about the image and not known.
    pub(crate) unknown: Vec<String>,
    /// Properties whose search has an unknown result.
    pub(crate) unknown_searches: BTreeSet<String>,
    /// Variables and properties without a known value that were asked for.
    pub(crate) unknown_values: RefCell<BTreeSet<String>>,
    /// An action that may set properties and does not run here: the last one that requires Windows,
    /// else the first one that is skipped.
    pub(crate) missing_action: Option<String>,
    /// The first condition that fails unless that action decides it.
    pub(crate) open_condition: Option<String>,
    /// Length of the values in formatted texts so far.
    pub(crate) formatted: Cell<usize>,
    pub(crate) notes: Vec<String>,
}

/// Properties that Windows Installer takes from the machine.
const MACHINE_PROPERTIES: [&str; 13] = [
    "ColorBits",
    "MsiNTSuiteDataCenter",
    "MsiNTSuiteEnterprise",
    ASSEMBLY_SUPPORT,
    "MsiWin32AssemblySupport",
    "PhysicalMemory",
    "RemoteAdminTS",
    "ScreenX",
    "ScreenY",
    "TerminalServer",
    "USERNAME",
    "UserSID",
    "VirtualMemory",
];

/// Property with the version of `fusion.dll`.
const ASSEMBLY_SUPPORT: &str = "MsiNetAssemblySupport";

/// State of a feature or component in conditions.
const ABSENT: &str = "2";
const LOCAL: &str = "3";
const UNKNOWN: &str = "-1";

impl<'a> Session<'a> {
    /// The value of a symbol in a condition.
    fn value(&self, symbol: &str) -> String {
        let requested = |selected: Option<bool>| match selected {
            Some(true) => LOCAL,
            Some(false) => UNKNOWN,
            None => "",
        };
        let installed = |known: bool| if known { ABSENT } else { "" };
        match symbol.split_at_checked(1) {
            Some(("%", name)) => self.environment(name),
            Some(("&", name)) => requested(self.features.get(name).copied()).to_owned(),
            Some(("$", name)) => {
                requested(self.components.get(name).map(|it| it.is_installed)).to_owned()
            }
            Some(("!", name)) => installed(self.features.contains_key(name)).to_owned(),
            Some(("?", name)) => installed(self.components.contains_key(name)).to_owned(),
            _ if symbol == ASSEMBLY_SUPPORT => self.assembly_support(),
            _ => self.asked_property(symbol),
        }
    }

    /// The version of the .NET Framework in a condition: `4.7.03190` is 4.7.3190.0. Updates may raise
    /// the last numbers of the file, so a text with the property stays unknown.
    /// <https://learn.microsoft.com/windows/win32/msi/msinetassemblysupport>
    fn assembly_support(&self) -> String {
        let key = software_key(r"Microsoft\NET Framework Setup\NDP\v4\Full", true).ok();
        let found = key.and_then(|key| self.system.value(&key, "Version").present());
        let version = found.and_then(|data| {
            let version = data.text()?;
            let numbers = version.split('.').map(str::parse::<u32>);
            numbers.collect::<Result<Vec<_>, _>>().ok()
        });
        match version.as_deref() {
            Some([major, minor, build]) => format!("{major}.{minor}.{build}.0"),
            _ => self.asked_property(ASSEMBLY_SUPPORT),
        }
    }

    /// The value of a property; empty if it is not set.
    pub(crate) fn property(&self, name: &str) -> &str {
        self.properties.get(name).map_or("", String::as_str)
    }

    /// The value of a property in a text or condition of the package.
    pub(crate) fn asked_property(&self, name: &str) -> String {
        let value = self.property(name);
        if value.is_empty() && MACHINE_PROPERTIES.contains(&name) {
            let name = format!("the property {name}");
            self.unknown_values.borrow_mut().insert(name);
        }
        value.to_owned()
    }

    /// Sets a property; an empty value removes it.
    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        let value = value.into();
        if value.is_empty() {
            self.properties.remove(name);
        } else {
            self.properties.insert(name.to_owned(), value);
        }
    }

    /// The value of a variable of the environment; empty if it is not set.
    pub(crate) fn environment(&self, name: &str) -> String {
        match self.find_variable(name) {
            Presence::Present(value) => value,
            Presence::Absent => String::new(),
            Presence::Unknown => {
                let name = format!("the variable {}", name.to_ascii_uppercase());
                self.unknown_values.borrow_mut().insert(name);
                String::new()
            }
        }
    }

    fn find_variable(&self, name: &str) -> Presence<String> {
        let fixed = || fixed_variable(name).map(str::to_owned);
        let known = self.system.variable(name).or_else(fixed);
        if let Some(value) = known.or_else(|| profile_variable(name)) {
            return Presence::Present(value);
        }
        if is_unrecorded_variable(name) {
            return Presence::Unknown;
        }
        let found = self.system.value(&environment_key(), name);
        found.and_then(|data| {
            let filled = data.text().and_then(|text| filled_in(&text, &[]));
            filled.map_or(Presence::Unknown, Presence::Present)
        })
    }

    /// True if a condition asks for a property whose search has an unknown result.
    pub(crate) fn is_uncertain(&self, condition: &str) -> bool {
        condition::asks(condition, &|symbol| self.unknown_searches.contains(symbol))
    }

    /// Evaluates a condition of a table.
    pub(crate) fn is_true(&self, condition: &str, place: &str) -> Result<bool, MsiError> {
        condition::evaluate(condition, &|symbol| self.value(symbol))
            .ok_or_else(|| MsiError::damaged(format!("invalid condition {condition:?} of {place}")))
    }

    /// True if the package is installed for all users.
    pub(crate) fn is_for_machine(&self) -> bool {
        self.property("ALLUSERS") == "1"
    }

    /// Resets `ALLUSERS` from 2, which leaves the choice open, to 1 or to nothing.
    /// <https://learn.microsoft.com/windows/win32/msi/allusers>
    pub(crate) fn resolve_context(&mut self) {
        if self.property("ALLUSERS") == "2" {
            let is_for_machine = self.property("MSIINSTALLPERUSER").is_empty();
            self.set("ALLUSERS", if is_for_machine { "1" } else { "" });
        }
    }

    /// True if an action is left out on request.
    pub(crate) fn is_skipped(&self, action: &str) -> bool {
        self.options.skipped_actions.iter().any(|it| it == action)
    }

    /// A component that is installed.
    pub(crate) fn installed(&self, component: &str) -> Option<&Component> {
        self.components.get(component).filter(|it| it.is_installed)
    }

    /// True if the component of a row is installed and of 64-bit programs.
    pub(crate) fn is_64_bit(&self, row: &Row<'_>) -> bool {
        let component = self.installed(row.text("Component_"));
        component.is_some_and(Component::is_64_bit)
    }

    /// The rows of a table whose component is installed.
    pub(crate) fn installed_rows(&self, table: &str) -> Vec<Row<'a>> {
        let is_installed = |row: &Row<'_>| self.installed(row.text("Component_")).is_some();
        self.database.rows(table).filter(is_installed).collect()
    }

    /// True if a table has rows of an installed component, which their file may name.
    pub(crate) fn has_installed_rows(&self, table: &str) -> bool {
        self.database.rows(table).any(|row| {
            let component = row.optional("Component_").or_else(|| {
                let file = self.database.find("File", "File", row.text("File_"))?;
                file.optional("Component_")
            });
            component.is_none_or(|component| self.installed(component).is_some())
        })
    }

    /// True if a text is in a column of a row whose component is installed.
    pub(crate) fn is_installed(&self, table: &str, column: &str, text: &str) -> bool {
        let mut rows = self.database.rows(table);
        rows.any(|row| row.text(column) == text && self.installed(row.text("Component_")).is_some())
    }

    /// What is asked about the image; an unknown answer is reported, and counts as absent.
    pub(crate) fn known<T>(
        &mut self,
        answer: Presence<T>,
        question: impl FnOnce() -> String,
    ) -> Option<T> {
        if let Presence::Unknown = answer {
            self.unknown.push(question());
        }
        answer.present()
    }

    /// The path of a directory.
    pub(crate) fn directory(&self, key: &str) -> Result<&str, MsiError> {
        self.directories
            .get(key)
            .map(String::as_str)
            .ok_or_else(|| MsiError::damaged(format!("directory {key:?} does not exist")))
    }

    /// The path of a directory in the image.
    pub(crate) fn folder(&self, key: &str) -> Result<ImagePath, MsiError> {
        image_path(self.directory(key)?)
    }

    /// The folder of a directory, or of a property with a path.
    pub(crate) fn folder_or_property(&self, key: &str) -> Result<Option<ImagePath>, MsiError> {
        if self.directories.contains_key(key) {
            return self.folder(key).map(Some);
        }
        match self.property(key) {
            "" => Ok(None),
            path => image_path(path).map(Some),
        }
    }

    /// The directory and the name of a file of the `File` table.
    fn place_of_file(&self, key: &str) -> Option<(&str, &str)> {
        let row = self.database.find("File", "File", key)?;
        let component = self.components.get(row.text("Component_"));
        let component = component.filter(|it| !it.is_disabled)?;
        Some((
            component.directory.as_str(),
            long_name(row.text("FileName")),
        ))
    }

    /// The path of a file of the `File` table.
    pub(crate) fn file(&self, key: &str) -> Result<Option<ImagePath>, MsiError> {
        let Some((directory, name)) = self.place_of_file(key) else {
            return Ok(None);
        };
        join(&self.folder(directory)?, name).map(Some)
    }

    /// The path of a file in texts, where its folders keep a dot at the end of their names; empty if
    /// there is no such file.
    pub(crate) fn file_text(&self, key: &str) -> Result<String, MsiError> {
        let Some((directory, name)) = self.place_of_file(key) else {
            return Ok(String::new());
        };
        Ok(format!("{}{name}", self.directory(directory)?))
    }
}

/// Parses a path inside the image. Windows takes several separators as one, except at the start.
/// <https://learn.microsoft.com/dotnet/standard/io/file-path-formats>
pub(crate) fn image_path(text: &str) -> Result<ImagePath, MsiError> {
    let mut path = String::with_capacity(text.len());
    for character in text.chars() {
        if character != '\\' || path.len() < 2 || !path.ends_with('\\') {
            path.push(character);
        }
    }
    let names: Vec<&str> = path.split('\\').map(without_dot).collect();
    let path = names.join(r"\").parse::<ImagePath>();
    path.map_err(MsiError::unsupported)
}

/// Appends a name.
pub(crate) fn join(folder: &ImagePath, name: &str) -> Result<ImagePath, MsiError> {
    let joined = folder.join(without_dot(name));
    joined.map_err(MsiError::unsupported)
}

/// A name as Windows gives it to a file or folder: without a single dot at the end (`Acme Inc.`).
/// <https://learn.microsoft.com/dotnet/standard/io/file-path-formats#trim-characters>
pub(crate) fn without_dot(name: &str) -> &str {
    match name.strip_suffix('.') {
        Some(rest) if !rest.is_empty() && !rest.ends_with('.') => rest,
        _ => name,
    }
}

/// The long name of `SHORT|long`.
pub(crate) fn long_name(name: &str) -> &str {
    name.split_once('|').map_or(name, |(_, long)| long)
}
