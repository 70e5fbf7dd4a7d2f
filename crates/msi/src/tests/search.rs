//! What a package searches on the system before its installation.

use super::*;

/// The search for a value of the registry.
const SEARCH: [&str; 2] = [
    "AppSearch|Property|Signature_\nFOUND|sig",
    "RegLocator|Signature_|#Root|Key|Name|#Type\nsig|2|SOFTWARE\\Acme|Release|18",
];

/// Plans a package that searches a value and has an action with a condition.
fn with_search(action: &str, condition: &str, system: TestSystem) -> Result<InstallPlan, MsiError> {
    let action = format!("CustomAction|Action|#Type|Source|Target\nOwn|{action}");
    let sequence = format!(
        "InstallExecuteSequence|Action|#Sequence|Condition\nAppSearch|1|\nLaunchConditions|2|\n\
         CostFinalize|3|\nOwn|4|{condition}"
    );
    let tables = [&SEARCH[..], &[action.as_str(), sequence.as_str()]].concat();
    plan("x64", &tables, system)
}

#[test]
fn what_a_search_decides_is_asked_before_a_refusal() {
    let unread = || TestSystem {
        is_unread: true,
        ..TestSystem::default()
    };
    let read = || TestSystem::with_value(r"HKLM\SOFTWARE\Acme", "Release", RegistryData::dword(5));
    let question = "the value \"Release\" of HKLM\\SOFTWARE\\Acme".to_owned();
    let program = "3074|setup|/q";
    for (action, condition, refused) in [
        (program, "NOT FOUND", 0),
        (program, "FOUND", 0),
        (program, "NOT Installed", 1),
        ("19||needs it", "NOT FOUND", 0),
    ] {
        let plan = with_search(action, condition, unread()).unwrap();
        assert!(plan.unknown.contains(&question), "{:?}", plan.unknown);
        assert_eq!(plan.refused.len(), refused, "{action} {condition}");
    }
    for (condition, refused) in [("NOT FOUND", 0), ("FOUND", 1)] {
        let plan = with_search(program, condition, read()).unwrap();
        assert_eq!(plan.refused.len(), refused, "{condition}");
    }
    let error = with_search("19||needs it", "FOUND", read()).unwrap_err();
    assert!(matches!(error, MsiError::Fails(_)), "{error}");
    assert_eq!(error.to_string(), "the package stops (FOUND): needs it");
    let launch = "LaunchCondition|Condition|Description\nFOUND|not met";
    let sequence = "InstallExecuteSequence|Action|#Sequence\nAppSearch|1\nLaunchConditions|2";
    let tables = [&SEARCH[..], &[launch, sequence]].concat();
    let planned = plan("x64", &tables, unread()).unwrap();
    assert!(planned.unknown.contains(&question));
    plan("x64", &tables, read()).unwrap();
    let note =
        "if what is unknown here is absent, the package refuses this system (FOUND): not met";
    assert_eq!(planned.notes, [note]);
    // It may have nothing to do with the condition.
    let other = "LaunchCondition|Condition|Description\nOther|not met";
    let other = plan("x64", &[&SEARCH[..], &[other, sequence]].concat(), unread()).unwrap();
    assert_eq!(other.notes, [note.replace("FOUND", "Other")]);
    let error = plan("x64", &tables, TestSystem::default()).unwrap_err();
    assert!(matches!(error, MsiError::Fails(_)), "{error}");
    // What Windows sets is known.
    let launch = "LaunchCondition|Condition|Description\nMsiNTProductType = 1|not met";
    let tables = [&SEARCH[..], &[launch, sequence]].concat();
    let error = plan("x64", &tables, unread()).unwrap_err();
    assert!(matches!(error, MsiError::Fails(_)), "{error}");
}

#[test]
fn nothing_but_hives_is_below_the_root_of_the_machine() {
    for (key, is_unknown) in [
        ("ARegKey", false),
        (r"ARegKey\Below", false),
        (r"HARDWARE\DEVICEMAP", true),
    ] {
        let search = format!("RegLocator|Signature_|#Root|Key|Name|#Type\nsig|2|{key}||2");
        let sequence = "InstallExecuteSequence|Action|#Sequence\nAppSearch|1\nCostFinalize|2";
        let tables = [SEARCH[0], search.as_str(), sequence];
        let plan = plan("x64", &tables, TestSystem::default()).unwrap();
        assert_eq!(!plan.unknown.is_empty(), is_unknown, "{key}");
    }
}

#[test]
fn limits_of_a_file_search_are_unknown() {
    let unknown = |limits: &str| {
        let columns = "Signature|Signature|FileName|MinVersion|#MinSize";
        let signature = format!("{columns}\nsig|a.exe|{limits}");
        let tables = [
            signature.as_str(),
            SEARCH[0],
            "DrLocator|Signature_|Parent|Path|#Depth\nsig||C:\\tools|0",
            "LaunchCondition|Condition|Description\nFOUND = \"C:\\tools\\a.exe\"|not found",
            "InstallExecuteSequence|Action|#Sequence\nAppSearch|1\nLaunchConditions|2",
        ];
        let system = TestSystem::with_file(r"C:\tools\a.exe", b"MZ");
        plan("x64", &tables, system).unwrap().unknown
    };
    assert!(unknown("|").is_empty());
    let question = r"whether C:\tools\a.exe has the version of the search sig";
    assert_eq!(unknown("99.0.0.0|"), [question]);
    assert_eq!(unknown("|5"), [question]);
}

#[test]
fn a_file_that_no_folder_has_is_not_found() {
    for (path, levels, file, is_unknown) in [
        (r"C:\tools", 1, "a.exe", true),
        (r"C:\tools", 1, "b.exe", false),
        (r"C:\", 2, "A.EXE", true),
        (r"C:\", 1, "a.exe", false),
        (r"C:\gone", 5, "a.exe", false),
    ] {
        let signature = format!("Signature|Signature|FileName\nsig|{file}");
        let locator = format!("DrLocator|Signature_|Parent|Path|#Depth\nsig||{path}|{levels}");
        let tables = [
            SEARCH[0],
            signature.as_str(),
            locator.as_str(),
            "InstallExecuteSequence|Action|#Sequence\nAppSearch|1\nCostFinalize|2",
        ];
        let system = TestSystem::with_file(r"C:\tools\bin\a.exe", b"MZ");
        let unknown = plan("x64", &tables, system).unwrap().unknown;
        let question = format!("where {file} is below {path}");
        assert_eq!(unknown, Vec::from_iter(is_unknown.then_some(question)));
    }
}

#[test]
fn a_bare_system_has_a_windows_of_an_unknown_version() {
    let system = BareSystem::default();
    for (key, is_unknown) in [
        (r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion", true),
        (r"HKLM\SOFTWARE\WOW6432Node\Microsoft\PowerShell\1", true),
        (r"HKLM\SOFTWARE\Microsoft\NET Framework Setup\NDP", true),
        (r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion", false),
        (r"HKLM\SOFTWARE\Acme\PowerShell", false),
    ] {
        let found = system.value(&key.parse().unwrap(), "Version");
        assert_eq!(found == Presence::Unknown, is_unknown, "{key}");
    }
    let shell = r"C:\Windows\System32\WindowsPowerShell\v1.0\powershell.exe";
    for (path, expected) in [
        (r"C:\Windows", Presence::Present(true)),
        (r"C:\Windows\SysWOW64", Presence::Present(true)),
        (shell, Presence::Unknown),
        (r"C:\Windows\System32\own.dll", Presence::Absent),
        (r"C:\Program Files\WindowsPowerShell", Presence::Absent),
    ] {
        assert_eq!(system.entry(&path.parse().unwrap()), expected, "{path}");
    }
}

#[test]
fn the_own_files_of_a_package_in_a_part_of_windows_are_no_question() {
    let tables = [
        "Directory|Directory|Directory_Parent|DefaultDir\nTARGETDIR||SourceDir\n\
         System64Folder|TARGETDIR|.\nOWN|System64Folder|WindowsPowerShell",
        "Component|Component|Directory_\nMain|OWN",
        "File|File|Component_|FileName|#Attributes\nf|Main|a.psm1|8192",
        "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nInstallFiles|2",
    ];
    let system = |own| BareSystem { files: vec![own] };
    let plan = plan_on(InstallOptions::default(), "x64", &tables, system).unwrap();
    let path = r"C:\Windows\System32\WindowsPowerShell\a.psm1";
    assert_eq!(plan.files[0].path.to_string(), path);
    assert_eq!(plan.unknown, [""; 0]);
}

/// What a table of locators finds: a file of a name, or a folder.
fn searched(locators: &str, file: &str, system: TestSystem) -> RegistryData {
    let signature = format!("Signature|Signature|FileName\nsig|{file}");
    let tables = [SEARCH[0], locators, signature.as_str()];
    let count = if file.is_empty() { 2 } else { 3 };
    written("FOUND", &tables[..count], system)
}

/// The results are those of Windows, by wine's tests.
#[test]
fn a_value_of_the_registry_is_a_file_or_a_folder() {
    const FILE: &str = r"C:\tools\a.exe";
    const FOLDER: &str = r"C:\tools\";
    for (kind, file, value, expected) in [
        (1, "a.exe", FILE, FILE),
        (1, "ignored", FILE, FILE),
        (1, "a.exe", r#""C:\tools\a.exe" -x"#, FILE),
        (1, "a.exe", r"%SystemDrive%\tools\a.exe", FILE),
        (1, "a.exe", r"C:\tools\gone.exe", ""),
        (1, "a.exe", FOLDER, ""),
        (1, "", FILE, FOLDER),
        (1, "", r"C:\tools\gone.exe", FOLDER),
        (1, "", FOLDER, r"C:\"),
        (0, "", FOLDER, FOLDER),
        (0, "", FILE, ""),
        (0, "a.exe", r"C:\tools", FILE),
        (0, "a.exe", FILE, ""),
        (0, "tools", r"C:\", ""),
        (2, "", "my%NOVAR%", "my%NOVAR%"),
        (2, "", "100% of %windir%", r"100% of C:\Windows"),
    ] {
        let columns = "RegLocator|Signature_|#Root|Key|Name|#Type";
        let search = format!("{columns}\nsig|2|SOFTWARE\\Acme|Path|{}", kind + 16);
        let key = r"HKLM\SOFTWARE\Acme".parse().unwrap();
        let system = TestSystem {
            values: vec![(key, "Path", RegistryData::expand_sz(value))],
            ..TestSystem::with_file(FILE, b"MZ")
        };
        let found = searched(&search, file, system);
        let expected = RegistryData::sz(&format!("<{expected}>"));
        assert_eq!(found, expected, "{kind} {file} {value}");
    }
}

#[test]
fn a_path_without_a_drive_is_searched_on_c() {
    const FILE: &str = r"C:\tools\a.exe";
    const FOLDER: &str = r"C:\tools\";
    for (path, file, expected) in [
        ("", "", r"C:\"),
        ("", "a.exe", ""),
        ("tools", "", FOLDER),
        ("tools", "a.exe", FILE),
        (r"\tools", "a.exe", FILE),
        ("/tools", "a.exe", FILE),
        (r"C:\tools\", "a.exe", FILE),
        (r"C:\\tools", "a.exe", FILE),
        (r"D:\tools", "a.exe", ""),
        (r"\\server\tools", "a.exe", ""),
    ] {
        let search = format!("DrLocator|Signature_|Parent|Path|#Depth\nsig||{path}|");
        let found = searched(&search, file, TestSystem::with_file(FILE, b"MZ"));
        let expected = RegistryData::sz(&format!("<{expected}>"));
        assert_eq!(found, expected, "{path} {file}");
    }
}

#[test]
fn related_products_are_those_of_a_language() {
    const INSTALLER: &str = r"HKLM\SOFTWARE\Microsoft\Windows\CurrentVersion\Installer";
    const PRODUCTS: [&str; 2] = [
        "87654321CBA90FED21436587A9CBED0F",
        "87654321CBA90FED21436587A9CBED1F",
    ];
    let both = "{12345678-9ABC-DEF0-1234-56789ABCDEF0};{12345678-9ABC-DEF0-1234-56789ABCDEF1}";
    let key = |path: String| path.parse::<KeyPath>().unwrap();
    for (language, exclusive, expected) in [
        ("", 0, both),
        ("", 0x400, both),
        ("1033", 0, both),
        ("1031, 1033", 0, both),
        ("1031", 0, ""),
        ("1031", 0x400, both),
        ("1033", 0x400, ""),
    ] {
        let columns = "Upgrade|UpgradeCode|VersionMin|Language|#Attributes|ActionProperty";
        let code = "{20000000-0000-0000-0000-000000000001}";
        let upgrade = format!("{columns}\n{code}|0.0.1|{language}|{}|OLDER", 2 + exclusive);
        let mut system = TestSystem::default();
        for product in PRODUCTS {
            let related = key(format!(
                r"{INSTALLER}\UpgradeCodes\00000002000000000000000000000010"
            ));
            let own = key(format!(
                r"HKLM\SOFTWARE\Classes\Installer\Products\{product}"
            ));
            system.values.extend([
                (related, product, RegistryData::sz("")),
                (own.clone(), "Version", RegistryData::dword(0x0100_0000)),
                (own, "Language", RegistryData::dword(1033)),
            ]);
        }
        let found = written("OLDER", &[upgrade.as_str()], system);
        let expected = RegistryData::sz(&format!("<{expected}>"));
        assert_eq!(found, expected, "{language} {exclusive}");
    }
}
