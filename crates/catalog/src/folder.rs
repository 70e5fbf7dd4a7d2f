//! The folder that `hotfix fetch` creates for one update: its files, and `update.json` with their
//! roles, install order and digests. A script is generated from that alone, so that nothing else is
//! installed on a node.

use std::path::Path;
use std::{fs, io};

use serde::{Deserialize, Deserializer, Serialize};
use wincimg_common::diagnose::{BoxError, Diagnose as _, Diagnosis, Problem};
use wincimg_common::digest::{Digest, Hasher};
use wincimg_common::files;
use wincimg_common::shell::command_line;
use wincimg_http::file_error;
use wincimg_windows::update::Kb;
use wincimg_windows::version::WindowsVersion;

use super::dialog::is_plain_name;
use super::download::{DownloadedUpdateFile, digest_of};
use super::msu::PackageFormat;
use super::product::Arch;
use super::set::{Role, UpdateSetFile};

/// Name of the manifest.
pub(crate) const DESCRIPTION: &str = "update.json";
/// Maximum size of a manifest.
const LIMIT: u64 = 1 << 20;
const FORMAT: u32 = 1;

/// Content of `update.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    format: u32,
    /// The article.
    pub kb: String,
    /// Version of the host after the update, if known.
    pub build: Option<WindowsVersion>,
    /// The architecture.
    pub arch: String,
    /// Title of the update.
    pub title: String,
    /// Servicing stack that the node requires.
    pub stack: Option<WindowsVersion>,
    /// The files, in the order in which they are installed.
    pub files: Vec<UpdateManifestFile>,
}

/// One file of an update.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UpdateManifestFile {
    /// Its name in the folder.
    pub name: String,
    /// Role in the update.
    pub role: Role,
    /// In bytes; none until it is fetched.
    #[serde(deserialize_with = "required")]
    pub size: Option<u64>,
    /// `sha256:…` or `sha1:…`; empty if the catalog has none and it is not fetched.
    pub digest: String,
    /// Format; none until it is fetched.
    #[serde(deserialize_with = "required")]
    pub container: Option<PackageFormat>,
    /// Source URL.
    pub url: String,
}

/// Reads what every fetched file has.
fn required<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(from).map(Some)
}

/// Problem of the update's folder.
fn invalid_folder(problem: String) -> Problem {
    Problem::new("updates/folder", problem)
}

/// Problem of an invalid manifest.
fn unusable(path: &Path, problem: &str) -> BoxError {
    let problem = format!("cannot use {}: {problem}", path.display());
    invalid_folder(problem).into()
}

/// The command that fetches an update into a folder.
fn fetch_command(kb: Kb, arch: Arch, output: &Path, flags: &str) -> String {
    let (kb, arch_name) = (kb.to_string(), arch.to_string());
    let output = output.display().to_string();
    let output = if output.is_empty() { "." } else { &output };
    let mut words = vec!["wincimg", "node", "hotfix", "fetch", &kb];
    if arch != Arch::default() {
        words.extend(["--arch", &arch_name]);
    }
    words.extend(["--output", output]);
    let command = format!("{} {flags}", command_line(&words));
    command.trim_end().to_owned()
}

/// Name of an update's folder.
pub fn folder_name(kb: Kb, arch: Arch) -> String {
    match arch {
        Arch::X64 => kb.to_string(),
        other => format!("{kb}-{other}"),
    }
}

impl Description {
    /// Describes an update with these files.
    pub fn new(
        kb: Kb,
        arch: Arch,
        title: &str,
        build: Option<WindowsVersion>,
        stack: Option<WindowsVersion>,
        files: Vec<UpdateManifestFile>,
    ) -> Self {
        Self {
            format: FORMAT,
            kb: kb.to_string(),
            build,
            arch: arch.to_string(),
            title: title.to_owned(),
            stack,
            files,
        }
    }

    /// Writes the manifest into the folder of its files.
    pub fn write(&self, folder: &Path) -> Result<(), Problem> {
        let path = folder.join(DESCRIPTION);
        let write = || -> io::Result<()> {
            let mut text = serde_json::to_vec_pretty(self)?;
            text.push(b'\n');
            files::write(&path, &text)
        };
        write().map_err(file_error("write", &path))
    }

    /// Reads the folder of an update, which is the given one or a subfolder, and verifies every
    /// file. One article can serve several builds; the folder is for one of them. `flags` are those
    /// of this run for the catalog, for the command in a hint.
    pub fn read(
        folder: &Path,
        kb: Kb,
        arch: Arch,
        version: Option<WindowsVersion>,
        flags: &str,
    ) -> Result<Self, BoxError> {
        let own = folder.join(folder_name(kb, arch));
        let (own, output) = if own.join(DESCRIPTION).is_file() {
            (own, folder)
        } else if folder.join(DESCRIPTION).is_file() {
            (folder.to_owned(), folder.parent().unwrap_or(folder))
        } else {
            let problem = if own.is_dir() {
                let own = own.display();
                format!("{own} has no {DESCRIPTION}, which `hotfix fetch` writes")
            } else {
                format!("{} has no {kb}", folder.display())
            };
            return Err(invalid_folder(problem)
                .hint(fetch_command(kb, arch, folder, flags))
                .into());
        };
        Self::read_own(&own, kb, arch, version).map_err(|error| {
            let problem = Problem::from_diagnosed(error);
            let Diagnosis { code, hint, .. } = problem.diagnosis();
            let is_damaged = code == "updates/folder" && hint.is_none();
            let command = is_damaged.then(|| fetch_command(kb, arch, output, flags));
            let hint = command.map(|command| format!("fetch it again with: {command}"));
            problem.hint_if(hint).into()
        })
    }

    /// Reads and verifies an update's own folder.
    fn read_own(
        folder: &Path,
        kb: Kb,
        arch: Arch,
        version: Option<WindowsVersion>,
    ) -> Result<Self, BoxError> {
        let path = folder.join(DESCRIPTION);
        let description = Self::parse(&path)?;
        let problem = |problem: String| unusable(&path, &problem);
        if description.kb != kb.to_string() || description.arch != arch.to_string() {
            let found = format!("{} for {}", description.kb, description.arch);
            return Err(problem(format!("it is for {found}, not {kb} for {arch}")));
        }
        if let (Some(found), Some(wanted)) = (description.build, version)
            && found != wanted
        {
            return Err(problem(format!("it is for {found}, not {wanted}")));
        }
        for file in &description.files {
            file.check(&path)?;
        }
        let targets = description
            .files
            .iter()
            .filter(|file| file.role == Role::Target);
        if targets.count() != 1 {
            return Err(problem("it does not list one target".to_owned()));
        }
        let names = description.files.iter().map(|file| file.name.as_str());
        reject_other_packages(folder, names)?;
        Ok(description)
    }

    fn parse(path: &Path) -> Result<Self, BoxError> {
        let problem = |problem: String| unusable(path, &problem);
        let text = files::read(path, LIMIT).map_err(file_error("read", path))?;
        let description: Self =
            serde_json::from_slice(&text).map_err(|error| problem(error.to_string()))?;
        if description.format != FORMAT {
            return Err(problem(format!("format {}", description.format)));
        }
        Ok(description)
    }
}

/// Refuses a folder with packages that are not of the update: DISM would install them too.
pub(crate) fn reject_other_packages<'n>(
    folder: &Path,
    own: impl Iterator<Item = &'n str>,
) -> Result<(), Problem> {
    let own: Vec<&str> = own.collect();
    let mut names = Vec::new();
    let entries = fs::read_dir(folder).map_err(file_error("read", folder))?;
    for entry in entries {
        let entry = entry.map_err(file_error("read", folder))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if is_package(&name) && !own.contains(&name.as_str()) {
            names.push(name);
        }
    }
    if names.is_empty() {
        return Ok(());
    }
    names.sort();
    let problem = format!(
        "{} has packages that are not of the update: {}",
        folder.display(),
        names.join(", ")
    );
    Err(invalid_folder(problem).hint(
        "DISM would install them too: move them away, or fetch the update into another folder",
    ))
}

/// Returns true for a name of a file that DISM installs.
pub(crate) fn is_package(name: &str) -> bool {
    has_ending(name, "msu") || is_cabinet(name)
}

pub(crate) fn is_cabinet(name: &str) -> bool {
    has_ending(name, "cab")
}

fn has_ending(name: &str, ending: &str) -> bool {
    let own = Path::new(name).extension();
    own.is_some_and(|own| own.eq_ignore_ascii_case(ending))
}

impl UpdateManifestFile {
    /// A file as listed in the catalog.
    pub fn from_catalog(member: &UpdateSetFile) -> Self {
        let digest = member.file.digest.as_ref();
        Self {
            name: member.file.name.clone(),
            role: member.role,
            size: None,
            digest: digest.map(Digest::to_string).unwrap_or_default(),
            container: None,
            url: member.file.url.clone(),
        }
    }

    /// The same, after it was fetched.
    pub fn fetched(member: &UpdateSetFile, fetched: &DownloadedUpdateFile) -> Self {
        Self {
            size: Some(fetched.size),
            digest: fetched.digest.to_string(),
            container: Some(fetched.container),
            ..Self::from_catalog(member)
        }
    }

    /// Digest, if its algorithm is supported.
    pub fn digest(&self) -> Option<Digest> {
        let digest: Digest = self.digest.parse().ok()?;
        Hasher::matching(&digest).map(|_| digest)
    }

    /// Verifies the file next to its manifest.
    fn check(&self, manifest: &Path) -> Result<(), BoxError> {
        let invalid = |problem: String| unusable(manifest, &problem);
        if !is_plain_name(&self.name) {
            return Err(invalid(format!("{:?} is not a plain name", self.name)));
        }
        let digest = self.digest();
        let digest = digest.ok_or_else(|| invalid(format!("invalid digest {:?}", self.digest)))?;
        let path = manifest.with_file_name(&self.name);
        let changed = |problem: &str| {
            let path_shown = path.display();
            let problem = format!("{path_shown} differs from its entry in update.json: {problem}");
            Err(invalid_folder(problem).into())
        };
        match fs::symlink_metadata(&path) {
            Ok(metadata) if !metadata.is_file() => return changed("it is not a regular file"),
            Ok(metadata) if Some(metadata.len()) != self.size => {
                return changed("it has another size");
            }
            Ok(_) => {}
            Err(_) => return changed("not found"),
        }
        let hasher = Hasher::matching(&digest).unwrap_or_default();
        if digest_of(&path, hasher)? == digest {
            Ok(())
        } else {
            changed("it has another digest")
        }
    }
}
