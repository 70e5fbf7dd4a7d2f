use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use wincimg_common::diagnose::{Diagnose, Problem};

use super::media_type::{LayerCompression, compression, distributable, is_foreign};
use super::*;

fn digest(seed: &str) -> Digest {
    sha256(seed.as_bytes())
}

fn bytes(value: &Value) -> Bytes {
    serde_json::to_vec_pretty(value).unwrap().into()
}

fn manifest_json() -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": media_type::DOCKER_MANIFEST,
        "config": {"mediaType": media_type::DOCKER_CONFIG, "size": 2, "digest": digest("config")},
        "layers": [{
            "mediaType": "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
            "size": 100,
            "digest": digest("base"),
            "urls": ["https://go.microsoft.com/fwlink/?linkid=1"]
        }, {
            "mediaType": media_type::DOCKER_LAYER_GZIP, "size": 10, "digest": digest("top")
        }]
    })
}

fn index_json() -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": media_type::DOCKER_INDEX,
        "manifests": [{
            "mediaType": media_type::DOCKER_MANIFEST,
            "size": 1,
            "digest": digest("one"),
            "platform": {
                "architecture": "amd64", "os": "windows", "os.version": "10.0.17763.973",
                "os.features": ["win32k"], "variant": "v1"
            }
        }]
    })
}

fn read(announced: &str, bytes: Bytes) -> Result<Document, Problem> {
    let digest = sha256(&bytes);
    Document::verify(announced, bytes, &digest)
}

#[test]
fn an_unspecific_type_leaves_it_to_the_configuration_whether_it_is_an_images() {
    let by_type = |media_type: &str, size: u64, artifact: Option<&str>| {
        let mut manifest = manifest_json();
        manifest["config"]["mediaType"] = json!(media_type);
        manifest["config"]["size"] = json!(size);
        if let Some(artifact) = artifact {
            manifest["artifactType"] = json!(artifact);
        }
        let manifest = Verbatim::<Manifest>::parse(bytes(&manifest));
        manifest.unwrap().is_image_by_type()
    };
    let octets = "application/octet-stream";
    for (media_type, size, artifact, expected) in [
        (media_type::DOCKER_CONFIG, 2, None, Some(true)),
        (octets, 2, None, None),
        ("application/json", 2, None, None),
        ("text/html", 2, None, None),
        ("", 2, None, None),
        (octets, MAX_DOCUMENT + 1, None, Some(false)),
        (octets, 2, Some("application/x"), Some(false)),
        (
            "application/vnd.cncf.helm.config.v1+json",
            2,
            None,
            Some(false),
        ),
    ] {
        let found = by_type(media_type, size, artifact);
        assert_eq!(found, expected, "{media_type} {size} {artifact:?}");
    }
    let image = br#"{"rootfs": {"type": "layers", "diff_ids": []}}"#;
    assert!(ImageConfig::is_in(image));
    for other in [&b"{}"[..], br#"{"rootfs": null}"#, b"[1]", b"MZ", b""] {
        assert!(!ImageConfig::is_in(other), "{}", other.escape_ascii());
    }
}

#[test]
fn a_document_keeps_its_bytes_and_digest() {
    let raw = bytes(&manifest_json());
    let document = read(media_type::DOCKER_MANIFEST, raw.clone()).unwrap();
    assert_eq!(document.bytes(), &raw);
    assert_eq!(document.digest(), &sha256(&raw));
    assert_eq!(document.media_type(), media_type::DOCKER_MANIFEST);
}

#[test]
fn an_edit_that_changes_nothing_keeps_the_bytes() {
    let raw = bytes(&manifest_json());
    let manifest = Verbatim::<Manifest>::parse(raw.clone()).unwrap();
    assert_eq!(manifest.edit(|_| {}).unwrap().bytes(), &raw);
}

#[test]
fn os_version_and_its_neighbours_survive_a_rewrite_of_the_index() {
    let index = Verbatim::<Index>::parse(bytes(&index_json())).unwrap();
    let new = digest("two");
    let rewritten = index
        .edit(|index| index.manifests[0].digest = new.clone())
        .unwrap();
    let mut expected = index_json();
    expected["manifests"][0]["digest"] = json!(new);
    let rewritten: Value = serde_json::from_slice(rewritten.bytes()).unwrap();
    assert_eq!(rewritten, expected);
}

#[test]
fn foreign_layers_become_ordinary_and_lose_their_urls() {
    let manifest = Verbatim::<Manifest>::parse(bytes(&manifest_json())).unwrap();
    let foreign = |manifest: &Manifest| {
        let layers = manifest.layers.iter();
        layers.filter(|layer| is_foreign(&layer.media_type)).count()
    };
    assert_eq!(foreign(&manifest), 1);
    // BuildKit keeps the URLs of a layer that it compressed again.
    let urls = manifest.layers[0].urls.clone();
    let with_urls = manifest.edit(|it| {
        it.config.urls.clone_from(&urls);
        it.layers[1].urls = urls;
    });
    let with_urls = with_urls.unwrap();
    let ordinary = with_urls.edit(Manifest::make_layers_distributable).unwrap();
    assert_eq!(foreign(&ordinary), 0);
    assert_eq!(ordinary.layers[0].media_type, media_type::DOCKER_LAYER_GZIP);
    assert!(ordinary.layers[0].urls.is_empty());
    assert_eq!(ordinary.layers[1], manifest.layers[1]);
    assert_eq!(ordinary.config, manifest.config);
    assert_ne!(ordinary.digest(), manifest.digest());
}

#[test]
fn every_foreign_type_has_an_ordinary_one() {
    let docker = "application/vnd.docker.image.rootfs.foreign.diff.tar";
    let oci = "application/vnd.oci.image.layer.nondistributable.v1.tar";
    for (foreign, suffix, expected) in [
        (docker, ".gzip", media_type::DOCKER_LAYER_GZIP),
        (docker, "", media_type::DOCKER_LAYER),
        (oci, "", media_type::OCI_LAYER),
        (oci, "+gzip", media_type::OCI_LAYER_GZIP),
        (oci, "+zstd", "application/vnd.oci.image.layer.v1.tar+zstd"),
    ] {
        let foreign = &format!("{foreign}{suffix}");
        assert!(is_foreign(foreign), "{foreign}");
        assert_eq!(distributable(foreign), expected);
        assert_eq!(distributable(expected), expected);
        assert_eq!(compression(foreign), compression(expected));
    }
    let gzip = compression(media_type::OCI_LAYER_GZIP);
    assert_eq!(gzip, Some(LayerCompression::Gzip));
    assert_eq!(compression(media_type::OCI_CONFIG), None);
}

#[test]
fn types_have_the_same_meaning_in_both_formats() {
    use media_type::in_format;
    let manifest = Verbatim::<Manifest>::parse(bytes(&manifest_json())).unwrap();
    let oci = manifest.edit(|m| m.convert(ManifestFormat::Oci)).unwrap();
    assert_eq!(oci.media_type(), media_type::OCI_MANIFEST);
    assert_eq!(oci.config.media_type, media_type::OCI_CONFIG);
    let expected = "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip";
    assert_eq!(oci.layers[0].media_type, expected);
    let back = oci.edit(|m| m.convert(ManifestFormat::Docker)).unwrap();
    assert_eq!(*back, *manifest);
    let zstd = "application/vnd.oci.image.layer.v1.tar+zstd";
    assert_eq!(in_format(zstd, ManifestFormat::Docker), zstd);
    manifest.check_format(ManifestFormat::Docker).unwrap();
    let zstd = oci.edit(|m| m.layers[0].media_type = zstd.to_owned());
    let zstd = zstd.unwrap();
    zstd.check_format(ManifestFormat::Oci).unwrap();
    let refused = zstd.check_format(ManifestFormat::Docker).unwrap_err();
    assert_eq!(refused.diagnosis().code, "registry/manifest-format");
    assert_eq!(in_format("text/plain", ManifestFormat::Oci), "text/plain");
}

#[test]
fn documents_are_distinguished_by_what_they_say_and_hold() {
    let untyped = |mut value: Value| {
        value.as_object_mut().unwrap().remove("mediaType");
        bytes(&value)
    };
    for announced in ["", "application/json", "text/plain; charset=utf-8"] {
        assert!(matches!(
            read(announced, untyped(manifest_json())),
            Ok(Document::Manifest(_))
        ));
        assert!(matches!(
            read(announced, untyped(index_json())),
            Ok(Document::Index(_))
        ));
    }
}

#[test]
fn contradicting_documents_are_refused() {
    let mut both = manifest_json();
    both["manifests"] = json!([]);
    let cases = [
        (media_type::DOCKER_MANIFEST, both),
        (media_type::DOCKER_MANIFEST, index_json()),
        (media_type::OCI_MANIFEST, manifest_json()),
        (media_type::DOCKER_INDEX, manifest_json()),
    ];
    for (announced, value) in cases {
        let problem = read(announced, bytes(&value)).unwrap_err();
        let error = problem.to_string();
        assert!(error.contains(" is ambiguous: "), "{announced}: {error}");
        assert!(problem.diagnosis().hint.is_some(), "{announced}");
    }
}

#[test]
fn what_an_entry_states_of_a_document_is_checked() {
    let bytes = bytes(&manifest_json());
    let size = bytes.len() as u64;
    let entry = |media_type: &str, size| Descriptor::new(media_type, sha256(&bytes), size);
    let read = |entry: &Descriptor| Document::of_entry(entry, bytes.clone());
    for media_type in [media_type::DOCKER_MANIFEST, ""] {
        assert!(read(&entry(media_type, size)).is_ok(), "{media_type}");
    }
    for (wrong, reason) in [
        (
            entry(media_type::DOCKER_MANIFEST, size + 1),
            "announced with",
        ),
        (entry(media_type::OCI_CONFIG, size), "announced as"),
        (entry(media_type::OCI_MANIFEST, size), "announced as"),
    ] {
        let error = read(&wrong).unwrap_err().to_string();
        assert!(error.contains("is ambiguous"), "{error}");
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn what_is_no_image_is_refused_with_its_reason() {
    for (text, reason) in [
        (r#"{"schemaVersion": 1, "fsLayers": []}"#, "schema 1"),
        (r#"{"schemaVersion": 2}"#, "type \"\""),
        (
            r#"{"mediaType": "application/pdf", "layers": []}"#,
            "type \"application/pdf\"",
        ),
        (
            r#"{"config": {"digest": "sha256:00", "size": 1}, "layers": []}"#,
            "is not a valid",
        ),
        ("\n<!DOCTYPE html><html>", "web page"),
    ] {
        let error = read("", Bytes::from_static(text.as_bytes())).unwrap_err();
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[test]
fn a_size_that_no_blob_has_is_refused_wherever_it_is() {
    let with = |size: Value, place: &str, mut document: Value| {
        *document.pointer_mut(place).unwrap() = size;
        read("", bytes(&document))
    };
    let cases = [
        ("/config/size", manifest_json()),
        ("/layers/1/size", manifest_json()),
        ("/manifests/0/size", index_json()),
    ];
    for (place, document) in cases {
        assert!(with(json!(1_u64 << 40), place, document.clone()).is_ok());
        let sizes = [
            json!((1_u64 << 40) + 1),
            json!(u64::MAX),
            json!(-1),
            json!(0.5),
        ];
        for size in sizes {
            let error = with(size, place, document.clone()).unwrap_err().to_string();
            assert!(error.contains("is not a valid"), "{place}: {error}");
        }
    }
}

#[test]
fn a_wrong_digest_is_noticed() {
    let raw = bytes(&manifest_json());
    assert!(Document::verify("", raw.clone(), &sha256(&raw)).is_ok());
    let error = Document::verify("", raw, &digest("another")).unwrap_err();
    assert!(error.to_string().starts_with("the content has digest"));
}

#[test]
fn sha512_is_checked_and_other_algorithms_are_refused() {
    // The digest of "abc" from FIPS 180-2, appendix C.
    let abc: Digest = "sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                       2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
        .parse()
        .unwrap();
    let mut hasher = hasher_of(&abc).unwrap();
    hasher.update(b"ab");
    hasher.update(b"c");
    check(hasher, &abc).unwrap();
    let other: Digest = "md5:900150983cd24fb0d6963f7d28e17f72".parse().unwrap();
    assert!(hasher_of(&other).is_err());
}

fn base() -> Image {
    let config = json!({
        "architecture": "amd64", "os": "windows", "os.version": "10.0.17763.973",
        "created": "2020-01-14T00:00:00Z",
        "config": {
            "Shell": ["powershell", "-Command"], "Env": null, "Labels": null,
            "OnBuild": null, "StopSignal": "3", "ExposedPorts": {"80/tcp": {}}
        },
        "rootfs": {"type": "layers", "diff_ids": [digest("base tar"), digest("top tar")]},
        "history": [{"created_by": "Apply image 1809-RTM-amd64"}],
        "container_config": {"Cmd": ["cmd"]}
    });
    let config = Verbatim::<ImageConfig>::parse(bytes(&config)).unwrap();
    let mut manifest = manifest_json();
    manifest["config"]["digest"] = json!(config.digest());
    manifest["config"]["size"] = json!(config.size());
    Image::new(Verbatim::parse(bytes(&manifest)).unwrap(), config).unwrap()
}

#[test]
fn null_and_empty_values_are_read_as_gos_tools_do() {
    let config = json!({"config": {"Labels": {"a": null, "b": "c"}}});
    let config = Verbatim::<ImageConfig>::parse(bytes(&config)).unwrap();
    assert_eq!(config.config.labels["a"], "");
    assert_eq!(config.config.labels["b"], "c");
    let platform = Platform {
        variant: Some(String::new()),
        ..Platform::windows("10.0.17763.973")
    };
    assert_eq!(platform.to_string(), "windows/amd64:10.0.17763.973");
    assert_eq!(Platform::windows("").to_string(), "windows/amd64");
}

#[test]
fn the_shell_and_unknown_fields_of_a_config_survive_an_edit() {
    let edited = base()
        .edit_config(|config| config.config.entrypoint = Some(vec!["C:\\pause.exe".to_owned()]))
        .unwrap();
    let value: Value = serde_json::from_slice(edited.config().bytes()).unwrap();
    assert_eq!(value["config"]["Entrypoint"], json!(["C:\\pause.exe"]));
    assert_eq!(value["config"]["Shell"], json!(["powershell", "-Command"]));
    assert_eq!(value["config"]["StopSignal"], "3");
    assert_eq!(value["config"]["ExposedPorts"], json!({"80/tcp": {}}));
    assert_eq!(value["container_config"], json!({"Cmd": ["cmd"]}));
    assert_eq!(value["os.version"], "10.0.17763.973");
    assert_eq!(&edited.manifest().config.digest, edited.config().digest());
}

#[test]
fn a_configuration_that_is_too_large_to_be_read_is_not_made() {
    let label = |size: u64| "x".repeat(usize::try_from(size).unwrap());
    let labelled = |label: String| {
        base().edit_config(|config| {
            config.config.labels.insert("a".to_owned(), label);
        })
    };
    labelled(label(MAX_DOCUMENT / 2)).unwrap();
    let error = labelled(label(MAX_DOCUMENT)).unwrap_err();
    assert_eq!(error.diagnosis().code, "image/document");
    assert!(error.diagnosis().hint.is_some());
}

#[test]
fn a_layer_is_appended_to_manifest_and_config_alike() {
    let blob = Descriptor::new(media_type::DOCKER_LAYER_GZIP, digest("new"), 7);
    let image = base()
        .append_layer(
            blob.clone(),
            digest("new tar"),
            History {
                created_by: Some("wincimg".to_owned()),
                ..History::default()
            },
        )
        .unwrap();
    assert_eq!(image.manifest().layers.last(), Some(&blob));
    assert_eq!(
        image.config().rootfs.diff_ids.last(),
        Some(&digest("new tar"))
    );
    assert_eq!(image.config().history.len(), 2);
    assert_eq!(image.manifest().layers[..2], base().manifest().layers[..]);
}

#[test]
fn an_index_of_images_carries_their_os_versions() {
    for format in [ManifestFormat::Docker, ManifestFormat::Oci] {
        let index = Verbatim::new(Index::new(format, vec![base().index_entry()])).unwrap();
        let value: Value = serde_json::from_slice(index.bytes()).unwrap();
        assert_eq!(value["mediaType"], format.index());
        let expected = "10.0.17763.973";
        assert_eq!(value["manifests"][0]["platform"]["os.version"], expected);
    }
}

#[test]
fn a_config_of_another_image_is_refused() {
    let other = base()
        .config()
        .edit(|config| config.os = "linux".to_owned())
        .unwrap();
    let error = Image::new(base().manifest().clone(), other).unwrap_err();
    assert!(error.to_string().contains("configuration disagree"));
}

/// Any JSON, as deeply nested as documents are; integers only, as in real documents.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            unknown_fields(inner).prop_map(Value::Object),
        ]
    })
}

/// Fields under names that no document defines.
fn unknown_fields(
    value: impl Strategy<Value = Value>,
) -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec(("x-[a-zA-Z.]{1,8}", value), 0..4)
        .prop_map(|fields| fields.into_iter().collect())
}

proptest! {
    #[test]
    fn unknown_fields_survive_an_edit(
        fields in prop::collection::vec(unknown_fields(any_json()), 6),
    ) {
        let mut manifest = manifest_json();
        let mut index = index_json();
        let mut config = json!({
            "architecture": "amd64", "os": "windows",
            "config": {}, "rootfs": {"type": "layers", "diff_ids": []}
        });
        let places = [
            &mut manifest, &mut index, &mut config,
        ];
        for (place, more) in places.into_iter().zip(&fields) {
            place.as_object_mut().unwrap().extend(more.clone());
        }
        manifest["layers"][1].as_object_mut().unwrap().extend(fields[3].clone());
        index["manifests"][0]["platform"].as_object_mut().unwrap().extend(fields[4].clone());
        config["config"].as_object_mut().unwrap().extend(fields[5].clone());

        let value = |bytes: &Bytes| serde_json::from_slice::<Value>(bytes).unwrap();

        let edited = Verbatim::<Manifest>::parse(bytes(&manifest)).unwrap()
            .edit(|manifest| manifest.layers[0].size = 5).unwrap();
        manifest["layers"][0]["size"] = json!(5);
        prop_assert_eq!(value(edited.bytes()), manifest);

        let edited = Verbatim::<Index>::parse(bytes(&index)).unwrap()
            .edit(|index| index.manifests[0].size = 5).unwrap();
        index["manifests"][0]["size"] = json!(5);
        prop_assert_eq!(value(edited.bytes()), index);

        let edited = Verbatim::<ImageConfig>::parse(bytes(&config)).unwrap()
            .edit(|config| config.os_version = Some("10.0.1.2".to_owned())).unwrap();
        config["os.version"] = json!("10.0.1.2");
        prop_assert_eq!(value(edited.bytes()), config);
    }

    #[test]
    fn reading_any_bytes_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read("", Bytes::from(bytes));
    }

    #[test]
    fn reading_any_json_never_panics(value in any_json(), fields in unknown_fields(any_json())) {
        let mut document = manifest_json();
        document["layers"] = value;
        document.as_object_mut().unwrap().extend(fields);
        let _ = read("", bytes(&document));
    }
}

#[test]
fn a_history_has_a_limit() {
    let read = |count: usize| {
        let steps = vec![json!({}); count];
        serde_json::from_value::<ImageConfig>(json!({"history": steps}))
    };
    assert_eq!(read(10_000).unwrap().history.len(), 10_000);
    let error = read(10_001).unwrap_err().to_string();
    assert!(error.contains("at most 10000 steps"), "{error}");
    let none = serde_json::from_value::<ImageConfig>(json!({"history": null}));
    assert!(none.unwrap().history.is_empty());
}
