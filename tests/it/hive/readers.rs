//! Written hives read by two independent readers, hivex and regipy.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value as Json, json};
use wincimg_registry::hive::{FileTime, Hive, Key, set_value};
use wincimg_registry::{DataType, RegistryData, RegistryEdit, TypedData};
use wincimg_testkit::kernel_rules::check;
use wincimg_testkit::programs::{component, python_with_regipy};
use wincimg_testkit::test_bases::{create, delete_key, made_software, real_system, set};

use super::hive_of;

const TOP: &str = r"HKLM\SOFTWARE\Example";

/// Values of every type and size under names in every alphabet. No value is deleted: hivex stops at
/// its mark, in Windows' own delta hives too.
fn edits() -> Vec<RegistryEdit> {
    let long: String = ('a'..='z').cycle().take(40_000).collect();
    let bytes = |count: usize| -> Vec<u8> { (0..=255).cycle().take(count).collect() };
    let mut edits = vec![
        set(TOP, "", RegistryData::sz("the default")),
        set(TOP, "text", RegistryData::sz("a \"quoted\" \\ text")),
        set(TOP, "empty", RegistryData::sz("")),
        set(TOP, "variables", RegistryData::expand_sz("%SystemRoot%\\x")),
        set(TOP, "number", RegistryData::dword(0xCAFE_F00D)),
        set(TOP, "long number", RegistryData::qword(1 << 60 | 7)),
        set(
            TOP,
            "list",
            RegistryData::multi_sz(&["one", "zwei", "три"]).unwrap(),
        ),
        set(TOP, "five bytes", RegistryData::binary(bytes(5))),
        set(TOP, "one segment", RegistryData::binary(bytes(16_344))),
        set(TOP, "two segments", RegistryData::binary(bytes(16_345))),
        set(TOP, "many segments", RegistryData::binary(bytes(100_000))),
        set(TOP, "long text", RegistryData::sz(&long)),
        set(
            &format!(r"{TOP}\日本語\кириллица"),
            "имя",
            RegistryData::sz("значение 😀"),
        ),
        set(&format!(r"{TOP}\😀"), "ｆｕｌｌ", RegistryData::dword(1)),
        create(&format!(r"{TOP}\new")),
        delete_key(&format!(r"{TOP}\gone")),
    ];
    for number in 0..600 {
        let key = format!(r"{TOP}\many\key {number}");
        edits.push(set(&key, "n", RegistryData::dword(number)));
    }
    edits
}

/// Writes the hive into a directory, which is removed with the first value.
fn on_disk(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("Software_Delta");
    std::fs::write(&file, bytes).unwrap();
    (directory, file)
}

fn run(program: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn hivex_reads_every_key_and_value() {
    let hivexget = component("hivexget");
    let hivexml = component("hivexml");
    let bytes = hive_of(&edits());
    let hive = Hive::read(&bytes).unwrap();
    let (_directory, file) = on_disk(&bytes);
    let file = file.to_str().unwrap();

    let whole = run(&hivexml, &[file]);
    assert_eq!(whole.matches("<node ").count(), hive.root.walk().count());

    let top = hive.root.at("Example").unwrap();
    let many = |key: &Key<'_>| key.name.starts_with("key ") && key.name.len() > 5;
    let mut keys = 0;
    each_key(r"\Example", top, &mut |path, key| {
        if !many(key) {
            let read = run(&hivexget, &[file, path]);
            for (read, written) in read.lines().zip(listing(key).lines()) {
                let beginning = |line: &str| line.chars().take(60).collect::<String>();
                assert!(
                    read == written,
                    "{path}: {} is not {}",
                    beginning(read),
                    beginning(written)
                );
            }
            assert_eq!(read.lines().count(), key.values.len());
            keys += 1;
        }
    });
    assert_eq!(keys, 17);
}

fn each_key(path: &str, key: &Key<'_>, visit: &mut impl FnMut(&str, &Key<'_>)) {
    visit(path, key);
    for subkey in &key.subkeys {
        each_key(&format!("{path}\\{}", subkey.name), subkey, visit);
    }
}

/// A whole hive that Windows wrote keeps every rule, and a value that is set in it leaves all others
/// as they are.
#[test]
fn hivex_reads_values_that_were_set_in_a_whole_hive() {
    const KEY: &str = r"ControlSet001\Control\Session Manager\Environment";
    let before = real_system();
    let long = "x".repeat(2000);
    let mut after = before.clone();
    for (name, data) in [
        (
            "Path",
            RegistryData::expand_sz(r"%SystemRoot%\system32;C:\own"),
        ),
        ("NUMBER_OF_PROCESSORS", RegistryData::dword(3)),
        ("Новый", RegistryData::sz(&long)),
    ] {
        after = set_value(&after, KEY, name, &data, FileTime(1)).unwrap();
    }
    // The kernel would load it, and no cell is lost.
    let (sound, still) = (check(&before).unwrap(), check(&after).unwrap());
    assert_eq!((still.keys, still.values), (sound.keys, sound.values + 1));
    assert_eq!((still.lost_cells, still.rest), (sound.lost_cells, 0));
    let (old, new) = (Hive::read(&before).unwrap(), Hive::read(&after).unwrap());
    assert_eq!(sound.keys, old.root.walk().count());
    assert!(sound.keys > 10_000 && sound.long_values > 0, "{sound:?}");
    let environment = new.root.at(KEY).unwrap();
    assert_eq!(
        environment.values.len(),
        old.root.at(KEY).unwrap().values.len() + 1
    );
    let mut others = old.root.walk().zip(new.root.walk());
    assert!(others.all(|(old, new)| {
        old.name == "Environment" || old.values == new.values && old.security == new.security
    }));
    assert_eq!(old.root.walk().count(), new.root.walk().count());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hive");
    std::fs::write(&file, &after).unwrap();
    let output = Command::new(component("hivexget"))
        .arg(&file)
        .arg(format!("\\{KEY}"))
        .output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    assert_eq!(text, listing(environment));
    assert!(text.contains(r"C:\\own") && text.contains(&long), "{text}");
}

/// A key's values as hivexget lists them.
fn listing(key: &Key<'_>) -> String {
    let line = |name: &str, data: &RegistryData| {
        let name = if name.is_empty() { "@" } else { name };
        let kind = data.kind().0;
        let data = match data.typed() {
            TypedData::Text(text) => {
                let text = text.replace('\\', "\\\\").replace('"', "\\\"");
                match data.kind() {
                    DataType::SZ => format!("\"{text}\""),
                    _ => format!("str({kind}):\"{text}\""),
                }
            }
            TypedData::Dword(number) => format!("dword:{number:08x}"),
            _ => {
                let digits: Vec<String> = data.bytes().iter().map(|b| format!("{b:02x}")).collect();
                format!("hex({kind}):{}", digits.join(","))
            }
        };
        format!("\"{name}\"={data}\n")
    };
    key.values
        .iter()
        .filter_map(|value| Some(line(&value.name, &value.data()?)))
        .collect()
}

/// Prints each key with its path and its values with their types.
const REGIPY: &str = r"
import json, sys
from regipy.registry import RegistryHive

def walk(key, path):
    values = [[v.name, v.value_type, v.value] for v in key.iter_values(trim_values=False)]
    keys.append([path, values])
    for below in key.iter_subkeys():
        walk(below, path + '\\' + below.name)

keys = []
walk(RegistryHive(sys.argv[1]).root, '')
json.dump(keys, sys.stdout, default=bytes.hex)
";

#[test]
fn regipy_reads_every_key_and_value() {
    regipy_reads(&hive_of(&edits()));
}

#[test]
fn a_whole_hive_that_bases_of_the_tests_have_is_one_to_regipy() {
    regipy_reads(&made_software());
}

#[test]
fn a_whole_hive_that_bases_of_the_tests_have_is_one_to_hivex() {
    let software = made_software();
    let hivexml = component("hivexml");
    let (_directory, file) = on_disk(&software);
    let whole = run(&hivexml, &[file.to_str().unwrap()]);
    let keys = Hive::read(&software).unwrap().root.walk().count();
    assert_eq!(whole.matches("<node ").count(), keys);
}

/// Compares the content of a hive according to regipy with our own reader's.
fn regipy_reads(bytes: &[u8]) {
    let python = python_with_regipy();
    let hive = Hive::read(bytes).unwrap();
    let (_directory, file) = on_disk(bytes);
    let output = run(&python, &["-c", REGIPY, file.to_str().unwrap()]);
    let read: Json = serde_json::from_str(&output).unwrap();

    let mut written = Vec::new();
    each_key("", &hive.root, &mut |path, key| {
        let values: Vec<Json> = key
            .values
            .iter()
            .filter_map(|value| Some(in_python(&value.name, &value.data()?)))
            .collect();
        written.push(json!([path, values]));
    });
    for (read, written) in std::iter::zip(read.as_array().unwrap(), &written) {
        assert!(read == written, "{} differs: {}", written[0], read[0]);
    }
    assert_eq!(read.as_array().unwrap().len(), written.len());
}

/// A value in regipy's format.
fn in_python(name: &str, data: &RegistryData) -> Json {
    let name = if name.is_empty() { "(default)" } else { name };
    let value = match data.typed() {
        TypedData::Text(text) => json!(text),
        TypedData::List(list) => json!(list),
        TypedData::Dword(number) => json!(number),
        TypedData::Qword(number) => json!(number),
        TypedData::Bytes(bytes) => json!(hex::encode(bytes)),
    };
    json!([name, data.kind().to_string(), value])
}
