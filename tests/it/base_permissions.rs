//! Descriptors and attributes in layers built on known bases: permissions on the base's folders,
//! and stacked layers of a Dockerfile's lines.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use wincimg_layer::{LayerReader, Limits};
use wincimg_oci::document::{Descriptor, History, ManifestFormat, sha256};
use wincimg_registry::RegistryEdit;
use wincimg_registry::hive::Hive;
use wincimg_registry::security::SecurityDescriptor;
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::image_locations::put_at;
use wincimg_testkit::layout::layers_in;
use wincimg_testkit::test_bases::{
    FILE, FOLDER, LayerTar, USER_FOLDER, bottom_layer, gzip, image_of, made_software, made_system,
    upper_layer,
};
use wincimg_testkit::windows_base::StandIn;

use crate::inside::{BASE_PATH, Machine, NAME, VERSION, publish};
use crate::run_lines::files_of;

/// The descriptor and the attributes of each entry of a layer.
pub(crate) type LayerEntries = BTreeMap<String, (Option<String>, String)>;

/// Descriptors and attributes of a layer's entries, from its PAX records.
pub(crate) fn entries_of(layer: &Path) -> LayerEntries {
    let blob = fs::File::open(layer).unwrap();
    let mut reader = LayerReader::new(blob, Limits::default()).unwrap();
    let mut found = BTreeMap::new();
    while let Some(entry) = reader.next_entry().unwrap() {
        let record = |wanted: &str| {
            let mut records = reader.pax();
            let found = records.find(|(key, _)| *key == wanted.as_bytes());
            found.map(|(_, value)| String::from_utf8(value.to_vec()).unwrap())
        };
        let attributes = record("MSWINDOWS.fileattr").unwrap_or_default();
        let security = record("MSWINDOWS.rawsd").map(|text| {
            let bytes = BASE64_STANDARD.decode(text).unwrap();
            SecurityDescriptor::from_bytes(&bytes).unwrap().to_string()
        });
        found.insert(entry.path, (security, attributes));
    }
    found
}

pub(crate) const DATA: &str = "O:BAG:BAD:PAI(D;;WD;;;BG)(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)";
const LOGS: &str = "O:BAG:BAD:AI(A;OICI;FR;;;BU)(A;OICIID;FA;;;SY)(A;OICIID;FA;;;BA)";
const APART: &str = "O:SYG:SYD:PAI(A;OICI;FA;;;SY)";

/// A base with folders that get permissions, one of them hidden.
fn base_with_data(attributes: &str) -> StandIn {
    image_of(VERSION, vec![layer_with_data(attributes).tar()])
}

/// The layer of that base.
pub(crate) fn layer_with_data(attributes: &str) -> LayerTar {
    let path = format!(r"{BASE_PATH};%SystemRoot%\System32\WindowsPowerShell\v1.0\");
    let mut bottom = bottom_layer(&made_system(&path), &made_software());
    let folder = tar::EntryType::Directory;
    bottom
        .entry("Files/data", folder, attributes, Some(DATA), b"", None)
        .folder("Files/data/apart", Some(APART))
        .entry("Files/data/Logs", folder, "8210", Some(LOGS), b"", None)
        .file("Files/data/own.txt", b"x", Some(FILE))
        .folder("Files/data2", Some(DATA));
    bottom
}

#[test(multi_thread)]
async fn rights_on_a_folder_of_the_base_are_added_to_what_it_has() {
    const USER: &str = "S-1-5-93-2-2";
    let grant = "[[access]]\npath = 'C:\\data'\ngrant = { ContainerUser = \"modify\" }\n";
    let file = "[[files]]\ncontent = \"x\"\nto = 'C:\\Data\\new\\x.txt'\n";
    for (attributes, files) in [("16", ""), ("18", ""), ("18", file)] {
        let server = FakeRegistry::start();
        let host = server.host();
        let reference = publish(&base_with_data(attributes), &host).await;
        let machine = Machine::new();
        if !files.is_empty() {
            // Files of the recipe itself require no base layers.
            machine.json(&["base", "index", &reference]);
        }
        fs::create_dir(machine.0.path().join("app")).unwrap();
        let recipe = format!("name = \"app\"\nbase = \"{NAME}\"\n{files}{grant}");
        fs::write(machine.0.path().join("app/recipe.toml"), recipe).unwrap();
        let mut build = vec!["build", "./app", "--output", "oci:out"];
        build.extend(["--host-build", "17763.973", "--base-registry", &host]);
        machine.run(&build).success();
        let layers = layers_in(&machine.0.path().join("out"));
        let mut found = entries_of(layers.last().unwrap());
        found.retain(|path, _| path.contains("ata"));
        let inherited = format!("(A;OICIID;0x1301bf;;;{USER})(A;OICIID;FA;;;SY)(A;OICIID;FA;;;BA)");
        let mut expected = vec![
            // Deny entries first, then explicit allow entries, then inherited ones.
            (
                "Files/data",
                format!("{DATA}(A;OICI;0x1301bf;;;{USER})"),
                attributes,
            ),
            (
                "Files/data/Logs",
                format!("O:BAG:BAD:AI(A;OICI;FR;;;BU){inherited}"),
                "8210",
            ),
        ];
        if !files.is_empty() {
            expected.push(("Files/data/new", format!("O:BAG:SYD:AI{inherited}"), "16"));
            expected.push((
                "Files/data/new/x.txt",
                format!("O:BAG:SYD:AI(A;ID;0x1301bf;;;{USER})(A;ID;FA;;;SY)(A;ID;FA;;;BA)"),
                "32",
            ));
        }
        let expected: LayerEntries = expected
            .into_iter()
            .map(|(path, sddl, attributes)| {
                let descriptor: SecurityDescriptor = sddl.parse().unwrap();
                let security = Some(descriptor.to_string());
                (path.to_owned(), (security, attributes.to_owned()))
            })
            .collect();
        assert_eq!(found, expected, "{attributes} {files}");
    }
}

#[test(multi_thread)]
async fn layers_of_a_dockerfile_repeat_what_the_base_and_earlier_layers_have() {
    let server = FakeRegistry::start();
    let host = server.host();
    let reference = publish(&base_with_data("18"), &host).await;
    let machine = Machine::new();
    machine.json(&["base", "index", &reference]);
    let app = machine.0.path().join("app");
    fs::create_dir(&app).unwrap();
    fs::write(app.join("a.txt"), "a").unwrap();
    let lines = r"# escape=`
FROM mcr.microsoft.com/windows/nanoserver:1809
COPY a.txt C:/Users/ContainerUser/
COPY a.txt C:/data/Sub/
COPY a.txt C:/DATA/sub/deep/
USER ContainerAdministrator
RUN del C:\data\own.txt
RUN mkdir C:\data\own.txt
RUN rmdir /s /q C:\data\Logs
COPY a.txt C:/data/logs/
";
    fs::write(app.join("Dockerfile"), lines).unwrap();
    let mut build = vec!["build", "./app", "--output", "oci:out"];
    build.extend(["--host-build", "17763.973", "--base-registry", &host]);
    machine.run(&build).success();
    let layers = layers_in(&machine.0.path().join("out"));
    let own: Vec<_> = layers[1..].iter().map(|layer| entries_of(layer)).collect();
    let of = |layer: usize, path: &str| own[layer][path].clone();
    let as_is = |sddl: &str, attributes: &str| {
        let descriptor: SecurityDescriptor = sddl.parse().unwrap();
        (Some(descriptor.to_string()), attributes.to_owned())
    };
    assert_eq!(of(0, "Files/Users/ContainerUser"), as_is(USER_FOLDER, "16"));
    assert_eq!(of(0, "Files/Users"), as_is(FOLDER, "16"));
    let inherited = "(A;OICIID;FA;;;SY)(A;OICIID;FA;;;BA)";
    let new = as_is(&format!("O:BAG:SYD:AI{inherited}"), "16");
    for layer in [1, 2] {
        assert_eq!(of(layer, "Files/data"), as_is(DATA, "18"));
        assert_eq!(of(layer, "Files/data/Sub"), new);
    }
    assert_eq!(of(2, "Files/data/Sub/deep"), new);
    assert_eq!(of(4, "Files/data/own.txt"), new);
    // A deleted file that is added again is new.
    let last = own.len() - 1;
    assert_eq!(of(last, "Files/data/logs"), new);
}

const PRIVATE: &str = "O:BAG:SYD:PAI(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)";

/// A base of one's own, whose folder `app` only administrators may read. Its history says how it was
/// made.
fn own_base(created_by: &str) -> StandIn {
    let mut layer = LayerTar::default();
    layer
        .folder("Files/app", Some(PRIVATE))
        .folder(
            "Files/app/sub",
            Some("O:BAG:SYD:AI(A;OICIID;FA;;;SY)(A;OICIID;FA;;;BA)"),
        )
        .file("Files/app/y", b"y", Some(FILE));
    with_layer(layer, created_by)
}

/// A base of one's own with this layer.
fn with_layer(layer: LayerTar, created_by: &str) -> StandIn {
    let mut base = image_of(VERSION, vec![layer_with_data("16").tar()]);
    let tar = layer.tar();
    let bytes = Bytes::from(gzip(&tar));
    let media_type = ManifestFormat::Docker.layer_gzip();
    let blob = Descriptor::new(media_type, sha256(&bytes), bytes.len() as u64);
    let history = History {
        created_by: Some(created_by.to_owned()),
        ..History::default()
    };
    base.append(blob, &tar, bytes, history);
    base
}

/// The topmost layer of a build of the folder `app`.
fn built_on(machine: &Machine, host: &str) -> (LayerEntries, Vec<u8>) {
    let out = machine.0.path().join("out");
    let _ = fs::remove_dir_all(&out);
    let mut build = vec!["build", "./app", "--output", "oci:out"];
    build.extend(["--host-build", "17763.973", "--base-registry", host]);
    machine.run(&build).success();
    let layers = layers_in(&out);
    let last = layers.last().unwrap();
    (entries_of(last), fs::read(last).unwrap())
}

fn printed(sddl: &str) -> String {
    let descriptor: SecurityDescriptor = sddl.parse().unwrap();
    descriptor.to_string()
}

#[test(multi_thread)]
async fn rights_that_the_history_of_a_base_names_are_kept_without_an_index() {
    let server = FakeRegistry::start();
    let host = server.host();
    let machine = Machine::new();
    let reference = format!("{host}/own/app:1");
    put_at(
        &own_base(r"cmd /S /C icacls C:\app /inheritance:r"),
        &reference,
    )
    .await;
    let app = machine.0.path().join("app");
    fs::create_dir(&app).unwrap();
    fs::write(app.join("a.txt"), "a").unwrap();
    let lines = format!("FROM {reference}\nWORKDIR C:/app\nCOPY a.txt .\n");
    fs::write(app.join("Dockerfile"), lines).unwrap();
    let (found, bytes) = built_on(&machine, &host);
    assert_eq!(found["Files/app"].0, Some(printed(PRIVATE)));
    let inherited = "O:BAG:SYD:AI(A;ID;FA;;;SY)(A;ID;FA;;;BA)";
    assert_eq!(found["Files/app/a.txt"].0, Some(printed(inherited)));
    // A look into the base changes nothing.
    machine.json(&["base", "index", &reference]);
    assert_eq!(built_on(&machine, &host).1, bytes);
}

#[test(multi_thread)]
async fn rights_of_keys_that_the_history_of_a_base_names_are_kept_without_an_index() {
    let server = FakeRegistry::start();
    let host = server.host();
    let machine = Machine::new();
    let app = machine.0.path().join("app");
    fs::create_dir(&app).unwrap();
    let rights = "D:P(A;CI;KA;;;SY)(A;CI;KR;;;BU)";
    let set_rights = RegistryEdit::SetSecurity {
        key: r"HKLM\SYSTEM\Acme".parse().unwrap(),
        security: format!("O:SYG:SY{rights}").parse().unwrap(),
    };
    for (tag, created_by) in [
        ("1", r"powershell Set-Acl HKLM:\SYSTEM\Acme $acl"),
        ("2", r"wincimg build below, regini HKLM\SYSTEM\Acme"),
    ] {
        let reference = format!("{host}/own/app:{tag}");
        let layer = upper_layer(std::slice::from_ref(&set_rights));
        put_at(&with_layer(layer, created_by), &reference).await;
        let key = "key = 'HKLM\\SYSTEM\\Acme\\Sub'\nvalues = { a = 1 }\n";
        let recipe = format!("name = \"app\"\nbase_image = \"{reference}\"\n[[registry]]\n{key}");
        fs::write(app.join("recipe.toml"), recipe).unwrap();
        built_on(&machine, &host);
        let layers = layers_in(&machine.0.path().join("out"));
        let files = files_of(layers.last().unwrap());
        let hive = Hive::read(&files["Hives/System_Delta"]).unwrap();
        let security = hive.root.at("Acme").unwrap().security;
        let security = SecurityDescriptor::from_bytes(security).unwrap();
        assert_contains!(security.to_string(), rights);
    }
}

#[test(multi_thread)]
async fn rights_are_granted_on_a_folder_of_the_base_that_is_the_working_directory() {
    let server = FakeRegistry::start();
    let host = server.host();
    let machine = Machine::new();
    let reference = format!("{host}/own/app:1");
    put_at(&own_base("COPY dir /app"), &reference).await;
    let app = machine.0.path().join("app");
    fs::create_dir(&app).unwrap();
    let access = "[[access]]\npath = 'C:\\app'\ngrant = { ContainerUser = \"modify\" }\n";
    for made in [
        "working_dir = 'C:\\app'\n",
        "[[layers]]\nname = \"one\"\nfolders = ['C:\\app']\n",
    ] {
        let recipe = format!("name = \"app\"\nbase_image = \"{reference}\"\n{made}{access}");
        fs::write(app.join("recipe.toml"), recipe).unwrap();
        let (found, _) = built_on(&machine, &host);
        let granted = format!("{PRIVATE}(A;OICI;0x1301bf;;;S-1-5-93-2-2)");
        assert_eq!(found["Files/app"].0, Some(printed(&granted)), "{made}");
        let below = found["Files/app/sub"].0.as_ref().unwrap();
        assert_contains!(below, "(A;OICIID;0x1301bf;;;S-1-5-93-2-2)");
    }
}
