use super::*;
use crate::{DataType, KeyPathError, Root, TypedData};

fn path(text: &str) -> KeyPath {
    text.parse().unwrap()
}

/// Paths through links, and the paths of their targets.
const LINKS: &str = r"
HKLM\SOFTWARE\Wow6432Node\policies\Contoso => HKLM\SOFTWARE\Policies\Contoso
HKLM\SOFTWARE\WOW6432Node\Classes\CLSID\{1} => HKLM\SOFTWARE\Classes\WOW6432Node\CLSID\{1}
HKLM\SOFTWARE\Classes\Wow6432Node\Appid\{1} => HKLM\SOFTWARE\Classes\AppID\{1}
HKLM\SOFTWARE\WOW6432Node\Classes\Protocols\Filter => HKLM\SOFTWARE\Classes\PROTOCOLS\Filter
HKLM\SOFTWARE\WOW6432Node\Classes\TypeLib\{1} => HKLM\SOFTWARE\Classes\TypeLib\{1}
HKLM\SYSTEM\CurrentControlSet\Hardware Profiles\current\Software => HKLM\SYSTEM\ControlSet001\Hardware Profiles\0001\Software
";

#[test]
fn a_path_through_a_link_is_the_target_s() {
    for case in LINKS.trim().lines() {
        let (text, target) = case.split_once(" => ").unwrap();
        let (path, link) = KeyPath::parse(text).unwrap();
        assert_eq!(path.to_string(), target);
        assert_eq!(text.parse(), Ok(path));
        let note = link.unwrap().to_string();
        assert!(note.contains("is a link in Windows"), "{note}");
    }
    for text in [
        r"HKLM\SOFTWARE\WOW6432Node",
        r"HKLM\SOFTWARE\WOW6432Node\Policies2",
        r"HKLM\SOFTWARE\Classes\WOW6432Node\CLSID",
        r"HKLM\SOFTWARE\Classes\TypeLib",
        r"HKLM\SOFTWARE\Policies",
        r"HKLM\SYSTEM\WOW6432Node\Policies",
        r"HKLM\SYSTEM\CurrentControlSet\Hardware Profiles\0001",
    ] {
        assert_eq!(KeyPath::parse(text).unwrap().1, None, "{text}");
    }
}

#[test]
fn the_current_control_set_is_the_first_one() {
    for text in [
        r"HKLM\SYSTEM\CurrentControlSet\Services\cexecsvc",
        r"HKEY_LOCAL_MACHINE\System\currentcontrolset\Services\cexecsvc",
        r"HKLM:\SYSTEM\ControlSet001\Services\cexecsvc\",
    ] {
        assert_eq!(
            path(text).to_string(),
            r"HKLM\SYSTEM\ControlSet001\Services\cexecsvc"
        );
    }
    assert_eq!(
        path(r"HKLM\SOFTWARE\CurrentControlSet").components(),
        ["CurrentControlSet"]
    );
}

#[test]
fn names_keep_their_case() {
    let lower = path(r"HKLM\SOFTWARE\größe\x");
    let upper = path(r"hklm\software\GRÖßE\X");
    assert_eq!(lower.components(), ["größe", "x"]);
    assert_ne!(lower, upper);
}

#[test]
fn a_hive_root_is_a_key_too() {
    assert_eq!(path(r"HKU\.DEFAULT"), KeyPath::root_of(Root::DefaultUser));
    assert_eq!(
        path(r"HKEY_USERS\.default\Software").long_form(),
        r"HKEY_USERS\.DEFAULT\Software"
    );
}

#[test]
fn roots_outside_the_image_are_refused_with_the_nearest_way() {
    for (text, instead) in [
        (r"HKCU\Software\x", r"HKU\.DEFAULT"),
        (r"HKCR\.txt", r"HKLM\SOFTWARE\Classes"),
        (r"HKLM\HARDWARE\DESCRIPTION", "entry point"),
        (r"HKLM\SAM\SAM", "net user"),
        (r"HKLM\SECURITY", "secedit"),
        (r"HKLM\BCD00000000\x", "bcdedit"),
        (r"HKEY_CURRENT_CONFIG\x", "Hardware Profiles"),
        (r"HKU\S-1-5-18\x", r"HKU\.DEFAULT"),
        (r"HKU\S-1-5-21-1-2-3-500\x", "entry point"),
        (r"HKU\Default\Software", "a file in the user's profile"),
    ] {
        let error = text.parse::<KeyPath>().unwrap_err();
        assert!(
            matches!(&error, KeyPathError::Unreachable { .. }),
            "{error:?}"
        );
        assert!(error.to_string().contains(instead), "{error}");
    }
    let error = r"HKCU\Software\x".parse::<KeyPath>().unwrap_err();
    assert_eq!(
        error.to_string(),
        r"HKCU\Software cannot be read or changed in an image: the user is known only when a process runs; use HKU\.DEFAULT for the system account; for the user of a container, run reg with HKCU in the entry point"
    );
}

#[test]
fn texts_that_are_no_path_say_what_is_wrong() {
    for (text, part) in [
        ("", "starts with an unknown root"),
        (r" HKLM\SOFTWARE", "starts with an unknown root"),
        (r"SOFTWARE\x", "starts with an unknown root"),
        (
            r"HKLM\ELSEWHERE\x",
            r#""HKLM\ELSEWHERE\x" starts with an unknown root"#,
        ),
        (
            r"HKLM\SOFTWARE\a\\b",
            r#""HKLM\SOFTWARE\a\\b" contains an empty name"#,
        ),
        ("HKLM\\SOFTWARE\\a\0b", "backslash or a null"),
    ] {
        let error = text.parse::<KeyPath>().unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let long = format!(r"HKLM\SOFTWARE\{}", "x".repeat(256));
    let deep = format!(r"HKLM\SOFTWARE{}", r"\x".repeat(510));
    for (text, part) in [(long, "has 256 UTF-16 units"), (deep, "is too deep")] {
        let error = text.parse::<KeyPath>().unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn data_reads_back_as_it_was_written() {
    let list = RegistryData::multi_sz(&["one", "zwölf"]).unwrap();
    for (data, typed) in [
        (RegistryData::sz("20000"), TypedData::Text("20000".into())),
        (
            RegistryData::expand_sz("%SystemRoot%\\x"),
            TypedData::Text("%SystemRoot%\\x".into()),
        ),
        (
            RegistryData::link(r"\REGISTRY\MACHINE"),
            TypedData::Text(r"\REGISTRY\MACHINE".into()),
        ),
        (RegistryData::dword(4), TypedData::Dword(4)),
        (RegistryData::dword_big_endian(4), TypedData::Dword(4)),
        (RegistryData::qword(1 << 40), TypedData::Qword(1 << 40)),
        (
            list.clone(),
            TypedData::List(vec!["one".into(), "zwölf".into()]),
        ),
        (
            RegistryData::multi_sz::<&str>(&[]).unwrap(),
            TypedData::List(vec![]),
        ),
        (
            RegistryData::binary([1, 2, 3]),
            TypedData::Bytes(&[1, 2, 3]),
        ),
    ] {
        assert_eq!(data.typed(), typed);
    }
    assert_eq!(RegistryData::dword_big_endian(4).bytes(), [0, 0, 0, 4]);
    assert_eq!(list.bytes().len(), (3 + 1 + 5 + 1 + 1) * 2);
    let empty = RegistryData::multi_sz::<&str>(&[]).unwrap();
    assert_eq!(empty.bytes(), [0, 0]);
}

#[test]
fn data_that_its_type_does_not_describe_stays_bytes() {
    for data in [
        RegistryData::new(DataType::DWORD, [1, 2, 3]),
        RegistryData::new(DataType::SZ, [0x41, 0, 0x42, 0]),
        RegistryData::new(DataType::SZ, [0x41]),
        RegistryData::new(DataType::SZ, [0, 0xD8, 0, 0]),
        RegistryData::new(DataType::MULTI_SZ, [0x41, 0, 0, 0]),
        RegistryData::new(DataType::MULTI_SZ, []),
        RegistryData::new(DataType(0x1234), [9]),
    ] {
        assert_eq!(data.typed(), TypedData::Bytes(data.bytes()));
    }
}

#[test]
fn a_list_cannot_hold_an_empty_string() {
    let error = RegistryData::multi_sz(&["a", ""]).unwrap_err();
    assert!(error.to_string().starts_with("string 2 of the list"));
}

#[test]
fn edits_print_as_readable_json() {
    let edit = RegistryEdit::SetValue {
        key: path(r"HKLM\SYSTEM\CurrentControlSet\Services\DiagTrack"),
        name: "Start".into(),
        data: RegistryData::dword(4),
    };
    assert_eq!(
        serde_json::to_string(&edit).unwrap(),
        r#"{"action":"set_value","key":"HKLM\\SYSTEM\\ControlSet001\\Services\\DiagTrack","name":"Start","type":"dword","value":4}"#
    );
    let odd = RegistryData::new(DataType(0x1234), [0xAB]);
    assert_eq!(
        serde_json::to_string(&odd).unwrap(),
        r#"{"type":"0x1234","bytes":"ab"}"#
    );
    let replace = RegistryEdit::CreateKey {
        key: path(r"HKLM\SOFTWARE\x"),
        mode: KeyMode::Replace,
    };
    assert_eq!(
        serde_json::to_string(&replace).unwrap(),
        r#"{"action":"create_key","key":"HKLM\\SOFTWARE\\x","mode":"replace"}"#
    );
}

#[test]
fn type_names_are_read_in_both_spellings() {
    assert_eq!(
        DataType::from_name("REG_EXPAND_SZ"),
        Some(DataType::EXPAND_SZ)
    );
    assert_eq!(DataType::from_name("qword"), Some(DataType::QWORD));
    assert_eq!(DataType::from_name("string"), None);
    assert_eq!(DataType(0x20).to_string(), "type 0x20");
}

#[test]
fn keys_that_windows_needs_are_lost_if_they_are_deleted_or_replaced() {
    for (text, is_needed) in [
        (r"HKLM\SOFTWARE", true),
        (r"HKLM\SYSTEM\CurrentControlSet", true),
        (r"HKLM\SYSTEM\ControlSet001\services", true),
        (r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion", true),
        (r"HKLM\SYSTEM\CurrentControlSet\Services\DiagTrack", false),
        (r"HKLM\SOFTWARE\Microsoft\Rpc", false),
        (r"HKU\.DEFAULT\Microsoft", false),
    ] {
        let key = path(text);
        let create = |mode| RegistryEdit::CreateKey {
            key: key.clone(),
            mode,
        };
        let deleted = RegistryEdit::DeleteKey { key: key.clone() };
        for edit in [deleted, create(KeyMode::Replace)] {
            assert_eq!(edit.lost_key().is_some(), is_needed, "{edit}");
        }
        assert_eq!(create(KeyMode::Merge).lost_key(), None, "{text}");
    }
}
