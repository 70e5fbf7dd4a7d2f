//! Indexes of other tools: images are taken and replaced by their platform, whatever their order and
//! what the entries state.

use serde_json::json;

use super::moved::publish;
use super::*;
use crate::api::windows_node;
use crate::build::joined::published;
use crate::failure::Fails;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// An image of `app` on the old base, with an own layer for an architecture.
fn app(architecture: &str) -> StandIn {
    let own = layer(|tar| {
        tar.folder("Files/app", Some(FOLDER)).file(
            "Files/app/arch.txt",
            architecture.as_bytes(),
            Some(FILE),
        );
    });
    let mut app = on(&base(OLD), own, "COPY arch.txt C:/app/");
    let image = app.image.edit_config(|config| {
        config.architecture = architecture.to_owned();
    });
    app.image = image.unwrap();
    app
}

/// Stores an image without a tag, and returns its entry in an index.
fn stored(site: &Site, image: StandIn) -> Value {
    let entry = serde_json::to_value(image.image.index_entry()).unwrap();
    put(site, "app", &digest(&image.image), image);
    entry
}

fn index_of(entries: &[Value]) -> Value {
    json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries})
}

/// The architectures, versions and digests of the entries under `app:1.4`.
fn entries(site: &Site) -> Vec<[Value; 3]> {
    let index = published(site);
    let entries = index["manifests"].as_array().unwrap().iter();
    let entries = entries.map(|entry| {
        let platform = &entry["platform"];
        let (architecture, version) = (&platform["architecture"], &platform["os.version"]);
        [architecture, version, &entry["digest"]].map(Value::clone)
    });
    entries.collect()
}

#[test]
fn an_image_for_another_architecture_is_not_rebased_in_place_of_the_hosts_own() {
    for arm_version in [OLD, "10.0.17763.1098"] {
        for arm_is_first in [false, true] {
            let site = site();
            let amd = app("amd64");
            let own = amd.layers[1].0.digest.to_string();
            let mut arm = app("arm64");
            let image = arm.image.edit_config(|config| {
                config.os_version = Some(arm_version.to_owned());
            });
            arm.image = image.unwrap();
            let arm_digest = digest(&arm.image);
            let mut both = [stored(&site, amd), stored(&site, arm)];
            if arm_is_first {
                both.reverse();
            }
            publish(&site, &index_of(&both));
            let report = json_of(&mut update(&site, &["--push"]));
            let image = image_of_report(&report);
            assert_eq!(image["layers"][1]["digest"], own, "{report:#}");
            let kept = format!("windows/arm64:{arm_version}");
            assert_eq!(report["index"]["kept"], json!([kept]));
            assert_eq!(
                entries(&site),
                [
                    [json!("amd64"), json!(NEW), image["digest"].clone()],
                    [json!("arm64"), json!(arm_version), json!(arm_digest)],
                ]
            );
            update(&site, &["--check"]).assert().code(0);
        }
    }
}

#[test]
fn an_image_for_another_architecture_alone_is_not_rebased() {
    let site = site();
    let arm = stored(&site, app("arm64"));
    let mut unstated = arm.clone();
    unstated.as_object_mut().unwrap().remove("platform");
    for index in [index_of(&[arm]), index_of(&[unstated]), Value::Null] {
        if index.is_null() {
            put(&site, "app", "1.4", app("arm64"));
        } else {
            publish(&site, &index);
        }
        let before = published(&site);
        for more in ["--push", "--check"] {
            let arm = format!("windows/arm64:{OLD}");
            update(&site, &[more]).fails(1, "image/no-platform", &["windows/amd64", &arm]);
        }
        assert_eq!(published(&site), before);
    }
}

#[test]
fn nodes_of_another_architecture_do_not_decide_the_base() {
    let site = site();
    put(&site, "app", "1.4", app("amd64"));
    let mut arm = windows_node("arm-1", OLD);
    arm["status"]["nodeInfo"]["architecture"] = json!("arm64");
    let list = json!({"kind": "List", "items": [arm, windows_node("x-1", NEW)]});
    site.write("nodes.json", list.to_string());
    let image = format!("{}/app:1.4", site.host());
    let words = ["update", &image, "--nodes", "nodes.json", "--push"];
    let report = json_of(&mut site.with_bases(&words));
    assert_eq!(report["left_out"], json!(["arm-1"]));
    assert_eq!(each(&report["images"], "os_version"), [NEW]);
}

#[test]
fn a_check_names_every_base_that_is_not_known() {
    let site = site();
    let of_2022 = ["10.0.20348.2402", "10.0.20348.2461"];
    for version in of_2022 {
        put(&site, NANO, version, base(version));
    }
    let entries = [OLD, of_2022[0]].map(|version| {
        let own = layer(|tar| {
            tar.folder("Files/Windows", Some(FOLDER)).file(
                "Files/Windows/own.dll",
                b"x",
                Some(FILE),
            );
        });
        stored(&site, on(&base(version), own, "COPY own.dll C:/Windows/"))
    });
    publish(&site, &index_of(&entries));
    let place = format!("{}/{NANO}", site.host());
    let known = format!("{place}:{OLD}");
    let index = ["image", "base", "index", &known];
    site.with_no_bases(&index).assert().success();
    let mut check = update(&site, &["--host-build", of_2022[1], "--check"]);
    let output = check.assert().code(1).get_output().clone();
    let printed = String::from_utf8_lossy(&output.stdout);
    let commands: Vec<&str> = printed
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("wincimg image base index "))
        .collect();
    let unknown = [NEW, of_2022[0], of_2022[1]].map(|version| format!("{place}:{version}"));
    assert_eq!(commands, unknown, "{printed}");
}

#[test]
fn an_older_base_is_not_put_in_the_place_of_one_that_hosts_need() {
    let site = site();
    let own = layer(|tar| {
        tar.folder("Files/app", Some(FOLDER));
    });
    let image = format!("{}/app:1.4", site.host());
    let back = |more: &[&str]| {
        let words = ["update", &image, "--host-build", "17763.973", "--push"];
        site.with_bases(&[&words[..], more].concat())
    };
    for is_index in [true, false] {
        let newer = on(&base(NEW), own.clone(), "RUN it");
        if is_index {
            publish(&site, &index_of(&[stored(&site, newer)]));
        } else {
            put(&site, "app", "1.4", newer);
        }
        let before = published(&site);
        back(&[]).fails(1, "tag/taken", &[NEW, "--no-index", "--join"]);
        assert_eq!(published(&site), before);
        back(&["--replace"]).assert().code(0);
        assert_ne!(published(&site), before);
    }
}

/// The forms in which an index may have an image and another one, each stored as a whole.
fn forms(site: &Site, image: &Value, other: &Value) -> Vec<Value> {
    let mut unstated = image.clone();
    unstated.as_object_mut().unwrap().remove("platform");
    let mut unversioned = image.clone();
    let platform = unversioned["platform"].as_object_mut().unwrap();
    platform.remove("os.version");
    let mut variant = image.clone();
    variant["platform"]["variant"] = json!("");
    let within = |image: &Value, platform: Value| {
        let bytes = index_of(&[image.clone(), other.clone()]).to_string();
        let length = bytes.len();
        let digest = site
            .registry
            .with(|stored| stored.add_manifest("app", "inner", INDEX, bytes.into_bytes().into()));
        let mut entry = json!({"mediaType": INDEX, "digest": digest, "size": length});
        if platform.is_object() {
            entry["platform"] = platform;
        }
        index_of(&[entry])
    };
    vec![
        index_of(&[unstated.clone(), other.clone()]),
        index_of(&[unversioned, other.clone()]),
        index_of(&[variant, other.clone()]),
        within(image, Value::Null),
        within(&unstated, Value::Null),
        within(image, json!({"os": "windows", "architecture": "amd64"})),
    ]
}

#[test]
fn the_image_of_an_entry_that_states_little_or_is_an_index_is_replaced() {
    let site = site();
    let amd = stored(&site, app("amd64"));
    let arm = stored(&site, app("arm64"));
    for index in forms(&site, &amd, &arm) {
        publish(&site, &index);
        let mut taken = site.push("pause");
        taken.args([
            "--host-build", "20348.2402", "--name", "app", "--tag", "1.4",
        ]);
        let other = format!("windows/arm64:{OLD}");
        taken
            .fails(1, "tag/taken", &["windows/amd64", &other])
            .advises(&["--join"]);
        let report = json_of(&mut update(&site, &["--push"]));
        assert_eq!(report["index"]["kept"], json!([other]));
        let image = &image_of_report(&report)["digest"];
        assert_eq!(
            entries(&site),
            [
                [json!("amd64"), json!(NEW), image.clone()],
                [json!("arm64"), json!(OLD), arm["digest"].clone()],
            ],
            "{index}"
        );
    }
}
