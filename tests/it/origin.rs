//! Every built image records its base, its time and its commit, so that other tools find them.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wincimg_oci::document::ManifestFormat;
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::layout::{blob_in, json_in};
use wincimg_testkit::windows_base::StandIn;

use crate::failure::Fails;
use crate::site::{Site, add_base, json_of};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const URL: &str = "https://git.lan/shop.git";
const KEY: &str = "org.opencontainers.image.";

/// A site whose folder is a repository, with a recipe, a Dockerfile, and what `init` writes.
fn site() -> Site {
    let site = Site::new();
    site.write(".git/HEAD", "ref: refs/heads/main\n");
    site.write(".git/refs/heads/main", format!("{COMMIT}\n"));
    let config = "[remote \"origin\"]\n\turl = https://ci:token@git.lan/shop.git\n";
    site.write(".git/config", config);
    site.write("recipe/recipe.toml", "name = \"shop\"\nbase = \"aspnet\"\n");
    site.write(
        "docker/Dockerfile",
        "FROM mcr.microsoft.com/windows/nanoserver:1809\nENV A=1\n",
    );
    site.with_no_bases(&["init", "started"]).assert().success();
    site
}

fn read(site: &Site, folder: &str, digest: &Value) -> Value {
    json_in(&blob_in(&site.path(folder), digest))
}

fn without_prefix(fields: &Value) -> Value {
    let fields = fields.as_object().unwrap().iter();
    let own = fields.filter_map(|(key, value)| Some((key.strip_prefix(KEY)?.to_owned(), value)));
    let own = own.filter(|(key, _)| !["title", "description", "version"].contains(&key.as_str()));
    own.map(|(key, value)| (key, value.clone())).collect()
}

#[test]
fn recipes_dockerfiles_and_starters_record_where_they_come_from() {
    let site = site();
    for (image, base) in [
        ("recipe", "dotnet/framework/aspnet"),
        ("docker", "windows/nanoserver"),
        ("started", "windows/nanoserver"),
        ("pause", "windows/nanoserver"),
    ] {
        let shown = if image == "pause" {
            image.to_owned()
        } else {
            format!("./{image}")
        };
        let output = format!("out-{image}");
        let mut command = site.build(&shown);
        command.args(["--host-build", "17763.973", "-o", &format!("oci:{output}")]);
        let built = json_of(&mut command);
        let built = &built["images"][0];
        let manifest = read(&site, &output, &built["digest"]);
        let config = read(&site, &output, &manifest["config"]["digest"]);
        let mut expected = json!({
            "base.name": format!("{}/mcr/{base}:10.0.17763.973", site.host()),
            "base.digest": built["base"]["digest"],
            "created": "2020-01-14T00:00:00Z",
            "source": URL,
            "revision": COMMIT,
        });
        // A built-in recipe is in no repository.
        if image == "pause" {
            let fields = expected.as_object_mut().unwrap();
            fields.remove("source");
            fields.remove("revision");
        }
        assert_eq!(
            manifest["mediaType"],
            "application/vnd.oci.image.manifest.v1+json"
        );
        assert_eq!(
            without_prefix(&manifest["annotations"]),
            expected,
            "{image}"
        );
        assert_eq!(
            without_prefix(&config["config"]["Labels"]),
            expected,
            "{image}"
        );
    }
}

#[test]
fn a_base_by_digest_alone_is_recorded_so_and_an_update_asks_for_another_name() {
    let site = Site::new();
    let host = ["--host-build", "17763.973"];
    for (tag, path) in [
        ("1", "windows/nanoserver"),
        ("2", "dotnet/framework/aspnet"),
    ] {
        let base = format!("{}/mcr/{path}", site.host());
        let image = format!("{}/app:{tag}", site.host());
        let update = |more: &[&str]| {
            let mut command = site.with_bases(&["update", &image]);
            command.args(host).args(more);
            command
        };
        let tagged = format!("{base}:10.0.17763.973");
        let digest = site.command(&["digest", &tagged]).prints();
        let digest = digest.trim();
        let lines = format!("FROM mcr.microsoft.com/{path}@{digest}\nENV A=1\n");
        site.write("app/Dockerfile", lines);
        let mut build = site.build("./app");
        let report = json_of(build.args(host).args(["-t", &image, "--push"]));
        assert_eq!(report["images"][0]["base"]["tag"], Value::Null);
        let inspected = json_of(&mut site.with_no_bases(&["inspect", &image]));
        let name = &inspected["images"][0]["labels"][format!("{KEY}base.name")];
        let own = report["images"][0]["base"]["digest"].as_str().unwrap();
        assert_eq!(*name, format!("{base}@{own}"));
        let mut more = Vec::new();
        // The tags of Windows alone differ in its version only.
        if path != "windows/nanoserver" {
            more.extend(["--base", &base]);
            let refused = update(&[]).fails(1, "base/unknown", &[own]);
            refused.advises(&[&more.join(" ")]);
        }
        let updated = json_of(&mut update(&more));
        assert_eq!(updated["updates"][0]["status"], "up_to_date");
    }
}

#[test]
fn dockers_format_has_the_labels_alone() {
    let site = site();
    let mut command = site.push("./docker");
    command.args(["--host-build", "17763.973"]);
    command.args(["--manifest-format", "docker", "--tag", "1"]);
    let built = json_of(&mut command);
    let reference = built["images"][0]["reference"].as_str().unwrap();
    let output = site.command(&["manifest", reference]).output().unwrap();
    let manifest: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(manifest["annotations"], Value::Null);
    let inspected = json_of(&mut site.with_no_bases(&["inspect", reference]));
    let labels = &inspected["images"][0]["labels"];
    assert_eq!(labels[format!("{KEY}revision")], COMMIT);
    assert!(labels[format!("{KEY}base.name")].is_string(), "{labels}");
}

#[test]
fn a_dockerfile_and_the_command_line_have_the_last_word() {
    let site = site();
    site.write(
        "docker/Dockerfile",
        "# org.opencontainers.image.base.name is what scanners read\n\
         FROM mcr.microsoft.com/windows/nanoserver:1809 AS other\n\
         LABEL org.opencontainers.image.base.digest=other\n\
         FROM mcr.microsoft.com/windows/nanoserver:1809 AS below\n\
         LABEL org.opencontainers.image.source=own org.opencontainers.image.base.name.old=x\n\
         FROM below\nLABEL org.opencontainers.image.created=2024-01-01T00:00:00Z\n",
    );
    let mut command = site.build("./docker");
    command.args(["--host-build", "17763.973", "-o", "oci:out"]);
    command.args(["--label", "org.opencontainers.image.revision=v1"]);
    let built = json_of(&mut command);
    let built = &built["images"][0];
    let manifest = read(&site, "out", &built["digest"]);
    let expected = json!({
        "base.name": format!("{}/mcr/windows/nanoserver:10.0.17763.973", site.host()),
        "base.digest": built["base"]["digest"],
        "created": "2024-01-01T00:00:00Z",
        "source": "own",
        "revision": "v1",
    });
    assert_eq!(without_prefix(&manifest["annotations"]), expected);
}

/// An image with these labels, and an annotation.
fn recorded(labels: &[(&str, &str)], (key, value): (&str, &str)) -> StandIn {
    let base = StandIn::new(ManifestFormat::Oci, "10.0.17763.973", &[(400, 1)]);
    let labelled = base.image.edit_config(|config| {
        let labels = labels.iter();
        let labels = labels.map(|(key, value)| (format!("{KEY}{key}"), (*value).to_owned()));
        config.config.labels.extend(labels);
    });
    let annotations = BTreeMap::from([(format!("{KEY}{key}"), value.to_owned())]);
    StandIn {
        image: labelled.unwrap().with_annotations(&annotations).unwrap(),
        ..base
    }
}

/// Labels of the base are about the base.
#[test]
fn what_a_base_records_is_not_inherited() {
    let site = site();
    let labels = [
        ("revision", "theirs"),
        ("base.name", "below"),
        ("created", "theirs"),
    ];
    let base = recorded(&labels, ("title", "theirs"));
    site.registry
        .with(|stored| add_base(stored, "mcr/own/base", "1", base));
    site.write(
        "docker/Dockerfile",
        format!("FROM {}/mcr/own/base:1\nENV A=1\n", site.host()),
    );
    let mut command = site.build("./docker");
    let built = json_of(command.args(["--host-build", "17763.973", "-o", "oci:out"]));
    // A plan has each label once, with the value of the image.
    let mut command = site.build("./docker");
    command.args(["--host-build", "17763.973", "--dry-run"]);
    let plan = String::from_utf8(command.output().unwrap().stdout).unwrap();
    let label = format!("{KEY}revision=");
    let lines: Vec<&str> = plan.lines().filter(|it| it.contains(&label)).collect();
    assert_eq!(lines, [format!("label       {label}{COMMIT}")]);
    let manifest = read(&site, "out", &built["images"][0]["digest"]);
    let annotations = &manifest["annotations"];
    assert_eq!(annotations[format!("{KEY}title")], Value::Null);
    assert_eq!(annotations[format!("{KEY}revision")], COMMIT);
    assert_ne!(annotations[format!("{KEY}created")], "theirs");
    let name = format!("{}/mcr/own/base:1", site.host());
    assert_eq!(annotations[format!("{KEY}base.name")], name);
}

/// `crane rebase` sets the annotations, and leaves the labels of the old base.
#[test]
fn inspect_prefers_the_annotations_of_the_base() {
    let site = site();
    let image = recorded(&[("base.name", "old")], ("base.name", "new"));
    site.registry
        .with(|stored| add_base(stored, "app", "1", image));
    let reference = format!("{}/app:1", site.host());
    let inspected = json_of(&mut site.with_no_bases(&["inspect", &reference]));
    assert_eq!(inspected["images"][0]["base"]["name"], "new");
}

/// `crane rebase` requires both annotations: it reads the old base by digest from the repository of
/// the name, compares its layers with the lowest of the image, and reads the new base by name.
#[test(multi_thread)]
async fn crane_and_update_find_the_base_in_a_real_registry() {
    let docker = DockerRegistry::plain();
    let host = docker.host();
    wincimg_testkit::windows_base::put_nanoserver(&host, "10.0.17763.973").await;
    let site = site();
    for image in ["./docker", "./started"] {
        let name = image.trim_start_matches("./");
        let reference = format!("{host}/apps/{name}:1");
        let mut command = site.command(&["build", image, "--host-build", "17763.973", "--push"]);
        command.args(["-t", &reference, "--base-registry", &host]);
        command.args(["--insecure-registry", &host]);
        json_of(&mut assert_cmd::Command::from(command));
        let manifest_of = |reference: &str| -> Value {
            let mut command = site.command(&["manifest", reference]);
            let output = command
                .args(["--insecure-registry", &host])
                .output()
                .unwrap();
            assert!(output.status.success(), "{reference}: {output:?}");
            serde_json::from_slice(&output.stdout).unwrap()
        };
        let manifest = manifest_of(&reference);
        let annotation = |key: &str| {
            let value = &manifest["annotations"][format!("{KEY}base.{key}")];
            value.as_str().unwrap().to_owned()
        };
        let (base, digest) = (annotation("name"), annotation("digest"));
        let (repository, _) = base.rsplit_once(':').unwrap();
        let old = manifest_of(&format!("{repository}@{digest}"));
        let below = old["layers"].as_array().unwrap();
        let own = manifest["layers"].as_array().unwrap();
        for (below, own) in below.iter().zip(own) {
            assert_eq!(below["digest"], own["digest"]);
        }
        manifest_of(&base);
        let mut update = site.with_no_bases(&["update", &reference, "--host-build", "17763.973"]);
        update.args(["--base-registry", &host, "--insecure-registry", &host]);
        let checked = json_of(update.arg("--check"));
        assert!(checked.to_string().contains("\"named\""), "{checked:#}");
    }
}
