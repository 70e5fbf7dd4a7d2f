//! Registry changes in a Dockerfile.

use wincimg_layer::ContentSource;
use wincimg_registry::regfile::import;
use wincimg_registry::{DataType, KeyMode};

use super::*;

const REG: &str = r"C:\Windows\System32\reg.exe";

fn key(path: &str) -> KeyPath {
    path.parse().unwrap()
}

fn set(name: &str, data: RegistryData) -> RegistryEdit {
    RegistryEdit::SetValue {
        key: key(r"HKLM\SOFTWARE\Acme Inc"),
        name: name.to_owned(),
        data,
    }
}

fn rendered(edits: Vec<RegistryEdit>) -> RenderedDockerfile {
    let mut plan = plan();
    plan.registry = edits;
    render(&plan, &UnknownBase).unwrap()
}

/// Changes in the only file of a context.
fn imported(rendered: &RenderedDockerfile) -> Vec<RegistryEdit> {
    let [file] = rendered.context.as_slice() else {
        panic!("one file expected");
    };
    let ContextContent::File(ContentSource::Bytes(bytes)) = &file.content else {
        panic!("a file expected");
    };
    import(bytes).unwrap().edits
}

/// Arguments of `reg`, line by line.
fn calls(edits: Vec<RegistryEdit>) -> Vec<String> {
    let rendered = rendered(edits);
    assert!(rendered.context.is_empty());
    reader::runs(&rendered.dockerfile)
        .into_iter()
        .map(|words| {
            assert_eq!(words[0], REG);
            assert_eq!(words.last().unwrap(), "/f");
            words[1..words.len() - 1].join(" ")
        })
        .collect()
}

#[test]
fn values_are_set_with_their_types() {
    let found = calls(vec![
        set("Text", RegistryData::sz("100% \"sure\"")),
        set("", RegistryData::expand_sz("%TEMP%")),
        set("Number", RegistryData::dword(7)),
        set("Big", RegistryData::qword(1 << 40)),
        set("Bytes", RegistryData::binary([0, 255])),
        set("List", RegistryData::multi_sz(&["a", "b c"]).unwrap()),
        set("Nothing", RegistryData::sz("")),
    ]);
    let add = r"add HKLM\SOFTWARE\Acme Inc";
    assert_eq!(
        found,
        [
            format!("{add} /v Text /t REG_SZ /d 100% \"sure\""),
            format!("{add} /ve /t REG_EXPAND_SZ /d %TEMP%"),
            format!("{add} /v Number /t REG_DWORD /d 7"),
            format!("{add} /v Big /t REG_QWORD /d 1099511627776"),
            format!("{add} /v Bytes /t REG_BINARY /d 00ff"),
            format!(r"{add} /v List /t REG_MULTI_SZ /d a\0b c"),
            format!("{add} /v Nothing /t REG_SZ /d "),
        ]
    );
}

#[test]
fn what_is_deleted_is_added_first() {
    let service = key(r"HKLM\SYSTEM\CurrentControlSet\Services\x");
    let edits = vec![
        RegistryEdit::DeleteKey {
            key: service.clone(),
        },
        RegistryEdit::DeleteValue {
            key: service.clone(),
            name: "y".to_owned(),
        },
        RegistryEdit::CreateKey {
            key: service.clone(),
            mode: KeyMode::ReplaceValues,
        },
    ];
    let path = r"HKLM\SYSTEM\CurrentControlSet\Services\x";
    assert_eq!(
        calls(edits),
        [
            format!("add {path}"),
            format!("delete {path}"),
            format!("add {path} /v y"),
            format!("delete {path} /v y"),
            format!("add {path}"),
            format!("delete {path} /va"),
        ]
    );
}

#[test]
fn a_created_key_has_no_default_value() {
    let key = key(r"HKLM\SOFTWARE\Acme Inc");
    let create = |mode| RegistryEdit::CreateKey {
        key: key.clone(),
        mode,
    };
    let rendered = rendered(vec![create(KeyMode::Replace), create(KeyMode::Merge)]);
    let deleted = RegistryEdit::DeleteKey { key: key.clone() };
    let merged = create(KeyMode::Merge);
    assert_eq!(imported(&rendered), [deleted, merged.clone(), merged]);
    assert!(!rendered.dockerfile.contains(r#""add""#));
    // A value creates its key.
    let value = set("Number", RegistryData::dword(7));
    let calls = calls(vec![create(KeyMode::Merge), value]);
    assert_eq!(calls.len(), 1, "{calls:?}");
}

#[test]
fn a_key_below_one_that_may_be_missing_is_deleted_without_adding_that() {
    let edit = RegistryEdit::DeleteKey {
        key: key(r"HKLM\SOFTWARE\Acme Inc\Toolbar"),
    };
    let rendered = rendered(vec![edit.clone()]);
    assert_eq!(imported(&rendered), [edit]);
    assert!(!rendered.dockerfile.contains(r#""add""#));
}

#[test]
fn what_reg_has_no_words_for_is_imported() {
    let received = || set("Number", RegistryData::dword(1));
    let odd = [
        set("None", RegistryData::new(DataType::NONE, [1])),
        set("Lines", RegistryData::sz("a\nb")),
        set("/v", RegistryData::sz("x")),
        set("Empty", RegistryData::multi_sz::<&str>(&[]).unwrap()),
        set("Null", RegistryData::multi_sz(&[r"a\0b"]).unwrap()),
    ];
    let edits = [&[received()], &odd[..], &[received()]].concat();
    let rendered = rendered(edits);
    let imported = imported(&rendered);
    assert_eq!(rendered.context[0].path, "registry-1.reg");
    for edit in &odd {
        assert!(imported.contains(edit), "{edit}");
    }
    assert_eq!(
        reader::array(&rendered.dockerfile, "COPY").unwrap(),
        ["registry-1.reg", "C:/Windows/Temp/registry-1.reg"]
    );
    let runs = reader::runs(&rendered.dockerfile);
    let file = r"C:\Windows\Temp\registry-1.reg";
    assert_eq!(runs[1], [REG, "import", file]);
    assert_eq!(runs[2], [r"C:\Windows\System32\cmd.exe", "/C", "del", file]);
    assert_eq!(runs.len(), 4);
}

#[test]
fn many_changes_are_one_file() {
    let edits: Vec<RegistryEdit> = (0..200)
        .map(|number| set(&format!("Value {number}"), RegistryData::dword(number)))
        .collect();
    let rendered = rendered(edits);
    assert_eq!(reader::runs(&rendered.dockerfile).len(), 2);
    assert_eq!(rendered.context.len(), 1);
}

#[test]
fn a_change_that_nothing_can_make_is_named() {
    let mut plan = plan();
    plan.registry = vec![set("two\nlines", RegistryData::dword(1))];
    let found = problem(&plan);
    assert!(found.contains(r#""two\nlines""#), "{found}");
}
