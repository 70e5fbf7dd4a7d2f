//! The proof for Windows, as far as Linux can check it: the folder for it is generated, its
//! programs are well-formed, and its cases are those of the tests here.

mod lines;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::image_locations::put_at;
use wincimg_testkit::layout::json_in;
use wincimg_testkit::powershell::syntax_errors;
use wincimg_testkit::test_bases::{bottom_layer, image_of, made_software, made_system};
use wincimg_testkit::{component, kernel_rules};

const HERE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/windows");
const VERSION: &str = "10.0.20348.2402";
const DELTAS: [&str; 5] = [
    "System_Delta", "Software_Delta", "Sam_Delta", "Security_Delta", "DefaultUser_Delta",
];

fn script() -> String {
    fs::read_to_string(format!("{HERE}/Prove.ps1")).unwrap()
}

/// Generates the folder for Windows, for stand-in bases.
async fn prepare(out: &Path) {
    let server = FakeRegistry::start();
    let host = server.host();
    let base = bottom_layer(&made_system(r"%SystemRoot%\system32"), &made_software());
    let base = image_of(VERSION, vec![base.tar()]);
    for name in ["nanoserver", "servercore", "servercore/iis"] {
        put_at(&base, &format!("{host}/windows/{name}:{VERSION}")).await;
    }
    let home = tempfile::tempdir().unwrap();
    let output = Command::new(format!("{HERE}/prepare"))
        .arg(out)
        .arg("20348.2402")
        .args(["--base-registry", &host, "--insecure-registry", "127.0.0.1"])
        .args(["--cache-dir", "cache"])
        .current_dir(home.path())
        .env("DOCKER_CONFIG", home.path())
        .env("WINCIMG", assert_cmd::cargo::cargo_bin!("wincimg"))
        // The Update Catalog is unreachable.
        .env("HTTPS_PROXY", "http://127.0.0.1:1")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}");
}

#[test(multi_thread)]
async fn the_folder_for_windows_is_made_on_linux() {
    for program in ["x86_64-w64-mingw32-gcc", "openssl", "python3"] {
        component(program);
    }
    let out = tempfile::tempdir().unwrap();
    prepare(out.path()).await;
    let out = out.path();
    let printed = json_in(&out.join("proof.json"));
    assert_eq!(printed["host_build"], "20348.2402");
    assert_eq!(printed["certificate"].as_str().unwrap().len(), 40);
    let images = printed["images"].as_array().unwrap();
    let names: Vec<&str> = images
        .iter()
        .map(|image| image["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["app", "iis", "pause"]);
    for image in images {
        let name = image["name"].as_str().unwrap();
        assert_eq!(
            image["reference"],
            format!("wincimg-proof-{name}:20348.2402")
        );
        assert!(out.join(image["archive"].as_str().unwrap()).is_file());
        let hives = out.join("hives").join(name);
        for whole in ["SYSTEM", "SOFTWARE"] {
            assert!(hives.join("00").join(whole).is_file(), "{name}: {whole}");
        }
        for delta in DELTAS {
            let delta = fs::read(hives.join("01").join(delta)).unwrap();
            kernel_rules::check(&delta).unwrap();
        }
        let report = json_in(&out.join(image["report"].as_str().unwrap()));
        let layers = report["images"][0]["registry"]["layers"]
            .as_array()
            .unwrap();
        let changes = layers.last().unwrap()["changes"].as_array().unwrap();
        assert_known(changes);
    }
    assert!(out.join("scripts/node.ps1").is_file());
    let program = fs::read(out.join("bin/argv.exe")).unwrap();
    assert!(program.starts_with(b"MZ"));
}

/// Asserts that Prove.ps1 knows the terms of `inspect`.
fn assert_known(changes: &[Value]) {
    let script = script();
    assert!(!changes.is_empty());
    for change in changes {
        let action = change["action"].as_str().unwrap();
        assert!(
            action == "set_value" || script.contains(&format!("'{action}'")),
            "{change}"
        );
        if let Some(kind) = change["type"].as_str() {
            assert!(script.contains(&format!("{kind} = ")), "{change}");
        }
    }
}

/// The grammar accepts some syntax that Windows rejects, and rejects an empty block, which Windows
/// accepts.
#[test]
fn a_grammar_of_powershell_reads_the_script() {
    let errors = syntax_errors(&script());
    assert!(errors.is_empty(), "{errors:#?}");
}

/// Windows PowerShell reads a file without a BOM in the machine's code page.
#[test]
fn the_script_is_in_ascii_and_speaks_no_newer_powershell() {
    let script = script();
    assert!(script.is_ascii());
    // Operators unknown to PowerShell 5.1.
    for (number, line) in script.lines().enumerate() {
        for operator in [" ?? ", "??=", " && ", " || ", "?."] {
            let in_text = line.contains("'RUN ");
            assert!(
                in_text || !line.contains(operator),
                "{}: {line}",
                number + 1
            );
        }
    }
}

#[test]
fn mono_compiles_what_asks_windows() {
    let compiler = component("mcs");
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(compiler)
        // The language version that Windows PowerShell's Add-Type compiles.
        .args(["-langversion:5", "-warnaserror", "-target:library"])
        .arg(format!("-out:{}/Proof.dll", folder.path().display()))
        .arg(format!("{HERE}/Proof.cs"))
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{printed}");
}

/// The page next to the script has exactly one row for each check.
#[test]
fn every_check_is_on_the_page() {
    let script = script();
    let mut checks: BTreeSet<String> = script
        .lines()
        .filter_map(|line| line.split_once("Register-Check -Name "))
        .filter_map(|(_, rest)| rest.strip_prefix('\'')?.split('\'').next())
        .map(str::to_owned)
        .collect();
    for name in ["pause", "app", "iis"] {
        checks.insert(format!("registry-{name}"));
    }
    for name in ["hotfix", "node"] {
        checks.insert(format!("script-{name}"));
    }
    let page = fs::read_to_string(format!("{HERE}/README.md")).unwrap();
    let (_, list) = page.split_once("\n## Checks\n").unwrap();
    let (list, _) = list.split_once("\n## ").unwrap();
    let rows: BTreeSet<String> = list
        .lines()
        .filter_map(|line| line.strip_prefix("- ")?.split(':').next())
        .flat_map(|names| names.split(", "))
        .map(|name| name.trim_matches('`'))
        .map(str::to_owned)
        .collect();
    assert_eq!(rows, checks);
}
