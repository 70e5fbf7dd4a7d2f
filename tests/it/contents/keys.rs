//! `image ls` of registry keys.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use serde_json::Value;
use wincimg_registry::{RegistryData, RegistryEdit};
use wincimg_testkit::programs::{component, python_with_regipy};
use wincimg_testkit::test_bases::{delta_hive, made_software, set};

use super::{VENDOR, run, versions};

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
