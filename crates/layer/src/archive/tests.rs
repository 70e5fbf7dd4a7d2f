//! Archives that no tool makes; those of tools are tested in `tests/it`.

use std::io::{Cursor, Read as _, Write as _};
use std::sync::Arc;

use ::zip::write::SimpleFileOptions;
use ::zip::{CompressionMethod, ZipWriter};
use proptest::prelude::*;
use wincimg_common::files::SpoolWriter;

use super::*;
use crate::{LinkTo, Symlink};

fn placed(bytes: &[u8]) -> ArchiveLocation {
    let mut parts = SpoolWriter::in_folder(&std::env::temp_dir()).unwrap();
    // What is around it is not its own.
    parts.append(|out| out.write_all(b"before")).unwrap();
    let part = parts.append(|out| out.write_all(bytes)).unwrap();
    parts.append(|out| out.write_all(b"PK behind")).unwrap();
    ArchiveLocation::Part(part)
}

fn open(bytes: &[u8]) -> Result<Option<Arc<Archive>>, ArchiveError> {
    Archives::default().open(placed(bytes), "a", None)
}

fn unpacked(
    bytes: &[u8],
    selection: &UnpackSelection<'_>,
) -> Result<Vec<UnpackedEntry>, ArchiveError> {
    open(bytes)?.unwrap().unpack(selection)
}

/// Unpacked entries, as a list.
fn listed(bytes: &[u8], selection: &UnpackSelection<'_>) -> Vec<String> {
    let all = unpacked(bytes, selection).unwrap();
    let line = |entry: &UnpackedEntry| {
        let path = &entry.path;
        match &entry.content {
            UnpackedContent::Folder => format!("{path}/"),
            UnpackedContent::File(member) => {
                let bytes = member.bytes(1 << 20).unwrap();
                format!("{path}={}", String::from_utf8(bytes).unwrap())
            }
            UnpackedContent::Link(Symlink { target, to }) => {
                format!("{path}->{target} {}", *to == LinkTo::Directory)
            }
        }
    };
    all.iter().map(line).collect()
}

fn printed(bytes: &[u8]) -> String {
    let result = unpacked(bytes, &UnpackSelection::default());
    result.unwrap_err().to_string()
}

/// The error of reading the first file.
fn unreadable(entries: &[UnpackedEntry]) -> String {
    let UnpackedContent::File(member) = &entries[0].content else {
        panic!("no file");
    };
    member.bytes(99).unwrap_err().to_string()
}

/// A zip with members of these names, whose content is their place.
fn zip(names: &[&str]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    for (place, name) in names.iter().enumerate() {
        zip.start_file(*name, SimpleFileOptions::default()).unwrap();
        write!(zip, "{place}").unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// A member of a tar.
enum TarMember<'a> {
    File(&'a str, &'a str),
    Folder(&'a str),
    Link(&'a str, &'a str),
    Same(&'a str, &'a str),
    Device(&'a str),
}

fn tar(members: &[TarMember<'_>]) -> Vec<u8> {
    let mut builder = ::tar::Builder::new(Vec::new());
    for member in members {
        let mut header = ::tar::Header::new_ustar();
        header.set_mode(0o644);
        let (kind, name, target, content) = match member {
            TarMember::File(name, content) => (::tar::EntryType::Regular, name, "", *content),
            TarMember::Folder(name) => (::tar::EntryType::Directory, name, "", ""),
            TarMember::Link(name, target) => (::tar::EntryType::Symlink, name, *target, ""),
            TarMember::Same(name, target) => (::tar::EntryType::Link, name, *target, ""),
            TarMember::Device(name) => (::tar::EntryType::Char, name, "", ""),
        };
        header.set_entry_type(kind);
        let fields = header.as_old_mut();
        fields.name[..name.len()].copy_from_slice(name.as_bytes());
        fields.linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, content.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
fn what_is_wanted_exists_with_its_folders() {
    let archive = zip(&["app/bin/a.exe", r"app\doc\read.me", "app/b", "other"]);
    let all = listed(&archive, &UnpackSelection::default());
    let expected = [
        "app/", "app/bin/", "app/bin/a.exe=0", "app/doc/", "app/doc/read.me=1", "app/b=2",
        "other=3",
    ];
    assert_eq!(all, expected);
    let inside = UnpackSelection {
        strip: 1,
        only: &["app/bin".to_owned(), "other".to_owned()],
        by: Unpacker::Native,
    };
    assert_eq!(listed(&archive, &inside), ["bin/", "bin/a.exe=0"]);
    let missing = UnpackSelection {
        only: &["app/bi".to_owned()],
        ..inside
    };
    let error = unpacked(&archive, &missing).unwrap_err().to_string();
    assert_eq!(error, r#"cannot unpack a: it has no "app/bi""#);
}

#[test]
fn links_of_a_tar_stay_inside_and_a_later_version_counts() {
    use TarMember::{File, Folder, Link, Same};
    let archive = tar(&[
        Folder("./d/"),
        File("./d/one", "1"),
        Same("two", "./d/one"),
        Link("d/l", "../d"),
        Link("m", "d/one"),
        File("/d/one", "later"),
    ]);
    let all = listed(&archive, &UnpackSelection::default()).join(", ");
    let expected = "d/, d/one=later, two=1, d/l->../d true, m->d/one false";
    assert_eq!(all, expected);
}

#[test]
fn what_would_not_be_what_it_is_on_windows_is_refused_with_its_name() {
    use TarMember::{Device, File, Folder, Link, Same};
    for (name, why) in [
        ("../x", r#"contains "..""#),
        (r"..\x", r#"contains "..""#),
        (r"a\..\..\x", r#"contains "..""#),
        ("a/../x", r#"contains "..""#),
        ("/x", "starts with a drive"),
        (r"\x", "starts with a drive"),
        (r"\\server\share\x", "starts with a drive"),
        ("C:/x", r#"does not accept the name "C:""#),
        (r"c:\x", r#"does not accept the name "c:""#),
        ("a/x:stream", "does not accept the name"),
        ("CON", "reserved for a device"),
        ("a/nul.txt", "reserved for a device"),
        ("a/com1", "reserved for a device"),
        ("a./x", "ends with a dot or a space"),
        ("a/x ", "ends with a dot or a space"),
        ("a/x\u{1}", "control character"),
        ("a?", "does not accept the name"),
    ] {
        let plain = ["first", name];
        let error = printed(&zip(&plain));
        let shown = format!("cannot unpack {name:?} of a: ");
        assert!(error.starts_with(&shown) && error.contains(why), "{error}");
        // A tar drops what is before the first name.
        if !name.starts_with('/') {
            let tarred = tar(&[File("first", ""), File(name, "")]);
            assert_eq!(printed(&tarred), error);
        }
    }
    for (names, why) in [
        (
            &["a/X", "a/x"][..],
            r#"on Windows it is the same path as "a/X""#,
        ),
        (&["ä", "Ä"], r#"on Windows it is the same path as "ä""#),
        (&["a", "A/x"], r#""A" is not a folder"#),
        (&["a/x", "A"], r#""A" is a folder too"#),
        (&["a/x", r"a\x"], "it is a duplicate"),
    ] {
        let error = printed(&zip(names));
        assert!(error.contains(why), "{names:?}: {error}");
    }
    for (members, why) in [
        (&[Link("l", "../x")][..], "outside the folder"),
        (&[Link("d/l", "../../x")], "outside the folder"),
        (&[Link("l", "/etc")], "outside the folder"),
        (&[Link("l", r"\\server\x")], "outside the folder"),
        (&[Link("l", "C:/x")], "outside the folder"),
        (&[Link("l", "d"), File("l/x", "")], "is not a folder"),
        (&[Same("s", "x")], "which does not precede it"),
        (&[Same("s", "../x")], "which does not precede it"),
        (&[Device("c")], "a device or a pipe"),
        (&[File("x", ""), Folder("x")], "is not a folder"),
    ] {
        let error = printed(&tar(members));
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_zip_that_says_two_things_is_refused() {
    let sound = zip(&["one", "two"]);
    let place = |bytes: &[u8], what: &[u8], from: usize| {
        let mut windows = bytes[from..].windows(what.len());
        from + windows.position(|window| window == what).unwrap()
    };
    let directory = place(&sound, b"PK\x01\x02", 0);
    // Both entries of the list are about the first member.
    let second = place(&sound, b"PK\x01\x02", directory + 4);
    let mut overlap = sound.clone();
    overlap[second + 42..second + 46].copy_from_slice(&[0; 4]);
    assert!(printed(&overlap).contains("its bytes overlap another member's"));
    let mut twice = sound.clone();
    let name = place(&sound, b"two", second);
    twice[name..name + 3].copy_from_slice(b"one");
    let error = printed(&twice);
    assert_eq!(error, r#"cannot unpack "one" of a: it is a duplicate"#);
    let mut locked = sound.clone();
    locked[directory + 8] |= 1;
    assert!(printed(&locked).contains(r#""one" of a: it needs a password"#));
    let mut odd = sound.clone();
    odd[directory + 10] = 14;
    assert!(printed(&odd).contains("compression not supported by Windows"));
    let mut oem = sound.clone();
    let name = place(&sound, b"one", directory);
    oem[name] = 0x81;
    assert!(printed(&oem).contains("its name is not in UTF-8"));
    let mut unsaid = sound.clone();
    unsaid[name..name + 3].copy_from_slice("\u{e9}e".as_bytes());
    assert_eq!(listed(&unsaid, &UnpackSelection::default())[0], "\u{e9}e=0");
    let there = UnpackSelection {
        by: Unpacker::Dotnet,
        ..UnpackSelection::default()
    };
    let error = unpacked(&unsaid, &there).unwrap_err().to_string();
    assert!(error.contains("depends on the code page"), "{error}");
    // Its content is not what the list says.
    let mut broken = sound.clone();
    let crc = directory + 16;
    broken[crc] ^= 1;
    let error = unreadable(&unpacked(&broken, &UnpackSelection::default()).unwrap());
    let shown = r#"cannot unpack "one" of a: "#;
    assert!(error.starts_with(shown), "{error}");
    let mut longer = sound;
    longer[directory + 24] = 9;
    let error = unreadable(&unpacked(&longer, &UnpackSelection::default()).unwrap());
    assert!(error.contains("it is truncated"), "{error}");
}

#[test]
fn what_would_fill_disks_is_refused_before_anything_is_unpacked() {
    let mut bomb = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    let zeros = vec![0; 32 << 20];
    for name in 0..40 {
        bomb.start_file(name.to_string(), options).unwrap();
        bomb.write_all(&zeros).unwrap();
    }
    let bomb = bomb.finish().unwrap().into_inner();
    let error = printed(&bomb);
    assert!(error.contains("200 times its own"), "{error}");
    // A tar says how long its members are before they come.
    let mut header = ::tar::Header::new_ustar();
    header.set_path("large").unwrap();
    header.set_size(2 << 30);
    header.set_cksum();
    let mut stream = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    stream.write_all(header.as_bytes()).unwrap();
    let error = printed(&stream.finish().unwrap());
    assert!(error.contains("200 times its own"), "{error}");
}

#[test]
fn an_archive_that_changes_after_it_was_listed_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zip");
    fs::write(&path, zip(&["one"])).unwrap();
    let place = ArchiveLocation::Path(path.clone().into());
    let archive = Archive::open(place, "a.zip".to_owned(), None).unwrap();
    let all = Arc::new(archive.unwrap()).unpack(&UnpackSelection::default());
    fs::write(&path, zip(&["another", "one"])).unwrap();
    let error = unreadable(&all.unwrap());
    assert_eq!(error, "a.zip changed while it was read");
}

#[cfg(unix)]
#[test]
fn an_archive_that_becomes_a_link_out_of_its_folder_is_not_opened() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = folder.path().join("a.zip");
    let target = outside.path().join("a.zip");
    fs::write(&target, zip(&["one"])).unwrap();
    std::os::unix::fs::symlink(target, &path).unwrap();
    let place = ArchiveLocation::Path(path.into());
    let error = Archive::open(place, "a.zip".to_owned(), None).unwrap_err();
    let error = wincimg_common::diagnose::error_chain(&error);
    assert!(error.contains("leads out of"), "{error}");
}

#[test]
fn members_are_read_in_one_pass_and_again_where_they_are_wanted_twice() {
    let archive = open(&tar(&[
        TarMember::File("one", "1"),
        TarMember::File("two", "22"),
        TarMember::File("three", "333"),
    ]));
    let archive = archive.unwrap().unwrap();
    let member = |index| Member {
        archive: Arc::clone(&archive),
        index,
    };
    let (one, three) = (member(0), member(2));
    let mut order = Vec::new();
    read(&[&three, &one, &three], |place, content| {
        let mut text = String::new();
        content.read_to_string(&mut text).unwrap();
        order.push((place, text));
        Ok::<(), ArchiveError>(())
    })
    .unwrap();
    let text = |text: &str| text.to_owned();
    assert_eq!(order, [(1, text("1")), (0, text("333")), (2, text("333"))]);
}

/// A tar with one empty file for each of these paths, however long.
fn long_tar(paths: impl Iterator<Item = String>) -> Vec<u8> {
    let mut builder = ::tar::Builder::new(Vec::new());
    for path in paths {
        let mut header = ::tar::Header::new_gnu();
        header.set_size(0);
        // The builder refuses no path, and adds GNU's long names.
        builder.append_data(&mut header, path, &[][..]).unwrap();
    }
    builder.into_inner().unwrap()
}

#[test]
fn a_path_has_a_length_that_folders_can_have() {
    let deep = |levels: usize| long_tar([format!("{}f", "a/".repeat(levels))].into_iter());
    let all = unpacked(&deep(127), &UnpackSelection::default()).unwrap();
    assert_eq!(all.len(), 128);
    for (archive, why) in [
        (deep(128), "it has more than 128 names"),
        (deep(16_000), "it has more than 4096 bytes"),
        (
            long_tar([vec!["x".repeat(200); 21].join("/")].into_iter()),
            "it has more than 4096 bytes",
        ),
    ] {
        let error = printed(&archive);
        assert!(
            error.contains("is too long") && error.contains(why),
            "{error}"
        );
        assert!(error.len() < 200, "{error}");
    }
}

#[test]
fn all_paths_together_have_a_length_too() {
    // Each adds 120 folders of its own: 80,000 members, ten million folders.
    let mut sum = ArchiveSize::new("a.tar", 0);
    let way = "a/".repeat(120);
    let error = (0..80_000).find_map(|number| sum.add(&format!("{number}/{way}f"), 0).err());
    let error = error.unwrap().to_string();
    assert!(error.contains("its paths have more than"), "{error}");
}

#[test]
fn there_is_a_limit_on_members() {
    let mut sum = ArchiveSize::new("a.tar", 0);
    assert!((0..250_000).all(|number| sum.add(&format!("{number}"), 0).is_ok()));
    let error = (0..20_000).find_map(|number| sum.add(&format!("d/{number}"), 0).err());
    let error = error.unwrap().to_string();
    let why = "it has more than 262144 files and folders: unpack it, and copy its folder";
    assert!(error.ends_with(why), "{error}");
}

#[test]
fn a_folder_of_the_way_is_kept_once() {
    let way = "a/".repeat(100);
    let all = long_tar((0..2_000).map(|number| format!("{way}{number}")));
    let all = unpacked(&all, &UnpackSelection::default()).unwrap();
    assert_eq!(all.len(), 100 + 2_000);
}

/// All that can be done with a file that may be an archive. It may fail, and not otherwise.
fn use_up(bytes: &[u8]) {
    let Ok(Some(archive)) = open(bytes) else {
        return;
    };
    let Ok(all) = archive.unpack(&UnpackSelection::default()) else {
        return;
    };
    for entry in &all {
        assert!(!entry.path.is_empty() && !entry.path.split('/').any(|name| name == ".."));
        if let UnpackedContent::File(member) = &entry.content {
            drop(member.bytes(1 << 20));
        }
    }
}

fn seven_zip() -> Vec<u8> {
    include_bytes!("tests/small.7z").to_vec()
}

#[test]
fn a_7z_is_read_and_a_locked_one_is_not() {
    assert_eq!(
        listed(&seven_zip(), &UnpackSelection::default()),
        ["d/", "d/empty=", "d/a.txt=one", "d/b.txt=two"]
    );
    let locked = include_bytes!("tests/locked.7z");
    assert!(printed(locked).contains("it needs a password"));
    let hidden = include_bytes!("tests/hidden.7z");
    let error = open(hidden).unwrap_err().to_string();
    assert_eq!(error, "cannot unpack a: it needs a password");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn broken_archives_are_refused_and_do_no_harm(
        which in 0..5_usize,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let tar = tar(&[TarMember::Folder("d"), TarMember::File("d/x", "content"), TarMember::Link("l", "d")]);
        let gzip = || {
            let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            out.write_all(&tar).unwrap();
            out.finish().unwrap()
        };
        let bzip2 = || {
            let mut out = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
            out.write_all(&tar).unwrap();
            out.finish().unwrap()
        };
        let mut bytes = match which {
            0 => zip(&["d/x", "y"]),
            1 => tar.clone(),
            2 => gzip(),
            3 => bzip2(),
            _ => seven_zip(),
        };
        for (place, value) in flips {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        use_up(&bytes);
    }

    #[test]
    fn any_bytes_behind_a_beginning_do_no_harm(
        which in 0..6_usize,
        rest in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let starts: [&[u8]; 6] = [
            b"PK\x03\x04", b"7z\xBC\xAF\x27\x1C\0\x04", &[0x1F, 0x8B, 8], b"\xFD7zXZ\0", b"BZh9", b"",
        ];
        use_up(&[starts[which], &rest].concat());
    }

    #[test]
    fn any_names_lead_to_names_that_windows_takes_below_the_folder(
        names in prop::collection::vec("([a-cA-C.: ]{1,3}[/\\\\]){0,3}[a-cA-C.]{1,3}", 1..6),
        strip in 0..3_usize,
    ) {
        let members: Vec<TarMember<'_>> = names.iter().map(|name| TarMember::File(name, "")).collect();
        let selection = UnpackSelection { strip, ..UnpackSelection::default() };
        let mut keys = BTreeSet::new();
        for entry in unpacked(&tar(&members), &selection).unwrap_or_default() {
            for name in entry.path.split('/') {
                prop_assert_eq!(wincimg_windows::path::name_problem(name), None);
            }
            prop_assert!(keys.insert(wincimg_windows::path::fold(&entry.path)));
        }
    }
}
