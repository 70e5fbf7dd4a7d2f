use proptest::prelude::*;

use super::*;

fn service() -> Service {
    Service {
        name: "Worker".parse().unwrap(),
        display_name: None,
        description: None,
        program: r"C:\app\worker.exe".parse().unwrap(),
        arguments: Vec::new(),
        start: StartType::Auto,
        account: ServiceAccount::LocalSystem,
        depends_on: Vec::new(),
        environment: Vec::new(),
        on_failure: None,
    }
}

fn shown(service: &Service) -> Vec<String> {
    let edits = service.edits();
    let key = r"HKLM\SYSTEM\ControlSet001\Services\Worker";
    assert_eq!(edits[0].to_string(), format!("replace {key}"));
    let values = edits[1..].iter().map(ToString::to_string);
    values
        .map(|text| {
            text.strip_prefix(&format!("set {key} "))
                .unwrap()
                .to_owned()
        })
        .collect()
}

#[test]
fn a_service_has_the_values_that_windows_own_have() {
    assert_eq!(
        shown(&service()),
        [
            "\"Type\" = REG_DWORD 16",
            "\"ErrorControl\" = REG_DWORD 1",
            "\"Start\" = REG_DWORD 2",
            r#""ImagePath" = REG_EXPAND_SZ "C:\\app\\worker.exe""#,
            "\"ObjectName\" = REG_SZ \"LocalSystem\"",
        ]
    );
    let whole = Service {
        display_name: Some("The worker".parse().unwrap()),
        description: Some("Works".parse().unwrap()),
        program: r"C:\Program Files\worker.exe".parse().unwrap(),
        arguments: ["--name", "a \"b\"", ""]
            .map(|it| it.parse().unwrap())
            .into(),
        start: StartType::DelayedAuto,
        account: "localservice".parse().unwrap(),
        depends_on: vec!["RpcSs".parse().unwrap(), "Dhcp".parse().unwrap()],
        environment: vec!["A=1".parse().unwrap(), "B=".parse().unwrap()],
        ..service()
    };
    assert_eq!(
        shown(&whole)[1..],
        [
            "\"ErrorControl\" = REG_DWORD 1",
            "\"Start\" = REG_DWORD 2",
            r#""ImagePath" = REG_EXPAND_SZ "\"C:\\Program Files\\worker.exe\" --name \"a \\\"b\\\"\" \"\"""#,
            r#""ObjectName" = REG_SZ "NT AUTHORITY\\LocalService""#,
            "\"DelayedAutostart\" = REG_DWORD 1",
            "\"DisplayName\" = REG_SZ \"The worker\"",
            "\"Description\" = REG_SZ \"Works\"",
            r#""DependOnService" = REG_MULTI_SZ ["RpcSs", "Dhcp"]"#,
            r#""Environment" = REG_MULTI_SZ ["A=1", "B="]"#,
        ]
    );
    let start = |start| shown(&Service { start, ..service() })[2].clone();
    assert_eq!(start(StartType::Demand), "\"Start\" = REG_DWORD 3");
    assert_eq!(start(StartType::Disabled), "\"Start\" = REG_DWORD 4");
}

fn actions(of: &[(FailureKind, u32)]) -> Vec<FailureAction> {
    let action = |(action, after): &(FailureKind, u32)| FailureAction {
        action: *action,
        after: *after,
    };
    of.iter().map(action).collect()
}

/// The bytes are those of services of Windows 10: `ALG`, and `spectrum` with its command.
#[test]
fn failure_actions_are_those_of_windows_own_services() {
    let gateway = FailureActions {
        actions: actions(&[
            (FailureKind::Restart, 120_000),
            (FailureKind::Restart, 300_000),
            (FailureKind::Nothing, 0),
        ]),
        reset_after: 900,
        command: None,
        also_on_error: false,
    };
    let bytes =
        "840300000000000000000000030000001400000001000000c0d4010001000000e09304000000000000000000";
    assert_eq!(hex::encode(gateway.to_bytes()), bytes);
    let mut kinds = vec![(FailureKind::Restart, 1000); 4];
    kinds.push((FailureKind::Run, 1000));
    let spectrum = FailureActions {
        actions: actions(&kinds),
        reset_after: 60,
        command: Some("spectrum.exe -safemode".parse().unwrap()),
        also_on_error: true,
    };
    let bytes = "3c0000000000000001000000050000001400000001000000e803000001000000e803000001000000e803000001000000e803000003000000e8030000";
    assert_eq!(hex::encode(spectrum.to_bytes()), bytes);
    let edits = shown(&Service {
        on_failure: Some(spectrum),
        ..service()
    });
    assert_eq!(
        edits[6..],
        [
            "\"FailureCommand\" = REG_SZ \"spectrum.exe -safemode\"",
            "\"FailureActionsOnNonCrashFailures\" = REG_DWORD 1",
        ]
    );
}

#[test]
fn accounts_with_a_password_are_refused() {
    for (text, account) in [
        ("LocalSystem", "LocalSystem"),
        (r".\localsystem", "LocalSystem"),
        ("NetworkService", r"NT AUTHORITY\NetworkService"),
        (r"nt authority\LocalService", r"NT AUTHORITY\LocalService"),
        (r"NT SERVICE\Worker", r"NT SERVICE\Worker"),
    ] {
        assert_eq!(text.parse::<ServiceAccount>().unwrap().to_string(), account);
    }
    for text in [
        "", "Bob", r"CORP\bob", r".\bob", r"NT SERVICE\", r"NT SERVICE\a\b",
    ] {
        assert!(text.parse::<ServiceAccount>().is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn every_name_that_is_taken_is_a_keys(text in "\\PC{0,4}|.{1,300}") {
        if let Ok(name) = text.parse::<ServiceName>() {
            let depends_on = vec![name.clone()];
            let service = Service { name, depends_on, ..service() };
            prop_assert!(service.edits().len() > 5);
        }
    }

    #[test]
    fn every_line_that_is_taken_can_be_in_a_list(text in ".{0,20}|[\\x00-\\x1f]{1,3}") {
        if let Ok(line) = text.parse::<ServiceText>() {
            let environment = vec![line.clone(), line];
            let service = Service { environment, ..service() };
            prop_assert!(service.edits().len() > 5);
        }
    }
}
