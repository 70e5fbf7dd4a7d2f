use super::*;
use crate::hive::{FileTime, Hive, edits, unfitted_hives};
use crate::{DataType, KeyMode, KeyPath, RegistryData, RegistryEdit, Root};

const HEADER: &str = "Windows Registry Editor Version 5.00\r\n\r\n";
const KEY: &str = r"HKLM\SOFTWARE\Example";

fn values(body: &str) -> Vec<(String, Option<RegistryData>)> {
    let text = format!("{HEADER}[HKEY_LOCAL_MACHINE\\SOFTWARE\\Example]\r\n{body}");
    let edits = import(text.as_bytes()).unwrap().edits;
    assert!(matches!(&edits[0], RegistryEdit::CreateKey { key, .. } if key.to_string() == KEY));
    edits.into_iter().skip(1).map(named).collect()
}

fn named(edit: RegistryEdit) -> (String, Option<RegistryData>) {
    match edit {
        RegistryEdit::SetValue { name, data, .. } => (name, Some(data)),
        RegistryEdit::DeleteValue { name, .. } => (name, None),
        other => panic!("{other}"),
    }
}

fn error(text: &str) -> String {
    import(text.as_bytes()).unwrap_err().to_string()
}

#[test]
fn every_form_of_value_is_read() {
    let forms = [
        ("\"a\"=\"b\"", "a", RegistryData::sz("b")),
        ("@=\"b\"", "", RegistryData::sz("b")),
        (
            r#""a\\b\"c"="d\\e\"f""#,
            r#"a\b"c"#,
            RegistryData::sz(r#"d\e"f"#),
        ),
        ("\"a\"=dword:1f", "a", RegistryData::dword(0x1F)),
        (
            "  \"a\" = DWORD:0000001F ; why",
            "a",
            RegistryData::dword(0x1F),
        ),
        ("\"a\"=\"b\" ; why", "a", RegistryData::sz("b")),
        ("\"a\"=hex:01,2,ff", "a", RegistryData::binary([1, 2, 255])),
        ("\"a\"=hex:", "a", RegistryData::binary([])),
        (
            "\"a\"=hex(b):00,01,00,00,00,00,00,00",
            "a",
            RegistryData::qword(256),
        ),
        ("\"a\"=hex(0):", "a", RegistryData::new(DataType::NONE, [])),
        (
            "\"a\"=hex(4):01,02",
            "a",
            RegistryData::new(DataType::DWORD, [1, 2]),
        ),
        (
            "\"a\"=hex(ffff0011):aa",
            "a",
            RegistryData::new(DataType(0xFFFF_0011), [0xAA]),
        ),
        (
            "\"a\"=hex(2):25,00,\\\r\n  41,00,25,00,\\\r\n  00,00",
            "a",
            RegistryData::expand_sz("%A%"),
        ),
        (
            "\"a\"=hex:01,\\\r\n\r\n \t\r\n ; why\r\n  02",
            "a",
            RegistryData::binary([1, 2]),
        ),
        ("\"a\"=hex(1):41,00", "a", RegistryData::sz("A")),
        ("\"a\"=hex(2):41,00", "a", RegistryData::expand_sz("A")),
        (
            "\"a\"=hex(7):41,00",
            "a",
            RegistryData::new(DataType::MULTI_SZ, [0x41, 0, 0, 0]),
        ),
        (
            "\"a\"=hex(2):",
            "a",
            RegistryData::new(DataType::EXPAND_SZ, []),
        ),
        ("\"ж\"=\"öß\"", "ж", RegistryData::sz("öß")),
        ("\"a;b\"=\"[x]\"", "a;b", RegistryData::sz("[x]")),
    ];
    for (text, name, data) in forms {
        assert_eq!(values(text), [(name.to_owned(), Some(data))], "{text}");
    }
    assert_eq!(
        values("\"a\"=-\r\n@=-"),
        [("a".to_owned(), None), (String::new(), None)]
    );
}

#[test]
fn blanks_may_stand_before_the_header() {
    let key = "\r\n[HKEY_LOCAL_MACHINE\\SOFTWARE\\x]\r\n";
    for header in [
        " REGEDIT4",
        "\tREGEDIT4",
        " Windows Registry Editor Version 5.00",
    ] {
        let found = import(format!("{header}{key}").as_bytes());
        assert_eq!(found.unwrap().edits.len(), 1, "{header}");
    }
    let start = error(&format!("\r\nREGEDIT4{key}"));
    assert!(start.starts_with("line 1, column 1: not a registration file"));
}

/// As in the tests of wine's `reg`, which also pass on Windows.
#[test]
fn values_of_a_deleted_key_are_ignored() {
    let start = format!("{HEADER}[-HKEY_LOCAL_MACHINE\\SOFTWARE\\x]\r\n");
    let import = |rest: &str| import([start.as_str(), rest].concat().as_bytes());
    let expected = import("").unwrap();
    assert_eq!(expected.edits.len(), 1);
    for rest in [
        "@=\"a\"",
        "\"a\"=-",
        "\"a\"=hex:01,\\\r\n  02\r\n\"b\"=dword:1",
    ] {
        assert_eq!(import(rest).unwrap(), expected, "{rest}");
    }
    let next = import("@=\"a\"\r\n[HKEY_LOCAL_MACHINE\\SOFTWARE\\y]\r\n\"a\"=\"\"");
    assert_eq!(next.unwrap().edits.len(), 3);
    assert!(import("\"a\"=x").is_err());
}

#[test]
fn keys_are_created_and_deleted_in_the_order_of_the_file() {
    let text = format!(
        "{HEADER}; first\r\n # second\r\n[-HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\x]\r\n\r\n[HKEY_USERS\\.DEFAULT\\a]b] ; last\r\n"
    );
    let key = |text: &str| -> KeyPath { text.parse().unwrap() };
    let expected = [
        RegistryEdit::DeleteKey {
            key: key(r"HKLM\SYSTEM\ControlSet001\Services\x"),
        },
        RegistryEdit::CreateKey {
            key: key(r"HKU\.DEFAULT\a]b"),
            mode: KeyMode::Merge,
        },
    ];
    assert_eq!(import(text.as_bytes()).unwrap().edits, expected);
}

#[test]
fn all_encodings_give_the_same_edits() {
    let text = format!("{HEADER}[HKEY_LOCAL_MACHINE\\SOFTWARE\\Größe]\r\n\"€\"=\"ü\"\r\n");
    let plain = import(text.as_bytes()).unwrap();
    let marked = [b"\xEF\xBB\xBF", text.as_bytes()].concat();
    let mut western = b"REGEDIT4\n\n[HKEY_LOCAL_MACHINE\\SOFTWARE\\Gr".to_vec();
    western.extend(b"\xF6\xDFe]\n\"\x80\"=\"\xFC\"\n");
    for bytes in [marked, to_utf16(&text), western] {
        assert_eq!(import(&bytes).unwrap(), plain);
    }
}

#[test]
fn strings_in_the_bytes_of_an_old_file_have_one_byte_a_character() {
    let text = "REGEDIT4\n[HKEY_LOCAL_MACHINE\\SOFTWARE\\Example]\n\"a\"=hex(2):25,41,25\n\"b\"=hex(7):61,00,80,00,00\n\"c\"=hex:61,00\n";
    let data: Vec<_> = import(text.as_bytes())
        .unwrap()
        .edits
        .into_iter()
        .skip(1)
        .map(named)
        .collect();
    assert_eq!(
        data,
        [
            ("a".to_owned(), Some(RegistryData::expand_sz("%A%"))),
            (
                "b".to_owned(),
                Some(RegistryData::multi_sz(&["a", "€"]).unwrap())
            ),
            ("c".to_owned(), Some(RegistryData::binary([0x61, 0]))),
        ]
    );
}

#[test]
fn errors_say_the_line_and_the_column() {
    let body = |text: &str| {
        error(&format!(
            "{HEADER}[HKEY_LOCAL_MACHINE\\SOFTWARE\\x]\r\n{text}"
        ))
    };
    assert_eq!(
        error("hello"),
        "line 1, column 1: not a registration file: expected \"Windows Registry Editor Version 5.00\" or \"REGEDIT4\""
    );
    assert_eq!(
        error(&format!("{HEADER}\"a\"=\"b\"")),
        "line 3, column 1: expected a [key] before its values"
    );
    assert_eq!(
        error(&format!("{HEADER}[HKEY_LOCAL_MACHINE\\SOFTWARE")),
        "line 3, column 2: expected ] at the end of the key"
    );
    // A pilcrow is a line break.
    let faults = r#"
"ü"=dword:xyz → line 4, column 11: expected a number of up to 8 hexadecimal digits, found "xyz"
"a"=dword:123456789 → line 4, column 11: expected a number of up to 8 hexadecimal digits, found "123456789"
"a"=dword:1 2 → line 4, column 13: expected the end of the line
"a"="b → line 4, column 5: expected a closing " on the same line
"a\q"="b" → line 4, column 3: expected one of \\ \" \n \r
"a"="b\0c" → line 4, column 7: expected one of \\ \" \n \r
"a"=hex:01,\¶¶"b"="x" → line 6, column 1: expected a byte in hexadecimal, found ""
"a"=hex:01,\¶  02,1ff → line 5, column 9: expected a byte in hexadecimal, found "1ff"
"a"=hex:01,\ → line 4, column 13: expected another line with bytes
"a"=hex(2:01 → line 4, column 10: expected ): after the type number
"a"=1 → line 4, column 5: expected "text", dword:, hex:, hex(type): or -
a=1 → line 4, column 1: expected [key], "name"=, @= or a comment
"a":1 → line 4, column 4: expected =
"#;
    for fault in faults.trim().lines() {
        let (text, error) = fault.split_once(" → ").unwrap();
        assert_eq!(body(&text.replace('¶', "\r\n")), error);
    }
    assert!(body("[HKEY_CURRENT_USER\\x]").starts_with(
        "line 4, column 2: HKEY_CURRENT_USER\\x cannot be read or changed in an image"
    ));
    let broken = [HEADER.as_bytes(), b"; ok \xFF"].concat();
    assert_eq!(
        import(&broken).unwrap_err().to_string(),
        "line 3, column 6: neither UTF-8 nor UTF-16 with a byte order mark"
    );
}

#[test]
fn a_delta_exports_as_the_file_that_makes_it() {
    let key = |name: &str| -> KeyPath { format!(r"HKLM\SOFTWARE\{name}").parse().unwrap() };
    let set = |name: &str, value: &str, data| RegistryEdit::SetValue {
        key: key(name),
        name: value.into(),
        data,
    };
    let made = [
        set("a", "", RegistryData::sz("x\\\"y")),
        set("a", "number", RegistryData::dword(20)),
        set(
            "a",
            "odd \"name\"",
            RegistryData::binary((0..40).collect::<Vec<u8>>()),
        ),
        set("a", "two lines", RegistryData::sz("1\r\n2")),
        RegistryEdit::DeleteValue {
            key: key("a"),
            name: "gone".into(),
        },
        RegistryEdit::DeleteKey { key: key("b") },
        RegistryEdit::CreateKey {
            key: key("c"),
            mode: KeyMode::Replace,
        },
        set(r"c\d", "e", RegistryData::qword(1)),
    ];
    let hives = unfitted_hives(&made, FileTime::default()).unwrap();
    let hive = Hive::read(&hives[0].bytes).unwrap();
    let text = export(Root::Software.long_name(), &hive.root);
    assert_eq!(
        text.replace("\r\n", "\n"),
        r#"Windows Registry Editor Version 5.00

[HKEY_LOCAL_MACHINE\SOFTWARE]

[HKEY_LOCAL_MACHINE\SOFTWARE\a]
@="x\\\"y"
"gone"=-
"number"=dword:00000014
"odd \"name\""=hex:00,01,02,03,04,05,06,07,08,09,0a,0b,0c,0d,0e,0f,10,11,12,13,\
  14,15,16,17,18,19,1a,1b,1c,1d,1e,1f,20,21,22,23,24,25,26,27
"two lines"=hex(1):31,00,0d,00,0a,00,32,00,00,00

[-HKEY_LOCAL_MACHINE\SOFTWARE\b]

[-HKEY_LOCAL_MACHINE\SOFTWARE\c]

[HKEY_LOCAL_MACHINE\SOFTWARE\c]

[HKEY_LOCAL_MACHINE\SOFTWARE\c\d]
"e"=hex(b):01,00,00,00,00,00,00,00

"#
    );
    let again = import(&to_utf16(&text)).unwrap().edits;
    let rewritten = unfitted_hives(&again, FileTime::default()).unwrap();
    assert_eq!(rewritten, hives);
    assert_eq!(edits(Root::Software, &hive.root).unwrap().len(), made.len());
}

#[test]
fn a_name_with_a_line_break_cannot_smuggle_lines_into_the_export() {
    let key: KeyPath = "HKLM\\SOFTWARE\\a".parse().unwrap();
    let odd = key.child("x]\r\n[HKEY_LOCAL_MACHINE").unwrap();
    let set = |key: &KeyPath| RegistryEdit::SetValue {
        key: key.clone(),
        name: "n\r\n\"m\"=-".into(),
        data: RegistryData::sz("v"),
    };
    let hives = unfitted_hives(&[set(&key), set(&odd)], FileTime::default()).unwrap();
    let hive = Hive::read(&hives[0].bytes).unwrap();
    let text = export(Root::Software.long_name(), &hive.root);
    let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(
        lines[2..],
        [
            r"[HKEY_LOCAL_MACHINE\SOFTWARE\a]",
            r#""n\r\n\"m\"=-"="v""#,
            r#"; left out: a key named "x]\r\n[HKEY_LOCAL_MACHINE""#,
        ]
    );
}
