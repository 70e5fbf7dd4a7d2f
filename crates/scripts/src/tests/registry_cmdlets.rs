//! Cmdlets and methods that change the registry.

use super::{CMD, POWERSHELL, describe, image, in_cmd, in_powershell, refused, run_as, run_on};
use crate::ScriptErrorKind::{Fails, NeedsWindows, NotUnderstood};
use wincimg_registry::RegistryData;

#[test]
fn variables_of_the_machine_go_into_its_registry() {
    const KEY: &str = r"HKLM\SYSTEM\ControlSet001\Control\Session Manager\Environment";
    let path = r"C:\Windows\System32\WindowsPowerShell\v1.0;C:\Windows\system32;C:\Windows;C:\Users\ContainerAdministrator\AppData\Local\Microsoft\WindowsApps";
    assert_eq!(
        in_powershell(
            "[Environment]::SetEnvironmentVariable('PATH', $env:PATH + ';C:\\x', [EnvironmentVariableTarget]::Machine)"
        ),
        [format!(r"set {KEY} PATH = REG_SZ {path};C:\x")]
    );
    assert_eq!(
        in_powershell("$env:PATH = 'C:\\x;{0}' -f $env:PATH; setx /M PATH $env:PATH"),
        [format!(r"set {KEY} PATH = REG_SZ C:\x;{path}")]
    );
    assert_eq!(
        in_cmd(r#"setx /M PATH "C:\x y;%PATH%""#),
        [format!(r"set {KEY} PATH = REG_SZ C:\x y;{path}")]
    );
    // The next line sees the change.
    let tree = run_on(image(), &CMD, r"setx /M HOME_OF_X C:\x").unwrap();
    let tree = run_on(tree, &CMD, "mkdir %HOME_OF_X%").unwrap();
    assert_eq!(describe(&tree.actions[1]), r"folder C:\x");
}

#[test]
fn the_registrys_cmdlets_change_it() {
    let line = |line: &str| in_powershell(line).join("; ");
    assert_eq!(
        line(
            "New-Item -Path HKLM:\\\\SOFTWARE\\X/Y -Force; New-ItemProperty -Path HKLM:\\SOFTWARE\\X\\Y -Name n -PropertyType DWORD -Value 1"
        ),
        r"create HKLM\SOFTWARE\X\Y; set HKLM\SOFTWARE\X\Y n = REG_DWORD Dword(1)"
    );
    assert_eq!(
        line(
            "sp HKLM:\\SYSTEM\\CurrentControlSet\\Control n 7; sp 'HKLM:\\SYSTEM\\CurrentControlSet\\Control' n 8"
        ),
        r"set HKLM\SYSTEM\ControlSet001\Control n = REG_DWORD Dword(7); set HKLM\SYSTEM\ControlSet001\Control n = REG_DWORD Dword(8)"
    );
    assert_eq!(
        line("sp HKLM:\\SYSTEM\\CurrentControlSet\\Control n '7'"),
        r"set HKLM\SYSTEM\ControlSet001\Control n = REG_SZ 7"
    );
    // A number that is not written as one.
    let bare = |value: &str| format!("sp HKLM:\\SYSTEM\\CurrentControlSet\\Control n {value}");
    assert_eq!(refused(&POWERSHELL, &bare("0x10")).0, NotUnderstood);
    assert_eq!(
        line(&bare("'0x10'")),
        r"set HKLM\SYSTEM\ControlSet001\Control n = REG_SZ 0x10"
    );
}

#[test]
fn user_variables_are_in_the_hive_of_the_profile() {
    let with_hive = || {
        let mut tree = image();
        tree.file(r"C:\Users\ContainerAdministrator\NTUSER.DAT", None);
        tree
    };
    let tree = run_on(with_hive(), &CMD, r"setx KIND small && setx PATH C:\own").unwrap();
    let tree = run_on(tree, &CMD, r"mkdir C:\%KIND% && (echo %PATH%)>C:\path.txt").unwrap();
    assert!(tree.listing(r"C:\").contains(&r"C:\small\".to_owned()));
    let written = tree.actions.last().map(describe).unwrap();
    assert!(written.contains(r"C:\\Windows;C:\\own"), "{written}");
    let line = "[Environment]::SetEnvironmentVariable('A', 'b', 'User')";
    let tree = run_on(with_hive(), &POWERSHELL, line).unwrap();
    let tree = run_on(tree, &POWERSHELL, r"mkdir C:\$env:A").unwrap();
    assert!(tree.listing(r"C:\").contains(&r"C:\b\".to_owned()));
    // Without the hive, or where it is unknown, only Windows can.
    let error = run_on(image(), &CMD, "setx A b").unwrap_err();
    assert!(
        error
            .to_string()
            .contains(r"C:\Users\ContainerAdministrator\NTUSER.DAT")
    );
    assert!(error.help.is_some_and(|help| help.contains("setx /M")));
    assert_eq!(
        run_as("Bob", with_hive(), &CMD, "setx A b")
            .unwrap_err()
            .kind,
        NotUnderstood
    );
    let mut tree = image();
    tree.file(r"C:\Users\ContainerUser\NTUSER.DAT", None);
    assert!(run_as("ContainerUser", tree, &CMD, "setx A b").is_ok());
}

#[test]
fn a_value_of_a_key_is_expanded_as_it_is_read() {
    const KEY: &str = r"'HKLM:\SYSTEM\CurrentControlSet\Control\Session Manager\Environment'";
    let expected = [
        r"set HKLM\SYSTEM\ControlSet001\Control\Session Manager\Environment Path = REG_EXPAND_SZ C:\Windows\System32\WindowsPowerShell\v1.0;C:\Windows\system32;C:\Windows;C:\own",
    ];
    for read in [
        format!("(Get-ItemProperty -Path {KEY} -Name Path).Path"),
        format!("(gp {KEY} PATH).path"),
    ] {
        let line = format!(
            "$old = {read}; Set-ItemProperty -Path {KEY} -Name Path -Value ($old + ';C:\\own')"
        );
        assert_eq!(in_powershell(&line), expected, "{line}");
    }
    let mut tree = image();
    tree.with_value(
        r"HKLM\SOFTWARE\x",
        "a",
        RegistryData::expand_sz("%HOMEDRIVE%\\a"),
    );
    let line = r"mkdir (Get-ItemProperty HKLM:\SOFTWARE\x a).a";
    assert_eq!(
        run_on(tree, &POWERSHELL, line).unwrap_err().kind,
        NeedsWindows
    );
}

#[test]
fn the_execution_policy_of_the_machine_is_a_value_of_the_registry() {
    let set = |policy: &str| {
        [format!(
            r"set HKLM\SOFTWARE\Microsoft\PowerShell\1\ShellIds\Microsoft.PowerShell ExecutionPolicy = REG_SZ {policy}"
        )]
    };
    assert_eq!(
        in_powershell("Set-ExecutionPolicy -ExecutionPolicy remotesigned;"),
        set("RemoteSigned")
    );
    assert_eq!(
        in_cmd("powershell -ep Bypass Set-ExecutionPolicy Bypass -Scope LocalMachine -Force"),
        set("Bypass")
    );
    assert_eq!(
        in_cmd(
            "powershell -ExecutionPolicy Bypass Write-Host a && powershell Set-ExecutionPolicy Unrestricted"
        ),
        set("Unrestricted")
    );
    let user = run_as(
        "ContainerUser",
        image(),
        &POWERSHELL,
        "Set-ExecutionPolicy Bypass",
    );
    assert_eq!(user.unwrap_err().kind, Fails);
}

#[test]
fn a_value_of_the_registry_without_data_is_zero_or_empty() {
    let start =
        "New-Item HKLM:\\SOFTWARE\\x -Force | Out-Null; New-ItemProperty HKLM:\\SOFTWARE\\x n";
    for (kind, expected) in [
        ("DWord", "REG_DWORD Dword(0)"),
        ("QWord", "REG_QWORD Qword(0)"),
        ("String", "REG_SZ "),
    ] {
        let made = in_powershell(&format!("{start} -PropertyType {kind}"));
        assert_eq!(made[1], format!(r"set HKLM\SOFTWARE\x n = {expected}"));
    }
    let line = format!("{start} -PropertyType DWord -Value 1.5");
    assert_eq!(refused(&POWERSHELL, &line).0, NotUnderstood);
}

#[test]
fn a_text_that_is_not_a_number_makes_a_number_a_text() {
    let number = "New-Item HKLM:\\SOFTWARE\\x -Force | Out-Null; \
                  New-ItemProperty HKLM:\\SOFTWARE\\x n -PropertyType DWord -Value 1 | Out-Null;";
    for (value, expected) in [("abc", "REG_SZ abc"), ("'16'", "REG_DWORD Dword(16)")] {
        let line = format!("{number} Set-ItemProperty HKLM:\\SOFTWARE\\x n {value}");
        assert_eq!(
            in_powershell(&line)[2],
            format!(r"set HKLM\SOFTWARE\x n = {expected}")
        );
    }
    for value in ["'1kb'", "''", "('a','b')"] {
        let line = format!("{number} Set-ItemProperty HKLM:\\SOFTWARE\\x n {value}");
        assert_eq!(refused(&POWERSHELL, &line).0, NotUnderstood, "{line}");
    }
    let line = format!("{number} Set-ItemProperty HKLM:\\SOFTWARE\\x n abc -Type DWord");
    assert_eq!(refused(&POWERSHELL, &line).0, Fails);
}
