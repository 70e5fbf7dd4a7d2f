use std::collections::BTreeSet;

use serde_json::{Value, json};
use wincimg_testkit::sbom_readers::{as_syft_reads_it, problems, python_with_readers};

use super::{build_to_layout, document_in, with_packages};

const BOTH: [&str; 4] = ["--sbom", "spdx", "--sbom", "cyclonedx"];

fn purls_of_spdx(document: &Value) -> BTreeSet<String> {
    let packages = document["packages"].as_array().unwrap().iter();
    let refs = packages.filter_map(|package| package["externalRefs"].as_array());
    refs.flatten()
        .filter(|found| found["referenceType"] == "purl")
        .map(|found| found["referenceLocator"].as_str().unwrap().to_owned())
        .collect()
}

const PACKAGES: [&str; 4] = [
    "pkg:npm/%40scope/tool@2.0.0",
    "pkg:npm/left-pad@1.3.0",
    "pkg:nuget/Newtonsoft.Json@13.0.3",
    "pkg:pypi/requests@2.31.0",
];

#[test]
fn both_bills_name_windows_its_update_files_and_packages() {
    let site = with_packages();
    let built = build_to_layout(&site, &BOTH);
    let spdx: Value = serde_json::from_slice(&document_in(&site, &built, "SPDX")).unwrap();
    let cyclone: Value = serde_json::from_slice(&document_in(&site, &built, "CycloneDX")).unwrap();
    let purls = purls_of_spdx(&spdx);
    for purl in PACKAGES {
        assert!(purls.contains(purl), "{purl}: {purls:?}");
    }
    let components = cyclone["components"].as_array().unwrap();
    let has = |field: &str, value: &str| components.iter().any(|it| it[field] == value);
    for purl in PACKAGES {
        assert!(has("purl", purl), "{purl}");
    }
    let cpe = "cpe:2.3:o:microsoft:windows_server_2019:10.0.17763.973:*:*:*:*:*:*:*";
    assert!(has("cpe", cpe));
    let described = components
        .iter()
        .filter_map(|it| it["description"].as_str());
    let mut described = described.filter(|it| it.contains("KB4534273"));
    assert!(described.any(|it| it.starts_with("Windows Server 2019 (1809) ")));
    let packages = spdx["packages"].as_array().unwrap();
    let system = packages
        .iter()
        .find(|it| it["primaryPackagePurpose"] == "OPERATING-SYSTEM");
    assert_eq!(system.unwrap()["versionInfo"], "10.0.17763.973");
    let comment = system.unwrap()["comment"].as_str().unwrap();
    assert_contains!(comment, "KB4534273");

    let files: Vec<&str> = spdx["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["fileName"].as_str().unwrap())
        .collect();
    assert!(files.contains(&"./Files/app/web.config"), "{files:?}");
    assert!(files.contains(&"./Hives/Software_Delta"), "{files:?}");
    let of_files = components.iter().filter(|it| it["type"] == "file").count();
    assert_eq!(of_files, files.len());
    let config = spdx["files"].as_array().unwrap().iter();
    let config = config.filter(|file| file["fileName"] == "./Files/app/web.config");
    let sums: Vec<&Value> = config
        .flat_map(|it| it["checksums"].as_array().unwrap())
        .collect();
    // printf '<configuration/>' | sha1sum
    let sha1 = "5f5a4ef4cdba1cb9518b84f9626116de48045bb3";
    assert_eq!(
        *sums[0],
        json!({"algorithm": "SHA1", "checksumValue": sha1})
    );
}

#[test]
fn a_document_is_the_same_whenever_it_is_made() {
    let all = ["--sbom", "spdx", "--sbom", "cyclonedx", "--provenance"];
    // One registry: its port is part of the base's name, which the image records.
    let site = with_packages();
    let made = || {
        let mut command = site.build(".");
        command.args(["--host-build", "17763.973", "--tag", "1"]);
        command.args(["--output", "oci:layout"]).args(all);
        let built = crate::site::json_of(command.env("SOURCE_DATE_EPOCH", "1700000000"));
        let documents =
            ["SPDX", "CycloneDX", "provenance"].map(|name| document_in(&site, &built, name));
        std::fs::remove_dir_all(site.path("layout")).unwrap();
        documents
    };
    let (first, second) = (made(), made());
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    for (first, second) in first.iter().zip(&second) {
        assert_eq!(text(first), text(second));
    }
    assert!(text(&first[0]).contains(r#""created":"2023-11-14T22:13:20Z""#));
    assert!(!text(&first[2]).contains("startedOn"));
}

#[test]
fn the_formats_own_libraries_find_nothing_wrong_and_syft_all_packages() {
    let python = python_with_readers();
    let site = with_packages();
    let mut all = BOTH.to_vec();
    all.push("--provenance");
    let built = build_to_layout(&site, &all);
    for (name, form) in [
        ("SPDX", "spdx"),
        ("CycloneDX", "cyclonedx"),
        ("provenance", "slsa"),
    ] {
        let text = String::from_utf8(document_in(&site, &built, name)).unwrap();
        let broken = text.replace("NOASSERTION\",\"copyright", "???\",\"copyright");
        let broken = broken.replace("\"container\"", "\"bottle\"");
        let broken = broken.replace("\"buildType\"", "\"buildKind\"");
        let [found, of_broken] = problems(&python, form, [text.as_bytes(), broken.as_bytes()]);
        assert_eq!(found, Vec::<String>::new(), "{name}");
        // The libraries do validate.
        assert_ne!(of_broken, Vec::<String>::new(), "{name}");
    }
    // What grype reads with finds the packages and Windows.
    for name in ["SPDX", "CycloneDX"] {
        let read = as_syft_reads_it(&python, name, &document_in(&site, &built, name));
        let artifacts = read["artifacts"].as_array().unwrap();
        let found: BTreeSet<&str> = artifacts
            .iter()
            .filter_map(|it| it["purl"].as_str())
            .collect();
        for purl in PACKAGES {
            assert!(found.contains(purl), "{name} {purl}: {found:?}");
        }
        if name == "CycloneDX" {
            // Grype looks up only packages with one of these types.
            for (purl, kind) in PACKAGES.iter().zip(["npm", "npm", "dotnet", "python"]) {
                let package = artifacts.iter().find(|it| it["purl"] == *purl).unwrap();
                assert_eq!(package["type"], kind, "{package}");
            }
            assert_eq!(read["distro"]["id"], "windows", "{}", read["distro"]);
            assert_eq!(read["distro"]["versionID"], "11572");
            let update = artifacts.iter().find(|it| it["type"] == "msrc-kb").unwrap();
            assert_eq!(update["name"], "11572");
            assert_eq!(update["version"], "4534273");
        }
    }
}
