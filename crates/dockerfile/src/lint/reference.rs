//! Image references, and what they tell: Windows version, shell and platform.

use std::ops::RangeInclusive;
use std::sync::LazyLock;

use wincimg_windows::release;
use wincimg_windows::update::{Update, Updates};
use wincimg_windows::version::WindowsVersion;

use super::TextExt;
use super::shell::BaseShell;

/// Parts of an image reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Reference {
    /// Registry and path, in lower case.
    pub(super) repository: String,
    pub(super) tag: Option<String>,
    pub(super) digest: Option<String>,
}

/// Operating system of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Platform {
    Windows,
    Linux,
    Unknown,
}

/// Row of the table of published images.
struct PublishedImage {
    repository: &'static str,
    tag: Option<&'static str>,
    /// Builds that the row applies to, if not to any.
    builds: Option<RangeInclusive<u32>>,
    shell: BaseShell,
}

static PUBLISHED: LazyLock<Vec<PublishedImage>> = LazyLock::new(|| {
    include_str!("data/bases.tsv")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .filter_map(PublishedImage::parse)
        .collect()
});

impl PublishedImage {
    fn parse(line: &'static str) -> Option<Self> {
        let mut fields = line.split('\t');
        let repository = fields.next()?;
        let tag = fields.next().filter(|tag| *tag != "-");
        let builds = fields.next()?.split_once("..");
        let shell = match fields.next()? {
            "cmd" => BaseShell::Cmd,
            "powershell" => BaseShell::PowerShell,
            _ => return None,
        };
        fields
            .next()
            .filter(|source| source.starts_with("https://"))?;
        Some(Self {
            repository,
            tag,
            builds: builds
                .map(|(first, last)| first.parse().unwrap_or(0)..=last.parse().unwrap_or(u32::MAX)),
            shell,
        })
    }

    /// True for official images on Nano Server, whose tags without a release can be of 2016: that
    /// had PowerShell.
    fn is_older_elsewhere(&self) -> bool {
        self.repository.starts_with('=') && self.tag == Some("nanoserver")
    }

    fn is_of(&self, reference: &Reference) -> bool {
        match self.repository.strip_prefix('=') {
            Some(name) => reference.name_on_hub() == name,
            None => is_or_ends_with(&reference.repository, self.repository),
        }
    }
}

fn is_or_ends_with(repository: &str, name: &str) -> bool {
    repository
        .strip_suffix(name)
        .is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// Repositories of the full Windows image, before and since Server 2022.
const WINDOWS: &str = "mcr.microsoft.com/windows";
pub(super) const WINDOWS_SERVER: &str = "mcr.microsoft.com/windows/server";
/// Build of Windows Server 2016.
pub(super) const SERVER_2016: u32 = 14393;
/// Build of Windows Server 2019.
pub(super) const SERVER_2019: u32 = 17763;
/// Build of Windows Server 2022.
pub(super) const SERVER_2022: u32 = 20348;

/// Parts of a name or tag of Windows images. "windows" alone is also in the names of compilers on Linux.
const WINDOWS_WORDS: [&str; 4] = [
    "nanoserver", "servercore", "dotnet/framework", "microsoft/iis",
];

/// Parts of the names of Microsoft's repositories.
const MICROSOFT_WORDS: [&str; 2] = ["mcr.microsoft.com/", "microsoft/"];

const LINUX_NAMES: [&str; 26] = [
    "almalinux", "alpine", "amazonlinux", "archlinux", "buildpack-deps", "busybox", "centos",
    "debian", "fedora", "httpd", "mariadb", "mysql", "nginx", "node", "oraclelinux", "perl", "php",
    "postgres", "redis", "rockylinux", "ruby", "rust", "ubi8", "ubi9", "ubuntu", "wolfi-base",
];

/// Parts of a tag of Linux images.
const LINUX_WORDS: [&str; 16] = [
    "alpine", "bookworm", "bullseye", "buster", "trixie", "stretch", "slim", "jammy", "focal",
    "noble", "bionic", "ubuntu", "debian", "linux", "musl", "ubi",
];

/// Returns true for a base without an image for Windows, as far as its name tells: an official image
/// of Docker Hub, or a tag that names a distribution.
pub(crate) fn names_linux(image: &str) -> bool {
    let reference = Reference::parse(image);
    let is_official = !reference.name_on_hub().contains('/');
    reference.is_only_for_linux() || is_official && reference.platform() == Platform::Linux
}

/// Returns true for a base for Windows, as far as its name tells.
pub(crate) fn names_windows(image: &str) -> bool {
    Reference::parse(image).platform() == Platform::Windows
}

/// Returns true for Nano Server, as far as its name tells. That of 2016 had PowerShell and more.
pub(crate) fn names_nano_server(image: &str) -> bool {
    let reference = Reference::parse(image);
    reference.is_nano_server_base() && reference.build() != Some(SERVER_2016)
}

impl Reference {
    pub(super) fn parse(text: &str) -> Self {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest.to_owned())),
            None => (text, None),
        };
        // A colon before the last slash separates a port.
        let path = name.rfind('/').map_or(0, |slash| slash + 1);
        let (repository, tag) = match name[path..].split_once(':') {
            Some((_, tag)) => (&name[..name.len() - tag.len() - 1], Some(tag.to_owned())),
            None => (name, None),
        };
        Self {
            repository: repository.to_ascii_lowercase(),
            tag,
            digest,
        }
    }

    /// Windows build, if the tag contains it.
    pub(super) fn build(&self) -> Option<u32> {
        Some(self.version().version?.build)
    }

    /// Known shell of the published image; `build` is the build of a host that selects one of
    /// several images.
    pub(super) fn shell(&self, build: Option<u32>) -> BaseShell {
        let build = self.build().or(build);
        let tag = self.tag.as_deref().unwrap_or_default();
        let row = PUBLISHED.iter().find(|row| {
            let fits = |builds: &RangeInclusive<u32>| build.is_some_and(|it| builds.contains(&it));
            (build.is_some() || !row.is_older_elsewhere())
                && row.is_of(self)
                && row.tag.is_none_or(|part| tag.contains(part))
                && row.builds.as_ref().is_none_or(fits)
        });
        row.map_or(BaseShell::Unknown, |row| row.shell)
    }

    /// Operating system, as far as the name tells.
    pub(super) fn platform(&self) -> Platform {
        let tag = self.tag.as_deref().unwrap_or_default().to_ascii_lowercase();
        let name = self.repository.rsplit('/').next().unwrap_or_default();
        let has = |part: &str| self.repository.contains(part) || tag.contains(part);
        let is_published = self.is_windows_base() || self.repository.contains_any(&MICROSOFT_WORDS);
        let names_windows = WINDOWS_WORDS.into_iter().any(has) || is_published && has("windows");
        let names_linux = LINUX_NAMES.contains(&name) || tag.contains_any(&LINUX_WORDS);
        if names_windows || self.build().is_some() {
            Platform::Windows
        } else if names_linux && !has("windows") {
            Platform::Linux
        } else {
            Platform::Unknown
        }
    }

    /// Returns true for a distribution of Linux, and for a tag that names one.
    pub(super) fn is_only_for_linux(&self) -> bool {
        let tag = self.tag.as_deref().unwrap_or_default();
        let is_of_linux = |word: &str| LINUX_WORDS.iter().any(|name| word.starts_with(name));
        let distributions = ["alpine", "centos", "debian", "fedora", "ubuntu"];
        self.platform() == Platform::Linux
            && (distributions.contains(&self.repository.as_str())
                || tag.split('-').any(is_of_linux))
    }

    /// Returns true for Microsoft's images with IIS.
    pub(super) fn has_iis(&self) -> bool {
        [
            "mcr.microsoft.com/windows/servercore/iis",
            "mcr.microsoft.com/dotnet/framework/aspnet",
            "mcr.microsoft.com/dotnet/framework/wcf",
        ]
        .contains(&self.repository.as_str())
    }

    /// Path on Docker Hub, without the owner of the official images.
    pub(super) fn name_on_hub(&self) -> &str {
        let name = self.repository.strip_prefix("docker.io/");
        let name = name.unwrap_or(&self.repository);
        name.strip_prefix("library/").unwrap_or(name)
    }

    /// Returns true if the tag names a base of Windows.
    pub(super) fn names_windows(&self) -> bool {
        let tag = self.tag.as_deref().unwrap_or_default();
        tag.contains_any(&["nanoserver", "windowsservercore"])
    }

    /// Returns true for Nano Server and published images on it.
    pub(super) fn is_nano_server(&self) -> bool {
        // Nano Server 2016 had PowerShell and more.
        let is_new = match self.build() {
            Some(build) => build > SERVER_2016,
            None => !self.is_nano_server_base(),
        };
        is_new && self.names_nano_server()
    }

    /// Returns true for Nano Server and published images on it, also those of 2016.
    pub(super) fn names_nano_server(&self) -> bool {
        let is_published = self.repository.starts_with("mcr.microsoft.com/")
            || self.repository == "microsoft/dotnet"
            || self.is_updated_monthly();
        let tag = self.tag.as_deref().unwrap_or_default();
        self.is_nano_server_base() || is_published && tag.contains("nanoserver")
    }

    /// Returns true for Microsoft's images with PowerShell 7, also on Nano Server.
    pub(super) fn has_pwsh(&self) -> bool {
        matches!(
            self.repository.as_str(),
            "mcr.microsoft.com/powershell" | "mcr.microsoft.com/dotnet/sdk"
        )
    }

    fn is_nano_server_base(&self) -> bool {
        is_or_ends_with(&self.repository, "windows/nanoserver")
    }

    /// Windows version in the tag.
    pub(super) fn version(&self) -> TagVersion {
        let parts = || {
            let tag = self.tag.as_deref().unwrap_or_default();
            tag.split(['-', '_'])
        };
        let full = parts()
            .filter(|part| part.starts_with("10.0."))
            .find_map(|part| part.parse::<WindowsVersion>().ok());
        if let Some(version) = full {
            return TagVersion {
                version: Some(version),
                fixed: version.revision.is_some(),
            };
        }
        let build = parts()
            .find_map(release::from_tag_word)
            .map(|release| release.build);
        let kb = parts()
            .filter(|part| part.to_ascii_uppercase().starts_with("KB"))
            .find_map(|part| part.parse().ok());
        let updated = kb.and_then(|kb| {
            Updates::global()
                .by_kb(kb)
                .find(|update| build.is_none_or(|build| update.build == build))
        });
        let dated = parts().any(|part| part.len() == 8 && part.bytes().all(|b| b.is_ascii_digit()));
        TagVersion {
            version: updated
                .map(Update::version)
                .or(build.map(WindowsVersion::from_build)),
            fixed: kb.is_some() || dated,
        }
    }

    /// Returns true for Windows' own base images, whose tags are plain versions. A mirror keeps the
    /// end of the name.
    pub(super) fn is_windows_base(&self) -> bool {
        let names = ["windows/nanoserver", "windows/servercore", "windows/server"];
        self.repository.ends_with_any(&names) || self.repository == WINDOWS
    }

    /// Returns true for bases of Windows that set no variables and no working directory, also those
    /// that were on Docker Hub.
    pub(super) fn is_plain(&self) -> bool {
        let name = self.repository.strip_prefix("docker.io/");
        let of_hub = ["windowsservercore", "nanoserver", "iis"];
        self.is_windows_base()
            || is_or_ends_with(&self.repository, "windows/servercore/iis")
            || name
                .unwrap_or(&self.repository)
                .strip_prefix("microsoft/")
                .is_some_and(|name| of_hub.contains(&name))
    }

    /// Repository of this base for a build. Full Windows is `windows/server` from Server 2022 on.
    pub(super) fn repository_for(&self, build: u32) -> Option<&str> {
        let is_new = build >= SERVER_2022;
        match self.repository.as_str() {
            WINDOWS | WINDOWS_SERVER if is_new => Some(WINDOWS_SERVER),
            WINDOWS | WINDOWS_SERVER if build >= SERVER_2019 => Some(WINDOWS),
            WINDOWS | WINDOWS_SERVER => None,
            own if own.ends_with("windows/server") && !is_new => None,
            own => Some(own),
        }
    }

    /// Returns true if tags are known to move to new images: Microsoft's, and those of the table.
    pub(super) fn is_updated_monthly(&self) -> bool {
        self.is_windows_base()
            || self.is_monthly()
            || self.repository.contains("mcr.microsoft.com/")
            || PUBLISHED
                .iter()
                .any(|row| row.is_of(self) && !row.repository.starts_with("=microsoft/"))
    }

    /// Returns true for Microsoft's images, whose contents are published.
    pub(super) fn is_of_microsoft(&self) -> bool {
        self.repository == "mcr.microsoft.com/powershell"
            || self.repository.starts_with("mcr.microsoft.com/dotnet/")
            || self.repository.starts_with("mcr.microsoft.com/windows")
    }

    /// Returns true for Microsoft's images on these bases, whose tags move monthly unless they
    /// contain a version or a date.
    pub(super) fn is_monthly(&self) -> bool {
        self.repository.contains("dotnet/framework/")
            || self.repository.ends_with("windows/servercore/iis")
    }
}

/// Message about an image's name that Docker refuses.
pub(super) fn refused_name(image: &str) -> Option<String> {
    if let Some((_, name)) = image.split_once("://") {
        return Some(format!(
            "FROM takes the name of an image, without a protocol: write {name}"
        ));
    }
    let name = image.split('@').next().unwrap_or_default();
    let (host, path) = name.split_once('/')?;
    let tag = path.rfind(':').unwrap_or(path.len());
    let (path, tag) = path.split_at(tag);
    // Names in capitals are placeholders.
    let has = |of_case: fn(&char) -> bool| path.chars().any(|c| of_case(&c));
    let is_mixed = has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase);
    (is_mixed && host.contains('.')).then(|| {
        let lower = path.to_ascii_lowercase();
        format!("the name of an image is in lower case: write {host}/{lower}{tag}")
    })
}

/// Windows version of a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TagVersion {
    pub(super) version: Option<WindowsVersion>,
    /// True if the tag never moves.
    pub(super) fixed: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_read() {
        let rows = include_str!("data/bases.tsv").lines();
        let rows = rows.filter(|line| !line.starts_with('#')).count();
        assert_eq!(PUBLISHED.len(), rows);
    }

    #[test]
    fn only_names_without_an_image_for_windows_are_of_linux() {
        for image in [
            "golang:1.22-alpine",
            "alpine",
            "node:20",
            "docker.io/library/php:8",
            "team/site:1-bookworm",
        ] {
            assert!(names_linux(image), "{image}");
        }
        for image in [
            "golang:1.22",
            "node:20-nanoserver-1809",
            "team/node:20",
            "mcr.microsoft.com/dotnet/sdk:8.0",
        ] {
            assert!(!names_linux(image), "{image}");
        }
    }

    #[test]
    fn windows_in_a_name_is_also_of_compilers_for_it() {
        for image in [
            "dockurr/windows",
            "dockcross/windows-static-x64:20230116-slim",
            "fyneio/fyne-cross-images:windows",
            "ghcr.io/cross-rs/x86_64-pc-windows-gnu:main",
            "cdrx/pyinstaller-windows",
        ] {
            let platform = Reference::parse(image).platform();
            assert_eq!(platform, Platform::Unknown, "{image}");
        }
        for image in [
            "mcr.microsoft.com/windows",
            "mirror:5000/windows/server",
            "microsoft/windows",
            "team/app:windowsservercore",
            "example.com/windows:ltsc2022",
        ] {
            assert!(names_windows(image), "{image}");
        }
    }
}
