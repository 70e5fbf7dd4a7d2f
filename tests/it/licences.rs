//! Everything that is compiled into the program may be used and passed on freely.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use serde_json::Value;
use spdx::{Expression, LicenseId};

/// Licences that ask for no more than their notice.
const PERMISSIVE: [&str; 12] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

#[test]
fn every_dependency_has_a_permissive_licence() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 50, "{} packages", packages.len());
    let refused: Vec<String> = packages
        .iter()
        .filter(|package| !is_permissive(package["license"].as_str().unwrap_or_default()))
        .map(|package| format!("{}: {}", package["name"], package["license"]))
        .collect();
    assert!(refused.is_empty(), "{refused:#?}");
}

fn is_permissive(licence: &str) -> bool {
    // Older crates separate their choices with a slash.
    Expression::parse(&licence.replace('/', " OR ")).is_ok_and(|expression| {
        expression.evaluate(|requirement| {
            requirement
                .license
                .id()
                .is_some_and(|id: LicenseId| PERMISSIVE.contains(&id.name))
        })
    })
}

#[test]
fn a_licence_that_binds_is_refused() {
    assert!(is_permissive("MIT/Apache-2.0"));
    assert!(is_permissive("GPL-3.0-only OR MIT"));
    assert!(!is_permissive("GPL-3.0-only"));
    assert!(!is_permissive("MIT AND AGPL-3.0-only"));
    assert!(!is_permissive(""));
}
