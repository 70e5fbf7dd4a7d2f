//! Packages detected in files.
//!
//! All input is untrusted: truncated, oversized or inconsistent parts are skipped, and the rest of
//! the file is used.

mod bytes;
mod clr;
mod golang;
mod java;
mod msi;
mod npm;
mod nuget;
mod pe;
pub(super) mod products;
mod python;
#[cfg(test)]
pub(in crate::provenance) mod tests;
mod version_info;

use serde_json::Value;

use self::pe::Pe;
use self::products::ProductKey;
use self::version_info::VersionInfo;
use super::purl;
use crate::entries::{has_extension, last_name};

/// Limit on names and versions.
const LONGEST: usize = 512;
/// Limit on the packages of one file.
const MOST: usize = 20_000;
/// Limit on the size of a file that is read for its other names.
const MOST_STORED: u64 = 64 << 20;

/// Registry in which a package has its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ecosystem {
    Go,
    Maven,
    Npm,
    NuGet,
    PyPi,
    /// None: a program or library that names itself.
    Program,
}

/// A package found in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundPackage {
    /// Registry of its name.
    pub(crate) ecosystem: Ecosystem,
    /// Its name.
    pub name: String,
    /// Its version, if it has one.
    pub version: Option<String>,
    /// Its supplier, according to the file.
    pub supplier: Option<String>,
    /// Its licence, according to the file.
    pub licence: Option<String>,
    /// Its name in the CPE dictionary, if known.
    pub cpe: Option<String>,
    /// Its code for Windows Installer, `{GUID}`.
    pub(crate) product_code: Option<String>,
}

impl FoundPackage {
    fn new(ecosystem: Ecosystem, name: &str, version: Option<&str>) -> Self {
        Self {
            ecosystem,
            name: name.to_owned(),
            version: version.map(str::to_owned),
            supplier: None,
            licence: None,
            cpe: None,
            product_code: None,
        }
    }

    /// The kind of package, as package URLs name it.
    pub fn kind(&self) -> &'static str {
        purl::kind_of(self.ecosystem)
    }

    /// The package without the fields that are not plausible; none if its name is not.
    fn plausible(mut self) -> Option<Self> {
        let is_plausible = |text: &String| {
            !text.is_empty() && text.len() <= LONGEST && !text.chars().any(char::is_control)
        };
        for field in [
            &mut self.version, &mut self.supplier, &mut self.licence, &mut self.product_code,
        ] {
            *field = field.take().filter(is_plausible);
        }
        is_plausible(&self.name).then_some(self)
    }
}

/// Kind of a file with packages, determined by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PackageFileKind {
    /// An executable or library of Windows.
    Executable,
    /// A package that Windows Installer keeps.
    Msi,
    Npm,
    /// List of packages of a .NET program.
    NuGet,
    Python,
    Java,
    /// `HKLM\SOFTWARE`, with the installed programs.
    Software,
}

impl PackageFileKind {
    /// Kind of the file at a path; none if its content is not needed.
    pub(super) fn from_path(path: &str) -> Option<Self> {
        let names: Vec<&str> = path.split('/').collect();
        let name = names.last()?;
        if has_extension(name, &["exe", "dll", "sys", "ocx", "node", "pyd"]) {
            Some(Self::Executable)
        } else if msi::is_installed(&names) {
            Some(Self::Msi)
        } else if npm::is_description(&names) {
            Some(Self::Npm)
        } else if nuget::is_list(name) {
            Some(Self::NuGet)
        } else if python::is_description(&names) {
            Some(Self::Python)
        } else if java::is_archive(name) {
            Some(Self::Java)
        } else if products::is_hive(path) {
            Some(Self::Software)
        } else {
            None
        }
    }

    /// Limit on the size of a file of this kind.
    pub(super) fn most(self) -> u64 {
        match self {
            Self::Executable | Self::Java | Self::Msi | Self::Software => 256 << 20,
            Self::Npm | Self::Python => 4 << 20,
            Self::NuGet => 64 << 20,
        }
    }

    /// Limit on the size of a file whose path says no kind. Package managers link packages to files
    /// of a store, which are named by a digest or are in other folders.
    pub(super) fn most_stored(path: &str) -> u64 {
        let name = last_name(path);
        let may_be_stored = !name.contains('.') || name.eq_ignore_ascii_case("package.json");
        if may_be_stored { MOST_STORED } else { 0 }
    }

    /// Kind of such a file by its content.
    pub(super) fn from_stored(bytes: &[u8]) -> Option<Self> {
        if bytes.starts_with(b"MZ") {
            Some(Self::Executable)
        } else if bytes.starts_with(b"{") {
            Some(Self::Npm)
        } else if bytes.starts_with(b"Metadata-Version:") {
            Some(Self::Python)
        } else {
            None
        }
    }

    pub(super) fn read(self, path: &str, bytes: &[u8]) -> FilePackages {
        let mut found = match self {
            Self::Executable => of_executable(path, bytes),
            Self::Msi => FilePackages::of(msi::package(bytes)),
            Self::Npm => FilePackages::of(npm::package(bytes)),
            Self::Python => FilePackages::of(python::package(bytes)),
            Self::Java => java::packages(path, bytes),
            Self::Software => FilePackages {
                products: products::products(bytes),
                ..FilePackages::default()
            },
            Self::NuGet => nuget::dependencies(path, bytes)
                .unwrap_or_else(|| FilePackages::of(nuget::configured(bytes))),
        };
        let packages = found.packages.into_iter();
        let packages = packages.filter_map(FoundPackage::plausible);
        found.packages = packages.collect();
        found.is_partial |= found.packages.len() > MOST;
        found.packages.truncate(MOST);
        found
    }
}

/// Packages of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilePackages {
    /// The packages.
    pub packages: Vec<FoundPackage>,
    /// Paths, from its folder, of files that these packages contain, which are not reported by
    /// themselves.
    pub explained: Vec<String>,
    /// Paths of files of the program itself.
    pub own: Vec<String>,
    /// What a hive says about installed programs.
    pub(crate) products: Vec<ProductKey>,
    /// True if a limit left out packages.
    pub(crate) is_partial: bool,
}

impl FilePackages {
    fn of(packages: impl IntoIterator<Item = FoundPackage>) -> Self {
        Self {
            packages: packages.into_iter().collect(),
            ..Self::default()
        }
    }
}

/// Parses JSON. npm and .NET ignore a byte order mark, too.
fn json(bytes: &[u8]) -> Option<Value> {
    let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
    serde_json::from_slice(bytes).ok()
}

/// A field of those in the form of mail headers, which end at an empty line.
fn header<'a>(text: &'a str, wanted: &str) -> Option<&'a str> {
    let head = text.lines().take_while(|line| !line.trim().is_empty());
    let mut fields = head.filter_map(|line| line.split_once(": "));
    let found = fields.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
    found.map(|(_, value)| value.trim())
}

/// The version of a program or library of Windows, according to the file; none for another file.
pub(crate) fn windows_file_version(bytes: &[u8]) -> Option<String> {
    const PRODUCT: &str = "Microsoft® Windows® Operating System";
    let info = VersionInfo::from_pe(&Pe::parse(bytes)?)?;
    (info.string("ProductName") == Some(PRODUCT))
        .then(|| info.file_version())
        .flatten()
}

fn of_executable(path: &str, bytes: &[u8]) -> FilePackages {
    let Some(pe) = Pe::parse(bytes) else {
        return FilePackages::default();
    };
    if let Some(modules) = golang::modules(&pe) {
        return FilePackages::of(modules);
    }
    let info = VersionInfo::from_pe(&pe);
    let is_library = has_extension(path, &["dll"]);
    match clr::assembly(&pe) {
        Some(assembly) => FilePackages::of([of_assembly(&assembly, info.as_ref(), is_library)]),
        None if pe.directory(pe::CLR).is_some() => FilePackages::default(),
        None => {
            let list = nuget::bundled_list(&pe, bytes);
            let found = list.and_then(|list| nuget::dependencies(path, list));
            let mut found = found.unwrap_or_default();
            found
                .packages
                .extend(info.and_then(|info| of_program(&info)));
            found
        }
    }
}

/// A library that .NET loads most likely comes from a package with the same name, whose version is
/// the product's. The assembly's version often stays the same over many of these.
fn of_assembly(
    assembly: &clr::Assembly,
    info: Option<&VersionInfo>,
    is_library: bool,
) -> FoundPackage {
    let ecosystem = if is_library {
        Ecosystem::NuGet
    } else {
        Ecosystem::Program
    };
    let product = info.and_then(VersionInfo::product_version);
    let version = product.filter(|version| !version.trim_matches(['0', '.']).is_empty());
    let version = version.as_deref().unwrap_or(&assembly.version);
    FoundPackage {
        supplier: info.and_then(supplier),
        ..FoundPackage::new(ecosystem, &assembly.name, Some(version))
    }
}

fn of_program(info: &VersionInfo) -> Option<FoundPackage> {
    let name = ["ProductName", "InternalName", "FileDescription"]
        .into_iter()
        .find_map(|key| info.string(key))?;
    Some(FoundPackage {
        supplier: supplier(info),
        ..FoundPackage::new(Ecosystem::Program, name, info.product_version().as_deref())
    })
}

fn supplier(info: &VersionInfo) -> Option<String> {
    info.string("CompanyName").map(str::to_owned)
}
