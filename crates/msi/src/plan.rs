//! What an installation leaves behind, as plain values.

use std::fmt;

use serde::Serialize;
use wincimg_registry::RegistryEdit;
use wincimg_windows::access::AccessChange;
use wincimg_windows::path::ImagePath;

use super::error::MsiError;
use super::session::image_path;

/// Everything that the installation of a package leaves behind. The same package, options and
/// system give the same plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct InstallPlan {
    /// The installed product.
    pub product: Product,
    /// Selected features.
    pub features: Vec<String>,
    /// Folders that it creates, parents first.
    pub folders: Vec<ImagePath>,
    /// Files, by path.
    pub files: Vec<InstalledFile>,
    /// Files and folders that it removes.
    pub removed: Vec<ImagePath>,
    /// Registry edits, in order: settings, environment, services, and the installer's own records.
    pub registry: Vec<RegistryEdit>,
    /// Services that it installs.
    pub services: Vec<String>,
    /// Shortcuts, also among the files.
    pub shortcuts: Vec<Shortcut>,
    /// Rights on its files and folders, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub access: Vec<AccessChange>,
    /// Actions that only Windows can run; the plan is incomplete without them.
    pub refused: Vec<RefusedAction>,
    /// True if it ends with exit code 3010: a restart is required.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub restart_required: bool,
    /// Actions to leave out that the package does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub missing_actions: Vec<String>,
    /// How an installation without `/qn` differs, if it does.
    #[serde(skip)]
    pub interactive: Option<Interaction>,
    /// Questions about the image whose answers are unknown; assumed absent.
    pub unknown: Vec<String>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// The first condition that fails unless a refused action decides it, also a note.
    #[serde(skip)]
    pub open_condition: Option<String>,
}

impl InstallPlan {
    /// What requires Windows: the first of the refused actions, the names of the others, and the
    /// condition that fails without them.
    pub fn refusal(&self) -> Option<String> {
        let (first, others) = self.refused.split_first()?;
        let others: Vec<&str> = others.iter().map(|it| it.name.as_str()).collect();
        let and_others = match others.as_slice() {
            [] => String::new(),
            others => format!(" (also: {})", others.join(", ")),
        };
        let and_condition = self.open_condition.as_ref();
        let and_condition = and_condition.map_or_else(String::new, |open| format!("; {open}"));
        Some(format!(
            "the action {first} requires Windows{and_others}{and_condition}"
        ))
    }
}

/// How an installation without `/qn` differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Interaction {
    /// It opens a window and waits for it.
    Waits,
    /// It runs other actions, as the message says.
    Differs(String),
}

/// The product of a package.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Product {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// Manufacturer.
    pub manufacturer: String,
    /// Code of the product, `{GUID}`.
    pub code: String,
    /// Code of all versions of the product.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub upgrade_code: String,
    /// Platform: `x64`, `Arm64`, `Intel`.
    pub platform: String,
}

impl Product {
    /// The product by its properties.
    pub(crate) fn from_properties(property: impl Fn(&str) -> String, platform: &str) -> Self {
        Self {
            name: property("ProductName"),
            version: property("ProductVersion"),
            manufacturer: property("Manufacturer"),
            code: property("ProductCode"),
            upgrade_code: property("UpgradeCode"),
            platform: platform.to_owned(),
        }
    }
}

/// An installed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InstalledFile {
    /// Path.
    pub path: ImagePath,
    /// Size in bytes, as the package declares it.
    pub size: u64,
    /// Version of the file, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Source.
    pub source: InstalledContent,
    /// True if the image has a file there: versions and times decide which one stays.
    #[serde(skip)]
    pub is_replacement: bool,
}

/// Source of an installed file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InstalledContent {
    /// A member of a cabinet.
    Cabinet {
        /// Cabinet: `#NAME` is inside the package, others are beside it.
        cabinet: String,
        /// Name of the member.
        member: String,
    },
    /// A file beside the package, as a path with slashes.
    Beside(String),
    /// A stream of the package.
    Stream(String),
    /// Bytes.
    #[serde(serialize_with = "as_size")]
    Bytes(Vec<u8>),
    /// The package itself.
    Package,
}

impl InstalledContent {
    /// True if it is in a file beside the package.
    pub fn is_beside(&self) -> bool {
        match self {
            Self::Cabinet { cabinet, .. } => !cabinet.starts_with('#'),
            Self::Beside(_) => true,
            Self::Stream(_) | Self::Bytes(_) | Self::Package => false,
        }
    }
}

impl fmt::Display for InstalledContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cabinet { cabinet, member } => write!(f, "{cabinet}/{member}"),
            Self::Beside(path) => f.write_str(path),
            Self::Stream(name) => f.write_str(name),
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Package => f.write_str("the package"),
        }
    }
}

/// Serializes the size only: the bytes are of no use to a reader.
fn as_size<S: serde::Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    format_args!("{} bytes", bytes.len()).serialize(serializer)
}

/// A shortcut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shortcut {
    /// Path of the `.lnk` or `.url` file.
    pub path: ImagePath,
    /// Target.
    pub target: String,
    /// Arguments.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub arguments: String,
}

/// An action that only Windows can run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RefusedAction {
    /// Name.
    pub name: String,
    /// Type, as in the `CustomAction` table; 0 for a standard action.
    pub kind: u32,
    /// Condition in the sequence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// What it runs; for a standard action, what it works with.
    pub runs: String,
}

impl fmt::Display for RefusedAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            0 => write!(f, "{} ({})", self.name, self.runs)?,
            kind => write!(f, "{} (type {kind}) runs {}", self.name, self.runs)?,
        }
        match self.condition.as_str() {
            "" => Ok(()),
            condition => write!(f, ", if {condition}"),
        }
    }
}

/// What the caller decides about an installation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct InstallOptions {
    /// Properties of the command line.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub properties: Vec<(String, String)>,
    /// Name of the package's file.
    pub file_name: String,
    /// Folder of the package in the image, with a backslash at the end.
    pub source_folder: String,
    /// Custom actions that are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped_actions: Vec<String>,
}

/// Property with the transforms of a package.
const TRANSFORMS: &str = "TRANSFORMS";
/// Property of another instance of a product.
pub(crate) const NEW_INSTANCE: &str = "MSINEWINSTANCE";

/// Place of a transform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransformPlace {
    /// A storage of the package with this name.
    Package(String),
    /// A file of the image.
    File(ImagePath),
}

impl fmt::Display for TransformPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Package(name) => write!(f, ":{name}"),
            Self::File(path) => path.fmt(f),
        }
    }
}

impl InstallOptions {
    /// A property of the command line; empty if it is not set.
    pub(crate) fn property(&self, name: &str) -> &str {
        let mut properties = self.properties.iter().rev();
        let own = properties.find(|(own, _)| own == name);
        own.map_or("", |(_, value)| value)
    }

    /// The transforms of the package, in order. A name without a folder is beside the package.
    pub fn transforms(&self) -> Result<Vec<TransformPlace>, MsiError> {
        let names = self.property(TRANSFORMS).split(';').map(str::trim);
        names
            .filter(|it| !it.is_empty())
            .map(|name| {
                if let Some(name) = name.strip_prefix(':') {
                    return Ok(TransformPlace::Package(name.to_owned()));
                }
                if name.starts_with(['@', '|']) || name.contains("://") {
                    let why = format!("the transform {name:?} is not a file or in the package");
                    return Err(MsiError::unsupported(why));
                }
                let is_whole = name.starts_with(['\\', '/']) || name.get(1..2) == Some(":");
                let folder = if is_whole { "" } else { &self.source_folder };
                image_path(&format!("{folder}{name}")).map(TransformPlace::File)
            })
            .collect()
    }
}
