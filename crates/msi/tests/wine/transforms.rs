//! Transforms: a change of each kind, and packages that they are not for.

use std::process::Command;

use wincimg_msi::{BareSystem, InstallOptions, InstallPlan, Package};
use wincimg_testkit::component;
use wincimg_testkit::transform::Cell::{Null, Short, Text};
use wincimg_testkit::transform::TestTransform;
use wincimg_testkit::wine::succeed;

use super::packages::PACKAGES;

/// Content of the package that the transforms change.
pub(crate) const BODY: &str = "<Directory Id='TARGETDIR' Name='SourceDir'>
    <Directory Id='ProgramFiles64Folder'><Directory Id='INSTALLDIR' Name='Contoso Transform'>
    <Component Id='Main' Guid='{GUID1}' Win64='yes'>
      <File Id='MainFile' Name='main.exe' Source='main.exe' KeyPath='yes'/>
      <RegistryValue Id='Same' Root='HKLM' Key='SOFTWARE\\Contoso Transform' Name='Same'
        Type='string' Value='1'/>
      <RegistryValue Id='Other' Root='HKLM' Key='SOFTWARE\\Contoso Transform' Name='Other'
        Type='string' Value='1'/>
      <RegistryValue Id='Gone' Root='HKLM' Key='SOFTWARE\\Contoso Transform' Name='Gone'
        Type='string' Value='1'/>
    </Component></Directory></Directory></Directory>
    <Feature Id='Complete' Level='1'><ComponentRef Id='Main'/></Feature>";

/// What a transform of these tests requires: product, upgrade code, language, equal version.
const ALL: u32 = 0x0923_0000;

/// A transform for the package with this number.
fn transform(number: usize) -> TestTransform {
    let product = format!("{{10000000-0000-0000-0000-{number:012}}}1.2.{number}");
    let upgrade = format!("{{20000000-0000-0000-0000-{number:012}}}");
    TestTransform::new(&format!("{product};{product};{upgrade}"), "x64;1033", ALL)
}

/// Rows that are new, changed and deleted, and a new table.
pub(crate) fn changes(number: usize) -> TestTransform {
    let mut own = transform(number);
    own.change(
        "Property",
        &[1],
        &[Text("ProductName"), Text("Contoso Changed")],
    );
    own.change(
        "File",
        &[2],
        &[Text("MainFile"), Text("RENAMED.EXE|renamed file.exe")],
    );
    own.change("Registry", &[4], &[Text("Other"), Text("[ProductName]")]);
    own.delete("Registry", &[Text("Gone")]);
    own.add(
        "Registry",
        &[
            Text("New"),
            Short(2),
            Text("SOFTWARE\\Contoso Transform"),
            Text("New"),
            Null,
            Text("Main"),
        ],
    );
    own.add_table(
        "IniFile",
        &[
            ("IniFile", 0x2D48),
            ("FileName", 0x0FFF),
            ("DirProperty", 0x1D48),
            ("Section", 0x0F60),
            ("Key", 0x0F80),
            ("Value", 0x0FFF),
            ("Action", 0x0502),
            ("Component_", 0x0D48),
        ],
    );
    own.add(
        "IniFile",
        &[
            Text("Own"),
            Text("own.ini"),
            Text("INSTALLDIR"),
            Text("section"),
            Text("key"),
            Text("value"),
            Short(0),
            Text("Main"),
        ],
    );
    own.add(
        "InstallExecuteSequence",
        &[Text("WriteIniValues"), Null, Short(5100)],
    );
    own
}

pub(crate) fn plan(
    file: &std::path::Path,
    list: &str,
    bytes: Vec<u8>,
) -> Result<InstallPlan, String> {
    plan_with(file, &[("TRANSFORMS", list)], bytes)
}

fn plan_with(
    file: &std::path::Path,
    properties: &[(&str, &str)],
    bytes: Vec<u8>,
) -> Result<InstallPlan, String> {
    let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    let mut package = Package::read(std::fs::File::open(file).unwrap()).unwrap();
    let options = InstallOptions {
        properties: properties.iter().map(own).collect(),
        file_name: "a.msi".to_owned(),
        source_folder: r"C:\in\".to_owned(),
        skipped_actions: Vec::new(),
    };
    let path = r"C:\in\own.mst".parse().unwrap();
    let files = vec![(path, bytes)];
    let plan = package.plan(&options, &BareSystem { files });
    plan.map_err(|error| error.to_string())
}

type Change = fn(&mut TestTransform);

/// Transforms that are not for the package, by a part of the message.
const REFUSED: &[(&str, Change)] = &[
    ("for the product {", |it| {
        it.revision.replace_range(..2, "{2");
    }),
    ("for the upgrade code", |it| it.revision.truncate(90)),
    ("for the language 1031, the package has 1033", |it| {
        "x64;1031".clone_into(&mut it.template);
    }),
    ("for the platform Intel, the package has x64", |it| {
        it.conditions = 0x4_0000;
        ";1033".clone_into(&mut it.template);
    }),
    ("for a version lower than", |it| it.conditions = 0x60_0000),
    ("for a version higher than", |it| it.conditions = 0x410_0000),
    ("has the code page 932, the package 1252", |it| {
        it.code_page = 932;
    }),
    (
        "adds, but the package has, a row of the table \"Property\": ProductName",
        |it| {
            it.add("Property", &[Text("ProductName"), Text("x")]);
        },
    ),
    ("adds a row of the table \"Property\" again", |it| {
        it.conditions |= 1;
        it.add("Property", &[Text("ProductName"), Text("x")]);
    }),
    ("deletes, but the package lacks, a row", |it| {
        it.delete("Property", &[Text("None")]);
    }),
    ("changes, but the package lacks, a row", |it| {
        it.change("Property", &[1], &[Text("None"), Text("x")]);
    }),
    (
        "the table \"IniFile\", which the package does not have",
        |it| {
            it.add("IniFile", &[Text("a")]);
        },
    ),
    (
        "the table \"None\", which the package does not have",
        |it| {
            it.delete("_Tables", &[Text("None")]);
        },
    ),
    (
        "the table \"Property\", which the package already has",
        |it| {
            it.add("_Tables", &[Text("Property")]);
        },
    ),
    ("changes the columns of the table \"Property\"", |it| {
        it.delete("_Columns", &[Text("Property"), Short(2)]);
    }),
    ("a row of the table \"Property\" has 3 columns", |it| {
        it.add("Property", &[Text("a"), Null, Null]);
    }),
    ("a row of the table \"Property\" is cut", |it| {
        it.change("Property", &[1], &[Text("a")]);
    }),
    ("the cabinet \"own.cab\", where Windows Installer", |it| {
        it.stream("own.cab", b"x");
        it.change("Media", &[3], &[Short(1), Text("#own.cab")]);
    }),
];

pub(crate) fn transforms_of_other_packages_are_refused() {
    component("wixl");
    component("msibuild");
    let folder = tempfile::tempdir().unwrap();
    let number = PACKAGES
        .iter()
        .position(|it| it.name == "transform")
        .unwrap();
    let file = super::build(&PACKAGES[number], number, folder.path()).unwrap();
    // wixl leaves the code page out.
    let table = folder.path().join("_ForceCodepage.idt");
    std::fs::write(&table, "\r\n\r\n1252\t_ForceCodepage\r\n").unwrap();
    let mut build = Command::new(component("msibuild"));
    succeed(build.arg(&file).arg("-i").arg(&table)).unwrap();
    for (expected, change) in REFUSED {
        let mut own = transform(number);
        change(&mut own);
        let error = plan(&file, "own.mst", own.bytes()).err();
        let error = error.unwrap_or_else(|| panic!("not refused: {expected}"));
        assert!(error.contains(expected), "{expected}: {error}");
        assert!(error.contains(r"C:\in\own.mst"), "{error}");
    }
    for (list, bytes, expected) in [
        ("own.mst", b"no transform".to_vec(), "damaged"),
        ("other.mst", Vec::new(), "does not exist"),
        (":other", Vec::new(), "not in the package"),
        ("@own.mst", Vec::new(), "not a file"),
    ] {
        let error = plan(&file, list, bytes).err();
        let error = error.unwrap_or_else(|| panic!("not refused: {list}"));
        assert!(error.contains(expected), "{list}: {error}");
    }
    instances_have_a_code_of_their_own(&file, number);
    // Errors that the transform accepts, columns of a table, icons, and a second transform.
    let mut own = transform(number);
    own.conditions |= 0x1f;
    own.delete("Property", &[Text("None")]);
    own.change("Property", &[1], &[Text("None"), Text("x")]);
    own.delete("_Tables", &[Text("None")]);
    own.add(
        "_Columns",
        &[Text("Property"), Null, Text("More"), Short(0x1D48)],
    );
    own.add("Property", &[Text("OWN"), Text("1"), Text("more")]);
    own.add("Icon", &[Text("own.ico"), Short(1)]);
    own.stream("Icon.own.ico", b"an icon");
    own.add_to(&file, "more");
    let made = plan(&file, r":more; C:\in\own.mst", changes(number).bytes()).unwrap();
    let paths: Vec<String> = made.files.iter().map(|it| it.path.to_string()).collect();
    for part in [
        r"\renamed file.exe", r"\own.ini", r"}\own.ico", r"}\own.mst",
    ] {
        assert!(
            paths.iter().any(|path| path.ends_with(part)),
            "{part}: {paths:?}"
        );
    }
    assert_eq!(made.product.name, "Contoso Changed");
    let edits: Vec<String> = made.registry.iter().map(ToString::to_string).collect();
    let recorded = edits
        .iter()
        .find(|edit| edit.contains("\"Transforms\""))
        .unwrap();
    assert!(recorded.contains(":more;"), "{recorded}");
}

/// `MSINEWINSTANCE`, and a patch.
fn instances_have_a_code_of_their_own(file: &std::path::Path, number: usize) {
    let code = "{30000000-0000-0000-0000-000000000001}";
    let mut instance = transform(number);
    instance.change("Property", &[1], &[Text("ProductCode"), Text(code)]);
    let planned = |list: &str, bytes| {
        let properties = [("TRANSFORMS", list), ("MSINEWINSTANCE", "1")];
        plan_with(file, &properties, bytes)
    };
    let made = planned("own.mst", instance.bytes()).unwrap();
    assert_eq!(made.product.code, code);
    let edits: Vec<String> = made.registry.iter().map(ToString::to_string).collect();
    let own = "00000003000000000000000000000010 \"InstanceType\" = REG_DWORD 1";
    let found = edits.iter().find(|edit| edit.contains("InstanceType"));
    assert!(found.unwrap().ends_with(own), "{found:?}");
    for (list, bytes) in [("own.mst", changes(number).bytes()), ("", Vec::new())] {
        let error = planned(list, bytes).unwrap_err();
        assert!(error.contains("changes the ProductCode"), "{error}");
    }
    let error = plan_with(file, &[("PATCH", r"C:\a.msp")], Vec::new()).unwrap_err();
    assert!(error.contains("can apply a patch"), "{error}");
}
