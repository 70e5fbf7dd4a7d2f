//! Published packages, which are not part of the project: `WINCIMG_PACKAGES` names a folder of
//! them. Each is compared with wine and `msiextract`; the result is a table, not a verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use wincimg_msi::{InstallOptions, InstallPlan, Package};
use wincimg_registry::RegistryData;
use wincimg_testkit::component;
use wincimg_testkit::harness::skip_always;
use wincimg_testkit::wine::{Wine, succeed, windows_path};

use super::prefix::{Prefix, on_disk};
use super::{WINE_DIFFERENCES, compare_values, each_file};

pub(crate) fn published_packages_are_compared() {
    let Some(folder) = std::env::var_os("WINCIMG_PACKAGES") else {
        skip_always("published packages (WINCIMG_PACKAGES=FOLDER)");
    };
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|it| it.eq_ignore_ascii_case("msi"))
        })
        .collect();
    files.sort();
    let wine = Wine::start();
    let place = std::env::temp_dir().join("published-packages.txt");
    let mut report = String::new();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let line = compare(&file, &wine).unwrap_or_else(|error| format!("error: {error}"));
        writeln!(report, "{name} | {line}").unwrap();
        std::fs::write(&place, &report).unwrap();
    }
    assert!(!report.is_empty());
}

fn compare(file: &Path, wine: &Wine) -> Result<String, String> {
    let prefix = Prefix::new(wine);
    let mut properties = vec![("ALLUSERS".to_owned(), "1".to_owned())];
    // A transform beside the package, with its name.
    let transform = file.with_extension("mst");
    if transform.is_file() {
        std::fs::copy(&transform, wine.drive().join("own.mst")).unwrap();
        properties.push(("TRANSFORMS".to_owned(), r"C:\own.mst".to_owned()));
    }
    let words = ["/i".to_owned(), windows_path(file), "/qn".to_owned()];
    let given = properties
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    let words = words.into_iter().chain(given);
    let status = wine.command("msiexec").args(words).status().unwrap();
    let options = InstallOptions {
        properties,
        file_name: file.file_name().unwrap().to_string_lossy().into_owned(),
        source_folder: windows_path(file.parent().unwrap()) + r"\",
        skipped_actions: Vec::new(),
    };
    let mut package =
        Package::read(std::fs::File::open(file).unwrap()).map_err(|it| it.to_string())?;
    let plan = package
        .plan(&options, &prefix)
        .map_err(|it| it.to_string())?;
    let mut own = BTreeMap::new();
    let read = each_file(file, &plan, &mut |file, bytes| {
        own.insert(file.path.clone(), bytes.to_vec());
    });
    read.map_err(|it| it.to_string())?;
    let links: BTreeSet<_> = plan.shortcuts.iter().map(|it| it.path.clone()).collect();
    let (mut equal, mut missing, mut different) = (0, Vec::new(), Vec::new());
    for (path, bytes) in &own {
        match std::fs::read(on_disk(wine, path)) {
            Err(_) => missing.push(path.to_string()),
            Ok(theirs) if theirs == *bytes || links.contains(path) => equal += 1,
            Ok(_) => different.push(path.to_string()),
        }
    }
    let values = differing_values(prefix, &plan, &Prefix::export(wine));
    let mut line = format!(
        "wine {status}; files {} equal {equal} missing {} different {}; {}; values {} differ {}; services {}; refused {}",
        own.len(),
        missing.len(),
        different.len(),
        extracted_by_msitools(file, &own)?,
        plan.registry.len(),
        values.len(),
        plan.services.len(),
        plan.refused.len(),
    );
    for more in missing.iter().chain(&different).take(5) {
        write!(line, "\n    file {more}").unwrap();
    }
    for more in values.iter().take(12) {
        write!(line, "\n    {more}").unwrap();
    }
    Ok(line)
}

fn differing_values(
    mut prefix: Prefix,
    plan: &InstallPlan,
    after: &BTreeMap<(String, String), RegistryData>,
) -> Vec<String> {
    prefix.expect(plan);
    let mut problems = compare_values(&prefix, after);
    problems.retain(|problem| {
        let is_known = WINE_DIFFERENCES
            .iter()
            .any(|(part, _)| problem.contains(part));
        !is_known && !problem.contains("\"assignment\"")
    });
    problems
}

/// How many of the contents `msiextract` has, too.
fn extracted_by_msitools(
    file: &Path,
    own: &BTreeMap<wincimg_windows::path::ImagePath, Vec<u8>>,
) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(component("msiextract"));
    command.arg("-C").arg(folder.path()).arg(file);
    succeed(&mut command)?;
    let mut contents = BTreeSet::new();
    let mut pending = vec![folder.path().to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else {
                contents.insert(std::fs::read(path).unwrap());
            }
        }
    }
    let ours: BTreeSet<&Vec<u8>> = own.values().collect();
    let common = contents.iter().filter(|it| ours.contains(it)).count();
    Ok(format!(
        "msiextract {} of which ours {common}",
        contents.len()
    ))
}
