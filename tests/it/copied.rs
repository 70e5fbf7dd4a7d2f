//! `wincimg push`, `copy`, `tag`, `digest` and `manifest`: what was built is what is pushed.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use wincimg_oci::document::sha256;
use wincimg_testkit::component;
use wincimg_testkit::docker_registry::DockerRegistry;

use crate::build::configuration::add_foreign_base;
use crate::build::joined::{add_linux, platforms, published};
use crate::failure::{Fails, note, says};
use crate::site::{Site, each, json_of, stderr};

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const ONE: [&str; 2] = ["--host-build", "17763.973"];
const TWO: [&str; 4] = ["--host-build", "17763.973", "--host-build", "20348.2402"];

fn line(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_layout_has_the_digest_of_its_push_and_keeps_it() {
    let site = Site::new();
    let docker = DockerRegistry::plain();
    let host = docker.host();
    for (name, hosts) in [("one", &ONE[..]), ("two", &TWO)] {
        let layout = format!("oci:{name}");
        let mut command = site.build("pause");
        command.args(hosts).args(["--tag", "1", "-o", &layout]);
        let built = json_of(command.args(["--metadata-file", "meta.json"]));
        let pushed = {
            let mut command = site.build("pause");
            command
                .args(hosts)
                .args(["-t", &format!("{host}/direct/{name}:1")]);
            json_of(command.args(["--push", "--insecure-registry", &host]))
        };
        let digest_of = |built: &Value| {
            let index = &built["index"]["digest"];
            let digest = if index.is_null() {
                &built["images"][0]["digest"]
            } else {
                index
            };
            digest.as_str().unwrap().to_owned()
        };
        assert_eq!(digest_of(&built), digest_of(&pushed), "{name}");

        let target = format!("{host}/apps/{name}:1.4");
        let source = format!("oci:{name}:1");
        // The index has all other images of its layout.
        let mut push = site.command(&["push", "-q", &layout, &target]);
        let printed = line(push.args(["--insecure-registry", &host]));
        let pinned = format!("{host}/apps/{name}@{}", digest_of(&built));
        assert_eq!(printed, pinned);
        let metadata: Value = serde_json::from_str(&site.text("meta.json")).unwrap();
        assert_eq!(metadata["containerimage.digest"], digest_of(&built));
        // Skopeo reads what is there, as any other client.
        let skopeo = component("skopeo");
        let mut other = Command::new(skopeo);
        other.args(["inspect", "--raw", "--tls-verify=false"]);
        let raw = other.arg(format!("docker://{target}")).output().unwrap();
        assert!(raw.status.success(), "{}", stderr(&raw));
        let own = site.command(&["manifest", &source]).output().unwrap();
        assert_eq!(raw.stdout, own.stdout, "{name}");
        let mut again = site.command(&["push", &source, &target, "--insecure-registry", &host]);
        assert!(line(&mut again).contains("up to date"));
    }
}

#[test]
fn a_copy_has_another_name_and_the_same_digest() {
    let site = Site::new();
    let host = site.host();
    let mut command = site.build("pause");
    command
        .args(TWO)
        .args(["-t", &format!("{host}/pause:1"), "--push"]);
    let built = json_of(command.args(["--sbom", "spdx"]));
    let digest = built["index"]["digest"].as_str().unwrap();
    let from = format!("{host}/pause:1");
    let refused = site.with_no_bases(&["inspect", &from, "--sbom"]).tells(2);
    assert_contains!(refused, "--platform windows/amd64:10.0.20348.2402");
    for to in [
        format!("{host}/renamed/app:2"),
        "oci:copied:3".to_owned(),
        "oci:untagged".to_owned(),
    ] {
        let copied = json_of(&mut site.with_no_bases(&["copy", &from, &to]));
        assert_eq!(copied["digest"], digest, "{to}");
        assert_eq!(copied["artifacts"], 2, "{to}");
        let read = if to == "oci:untagged" {
            "oci:untagged:1"
        } else {
            &to
        };
        assert_eq!(line(&mut site.command(&["digest", read])), digest, "{to}");
        let platform = [
            "inspect", read, "--platform", "windows/amd64:17763", "--sbom",
        ];
        assert!(
            line(&mut site.command(&platform)).contains("spdxVersion"),
            "{to}"
        );
    }
    // The artifacts are pushed from a layout too.
    let there = format!("{host}/again:1");
    let pushed = json_of(&mut site.with_no_bases(&["push", "oci:copied:3", &there]));
    assert_eq!(
        (&pushed["digest"], &pushed["artifacts"]),
        (&digest.into(), &2.into())
    );

    let one = [
        "copy", &from, "docker-archive:a.tar", "--platform", "windows/amd64:17763",
    ];
    json_of(&mut site.with_no_bases(&one));
    let there = format!("{host}/from-archive:1");
    let pushed = json_of(&mut site.with_no_bases(&["push", "docker-archive:a.tar", &there]));
    assert_eq!(pushed["target"], there);
}

#[test]
fn an_image_that_was_built_here_is_named_beside_that_of_the_registry() {
    let site = Site::new();
    let name = format!("{}/app:1", site.host());
    json_of(site.build("pause").args(ONE).args(["-t", &name, "--push"]));
    json_of(site.build("pause").args(ONE).args(["-t", &name]));
    let other = format!("{}/app:2", site.host());
    for words in [["copy", &name, &other], ["tag", &name, "3"]] {
        let output = site.command(&words).output().unwrap();
        says(&stderr(&output), &note(&[&name, "oci:./app-1"]));
    }
}

#[test]
fn a_copy_does_not_remove_images_for_other_hosts_unless_told() {
    let site = Site::new();
    let there = format!("{}/pause:1", site.host());
    let mut command = site.build("pause");
    json_of(command.args(TWO).args(["-t", &there, "--push"]));
    let mut command = site.build("pause");
    json_of(command.args(ONE).args(["--tag", "1", "-o", "oci:one"]));
    let mut push = site.with_no_bases(&["push", "oci:one", &there]);
    let refused = push.fails(1, "tag/taken", &["10.0.20348.2402"]);
    refused.advises(&["--join", "--replace"]);
    let mut push = site.with_no_bases(&["push", "oci:one", &there, "--replace"]);
    json_of(&mut push);
}

#[test]
fn an_artifact_with_the_configuration_of_an_image_is_copied_again_and_protected() {
    let site = Site::new();
    let image = |tag: &str| format!("{}/app:{tag}", site.host());
    // As `oras push --artifact-platform` writes it.
    let config = r#"{"architecture":"amd64","os":"linux"}"#;
    site.registry.with(|stored| {
        let artifact = json!({"schemaVersion": 2, "mediaType": MANIFEST,
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json",
                "size": config.len(), "digest": sha256(config.as_bytes()).to_string()},
            "layers": [{"mediaType": "text/plain", "size": 2,
                "digest": sha256(b"{}").to_string()}]});
        stored.add_blob("app", config.into());
        stored.add_blob("app", "{}".into());
        stored.add_manifest("app", "artifact", MANIFEST, artifact.to_string().into());
    });
    let copy = |from: &str| site.with_no_bases(&["copy", &image(from), &image("1")]);
    for up_to_date in [false, true] {
        assert_eq!(json_of(&mut copy("artifact"))["up_to_date"], up_to_date);
    }
    let mut build = site.build("pause");
    json_of(build.args(ONE).args(["-t", &image("own"), "--push"]));
    copy("own").fails(1, "tag/taken", &["linux/amd64"]);
}

#[test]
fn a_tag_that_cannot_be_read_can_be_replaced() {
    let site = Site::new();
    let [from, to] = ["a", "broken"].map(|tag| format!("{}/app:{tag}", site.host()));
    json_of(site.build("pause").args(ONE).args(["-t", &from, "--push"]));
    site.registry.with(|stored| {
        let broken = json!({"schemaVersion": 2, "mediaType": MANIFEST, "layers": [],
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json",
                "size": 9_000_000, "digest": sha256(b"{}").to_string()}});
        stored.add_manifest("app", "broken", MANIFEST, broken.to_string().into());
    });
    let words = ["copy", &from, &to, "--replace"];
    let mut copy = site.with_no_bases(&words[..3]);
    copy.fails(3, "image/document", &["--replace"]);
    json_of(&mut site.with_no_bases(&words));
}

#[test]
fn one_job_joins_what_the_jobs_of_a_matrix_built() {
    let site = Site::new();
    let image = |tag: &str| format!("{}/app:{tag}", site.host());
    add_linux(&site);
    for (tag, host) in [("a", "17763.973"), ("b", "20348.2402")] {
        let mut command = site.build("pause");
        json_of(command.args(["--host-build", host, "-t", &image(tag), "--push"]));
    }
    let copy = |from: &str, more: &[&str]| {
        let mut command = site.with_no_bases(&["copy", &image(from), &image("1.4")]);
        command.args(more);
        command
    };
    let refused = copy("a", &[]).fails(1, "tag/taken", &["linux/amd64"]);
    refused.advises(&["--join", "--replace"]);
    let joined = json_of(&mut copy("a", &["--join"]));
    assert_eq!(joined["kept"], json!(["linux/amd64"]));
    let joined = json_of(&mut copy("b", &["--join"]));
    let kept = json!(["linux/amd64", "windows/amd64:10.0.17763.973"]);
    assert_eq!(joined["kept"], kept);
    assert_eq!(joined["up_to_date"], false);
    let index = published(&site);
    let expected = [
        "linux",
        "windows 10.0.20348.2402",
        "windows 10.0.17763.973",
        "unknown",
    ];
    assert_eq!(platforms(&index), expected);
    assert_eq!(index["annotations"]["team"], "web");
    let digest = line(&mut site.command(&["digest", &image("1.4")]));
    let again = json_of(&mut copy("b", &["--join"]));
    assert_eq!(
        (&again["digest"], &again["up_to_date"]),
        (&digest.into(), &true.into())
    );
    // A chart is no image, and its tag no index.
    site.registry.with(|stored| {
        let chart = json!({"schemaVersion": 2, "mediaType": MANIFEST, "layers": [],
            "config": {"mediaType": "application/vnd.cncf.helm.config.v1+json", "size": 2,
                "digest": sha256(b"{}").to_string()}});
        stored.add_manifest("app", "chart", MANIFEST, chart.to_string().into());
    });
    copy("chart", &["--join"]).fails(2, "usage", &["vnd.cncf.helm"]);
    let mut onto = site.with_no_bases(&["copy", &image("a"), &image("chart"), "--join"]);
    onto.fails(1, "tag/taken", &["vnd.cncf.helm", "--replace"]);
    let by_digest = format!("{}/app@sha256:{}", site.host(), "0".repeat(64));
    let mut untagged = site.with_no_bases(&["copy", &image("a"), &by_digest, "--join"]);
    untagged.fails(2, "usage", &["--join", &by_digest]);
}

#[test]
fn the_images_of_an_index_join_those_of_a_registry_and_of_a_layout() {
    let site = Site::new();
    let mut command = site.build("pause");
    command.args(TWO).args(["--tag", "1", "-o", "oci:two"]);
    json_of(command.args(["--sbom", "spdx"]));
    let there = format!("{}/app:2", site.host());
    for (verb, target) in [("push", there.as_str()), ("copy", "oci:joined:2")] {
        let join = |more: &[&str]| {
            let mut command = site.with_no_bases(&[verb, "oci:two:1", target, "--join"]);
            json_of(command.args(more))
        };
        let first = join(&["--platform", "windows/amd64:17763"]);
        assert_eq!(first["kept"], json!([]));
        assert_eq!(first["artifacts"], 1);
        let second = join(&["--platform", "windows/amd64:20348"]);
        assert_eq!(second["kept"], json!(["windows/amd64:10.0.17763.973"]));
        let all = join(&[]);
        assert_eq!((&all["kept"], &all["artifacts"]), (&json!([]), &2.into()));
        assert_eq!(all["digest"], second["digest"]);
        assert_eq!(all["up_to_date"], verb == "push");
        let found = json_of(&mut site.with_no_bases(&["inspect", target]));
        let versions = ["10.0.20348.2402", "10.0.17763.973"];
        assert_eq!(each(&found["images"], "os_version"), versions);
    }
    // The layout has one image to read without a tag: the index.
    line(&mut site.command(&["digest", "oci:joined"]));
}

#[test]
fn nothing_joins_an_archive_that_exists() {
    let site = Site::new();
    let mut command = site.build("pause");
    json_of(command.args(TWO).args(["--tag", "1", "-o", "oci:two"]));
    let copy = |more: &[&str]| {
        let archive = ["copy", "oci:two:1", "docker-archive:a.tar:app:1"];
        let mut command = site.with_no_bases(&archive);
        command.args(more);
        command
    };
    json_of(&mut copy(&["--platform", "windows/amd64:17763"]));
    let before = fs::read(site.path("a.tar")).unwrap();
    copy(&["--join"]).fails(2, "usage", &["a.tar"]);
    let mut build = site.build("pause");
    build.args(ONE).args(["-o", "docker-archive:a.tar"]);
    build.arg("--join").fails(2, "usage", &["a.tar"]);
    assert_eq!(fs::read(site.path("a.tar")).unwrap(), before);
}

#[test]
fn tags_are_added_to_what_is_there() {
    let site = Site::new();
    let from = format!("{}/pause:1", site.host());
    let mut command = site.build("pause");
    json_of(
        command
            .args(ONE)
            .args(["-t", &from, "--push", "-o", "oci:own"]),
    );
    for (image, tagged) in [
        (from.clone(), format!("{}/pause:stable", site.host())),
        ("oci:own:1".to_owned(), "oci:own:stable".to_owned()),
    ] {
        line(&mut site.command(&["tag", &image, "stable", "2"]));
        let digest = |image: &str| line(&mut site.command(&["digest", image]));
        assert_eq!(digest(&image), digest(&tagged));
        let manifest = |image: &str| site.command(&["manifest", image]).output().unwrap().stdout;
        assert_eq!(manifest(&image), manifest(&tagged));
    }
    // What `docker tag` takes.
    let whole = format!("{}/other:1", site.host());
    let refused = site.with_no_bases(&["tag", &from, &whole]).tells(2);
    assert_contains!(refused, &format!("wincimg copy IMAGE {whole}"));
    // An image for other hosts is named before it is replaced.
    let mut other = site.build("pause");
    other.args(["--host-build", "20348.2402", "--tag", "3"]);
    json_of(other.args(["-o", "oci:own"]));
    let mut taken = site.with_no_bases(&["tag", "oci:own:3", "stable"]);
    let removed = ["oci:own:stable", "windows/amd64:10.0.17763.973"];
    taken.assert().success().stderr(note(&removed));

    let index = format!("{}/mcr/windows/nanoserver:10.0.17763.973", site.host());
    for (command, image) in [("digest", &from), ("manifest", &from), ("digest", &index)] {
        let mut absent = site.with_no_bases(&[command, image, "--platform", "linux/amd64"]);
        absent.fails(1, "image/no-platform", &["windows/amd64:10.0.17763.973"]);
    }
}

#[test]
fn no_image_of_a_tag_that_several_have_is_lost() {
    let site = Site::new();
    for (host, tag) in [("17763.973", "a"), ("20348.2402", "b")] {
        let mut build = site.build("pause");
        json_of(build.args(["--host-build", host, "--tag", tag, "-o", "oci:own"]));
    }
    // As `docker save web:1.4 api:1.4` writes it.
    let mut index: Value = serde_json::from_str(&site.text("own/index.json")).unwrap();
    for (entry, name) in index["manifests"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .zip(["web", "api"])
    {
        entry["annotations"] = json!({
            "org.opencontainers.image.ref.name": "1.4",
            "io.containerd.image.name": format!("docker.io/library/{name}:1.4"),
        });
    }
    site.write("own/index.json", index.to_string());
    let web = "oci:own:docker.io/library/web:1.4";
    site.with_no_bases(&["tag", web, "1.4"])
        .fails(1, "tag/taken", &["own", "1.4"]);
    let mut copy = site.with_no_bases(&["copy", web, "oci:own:1.4"]);
    copy.fails(1, "tag/taken", &["own", "1.4"]);
    line(&mut site.command(&["tag", web, "stable"]));
    let after: Value = serde_json::from_str(&site.text("own/index.json")).unwrap();
    assert_eq!(after["manifests"].as_array().unwrap().len(), 3);
}

#[test]
fn a_foreign_layer_is_not_lost_on_its_way_through_a_layout() {
    let site = Site::new();
    add_foreign_base(&site);
    let host = site.host();
    let base = format!("{host}/mcr/windows/servercore:10.0.17763.973");
    let [kept, ordinary] = ["kept", "ordinary"].map(|name| format!("{host}/{name}:1"));
    // Its registry does not have it.
    let skipped = line(&mut site.command(&["copy", &base, &kept]));
    assert_contains!(skipped, "1 layer (18 B) not in the registry");
    json_of(&mut site.with_no_bases(&["copy", &base, "oci:base:1"]));
    for (is_there, action) in [(false, "copy"), (true, "present")] {
        let pushed = json_of(&mut site.with_no_bases(&["push", "oci:base:1", &kept]));
        assert_eq!(pushed["digest"], pushed["source_digest"]);
        assert_eq!(pushed["up_to_date"], is_there);
        assert_eq!(pushed["blobs"][0]["action"], action);
    }
    let again = line(&mut site.command(&["push", "oci:base:1", &kept]));
    assert_contains!(
        again,
        "1 layer (18 B) in the registry, but containerd tries the URLs first",
        "nothing was sent"
    );
    assert_eq!(again.matches("sent").count(), 1, "{again}");

    let push = ["push", "oci:base:1", &ordinary, "--ordinary-layers"];
    let pushed = line(&mut site.command(&push));
    assert!(!pushed.contains("foreign"), "{pushed}");
    let manifest = line(&mut site.command(&["manifest", &ordinary]));
    let manifest: Value = serde_json::from_str(&manifest).unwrap();
    let layer = &manifest["layers"][0];
    let expected = "application/vnd.docker.image.rootfs.diff.tar.gzip";
    assert_eq!(layer["mediaType"], expected);
    assert_eq!(layer["urls"], Value::Null);
}

#[test]
fn a_copy_needs_two_places() {
    let site = Site::new();
    for (words, value) in [
        (["push", "repo.lan/a:1", "repo.lan/b:1"], "wincimg copy"),
        (["push", "oci:none", "repo.lan/b:1"], "none"),
        (["copy", "oci:a:1", "oci:a:1"], "oci:a:1"),
        (["copy", "recipe.toml", "oci:a"], "recipe"),
        (["tag", "docker-archive:a.tar", "1"], "docker-archive:a.tar"),
    ] {
        site.write("recipe.toml", "name = \"a\"\nbase = \"nanoserver\"\n");
        let output = site.command(&words).output().unwrap();
        assert!(matches!(output.status.code(), Some(2 | 3)), "{words:?}");
        assert_contains!(stderr(&output), value);
    }
}

#[test]
fn files_for_pipelines_have_the_keys_of_buildx() {
    let site = Site::new();
    let there = format!("{}/pause:1", site.host());
    let build = |hosts: &[&str], more: &[&str]| {
        let mut command = site.build("pause");
        command
            .args(hosts)
            .args(["-t", &there, "--push", "--replace"]);
        command.args(["--metadata-file", "meta.json", "--iidfile", "iid"]);
        let output = command.args(more).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let metadata: Value = serde_json::from_str(&site.text("meta.json")).unwrap();
        (
            String::from_utf8(output.stdout).unwrap(),
            metadata,
            site.text("iid"),
        )
    };
    let (printed, metadata, id) = build(&ONE, &["-q"]);
    let digest = metadata["containerimage.digest"].as_str().unwrap();
    assert_eq!(printed, format!("{}/pause@{digest}\n", site.host()));
    assert_eq!(metadata["image.name"], there);
    assert_eq!(metadata["containerimage.config.digest"], id.as_str());
    let manifest = site.command(&["manifest", &there]).output().unwrap().stdout;
    let descriptor = &metadata["containerimage.descriptor"];
    assert_eq!(descriptor["digest"], digest);
    assert_eq!(descriptor["size"], manifest.len());
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(descriptor["mediaType"], manifest["mediaType"]);
    assert_eq!(manifest["config"]["digest"], id.as_str());

    let (printed, metadata, id) = build(&TWO, &["-q"]);
    assert_eq!(metadata["containerimage.digest"], id.as_str());
    assert_eq!(printed, format!("{}/pause@{id}\n", site.host()));
    assert_eq!(metadata["containerimage.config.digest"], Value::Null);

    // A layout's reference works as a source.
    let mut command = site.build("pause");
    let printed = command.args(ONE).args(["-q", "-o", "oci:own"]).prints();
    let there = format!("{}/other:1", site.host());
    line(&mut site.command(&["push", printed.trim(), &there]));
    assert!(fs::exists(site.path("own/index.json")).unwrap());
}
