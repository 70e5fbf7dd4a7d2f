//! Dependencies comply with `deny.toml`: cargo-deny's checks that require no network, for machines
//! without it.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use flate2::read::GzDecoder;
use serde_json::Value;
use spdx::{Expression, LicenseReq};
use toml::Table;
use wincimg_testkit::component;
use wincimg_testkit::sbom_readers::{problems, python_with_readers};

use crate::failure::Fails;

fn rules() -> Table {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/deny.toml");
    std::fs::read_to_string(file).unwrap().parse().unwrap()
}

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 50, "{} packages", packages.len());
    packages.clone()
}

#[test]
fn every_dependency_has_a_licence_that_is_allowed() {
    let allowed = allowed();
    let refused: Vec<String> = packages()
        .iter()
        .filter(|package| !is_allowed(package["license"].as_str().unwrap_or_default(), &allowed))
        .map(|package| format!("{}: {}", package["name"], package["license"]))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

fn allowed() -> BTreeSet<String> {
    let rules = rules();
    let allowed = rules["licenses"]["allow"].as_array().unwrap().clone();
    let names = allowed.iter().map(|name| name.as_str().unwrap().to_owned());
    names.collect()
}

fn is_allowed(licence: &str, allowed: &BTreeSet<String>) -> bool {
    let named = |requirement: &LicenseReq| allowed.contains(&requirement.to_string());
    // Older crates separate alternatives with a slash.
    Expression::parse(&licence.replace('/', " OR "))
        .is_ok_and(|expression| expression.evaluate(named))
}

#[test]
fn a_licence_that_binds_is_refused() {
    let allowed = allowed();
    let is_allowed = |licence| is_allowed(licence, &allowed);
    assert!(is_allowed("MIT/Apache-2.0"));
    assert!(is_allowed("GPL-3.0-only OR MIT"));
    assert!(!is_allowed("GPL-3.0-only"));
    assert!(!is_allowed("MIT AND AGPL-3.0-only"));
    assert!(!is_allowed(""));
}

#[test]
fn no_library_comes_twice_but_those_that_are_listed() {
    let mut versions = BTreeMap::<String, BTreeSet<String>>::new();
    for package in packages() {
        let text = |key: &str| package[key].as_str().unwrap().to_owned();
        versions
            .entry(text("name"))
            .or_default()
            .insert(text("version"));
    }
    let rules = rules();
    let mut skipped = BTreeSet::new();
    for entry in rules["bans"]["skip"].as_array().unwrap() {
        let (name, version) = entry["crate"].as_str().unwrap().split_once('@').unwrap();
        let found = versions
            .get_mut(name)
            .unwrap_or_else(|| panic!("{name} is gone"));
        let is_this = |found: &String| found.starts_with(&format!("{version}."));
        assert!(found.iter().any(is_this), "{name} {version} is gone");
        found.retain(|found| !is_this(found));
        assert!(!found.is_empty(), "{name} comes once");
        skipped.insert(name.to_owned());
    }
    versions.retain(|_, versions| versions.len() > 1);
    assert!(versions.is_empty(), "{versions:#?}");
    for banned in rules["bans"]["deny"].as_array().unwrap() {
        let name = banned["crate"].as_str().unwrap();
        let is_there = packages().iter().any(|package| package["name"] == name);
        assert!(!is_there, "{name}");
    }
}

#[test]
fn everything_comes_from_cargos_own_registry() {
    for package in packages() {
        let source = package["source"].as_str();
        let is_own =
            source.is_none_or(|it| it.starts_with("registry+https://github.com/rust-lang/"));
        assert!(is_own, "{} comes from {source:?}", package["name"]);
    }
}

/// Otherwise cargo-fuzz changes the file, and fuzzes other libraries than those that are released.
#[test]
fn fuzzing_targets_are_locked_to_the_libraries_of_the_program() {
    let locked = |file: &str| -> BTreeMap<String, BTreeMap<String, Vec<String>>> {
        let file = format!("{}/{file}", env!("CARGO_MANIFEST_DIR"));
        let table: Table = std::fs::read_to_string(file).unwrap().parse().unwrap();
        let mut found = BTreeMap::<_, BTreeMap<_, _>>::new();
        for package in table["package"].as_array().unwrap() {
            let text = |key: &str| package[key].as_str().unwrap().to_owned();
            let needed = package.get("dependencies").and_then(toml::Value::as_array);
            let needed = needed.into_iter().flatten().filter_map(|it| {
                let (name, _) = it.as_str()?.split_once(' ').unwrap_or((it.as_str()?, ""));
                Some(name.to_owned())
            });
            let versions = found.entry(text("name")).or_default();
            versions.insert(text("version"), needed.collect());
        }
        found
    };
    let (program, fuzzed) = (locked("Cargo.lock"), locked("fuzz/Cargo.lock"));
    for (name, versions) in &fuzzed {
        let Some(known) = program.get(name) else {
            continue;
        };
        for version in versions.keys() {
            assert!(known.contains_key(version), "{name} {version}: {known:?}");
        }
    }
    for package in packages().iter().filter(|it| it["source"].is_null()) {
        let Some(versions) = fuzzed.get(package["name"].as_str().unwrap()) else {
            continue;
        };
        for needed in package["dependencies"].as_array().unwrap() {
            let name = needed["name"].as_str().unwrap();
            let is_built = needed["kind"] != "dev" && needed["optional"] == false;
            let is_locked = versions.values().any(|it| it.iter().any(|it| it == name));
            assert!(!is_built || is_locked, "{} {name}", package["name"]);
        }
    }
}

/// What is meant for other programs too.
const FOR_OTHERS: [&str; 2] = ["wincimg-layer", "wincimg-registry"];

#[test]
fn crates_for_others_can_be_published_with_all_that_they_need() {
    let packages = packages();
    let mut needed = FOR_OTHERS.map(str::to_owned).to_vec();
    let mut at = 0;
    while let Some(name) = needed.get(at) {
        let package = packages.iter().find(|it| it["name"] == **name).unwrap();
        let used = package["dependencies"].as_array().unwrap().iter();
        let used = used.filter(|it| it["path"].is_string() && it["kind"] != "dev");
        let used: Vec<String> = used
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .filter(|name| !needed.contains(name))
            .collect();
        needed.extend(used);
        at += 1;
    }
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["package", "--offline", "--no-verify", "--allow-dirty"])
        .arg("--target-dir")
        .arg(folder.path())
        .args(needed.iter().flat_map(|name| ["--package", name]))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
    for name in FOR_OTHERS {
        let version = env!("CARGO_PKG_VERSION");
        let package = folder
            .path()
            .join(format!("package/{name}-{version}.crate"));
        let package = GzDecoder::new(std::fs::File::open(package).unwrap());
        let mut package = tar::Archive::new(package);
        let files: Vec<String> = package
            .entries()
            .unwrap()
            .map(|entry| entry.unwrap().path().unwrap().display().to_string())
            .collect();
        for file in ["LICENSE", "README.md"] {
            let file = format!("{name}-{version}/{file}");
            assert!(files.contains(&file), "{file}: {files:?}");
        }
    }
}

#[test]
fn whoever_reads_layers_gets_no_installers() {
    let tree = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["tree", "--offline", "--edges", "normal", "--prefix", "none"])
        .args(["--package", "wincimg-layer"])
        .prints();
    assert_contains!(tree, "wincimg-registry v");
    assert!(!tree.contains("wincimg-msi v"), "{tree}");
}

/// What `cargo run` compiled, the tests do not compile again.
#[test]
fn the_program_and_the_tests_share_their_libraries() {
    let tree = |arguments: &[&str]| -> BTreeSet<String> {
        let output = Command::new(env!("CARGO"))
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .args([
                "tree", "--offline", "--prefix", "none", "--format", "{p} {f}",
            ])
            .args(arguments)
            .output()
            .unwrap();
        let tree = String::from_utf8(output.stdout).unwrap();
        // Ours have features for tests; a path follows their version.
        let foreign = tree.lines().filter(|line| !line.contains(" (/"));
        foreign.map(|line| line.replace(" (*)", "")).collect()
    };
    let program = tree(&["--package", "wincimg", "--edges", "normal,build"]);
    let tests = tree(&["--workspace", "--edges", "normal,build,dev"]);
    assert!(program.len() > 200, "{} crates", program.len());
    let alone: Vec<_> = program.difference(&tests).collect();
    let [indicatif] = alone[..] else {
        panic!("{alone:#?}");
    };
    assert!(indicatif.starts_with("indicatif "), "{indicatif}");
}

/// `packaging/sbom` lists the linked crates, each with its source.
#[test]
fn a_release_says_what_it_is_built_from() {
    component("python3");
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/sbom"))
        .arg(folder.path())
        .env("CARGO", env!("CARGO"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let bytes = std::fs::read(folder.path().join("wincimg.cdx.json")).unwrap();
    let list: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(list["bomFormat"], "CycloneDX");
    assert_eq!(
        list["metadata"]["component"]["version"],
        env!("CARGO_PKG_VERSION")
    );
    let components = list["components"].as_array().unwrap();
    let names: BTreeSet<&str> = components
        .iter()
        .map(|component| component["name"].as_str().unwrap())
        .collect();
    // Those of Linux and of Windows, and none that only tests use.
    assert!(names.contains("rustix") && names.contains("windows-sys"));
    assert!(!names.contains("proptest") && !names.contains("axum"));
    for component in components {
        let name = component["name"].as_str().unwrap();
        let is_ours = name.starts_with("wincimg-");
        assert!(
            is_ours || component["hashes"][0]["content"].is_string(),
            "{component}"
        );
        assert!(
            component["licenses"][0]["expression"].is_string(),
            "{component}"
        );
    }
    let python = python_with_readers();
    let [found] = problems(&python, "cyclonedx", [&bytes]);
    assert_eq!(found, Vec::<String>::new());
}
