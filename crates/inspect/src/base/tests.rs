//! Facts from hostile bytes: reading returns a result or an error.

use std::sync::LazyLock;

use bytes::Bytes;
use proptest::prelude::*;
use proptest::sample::Index as At;
use sha2::{Digest as _, Sha256};
use wincimg_layer::{Layer, LinkTo, WriteOptions};
use wincimg_oci::document::sha256;
use wincimg_registry::hive::{FileTime, unfitted_hives};
use wincimg_registry::security::SecurityDescriptor;
use wincimg_registry::{BaseKeys, Presence, RegistryData, RegistryEdit};
use wincimg_testkit::noise;
use wincimg_windows::base_contents::{BaseContents, BaseFile, FileDigest, FileKind};

use super::fields::{Fields, put_bytes};
use super::file::{self, LARGEST_DIRECTORY, Table};
use super::record::{FileRecord, KeyRecord};
use super::table::{Index, LARGEST_ENTRY, TableWriter, compressor, unpack};
use super::*;

fn hive(keys: u32) -> Vec<u8> {
    let edits = (0..keys).map(|number| {
        let key = format!(r"HKLM\SYSTEM\Key {}\Below {number}", number % 7);
        set_value(&key, "value", RegistryData::sz(&"text ".repeat(20)))
    });
    let edits: Vec<_> = edits.collect();
    unfitted_hives(&edits, FileTime(1)).unwrap().remove(0).bytes
}

fn set_value(key: &str, name: &str, data: RegistryData) -> RegistryEdit {
    RegistryEdit::SetValue {
        key: key.parse().unwrap(),
        name: name.to_owned(),
        data,
    }
}

/// A bottom layer as a tar.
fn layer() -> Vec<u8> {
    let mut layer = Layer::new(0);
    let config = "Windows/System32/config/SYSTEM";
    layer.file(config.parse().unwrap(), hive(2000));
    for number in 0..300 {
        let path = format!("folder {}/file {number}", number % 9);
        layer.file(path.parse().unwrap(), vec![7; number]);
    }
    let host = "Windows/System32/inetsrv/config/applicationHost.config";
    layer.file(host.parse().unwrap(), b"<configuration/>".to_vec());
    layer
        .symlink("link".parse().unwrap(), "folder 1", LinkTo::Directory)
        .unwrap();
    layer.delete("gone".parse().unwrap());
    let mut blob = Vec::new();
    layer.write(&mut blob, &WriteOptions::default()).unwrap();
    let mut tar = Vec::new();
    let mut unpacked = wincimg_layer::decompress(blob.as_slice()).unwrap();
    std::io::copy(&mut unpacked, &mut tar).unwrap();
    tar
}

fn facts_of(tar: &[u8]) -> Result<Bytes, wincimg_layer::TarReadError> {
    facts_of_layers(&[tar])
}

/// The bottom layer is the first one.
fn facts_of_layers(tars: &[&[u8]]) -> Result<Bytes, wincimg_layer::TarReadError> {
    let extent = Extent::Everything;
    let layers: Result<_, _> = tars
        .iter()
        .enumerate()
        .map(|(number, tar)| collect_layer(*tar, LayerPosition::of(number), &extent))
        .collect();
    Ok(assemble(&sha256(b"base"), Some("10.0.1.1"), &extent, layers?).unwrap())
}

static LAYER: LazyLock<Vec<u8>> = LazyLock::new(layer);
static FACTS: LazyLock<Bytes> = LazyLock::new(|| facts_of(&LAYER).unwrap());

/// Runs every query and returns the number of results.
fn ask_all(bytes: impl Into<Bytes>) -> Result<usize, FactsError> {
    let facts = BaseFacts::read(bytes)?;
    let mut printed = facts.problems().len();
    let mut outcome = Ok(());
    let mut count = |result: Result<(), FactsError>| match result {
        Ok(()) => printed += 1,
        Err(error) => outcome = Err(error),
    };
    for hive in BaseHive::ALL {
        let top = BaseKeyPath {
            hive,
            components: Vec::new(),
        };
        match facts.keys_below(&top) {
            Ok(keys) => keys.for_each(|key| count(key.map(|_| ()))),
            Err(error) => count(Err(error)),
        }
        count(facts.subkeys(&top).map(|_| ()));
    }
    let drive = r"C:\".parse().unwrap();
    match facts.files_below(&drive) {
        Ok(files) => files.for_each(|file| count(file.map(|_| ()))),
        Err(error) => count(Err(error)),
    }
    count(facts.folder(&drive).map(|_| ()));
    let host = r"C:\Windows\System32\inetsrv\config\applicationHost.config";
    let host = host.parse().unwrap();
    let key = r"HKLM\SYSTEM\Key 3\Below 17".parse().unwrap();
    let _ = (
        facts.content(&host),
        facts.file(&host),
        BaseKeys::key(&facts, &key),
    );
    outcome.map(|()| printed)
}

/// The directory of a file and where it begins.
fn directory(bytes: &[u8]) -> (usize, Vec<u8>) {
    let trailer = &bytes[bytes.len() - 24..];
    let number = |at: usize| u32::from_le_bytes(trailer[at..at + 4].try_into().unwrap()) as usize;
    let (place, stored, raw) = (number(0), number(8), number(12));
    let directory = unpack(&bytes[place..place + stored], raw).unwrap();
    (place, directory)
}

/// The file with another directory.
fn with_directory(blocks: &[u8], directory: &[u8], raw: u32) -> Vec<u8> {
    let stored = compressor().unwrap().compress(directory).unwrap();
    let mut bytes = blocks.to_vec();
    bytes.extend(&stored);
    bytes.extend((blocks.len() as u64).to_le_bytes());
    bytes.extend(u32::try_from(stored.len()).unwrap().to_le_bytes());
    bytes.extend(raw.to_le_bytes());
    bytes.extend(b"wincend\n");
    bytes
}

/// The file with another block in the place of one; the checksums are right.
fn with_block(table: Table, number: usize, change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let (place, old) = directory(&FACTS);
    let facts = BaseFacts::read(FACTS.clone()).unwrap();
    let mut tables = facts.tables.clone();
    let blocks = &mut tables[table as usize].0;
    let number = number % blocks.len();
    let block = &mut blocks[number];
    let start = usize::try_from(block.offset).unwrap();
    let mut raw = unpack(&FACTS[start..start + block.stored], block.raw).unwrap();
    change(&mut raw);
    let stored = compressor().unwrap().compress(&raw).unwrap();
    let mut bytes = FACTS[..place].to_vec();
    (block.offset, block.stored, block.raw) = (bytes.len() as u64, stored.len(), raw.len());
    bytes.extend(stored);
    let mut directory = Vec::new();
    put_bytes(&mut directory, Fields::new(&old).bytes().unwrap());
    for table in &tables {
        table.encode(&mut directory);
    }
    let raw = u32::try_from(directory.len()).unwrap();
    with_directory(&bytes, &directory, raw)
}

fn mutate(bytes: &mut Vec<u8>, changes: &[(At, u8)], cut: Option<At>) {
    for (at, byte) in changes {
        let at = at.index(bytes.len());
        bytes[at] = *byte;
    }
    if let Some(cut) = cut {
        bytes.truncate(cut.index(bytes.len()));
    }
}

fn changes() -> impl Strategy<Value = Vec<(At, u8)>> {
    let byte = prop_oneof![any::<u8>(), Just(0), Just(0xFF), Just(0x80), Just(1)];
    prop::collection::vec((any::<At>(), byte), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn damaged_files_are_errors_or_answers(changes in changes(), cut in any::<Option<At>>()) {
        let mut bytes = FACTS.to_vec();
        mutate(&mut bytes, &changes, cut);
        let _ = ask_all(bytes);
    }

    #[test]
    fn forged_directories_are_errors_or_answers(
        changes in changes(),
        cut in any::<Option<At>>(),
        raw in any::<Option<u32>>(),
    ) {
        let (place, mut directory) = directory(&FACTS);
        mutate(&mut directory, &changes, cut);
        let raw = raw.unwrap_or(u32::try_from(directory.len()).unwrap());
        let _ = ask_all(with_directory(&FACTS[..place], &directory, raw));
    }

    #[test]
    fn forged_blocks_are_errors_or_answers(
        table in prop::sample::select(vec![
            Table::Keys, Table::Files, Table::Descriptors, Table::Contents,
        ]),
        number in any::<usize>(),
        changes in changes(),
        cut in any::<Option<At>>(),
    ) {
        let _ = ask_all(with_block(table, number, |raw| mutate(raw, &changes, cut)));
    }

    #[test]
    fn damaged_layers_are_errors_or_facts(changes in changes(), cut in any::<Option<At>>()) {
        let mut tar = LAYER.clone();
        mutate(&mut tar, &changes, cut);
        if let Ok(bytes) = facts_of(&tar) {
            prop_assert!(ask_all(bytes).is_ok());
        }
    }

    #[test]
    fn records_of_any_bytes_are_errors_or_answers(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = KeyRecord::decode(&bytes);
        let _ = FileRecord::decode(&bytes);
        let _ = Index::decode(&mut Fields::new(&bytes), 1000);
        let _ = ask_all(bytes);
    }

    #[test]
    fn a_table_has_what_was_put_into_it(
        entries in prop::collection::btree_map(
            prop::collection::vec(any::<u8>(), 0..12),
            (0..9000_usize, any::<u64>()).prop_map(|(length, seed)| noise(length, seed)),
            0..60,
        ),
        asked in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 20),
    ) {
        let mut bytes = file::header();
        let mut writer = TableWriter::new(&mut bytes).unwrap();
        for (key, value) in &entries {
            prop_assert!(writer.add(key, value).unwrap());
            prop_assert!(!writer.add(key, value).unwrap(), "one key, one entry");
        }
        let about = BaseFacts::read(FACTS.clone()).unwrap().about;
        let tables = [writer.finish().unwrap(), Index::default(), Index::default(), Index::default()];
        file::finish(&mut bytes, &about, &tables).unwrap();
        let facts = BaseFacts::read(bytes).unwrap();
        for key in asked.iter().chain(entries.keys()) {
            let found = facts.get(Table::Keys, key, |value| Ok(value.to_vec())).unwrap();
            prop_assert_eq!(found.as_ref(), entries.get(key));
            let next = facts.seek(Table::Keys, key).unwrap();
            let next = next.entry().map(|(key, _)| key.to_vec());
            prop_assert_eq!(next.as_ref(), entries.range(key.clone()..).next().map(|(key, _)| key));
        }
    }
}

#[test]
fn an_undamaged_file_answers_everything() {
    let printed = ask_all(FACTS.clone()).unwrap();
    // Keys, their parents and the root; files, their folders and the drive; the lists; four hives
    // that the layer does not have.
    assert!(printed > 2000 + 300, "{printed}");
    assert_eq!(BaseFacts::read(FACTS.clone()).unwrap().problems().len(), 4);
}

#[test]
fn a_file_of_another_kind_or_format_is_reported() {
    let message = |bytes: &[u8]| {
        let error = BaseFacts::read(bytes.to_vec()).map(|_| ()).unwrap_err();
        error.to_string()
    };
    assert_eq!(message(b""), "not a file of facts about a base");
    assert_eq!(message(&[b'x'; 100]), "not a file of facts about a base");
    let mut later = FACTS.to_vec();
    later[12] = 9;
    let unsupported = "unsupported format 9 of facts about a base: expected 2";
    assert_eq!(message(&later), unsupported);
    let end = FACTS.len();
    let damaged = message(&FACTS[..end - 1]);
    assert_eq!(damaged, "damaged facts about a base: invalid trailer");
}

/// Small when compressed, and too large to decompress.
#[test]
fn what_unpacks_to_too_much_is_not_unpacked() {
    let (place, _) = directory(&FACTS);
    let huge = vec![0; LARGEST_DIRECTORY + 1];
    let raw = u32::try_from(huge.len()).unwrap();
    let forged = with_directory(&FACTS[..place], &huge, raw);
    assert!(forged.len() < 1 << 20);
    let liar = with_directory(&FACTS[..place], &huge, 1000);
    let block = with_block(Table::Files, 0, |raw| raw.resize(2 * LARGEST_ENTRY, 0));
    for bytes in [forged, liar, block] {
        assert!(matches!(ask_all(bytes), Err(FactsError::Damaged(_))));
    }
}

#[test]
fn a_key_with_more_than_can_be_kept_is_not_known_and_its_subkeys_are() {
    let half = RegistryData::binary(vec![0; LARGEST_ENTRY / 2 + 1]);
    let small = RegistryData::binary(vec![0]);
    let edits = [
        set_value(r"HKLM\SYSTEM\large", "a", half.clone()),
        set_value(r"HKLM\SYSTEM\large", "b", half),
        set_value(r"HKLM\SYSTEM\large\below", "c", small),
    ];
    let hive = unfitted_hives(&edits, FileTime(1)).unwrap().remove(0).bytes;
    let mut layer = Layer::new(0);
    layer.file("Windows/System32/config/SYSTEM".parse().unwrap(), hive);
    let mut blob = Vec::new();
    layer.write(&mut blob, &WriteOptions::default()).unwrap();
    let facts = BaseFacts::read(facts_of(&blob).unwrap()).unwrap();
    let key = |path: &str| facts.key(&path.parse().unwrap()).unwrap();
    assert_eq!(key(r"HKLM\SYSTEM\large"), Presence::Unknown);
    assert!(key(r"HKLM\SYSTEM\large\below").present().is_some());
    assert_eq!(key(r"HKLM\SYSTEM\larger"), Presence::Absent);
    assert_eq!(facts.problems()[0].place, r"HKLM\SYSTEM\large");
}

/// An entry of a tar: path, kind, target, records.
type TarEntry<'a> = (&'a str, tar::EntryType, &'a str, &'a [(&'a str, &'a str)]);

fn tar_of(entries: &[TarEntry<'_>]) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, kind, target, records) in entries {
        let records = records.iter().map(|(key, value)| (*key, value.as_bytes()));
        tar.append_pax_extensions(records).unwrap();
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(*kind);
        if target.is_empty() {
            header.set_size(2);
            tar.append_data(&mut header, path, &b"MZ"[..]).unwrap();
        } else {
            header.set_size(0);
            tar.append_link(&mut header, path, target).unwrap();
        }
    }
    tar.into_inner().unwrap()
}

#[test]
fn descriptors_in_words_and_other_names_of_files_are_read() {
    use tar::EntryType::{Link, Regular};

    const SDDL: &str = "O:SYG:SYD:(A;;FA;;;SY)(A;;FR;;;BU)";
    let dll = "Files/Windows/System32/a.dll";
    let other = "Files/Windows/WinSxS/x/A.dll";
    let words: &[(&str, &str)] = &[("MSWINDOWS.sd", SDDL), ("MSWINDOWS.fileattr", "33")];
    let tar = tar_of(&[
        // Windows' tools write the target first or last: both are tested.
        (other, Link, dll, &[]),
        (dll, Regular, "", words),
        ("Files/b.dll", Regular, "", &[("MSWINDOWS.sd", "O:nobody")]),
        ("Files/c.dll", Link, "Files/not there", &[]),
        ("Files/d.dll", Link, "Hives/System_Delta", &[]),
    ]);
    let facts = BaseFacts::read(facts_of(&tar).unwrap()).unwrap();
    let file = |path: &str| BaseContents::file(&facts, &path.parse().unwrap()).unwrap();
    let of_dll = file(r"C:\Windows\System32\a.dll").present().unwrap();
    let expected: SecurityDescriptor = SDDL.parse().unwrap();
    let read = SecurityDescriptor::from_bytes(of_dll.security.as_ref().unwrap());
    assert_eq!(read.unwrap(), expected);
    assert_eq!(of_dll.attributes, 33);
    let content = FileDigest {
        size: 2,
        sha256: Sha256::digest(b"MZ").into(),
    };
    assert_eq!(of_dll.kind, FileKind::File(content));
    let of_other = file(r"C:\windows\winsxs\X\a.dll").present().unwrap();
    assert_eq!(of_other.name, "A.dll");
    let renamed = BaseFile {
        name: of_dll.name.clone(),
        ..of_other
    };
    assert_eq!(renamed, of_dll);
    assert_eq!(file(r"C:\b.dll").present().unwrap().security, None);
    assert_eq!(file(r"C:\c.dll"), Presence::Absent);
    assert_eq!(file(r"C:\d.dll"), Presence::Absent);
    let printed: Vec<String> = facts.problems().iter().map(ToString::to_string).collect();
    let printed = printed.join("\n");
    for problem in [
        "layer 1: Files/b.dll: its security descriptor cannot be read",
        r#"layer 1: Files/c.dll: hard link target "Files/not there" not found"#,
        r#"layer 1: Files/d.dll: hard link target "Hives/System_Delta" is not in Files"#,
    ] {
        assert!(printed.contains(problem), "{problem}: {printed}");
    }
}

#[test]
fn a_folder_keeps_its_rights_under_a_layer_that_states_none() {
    const SDDL: &str = "O:SYG:SYD:P(A;OICI;FA;;;SY)";
    let folder_of = |records: &[(&str, &str)]| {
        let mut tar = tar::Builder::new(Vec::new());
        let records = records.iter().map(|(key, value)| (*key, value.as_bytes()));
        tar.append_pax_extensions(records).unwrap();
        let mut header = tar::Header::new_ustar();
        header.set_entry_type(tar::EntryType::Directory);
        header.set_size(0);
        tar.append_data(&mut header, "Files", std::io::empty())
            .unwrap();
        tar.into_inner().unwrap()
    };
    let base = folder_of(&[("MSWINDOWS.sd", SDDL)]);
    let own = folder_of(&[("MSWINDOWS.fileattr", "16")]);
    let facts = BaseFacts::read(facts_of_layers(&[&base, &own]).unwrap()).unwrap();
    let root = BaseContents::file(&facts, &r"C:\".parse().unwrap()).unwrap();
    let read = SecurityDescriptor::from_bytes(&root.present().unwrap().security.unwrap());
    assert_eq!(read.unwrap(), SDDL.parse().unwrap());
}

#[test]
fn alternate_data_streams_are_parts_of_their_files() {
    use tar::EntryType::Regular;

    let tar = tar_of(&[
        ("Files/a.txt", Regular, "", &[]),
        ("Files/a.txt:Zone.Identifier", Regular, "", &[]),
    ]);
    let facts = BaseFacts::read(facts_of(&tar).unwrap()).unwrap();
    let listed = facts.folder(&r"C:\".parse().unwrap()).unwrap();
    let names: Vec<&str> = listed.iter().map(|it| it.file.name.as_str()).collect();
    assert_eq!(names, ["a.txt"]);
}
