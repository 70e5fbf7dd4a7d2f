//! `image sbom`, on images that others made, and `image export`, read by Python's tarfile.

use wincimg_testkit::sbom_readers::{problems, python_with_readers};

use super::*;
use crate::site::zip_of;
use crate::terminal::on_terminal;

const UNINSTALL: &str = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Uninstall";

fn uninstall(id: &str, name: &str, version: &str) -> Vec<RegistryEdit> {
    let key = format!(r"{UNINSTALL}\{id}");
    vec![
        set(&key, "DisplayName", RegistryData::sz(name)),
        set(&key, "DisplayVersion", RegistryData::sz(version)),
        set(&key, "Publisher", RegistryData::sz("Example Corp")),
    ]
}

/// An image with packages of every kind that its files say without a compiler.
fn with_packages() -> Images {
    let pom = b"#x\ngroupId=org.example\nartifactId=core\nversion=1.2.3\n";
    let inner = zip_of(&[("META-INF/maven/org.example/core/pom.properties", pom)]);
    let manifest = b"Manifest-Version: 1.0\r\nImplementation-Version: 4.0.0\r\n\
        Implementation-Vendor: Exa\r\n mple\r\n\r\nName: x\r\n";
    let plain = zip_of(&[("META-INF/MANIFEST.MF", manifest)]);
    let boot = zip_of(&[
        ("BOOT-INF/lib/core-1.2.3.jar", &inner[..]),
        ("META-INF/MANIFEST.MF", &b"A: b\n"[..]),
    ]);
    let mut tar = LayerTar::default();
    tar.file(
        "Files/app/node_modules/left-pad/package.json",
        "\u{feff}{\"name\":\"left-pad\",\"version\":\"1.3.0\"}".as_bytes(),
        None,
    )
    .file(
        "Files/py/site-packages/requests-2.31.0.dist-info/METADATA",
        b"Name: requests\nVersion: 2.31.0\n",
        None,
    )
    .file("Files/lib/tool-4.0.0.jar", &plain, None)
    .file("Files/lib/boot.jar", &boot, None)
    .file("Files/lib/broken.jar", b"PK\x03\x04 not a zip", None);
    let mut edits = uninstall("{A}", "Agent", "1.0");
    edits.extend(uninstall("{B}", "Bundle", "2.0"));
    edits.extend(uninstall("{C}", "Console", "3.0"));
    edits.extend(uninstall("{D}", "Daemon", "4.0"));
    edits.extend(uninstall("{E}", "Editor", "5.0"));
    let first = with_hive(tar, &edits);
    let mut edits = uninstall("{A}", "Agent", "1.1");
    let key = |id: &str| format!(r"{UNINSTALL}\{id}");
    edits.push(delete_key(&key("{B}")));
    edits.push(set(&key("{D}"), "DisplayVersion", RegistryData::sz("4.1")));
    edits.push(delete_value(&key("{E}"), "DisplayName"));
    let second = with_hive(LayerTar::default(), &edits);
    let images = Images::new();
    images.put("web", &image("17763.1158", vec![bottom(), first, second]));
    images
}

#[test]
fn packages_of_an_image_that_others_made_are_listed_by_layer() {
    let images = with_packages();
    let found = images.json(&["sbom", "oci:web"]);
    let packages = found["packages"].as_array().unwrap().iter();
    let rows: BTreeSet<(String, u64)> = packages
        .map(|it| {
            (
                it["purl"].as_str().unwrap().to_owned(),
                it["layers"][0].as_u64().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("pkg:generic/Agent@1.1?product_code=%7BA%7D", 3),
        ("pkg:generic/Console@3.0?product_code=%7BC%7D", 2),
        ("pkg:generic/Daemon@4.1?product_code=%7BD%7D", 3),
        ("pkg:maven/org.example/core@1.2.3", 2),
        ("pkg:maven/tool@4.0.0", 2),
        ("pkg:npm/left-pad@1.3.0", 2),
        ("pkg:pypi/requests@2.31.0", 2),
    ];
    let expected = expected.map(|(purl, layer)| (purl.to_owned(), layer));
    assert_eq!(rows, BTreeSet::from(expected));
    let windows = json!({"version": "10.0.17763.1158", "kb": "KB4549949", "product": "11572",
        "name": found["windows"]["name"]});
    assert_eq!(found["windows"], windows);
    let text = images.text(&["sbom", "oci:web"]);
    assert_contains!(text, "with KB4549949", "7 packages", r"C:\lib\boot.jar");
}

#[test]
fn one_package_is_not_packages() {
    let mut tar = LayerTar::default();
    let package = br#"{"name": "left-pad", "version": "1.3.0"}"#;
    tar.file(
        "Files/app/node_modules/left-pad/package.json",
        package,
        None,
    );
    let images = Images::new();
    images.put("one", &image("17763.1158", vec![bottom(), tar.tar()]));
    let text = images.text(&["sbom", "oci:one"]);
    assert!(text.ends_with("\n1 package\n"), "{text}");
}

#[test]
fn the_sbom_of_any_image_is_valid_in_both_formats() {
    let images = with_packages();
    let python = python_with_readers();
    let bill = |name: &str, typed: &[&str]| {
        let arguments = [&["sbom", "oci:web", "-o", name], typed].concat();
        run(&mut images.command(&arguments));
        fs::read(images.path(name)).unwrap()
    };
    let [spdx, cyclonedx] = ["bom.spdx.json", "bom.cdx.json"].map(|name| bill(name, &[]));
    for (format, bytes) in [("spdx", &spdx), ("cyclonedx", &cyclonedx)] {
        let [found] = problems(&python, format, [bytes]);
        assert_eq!(found, Vec::<String>::new());
        let text = String::from_utf8_lossy(bytes);
        assert_contains!(text, "pkg:maven/org.example/core@1.2.3");
    }
    // The name of the file decides, unless the format is typed.
    assert!(bill("bom.json", &["--format", "cyclonedx"]) == cyclonedx);
}

#[test]
fn export_writes_what_tarfile_merges() {
    let images = versions();
    run(&mut images.command(&["export", "oci:two", "-o", "two.tar"]));
    let script = "import json, sys, tarfile\n\
        tar = tarfile.open(sys.argv[1])\n\
        json.dump([[m.name, m.size] for m in tar if m.isfile()], sys.stdout)";
    let list = |file: &Path| -> BTreeMap<String, u64> {
        let mut command = Command::new(component("python3"));
        let output = run(command.args(["-c", script]).arg(file));
        let rows: Vec<(String, u64)> = serde_json::from_slice(&output.stdout).unwrap();
        rows.into_iter().collect()
    };
    let expected = images.by_python("two").into_iter();
    let expected = expected.filter(|(_, kind, _)| kind == "file");
    let expected: BTreeMap<String, u64> = expected
        .map(|(path, _, size)| (path[3..].replace('\\', "/"), size))
        .collect();
    assert_eq!(list(&images.path("two.tar")), expected);

    // The same bytes, also through a pipe.
    let piped = run(&mut images.command(&["export", "oci:two"])).stdout;
    assert_eq!(piped, fs::read(images.path("two.tar")).unwrap());
    let errors = images
        .command(&["export", "oci:one", "--path", r"C:\app"])
        .tells(0);
    assert_contains!(errors, r"such as C:\app\out");
}

#[test]
fn a_tar_is_not_written_to_a_terminal() {
    let images = versions();
    let line = "wincimg image export oci:one";
    let (shown, is_success) = on_terminal(images.folder.path(), 200, line);
    assert!(!is_success, "{shown}");
    assert_contains!(shown, "the tar is not written to a terminal");
}
