//! Short flags and names of files that mean the same everywhere.

use std::fs;

use crate::site::{Site, stderr};

fn pod(image: &str) -> String {
    format!(
        "kind: Pod\nmetadata: {{name: p}}\nspec: {{nodeSelector: {{kubernetes.io/os: windows}}, \
         containers: [{{image: \"{image}\"}}]}}\n"
    )
}

fn check(site: &Site, words: &[&str]) -> (i32, String, String) {
    let mut command = site.command(&["check-compat", "--host-build", "17763.973", "--offline"]);
    let output = command.args(words).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code().unwrap(), said, stderr(&output))
}

#[test]
fn workloads_are_files_folders_and_patterns() {
    let site = Site::new();
    site.write("deploy/a.yaml", pod("repo.lan/a:1"));
    site.write("deploy/more/b.yml", pod("repo.lan/b:1"));
    site.write("deploy/values.yaml", "replicas: 3\n");
    site.write("deploy/README.md", "no manifest");
    for (arguments, images) in [
        (&["-f", "deploy"][..], &["repo.lan/a:1", "repo.lan/b:1"][..]),
        (&["-f", "deploy/*.yaml"], &["repo.lan/a:1"]),
        (&["--workloads", "deploy/**/*.yml"], &["repo.lan/b:1"]),
        (
            &["-f", "deploy/a.yaml", "-f", "deploy/more"],
            &["repo.lan/a:1", "repo.lan/b:1"],
        ),
    ] {
        let (code, said, told) = check(&site, arguments);
        assert_eq!(code, 1, "{arguments:?}: {told}");
        for image in ["repo.lan/a:1", "repo.lan/b:1"] {
            assert_eq!(
                said.contains(image),
                images.contains(&image),
                "{arguments:?}: {said}"
            );
        }
    }
    let (_, _, told) = check(&site, &["-f", "deploy"]);
    assert_contains!(told, "values.yaml");
    // A named file must be one, and a folder or a pattern must find one.
    assert_eq!(check(&site, &["-f", "deploy/values.yaml"]).0, 2);
    for nothing in ["none/*.yaml", "empty"] {
        fs::create_dir_all(site.path("empty")).unwrap();
        let (code, _, told) = check(&site, &["-f", nothing]);
        assert!(code >= 2, "{nothing}: {told}");
        assert!(told.contains(nothing), "{nothing}: {told}");
    }
    // A broken manifest in a folder must not pass.
    site.write("deploy/broken.yaml", "kind: Pod\n  spec: [\n");
    for (path, expected) in [("deploy", 1), ("deploy/broken.yaml", 2)] {
        let (code, _, told) = check(&site, &["-f", path]);
        assert_eq!(code, expected, "{told}");
        assert_contains!(told, "broken.yaml");
    }
}

#[test]
fn the_name_of_the_output_decides_on_its_format() {
    let site = Site::new();
    let image = ["--image-build", "17763.973"];
    for (name, start) in [
        ("r.html", "<!DOCTYPE html>"),
        ("r.json", "{"),
        ("r.md", "#"),
        ("r.sarif", "{"),
        ("r.xml", "<?xml"),
    ] {
        let (code, _, told) = check(&site, &[&image[..], &["-o", name]].concat());
        assert_eq!(code, 0, "{told}");
        let text = site.text(name);
        assert!(text.trim_start().starts_with(start), "{name}: {text}");
    }
    let said = ["-o", "r.html", "--format", "json"];
    check(&site, &[&image[..], &said].concat());
    assert!(site.text("r.html").starts_with('{'));
}

#[test]
fn a_user_has_dockers_flags() {
    let site = Site::new();
    for flag in ["-u", "--username", "--user"] {
        let words = ["login", "127.0.0.1:1", flag, "bob", "--password-stdin"];
        let output = site.command(&words).output().unwrap();
        // The password is missing, not the flag.
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert_contains!(stderr(&output), "password is empty");
    }
}
