//! `image ls`, `image cp`, `image diff` and `inspect --waste`, compared with Python's tarfile, which
//! merges the same layers, and regipy and hivex, which read the same hives.

mod daemon;
mod delete;
mod pictures;
mod sbom;
mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use predicates::Predicate as _;
use serde_json::{Value, json};
use tempfile::TempDir;
use wincimg_oci::document::{Document, Index, ManifestFormat, Verbatim};
use wincimg_oci::reference::parse_reference;
use wincimg_oci::store::Sink;
use wincimg_registry::hive::log_writer::set_sequences;
use wincimg_registry::{RegistryData, RegistryEdit};
use wincimg_testkit::fake_registry::FakeRegistry;
use wincimg_testkit::image_locations::{no_registry, registry, sink};
use wincimg_testkit::programs::{component, python_with_regipy};
use wincimg_testkit::test_bases::{
    FILE, LayerTar, USER_FOLDER, bottom_layer, delete_key, delete_value, delta_hive, image_of,
    made_software, made_system, set,
};
use wincimg_testkit::windows_base::{StandIn, put_index};

use crate::failure::{Fails, note};
use crate::site::{block_on, each, wincimg, write};

const VENDOR: &str = r"HKLM\SOFTWARE\Vendor";
const FOREIGN: &str = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip";

fn bottom() -> Vec<u8> {
    let mut tar = bottom_layer(&made_system(r"C:\Windows"), &made_software());
    tar.file("Files/Windows/win.ini", &[b'w'; 92], Some(FILE));
    tar.tar()
}

fn with_hive(mut tar: LayerTar, edits: &[RegistryEdit]) -> Vec<u8> {
    tar.folder("Hives", None);
    tar.file("Hives/Software_Delta", &delta_hive(edits), None);
    tar.tar()
}

fn app() -> Vec<u8> {
    let mut tar = LayerTar::default();
    tar.folder("Files/app", Some(USER_FOLDER))
        .file("Files/app/a.txt", &[b'a'; 12], Some(FILE))
        .file("Files/app/b.txt", &[b'b'; 5], None)
        .file("Files/app/big.bin", &[0; 5000], None)
        .hard_link("Files/app/alias.bin", "Files/app/big.bin")
        .link("Files/app/out", "C:\\Windows")
        .folder("Files/app/old", None)
        .file("Files/app/old/one", b"1", None)
        .file("Files/app/Ünï/кот.txt", b"meow", None);
    with_hive(
        tar,
        &[
            set(VENDOR, "Name", RegistryData::sz("one")),
            set(&format!(r"{VENDOR}\Sub"), "n", RegistryData::dword(1)),
        ],
    )
}

/// Writes and deletes in other case than the layer below.
fn patch() -> Vec<u8> {
    let mut tar = LayerTar::default();
    tar.file("Files/App/.wh.B.TXT", b"", None)
        .file("Files/App/A.TXT", &[b'A'; 20], None)
        .file("Files/App/.wh..wh..opq", b"", None)
        .file("Files/app/.wh.old", b"", None)
        .file("Files/app/old/two", b"22", None)
        .file("UtilityVM/Files/vm.bin", b"vm", None);
    with_hive(tar, &[set(VENDOR, "More", RegistryData::dword(7))])
}

/// Replaces the application, and deletes parts of Windows.
fn rewrite() -> Vec<u8> {
    let mut tar = LayerTar::default();
    tar.file("Files/.wh.app", b"", None)
        .file("Files/app/new.txt", b"new", None)
        .file("Files/app/a.txt", &[b'a'; 12], Some(FILE))
        .file("Files/Windows/.wh.win.ini", b"", None);
    with_hive(
        tar,
        &[
            set(VENDOR, "Name", RegistryData::sz("two")),
            delete_key(&format!(r"{VENDOR}\Sub")),
            delete_key(r"HKLM\SOFTWARE\Microsoft\long"),
        ],
    )
}

fn image(build: &str, tars: Vec<Vec<u8>>) -> StandIn {
    image_of(&format!("10.0.{build}"), tars)
}

/// Layouts with images of these tests.
struct Images {
    folder: TempDir,
}

impl Images {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        write(self.folder.path(), name, text);
    }

    async fn sink(&self, name: &str) -> Sink {
        let place = format!("oci:{name}", name = self.path(name).display());
        sink(&place, &no_registry()).await
    }

    fn put(&self, name: &str, image: &StandIn) {
        block_on(async { image.put(&self.sink(name).await, Some("1")).await });
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("wincimg"));
        command.current_dir(self.folder.path()).arg("image");
        command.args(arguments);
        command
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let output = run(self.command(arguments).args(["--format", "json"]));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    fn text(&self, arguments: &[&str]) -> String {
        String::from_utf8(run(&mut self.command(arguments)).stdout).unwrap()
    }

    /// Path, kind and size of each file below the drive, merged by Python.
    fn by_python(&self, name: &str) -> Vec<(String, String, u64)> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/contents/merge.py");
        let mut command = Command::new(component("python3"));
        let output = run(command.arg(script).arg(self.path(name)));
        let rows: Vec<(String, String, u64)> = serde_json::from_slice(&output.stdout).unwrap();
        let shown = |path: String| format!("C:{}", path["Files".len()..].replace('/', r"\"));
        rows.into_iter()
            .map(|(path, kind, size)| (shown(path), kind, size))
            .collect()
    }
}

/// Runs a command that has to succeed.
fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    output
}

/// Two versions of an application on one base.
fn versions() -> Images {
    static MADE: OnceLock<[StandIn; 2]> = OnceLock::new();
    let [one, two] = MADE.get_or_init(|| {
        [patch(), rewrite()].map(|top| image("17763.1040", vec![bottom(), app(), top]))
    });
    let images = Images::new();
    images.put("one", one);
    images.put("two", two);
    images
}

fn rows(listed: &Value) -> Vec<(String, String, u64)> {
    let entries = listed["entries"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    entries
        .iter()
        .map(|it| {
            (
                text(&it["path"]),
                text(&it["kind"]),
                it["size"].as_u64().unwrap_or(0),
            )
        })
        .collect()
}

#[test]
fn ls_lists_the_files_that_tarfile_merges() {
    let images = versions();
    for name in ["one", "two"] {
        let listed = images.json(&["ls", &format!("oci:{name}"), "--recursive"]);
        let mut found = rows(&listed);
        found.sort_by_key(|(path, ..)| path.to_lowercase().replace('\\', "\0"));
        let mut expected = images.by_python(name);
        expected.sort_by_key(|(path, ..)| path.to_lowercase().replace('\\', "\0"));
        assert_eq!(found, expected, "{name}");
        assert_eq!(listed["skipped"], json!([]));
    }
}

#[test]
fn streams_of_a_file_go_with_it_and_are_no_files() {
    let images = Images::new();
    let mut file = LayerTar::default();
    file.file("Files/app/ads.txt", b"main", None)
        .file("Files/app/ads.txt:Zone.Identifier", b"[Zone]", None)
        .file("Files/app/b.txt", b"b", None);
    let file = file.tar();
    let with = |change: &dyn Fn(&mut LayerTar)| {
        let mut tar = LayerTar::default();
        change(&mut tar);
        image("17763.1040", vec![bottom(), file.clone(), tar.tar()])
    };
    images.put("kept", &with(&|_| {}));
    images.put(
        "deleted",
        &with(&|tar| {
            tar.file("Files/app/.wh.ADS.txt", b"", None);
        }),
    );
    images.put(
        "rewritten",
        &with(&|tar| {
            tar.file("Files/app/Ads.txt", b"again", None).file(
                "Files/app/Ads.txt:other",
                b"o",
                None,
            );
        }),
    );
    for (name, files, expected) in [
        (
            "kept",
            2,
            &["ads.txt", "ads.txt:Zone.Identifier", "b.txt"][..],
        ),
        ("deleted", 1, &["b.txt"][..]),
        ("rewritten", 2, &["Ads.txt", "Ads.txt:other", "b.txt"][..]),
    ] {
        let listed = images.json(&["ls", &format!("oci:{name}"), r"C:\app"]);
        let names = rows(&listed).into_iter().map(|(path, ..)| path);
        let expected = expected.iter().map(|name| format!(r"C:\app\{name}"));
        assert!(names.eq(expected), "{listed}");
        assert_eq!(listed["files"], files, "{name}");
        let copied = images.path("copied").join(name).display().to_string();
        let from = format!(r"oci:{name}:C:\app");
        let warned = images.command(&["cp", &from, &copied]).tells(0);
        let has_stream = name != "deleted";
        assert_eq!(
            warned.contains("skipped 1 alternate data stream, such as"),
            has_stream,
            "{warned}"
        );
    }
    let found = images.json(&["diff", "oci:kept", "oci:deleted"]);
    let gone = |name: &str| ("removed".to_owned(), format!(r"C:\app\{name}"));
    assert_eq!(
        changes(&found["images"][0]["files"], "path"),
        BTreeSet::from([gone("ads.txt"), gone("ads.txt:Zone.Identifier")])
    );
}

#[test]
fn a_layer_that_no_runtime_unpacks_is_listed_with_a_warning() {
    let images = Images::new();
    let right = image("17763.1040", vec![bottom(), app()]);
    let wrong = right.image.edit_config(|config| {
        config.rootfs.diff_ids.swap(0, 1);
    });
    images.put("right", &right);
    images.put(
        "wrong",
        &StandIn {
            image: wrong.unwrap(),
            ..right
        },
    );
    let printed = |name: &str| {
        let output = run(&mut images.command(&["ls", &format!("oci:{name}"), r"C:\app"]));
        assert_contains!(String::from_utf8(output.stdout).unwrap(), "big.bin");
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(printed("right"), "");
    let warnings = printed("wrong");
    assert_contains!(
        warnings,
        "no runtime unpacks layer 2: its uncompressed content"
    );
    assert_eq!(warnings.lines().count(), 2, "{warnings}");
}

#[test]
fn files_outside_the_drive_are_named_once_a_layer() {
    let images = Images::new();
    let mut outside = LayerTar::default();
    outside
        .file("ko-app/app.exe", b"MZ", None)
        .file("ko-app/.wh.old", b"", None)
        .file("etc/passwd", b"x", None);
    images.put("linux", &image("17763.1040", vec![bottom(), outside.tar()]));
    let warnings = images.command(&["ls", "oci:linux"]).tells(0);
    let expected = "warning: layer 2: ko-app/app.exe: it and 1 more lie outside Files/: \
                    containers do not see them\n";
    assert_eq!(warnings, expected);
}

#[test]
fn a_hive_that_was_not_closed_is_noted_where_its_keys_are_shown() {
    let images = Images::new();
    let mut system = made_system(r"C:\Windows");
    images.put(
        "closed",
        &image(
            "17763.1040",
            vec![bottom_layer(&system, &made_software()).tar()],
        ),
    );
    set_sequences(&mut system, 8, 7);
    let open = bottom_layer(&system, &made_software()).tar();
    images.put("open", &image("17763.1040", vec![open.clone()]));
    images.put("app", &image("17763.1040", vec![open, app()]));
    let printed = |arguments: &[&str]| images.command(arguments).tells(0);
    let is_noted = note(&["Files/Windows/System32/config/SYSTEM", "layer 1"]);
    for shown in [
        &["ls", "oci:open", r"HKLM\SYSTEM"][..],
        &["diff", "oci:closed", "oci:open"],
    ] {
        let printed = printed(shown);
        assert!(is_noted.eval(&printed), "{shown:?}: {printed}");
    }
    for (place, noted) in [("oci:open", 1), ("oci:closed", 0)] {
        let key = r"HKLM\SYSTEM\ControlSet001";
        let mut show = images.command(&["base", "show", place, "--registry", key]);
        let shown = show.env("XDG_CACHE_HOME", images.folder.path()).prints();
        assert_eq!(shown.matches("not closed").count(), noted, "{shown}");
    }
    for other in [
        &["ls", "oci:open"][..],
        &["ls", "oci:open", r"HKLM\SOFTWARE"],
        &["ls", "oci:closed", r"HKLM\SYSTEM"],
        &["diff", "oci:open", "oci:app"],
    ] {
        assert_eq!(printed(other), "", "{other:?}");
    }
}

#[test]
fn sizes_of_folders_add_up_and_another_name_takes_no_space() {
    let images = versions();
    let listed = images.json(&["ls", "oci:one", r"C:\app", "--recursive"]);
    let entries = listed["entries"].as_array().unwrap();
    let own = entries.iter().filter(|it| it["other_name"] != true);
    let sum: u64 = own.filter_map(|it| it["size"].as_u64()).sum();
    assert_eq!(
        (sum, listed["size"].as_u64()),
        (20 + 5000 + 2 + 4, Some(sum))
    );
    assert_eq!(listed["files"], 5);
    assert_eq!(
        entries.iter().filter(|it| it["other_name"] == true).count(),
        1
    );
    let text = images.text(&["ls", "oci:one", r"C:\app"]);
    assert!(
        text.contains("2         2 B  old\\") || text.contains("old\\"),
        "{text}"
    );
    assert_contains!(text, "C:\\Windows", "5 files, 2 folders");
}

#[test]
fn ls_selects_levels_and_shows_layers_and_rights_on_request() {
    let images = versions();
    let names = |arguments: &[&str]| -> Vec<String> {
        let listed = images.json(arguments);
        rows(&listed).into_iter().map(|(path, ..)| path).collect()
    };
    let top = names(&["ls", "oci:two"]);
    assert_eq!(
        top,
        [r"C:\app", r"C:\Program Files", r"C:\Users", r"C:\Windows"]
    );
    assert_eq!(names(&["ls", "oci:one", "/APP/old"]), [r"C:\app\old\two"]);
    assert_eq!(
        names(&["ls", "oci:one", r"C:\app\a.txt"]),
        [r"C:\app\A.TXT"]
    );
    let vm = ["ls", "oci:one", "UtilityVM", "--utility-vm", "--recursive"];
    assert!(names(&vm).contains(&r"UtilityVM\Files\vm.bin".to_owned()));
    let all = names(&["ls", "oci:one", "--recursive"]);
    assert!(all.iter().all(|path| path.starts_with(r"C:\")));

    let plain = images.json(&["ls", "oci:two", r"C:\app"]);
    let file = &plain["entries"][0];
    assert_eq!(file["path"], r"C:\app\a.txt");
    assert_eq!(file["layer"], 3);
    assert_eq!(file["security"], Value::Null);
    let with_rights = images.json(&["ls", "oci:two", r"C:\app", "--acl"]);
    let security = with_rights["entries"][0]["security"].as_str().unwrap();
    assert!(security.starts_with("O:BAG:SYD:"), "{security}");
}

#[test]
fn a_layer_with_a_path_longer_than_any_of_windows_is_refused() {
    let images = Images::new();
    let mut deep = LayerTar::default();
    deep.file(&format!("Files/{}f", "a/".repeat(4000)), b"", None);
    images.put("deep", &image("17763.1040", vec![bottom(), deep.tar()]));
    images.put("flat", &image("17763.1040", vec![bottom()]));
    for words in [
        &["ls", "oci:deep", "--recursive"][..],
        &["diff", "oci:flat", "oci:deep"][..],
    ] {
        let errors = images.command(words).tells(3);
        assert_contains!(errors, "is too long: it has more than 4096 bytes");
    }
}

#[test]
fn ls_names_what_is_like_a_missing_path() {
    let images = versions();
    let errors = images.command(&["ls", "oci:one", r"C:\app\a.tx"]).tells(1);
    assert_contains!(errors, r"did you mean C:\app\A.TXT?");
    let missing = r"HKLM\SOFTWARE\No";
    images
        .command(&["ls", "oci:one", missing])
        .fails(1, "image/no-file", &[missing]);
    let errors = images.command(&["ls", "oci:one", "HKLM"]).tells(2);
    assert_contains!(errors, r"expected HKLM\SYSTEM\…");
}

/// Each key with its path and the names of its values, by regipy.
const KEYS: &str = r"
import json, sys
from regipy.registry import RegistryHive

def walk(key, path):
    keys[path] = sorted(value.name for value in key.iter_values())
    for below in key.iter_subkeys():
        walk(below, path + '\\' + below.name)

keys = {}
walk(RegistryHive(sys.argv[1]).root, r'HKLM\SOFTWARE')
json.dump(keys, sys.stdout)
";

/// The same by hivex.
const KEYS_BY_HIVEX: &str = r"
import json, subprocess, sys
from xml.etree import ElementTree

def walk(node, path):
    values = node.findall('value')
    keys[path] = sorted(value.get('key', '(default)') for value in values)
    for below in node.findall('node'):
        walk(below, path + '\\' + below.get('name'))

keys = {}
hive = ElementTree.fromstring(subprocess.check_output(['hivexml', sys.argv[1]]))
walk(hive.find('node'), r'HKLM\SOFTWARE')
json.dump(keys, sys.stdout)
";

type Keys = BTreeMap<String, BTreeSet<String>>;

/// The keys of a hive as regipy reads them, and hivex, too.
fn keys_by_others(hive: &[u8]) -> Keys {
    component("hivexml");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hive");
    fs::write(&file, hive).unwrap();
    let python = python_with_regipy();
    let [by_regipy, by_hivex] = [KEYS, KEYS_BY_HIVEX].map(|script| {
        let mut command = Command::new(&python);
        let output = run(command.args(["-c", script]).arg(&file));
        serde_json::from_slice::<Keys>(&output.stdout).unwrap()
    });
    assert_eq!(by_regipy, by_hivex);
    by_regipy
}

fn keys_of(listed: &Value) -> Keys {
    let keys = listed["keys"].as_array().unwrap().iter();
    keys.map(|key| {
        let values = key["values"].as_array().unwrap().iter();
        let names = values.map(|value| match value["name"].as_str().unwrap() {
            "" => "(default)".to_owned(),
            name => name.to_owned(),
        });
        (key["key"].as_str().unwrap().to_owned(), names.collect())
    })
    .collect()
}

#[test]
fn ls_lists_the_keys_that_regipy_and_hivex_read() {
    let images = versions();
    let mut expected = keys_by_others(&made_software());
    let mut add = |edits: &[RegistryEdit]| {
        for (key, values) in keys_by_others(&delta_hive(edits)) {
            expected.entry(key).or_default().extend(values);
        }
    };
    add(&[
        set(VENDOR, "Name", RegistryData::sz("one")),
        set(&format!(r"{VENDOR}\Sub"), "n", RegistryData::dword(1)),
    ]);
    add(&[set(VENDOR, "More", RegistryData::dword(7))]);
    let listed = images.json(&["ls", "oci:one", r"HKLM\SOFTWARE", "--recursive"]);
    assert_eq!(keys_of(&listed), expected);

    // The other image deletes two of them.
    expected.remove(&format!(r"{VENDOR}\Sub"));
    expected.remove(r"HKLM\SOFTWARE\Microsoft\long");
    expected.get_mut(VENDOR).unwrap().remove("More");
    let listed = images.json(&["ls", "oci:two", r"HKLM\SOFTWARE", "--recursive"]);
    assert_eq!(keys_of(&listed), expected);
}

/// Paths of a list of differences, by kind.
fn changes(list: &Value, name: &str) -> BTreeSet<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = list.as_array().unwrap().iter();
    list.map(|it| (text(&it["change"]), text(&it[name])))
        .collect()
}

#[test]
fn diff_has_the_differences_of_the_trees_that_tarfile_merges() {
    let images = versions();
    let tree = |name: &str| -> BTreeMap<String, (String, u64)> {
        let rows = images.by_python(name).into_iter();
        let rows = rows.filter(|(path, kind, _)| kind != "folder" || path.ends_with("Ünï"));
        rows.map(|(path, kind, size)| (path.to_lowercase(), (kind, size)))
            .collect()
    };
    let (one, two) = (tree("one"), tree("two"));
    let mut expected = BTreeSet::new();
    for path in one.keys().chain(two.keys()) {
        let change = match (one.get(path), two.get(path)) {
            (Some(old), Some(new)) if old == new => continue,
            (Some(_), Some(_)) => "changed",
            (Some(_), None) => "removed",
            _ => "added",
        };
        expected.insert((change.to_owned(), path.clone()));
    }
    let found = images.json(&["diff", "oci:one", "oci:two"]);
    let image = &found["images"][0];
    let mut seen = BTreeSet::new();
    for (change, path) in changes(&image["files"], "path") {
        // Folders differ too; tarfile knows no attributes of Windows.
        let folder = [r"C:\app\old", r"C:\app"].contains(&path.as_str());
        if !folder {
            seen.insert((change, path.to_lowercase()));
        }
    }
    assert_eq!(seen, expected);
    assert!(expected.contains(&("removed".to_owned(), r"c:\windows\win.ini".to_owned())));

    let keys = changes(&image["registry"], "key");
    let key = |change: &str, key: &str| (change.to_owned(), key.to_owned());
    let expected = BTreeSet::from([
        key("changed", VENDOR),
        key("removed", &format!(r"{VENDOR}\Sub")),
        key("removed", r"HKLM\SOFTWARE\Microsoft\long"),
    ]);
    assert_eq!(keys, expected);
    let vendor = &image["registry"].as_array().unwrap()[1];
    assert_eq!(vendor["key"], VENDOR);
    let values = changes(&vendor["values"], "name");
    assert_eq!(
        values,
        BTreeSet::from([key("changed", "Name"), key("removed", "More")])
    );
    let sizes = ["before", "after"].map(|side| image[side]["content"].as_u64().unwrap());
    let expected = ["one", "two"].map(|name| {
        let listed = images.json(&["ls", &format!("oci:{name}")]);
        listed["size"].as_u64().unwrap()
    });
    assert_eq!(sizes, expected);
}

#[test]
fn diff_reads_a_layer_of_both_images_once() {
    let server = FakeRegistry::start();
    let names = ["one", "two"].map(|name| format!("{}/{name}:1", server.host()));
    let images = [patch(), rewrite()];
    let images = images.map(|top| image("17763.1040", vec![bottom(), app(), top]));
    for (name, image) in names.iter().zip(&images) {
        let repository = registry(&server.host()).repository(&parse_reference(name).unwrap());
        let sink = Sink::Registry(repository.for_push());
        block_on(image.put(&sink, Some("1")));
    }
    let empty = Images::new();
    empty.json(&["diff", &names[0], &names[1]]);
    let shared = images[0].layers[1].0.digest.to_string();
    assert_eq!(shared, images[1].layers[1].0.digest.to_string());
    let mut reads = server.requests();
    reads.retain(|it| it.starts_with("GET ") && it.ends_with(&shared));
    assert_eq!(reads.len(), 1, "{reads:?}");
}

#[test]
fn diff_in_text_is_a_tree_with_sums() {
    let images = versions();
    let text = images.text(&["diff", "oci:one", "oci:two", "--layers"]);
    insta::assert_snapshot!(redacted(&text));
    let same = images.text(&["diff", "oci:one", "oci:one"]);
    assert_contains!(same, "identical");
    let code = |other: &str| {
        let arguments = ["diff", "oci:one", other, "--exit-code"];
        images.command(&arguments).output().unwrap().status.code()
    };
    assert_eq!((code("oci:one"), code("oci:two")), (Some(0), Some(1)));
}

/// Replaces digests and sizes of compressed layers, which depend on the compressor.
fn redacted(text: &str) -> String {
    let mut lines = String::new();
    for line in text.lines() {
        let words = line
            .split(' ')
            .map(|word| match word.strip_prefix("sha256:") {
                Some(_) => "sha256:…",
                None => word,
            });
        let line = words.collect::<Vec<_>>().join(" ");
        let line = match line.split_once("  size ") {
            Some(("", rest)) => {
                format!("  size … {}", rest.rsplit(", ").next().unwrap())
            }
            _ => match line.split_once("sha256:…  ") {
                Some((start, _)) => format!("{start}sha256:…"),
                None => line,
            },
        };
        lines += line.trim_end();
        lines.push('\n');
    }
    lines
}

#[test]
fn configuration_is_compared_by_variable_and_label() {
    let images = Images::new();
    let one = image("17763.1040", vec![bottom(), app()]);
    let mut two = one.clone();
    let edited = one.image.edit_config(|config| {
        config.config.env = vec!["A=2".into(), "B=1".into()];
        config.config.labels.insert("owner".into(), "web".into());
        config.config.entrypoint = Some(vec!["cmd".into(), "/c".into()]);
    });
    two.image = edited.unwrap();
    let mut before = one.clone();
    let edited = one
        .image
        .edit_config(|config| config.config.env = vec!["A=1".into()]);
    before.image = edited.unwrap();
    images.put("one", &before);
    images.put("two", &two);
    let found = images.json(&["diff", "oci:one", "oci:two"]);
    let image = &found["images"][0];
    let settings = changes(&image["config"], "setting");
    let row = |change: &str, name: &str| (change.to_owned(), name.to_owned());
    let expected = BTreeSet::from([
        row("changed", "Env A"),
        row("added", "Env B"),
        row("added", "Labels owner"),
        row("added", "Entrypoint"),
    ]);
    assert_eq!(settings, expected);
    assert_eq!(image["files"], json!([]));
    assert_eq!(image["registry"], json!([]));
}

#[test]
fn fields_beside_the_start_configuration_and_annotations_are_compared_too() {
    let images = Images::new();
    let one = image("17763.1040", vec![bottom()]);
    let mut two = one.clone();
    let edited = one.image.edit_config(|config| {
        config.os_features = vec!["win32k".into()];
        config.variant = Some("v2".into());
        config.other.insert("author".into(), "web".into());
        // How the image was made is not a setting.
        config.created = Some("2024-05-14T00:00:00Z".into());
        config.other.insert("container".into(), "4c01".into());
    });
    let annotations = BTreeMap::from([("owner".to_owned(), "web".to_owned())]);
    two.image = edited.unwrap().with_annotations(&annotations).unwrap();
    images.put("one", &one);
    images.put("two", &two);
    let found = images.json(&["diff", "oci:one", "oci:two"]);
    assert_eq!(found["identical"], false);
    let row = |name: &str| ("added".to_owned(), name.to_owned());
    let expected = ["os.features", "variant", "author", "annotations owner"].map(row);
    let settings = changes(&found["images"][0]["config"], "setting");
    assert_eq!(settings, BTreeSet::from(expected));
}

/// An image whose bottom layer is foreign and stored elsewhere.
fn with_foreign_base(images: &Images, name: &str, above: Vec<u8>) {
    let mut stand_in = StandIn::new(ManifestFormat::Docker, "10.0.17763.1040", &[]);
    stand_in.push(FOREIGN, 1000, 5, vec!["https://mcr.invalid/layer".into()]);
    let own = image("17763.1040", vec![app(), above]);
    let diff_ids = own.image.config().rootfs.diff_ids.clone();
    for ((blob, bytes), diff_id) in own.layers.into_iter().zip(diff_ids) {
        let history = wincimg_oci::document::History::default();
        let layered = stand_in.image.append_layer(blob.clone(), diff_id, history);
        stand_in.image = layered.unwrap();
        stand_in.layers.push((blob, bytes));
    }
    block_on(async {
        let sink = images.sink(name).await;
        stand_in
            .put_blobs(&sink, |blob| blob.media_type != FOREIGN)
            .await;
        sink.publish(&stand_in.document(), Some("1")).await.unwrap();
    });
}

#[test]
fn without_the_bytes_of_windows_the_other_layers_are_shown_and_so_is_what_they_delete() {
    let images = Images::new();
    with_foreign_base(&images, "one", patch());
    with_foreign_base(&images, "two", rewrite());
    let mut command = images.command(&["ls", "oci:two", "--recursive"]);
    let output = run(&mut command);
    let notes = String::from_utf8(output.stderr).unwrap();
    assert_eq!(notes.lines().count(), 1, "{notes}");
    assert_contains!(notes, "skipped foreign layers, whose bytes");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("new.txt") && !text.contains("win.ini"),
        "{text}"
    );

    let found = images.json(&["diff", "oci:one", "oci:two"]);
    let image = &found["images"][0];
    let row = |change: &str, name: &str| (change.to_owned(), name.to_owned());
    let files = changes(&image["files"], "path");
    assert!(
        files.contains(&row("removed", r"C:\Windows\win.ini")),
        "{files:?}"
    );
    assert!(
        files.contains(&row("added", r"C:\app\new.txt")),
        "{files:?}"
    );
    let keys = changes(&image["registry"], "key");
    let expected = BTreeSet::from([
        row("changed", VENDOR),
        row("removed", &format!(r"{VENDOR}\Sub")),
        row("removed", r"HKLM\SOFTWARE\Microsoft\long"),
    ]);
    assert_eq!(keys, expected);
    let skipped = json!([{"layer": 1, "size": image["before"]["skipped"][0]["size"], "reason": "foreign_bytes"}]);
    assert_eq!(image["before"]["skipped"], skipped);
}

#[test]
fn windows_is_skipped_on_request() {
    let images = versions();
    let listed = images.json(&["ls", "oci:two", "--recursive", "--skip-windows"]);
    let paths: Vec<String> = rows(&listed).into_iter().map(|(path, ..)| path).collect();
    assert_eq!(
        paths,
        [r"C:\app", r"C:\app\a.txt", r"C:\app\new.txt", r"C:\Windows"]
    );
    assert_eq!(listed["skipped"][0]["reason"], "windows");
    let whole = images.json(&["diff", "oci:one", "oci:two"]);
    let own = images.json(&["diff", "oci:one", "oci:two", "--skip-windows"]);
    let of = |found: &Value, list: &str, name: &str| changes(&found["images"][0][list], name);
    assert_eq!(of(&own, "files", "path"), of(&whole, "files", "path"));
    assert_eq!(of(&own, "registry", "key"), of(&whole, "registry", "key"));
}

#[test]
fn images_of_two_indexes_are_compared_build_by_build() {
    let images = Images::new();
    for (name, layer, builds) in [
        ("one", patch(), ["17763.1040", "20348.2402"]),
        ("two", rewrite(), ["20348.2500", "26100.1"]),
    ] {
        let entries = builds.map(|build| image(build, vec![bottom(), app(), layer.clone()]));
        block_on(async {
            let sink = images.sink(name).await;
            put_index(ManifestFormat::Docker, &entries, &sink, Some("1")).await
        });
    }
    let found = images.json(&["diff", "oci:one", "oci:two"]);
    assert_eq!(found["images"].as_array().unwrap().len(), 1);
    assert_eq!(
        found["images"][0]["before"]["os_version"],
        "10.0.20348.2402"
    );
    assert_eq!(found["images"][0]["after"]["os_version"], "10.0.20348.2500");
    assert_eq!(
        found["only_before"],
        json!(["windows/amd64:10.0.17763.1040"])
    );
    assert_eq!(found["only_after"], json!(["windows/amd64:10.0.26100.1"]));
    assert_eq!(found["identical"], false);
    for reading in [&["ls", "oci:one"][..], &["base", "show", "oci:one"]] {
        let output = images.command(reading).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_contains!(
            errors,
            "has 2 images for Windows",
            "choose one with --platform"
        );
    }
}

#[test]
fn annotations_of_two_indexes_are_compared() {
    let images = Images::new();
    let entry = image("17763.1040", vec![bottom()]);
    for (name, team) in [("one", "web"), ("two", "api")] {
        block_on(async {
            let sink = images.sink(name).await;
            entry.put_blobs(&sink, |_| true).await;
            sink.put_document(&entry.document()).await.unwrap();
            let mut descriptor = entry.image.index_entry();
            descriptor.annotations = BTreeMap::from([("of".to_owned(), team.to_owned())]);
            let mut index = Index::new(ManifestFormat::Docker, vec![descriptor]);
            let annotations = json!({"team": team, "same": "1"});
            index.other.insert("annotations".to_owned(), annotations);
            let index = Document::Index(Verbatim::new(index).unwrap());
            sink.publish(&index, Some("1")).await.unwrap();
        });
    }
    let found = images.json(&["diff", "oci:one", "oci:two"]);
    assert_eq!(found["identical"], false);
    let changes = [
        "annotations team",
        "windows/amd64:10.0.17763.1040 annotations of",
    ]
    .map(
        |setting| json!({"setting": setting, "change": "changed", "before": "web", "after": "api"}),
    );
    assert_eq!(found["index"], json!(changes));
    let text = images.text(&["diff", "oci:one", "oci:two"]);
    assert_contains!(text, "~ annotations team: web → api", "identical");
    let same = images.json(&["diff", "oci:one", "oci:one"]);
    assert_eq!(same["identical"], true);
    assert_eq!(same["index"], json!([]));
}

#[test]
fn features_and_attestations_of_an_image_in_two_indexes_are_compared() {
    let images = Images::new();
    let entry = image("17763.1040", vec![bottom()]);
    let plain = entry.image.index_entry();
    let mut featured = plain.clone();
    featured.platform.as_mut().unwrap().os_features = vec!["win32k".to_owned()];
    let mut statement = plain.clone();
    statement.platform = None;
    let about = plain.digest.to_string();
    let marks = [
        ("vnd.docker.reference.type", "attestation-manifest"),
        ("vnd.docker.reference.digest", &about),
    ];
    statement.annotations = marks.map(|(k, v)| (k.to_owned(), v.to_owned())).into();
    for (name, listed) in [("one", vec![plain]), ("two", vec![featured, statement])] {
        block_on(async {
            let sink = images.sink(name).await;
            entry.put_blobs(&sink, |_| true).await;
            sink.put_document(&entry.document()).await.unwrap();
            let index = Index::new(ManifestFormat::Docker, listed);
            let index = Document::Index(Verbatim::new(index).unwrap());
            sink.publish(&index, Some("1")).await.unwrap();
        });
    }
    let found = images.json(&["diff", "oci:one", "oci:two"]);
    assert_eq!(found["identical"], false);
    let row = |name: &str, after: Value| {
        let setting = format!("windows/amd64:10.0.17763.1040 {name}");
        json!({"setting": setting, "change": "added", "before": null, "after": after})
    };
    let expected = [
        row("attestations", json!(1)),
        row("os.features", json!(["win32k"])),
    ];
    assert_eq!(found["index"], json!(expected));
}

/// An index whose entries state this version, whatever the configurations have; `BuildKit` writes
/// none.
fn put_index_with(images: &Images, name: &str, entries: &[StandIn], stated: Option<&str>) {
    block_on(async {
        let sink = images.sink(name).await;
        let mut listed = Vec::new();
        for image in entries {
            image.put_blobs(&sink, |_| true).await;
            sink.put_document(&image.document()).await.unwrap();
            let mut entry = image.image.index_entry();
            entry.platform.as_mut().unwrap().os_version = stated.map(str::to_owned);
            listed.push(entry);
        }
        let index = Verbatim::new(Index::new(ManifestFormat::Docker, listed)).unwrap();
        let index = Document::Index(index);
        sink.publish(&index, Some("1")).await.unwrap();
    });
}

#[test]
fn an_image_without_a_platform_is_named_as_such() {
    let images = Images::new();
    let mut signature = image("17763.1040", vec![bottom()]);
    let without_platform = signature.image.edit_config(|config| {
        config.os.clear();
        config.architecture.clear();
        config.os_version = None;
    });
    signature.image = without_platform.unwrap();
    images.put("signature", &signature);
    let told = |arguments: &[&str]| {
        let output = images.command(arguments).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let errors = told(&["ls", "oci:signature"]);
    assert_contains!(errors, "oci:signature has no platform: it is a signature");
    let errors = told(&["ls", "oci:signature", "--platform", "windows/amd64"]);
    assert_contains!(errors, "has no image for windows/amd64: it has none");
}

#[test]
fn images_for_which_an_index_states_one_version_are_named_by_digest() {
    let images = Images::new();
    let entries = ["17763.1040", "20348.2402"].map(|build| image(build, vec![bottom()]));
    put_index_with(&images, "both", &entries, Some("10.0.17763.1040"));
    let mut command = images.command(&["digest", "oci:both"]);
    command.args(["--platform", "windows/amd64:10.0.17763.1040"]);
    let errors = String::from_utf8(command.output().unwrap().stderr).unwrap();
    assert_contains!(errors, "name one by its digest: oci:both:sha256:");
}

#[test]
fn images_of_one_platform_are_told_apart_by_their_digests() {
    let images = Images::new();
    let entries = [vec![bottom()], vec![bottom(), app()]];
    let entries = entries.map(|tars| image("17763.1040", tars));
    put_index_with(&images, "both", &entries, Some("10.0.17763.1040"));
    let errors = images.command(&["ls", "oci:both"]).tells(2);
    for entry in entries {
        let named = format!("windows/amd64:10.0.17763.1040 ({})", entry.image.digest());
        assert_contains!(errors, &named);
    }
}

#[test]
fn ls_warns_of_a_hard_link_without_its_file() {
    let images = Images::new();
    let mut tar = LayerTar::default();
    tar.hard_link("Files/app/a.txt", "Files/app/none.txt");
    images.put("one", &image("17763.1040", vec![bottom(), tar.tar()]));
    let output = run(&mut images.command(&["ls", "oci:one"]));
    let errors = String::from_utf8_lossy(&output.stderr);
    let expected = r"layer 2 has the hard link C:\app\a.txt without its file";
    assert_contains!(errors, expected);
}

#[test]
fn a_version_that_only_the_configuration_has_selects_an_image() {
    let images = Images::new();
    let entries = ["17763.1040", "20348.2402"].map(|build| image(build, vec![bottom()]));
    put_index_with(&images, "both", &entries, None);
    let advised = images.command(&["ls", "oci:both"]).output().unwrap();
    let platform = "windows/amd64:10.0.17763.1040";
    let errors = String::from_utf8_lossy(&advised.stderr);
    assert_contains!(errors, &format!("--platform {platform}"));

    let chosen = ["--platform", platform];
    let listed = images.json(&[&["ls", "oci:both"][..], &chosen].concat());
    assert_eq!(listed["platform"], platform);
    let versions = |found: &Value| -> Vec<Value> {
        let found = found["images"].as_array().unwrap().iter();
        found.map(|image| image["os_version"].clone()).collect()
    };
    let inspected = images.json(&[&["inspect", "oci:both"][..], &chosen].concat());
    assert_eq!(versions(&inspected), ["10.0.17763.1040"]);
    images.json(&[&["copy", "oci:both:1", "oci:one:1"][..], &chosen].concat());
    let copied = images.json(&["inspect", "oci:one"]);
    assert_eq!(versions(&copied), ["10.0.17763.1040"]);

    let digest = images.json(&[&["digest", "oci:both"][..], &chosen].concat());
    assert_eq!(digest["digest"], listed["digest"]);
    let windows = ["digest", "oci:both", "--platform", "windows/amd64"];
    let errors = images.command(&windows).tells(2);
    assert_contains!(errors, &format!("--platform {platform}"));

    let absent = ["--platform", "windows/amd64:26100"];
    for command in [
        &["ls", "oci:both"][..],
        &["digest", "oci:both"],
        &["inspect", "oci:both"],
        &["copy", "oci:both:1", "oci:two:1"],
    ] {
        let refused = images.command(&[command, &absent].concat()).output();
        assert_eq!(refused.unwrap().status.code(), Some(1), "{command:?}");
    }
}

fn files_in(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        for entry in fs::read_dir(&path).unwrap() {
            let entry = entry.unwrap().path();
            let kind = entry.symlink_metadata().unwrap();
            assert!(kind.is_dir() || kind.is_file(), "{}", entry.display());
            if kind.is_dir() {
                waiting.push(entry);
            } else {
                let name = entry.strip_prefix(folder).unwrap();
                found.insert(name.to_str().unwrap().to_owned(), fs::read(&entry).unwrap());
            }
        }
    }
    found
}

#[test]
fn cp_copies_a_folder_or_a_file_as_a_container_sees_it() {
    let images = versions();
    let copied = images.json(&["cp", r"oci:one:C:\app", "out"]);
    let expected = BTreeMap::from([
        ("app/A.TXT".to_owned(), vec![b'A'; 20]),
        ("app/alias.bin".to_owned(), vec![0; 5000]),
        ("app/big.bin".to_owned(), vec![0; 5000]),
        ("app/old/two".to_owned(), b"22".to_vec()),
        ("app/Ünï/кот.txt".to_owned(), b"meow".to_vec()),
    ]);
    let folded = |files: BTreeMap<String, Vec<u8>>| -> BTreeMap<String, Vec<u8>> {
        files
            .into_iter()
            .map(|(name, bytes)| (name.to_lowercase(), bytes))
            .collect()
    };
    assert_eq!(folded(files_in(&images.path("out"))), folded(expected));
    assert_eq!(copied["files"], 5);
    assert_eq!(copied["bytes"], 20 + 5000 + 5000 + 2 + 4);
    assert_eq!(copied["skipped"], json!([r"C:\app\out"]));

    images.text(&["cp", r"oci:one:C:\app\big.bin", "file"]);
    let expected = BTreeMap::from([("big.bin".to_owned(), vec![0; 5000])]);
    assert_eq!(files_in(&images.path("file")), expected);

    // Nothing is overwritten, but the same command may continue.
    let mut names = files_in(&images.path("out")).into_keys();
    let big = names.find(|name| name.ends_with("big.bin")).unwrap();
    let big = images.path(&format!("out/{big}"));
    fs::remove_file(&big).unwrap();
    assert_eq!(images.json(&["cp", r"oci:one:C:\app", "out"]), copied);
    fs::write(&big, "the user's").unwrap();
    let mut again = images.command(&["cp", r"oci:one:C:\app", "out"]);
    let output = again.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && errors.contains("already has"),
        "{errors}"
    );
    images
        .command(&["cp", r"oci:one:C:\app\big.bin", "file/big.bin"])
        .fails(3, "output/write", &["file/big.bin", "DIR is a folder"]);
    let missing = images
        .command(&["cp", r"oci:two:C:\Windows\win.ini", "no"])
        .output()
        .unwrap();
    assert_eq!(missing.status.code(), Some(1));
    assert!(!images.path("no").exists());
}

/// Layers whose hard links outlive their files.
fn linked() -> Vec<Vec<u8>> {
    let mut first = LayerTar::default();
    first
        .hard_link("Files/app/alias.bin", "Files/app/file.bin")
        .file("Files/app/file.bin", &[b'h'; 1000], None)
        .file("Files/app/gone.bin", &[b'g'; 20], None)
        .hard_link("Files/app/kept.bin", "Files/app/gone.bin");
    let mut second = LayerTar::default();
    second.hard_link("Files/app/later.bin", "Files/app/file.bin");
    let mut third = LayerTar::default();
    third
        .file("Files/app/file.bin", &[b'H'; 10], None)
        .file("Files/app/.wh.gone.bin", b"", None);
    vec![bottom(), first.tar(), second.tar(), third.tar()]
}

#[test]
fn a_hard_link_has_the_file_of_its_own_layer() {
    let images = Images::new();
    images.put("one", &image("17763.1040", linked()));
    let expected = BTreeMap::from([
        ("app/alias.bin".to_owned(), vec![b'h'; 1000]),
        ("app/file.bin".to_owned(), vec![b'H'; 10]),
        ("app/kept.bin".to_owned(), vec![b'g'; 20]),
        ("app/later.bin".to_owned(), vec![b'h'; 1000]),
    ]);
    images.text(&["cp", r"oci:one:C:\app", "out"]);
    assert_eq!(files_in(&images.path("out")), expected);
    for (name, bytes) in &expected {
        let from = format!("oci:one:/{name}");
        let (folder, name) = (format!("own/{name}"), name.replace("app/", ""));
        images.text(&["cp", &from, &folder]);
        assert_eq!(
            files_in(&images.path(&folder)),
            BTreeMap::from([(name, bytes.clone())])
        );
    }
    let exported = run(&mut images.command(&["export", "oci:one", "--path", r"C:\app"]));
    let mut tar = tar::Archive::new(exported.stdout.as_slice());
    let mut found = BTreeMap::new();
    for entry in tar.entries().unwrap() {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
        if !path.ends_with('/') {
            found.insert(path, bytes);
        }
    }
    assert_eq!(found, expected);
    let text = images.text(&["ls", "oci:one", r"C:\app"]);
    let sizes = text.lines().filter(|line| line.contains("1000 B"));
    assert_eq!(sizes.count(), 2, "{text}");
}

#[test]
fn a_folder_has_the_spelling_of_the_lowest_layer() {
    let mut first = LayerTar::default();
    first
        .folder("Files/Alpha", None)
        .folder("Files/Alpha/In", None)
        .file("Files/Alpha/In/one.txt", b"1", None);
    let mut second = LayerTar::default();
    second
        .folder("Files/ALPHA", None)
        .folder("Files/ALPHA/IN", None)
        .file("Files/ALPHA/IN/Two.txt", b"2", None);
    let images = Images::new();
    let layers = vec![bottom(), first.tar(), second.tar()];
    images.put("one", &image("17763.1040", layers));
    let expected = ["Alpha", "Alpha/In", "Alpha/In/one.txt", "Alpha/In/Two.txt"];
    let listed = images.json(&["ls", "oci:one", "/alpha", "--recursive"]);
    let listed: BTreeSet<String> = rows(&listed).into_iter().map(|(path, ..)| path).collect();
    let windows = expected[1..].iter().map(|path| path.replace('/', r"\"));
    let windows = windows.map(|path| format!(r"C:\{path}"));
    assert_eq!(listed, windows.collect::<BTreeSet<_>>());
    let exported = run(&mut images.command(&["export", "oci:one", "--path", r"C:\alpha"]));
    let mut tar = tar::Archive::new(exported.stdout.as_slice());
    let entries = tar.entries().unwrap().map(Result::unwrap);
    let paths = entries.map(|entry| entry.path().unwrap().to_str().unwrap().to_owned());
    let paths: BTreeSet<String> = paths
        .map(|path| path.trim_matches('/').to_owned())
        .collect();
    assert_eq!(paths, BTreeSet::from(expected.map(str::to_owned)));
}

#[test]
fn the_last_of_several_entries_at_a_path_is_copied() {
    let mut tar = LayerTar::default();
    tar.file("Files/app/a", b"1", None)
        .file("Files/app/A", b"22", None)
        .file("Files/app/a", b"333", None);
    let images = Images::new();
    images.put("one", &image("17763.1040", vec![bottom(), tar.tar()]));
    let listed = rows(&images.json(&["ls", "oci:one", "/app"]));
    assert_eq!(listed, [(r"C:\app\a".to_owned(), "file".to_owned(), 3)]);
    images.text(&["cp", r"oci:one:C:\app", "all"]);
    let expected = BTreeMap::from([("app/a".to_owned(), b"333".to_vec())]);
    assert_eq!(files_in(&images.path("all")), expected);
}

#[test]
fn a_hard_link_to_a_hard_link_is_copied_from_any_layer() {
    let mut first = LayerTar::default();
    first
        .file("Files/app/a", &[b'a'; 1000], None)
        .hard_link("Files/app/b", "Files/app/a")
        .hard_link("Files/app/c", "Files/App/B");
    let mut second = LayerTar::default();
    second
        .hard_link("Files/app/d", "Files/app/c")
        .hard_link("Files/app/e", "Files/app/d")
        .hard_link("Files/app/x", "Files/app/y")
        .hard_link("Files/app/y", "Files/app/x");
    let mut third = LayerTar::default();
    third
        .hard_link("Files/app/f", "Files/app/e")
        .file("Files/app/a", b"new", None);
    let images = Images::new();
    let layers = vec![bottom(), first.tar(), second.tar(), third.tar()];
    images.put("one", &image("17763.1040", layers));
    let linked = |name: &str| (name.to_owned(), vec![b'a'; 1000]);
    images.text(&["cp", "oci:one:/app/f", "alone"]);
    let alone = BTreeMap::from([linked("f")]);
    assert_eq!(files_in(&images.path("alone")), alone);
    images.text(&["cp", r"oci:one:C:\app", "all"]);
    let all = ["app/b", "app/c", "app/d", "app/e", "app/f"];
    let mut expected = BTreeMap::from(all.map(linked));
    expected.insert("app/a".to_owned(), b"new".to_vec());
    assert_eq!(files_in(&images.path("all")), expected);
}

#[test]
fn a_file_is_wasted_when_its_last_name_is_gone() {
    let images = Images::new();
    let waste = |name: &str| -> Value {
        let found = images.json(&["inspect", &format!("oci:{name}"), "--waste"]);
        found["images"][0]["waste"].clone()
    };
    images.put("one", &image("17763.1040", linked()));
    assert_eq!(waste("one")["files"], json!([]));
    let mut last = LayerTar::default();
    last.file("Files/app/.wh.alias.bin", b"", None)
        .file("Files/app/.wh.kept.bin", b"", None);
    let mut layers = linked();
    layers.push(last.tar());
    images.put("two", &image("17763.1040", layers));
    // The larger one has a name of the third layer, too.
    let gone =
        json!([{"path": r"C:\app\gone.bin", "size": 20, "layer": 2, "by": 5, "deleted": true}]);
    assert_eq!(waste("two")["files"], gone);
}

#[test]
fn a_link_is_not_copied_without_a_word() {
    let images = versions();
    for arguments in [
        &["cp", r"oci:one:C:\app\out", "to"][..],
        &["export", "oci:one", "--path", r"C:\APP\OUT", "-o", "to"],
    ] {
        let errors = images.command(arguments).tells(1);
        assert_contains!(errors, "wincimg image ls oci:one");
        assert!(!images.path("to").exists());
    }
}

#[test]
fn files_that_differ_in_their_rights_differ() {
    let images = Images::new();
    let own = |rights: &str| {
        let mut tar = LayerTar::default();
        tar.folder("Files/d", Some(USER_FOLDER))
            .file("Files/d/f.txt", b"x", Some(rights))
            .file("Files/d/same.txt", b"x", Some(FILE));
        image("17763.1040", vec![bottom(), tar.tar()])
    };
    images.put("one", &own(FILE));
    images.put("two", &own("O:BAG:SYD:PAI(A;;FA;;;SY)(A;;0x1301bf;;;BU)"));
    let arguments = ["diff", "oci:one", "oci:two", "--exit-code"];
    let output = images.command(&arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_contains!(text, "files     1 changed", "~ f.txt  1 B  rights\n");
    let found = images.json(&["diff", "oci:one", "oci:two"]);
    let files = found["images"][0]["files"].as_array().unwrap();
    assert_eq!(files.len(), 1, "{files:?}");
    assert_eq!(files[0]["path"], r"C:\d\f.txt");
    assert_eq!(files[0]["differs"], json!(["rights"]));
}

#[test]
fn an_image_of_another_system_is_refused() {
    let images = versions();
    let mut other = image("17763.1040", vec![app()]);
    let edited = other.image.edit_config(|config| {
        config.os = "linux".into();
        config.os_version = None;
    });
    other.image = edited.unwrap();
    images.put("other", &other);
    for arguments in [
        &["diff", "oci:other", "oci:one"][..],
        &["diff", "oci:one", "oci:other"],
    ] {
        let errors = images.command(arguments).tells(2);
        assert_contains!(errors, "is for linux/amd64, not for Windows");
    }
}

#[test]
fn the_root_of_the_drive_has_its_name_and_one_file_is_not_files() {
    let images = Images::new();
    let mut root = LayerTar::default();
    root.entry("Files", tar::EntryType::Directory, "18", None, b"", None)
        .file("Files/d/one.txt", b"1", Some(FILE));
    images.put("one", &image("17763.1040", vec![bottom()]));
    images.put("two", &image("17763.1040", vec![bottom(), root.tar()]));
    let text = images.text(&["diff", "oci:one", "oci:two"]);
    let lines = "\n    ~ C:\\  attributes +hidden\n      + d\\\n        + one.txt  1 B\n";
    assert_contains!(text, lines);
    let text = images.text(&["ls", "oci:two", r"C:\d"]);
    assert!(text.ends_with("1 file, 0 folders, 1 B\n"), "{text}");
}

#[test]
fn a_layer_says_of_a_file_what_the_whole_image_says() {
    use tar::EntryType::{Regular, Symlink};
    const JUNCTION: &str = "MSWINDOWS.mountpoint";
    let mut first = LayerTar::default();
    first
        .folder("Files/d", Some(USER_FOLDER))
        .file("Files/d/bytes.txt", b"x", Some(FILE))
        .file("Files/d/rights.txt", b"x", Some(FILE))
        .file("Files/d/hidden.txt", b"x", Some(FILE))
        .file("Files/d/same.txt", b"x", Some(FILE))
        .file("Files/d/gone.txt", b"x", Some(FILE))
        .file("Files/d/kind", b"x", Some(FILE))
        .link("Files/d/link", r"C:\one")
        .link("Files/d/junction", r"C:\one");
    let mut second = LayerTar::default();
    second
        .folder("Files/d", Some(USER_FOLDER))
        .file("Files/D/bytes.txt", b"y", Some(USER_FOLDER))
        .file("Files/d/rights.txt", b"x", Some(USER_FOLDER))
        .entry("Files/d/hidden.txt", Regular, "3", Some(FILE), b"x", None)
        .file("Files/d/same.txt", b"x", Some(FILE))
        .file("Files/d/.wh.gone.txt", b"", None)
        .folder("Files/d/kind", Some(FILE))
        .link("Files/d/link", r"C:\two")
        .raw(
            "Files/d/junction",
            Symlink,
            &[(JUNCTION.to_owned(), b"1".to_vec())],
            b"",
            Some(r"C:\one"),
        );
    let images = Images::new();
    let mut layers = vec![bottom(), first.tar()];
    images.put("one", &image("17763.1040", layers.clone()));
    layers.push(second.tar());
    images.put("two", &image("17763.1040", layers));
    let lines = r"
        d\
        ~ bytes.txt  1 B  content, rights
        - gone.txt  1 B
        ~ hidden.txt  1 B  attributes +readonly +hidden -archive
        ~ junction  link → junction
        ~ kind\  1 B  file → folder
        ~ link  C:\one → C:\two
        ~ rights.txt  1 B  rights
";
    let text = images.text(&["diff", "oci:one", "oci:two", "--layers"]);
    let (whole, layer) = text.split_once("  layers ").unwrap();
    assert!(whole.contains(lines), "{text}");
    let again = format!("{lines}        = same.txt  1 B\n");
    let again = again.replace('\n', "\n  ");
    assert!(layer.contains(again.trim_end()), "{text}");

    let found = images.json(&["diff", "oci:one", "oci:two", "--layers"]);
    let image = &found["images"][0];
    let layers = image["layers"].as_array().unwrap();
    assert_eq!(layers.len(), 1);
    let mut files = layers[0]["files"].as_array().unwrap().clone();
    let again = files.pop().unwrap();
    assert_eq!(again["path"], r"C:\d\same.txt");
    assert_eq!(again["change"], "rewritten");
    assert_eq!(again["differs"], json!([]));
    assert_eq!(json!(files), image["files"]);
    let differs = files.iter().map(|file| file["differs"].clone());
    let expected = json!([
        ["content", "rights"],
        [],
        ["attributes"],
        ["kind"],
        ["kind"],
        ["target"],
        ["rights"]
    ]);
    assert_eq!(json!(differs.collect::<Vec<_>>()), expected);
    // `--acl` shows the descriptors of files whose rights differ.
    let text = images.text(&["diff", "oci:one", "oci:two", "--acl"]);
    let shown = text.lines().filter(|line| line.contains("O:")).count();
    assert_eq!(shown, 2 + 1 + 2, "{text}");
}

#[test]
fn rights_that_only_one_image_has_differ_with_acl() {
    let images = Images::new();
    for (name, rights) in [("one", Some(FILE)), ("two", None)] {
        let mut tar = LayerTar::default();
        tar.file("Files/d/one.txt", b"1", rights);
        images.put(name, &image("17763.1040", vec![bottom(), tar.tar()]));
    }
    let found = images.json(&["diff", "oci:one", "oci:two"]);
    assert_eq!(found["identical"], true, "{found}");
    let found = images.json(&["diff", "oci:one", "oci:two", "--acl"]);
    let file = &found["images"][0]["files"][0];
    assert_eq!(file["differs"], json!(["rights"]), "{found}");
}

/// A tar with names that no honest tool writes.
fn hostile() -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut add = |name: &str, kind: tar::EntryType, target: &str| {
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(0o644);
        header.set_size(if kind == tar::EntryType::Regular {
            4
        } else {
            0
        });
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        if !target.is_empty() {
            header.set_link_name(target).unwrap();
        }
        header.set_cksum();
        let content: &[u8] = if kind == tar::EntryType::Regular {
            b"evil"
        } else {
            b""
        };
        tar.append(&header, content).unwrap();
    };
    add("Files/app/ok.txt", tar::EntryType::Regular, "");
    add("Files/app/../../../escaped", tar::EntryType::Regular, "");
    add("Files/app/..\\..\\escaped", tar::EntryType::Regular, "");
    add("Files/app/a:stream", tar::EntryType::Regular, "");
    add("Files/app/CON", tar::EntryType::Regular, "");
    add("Files/app/way", tar::EntryType::Symlink, "/tmp");
    add("Files/app/way/escaped", tar::EntryType::Regular, "");
    add("Files/app/etc", tar::EntryType::Link, "/etc/passwd");
    tar.into_inner().unwrap()
}

#[test]
fn cp_writes_nothing_outside_its_folder() {
    let images = Images::new();
    images.put("bad", &image("17763.1040", vec![bottom(), hostile()]));
    let errors = images
        .command(&["cp", r"oci:bad:C:\app", "in/out"])
        .tells(0);
    let files = files_in(&images.path("in"));
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    // The link itself is left out, and what its layer has below it is in a folder.
    assert_eq!(names, ["out/app/ok.txt", "out/app/way/escaped"]);
    assert!(files.values().all(|bytes| bytes == b"evil"));
    assert!(!Path::new("/tmp/escaped").exists());
    assert_contains!(errors, "warning: skipped");
    let listed = images.json(&["ls", "oci:bad", r"C:\app", "--recursive"]);
    assert!(
        rows(&listed)
            .iter()
            .all(|(path, ..)| path.starts_with(r"C:\app\")),
        "{listed}"
    );
}

#[test]
fn one_link_that_is_not_copied_is_one_entry() {
    let images = Images::new();
    let mut tar = LayerTar::default();
    tar.file("Files/d/one.txt", b"1", None)
        .link("Files/d/link", r"C:\d\one.txt");
    images.put("one", &image("17763.1040", vec![bottom(), tar.tar()]));
    let errors = images.command(&["cp", r"oci:one:C:\d", "out"]).tells(0);
    assert_contains!(errors, "skipped 1 entry, such as");
}

#[test]
fn waste_is_what_later_layers_delete_or_write_again() {
    let images = versions();
    let inspect = |name: &str, more: &[&str]| {
        let mut command = images.command(&["inspect", &format!("oci:{name}")]);
        command
            .args(more)
            .args(["--format", "json"])
            .output()
            .unwrap()
    };
    let waste = |name: &str| -> Value {
        let output = inspect(name, &["--waste"]);
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        found["images"][0]["waste"].clone()
    };
    // Replaced a.txt, deleted b.txt and old\one.
    let one = waste("one");
    assert_eq!(one["bytes"], json!(12 + 5 + 1));
    assert_eq!(one["of"], json!(12 + 5 + 5000 + 1 + 4 + 20 + 2));
    assert_eq!(one["layers"], json!([2, 3]));
    let first = json!({"path": r"C:\app\a.txt", "size": 12, "layer": 2, "by": 3, "deleted": false});
    assert_eq!(one["files"][0], first);
    let two = waste("two");
    assert_eq!(two["bytes"], 12 + 5 + 5000 + 1 + 4);
    let deleted = each(&two["files"], "deleted");
    assert!(deleted.iter().all(|&it| it == true));

    for (limit, code) in [("18B", 0), ("17", 1), ("1%", 0), ("0.1%", 1)] {
        let output = inspect("one", &["--max-waste", limit]);
        assert_eq!(output.status.code(), Some(code), "{limit}");
    }
    let text = images.text(&["inspect", "oci:two", "--waste"]);
    assert_contains!(text, r"C:\app\big.bin, deleted by layer 3");
}

#[test]
fn of_two_images_of_one_version_the_digest_is_advised() {
    let server = FakeRegistry::start();
    let version = "10.0.20348.2402";
    let features = |features: Value| {
        let config = json!({"os": "windows", "architecture": "amd64", "os.version": version,
            "os.features": features});
        server.image_with(&config)
    };
    let images = [features(json!(["win32k"])), features(json!([]))];
    let index = server.index(&[(&images[0], Some(version)), (&images[1], Some(version))]);
    server.tag("app", "1.0", &index);
    let name = format!("{}/app:1.0", server.host());
    let listed = Images::new()
        .command(&["ls", &name, "--insecure-registry", &server.host()])
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&listed.stderr);
    let named = images.map(|digest| format!("{}/app@{digest}", server.host()));
    assert!(named.iter().any(|name| printed.contains(name)), "{printed}");
}
