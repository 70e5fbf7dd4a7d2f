use proptest::prelude::*;
use serde_json::json;
use wincimg_oci::document::{Platform, media_type, sha256};

use super::*;

fn container(value: Value) -> ContainerConfig {
    serde_json::from_value(value).unwrap()
}

fn of(value: &Value) -> ImageConfig {
    serde_json::from_value(value.clone()).unwrap()
}

#[test]
fn what_the_image_changed_stays_and_the_rest_is_the_new_bases() {
    let old = container(json!({
        "User": "ContainerUser", "Cmd": ["cmd"], "Shell": ["cmd", "/S"],
        "Env": ["DOTNET=8.0.1", r"Path=C:\Windows;C:\dotnet", "GONE=1"],
        "Labels": {"vendor": "m", "old": "1"}, "ExposedPorts": {"80/tcp": {}},
        "Volumes": {r"C:\base": {}}, "StopSignal": "a",
    }));
    let new = container(json!({
        "User": "ContainerAdministrator", "Cmd": ["powershell"], "Shell": ["pwsh"],
        "Env": ["DOTNET=8.0.2", r"Path=C:\Windows;C:\dotnet2", "CAME=1"],
        "Labels": {"vendor": "n", "new": "1"}, "ExposedPorts": {"8080/tcp": {}},
        "Volumes": {r"C:\new": {}}, "StopSignal": "b", "Isolation": "x",
    }));
    let image = container(json!({
        "User": "ContainerUser", "Cmd": ["app.exe"], "Shell": ["bash"],
        "Env": ["DOTNET=8.0.1", r"Path=C:\app;C:\Windows;C:\dotnet", "GONE=1", "OWN=2"],
        "Labels": {"vendor": "m", "old": "1", "own": "1"},
        "ExposedPorts": {"80/tcp": {}, "443/tcp": {}},
        "Volumes": {r"C:\base": {}, r"C:\own": {}}, "StopSignal": "a",
        "Healthcheck": {"Test": ["CMD", "x"]}, "OnBuild": ["RUN x"],
    }));
    let expected = container(json!({
        "User": "ContainerAdministrator", "Cmd": ["app.exe"], "Shell": ["bash"],
        "Env": ["DOTNET=8.0.2", r"Path=C:\app;C:\Windows;C:\dotnet2", "CAME=1", "OWN=2"],
        "Labels": {"vendor": "n", "own": "1", "new": "1"},
        "ExposedPorts": {"8080/tcp": {}, "443/tcp": {}},
        "Volumes": {r"C:\own": {}, r"C:\new": {}}, "StopSignal": "b",
        "Healthcheck": {"Test": ["CMD", "x"]}, "Isolation": "x", "OnBuild": ["RUN x"],
    }));
    assert_eq!(super::container(&image, &old, &new), expected);
}

#[test]
fn features_and_the_variant_stay_if_the_image_changed_them() {
    let plain = of(&json!({"architecture": "arm64", "os": "windows"}));
    let own = of(&json!({"architecture": "arm64", "os": "windows",
        "os.features": ["win32k"], "variant": "v8"}));
    for (image, old, new, expected) in [
        (&own, &plain, &plain, &own),
        (&plain, &plain, &own, &own),
        (&own, &own, &plain, &plain),
    ] {
        let made = configuration(image, old, new);
        assert_eq!(made.platform(), expected.platform());
    }
}

#[test]
fn a_program_of_its_own_takes_no_arguments_of_a_base() {
    let old = container(json!({"Entrypoint": ["a"], "Cmd": ["b"], "ArgsEscaped": true}));
    let new = container(json!({"Entrypoint": ["c"], "Cmd": ["d"], "ArgsEscaped": true}));
    let image = container(json!({"Entrypoint": ["own"]}));
    assert_eq!(super::container(&image, &old, &new), image);
    let bare = super::container(&old, &old, &new);
    assert_eq!(bare, new);
}

#[test]
fn the_images_steps_stand_above_the_new_bases() {
    let layer = |name: &str| json!({"created_by": name});
    let word = |name: &str| json!({"created_by": name, "empty_layer": true});
    let id = |seed: u8| format!("sha256:{}", format!("{seed:02x}").repeat(32));
    let config = |steps: Value, layers: u8| {
        let ids: Vec<String> = (0..layers).map(id).collect();
        of(&json!({"history": steps, "rootfs": {"type": "layers", "diff_ids": ids}}))
    };
    let old = config(json!([layer("old"), word("CMD")]), 1);
    let new = config(json!([layer("new"), layer("update"), word("CMD")]), 2);
    let texts = |image: &ImageConfig| -> Vec<String> {
        let steps = history(image, &old, &new);
        let text = |step: &History| step.created_by.clone().unwrap_or_default();
        steps.iter().map(text).collect()
    };
    let image = config(
        json!([layer("old"), word("CMD"), layer("COPY"), word("USER")]),
        2,
    );
    assert_eq!(texts(&image), ["new", "update", "CMD", "COPY", "USER"]);
    assert_eq!(instructions(&image, &old), [Some("COPY".to_owned())]);
    // A base with a rewritten history.
    let image = config(json!([layer("else"), layer("COPY"), word("USER")]), 2);
    assert_eq!(texts(&image), ["new", "update", "CMD", "COPY", "USER"]);
    // A history with fewer steps than layers.
    let image = config(json!([word("USER")]), 3);
    assert_eq!(texts(&image), ["new", "update", "CMD", "", ""]);
    assert_eq!(instructions(&image, &old), [None, None]);
}

#[test]
fn no_layer_keeps_its_urls() {
    let layer = |name: &str| {
        let digest = sha256(name.as_bytes());
        let mut layer = Descriptor::new(media_type::OCI_LAYER_GZIP, digest.clone(), 5);
        layer.urls = vec![format!("https://vendor.lan/{name}")];
        (layer, digest)
    };
    let above = |image: &Image, name: &str| {
        let (layer, diff_id) = layer(name);
        let made = image.append_layer(layer, diff_id, History::default());
        made.unwrap()
    };
    let bare = Image::empty(ManifestFormat::Oci, Platform::windows("10.0.17763.1")).unwrap();
    let (old, new) = (above(&bare, "old"), above(&bare, "new"));
    let image = above(&old, "own");
    let called = BaseLabel {
        name: "base",
        note: false,
    };
    let rebased = rebase(&image, (&old, &new), vec![layer("own")], &called).unwrap();
    let layers = rebased.manifest().layers.iter();
    let layers: Vec<_> = layers.map(|it| (&it.digest, it.urls.len())).collect();
    assert_eq!(layers, [(&sha256(b"new"), 0), (&sha256(b"own"), 0)]);
}

#[test]
fn what_is_made_of_two_images_is_as_old_as_the_younger_one() {
    let text = |text: &str| Some(text.to_owned());
    let (early, late) = (text("2020-01-14T00:00:00Z"), text("2020-05-12T00:00:00Z"));
    for (image, new, expected) in [
        (&early, &late, &late),
        (&late, &early, &late),
        (&early, &None, &early),
        (&None, &late, &late),
        (&text("today"), &late, &text("today")),
    ] {
        assert_eq!(&later(image.as_ref(), new.as_ref()), expected);
    }
}

fn lines() -> impl Strategy<Value = Vec<String>> {
    let line = ("[A-E]", "[a-c;\\\\]{0,6}").prop_map(|(name, value)| format!("{name}={value}"));
    proptest::collection::btree_map("[A-E]|Path", line, 0..5).prop_map(|map| {
        let named = |(name, line): (String, String)| {
            let value = line.split_once('=').map_or("", |(_, value)| value);
            let value = value.to_owned();
            format!("{name}={value}")
        };
        map.into_iter().map(named).collect()
    })
}

fn fields_of() -> impl Strategy<Value = Map<String, Value>> {
    let value = prop_oneof![
        Just(Value::Null),
        any::<u8>().prop_map(Value::from),
        proptest::collection::btree_map("[a-c]", any::<bool>(), 0..3).prop_map(|map| json!(map)),
    ];
    let name = prop_oneof![Just("Volumes".to_owned()), "[a-d]"];
    proptest::collection::vec((name, value), 0..4).prop_map(|all| all.into_iter().collect())
}

prop_compose! {
    fn any_container()(
        env in lines(),
        other in fields_of(),
        texts in proptest::collection::vec(proptest::option::of("[a-c]{0,2}"), 4),
        labels in proptest::collection::btree_map("[a-d]", "[a-c]", 0..4),
        ports in proptest::collection::btree_set("[0-9]/tcp", 0..3),
        args_escaped in any::<bool>(),
    ) -> ContainerConfig {
        let words = |text: &Option<String>| text.clone().map(|text| vec![text]);
        ContainerConfig {
            user: texts[0].clone(),
            exposed_ports: ports.into_iter().map(|port| (port, json!({}))).collect(),
            env,
            entrypoint: words(&texts[1]),
            cmd: words(&texts[2]),
            args_escaped,
            working_dir: texts[3].clone(),
            labels,
            on_build: Vec::new(),
            shell: words(&texts[3]),
            other,
        }
    }
}

proptest! {
    #[test]
    fn an_image_on_the_same_base_stays_what_it_is(image in any_container(), base in any_container()) {
        prop_assert_eq!(super::container(&image, &base, &base), image);
    }

    #[test]
    fn an_image_that_changed_nothing_is_the_new_base(old in any_container(), new in any_container()) {
        let mut moved = super::container(&old, &old, &new);
        let mut expected = new;
        moved.env.sort();
        expected.env.sort();
        prop_assert_eq!(moved, expected);
    }
}
