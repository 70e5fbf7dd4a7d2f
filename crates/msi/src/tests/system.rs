//! The system that a package is installed on: its processor, properties, folders and users.

use super::*;

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

/// Platforms, folders, targets of the folder below, and the folders that are made.
const FOLDERS: &str = r"
x64 | ProgramFiles64Folder | | C:\Program Files\Own
Intel | ProgramFiles64Folder | | C:\Program Files (x86)\Own
Intel | CommonFiles64Folder | | C:\Program Files (x86)\Common Files\Own
Intel | System64Folder | | C:\Windows\SysWOW64\Own
Intel | ProgramFilesFolder | | C:\Program Files (x86)\Own
Intel | WindowsFolder | | C:\Windows\Own
Intel | WindowsFolder | c:\program files\moved | C:\Program Files (x86)\moved
x64 | WindowsFolder | C:\Program Files\moved | C:\Program Files\moved
";

#[test]
fn packages_of_32_bits_have_no_folders_of_64_bit_programs() {
    for row in FOLDERS.trim().lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [platform, folder, target, expected] = cells[..] else {
            panic!("{row}");
        };
        assert_eq!(
            made_folder(platform, folder, target),
            expected,
            "{platform} {folder}"
        );
    }
}

/// The results are those of Windows, by wine's tests.
#[test]
fn paths_of_folders_have_single_backslashes_and_no_spaces_beside_them() {
    for (path, expected) in [
        (r"C:\\one\\two  ", r"C:\one\two"),
        (r"C:\\ Program Files \\ ", r"C:\Program Files"),
        (r" C:\one two", r"C:\one two"),
        ("C:/one//two/", r"C:\one\two"),
    ] {
        assert_eq!(made_folder("x64", "WindowsFolder", path), expected);
        let tables = [
            "Directory|Directory|Directory_Parent|DefaultDir\nTARGETDIR||SourceDir",
            "CreateFolder|Directory_|Component_\nTARGETDIR|Main",
            "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nCreateFolders|2",
        ];
        let properties = [("ALLUSERS", "1"), ("TARGETDIR", path)];
        let plan = plan_with(&properties, "x64", &tables, TestSystem::default()).unwrap();
        assert_eq!(plan.folders.last().unwrap().to_string(), expected);
    }
    let moved = made_folder("x64", "WindowsFolder", r"[WindowsVolume]\moved");
    assert_eq!(moved, r"C:\moved");
}

#[test]
fn a_folder_has_no_dot_at_the_end_of_its_name() {
    let tables = [
        "Directory|Directory|Directory_Parent|DefaultDir\nTARGETDIR||SourceDir\n\
         OWN|TARGETDIR|Acme Inc.\nAPP|OWN|App",
        "Component|Component|Directory_\nMain|APP",
        "File|File|Component_|FileName|#Attributes\nf|Main|a.exe|8192",
        "Registry|Registry|#Root|Key|Name|Value|Component_\nr|2|SYSTEM\\Acme|x|[APP]<[#f]>|Main",
        "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nInstallFiles|2\n\
         WriteRegistryValues|3",
    ];
    let plan = plan("x64", &tables, TestSystem::default()).unwrap();
    let file = &plan.files[0];
    assert_eq!(file.path.to_string(), r"C:\Acme Inc\App\a.exe");
    let beside = InstalledContent::Beside("Acme Inc/App/a.exe".to_owned());
    assert_eq!(file.source, beside);
    // Texts keep it.
    let expected = r"HKLM\SYSTEM\Acme x=C:\Acme Inc.\App\<C:\Acme Inc.\App\a.exe>";
    assert_eq!(values_of(&plan), [expected]);
    let moved = made_folder("x64", "WindowsFolder", r"C:\Acme Inc.\App");
    assert_eq!(moved, r"C:\Acme Inc\App");
    for path in [r"C:\own..\App", r"C:\.\App", r"C:\..\App"] {
        assert!(session::image_path(path).is_err(), "{path}");
    }
}

#[test]
fn a_folder_of_a_package_has_no_space_at_the_end_of_its_name() {
    let tables = [
        "Directory|Directory|Directory_Parent|DefaultDir\nTARGETDIR||SourceDir\n\
         OWN|TARGETDIR|1.0 \nAPP|OWN|App",
        "CreateFolder|Directory_|Component_\nAPP|Main",
        "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nCreateFolders|2",
    ];
    let plan = plan("x64", &tables, TestSystem::default()).unwrap();
    assert_eq!(plan.folders.last().unwrap().to_string(), r"C:\1.0\App");
}

#[test]
fn variables_of_the_profile_name_that_of_the_user() {
    for (variable, below) in [
        ("USERPROFILE", ""),
        ("AppData", r"\AppData\Roaming"),
        ("LOCALAPPDATA", r"\AppData\Local"),
    ] {
        let action = format!("CustomAction|Action|#Type|Source|Target\nOwn|51|OWN|[%{variable}]");
        let tables = [
            action.as_str(),
            "Registry|Registry|#Root|Key|Name|Value|Component_\nr|2|SYSTEM\\Acme|x|[OWN]|Main",
            "InstallExecuteSequence|Action|#Sequence\nOwn|1\nCostFinalize|2\nWriteRegistryValues|3",
        ];
        let plan = plan("x64", &tables, TestSystem::default()).unwrap();
        assert!(plan.unknown.is_empty(), "{:?}", plan.unknown);
        let expected = format!(r"HKLM\SYSTEM\Acme x=C:\Users\ContainerAdministrator{below}");
        assert_eq!(values_of(&plan), [expected]);
    }
}

#[test]
fn the_support_of_assemblies_is_the_version_of_the_net_framework() {
    let key = r"HKLM\SOFTWARE\Microsoft\NET Framework Setup\NDP\v4\Full";
    let system = TestSystem::with_value(key, "Version", RegistryData::sz("4.7.03190"));
    let tables = [
        "LaunchCondition|Condition|Description\nMsiNetAssemblySupport = \"4.7.3190.0\"|not met",
        "InstallExecuteSequence|Action|#Sequence\nLaunchConditions|1",
    ];
    let plan = plan("x64", &tables, system).unwrap();
    assert!(plan.unknown.is_empty(), "{:?}", plan.unknown);
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
        // Those of a package without a date.
        r#"Date = "1/1/1970" AND Time = "0:00:00""#,
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
