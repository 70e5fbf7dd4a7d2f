//! The properties of a .NET project that its image depends on.

use std::path::Path;

use wincimg_common::diagnose::Problem;
use wincimg_common::xml::{XmlElement, XmlError};
use wincimg_windows::release::{self, Release, ReleaseKind};

use crate::Result;

/// The first .NET with images on Windows Server 2022; older ones ended before.
const FIRST_ON_STABLE_ABI: u16 = 5;

/// The project type of web applications before the SDK.
const WEB_APPLICATION: &str = "349c5851-65df-11da-9384-00065b846f21";

/// A .NET project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Project {
    /// The name of its file.
    pub file: String,
    /// The name of its program, without extension.
    pub assembly: String,
    /// Version of its framework: `8.0`, or `4.8` of .NET Framework.
    pub version: String,
    /// True if it answers HTTP; one for .NET Framework does so in IIS.
    pub is_web: bool,
    /// Output type.
    pub kind: ProjectKind,
}

/// Output type of a project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProjectKind {
    /// A program for .NET.
    Core {
        /// True if it requires more of Windows than Nano Server has, such as windows on the
        /// desktop.
        needs_desktop: bool,
        /// True if it is self-contained.
        is_self_contained: bool,
    },
    /// A program for .NET Framework, which is part of Windows.
    Framework {
        /// True if `dotnet` builds it.
        is_sdk: bool,
    },
}

/// Error for a project that has no recipe.
fn refused(problem: String, hint: &str) -> Problem {
    Problem::request("project/invalid", problem).hint(hint)
}

/// Hint for a file that is not a project.
const NO_PROJECT: &str = "name a .csproj, .fsproj or .vbproj, or its folder";

impl Project {
    /// The base in a recipe.
    pub fn base(&self) -> String {
        let version = self.version.as_str();
        let repository = if self.is_web { "aspnet" } else { "runtime" };
        match self.kind {
            ProjectKind::Core {
                is_self_contained: true,
                needs_desktop: true,
            } => "servercore".to_owned(),
            ProjectKind::Core {
                is_self_contained: true,
                needs_desktop: false,
            } => "nanoserver".to_owned(),
            ProjectKind::Core {
                needs_desktop: true,
                ..
            } => format!("dotnet/{repository}:{version}-windowsservercore"),
            ProjectKind::Core { .. } => format!("dotnet/{repository}:{version}-nanoserver"),
            ProjectKind::Framework { .. } if self.is_web && version.starts_with('4') => {
                "aspnet".to_owned()
            }
            ProjectKind::Framework { .. } => {
                // Version 4.8 runs programs for earlier versions of 4.
                let version = if version.starts_with("4.8.1") {
                    "4.8.1"
                } else if version.starts_with('4') {
                    "4.8"
                } else {
                    "3.5"
                };
                format!("dotnet/framework/{repository}:{version}")
            }
        }
    }

    /// The release whose images start on most hosts: the first one whose images newer hosts start
    /// too, or the one before it for .NET that ended earlier.
    pub(super) fn host(&self) -> &'static str {
        let stable = release::first_stable_abi();
        let is_earlier = |release: &&Release| {
            let before = stable.is_some_and(|stable| release.build < stable.build);
            release.kind == ReleaseKind::Ltsc && before
        };
        let release = match self.kind {
            ProjectKind::Core {
                is_self_contained: false,
                ..
            } if number(&self.version) < vec![FIRST_ON_STABLE_ABI] => {
                release::all().iter().rfind(is_earlier)
            }
            ProjectKind::Core { .. } | ProjectKind::Framework { .. } => stable,
        };
        release.and_then(|it| it.base_tag).unwrap_or("latest")
    }

    /// Returns true if IIS runs it.
    pub(super) fn is_framework_site(&self) -> bool {
        self.is_web && matches!(self.kind, ProjectKind::Framework { .. })
    }

    /// The framework and its version, for people.
    pub(super) fn words(&self) -> String {
        let what = match (&self.kind, self.is_web) {
            (ProjectKind::Core { .. }, true) => "ASP.NET Core",
            (ProjectKind::Core { .. }, false) => ".NET",
            (ProjectKind::Framework { .. }, true) => "ASP.NET on .NET Framework",
            (ProjectKind::Framework { .. }, false) => ".NET Framework",
        };
        format!("{what} {}", self.version)
    }
}

/// The properties that are read from project files.
#[derive(Debug, Default)]
struct ProjectProperties {
    sdk: Option<String>,
    framework: Option<String>,
    old_framework: Option<String>,
    output: Option<String>,
    assembly: Option<String>,
    types: Option<String>,
    is_web_by_import: bool,
    uses_desktop: bool,
    is_self_contained: bool,
}

impl Project {
    /// Reads a project; `shared` is the text of the `Directory.Build.props` above it.
    pub fn parse(file: &str, text: &str, shared: Option<&str>) -> Result<Self> {
        let mut printed = ProjectProperties::default();
        if let Some(shared) = shared {
            // An invalid shared file is not an error of this project.
            let _ = printed.read(shared);
        }
        let is_project = printed.read(text).map_err(|problem| {
            let problem = format!("{file}: the XML is malformed: {problem}");
            refused(problem, NO_PROJECT)
        })?;
        if !is_project {
            let problem = format!("{file} is not a project file: expected <Project> at its top");
            return Err(refused(problem, NO_PROJECT));
        }
        printed.project(file)
    }
}

impl ProjectProperties {
    /// Reads a file; returns true if it is a project file.
    fn read(&mut self, text: &str) -> Result<bool, XmlError> {
        let root = XmlElement::read(text)?;
        let imports = root.descendants("Import");
        let is_of_web = |import: &&XmlElement| {
            let project = import.attribute("Project");
            project.contains("Microsoft.WebApplication.targets")
        };
        self.is_web_by_import |= imports.iter().any(is_of_web);
        let named = root.children_named("Sdk").map(|sdk| sdk.attribute("Name"));
        let imported = imports.iter().map(|import| import.attribute("Sdk"));
        let sdks = [root.attribute("Sdk")].into_iter().chain(named);
        if let Some(sdk) = sdks.chain(imported).filter(|sdk| !sdk.is_empty()).last() {
            self.sdk = Some(sdk.to_owned());
        }
        for group in root.descendants("PropertyGroup") {
            for property in &group.children {
                self.take(&property.name, &property.text);
            }
        }
        Ok(root.name == "Project")
    }

    fn take(&mut self, name: &str, value: &str) {
        let is_true = value.eq_ignore_ascii_case("true");
        let text = || Some(value.to_owned()).filter(|text| !text.is_empty());
        match name {
            "TargetFramework" | "TargetFrameworks" => self.framework = text(),
            "TargetFrameworkVersion" => self.old_framework = text(),
            "OutputType" => self.output = text(),
            "AssemblyName" => self.assembly = text(),
            "ProjectTypeGuids" => self.types = text(),
            "UseWPF" | "UseWindowsForms" => self.uses_desktop |= is_true,
            "SelfContained" | "PublishSelfContained" | "PublishAot" => {
                self.is_self_contained |= is_true;
            }
            _ => {}
        }
    }

    /// The newest framework; .NET comes before .NET Framework.
    fn target_framework(&self) -> Option<TargetFramework> {
        let frameworks = self.framework.as_deref().unwrap_or_default().split(';');
        let read = frameworks
            .filter_map(|text| framework(text.trim()))
            .max_by(|one, other| {
                let rank = |found: &TargetFramework| (found.is_core, number(&found.version));
                rank(one).cmp(&rank(other))
            });
        read.or_else(|| {
            let version = self.old_framework.as_deref()?.strip_prefix('v')?;
            Some(TargetFramework {
                version: version.to_owned(),
                is_core: false,
                is_windows: true,
            })
        })
    }

    fn project(self, file: &str) -> Result<Project> {
        let found = self.target_framework();
        let sdk = self.sdk.unwrap_or_default();
        let is_web_sdk = sdk.split('/').next() == Some("Microsoft.NET.Sdk.Web");
        let is_worker = sdk.split('/').next() == Some("Microsoft.NET.Sdk.Worker");
        let types = self.types.unwrap_or_default().to_ascii_lowercase();
        let is_web = is_web_sdk || types.contains(WEB_APPLICATION) || self.is_web_by_import;
        let Some(found) = found else {
            let text = self.framework.or(self.old_framework);
            let text = text.map(|text| format!(": {text}")).unwrap_or_default();
            let problem = format!("{file} has no known target framework{text}");
            let hint = "add <TargetFramework>net8.0</TargetFramework> to it";
            return Err(refused(problem, hint));
        };
        let output = self.output.unwrap_or_default().to_ascii_lowercase();
        let is_program = is_web || is_worker || matches!(output.as_str(), "exe" | "winexe");
        if !is_program {
            let problem = format!("{file} builds a library; a container requires a program");
            let hint = "name the project with <OutputType>Exe</OutputType> that uses it";
            return Err(refused(problem, hint));
        }
        Ok(Project {
            file: file.to_owned(),
            assembly: assembly_name(self.assembly, file),
            version: found.version,
            is_web,
            kind: if found.is_core {
                ProjectKind::Core {
                    needs_desktop: found.is_windows || self.uses_desktop,
                    is_self_contained: self.is_self_contained,
                }
            } else {
                ProjectKind::Framework {
                    is_sdk: !sdk.is_empty(),
                }
            },
        })
    }
}

/// The name of the assembly of a project file, by default that of the file.
fn assembly_name(given: Option<String>, file: &str) -> String {
    let stem = Path::new(file).file_stem();
    let stem = stem
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default();
    let assembly = given.unwrap_or_else(|| stem.clone());
    let assembly = assembly.replace("$(MSBuildProjectName)", &stem);
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ' | '+');
    // MSBuild's default replaces a value that only MSBuild can evaluate.
    if assembly.chars().all(is_name) {
        assembly
    } else {
        stem
    }
}

/// A framework by its short name.
struct TargetFramework {
    version: String,
    is_core: bool,
    is_windows: bool,
}

/// `net8.0`, `net8.0-windows`, `netcoreapp3.1`, `net48`.
fn framework(text: &str) -> Option<TargetFramework> {
    let (plain, platform) = text.split_once('-').unwrap_or((text, ""));
    let is_number =
        |text: &&str| !text.is_empty() && text.split('.').all(|part| part.parse::<u16>().is_ok());
    let own = plain.strip_prefix("net").filter(|text| text.contains('.'));
    if let Some(version) = plain.strip_prefix("netcoreapp").or(own).filter(is_number) {
        return Some(TargetFramework {
            version: version.to_owned(),
            is_core: true,
            is_windows: platform.starts_with("windows"),
        });
    }
    let version = plain.strip_prefix("net").filter(is_number)?;
    let digits: Vec<String> = version.chars().map(String::from).collect();
    Some(TargetFramework {
        version: digits.join("."),
        is_core: false,
        is_windows: true,
    })
}

fn number(version: &str) -> Vec<u16> {
    version
        .split('.')
        .map(|part| part.parse().unwrap_or(0))
        .collect()
}
#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn project(sdk: &str, properties: &str) -> Result<Project, Problem> {
        let text = format!(
            "\u{FEFF}<?xml version=\"1.0\"?>\n<Project Sdk=\"{sdk}\">\n<!-- x -->\n<PropertyGroup>{properties}\
             </PropertyGroup><ItemGroup><PackageReference Include=\"A\"/></ItemGroup></Project>"
        );
        Project::parse("Shop.Web.csproj", &text, None)
    }

    #[test]
    fn what_a_project_makes_decides_on_the_base() {
        let core = "Microsoft.NET.Sdk";
        for (sdk, properties, base) in [
            (
                "Microsoft.NET.Sdk.Web",
                "<TargetFramework>net8.0</TargetFramework>",
                "dotnet/aspnet:8.0-nanoserver",
            ),
            (
                core,
                "<TargetFrameworks>net48;net6.0;net10.0</TargetFrameworks><OutputType>Exe</OutputType>",
                "dotnet/runtime:10.0-nanoserver",
            ),
            (
                core,
                "<TargetFramework>net8.0-windows</TargetFramework><OutputType>WinExe</OutputType>",
                "dotnet/runtime:8.0-windowsservercore",
            ),
            (
                core,
                "<TargetFramework>net9.0</TargetFramework><OutputType>Exe</OutputType><PublishAot>true</PublishAot>",
                "nanoserver",
            ),
            (
                core,
                "<TargetFramework>net472</TargetFramework><OutputType>Exe</OutputType>",
                "dotnet/framework/runtime:4.8",
            ),
        ] {
            let project = project(sdk, properties).unwrap();
            assert_eq!(project.base(), base, "{properties}");
            assert_eq!(project.assembly, "Shop.Web");
        }
        let old = "<Project ToolsVersion=\"15.0\" xmlns=\"http://schemas.microsoft.com/developer/msbuild/2003\">\
            <PropertyGroup><OutputType>Library</OutputType><AssemblyName>Store</AssemblyName>\
            <TargetFrameworkVersion>v4.8</TargetFrameworkVersion>\
            <ProjectTypeGuids>{349C5851-65DF-11DA-9384-00065B846F21};{fae04ec0}</ProjectTypeGuids>\
            </PropertyGroup></Project>";
        let site = Project::parse("Store.csproj", old, None).unwrap();
        assert_eq!(site.base(), "aspnet");
        assert_eq!(site.assembly, "Store");
    }

    #[test]
    fn the_host_is_one_that_has_the_projects_base() {
        for (framework, expected) in [
            ("netcoreapp3.1", "ltsc2019"),
            ("net5.0", "ltsc2022"),
            ("net8.0", "ltsc2022"),
            ("net10.0", "ltsc2022"),
            ("net48", "ltsc2022"),
            ("net481", "ltsc2022"),
            ("net35", "ltsc2022"),
        ] {
            let properties = format!("<TargetFramework>{framework}</TargetFramework>");
            let project = project("Microsoft.NET.Sdk.Web", &properties).unwrap();
            assert_eq!(project.host(), expected, "{framework}");
        }
        let alone = "<TargetFramework>netcoreapp3.1</TargetFramework><OutputType>Exe</OutputType>\
                     <SelfContained>true</SelfContained>";
        let alone = project("Microsoft.NET.Sdk", alone).unwrap();
        assert_eq!(alone.host(), "ltsc2022");
    }

    #[test]
    fn what_is_no_program_is_reported() {
        for (result, expected) in [
            (
                project(
                    "Microsoft.NET.Sdk",
                    "<TargetFramework>net8.0</TargetFramework>",
                ),
                "library",
            ),
            (
                project("Microsoft.NET.Sdk.Web", ""),
                "has no known target framework",
            ),
            (
                project(
                    "Microsoft.NET.Sdk.Web",
                    "<TargetFramework>$(Own)</TargetFramework>",
                ),
                "has no known target framework: $(Own)",
            ),
            (
                Project::parse("a.csproj", "<html/>", None),
                "not a project file",
            ),
            (
                Project::parse("a.csproj", "<Project><A>", None),
                "malformed",
            ),
        ] {
            let printed = result.unwrap_err().to_string();
            assert!(printed.contains(expected), "{printed}");
        }
        let shared = "<Project><PropertyGroup><TargetFramework>net8.0</TargetFramework></PropertyGroup></Project>";
        let text = "<Project Sdk=\"Microsoft.NET.Sdk.Worker\"/>";
        let worker = Project::parse("W.csproj", text, Some(shared)).unwrap();
        assert_eq!(worker.base(), "dotnet/runtime:8.0-nanoserver");
    }

    proptest! {
        #[test]
        fn any_text_is_a_project_or_an_error(text in "[<>/a-zA-Z=\"' &;!\\[\\]-]{0,80}|<Project>.{0,40}</Project>") {
            let _ = Project::parse("a.csproj", &text, Some(&text));
        }
    }
}
