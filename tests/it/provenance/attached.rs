use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::layout::json_in;
use wincimg_testkit::{options, repository};

use super::{build_to_layout, document_in, with_packages};
use crate::failure::Fails;
use crate::site::{Site, block_on, each, json_of};

const ALL: [&str; 5] = ["--sbom", "spdx", "--sbom", "cyclonedx", "--provenance"];

fn push(site: &Site, registry: &str) -> Value {
    let mut command = site.build(".");
    command.args(["--host-build", "17763.973", "--tag", "1", "--push"]);
    command
        .args(["--registry", registry, "--insecure-registry", registry])
        .args(ALL);
    json_of(&mut command)
}

fn kinds(built: &Value) -> Vec<(&str, bool)> {
    let documents = built["images"][0]["documents"].as_array().unwrap().iter();
    documents
        .map(|it| {
            (
                it["document"].as_str().unwrap(),
                it["up_to_date"].as_bool().unwrap(),
            )
        })
        .collect()
}

fn attached_once(site: &Site, registry: &str) {
    let first = push(site, registry);
    assert_eq!(
        kinds(&first),
        [("SPDX", false), ("CycloneDX", false), ("provenance", false)]
    );
    // The second run has other times but the same content.
    let second = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs()
    };
    let first_second = second();
    while second() == first_second {
        std::thread::sleep(Duration::from_millis(10));
    }
    let second = push(site, registry);
    assert_eq!(
        kinds(&second),
        [("SPDX", true), ("CycloneDX", true), ("provenance", true)]
    );
    let digests = |built: &Value| -> Vec<Value> {
        let documents = built["images"][0]["documents"].as_array().unwrap();
        documents.iter().map(|it| it["digest"].clone()).collect()
    };
    assert_eq!(digests(&first), digests(&second));
}

#[test]
fn documents_are_attached_once_where_the_registry_lists_them() {
    let site = with_packages();
    attached_once(&site, &site.host());
}

#[test]
fn a_document_that_the_registry_deleted_is_attached_again() {
    let docker = DockerRegistry::plain();
    let (site, host) = (with_packages(), docker.host());
    let first = push(&site, &host);
    let image = first["images"][0]["reference"].as_str().unwrap();
    let documents = &first["images"][0]["documents"];
    let bill = documents[0]["digest"].as_str().unwrap();
    let place = repository(options(&host), image);
    block_on(place.delete_manifest(bill)).unwrap();

    let command = |words: &[&str]| {
        let mut command = site.with_no_bases(words);
        command.args(["--insecure-registry", &host]);
        command
    };
    let inspect = ["inspect", image, "--sbom=spdx"];
    let printed = command(&inspect).tells(1);
    assert_contains!(printed, bill);
    let copied = json_of(&mut command(&["copy", image, "oci:layout"]));
    assert_eq!(copied["artifacts"], 2);
    let second = push(&site, &host);
    assert_eq!(
        kinds(&second),
        [("SPDX", false), ("CycloneDX", true), ("provenance", true)]
    );
    command(&inspect).assert().success();
}

#[test]
fn documents_are_attached_once_where_a_tag_has_to_list_them() {
    let docker = DockerRegistry::plain();
    attached_once(&with_packages(), &docker.host());
}

#[test]
fn a_layout_lists_them_next_to_the_image_and_is_read_as_before() {
    let site = with_packages();
    let built = build_to_layout(&site, &ALL);
    let index = json_in(&site.path("layout/index.json"));
    let entries = &index["manifests"];
    let types = each(entries, "artifactType");
    let expected = [
        Value::Null,
        json!("application/spdx+json"),
        json!("application/vnd.cyclonedx+json"),
        json!("application/vnd.in-toto+json"),
    ];
    assert_eq!(types, expected.iter().collect::<Vec<_>>());
    let digest = &built["images"][0]["digest"];
    assert_eq!(entries[0]["digest"], *digest);
    // Without a tag, the only image is selected.
    let inspected = json_of(&mut site.with_no_bases(&["inspect", "oci:layout"]));
    assert_eq!(inspected["images"][0]["digest"], *digest);
    build_to_layout(&site, &ALL);
    assert_eq!(json_in(&site.path("layout/index.json")), index);
}

#[test]
fn provenance_says_what_went_in_and_no_values_of_arguments() {
    let site = with_packages();
    let recipe = site.text("recipe.toml");
    site.write(
        "recipe.toml",
        format!("{recipe}\n[variables.token]\ndefault = \"\"\n[env]\nTOKEN_SET = \"${{token}}\"\n"),
    );
    let more = [
        "--provenance", "--set", "token=hunter2", "--builder-id", "https://ci.example/1",
    ];
    let built = build_to_layout(&site, &more);
    let bytes = document_in(&site, &built, "provenance");
    assert!(!String::from_utf8_lossy(&bytes).contains("hunter2"));
    let statement: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
    let image = built["images"][0]["digest"].as_str().unwrap();
    assert_eq!(
        statement["subject"][0]["digest"]["sha256"],
        image.strip_prefix("sha256:").unwrap()
    );
    let definition = &statement["predicate"]["buildDefinition"];
    assert_eq!(
        definition["externalParameters"]["arguments"],
        json!(["token"])
    );
    assert_eq!(
        definition["externalParameters"]["source"]["uri"],
        "recipe.toml"
    );
    assert_eq!(definition["externalParameters"]["hostBuild"], "17763.973");
    let base = &definition["resolvedDependencies"][0];
    let digest = built["images"][0]["base"]["digest"].as_str().unwrap();
    assert_eq!(
        base["digest"]["sha256"],
        digest.strip_prefix("sha256:").unwrap()
    );
    let details = &statement["predicate"]["runDetails"];
    assert_eq!(details["builder"]["id"], "https://ci.example/1");
    assert!(details["metadata"]["startedOn"].is_string());
}

#[test]
fn places_that_have_none_are_refused_before_anything_is_made() {
    let site = with_packages();
    let mut command = site.build(".");
    command.args([
        "--host-build", "17763.973", "--output", "docker-archive:app.tar",
    ]);
    command
        .args(["--sbom", "spdx"])
        .fails(2, "usage/documents", &["docker-archive"])
        .advises(&["--output oci:DIR"]);
    assert!(!site.path("app.tar").exists());
}
