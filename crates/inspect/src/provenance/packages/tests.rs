//! Minimal programs with packages, and damaged versions of them.

use proptest::prelude::*;
use serde_json::json;
use wincimg_testkit::portable_executable::{ADDRESS, fill, program, with_version, with_versions};

use super::*;

const LIST: &str = "path\texample.org/cmd/tool\n\
    mod\texample.org/tool\t(devel)\t\n\
    dep\tgolang.org/x/sys\tv0.15.0\th1:aaaa=\n\
    dep\texample.org/old\tv1.0.0\n\
    =>\texample.org/fork\tv1.0.1\th1:bbbb=\n\
    dep\texample.org/here\tv0.1.0\n\
    =>\t../here\t\n\
    build\t-compiler=gc\n";

fn go_program() -> Vec<u8> {
    let mut section = vec![0; 32];
    section.extend(b"\xff Go buildinf:");
    section.extend([8, 2]);
    section.extend([0; 16]);
    let list = [&[0x30; 16][..], LIST.as_bytes(), &[0x30; 16]].concat();
    for text in [b"go1.21.5".as_slice(), &list] {
        let mut length = text.len();
        while length >= 0x80 {
            section.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
            length >>= 7;
        }
        section.push(u8::try_from(length).unwrap());
        section.extend_from_slice(text);
    }
    program(0xc000_0040, &section, &[])
}

fn assembly_file() -> Vec<u8> {
    assembly_of(0)
}

/// An assembly with the name of its language at a place among its strings.
fn assembly_of(language: u8) -> Vec<u8> {
    let strings = b"\0Vendor.Library\0de\0".as_slice();
    let mut tables = vec![0; 8];
    // The tables of modules and assemblies, a row of each.
    tables.extend((1_u64 | 1 << 0x20).to_le_bytes());
    tables.extend([0; 8]);
    tables.extend([1_u32, 1].iter().flat_map(|rows| rows.to_le_bytes()));
    tables.extend([0; 10]);
    tables.extend([0; 4]);
    tables.extend([4_u16, 1, 2, 3].iter().flat_map(|part| part.to_le_bytes()));
    tables.extend([0; 4]);
    tables.extend([0, 0, 1, 0, language, 0]);
    fill(&mut tables);
    let mut metadata = 0x424a_5342_u32.to_le_bytes().to_vec();
    metadata.extend([0; 8]);
    metadata.extend(12_u32.to_le_bytes());
    metadata.extend(b"v4.0.30319\0\0");
    metadata.extend([0, 0, 2, 0]);
    let begin = metadata.len() + 12 + 20;
    for (name, at, length) in [
        (b"#~\0\0".as_slice(), begin, tables.len()),
        (b"#Strings\0\0\0\0", begin + tables.len(), strings.len()),
    ] {
        metadata.extend(u32::try_from(at).unwrap().to_le_bytes());
        metadata.extend(u32::try_from(length).unwrap().to_le_bytes());
        metadata.extend(name);
    }
    metadata.extend(tables);
    metadata.extend(strings);
    let mut section = vec![0; 72];
    section[8..12].copy_from_slice(&(ADDRESS + 72).to_le_bytes());
    let size = u32::try_from(metadata.len()).unwrap();
    section[12..16].copy_from_slice(&size.to_le_bytes());
    section.extend(metadata);
    program(0x6000_0020, &section, &[(pe::CLR, ADDRESS, 72)])
}

fn reported_by(path: &str, bytes: &[u8]) -> Vec<FoundPackage> {
    PackageFileKind::from_path(path)
        .unwrap()
        .read(path, bytes)
        .packages
}

#[test]
fn a_program_is_what_its_details_say() {
    let bytes = with_version(&[
        ("CompanyName", "Vendor Ltd"),
        ("ProductName", "Big Tool"),
        ("ProductVersion", "5, 6, 7, 8"),
    ]);
    let expected = FoundPackage {
        supplier: Some("Vendor Ltd".to_owned()),
        ..FoundPackage::new(Ecosystem::Program, "Big Tool", Some("5.6.7.8"))
    };
    assert_eq!(reported_by("Files/tool.exe", &bytes), [expected]);
    let comment: &[(&str, &str)] = &[("Comments", "Für beide")];
    let name: &[(&str, &str)] = &[("ProductName", "Tool"), ("ProductVersion", "2.0")];
    let expected = FoundPackage::new(Ecosystem::Program, "Tool", Some("2.0"));
    let found = reported_by("Files/setup.exe", &with_versions(&[comment, name]));
    assert_eq!(found, [expected]);
    let nameless = with_version(&[("ProductVersion", "1.0")]);
    assert_eq!(reported_by("Files/tool.exe", &nameless), []);
}

#[test]
fn a_version_is_what_begins_with_a_number_or_else_the_files_own() {
    for (printed, version) in [
        ("10.0.17763.1 (WinBuild.160101.0800)", "10.0.17763.1"),
        ("v2.3.4+1f2e3d", "2.3.4"),
        ("8.0.1-rc.2", "8.0.1-rc.2"),
        (
            "2.3.1-beta1-61919-13. Commit Hash: 1f2e3d",
            "2.3.1-beta1-61919-13",
        ),
        ("unknown", "1.2.3.4"),
        ("", "1.2.3.4"),
    ] {
        let bytes = with_version(&[("ProductName", "Tool"), ("ProductVersion", printed)]);
        let found = reported_by("tool.exe", &bytes);
        assert_eq!(found[0].version.as_deref(), Some(version), "{printed}");
    }
}

#[test]
fn a_go_program_lists_its_modules_and_what_took_their_place() {
    let found = reported_by("Files/tool.exe", &go_program());
    let names: Vec<(&str, Option<&str>)> = found
        .iter()
        .map(|found| (found.name.as_str(), found.version.as_deref()))
        .collect();
    let expected = [
        ("stdlib", Some("1.21.5")),
        ("example.org/tool", None),
        ("golang.org/x/sys", Some("v0.15.0")),
        ("example.org/fork", Some("v1.0.1")),
        ("example.org/here", Some("v0.1.0")),
    ];
    assert_eq!(names, expected);
    let cpe = "cpe:2.3:a:golang:go:1.21.5:-:*:*:*:*:*:*";
    assert_eq!(found[0].cpe.as_deref(), Some(cpe));
}

#[test]
fn an_assembly_has_the_name_in_its_metadata() {
    let found = reported_by("Files/app/Vendor.Library.dll", &assembly_file());
    let expected = FoundPackage::new(Ecosystem::NuGet, "Vendor.Library", Some("4.1.2.3"));
    assert_eq!(found, std::slice::from_ref(&expected));
    // An executable of .NET is not a package.
    let expected = FoundPackage {
        ecosystem: Ecosystem::Program,
        ..expected
    };
    let found = reported_by("Files/app/app.exe", &assembly_file());
    assert_eq!(found, std::slice::from_ref(&expected));
    // Package managers keep files in stores, without their names.
    let found = PackageFileKind::Executable.read("Files/store/日本", &assembly_file());
    assert_eq!(found.packages, [expected]);
    let found = reported_by(
        "Files/app/de/Vendor.Library.resources.dll",
        &assembly_of(16),
    );
    assert_eq!(found, []);
}

#[test]
fn files_of_packages_are_where_the_program_has_them() {
    let list = json!({
        "targets": {"net": {"A/1.0": {
            "runtime": {"lib/net8.0/A.dll": {}},
            "native": {"runtimes/win-x64/native/n.dll": {}},
            "resources": {
                "lib/net8.0/de/A.resources.dll": {"locale": "de"},
                "lib/net8.0/fr/A.resources.dll": {"locale": "fr", "localPath": "fr-FR/A.dll"},
            },
            "runtimeTargets": {"runtimes/win/lib/net8.0/A.dll": {"rid": "win"}},
        }, "Direct/2.0": {"runtime": {"Direct.dll": {}}}}},
        "libraries": {"A/1.0": {"type": "package"}, "Direct/2.0": {"type": "reference"}},
    });
    let found = PackageFileKind::NuGet.read("a.deps.json", list.to_string().as_bytes());
    let mut explained = found.explained;
    explained.sort();
    let expected = [
        "A.dll",
        "de/A.resources.dll",
        "fr-FR/A.dll",
        "n.dll",
        "runtimes/win/lib/net8.0/A.dll",
    ];
    assert_eq!(explained, expected);
}

#[test]
fn packages_whose_files_a_program_does_not_have_are_left_out() {
    let list = json!({
        "targets": {"net": {}, "net/win-x64": {
            "A/1.0": {"runtime": {"A.dll": {}}},
            "Build/1.0": {"dependencies": {"A": "1.0"}},
            "Framework/1.0": {"runtime": {}},
            "Named/2.1": {},
            "Other/2.1": {},
            "runtime.win-x64.Other/2.1": {"native": {"o.dll": {}}},
        }},
        "libraries": {
            "A/1.0": {"type": "package"},
            "Build/1.0": {"type": "package"},
            "Framework/1.0": {"type": "package"},
            "Named/2.1": {"type": "package"},
            "Other/2.1": {"type": "package"},
            "runtime.win-x64.Other/2.1": {"type": "package"},
            "runtimepack.Net/8.0": {"type": "runtimepack"},
        },
    });
    let found = reported_by("shared/Named.deps.json", list.to_string().as_bytes());
    let mut names: Vec<&str> = found.iter().map(|found| found.name.as_str()).collect();
    names.sort_unstable();
    let expected = ["A", "Named", "Net", "Other", "runtime.win-x64.Other"];
    assert_eq!(names, expected);
}

#[test]
fn a_site_has_the_packages_of_its_configuration_without_tools() {
    let text = r#"<?xml version="1.0" encoding="utf-8"?>
<packages>
  <package id="jQuery" version="3.3.1" targetFramework="net472" />
  <package version = '5.2.3' id = 'Microsoft.AspNet.Mvc'
           targetFramework='net472'/>
  <package id="Tool" version="1.0" targetFramework="net472" developmentDependency="true" />
  <package id="git" version="2.30.0" />
  <!-- <package id="old" version="1.0" targetFramework="net45" /> -->
</packages>"#;
    let package = |name: &str, version| FoundPackage::new(Ecosystem::NuGet, name, Some(version));
    assert_eq!(
        reported_by("Files/inetpub/wwwroot/packages.config", text.as_bytes()),
        [
            package("jQuery", "3.3.1"),
            package("Microsoft.AspNet.Mvc", "5.2.3")
        ]
    );
    let cut = &text[..text.len() / 2];
    assert_eq!(reported_by("packages.config", cut.as_bytes()).len(), 2);
    for order in [u16::to_le_bytes, u16::to_be_bytes] {
        let units = "\u{feff}".encode_utf16().chain(text.encode_utf16());
        let bytes: Vec<u8> = units.flat_map(order).collect();
        assert_eq!(reported_by("packages.config", &bytes).len(), 2);
    }
}

#[test]
fn packages_above_the_limit_of_a_file_are_missing_and_that_is_known() {
    let list = |count: usize| {
        let libraries =
            (0..count).map(|number| (format!("A/{number}"), json!({"type": "package"})));
        let libraries: serde_json::Map<String, Value> = libraries.collect();
        let list = json!({"libraries": libraries}).to_string();
        let found = PackageFileKind::NuGet.read("a.deps.json", list.as_bytes());
        (found.packages.len(), found.is_partial)
    };
    assert_eq!(list(MOST), (MOST, false));
    assert_eq!(list(MOST + 1), (MOST, true));
}

#[test]
fn a_program_in_one_file_has_the_packages_of_its_list() {
    let list = br#"{"libraries": {"A/1.0": {"type": "package"}}}"#;
    let with_header = |major: u32| {
        let marked = program(0xc000_0040, &[&[0; 8][..], &nuget::BUNDLE].concat(), &[]);
        let start = marked.len() as u64;
        let section = [&start.to_le_bytes()[..], &nuget::BUNDLE].concat();
        let mut file = program(0xc000_0040, &section, &[]);
        for number in [major, 0, 1] {
            file.extend(number.to_le_bytes());
        }
        file.extend(b"\x0cabcdefghijkl");
        let list_at = file.len() as u64 + 40;
        for number in [list_at, list.len() as u64, 0, 0, 0] {
            file.extend(number.to_le_bytes());
        }
        file.extend(list);
        file
    };
    let expected = FoundPackage::new(Ecosystem::NuGet, "A", Some("1.0"));
    assert_eq!(reported_by("Files/app.exe", &with_header(6)), [expected]);
    assert_eq!(reported_by("Files/app.exe", &with_header(1)), []);
    let host = program(0xc000_0040, &[&[0; 8][..], &nuget::BUNDLE].concat(), &[]);
    assert_eq!(reported_by("Files/app.exe", &host), []);
}

#[test]
fn only_descriptions_of_packages_are_read() {
    use PackageFileKind::{Executable, Npm, NuGet, Python};

    for (path, kind) in [
        ("Files/a/node_modules/x/package.json", Some(Npm)),
        ("Files/a/node_modules/@s/x/package.json", Some(Npm)),
        ("Files/a/node_modules/x/lib/package.json", None),
        ("Files/a/package.json", None),
        ("Files/a/App.deps.json", Some(NuGet)),
        ("Files/web/Packages.config", Some(NuGet)),
        ("Files/a/x-1.dist-info/METADATA", Some(Python)),
        ("Files/a/x-1-py3.9.egg-info/PKG-INFO", Some(Python)),
        ("Files/a/x-1-py3.9.egg-info", Some(Python)),
        ("Files/a/x-1-py3.9.egg/EGG-INFO/PKG-INFO", Some(Python)),
        ("Files/a/METADATA", None),
        ("Files/a/PKG-INFO", None),
        ("Files/a/TOOL.EXE", Some(Executable)),
        ("Files/é.deps.jso", None),
    ] {
        assert_eq!(PackageFileKind::from_path(path), kind, "{path}");
    }
}

#[test]
fn a_byte_order_mark_hides_no_package() {
    let list = r#"{"libraries": {"A/1.0": {"type": "package"}}}"#;
    let package = r#"{"name": "A", "version": "1.0"}"#;
    for (path, text, ecosystem) in [
        ("a.deps.json", list, Ecosystem::NuGet),
        ("node_modules/A/package.json", package, Ecosystem::Npm),
    ] {
        let expected = FoundPackage::new(ecosystem, "A", Some("1.0"));
        let found = reported_by(path, format!("\u{feff}{text}").as_bytes());
        assert_eq!(found, [expected], "{path}");
    }
}

#[test]
fn names_that_do_not_exist_are_left_out() {
    let package = |name: &str| {
        let text = format!(r#"{{"name": "{name}", "version": "1"}}"#);
        reported_by("node_modules/x/package.json", text.as_bytes())
    };
    assert_eq!(package("x").len(), 1);
    for name in ["", r"a\nb", &"x".repeat(513)] {
        assert_eq!(package(name), [], "{name}");
    }
    let number = r#"{"name": 1, "version": "1"}"#;
    for text in ["", "{}", "[]", "null", number, "{\"name\""] {
        for path in DESCRIPTIONS {
            assert_eq!(reported_by(path, text.as_bytes()), [], "{path} {text}");
        }
    }
}

/// A file of each ecosystem that describes a package.
const DESCRIPTIONS: [&str; 3] = [
    "node_modules/x/package.json",
    "a.deps.json",
    "x.dist-info/METADATA",
];

#[test]
fn a_field_that_is_not_plausible_hides_no_package() {
    for licence in ["", r"MIT\n", &"x".repeat(600)] {
        let text = format!(r#"{{"name": "x", "version": "1", "license": "{licence}"}}"#);
        let found = reported_by("node_modules/x/package.json", text.as_bytes());
        let expected = FoundPackage::new(Ecosystem::Npm, "x", Some("1"));
        assert_eq!(found, [expected], "{licence}");
    }
    let text = br#"{"name": "x", "version": ""}"#;
    let found = reported_by("node_modules/x/package.json", text);
    assert_eq!(found, [FoundPackage::new(Ecosystem::Npm, "x", None)]);
    let bytes = with_version(&[("ProductName", "Tool"), ("CompanyName", "a\nb")]);
    let found = reported_by("tool.exe", &bytes);
    assert_eq!((&*found[0].name, &found[0].supplier), ("Tool", &None));
}

/// Complete programs: those generated here, and the shim of this project.
fn programs() -> Vec<Vec<u8>> {
    let shim = wincimg_shim::EXECUTABLE;
    let version = with_version(&[("ProductName", "Tool"), ("CompanyName", "Vendor")]);
    vec![go_program(), assembly_file(), version, shim.to_vec()]
}

proptest! {
    #[test]
    fn damaged_programs_do_no_harm(
        which in 0..4_usize,
        cut in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        is_cut in any::<bool>(),
    ) {
        let mut bytes = programs().swap_remove(which);
        for (place, value) in changes {
            // Most relevant bytes are near the beginning.
            let most = bytes.len().min(2048);
            bytes[place.index(most)] = value;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        for path in ["a.exe", "a.dll"] {
            for found in reported_by(path, &bytes) {
                prop_assert_eq!(found.clone().plausible(), Some(found));
            }
        }
    }

    #[test]
    fn any_bytes_do_no_harm(bytes in prop::collection::vec(any::<u8>(), 0..4096)) {
        reported_by("a.exe", &bytes);
        for path in DESCRIPTIONS {
            reported_by(path, &bytes);
        }
    }
}

#[test]
fn a_file_of_windows_says_its_version_and_others_do_not() {
    let of = |product: &str| {
        with_version(&[
            ("ProductName", product),
            ("FileVersion", "10.0.17763.973 (WinBuild.160101.0800)"),
        ])
    };
    let windows = of("Microsoft® Windows® Operating System");
    let version = windows_file_version(&windows);
    assert_eq!(version.as_deref(), Some("10.0.17763.973"));
    assert_eq!(windows_file_version(&of("Microsoft® .NET")), None);
    assert_eq!(windows_file_version(b"MZ"), None);
    assert_eq!(windows_file_version(&windows[..windows.len() / 2]), None);
}
