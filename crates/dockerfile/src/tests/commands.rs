//! Commands of rendered Dockerfiles under wine, whose `reg` and `cmd` replace those of Windows.

use std::collections::BTreeMap;
use std::fs;

use wincimg_iis::IisSettings;
use wincimg_layer::ContentSource;
use wincimg_registry::regfile::import;
use wincimg_registry::{KeyMode, KeyPath, RegistryData, RegistryEdit, UnknownBase};
use wincimg_testkit::wine::{Wine, succeed, windows_path};

use super::plan;
use crate::{ContextContent, RenderedDockerfile, render};

/// A wine prefix for Windows programs.
struct Machine {
    wine: Wine,
}

impl Machine {
    fn start() -> Self {
        let wine = Wine::start();
        Self { wine }
    }

    /// Runs a program with these arguments, quoted like the daemon; returns its output, or the
    /// error.
    fn run<S: AsRef<str>>(&self, words: &[S]) -> Result<String, String> {
        let (program, arguments) = words.split_first().unwrap();
        let arguments = arguments.iter().map(AsRef::as_ref);
        succeed(self.wine.command(program.as_ref()).args(arguments))
    }

    /// Builds: copies the context's own files, then runs every command.
    fn build(&self, rendered: &RenderedDockerfile) {
        let temporary = self.wine.drive().join("windows/temp");
        fs::create_dir_all(&temporary).unwrap();
        for entry in &rendered.context {
            if let ContextContent::File(ContentSource::Bytes(bytes)) = &entry.content {
                fs::write(temporary.join(&entry.path), bytes).unwrap();
            }
        }
        for words in runs(rendered) {
            self.run(&words).unwrap();
        }
        assert_eq!(
            fs::read_dir(temporary).unwrap().count(),
            0,
            "files are left"
        );
    }

    /// The values below a key.
    fn values(&self, key: &str) -> Vec<RegistryEdit> {
        let file = self.wine.drive().join("exported.reg");
        self.run(&["reg.exe", "export", key, &windows_path(&file), "/y"])
            .unwrap();
        let mut edits = import(&fs::read(file).unwrap()).unwrap().edits;
        edits.retain(|edit| matches!(edit, RegistryEdit::SetValue { .. }));
        edits.sort();
        edits
    }
}

/// The words of every command.
fn runs(rendered: &RenderedDockerfile) -> Vec<Vec<String>> {
    let lines = rendered.dockerfile.lines();
    lines
        .filter_map(|line| line.strip_prefix("RUN "))
        .map(|array| serde_json::from_str(array).unwrap())
        .collect()
}

fn key(path: &str) -> KeyPath {
    path.parse().unwrap()
}

fn set(path: &str, name: &str, data: RegistryData) -> RegistryEdit {
    RegistryEdit::SetValue {
        key: key(path),
        name: name.to_owned(),
        data,
    }
}

#[test]
fn reg_sets_every_kind_of_value() {
    let wine = Machine::start();
    let acme = r"HKLM\SOFTWARE\Acme Inc\It's";
    let value = |name: &str, data| set(acme, name, data);
    let mut edits = vec![
        value("", RegistryData::sz("the default")),
        value("Text", RegistryData::sz(r#"100% "sure" C:\a b\"#)),
        value("Empty", RegistryData::sz("")),
        value("Path", RegistryData::expand_sz(r"%SystemRoot%\x")),
        value("Number", RegistryData::dword(u32::MAX)),
        value("Big", RegistryData::qword(u64::MAX - 1)),
        value("Bytes", RegistryData::binary([0, 1, 255])),
        value(
            "List",
            RegistryData::multi_sz(&["a", "b c", r"d\"]).unwrap(),
        ),
        value("Odd list", RegistryData::multi_sz(&[r"a\0b", "c"]).unwrap()),
        value("Lines", RegistryData::sz("a\nb")),
        value("Reversed", RegistryData::dword_big_endian(7)),
        value("/f", RegistryData::sz("/v")),
    ];
    let mut plan = plan();
    plan.registry.clone_from(&edits);
    wine.build(&render(&plan, &UnknownBase).unwrap());
    edits.sort();
    assert_eq!(wine.values(acme), edits);

    // The same in one registration file.
    let many = r"HKLM\SOFTWARE\Many";
    let mut edits: Vec<RegistryEdit> = (0..40)
        .map(|number| {
            set(
                many,
                &format!("Value {number}"),
                RegistryData::dword(number),
            )
        })
        .collect();
    plan.registry.clone_from(&edits);
    let rendered = render(&plan, &UnknownBase).unwrap();
    assert_eq!(runs(&rendered).len(), 2);
    wine.build(&rendered);
    edits.sort();
    assert_eq!(wine.values(many), edits);
}

#[test]
fn reg_deletes_what_exists_and_what_is_not() {
    let wine = Machine::start();
    let acme = r"HKLM\SOFTWARE\Acme";
    let child = r"HKLM\SOFTWARE\Acme\Child";
    let seven = || RegistryData::dword(7);
    let delete_value = |path: &str, name: &str| RegistryEdit::DeleteValue {
        key: key(path),
        name: name.to_owned(),
    };
    let create = |path: &str, mode| RegistryEdit::CreateKey {
        key: key(path),
        mode,
    };
    let mut plan = plan();
    let mut build = |edits: Vec<RegistryEdit>| {
        plan.registry = edits;
        wine.build(&render(&plan, &UnknownBase).unwrap());
        wine.values(acme)
    };
    let found = build(vec![
        set(acme, "Kept", seven()),
        set(acme, "Gone", seven()),
        set(child, "Value", seven()),
        delete_value(acme, "Gone"),
        delete_value(acme, "Never there"),
        delete_value(acme, ""),
        RegistryEdit::DeleteKey {
            key: key(r"HKLM\SOFTWARE\Acme\Never there"),
        },
    ]);
    assert_eq!(
        found,
        [set(acme, "Kept", seven()), set(child, "Value", seven())]
    );
    let found = build(vec![create(acme, KeyMode::ReplaceValues)]);
    assert_eq!(found, [set(child, "Value", seven())]);
    let found = build(vec![
        set(acme, "New", seven()),
        set(child, "New", seven()),
        create(child, KeyMode::Replace),
    ]);
    assert_eq!(found, [set(acme, "New", seven())]);
}

#[test]
fn cmd_removes_each_entry_whatever_came_of_the_one_before() {
    let wine = Machine::start();
    let source = "tests/programs/argv.c";
    wine.wine
        .compile(source, "argv.exe", &["-municode", "-lshell32"])
        .unwrap();
    let program = windows_path(&wine.wine.drive().join("argv.exe"));
    let mut plan = plan();
    plan.iis = Some(IisSettings {
        site: "My Site".parse().unwrap(),
        path: r"C:\inetpub\wwwroot".parse().ok(),
        file_extensions: ["json", "woff2"].map(|text| text.parse().unwrap()).into(),
        mime_types: [("json".parse().unwrap(), "a/b; c=d".parse().unwrap())].into(),
        app_pool: "DefaultAppPool".parse().unwrap(),
        app_pool_settings: BTreeMap::new(),
        default_documents: Vec::new(),
        app_pools: Vec::new(),
        sites: Vec::new(),
        config: Vec::new(),
    });
    // The first program does not exist, so it fails.
    let mut calls = 0;
    let words: Vec<String> = runs(&render(&plan, &UnknownBase).unwrap())[0]
        .iter()
        .map(|word| {
            if word.ends_with("appcmd.exe") {
                calls += 1;
                if calls > 1 {
                    return program.clone();
                }
            }
            word.clone()
        })
        .collect();
    assert_eq!(calls, 3);
    let text = wine.run(&words).unwrap();
    let lines = text.lines();
    let lines = lines.filter_map(|line| line.strip_prefix("runtime/"));
    let seen: Vec<Vec<String>> = lines
        .map(|line| line.split('/').skip(1).map(decoded).collect())
        .collect();
    let args = |section, element| ["set", "config", "My Site", section, element];
    let filtering = "/section:system.webServer/security/requestFiltering";
    let content = "/section:system.webServer/staticContent";
    let first = args(filtering, "/-fileExtensions.[fileExtension='.woff2']");
    assert_eq!(seen, [first, args(content, "/-[fileExtension='.json']")]);
}

/// A text from the hexadecimal digits of its UTF-16 units.
fn decoded(digits: &str) -> String {
    let bytes = hex::decode(digits).unwrap();
    let units: Vec<u16> = bytes
        .chunks_exact(2)
        .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
        .collect();
    String::from_utf16(&units).unwrap()
}
