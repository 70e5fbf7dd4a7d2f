//! `image delete`, on layouts and a real registry.

use wincimg_testkit::docker_registry::DockerRegistry;
use wincimg_testkit::image_locations;

use super::*;

impl Images {
    fn code(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let output = self.command(arguments).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), errors)
    }
}

#[test]
fn a_tag_of_a_layout_is_deleted_and_the_others_stay() {
    let images = versions();
    run(&mut images.command(&["tag", "oci:one:1", "latest"]));
    let errors = images.command(&["delete", "oci:one:1"]).tells(2);
    assert_contains!(errors, "add --yes");

    let deleted = images.json(&["delete", "oci:one:1", "--yes"]);
    assert_eq!(deleted["tag"], "1");
    assert_eq!(deleted["other_tags"], json!(["latest"]));
    assert_eq!(deleted["digest_deleted"], false);
    run(&mut images.command(&["tag", "oci:one:latest", "2"]));
    let errors = images.command(&["delete", "oci:one", "--yes"]).tells(1);
    assert_contains!(errors, "tagged 2, latest");
    run(&mut images.command(&["delete", "oci:one:2", "--yes"]));
    let digest = images.text(&["digest", "oci:one:latest"]);
    assert_eq!(deleted["digest"], digest.trim());
    let (code, errors) = images.code(&["digest", "oci:one:1"]);
    assert!(
        code == Some(3) && errors.contains("it has latest"),
        "{errors}"
    );

    run(&mut images.command(&["tag", "oci:two:1", "latest"]));
    let text = images.text(&["delete", "oci:two:1", "--yes", "--with-digest"]);
    assert_contains!(text, "deleted the digest, which was tagged latest");
    let text = images.text(&["delete", "oci:one:latest", "--yes"]);
    assert!(text.starts_with("deleted oci:one:latest"), "{text}");
    images.command(&["digest", "oci:one:latest"]).tells(3);
}

#[test]
fn what_an_index_lists_is_not_deleted_by_its_digest_alone() {
    let images = Images::new();
    let entries = ["17763.1040", "20348.2402"].map(|build| image(build, vec![bottom()]));
    block_on(async {
        let sink = images.sink("one").await;
        put_index(ManifestFormat::Docker, &entries, &sink, Some("1")).await;
        sink.publish(&entries[0].document(), Some("17763"))
            .await
            .unwrap();
    });
    let digest = entries[0].image.digest().to_string();
    let name = format!("oci:one:{digest}");
    let errors = images.command(&["delete", &name, "--yes"]).tells(1);
    let expected = "is also tagged 17763 and in the index of 1";
    assert_contains!(errors, expected, "--with-digest");
    let deleted = images.json(&["delete", "oci:one:17763", "--yes"]);
    assert_eq!(deleted["indexes"], json!(["1"]));
    images.command(&["digest", "oci:one:1"]).tells(0);
}

#[test]
fn a_registry_loses_the_tag_and_the_digest_only_if_nothing_else_has_it() {
    let registry = DockerRegistry::plain();
    let host = registry.host();
    let images = Images::new();
    block_on(async {
        let client = image_locations::registry(&host);
        for (tag, layer) in [("1", app()), ("2", patch())] {
            let place = format!("{host}/web:{tag}");
            let sink = sink(&place, &client).await;
            let image = image("17763.1040", vec![bottom(), layer]);
            image.put(&sink, Some(tag)).await;
            if tag == "2" {
                sink.publish(&image.document(), Some("latest"))
                    .await
                    .unwrap();
            }
        }
    });
    let name = |tag: &str| format!("{host}/web:{tag}");
    let delete = |name: &str, more: &[&str]| {
        let mut arguments = vec!["delete", name, "--yes", "--insecure-registry", &host];
        arguments.extend(more);
        images.code(&arguments)
    };
    let has = |tag: &str| {
        let name = name(tag);
        images
            .code(&["digest", &name, "--insecure-registry", &host])
            .0
            == Some(0)
    };
    let (code, errors) = delete(&name("1"), &[]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(!has("1") && has("2") && has("latest"));

    // This version of the registry deletes digests only.
    let (code, errors) = delete(&name("2"), &[]);
    assert_eq!(code, Some(1), "{errors}");
    assert_contains!(errors, "the digest is also tagged latest");
    assert!(has("2") && has("latest"));
    let (code, errors) = delete(&name("2"), &["--with-digest"]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(!has("2") && !has("latest"));
}
