//! Packages that are made of tables, planned on a system with some files and values.

mod tables;

use std::io::Cursor;

use wincimg_registry::{KeyPath, Presence, RegistryData, RegistryEdit, TypedData};
use wincimg_testkit::transform::{Cell, TestTransform};
use wincimg_windows::path::ImagePath;

use super::*;

/// Tables with an installed component: a line with the name and the columns, and the rows. Columns
/// of numbers begin with `#`; only the first column is a key.
const TABLES: [&str; 6] = [
    "Property|Property|Value\nProductCode|{10000000-0000-0000-0000-000000000001}",
    "Directory|Directory|Directory_Parent|DefaultDir\nTARGETDIR||SourceDir",
    "Feature|Feature|#Level\nAll|1",
    "Component|Component|Directory_\nMain|TARGETDIR",
    "FeatureComponents|Feature_|Component_\nAll|Main",
    "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1",
];

/// Adds [`TABLES`], and others that may replace one of them.
pub(crate) fn add_tables(transform: &mut TestTransform, tables: &[&str]) {
    let is_replaced = |own: &str| tables.iter().any(|it| name(it) == name(own));
    let kept = TABLES.into_iter().filter(|own| !is_replaced(own));
    for table in kept.chain(tables.iter().copied()) {
        let mut lines = table
            .lines()
            .map(|line| line.split('|').collect::<Vec<_>>());
        let names = lines.next().unwrap();
        let is_number = |at: usize| names[at + 1].starts_with('#');
        let columns = names[1..].iter().enumerate().map(|(at, name)| match at {
            0 => (*name, 0x2D48),
            at if is_number(at) => (&name[1..], 0x1502),
            _ => (*name, 0x1DFF),
        });
        transform.add_table(names[0], &columns.collect::<Vec<_>>());
        for line in lines {
            let cells = line.iter().enumerate().map(|(at, text)| match *text {
                "" => Cell::Null,
                text if is_number(at) => Cell::Short(text.parse().unwrap()),
                text => Cell::Text(text),
            });
            transform.add(names[0], &cells.collect::<Vec<_>>());
        }
    }
}

fn name(table: &str) -> &str {
    table.split('|').next().unwrap_or_default()
}

/// A system with some files and values.
#[derive(Default)]
struct TestSystem {
    files: BareSystem,
    values: Vec<(KeyPath, &'static str, RegistryData)>,
    /// True if the other values are unknown.
    is_unread: bool,
}

impl TestSystem {
    fn with_file(path: &str, content: &[u8]) -> Self {
        let files = vec![(path.parse().unwrap(), content.to_vec())];
        Self {
            files: BareSystem { files },
            ..Self::default()
        }
    }

    fn with_value(key: &str, name: &'static str, data: RegistryData) -> Self {
        Self {
            values: vec![(key.parse().unwrap(), name, data)],
            ..Self::default()
        }
    }
}

impl InstalledSystem for TestSystem {
    fn value(&self, key: &KeyPath, name: &str) -> Presence<RegistryData> {
        let mut values = self.values.iter();
        match values.find(|(own, value, _)| own == key && *value == name) {
            Some((.., data)) => Presence::Present(data.clone()),
            None if self.is_unread => Presence::Unknown,
            None => Presence::Absent,
        }
    }

    fn value_names(&self, key: &KeyPath) -> Presence<Vec<String>> {
        let own = self.values.iter().filter(|(own, ..)| own == key);
        let names: Vec<String> = own.map(|(_, name, _)| (*name).to_owned()).collect();
        if names.is_empty() {
            return Presence::Absent;
        }
        Presence::Present(names)
    }

    fn key(&self, _: &KeyPath) -> Presence<()> {
        Presence::Absent
    }

    fn entry(&self, path: &ImagePath) -> Presence<bool> {
        let mut files = self.files.files.iter();
        let below = files.find_map(|(file, _)| file.strip_prefix(path));
        below.map_or(Presence::Absent, |below| {
            Presence::Present(!below.is_empty())
        })
    }

    fn names(&self, folder: &ImagePath) -> Presence<Vec<String>> {
        let files = self.files.files.iter();
        let inside = files.filter_map(|(file, _)| match file.strip_prefix(folder)? {
            [name] => Some(name.clone()),
            _ => None,
        });
        Presence::Present(inside.collect())
    }

    fn content(&self, file: &ImagePath) -> Presence<Vec<u8>> {
        self.files.content(file)
    }

    fn variable(&self, _: &str) -> Option<String> {
        None
    }
}

const PACKAGE_CODE: &str = "{30000000-0000-0000-0000-000000000001}";

/// Plans a package for a platform with these tables.
fn plan(platform: &str, tables: &[&str], system: TestSystem) -> Result<InstallPlan, MsiError> {
    plan_with(&[("ALLUSERS", "1")], platform, tables, system)
}

/// Plans a package with properties of the command line.
fn plan_with(
    properties: &[(&str, &str)],
    platform: &str,
    tables: &[&str],
    mut system: TestSystem,
) -> Result<InstallPlan, MsiError> {
    let template = format!("{platform};1033");
    let package = TestTransform::new(PACKAGE_CODE, &template, 0).bytes();
    let mut transform = TestTransform::new("", &template, 0);
    add_tables(&mut transform, tables);
    let own = (r"C:\own.mst".parse().unwrap(), transform.bytes());
    system.files.files.push(own);
    let properties = properties.iter().chain(&[("TRANSFORMS", r"C:\own.mst")]);
    let options = InstallOptions {
        properties: properties
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        ..InstallOptions::default()
    };
    let mut package = Package::read(Cursor::new(package)).unwrap();
    package.plan(&options, &system)
}

/// The key, name and text of values that a plan sets; deletions have no text.
fn values_of(plan: &InstallPlan) -> Vec<String> {
    let values = plan.registry.iter().map(|edit| match edit {
        RegistryEdit::SetValue { key, name, data } => match data.typed() {
            TypedData::Text(text) => format!("{key} {name}={text}"),
            TypedData::Dword(number) => format!("{key} {name}={number}"),
            other => panic!("{other:?}"),
        },
        RegistryEdit::DeleteValue { key, name } => format!("{key} {name}"),
        other => panic!("{other:?}"),
    });
    values.collect()
}

const FOR_ONE_USER: &str = "the package is installed for one user";

#[test]
fn a_package_is_for_the_machine_or_for_one_user() {
    const MENU: &str = r"Microsoft\Windows\Start Menu\Programs\";
    let tables = |action: &str| {
        format!(
            "InstallExecuteSequence|Action|#Sequence\nCostFinalize|2\nWriteRegistryValues|3\n\
             RegisterClassInfo|4\nRegisterMIMEInfo|5{action}"
        )
    };
    let planned = |properties: &[(&str, &str)], action: &str| {
        let sequence = tables(action);
        let tables = [
            "CustomAction|Action|#Type|Source|Target\nSet|51|ALLUSERS|1",
            "Registry|Registry|#Root|Key|Name|Value|Component_\n\
             a|2|SYSTEM\\Acme|Users|<[ALLUSERS]>[ProgramMenuFolder]|Main\n\
             b|-1|SYSTEM\\Acme|Own|x|Main\nc|0|.acme||x|Main",
            "Class|CLSID|Component_|Context|Feature_\n{1}|Main|InprocServer32|All",
            "Extension|Extension|Component_|Feature_\nacme|Main|All",
            "MIME|ContentType|Extension_\nx/acme|acme",
            sequence.as_str(),
        ];
        plan_with(properties, "x64", &tables, TestSystem::default())
    };
    let two = ("ALLUSERS", "2");
    for (properties, action, is_for_machine) in [
        (&[("ALLUSERS", "1")][..], "", true),
        (&[two], "", true),
        (&[two, ("MSIINSTALLPERUSER", "1")], "", false),
        (&[], "", false),
        (&[], "\nSet|1", true),
    ] {
        let plan = planned(properties, action).unwrap();
        let values = values_of(&plan);
        let expected = if is_for_machine {
            format!(r"HKLM\SYSTEM\Acme Users=<1>C:\ProgramData\{MENU}")
        } else {
            let profile = r"C:\Users\ContainerAdministrator\AppData\Roaming";
            format!(r"HKLM\SYSTEM\Acme Users=<>{profile}\{MENU}")
        };
        assert_eq!(values[0], expected, "{properties:?}");
        assert_eq!(values.len() > 1, is_for_machine, "{values:?}");
        let is_noted = plan.notes.iter().any(|it| it.starts_with(FOR_ONE_USER));
        assert_eq!(is_noted, !is_for_machine, "{properties:?}");
        let key = r"HKCU\Software\Classes\.acme is a key of the installing user";
        let is_noted = plan.notes.iter().any(|it| it.starts_with(key));
        assert_eq!(is_noted, !is_for_machine, "{:?}", plan.notes);
    }
    let error = planned(&[], "\nSet|9").unwrap_err();
    assert!(matches!(error, MsiError::Unsupported(_)), "{error}");
    assert!(planned(&[two], "\nSet|9").is_ok());
}

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
    let launch = "LaunchCondition|Condition|Description\nFOUND|not met";
    let sequence = "InstallExecuteSequence|Action|#Sequence\nAppSearch|1\nLaunchConditions|2";
    let tables = [&SEARCH[..], &[launch, sequence]].concat();
    let planned = plan("x64", &tables, unread()).unwrap();
    assert!(planned.unknown.contains(&question));
    plan("x64", &tables, read()).unwrap();
    let error = plan("x64", &tables, TestSystem::default()).unwrap_err();
    assert!(matches!(error, MsiError::Fails(_)), "{error}");
}

#[test]
fn only_libraries_of_wix_are_known_by_their_entry_points() {
    for (library, entry, is_refused) in [
        ("WixUIWixca", "ValidatePath", false),
        ("VendorDll", "ValidatePath", true),
        ("Wix4UtilCA_X64", "WixCloseApplications", false),
        ("WixFirewallCA", "SchedFirewallExceptionsInstall", false),
        ("VendorDll", "SchedFirewallExceptionsInstall", true),
        ("IIsSchedule", "UninstallCertificates", false),
    ] {
        let action = format!("CustomAction|Action|#Type|Source|Target\nOwn|1|{library}|{entry}");
        let tables = [
            action.as_str(),
            "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nOwn|2",
        ];
        let plan = plan("x64", &tables, TestSystem::default()).unwrap();
        assert_eq!(
            plan.refused.len(),
            usize::from(is_refused),
            "{library} {entry}"
        );
    }
}

#[test]
fn an_action_that_runs_only_after_dialogs_is_left_out() {
    let planned = |kind: i16| {
        let action = format!("CustomAction|Action|#Type|Source|Target\nOwn|{kind}|OWN|x");
        let tables = [
            action.as_str(),
            "Registry|Registry|#Root|Key|Name|Value|Component_\nr|2|SYSTEM\\Acme|x|<[OWN]>|Main",
            "InstallExecuteSequence|Action|#Sequence\nOwn|1\nCostFinalize|2\nWriteRegistryValues|3",
        ];
        plan("x64", &tables, TestSystem::default()).unwrap()
    };
    for (bits, value) in [(0, "<x>"), (256, "<x>"), (512, "<x>"), (768, "<>")] {
        let expected = format!(r"HKLM\SYSTEM\Acme x={value}");
        assert_eq!(values_of(&planned(51 + bits)), [expected], "{bits}");
    }
    for kind in [2, 19] {
        assert!(planned(kind + 768).refused.is_empty(), "{kind}");
    }
}

/// Plans a folder in one of Windows, and returns its path. An action may move it.
fn made_folder(platform: &str, folder: &str, target: &str) -> String {
    let action = if target.is_empty() { "" } else { "\nMove|2" };
    let tables = [
        format!(
            "Directory|Directory|Directory_Parent|DefaultDir\nTARGETDIR||SourceDir\n{folder}|TARGETDIR|.\nOWN|{folder}|Own"
        ),
        "CreateFolder|Directory_|Component_\nOWN|Main".to_owned(),
        format!("CustomAction|Action|#Type|Source|Target\nMove|35|OWN|{target}"),
        format!("InstallExecuteSequence|Action|#Sequence\nCostFinalize|1{action}\nCreateFolders|3"),
    ];
    let tables = tables.each_ref().map(String::as_str);
    let plan = plan(platform, &tables, TestSystem::default()).unwrap();
    plan.folders.last().unwrap().to_string()
}

#[test]
fn packages_of_32_bits_have_no_folders_of_64_bit_programs() {
    for (platform, folder, target, expected) in [
        ("x64", "ProgramFiles64Folder", "", r"C:\Program Files\Own"),
        (
            "Intel",
            "ProgramFiles64Folder",
            "",
            r"C:\Program Files (x86)\Own",
        ),
        (
            "Intel",
            "CommonFiles64Folder",
            "",
            r"C:\Program Files (x86)\Common Files\Own",
        ),
        ("Intel", "System64Folder", "", r"C:\Windows\SysWOW64\Own"),
        (
            "Intel",
            "ProgramFilesFolder",
            "",
            r"C:\Program Files (x86)\Own",
        ),
        ("Intel", "WindowsFolder", "", r"C:\Windows\Own"),
        (
            "Intel",
            "WindowsFolder",
            r"c:\program files\moved",
            r"C:\Program Files (x86)\moved",
        ),
        (
            "x64",
            "WindowsFolder",
            r"C:\Program Files\moved",
            r"C:\Program Files\moved",
        ),
    ] {
        assert_eq!(
            made_folder(platform, folder, target),
            expected,
            "{platform} {folder}"
        );
    }
}

#[test]
fn packages_for_another_processor_fail() {
    let key = r"HKLM\SYSTEM\ControlSet001\Control\Session Manager\Environment";
    for (processor, platform, fails) in [
        ("AMD64", "Arm64", true),
        ("AMD64", "Intel64", true),
        ("AMD64", "x64", false),
        ("AMD64", "Intel", false),
        ("ARM64", "Arm64", false),
    ] {
        let data = RegistryData::sz(processor);
        let system = TestSystem::with_value(key, "PROCESSOR_ARCHITECTURE", data);
        match plan(platform, &[], system) {
            Err(MsiError::Fails(why)) => assert!(fails && why.contains("1633"), "{why}"),
            result => assert!(result.is_ok() && !fails, "{processor} {platform}"),
        }
    }
    plan("Arm64", &[], TestSystem::default()).unwrap();
}

/// Plans a package with a condition of its installation.
fn launch(condition: &str) -> InstallPlan {
    let launch = format!("LaunchCondition|Condition|Description\n{condition}|not met");
    let tables = [
        launch.as_str(),
        "InstallExecuteSequence|Action|#Sequence\nLaunchConditions|1",
    ];
    plan("x64", &tables, TestSystem::default()).unwrap()
}

#[test]
fn properties_that_windows_sets_are_known_or_unknown() {
    let package_code = format!("PackageCode = \"{PACKAGE_CODE}\"");
    for condition in [
        "ProductState = -1",
        "VersionDatabase = 200",
        package_code.as_str(),
        r#"DATABASE << "C:\Windows\Installer\""#,
        "RedirectedDllSupport = 2 AND ShellAdvtSupport AND OLEAdvtSupport",
    ] {
        assert!(launch(condition).unknown.is_empty(), "{condition}");
    }
    for name in [
        "MsiNetAssemblySupport",
        "MsiWin32AssemblySupport",
        "MsiNTSuiteDataCenter",
        "RemoteAdminTS",
        "TerminalServer",
        "USERNAME",
    ] {
        assert_eq!(launch(name).unknown, [format!("the property {name}")]);
    }
}

#[test]
fn all_actions_that_require_windows_are_named() {
    let action = |name: &str| RefusedAction {
        name: name.to_owned(),
        kind: 0,
        condition: String::new(),
        runs: "x".to_owned(),
    };
    let mut plan = InstallPlan::default();
    assert_eq!(plan.refusal(), None);
    plan.refused = ["A", "B", "C"].map(action).into();
    let named = plan.refusal().unwrap();
    assert_eq!(named, "the action A (x) requires Windows (also: B, C)");
}

#[test]
fn the_processor_is_that_of_the_registry() {
    let key = r"HKLM\SYSTEM\ControlSet001\Control\Session Manager\Environment";
    let data = RegistryData::sz("AMD64");
    let system = TestSystem::with_value(key, "PROCESSOR_ARCHITECTURE", data);
    let tables = [
        "LaunchCondition|Condition|Description\n%PROCESSOR_ARCHITECTURE = \"AMD64\"|not met",
        "InstallExecuteSequence|Action|#Sequence\nLaunchConditions|1",
    ];
    let plan = plan("x64", &tables, system).unwrap();
    assert!(plan.unknown.is_empty(), "{:?}", plan.unknown);
}

#[test]
fn costing_is_complete_when_the_installation_is_validated() {
    let tables = [
        "Directory|Directory|Directory_Parent|DefaultDir\nTARGETDIR||SourceDir\nOWN|TARGETDIR|Own",
        "CreateFolder|Directory_|Component_\nOWN|Main",
        "InstallExecuteSequence|Action|Condition|#Sequence\nCostInitialize||1\n\
         CostFinalize|CostingComplete = 0|2\nInstallValidate||3\n\
         CreateFolders|CostingComplete = 1|4",
    ];
    let plan = plan("x64", &tables, TestSystem::default()).unwrap();
    assert_eq!(plan.folders.last().unwrap().to_string(), r"C:\Own");
}

#[test]
fn what_an_installation_without_qn_does_besides_is_named() {
    let differs = |why: &str| Some(Interaction::Differs(why.to_owned()));
    let action = "CustomAction|Action|#Type|Source|Target\nOwn|51|A|1";
    for (tables, expected) in [
        (vec![], None),
        (
            vec!["InstallUISequence|Action|#Sequence\nCostFinalize|1"],
            None,
        ),
        (
            vec!["Dialog|Dialog|Title\nWelcome|Hello"],
            Some(Interaction::Waits),
        ),
        (
            vec![action, "InstallUISequence|Action|#Sequence\nOwn|1"],
            differs("without /qn it also runs Own"),
        ),
        (
            vec![action, "InstallUISequence|Action|#Sequence\nOwn|-1"],
            None,
        ),
        (
            vec![
                action,
                "InstallUISequence|Action|#Sequence\nOwn|1",
                "InstallExecuteSequence|Action|#Sequence\nOwn|1\nCostFinalize|2",
            ],
            None,
        ),
        (
            vec!["InstallExecuteSequence|Action|#Sequence|Condition\nCostFinalize|1|UILevel < 5"],
            differs("without /qn the condition of CostFinalize differs"),
        ),
    ] {
        let plan = plan("x64", &tables, TestSystem::default()).unwrap();
        assert_eq!(plan.interactive, expected, "{tables:?}");
    }
}

#[test]
fn folders_of_the_shell_are_those_of_the_user() {
    for (folder, name) in [
        ("NetHoodFolder", "Network Shortcuts"),
        ("PrintHoodFolder", "Printer Shortcuts"),
        ("RecentFolder", "Recent"),
        ("SendToFolder", "SendTo"),
    ] {
        let profile = r"C:\Users\ContainerAdministrator";
        let expected = format!(r"{profile}\AppData\Roaming\Microsoft\Windows\{name}\Own");
        assert_eq!(made_folder("x64", folder, ""), expected);
    }
}

#[test]
fn a_component_that_is_never_overwritten_keeps_the_value_of_the_image() {
    // A registry key path, never overwritten, of 64 bits.
    let attributes = 4 + 128 + 256;
    let component = "Component|Component|Directory_|#Attributes|KeyPath\nMain|TARGETDIR";
    let component = format!("{component}|{attributes}|r");
    let tables = [
        component.as_str(),
        "Registry|Registry|#Root|Key|Name|Value|Component_\nr|2|SOFTWARE\\Acme|Mode|new|Main",
        "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nWriteRegistryValues|2",
    ];
    let key = r"HKLM\SOFTWARE\Acme";
    for (name, is_kept) in [("Mode", true), ("Other", false)] {
        let system = TestSystem::with_value(key, name, RegistryData::sz("old"));
        let plan = plan("x64", &tables, system).unwrap();
        assert_eq!(plan.registry.is_empty(), is_kept);
        let note = format!("the value \"Mode\" of {key} exists and is not replaced");
        assert_eq!(plan.notes.contains(&note), is_kept, "{:?}", plan.notes);
    }
}

#[test]
fn entries_of_a_file_of_the_image_are_removed() {
    let planned = |removed: &str| -> Result<String, MsiError> {
        let columns = "RemoveIniFile|RemoveIniFile|FileName|DirProperty|Section|Key|Value|#Action";
        let removed = format!("{columns}|Component_\nr|app.ini|TARGETDIR|{removed}|Main");
        let added = "IniFile|IniFile|FileName|DirProperty|Section|Key|Value|#Action|Component_\n\
                     i|new.ini|TARGETDIR|a|z|3|0|Main\nj|app.ini|TARGETDIR|a|z|3|0|Main";
        let sequence = "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\n\
                        RemoveIniValues|2\nWriteIniValues|3";
        let system = TestSystem::with_file(r"C:\app.ini", b"[a]\r\nx=1\r\ny=2,3\r\n[b]\r\nx=4\r\n");
        let plan = plan("x64", &[removed.as_str(), added, sequence], system)?;
        match &plan.files[0].source {
            InstalledContent::Bytes(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            other => panic!("{other}"),
        }
    };
    for (removed, expected) in [
        ("A|X||2", "[a]\r\ny=2,3\r\nz=3\r\n[b]\r\nx=4\r\n"),
        ("c|x||2", "[a]\r\nx=1\r\ny=2,3\r\nz=3\r\n[b]\r\nx=4\r\n"),
        ("a|y|4|4", "[a]\r\nx=1\r\ny=2,3\r\nz=3\r\n[b]\r\nx=4\r\n"),
    ] {
        assert_eq!(planned(removed).unwrap(), expected, "{removed}");
    }
    let error = planned("a|y|3|4").unwrap_err();
    assert!(error.to_string().contains(r"C:\app.ini"), "{error}");
}

#[test]
fn limits_of_a_file_search_are_unknown() {
    let unknown = |limits: &str| {
        let columns = "Signature|Signature|FileName|MinVersion|#MinSize";
        let signature = format!("{columns}\nsig|a.exe|{limits}");
        let tables = [
            signature.as_str(),
            "AppSearch|Property|Signature_\nFOUND|sig",
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
fn tables_for_windows_count_only_for_installed_components() {
    for (action, table) in [
        ("SelfRegModules", "SelfReg|File_|#Cost\nf|"),
        (
            "MsiPublishAssemblies",
            "MsiAssembly|Component_|Feature_\nOther|Rare",
        ),
        (
            "MsiConfigureServices",
            "MsiServiceConfig|Id|Component_\nc|Other",
        ),
    ] {
        for (level, is_refused) in [(1, true), (100, false)] {
            let features = format!("Feature|Feature|#Level\nAll|1\nRare|{level}");
            let sequence =
                format!("InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\n{action}|2");
            let tables = [
                features.as_str(),
                "Component|Component|Directory_\nMain|TARGETDIR\nOther|TARGETDIR",
                "FeatureComponents|Feature_|Component_\nAll|Main\nRare|Other",
                "File|File|Component_|FileName\nf|Other|a.dll",
                table,
                sequence.as_str(),
            ];
            let plan = plan("x64", &tables, TestSystem::default()).unwrap();
            assert_eq!(
                plan.refused.len(),
                usize::from(is_refused),
                "{table} {level}"
            );
        }
    }
}

#[test]
fn assemblies_of_an_application_are_copied() {
    for (application, refused) in [("", 1), ("f", 0)] {
        let assembly =
            format!("MsiAssembly|Component_|Feature_|File_Application\nMain|All|{application}");
        let tables = [
            "File|File|Component_|FileName\nf|Main|a.dll",
            assembly.as_str(),
            "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nMsiPublishAssemblies|2",
        ];
        let plan = plan("x64", &tables, TestSystem::default()).unwrap();
        assert_eq!(plan.refused.len(), refused, "{application}");
    }
}

#[test]
fn the_level_of_an_installation_is_1() {
    let level = written("INSTALLLEVEL", &[], TestSystem::default());
    assert_eq!(level, RegistryData::sz("<1>"));
}

/// Plans a package with features and properties.
fn with_features(features: &str, properties: &str) -> Result<InstallPlan, MsiError> {
    let features = format!("Feature|Feature|Feature_Parent|#Level|#Attributes\n{features}");
    let properties = format!("{}\n{properties}", TABLES[0]);
    let tables = [features.as_str(), properties.as_str()];
    plan("x64", &tables, TestSystem::default())
}

#[test]
fn a_named_feature_needs_those_above_it() {
    for (features, properties, expected) in [
        ("P||0|0\nQ|P|1|0\nR||1|0", "ADDLOCAL|ALL", "R"),
        ("P||0|0\nQ|P|1|0", "ADDLOCAL|Q", ""),
        ("P||0|0\nQ|P|1|2", "ADDLOCAL|ALL", ""),
        ("P||100|0\nQ|P|1|0", "ADDLOCAL|Q", "P,Q"),
        ("P||1|0\nQ|P|1|2", "ADDLOCAL|P", "P,Q"),
        ("P||1|0\nQ|P|1|0\nR||1|0", "ADDLOCAL|ALL\nREMOVE|P", "R"),
        ("P||1|0\nQ|P|1|0", "ADDLOCAL|ALL\nREMOVE|Q", "P"),
        ("P||1|0\nQ|P|1|0", "INSTALLLEVEL|1", "P,Q"),
    ] {
        let plan = with_features(features, properties).unwrap();
        assert_eq!(
            plan.features.join(","),
            expected,
            "{features:?} {properties:?}"
        );
    }
}

#[test]
fn features_are_only_those_that_a_property_names() {
    let features = "A||1|0\nB||1|0";
    let plan = with_features(features, "REMOVE|B").unwrap();
    assert!(plan.features.is_empty());
    let note = "REMOVE without ADDLOCAL installs no feature: write ADDLOCAL=ALL REMOVE=B";
    assert_eq!(plan.notes, [note]);
    for property in ["ADDSOURCE", "COMPADDLOCAL", "FILEADDDEFAULT"] {
        let error = with_features(features, &format!("{property}|A")).unwrap_err();
        assert!(error.to_string().starts_with(property), "{error}");
    }
}

/// Plans a package with an action of a restart and a value of `REBOOT`.
fn with_restart(action: &str, reboot: &str) -> Result<InstallPlan, MsiError> {
    let properties = format!("{}\nREBOOT|{reboot}", TABLES[0]);
    let sequence = format!("InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\n{action}|2");
    let tables = [properties.as_str(), sequence.as_str()];
    plan("x64", &tables, TestSystem::default())
}

#[test]
fn a_package_may_require_a_restart() {
    for (action, reboot, is_required) in [
        ("InstallFinalize", "S", false),
        ("ScheduleReboot", "S", true),
        ("ScheduleReboot", "ReallySuppress", true),
        ("ForceReboot", "ReallySuppress", true),
        ("ForceReboot", "r", true),
    ] {
        let plan = with_restart(action, reboot).unwrap();
        assert_eq!(plan.restart_required, is_required, "{action} {reboot}");
        assert!(plan.refused.is_empty(), "{action} {reboot}");
    }
    let plan = with_restart("ForceReboot", "Suppress").unwrap();
    assert!(!plan.restart_required);
    let refused = plan.refused[0].to_string();
    assert!(refused.starts_with("ForceReboot (a restart"), "{refused}");
    let error = with_restart("InstallFinalize", "force").unwrap_err();
    assert!(error.to_string().starts_with("REBOOT=Force"), "{error}");
}

#[test]
fn a_list_that_every_row_lengthens_is_bounded() {
    let long = "x".repeat(60_000);
    let rows = (0..40).map(|row| format!("r{row}|2|SOFTWARE\\Acme|List|[~]{row}{long}|Main"));
    let rows: Vec<String> = rows.collect();
    let columns = "Registry|Registry|#Root|Key|Name|Value|Component_";
    let written = |rows: &[String]| {
        let registry = format!("{columns}\n{}", rows.join("\n"));
        let tables = [
            registry.as_str(),
            "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nWriteRegistryValues|2",
        ];
        plan("x64", &tables, TestSystem::default())
    };
    assert_eq!(written(&rows[..10]).unwrap().registry.len(), 10);
    let error = written(&rows).unwrap_err();
    assert!(matches!(error, MsiError::TooLarge(_)), "{error}");
}

/// Plans a package that writes a property after its searches, and returns what it writes.
fn written(property: &str, tables: &[&str], system: TestSystem) -> RegistryData {
    let columns = "Registry|Registry|#Root|Key|Name|Value|Component_";
    let registry = format!("{columns}\nr|2|SOFTWARE\\Acme|x|<[{property}]>|Main");
    let sequence = "InstallExecuteSequence|Action|#Sequence\nFindRelatedProducts|1\nAppSearch|2\n\
                    CostFinalize|3\nWriteRegistryValues|4";
    let tables = [tables, &[registry.as_str(), sequence]].concat();
    let plan = plan("x64", &tables, system).unwrap();
    assert!(plan.unknown.is_empty(), "{:?}", plan.unknown);
    match plan.registry.as_slice() {
        [RegistryEdit::SetValue { data, .. }] => data.clone(),
        other => panic!("{other:?}"),
    }
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
        let signature = format!("Signature|Signature|FileName\nsig|{file}");
        let app_search = "AppSearch|Property|Signature_\nFOUND|sig";
        let tables = [app_search, search.as_str(), signature.as_str()];
        let tables = &tables[..if file.is_empty() { 2 } else { 3 }];
        let key = r"HKLM\SOFTWARE\Acme".parse().unwrap();
        let system = TestSystem {
            values: vec![(key, "Path", RegistryData::expand_sz(value))],
            ..TestSystem::with_file(FILE, b"MZ")
        };
        let found = written("FOUND", tables, system);
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
        (r"D:\tools", "a.exe", ""),
        (r"\\server\tools", "a.exe", ""),
    ] {
        let search = format!("DrLocator|Signature_|Parent|Path|#Depth\nsig||{path}|");
        let signature = format!("Signature|Signature|FileName\nsig|{file}");
        let app_search = "AppSearch|Property|Signature_\nFOUND|sig";
        let tables = [app_search, search.as_str(), signature.as_str()];
        let tables = &tables[..if file.is_empty() { 2 } else { 3 }];
        let found = written("FOUND", tables, TestSystem::with_file(FILE, b"MZ"));
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

#[test]
fn a_program_that_installs_further_packages_requires_windows() {
    for (condition, refused) in [
        (
            "",
            "MsiEmbeddedChainer (the program setup in the package: C:\\)",
        ),
        (
            "VersionNT64",
            "MsiEmbeddedChainer (the program setup in the package: C:\\), if VersionNT64",
        ),
        ("NOT VersionNT64", ""),
    ] {
        let columns = "MsiEmbeddedChainer|MsiEmbeddedChainer|Condition|CommandLine|Source|#Type";
        let chainer = format!("{columns}\nc|{condition}|[TARGETDIR]|setup|2");
        let plan = plan("x64", &[chainer.as_str()], TestSystem::default()).unwrap();
        let found = plan.refused.first().map(ToString::to_string);
        assert_eq!(found.unwrap_or_default(), refused, "{condition}");
    }
}

#[test]
fn properties_of_shortcuts_are_left_out_with_a_note() {
    let note = "the properties of shortcuts (MsiShortcutProperty) are left out";
    for (shortcut, is_noted) in [("own", true), ("other", false)] {
        let properties = format!(
            "MsiShortcutProperty|MsiShortcutProperty|Shortcut_|PropertyKey|PropVariantValue\n\
             p|{shortcut}|System.AppUserModel.ID|Acme"
        );
        let tables = [
            "Shortcut|Shortcut|Directory_|Name|Component_|Target\n\
             own|TARGETDIR|App|Main|C:\\app.exe\nother|TARGETDIR|Other|None|C:\\app.exe",
            properties.as_str(),
            "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nCreateShortcuts|2",
        ];
        let plan = plan("x64", &tables, TestSystem::default()).unwrap();
        assert_eq!(plan.shortcuts.len(), 1);
        assert_eq!(plan.notes.iter().any(|it| it == note), is_noted);
    }
}
