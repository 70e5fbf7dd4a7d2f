//! Cmdlets and methods that change the registry.

use wincimg_registry::RegistryData;

use super::{CMD, POWERSHELL, check, check_as, describe, image, run_as, run_on};

#[test]
fn the_next_line_sees_a_variable_of_the_machine() {
    let tree = run_on(image(), &CMD, r"setx /M HOME_OF_X C:\x").unwrap();
    let tree = run_on(tree, &CMD, "mkdir %HOME_OF_X%").unwrap();
    assert_eq!(describe(&tree.actions[1]), r"folder C:\x");
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
    check_as("Bob", &with_hive(), "cmd> setx A b => NotUnderstood");
    let mut tree = image();
    tree.file(r"C:\Users\ContainerUser\NTUSER.DAT", None);
    assert!(run_as("ContainerUser", tree, &CMD, "setx A b").is_ok());
}

#[test]
fn a_value_with_a_variable_of_a_user_is_not_expanded() {
    let mut tree = image();
    let home = RegistryData::expand_sz("%HOMEDRIVE%\\a");
    tree.with_value(r"HKLM\SOFTWARE\x", "a", home);
    check(
        &tree,
        r"PS> mkdir (Get-ItemProperty HKLM:\SOFTWARE\x a).a => NeedsWindows",
    );
}

#[test]
fn the_execution_policy_of_the_machine_is_not_for_users_to_set() {
    let line = "PS> Set-ExecutionPolicy Bypass => Fails";
    check_as("ContainerUser", &image(), line);
}
