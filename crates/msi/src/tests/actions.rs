//! Actions that run programs, restart Windows or set properties.

use super::*;

#[test]
fn only_libraries_of_wix_are_known_by_their_entry_points() {
    for (library, entry, is_refused) in [
        ("WixUIWixca", "ValidatePath", false),
        ("VendorDll", "ValidatePath", true),
        ("Wix4UtilCA_X64", "WixCloseApplications", false),
        ("WixFirewallCA", "SchedFirewallExceptionsInstall", false),
        ("VendorDll", "SchedFirewallExceptionsInstall", true),
        ("WixCA", "WixBroadcastEnvironmentChange", false),
        ("Wix4UtilCA_X64", "WixBroadcastSettingChange", false),
        ("VendorDll", "WixBroadcastSettingChange", true),
        ("WixCA", "WixCheckRebootRequired", false),
        // Nothing is installed then.
        ("WixCA", "WixExitEarlyWithSuccess", true),
        ("VendorDll", "WixQueryOsWellKnownSID", true),
        ("IIsSchedule", "UninstallCertificates", false),
        ("NetFxCA", "ExecNetFx", false),
        ("WixCA", "WixCreateInternetShortcuts", false),
        ("VendorDll", "WixSchedInternetShortcuts", true),
        ("Wix4NetFxCA_X86", "SchedNetFx", false),
        ("VendorDll", "ExecNetFx", true),
        ("VendorDll", "CheckFX", true),
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

#[test]
fn wix_names_the_accounts_of_windows() {
    let tables = [
        "CustomAction|Action|#Type|Source|Target\nOwn|1|Wix4UtilCA_X64|WixQueryOsWellKnownSID",
        "Registry|Registry|#Root|Key|Name|Value|Component_\n\
         r|2|SYSTEM\\Acme|x|[WIX_ACCOUNT_USERS], [WIX_ACCOUNT_USERS_NODOMAIN]|Main",
        "InstallExecuteSequence|Action|#Sequence\nOwn|1\nCostFinalize|2\nWriteRegistryValues|3",
    ];
    let plan = plan("x64", &tables, TestSystem::default()).unwrap();
    assert!(plan.refused.is_empty());
    assert_eq!(
        values_of(&plan),
        [r"HKLM\SYSTEM\Acme x=BUILTIN\Users, Users"]
    );
}

#[test]
fn an_action_may_run_after_a_successful_installation() {
    for (sequence, is_refused) in [(-1, true), (-3, false), (0, false)] {
        let sequence =
            format!("InstallExecuteSequence|Action|#Sequence\nOwn|{sequence}\nCostFinalize|1");
        let tables = [
            "CustomAction|Action|#Type|Source|Target\nOwn|2|setup|[TARGETDIR]",
            sequence.as_str(),
        ];
        let plan = plan("x64", &tables, TestSystem::default()).unwrap();
        assert_eq!(plan.refused.len(), usize::from(is_refused), "{sequence}");
        if is_refused {
            // Folders are known then.
            let runs = r"the program setup in the package: C:\";
            assert_eq!(plan.refused[0].runs, runs);
        }
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
fn native_images_are_left_out_with_a_note() {
    let noted = |component: &str| {
        let file = format!("File|File|Component_|FileName\nf|{component}|a.exe");
        let tables = [
            file.as_str(),
            "NetFxNativeImage|NetFxNativeImage|File_\nn|f",
            "CustomAction|Action|#Type|Source|Target\nOwn|1|NetFxCA|SchedNetFx",
            "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nOwn|2",
        ];
        let plan = plan("x64", &tables, TestSystem::default()).unwrap();
        plan.notes.iter().any(|note| note.contains("(ngen)"))
    };
    assert!(noted("Main"));
    assert!(!noted("Other"));
}

/// Plans a setup project of Visual Studio that requires a version of the .NET Framework.
fn setup_project(
    version: &str,
    allows_later: &str,
    system: TestSystem,
) -> Result<InstallPlan, MsiError> {
    let properties = format!(
        "{}\nVSDFrameworkVersion|{version}\nVSDAllowLaterFrameworkVersions|{allows_later}\n\
         VSDNETURLMSG|needs .NET [1]",
        TABLES[0]
    );
    let tables = [
        properties.as_str(),
        "CustomAction|Action|#Type|Source|Target\nCheck|1|MSVBDPCADLL|CheckFX\n\
         Launch|1|MSVBDPCADLL|VsdLaunchConditions",
        "_VsdLaunchCondition|Condition|Description\nVSDFXAvailable|[VSDNETURLMSG]",
        "InstallExecuteSequence|Action|#Sequence\nCheck|1\nLaunch|2\nCostFinalize|3",
    ];
    plan("x64", &tables, system)
}

/// A system with a value of the .NET Framework.
fn with_framework(below: &str, name: &'static str, number: u32) -> TestSystem {
    let key = format!(r"HKLM\SOFTWARE\WOW6432Node\Microsoft\NET Framework Setup\NDP\{below}");
    TestSystem::with_value(&key, name, RegistryData::dword(number))
}

#[test]
fn a_setup_project_fails_without_its_net_framework() {
    let with_4 = |release| with_framework(r"v4\Full", "Release", release);
    for (version, system, is_met) in [
        ("v4.0", with_4(461_814), true),
        ("v4.5", with_4(461_814), true),
        ("v4.7.2", with_4(461_814), true),
        ("v4.8", with_4(461_814), false),
        ("v4.5", TestSystem::default(), false),
        ("3.5.21022", with_4(461_814), false),
        ("v3.5", with_framework("v3.5", "Install", 1), true),
        ("3.5.21022", with_framework("v3.5", "Install", 1), true),
        ("3.5.21022", with_framework("v3.5", "Install", 0), false),
        (
            "2.0.50727",
            with_framework("v2.0.50727", "Install", 1),
            true,
        ),
        ("v2.0", with_framework("v2.0.50727", "Install", 1), true),
        ("v3.0", with_framework("v3.0", "Install", 1), true),
    ] {
        match setup_project(version, "False", system) {
            Ok(plan) => assert!(is_met && plan.refused.is_empty(), "{version}"),
            Err(MsiError::Fails(why)) => {
                let expected =
                    format!("Launch refuses this system (VSDFXAvailable): needs .NET {version}");
                assert!(!is_met && why.starts_with(&expected), "{version} {why}");
                let has_base = why.contains("runtime:3.5");
                assert_eq!(has_base, !version.starts_with("v4"), "{why}");
            }
            Err(error) => panic!("{version}: {error}"),
        }
    }
}

#[test]
fn an_unknown_net_framework_does_not_fail_a_setup_project() {
    for allows_later in ["False", "True"] {
        let unread = TestSystem {
            is_unread: true,
            ..TestSystem::default()
        };
        let planned = setup_project("v4.5", allows_later, unread).unwrap();
        let mut unknown = planned.unknown.iter();
        assert!(unknown.any(|question| question.contains(r"NDP\v4\Full")));
        assert!(planned.refused.is_empty(), "{allows_later}");
    }
    // Only Windows can tell.
    for (version, allows_later) in [("5.0", "False"), ("2.0.50727", "TRUE")] {
        let plan = setup_project(version, allows_later, TestSystem::default()).unwrap();
        let refused: Vec<&str> = plan.refused.iter().map(|it| it.name.as_str()).collect();
        assert_eq!(refused, ["Check"], "{version}");
    }
}

#[test]
fn a_check_of_a_setup_project_that_does_not_run_here_decides_nothing() {
    for (entry, property) in [
        ("CheckNETCore", "VSDNETCoreAvailable"),
        ("CheckFX", "VSDFXAvailable"),
    ] {
        let actions = format!(
            "CustomAction|Action|#Type|Source|Target\nCheck|1|MSVBDPCADLL|{entry}\n\
             Launch|1|MSVBDPCADLL|VsdLaunchConditions"
        );
        for table in ["_VsdLaunchCondition", "LaunchCondition"] {
            let conditions = format!("{table}|Condition|Description\n{property}|needs it");
            let tables = [
                actions.as_str(),
                conditions.as_str(),
                "InstallExecuteSequence|Action|#Sequence\nCheck|1\nLaunch|2\nLaunchConditions|3\n\
                 CostFinalize|4",
            ];
            let planned = plan("x64", &tables, TestSystem::default()).unwrap();
            assert_eq!(planned.refused.len(), 1, "{entry}");
            assert_eq!(planned.refused[0].name, "Check");
            assert!(planned.notes.is_empty(), "{:?}", planned.notes);
            let planned = plan_without("Check", &tables).unwrap();
            assert!(planned.refused.is_empty() && planned.unknown.is_empty());
        }
    }
}

#[test]
fn a_condition_on_what_an_action_may_set_is_open_without_the_action() {
    for (kind, condition, is_refused) in [
        // A library, a script, and a property of Windows, which neither sets.
        (1, "FOUND", true),
        (38, "FOUND", true),
        (1, "NOT VersionNT64", false),
        // A program, and a library that runs later.
        (2, "FOUND", false),
        (1025, "FOUND", false),
    ] {
        let action = format!("CustomAction|Action|#Type|Source|Target\nOwn|{kind}|Vendor|Detect");
        let launch = format!("LaunchCondition|Condition|Description\n{condition}|not met");
        let tables = [
            action.as_str(),
            launch.as_str(),
            "InstallExecuteSequence|Action|#Sequence\nOwn|1\nLaunchConditions|2\nCostFinalize|3",
        ];
        let planned = plan("x64", &tables, TestSystem::default());
        let skipped = plan_without("Own", &tables).unwrap_err();
        if is_refused {
            let planned = planned.unwrap();
            assert_eq!(planned.refused[0].name, "Own", "{kind}");
            let note = "(FOUND): not met (unless Own decides it: set FOUND)";
            assert!(planned.notes[0].ends_with(note), "{:?}", planned.notes);
            assert!(planned.refusal().unwrap().ends_with(note), "{kind}");
            let why = skipped.to_string();
            let expected = "such as Own, decides it: set FOUND)";
            assert!(why.ends_with(expected), "{kind} {why}");
            assert!(matches!(skipped, MsiError::Undecided(_)), "{kind}");
        } else {
            let error = planned.unwrap_err();
            assert!(matches!(error, MsiError::Fails(_)), "{kind} {error}");
            assert!(matches!(skipped, MsiError::Fails(_)), "{kind} {skipped}");
        }
    }
}

#[test]
fn only_what_a_line_can_set_is_to_be_set() {
    for (condition, can_be_set, end) in [
        (
            "FOUND OR REMOVE OR UPGRADINGPRODUCTCODE",
            true,
            "decides it: set FOUND)",
        ),
        ("Found OR Installed", false, "such as Own, decides it)"),
        ("Found OR REMOVE", false, "such as Own, decides it)"),
    ] {
        let launch = format!("LaunchCondition|Condition|Description\n{condition}|not met");
        let tables = [
            "CustomAction|Action|#Type|Source|Target\nOwn|1|Vendor|Detect",
            launch.as_str(),
            "InstallExecuteSequence|Action|#Sequence\nOwn|1\nLaunchConditions|2\nCostFinalize|3",
        ];
        let error = plan_without("Own", &tables).unwrap_err();
        assert!(error.to_string().ends_with(end), "{error}");
        let is_undecided = matches!(error, MsiError::Undecided(_));
        assert_eq!(is_undecided, can_be_set, "{condition}");
    }
}

#[test]
fn a_condition_on_properties_of_the_command_line_is_decided() {
    let tables = [
        "CustomAction|Action|#Type|Source|Target\nOwn|1|Vendor|Detect",
        "LaunchCondition|Condition|Description\nACCEPT = \"YES\" OR Installed|not met",
        "InstallExecuteSequence|Action|#Sequence\nOwn|1\nLaunchConditions|2\nCostFinalize|3",
    ];
    let planned = |properties: &[(&str, &str)]| {
        let planned = plan_with(properties, "x64", &tables, TestSystem::default());
        planned.map(|plan| plan.refused.len())
    };
    assert!(matches!(planned(&[]), Ok(1)));
    assert!(matches!(planned(&[("ACCEPT", "YES")]), Ok(1)));
    let error = planned(&[("ACCEPT", "NO")]).unwrap_err();
    assert!(matches!(error, MsiError::Fails(_)), "{error}");
}

#[test]
fn what_is_not_the_package_of_a_product_is_named() {
    let without_code = "Property|Property|Value\nA|b";
    for (table, expected) in [
        ("MsiPatchSequence|PatchFamily\np", "a patch (.msp)"),
        ("MsiPatchMetadata|Company\np", "a patch (.msp)"),
        ("ModuleSignature|ModuleID\nm", "a merge module (.msm)"),
        ("Icon|Name\ni", "no ProductCode"),
    ] {
        let error = plan("x64", &[without_code, table], TestSystem::default()).unwrap_err();
        assert!(error.to_string().contains(expected), "{table}: {error}");
    }
}

#[test]
fn what_wix_configures_is_named() {
    let sequence = "InstallExecuteSequence|Action|#Sequence\nCostFinalize|1\nOwn|2";
    for (library, entry, expected) in [
        ("IIsSchedule", "ConfigureIIs", ": Shop, Site in IIS"),
        ("WixCA", "SchedXmlFile", r": changes of C:\Web.config"),
        ("VendorDll", "ConfigureIIs", ""),
    ] {
        let action = format!("CustomAction|Action|#Type|Source|Target\nOwn|1|{library}|{entry}");
        let tables = [
            action.as_str(),
            "IIsWebSite|Web|Component_|Description\nw||Default Web Site\nx|Main|Site",
            "Wix4IIsWebVirtualDir|VirtualDir|Component_|Alias\nv|Main|Shop\nu|Other|None",
            "XmlFile|XmlFile|File|Component_\nx|[TARGETDIR]Web.config|Main",
            sequence,
        ];
        let plan = plan("x64", &tables, TestSystem::default()).unwrap();
        let expected = format!("{entry} of the library {library} in the package{expected}");
        assert_eq!(plan.refused[0].runs, expected);
    }
}
