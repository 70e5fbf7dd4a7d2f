//! `choco install`: packages of a feed, whose scripts the interpreter of PowerShell runs.
//!
//! Chocolatey itself does not become part of the image. Where it makes a program of its own that
//! starts one of a package, the folder of that program is added to the machine's `PATH`.

mod command_line;
mod nuspec;
mod version;

use std::collections::BTreeSet;
use std::iter;

use wincimg_common::untrusted::QuotedText;
use wincimg_registry::{RegistryData, TypedData};
use wincimg_windows::path::ImagePath;
use wincimg_windows::variables::environment_key;

use self::command_line::{InstallCommand, InstallOptions, is_id, unquoted};
use self::nuspec::Nuspec;
use self::version::{Version, VersionRange};
use super::error::{self, Result, ScriptError};
use super::image::{
    EntryKind, ImageAction, Lookup, PackageFeed, PendingDownload, UnpackAction, UnpackFormat,
};
use super::powershell;
use super::process::{PathState, Process};
use super::tools;

/// Chocolatey's folder.
pub(super) const ROOT: &str = r"C:\ProgramData\chocolatey";

/// Folder of downloads, which is deleted after the installation.
pub(super) const CACHE: &str = r"C:\Windows\Temp\chocolatey";

/// The script that installs a package.
const SCRIPT: &str = "chocolateyInstall.ps1";

/// Maximum number of files and folders in a package.
const LARGEST: usize = 20_000;

/// Maximum length of `PATH`: longer ones are cut off by programs.
const LONGEST_PATH: usize = 2047;

/// The feature that answers questions with yes.
const CONFIRMATION: &str = "allowGlobalConfirmation";

/// The feature that makes the exit code of a package that of `choco`.
const EXIT_CODES: &str = "usePackageExitCodes";

/// Exit codes of packages that are installed, two of which require a restart.
pub(super) const SUCCESS: [i32; 5] = [0, 1605, 1614, 1641, 3010];

/// What is in every package besides its own files.
const ENVELOPE: [&str; 3] = ["_rels", "package", "[Content_Types].xml"];

/// Runs `choco`.
pub(super) fn run(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    if machine.image.feed() == PackageFeed::None {
        let why = "packages are installed only from a feed that the build names";
        return Err(ScriptError::windows(why).help(
            "add the folder or URL of the feed (--choco-feed DIR), or download and unpack a zip \
             of the program",
        ));
    }
    let (verb, rest) = match words.split_first() {
        Some((verb, rest)) => (verb.to_ascii_lowercase(), rest),
        None => return error::fails("no command given"),
    };
    match verb.as_str() {
        "install" => install(machine, rest),
        "feature" | "features" | "config" => {
            set_features(machine, words)?;
            let what = format!("choco {}", words.join(" "));
            machine.finish(ImageAction::Skip(what))
        }
        _ => error::windows(format!("choco {verb} requires Chocolatey in the image")),
    }
}

/// Runs `cinst`, an older name of `choco install`.
pub(super) fn cinst(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    run(machine, &[&["install".to_owned()], words].concat())
}

/// `choco feature enable|disable -n NAME`, of which later lines know.
fn set_features(machine: &mut Process<'_>, words: &[String]) -> Result<()> {
    let has = |name: &str| {
        let value = |word: &String| unquoted(word.rsplit('=').next().unwrap_or_default());
        words
            .iter()
            .any(|word| value(word).eq_ignore_ascii_case(name))
    };
    for (verb, is_enabled) in [("enable", true), ("disable", false)] {
        for name in [CONFIRMATION, EXIT_CODES] {
            if has(verb) && has(name) {
                machine.apply(ImageAction::ChocolateyFeature { name, is_enabled })?;
            }
        }
    }
    Ok(())
}

fn install(machine: &mut Process<'_>, words: &[String]) -> Result<i32> {
    let is_confirmed = machine.image.chocolatey_feature(CONFIRMATION) == Some(true);
    let command = InstallCommand::read(words, is_confirmed)?;
    let mut code = 0;
    for id in &command.packages {
        let Some(version) = &command.version else {
            let why = format!("the version of {id} is not given");
            return Err(ScriptError::refused(why).help("name the version: --version VERSION"));
        };
        let Some(exact) = VersionRange::parse(&format!("[{version}]")) else {
            return error::fails(format!("{version:?} is not a version"));
        };
        let request = PackageRequest {
            id,
            range: &exact,
            // The spelling of a URL is the user's.
            exact: Some(version.clone()),
            required_by: None,
        };
        let own = machine.deeper(|machine| install_package(machine, &request, &command.options))?;
        code = code.max(own);
    }
    let cache = machine.path(CACHE)?;
    if let Lookup::Present(_) = machine.entry(&cache) {
        machine.apply(ImageAction::Delete(cache))?;
    }
    let is_used = command
        .uses_exit_codes
        .or_else(|| machine.image.chocolatey_feature(EXIT_CODES));
    if code == 0 || is_used == Some(false) {
        return Ok(0);
    }
    let why = format!("it ends with exit code {code} of a package");
    machine.error = Some(ScriptError::fails(why).help("add --ignore-package-exit-codes"));
    Ok(code)
}

/// A package to install.
struct PackageRequest<'r> {
    id: &'r str,
    range: &'r VersionRange,
    /// The only version, as it is written.
    exact: Option<String>,
    /// Package that depends on it, and is being installed.
    required_by: Option<&'r PackageRequest<'r>>,
}

impl PackageRequest<'_> {
    fn described(&self) -> String {
        match (self.required_by, &self.exact) {
            (Some(by), _) => format!("{}, which {} requires,", self.id, by.id),
            (None, Some(version)) => format!("{} {version}", self.id),
            (None, None) => self.id.to_owned(),
        }
    }
}

/// Installs a package, and returns its exit code.
fn install_package(
    machine: &mut Process<'_>,
    request: &PackageRequest<'_>,
    options: &InstallOptions,
) -> Result<i32> {
    let mut above = iter::successors(request.required_by, |by| by.required_by);
    if above.any(|by| by.id.eq_ignore_ascii_case(request.id)) {
        let why = "requires itself through its dependencies, which Chocolatey refuses";
        return error::refused(format!("{} {why}", request.id));
    }
    let folder = machine.path(&format!(r"{ROOT}\lib\{}", request.id))?;
    if machine.path_state(&folder)? != PathState::Absent {
        return check_installed(machine, request, &folder).map(|()| 0);
    }
    unpack(machine, request, &folder)?;
    let nuspec = nuspec_of(machine, &folder)?;
    let has_id = nuspec.id.eq_ignore_ascii_case(request.id);
    let version = Version::parse(&nuspec.version);
    if !has_id || version.is_none_or(|version| !request.range.contains(&version)) {
        let found = format!("{} {}", nuspec.id, nuspec.version);
        let why = format!("the feed's file of {} has {found}", request.described());
        return error::refused(why);
    }
    let mut code = 0;
    if !options.ignores_dependencies {
        for (id, range) in &nuspec.dependencies {
            code = code.max(install_dependency(machine, request, id, range)?);
        }
    }
    code = code.max(run_script(machine, &nuspec, &folder, options)?);
    for folder in program_folders(&files_in(machine, &folder)?) {
        let folder = folder.to_string();
        add_to_path(machine, &folder)?;
        let note = format!("{}: {folder} is added to PATH", nuspec.id);
        machine.apply(ImageAction::Note(note))?;
    }
    Ok(code)
}

/// Checks the version of a package that the image already has.
fn check_installed(
    machine: &mut Process<'_>,
    request: &PackageRequest<'_>,
    folder: &ImagePath,
) -> Result<()> {
    let nuspec = nuspec_of(machine, folder)?;
    let version = Version::parse(&nuspec.version);
    if version.is_some_and(|version| request.range.contains(&version)) {
        return Ok(());
    }
    error::refused(format!(
        "the image already has {} {}, another version of {}",
        nuspec.id,
        nuspec.version,
        request.described()
    ))
}

/// Copies or downloads a package, and unpacks it to its folder.
fn unpack(
    machine: &mut Process<'_>,
    request: &PackageRequest<'_>,
    folder: &ImagePath,
) -> Result<()> {
    let archive = folder.join(&format!("{}.nupkg", request.id))?;
    let missing = || {
        let why = format!("the feed has no {}", request.described());
        ScriptError::refused(why).help("add the .nupkg to the feed, or use another one")
    };
    match machine.image.feed() {
        PackageFeed::None => return Err(missing()),
        PackageFeed::Folder(files) => {
            let file = best_file(&files, request).ok_or_else(missing)?;
            machine.apply(ImageAction::MakeFolder(folder.clone()))?;
            let path = archive.clone();
            machine.apply(ImageAction::CopyPackage { file, path })?;
        }
        PackageFeed::Url(feed) => {
            let Some(version) = &request.exact else {
                let why = format!("the version of {} is open", request.described());
                return Err(ScriptError::unclear(why).help(
                    "install it before with its version, or use a folder of packages: \
                     --choco-feed DIR",
                ));
            };
            machine.apply(ImageAction::MakeFolder(folder.clone()))?;
            let feed = feed.trim_end_matches('/');
            let url = format!("{feed}/package/{}/{version}", request.id);
            tools::download(machine, &url, archive.clone(), true)?;
        }
    }
    let unpack = UnpackAction::new(archive, UnpackFormat::Zip, folder.clone());
    machine.apply(ImageAction::Unpack(unpack))?;
    for name in ENVELOPE {
        let path = folder.join(name)?;
        if let Lookup::Present(_) = machine.entry(&path) {
            machine.apply(ImageAction::Delete(path))?;
        }
    }
    Ok(())
}

/// The file of the highest version that a request accepts.
fn best_file(files: &[String], request: &PackageRequest<'_>) -> Option<String> {
    let version = |file: &String| {
        let (name, rest) = file.split_at_checked(request.id.len())?;
        let is_package = name.eq_ignore_ascii_case(request.id);
        let rest = rest.strip_prefix('.').filter(|_| is_package)?;
        let end = rest.len().checked_sub(".nupkg".len())?;
        let (version, extension) = rest.split_at_checked(end)?;
        let version = Version::parse(version)?;
        let may_be =
            request.exact.is_some() || !version.is_prerelease() || request.range.has_prerelease();
        let is_accepted = may_be && request.range.contains(&version);
        (is_accepted && extension.eq_ignore_ascii_case(".nupkg")).then_some(version)
    };
    let accepted = files.iter().filter_map(|file| Some((version(file)?, file)));
    accepted.max().map(|(_, file)| file.clone())
}

fn nuspec_of(machine: &Process<'_>, folder: &ImagePath) -> Result<Nuspec> {
    let names = names_in(machine, folder)?;
    let mut found = names
        .iter()
        .filter(|name| name.to_ascii_lowercase().ends_with(".nuspec"));
    let (Some(name), None) = (found.next(), found.next()) else {
        return error::refused(format!("{folder} has not one .nuspec"));
    };
    let path = folder.join(name)?;
    match machine.image.content(&path) {
        Lookup::Present(bytes) => {
            Nuspec::read(&bytes).map_err(|why| ScriptError::refused(format!("{path}: {why}")))
        }
        Lookup::Deferred(PendingDownload) => Err(later(folder)),
        _ => error::unknown(format!("cannot read {path}")),
    }
}

fn later(folder: &ImagePath) -> ScriptError {
    ScriptError::later(format!("the package {} is downloaded later", folder.name()))
}

fn names_in(machine: &Process<'_>, folder: &ImagePath) -> Result<Vec<String>> {
    match machine.image.names(folder) {
        Lookup::Present(mut names) => {
            names.sort();
            Ok(names)
        }
        Lookup::Absent => Ok(Vec::new()),
        Lookup::Deferred(PendingDownload) => Err(later(folder)),
        Lookup::Unknown => error::unknown(format!("what {folder} has is unknown")),
    }
}

fn install_dependency(
    machine: &mut Process<'_>,
    by: &PackageRequest<'_>,
    id: &str,
    range: &str,
) -> Result<i32> {
    // Chocolatey itself runs the scripts.
    if id.eq_ignore_ascii_case("chocolatey") {
        return Ok(0);
    }
    let accepted = VersionRange::parse(range).filter(|_| is_id(id));
    let Some(accepted) = accepted else {
        let by = by.id;
        let why = format!("{by} requires {id:?} {range:?}, which is not a package");
        return error::refused(why);
    };
    let request = PackageRequest {
        id,
        range: &accepted,
        exact: accepted.exact().map(ToString::to_string),
        required_by: Some(by),
    };
    machine.deeper(|machine| install_package(machine, &request, &InstallOptions::default()))
}

/// Runs the script of a package, if it has one, and returns its exit code.
fn run_script(
    machine: &mut Process<'_>,
    nuspec: &Nuspec,
    folder: &ImagePath,
    options: &InstallOptions,
) -> Result<i32> {
    let files = files_in(machine, folder)?;
    let is_script = |file: &&ImagePath| file.name().eq_ignore_ascii_case(SCRIPT);
    let mut scripts = files.iter().filter(is_script);
    let script = match (scripts.next(), scripts.next()) {
        (None, _) => return Ok(0),
        (Some(script), None) => script.to_string(),
        (Some(_), Some(_)) => return error::unclear(format!("{folder} has several {SCRIPT}")),
    };
    let flag = |is_set: bool| if is_set { "true" } else { "" };
    let folder = folder.to_string();
    let variables = [
        ("ChocolateyInstall", ROOT),
        ("ChocolateyPackageName", &nuspec.id),
        ("ChocolateyPackageTitle", &nuspec.id),
        ("ChocolateyPackageVersion", &nuspec.version),
        ("ChocolateyPackageFolder", &folder),
        ("ChocolateyPackageParameters", &options.parameters),
        ("ChocolateyInstallArguments", &options.arguments),
        ("ChocolateyInstallOverride", flag(options.overrides)),
        (
            "ChocolateyAllowEmptyChecksums",
            flag(options.allows_empty_checksums),
        ),
        ("ChocolateyForceX86", ""),
        ("packageName", &nuspec.id),
        ("packageVersion", &nuspec.version),
        ("packageFolder", &folder),
        ("TEMP", CACHE),
        ("TMP", CACHE),
    ];
    let (code, own) = machine.nested(|machine| {
        for (name, value) in variables {
            let value = Some(value.to_owned()).filter(|value| !value.is_empty());
            machine.variables.set(name, value);
        }
        let outer = machine.package_code.replace(0);
        let of_runner = runner_variables(nuspec, &folder, &script, options);
        let code = powershell::run_script_file(machine, &script, &[], &of_runner, false);
        let own = std::mem::replace(&mut machine.package_code, outer);
        Ok((code?, own.unwrap_or_default()))
    })?;
    match (code, own) {
        (0, own) if SUCCESS.contains(&own) => Ok(own),
        (0, code) | (code, _) => {
            Err(machine.take_error(format!("{script} ends with exit code {code}")))
        }
    }
}

/// The variables of `chocolateyScriptRunner.ps1`, which calls the script of a package, in lower case.
fn runner_variables(
    nuspec: &Nuspec,
    folder: &str,
    script: &str,
    options: &InstallOptions,
) -> Vec<(&'static str, String)> {
    let own = |name: &str| format!(r"{ROOT}\{name}");
    vec![
        ("version", nuspec.version.clone()),
        ("packagename", nuspec.id.clone()),
        ("packageversion", nuspec.version.clone()),
        ("packagefolder", folder.to_owned()),
        ("packagescript", script.to_owned()),
        ("packageparameters", options.parameters.clone()),
        ("installarguments", options.arguments.clone()),
        ("helperspath", own("helpers")),
        ("nugetchocolateypath", ROOT.to_owned()),
        ("nugetpath", ROOT.to_owned()),
        ("nugetexepath", own("bin")),
        ("nugetlibpath", own("lib")),
        ("badlibpath", own("lib-bad")),
        ("extensionspath", own("extensions")),
        ("chocoinstallvariablename", "ChocolateyInstall".to_owned()),
        ("chocotools", own("tools")),
        ("nugetexe", own(r"tools\nuget.exe")),
        ("7zip", own(r"tools\7z.exe")),
        ("shimgen", own(r"tools\shimgen.exe")),
        ("checksumexe", own(r"tools\checksum.exe")),
    ]
}

/// All files of a package.
fn files_in(machine: &Process<'_>, folder: &ImagePath) -> Result<Vec<ImagePath>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.clone()];
    while let Some(folder) = folders.pop() {
        for name in names_in(machine, &folder)? {
            let path = folder.join(&name)?;
            if name.contains('%') {
                return error::unclear(format!("the name {path} is encoded"));
            }
            match machine.entry(&path) {
                Lookup::Present(EntryKind::Folder) => folders.push(path),
                Lookup::Deferred(PendingDownload) => return Err(later(&folder)),
                _ => files.push(path),
            }
            if files.len() + folders.len() > LARGEST {
                return error::unclear("the package has too many files");
            }
        }
    }
    Ok(files)
}

/// The folders of the programs for which Chocolatey makes programs of its own.
fn program_folders(files: &[ImagePath]) -> BTreeSet<ImagePath> {
    let lower = |file: &ImagePath| file.to_string().to_ascii_lowercase();
    let all: BTreeSet<String> = files.iter().map(lower).collect();
    let programs = files.iter().filter(|file| {
        let is_program = file.to_string().to_ascii_lowercase().ends_with(".exe");
        is_program && !all.contains(&format!("{}.ignore", lower(file)))
    });
    programs.filter_map(ImagePath::parent).collect()
}

/// Adds a folder to the machine's `PATH`.
pub(super) fn add_to_path(machine: &mut Process<'_>, folder: &str) -> Result<()> {
    if folder.contains(';') {
        return error::unclear(format!("{} is not one folder", QuotedText(folder)));
    }
    let before = match machine.image.value(&environment_key(), "Path") {
        Lookup::Present(data) => match data.typed() {
            TypedData::Text(text) => text,
            _ => return error::unclear("PATH is not text"),
        },
        Lookup::Absent => String::new(),
        Lookup::Deferred(PendingDownload) | Lookup::Unknown => {
            return error::unknown("the machine's PATH is unknown");
        }
    };
    let plain = |text: &str| text.trim_end_matches('\\').to_ascii_lowercase();
    if before.split(';').any(|known| plain(known) == plain(folder)) {
        return Ok(());
    }
    let divider = if before.ends_with(';') { "" } else { ";" };
    let after = format!("{before}{divider}{folder}");
    let after = after.trim_start_matches(';');
    if after.len() > LONGEST_PATH {
        return error::unclear("PATH would be too long for Windows");
    }
    let data = RegistryData::expand_sz(after);
    tools::set_machine_variable(machine, "Path", Some(data))
}
