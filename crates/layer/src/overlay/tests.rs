use std::time::{Duration, Instant};

use wincimg_registry::hive::{FileTime, unfitted_hives};
use wincimg_registry::{KeyMode, RegistryData, RegistryEdit, UnknownBase};

use super::*;
use crate::LinkTo;

/// More than a busy machine needs: what compares each with each takes several times as long.
const LIMIT: Duration = Duration::from_secs(10);

/// A layer with these changes of the registry.
fn layer_of(edits: &[RegistryEdit]) -> Arc<Layer> {
    let mut layer = Layer::new(0);
    for hive in unfitted_hives(edits, FileTime(0)).unwrap() {
        layer.hive(hive.name.parse().unwrap(), hive.bytes);
    }
    Arc::new(layer)
}

fn key(name: &str) -> KeyPath {
    format!(r"HKLM\SOFTWARE\Acme\{name}").parse().unwrap()
}

/// A key without what a base has there.
fn replaced(name: &str) -> RegistryEdit {
    RegistryEdit::CreateKey {
        key: key(name),
        mode: KeyMode::Replace,
    }
}

fn value(key: &KeyPath, name: &str) -> RegistryEdit {
    RegistryEdit::SetValue {
        key: key.clone(),
        name: name.to_owned(),
        data: RegistryData::sz(name),
    }
}

#[test]
fn a_deleted_key_takes_along_what_is_below_and_nothing_next_to_it() {
    let mut below = BaseOverlay::over(&UnknownBase);
    let names = ["K", r"K\a", r"K\a\b", "K-", "Ka", "J"];
    let edits: Vec<_> = names.into_iter().map(replaced).collect();
    below.lay(&layer_of(&edits)).unwrap();
    let deleted = RegistryEdit::DeleteKey { key: key("k") };
    below.lay(&layer_of(&[deleted])).unwrap();
    let is_there = |name: &&str| below.key(&key(name)).unwrap().present().is_some();
    let found: Vec<&str> = names.into_iter().filter(is_there).collect();
    assert_eq!(found, ["K-", "Ka", "J"]);
}

#[test]
fn a_deleted_folder_takes_along_what_is_in_it_and_nothing_next_to_it() {
    let mut below = BaseOverlay::over(&UnknownBase);
    let names = ["a/b", "a/c/d", "a-/b", "ab/b"];
    let mut files = Layer::new(0);
    for name in names {
        files.file(name.parse().unwrap(), b"x".to_vec());
    }
    below.lay(&Arc::new(files)).unwrap();
    let mut deletion = Layer::new(0);
    deletion.delete("A".parse().unwrap());
    below.lay(&Arc::new(deletion)).unwrap();
    let is_there = |name: &&str| {
        let path = format!("/{name}").parse().unwrap();
        below.file(&path).unwrap().present().is_some()
    };
    let found: Vec<&str> = names.into_iter().filter(is_there).collect();
    assert_eq!(found, ["a-/b", "ab/b"]);
}

#[test]
fn a_large_file_of_a_layer_has_a_digest() {
    let bytes = vec![b'x'; 5 << 20];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("b");
    std::fs::write(&path, &bytes).unwrap();
    let mut below = BaseOverlay::over(&UnknownBase);
    let mut files = Layer::new(0);
    files.file("a/b".parse().unwrap(), path);
    below.lay(&Arc::new(files)).unwrap();
    let at = |path: &str| path.parse::<ImagePath>().unwrap();
    assert_eq!(below.content(&at("/a/b")).unwrap(), Presence::Unknown);
    let digest = Presence::Present(wincimg_common::digest::sha256(&bytes));
    assert_eq!(below.digest(&at("/a/b")).unwrap(), digest);
    assert_eq!(below.digest(&at("/a")).unwrap(), Presence::Absent);
    assert_eq!(below.digest(&at("/a/c")).unwrap(), Presence::Unknown);
}

#[test]
fn the_attributes_of_a_link_say_what_it_is_to() {
    let mut links = Layer::new(0);
    for (name, to) in [("file", LinkTo::File), ("folder", LinkTo::Directory)] {
        links.symlink(name.parse().unwrap(), "x", to).unwrap();
    }
    let mut below = BaseOverlay::over(&UnknownBase);
    below.lay(&Arc::new(links)).unwrap();
    let attributes = |path: &str| {
        let found = below.file(&path.parse().unwrap()).unwrap();
        found.present().unwrap().attributes
    };
    assert_eq!([attributes("/file"), attributes("/folder")], [0x420, 0x410]);
}

#[test]
fn new_values_of_a_key_follow_those_that_stay() {
    let mut below = BaseOverlay::over(&UnknownBase);
    let own = key("K");
    let [a, b, c, upper, d] = ["a", "b", "c", "A", "d"].map(|name| value(&own, name));
    below.lay(&layer_of(&[replaced("K"), a, b, c])).unwrap();
    let (key, name) = (own.clone(), "C".to_owned());
    let second = [upper, d, RegistryEdit::DeleteValue { key, name }];
    below.lay(&layer_of(&second)).unwrap();
    let found = below.key(&own).unwrap().present().unwrap().values;
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["b", "A", "d"]);
}

#[test]
fn many_keys_and_values_are_replaced_and_deleted_at_once() {
    let names: Vec<String> = (0..5_000).map(|number| format!("n{number}")).collect();
    let own = key("values");
    let values = names.iter().map(|name| value(&own, name));
    let keys = names.iter().map(|name| replaced(name));
    let edits: Vec<_> = keys
        .chain([replaced("values")])
        .chain(values.clone())
        .collect();
    let deletions = names
        .iter()
        .map(|name| RegistryEdit::DeleteKey { key: key(name) });
    let later: Vec<_> = deletions.chain(values).collect();
    let layers = [layer_of(&edits), layer_of(&later)];
    let started = Instant::now();
    let mut below = BaseOverlay::over(&UnknownBase);
    for layer in &layers {
        below.lay(layer).unwrap();
    }
    assert!(started.elapsed() < LIMIT);
    let found = below.key(&own).unwrap().present().unwrap();
    assert_eq!(found.values.len(), names.len());
    assert_eq!(below.key(&key("n7")).unwrap(), Presence::Absent);
}

#[test]
fn many_files_are_deleted_at_once() {
    let (mut files, mut deletions) = (Layer::new(0), Layer::new(0));
    for number in 0..20_000 {
        let name: LayerPath = format!("app/{number}").parse().unwrap();
        files.file(name.clone(), b"x".as_slice());
        deletions.delete(name);
    }
    let layers = [Arc::new(files), Arc::new(deletions)];
    let started = Instant::now();
    let drive = Drive::from_layers(&layers).unwrap();
    assert!(started.elapsed() < LIMIT);
    assert_eq!(drive.files.len(), 1, "the folder stays");
}

#[test]
fn a_deep_key_of_the_base_is_found_at_once() {
    let deep = key(&["k"; 400].join(r"\"));
    let below = BaseOverlay::over(&UnknownBase);
    let started = Instant::now();
    for _ in 0..200_000 {
        assert_eq!(below.key(&deep).unwrap(), Presence::Unknown);
    }
    assert!(started.elapsed() < LIMIT);
}
