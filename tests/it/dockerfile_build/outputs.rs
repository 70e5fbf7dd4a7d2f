//! What a build writes is not in its context, nor left of a failed one.

use std::os::unix::fs::symlink;

use serde_json::json;

use super::{BASE, build, files, plan, site};
use crate::failure::Fails;
use crate::site::{Site, json_of};

#[test]
fn what_a_build_writes_is_not_in_its_context() {
    let written = [
        "--cache-dir", "cache", "--metadata-file", "metadata.json", "--iidfile", "id",
    ];
    for output in ["", "oci:out", "docker-archive:out.tar"] {
        let site = Site::new();
        site.write("a.txt", "a");
        site.write("Dockerfile", format!("FROM {BASE}\nCOPY . /x/\n"));
        let build = || {
            let mut build = site.build(".");
            build.args(["--host-build", "17763.973", "--name", "app"]);
            build.args(written);
            if !output.is_empty() {
                build.args(["--output", output]);
            }
            build
        };
        let digests = [(); 2].map(|()| json_of(&mut build())["images"][0]["digest"].take());
        assert_eq!(digests[0], digests[1], "{output}");
        // The file of the last build is removed before, the cache stays.
        for (copied, name) in [("metadata.json", "metadata.json"), ("Cache", "cache")] {
            site.write("Dockerfile", format!("FROM {BASE}\nCOPY {copied} /x/\n"));
            let problem = [&format!("{name:?}"), "builds write it", "another name"];
            build().fails(2, "dockerfile/invalid", &problem);
        }
    }
}

#[test]
fn a_cache_is_not_in_the_image_and_not_the_folder_of_its_files() {
    let site = Site::new();
    site.write("Dockerfile", format!("FROM {BASE}\nCOPY . /x/\n"));
    let files = "name = \"app\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \".\"\nto = 'C:\\app'\n";
    site.write("web/recipe.toml", files);
    let build = |image: &str, cache: &str| {
        let mut build = site.build(image);
        build.args(["--host-build", "17763.973", "--cache-dir", cache]);
        build
    };
    for folder in [".", "web"] {
        let refused = build(folder, folder).fails(2, "output/inside", &["the cache ", folder]);
        refused.advises(&["--cache-dir"]);
        assert!(!site.path(folder).join("documents").exists(), "{folder}");
    }
    // One below it is left out.
    let digests = [(); 2].map(|()| {
        let mut build = build("web", "web/cache");
        json_of(&mut build)["images"][0]["digest"].take()
    });
    assert!(site.path("web/cache").is_dir());
    assert_eq!(digests[0], digests[1]);
}

#[test]
fn what_a_build_writes_is_not_in_the_folders_of_a_recipe() {
    let site = Site::new();
    let files = "name = \"app\"\nbase = \"nanoserver\"\n[[files]]\nfrom = \".\"\nto = 'C:\\app'\n";
    site.write("web/recipe.toml", files);
    let digests = [(); 2].map(|()| {
        let mut build = site.build("web");
        build.args(["--host-build", "17763.973", "-o", "oci:out"]);
        build.args(["--metadata-file", "web/m.json", "--iidfile", "web/id"]);
        json_of(&mut build)["images"][0]["digest"].take()
    });
    assert!(site.path("web/m.json").is_file());
    assert_eq!(digests[0], digests[1]);
}

#[test]
fn default_outputs_of_other_images_are_not_in_the_context() {
    let site = Site::new();
    for name in ["a", "b"] {
        let lines = format!("FROM {BASE}\nENV A={name}\nCOPY . /x/\n");
        site.write(&format!("app/{name}.Dockerfile"), lines);
    }
    let built = |folder: &str, name: &str| {
        let mut build = site.build(if folder == "." { "./app" } else { "." });
        build.current_dir(site.path(folder));
        let file = site.path(&format!("app/{name}.Dockerfile"));
        build.arg("-f").arg(file);
        build.args(["--host-build", "17763.973", "-t", &format!("{name}:1")]);
        json_of(&mut build)["images"][0]["digest"].take()
    };
    let first = ["a", "b"].map(|name| built("app", name));
    assert!(site.path("app/a-1/index.json").is_file());
    for folder in ["app", "."] {
        assert_eq!(
            ["a", "b"].map(|name| built(folder, name)),
            first,
            "{folder}"
        );
    }
}

#[test]
fn layouts_of_other_programs_are_in_the_context() {
    let digest = format!("sha256:{}", "0".repeat(64));
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    let mut entry = json!({"mediaType": media_type, "digest": digest, "size": 2});
    let tag = ("org.opencontainers.image.ref.name", "1");
    let index_type = "application/vnd.oci.image.index.v1+json";
    for (from, index_type, annotations) in [
        (".", Some(index_type), vec![]),
        // As skopeo and BuildKit write them.
        (".", None, vec![tag]),
        (
            ".",
            Some(index_type),
            vec![tag, ("io.containerd.image.name", "given:1")],
        ),
        // One that could be a default output is named.
        ("given-1/", Some(index_type), vec![tag]),
        ("given-*", Some(index_type), vec![tag]),
    ] {
        entry["annotations"] = annotations.into_iter().collect();
        let site = site(&format!("COPY {from} /x/"), &[]);
        let mut index = json!({"schemaVersion": 2, "manifests": [&entry]});
        if let Some(index_type) = index_type {
            index["mediaType"] = json!(index_type);
        }
        site.write(
            "app/given-1/oci-layout",
            "{\"imageLayoutVersion\":\"1.0.0\"}",
        );
        site.write("app/given-1/index.json", index.to_string());
        let files = files(&plan(&site, &[]));
        let is_there = files.iter().any(|file| file.ends_with("index.json"));
        assert!(is_there, "{files:?}");
    }
}

#[test]
fn a_failed_build_leaves_no_files_about_an_earlier_image() {
    let site = site("COPY none /x/", &[]);
    let written = ["--iidfile", "id", "--metadata-file", "m.json"];
    let old = format!("sha256:{}", "0".repeat(64));
    site.write("real-id", &old);
    symlink("real-id", site.path("id")).unwrap();
    site.write("m.json", json!({"containerimage.digest": old}).to_string());
    build(&site, &written).fails(2, "dockerfile/invalid", &["none"]);
    assert!(!site.path("id").exists() && !site.path("m.json").exists());
    assert!(site.path("id").is_symlink());
    for output in [
        ["--iidfile", "app/Dockerfile"],
        ["-o", "docker-archive:app/Dockerfile"],
    ] {
        build(&site, &output).fails(2, "usage", &["app/Dockerfile", "is built"]);
    }
    assert!(site.text("app/Dockerfile").starts_with("FROM"));
}

#[test]
fn a_source_that_a_flag_names_as_output_is_not_removed() {
    let site = site("COPY a.txt /x/", &["a.txt"]);
    for flag in ["--iidfile", "--metadata-file"] {
        let mut build = build(&site, &[flag, "app/a.txt"]);
        build.fails(2, "dockerfile/invalid", &["a.txt", "builds write it"]);
        assert_eq!(site.text("app/a.txt"), "a.txt");
    }
}
