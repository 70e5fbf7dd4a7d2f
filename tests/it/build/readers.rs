//! Built images read by other programs: docker-registry, skopeo, tar, Python.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::layout::blob_in;
use wincimg_testkit::{component, noise};

use crate::failure::Failure;
use crate::site::{Site, json_of, stderr};

/// Runs a program and returns its output.
pub(super) fn run(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{} {arguments:?}: {}",
        program.display(),
        stderr(&output)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn docker_registry_and_skopeo_take_what_is_pushed() {
    let skopeo = component("skopeo");
    let registry = DockerRegistry::plain();
    let site = Site::new();
    let target = registry.host();
    let mut command = site.build("pause");
    command.args(["--host-build", "20348.2402", "--host-build", "17763.973"]);
    command
        .args(["--registry", &format!("{target}/k8s"), "--push"])
        .args(["--tag", "3.9"]);
    command.args(["--insecure-registry", &target]);
    let built = json_of(&mut command);

    let index = format!("docker://{target}/k8s/pause:3.9");
    let raw = run(&skopeo, &["inspect", "--raw", "--tls-verify=false", &index]);
    let raw: Value = serde_json::from_str(&raw).unwrap();
    let versions: Vec<_> = raw["manifests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["platform"]["os.version"].as_str().unwrap())
        .collect();
    assert_eq!(versions, ["10.0.20348.2402", "10.0.17763.973"]);

    let one = format!("docker://{target}/k8s/pause:3.9-10.0.17763.973");
    let inspected = run(
        &skopeo,
        &[
            "inspect", "--override-os", "windows", "--tls-verify=false", &one,
        ],
    );
    let inspected: Value = serde_json::from_str(&inspected).unwrap();
    assert_eq!(inspected["Digest"], built["images"][0]["digest"]);
    assert_eq!(inspected["Os"], "windows");

    let copy = site.path("copy");
    let to = format!("oci:{}:all", copy.display());
    run(
        &skopeo,
        &[
            "--insecure-policy", "copy", "--all", "--src-tls-verify=false", &index, &to,
        ],
    );
}

#[test]
fn skopeo_reads_layouts_and_archives_and_tar_their_layers() {
    let skopeo = component("skopeo");
    let site = Site::new();
    site.write("files/Ärger/naïve file.txt", "text");
    fs::create_dir_all(site.path("files/empty")).unwrap();
    site.write(
        "recipe.toml",
        "name = \"app\"\nbase = \"nanoserver\"\nshutdown_timeout = 60\n\
         [[files]]\nfrom = \"files\"\nto = 'C:\\app'\n",
    );
    let built = json_of(
        site.build(".")
            .args(["--host-build", "17763.973", "--tag", "1"])
            .args(["--output", "oci:layout"]),
    );
    json_of(
        site.build(".")
            .args(["--host-build", "17763.973", "--tag", "1"])
            .args(["--output", "docker-archive:app.tar"]),
    );
    let layout = format!("oci:{}:1", site.path("layout").display());
    let archive = format!("docker-archive:{}", site.path("app.tar").display());
    for place in [&layout, &archive] {
        let text = run(
            &skopeo,
            &["inspect", "--config", "--override-os", "windows", place],
        );
        let config: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(config["os.version"], "10.0.17763.973", "{place}");
    }

    let layer = &built["images"][0]["layers"][1]["digest"];
    let blob = blob_in(&site.path("layout"), layer);
    let blob = blob.to_str().unwrap();
    let expected = [
        "Hives",
        "Hives/DefaultUser_Delta",
        "Hives/Sam_Delta",
        "Hives/Security_Delta",
        "Hives/Software_Delta",
        "Hives/System_Delta",
        "Files",
        "Files/app",
        "Files/app/empty",
        "Files/app/Ärger",
        "Files/app/Ärger/naïve file.txt",
    ];
    let listing = run(Path::new("tar"), &["--quoting-style=literal", "-tzf", blob]);
    let names: Vec<_> = listing
        .lines()
        .map(|line| line.trim_end_matches('/'))
        .collect();
    assert_eq!(names, expected);
    let script = "import sys, tarfile\nfor m in tarfile.open(sys.argv[1]): print(m.name)";
    let listing = run(Path::new("python3"), &["-c", script, blob]);
    assert_eq!(listing.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn a_limit_on_file_sizes_is_an_error_and_leaves_no_image() {
    let site = Site::new();
    site.write(
        "big/recipe.toml",
        "name = \"big\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \"files\"\nto = 'C:\\big'\n",
    );
    let copies = (0..8).map(|number| {
        site.write(&format!("big/files/{number}"), noise(1 << 20, number));
        format!("COPY {number} C:/{number}\n")
    });
    let copies: Vec<String> = copies.collect();
    let from = "FROM mcr.microsoft.com/windows/nanoserver:10.0.17763.973\n";
    site.write("big/files/Dockerfile", from.to_owned() + &copies.concat());
    fs::create_dir(site.path("tmp")).unwrap();
    // The first has a layer beyond the limit, the second only an archive.
    for (recipe, output) in [("big", "oci:out"), ("big/files", "docker-archive:out.tar")] {
        // By default, the signal of this limit ends a program.
        let mut command = site.limited("ulimit -f 5120", &["build", recipe, "--output", output]);
        command
            .args(["--host-build", "17763.973", "--format", "json"])
            .args(["--base-registry", &format!("{}/mcr", site.host())])
            .env("TMPDIR", site.path("tmp"));
        let failure = Failure::of(&command.output().unwrap());
        assert!(failure.message.contains("File too large"), "{failure:?}");
        assert!(failure.hint.contains("ulimit -f"), "{failure:?}");
    }
    let index = fs::read_to_string(site.path("out/index.json"));
    assert!(!index.is_ok_and(|index| index.contains("digest")));
    for folder in [site.path("tmp"), site.folder.path().to_owned()] {
        let names = fs::read_dir(&folder).unwrap();
        let mut names = names.map(|entry| entry.unwrap().file_name());
        // The layout may be there, without an image.
        let left = names.find(|name| !["big", "out", "tmp"].iter().any(|own| name == own));
        assert_eq!(left, None, "{}", folder.display());
    }
}
