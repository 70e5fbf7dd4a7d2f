//! `image ls`, `image cp`, `image diff` and `inspect --waste`, compared with Python's tarfile, which
//! merges the same layers, and regipy and hivex, which read the same hives.

mod copy;
mod daemon;
mod delete;
mod diff;
mod hidden_layers;
mod hostile;
mod indexes;
mod keys;
mod list;
mod pictures;
mod rights;
mod sbom;
mod scan;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use serde_json::{Value, json};
use tempfile::TempDir;
use wincimg_oci::document::ManifestFormat;
use wincimg_oci::store::Sink;
use wincimg_registry::{RegistryData, RegistryEdit};
use wincimg_testkit::image_locations::{no_registry, sink};
use wincimg_testkit::programs::component;
use wincimg_testkit::test_bases::{
    FILE, LayerTar, USER_FOLDER, bottom_layer, delete_key, delete_value, delta_hive, image_of,
    made_software, made_system, set,
};
use wincimg_testkit::windows_base::{StandIn, put_index};

use crate::failure::Fails;
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

/// Paths of a list of differences, by kind.
fn changes(list: &Value, name: &str) -> BTreeSet<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let list = list.as_array().unwrap().iter();
    list.map(|it| (text(&it["change"]), text(&it[name])))
        .collect()
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
