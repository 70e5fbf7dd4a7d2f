//! Names of parameters, and parameters in a hashtable.

use super::{CMD, describe, image, in_powershell, run_on};

#[test]
fn a_hashtable_gives_the_error_action() {
    let line =
        r"$p = @{ Path = 'C:\nope'; ErrorAction = 'Stop' }; Remove-Item @p; Set-Content C:\o.txt a";
    let line = line.replace("'Stop'", "'SilentlyContinue'");
    assert_eq!(in_powershell(&line), [r"write C:\o.txt a\r\n"]);
}

#[test]
fn an_alias_is_not_an_ambiguous_prefix() {
    for (files, expected) in [("-d", vec![r"delete C:\inetpub\wwwroot"]), ("-af", vec![])] {
        let line = format!(r"Get-ChildItem C:\inetpub {files} | Remove-Item -Recurse");
        assert_eq!(in_powershell(&line), expected, "{files}");
    }
}

#[test]
fn defaults_see_the_parameters_that_are_given() {
    let mut tree = image();
    let script = br"param($a = ('C:\' + $b), $b) mkdir $a";
    tree.file(r"C:\s.ps1", Some(script.to_vec()));
    let tree = run_on(tree, &CMD, r"powershell -File C:\s.ps1 -b given").unwrap();
    let actions: Vec<String> = tree.actions.iter().map(describe).collect();
    assert_eq!(actions, [r"folder C:\given"]);
}
