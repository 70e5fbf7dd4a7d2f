//! Plans compared with what wine's `msiexec /i PACKAGE /qn` leaves behind, for packages that `wixl`
//! makes. Files are compared by content, registry values by type and data.

#![allow(clippy::unwrap_used)]

mod damaged;
mod packages;
mod permissions;
mod prefix;
mod published;
mod transforms;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use packages::{Expected, PACKAGES, TestPackage};
use prefix::Prefix;
use wincimg_msi::{
    Cabinet, CabinetMember, InstallOptions, InstallPlan, InstalledContent, InstalledFile, MsiError,
    Package,
};
use wincimg_registry::{RegistryData, RegistryEdit};
use wincimg_testkit::component;
use wincimg_testkit::harness::{Arguments, run, trial};
use wincimg_testkit::wine::{Wine, succeed, windows_path};

fn main() -> ExitCode {
    let tests = vec![
        trial(
            "plans_are_what_wine_leaves_behind",
            plans_are_what_wine_leaves_behind,
        ),
        trial(
            "damaged_packages_are_errors",
            damaged::damaged_packages_are_errors,
        ),
        trial(
            "rights_are_those_of_the_tables",
            permissions::rights_are_those_of_the_tables,
        ),
        trial(
            "transforms_of_other_packages_are_refused",
            transforms::transforms_of_other_packages_are_refused,
        ),
        trial(
            "published_packages_are_compared",
            published::published_packages_are_compared,
        ),
    ];
    run(Arguments::from_args(), tests)
}

/// Values that wine takes from the clock or from chance, by name.
const NOT_COMPARED: [&str; 5] = [
    "estimatedsize", "installdate", "installsource", "lastusedsource", "localpackage",
];

/// Differences that are wine's: a part of the message, and why the plan holds.
const WINE_DIFFERENCES: &[(&str, &str)] = &[
    // Windows records 1 for a package of the machine (`AssignmentType`), and always both values.
    (
        "\"assignment\" = REG_DWORD 1, in wine REG_DWORD 0",
        "MsiGetProductInfo",
    ),
    ("\"deploymentflags\" = REG_DWORD 3", "of Windows"),
    // Microsoft: 32-bit and 64-bit programs share `HKLM\SOFTWARE\Classes` and the fonts.
    (r"contoso.narrow", "Registry Keys Affected by WOW64"),
    (
        r"wow6432node\microsoft\windows nt\currentversion\fonts",
        "Registry Keys Affected by WOW64",
    ),
    // Windows lists the folders that it creates.
    (r"currentversion\installer\folders", "of Windows"),
    // Microsoft: 22 is a 64-bit key of HKEY_LOCAL_MACHINE.
    (r"22:\\SOFTWARE\\Contoso\\KeyPath", "MsiGetComponentPath"),
    // Microsoft: the count of a file that is new is 1.
    (
        "contoso attributes\\\\main.exe\" = REG_DWORD 1, in wine REG_DWORD 2",
        "SharedDLLs",
    ),
    // Microsoft: `+` has no effect on a variable that exists.
    ("in wine REG_SZ \"not again\"", "Environment Table"),
    // The service control manager of Windows stores REG_EXPAND_SZ and quotes.
    ("services\\contososvc \"imagepath\"", "CreateService"),
    ("preshutdowntimeout", "not set by Windows"),
    // Counts wine's own processes of services, which come and go.
    (r"control\servicecurrent", "of wine"),
    // A feature that is named selects those above it.
    (
        "wine has no C:\\Program Files\\Contoso Features 2\\a.txt",
        "Feature Table",
    ),
    (
        "features\\00000001000000000000000000000050 \"main\"",
        "Feature Table",
    ),
    (
        r"components\00000004000000000050000000000010",
        "Feature Table",
    ),
    // A component whose condition is false is not recorded.
    (
        r"components\00000004000000000080000000000020",
        "Component Table",
    ),
    // A package without media has them, too.
    (r"00000001000000000000000000000003\sourcelist", "of Windows"),
    // The key of Windows 95.
    (r"microsoft\windows\currentversion\fonts", "RegisterFonts"),
    ("drivererror", "wine's display"),
    // Windows keeps a copy of a transform, and its name.
    ("\"transforms\" = REG_EXPAND_SZ", "of Windows"),
    (r"}\own.mst", "of Windows"),
    (
        r"transform: wine has no folder C:\Windows\Installer\{",
        "of Windows",
    ),
];

/// Reads the content of each planned file, in the package and in files beside it.
fn each_file(
    package: &Path,
    plan: &InstallPlan,
    take: &mut dyn FnMut(&InstalledFile, &[u8]),
) -> Result<(), MsiError> {
    let is_beside = |content: &&InstalledContent| match content {
        InstalledContent::Cabinet { cabinet, .. } => !cabinet.starts_with('#'),
        content => matches!(content, InstalledContent::Beside(_)),
    };
    let wanted = plan.files.iter().map(|file| &file.source);
    let (beside, inside): (BTreeSet<_>, BTreeSet<_>) = wanted.partition(is_beside);
    let mut contents = BTreeMap::new();
    let mut keep = |content: &InstalledContent, reader: &mut dyn Read| -> std::io::Result<()> {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes)?;
        contents.insert(content.clone(), bytes);
        Ok(())
    };
    Package::read(File::open(package)?)?.read_contents(&inside, &mut keep)?;
    let folder = package.parent().unwrap();
    for content in beside {
        match content {
            InstalledContent::Cabinet { cabinet, member } => {
                let mut file = File::open(folder.join(cabinet))?;
                let cabinet = Cabinet::read(&mut file)?;
                let is_wanted = |it: &CabinetMember| it.name == *member;
                cabinet.unpack(&mut file, &is_wanted, &mut |_, bytes| keep(content, bytes))?;
            }
            InstalledContent::Beside(path) => keep(content, &mut File::open(folder.join(path))?)?,
            _ => {}
        }
    }
    for file in &plan.files {
        if file.source != InstalledContent::Package {
            take(file, &contents[&file.source]);
        }
    }
    Ok(())
}

fn plans_are_what_wine_leaves_behind() {
    component("wixl");
    component("msibuild");
    let wine = Wine::start();
    let folder = tempfile::tempdir().unwrap();
    let mut prefix = Prefix::new(&wine);
    let mut problems = Vec::new();
    for (number, package) in PACKAGES.iter().enumerate() {
        let file = match build(package, number, folder.path()) {
            Ok(file) => file,
            Err(error) => {
                problems.push(format!("{}: {error}", package.name));
                continue;
            }
        };
        if let Some(transform) = package.transform {
            let transform = transform(number);
            std::fs::write(wine.drive().join("own.mst"), transform.bytes()).unwrap();
            transform.add_to(&file, "own");
        }
        let mut words = vec!["/i".to_owned(), windows_path(&file), "/qn".to_owned()];
        words.extend(
            package
                .properties
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        );
        let status = wine.command("msiexec").args(&words).status().unwrap();
        let plan = plan(package, &file, &prefix);
        let problem = |text: String| format!("{}: {text}", package.name);
        match (&package.expected, &plan) {
            (Expected::Fails(part), Err(error)) => {
                if !error.contains(part) {
                    problems.push(problem(format!("{error} does not contain {part:?}")));
                }
                if package.fails_in_wine && status.success() {
                    problems.push(problem("wine installs it".to_owned()));
                }
            }
            (Expected::Fails(_), Ok(_)) => problems.push(problem("the plan succeeds".to_owned())),
            (Expected::Installs, Err(error)) => problems.push(problem(error.clone())),
            (Expected::Installs, Ok(plan)) => {
                if !status.success() {
                    problems.push(problem(format!("msiexec: {status}")));
                }
                let refused = plan.refused.iter().map(|it| format!("refused {it:?}"));
                problems.extend(refused.map(problem));
                compare_files(plan, &file, &wine, &mut problems, package.name);
                prefix.expect(plan);
            }
        }
    }
    let after = Prefix::export(&wine);
    problems.extend(compare_values(&prefix, &after));
    problems.retain(|problem| {
        !WINE_DIFFERENCES
            .iter()
            .any(|(part, _)| problem.contains(part))
    });
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn plan(package: &TestPackage, file: &Path, prefix: &Prefix) -> Result<InstallPlan, String> {
    let reader = File::open(file).unwrap();
    let mut opened = Package::read(reader).map_err(|error| error.to_string())?;
    let properties = package.properties.iter();
    let options = InstallOptions {
        properties: properties
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        file_name: file.file_name().unwrap().to_str().unwrap().to_owned(),
        source_folder: windows_path(file.parent().unwrap()) + r"\",
        skipped_actions: Vec::new(),
    };
    opened
        .plan(&options, prefix)
        .map_err(|error| error.to_string())
}

/// Builds a package with its files, which have their own names as content.
fn build(package: &TestPackage, number: usize, folder: &Path) -> Result<PathBuf, String> {
    let own = folder.join(package.name);
    std::fs::create_dir(&own).unwrap();
    let source = package.source(number);
    for name in source.split("Source='").skip(1) {
        let name = name.split('\'').next().unwrap();
        let content = format!("{name} of {}\n", package.name).repeat(package.repeats);
        std::fs::write(own.join(name), content).unwrap();
    }
    std::fs::write(own.join("a.wxs"), source).unwrap();
    let file = own.join("a.msi");
    let mut wixl = Command::new(component("wixl"));
    wixl.current_dir(&own)
        .args(["-a", package.arch, "-o", "a.msi", "a.wxs"]);
    succeed(&mut wixl)?;
    if package.is_cabinet_outside {
        let mut extract = Command::new(component("msiinfo"));
        let extracted = extract.arg("extract").arg(&file).arg("own.cab").output();
        let extracted = extracted.map_err(|error| error.to_string())?;
        std::fs::write(own.join("own.cab"), extracted.stdout).unwrap();
    }
    for query in package.queries {
        let mut build = Command::new(component("msibuild"));
        build.arg(&file).args(["-q", query]);
        succeed(&mut build)?;
    }
    Ok(file)
}

fn compare_files(
    plan: &InstallPlan,
    file: &Path,
    wine: &Wine,
    problems: &mut Vec<String>,
    name: &str,
) {
    let read = each_file(file, plan, &mut |file, own| {
        let path = prefix::on_disk(wine, &file.path);
        let is_link = plan.shortcuts.iter().any(|it| it.path == file.path);
        match std::fs::read(&path) {
            Err(error) => problems.push(format!("{name}: wine has no {}: {error}", file.path)),
            // wine writes the items of the shell into a link, too.
            Ok(theirs) if !is_link && theirs != own => problems.push(format!(
                "{name}: {} differs: {:?} {:?}",
                file.path,
                String::from_utf8_lossy(own),
                String::from_utf8_lossy(&theirs)
            )),
            Ok(_) => {}
        }
        if matches!(file.source, InstalledContent::Cabinet { .. }) && own.len() as u64 != file.size
        {
            problems.push(format!("{name}: {} has {} bytes", file.path, own.len()));
        }
    });
    if let Err(error) = read {
        problems.push(format!("{name}: {error}"));
    }
    for folder in &plan.folders {
        let path = prefix::on_disk(wine, folder);
        if !path.is_dir() {
            problems.push(format!("{name}: wine has no folder {folder}"));
        }
    }
}

/// Differences between the values that the plans set and those that wine set.
fn compare_values(
    prefix: &Prefix,
    after: &BTreeMap<(String, String), RegistryData>,
) -> Vec<String> {
    let mut problems = Vec::new();
    for ((key, name), data) in &prefix.values {
        if NOT_COMPARED.contains(&name.as_str()) {
            continue;
        }
        match after.get(&(key.clone(), name.clone())) {
            None => problems.push(format!("only planned: {key} {name:?} = {data}")),
            Some(theirs) if !is_same(data, theirs) => {
                problems.push(format!("{key} {name:?} = {data}, in wine {theirs}"));
            }
            Some(_) => {}
        }
    }
    for ((key, name), data) in after {
        let is_new = !prefix.values.contains_key(&(key.clone(), name.clone()));
        if is_new && !NOT_COMPARED.contains(&name.as_str()) {
            problems.push(format!("only in wine: {key} {name:?} = {data}"));
        }
    }
    problems
}

/// Compares data; wine spells the folder of Windows in lower case.
fn is_same(own: &RegistryData, theirs: &RegistryData) -> bool {
    let spelled =
        |data: &RegistryData| data.to_string().replace(r"C:\\windows\\", r"C:\\Windows\\");
    own.kind() == theirs.kind() && spelled(own) == spelled(theirs)
}

/// Applies the edits of a plan to known values.
fn apply(values: &mut BTreeMap<(String, String), RegistryData>, edit: &RegistryEdit) {
    let key = edit.key().to_string().to_lowercase();
    match edit {
        RegistryEdit::SetValue { name, data, .. } => {
            values.insert((key, name.to_lowercase()), data.clone());
        }
        RegistryEdit::DeleteValue { name, .. } => {
            values.remove(&(key, name.to_lowercase()));
        }
        RegistryEdit::DeleteKey { .. } => {
            let below = format!("{key}\\");
            values.retain(|(own, _), _| *own != key && !own.starts_with(&below));
        }
        RegistryEdit::CreateKey { .. } | RegistryEdit::SetSecurity { .. } => {}
    }
}
