//! Layers as Windows imports them: those of every shipped recipe, and of any tree.

use std::fs;

use flate2::read::GzDecoder;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::Value;
use wincimg_layer::{Compression, Layer, LinkTo};
use wincimg_registry::hive::{FileTime, layer_hives};
use wincimg_registry::{RegistryData, RegistryEdit, UnknownBase};
use wincimg_testkit::layout::blob_in;

use super::windows_import::{Imported, LayerPlacement, import};
use super::{TIMESTAMP, options, path};
use crate::site::{Site, each, json_of};

fn imported(site: &Site, layer: &Value, place: LayerPlacement) -> Imported {
    let blob = fs::File::open(blob_in(&site.path("layout"), &layer["digest"])).unwrap();
    import(GzDecoder::new(blob), place).unwrap()
}

/// The layers that a build adds, imported.
fn built(site: &Site, recipe: &[&str]) -> Vec<Imported> {
    let built = json_of(
        site.build(recipe[0])
            .args(&recipe[1..])
            .args(["--host-build", "17763.973", "--output", "oci:layout"]),
    );
    let layers = built["images"][0]["layers"].as_array().unwrap();
    let is_bottom = layers.iter().all(|layer| layer["from"] == "recipe");
    layers
        .iter()
        .enumerate()
        .filter(|(_, layer)| layer["from"] == "recipe")
        .map(|(at, layer)| {
            let place = match at {
                0 if is_bottom => LayerPlacement::Bottom,
                _ => LayerPlacement::Above,
            };
            imported(site, layer, place)
        })
        .collect()
}

#[test]
fn windows_imports_the_layers_of_every_recipe_that_ships() {
    let site = Site::new();
    site.write("app/server.exe", "MZ");
    site.write("app/data/größe 日本語.txt", "ü");
    site.write("site/index.html", "<p>");
    site.write("site/deep/er/x.json", "{}");
    let shipped = json_of(assert_cmd::cargo::cargo_bin_cmd!("wincimg").arg("images"));
    let mut names = each(&shipped["images"], "name");
    names.sort_by_key(|name| name.as_str());
    assert_eq!(names, ["app", "iis", "node-builder", "pause"]);
    for recipe in [
        &["pause"][..],
        &["app", "--set", "program=server.exe"],
        &["iis"],
        &["iis", "--set", "file_extensions=json"],
    ] {
        let layers = built(&site, recipe);
        assert_eq!(layers.len(), 1, "{recipe:?}");
        assert_eq!(layers[0].hives, 5, "{recipe:?}");
        assert!(
            layers[0]
                .names()
                .any(|name| name == "Files/wincimg/shim.exe")
        );
    }
}

#[test]
fn windows_imports_the_bottom_layer_of_a_host_process_image() {
    let site = Site::new();
    site.write(
        "recipe.toml",
        "name = \"agent\"\nbase = \"hostprocess\"\nentrypoint = [\"agent.exe\"]\n\
         [[files]]\ncontent = \"x\"\nto = 'C:\\agent.exe'\n",
    );
    let layers = built(&site, &["."]);
    assert_eq!((layers.len(), layers[0].hives), (1, 0));
    // In several layers, also if the lowest step has none.
    site.write(
        "recipe.toml",
        "name = \"agent\"\nbase = \"hostprocess\"\nentrypoint = [\"agent.exe\"]\n\
         [[layers]]\ncreated_by = \"a note\"\n\
         [[layers]]\nname = \"data\"\nfolders = ['C:\\data']\n\
         [[access]]\nlayer = \"data\"\npath = 'C:\\data'\ngrant = { Users = \"modify\" }\n\
         [[files]]\ncontent = \"x\"\nto = 'C:\\agent.exe'\n",
    );
    let layers = built(&site, &["."]);
    assert_eq!(layers.len(), 2);
    assert!(layers[0].names().any(|name| name == "Files/data"));
    let above: Vec<&str> = layers[1].names().collect();
    assert_eq!(above, ["Files", "Files/agent.exe", "Hives"]);
}

/// An entry to add to a layer.
#[derive(Debug, Clone)]
enum Step {
    File(String),
    Folder(String),
    Link(String, LinkTo),
    Delete(String),
}

fn name() -> impl Strategy<Value = String> {
    let names = [
        "a", "A", "b", "ß", "ä", "Ä", "ᾳ", "ᾼ", "long name.txt", "日本",
    ];
    vec(select(names.to_vec()), 1..4).prop_map(|names| names.join("/"))
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => name().prop_map(Step::File),
        2 => name().prop_map(Step::Folder),
        1 => (name(), any::<bool>()).prop_map(|(name, is_file)| {
            Step::Link(name, if is_file { LinkTo::File } else { LinkTo::Directory })
        }),
        2 => name().prop_map(Step::Delete),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn windows_imports_any_layer_that_is_written(steps in vec(step(), 0..12), with_hives in any::<bool>()) {
        let mut layer = Layer::new(TIMESTAMP);
        for step in &steps {
            match step {
                Step::File(name) => layer.file(path(name), name.as_bytes().to_vec()),
                Step::Folder(name) => layer.directory(path(name)),
                Step::Link(name, to) => layer.symlink(path(name), "target", *to).unwrap(),
                Step::Delete(name) => layer.delete(path(name)),
            }
        }
        if with_hives {
            let edit = RegistryEdit::SetValue {
                key: r"HKLM\SOFTWARE\Shop".parse().unwrap(),
                name: "Region".into(),
                data: RegistryData::sz("EU"),
            };
            for hive in layer_hives(&[edit], &UnknownBase, FileTime(1)).unwrap() {
                layer.hive(path(hive.name), hive.bytes);
            }
        }
        let mut blob = Vec::new();
        // Invalid trees are refused before; all others must be accepted.
        if layer.write(&mut blob, &options(Compression::Gzip)).is_ok() {
            let imported = import(GzDecoder::new(blob.as_slice()), LayerPlacement::Above);
            let imported = imported.map_err(TestCaseError::fail)?;
            prop_assert_eq!(imported.hives, if with_hives { 5 } else { 0 });
            let deleted = steps.iter().filter(|step| matches!(step, Step::Delete(_))).count();
            prop_assert_eq!(imported.deletions(), deleted);
        }
    }
}

/// A hand-made entry of a tar: its name, type and PAX records.
type RawTarEntry<'a> = (&'a str, tar::EntryType, Vec<(&'a str, String)>);

fn crafted(entries: &[RawTarEntry<'_>]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, kind, records) in entries {
        let records: Vec<(&str, &[u8])> = records
            .iter()
            .map(|(key, value)| (*key, value.as_bytes()))
            .collect();
        builder.append_pax_extensions(records).unwrap();
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(*kind);
        header.set_size(0);
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        if *kind == tar::EntryType::Link {
            header.set_link_name("Files/x").unwrap();
        }
        header.set_cksum();
        builder.append(&header, std::io::empty()).unwrap();
    }
    builder.into_inner().unwrap()
}

/// The records of an entry in a daemon's format.
fn records(attributes: u32, descriptor: Option<&str>) -> Vec<(&'static str, String)> {
    let mut records = vec![
        ("atime", "1580256000.5".to_owned()),
        ("ctime", "1580256000".to_owned()),
        ("LIBARCHIVE.creationtime", "1580256000".to_owned()),
        ("MSWINDOWS.fileattr", attributes.to_string()),
    ];
    records.extend(descriptor.map(|text| ("MSWINDOWS.rawsd", text.to_owned())));
    records
}

#[test]
fn a_tar_that_windows_does_not_take_is_refused_with_the_reason() {
    use tar::EntryType::{Directory, Link, Regular};
    // O:BA G:SY without lists.
    const OWNED: &str = "AQAAgBQAAAAkAAAAAAAAAAAAAAABAgAAAAAABSAAAAAgAgAAAQEAAAAAAAUSAAAA";
    let top = |name| (name, Directory, records(16, None));
    let file = |name| (name, Regular, records(32, Some(OWNED)));
    let refused = |more: Vec<RawTarEntry<'_>>| {
        let mut entries = vec![top("Files"), top("Hives"), file("Files/x")];
        entries.extend(more);
        import(crafted(&entries).as_slice(), LayerPlacement::Above).unwrap_err()
    };
    for (entries, reason) in [
        (
            vec![file("Files/a/b")],
            "Files/a/b: its folder is not there",
        ),
        (vec![file("Files/X")], "Files/X: Files/x is there already"),
        (vec![file("Files/x/y")], "Files/x/y: its folder is a file"),
        (vec![file("Temp")], "Temp: a descriptor outside of Files"),
        (vec![top("Temp")], "Temp: neither in Files nor in Hives"),
        (vec![file("Files/a:b")], "Files/a:b: Windows has no file"),
        (vec![file("Files/../x")], "Files/../x: Windows has no file"),
        (vec![file("Files/.wh.x")], "Files/x is deleted again"),
        (
            vec![file("Hives/.wh.x")],
            "Hives/.wh.x: a deletion outside of Files",
        ),
        (vec![file("Files/.wh.")], "Files/.wh.: Windows has no file"),
        (vec![("y", Link, vec![])], "y: a hard link outside of Files"),
        (
            vec![("Files/y", Regular, records(32, None))],
            "Files/y: no MSWINDOWS.rawsd",
        ),
        (
            vec![("Files/y", Regular, records(32, Some("?")))],
            "Files/y: a descriptor that is not base64",
        ),
        (
            vec![("Files/y", Regular, records(32, Some("AQAAgA==")))],
            "Files/y: invalid descriptor",
        ),
        (
            vec![("Files/y", Regular, records(16, Some(OWNED)))],
            "Files/y: attributes 0x10 of another kind of entry",
        ),
        (
            vec![("Files/y", Directory, records(32, Some(OWNED)))],
            "Files/y: attributes 0x20 of another kind of entry",
        ),
        (
            vec![("Files/y", Regular, records(32, Some(OWNED)).split_off(1))],
            "Files/y: no atime",
        ),
        (
            vec![("Hives/Other_Delta", Regular, records(32, None))],
            "Hives/Other_Delta: not the name of a layer's hive",
        ),
        (
            vec![("Hives/Sam_Delta", Regular, records(32, None))],
            "Hives/Sam_Delta: no base block",
        ),
    ] {
        let printed = refused(entries);
        assert!(printed.starts_with(reason), "{reason}: {printed}");
    }
    let linked = ("Files/y", Link, Vec::new());
    let whole = [top("Files"), top("Hives"), file("Files/x"), linked];
    let imported = import(crafted(&whole).as_slice(), LayerPlacement::Above).unwrap();
    assert_eq!(imported.names().count(), 4, "a hard link is one more name");
    let printed = import(crafted(&[top("Files")]).as_slice(), LayerPlacement::Above).unwrap_err();
    assert_eq!(printed, "Hives is missing");
    let printed = import(crafted(&whole).as_slice(), LayerPlacement::Bottom).unwrap_err();
    assert_eq!(printed, "Hives in the bottom layer");
    let printed = import(crafted(&[top("Files")]).as_slice(), LayerPlacement::Bottom).unwrap_err();
    assert!(printed.ends_with("config/DEFAULT is missing"), "{printed}");
    let whole = [top("Files"), top("Hives"), file("Files/.wh.y")];
    let printed = import(crafted(&whole).as_slice(), LayerPlacement::Bottom).unwrap_err();
    assert_eq!(printed, "Files/.wh.y: a deletion with nothing below");
}
