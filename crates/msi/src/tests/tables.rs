//! What the rows of a table leave in the image.

use super::*;

/// The results are those of wine.
#[test]
fn a_brace_that_is_not_closed_is_text() {
    for (value, expected) in [
        ("a {b [ProductName] c", "a {b Own c"),
        ("{[None] [ProductName]", "{ Own"),
        ("{a{[None]}b[ProductName]", "{abOwn"),
        ("{0} [ProductName] {1", "{0} Own {1"),
        ("x {b [ProductName c", "x {b [ProductName c"),
    ] {
        let properties = format!("{}\nProductName|Own", TABLES[0]);
        let registry = format!(
            "Registry|Registry|#Root|Key|Name|Value|Component_\nr|2|SYSTEM\\Acme|x|{value}|Main"
        );
        let tables = [
            properties.as_str(),
            registry.as_str(),
            "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nWriteRegistryValues|2",
        ];
        let plan = plan("x64", &tables, TestSystem::default()).unwrap();
        let expected = format!(r"HKLM\SYSTEM\Acme x={expected}");
        assert_eq!(values_of(&plan), [expected], "{value}");
    }
}

#[test]
fn a_blank_value_removes_a_variable() {
    let key = r"HKLM\SYSTEM\ControlSet001\Control\Session Manager\Environment";
    for (name, is_removed) in [
        ("=*OWN", true),
        ("=-*OWN", true),
        ("*OWN", true),
        ("!*OWN", true),
        ("+*OWN", false),
        ("-*OWN", false),
        ("=*OTHER", false),
    ] {
        let variable = format!("Environment|Environment|Name|Value|Component_\ne|{name}||Main");
        let tables = [
            variable.as_str(),
            "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nWriteEnvironmentStrings|2",
        ];
        let system = TestSystem::with_value(key, "OWN", RegistryData::sz("x"));
        let plan = plan("x64", &tables, system).unwrap();
        let expected = format!("{key} OWN");
        let expected = is_removed.then_some(expected);
        assert_eq!(values_of(&plan), Vec::from_iter(expected), "{name}");
    }
}

/// A component with a file, `C:\a.dll`.
const WITH_FILE: [&str; 2] = [
    "Component|Component|Directory_|KeyPath\nMain|TARGETDIR|f",
    "File|File|Component_|FileName\nf|Main|a.dll",
];

#[test]
fn a_class_may_have_the_name_of_its_file_alone() {
    for (attributes, server) in [(0, r"C:\a.dll"), (1, "a.dll")] {
        let columns = "Class|CLSID|Component_|Context|Feature_|#Attributes";
        let class = format!("{columns}\n{{1}}|Main|InprocServer32|All|{attributes}");
        let sequence =
            "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nRegisterClassInfo|2";
        let tables = [&WITH_FILE[..], &[class.as_str(), sequence]].concat();
        let plan = plan("x64", &tables, TestSystem::default()).unwrap();
        let values = values_of(&plan);
        assert!(values[1].ends_with(&format!(" ={server}")), "{values:?}");
    }
}

#[test]
fn a_note_says_that_interfaces_of_a_type_library_are_not_registered() {
    let library = "TypeLib|LibID|#Version|#Language|Component_|Description\n{1}|512|0|Main|Own";
    let sequence =
        "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nRegisterTypeLibraries|2";
    let tables = [&WITH_FILE[..], &[library, sequence]].concat();
    let plan = plan("x64", &tables, TestSystem::default()).unwrap();
    let [note] = plan.notes.as_slice() else {
        panic!("{:?}", plan.notes);
    };
    assert!(
        note.contains(r"the type library C:\a.dll are not registered:"),
        "{note}"
    );
    let proxy = "Registry|Registry|#Root|Key|Value|Component_\n\
                 r|0|Interface\\{2}\\ProxyStubClsid32|{3}|Main";
    let sequence = "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\n\
                    WriteRegistryValues|2\nRegisterTypeLibraries|3";
    let tables = [&WITH_FILE[..], &[library, proxy, sequence]].concat();
    let notes = self::plan("x64", &tables, TestSystem::default())
        .unwrap()
        .notes;
    assert!(notes[0].contains("keep its ProxyStubClsid32"), "{notes:?}");
}

#[test]
fn a_file_that_the_image_has_is_a_replacement() {
    let tables = [
        "File|File|Component_|FileName|#Attributes\nf|Main|a.dll|8192\ng|Main|b.dll|8192",
        "DuplicateFile|FileKey|Component_|File_|DestName\nd|Main|f|c.dll",
        "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nInstallFiles|2\nDuplicateFiles|3",
    ];
    let plan = plan("x64", &tables, TestSystem::with_file(r"C:\a.dll", b"old")).unwrap();
    let files = plan.files.iter();
    let found: Vec<(&str, bool)> = files
        .map(|it| (it.path.name(), it.is_replacement))
        .collect();
    assert_eq!(found, [("a.dll", true), ("b.dll", false), ("c.dll", false)]);
}

#[test]
fn the_verb_with_the_lowest_sequence_is_the_default() {
    let tables = [
        "Extension|Extension|Component_|ProgId_|Feature_\nacme|Main|Acme.Doc|All",
        "Verb|Verb|Extension_|#Sequence\n\
         open|acme|3\nedit|acme|1\nprint|acme|2\nfind|acme|\nother|none|0",
        "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nRegisterExtensionInfo|2",
    ];
    let plan = plan("x64", &tables, TestSystem::default()).unwrap();
    let shell = r"HKLM\SOFTWARE\Classes\Acme.Doc\shell =edit,print,open";
    let values = values_of(&plan);
    assert!(values.iter().any(|value| value == shell), "{values:?}");
}

#[test]
fn the_local_system_has_two_names() {
    for (key, expected) in [
        (r"S-1-5-18\Software\Acme", r"HKU\.DEFAULT\Software\Acme"),
        (r".DEFAULT\Software\Acme", r"HKU\.DEFAULT\Software\Acme"),
    ] {
        let registry =
            format!("Registry|Registry|#Root|Key|Name|Value|Component_\nr|3|{key}|x|1|Main");
        let tables = [
            registry.as_str(),
            "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nWriteRegistryValues|2",
        ];
        let plan = plan("x64", &tables, TestSystem::default()).unwrap();
        assert_eq!(values_of(&plan), [format!("{expected} x=1")]);
    }
}

#[test]
fn an_account_without_a_name_is_named_by_its_property() {
    let tables = [
        "Directory|Directory|Directory_Parent|DefaultDir\nTARGETDIR||SourceDir\nOWN|TARGETDIR|Own",
        "CreateFolder|Directory_|Component_\nOWN|Main",
        "LockPermissions|LockObject|Table|Domain|User|#Permission\nOWN|CreateFolder||[USERS]|1",
        "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nCreateFolders|2",
    ];
    let plan = plan("x64", &tables, TestSystem::default()).unwrap();
    let expected = "rights of the folder C:\\Own: the account [USERS] is empty: set its property on \
                    the line";
    assert_eq!(plan.refused[0].runs, expected);
}

#[test]
fn only_the_delayed_start_of_a_service_is_set() {
    for (start, kind, argument, expected) in [
        (2, 3, "1", Ok(Some(1))),
        (2, 3, "0", Ok(Some(0))),
        (3, 3, "1", Ok(None)),
        (2, 3, "[X]", Err(())),
        (2, 5, "1", Err(())),
    ] {
        let columns = "ServiceInstall|ServiceInstall|Name|#ServiceType|#StartType|Component_";
        let service = format!("{columns}\ns|Own|16|{start}|Main");
        let columns =
            "MsiServiceConfig|MsiServiceConfig|Name|#Event|#ConfigType|Argument|Component_";
        let setting = format!("{columns}\nc|Own|1|{kind}|{argument}|Main");
        let sequence = "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\n\
                        InstallServices|2\nMsiConfigureServices|3";
        let own = [service.as_str(), setting.as_str(), sequence];
        let tables = [&WITH_FILE[..], &own].concat();
        let plan = plan("x64", &tables, TestSystem::default()).unwrap();
        assert_eq!(
            plan.refused.len(),
            usize::from(expected.is_err()),
            "{kind} {argument}"
        );
        let values = values_of(&plan);
        let delayed = values
            .iter()
            .find_map(|it| it.split_once(" DelayedAutostart="));
        let delayed = delayed.map(|(_, number)| number.parse::<u32>().unwrap());
        assert_eq!(
            delayed,
            expected.unwrap_or_default(),
            "{start} {kind} {argument}"
        );
    }
}

#[test]
fn a_service_has_an_account_of_windows_and_is_not_a_driver() {
    for (kind, account, expected) in [
        (16, "", Some("LocalSystem")),
        (16, "LocalSystem", Some("LocalSystem")),
        (16, r"NT AUTHORITY\System", Some(r"NT AUTHORITY\System")),
        (
            32,
            r"NT AUTHORITY\LocalService",
            Some(r"NT AUTHORITY\LocalService"),
        ),
        (16, r"NT SERVICE\Own", Some(r"NT SERVICE\Own")),
        (16, r".\bob", None),
        (16, r"DOM\gmsa$", None),
        (1, "", None),
        (2, "", None),
    ] {
        let columns = "ServiceInstall|ServiceInstall|Name|#ServiceType|#StartType|StartName";
        let service = format!("{columns}|Component_\ns|Own|{kind}|2|{account}|Main");
        let sequence = "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nInstallServices|2";
        let tables = [&WITH_FILE[..], &[service.as_str(), sequence]].concat();
        match plan("x64", &tables, TestSystem::default()) {
            Ok(plan) => {
                let key = r"HKLM\SYSTEM\ControlSet001\Services\Own";
                let expected = format!("{key} ObjectName={}", expected.unwrap_or("refused"));
                assert!(values_of(&plan).contains(&expected), "{expected}");
            }
            Err(error) => {
                assert!(matches!(error, MsiError::Unsupported(_)), "{error}");
                assert_eq!(expected, None, "{kind} {account}: {error}");
            }
        }
    }
}

#[test]
fn isolated_components_require_windows() {
    for (application, refused) in [("Main", 1), ("Other", 0)] {
        let isolated = format!(
            "IsolatedComponent|Component_Shared|Component_Application\nLibrary|{application}"
        );
        let tables = [
            isolated.as_str(),
            "InstallExecuteSequence|Action|#Sequence\nIsolateComponents|1\nCostFinalize|2",
        ];
        let plan = plan("x64", &tables, TestSystem::default()).unwrap();
        assert_eq!(plan.refused.len(), refused, "{application}");
        assert!(plan.notes.is_empty(), "{:?}", plan.notes);
    }
}

#[test]
fn a_component_that_runs_from_its_source_is_not_supported() {
    for (attributes, of_features, added, is_installed) in [
        (1, "0\nMore|1|0", "", false),
        (2, "1\nMore|1|1", "", false),
        (2, "1\nMore|1|0", "", true),
        (2, "1\nMore|1|1", "ALL", true),
        (0, "1\nMore|1|1", "", true),
    ] {
        let component =
            format!("Component|Component|Directory_|#Attributes\nMain|TARGETDIR|{attributes}");
        let features = format!("Feature|Feature|#Level|#Attributes\nAll|1|{of_features}");
        let links = "FeatureComponents|Feature_|Component_\nAll|Main\nMore|Main";
        let properties = [("ALLUSERS", "1"), ("ADDLOCAL", added)];
        let tables = [component.as_str(), features.as_str(), links];
        match plan_with(&properties, "x64", &tables, TestSystem::default()) {
            Ok(_) => assert!(is_installed, "{attributes} {of_features}"),
            Err(error) => {
                assert!(matches!(error, MsiError::Unsupported(_)), "{error}");
                assert!(!is_installed, "{error}");
            }
        }
    }
}

#[test]
fn a_folder_without_the_removed_files_is_removed_unless_it_is_created_again() {
    let (log, text) = (r"C:\old\a.log", r"C:\old\b.txt");
    for (rows, action, expected) in [
        ("a||OLD|1|Main\nb|*|OLD|1|Main", "", &[r"C:\old"][..]),
        ("a||OLD|1|Main\nb|*.log|OLD|1|Main", "", &[log]),
        ("a|*.log|OLD|1|Main\nb|a.*|OLD|1|Main", "", &[log]),
        (
            "a||OLD|1|Main\nb|*|OLD|1|Main",
            "\nCreateFolders|3",
            &[log, text],
        ),
    ] {
        let columns = "RemoveFile|FileKey|FileName|DirProperty|#InstallMode|Component_";
        let removed = format!("{columns}\n{rows}");
        let sequence = format!(
            "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nRemoveFiles|2{action}"
        );
        let tables = [
            "Directory|Directory|Directory_Parent|DefaultDir\nTARGETDIR||SourceDir\n\
             OLD|TARGETDIR|old",
            "CreateFolder|Directory_|Component_\nOLD|Main",
            removed.as_str(),
            sequence.as_str(),
        ];
        let files = [log, text].map(|path| (path.parse().unwrap(), Vec::new()));
        let system = TestSystem {
            files: BareSystem {
                files: files.into(),
            },
            ..TestSystem::default()
        };
        let plan = plan("x64", &tables, system).unwrap();
        let removed: Vec<String> = plan.removed.iter().map(ToString::to_string).collect();
        assert_eq!(removed, expected, "{rows}{action}");
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
