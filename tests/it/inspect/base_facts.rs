//! Facts about bases, compared with the contents of test bases and of a real hive.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::OnceLock;

use bytes::Bytes;
use wincimg_inspect::base::{
    BaseFacts, BaseHive, BaseKeyPath, CollectedLayer, Extent, LayerPosition, assemble,
    collect_layer,
};
use wincimg_oci::document::sha256;
use wincimg_registry::hive::{Hive, Key};
use wincimg_registry::{BaseKey, BaseKeys, DataType, Presence, RegistryData, Root, TypedData};
use wincimg_testkit::component;
use wincimg_testkit::test_bases::{
    ENVIRONMENT, FILE, FOLDER, LayerTar, USER_FOLDER, bottom_layer, descriptor, gzip,
    made_software, made_system, make_links, real_system, set, upper_layer, whole_hive,
};
use wincimg_windows::base_contents::{BaseContents, BaseRequirements, FileDigest, FileKind};

const BASE_PATH: &str = r"%SystemRoot%\system32;%SystemRoot%";

fn inside(tar: &[u8], number: usize, extent: &Extent) -> CollectedLayer {
    let place = match number {
        0 => LayerPosition::Bottom,
        _ => LayerPosition::Above,
    };
    collect_layer(gzip(tar).as_slice(), place, extent).unwrap()
}

pub(super) fn facts_of(extent: &Extent, tars: &[Vec<u8>]) -> BaseFacts {
    BaseFacts::read(file_of(extent, tars)).unwrap()
}

/// Facts of a base with the hive of a real Windows, which take a second to make.
pub(super) fn real_facts() -> BaseFacts {
    static MADE: OnceLock<Bytes> = OnceLock::new();
    let file = MADE.get_or_init(|| {
        let tar = bottom_layer(&real_system(), &made_software()).tar();
        file_of(&Extent::Everything, &[tar])
    });
    BaseFacts::read(file.clone()).unwrap()
}

fn file_of(extent: &Extent, tars: &[Vec<u8>]) -> Bytes {
    let layers = (0..).zip(tars);
    let layers = layers.map(|(number, tar)| inside(tar, number, extent));
    let base = sha256(b"a base");
    assemble(&base, Some("10.0.17763.973"), extent, layers.collect()).unwrap()
}

fn present<T>(known: Presence<T>) -> T {
    known.present().expect("it is there")
}

fn value(key: &BaseKey, name: &str) -> Option<RegistryData> {
    let mut values = key.values.iter();
    let found = values.find(|(known, _)| known.eq_ignore_ascii_case(name));
    found.map(|(_, data)| data.clone())
}

#[test]
fn path_is_what_the_topmost_layer_makes_of_it() {
    let change = r"C:\runtime;%SystemRoot%\system32;%SystemRoot%";
    let upper = upper_layer(&[set(ENVIRONMENT, "PATH", RegistryData::expand_sz(change))]);
    let bottom = bottom_layer(&made_system(BASE_PATH), &made_software()).tar();
    for (layers, expected) in [
        (vec![bottom.clone()], BASE_PATH),
        (vec![bottom, upper.tar()], change),
    ] {
        let facts = facts_of(&Extent::Everything, &layers);
        let key = present(facts.key(&ENVIRONMENT.parse().unwrap()).unwrap());
        assert_eq!(value(&key, "path"), Some(RegistryData::expand_sz(expected)));
        assert_eq!(value(&key, "Path").unwrap().kind(), DataType::EXPAND_SZ);
        assert_eq!(key.values.len(), 2);
        assert_eq!(facts.base_digest(), &sha256(b"a base"));
        assert_eq!(facts.os_version(), Some("10.0.17763.973"));
        assert!(facts.is_complete() && facts.problems().is_empty());
    }
}

/// Every key of a hive with its path.
fn each_key<'h>(
    key: &'h Key<'h>,
    path: &mut Vec<String>,
    visit: &mut impl FnMut(&[String], &Key<'h>),
) {
    visit(path, key);
    for subkey in &key.subkeys {
        path.push(subkey.name.clone());
        each_key(subkey, path, visit);
        path.pop();
    }
}

#[test]
fn every_key_of_a_real_hive_is_known_with_its_values_and_its_descriptor() {
    let (system, facts) = (real_system(), real_facts());
    let hive = Hive::read(&system).unwrap();
    let mut count = 0;
    let mut names = BTreeSet::new();
    each_key(&hive.root, &mut Vec::new(), &mut |components, key| {
        let path = BaseKeyPath {
            hive: BaseHive::System,
            components: components.to_vec(),
        };
        let found = present(facts.key_at(&path).unwrap());
        assert_eq!(found.security, key.security, "{path}");
        assert_eq!(found.class, key.class, "{path}");
        let values = key.values.iter();
        let values = values.map(|value| (value.name.clone(), value.data().unwrap()));
        assert_eq!(found.values, values.collect::<Vec<_>>(), "{path}");
        names.insert(path.to_string());
        count += 1;
    });
    let top: BaseKeyPath = r"HKLM\SYSTEM".parse().unwrap();
    let listed = facts.keys_below(&top).unwrap();
    let listed: BTreeSet<String> = listed.map(|key| key.unwrap().path.to_string()).collect();
    assert_eq!(listed, names);
    assert!(count > 10_000);
}

#[test]
fn hivex_finds_in_a_real_hive_as_much_as_facts_have() {
    let system = real_system();
    let hivexml = component("hivexml");
    let hivexget = component("hivexget");
    let facts = real_facts();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("SYSTEM");
    std::fs::write(&file, &system).unwrap();
    let output = |program, arguments: &[&str]| {
        let output = Command::new(program).arg(&file).args(arguments).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{:?}", output.status);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let xml = output(hivexml, &[]);
    let top: BaseKeyPath = r"HKLM\SYSTEM".parse().unwrap();
    let keys: Vec<_> = facts
        .keys_below(&top)
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(keys.len(), xml.matches("<node ").count());
    let values = keys.iter().map(|key| {
        let key = facts.key_at(&key.path).unwrap();
        present(key).values.len()
    });
    assert_eq!(values.sum::<usize>(), xml.matches("<value ").count());

    let path = [
        r"\ControlSet001\Control\Session Manager\Environment",
        "Path",
    ];
    let key = present(facts.key(&ENVIRONMENT.parse().unwrap()).unwrap());
    let known = value(&key, "Path").unwrap();
    assert_eq!(
        known.typed(),
        TypedData::Text(output(hivexget, &path).trim_end().to_owned())
    );
}

#[test]
fn a_link_says_where_it_leads() {
    let key = |name: &str| format!(r"HKLM\SOFTWARE\Links\{name}");
    let link = |name: &str, target: &str| {
        let data = RegistryData::link(target);
        set(&key(name), "SymbolicLinkValue", data)
    };
    let mut software = whole_hive(&[
        link("inside", r"\Registry\Machine\Software\Classes\x"),
        link("other", r"\REGISTRY\MACHINE\SYSTEM\ControlSet001"),
        link("outside", r"\Registry\Machine\SAM\x"),
        link("no link", r"\Registry\Machine\Software\x"),
        set(&key("nowhere"), "x", RegistryData::sz("")),
    ]);
    for name in ["inside", "other", "outside", "nowhere"] {
        make_links(&mut software, name);
    }
    let tar = bottom_layer(&made_system(BASE_PATH), &software).tar();
    let facts = facts_of(&Extent::Everything, &[tar]);
    let links = facts.subkeys(&r"HKLM\SOFTWARE\Links".parse().unwrap());
    let links = links.unwrap().into_iter();
    let links: Vec<_> = links
        .filter_map(|found| Some(found.key.link?.to_string()))
        .collect();
    let expected = [r"HKLM\SOFTWARE\Classes\x", r"HKLM\SYSTEM\ControlSet001"];
    assert_eq!(links, expected);
}

#[test]
fn files_are_known_with_attributes_descriptors_and_digests() {
    let tar = bottom_layer(&made_system(BASE_PATH), &made_software()).tar();
    let facts = facts_of(&Extent::Everything, &[tar]);
    let file = |path: &str| facts.file(&path.parse().unwrap()).unwrap();
    let user = present(file(r"c:\users\CONTAINERUSER"));
    assert_eq!(user.kind, FileKind::Folder);
    assert_eq!(user.attributes, 16);
    assert_eq!(user.security, Some(descriptor(USER_FOLDER)));
    let cmd = present(file(r"C:\Windows\System32\cmd.exe"));
    let digest = sha256(b"MZ").to_string();
    let FileKind::File(FileDigest { size: 2, sha256 }) = cmd.kind else {
        panic!("{cmd:?}")
    };
    assert_eq!(format!("sha256:{}", hex::encode(sha256)), digest);
    assert_eq!(cmd.security, Some(descriptor(FILE)));
    assert_eq!(file(r"C:\not-ours"), Presence::Absent);
    assert_eq!(file(r"C:\Windows\notepad.exe"), Presence::Absent);
    assert!(matches!(file(r"C:\"), Presence::Present(_)));
    assert!(matches!(
        file(r"C:\Windows\System32\config\SYSTEM"),
        Presence::Present(_)
    ));

    let content = |path: &str| facts.content(&path.parse().unwrap()).unwrap();
    let host = r"C:\Windows\System32\inetsrv\config\applicationHost.config";
    assert_eq!(
        content(host),
        Presence::Present(b"<configuration/>".to_vec())
    );
    assert_eq!(content(r"C:\inetpub\wwwroot\web.config"), Presence::Absent);
    assert_eq!(content(r"C:\Windows\System32\cmd.exe"), Presence::Unknown);

    let listed = facts
        .folder(&r"C:\Windows\System32".parse().unwrap())
        .unwrap();
    let names: Vec<_> = listed
        .iter()
        .map(|found| found.components.join("/"))
        .collect();
    assert_eq!(
        names,
        [
            "Windows/System32/cmd.exe",
            "Windows/System32/config",
            "Windows/System32/inetsrv"
        ]
    );
    let below = facts.files_below(&r"C:\".parse().unwrap()).unwrap();
    assert_eq!(below.map(Result::unwrap).count(), 16);
}

#[test]
fn layers_above_delete_replace_and_add() {
    let mut bottom = LayerTar::default();
    bottom
        .folder("Files/a", Some(FOLDER))
        .file("Files/a/one", b"1", Some(FILE))
        .folder("Files/a/deep", Some(FOLDER))
        .file("Files/a/deep/two", b"2", Some(FILE))
        .file("Files/a b", b"kept", None)
        .folder("Files/was-folder", None)
        .file("Files/was-folder/inner", b"", None)
        .folder("Files/stays", Some(FOLDER))
        .file("Files/stays/inner", b"", None);
    let mut upper = LayerTar::default();
    upper
        .folder("Files/STAYS", Some(USER_FOLDER))
        .file("Files/.wh.A", b"", None)
        .file("Files/.wh..wh..opq", b"", None)
        .file("Files/Was-Folder", b"now a file", None)
        .hard_link("Files/stays/same", "Files/Stays/Inner")
        .hard_link("Files/stays/lost", "Files/nowhere")
        .link("Files/link", "C:/stays")
        .file("Files/new/below/file", b"x", None);
    let facts = facts_of(&Extent::Everything, &[bottom.tar(), upper.tar()]);
    let listed = facts.files_below(&r"C:\".parse().unwrap()).unwrap();
    let listed: Vec<_> = listed.map(Result::unwrap).collect();
    let names: Vec<_> = listed
        .iter()
        .map(|found| found.components.join("/"))
        .collect();
    let expected = [
        "", "a b", "link", "new", "new/below", "new/below/file", "stays", "stays/inner",
        "stays/same", "Was-Folder",
    ];
    assert_eq!(names, expected);
    assert_eq!(listed[6].file.security, Some(descriptor(USER_FOLDER)));
    assert_eq!(listed[7].file.kind, listed[8].file.kind);
    assert_eq!(listed[2].target.as_deref(), Some("C:/stays"));
    let problems: Vec<_> = facts
        .problems()
        .iter()
        .map(|found| found.place.as_str())
        .collect();
    assert!(problems.contains(&"Files/stays/lost"), "{problems:?}");
}

#[test]
fn of_a_part_only_the_part_is_known() {
    let bottom = bottom_layer(&made_system(BASE_PATH), &made_software()).tar();
    let upper = upper_layer(&[set(ENVIRONMENT, "New", RegistryData::sz("x"))]).tar();
    let host = r"C:\Windows\System32\inetsrv\config\applicationHost.config";
    let needs = BaseRequirements {
        hives: [Root::System].into(),
        files: false,
        contents: [host.parse().unwrap(), r"C:\absent".parse().unwrap()].into(),
    };
    let schema = r"C:\Windows\System32\inetsrv\config\schema\Ftp_schema.xml";
    let mut more = LayerTar::default();
    let file = "Files/Windows/System32/inetsrv/config/schema/Ftp_schema.xml";
    more.file(file, b"<configSchema/>", Some(FILE));
    let facts = facts_of(&Extent::Part(needs), &[bottom, upper, more.tar()]);
    assert!(!facts.is_complete() && facts.problems().is_empty());
    let key = present(facts.key(&ENVIRONMENT.parse().unwrap()).unwrap());
    assert_eq!(value(&key, "New"), Some(RegistryData::sz("x")));
    let software = facts.key(&r"HKLM\SOFTWARE\Microsoft".parse().unwrap());
    assert_eq!(software.unwrap(), Presence::Unknown);
    let file = facts.file(&r"C:\Windows".parse().unwrap());
    assert_eq!(file.unwrap(), Presence::Unknown);
    let content = |path: &str| facts.content(&path.parse().unwrap()).unwrap();
    assert_eq!(
        content(host),
        Presence::Present(b"<configuration/>".to_vec())
    );
    // IIS reads every file of that folder.
    assert_eq!(
        content(schema),
        Presence::Present(b"<configSchema/>".to_vec())
    );
    assert_eq!(content(r"C:\absent"), Presence::Absent);
    assert_eq!(content(r"C:\other"), Presence::Unknown);
}

#[test]
fn a_part_with_files_has_all_hives_whose_roots_a_build_repeats() {
    let tar = bottom_layer(&made_system(BASE_PATH), &made_software()).tar();
    let has_hives = |files| {
        let needs = BaseRequirements {
            hives: [Root::System].into(),
            files,
            ..BaseRequirements::default()
        };
        let facts = facts_of(&Extent::Part(needs), std::slice::from_ref(&tar));
        let hives = [BaseHive::System, BaseHive::Software, BaseHive::DefaultUser];
        hives.map(|hive| facts.has_hive(hive))
    };
    assert_eq!(has_hives(true), [true; 3]);
    assert_eq!(has_hives(false), [true, false, false]);
}

#[test]
fn a_part_is_found_without_reading_on() {
    let tar = bottom_layer(&made_system(BASE_PATH), &made_software()).tar();
    let needs = BaseRequirements {
        hives: [Root::System].into(),
        ..BaseRequirements::default()
    };
    let end = tar
        .windows(7)
        .position(|bytes| bytes == b"cmd.exe")
        .unwrap();
    // The damaged end is not reached.
    let cut = &tar[..end];
    let extent = Extent::Part(needs);
    let found = collect_layer(cut, LayerPosition::Bottom, &extent).unwrap();
    let facts = assemble(&sha256(b""), None, &extent, vec![found]).unwrap();
    let facts = BaseFacts::read(facts).unwrap();
    assert!(facts.has_hive(BaseHive::System));
    assert!(collect_layer(cut, LayerPosition::Bottom, &Extent::Everything).is_err());
}

#[test]
fn hives_that_are_missing_or_broken_are_not_used_and_named() {
    let mut software = made_software();
    let end = software.len() - 5000;
    software.truncate(end);
    let tar = bottom_layer(&made_system(BASE_PATH), &software).tar();
    let facts = facts_of(&Extent::Everything, &[tar]);
    let software = facts.key(&r"HKLM\SOFTWARE\Microsoft".parse().unwrap());
    assert_eq!(software.unwrap(), Presence::Unknown);
    assert!(facts.has_hive(BaseHive::System) && !facts.has_hive(BaseHive::Software));
    let [problem] = facts.problems() else {
        panic!("{:?}", facts.problems())
    };
    assert_eq!(problem.layer, 1);
    assert_eq!(problem.place, "Files/Windows/System32/config/SOFTWARE");
    assert!(!problem.problem.is_empty(), "{problem:?}");

    let facts = facts_of(&Extent::Everything, &[LayerTar::default().tar()]);
    assert_eq!(facts.problems().len(), 5);
    let key = facts.key(&ENVIRONMENT.parse().unwrap()).unwrap();
    assert_eq!(key, Presence::Unknown);
    assert_eq!(
        facts.file(&r"C:\x".parse().unwrap()).unwrap(),
        Presence::Absent
    );
}

#[test]
fn the_same_layers_give_the_same_bytes() {
    let tar = || [bottom_layer(&made_system(BASE_PATH), &made_software()).tar()];
    let extent = Extent::Everything;
    assert_eq!(file_of(&extent, &tar()), file_of(&extent, &tar()));
}
